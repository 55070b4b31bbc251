/* bench_onednn.c: linear layers of the exact backend beside oneDNN's.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * usage: bench_onednn [-t N] [--rounds N] [--quick] [--cpu] [--json FILE]
 *
 * y [n, out] = x [n, in] w^T, x and y float32, at the shapes of the model, in
 * every class. Ours has the weights as stored; oneDNN is measured
 *     plain    weights as a checkpoint stores them, [out, in]
 *     packed   weights brought into the layout it likes best beforehand, the
 *              time for that not counted
 * and in classes of bf16 factors (oneDNN: bf16, always packed)
 *     rounded  x is float32 and rounded to bf16 within the time, as ours is
 *     bare     x was rounded beforehand
 * The judge of the last two is "rounded"; "bare" is the most that oneDNN can
 * do. Built with oneDNN (versions 2 and 3) where its headers are installed:
 * package libdnnl-dev or onednn-devel. */
#include <math.h>
#include <stdio.h>

#if defined(TT_HAVE_DNNL) && !defined(TT_REAL_DOUBLE)

#include <oneapi/dnnl/dnnl.h>

#include "core/parallel.h"
#include "lib/bench_lib.h"
#include "ops/bf16.h"

/* ---- oneDNN, as little as is needed -------------------------------------- */

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void check(dnnl_status_t s, const char *what)
{
    if (s == dnnl_success) return;
    fprintf(stderr, "bench_onednn: %s failed with status %d\n", what, (int)s);
    exit(1);
}

/* Version 3 made descriptions of memory opaque; here they are what the calls
 * of the version take. */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t description;

static description describe(int64_t rows, int64_t cols, dnnl_data_type_t type,
                            dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t d;
    check(dnnl_memory_desc_create_with_tag(
              &d, 2, (dnnl_dims_t){rows, cols}, type, tag), "a description");
    return d;
}

static dnnl_primitive_desc_t plan_matmul(description x, description w,
                                         description y)
{
    dnnl_primitive_desc_t plan;
    check(dnnl_matmul_primitive_desc_create(&plan, engine, x, w, NULL, y, NULL),
          "planning a product");
    return plan;
}
#else
typedef const dnnl_memory_desc_t *description;

static description describe(int64_t rows, int64_t cols, dnnl_data_type_t type,
                            dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t *d = malloc(sizeof *d);
    if (!d) exit(1);
    check(dnnl_memory_desc_init_by_tag(d, 2, (dnnl_dims_t){rows, cols}, type,
                                       tag), "a description");
    return d;
}

static dnnl_primitive_desc_t plan_matmul(description x, description w,
                                         description y)
{
    dnnl_matmul_desc_t product;
    dnnl_primitive_desc_t plan;
    check(dnnl_matmul_desc_init(&product, x, w, NULL, y), "a product");
    check(dnnl_primitive_desc_create(&plan, &product, NULL, engine, NULL),
          "planning a product");
    return plan;
}
#endif

static dnnl_memory_t memory(description d, void *at)
{
    dnnl_memory_t m;
    check(dnnl_memory_create(&m, d, engine, at), "memory");
    return m;
}

static void run(dnnl_primitive_t p, int n, const dnnl_exec_arg_t *args)
{
    check(dnnl_primitive_execute(p, stream, n, args), "a primitive");
    check(dnnl_stream_wait(stream), "waiting");
}

static dnnl_primitive_t make_reorder(description from, description to)
{
    dnnl_primitive_desc_t plan;
    dnnl_primitive_t p;
    check(dnnl_reorder_primitive_desc_create(&plan, from, engine, to, engine,
                                             NULL), "planning a conversion");
    check(dnnl_primitive_create(&p, plan), "a conversion");
    dnnl_primitive_desc_destroy(plan);
    return p;
}

static void reorder(dnnl_primitive_t p, dnnl_memory_t from, dnnl_memory_t to)
{
    run(p, 2, (dnnl_exec_arg_t[]){{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

/* A product, ready to run, and what it was made of. */
typedef struct product {
    dnnl_primitive_t matmul, round;   /* round: x to bf16, NULL: not needed   */
    dnnl_memory_t x, xb, w, y;
} product;

/* type: of both factors. x, w, y in memory as we keep them, float32. */
static product make_product(float *x, float *w, float *y, int64_t n,
                            int64_t in, int64_t out, dnnl_data_type_t type,
                            bool packed)
{
    product p = {0};
    description dx = describe(n, in, dnnl_f32, dnnl_ab);
    description dw = describe(in, out, dnnl_f32, dnnl_ba);
    description dy = describe(n, out, dnnl_f32, dnnl_ab);
    description xt = describe(n, in, type, dnnl_ab);
    description wt = packed ? describe(in, out, type, dnnl_format_tag_any) : dw;
    dnnl_primitive_desc_t plan = plan_matmul(xt, wt, dy);
    check(dnnl_primitive_create(&p.matmul, plan), "a product");
    p.x = p.xb = memory(dx, x);
    p.w = memory(dw, w);
    p.y = memory(dy, y);
    if (packed) {
        description chosen =
            dnnl_primitive_desc_query_md(plan, dnnl_query_weights_md, 0);
        dnnl_memory_t wide = memory(chosen, DNNL_MEMORY_ALLOCATE);
        dnnl_primitive_t pack = make_reorder(dw, chosen);
        reorder(pack, p.w, wide);
        dnnl_primitive_destroy(pack);
        dnnl_memory_destroy(p.w);
        p.w = wide;
    }
    if (type != dnnl_f32) {
        p.xb = memory(xt, DNNL_MEMORY_ALLOCATE);
        p.round = make_reorder(dx, xt);
        reorder(p.round, p.x, p.xb);
    }
    dnnl_primitive_desc_destroy(plan);
    return p;
}

static void run_product(const product *p, bool round)
{
    if (round) reorder(p->round, p->x, p->xb);
    run(p->matmul, 3, (dnnl_exec_arg_t[]){{DNNL_ARG_SRC, p->xb},
                                          {DNNL_ARG_WEIGHTS, p->w},
                                          {DNNL_ARG_DST, p->y}});
}

static void drop_product(product *p)
{
    dnnl_primitive_destroy(p->matmul);
    if (p->round) dnnl_primitive_destroy(p->round);
    if (p->xb != p->x) dnnl_memory_destroy(p->xb);
    dnnl_memory_destroy(p->x);
    dnnl_memory_destroy(p->w);
    dnnl_memory_destroy(p->y);
}

/* ---- the comparison ------------------------------------------------------ */

typedef struct shape {
    int64_t n, in, out;
} shape;

/* rms of the difference over rms */
static double difference(const float *a, const float *b, int64_t n)
{
    double sum = 0, power = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)b[i];
        sum += d * d;
        power += (double)b[i] * (double)b[i];
    }
    return sqrt(sum / power);
}

typedef struct sides {
    float *x, *w, *y, *other;
    tt_tensor weights;
    product a, b;          /* f32: plain, packed; bf16: b alone, twice        */
    tt_class cls;
    bool bf16;             /* oneDNN's side: in every class but f32           */
} sides;

/* 0: ours, 1 and 2: oneDNN's two ways. */
static double time_side(tt_ctx *ctx, const bench_args *args, sides *s,
                        int64_t n, int which)
{
    double start = bench_now(args);
    if (which == 0) tt_linear(ctx, s->y, s->x, n, &s->weights, NULL);
    else if (s->bf16) run_product(&s->b, which == 1);
    else run_product(which == 1 ? &s->a : &s->b, false);
    return bench_now(args) - start;
}

static void print_row(const bench_args *args, const tt_ctx *ctx,
                      const sides *s, shape z, const times *t, double off)
{
    double ms[3], flops = 2.0 * (double)z.n * (double)z.in * (double)z.out;
    char what[48];
    for (int i = 0; i < 3; i++) ms[i] = 1e3 * times_median(&t[i]);
    snprintf(what, sizeof what, "%lld x %lld -> %lld", (long long)z.n,
             (long long)z.in, (long long)z.out);
    printf("%-5s %-22s %3d %9.2f %5.1f%% %7.1f  %9.2f %5.1f%% %8.3f  %9.2f "
           "%5.1f%% %8.3f  %8.1e\n", tt_class_name(s->cls), what,
           ctx->nthreads, ms[0], 100 * times_spread(&t[0]),
           flops / ms[0] * 1e-6, ms[1], 100 * times_spread(&t[1]),
           ms[1] / ms[0], ms[2], 100 * times_spread(&t[2]), ms[2] / ms[0], off);
    fflush(stdout);
    if (args->json)
        fprintf(args->json, "{\"class\": \"%s\", \"shape\": \"%s\", \"threads\""
                ": %d, \"rounds\": %d, \"ms\": %.4f, \"%s_ms\": %.4f, "
                "\"%s_ms\": %.4f, \"difference\": %.3e}\n",
                tt_class_name(s->cls), what, ctx->nthreads, t[0].n, ms[0],
                s->bf16 ? "rounded" : "plain", ms[1],
                s->bf16 ? "bare" : "packed", ms[2], off);
}

/* False when the two do not compute the same. */
static bool measure(tt_ctx *ctx, const bench_args *args, shape z, tt_class cls)
{
    const bool bf16 = cls != TT_CLASS_F32;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    sides s = {.cls = cls, .bf16 = bf16};
    s.x = tt_scratch(ctx, z.n * z.in);
    s.w = tt_scratch(ctx, z.in * z.out);
    s.y = tt_scratch(ctx, z.n * z.out);
    s.other = tt_scratch(ctx, z.n * z.out);
    if (ctx->status) return false;
    bench_values(s.x, z.n * z.in, 1);
    bench_values(s.w, z.in * z.out, 2);
    uint16_t *stored = NULL;
    if (bf16) {
        stored = tt_alloc(ctx, &ctx->scratch, z.in * z.out, 2, "weights");
        if (!stored) return false;
        for (int64_t i = 0; i < z.in * z.out; i++)
            stored[i] = tt_bf16_from_f32(s.w[i]);
    }
    s.weights = tt_tensor_make(bf16 ? (void *)stored : (void *)s.w,
                               bf16 ? TT_BF16 : TT_F32, 2,
                               (int64_t[]){z.out, z.in});
    ctx->ops = tt_ops_class(tt_ops_default(), cls);
#ifdef _OPENMP
    omp_set_num_threads(ctx->nthreads);   /* oneDNN's threads */
#endif
    s.b = make_product(s.x, s.w, s.other, z.n, z.in, z.out,
                       bf16 ? dnnl_bf16 : dnnl_f32, true);
    if (!bf16)
        s.a = make_product(s.x, s.w, s.other, z.n, z.in, z.out, dnnl_f32,
                           false);
    times t[3] = {{.n = 0}, {.n = 0}, {.n = 0}};
    for (int r = -1; r < args->rounds; r++)
        for (int i = 0; i < 3; i++) {
            double seconds = time_side(ctx, args, &s, z.n, i);
            if (r >= 0) times_add(&t[i], seconds);
        }
    double off = difference(s.y, s.other, z.n * z.out);
    print_row(args, ctx, &s, z, t, off);
    drop_product(&s.b);
    if (!bf16) drop_product(&s.a);
    tt_arena_reset(&ctx->scratch, mark);
    if (off < (bf16 ? 1e-4 : 1e-5)) return true; /* some classes cut off      */
    fprintf(stderr, "bench_onednn: the two sides do not compute the same\n");
    return false;
}

static void print_head(void)
{
    const dnnl_version_t *v = dnnl_version();
    char cpu[256];
    tt_cpu_features(cpu, sizeof cpu);
    printf("tether %s (%s), %s; %s; oneDNN %d.%d.%d, instruction set %#x\n",
           tt_version(), tt_git_revision(), tt_compiler(), cpu, v->major,
           v->minor, v->patch, (unsigned)dnnl_get_effective_cpu_isa());
    printf("ratios: time of oneDNN / time of exact, above 1: exact is faster. "
           "f32: plain, packed; other classes: rounded, bare\n");
    printf("%-5s %-22s %3s %9s %6s %7s  %9s %6s %8s  %9s %6s %8s  %8s\n",
           "class", "shape", "thr", "ms", "spread", "GF/s", "oneDNN", "spread",
           "ratio", "oneDNN", "spread", "ratio", "differ");
}

int main(int argc, char **argv)
{
    static const shape full[] = {
        {4680, 1536, 1536}, {4680, 1536, 8960}, {4680, 8960, 1536},
        {4680, 8960, 8960}, {1560, 1536, 1536}, {1560, 1536, 8960},
        {1560, 8960, 1536}, {1560, 8960, 8960},
    };
    static const shape quick[] = {{1560, 1536, 1536}};
    tt_ctx context, *ctx = &context;
    bench_args args;
    bool good = tt_ctx_init(ctx) == TT_OK;
    if (!good) fprintf(stderr, "bench_onednn: %s\n", tt_message(ctx));
    if (good && !bench_parse(&args, ctx->nthreads, argc, argv)) {
        fprintf(stderr, "usage: bench_onednn [-t N] [--rounds N] [--quick] "
                "[--cpu] [--json FILE]\n");
        return 2;
    }
    if (!good) return 1;
    check(dnnl_engine_create(&engine, dnnl_cpu, 0), "an engine");
    check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags),
          "a stream");
    print_head();
    const shape *z = args.quick ? quick : full;
    size_t n = args.quick ? sizeof quick / sizeof quick[0]
                          : sizeof full / sizeof full[0];
    for (size_t i = 0; i < n && good; i++)
        for (int c = 0; c < TT_CLASS_COUNT && good; c++)
            for (int t = 0; t < args.nthreads && good; t++) {
                ctx->nthreads = args.threads[t];
                good = measure(ctx, &args, z[i], (tt_class)c);
            }
    if (args.json) fclose(args.json);
    if (ctx->status) fprintf(stderr, "bench_onednn: %s\n", tt_message(ctx));
    return good ? 0 : 1;
}

#else
int main(void)
{
#ifdef TT_REAL_DOUBLE
    fprintf(stderr, "bench_onednn: compares float kernels; this build "
            "computes in double\n");
#else
    fprintf(stderr, "bench_onednn: oneDNN was not found when this program was "
            "built: install libdnnl-dev (Debian, Ubuntu) or onednn-devel and "
            "run make again\n");
#endif
    return 1;
}
#endif
