/* candidate.c: see candidate.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/operators/candidate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PAGE = 4096 };

/* A NaN and its neighbour: what is left untouched is not an older right
 * result, and a sum on top of it is wrong. The second call finds other ones. */
static const uint8_t garbage[2] = {0xff, 0xc3};

typedef struct guarded {
    uint8_t *raw;
    int64_t pad, bytes;  /* canaries on each side; the output between them    */
} guarded;

static guarded guard(tt_ctx *ctx, const candidate_call *c, const op_call *q)
{
    int64_t dim[TT_MAX_RANK];
    const int64_t n = call_count(q), bytes = (int64_t)call_out_bytes(q);
    call_shape(q, dim);
    const int64_t row = dim[0] ? bytes / dim[0] : 0;
    const int64_t odd = c->odd && n ? bytes / n : 0;
    guarded g = {.pad = (row + PAGE) / 64 * 64 + odd, .bytes = bytes};
    g.raw = tt_alloc(ctx, &ctx->scratch, g.bytes + 2 * g.pad, 1,
                     "guarded output");
    return g;
}

static bool intact(const guarded *g, uint8_t canary)
{
    const uint8_t *behind = g->raw + g->pad + g->bytes;
    for (int64_t i = 0; i < g->pad; i++)
        if (g->raw[i] != canary || behind[i] != canary) return false;
    return true;
}

/* One call into g; says in c->why what went wrong. False: ctx has failed. */
static bool once(tt_ctx *ctx, candidate_call *c, const op_call *q, guarded *g,
                 uint8_t canary)
{
    op_spans in;
    if (!g->raw) return false;
    memset(g->raw, canary, (size_t)(g->bytes + 2 * g->pad));
    call_inputs(q, &in);
    const uint64_t before = spans_digest(&in);
    call_run(ctx, c->ops, q, g->raw + g->pad);
    if (ctx->status == TT_EINTR || ctx->status == TT_ENOMEM) return false;
    if (ctx->status) {
        snprintf(c->why, sizeof c->why, "gave up: %.170s", tt_message(ctx));
        tt_clear(ctx);
    } else if (!intact(g, canary)) {
        snprintf(c->why, sizeof c->why, "wrote outside its output");
    } else if (spans_digest(&in) != before) {
        snprintf(c->why, sizeof c->why, "changed its inputs");
    }
    return true;
}

/* The largest distance. */
static double farthest(const double *x, const double *ours, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, value_distance(x[i], ours[i]));
    return most;
}

bool candidate_run(tt_ctx *ctx, candidate_call *c, const op_call *q,
                   const double *ours)
{
    c->why[0] = '\0';
    c->unsteady = false;
    guarded g = guard(ctx, c, q);
    if (!once(ctx, c, q, &g, garbage[0])) return false;
    c->out = g.raw + g.pad;
    c->got = call_widen(ctx, q, c->out);
    if (!c->twice || *c->why || ctx->status) return !ctx->status;
    guarded again = guard(ctx, c, q);
    const int before = ctx->nthreads;
    if (c->threads) ctx->nthreads = c->threads;
    const bool made = once(ctx, c, q, &again, garbage[1]);
    ctx->nthreads = before;
    if (!made) return false;
    const void *second = again.raw + again.pad;
    if (*c->why || !memcmp(c->out, second, (size_t)g.bytes))
        return !ctx->status;
    double *x = call_widen(ctx, q, second);
    if (ctx->status) return false;
    const int64_t n = call_count(q);
    /* two NaN of other bits are the same answer */
    c->unsteady = farthest(x, c->got, n) > 0;
    if (farthest(x, ours, n) > farthest(c->got, ours, n)) {
        c->out = again.raw + again.pad;
        c->got = x;
    }
    return true;
}

void candidate_verdict(tt_ctx *ctx, const candidate_call *c, const op_call *q,
                       const tt_arith *arith, const double *got,
                       const double *want, tt_verdict *v, bool hint)
{
    if (*c->why) {
        v->outcome = TT_MISMATCH;
        snprintf(v->hint, sizeof v->hint, "%s", c->why);
        return;
    }
    if (v->outcome != TT_MISMATCH || !hint) return;
    hint_call call = {ctx, q, c->ops, arith->cls, got, v->hint, sizeof v->hint};
    if (!arith->bits || !hint_classes(&call))
        hint_find(ctx, q, arith, got, want, v);
    const size_t used = strlen(v->hint);
    if (c->unsteady)
        snprintf(v->hint + used, sizeof v->hint - used, "%sanother result at a "
                 "second call with the same inputs", used ? "; " : "");
}
