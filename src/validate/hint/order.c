/* order.c: right values in wrong places: transposed, shifted, reversed,
 * halves or pairs exchanged.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A mistake is a map: element i holds what belongs to map[i], or -1 at an edge
 * where anything may stand. A map is first tried on a few hundred elements
 * spread over the tensor; only one that holds there is tried on all. A file can
 * be made such that thousands hold there and nowhere else: after WHOLE trials
 * of all elements no further map is tried. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/hint/hint.h"

#define SAMPLES 256
#define WHOLE 64
#define FRAMES 21

/* Where element i takes its value from. */
typedef int64_t (*source_fn)(const int64_t *p, int64_t i);

static void try_map(hint *h, source_fn from, const int64_t *p,
                    const char *what)
{
    if (hint_settled(h) || h->maps >= WHOLE) return;
    const int64_t step = h->n > SAMPLES ? h->n / SAMPLES : 1;
    double left = 0, error = 0;
    int64_t moved = 0;
    for (int64_t s = 0; s < h->n; s += step) {
        /* a phase that wanders, so that no axis is sampled at one index */
        const int64_t i = s + (s / step * 7) % step;
        if (i >= h->n) break;            /* the last step may be shorter */
        const int64_t j = from(p, i);
        if (j < 0 || !isfinite(h->got[i]) || !isfinite(h->want[j])) continue;
        left += fabs(h->got[i] - h->want[j]);
        error += fabs(h->got[i] - h->want[i]);
        moved += j != i;
    }
    if (moved == 0 || !(left * 3 <= error)) return;
    int64_t edge = 0;
    h->maps++;
    for (int64_t i = 0; i < h->n; i++) {
        const int64_t j = from(p, i);
        h->trial[i] = j < 0 ? h->got[i] : h->want[j];
        edge += j < 0;
    }
    if (edge * 2 <= h->n) hint_try(h, h->trial, "%s", what);
}

/* The tensor is split as [a, b, c, d, e]; b and d change places. */
static int64_t from_transposed(const int64_t *p, int64_t i)
{
    const int64_t b = p[1], c = p[2], d = p[3], e = p[4];
    const int64_t ie = i % e, ib = i / e % b, ic = i / (e * b) % c;
    const int64_t id = i / (e * b * c) % d, ia = i / (e * b * c * d);
    return (((ia * b + ib) * c + ic) * d + id) * e + ie;
}

/* [a, b, c]: index j of b holds what belongs to j - p[3]. */
static int64_t from_shifted(const int64_t *p, int64_t i)
{
    const int64_t b = p[1], c = p[2], j = i / c % b - p[3];
    return j < 0 || j >= b ? -1 : i - p[3] * c;
}

static int64_t from_rotated(const int64_t *p, int64_t i)
{
    const int64_t b = p[1], c = p[2], j = i / c % b;
    return i + ((j + b - p[3]) % b - j) * c;
}

static int64_t from_reversed(const int64_t *p, int64_t i)
{
    const int64_t b = p[1], c = p[2], j = i / c % b;
    return i + (b - 1 - 2 * j) * c;
}

/* "rows", "channels", "axis 1": what an axis is called. */
static const char *axis_name(const hint *h, int axis, char *buf, size_t size)
{
    if (axis == h->rank - 1) return "channels";
    if (h->rank == 2 && axis == 0) return "rows";
    if (h->rank == 3 && h->q && h->q->kind != OP_CONV)
        return axis == 0 ? "tokens" : "heads";
    snprintf(buf, size, "axis %d", axis);
    return buf;
}

static void along(hint *h, int axis)
{
    int64_t a = 1, c = 1, b = h->dim[axis];
    for (int i = 0; i < axis; i++) a *= h->dim[i];
    for (int i = axis + 1; i < h->rank; i++) c *= h->dim[i];
    if (b < 2) return;
    char buf[24], what[128];
    const char *name = axis_name(h, axis, buf, sizeof buf);
    snprintf(what, sizeof what, "%s in reverse order", name);
    try_map(h, from_reversed, (int64_t[]){a, b, c}, what);
    if (b % 2 == 0 && b > 2) {
        snprintf(what, sizeof what, "the two halves of the %s are exchanged",
                 name);
        try_map(h, from_rotated, (int64_t[]){a, b, c, b / 2}, what);
    }
    for (int64_t k = 1; k < b && k <= 4096 && b > 2; k++) {
        snprintf(what, sizeof what, "%s shifted by %lld, around the end",
                 name, (long long)(2 * k > b ? k - b : k));
        try_map(h, from_rotated, (int64_t[]){a, b, c, k}, what);
    }
    for (int64_t k = 1; 2 * k <= b && k <= 4096; k++)
        for (int sign = 1; sign >= -1; sign -= 2) {
            snprintf(what, sizeof what, "%s shifted by %lld", name,
                     (long long)(sign * k));
            try_map(h, from_shifted, (int64_t[]){a, b, c, sign * k}, what);
        }
}

/* Exchange of two axes (the axes between them stay), seen as a transposition
 * of the memory. */
static void axes(hint *h)
{
    for (int x = 0; x < h->rank; x++)
        for (int y = x + 1; y < h->rank; y++) {
            int64_t p[5] = {1, h->dim[x], 1, h->dim[y], 1};
            for (int i = 0; i < x; i++) p[0] *= h->dim[i];
            for (int i = x + 1; i < y; i++) p[2] *= h->dim[i];
            for (int i = y + 1; i < h->rank; i++) p[4] *= h->dim[i];
            char bx[24], by[24], what[128];
            const char *nx = axis_name(h, x, bx, sizeof bx);
            const char *ny = axis_name(h, y, by, sizeof by);
            snprintf(what, sizeof what, "axes transposed: %s and %s "
                     "exchanged", nx, ny);
            try_map(h, from_transposed, p, what);
        }
    /* the last axis moved to the front, and the first to the end */
    if (h->rank < 3) return;
    const int64_t c = h->c, d0 = h->dim[0];
    try_map(h, from_transposed, (int64_t[]){1, h->n / c, 1, c, 1},
            "axes transposed: channels first instead of last");
    try_map(h, from_transposed, (int64_t[]){1, d0, 1, h->n / d0, 1},
            "axes transposed: the first axis is last");
}

/* Channels that are two axes: [H, D] written as [D, H], pairs as halves; the
 * same for rows, which may be [height, width]. */
static void split_axes(hint *h)
{
    const int64_t R = h->n / h->c, c = h->c;
    char what[192];
    for (int64_t f = 2; f < c; f++) {
        if (c % f) continue;
        if (f == 2) snprintf(what, sizeof what, "interleaved pairs where "
                             "halves of the channels belong");
        else if (2 * f == c) snprintf(what, sizeof what, "halves of the "
                                      "channels where interleaved pairs "
                                      "belong");
        else snprintf(what, sizeof what, "heads and channels exchanged: "
                      "[%lld, %lld] where [%lld, %lld] belongs",
                      (long long)(c / f), (long long)f, (long long)f,
                      (long long)(c / f));
        try_map(h, from_transposed, (int64_t[]){R, f, 1, c / f, 1}, what);
    }
    for (int64_t f = 2; f < R && f <= 4096; f++) {
        if (R % f) continue;
        snprintf(what, sizeof what, "rows are [%lld, %lld] where [%lld, %lld] "
                 "belongs (frames, height and width transposed?)",
                 (long long)(R / f), (long long)f, (long long)f,
                 (long long)(R / f));
        try_map(h, from_transposed, (int64_t[]){1, f, 1, R / f, c}, what);
    }
    for (int64_t n = 2; n <= FRAMES && R / n > 3; n++)
        for (int64_t f = 2; R % n == 0 && f < R / n && f <= 512; f++) {
            if (R / n % f) continue;
            snprintf(what, sizeof what, "rows of each of %lld frames are "
                     "[%lld, %lld] where [%lld, %lld] belongs (tokens run down "
                     "the columns)", (long long)n, (long long)(R / n / f),
                     (long long)f, (long long)f, (long long)(R / n / f));
            try_map(h, from_transposed, (int64_t[]){n, f, 1, R / n / f, c},
                    what);
        }
    if (c % 2) return;
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = h->want[i ^ 1];
    hint_try(h, h->trial, "neighbouring channels exchanged");
}

void hint_order(hint *h)
{
    axes(h);
    split_axes(h);
    for (int i = 0; i < h->rank; i++) along(h, i);
}
