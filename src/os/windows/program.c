/* program.c: where the program is, and names that the user types.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/windows/private.h"

#include "os/os.h"

bool os_program_path(char *buf, size_t n)
{
    win_name w;
    const DWORD k = GetModuleFileNameW(NULL, w.text, 4096);
    if (k && k < 4096 && win_narrow(buf, n, w.text)) return true;
    *buf = '\0';
    return false;
}

void os_slashes(char *path)
{
    for (; *path; path++)
        if (*path == '\\') *path = '/';
}
