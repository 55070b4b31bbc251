/* bench_chunk.c: seconds and memory of one steady-state chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * In a long rollout every chunk costs the same once the cache is full. This
 * program measures that chunk without generating everything before it: it
 * fills the K frames of every layer's cache with normal random keys and values,
 * as if K frames had been generated, and then runs one chunk: the denoising
 * passes and the clean pass with all the work of the cache policy. Policies
 * are given as to `tether compare`: "tether", "tether:tau=0.6:pool=frame".
 *
 * Of the last layer a clean pass computes keys and values alone. A model of one
 * layer has no other: there the clean pass is that and the policy's work.
 *
 * Chunks of one noisy and one clean pass come before the measured one
 * (--prime), because the first ones differ: TetherCache reads the frames that
 * filled its memory, MemRoPE makes its averages, Deep Forcing compresses in
 * every other chunk (the first, the third: the measured one).
 * Among random keys GRAB has no reason to admit anybody. So, unless --admit 0,
 * the keys of the frames that leave next are drawn towards the mean query of
 * the clean pass before: every one of them is admitted, and edited by TAME, in
 * the measured chunk and in the one before it.
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
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "dit/model.h"
#include "lib/bench_lib.h"

/* LAYERS  of the 1.3B model */
enum { CHUNK = 3, ROWS = 512, REPEATS_MAX = 100, LAYERS = 30 };

static const char usage[] =
    "usage: bench_chunk -m DIR|FILE [-W 832] [-H 480] [--cache POLICY]\n"
    "                   [--budget 21] [--passes 1..5] [-t N] [--backend NAME]\n"
    "                   [--class NAME] [--heads N] [--prime 2] [--admit 0|1]\n"
    "                   [--cache-only N] [--profile 0|1] [--keep-keys 0|1]\n"
    "                   [--kv-dir FOLDER] [--serve 0|1]\n"
    "POLICY  a name, then :OPTION=VALUE for sink, recent, memory, alpha, tau,\n"
    "        pool, compress-to, fusion, memrope-method, adaptive\n";

typedef struct bench {
    tt_ctx *ctx;
    tt_dit *net;
    tt_prompt *prompt;
    tt_cache *cache;
    const tt_dit_config *cfg;
    const char *cache_text;  /* "tether:tau=0.6"                          */
    tt_policy_options policy;
    tt_geometry geo;
    tt_arena mem;
    tt_real *text, *x, *flow;
    double *qbar;            /* [layers, H*D] of the latest tapped pass       */
    int64_t start;           /* first frame of the next chunk                 */
    /* options */
    const char *model, *kv_dir;
    int64_t W, H, heads;
    int passes, prime, admit;
    int profile;             /* operators are timed one by one                */
    int keep;                /* --keep-keys: rotated ones, from pass to pass  */
    int serve;               /* work is asked for on the standard input       */
    int repeats;             /* --cache-only                                  */
    tt_real *q, *k, *v;      /* [CHUNK*L, H, D] for it                        */
} bench;

static int die(tt_ctx *ctx)
{
    fprintf(stderr, "bench_chunk: %s\n", tt_message(ctx));
    return 1;
}

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- what is printed ----------------------------------------------------- */

/* Peak resident bytes so far, and the anonymous share now (the rest is the
 * mapped checkpoint, which the system can drop at any time). */
static void print_memory(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    long anon = 0, file = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "RssAnon: %ld", &anon);
        sscanf(line, "RssFile: %ld", &file);
    }
    if (f) fclose(f);
    printf("memory: peak resident %.2f GB; at the end %.2f GB anonymous, "
           "%.2f GB mapped files\n", (double)u.ru_maxrss * 1024 / 1e9,
           (double)anon * 1024 / 1e9, (double)file * 1024 / 1e9);
}

static void print_profile(const tt_ctx *ctx, double total)
{
    printf("%-14s %10s %7s %8s %10s\n", "operator", "seconds", "share", "calls",
           "GFLOP/s");
    double named = 0;
    for (int i = 0; i < TT_PROFILE_ROWS && ctx->profile[i].name; i++) {
        const tt_profile_row *r = &ctx->profile[i];
        named += r->seconds;
        printf("%-14s %10.3f %6.2f%% %8lld", r->name, r->seconds,
               100 * r->seconds / total, (long long)r->calls);
        if (r->flops > 0) printf(" %10.1f", r->flops / r->seconds * 1e-9);
        printf("\n");
    }
    printf("%-14s %10.3f %6.2f%%\n", "the rest", total - named,
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
static void print_state(const bench *b)
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

/* Admissions and edits so far, all layers. */
static void count_decisions(const bench *b, int64_t count[3])
{
    memset(count, 0, 3 * sizeof *count);
    for (int64_t i = 0; i < b->geo.layers; i++) {
        tt_event now;
        tt_cache_show(b->cache, i, &now);
        const int64_t *n = tt_event_values(&now, "counters", TT_I64, NULL);
        for (int j = 0; n && j < 3; j++) count[j] += n[j];
    }
}

/* ---- a full cache -------------------------------------------------------- */

static void fill_normal(tt_real *x, int64_t n, uint32_t stream)
{
    float buf[4096];
    /* one block of normals, repeated: statistics matter, not freshness */
    tt_noise_frame(buf, 4096, 7, 0, 0, stream);
    for (int64_t i = 0; i < n; i++)
        x[i] = (tt_real)buf[(i % 4096 * 7 + i / 4096) % 4096];
}

static void fill_values(tt_ctx *ctx, tt_real *x, int64_t n, uint32_t stream)
{
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_host *h = tt_room(ctx, x, n);
    if (h) fill_normal(h, n, stream);
    tt_put(ctx, x, h, n);
    tt_arena_reset(&ctx->scratch, m);
}

/* As if the frames before b->start had been generated and committed. */
static void fill_cache(bench *b)
{
    const int64_t L = b->geo.L, n = b->start * L;
    for (int64_t i = 0; i < b->geo.layers; i++) {
        tt_layer *y = tt_cache_layer(b->cache, i);
        int64_t width = b->geo.H * b->geo.D;
        fill_values(b->ctx, y->k, n * width, (uint32_t)(2 * i));
        fill_values(b->ctx, y->v, n * width, (uint32_t)(2 * i + 1));
        for (int64_t t = 0; t < n; t++) {
            y->src_frame[t] = y->tpos[t] = (int32_t)(t / L);
            y->sidx[t] = (int32_t)(t % L);
        }
        y->len = n;
        y->seen = b->start;
    }
}

static void mean_query(bench *b, int64_t layer, const tt_real *q, int64_t n)
{
    const int64_t width = b->geo.H * b->geo.D;
    double *mean = b->qbar + layer * width;
    memset(mean, 0, (size_t)width * sizeof *mean);
    for (int64_t t = 0; t < n; t++)
        for (int64_t c = 0; c < width; c++)
            mean[c] += (double)q[t * width + c] / (double)n;
}

/* The tap "block.<i>/self_attn.q". */
static void take_queries(void *user, const char *path, tt_dtype dtype, int rank,
                         const int64_t *dim, const void *data)
{
    bench *b = user;
    const char *end = strstr(path, "/self_attn.q");
    const char *block = strstr(path, "block.");
    if (end && !end[12] && block && rank == 3
        && tt_dtype_size(dtype) == sizeof(tt_real))
        mean_query(b, atoll(block + 6), data, dim[0]);
}

/* Make the frames that the next chunk pushes out of TetherCache's recent ones
 * more important than all others: add s qbar, so that <qbar, k>/(sqrt(D) H)
 * grows by 8 and no softmax over frames overlooks them. */
static void make_admissible(bench *b)
{
    const int64_t width = b->geo.H * b->geo.D;
    const int64_t first = b->start - b->policy.R;
    for (int64_t i = 0; i < b->geo.layers; i++) {
        tt_layer *y = tt_cache_layer(b->cache, i);
        const double *q = b->qbar + i * width;
        double norm2 = 1e-30;
        for (int64_t c = 0; c < width; c++) norm2 += q[c] * q[c];
        const double s = 8 * (double)b->geo.H * sqrt((double)b->geo.D) / norm2;
        const tt_arena_mark m = tt_arena_here(&b->ctx->scratch);
        tt_host *k = tt_get(b->ctx, y->k, y->len * width);
        for (int64_t t = 0; k && t < y->len; t++) {
            if (y->src_frame[t] < first || y->src_frame[t] >= first + CHUNK)
                continue;
            for (int64_t c = 0; c < width; c++)
                k[t * width + c] += (tt_host)(s * q[c]);
        }
        tt_put(b->ctx, y->k, k, y->len * width);
        tt_arena_reset(&b->ctx->scratch, m);
    }
}

/* ---- passes -------------------------------------------------------------- */

/* The cache's part of a pass: its writes in all layers. */
static void cache_pass(bench *b, const tt_pass *p)
{
    for (int64_t i = 0; i < b->geo.layers; i++) {
        tt_cache_write(b->ctx, b->cache, i, p,
                       &(tt_qkv){b->q, b->k, b->v});
        tt_cache_done(b->ctx, b->cache, i, p);
    }
}

static double time_of(int step, bool clean)
{
    static const double steps[] = {1000, 937.5, 833.33331298828125, 625};
    return clean ? 0 : steps[step];
}

static tt_pass next_pass(const bench *b, int step, bool clean)
{
    return (tt_pass){.start = b->start, .frames = CHUNK,
                     .chunk = b->start / CHUNK, .step = step, .context = clean};
}

/* One pass of the next chunk; returns its seconds. */
static double run_pass(bench *b, int step, bool clean)
{
    const double t = time_of(step, clean);
    const tt_pass p = next_pass(b, step, clean);
    double begin = tt_now();
    if (b->repeats) cache_pass(b, &p);
    else tt_dit_forward(b->ctx, b->net, clean ? NULL : b->flow, b->x,
                        &(tt_dit_call){.h = b->H / 8, .w = b->W / 8, .t = &t,
                                       .nt = 1, .prompt = b->prompt,
                                       .cache = b->cache, .pass = &p});
    return tt_now() - begin;
}

/* After the clean pass. */
static void next_chunk(bench *b)
{
    b->start += CHUNK;
    if (b->admit) make_admissible(b);
}

static void prime(bench *b)
{
    for (int i = 0; i < b->prime && !b->ctx->status; i++) {
        run_pass(b, 0, false);
        b->ctx->tap = b->admit ? take_queries : NULL;
        b->ctx->tap_user = b;
        run_pass(b, 1, true);
        b->ctx->tap = NULL;
        next_chunk(b);
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure_cache(bench *b)
{
    double wall[REPEATS_MAX], cpu[REPEATS_MAX];
    int64_t before[3], after[3];
    const int n = b->repeats;
    count_decisions(b, before);
    for (int i = 0; i < n && !b->ctx->status; i++) {
        const double begin = cpu_now();
        wall[i] = 0;
        for (int j = 0; j < b->passes; j++)
            wall[i] += run_pass(b, j, j == b->passes - 1);
        cpu[i] = cpu_now() - begin;
        next_chunk(b);
    }
    if (b->ctx->status) return;
    count_decisions(b, after);
    qsort(wall, (size_t)n, sizeof *wall, ascending);
    qsort(cpu, (size_t)n, sizeof *cpu, ascending);
    printf("cache only, %d chunks of %d passes, %d threads: median %.4f s, "
           "least %.4f s; CPU median %.4f s, least %.4f s\n"
           "frames per chunk: %.2f admitted, %.2f rejected, %.2f edited\n",
           n, b->passes, b->ctx->nthreads, wall[n / 2], wall[0], cpu[n / 2],
           cpu[0], (double)(after[0] - before[0]) / n,
           (double)(after[1] - before[1]) / n,
           (double)(after[2] - before[2]) / n);
}

/* Of what the last noisy pass gave: equal on every machine, in a class. */
static void print_digest(bench *b)
{
    const int64_t n = CHUNK * b->cfg->in_dim * (b->H / 8) * (b->W / 8);
    const tt_tensor flow = tt_tensor_make(
        b->flow, sizeof(tt_real) == 8 ? TT_F64 : TT_F32, 1, &n);
    char sha[65];
    if (b->passes > 1 && tt_tensor_digest(b->ctx, sha, &flow) == TT_OK)
        printf("flow %s %s\n", tt_class_name(b->ctx->ops->cls), sha);
}

static void measure(bench *b)
{
    tt_ctx *ctx = b->ctx;
    int64_t before[3], after[3];
    double all = 0, begin = cpu_now();
    count_decisions(b, before);
    ctx->profiling = b->profile;
    for (int j = 0; j < b->passes && !ctx->status; j++) {
        const bool clean = j == b->passes - 1;
        const double t = run_pass(b, j, clean);
        printf("pass %d%s: %.3f s\n", j, clean ? " (clean)" : "", t);
        fflush(stdout);
        all += t;
    }
    if (ctx->status) return;
    count_decisions(b, after);
    print_digest(b);
    printf("chunk of %d passes: %.3f s (CPU %.1f s) with backend %s, %d "
           "threads\n", b->passes, all, cpu_now() - begin, ctx->ops->name,
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
static void serve_layer(bench *b, int step)
{
    tt_ctx *ctx = b->ctx;
    const int64_t T = CHUNK * b->geo.L, dim = b->cfg->dim;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const double t = time_of(step, false);
    const tt_pass p = next_pass(b, step, false);
    const tt_dit_part part = {.T = T, .cache = b->cache, .pass = &p};
    const tt_dit_context text = {b->prompt->k[0], b->prompt->v[0],
                                 b->prompt->rows};
    tt_real *e0 = tt_values(ctx, 6 * dim), *x = tt_values(ctx, T * dim);
    tt_dit_time(ctx, b->net, NULL, NULL, e0, &t, 1);
    tt_dit_patch(ctx, b->net, x, b->x, CHUNK, b->H / 8, b->W / 8);
    const double cpu = cpu_now(), wall = tt_now();
    tt_dit_block(ctx, b->net, 0, x, &part, e0, 1, &text);
    answer(tt_now() - wall, cpu_now() - cpu);
    tt_arena_reset(&ctx->scratch, m);
}

/* The first product, which finds memory, is not counted. */
static void serve_linear(bench *b, int64_t rows, const char *name, int n)
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
    fill_values(b->ctx, x, rows * in, 1005);
    for (int i = -1; i < n; i++) {
        if (i == 0) {
            wall = tt_now();
            cpu = cpu_now();
        }
        dit_apply(b->ctx, y, x, rows, l);
    }
    answer((tt_now() - wall) / n, (cpu_now() - cpu) / n);
    tt_arena_reset(&b->ctx->scratch, m);
}

static void serve(bench *b)
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

static bool parse(bench *b, int argc, char **argv, int64_t *K)
{
    const char *class = "f32";
    if (argc % 2 == 0) return false;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *o = argv[i], *v = argv[i + 1];
        if (!strcmp(o, "-m")) b->model = v;
        else if (!strcmp(o, "-W")) b->W = atoll(v);
        else if (!strcmp(o, "-H")) b->H = atoll(v);
        else if (!strcmp(o, "--cache")) b->cache_text = v;
        else if (!strcmp(o, "--budget")) *K = atoll(v);
        else if (!strcmp(o, "--heads")) b->heads = atoll(v);
        else if (!strcmp(o, "--passes")) b->passes = atoi(v);
        else if (!strcmp(o, "--prime")) b->prime = atoi(v);
        else if (!strcmp(o, "--admit")) b->admit = atoi(v);
        else if (!strcmp(o, "--profile")) b->profile = atoi(v);
        else if (!strcmp(o, "--keep-keys")) b->keep = atoi(v);
        else if (!strcmp(o, "--kv-dir")) b->kv_dir = v;
        else if (!strcmp(o, "--serve")) b->serve = atoi(v);
        else if (!strcmp(o, "--cache-only")) b->repeats = atoi(v);
        else if (!strcmp(o, "-t")) b->ctx->nthreads = atoi(v);
        else if (!strcmp(o, "--backend")) tt_ops_use(b->ctx, v);
        else if (!strcmp(o, "--class")) class = v;
        else return false;
    }
    use_class(b->ctx, class);
    return b->model && b->passes >= 1 && b->passes <= 5
        && b->ctx->nthreads >= 1 && b->prime >= 0 && b->prime <= 100
        && b->repeats >= 0 && b->repeats <= REPEATS_MAX;
}

/* ---- from a model to a full cache ---------------------------------------- */

static tt_status open_model(bench *b)
{
    tt_weights *w;
    double t0 = tt_now();
    TT_TRY(tt_weights_open(b->ctx, &w, b->model, TT_MODEL_DIT, NULL));
    TT_TRY(tt_dit_load(b->ctx, &b->net, w, NULL, b->heads));
    printf("opened and bound %s in %.3f s\n", tt_weights_path(w),
           tt_now() - t0);
    b->cfg = tt_dit_get_config(b->net);
    return TT_OK;
}

static tt_status make_inputs(bench *b)
{
    const int64_t n = CHUNK * b->cfg->in_dim * (b->H / 8) * (b->W / 8);
    const int64_t rows = b->cfg->text_len ? b->cfg->text_len : ROWS;
    tt_ctx *ctx = b->ctx;
    b->text = tt_alloc0(ctx, &b->mem, rows * b->cfg->text_dim,
                        sizeof *b->text, "text");
    b->x = tt_alloc(ctx, &b->mem, n, sizeof *b->x, "latents");
    b->flow = tt_alloc(ctx, &b->mem, n, sizeof *b->flow, "flow");
    b->qbar = tt_alloc0(ctx, &b->mem, b->cfg->layers * b->cfg->dim,
                        sizeof *b->qbar, "mean queries");
    TT_TRY(ctx->status);
    fill_normal(b->text, 20 * b->cfg->text_dim, 1000);
    fill_normal(b->x, n, 1001);
    if (b->repeats) return TT_OK;
    double t0 = tt_now();
    TT_TRY(tt_prompt_make(ctx, &b->prompt, b->net, b->text, rows));
    printf("prompt context and cross-attention keys: %.2f s\n", tt_now() - t0);
    return TT_OK;
}

/* The network's part of --cache-only. */
static tt_status make_tokens(bench *b)
{
    const int64_t tokens = CHUNK * b->geo.L;
    const int64_t n = tokens * b->geo.H * b->geo.D;
    b->q = tt_alloc(b->ctx, &b->mem, n, sizeof *b->q, "queries");
    b->k = tt_alloc(b->ctx, &b->mem, n, sizeof *b->k, "keys");
    b->v = tt_alloc(b->ctx, &b->mem, n, sizeof *b->v, "values");
    TT_TRY(b->ctx->status);
    fill_normal(b->q, n, 1002);
    fill_normal(b->k, n, 1003);
    fill_normal(b->v, n, 1004);
    for (int64_t i = 0; i < b->geo.layers; i++)
        mean_query(b, i, b->q, tokens);
    return TT_OK;
}

/* A cache of K frames; causvid never holds more than one clip, so there the
 * measured chunk is the last one of it. */
static tt_status open_cache(bench *b, int64_t K)
{
    const int64_t chunks = b->prime + (b->repeats ? b->repeats : 1);
    const int64_t later = CHUNK * chunks, h = b->H / 16, w = b->W / 16;
    const bool clip = (b->policy.cls->flags & TT_RESTARTS) != 0;
    b->start = clip ? K - later : K;
    b->geo = (tt_geometry){
        .layers = b->cfg->layers, .H = b->cfg->heads,
        .D = b->cfg->dim / b->cfg->heads, .grid_h = h, .grid_w = w, .L = h * w,
        .chunk = CHUNK, .first_chunk = CHUNK, .frames = b->start + later};
    if (tt_policy_knob(b->policy.cls, "budget")) b->policy.K = K;
    if (b->start < CHUNK)
        return tt_fail(b->ctx, TT_EINVAL, "a budget of %lld frames is too "
                       "small", (long long)K);
    TT_TRY(tt_cache_open_in(b->ctx, &b->cache, NULL, &b->policy, &b->geo,
                            b->kv_dir));
    if (b->keep) TT_TRY(tt_cache_keep_keys(b->ctx, b->cache));
    if (b->repeats) TT_TRY(make_tokens(b));
    double t0 = tt_now();
    fill_cache(b);
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
    int64_t K = 21;
    bench b = {.ctx = ctx, .W = 832, .H = 480, .passes = 5, .prime = 2,
               .admit = 1, .profile = 1, .cache_text = "tether"};
    tt_threads_sleep();
    if (argc == 2 && !strcmp(argv[1], "--help"))
        return fputs(usage, stdout) < 0;
    if (tt_ctx_init(ctx)) return die(ctx);
    if (!parse(&b, argc, argv, &K)) {
        fputs(usage, stderr);
        return 2;
    }
    if (tt_policy_parse(ctx, &b.policy, b.cache_text) || open_model(&b)
        || make_inputs(&b) || open_cache(&b, K))
        return die(ctx);
    prime(&b);
    if (b.repeats) measure_cache(&b);
    else if (b.serve) serve(&b);
    else measure(&b);
    if (ctx->status) return die(ctx);
    print_memory();
    return 0;
}
