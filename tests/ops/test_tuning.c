/* test_tuning.c: what may be tuned changes no bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every field of ops/exact/tuning.h is taken to its ends and to an odd number,
 * in every class: all operators that read one give the bits of golden. Field by
 * field at the best level, next to the others of two rows (one turns the
 * weights of so few rows, one does not), all at once at every level and with 1
 * and 3 threads, for the drivers are the same at all of them. And what is part
 * of the bits is what it was. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/exact/tuning.h"
#include "ops/tensor_core.h"
#include "tests/harness.h"
#include "ops/backend.h"

#ifndef TT_REAL_DOUBLE

static tt_ctx *ctx;

/* Several panels, slices, blocks of keys and of windows, and ends of each. Of
 * 89 and 88 rows the last panel is one too wide for a narrow tile of AVX-512,
 * and just fits it; of 84 it has 16 lanes and four rows that go alone, of 81
 * one. Of 89, 88, 84, 81 and 77 rows that are broadcast (transposed_rows) a
 * last tile of 14 has 5, 4, all, 11 and just half; of 94 outputs a last one has
 * 30 of 32, few enough lanes in vain for weights to be transposed. Rows of
 * LINES outputs begin where cache lines do, as those that are far must. */
enum { ROWS = 89, OUT = 94, LINES = 64, IN = 1100,
       WHOLE = 1056, /* in groups of bf16 */
       T = 101, N = 530, HEADS = 3, D = 16,
       SIDE = 11, CIN = 24, COUT = 37, WINDOW = 27 * CIN,
       GATES = 40000, WIDE = 200 };

typedef struct data {
    float x[ROWS * IN], w[OUT * IN], b[OUT];
    uint16_t narrow[OUT * IN];
    float q[T * HEADS * D], k[N * HEADS * D], v[N * HEADS * D];
    float frame[3][SIDE * SIDE * CIN], kernel[COUT * WINDOW];
    float gates[GATES], table[50 * WIDE];
} data;

/* With room after each product, which no one writes to. */
enum { BEHIND = 64 };
typedef struct results {
    _Alignas(64) float lines[(ROWS + BEHIND) * LINES];
    float linear[7][(ROWS + BEHIND) * OUT];
    float attention[(T + BEHIND) * HEADS * D];
    float conv[2][(SIDE + BEHIND) * SIDE * COUT], gates[4][GATES];
    double mean[WIDE], moment[WIDE];
} results;

static data in;

static void fill(void *to, size_t size, uint32_t s)
{
    float *x = to;
    for (size_t i = 0; i < size / sizeof *x; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)s * 0x1p-31f;
    }
}

static void products(results *r)
{
    const tt_tensor w = tt_tensor_make(in.w, TT_F32, 2, (int64_t[]){OUT, IN});
    const tt_tensor b = tt_tensor_make(in.narrow, TT_BF16, 2,
                                       (int64_t[]){OUT, IN});
    tt_linear(ctx, r->linear[0], in.x, ROWS, &w, in.b);
    tt_linear(ctx, r->linear[1], in.x, ROWS - 1, &b, NULL);
    tt_linear(ctx, r->linear[2], in.x, ROWS - 5, &w, in.b);
    tt_linear(ctx, r->linear[3], in.x, ROWS - 8, &w, NULL);
    tt_linear(ctx, r->linear[6], in.x, ROWS - 12, &w, in.b);
    const tt_tensor lines = tt_tensor_make(in.w, TT_F32, 2,
                                           (int64_t[]){LINES, IN});
    tt_linear(ctx, r->lines, in.x, ROWS, &lines, in.b);
    const int64_t whole[] = {OUT, WHOLE};
    const tt_tensor v = tt_tensor_make(in.w, TT_F32, 2, whole);
    const tt_tensor h = tt_tensor_make(in.narrow, TT_F16, 2, whole);
    tt_linear(ctx, r->linear[4], in.x, ROWS, &v, in.b);
    tt_linear(ctx, r->linear[5], in.x, ROWS, &h, NULL);
    tt_attention(ctx, &(tt_attention_args){
        .o = r->attention, .q = in.q, .k = in.k, .v = in.v, .T = T, .N = N,
        .H = HEADS, .D = D, .q_stride = HEADS * D, .kv_stride = HEADS * D,
        .scale = 1 / sqrtf(D)});
}

/* In float32, and in the class where that has one. */
static void conv(float *y, bool by_class)
{
    const tt_tensor w = tt_tensor_make(
        in.kernel, TT_F32, 5, (int64_t[]){COUT, 3, 3, 3, CIN});
    tt_conv(ctx, &(tt_conv_args){
        .y = y, .frame = (const float *[]){in.frame[0], in.frame[1],
                                           in.frame[2]},
        .w = &w, .b = in.b, .Hi = SIDE, .Wi = SIDE, .Cin = CIN, .Ho = SIDE,
        .Wo = SIDE, .Cout = COUT, .kt = 3, .kh = 3, .kw = 3, .stride = 1,
        .pad_top = 1, .pad_left = 1, .up = 1, .by_class = by_class});
}

static void others(results *r)
{
    conv(r->conv[0], false);
    if (ctx->ops->by_class) conv(r->conv[1], true);
    for (int i = 0; i < 4; i++)
        memcpy(r->gates[i], in.gates, sizeof in.gates);
    tt_gelu_tanh(ctx, r->gates[0], GATES);
    tt_silu(ctx, r->gates[1], GATES);
    tt_add(ctx, r->gates[2], in.gates, GATES);
    tt_mul(ctx, r->gates[3], in.gates, GATES);
    tt_col_mean(ctx, r->mean, in.table, 50, WIDE);
    tt_col_moment(ctx, r->moment, in.table, r->mean, 50, WIDE);
}

static void run(const tt_ops *table, tt_class cls, results *r)
{
    memset(r, 0x5a, sizeof *r);
    ctx->ops = tt_ops_class(table, cls);
    products(r);
    others(r);
}

static void compare(const char *what, long long value, tt_class cls,
                    const results *want)
{
    static results got;
    run(tt_ops_find("exact"), cls, &got);
    expect(!memcmp(&got, want, sizeof got), "%s %s = %lld", tt_class_name(cls),
           what, value);
}

/* The row of now at every level, with and without threads. */
static void compare_levels(const char *what, int64_t value, tt_class cls,
                           const results *want)
{
    static const char *const levels[] = {"generic", "avx2", "avx512",
                                         "avx512bf16", "amx-model"};
    const int n = cls == TT_CLASS_AMX ? 5 : cls == TT_CLASS_VDP ? 4 : 3;
    const int threads = ctx->nthreads;
    char name[80];
    for (int l = 0; l < n; l++)
        for (int t = 1; t <= 3; t += 2) {
            setenv("TT_CPU", levels[l], 1);
            exact_level_reread();
            ctx->nthreads = t;
            snprintf(name, sizeof name, "%s, %d threads, %s", levels[l], t,
                     what);
            compare(name, value, cls, want);
        }
    unsetenv("TT_CPU");
    exact_level_reread();
    ctx->nthreads = threads;
}

static int64_t *field(exact_tuning *row, int i)
{
#define OFFSET(name, least, most) offsetof(exact_tuning, name),
    static const size_t at[] = {EXACT_TUNING(OFFSET)};
    return (int64_t *)(void *)((char *)row + at[i]);
}

static void one_class(tt_class cls)
{
#define ENDS(name, least, most) {#name, {least, 3, most}},
    static const struct {
        const char *name;
        int64_t value[3];
    } fields[] = {EXACT_TUNING(ENDS)};
    enum { FIELDS = sizeof fields / sizeof fields[0] };
    static results want;
    run(tt_ops_find("golden"), cls, &want);
    compare_levels("the table", 0, cls, &want);
    for (int e = 0; e < 3; e++) {
        exact_tuning all = {0};
        for (int i = 0; i < FIELDS; i++) {
            *field(&all, i) = fields[i].value[e];
            for (int l = EXACT_AVX2; l <= EXACT_AVX512; l++) {
                exact_tuning row = *exact_tuned((exact_level)l);
                *field(&row, i) = fields[i].value[e];
                exact_tune(&row);
                compare(fields[i].name, (long long)fields[i].value[e], cls,
                        &want);
                exact_tune(NULL);
            }
        }
        exact_tune(&all);
        compare_levels("every field, value", e, cls, &want);
        exact_tune(NULL);
    }
}

/* A field that EXACT_TUNING forgets would not be taken to its ends. */
static void test_fields(void)
{
#define COUNT(name, least, most) +1
    expect(sizeof(exact_tuning) == (0 EXACT_TUNING(COUNT)) * sizeof(int64_t),
           "EXACT_TUNING names every field");
    for (int l = 0; l < EXACT_BEST; l++) {
        const exact_tuning *t = exact_tuned((exact_level)l);
#define WITHIN(name, least, most)                                              \
        expect(t->name >= (least) && t->name <= (most), #name ", level %d", l);
        EXACT_TUNING(WITHIN)
    }
}

/* What is not to be tuned; all backends take it from one header. */
static void test_frozen(void)
{
    const tc_unit sm80 = TC_SM80, sm90 = TC_SM90;
    expect(TT_DOT_BLOCK == 256 && TT_KEY_BLOCK == 512 && TT_LANES == 16,
           "class f32");
    expect(BF16_GROUP == 32, "classes amx and vdp");
    expect(TC_KEY_BLOCK == 128 && sm80.block == 8
           && sm80.bits == 24 && sm90.block == 16 && sm90.bits == 25
           && sm80.least == -132 && sm90.least == -133,
           "classes sm80 and sm90");
}

int main(void)
{
    ctx = test_begin("ops/tuning");
    test_frozen();
    fill(&in, sizeof in, 7);
    for (int i = 0; i < OUT * IN; i++)
        in.narrow[i] = tt_bf16_from_f32(in.w[i]);
    test_fields();
    for (int c = 0; c < TT_CLASS_COUNT; c++)
        if (tt_ops_class(tt_ops_find("exact"), (tt_class)c))
            one_class((tt_class)c);
    return test_end();
}

#else

int main(void)
{
    test_begin("ops/tuning");
    expect(!tt_ops_find("exact"), "a double build has no exact backend");
    return test_end();
}

#endif
