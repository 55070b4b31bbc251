/* fma.c: fmaf and fma without the C library, and whether this build's
 * arithmetic is right.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/fma.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static uint64_t bits_of(double x)
{
    uint64_t u;
    memcpy(&u, &x, 8);
    return u;
}

static double of_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, 8);
    return x;
}

/* ---- float --------------------------------------------------------------- */

/* The product is exact in double. The sum is rounded to odd: where it is not
 * exact and its last bit is 0, it moves to the neighbour on the side of the
 * error, so that rounding it to float is the only rounding that counts
 * (53 >= 24 + 2 bits). */
float fma_soft_f32(float a, float b, float c)
{
    const double p = (double)a * (double)b, z = (double)c, s = p + z;
    const double back = s - p, rest = (p - (s - back)) + (z - back);
    uint64_t u = bits_of(s);
    if (u & 1 || rest == 0 || (u >> 52 & 0x7ff) == 0x7ff) return (float)s;
    return (float)of_bits((rest > 0) == (s > 0) ? u + 1 : u - 1);
}

/* ---- double -------------------------------------------------------------- */

/* (-1)^minus * (high * 2^64 + low) * 2^e */
typedef struct wide {
    uint64_t high, low;
    int e, minus;
} wide;

/* x, finite and not zero: its 53 bits, and the exponent of the last one. */
static uint64_t take_apart(double x, int *e)
{
    const uint64_t u = bits_of(x), m = u & 0xfffffffffffffu;
    const int field = (int)(u >> 52 & 0x7ff);
    if (field) {
        *e = field - 1075;
        return m | 0x10000000000000u;
    }
    const int up = __builtin_clzll(m) - 11;
    *e = -1074 - up;
    return m << up;
}

static wide fma_multiply(uint64_t a, uint64_t b)
{
    const uint64_t al = a & 0xffffffffu, ah = a >> 32;
    const uint64_t bl = b & 0xffffffffu, bh = b >> 32;
    const uint64_t ll = al * bl, lh = al * bh, hl = ah * bl;
    const uint64_t mid = (ll >> 32) + (lh & 0xffffffffu) + (hl & 0xffffffffu);
    return (wide){.high = ah * bh + (lh >> 32) + (hl >> 32) + (mid >> 32),
                  .low = mid << 32 | (ll & 0xffffffffu)};
}

static wide left(wide x, int n)          /* 0 < n < 64 */
{
    x.high = x.high << n | x.low >> (64 - n);
    x.low <<= n;
    x.e -= n;
    return x;
}

/* Bits that fall out on the right stay as one in the last place. */
static wide fma_right(wide x, int n)
{
    x.e += n;
    uint64_t lost = 0;
    if (n >= 128) {
        lost = x.high | x.low;
        x.high = x.low = 0;
    } else if (n >= 64) {
        lost = x.low | (n > 64 ? x.high << (128 - n) : 0);
        x.low = n > 64 ? x.high >> (n - 64) : x.high;
        x.high = 0;
    } else if (n > 0) {
        lost = x.low << (64 - n);
        x.low = x.low >> n | x.high << (64 - n);
        x.high >>= n;
    }
    x.low |= lost != 0;
    return x;
}

/* x + y of one exponent, both below 2^127. */
static wide fma_add(wide x, wide y)
{
    if (x.minus == y.minus) {
        x.low += y.low;
        x.high += y.high + (x.low < y.low);
        return x;
    }
    if (x.high < y.high || (x.high == y.high && x.low < y.low)) {
        const wide more = y;
        y = x;
        x = more;
    }
    x.high -= y.high + (x.low < y.low);
    x.low -= y.low;
    return x;
}

/* To the nearest double, even. */
static double fma_rounded(wide x)
{
    if (!(x.high | x.low)) return 0;
    if (!x.high) {
        x.high = x.low;
        x.low = 0;
        x.e -= 64;
    }
    const int up = __builtin_clzll(x.high);
    if (up) x = left(x, up);
    /* 1.something * 2^top, 64 bits of it and whether there are more */
    const int top = x.e + 127;
    const uint64_t m = x.high | (x.low != 0), sign = (uint64_t)x.minus << 63;
    if (top > 1023) return of_bits(sign | 0x7ff0000000000000u);
    const int drop = top >= -1022 ? 11 : 11 - 1022 - top;
    uint64_t kept = drop < 64 ? m >> drop : 0;
    if (drop <= 64) {
        const uint64_t rest = drop < 64 ? m << (64 - drop) : m;
        const uint64_t half = 0x8000000000000000u;
        kept += rest > half || (rest == half && (kept & 1));
    }
    /* a carry moves on into the exponent, to infinity at the end */
    const uint64_t field = top >= -1022 ? (uint64_t)(top + 1022) : 0;
    return of_bits(sign | ((field << 52) + kept));
}

double fma_soft_f64(double a, double b, double c)
{
    if (!isfinite(a) || !isfinite(b)) return a * b + c;
    if (!isfinite(c)) return c + c;
    if (a == 0 || b == 0) return a * b + c;
    if (c == 0) return a * b;
    int ea, eb, ec;
    const uint64_t ma = take_apart(a, &ea), mb = take_apart(b, &eb);
    const uint64_t mc = take_apart(c, &ec);
    wide p = fma_multiply(ma, mb);           /* below 2^106 */
    p.e = ea + eb;
    p.minus = !signbit(a) != !signbit(b);
    p = left(p, 20);
    wide z = {.high = mc << 9, .e = ec - 73, .minus = signbit(c) != 0};
    if (p.e < z.e) p = fma_right(p, z.e - p.e);
    else z = fma_right(z, p.e - z.e);
    return fma_rounded(fma_add(p, z));
}

/* ---- the instruction, where the CPU has more than the build asks for ----- */

#if defined(__x86_64__) && !defined(FMA_INSTRUCTION)
float fma_call_f32(float a, float b, float c)
{
    if (!__builtin_cpu_supports("fma")) return fma_soft_f32(a, b, c);
    __asm__("vfmadd213ss %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
    return a;
}

double fma_call_f64(double a, double b, double c)
{
    if (!__builtin_cpu_supports("fma")) return fma_soft_f64(a, b, c);
    __asm__("vfmadd213sd %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
    return a;
}
#elif defined(FMA_INSTRUCTION)
float fma_call_f32(float a, float b, float c)
{
    return fma_f32(a, b, c);
}

double fma_call_f64(double a, double b, double c)
{
    return fma_f64(a, b, c);
}
#else
float fma_call_f32(float a, float b, float c)
{
    return fma_soft_f32(a, b, c);
}

double fma_call_f64(double a, double b, double c)
{
    return fma_soft_f64(a, b, c);
}
#endif

/* ---- is it right? -------------------------------------------------------- */

static float own_sqrt_f32(float x)
{
    return sqrtf(x);
}

static double own_sqrt_f64(double x)
{
    return sqrt(x);
}

static double own_rint(double x)
{
    return rint(x);
}

const fma_library fma_here = {
    fma_call_f32, fma_call_f64, own_sqrt_f32, own_sqrt_f64, own_rint,
};

/* Sums that are a hair above, below or at the middle between two numbers:
 * whoever rounds the product, or the sum to more bits first, is wrong. */
static int f32_right(const fma_library *l)
{
    static const float hard[][4] = { /* a, b, c, a b + c */
        {0x1.001p+0f, 0x1.001p+0f, 0x1p-80f, 0x1.002002p+0f},
        {0x1.001p+0f, 0x1.001p+0f, -0x1p-80f, 0x1.002p+0f},
        {0x1.001p+0f, 0x1.001p+0f, 0, 0x1.002p+0f},
        {0x1.001p+0f, 0x1.003p+0f, 0x1p-80f, 0x1.004004p+0f},
        {-0x1.001p+0f, 0x1.001p+0f, 0x1.002p+0f, -0x1p-24f},
        {0x1.fffffep+0f, 0x1.fffffep+0f, -0x1.fffffcp+1f, 0x1p-46f},
        {0x1p-60f, 0x1p-60f, 0x1p+0f, 0x1p+0f},
    };
    int right = 1;
    for (unsigned i = 0; i < sizeof hard / sizeof *hard; i++) {
        volatile float a = hard[i][0], b = hard[i][1], c = hard[i][2];
        volatile float y = l->fma_f32(a, b, c);
        right = right && y == hard[i][3];
    }
    return right;
}

static int f64_right(const fma_library *l)
{
    static const double hard[][4] = {
        {0x1.0000004p+0, 0x1.0000002p+0, 0x1p-120, 0x1.0000006000001p+0},
        {0x1.0000004p+0, 0x1.0000002p+0, -0x1p-120, 0x1.0000006p+0},
        {0x1.0000004p+0, 0x1.0000002p+0, 0, 0x1.0000006p+0},
        {0x1.0000004p+0, 0x1.0000004p+0, -0x1.0000008p+0, 0x1p-52},
        {0x1.00000008p+0, -0x1.00000008p+0, 0x1.0000001p+0, -0x1p-58},
        {0x1.fffffffffffffp+0, 0x1.fffffffffffffp+0, -0x1.ffffffffffffep+1,
         0x1p-104},
    };
    int right = 1;
    for (unsigned i = 0; i < sizeof hard / sizeof *hard; i++) {
        volatile double a = hard[i][0], b = hard[i][1], c = hard[i][2];
        volatile double y = l->fma_f64(a, b, c);
        right = right && y == hard[i][3];
    }
    return right;
}

const char *fma_wrong(const fma_library *l)
{
    volatile float below = 0x1.fffffep-1f, above = 0x1.000002p+0f;
    volatile double under = 0x1.fffffffffffffp-1, over = 0x1.0000000000001p+0;
    volatile double ties[] = {0.5, 1.5, 2.5, -2.5, 0x1.fffffffffffffp-2};
    static const double even[] = {0, 2, 2, -2, 0};
    if (!f32_right(l)) return "fmaf";
    if (!f64_right(l)) return "fma";
    if (l->sqrt_f32(below) != 0x1.fffffep-1f || l->sqrt_f32(above) != 1)
        return "sqrtf";
    if (l->sqrt_f64(under) != 0x1.fffffffffffffp-1 || l->sqrt_f64(over) != 1)
        return "sqrt";
    for (int i = 0; i < 5; i++)
        if (l->rint_f64(ties[i]) != even[i]) return "rint";
    return NULL;
}
