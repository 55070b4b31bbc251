/* blank.c: see blank.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   The file is a private mapping of nothing: reading it finds the
 *         system's page of zeros everywhere. Tensors follow one another in it,
 *         and begin again at its start where it ends. */
#include "io/blank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "io/file.h"

#if !defined(MAP_ANONYMOUS) && defined(MAP_ANON)
#define MAP_ANONYMOUS MAP_ANON
#endif
#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

enum { PAGE = 4096 };

weight *blank_add(tt_weights *w, const char *name, int rank,
                  const int64_t *dim)
{
    int64_t n;
    const char *own = tt_strdup(w->ctx, &w->arena, name);
    if (!own) return NULL;
    if (w->count == w->capacity
        || !tt_checked_size(&n, dim, rank, tt_dtype_size(w->blank))
        || n > w->file->map.size) {
        tt_fail(w->ctx, TT_ENOMEM, "%s: too many weights, or too large: %s",
                w->path, name);
        return NULL;
    }
    if (w->next + n > w->file->map.size) w->next = 0;
    weight *x = &w->item[w->count];
    x->name = x->stored = own;
    x->t = tt_tensor_make((void *)(uintptr_t)(w->file->map.data + w->next),
                          w->blank, rank, dim);
    w->next += (n + PAGE - 1) / PAGE * PAGE;
    int64_t at = w->count++;
    for (; at > 0 && strcmp(w->sorted[at - 1]->name, own) > 0; at--)
        w->sorted[at] = w->sorted[at - 1];
    w->sorted[at] = x;
    return x;
}

static tt_status map_nothing(tt_weights *w, int64_t bytes)
{
    io_map *m = &w->file->map;
    void *p = mmap(NULL, (size_t)bytes, PROT_READ,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return tt_fail(w->ctx, TT_ENOMEM, "%s: no addresses for %.4g MB of "
                       "weights", w->path, 1e-6 * (double)bytes);
#ifdef MADV_HUGEPAGE
    (void)madvise(p, (size_t)bytes, MADV_HUGEPAGE); /* one of zeros, too */
#endif
    m->base = p;
    m->data = p;
    m->size = bytes;
    return TT_OK;
}

static void add_all(tt_weights *w, const blank_size *size, int n)
{
    char name[128];
    for (int i = 0; i < n; i++)
        for (int k = 0; k < size[i].repeat || k == 0; k++) {
            const char *hole = strstr(size[i].name, "%d");
            if (hole)
                snprintf(name, sizeof name, "%.*s%d%s",
                         (int)(hole - size[i].name), size[i].name, k,
                         hole + 2);
            else
                snprintf(name, sizeof name, "%s", size[i].name);
            blank_add(w, name, size[i].rank, size[i].dim);
        }
}

static tt_status make(tt_weights *w, const char *path, int64_t bytes)
{
    enum { CAPACITY = 2048 };
    tt_ctx *ctx = w->ctx;
    w->path = tt_strdup(ctx, &w->arena, path);
    w->origin = tt_strdup(ctx, &w->arena, "sizes alone");
    w->item = tt_alloc0(ctx, &w->arena, CAPACITY, sizeof *w->item, "weights");
    w->sorted = tt_alloc0(ctx, &w->arena, CAPACITY, sizeof *w->sorted,
                          "weights");
    w->file = calloc(1, sizeof *w->file);
    if (!w->file) return tt_fail(ctx, TT_ENOMEM, "no memory for %s", path);
    TT_TRY(ctx->status);
    w->capacity = CAPACITY;
    w->layout = "Wan names";
    w->file->path = w->path;
    w->file->format = "no file";
    return map_nothing(w, bytes);
}

tt_status weights_blank(tt_ctx *ctx, tt_weights **out, const char *path,
                        tt_dtype dtype, int64_t bytes, const blank_size *size,
                        int n)
{
    *out = NULL;
    if (ctx->status) return ctx->status;
    tt_weights *w = calloc(1, sizeof *w);
    if (!w) return tt_fail(ctx, TT_ENOMEM, "no memory for %s", path);
    w->ctx = ctx;
    w->blank = dtype;
    w->shapes_alone = true;
    if (!make(w, path, bytes)) add_all(w, size, n);
    if (ctx->status) tt_weights_close(w);
    else *out = w;
    return ctx->status;
}
