/* operators.c: everything a network does with numbers, and in which order.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Floating-point addition is not associative, so the order of a sum is part of its definition:
 *
 *   dot    float, one chain of fused multiply-adds over ascending k, cut into blocks of 256; the
 *          sums of blocks are added in order. Linear layers, convolutions, sums of values.
 *   lanes  double, element i in lane i mod 16, lanes joined as a tree. The statistics of norms,
 *          along a row.
 *   plain  double, in order. Statistics over rows, one for each channel.
 *
 * Outputs do not depend on each other: loops are nested so that a compiler may compute several at
 * once. No sum is ever split. */
#include "golden.h"

enum { TILE = 8, STRIP = 64 };   /* outputs at once */

static int at_most(int n, int limit) { return n < limit ? n : limit; }

/* ---- dot products ---------------------------------------------------------------------------- */
typedef struct matrix {          /* n vectors w_j[k] = at[j * row + k * column]                   */
    const float *at;
    size_t row, column;
    int n;
} matrix;

/* y[j] = dot(x, w_j), n <= TILE, k < terms in blocks of `block`. The first block's sum is taken as
 * it is, because 0 + -0 is not -0. */
static void dots(float *y, const float *x, int terms, matrix w, int block) {
    for (int begin = 0; begin == 0 || begin < terms; begin += block) {
        const int end = begin + at_most(terms - begin, block);
        float sum[TILE] = {0};
        for (int k = begin; k < end; k++)
            for (int j = 0; j < w.n; j++)
                sum[j] = fmaf(x[k], w.at[j * w.row + k * w.column], sum[j]);
        for (int j = 0; j < w.n; j++) y[j] = begin ? y[j] + sum[j] : sum[j];
    }
}

void linear(float *y, const float *x, int rows, const dense *m) {
    const size_t in = (size_t)m->in;
    for (int r = 0; r < rows; r++, x += m->in, y += m->out) {
        for (int o = 0; o < m->out; o += TILE)
            dots(y + o, x, m->in, (matrix){m->w + o * in, in, 1, at_most(m->out - o, TILE)}, BLOCK);
        for (int o = 0; m->b && o < m->out; o++) y[o] += m->b[o];
    }
}

/* At most STRIP neighbouring pixels of row i, from column j on, of output channel o. k ascends over
 * time tap, row tap, column tap and, fastest, input channel. Padding is part of x: its zeros take
 * part as all numbers. */
static void strip(image *to, const image *x, const kernel *m, int o, int i, int j) {
    const int taps = m->kt * m->kh * m->kw, terms = taps * m->in, n = at_most(to->w - j, STRIP);
    const float *w = m->w + (size_t)o * terms;
    float sum[STRIP] = {0}, *y = to->x + ((size_t)o * to->h + i) * to->w + j;
    for (int k = 0; k < terms; k++) {
        const int tap = k / m->in, c = k % m->in, u = tap / m->kw % m->kh, v = tap % m->kw;
        const image *f = &x[tap / m->kw / m->kh];
        const float a = w[c * taps + tap], *from = f->x + v + j * m->stride
                                                   + ((size_t)c * f->h + i * m->stride + u) * f->w;
        for (int t = 0; t < n; t++) sum[t] = fmaf(a, from[t * m->stride], sum[t]);
        if ((k + 1) % BLOCK && k + 1 < terms) continue;
        for (int t = 0; t < n; t++) y[t] = k < BLOCK ? sum[t] : y[t] + sum[t], sum[t] = 0;
    }
    for (int t = 0; t < n; t++) y[t] += m->b[o];
}

void convolution(image *y, const image *x, const kernel *m) {
    for (int o = 0; o < m->out; o++)
        for (int i = 0; i < y->h; i++)
            for (int j = 0; j < y->w; j += STRIP) strip(y, x, m, o, i, j);
}

/* ---- attention ------------------------------------------------------------------------------- */
/* p[j] = logit of query i and key `first` + j, j < n, of head h. The product is one chain over the
 * whole head, without blocks. */
static void logits(float *p, const attention_args *a, int h, int i, int first, int n) {
    const size_t width = (size_t)a->heads * a->D, step = a->kv_stride ? a->kv_stride : width;
    const float *q = a->q + i * (a->q_stride ? a->q_stride : width) + h * a->D;
    for (int j = 0; j < n; j += TILE)
        dots(p + j, q, a->D, (matrix){a->k + (first + j) * step + h * a->D, step, 1,
                                      at_most(n - j, TILE)}, a->D);
    for (int j = 0; j < n; j++) {
        p[j] *= a->scale;
        if (a->mask && !a->mask[first + j]) p[j] -= FLT_MAX;
        else if (a->bias) p[j] += a->bias[h * (2 * a->keys - 1) + first + j - i + a->keys - 1];
    }
}

/* Blocks of 512 keys. A running maximum m needs one pass over the keys, and no matrix of scores:
 * when a block raises it to m', what was summed so far shrinks by exp(m - m'). */
void attend(float *o, const attention_args *a, int h, int i) {
    const size_t step = a->kv_stride ? a->kv_stride : (size_t)a->heads * a->D;
    float m = 0, l = 0, p[KEY_BLOCK], sum[TILE];
    for (int begin = 0; begin < a->keys; begin += KEY_BLOCK) {
        const int n = at_most(a->keys - begin, KEY_BLOCK);
        logits(p, a, h, i, begin, n);
        float top = begin ? m : p[0], block = 0;
        for (int j = 0; j < n; j++) top = p[j] > top ? p[j] : top;
        for (int j = 0; j < n; j++) block += p[j] = golden_expf(p[j] - top);
        const float keep = begin ? golden_expf(m - top) : 0;
        for (int d = 0; d < a->D; d += TILE) {
            const matrix v = {a->v + begin * step + h * a->D + d, 1, step, at_most(a->D - d, TILE)};
            dots(sum, p, n, v, BLOCK);
            for (int t = 0; t < v.n; t++) o[d + t] = begin ? fmaf(o[d + t], keep, sum[t]) : sum[t];
        }
        l = begin ? fmaf(l, keep, block) : block;
        m = top;
    }
    for (int d = 0; d < a->D; d++) o[d] /= l;
}

void attention(const attention_args *a) {
    for (int h = 0; h < a->heads; h++)
        for (int i = 0; i < a->queries; i++)
            attend(a->o + ((size_t)i * a->heads + h) * a->D, a, h, i);
}

float attention_scale(int D) { return (float)(1 / sqrt((double)D)); }

/* ---- norms ----------------------------------------------------------------------------------- */
/* Sum of x - mean along a row, or of its squares. */
static double lanes(const float *x, int n, double mean, bool squares) {
    double lane[LANES] = {0};
    for (int i = 0; i < n; i++) {
        const double d = x[i] - mean, sum = lane[i % LANES];
        lane[i % LANES] = squares ? fma(d, d, sum) : sum + d;
    }
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

void layer_norm(float *y, const float *x, int rows, int n, double eps, const float *w,
                const float *b) {
    for (int r = 0; r < rows; r++, x += n, y += n) {
        const double mean = lanes(x, n, 0, false) / n;
        const double scale = 1 / sqrt(lanes(x, n, mean, true) / n + eps);
        for (int i = 0; i < n; i++) {
            y[i] = (float)((x[i] - mean) * scale);
            if (w) y[i] = fmaf(y[i], w[i], b[i]);
        }
    }
}

void rms_norm(float *y, const float *x, int rows, int n, double eps, const float *w) {
    for (int r = 0; r < rows; r++, x += n, y += n) {
        const double scale = 1 / sqrt(lanes(x, n, 0, true) / n + eps);
        for (int i = 0; i < n; i++) y[i] = (float)(x[i] * scale) * w[i];
    }
}

void channel_norm(float *y, const float *x, int rows, int n, const float *gamma) {
    const float root = (float)sqrt(n);
    for (int r = 0; r < rows; r++, x += n, y += n) {
        const double norm = sqrt(lanes(x, n, 0, true)), scale = 1 / (norm < 1e-12 ? 1e-12 : norm);
        for (int i = 0; i < n; i++) y[i] = (float)(x[i] * scale) * root * gamma[i];
    }
}

/* x/2 (1 + tanh u) = x / (1 + exp(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3). */
void gelu(float *x, size_t n) {
    const float cubic = (float)0.044715, k = (float)-1.5957691216057308;     /* -2 sqrt(2/pi) */
    for (size_t i = 0; i < n; i++) {
        const float v = x[i];
        x[i] = v / (1 + golden_expf(fmaf(cubic * (v * v), v, v) * k));
    }
}

void silu(float *x, size_t n) { for (size_t i = 0; i < n; i++) x[i] /= 1 + golden_expf(-x[i]); }
void add(float *x, const float *y, size_t n) { for (size_t i = 0; i < n; i++) x[i] += y[i]; }
void multiply(float *x, const float *y, size_t n) { for (size_t i = 0; i < n; i++) x[i] *= y[i]; }

static const float *of_row(by_frame v, int r) { return v.at + (size_t)(r / v.rows) * v.stride; }

void modulate(float *x, int rows, int n, by_frame scale, by_frame shift) {
    for (int r = 0; r < rows; r++, x += n) {
        const float *s = of_row(scale, r), *t = of_row(shift, r);
        for (int i = 0; i < n; i++) x[i] = fmaf(x[i], 1 + s[i], t[i]);
    }
}

void gate_add(float *x, const float *y, int rows, int n, by_frame gate) {
    for (int r = 0; r < rows; r++, x += n, y += n) {
        const float *g = of_row(gate, r);
        for (int i = 0; i < n; i++) x[i] = fmaf(y[i], g[i], x[i]);
    }
}

/* ---- positions ------------------------------------------------------------------------------- */
/* The first pairs belong to the frame (axis 0), the next to the row, the last to the column; an
 * axis of n pairs has the rates 10000^(-j/n). */
double rope_rate(int D, int j, int *axis) {
    const int third = D / 2 / 3, first = D / 2 - 2 * third;
    *axis = j < first ? 0 : j < first + third ? 1 : 2;
    const int begin = *axis == 0 ? 0 : *axis == 1 ? first : first + third;
    return golden_pow(10000, -((j - begin) / (double)(*axis == 0 ? first : third)));
}

static void rotate(float *y, const float *x, double c, double s) {
    const double a = x[0], b = x[1];
    y[0] = (float)fma(a, c, -(b * s));
    y[1] = (float)fma(a, s, b * c);
}

/* The pair (2j, 2j+1) of every head is a point, rotated by position times rate. */
void rope(float *y, const float *x, int tokens, int heads, int D, const position *at) {
    for (int j = 0; j < D / 2; j++) {
        int axis;
        const double rate = rope_rate(D, j, &axis);
        for (int t = 0; t < tokens; t++) {
            const int along = axis == 0 ? at[t].frame : axis == 1 ? at[t].row : at[t].column;
            double s = 0, c = 1;
            if (at[t].frame != UNROTATED) golden_sincos(along * rate, &s, &c);
            size_t i = (size_t)t * heads * D + 2 * j;
            for (int h = 0; h < heads; h++, i += D) rotate(y + i, x + i, c, s);
        }
    }
}

void column_mean(double *mean, const float *x, int n, size_t c) {
    for (size_t i = 0; i < c; i++) mean[i] = 0;
    for (int r = 0; r < n; r++)
        for (size_t i = 0; i < c; i++) mean[i] += x[r * c + i];
    for (size_t i = 0; i < c; i++) mean[i] /= n;
}

void column_moment(double *m2, const double *mean, const float *x, int n, size_t c) {
    for (size_t i = 0; i < c; i++) m2[i] = 0;
    for (int r = 0; r < n; r++)
        for (size_t i = 0; i < c; i++) {
            const double d = x[r * c + i] - mean[i];
            m2[i] = fma(d, d, m2[i]);
        }
}

/* Moving averages: x = rate mean + (1 - rate) x, n numbers; mean repeats after c. */
void blend(float *x, const double *mean, size_t n, size_t c, double rate) {
    for (size_t i = 0; i < n; i++) x[i] = (float)(rate * mean[i % c] + (1 - rate) * (double)x[i]);
}

/* Eq. 13 of TetherCache for one value of a channel; gain is to_sd / sd. */
double tame_value(double v, double mean, double gain, double to_mean, double tau) {
    return fma(tau, fma(gain, v - mean, to_mean), (1 - tau) * v);
}
