/* rope.c: how a rotary embedding goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/chain.h"

#include <string.h>

#define F(...) &(rope_fault){__VA_ARGS__}

static void rope_positions(hint *h)
{
    static const char *const axis[] = {"frame", "row", "column"};
    for (int a = 0; a < 3; a++)
        for (int step = -3; step <= 3; step++) {
            rope_fault f = {0};
            f.step[a] = step;
            if (step)
                hint_try_fault(h, &f, "%s position off by %+d%s", axis[a],
                               step, chain_next(h->chain));
        }
    for (int step = -1; step <= 1; step += 2)
        hint_try_fault(h, F(.step = {step, step, step}),
                       "all positions off by %+d", step);
    static const int order[][3] = {{0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0},
                                   {2, 0, 1}, {0, 0, 0}, {0, 1, 1}, {0, 0, 2}};
    for (size_t o = 0; o < sizeof order / sizeof order[0]; o++)
        hint_try_fault(h, F(.axis = order[o]), "axes of the positions: %s, %s, "
                       "%s where frame, row, column belong", axis[order[o][0]],
                       axis[order[o][1]], axis[order[o][2]]);
}

/* Of c pairs each axis has a third; who has what is left over? Or frames have
 * half of them, or an eighth. */
static void splits(hint *h)
{
    const int64_t c = h->q->D / 2, third = c / 3, more = third + (c % 3 == 2);
    const int64_t *right = h->q->table->pairs, list[][3] = {
        {third, third, c - 2 * third}, {third, c - 2 * third, third},
        {c - 2 * more, more, more}, {more, more, c - 2 * more},
        {c - 2 * (c / 4), c / 4, c / 4}, {c - 2 * (7 * c / 16), 7 * c / 16,
                                          7 * c / 16}};
    for (size_t i = 0; c >= 4 && i < sizeof list / sizeof list[0]; i++) {
        const int64_t *n = list[i];
        if (memcmp(n, right, sizeof list[i]))
            hint_try_fault(h, F(.pairs = n), "pairs split %lld, %lld, %lld "
                           "between frame, row and column, where %lld, %lld, "
                           "%lld belong", (long long)n[0], (long long)n[1],
                           (long long)n[2], (long long)right[0],
                           (long long)right[1], (long long)right[2]);
    }
}

/* The base of all axes, or of one. */
static void base(hint *h)
{
    static const char *const of[] = {"", " on frames", " on rows",
                                     " on columns"};
    static const double bases[] = {1000, 500000, 1000000, 100, 256, 5000,
                                   2000, 20000, 50000, 100000, 1024, 16384};
    for (int axis = 0; axis < 4; axis++)
        for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++)
            hint_try_fault(h, F(.base = bases[i], .only = axis),
                           "base %g instead of 10000%s", bases[i], of[axis]);
    for (int axis = 1; axis < 4; axis++)
        hint_try_fault(h, F(.back = true, .only = axis),
                       "sign of the angle flipped%s", of[axis]);
}

void hint_rope(hint *h)
{
    const int64_t half = h->q->D / 4, all = h->q->D / 2;
    const hint_trial swapped[] = {
        {true, F(.halves = true),
         "pairs are (j, j + D/2): halves where interleaved pairs belong"},
        {true, F(.back = true),
         "sign of the angle flipped (rotated backwards)"},
        {true, F(.back = true, .halves = true),
         "halves instead of interleaved pairs, and rotated backwards"},
    }, others[] = {
        {true, F(.by_row = true),
         "positions count tokens instead of frame, row, column"},
        {true, F(.factor = 0.5), "positions halved"},
        {true, F(.factor = 2), "positions doubled"},
        {true, F(.grid_exchanged = true),
         "height and width of the grid exchanged: "
         "rows and columns are counted in lines as long as it is high"},
        {true, F(.one_spectrum = true),
         "frequencies counted over the whole head, not per axis"},
        {half > 0, F(.to = half), "only the first half of a head is rotated"},
        {half > 0, F(.from = half, .to = all),
         "only the second half of a head is rotated"},
        {true, F(.table = TT_FMT_BF16),
         "sines and cosines are rounded to bf16"},
        {true, F(.table = TT_FMT_F16),
         "sines and cosines are rounded to f16"},
    };
    HINT_TRY_EACH(h, swapped);
    hint_not_applied(h);
    hint_try_fault(h, F(.swap = true), "sine and cosine exchanged");
    rope_positions(h);
    HINT_TRY_EACH(h, others);
    splits(h);
    base(h);
    hint_try_fault(h, F(.single = true), "angles in float32");
}
