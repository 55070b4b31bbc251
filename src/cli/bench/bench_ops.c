/* bench_ops.c: seconds of every operator at the shapes of the real model.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A case prepares its data in ctx->scratch and has two sides that take turns:
 * the operator on the exact backend, and what it is held against. For matrix
 * products that is the blas backend (and the multiply-add peak measured in the
 * same run); for the rest, the plainest loop that moves the same bytes. Before
 * every turn of these the caches are filled with something else: both sides
 * stream from and to memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench/bench.h"

typedef enum op_kind {
    LINEAR, ATTENTION, CONV, LAYER_NORM, LAYER_NORM_AFFINE, RMS_NORM,
    CHANNEL_NORM, MODULATE, GATE_ADD, ADD, MUL, GELU, SILU, ROPE, COL_MEAN,
    COL_MOMENT, COL_BLEND
} op_kind;

typedef struct bench_case {
    const char *name;
    op_kind op;
    int64_t a, b, c;       /* linear n, in, out; attention T, N, H; conv H, W,
                              C (to C channels); rows n, c                    */
    tt_stream traffic;     /* of the row and element operators                */
} bench_case;

#define HEAD_DIM 128

static const bench_case full_cases[] = {
    {"linear", LINEAR, 4680, 1536, 1536, 0},
    {"linear", LINEAR, 4680, 1536, 8960, 0},
    {"linear", LINEAR, 4680, 8960, 1536, 0},
    {"linear", LINEAR, 4680, 8960, 8960, 0},
    {"linear", LINEAR, 1560, 1536, 1536, 0},
    {"linear", LINEAR, 1560, 1536, 8960, 0},
    {"linear", LINEAR, 1560, 8960, 1536, 0},
    {"linear", LINEAR, 1560, 8960, 8960, 0},
    {"attention", ATTENTION, 4680, 32760, 2, 0},
    {"conv", CONV, 120, 832, 96, 0},
    {"conv", CONV, 60, 416, 192, 0},
    {"conv", CONV, 60, 208, 384, 0},
    {"conv", CONV, 60, 104, 384, 0},
    {"layer_norm", LAYER_NORM, 4680, 1536, 0, TT_STREAM_COPY},
    {"layer_norm affine", LAYER_NORM_AFFINE, 4680, 1536, 0, TT_STREAM_COPY},
    {"rms_norm", RMS_NORM, 4680, 1536, 0, TT_STREAM_SCALE},
    {"channel_norm", CHANNEL_NORM, 399360, 96, 0, TT_STREAM_COPY},
    {"channel_norm", CHANNEL_NORM, 24960, 384, 0, TT_STREAM_COPY},
    {"modulate", MODULATE, 4680, 1536, 0, TT_STREAM_SCALE},
    {"gate_add", GATE_ADD, 4680, 1536, 0, TT_STREAM_ADD},
    {"add", ADD, 4680, 1536, 0, TT_STREAM_ADD},
    {"mul", MUL, 512, 10240, 0, TT_STREAM_ADD},
    {"gelu_tanh", GELU, 4680, 8960, 0, TT_STREAM_SCALE},
    {"silu", SILU, 399360, 96, 0, TT_STREAM_SCALE},
    {"rope", ROPE, 4680, 1536, 0, TT_STREAM_COPY},
    {"col_mean", COL_MEAN, 4680, 1536, 0, TT_STREAM_READ},
    {"col_moment", COL_MOMENT, 4680, 1536, 0, TT_STREAM_READ},
    {"col_blend", COL_BLEND, 4680, 1536, 0, TT_STREAM_SCALE},
};

static const bench_case quick_cases[] = {
    {"linear", LINEAR, 1560, 1536, 1536, 0},
    {"attention", ATTENTION, 780, 4096, 2, 0},
    {"conv", CONV, 30, 208, 192, 0},
    {"layer_norm", LAYER_NORM, 4680, 1536, 0, TT_STREAM_COPY},
    {"channel_norm", CHANNEL_NORM, 99840, 96, 0, TT_STREAM_COPY},
    {"gelu_tanh", GELU, 1560, 8960, 0, TT_STREAM_SCALE},
    {"rope", ROPE, 4680, 1536, 0, TT_STREAM_COPY},
};

/* A case and its data, all in scratch. */
typedef struct job {
    const bench_case *c;
    tt_real *x, *y, *w;     /* element-wise operators work on x               */
    tt_tensor weights;
    tt_attention_args attention;
    tt_conv_args conv;
    const tt_real *frame[3];
    tt_rope_table table;
    int32_t *pos;
    double *mean, *gain, *target;
    tt_real *forget;        /* [BENCH_FORGET], fills the caches               */
    int64_t count;          /* values streamed                                */
    double flops;           /* of the matrix products                         */
    bench_limit top;        /* what bounds them                               */
} job;

static bool is_product(const bench_case *c)
{
    return c->op <= CONV;
}

static tt_real *bench_ops_values(tt_ctx *ctx, int64_t n, uint32_t seed)
{
    tt_real *x = tt_scratch(ctx, n);
    if (x) bench_fill(x, n, seed);
    return x;
}

/* ---- preparing ----------------------------------------------------------- */

static void prepare_product(tt_ctx *ctx, job *j)
{
    const bench_case *c = j->c;
    const tt_dtype stored = sizeof(tt_real) == 8 ? TT_F64 : TT_F32;
    if (c->op == LINEAR) {
        j->x = bench_ops_values(ctx, c->a * c->b, 1);
        j->w = bench_ops_values(ctx, c->b * c->c, 2);
        j->y = bench_ops_values(ctx, c->a * c->c, 3);
        j->weights = tt_tensor_make(j->w, stored, 2,
                                    (int64_t[]){c->c, c->b});
        j->flops = 2.0 * (double)c->a * (double)c->b * (double)c->c;
    } else if (c->op == ATTENTION) {
        int64_t wide = c->c * HEAD_DIM;
        j->x = bench_ops_values(ctx, c->a * wide, 1);
        j->w = bench_ops_values(ctx, 2 * c->b * wide, 2);
        j->y = bench_ops_values(ctx, c->a * wide, 3);
        if (ctx->status) return;
        j->attention = (tt_attention_args){
            .o = j->y, .q = j->x, .k = j->w, .v = j->w + c->b * wide,
            .T = c->a, .N = c->b, .H = c->c, .D = HEAD_DIM, .q_stride = wide,
            .kv_stride = wide, .scale = (tt_real)(1 / sqrt(HEAD_DIM))};
        j->flops = 4.0 * (double)c->a * (double)c->b * (double)wide;
    } else {
        int64_t n = c->a * c->b * c->c, k = 27 * c->c;
        j->x = bench_ops_values(ctx, 3 * n, 1);
        j->w = bench_ops_values(ctx, c->c * k, 2);
        j->y = bench_ops_values(ctx, n, 3);
        if (ctx->status) return;
        for (int i = 0; i < 3; i++) j->frame[i] = j->x + i * n;
        j->weights = tt_tensor_make(j->w, stored, 5,
                                    (int64_t[]){c->c, 3, 3, 3, c->c});
        j->conv = (tt_conv_args){
            .y = j->y, .frame = j->frame, .w = &j->weights, .Hi = c->a,
            .Wi = c->b, .Cin = c->c, .Ho = c->a, .Wo = c->b, .Cout = c->c,
            .kt = 3, .kh = 3, .kw = 3, .stride = 1, .up = 1, .pad_top = 1,
            .pad_left = 1, .by_class = ctx->ops->by_class};
        j->flops = 2.0 * (double)n * (double)k;
    }
}

static void bench_ops_prepare_rows(tt_ctx *ctx, job *j)
{
    const bench_case *c = j->c;
    j->count = c->a * c->b;
    j->x = bench_ops_values(ctx, j->count, 1);
    j->y = bench_ops_values(ctx, j->count, 2);
    j->w = bench_ops_values(ctx, 2 * c->b, 3);
    j->forget = bench_ops_values(ctx, BENCH_FORGET, 4);
    double **stat[3] = {&j->mean, &j->gain, &j->target};
    for (int i = 0; i < 3; i++) {
        *stat[i] = tt_alloc(ctx, &ctx->scratch, c->b, sizeof(double), "bench");
        for (int64_t k = 0; *stat[i] && k < c->b; k++)
            (*stat[i])[k] = (double)(k % 7) / 7;
    }
    if (c->op != ROPE) return;
    tt_rope_make(ctx, &ctx->scratch, &j->table, HEAD_DIM, 1024);
    j->pos = tt_alloc(ctx, &ctx->scratch, 3 * c->a, sizeof *j->pos, "bench");
    for (int64_t t = 0; j->pos && t < c->a; t++) {
        j->pos[3 * t] = (int32_t)(t / 1560);
        j->pos[3 * t + 1] = (int32_t)(t % 1560 / 52);
        j->pos[3 * t + 2] = (int32_t)(t % 52);
    }
}

/* ---- the two sides ------------------------------------------------------- */

static void run_op(tt_ctx *ctx, job *j)
{
    const bench_case *c = j->c;
    const int64_t n = c->a, k = c->b;
    tt_real *x = j->x, *y = j->y, *w = j->w;
    switch (c->op) {
    case LINEAR: tt_linear(ctx, y, x, n, &j->weights, NULL); break;
    case ATTENTION: tt_attention(ctx, &j->attention); break;
    case CONV: tt_conv(ctx, &j->conv); break;
    case LAYER_NORM: tt_layer_norm(ctx, y, x, n, k, NULL, NULL, 1e-6); break;
    case LAYER_NORM_AFFINE:
        tt_layer_norm(ctx, y, x, n, k, w, w + k, 1e-6);
        break;
    case RMS_NORM: tt_rms_norm(ctx, x, x, n, k, w, 1e-6); break;
    case CHANNEL_NORM: tt_channel_norm(ctx, y, x, n, k, w); break;
    case MODULATE: tt_modulate(ctx, x, n, k, w, w + k, 0, n); break;
    case GATE_ADD: tt_gate_add(ctx, x, y, n, k, w, 0, n); break;
    case ADD: tt_add(ctx, x, y, n * k); break;
    case MUL: tt_mul(ctx, x, y, n * k); break;
    case GELU: tt_gelu_tanh(ctx, x, n * k); break;
    case SILU: tt_silu(ctx, x, n * k); break;
    case ROPE:
        tt_rope(ctx, y, x, n, k / HEAD_DIM, HEAD_DIM, &j->table, j->pos);
        break;
    case COL_MEAN: tt_col_mean(ctx, j->mean, x, n, k); break;
    case COL_MOMENT: tt_col_moment(ctx, j->gain, x, j->mean, n, k); break;
    case COL_BLEND:
        tt_col_blend(ctx, x, n, k, j->mean, j->gain, j->target, 0.35);
        break;
    }
}

/* In-place operators change their data; keep it ordinary between rounds, and
 * out of the caches. */
static void refresh(tt_ctx *ctx, job *j)
{
    if (is_product(j->c)) return;
    bench_fill(j->x, j->count, 1);
    tt_machine_stream(ctx, TT_STREAM_READ, j->forget, NULL, BENCH_FORGET);
}

static double time_side(tt_ctx *ctx, const bench_settings *s, job *j,
                        const tt_ops *ops)
{
    refresh(ctx, j);
    if (ops) ctx->ops = ops;
    double start = bench_now(s);
    if (ops)
        run_op(ctx, j);
    else
        tt_machine_stream(ctx, j->c->traffic, j->x, j->y, j->count);
    return bench_now(s) - start;
}

/* ---- table --------------------------------------------------------------- */

static void shape_text(char *out, size_t size, const bench_case *c)
{
    long long a = c->a, b = c->b, d = c->c;
    if (c->op == LINEAR)
        snprintf(out, size, "%lld x %lld -> %lld", a, b, d);
    else if (c->op == ATTENTION)
        snprintf(out, size, "%lld x %lld x %d, %lld heads", a, b, HEAD_DIM, d);
    else if (c->op == CONV)
        snprintf(out, size, "%lldx%lld 3x3x3, %lld ch", a, b, d);
    else
        snprintf(out, size, "%lld x %lld", a, b);
}

static void print_head(void)
{
    printf("%-18s %-26s %3s %10s %6s %11s %7s %11s %6s %8s\n", "operator",
           "shape", "thr", "ms", "spread", "rate", "of peak", "other ms",
           "spread", "speed-up");
}

/* rate: GFLOP/s of products, GB/s of the rest; of peak: of the peak of the
 * class's instruction, or of the streaming rate; other: blas, or the streaming
 * loop. */
static void bench_ops_report(const tt_ctx *ctx, const job *j,
                             const bench_times *mine, const bench_times *other,
                             const double *peaks, json_out *out)
{
    const bench_case *c = j->c;
    char shape[64], of[32];
    shape_text(shape, sizeof shape, c);
    bool product = is_product(c);
    const double peak = peaks[j->top];
    double t = bench_median(mine), o = bench_median(other);
    double work = product ? j->flops
                          : (double)j->count * bench_stream_bytes(c->traffic);
    double share = product ? work / t / peak : o / t;
    printf("%-18s %-26s %3d %10.3f %5.1f%% %6.1f %s %6.1f%% ", c->name, shape,
           ctx->nthreads, t * 1e3, 100 * bench_spread(mine), work / t * 1e-9,
           product ? "GF/s" : "GB/s", 100 * share);
    if (other->n)
        printf("%11.3f %5.1f%% %8.2f\n", o * 1e3, 100 * bench_spread(other),
               o / t);
    else
        printf("%11s %6s %8s\n", "-", "-", "-");
    fflush(stdout);
    if (!out) return;
    json_open(out, NULL, '{');
    json_str(out, "operator", c->name);
    json_str(out, "shape", shape);
    json_int(out, "threads", ctx->nthreads);
    json_int(out, "rounds", mine->n);
    json_real(out, "ms", t * 1e3);
    json_real(out, "spread", bench_spread(mine));
    json_real(out, product ? "gflops" : "gbytes_per_s", work / t * 1e-9);
    snprintf(of, sizeof of, "of_%s_peak", bench_key(j->top));
    json_real(out, product ? of : "of_stream", share);
    if (other->n) {
        json_str(out, "other", product ? "blas" : "stream");
        json_real(out, "other_ms", o * 1e3);
        json_real(out, "other_spread", bench_spread(other));
        json_real(out, "speed_up", o / t);
    }
    json_close(out, '}');
}

static void run_case(tt_ctx *ctx, const bench_settings *s, const bench_case *c,
                     double peak[][BENCH_LIMITS], json_out *out)
{
    const tt_ops *exact = bench_backend(s, tt_ops_default()->name);
    const tt_ops *blas = bench_backend(s, "blas");
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    job j = {.c = c, .top = bench_top(exact->cls, peak[0])};
    ctx->ops = exact; /* not what the last case ended with */
    is_product(c) ? prepare_product(ctx, &j) : bench_ops_prepare_rows(ctx, &j);
    for (int i = 0; i < s->nthreads && !ctx->status; i++) {
        bench_times mine = {.n = 0}, other = {.n = 0};
        ctx->nthreads = s->threads[i];
        /* the first round warms caches and scratch and does not count */
        for (int64_t r = -1; r < s->rounds; r++) {
            if (tt_check_interrupt(ctx)) break;
            double t = time_side(ctx, s, &j, exact), o = 0;
            bool both = !is_product(c) || blas;
            if (both) o = time_side(ctx, s, &j, is_product(c) ? blas : NULL);
            if (r < 0) continue;
            bench_add(&mine, t);
            if (both) bench_add(&other, o);
        }
        if (!ctx->status)
            bench_ops_report(ctx, &j, &mine, &other, peak[i], out);
    }
    tt_arena_reset(&ctx->scratch, mark);
}

static const bench_case *all_cases(const bench_settings *s, size_t *n)
{
    *n = s->quick ? sizeof quick_cases / sizeof quick_cases[0]
                  : sizeof full_cases / sizeof full_cases[0];
    return s->quick ? quick_cases : full_cases;
}

bool bench_ops_has(const bench_settings *s)
{
    size_t n;
    const bench_case *cases = all_cases(s, &n);
    for (size_t i = 0; i < n; i++)
        if (strstr(cases[i].name, s->only)) return true;
    return false;
}

tt_status bench_ops(tt_ctx *ctx, const bench_settings *s, json_out *j)
{
    size_t n;
    const bench_case *cases = all_cases(s, &n);
    double peak[2][BENCH_LIMITS] = {{0}};
    for (int i = 0; i < s->nthreads; i++) {
        ctx->nthreads = s->threads[i];
        bench_find_peaks(ctx, s, peak[i]);
        TT_TRY(ctx->status);
        bench_print_peaks(ctx, peak[i]);
        bench_log_peaks(ctx, peak[i], j);
    }
    print_head();
    for (size_t i = 0; i < n && !ctx->status; i++)
        if (!s->only || strstr(cases[i].name, s->only))
            run_case(ctx, s, &cases[i], peak, j);
    return ctx->status;
}
