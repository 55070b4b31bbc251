/* test_classes.c: backends that compute a class, checked by their bits, and
 * what is said of those that compute another one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/golden/golden.h"
#include "tests/harness.h"
#include "tests/validate/class_mutants.h"

static tt_ctx *ctx;

#ifndef TT_REAL_DOUBLE

static const tt_arith *bits_of(const char *name)
{
    return tt_arith_bits(tt_arith_find(name));
}

/* The first failure of one operator, "" when none. */
static void check(const tt_ops *ops, const tt_arith *arith, const char *op,
                  char *hint, size_t size)
{
    tt_report *r = NULL;
    int64_t of;
    if (!expect_ok(tt_report_new(ctx, &r, ops->name, arith), "report")) return;
    expect_ok(tt_opcheck(ctx, r, ops, &(tt_opcheck_options){
        .arith = arith, .seed = 5, .rounds = 3, .only = op}), op);
    const tt_verdict *v = tt_report_first(r);
    const int64_t equal = tt_report_equal(r, &of);
    snprintf(hint, size, "%s", v ? v->hint : "");
    expect(of > 0 && (!arith->bits || (equal == of) == !v), "%s: %lld of %lld equal", ops->name,
           (long long)equal, (long long)of);
    if (v && arith->bits) {
        expect(v->bits == TT_BITS_DIFFER && *v->where, "%s: %s at %s",
               ops->name, v->path, v->where);
    }
    tt_report_free(r);
}

/* Every class against itself, golden against exact, and the class that all
 * float backends are of. */
static void test_honest(void)
{
    char hint[192];
    int classes = 0;
    for (int c = 0; tt_class_at(c); c++) {
        const tt_ops *golden = tt_ops_class(tt_ops_find("golden"), (tt_class)c);
        const tt_arith *a = bits_of(tt_class_name((tt_class)c));
        if (!expect(golden && a && a->cls == (tt_class)c, "class %d", c))
            continue;
        check(golden, a, "linear", hint, sizeof hint);
        expect(!*hint, "%s: %s", a->name, hint);
        check(golden, a, "attention", hint, sizeof hint);
        expect(!*hint, "%s: %s", a->name, hint);
        classes++;
    }
    expect(classes >= 3, "%d classes", classes);
    expect(!bits_of("tf32") && !bits_of("bf16"), "no class has these names");
    expect(strstr(tt_arith_names(), "bf16-stored, amx") != NULL, "names: %s",
           tt_arith_names());
}

/* Every class where another one is declared. */
static void test_others(void)
{
    char hint[192], wanted[64];
    for (int c = 0; tt_class_at(c); c++)
        for (int d = 0; tt_class_at(d); d++) {
            static const char *const op[] = {"linear", "attention"};
            tt_ops t = *tt_ops_class(tt_ops_default(), (tt_class)c);
            for (int k = 0; c != d && k < 2; k++) {
                check(&t, bits_of(tt_class_name((tt_class)d)), op[k], hint,
                      sizeof hint);
                snprintf(wanted, sizeof wanted, "it computes class %s",
                         tt_class_name((tt_class)c));
                expect(strstr(hint, wanted) != NULL, "%s, %s: %s",
                       op[k], wanted, hint);
            }
        }
}

static void test_mutants(void)
{
    char hint[192];
    for (int i = 0; i < CLASS_MUTANTS; i++) {
        const class_mutant *m = &class_mutants[i];
        tt_ops t;
        if (!class_mutant_table(&t, m)) continue;
        check(&t, bits_of(m->cls), "linear", hint, sizeof hint);
        expect(strstr(hint, m->hint) != NULL, "%s: %s", m->name, hint);
    }
}

/* ---- attention ----------------------------------------------------------- */

/* Products that are summed together, parts of a sum, sums in f16. */
typedef struct chain_fault {
    int block, parts;
    bool f16;
} chain_fault;
static chain_fault fault;
static const golden_class *right;
static golden_class faulty;

static float faulty_part(float c, const float *a, int64_t step, const float *b,
                         int64_t n)
{
    for (int64_t k = 0; k < n; k += fault.block) {
        c = right->chain(c, a + k * step, step, b + k,
                         n - k < fault.block ? n - k : fault.block);
        if (fault.f16) c = tt_format_round(TT_FMT_F16, c);
    }
    return c;
}

static float faulty_chain(float c, const float *a, int64_t step, const float *b,
                          int64_t n)
{
    if (!fault.parts) return faulty_part(c, a, step, b, n);
    const int64_t part = ((n + fault.parts - 1) / fault.parts + 15) / 16 * 16;
    for (int64_t k = 0; k < n; k += part) {
        const float s = faulty_part(k ? 0 : c, a + k * step, step, b + k,
                                    n - k < part ? n - k : part);
        c = k ? c + s : s;
    }
    return c;
}

static void faulty_attention(tt_ctx *c, const tt_attention_args *a)
{
    golden_factors_attention(c, a, &faulty);
}

/* Attention of a class with this fault in both of its products. */
static void expect_attention(const char *class, chain_fault f,
                             const char *wanted)
{
    char hint[192];
    tt_class cls;
    if (!tt_class_find(&cls, class)) return;
    tt_ops t = *tt_ops_class(tt_ops_default(), cls);
    right = golden_class_of(cls);
    faulty = *right;
    faulty.chain = faulty_chain;
    fault = f;
    t.attention = faulty_attention;
    check(&t, bits_of(class), "attention", hint, sizeof hint);
    expect(*wanted ? strstr(hint, wanted) != NULL : !*hint, "%s attention, %s: "
           "%s", class, wanted, hint);
}

static void test_attention(void)
{
    expect_attention("sm90", (chain_fault){.block = 16}, "");   /* no fault */
    expect_attention("sm80", (chain_fault){.block = 8}, "");
    expect_attention("vdp", (chain_fault){.block = 2}, "");
    expect_attention("amx", (chain_fault){.block = 32}, "");
    expect_attention("sm90", (chain_fault){.block = 16, .f16 = true},
                     "sums are kept in f16");
    expect_attention("sm80", (chain_fault){.block = 8, .parts = 2},
                     "split-K: sums of 2 parts");
    expect_attention("vdp", (chain_fault){.block = 1},
                     "the even product of a pair comes first");
    expect_attention("amx", (chain_fault){.block = 16},
                     "blocks of 16 products where 32 belong");
}

/* ---- what is no product -------------------------------------------------- */

static void halved_silu(tt_ctx *c, const tt_silu_args *a)
{
    tt_ops_default()->silu(c, a);
    for (int64_t i = 0; i < a->n; i++) a->x[i] *= (tt_real)0.5;
}

static void nudged_silu(tt_ctx *c, const tt_silu_args *a)
{
    tt_ops_default()->silu(c, a);
    for (int64_t i = 0; i < a->n; i++)
        if (i % 7 == 3) a->x[i] *= 1 + FLT_EPSILON;
}

static void test_rest(void)
{
    char hint[192];
    tt_ops t = *tt_ops_class(tt_ops_default(), TT_CLASS_VDP);
    t.silu = halved_silu;
    check(&t, bits_of("vdp"), "silu", hint, sizeof hint);
    expect(strstr(hint, "scaled by 0.5") != NULL, "a fault like any: %s", hint);
    t.silu = nudged_silu;
    check(&t, bits_of("vdp"), "silu", hint, sizeof hint);
    expect(strstr(hint, "units of the last place") != NULL, "last places: %s",
           hint);
    check(&t, tt_arith_find("vdp"), "silu", hint, sizeof hint);
    expect(!*hint, "inside the limits: %s", hint);
    check(&t, bits_of("f32"), "silu", hint, sizeof hint);
    expect(strstr(hint, "units of the last place") != NULL, "f32 as well: %s",
           hint);
}

#endif

int main(void)
{
    ctx = test_begin("validate/classes");
#ifndef TT_REAL_DOUBLE
    test_honest();
    test_others();
    test_mutants();
    test_attention();
    test_rest();
#else
    expect(!tt_arith_bits(tt_arith_find("f32")), "no bits in double");
#endif
    return test_end();
}
