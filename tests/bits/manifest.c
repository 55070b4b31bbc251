/* manifest.c: reading and writing the table of stored digests.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bits/bits.h"

static const char comment[] =
    "# bits.txt: SHA-256 of every output of every reference case and of the\n"
    "# demo run, little-endian values in row-major order. `make check-bits`\n"
    "# compares a build with it; `build/check_bits --write` makes it anew, which\n"
    "# is right only when the definition of an operator (ops/golden) or a case\n"
    "# was changed on purpose.\n"
    "# class case tensor sha256\n";

static char *copy(tt_ctx *ctx, const char *s)
{
    char *c = malloc(strlen(s) + 1);
    if (!c) tt_fail(ctx, TT_ENOMEM, "out of memory for the digests");
    else strcpy(c, s);
    return c;
}

tt_status bits_add(tt_ctx *ctx, bits_list *l, const char *class,
                   const char *name, const char *tensor, const char *sha)
{
    if (l->n == l->room) {
        const int64_t room = l->room ? 2 * l->room : 1024;
        bits_row *row = realloc(l->row, (size_t)room * sizeof *row);
        if (!row)
            return tt_fail(ctx, TT_ENOMEM, "out of memory for the digests");
        l->row = row;
        l->room = room;
    }
    l->row[l->n] = (bits_row){copy(ctx, class), copy(ctx, name),
                              copy(ctx, tensor), copy(ctx, sha), l->n, false};
    l->n++;
    return ctx->status;
}

bits_row *bits_find(bits_list *l, const char *class, const char *name,
                    const char *tensor)
{
    for (int64_t i = 0; i < l->n; i++) {
        bits_row *r = &l->row[i];
        if (!strcmp(r->tensor, tensor) && !strcmp(r->name, name) &&
            !strcmp(r->class, class))
            return r;
    }
    return NULL;
}

void bits_free(bits_list *l)
{
    for (int64_t i = 0; i < l->n; i++) {
        free(l->row[i].class);
        free(l->row[i].name);
        free(l->row[i].tensor);
        free(l->row[i].sha);
    }
    free(l->row);
    *l = (bits_list){0};
}

tt_status bits_read(tt_ctx *ctx, bits_list *l, const char *path)
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
        else if (bits_find(l, class, name, tensor))
            tt_fail(ctx, TT_EFORMAT, "%s, line %d: %s %s %s is listed twice",
                    path, number, class, name, tensor);
        else
            bits_add(ctx, l, class, name, tensor, sha);
    }
    if (ferror(f)) tt_fail(ctx, TT_EIO, "cannot read %s", path);
    fclose(f);
    return ctx->status;
}

static int by_case(const void *a, const void *b)
{
    const bits_row *x = a, *y = b;
    int c = strcmp(x->class, y->class);
    if (!c) c = strcmp(x->name, y->name);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

tt_status bits_write(tt_ctx *ctx, bits_list *l, const char *path)
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
