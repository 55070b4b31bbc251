/* pixels.c: decoder values to bytes and back, RGB to YCbCr and back.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Self-Forcing inference scripts: clamp, halve and shift, truncate. */
#include "io/video.h"

static uint8_t byte_from_real(tt_real v)
{
    float x = (float)v;
    if (!(x >= -1.0f)) x = -1.0f; /* NaN too */
    if (x > 1.0f) x = 1.0f;
    float unit = 0.5f * x + 0.5f; /* in [0, 1] after the clamp above */
    return (uint8_t)(255.0f * unit);
}

void tt_rgb8_from_real(uint8_t *rgb, const tt_real *v, int64_t pixels,
                       int64_t pixel_stride, int64_t channel_stride)
{
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < 3; c++)
            rgb[3 * i + c] =
                byte_from_real(v[i * pixel_stride + c * channel_stride]);
}

/* base + (r R + g G + b B) / 2^16, rounded half up; the result is in range
 * for every R, G, B, and the sum before the shift is never negative. */
static uint8_t mix(int base, int r, int g, int b, const uint8_t *rgb)
{
    int sum = (base << 16) + r * rgb[0] + g * rgb[1] + b * rgb[2] + 32768;
    return (uint8_t)(sum >> 16);
}

void tt_yuv_from_rgb(uint8_t *y, uint8_t *cb, uint8_t *cr, const uint8_t *rgb,
                     int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++, rgb += 3) {
        y[i] = mix(16, 16829, 33039, 6416, rgb);
        cb[i] = mix(128, -9714, -19070, 28784, rgb);
        cr[i] = mix(128, 28784, -24103, -4681, rgb);
    }
}

/* (y + r Cr + ...) / 2^16 + 1/2, clamped to a byte. */
static uint8_t unmix(int sum)
{
    if (sum < 0) return 0;
    sum = (sum + 32768) >> 16;
    return (uint8_t)(sum > 255 ? 255 : sum);
}

void tt_rgb_from_yuv(uint8_t *rgb, const uint8_t *y, const uint8_t *cb,
                     const uint8_t *cr, int64_t pixels, bool full)
{
    /* 65536 * {255/219, 1.402 a, 0.344136 a, 0.714136 a, 1.772 a} with
     * a = 255/224, and with 1 and 1 in the full range */
    static const int weight[2][5] = {{76309, 104597, 25675, 53279, 132201},
                                     {65536, 91881, 22554, 46802, 116130}};
    const int *w = weight[full];
    for (int64_t i = 0; i < pixels; i++, rgb += 3) {
        const int luma = w[0] * (y[i] - (full ? 0 : 16));
        const int b = cb[i] - 128, r = cr[i] - 128;
        rgb[0] = unmix(luma + w[1] * r);
        rgb[1] = unmix(luma - w[2] * b - w[3] * r);
        rgb[2] = unmix(luma + w[4] * b);
    }
}

void tt_real_from_rgb8(tt_real *v, const uint8_t *rgb, int64_t n)
{
    const tt_real half = (tt_real)0.5;
    for (int64_t i = 0; i < n; i++)
        v[i] = ((tt_real)rgb[i] / 255 - half) / half;
}
