/* explain.c: what a cache policy decided in one chunk and layer, as text.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   TetherCache, eqs. 3-13; the functions named are in
 *         src/golden/tethercache.c.
 * Model   scores and choices are those of the trace; redundancy and its
 *         neighbour, which a trace lacks, are computed again from the
 *         importances. */
#include <math.h>
#include <stdio.h>

#include "analyze/measure.h"
#include "core/utf8.h"
#include "tether/mathfn.h"

/* Slots of one region; nothing where there are none. */
static void put_region(FILE *f, const tt_recording *r, int64_t at,
                       tt_region region)
{
    int64_t n = 0;
    for (int64_t s = 0; s < r->slots; s++) {
        if (r->region[at + s] != region || r->src[at + s] == -1) continue;
        if (!n++) fprintf(f, "  %-8s", tt_region_name(region));
        if (r->src[at + s] == -2) fputs(" long-term average", f);
        else if (r->src[at + s] == -3) fputs(" short-term average", f);
        else fprintf(f, " %lld", (long long)r->src[at + s]);
    }
    if (n) fputc('\n', f);
}

static void put_cache(FILE *f, const tt_recording *r, int64_t chunk,
                      int64_t layer)
{
    const int64_t at = (chunk * r->layers + layer) * r->slots;
    fputs(r->label ? "run " : "", f);
    utf8_print(f, r->label);
    fprintf(f, ", chunk %lld, layer %lld: frames %lld to %lld\n",
            (long long)chunk, (long long)layer, (long long)r->start[chunk],
            (long long)(r->start[chunk] + r->count[chunk] - 1));
    fputs("\nThe cache after the clean pass, source frames by slot (eq. 3)\n",
          f);
    for (int k = TT_REGION_SINK; k < TT_REGION_COUNT; k++)
        put_region(f, r, at, (tt_region)k);
}

/* ---- GRAB ---------------------------------------------------------------- */

/* One round: [n] candidates of the trace. */
typedef struct choice {
    int64_t n, members;
    const int64_t *frame, *keep;
    const double *mass, *score;
} choice;

/* Eq. 7 */
static double time_scale(const choice *c)
{
    int64_t lo = c->frame[0], hi = c->frame[0];
    for (int64_t i = 1; i < c->n; i++) {
        if (c->frame[i] < lo) lo = c->frame[i];
        if (c->frame[i] > hi) hi = c->frame[i];
    }
    return fmax(1, 0.5 * (double)(hi - lo + 1));
}

/* Eq. 8; *by is the neighbour. */
static double redundancy(const choice *c, int64_t i, double sigma, int64_t *by)
{
    double most = 0;
    *by = -1;
    for (int64_t o = 0; o < c->n; o++) {
        const double gap = fabs((double)(c->frame[i] - c->frame[o]));
        const double much = o == i ? 0 : tt_exp(-gap / sigma) * c->mass[o];
        if (much <= most) continue;
        most = much;
        *by = c->frame[o];
    }
    return most;
}

static int64_t rank_of(const choice *c, int64_t i)
{
    int64_t rank = 1;
    for (int64_t o = 0; o < c->n; o++)
        rank += c->score[o] > c->score[i]
             || (c->score[o] == c->score[i] && o < i);
    return rank;
}

static void put_choice(FILE *f, const choice *c)
{
    const double sigma = time_scale(c);
    fprintf(f, "  sigma, half the span of the candidates: %g (eq. 7, "
            "grab_time_scale)\n  frame  importance  redundancy    by  diversity"
            "     score  rank\n          (eq. 6)     (eq. 8)           (eq. 9)"
            "   (eq. 5)\n", sigma);
    for (int64_t i = 0; i < c->n; i++) {
        int64_t by;
        const double much = redundancy(c, i, sigma, &by);
        fprintf(f, "  %5lld  %10.6f  %10.6f %5lld  %9.6f  %8.6f  %4lld  %s%s\n",
                (long long)c->frame[i], c->mass[i], much, (long long)by,
                fmax(0, 1 - much), c->score[i], (long long)rank_of(c, i),
                c->keep[i] ? "kept" : "dropped",
                i < c->members ? "" : ", newcomer");
    }
}

static void put_round(FILE *f, const tt_recording *r, int64_t round)
{
    const int64_t at = round * r->candidates;
    choice c = {.members = round_members(r, round),
                .frame = r->grab_candidates + at, .keep = r->grab_keep + at,
                .mass = r->grab_mass + at, .score = r->grab_scores + at};
    while (c.n < r->candidates && c.frame[c.n] >= 0) c.n++;
    if (!c.n) return;
    fprintf(f, "\nGRAB, round %lld: %lld candidates for %lld places; score = "
            "importance + alpha diversity", (long long)r->grab_sub[round],
            (long long)c.n, (long long)c.members);
    if (isfinite(r->alpha)) fprintf(f, ", alpha = %g", r->alpha);
    fputc('\n', f);
    put_choice(f, &c);
    if (r->grab_margin)
        fprintf(f, "  margin between the last kept and the first dropped: %.3g "
                "(eq. 10, grab_select)\n", r->grab_margin[round]);
}

/* ---- TAME ---------------------------------------------------------------- */

typedef struct edit_text {
    FILE *f;
    int64_t chunk, layer, n;
} edit_text;

static void put_edit(void *user, const tt_recording *r, const frame_edit *e)
{
    edit_text *o = user;
    const double tau = r->tau;
    if (e->layer != o->layer || r->grab_chunk[e->round] != o->chunk) return;
    if (!o->n++)
        fprintf(o->f, "\nTAME, tau = %g: channels are drawn to the statistics "
                "of sinks and members (eqs. 11-13, tame_edit)\n"
                "  distance: rms over channels of (mean - trusted mean) / "
                "trusted deviation\n  spread: mean over channels of deviation /"
                " trusted deviation\n  frame          distance           spread"
                "             farthest channel\n", tau);
    for (int k = 0; k < 2; k++) {
        const edit_part p = edit_sum_up(r, e, k);
        fprintf(o->f, "  %5lld  %-6s  %.4f to %.4f   %.4f to %.4f   %lld: mean "
                "%.4g to %.4g, trusted %.4g\n", (long long)e->frame,
                k ? "values" : "keys", p.distance, (1 - tau) * p.distance,
                p.spread, (1 - tau) * p.spread + tau, (long long)p.channel,
                p.own[0], (1 - tau) * p.own[0] + tau * p.trusted[0],
                p.trusted[0]);
    }
}

int64_t tt_recording_decision(const tt_recording *r)
{
    return r && r->rounds ? r->grab_chunk[0] : r ? r->chunks - 1 : -1;
}

tt_status tt_recording_explain(tt_ctx *ctx, FILE *f, const tt_recording *r,
                               int64_t chunk, int64_t layer)
{
    edit_text o = {f, chunk, layer, 0};
    int64_t rounds = 0;
    TT_TRY(ctx->status);
    if (!r->src)
        return tt_fail(ctx, TT_EINVAL, "%s has no trace of the cache: `tether "
                       "generate --analyze FOLDER` records one", r->path);
    if (chunk < 0 || chunk >= r->chunks || layer < 0 || layer >= r->layers)
        return tt_fail(ctx, TT_EINVAL, "%s has chunks 0 to %lld and layers 0 to"
                       " %lld: there is no chunk %lld of layer %lld", r->path,
                       (long long)r->chunks - 1, (long long)r->layers - 1,
                       (long long)chunk, (long long)layer);
    put_cache(f, r, chunk, layer);
    for (int64_t i = 0; i < r->rounds; i++) {
        if (r->grab_chunk[i] != chunk || r->grab_layer[i] != layer) continue;
        put_round(f, r, i);
        rounds++;
    }
    if (!rounds)
        fprintf(f, "\nNothing was chosen here%s.\n", r->rounds
                ? ": the memory had room, or the cache was not full" : "");
    return edits_all(ctx, r, put_edit, &o);
}
