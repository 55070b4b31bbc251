/* ffmpeg.c: no program is started here, so that none is found.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/ffmpeg.h"

bool ffmpeg_found(void)
{
    return false;
}

tt_status ffmpeg_start(tt_ctx *ctx, ffmpeg *e, const char *verb,
                       const char *path, const char *const *argv)
{
    (void)e, (void)argv;
    return tt_fail(ctx, TT_EUNSUPPORTED, "cannot %s %s: this system starts no "
                   "other program, and ffmpeg is one", verb, path);
}

tt_status ffmpeg_wait(tt_ctx *ctx, const ffmpeg *e, short events)
{
    (void)e, (void)events;
    return ctx->status;
}

tt_status ffmpeg_finish(tt_ctx *ctx, ffmpeg *e)
{
    (void)e;
    return ctx->status;
}

void ffmpeg_leave(ffmpeg *e)
{
    (void)e;
}

void ffmpeg_abort(ffmpeg *e)
{
    (void)e;
}
