/* test_turned.c: weights that somebody has turned beforehand, or a call turns
 * once for all its rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property  with tt_tensor.turned every instruction set gives the bits of
 *           golden, and those that take such weights read nothing else: where
 *           they are stored there are other numbers. Weights turned for other
 *           lanes are not looked at. Nothing behind the last one is read, nor
 *           of the last outputs more than there are. A call of `once_rows` and
 *           more gives them too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ops/exact/exact.h"
#include "tests/harness.h"
#include "tether/backend.h"

#ifndef TT_REAL_DOUBLE

static tt_ctx *ctx;
static const char *level;
static int64_t lanes;

static void fill(float *x, int64_t n, uint32_t s)
{
    for (int64_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)s * 0x1p-31f;
    }
}

/* n numbers that end where no page is. */
typedef struct fence {
    char *pages;
    size_t size, page;
} fence;

static float *fenced(fence *f, int64_t n)
{
    const size_t bytes = (size_t)n * sizeof(float);
    f->page = (size_t)sysconf(_SC_PAGESIZE);
    f->size = (bytes / f->page + 1) * f->page;
    f->pages = mmap(NULL, f->size + f->page, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool good = f->pages != MAP_FAILED
                      && !mprotect(f->pages + f->size, f->page, PROT_NONE);
    if (!expect(good, "a page that cannot be read")) return NULL;
    return (float *)(void *)(f->pages + f->size - bytes);
}

/* w [o, K] as [groups, K, l], zeros past o. */
static float *turn(fence *f, const float *w, int64_t o, int64_t K, int64_t l)
{
    const int64_t groups = (o + l - 1) / l;
    float *t = fenced(f, groups * K * l);
    for (int64_t g = 0; t && g < groups; g++)
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < l; j++)
                t[(g * K + k) * l + j] = g * l + j < o ? w[(g * l + j) * K + k]
                                                       : 0;
    return t;
}

/* Outputs of a call, with weights that are the ones it says. */
typedef void (*call_fn)(const void *what, const tt_tensor *w, float *y);

/* o x K weights, in a shape; a call of n outputs. */
typedef struct product {
    call_fn call;
    const void *what;
    int64_t o, K, n;
    int rank;
    int64_t dim[5];
    int threads;                 /* up to which it reads turned ones alone    */
} product;

static void check(const product *p, const char *name)
{
    float *w = malloc((size_t)(p->o * p->K) * sizeof *w);
    float *other = malloc((size_t)(p->o * p->K) * sizeof *w);
    float *want = malloc((size_t)p->n * sizeof *want);
    float *got = malloc((size_t)p->n * sizeof *got);
    fence f;
    char text[160];
    fill(w, p->o * p->K, 7);
    fill(other, p->o * p->K, 8);
    tt_tensor plain = tt_tensor_make(w, TT_F32, p->rank, p->dim);
    ctx->ops = tt_ops_find("golden");
    p->call(p->what, &plain, want);
    ctx->ops = tt_ops_find("exact");
    float *turned = turn(&f, w, p->o, p->K, lanes);
    tt_tensor there = plain, wrong = plain;
    there.turned = turned;
    there.lanes = lanes;
    wrong.turned = other;
    wrong.lanes = lanes + 16;
    for (int t = 1; turned && t <= 3; t += 2) {
        ctx->nthreads = t;
        there.data = p->threads >= t ? other : w;
        for (int i = 0; i < 2; i++) {
            memset(got, 0x5a, (size_t)p->n * sizeof *got);
            p->call(p->what, i ? &wrong : &there, got);
            snprintf(text, sizeof text, "%s, %s, %d threads, %s", name, level,
                     t, i ? "turned for other lanes" : "turned");
            expect_bits(text, got, want, (size_t)p->n * sizeof *got);
        }
    }
    if (turned) munmap(f.pages, f.size + f.page);
    free(w);
    free(other);
    free(want);
    free(got);
}

/* ---- linear layers ------------------------------------------------------- */

typedef struct linear_case {
    const float *x, *b;
    int64_t n;
} linear_case;

static void call_linear(const void *what, const tt_tensor *w, float *y)
{
    const linear_case *c = what;
    tt_linear(ctx, y, c->x, c->n, w, c->b);
}

/* Rows of whole and half tiles; outputs of whole tiles, and of one more than
 * half; several slices of products, and ends of one. Few rows go along the
 * lanes, and so do few outputs for many threads: they read what is stored. */
static void check_linear(void)
{
    static const int64_t shape[][3] = {
        {160, 32, 256}, {161, 64, 512}, {167, 96, 513}, {174, 62, 1030},
        {273, 320, 600}, {200, 640, 1}, {324, 352, 530}, {20, 64, 300}};
    static float x[324 * 1030], b[640];
    fill(x, 324 * 1030, 1);
    fill(b, 640, 2);
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        const int64_t n = shape[i][0], o = shape[i][1], K = shape[i][2];
        char name[80];
        const linear_case c = {x, i % 2 ? b : NULL, n};
        snprintf(name, sizeof name, "linear %lldx%lldx%lld", (long long)n,
                 (long long)o, (long long)K);
        const int threads = n < 160 ? 0 : o < 320 ? 1 : 3;
        check(&(product){call_linear, &c, o, K, n * o, 2, {o, K}, threads},
              name);
    }
}

/* ---- convolutions -------------------------------------------------------- */

static void call_conv(const void *what, const tt_tensor *w, float *y)
{
    tt_conv_args c = *(const tt_conv_args *)what;
    c.y = y;
    c.w = w;
    tt_conv(ctx, &c);
}

/* Channels that fill no panel, few of them in the last one; a first frame and
 * two that are missing, so sums begin behind their products; lines that share
 * sums. */
static void check_conv(void)
{
    enum { H = 9, W = 17, CIN = 40 };
    static const struct { int64_t cout; int has, up; } row[] = {
        {64, 7, 1}, {33, 7, 1}, {50, 4, 1}, {96, 6, 1}, {64, 7, 2}, {34, 4, 2}};
    static float x[3][H * W * CIN], b[96];
    for (uint32_t i = 0; i < 3; i++) fill(x[i], H * W * CIN, 3 + i);
    fill(b, 96, 6);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const float *frame[3];
        const int64_t o = row[i].cout, K = 27 * CIN, up = row[i].up;
        for (int k = 0; k < 3; k++)
            frame[k] = row[i].has >> k & 1 ? x[k] : NULL;
        const tt_conv_args c = {
            .frame = frame, .b = i % 2 ? b : NULL, .Hi = H, .Wi = W, .Cin = CIN,
            .Ho = H * up, .Wo = W * up, .Cout = o, .kt = 3, .kh = 3, .kw = 3,
            .stride = 1, .pad_top = 1, .pad_left = 1, .up = row[i].up};
        char name[80];
        snprintf(name, sizeof name, "conv of %lld channels, frames %d, up %d",
                 (long long)o, row[i].has, row[i].up);
        check(&(product){call_conv, &c, o, K, H * W * up * up * o, 5,
                         {o, 3, 3, 3, CIN}, 3}, name);
    }
}

/* Infinite weights on a frame that is missing make NaN of its zeros. */
static void check_infinite(void)
{
    enum { O = 70, CIN = 8, K = 27 * CIN, N = 4 * 4 * O };
    static float w[O * K], x[16 * CIN], y[N];
    fence f;
    fill(w, O * K, 1);
    fill(x, 16 * CIN, 2);
    w[(O - 2) * K + 5] = INFINITY; /* of the oldest frame */
    float *turned = turn(&f, w, O, K, lanes);
    tt_tensor t = tt_tensor_make(w, TT_F32, 5, (int64_t[]){O, 3, 3, 3, CIN});
    t.turned = turned;
    t.lanes = lanes;
    ctx->ops = tt_ops_find("exact");
    call_conv(&(tt_conv_args){
        .frame = (const float *[]){NULL, NULL, x}, .Hi = 4, .Wi = 4,
        .Cin = CIN, .Ho = 4, .Wo = 4, .Cout = O, .kt = 3, .kh = 3, .kw = 3,
        .stride = 1, .pad_top = 1, .pad_left = 1, .up = 1}, &t, y);
    expect(isnan(y[O - 2]) && !isnan(y[O - 1]), "%s: an infinite weight on a "
           "missing frame: %g, beside it %g", level, (double)y[O - 2],
           (double)y[O - 1]);
    if (turned) munmap(f.pages, f.size + f.page);
}

/* ---- once in a call ------------------------------------------------------ */

enum { ONCE_O = 288, ONCE_K = 600, ONCE_N = 89, SHIFT = 16 };
static float once_x[ONCE_N * ONCE_K];

/* n rows, to y `shift` floats behind the start of a cache line. */
static void turn_once(const tt_tensor *w, int64_t n, int64_t shift)
{
    static _Alignas(64) float got[ONCE_N * ONCE_O + SHIFT];
    static float want[ONCE_N * ONCE_O];
    const size_t bytes = sizeof *want * (size_t)(n * w->dim[0]);
    tt_linear_args a = {.y = want, .x = once_x, .n = n, .w = w};
    tt_ctx fresh, *own = &fresh;
    if (!expect(tt_ctx_init(own) == TT_OK, "context")) return;
    own->nthreads = 3;
    tt_ops_find("golden")->linear(ctx, &a);
    memset(got, 0x5a, sizeof got);
    a.y = got + shift;
    exact_f32_linear(own, &a);
    char name[120];
    snprintf(name, sizeof name, "%s, %s, turned once, %lld rows of %lld, %lld "
             "behind a line", level, tt_dtype_name(w->dtype), (long long)n,
             (long long)w->dim[0], (long long)shift);
    expect_bits(name, a.y, want, bytes);
    tt_ctx_free(own);
}

static void check_once(void)
{
    static float w[ONCE_O * ONCE_K];
    static uint16_t half[ONCE_O * ONCE_K];
    const exact_tuning table = *exact_tuned(exact_kernels()->level);
    fill(once_x, ONCE_N * ONCE_K, 1);
    fill(w, ONCE_O * ONCE_K, 2);
    for (int i = 0; i < ONCE_O * ONCE_K; i++) half[i] = tt_bf16_from_f32(w[i]);
    for (int64_t o = ONCE_O; o >= ONCE_O - 18; o -= 18)
        for (int64_t n = 76; n <= ONCE_N; n++) {
            static const int64_t shift[] = {0, 1, 4, 8};
            const int64_t dim[] = {o, ONCE_K};
            const tt_tensor f = tt_tensor_make(w, TT_F32, 2, dim);
            const tt_tensor h = tt_tensor_make(half, TT_BF16, 2, dim);
            exact_tuning row = table;
            row.turned_rows = 1;
            row.once_rows = n;
            row.rows = 40;
            row.far = 0;
            exact_tune(&row);
            turn_once(n % 3 ? &f : &h, n, shift[n % 4]);
            turn_once(n % 3 ? &h : &f, n, 0);
            exact_tune(NULL);
        }
}

/* ---- instruction sets ---------------------------------------------------- */

static void check_level(const char *name)
{
    setenv("TT_CPU", name, 1);
    exact_level_reread();
    level = name;
    ctx->ops = tt_ops_find("exact");
    lanes = ctx->ops->lanes(ctx);
    if (!lanes) {
        skip("%s: this CPU has no kernels of turned weights", name);
        return;
    }
    expect(lanes % 16 == 0, "%s: whole cache lines: %lld", name,
           (long long)lanes);
    for (int c = 0; c < TT_CLASS_COUNT; c++) {
        ctx->ops = tt_ops_class(tt_ops_find("exact"), (tt_class)c);
        expect((ctx->ops->lanes(ctx) > 0) == (c == TT_CLASS_F32),
               "%s: class %s", name, tt_class_name((tt_class)c));
    }
    check_linear();
    check_conv();
    check_infinite();
    check_once();
}

int main(void)
{
    ctx = test_begin("ops/turned");
    check_level("avx2");
    check_level("avx512");
    unsetenv("TT_CPU");
    exact_level_reread();
    return test_end();
}

#else

int main(void)
{
    test_begin("ops/turned");
    expect(!tt_ops_find("exact"), "kernels are of float builds");
    return test_end();
}

#endif
