/* rope_table.c: angles of the rotary embedding.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Wan2.1 wan/modules/model.py rope_params: each axis has its own ladder
 *         of frequencies over its own number of pairs. */
#include "core/golden_names.h"
#include "../golden/golden.h"
#include "tether/mathfn.h"
#include "ops/ops.h"

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
    *out = (tt_rope_table){.cos = cs, .sin = sn, .npos = npos};
    for (int64_t j = 0; j < c; j++) {
        int axis;
        const double rate = rope_rate((int)D, (int)j, &axis);
        out->pairs[axis]++;
        for (int64_t p = 0; p < npos; p++)
            tt_sincos((double)p * rate, &sn[p * c + j], &cs[p * c + j]);
    }
    return TT_OK;
}
