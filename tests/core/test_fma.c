/* test_fma.c: fmaf and fma of src/core/fma.c, and what is refused at start.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers, then random and adversarial inputs against the instruction
 * where this CPU has it (20 million of each with TETHER_FULL=1; 2^20
 * otherwise). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/fma.h"
#include "tests/harness.h"

static uint64_t state = 88172645463325252u;

static uint64_t bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1du;
}

static float f32_of(uint64_t u)
{
    const uint32_t low = (uint32_t)(u >> 32);
    float x;
    memcpy(&x, &low, 4);
    return x;
}

static double f64_of(uint64_t u)
{
    double x;
    memcpy(&x, &u, 8);
    return x;
}

static bool same_f32(float a, float b)
{
    return !memcmp(&a, &b, sizeof a) || (isnan(a) && isnan(b));
}

static bool same_f64(double a, double b)
{
    return !memcmp(&a, &b, sizeof a) || (isnan(a) && isnan(b));
}

/* ---- known answers ------------------------------------------------------- */

static void test_f32(void)
{
    static const float row[][4] = { /* a, b, c, a b + c */
        {0x1.001p0f, 0x1.001p0f, 0x1p-80f, 0x1.002002p0f},
        {-0x1.001p0f, 0x1.001p0f, -0x1p-80f, -0x1.002002p0f},
        {0x1.001p0f, 0x1.001p0f, -0x1p-80f, 0x1.002p0f},
        {0x1p-75f, 0x1p-75f, 0, 0},              /* half of the smallest   */
        {0x1p-75f, 0x1p-75f, 0x1p-149f, 0x1p-148f},
        {0x1p-75f, 0x1.fffffep-76f, 0, 0},       /* just below the half    */
        {0x1.8p-75f, 0x1p-75f, 0, 0x1p-149f},
        {0x1p-75f, 0x1p-75f, -0x1p-126f, -0x1p-126f},
        {0x1.000002p-75f, 0x1p-75f, -0x1p-126f, -0x1.fffffcp-127f},
        {0x1.fffffep127f, 2, -0x1.fffffep127f, 0x1.fffffep127f},
        {0x1.fffffep127f, 1, 0x1p103f, INFINITY},
        {0x1.fffffep127f, 1, 0x1.fffffep102f, 0x1.fffffep127f},
        {1, 1, -1, 0}, {-0.0f, 1, -0.0f, -0.0f}, {-0.0f, 1, 0, 0},
        {INFINITY, 1, -INFINITY, NAN}, {INFINITY, 0, 1, NAN},
        {0x1p127f, -2, INFINITY, INFINITY}, {1, 1, NAN, NAN},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const float y = fma_soft_f32(row[i][0], row[i][1], row[i][2]);
        const float z = fma_f32(row[i][0], row[i][1], row[i][2]);
        expect(same_f32(y, row[i][3]) && same_f32(z, row[i][3]),
               "%a * %a + %a: %a and %a, not %a", (double)row[i][0],
               (double)row[i][1], (double)row[i][2], (double)y, (double)z,
               (double)row[i][3]);
    }
}

static void test_f64(void)
{
    static const double row[][4] = {
        {0x1.0000004p0, 0x1.0000002p0, 0x1p-120, 0x1.0000006000001p0},
        {0x1.0000004p0, 0x1.0000002p0, -0x1p-120, 0x1.0000006p0},
        {0x1p-537, 0x1p-538, 0, 0},
        {0x1p-537, 0x1.0000000000001p-538, 0, 0x1p-1074},
        {0x1p-537, 0x1p-538, 0x1p-1074, 0x1p-1073},
        {0x1p-537, 0x1p-538, -0x1p-1022, -0x1p-1022},
        {0x1.8p-537, 0x1p-538, -0x1p-1022, -0x1.ffffffffffffep-1023},
        {0x1p-1073, 0x1p1000, 0x1p-80, 0x1.02p-73},
        {0x1.fffffffffffffp1023, 2, -0x1.fffffffffffffp1023,
         0x1.fffffffffffffp1023},
        {0x1.fffffffffffffp1023, 1, 0x1p970, (double)INFINITY},
        {0x1.fffffffffffffp1023, 1, 0x1.fffffffffffffp969,
         0x1.fffffffffffffp1023},
        {0x1p-1074, 0x1p-1074, 1, 1}, {1, 0x1p-1074, 0x1p1000, 0x1p1000},
        {0x1p-1074, -0x1p-1074, 0x1p-1022, 0x1p-1022},
        {1, 1, -1, 0}, {-0.0, 1, -0.0, -0.0}, {-0.0, 1, 0, 0},
        {(double)INFINITY, 1, -(double)INFINITY, (double)NAN},
        {0x1p1023, -2, (double)INFINITY, (double)INFINITY},
        {1, 1, (double)NAN, (double)NAN},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const double y = fma_soft_f64(row[i][0], row[i][1], row[i][2]);
        const double z = fma_f64(row[i][0], row[i][1], row[i][2]);
        expect(same_f64(y, row[i][3]) && same_f64(z, row[i][3]),
               "%a * %a + %a: %a and %a, not %a", row[i][0], row[i][1],
               row[i][2], y, z, row[i][3]);
    }
}

/* ---- against the instruction --------------------------------------------- */

/* Three numbers: anything, a sum that nearly cancels, one next to the middle
 * between two numbers, one far below the other, subnormal and huge results. */
static void any_f32(int kind, float v[3])
{
    const uint64_t few = 0xfffff000ull << 32;
    const int e = (int)(bits() % 40) - 20;
    v[0] = f32_of(bits());
    v[1] = f32_of(bits());
    v[2] = f32_of(bits());
    if (kind) {
        v[0] = ldexpf(1 + (float)(bits() >> 41) * 0x1p-23f, e);
        v[1] = ldexpf(-1 - (float)(bits() >> 41) * 0x1p-23f, -e / 2);
    }
    if (kind == 1) v[2] = -v[0] * v[1];
    if (kind == 2) {
        v[0] = f32_of((bits() & few & 0x807fffffull << 32) | 0x3f8ull << 52);
        v[1] = f32_of((bits() & few & 0x807fffffull << 32) | 0x3f8ull << 52);
        v[2] = ldexpf(bits() % 2 ? 1 : -1, -(int)(bits() % 120));
    }
    if (kind == 3) v[2] = ldexpf(v[0] * v[1], (int)(bits() % 60) - 30);
    if (kind == 4) {
        v[0] = ldexpf(v[0], -70 - (int)(bits() % 12));
        v[1] = ldexpf(v[1], -64);
        v[2] = f32_of(bits() & 0x80ffffffull << 32);
    }
    if (kind == 5) {
        v[0] = ldexpf(v[0], 64);
        v[1] = ldexpf(v[1], 63);
        v[2] = ldexpf(v[2] < 0 ? -1.0f : 1.0f, 104);
    }
}

static void any_f64(int kind, double v[3])
{
    const int e = (int)(bits() % 200) - 100;
    for (int i = 0; i < 3; i++) v[i] = f64_of(bits());
    if (kind) {
        v[0] = ldexp(1 + (double)(bits() >> 12) * 0x1p-52, e);
        v[1] = ldexp(-1 - (double)(bits() >> 12) * 0x1p-52, -e / 2);
    }
    if (kind == 1) v[2] = -v[0] * v[1];
    if (kind == 2) {
        v[0] = 1 + (double)(bits() >> 38) * 0x1p-26;
        v[1] = 1 + (double)(bits() >> 37) * 0x1p-27;
        v[2] = ldexp(bits() % 2 ? 1 : -1, -(int)(bits() % 240));
    }
    if (kind == 3) v[2] = ldexp(v[0] * v[1], (int)(bits() % 240) - 120);
    if (kind == 4) {
        v[0] = ldexp(v[0], -530 - (int)(bits() % 70));
        v[1] = ldexp(v[1], -500);
        v[2] = bits() % 2 ? f64_of(bits() & 0x801fffffffffffffu)
                          : -(v[0] * v[1]);
    }
    if (kind == 5) {
        v[0] = ldexp(v[0], 512);
        v[1] = ldexp(v[1], 511);
        v[2] = ldexp(v[2] < 0 ? -1.0 : 1.0, 970);
    }
}

#if defined(__x86_64__)
#define HAVE_INSTRUCTION __builtin_cpu_supports("fma")
#else
#define HAVE_INSTRUCTION (fma_f32(1, 1, 1) == 2)
#endif

static void test_many(void)
{
    const int64_t n = getenv("TETHER_FULL") ? 20000000 : 1 << 20;
    int64_t bad = 0;
    for (int64_t i = 0; HAVE_INSTRUCTION && i < n; i++) {
        float x[3];
        double y[3];
        any_f32((int)(i % 6), x);
        any_f64((int)(i % 6), y);
        bad += !same_f32(fma_soft_f32(x[0], x[1], x[2]),
                         fma_call_f32(x[0], x[1], x[2]));
        bad += !same_f64(fma_soft_f64(y[0], y[1], y[2]),
                         fma_call_f64(y[0], y[1], y[2]));
    }
    expect(!bad, "%lld results are not those of the instruction",
           (long long)bad);
}

/* ---- what is refused ----------------------------------------------------- */

static float twice_f32(float a, float b, float c)
{
    return (float)((double)a * (double)b + (double)c);
}

static float product_f32(float a, float b, float c)
{
    volatile float p = a * b;
    return p + c;
}

static double product_f64(double a, double b, double c)
{
    volatile double p = a * b;
    return p + c;
}

static float near_f32(float x)
{
    return (float)((double)sqrtf(x) * 1.0000001);
}

static double near_f64(double x)
{
    return sqrt(x) * (1 + 0x1p-52);
}

static double up(double x)
{
    return floor(x + 0.5);
}

static void refused(const char *name, fma_library l)
{
    const char *wrong = fma_wrong(&l);
    expect(wrong && !strcmp(wrong, name), "%s is refused, not %s", name,
           wrong ? wrong : "nothing");
}

static void test_refused(void)
{
    fma_library l = fma_here;
    expect(!fma_wrong(&l), "this build is right: %s", fma_wrong(&l));
    l.fma_f32 = fma_soft_f32;
    l.fma_f64 = fma_soft_f64;
    expect(!fma_wrong(&l), "so is the one by integers: %s", fma_wrong(&l));
    l.fma_f32 = twice_f32;
    refused("fmaf", l);
    l.fma_f32 = product_f32;
    refused("fmaf", l);
    l.fma_f32 = fma_here.fma_f32;
    l.fma_f64 = product_f64;
    refused("fma", l);
    l = fma_here;
    l.sqrt_f32 = near_f32;
    refused("sqrtf", l);
    l = fma_here;
    l.sqrt_f64 = near_f64;
    refused("sqrt", l);
    l = fma_here;
    l.rint_f64 = up;
    refused("rint", l);
}

int main(void)
{
    test_begin("core/fma");
    test_f32();
    test_f64();
    test_many();
    test_refused();
    return test_end();
}
