/* unistd.h: descriptors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <unistd.h>
#include "os/wasm/system.h"
