/* classes.c: which bits are these, if they are not those of the class?
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Other classes, and the class with one change at a time. Only what gives every
 * bit of the result is named; a small result may be that of several. Of a call
 * its result is compared, of a tensor of a dump what the operators after the
 * changed ones make of theirs (chain.h). */
#include "validate/hint/chain.h"
#include "validate/operators/opcalls.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#ifndef TT_REAL_DOUBLE

#include <stddef.h>

#include "ops/bf16.h"
#include "ops/frozen.h"
#include "ops/golden/golden.h"

#define CORE(B, F, E) {.order = SUM_CORE, .block = B, .bits = F, .least = E}
static const sum_rule right[TT_CLASS_COUNT] = {
    [TT_CLASS_F32] = {.order = SUM_FLOAT, .block = TT_DOT_BLOCK, .keep = true},
    [TT_CLASS_AMX] = {.order = SUM_HALVES, .block = BF16_GROUP},
    [TT_CLASS_VDP] = {.order = SUM_PAIRS, .block = 2},
    [TT_CLASS_SM80] = CORE(8, 24, -132),
    [TT_CLASS_SM90] = CORE(16, 25, -133),
};

static float factor_bf16(float x)
{
    return tt_format_round(TT_FMT_BF16, x);
}

static float factor_tf32(float x)
{
    return tt_format_round(TT_FMT_TF32, x);
}

#define OF(NAME) (1u << TT_CLASS_##NAME)
#define CORES (OF(SM80) | OF(SM90))
#define CHAINS (OF(AMX) | OF(VDP))
#define ALL (CORES | CHAINS | OF(F32))
#define RULE(member) offsetof(sum_rule, member)
#define BLOCKS "blocks of %d products where %d belong"
#define BITS "%d fraction bits where %d belong"
#define TF32 "inputs are rounded to tf32, not bf16"
#define CUT "inputs are cut off to tf32, not rounded to bf16"
#define PARTS "split-K: sums of %d parts are added in float32"

/* One member of the rule of some classes that is another, and what a factor is
 * then. `keep` is nothing to a tensor core. */
static const struct change {
    unsigned classes;
    size_t member;
    int value;
    float (*factor)(float x);      /* NULL: the class's                       */
    const char *what;
} changes[] = {
    {OF(SM90), RULE(block), 8, NULL, BLOCKS},
    {CORES, RULE(block), 4, NULL, BLOCKS},
    {OF(SM80) | OF(AMX), RULE(block), 16, NULL, BLOCKS},
    {OF(SM90), RULE(bits), 24, NULL, BITS},
    {OF(SM80), RULE(bits), 25, NULL, BITS},
    {CORES, RULE(nearest), true, NULL, "sums of a block are rounded to "
     "nearest, not cut towards zero"},
    {CORES, RULE(flush), true, bf16_round, "subnormal numbers are flushed to "
     "zero"},
    {OF(VDP), RULE(even_first), true, NULL, "the even product of a pair comes "
     "first"},
    {CHAINS, RULE(keep), true, factor_bf16, "subnormal numbers are not flushed "
     "to zero"},
    {CHAINS, RULE(keep), true, NULL, "subnormal sums are not flushed to zero"},
    {OF(F32), RULE(unfused), true, NULL, "products are rounded before they are "
     "added"},
    {OF(F32), RULE(block), 1 << 30, NULL, "one chain where blocks of 256 "
     "belong"},
    {CORES | CHAINS, RULE(f16), true, NULL, "sums are kept in f16"},
    {CORES | CHAINS, RULE(keep), true, factor_tf32, TF32},
    {CORES | CHAINS, RULE(keep), true, arith_cut_tf32, CUT},
    {OF(SM90), RULE(block), 8, factor_tf32, TF32},
    {OF(SM90), RULE(block), 8, arith_cut_tf32, CUT},
    {OF(SM80), RULE(block), 4, factor_tf32, TF32},
    {OF(SM80), RULE(block), 4, arith_cut_tf32, CUT},
    {ALL, RULE(parts), 2, NULL, PARTS}, {ALL, RULE(parts), 3, NULL, PARTS},
    {ALL, RULE(parts), 4, NULL, PARTS}, {ALL, RULE(parts), 8, NULL, PARTS},
};
enum { CHANGE_COUNT = sizeof changes / sizeof *changes,
       GUESSES_MOST = TT_CLASS_COUNT + 2 * CHANGE_COUNT };

/* A class, or the declared one with a change. */
typedef struct guess {
    tt_class cls;
    const struct change *change;   /* NULL: as it is                          */
    int tile;                      /* of the rule: parts are whole ones       */
} guess;

static sum_rule rule_of(const guess *g)
{
    sum_rule r = right[g->cls];
    if (!g->change) return r;
    memcpy((char *)&r + g->change->member, &g->change->value, sizeof(int));
    r.tile = g->tile;
    return r;
}

/* ---- operators that compute a guess -------------------------------------- */

/* The loops of golden tell a chain no more than what it adds: its rule is the
 * thread's, and they run in this one. */
static _Thread_local sum_rule under_trial;

static float trial_chain(float c, const float *a, int64_t step, const float *b,
                         int64_t n)
{
    return plain_chain(&under_trial, c, a, step, b, n);
}

static void guess_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    const int before = ctx->nthreads;
    ctx->nthreads = 1;
    golden_factors_linear(ctx, a, ctx->ops->self);
    ctx->nthreads = before;
}

static void guess_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    const int before = ctx->nthreads;
    ctx->nthreads = 1;
    golden_factors_attention(ctx, a, ctx->ops->self);
    ctx->nthreads = before;
}

/* Good until the next guess; `class` is where the table points to. */
static tt_ops guess_table(const guess *g, golden_class *class)
{
    tt_ops t = *tt_ops_class(tt_ops_default(), g->cls);
    if (!g->change) return t;
    *class = *golden_class_of(g->cls);
    class->chain = trial_chain;
    if (g->change->factor) class->factor = g->change->factor;
    under_trial = rule_of(g);
    t.self = class;
    t.linear = guess_linear;
    if (!class->attend) return t;
    t.attention = guess_attention;
    t.packed = NULL;
    return t;
}

/* Does a guess give every bit of the leading rows of a call's result? */
static bool gives_rows(tt_ctx *ctx, const tt_ops *t, op_call q, int64_t rows,
                       const double *got)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    q.n = q.attn.T = rows;
    const int64_t n = call_count(&q);
    double *x = tt_alloc(ctx, &ctx->scratch, n, sizeof *x, "class");
    if (x) call_double(ctx, t, &q, x);
    int64_t same = 0;
    while (!ctx->status && same < n && value_same_bits(x[same], got[same]))
        same++;
    tt_arena_reset(&ctx->scratch, mark);
    return !ctx->status && same == n;
}

/* Of every row; most guesses are wrong in the first one. */
static bool gives(tt_ctx *ctx, const guess *g, const op_call *q,
                  const double *got)
{
    golden_class class;
    const tt_ops t = guess_table(g, &class);
    return gives_rows(ctx, &t, *q, 1, got)
           && gives_rows(ctx, &t, *q, q->kind == OP_LINEAR ? q->n : q->attn.T,
                         got);
}

/* ---- what gives these bits ----------------------------------------------- */

/* Everything but class cls as it is; how many. */
static int guesses(guess *list, tt_class cls)
{
    int n = 0;
    for (int c = 0; c < TT_CLASS_COUNT; c++)
        if ((tt_class)c != cls) list[n++] = (guess){(tt_class)c, NULL, 0};
    for (int i = 0; i < CHANGE_COUNT; i++) {
        if (!(changes[i].classes >> cls & 1)) continue;
        list[n++] = (guess){cls, &changes[i], 16};
        if (changes[i].member == RULE(parts))
            list[n++] = (guess){cls, &changes[i], 64};
    }
    return n;
}

/* Those of n that give this result, in front. */
static int classes_keep(tt_ctx *ctx, guess *list, int n, const op_call *q,
                        const double *got)
{
    int kept = 0;
    for (int i = 0; i < n && !ctx->status; i++)
        if (gives(ctx, &list[i], q, got)) list[kept++] = list[i];
    return kept;
}

/* The backend is asked again, where several explain what it did: sums long
 * enough to be split, subnormal ones among them. */
static int classes_ask(const hint_call *h, guess *list, int n)
{
    static const op_input kind[] = {IN_NORMAL, IN_DENORMAL, IN_MIXED};
    const op_sizes s = {.n = 3, .v = {16, 600, 16}};
    for (int i = 0; i < 3 && n > 1; i++) {
        const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
        op_call q;
        call_make(h->ctx, &q, OP_LINEAR, kind[i], &s, 1, 0);
        double *got = tt_alloc(h->ctx, &h->ctx->scratch, 16 * 16, sizeof *got,
                               "a question");
        if (got) call_double(h->ctx, h->ops, &q, got);
        if (h->ctx->status == TT_OK) {
            guess copy[GUESSES_MOST];
            memcpy(copy, list, (size_t)n * sizeof *copy);
            const int kept = classes_keep(h->ctx, copy, n, &q, got);
            if (kept) memcpy(list, copy, (size_t)kept * sizeof *copy);
            n = kept ? kept : n;
        } else if (h->ctx->status != TT_EINTR && h->ctx->status != TT_ENOMEM) {
            tt_clear(h->ctx);            /* it does not do this shape */
        }
        tt_arena_reset(&h->ctx->scratch, mark);
    }
    return n;
}

/* One more explanation; the same sentence once. parts: of sums, 0: as many as
 * the change says. */
static void classes_say(char *out, size_t size, const guess *g, int parts)
{
    char text[120];
    int belongs;
    const size_t used = strlen(out);
    if (g->change) {
        memcpy(&belongs, (const char *)&right[g->cls] + g->change->member,
               sizeof belongs);
        snprintf(text, sizeof text, g->change->what,
                 parts ? parts : g->change->value, belongs);
    } else
        snprintf(text, sizeof text, "it computes class %s",
                 tt_class_name(g->cls));
    if (strstr(out, text) || used + strlen(text) + 5 > size) return;
    snprintf(out + used, size - used, "%s%s", used ? " or " : "", text);
}

bool hint_classes(hint_call *h)
{
    guess list[GUESSES_MOST];
    h->out[0] = 0;
    if (h->q->kind != OP_LINEAR && h->q->kind != OP_ATTENTION) return false;
    int n = classes_keep(h->ctx, list, guesses(list, h->cls), h->q, h->got);
    if (n > 1 && h->ops && h->q->kind == OP_LINEAR) n = classes_ask(h, list, n);
    for (int i = 0; i < n; i++) classes_say(h->out, h->size, &list[i], 0);
    return n && !h->ctx->status;
}

/* ---- somewhere before a tensor of a dump --------------------------------- */

/* Do these links of c, computed so, give every bit of its end? */
static bool end_gives(chain *c, unsigned links, const guess *g,
                      const double *got, double *end)
{
    golden_class class;
    const tt_ops t = guess_table(g, &class);
    bool same = chain_end_on(c, links, &t, end);
    for (size_t i = 0; same && i < c->end_bytes / c->end_size; i++)
        same = value_same_bits(got[i], end[i]);
    return same;
}

/* In how many parts the longest of these sums is split. */
static int classes_parts_of(const chain *c, unsigned links, const guess *g)
{
    const sum_rule r = rule_of(g);
    int64_t most = 0;
    if (!r.parts) return 0;
    for (int i = 0; i < c->n; i++) {
        const op_call *q = &c->link[i].q;
        if (!(links >> i & 1) || q->kind != OP_LINEAR) continue;
        const int64_t part = plain_part(&r, q->c);
        if ((q->c + part - 1) / part > most) most = (q->c + part - 1) / part;
    }
    return (int)most;
}

/* Some products of a chain, bit i for link i, and what they are called. */
typedef struct link_set {
    unsigned links;
    char name[48];
} link_set;

/* Those of the class: all linear layers, attention as well, each alone. */
static int sets_of(const chain *c, tt_class cls, link_set *set)
{
    unsigned linear = 0, attention = 0;
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        const op_kind kind = c->link[i].q.kind;
        if (c->link[i].ops->cls != cls) continue;
        if (kind == OP_LINEAR) linear |= 1u << i;
        if (kind == OP_ATTENTION) attention |= 1u << i;
    }
    if (linear) set[n++] = (link_set){linear, "linear"};
    if (linear && attention)
        set[n++] = (link_set){linear | attention, "linear and attention"};
    for (int i = c->n - 1; i >= 0; i--) {
        if (!((linear | attention) >> i & 1) || linear == 1u << i) continue;
        set[n].links = 1u << i;
        chain_link_name(c, i, false, set[n].name, sizeof set[n].name);
        n++;
    }
    return n;
}

/* Of a large tensor c has the first rows: is anything wrong in them? */
static bool classes_wrong(const chain *c, const double *got)
{
    for (size_t i = 0; i < c->end_bytes / c->end_size; i++) {
        const void *at = c->end + i * c->end_size;
        const double ours = c->end_size == 8 ? *(const double *)at
                                             : (double)*(const float *)at;
        if (!value_same_bits(got[i], ours)) return true;
    }
    return false;
}

bool hint_chain_class(tt_ctx *ctx, chain *c, tt_class cls, const double *got,
                      char *out, size_t size)
{
    guess list[GUESSES_MOST];
    link_set set[LINKS_MOST + 2];
    char why[128] = "";
    const int n = guesses(list, cls), sets = sets_of(c, cls, set);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    double *end = tt_alloc(ctx, &ctx->scratch,
                           (int64_t)(c->end_bytes / c->end_size), sizeof *end,
                           "an end");
    for (int s = 0; end && s < sets && !*why && classes_wrong(c, got); s++) {
        for (int i = 0; i < n && !ctx->status; i++)
            if (end_gives(c, set[s].links, &list[i], got, end))
                classes_say(why, sizeof why, &list[i],
                            classes_parts_of(c, set[s].links, &list[i]));
        if (*why) snprintf(out, size, "%s: %s", set[s].name, why);
    }
    tt_arena_reset(&ctx->scratch, mark);
    return *why && !ctx->status;
}

#else

bool hint_classes(hint_call *h)
{
    h->out[0] = 0;
    return false;
}

bool hint_chain_class(tt_ctx *ctx, chain *c, tt_class cls, const double *got,
                      char *out, size_t size)
{
    (void)ctx, (void)c, (void)cls, (void)got, (void)out, (void)size;
    return false;
}

#endif
