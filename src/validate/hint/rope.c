/* rope.c: how a rotary embedding goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   an angle is the position of an axis times base^-(j / n). Factors of
 *         the three positions and the three bases are solved for, one after
 *         the other, the best first. The rotation of a pair is four terms,
 *         whose signs and functions are gone through. */
#include "validate/hint/chain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define F(...) &(rope_fault){__VA_ARGS__}
#define WORK_MOST ((int64_t)1 << 20)
enum { TRIALS = 1000, LONGEST = 32 };

static const char *const axis_name[] = {"frame", "row", "column"};

static void rope_positions(hint *h)
{
    const int far = h->chain && !h->chain->blind ? 32 : 3;
    for (int a = 0; a < 4; a++)
        for (int step = a ? -3 : -far; step <= (a ? 3 : far); step++) {
            rope_fault f = {0};
            for (int i = 0; i < 3; i++) f.step[i] = a == i || a == 3 ? step : 0;
            if (step && a < 3)
                hint_try_fault(h, &f, "%s position off by %+d%s", axis_name[a],
                               step, chain_next(h->chain));
            else if (step)
                hint_try_fault(h, &f, "all positions off by %+d", step);
        }
    for (int k = 0; k < 27; k++) {
        const int o[] = {k / 9, k / 3 % 3, k % 3};
        if (o[0] != 0 || o[1] != 1 || o[2] != 2)
            hint_try_fault(h, F(.axis = o), "axes of the positions: %s, %s, "
                           "%s where frame, row, column belong",
                           axis_name[o[0]], axis_name[o[1]], axis_name[o[2]]);
    }
}

/* Lines of a grid, and tables, of another length; another order. */
static void lengths(hint *h)
{
    static const int order[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0},
                                   {2, 0, 1}, {2, 1, 0}};
    const int32_t *end = h->q->pos + 3 * (h->q->n - 1);
    const int64_t tall = end[1] + 1, wide = end[2] + 1;
    if (tall != wide)
        hint_try_fault(h, F(.line = tall), "height and width of the grid "
                       "exchanged: rows and columns are counted in lines as "
                       "long as it is high");
    for (int64_t n = 1; n <= 2 * wide; n++)
        if (n != wide && n != tall)
            hint_try_fault(h, F(.line = n), "rows and columns are counted in "
                           "lines of %lld where %lld belong", (long long)n,
                           (long long)wide);
    for (int k = 1; k < 6 && h->q->n % (tall * wide) == 0; k++) {
        const int *o = order[k];
        hint_try_fault(h, F(.grid = o), "tokens are counted by %s, %s, %s "
                       "where frame, row, column belong", axis_name[o[0]],
                       axis_name[o[1]], axis_name[o[2]]);
    }
    for (int64_t n = 1; n < h->q->H; n++)
        hint_try_fault(h, F(.heads = n), "only the first %lld of %lld heads "
                       "are rotated", (long long)n, (long long)h->q->H);
    for (int64_t n = 1; n < LONGEST; n++)
        hint_try_fault(h, F(.most = n), "positions after %lld are %lld (a "
                       "table that ends there?)", (long long)n, (long long)n);
}

/* Who has how many pairs? At least two of the axes have as many. */
static void splits(hint *h)
{
    const int64_t c = h->q->D / 2, *right = h->q->table->pairs;
    for (int64_t i = 0; i < 3 * c; i++) {
        const int64_t two = i / 3, rest = c - 2 * two;
        int64_t n[] = {two, two, two};
        n[i % 3] = rest;
        if (rest > 0 && memcmp(n, right, sizeof n))
            hint_try_fault(h, F(.pairs = n), "pairs split %lld, %lld, %lld "
                           "between frame, row and column, where %lld, %lld, "
                           "%lld belong", (long long)n[0], (long long)n[1],
                           (long long)n[2], (long long)right[0],
                           (long long)right[1], (long long)right[2]);
    }
}

/* ---- the rotation of a pair ---------------------------------------------- */

/* Those with this many changes. */
static void forms(hint *h, int changes)
{
    for (unsigned form = 2 * ROPE_FORMS - 1; form; form--) {
        const bool halves = form >= ROPE_FORMS;
        int n = 0;
        for (int i = 0; i < 7; i++) n += form >> i & 1;
        if (n != changes) continue;
        const rope_fault f = {.form = form % ROPE_FORMS, .halves = halves};
        const char *const sin = f.form & ROPE_EXCHANGED ? "cos" : "sin",
                   *const cos = f.form & ROPE_EXCHANGED ? "sin" : "cos";
        hint_try_fault(h, &f, "a pair (a, b)%s becomes (%sa %s %s b %s, %s%s "
                       "%s %s b %s) where (a cos - b sin, a sin + b cos) "
                       "belongs", halves ? " of channels j, j + D/2" : "",
                       f.form & ROPE_A_COS ? "-" : "", cos,
                       f.form & ROPE_B_SIN ? "+" : "-", sin,
                       f.form & ROPE_A_SIN ? "-" : "",
                       f.form & ROPE_IN_PLACE ? "the new a" : "a", sin,
                       f.form & ROPE_B_COS ? "-" : "+", cos);
    }
}

/* ---- angles -------------------------------------------------------------- */

enum { GROUPS = 5, PARAMETERS = 2 * GROUPS, ROUNDS = 3, STEPS = 18 };

/* Factors that ports have, of positions and (when positive) of exponents. */
static const double factor_list[] = {
    1, 0, -1, 0.5, 2, 1 / 3.0, 3, 0.25, 4, 0.125, 8, 1 / 16.0, 16, 1 / 32.0,
    1.5, 2 / 3.0, 0.75, 4 / 3.0, 0.8, 1.25, 5 / 6.0, 1.2, 0.9, 1.1, 0.1, 10,
    0.01, 100, 1000};
enum { FACTORS = sizeof factor_list / sizeof *factor_list };

/* Parameter i is the factor of the positions of one axis, of all, or of rows
 * and columns; from GROUPS on, that of the exponents. */
static bool of_axis(int i, int axis)
{
    static const int axes[GROUPS] = {1, 2, 4, 7, 6};
    return axes[i % GROUPS] >> axis & 1;
}

static double get_angle(const rope_fault *f, int i)
{
    int a = 0;
    while (!of_axis(i, a)) a++;
    return i < GROUPS ? 1 + f->more[a]
         : f->base[a] != 0 ? log(f->base[a]) / log(10000) : 1;
}

static void set_angle(rope_fault *f, int i, double v)
{
    for (int a = 0; a < 3; a++) {
        if (!of_axis(i, a)) continue;
        if (i < GROUPS) f->more[a] = v - 1;
        else f->base[a] = v == 1 ? 0 : pow(10000, v);
    }
}

/* Is it better with this? */
static bool closer(hint *h, const rope_fault *was, int i, double v,
                   rope_fault *best, double *left)
{
    rope_fault f = *was;
    set_angle(&f, i, v);
    const double e = hint_left(h, h->q, &f);
    if (!(e < *left)) return false;
    *left = e;
    *best = f;
    return true;
}

/* One factor more, of the list, then all of them a little more or less; what is
 * next to one of the list is meant to be that. False: that is no better. */
static bool next_angle(hint *h, rope_fault *f, double *left)
{
    rope_fault best = *f;
    const double before = *left;
    for (int i = 0; i < PARAMETERS; i++)
        for (int n = 0; n < FACTORS; n++)
            if (i < GROUPS || (factor_list[n] > 0 && factor_list[n] < 9))
                closer(h, f, i, factor_list[n], &best, left);
    double step = 0.1;
    for (int n = 0; n < STEPS; n++, step /= 2)
        for (int i = 0; i < PARAMETERS; i++) {
            const double v = get_angle(&best, i), by = step * (fabs(v) + 0.1);
            const rope_fault was = best;
            if (!closer(h, &was, i, v + by, &best, left))
                closer(h, &was, i, v - by, &best, left);
        }
    for (int i = 0; i < PARAMETERS * FACTORS; i++) {
        const double v = factor_list[i % FACTORS];
        const int axis = i / FACTORS;        /* of one, not of several */
        if (axis % GROUPS < 3 && fabs(get_angle(&best, axis) - v) < 2e-3)
            set_angle(&best, axis, v);
    }
    *f = best;
    return *left < 0.97 * before;
}

/* "row positions times 2, base ...": what is not 1; all alike are one. */
static void say_angles(const rope_fault *f, char *out, size_t size)
{
    size_t at = 0;
    for (int i = 0; i < 6 && at < size; i++) {
        const int a = i % 3;
        const double *x = i < 3 ? f->more : f->base;
        const bool all = x[0] == x[1] && x[1] == x[2];
        const char *of = all ? "all" : axis_name[a], *rest = at ? ", " : "";
        if (x[a] == 0 || (all && a)) continue;
        if (i < 3)
            at += (size_t)snprintf(out + at, size - at, "%s%s positions times "
                                   "%.5g", rest, of, 1 + x[a]);
        else
            at += (size_t)snprintf(out + at, size - at, "%sbase %.6g instead "
                                   "of 10000 (%s, exponents times %.4g)", rest,
                                   x[a], of, log(x[a]) / log(10000));
    }
}

static void angles(hint *h)
{
    rope_fault f = {0};
    char what[160];
    double left = hint_left(h, h->q, &f);
    for (int round = 0; round < ROUNDS && !hint_settled(h); round++) {
        if (!next_angle(h, &f, &left)) return;
        say_angles(&f, what, sizeof what);
        hint_try_fault(h, &f, "%s", what);
    }
}

/* ---- angles of other pairs ----------------------------------------------- */

enum { PAIRS_MOST = 32 };

/* One pair after the other takes the angle that leaves least. What is left in
 * the end, of what was. */
static double solve_pairs(hint *h, const rope_fault *f, uint8_t *pair)
{
    const int64_t all = h->q->D / 2;
    const double before = hint_left(h, h->q, f);
    double left = before, was = INFINITY;
    while (left < 0.97 * was && !hint_settled(h)) {
        int64_t best = -1;
        was = left;
        for (int64_t i = 0; i < all * all; i++) {
            const uint8_t own = pair[i / all];
            pair[i / all] = (uint8_t)(i % all);
            const double e = hint_left(h, h->q, f);
            pair[i / all] = own;
            if (e < left) left = e, best = i;
        }
        if (best >= 0) pair[best / all] = (uint8_t)(best % all);
    }
    return left / before;
}

static void other_pairs(hint *h)
{
    const int64_t all = h->q->D / 2, *n = h->q->table->pairs;
    uint8_t pair[PAIRS_MOST];
    const rope_fault f = {.pair = pair};
    char what[128] = "";
    if (all > PAIRS_MOST) return;
    for (int64_t a = 0, j = 0; a < 3; j += n[a++])
        for (int64_t k = 0; k < n[a]; k++)
            pair[j + k] = (uint8_t)(j + n[a] - 1 - k);
    hint_try_fault(h, &f, "frequencies of each axis are in reverse order");
    for (int j = 0; j < all; j++) pair[j] = (uint8_t)j;
    if (hint_settled(h) || solve_pairs(h, &f, pair) > 1e-3) return;
    for (int j = 0; j < all; j++)
        snprintf(what + strlen(what), sizeof what - strlen(what), " %d",
                 pair[j]);
    hint_try_fault(h, &f, "pairs have the angles of%s", what);
}

void hint_rope(hint *h)
{
    enum { BACK = ROPE_B_SIN | ROPE_A_SIN };
    const int64_t half = h->q->D / 4, all = h->q->D / 2;
    const hint_trial swapped[] = {
        {true, F(.halves = true),
         "pairs are (j, j + D/2): halves where interleaved pairs belong"},
        {true, F(.form = BACK),
         "sign of the angle flipped (rotated backwards)"},
        {true, F(.form = BACK, .halves = true),
         "halves instead of interleaved pairs, and rotated backwards"},
    }, others[] = {
        {true, F(.by_row = true),
         "positions count tokens instead of frame, row, column"},
        {true, F(.one_spectrum = true),
         "frequencies counted over the whole head, not per axis"},
        {half > 0, F(.to = half), "only the first half of a head is rotated"},
        {half > 0, F(.from = half, .to = all),
         "only the second half of a head is rotated"},
        {true, F(.table = TT_FMT_BF16),
         "sines and cosines are rounded to bf16"},
        {true, F(.table = TT_FMT_F16),
         "sines and cosines are rounded to f16"},
        {true, F(.single = true), "angles in float32"},
    };
    HINT_TRY_EACH(h, swapped);
    hint_not_applied(h);
    hint_try_fault(h, F(.form = ROPE_EXCHANGED), "sine and cosine exchanged");
    rope_positions(h);
    HINT_TRY_EACH(h, others);
    lengths(h);
    /* a thousand trials: only of what is quickly done, not after a pass */
    if (h->chain ? h->chain->blind || h->chain->budget < TRIALS * h->chain->work
                 : call_cost(h->q) > WORK_MOST) return;
    splits(h);
    for (int n = 1; n < 5 && !hint_settled(h); n++) forms(h, n);
    if (!hint_settled(h)) angles(h);
    if (!hint_settled(h)) other_pairs(h);
}
