/* columns.c: how per-channel statistics and the edit made of them go
 * wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/chain.h"

#include <math.h>
#include <string.h>

#define F(...) &(column_fault){__VA_ARGS__}

/* ---- statistics of several frames ---------------------------------------- */

typedef enum pool_form {
    POOL_MEAN, POOL_MEAN_SIZE, POOL_MIDDLE, POOL_ROOT, POOL_SAMPLE, POOL_SQUARE,
    POOL_DISTANCE, POOL_WITHIN, POOL_ABOUT_ZERO
} pool_form;

/* Rows [n, c] of frames of L each, of which statistics were made. */
typedef struct pool {
    double *x;
    int64_t n, L, c;
} pool;

/* Of rows from `row` to row + n, channels from `at` to at + width. */
static double pool_statistic(const pool *p, pool_form form, int64_t row,
                             int64_t n, int64_t at, int64_t width)
{
    const double all = (double)(n * width);
    double mean = 0, sum = 0, lo = INFINITY, hi = -INFINITY;
    if (form == POOL_WITHIN) {
        for (int64_t f = 0; f < n; f += p->L)
            sum += pool_statistic(p, POOL_ROOT, row + f, p->L, at, width);
        return sum * (double)p->L / (double)n;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < n * width; i++) {
            const double v = p->x[(row + i / width) * p->c + at + i % width];
            const double d = v - (form == POOL_ABOUT_ZERO ? 0 : mean);
            lo = fmin(lo, v), hi = fmax(hi, v);
            if (!pass) mean += (form == POOL_MEAN_SIZE ? fabs(v) : v) / all;
            else sum += form == POOL_DISTANCE ? fabs(d) : d * d;
        }
    switch (form) {
    case POOL_MEAN: case POOL_MEAN_SIZE: return mean;
    case POOL_MIDDLE: return (lo + hi) / 2;
    case POOL_SAMPLE: return sqrt(sum / (all - 1));
    case POOL_SQUARE: case POOL_DISTANCE: return sum / all;
    default: return sqrt(sum / all);
    }
}

/* Frames of keys and of values take turns among the moments of the chain. */
static bool pool_of(hint *end, const chain *c, int which, pool *p)
{
    int nth = 0;
    *p = (pool){.c = end->n};
    for (int i = 0; i < c->n; i++)
        p->n += c->link[i].q.kind == OP_COL_MOMENT ? c->link[i].q.n : 0;
    p->x = hint_doubles(end, p->n * p->c);
    p->n = 0;
    for (int i = 0; p->x && i < c->n; i++) {
        const op_call *q = &c->link[i].q;
        if (q->kind != OP_COL_MOMENT || nth++ % 2 != which) continue;
        if (q->c != p->c || (p->L && q->n != p->L)) return false;
        p->L = q->n;
        for (int64_t k = 0; k < q->n * q->c; k++)
            p->x[p->n * p->c + k] = (double)q->x[k];
        p->n += q->n;
    }
    return p->n > 1;
}

static void pool_trial(hint *end, const pool *p, pool_form form, int64_t width)
{
    for (int64_t k = 0; k < end->n; k++)
        end->trial[k] = k % width ? end->trial[k - 1]
                        : pool_statistic(p, form, 0, p->n, k, width);
}

bool hint_pool(hint *end, const chain *c, const char *name)
{
    static const struct { bool sd; pool_form form; const char *what; }
    list[] = {
        {false, POOL_MEAN, "mean"},
        {false, POOL_MEAN_SIZE, "mean of absolute values"},
        {false, POOL_MIDDLE, "middle of the least and the largest value"},
        {true, POOL_ROOT, "deviation"},
        {true, POOL_SAMPLE, "sample deviation, divided by n - 1,"},
        {true, POOL_SQUARE, "variance, without its root,"},
        {true, POOL_DISTANCE, "mean absolute deviation"},
        {true, POOL_WITHIN, "mean of the frames' own deviations"},
        {true, POOL_ABOUT_ZERO, "root mean square (mean not subtracted)"}};
    const bool sd = strstr(name, "/tame.sd_");
    const int64_t head = end->rank == 2 ? end->dim[1] : 1;
    const int64_t width[] = {1, head, end->n};
    double eps = 0;
    pool p;
    if (!sd && !strstr(name, "/tame.mean_")) return false;
    for (int which = 0; which < 2; which++) {
        bool right = pool_of(end, c, which, &p);
        if (right) pool_trial(end, &p, sd ? POOL_ROOT : POOL_MEAN, 1);
        for (int64_t k = 0; right && k < end->n; k++)
            right = fabs(end->trial[k] - end->want[k]) <= 1e-5 * end->top;
        for (size_t i = 0; right && i < sizeof list / sizeof *list * 3; i++) {
            if (list[i / 3].sd != sd) continue;
            pool_trial(end, &p, list[i / 3].form, width[i % 3]);
            hint_try(end, end->trial, "the %s of %s", list[i / 3].what,
                     i % 3 == 0 ? "every channel" : i % 3 == 1 ? "every head"
                     : "all channels together");
        }
    }
    for (int64_t k = 0; k < end->n; k++)
        eps += (end->got[k] * end->got[k] - end->want[k] * end->want[k])
               / (double)end->n;
    for (int64_t k = 0; sd && k < end->n; k++)
        end->trial[k] = sqrt(fmax(end->want[k] * end->want[k] + eps, 0));
    if (sd && end->n > 8)
        hint_try(end, end->trial, "%.3g is added to the variance", eps);
    return end->fits;
}

/* ---- one frame ----------------------------------------------------------- */

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
    hint_try_call(h, &own, "tau is %.4g instead of %.4g", own.tau, h->q->tau);
}

/* Mean and deviation of a channel of x [n, c]. */
static double columns_deviation(const double *x, int64_t n, int64_t c,
                                double *mean)
{
    double m2 = 0;
    *mean = 0;
    for (int64_t r = 0; r < n; r++) *mean += x[r * c] / (double)n;
    for (int64_t r = 0; r < n; r++) m2 += pow(x[r * c] - *mean, 2);
    return sqrt(m2 / (double)n);
}

/* The whole edit again, with the statistics of what it gave. */
static void edited_again(hint *h)
{
    const op_call *q = h->q;
    double *x = hint_doubles(h, h->n), *y = h->trial, mean;
    for (int64_t k = 0; x && k < h->n; k++) x[k] = (double)q->x[k];
    plain_call(h->ctx, q, NULL, y);
    for (int64_t i = 0; x && i < q->c; i++) {
        const double was = columns_deviation(x + i, q->n, q->c, &mean);
        const double sd = columns_deviation(y + i, q->n, q->c, &mean);
        if (!(sd > 0)) return;
        for (int64_t k = i; k < h->n; k += q->c)
            y[k] = (1 - q->tau) * y[k]
                   + q->tau * ((y[k] - mean) * q->gain[i] * was / sd
                               + q->target[i]);
    }
    hint_try(h, y, "the edit is applied twice");
}

/* Statistics of another edit of the segment: of keys for values. */
static void of_other_edit(hint *h)
{
    const op_call *q = h->q;
    const chain *c = h->chain;
    double *gain = hint_doubles(h, q->c), mean;
    double *x = hint_doubles(h, q->n * q->c);
    for (int k = 0; c && gain && x && k < c->n; k++) {
        const op_call *o = &c->link[k].q;
        op_call own = *q;
        if (k == c->at || o->kind != OP_COL_BLEND || o->n != q->n
            || o->c != q->c || !o->gain) continue;
        own.target = o->target;
        hint_try_call(h, &own, "the mean of col_blend %d", k + 1);
        for (int64_t i = 0; i < q->n * q->c; i++) x[i] = (double)o->x[i];
        for (int64_t i = 0; i < q->c; i++)
            gain[i] = o->gain[i] * columns_deviation(x + i, q->n, q->c, &mean);
        for (int64_t i = 0; i < q->n * q->c; i++) x[i] = (double)q->x[i];
        for (int64_t i = 0; i < q->c; i++)
            gain[i] /= columns_deviation(x + i, q->n, q->c, &mean);
        own.gain = gain;
        hint_try_call(h, &own, "by the trusted statistics of the %s",
                      k < c->at ? "keys" : "values");
        own.gain = o->gain;
        own.mean = o->mean;
        hint_try_call(h, &own, "by all statistics of the %s",
                      k < c->at ? "keys" : "values");
    }
}

void hint_columns(hint *h)
{
    if (h->q->kind != OP_COL_BLEND) {
        mean_or_moment(h);
        return;
    }
    hint_forms(h);
    if (h->q->gain) {
        edited_again(h);
        of_other_edit(h);
    }
    if (h->n > 4) other_tau(h);
}
