/* png.c: one picture to one PNG file, compressed by stb_image_write.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * stb_image_write computes sizes in int: the bounds of video.h keep width,
 * height and 3*width*height far inside before it is called. It goes on without
 * a look where memory is refused: ours leaves it by a jump instead, and frees
 * what it had. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "io/apng.h"

/* ---- memory of one picture ----------------------------------------------- */

/* In front of every block. */
typedef union cell {
    struct {
        union cell *before, *after;
        size_t capacity;
    } list;
    long double align;
} cell;

/* Thousands of small blocks, the lists after the hashes of three bytes, have
 * one size, which the longest list needs. They are cut from slabs, which are
 * blocks themselves, and go with them. */
enum { SMALL = 192, SLAB = 64 << 10 };
#define SMALL_CELLS ((SMALL + sizeof(cell) - 1) / sizeof(cell) + 1)

static _Thread_local struct {
    cell *first;
    cell *slab;                 /* the rest of the latest one                */
    size_t left;                /* cells of it                               */
    jmp_buf refused;
} pool;

static void link_cell(cell *c)
{
    c->list.before = NULL;
    c->list.after = pool.first;
    if (pool.first) pool.first->list.before = c;
    pool.first = c;
}

static void unlink_cell(cell *c)
{
    if (c->list.before) c->list.before->list.after = c->list.after;
    else pool.first = c->list.after;
    if (c->list.after) c->list.after->list.before = c->list.before;
}

static cell *large_block(cell *old, size_t n)
{
    if (old) unlink_cell(old);
    cell *c = realloc(old, n + sizeof *c);
    if (c || old) link_cell(c ? c : old);
    if (!c) longjmp(pool.refused, 1);
    c->list.capacity = n;
    return c;
}

static cell *small_block(void)
{
    if (pool.left < SMALL_CELLS) {
        pool.slab = large_block(NULL, SLAB) + 1;
        pool.left = SLAB / sizeof(cell);
    }
    cell *c = pool.slab;
    pool.slab += SMALL_CELLS;
    pool.left -= SMALL_CELLS;
    c->list.capacity = SMALL;
    return c;
}

static void *pool_realloc(void *p, size_t n)
{
    cell *old = p ? (cell *)p - 1 : NULL;
    if (old && n <= old->list.capacity) return p;
    if (old && old->list.capacity > SMALL) return large_block(old, n) + 1;
    cell *c = n <= SMALL ? small_block() : large_block(NULL, n);
    if (old) memcpy(c + 1, p, old->list.capacity);
    return c + 1;
}

static void pool_free(void *p)
{
    cell *c = p ? (cell *)p - 1 : NULL;
    if (!c || c->list.capacity <= SMALL) return;
    unlink_cell(c);
    free(c);
}

static void pool_empty(void)
{
    while (pool.first) pool_free(pool.first + 1);
    pool.left = 0;
}
#define STBIW_MALLOC(n) pool_realloc(NULL, n)
#define STBIW_REALLOC(p, n) pool_realloc(p, n)
#define STBIW_FREE(p) pool_free(p)

/* The vendored header is held to its own standards, not to ours. */
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wextra"
#endif
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#include "third_party/stb_image_write.h"
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* ---- pictures ------------------------------------------------------------ */

/* A whole PNG, to be freed. No part of the function below, whose variables a
 * jump must find where they were. */
__attribute__((noinline))
static uint8_t *png_compress(const uint8_t *rgb, int64_t width, int64_t height,
                             int64_t stride, int *size)
{
    uint8_t *p = stbi_write_png_to_mem(rgb, (int)stride, (int)width,
                                       (int)height, 3, size);
    uint8_t *whole = p ? malloc((size_t)*size) : NULL;
    if (whole) memcpy(whole, p, (size_t)*size);
    pool_empty();
    return whole;
}

/* The same; NULL where memory is refused. */
static uint8_t *try_compress(const uint8_t *rgb, int64_t width, int64_t height,
                             int64_t stride, int *size)
{
    if (!setjmp(pool.refused))
        return png_compress(rgb, width, height, stride, size);
    pool_empty();
    return NULL;
}

/* stb_image_write makes a whole PNG: signature, IHDR, one IDAT, IEND. */
uint8_t *png_deflate(const uint8_t **data, size_t *n, const uint8_t *rgb,
                     int64_t width, int64_t height, int64_t stride)
{
    enum { LENGTH_AT = 33, DATA_AT = 41 };
    int size = 0;
    uint8_t *p = try_compress(rgb, width, height, stride, &size);
    if (!p) return NULL;
    *data = p + DATA_AT;
    *n = 0;
    for (int i = 0; i < 4; i++) *n = *n << 8 | p[LENGTH_AT + i];
    return p;
}

tt_status tt_png_encode(tt_ctx *ctx, tt_arena *mem, uint8_t **out, size_t *n,
                        const uint8_t *rgb, int64_t width, int64_t height)
{
    int size = 0;
    *out = NULL;
    *n = 0;
    if (ctx->status) return ctx->status;
    if (width < 1 || height < 1 || width > TT_PICTURE_SIDE_MAX
        || height > TT_PICTURE_SIDE_MAX
        || width * height > TT_PICTURE_AREA_MAX)
        return tt_fail(ctx, TT_EINVAL, "a picture of %lldx%lld pixels is "
                       "outside what PNG output takes", (long long)width,
                       (long long)height);
    uint8_t *p = try_compress(rgb, width, height, 3 * width, &size);
    if (!p)
        return tt_fail(ctx, TT_ENOMEM, "out of memory while compressing %lldx"
                       "%lld pixels", (long long)width, (long long)height);
    *out = tt_alloc(ctx, mem, size, 1, "a PNG");
    if (*out) memcpy(*out, p, (size_t)size);
    *n = (size_t)size;
    free(p);
    return ctx->status;
}

tt_status tt_png_write(tt_ctx *ctx, const char *path, const uint8_t *rgb,
                       int64_t width, int64_t height)
{
    return tt_png_write_text(ctx, path, rgb, width, height, NULL);
}

tt_status tt_png_write_text(tt_ctx *ctx, const char *path, const uint8_t *rgb,
                            int64_t width, int64_t height, const char *text)
{
    tt_out out;
    const uint8_t *data;
    size_t n;
    if (ctx->status) return ctx->status;
    if (width < 1 || height < 1 || width > TT_PICTURE_SIDE_MAX
        || height > TT_PICTURE_SIDE_MAX
        || width * height > TT_PICTURE_AREA_MAX)
        return tt_fail(ctx, TT_EINVAL, "cannot write %s: a picture of %lldx"
                       "%lld pixels is outside what PNG output takes (sides "
                       "1 to %d, at most %lld pixels)", path,
                       (long long)width, (long long)height,
                       TT_PICTURE_SIDE_MAX, (long long)TT_PICTURE_AREA_MAX);
    TT_TRY(tt_out_open(ctx, &out, path));
    uint8_t *block = png_deflate(&data, &n, rgb, width, height, 3 * width);
    if (!block)
        tt_fail(ctx, TT_ENOMEM, "cannot write %s: out of memory while "
                "compressing %lldx%lld pixels", path, (long long)width,
                (long long)height);
    png_begin(ctx, &out, width, height);
    png_text(ctx, &out, text);
    if (block) png_chunk(ctx, &out, "IDAT", data, n);
    png_chunk(ctx, &out, "IEND", NULL, 0);
    free(block);
    return tt_out_finish(ctx, &out);
}
