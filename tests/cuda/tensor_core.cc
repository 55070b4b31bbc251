/* tensor_core.cc: the kernels of tensor_core.h on fibers, against golden.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Prints differences, and how much was compared on its last line. */
#include "tests/cuda/tensor_core.h"

#include <math.h>
#include <stdio.h>

#include <vector>

#include "tether/backend.h"

tc_unit shim_unit;

static tt_ctx ctx;
static long passed, failed;
static uint64_t state = 88172645463325252u;

static float number(int kind)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const double u = (double)(state >> 11) * 0x1p-52 - 1;
    const int e = kind == 1 ? (int)(state >> 3 & 31) - 24 : 0;
    return tc_factor((float)ldexp(u, e));
}

static std::vector<float> numbers(int64_t n, int kind)
{
    std::vector<float> x((size_t)n);
    for (float &v : x) v = number(kind);
    return x;
}

static std::vector<bf16> halves(const std::vector<float> &x)
{
    std::vector<bf16> y;
    for (float v : x) y.push_back((bf16)(tc_bits(v) >> 16));
    return y;
}

static void compare(const char *what, const std::vector<float> &got,
                    const std::vector<float> &want)
{
    long bad = 0;
    for (size_t i = 0; i < got.size(); i++)
        bad += memcmp(&got[i], &want[i], 4) != 0;
    if (bad) printf("FAIL cuda/tensor_core: %s: %ld of %zu outputs differ\n",
                    what, bad, got.size());
    failed += bad != 0;
    passed += bad == 0;
}

static void linear(const char *cls, int n, int o, int k, int kind, bool bias)
{
    std::vector<float> x = numbers(n * k, kind), w = numbers(o * k, kind);
    std::vector<float> b = numbers(o, 0), got((size_t)n * o), want(got);
    std::vector<bf16> hx = halves(x), hw = halves(w);
    const int64_t dim[2] = {o, k};
    const tt_tensor t = tt_tensor_make(w.data(), TT_F32, 2, dim);
    tt_linear(&ctx, want.data(), x.data(), n, &t, bias ? b.data() : NULL);
    const tc_linear_args a = {got.data(), hx.data(), hw.data(),
                              bias ? b.data() : NULL, n, o, k};
    shim_run(&shim_tc_linear, "tc_linear",
             dim3((unsigned)(o + 127) / 128, (unsigned)(n + 127) / 128),
             dim3(TL_THREADS), TL_SHARED, &a);
    char name[100];
    snprintf(name, sizeof name, "%s linear %dx%dx%d kind %d", cls, n, o, k,
             kind);
    compare(name, got, want);
}

static void attention(const char *cls, int T, int N, int H, int kind)
{
    const int64_t D = TA_D, stride = H * D;
    std::vector<float> q = numbers(T * stride, kind), k = numbers(N * stride, 0);
    std::vector<float> v = numbers(N * stride, kind);
    std::vector<float> got((size_t)(T * stride)), want(got);
    std::vector<bf16> hq = halves(q), hk = halves(k), hv = halves(v);
    tt_attention_args g = {};
    g.o = want.data(), g.q = q.data(), g.k = k.data(), g.v = v.data();
    g.T = T, g.N = N, g.H = H, g.D = D;
    g.q_stride = g.kv_stride = stride;
    g.scale = kind == 1 ? 1.0f : (float)(1 / sqrt(128.0));
    tt_attention(&ctx, &g);
    const float scale = g.scale * TC_LOG2E;
    const tc_attention_args a = {got.data(), hq.data(), hk.data(), hv.data(), T,
                                 N, H, stride, stride, scale, -125.0f / scale};
    shim_run(&shim_tc_attention, "tc_attention",
             dim3((unsigned)(T + 63) / 64, (unsigned)H), dim3(TA_THREADS),
             TA_SHARED, &a);
    char name[100];
    snprintf(name, sizeof name, "%s attention T%d N%d H%d kind %d", cls, T, N, H,
             kind);
    compare(name, got, want);
}

int main()
{
    static const char *const classes[] = {"sm80", "sm90"};
    tt_ctx_init(&ctx);
    for (int i = 0; i < 2; i++) {
        tt_class cls;
        tt_class_find(&cls, classes[i]);
        ctx.ops = tt_ops_class(tt_ops_find("golden"), cls);
        shim_unit = i ? tc_sm90 : tc_sm80;
        for (int kind = 0; kind < 2; kind++) {
            linear(classes[i], 5, 7, 8, kind, false);
            linear(classes[i], 129, 33, 40, kind, true);
            linear(classes[i], 20, 130, 264, kind, true);
            attention(classes[i], 1, 1, 1, kind);
            attention(classes[i], 16, 128, 1, kind);
            attention(classes[i], 65, 131, 2, kind);
            attention(classes[i], 9, 400, 1, kind);
        }
    }
    if (ctx.status) printf("FAIL cuda/tensor_core: %s\n", tt_message(&ctx));
    printf("cuda/tensor_core: %ld passed, %ld failed\n", passed,
           failed + (ctx.status != TT_OK));
    return failed || ctx.status;
}
