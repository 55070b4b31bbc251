/* manifest.c: tables of stored digests.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   what is read may be shown: words are printable ASCII, digests are
 *         hexadecimal. No time but that of sorting grows faster than the
 *         file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tether/classes.h"
#include "io/io.h"
#include "io/outfile.h"

static char *manifest_copy(tt_ctx *ctx, const char *s)
{
    char *c = malloc(strlen(s) + 1);
    if (!c) tt_fail(ctx, TT_ENOMEM, "out of memory for the digests");
    else strcpy(c, s);
    return c;
}

tt_status tt_manifest_add(tt_ctx *ctx, tt_manifest *l, const char *cls,
                          const char *name, const char *tensor,
                          const char *sha)
{
    if (l->n == l->capacity) {
        const int64_t capacity = l->capacity ? 2 * l->capacity : 1024;
        tt_manifest_row *row = realloc(l->row, (size_t)capacity * sizeof *row);
        if (!row)
            return tt_fail(ctx, TT_ENOMEM, "out of memory for the digests");
        l->row = row;
        l->capacity = capacity;
    }
    l->row[l->n] = (tt_manifest_row){
        manifest_copy(ctx, cls), manifest_copy(ctx, name),
        manifest_copy(ctx, tensor), manifest_copy(ctx, sha), l->n, 0, false};
    l->n++;
    return ctx->status;
}

tt_manifest_row *tt_manifest_find(tt_manifest *l, const char *cls,
                                  const char *name, const char *tensor)
{
    for (int64_t i = 0; i < l->n; i++) {
        tt_manifest_row *r = &l->row[i];
        if (!strcmp(r->tensor, tensor) && !strcmp(r->name, name)
            && !strcmp(r->cls, cls))
            return r;
    }
    return NULL;
}

void tt_manifest_free(tt_manifest *l)
{
    for (int64_t i = 0; i < l->n; i++) {
        free(l->row[i].cls);
        free(l->row[i].name);
        free(l->row[i].tensor);
        free(l->row[i].sha);
    }
    free(l->row);
    *l = (tt_manifest){0};
}

/* ---- reading ------------------------------------------------------------- */

enum { LINE = 1024, FILE_MOST = 64 << 20 };   /* bytes                        */

/* Printable ASCII: it is shown as it is. */
static bool is_word(const char *s)
{
    while (*s > ' ' && *s <= '~') s++;
    return !*s;
}

static bool is_sha(const char *s)
{
    return strspn(s, "0123456789abcdef") == 64 && !s[64];
}

const char *tt_manifest_class(const char *cls)
{
#define SAVED(name, NAME, kernels, saved, ...)                                 \
    if (!strcmp(cls, #name) && strncmp(saved, #name ".", sizeof #name))        \
        return saved;
    TT_CLASSES(SAVED)
    return cls;
}

static void manifest_read_line(tt_ctx *ctx, tt_manifest *l, const char *path,
                               int64_t number, const char *line)
{
    char cls[64], name[256], tensor[512], sha[80], more;
    if (line[0] == '#' || line[0] == '\n') return;
    if (sscanf(line, "%63s %255s %511s %79s %c", cls, name, tensor, sha,
               &more) != 4
        || !is_word(cls) || !is_word(name) || !is_word(tensor))
        tt_fail(ctx, TT_EFORMAT, "%s, line %" PRId64 ": expected \"class case "
                "tensor sha256\" in printable ASCII", path, number);
    else if (!is_sha(sha))
        tt_fail(ctx, TT_EFORMAT, "%s, line %" PRId64 ": expected a sha256 of "
                "64 hexadecimal digits, 0-9 and a-f", path, number);
    else if (!tt_manifest_add(ctx, l, tt_manifest_class(cls), name,
                              tensor, sha))
        l->row[l->n - 1].line = number;
}

static int manifest_by_place(const void *a, const void *b)
{
    const tt_manifest_row *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static int compare_keys(const tt_manifest_row *x, const tt_manifest_row *y)
{
    int c = strcmp(x->cls, y->cls);
    if (!c) c = strcmp(x->name, y->name);
    return c ? c : strcmp(x->tensor, y->tensor);
}

static int by_key(const void *a, const void *b)
{
    const int c = compare_keys(a, b);
    return c ? c : manifest_by_place(a, b);
}

/* The first row that says what one before it says is refused. */
static void refuse_twice(tt_ctx *ctx, tt_manifest *l, const char *path)
{
    const tt_manifest_row *twice = NULL;
    if (l->n < 2) return;
    qsort(l->row, (size_t)l->n, sizeof *l->row, by_key);
    for (int64_t i = 1; i < l->n; i++)
        if (!compare_keys(&l->row[i - 1], &l->row[i])
            && (!twice || l->row[i].at < twice->at)) twice = &l->row[i];
    if (twice)
        tt_fail(ctx, TT_EFORMAT, "%s, line %" PRId64 ": %s %s %s is listed "
                "twice", path, twice->line, twice->cls, twice->name,
                twice->tensor);
    qsort(l->row, (size_t)l->n, sizeof *l->row, manifest_by_place);
}

tt_status tt_manifest_read(tt_ctx *ctx, tt_manifest *l, const char *path)
{
    TT_TRY(ctx->status);
    char line[LINE];
    int64_t number = 0, bytes = 0;
    FILE *f = fopen(path, "r");
    if (!f && errno == ENOENT) return TT_OK;
    if (!f)
        return tt_fail(ctx, TT_EIO, "cannot read %s: %s", path,
                       strerror(errno));
    while (!ctx->status && fgets(line, sizeof line, f)) {
        const size_t n = strlen(line);
        number++;
        bytes += (int64_t)n;
        if (bytes > FILE_MOST)
            tt_fail(ctx, TT_EFORMAT, "%s: more than %d MB, no table of digests "
                    "is as long", path, FILE_MOST >> 20);
        else if (!feof(f) && (!n || line[n - 1] != '\n'))
            tt_fail(ctx, TT_EFORMAT, "%s, line %" PRId64 ": longer than %d "
                    "bytes, or with a NUL", path, number, LINE - 2);
        else
            manifest_read_line(ctx, l, path, number, line);
    }
    if (ferror(f)) tt_fail(ctx, TT_EIO, "cannot read %s: %s", path,
                           strerror(errno));
    fclose(f);
    if (!ctx->status) refuse_twice(ctx, l, path);
    return ctx->status;
}

/* ---- writing ------------------------------------------------------------- */

static int by_case(const void *a, const void *b)
{
    const tt_manifest_row *x = a, *y = b;
    int c = strcmp(x->cls, y->cls);
    if (!c) c = strcmp(x->name, y->name);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

tt_status tt_manifest_write(tt_ctx *ctx, tt_manifest *l, const char *path,
                            const char *comment)
{
    TT_TRY(ctx->status);
    if (l->n) qsort(l->row, (size_t)l->n, sizeof *l->row, by_case);
    tt_out o;
    TT_TRY(tt_out_open(ctx, &o, path));
    fputs(comment, o.file);
    for (int64_t i = 0; i < l->n; i++)
        fprintf(o.file, "%s %s %s %s\n", l->row[i].cls, l->row[i].name,
                l->row[i].tensor, l->row[i].sha);
    return tt_out_finish(ctx, &o);
}
