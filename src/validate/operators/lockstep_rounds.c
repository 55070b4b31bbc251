/* lockstep_rounds.c: admission rounds of rollouts side by side.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   once the emulation has picked other frames it allows nothing: scores
 *         are not checked, and a pick is a tie within half a unit of them. A
 *         pick that is not the best of its own scores is always wrong. */
#include "validate/operators/lockstep.h"

#include <math.h>
#include <stdio.h>

static const char astray[] = "the declared arithmetic keeps other frames";

static void flipped(lockstep *s, const round_item *at, const char *path)
{
    s->tie = at->layer;
    snprintf(s->why_not, sizeof s->why_not, "it follows the flipped pick at "
             "%.110s", path);
}

/* False, and a mismatch, when they did not keep the best of their own scores:
 * nothing that came before excuses that. */
static bool check_own(lockstep *s, const char *path, const round_item *theirs)
{
    tt_verdict v = {.op = "", .outcome = TT_MISMATCH, .ratio = INFINITY,
                    .rank = 1, .dim = {theirs->P}};
    if (selection_best(theirs->keep, theirs->score, theirs->P)) return true;
    snprintf(v.path, sizeof v.path, "%s.keep", path);
    snprintf(v.hint, sizeof v.hint, "the frames kept are not the best of their "
             "own scores");
    tt_report_add(s->report, &v, NULL, NULL);
    return false;
}

/* emul: NULL when it says nothing about this round. Then a pick outside half a
 * unit is not checked, unless no margin could allow it. */
static void check_keep(lockstep *s, const char *path, const round_item *ours,
                       const round_item *theirs, const round_item *emul)
{
    tt_verdict v = {.op = "", .outcome = TT_PASS, .rank = 1, .dim = {ours->P}};
    const selection both = {
        .got = theirs->keep, .want = ours->keep, .score = ours->score,
        .emul = emul ? emul->score : NULL, .theirs = theirs->score,
        .P = ours->P};
    tt_metrics_measure(&v.m, theirs->keep, ours->keep, ours->P);
    switch (selection_compare(&both, s->arith->bits ? NULL : s->arith, &v.ratio,
                              v.hint, sizeof v.hint)) {
    case PICK_SAME: break;
    case PICK_TIE: v.outcome = TT_TIE; break;
    case PICK_WRONG: v.outcome = TT_MISMATCH; break;
    }
    snprintf(v.path, sizeof v.path, "%s.keep", path);
    verdict_place(&v);
    if (v.outcome == TT_MISMATCH && !emul && isfinite(v.ratio)) {
        lockstep_not_checked(s, v.path, astray);
        flipped(s, ours, v.path);
        return;
    }
    tt_report_add(s->report, &v, theirs->keep, ours->keep);
    if (v.outcome == TT_TIE) flipped(s, ours, v.path);
}

static void check_round(lockstep *s, const round_item *ours,
                        const round_item *theirs, const round_item *emul)
{
    char path[96], score[104];
    snprintf(path, sizeof path, "chunk.%lld/grab.layer.%lld.%lld",
             (long long)s->chunk, (long long)ours->layer,
             (long long)ours->sub);
    if (!check_own(s, path, theirs)) return;
    if (s->tie >= 0) {
        lockstep_not_checked(s, path, s->why_not);
        return;
    }
    if (!round_matches(theirs, ours)) {
        const int32_t flag[2] = {0, 1};
        lockstep_equal(s, path, &flag[0], &flag[1], 1,
                       "other candidates, or another layer");
        return;
    }
    snprintf(score, sizeof score, "%s.score", path);
    if (s->own >= 0 || !emul || !round_matches(emul, ours)) {
        lockstep_not_checked(s, score, astray);
        check_keep(s, path, ours, theirs, NULL);
        return;
    }
    lockstep_check(s, score, theirs->score, ours->score, emul->score, 1,
                   &ours->P);
    check_keep(s, path, ours, theirs, emul);
    if (!round_same_pick(emul, ours)) s->own = ours->layer;
}

void lockstep_rounds(lockstep *s)
{
    const round_list *a = &s->lane[OURS].rounds, *b = &s->lane[FORCED].rounds;
    const round_item *theirs = b->first;
    const round_item *emul = s->lane[FORCED_EMUL].rounds.first;
    s->tie = s->own = -1;
    for (const round_item *r = a->first; r && theirs; r = r->next) {
        check_round(s, r, theirs, emul);
        theirs = theirs->next;
        if (emul) emul = emul->next;
    }
    const int32_t n[2] = {(int32_t)b->n, (int32_t)a->n};
    char path[64];
    snprintf(path, sizeof path, "chunk.%lld/grab.rounds", (long long)s->chunk);
    if (n[1] || n[0])
        lockstep_equal(s, path, &n[0], &n[1], 1,
                       "another number of admission rounds");
}
