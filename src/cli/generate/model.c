/* model.c: where this program and the built-in model lie.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/generate/model.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif
#include <unistd.h>

bool model_program_path(char *buf, size_t n)
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

tt_status model_find_builtin(tt_ctx *ctx, char *buf, size_t n)
{
    static const char *const here[] = {"ref_data/demo", "build/demo-model"};
    static const char *const places[] = {"../../ref_data/demo",
                                         "../demo-model",
                                         "../share/tether/demo"};
    struct stat st;
    char self[4096];
    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++)
        if (stat(here[i], &st) == 0) {
            snprintf(buf, n, "%s", here[i]);
            return TT_OK;
        }
    model_program_path(self, sizeof self);
    char *slash = strrchr(self, '/');
    if (slash) *slash = 0;
    for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++)
        if ((size_t)snprintf(buf, n, "%s/%s", self, places[i]) < n
            && stat(buf, &st) == 0) return TT_OK;
    return tt_fail(ctx, TT_EIO, "the built-in model was not found: it is "
                   "looked for in ../share/tether/demo beside the program, "
                   "where `make install` puts it; name its folder with -m");
}
