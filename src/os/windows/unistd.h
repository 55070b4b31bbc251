/* unistd.h: descriptors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <unistd.h>
#include "os/windows/system.h"
#undef access
#define access os_access
#undef unlink
#define unlink os_unlink
#undef ftruncate
#define ftruncate os_ftruncate
#undef rmdir
#define rmdir os_rmdir
#undef lseek
#define lseek os_lseek
#define setsid() (-1)
