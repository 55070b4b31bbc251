/* ranks.c: what the ranks of a run do with their time, in words.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/parts.h"

#include <stdio.h>

#include "team/team.h"

enum { COMPUTE, EXCHANGE, WAITING, PARTS };

/* Whole percents of a rank's time. */
static int share_of(const tt_team_time *t, int part)
{
    const double all = t->compute + t->exchange + t->waiting;
    const double x = part == COMPUTE ? t->compute
                   : part == EXCHANGE ? t->exchange : t->waiting;
    return all > 0 ? (int)(100 * x / all + 0.5) : 0;
}

/* " 90-94% compute": from the least rank to the most. */
static void range_of(char *buf, size_t n, const tt_team_time *of, int size,
                     int part)
{
    static const char *const name[PARTS] = {"compute", "exchange", "waiting"};
    int least = share_of(&of[0], part), most = least;
    for (int r = 1; r < size; r++) {
        const int share = share_of(&of[r], part);
        if (share < least) least = share;
        if (share > most) most = share;
    }
    if (least == most) snprintf(buf, n, "%d%% %s", least, name[part]);
    else snprintf(buf, n, "%d-%d%% %s", least, most, name[part]);
}

tt_status ranks_measure(tt_ctx *ctx, const tt_run *run, tt_team_time *of,
                        char *line, size_t n)
{
    char part[PARTS][32];
    const int size = tt_team_size(ctx);
    *line = 0;
    TT_TRY(tt_team_measure(ctx, of));
    if (size == 1) return TT_OK;
    for (int k = 0; k < PARTS; k++)
        range_of(part[k], sizeof part[k], of, size, k);
    snprintf(line, n, "; ranks: %s, %s, %s", part[COMPUTE], part[EXCHANGE],
             part[WAITING]);
    for (int r = 0; r < size; r++)
        run_say(&run->events, true, "rank %d: %.2f s compute, %.2f s exchange, "
                "%.2f s waiting", r, of[r].compute, of[r].exchange,
                of[r].waiting);
    return TT_OK;
}
