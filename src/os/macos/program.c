/* program.c: where the program is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mach-o/dyld.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/os.h"

bool os_program_path(char *buf, size_t n)
{
    char started[4096];
    uint32_t size = sizeof started;
    char *whole = _NSGetExecutablePath(started, &size)
                ? NULL : realpath(started, NULL);
    snprintf(buf, n, "%s", whole ? whole : "");
    free(whole);
    return *buf != 0;
}

void os_slashes(char *path)
{
    (void)path;
}
