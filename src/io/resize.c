/* resize.c: a picture at another size.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  the bilinear filter of Pillow on 8-bit pictures, which is what
 *         torchvision's Resize does with an image: a triangle whose half width
 *         is one output pixel when shrinking and one input pixel when
 *         enlarging, rows first, bytes in between, weights with 22 fractional
 *         bits. Same bytes.
 * Vectors tests/io/test_video_in.c (made with Pillow) */
#include <math.h>
#include <string.h>

#include "io/video.h"

enum { BITS = 22 };

/* Output position o is the sum of taps[o] input positions from first[o] on,
 * with weights weight[o * capacity ...]. */
typedef struct axis {
    int64_t capacity;
    int64_t *first, *taps;
    int32_t *weight;
    double *raw;
} axis;

static void axis_weights(axis *a, int64_t o, int64_t in, double ratio)
{
    const double stretch = ratio < 1 ? 1 : ratio;
    const double centre = ((double)o + 0.5) * ratio;
    int64_t begin = (int64_t)(centre - stretch + 0.5);
    int64_t end = (int64_t)(centre + stretch + 0.5);
    double sum = 0;
    if (centre - stretch + 0.5 < 0) begin = 0;
    if (end > in) end = in;
    for (int64_t i = begin; i < end; i++) {
        const double x = fabs(((double)i - centre + 0.5) * (1 / stretch));
        a->raw[i - begin] = x < 1 ? 1 - x : 0;
        sum += a->raw[i - begin];
    }
    a->first[o] = begin;
    a->taps[o] = end - begin;
    for (int64_t i = 0; i < end - begin; i++)
        a->weight[o * a->capacity + i] =
            (int32_t)(0.5 + a->raw[i] / sum * (1 << BITS));
}

static void axis_make(tt_ctx *ctx, axis *a, int64_t out, int64_t in)
{
    const double ratio = (double)in / (double)out;
    tt_arena *mem = &ctx->scratch;
    a->capacity = 2 * (int64_t)ceil(ratio < 1 ? 1 : ratio) + 1;
    a->first = tt_alloc(ctx, mem, out, sizeof *a->first, "resize");
    a->taps = tt_alloc(ctx, mem, out, sizeof *a->taps, "resize");
    a->raw = tt_alloc(ctx, mem, a->capacity, sizeof *a->raw, "resize");
    a->weight = tt_alloc(ctx, mem, out * a->capacity, sizeof *a->weight,
                         "resize");
    for (int64_t o = 0; o < out && !ctx->status; o++)
        axis_weights(a, o, in, ratio);
}

/* Along one axis: `lines` lines whose samples are `step` bytes apart. */
static void resize_line(uint8_t *out, const uint8_t *in, const axis *a,
                        int64_t n, int64_t step)
{
    for (int64_t o = 0; o < n; o++) {
        const uint8_t *p = in + a->first[o] * step;
        const int32_t *w = a->weight + o * a->capacity;
        int64_t sum = 1 << (BITS - 1);
        for (int64_t i = 0; i < a->taps[o]; i++, p += step) sum += *p * w[i];
        sum >>= BITS;
        out[o * step] = (uint8_t)(sum > 255 ? 255 : sum);
    }
}

tt_status tt_rgb_resize(tt_ctx *ctx, uint8_t *out, int64_t width,
                        int64_t height, const uint8_t *in, int64_t in_width,
                        int64_t in_height)
{
    axis x, y;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    uint8_t *half = tt_alloc(ctx, &ctx->scratch, width * in_height, 3,
                             "resize");
    axis_make(ctx, &x, width, in_width);
    axis_make(ctx, &y, height, in_height);
    if (!ctx->status) {
        for (int64_t i = 0; i < in_height; i++)
            for (int64_t c = 0; c < 3; c++)
                resize_line(half + 3 * i * width + c,
                            in + 3 * i * in_width + c, &x, width, 3);
        for (int64_t j = 0; j < 3 * width; j++)
            resize_line(out + j, half + j, &y, height, 3 * width);
    }
    tt_arena_reset(&ctx->scratch, mark);
    return ctx->status;
}
