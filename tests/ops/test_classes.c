/* test_classes.c: the table of classes, and the chain of each.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every class answers to its name and to the one it is saved under. Its chain
 * goes on from any c: from +0 it is tt_linear without a bias, and two parts of
 * whole blocks are the whole. */
#include <stdio.h>
#include <string.h>

#include "ops/golden/golden.h"
#include "tests/harness.h"

static tt_ctx *ctx;

static void test_names(void)
{
    tt_class c;
    char all[200] = "";
    for (int i = 0; tt_class_at(i); i++) {
        const tt_class_info *t = tt_class_at(i);
        expect(tt_class_find(&c, t->name) && (int)c == i, "%s", t->name);
        expect(tt_class_find(&c, t->saved) && (int)c == i, "%s", t->saved);
        expect(!strcmp(tt_class_name(c), t->name)
               && !strcmp(tt_class_saved(c), t->saved)
               && *t->summary && *t->machines, "%s in words", t->name);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s",
                 i ? ", " : "", t->name);
    }
    expect(!tt_class_at(TT_CLASS_COUNT) && !tt_class_at(-1), "ends");
    expect(!strcmp(all, tt_class_names()), "%s", tt_class_names());
    expect(!tt_class_find(&c, "f16") && !tt_class_find(&c, ""), "no class");
    /* saved runs and manifests of before */
    expect(tt_class_find(&c, "bf16") && c == TT_CLASS_AMX
           && !strcmp(tt_class_saved(c), "bf16"), "bf16 is amx");
}

/* What a table says of its classes. */
static void test_tables(void)
{
    for (int i = 0; tt_ops_at(i); i++)
        for (int c = 0; c < TT_CLASS_COUNT; c++) {
            const tt_ops *f = tt_ops_at(i), *t = tt_ops_class(f, (tt_class)c);
            const bool one = sizeof(tt_real) == 8 || !strcmp(f->name, "blas");
            const bool cpu = c == TT_CLASS_AMX || c == TT_CLASS_VDP;
            const bool gpu = !strcmp(f->name, "cuda");
            expect((t != NULL) == (!c || !(one || (gpu && cpu))), "%s %s",
                   f->name,
                   tt_class_name((tt_class)c));
            expect(!t || ((int)t->cls == c && !strcmp(t->name, f->name)
                          && tt_ops_class(t, TT_CLASS_F32) == f),
                   "%s %s", f->name, tt_class_name((tt_class)c));
        }
}

static uint32_t seed = 1;

static tt_real number(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (tt_real)((int32_t)seed >> 8) / 0x1p23f;
}

static void test_chain(tt_class cls)
{
    enum { MOST = 1100 };
    const golden_class *g = golden_class_of(cls);
    const tt_ops *ops = tt_ops_class(tt_ops_find("golden"), cls);
    tt_real a[MOST], b[MOST], y;
    if (!g || !ops) return;
    for (int k = 0; k < MOST; k++) {
        a[k] = g->factor(number());
        b[k] = g->factor(number());
        expect(g->factor(a[k]) == a[k], "a factor stays");
    }
    ctx->ops = ops;
    for (int64_t n = 1; n < MOST; n = n * 3 / 2 + 1) {
        tt_tensor w = tt_tensor_make(b, sizeof(tt_real) == 8 ? TT_F64 : TT_F32,
                                     2, (int64_t[]){1, n});
        const tt_real whole = g->chain(0, a, 1, b, n);
        tt_linear(ctx, &y, a, 1, &w, NULL);
        expect(y == whole, "%s, %lld products: %a, linear %a",
               tt_class_name(cls), (long long)n, (double)whole, (double)y);
        for (int64_t k = g->block; k < n; k += 3 * g->block) {
            const tt_real half = g->chain(0, a, 1, b, k);
            y = g->chain(half, a + k, 1, b + k, n - k);
            expect(y == whole, "%s, %lld + %lld products", tt_class_name(cls),
                   (long long)k, (long long)(n - k));
        }
    }
    expect(g->chain(3, a, 1, b, 0) == 3, "no products");
    expect(g->chain(0, a, 2, b, MOST / 2) != g->chain(0, a, 1, b, MOST / 2),
           "the step between factors");
}

int main(void)
{
    ctx = test_begin("ops/classes");
    test_names();
    test_tables();
    for (int c = 0; c < TT_CLASS_COUNT; c++) test_chain((tt_class)c);
    expect_ok(ctx->status, "no failure");
    return test_end();
}
