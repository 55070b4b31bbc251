/* bench_attention.c: our attention beside one made of OpenBLAS products.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * usage: bench_attention [-t N] [--rounds N] [--quick] [--cpu] [--json FILE]
 *
 * The other side is written the way one would with a good BLAS and time to
 * tune: for every tile of queries and block of keys S = Q K^T (sgemm), a
 * running maximum and exponentials in vectors (the vector exp of our own
 * kernels; this file is compiled for the CPU it is built on), O += P V (sgemm);
 * tiles are shared out to threads, OpenBLAS itself runs on one. Both block
 * sizes are chosen by trying them with all keys. (The blas backend is the same
 * with a scalar exp.) OPENBLAS_CORETYPE chooses OpenBLAS's kernels as always;
 * what it takes by itself may be far from the best of a CPU newer than it. */
#include <float.h>
#include <math.h>

#include "core/parallel.h"
#include "ops/blas/openblas.h"
#include "ops/exact/kernels_vector.h"
#include "lib/bench_lib.h"
#include "core/threads.h"

#ifndef TT_REAL_DOUBLE

#define TILE_FLOATS ((int64_t)4 << 20) /* of S, at most: 16 MB a thread */
#define TILE_MAX 768                   /* queries */
#define TUNE_QUERIES 1536              /* a multiple of all sizes tried */

typedef struct blocks {
    int64_t queries, keys;
} blocks;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static float exp_one(float x)
{
    vs v = vs_all(x);
    vs_exp(&v, 1);
    return v[0];
}

/* ---- the softmax of one row, online -------------------------------------- */

#define CHAINS 4 /* vectors taken side by side */

static float row_max(const float *s, int64_t n, float top)
{
    vs t[CHAINS];
    int64_t j = 0;
    for (int i = 0; i < CHAINS; i++) t[i] = vs_all(top);
    for (; j + CHAINS * VS <= n; j += CHAINS * VS)
        UNROLL
        for (int i = 0; i < CHAINS; i++)
            t[i] = VS_MORE(vs_load(s + j + i * VS), t[i]);
    t[0] = VS_MORE(VS_MORE(t[0], t[1]), VS_MORE(t[2], t[3]));
    for (int i = 0; i < VS; i++) top = t[0][i] > top ? t[0][i] : top;
    for (; j < n; j++) top = s[j] > top ? s[j] : top;
    return top;
}

/* s = exp(s - top); returns the sum. */
static float row_exp(float *s, int64_t n, float top)
{
    vs sum[CHAINS] = {{0}}, p[CHAINS];
    float all = 0;
    int64_t j = 0;
    for (; j + CHAINS * VS <= n; j += CHAINS * VS)
    {
        EACH(CHAINS) p[i] = vs_load(s + j + i * VS) - top;
        vs_exp(p, CHAINS);
        EACH(CHAINS) vs_store(s + j + i * VS, p[i]);
        EACH(CHAINS) sum[i] += p[i];
    }
    sum[0] += sum[1] + (sum[2] + sum[3]);
    for (int i = 0; i < VS; i++) all += sum[0][i];
    for (; j < n; j++) {
        s[j] = exp_one(s[j] - top);
        all += s[j];
    }
    return all;
}

/* m, l: running maximum and sum of a row; o [D] what was accumulated. */
static void row_soften(float *s, int64_t n, float *m, float *l, float *o,
                       int64_t D)
{
    float top = row_max(s, n, *m);
    if (top > *m) {
        float alpha = exp_one(*m - top);
        for (int64_t d = 0; d < D; d++) o[d] *= alpha;
        *l *= alpha;
        *m = top;
    }
    *l += row_exp(s, n, top);
}

/* ---- attention ----------------------------------------------------------- */

/* Queries [i0, i0 + size.queries) of head h, as far as they are there; room
 * for their maxima, sums and scores. */
static void attend_tile(const openblas *lib, const tt_attention_args *a,
                        blocks size, int64_t h, int64_t i0, float *room)
{
    float *m = room, *l = m + TILE_MAX, *s = l + TILE_MAX;
    int64_t D = a->D, wide = a->H * D, n = least(a->T - i0, size.queries);
    float *o = a->o + i0 * wide + h * D;
    for (int64_t i = 0; i < n; i++) {
        m[i] = -FLT_MAX;
        l[i] = 0;
        memset(o + i * wide, 0, (size_t)D * sizeof *o);
    }
    for (int64_t j0 = 0; j0 < a->N; j0 += size.keys) {
        int64_t nk = least(a->N - j0, size.keys);
        lib->gemm(ROW_MAJOR, NO_TRANS, TRANS, (int)n, (int)nk, (int)D,
                  a->scale, a->q + i0 * a->q_stride + h * D, (int)a->q_stride,
                  a->k + j0 * a->kv_stride + h * D, (int)a->kv_stride, 0, s,
                  (int)nk);
        for (int64_t i = 0; i < n; i++)
            row_soften(s + i * nk, nk, &m[i], &l[i], o + i * wide, D);
        lib->gemm(ROW_MAJOR, NO_TRANS, NO_TRANS, (int)n, (int)D, (int)nk, 1, s,
                  (int)nk, a->v + j0 * a->kv_stride + h * D, (int)a->kv_stride,
                  1, o, (int)wide);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = 0; d < D; d++) o[i * wide + d] /= l[i];
}

static void blas_attention(tt_ctx *ctx, const tt_attention_args *a,
                           blocks size)
{
    const openblas *lib = openblas_get(ctx);
    int64_t tiles = (a->T + size.queries - 1) / size.queries;
    int64_t per = size.queries * least(size.keys, a->N) + 2 * TILE_MAX;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *all = tt_scratch(ctx, per * ctx->nthreads);
    if (all) {
        lib->set_num_threads(1);
        TT_PARALLEL_FOR_DYNAMIC(ctx, TT_SMALL_WORK + 1)
        for (int64_t u = 0; u < tiles * a->H; u++) {
            attend_tile(lib, a, size, u / tiles, u % tiles * size.queries,
                        all + per * tt_thread_id());
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

static double time_blas(tt_ctx *ctx, const bench_args *args,
                        const tt_attention_args *a, blocks size)
{
    double start = bench_now(args);
    blas_attention(ctx, a, size);
    return bench_now(args) - start;
}

/* The faster of two runs of every pair of sizes with the first queries of the
 * problem; prints what it finds. */
static blocks tune(tt_ctx *ctx, const bench_args *args,
                   const tt_attention_args *whole)
{
    tt_attention_args part = *whole, *a = &part;
    static const int64_t queries[] = {64, 128, 192, 256, 384, 512, 768};
    static const int64_t keys[] = {256, 512, 1024, 2048, 4096, INT32_MAX};
    blocks best = {0};
    double least_time = INFINITY;
    a->T = least(whole->T, TUNE_QUERIES * ctx->nthreads);
    printf("block sizes of the other side, ms with %d thread%s (queries down, "
           "keys across):\n%8s", ctx->nthreads, ctx->nthreads > 1 ? "s" : "",
           "");
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
        printf("%9lld", (long long)least(keys[k], a->N));
    for (size_t q = 0; q < sizeof queries / sizeof queries[0]; q++) {
        printf("\n%8lld", (long long)queries[q]);
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            blocks size = {queries[q], least(keys[k], a->N)};
            if (size.queries * size.keys > TILE_FLOATS) {
                printf("%9s", "-");
                continue;
            }
            double t = time_blas(ctx, args, a, size);
            double again = time_blas(ctx, args, a, size);
            t = again < t ? again : t;
            printf("%9.1f", t * 1e3);
            fflush(stdout);
            if (t < least_time) {
                least_time = t;
                best = size;
            }
        }
    }
    printf("\n");
    return best;
}

/* The largest difference over the largest value. */
static double difference(const float *a, const float *b, int64_t n)
{
    double worst = 0, top = 0;
    for (int64_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        top = fmax(top, fabs((double)b[i]));
    }
    return worst / top;
}

/* ---- one number of threads ----------------------------------------------- */

static bool measure(tt_ctx *ctx, const bench_args *args, tt_attention_args *a)
{
    int64_t count = a->T * a->H * a->D;
    float *ours = tt_scratch(ctx, count), *theirs = tt_scratch(ctx, count);
    if (ctx->status) return false;
    double peak = bench_fma_peak(ctx, args);
    double flops = 4.0 * (double)(a->T * a->N) * (double)(a->H * a->D);
    a->o = theirs;
    blocks size = tune(ctx, args, a);
    times mine = {.n = 0}, other = {.n = 0};
    for (int r = -1; r < args->rounds; r++) {
        double start = bench_now(args);
        a->o = ours;
        tt_attention(ctx, a);
        double t = bench_now(args) - start;
        a->o = theirs;
        double o = time_blas(ctx, args, a, size);
        if (r < 0) continue;   /* warms caches, does not count */
        times_add(&mine, t);
        times_add(&other, o);
    }
    double t = times_median(&mine), o = times_median(&other);
    double off = difference(ours, theirs, count);
    printf("%d thread%s: exact %.1f ms (spread %.1f%%), %.1f GF/s, %.1f%% of "
           "the multiply-add peak of %.1f; OpenBLAS-based, %lld queries x %lld "
           "keys, %.1f ms (%.1f%%), %.1f GF/s; speed-up %.2f; results differ "
           "by %.1e\n", ctx->nthreads, ctx->nthreads > 1 ? "s" : "", t * 1e3,
           100 * times_spread(&mine), flops / t * 1e-9, 100 * flops / t / peak,
           peak * 1e-9, (long long)size.queries, (long long)size.keys, o * 1e3,
           100 * times_spread(&other), flops / o * 1e-9, o / t, off);
    if (args->json)
        fprintf(args->json, "{\"operator\": \"attention\", \"T\": %lld, \"N\": "
                "%lld, \"H\": %lld, \"D\": %lld, \"threads\": %d, \"rounds\": "
                "%d, \"ms\": %.3f, \"spread\": %.4f, \"of_fma_peak\": %.4f, "
                "\"other_ms\": %.3f, \"other_spread\": %.4f, \"queries\": %lld,"
                " \"keys\": %lld, \"speed_up\": %.4f}\n", (long long)a->T,
                (long long)a->N, (long long)a->H, (long long)a->D,
                ctx->nthreads, mine.n, t * 1e3, times_spread(&mine),
                flops / t / peak, o * 1e3, times_spread(&other),
                (long long)size.queries, (long long)size.keys, o / t);
    if (off < 1e-4) return true;
    fprintf(stderr, "bench_attention: the two sides do not compute the same\n");
    return false;
}

int main(int argc, char **argv)
{
    tt_ctx context, *ctx = &context;
    bench_args args;
    tt_threads_sleep();
    if (tt_ctx_init(ctx)) {
        fprintf(stderr, "bench_attention: %s\n", tt_message(ctx));
        return 1;
    }
    if (!bench_parse(&args, ctx->nthreads, argc, argv)) {
        const bool asked = argc == 2 && !strcmp(argv[1], "--help");
        fprintf(asked ? stdout : stderr, "usage: bench_attention [-t N] "
                "[--rounds N] [--quick] [--cpu] [--json FILE]\n");
        return asked ? 0 : 2;
    }
    const openblas *lib = openblas_get(ctx);
    if (!lib) {
        fprintf(stderr, "bench_attention: nothing to compare with: %s\n",
                tt_message(ctx));
        return 1;
    }
    printf("tether %s (%s); %s, kernels %s\n", tt_version(), tt_git_revision(),
           lib->get_config(), lib->get_corename());
    tt_attention_args a = {.T = args.quick ? 780 : 4680, .H = 1, .D = 128,
                           .N = args.quick ? 4096 : 32760};
    a.q_stride = a.kv_stride = a.H * a.D;
    a.scale = (float)(1 / sqrt((double)a.D));
    float *q = tt_scratch(ctx, a.T * a.q_stride);
    float *k = tt_scratch(ctx, a.N * a.kv_stride);
    float *v = tt_scratch(ctx, a.N * a.kv_stride);
    if (v) {
        bench_values(q, a.T * a.q_stride, 1);
        bench_values(k, a.N * a.kv_stride, 2);
        bench_values(v, a.N * a.kv_stride, 3);
    }
    a.q = q, a.k = k, a.v = v;
    bool good = !ctx->status;
    for (int i = 0; i < args.nthreads && good; i++) {
        ctx->nthreads = args.threads[i];
        good = measure(ctx, &args, &a);
    }
    if (args.json) fclose(args.json);
    if (ctx->status) fprintf(stderr, "bench_attention: %s\n", tt_message(ctx));
    return good ? 0 : 1;
}

#else
int main(void)
{
    fprintf(stderr, "bench_attention: compares float kernels; this build "
            "computes in double\n");
    return 1;
}
#endif
