/* pthread.h: one thread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include "os/wasm/system.h"
