/* tune.c: finds a row of src/ops/exact/tuning.h for an instruction set.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * usage: tune [--level NAME] [--only FIELD]... [--set FIELD=VALUE]... [-t N]
 *             [--rounds N] [--quick] [--cpu]
 *
 * Starts from the row of the level (of TT_CPU), with what --set says of it, and
 * takes one field after another: every candidate against the best so far, in
 * turns, at shapes of the 1.3B model and its VAE. A candidate is taken when one
 * shape gains 1 % more than its noise, the mean of all more than theirs, and no
 * shape loses as much, twice. Prints the gain of each, and at last the row.
 * --quick: fewer keys and no linear layer of 4680 x 8960. */
#include <math.h>
#include <stddef.h>

#include "lib/bench_lib.h"
#include "ops/exact/tuning.h"
#include "ops/backend.h"
#include "core/threads.h"

#ifndef TT_REAL_DOUBLE

enum { LINEAR = 1, PACKED = 2, ATTENTION = 4, CONV = 8, CORES = 16,
       ELEMENTS = 32, COLUMNS = 64 };
enum { POOL = 3 << 24, LEAST_GAIN = 1 }; /* values; percent                   */

static struct {
    float *x, *y, *w;        /* [POOL]                                        */
    uint16_t *narrow;        /* [POOL]: w as bf16                             */
    size_t at;               /* in w: weights come from memory, as in a pass  */
    bench_args args;
    tt_class cls;
} b;

/* What is timed: `times` calls a turn. */
typedef struct work {
    const char *name;
    unsigned kind;
    int times;
    int64_t n, o, k;
} work;

static const work works[] = {
    {"linear 4680x1536 -> 1536", LINEAR, 1, 4680, 1536, 1536},
    {"linear 4680x8960 -> 1536", LINEAR, 1, 4680, 1536, 8960},
    {"linear 273x1536 -> 1536", LINEAR, 4, 273, 1536, 1536},
    {"linear 273x1536 -> 8960", LINEAR, 1, 273, 8960, 1536},
    {"linear 273x8960 -> 1536", LINEAR, 1, 273, 1536, 8960},
    {"linear 91x1536 -> 1536", LINEAR, 12, 91, 1536, 1536},
    {"linear 4680x1536 -> 1536, packed", PACKED, 1, 4680, 1536, 1536},
    {"linear 546x1536 -> 1536, packed", PACKED, 2, 546, 1536, 1536},
    {"linear 273x1536 -> 1536, packed", PACKED, 4, 273, 1536, 1536},
    {"attention 4680x32760, 1 head", ATTENTION, 1, 4680, 32760, 1},
    {"attention 273x1911, 12 heads", ATTENTION, 2, 273, 1911, 12},
    {"conv 96 channels, 60x208", CONV, 1, 96, 60, 208},
    {"conv 192 channels, 60x104", CONV, 1, 192, 60, 104},
    {"conv 384 channels, 30x52", CONV, 1, 384, 30, 52},
    {"linear sm80 273x1536 -> 1536", CORES, 1, 273, 1536, 1536},
    {"linear sm80 1560x1536 -> 1536", CORES, 1, 1560, 1536, 1536},
    {"gelu 273x8960", ELEMENTS, 8, 273, 8960, 0},
    {"gelu 4680x3072", ELEMENTS, 2, 4680, 3072, 0},
    {"col_mean 273x1536", COLUMNS, 32, 273, 1536, 0},
    {"col_mean 4680x1536", COLUMNS, 4, 4680, 1536, 0},
};
enum { WORKS = sizeof works / sizeof works[0] };

static bool is_long(const work *q)
{
    return q->kind == LINEAR && q->n * q->k > POOL / 2;
}

static void run_linear(tt_ctx *ctx, const work *q)
{
    const size_t n = (size_t)(q->o * q->k);
    const bool bf16 = b.cls != TT_CLASS_F32 && q->kind == LINEAR;
    if (b.at + n > POOL) b.at = 0;
    const tt_tensor w = tt_tensor_make(
        bf16 ? (void *)(b.narrow + b.at) : (void *)(b.w + b.at),
        bf16 ? TT_BF16 : TT_F32, 2, (int64_t[]){q->o, q->k});
    b.at += n;
    tt_linear(ctx, b.y, b.x, q->n, &w, NULL);
}

static void run_attention(tt_ctx *ctx, const work *q)
{
    const int64_t D = 128, wide = q->k * D;
    const int64_t keys = b.args.quick && q->o > 4096 ? 4096 : q->o;
    tt_attention(ctx, &(tt_attention_args){
        .o = b.y, .q = b.x, .k = b.w, .v = b.w + keys * wide, .T = q->n,
        .N = keys, .H = q->k, .D = D, .q_stride = wide, .kv_stride = wide,
        .scale = 0.088f});
}

static void run_conv(tt_ctx *ctx, const work *q)
{
    const int64_t C = q->n, H = q->o, W = q->k;
    const tt_tensor w = tt_tensor_make(b.w, TT_F32, 5,
                                       (int64_t[]){C, 3, 3, 3, C});
    tt_conv(ctx, &(tt_conv_args){
        .y = b.y, .frame = (const float *[]){b.x, b.x + H * W * C,
                                             b.x + 2 * H * W * C},
        .w = &w, .Hi = H, .Wi = W, .Cin = C, .Ho = H, .Wo = W, .Cout = C,
        .kt = 3, .kh = 3, .kw = 3, .stride = 1, .pad_top = 1, .pad_left = 1,
        .up = 1});
}

static double seconds(tt_ctx *ctx, const work *q)
{
    static double mean[1536];
    const tt_class cls = q->kind == CORES ? TT_CLASS_SM80 : b.cls;
    ctx->ops = tt_ops_class(ctx->ops, cls);
    const double start = bench_now(&b.args);
    for (int i = 0; i < q->times; i++) {
        if (q->kind & (LINEAR | PACKED | CORES)) run_linear(ctx, q);
        else if (q->kind == ATTENTION) run_attention(ctx, q);
        else if (q->kind == CONV) run_conv(ctx, q);
        else if (q->kind == ELEMENTS) tt_gelu_tanh(ctx, b.y, q->n * q->o);
        else tt_col_mean(ctx, mean, b.x, q->n, q->o);
    }
    return bench_now(&b.args) - start;
}

/* ---- fields -------------------------------------------------------------- */

#define FIELD(name, least, most)                                               \
    {#name, offsetof(exact_tuning, name), least, most},
static const struct {
    const char *name;
    size_t at;
    int64_t least, most;
} fields[] = {EXACT_TUNING(FIELD)};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static int64_t *value(exact_tuning *row, int f)
{
    return (int64_t *)(void *)((char *)row + fields[f].at);
}

/* The kinds of work that a field is of. */
static unsigned kinds_of(int f)
{
    const char *n = fields[f].name;
    if (!strcmp(n, "packed_rows")) return b.cls == TT_CLASS_F32 ? 0 : PACKED;
    if (!strcmp(n, "group") || !strcmp(n, "head_groups")
        || !strcmp(n, "value_keys"))
        return ATTENTION;
    if (!strncmp(n, "conv", 4)) return CONV;
    if (!strncmp(n, "tc", 2)) return CORES;
    if (!strcmp(n, "piece")) return ELEMENTS;
    return strcmp(n, "cols") ? LINEAR : COLUMNS;
}

static int find(const char *name, size_t n)
{
    for (int f = 0; f < FIELDS; f++)
        if (strlen(fields[f].name) == n && !strncmp(fields[f].name, name, n))
            return f;
    return -1;
}

/* ---- turns --------------------------------------------------------------- */

/* Percent that `other` gains on `row`, and the noise of that. */
typedef struct gain {
    double gain, noise;
} gain;

static gain compare(tt_ctx *ctx, const work *q, const exact_tuning *row,
                    const exact_tuning *other)
{
    times ratio = {.n = 0};
    for (int r = 0; r <= b.args.rounds; r++) {
        double t[2];
        for (int s = 0; s < 2; s++) {
            const int side = (r + s) % 2;
            exact_tune(side ? other : row);
            t[side] = seconds(ctx, q);
        }
        if (r) times_add(&ratio, t[0] / t[1]);
    }
    exact_tune(NULL);
    const double middle = times_median(&ratio);
    for (int i = 0; i < ratio.n; i++) ratio.t[i] = fabs(ratio.t[i] - middle);
    return (gain){100 * (middle - 1),
                  200 * times_median(&ratio) / sqrt(ratio.n)};
}

/* The mean gain over all shapes; -100 if it is none, or if one loses. */
static double check(tt_ctx *ctx, int f, exact_tuning *row, exact_tuning *other)
{
    double sum = 0, noise = 0, most = 0;
    int n = 0;
    for (int i = 0; i < WORKS; i++) {
        const work *q = &works[i];
        if (!(q->kind & kinds_of(f)) || (b.args.quick && is_long(q))) continue;
        const gain g = compare(ctx, q, row, other);
        printf("%-12s %9lld -> %9lld  %-34s %+6.1f %% +- %.1f\n",
               fields[f].name, (long long)*value(row, f),
               (long long)*value(other, f), q->name, g.gain, g.noise);
        fflush(stdout);
        if (g.gain < -fmax(LEAST_GAIN, g.noise)) return -100;
        most = fmax(most, g.gain - g.noise);
        sum += g.gain;
        noise = hypot(noise, g.noise);
        n++;
    }
    return most > LEAST_GAIN && sum > noise ? sum / n : -100;
}

static void tune_field(tt_ctx *ctx, int f, exact_tuning *row)
{
    static const double factor[] = {0.25, 0.5, 0.75, 1.5, 2, 3, 4};
    exact_tuning best = *row;
    double most = 0;
    if (!kinds_of(f)) return;
    for (int i = 0; i < 7; i++) {
        exact_tuning other = *row;
        const int64_t now = *value(row, f);
        const double to = factor[i] * (double)now;
        *value(&other, f) = (int64_t)to;
        if ((double)(int64_t)to < to || (int64_t)to < fields[f].least
            || (int64_t)to > fields[f].most)
            continue;
        const double g = check(ctx, f, row, &other);
        if (g > most && check(ctx, f, row, &other) > 0) {
            most = g;
            best = other;
        }
    }
    printf("%-12s %9lld%s\n", fields[f].name, (long long)*value(&best, f),
           most > 0 ? ", taken" : ", stays");
    *row = best;
}

/* ---- options ------------------------------------------------------------- */

typedef struct choice {
    exact_tuning row;
    bool only[FIELDS], some;
    int64_t set[FIELDS];     /* -1: as it is                                  */
} choice;

/* Takes its own options out of argv. */
static bool parse(choice *c, int threads, int argc, char **argv)
{
    int rest = 1;
    for (int f = 0; f < FIELDS; f++) c->set[f] = -1;
    for (int i = 1; i < argc; i++) {
        const char *v = i + 1 < argc ? argv[i + 1] : "";
        const size_t n = strcspn(v, "=");
        const int f = find(v, n);
        if (!strcmp(argv[i], "--level")) {
            setenv("TT_CPU", v, 1);
        } else if (!strcmp(argv[i], "--only") && f >= 0) {
            c->only[f] = c->some = true;
        } else if (!strcmp(argv[i], "--set") && f >= 0 && v[n]) {
            c->set[f] = strtoll(v + n + 1, NULL, 10);
            if (c->set[f] < fields[f].least || c->set[f] > fields[f].most)
                return false;
        } else {
            argv[rest++] = argv[i];
            continue;
        }
        i++;
    }
    return bench_parse(&b.args, threads, rest, argv);
}

static bool fill(tt_ctx *ctx, tt_arena *mem)
{
    b.x = tt_alloc(ctx, mem, POOL, sizeof *b.x, "values");
    b.y = tt_alloc0(ctx, mem, POOL, sizeof *b.y, "outputs");
    b.w = tt_alloc(ctx, mem, POOL, sizeof *b.w, "weights");
    b.narrow = tt_alloc(ctx, mem, POOL, sizeof *b.narrow, "weights");
    if (ctx->status) return false;
    bench_values(b.x, POOL, 1);
    bench_values(b.w, POOL, 2);
    for (int64_t i = 0; i < POOL; i++) b.narrow[i] = tt_bf16_from_f32(b.w[i]);
    return true;
}

static void tune(tt_ctx *ctx, choice *c, exact_level level)
{
    c->row = *exact_tuned(level);
    for (int f = 0; f < FIELDS; f++)
        if (c->set[f] >= 0) *value(&c->row, f) = c->set[f];
    for (int f = 0; f < FIELDS && !ctx->status; f++)
        if (!c->some || c->only[f]) tune_field(ctx, f, &c->row);
    for (int f = 0; f < FIELDS; f++)
        printf("%s.%s = %lld", f ? f % 5 ? ", " : ",\n         " : "        {",
               fields[f].name, (long long)*value(&c->row, f));
    printf("},\n");
}

int main(int argc, char **argv)
{
    tt_ctx context, *ctx = &context;
    tt_arena mem = {0};
    choice c = {.some = false};
    tt_threads_sleep();
    if (tt_ctx_init(ctx)) return 1;
    if (!parse(&c, ctx->nthreads, argc, argv)) {
        fputs("usage: tune [--level NAME] [--only FIELD]... "
              "[--set FIELD=VALUE]...\n            [-t N] [--rounds N] "
              "[--quick] [--cpu]\nfields:", stderr);
        for (int f = 0; f < FIELDS; f++) fprintf(stderr, " %s", fields[f].name);
        fputs("\n", stderr);
        return 2;
    }
    ctx->nthreads = b.args.threads[b.args.nthreads - 1];
    exact_level_reread();
    const exact_level level = exact_level_wanted();
    if (!tt_level_check(ctx) && level == EXACT_BEST)
        tt_fail(ctx, TT_EINVAL, "name an instruction set: --level avx512");
    b.cls = level == EXACT_AVX512BF16 ? TT_CLASS_VDP
            : level > EXACT_AVX512BF16 ? TT_CLASS_AMX : TT_CLASS_F32;
    if (!ctx->status && tt_ops_use(ctx, "exact") == TT_OK && fill(ctx, &mem))
        tune(ctx, &c, level);
    if (ctx->status) fprintf(stderr, "tune: %s\n", tt_message(ctx));
    const int rc = ctx->status != TT_OK;
    tt_arena_free(&mem);
    tt_ctx_free(ctx);
    return rc;
}

#else

int main(void)
{
    fputs("tune: the exact backend is of the float build\n", stderr);
    return 1;
}

#endif
