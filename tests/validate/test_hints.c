/* test_hints.c: mistakes of tensors that come from files, where nothing but
 * the values is known.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each case spoils a random tensor in one way and expects the sentence that
 * says so; an unspoiled error must get none that claims to explain it. The
 * mistakes of calls are tests/validate/test_mutation.c's. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/harness.h"
#include "validate/operators/call.h"

enum { T = 12, H = 4, D = 10, N = T * H * D };
static tt_ctx *ctx;
static double want[N], got[N];
static uint64_t state;

static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53 - 0.5;
}

static void fresh(void)
{
    for (int i = 0; i < N; i++) got[i] = want[i] = 4 * uniform();
}

/* The hint for got as [T, H, D] says `sentence`; NULL: none at all. */
static void says_shape(const char *sentence, int rank, const int64_t *dim)
{
    tt_verdict v = {.rank = rank, .earned = 2e-7};
    for (int i = 0; i < rank; i++) v.dim[i] = dim[i];
    for (int i = 0; i < N; i++)          /* honest rounding on top */
        if (isfinite(got[i])) got[i] = (double)(float)got[i];
    const bool found = hint_find(ctx, NULL, tt_arith_find("f32"), got, want,
                                 &v);
    if (!sentence) expect(!found, "a hint for nothing: %s", v.hint);
    else expect(found && strstr(v.hint, sentence), "\"%s\" expected, \"%s\" "
                "said", sentence, v.hint);
    expect_ok(ctx->status, "hint");
    fresh();
}

static void says(const char *sentence)
{
    says_shape(sentence, 3, (int64_t[]){T, H, D});
}

static void values(void)
{
    fresh();
    for (int i = 0; i < N; i++) got[i] = -want[i];
    says("sign flipped");
    for (int i = 0; i < N; i++) got[i] = want[i] / sqrt(D);
    says("scaled by 0.31623 = 1/sqrt(10)");
    for (int i = 0; i < N; i++) got[i] = want[i] * 2;
    says("scaled by 2");
    for (int i = 0; i < N; i++) got[i] = want[i] / H;
    says("scaled by 0.25 = 1/4");
    for (int i = 0; i < N; i++) got[i] = want[i] * -1000;
    says("scaled by -1000");
    for (int i = 0; i < N; i++) got[i] = want[i] + 0.375;
    says("the constant 0.375 is added");
    for (int i = 0; i < N; i++) got[i] = 3 * want[i] + 0.5;
    says("scaled by 3, and 0.5 added");
    for (int i = 0; i < N; i++) got[i] = want[i] + 0.1 * (i % D) - 0.33;
    says("added to every channel");
    for (int i = 0; i < N; i++) got[i] = want[i] * (1 + 0.1 * (i / D));
    says("every row is scaled");
    for (int i = 0; i < N; i++)
        got[i] = (double)tt_format_round(TT_FMT_BF16, (float)want[i]);
    says("rounded to bf16");
    for (int i = 0; i < N; i++)
        got[i] = (double)tt_format_round(TT_FMT_TF32, (float)want[i]);
    says("rounded to tf32 or f16");
    for (int i = 0; i < N; i++) got[i] = fmax(want[i], 0);
    says("limited to 0 ..");
    memset(got, 0, sizeof got);
    says("zero (not computed?)");
    for (int i = 0; i < N; i++) got[i] *= 1 + 0.01 * uniform();
    says("low precision: error like rounding to 8 bits");
    for (int i = 0; i < N; i++) got[i] = want[i] * (1 + 0.0005 * uniform());
    says("a function in another form");      /* a file does not say which */
    for (int i = 0; i < N; i++)
        got[i] = want[i] * (1 + 0.1 * (i % D)) + 0.2 * (i % D) - 0.3;
    says("every channel has a factor and a constant of its own");
    /* six values close together: nearly a constant, and no constant */
    for (int i = 0; i < N; i++) want[i] = 0.2 + 0.01 * uniform();
    for (int i = 0; i < N; i++) got[i] = want[i] + 0.5 + 0.01 * uniform();
    says_shape(NULL, 1, (int64_t[]){6});
    for (int i = 0; i < N; i++) want[i] = 0.2 + 0.01 * uniform();
    for (int i = 0; i < N; i++) got[i] = want[i] + 0.5;
    says_shape("the constant 0.5 is added", 1, (int64_t[]){6});
    for (int i = 0; i < N; i++) got[i] = 4 * uniform();
    says(NULL);
}

static int at(int t, int h, int d)
{
    return (t * H + h) * D + d;
}

static void order(void)
{
#define EACH(t, h, d)                                                          \
    for (int t = 0; t < T; t++)                                                \
        for (int h = 0; h < H; h++)                                            \
            for (int d = 0; d < D; d++)
    fresh();
    EACH(t, h, d) got[(t * D + d) * H + h] = want[at(t, h, d)];
    says("axes transposed");
    EACH(t, h, d) got[(h * T + t) * D + d] = want[at(t, h, d)];
    says("axes transposed");
    EACH(t, h, d) got[(d * H + h) * T + t] = want[at(t, h, d)];
    says("axes transposed");
    /* the same where heads and channels are one axis */
    EACH(t, h, d) got[(t * D + d) * H + h] = want[at(t, h, d)];
    says_shape("channels transposed: [10, 4] where [4, 10]", 2,
               (int64_t[]){T, H * D});
    EACH(t, h, d) got[at(t, h, d)] = want[at(T - 1 - t, h, d)];
    says("axis-0 slices in reverse order");
    EACH(t, h, d) got[at(t, h, d)] = want[at(t, h, (d + D / 2) % D)];
    says("channels shifted by 5, around the end");
    EACH(t, h, d)
        got[at(t, h, d)] = want[at(t, h, d % 2 ? D / 2 + d / 2 : d / 2)];
    says("interleaved pairs where halves");
    EACH(t, h, d) got[at(t, h, d)] = want[at(t, h, d ^ 1)];
    says("neighbouring channels exchanged");
    EACH(t, h, d) got[at(t, h, d)] = t < 3 ? 9 : want[at(t - 3, h, d)];
    says("axis-0 slices shifted by 3");
    EACH(t, h, d) got[at(t, h, d)] = want[at(t, (h + 1) % H, d)];
    says("axis-1 slices shifted by -1, around the end");
    /* [T, H, D] with T = 3 frames of 4: transposed inside */
    EACH(t, h, d) got[at(t % 4 * 3 + t / 4, h, d)] = want[at(t, h, d)];
    says_shape("rows are [4, 3] where [3, 4]", 2, (int64_t[]){T, H * D});
    EACH(t, h, d)
        got[at(t / 4 * 4 + t % 2 * 2 + t / 2 % 2, h, d)] = want[at(t, h, d)];
    says_shape("rows of each of 3 frames are [2, 2]", 2,
               (int64_t[]){T, H * D});
}

static void places(void)
{
    fresh();
    got[at(3, 0, 7)] += 0.01;
    says("one element alone, [3, 0, 7]");
    got[at(5, 2, 1)] = NAN;
    says("one element alone, [5, 2, 1]: 1 NaN");
    EACH(t, h, d) if (t >= 9) got[at(t, h, d)] = 0;
    says("zero (not computed?), only the last 3 axis-0 slices of 12");
    EACH(t, h, d) if (d == 4) got[at(t, h, d)] *= -1;
    says("sign flipped, only channel 4 of 10");
    EACH(t, h, d) if (h == 2) got[at(t, h, d)] = 0.25 * want[at(t, h, d)];
    says("scaled by 0.25 = 1/4, only axis-1 slice 2 of 4");
    EACH(t, h, d)
        if (t == 2 || t == 7) got[at(t, h, d)] = want[at(9 - t, h, d)];
    says("2 and 7 are exchanged");
    EACH(t, h, d) if (t == 6) got[at(t, h, d)] = want[at(1, h, d)];
    says("6 holds the values of 1");
    EACH(t, h, d) if (d % 4 == 1) got[at(t, h, d)] = uniform();
    says("only every 4th of the channels from 1 on");
}

/* Values that are at their place under every map wherever a map is tried first,
 * and nowhere else: not every map is worked out. With them all it takes 100
 * times as long. */
static void patience(void)
{
    enum { MANY = 200000, STEP = MANY / 256, SECONDS = 5 };
    static double g[MANY], w[MANY];
    tt_verdict v = {.rank = 1, .dim = {MANY}, .earned = 2e-7};
    for (int i = 0; i < MANY; i++) {
        g[i] = 4 * uniform();
        w[i] = 1;
    }
    for (int s = 0; s < MANY; s += STEP) {
        const int i = s + s / STEP * 7 % STEP;
        if (i >= MANY) continue;
        g[i] = 1;
        w[i] = -7;
    }
    const clock_t from = clock();
    hint_find(ctx, NULL, tt_arith_find("f32"), g, w, &v);
    const double used = (double)(clock() - from) / CLOCKS_PER_SEC;
    expect(used < SECONDS, "maps that fool the first look: %.1f s", used);
}

int main(void)
{
    ctx = test_begin("validate/hints");
    values();
    order();
    places();
    patience();
    return test_end();
}
