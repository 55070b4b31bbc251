/* test_cases.c: every VAE reference case, by the tolerances of its README.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The same code as build/run_case writes a file; this compares it. */
#include "tests/run_case/vae_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness.h"
#include "io/video.h"

/* README_vae.md: against the double result, or against the official float one
 * where only that exists. A double build is held to 1e-12 of the largest value
 * wherever a double result exists. */
static void compare(tt_ctx *ctx, const test_case *c, const tt_entry *want,
                    const tt_entry *got, bool is_f64)
{
    tt_arena a = {0};
    char what[768];
    snprintf(what, sizeof what, "%s %s", c->dir, want->name);
    const tt_json *o = tt_json_get(
        tt_json_get(c->json, "official_f32_vs_f64"), want->name);
    const double top = tt_json_num(o, "max_ref", -1);
    const double rms = tt_json_num(o, "rms_ref", -1);
    double tol = 8 * tt_json_num(o, "max_abs", 0) + 1e-6 * top;
    double rms_tol = (4 * tt_json_num(o, "rel_l2", 0) + 1e-7) * rms;
    if (sizeof(tt_real) == 8 && is_f64) {
        tol = 1e-12 * top;
        rms_tol = 0;
    }
    if (!expect(o && top >= 0, "%s: case.json states no error", what)) return;
    bool same = want->t.rank == got->t.rank;
    for (int i = 0; same && i < want->t.rank; i++)
        same = want->t.dim[i] == got->t.dim[i];
    expect(same, "%s: another shape", what);
    const tt_real *x = tt_read_real(ctx, &a, &got->t);
    expect_close(what, x, tt_tensor_count(&got->t), want, tol, rms_tol);
    tt_arena_free(&a);
}

/* Bytes at most one step apart, and equal when made from the official
 * float video. */
static void compare_u8(tt_ctx *ctx, const test_case *c, const tt_entry *want,
                       const tt_entry *got)
{
    const int64_t n = tt_tensor_count(&want->t), pixels = n / 3;
    const uint8_t *a = want->t.data, *b = got->t.data;
    int64_t bad = 0;
    if (!expect(tt_tensor_count(&got->t) == n, "%s: another size", want->name))
        return;
    for (int64_t i = 0; i < n; i++)
        bad += abs((int)a[i] - (int)b[i]) > 1;
    expect(bad == 0, "%s %s: %lld bytes differ by more than 1", c->dir,
           want->name, (long long)bad);

    char name[160];
    tt_arena mem = {0};
    snprintf(name, sizeof name, "%.*s.video_raw",
             (int)(strlen(want->name) - 3), want->name);
    const tt_entry *raw = tt_file_find(c->expected, name);
    const tt_real *x = raw ? tt_read_real(ctx, &mem, &raw->t) : NULL;
    uint8_t *mine = tt_alloc(ctx, &mem, n, 1, "bytes");
    if (expect(x && mine, "%s: no official video", name)) {
        tt_rgb8_from_real(mine, x, pixels, 1, pixels);
        expect_bits(want->name, mine, a, (size_t)n);
    }
    tt_arena_free(&mem);
}

static void run(tt_ctx *ctx, const char *name)
{
    test_case c;
    if (!case_open(&c, "%s", name)) return;
    char path[600];
    tmp_path(path, sizeof path, "vae-XXXXXX");
    const int fd = mkstemp(path);
    tt_st_writer *w = NULL;
    tt_file *f = NULL;
    expect_ok(tt_st_create(ctx, &w, path), path);
    if (expect_ok(run_vae_case(ctx, c.json, c.dir, w), name)
        && expect_ok(tt_st_finish(w), path)
        && expect_ok(tt_file_open(ctx, &f, path), path))
        for (int64_t i = 0; i < tt_file_count(c.expected); i++) {
            const tt_entry *want = tt_file_entry(c.expected, i);
            const tt_entry *got = tt_file_find(f, want->name);
            const tt_entry *best = tt_file_find(c.expected_f64, want->name);
            if (!expect(got, "%s: %s was not written", name, want->name))
                continue;
            if (want->t.dtype == TT_U8) compare_u8(ctx, &c, want, got);
            else compare(ctx, &c, best ? best : want, got, best != NULL);
        }
    if (f) tt_file_close(f);
    close(fd);
    unlink(path);
    case_close(&c);
}

/* case.json of the procedural model states the last element of five tensors:
 * a check of the generator, not of the VAE. */
static void check_generator(tt_ctx *ctx)
{
    static const struct {
        const char *key;
        int rank;
        int64_t dim[5];
    } some[] = {
        {"encoder.conv1.bias", 1, {96}},
        {"conv2.weight", 5, {16, 16, 1, 1, 1}},
        {"decoder.conv1.weight", 5, {384, 16, 3, 3, 3}},
        {"decoder.upsamples.7.time_conv.weight", 5, {768, 384, 3, 1, 1}},
        {"decoder.head.0.gamma", 4, {96, 1, 1, 1}},
    };
    test_case c;
    if (!case_open(&c, "vae_fullwidth")) return;
    const tt_json *last = tt_json_get(c.json, "last_element_of");
    for (int i = 0; i < 5; i++) {
        tt_tensor t = vae_made_tensor(ctx, &c.arena, 1, some[i].key,
                                      some[i].rank, some[i].dim);
        const float *x = t.data;
        expect(x && (double)x[tt_tensor_count(&t) - 1]
                        == tt_json_num(last, some[i].key, NAN),
               "procedural %s", some[i].key);
    }
    case_close(&c);
}

int main(void)
{
    tt_ctx *ctx = test_begin("vae/cases");
    check_generator(ctx);
    run(ctx, "vae_conv3d");
    run(ctx, "vae_rmsnorm");
    run(ctx, "vae_resblock");
    run(ctx, "vae_attn");
    run(ctx, "vae_resample");
    run(ctx, "vae_full_a");
    run(ctx, "vae_pth");
    run(ctx, "vae_fullwidth");
    run(ctx, "vae_taehv");
    return test_end();
}
