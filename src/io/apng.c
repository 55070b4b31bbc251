/* apng.c: animated PNG: a picture every browser shows moving.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  PNG (third edition), clauses 5 and 11: acTL, fcTL, fdAT.
 * Model   of a frame only the smallest rectangle that has changed is written;
 *         what lies outside it stays. One that has not changed at all writes
 *         one pixel again: every frame has its time.
 * Holds   a file without its IEND, or with the 0 frames it begins with, is no
 *         animation: it cannot look finished before it is. */
#include "io/apng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/picture.h"

static void put32(uint8_t *p, uint32_t x)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(x >> (24 - 8 * i));
}

static void put16(uint8_t *p, int x)
{
    p[0] = (uint8_t)(x >> 8 & 255);
    p[1] = (uint8_t)(x & 255);
}

/* ---- chunks -------------------------------------------------------------- */

tt_status png_chunk(tt_ctx *ctx, tt_out *out, const char *type,
                    const uint8_t *data, size_t n)
{
    uint8_t head[8], tail[4];
    put32(head, (uint32_t)n);
    memcpy(head + 4, type, 4);
    uint32_t crc = picture_crc32(0, head + 4, 4);
    put32(tail, picture_crc32(crc, data, n));
    tt_out_write(ctx, out, head, sizeof head);
    tt_out_write(ctx, out, data, n);
    return tt_out_write(ctx, out, tail, sizeof tail);
}

tt_status png_begin(tt_ctx *ctx, tt_out *out, int64_t width, int64_t height)
{
    static const uint8_t magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a,
                                     '\n'};
    uint8_t head[13] = {0};
    put32(head, (uint32_t)width);
    put32(head + 4, (uint32_t)height);
    head[8] = 8; /* bits per sample */
    head[9] = 2; /* red, green, blue */
    tt_out_write(ctx, out, magic, sizeof magic);
    return png_chunk(ctx, out, "IHDR", head, sizeof head);
}

/* tEXt is Latin-1, which programs that look for `parameters` all read; what is
 * not ASCII goes into iTXt, which is UTF-8. */
tt_status png_text(tt_ctx *ctx, tt_out *out, const char *text)
{
    static const char key[] = "parameters";     /* with the NUL that ends it */
    static const uint8_t plain[4] = {0};  /* not compressed, no language */
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    bool ascii = true;
    if (!text || ctx->status) return ctx->status;
    for (const char *c = text; *c; c++) ascii = ascii && !(*c & 0x80);
    const size_t extra = ascii ? 0 : sizeof plain, n = strlen(text);
    uint8_t *data = tt_alloc(ctx, &ctx->scratch,
                             (int64_t)(sizeof key + extra + n), 1, "text");
    if (data) {
        memcpy(data, key, sizeof key);
        memcpy(data + sizeof key, plain, extra);
        memcpy(data + sizeof key + extra, text, n);
        png_chunk(ctx, out, ascii ? "tEXt" : "iTXt", data,
                  sizeof key + extra + n);
    }
    tt_arena_reset(&ctx->scratch, mark);
    return ctx->status;
}

/* ---- the animation ------------------------------------------------------- */

enum { CONTROL_AT = 33 }; /* acTL: after the signature and IHDR */

static tt_status put_control(tt_ctx *ctx, tt_out *out, int64_t frames)
{
    uint8_t data[8] = {0}; /* plays: 0 is for ever */
    put32(data, (uint32_t)frames);
    return png_chunk(ctx, out, "acTL", data, sizeof data);
}

tt_status apng_begin(tt_ctx *ctx, tt_arena *mem, apng *a, tt_out *out,
                     const tt_video_format *f)
{
    *a = (apng){.width = f->width, .height = f->height, .fps = f->fps};
    a->last = tt_alloc(ctx, mem, a->width * a->height, 3, "a frame");
    TT_TRY(png_begin(ctx, out, a->width, a->height));
    TT_TRY(put_control(ctx, out, 0));
    return png_text(ctx, out, f->comment);
}

typedef struct area {
    int64_t x, y, width, height;
} area;

/* What differs from the frame before: all of the first. */
static area apng_changed(const apng *a, const uint8_t *rgb)
{
    const int64_t w = a->width, row = 3 * w;
    int64_t x0 = w, x1 = 0, y0 = a->height, y1 = 0;
    if (!a->frames) return (area){0, 0, w, a->height};
    for (int64_t y = 0; y < a->height; y++) {
        const uint8_t *p = rgb + y * row, *q = a->last + y * row;
        if (!memcmp(p, q, (size_t)row)) continue;
        int64_t l = 0, r = w;
        while (!memcmp(p + 3 * l, q + 3 * l, 3)) l++;
        while (!memcmp(p + 3 * (r - 1), q + 3 * (r - 1), 3)) r--;
        if (l < x0) x0 = l;
        if (r > x1) x1 = r;
        if (y < y0) y0 = y;
        y1 = y + 1;
    }
    if (!y1) return (area){0, 0, 1, 1};
    return (area){x0, y0, x1 - x0, y1 - y0};
}

static tt_status put_frame_control(tt_ctx *ctx, apng *a, tt_out *out,
                                   const area *r)
{
    uint8_t data[26] = {0}; /* dispose: leave; blend: replace */
    put32(data, a->sequence++);
    put32(data + 4, (uint32_t)r->width);
    put32(data + 8, (uint32_t)r->height);
    put32(data + 12, (uint32_t)r->x);
    put32(data + 16, (uint32_t)r->y);
    put16(data + 20, 1); /* shown for 1/fps seconds */
    put16(data + 22, a->fps);
    return png_chunk(ctx, out, "fcTL", data, sizeof data);
}

/* The stream of a later frame, after its sequence number. */
static tt_status put_data(tt_ctx *ctx, apng *a, tt_out *out,
                          const uint8_t *data, size_t n)
{
    if (!a->frames) return png_chunk(ctx, out, "IDAT", data, n);
    uint8_t *p = malloc(n + 4);
    if (!p)
        return tt_fail(ctx, TT_ENOMEM, "cannot write %s: out of memory for a "
                       "frame", out->path);
    put32(p, a->sequence++);
    memcpy(p + 4, data, n);
    png_chunk(ctx, out, "fdAT", p, n + 4);
    free(p);
    return ctx->status;
}

tt_status apng_frame(tt_ctx *ctx, apng *a, tt_out *out, const uint8_t *rgb)
{
    const area r = apng_changed(a, rgb);
    const uint8_t *data = NULL;
    size_t n = 0;
    TT_TRY(put_frame_control(ctx, a, out, &r));
    uint8_t *block = png_deflate(&data, &n, rgb + 3 * (r.y * a->width + r.x),
                                 r.width, r.height, 3 * a->width);
    if (!block)
        return tt_fail(ctx, TT_ENOMEM, "cannot write %s: out of memory while "
                       "compressing a frame", out->path);
    put_data(ctx, a, out, data, n);
    free(block);
    memcpy(a->last, rgb, (size_t)(3 * a->width * a->height));
    a->frames++;
    return ctx->status;
}

tt_status apng_end(tt_ctx *ctx, apng *a, tt_out *out)
{
    TT_TRY(png_chunk(ctx, out, "IEND", NULL, 0));
    if (fseek(out->file, CONTROL_AT, SEEK_SET))
        return tt_fail(ctx, TT_EIO, "cannot write %s: %s", out->path,
                       strerror(errno));
    return put_control(ctx, out, a->frames);
}
