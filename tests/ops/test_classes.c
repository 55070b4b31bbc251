/* test_classes.c: the table of classes, and the chain of each.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every class answers to its name and to the one it is saved under. Its chain
 * goes on from any c: from +0 it is tt_linear without a bias, and two parts of
 * whole blocks are the whole. A convolution by class is tt_linear over windows.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/golden/golden.h"
#include "tests/harness.h"
#include "core/device.h"

static tt_ctx *ctx;

static void test_names(void)
{
    tt_class c;
    char all[200] = "";
    for (int i = 0; tt_class_at(i); i++) {
        const tt_class_info *t = tt_class_at(i);
        expect(tt_class_find(&c, t->name) && (int)c == i, "%s", t->name);
        expect(tt_class_find(&c, t->saved) && (int)c == i, "%s", t->saved);
        expect(!strcmp(tt_class_name(c), t->name)
               && !strcmp(tt_class_saved(c), t->saved)
               && *t->summary && *t->machines, "%s in words", t->name);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s",
                 i ? ", " : "", t->name);
    }
    expect(!tt_class_at(TT_CLASS_COUNT) && !tt_class_at(-1), "ends");
    expect(!strcmp(all, tt_class_names()), "%s", tt_class_names());
    expect(!tt_class_find(&c, "f16") && !tt_class_find(&c, ""), "no class");
    /* saved runs and manifests of before */
    expect(tt_class_find(&c, "bf16") && c == TT_CLASS_AMX
           && !strcmp(tt_class_saved(c), "bf16"), "bf16 is amx");
}

/* What a table says of its classes. */
static void test_tables(void)
{
    for (int i = 0; tt_ops_at(i); i++)
        for (int c = 0; c < TT_CLASS_COUNT; c++) {
            const tt_ops *f = tt_ops_at(i), *t = tt_ops_class(f, (tt_class)c);
            const bool one = sizeof(tt_real) == 8 || !strcmp(f->name, "blas");
            const bool cpu = c == TT_CLASS_AMX || c == TT_CLASS_VDP;
            const bool gpu = !strcmp(f->name, "cuda");
            expect((t != NULL) == (!c || !(one || (gpu && cpu))), "%s %s",
                   f->name,
                   tt_class_name((tt_class)c));
            expect(!t || ((int)t->cls == c && !strcmp(t->name, f->name)
                          && tt_ops_class(t, TT_CLASS_F32) == f),
                   "%s %s", f->name, tt_class_name((tt_class)c));
        }
}

static uint32_t seed = 1;

static tt_real number(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (tt_real)((int32_t)seed >> 8) / 0x1p23f;
}

static void test_chain(tt_class cls)
{
    enum { MOST = 1100 };
    const golden_class *g = golden_class_of(cls);
    const tt_ops *ops = tt_ops_class(tt_ops_find("golden"), cls);
    tt_real a[MOST], b[MOST], y;
    if (!g || !ops) return;
    for (int k = 0; k < MOST; k++) {
        a[k] = g->factor(number());
        b[k] = g->factor(number());
        expect(g->factor(a[k]) == a[k], "a factor stays");
    }
    ctx->ops = ops;
    for (int64_t n = 1; n < MOST; n = n * 3 / 2 + 1) {
        tt_tensor w = tt_tensor_make(b, sizeof(tt_real) == 8 ? TT_F64 : TT_F32,
                                     2, (int64_t[]){1, n});
        const tt_real whole = g->chain(0, a, 1, b, n);
        tt_linear(ctx, &y, a, 1, &w, NULL);
        expect(y == whole, "%s, %lld products: %a, linear %a",
               tt_class_name(cls), (long long)n, (double)whole, (double)y);
        for (int64_t k = g->block; k < n; k += 3 * g->block) {
            const tt_real half = g->chain(0, a, 1, b, k);
            y = g->chain(half, a + k, 1, b + k, n - k);
            expect(y == whole, "%s, %lld + %lld products", tt_class_name(cls),
                   (long long)k, (long long)(n - k));
        }
    }
    expect(g->chain(3, a, 1, b, 0) == 3, "no products");
    expect(g->chain(0, a, 2, b, MOST / 2) != g->chain(0, a, 1, b, MOST / 2),
           "the step between factors");
}

/* ---- convolution --------------------------------------------------------- */

enum { SIDE = 5, CIN = 3, COUT = 2, KT = 2, KW = 3, PIXELS = 4 * SIDE * SIDE,
       K = KT * KW * KW * CIN };

/* Number k of the window of output (i, j), said without conv_gather. */
static double in_window(const tt_conv_args *p, int64_t i, int64_t j, int64_t k)
{
    const int64_t c = k % CIN, v = k / CIN % KW, u = k / CIN / KW % KW;
    const int64_t r = i * p->stride + u - p->pad_top;
    const int64_t s = j * p->stride + v - p->pad_left;
    const tt_real *x = p->frame[k / CIN / KW / KW];
    if (!x || r < 0 || s < 0 || r >= SIDE * p->up || s >= SIDE * p->up) return 0;
    return (double)x[(r / p->up * SIDE + s / p->up) * CIN + c];
}

/* Frames that are rounded beforehand: those of bf16 numbers mean the same. */
static void check_bf16(const tt_conv_args *p)
{
    static tt_real y[PIXELS * COUT], want[PIXELS * COUT];
    tt_real half[KT][SIDE * SIDE * CIN], wide[KT][SIDE * SIDE * CIN];
    const tt_real *from[KT], *round[KT];
    if (sizeof(tt_real) == 8) return;
    for (int i = 0; i < KT; i++) {
        const int64_t n = SIDE * SIDE * CIN;
        from[i] = p->frame[i] ? half[i] : NULL;
        round[i] = p->frame[i] ? wide[i] : NULL;
        if (!from[i]) continue;
        tt_narrow(ctx, half[i], p->frame[i], n);
        tt_widen(wide[i], half[i], TT_BF16, n);
        for (int64_t k = 0; k < n; k++)
            expect((float)wide[i][k] == tt_f32_from_bf16(
                       tt_bf16_from_f32((float)p->frame[i][k])), "narrowed");
    }
    tt_conv_args a = *p;
    a.y = want, a.frame = round;
    tt_conv(ctx, &a);
    a.y = y, a.frame = from, a.bf16 = true;
    tt_conv(ctx, &a);
    expect(!memcmp(y, want, (size_t)(a.Ho * a.Wo * COUT) * sizeof *y),
           "frames of bf16 numbers");
}

/* Ties, both zeros, the largest, what is not finite, subnormals: tt_narrow is
 * tt_bf16_from_f32. */
static void test_narrow(void)
{
    enum { N = 4096 };
    static tt_real x[N];
    static uint16_t y[N];
    for (int i = 0; i < N; i++) {
        const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
        const uint32_t u = ((uint32_t)i * 1048573u) << 12 >> 16 << 16
                         | low[i % 6];
        float v;
        memcpy(&v, &u, sizeof v);
        x[i] = i < 2 ? (i ? (tt_real)NAN : (tt_real)-INFINITY) : (tt_real)v;
    }
    tt_narrow(ctx, (tt_real *)(void *)y, x, N);
    for (int i = 0; i < N; i++)
        expect(y[i] == tt_bf16_from_f32((float)x[i]), "narrowed: %a is %x",
               (double)x[i], y[i]);
}

/* By class: tt_linear of the class over the windows, bit by bit, and as near
 * to float64 as its factors and sums allow: each factor is within 2^-9 of
 * itself, or 2^-24 where none is rounded; a sum of K terms errs by at most 2^-22
 * of their magnitudes for each. Otherwise the sum of class f32. */
static void check_conv(tt_class cls, const tt_conv_args *p, const tt_real *w)
{
    static tt_real y[PIXELS * COUT], want[PIXELS * COUT], x[PIXELS * K];
    const double each = cls == TT_CLASS_F32 ? 0x1p-24 : 0x1p-9;
    const double share = 2 * each + each * each + K * 0x1p-22;
    const int64_t n = p->Ho * p->Wo;
    tt_conv_args a = *p;
    a.y = y;
    const tt_tensor w2 = tt_tensor_reshape(p->w, 2, (int64_t[]){COUT, K});
    for (int64_t r = 0; r < n; r++)
        for (int64_t k = 0; k < K; k++)
            x[r * K + k] = (tt_real)in_window(p, r / p->Wo, r % p->Wo, k);
    tt_conv(ctx, &a);
    tt_linear(ctx, want, x, n, &w2, p->b);
    expect(!memcmp(y, want, (size_t)(n * COUT) * sizeof *y), "%s: a linear "
           "layer over windows", tt_class_name(cls));
    for (int64_t r = 0; r < n * COUT; r++) {
        double sum = (double)p->b[r % COUT], size = fabs(sum);
        for (int64_t k = 0; k < K; k++) {
            const double term = (double)x[r / COUT * K + k]
                              * (double)w[r % COUT * K + k];
            sum += term;
            size += fabs(term);
        }
        expect(fabs((double)y[r] - sum) <= share * size, "%s: %g, float64 %g",
               tt_class_name(cls), (double)y[r], sum);
    }
    check_bf16(p);
    a.by_class = false;
    tt_conv(ctx, &a);
    const tt_ops *before = tt_class_begin(ctx, TT_CLASS_F32);
    a.y = want;
    tt_conv(ctx, &a);
    tt_class_end(ctx, before);
    expect(!memcmp(y, want, (size_t)(n * COUT) * sizeof *y),
           "%s: class f32 unless asked", tt_class_name(cls));
}

static void test_conv(const char *backend, tt_class cls)
{
    const tt_ops *ops = tt_ops_find(backend);
    tt_real frames[KT][SIDE * SIDE * CIN], w[COUT * K], b[COUT] = {2, -0.5f};
    ops = ops ? tt_ops_class(ops, cls) : NULL;
    if (!ops) return;
    expect(ops->by_class, "%s has it", backend);
    ctx->ops = ops;
    for (int i = 0; i < KT; i++)
        for (int k = 0; k < SIDE * SIDE * CIN; k++) frames[i][k] = number();
    for (int i = 0; i < COUT * K; i++) w[i] = number();
    const tt_tensor wt = tt_tensor_make(w, sizeof *w == 8 ? TT_F64 : TT_F32, 5,
                                        (int64_t[]){COUT, KT, KW, KW, CIN});
    const tt_real *both[KT] = {frames[0], frames[1]};
    const tt_real *one[KT] = {NULL, frames[1]};
    tt_conv_args a = {.frame = both, .w = &wt, .b = b, .Hi = SIDE, .Wi = SIDE,
                      .Cin = CIN, .Ho = SIDE, .Wo = SIDE, .Cout = COUT,
                      .kt = KT, .kh = KW, .kw = KW, .stride = 1, .pad_top = 1,
                      .pad_left = 1, .up = 1, .by_class = true};
    check_conv(cls, &a, w);
    a.frame = one;
    a.up = 2, a.Ho = a.Wo = 2 * SIDE;
    check_conv(cls, &a, w);
    a.up = 1, a.stride = 2, a.Ho = a.Wo = SIDE / 2;
    a.pad_top = a.pad_left = 0;
    check_conv(cls, &a, w);
}

int main(void)
{
    ctx = test_begin("ops/classes");
    test_names();
    test_tables();
    test_narrow();
    for (int c = 0; c < TT_CLASS_COUNT; c++) test_chain((tt_class)c);
    for (int c = 0; c < TT_CLASS_COUNT; c++) {
        test_conv("golden", (tt_class)c);
        test_conv("exact", (tt_class)c);
    }
    expect_ok(ctx->status, "no failure");
    return test_end();
}
