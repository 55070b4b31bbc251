/* frames.h: a round of TetherCache, as frames.c reads it from a dump.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_FRAMES_H
#define VALIDATE_FRAMES_H

#include "validate/files/named.h"

enum { CANDIDATES_MOST = 64 };

/* What is made of the tokens of a frame, for every channel. */
typedef enum frame_form {
    FRAME_MEAN, FRAME_MAX, FRAME_SIZE, FRAME_ROWS, FRAME_SQUARES
} frame_form;

/* Of rows [L, width] into out [width], FRAME_ROWS [L, width]: themselves. */
void frames_statistic(double *out, const double *rows, int64_t L, int64_t width,
                      frame_form form);
/* Keys or values ('k', 'v') of a frame as its chunk's last pass made them, [*L,
 * width]; NULL: not in the dump. */
const double *frames_rows(const named *t, char what, int64_t frame,
                          int64_t width, int64_t *L);
/* A statistic of them, or of what TAME left of them; of `tokens` their rows.
 * What is read, which may be much, does not stay in scratch. */
double *frames_of(const named *t, char what, int64_t frame, bool edited,
                  int64_t width, frame_form form, int64_t tokens);

/* The round that a name is of, and its candidates: members, then evicted. */
typedef struct round_of {
    int64_t P, M, width, H, T, L;         /* T queries, L of a frame          */
    const double *index;                  /* [P] frames                       */
    const double *q[2];                   /* [T, width] of this pass, of the
                                             chunk before                     */
    double *query[4][FRAME_SIZE + 1];     /* pooled, by QUERIES, QUERY_POOL   */
    double *key[FRAME_ROWS + 1][CANDIDATES_MOST];        /* by KEY_POOL       */
} round_of;

/* The round that a name is of; false: it is not in the dump. */
bool frames_round(named *t, round_of *r);

#endif
