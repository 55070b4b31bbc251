/* test_schedule.c: what the schedule accepts, and its fixed points.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/harness.h"

#include <math.h>
#include <string.h>

#include "rollout/rollout.h"

static tt_status init(tt_ctx *ctx, tt_schedule *s, double shift, int n,
                      const double *list, bool warp, int64_t context)
{
    return tt_schedule_init(ctx, s, shift, list, n, warp, context);
}
#define LIST(...) (int)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)), \
                  (const double[]){ __VA_ARGS__ }

static void refused(tt_ctx *ctx, const char *why, tt_status s)
{
    expect(strlen(tt_message(ctx)) > 0, "%s: no sentence", why);
    expect_status(s, TT_EINVAL, why);
}

int main(void)
{
    tt_ctx *ctx = test_begin("rollout/schedule");
    tt_schedule s;

    /* The warped default list, exactly (src/rollout/README.md). */
    expect_ok(init(ctx, &s, 5, LIST(1000, 750, 500, 250), true, 0), "default");
    const double want[] = { 1000, 937.5, 0x1.a0aaaap+9, 625 };
    expect_bits("warped steps", s.t, want, sizeof want);
    expect(s.sigma[0] == 1 && s.sigma[250] == 0.9375f
           && s.sigma[750] == 0.625f, "sigmas of the default steps");
    expect(tt_schedule_index(&s, 0) == 999, "t = 0 reads the last entry");
    expect(tt_schedule_index(&s, 625) == 750, "nearest entry of 625");
    expect(tt_schedule_index(&s, 2000) == 0, "beyond the table");

    /* halfway between two entries the first one counts */
    for (int i = 0; i < TT_TABLE; i++) s.timestep[i] = (float)(1000 - i);
    expect(tt_schedule_index(&s, 500.5) == 499, "first minimum");

    /* CausVid's warped configuration. */
    expect_ok(init(ctx, &s, 8, LIST(1000, 750, 500, 250), true, 0), "shift 8");
    expect(s.t[1] == 960 && fabs(s.t[2] - 888.8889) < 1e-4
           && fabs(s.t[3] - 727.2727) < 1e-4, "shift 8 steps");

    expect_ok(init(ctx, &s, 3, LIST(1000, 667, 333), false, 0), "not warped");
    expect(s.t[1] == 667, "taken as they are");

    refused(ctx, "empty", init(ctx, &s, 5, 0, want, true, 0));
    refused(ctx, "zero, warped", init(ctx, &s, 5, LIST(1000, 0), true, 5));
    refused(ctx, "fraction, warped", init(ctx, &s, 5, LIST(99.5), true, 0));
    refused(ctx, "increasing", init(ctx, &s, 5, LIST(500, 750), true, 0));
    refused(ctx, "repeated", init(ctx, &s, 5, LIST(500, 500), true, 0));
    refused(ctx, "above", init(ctx, &s, 5, LIST(1001), true, 0));
    refused(ctx, "negative", init(ctx, &s, 5, LIST(-1), false, 0));
    refused(ctx, "NaN", init(ctx, &s, 5, LIST((double)NAN), false, 0));
    refused(ctx, "shift 0", init(ctx, &s, 0, LIST(1000), true, 0));
    refused(ctx, "shift NaN", init(ctx, &s, NAN, LIST(1000), true, 0));
    refused(ctx, "context", init(ctx, &s, 5, LIST(1000), true, -1));
    /* 833.33 would be taken for the clean pass at 833. */
    refused(ctx, "taken for the clean pass",
            init(ctx, &s, 5, LIST(1000, 500), true, 833));
    refused(ctx, "0 at context noise 0",
            init(ctx, &s, 5, LIST(1000, 0), false, 0));
    return test_end();
}
