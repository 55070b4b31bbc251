/* test_gaps.c: faults that only wide heads, many rows, other numbers of
 * threads, stored weights or masks show, found by the default checks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/arith/arith.h"
#include "tests/harness.h"
#include "validate/verdict.h"

static tt_ctx *ctx;

static const tt_ops *right(void)
{
    return tt_ops_default();
}

/* QK over the first 64 channels of a head. */
static void half_head(tt_ctx *c, const tt_attention_args *p)
{
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    const int64_t n = (p->T - 1) * p->q_stride + p->H * p->D;
    tt_real *q = tt_scratch(c, n);
    tt_attention_args a = *p;
    if (!q) return;
    memcpy(q, p->q, (size_t)n * sizeof *q);
    for (int64_t i = 0; i < p->T * p->H * p->D; i++)
        if (i % p->D >= 64)
            q[i / (p->H * p->D) * p->q_stride + i % (p->H * p->D)] = 0;
    a.q = q;
    right()->attention(c, &a);
    tt_arena_reset(&c->scratch, mark);
}

/* Keys are counted in 16 bits. */
static void short_keys(tt_ctx *c, const tt_attention_args *p)
{
    tt_attention_args a = *p;
    if (a.N > 65535 && !a.rel_bias) a.N = 65535;
    right()->attention(c, &a);
}

static void late_rows(tt_ctx *c, const tt_attention_args *p)
{
    right()->attention(c, p);
    for (int64_t i = 512 * p->H * p->D; i < p->T * p->H * p->D; i++)
        p->o[i] *= (tt_real)1.01;
}

/* -inf for a hidden key: 0 / 0 when all are. */
static void no_keys(tt_ctx *c, const tt_attention_args *p)
{
    bool seen = !p->key_mask;
    right()->attention(c, p);
    for (int64_t j = 0; j < p->N && !seen; j++) seen = p->key_mask[j];
    for (int64_t i = 0; i < p->T * p->H * p->D && !seen; i++)
        p->o[i] = (tt_real)NAN;
}

static void linear_rows(tt_ctx *c, const tt_linear_args *p)
{
    right()->linear(c, p);
    for (int64_t i = 512 * p->w->dim[0]; i < p->n * p->w->dim[0]; i++)
        p->y[i] *= (tt_real)1.01;
}

/* Indices of the output are counted in 16 bits. */
static void linear_index(tt_ctx *c, const tt_linear_args *p)
{
    right()->linear(c, p);
    for (int64_t i = 65536; i < p->n * p->w->dim[0]; i++) p->y[i] = 0;
}

static void conv_index(tt_ctx *c, const tt_conv_args *p)
{
    right()->conv(c, p);
    for (int64_t i = 65536; i < p->Ho * p->Wo * p->Cout; i++) p->y[i] = 0;
}

static void no_scale(tt_ctx *c, const tt_linear_args *p)
{
    tt_tensor w = *p->w;
    tt_linear_args a = *p;
    w.scale = 0;
    a.w = &w;
    right()->linear(c, &a);
}

static void conv_no_scale(tt_ctx *c, const tt_conv_args *p)
{
    tt_tensor w = *p->w;
    tt_conv_args a = *p;
    w.scale = 0;
    a.w = &w;
    right()->conv(c, &a);
}

/* Weights go through an 8-bit format that ends at 448. */
static void clipped(tt_ctx *c, const tt_linear_args *p)
{
    const int64_t n = tt_tensor_count(p->w);
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    tt_real *w = tt_scratch(c, n);
    tt_linear_args a = *p;
    if (!w) return;
    tt_widen_at(w, p->w, 0, n);
    for (int64_t i = 0; i < n; i++)
        w[i] = w[i] > 448 ? 448 : w[i] < -448 ? -448 : w[i];
    const tt_tensor t = tt_tensor_make(w, sizeof *w == 8 ? TT_F64 : TT_F32, 2,
                                       p->w->dim);
    a.w = &t;
    right()->linear(c, &a);
    tt_arena_reset(&c->scratch, mark);
}

static void high_floor(tt_ctx *c, const tt_channel_norm_args *p)
{
    const tt_arena_mark mark = tt_arena_here(&c->scratch);
    tt_real *x = tt_scratch(c, p->n * p->c);        /* y may be x */
    if (!x) return;
    memcpy(x, p->x, (size_t)(p->n * p->c) * sizeof *x);
    right()->channel_norm(c, p);
    for (int64_t r = 0; r < p->n; r++) {
        double s = 0;
        for (int64_t i = 0; i < p->c; i++)
            s += (double)x[r * p->c + i] * (double)x[r * p->c + i];
        for (int64_t i = 0; i < p->c && sqrt(s) < 1e-6; i++)
            p->y[r * p->c + i] = (tt_real)((double)x[r * p->c + i] / 1e-6
                * sqrt((double)p->c) * (double)p->gamma[i]);
    }
    tt_arena_reset(&c->scratch, mark);
}

/* A third thread has nothing to do, and says so in the result. */
static void third_thread(tt_ctx *c, const tt_silu_args *p)
{
    right()->silu(c, p);
    if (c->nthreads > 2) p->x[p->n / 2] += 1;
}

static void threads_edge(tt_ctx *c, const tt_add_args *p)
{
    right()->add(c, p);
    if (c->nthreads == 1) p->x[p->n - 1] += 1;
}

/* The first failure of these checks, "" when all pass. */
static void check(const tt_ops *ops, const char *op, char *path, size_t size)
{
    tt_report *r = NULL;
    const tt_arith *a = tt_arith_find("f32");
    *path = 0;
    if (!expect_ok(tt_report_new(ctx, &r, "gaps", a), "report")) return;
    expect_ok(tt_opcheck(ctx, r, ops, &(tt_opcheck_options){
        .arith = a, .seed = 1, .rounds = 4, .only = op}), op);
    const tt_verdict *v = tt_report_first(r);
    if (v) snprintf(path, size, "%s: %s", v->path, v->hint);
    tt_report_free(r);
}

/* Many keys of one large logit, stored in bf16: each may be off by more than
 * an eighth, and still no key has the whole weight. */
static void check_likely_keys(void)
{
    enum { N = 1000, D = 16 };
    static tt_real q[D], k[N * D], v[N * D], o[D];
    for (int i = 0; i < D; i++) q[i] = 1;
    for (int i = 0; i < N * D; i++) {
        k[i] = (tt_real)(17.75 / D);
        v[i] = i / D * 7 % 11 < 5 ? -1 : 1;
    }
    const tt_attention_args a = {
        .o = o, .q = q, .k = k, .v = v, .T = 1, .H = 1, .N = N, .D = D,
        .q_stride = D, .kv_stride = D, .scale = 1};
    tt_ctx c = *ctx;
    const tt_ops *bounds = arith_bounds(tt_arith_find("bf16-stored"));
    c.ops = bounds;
    bounds->attention(&c, &a);
    expect(o[0] > 0.001 && o[0] < 0.1, "a thousand likely keys: %g",
           (double)o[0]);
    ctx->scratch = c.scratch;
}

/* What is checked as rows alone, and as the result of a segment. */
static void expect_of(const char *what, const double *got, const double *want,
                      const double *emul, int64_t n, int64_t c, bool rows,
                      bool segment)
{
    const tt_arith *bf16 = tt_arith_find("bf16-stored");
    tt_verdict v = {.rank = 2, .dim = {n / c, c}};
    tt_verdict_check(&v, bf16, got, want, emul, n, TT_OF_ROWS);
    expect((v.outcome == TT_PASS) == rows, "%s, rows: %g", what, v.ratio);
    tt_verdict_check(&v, bf16, got, want, emul, n, TT_OF_SEGMENT);
    expect((v.outcome == TT_PASS) == segment, "%s, segment: %g", what, v.ratio);
}

/* One channel that is off by less than what its row's largest one may err, and
 * a factor that is less than what every value may err. */
static void check_columns_and_slopes(void)
{
    enum { ROWS = 256, C = 16, N = ROWS * C };
    static double want[N], emul[N], got[N];
    for (int i = 0; i < N; i++) {
        want[i] = i % C ? sin(i * 0.7) : 100 + 20 * sin(i * 0.7);
        got[i] = emul[i] = (double)tt_format_round(TT_FMT_BF16, (float)want[i]);
    }
    expect_of("honest", got, want, emul, N, C, true, true);
    for (int i = 3; i < N; i += C) got[i] += 0.06;
    expect_of("a channel", got, want, emul, N, C, true, false);
    for (int i = 0; i < N; i++) {
        want[i] = sin(i * 0.7);
        emul[i] = (double)tt_format_round(TT_FMT_BF16, (float)want[i]);
        got[i] = (double)tt_format_round(TT_FMT_BF16, (float)(want[i] * 1.012));
    }
    expect_of("a factor", got, want, emul, N, C, true, false);
}

/* Logits are stored where results are; one that f16 cannot hold stays. */
static void check_stored_logits(void)
{
    const struct { const char *arith; tt_real q; double o; } c[] = {
        {"bf16", 1, 0.76852}, {"bf16-stored", 1, 0.73106},
        {"f16", 1000, 1}, {"f16-stored", 1000, 1}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        const tt_real q[2] = {c[i].q, c[i].q / 64}, v[4] = {1, 0, 0, 0};
        const tt_real k[4] = {101, (tt_real)12.8125, 100, 0};   /* 101.2, 100 */
        tt_real o[2];
        tt_ctx own = *ctx;
        own.ops = tt_arith_ops(tt_arith_find(c[i].arith));
        own.ops->attention(&own, &(tt_attention_args){
            .o = o, .q = q, .k = k, .v = v, .T = 1, .N = 2, .H = 1, .D = 2,
            .q_stride = 2, .kv_stride = 2, .scale = 1});
        ctx->scratch = own.scratch;
        expect(fabs((double)o[0] - c[i].o) < 0.003, "%s: %g", c[i].arith,
               (double)o[0]);
    }
}

/* The error of a row is one number, which emul has large in one row alone. */
static void check_luck(void)
{
    enum { ROWS = 64, C = 64, N = ROWS * C };
    static double want[N], emul[N], got[N];
    for (int i = 0; i < N; i++) {
        want[i] = sin(i * 0.7);
        emul[i] = want[i] + (i / C == 2 ? 0.1 : 0.004) * cos(i * 1.3);
        got[i] = want[i] + (i / C == 9 ? 0.15 : 0.004) * cos(i * 1.9);
    }
    expect_of("another row errs", got, want, emul, N, C, false, true);
    for (int i = 9 * C; i < 10 * C; i++) got[i] = want[i] + 1;
    expect_of("a wrong row", got, want, emul, N, C, false, false);
}

int main(void)
{
    tt_ops t[14];
    const struct { const char *op, *what; } fault[14] = {
        {"attention", "half of a 128-wide head"},
        {"attention", "keys beyond 65,535"},
        {"attention", "rows beyond 512"},
        {"attention", "rows without a key"},
        {"linear", "rows beyond 512"}, {"linear", "outputs beyond 65,535"},
        {"conv", "outputs beyond 65,535"}, {"linear", "scale of a weight"},
        {"conv", "scale of a weight"}, {"linear", "weights beyond 448"},
        {"channel_norm", "floor of 1e-6"}, {"silu", "more than two threads"},
        {"add", "one thread"}, {"attention", "none"}};
    char path[480];
    ctx = test_begin("validate/gaps");
    ctx->nthreads = 2;
    for (int i = 0; i < 14; i++) t[i] = *right();
    t[0].attention = half_head, t[1].attention = short_keys;
    t[2].attention = late_rows, t[3].attention = no_keys;
    t[4].linear = linear_rows, t[5].linear = linear_index;
    t[6].conv = conv_index, t[7].linear = no_scale;
    t[8].conv = conv_no_scale, t[9].linear = clipped;
    t[10].channel_norm = high_floor, t[11].silu = third_thread;
    t[12].add = threads_edge;
    for (int i = 0; i < 14; i++) {
        check(&t[i], fault[i].op, path, sizeof path);
        expect(i == 13 ? !*path : *path, "%s, %s: %s", fault[i].op,
               fault[i].what, path);
    }
    expect(ctx->nthreads == 2, "threads are as before");
    check_likely_keys();
    check_columns_and_slopes();
    check_stored_logits();
    check_luck();
    return test_end();
}
