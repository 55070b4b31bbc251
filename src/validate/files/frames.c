/* frames.c: mistakes of TetherCache's rounds, told from the keys, queries and
 * scores of one dump.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a frame's keys are those of the last pass of its chunk, or what a
 *         round edited them to. From them, and the queries of the pass, the
 *         whole round follows (src/cache/grab.c, tame.c): it is done again
 *         here in double, right and with a mistake.
 * Next    named.c */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tether/mathfn.h"
#include "validate/files/named.h"
#include "validate/verdict.h"

enum { CANDIDATES_MOST = 64, POOL_MOST = 24, ALL_SETS = 12, SINK_MOST = 8 };

/* The round that a name is of, and its candidates. */
typedef struct round_of {
    int64_t P, M, width, H, T;
    const double *index;                  /* [P] frames                       */
    const double *q;                      /* [T, width] queries of the pass   */
    double *mean[CANDIDATES_MOST];        /* [P] mean keys [width]            */
} round_of;

/* ---- keys of a frame ----------------------------------------------------- */

/* Means over the tokens of `rows` [L, width]. */
static void mean_into(double *m, const double *rows, int64_t L, int64_t width)
{
    for (int64_t i = 0; i < width; i++) {
        m[i] = 0;
        for (int64_t r = 0; r < L; r++) m[i] += rows[r * width + i];
        m[i] /= (double)L;
    }
}

/* The same of frame `at` of the F of a tensor; its values, which may be many,
 * do not stay in scratch. NULL: no such shape. */
static double *mean_in(const named *t, const tt_entry *e, int64_t at, int64_t F,
                       int64_t width)
{
    tt_ctx *ctx = t->d->ctx;
    const int64_t n = e ? tt_tensor_count(&e->t) : 0, L = n / F / width;
    double *m = L > 0 && n == L * F * width ? named_capacity(t, width) : NULL;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const double *rows = m ? named_read(t, e, n) : NULL;
    if (rows) mean_into(m, rows + at * L * width, L, width);
    tt_arena_reset(&ctx->scratch, mark);
    return rows ? m : NULL;
}

/* The mean keys or values ('k', 'v') of a frame as its chunk's last pass made
 * them; NULL: not in the dump. */
static double *plain_mean(const named *t, char what, int64_t frame,
                          int64_t width)
{
    char pass[64];
    int64_t at, F;
    if (!named_pass_of(t, frame, pass, sizeof pass, &at, &F)) return NULL;
    return mean_in(t, named_find(t, "%sblock.%" PRId64 "/self_attn.%c", pass,
                                 t->at.block, what), at, F, width);
}

/* What TAME left of a frame in round `admit` of a chunk; NULL: it was no
 * candidate there. */
static double *edited_in(const named *t, int64_t chunk, int64_t admit,
                         char what, int64_t frame, int64_t width)
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
            return mean_in(t, named_find(t, "%stame.%c/c.%" PRId64, round, what,
                                         i), 0, 1, width);
    return NULL;
}

/* The same as TAME left them in a round before this one, else as they were. */
static double *edited_mean(const named *t, char what, int64_t frame,
                           int64_t width)
{
    enum { ROUNDS = 16 };                     /* of a chunk, at most */
    for (int64_t c = t->at.chunk; c >= 0; c--)
        for (int64_t a = c == t->at.chunk ? t->at.admit : ROUNDS; a > 0; a--) {
            double *m = edited_in(t, c, a - 1, what, frame, width);
            if (m) return m;
        }
    return plain_mean(t, what, frame, width);
}

/* ---- a round ------------------------------------------------------------- */

/* The candidates of the round that t is of, and how many are kept. */
static bool begin_round(const named *t, round_of *r)
{
    const tt_entry *e = named_find(t, "%.*sgrab.candidates",
                                   (int)(t->at.last - t->name), t->name);
    *r = (round_of){.P = e ? tt_tensor_count(&e->t) : 0};
    r->index = named_read(t, e, r->P);
    const double *keep = named_beside(t, "grab.keep", r->P);
    for (int64_t i = 0; keep && i < r->P; i++) r->M += keep[i] != 0;
    return r->index && keep && r->P > 0 && r->P <= CANDIDATES_MOST
           && t->at.admit >= 0;
}

/* ---- mass ---------------------------------------------------------------- */

typedef enum mass_fault {
    MASS_RIGHT, MASS_LAST, MASS_FIRST, MASS_MAX, MASS_MEDIAN, MASS_HEAD,
    MASS_HEAD_SUM, MASS_SIGMOID, MASS_SIGMOID_SHARE, MASS_LOGITS, MASS_COSINE,
    MASS_COSINE_SOFTMAX, MASS_UNEDITED, MASS_NEXT, MASS_BEFORE
} mass_fault;

/* Mean keys of all candidates: members, then evicted frames. */
static bool find_keys(const named *t, round_of *r, mass_fault f)
{
    for (int64_t i = 0; i < r->P; i++) {
        const bool member = i < r->M;
        int64_t frame = (int64_t)r->index[i];
        if (!member && f == MASS_NEXT) frame++;
        if (!member && f == MASS_BEFORE) frame--;
        r->mean[i] = !member || f == MASS_UNEDITED
                         ? plain_mean(t, 'k', frame, r->width)
                         : edited_mean(t, 'k', frame, r->width);
        if (!r->mean[i]) return false;
    }
    return true;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Queries of the pass, pooled into q [width]. */
static bool pool_queries(const named *t, const round_of *r, mass_fault f,
                         double *q)
{
    const tt_entry *x = named_find(t, "chunk.%" PRId64 "/step.%" PRId64 "/x",
                                   t->at.chunk, t->at.step);
    const int64_t F = x && x->t.rank == 4 ? x->t.dim[0] : 1;
    const int64_t L = F > 0 ? r->T / F : 0;
    double *column = named_capacity(t, r->T);
    if (L < 1) return false;
    if (f == MASS_LAST) mean_into(q, r->q + (r->T - L) * r->width, L, r->width);
    else if (f == MASS_FIRST) mean_into(q, r->q, L, r->width);
    else mean_into(q, r->q, r->T, r->width);
    if (f != MASS_MAX && f != MASS_MEDIAN) return true;
    for (int64_t i = 0; column && i < r->width; i++) {
        for (int64_t k = 0; k < r->T; k++) column[k] = r->q[k * r->width + i];
        qsort(column, (size_t)r->T, sizeof *column, ascending);
        q[i] = f == MASS_MAX ? column[r->T - 1]
               : (column[(r->T - 1) / 2] + column[r->T / 2]) / 2;
    }
    return column;
}

static void frames_softmax(double *x, int64_t n)
{
    double top = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++) top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++) sum += x[i] = tt_exp(x[i] - top);
    for (int64_t i = 0; i < n; i++) x[i] /= sum;
}

/* Eq. 6 of pooled queries. */
static void mass(double *out, const round_of *r, const double *q, mass_fault f)
{
    const bool head = f == MASS_HEAD || f == MASS_HEAD_SUM;
    const bool cosine = f == MASS_COSINE || f == MASS_COSINE_SOFTMAX;
    const double D = (double)(r->width / r->H);
    const double heads = f == MASS_HEAD_SUM ? 1 : (double)r->H;
    double sum = 0;
    for (int64_t c = 0; c < r->P; c++) {
        const double *k = r->mean[c];
        const double qk = named_dot(q, k, head ? (int64_t)D : r->width);
        out[c] = cosine ? qk / sqrt(named_dot(q, q, r->width)
                                    * named_dot(k, k, r->width))
                        : qk / (heads * sqrt(D));
        if (f == MASS_SIGMOID || f == MASS_SIGMOID_SHARE)
            sum += out[c] = 1 / (1 + tt_exp(-out[c]));
    }
    for (int64_t c = 0; f == MASS_SIGMOID_SHARE && c < r->P; c++) out[c] /= sum;
    if (f < MASS_SIGMOID || f > MASS_COSINE) frames_softmax(out, r->P);
}

static bool make_mass(named *t, int how, double *trial)
{
    const mass_fault f = (mass_fault)how;
    round_of *r = t->state;
    if (how && !r->mean[0]) return false;
    if (!how) {
        const tt_entry *e = named_find(t, "chunk.%" PRId64 "/step.%" PRId64
                                       "/block.%" PRId64 "/self_attn.q",
                                       t->at.chunk, t->at.step, t->at.block);
        if (!e || e->t.rank != 3 || !tt_tensor_count(&e->t)) return false;
        r->T = e->t.dim[0], r->H = e->t.dim[1];
        r->width = e->t.dim[1] * e->t.dim[2];
        r->q = named_read(t, e, -1);
    }
    double *q = named_capacity(t, r->width);
    if (!q || !r->q || !pool_queries(t, r, f, q)) return false;
    if ((!how || how >= MASS_UNEDITED) && !find_keys(t, r, f)) return false;
    mass(trial, r, q, f);
    return true;
}

/* A factor of the logits, from the masses themselves. */
static bool other_factor(named *t, const round_of *r)
{
    double gw = 0, ww = 0, mg = 0, mw = 0, *trial = named_capacity(t, t->n);
    const double n = (double)t->n, D = r->H ? (double)(r->width / r->H) : 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (!trial || !(t->got[i] > 0 && t->want[i] > 0)) return false;
        mg += tt_log(t->got[i]) / n, mw += tt_log(t->want[i]) / n;
    }
    for (int64_t i = 0; i < t->n; i++) {
        const double g = tt_log(t->got[i]) - mg, w = tt_log(t->want[i]) - mw;
        gw += g * w, ww += w * w;
    }
    if (!(ww > 0) || t->n < 4) return false;
    const double f = gw / ww;
    for (int64_t i = 0; i < t->n; i++) trial[i] = f * tt_log(t->want[i]);
    frames_softmax(trial, t->n);
    if (!named_fits(t, trial)) return false;
    const struct { double is; const char *what; } names[] = {
        {sqrt(D), ": 1/sqrt(D) is missing"},
        {1 / sqrt(D), ": 1/D where 1/sqrt(D) belongs"},
        {(double)r->H, ": the sum of the heads where their mean belongs, or "
         "another temperature"},
        {(double)r->H * sqrt(D), ": neither 1/sqrt(D) nor a mean of heads"}};
    const char *what = "";
    for (int i = 3; i >= 0; i--)
        if (r->H && fabs(f / names[i].is - 1) < 1e-3) what = names[i].what;
    snprintf(t->out, t->size, "the logits of GRAB's mass have a factor of "
             "%.5g%s", f, what);
    return true;
}

bool frames_mass(named *t)
{
    static const char *const what[] = {
        "queries of the last frame alone", "queries of the first frame alone",
        "the largest queries (max) where their mean belongs",
        "the median of the queries where their mean belongs", "head 0 alone",
        "head 0 alone, not divided by the number of heads",
        "sigmoid of the logits where their softmax belongs",
        "sigmoid of the logits, divided by their sum, where softmax belongs",
        "the logits themselves where their softmax belongs",
        "the cosine of mean queries and keys in place of the logits",
        "the softmax of the cosine of mean queries and keys",
        "keys of members as they were before TAME edited them",
        "keys of the frame after each evicted one (slot off by one)",
        "keys of the frame before each evicted one (slot off by one)", NULL};
    round_of r;
    t->state = &r;
    if (!begin_round(t, &r) || r.P != t->n) return false;
    return named_try(t, &(rule){make_mass, "GRAB's mass: ", what})
           || other_factor(t, &r);
}

/* ---- diversity, score, picks --------------------------------------------- */

typedef enum div_fault {
    DIV_RIGHT, DIV_SPAN, DIV_WHOLE, DIV_SUM, DIV_SELF, DIV_SQUARE, DIV_TIMELESS,
    DIV_PLACE, DIV_MASSLESS, DIV_COUNT, DIV_LINEAR, DIV_MEAN, DIV_ONE
} div_fault;

/* Eqs. 7 to 9. */
static bool make_diversity(named *t, int how, double *out)
{
    const round_of *r = t->state;
    const div_fault f = (div_fault)how;
    const double *m = named_beside(t, "grab.mass", r->P);
    double lo = r->index[0], hi = r->index[0];
    for (int64_t i = 1; i < r->P; i++) {
        lo = fmin(lo, r->index[i]);
        hi = fmax(hi, r->index[i]);
    }
    const double half = 0.5 * (hi - lo + (f != DIV_SPAN));
    const double sigma = f == DIV_ONE ? 1 : fmax(1, f == DIV_WHOLE ? 2 * half
                         : f == DIV_COUNT ? 0.5 * (double)r->P : half);
    for (int64_t c = 0; m && c < r->P; c++) {
        double most = 0;
        for (int64_t o = 0; o < r->P; o++) {
            if (o == c && f != DIV_SELF) continue;
            const double gap = f == DIV_PLACE ? fabs((double)(c - o))
                               : fabs(r->index[c] - r->index[o]);
            const double far = f == DIV_SQUARE ? gap * gap / (sigma * sigma)
                                               : gap / sigma;
            const double near = f == DIV_TIMELESS ? 1
                                : f == DIV_LINEAR ? fmax(0, 1 - far)
                                : tt_exp(-far);
            const double sim = near * (f == DIV_MASSLESS ? 1 : m[o]);
            most = f == DIV_SUM || f == DIV_MEAN ? most + sim
                                                 : fmax(most, sim);
        }
        if (f == DIV_MEAN) most /= (double)(r->P - 1);
        out[c] = fmax(0, 1 - most);
    }
    return m;
}

bool frames_diversity(named *t)
{
    static const char *const what[] = {
        "the span of frames lacks its + 1",
        "the whole span of frames where half of it belongs",
        "the sum of all neighbours where the heaviest belongs",
        "a candidate is compared with itself",
        "the square of the distance in time",
        "the distance in time is left out",
        "distances are counted in places, not in frames",
        "neighbours are not weighted by their mass",
        "half the number of candidates where half the span of frames belongs",
        "closeness is linear in the distance",
        "the mean of all neighbours where the heaviest belongs",
        "the distance in time is not divided by the span", NULL};
    round_of r;
    t->state = &r;
    if (!begin_round(t, &r) || r.P != t->n) return false;
    return named_try(t, &(rule){make_diversity, "GRAB's diversity: ", what});
}

/* mass + alpha div, alpha from ours, and what is not a sum of both. */
static bool make_score(named *t, int how, double *trial)
{
    const double *m = named_beside(t, "grab.mass", t->n);
    const double *div = named_beside(t, "grab.div", t->n);
    if (!m || !div) return false;
    const double dd = named_dot(div, div, t->n);
    const double alpha = (named_dot(t->want, div, t->n)
                          - named_dot(m, div, t->n)) / dd;
    for (int64_t i = 0; i < t->n; i++)
        trial[i] = how == 0 ? m[i] + alpha * div[i] : how == 1 ? m[i] * div[i]
                   : m[i] * (1 + alpha * div[i]);
    *(double *)t->state = alpha;
    return dd > 0;
}

bool frames_score(named *t)
{
    static const char *const what[] = {"the product of both",
                                       "mass (1 + alpha diversity)", NULL};
    double a, b, alpha = NAN, *trial = named_capacity(t, t->n);
    t->state = &alpha;
    if (named_try(t, &(rule){make_score, "score = mass + alpha diversity: ",
                             what})) return true;
    if (!trial || !make_score(t, 0, trial) || !named_right(t, trial)
        || !named_mixed(t, trial, named_beside(t, "grab.mass", t->n),
                        named_beside(t, "grab.div", t->n), &a, &b))
        return false;
    if (fabs(a - 1) < 1e-4)
        snprintf(t->out, t->size, "score = mass + alpha diversity: alpha is "
                 "%.5g where %.5g belongs", b, alpha);
    else
        snprintf(t->out, t->size, "score = mass + alpha diversity: %.5g mass "
                 "%+.5g diversity where 1 and %.5g belong", a, b, alpha);
    return true;
}

/* The M highest or lowest scores, the earlier or the later of equal ones. */
static bool make_keep(named *t, int how, double *trial)
{
    const bool later = how == 1, low = how == 2;
    const double *s = named_beside(t, "grab.score", t->n);
    int64_t M = 0;
    for (int64_t i = 0; i < t->n; i++) M += t->want[i] != 0;
    for (int64_t c = 0; s && c < t->n; c++) {
        int64_t rank = 0;
        for (int64_t o = 0; o < t->n; o++) {
            const double d = low ? s[c] - s[o] : s[o] - s[c];
            rank += d > 0 || (d == 0 && (later ? o > c : o < c));
        }
        trial[c] = rank < M;
    }
    return s;
}

bool frames_keep(named *t)
{
    static const char *const what[] = {
        "of equal scores the later candidate is kept, where the first belongs "
        "(tie rule)", "the lowest scores are kept", NULL};
    return named_try(t, &(rule){make_keep, "", what});
}

/* ---- the trusted pool ---------------------------------------------------- */

/* Sink, members and evicted frames, in this order; bit i of a set: frame i. */
typedef struct pool {
    int64_t frame[POOL_MOST], n, first;   /* of the members                   */
    double *mean[POOL_MOST];
    unsigned sink, members;
} pool;

/* Means over the frames of a set. */
static void pool_mean(double *out, const pool *p, unsigned set, int64_t width)
{
    int count = 0;
    for (int64_t i = 0; i < p->n; i++) count += set >> i & 1;
    for (int64_t k = 0; k < width; k++) {
        out[k] = 0;
        for (int64_t i = 0; i < p->n; i++)
            if (set >> i & 1) out[k] += p->mean[i][k] / count;
    }
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

static bool begin_pool(const named *t, pool *p)
{
    const char what = t->name[strlen(t->name) - 1];
    round_of r;
    *p = (pool){.n = 0};
    if (!begin_round(t, &r)) return false;
    for (int64_t s = 0; s < SINK_MOST && s < (int64_t)r.index[0]; s++)
        p->frame[p->n++] = s;
    p->first = p->n;
    for (int64_t i = 0; i < r.P && p->n < POOL_MOST; i++)
        p->frame[p->n++] = (int64_t)r.index[i];
    if (p->first + r.M > p->n) return false;
    for (int64_t i = 0; i < p->n; i++) {
        const bool member = i >= p->first && i < p->first + r.M;
        p->mean[i] = member ? edited_mean(t, what, p->frame[i], t->n)
                            : plain_mean(t, what, p->frame[i], t->n);
        if (!p->mean[i]) return false;
    }
    p->sink = (1u << p->first) - 1;
    p->members = ((1u << r.M) - 1) << p->first;
    return true;
}

/* The set that gives ours: the sink is as large as makes it. 0: none does. */
static unsigned right_set(const named *t, const pool *p, double *trial)
{
    for (int64_t s = p->first; s >= 0; s--) {
        const unsigned set = p->members | ((1u << s) - 1);
        pool_mean(trial, p, set, t->n);
        if (set && named_right(t, trial)) return set;
    }
    return 0;
}

/* The set that gives theirs; 0: none does. Of many frames few are tried. */
static unsigned wrong_set(const named *t, const pool *p, unsigned right,
                          double *trial)
{
    const unsigned some[] = {right & p->sink, right & p->members,
                             (1u << p->n) - 1, right | p->sink};
    const bool all = p->n <= ALL_SETS;
    for (unsigned k = all; k < (all ? 1u << p->n : 4); k++) {
        const unsigned set = all ? k : some[k];
        if (!set || set == right) continue;
        pool_mean(trial, p, set, t->n);
        if (named_gives(t, trial)) return set;
    }
    return 0;
}

bool frames_pool(named *t)
{
    pool p;
    char a[40], b[40];
    double *trial = named_capacity(t, t->n);
    if (!trial || !begin_pool(t, &p)) return false;
    const unsigned right = right_set(t, &p, trial);
    const unsigned set = right ? wrong_set(t, &p, right, trial) : 0;
    if (!set) return false;
    name_set(a, sizeof a, &p, set);
    name_set(b, sizeof b, &p, right);
    snprintf(t->out, t->size, "the trusted pool is frames %s where %s belong%s",
             a, b, right & p.sink && !(set & right & p.sink)
             ? ": without the sink"
             : !(set & p.members) ? ": without the memory" : "");
    return true;
}

/* ---- deviations of the pool ---------------------------------------------- */

/* The variance between the means of its frames, and what is left within. */
static bool find_between(named *t, double *between)
{
    pool p;
    char last[] = "tame.mean_?";
    last[sizeof last - 2] = t->name[strlen(t->name) - 1];
    named mean = *t;
    double *none = named_capacity(t, t->n);
    mean.want = named_beside(t, last, t->n);
    mean.got = none;             /* of any error: how large is it next to 0?  */
    for (int64_t k = 0; none && k < t->n; k++) none[k] = 0;
    if (!none || !mean.want || !begin_pool(t, &p)) return false;
    const unsigned set = right_set(&mean, &p, between);
    for (int64_t k = 0; set && k < t->n; k++) {
        double m = 0;
        int n = 0;
        for (int64_t i = 0; i < p.n; i++)
            if (set >> i & 1) m += p.mean[i][k], n++;
        between[k] = 0;
        for (int64_t i = 0; i < p.n; i++)
            if (set >> i & 1) between[k] += pow(p.mean[i][k] - m / n, 2) / n;
    }
    return set;
}

/* The deviation itself is right; of n values, divided by n - 1, the factor of
 * theirs tells n. */
static bool make_deviation(named *t, int how, double *trial)
{
    const double ww = named_dot(t->want, t->want, t->n);
    const double f = ww > 0 ? named_dot(t->got, t->want, t->n) / ww : 0;
    const double n = f > 1 ? f * f / (f * f - 1) : 0;
    if (how >= 4 && !find_between(t, trial)) return false;
    if (how == 3 && (n < 1.5 || n > 1e5 || fabs(n / rint(n) - 1) > 1e-3))
        return false;
    for (int64_t i = 0; i < t->n; i++) {
        const double w = t->want[i];
        trial[i] = how == 0 ? w : how == 1 ? w * w : how == 2 ? sqrt(w)
                   : how == 3 ? w * sqrt(rint(n) / (rint(n) - 1))
                   : how == 4 ? sqrt(trial[i])
                   : sqrt(fmax(0, w * w - trial[i]));
    }
    return true;
}

bool frames_deviation(named *t)
{
    static const char *const what[] = {
        "the variance where its square root belongs",
        "the root of the deviation", "sample deviation: divided by n - 1",
        "only what lies between the means of frames: the variance within each "
        "is left out", "the variances of the frames are averaged: what their "
        "means differ is left out", NULL};
    return named_try(t, &(rule){make_deviation, "", what});
}
