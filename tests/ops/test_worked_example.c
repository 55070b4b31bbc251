/* test_worked_example.c: the examples of src/ops/README.md, number by number.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A linear layer of three products and a bias, one that needs two blocks, one
 * weight of the exponential, and one rotated pair. A porter
 * compares with them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness.h"
#include "tether/mathfn.h"
#include "tether/backend.h"

#ifndef TT_REAL_DOUBLE

static tt_ctx *ctx;

static void expect_float(const char *what, float got, float want)
{
    expect(memcmp(&got, &want, sizeof got) == 0, "%s: %a, the page says %a",
           what, (double)got, (double)want);
}

/* x (0.1, 0.2, 0.3) . w (0.1, -0.7, 0.3) + b 0.05, all rounded to float. */
static void small_linear(void)
{
    const float x[3] = {0x1.99999ap-4f, 0x1.99999ap-3f, 0x1.333334p-2f};
    const float w[3] = {0x1.99999ap-4f, -0x1.666666p-1f,
                        0x1.333334p-2f};
    const float b[1] = {0x1.99999ap-5f};
    float y;
    tt_tensor t = tt_tensor_make(w, TT_F32, 2, (int64_t[]){1, 3});
    float s = fmaf(x[0], w[0], 0);
    expect_float("after k = 0", s, 0x1.47ae16p-7f);
    s = fmaf(x[1], w[1], s);
    expect_float("after k = 1", s, -0x1.0a3d7p-3f);
    s = fmaf(x[2], w[2], s);
    expect_float("after k = 2", s, -0x1.47ae0ep-5f);
    tt_linear(ctx, &y, x, 1, &t, b);
    expect_float("y", y, 0x1.47ae3p-7f);
    /* rounding every product as well gives something else */
    float plain = x[0] * w[0] + x[1] * w[1];
    plain += x[2] * w[2];
    expect_float("without fma", plain + b[0], 0x1.47ae28p-7f);
}

/* 300 times 0.1 * 0.1: a block of 256 and one of 44. */
static void two_blocks(void)
{
    float x[300], w[300], y, s[2] = {0, 0};
    for (int k = 0; k < 300; k++) {
        x[k] = w[k] = 0x1.99999ap-4f;
        s[k / TT_DOT_BLOCK] = fmaf(x[k], w[k], s[k / TT_DOT_BLOCK]);
    }
    tt_tensor t = tt_tensor_make(w, TT_F32, 2, (int64_t[]){1, 300});
    tt_linear(ctx, &y, x, 1, &t, NULL);
    expect_float("first block", s[0], 0x1.47ae04p+1f);
    expect_float("second block", s[1], 0x1.c28f54p-2f);
    expect_float("sum of blocks", y, 0x1.7fffeep+1f);
}

static void functions(void)
{
    double s, c;
    expect_float("expf(-1)", tt_expf(-1), 0x1.78b564p-2f);
    float silu = 1;
    tt_silu(ctx, &silu, 1);
    expect_float("silu(1)", silu, 0x1.764d5p-1f);
    tt_sincos(1.0, &s, &c);
    expect(s == 0x1.aed548f090ceep-1 && c == 0x1.14a280fb5068cp-1,
           "sincos(1): %a %a", s, c);
    double theta = tt_pow(10000.0, -(1.0 / 22.0));
    expect(theta == 0x1.50dc9fa5b64f8p-1, "theta: %a", theta);
    /* the pair (1, 2) turned by one radian */
    float y0 = (float)fma(1.0, c, -(2.0 * s));
    float y1 = (float)fma(1.0, s, 2.0 * c);
    expect_float("rope, first", y0, -0x1.248408p+0f);
    expect_float("rope, second", y1, 0x1.ec0d26p+0f);
}

int main(void)
{
    ctx = test_begin("ops/worked_example");
    for (int i = 0; tt_ops_at(i); i++) {
        if (!strcmp(tt_ops_at(i)->name, "blas")) continue;
        ctx->ops = tt_ops_at(i);
        small_linear();
        two_blocks();
        functions();
    }
    return test_end();
}

#else
int main(void)
{
    test_begin("ops/worked_example");
    expect(sizeof(tt_real) == 8, "the example is of the float class: not run "
           "in a double build");
    return test_end();
}
#endif
