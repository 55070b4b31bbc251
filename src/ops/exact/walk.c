/* walk.c: see walk.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/walk.h"

#ifndef TT_REAL_DOUBLE

#include <float.h>

#include "core/parallel.h"
#include "ops/exact/units.h"
#include "ops/gather.h"

void exact_add_bias(const exact_walk *w, exact_place at, float *s)
{
    const tt_attention_args *a = w->a;
    const float *bias = a->rel_bias;
    if (bias) bias += at.h * (2 * a->N - 1) + a->N - 1;
    for (int64_t j = 0; j < at.n; j++)
        for (int64_t i = 0; i < w->nr; i++) {
            float *v = &s[j * w->nr + i];
            *v *= a->scale;
            if (a->key_mask && !a->key_mask[at.j0 + j])
                *v += -FLT_MAX;
            else if (bias && i < at.live)
                *v += bias[at.j0 + j - at.i0 - i];
        }
}

void exact_give(const exact_walk *w, const tt_kernels *kn, float *acc,
                const float *l, exact_place at)
{
    const int64_t D = w->a->D, width = w->a->H * D;
    kn->divide(acc, l, D);
    kn->turn(w->a->o + at.i0 * width + at.h * D, width, acc, w->nr, at.live,
             D, NULL, false);
}

int64_t exact_walk_packed(const exact_walk *w)
{
    const int64_t rest = w->a->N % w->block;
    return w->a->N / w->block * w->packed_floats(w, w->block)
           + w->packed_floats(w, rest);
}

/* The block that begins with key j0. */
static float *block_at(const exact_walk *w, float *head, int64_t j0)
{
    return head + j0 / w->block * w->packed_floats(w, w->block);
}

/* Panel g of the queries [i0, i1) of head h. */
static exact_place panel_at(const exact_walk *w, int64_t h, int64_t i0,
                            int64_t i1, int64_t g)
{
    const int64_t first = i0 + g * w->nr;
    return (exact_place){.h = h, .g = g, .i0 = first,
                         .live = exact_least(i1 - first, w->nr)};
}

/* Queries [i0, i1) of head h: one group of panels. */
static void walk_group(const exact_walk *w, float *memory, float *packed,
                       int64_t h, int64_t i0, int64_t i1)
{
    const int64_t panels = exact_parts(i1 - i0, w->nr);
    for (int64_t g = 0; g < panels; g++)
        w->queries(w, memory, panel_at(w, h, i0, i1, g));
    for (int64_t j0 = 0; j0 < w->a->N; j0 += w->block)
        for (int64_t g = 0; g < panels; g++) {
            exact_place at = panel_at(w, h, i0, i1, g);
            at.j0 = j0;
            at.n = exact_least(w->a->N - j0, w->block);
            w->panel(w, memory, block_at(w, packed, j0), at);
        }
    for (int64_t g = 0; g < panels; g++)
        w->give(w, memory, panel_at(w, h, i0, i1, g));
}

/* How many heads to take at a time: so many that each thread has a few groups,
 * and no more than are needed for every thread to have work as long as with all
 * heads at once. */
static int64_t heads_of(int64_t H, int64_t groups, int64_t threads,
                        int64_t each)
{
    int64_t h = exact_least(H, exact_parts(each * threads, groups));
    const int64_t turns = exact_parts(H * groups, threads);
    while (h < H && H / h * exact_parts(h * groups, threads)
                    + exact_parts(H % h * groups, threads) > turns)
        h++;
    return h;
}

/* What the groups of so many heads are worth, for parallel.h. */
static int64_t group_work(const tt_attention_args *a, int64_t heads)
{
    return heads * a->T * a->N * a->D / 16;
}

exact_cut exact_walk_cut(const tt_ctx *ctx, const exact_walk *w)
{
    const int64_t T = w->a->T > 0 ? w->a->T : 1, panels = exact_parts(T, w->nr);
    /* as many groups as keep all threads busy to the end */
    const int64_t most = exact_round_up(exact_parts(panels, w->tuned->group),
                                        ctx->nthreads);
    exact_cut c = {.all = panels, .panels = exact_parts(panels, most)};
    /* all at once where that takes no memory of its own */
    c.heads = w->a->packed ? w->a->H
                         : heads_of(w->a->H, exact_parts(panels, c.panels),
                                    ctx->nthreads, w->tuned->head_groups);
    c.threads = exact_least(ctx->nthreads, c.heads * panels);
    c.ahead = tt_shares(ctx, group_work(w->a, c.heads));
    const int64_t held = exact_least(c.ahead ? 2 * c.heads : c.heads, w->a->H);
    c.packed = w->a->packed ? 0 : held * exact_walk_packed(w);
    return c;
}

/* Heads that are taken together. */
typedef struct batch {
    int64_t h0, heads;       /* [h0, h0 + heads)                              */
    float *packed;           /* [heads, exact_walk_packed()]                */
} batch;

/* Batch i; no heads after the last. The memory `packed` is that of all heads,
 * or of those that are packed at a time. */
static batch batch_of(const exact_walk *w, exact_cut cut, float *packed,
                      int64_t i)
{
    const int64_t h0 = i * cut.heads;
    const int64_t at = w->a->packed ? h0 : cut.ahead ? i % 2 * cut.heads : 0;
    return (batch){.h0 = h0, .heads = exact_least(w->a->H - h0, cut.heads),
                   .packed = packed + at * exact_walk_packed(w)};
}

/* Blocks of keys of a head that are to be packed. */
static int64_t new_blocks(const exact_walk *w)
{
    return exact_parts(w->a->N, w->block)
           - exact_parts(w->a->n_packed, w->block);
}

/* Floats of a thread: a block of keys and values that are stored as bf16
 * numbers takes the place of its sums, before these begin. */
static int64_t own_floats(const exact_walk *w)
{
    const int64_t wide = w->a->bf16 ? 2 * w->block * w->a->D : 0;
    return exact_round_up(wide > w->floats ? wide : w->floats, 16);
}

/* Let the place say where the keys and values of its block are. */
static void locate_keys(const exact_walk *w, exact_place *at, float *memory)
{
    const tt_attention_args *a = w->a;
    const int64_t from = (at->j0 - a->n_packed) * a->kv_stride + at->h * a->D;
    float *k = memory, *v = memory + at->n * a->D;
    if (!a->bf16) {
        at->k = a->k + from, at->v = a->v + from, at->stride = a->kv_stride;
        return;
    }
    for (int64_t j = 0; j < at->n; j++) {
        take_numbers(k + j * a->D, a->k, from + j * a->kv_stride, a->D, true);
        take_numbers(v + j * a->D, a->v, from + j * a->kv_stride, a->D, true);
    }
    at->k = k, at->v = v, at->stride = a->D;
}

static void walk_lay(const exact_walk *w, float *memory, const batch *b,
                     int64_t u)
{
    const int64_t blocks = new_blocks(w), h = u / blocks;
    const int64_t j0 = (exact_parts(w->a->n_packed, w->block) + u % blocks)
                       * w->block;
    exact_place at = {.h = b->h0 + h, .j0 = j0,
                      .n = exact_least(w->a->N - j0, w->block)};
    locate_keys(w, &at, memory + own_floats(w) * tt_thread_id());
    w->keys(w, block_at(w, b->packed + h * exact_walk_packed(w), j0), at);
}

static void lay_batch(tt_ctx *ctx, const exact_walk *w, float *memory,
                      const batch *b)
{
    const tt_attention_args *a = w->a;
    TT_PARALLEL_FOR_DYNAMIC(ctx, b->heads * (a->N - a->n_packed) * a->D)
    for (int64_t u = 0; u < b->heads * new_blocks(w); u++)
        walk_lay(w, memory, b, u);
}

/* The groups of a batch, and after them what is to be packed of the next
 * one, if any: so no one waits for the last group. */
static void one_batch(tt_ctx *ctx, const exact_walk *w, exact_cut cut,
                      float *memory, const batch *b, const batch *next)
{
    const tt_attention_args *a = w->a;
    const int64_t per = own_floats(w);
    const int64_t after = next ? next->heads * new_blocks(w) : 0;
    const exact_units groups = {
        .rows = b->heads, .cols = cut.all, .most = cut.panels, .least = 1,
        .threads = next ? 0 : ctx->nthreads};
    const int64_t units = exact_units_count(&groups);
    TT_PARALLEL_WORK(ctx, group_work(a, b->heads))
    {
        TT_SHARED
        for (int64_t i = 0; i < units; i++) {
            const exact_unit u = exact_unit_at(&groups, i);
            walk_group(w, memory + per * tt_thread_id(),
                       b->packed + u.row * exact_walk_packed(w), b->h0 + u.row,
                       u.from * w->nr,
                       exact_least(a->T, (u.from + u.n) * w->nr));
        }
        TT_SHARED
        for (int64_t u = 0; u < after; u++) walk_lay(w, memory, next, u);
    }
}

static void all_batches(tt_ctx *ctx, const exact_walk *w, exact_cut cut,
                        float *memory, float *packed)
{
    batch b = batch_of(w, cut, packed, 0);
    for (int64_t i = 1; b.heads > 0; i++) {
        const batch next = batch_of(w, cut, packed, i);
        if (i == 1 || !cut.ahead) lay_batch(ctx, w, memory, &b);
        one_batch(ctx, w, cut, memory, &b,
                  cut.ahead && next.heads > 0 ? &next : NULL);
        b = next;
    }
}

void exact_walk_all(tt_ctx *ctx, const exact_walk *w)
{
    float *const stays = w->a->packed;
    if ((w->a->T <= 0 && !stays) || w->a->H <= 0) return;
    const exact_cut cut = exact_walk_cut(ctx, w);
    const int64_t per = own_floats(w);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const int64_t shared = exact_round_up(cut.packed, 16);
    float *own = tt_scratch(ctx, shared + per * ctx->nthreads);
    if (own) all_batches(ctx, w, cut, own + shared, stays ? stays : own);
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_walk;
#endif
