/* chain.c: see chain.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/chain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tether/mathfn.h"

/* Results that are not those of the run; NULL: as they were. */
typedef struct changes {
    char *out[LINKS_MOST];
} changes;

/* Put what changed of link k into `mine`, a copy of memory [was, was + n) whose
 * bytes were `old`. True when anything did. */
static bool patch(const chain_link *k, const char *changed, char *mine,
                  const char *old, const char *was, size_t n)
{
    const char *from = was > k->out_was ? was : k->out_was;
    const char *end = was + n < k->out_was + k->bytes ? was + n
                                                      : k->out_was + k->bytes;
    if (!changed || from >= end) return false;
    const size_t size = (size_t)(end - from);
    const size_t here = (size_t)(from - was), there = (size_t)(from
                                                               - k->out_was);
    if (memcmp(old + here, k->out + there, size)) return false;
    memcpy(mine + here, changed + there, size);
    return true;
}

static const void *moved(void *const *from, void *const *to, int n,
                         const void *p)
{
    for (int i = 0; i < n; i++)
        if (from[i] == p) return to[i];
    return p;
}

void chain_move(tt_ctx *ctx, tt_arena *mem, op_call *q, void *const *from,
                void *const *to, int n)
{
#define MOVE(member) q->member = moved(from, to, n, q->member);
    MOVE(x) MOVE(y) MOVE(a) MOVE(b) MOVE(pos) MOVE(mean) MOVE(gain)
    MOVE(target) MOVE(attn.q) MOVE(attn.k) MOVE(attn.v) MOVE(attn.rel_bias)
    MOVE(attn.key_mask) MOVE(conv.b)
    if (q->kind != OP_CONV) return;
    const tt_real **frame = tt_alloc(ctx, mem, q->conv.kt, sizeof *frame,
                                     "frames");
    for (int i = 0; frame && i < q->conv.kt; i++)
        frame[i] = moved(from, to, n, q->conv.frame[i]);
    if (frame) q->conv.frame = frame;
}

/* Link j again on what changed before it; NULL: nothing that it reads did. */
static char *again(chain *c, int j, const changes *now)
{
    chain_link *l = &c->link[j];
    tt_ctx *ctx = c->ctx;
    void *own[SPANS_MAX];
    bool any = false;
    for (int s = 0; s < l->was.n; s++) {
        own[s] = l->copy[s];
        if (l->copy[s] == l->was.at[s]) continue;    /* nobody's result */
        own[s] = tt_alloc(ctx, &ctx->scratch, (int64_t)l->was.size[s], 1,
                          "an operand");
        if (!own[s]) return NULL;
        memcpy(own[s], l->copy[s], l->was.size[s]);
        /* places and masks are no results, whatever their bytes are */
        const bool result = l->copy[s] != l->q.pos
                            && l->copy[s] != l->q.attn.key_mask;
        for (int k = 0; result && k < j; k++)
            any |= patch(&c->link[k], now->out[k], own[s], l->copy[s],
                         l->was.at[s], l->was.size[s]);
    }
    op_call q = l->q;
    if (!any) return NULL;
    chain_move(ctx, &ctx->scratch, &q, l->copy, own, l->was.n);
    char *out = tt_alloc(ctx, &ctx->scratch, (int64_t)l->bytes, 1, "a result");
    call_run(ctx, tt_ops_default(), &q, out);
    return ctx->status ? NULL : out;
}

/* A result of link i as it is stored. */
static char *narrowed(chain *c, int i, const double *x)
{
    tt_ctx *ctx = c->ctx;
    const chain_link *l = &c->link[i];
    const int64_t n = call_count(&l->q);
    char *out = tt_alloc(ctx, &ctx->scratch, (int64_t)l->bytes, 1, "a trial");
    for (int64_t k = 0; out && k < n; k++) {
        if (call_out_is_double(&l->q)) ((double *)(void *)out)[k] = x[k];
        else ((tt_real *)(void *)out)[k] = (tt_real)x[k];
    }
    return out;
}

/* The same mistake in the other calls of this kind. */
static void spread(chain *c, const void *fault, changes *now)
{
    tt_ctx *ctx = c->ctx;
    const op_kind kind = c->link[c->at].q.kind;
    for (int i = 0; i < c->n && !ctx->status; i++) {
        const op_call *q = &c->link[i].q;
        if (i == c->at || q->kind != kind) continue;
        double *x = tt_alloc(ctx, &ctx->scratch, call_count(q), sizeof *x,
                             "a trial");
        if (!x) return;
        plain_call(ctx, q, fault, x);
        now->out[i] = narrowed(c, i, x);
    }
}

bool chain_end(chain *c, const double *trial, const void *fault, double *out)
{
    tt_ctx *ctx = c->ctx;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    changes now = {{NULL}};
    bool any = false;
    now.out[c->at] = narrowed(c, c->at, trial);
    if (c->together && fault) spread(c, fault, &now);
    for (int j = 0; j < c->n && !ctx->status; j++)
        if (!now.out[j]) now.out[j] = again(c, j, &now);
    char *end = tt_alloc(ctx, &ctx->scratch, (int64_t)c->end_bytes, 1,
                         "the end of a chain");
    if (end) memcpy(end, c->end, c->end_bytes);
    for (int j = 0; end && j < c->n; j++)
        any |= patch(&c->link[j], now.out[j], end, c->end, c->end_was,
                     c->end_bytes);
    for (size_t i = 0; any && i < c->end_bytes / c->end_size; i++)
        out[i] = c->end_size == 8 ? ((const double *)(const void *)end)[i]
                                  : (double)((const float *)(const void *)end)
                                        [i];
    tt_arena_reset(&ctx->scratch, mark);
    return any && !ctx->status;
}

/* ---- mistakes of a model ------------------------------------------------- */

#define F(...) &(attention_fault){__VA_ARGS__}

/* Frames of L keys: one is not there, one counts twice. */
static void frames(hint *h, int64_t L)
{
    const tt_attention_args *a = &h->q->attn;
    const int64_t n = a->N / L;
    for (int64_t i = 0; i < n && n > 1; i++) {
        hint_try_fault(h, F(.gap = i * L, .gap_n = L), "frame %lld of the %lld "
                       "that attention reads is not attended", (long long)i,
                       (long long)n);
        hint_try_fault(h, F(.twice = i * L, .twice_n = L), "frame %lld of the "
                       "%lld that attention reads counts twice%s",
                       (long long)i, (long long)n, i ? "" : " (the sink)");
    }
    for (int64_t m = 2; m < n && m <= 6; m++) {
        hint_try_fault(h, F(.gap = 0, .gap_n = m * L), "the first %lld of %lld "
                       "frames are not attended", (long long)m, (long long)n);
        hint_try_fault(h, F(.twice = 0, .twice_n = m * L), "the first %lld of "
                       "%lld frames (the sink) count twice", (long long)m,
                       (long long)n);
    }
}

/* Keys at the places of others: the memory in another order. */
static void exchanged(hint *h, int64_t L)
{
    const op_call *q = h->q;
    const int64_t n = q->n / L;
    int32_t *pos = tt_alloc(h->ctx, &h->ctx->scratch, 3 * q->n, sizeof *pos,
                            "positions");
    for (int64_t i = 0; pos && i < n; i++)
        for (int64_t j = i + 1; j < n && j <= i + 8; j++) {
            op_call own = *q;
            memcpy(pos, q->pos, (size_t)(3 * q->n) * sizeof *pos);
            for (int64_t k = 0; k < L; k++) {
                const int32_t t = pos[3 * (i * L + k)];
                pos[3 * (i * L + k)] = pos[3 * (j * L + k)];
                pos[3 * (j * L + k)] = t;
            }
            own.pos = pos;
            hint_try_call(h, &own, "frames %lld and %lld of the %lld in memory "
                          "are in each other's place", (long long)i,
                          (long long)j, (long long)n);
        }
}

/* Tokens of a frame: those that share the first's position in time. */
static int64_t frame_of(const op_call *q)
{
    int64_t L = 1;
    while (L < q->n && q->pos[3 * L] == q->pos[0]) L++;
    return L;
}

/* The sinusoid of time t [half cosines, half sines] in every row. */
static void at_time(tt_real *x, int64_t n, int64_t c, double t, bool turned)
{
    const int64_t half = c / 2;
    for (int64_t i = 0; i < n * half; i++) {
        const int64_t k = i % half;
        double s, o;
        tt_sincos(t * tt_pow(10000, -(double)k / (double)half), &s, &o);
        x[i / half * c + k] = (tt_real)(turned ? s : o);
        x[i / half * c + half + k] = (tt_real)(turned ? o : s);
    }
}

/* The time that row 0 was made of: its lowest frequency turns less than once.
 */
static double time_of(const op_call *q)
{
    const int64_t half = q->c / 2;
    const double f = tt_pow(10000, -(double)(half - 1) / (double)half);
    return atan2((double)q->x[q->c - 1], (double)q->x[half - 1]) / f;
}

static void times(hint *h)
{
    enum { STEPS = 1000 };
    const op_call *q = h->q;
    tt_real *x = tt_scratch(h->ctx, q->n * q->c);
    op_call own = *q;
    if (!x || q->c < 4) return;
    const double t = time_of(q), right = fabs(t - rint(t)) < 0.01 ? rint(t) : t;
    own.x = x;
    at_time(x, q->n, q->c, right, true);
    hint_try_call(h, &own, "sines and cosines of the time are exchanged");
    at_time(x, q->n, q->c, right / 1000, false);
    hint_try_call(h, &own, "the time is divided by 1000");
    at_time(x, q->n, q->c, (double)tt_format_round(TT_FMT_BF16, (float)right),
            false);
    hint_try_call(h, &own, "the time is rounded to bf16");
    for (int i = 0; i <= STEPS && !hint_settled(h); i++) {
        if (i == (int)right) continue;
        at_time(x, q->n, q->c, i, false);
        hint_try_call(h, &own, "the pass is made at time %d where %.6g belongs",
                      i, right);
    }
}

void hint_model(hint *h, const char *name)
{
    const op_call *q = h->q;
    const size_t n = strlen(name);
    const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    if (q->kind == OP_ATTENTION && !q->attn.rel_bias)
        for (int64_t d = 1; d <= 4; d++)
            if (q->attn.T % d == 0 && q->attn.N % (q->attn.T / d) == 0
                && q->attn.N / (q->attn.T / d) <= 64)
                frames(h, q->attn.T / d);
    if (q->kind == OP_ROPE && q->n % frame_of(q) == 0
        && q->n / frame_of(q) <= 32)
        exchanged(h, frame_of(q));
    if (q->kind == OP_LINEAR && n > 2 && !strcmp(name + n - 2, "/e")) times(h);
    tt_arena_reset(&h->ctx->scratch, mark);
}
