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
#include "io/inputs.h"
#include "validate/files/named.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
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

bool named_right(const named *t, const double *trial)
{
    double left = 0, all = 0;
    for (int64_t i = 0; i < t->n; i++) {
        left += pow(t->want[i] - trial[i], 2);
        all += pow(t->got[i] - t->want[i], 2);
    }
    return left * 400 <= all;
}

/* One sentence more of what gives theirs; several may be the same here. */
static void say_change(named *t, const rule *r, const char *a, const char *b)
{
    const size_t used = strlen(t->out);
    snprintf(t->out + used, t->size - used, "%s%s%s%s", used ? ", or "
             : r->subject, a, *a && *b ? ", and " : "", b);
}

/* With the changes `how`, called `what`, and a number. */
static bool try_number(named *t, const rule *r, const int *how,
                       const char *what, double *trial)
{
    char number[120];
    if (*t->out || !r->solve
        || !r->solve(t, how, trial, number, sizeof number)
        || !named_fits(t, trial)) return false;
    say_change(t, r, what, number);
    return true;
}

/* Change `a`, with a number or with another one that comes before it. */
static void try_two(named *t, const rule *r, int *how, const change *a,
                    double *trial)
{
    how[a->field] = a->value;
    try_number(t, r, how, a->what, trial);
    for (const change *b = r->list; b < a && !*t->out; b++) {
        if (b->field == a->field) continue;
        how[b->field] = b->value;
        if (r->make(t, how, trial) && named_fits(t, trial))
            say_change(t, r, b->what, a->what);
        how[b->field] = 0;
    }
    how[a->field] = 0;
}

bool named_try(named *t, const rule *r)
{
    int how[NAMED_FIELDS] = {0};
    double *trial = named_capacity(t, t->n);
    *t->out = '\0';
    if (!trial || !r->make(t, how, trial) || !named_right(t, trial))
        return false;
    for (const change *a = r->list; a->what; a++) {
        how[a->field] = a->value;
        if (r->make(t, how, trial) && named_gives(t, trial))
            say_change(t, r, a->what, "");
        how[a->field] = 0;
    }
    if (*t->out || try_number(t, r, how, "", trial)) return true;
    for (const change *a = r->list; a->what && !*t->out; a++)
        try_two(t, r, how, a, trial);
    return *t->out;
}

const tt_entry *named_find(const named *t, const char *fmt, ...)
{
    char name[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    return tt_file_find(t->d->f.got, name);
}

double *named_read(const named *t, const tt_entry *e, int64_t n)
{
    if (!e || (n >= 0 && tt_tensor_count(&e->t) != n)) return NULL;
    return tt_read_double(t->d->ctx, &t->d->ctx->scratch, &e->t);
}

double *named_beside(const named *t, const char *last, int64_t n)
{
    const int scope = (int)(t->at.last - t->name);
    return named_read(t, named_find(t, "%.*s%s", scope, t->name, last), n);
}

double *named_capacity(const named *t, int64_t n)
{
    return tt_alloc(t->d->ctx, &t->d->ctx->scratch, n, sizeof(double),
                    "a trial");
}

bool named_pass_of(const named *t, int64_t frame, char *pass, size_t size,
                   int64_t *at, int64_t *F)
{
    int64_t step = 0;
    *at = frame;               /* from the first one of chunk c on */
    for (int64_t c = 0; *at >= 0; *at -= *F, c++) {
        const tt_entry *x = named_find(t, "chunk.%" PRId64 "/step.0/x", c);
        if (!x || x->t.rank != 4) return false;
        *F = x->t.dim[0];
        if (*at >= *F) continue;
        while (named_find(t, "chunk.%" PRId64 "/step.%" PRId64 "/x", c,
                          step + 1)) step++;
        snprintf(pass, size, "chunk.%" PRId64 "/step.%" PRId64 "/", c, step);
        return true;
    }
    return false;
}

/* ---- latents ------------------------------------------------------------- */

double named_dot(const double *a, const double *b, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

bool named_mixed(const named *t, double *trial, const double *u,
                 const double *w, double *a, double *b)
{
    const int64_t n = t->n;
    const double uu = named_dot(u, u, n), ww = named_dot(w, w, n),
        uw = named_dot(u, w, n);
    const double yu = named_dot(t->got, u, n), yw = named_dot(t->got, w, n);
    const double det = uu * ww - uw * uw;
    *a = det > 0 ? (yu * ww - yw * uw) / det : 0;
    *b = det > 0 ? (yw * uu - yu * uw) / det : 0;
    for (int64_t i = 0; i < n; i++) trial[i] = *a * u[i] + *b * w[i];
    return named_fits(t, trial);
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
    const int64_t n = t->n;
    const double *x = named_beside(t, "x", n), *f = named_beside(t, "flow", n);
    double a, b, *trial = named_capacity(t, n);
    if (!x || !f || !trial) return false;
    const double s = level(t->want, x, f, n);
    for (int64_t i = 0; i < n; i++) trial[i] = x[i] - s * f[i];
    if (!named_right(t, trial) || !named_mixed(t, trial, x, f, &a, &b))
        return false;
    if (fabs(a - 1) > 1e-4)
        snprintf(t->out, t->size, "x0 = %.6g x %+.6g flow where x - %.6g flow "
                 "belongs%s", a, b, s, fabs(a * a + b * b - 1) < 1e-4
                 ? ": as of a v-prediction" : "");
    else if (fabs(b - s) < 1e-4 * fabs(s))
        snprintf(t->out, t->size, "sign of the flow: x + sigma flow where "
                 "x - sigma flow belongs");
    else
        snprintf(t->out, t->size, "x0 = x - sigma flow: sigma is %.6g where "
                 "%.6g belongs", -b, s);
    return true;
}

/* Theirs of a step of this chunk; of ours where `ours`. */
static const double *at_step(const named *t, int64_t step, const char *what,
                             bool ours)
{
    char name[64];
    snprintf(name, sizeof name, "chunk.%" PRId64 "/step.%" PRId64 "/%s",
             t->at.chunk, step, what);
    return named_read(t, ours ? tt_file_find(t->d->f.want, name)
                              : named_find(t, "%s", name), t->n);
}

/* The noise level of a step, from x0 = x - sigma flow of ours, which is made of
 * theirs where that is injected; NAN: not known. */
static double level_of(const named *t, int64_t step)
{
    const bool ours = !t->d->opt->injected;
    const double *x0 = at_step(t, step, "x0", true);
    const double *x = at_step(t, step, "x", ours);
    const double *f = at_step(t, step, "flow", ours);
    return x0 && x && f ? level(x0, x, f, t->n) : NAN;
}

/* Noise and what it is added to, a and b of theirs where s and 1 - s belong. */
static void say_mixed(named *t, double a, double b, double s, double past)
{
    if (fabs(a + b - 1) < 1e-4)
        snprintf(t->out, t->size, "re-noised at the noise level sigma %.6g "
                 "where %.6g belongs%s", a, s, fabs(a - past) < 1e-4
                 ? ": that of the step before" : "");
    else
        snprintf(t->out, t->size, "re-noised with %.5g x0 + %.5g noise, where "
                 "1 - sigma and sigma belong: %.5g and %.5g%s", b, a, 1 - s, s,
                 fabs(sqrt(a * a + b * b) - 1) < 1e-4
                     ? " (the variance is kept: another kind of schedule)"
                     : "");
}

/* x = (1 - sigma) x0 + sigma noise, of the x0 of the step before. */
static bool in_x(named *t)
{
    const int64_t before = t->at.step - 1;
    double a, b, *trial = named_capacity(t, t->n);
    double *fresh = named_capacity(t, t->n);
    if (before < 0 || !trial || !fresh) return false;
    const double s = level_of(t, before + 1);
    const double *x0 = at_step(t, before, "x0", false);
    const double *x = at_step(t, before, "x", false);
    const double *first = at_step(t, 0, "x", false);
    if (!x0 || named_right(t, x0)) return false;   /* the clean pass */
    for (int64_t i = 0; i < t->n; i++)
        fresh[i] = (t->want[i] - (1 - s) * x0[i]) / s;
    if (first && named_mixed(t, trial, first, x0, &a, &b) && fabs(a) > 1e-3)
        snprintf(t->out, t->size, "re-noised with the noise that the chunk "
                 "began with (an Euler step gives the same), where fresh noise "
                 "belongs");
    else if (!(s > 0))
        return false;
    else if (x && named_mixed(t, trial, fresh, x, &a, &b)
             && fabs(b - (1 - s)) < 1e-4)
        snprintf(t->out, t->size, "the noise is added to the noisy latents of "
                 "the step before, where it is to their x0");
    else if (named_mixed(t, trial, fresh, x0, &a, &b))
        say_mixed(t, a, b, s, level_of(t, before));
    else
        return false;
    return true;
}

/* ---- patches ------------------------------------------------------------- */

enum { ORDER, COLUMNS, FLIPPED };

/* Value (dy, dx, channel) of a token goes to channel c at (2py+dy, 2px+dx). */
static void unpatch(double *out, const double *y, const int64_t *dim,
                    const int *order, const int *how)
{
    const int64_t C = dim[1], h = dim[2], w = dim[3], gh = h / 2, gw = w / 2;
    const int64_t size[] = {2, 2, C};
    for (int64_t i = 0; i < dim[0] * C * h * w; i++) {
        const int64_t col = i % w, row = i / w % h, c = i / (w * h) % C;
        const int64_t f = i / (w * h * C), py = row / 2, px = col / 2;
        const int64_t at[] = {row % 2 ^ (how[FLIPPED] & 1),
                              col % 2 ^ how[FLIPPED] >> 1, c};
        const int64_t token = how[COLUMNS] ? px * gh + py : py * gw + px;
        int64_t k = 0;
        for (int j = 0; j < 3; j++) k = k * size[order[j]] + at[order[j]];
        out[i] = y[(f * gh * gw + token) * 4 * C + k];
    }
}

static bool make_flow(named *t, const int *how, double *trial)
{
    /* of a patch's row, column and channel in memory */
    static const int order[][3] = {{0, 1, 2}, {1, 0, 2}, {2, 0, 1},
                                   {2, 1, 0}, {0, 2, 1}, {1, 2, 0}};
    const int64_t *dim = t->like->dim;
    const double *y = named_beside(t, "head", t->n);
    if (!y || t->like->rank != 4 || dim[2] % 2 || dim[3] % 2) return false;
    unpatch(trial, y, dim, order[how[ORDER]], how);
    return true;
}

static bool in_flow(named *t)
{
    static const change list[] = {
        {ORDER, 1, "column, row, channel"}, {ORDER, 2, "channel, row, column"},
        {ORDER, 3, "channel, column, row"}, {ORDER, 4, "row, channel, column"},
        {ORDER, 5, "column, channel, row"},
        {COLUMNS, 1, "tokens run down the columns"},
        {FLIPPED, 1, "its rows run upwards"},
        {FLIPPED, 2, "its columns run backwards"}, {0, 0, NULL}};
    return named_try(t, &(rule){make_flow, NULL, "order of a patch "
                                "(row, column, channel belongs): ", list});
}

/* ---- the VAE's scale ----------------------------------------------------- */

/* [h, w, C]: ours is std z + mean. */
static bool make_denorm(named *t, const int *how, double *trial)
{
    if (t->like->rank != 3 || t->like->dim[2] != WAN_Z) return false;
    for (int64_t i = 0; i < t->n; i++) {
        const double m = wan_latent_mean[i % WAN_Z];
        const double s = wan_latent_std[i % WAN_Z], x = (t->want[i] - m) / s;
        const double y[] = {t->want[i], s * t->want[i] + m, x, x / s + m,
                            s * x, (x - m) / s, s * (x + m)};
        trial[i] = y[*how];
    }
    return true;
}

static bool in_denorm(named *t)
{
    static const change list[] = {
        {0, 1, "denormalised twice"}, {0, 2, "not denormalised"},
        {0, 3, "multiplied by 1 / std where it is divided by that"},
        {0, 4, "the mean is not added"},
        {0, 5, "normalised where it is denormalised"},
        {0, 6, "the mean is added before std is multiplied"}, {0, 0, NULL}};
    return named_try(t, &(rule){make_denorm, NULL, "latents: ", list});
}

/* ---- which tensor -------------------------------------------------------- */

bool named_explain(dump_run *d, const tt_entry *ours, const double *got,
                   const double *want, char *out, size_t size)
{
    static const struct {
        const char *last;
        bool (*explain)(named *t);
    } known[] = {
        {"x0", in_x0}, {"x", in_x}, {"flow", in_flow}, {"denorm", in_denorm},
        {"grab.mass", named_mass}, {"grab.div", named_diversity},
        {"grab.score", named_score}, {"grab.keep", named_keep},
        {"tame.mean_k", named_pool}, {"tame.mean_v", named_pool},
        {"tame.sd_k", named_pool}, {"tame.sd_v", named_pool},
    };
    named t = {.d = d, .name = ours->name, .at = place_of(ours->name),
               .like = &ours->t, .n = tt_tensor_count(&ours->t), .got = got,
               .want = want, .out = out, .size = size};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(t.at.last, known[i].last))
            return known[i].explain(&t) && !d->ctx->status;
    if (strstr(t.name, "/tame."))
        return named_edit(&t) && !d->ctx->status;
    return false;
}
