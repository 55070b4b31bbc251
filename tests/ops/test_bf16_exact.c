/* test_bf16_exact.c: every kernel of classes amx and vdp against the plain
 * loops.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shapes that leave ends of tiles, groups and slices, and values chosen to
 * hurt: subnormal factors, products and sums below the normal range, the
 * hair-thin cases around FLT_MIN, infinities and NaN. Weights that are rounded
 * once have a test of their own: shapes above have no rows enough. */
#include <float.h>

#include "tests/harness.h"
#include "ops/machine.h"
#include "ops/backend.h"

#ifndef TT_REAL_DOUBLE

#include "ops/exact/bf16.h"
#include "tests/ops/kernels.h"

enum { NORMAL, ZEROS, SUBNORMAL, SMALL, HAIR, HUGE_VALUES, WIDE, ONE_HOT,
       CONSTANT, SPECIAL, KINDS };

/* One number; `side` tells the two factors of a product apart. */
static float value(int kind, int side)
{
    static const float hair[2][4] = {
        {0x1p-63f, 0x1p-100f, -0x1p-100f, -0x1.8p-100f},
        {0x1p-63f, 0x1p-50f, 0x1p-51f, 0x1.02p-51f},
    };
    static const float special[4] = {INFINITY, -INFINITY, NAN, -0.0f};
    float u = (float)(2 * uniform() - 1);
    switch (kind) {
    case ZEROS: return bits() % 3 ? 0.0f : -0.0f;
    case SUBNORMAL: return u * 0x1p-125f;
    case SMALL: return u * (side ? 0x1p-70f : 0x1p-52f);
    case HAIR: return bits() % 4 ? 0 : hair[side][bits() % 4];
    case HUGE_VALUES: return u * 0x1p66f;
    case WIDE: return ldexpf(u, (int)(bits() % 150) - 90);
    case CONSTANT: return 0.7f;
    case SPECIAL: return bits() % 64 ? u : special[bits() % 4];
    default: return u;
    }
}

static float spread(int kind)
{
    return kind == SMALL ? 0x1p124f : 1;
}

static const int64_t linear[][3] = {
    {1, 1, 1},    {1, 33, 7},   {8, 48, 32},   {9, 49, 33}, {3, 5, 513},
    {33, 97, 64}, {31, 24, 95}, {170, 40, 96}, {2, 2100, 40},
    {163, 70, 1100}, {35, 24, 1056}, {330, 40, 544}, {34, 16, 64}, {0},
};
static const int64_t attention[][4] = {
    {1, 1, 1, 1},   {5, 7, 2, 3},     {49, 513, 1, 16}, {50, 1030, 2, 40},
    {96, 512, 1, 32}, {13, 13, 4, 16}, {400, 77, 1, 10}, {2, 44000, 1, 3},
    {24, 70, 2, 40}, {81, 600, 1, 24}, {34, 40, 1, 8}, {0},
};

/* Levels: with what each class has of its own last. */
static const kernels_test test = {
    .cls = {TT_CLASS_AMX, TT_CLASS_VDP},
    .levels = {{"generic", "avx2", "avx512", "amx-model", "amx"},
               {"generic", "avx2", "avx512", "avx512bf16"}},
    .kinds = KINDS, .zeros = ZEROS, .one_hot = ONE_HOT, .value = value,
    .spread = spread, .linear = linear, .attention = attention, .square = 40,
};

/* Outputs that are stored around the caches (8 MB), in whole lines and not. */
static void test_far(void)
{
    one_linear((int64_t[]){1457, 1456, 2}, 0, 1);
    one_linear((int64_t[]){1457, 1457, 2}, 0, 0);
}

/* The first group leaves 2^-112 + 2^-130 and the second, of larger products
 * alone, takes 2^-112 away: what remains is flushed. */
static void test_carried(void)
{
    float x[64] = {0x1p-65f, 0x1p-56f, [32] = -0x1p-56f};
    const float w[64] = {0x1p-65f, 0x1p-56f, [32] = 0x1p-56f};
    linear_case c = {.x = x, .n = 1,
                     .w = tt_tensor_make(w, TT_F32, 2, (int64_t[]){1, 64})};
    compare("what a group leaves", call_linear, &c, 1);
}

/* The values above do reach the cases they are meant for: a sum that flushes
 * what fmaf leaves below FLT_MIN, and nothing else, gives other results. */
static void test_hair(void)
{
    int naive_differs = 0, unflushed_differs = 0;
    for (int round = 0; round < 20000; round++) {
        float true_sum = 0, naive = 0, plain = 0;
        for (int k = 0; k < 16; k++) {
            float a = value(HAIR, 0), b = value(HAIR, 1);
            true_sum = bf16_fma(a, b, true_sum);
            plain = fmaf(a, b, plain);
            naive = fmaf(a, b, naive);
            if (fabsf(naive) < FLT_MIN) naive = copysignf(0, naive);
        }
        naive_differs += naive != true_sum;
        unflushed_differs += plain != true_sum;
    }
    expect(naive_differs > 20 && unflushed_differs > 20,
           "HAIR is too kind: %d and %d differences", naive_differs,
           unflushed_differs);
}

/* ---- the question a matrix unit is asked --------------------------------- */

/* The portable tile on its packed floats, with faults on request. */
static bool fault_flush, fault_order;

static void faulty_tile(float *c, const void *rows_at, bf16_rows rows,
                        const void *lanes, int64_t groups, bool add)
{
    const float *a = rows_at, *b = lanes;
    const tt_bf16_kernels *kn = &tt_bf16_generic;
    for (int r = 0; r < kn->mr; r++)
        for (int i = 0; i < kn->nr; i++)
            for (int64_t g = 0; g < groups; g++) {
                float half[2] = {0, 0};
                for (int k = 0; k < 32; k++) {
                    float *s = &half[fault_order ? k / 16 : k % 2];
                    float x = a[g * rows.group + r * rows.row + k];
                    float y = b[(g * 32 + k) * kn->nr + i];
                    float plain = fmaf(x, y, *s);
                    *s = !fault_flush ? bf16_fma(x, y, *s)
                         : fabsf(plain) < FLT_MIN ? copysignf(0, plain) : plain;
                }
                float *to = &c[r * kn->nr + i];
                *to = bf16_add(g || add ? *to : 0, bf16_add(half[0], half[1]));
            }
}

static void test_question(void)
{
    tt_bf16_kernels faulty = tt_bf16_generic;
    faulty.tile = faulty_tile;
    expect(bf16_same_answer(&faulty, &tt_bf16_generic), "without a fault");
    fault_flush = true;
    expect(!bf16_same_answer(&faulty, &tt_bf16_generic), "hair-thin sums");
    fault_flush = false;
    fault_order = true;
    expect(!bf16_same_answer(&faulty, &tt_bf16_generic), "another order");
#if defined(__x86_64__)
    if (exact_kernels() == &tt_kernels_avx512)
        expect(bf16_same_answer(&tt_bf16_amx_model, &tt_bf16_generic),
               "the model of AMX");
#endif
    expect(!bf16_same_answer(&tt_vdp_generic, &tt_bf16_generic),
           "amx and vdp are two classes");
#if defined(TT_HAVE_AVX512BF16)
    if (vdp_present())
        expect(bf16_same_answer(&tt_vdp_avx512bf16, &tt_vdp_generic),
               "VDPBF16PS");
    else
        skip("this CPU has no VDPBF16PS");
#else
    skip("this compiler does not know VDPBF16PS");
#endif
    const char *name = exact_bf16_kernels(ctx)->name;
    expect(tt_machine_amx(ctx, 80)
               == (strcmp(name, "amx") ? 0 : 10 * 6 * 16384.0 * ctx->nthreads),
           "operations of the loop of %s", name);
    if (strcmp(name, "amx"))
        skip("this CPU has no AMX (best here: %s); its kernel ran on a model "
             "of the instructions where there is AVX-512", name);
}

/* ---- lanes that do not count --------------------------------------------- */

/* A tile leaves nothing in them that was there before. */
static void test_other_lanes(const tt_bf16_kernels *kn)
{
    static const float zeros[BF16_GROUP * BF16_MAX_NR];
    static float c[BF16_MAX_MR * BF16_MAX_NR];
    const unsigned before = kn->begin();
    for (int live = 1; live <= kn->nr; live++) {
        int odd = 0;
        for (int i = 0; i < kn->mr * kn->nr; i++) c[i] = NAN;
        BF16_TILE(kn, live)(c, zeros, bf16_packed(kn->mr), zeros, 1, false);
        for (int i = 0; i < kn->mr * kn->nr; i++) odd += !isfinite(c[i]);
        expect(!odd, "%s, %d lanes: %d sums are left", kn->name, live, odd);
    }
    kn->end(before);
}

/* ---- softmax of one block ------------------------------------------------ */

#if defined(__x86_64__)
/* What kernels with a softmax of their own give is what the float kernels and a
 * packing of their weights give; they say no where a weight is near FLT_MIN. */
static void one_softmax(const tt_bf16_kernels *kn, int64_t n, float least,
                          bool first)
{
    enum { KEYS = 64, NR = BF16_MAX_NR };
    static float s[KEYS * NR], kept[2][3][NR];
    static uint32_t lanes[2][KEYS * NR];
    const tt_kernels *soft = exact_kernels();
    for (int64_t i = 0; i < n * NR; i++)
        s[i] = 4 * (i < NR ? least : (float)(uniform() * (double)least));
    for (int i = 0; i < NR; i++) {
        s[(n - 1) * NR + i] = n > 1 || !first ? 0 : s[i];
        for (int v = 0; v < 3; v++)
            kept[0][v][i] = kept[1][v][i] = v ? 1 + (float)uniform() : -0.5f;
    }
    memset(lanes, 0x5a, sizeof lanes);
    const bool did = kn->softmax(lanes[1], s, n, 0.25f, kept[1][0], kept[1][1],
                                kept[1][2], first);
    expect(did == (least >= -87 || n == 1), "%s: %lld keys down to %a: %d",
           kn->name, (long long)n, (double)least, did);
    for (int i = 0; i < 3; i++) /* scales that turn the order, or end it */
        expect(!kn->softmax(lanes[0], s, n, (float[]){-0.25f, 0, NAN}[i],
                           kept[0][0], kept[0][1], kept[0][2], first),
               "%s: scale %d", kn->name, i);
    if (!did) return;
    soft->softmax(s, n, 0.25f, NULL, kept[0][0], kept[0][1], kept[0][2], first);
    kn->pack_weights(lanes[0], s, n);
    expect_bits("weights of a block", lanes[1], lanes[0], sizeof lanes[0]);
    expect_bits("maximum, sum, factor", kept[1], kept[0], sizeof kept[0]);
}

static void test_softmax(const tt_bf16_kernels *kn)
{
    static const float least[] = {-1, -20, -86.99999f, -87, -87.00001f, -90};
    for (int i = 0; i < 6; i++)
        for (int64_t n = 1; n <= 64; n += n < 4 ? 1 : 29)
            for (int first = 0; first < 2; first++)
                one_softmax(kn, n, least[i], first);
}

/* ---- weights that are rounded once --------------------------------------- */

enum { FEW = 9, MANY = 3000, INPUTS = 33 * BF16_GROUP };

static float once_x[FEW * INPUTS], once_w[MANY * INPUTS];
static uint16_t once_half[MANY * INPUTS];

/* Of three blocks of rows, with two threads: golden's bits, with a copy of the
 * weights, and all scratch given back. Two blocks make no copy. */
static void one_rounding(tt_class cls, const tt_bf16_kernels *kn,
                         const tt_tensor *w)
{
    static float want[FEW * MANY], got[FEW * MANY];
    tt_ctx fresh, *own = &fresh;
    exact_tuning row = *exact_tuned(kn->level);
    tt_linear_args a = {.y = got, .x = once_x, .n = FEW, .w = w};
    row.packed_rows = FEW / 3;
    if (!expect(tt_ctx_init(own) == TT_OK, "context")) return;
    own->nthreads = 2;
    tt_ops_class(tt_ops_find("golden"), cls)->linear(ctx,
        &(tt_linear_args){.y = want, .x = once_x, .n = FEW, .w = w});
    exact_tune(&row);
    a.n = 2 * row.packed_rows;
    bf16_linear(own, &a, kn);
    const size_t two = own->scratch.peak;
    a.n = FEW;
    bf16_linear(own, &a, kn);
    const size_t three = own->scratch.peak;
    exact_tune(NULL);
    expect(two < sizeof(uint16_t) * MANY * INPUTS
               && three > sizeof(uint16_t) * MANY * INPUTS,
           "%s: %zu and %zu bytes for two blocks and three", kn->name, two,
           three);
    expect_bits(kn->name, got, want, sizeof got);
    expect(own->scratch.used == 0 && own->scratch.total == 0,
           "%s: scratch is still in use", kn->name);
    tt_ctx_free(own);
}

static void test_once(tt_class cls, const tt_bf16_kernels *kn)
{
    const int64_t dim[] = {MANY, INPUTS};
    for (int i = 0; i < FEW * INPUTS; i++) once_x[i] = value(NORMAL, 0);
    for (int i = 0; i < MANY * INPUTS; i++) {
        once_w[i] = value(i % 7 ? NORMAL : SUBNORMAL, 1);
        once_half[i] = (uint16_t)(bits() & 0xbbff); /* no infinity, no NaN */
    }
    const tt_tensor w = tt_tensor_make(once_w, TT_F32, 2, dim);
    const tt_tensor h = tt_tensor_make(once_half, TT_F16, 2, dim);
    one_rounding(cls, kn, &w);
    one_rounding(cls, kn, &h);
}
#endif

int main(void)
{
    ctx = test_begin("ops/bf16_exact");
    test_hair();
    test_other_lanes(&tt_bf16_generic);
    test_other_lanes(&tt_vdp_generic);
#if defined(TT_HAVE_AVX512BF16)
    if (vdp_present()) {
        test_other_lanes(&tt_vdp_avx512bf16);
        test_once(TT_CLASS_VDP, &tt_vdp_avx512bf16);
        test_softmax(&tt_vdp_avx512bf16);
    }
#endif
#if defined(__x86_64__)
    if (exact_kernels() == &tt_kernels_avx512) {
        test_other_lanes(&tt_bf16_amx_model);
        test_once(TT_CLASS_AMX, &tt_bf16_amx_model);
        test_softmax(&tt_bf16_amx_model);
    }
#endif
#if defined(TT_HAVE_AMX)
    if (bf16_amx_present()) {
        test_other_lanes(&tt_bf16_amx);
        test_once(TT_CLASS_AMX, &tt_bf16_amx);
        test_softmax(&tt_bf16_amx);
    }
#endif
    test_question();
    test_linear();
    test_conv();
    test_far();
    test_carried();
    test_attention();
    return test_end();
}

#else

int main(void)
{
    tt_ctx *ctx = test_begin("ops/bf16_exact");
    expect(!tt_ops_class(ctx->ops, TT_CLASS_BF16),
           "a double build has no bf16 class");
    return test_end();
}

#endif
