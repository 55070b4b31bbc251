/* chain.c: see chain.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/chain.h"

#include <stdio.h>
#include <string.h>

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

static const void *chain_moved(void *const *from, void *const *to, int n,
                               const void *p)
{
    for (int i = 0; i < n; i++)
        if (from[i] == p) return to[i];
    return p;
}

void chain_move(tt_ctx *ctx, tt_arena *mem, op_call *q, void *const *from,
                void *const *to, int n)
{
#define MOVE(member) q->member = chain_moved(from, to, n, q->member);
    MOVE(x) MOVE(y) MOVE(a) MOVE(b) MOVE(pos) MOVE(mean) MOVE(gain)
    MOVE(target) MOVE(attn.q) MOVE(attn.k) MOVE(attn.v) MOVE(attn.rel_bias)
    MOVE(attn.key_mask) MOVE(conv.b)
    if (q->kind != OP_CONV) return;
    const tt_real **frame = tt_alloc(ctx, mem, q->conv.kt, sizeof *frame,
                                     "frames");
    for (int i = 0; frame && i < q->conv.kt; i++)
        frame[i] = chain_moved(from, to, n, q->conv.frame[i]);
    if (frame) q->conv.frame = frame;
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

/* How a link is made again: on other operators, as another call, with a
 * mistake; all NULL: as it was, if what it reads changed. */
typedef struct redo {
    const tt_ops *ops;
    const op_call *own;
    const void *fault;
} redo;

/* Link j again on what changed before it; NULL: nothing did. */
static char *again(chain *c, int j, const changes *now, const redo *how)
{
    chain_link *l = &c->link[j];
    tt_ctx *ctx = c->ctx;
    void *own[SPANS_MAX];
    bool any = how->ops || how->own || how->fault;
    for (int s = 0; s < l->was.n; s++) {
        own[s] = l->copy[s];
        if (l->copy[s] == l->was.at[s]) continue;    /* no one's result */
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
    op_call q = how->own ? *how->own : l->q;
    if (!any) return NULL;
    chain_move(ctx, &ctx->scratch, &q, l->copy, own, l->was.n);
    if (how->fault) {
        double *x = tt_alloc(ctx, &ctx->scratch, call_count(&q), sizeof *x,
                             "a trial");
        plain_call(ctx, &q, how->fault, x);
        return ctx->status ? NULL : narrowed(c, j, x);
    }
    char *out = tt_alloc(ctx, &ctx->scratch, (int64_t)l->bytes, 1, "a result");
    call_run(ctx, how->ops ? how->ops : l->ops, &q, out);
    return ctx->status ? NULL : out;
}

/* The end with these results in it; false: it has none of them. */
static bool chain_finish(chain *c, const changes *now, double *out)
{
    tt_ctx *ctx = c->ctx;
    bool any = false;
    char *end = tt_alloc(ctx, &ctx->scratch, (int64_t)c->end_bytes, 1,
                         "the end of a chain");
    if (end) memcpy(end, c->end, c->end_bytes);
    for (int j = 0; end && j < c->n; j++)
        any |= patch(&c->link[j], now->out[j], end, c->end, c->end_was,
                     c->end_bytes);
    for (size_t i = 0; any && i < c->end_bytes / c->end_size; i++)
        out[i] = c->end_size == 8 ? ((const double *)(const void *)end)[i]
                                  : (double)((const float *)(const void *)end)
                                        [i];
    return any && !ctx->status;
}

/* The end when links are made again as in how [c->n]; with `trial`, what link
 * c->at gives. */
static bool chain_redo(chain *c, const double *trial, const redo *how,
                       double *out)
{
    tt_ctx *ctx = c->ctx;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    changes now = {{NULL}};
    if (trial) now.out[c->at] = narrowed(c, c->at, trial);
    for (int j = 0; j < c->n && !ctx->status; j++)
        if (!trial || j != c->at) now.out[j] = again(c, j, &now, &how[j]);
    const bool any = chain_finish(c, &now, out);
    tt_arena_reset(&ctx->scratch, mark);
    return any;
}

bool chain_end(chain *c, const double *trial, const void *fault, double *out)
{
    redo how[LINKS_MOST];
    memset(how, 0, sizeof how);
    for (int j = 0; c->together && j < c->n; j++)
        if (c->link[j].q.kind == c->link[c->at].q.kind) how[j].fault = fault;
    return chain_redo(c, trial, how, out);
}

bool chain_end_of(chain *c, const op_call *const *own, double *out)
{
    redo how[LINKS_MOST];
    memset(how, 0, sizeof how);
    for (int j = 0; j < c->n; j++) how[j].own = own[j];
    return chain_redo(c, NULL, how, out);
}

bool chain_end_on(chain *c, unsigned links, const tt_ops *ops, double *out)
{
    redo how[LINKS_MOST];
    memset(how, 0, sizeof how);
    for (int j = 0; j < c->n; j++) how[j].ops = links >> j & 1 ? ops : NULL;
    return chain_redo(c, NULL, how, out);
}

static const char *was_at(const chain_link *l, const void *copy)
{
    for (int i = 0; i < l->was.n; i++)
        if (l->copy[i] == copy) return l->was.at[i];
    return NULL;
}

const char *chain_was(const chain *c, const void *copy)
{
    return was_at(&c->link[c->at], copy);
}

bool chain_result(const chain *c, const void *copy)
{
    const char *was = chain_was(c, copy);
    bool is = false;
    for (int i = 0; was && i < c->at; i++)
        is |= was >= c->link[i].out_was
              && was < c->link[i].out_was + c->link[i].bytes;
    return is;
}

const char *chain_rope_of(const chain *c, int i)
{
    const chain_link *l = &c->link[i];
    for (int k = i + 1; l->q.kind == OP_ROPE && k < c->n; k++) {
        const chain_link *a = &c->link[k];
        if (a->q.kind != OP_ATTENTION) continue;
        if (was_at(a, a->q.attn.k) == l->out_was) return "keys";
        if (was_at(a, a->q.attn.q) == l->out_was) return "queries";
    }
    return NULL;
}

const char *chain_next(const chain *c)
{
    const char *of = c && !c->together ? chain_rope_of(c, c->at) : NULL;
    if (!of) return "";
    return *of == 'q' ? " next to the keys" : " next to the queries";
}

static bool reads(const chain_link *l, const char *at, size_t n)
{
    for (int i = 0; i < l->was.n; i++) {
        const char *p = l->was.at[i];
        if (p >= at && p < at + n) return true;
    }
    return false;
}

bool chain_modulation(const chain *c, int i)
{
    const chain_link *l = &c->link[i];
    bool any = false;
    if (l->q.kind != OP_ADD) return false;
    for (int k = i + 1; k < c->n; k++)
        any |= c->link[k].q.kind == OP_MODULATE
               && reads(&c->link[k], l->out_was, l->bytes);
    return any;
}

void chain_link_name(const chain *c, int i, bool together, char *out,
                     size_t size)
{
    const op_kind kind = c->link[i].q.kind;
    int nth = 0, all = 0;
    for (int k = 0; k < c->n; k++) {
        nth += k < i && c->link[k].q.kind == kind;
        all += c->link[k].q.kind == kind;
    }
    const char *of = chain_rope_of(c, i);
    if (chain_modulation(c, i)) snprintf(out, size, "modulation");
    else if (of && !together) snprintf(out, size, "rope of the %s", of);
    else if (all < 2) snprintf(out, size, "%s", op_name(kind));
    else if (together) snprintf(out, size, "every %s", op_name(kind));
    else snprintf(out, size, "%s %d of %d", op_name(kind), nth + 1, all);
}
