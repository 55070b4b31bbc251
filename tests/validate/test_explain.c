/* test_explain.c: what mistake made a wrong tensor of a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Another program is played by our model with operators of its own, one of
 * which makes a mistake of a model: it reads other keys, turns them by other
 * places, is told another time. It writes a dump; ours runs with that given,
 * and the first tensor that differs must be the right one and be named. Where
 * bits count, the other program computes sums of a class in another way. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/folder.h"
#include "tests/validate/class_mutants.h"
#include "tests/validate/lab.h"
#include "io/io.h"

static tt_ctx *ctx;

#ifdef TT_REAL_DOUBLE
int main(void)
{
    ctx = test_begin("validate/explain");
    printf("note: dumps are explained in the float build\n");
    expect(tt_arith_find("f32") != NULL, "arithmetics");
    return test_end();
}
#else

static lab l;

/* ---- the other program --------------------------------------------------- */

typedef struct mistake {
    const char *name, *in, *tensor, *hint;
} mistake;

static const mistake list[] = {
    {"scale", "*", "chunk.0/step.0/block.0/self_attn",
     "attention: logits are not scaled"},
    {"last text row", "*", "chunk.0/step.0/block.0/cross_attn",
     "attention: the last key is dropped"},
    {"sink twice", "chunk.1/*", "chunk.1/step.0/block.0/self_attn",
     "attention: frame 0 of the 6 that attention reads counted twice (the sink)"},
    {"gap", "chunk.2/*", "chunk.2/step.0/block.0/self_attn",
     "attention: frame 1 of the 9 that attention reads not attended"},
    {"stale", "chunk.1/*", "chunk.1/step.0/block.0/self_attn",
     "attention: frame 4 of the 6 that attention reads counted twice; frame 5"},
    {"shifted", "chunk.1/*", "chunk.1/step.0/block.0/self_attn",
     "attention: frame 0 of the 6 that attention reads counted twice (the sink)"},
    {"axes", "*", "chunk.0/step.0/block.0/self_attn",
     "every rope: axes of the positions: frame, column, row"},
    {"origin", "chunk.0/*", "chunk.0/step.0/block.0/self_attn",
     "frame position off by +1"},
    {"order", "chunk.1/*", "chunk.1/step.0/block.0/self_attn",
     "positions of frame 0 are off by +2; positions of frame 2 are off by -2"},
    {"modulation", "*", "chunk.0/step.0/block.0/self_attn.q",
     "modulate: scale and shift exchanged (modulation order)"},
    {"norm", "*", "chunk.0/step.0/block.0/self_attn.q",
     "layer_norm: mean not subtracted"},
    {"gate", "*", "chunk.0/step.0/block.0/cross_attn.q",
     "gate_add: gate missing"},
    {"edited twice", "chunk.3/*",
     "chunk.3/step.4/block.0/admit.0/tame.k/c.3",
     "col_blend 1 of 2: applied twice"},
    {"sample", "*", "chunk.3/step.4/block.0/admit.0/tame.sd_k",
     "sample deviation"},
    {"time", "chunk.0/step.4*", "chunk.0/step.4/e",
     "the pass is made at time 5 where 0 belongs"},
    {"float time", "chunk.0/step.0*", "chunk.0/step.0/e",
     "the time sinusoid is computed in float32; if that is meant, declare "
     "--arith f32+time32"},
    {"gates", "chunk.0/step.0/block.0", "chunk.0/step.0/block.0/cross_attn.q",
     "gate_add: takes gate 2 of the modulation where gate 1 belongs"},
    {"pass before", "chunk.0/step.1/block.0",
     "chunk.0/step.1/block.0/self_attn",
     "K and V are stale: those of the pass before, chunk.0/step.0/block.0"},
    {"flow", "*", "chunk.0/step.0/x0", "sign of the flow: x + sigma flow"},
    {"level", "*", "chunk.0/step.1/x", "re-noised at the noise level sigma"},
    {"alpha", "*", "chunk.3/step.4/block.0/admit.0/grab.score",
     "alpha is 0.175 where 0.35 belongs"},
    {"mass", "*", "chunk.3/step.4/block.0/admit.0/grab.mass",
     "GRAB's mass: the logits have a factor of 2"},
    {"redundancy", "*", "chunk.3/step.4/block.0/admit.0/grab.div",
     "GRAB's diversity: the redundancy, not 1 less it"},
    {"own mean kept", "*", "chunk.3/step.4/block.0/admit.0/tame.k/c.3",
     "TAME: the frame's own mean is not subtracted"},
    {"head copied", "*", "chunk.0/step.0/block.0/self_attn",
     "attention: its result: every head is the one after it"},
    {"zero keys", "*", "chunk.0/step.0/block.0/self_attn",
     "attention: 14 keys of zeros are attended (padding to a multiple of 32?)"},
    {"grid", "*", "chunk.0/step.0/block.0/self_attn",
     "every rope: tokens are counted by row, frame, column"},
    {"other pairs", "*", "chunk.0/step.0/block.0/self_attn",
     "every rope: pairs have the angles of 0 0 2 3"},
};
static const mistake *planted;
static const tt_ops *ours;

static bool is(const tt_ctx *c, const char *name)
{
    return !strcmp(planted->name, name) && !fnmatch(planted->in, c->path, 0);
}

/* Keys n of a copy of K and V, row j from row from[j]. */
static void attend_rows(tt_ctx *c, const tt_attention_args *a,
                        const int64_t *from, int64_t n)
{
    const int64_t row = a->H * a->D;
    tt_attention_args own = *a;
    tt_real *k = tt_scratch(c, n * row), *v = tt_scratch(c, n * row);
    for (int64_t j = 0; v && j < n; j++) {
        memcpy(k + j * row, a->k + from[j] * a->kv_stride,
               (size_t)row * sizeof *k);
        memcpy(v + j * row, a->v + from[j] * a->kv_stride,
               (size_t)row * sizeof *v);
    }
    own.k = k, own.v = v, own.N = n, own.kv_stride = row;
    if (v) ours->attention(c, &own);
}

/* A multiple of 32 keys; those that are not there are zeros. */
static void attend_padded(tt_ctx *c, const tt_attention_args *a)
{
    const int64_t row = a->H * a->D, n = (a->N + 31) / 32 * 32;
    tt_attention_args own = *a;
    tt_real *k = tt_alloc0(c, &c->scratch, n * row, sizeof *k, "keys");
    tt_real *v = tt_alloc0(c, &c->scratch, n * row, sizeof *v, "values");
    for (int64_t j = 0; v && j < a->N; j++) {
        memcpy(k + j * row, a->k + j * a->kv_stride, (size_t)row * sizeof *k);
        memcpy(v + j * row, a->v + j * a->kv_stride, (size_t)row * sizeof *v);
    }
    own.k = k, own.v = v, own.N = n, own.kv_stride = row;
    if (v) ours->attention(c, &own);
}

/* Keys and values of the first pass, in the second. */
static void pass_before(const tt_ctx *c, tt_attention_args *a)
{
    static tt_real k[4096], v[4096];
    const int64_t n = a->N * a->kv_stride;
    if (is(c, "pass before")) {
        a->k = k, a->v = v;
    } else if (!strcmp(c->path, "chunk.0/step.0/block.0") && n <= 4096) {
        memcpy(k, a->k, (size_t)n * sizeof *k);
        memcpy(v, a->v, (size_t)n * sizeof *v);
    }
}

static void attention(tt_ctx *c, const tt_attention_args *a)
{
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    const bool self = a->N != 24;        /* rows of the prompt */
    const int64_t L = a->T / 3;
    tt_attention_args own = *a;
    int64_t *from = tt_alloc(c, &c->scratch, a->N + L, sizeof *from, "rows");
    int64_t n = 0;
    for (int64_t j = 0; from && j < a->N; j++) {
        const bool gap = self && is(c, "gap") && j / L == 1;
        if (!gap) from[n++] = j;
        if (self && is(c, "stale") && j >= a->N - L) from[n - 1] = j - L;
        if (self && is(c, "shifted") && j / L == 1) from[n - 1] = j - L;
    }
    for (int64_t j = 0; self && is(c, "sink twice") && j < L; j++)
        from[n++] = j;
    if (self && is(c, "scale")) own.scale = 1;
    if (self) pass_before(c, &own);
    if (!self && is(c, "last text row")) own.N--;
    if (n != a->N || (self && (is(c, "stale") || is(c, "shifted"))))
        attend_rows(c, &own, from, n);
    else
        ours->attention(c, &own);
    for (int64_t i = 0; self && is(c, "head copied") && i < a->T; i++)
        memcpy(a->o + i * a->H * a->D, a->o + (i * a->H + 1) * a->D,
               (size_t)a->D * sizeof *a->o);
    if (self && is(c, "zero keys")) attend_padded(c, a);
    tt_arena_reset(&c->scratch, mark);
}

static void rope(tt_ctx *c, const tt_rope_args *a)
{
    enum { L = 6 };                      /* tokens of a frame: 2 x 3 */
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    int32_t *pos = tt_alloc(c, &c->scratch, 3 * a->T, sizeof *pos, "places");
    tt_rope_args own = *a;
    for (int64_t i = 0; pos && i < a->T; i++) {
        const int32_t *p = a->pos + 3 * i;
        const bool rows = is(c, "axes");
        pos[3 * i] = p[0];
        pos[3 * i + 1] = p[rows ? 2 : 1];
        pos[3 * i + 2] = p[rows ? 1 : 2];
        if (is(c, "grid")) {
            const int64_t F = a->T / L, f = i / 3 % F;
            pos[3 * i] = a->pos[3 * f * L];
            pos[3 * i + 1] = (int32_t)(i / 3 / F);
            pos[3 * i + 2] = (int32_t)(i % 3);
        }
        if (is(c, "order") && a->T == 36 && i / L == 0)
            pos[3 * i] = a->pos[3 * (i + 2 * L)];
        if (is(c, "order") && a->T == 36 && i / L == 2)
            pos[3 * i] = a->pos[3 * (i - 2 * L)];
    }
    own.pos = pos;
    static int64_t turn;                 /* of keys, after queries         */
    for (int64_t i = 0; pos && is(c, "origin") && turn % 2 && i < a->T; i++)
        pos[3 * i]++;
    turn++;
    tt_rope_table table = *a->table;
    const int64_t half = a->D / 2, n = table.npos * half;
    double *turns = tt_alloc(c, &c->scratch, 2 * n, sizeof *turns, "a table");
    for (int64_t i = 0; turns && i < n; i++) {       /* pair 1 has pair 0's */
        const int64_t from = i % half == 1 ? i - 1 : i;
        turns[i] = table.cos[from];
        turns[n + i] = table.sin[from];
    }
    table.cos = turns, table.sin = turns ? turns + n : NULL;
    if (turns && is(c, "other pairs")) own.table = &table;
    if (pos) ours->rope(c, &own);
    tt_arena_reset(&c->scratch, mark);
}

static void modulate(tt_ctx *c, const tt_modulate_args *a)
{
    tt_modulate_args own = *a;
    if (is(c, "modulation")) own.scale = a->shift, own.shift = a->scale;
    ours->modulate(c, &own);
}

static void layer_norm(tt_ctx *c, const tt_layer_norm_args *a)
{
    const tt_rms_norm_args rms = {.y = a->y, .x = a->x, .n = a->n, .c = a->c,
                                  .w = a->w, .eps = a->eps};
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    tt_real *one = tt_scratch(c, a->c);
    tt_rms_norm_args own = rms;
    for (int64_t i = 0; one && i < a->c; i++) one[i] = 1;
    if (!own.w) own.w = one;
    if (is(c, "norm") && !a->b) ours->rms_norm(c, &own);
    else ours->layer_norm(c, a);
    tt_arena_reset(&c->scratch, mark);
}

static void col_blend(tt_ctx *c, const tt_col_blend_args *a)
{
    tt_col_blend_args own = *a;
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    double *none = tt_alloc0(c, &c->scratch, a->c, sizeof *none, "means");
    if (is(c, "own mean kept")) own.mean = none;
    if (none) ours->col_blend(c, &own);
    tt_arena_reset(&c->scratch, mark);
    if (is(c, "edited twice")) ours->col_blend(c, a);
}

static void gate_add(tt_ctx *c, const tt_gate_add_args *a)
{
    static int64_t nth;                  /* gate 1 and gate 2 in turn */
    tt_gate_add_args own = *a;
    if (is(c, "gates")) own.gate += (nth++ % 2 ? -3 : 3) * a->c;
    if (!is(c, "gate")) {
        ours->gate_add(c, &own);
        return;
    }
    for (int64_t i = 0; i < a->n * a->c; i++) a->x[i] += a->y[i];
}

/* Are these cosines and sines? */
static bool first_of_time(const tt_linear_args *a)
{
    const int64_t half = a->w->dim[1] / 2;
    int64_t k = 0;
    while (k < half && fabs(pow((double)a->x[k], 2)
                            + pow((double)a->x[half + k], 2) - 1) < 1e-5) k++;
    return k == half;
}

/* A sinusoid by the float functions of the C library. */
static void float_waves(tt_real *x, const tt_real *right, int64_t half)
{
    const double last = pow(10000, -(double)(half - 1) / (double)half);
    const float t = (float)rint(atan2((double)right[2 * half - 1],
                                      (double)right[half - 1]) / last);
    for (int64_t k = 0; k < half; k++) {
        const float at = t * expf(-logf(10000) * (float)k / (float)half);
        x[k] = (tt_real)cosf(at);
        x[half + k] = (tt_real)sinf(at);
    }
}

/* The time embedding's first layer is told another time. */
static void linear(tt_ctx *c, const tt_linear_args *a)
{
    const int64_t n = a->w->dim[1], half = n / 2;
    tt_linear_args own = *a;
    tt_real x[512];
    const bool sinusoid = a->n == 1 && n <= 512 && a->x[0] == 1
                          && a->x[half] == 0;
    if (is(c, "time") && sinusoid) {
        for (int64_t k = 0; k < half; k++) {
            const double at = 5 * pow(10000, -(double)k / (double)half);
            x[k] = (tt_real)cos(at);
            x[half + k] = (tt_real)sin(at);
        }
        own.x = x;
    }
    if (is(c, "float time") && a->n == 1 && n <= 512 && first_of_time(a)) {
        float_waves(x, a->x, half);
        own.x = x;
    }
    ours->linear(c, &own);
}

/* ---- runs ---------------------------------------------------------------- */

static tt_file *given;

static double seen[2][4096];             /* the latest x0 or mass, and x */

/* What a mistake makes of a tensor that no operator of ours is asked for. */
static bool spoil(double *y, const double *x, const char *path, int64_t n)
{
    const char *name = planted->name, *last = strrchr(path, '/');
    const bool here = !strcmp(path, planted->tensor);
    bool any = true;
    for (int64_t i = 0; i < n; i++) {
        if (here && !strcmp(name, "sample")) y[i] = x[i] * sqrt(30.0 / 29);
        else if (here && !strcmp(name, "redundancy")) y[i] = 1 - x[i];
        else if (here && !strcmp(name, "flow")) y[i] = 2 * seen[1][i] - x[i];
        else if (here && !strcmp(name, "level"))
            y[i] = 1.1 * x[i] - 0.1 * seen[0][i];
        else if (here && !strcmp(name, "alpha"))
            y[i] = (x[i] + seen[0][i]) / 2;
        else if (here && !strcmp(name, "mass"))
            y[i] = x[i] * x[i];
        else any = false;
    }
    double sum = 0;
    for (int64_t i = 0; any && i < n; i++) sum += y[i];
    for (int64_t i = 0; any && !strcmp(name, "mass") && i < n; i++)
        y[i] /= sum;
    if (last && (!strcmp(last, "/x0") || !strcmp(last, "/grab.mass")))
        memcpy(seen[0], x, (size_t)n * sizeof *x);
    if (last && !strcmp(last, "/x")) memcpy(seen[1], x, (size_t)n * sizeof *x);
    return any;
}

static void write_tensor(void *user, const char *path, tt_dtype dtype, int rank,
                         const int64_t *dim, const void *data)
{
    static double x[4096], y[4096];
    static float single[4096];
    int64_t n = 1;
    /* chunks after the one with the mistake show nothing more */
    if (!strncmp(path, "chunk.", 6) && path[6] > planted->tensor[6]) l.stop = 1;
    for (int i = 0; i < rank; i++) n *= dim[i];
    const bool real = dtype == TT_F32 || dtype == TT_F64;
    for (int64_t i = 0; real && n <= 4096 && i < n; i++)
        x[i] = dtype == TT_F64 ? ((const double *)data)[i]
                               : (double)((const float *)data)[i];
    if (!given && real && n <= 4096 && spoil(y, x, path, n)) {
        for (int64_t i = 0; i < n; i++) single[i] = (float)y[i];
        data = dtype == TT_F64 ? (const void *)y : single;
    }
    tt_st_add(user, path, dtype, rank, dim, data);
}

static void give(void *user, const char *path, tt_dtype dtype, int rank,
                 const int64_t *dim, void *data)
{
    const tt_entry *e = tt_file_find(given, path);
    (void)user, (void)rank, (void)dim;
    if (e && e->t.dtype == dtype)
        memcpy(data, e->t.data, (size_t)tt_tensor_bytes(&e->t));
}

/* A rollout on these operators into a dump; with `theirs` given. */
static void run(const tt_ops *ops, const char *out, const char *theirs)
{
    tt_st_writer *w;
    const tt_ops *before = ctx->ops;
    if (!expect_ok(tt_st_create(ctx, &w, out), out)) return;
    given = NULL;
    if (theirs) expect_ok(tt_file_open(ctx, &given, theirs), theirs);
    ctx->ops = ops;
    ctx->tap = write_tensor;
    ctx->tap_user = w;
    ctx->inject = theirs ? give : NULL;
    l.stop = 0;
    ctx->interrupt = &l.stop;
    lab_rollout(&l);
    ctx->interrupt = NULL;
    if (ctx->status == TT_EINTR) tt_clear(ctx);
    ctx->ops = before;
    ctx->tap = NULL;
    ctx->inject = NULL;
    ctx->path[0] = 0;
    expect_ok(tt_st_finish(w), out);
    if (given) tt_file_close(given);
}

/* Their dump against ours in that arithmetic. */
static void check_named(const mistake *m, const tt_ops *theirs,
                        const tt_arith *arith)
{
    tt_report *r = NULL;
    tt_explain *e = NULL;
    planted = m;
    run(theirs, at("theirs"), NULL);
    run(tt_ops_class(tt_ops_default(), arith->cls), at("ours"), at("theirs"));
    if (!expect_ok(tt_report_new(ctx, &r, m->name, arith), "r")) return;
    expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
        .got = at("theirs"), .want = at("ours"), .arith = arith,
        .injected = true}), m->name);
    expect_ok(tt_explain_open(ctx, &e, r, tt_report_first(r),
                              at("theirs")), m->name);
    if (e) run(tt_explain_ops(e), at("again"), at("theirs"));
    tt_explain_close(e, r);
    const tt_verdict *v = tt_report_first(r);
    expect(v && !strcmp(v->path, m->tensor) && strstr(v->hint, m->hint),
           "%s: %s with '%s' expected, not %s: %s", m->name, m->tensor, m->hint,
           v ? v->path : "a pass", v ? v->hint : "");
    tt_report_free(r);
}

static void check(const mistake *m, const tt_arith *arith)
{
    ours = tt_ops_class(tt_ops_default(), arith->cls);
    tt_ops theirs = *ours;
    theirs.attention = attention, theirs.rope = rope;
    theirs.modulate = modulate, theirs.layer_norm = layer_norm;
    theirs.gate_add = gate_add, theirs.linear = linear;
    theirs.col_blend = col_blend;
    check_named(m, &theirs, arith);
}

/* ---- every bit of a class ------------------------------------------------ */

/* Mutants of class_mutants.h, and one of class f32. */
static const mistake sums[] = {
    {"SM90_SPLIT", "*", "chunk.0/step.0/e",
     "linear: split-K: sums of 2 parts are added in float32"},
    {"SM80_SPLIT", "*/block.0", "chunk.0/step.0/block.0/self_attn.q",
     "linear: split-K: sums of 3 parts are added in float32"},
    {"VDP_SPLIT", "*/block.1", "chunk.0/step.0/block.1/self_attn.q",
     "linear: split-K: sums of 2 parts are added in float32"},
    {"SM90_BITS", "*", "chunk.0/step.0/e",
     "linear: 24 fraction bits where 25 belong"},
    {"SM90_AMPERE", "*", "chunk.0/step.0/e", "linear: it computes class sm80"},
    {"F32_SPLIT", "*", "chunk.0/step.0/e",
     "linear: split-K: sums of 2 parts are added in float32"},
    /* one layer of the FFN alone */
    {"SM90_F16", "ffn.0", "chunk.0/step.0/block.0/ffn",
     "linear 1 of 2: sums are kept in f16"},
    {"SM90_F16", "ffn.2", "chunk.0/step.0/block.0/ffn",
     "linear 2 of 2: sums are kept in f16"},
};

static void class_linear(tt_ctx *c, const tt_linear_args *a)
{
    enum { FFN_DIM = 208 };
    const tt_ops *theirs = c->ops;
    if (!strcmp(planted->in, "ffn.0") ? a->w->dim[0] == FFN_DIM
        : !strcmp(planted->in, "ffn.2") ? a->w->dim[1] == FFN_DIM
        : !fnmatch(planted->in, c->path, 0)) {
        class_mutant_linear(c, a);
        return;
    }
    c->ops = tt_ops_class(tt_ops_default(), theirs->cls);
    c->ops->linear(c, a);
    c->ops = theirs;
}

/* Two parts, whole tiles of 16 and at most 256 terms, each a chain. */
static void split_linear(tt_ctx *c, const tt_linear_args *a)
{
    const int64_t o = a->w->dim[0], n = a->w->dim[1];
    const int64_t first = (n + 31) / 32 * 16;
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    tt_real *w = tt_scratch(c, o * n);
    if (w) tt_widen_at(w, a->w, 0, o * n);
    for (int64_t i = 0; w && i < a->n * o; i++) {
        float s[2] = {0, 0};
        for (int64_t k = 0; k < n; k++)
            s[k >= first] = fmaf(a->x[i / o * n + k], w[i % o * n + k],
                                 s[k >= first]);
        a->y[i] = s[0] + s[1] + (a->b ? a->b[i % o] : 0);
    }
    tt_arena_reset(&c->scratch, mark);
}

static void check_sums(const mistake *m)
{
    tt_ops theirs = *tt_ops_default();
    theirs.linear = split_linear;
    if (!strcmp(m->name, "F32_SPLIT"))
        check_named(m, &theirs, tt_arith_bits(tt_arith_find("f32")));
    for (int i = 0; i < CLASS_MUTANTS; i++) {
        const class_mutant *fault = &class_mutants[i];
        if (strcmp(fault->name, m->name) || !class_mutant_table(&theirs, fault))
            continue;
        theirs.linear = class_linear;
        check_named(m, &theirs, tt_arith_bits(tt_arith_find(fault->cls)));
    }
}

int main(int argc, char **argv)
{
    ctx = test_begin("validate/explain");
    const tt_arith *f32 = tt_arith_find("f32");
    const tt_arith *vdp = tt_arith_bits(tt_arith_find("vdp"));
    const bool ready = folder_make() && lab_open(&l, ctx);
    for (size_t i = 0; ready && i < sizeof list / sizeof *list; i++) {
        if (argc > 1 && strcmp(argv[1], list[i].name)) continue;
        check(&list[i], f32);
        if (i % 4 == 0) check(&list[i], vdp);
    }
    for (size_t i = 0; ready && i < sizeof sums / sizeof *sums; i++)
        if (argc < 2 || !strcmp(argv[1], sums[i].name)) check_sums(&sums[i]);
    lab_close(&l);
    folder_remove();
    return test_end();
}
#endif
