/* bench_pass.c: seconds of a whole pass, and of its parts.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   A chunk of a long rollout: its noisy passes and its clean one, each
 *         through all layers, with a full cache and the policy's work. Passes
 *         of an equal chunk come first and do not count. Operators are timed
 *         one by one, which costs nothing that could be seen.
 * Next    steady.c */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "cli/bench/steady.h"
#include "cli/ui/progress.h"
#include "run/needs.h"

/* LAYERS  of the 1.3B model; PASSES  of a chunk with the usual four steps */
enum { LAYERS = 30, PASSES = 5, PRIME_MAX = 100, LAYERS_MAX = 1000,
       PIXELS_MAX = 16384, FRAMES_A_LATENT = 4, FRAMES_A_SECOND = 16 };

/* What a pass consists of. */
typedef enum part { LINEAR, ATTENTION, SMALL, POLICY, OUTSIDE, PARTS } part;

static const struct { const char *key, *name; } parts[PARTS] = {
    {"linear", "linear layers"},
    {"attention", "attention"},
    {"elementwise", "norms, elementwise"},
    {"policy", "cache policy"},
    {"outside", "outside operators"},
};

/* Passes of one kind together. */
typedef struct tally {
    int n;
    double wall, cpu;
    double seconds[PARTS], flops[PARTS];
} tally;

typedef struct measure {
    tt_ctx *ctx;
    const bench_settings *s;
    steady b;
    double peak[BENCH_LIMITS], kept[BENCH_LIMITS];
    tally noisy, clean;
    int64_t before[3], after[3];   /* the policy's decisions                  */
    int done, all;                 /* passes                                  */
    double begin;
} measure;

/* ---- what is said while it works ----------------------------------------- */

static void bench_pass_say(const measure *m, const char *what)
{
    if (!m->s->quiet) fprintf(stderr, "tether: %s\n", what);
}

/* The passes are alike, so those that are left are known. */
static void pass_done(void *user, double seconds)
{
    measure *m = user;
    char took[32], left[32];
    const bool warm = ++m->done <= 2 * m->b.prime;
    const double each = (tt_now() - m->begin) / m->done;
    if (m->s->quiet) return;
    fprintf(stderr, "tether: pass %d of %d%s: %s, %s left\n", m->done, m->all,
            warm ? " (warming up)" : "",
            progress_duration(took, sizeof took, seconds),
            progress_duration(left, sizeof left, each * (m->all - m->done)));
}

/* ---- measuring ----------------------------------------------------------- */

static part part_of(const char *operator)
{
    /* alone, or with what is next to it (tt_fused) */
    if (!strncmp(operator, "attention", strlen("attention"))) return ATTENTION;
    if (strstr(operator, "linear") || strstr(operator, "mlp")) return LINEAR;
    if (!strcmp(operator, "first touches")) return ATTENTION; /* lays out     */
    return !strcmp(operator, "cache policy") ? POLICY : SMALL;
}

static void add_parts(tally *t, const tt_ctx *ctx, double wall)
{
    double outside = wall;
    for (int i = 0; i < TT_PROFILE_ROWS && ctx->profile[i].name; i++) {
        const tt_profile_row *r = &ctx->profile[i];
        const part p = part_of(r->name);
        t->seconds[p] += r->seconds;
        t->flops[p] += r->flops;
        outside -= r->seconds;
    }
    t->seconds[OUTSIDE] += outside;
}

static void one_pass(measure *m, int step, bool clean)
{
    tt_ctx *ctx = m->ctx;
    tally *t = clean ? &m->clean : &m->noisy;
    if (tt_check_interrupt(ctx)) return;
    memset(ctx->profile, 0, sizeof ctx->profile);
    ctx->profiling = true;
    const double cpu = steady_cpu(), wall = steady_pass(&m->b, step, clean);
    ctx->profiling = false;
    if (ctx->status) return;
    t->n++;
    t->wall += wall;
    t->cpu += steady_cpu() - cpu;
    add_parts(t, ctx, wall);
    pass_done(m, wall);
}

/* The peaks of the machine, where it is the machine that computes. */
static void look_for_peaks(measure *m)
{
    if (m->ctx->device) return;
    bench_find_peaks(m->ctx, m->s, m->peak);
    tt_arena_free(&m->ctx->scratch);
}

/* What is packed stays where `tether generate` lets it stay. */
static tt_status fits(measure *m)
{
    const char *who;
    int64_t left;
    steady *b = &m->b;
    const int64_t need = steady_bytes(b), packed = steady_packed(b);
    TT_TRY(tt_memory_left(m->ctx, &left, &who));
    b->keep = packed > 0 && !m->ctx->device && need + packed <= left / 2;
    if (m->ctx->device || need <= left) return TT_OK;
    return tt_fail(m->ctx, TT_ENOMEM, "cache and activations of %lld layers at "
                   "%lldx%lld take %.1f GB, but %s leaves %.1f GB: a smaller "
                   "picture%s takes less", (long long)b->geo.layers,
                   (long long)b->W, (long long)b->H, 1e-9 * (double)need, who,
                   1e-9 * (double)left, b->model ? "" : ", or --layers,");
}

static tt_status open_all(measure *m)
{
    steady *b = &m->b;
    bench_pass_say(m, b->model ? "opening the model" : "making weights");
    TT_TRY(steady_model(b));
    TT_TRY(fits(m));
    bench_pass_say(m, "filling the cache");
    TT_TRY(steady_inputs(b));
    return steady_cache(b);
}

static tt_status take_passes(measure *m, int noisy)
{
    m->begin = tt_now();
    TT_TRY(steady_prime(&m->b, pass_done, m));
    steady_decisions(&m->b, m->before);
    for (int i = 0; i < noisy; i++) one_pass(m, i, false);
    one_pass(m, noisy, true);
    TT_TRY(m->ctx->status);
    steady_decisions(&m->b, m->after);
    return TT_OK;
}

/* ---- the table ----------------------------------------------------------- */

static bench_limit bench_pass_top(const measure *m)
{
    return bench_top(m->ctx->ops->cls, m->peak);
}

static void print_line(const measure *m, const char *name, double seconds,
                       double wall, double flops)
{
    const double peak = m->peak[bench_pass_top(m)],
        kept = m->kept[bench_pass_top(m)];
    const double rate = flops / seconds;
    printf("%-22s %9.3f %6.2f%%", name, seconds, 100 * seconds / wall);
    if (flops > 0) printf(" %9.1f", rate * 1e-9);
    if (flops > 0 && peak > 0 && kept > 0)
        printf(" %8.2f %8.2f", rate / peak, rate / kept);
    else if (flops > 0) printf(" %8s %8s", "-", "-");
    printf("\n");
}

static double all_flops(const tally *t)
{
    return t->flops[LINEAR] + t->flops[ATTENTION];
}

static void print_tally(const measure *m, const char *name, const tally *t)
{
    char title[40];
    snprintf(title, sizeof title, t->n > 1 ? "%s, mean of %d" : "%s", name,
             t->n);
    print_line(m, title, t->wall / t->n, t->wall / t->n, all_flops(t) / t->n);
    for (int p = 0; p < PARTS; p++) {
        snprintf(title, sizeof title, "  %s", parts[p].name);
        print_line(m, title, t->seconds[p] / t->n, t->wall / t->n,
                   t->flops[p] / t->n);
    }
}

static double chunk_seconds(const measure *m)
{
    return (PASSES - 1) * m->noisy.wall / m->noisy.n + m->clean.wall;
}

static void print_setting(const measure *m)
{
    const steady *b = &m->b;
    char weights[120];
    if (b->model) snprintf(weights, sizeof weights, "those of %.80s", b->model);
    else snprintf(weights, sizeof weights, "generated, %lld layers' in turns",
                  (long long)(b->layers < STEADY_DISTINCT ? b->layers
                                                          : STEADY_DISTINCT));
    printf("a pass of %lld layers at %lldx%lld: %lld tokens (%d latents), "
           "cache %s of %lld latents; weights: %s\n",
           (long long)b->geo.layers, (long long)b->W, (long long)b->H,
           (long long)(STEADY_CHUNK * b->geo.L), STEADY_CHUNK, b->cache_text,
           (long long)b->K, weights);
}

static void print_rest(measure *m, const steady_memory *held, const char *sha)
{
    char took[32], bytes[32], files[32];
    const double cores = (m->noisy.cpu + m->clean.cpu)
                       / (m->noisy.wall + m->clean.wall);
    const double video = (double)(STEADY_CHUNK * FRAMES_A_LATENT)
                       / FRAMES_A_SECOND;
    printf("a chunk of %d noisy passes and a clean one: %s, without decoding; "
           "%.1f s for a second of video\n", PASSES - 1,
           progress_duration(took, sizeof took, chunk_seconds(m)),
           chunk_seconds(m) / video);
    printf("CPU seconds / seconds: %.2f with %d thread%s; frames admitted %lld,"
           " rejected %lld, edited %lld\n", cores, m->ctx->nthreads,
           m->ctx->nthreads > 1 ? "s" : "",
           (long long)(m->after[0] - m->before[0]),
           (long long)(m->after[1] - m->before[1]),
           (long long)(m->after[2] - m->before[2]));
    printf("memory held: %s, and %s of mapped files\n",
           progress_bytes(bytes, sizeof bytes, held->anonymous),
           progress_bytes(files, sizeof files, held->mapped));
    printf("flow %s %s\n", tt_class_name(m->ctx->ops->cls), sha);
}

static void print_all(measure *m, const steady_memory *held, const char *sha)
{
    print_setting(m);
    if (m->peak[BENCH_FMA] > 0) bench_print_peaks(m->ctx, m->peak);
    if (m->kept[BENCH_FMA] > 0) bench_print_kept(m->kept);
    printf("%-22s %9s %7s %9s %8s %8s\n", "pass", "seconds", "share", "GF/s",
           "of peak", "of kept");
    print_tally(m, "noisy", &m->noisy);
    print_tally(m, "clean", &m->clean);
    print_rest(m, held, sha);
}

/* ---- JSON ---------------------------------------------------------------- */

static void log_rate(const measure *m, json_out *j, double flops,
                     double seconds)
{
    const bench_limit k = bench_pass_top(m);
    char of[32];
    if (!(flops > 0 && seconds > 0)) return;
    json_real(j, "gflops", flops / seconds * 1e-9);
    snprintf(of, sizeof of, "of_%s_peak", bench_key(k));
    if (m->peak[k] > 0) json_real(j, of, flops / seconds / m->peak[k]);
    snprintf(of, sizeof of, "of_%s_kept_up", bench_key(k));
    if (m->kept[k] > 0) json_real(j, of, flops / seconds / m->kept[k]);
}

static void log_tally(const measure *m, json_out *j, const char *name,
                      const tally *t)
{
    json_open(j, name, '{');
    json_int(j, "passes", t->n);
    json_real(j, "seconds", t->wall / t->n);
    json_real(j, "cpu_seconds", t->cpu / t->n);
    log_rate(m, j, all_flops(t), t->wall);
    json_open(j, "parts", '{');
    for (int p = 0; p < PARTS; p++) {
        json_open(j, parts[p].key, '{');
        json_real(j, "seconds", t->seconds[p] / t->n);
        json_real(j, "share", t->seconds[p] / t->wall);
        log_rate(m, j, t->flops[p], t->seconds[p]);
        json_close(j, '}');
    }
    json_close(j, '}');
    json_close(j, '}');
}

static void log_all(const measure *m, json_out *j, const steady_memory *held,
                    const char *sha)
{
    const steady *b = &m->b;
    json_str(j, "model", b->model);
    json_int(j, "layers", b->geo.layers);
    json_int(j, "width", b->W);
    json_int(j, "height", b->H);
    json_str(j, "cache", b->cache_text);
    json_int(j, "frames_in_cache", b->K);
    json_int(j, "tokens", STEADY_CHUNK * b->geo.L);
    json_open(j, "peaks", '[');
    bench_log_peaks(m->ctx, m->peak, j);
    bench_log_kept(m->ctx, m->kept, j);
    json_close(j, ']');
    log_tally(m, j, "noisy", &m->noisy);
    log_tally(m, j, "clean", &m->clean);
    json_real(j, "chunk_seconds", chunk_seconds(m));
    json_int(j, "memory_bytes", held->anonymous);
    json_int(j, "mapped_bytes", held->mapped);
    json_str(j, "flow", sha);
}

/* ---- the command --------------------------------------------------------- */

/* Pixels, a multiple of 16. */
static bool read_size(int64_t *size, const char *text, int64_t usual)
{
    *size = usual;
    return !text || (opt_list_int(size, 1, text) == 1 && *size >= 16
                     && *size <= PIXELS_MAX && *size % 16 == 0);
}

int bench_pass_check(bench_settings *s)
{
    const bool one = !s->width != !s->height;
    if (one) return opt_usage("bench", "--width and --height belong together");
    if (!read_size(&s->W, s->width, s->quick ? 208 : 416)
        || !read_size(&s->H, s->height, s->quick ? 112 : 240))
        return opt_usage("bench", "--width and --height must be multiples of "
                         "16, at most %d", PIXELS_MAX);
    const bool layers = s->layers != BENCH_USUAL;
    if (s->model && layers)
        return opt_usage("bench", "--layers is of generated weights; a model "
                         "of -m has its own");
    if (layers && (s->layers < 1 || s->layers > LAYERS_MAX))
        return opt_usage("bench", "--layers must be 1 to %d", LAYERS_MAX);
    if (s->passes < 2 || s->passes > PASSES)
        return opt_usage("bench", "--passes must be 2 (a noisy and a clean one)"
                         " to %d", PASSES);
    if (s->prime < 0 || s->prime > PRIME_MAX)
        return opt_usage("bench", "--prime must be 0 to %d", PRIME_MAX);
    return GO_ON;
}

static void bench_pass_show(measure *m, json_out *j)
{
    char sha[65];
    const steady_memory held = steady_held();
    tt_ctx *ctx = m->ctx;
    if (!ctx->device) bench_find_kept(ctx, m->s, m->kept);
    if (steady_digest(&m->b, sha)) return;
    look_for_peaks(m);
    if (ctx->status) return;
    print_all(m, &held, sha);
    if (j) log_all(m, j, &held, sha);
}

tt_status bench_pass(tt_ctx *ctx, const bench_settings *s, json_out *j)
{
    measure m = {.ctx = ctx, .s = s, .b = {
        .ctx = ctx, .model = s->model, .W = s->W, .H = s->H, .chunks = 1,
        .cache_text = s->cache ? s->cache : "tether", .prime = (int)s->prime,
        .layers = s->layers == BENCH_USUAL ? LAYERS : s->layers,
        .admit = true}};
    m.all = 2 * m.b.prime + (int)s->passes;
    look_for_peaks(&m);
    if (!ctx->status && !open_all(&m)
        && !take_passes(&m, (int)s->passes - 1))
        bench_pass_show(&m, j);
    steady_close(&m.b);
    return ctx->status;
}
