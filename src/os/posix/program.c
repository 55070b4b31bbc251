/* program.c: where the program is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif
#include <unistd.h>

#include "os/os.h"

bool os_program_path(char *buf, size_t n)
{
    const ssize_t len = readlink("/proc/self/exe", buf, n - 1);
    buf[len > 0 ? len : 0] = 0;
#ifdef __linux__
    /* a bare root has no /proc; the kernel still says what it started */
    const char *started = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    char *whole = len <= 0 && started ? realpath(started, NULL) : NULL;
    if (whole) snprintf(buf, n, "%s", whole);
    free(whole);
#endif
    return *buf != 0;
}

void os_slashes(char *path)
{
    (void)path;
}
