/* test_backends.c: golden against every other backend, operator by operator.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * exact must give the bits of golden on every instruction set this CPU has;
 * blas must agree within rounding. Inputs are adversarial on purpose: zeros,
 * subnormals, huge values, constant rows, one-hot, odd and tiny sizes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ops/exact/level.h"
#include "tests/harness.h"
#include "ops/backend.h"

static tt_ctx *ctx;
static bool have_blas;
static uint64_t state = 88172645463325252u;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53;
}

enum { NORMAL, ZEROS, TINY, HUGE_VALUES, CONSTANT, ONE_HOT, WIDE, KINDS };

static tt_real *fill(tt_arena *a, int64_t n, int kind)
{
    tt_real *x = tt_alloc(ctx, a, n, sizeof *x, "a test input");
    int64_t hot = (int64_t)(uniform() * (double)n);
    for (int64_t i = 0; i < n; i++) {
        double u = 2 * uniform() - 1;
        switch (kind) {
        case ZEROS: u = i % 3 ? 0.0 : -0.0; break;
        case TINY: u *= 1e-39; break;
        case HUGE_VALUES: u *= 1e15; break;
        case CONSTANT: u = 0.75; break;
        case ONE_HOT: u = i == hot; break;
        case WIDE: u = ldexp(u, (int)(uniform() * 40) - 20); break;
        default: break;
        }
        x[i] = (tt_real)u;
    }
    return x;
}

/* Run `call` (which writes out[0..n)) with golden, then with exact at every
 * level and with 1 and 3 threads (bits), then with blas (tolerance). */
typedef void (*call_fn)(void *user, tt_real *out);

static void compare_within(const char *what, call_fn call, void *user,
                           int64_t n, double tol)
{
    static const char *const levels[] = {"generic", "avx2", "avx512"};
    /* on AArch64 every name but generic means NEON */
    tt_arena arena = {0};
    tt_real *want = tt_alloc0(ctx, &arena, n, sizeof *want, "want");
    tt_real *got = tt_alloc(ctx, &arena, n, sizeof *got, "got");
    int threads = ctx->nthreads;
    ctx->ops = tt_ops_find("golden");
    call(user, want);
    for (int l = 0; l < 3 && tt_ops_find("exact"); l++)
        for (int t = 1; t <= 3; t += 2) {
            char name[160];
            snprintf(name, sizeof name, "%s: exact/%s, %d threads", what,
                     levels[l], t);
            setenv("TT_CPU", levels[l], 1);
            exact_level_reread();
            ctx->ops = tt_ops_find("exact");
            ctx->nthreads = t;
            memset(got, 0x5a, (size_t)n * sizeof *got);
            call(user, got);
            expect_bits(name, got, want, (size_t)n * sizeof *got);
        }
    unsetenv("TT_CPU");
    exact_level_reread();
    ctx->nthreads = threads;
    if (tol >= 0 && have_blas) {
        ctx->ops = tt_ops_find("blas");
        memset(got, 0x5a, (size_t)n * sizeof *got);
        call(user, got);
        double top = 0;
        for (int64_t i = 0; i < n; i++) top = fmax(top, fabs((double)want[i]));
        double limit = tol * (top + 1e-300);
        for (int64_t i = 0; i < n; i++)
            if (!(fabs((double)got[i] - (double)want[i]) <= limit)) {
                expect(false, "%s: blas at %lld: %g, golden %g", what,
                       (long long)i, (double)got[i], (double)want[i]);
                break;
            }
    }
    expect_ok(ctx->status, what);
    tt_arena_free(&arena);
}

static void compare(const char *what, call_fn call, void *user, int64_t n,
                    double tol)
{
    if (sizeof(tt_real) == 8 && tol >= 0) tol = 1e-14;
    compare_within(what, call, user, n, tol);
}

/* ---- linear -------------------------------------------------------------- */

typedef struct linear_case {
    const tt_real *x, *b;
    tt_tensor w;
    int64_t n;
} linear_case;

static void call_linear(void *user, tt_real *out)
{
    linear_case *c = user;
    tt_linear(ctx, out, c->x, c->n, &c->w, c->b);
}

static void test_linear(void)
{
    static const int64_t shape[][3] = {
        {1, 1, 1},   {1, 33, 7},    {14, 32, 512},  {15, 31, 513}, {7, 33, 257},
        {3, 5, 0x401}, {29, 65, 1100}, {170, 40, 96}, {2, 2100, 64},
        {400, 70, 600}, {29, 420, 1100}, {513, 2100, 20},
        /* the last panel of 17 to 20 rows, of 1 to 4, of 16 */
        {17, 30, 300}, {18, 29, 1000}, {19, 14, 777}, {52, 31, 530},
        {4, 33, 272}, {35, 15, 513}, {65, 28, 256}, {16, 20, 520}, {98, 15, 15},
        {33, 17, 768},
        /* weights that are transposed; nothing to add up */
        {161, 94, 600}, {200, 126, 257}, {36, 30, 530}, {200, 94, 0},
        {5, 16, 0},
    };
    static const tt_dtype types[] = {TT_F32, TT_BF16, TT_F16, TT_F64};
    for (size_t s = 0; s < sizeof shape / sizeof shape[0]; s++)
        for (int kind = 0; kind < KINDS; kind++) {
            tt_arena a = {0};
            int64_t n = shape[s][0], o = shape[s][1], i = shape[s][2];
            tt_dtype t = types[(s + (size_t)kind) % 4];
            bool narrow = t == TT_F16 && kind == WIDE; /* would overflow */
            tt_real *w = fill(&a, o * i,
                              kind == HUGE_VALUES || narrow ? NORMAL : kind);
            /* stored one byte off alignment, as a file may have it */
            char *raw = (char *)tt_alloc(ctx, &a, o * i + 1, 8, "w") + 1;
            for (int64_t k = 0; k < o * i; k++) {
                float f = (float)w[k];
                double d = (double)f;
                uint16_t h = t == TT_BF16 ? tt_bf16_from_f32(f)
                                          : tt_f16_from_f32(f);
                if (t == TT_F32) memcpy(raw + 4 * k, &f, 4);
                else if (t == TT_F64) memcpy(raw + 8 * k, &d, 8);
                else memcpy(raw + 2 * k, &h, 2);
            }
            linear_case c = {.x = fill(&a, n * i, kind),
                             .b = s % 2 ? fill(&a, o, kind) : NULL,
                             .w = tt_tensor_make(raw, t, 2, (int64_t[]){o, i}),
                             .n = n};
            char name[96];
            snprintf(name, sizeof name, "linear %lldx%lldx%lld %s kind %d",
                     (long long)n, (long long)o, (long long)i,
                     tt_dtype_name(t), kind);
            compare(name, call_linear, &c, n * o, kind == TINY ? -1 : 2e-5);
            tt_arena_free(&a);
        }
}

/* o x i normal numbers of a type, whose last byte is before `end`. */
static const void *place(tt_arena *a, char *end, tt_dtype type, int64_t o,
                         int64_t i)
{
    const tt_real *w = fill(a, o * i, NORMAL);
    uint16_t *half = (uint16_t *)(void *)end - o * i;
    tt_real *same = (tt_real *)(void *)end - o * i;
    for (int64_t k = 0; k < o * i; k++) {
        if (type == TT_BF16) half[k] = tt_bf16_from_f32((float)w[k]);
        else same[k] = w[k];
    }
    return type == TT_BF16 ? (const void *)half : same;
}

/* n rows against o x i weights; the last byte of the ones is before end[0],
 * that of the others before end[1]. */
static void linear_in_place(char *const *end, tt_dtype type, int64_t n,
                            int64_t o, int64_t i)
{
    tt_arena a = {0};
    const tt_dtype real = sizeof(tt_real) == 8 ? TT_F64 : TT_F32;
    const void *w = place(&a, end[1], type, o, i);
    linear_case c = {.x = place(&a, end[0], real, n, i), .n = n,
                     .w = tt_tensor_make(w, type, 2, (int64_t[]){o, i})};
    char name[96];
    snprintf(name, sizeof name, "linear in place %lldx%lldx%lld %s",
             (long long)n, (long long)o, (long long)i, tt_dtype_name(type));
    compare(name, call_linear, &c, n * o, 2e-5);
    tt_arena_free(&a);
}

/* `size` bytes that end where no page is, or NULL. */
static char *fenced(size_t size, size_t page)
{
    char *const pages = mmap(NULL, size + page, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool good = pages != MAP_FAILED
                      && !mprotect(pages + size, page, PROT_NONE);
    expect(good, "a page that cannot be read");
    return good ? pages : NULL;
}

/* Nothing after the last row of weights that are read in place may be read,
 * nor after that of x. With whole tiles of 14, 16 and 32 outputs, and the
 * numbers of rows that have kernels of their own. At last so many outputs that
 * units have all panels, which ask for weights of the next tile. */
static void test_linear_in_place(tt_dtype type)
{
    const bool more = type == TT_BF16;
    static const int64_t rows[] = {1, 2, 3, 4, 16, 17, 20, 23, 32, 33, 64, 65};
    static const int64_t inner[] = {1, 15, 17, 257, 271, 273, 513, 529, 530};
    static const int64_t transposed[][3] = {
        {33, 16, 15}, {35, 32, 273}, {40, 16, 17}, {65, 32, 529},
        {161, 32, 530}, {170, 64, 273}, {173, 32, 15}, {174, 32, 257},
        {210, 280, 1030}, {226, 288, 1030}, {273, 276, 1024}};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t size = (288 * 1030 * sizeof(tt_real) / page + 1) * page;
    char *const from[] = {fenced(size, page), fenced(size, page)};
    if (!from[0] || !from[1]) return;
    char *const end[] = {from[0] + size, from[1] + size};
    for (size_t s = 0; s < (more ? 9 : 8); s++)
        for (size_t r = 0; r < (more ? 12 : 10); r++)
            linear_in_place(end, type, rows[r], r % 2 ? 28 : 14, inner[s]);
    for (size_t s = 0; s < sizeof transposed / sizeof transposed[0]; s++)
        linear_in_place(end, type, transposed[s][0], transposed[s][1],
                        transposed[s][2]);
    for (int i = 0; i < 2; i++) munmap(from[i], size + page);
}

/* ---- conv ---------------------------------------------------------------- */

static void call_conv(void *user, tt_real *out)
{
    tt_conv_args c = *(tt_conv_args *)user;
    c.y = out;
    tt_conv(ctx, &c);
}

/* What a convolution reads. */
typedef struct conv_inputs {
    const tt_real *frame[3];
    tt_tensor w;
} conv_inputs;

/* Frames, of which those are there whose bit is set in `has`, and weights; c
 * gets them. Returns the weights. */
static tt_real *draw_conv(tt_arena *a, conv_inputs *in, tt_conv_args *c,
                          int has, int frames, int weights)
{
    const int64_t K = (int64_t)c->kt * c->kh * c->kw * c->Cin;
    for (int f = 0; f < 3; f++) {
        const tt_real *x = fill(a, c->Hi * c->Wi * c->Cin, frames);
        in->frame[f] = has >> f & 1 ? x : NULL;
    }
    tt_real *w = fill(a, c->Cout * K, weights);
    in->w = tt_tensor_make(w, sizeof(tt_real) == 8 ? TT_F64 : TT_F32, 5,
                           (int64_t[]){c->Cout, c->kt, c->kh, c->kw, c->Cin});
    c->frame = in->frame;
    c->w = &in->w;
    return w;
}

static void test_conv(void)
{
    for (int v = 0; v < 12; v++) {
        tt_arena a = {0};
        conv_inputs in;
        tt_conv_args c = {.kt = v % 3 ? 3 : 1, .kh = v % 4 ? 3 : 1,
                          .stride = v == 7 ? 2 : 1, .up = v % 5 == 4 ? 2 : 1};
        c.kw = c.kh;
        c.Hi = 1 + v;
        c.Wi = 9 - v % 7;
        c.Cin = v % 2 ? 24 : 7;
        c.Cout = v % 3 ? 33 : 3;
        c.pad_top = c.pad_left = c.stride == 2 ? 0 : c.kh / 2;
        c.Ho = c.Hi * c.up / c.stride;
        c.Wo = c.Wi * c.up / c.stride;
        draw_conv(&a, &in, &c, c.kt == 3 && v % 2 ? 6 : 7, v % KINDS, NORMAL);
        c.b = v % 2 ? fill(&a, c.Cout, NORMAL) : NULL;
        char name[64];
        snprintf(name, sizeof name, "conv variant %d", v);
        compare(name, call_conv, &c, c.Ho * c.Wo * c.Cout,
                v % KINDS == TINY ? -1 : 2e-5);
        tt_arena_free(&a);
    }
}

/* No outputs: nothing is written, and nothing is called that is not there. */
static void call_no_conv(void *user, tt_real *out)
{
    *out = 1;
    call_conv(user, out);
}

static void test_no_channels(void)
{
    tt_arena a = {0};
    conv_inputs in;
    tt_conv_args c = {.kt = 1, .kh = 3, .kw = 3, .stride = 1, .up = 1, .Hi = 4,
                      .Wi = 5, .Cin = 7, .Ho = 4, .Wo = 5, .pad_top = 1,
                      .pad_left = 1};
    draw_conv(&a, &in, &c, 7, NORMAL, NORMAL);
    compare("conv to no channels", call_no_conv, &c, 1, 2e-5);
    tt_arena_free(&a);
}

/* Few channels, and more than one slice of products; lines of a window that are
 * no whole number of 16; pictures cut into parts both ways. */
static void test_few_channels(void)
{
    static const int64_t shape[][4] = { /* Hi, Wi, Cin, Cout */
        {5, 17, 24, 3}, {17, 5, 45, 4}, {15, 29, 50, 1}, {29, 44, 96, 3},
        {3, 60, 7, 36}, {31, 33, 48, 34}, {14, 40, 192, 96},
    };
    for (size_t s = 0; s < sizeof shape / sizeof shape[0]; s++)
        for (int stride = 1; stride <= 2; stride++) {
            tt_arena a = {0};
            tt_conv_args c = {.kt = 3, .kh = 3, .kw = stride == 1 ? 3 : 1,
                              .stride = stride, .up = 1, .Hi = shape[s][0],
                              .Wi = shape[s][1], .Cin = shape[s][2],
                              .Cout = shape[s][3], .pad_top = 1,
                              .pad_left = stride == 1};
            c.Ho = (c.Hi + stride - 1) / stride;
            c.Wo = (c.Wi + stride - 1) / stride;
            conv_inputs in;
            draw_conv(&a, &in, &c, s % 2 ? 6 : 7, NORMAL, NORMAL);
            c.b = fill(&a, c.Cout, NORMAL);
            char name[96];
            snprintf(name, sizeof name, "conv %lldx%lld, %lld to %lld, stride "
                     "%d", (long long)c.Hi, (long long)c.Wi, (long long)c.Cin,
                     (long long)c.Cout, stride);
            compare(name, call_conv, &c, c.Ho * c.Wo * c.Cout, 2e-5);
            tt_arena_free(&a);
        }
}

/* Frames that are missing: their products are zeros, or not, where a weight of
 * theirs is not finite; sums of tiny products are -0 without them. */
static void test_missing(void)
{
    static const int64_t channels[][2] = {{7, 3}, {16, 34}, {40, 32}, {96, 33}};
    static const int there[] = {4, 6, 2, 5, 0};         /* bits: frames       */
    for (int v = 0; v < 4 * 5 * 4; v++) {
        tt_arena a = {0};
        const int has = there[v / 4 % 5], kind = v / 20;
        const int numbers = kind == 1 ? TINY : NORMAL;
        tt_conv_args c = {.kt = 3, .kh = 3, .kw = 3, .stride = 1, .up = 1,
                          .Hi = 15, .Wi = 6, .Ho = 15, .Wo = 6, .pad_top = 1,
                          .pad_left = 1, .Cin = channels[v % 4][0],
                          .Cout = channels[v % 4][1]};
        conv_inputs in;
        tt_real *w = draw_conv(&a, &in, &c, has, numbers, numbers);
        const int64_t K = (int64_t)c.kt * c.kh * c.kw * c.Cin;
        if (kind == 2) w[(c.Cout - 1) * K + K / 4] = (tt_real)INFINITY;
        if (kind == 3) w[K / 2] = (tt_real)NAN;
        c.b = v % 2 ? fill(&a, c.Cout, numbers) : NULL;
        char name[96];
        snprintf(name, sizeof name, "conv of frames %d, %lld to %lld, weights "
                 "%d", has, (long long)c.Cin, (long long)c.Cout, kind);
        compare(name, call_conv, &c, c.Ho * c.Wo * c.Cout, kind ? -1 : 2e-5);
        tt_arena_free(&a);
    }
}

/* Pictures that are seen doubled, where two lines of outputs share the sums of
 * what both read: blocks of products in one line of a window and in two (by one
 * product, of 85 and of 257 channels), lines above the picture and below, a
 * band that has lines of others, few channels, frames that are missing, tiles
 * down a column, every other line. */
static void test_doubled(void)
{
    static const int shape[][9] = {
        /* Hi, Wi, Cin, Cout, kt, kh, kw, pad_top, frames missing; stride 2
         * where kw is 4 */
        {5, 16, 192, 33, 1, 3, 3, 1, 0}, {9, 21, 384, 40, 1, 3, 3, 1, 0},
        {11, 14, 96, 3, 1, 3, 3, 1, 0},  {6, 15, 300, 32, 1, 3, 3, -1, 0},
        {7, 30, 520, 34, 1, 2, 1, 0, 0}, {4, 9, 128, 32, 3, 3, 3, 2, 1},
        {8, 14, 256, 35, 3, 1, 2, 0, 2}, {3, 28, 90, 64, 1, 5, 3, 3, 0},
        {1, 14, 256, 32, 1, 3, 3, 1, 0}, {40, 7, 192, 32, 1, 3, 3, 1, 0},
        {14, 1, 192, 32, 1, 3, 3, 1, 0}, {9, 28, 85, 32, 1, 3, 3, 1, 0},
        {9, 30, 192, 32, 1, 3, 4, 1, 0}, {9, 28, 257, 33, 1, 3, 1, 1, 0},
    };
    for (size_t s = 0; s < sizeof shape / sizeof shape[0]; s++)
        for (int tiny = 0; tiny < 2; tiny++) {
            tt_arena a = {0};
            const int *v = shape[s], numbers = tiny ? TINY : NORMAL;
            tt_conv_args c = {.Hi = v[0], .Wi = v[1], .Cin = v[2], .Cout = v[3],
                              .kt = v[4], .kh = v[5], .kw = v[6],
                              .pad_top = v[7], .pad_left = v[6] / 2,
                              .stride = v[6] == 4 ? 2 : 1, .up = 2};
            c.Ho = (2 * v[0] + (v[7] < 0 ? v[7] : 0)) / c.stride;
            c.Wo = 2 * v[1] / c.stride;
            conv_inputs in;
            draw_conv(&a, &in, &c, 7 << v[8], numbers, numbers);
            c.b = s % 2 ? fill(&a, c.Cout, numbers) : NULL;
            char name[96];
            snprintf(name, sizeof name, "conv of a doubled picture %dx%d, %d "
                     "to %d, pad %d", v[0], v[1], v[2], v[3], v[7]);
            compare(name, call_conv, &c, c.Ho * c.Wo * c.Cout,
                    tiny ? -1 : 2e-5);
            tt_arena_free(&a);
        }
}

/* ---- attention ----------------------------------------------------------- */

static void call_attention(void *user, tt_real *out)
{
    tt_attention_args c = *(tt_attention_args *)user;
    c.o = out;
    tt_attention(ctx, &c);
}

static void test_attention(void)
{
    static const int64_t shape[][4] = { /* T, N, H, D */
        {1, 1, 1, 1},   {5, 7, 2, 3},     {49, 513, 1, 16}, {50, 1030, 3, 40},
        {96, 512, 2, 8}, {13, 13, 4, 16}, {400, 77, 1, 10},
        {9, 20, 1, 384}, {50, 530, 2, 300},   /* wider than TT_DOT_BLOCK */
        {17, 300, 2, 22}, {50, 1023, 1, 37},  /* blocks that end in a second
                                                 TT_DOT_BLOCK of values */
        {33, 600, 1, 24}, {32, 304, 2, 8},    /* a query more than two vectors
                                                 hold, and as many */
    };
    for (size_t s = 0; s < sizeof shape / sizeof shape[0]; s++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int mode = 0; mode < 3; mode++) {
                tt_arena a = {0};
                tt_attention_args c = {.T = shape[s][0], .N = shape[s][1],
                                       .H = shape[s][2], .D = shape[s][3]};
                /* of one shape so many keys that values have two chains */
                const int64_t most = c.N == 300 ? 300 : 40;
                if (mode) c.T = c.N = c.N < most ? c.N : most;
                c.q_stride = c.H * c.D + (s % 2 ? 0 : 5);
                c.kv_stride = c.H * c.D + (s % 2 ? 3 : 0);
                c.scale = (tt_real)(mode == 2 ? 1 : 1 / sqrt((double)c.D));
                int k = kind == HUGE_VALUES ? WIDE : kind;
                c.q = fill(&a, c.T * c.q_stride, k);
                c.k = fill(&a, c.N * c.kv_stride, k);
                c.v = fill(&a, c.N * c.kv_stride, kind);
                if (mode) c.rel_bias = fill(&a, c.H * (2 * c.N - 1), NORMAL);
                uint8_t mask[300];
                for (int i = 0; i < 300; i++)
                    mask[i] = kind == ZEROS ? 0 : i < 5 || i % 3;
                if (mode == 2) c.key_mask = mask;
                char name[96];
                snprintf(name, sizeof name, "attention T%lld N%lld H%lld D%lld "
                         "kind %d mode %d", (long long)c.T, (long long)c.N,
                         (long long)c.H, (long long)c.D, kind, mode);
                /* wide logits make blas and golden differ in the weights */
                compare(name, call_attention, &c, c.T * c.H * c.D,
                        k == WIDE || kind == TINY ? -1 : 2e-5);
                tt_arena_free(&a);
            }
}

/* Keys and values from one on are all the same, and the caller says so: bits
 * are those of golden, which does not listen. */
static void test_same_keys(void)
{
    static const int64_t keys[] = {2, 17, 77, 512, 520, 1100};
    static const int64_t from[] = {1, 5, 7, 8, 9, 16, 72, 511, 512, 519, 1024};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        for (size_t f = 0; f < sizeof from / sizeof from[0]; f++) {
            tt_arena a = {0};
            const int64_t T = 50, N = keys[i], W = 2 * 24;
            if (from[f] >= N) continue;
            tt_real *k = fill(&a, N * W, NORMAL), *v = fill(&a, N * W, NORMAL);
            for (int64_t j = (from[f] + 1) * W; j < N * W; j++) {
                k[j] = k[j - W];
                v[j] = v[j - W];
            }
            tt_attention_args c = {.q = fill(&a, T * W, NORMAL), .k = k,
                                   .v = v, .T = T, .N = N, .H = 2, .D = 24,
                                   .q_stride = W, .kv_stride = W,
                                   .scale = (tt_real)(f % 2 ? -0.2 : 0.2),
                                   .same = from[f]};
            char name[96];
            snprintf(name, sizeof name, "%lld keys, the same from %lld on",
                     (long long)N, (long long)from[f]);
            /* N equal terms, one after the other, are rounded one way */
            compare_within(name, call_attention, &c, T * W,
                           sizeof(tt_real) == 8 ? 1e-14 + (double)N * 0x1p-53
                                                : 2e-5);
            tt_arena_free(&a);
        }
}

/* All scores are below zero: what fills the last tile of keys is above them.
 * With a negative scale the least score is the largest logit. Of one and of two
 * chains of values in a block. */
static void test_low_scores(void)
{
    static const int64_t keys[] = {3, 8, 13, 256, 257, 517, 600, 768, 1023};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        for (int minus = 0; minus < 2; minus++) {
            tt_arena a = {0};
            const int64_t T = 50, N = keys[i], D = 16;
            tt_real *q = fill(&a, T * D, NORMAL), *k = fill(&a, N * D, NORMAL);
            for (int64_t j = 0; j < T * D; j++) q[j] = q[j] < 0 ? -q[j] : q[j];
            for (int64_t j = 0; j < N * D; j++) k[j] = k[j] < 0 ? k[j] : -k[j];
            tt_attention_args c = {.q = q, .k = k, .v = fill(&a, N * D, NORMAL),
                                   .T = T, .N = N, .H = 1, .D = D,
                                   .q_stride = D, .kv_stride = D,
                                   .scale = (tt_real)(minus ? -0.25 : 0.25)};
            char name[64];
            snprintf(name, sizeof name, "low scores of %lld keys, scale %g",
                     (long long)N, (double)c.scale);
            compare(name, call_attention, &c, T * D, 2e-5);
            tt_arena_free(&a);
        }
}

/* Attention of one head; every NaN as the same number. */
static void call_with_nan(void *user, tt_real *out)
{
    const tt_attention_args *a = user;
    call_attention(user, out);
    for (int64_t i = 0; i < a->T * a->D; i++)
        if (isnan((double)out[i])) out[i] = 12345;
}

/* A channel of some keys is infinite, and zero, positive and negative in the
 * queries: a NaN among finite logits, infinity, and -infinity. */
static void test_infinite_keys(void)
{
    static const int64_t where[][2] = {{300, 301}, {550, 551}, {0, 600}};
    enum { T = 60, N = 600, D = 16, CHANNEL = 5 };
    for (int i = 0; i < 3; i++)
        for (int minus = 0; minus < 2; minus++) {
            tt_arena a = {0};
            tt_real *q = fill(&a, T * D, NORMAL), *k = fill(&a, N * D, NORMAL);
            for (int64_t t = 0; t < T; t++)
                q[t * D + CHANNEL] = (tt_real)(t % 3 - 1);
            for (int64_t j = where[i][0]; j < where[i][1]; j++)
                k[j * D + CHANNEL] = (tt_real)INFINITY;
            tt_attention_args c = {.q = q, .k = k, .v = fill(&a, N * D, NORMAL),
                                   .T = T, .N = N, .H = 1, .D = D,
                                   .q_stride = D, .kv_stride = D,
                                   .scale = (tt_real)(minus ? -0.25 : 0.25)};
            char name[64];
            snprintf(name, sizeof name, "infinite keys, case %d, scale %g", i,
                     (double)c.scale);
            compare(name, call_with_nan, &c, T * D, -1);
            tt_arena_free(&a);
        }
}

/* ---- rows and elements --------------------------------------------------- */

typedef struct row_case {
    int op;
    const tt_real *x, *y, *w, *b;
    int64_t n, c;
    tt_rope_table table;
    const int32_t *pos;
} row_case;
static const char *const row_ops[] = {
    "layer_norm", "layer_norm affine", "rms_norm", "channel_norm", "modulate",
    "gate_add", "add", "mul", "gelu_tanh", "silu", "rope", "col_mean",
    "col_moment", "col_blend", "layer_norm in place",
    "layer_norm affine in place", "rms_norm in place",
    "channel_norm in place", "col_blend average",
};
enum { ROW_OPS = sizeof row_ops / sizeof row_ops[0] };

static void call_row(void *user, tt_real *out)
{
    row_case *r = user;
    int64_t n = r->n, c = r->c;
    memcpy(out, r->x, (size_t)(n * c) * sizeof *out);
    double stat[512];
    switch (r->op) {
    case 0: tt_layer_norm(ctx, out, r->x, n, c, NULL, NULL, 1e-6); break;
    case 1: tt_layer_norm(ctx, out, r->x, n, c, r->w, r->b, 1e-6); break;
    case 2: tt_rms_norm(ctx, out, r->x, n, c, r->w, 1e-6); break;
    case 3: tt_channel_norm(ctx, out, r->x, n, c, r->w); break;
    case 14: tt_layer_norm(ctx, out, out, n, c, NULL, NULL, 1e-6); break;
    case 15: tt_layer_norm(ctx, out, out, n, c, r->w, r->b, 1e-6); break;
    case 16: tt_rms_norm(ctx, out, out, n, c, r->w, 1e-6); break;
    case 17: tt_channel_norm(ctx, out, out, n, c, r->w); break;
    case 18:
        tt_col_mean(ctx, stat, r->y, n, c);
        /* of the first row the rounding of both products is left */
        for (int64_t i = 0; i < c && r->n % 2; i++)
            stat[i] = -(1 - 0.1) * (double)out[i] / 0.1;
        tt_col_blend(ctx, out, n, c, NULL, NULL, stat, 0.1);
        break;
    case 4: tt_modulate(ctx, out, n, c, r->y, r->y + c, 2 * c, (n + 1) / 2); break;
    case 5: tt_gate_add(ctx, out, r->y, n, c, r->y, c, (n + 1) / 2); break;
    case 6: tt_add(ctx, out, r->y, n * c); break;
    case 7: tt_mul(ctx, out, r->y, n * c); break;
    case 8: tt_gelu_tanh(ctx, out, n * c); break;
    case 9: tt_silu(ctx, out, n * c); break;
    case 10: tt_rope(ctx, out, r->x, n, c / 40, 40, &r->table, r->pos); break;
    case 13:
        tt_col_mean(ctx, stat, r->x, n, c);
        tt_col_mean(ctx, stat + 128, r->y, n, c);
        tt_col_moment(ctx, stat + 256, r->y, stat + 128, n, c);
        tt_col_blend(ctx, out, n, c, stat, stat + 256, stat + 128, 0.35);
        break;
    default:
        tt_col_mean(ctx, stat, r->x, n, c);
        if (r->op == 12) tt_col_moment(ctx, stat + 256, r->x, stat, n, c);
        for (int64_t i = 0; i < c; i++)
            out[i] = (tt_real)stat[(r->op == 12 ? 256 : 0) + i];
    }
}

static void test_rows(void)
{
    static const int64_t shape[][2] = {
        {18, 96}, {5, 37}, {1, 16}, {2, 15}, {3, 128}, {33, 1}, {9, 112},
    };
    const int shapes = sizeof shape / sizeof shape[0];
    for (int op = 0; op < ROW_OPS; op++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int s = 0; s < shapes; s++) {
                tt_arena a = {0};
                row_case r = {.op = op, .n = shape[s][0], .c = shape[s][1]};
                if (op == 10) r.c = 120;
                int64_t count = r.n * r.c;
                r.x = fill(&a, count, kind);
                r.y = fill(&a, count * 2 + 2 * r.c, kind == TINY ? WIDE : kind);
                r.w = fill(&a, r.c, NORMAL);
                r.b = fill(&a, r.c, WIDE);
                int32_t *pos = tt_alloc(ctx, &a, 3 * r.n, 4, "pos");
                for (int64_t i = 0; i < 3 * r.n; i++)
                    pos[i] = (int32_t)(uniform() * 900);
                r.pos = pos;
                if (op == 10) tt_rope_make(ctx, &a, &r.table, 40, 900);
                char name[96];
                snprintf(name, sizeof name, "%s %lldx%lld kind %d", row_ops[op],
                         (long long)r.n, (long long)r.c, kind);
                compare(name, call_row, &r, count, -1);
                tt_arena_free(&a);
            }
}

/* ---- the exponential inside operators ------------------------------------ */

/* SiLU and GELU of floats of every size and sign: all that differ in the upper
 * half of their bits, and as many again. */
static void test_gates(void)
{
    const int64_t n = 131072;
    tt_arena a = {0};
    tt_real *x = tt_alloc(ctx, &a, n, sizeof *x, "x");
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t u = (uint32_t)(i * 32767);
        float f;
        memcpy(&f, &u, 4);
        if (f - f == 0) x[kept++] = (tt_real)f;   /* finite */
    }
    row_case r = {.x = x, .n = 1, .c = kept};
    for (r.op = 8; r.op <= 9; r.op++) {
        char name[64];
        snprintf(name, sizeof name, "%s of all sizes", row_ops[r.op]);
        compare(name, call_row, &r, kept, -1);
    }
    expect(kept > 130000, "nearly all of them are finite");
    tt_arena_free(&a);
}

/* Softmax over two keys, one head per logit x <= 0: o = 2^100 e^x / (1 + e^x),
 * so that e^x is seen below the normal range too. */
static void test_weights(void)
{
    const int64_t H = 4096;
    tt_arena a = {0};
    tt_real *q = fill(&a, H, CONSTANT), *k = fill(&a, 2 * H, CONSTANT);
    tt_real *v = fill(&a, 2 * H, CONSTANT);
    for (int64_t h = 0; h < H; h++) {
        q[h] = 1;
        k[h] = v[h] = 0;
        k[H + h] = (tt_real)(-(h < H / 2 ? 110 : 85 + 20 * uniform()) *
                             (h < H / 2 ? uniform() : 1));
        v[H + h] = (tt_real)0x1p100;
    }
    tt_attention_args args = {.q = q, .k = k, .v = v, .T = 1, .N = 2, .H = H,
                              .D = 1, .q_stride = H, .kv_stride = H,
                              .scale = 1};
    compare("softmax weights of all sizes", call_attention, &args, H, -1);
    tt_arena_free(&a);
}

/* Every name is a level of its own, and no name is the best. */
static void test_levels(void)
{
    static const char *const names[] = {"generic", "neon", "avx2", "avx512",
                                        "avx512bf16", "amx-model", "amx"};
    for (int l = 0; l < EXACT_BEST; l++) {
        setenv("TT_CPU", names[l], 1);
        exact_level_reread();
        expect((int)exact_level_wanted() == l, "TT_CPU=%s is read", names[l]);
    }
    setenv("TT_CPU", "foo", 1);
    expect(tt_level_check(ctx) == TT_EINVAL, "TT_CPU=foo is refused");
    tt_clear(ctx);
    setenv("TT_CPU", "generic", 1);
    expect_ok(tt_level_check(ctx), "TT_CPU=generic is everywhere");
    unsetenv("TT_CPU");
    exact_level_reread();
    expect(exact_level_wanted() == EXACT_BEST, "the best without TT_CPU");
}

int main(void)
{
    ctx = test_begin("ops/backends");
    test_levels();
    have_blas = tt_ops_use(ctx, "blas") == TT_OK;
    if (!have_blas) {
        skip("blas is not compared: %s", tt_message(ctx));
        expect(ctx->status == TT_EUNSUPPORTED, "a missing OpenBLAS");
        tt_clear(ctx);
    }
    test_linear();
    test_linear_in_place(sizeof(tt_real) == 8 ? TT_F64 : TT_F32);
    test_conv();
    test_no_channels();
    test_attention();
    test_low_scores();
    test_infinite_keys();
    test_rows();
    test_gates();
    test_weights();
    test_linear_in_place(TT_BF16);
    test_few_channels();
    test_same_keys();
    test_missing();
    test_doubled();
    return test_end();
}
