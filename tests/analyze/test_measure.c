/* test_measure.c: the analyses on cases small enough to work out by hand.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers: every wanted value is computed in the comment next to it. */
#include "tests/harness.h"

#include <math.h>
#include <string.h>

#include "analyze/measure.h"

static bool near(double got, double want, const char *what)
{
    return expect(fabs(got - want) <= 1e-12 * (1 + fabs(want)),
                  "%s: %.17g, expected %.17g", what, got, want);
}

/* ---- A ------------------------------------------------------------------- */

/* Two channels of two pixels, three frames:
 *   channel 0: (0 2) (2 4) (6 10)    mean 1 3 8, sd 1 1 2
 *   channel 1: (1 1) (1 1) (4 4)     mean 1 1 4, sd 0 0 0 */
static void test_drift(tt_ctx *ctx)
{
    static const float z[] = {0, 2, 1, 1, 2, 4, 1, 1, 6, 10, 4, 4};
    const int64_t dim[5] = {1, 3, 2, 1, 2};
    tt_tensor t = tt_tensor_make(z, TT_F32, 5, dim);
    tt_recording r = {.ctx = ctx, .n = 3, .C = 2, .P = 2, .latents = &t};
    tt_arena mem = {0};
    frame_stats s = stats_of_latents(&r, &mem);
    static const double mean[] = {1, 1, 3, 1, 8, 4}, sd[] = {1, 0, 1, 0, 2, 0};
    for (int i = 0; i < 6; i++) {
        near(s.mean[i], mean[i], "mean of a channel");
        near(s.sd[i], sd[i], "sd of a channel");
    }

    /* First two frames pooled, channel 0: values 0 2 2 4, mean 2, variance
     * (4 + 0 + 0 + 4)/4 = 2; channel 1: all 1. */
    double pm[2], ps[2], out[3];
    stats_pool(pm, ps, &s, 2);
    near(pm[0], 2, "pooled mean");
    near(ps[0], sqrt(2), "pooled sd");
    near(pm[1], 1, "pooled mean of a constant");
    near(ps[1], 0, "pooled sd of a constant");

    /* frame 2: differences 6 and 3: rms sqrt((36+9)/2), mean 4.5 */
    drift_curve(out, s.mean, pm, ps, 3, 2, (drift_kind){false, false});
    near(out[0], sqrt(0.5), "drift of frame 0");
    near(out[2], sqrt(22.5), "drift of frame 2");
    drift_curve(out, s.mean, pm, ps, 3, 2, (drift_kind){.l1 = true});
    near(out[2], 4.5, "l1 drift");
    /* one channel, so that no scale is 0: 6 / sqrt(2) */
    static const double one[3] = {1, 3, 8};
    drift_curve(out, one, pm, ps, 3, 1, (drift_kind){.norm = true});
    near(out[2], 6 / sqrt(2), "normalised drift");
    tt_arena_free(&mem);

    double x[5] = {3, 6, 9, 12, 0};
    running_mean(x, 5, 3);
    static const double smooth[5] = {3, 4.5, 6, 9, 7};
    for (int i = 0; i < 5; i++) near(x[i], smooth[i], "running mean");
}

/* ---- B ------------------------------------------------------------------- */

/* MemRoPE with S 1 and room for 5 frames, a frame per chunk from frame 3 on:
 *   chunk 0  0 1 2 .  .
 *   chunk 1  0 1 2 3  4
 *   chunk 2  0 L S 4  5     1 and 2 are lost, 3 makes both averages
 *   chunk 3  0 L S 5  6     4 enters */
static void test_weights(tt_ctx *ctx)
{
    static const int64_t src[] = {0, 1, 2, -1, -1, 0, 1, 2, 3, 4,
                                  0, -2, -3, 4, 5, 0, -2, -3, 5, 6};
    tt_recording r = {.ctx = ctx, .chunks = 4, .layers = 1, .slots = 5,
                      .frames = 7, .src = src};
    double w[2 * 4 * 7];
    expect(summary_weights(w, &r, 0, 0.25, 0.5), "there are summaries");
    const double *at = w + 2 * 7, *later = w + 3 * 7, *fast = later + 4 * 7;
    near(at[3], 1, "the first average is what was evicted");
    near(at[1] + at[2], 0, "overwritten frames are lost");
    near(later[3], 0.75, "long average, old part");
    near(later[4], 0.25, "long average, new part");
    near(fast[3], 0.5, "short average, old part");
    near(fast[4], 0.5, "short average, new part");
    near(w[7 + 3], 0, "nothing before the first summary");
    summary_weights(w, &r, 0, 0.25, -1);
    near(fast[4], 0, "an unknown rate gives no weights");

    static const int64_t none[] = {0, 1, 2, -1, -1, 0, 2, 3, 4, 5};
    r.src = none;
    r.chunks = 2;
    expect(!summary_weights(w, &r, 0, 0.25, 0.5), "no summaries");
}

/* ---- C ------------------------------------------------------------------- */

/* Two layers, 3 chunks of one frame and then a long jump: newest frame 30 in
 * the last chunk, where layer 0 reads frames 0, 29 (half), 30 and layer 1
 * reads 30 alone. */
static void test_retention(tt_ctx *ctx)
{
    enum { N = 31 };
    static const int64_t start[3] = {0, 1, 30}, count[3] = {1, 1, 1};
    static const int64_t src[3 * 2 * 2] = {0, -1, 0, -1, 0, 1, 0, 1,
                                           0, 30, 29, 30};
    static const int64_t region[12] = {4, 0, 4, 0, 2, 4, 2, 4, 2, 4, 2, 4};
    double readable[3 * 2 * N] = {0};
    tt_recording r = {.ctx = ctx, .chunks = 3, .layers = 2, .slots = 2,
                      .frames = N, .start = start, .count = count,
                      .readable = readable, .src = src, .region = region};
    double *last = readable + 2 * 2 * N;
    readable[0] = readable[N] = 1;
    readable[2 * N] = readable[2 * N + 1] = 1;
    readable[3 * N] = readable[3 * N + 1] = 1;
    last[0] = last[30] = 1;
    last[29] = 0.5;
    last[N + 30] = 1;

    double map[3 * N];
    retention_map(map, &r, -1);
    near(map[2 * N], 0.5, "one of two layers reads frame 0");
    near(map[2 * N + 29], 0.25, "half a frame in one of two layers");
    near(map[2 * N + 30], 1, "the newest frame");
    retention_map(map, &r, 1);
    near(map[2 * N], 0, "layer 1 alone");

    retention_step s = retention_at(&r, 2, 0);
    near(s.distinct, 3, "distinct frames");
    near(s.span, 30, "span");
    near(s.mean_age, 30.5 / 2.5, "mean age: (30 + 0.5*1 + 0)/2.5");
    near(s.band_share, 1.5 / 2.5, "in the band: 29 and 30");
    near(s.band_full, 1.5 / 22, "of 22 frames in the band");
    s = retention_at(&r, 2, -1);
    near(s.distinct, 2, "mean over layers of 3 and 1");
    s = retention_at(&r, 1, 0);
    near(s.band_full, 1, "early: both frames there are");

    /* Layer 0: 0 is a first member, never admitted. Layer 1: 0 is the first
     * member, 29 enters at the last chunk and stays one. */
    retention_summary sum = retention_sum_up(&r, -1);
    near(sum.admitted, 1, "admitted frames");
    near(sum.lifetime, 1, "lifetime");
    near(sum.mean.distinct, 5.0 / 3, "mean of 1, 2, 2");
    expect(isnan(sum.admissions), "no counters, no numbers");
    static const int64_t counters[18] = {0, 0, 0, 0, 0, 0, 1, 2, 1, 1, 2, 1,
                                         3, 4, 2, 5, 6, 5};
    r.counters = counters;
    sum = retention_sum_up(&r, -1);
    near(sum.admissions, 8, "admissions, both layers");
    near(sum.edits, 7, "edits, both layers");
    near(retention_sum_up(&r, 1).rejections, 6, "rejections of layer 1");
}

/* ---- E ------------------------------------------------------------------- */

static void test_pixels(void)
{
    /* 3x3: black but for the middle pixel, (200, 100, 0) */
    uint8_t a[27] = {0}, b[27];
    a[12] = 200;
    a[13] = 100;
    pixel_row p = pixel_measure(a, NULL, 3, 3);
    near(p.mean[0], 200.0 / 9, "mean of red");
    near(p.sd[0], 200 * sqrt(8) / 9, "sd of red: 200 sqrt(1/9 - 1/81)");
    near(p.saturation, 1.0 / 9, "one pixel of nine is saturated");
    near(p.sharpness, 0, "a single inner pixel has no variance");
    expect(isnan(p.change), "the first frame has no change");

    memcpy(b, a, sizeof b);
    b[0] = 54; /* 54/27 = 2 */
    pixel_row q = pixel_measure(b, a, 3, 3);
    near(q.change, 2, "mean absolute difference");
    const pixel_row rows[3] = {p, q, pixel_measure(b, b, 3, 3)};
    near(pixel_flickering(rows, 3), (255 - 1.0) / 255, "flickering");
    expect(isnan(pixel_flickering(rows, 1)), "one frame does not flicker");

    /* 4x3, columns of grey 0 0 30 0: Laplacian 30 and -60 in the middle row */
    uint8_t c[36] = {0};
    for (int y = 0; y < 3; y++) memset(c + 3 * (4 * y + 2), 30, 3);
    near(pixel_measure(c, NULL, 4, 3).sharpness, 45 * 45, "sharpness");
}

int main(void)
{
    tt_ctx *ctx = test_begin("analyze/measure");
    test_drift(ctx);
    test_weights(ctx);
    test_retention(ctx);
    test_pixels();
    return test_end();
}
