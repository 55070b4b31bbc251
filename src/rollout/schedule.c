/* schedule.c: the flow-matching noise schedule with a timestep shift.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  utils/scheduler.py, FlowMatchScheduler.
 * Differs from Source: the official tables come from a vectorised float32
 *         linspace whose last bits depend on the machine. We: double, rounded
 *         once. At most 1.2e-7 apart, and equal at every entry the default
 *         steps read. */
#include "rollout/rollout.h"

#include <math.h>

void tt_schedule_table(tt_schedule *s, double shift)
{
    *s = (tt_schedule){ .shift = shift };
    for (int i = 0; i < TT_TABLE; i++) {
        const double u = 1 - i / (double)TT_TABLE;
        s->sigma[i] = (float)(shift * u / (1 + (shift - 1) * u));
        s->timestep[i] = s->sigma[i] * 1000.0f;
    }
}

double tt_schedule_warp(const tt_schedule *s, int d)
{
    TT_ASSERT(d >= 0 && d <= TT_TABLE);
    return d == 0 ? 0 : s->timestep[TT_TABLE - d];
}

static tt_status check_list(tt_ctx *ctx, const double *list, int n, bool warp)
{
    if (n < 1 || n > TT_MAX_STEPS)
        return tt_fail(ctx, TT_EINVAL, "the list of denoising steps has %d "
                       "entries, expected 1..%d", n, TT_MAX_STEPS);
    for (int i = 0; i < n; i++) {
        if (!(list[i] >= 0 && list[i] <= TT_TABLE))
            return tt_fail(ctx, TT_EINVAL, "denoising step %g must lie in "
                           "0..%d", list[i], TT_TABLE);
        if (warp && (list[i] < 1 || list[i] != floor(list[i])))
            return tt_fail(ctx, TT_EINVAL, "denoising step %g cannot be "
                           "warped: it must be a whole number in 1..%d "
                           "(--no-warp takes values as they are)",
                           list[i], TT_TABLE);
        if (i > 0 && !(list[i] < list[i - 1]))
            return tt_fail(ctx, TT_EINVAL, "denoising steps must decrease, but "
                           "%g follows %g", list[i], list[i - 1]);
    }
    return TT_OK;
}

tt_status tt_schedule_init(tt_ctx *ctx, tt_schedule *s, double shift,
                           const double *list, int n, bool warp,
                           int64_t context_noise)
{
    if (!(shift > 0 && shift <= 1e6))
        return tt_fail(ctx, TT_EINVAL, "the timestep shift %g must be positive "
                       "(at most 1e6)", shift);
    if (context_noise < 0 || context_noise > TT_TABLE)
        return tt_fail(ctx, TT_EINVAL, "the context noise %lld must lie in "
                       "0..%d", (long long)context_noise, TT_TABLE);
    TT_TRY(check_list(ctx, list, n, warp));
    tt_schedule_table(s, shift);
    s->nsteps = n;
    for (int i = 0; i < n; i++) {
        s->t[i] = warp ? tt_schedule_warp(s, (int)list[i]) : list[i];
        /* Code: tells the clean pass from the others by this integer. */
        if ((int64_t)s->t[i] == context_noise)
            return tt_fail(ctx, TT_EINVAL,
                           "denoising step %g runs at timestep %g, which would "
                           "be taken for the clean pass at context noise %lld; "
                           "change the list or the context noise", list[i],
                           s->t[i], (long long)context_noise);
    }
    return TT_OK;
}

int tt_schedule_index(const tt_schedule *s, double t)
{
    int best = 0;
    for (int i = 1; i < TT_TABLE; i++)
        if (fabs(s->timestep[i] - t) < fabs(s->timestep[best] - t)) best = i;
    return best;
}

void tt_flow_to_x0(const tt_schedule *s, tt_host *x0, const tt_host *x,
                   const tt_host *flow, double t, int64_t n)
{
    const double sigma = s->sigma[tt_schedule_index(s, t)];
    for (int64_t i = 0; i < n; i++) {
        const double moved = sigma * (double)flow[i];
        x0[i] = (tt_real)((double)x[i] - moved);
    }
}

void tt_add_noise(const tt_schedule *s, tt_host *x, const tt_host *x0,
                  const tt_host *noise, double t, int64_t n)
{
    const tt_real sigma = s->sigma[tt_schedule_index(s, t)];
    for (int64_t i = 0; i < n; i++) {
        const tt_real kept = (1 - sigma) * x0[i];
        const tt_real fresh = sigma * noise[i];
        x[i] = kept + fresh;
    }
}
