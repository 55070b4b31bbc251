/* bind.c: weights taken by name and shape, with one report at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   `taken` has one flag per tensor of the weights; bind->first collects
 *         the first few problems in plain words. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "io/blank.h"
#include "io/bytes.h"
#include "io/guess.h"
#include "core/device.h"

#define ENOUGH 5 /* problems named one by one */

void tt_bind_begin(tt_bind *b, tt_ctx *ctx, tt_weights *w, tt_arena *arena,
                   const char *what)
{
    memset(b, 0, sizeof *b);
    b->ctx = ctx;
    b->w = w;
    b->arena = arena;
    b->what = what;
    const int64_t n = w && w->capacity ? w->capacity : tt_weights_count(w);
    b->taken = tt_alloc0(ctx, arena, n, 1, "bind flags");
}

TT_PRINTF(2, 3)
static void note(tt_bind *b, const char *fmt, ...)
{
    size_t at = strlen(b->first), left = sizeof b->first - at;
    va_list va;
    if (b->missing + b->misshapen > ENOUGH || left < 8) return;
    va_start(va, fmt);
    if (at > 0) {
        memcpy(b->first + at, "; ", 3);
        at += 2;
        left -= 2;
    }
    vsnprintf(b->first + at, left, fmt, va);
    va_end(va);
}

static bool bind_same_shape(const tt_tensor *t, int rank, const int64_t *dim)
{
    if (t->rank != rank) return false;
    for (int i = 0; i < rank; i++)
        if (t->dim[i] != dim[i]) return false;
    return true;
}

static const tt_tensor *bind_take(tt_bind *b, const char *name, int rank,
                                  const int64_t *dim)
{
    char want[100], got[100];
    if (b->ctx->status || !b->taken) return NULL;
    weight *x = weights_item(b->w, name);
    if (!x && b->w->capacity) x = blank_add(b->w, name, rank, dim);
    if (!x) {
        b->missing++;
        note(b, "%s is missing", name);
        return NULL;
    }
    b->taken[x - b->w->item] = 1;
    if (!bind_same_shape(&x->t, rank, dim)) {
        b->misshapen++;
        note(b, "%s is %s, expected %s", name,
             tt_shape_string(got, sizeof got, x->t.rank, x->t.dim),
             tt_shape_string(want, sizeof want, rank, dim));
        return NULL;
    }
    if (!tt_tensor_is_real(&x->t)) {
        b->misshapen++;
        note(b, "%s has type %s, expected a floating-point type", name,
             tt_dtype_name(x->t.dtype));
        return NULL;
    }
    const tt_tensor *t = weights_pack(b->w, x);
    if (t) b->bound++;
    return t;
}

tt_tensor tt_bind_tensor(tt_bind *b, const char *name, int rank,
                         const int64_t *dim)
{
    const tt_tensor *t = bind_take(b, name, rank, dim);
    return t ? *t : (tt_tensor){0};
}

tt_real *tt_bind_real(tt_bind *b, const char *name, int rank,
                      const int64_t *dim)
{
    const tt_tensor *t = bind_take(b, name, rank, dim);
    const int64_t n = t ? tt_tensor_count(t) : 0;
    const tt_arena_mark m = tt_arena_here(&b->ctx->scratch);
    tt_real *x = t ? tt_values_in(b->ctx, b->arena, n, "a parameter") : NULL;
    tt_host *v = x ? tt_map_write(b->ctx, x, n) : NULL;
    if (v) tt_widen_at(v, t, 0, n);
    for (int64_t i = 0; v && i < n; i++) {
        if (v[i] - v[i] == 0) continue; /* finite */
        b->misshapen++;
        note(b, "%s holds a value that is not a finite number", name);
        x = NULL;
        break;
    }
    if (x) tt_put(b->ctx, x, v, n);
    tt_arena_reset(&b->ctx->scratch, m);
    return x;
}

/* 0: counts as unexpected; 1: ignored by prefix; 2: ignored because `ignore`
 * holds "", which matches everything. */
static int ignored(const char *name, const char *const *ignore)
{
    int all = 0;
    for (; ignore && *ignore; ignore++) {
        if (!**ignore) all = 2;
        else if (!strncmp(name, *ignore, strlen(*ignore))) return 1;
    }
    return all;
}

/* Count tensors no one asked for. */
static int64_t count_rest(tt_bind *b, const char *const *ignore, char *list,
                          size_t left, bool *harmless)
{
    int64_t n = 0;
    char show[IO_SHOW];
    for (int64_t i = 0; i < b->w->count; i++) {
        const char *name = b->w->item[i].name;
        int how = b->taken[i] ? 1 : ignored(name, ignore);
        if (how == 1) continue;
        *harmless = how == 2;
        size_t at = strlen(list);
        if (n++ < 3)
            snprintf(list + at, left - at, "%s%s", at ? ", " : "",
                     io_show(show, name, strlen(name)));
    }
    return n;
}

tt_status tt_bind_end(tt_bind *b, const char *const *ignore)
{
    char list[256] = "";
    bool harmless = false;
    if (b->ctx->status) return b->ctx->status;
    int64_t extra = count_rest(b, ignore, list, sizeof list, &harmless);
    if (extra > 0 && harmless) {
        tt_warn(b->ctx, "%s: %lld tensors are not used by the %s: %s%s",
                b->w->path, (long long)extra, b->what, list,
                extra > 3 ? ", ..." : "");
        extra = 0;
    }
    if (b->missing + b->misshapen == 0 && extra == 0) return TT_OK;
    char buf[300];
    const char *guess = guess_model(buf, sizeof buf, b->w->file);
    return tt_fail(b->ctx, TT_ESHAPE,
                   "%s (%s) does not fit the %s: %d missing, %d wrong, %lld "
                   "unexpected tensors: %s%s%s%s%s%s", b->w->path, b->w->origin,
                   b->what, b->missing, b->misshapen, (long long)extra,
                   b->first, extra > 0 && b->first[0] ? "; " : "",
                   extra > 0 ? "unexpected: " : "", extra > 0 ? list : "",
                   guess ? "; this looks like " : "", guess ? guess : "");
}
