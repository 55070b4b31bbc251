/* test_tensor_core_exact.c: every kernel of the classes sm80 and sm90 against
 * the plain loops.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shapes that leave ends of panels, groups, slices and key blocks, and values
 * chosen to hurt: both ends of the exponents that floats can hold, sums beyond
 * 32 bits, zeros next to large factors, subnormal, huge, infinite and NaN. */
#include "tests/harness.h"
#include "ops/backend.h"

#ifndef TT_REAL_DOUBLE

#include "ops/exact/tc.h"
#include "tests/ops/kernels.h"

enum { NORMAL, ZEROS, SUBNORMAL, TINY, LOW_EDGE, HIGH_EDGE, HUGE_VALUES, WIDE,
       CANCEL, ZERO_BIG, ONE_HOT, LARGEST, SPECIAL, ANY, KINDS };

/* One number; `side` tells the two factors of a product apart. */
static float value(int kind, int side)
{
    static const float special[4] = {INFINITY, -INFINITY, NAN, -0.0f};
    float u = (float)(2 * uniform() - 1);
    switch (kind) {
    case ZEROS: return bits() % 3 ? 0.0f : -0.0f;
    case SUBNORMAL: return u * 0x1p-125f;
    case TINY: return ldexpf(u, (side ? -80 : -64) - (int)(bits() % 9));
    case LOW_EDGE: return ldexpf(u, -46 - (int)(bits() % 9));
    case HIGH_EDGE: return ldexpf(u, 56 + (int)(bits() % 9));
    case HUGE_VALUES: return ldexpf(u, 62 + (int)(bits() % 66));
    case WIDE: return ldexpf(u, (int)(bits() % 150) - 90);
    case CANCEL: return ldexpf(bits() % 2 ? 1.25f : -1.25f,
                               side ? 0 : (int)(bits() % 4) * 9);
    case ZERO_BIG: return bits() % 3 ? u * 0x1p-4f : side ? 0x1p127f : 0;
    case LARGEST: return bits() % 512 ? 0x1.fep0f : -0x1.fep0f;
    case SPECIAL: return bits() % 64 ? u : special[bits() % 4];
    case ANY: return tc_float(bits());
    default: return u;
    }
}

static float spread(int kind)
{
    return kind == TINY ? 0x1p120f : kind == LOW_EDGE ? 0x1p100f : 1;
}

static const int64_t linear[][3] = {
    {1, 1, 1},   {1, 33, 7},  {8, 32, 16},  {9, 65, 33},   {3, 5, 513},
    {65, 40, 8}, {70, 31, 95}, {2, 1100, 40}, {67, 34, 1100}, {0},
};
static const int64_t attention[][4] = {
    {1, 1, 1, 1},   {5, 7, 2, 3},    {33, 129, 1, 16}, {40, 300, 2, 24},
    {64, 128, 1, 32}, {13, 13, 4, 8}, {300, 77, 1, 10}, {0},
};

static const kernels_test test = {
    .cls = {TT_CLASS_SM80, TT_CLASS_SM90},
    .levels = {{"generic", "avx2", "avx512"}, {"generic", "avx2", "avx512"}},
    .kinds = KINDS, .zeros = ZEROS, .one_hot = ONE_HOT, .value = value,
    .spread = spread, .linear = linear, .attention = attention, .square = 150,
};

/* A chain that is just below 2 when a step of the largest products comes: the
 * one way to a sum beyond 32 bits. */
static void test_beyond(void)
{
    enum { N = 40, K = 48 };
    static float x[N * K], w[N * K];
    for (int i = 0; i < N; i++)
        for (int k = 0; k < K; k++) {
            x[i * K + k] = k && k < 16 ? 0 : i % 2 ? 0x1.fep0f : -0x1.fep0f;
            w[i * K + k] = k && k < 32 - i % 3 ? 0x1.fep0f : 1;
        }
    linear_case c = {.x = x, .n = N,
                     .w = tt_tensor_make(w, TT_F32, 2, (int64_t[]){N, K})};
    compare("beyond 32 bits", call_linear, &c, N * N);
}

/* Kinds do what they are there for: a sum of one step beyond 32 bits, negative
 * sums that are cut to nothing, results of either end. */
static void test_kinds(void)
{
    int beyond = 0, minus = 0, low = 0, high = 0;
    for (int round = 0; round < 4000; round++) {
        float a[16], b[16], c = 0x1.fffffep0f, sum = 0;
        for (int k = 0; k < 16; k++) {
            a[k] = tc_factor(value(LARGEST, 0));
            b[k] = tc_factor(value(LARGEST, 1));
            sum += a[k] * b[k];
        }
        beyond += ((double)sum + (double)c) * 0x1p25 > 0x1p31;
        for (int k = 0; k < 16; k++) {
            a[k] = tc_factor(value(TINY, 0));
            b[k] = tc_factor(value(TINY, 1));
        }
        sum = tc_chain(tc_sm80, 0, a, 1, b, 2);
        minus += sum == 0 && (double)a[0] * b[0] + (double)a[1] * b[1] < 0;
        for (int k = 0; k < 2; k++) {
            const float x = fabsf(tc_factor(value(k ? HIGH_EDGE : LOW_EDGE, 0)) *
                                  tc_factor(value(k ? HIGH_EDGE : LOW_EDGE, 1)));
            low += !k && x > 0x1p-102f && x < 0x1p-98f;
            high += k && x > 0x1p118f && x < 0x1p122f;
        }
    }
    expect(beyond > 100 && minus > 20 && low > 100 && high > 100,
           "too kind: %d %d %d %d", beyond, minus, low, high);
}

/* Every weight of every instruction set; m stays, as no logit rounds to more. */
static void test_weights(void)
{
    enum { FROM = -127 * 1024, TO = 512, N = TC_KEY_BLOCK * TC_NR, M = 500 };
    static const char *const levels[] = {"generic", "avx2", "avx512"};
    static float s[N], p[TC_LANES_FLOATS(TC_KEY_BLOCK)];
    for (int l = 0; l < 3; l++) {
        int64_t bad = 0;
        setenv("TT_CPU", levels[l], 1);
        exact_level_reread();
        const tt_tc_kernels *kn = exact_tc_kernels(0);
        for (int from = FROM; from <= TO; from += N) {
            float m[TC_NR], alpha[TC_NR];
            for (int i = 0; i < TC_NR; i++) m[i] = M;
            for (int i = 0; i < N; i++)
                s[i] = M + (float)(from + i < TO ? from + i : TO) / 1024;
            s[N - 1] = NAN;
            s[N - 2] = -INFINITY;
            kn->weights((tc_lanes){p, (int32_t *)(p + N)}, s, TC_KEY_BLOCK, 1,
                        m, alpha);
            for (int i = 0; i < N; i++) {
                const float want = tc_weight(s[i], 1, M);
                bad += memcmp(&p[i], &want, sizeof want) &&
                       !(isnan(p[i]) && isnan(want));
            }
            for (int i = 0; i < TC_NR; i++) bad += m[i] != M || alpha[i] != 1;
        }
        expect(!bad, "%s: %lld weights differ", levels[l], (long long)bad);
    }
    unsetenv("TT_CPU");
    exact_level_reread();
}

int main(void)
{
    ctx = test_begin("ops/tensor_core_exact");
    test_weights();
    test_kinds();
    test_linear();
    test_conv();
    test_beyond();
    test_attention();
    return test_end();
}

#else

int main(void)
{
    tt_ctx *ctx = test_begin("ops/tensor_core_exact");
    expect(!tt_ops_class(ctx->ops, TT_CLASS_SM90),
           "a double build has class f32 alone");
    return test_end();
}

#endif
