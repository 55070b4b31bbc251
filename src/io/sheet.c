/* sheet.c: a contact sheet, evenly spaced frames of a video in one PNG.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   cell i shows frame floor(i * (total-1) / (cells-1)), so the first
 *         and the last frame are always there. */
#include <string.h>

#include "io/video.h"

enum { CELLS_MAX = 12, GAP = 4, CELL_WIDTH_MIN = 200, CELL_WIDTH_MAX = 400 };

struct tt_sheet {
    tt_ctx *ctx;
    tt_arena mem;
    const char *path;
    const char *comment;        /* inside the PNG, or NULL                    */
    int64_t width, height;      /* of a frame                                 */
    int64_t total, seen;        /* frames                                     */
    int64_t cells, columns, filled;
    int64_t shrink, zoom;       /* one of them is 1                           */
    int64_t cell_w, cell_h;     /* pixels of a cell                           */
    int64_t sheet_w, sheet_h;
    uint8_t *rgb;               /* [sheet_h, sheet_w, 3]                      */
};

/* As square as possible, never taller than wide. */
static int64_t choose_columns(int64_t cells)
{
    int64_t c = 1;
    while (c * c < cells) c++;
    return c;
}

static void plan_cells(tt_sheet *s)
{
    s->cells = s->total < CELLS_MAX ? s->total : CELLS_MAX;
    s->columns = choose_columns(s->cells);
    s->shrink = (s->width + CELL_WIDTH_MAX - 1) / CELL_WIDTH_MAX;
    s->zoom = s->width < CELL_WIDTH_MIN
            ? (CELL_WIDTH_MIN + s->width - 1) / s->width : 1;
    if (s->zoom > 8) s->zoom = 8;
    if (s->shrink > s->height) s->shrink = s->height;
    s->cell_w = s->width / s->shrink * s->zoom;
    s->cell_h = s->height / s->shrink * s->zoom;
    int64_t rows = (s->cells + s->columns - 1) / s->columns;
    s->sheet_w = s->columns * (s->cell_w + GAP) + GAP;
    s->sheet_h = rows * (s->cell_h + GAP) + GAP;
}

tt_status tt_sheet_open(tt_ctx *ctx, tt_sheet **out, const char *path,
                        int64_t width, int64_t height, int64_t total_frames)
{
    *out = NULL;
    if (ctx->status) return ctx->status;
    if (width < 1 || height < 1 || width > TT_PICTURE_SIDE_MAX
        || height > TT_PICTURE_SIDE_MAX || total_frames < 1)
        return tt_fail(ctx, TT_EINVAL, "cannot make the contact sheet %s from "
                       "%lld frames of %lldx%lld pixels", path,
                       (long long)total_frames, (long long)width,
                       (long long)height);
    tt_arena mem = {0};
    tt_sheet *s = tt_alloc0(ctx, &mem, 1, sizeof *s, "contact sheet");
    if (!s) return ctx->status;
    s->ctx = ctx;
    s->width = width;
    s->height = height;
    s->total = total_frames;
    plan_cells(s);
    s->path = tt_strdup(ctx, &mem, path);
    s->rgb = tt_alloc(ctx, &mem, s->sheet_h * s->sheet_w, 3, "contact sheet");
    if (ctx->status) {
        tt_arena_free(&mem);
        return ctx->status;
    }
    memset(s->rgb, 24, (size_t)(3 * s->sheet_h * s->sheet_w));
    s->mem = mem;
    *out = s;
    return TT_OK;
}

static int64_t frame_of_cell(const tt_sheet *s, int64_t cell)
{
    return s->cells > 1 ? cell * (s->total - 1) / (s->cells - 1) : 0;
}

/* Mean of the shrink x shrink block at (i, j) of channel c, rounded. */
static uint8_t block_mean(const tt_sheet *s, const uint8_t *rgb, int64_t i,
                          int64_t j, int c)
{
    int64_t sum = 0, n = s->shrink;
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = 0; b < n; b++)
            sum += rgb[((i * n + a) * s->width + j * n + b) * 3 + c];
    return (uint8_t)((sum + n * n / 2) / (n * n));
}

static void paint_cell(tt_sheet *s, int64_t cell, const uint8_t *rgb)
{
    int64_t top = cell / s->columns * (s->cell_h + GAP) + GAP;
    int64_t left = cell % s->columns * (s->cell_w + GAP) + GAP;
    for (int64_t i = 0; i < s->cell_h; i++)
        for (int64_t j = 0; j < s->cell_w; j++)
            for (int c = 0; c < 3; c++)
                s->rgb[((top + i) * s->sheet_w + left + j) * 3 + c] =
                    block_mean(s, rgb, i / s->zoom, j / s->zoom, c);
}

void tt_sheet_comment(tt_sheet *s, const char *text)
{
    if (s) s->comment = text;
}

tt_status tt_sheet_frame(tt_sheet *s, const uint8_t *rgb)
{
    if (!s) return TT_EINVAL;
    if (s->ctx->status) return s->ctx->status;
    while (s->filled < s->cells && frame_of_cell(s, s->filled) == s->seen)
        paint_cell(s, s->filled++, rgb);
    s->seen++;
    return TT_OK;
}

tt_status tt_sheet_finish(tt_sheet *s)
{
    if (!s) return TT_EINVAL;
    tt_ctx *ctx = s->ctx;
    tt_png_write_text(ctx, s->path, s->rgb, s->sheet_w, s->sheet_h,
                      s->comment);
    tt_sheet_abort(s);
    return ctx->status;
}

void tt_sheet_abort(tt_sheet *s)
{
    if (!s) return;
    tt_arena mem = s->mem;
    tt_arena_free(&mem);
}
