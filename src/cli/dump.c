/* dump.c: --dump, the tensors inside as a file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/dump.h"

#include <fnmatch.h>

static void on_tap(void *user, const char *path, tt_dtype dtype, int rank,
                   const int64_t *dim, const void *data)
{
    dump *d = user;
    if (d->filter && fnmatch(d->filter, path, 0)) return;
    tt_st_add(d->writer, path, dtype, rank, dim, data);
}

tt_status dump_open(tt_ctx *ctx, dump *d, const char *path, const char *filter)
{
    if (!path || d->writer || ctx->status) return ctx->status;
    d->filter = filter;
    TT_TRY(tt_st_create(ctx, &d->writer, path));
    ctx->tap = on_tap;
    ctx->tap_user = d;
    return TT_OK;
}

tt_status dump_close(tt_ctx *ctx, dump *d)
{
    if (!d->writer) return ctx->status;
    ctx->tap = NULL;
    if (ctx->status) tt_st_abort(d->writer);
    else tt_st_finish(d->writer);
    d->writer = NULL;
    return ctx->status;
}
