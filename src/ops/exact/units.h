/* units.h: work in units that threads take one after the other.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The work is rows of equal pieces: rows of tiles, heads of query panels. A
 * unit is some neighbours of one row, and those of a row are as equal as they
 * can be. Towards the end they become smaller, half a thread's share of what is
 * left: so all threads end together, whichever of them was held up before, and
 * large units, which cost less, are most of the work. How it is cut moves whole
 * chains and changes no bit. */
#ifndef TT_OPS_EXACT_UNITS_H
#define TT_OPS_EXACT_UNITS_H

#include "ops/exact/exact.h"

#ifndef TT_REAL_DOUBLE

typedef struct exact_units {
    int64_t rows, cols;  /* pieces, cols > 0                                  */
    int64_t most;        /* pieces of a unit                                  */
    int64_t least;       /* fewer come only where a row is cut evenly         */
    int64_t threads;     /* that take them; 0: units do not become smaller    */
} exact_units;

typedef struct exact_unit {
    int64_t row, from;   /* its first piece                                   */
    int64_t n;           /* its pieces; 0 behind the last unit                */
} exact_unit;

/* The unit behind one; {row, 0, 0} is before the first of a row. */
static inline exact_unit exact_unit_behind(const exact_units *all,
                                           exact_unit u)
{
    u.from += u.n;
    if (u.from == all->cols) {
        u.from = 0;
        u.row++;
    }
    const int64_t rest = all->cols - u.from;
    const int64_t left = (all->rows - u.row) * all->cols - u.from;
    int64_t n = all->most;
    if (all->threads) {
        const int64_t share = exact_parts(left, 2 * all->threads);
        n = exact_least(n, share > all->least ? share : all->least);
    }
    u.n = left > 0 ? exact_parts(rest, exact_parts(rest, n)) : 0;
    return u;
}

/* Rows before the first one that may have smaller units: behind them there is
 * more than becomes smaller. */
static inline int64_t exact_even_rows(const exact_units *all)
{
    const int64_t small = 2 * all->threads * all->most;
    const int64_t even = all->rows - exact_parts(small, all->cols);
    return even > 0 ? even : 0;
}

/* Unit i, from 0 on. */
static inline exact_unit exact_unit_at(const exact_units *all, int64_t i)
{
    const int64_t each = exact_parts(all->cols, all->most);
    const int64_t row = exact_least(i / each, exact_even_rows(all));
    exact_unit u = {.row = row};
    for (int64_t j = row * each; j <= i; j++) u = exact_unit_behind(all, u);
    return u;
}

static inline int64_t exact_units_count(const exact_units *all)
{
    const int64_t row = exact_even_rows(all);
    int64_t n = row * exact_parts(all->cols, all->most);
    exact_unit u = {.row = row};
    while ((u = exact_unit_behind(all, u)).n > 0) n++;
    return n;
}

#endif
#endif
