/* time.h: clocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <time.h>
#include "os/windows/system.h"
