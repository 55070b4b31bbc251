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
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tether/mathfn.h"
#include "validate/files/named.h"

enum { CANDIDATES_MOST = 64, POOL_MOST = 24, ALL_SETS = 12, SINK_MOST = 8 };

/* The round that a name is of, and its candidates. */
typedef struct round_of {
    int64_t P, M, width, H, sub;
    const double *index;                  /* [P] frames                       */
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

static double *mean_of(const named *t, const double *rows, int64_t L,
                       int64_t width)
{
    double *m = rows ? named_capacity(t, width) : NULL;
    if (m) mean_into(m, rows, L, width);
    return m;
}

/* The same of rows from first * L on, of all `frames` frames of a tensor; its
 * values, which may be many, do not stay in scratch. NULL: no such shape. */
static double *mean_in(const named *t, const char *name, int64_t first,
                       int64_t frames, int64_t width)
{
    tt_ctx *ctx = t->d->ctx;
    int64_t n;
    double *m = named_capacity(t, width);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const double *rows = m ? named_read(t, name, &n) : NULL;
    const int64_t L = rows ? n / frames / width : 0;
    const bool is = L > 0 && n == L * frames * width;
    if (is) mean_into(m, rows + first * L * width, L, width);
    tt_arena_reset(&ctx->scratch, mark);
    return is ? m : NULL;
}

/* The mean keys or values ('k', 'v') of a frame as its chunk's last pass made
 * them, at most `before` chunks; NULL: not in the dump. */
static double *plain_mean(const named *t, char what, int64_t frame,
                          int64_t width)
{
    int64_t first = 0;
    for (int64_t c = 0; c <= t->chunk; c++) {
        char name[224];
        int64_t s = 0;
        snprintf(name, sizeof name, "chunk.%lld/step.0/x", (long long)c);
        const tt_entry *x = named_find(t, name);
        if (!x || x->t.rank != 4) return NULL;
        const int64_t F = x->t.dim[0];
        if (frame < first || frame >= first + F) {
            first += F;
            continue;
        }
        do snprintf(name, sizeof name, "chunk.%lld/step.%lld/x", (long long)c,
                    (long long)++s);
        while (named_find(t, name));
        snprintf(name, sizeof name, "chunk.%lld/step.%lld/block.%lld/"
                 "self_attn.%c", (long long)c, (long long)s - 1,
                 (long long)t->block, what);
        return mean_in(t, name, frame - first, F, width);
    }
    return NULL;
}

/* The place of a frame among the candidates of a round; -1: not one. */
static int64_t place_in(const named *t, const char *round, int64_t frame)
{
    char name[224];
    int64_t n;
    snprintf(name, sizeof name, "%sgrab.candidates", round);
    const double *x = named_read(t, name, &n);
    for (int64_t i = 0; x && i < n; i++)
        if ((int64_t)x[i] == frame) return i;
    return -1;
}

/* "chunk.3/step.4/block.0/admit.1/"; false: there is no such round. */
static bool round_name(const named *t, int64_t chunk, int64_t sub, char *out,
                       size_t size)
{
    char name[256];
    for (int64_t s = 0; s < 64; s++) {
        snprintf(out, size, "chunk.%lld/step.%lld/block.%lld/admit.%lld/",
                 (long long)chunk, (long long)s, (long long)t->block,
                 (long long)sub);
        snprintf(name, sizeof name, "%sgrab.candidates", out);
        if (named_find(t, name)) return true;
    }
    return false;
}

/* The same as TAME left them in a round before this one, else as they were. */
static double *edited_mean(const named *t, char what, int64_t frame,
                           int64_t width, int64_t sub)
{
    for (int64_t c = t->chunk; c >= 0; c--)
        for (int64_t a = c == t->chunk ? sub - 1 : 15; a >= 0; a--) {
            char round[128], name[224];
            if (!round_name(t, c, a, round, sizeof round)) continue;
            const int64_t at = place_in(t, round, frame);
            if (at < 0) continue;
            snprintf(name, sizeof name, "%stame.%c/c.%lld", round, what,
                     (long long)at);
            double *m = mean_in(t, name, 0, 1, width);
            if (m) return m;
        }
    return plain_mean(t, what, frame, width);
}

/* ---- a round ------------------------------------------------------------- */

/* The candidates of the round that t is of, and how many are kept. */
static bool begin_round(const named *t, round_of *r)
{
    char name[224];
    const char *at = strstr(t->name, "admit.");
    const char *end;
    *r = (round_of){.sub = at ? dump_number(at + 6, &end) : -1};
    r->index = named_read(t, named_beside(t, "grab.candidates", name,
                                          sizeof name), &r->P);
    const double *keep = named_like(t, named_beside(t, "grab.keep", name,
                                                    sizeof name), r->P);
    for (int64_t i = 0; keep && i < r->P; i++) r->M += keep[i] != 0;
    return r->index && keep && r->P > 0 && r->P <= CANDIDATES_MOST
           && r->sub >= 0;
}

/* Its width, from the queries of the pass; [T, H, D], NULL: not there. */
static const double *frames_queries(const named *t, round_of *r, int64_t *T)
{
    char name[224];
    int64_t n;
    snprintf(name, sizeof name, "chunk.%lld/step.%lld/block.%lld/self_attn.q",
             (long long)t->chunk, (long long)t->step, (long long)t->block);
    const tt_entry *e = named_find(t, name);
    if (!e || e->t.rank != 3) return NULL;
    r->H = e->t.dim[1];
    r->width = e->t.dim[1] * e->t.dim[2];
    const double *q = named_read(t, name, &n);
    *T = r->width ? n / r->width : 0;
    return q;
}

/* Mean keys of all candidates. What is done to those of members and evicted
 * frames: */
enum { KEYS_RIGHT, KEYS_UNEDITED, KEYS_NEXT, KEYS_BEFORE, KEYS_SLOT,
       KEYS_MOVED, KEYS };

/* The frame that stood where member i stands before the last round; itself
 * when that did not admit it or, with `moved`, when it did. */
static int64_t stood_there(const named *t, const round_of *r, int64_t i,
                           bool moved)
{
    char round[128], name[224];
    int64_t n, slot = 0;
    const int64_t frame = (int64_t)r->index[i];
    if (!round_name(t, t->chunk - 1, 0, round, sizeof round)) return frame;
    snprintf(name, sizeof name, "%sgrab.candidates", round);
    const double *c = named_read(t, name, &n);
    snprintf(name, sizeof name, "%sgrab.keep", round);
    const double *keep = named_like(t, name, n);
    for (int64_t k = 0; c && keep && k < n; k++) {
        if (keep[k] == 0) continue;
        if ((int64_t)c[k] == frame)
            return (k < r->M) != moved || slot >= r->M ? frame
                                                       : (int64_t)c[slot];
        slot++;
    }
    return frame;
}

static bool find_keys(const named *t, round_of *r, int how)
{
    for (int64_t i = 0; i < r->P; i++) {
        const bool member = i < r->M;
        int64_t frame = (int64_t)r->index[i];
        if (!member && how == KEYS_NEXT) frame++;
        if (!member && how == KEYS_BEFORE) frame--;
        if (member && (how == KEYS_SLOT || how == KEYS_MOVED))
            frame = stood_there(t, r, i, how == KEYS_MOVED);
        r->mean[i] = !member || how == KEYS_UNEDITED
                         ? plain_mean(t, 'k', frame, r->width)
                         : edited_mean(t, 'k', frame, r->width, r->sub);
        if (!r->mean[i]) return false;
    }
    return true;
}

static void frames_softmax(double *x, int64_t n)
{
    double top = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++) top = fmax(top, x[i]);
    for (int64_t i = 0; i < n; i++) sum += x[i] = tt_exp(x[i] - top);
    for (int64_t i = 0; i < n; i++) x[i] /= sum;
}

/* Eq. 6 with mean queries q over the channels [from, to). */
static void mass(double *out, const round_of *r, const double *q, int64_t from,
                 int64_t to)
{
    const double D = (double)(r->width / r->H);
    for (int64_t c = 0; c < r->P; c++) {
        out[c] = 0;
        for (int64_t i = from; i < to; i++) out[c] += q[i] * r->mean[c][i];
        out[c] /= (double)r->H * sqrt(D);
    }
    frames_softmax(out, r->P);
}

/* A factor of the logits, from the masses themselves. */
static bool other_factor(named *t, const round_of *r, double *trial)
{
    double gw = 0, ww = 0, mg = 0, mw = 0;
    const double n = (double)t->n, D = r->H ? (double)(r->width / r->H) : 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (!(t->got[i] > 0 && t->want[i] > 0)) return false;
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

static bool mass_is(named *t, const double *trial, const char *what)
{
    if (!named_gives(t, trial)) return false;
    snprintf(t->out, t->size, "GRAB's mass: %s", what);
    return true;
}

/* Queries or keys pooled by their largest or middle values. */
static double pooled(double *x, int64_t n, bool median)
{
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i; k > 0 && x[k] < x[k - 1]; k--) {
            const double y = x[k];
            x[k] = x[k - 1], x[k - 1] = y;
        }
    return !median ? x[n - 1] : n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2])
                                                   / 2;
}

static bool other_pooling(named *t, const round_of *r, const double *q,
                          int64_t T, double *trial)
{
    double *one = named_capacity(t, r->width), *column = named_capacity(t, T);
    for (int median = 0; one && column && median < 2; median++) {
        for (int64_t i = 0; i < r->width; i++) {
            for (int64_t k = 0; k < T; k++) column[k] = q[k * r->width + i];
            one[i] = pooled(column, T, median);
        }
        mass(trial, r, one, 0, r->width);
        if (mass_is(t, trial, median ? "the median of the queries where their "
                    "mean belongs" : "the largest queries (max) where their "
                    "mean belongs")) return true;
    }
    return false;
}

/* Another function of the logits, which the right masses tell up to a constant:
 * the mean queries and keys give them. */
static bool other_function(named *t, const round_of *r, const double *q,
                           double *trial)
{
    static const char *const what[] = {
        "sigmoid of the logits where their softmax belongs",
        "sigmoid of the logits, divided by their sum, where softmax belongs",
        "the logits themselves where their softmax belongs",
        "the cosine of mean queries and keys in place of the logits",
        "the softmax of the cosine of mean queries and keys"};
    const double D = (double)(r->width / r->H);
    for (int how = 0; how < 5; how++) {
        double sum = 0;
        for (int64_t c = 0; c < r->P; c++) {
            double qk = 0, qq = 0, kk = 0;
            for (int64_t i = 0; i < r->width; i++) {
                qk += q[i] * r->mean[c][i];
                qq += q[i] * q[i];
                kk += r->mean[c][i] * r->mean[c][i];
            }
            const double logit = qk / ((double)r->H * sqrt(D));
            trial[c] = how < 2 ? 1 / (1 + tt_exp(-logit)) : how == 2 ? logit
                       : qk / sqrt(qq * kk);
            sum += trial[c];
        }
        for (int64_t c = 0; how == 1 && c < r->P; c++) trial[c] /= sum;
        if (how == 4) frames_softmax(trial, r->P);
        if (mass_is(t, trial, what[how])) return true;
    }
    return false;
}

static bool other_queries(named *t, const round_of *r, const double *q,
                          int64_t T, double *trial)
{
    for (int64_t i = 4; i < 18; i++) {
        const int64_t F = i / 2, L = T / F, at = i % 2 ? 0 : T - L;
        if (T % F) continue;
        const double *one = mean_of(t, q + at * r->width, L, r->width);
        if (!one) return false;
        mass(trial, r, one, 0, r->width);
        if (mass_is(t, trial, at ? "queries of the last frame alone"
                                 : "queries of the first frame alone"))
            return true;
    }
    const double *mean = mean_of(t, q, T, r->width);
    const int64_t D = r->width / r->H;
    for (int64_t h = 0; mean && r->H > 1 && h < r->H; h++) {
        char what[64];
        snprintf(what, sizeof what, "head %lld alone", (long long)h);
        mass(trial, r, mean, h * D, (h + 1) * D);
        if (mass_is(t, trial, what)) return true;
        for (int64_t i = 0; i < r->P; i++)
            trial[i] = (double)r->H * tt_log(trial[i]);
        frames_softmax(trial, r->P);
        if (mass_is(t, trial, what)) return true;
    }
    return false;
}

bool frames_mass(named *t)
{
    static const char *const what[KEYS] = {
        "", "keys of members as they were before TAME edited them",
        "keys of the frame after each evicted one (slot off by one)",
        "keys of the frame before each evicted one (slot off by one)",
        "keys of a new member are stale: those of the frame that left its "
        "slot",
        "mean keys of a member that moved on are stale: those of the frame "
        "that left its slot"
    };
    round_of r;
    int64_t T = 0;
    double *trial = named_capacity(t, t->n);
    if (!trial || !begin_round(t, &r) || r.P != t->n) return false;
    const double *q = frames_queries(t, &r, &T);
    if (!q || T < 1 || !find_keys(t, &r, KEYS_RIGHT))
        return other_factor(t, &r, trial);
    const double *mean = mean_of(t, q, T, r.width);
    if (!mean) return false;
    mass(trial, &r, mean, 0, r.width);
    if (!named_rule(t, trial)) return other_factor(t, &r, trial);
    if (other_function(t, &r, mean, trial) || other_queries(t, &r, q, T, trial)
        || other_pooling(t, &r, q, T, trial)) return true;
    for (int how = 1; how < KEYS; how++) {
        if (!find_keys(t, &r, how)) continue;
        mass(trial, &r, mean, 0, r.width);
        if (mass_is(t, trial, what[how])) return true;
    }
    return other_factor(t, &r, trial);
}

/* ---- diversity, score, picks --------------------------------------------- */

typedef enum div_fault {
    DIV_RIGHT, DIV_SPAN, DIV_WHOLE, DIV_SUM, DIV_SELF, DIV_SQUARE, DIV_TIMELESS,
    DIV_PLACE, DIV_MASSLESS, DIV_COUNT, DIV_LINEAR, DIV_MEAN, DIV_ONE, DIVS
} div_fault;

/* Eqs. 7 to 9. */
static void diversity(double *out, const round_of *r, const double *m,
                      div_fault f)
{
    double lo = r->index[0], hi = r->index[0];
    for (int64_t i = 1; i < r->P; i++) {
        lo = fmin(lo, r->index[i]);
        hi = fmax(hi, r->index[i]);
    }
    const double half = 0.5 * (hi - lo + (f != DIV_SPAN));
    const double sigma = f == DIV_ONE ? 1 : fmax(1, f == DIV_WHOLE ? 2 * half
                         : f == DIV_COUNT ? 0.5 * (double)r->P : half);
    for (int64_t c = 0; c < r->P; c++) {
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
}

bool frames_diversity(named *t)
{
    static const char *const what[DIVS] = {
        "", "the span of frames lacks its + 1",
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
        "the distance in time is not divided by the span"};
    round_of r;
    char name[224];
    bool any = false;
    double *trial = named_capacity(t, t->n);
    if (!trial || !begin_round(t, &r) || r.P != t->n) return false;
    const double *m = named_like(t, named_beside(t, "grab.mass", name,
                                                 sizeof name), t->n);
    for (div_fault f = DIV_RIGHT; m && f < DIVS; f++) {
        diversity(trial, &r, m, f);
        if (f == DIV_RIGHT && !named_rule(t, trial)) return false;
        if (f == DIV_RIGHT || !named_gives(t, trial)) continue;
        const size_t n = any ? strlen(t->out) : 0;   /* the same here, or not */
        snprintf(t->out + n, t->size - n, "%s%s", any ? ", or "
                 : "GRAB's diversity: ", what[f]);
        any = true;
    }
    return any;
}

/* The parts of the score weighed otherwise. */
static bool other_score(named *t, const double *m, const double *div,
                        double alpha, double *trial)
{
    const struct { double mass, div; const char *what; } list[] = {
        {alpha, 1, "alpha weighs the mass where it weighs the diversity"},
        {0, 1, "the diversity alone"},
        {0, alpha, "the mass is left out"},
        {1 - alpha, alpha, "the mass has a weight of 1 - alpha"},
        {alpha, 1 - alpha, "mass and diversity weigh alpha and 1 - alpha"},
        {-1, alpha, "sign of the mass flipped"}};
    static const char *const forms[] = {"the product of both",
                                        "mass (1 + alpha diversity)",
                                        "mass to the power of 1 + alpha"};
    enum { LIST = sizeof list / sizeof list[0] };
    for (int k = 0; k < LIST + 3; k++) {
        for (int64_t i = 0; i < t->n; i++)
            trial[i] = k < LIST ? list[k].mass * m[i] + list[k].div * div[i]
                       : k == LIST ? m[i] * div[i]
                       : k == LIST + 1 ? m[i] * (1 + alpha * div[i])
                       : pow(fabs(m[i]), 1 + alpha);
        if (!named_gives(t, trial)) continue;
        snprintf(t->out, t->size, "score = mass + alpha diversity: %s",
                 k < LIST ? list[k].what : forms[k - LIST]);
        return true;
    }
    return false;
}

/* score = mass + alpha div */
bool frames_score(named *t)
{
    char name[224];
    double gd = 0, wd = 0, dd = 0;
    double *trial = named_capacity(t, t->n);
    const double *m = named_like(t, named_beside(t, "grab.mass", name,
                                                 sizeof name), t->n);
    const double *div = named_like(t, named_beside(t, "grab.div", name,
                                                   sizeof name), t->n);
    if (!m || !div || !trial) return false;
    for (int64_t i = 0; i < t->n; i++) {
        gd += (t->got[i] - m[i]) * div[i];
        wd += (t->want[i] - m[i]) * div[i];
        dd += div[i] * div[i];
    }
    if (!(dd > 0)) return false;
    for (int64_t i = 0; i < t->n; i++) trial[i] = m[i] + wd / dd * div[i];
    if (!named_rule(t, trial)) return false;
    if (other_score(t, m, div, wd / dd, trial)) return true;
    for (int64_t i = 0; i < t->n; i++) trial[i] = m[i] + gd / dd * div[i];
    if (!named_fits(t, trial)) return false;
    snprintf(t->out, t->size, "score = mass + alpha diversity: alpha is %.5g "
             "where %.5g belongs", gd / dd, wd / dd);
    return true;
}

/* The M highest or lowest scores, the earlier or the later of equal ones. */
static bool picks_are(const named *t, const double *score, int64_t M, bool low,
                      bool later)
{
    for (int64_t c = 0; c < t->n; c++) {
        int64_t rank = 0;
        for (int64_t o = 0; o < t->n; o++) {
            const double d = low ? score[c] - score[o] : score[o] - score[c];
            rank += d > 0 || (d == 0 && (later ? o > c : o < c));
        }
        if ((t->got[c] != 0) != (rank < M)) return false;
    }
    return true;
}

bool frames_keep(named *t)
{
    char name[224];
    int64_t M = 0, kept = 0;
    const double *s = named_like(t, named_beside(t, "grab.score", name,
                                                 sizeof name), t->n);
    for (int64_t i = 0; i < t->n; i++) {
        M += t->want[i] != 0;
        kept += t->got[i] != 0;
    }
    if (!s || kept != M) return false;
    const char *what = NULL;
    /* those are right by their scores: the mistake lies before */
    if (picks_are(t, s, M, false, false)) return false;
    if (picks_are(t, s, M, false, true))
        what = "of equal scores the later candidate is kept, where the first "
               "belongs (tie rule)";
    else if (picks_are(t, s, M, true, false) || picks_are(t, s, M, true, true))
        what = "the lowest scores are kept";
    if (what) snprintf(t->out, t->size, "%s", what);
    return what != NULL;
}

/* Frames that are numbered too high or too low, all by as many. */
bool frames_index(named *t)
{
    double off = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const double d = t->got[i] - t->want[i];
        if (d != 0 && off != 0 && d != off) return false;
        if (d != 0) off = d;
        n += d != 0;
    }
    if (t->n < 2 || n < 2) return false;
    /* candidates are the members of the memory, then the evicted frames */
    const bool members = t->got[0] != t->want[0];
    const bool evicted = t->got[t->n - 1] != t->want[t->n - 1];
    snprintf(t->out, t->size, "%lld of %lld candidates are numbered %+.0f: %s",
             (long long)n, (long long)t->n, off,
             members && evicted ? "all of them"
             : evicted ? "the first index of the evicted frames is off"
                       : "what the memory says of its members is off");
    return true;
}

/* ---- the trusted pool ---------------------------------------------------- */

/* Means over the frames of a set; bit i: frame i of the list. */
static void pool_mean(double *out, double *const *mean, int64_t n, unsigned set,
                      int64_t width)
{
    int count = 0;
    for (int64_t i = 0; i < n; i++) count += set >> i & 1;
    for (int64_t k = 0; k < width; k++) {
        out[k] = 0;
        for (int64_t i = 0; i < n; i++)
            if (set >> i & 1) out[k] += mean[i][k] / count;
    }
}

static void name_set(char *out, size_t size, const int64_t *frame, int64_t n,
                     unsigned set)
{
    out[0] = '\0';
    for (int64_t i = 0; i < n; i++) {
        const size_t used = strlen(out);
        if (set >> i & 1)
            snprintf(out + used, size - used, "%s%lld", used ? ", " : "",
                     (long long)frame[i]);
    }
}

/* Sink, members and evicted frames, in this order. */
typedef struct pool {
    int64_t frame[POOL_MOST], n, first;   /* of the members                   */
    double *mean[POOL_MOST];
    unsigned sink, members;
} pool;

static bool begin_pool(const named *t, const round_of *r, pool *p)
{
    const char what = t->name[strlen(t->name) - 1];
    *p = (pool){.n = 0};
    for (int64_t s = 0; s < SINK_MOST && s < (int64_t)r->index[0]; s++)
        p->frame[p->n++] = s;
    p->first = p->n;
    for (int64_t i = 0; i < r->P && p->n < POOL_MOST; i++)
        p->frame[p->n++] = (int64_t)r->index[i];
    if (p->first + r->M > p->n) return false;
    for (int64_t i = 0; i < p->n; i++) {
        const bool member = i >= p->first && i < p->first + r->M;
        p->mean[i] = member
                         ? edited_mean(t, what, p->frame[i], t->n, r->sub)
                         : plain_mean(t, what, p->frame[i], t->n);
        if (!p->mean[i]) return false;
    }
    p->sink = (1u << p->first) - 1;
    p->members = ((1u << r->M) - 1) << p->first;
    return true;
}

/* The set that gives ours: the sink is as large as makes it. 0: none does. */
static unsigned right_set(const named *t, const pool *p, double *trial)
{
    for (int64_t s = p->first; s >= 0; s--) {
        const unsigned set = p->members | ((1u << s) - 1);
        pool_mean(trial, p->mean, p->n, set, t->n);
        if (set && named_rule(t, trial)) return set;
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
        pool_mean(trial, p->mean, p->n, set, t->n);
        if (named_gives(t, trial)) return set;
    }
    return 0;
}

bool frames_pool(named *t)
{
    round_of r;
    pool p;
    char a[40], b[40];
    double *trial = named_capacity(t, t->n);
    if (!trial || !begin_round(t, &r) || !begin_pool(t, &r, &p)) return false;
    const unsigned right = right_set(t, &p, trial);
    const unsigned set = right ? wrong_set(t, &p, right, trial) : 0;
    if (!set) return false;
    name_set(a, sizeof a, p.frame, p.n, set);
    name_set(b, sizeof b, p.frame, p.n, right);
    snprintf(t->out, t->size, "the trusted pool is frames %s where %s belong%s",
             a, b, right & p.sink && !(set & right & p.sink)
             ? ": without the sink"
             : !(set & p.members) ? ": without the memory" : "");
    return true;
}

bool frames_within(named *t, double *trial)
{
    round_of r;
    pool p;
    char name[224], last[] = "tame.mean_?";
    last[sizeof last - 2] = t->name[strlen(t->name) - 1];
    named mean = *t;
    double *none = named_capacity(t, t->n);
    mean.want = named_like(t, named_beside(t, last, name, sizeof name), t->n);
    mean.got = none;             /* of any error: how large is it next to 0?  */
    for (int64_t k = 0; none && k < t->n; k++) none[k] = 0;
    if (!none || !mean.want || !begin_round(t, &r) || !begin_pool(t, &r, &p))
        return false;
    const unsigned set = right_set(&mean, &p, trial);
    for (int64_t k = 0; k < t->n; k++) {
        double m = 0, between = 0;
        int n = 0;
        for (int64_t i = 0; i < p.n; i++)
            if (set >> i & 1) m += p.mean[i][k], n++;
        for (int64_t i = 0; i < p.n; i++)
            if (set >> i & 1) between += pow(p.mean[i][k] - m / n, 2) / n;
        trial[k] = sqrt(between);
        none[k] = sqrt(fmax(0, t->want[k] * t->want[k] - between));
    }
    if (set && named_gives(t, trial)) {
        snprintf(t->out, t->size, "only what lies between the means of frames: "
                 "the variance within each is left out");
        return true;
    }
    if (!set || !named_gives(t, none)) return false;
    snprintf(t->out, t->size, "the variances of the frames are averaged: what "
             "their means differ is left out");
    return true;
}
