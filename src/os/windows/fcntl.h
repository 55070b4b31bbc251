/* fcntl.h: files, opened by their names.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <fcntl.h>
#include "os/windows/system.h"
#undef open
#define open os_open
