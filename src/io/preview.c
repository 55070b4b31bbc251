/* preview.c: a rough picture of latents without running the decoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Latents have about unit variance per channel. Each of the 16 channels gets
 * a fixed direction in (luminance, red-green, blue-yellow), spread so that no
 * two channels share one; the three sums are then turned into RGB. The table
 * is ours and not fitted to any decoder: it shows shapes, places and motion,
 * and makes drift of statistics visible, but its colours mean nothing. */
#include "tether/video.h"

enum { CHANNELS = 16, CENTRE = 128, GAIN = 20 };

/* weight[c] = luminance, red-green, blue-yellow, in quarters */
static const int8_t weight[CHANNELS][3] = {
    {4, 1, 0},  {3, -2, 1}, {-3, 0, 2}, {2, 3, -1},
    {-4, 1, 1}, {1, -1, 4}, {3, 2, 2},  {-2, 4, 0},
    {2, 0, -4}, {-1, -4, 1}, {4, -1, -2}, {-3, 2, -3},
    {1, 3, 3},  {-2, -3, -2}, {3, 1, -3}, {-1, 2, 4},
};

static uint8_t clamp_byte(tt_real v)
{
    if (!(v > 0)) return 0;
    return v < 255 ? (uint8_t)v : 255;
}

/* One latent pixel; its channels are `step` apart. */
static void project(uint8_t *rgb, const tt_real *z, int64_t C, int64_t step)
{
    tt_real s[3] = {0, 0, 0};
    for (int64_t c = 0; c < C; c++)
        for (int k = 0; k < 3; k++)
            s[k] += z[c * step] * weight[c % CHANNELS][k] / 4;
    rgb[0] = clamp_byte(CENTRE + GAIN * (s[0] + s[1]));
    rgb[1] = clamp_byte(CENTRE + GAIN * (s[0] - s[1] / 2));
    rgb[2] = clamp_byte(CENTRE + GAIN * (s[0] + s[2]));
}

void tt_latent_preview(uint8_t *rgb, const tt_real *x0, int64_t F, int64_t C,
                       int64_t h, int64_t w)
{
    const int64_t zoom = TT_PREVIEW_ZOOM;
    const int64_t row = 3 * F * w * zoom; /* bytes of a picture row */
    for (int64_t f = 0; f < F; f++)
        for (int64_t i = 0; i < h; i++)
            for (int64_t j = 0; j < w; j++) {
                uint8_t p[3];
                project(p, x0 + (f * C * h + i) * w + j, C, h * w);
                for (int64_t a = 0; a < zoom; a++)
                    for (int64_t b = 0; b < zoom; b++)
                        for (int k = 0; k < 3; k++)
                            rgb[(i * zoom + a) * row
                                + 3 * ((f * w + j) * zoom + b) + k] = p[k];
            }
}
