/* init.c: a context begins, with the first operator table of the build.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Everything else of the context is core/context.c; core calls no operator. */
#include "core/context.h"

#include <fenv.h>
#include <string.h>

#include "core/fma.h"
#include "core/parallel.h"
#include "ops/backend.h"
#include "core/threads.h"

/* The arithmetic must be IEEE: nearest-even, subnormals kept, no contraction,
 * and every operation that the library takes from elsewhere right.
 * A shared library built with -ffast-math can set flush-to-zero at load. */
static tt_status init_check_arithmetic(tt_ctx *ctx)
{
    if (fegetround() != FE_TONEAREST)
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "the rounding mode is not round-to-nearest");
    volatile float tiny = 1.17549435e-38f;
    volatile float half = tiny * 0.5f;
    if (half == 0.0f || half + half != tiny)
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "subnormal numbers are flushed to zero (FTZ/DAZ is "
                       "set, perhaps by a library built with -ffast-math)");
    volatile double a = 1.0 + 0x1p-30, b = 1.0 - 0x1p-30;
    double x = a, y = b;
    if (x * y - 1.0 != 0.0)   /* fused, it would be -2^-60 */
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "this build contracts a*b+c into fused operations; "
                       "build with -ffp-contract=off");
    const char *wrong = fma_wrong(&fma_here);
    if (wrong)
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "%s of this build does not round as IEEE 754 says, so "
                       "its results would be no reference; build with another "
                       "compiler or C library", wrong);
    return TT_OK;
}

tt_status tt_ctx_init(tt_ctx *ctx)
{
    memset(ctx, 0, sizeof *ctx);
    threads_watch_forks();
    ctx->ops = tt_ops_default();
    ctx->nthreads = tt_cores_find("").threads;
    return init_check_arithmetic(ctx);
}
