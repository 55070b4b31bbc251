/* files.c: folders and whole files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "analyze/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "io/outfile.h"

tt_status files_make_folder(tt_ctx *ctx, const char *path)
{
    char part[4096];
    if (!*path
        || (size_t)snprintf(part, sizeof part, "%s", path) >= sizeof part)
        return tt_fail(ctx, TT_EINVAL, "the name of a folder is %s",
                       *path ? "too long" : "empty");
    for (char *c = part + 1;; c++) {
        if (*c && *c != '/') continue;
        char kept = *c;
        struct stat st;
        *c = 0;
        if (mkdir(part, 0777)
            && (errno != EEXIST || stat(part, &st) || !S_ISDIR(st.st_mode)))
            return errno == EEXIST
                ? tt_fail(ctx, TT_EIO, "%s is no folder, but a folder of that "
                          "name is needed; give another name", part)
                : tt_fail(ctx, TT_EIO, "cannot create the folder %s: %s; "
                          "give another name", part, strerror(errno));
        if (!kept) return TT_OK;
        *c = kept;
    }
}

size_t tt_analyze_folder_there(const char *path)
{
    char part[4096];
    size_t n = strlen(path);
    if (n >= sizeof part) return n;
    memcpy(part, path, n + 1);
    while (n) {
        while (n > 1 && part[n - 1] == '/') n--;
        part[n] = 0;
        if (files_exist(part)) break;
        while (n && part[n - 1] != '/') n--;
    }
    return n;
}

void tt_analyze_folder_remove(const char *path, size_t there)
{
    char part[4096];
    size_t n = strlen(path);
    if (n >= sizeof part) return;
    memcpy(part, path, n + 1);
    while (n > there) {
        while (n > there && part[n - 1] == '/') n--;
        part[n] = 0;
        if (n <= there || rmdir(part)) return; /* not empty */
        while (n > there && part[n - 1] != '/') n--;
    }
}

const char *files_join(tt_ctx *ctx, tt_arena *mem, const char *folder,
                       const char *name, const char *ending)
{
    size_t n = strlen(folder) + strlen(name) + strlen(ending) + 2;
    char *out = tt_alloc(ctx, mem, (int64_t)n, 1, "a file name");
    if (out) snprintf(out, n, "%s/%s%s", folder, name, ending);
    return out ? out : "";
}

bool files_exist(const char *path)
{
    struct stat st;
    /* what cannot be looked at is there: opening it says why it cannot be */
    return stat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* A regular file: of a pipe no one writes to, opening would wait for ever. */
static FILE *open_regular(tt_ctx *ctx, const char *path, struct stat *st)
{
    FILE *f = NULL;
    errno = 0;
    if (stat(path, st) == 0 && !S_ISREG(st->st_mode))
        tt_fail(ctx, TT_EFORMAT, "%s is not a regular file", path);
    else if (!(f = fopen(path, "rb")) || fstat(fileno(f), st))
        tt_fail(ctx, TT_EIO, "cannot read %s: %s", path, strerror(errno));
    return f;
}

tt_status files_copy(tt_ctx *ctx, const char *to, const char *from)
{
    tt_out out;
    char buf[65536];
    size_t n;
    struct stat st;
    FILE *f = open_regular(ctx, from, &st);
    if (!f) return ctx->status;
    if (!ctx->status && tt_out_open(ctx, &out, to) == TT_OK) {
        while (!ctx->status && (n = fread(buf, 1, sizeof buf, f)) > 0)
            tt_out_write(ctx, &out, buf, n);
        if (ferror(f))
            tt_fail(ctx, TT_EIO, "cannot read %s: %s", from, strerror(errno));
        if (ctx->status) tt_out_abort(&out);
        else tt_out_finish(ctx, &out);
    }
    fclose(f);
    return ctx->status;
}
