/* report_strips.c: frames of several videos at the same times.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every video is one picture, COLUMNS frames wide, under the name of its run;
 * the same column is the same moment in all of them. What a shorter video does
 * not have stays empty. A video that cannot be read has no strip. */
#include "analyze/report.h"

#include <stdio.h>
#include <string.h>

#include "analyze/files.h"
#include "tether/video.h"

enum { COLUMNS = 8, WIDE = 200, GAP = 4, RATE = 16 };

/* Frames of a video from its latents; 0: unknown. */
static int64_t frames_of(const tt_recording *r)
{
    return r->n > 0 ? 4 * (r->n - 1) + 1 : 0;
}

static int64_t frame_at(int column, int64_t total)
{
    return column * (total - 1) / (COLUMNS - 1);
}

typedef struct strip {
    int64_t width, height;  /* of a frame of it                               */
    uint8_t *rgb;           /* [height, COLUMNS (width + GAP) - GAP, 3]       */
    int columns;            /* frames there are                               */
    int64_t seen;           /* frames of the video                            */
} strip;

static int64_t strip_width(const strip *s)
{
    return COLUMNS * (s->width + GAP) - GAP;
}

/* Room for a strip of a video, on white. */
static tt_status strip_open(tt_ctx *ctx, tt_arena *mem, strip *s,
                            const tt_video_in *v)
{
    const int64_t w = tt_video_in_width(v), h = tt_video_in_height(v);
    s->width = w < WIDE ? w : WIDE;
    s->height = h * s->width / w;
    if (s->height < 1) s->height = 1;
    if (s->height > 4 * WIDE) s->height = 4 * WIDE;
    const int64_t n = strip_width(s) * s->height;
    s->rgb = tt_alloc(ctx, mem, n, 3, "a strip of frames");
    if (s->rgb) memset(s->rgb, 255, (size_t)(3 * n));
    return ctx->status;
}

static tt_status put_frame(tt_ctx *ctx, tt_arena *mem, strip *s,
                           const uint8_t *rgb, int64_t w, int64_t h)
{
    uint8_t *small = tt_alloc(ctx, mem, s->width * s->height, 3, "a frame");
    if (!small) return ctx->status;
    TT_TRY(tt_rgb_resize(ctx, small, s->width, s->height, rgb, w, h));
    for (int64_t i = 0; i < s->height; i++)
        memcpy(s->rgb + 3 * (i * strip_width(s)
                             + s->columns * (s->width + GAP)),
               small + 3 * i * s->width, (size_t)(3 * s->width));
    s->columns++;
    return TT_OK;
}

static tt_status strip_read(tt_ctx *ctx, tt_arena *mem, strip *s,
                            const char *path, int64_t total)
{
    tt_video_in *v;
    TT_TRY(tt_video_in_open(ctx, &v, path));
    const int64_t w = tt_video_in_width(v), h = tt_video_in_height(v);
    uint8_t *rgb = tt_alloc(ctx, mem, w * h, 3, "a frame");
    bool more = true;
    if (rgb && strip_open(ctx, mem, s, v) == TT_OK)
        while (s->columns < COLUMNS
               && tt_video_in_frame(v, rgb, &more) == TT_OK && more) {
            while (s->columns < COLUMNS && !ctx->status
                   && frame_at(s->columns, total) == s->seen)
                put_frame(ctx, mem, s, rgb, w, h);
            s->seen++;
        }
    tt_video_in_close(v);
    return ctx->status;
}

/* A strip as a figure with its name above. */
static void add_strip(text *t, const tt_recording *r, const strip *s)
{
    tt_arena mem = {0};
    uint8_t *png;
    size_t n;
    if (!tt_png_encode(t->ctx, &mem, &png, &n, s->rgb, strip_width(s),
                       s->height)) {
        text_add(t, "<figure><figcaption><b>");
        text_xml(t, r->label);
        text_add(t, "</b>");
        if (s->columns < COLUMNS)
            text_add(t, " ends after %.1f s", (double)s->seen / RATE);
        text_add(t, "</figcaption><img alt=\"frames of the video\" width=\""
                 "%lld\" height=\"%lld\" src=\"data:image/png;base64,",
                 (long long)strip_width(s), (long long)s->height);
        text_base64(t, png, n);
        text_add(t, "\"></figure>\n");
    }
    tt_arena_free(&mem);
}

static void add_times(text *t, int64_t total)
{
    text_add(t, "<div class=\"times\">");
    for (int k = 0; k < COLUMNS; k++)
        text_add(t, "<span>%.1f s</span>",
                 (double)frame_at(k, total) / RATE);
    text_add(t, "</div>\n");
}

/* Frames of all videos as far as they can be read: a report is worth having
 * without them. */
void report_strips(text *t, tt_ctx *ctx, tt_recording *const *run, int n)
{
    int64_t total = 0;
    bool begun = false;
    for (int i = 0; i < n; i++)
        if (frames_of(run[i]) > total) total = frames_of(run[i]);
    for (int i = 0; i < n && !ctx->status && total > 1; i++) {
        tt_arena mem = {0};
        strip s = {0};
        if (!run[i]->video || !files_exist(run[i]->video)) continue;
        if (strip_read(ctx, &mem, &s, run[i]->video, total)) {
            tt_warn(ctx, "%s: no frames in the report: %s", run[i]->video,
                    tt_message(ctx));
            tt_clear(ctx);
        } else if (s.columns) {
            if (!begun) {
                text_add(t, "<h2>The videos</h2>\n<p>The same moment stands in "
                         "the same column.</p>\n<div class=\"strips\"><div>\n");
                add_times(t, total);
            }
            begun = true;
            add_strip(t, run[i], &s);
        }
        tt_arena_free(&mem);
    }
    if (begun) text_add(t, "</div></div>\n");
}
