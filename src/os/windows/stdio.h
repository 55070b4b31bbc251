/* stdio.h: files that may be renamed while they are open.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma GCC system_header
#include_next <stdio.h>
#include "os/windows/system.h"
#undef fopen
#define fopen os_fopen
#undef freopen
#define freopen os_freopen
#undef fclose
#define fclose os_fclose
#undef fflush
#define fflush os_fflush
#undef rename
#define rename os_rename
#undef remove
#define remove os_remove
#undef tmpfile
#define tmpfile os_tmpfile
