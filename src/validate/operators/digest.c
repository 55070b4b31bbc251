/* digest.c: what a backend computes, as SHA-256.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   inputs come from a seed and from exact operations, so that equal
 *         digests mean equal results on any machine. */
#include <stdio.h>

#include "io/io.h"
#include "validate/operators/opcalls.h"
#include "validate/operators/walk.h"

typedef struct digest {
    tt_ctx *ctx;
    tt_digest_fn fn;
    void *user;
} digest;

tt_status tt_digest_operators(tt_ctx *ctx, uint64_t seed, int64_t each,
                              tt_digest_fn fn, void *user)
{
    const tt_dtype real = sizeof(tt_real) == 8 ? TT_F64 : TT_F32;
    for (int64_t i = 0; i < OP_KINDS * each && !ctx->status; i++) {
        const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
        char name[64], sha[65];
        int64_t dim[TT_MAX_RANK];
        op_call q;
        op_sizes s;
        case_make(ctx, &q, &s, seed, each, i);
        void *y = ctx->status ? NULL
                              : tt_alloc(ctx, &ctx->scratch, call_count(&q),
                                         sizeof(double), "a result");
        call_run(ctx, ctx->ops, &q, y);
        if (!ctx->status) {
            const int rank = call_shape(&q, dim);
            const tt_tensor t = tt_tensor_make(
                y, call_out_is_double(&q) ? TT_F64 : real, rank, dim);
            snprintf(name, sizeof name, "op_%s_%lld", op_name(q.kind),
                     (long long)(i % each));
            if (!tt_tensor_digest(ctx, sha, &t)) fn(user, name, "y", sha);
        }
        tt_arena_reset(&ctx->scratch, mark);
        tt_check_interrupt(ctx);
    }
    return ctx->status;
}

/* What is kept of a run: a few hundred tensors of its many thousand. */
#define WANTED "*prompt_embeds,*context,*/x0,*grab.score,*grab.keep,*rgb/*,"   \
               "*latent"

static void digest_on_tap(void *user, const char *path, tt_dtype dtype,
                          int rank, const int64_t *dim, const void *data)
{
    digest *d = user;
    char sha[65];
    if (!tt_name_chosen(WANTED, path)) return;
    const tt_tensor t = tt_tensor_make(data, dtype, rank, dim);
    if (!tt_tensor_digest(d->ctx, sha, &t)) d->fn(d->user, "model", path, sha);
}

tt_status tt_digest_model(tt_ctx *ctx, const tt_model_parts *m,
                          tt_digest_fn fn, void *user)
{
    TT_TRY(ctx->status);
    digest d = {ctx, fn, user};
    const tt_tap_fn tap = ctx->tap;
    void *tap_user = ctx->tap_user;
    ctx->tap = digest_on_tap;
    ctx->tap_user = &d;
    walk_all(ctx, m);
    ctx->tap = tap;
    ctx->tap_user = tap_user;
    return ctx->status;
}
