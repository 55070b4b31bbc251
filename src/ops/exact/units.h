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
    int64_t most;        /* pieces of a unit, at most                         */
    int64_t least;       /* units of no more than these are cut no smaller    */
    int64_t threads;     /* that take them; up to 1: they all stay as large   */
} exact_units;

typedef struct exact_unit {
    int64_t row, from;   /* its first piece                                   */
    int64_t n;           /* its pieces; 0 after the last unit                 */
} exact_unit;

/* The unit after one; of n = 0 the one that begins there. */
static inline exact_unit exact_unit_next(const exact_units *all,
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
    if (all->threads > 1) {
        const int64_t share = exact_parts(left, 2 * all->threads);
        n = exact_least(n, share > all->least ? share : all->least);
    }
    u.n = left > 0 ? exact_parts(rest, exact_parts(rest, n)) : 0;
    return u;
}

/* Units before the first one that may be smaller: those of whole rows, and of
 * the next row as many as leave after them what may become smaller. */
static inline int64_t exact_even_units(const exact_units *all)
{
    const int64_t small = all->threads > 1 ? 2 * all->threads * all->most : 0;
    const int64_t even = all->rows * all->cols - small;
    const int64_t each = exact_parts(all->cols, all->most);
    if (even <= 0) return 0;
    return even / all->cols * each
           + even % all->cols / exact_parts(all->cols, each);
}

/* Where even unit i begins: the first cols % each ones of a row have a piece
 * more than the others. */
static inline exact_unit exact_even_unit(const exact_units *all, int64_t i)
{
    const int64_t each = exact_parts(all->cols, all->most), j = i % each;
    return (exact_unit){
        .row = i / each,
        .from = all->cols / each * j + exact_least(j, all->cols % each)};
}

/* Unit i, from 0 on; none is larger than the first. */
static inline exact_unit exact_unit_at(const exact_units *all, int64_t i)
{
    int64_t j = exact_least(i, exact_even_units(all));
    exact_unit u = exact_even_unit(all, j);
    for (; j <= i; j++) u = exact_unit_next(all, u);
    return u;
}

static inline int64_t exact_units_count(const exact_units *all)
{
    int64_t n = exact_even_units(all);
    exact_unit u = exact_even_unit(all, n);
    while ((u = exact_unit_next(all, u)).n > 0) n++;
    return n;
}

#endif
#endif
