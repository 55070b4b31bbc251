/* stat.h: times of files by the names of POSIX.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <sys/stat.h>
#define st_mtim st_mtimespec
#define st_ctim st_ctimespec
