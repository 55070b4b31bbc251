/* plain_rope.c: the rotary embedding in float64.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/operators/plain.h"

#include "tether/mathfn.h"

/* Position of token t on an axis where a grid's lines are as long as this; the
 * last token is at the end of its frame. */
static double line_position(const op_call *q, int64_t t, int axis, int64_t line)
{
    const int32_t *p = q->pos + 3 * t, *end = q->pos + 3 * (q->n - 1);
    const int64_t at = (int64_t)p[1] * (end[2] + 1) + p[2];
    return (double)(axis == 1 ? at / line : at % line);
}

/* The same where tokens of whole frames are counted by these axes. */
static double grid_position(const op_call *q, int64_t t, int axis,
                            const int *grid)
{
    const int32_t *end = q->pos + 3 * (q->n - 1);
    const int64_t tall = end[1] + 1, wide = end[2] + 1;
    const int64_t dim[] = {q->n / (tall * wide), tall, wide};
    int64_t at[3] = {0};
    for (int i = 2; i >= 0; i--) {
        at[grid[i]] = t % dim[grid[i]];
        t /= dim[grid[i]];
    }
    return axis ? (double)at[axis] : (double)q->pos[3 * at[0] * tall * wide];
}

/* Angle of pair j of token t. */
static double angle(const op_call *q, const rope_fault *f, int64_t t, int64_t j)
{
    static const int own[3] = {0, 1, 2};
    const int *axis = f->axis ? f->axis : own;
    const int64_t all = q->D / 2;
    int64_t n[3] = {q->table->pairs[0], q->table->pairs[1],
                    q->table->pairs[2]};
    for (int i = 0; f->pairs && i < 3; i++) n[i] = f->pairs[i];
    int group = 0;
    if (f->pair) j = f->pair[j];
    int64_t at = j;
    while (group < 2 && at >= n[group]) at -= n[group++];
    double p = (double)q->pos[3 * t + axis[group]] + f->step[group];
    if (f->by_row) p = (double)t;
    if (f->line && group > 0) p = line_position(q, t, group, f->line);
    if (f->grid) p = grid_position(q, t, group, f->grid);
    if (f->most && p > (double)f->most) p = (double)f->most;
    p *= 1 + f->more[group];
    const double e = f->one_spectrum ? (double)j / (double)all
                                     : (double)at / (double)n[group];
    const double theta = tt_pow(f->base[group] != 0 ? f->base[group] : 10000,
                                -e);
    const double turn = f->single ? (double)((float)p * (float)theta)
                                  : p * theta;
    if (f->to && (j < f->from || j >= f->to)) return 0;
    return turn;
}

/* Cosine and sine for pair j of token t; without a fault, of the table. */
static void plain_rope_turn(const op_call *q, const rope_fault *f, int64_t t,
                            int64_t j, double *c, double *s)
{
    if (f) {
        const double x = angle(q, f, t, j);
        if (f->form & ROPE_EXCHANGED) tt_sincos(x, c, s);
        else tt_sincos(x, s, c);
        if (f->table == TT_FMT_F32) return;
        *c = (double)tt_format_round(f->table, (float)*c);
        *s = (double)tt_format_round(f->table, (float)*s);
        return;
    }
    const int64_t row0 = q->table->pairs[0], col0 = row0 + q->table->pairs[1];
    const int64_t pos = q->pos[3 * t + (j >= row0) + (j >= col0)];
    *c = q->table->cos[pos * (q->D / 2) + j];
    *s = q->table->sin[pos * (q->D / 2) + j];
}

void plain_rope(const op_call *q, const rope_fault *f, double *out)
{
    const int64_t half = q->D / 2, apart = f && f->halves ? half : 1;
    const unsigned form = f ? f->form : 0;
    double sign[4];
    for (int i = 0; i < 4; i++) sign[i] = form >> i & 1 ? -1 : 1;
    for (int64_t t = 0; t < q->n; t++)
        for (int64_t j = 0; j < half; j++) {
            double c, s;
            plain_rope_turn(q, f, t, j, &c, &s);
            for (int64_t h = 0; h < q->H; h++) {
                const int64_t i0 = (t * q->H + h) * q->D
                                   + (apart == 1 ? 2 * j : j);
                if (f && f->heads && h >= f->heads) c = 1, s = 0;
                double a = (double)q->x[i0];
                const double b = (double)q->x[i0 + apart];
                out[i0] = sign[0] * a * c - sign[1] * b * s;
                if (form & ROPE_IN_PLACE) a = out[i0];
                out[i0 + apart] = sign[2] * a * s + sign[3] * b * c;
            }
        }
}
