/* film.c: a small picture of every latent frame of a video, as one PNG.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Latent frame f is shown by video frame 4f, the last of those made from it.
 * A video that cannot be read has no film: a report is worth having without. */
#include "analyze/report.h"

#include <stdio.h>
#include <string.h>

#include "analyze/files.h"
#include "io/page.h"
#include "io/video.h"

enum { ACROSS = 16, FRAMES_MAX = 2048 };

typedef struct film {
    int64_t width, height;  /* of a picture                                   */
    int64_t rows, count;    /* pictures there are                             */
    uint8_t *rgb;           /* [rows height, ACROSS width, 3]                 */
} film;

static tt_status film_open(tt_ctx *ctx, tt_arena *mem, film *s,
                           const tt_video_in *v, int64_t frames, int64_t wide)
{
    const int64_t w = tt_video_in_width(v), h = tt_video_in_height(v);
    s->width = w < wide ? w : wide;
    s->height = h * s->width / w;
    if (s->height < 1) s->height = 1;
    if (s->height > 2 * wide) s->height = 2 * wide;
    s->rows = (frames + ACROSS - 1) / ACROSS;
    s->rgb = tt_alloc0(ctx, mem, s->rows * s->height * ACROSS * s->width, 3,
                       "a film");
    return ctx->status;
}

static tt_status put_frame(tt_ctx *ctx, tt_arena *mem, film *s,
                           const uint8_t *rgb, int64_t w, int64_t h)
{
    const int64_t row = s->count / ACROSS, column = s->count % ACROSS;
    uint8_t *small = tt_alloc(ctx, mem, s->width * s->height, 3, "a frame");
    if (!small) return ctx->status;
    TT_TRY(tt_rgb_resize(ctx, small, s->width, s->height, rgb, w, h));
    for (int64_t i = 0; i < s->height; i++)
        memcpy(s->rgb + 3 * ((row * s->height + i) * ACROSS + column)
                        * s->width,
               small + 3 * i * s->width, (size_t)(3 * s->width));
    s->count++;
    return TT_OK;
}

static tt_status film_read(tt_ctx *ctx, tt_arena *mem, film *s,
                           const char *path, int64_t frames, int64_t wide)
{
    tt_video_in *v;
    TT_TRY(tt_video_in_open(ctx, &v, path));
    const int64_t w = tt_video_in_width(v), h = tt_video_in_height(v);
    uint8_t *rgb = tt_alloc(ctx, mem, w * h, 3, "a frame");
    bool more = true;
    if (rgb && film_open(ctx, mem, s, v, frames, wide) == TT_OK)
        for (int64_t i = 0; s->count < frames && more
             && tt_video_in_frame(v, rgb, &more) == TT_OK && more; i++)
            if (i % 4 == 0 && put_frame(ctx, mem, s, rgb, w, h)) break;
    tt_video_in_close(v);
    return ctx->status;
}

static void film_write(FILE *f, tt_ctx *ctx, tt_arena *mem, const film *s)
{
    uint8_t *png;
    size_t n;
    if (tt_png_encode(ctx, mem, &png, &n, s->rgb, ACROSS * s->width,
                      s->rows * s->height)) return;
    fprintf(f, ",\n\"film\": {\"width\": %lld, \"height\": %lld, \"across\": %d"
            ", \"rows\": %lld, \"count\": %lld,\n\"picture\": "
            "\"data:image/png;base64,", (long long)s->width,
            (long long)s->height, ACROSS, (long long)s->rows,
            (long long)s->count);
    page_base64(f, png, n);
    fputs("\"}", f);
}

void report_film(FILE *f, tt_ctx *ctx, const tt_recording *r, int64_t wide)
{
    tt_arena mem = {0};
    film s = {0};
    const int64_t n = r->latents ? r->n : r->frames; /* a run goes on */
    if (!r->video || !files_exist(r->video) || n < 1 || n > FRAMES_MAX) return;
    if (film_read(ctx, &mem, &s, r->video, n, wide)) {
        tt_warn(ctx, "%s: no frames in the report: %s", r->video,
                tt_message(ctx));
        tt_clear(ctx);
    } else if (s.count) {
        film_write(f, ctx, &mem, &s);
    }
    tt_arena_free(&mem);
}
