/* bench_error.c: how far float results are from float64 at real lengths.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every backend gets the same float inputs; the check computes a sample of the
 * outputs in double from those inputs. Errors are relative to the largest
 * value of the sample (max) or its root mean square (rms). */
#include <math.h>
#include <stdio.h>

#include "cli/bench/bench.h"
#include "tether/mathfn.h"
#include "rollout/rollout.h"

#define SAMPLE 4096   /* outputs of a linear layer that are checked           */
#define QUERIES 384
#define DIM 128

/* Normal values, as activations are. */
static void fill_normal(tt_real *x, int64_t n, uint32_t stream)
{
    float part[4096];
    for (int64_t i = 0; i < n; i += 4096) {
        tt_noise_frame(part, 4096, 7, 0, (uint32_t)(i / 4096), stream);
        for (int64_t k = 0; k < 4096 && i + k < n; k++)
            x[i + k] = (tt_real)part[k];
    }
}

static void bench_error_report(const char *what, const char *backend,
                               const tt_real *got, const double *want,
                               int64_t n, json_out *j)
{
    double top = 0, power = 0, worst = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double e = fabs((double)got[i] - want[i]);
        top = fmax(top, fabs(want[i]));
        power += want[i] * want[i];
        worst = e <= worst ? worst : e;
        sum += e * e;
    }
    double rms = sqrt(sum / power);
    printf("%-36s %-8s %10.2e %10.2e\n", what, backend, worst / top, rms);
    if (!j) return;
    json_open(j, NULL, '{');
    json_str(j, "case", what);
    json_str(j, "backend", backend);
    json_real(j, "max_error_over_max", worst / top);
    json_real(j, "rms_error_over_rms", rms);
    json_close(j, '}');
}

/* 64 rows x 64 outputs over K products. */
static void error_linear(tt_ctx *ctx, const bench_settings *s, int64_t K,
                         json_out *j)
{
    const int64_t n = 64, o = SAMPLE / 64;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *x = tt_scratch(ctx, n * K), *w = tt_scratch(ctx, o * K);
    tt_real *y = tt_scratch(ctx, n * o);
    double *want = tt_alloc(ctx, &ctx->scratch, n * o, sizeof *want, "bench");
    if (ctx->status) return;
    fill_normal(x, n * K, 1);
    fill_normal(w, o * K, 2);
    for (int64_t i = 0; i < n * o; i++) {
        if (i % o == 0 && tt_check_interrupt(ctx)) break;
        double sum = 0;
        for (int64_t k = 0; k < K; k++)
            sum += (double)x[i / o * K + k] * (double)w[i % o * K + k];
        want[i] = sum;
    }
    tt_tensor t = tt_tensor_make(w, sizeof(tt_real) == 8 ? TT_F64 : TT_F32, 2,
                                 (int64_t[]){o, K});
    char what[64];
    snprintf(what, sizeof what, "linear, K = %lld", (long long)K);
    for (int i = 0; i < s->nbackends; i++) {
        ctx->ops = s->backend[i];
        tt_linear(ctx, y, x, n, &t, NULL);
        if (tt_check_interrupt(ctx)) break;
        bench_error_report(what, ctx->ops->name, y, want, n * o, j);
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* One query of one head in double: logits [N] is scratch. */
static void bench_error_attend(double *o, const tt_attention_args *a, int64_t i,
                               double *logits)
{
    double top = -INFINITY, sum = 0;
    for (int64_t n = 0; n < a->N; n++) {
        double s = 0;
        for (int64_t d = 0; d < a->D; d++)
            s += (double)a->q[i * a->q_stride + d] *
                 (double)a->k[n * a->kv_stride + d];
        logits[n] = s * (double)a->scale;
        top = fmax(top, logits[n]);
    }
    for (int64_t d = 0; d < a->D; d++) o[d] = 0;
    for (int64_t n = 0; n < a->N; n++) {
        double p = tt_exp(logits[n] - top);
        sum += p;
        for (int64_t d = 0; d < a->D; d++)
            o[d] += p * (double)a->v[n * a->kv_stride + d];
    }
    for (int64_t d = 0; d < a->D; d++) o[d] /= sum;
}

/* `sharp` multiplies the queries: flat softmax, or one that picks few keys. */
static void error_attention(tt_ctx *ctx, const bench_settings *s, int64_t N,
                            double sharp, json_out *j)
{
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *q = tt_scratch(ctx, QUERIES * DIM);
    tt_real *o = tt_scratch(ctx, QUERIES * DIM);
    tt_real *k = tt_scratch(ctx, N * DIM), *v = tt_scratch(ctx, N * DIM);
    double *want = tt_alloc(ctx, &ctx->scratch, QUERIES * DIM, 8, "bench");
    double *logits = tt_alloc(ctx, &ctx->scratch, N, 8, "bench");
    if (ctx->status) return;
    fill_normal(q, QUERIES * DIM, 1);
    fill_normal(k, N * DIM, 2);
    fill_normal(v, N * DIM, 3);
    for (int64_t i = 0; i < QUERIES * DIM; i++)
        q[i] = (tt_real)((double)q[i] * sharp);
    tt_attention_args a = {.o = o, .q = q, .k = k, .v = v, .T = QUERIES,
                           .N = N, .H = 1, .D = DIM, .q_stride = DIM,
                           .kv_stride = DIM, .scale = (tt_real)(1 / sqrt(DIM))};
    for (int64_t i = 0; i < QUERIES && !tt_check_interrupt(ctx); i++)
        bench_error_attend(want + i * DIM, &a, i, logits);
    char what[64];
    snprintf(what, sizeof what, "attention, %lld keys, %s", (long long)N,
             sharp > 1 ? "sharp" : "flat");
    for (int i = 0; i < s->nbackends; i++) {
        ctx->ops = s->backend[i];
        tt_attention(ctx, &a);
        if (tt_check_interrupt(ctx)) break;
        bench_error_report(what, ctx->ops->name, o, want, QUERIES * DIM, j);
    }
    tt_arena_reset(&ctx->scratch, mark);
}

tt_status bench_error(tt_ctx *ctx, const bench_settings *s, json_out *j)
{
    int64_t keys = s->quick ? 4096 : 32760;
    printf("%-36s %-8s %10s %10s\n", "case", "backend", "max/max", "rms/rms");
    error_linear(ctx, s, 1536, j);
    if (!s->quick) error_linear(ctx, s, 8960, j);
    error_linear(ctx, s, 27 * 96, j);
    if (!s->quick) error_linear(ctx, s, 27 * 384, j);
    error_attention(ctx, s, keys, 1, j);
    error_attention(ctx, s, keys, 4, j);
    return ctx->status;
}
