/* rounds.h: the admission rounds of one chunk of one rollout, kept to be
 * compared.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_ROUNDS_H
#define VALIDATE_ROUNDS_H

#include "validate/selection.h"

/* One round as it happened. */
typedef struct round_item {
    int64_t layer, sub, P;
    int64_t *frame;               /* [P] candidates                           */
    double *score, *keep;         /* [P]                                      */
    struct round_item *next;
} round_item;

typedef struct round_list {
    tt_ctx *ctx;
    tt_arena mem;
    round_item *first, **end;
    int64_t n;
} round_list;

/* Forget all and keep no memory; ready to listen. */
void rounds_clear(round_list *l);
/* A tt_event_fn; user is the list. Other events than admission rounds pass. */
void rounds_take(void *user, const tt_event *e);

/* The same round: layer, place within the chunk, and candidates. */
bool round_matches(const round_item *a, const round_item *b);
bool round_same_pick(const round_item *a, const round_item *b);

#endif
