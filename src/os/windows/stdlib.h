/* stdlib.h: names of files that are made.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <stdlib.h>
#include "os/windows/system.h"
#undef environ
#define environ os_environ
