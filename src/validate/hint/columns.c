/* columns.c: how per-channel statistics and the edit made of them go
 * wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/hint.h"

#include <math.h>

#define F(...) &(column_fault){__VA_ARGS__}

static void mean_or_moment(hint *h)
{
    const double n = (double)h->q->n, c = (double)h->q->c;
    const bool mean = h->q->kind == OP_COL_MEAN, sum = !mean;
    const hint_trial list[] = {
        {mean && n != 1, F(.factor = n),
         "the sum instead of the mean (1/n missing)"},
        {mean && n > 1, F(.factor = n / (n - 1)), "divided by n - 1"},
        {mean && n != c, F(.factor = n / c),
         "divided by the channels instead of the rows"},
        {sum && n != 1, F(.factor = 1 / n),
         "divided by n: the variance, not the sum"},
        {sum && n > 2, F(.factor = 1 / (n - 1)),
         "divided by n - 1: the unbiased variance"},
        {sum && c != 1, F(.factor = 1 / c), "divided by the channels"},
        {sum, F(.factor = 1 / n, .root = true),
         "the standard deviation, not the sum"},
        {sum && n > 1, F(.factor = 1 / (n - 1), .root = true),
         "the standard deviation, not the sum"},
        {true, F(.narrow = true, .sums = TT_FMT_F32), "sums are kept in f32"},
        {true, F(.narrow = true, .sums = TT_FMT_F16), "sums are kept in f16"},
        {true, F(.narrow = true, .sums = TT_FMT_BF16), "sums are kept in bf16"},
        {true, F(.tail = 1), "the last row is left out"},
        {mean, F(.tail = 1, .counted = true), "the last row is left out"},
        {true, F(.head = 1), "the first row is left out"},
        {mean, F(.head = 1, .counted = true), "the first row is left out"},
        {sum, F(.uncentred = true), "the mean is not subtracted"},
        {sum, F(.distance = true), "distance instead of its square"},
        {true, F(.tail = h->q->n / 2), "only the first half of the rows"},
        {mean, F(.tail = h->q->n / 2, .counted = true),
         "only the first half of the rows"},
        {true, F(.first_twice = true), "the first row is counted twice"},
    };
    HINT_TRY_EACH(h, list);
}

/* The trial with this tau. */
static double with_tau(hint *h, void *user, double tau)
{
    op_call own = *h->q;
    own.tau = tau;
    (void)user;
    return hint_left(h, &own, NULL);
}

static void other_tau(hint *h)
{
    op_call own = *h->q;
    if (!hint_solve(h, with_tau, NULL, -1, 2, 12, &own.tau)) return;
    const double keeps = 1 - h->q->tau;
    hint_try_call(h, &own, "tau is %.4g instead of %.4g%s", own.tau, h->q->tau,
                  fabs(1 - own.tau - keeps * keeps) < 1e-3
                      ? ": the edit is applied twice" : "");
}

void hint_columns(hint *h)
{
    if (h->q->kind != OP_COL_BLEND) {
        mean_or_moment(h);
        return;
    }
    hint_forms(h);
    if (h->n > 4) other_tau(h);
}
