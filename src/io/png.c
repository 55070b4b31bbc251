/* png.c: one picture to one PNG file, through stb_image_write.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * stb_image_write computes sizes in int: the bounds of video.h keep width,
 * height and 3*width*height far inside before it is called. */
#include "tether/outfile.h"
#include "tether/video.h"

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

typedef struct png_sink {
    tt_ctx *ctx;
    tt_out out;
} png_sink;

static void write_part(void *user, void *data, int size)
{
    png_sink *s = user;
    if (size > 0) tt_out_write(s->ctx, &s->out, data, (size_t)size);
}

tt_status tt_png_write(tt_ctx *ctx, const char *path, const uint8_t *rgb,
                       int64_t width, int64_t height)
{
    if (ctx->status) return ctx->status;
    if (width < 1 || height < 1 || width > TT_PICTURE_SIDE_MAX
        || height > TT_PICTURE_SIDE_MAX
        || width * height > TT_PICTURE_AREA_MAX)
        return tt_fail(ctx, TT_EINVAL, "cannot write %s: a picture of %lldx"
                       "%lld pixels is outside what PNG output takes (sides "
                       "1 to %d, at most %lld pixels)", path,
                       (long long)width, (long long)height,
                       TT_PICTURE_SIDE_MAX, (long long)TT_PICTURE_AREA_MAX);
    png_sink s = {.ctx = ctx};
    TT_TRY(tt_out_open(ctx, &s.out, path));
    if (!stbi_write_png_to_func(write_part, &s, (int)width, (int)height, 3,
                                rgb, (int)(3 * width)))
        tt_fail(ctx, TT_ENOMEM, "cannot write %s: out of memory while "
                "compressing %lldx%lld pixels", path, (long long)width,
                (long long)height);
    return tt_out_finish(ctx, &s.out);
}
