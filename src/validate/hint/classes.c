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

#include "ops/bf16.h"
#include "ops/golden/tensor_core.h"

/* The changes of a tensor core that takes L products, keeps F bits and goes by
 * exponents from E on, and those of the other classes: X(id, class, factor,
 * sentence, rule ...). */
#define CORE(L, F, E) .order = SUM_CORE, .block = L, .bits = F, .least = E
#define CORE_CHANGES(X, C, L, F, E)                                            \
    X(C##_near, #C, NULL, "sums of a block are rounded to nearest, not cut "   \
      "towards zero", CORE(L, F, E), .nearest = true)                          \
    X(C##_flush, #C, bf16_round, "subnormal numbers are flushed to zero",      \
      CORE(L, F, E), .flush = true)                                            \
    X(C##_f16, #C, NULL, "sums are kept in f16", CORE(L, F, E), .f16 = true)   \
    INPUT_CHANGES(X, C, tf32, cut, CORE(L, F, E))                              \
    INPUT_CHANGES(X, C, tf32_half, cut_half, CORE(L / 2, F, E))                \
    PART_CHANGES(X, C, CORE(L, F, E))
#define INPUT_CHANGES(X, C, rounded, cut, ...)                                 \
    X(C##_##rounded, #C, plain_factor_tf32, "inputs are rounded to tf32, not " \
      "bf16", __VA_ARGS__)                                                     \
    X(C##_##cut, #C, arith_cut_tf32, "inputs are cut off to tf32, not rounded "\
      "to bf16", __VA_ARGS__)
#define PARTS "split-K: sums of %d parts are added in float32"
#define PART_CHANGES(X, C, ...)                                                \
    X(C##_p2, #C, NULL, PARTS, __VA_ARGS__, .parts = 2)                        \
    X(C##_p3, #C, NULL, PARTS, __VA_ARGS__, .parts = 3)                        \
    X(C##_p4, #C, NULL, PARTS, __VA_ARGS__, .parts = 4)                        \
    X(C##_p8, #C, NULL, PARTS, __VA_ARGS__, .parts = 8)                        \
    X(C##_p2_64, #C, NULL, PARTS, __VA_ARGS__, .parts = 2, .tile = 64)         \
    X(C##_p4_64, #C, NULL, PARTS, __VA_ARGS__, .parts = 4, .tile = 64)
#define CHAIN_CHANGES(X, C, ...)                                               \
    X(C##_keep, #C, plain_factor_bf16, "subnormal numbers are not flushed to " \
      "zero", __VA_ARGS__, .keep = true)                                       \
    X(C##_keep_sums, #C, NULL, "subnormal sums are not flushed to zero",       \
      __VA_ARGS__, .keep = true)                                               \
    X(C##_f16, #C, NULL, "sums are kept in f16", __VA_ARGS__, .f16 = true)     \
    INPUT_CHANGES(X, C, tf32, cut, __VA_ARGS__, .keep = true)                  \
    PART_CHANGES(X, C, __VA_ARGS__)
#define FLOATS .order = SUM_FLOAT, .keep = true

#define CHANGES(X)                                                             \
    X(sm90_8, "sm90", NULL, "blocks of 8 products where 16 belong",            \
      CORE(8, 25, -133))                                                       \
    X(sm90_4, "sm90", NULL, "blocks of 4 products where 16 belong",            \
      CORE(4, 25, -133))                                                       \
    X(sm90_24, "sm90", NULL, "24 fraction bits where 25 belong",               \
      CORE(16, 24, -133))                                                      \
    CORE_CHANGES(X, sm90, 16, 25, -133)                                        \
    X(sm80_16, "sm80", NULL, "blocks of 16 products where 8 belong",           \
      CORE(16, 24, -132))                                                      \
    X(sm80_4, "sm80", NULL, "blocks of 4 products where 8 belong",             \
      CORE(4, 24, -132))                                                       \
    X(sm80_25, "sm80", NULL, "25 fraction bits where 24 belong",               \
      CORE(8, 25, -132))                                                       \
    CORE_CHANGES(X, sm80, 8, 24, -132)                                         \
    X(vdp_even, "vdp", NULL, "the even product of a pair comes first",         \
      .order = SUM_PAIRS, .even_first = true)                                  \
    CHAIN_CHANGES(X, vdp, .order = SUM_PAIRS)                                  \
    X(amx_16, "amx", NULL, "blocks of 16 products where 32 belong",            \
      .order = SUM_HALVES, .block = 16)                                        \
    CHAIN_CHANGES(X, amx, .order = SUM_HALVES, .block = 32)                    \
    X(f32_unfused, "f32", NULL, "products are rounded before they are added",  \
      FLOATS, .block = TT_DOT_BLOCK, .unfused = true)                          \
    X(f32_chain, "f32", NULL, "one chain where blocks of 256 belong", FLOATS,  \
      .block = 1 << 30)                                                        \
    PART_CHANGES(X, f32, FLOATS, .block = TT_DOT_BLOCK)

/* A chain knows no more than what it adds: each change has its own. */
#define RULE(id, class, factor, what, ...)                                     \
    static const sum_rule rule_##id = {__VA_ARGS__};                           \
    static float chain_##id(float c, const float *a, int64_t step,             \
                            const float *b, int64_t n)                         \
    {                                                                          \
        return plain_chain(&rule_##id, c, a, step, b, n);                      \
    }
CHANGES(RULE)

static const struct change {
    const char *class, *what;
    const sum_rule *rule;
    float (*factor)(float x);      /* NULL: the class's                       */
    float (*chain)(float c, const float *a, int64_t step, const float *b,
                   int64_t n);
} changes[] = {
#define LINE(id, class, factor, what, ...)                                     \
    {class, what, &rule_##id, factor, chain_##id},
    CHANGES(LINE)
};
enum { CHANGE_COUNT = sizeof changes / sizeof *changes };

/* A class, or the declared one with a change. */
typedef struct guess {
    tt_class cls;
    const struct change *change;   /* NULL: as it is                          */
} guess;

/* f32 rounds no factor and has a way of its own. */
static bool f32_gives(tt_ctx *ctx, const op_call *q, const double *got)
{
    const int64_t n = call_count(q);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    double *x = tt_alloc(ctx, &ctx->scratch, n, sizeof *x, "class");
    tt_verdict v = {0};
    if (x) call_double(ctx, tt_ops_default(), q, x);
    if (!ctx->status) tt_verdict_bits(&v, tt_arith_find("f32"), got, x, n);
    tt_arena_reset(&ctx->scratch, mark);
    return v.bits == TT_BITS_EQUAL;
}

static golden_class classes_class_of(const guess *g)
{
    golden_class class = *golden_class_of(g->cls);
    if (g->change) class.chain = g->change->chain;
    if (g->change && g->change->factor) class.factor = g->change->factor;
    return class;
}

static bool gives(tt_ctx *ctx, const guess *g, const op_call *q,
                  const double *got)
{
    if (!g->change && g->cls == TT_CLASS_F32) return f32_gives(ctx, q, got);
    const golden_class class = classes_class_of(g);
    return plain_class_gives(ctx, q, &class, got);
}

/* Everything but class cls as it is; how many. */
static int guesses(guess *list, tt_class cls)
{
    int n = 0;
    for (int c = 0; c < TT_CLASS_COUNT; c++)
        if ((tt_class)c != cls) list[n++] = (guess){(tt_class)c, NULL};
    for (int i = 0; i < CHANGE_COUNT; i++)
        if (!strcmp(changes[i].class, tt_class_name(cls)))
            list[n++] = (guess){cls, &changes[i]};
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
            guess copy[TT_CLASS_COUNT + CHANGE_COUNT];
            memcpy(copy, list, (size_t)n * sizeof *copy);
            const int kept = classes_keep(h->ctx, copy, n, &q, got);
            if (kept) memcpy(list, copy, (size_t)kept * sizeof *copy);
            n = kept ? kept : n;
        }
        tt_arena_reset(&h->ctx->scratch, mark);
    }
    return n;
}

/* One more explanation; the same sentence once. */
static void classes_say(char *out, size_t size, const guess *g, int parts)
{
    char text[120];
    const size_t used = strlen(out);
    if (g->change) snprintf(text, sizeof text, g->change->what, parts);
    else
        snprintf(text, sizeof text, "it computes class %s",
                 tt_class_name(g->cls));
    if (strstr(out, text) || used + strlen(text) + 5 > size) return;
    snprintf(out + used, size - used, "%s%s", used ? " or " : "", text);
}

bool hint_classes(hint_call *h)
{
    guess list[TT_CLASS_COUNT + CHANGE_COUNT];
    h->out[0] = 0;
    if (h->q->kind != OP_LINEAR && h->q->kind != OP_ATTENTION) return false;
    int n = classes_keep(h->ctx, list, guesses(list, h->cls), h->q, h->got);
    if (n > 1 && h->ops && h->q->kind == OP_LINEAR) n = classes_ask(h, list, n);
    for (int i = 0; i < n; i++)
        classes_say(h->out, h->size, &list[i],
                    list[i].change ? list[i].change->rule->parts : 0);
    return n && !h->ctx->status;
}

/* ---- somewhere before a tensor of a dump --------------------------------- */

static void guess_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    golden_factors_linear(ctx, a, ctx->ops->self);
}

static void guess_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    golden_factors_attention(ctx, a, ctx->ops->self);
}

/* Do these links of c, computed so, give every bit of its end? */
static bool end_gives(chain *c, unsigned links, const guess *g,
                      const double *got, double *end)
{
    golden_class class = classes_class_of(g);
    tt_ops t = *tt_ops_class(tt_ops_default(), g->cls);
    if (g->change) {
        t.self = &class;
        t.linear = guess_linear;
        if (class.attend) {
            t.attention = guess_attention;
            t.packed = NULL;
        }
    }
    bool same = chain_end_on(c, links, &t, end);
    for (size_t i = 0; same && i < c->end_bytes / c->end_size; i++)
        same = value_same_bits(got[i], end[i]);
    return same;
}

/* In how many parts the longest of these sums is split. */
static int classes_parts_of(const chain *c, unsigned links, const guess *g)
{
    int64_t most = 0;
    if (!g->change || !g->change->rule->parts) return 0;
    for (int i = 0; i < c->n; i++) {
        const op_call *q = &c->link[i].q;
        if (!(links >> i & 1) || q->kind != OP_LINEAR) continue;
        const int64_t part = plain_part(g->change->rule, q->c);
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
    guess list[TT_CLASS_COUNT + CHANGE_COUNT];
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
