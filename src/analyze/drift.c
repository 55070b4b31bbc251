/* drift.c: how far frames have moved from where the video began.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   TetherCache shows curves of latent statistics over time but gives no
 *         formula. We: per-channel mean and standard deviation of a frame
 *         against those of a reference set, root mean square over channels
 *         (analysis A); the same over the channels of all heads and layers of
 *         cached keys and values (analysis A'), which is what TAME edits. */
#include <math.h>
#include <string.h>

#include "analyze/measure.h"

static const char what[] = "frame statistics";

static frame_stats stats_make(tt_ctx *ctx, tt_arena *mem, int64_t F,
                              int64_t N)
{
    frame_stats s = {.F = F, .N = N};
    int64_t n = 0;
    if (!tt_checked_mul(&n, F, N)) n = INT64_MAX;
    s.mean = tt_alloc(ctx, mem, n, sizeof *s.mean, what);
    s.sd = tt_alloc(ctx, mem, n, sizeof *s.sd, what);
    return s;
}

/* Two passes over one channel. */
static void channel_stats(double *mean, double *sd, const float *z, int64_t n)
{
    double sum = 0, sq = 0;
    for (int64_t i = 0; i < n; i++) sum += z[i];
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) sq += (z[i] - *mean) * (z[i] - *mean);
    *sd = sqrt(sq / (double)n);
}

frame_stats stats_of_latents(tt_recording *r, tt_arena *mem)
{
    tt_ctx *ctx = r->ctx;
    frame_stats s = stats_make(ctx, mem, r->n, r->C);
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    float *z = tt_alloc(ctx, &ctx->scratch, r->C * r->P, sizeof *z, what);
    for (int64_t f = 0; z && f < s.F; f++) {
        recording_frame(z, r, f);
        for (int64_t c = 0; c < s.N; c++)
            channel_stats(&s.mean[f * s.N + c], &s.sd[f * s.N + c],
                          z + c * r->P, r->P);
    }
    tt_arena_reset(&ctx->scratch, m);
    return s;
}

frame_stats stats_of_features(tt_recording *r, tt_arena *mem, bool values,
                              int64_t layer)
{
    const int64_t w = r->width;
    const int64_t first = layer < 0 ? 0 : layer;
    const int64_t layers = layer < 0 ? r->feature_layers : 1;
    frame_stats s = stats_make(r->ctx, mem, r->nfeatures, layers * w);
    tt_arena_mark m = tt_arena_here(&r->ctx->scratch);
    float *row = tt_alloc(r->ctx, &r->ctx->scratch, 2 * w, sizeof *row, what);
    for (int64_t f = 0; row && f < s.F; f++)
        for (int64_t i = 0; i < layers; i++) {
            int64_t at = ((f * r->feature_layers + first + i) * 4
                          + (values ? 2 : 0)) * w;
            memcpy(row, (const char *)r->features->data + 4 * at,
                   (size_t)(2 * w) * sizeof *row);
            tt_swap_stored(row, TT_F32, 2 * w);
            for (int64_t c = 0; c < w; c++) {
                s.mean[f * s.N + i * w + c] = row[c];
                s.sd[f * s.N + i * w + c] = row[w + c];
            }
        }
    tt_arena_reset(&r->ctx->scratch, m);
    return s;
}

void stats_pool(double *mean, double *sd, const frame_stats *s, int64_t T)
{
    for (int64_t c = 0; c < s->N; c++) {
        double sum = 0, sq = 0;
        for (int64_t f = 0; f < T; f++) sum += s->mean[f * s->N + c];
        mean[c] = sum / (double)T;
        for (int64_t f = 0; f < T; f++) {
            double d = s->mean[f * s->N + c] - mean[c];
            double within = s->sd[f * s->N + c];
            sq += d * d + within * within;
        }
        sd[c] = sqrt(sq / (double)T);
    }
}

void drift_curve(double *out, const double *x, const double *ref,
                 const double *scale, int64_t F, int64_t N, drift_kind kind)
{
    for (int64_t f = 0; f < F; f++) {
        double sum = 0;
        for (int64_t c = 0; c < N; c++) {
            double d = x[f * N + c] - ref[c];
            if (kind.norm) d /= scale[c] > 1e-12 ? scale[c] : 1e-12;
            sum += kind.l1 ? fabs(d) : d * d;
        }
        sum /= (double)N;
        out[f] = kind.l1 ? sum : sqrt(sum);
    }
}

void running_mean(double *x, int64_t n, int64_t w)
{
    if (w <= 1) return;
    for (int64_t f = n - 1; f >= 0; f--) { /* backwards: x[0..f) still raw */
        int64_t first = f - w + 1 < 0 ? 0 : f - w + 1;
        double sum = 0;
        for (int64_t i = first; i <= f; i++) sum += x[i];
        x[f] = sum / (double)(f - first + 1);
    }
}

double frame_motion(float *z, const tt_recording *r, int64_t f)
{
    const int64_t n = r->C * r->P;
    double sum = 0;
    if (f < 1) return NAN;
    recording_frame(z, r, f - 1);
    recording_frame(z + n, r, f);
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)z[n + i] - (double)z[i];
        sum += d * d;
    }
    return sqrt(sum / (double)n);
}
