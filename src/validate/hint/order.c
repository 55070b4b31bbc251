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
#define SPLIT 4096           /* parts that an axis may have                   */

/* Where element i takes its value from. */
typedef int64_t (*source_fn)(const void *p, int64_t i);

static void try_map(hint *h, source_fn from, const void *p, const char *what)
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

/* p: extent b of an axis, elements c of one of its indices; index j holds what
 * belongs to j - p[2], around the end where p[3], or to b - 1 - j. */
static int64_t from_along(const void *map, int64_t i)
{
    const int64_t *p = map, b = p[0], c = p[1], j = i / c % b;
    const int64_t from = p[2] == b ? b - 1 - j
                         : p[3] ? (j - p[2] + b) % b : j - p[2];
    return from < 0 || from >= b ? -1 : i + (from - j) * c;
}

static void along(hint *h, int axis)
{
    int64_t c = 1, b = h->dim[axis];
    for (int i = axis + 1; i < h->rank; i++) c *= h->dim[i];
    if (b < 2) return;
    char buf[24], what[128];
    const char *name = hint_axis(h, axis, true, buf, sizeof buf);
    snprintf(what, sizeof what, "%s in reverse order", name);
    try_map(h, from_along, (int64_t[]){b, c, b, 0}, what);
    for (int64_t k = 1; k < b && k <= 4096; k++)
        for (int around = b > 2; around >= 0; around--) {
            const int64_t by = 2 * k > b ? k - b : k;
            snprintf(what, sizeof what, "%s shifted by %lld%s", name,
                     (long long)by, around ? ", around the end" : "");
            try_map(h, from_along, (int64_t[]){b, c, by, around}, what);
        }
}

/* ---- axes in another order ----------------------------------------------- */

int64_t hint_axes_from(const hint_axes *a, int64_t i)
{
    int64_t at[AXES_MOST] = {0}, from = 0;
    for (int k = a->n - 1; k >= 0; k--) {
        at[a->order[k]] = i % a->dim[a->order[k]];
        i /= a->dim[a->order[k]];
    }
    for (int k = 0; k < a->n; k++) from = from * a->dim[k] + at[k];
    return from;
}

/* Does any axis of more than one index move? */
static bool moves(const hint_axes *a)
{
    int last = -1;
    for (int k = 0; k < a->n; k++) {
        if (a->dim[a->order[k]] == 1) continue;
        if (a->order[k] < last) return true;
        last = a->order[k];
    }
    return false;
}

/* "[4, 3] where [3, 4]" of the axes from the first to the last that moves. */
static void order_text(const hint_axes *a, char *out, size_t size)
{
    int lo = 0, hi = a->n - 1;
    size_t at = 0;
    while (a->order[lo] == lo) lo++;
    while (a->order[hi] == hi) hi--;
    if (hi == lo + 1 && a->dim[lo] == a->dim[hi]) {
        snprintf(out, size, "[%lld, %lld], exchanged, where [%lld, %lld]",
                 (long long)a->dim[hi], (long long)a->dim[lo],
                 (long long)a->dim[lo], (long long)a->dim[hi]);
        return;
    }
    for (int right = 0; right < 2; right++)
        for (int k = lo; k <= hi && at < size; k++)
            at += (size_t)snprintf(out + at, size - at, "%s%lld%s",
                k > lo ? ", " : right ? "] where [" : "[",
                (long long)a->dim[right ? k : a->order[k]],
                k == hi && right ? "]" : "");
}

static void tell_axes(hint_axes *a, const char *what, hint_axes_fn fn,
                      void *user)
{
    char order[80];
    if (!moves(a)) return;
    order_text(a, order, sizeof order);
    snprintf(a->what, sizeof a->what, what, order);
    fn(user, a);
}

/* What lies in the right order is read as if it lay in that of `a`. */
static void tell_read(const hint_axes *a, const char *what, hint_axes_fn fn,
                      void *user)
{
    hint_axes b = *a;
    for (int k = 0; k < a->n; k++) {
        b.dim[k] = a->dim[a->order[k]];
        b.order[a->order[k]] = k;
    }
    tell_axes(&b, what, fn, user);
}

/* All orders of the last n axes, the one of `a` first. */
static void orders(hint_axes *a, int n, const char *what, hint_axes_fn fn,
                   void *user)
{
    const int first = a->n - n;
    if (n < 2) {
        tell_axes(a, what, fn, user);
        if (a->both) tell_read(a, what, fn, user);
        return;
    }
    const hint_axes was = *a;
    for (int k = first; k < a->n; k++) {
        memcpy(a->order, was.order, sizeof a->order);
        a->order[first] = was.order[k];
        for (int j = first; j < k; j++) a->order[j + 1] = was.order[j];
        orders(a, n - 1, what, fn, user);
    }
    memcpy(a->order, was.order, sizeof a->order);
}

static hint_axes axes_of(int n, const int64_t *dim)
{
    hint_axes a = {.n = n};
    for (int k = 0; k < n; k++) a.dim[k] = dim[k], a.order[k] = k;
    return a;
}

#define AXES(...) axes_of(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
                          (int64_t[]){__VA_ARGS__})

/* The last axis is two, or three. */
static void channels_split(int64_t R, int64_t c, hint_axes_fn fn, void *user)
{
    for (int64_t f = 2; f < c; f++) {
        if (c % f) continue;
        hint_axes a = AXES(R, f, c / f);
        orders(&a, 2, f == 2 ? "interleaved pairs where halves of the channels "
               "belong" : 2 * f == c ? "halves of the channels where "
               "interleaved pairs belong" : "channels transposed: %s belongs",
               fn, user);
        orders(&a, 3, "axes transposed: %s belongs", fn, user);
    }
    for (int64_t f = 2; f < c; f++)
        for (int64_t g = 2; c % f == 0 && g < c / f; g++) {
            hint_axes a = AXES(R, f, g, c / f / g);
            if (c / f % g == 0)
                orders(&a, 3, "channels are in another order: %s belongs", fn,
                       user);
        }
}

/* Rows are frames, height and width. */
static void rows_split(int64_t R, int64_t c, hint_axes_fn fn, void *user)
{
    for (int64_t f = 2; f < R && f <= SPLIT; f++) {
        hint_axes a = AXES(f, R / f, 1, c), b = AXES(f, R / f, c);
        if (R % f) continue;
        a.order[0] = 1, a.order[1] = 0;
        tell_axes(&a, "rows are %s belongs (frames, height and width "
                  "transposed?)", fn, user);
        orders(&b, 2, "axes transposed: %s belongs", fn, user);
    }
    for (int64_t n = 2; n <= FRAMES && R / n > 3; n++)
        for (int64_t f = 2; R % n == 0 && f < R / n && f <= 512; f++) {
            hint_axes a = AXES(n, f, R / n / f, c);
            char what[96];
            if (R / n % f) continue;
            a.order[1] = 2, a.order[2] = 1;
            snprintf(what, sizeof what, "rows of each of %lld frames are %%s "
                     "belongs (tokens run down the columns)", (long long)n);
            tell_axes(&a, what, fn, user);
        }
}

void hint_patch_axes(int64_t rows, int64_t c, hint_axes_fn fn, void *user)
{
    for (int64_t f = 2; f <= FRAMES && c % 4 == 0; f++)
        for (int64_t r = 2; rows % f == 0 && r <= rows / f; r++) {
            hint_axes a = AXES(f, r, rows / f / r, c / 4, 2, 2);
            if (rows / f % r == 0)
                orders(&a, 6, "[frame, row, column, channel, y, x] is %s "
                       "belongs", fn, user);
        }
}

void hint_all_axes(int rank, const int64_t *dim, hint_axes_fn fn, void *user)
{
    int64_t R = 1;
    hint_axes a = axes_of(rank < AXES_MOST ? rank : AXES_MOST, dim);
    for (int i = 0; i < rank - 1; i++) R *= dim[i];
    if (rank < 1) return;
    const int64_t c = dim[rank - 1];
    a.both = true;
    if (rank <= 4)
        orders(&a, a.n, "axes transposed: %s belongs", fn, user);
    rows_split(R, c, fn, user);
    channels_split(R, c, fn, user);
}

static int64_t from_axes(const void *p, int64_t i)
{
    return hint_axes_from(p, i);
}

static void try_axes(void *user, const hint_axes *a)
{
    try_map(user, from_axes, a, a->what);
}

void hint_order(hint *h)
{
    hint_all_axes(h->rank, h->dim, try_axes, h);
    if (h->c % 2 == 0)
        try_map(h, from_along, (int64_t[]){2, 1, 2, 0}, "neighbouring channels "
                "exchanged");
    for (int i = 0; i < h->rank; i++) along(h, i);
}
