/* bench_chunk.c: seconds and memory of one steady-state chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The chunk is that of `tether bench pass` (src/cli/bench/steady.h), with more
 * to be chosen, and parts of it that are measured alone. Policies are given as
 * to `tether compare`: "tether", "tether:tau=0.6:pool=frame". Without -m
 * weights are generated, of --layers layers.
 *
 * --keep-keys 1 keeps rotated keys from pass to pass, as `tether generate
 * --keep-keys yes` does; --kv-dir FOLDER has the cache in files.
 *
 * --serve 1 measures when it is asked, for tools/bench/compare.py, which lets
 * programs take turns: once it has said "ready", every line of the standard
 * input is a unit of work and its answer is one line of wall and CPU seconds.
 *   layer             block 0 alone in a noisy pass, with its cache
 *   linear ROWS W N   one of N products by W of block 0: q, ffn0, ffn2
 *   peak              in place of seconds, GFLOP of multiply-adds in each
 *
 * --cache-only N measures what the policy does, without the network: N chunks
 * of `passes` passes with random queries, keys and values. What it takes then
 * is a few hundredths of a second per layer, too little to be told from noise
 * within a whole chunk. CPU seconds are those of all threads; with -t 1 they
 * mean something on a busy machine as well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/steady.h"
#include "dit/model.h"
#include "lib/bench_lib.h"

/* LAYERS  of the 1.3B model */
enum { CHUNK = STEADY_CHUNK, REPEATS_MAX = 100, LAYERS = 30 };

static const char usage[] =
    "usage: bench_chunk [-m DIR|FILE] [--layers 30] [-W 832] [-H 480]\n"
    "                   [--cache POLICY]\n"
    "                   [--budget 21] [--passes 1..5] [-t N] [--backend NAME]\n"
    "                   [--class NAME] [--heads N] [--prime 2] [--admit 0|1]\n"
    "                   [--cache-only N] [--profile 0|1] [--keep-keys 0|1]\n"
    "                   [--kv-dir FOLDER] [--serve 0|1]\n"
    "POLICY  a name, then :OPTION=VALUE for sink, recent, memory, alpha, tau,\n"
    "        pool, compress-to, fusion, memrope-method, adaptive\n";

typedef struct bench {
    steady of;
    int passes;
    bool profile;            /* operators are timed one by one                */
    bool serve;              /* work is asked for on the standard input       */
} bench;

static int die(tt_ctx *ctx)
{
    fprintf(stderr, "bench_chunk: %s\n", tt_message(ctx));
    return 1;
}

/* ---- what is printed ----------------------------------------------------- */

/* Peak resident bytes so far, and the anonymous share now (the rest is the
 * mapped checkpoint, which the system can drop at any time). */
static void print_memory(void)
{
    const steady_memory m = steady_held();
    printf("memory: peak resident %.2f GB; at the end %.2f GB anonymous, "
           "%.2f GB mapped files\n", 1e-9 * (double)m.peak,
           1e-9 * (double)m.anonymous, 1e-9 * (double)m.mapped);
}

static void print_profile(const tt_ctx *ctx, double total)
{
    printf("%-14s %10s %7s %8s %10s\n", "operator", "seconds", "share", "calls",
           "GFLOP/s");
    double named = 0;
    for (int i = 0; i < TT_PROFILE_ROWS && ctx->profile[i].name; i++) {
        const tt_profile_row *r = &ctx->profile[i];
        named += r->seconds;
        printf("%-14s %10.6f %6.2f%% %8lld", r->name, r->seconds,
               100 * r->seconds / total, (long long)r->calls);
        if (r->flops > 0) printf(" %10.1f", r->flops / r->seconds * 1e-9);
        printf("\n");
    }
    printf("%-14s %10.6f %6.2f%%\n", "the rest", total - named,
           100 * (total - named) / total);
}

static double policy_seconds(const tt_ctx *ctx)
{
    for (int i = 0; i < TT_PROFILE_ROWS && ctx->profile[i].name; i++)
        if (!strcmp(ctx->profile[i].name, "cache policy"))
            return ctx->profile[i].seconds;
    return 0;
}

/* What is kept besides the slots, in chunks of keys and values. What all layers
 * share is as large with LAYERS layers as with the few of this model. */
static void print_state(const steady *b)
{
    const tt_policy_class *cls = tt_cache_class(b->cache);
    const tt_policy_options *o = tt_cache_options(b->cache);
    const tt_geometry *g = &b->geo;
    const double own = (double)tt_cache_layer(b->cache, 0)->state_size;
    const double all = cls->shared_size ? (double)cls->shared_size(o, g) : 0;
    const double chunk = 2.0 * (double)(CHUNK * g->L * g->H * g->D)
                       * sizeof(tt_real);
    printf("beyond the slots: %.3f MB per layer and %.3f MB shared by all; of "
           "a chunk's keys and values %.4f and, in %d layers, %.4f: %.4f\n",
           own / 1e6, all / 1e6, own / chunk, LAYERS, all / chunk / LAYERS,
           (own + all / LAYERS) / chunk);
}

/* ---- chunks ------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure_cache(bench *all)
{
    double wall[REPEATS_MAX], cpu[REPEATS_MAX];
    int64_t before[3], after[3];
    steady *b = &all->of;
    const int n = b->chunks, passes = all->passes;
    steady_decisions(b, before);
    for (int i = 0; i < n && !b->ctx->status; i++) {
        const double begin = steady_cpu();
        wall[i] = 0;
        for (int j = 0; j < passes; j++)
            wall[i] += steady_pass(b, j, j == passes - 1);
        cpu[i] = steady_cpu() - begin;
        steady_advance(b);
    }
    if (b->ctx->status) return;
    steady_decisions(b, after);
    qsort(wall, (size_t)n, sizeof *wall, ascending);
    qsort(cpu, (size_t)n, sizeof *cpu, ascending);
    printf("cache only, %d chunks of %d passes, %d threads: median %.4f s, "
           "least %.4f s; CPU median %.4f s, least %.4f s\n"
           "frames per chunk: %.2f admitted, %.2f rejected, %.2f edited\n",
           n, passes, b->ctx->nthreads, wall[n / 2], wall[0], cpu[n / 2],
           cpu[0], (double)(after[0] - before[0]) / n,
           (double)(after[1] - before[1]) / n,
           (double)(after[2] - before[2]) / n);
}

/* Of what the last noisy pass gave: equal on every machine, in a class. */
static void print_digest(bench *b)
{
    char sha[65];
    tt_ctx *ctx = b->of.ctx;
    if (b->passes > 1 && steady_digest(&b->of, sha) == TT_OK)
        printf("flow %s %s\n", tt_class_name(ctx->ops->cls), sha);
}

static void measure(bench *b)
{
    tt_ctx *ctx = b->of.ctx;
    int64_t before[3], after[3];
    double all = 0, begin = steady_cpu();
    steady_decisions(&b->of, before);
    ctx->profiling = b->profile;
    for (int j = 0; j < b->passes && !ctx->status; j++) {
        const bool clean = j == b->passes - 1;
        const double t = steady_pass(&b->of, j, clean);
        printf("pass %d%s: %.5f s\n", j, clean ? " (clean)" : "", t);
        fflush(stdout);
        all += t;
    }
    if (ctx->status) return;
    steady_decisions(&b->of, after);
    print_digest(b);
    printf("chunk of %d passes: %.3f s (CPU %.1f s) with backend %s, %d "
           "threads\n", b->passes, all, steady_cpu() - begin, ctx->ops->name,
           ctx->nthreads);
    if (b->profile) print_profile(ctx, all);
    printf("cache policy: %.4f s, %.3f %% of the chunk; %lld frames admitted, "
           "%lld rejected, %lld edited\n", policy_seconds(ctx),
           100 * policy_seconds(ctx) / all, (long long)(after[0] - before[0]),
           (long long)(after[1] - before[1]),
           (long long)(after[2] - before[2]));
}

/* ---- --serve ------------------------------------------------------------- */

static void answer(double wall, double cpu)
{
    printf("%.9f %.9f\n", wall, cpu);
    fflush(stdout);
}

/* Patches, time and head are another part of a pass of 30 layers. */
static void serve_layer(steady *b, int step)
{
    tt_ctx *ctx = b->ctx;
    const int64_t T = CHUNK * b->geo.L, dim = b->cfg->dim;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const double t = steady_time(step, false);
    const tt_pass p = steady_next(b, step, false);
    const tt_dit_part part = {.T = T, .cache = b->cache, .pass = &p};
    const tt_dit_context text = dit_context_of(ctx, b->prompt, 0);
    tt_real *e0 = tt_values(ctx, 6 * dim), *x = tt_values(ctx, T * dim);
    tt_dit_time(ctx, b->net, NULL, NULL, e0, &t, 1);
    tt_dit_patch(ctx, b->net, x, b->x, CHUNK, b->H / 8, b->W / 8);
    const double cpu = steady_cpu(), wall = tt_now();
    tt_dit_block(ctx, b->net, 0, x, &part, e0, 1, &text);
    answer(tt_now() - wall, steady_cpu() - cpu);
    tt_arena_reset(&ctx->scratch, m);
}

/* The first product, which finds memory, is not counted. */
static void serve_linear(steady *b, int64_t rows, const char *name, int n)
{
    const dit_block *k = &b->net->block[0];
    const dit_linear *l = !strcmp(name, "ffn0") ? &k->ffn0
                        : !strcmp(name, "ffn2") ? &k->ffn2 : &k->self.q;
    const tt_arena_mark m = tt_arena_here(&b->ctx->scratch);
    const int64_t in = l->w.dim[1], out = l->w.dim[0];
    tt_real *x = tt_values(b->ctx, rows * in);
    tt_real *y = tt_values(b->ctx, rows * out);
    double wall = 0, cpu = 0;
    if (b->ctx->status) return;
    steady_fill(b->ctx, x, rows * in, 1005);
    for (int i = -1; i < n; i++) {
        if (i == 0) {
            wall = tt_now();
            cpu = steady_cpu();
        }
        dit_apply(b->ctx, y, x, rows, l);
    }
    answer((tt_now() - wall) / n, (steady_cpu() - cpu) / n);
    tt_arena_reset(&b->ctx->scratch, m);
}

static void serve(steady *b)
{
    char line[80], name[16];
    long long rows;
    int n, step = 0;
    printf("ready tether %s (%s)\n", tt_version(), tt_git_revision());
    fflush(stdout);
    while (!b->ctx->status && fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "linear %lld %15s %d", &rows, name, &n) == 3)
            serve_linear(b, rows, name, n);
        else if (!strcmp(line, "peak\n"))
            answer(bench_fma_peak(b->ctx, &(bench_args){.cpu = false}) * 1e-9,
                   bench_fma_peak(b->ctx, &(bench_args){.cpu = true}) * 1e-9);
        else serve_layer(b, step++ % 4);
    }
}

/* ---- options ------------------------------------------------------------- */

static void use_class(tt_ctx *ctx, const char *name)
{
    tt_class cls;
    const tt_ops *ops =
        tt_class_find(&cls, name) ? tt_ops_class(ctx->ops, cls) : NULL;
    if (ops) ctx->ops = ops;
    else if (!ctx->status)
        tt_fail(ctx, TT_EINVAL, "--class %s is not one that backend %s has of "
                "%s", name, ctx->ops->name, tt_class_names());
}

static bool parse(bench *all, int argc, char **argv)
{
    const char *class = "f32";
    steady *b = &all->of;
    if (argc % 2 == 0) return false;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *o = argv[i], *v = argv[i + 1];
        if (!strcmp(o, "-m")) b->model = v;
        else if (!strcmp(o, "--layers")) b->layers = atoll(v);
        else if (!strcmp(o, "-W")) b->W = atoll(v);
        else if (!strcmp(o, "-H")) b->H = atoll(v);
        else if (!strcmp(o, "--cache")) b->cache_text = v;
        else if (!strcmp(o, "--budget")) b->K = atoll(v);
        else if (!strcmp(o, "--heads")) b->heads = atoll(v);
        else if (!strcmp(o, "--passes")) all->passes = atoi(v);
        else if (!strcmp(o, "--prime")) b->prime = atoi(v);
        else if (!strcmp(o, "--admit")) b->admit = atoi(v) != 0;
        else if (!strcmp(o, "--profile")) all->profile = atoi(v) != 0;
        else if (!strcmp(o, "--keep-keys")) b->keep = atoi(v) != 0;
        else if (!strcmp(o, "--kv-dir")) b->kv_dir = v;
        else if (!strcmp(o, "--serve")) all->serve = atoi(v) != 0;
        else if (!strcmp(o, "--cache-only")) b->chunks = atoi(v);
        else if (!strcmp(o, "-t")) b->ctx->nthreads = atoi(v);
        else if (!strcmp(o, "--backend")) tt_ops_use(b->ctx, v);
        else if (!strcmp(o, "--class")) class = v;
        else return false;
    }
    b->cache_only = b->chunks > 0;
    if (!b->chunks) b->chunks = 1;
    use_class(b->ctx, class);
    return b->layers >= 1 && b->K >= 1 && all->passes >= 1
        && all->passes <= 5 && b->ctx->nthreads >= 1 && b->prime >= 0
        && b->prime <= 100 && b->chunks >= 1 && b->chunks <= REPEATS_MAX;
}

/* ---- from a model to a full cache ---------------------------------------- */

static tt_status open_all(steady *b)
{
    double t0 = tt_now();
    TT_TRY(steady_model(b));
    printf("opened and bound %s in %.3f s\n",
           b->model ? tt_weights_path(tt_dit_weights(b->net))
                    : "generated weights", tt_now() - t0);
    t0 = tt_now();
    TT_TRY(steady_inputs(b));
    if (!b->cache_only)
        printf("prompt context and cross-attention keys: %.2f s\n",
               tt_now() - t0);
    t0 = tt_now();
    TT_TRY(steady_cache(b));
    printf("cache %s, %lld frames x %lld tokens filled with normal noise: "
           "%.1f s\n", b->policy.name, (long long)b->start,
           (long long)b->geo.L, tt_now() - t0);
    print_state(b);
    print_memory();
    return TT_OK;
}

int main(int argc, char **argv)
{
    tt_ctx context, *ctx = &context;
    bench b = {.passes = 5, .profile = true,
               .of = {.ctx = ctx, .W = 832, .H = 480, .K = 21, .prime = 2,
                      .layers = LAYERS, .admit = true, .chunks = 0,
                      .cache_text = "tether"}};
    tt_threads_sleep();
    if (argc == 2 && !strcmp(argv[1], "--help"))
        return fputs(usage, stdout) < 0;
    if (tt_ctx_init(ctx)) return die(ctx);
    if (!parse(&b, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    if (open_all(&b.of) || steady_prime(&b.of, NULL, NULL)) return die(ctx);
    if (b.of.cache_only) measure_cache(&b);
    else if (b.serve) serve(&b.of);
    else measure(&b);
    if (ctx->status) return die(ctx);
    print_memory();
    return 0;
}
