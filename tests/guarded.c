/* guarded.c: the program, whose contexts begin on the guard device.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Linked with --wrap for the two functions that choose the operators of a
 * context: build/FLAVOUR/tether-guard is all of the program with what these
 * add. Where values cannot be guarded it says so and ends with 99. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/guard.h"

#define WRAPPED(name) WRAPPED_(name)
#define WRAPPED_(name) __wrap_##name
#define REAL(name) REAL_(name)
#define REAL_(name) __real_##name

tt_status REAL(tt_ctx_init)(tt_ctx *ctx);
tt_status WRAPPED(tt_ctx_init)(tt_ctx *ctx);
tt_status REAL(tt_ops_use)(tt_ctx *ctx, const char *name);
tt_status WRAPPED(tt_ops_use)(tt_ctx *ctx, const char *name);

static tt_status guarded(tt_ctx *ctx, tt_status s)
{
    if (s == TT_OK && !guard_install(ctx)) {
        fprintf(stderr, "tether-guard: this system cannot map memory twice\n");
        exit(99);
    }
    return s;
}

tt_status WRAPPED(tt_ctx_init)(tt_ctx *ctx)
{
    return guarded(ctx, REAL(tt_ctx_init)(ctx));
}

tt_status WRAPPED(tt_ops_use)(tt_ctx *ctx, const char *name)
{
    return guarded(ctx, REAL(tt_ops_use)(ctx, name));
}
