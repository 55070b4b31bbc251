/* classes.c: which bits are these, if they are not those of the class?
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Other classes, and the class with one change at a time. Only what gives every
 * bit of the result is named; a small result may be that of several. */
#include "validate/hint/hint.h"
#include "validate/operators/opcalls.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#ifndef TT_REAL_DOUBLE

#include "ops/bf16.h"

/* The changes of a tensor core that takes L products and keeps F bits, and
 * those of the other classes: X(id, class, factor, sentence, rule ...). */
#define CORE(L, F) .order = SUM_CORE, .block = L, .bits = F
#define CORE_CHANGES(X, C, L, F)                                               \
    X(C##_near, #C, NULL, "sums of a block are rounded to nearest, not cut "   \
      "towards zero", CORE(L, F), .nearest = true)                             \
    X(C##_flush, #C, bf16_round, "subnormal numbers are flushed to zero",      \
      CORE(L, F), .flush = true)                                               \
    X(C##_f16, #C, NULL, "sums are kept in f16", CORE(L, F), .f16 = true)      \
    INPUT_CHANGES(X, C, tf32, cut, CORE(L, F))                                 \
    INPUT_CHANGES(X, C, tf32_half, cut_half, CORE(L / 2, F))                   \
    PART_CHANGES(X, C, CORE(L, F))
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
      CORE(8, 25))                                                             \
    X(sm90_4, "sm90", NULL, "blocks of 4 products where 16 belong",            \
      CORE(4, 25))                                                             \
    X(sm90_24, "sm90", NULL, "24 fraction bits where 25 belong", CORE(16, 24)) \
    CORE_CHANGES(X, sm90, 16, 25)                                              \
    X(sm80_16, "sm80", NULL, "blocks of 16 products where 8 belong",           \
      CORE(16, 24))                                                            \
    X(sm80_4, "sm80", NULL, "blocks of 4 products where 8 belong",             \
      CORE(4, 24))                                                             \
    X(sm80_25, "sm80", NULL, "25 fraction bits where 24 belong", CORE(8, 25))  \
    CORE_CHANGES(X, sm80, 8, 24)                                               \
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

static bool gives(tt_ctx *ctx, const guess *g, const op_call *q,
                  const double *got)
{
    if (!g->change && g->cls == TT_CLASS_F32) return f32_gives(ctx, q, got);
    golden_class class = *golden_class_of(g->cls);
    if (g->change) class.chain = g->change->chain;
    if (g->change && g->change->factor) class.factor = g->change->factor;
    return plain_class_gives(ctx, q, &class, got);
}

/* Those of n that give this result, in front. */
static int keep(tt_ctx *ctx, guess *list, int n, const op_call *q,
                const double *got)
{
    int kept = 0;
    for (int i = 0; i < n && !ctx->status; i++)
        if (gives(ctx, &list[i], q, got)) list[kept++] = list[i];
    return kept;
}

/* The backend is asked again, where several explain what it did: sums long
 * enough to be split, subnormal ones among them. */
static int ask(const hint_call *h, guess *list, int n)
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
            const int kept = keep(h->ctx, copy, n, &q, got);
            if (kept) memcpy(list, copy, (size_t)kept * sizeof *copy);
            n = kept ? kept : n;
        }
        tt_arena_reset(&h->ctx->scratch, mark);
    }
    return n;
}

/* One more explanation; the same sentence once. */
static void say(hint_call *h, const guess *g)
{
    char text[120];
    const size_t used = strlen(h->out);
    if (g->change)
        snprintf(text, sizeof text, g->change->what, g->change->rule->parts);
    else
        snprintf(text, sizeof text, "it computes class %s",
                 tt_class_name(g->cls));
    if (strstr(h->out, text) || used + strlen(text) + 5 > h->size) return;
    snprintf(h->out + used, h->size - used, "%s%s", used ? " or " : "", text);
}

bool hint_classes(hint_call *h)
{
    guess list[TT_CLASS_COUNT + CHANGE_COUNT];
    int n = 0;
    h->out[0] = 0;
    if (h->q->kind != OP_LINEAR && h->q->kind != OP_ATTENTION) return false;
    for (int c = 0; c < TT_CLASS_COUNT; c++)
        if ((tt_class)c != h->cls) list[n++] = (guess){(tt_class)c, NULL};
    for (int i = 0; i < CHANGE_COUNT; i++)
        if (!strcmp(changes[i].class, tt_class_name(h->cls)))
            list[n++] = (guess){h->cls, &changes[i]};
    n = keep(h->ctx, list, n, h->q, h->got);
    if (n > 1 && h->ops && h->q->kind == OP_LINEAR) n = ask(h, list, n);
    for (int i = 0; i < n; i++) say(h, &list[i]);
    return n && !h->ctx->status;
}

#else

bool hint_classes(hint_call *h)
{
    h->out[0] = 0;
    return false;
}

#endif
