/* named.c: mistakes between one named tensor and the next, where no weights
 * stand between them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   what a tensor is made of stands in the dump itself, under other
 *         names. So the mistake is imitated on theirs, as for an operator: the
 *         right rule must give ours, and the rule with the mistake theirs. Two
 *         files are enough for it, no model is needed.
 * Holds   a rule that does not give ours is not that of this run, and nothing
 *         is said.
 * Next    frames.c, which keys a frame of the cache has */
#include "validate/files/named.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An imitation may leave a part of the error, and what `earned` covers. */
#define TIMES_SMALLER 50

bool named_gives(const named *t, const double *trial)
{
    double left = 0, error = 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (!isfinite(t->got[i]) || !isfinite(trial[i])) return false;
        left += pow(t->got[i] - trial[i], 2);
        error += pow(t->got[i] - t->want[i], 2);
    }
    return left * TIMES_SMALLER * TIMES_SMALLER <= error;
}

bool named_fits(const named *t, const double *trial)
{
    enum { HANDFUL = 32 };
    double top = 0;
    if (!named_gives(t, trial)) return false;
    for (int64_t i = 0; i < t->n; i++) top = fmax(top, fabs(t->got[i]));
    for (int64_t i = 0; t->n < HANDFUL && i < t->n; i++)
        if (fabs(t->got[i] - trial[i]) > 2e-6 * top) return false;
    return true;
}

bool named_rule(const named *t, const double *trial)
{
    double left = 0, all = 0;
    for (int64_t i = 0; i < t->n; i++) {
        left += pow(t->want[i] - trial[i], 2);
        all += pow(t->got[i] - t->want[i], 2);
    }
    return left * 400 <= all;
}

const char *named_beside(const named *t, const char *last, char *out,
                         size_t size)
{
    const char *end = strrchr(t->name, '/');
    const int n = end ? (int)(end + 1 - t->name) : 0;
    snprintf(out, size, "%.*s%s", n, t->name, last);
    return out;
}

const tt_entry *named_find(const named *t, const char *name)
{
    return tt_file_find(t->d->f.got, name);
}

double *named_read(const named *t, const char *name, int64_t *n)
{
    const tt_entry *e = named_find(t, name);
    if (n) *n = e ? tt_tensor_count(&e->t) : 0;
    if (!e) return NULL;
    return tt_read_double(t->d->ctx, &t->d->ctx->scratch, &e->t);
}

double *named_like(const named *t, const char *name, int64_t n)
{
    int64_t has;
    double *x = named_read(t, name, &has);
    return has == n ? x : NULL;
}

double *named_capacity(const named *t, int64_t n)
{
    return tt_alloc(t->d->ctx, &t->d->ctx->scratch, n, sizeof(double),
                    "a trial");
}

/* ---- latents ------------------------------------------------------------- */

static double named_dot(const double *a, const double *b, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

/* s of y = x - s f, least squares. */
static double level(const double *y, const double *x, const double *f,
                    int64_t n)
{
    double s = 0, ff = named_dot(f, f, n);
    for (int64_t i = 0; i < n; i++) s += (x[i] - y[i]) * f[i];
    return ff > 0 ? s / ff : 0;
}

/* x0 = x - sigma flow */
static bool in_x0(named *t)
{
    char name[224];
    const int64_t n = t->n;
    const double *x = named_like(t, named_beside(t, "x", name, sizeof name), n);
    const double *f = named_like(t, named_beside(t, "flow", name, sizeof name),
                                 n);
    double *trial = named_capacity(t, n);
    if (!x || !f || !trial) return false;
    const double s = level(t->got, x, f, n), right = level(t->want, x, f, n);
    for (int64_t i = 0; i < n; i++) trial[i] = x[i] - right * f[i];
    if (!named_rule(t, trial)) return false;
    for (int64_t i = 0; i < n; i++) trial[i] = x[i] - s * f[i];
    if (!named_gives(t, trial)) return false;
    if (fabs(s + right) < 1e-4 * fabs(right))
        snprintf(t->out, t->size, "sign of the flow: x + sigma flow where "
                 "x - sigma flow belongs");
    else
        snprintf(t->out, t->size, "x0 = x - sigma flow: sigma is %.6g where "
                 "%.6g belongs", s, right);
    return true;
}

/* y = a u + b w, least squares. */
static void two(const double *y, const double *u, const double *w, int64_t n,
                double *a, double *b)
{
    const double uu = named_dot(u, u, n), ww = named_dot(w, w, n),
        uw = named_dot(u, w, n);
    const double yu = named_dot(y, u, n), yw = named_dot(y, w, n);
    const double det = uu * ww - uw * uw;
    *a = det > 0 ? (yu * ww - yw * uw) / det : 0;
    *b = det > 0 ? (yw * uu - yu * uw) / det : 0;
}

static bool mixed(named *t, double *trial, const double *u, const double *w,
                  double *a, double *b)
{
    two(t->got, u, w, t->n, a, b);
    for (int64_t i = 0; i < t->n; i++) trial[i] = *a * u[i] + *b * w[i];
    return named_gives(t, trial);
}

/* The noise level of a step of this chunk, from x0 = x - sigma flow of ours,
 * which is made of theirs where that is injected; NAN: not known. */
static double level_of(const named *t, int64_t step)
{
    static const char *const what[] = {"x0", "x", "flow"};
    const double *v[3];
    for (int i = 0; i < 3; i++) {
        char name[224];
        snprintf(name, sizeof name, "chunk.%lld/step.%lld/%s",
                 (long long)t->chunk, (long long)step, what[i]);
        const tt_entry *e = i && t->d->opt->injected
                                ? named_find(t, name)
                                : tt_file_find(t->d->f.want, name);
        if (!e || tt_tensor_count(&e->t) != t->n) return NAN;
        v[i] = tt_read_double(t->d->ctx, &t->d->ctx->scratch, &e->t);
        if (!v[i]) return NAN;
    }
    return level(v[0], v[1], v[2], t->n);
}

/* Noise is added to what the step before read, not to its x0. */
static bool from_noisy(named *t, const double *x0, double *trial)
{
    char name[224];
    const double s = level_of(t, t->step);
    snprintf(name, sizeof name, "chunk.%lld/step.%lld/x", (long long)t->chunk,
             (long long)t->step - 1);
    const double *x = named_like(t, name, t->n);
    for (int64_t i = 0; x && i < t->n; i++)
        trial[i] = t->want[i] + (1 - s) * (x[i] - x0[i]);
    if (!x || !named_gives(t, trial)) return false;
    snprintf(t->out, t->size, "the noise is added to the noisy latents of the "
             "step before, where it is to their x0");
    return true;
}

/* x = (1 - sigma) x0 + sigma noise, of the x0 of the step before. */
static bool in_x(named *t)
{
    char name[224];
    double a, b, *trial = named_capacity(t, t->n);
    if (t->step < 1) return false;
    snprintf(name, sizeof name, "chunk.%lld/step.%lld/x0", (long long)t->chunk,
             (long long)t->step - 1);
    const double *x0 = named_like(t, name, t->n);
    snprintf(name, sizeof name, "chunk.%lld/step.0/x", (long long)t->chunk);
    const double *first = named_like(t, name, t->n);
    if (!x0 || !first || !trial) return false;
    if (named_gives(t, x0)) {
        snprintf(t->out, t->size, "not re-noised: it is the x0 of the step "
                 "before");
        return true;
    }
    if (mixed(t, trial, first, x0, &a, &b) && fabs(a) > 1e-3) {
        snprintf(t->out, t->size, "re-noised with the noise that the chunk "
                 "began with (an Euler step gives the same), where fresh noise "
                 "belongs");
        return true;
    }
    if (from_noisy(t, x0, trial)) return true;
    if (!mixed(t, trial, t->want, x0, &a, &b)) return false;
    const double s = level_of(t, t->step), past = level_of(t, t->step - 1);
    const double of_x0 = a * (1 - s) + b;
    if (isnan(s))
        snprintf(t->out, t->size, "noise and x0 are mixed at another level: "
                 "%.5g of the noise that belongs", a);
    else if (fabs(a + b - 1) < 1e-4)
        snprintf(t->out, t->size, "re-noised at the noise level sigma %.6g "
                 "where %.6g belongs%s", a * s, s, fabs(a * s - past) < 1e-4
                 ? ": that of the step before" : "");
    else
        snprintf(t->out, t->size, "re-noised with %.5g x0 + %.5g noise, where "
                 "1 - sigma and sigma belong: %.5g and %.5g%s",
                 of_x0, a * s, 1 - s, s,
                 fabs(sqrt(of_x0 * of_x0 + a * s * a * s) - 1) < 1e-4
                     ? " (the variance is kept: another kind of schedule)"
                     : "");
    return true;
}

/* ---- patches ------------------------------------------------------------- */

/* The order of a patch's row, column and channel in memory; right is 0 1 2. */
static const int patch_order[][3] = {{0, 1, 2}, {1, 0, 2}, {2, 0, 1},
                                     {2, 1, 0}, {0, 2, 1}, {1, 2, 0}};
enum { PATCH_ORDERS = sizeof patch_order / sizeof patch_order[0] };

/* Value (dy, dx, channel) of a token goes to channel c at (2py+dy, 2px+dx). */
static void unpatch(double *out, const double *y, const int64_t *dim,
                    const int *order, bool columns)
{
    const int64_t C = dim[1], h = dim[2], w = dim[3], gh = h / 2, gw = w / 2;
    const int64_t size[] = {2, 2, C};
    for (int64_t i = 0; i < dim[0] * C * h * w; i++) {
        const int64_t col = i % w, row = i / w % h, c = i / (w * h) % C;
        const int64_t f = i / (w * h * C), py = row / 2, px = col / 2;
        const int64_t at[] = {row % 2, col % 2, c};
        const int64_t token = columns ? px * gh + py : py * gw + px;
        int64_t k = 0;
        for (int j = 0; j < 3; j++) k = k * size[order[j]] + at[order[j]];
        out[i] = y[(f * gh * gw + token) * 4 * C + k];
    }
}

static bool in_flow(named *t)
{
    static const char *const axis[] = {"row", "column", "channel"};
    char name[224];
    double *trial = named_capacity(t, t->n);
    const double *y = named_like(t, named_beside(t, "head", name, sizeof name),
                                 t->n);
    if (!y || !trial || t->rank != 4 || t->dim[2] % 2 || t->dim[3] % 2)
        return false;
    unpatch(trial, y, t->dim, patch_order[0], false);
    if (!named_rule(t, trial)) return false;
    for (int how = 1; how < 2 * PATCH_ORDERS; how++) {
        const int *o = patch_order[how / 2];
        unpatch(trial, y, t->dim, o, how % 2);
        if (!named_gives(t, trial)) continue;
        snprintf(t->out, t->size, "order of a patch: %s, %s, %s where row, "
                 "column, channel belongs%s", axis[o[0]], axis[o[1]],
                 axis[o[2]], how % 2 ? "; tokens run down the columns" : "");
        return true;
    }
    return false;
}

/* The number after a word of a name, -1: none. */
static int64_t named_number_in(const char *name, const char *word)
{
    const char *at = strstr(name, word), *end;
    return at ? dump_number(at + strlen(word), &end) : -1;
}

/* ---- the VAE's scale ----------------------------------------------------- */

/* Latent frame `frame` of the video, [C, h, w], as the last pass of its chunk
 * reads it; NULL: not in the dump. */
static const double *latent(const named *t, int64_t frame, int64_t n)
{
    for (int64_t c = 0, first = 0;; c++) {
        char name[224];
        int64_t last = -1, all;
        for (int64_t s = 0; s == last + 1; s++) {
            snprintf(name, sizeof name, "chunk.%lld/step.%lld/x", (long long)c,
                     (long long)s);
            if (named_find(t, name)) last = s;
        }
        if (last < 0) return NULL;
        snprintf(name, sizeof name, "chunk.%lld/step.%lld/x", (long long)c,
                 (long long)last);
        const tt_entry *e = named_find(t, name);
        if (e->t.rank != 4) return NULL;
        if (frame < first + e->t.dim[0]) {
            const double *x = named_read(t, name, &all);
            return x && all == n * e->t.dim[0] ? x + (frame - first) * n : NULL;
        }
        first += e->t.dim[0];
    }
}

/* Mean and deviation of the latents, from ours: y = std z + mean. */
static void scale_of(const named *t, const double *z, int64_t c, double *std,
                     double *mean)
{
    const int64_t C = t->dim[2], hw = t->n / C;
    double zz = 0, zy = 0, sz = 0, sy = 0;
    for (int64_t p = 0; p < hw; p++) {
        const double x = z[c * hw + p], y = t->want[p * C + c];
        zz += x * x, zy += x * y, sz += x, sy += y;
    }
    const double var = zz - sz * sz / (double)hw;
    *std = var > 0 ? (zy - sz * sy / (double)hw) / var : 0;
    *mean = (sy - *std * sz) / (double)hw;
}

static bool in_denorm(named *t)
{
    static const char *const what[] = {
        "", "denormalised twice", "not denormalised",
        "multiplied by 1 / std where it is divided by that",
        "the mean is not added", "normalised where it is denormalised",
        "the mean is added before std is multiplied"};
    const int64_t C = t->rank == 3 ? t->dim[2] : 0;
    const int64_t frame = named_number_in(t->name, "vae/frame.");
    if (!C || t->n / C < 4 || frame < 0) return false;
    const double *z = latent(t, frame, t->n);
    double *trial = named_capacity(t, t->n);
    for (int how = 0; z && trial && how < 7; how++) {
        for (int64_t i = 0; i < t->n; i++) {
            double s, m;
            const int64_t c = i % C, p = i / C;
            const double x = z[c * (t->n / C) + p];
            if (p == 0) scale_of(t, z, c, &s, &m);
            if (p == 0) t->pair[0][c] = s, t->pair[1][c] = m;
            s = t->pair[0][c], m = t->pair[1][c];
            const double y[] = {s * x + m, s * (s * x + m) + m, x, x / s + m,
                                s * x, (x - m) / s, s * (x + m)};
            trial[i] = y[how];
        }
        if (!how && !named_rule(t, trial)) return false;
        if (!how || !named_gives(t, trial)) continue;
        snprintf(t->out, t->size, "latents: %s", what[how]);
        return true;
    }
    return false;
}

/* ---- deviations ---------------------------------------------------------- */

/* A variance where its root belongs, or the root of that. */
static bool in_root(named *t, double *trial)
{
    for (int root = 0; root < 2; root++) {
        for (int64_t i = 0; i < t->n; i++)
            trial[i] = root ? sqrt(t->want[i]) : t->want[i] * t->want[i];
        if (!named_gives(t, trial)) continue;
        snprintf(t->out, t->size, "%s", root ? "the root of the deviation"
                 : "the variance where its square root belongs");
        return true;
    }
    return false;
}

/* A deviation of n values divided by n - 1: the factor tells n. */
static bool in_deviation(named *t)
{
    const double ww = named_dot(t->want, t->want, t->n);
    const double f = ww > 0 ? named_dot(t->got, t->want, t->n) / ww : 0;
    const double n = f > 1 ? f * f / (f * f - 1) : 0;
    double *trial = named_capacity(t, t->n);
    if (trial && (in_root(t, trial) || frames_within(t, trial))) return true;
    if (!trial || n < 1.5 || n > 1e5 || fabs(n / rint(n) - 1) > 1e-3)
        return false;
    for (int64_t i = 0; i < t->n; i++)
        trial[i] = t->want[i] * sqrt(rint(n) / (rint(n) - 1));
    if (!named_gives(t, trial)) return false;
    snprintf(t->out, t->size, "sample deviation: divided by %.0f - 1", rint(n));
    return true;
}

/* ---- which tensor -------------------------------------------------------- */

static bool named_ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

bool named_explain(dump_run *d, const tt_entry *ours, const double *got,
                   const double *want, char *out, size_t size)
{
    static const struct {
        const char *end;
        bool (*explain)(named *t);
    } known[] = {
        {"/x0", in_x0}, {"/x", in_x}, {"/flow", in_flow},
        {"/denorm", in_denorm}, {"/grab.mass", frames_mass},
        {"/grab.div", frames_diversity}, {"/grab.score", frames_score},
        {"/grab.keep", frames_keep}, {"/tame.mean_k", frames_pool},
        {"/tame.mean_v", frames_pool}, {"/tame.sd_k", in_deviation},
        {"/tame.sd_v", in_deviation}, {"/grab.candidates", frames_index},
    };
    double pair[2][NAMED_CHANNELS];
    named t = {.d = d, .name = ours->name, .rank = ours->t.rank,
               .n = tt_tensor_count(&ours->t), .got = got, .want = want,
               .chunk = named_number_in(ours->name, "chunk."),
               .step = named_number_in(ours->name, "step."), .pair = pair,
               .block = named_number_in(ours->name, "block."), .out = out,
               .size = size};
    memcpy(t.dim, ours->t.dim, sizeof t.dim);
    if (t.rank && t.dim[t.rank - 1] > NAMED_CHANNELS) return false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (named_ends_with(ours->name, known[i].end))
            return known[i].explain(&t) && !d->ctx->status;
    return false;
}
