/* cuts.h: which rows, heads and queries are whose; see cuts.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TEAM_CUTS_H
#define TT_TEAM_CUTS_H

#include "team/engine.h"

/* As the functions of team.h, of any rank. */
tt_range cut_rows(const tt_team *t, int64_t T, int rank);
tt_range cut_heads(const tt_team *t, int64_t H, int rank);
tt_range cut_queries(const tt_team *t, int64_t H, int64_t T, int64_t h,
                     int rank);
/* Heads that a rank holds and no rank before it does. */
tt_range cut_first_heads(const tt_team *t, int64_t H, int rank);

static inline int64_t cut_size(tt_range x)
{
    return x.hi - x.lo;
}

#endif
