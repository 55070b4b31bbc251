/* rope_table.c: angles of the rotary embedding.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Wan2.1 wan/modules/model.py rope_params: each axis has its own ladder
 *         of frequencies over its own number of pairs. */
#include "tether/mathfn.h"
#include "tether/ops.h"

tt_status tt_rope_make(tt_ctx *ctx, tt_arena *a, tt_rope_table *out, int64_t D,
                       int64_t npos)
{
    int64_t c = D / 2;
    if (D <= 0 || D % 2 || npos <= 0)
        return tt_fail(ctx, TT_EINVAL, "a rotary table needs heads of even "
                       "width and at least one position, not %lld and %lld",
                       (long long)D, (long long)npos);
    double *cs = tt_alloc(ctx, a, npos * c, sizeof *cs, "the rotary table");
    double *sn = tt_alloc(ctx, a, npos * c, sizeof *sn, "the rotary table");
    if (!sn) return ctx->status;
    int64_t n[3] = {c - 2 * (c / 3), c / 3, c / 3};
    for (int64_t axis = 0, j0 = 0; axis < 3; j0 += n[axis], axis++)
        for (int64_t j = 0; j < n[axis]; j++) {
            double theta = tt_pow(10000.0, -((double)j / (double)n[axis]));
            for (int64_t p = 0; p < npos; p++)
                tt_sincos((double)p * theta, &sn[p * c + j0 + j],
                          &cs[p * c + j0 + j]);
        }
    *out = (tt_rope_table){.cos = cs, .sin = sn, .npos = npos,
                           .pairs = {n[0], n[1], n[2]}};
    return TT_OK;
}
