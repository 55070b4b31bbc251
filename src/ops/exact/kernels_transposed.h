/* kernels_transposed.h: tiles of transposed weights (transposed_tile of
 * tt_kernels), written once for the vectors of x86.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Who includes it says what a vector is, V of W floats, and P(op), its
 * operations; how many rows a tile has, MR; and how many products ahead rows of
 * x are asked for, NEAR: as many as the first cache takes to bring a line from
 * the second. Of what comes next a little is asked for at a time: to ask for
 * all at once would hold up what comes after.
 * Two products a round halve what is not arithmetic; more of them would not fit
 * where CPUs keep short loops, and are slower (Golden Cove).
 * ROWS(X) is X(r) of every row of a tile, so that every sum is a register. */
#define BEGIN_SIDE(r) V s##r = P(setzero)(), t##r = P(setzero)();
#define STEP_SIDE(r)                                                           \
    {                                                                          \
        const V v = P(set1)(x[r]);                                             \
        s##r = P(fmadd)(v, b0, s##r);                                          \
        t##r = P(fmadd)(v, b1, t##r);                                          \
    }
#define FROM_SIDE(r)                                                           \
    s##r = P(add)(P(loadu)(from + r * 2 * W), s##r);                           \
    t##r = P(add)(P(loadu)(from + r * 2 * W + W), t##r);
#define BIAS_SIDE(r)                                                           \
    s##r = P(add)(s##r, P(loadu)(bias));                                       \
    t##r = P(add)(t##r, P(loadu)(bias + W));
#define GIVE_SIDE(r)                                                           \
    P(storeu)(c + r * ldc, s##r);                                              \
    P(storeu)(c + r * ldc + W, t##r);
#define GIVE_FAR(r)                                                            \
    P(stream)(c + r * ldc, s##r);                                              \
    P(stream)(c + r * ldc + W, t##r);
#define TRANSPOSED_STEP(ROWS)                                                  \
    {                                                                          \
        const V b0 = P(loadu)(w), b1 = P(loadu)(w + W);                        \
        ask_near(x, NEAR * MR * sizeof *x);                                    \
        ROWS(STEP_SIDE)                                                        \
        x += MR, w += 2 * W;                                                   \
    }
#define TRANSPOSED_TILE(name, ROWS, GIVE)                                      \
    static void name(float *c, int64_t ldc, const float *from, const float *x, \
                     const float *w, int64_t kc, const float *bias,            \
                     exact_ask ask)                                            \
    {                                                                          \
        ROWS(BEGIN_SIDE)                                                       \
        for (int64_t k = 0; k + 2 <= kc; k += 2) {                             \
            prefetch_at((const void *)ask.next, 0);                            \
            ask.next += 2 * ask.each;                                          \
            TRANSPOSED_STEP(ROWS)                                              \
            TRANSPOSED_STEP(ROWS)                                              \
        }                                                                      \
        if (kc % 2) TRANSPOSED_STEP(ROWS)                                      \
        if (from) {                                                            \
            ROWS(FROM_SIDE)                                                    \
        }                                                                      \
        if (bias) {                                                            \
            ROWS(BIAS_SIDE)                                                    \
        }                                                                      \
        ROWS(GIVE)                                                             \
    }

static void transposed_end(void)
{
    VS_AROUND_END();
}
