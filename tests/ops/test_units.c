/* test_units.c: how work is cut for threads that take it unit by unit.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property: units follow each other through every row, leave out no piece and
 * are never larger than asked; those of a row are as equal as they can be, as
 * long as nothing is near the end; and there no unit is more than half a
 * thread's share of what is left, or the least. Unit i is the one that a walk
 * from the first finds. */
#include <stdio.h>

#include "ops/exact/units.h"
#include "tests/harness.h"

#ifndef TT_REAL_DOUBLE

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Is u what the work may go on with after `at` pieces? One thread waits for
 * no one. */
static bool good_unit(const exact_units *w, exact_unit u, int64_t at)
{
    const int64_t left = w->rows * w->cols - at;
    const int64_t half = w->threads > 1 ? exact_parts(left, 2 * w->threads)
                                        : left;
    return u.row * w->cols + u.from == at && u.from < w->cols && u.n > 0
           && u.from + u.n <= w->cols && u.n <= w->most
           && u.n <= larger(half, w->least) && u.n <= exact_unit_at(w, 0).n;
}

/* Pieces of the first row in a walk without an end: n or n - 1 each, of as few
 * units as that takes. */
static bool good_row(const exact_units *w)
{
    const exact_units even = {1, w->cols, w->most, w->least, 0};
    const int64_t units = exact_parts(w->cols, exact_least(w->most, w->cols));
    const int64_t n = exact_parts(w->cols, units);
    bool good = exact_units_count(&even) == units;
    for (int64_t i = 0; i < units; i++) {
        const int64_t is = exact_unit_at(&even, i).n;
        good &= is == n || is == n - 1;
    }
    return good;
}

static bool good_walk(const exact_units *w)
{
    int64_t at = 0, i = 0;
    bool good = good_row(w);
    for (exact_unit u = {0}; at < w->rows * w->cols && good; i++) {
        const exact_unit here = exact_unit_at(w, i);
        u = exact_unit_next(w, u);
        good = good_unit(w, u, at) && here.row == u.row && here.from == u.from
               && here.n == u.n;
        at += u.n;
    }
    return good && i == exact_units_count(w);
}

static void walks(int64_t rows, int64_t cols)
{
    static const int64_t most[] = {1, 2, 3, 6, 14, 16, 35, 100},
                         threads[] = {0, 1, 2, 3, 8, 128};
    int bad = 0;
    exact_units at = {0};
    for (int m = 0; m < 8; m++)
        for (int64_t least = 1; least <= 3; least++)
            for (int t = 0; t < 6; t++) {
                const exact_units w = {rows, cols, most[m], least, threads[t]};
                if (!good_walk(&w) && !bad++) at = w;
            }
    expect(bad == 0, "%lld rows of %lld pieces: %d walks are wrong, the first "
           "with %lld to %lld pieces for %lld threads", (long long)rows,
           (long long)cols, bad, (long long)at.least, (long long)at.most,
           (long long)at.threads);
}

static void are(const exact_units *w, const int64_t *n, int64_t units)
{
    for (int64_t i = 0; i < units; i++) {
        const int64_t is = exact_unit_at(w, i).n;
        expect(is == n[i], "unit %lld of %lld x %lld has %lld pieces, not %lld",
               (long long)i, (long long)w->rows, (long long)w->cols,
               (long long)is, (long long)n[i]);
    }
    expect(exact_units_count(w) == units, "units of %lld x %lld",
           (long long)w->rows, (long long)w->cols);
}

/* Two threads. 110 tiles: of 54 that are left half a thread's share is 14, of
 * 40 it is 10, of 30 it is 8. Two rows of 52, never less than two: of 22 it is
 * 6, of 16 it is 4, of 12 and of 9 it is 3, of 4 it would be one. */
static void by_hand(void)
{
    are(&(exact_units){1, 110, 14, 1, 2},
        (int64_t[]){14, 14, 14, 14, 14, 10, 8, 6, 4, 3, 3, 2, 1, 1, 1, 1}, 16);
    are(&(exact_units){2, 52, 6, 2, 2},
        (int64_t[]){6, 6, 6, 6, 6, 6, 6, 5, 5,
                    6, 6, 6, 6, 6, 6, 4, 3, 3, 2, 2, 2}, 21);
}

int main(void)
{
    static const int64_t cols[] = {1, 2, 5, 6, 26, 52, 104, 110, 208, 640};
    test_begin("ops/units");
    for (int c = 0; c < 10; c++)
        for (int64_t rows = 0; rows <= 12; rows += rows < 4 ? 1 : 8)
            walks(rows, cols[c]);
    by_hand();
    return test_end();
}

#else

int main(void)
{
    test_begin("ops/units");
    expect(!tt_ops_find("exact"), "a double build has no exact backend");
    return test_end();
}

#endif
