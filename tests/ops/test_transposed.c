/* test_transposed.c: weights that a call turns for its rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property  kernels that have outputs along the lanes give the bits of golden,
 *           with every instruction set and any number of rows; so do those of a
 *           call of `once_rows` and more, which turns all weights once.
 *           Infinite weights on a frame that is missing make NaN. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/exact/exact.h"
#include "tests/harness.h"
#include "ops/backend.h"

#ifndef TT_REAL_DOUBLE

static tt_ctx *ctx;
static const char *level;

static void fill(float *x, int64_t n, uint32_t s)
{
    for (int64_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)s * 0x1p-31f;
    }
}

/* Rows of whole and half tiles; outputs of whole tiles, and of one more than
 * half; several slices of products, and ends of one. Few rows go along the
 * lanes, and so do few outputs for many threads. */
static void check_linear(void)
{
    enum { N = 324, O = 640, K = 1030 };
    static const int64_t shape[][3] = {
        {160, 32, 256}, {161, 64, 512}, {167, 96, 513}, {174, 62, 1030},
        {273, 320, 600}, {200, 640, 1}, {324, 352, 530}, {20, 64, 300}};
    static float x[N * K], b[O], w[O * K], want[N * O], got[N * O];
    fill(x, N * K, 1);
    fill(b, O, 2);
    fill(w, O * K, 7);
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        const int64_t n = shape[i][0], o = shape[i][1], k = shape[i][2];
        const tt_tensor t = tt_tensor_make(w, TT_F32, 2, (int64_t[]){o, k});
        char name[80];
        ctx->ops = tt_ops_find("golden");
        tt_linear(ctx, want, x, n, &t, i % 2 ? b : NULL);
        ctx->ops = tt_ops_find("exact");
        for (int threads = 1; threads <= 3; threads += 2) {
            ctx->nthreads = threads;
            memset(got, 0x5a, sizeof got);
            tt_linear(ctx, got, x, n, &t, i % 2 ? b : NULL);
            snprintf(name, sizeof name, "linear %lldx%lldx%lld, %s, %d threads",
                     (long long)n, (long long)o, (long long)k, level, threads);
            expect_bits(name, got, want, (size_t)(n * o) * sizeof *got);
        }
    }
}

/* ---- convolutions -------------------------------------------------------- */

/* Infinite weights on a frame that is missing make NaN of its zeros. */
static void check_infinite(void)
{
    enum { O = 70, CIN = 8, K = 27 * CIN, N = 4 * 4 * O };
    static float w[O * K], x[16 * CIN], y[N];
    fill(w, O * K, 1);
    fill(x, 16 * CIN, 2);
    w[(O - 2) * K + 5] = INFINITY; /* of the oldest frame */
    const tt_tensor t = tt_tensor_make(w, TT_F32, 5, (int64_t[]){O, 3, 3, 3, CIN});
    ctx->ops = tt_ops_find("exact");
    tt_conv(ctx, &(tt_conv_args){
        .y = y, .w = &t, .frame = (const float *[]){NULL, NULL, x}, .Hi = 4, .Wi = 4,
        .Cin = CIN, .Ho = 4, .Wo = 4, .Cout = O, .kt = 3, .kh = 3, .kw = 3,
        .stride = 1, .pad_top = 1, .pad_left = 1, .up = 1});
    expect(isnan(y[O - 2]) && !isnan(y[O - 1]), "%s: an infinite weight on a "
           "missing frame: %g, next to it %g", level, (double)y[O - 2],
           (double)y[O - 1]);
}

/* ---- once in a call ------------------------------------------------------ */

enum { ONCE_O = 288, ONCE_K = 600, ONCE_N = 89, SHIFT = 16 };
static float once_x[ONCE_N * ONCE_K];

/* n rows, to y `shift` floats after the start of a cache line. */
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
             "after a line", level, tt_dtype_name(w->dtype), (long long)n,
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
            row.transposed_rows = 1;
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
    if (!exact_kernels()->transposed_tile) {
        skip("%s: this CPU has no kernels of turned weights", name);
        return;
    }
    check_linear();
    check_infinite();
    check_once();
}

int main(void)
{
    ctx = test_begin("ops/transposed");
    check_level("avx2");
    check_level("avx512");
    unsetenv("TT_CPU");
    exact_level_reread();
    return test_end();
}

#else

int main(void)
{
    test_begin("ops/transposed");
    expect(!tt_ops_find("exact"), "kernels are of float builds");
    return test_end();
}

#endif
