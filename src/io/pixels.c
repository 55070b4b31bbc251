/* pixels.c: from decoder values to bytes, from RGB to YCbCr.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  Self-Forcing inference scripts: clamp, halve and shift, truncate. */
#include "tether/video.h"

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
