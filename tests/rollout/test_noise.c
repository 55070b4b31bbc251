/* test_noise.c: Philox, and the frozen generator tn1.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers: two of Random123 for Philox, vectors rounded from 120-bit
 * arithmetic for tn1 (at most one float32 ulp in one element of 10,000), and
 * one stored hash that fixes every bit of ours. */
#include "tests/harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rollout/run.h"
#include "tests/run_case/run_case.h"

static void check_philox(void)
{
    const uint32_t zero[4] = {0}, ones[4] = { ~0u, ~0u, ~0u, ~0u };
    const uint32_t want0[4] = { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                0x9b00dbd8 };
    const uint32_t want1[4] = { 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
                                0x6d5451fd };
    uint32_t got[4];
    defined_philox(got, zero, zero);
    expect_bits("philox, all zero", got, want0, sizeof got);
    defined_philox(got, ones, ones);
    expect_bits("philox, all ones", got, want1, sizeof got);
}

/* Elements that differ from the 120-bit values; none by more than one ulp. */
static void check_tensor(const char *dir, const tt_entry *want,
                         const tt_entry *got)
{
    if (!expect(want && got, "%s: tensor missing", dir)) return;
    const int64_t n = tt_tensor_count(&want->t);
    int64_t differ = 0, far = 0;
    if (!expect(tt_tensor_count(&got->t) == n, "%s %s: another size", dir,
                want->name))
        return;
    for (int64_t i = 0; i < n; i++) {
        float a, b;
        tt_widen_at_f32(&a, &want->t, i, 1);
        tt_widen_at_f32(&b, &got->t, i, 1);
        differ += a != b;
        far += !(b >= nextafterf(a, -INFINITY) && b <= nextafterf(a, INFINITY));
    }
    expect(far == 0, "%s %s: %lld elements off by more than an ulp", dir,
           want->name, (long long)far);
    expect(differ * 10000 <= n, "%s %s: %lld of %lld elements differ", dir,
           want->name, (long long)differ, (long long)n);
}

static void check_vectors(tt_ctx *ctx, const char *name)
{
    test_case c;
    char path[600];
    bool unknown;
    tt_st_writer *w = NULL;
    tt_file *out = NULL;
    tmp_path(path, sizeof path, "noise");
    if (!case_open(&c, "%s", name)) return;
    tt_st_create(ctx, &w, path);
    run_case(ctx, c.dir, w, &unknown);
    tt_st_finish(w);
    if (expect_ok(tt_file_open(ctx, &out, path), name)) {
        check_tensor(name, tt_file_find(c.expected, "noise"),
                     tt_file_find(out, "noise"));
        check_tensor(name, tt_file_find(c.expected, "renoise"),
                     tt_file_find(out, "renoise"));
        tt_file_close(out);
    }
    unlink(path);
    case_close(&c);
}

/* tn1 is frozen. Should this ever fail, the generator has become another one
 * and needs another name. */
#define TN1_HASH \
    "7b30b7cd8683bb6726226055a8e0ff75fe0f7d29f5ebb5ba86bc9fd67821cd2d"

static void check_frozen(void)
{
    enum { N = 1 << 16 };
    static float x[N], y[N];
    char hex[65];
    tt_sha256 s;
    tt_sha256_init(&s);
    double sum = 0, sum2 = 0, top = 0;
    for (uint32_t f = 0; f < 8; f++) {
        tt_noise_frame(x, N, UINT64_C(0x123456789abcdef0) + f, f % 3, f, f % 5);
        memcpy(y, x, sizeof x);
        tt_swap_stored(y, TT_F32, N);
        tt_sha256_add(&s, y, sizeof y);
        for (int i = 0; i < N; i++) {
            sum += x[i];
            sum2 += (double)x[i] * x[i];
            if (fabs(x[i]) > top) top = fabs(x[i]);
        }
    }
    tt_sha256_hex(&s, hex);
    expect(!strcmp(hex, TN1_HASH), "tn1 is not tn1 any more: %s", hex);
    /* Five standard errors of 2^19 samples. */
    const double n = 8.0 * N;
    expect(fabs(sum / n) < 5 / sqrt(n), "mean %g", sum / n);
    expect(fabs(sum2 / n - 1) < 5 * sqrt(2 / n), "variance %g", sum2 / n);
    expect(top < 6.77 && top > 4, "largest value %g", top);

    /* A value does not depend on how many are asked for. */
    tt_noise_frame(x, 1001, 7, 0, 2, 1);
    tt_noise_frame(y, 10, 7, 0, 2, 1);
    expect_bits("a shorter frame", x, y, 10 * sizeof *x);
    /* Every part of the address counts. */
    tt_noise_frame(y, 8, UINT64_C(7) << 32 | 7, 0, 2, 1);
    expect(memcmp(x, y, 32) != 0, "the high half of the seed");
    tt_noise_frame(y, 8, 7, 1, 2, 1);
    expect(memcmp(x, y, 32) != 0, "the sample");
    tt_noise_frame(y, 8, 7, 0, 3, 1);
    expect(memcmp(x, y, 32) != 0, "the frame");
    tt_noise_frame(y, 8, 7, 0, 2, 0);
    expect(memcmp(x, y, 32) != 0, "the stream");
}

int main(void)
{
    tt_ctx *ctx = test_begin("rollout/noise");
    check_philox();
    check_vectors(ctx, "noise_tn1");
    check_vectors(ctx, "noise_tn1_odd");
    check_frozen();
    return test_end();
}
