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

void exact_give(const exact_walk *w, const tt_kernels *kn, float *acc,
                const float *l, exact_place at, int64_t here)
{
    const int64_t D = w->a->D, width = w->a->H * D;
    kn->divide(acc, l, D);
    kn->turn(w->a->o + at.i0 * width + at.h * D, width, acc, w->nr, here, D,
             NULL, false);
}

int64_t exact_walk_laid(const exact_walk *w)
{
    const int64_t rest = w->a->N % w->block;
    return w->a->N / w->block * w->room(w, w->block) + w->room(w, rest);
}

/* The block that begins with key j0. */
static float *block_at(const exact_walk *w, float *head, int64_t j0)
{
    return head + j0 / w->block * w->room(w, w->block);
}

/* Queries [i0, i1) of head h: one group of panels. */
static void walk_group(const exact_walk *w, float *memory, float *laid,
                       int64_t h, int64_t i0, int64_t i1)
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
        for (at.g = 0; at.g < panels; at.g++) {
            at.i0 = i0 + at.g * nr;
            w->panel(w, memory, block_at(w, laid, at.j0), at);
        }
    }
    for (at.g = 0; at.g < panels; at.g++) {
        at.i0 = i0 + at.g * nr;
        w->give(w, memory, at, exact_least(i1 - at.i0, nr));
    }
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

exact_cut exact_walk_cut(const tt_ctx *ctx, const exact_walk *w)
{
    const int64_t T = w->a->T > 0 ? w->a->T : 1, panels = exact_parts(T, w->nr);
    /* as many groups as keep all threads busy to the end */
    const int64_t most = exact_round_up(exact_parts(panels, w->tuned->group),
                                        ctx->nthreads);
    exact_cut c = {.all = panels, .panels = exact_parts(panels, most)};
    c.groups = exact_parts(panels, c.panels);
    /* all at once where little is to be laid out */
    c.heads = w->a->good > 0 ? w->a->H
                             : heads_of(w->a->H, c.groups, ctx->nthreads,
                                        w->tuned->head_groups);
    c.threads = exact_least(ctx->nthreads, c.heads * c.groups);
    c.laid = w->a->laid ? 0 : c.heads * exact_walk_laid(w);
    return c;
}

/* Heads [h0, h0 + heads). */
static void walk_heads(tt_ctx *ctx, const exact_walk *w, exact_cut cut,
                       float *memory, float *laid, int64_t h0, int64_t heads)
{
    const tt_attention_args *a = w->a;
    const int64_t good = exact_parts(a->good, w->block);
    const int64_t blocks = exact_parts(a->N, w->block) - good;
    const int64_t per = exact_round_up(w->floats, 16);
    const int64_t room = exact_walk_laid(w);
    TT_PARALLEL_FOR_WORK(ctx, heads * (a->N - a->good) * a->D)
    for (int64_t u = 0; u < heads * blocks; u++) {
        const int64_t h = u / blocks, j0 = (good + u % blocks) * w->block;
        const exact_place at = {.h = h0 + h, .j0 = j0,
                                .n = exact_least(a->N - j0, w->block)};
        w->keys(w, block_at(w, laid + h * room, j0), at);
    }
    TT_PARALLEL_FOR_DYNAMIC(ctx, heads * a->T * a->N * a->D / 16)
    for (int64_t u = 0; u < heads * cut.groups; u++) {
        const int64_t h = u / cut.groups, g = u % cut.groups;
        const int64_t i0 = g * cut.all / cut.groups * w->nr;
        const int64_t i1 = (g + 1) * cut.all / cut.groups * w->nr;
        walk_group(w, memory + per * tt_thread_id(), laid + h * room, h0 + h,
                   i0, exact_least(a->T, i1));
    }
}

void exact_walk_all(tt_ctx *ctx, const exact_walk *w)
{
    float *const stays = w->a->laid;
    if ((w->a->T <= 0 && !stays) || w->a->H <= 0) return;
    const exact_cut cut = exact_walk_cut(ctx, w);
    const int64_t H = w->a->H, per = exact_round_up(w->floats, 16);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const int64_t room = exact_round_up(cut.laid, 16);
    float *laid = tt_scratch(ctx, room + per * ctx->nthreads);
    for (int64_t h = 0; laid && h < H; h += cut.heads)
        walk_heads(ctx, w, cut, laid + room,
                   stays ? stays + h * exact_walk_laid(w) : laid, h,
                   exact_least(H - h, cut.heads));
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_walk;
#endif
