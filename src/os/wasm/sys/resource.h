/* resource.h: limits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include "os/wasm/system.h"
#define getrusage os_getrusage
#define getrlimit os_getrlimit
