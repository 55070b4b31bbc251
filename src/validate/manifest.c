/* manifest.c: tables of stored digests.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tether/validate.h"

static char *copy(tt_ctx *ctx, const char *s)
{
    char *c = malloc(strlen(s) + 1);
    if (!c) tt_fail(ctx, TT_ENOMEM, "out of memory for the digests");
    else strcpy(c, s);
    return c;
}

tt_status tt_manifest_add(tt_ctx *ctx, tt_manifest *l, const char *class,
                          const char *name, const char *tensor,
                          const char *sha)
{
    if (l->n == l->room) {
        const int64_t room = l->room ? 2 * l->room : 1024;
        tt_manifest_row *row = realloc(l->row, (size_t)room * sizeof *row);
        if (!row)
            return tt_fail(ctx, TT_ENOMEM, "out of memory for the digests");
        l->row = row;
        l->room = room;
    }
    l->row[l->n] = (tt_manifest_row){copy(ctx, class), copy(ctx, name),
                                     copy(ctx, tensor), copy(ctx, sha), l->n,
                                     false};
    l->n++;
    return ctx->status;
}

tt_manifest_row *tt_manifest_find(tt_manifest *l, const char *class,
                                  const char *name, const char *tensor)
{
    for (int64_t i = 0; i < l->n; i++) {
        tt_manifest_row *r = &l->row[i];
        if (!strcmp(r->tensor, tensor) && !strcmp(r->name, name) &&
            !strcmp(r->class, class))
            return r;
    }
    return NULL;
}

void tt_manifest_free(tt_manifest *l)
{
    for (int64_t i = 0; i < l->n; i++) {
        free(l->row[i].class);
        free(l->row[i].name);
        free(l->row[i].tensor);
        free(l->row[i].sha);
    }
    free(l->row);
    *l = (tt_manifest){0};
}

tt_status tt_manifest_read(tt_ctx *ctx, tt_manifest *l, const char *path)
{
    FILE *f = fopen(path, "r");
    char line[1024], class[64], name[256], tensor[512], sha[80], more;
    int number = 0;
    if (!f && errno == ENOENT) return TT_OK;
    if (!f)
        return tt_fail(ctx, TT_EIO, "cannot read %s: %s", path,
                       strerror(errno));
    while (!ctx->status && fgets(line, sizeof line, f)) {
        number++;
        if (line[0] == '#' || line[0] == '\n') continue;
        if (sscanf(line, "%63s %255s %511s %79s %c", class, name, tensor, sha,
                   &more) != 4 || strlen(sha) != 64)
            tt_fail(ctx, TT_EFORMAT, "%s, line %d: expected \"class case "
                    "tensor sha256\"", path, number);
        else if (tt_manifest_find(l, class, name, tensor))
            tt_fail(ctx, TT_EFORMAT, "%s, line %d: %s %s %s is listed twice",
                    path, number, class, name, tensor);
        else
            tt_manifest_add(ctx, l, class, name, tensor, sha);
    }
    if (ferror(f)) tt_fail(ctx, TT_EIO, "cannot read %s", path);
    fclose(f);
    return ctx->status;
}

static int by_case(const void *a, const void *b)
{
    const tt_manifest_row *x = a, *y = b;
    int c = strcmp(x->class, y->class);
    if (!c) c = strcmp(x->name, y->name);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

tt_status tt_manifest_write(tt_ctx *ctx, tt_manifest *l, const char *path,
                            const char *comment)
{
    if (l->n) qsort(l->row, (size_t)l->n, sizeof *l->row, by_case);
    FILE *f = fopen(path, "w");
    if (f) fputs(comment, f);
    for (int64_t i = 0; f && i < l->n; i++)
        fprintf(f, "%s %s %s %s\n", l->row[i].class, l->row[i].name,
                l->row[i].tensor, l->row[i].sha);
    const bool bad = !f || ferror(f);
    if ((f && fclose(f)) || bad)
        return tt_fail(ctx, TT_EIO, "cannot write %s: %s", path,
                       strerror(errno));
    return TT_OK;
}
