/* frames.c: mistakes of TetherCache's rounds, told from the keys, queries and
 * scores of one dump.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a frame's keys are those of the last pass of its chunk, or what a
 *         round edited them to. From them, and the queries of the pass, the
 *         whole round follows (src/cache/grab.c, tame.c): it is done again
 *         here in double, right and with one change or two.
 * Next    named.c */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tether/mathfn.h"
#include "validate/files/named.h"
#include "validate/verdict.h"

enum { CANDIDATES_MOST = 64, POOL_MOST = 24, SINK_MOST = 8,
       LATER_MOST = 6, ROUNDS = 16 };

/* ---- the tokens of a frame ----------------------------------------------- */

/* What is made of them, for every channel. */
typedef enum frame_form {
    FRAME_MEAN, FRAME_MAX, FRAME_MEDIAN, FRAME_SIZE, FRAME_FIRST, FRAME_SHORT,
    FRAME_ROWS, FRAME_SQUARES, FRAME_SHORT_SQUARES
} frame_form;

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Of rows [L, width] into out [width], FRAME_ROWS [L, width]: themselves;
 * `sorted` has space for L. */
static void frame_statistic(double *out, const double *rows, int64_t L,
                            int64_t width, frame_form form, double *sorted)
{
    const bool fewer = form == FRAME_SHORT || form == FRAME_SHORT_SQUARES;
    const int64_t n = fewer && L > 1 ? L - 1 : form == FRAME_FIRST ? 1 : L;
    if (form == FRAME_ROWS)
        memcpy(out, rows, (size_t)(L * width) * sizeof *rows);
    for (int64_t i = 0; form != FRAME_ROWS && i < width; i++) {
        double mean = 0, size = 0, squares = 0;
        for (int64_t r = 0; r < n; r++) {
            sorted[r] = rows[r * width + i];
            mean += sorted[r] / (double)n;
            size += fabs(sorted[r]) / (double)n;
        }
        for (int64_t r = 0; r < n; r++) squares += pow(sorted[r] - mean, 2);
        if (form == FRAME_MEDIAN || form == FRAME_MAX)
            qsort(sorted, (size_t)n, sizeof *sorted, ascending);
        out[i] = form == FRAME_MAX ? sorted[n - 1]
                 : form == FRAME_MEDIAN
                       ? (sorted[(n - 1) / 2] + sorted[n / 2]) / 2
                 : form == FRAME_SIZE ? size
                 : form >= FRAME_SQUARES ? squares : mean;
    }
}

/* Rows [L, width] of frame `at` of the F of a tensor, in scratch; NULL: no such
 * shape. */
static const double *rows_in(const named *t, const tt_entry *e, int64_t at,
                             int64_t F, int64_t width, int64_t *L)
{
    const int64_t n = e ? tt_tensor_count(&e->t) : 0;
    *L = n / F / width;
    const double *x = *L > 0 && n == *L * F * width ? named_read(t, e, n)
                                                    : NULL;
    return x ? x + at * *L * width : NULL;
}

/* Keys or values ('k', 'v') of a frame as its chunk's last pass made them;
 * NULL: not in the dump. */
static const double *plain_rows(const named *t, char what, int64_t frame,
                                int64_t width, int64_t *L)
{
    char pass[64];
    int64_t at, F;
    if (!named_pass_of(t, frame, pass, sizeof pass, &at, &F)) return NULL;
    return rows_in(t, named_find(t, "%sblock.%" PRId64 "/self_attn.%c", pass,
                                 t->at.block, what), at, F, width, L);
}

/* What TAME left of a frame in round `admit` of a chunk; NULL: it was no
 * candidate there. */
static const double *edited_in(const named *t, int64_t chunk, int64_t admit,
                               char what, int64_t frame, int64_t width,
                               int64_t *L)
{
    char round[128];
    const tt_entry *e = NULL;
    for (int64_t s = 0; !e && s < 64; s++) {
        snprintf(round, sizeof round, "chunk.%" PRId64 "/step.%" PRId64
                 "/block.%" PRId64 "/admit.%" PRId64 "/", chunk, s, t->at.block,
                 admit);
        e = named_find(t, "%sgrab.candidates", round);
    }
    const double *x = named_read(t, e, -1);
    for (int64_t i = 0; x && i < tt_tensor_count(&e->t); i++)
        if ((int64_t)x[i] == frame)
            return rows_in(t, named_find(t, "%stame.%c/c.%" PRId64, round, what,
                                         i), 0, 1, width, L);
    return NULL;
}

/* The same as TAME left them in a round before this one, else as they were. */
static const double *edited_rows(const named *t, char what, int64_t frame,
                                 int64_t width, int64_t *L)
{
    for (int64_t c = t->at.chunk; c >= 0; c--)
        for (int64_t a = c == t->at.chunk ? t->at.admit : ROUNDS; a > 0; a--) {
            const double *x = edited_in(t, c, a - 1, what, frame, width, L);
            if (x) return x;
        }
    return plain_rows(t, what, frame, width, L);
}

/* A statistic of them; of `tokens` their rows. What is read, which may be much,
 * does not stay in scratch. */
static double *of_frame(const named *t, char what, int64_t frame, bool edited,
                        int64_t width, frame_form form, int64_t tokens)
{
    tt_ctx *ctx = t->d->ctx;
    int64_t L;
    double *out = named_capacity(t, form == FRAME_ROWS ? tokens * width
                                                       : width);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const double *rows = edited ? edited_rows(t, what, frame, width, &L)
                                : plain_rows(t, what, frame, width, &L);
    double *sorted = rows && (L == tokens || form != FRAME_ROWS)
                         ? named_capacity(t, L) : NULL;
    if (sorted && out) frame_statistic(out, rows, L, width, form, sorted);
    tt_arena_reset(&ctx->scratch, mark);
    return sorted ? out : NULL;
}

/* ---- a round ------------------------------------------------------------- */

/* The round that a name is of, and its candidates: members, then evicted. */
typedef struct round_of {
    int64_t P, M, width, H, T, L;         /* T queries, L of a frame          */
    const double *index;                  /* [P] frames                       */
    const double *q[3];                   /* [T, width] of this pass, of the
                                             step and of the chunk before     */
    double *query[5][FRAME_SIZE + 1];     /* pooled, by QUERIES, QUERY_POOL   */
    double *key[4][FRAME_ROWS + 1][CANDIDATES_MOST];     /* by KEYS, KEY_POOL */
    double sigma;
} round_of;

static bool begin_round(named *t, round_of *r)
{
    const char *scope = strstr(t->name, "grab.");
    if (!scope) scope = strstr(t->name, "tame.");
    const int n = scope ? (int)(scope - t->name) : 0;
    const tt_entry *e = named_find(t, "%.*sgrab.candidates", n, t->name);
    *r = (round_of){.P = e ? tt_tensor_count(&e->t) : 0};
    t->state = r;
    r->index = named_read(t, e, r->P);
    const double *keep = named_read(t, named_find(t, "%.*sgrab.keep", n,
                                                  t->name), r->P);
    for (int64_t i = 0; keep && i < r->P; i++) r->M += keep[i] != 0;
    return r->index && keep && r->P > 0 && r->P <= CANDIDATES_MOST
           && t->at.admit >= 0;
}

/* ---- mass ---------------------------------------------------------------- */

enum { QUERIES, QUERY_POOL, KEYS, KEY_POOL, HEADS, EACH, LOGIT, WEIGHT };
enum { ALL_QUERIES, STEP_BEFORE, CHUNK_BEFORE, LAST_FRAME, FIRST_FRAME };
enum { KEYS_RIGHT, UNEDITED, FRAME_AFTER, FRAME_BEFORE };
enum { EACH_QUERY = 1, EACH_HEAD = 2 };
enum { COSINE = 1, DISTANCE };
enum { SOFTMAX, GROUPS, SIGMOID, SIGMOID_SHARE, LOGITS, SHARE, OVER_LARGEST };

static const change mass_changes[] = {
    {QUERIES, LAST_FRAME, "queries of the last frame alone"},
    {QUERIES, FIRST_FRAME, "queries of the first frame alone"},
    {QUERIES, STEP_BEFORE, "queries of the step before"},
    {QUERIES, CHUNK_BEFORE, "queries of the chunk before"},
    {QUERY_POOL, FRAME_MAX, "the largest queries (max) where their mean "
     "belongs"},
    {QUERY_POOL, FRAME_MEDIAN, "the median of the queries where their mean "
     "belongs"},
    {QUERY_POOL, FRAME_SIZE, "the mean of the queries' absolute values"},
    {KEYS, UNEDITED, "keys of members as they were before TAME edited them"},
    {KEYS, FRAME_AFTER, "keys of the frame after each evicted one (slot off by "
     "one)"},
    {KEYS, FRAME_BEFORE, "keys of the frame before each evicted one (slot off "
     "by one)"},
    {KEY_POOL, FRAME_MAX, "the largest keys (max) of a frame where their mean "
     "belongs"},
    {KEY_POOL, FRAME_MEDIAN, "the median of a frame's keys"},
    {KEY_POOL, FRAME_SIZE, "the mean of a frame's absolute keys"},
    {KEY_POOL, FRAME_FIRST, "the first token of a frame in place of its mean"},
    {KEY_POOL, FRAME_SHORT, "mean keys leave out the last token"},
    {KEY_POOL, FRAME_ROWS, "a softmax over all tokens, summed for each frame, "
     "where one over mean keys belongs"},
    {HEADS, 1, "head 0 alone"},
    {EACH, EACH_QUERY, "a softmax of every query, then their mean"},
    {EACH, EACH_HEAD, "a softmax of every head, then their mean"},
    {EACH, EACH_QUERY | EACH_HEAD, "a softmax of every query and head, then "
     "their mean"},
    {LOGIT, COSINE, "the cosine of queries and keys in place of the logits"},
    {LOGIT, DISTANCE, "the distance of queries and keys in place of their "
     "product"},
    {WEIGHT, GROUPS, "members and evicted frames have a softmax each"},
    {WEIGHT, SIGMOID, "sigmoid of the logits where their softmax belongs"},
    {WEIGHT, SIGMOID_SHARE, "sigmoid of the logits, divided by their sum, "
     "where softmax belongs"},
    {WEIGHT, LOGITS, "the logits themselves where their softmax belongs"},
    {WEIGHT, SHARE, "the logits divided by their sum where softmax belongs"},
    {WEIGHT, OVER_LARGEST, "divided by the largest where the sum belongs"},
    {0, 0, NULL}};

static void frames_softmax(double *x, int64_t n)
{
    double top = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++) top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++) sum += x[i] = tt_exp(x[i] - top);
    for (int64_t i = 0; i < n; i++) x[i] /= sum;
}

/* Logits x [n] become weights; the first M are those of members. */
static void frames_weights(double *x, int64_t n, int64_t M, int form)
{
    double sum = 0, top = 0;
    if (form == GROUPS && M < n) frames_softmax(x + M, n - M);
    if (form == GROUPS && M > 0) frames_softmax(x, M);
    if (form == SOFTMAX || form == OVER_LARGEST) frames_softmax(x, n);
    for (int64_t i = 0; i < n; i++) {
        if (form == SIGMOID || form == SIGMOID_SHARE)
            x[i] = 1 / (1 + tt_exp(-x[i]));
        sum += x[i];
        top = fmax(top, x[i]);
    }
    for (int64_t i = 0; i < n; i++)
        x[i] /= form == SHARE || form == SIGMOID_SHARE ? sum
                : form == OVER_LARGEST ? top : 1;
}

/* Mean keys of all candidates, the first time they are asked for. */
static double **find_keys(const named *t, round_of *r, int keys, int pool)
{
    double **k = r->key[keys][pool];
    for (int64_t i = 0; i < r->P && !k[r->P - 1]; i++) {
        const bool member = i < r->M;
        int64_t frame = (int64_t)r->index[i];
        if (!member && keys == FRAME_AFTER) frame++;
        if (!member && keys == FRAME_BEFORE) frame--;
        k[i] = of_frame(t, 'k', frame, member && keys != UNEDITED, r->width,
                        (frame_form)pool, r->L);
        if (!k[i]) return NULL;
    }
    return k;
}

/* Queries of a pass, [*n, width]; NULL: not in the dump. */
static const double *some_queries(const round_of *r, int which, int64_t *n)
{
    const double *q = r->q[which < LAST_FRAME ? which : 0];
    *n = which < LAST_FRAME ? r->T : r->L;
    return which == LAST_FRAME ? q + (r->T - r->L) * r->width : q;
}

/* The same pooled, the first time they are asked for. */
static const double *find_query(const named *t, round_of *r, int which,
                                int form)
{
    int64_t n;
    const double *x = some_queries(r, which, &n);
    double **q = &r->query[which][form];
    if (*q || !x) return *q;
    double *sorted = named_capacity(t, n);
    *q = named_capacity(t, r->width);
    if (sorted && *q)
        frame_statistic(*q, x, n, r->width, (frame_form)form, sorted);
    return *q;
}

/* Channels `from` to `to` of a query and a key. */
static double frames_logit(const double *q, const double *k, int64_t from,
                           int64_t to, int form)
{
    double qk = 0, qq = 0, kk = 0, d = 0;
    for (int64_t i = from; i < to; i++) {
        qk += q[i] * k[i], qq += q[i] * q[i], kk += k[i] * k[i];
        d += (q[i] - k[i]) * (q[i] - k[i]);
    }
    return form == COSINE ? qk / sqrt(qq * kk) : form == DISTANCE ? -sqrt(d)
                                                                  : qk;
}

/* Eq. 6, of the mean query, or for each, of all heads or of each. */
static bool make_mass(named *t, const int *how, double *trial)
{
    enum { QUERIES_MOST = 4096 };
    round_of *r = t->state;
    const int64_t D = r->width / r->H;
    const bool queries = how[EACH] & EACH_QUERY, heads = how[EACH] & EACH_HEAD;
    int64_t nq = 1, nh = heads && !how[HEADS] ? r->H : 1;
    const double *q = queries ? some_queries(r, how[QUERIES], &nq)
                              : find_query(t, r, how[QUERIES],
                                           how[QUERY_POOL]);
    double **k = find_keys(t, r, how[KEYS], how[KEY_POOL]);
    const int64_t per = how[KEY_POOL] == FRAME_ROWS ? r->L : 1;
    double *z = named_capacity(t, r->P * per);
    if (!q || !z || !k || nq > QUERIES_MOST) return false;
    for (int64_t c = 0; c < r->P; c++) trial[c] = 0;
    for (int64_t u = 0; u < nq * nh; u++) {
        const int64_t from = u % nh * D;
        const int64_t to = how[HEADS] || heads ? from + D : r->width;
        const double scale = how[LOGIT] ? 1 : (double)((to - from) / D)
                                              * sqrt((double)D);
        for (int64_t i = 0; i < r->P * per; i++)
            z[i] = frames_logit(q + u / nh * r->width, k[i / per]
                                + i % per * r->width, from, to, how[LOGIT])
                   / scale;
        frames_weights(z, r->P * per, r->M * per, how[WEIGHT]);
        for (int64_t i = 0; i < r->P * per; i++)
            trial[i / per] += z[i] / (double)(nq * nh);
    }
    return true;
}

/* A factor of the logits, from the masses themselves. */
static bool solve_mass(named *t, const int *how, double *trial, char *what,
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
    frames_softmax(trial, t->n);
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
    return true;
}

static const tt_entry *queries_of(const named *t, int64_t chunk, int64_t step)
{
    return named_find(t, "chunk.%" PRId64 "/step.%" PRId64 "/block.%" PRId64
                      "/self_attn.q", chunk, step, t->at.block);
}

bool frames_mass(named *t)
{
    round_of r;
    if (!begin_round(t, &r) || r.P != t->n) return false;
    const int64_t chunk = t->at.chunk, step = t->at.step;
    const tt_entry *e = queries_of(t, chunk, step);
    const tt_entry *x = named_find(t, "chunk.%" PRId64 "/step.%" PRId64 "/x",
                                   chunk, step);
    if (!e || e->t.rank != 3 || !tt_tensor_count(&e->t)) return false;
    r.T = e->t.dim[0], r.H = e->t.dim[1], r.width = r.H * e->t.dim[2];
    r.L = x && x->t.rank == 4 && x->t.dim[0] > 0 ? r.T / x->t.dim[0] : r.T;
    for (int i = 0; i < 3; i++)
        r.q[i] = named_read(t, queries_of(t, chunk - (i == CHUNK_BEFORE), step
                                          - (i == STEP_BEFORE)),
                            r.T * r.width);
    return r.q[0] && r.L > 0
           && named_try(t, &(rule){make_mass, solve_mass, "GRAB's mass: ",
                                   mass_changes});
}

/* ---- diversity, score, picks --------------------------------------------- */

enum { CLOSE, PLACES, HEAVY, WHO, REDUCE, REST };
enum { SQUARE = 1, BELL, TIMELESS, LINEAR, RECIPROCAL, SIGNED };
enum { MASSLESS = 1, OWN_MASS, BOTH_MASSES };
enum { AND_SELF = 1, OLDER, YOUNGER };
enum { SUM = 1, MEAN_OF_OTHERS, MEAN_OF_ALL };
enum { UNLIMITED = 1, REDUNDANCY, ONE_OVER };

static const change div_changes[] = {
    {CLOSE, SQUARE, "the square of the distance in time"},
    {CLOSE, BELL, "closeness is exp(-d^2 / (2 sigma^2))"},
    {CLOSE, TIMELESS, "the distance in time is left out"},
    {CLOSE, LINEAR, "closeness is linear in the distance"},
    {CLOSE, RECIPROCAL, "closeness is 1 / (1 + d / sigma)"},
    {CLOSE, SIGNED, "the distance in time keeps its sign"},
    {PLACES, 1, "distances are counted in places, not in frames"},
    {HEAVY, MASSLESS, "neighbours are not weighted by their mass"},
    {HEAVY, OWN_MASS, "neighbours are weighted by the candidate's own mass"},
    {HEAVY, BOTH_MASSES, "neighbours are weighted by the product of both "
     "masses"},
    {WHO, AND_SELF, "a candidate is compared with itself"},
    {WHO, OLDER, "a candidate is compared with those before it alone"},
    {WHO, YOUNGER, "a candidate is compared with those after it alone"},
    {REDUCE, SUM, "the sum of all neighbours where the heaviest belongs"},
    {REDUCE, MEAN_OF_OTHERS, "the mean of all neighbours where the heaviest "
     "belongs"},
    {REDUCE, MEAN_OF_ALL, "the sum of all neighbours, divided by all "
     "candidates, where the heaviest belongs"},
    {REST, UNLIMITED, "diversity may be negative"},
    {REST, REDUNDANCY, "the redundancy, not 1 less it"},
    {REST, ONE_OVER, "1 / (1 + redundancy)"},
    {0, 0, NULL}};

static double closeness(int form, double gap, double sigma)
{
    const double far = fabs(gap) / sigma;
    switch (form) {
    case SQUARE: return tt_exp(-far * far);
    case BELL: return tt_exp(-far * far / 2);
    case TIMELESS: return 1;
    case LINEAR: return fmax(0, 1 - far);
    case RECIPROCAL: return 1 / (1 + far);
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
            if ((o == c && how[WHO] != AND_SELF) || (o > c && how[WHO] == OLDER)
                || (o < c && how[WHO] == YOUNGER)) continue;
            const double gap = how[PLACES] ? (double)(c - o)
                                           : r->index[c] - r->index[o];
            const double mass = how[HEAVY] == OWN_MASS ? m[c] : m[o];
            const double sim = closeness(how[CLOSE], gap, sigma)
                               * (how[HEAVY] == MASSLESS ? 1
                                  : how[HEAVY] == BOTH_MASSES ? m[c] * m[o]
                                  : mass);
            sum += sim;
            most = fmax(most, sim);
        }
        if (how[REDUCE])
            most = sum / (how[REDUCE] == MEAN_OF_OTHERS ? (double)(r->P - 1)
                          : how[REDUCE] == MEAN_OF_ALL ? (double)r->P : 1);
        out[c] = how[REST] == UNLIMITED ? 1 - most
                 : how[REST] == REDUNDANCY ? most
                 : how[REST] == ONE_OVER ? 1 / (1 + most) : fmax(0, 1 - most);
    }
}

/* Eq. 7, and what ports have in its place; 0 ends them. */
typedef struct sigma_name {
    double is;
    const char *what;
} sigma_name;

enum { SIGMAS = 9 };

static void sigmas(const round_of *r, sigma_name *list)
{
    double lo = r->index[0], hi = lo, mean = 0, squares = 0;
    const double P = (double)r->P;
    for (int64_t i = 0; i < r->P; i++) {
        lo = fmin(lo, r->index[i]), hi = fmax(hi, r->index[i]);
        mean += r->index[i] / P;
    }
    for (int64_t i = 0; i < r->P; i++) squares += pow(r->index[i] - mean, 2);
    const sigma_name all[SIGMAS] = {
        {fmax(1, (hi - lo + 1) / 2), ""},
        {fmax(1, (hi - lo) / 2), ": the span of frames lacks its + 1"},
        {hi - lo + 1, ": the whole span of frames where half of it belongs"},
        {hi - lo, ": the whole span, without its + 1"},
        {P / 2, ": half the number of candidates where half the span of frames "
         "belongs"},
        {P, ": the number of candidates"}, {(double)r->M, ": the memory's size"},
        {sqrt(squares / P), ": the deviation of the frames' numbers"},
        {1, ": the distance in time is not divided by the span"}};
    memcpy(list, all, sizeof all);
}

static bool make_diversity(named *t, const int *how, double *out)
{
    const round_of *r = t->state;
    const double *m = named_beside(t, "grab.mass", r->P);
    if (m) diversity(r, m, r->sigma, how, out);
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
    sigma_name list[SIGMAS];
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
                                   "belongs", sigma, r->sigma);
    sigmas(r, list);
    bool any = false;
    for (int i = 1; i < SIGMAS && used < size; i++) {
        if (fabs(sigma / list[i].is - 1) > 1e-3) continue;
        used += (size_t)snprintf(what + used, size - used, "%s%s",
                                 any ? ", or" : "", list[i].what + any);
        any = true;
    }
    diversity(r, m, sigma, how, trial);
    return true;
}

bool frames_diversity(named *t)
{
    round_of r;
    sigma_name list[SIGMAS];
    if (!begin_round(t, &r) || r.P != t->n) return false;
    sigmas(&r, list);
    r.sigma = list[0].is;
    return named_try(t, &(rule){make_diversity, solve_diversity,
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

bool frames_score(named *t)
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
 * equal ones. */
enum { BY, LOWEST, LATER };
enum { BY_SCORE, BY_MASS, BY_DIV, BY_FRAME };

static bool make_keep(named *t, const int *how, double *trial)
{
    static const char *const by[] = {"grab.score", "grab.mass", "grab.div",
                                     "grab.candidates"};
    const double *s = named_beside(t, by[how[BY]], t->n);
    int64_t M = 0;
    for (int64_t i = 0; i < t->n; i++)
        M += (how[BY] || how[LOWEST] || how[LATER] ? t->got : t->want)[i] != 0;
    for (int64_t c = 0; s && c < t->n; c++) {
        int64_t rank = 0;
        for (int64_t o = 0; o < t->n; o++) {
            const double d = how[LOWEST] ? s[c] - s[o] : s[o] - s[c];
            rank += d > 0 || (d == 0 && (how[LATER] ? o > c : o < c));
        }
        trial[c] = rank < M;
    }
    return s;
}

/* What another block picked, or another number of them. */
static bool solve_keep(named *t, const int *how, double *trial, char *what,
                       size_t size)
{
    int64_t want = 0, got = 0;
    for (int64_t i = 0; i < t->n; i++)
        want += t->want[i] != 0, got += t->got[i] != 0;
    for (int64_t b = 0; got == want && b < 64; b++) {
        const double *x = named_read(t, named_find(
            t, "chunk.%" PRId64 "/step.%" PRId64 "/block.%" PRId64 "/admit.%"
            PRId64 "/grab.keep", t->at.chunk, t->at.step, b, t->at.admit),
            t->n);
        if (b == t->at.block || !x) continue;
        memcpy(trial, x, (size_t)t->n * sizeof *x);
        snprintf(what, size, "what block.%" PRId64 " keeps is kept", b);
        if (named_gives(t, trial)) return true;
    }
    snprintf(what, size, "%" PRId64 " frames are kept where %" PRId64
             " belong", got, want);
    for (int64_t i = 0; i < t->n; i++) trial[i] = t->got[i];
    return got != want && how[BY] == BY_SCORE;
}

bool frames_keep(named *t)
{
    static const change list[] = {
        {LATER, 1, "of equal scores the later candidate is kept, where the "
         "first belongs (tie rule)"},
        {LOWEST, 1, "the lowest are kept"},
        {BY, BY_MASS, "kept by mass alone, not by score"},
        {BY, BY_DIV, "kept by diversity alone, not by score"},
        {BY, BY_FRAME, "the newest are kept, whatever their score"},
        {0, 0, NULL}};
    return named_try(t, &(rule){make_keep, solve_keep, "", list});
}

/* ---- the trusted pool ---------------------------------------------------- */

enum { FORM, AXES, TOKENS, MEMBERS };
enum { DEVIATION, SAMPLE, VARIANCE, ROOT_OF_IT, WITHIN, BETWEEN, ABOUT_ZERO,
       OWN_DEVIATIONS, SQUARES };
enum { OVER_HEADS = 1, OVER_CHANNELS, OVER_ALL };

static const change pool_changes[] = {
    {FORM, SAMPLE, "sample deviation: divided by n - 1"},
    {FORM, VARIANCE, "the variance where its square root belongs"},
    {FORM, ROOT_OF_IT, "the root of the deviation"},
    {FORM, WITHIN, "the variances of the frames are averaged: what their means "
     "differ is left out"},
    {FORM, BETWEEN, "only what lies between the means of frames: the variance "
     "within each is left out"},
    {FORM, ABOUT_ZERO, "root mean square (mean not subtracted)"},
    {FORM, OWN_DEVIATIONS, "mean of the frames' own deviations"},
    {FORM, SQUARES, "the sum of squares, neither divided nor rooted"},
    {AXES, OVER_HEADS, "one statistic for a channel of all heads"},
    {AXES, OVER_CHANNELS, "one statistic for all channels of a head"},
    {AXES, OVER_ALL, "one statistic for all heads and channels"},
    {TOKENS, 1, "the last token of every frame is left out"},
    {MEMBERS, 1, "members as they were before TAME edited them"},
    {0, 0, NULL}};

/* Sink, members, evicted and later frames, in this order; bit i of a set: frame
 * i. Means and squared deviations of each, of all tokens and but the last one,
 * as edited and not. */
typedef struct pool {
    round_of r;
    int64_t frame[POOL_MOST], n, first, width, D, L;    /* first member       */
    double *mean[2][2][POOL_MOST], *squares[2][2][POOL_MOST];
    bool deviation;
    unsigned right;
} pool;

/* Which channels share a statistic with channel i? */
static bool shares(const pool *p, int axes, int64_t i, int64_t k)
{
    return axes == OVER_ALL || (axes == OVER_HEADS && i % p->D == k % p->D)
           || (axes == OVER_CHANNELS && i / p->D == k / p->D) || i == k;
}

/* Of the frames of a set and the channels that share it with channel i. */
static double pool_statistic(const pool *p, const int *how, unsigned set,
                             int64_t i)
{
    double *const *mean = p->mean[how[TOKENS]][how[MEMBERS]];
    double *const *squares = p->squares[how[TOKENS]][how[MEMBERS]];
    const double L = (double)(p->L - how[TOKENS]);
    const int64_t from = how[AXES] ? 0 : i, to = how[AXES] ? p->width : i + 1;
    double n = 0, m = 0, within = 0, between = 0, zero = 0, own = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t f = 0; f < p->n; f++)
            for (int64_t k = from; set >> f & 1 && k < to; k++) {
                if (!shares(p, how[AXES], i, k)) continue;
                if (!pass) {
                    n++, m += mean[f][k];
                    continue;
                }
                within += squares[f][k];
                between += L * pow(mean[f][k] - m / n, 2);
                zero += L * mean[f][k] * mean[f][k];
                own += sqrt(squares[f][k] / L) / n;
            }
    const double variance = (within + between) / (n * L);
    switch (p->deviation ? how[FORM] : -1) {
    case DEVIATION: return sqrt(variance);
    case SAMPLE: return sqrt((within + between) / (n * L - 1));
    case VARIANCE: return variance;
    case ROOT_OF_IT: return sqrt(sqrt(variance));
    case WITHIN: return sqrt(within / (n * L));
    case BETWEEN: return sqrt(between / (n * L));
    case ABOUT_ZERO: return sqrt((within + zero) / (n * L));
    case OWN_DEVIATIONS: return own;
    case SQUARES: return within + between;
    default: return m / n;
    }
}

static bool pool_of_set(const pool *p, const int *how, unsigned set,
                        double *trial)
{
    if (!set || (how[TOKENS] && p->L < 2)) return false;
    for (int64_t i = 0; i < p->width; i++)
        trial[i] = pool_statistic(p, how, set, i);
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
    const bool all = p->n <= 16 && !how[AXES]
                     && p->width * p->n << p->n <= 1 << 26;
    char a[40], b[40];
    double eps = 0;
    for (int64_t i = 0; make_pool(t, how, trial) && i < t->n; i++)
        eps += (t->got[i] * t->got[i] - trial[i] * trial[i]) / (double)t->n;
    for (int64_t i = 0; i < t->n; i++)
        trial[i] = sqrt(fmax(trial[i] * trial[i] + eps, 0));
    snprintf(what, size, "%.3g is added to the variance", eps);
    if (p->deviation && named_gives(t, trial)) return true;
    for (unsigned k = 1; k < (all ? 1u << p->n
                                  : (unsigned)(p->n * p->n)); k++) {
        const unsigned from = k % (unsigned)p->n, count = k / (unsigned)p->n;
        const unsigned set = all ? k : (((1u << (count + 1)) - 1) << from)
                                           & ((1u << p->n) - 1);
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
    *p = (pool){.width = width, .D = t->like->dim[t->like->rank - 1]};
    if (!begin_round(t, &p->r)) return false;
    const int64_t P = p->r.P, last = (int64_t)p->r.index[P - 1];
    for (int64_t s = 0; s < SINK_MOST && s < (int64_t)p->r.index[0]; s++)
        p->frame[p->n++] = s;
    p->first = p->n;
    for (int64_t i = 0; i < P + LATER_MOST && p->n < POOL_MOST; i++)
        p->frame[p->n++] = i < P ? (int64_t)p->r.index[i] : last + 1 + i - P;
    if (p->first + p->r.M > p->n
        || !plain_rows(t, what, last, width, &p->L)) return false;
    for (int64_t i = 0; i < p->n; i++)
        for (int k = 0; k < 4; k++) {
            const bool fewer = k / 2, edited = k % 2 == 0 && i >= p->first
                                               && i < p->first + p->r.M;
            double *m = p->mean[k / 2][k % 2][i] = of_frame(
                t, what, p->frame[i], edited, width,
                fewer ? FRAME_SHORT : FRAME_MEAN, 0);
            double *s = p->squares[k / 2][k % 2][i] = of_frame(
                t, what, p->frame[i], edited, width,
                fewer ? FRAME_SHORT_SQUARES : FRAME_SQUARES, 0);
            if (m && s) continue;
            if (i < p->first + P) return false;
            p->n = i;                    /* that frame is not made yet */
        }
    return true;
}

/* The set that gives ours: the sink is as large as makes it. */
bool frames_pool(named *t)
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
enum { OWN_OF_OTHER_KIND = 1, OWN_OF_ALL, OWN_SHORT, OWN_HEADS, OWN_POOL };
enum { OTHER_KIND = 1, NOT_MOVED };
enum { OF_SAMPLE = 1, OF_VARIANCE, OF_SQUARED_GAIN, OF_INVERSE };
enum { POWER = 1, KEEPS_MEAN, LIMITED };

static const change edit_changes[] = {
    {OWN, OWN_OF_OTHER_KIND, "the frame's own statistics are those of the "
     "other of keys and values"},
    {OWN, OWN_OF_ALL, "a frame's own statistics are those of all evicted "
     "frames"},
    {OWN, OWN_SHORT, "the frame's own statistics leave out its last token"},
    {OWN, OWN_HEADS, "the frame's own statistics are shared by all heads"},
    {OWN, OWN_POOL, "the roles of the frame and the pool are exchanged"},
    {MEAN, OTHER_KIND, "the trusted mean is that of the other of keys and "
     "values"},
    {MEAN, NOT_MOVED, "the old mean is kept: only the deviation is edited"},
    {SD, OTHER_KIND, "the trusted deviation is that of the other of keys and "
     "values"},
    {SD, NOT_MOVED, "the deviation is kept: only the mean is edited"},
    {MADE, OF_SAMPLE, "the frame's deviation is divided by n - 1"},
    {MADE, OF_VARIANCE, "the frame's variance where its deviation belongs"},
    {MADE, OF_SQUARED_GAIN, "variances where deviations belong (the gain is "
     "squared)"},
    {MADE, OF_INVERSE, "gain inverted: own deviation over the trusted one"},
    {EDIT, POWER, "the deviation is blended by powers: gain^tau"},
    {EDIT, KEEPS_MEAN, "the frame's own mean is not subtracted"},
    {EDIT, LIMITED, "the gain is limited to 0.5 .. 2"},
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
        [AXES] = which == OWN_HEADS ? OVER_HEADS : 0,
        [TOKENS] = which == OWN_SHORT};
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
    double g = sd / fmax(how[MADE] == OF_VARIANCE ? s * s : s, 1e-6);
    if (how[MADE] == OF_SAMPLE) g /= sqrt(L / (L - 1));
    if (how[MADE] == OF_SQUARED_GAIN) g *= g;
    if (how[MADE] == OF_INVERSE) g = 1 / g;
    if (how[SD] == NOT_MOVED) g = 1;
    if (how[EDIT] == LIMITED) g = fmin(fmax(g, 0.5), 2);
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

/* "tame.k/c.3": candidate 3 of the round. */
bool frames_edit(named *t)
{
    static const int right[NAMED_FIELDS];
    const char *tame = strstr(t->name, "/tame.");
    const char what = tame[6], other = what == 'k' ? 'v' : 'k';
    const int64_t c = atoll(strrchr(t->name, '.') + 1);
    const int n = (int)(tame - t->name);
    int64_t L;
    pool p, p2;
    if (t->like->rank != 3 || t->like->dim[0] < 2) return false;
    edit e = {.L = t->like->dim[0], .width = t->n / t->like->dim[0]};
    if (!begin_pool(t, &p, what, e.width) || !begin_pool(t, &p2, other, e.width)
        || c < 0 || c >= p.r.P || p.L != e.L || p2.L != e.L
        || p.first + p.r.P > p.n) return false;
    e.x = plain_rows(t, what, (int64_t)p.r.index[c], e.width, &L);
    for (int k = 0; k < 2; k++) {
        const char kind = k ? other : what;
        e.mean[k] = named_read(t, named_find(t, "%.*s/tame.mean_%c", n,
                                             t->name, kind), e.width);
        e.sd[k] = named_read(t, named_find(t, "%.*s/tame.sd_%c", n, t->name,
                                           kind), e.width);
        if (!e.mean[k] || !e.sd[k]) return false;
    }
    const unsigned one = 1u << (p.first + c), all = (1u << p.r.P) - 1,
                   old = (1u << p.r.M) - 1;
    for (int k = 0; k <= OWN_HEADS; k++)
        own_of(t, &e, k, k == OWN_OF_OTHER_KIND ? &p2 : &p,
               k == OWN_OF_ALL ? (all & ~old) << p.first : one);
    e.own_mean[OWN_POOL] = e.mean[0];
    e.own_sd[OWN_POOL] = e.sd[0];
    double *trial = named_capacity(t, t->n);
    if (!e.x || !trial || t->d->ctx->status) return false;
    t->state = &e;
    e.tau = tau_of(t, right, t->want, trial);
    return named_try(t, &(rule){make_edit, solve_edit, "TAME: ", edit_changes});
}
