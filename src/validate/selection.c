/* selection.c: did another program keep the same frames, and if not, was it
 * entitled to?
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The one rule for files and for runs side by side is selection_compare. */
#include "validate/selection.h"

#include <math.h>
#include <stdio.h>

static double score_error(const selection *s, const tt_arith *arith)
{
    double e = 0, top = 0;
    for (int64_t c = 0; c < s->P; c++) {
        top = fmax(top, fabs(s->score[c]));
        if (s->emul) e = fmax(e, fabs(s->emul[c] - s->score[c]));
    }
    const tt_format f = s->emul ? arith->stored : arith->product;
    return fmax(e, tt_format_epsilon(f) / 2 * top);
}

/* Are the kept ones the best of these scores? Scores that were rounded to be
 * written keep their order, so equal ones say nothing. */
static bool selection_best(const double *keep, const double *score, int64_t P)
{
    double kept = INFINITY, dropped = -INFINITY;
    for (int64_t c = 0; c < P; c++)
        if (keep[c] != 0) kept = fmin(kept, score[c]);
        else dropped = fmax(dropped, score[c]);
    return kept >= dropped;
}

/* The largest difference of our scores between a frame of ours that they
 * dropped and one of theirs that we did. */
static double crossed(const selection *s)
{
    double dropped = -INFINITY, added = INFINITY;
    for (int64_t c = 0; c < s->P; c++) {
        if (s->want[c] != 0 && s->got[c] == 0)
            dropped = fmax(dropped, s->score[c]);
        if (s->want[c] == 0 && s->got[c] != 0)
            added = fmin(added, s->score[c]);
    }
    return dropped > added ? dropped - added : 0;
}

static bool equal(const double *a, const double *b, int64_t P)
{
    int64_t c = 0;
    while (c < P && a[c] == b[c]) c++;
    return c == P;
}

static bool all_finite(const double *x, int64_t P)
{
    int64_t c = 0;
    while (x && c < P && isfinite(x[c])) c++;
    return x && c == P;
}

/* How many are kept; no longer binary where one is neither 0 nor 1. */
static int64_t selection_kept(const double *keep, int64_t P, bool *binary)
{
    int64_t n = 0;
    for (int64_t c = 0; c < P; c++) {
        *binary = *binary && (keep[c] == 0 || keep[c] == 1);
        n += keep[c] != 0;
    }
    return n;
}

pick selection_compare(const selection *s, const tt_arith *arith,
                       double *ratio, char *why, size_t size)
{
    bool binary = true, any = true;
    const int64_t theirs = selection_kept(s->got, s->P, &binary);
    const int64_t ours = selection_kept(s->want, s->P, &any);
    *ratio = 0;
    if (equal(s->got, s->want, s->P)) return PICK_SAME;
    *ratio = INFINITY;
    if (!binary || theirs != ours) {
        snprintf(why, size, "%lld frames were kept where %lld are",
                 (long long)theirs, (long long)ours);
        return PICK_WRONG;
    }
    if (s->theirs && !selection_best(s->got, s->theirs, s->P)) {
        snprintf(why, size, "other frames were kept, and not the best of their "
                 "own scores");
        return PICK_WRONG;
    }
    if (!arith || !all_finite(s->score, s->P)) {
        snprintf(why, size, "other frames were kept%s", arith
                 ? ", and no scores are known to tell a tie by" : "");
        return PICK_OTHER;
    }
    const double margin = crossed(s);
    const double allowed = TT_SLACK * score_error(s, arith);
    if (allowed > 0) *ratio = margin / allowed;
    snprintf(why, size, "other frames were kept: scores %.3g apart, the "
             "arithmetic allows %.3g", margin, allowed);
    return margin <= allowed ? PICK_TIE : PICK_OTHER;
}
