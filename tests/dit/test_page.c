/* test_page.c: the worked examples of src/dit/README.md, read from the page and
 * computed again: patches, time embedding, and the way back from tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What follows the rows "not" is computed by the loops of this file.  */
#include <math.h>

#include "dit/model.h"
#include "core/fma.h"
#include "tests/page.h"
#include "tether/mathfn.h"

#ifndef TT_REAL_DOUBLE

static page p;

/* W and x of one patch of two channels, in the order (channel, row, column). */
static const float x[8] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f};
static const float w[8] = {0.9f, -0.9f, 0.9f, -0.8f, 0.2f, 0.6f,
                           -0.3f, -0.3f};

static float chain(const int *order, float b)
{
    float s = 0;
    for (int i = 0; i < 8; i++) s = fma_f32(x[order[i]], w[order[i]], s);
    return s + b;
}

static void patches(tt_ctx *ctx)
{
    float b = 0.05f, token = NAN;
    tt_dit m = {.cfg = {.in_dim = 2, .dim = 1},
                .patch = {tt_tensor_make(w, TT_F32, 2, (int64_t[]){1, 8}), &b}};
    tt_dit_patch(ctx, &m, &token, x, 1, 2, 2);
    const int stored[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const int as_convolution[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    const int turned[8] = {0, 2, 1, 3, 4, 6, 5, 7};
    expect_bits("k ascends as stored", &(float){chain(stored, b)}, &token,
                sizeof token);
    PAGE_SAYS(&p, "k of channel 1, row 1, column 0", (1 * 2 + 1) * 2 + 0);
    PAGE_SAYS(&p, "token", token);
    PAGE_SAYS(&p, "not: in the order (row, column, channel)",
              chain(as_convolution, b));
    PAGE_SAYS(&p, "not: in the order (channel, column, row)",
              chain(turned, b));
}

static void time_embedding(tt_ctx *ctx)
{
    enum { N = 4 };
    const float one[N * N] = {1, [5] = 1, [10] = 1, [15] = 1};
    float zero[N] = {0}, e[N];
    double wave[N];
    const tt_tensor same = tt_tensor_make(one, TT_F32, 2, (int64_t[]){N, N});
    tt_dit m = {.cfg = {.dim = N, .freq_dim = N},
                .time0 = {same, zero}, .time2 = {same, zero}};
    tt_dit_time(ctx, &m, wave, e, NULL, &(double){937.5}, 1);
    PAGE_SAYS(&p, "sinusoid", (float)wave[0], (float)wave[1], (float)wave[2],
              (float)wave[3]);
    PAGE_SAYS(&p, "e, both linear layers the identity", e[0], e[1], e[2],
              e[3]);
}

/* Two tokens, side by side, of two channels: values 0 to 15. */
static void way_back(void)
{
    float y[16], out[16];
    for (int i = 0; i < 16; i++) y[i] = (float)i;
    tt_dit_unpatch(out, y, 1, 2, 2, 4);
    for (int c = 0; c < 2; c++)
        for (int dy = 0; dy < 2; dy++) {
            char row[40];
            const float *at = out + (c * 2 + dy) * 4;
            snprintf(row, sizeof row, "channel %d, row %d", c, dy);
            PAGE_SAYS(&p, row, at[0], at[1], at[2], at[3]);
        }
}

int main(void)
{
    tt_ctx *ctx = test_begin("dit/page");
    if (page_open(&p, "src/dit/README.md")) {
        patches(ctx);
        time_embedding(ctx);
        way_back();
        page_close(&p, NULL);
    }
    return test_end();
}

#else

int main(void)
{
    test_begin("dit/page");
    expect(sizeof(tt_real) == 8, "the page is about float");
    return test_end();
}

#endif
