/* supervisor.c: there is one process, in which a backend runs too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/isolate/mirror.h"

tt_status tt_validate_isolated(tt_ctx *ctx, tt_report *r, tt_isolated_fn work,
                               void *user, double seconds)
{
    (void)seconds;
    TT_TRY(ctx->status);
    tt_report_note(r, "the backend ran in this process: this system has no "
                   "other");
    return work(ctx, r, user);
}
