/* walk.c: see walk.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/exact/walk.h"

#ifndef TT_REAL_DOUBLE

#include <float.h>

#include "core/parallel.h"

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
            else if (bias && at.i0 + i < a->T)
                *v += bias[at.j0 + j - at.i0 - i];
        }
}

/* Queries [i0, i1) of head h: at most WALK_GROUP panels. */
static void walk_group(const exact_walk *w, float *memory, int64_t h,
                       int64_t i0, int64_t i1)
{
    const tt_attention_args *a = w->a;
    const int64_t nr = w->nr, panels = (i1 - i0 + nr - 1) / nr;
    exact_place at = {.h = h};
    for (at.g = 0; at.g < panels; at.g++) {
        at.i0 = i0 + at.g * nr;
        w->queries(w, memory, at, exact_least(i1 - at.i0, nr));
    }
    for (at.j0 = 0; at.j0 < a->N; at.j0 += w->block) {
        at.n = exact_least(a->N - at.j0, w->block);
        w->keys(w, memory, at);
        for (at.g = 0; at.g < panels; at.g++) {
            at.i0 = i0 + at.g * nr;
            w->panel(w, memory, at);
        }
    }
    for (int64_t t = i0; t < i1; t++)
        w->give(w, memory, (t - i0) / nr, (t - i0) % nr,
                a->o + (t * a->H + h) * a->D);
}

exact_cut exact_walk_cut(const tt_ctx *ctx, const exact_walk *w)
{
    const int64_t T = w->a->T, panels = (T + w->nr - 1) / w->nr;
    /* as many groups as keep all threads busy to the end */
    const int64_t most = exact_round_up((panels + WALK_GROUP - 1) / WALK_GROUP,
                                        ctx->nthreads);
    exact_cut c = {.panels = (panels + most - 1) / most};
    c.size = c.panels * w->nr;
    c.groups = (T + c.size - 1) / c.size;
    c.threads = exact_least(ctx->nthreads, w->a->H * c.groups);
    return c;
}

void exact_walk_all(tt_ctx *ctx, const exact_walk *w)
{
    const tt_attention_args *a = w->a;
    const exact_cut cut = exact_walk_cut(ctx, w);
    const int64_t groups = cut.groups, size = cut.size;
    int64_t per = exact_round_up(w->floats, 16);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *memory = tt_scratch(ctx, per * ctx->nthreads);
    if (memory) {
        TT_PARALLEL_FOR_DYNAMIC(ctx, a->H * a->T * a->N * a->D / 16)
        for (int64_t u = 0; u < a->H * groups; u++) {
            int64_t i0 = u % groups * size;
            walk_group(w, memory + per * tt_thread_id(), u / groups, i0,
                       exact_least(a->T, i0 + size));
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_walk;
#endif
