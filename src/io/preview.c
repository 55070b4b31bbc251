/* preview.c: a rough picture of latents without running the decoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Latents have about unit variance per channel. Each of the 16 channels gets
 * a fixed direction in (luminance, red-green, blue-yellow), spread so that no
 * two channels share one; the three sums are then turned into RGB. The table
 * is ours and not fitted to any decoder: it shows shapes, places and motion,
 * and makes drift of statistics visible, but its colours mean nothing. */
#include <string.h>

#include "io/video.h"

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
static void preview_project(uint8_t *rgb, const tt_real *z, int64_t C,
                            int64_t step)
{
    tt_real s[3] = {0, 0, 0};
    for (int64_t c = 0; c < C; c++)
        for (int k = 0; k < 3; k++)
            s[k] += z[c * step] * weight[c % CHANNELS][k] / 4;
    rgb[0] = clamp_byte(CENTRE + GAIN * (s[0] + s[1]));
    rgb[1] = clamp_byte(CENTRE + GAIN * (s[0] - s[1] / 2));
    rgb[2] = clamp_byte(CENTRE + GAIN * (s[0] + s[2]));
}

/* Frames that fit with this zoom, up to F; fills the layout. */
static int64_t lay_out(tt_preview *p, int64_t F, int64_t h, int64_t w,
                       int64_t zoom)
{
    const int64_t H = h * zoom, W = w * zoom;
    int64_t rows = TT_PICTURE_SIDE_MAX / H, columns = TT_PICTURE_SIDE_MAX / W;
    if (rows < 1 || columns < 1 || H * W > TT_PICTURE_AREA_MAX) return 0;
    if (columns > F) columns = F;
    while (columns > 1 && columns * W * H > TT_PICTURE_AREA_MAX) columns--;
    if (rows > TT_PICTURE_AREA_MAX / (columns * W * H))
        rows = TT_PICTURE_AREA_MAX / (columns * W * H);
    const int64_t needed = (F + columns - 1) / columns;
    if (rows > needed) rows = needed;
    *p = (tt_preview){.frames = F < rows * columns ? F : rows * columns,
                      .columns = columns, .zoom = zoom,
                      .width = columns * W, .height = rows * H};
    return p->frames;
}

tt_preview tt_preview_layout(int64_t F, int64_t h, int64_t w)
{
    tt_preview p = {0};
    for (int64_t zoom = TT_PREVIEW_ZOOM; zoom >= 1; zoom--)
        if (lay_out(&p, F, h, w, zoom) == F) break;
    return p;
}

void tt_latent_preview(uint8_t *rgb, const tt_preview *p, const tt_real *x0,
                       int64_t C, int64_t h, int64_t w)
{
    const int64_t zoom = p->zoom, row = 3 * p->width; /* bytes */
    memset(rgb, 0, (size_t)(row * p->height));
    for (int64_t f = 0; f < p->frames; f++) {
        uint8_t *cell = rgb + f / p->columns * h * zoom * row
                      + f % p->columns * w * zoom * 3;
        for (int64_t i = 0; i < h; i++)
            for (int64_t j = 0; j < w; j++) {
                uint8_t c[3];
                preview_project(c, x0 + (f * C * h + i) * w + j, C, h * w);
                for (int64_t a = 0; a < zoom; a++)
                    for (int64_t b = 0; b < zoom; b++)
                        memcpy(cell + (i * zoom + a) * row
                               + 3 * (j * zoom + b), c, 3);
            }
    }
}
