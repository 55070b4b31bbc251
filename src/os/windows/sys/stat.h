/* stat.h: what a file is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <sys/stat.h>
#include "os/windows/system.h"
#undef stat
#define stat os_stat
#undef lstat
#define lstat os_lstat
#undef fstat
#define fstat os_fstat
#undef mkdir
#define mkdir os_mkdir
#define st_mtime st_mtim.tv_sec
