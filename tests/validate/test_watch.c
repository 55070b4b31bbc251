/* test_watch.c: what an operator may not do, however right its values are, and
 * calls too large to be checked whole.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness.h"
#include "validate/operators/call.h"

static tt_ctx *ctx;

#ifdef TT_REAL_DOUBLE
int main(void)
{
    ctx = test_begin("validate/watch");
    printf("note: operators are judged in the float build\n");
    expect(tt_arith_find("f32") != NULL, "arithmetics");
    return test_end();
}
#else

/* ---- operator checks ----------------------------------------------------- */

/* What went wrong: a part of it. */
static const char *mischief;
static int64_t calls;

static bool is(const char *what)
{
    return mischief && !strcmp(mischief, what);
}

static void bad_silu(tt_ctx *c, const tt_silu_args *a)
{
    calls++;
    if (is("far after")) a->x[a->n + 1000] = 1;
    if (is("far in front")) a->x[-1000] = 1;
    if (is("aligned only") && (uintptr_t)a->x % 16) a->x[a->n - 1] = 0;
    tt_ops_default()->silu(c, a);
    if (is("second call")) a->x[a->n / 2] += (tt_real)(calls % 2 ? 0 : 1);
    if (is("every fourth call")) a->x[0] *= calls % 4 ? 1 : 2;
    if (is("noise")) a->x[0] *= calls % 2 ? 1 : 1 + 0x1p-23f;
}

static void bad_add(tt_ctx *c, const tt_add_args *a)
{
    tt_ops_default()->add(c, a);
    if (is("writes y")) ((tt_real *)(uintptr_t)a->y)[a->n - 1] = 0;
}

static void bad_linear(tt_ctx *c, const tt_linear_args *a)
{
    tt_ops_default()->linear(c, a);
    if (is("writes b") && a->b) ((tt_real *)(uintptr_t)a->b)[0] += 1;
    if (is("reads on"))
        a->y[a->n * a->w->dim[0] - 1] += 0 * a->x[a->n * a->w->dim[1]];
}

/* Not for x == y: writes before it has read. */
static void bad_rms_norm(tt_ctx *c, const tt_rms_norm_args *a)
{
    if (is("not in place")) a->y[0] = 0;
    tt_ops_default()->rms_norm(c, a);
}

static void bad_blend(tt_ctx *c, const tt_col_blend_args *a)
{
    if (is("aligned only") && (uintptr_t)a->gain % 16) return;
    tt_ops_default()->col_blend(c, a);
}

static tt_ops bad_ops(void)
{
    tt_ops ops = *tt_ops_default();
    ops.silu = bad_silu;
    ops.add = bad_add;
    ops.linear = bad_linear;
    ops.rms_norm = bad_rms_norm;
    ops.col_blend = bad_blend;
    return ops;
}

/* The first failure's hint has `word`; NULL: none. */
static void expect_check(const char *what, const char *op, const char *word,
                         const char *note)
{
    tt_report *r = NULL;
    const tt_ops ops = bad_ops();
    const tt_arith *f32 = tt_arith_find("f32");
    char text[600];
    mischief = what;
    calls = 0;
    tt_report_new(ctx, &r, "test", f32);
    expect_ok(tt_opcheck(ctx, r, &ops, &(tt_opcheck_options){
        .arith = f32, .seed = 3, .rounds = 4, .only = op}), what);
    const tt_verdict *v = tt_report_first(r);
    expect(word ? v && strstr(v->hint, word) : !v, "%s: '%s' expected, not %s "
           "'%s'", what, word ? word : "", v ? v->path : "a pass",
           v ? v->hint : "");
    tmp_path(text, sizeof text, "report.txt");
    expect_ok(tt_report_text(ctx, r, text, false), "text");
    FILE *f = fopen(text, "r");
    char page[2000] = "";
    if (f) page[fread(page, 1, sizeof page - 1, f)] = 0, fclose(f);
    expect((strstr(page, "not reproducible") != NULL) == (note != NULL),
           "%s: notes: %s", what, page);
    remove(text);
    tt_report_free(r);
    mischief = NULL;
}

static void test_operators(void)
{
    expect_check("nothing", "silu", NULL, NULL);
    expect_check("nothing", "linear", NULL, NULL);
    expect_check("far after", "silu", "outside its output", NULL);
    expect_check("far in front", "silu", "outside its output", NULL);
    expect_check("aligned only", "silu", "", NULL);
    expect_check("aligned only", "col_blend", "", NULL);
    expect_check("second call", "silu", "at a second call", "noted");
    expect_check("every fourth call", "silu", "at a second call", "noted");
    expect_check("noise", "silu", NULL, "noted");
    expect_check("writes y", "add", "changed its inputs", NULL);
    expect_check("writes b", "linear", "changed its inputs", NULL);
    expect_check("reads on", "linear", "NaN", NULL);
    expect_check("not in place", "rms_norm", "", NULL);
}

/* ---- large calls --------------------------------------------------------- */

static int64_t bad_row;      /* of the output; -1: none                       */

static void spoil(tt_real *y, int64_t width)
{
    if (bad_row >= 0) y[bad_row * width + width / 3] *= (tt_real)1.001;
}

static void row_linear(tt_ctx *c, const tt_linear_args *a)
{
    tt_ops_default()->linear(c, a);
    spoil(a->y, a->w->dim[0]);
}

static void row_attention(tt_ctx *c, const tt_attention_args *a)
{
    tt_ops_default()->attention(c, a);
    spoil(a->o, a->H * a->D);
}

static void row_conv(tt_ctx *c, const tt_conv_args *a)
{
    tt_ops_default()->conv(c, a);
    spoil(a->y, a->Wo * a->Cout);
}

static tt_real x[1 << 20], w[1 << 20], y[1 << 20];

static void call_linear(void)
{
    const int64_t dim[] = {512, 768};
    const tt_tensor t = tt_tensor_make(w, TT_F32, 2, dim);
    tt_linear(ctx, y, x, 90, &t, x + 5000);
}

static void attend(bool bias)
{
    tt_attention(ctx, &(tt_attention_args){
        .o = y, .q = x, .k = w, .v = w + 300000, .T = 240, .N = 240, .H = 8,
        .D = 32, .q_stride = 256, .kv_stride = 256, .scale = (tt_real)0.2,
        .rel_bias = bias ? x + 77 : NULL});
}

static void call_attention(void)
{
    attend(false);
}

static void call_biased(void)
{
    attend(true);
}

static void call_conv(int stride, int up)
{
    const int64_t Hi = 48 / up, n = 48 / stride, dim[] = {24, 3, 3, 3, 24};
    const tt_tensor t = tt_tensor_make(w, TT_F32, 5, dim);
    const tt_real *frame[] = {NULL, x, x + 100000};
    tt_conv(ctx, &(tt_conv_args){
        .y = y, .frame = frame, .w = &t, .b = x + 9, .Hi = Hi, .Wi = Hi,
        .Cin = 24, .Ho = n, .Wo = n, .Cout = 24, .kt = 3, .kh = 3, .kw = 3,
        .stride = stride, .pad_top = stride == 1, .pad_left = stride == 1,
        .up = up});
}

static void call_plain(void)
{
    call_conv(1, 1);
}

static void call_up(void)
{
    call_conv(1, 2);
}

/* The row with the mistake is found, whichever it is, and it is named. */
static void expect_rows(const char *what, void (*call)(void), int64_t rows)
{
    tt_ops ops = *tt_ops_default();
    const int64_t bad[] = {-1, 0, rows / 3 + 1, rows - 1};
    ops.linear = row_linear;
    ops.attention = row_attention;
    ops.conv = row_conv;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tt_report *r = NULL;
        tt_shadow *s = NULL;
        char place[32];
        bad_row = bad[i];
        tt_report_new(ctx, &r, what, tt_arith_find("f32"));
        expect_ok(tt_shadow_open(ctx, &s, r, &ops, tt_arith_find("f32")),
                  "shadow");
        call();
        tt_shadow_close(ctx, s);
        const tt_verdict *v = tt_report_first(r);
        snprintf(place, sizeof place, "[%lld, ", (long long)bad_row);
        expect(bad_row < 0 ? !v : v && !strncmp(v->where, place, strlen(place)),
               "%s, row %lld: %s %s", what, (long long)bad_row,
               v ? v->where : "passed", v ? v->hint : "");
        expect(tt_report_compared(r) == 1, "%s was judged", what);
        tt_report_free(r);
    }
}

int main(void)
{
    uint64_t s = 1;
    ctx = test_begin("validate/watch");
    for (int i = 0; i < 1 << 20; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        x[i] = (tt_real)((double)(s >> 11) * 0x1p-53 - 0.5);
        w[i] = (tt_real)((double)(s >> 7 & 0xffff) * 0x1p-16 - 0.5);
    }
    test_operators();
    expect_rows("linear", call_linear, 90);
    expect_rows("attention", call_attention, 240);
    expect_rows("attention with a bias", call_biased, 240);
    expect_rows("conv", call_plain, 48);
    expect_rows("conv, upsampling", call_up, 48);
    return test_end();
}
#endif
