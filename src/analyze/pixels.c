/* pixels.c: numbers of frames that need no network.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  VBench temporal_flickering: mean absolute difference of consecutive
 *         uint8 frames over pixels and channels. Sums are exact integers. The
 *         other numbers are proxies of our own and belong to no benchmark. */
#include <math.h>
#include <stdlib.h>

#include "analyze/measure.h"

static void channel(pixel_row *out, const uint8_t *rgb, int64_t n, int c)
{
    int64_t sum = 0, sq = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t v = rgb[3 * i + c];
        sum += v;
        sq += v * v;
    }
    double mean = (double)sum / (double)n;
    double spread = ((double)sq - mean * (double)sum) / (double)n;
    out->mean[c] = mean;
    out->sd[c] = spread > 0 ? sqrt(spread) : 0;
}

static double saturation(const uint8_t *rgb, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++, rgb += 3) {
        int hi = rgb[0] > rgb[1] ? rgb[0] : rgb[1];
        int lo = rgb[0] < rgb[1] ? rgb[0] : rgb[1];
        if (rgb[2] > hi) hi = rgb[2];
        if (rgb[2] < lo) lo = rgb[2];
        if (hi) sum += (double)(hi - lo) / hi;
    }
    return sum / (double)n;
}

static int64_t grey(const uint8_t *rgb, int64_t i)
{
    return 299 * rgb[3 * i] + 587 * rgb[3 * i + 1] + 114 * rgb[3 * i + 2];
}

static double sharpness(const uint8_t *rgb, int64_t w, int64_t h)
{
    double sum = 0, sq = 0;
    const int64_t n = (w - 2) * (h - 2);
    if (w < 3 || h < 3) return 0;
    for (int64_t y = 1; y < h - 1; y++)
        for (int64_t x = 1; x < w - 1; x++) {
            int64_t i = y * w + x;
            double v = (double)(grey(rgb, i - 1) + grey(rgb, i + 1)
                                + grey(rgb, i - w) + grey(rgb, i + w)
                                - 4 * grey(rgb, i)) / 1000;
            sum += v;
            sq += v * v;
        }
    double mean = sum / (double)n, var = sq / (double)n - mean * mean;
    return var > 0 ? var : 0;
}

pixel_row pixel_measure(const uint8_t *rgb, const uint8_t *prev, int64_t w,
                        int64_t h)
{
    pixel_row out;
    const int64_t n = w * h;
    int64_t sum = 0;
    for (int c = 0; c < 3; c++) channel(&out, rgb, n, c);
    out.saturation = saturation(rgb, n);
    out.sharpness = sharpness(rgb, w, h);
    for (int64_t i = 0; prev && i < 3 * n; i++) sum += abs(rgb[i] - prev[i]);
    out.change = prev ? (double)sum / (double)(3 * n) : NAN;
    return out;
}

double pixel_flickering(const pixel_row *row, int64_t n)
{
    double sum = 0;
    for (int64_t i = 1; i < n; i++) sum += row[i].change;
    return n > 1 ? (255 - sum / (double)(n - 1)) / 255 : NAN;
}
