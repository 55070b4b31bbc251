/* drift_runs.c: drift curves of several runs, with the options applied.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "analyze/measure.h"

const char *const curve_names[CURVES] = {"mean", "std", "k_mean", "k_std",
                                         "v_mean", "v_std"};

static const char what[] = "drift curves";

/* Kinds of statistics: latents, keys, values. */
static bool has_kind(const tt_recording *r, int kind)
{
    return kind == 0 ? r->latents != NULL : r->features != NULL;
}

static frame_stats stats_of(tt_recording *r, tt_arena *mem, int kind,
                            int64_t layer)
{
    return kind == 0 ? stats_of_latents(r, mem)
                     : stats_of_features(r, mem, kind == 2, layer);
}

/* The reference: the run's own first frames, or all frames of another run
 * when that holds this kind of statistics in the same number. */
static tt_status take_reference(double *mean, double *sd, tt_ctx *ctx,
                                tt_arena *mem, const frame_stats *own,
                                int kind, const tt_recording *r,
                                const tt_analyze_options *opt)
{
    const tt_recording *other = opt->reference_run;
    if (!other || !has_kind(other, kind)) {
        if (opt->reference > own->F)
            return tt_fail(ctx, TT_EINVAL, "the reference of %lld frames is "
                           "longer than %s, which has %lld",
                           (long long)opt->reference, r->path,
                           (long long)own->F);
        stats_pool(mean, sd, own, opt->reference);
        return TT_OK;
    }
    tt_recording copy = *other; /* reading needs a context, nothing else */
    frame_stats s = stats_of(&copy, mem, kind, opt->layer);
    TT_TRY(ctx->status);
    if (s.N != own->N)
        return tt_fail(ctx, TT_ESHAPE, "the reference %s has %lld statistics "
                       "per frame, %s has %lld: different models",
                       other->path, (long long)s.N, r->path,
                       (long long)own->N);
    stats_pool(mean, sd, &s, s.F);
    return TT_OK;
}

static tt_status one_kind(drift_run *out, tt_ctx *ctx, tt_arena *mem,
                          tt_recording *r, int kind,
                          const tt_analyze_options *opt)
{
    const drift_kind how = {.norm = opt->norm, .l1 = opt->l1};
    tt_arena work = {0};
    frame_stats s = stats_of(r, &work, kind, opt->layer);
    double *mean = tt_alloc(ctx, &work, s.N, sizeof *mean, what);
    double *sd = tt_alloc(ctx, &work, s.N, sizeof *sd, what);
    for (int k = 0; k < 2; k++)
        out->curve[2 * kind + k] = tt_alloc(ctx, mem, s.F, sizeof(double),
                                            what);
    if (!ctx->status
        && take_reference(mean, sd, ctx, &work, &s, kind, r, opt) == TT_OK) {
        drift_curve(out->curve[2 * kind], s.mean, mean, sd, s.F, s.N, how);
        drift_curve(out->curve[2 * kind + 1], s.sd, sd, sd, s.F, s.N, how);
        for (int k = 0; k < 2; k++) {
            out->n[2 * kind + k] = s.F;
            running_mean(out->curve[2 * kind + k], s.F, opt->window);
        }
    }
    tt_arena_free(&work);
    return ctx->status;
}

/* Mean of the entries with the label of out[i], into out[i]; frames that all
 * of them have. */
static void average(drift_run *out, int i, int n)
{
    for (int k = 0; k < CURVES; k++) {
        int same = 0;
        int64_t frames = out[i].n[k];
        for (int j = i; j < n; j++) {
            if (strcmp(out[i].label, out[j].label)) continue;
            if (out[j].n[k] < frames) frames = out[j].n[k];
            same++;
        }
        for (int64_t f = 0; f < frames; f++) {
            double sum = 0;
            for (int j = i; j < n; j++)
                if (!strcmp(out[i].label, out[j].label))
                    sum += out[j].curve[k][f];
            out[i].curve[k][f] = sum / same;
        }
        out[i].n[k] = frames;
    }
}

static int average_all(drift_run *out, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        bool seen = false;
        for (int j = 0; j < kept; j++)
            seen = seen || !strcmp(out[j].label, out[i].label);
        if (seen) continue;
        average(out, i, n);
        out[kept++] = out[i];
    }
    return kept;
}

int drift_all(drift_run *out, tt_ctx *ctx, tt_arena *mem,
              tt_recording *const *run, int n, const tt_analyze_options *opt)
{
    for (int i = 0; i < n; i++) {
        out[i] = (drift_run){.label = run[i]->label};
        for (int kind = 0; kind < 3; kind++) {
            if (!has_kind(run[i], kind)) continue;
            if (one_kind(&out[i], ctx, mem, run[i], kind, opt)) return 0;
        }
    }
    return opt->average ? average_all(out, n) : n;
}

double drift_last_quarter(const drift_run *run, int k)
{
    const int64_t frames = run->n[k], first = frames - (frames + 3) / 4;
    double sum = 0;
    for (int64_t f = first; f < frames; f++) sum += run->curve[k][f];
    return frames ? sum / (double)(frames - first) : NAN;
}
