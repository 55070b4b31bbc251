/* kernels_avx512.c: AVX-512 kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * linear     14 rows x 32 lanes: 28 accumulators. Rows are those of x, packed
 *            side by side (transposed_tile, and 7 of them); or, for few rows of
 *            x, those of the weights, broadcast in place: then also 16 lanes,
 *            or 24, half of whose vectors are as cheap as two halves are dear
 *            on CPUs that do AVX-512 in halves. Four lanes or fewer have the 14
 *            rows along the vector instead (linear_rest).
 * attention  8 rows x 48 queries: 24 accumulators; or 32, where a panel has no
 *            more.
 * All loops over rows but those of linear_rest are written out by macro so that
 * every accumulator is a register at any optimisation level worth the name. */
#include "ops/exact/exact.h"

#if defined(__x86_64__) && !defined(TT_REAL_DOUBLE)

#include "ops/exact/transpose_avx512.h"

#define AQ 48
#define TURN transpose16
#include "ops/exact/kernels.h"

#define ROWS14(X, P)                                                           \
    X(0, p0[k], P) X(1, p0[k + ld], P) X(2, p0[k + 2 * ld], P)                 \
    X(3, p1[k], P) X(4, p1[k + ld], P) X(5, p1[k + 2 * ld], P)                 \
    X(6, p2[k], P) X(7, p2[k + ld], P) X(8, p2[k + 2 * ld], P)                 \
    X(9, p3[k], P) X(10, p3[k + ld], P) X(11, p3[k + 2 * ld], P)               \
    X(12, p4[k], P) X(13, p4[k + ld], P)
#define HALF_mm512 __m512
#define HALF_mm256 __m256
#define LOW_mm512(x) (x)
#define LOW_mm256(x) _mm512_castps512_ps256(x)
#define BEGIN14(r, at, P)                                                      \
    __m512 s##r = _mm512_setzero_ps();                                         \
    HALF##P t##r = P##_setzero_ps();
#define STEP14(r, at, P)                                                       \
    {                                                                          \
        __m512 x = _mm512_set1_ps(at);                                         \
        s##r = _mm512_fmadd_ps(x, b0, s##r);                                   \
        t##r = P##_fmadd_ps(LOW##P(x), b1, t##r);                              \
    }
#define GIVE14(r, at, P)                                                       \
    {                                                                          \
        float *y = c + r * ldc;                                                \
        if (add) {                                                             \
            s##r = _mm512_add_ps(_mm512_loadu_ps(y), s##r);                    \
            t##r = P##_add_ps(P##_loadu_ps(y + 16), t##r);                     \
        }                                                                      \
        if (bias) {                                                            \
            s##r = _mm512_add_ps(s##r, _mm512_loadu_ps(bias));                 \
            t##r = P##_add_ps(t##r, P##_loadu_ps(bias + 16));                  \
        }                                                                      \
        _mm512_storeu_ps(y, s##r);                                             \
        P##_storeu_ps(y + 16, t##r);                                           \
    }

/* Of a linear layer of few rows the first cache keeps the rows, and what comes
 * next of b goes to the second. A tile of a convolution asks there for its part
 * of what comes after b, as tiles before it have asked for b. */
#define PREFETCH_AT                                                            \
    prefetch_at(b, AHEAD); prefetch_at(b, AHEAD + 64);                         \
    prefetch_at(b, AHEAD + 128); prefetch_at(b, AHEAD + 192);
#define ASK_CONV                                                               \
    prefetch_at((const void *)ask.next, 0);                                    \
    ask.next += 2 * ask.each;

/* n products of rows from a on; the second half of the lanes in vectors of
 * P. ASK is done next to two of them. */
#define PRODUCT14(P)                                                           \
    {                                                                          \
        __m512 b0 = _mm512_loadu_ps(b);                                        \
        HALF##P b1 = P##_loadu_ps(b + 16);                                     \
        ROWS14(STEP14, P)                                                      \
        k++, b += 32;                                                          \
    }
#define SUM14(a, n, P, ASK)                                                    \
    do {                                                                       \
        const float *p0 = a, *p1 = p0 + 3 * ld, *p2 = p0 + 6 * ld;             \
        const float *p3 = p0 + 9 * ld, *p4 = p0 + 12 * ld;                     \
        int64_t k = 0;                                                         \
        while (k + 2 <= n) {                                                   \
            ASK                                                                \
            PRODUCT14(P)                                                       \
            PRODUCT14(P)                                                       \
        }                                                                      \
        if (k < n) PRODUCT14(P)                                                \
    } while (0)
#define LINEAR_TILE(name, P)                                                   \
    static void name(float *c, int64_t ldc, const float *a, int64_t ld,        \
                     const float *b, int64_t kc, bool add, const float *bias)  \
    {                                                                          \
        ROWS14(BEGIN14, P)                                                     \
        SUM14(a, kc, P, PREFETCH_AT);                                          \
        ROWS14(GIVE14, P)                                                      \
    }
LINEAR_TILE(linear_tile, _mm512)
LINEAR_TILE(linear_few, _mm256)

#define V __m512
#define W 16
#define P(op) _mm512_##op##_ps
#define MR 14
#define NEAR 8
#include "ops/exact/kernels_transposed.h"

#define SIDE7(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6)
#define SIDE14(X) SIDE7(X) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
TRANSPOSED_TILE(transposed_tile, SIDE14, GIVE_SIDE)
TRANSPOSED_TILE(transposed_half, SIDE7, GIVE_SIDE)
TRANSPOSED_TILE(transposed_far, SIDE14, GIVE_FAR)

static void avx512_transposed_rows(float *x, const float *rows, int64_t ld,
                                   int64_t n, int64_t kc)
{
    int64_t k = 0;
    for (; k + 16 <= kc; k += 16) {
        __m512 v[16];
        for (int64_t r = 0; r < 16; r++)
            v[r] = _mm512_loadu_ps(rows + (r < n ? r : 0) * ld + k);
        flip16(v);
        for (int i = 0; i < 16; i++)
            _mm512_mask_storeu_ps(x + (k + i) * 14, 0x3fff, v[i]);
    }
    for (; k < kc; k++)
        for (int64_t r = 0; r < 14; r++)
            x[k * 14 + r] = rows[(r < n ? r : 0) * ld + k];
}

static void avx512_conv_tile(float *c, int64_t ldc, const exact_window *w,
                             int64_t k0, const float *b, int64_t kc, bool add,
                             const float *bias)
{
    const int64_t ld = w->ld;
    exact_ask ask = w->ask;
    ROWS14(BEGIN14, _mm512)
    for (int64_t n; kc > 0; k0 += n, kc -= n) {
        n = kc;
        const float *a = exact_piece(w, k0, &n);
        SUM14(a, n, _mm512, ASK_CONV);
    }
    ROWS14(GIVE14, _mm512)
}

/* 14 rows x 16 lanes. With a broadcast for every product CPUs that do two of
 * them a cycle would wait for loads, so one brings two neighbours of a row. */
#define BEGIN_HALF(r, at, P) __m512 s##r = _mm512_setzero_ps();
#define STEP_HALF(r, at, P)                                                    \
    {                                                                          \
        double two;                                                            \
        memcpy(&two, &(at), sizeof two);                                       \
        const __m512 x = _mm512_castpd_ps(_mm512_set1_pd(two));                \
        s##r = _mm512_fmadd_ps(_mm512_moveldup_ps(x), b0, s##r);               \
        s##r = _mm512_fmadd_ps(_mm512_movehdup_ps(x), b1, s##r);               \
    }
#define LAST_HALF(r, at, P)                                                    \
    s##r = _mm512_fmadd_ps(_mm512_set1_ps(at), b0, s##r);
#define GIVE_HALF(r, at, P)                                                    \
    {                                                                          \
        float *y = c + r * ldc;                                                \
        if (add) s##r = _mm512_add_ps(_mm512_loadu_ps(y), s##r);               \
        if (bias) s##r = _mm512_add_ps(s##r, _mm512_loadu_ps(bias));           \
        _mm512_storeu_ps(y, s##r);                                             \
    }
static void linear_half(float *c, int64_t ldc, const float *a, int64_t ld,
                        const float *b, int64_t kc, bool add,
                        const float *bias)
{
    const float *p0 = a, *p1 = a + 3 * ld, *p2 = a + 6 * ld;
    const float *p3 = a + 9 * ld, *p4 = a + 12 * ld;
    int64_t k = 0;
    ROWS14(BEGIN_HALF, )
    for (; k + 2 <= kc; k += 2, b += 64) {
        const __m512 b0 = _mm512_loadu_ps(b), b1 = _mm512_loadu_ps(b + 32);
        prefetch_at(b, AHEAD);
        prefetch_at(b + 32, AHEAD);
        ROWS14(STEP_HALF, )
    }
    if (k < kc) {
        const __m512 b0 = _mm512_loadu_ps(b);
        ROWS14(LAST_HALF, )
    }
    ROWS14(GIVE_HALF, )
}

/* The same of rows of bf16 numbers: the upper half of a float each. Few rows of
 * x leave no time to wait for weights, so those of the next tile are asked for;
 * CPUs that foresee stop at the end of a page. */
#define STEP_HALF16(r, at, P)                                                  \
    {                                                                          \
        int32_t two;                                                           \
        memcpy(&two, &(at), sizeof two);                                       \
        const __m512i x = _mm512_set1_epi32(two);                              \
        const __m512i first = _mm512_slli_epi32(x, 16);                        \
        const __m512i second = _mm512_and_si512(x, upper);                     \
        s##r = _mm512_fmadd_ps(_mm512_castsi512_ps(first), b0, s##r);          \
        s##r = _mm512_fmadd_ps(_mm512_castsi512_ps(second), b1, s##r);         \
    }
#define LAST_HALF16(r, at, P)                                                  \
    s##r = _mm512_fmadd_ps(_mm512_set1_ps(tt_f32_from_bf16(at)), b0, s##r);
#define ASKED 32 /* numbers of a cache line                                  */
#define ASK_ROW(r, at, P)                                                      \
    __builtin_prefetch((const void *)((uintptr_t)&(at) + next), 0, 2);

static void linear_half16(float *c, int64_t ldc, const uint16_t *a, int64_t ld,
                          const float *b, int64_t kc, bool add,
                          const float *bias)
{
    const uint16_t *p0 = a, *p1 = a + 3 * ld, *p2 = a + 6 * ld;
    const uint16_t *p3 = a + 9 * ld, *p4 = a + 12 * ld;
    const __m512i upper = _mm512_set1_epi32(~0xffff);
    const uintptr_t next = 14 * sizeof *a * (uintptr_t)ld;
    int64_t k = 0;
    ROWS14(BEGIN_HALF, )
    for (; k + 2 <= kc; k += 2, b += 64) {
        const __m512 b0 = _mm512_loadu_ps(b), b1 = _mm512_loadu_ps(b + 32);
        if (k % ASKED == 0) {
            ROWS14(ASK_ROW, )
        }
        ROWS14(STEP_HALF16, )
    }
    if (k < kc) {
        const __m512 b0 = _mm512_loadu_ps(b);
        ROWS14(LAST_HALF16, )
    }
    ROWS14(GIVE_HALF, )
}

#define REST 4 /* lanes at most */

/* s [n] += the products of 16 k, one after the other, of n lanes; product k of
 * lane j is b[k * of[0] + j * of[1]]. */
static const int APART[2] = {1, 32}, PANEL[2] = {32, 1};
INLINE void rest_step(__m512 *s, const float *a, int64_t ld, const float *b,
                      const int of[2], int n)
{
    __m512 w[16];
    for (int r = 0; r < 16; r++)
        w[r] = _mm512_loadu_ps(a + (r < 14 ? r : 13) * ld);
    flip16(w);
    UNROLL_ALL
    for (int k = 0; k < 16; k++)
        for (int j = 0; j < n; j++)
            s[j] = _mm512_fmadd_ps(
                w[k], _mm512_set1_ps(b[k * of[0] + j * of[1]]), s[j]);
}

/* The same of kc < 16 k; nothing may lie after them. */
static __attribute__((noinline)) void rest_last(__m512 *s, const float *a,
                                                int64_t ld, const float *b,
                                                int64_t kc, int n)
{
    float w[16] = {0};
    for (int64_t k = 0; k < kc; k++) {
        for (int r = 0; r < 14; r++) w[r] = a[r * ld + k];
        for (int j = 0; j < n; j++)
            s[j] = _mm512_fmadd_ps(_mm512_loadu_ps(w),
                                   _mm512_set1_ps(b[k * 32 + j]), s[j]);
    }
}

/* What linear_rest was given. */
typedef struct rest {
    float *c;
    int64_t ldc;
    const float *a;
    int64_t ld;
    const float *b;
    int64_t lanes;
} rest;

/* The sums of a block of kc products, of which s [n] has all but the last that
 * are no 16; n >= lanes. */
INLINE void rest_end(const rest *q, const __m512 *s, int64_t kc, bool add,
                     int n)
{
    const int64_t k = kc / 16 * 16;
    __m512 last[REST];
    for (int j = 0; j < n; j++) last[j] = s[j];
    if (k < kc)
        rest_last(last, q->a + k, q->ld, q->b + k * 32, kc - k, n);
    for (int64_t j = 0; j < q->lanes; j++) {
        float sum[16];
        _mm512_storeu_ps(sum, last[j]);
        for (int r = 0; r < 14; r++) {
            float *c = q->c + r * q->ldc + j;
            *c = add ? *c + sum[r] : sum[r];
        }
    }
}

/* One or two blocks of the definition, side by side: each is a long chain. */
INLINE void rest_blocks(rest q, int64_t kc, bool add, int n)
{
    enum { BLOCK = TT_DOT_BLOCK };
    const int64_t one = exact_least(kc, BLOCK), two = kc - one;
    rest p = q; /* the second */
    if (two) p.a += BLOCK, p.b += BLOCK * 32;
    __m512 s[REST], t[REST];
    int64_t k = 0;
    for (int j = 0; j < n; j++) s[j] = t[j] = _mm512_setzero_ps();
    for (; k + 16 <= two; k += 16) {
        rest_step(s, q.a + k, q.ld, q.b + k * 32, APART, n);
        rest_step(t, p.a + k, p.ld, p.b + k * 32, APART, n);
    }
    for (; k + 16 <= one; k += 16)
        rest_step(s, q.a + k, q.ld, q.b + k * 32, APART, n);
    rest_end(&q, s, one, add, n);
    if (two) rest_end(&p, t, two, true, n);
}

static void linear_rest(float *c, int64_t ldc, const float *a, int64_t ld,
                        const float *b, int64_t n, int64_t kc, bool add)
{
    for (int64_t k = 0; k < kc; k += 2 * TT_DOT_BLOCK, add = true) {
        const int64_t here = exact_least(kc - k, 2 * TT_DOT_BLOCK);
        const rest q = {c, ldc, a + k, ld, b + k * 32, n};
        if (n == 1) rest_blocks(q, here, add, 1);
        else rest_blocks(q, here, add, REST);
    }
}

static void conv_rest(float *c, int64_t ldc, const exact_window *w, int64_t k0,
                      const float *b, int64_t lanes, int64_t kc, bool add)
{
    for (int64_t end = k0 + kc; k0 < end; add = true) {
        const rest q = {.c = c, .ldc = ldc, .lanes = lanes};
        const int64_t left = TT_DOT_BLOCK - k0 % TT_DOT_BLOCK;
        const int64_t stop = exact_least(end, k0 + left);
        __m512 s[REST];
        for (int j = 0; j < REST; j++) s[j] = _mm512_setzero_ps();
        for (int64_t n; k0 < stop; k0 += n, b += n * 32) {
            int64_t k = 0;
            n = stop - k0;
            const float *a = exact_piece(w, k0, &n);
            for (; k + 16 <= n; k += 16)
                rest_step(s, a + k, w->ld, b + k * 32, PANEL, REST);
            if (k < n) rest_last(s, a + k, w->ld, b + k * 32, n - k, REST);
        }
        rest_end(&q, s, 0, add, REST);
    }
}

static void avx512_pack(float *panel, const float *src, int64_t ld, int64_t kc)
{
    int64_t k = 0;
    for (; k + 16 <= kc; k += 16) {
        for (int j = 0; j < 32 && k + 32 < kc; j++) /* too many to foresee */
            __builtin_prefetch(src + j * ld + k + 32, 0, 2);
        for (int j = 0; j < 32; j += 16)
            transpose16(panel + k * 32 + j, 32, src + j * ld + k, ld);
    }
    pack_columns(panel, src, ld, k, kc, 32);
}

/* Eight broadcast rows against 48 lanes, or 32 where no other is live (the sums
 * of the others are 0); `at(r)` is the scalar of row r. The rows lie in `count`
 * times 8 floats, and after them are those of the next tile (of a block's last
 * tile: of the next block), which are asked for: they come from far, and CPUs
 * that foresee stop at the end of a page. The products join the sums xr, yr,
 * zr, which were 0 or, where `from` is given, what lies there. */
#define SUMS_8x48(lanes, count, at, rows, live)                                \
    if ((live) > 32)                                                           \
        STEPS_8x48(lanes, count, at, rows, STEP)                               \
    else                                                                       \
        STEPS_8x48(lanes, count, at, rows, STEP_32)
#define STEPS_8x48(lanes, count, at, rows, step)                               \
    for (int64_t k = 0; k < (count); k++) {                                    \
        __m512 b0 = _mm512_loadu_ps((lanes) + k * 48);                         \
        __m512 b1 = _mm512_loadu_ps((lanes) + k * 48 + 16);                    \
        __m512 b2 = _mm512_loadu_ps((lanes) + k * 48 + 32);                    \
        prefetch_at(rows, 32 * ((count) + k));                                 \
        (void)b2; /* STEP_32 does without */                                   \
        EIGHT(step, at)                                                        \
    }
#define EIGHT(X, y)                                                            \
    X(0, y) X(1, y) X(2, y) X(3, y) X(4, y) X(5, y) X(6, y) X(7, y)
#define DECLARE(r, at)                                                         \
    __m512 x##r = _mm512_setzero_ps(), y##r = x##r, z##r = x##r;
#define BEGUN(r, from, i)                                                      \
    ((from) ? _mm512_loadu_ps((from) + r * 48 + i) : _mm512_setzero_ps())
#define GO_ON(r, from)                                                         \
    __m512 x##r = BEGUN(r, from, 0), y##r = BEGUN(r, from, 16),                \
           z##r = BEGUN(r, from, 32);
#define STEP_32(r, at)                                                         \
    {                                                                          \
        __m512 v = _mm512_set1_ps(at(r));                                      \
        x##r = _mm512_fmadd_ps(v, b0, x##r);                                   \
        y##r = _mm512_fmadd_ps(v, b1, y##r);                                   \
    }
#define STEP(r, at)                                                            \
    {                                                                          \
        __m512 v = _mm512_set1_ps(at(r));                                      \
        x##r = _mm512_fmadd_ps(v, b0, x##r);                                   \
        y##r = _mm512_fmadd_ps(v, b1, y##r);                                   \
        z##r = _mm512_fmadd_ps(v, b2, z##r);                                   \
    }
#define STORE(r, out)                                                          \
    _mm512_storeu_ps((out) + r * 48, x##r);                                    \
    _mm512_storeu_ps((out) + r * 48 + 16, y##r);                               \
    _mm512_storeu_ps((out) + r * 48 + 32, z##r);

static void avx512_score_tile(float *s, const float *key, const float *q,
                              int64_t D, int64_t live)
{
#define KEY(r) key[r * D + k]
    EIGHT(DECLARE, 0)
    SUMS_8x48(q, D, KEY, key, live)
    EIGHT(STORE, s)
}

INLINE void lift(float *top, __m512 a, __m512 b, __m512 c, __m512 d)
{
    const __m512 most = _mm512_max_ps(_mm512_max_ps(a, b), _mm512_max_ps(c, d));
    _mm512_storeu_ps(top, _mm512_max_ps(_mm512_loadu_ps(top), most));
}

static void score_top(float *s, const float *key, const float *q, int64_t D,
                      int64_t live, float *top)
{
#define RAISE(at, v)                                                           \
    lift(top + (at), _mm512_max_ps(v##0, v##1), _mm512_max_ps(v##2, v##3),     \
         _mm512_max_ps(v##4, v##5), _mm512_max_ps(v##6, v##7));
    EIGHT(DECLARE, 0)
    SUMS_8x48(q, D, KEY, key, live)
    EIGHT(STORE, s)
    RAISE(0, x) RAISE(16, y) RAISE(32, z)
}

static void avx512_value_tile(float *o, const float *begun, const float *part,
                              const float *v8, const float *p, int64_t n,
                              int64_t live, const float *alpha)
{
#define VALUE(r) v8[k * 8 + r]
#define GIVE(r, at)                                                            \
    JOIN_ROW(r, 0, x##r) JOIN_ROW(r, 16, y##r) JOIN_ROW(r, 32, z##r)
    EIGHT(GO_ON, begun)
    SUMS_8x48(p, n, VALUE, v8, live)
    EIGHT(GIVE, 0)
}

/* 8 x 3 accumulators as in the attention tile, nothing loaded. */
static double avx512_fma_loop(int64_t n)
{
#define START(r, at)                                                           \
    __m512 x##r = _mm512_set1_ps(r), y##r = _mm512_set1_ps(r + 0.25f),         \
           z##r = _mm512_set1_ps(r + 0.5f);
#define JOIN(r, at) x##r = _mm512_fmadd_ps(x##r, y##r, z##r);
#define SAME(r) 0.999f
    volatile float seed = 0.001f;
    __m512 b0 = _mm512_set1_ps(seed), b1 = b0, b2 = b0;
    EIGHT(START, 0)
    for (int64_t k = 0; k < n; k++) {
        EIGHT(STEP, SAME)
    }
    EIGHT(JOIN, 0)
    float out[16];
#define KEEP(r, at) _mm512_storeu_ps(out, x##r); seed = out[0];
    EIGHT(KEEP, 0)
    return 2.0 * 8 * 3 * 16 * (double)n;
}

const tt_kernels tt_kernels_avx512 = {
    .name = "avx512", .level = EXACT_AVX512,
    .mr = 14, .nr = 32, .linear_tile = linear_tile, .pack = avx512_pack,
    .few = 24, .linear_few = linear_few, .half = 16, .linear_half = linear_half,
    .transposed_tile = transposed_tile, .transposed_half = transposed_half,
    .transposed_far = transposed_far, .transposed_end = transposed_end,
    .transposed_rows = avx512_transposed_rows, .rest = REST,
        .linear_rest = linear_rest,
    .linear_half16 = linear_half16, .conv_tile = avx512_conv_tile,
    .conv_rest = conv_rest,
    .am = 8, .aq = AQ, .score_tile = avx512_score_tile,
        .value_tile = avx512_value_tile,
    .score_top = score_top,
    .fma_loop = avx512_fma_loop,
    KERNELS_COMMON,
};

#else
typedef int tt_no_exact_avx512;
#endif
