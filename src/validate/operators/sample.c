/* sample.c: see sample.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A float64 oracle of a layer of a real model takes minutes. Every value of the
 * candidate is still looked at: our own result of the whole call is there, and
 * the rows that differ most from it are among those that are checked, so a
 * mistake in a single row is found wherever it is. */
#include "validate/operators/sample.h"

#include <math.h>
#include <string.h>

#include "validate/operators/opcalls.h"

/* Rows of a part can be gathered; else they are computed one at a time. */
static bool gathers(const op_call *q)
{
    return q->kind == OP_LINEAR
        || (q->kind == OP_ATTENTION && !q->attn.rel_bias);
}

/* ---- which ones ---------------------------------------------------------- */

/* How far a row of theirs is from ours; by_size: next to what is in the row. */
static double suspicion(const double *got, const double *ours, int64_t n,
                        bool by_size)
{
    double most = 0, square = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, value_distance(got[i], ours[i]));
    if (!by_size || most == 0) return most;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(ours[i])) square += ours[i] * ours[i];
    return most / sqrt(square / (double)n + 1e-300);
}

/* Two rows that are not chosen yet. */
static void choose_worst(const sample *s, bool *chosen, const double *got,
                         const double *ours, bool by_size)
{
    for (int k = 0; k < 2; k++) {
        int64_t at = -1;
        double most = 0;
        for (int64_t r = 0; r < s->all; r++) {
            const double x = chosen[r] ? 0
                           : suspicion(got + r * s->width, ours + r * s->width,
                                       s->width, by_size);
            if (x > most) most = x, at = r;
        }
        if (at >= 0) chosen[at] = true;
    }
}

static void choose_spread(const sample *s, bool *chosen, int64_t n,
                          uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = s->all * i / n, to = s->all * (i + 1) / n;
        chosen[from + rng_below(&seed, to - from)] = true;
    }
}

void sample_take(tt_ctx *ctx, sample *s, const op_call *q, const double *got,
                 const double *ours, uint64_t seed)
{
    int64_t dim[TT_MAX_RANK];
    call_shape(q, dim);
    *s = (sample){.call = q, .part = *q, .rows = dim[0], .all = dim[0]};
    s->width = dim[0] ? call_count(q) / dim[0] : 0;
    const bool heavy = q->kind == OP_LINEAR || q->kind == OP_ATTENTION
                       || q->kind == OP_CONV;
    const int64_t cost = call_cost(q);
    if (!heavy || cost <= SAMPLE_WORK || s->all <= SAMPLE_LEAST) return;
    const int64_t fit = SAMPLE_WORK / (cost / s->all);
    const int64_t spread = fit > SAMPLE_LEAST ? fit - 6 : 2;
    bool *chosen = tt_alloc0(ctx, &ctx->scratch, s->all, sizeof *chosen,
                             "a sample");
    int64_t *row = tt_alloc(ctx, &ctx->scratch, s->all, sizeof *row,
                            "a sample");
    if (ctx->status) return;
    chosen[0] = chosen[s->all - 1] = true;
    choose_worst(s, chosen, got, ours, false);
    choose_worst(s, chosen, got, ours, true);
    choose_spread(s, chosen, spread < s->all ? spread : s->all, seed);
    s->rows = 0;
    for (int64_t r = 0; r < s->all; r++)
        if (chosen[r]) row[s->rows++] = r;
    s->row = row;
    sample_single(ctx, s, s->rows - 1);
}

/* ---- calls that give them ------------------------------------------------ */

/* x of [rows, width] rows that are `stride` apart. */
static const tt_real *sample_gather(tt_ctx *ctx, const sample *s,
                                    const tt_real *x, int64_t width,
                                    int64_t stride)
{
    tt_real *y = tt_scratch(ctx, s->rows * width);
    for (int64_t i = 0; y && i < s->rows; i++)
        memcpy(y + i * width, x + s->row[i] * stride,
               (size_t)width * sizeof *y);
    return y;
}

/* The bias of query `row` alone: entry j - row + N - 1 stands at j + N - 1. */
static const tt_real *shift_bias(tt_ctx *ctx, const tt_attention_args *a,
                                 int64_t row)
{
    const int64_t c = 2 * a->N - 1;
    tt_real *y = tt_scratch(ctx, a->H * c);
    for (int64_t h = 0; y && h < a->H; h++)
        for (int64_t i = 0; i < c; i++)
            y[h * c + i] = i >= row ? a->rel_bias[h * c + i - row] : 0;
    return y;
}

bool sample_single(tt_ctx *ctx, sample *s, int64_t i)
{
    const op_call *q = s->call;
    tt_attention_args *a = &s->part.attn;
    if (!s->row) return false;
    if (q->kind == OP_LINEAR) {
        s->part.n = s->rows;
        s->part.x = sample_gather(ctx, s, q->x, q->c, q->c);
        return false;
    }
    if (gathers(q)) {
        a->T = s->rows;
        a->q_stride = a->H * a->D;
        a->q = sample_gather(ctx, s, q->attn.q, a->H * a->D, q->attn.q_stride);
        return false;
    }
    if (q->kind == OP_ATTENTION) {
        a->T = 1;
        a->q = q->attn.q + s->row[i] * a->q_stride;
        a->rel_bias = shift_bias(ctx, &q->attn, s->row[i]);
    } else {
        s->part.conv.Ho = 1;
        s->part.conv.pad_top = q->conv.pad_top
                               - (int)s->row[i] * q->conv.stride;
    }
    return true;
}

const double *sample_cut(tt_ctx *ctx, const sample *s, const double *x)
{
    if (!s->row) return x;
    double *y = tt_alloc(ctx, &ctx->scratch, s->rows * s->width, sizeof *y,
                         "a sample");
    for (int64_t i = 0; y && i < s->rows; i++)
        memcpy(y + i * s->width, x + s->row[i] * s->width,
               (size_t)s->width * sizeof *y);
    return y;
}

void sample_compute(tt_ctx *ctx, const sample *s, const tt_arith *arith,
                    const double *want, const double *ours, double *out)
{
    sample one = *s;
    const bool whole = !s->row || gathers(s->call);
    for (int64_t i = 0; i < (whole ? 1 : s->rows) && !ctx->status; i++) {
        const int64_t at = i * s->width;
        const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
        if (!whole) sample_single(ctx, &one, i);
        if (want)
            call_emulate(ctx, &one.part, arith, want + at, ours + at, out + at);
        else
            call_wanted(ctx, &one.part, arith, out + at);
        tt_arena_reset(&ctx->scratch, mark);
    }
}

void sample_place(const sample *s, tt_verdict *v)
{
    const int64_t worst = v->m.worst, rows = v->dim[0];
    if (!s->row) return;
    v->m.worst = s->row[worst / s->width] * s->width + worst % s->width;
    v->dim[0] = s->all;
    verdict_place(v);
    v->dim[0] = rows;
    v->m.worst = worst;
}
