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

#include "core/fma.h"
#include "ops/frozen.h"
#include "ops/golden/golden.h"
#include "ops/tensor_core.h"

static float factor_tf32(float x)
{
    return tt_format_round(TT_FMT_TF32, x);
}

#define OF(NAME) (1u << TT_CLASS_##NAME)
#define CORES (OF(SM80) | OF(SM90))
#define CHAINS (OF(AMX) | OF(VDP))
#define ALL (CORES | CHAINS | OF(F32))
#define TF32 "inputs are rounded to tf32, not bf16"
#define CUT "inputs are cut off to tf32, not rounded to bf16"
#define PARTS "split-K: sums of %d parts are added in float32"

/* How a sum of some classes is made instead. */
static const struct change {
    unsigned classes;
    tc_unit unit;                  /* another tensor core; no bits: the class's
                                      own sums of so many products each       */
    float (*factor)(float x);      /* NULL: the class's                       */
    bool f16, unfused;             /* the running sum; products are rounded   */
    int parts;                     /* split-K, 0: not                         */
    const char *what;
} changes[] = {
    {OF(SM90), .unit = {8, 25, -133}, .what = "blocks of 8 products where 16 "
     "belong"},
    {OF(SM80), .unit = {16, 24, -132}, .what = "blocks of 16 products where 8 "
     "belong"},
    {OF(SM90), .unit = {16, 24, -133}, .what = "24 fraction bits where 25 "
     "belong"},
    {OF(AMX), .unit = {.block = 16},
     .what = "blocks of 16 products where 32 belong"},
    {OF(VDP), .unit = {.block = 1},
     .what = "the even product of a pair comes first"},
    {OF(F32), .unit = {.block = TT_DOT_BLOCK}, .unfused = true,
     .what = "products are rounded before they are added"},
    {OF(F32), .unit = {.block = 1 << 30},
     .what = "one chain where blocks of 256 belong"},
    {CORES | CHAINS, .f16 = true, .what = "sums are kept in f16"},
    {OF(SM90), {8, 25, -133}, .factor = factor_tf32, .what = TF32},
    {OF(SM90), {8, 25, -133}, .factor = arith_cut_tf32, .what = CUT},
    {OF(SM80), {4, 24, -132}, .factor = factor_tf32, .what = TF32},
    {OF(SM80), {4, 24, -132}, .factor = arith_cut_tf32, .what = CUT},
    {ALL, .parts = 2, .what = PARTS}, {ALL, .parts = 3, .what = PARTS},
    {ALL, .parts = 4, .what = PARTS}, {ALL, .parts = 8, .what = PARTS},
};
enum { CHANGE_COUNT = sizeof changes / sizeof *changes,
       GUESSES_MOST = TT_CLASS_COUNT + 2 * CHANGE_COUNT };

/* A class, or the declared one with a change. */
typedef struct guess {
    tt_class cls;
    const struct change *change;   /* NULL: as it is                          */
    int tile;                      /* parts are whole ones                    */
} guess;

/* Terms of a part where a sum of n terms is split. */
static int64_t classes_part(const guess *g, int64_t n)
{
    const int64_t parts = g->change->parts ? g->change->parts : 1;
    return ((n + parts - 1) / parts + g->tile - 1) / g->tile * g->tile;
}

/* Class f32: blocks of their own. */
static float float_sum(const struct change *g, const float *a, int64_t step,
                       const float *b, int64_t n)
{
    float c = -0.0f;                 /* it leaves any sum what it is */
    for (int64_t k = 0; k < n; k++)
        c = g->unfused ? c + (float)(a[k * step] * b[k])
                       : fma_f32(a[k * step], b[k], c);
    return c;
}

/* c and n products, in one part. */
static float part_sum(const guess *g, float c, const float *a, int64_t step,
                      const float *b, int64_t n)
{
    const golden_class *class = golden_class_of(g->cls);
    const tc_unit u = g->change->unit;
    const int64_t block = u.block ? u.block : class->block;
    for (int64_t k = 0; k < n; k += block) {
        const int64_t some = n - k < block ? n - k : block;
        const float *x = a + k * step;
        if (u.bits) c = tc_chain(u, c, x, step, b + k, some);
        else if (u.block && g->cls == TT_CLASS_F32)
            c += float_sum(g->change, x, step, b + k, some);
        else c = class->chain(c, x, step, b + k, some);
        if (g->change->f16) c = tt_format_round(TT_FMT_F16, c);
    }
    return c;
}

/* ---- operators that compute a guess -------------------------------------- */

/* The loops of golden tell a chain no more than what it adds: its guess is the
 * thread's, and they run in this one. */
static _Thread_local guess under_trial;

static float trial_chain(float c, const float *a, int64_t step, const float *b,
                         int64_t n)
{
    const int64_t part = classes_part(&under_trial, n);
    for (int64_t k = 0; k < n; k += part) {
        const int64_t some = n - k < part ? n - k : part;
        const float s = part_sum(&under_trial, k ? 0 : c, a + k * step, step,
                                 b + k, some);
        c = k ? c + s : s;
    }
    return c;
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
    under_trial = *g;
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
        if (changes[i].parts)
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

/* One more explanation; the same sentence once. parts: of sums, 0: as many as
 * the change says. */
static void classes_say(char *out, size_t size, const guess *g, int parts)
{
    char text[120];
    const size_t used = strlen(out);
    if (g->change)
        snprintf(text, sizeof text, g->change->what,
                 parts ? parts : g->change->parts);
    else
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
    const int n = classes_keep(h->ctx, list, guesses(list, h->cls), h->q,
                               h->got);
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
    int64_t most = 0;
    if (!g->change || !g->change->parts) return 0;
    for (int i = 0; i < c->n; i++) {
        const op_call *q = &c->link[i].q;
        if (!(links >> i & 1) || q->kind != OP_LINEAR) continue;
        const int64_t part = classes_part(g, q->c);
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
