/* test_class.c: how far each class is from float, on reference inputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Prints the range of the relative L2 distances from class f32 over the chunks
 * of every reference rollout, and whether the policy kept the same frames.
 * Judged by what the references know: the text encoder, computed by its
 * authors in bf16 throughout, is `rms_bf16_vs_f64` from float64, and rounding
 * only the factors of products must not be further. The distance of rollouts
 * has no reference; it must be finite, and more than the float class's own
 * rounding. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness.h"
#include "tests/run_case/run_case.h"
#include "ops/backend.h"

static tt_ctx *ctx;

#ifndef TT_REAL_DOUBLE

/* The case's outputs in a class. */
static tt_file *run_in(tt_class cls, const char *dir)
{
    char path[600];
    bool unknown;
    tt_st_writer *w = NULL;
    tt_file *f = NULL;
    const tt_ops *before = ctx->ops;
    tmp_path(path, sizeof path, "class");
    ctx->ops = tt_ops_class(before, cls);
    tt_status s = tt_st_create(ctx, &w, path);
    if (s == TT_OK) s = run_case(ctx, dir, w, &unknown);
    if (s == TT_OK) s = tt_st_finish(w);
    else tt_st_abort(w);
    ctx->ops = before;
    if (expect_ok(s, dir) && !expect_ok(tt_file_open(ctx, &f, path), path))
        f = NULL;
    unlink(path); /* the mapping stays */
    return f;
}

static double distance(const float *got, const float *want, int64_t n)
{
    double d = 0, w = 0;
    for (int64_t i = 0; i < n; i++) {
        double e = (double)got[i] - (double)want[i];
        d += e * e;
        w += (double)want[i] * (double)want[i];
    }
    return sqrt(d / w);
}

static bool same_bytes(const tt_file *a, const tt_file *b, const char *name)
{
    const tt_entry *x = tt_file_find(a, name), *y = tt_file_find(b, name);
    return !x || !memcmp(x->t.data, y->t.data, (size_t)tt_tensor_bytes(&x->t));
}

/* The distance of one class from the run `f` in class f32. */
static void from_float(test_case *in, const char *name, const tt_file *f,
                       tt_class cls)
{
    const test_case c = *in;
    tt_file *b = run_in(cls, c.dir);
    const tt_json *sizes = tt_json_get(c.json, "chunk_sizes");
    if (f && b
        && expect(tt_json_count(sizes) > 0, "%s: chunk sizes", name)) {
        const tt_entry *ef = tt_file_find(f, "latents");
        const tt_entry *eb = tt_file_find(b, "latents");
        const float *x = tt_read_real(ctx, &in->arena, &ef->t);
        const float *y = tt_read_real(ctx, &in->arena, &eb->t);
        const int64_t frame = tt_tensor_count(&ef->t) / ef->t.dim[1];
        const int64_t given = tt_json_int(c.json, "initial_frames", 0) * frame;
        int64_t at = tt_tensor_count(&ef->t); /* given frames may come first */
        double low = INFINITY, high = 0;
        for (int64_t i = 0; i < tt_json_count(sizes); i++)
            at -= tt_json_whole(tt_json_at(sizes, i), 0) * frame;
        for (int64_t i = 0; i < tt_json_count(sizes); i++) {
            const int64_t n = tt_json_whole(tt_json_at(sizes, i), 0) * frame;
            const double d = distance(y + at, x + at, n);
            if (d > 0 && d < low) low = d;
            if (d > high) high = d;
            /* 6e-6 is what float itself may be off; given frames are equal */
            expect(isfinite(d) && (at < given ? d == 0 : d > 6e-6),
                   "%s %s chunk %lld: %g", tt_class_name(cls), name,
                   (long long)i, d);
            at += n;
        }
        printf("%s to f32, %s: %.1e to %.1e per chunk, kept frames %s\n",
               tt_class_name(cls), name, low, high,
               same_bytes(f, b, "memory_index") ? "equal" : "differ");
    }
    tt_file_close(b);
}

static void rollout(const char *name)
{
    test_case c;
    if (!case_open(&c, "dit/roll_%s", name)) return;
    tt_file *f = run_in(TT_CLASS_F32, c.dir);
    for (int k = 1; f && k < TT_CLASS_COUNT; k++)
        from_float(&c, name, f, (tt_class)k);
    tt_file_close(f);
    case_close(&c);
}

/* The text encoder against float64, as its authors' bf16 run is checked. */
static void text(tt_class cls)
{
    test_case c;
    if (!case_open(&c, "t5_bf16_weights")) return;
    tt_file *b = run_in(cls, c.dir);
    const tt_json *theirs = tt_json_get(c.json, "rms_bf16_vs_f64");
    static const char *const names[] = {"context", "prompt_embeds"};
    for (int i = 0; b && i < 2; i++) {
        const tt_entry *got = tt_file_find(b, names[i]);
        const tt_entry *want = tt_file_find(c.expected_f64, names[i]);
        if (!expect(got && want, "%s is there", names[i])) continue;
        const int64_t n = tt_tensor_count(&want->t);
        const float *x = tt_read_real(ctx, &c.arena, &got->t);
        const float *y = tt_read_real(ctx, &c.arena, &want->t);
        double sum = 0, limit = tt_json_num(theirs, names[i], -1);
        for (int64_t k = 0; k < n; k++)
            sum += ((double)x[k] - (double)y[k])
                   * ((double)x[k] - (double)y[k]);
        const double rms = sqrt(sum / (double)n);
        printf("%s to float64, umT5 %s: rms %.2e; the official bf16 run %.2e\n",
               tt_class_name(cls), names[i], rms, limit);
        expect(rms > 0 && rms <= limit, "%s %s: rms %g, theirs %g",
               tt_class_name(cls), names[i], rms, limit);
    }
    tt_file_close(b);
    case_close(&c);
}
#endif

static void ignore(void *user, const char *sentence)
{
    (void)user;
    (void)sentence; /* K7_quirk warns, which test_cases.c expects */
}

int main(void)
{
    ctx = test_begin("rollout/class");
    ctx->warn = ignore;
#ifndef TT_REAL_DOUBLE
    static const char *const rollouts[] = {
        "global", "fifo_K9_S0", "fifo_K9_S2", "fifo_K7_S1", "iff", "extend",
        "nowarp", "tether_K9", "tether_K21", "tether_K7_quirk", "tether_tau0",
        "tether_temp", "tether_paper", "i2v_iff", "context_noise",
    };
    for (int k = 0; k < TT_CLASS_COUNT; k++) text((tt_class)k);
    for (size_t i = 0; i < sizeof rollouts / sizeof *rollouts; i++)
        rollout(rollouts[i]);
#else
    expect(!tt_ops_class(ctx->ops, TT_CLASS_BF16),
           "a double build has class f32 alone");
#endif
    return test_end();
}
