/* rope.c: how a rotary embedding goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Angles are made anew from positions, since most mistakes are in them. */
#include <math.h>
#include <stdio.h>

#include "tether/mathfn.h"
#include "validate/hint/hint.h"

typedef struct fault {
    double base;
    int step[3];          /* added to the position of each axis               */
    int axis[3];          /* whose position turns each group of pairs         */
    bool halves;          /* pairs (j, j + D/2)                               */
    bool single;          /* angles in float32                                */
    bool even_split;      /* D/6 pairs for each axis                          */
    bool one_spectrum;    /* theta from the index over all pairs of the head  */
    bool by_row;          /* positions counted by token                       */
    double sign, factor;
    bool swap;            /* sin and cos exchanged                            */
} fault;

static const fault right = {.base = 10000, .axis = {0, 1, 2}, .sign = 1,
                            .factor = 1};

/* Angle of pair j of token t. */
static double angle(const op_call *q, const fault *f, int64_t t, int64_t j)
{
    const int64_t all = q->D / 2;
    int64_t n[3] = {q->table->pairs[0], q->table->pairs[1],
                    q->table->pairs[2]};
    if (f->even_split && all >= 3) {
        n[1] = n[2] = all / 3 + (all % 3 == 2);
        n[0] = all - n[1] - n[2];
    }
    int group = 0;
    int64_t at = j;
    while (group < 2 && at >= n[group]) at -= n[group++];
    double p = (double)q->pos[3 * t + f->axis[group]] + f->step[group];
    if (f->by_row) p = (double)t;
    p *= f->factor;
    const double e = f->one_spectrum ? (double)j / (double)all
                                     : (double)at / (double)n[group];
    const double theta = tt_pow(f->base, -e);
    if (!f->single) return f->sign * p * theta;
    return f->sign * (double)((float)p * (float)theta);
}

static void apply(hint *h, const fault *f)
{
    const op_call *q = h->q;
    const int64_t half = q->D / 2;
    for (int64_t t = 0; t < q->n; t++)
        for (int64_t j = 0; j < half; j++) {
            double s, c;
            tt_sincos(angle(q, f, t, j), &s, &c);
            if (f->swap) {
                const double keep = s;
                s = c;
                c = keep;
            }
            for (int64_t n = 0; n < q->H; n++) {
                const int64_t at = (t * q->H + n) * q->D;
                const int64_t i0 = at + (f->halves ? j : 2 * j);
                const int64_t i1 = f->halves ? i0 + half : i0 + 1;
                const double a = (double)q->x[i0], b = (double)q->x[i1];
                h->trial[i0] = a * c - b * s;
                h->trial[i1] = a * s + b * c;
            }
        }
}

#define TRY(h, f, ...)                                                         \
    do {                                                                       \
        if (!hint_settled(h)) {                                                \
            apply((h), (f));                                                   \
            hint_try((h), (h)->trial, __VA_ARGS__);                            \
        }                                                                      \
    } while (0)

static void positions(hint *h)
{
    static const char *const axis[] = {"frame", "row", "column"};
    fault f = right;
    for (int a = 0; a < 3; a++)
        for (int step = -3; step <= 3; step++) {
            f = right;
            f.step[a] = step;
            if (step)
                TRY(h, &f, "%s position off by %+d", axis[a], step);
        }
    for (int step = -1; step <= 1; step += 2) {
        f = right;
        f.step[0] = f.step[1] = f.step[2] = step;
        TRY(h, &f, "all positions off by %+d", step);
    }
    static const int order[][3] = {{0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0},
                                   {2, 0, 1}, {0, 0, 0}, {0, 1, 1}, {0, 0, 2}};
    for (size_t o = 0; o < sizeof order / sizeof order[0]; o++) {
        f = right;
        for (int a = 0; a < 3; a++) f.axis[a] = order[o][a];
        TRY(h, &f, "axes of the positions: %s, %s, %s where frame, row, column "
            "belong", axis[order[o][0]], axis[order[o][1]], axis[order[o][2]]);
    }
    f = right;
    f.by_row = true;
    TRY(h, &f, "positions count tokens instead of frame, row, column");
    f = right;
    f.factor = 0.5;
    TRY(h, &f, "positions halved");
    f.factor = 2;
    TRY(h, &f, "positions doubled");
}

void hint_rope(hint *h)
{
    static const double bases[] = {1000, 500000, 1000000, 100, 256, 5000,
                                   2000, 20000, 50000, 100000, 1024, 16384};
    fault f = right;
    f.halves = true;
    TRY(h, &f, "pairs are (j, j + D/2): halves where interleaved pairs belong");
    f = right;
    f.sign = -1;
    TRY(h, &f, "sign of the angle flipped (rotated backwards)");
    f.halves = true;
    TRY(h, &f, "halves instead of interleaved pairs, and rotated backwards");
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = (double)h->q->x[i];
    hint_try(h, h->trial, "not applied: the output is the input");
    f = right;
    f.swap = true;
    TRY(h, &f, "sine and cosine exchanged");
    positions(h);
    f = right;
    f.even_split = true;
    TRY(h, &f, "pairs split differently between frame, row and column");
    f = right;
    f.one_spectrum = true;
    TRY(h, &f, "frequencies counted over the whole head, not per axis");
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        f = right;
        f.base = bases[i];
        TRY(h, &f, "base %g instead of 10000", bases[i]);
    }
    f = right;
    f.single = true;
    TRY(h, &f, "angles in float32");
}
