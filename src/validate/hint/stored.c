/* stored.c: weights, keys and values that are kept in fewer bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * All products of a chain have such weights, or all keys and values of the
 * cache, before they are rotated; so the links are changed together. */
#include "validate/hint/chain.h"

#include <math.h>
#include <stdio.h>

typedef struct storage_form {
    const char *name;
    tt_format format;
    int bits;                  /* of whole numbers; 1: `format`               */
    bool affine;               /* from the least to the largest value         */
} storage_form;

static const storage_form storage_forms[] = {
    {"f16", TT_FMT_F16, 1, false}, {"bf16", TT_FMT_BF16, 1, false},
    {"8 bits", TT_FMT_F32, 8, false}, {"8 bits from least to largest",
                                       TT_FMT_F32, 8, true},
    {"4 bits", TT_FMT_F32, 4, false}, {"4 bits from least to largest",
                                       TT_FMT_F32, 4, true}};
enum { FORMATS = sizeof storage_forms / sizeof *storage_forms };

/* In float, as a port does: what lies between two steps decides. */
static void store_group(tt_real *y, const tt_real *x, int64_t n,
                        const storage_form *f)
{
    float lo = INFINITY, hi = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        lo = fminf(lo, (float)x[i]);
        hi = fmaxf(hi, (float)x[i]);
    }
    const int steps = (1 << (f->affine ? f->bits : f->bits - 1)) - 1;
    const float from = f->affine ? lo : 0;
    const float step = (f->affine ? hi - lo : fmaxf(-lo, hi)) / (float)steps;
    for (int64_t i = 0; i < n; i++)
        y[i] = f->bits == 1 ? (tt_real)tt_format_round(f->format, (float)x[i])
               : step > 0 ? (tt_real)(from + rintf(((float)x[i] - from) / step)
                                             * step) : x[i];
}

/* x [n] as it is read back; every `group` of values has a scale of its own. */
static const tt_real *stored_as(tt_ctx *ctx, const tt_real *x, int64_t n,
                                int64_t group, const storage_form *f)
{
    tt_real *y = x ? tt_scratch(ctx, n) : NULL;
    for (int64_t i = 0; y && i < n; i += group)
        store_group(y + i, x + i, n - i < group ? n - i : group, f);
    return y;
}

enum { IN_WEIGHTS, IN_KV, IN_K, IN_V, PLACES, GROUPS = 4 };

/* The call with what is in `place` stored so; false: it has none. */
static bool store_call(tt_ctx *ctx, const chain *c, int i, int place, int group,
                       const storage_form *f, op_call *own, tt_tensor *w)
{
    const op_call *q = &c->link[i].q;
    const char *of = chain_rope_of(c, i);
    const int64_t N = q->attn.N, row = q->attn.H * q->attn.D;
    *own = *q;
    if (place == IN_WEIGHTS && q->kind == OP_LINEAR) {
        const int64_t size[GROUPS] = {q->w->dim[1], 64, 32,
                                      tt_tensor_count(q->w)};
        *w = *q->w;
        w->dtype = sizeof(tt_real) == 8 ? TT_F64 : TT_F32;
        w->scale = 0;
        w->data = (void *)(uintptr_t)stored_as(ctx, plain_weight(ctx, q->w),
                                               size[3], size[group], f);
        own->w = w;
        return true;
    }
    if (q->kind == OP_ROPE && of && *of == 'k'
        && (place == IN_KV || place == IN_K)) {
        const int64_t size[GROUPS] = {q->D, q->c, 32, q->n * q->c};
        own->x = stored_as(ctx, q->x, q->n * q->c, size[group], f);
        return true;
    }
    if (q->kind == OP_ATTENTION && (place == IN_KV || place == IN_V)
        && q->attn.kv_stride == row) {
        const int64_t size[GROUPS] = {q->attn.D, row, 32, N * row};
        own->attn.v = stored_as(ctx, q->attn.v, N * row, size[group], f);
        return true;
    }
    return false;
}

void hint_stored(hint *end, chain *c)
{
    static const char *const what[PLACES] = {
        "weights are", "K and V of the cache are", "K of the cache are",
        "V of the cache are"};
    static const char *const per[2][GROUPS] = {
        {"a row", "64 values", "32 values", "all"},
        {"a head", "a token", "32 values", "all"}};
    op_call own[LINKS_MOST];
    const op_call *links[LINKS_MOST];
    tt_tensor w[LINKS_MOST];
    for (int k = 0; k < PLACES * GROUPS * FORMATS && !hint_settled(end); k++) {
        const int place = k / FORMATS % PLACES, group = k / FORMATS / PLACES;
        const storage_form *f = &storage_forms[k % FORMATS];
        const tt_arena_mark mark = tt_arena_here(&end->ctx->scratch);
        bool any = false;
        if (f->bits == 1 && group) continue;
        for (int j = 0; j < c->n; j++) {
            const bool is = store_call(end->ctx, c, j, place, group, f, &own[j],
                                       &w[j]);
            links[j] = is ? &own[j] : NULL;
            any |= is;
        }
        if (any && !end->ctx->status && chain_end_of(c, links, end->trial))
            hint_try(end, end->trial, "%s stored in %s%s%s", what[place],
                     f->name, f->bits > 1 ? ", with a scale for " : "",
                     f->bits > 1 ? per[place != IN_WEIGHTS][group] : "");
        tt_arena_reset(&end->ctx->scratch, mark);
    }
}
