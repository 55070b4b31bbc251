/* bench_chunk.c: seconds and memory of one steady-state chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * In a long rollout every chunk costs the same once the cache is full. This
 * program measures that chunk without generating everything before it: it
 * fills all K frames of every layer's cache with normal random keys and values,
 * as if K frames had been generated, and then runs one chunk: the denoising
 * passes and the clean pass, evictions and TetherCache commit included.
 *
 *   bench_chunk -m DIR|FILE [-W 832] [-H 480] [--budget 21] [--passes 5]
 *               [-t N] [--backend NAME] [--heads N] [--prime 0|1]
 *
 * The first commit of a run also reads the frames that filled the memory; with
 * --prime 1 a chunk of one noisy and one clean pass runs before the measured
 * one, so that its cache work is that of the middle of a long video. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tether/tether.h"

static int die(tt_ctx *ctx)
{
    fprintf(stderr, "bench_chunk: %s\n", tt_message(ctx));
    return 1;
}

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

static void fill_normal(tt_real *x, int64_t n, uint32_t stream)
{
    float buf[4096];
    for (int64_t i = 0, part = 0; i < n; i += 4096, part++) {
        int64_t m = n - i < 4096 ? n - i : 4096;
        /* one block of normals, repeated: statistics matter, not freshness */
        if (part == 0) tt_noise_frame(buf, 4096, 7, 0, 0, stream);
        for (int64_t j = 0; j < m; j++) x[i + j] = (tt_real)buf[(j * 7 + part) % 4096];
    }
}

/* As if `cap` tokens had been generated and committed. */
static void fill_cache(tt_cache *cache, int64_t layers)
{
    for (int64_t i = 0; i < layers; i++) {
        tt_layer *y = tt_cache_layer(cache, i);
        int64_t width = y->geo->H * y->geo->D;
        fill_normal(y->k, y->cap * width, (uint32_t)(2 * i));
        fill_normal(y->v, y->cap * width, (uint32_t)(2 * i + 1));
        for (int64_t t = 0; t < y->cap; t++) {
            y->src_frame[t] = (int32_t)(t / y->geo->L);
            y->sidx[t] = (int32_t)(t % y->geo->L);
            y->tpos[t] = y->src_frame[t];
        }
        y->len = y->cap;
        y->seen = y->cap / y->geo->L;
    }
}

static void print_profile(const tt_ctx *ctx, double total)
{
    printf("%-14s %10s %7s %8s %10s\n", "operator", "seconds", "share", "calls",
           "GFLOP/s");
    double named = 0;
    for (int i = 0; i < TT_PROFILE_ROWS && ctx->profile[i].name; i++) {
        const tt_profile_row *r = &ctx->profile[i];
        named += r->seconds;
        printf("%-14s %10.2f %6.2f%% %8lld", r->name, r->seconds,
               100 * r->seconds / total, (long long)r->calls);
        if (r->flops > 0) printf(" %10.1f", r->flops / r->seconds * 1e-9);
        printf("\n");
    }
    printf("%-14s %10.2f %6.2f%%\n", "the rest", total - named,
           100 * (total - named) / total);
}

/* One pass of the chunk that starts at frame `start`; returns its seconds. */
static double run_pass(tt_ctx *ctx, const tt_dit *net, const tt_prompt *prompt,
                       tt_cache *cache, tt_real *flow, const tt_real *x,
                       int64_t h, int64_t w, int64_t start, int step,
                       bool clean)
{
    static const double steps[] = {1000, 937.5, 833.33331298828125, 625};
    const double t = clean ? 0 : steps[step];
    tt_pass p = {.start = start, .frames = 3, .chunk = start / 3, .step = step,
                 .context = clean};
    double begin = tt_now();
    if (step == 0) tt_cache_begin_chunk(ctx, cache, &p);
    tt_dit_forward(ctx, clean ? NULL : flow, x, h, w, &t, 1, net, prompt, cache,
                   &p);
    return tt_now() - begin;
}

int main(int argc, char **argv)
{
    tt_ctx context, *ctx = &context;
    if (tt_ctx_init(ctx)) return die(ctx);
    const char *model = NULL;
    int64_t W = 832, H = 480, K = 21, heads = 0;
    int passes = 5, prime = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *o = argv[i], *v = argv[i + 1];
        if (!strcmp(o, "-m")) model = v;
        else if (!strcmp(o, "-W")) W = atoll(v);
        else if (!strcmp(o, "-H")) H = atoll(v);
        else if (!strcmp(o, "--budget")) K = atoll(v);
        else if (!strcmp(o, "--heads")) heads = atoll(v);
        else if (!strcmp(o, "--passes")) passes = atoi(v);
        else if (!strcmp(o, "--prime")) prime = atoi(v);
        else if (!strcmp(o, "-t")) ctx->nthreads = atoi(v);
        else if (!strcmp(o, "--backend")) tt_ops_use(ctx, v);
        else model = NULL, i = argc;
    }
    if (ctx->status) return die(ctx);
    if (!model || passes < 1 || passes > 5 || ctx->nthreads < 1) {
        fprintf(stderr, "usage: bench_chunk -m DIR|FILE [-W 832] [-H 480] "
                "[--budget 21] [--passes 1..5] [-t N] [--backend NAME] "
                "[--heads N]\n");
        return 2;
    }
    tt_weights *w;
    tt_dit *net;
    double t0 = tt_now();
    if (tt_weights_open(ctx, &w, model, TT_MODEL_DIT, NULL) ||
        tt_dit_load(ctx, &net, w, NULL, heads))
        return die(ctx);
    printf("opened and bound %s in %.3f s\n", tt_weights_path(w), tt_now() - t0);

    const tt_dit_config *c = tt_dit_get_config(net);
    int64_t h = H / 8, wd = W / 8, n = 3 * c->in_dim * h * wd;
    int64_t rows = c->text_len ? c->text_len : 512;
    tt_geometry geo = {.layers = c->layers, .H = c->heads,
                       .D = c->dim / c->heads, .grid_h = h / 2,
                       .grid_w = wd / 2, .L = h / 2 * (wd / 2), .chunk = 3,
                       .first_chunk = 3, .frames = 2 * K + 6};
    tt_policy_options opt = tt_policy_defaults("tether");
    opt.K = K;
    tt_cache *cache;
    tt_prompt *prompt;
    tt_arena a = {0};
    tt_real *text = tt_alloc0(ctx, &a, rows * c->text_dim, sizeof *text, "text");
    tt_real *x = tt_alloc(ctx, &a, n, sizeof *x, "latents");
    tt_real *flow = tt_alloc(ctx, &a, n, sizeof *flow, "flow");
    if (ctx->status) return die(ctx);
    fill_normal(text, 20 * c->text_dim, 1000);
    fill_normal(x, n, 1001);
    t0 = tt_now();
    if (tt_prompt_make(ctx, &prompt, net, text, rows)) return die(ctx);
    printf("prompt context and cross-attention keys: %.2f s\n", tt_now() - t0);
    if (tt_cache_open(ctx, &cache, NULL, &opt, &geo)) return die(ctx);
    t0 = tt_now();
    fill_cache(cache, c->layers);
    printf("cache of %lld frames x %lld tokens filled with normal noise: "
           "%.1f s\n", (long long)K, (long long)geo.L, tt_now() - t0);
    print_memory();

    double all = 0;
    int64_t start = K;
    if (prime) {
        for (int j = 0; j < 2; j++)
            run_pass(ctx, net, prompt, cache, flow, x, h, wd, start, j, j == 1);
        start += 3;
    }
    ctx->profiling = true;
    for (int j = 0; j < passes && !ctx->status; j++) {
        bool clean = j == passes - 1;
        double t = run_pass(ctx, net, prompt, cache, flow, x, h, wd, start, j,
                            clean);
        printf("pass %d%s: %.1f s\n", j, clean ? " (clean)" : "", t);
        fflush(stdout);
        all += t;
    }
    if (ctx->status) return die(ctx);
    printf("chunk of %d passes: %.1f s with backend %s, %d threads\n", passes,
           all, ctx->ops->name, ctx->nthreads);
    print_profile(ctx, all);
    print_memory();
    return 0;
}
