/* model.c: mistakes of a model that lie between its operators: which row of
 * the modulation, which time.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    window.c, mistakes in what attention reads of the cache */
#include "validate/hint/chain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tether/mathfn.h"

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

/* ---- rows of the modulation ---------------------------------------------- */

/* The sum whose row an operand is; NULL: not known. */
static const chain_near *sum_of(const chain *c, const void *operand)
{
    const char *was = chain_was(c, operand);
    for (int i = 0; was && i < NEAR_MOST && i < c->nears; i++) {
        const chain_near *s = &c->near[(c->nears - 1 - i) % NEAR_MOST];
        if (s->kind == OP_ADD && s->count && was >= s->was
            && was < s->was + s->count * (int64_t)sizeof *s->copy) return s;
    }
    return NULL;
}

const char *chain_row_name(int64_t row, int64_t rows)
{
    static const char *const six[] = {"shift 1", "scale 1", "gate 1",
                                      "shift 2", "scale 2", "gate 2"};
    static const char *const two[] = {"shift", "scale"};
    return rows == 6 ? six[row] : two[row];
}

static int64_t model_row_of(const chain *c, const chain_near *s,
                            const void *operand, int64_t width)
{
    return (chain_was(c, operand) - s->was)
           / ((int64_t)sizeof(tt_real) * width);
}

static void rows_of_modulation(hint *h)
{
    const op_call *q = h->q;
    const chain_near *s = sum_of(h->chain, q->a);
    const int64_t rows = s ? s->count / q->c : 0;
    const bool two = q->kind == OP_MODULATE;
    if (q->n > q->rows || (rows != 6 && rows != 2)
        || (two && sum_of(h->chain, q->b) != s)) return;
    const int64_t a = model_row_of(h->chain, s, q->a, q->c);
    const int64_t b = two ? model_row_of(h->chain, s, q->b, q->c) : 0;
    for (int64_t k = 0; k < rows * (two ? rows : 1); k++) {
        const int64_t i = k % rows, j = k / rows;
        op_call own = *q;
        own.a = s->copy + i * q->c;
        if (two) own.b = s->copy + j * q->c;
        /* right; or exchanged, a mistake that modulate knows */
        if (two ? (i == a && j == b) || (i == b && j == a) : i == a) continue;
        hint_try_call(h, &own, "takes %s%s%s of the modulation where %s%s%s "
                      "belong%s", chain_row_name(i, rows), two ? " and " : "",
                      two ? chain_row_name(j, rows) : "",
                      chain_row_name(a, rows), two ? " and " : "",
                      two ? chain_row_name(b, rows) : "", two ? "" : "s");
    }
}

/* ---- the time ------------------------------------------------------------ */

typedef enum wave {
    WAVE_RIGHT, WAVE_SWAPPED, WAVE_PAIRS, WAVE_LAST, WAVE_FLOAT_EXP,
    WAVE_FLOAT_PART, WAVE_FLOAT
} wave;

/* The angle of frequency k of `half`; in float32, in the ways that ports have
 * it, from WAVE_FLOAT_EXP on. */
static double wave_angle(double t, double base, int64_t k, int64_t half,
                         wave how)
{
    const double steps = (double)(how == WAVE_LAST ? half - 1 : half);
    const float part = (float)k / (float)half;
    const double f = how == WAVE_FLOAT_EXP
                         ? tt_exp((double)(-9.2103404f * (float)k
                                           / (float)half))
                   : how == WAVE_FLOAT_PART ? tt_pow(10000, -(double)part)
                   : tt_pow(base, -(double)k / steps);
    return how < WAVE_FLOAT_EXP ? t * f : (double)((float)t * (float)f);
}

/* The sinusoid of time t [half cosines, half sines] in every row. */
static void at_time(tt_real *x, const op_call *q, double t, double base,
                    wave how)
{
    const int64_t half = q->c / 2;
    for (int64_t i = 0; i < q->n * half; i++) {
        const int64_t k = i % half, row = i / half * q->c;
        double s, o;
        tt_sincos(wave_angle(t, base, k, half, how), &s, &o);
        const int64_t at = how == WAVE_PAIRS ? 2 * k : k;
        const int64_t far = how == WAVE_PAIRS ? 1 : half;
        x[row + at] = (tt_real)(how == WAVE_SWAPPED ? s : o);
        x[row + at + far] = (tt_real)(how == WAVE_SWAPPED ? o : s);
    }
}

/* The time that row 0 was made of: its lowest frequency turns less than once.
 */
static double time_of(const op_call *q)
{
    const int64_t half = q->c / 2;
    const double f = tt_pow(10000, -(double)(half - 1) / (double)half);
    return atan2((double)q->x[q->c - 1], (double)q->x[half - 1]) / f;
}

static void other_waves(hint *h, tt_real *x, double right)
{
    const op_call *q = h->q;
    const struct { double t; wave how; const char *what; } list[] = {
        {right, WAVE_SWAPPED, "sines and cosines of the time are exchanged"},
        {right, WAVE_PAIRS, "sines and cosines of the time are interleaved"},
        {right, WAVE_LAST, "frequencies of the time are counted by half - 1"},
        {right / 1000, WAVE_RIGHT, "the time is divided by 1000"},
        {right * 1000, WAVE_RIGHT, "the time is multiplied by 1000"},
        {-right, WAVE_RIGHT, "the time has the other sign"},
        {1000 - right, WAVE_RIGHT, "the time runs the other way (1000 - t)"},
        {floor(right), WAVE_RIGHT, "the time is cut to a whole number"},
        {rint(right), WAVE_RIGHT, "the time is rounded to a whole number"},
        {(double)tt_format_round(TT_FMT_BF16, (float)right), WAVE_RIGHT,
         "the time is rounded to bf16"},
        {(double)tt_format_round(TT_FMT_F16, (float)right), WAVE_RIGHT,
         "the time is rounded to f16"},
    };
    op_call own = *q;
    own.x = x;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        at_time(x, q, list[i].t, 10000, list[i].how);
        hint_try_call(h, &own, "%s", list[i].what);
    }
}

/* In float32. What is left then is another last place of a frequency, up to a
 * third of the error: that is not held to what the linear layers after it may
 * err. */
static void float_waves(hint *h, tt_real *x, double t)
{
    hint *end = h->end ? h->end : h;
    const double earned = end->earned;
    op_call own = *h->q;
    own.x = x;
    end->earned = fmax(earned, end->error);
    for (wave how = WAVE_FLOAT_EXP; how <= WAVE_FLOAT; how++) {
        at_time(x, h->q, t, 10000, how);
        hint_try_call(h, &own, "the time sinusoid is computed in float32; if "
                      "that is meant, declare --arith f32+time32");
    }
    end->earned = earned;
}

typedef struct wave_trial {
    tt_real *x;
    double t;
    op_call own;
} wave_trial;

static double time_left(hint *h, void *user, double t)
{
    wave_trial *w = user;
    at_time(w->x, h->q, t, 10000, WAVE_RIGHT);
    return hint_left(h, &w->own, NULL);
}

static double base_left(hint *h, void *user, double log)
{
    wave_trial *w = user;
    at_time(w->x, h->q, w->t, rint(tt_exp(log)), WAVE_RIGHT);
    return hint_left(h, &w->own, NULL);
}

static void times(hint *h)
{
    const op_call *q = h->q;
    double at;
    tt_real *x = tt_scratch(h->ctx, q->n * q->c);
    if (!x || q->c < 4 || !h->end) return;
    const double t = time_of(q), right = fabs(t - rint(t)) < 0.01 ? rint(t) : t;
    wave_trial w = {x, right, *q};
    w.own.x = x;
    float_waves(h, x, right);
    other_waves(h, x, right);
    if (!hint_solve(h, time_left, &w, 0, 1000, 1000, &at)) return;
    if (fabs(at - rint(at)) < 1e-3) at = rint(at);
    time_left(h, &w, at);
    hint_try_call(h, &w.own, "the pass is made at time %.6g where %.6g belongs",
                  at, right);
    if (right == 0 || !hint_solve(h, base_left, &w, 1, 28, 270, &at)) return;
    base_left(h, &w, at);
    hint_try_call(h, &w.own, "the base of the time's frequencies is %.6g where "
                  "10000 belongs (exponents times %.4g)", rint(tt_exp(at)),
                  at / log(10000));
}

void hint_model(hint *h, const char *name)
{
    const op_call *q = h->q;
    const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    switch (q->kind) {
    case OP_ATTENTION: hint_window(h); break;
    case OP_MODULATE: case OP_GATE_ADD: rows_of_modulation(h); break;
    case OP_LINEAR:
        if (ends_with(name, "/e")) times(h);
        break;
    default: break;
    }
    tt_arena_reset(&h->ctx->scratch, mark);
}
