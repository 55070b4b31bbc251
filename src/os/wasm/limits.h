/* limits.h: sizes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <limits.h>
#include "os/wasm/system.h"
