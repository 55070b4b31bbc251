/* selection.h: is a pick of frames the right one, or one that the arithmetic
 * may make?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_SELECTION_H
#define VALIDATE_SELECTION_H

#include "validate/validate.h"

/* A pick of M out of P. Scores may be NULL: unknown. */
typedef struct selection {
    const double *got, *want;      /* [P] 1: kept                             */
    const double *score, *emul;    /* [P] ours; in the declared arithmetic    */
    const double *theirs;          /* [P] the candidate's                     */
    int64_t P;
} selection;

/* PICK_OTHER: no tie, but the best of their own scores, as far as they are
 * known; PICK_WRONG is not even that. */
typedef enum pick { PICK_SAME, PICK_TIE, PICK_OTHER, PICK_WRONG } pick;
/* Are the two picks the same, or different by ties alone? Then the candidate
 * keeps the best of its own scores (as far as they are known), and every frame
 * it keeps in place of another has one of ours within TT_SLACK times the error
 * of the declared arithmetic of the other's. That error is the largest of
 * `emul` over the row, at least half a unit of the format at the largest score.
 * `why` gets one sentence unless they are the same; *ratio the margin over the
 * allowed one, infinite when no margin could allow it. */
pick selection_compare(const selection *s, const tt_arith *arith,
                       double *ratio, char *why, size_t size);

#endif
