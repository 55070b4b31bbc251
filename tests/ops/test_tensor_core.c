/* test_tensor_core.c: the classes sm80 and sm90 say what their page says
 * (src/ops/golden/tensor_core.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers worked out by hand for every rule of a step; 15,488 outputs of
 * each class (ref_data/tensor_core: Hopper's are measured, Ampere's are those
 * of an independent model); every weight of attention; linear layers
 * and attention. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness.h"
#include "tests/run_case/run_case.h"
#include "ops/backend.h"
#include "tether/mathfn.h"

#ifndef TT_REAL_DOUBLE

#include "ops/golden/golden.h"
#include "ops/tensor_core.h"

static tt_ctx *ctx;

static bool same(float a, float b)
{
    return !memcmp(&a, &b, sizeof a) || (isnan(a) && isnan(b));
}

/* ---- factors ------------------------------------------------------------- */

static void test_factor(void)
{
    static const float pair[][2] = { /* x, as a factor */
        {0.0f, 0.0f}, {-0.0f, -0.0f}, {1.0f, 1.0f},
        {0x1.01p0f, 0x1p0f},             /* a tie: to even, down              */
        {0x1.03p0f, 0x1.04p0f},          /* a tie: to even, up                */
        {0x1.010002p0f, 0x1.02p0f},      /* just above the tie                */
        {0x1.fffffep-127f, 0x1p-126f},   /* a subnormal that rounds to normal */
        {-0x1.fcp-127f, -0x1.fcp-127f},  /* subnormal as bf16: kept           */
        {0x1p-133f, 0x1p-133f},          /* the smallest bf16                 */
        {0x1p-134f, 0.0f}, {0x1.0002p-134f, 0x1p-133f}, {-0x1p-149f, -0.0f},
        {0x1.fffffep127f, INFINITY}, {-0x1.fep127f, -0x1.fep127f},
        {-0x1.ffp127f, -INFINITY}, {INFINITY, INFINITY}, {NAN, NAN},
        {-NAN, NAN},
    };
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
        expect(same(tc_factor(pair[i][0]), pair[i][1]),
               "%a as bf16 is %a, expected %a", (double)pair[i][0],
               (double)tc_factor(pair[i][0]), (double)pair[i][1]);
    /* a NaN whose payload lies in the lower half must not become infinite */
    expect(isnan(tc_factor(tc_float(0x7f800001u))), "NaN stays NaN");
}

/* ---- one step ------------------------------------------------------------ */

/* c + sum of four products on both kinds of tensor core. */
static void step_is(const char *what, float c, const float *a, const float *b,
                    float sm80, float sm90)
{
    const float x = tc_step(tc_sm80, c, a, 1, b, 4);
    const float y = tc_step(tc_sm90, c, a, 1, b, 4);
    expect(same(x, sm80), "%s: sm80 gives %a, expected %a", what, (double)x,
           (double)sm80);
    expect(same(y, sm90), "%s: sm90 gives %a, expected %a", what, (double)y,
           (double)sm90);
}
#define F4(...) (const float[4]){__VA_ARGS__}
#define STEP(what, c, a, b, sm80, sm90) step_is(what, c, a, b, sm80, sm90)
#define ONE F4(1, 1, 1, 1)

static void test_step(void)
{
    STEP("sum", 1, F4(1, 2, 3, 4), F4(5, 6, 7, 8), 71, 71);
    STEP("24 or 25 bits", 0, F4(1, 0x1p-25f, -1, 0), ONE, 0, 0x1p-25f);
    STEP("24 bits", 0, F4(1, 0x1p-24f, -1, 0), ONE, 0x1p-24f, 0x1p-24f);
    STEP("beyond 25", 0, F4(1, 0x1p-26f, -1, 0), ONE, 0, 0);
    STEP("every term is cut by itself", 0, F4(1, 0x1.8p-25f, 0x1.8p-25f, -1),
         ONE, 0, 0x1p-24f);
    STEP("cut towards zero, below too", 0,
         F4(1, -0x1.8p-25f, -0x1.8p-25f, -1), ONE, 0, -0x1p-24f);
    STEP("the sum as well", 1, F4(0x1p-24f, 0, 0, 0), ONE, 1, 1);
    STEP("away from zero never", 1, F4(-0x1p-24f, 0, 0, 0), ONE,
         0x1.fffffep-1f, 0x1.fffffep-1f);
    STEP("a product is not normalised: 2.25 has exponent 0", -2.25f,
         F4(1.5f, 0x1p-25f, 0, 0), F4(1.5f, 1, 1, 1), 0, 0);
    STEP("c = -2 has exponent 1", -2, F4(1, 1, 0x1p-24f, 0), ONE, 0, 0x1p-24f);
    STEP("a zero has no exponent", 0x1.000002p-1f, F4(0, 0, 0, 0),
         F4(0x1p127f, 1, 1, 1), 0x1.000002p-1f, 0x1.000002p-1f);
    STEP("nor has c, but E is -132 at least", 0, F4(0x1p-75f, -0x1p-78f, 0, 0),
         F4(0x1p-74f, 0x1p-78f, 0, 0), 0, 0);
    STEP("or -133 at least", 0, F4(0x1p-75f, -0x1p-79f, 0, 0),
         F4(0x1p-74f, 0x1p-78f, 0, 0), 0x1p-149f, 0);
    STEP("in sm90 too", 0, F4(0x1p-75f, -0x1p-80f, 0, 0),
         F4(0x1p-74f, 0x1p-78f, 0, 0), 0x1p-149f, 0);
    STEP("and not less", 0, F4(0x1p-75f, -0x1p-80f, 0, 0),
         F4(0x1p-74f, 0x1p-79f, 0, 0), 0x1p-149f, 0x1p-149f);
    STEP("subnormal factors count", 0, F4(0x1p-133f, 0, 0, 0),
         F4(0x1p100f, 0, 0, 0), 0x1p-33f, 0x1p-33f);
    STEP("their exponent is -126", 0x1.000002p-13f, F4(0x1p-133f, 0, 0, 0),
         F4(0x1p115f, 0, 0, 0), 0x1.08p-13f, 0x1.080002p-13f);
    STEP("subnormal c", 0x1p-149f, F4(0x1p-75f, 0, 0, 0),
         F4(0x1p-74f, 0, 0, 0), 0x1p-148f, 0x1p-148f);
    STEP("subnormal result cut", 0, F4(0x1.8p-75f, 0, 0, 0),
         F4(0x1p-74f, 0, 0, 0), 0x1p-149f, 0x1p-149f);
    STEP("below the last bit is +0", 0, F4(-0x1p-75f, 0, 0, 0),
         F4(0x1p-75f, 0, 0, 0), 0, 0);
    STEP("below everything", 0, F4(-0x1p-100f, 0, 0, 0),
         F4(0x1p-100f, 0, 0, 0), 0, 0);
    STEP("nothing is +0", -0.0f, F4(-0.0f, 0, 0, 0), ONE, 0, 0);
    STEP("cancelled is +0", -1, F4(1, 0, 0, 0), ONE, 0, 0);
    STEP("largest", 0x1.fffffep127f, F4(0x1p102f, 0, 0, 0), ONE,
         0x1.fffffep127f, 0x1.fffffep127f);
    STEP("beyond it", 0x1.fffffep127f, F4(0x1p104f, 0, 0, 0), ONE, INFINITY,
         INFINITY);
    STEP("beyond and back", -0x1.fffffep127f, F4(0x1p127f, 0x1p127f, 0, 0), ONE,
         0x1p104f, 0x1p104f);
    STEP("infinite product", 1, F4(INFINITY, 1, 1, 1), F4(-1, 1, 1, 1),
         -INFINITY, -INFINITY);
    STEP("infinite c", -INFINITY, ONE, ONE, -INFINITY, -INFINITY);
    STEP("both", -INFINITY, F4(INFINITY, 1, 1, 1), ONE, NAN, NAN);
    STEP("both products", 0, F4(INFINITY, INFINITY, 1, 1), F4(1, -1, 1, 1), NAN,
         NAN);
    STEP("infinity times zero", 0, F4(INFINITY, 1, 1, 1), F4(0, 1, 1, 1), NAN,
         NAN);
    STEP("NaN", 0, F4(NAN, 1, 1, 1), F4(0, 1, 1, 1), NAN, NAN);
    STEP("NaN c", NAN, ONE, ONE, NAN, NAN);
    expect(tc_bits(tc_step(tc_sm90, NAN, ONE, 1, ONE, 4)) == 0x7fffffffu,
           "the NaN of tensor cores");
}

/* The largest sum of a step needs 33 bits; eight or sixteen at a time. */
static void test_chain(void)
{
    float a[32], b[32];
    for (int k = 0; k < 32; k++) a[k] = b[k] = 0x1.fep0f;
    float most = tc_step(tc_sm90, 0x1.fffffep0f, a, 1, b, 16);
    expect(same(most, 0x1.0600fep+6f), "the largest sum: %a", (double)most);
    /* 1 + 2^-24 + ... : the ones after 2^24 are lost, block by block */
    for (int k = 0; k < 32; k++) a[k] = 1, b[k] = 0x1p-27f;
    b[0] = 1;
    expect(same(tc_chain(tc_sm80, 0, a, 1, b, 32), 1) &&
           same(tc_chain(tc_sm90, 0, a, 1, b, 32), 1), "all cut");
    for (int k = 1; k < 32; k++) b[k] = 0x1p-24f;
    float x = tc_chain(tc_sm80, 0, a, 1, b, 32);
    float y = tc_chain(tc_sm90, 0, a, 1, b, 32);
    expect(same(x, 0x1.00001ep0f) && same(y, 0x1.00001ep0f), "%a %a", (double)x,
           (double)y);
    for (int k = 0; k < 32; k++) b[k] = k % 16 == 0 ? 1 : 0x1p-24f;
    x = tc_chain(tc_sm80, 0, a, 1, b, 32);
    y = tc_chain(tc_sm90, 0, a, 1, b, 32);
    expect(same(x, 0x1.00000ap1f) && same(y, 0x1.00000ep1f), "blocks: %a %a",
           (double)x, (double)y);
}

/* ---- the vectors --------------------------------------------------------- */

/* "<TMP>/mma/..." holds one case at a time. */
static void put_case(const char *dir, const char *cls, const tt_tensor *a,
                     const tt_tensor *b, const float *c, const int64_t *dim)
{
    char path[600];
    tt_st_writer *w = NULL;
    mkdir(dir, 0700);
    snprintf(path, sizeof path, "%s/case.json", dir);
    FILE *f = fopen(path, "w");
    fprintf(f, "{\"kind\": \"mma\", \"class\": \"%s\"}\n", cls);
    fclose(f);
    snprintf(path, sizeof path, "%s/inputs.safetensors", dir);
    tt_st_create(ctx, &w, path);
    tt_st_add(w, "a", a->dtype, 3, a->dim, a->data);
    tt_st_add(w, "b", b->dtype, 3, b->dim, b->data);
    tt_st_add(w, "c", TT_F32, 3, dim, c);
    expect_ok(tt_st_finish(w), "the inputs of a case");
}

static void drop_case(const char *dir)
{
    char path[600];
    snprintf(path, sizeof path, "%s/case.json", dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/inputs.safetensors", dir);
    unlink(path);
    rmdir(dir);
}

/* What run_case computes of it: d, in `arena`; NULL after a failure. */
static float *run_mma(tt_arena *arena, const char *dir)
{
    char path[600];
    bool unknown;
    tt_st_writer *w = NULL;
    tt_file *f = NULL;
    float *d = NULL;
    snprintf(path, sizeof path, "%s.out", dir);
    tt_status s = tt_st_create(ctx, &w, path);
    if (s == TT_OK) s = run_case(ctx, dir, w, &unknown);
    if (s == TT_OK) s = tt_st_finish(w);
    else tt_st_abort(w);
    if (s == TT_OK && tt_file_open(ctx, &f, path) == TT_OK) {
        const tt_entry *e = tt_file_find(f, "d");
        if (expect(e && e->t.rank == 3, "d of three extents"))
            d = tt_read_real(ctx, arena, &e->t);
        tt_file_close(f);
    }
    unlink(path);
    return d;
}

static int64_t differ(const float *x, const float *y, int64_t n)
{
    int64_t bad = 0;
    for (int64_t i = 0; x && y && i < n; i++) bad += !same(x[i], y[i]);
    return x && y ? bad : n;
}

/* A tensor of the file with three extents. */
static bool find(const tt_file *f, const char *kind, const char *what,
                 tt_tensor *t)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", kind, what);
    const tt_entry *e = tt_file_find(f, name);
    if (!e) return false;
    *t = e->t;
    if (t->rank == 2)
        *t = tt_tensor_reshape(t, 3, (int64_t[]){1, t->dim[0], t->dim[1]});
    return true;
}

/* How many outputs of this kind and class were compared. */
static int64_t one_kind(const tt_file *f, const char *kind, const char *cls,
                        const char *dir)
{
    char result[16];
    tt_tensor a, b, c, d;
    snprintf(result, sizeof result, "d_%s", cls);
    if (!find(f, kind, "a", &a) || !find(f, kind, "b", &b)) return 0;
    if (!expect(find(f, kind, result, &d), "%s.%s", kind, result)) return 0;
    tt_arena m = {0};
    const int64_t n = tt_tensor_count(&d);
    const float *want = tt_read_real(ctx, &m, &d);
    const float *start = find(f, kind, "c", &c)
        ? tt_read_real(ctx, &m, &c) : tt_alloc0(ctx, &m, n, sizeof *start, "c");
    put_case(dir, cls, &a, &b, start, d.dim);
    const int64_t bad = differ(run_mma(&m, dir), want, n);
    expect(!bad, "%s, %s: %lld of %lld outputs differ", kind, cls,
           (long long)bad, (long long)n);
    expect_ok(ctx->status, kind);
    tt_arena_free(&m);
    return n;
}

static const char *const kinds[] = {
    /* mma, chain */
    "normal", "wide", "cancel", "zeros", "sub", "tiny", "huge", "special",
    "max", "k64", "k1536", "k8960",
    /* edge */
    "low", "low_minus", "low_subnormal", "low_c", "low_zeros", "zeros_wide",
    "subnormal_wide", "few", "one", "cancelled", "middle_c", "subnormal_large",
    "zeros_alone", "zeros_c", "any", "over",
};

static void test_vectors(void)
{
    static const char *const files[] = {"mma", "chain", "edge"};
    char dir[300];
    int64_t sm80 = 0, sm90 = 0;
    tmp_path(dir, sizeof dir, "mma");
    for (int i = 0; i < 3; i++) {
        tt_file *f = NULL;
        if (!expect_ok(tt_file_open(ctx, &f, ref_path(
                "tensor_core/%s.safetensors", files[i])), files[i]))
            continue;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            sm80 += one_kind(f, kinds[k], "sm80", dir);
            sm90 += one_kind(f, kinds[k], "sm90", dir);
        }
        tt_file_close(f);
    }
    drop_case(dir);
    expect(sm80 == 15488 && sm90 == 15488, "%lld and %lld outputs compared",
           (long long)sm80, (long long)sm90);
}

/* In every class the kind computes what a linear layer does. */
static void test_every_class(void)
{
    enum { K = 1536, M = 16, N = 8 };
    char dir[300];
    tt_file *f;
    tt_tensor a, b;
    tmp_path(dir, sizeof dir, "mma");
    if (!expect_ok(tt_file_open(ctx, &f, ref_path(
            "tensor_core/chain.safetensors")), "chain"))
        return;
    expect(find(f, "k1536", "a", &a) && find(f, "k1536", "b", &b), "k1536");
    tt_arena m = {0};
    const float *x = tt_read_real(ctx, &m, &a), *bk = tt_read_real(ctx, &m, &b);
    const float zero[M * N] = {0};
    float *w = tt_alloc(ctx, &m, K * N, sizeof *w, "w"), y[M * N];
    for (int i = 0; i < K * N; i++) w[i % N * K + i / N] = bk[i];
    const tt_tensor t = tt_tensor_make(w, TT_F32, 2, (int64_t[]){N, K});
    const tt_ops *before = ctx->ops;
    for (int i = 0; i < TT_CLASS_COUNT; i++) {
        ctx->ops = tt_ops_class(tt_ops_find("golden"), (tt_class)i);
        tt_linear(ctx, y, x, M, &t, NULL);
        put_case(dir, tt_class_name((tt_class)i), &a, &b, zero,
                 (int64_t[]){1, M, N});
        const int64_t bad = differ(run_mma(&m, dir), y, M * N);
        expect(!bad, "%s: %lld outputs are not those of linear",
               tt_class_name((tt_class)i), (long long)bad);
    }
    ctx->ops = before;
    /* what cannot be computed is said */
    put_case(dir, "sm70", &a, &b, zero, (int64_t[]){1, M, N});
    expect(!run_mma(&m, dir) && strstr(tt_message(ctx), "no class 'sm70'"),
           "%s", tt_message(ctx));
    expect_status(ctx->status, TT_EFORMAT, "unknown class");
    put_case(dir, "sm90", &a, &b, zero, (int64_t[]){1, N, M});
    expect(!run_mma(&m, dir) && strstr(tt_message(ctx), "extents"), "%s",
           tt_message(ctx));
    expect_status(ctx->status, TT_EFORMAT, "extents");
    a = tt_tensor_make(w, TT_F32, 3, (int64_t[]){1, M, 24});
    b = tt_tensor_make(w, TT_F32, 3, (int64_t[]){1, 24, N});
    put_case(dir, "sm90", &a, &b, zero, (int64_t[]){1, M, N});
    expect(!run_mma(&m, dir) && strstr(tt_message(ctx), "K = 24"), "%s",
           tt_message(ctx));
    expect_status(ctx->status, TT_EFORMAT, "half a block");
    drop_case(dir);
    tt_arena_free(&m);
    tt_file_close(f);
}

/* ---- weights ------------------------------------------------------------- */

/* Every exponent from -126 to 1: 2^x rounded once, and no other number where 2^x
 * is wrong by 2^-20 either way. Twice that changes some. */
static void test_exp2(void)
{
    int64_t bad = 0, near = 0, far = 0;
    for (int i = -126 * 1024; i <= 1024; i++) {
        const double y = tt_exp(i / 1024.0 * 0x1.62e42fefa39efp-1);
        const float p = tc_exp2((float)i / 1024);
        bad += !same(p, tc_factor((float)y));
        for (int e = -1; e <= 1; e += 2) {
            near += !same(p, tc_factor((float)(y + e * 0x1p-20 * y)));
            far += !same(p, tc_factor((float)(y + e * 0x1p-19 * y)));
        }
    }
    expect(!bad && !near, "of 130,049 weights %lld are not 2^x, errors of 2^-20 "
           "change %lld", (long long)bad, (long long)near);
    expect(far == 127, "errors of 2^-19 change one of 1024 significands: %lld",
           (long long)far);
    expect(same(tc_exp2(0), 1) && same(tc_exp2(-126), 0x1p-126f) &&
           same(tc_exp2(127.5f), 0x1.6ap127f), "the ends");
    expect(same(tc_exp2(-126 - 0x1p-10f), 0) && same(tc_exp2(-INFINITY), 0) &&
           same(tc_exp2(128), INFINITY) && same(tc_exp2(INFINITY), INFINITY) &&
           isnan(tc_exp2(NAN)), "beyond the ends");
}

/* Integer maxima, and the power of two between them. */
static void test_max(void)
{
    expect(same(tc_max(TC_LEAST_MAX, 2.5f, 1), 2) &&
           same(tc_max(TC_LEAST_MAX, 3.5f, 1), 4) &&
           same(tc_max(3, 2.75f, 1), 3) && same(tc_max(-9, -3, 0.75f), -2) &&
           same(tc_max(5, -INFINITY, 1), 5) && same(tc_max(5, NAN, 1), 5),
           "to nearest even, and never less");
    expect(same(tc_alpha(3, 3), 1) && same(tc_alpha(-4, 3), 0x1p-7f) &&
           same(tc_alpha(-126, 0), 0x1p-126f) && same(tc_alpha(-127, 0), 0) &&
           same(tc_alpha(TC_LEAST_MAX, TC_LEAST_MAX + 500), 0) &&
           same(tc_alpha(INFINITY, INFINITY), 0), "powers of two, or nothing");
    expect(same(tc_weight(1.4142135f, 1, 1), tc_factor(0x1.5548c4p0f)) &&
           same(tc_weight(TC_HIDDEN, 1, 0), 0), "a weight");
}

/* ---- operators ----------------------------------------------------------- */

static float linear(const float *x, const float *w, int64_t n, const float *b)
{
    float y = 77;
    tt_tensor t = tt_tensor_make(w, TT_F32, 2, (int64_t[]){1, n});
    tt_linear(ctx, &y, x, 1, &t, b);
    return y;
}

static void test_linear(bool sm90)
{
    float x[40] = {0}, w[40];
    for (int k = 0; k < 40; k++) w[k] = 1;
    x[0] = 0x1p24f, x[1] = 1, x[2] = 1;
    expect(same(linear(x, w, 3, NULL), 0x1.000002p24f), "one step: %a",
           (double)linear(x, w, 3, NULL));
    x[2] = 0, x[8] = 1;
    expect(same(linear(x, w, 9, NULL), sm90 ? 0x1.000002p24f : 0x1p24f),
           "8 or 16 products: %a", (double)linear(x, w, 9, NULL));
    x[1] = 0x1.018p0f;                       /* as bf16: 1 + 2^-7 */
    expect(same(linear(x, w, 2, (float[]){0x1p-100f}), 0x1p24f), "rounded");
    /* the bias comes last; -0 is +0 before it */
    float tiny[1] = {-0x1p-75f}, one[1] = {0x1p-75f}, minus = -0.0f;
    expect(same(linear(tiny, one, 1, NULL), 0), "-0 is +0");
    expect(same(linear(tiny, one, 1, &minus), 0), "-0 is +0 before the bias");
    float b = 0x1p-140f;
    expect(same(linear(tiny, one, 1, &b), b), "subnormal bias");
    expect(same(linear(x, w, 0, &b), b) && same(linear(x, w, 0, NULL), 0),
           "an empty sum");
    x[0] = 1, x[1] = 0, x[8] = 0, b = 0x1p-24f;
    x[2] = 0x1p-23f;
    expect(same(linear(x, w, 3, &b), 0x1.000004p0f), "bias to nearest even: %a",
           (double)linear(x, w, 3, &b));
}

/* Zeros after the last k, and whole blocks of them, change nothing. */
static void test_padding(void)
{
    float x[64] = {0}, w[64] = {0};
    uint32_t s = 7;
    for (int n = 1; n <= 32; n++) {
        for (int k = 0; k < n; k++) {
            s = s * 1664525u + 1013904223u;
            x[k] = ldexpf((float)(int32_t)s * 0x1p-31f, (int)(s >> 5 & 31) - 80);
            s = s * 1664525u + 1013904223u;
            w[k] = ldexpf((float)(int32_t)s * 0x1p-31f, (int)(s >> 5 & 31) - 80);
        }
        float y = linear(x, w, n, NULL);
        expect(same(y, linear(x, w, 32, NULL)) &&
               same(y, linear(x, w, 64, NULL)), "%d products", n);
    }
}

/* Two keys of one channel; v of each. */
static float two_keys(const float *k, const float *v)
{
    float q = 1, o = 77;
    tt_attention(ctx, &(tt_attention_args){.o = &o, .q = &q, .k = k, .v = v,
                 .T = 1, .N = 2, .H = 1, .D = 1, .q_stride = 1, .kv_stride = 1,
                 .scale = 1});
    return o;
}

static void test_attention(void)
{
    const float p = tc_weight(-0.75f, TC_LOG2E, 0);
    float o = two_keys((float[]){0, -0.75f}, (float[]){0, 1});
    expect(same(o, p / (1 + p)) && same(p, tc_factor(p)),
           "weights are bf16 numbers: %a", (double)o);
    o = two_keys((float[]){0, -87.25f}, (float[]){0, 1});
    expect(o > 0x1p-126f && o < 0x1p-125f, "weights down to 2^-126: %a", (double)o);
    o = two_keys((float[]){0, -88}, (float[]){0, 1});
    expect(same(o, 0), "and zero below: %a", (double)o);
    expect(isnan(two_keys((float[]){0, NAN}, (float[]){0, 1})), "NaN logit");
    expect(isnan(two_keys((float[]){0, INFINITY}, (float[]){0, 1})),
           "infinite logit");
    /* a negative sum that is cut to nothing comes out as +0 */
    o = two_keys((float[]){0, -16.5f}, (float[]){0, -0x1p-126f});
    expect(same(o, 0), "-0 is +0: %a", (double)o);
}

/* A mask hides keys altogether; of a row of hidden keys the mean comes out, and
 * what hidden keys hold does not count next to others, whichever come first. */
static void test_mask(void)
{
    enum { N = 300 };
    float q = 1, k[N], v[N], o, alone;
    uint8_t seen[N];
    tt_attention_args a = {.o = &o, .q = &q, .k = k, .v = v, .T = 1, .N = N,
                           .H = 1, .D = 1, .q_stride = 1, .kv_stride = 1,
                           .scale = 1, .key_mask = seen};
    for (int j = 0; j < N; j++) {
        k[j] = (float)(j % 7) - 3;
        v[j] = (float)((j + 1) % 4);
        seen[j] = 0;
    }
    tt_attention(ctx, &a);
    expect(same(o, 1.5f), "all hidden: %a", (double)o);
    a.N = 1;
    a.k = k + N - 1, a.v = v + N - 1;
    a.key_mask = NULL;
    tt_attention(ctx, &a);
    alone = o;
    a.N = N;
    a.k = k, a.v = v;
    a.key_mask = seen;
    seen[N - 1] = 1;
    tt_attention(ctx, &a);
    expect(same(o, alone), "299 hidden keys first: %a, alone %a", (double)o,
           (double)alone);
    memset(seen, 1, N / 2);
    memset(seen + N / 2, 0, N - N / 2);
    tt_attention(ctx, &a);
    alone = o;
    a.N = N / 2;
    tt_attention(ctx, &a);
    expect(same(o, alone), "150 hidden keys last: %a, without %a", (double)o,
           (double)alone);
}

/* Attention of one query in blocks of `block` keys, z their logits; how often
 * m rises is added to *rises. */
static float in_blocks(tc_unit unit, const float *z, const float *v, int n,
                       int block, int64_t *rises)
{
    const float one = 1;
    float m = TC_LEAST_MAX, acc = 0, l = 0;
    for (int j0 = 0; j0 < n; j0 += block) {
        const int keys = n - j0 < block ? n - j0 : block;
        float p[2000], top = -INFINITY;
        for (int j = j0; j < j0 + keys; j++) top = z[j] > top ? z[j] : top;
        const float before = m;
        m = tc_max(before, top, TC_LOG2E);
        *rises += j0 && m > before;
        for (int j = 0; j < keys; j++)
            p[j] = tc_weight(z[j0 + j], TC_LOG2E, m);
        acc = tc_chain(unit, acc * tc_alpha(before, m), v + j0, 1, p, keys);
        l = tc_chain(unit, l * tc_alpha(before, m), &one, 0, p, keys);
    }
    return acc / l;
}

/* Where blocks end does not change a bit: blocks of 16 keys to all of them are
 * those of 128. */
static void test_blocks(bool sm90)
{
    enum { N = 2000, QUERIES = 200 };
    static const int size[] = {16, 64, 128, 176, 512, N};
    static float z[N], v[N];
    const tc_unit unit = sm90 ? tc_sm90 : tc_sm80;
    uint32_t s = 11;
    float q = 1;
    int64_t bad = 0, rises = 0;
    for (int i = 0; i < QUERIES; i++) {
        float o;
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int t = 0; t < 5; t++) {
                s = s * 1664525u + 1013904223u;
                sum += (double)(s >> 8) * 0x1p-24 - (t < 4 ? 0.5 : 0);
            }
            z[j] = tc_factor((float)((sum - 0.5) * (i % 2 ? 30 : 3) +
                                     (i % 3 ? 0 : j * 0.01)));
            v[j] = tc_factor((float)(s >> 4 & 0xffff) * 0x1p-15f - 1);
        }
        tt_attention(ctx, &(tt_attention_args){.o = &o, .q = &q, .k = z, .v = v,
                     .T = 1, .N = N, .H = 1, .D = 1, .q_stride = 1,
                     .kv_stride = 1, .scale = 1});
        for (size_t b = 0; b < sizeof size / sizeof *size; b++)
            bad += !same(in_blocks(unit, z, v, N, size[b], &rises), o);
    }
    expect(!bad, "%lld of %d outputs depend on the block", (long long)bad,
           QUERIES * 6);
    expect(rises > 10 * QUERIES, "maxima that rise: %lld", (long long)rises);
}

int main(void)
{
    ctx = test_begin("ops/tensor_core");
    test_factor();
    test_step();
    test_chain();
    test_vectors();
    test_every_class();
    test_exp2();
    test_max();
    static const char *const backends[] = {"golden", "exact"};
    static const tt_class classes[] = {TT_CLASS_SM80, TT_CLASS_SM90};
    for (int i = 0; i < 4; i++) {
        ctx->ops = tt_ops_class(tt_ops_find(backends[i / 2]), classes[i % 2]);
        test_linear(i % 2);
        test_padding();
        test_attention();
        test_mask();
        test_blocks(i % 2);
    }
    expect_ok(ctx->status, "no failure");
    return test_end();
}

#else

int main(void)
{
    tt_ctx *ctx = test_begin("ops/tensor_core");
    expect(!tt_ops_class(ctx->ops, TT_CLASS_SM90),
           "a double build has class f32 alone");
    return test_end();
}

#endif
