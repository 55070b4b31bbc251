/* dump.c: --dump and --inject, the tensors inside into and out of a file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/generate/dump.h"

#include <math.h>
#include <string.h>

#include "team/team.h"
#include "validate/validate.h"

/* ---- --dump -------------------------------------------------------------- */

static void on_tap(void *user, const char *path, tt_dtype dtype, int rank,
                   const int64_t *dim, const void *data)
{
    dump *d = user;
    if (!tt_name_chosen(d->filter, path)) return;
    tt_st_add(d->writer, path, dtype, rank, dim, data);
    d->taken++;
}

/* A backend that computes its class bit by bit says so in the file. */
static const char *dump_class_of(const tt_ops *ops)
{
    static const char *const name[] = {"exact", "golden"};
    for (int i = 0; i < 2; i++)
        if (!strcmp(ops->name, name[i])) return tt_class_saved(ops->cls);
    return NULL;
}

tt_status dump_open(tt_ctx *ctx, dump *d, const char *path, const char *filter)
{
    if (!path || d->writer || ctx->status) return ctx->status;
    d->filter = filter;
    d->taken = 0;
    TT_TRY(tt_st_create(ctx, &d->writer, path));
    if (sizeof(tt_real) == 4 && dump_class_of(ctx->ops))
        tt_st_meta(d->writer, "class", dump_class_of(ctx->ops));
    ctx->tap = on_tap;
    ctx->tap_user = d;
    ctx->tap_cache = filter && strstr(filter, "cache") != NULL;
    return TT_OK;
}

static void no_tap(void *user, const char *path, tt_dtype dtype, int rank,
                   const int64_t *dim, const void *data)
{
    (void)user, (void)path, (void)dtype, (void)rank, (void)dim, (void)data;
}

void dump_follow(tt_ctx *ctx, const char *filter)
{
    ctx->tap = no_tap;
    ctx->tap_cache = filter && strstr(filter, "cache") != NULL;
}

tt_status dump_close(tt_ctx *ctx, dump *d)
{
    if (!d->writer) return ctx->status;
    ctx->tap = NULL;
    ctx->tap_cache = false;
    if (!ctx->status && d->filter && d->taken == 0)
        tt_fail(ctx, TT_EINVAL, "--dump-filter '%s' agrees with no name of "
                "this run, so nothing was dumped; names are like "
                "chunk.0/step.1/block.0/self_attn.q", d->filter);
    if (ctx->status) tt_st_abort(d->writer);
    else tt_st_finish(d->writer);
    d->writer = NULL;
    return ctx->status;
}

/* ---- --inject ------------------------------------------------------------ */

/* Overwrite n values; false, and nothing is changed, when one is not finite:
 * a run that goes on with NaN would say nothing about what follows. */
static bool take_reals(tt_ctx *ctx, void *data, tt_dtype dtype, int64_t n,
                       const tt_tensor *t)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const double *x = tt_read_double(ctx, &ctx->scratch, t);
    bool finite = x != NULL;
    for (int64_t i = 0; i < n && finite; i++) finite = isfinite(x[i]);
    for (int64_t i = 0; i < n && finite; i++)
        if (dtype == TT_F64) ((double *)data)[i] = x[i];
        else ((float *)data)[i] = (float)x[i];
    tt_arena_reset(&ctx->scratch, mark);
    return finite || ctx->status;
}

static void on_inject(void *user, const char *path, tt_dtype dtype, int rank,
                      const int64_t *dim, void *data)
{
    inject *j = user;
    char theirs[200], ours[200];
    int64_t n = 1;
    if (j->ctx->status || !tt_name_chosen(j->filter, path)) return;
    const tt_entry *e = tt_file_find(j->file, path);
    if (!e) return;
    for (int i = 0; i < rank; i++) n *= dim[i];
    const bool real = dtype == TT_F32 || dtype == TT_F64;
    if (!tt_shape_fits(&e->t, rank, dim)
        || tt_dtype_is_real(e->t.dtype) != real) {
        tt_warn(j->ctx, "%s: %s is %s %s, but the model has %s %s there; it "
                "was not injected", j->name, path, tt_dtype_name(e->t.dtype),
                tt_shape_string(theirs, sizeof theirs, e->t.rank, e->t.dim),
                tt_dtype_name(dtype),
                tt_shape_string(ours, sizeof ours, rank, dim));
        return;
    }
    if (real) {
        if (!take_reals(j->ctx, data, dtype, n, &e->t)) {
            tt_warn(j->ctx, "%s: %s holds NaN or infinity; it was not injected",
                    j->name, path);
            return;
        }
    } else if (dtype == TT_U8 && tt_dtype_size(e->t.dtype) == 1) {
        tt_gather(data, &e->t);
    } else {
        return; /* whole numbers that are only shown */
    }
    j->taken++;
}

tt_status inject_open(tt_ctx *ctx, inject *j, const char *path,
                      const char *filter)
{
    if (!path || ctx->status) return ctx->status;
    TT_TRY(tt_file_open(ctx, &j->file, path));
    j->ctx = ctx;
    j->name = path;
    j->filter = filter;
    ctx->inject = on_inject;
    ctx->inject_user = j;
    return TT_OK;
}

tt_status inject_close(tt_ctx *ctx, inject *j)
{
    if (!j->file) return ctx->status;
    ctx->inject = NULL;
    tt_file_close(j->file);
    j->file = NULL;
    if (!ctx->status && j->taken == 0 && tt_team_rank(ctx) == 0)
        return tt_fail(ctx, TT_EINVAL, "%s: no tensor of it was injected: no "
                       "name and shape agrees with this run%s", j->name,
                       j->filter ? " and --inject-filter" : "");
    return ctx->status;
}
