/* outputs.c: names of what a command writes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One spelling per file: its folder with links resolved, its name. NULL for
 * what is not compared. */
static const char *spelling(tt_ctx *ctx, const char *path)
{
    struct stat st;
    if (!path || !strcmp(path, "-")
        || (stat(path, &st) == 0 && !S_ISREG(st.st_mode))) return NULL;
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t n = slash ? (size_t)(base - path) : 2;
    char *folder = tt_alloc(ctx, &ctx->scratch, (int64_t)n + 1, 1, "a name");
    if (!folder) return NULL;
    snprintf(folder, n + 1, "%s", slash ? path : "./");
    char *real = realpath(folder, NULL); /* NULL: made later, or refused */
    n = strlen(real ? real : folder) + strlen(base) + 2;
    char *out = tt_alloc(ctx, &ctx->scratch, (int64_t)n, 1, "a name");
    if (out) snprintf(out, n, "%s/%s", real ? real : folder, base);
    free(real);
    return out;
}

tt_status outputs_differ(tt_ctx *ctx, const output_name *name, size_t n)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const char **path = tt_alloc(ctx, &ctx->scratch, (int64_t)n, sizeof *path,
                                 "names");
    for (size_t i = 0; path && i < n; i++) {
        path[i] = spelling(ctx, name[i].path);
        for (size_t k = 0; path[i] && k < i; k++)
            if (path[k] && !strcmp(path[i], path[k]))
                tt_fail(ctx, TT_EINVAL, "%s and %s would both write %s; give "
                        "them different names", name[k].option,
                        name[i].option, name[i].path);
    }
    tt_arena_reset(&ctx->scratch, mark);
    return ctx->status;
}
