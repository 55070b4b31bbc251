/* named_grab.c: mistakes of GRAB: importance, diversity, score, picks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  src/cache/grab.c
 * Next    named_tame.c */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tether/mathfn.h"
#include "validate/files/frames.h"

/* ---- mass ---------------------------------------------------------------- */

enum { QUERIES, QUERY_POOL, KEY_POOL, HEADS, EACH, LOGIT, WEIGHT };
enum { ALL_QUERIES, CHUNK_BEFORE, LAST_FRAME };
enum { EACH_QUERY = 1, EACH_HEAD = 2 };
enum { MASS_MOST = 1 << 26 };             /* multiply-adds                    */
enum { SOFTMAX, GROUPS, SIGMOID, SHARE, OVER_LARGEST };

static const change mass_changes[] = {
    {QUERIES, LAST_FRAME, "queries of the last frame alone"},
    {QUERIES, CHUNK_BEFORE, "queries of the chunk before"},
    {QUERY_POOL, FRAME_MAX, "the largest queries (max) where their mean "
     "belongs"},
    {KEY_POOL, FRAME_MAX, "the largest keys (max) of a frame where their mean "
     "belongs"},
    {KEY_POOL, FRAME_SIZE, "the mean of a frame's absolute keys"},
    {KEY_POOL, FRAME_ROWS, "a softmax over all tokens, summed for each frame, "
     "where one over mean keys belongs"},
    {HEADS, 1, "head 0 alone"},
    {EACH, EACH_QUERY, "a softmax of every query, then their mean"},
    {EACH, EACH_HEAD, "a softmax of every head, then their mean"},
    {EACH, EACH_QUERY | EACH_HEAD, "a softmax of every query and head, then "
     "their mean"},
    {LOGIT, 1, "the cosine of queries and keys in place of the logits"},
    {WEIGHT, GROUPS, "members and evicted frames have a softmax each"},
    {WEIGHT, SIGMOID, "sigmoid of the logits where their softmax belongs"},
    {WEIGHT, SHARE, "the logits divided by their sum where softmax belongs"},
    {WEIGHT, OVER_LARGEST, "divided by the largest where the sum belongs"},
    {0, 0, NULL}};

static void grab_softmax(double *x, int64_t n)
{
    double top = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++) top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++) sum += x[i] = tt_exp(x[i] - top);
    for (int64_t i = 0; i < n; i++) x[i] /= sum;
}

/* Logits x [n] become weights; the first M are those of members. */
static void grab_weights(double *x, int64_t n, int64_t M, int form)
{
    double sum = 0, top = 0;
    if (form == GROUPS && M < n) grab_softmax(x + M, n - M);
    if (form == GROUPS && M > 0) grab_softmax(x, M);
    if (form == SOFTMAX || form == OVER_LARGEST) grab_softmax(x, n);
    for (int64_t i = 0; i < n; i++) {
        if (form == SIGMOID) x[i] = 1 / (1 + tt_exp(-x[i]));
        sum += x[i];
        top = fmax(top, x[i]);
    }
    for (int64_t i = 0; i < n; i++)
        x[i] /= form == SHARE ? sum : form == OVER_LARGEST ? top : 1;
}

/* Mean keys of all candidates, the first time they are asked for. */
static double **find_keys(const named *t, round_of *r, int pool)
{
    double **k = r->key[pool];
    if (pool == FRAME_ROWS && r->P * r->L * r->width > MASS_MOST / 4)
        return NULL;
    for (int64_t i = 0; i < r->P && !k[r->P - 1]; i++)
        if (!(k[i] = frames_of(t, 'k', (int64_t)r->index[i], i < r->M, r->width,
                               (frame_form)pool, r->L))) return NULL;
    return k;
}

/* Queries of a pass, [*n, width]; NULL: not in the dump. */
static const double *some_queries(const round_of *r, int which, int64_t *n)
{
    *n = which == LAST_FRAME ? r->L : r->T;
    return which == LAST_FRAME ? r->q[0] + (r->T - r->L) * r->width
                               : r->q[which];
}

/* The same pooled, the first time they are asked for. */
static const double *find_query(const named *t, round_of *r, int which,
                                int form)
{
    int64_t n;
    const double *x = some_queries(r, which, &n);
    double **q = &r->query[which][form];
    if (*q || !x) return *q;
    *q = named_capacity(t, r->width);
    if (*q) frames_statistic(*q, x, n, r->width, (frame_form)form);
    return *q;
}

/* Eq. 6, of the mean query, or for each, of all heads or of each. */
static bool make_mass(named *t, const int *how, double *trial)
{
    round_of *r = t->state;
    const int64_t D = r->width / r->H;
    const bool queries = how[EACH] & EACH_QUERY, heads = how[EACH] & EACH_HEAD;
    int64_t nq = 1, nh = heads && !how[HEADS] ? r->H : 1;
    const double *q = queries ? some_queries(r, how[QUERIES], &nq)
                              : find_query(t, r, how[QUERIES],
                                           how[QUERY_POOL]);
    double **k = find_keys(t, r, how[KEY_POOL]);
    const int64_t per = how[KEY_POOL] == FRAME_ROWS ? r->L : 1;
    double *z = named_capacity(t, r->P * per);
    if (!q || !z || !k || nq * r->P * per * r->width > MASS_MOST) return false;
    for (int64_t c = 0; c < r->P; c++) trial[c] = 0;
    for (int64_t u = 0; u < nq * nh; u++) {
        const int64_t from = u % nh * D;
        const int64_t to = how[HEADS] || heads ? from + D : r->width;
        const double scale = (double)((to - from) / D) * sqrt((double)D);
        for (int64_t i = 0; i < r->P * per; i++) {
            const double *one = q + u / nh * r->width + from;
            const double *key = k[i / per] + i % per * r->width + from;
            const double by = how[LOGIT]
                ? sqrt(named_dot(one, one, to - from)
                       * named_dot(key, key, to - from)) : scale;
            z[i] = named_dot(one, key, to - from) / by;
        }
        grab_weights(z, r->P * per, r->M * per, how[WEIGHT]);
        for (int64_t i = 0; i < r->P * per; i++)
            trial[i / per] += z[i] / (double)(nq * nh);
    }
    return true;
}

/* A factor of the logits, from the masses themselves. */
static bool solve_factor(named *t, const int *how, double *trial, char *what,
                         size_t size)
{
    const round_of *r = t->state;
    double gw = 0, ww = 0, mg = 0, mw = 0;
    const double n = (double)t->n, D = (double)(r->width / r->H);
    if (how[WEIGHT] || !make_mass(t, how, trial) || t->n < 4) return false;
    for (int64_t i = 0; i < t->n; i++) {
        if (!(t->got[i] > 0 && trial[i] > 0)) return false;
        mg += tt_log(t->got[i]) / n, mw += tt_log(trial[i]) / n;
    }
    for (int64_t i = 0; i < t->n; i++) {
        const double g = tt_log(t->got[i]) - mg, w = tt_log(trial[i]) - mw;
        gw += g * w, ww += w * w;
    }
    if (!(ww > 0)) return false;
    const double f = gw / ww, H = (double)r->H;
    for (int64_t i = 0; i < t->n; i++) trial[i] = f * tt_log(trial[i]);
    grab_softmax(trial, t->n);
    const struct { double is; const char *what; } names[] = {
        {sqrt(D), ": 1/sqrt(D) is missing"},
        {1 / sqrt(D), ": 1/D where 1/sqrt(D) belongs"},
        {H, ": the sum of the heads where their mean belongs, or another "
         "temperature"},
        {H * sqrt(D), ": neither 1/sqrt(D) nor a mean of heads"},
        {sqrt(H), ": 1/sqrt(H D), as of one wide head"}};
    const char *is = "";
    for (int i = 4; i >= 0; i--)
        if (fabs(f / names[i].is - 1) < 1e-3) is = names[i].what;
    snprintf(what, size, "the logits have a factor of %.5g%s", f, is);
    return named_fits(t, trial);
}

/* Logits of all frames up to the newest, as they were and as edited. */
enum { HELD_MOST = 96 };

static int held_logits(const named *t, round_of *r, double *z)
{
    const double *q = find_query(t, r, ALL_QUERIES, FRAME_MEAN);
    const double scale = (double)r->H * sqrt((double)(r->width / r->H));
    int n = 0;
    for (; q && n < HELD_MOST; n++) {
        const double *k = frames_of(t, 'k', n / 2, n % 2, r->width, FRAME_MEAN,
                                    0);
        if (!k) return n;
        z[n] = named_dot(q, k, r->width) / scale;
    }
    return n;
}

/* "frames 6, 7 have the keys of frames 9, 10". */
static bool say_held(const round_of *r, const int *best, char *what,
                     size_t size)
{
    char a[60] = "", b[60] = "";
    for (int64_t c = 0; c < r->P; c++) {
        const size_t i = strlen(a), k = strlen(b);
        const int own = (int)r->index[c];
        if (best[c] == 2 * own + 1) continue;
        snprintf(a + i, sizeof a - i, "%s%d", i ? ", " : "", own);
        snprintf(b + k, sizeof b - k, "%s%d%s", k ? ", " : "", best[c] / 2,
                 best[c] / 2 == own ? " before its edit" : "");
    }
    snprintf(what, size, "frames %s have the keys of frames %s", a, b);
    return *a;
}

/* Keys of other frames: what a softmax divides by is not known, but the same
 * for all candidates. */
static bool solve_held(named *t, double *trial, char *what, size_t size)
{
    round_of *r = t->state;
    double z[HELD_MOST];
    int best[CANDIDATES_MOST];
    const int n = held_logits(t, r, z);
    for (int i = 0; i < n; i++) {
        bool all = t->n > 3;
        for (int64_t c = 0; all && c < t->n; c++) {
            const double own = z[i] + tt_log(t->got[c] / t->got[0]);
            best[c] = 2 * (int)r->index[c] + 1;      /* itself, if that fits */
            if (best[c] >= n) return false;
            for (int k = 0; k < n; k++)
                if (fabs(z[k] - own) < fabs(z[best[c]] - own) - 1e-9)
                    best[c] = k;
            all = t->got[c] > 0 && fabs(z[best[c]] - own) < 1e-5;
        }
        if (all) {
            for (int64_t c = 0; c < t->n; c++) trial[c] = z[best[c]];
            grab_softmax(trial, t->n);
            return say_held(r, best, what, size);
        }
    }
    return false;
}

static bool solve_mass(named *t, const int *how, double *trial, char *what,
                       size_t size)
{
    bool right = true;
    for (int i = 0; i < NAMED_FIELDS; i++) right &= how[i] == 0;
    return solve_factor(t, how, trial, what, size)
           || (right && solve_held(t, trial, what, size));
}

static const tt_entry *queries_of(const named *t, int64_t chunk, int64_t step)
{
    return named_find(t, "chunk.%" PRId64 "/step.%" PRId64 "/block.%" PRId64
                      "/self_attn.q", chunk, step, t->at.block);
}

bool named_mass(named *t)
{
    round_of r;
    if (!frames_round(t, &r) || r.P != t->n) return false;
    const int64_t chunk = t->at.chunk, step = t->at.step;
    const tt_entry *e = queries_of(t, chunk, step);
    const tt_entry *x = named_find(t, "chunk.%" PRId64 "/step.%" PRId64 "/x",
                                   chunk, step);
    if (!e || e->t.rank != 3 || !tt_tensor_count(&e->t)) return false;
    r.T = e->t.dim[0], r.H = e->t.dim[1], r.width = r.H * e->t.dim[2];
    r.L = x && x->t.rank == 4 && x->t.dim[0] > 0 ? r.T / x->t.dim[0] : r.T;
    for (int i = 0; i <= CHUNK_BEFORE; i++)
        r.q[i] = named_read(t, queries_of(t, chunk - i, step), r.T * r.width);
    return r.q[0] && r.L > 0
           && named_try(t, &(rule){make_mass, solve_mass, "GRAB's mass: ",
                                   mass_changes});
}

/* ---- diversity, score, picks --------------------------------------------- */

enum { CLOSE, PLACES, HEAVY, WHO, REDUCE, REDUNDANCY };
enum { SQUARE = 1, BELL, TIMELESS, SIGNED };
enum { MASSLESS = 1, OWN_MASS };
enum { AND_SELF = 1, OLDER };
enum { SUM = 1, MEAN_OF_OTHERS, MEAN_OF_ALL };

static const change div_changes[] = {
    {CLOSE, SQUARE, "the square of the distance in time"},
    {CLOSE, BELL, "closeness is exp(-d^2 / (2 sigma^2))"},
    {CLOSE, TIMELESS, "the distance in time is left out"},
    {CLOSE, SIGNED, "the distance in time keeps its sign"},
    {PLACES, 1, "distances are counted in places, not in frames"},
    {HEAVY, MASSLESS, "neighbours are not weighted by their mass"},
    {HEAVY, OWN_MASS, "neighbours are weighted by the candidate's own mass"},
    {WHO, AND_SELF, "a candidate is compared with itself"},
    {WHO, OLDER, "a candidate is compared with those before it alone"},
    {REDUCE, SUM, "the sum of all neighbours where the heaviest belongs"},
    {REDUCE, MEAN_OF_OTHERS, "the mean of all neighbours where the heaviest "
     "belongs"},
    {REDUCE, MEAN_OF_ALL, "the sum of all neighbours, divided by all "
     "candidates, where the heaviest belongs"},
    {REDUNDANCY, 1, "the redundancy, not 1 less it"},
    {0, 0, NULL}};

static double closeness(int form, double gap, double sigma)
{
    const double far = fabs(gap) / sigma;
    switch (form) {
    case SQUARE: return tt_exp(-far * far);
    case BELL: return tt_exp(-far * far / 2);
    case TIMELESS: return 1;
    case SIGNED: return tt_exp(-gap / sigma);
    default: return tt_exp(-far);
    }
}

/* Eqs. 8 and 9 with this sigma. */
static void diversity(const round_of *r, const double *m, double sigma,
                      const int *how, double *out)
{
    for (int64_t c = 0; c < r->P; c++) {
        double most = 0, sum = 0;
        for (int64_t o = 0; o < r->P; o++) {
            if ((o == c && how[WHO] != AND_SELF)
                || (o > c && how[WHO] == OLDER)) continue;
            const double gap = how[PLACES] ? (double)(c - o)
                                           : r->index[c] - r->index[o];
            const double mass = how[HEAVY] == OWN_MASS ? m[c] : m[o];
            const double sim = closeness(how[CLOSE], gap, sigma)
                               * (how[HEAVY] == MASSLESS ? 1 : mass);
            sum += sim;
            most = fmax(most, sim);
        }
        if (how[REDUCE])
            most = sum / (how[REDUCE] == MEAN_OF_OTHERS ? (double)(r->P - 1)
                          : how[REDUCE] == MEAN_OF_ALL ? (double)r->P : 1);
        out[c] = how[REDUNDANCY] ? most : fmax(0, 1 - most);
    }
}

/* Eq. 7, and what ports have in its place. */
static const char *const sigma_text[] = {
    "", ": the span of frames lacks its + 1",
    ": the whole span of frames where half of it belongs",
    ": half the number of candidates where half the span of frames belongs",
    ": the number of candidates", ": the memory's size",
    ": the deviation of the frames' numbers",
    ": the distance in time is not divided by the span"};
enum { SIGMAS = sizeof sigma_text / sizeof *sigma_text };

static double sigma_of(const round_of *r, int which)
{
    double lo = r->index[0], hi = lo, mean = 0, squares = 0;
    const double P = (double)r->P;
    for (int64_t i = 0; i < r->P; i++) {
        lo = fmin(lo, r->index[i]), hi = fmax(hi, r->index[i]);
        mean += r->index[i] / P;
    }
    for (int64_t i = 0; i < r->P; i++) squares += pow(r->index[i] - mean, 2);
    const double all[SIGMAS] = {
        fmax(1, (hi - lo + 1) / 2), fmax(1, (hi - lo) / 2), hi - lo + 1,
        P / 2, P, (double)r->M, sqrt(squares / P), 1};
    return all[which];
}

static bool make_diversity(named *t, const int *how, double *out)
{
    const round_of *r = t->state;
    const double *m = named_beside(t, "grab.mass", r->P);
    if (m) diversity(r, m, sigma_of(r, 0), how, out);
    return m;
}

/* Sigma, in steps and then ever closer. */
static bool solve_diversity(named *t, const int *how, double *trial, char *what,
                            size_t size)
{
    enum { STEPS = 240, HALVINGS = 48 };
    const round_of *r = t->state;
    const double *m = named_beside(t, "grab.mass", r->P);
    double best = 0, least = INFINITY, step = 0.04;
    for (int i = 0; m && i < STEPS + 2 * HALVINGS; i++) {
        if (i >= STEPS && i % 2 == 0) step /= 2;
        const double v = i < STEPS ? -3 + i * step : best + (i % 2 ? step
                                                                   : -step);
        double left = 0;
        diversity(r, m, tt_exp(v), how, trial);
        for (int64_t k = 0; k < r->P; k++) left += pow(trial[k] - t->got[k], 2);
        if (left < least) least = left, best = v;
    }
    if (!m) return false;
    const double sigma = tt_exp(best);
    size_t used = (size_t)snprintf(what, size, "sigma is %.5g where %.5g "
                                   "belongs", sigma, sigma_of(r, 0));
    bool any = false;
    for (int i = 1; i < SIGMAS && used < size; i++) {
        if (fabs(sigma / sigma_of(r, i) - 1) > 1e-3) continue;
        used += (size_t)snprintf(what + used, size - used, "%s%s",
                                 any ? ", or" : "", sigma_text[i] + any);
        any = true;
    }
    diversity(r, m, sigma, how, trial);
    return true;
}

bool named_diversity(named *t)
{
    round_of r;
    return frames_round(t, &r) && r.P == t->n
           && named_try(t, &(rule){make_diversity, solve_diversity,
                                   "GRAB's diversity: ", div_changes});
}

/* mass + alpha div, alpha from ours, and what is not a sum of both. */
static bool make_score(named *t, const int *how, double *trial)
{
    const double *m = named_beside(t, "grab.mass", t->n);
    const double *div = named_beside(t, "grab.div", t->n);
    if (!m || !div) return false;
    const double dd = named_dot(div, div, t->n);
    const double alpha = (named_dot(t->want, div, t->n)
                          - named_dot(m, div, t->n)) / dd;
    for (int64_t i = 0; i < t->n; i++)
        trial[i] = *how == 0 ? m[i] + alpha * div[i]
                   : *how == 1 ? m[i] * div[i] : m[i] * (1 + alpha * div[i]);
    *(double *)t->state = alpha;
    return dd > 0;
}

/* a mass + b diversity. */
static bool solve_score(named *t, const int *how, double *trial, char *what,
                        size_t size)
{
    double a, b, *alpha = t->state;
    if (*how || !make_score(t, how, trial)
        || !named_mixed(t, trial, named_beside(t, "grab.mass", t->n),
                        named_beside(t, "grab.div", t->n), &a, &b))
        return false;
    if (fabs(a - 1) < 1e-4)
        snprintf(what, size, "alpha is %.5g where %.5g belongs", b, *alpha);
    else
        snprintf(what, size, "%.5g mass %+.5g diversity where 1 and %.5g "
                 "belong", a, b, *alpha);
    return true;
}

bool named_score(named *t)
{
    static const change list[] = {{0, 1, "the product of both"},
                                  {0, 2, "mass (1 + alpha diversity)"},
                                  {0, 0, NULL}};
    double alpha = NAN;
    t->state = &alpha;
    return named_try(t, &(rule){make_score, solve_score,
                                "score = mass + alpha diversity: ", list});
}

/* Better candidates come first: those of the highest score, the earlier of
 * equal ones. A few picks are many a rule's: it must be that of every block. */
enum { BY, LOWEST, LATER };
enum { BY_SCORE, BY_MASS, AS_BLOCK_0 };

static const double *of_block(const named *t, int64_t block, const char *last)
{
    return named_read(t, named_find(t, "chunk.%" PRId64 "/step.%" PRId64
        "/block.%" PRId64 "/admit.%" PRId64 "/%s", t->at.chunk, t->at.step,
        block, t->at.admit, last), t->n);
}

/* As many as theirs has, `keep`, of the best of s. */
static void best_of(const double *s, const double *keep, int64_t n,
                    const int *how, double *trial)
{
    int64_t M = 0;
    for (int64_t i = 0; i < n; i++) M += keep[i] != 0;
    for (int64_t c = 0; c < n; c++) {
        int64_t rank = 0;
        for (int64_t o = 0; o < n; o++) {
            const double d = how[LOWEST] ? s[c] - s[o] : s[o] - s[c];
            rank += d > 0 || (d == 0 && (how[LATER] ? o > c : o < c));
        }
        trial[c] = how[BY] == AS_BLOCK_0 ? s[c] : rank < M;
    }
}

static bool make_keep(named *t, const int *how, double *trial)
{
    static const char *const by[] = {"grab.score", "grab.mass", "grab.keep"};
    const bool right = !how[BY] && !how[LOWEST] && !how[LATER];
    const double *own = named_beside(t, by[how[BY]], t->n), *keep;
    int blocks = 0;
    for (int64_t b = 0; !right && (keep = of_block(t, b, "grab.keep")); b++) {
        const double *s = of_block(t, how[BY] == AS_BLOCK_0 ? 0 : b,
                                   by[how[BY]]);
        if (!s) return false;
        best_of(s, keep, t->n, how, trial);
        blocks++;
        for (int64_t c = 0; c < t->n; c++)
            if ((keep[c] != 0) != (trial[c] != 0)) return false;
    }
    if (how[BY] == AS_BLOCK_0) own = of_block(t, 0, "grab.keep");
    if (!own || (how[BY] && blocks < 2)) return false;
    best_of(own, right ? t->want : t->got, t->n, how, trial);
    return true;
}

bool named_keep(named *t)
{
    static const change list[] = {
        {LATER, 1, "of equal scores the later candidate is kept, where the "
         "first belongs (tie rule)"},
        {LOWEST, 1, "the lowest are kept"},
        {BY, BY_MASS, "kept by mass alone, not by score"},
        {BY, AS_BLOCK_0, "what block.0 keeps is kept"}, {0, 0, NULL}};
    return named_try(t, &(rule){make_keep, NULL, "", list});
}
