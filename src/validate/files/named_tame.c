/* named_tame.c: mistakes of TAME: the trusted pool, its statistics, the edit.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  src/cache/tame.c */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/files/frames.h"

enum { POOL_MOST = 24, SINK_MOST = 8, LATER_MOST = 6 };

/* ---- the trusted pool ---------------------------------------------------- */

enum { FORM, AXES };
enum { DEVIATION, SAMPLE, VARIANCE, WITHIN, BETWEEN, ABOUT_ZERO, OF_FRAMES };
enum { OVER_HEADS = 1, OVER_CHANNELS, OVER_ALL };

static const change pool_changes[] = {
    {FORM, SAMPLE, "sample deviation: divided by n - 1"},
    {FORM, VARIANCE, "the variance where its square root belongs"},
    {FORM, WITHIN, "the variances of the frames are averaged: what their means "
     "differ is left out"},
    {FORM, BETWEEN, "only what lies between the means of frames: the variance "
     "within each is left out"},
    {FORM, ABOUT_ZERO, "root mean square (mean not subtracted)"},
    {FORM, OF_FRAMES, "mean of the frames' own deviations"},
    {AXES, OVER_HEADS, "one statistic for a channel of all heads"},
    {AXES, OVER_CHANNELS, "one statistic for all channels of a head"},
    {AXES, OVER_ALL, "one statistic for all heads and channels"},
    {0, 0, NULL}};

/* Sink, members, evicted and later frames, in this order; bit i of a set: frame
 * i. Means and squared deviations of each. */
typedef struct pool {
    round_of r;
    int64_t frame[POOL_MOST], n, first, width, D, L;    /* first member       */
    double *mean[POOL_MOST], *squares[POOL_MOST];
    bool deviation;
    unsigned right;
} pool;

/* The first channel of those that share a statistic with channel i. */
static int64_t shared(const pool *p, int axes, int64_t i)
{
    return axes == OVER_ALL ? 0 : axes == OVER_HEADS ? i % p->D
         : axes == OVER_CHANNELS ? i / p->D * p->D : i;
}

/* Of the frames of a set and the channels that share it with channel i, their
 * first. */
static double pool_statistic(const pool *p, const int *how, unsigned set,
                             int64_t i)
{
    const double L = (double)p->L;
    const int64_t from = how[AXES] ? 0 : i, to = how[AXES] ? p->width : i + 1;
    double n = 0, m = 0, within = 0, between = 0, zero = 0, own = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t f = 0; f < p->n; f++)
            for (int64_t k = from; set >> f & 1 && k < to; k++) {
                if (shared(p, how[AXES], k) != i) continue;
                if (!pass) {
                    n++, m += p->mean[f][k];
                    continue;
                }
                within += p->squares[f][k];
                between += L * pow(p->mean[f][k] - m / n, 2);
                zero += L * p->mean[f][k] * p->mean[f][k];
                own += sqrt(p->squares[f][k] / L) / n;
            }
    const double variance = (within + between) / (n * L);
    switch (p->deviation ? how[FORM] : -1) {
    case DEVIATION: return sqrt(variance);
    case SAMPLE: return sqrt((within + between) / (n * L - 1));
    case VARIANCE: return variance;
    case WITHIN: return sqrt(within / (n * L));
    case BETWEEN: return sqrt(between / (n * L));
    case ABOUT_ZERO: return sqrt((within + zero) / (n * L));
    case OF_FRAMES: return own;
    default: return m / n;
    }
}

static bool pool_of_set(const pool *p, const int *how, unsigned set,
                        double *trial)
{
    if (!set) return false;
    for (int64_t i = 0; i < p->width; i++) {
        const int64_t first = shared(p, how[AXES], i);
        trial[i] = first < i ? trial[first] : pool_statistic(p, how, set, i);
    }
    return true;
}

static bool make_pool(named *t, const int *how, double *trial)
{
    const pool *p = t->state;
    return pool_of_set(p, how, p->right, trial);
}

static void name_set(char *out, size_t size, const pool *p, unsigned set)
{
    out[0] = '\0';
    for (int64_t i = 0; i < p->n; i++) {
        const size_t used = strlen(out);
        if (set >> i & 1)
            snprintf(out + used, size - used, "%s%" PRId64, used ? ", " : "",
                     p->frame[i]);
    }
}

/* Other frames: of few every set, of many those that follow each other. */
static bool solve_pool(named *t, const int *how, double *trial, char *what,
                       size_t size)
{
    const pool *p = t->state;
    const unsigned sink = (1u << p->first) - 1;
    const unsigned members = ((1u << p->r.M) - 1) << p->first;
    const unsigned every = (1u << p->n) - 1, n = (unsigned)p->n;
    const bool all = n <= 16 && p->width * p->n << n <= 1 << 26;
    const unsigned sets = how[AXES] ? 0 : all ? every + 1 : n * n;
    char a[40], b[40];
    double eps = 0;
    if (!make_pool(t, how, trial)) return false;
    for (int64_t i = 0; i < t->n; i++)
        eps += (t->got[i] * t->got[i] - trial[i] * trial[i]) / (double)t->n;
    for (int64_t i = 0; i < t->n; i++)
        trial[i] = sqrt(fmax(trial[i] * trial[i] + eps, 0));
    snprintf(what, size, "%.3g is added to the variance", eps);
    if (p->deviation && named_gives(t, trial)) return true;
    for (unsigned k = 1; k < sets; k++) {
        const unsigned run = ((2u << k / n) - 1) << k % n;
        const unsigned set = all ? k : run & every;
        if (set == p->right || !pool_of_set(p, how, set, trial)
            || !named_gives(t, trial)) continue;
        name_set(a, sizeof a, p, set);
        name_set(b, sizeof b, p, p->right);
        snprintf(what, size, "the trusted pool is frames %s where %s belong%s",
                 a, b, p->right & sink && !(set & p->right & sink)
                 ? ": without the sink"
                 : !(set & members) ? ": without the memory" : "");
        return true;
    }
    return false;
}

/* The statistics [width] of its frames, those of 'k' or 'v'; false: not in the
 * dump. */
static bool begin_pool(named *t, pool *p, char what, int64_t width)
{
    const int rank = t->like->rank;
    if (rank < 1 || !frames_round(t, &p->r)) return false;
    p->n = 0, p->width = width, p->D = t->like->dim[rank - 1];
    const int64_t P = p->r.P, last = (int64_t)p->r.index[P - 1];
    for (int64_t s = 0; s < SINK_MOST && s < (int64_t)p->r.index[0]; s++)
        p->frame[p->n++] = s;
    p->first = p->n;
    for (int64_t i = 0; i < P + LATER_MOST && p->n < POOL_MOST; i++)
        p->frame[p->n++] = i < P ? (int64_t)p->r.index[i] : last + 1 + i - P;
    if (p->first + p->r.M > p->n
        || !frames_rows(t, what, last, width, &p->L)) return false;
    for (int64_t i = 0; i < p->n; i++) {
        const bool edited = i >= p->first && i < p->first + p->r.M;
        p->mean[i] = frames_of(t, what, p->frame[i], edited, width, FRAME_MEAN,
                               0);
        p->squares[i] = frames_of(t, what, p->frame[i], edited, width,
                                  FRAME_SQUARES, 0);
        if (p->mean[i] && p->squares[i]) continue;
        if (i < p->first + P) return false;
        p->n = i;                        /* that frame is not made yet */
    }
    return true;
}

/* The set that gives ours: the sink is as large as makes it. */
bool named_pool(named *t)
{
    static const int right[NAMED_FIELDS];
    pool p;
    double *trial = named_capacity(t, t->n);
    if (!trial || !begin_pool(t, &p, t->name[strlen(t->name) - 1], t->n))
        return false;
    t->state = &p;
    p.deviation = strstr(t->name, "/tame.sd_");
    for (int64_t s = p.first; s >= 0; s--) {
        p.right = (((1u << p.r.M) - 1) << p.first) | ((1u << s) - 1);
        if (pool_of_set(&p, right, p.right, trial) && named_right(t, trial))
            return named_try(t, &(rule){make_pool, solve_pool, "TAME: ",
                                        pool_changes});
    }
    return false;
}

/* ---- the edit ------------------------------------------------------------ */

enum { OWN, MEAN, SD, MADE, EDIT };
enum { OWN_OF_ALL = 1, OWN_HEADS, OWN_POOL };
enum { OTHER_KIND = 1, NOT_MOVED };
enum { OF_SAMPLE = 1, OF_SQUARED_GAIN, OF_INVERSE };
enum { POWER = 1, KEEPS_MEAN };

static const change edit_changes[] = {
    {OWN, OWN_OF_ALL, "a frame's own statistics are those of all evicted "
     "frames"},
    {OWN, OWN_HEADS, "the frame's own statistics are shared by all heads"},
    {OWN, OWN_POOL, "the roles of the frame and the pool are exchanged"},
    {MEAN, OTHER_KIND, "the trusted mean is that of the other of keys and "
     "values"},
    {MEAN, NOT_MOVED, "the old mean is kept: only the deviation is edited"},
    {SD, OTHER_KIND, "the trusted deviation is that of the other of keys and "
     "values"},
    {SD, NOT_MOVED, "the deviation is kept: only the mean is edited"},
    {MADE, OF_SAMPLE, "the frame's deviation is divided by n - 1"},
    {MADE, OF_SQUARED_GAIN, "variances where deviations belong (the gain is "
     "squared)"},
    {MADE, OF_INVERSE, "gain inverted: own deviation over the trusted one"},
    {EDIT, POWER, "the deviation is blended by powers: gain^tau"},
    {EDIT, KEEPS_MEAN, "the frame's own mean is not subtracted"},
    {0, 0, NULL}};

/* Rows [L, width] of the frame, and statistics of it, of keys and values of the
 * pool, of what may be taken for its own. */
typedef struct edit {
    int64_t L, width;
    const double *x;
    const double *own_mean[OWN_POOL + 1], *own_sd[OWN_POOL + 1];
    const double *mean[2], *sd[2];          /* of this kind, of the other     */
    double tau;
} edit;

/* Those of a set of frames. */
static void own_of(const named *t, edit *e, int which, pool *p, unsigned set)
{
    const int how[NAMED_FIELDS] = {
        [AXES] = which == OWN_HEADS ? OVER_HEADS : 0};
    double *m = named_capacity(t, e->width), *s = named_capacity(t, e->width);
    e->own_mean[which] = m, e->own_sd[which] = s;
    p->deviation = false;
    if (m && s) pool_of_set(p, how, set, m);
    p->deviation = true;
    if (m && s) pool_of_set(p, how, set, s);
}

/* y = a x + b of channel i; towards tau. */
static void edit_line(const edit *e, const int *how, int64_t i, double tau,
                      double *a, double *b)
{
    const double m = e->own_mean[how[OWN]][i], s = e->own_sd[how[OWN]][i];
    const bool roles = how[OWN] == OWN_POOL;
    double mean = roles ? e->own_mean[0][i] : e->mean[how[MEAN] == OTHER_KIND]
                                                     [i];
    const double sd = roles ? e->own_sd[0][i] : e->sd[how[SD] == OTHER_KIND][i];
    const double L = (double)e->L;
    double g = sd / fmax(s, 1e-6);
    if (how[MADE] == OF_SAMPLE) g /= sqrt(L / (L - 1));
    if (how[MADE] == OF_SQUARED_GAIN) g *= g;
    if (how[MADE] == OF_INVERSE) g = 1 / g;
    if (how[SD] == NOT_MOVED) g = 1;
    if (how[MEAN] == NOT_MOVED) mean = m;
    *a = how[EDIT] == POWER ? pow(g, tau) : 1 - tau + tau * g;
    *b = how[EDIT] == POWER ? m + tau * (mean - m) - *a * m
         : tau * (mean - (how[EDIT] == KEEPS_MEAN ? 0 : g * m));
}

static void edit_frame(const edit *e, const int *how, double tau, double *y)
{
    double a, b;
    for (int64_t i = 0; i < e->width; i++) {
        edit_line(e, how, i, tau, &a, &b);
        for (int64_t r = 0; r < e->L; r++)
            y[r * e->width + i] = a * e->x[r * e->width + i] + b;
    }
}

static bool make_edit(named *t, const int *how, double *trial)
{
    const edit *e = t->state;
    edit_frame(e, how, e->tau, trial);
    return true;
}

/* Least squares of y = x + tau (edit - x). */
static double tau_of(const named *t, const int *how, const double *y,
                     double *trial)
{
    const edit *e = t->state;
    double up = 0, down = 0;
    edit_frame(e, how, 1, trial);
    for (int64_t i = 0; i < t->n; i++) {
        const double d = trial[i] - e->x[i];
        up += d * (y[i] - e->x[i]), down += d * d;
    }
    return down > 0 ? up / down : 0;
}

static bool solve_edit(named *t, const int *how, double *trial, char *what,
                       size_t size)
{
    const edit *e = t->state;
    if (how[EDIT] == POWER) return false;
    const double tau = tau_of(t, how, t->got, trial);
    edit_frame(e, how, tau, trial);
    if (fabs(tau) < 1e-6) snprintf(what, size, "not applied");
    else
        snprintf(what, size, "tau is %.4g where %.4g belongs%s", tau, e->tau,
                 fabs(1 - tau - (1 - e->tau) * (1 - e->tau)) < 1e-3
                     ? ": applied twice" : "");
    return true;
}

/* Statistics of keys ('k') or values of the pool. */
static bool read_pool(const named *t, edit *e, int which, char kind)
{
    const char *tame = strstr(t->name, "/tame.");
    const int n = (int)(tame - t->name);
    e->mean[which] = named_read(t, named_find(t, "%.*s/tame.mean_%c", n,
                                              t->name, kind), e->width);
    e->sd[which] = named_read(t, named_find(t, "%.*s/tame.sd_%c", n, t->name,
                                            kind), e->width);
    return e->mean[which] && e->sd[which];
}

/* "tame.k/c.3": candidate 3 of the round. */
bool named_edit(named *t)
{
    static const int right[NAMED_FIELDS];
    const char what = strstr(t->name, "/tame.")[6];
    const char other = what == 'k' ? 'v' : 'k';
    const int64_t c = atoll(strrchr(t->name, '.') + 1);
    int64_t L;
    pool p;
    if (t->like->rank != 3 || t->like->dim[0] < 2) return false;
    edit e = {.L = t->like->dim[0], .width = t->n / t->like->dim[0]};
    if (!begin_pool(t, &p, what, e.width) || c < 0 || c >= p.r.P || p.L != e.L
        || p.first + p.r.P > p.n || !read_pool(t, &e, 0, what)
        || !read_pool(t, &e, 1, other)) return false;
    e.x = frames_rows(t, what, (int64_t)p.r.index[c], e.width, &L);
    const unsigned one = 1u << (p.first + c), all = (1u << p.r.P) - 1,
                   old = (1u << p.r.M) - 1;
    for (int k = 0; k <= OWN_HEADS; k++)
        own_of(t, &e, k, &p, k == OWN_OF_ALL ? (all & ~old) << p.first : one);
    e.own_mean[OWN_POOL] = e.mean[0];
    e.own_sd[OWN_POOL] = e.sd[0];
    double *trial = named_capacity(t, t->n);
    if (!e.x || L != e.L || !trial || t->d->ctx->status) return false;
    t->state = &e;
    e.tau = tau_of(t, right, t->want, trial);
    return named_try(t, &(rule){make_edit, solve_edit, "TAME: ", edit_changes});
}
