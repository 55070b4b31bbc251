/* test_backend.c: honest backends pass, and what checks them can fail.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Planted mistakes by the dozen are in the mutation suite (mutants.c). */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness.h"
#include "validate/operators/call.h"
#include "validate/report/report.h"

static tt_ctx *ctx;

/* ---- rounding and metrics ------------------------------------------------ */

static void test_formats(void)
{
    expect(tt_format_round(TT_FMT_BF16, 1 + 0x1p-8f) == 1, "tie to even");
    expect(tt_format_round(TT_FMT_BF16, 1 + 0x3p-8f) == 1 + 0x1p-6f, "bf16");
    expect(tt_format_round(TT_FMT_TF32, 1 + 0x1p-11f) == 1, "tf32 tie");
    expect(tt_format_round(TT_FMT_TF32, 1 + 0x3p-11f) == 1 + 0x1p-9f, "tf32");
    expect(tt_format_round(TT_FMT_TF32, -0x1.fffffep127f) == -INFINITY,
           "tf32 rounds past its range");
    expect(isinf(tt_format_round(TT_FMT_F16, 70000)), "f16 overflows");
    expect(tt_format_round(TT_FMT_F32, 0.1f) == 0.1f, "f32 is itself");
    expect(!tt_arith_find("fp32") && tt_arith_find("bf16-stored"), "names");
}

static void test_metrics(void)
{
    const double want[] = {1, 2, 4, NAN, INFINITY, 0};
    const double got[] = {1, 2 + 0x1p-22, 4, NAN, 1, 0x1p-140};
    tt_metrics m;
    tt_metrics_measure(&m, got, want, 6);
    expect(m.max_abs == 0x1p-22 && m.differ == 3, "errors");
    expect(m.broken == 1 && m.worst == 4, "a lost infinity is the worst");
    expect(m.nan == 1 && m.inf == 0 && m.denormal == 1, "special values");
    tt_metrics_measure(&m, got, want, 3);
    expect(m.max_ulp == 1, "one ulp at 2");
    tt_metrics_measure(&m, want, want, 3);
    expect(m.cosine > 0.999999 && isinf(m.snr_db) && !m.differ, "equal");
}

/* Cosine 1 and a tiny relative error: one row of small values is wrong. */
static void test_check(void)
{
    enum { ROWS = 100, C = 64 };
    static double want[ROWS * C], got[ROWS * C], emul[ROWS * C];
    tt_verdict v = {.rank = 2, .dim = {ROWS, C}};
    for (int i = 0; i < ROWS * C; i++) {
        want[i] = (i / C == 7 ? 1e-4 : 1) * (1 + 0.01 * (i % 17));
        emul[i] = want[i] * (1 + (i % 3 - 1) * 0x1p-25);
        got[i] = want[i] * (1 + (i % 5 - 2) * 0x1p-26);
    }
    tt_verdict_check(&v, tt_arith_find("f32"), got, want, emul, ROWS * C,
                     TT_OF_ROWS);
    expect(v.outcome == TT_PASS, "another order of rounding errors passes");
    for (int i = 7 * C; i < 8 * C; i++) got[i] *= 1.0001;
    tt_verdict_check(&v, tt_arith_find("f32"), got, want, emul, ROWS * C,
                     TT_OF_ROWS);
    expect(v.outcome == TT_MISMATCH && !strncmp(v.where, "[7, ", 4),
           "a row of small values is judged by itself, got %s", v.where);
    expect(v.m.cosine > 0.9999999999, "which the cosine does not see");
    memcpy(got, want, sizeof got);
    got[5 * C + 3] = NAN;
    tt_verdict_check(&v, tt_arith_find("f32"), got, want, emul, ROWS * C,
                     TT_OF_ROWS);
    expect(v.outcome == TT_MISMATCH && !strcmp(v.where, "[5, 3]"), "NaN");
}

#ifndef TT_REAL_DOUBLE
/* ---- operators ----------------------------------------------------------- */

static tt_report *report(const char *arith)
{
    tt_report *r = NULL;
    tt_report_new(ctx, &r, "test", tt_arith_find(arith));
    return r;
}

static int64_t check_ops(const tt_ops *ops, const char *arith)
{
    tt_report *r = report(arith);
    const tt_opcheck_options opt = {.arith = tt_arith_find(arith), .seed = 77,
                                    .rounds = 3};
    expect_ok(tt_opcheck(ctx, r, ops, &opt), arith);
    const int64_t bad = r->count[TT_MISMATCH];
    expect(tt_report_compared(r) > 5, "%s compared", arith);
    if (bad) printf("%s under %s: %s\n", ops->name, arith,
                    tt_report_first(r)->path);
    tt_report_free(r);
    return bad;
}

static void broken_add(tt_ctx *c, const tt_add_args *a)
{
    (void)c;
    for (int64_t i = 0; i <= a->n; i++)                  /* one too far */
        a->x[i] += i < a->n ? a->y[i] : 1;
}

static void no_silu(tt_ctx *c, const tt_silu_args *a)
{
    tt_fail(c, TT_EINVAL, "no silu of %d values", (int)a->n);
}

/* Even numbers of values are done by ours. */
static void even_silu(tt_ctx *c, const tt_silu_args *a)
{
    if (a->n % 2) tt_fail(c, TT_EUNSUPPORTED, "silu of an odd number");
    else tt_ops_default()->silu(c, a);
}

/* Gives up after it was wrong, or after it wrote beyond its output. */
static bool late_wrong, late_beyond;
static void late_silu(tt_ctx *c, const tt_silu_args *a)
{
    static int calls;
    if (late_wrong && calls++ % 2 == 0) {
        for (int64_t i = 0; i < a->n; i++) a->x[i] = 777;
        return;
    }
    if (late_beyond) a->x[a->n] = 777;
    tt_fail(c, TT_EUNSUPPORTED, "not this shape");
}

/* Every 50th result is lost, as a race would. */
static void rare_silu(tt_ctx *c, const tt_silu_args *a)
{
    static int calls;
    tt_ops_default()->silu(c, a);
    for (int64_t i = 0; i < a->n && calls % 50 == 40; i++) a->x[i] = 777;
    calls++;
}

static void wrong_silu(tt_ctx *c, const tt_silu_args *a)
{
    tt_ops_default()->silu(c, a);
    for (int64_t i = 0; i < a->n; i++) a->x[i] *= (tt_real)0.5;
}

/* Wrong only where in place and aligned, as vector stores would be. */
static void placed_norm(tt_ctx *c, const tt_rms_norm_args *a)
{
    if (a->y == a->x && (uintptr_t)a->x % 64 == 0) a->y[0] = 0;
    tt_ops_default()->rms_norm(c, a);
}

/* Wrong only where rows of the gate are wide and aligned. */
static void wide_gate(tt_ctx *c, const tt_gate_add_args *a)
{
    const bool wide = a->stride != a->c && (uintptr_t)a->gate % 64 == 0;
    tt_gate_add_args own = *a;
    if (wide) own.stride = a->c;
    tt_ops_default()->gate_add(c, &own);
}

/* The first failure's hint and path, into text. */
static void fails_in(const tt_ops *ops, const char *op, char *text, size_t size)
{
    tt_report *r = report("f32");
    const tt_opcheck_options opt = {.arith = tt_arith_find("f32"), .seed = 79,
                                    .rounds = 8, .only = op};
    expect_ok(tt_opcheck(ctx, r, ops, &opt), op);
    const tt_verdict *v = tt_report_first(r);
    snprintf(text, size, "%s: %s", v ? v->path : "", v ? v->hint : "");
    expect(v != NULL, "a fault of %s is found", op);
    tt_report_free(r);
}

static void test_conditions(void)
{
    char text[480];
    tt_ops bad = *tt_ops_default();
    bad.silu = rare_silu;
    bad.rms_norm = placed_norm;
    bad.gate_add = wide_gate;
    fails_in(&bad, "silu", text, sizeof text);
    expect(strstr(text, "at a second call") != NULL, "now and then: %s", text);
    fails_in(&bad, "rms_norm", text, sizeof text);
    expect(strstr(text, "in place") && !strstr(text, "unaligned"),
           "in place: %s", text);
    fails_in(&bad, "gate_add", text, sizeof text);
    expect(strstr(text, " wide") && !strstr(text, "unaligned"), "wide: %s",
           text);
    bad.silu = wrong_silu;
    fails_in(&bad, "silu", text, sizeof text);
    expect(strstr(text, "n=1 seed") && strstr(text, "scaled by 0.5 = 1/2 (at "
           "n="), "the hint's own shape: %s", text);
}

static void text_of(tt_report *r, char *out, size_t size)
{
    char path[600];
    tmp_path(path, sizeof path, "report");
    expect_ok(tt_report_junit(ctx, r, path), "junit");
    FILE *f = fopen(path, "r");
    out[f ? fread(out, 1, size - 1, f) : 0] = '\0';
    if (f) fclose(f);
    unlink(path);
}

/* It does not even say why. */
static void quiet_silu(tt_ctx *c, const tt_silu_args *a)
{
    (void)a;
    c->status = TT_EUNSUPPORTED;
}

/* A shape that a backend does not do is no pass, no failure, and no check. */
static void test_unsupported(void)
{
    char text[8000];
    tt_ops bad = *tt_ops_default();
    bad.silu = even_silu;
    const tt_opcheck_options opt = {.arith = tt_arith_find("f32"), .seed = 77,
                                    .rounds = 8, .only = "silu"};
    tt_report *r = report("f32");
    expect_ok(tt_opcheck(ctx, r, &bad, &opt), "silu");
    const int64_t kinds = r->count[TT_UNSUPPORTED];
    expect(tt_report_passed(r) && kinds >= 5
           && tt_report_compared(r) == r->count[TT_PASS],
           "%lld kinds of input unsupported", (long long)kinds);
    text_of(r, text, sizeof text);
    expect(strstr(text, "<skipped message=\"unsupported: ")
           && strstr(text, "silu of an odd number (") && strstr(text, "shapes)")
           && strstr(text, "failures=\"0\""), "skipped: %s", text);
    tt_report_free(r);
    r = report("f32");
    tt_opcheck_options one = opt;
    one.one = "op.silu.normal n=3 seed 1";
    expect_ok(tt_opcheck(ctx, r, &bad, &one), "silu of 3");
    expect(!tt_report_passed(r) && !tt_report_first(r)
           && r->count[TT_UNSUPPORTED] == 1
           && !tt_report_compared(r), "nothing was compared, so it fails");
    tt_report_free(r);
    /* all that is theirs computes nothing: what is ours is no pass of theirs */
    r = report("f32");
    tt_opcheck_options every = opt;
    every.only = NULL, every.rounds = 2;
    bad.silu = quiet_silu;
    expect_ok(tt_opcheck(ctx, r, &bad, &every), "silu of nothing");
    text_of(r, text, sizeof text);
    expect(!tt_report_passed(r) && !tt_report_compared(r)
           && strstr(text, "silu: unsupported, it computed none of")
           && strstr(text, "it says no reason"), "nothing of it: %s", text);
    tt_report_free(r);
}

/* What gives up is no excuse for what it has done before. */
static void test_unsupported_late(void)
{
    for (int k = 0; k < 2; k++) {
        tt_ops bad = *tt_ops_default();
        bad.silu = late_silu;
        late_wrong = !k;
        late_beyond = k;
        tt_report *r = report("f32");
        expect_ok(tt_opcheck(ctx, r, &bad, &(tt_opcheck_options){
            .arith = tt_arith_find("f32"), .seed = 77, .rounds = 4,
            .only = "silu"}), "silu");
        const tt_verdict *v = tt_report_first(r);
        expect(!tt_report_passed(r) && v && !r->count[TT_UNSUPPORTED]
               && strstr(v->hint, k ? "outside its output" : "second call"),
               "%s", v ? v->hint : "no failure");
        tt_report_free(r);
    }
}

static void no_linear(tt_ctx *c, const tt_linear_args *a)
{
    (void)a;
    tt_fail(c, TT_EUNSUPPORTED, "no linear");
}

static void test_operators(void)
{
    for (int i = 0; tt_ops_at(i); i++)
        if (strcmp(tt_ops_at(i)->name, "blas"))
            expect(!check_ops(tt_ops_at(i), "f32"), "%s is right",
                   tt_ops_at(i)->name);
    for (int i = 0; tt_arith_at(i); i++)
        expect(!check_ops(tt_arith_ops(tt_arith_at(i)), tt_arith_at(i)->name),
               "%s is what it declares", tt_arith_at(i)->name);
    expect(check_ops(tt_arith_ops(tt_arith_find("bf16")), "f32") > 0,
           "bf16 is not f32");
    tt_ops bad = *tt_ops_default();
    bad.add = broken_add;
    expect(check_ops(&bad, "f32") > 0, "a write past the end is seen");
    bad = *tt_ops_default();
    bad.silu = no_silu;
    expect(check_ops(&bad, "f32") > 0, "an operator that gives up is wrong");
}

/* ---- the model ----------------------------------------------------------- */

static void wrong_gate(tt_ctx *c, const tt_gate_add_args *a)
{
    const tt_add_args sum = {a->x, a->y, a->n * a->c};   /* gate forgotten */
    tt_ops_default()->add(c, &sum);
}

static void test_model(void)
{
    char state[600];
    tt_weights *w;
    tt_dit *dit = NULL;
    tt_ops bad = *tt_ops_default();
    bad.gate_add = wrong_gate;
    const tt_ops *tables[] = {tt_ops_find("golden"),
                              tt_arith_ops(tt_arith_find("f32")), &bad};
    tmp_path(state, sizeof state, "rollout.state");
    if (!expect_ok(tt_weights_open(ctx, &w, "ref_data/dit/models/tiny_a",
                                   TT_MODEL_DIT, NULL), "weights") ||
        !expect_ok(tt_dit_load(ctx, &dit, w, NULL, 0), "model")) return;
    tt_model_parts m = {.dit = dit, .rollout = tt_rollout_defaults()};
    m.rollout.latents = 15;
    m.rollout.h = m.rollout.w = 4;
    m.rollout.policy = tt_policy_defaults("tether");
    m.rollout.policy.K = 9, m.rollout.policy.S = 3, m.rollout.policy.R = 4;
    m.rollout.policy.M = -1;
    for (int i = 0; i < 3; i++) {
        tt_report *r = report("f32");
        expect_ok(tt_validate_calls(ctx, r, tables[i], tt_arith_find("f32"),
                                    &m), "calls");
        /* of the last one its own gate_add alone */
        expect(tt_report_compared(r) > (i < 2 ? 1000 : 30), "%lld calls "
               "compared", (long long)tt_report_compared(r));
        expect(tt_report_passed(r) == (i < 2), "calls of table %d: %s", i,
               i < 2 && tt_report_first(r) ? tt_report_first(r)->path : "");
        if (i == 2 && expect(tt_report_first(r) != NULL, "a first failure")) {
            const tt_verdict *v = tt_report_first(r);
            expect(!strcmp(v->op, "gate_add") &&
                   !strcmp(v->path, "chunk.0/step.0/block.0#gate_add.0"),
                   "the first failure is named: %s", v->path);
        }
        tt_report_free(r);
        r = report("f32");
        expect_ok(tt_validate_rollout(ctx, r, tables[i], tt_arith_find("f32"),
                                      &m, state), "chunks");
        expect(tt_report_compared(r) > 20, "chunks compared");
        expect(tt_report_passed(r) == (i < 2), "chunks of table %d: %s", i,
               i < 2 && tt_report_first(r) ? tt_report_first(r)->path : "");
        tt_report_free(r);
    }
    bad.linear = no_linear;
    tt_report *r = report("f32");
    expect_ok(tt_validate_calls(ctx, r, &bad, tt_arith_find("f32"), &m),
              "calls of a backend that gives up");
    expect(r->count[TT_UNSUPPORTED] > 100 && tt_report_first(r)
           && !strcmp(tt_report_first(r)->op, "gate_add"), "its linear is "
           "unsupported, and no failure");
    tt_report_free(r);
    r = report("f32");
    expect_ok(tt_validate_rollout(ctx, r, &bad, tt_arith_find("f32"), &m,
                                  state), "chunks of a backend that gives up");
    expect(!tt_report_passed(r) && r->count[TT_UNSUPPORTED] == 1,
           "and no pass");
    tt_report_free(r);
    expect(access(state, F_OK) != 0, "the state file is removed");
    tt_dit_close(dit);
}

#endif

int main(void)
{
    ctx = test_begin("validate/backend");
    test_formats();
    test_metrics();
    test_check();
#ifdef TT_REAL_DOUBLE
    printf("note: operators and model are judged in the float build\n");
#else
    test_operators();
    test_unsupported();
    test_unsupported_late();
    test_conditions();
    test_model();
#endif
    return test_end();
}
