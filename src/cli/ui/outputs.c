/* outputs.c: names of what a command writes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/outfile.h"
#include "io/video.h"

/* One spelling per file: what writing to it makes or replaces, in its folder
 * with links resolved. NULL for what is not compared. */
static const char *spelling(tt_ctx *ctx, const char *path)
{
    struct stat st;
    if (!path) return NULL;
    if (!strcmp(path, "-")) return "the standard output";
    if ((stat(path, &st) == 0 && !S_ISREG(st.st_mode))) return NULL;
    char *file = tt_out_target(ctx, &ctx->scratch, path);
    if (!file) return NULL;
    char *slash = strrchr(file, '/');
    const char *base = slash ? slash + 1 : file;
    if (slash) *slash = 0;
    const char *folder = !slash ? "." : *file ? file : "/";
    char *real = realpath(folder, NULL); /* NULL: made later, or refused */
    const size_t n = strlen(real ? real : folder) + strlen(base) + 2;
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

/* ---- what is there ------------------------------------------------------- */

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

tt_status outputs_free(tt_ctx *ctx, const output_name *name, size_t n,
                       int64_t frames, const char *why)
{
    char picture[4096];
    for (size_t i = 0; i < n && !ctx->status; i++) {
        const char *path = name[i].path;
        if (!path || !strcmp(path, "-")) continue;
        /* 100%done.mp4 looks like a pattern and is a name */
        for (int64_t k = 0; !is_there(path) && k < frames
             && tt_pattern_name(picture, sizeof picture, name[i].path, k); k++)
            path = picture;
        if (is_there(path))
            tt_fail(ctx, TT_EINVAL, "%s would replace %s, which is there; give "
                    "another name, or --overwrite%s%s%s", name[i].option, path,
                    why ? " (" : "", why ? why : "", why ? ")" : "");
    }
    return ctx->status;
}

tt_status outputs_keep(tt_ctx *ctx, const char *option, const char *path)
{
    const output_name one = {option, path};
    return outputs_free(ctx, &one, 1, 1, NULL);
}

/* Do the first bytes of a file hold these? */
static bool begins_with(const char *path, const char *mark)
{
    char head[4096];
    const size_t m = strlen(mark);
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f) fclose(f);
    for (size_t i = 0; i + m <= n; i++)
        if (!memcmp(head + i, mark, m)) return true;
    return false;
}

tt_status outputs_kind(tt_ctx *ctx, const char *option, const char *path,
                       const char *mark, const char *kind)
{
    if (!path || !strcmp(path, "-") || !is_there(path)
        || begins_with(path, mark)) return ctx->status;
    return tt_fail(ctx, TT_EINVAL, "%s would replace %s, which is no %s of "
                   "this program; give another name, or --overwrite", option,
                   path, kind);
}

tt_status outputs_safetensors(tt_ctx *ctx, const char *option,
                              const char *path)
{
    static const char *const other[] = {
        ".gguf", ".pt", ".pth", ".ckpt", ".bin", ".onnx", ".npy", ".npz",
        ".txt", ".json", ".csv", ".html", ".png", ".apng", ".jpg", ".jpeg",
        ".gif", ".mp4", ".mov", ".mkv", ".webm", ".y4m"};
    const size_t n = strlen(path);
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        const size_t m = strlen(other[i]);
        if (n > m && !strcasecmp(path + n - m, other[i]))
            return tt_fail(ctx, TT_EINVAL, "%s %s: what is written is "
                           "safetensors, which the ending %s does not say; "
                           "give a name that ends in .safetensors", option,
                           path, other[i]);
    }
    return ctx->status;
}

tt_status outputs_png(tt_ctx *ctx, const char *option, const char *path)
{
    const size_t n = path ? strlen(path) : 0;
    struct stat st;
    if (!path || (n > 4 && !strcasecmp(path + n - 4, ".png"))
        || (!stat(path, &st) && !S_ISREG(st.st_mode))) return ctx->status;
    return tt_fail(ctx, TT_EINVAL, "%s %s: what is written is a PNG picture; "
                   "give a name that ends in .png", option, path);
}

/* ---- inputs -------------------------------------------------------------- */

static bool same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* "a/b" -> "a", "b" -> "."; false when it does not fit. */
static bool folder_of(char *buf, size_t n, const char *path)
{
    const char *slash = strrchr(path, '/');
    const int len = !slash ? 0 : slash == path ? 1 : (int)(slash - path);
    return (size_t)snprintf(buf, n, "%.*s", slash ? len : 1,
                            slash ? path : ".") < n;
}

/* Can a number in the pattern `out` give the file name `base`? */
static bool pattern_gives(const char *pattern, const char *base)
{
    const char *slash = strrchr(pattern, '/');
    const char *p = slash ? slash + 1 : pattern, *percent = strchr(p, '%');
    const char *rest = percent ? strchr(percent, 'd') : NULL;
    if (!rest) return false;
    const size_t before = (size_t)(percent - p), n = strlen(base);
    const size_t after = strlen(rest + 1);
    if (n <= before + after || strncmp(p, base, before)
        || strcmp(base + n - after, rest + 1)) return false;
    return strspn(base + before, " 0123456789") >= n - before - after;
}

static bool pattern_hits(const char *pattern, const char *path)
{
    char a[4096], b[4096];
    struct stat x, y;
    const char *slash = strrchr(path, '/');
    return folder_of(a, sizeof a, pattern) && folder_of(b, sizeof b, path)
        && !stat(a, &x) && !stat(b, &y) && same_inode(&x, &y)
        && pattern_gives(pattern, slash ? slash + 1 : path);
}

bool outputs_hit(const char *out, const char *in)
{
    char name[4096];
    struct stat a, b;
    if (!strcmp(out, "-") || !strcmp(in, "-")) return false;
    if (!stat(out, &a) && !stat(in, &b))
        return S_ISREG(a.st_mode) && same_inode(&a, &b);
    for (int i = 0; i < 2; i++) /* numbered pictures begin with 0 or 1 */
        if (tt_pattern_name(name, sizeof name, in, i) && outputs_hit(out, name))
            return true;
    return strchr(out, '%') && !strchr(in, '%') && access(in, F_OK) == 0
        && pattern_hits(out, in);
}

bool outputs_inside(const char *out, const char *in)
{
    struct stat st, folder, at;
    char *real = !stat(in, &folder) && S_ISDIR(folder.st_mode)
              && !stat(out, &st) && S_ISREG(st.st_mode) ? realpath(out, NULL)
                                                        : NULL;
    bool inside = false;
    for (char *slash; real && !inside && (slash = strrchr(real, '/'));) {
        *slash = 0;
        inside = *real && !stat(real, &at) && same_inode(&at, &folder);
    }
    free(real);
    return inside;
}
