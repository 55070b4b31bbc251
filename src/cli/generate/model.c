/* model.c: where this program and the built-in model lie.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/generate/model.h"
#include "os/os.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    os_program_path(self, sizeof self);
    char *slash = strrchr(self, '/');
    if (slash) *slash = 0;
    for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++)
        if ((size_t)snprintf(buf, n, "%s/%s", self, places[i]) < n
            && stat(buf, &st) == 0) return TT_OK;
    return tt_fail(ctx, TT_EIO, "the built-in model was not found: it is "
                   "looked for in ../share/tether/demo next to the program, "
                   "where `make install` puts it; name its folder with -m");
}
