/* plain_attention.c: softmax attention in float64.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/operators/plain.h"

#include <float.h>
#include <math.h>

#include "tether/mathfn.h"

static int64_t head_of(int64_t h, const head_map *m, int64_t H)
{
    h = (m->div ? h / m->div : h) + m->add;
    return h % (m->mod ? m->mod : H) * (m->mul ? m->mul : 1);
}

/* Row j of K, or of V, of head h. */
static const tt_real *plain_attention_key(const tt_attention_args *a,
                                          const attention_fault *f, bool values,
                                          int64_t h, int64_t j)
{
    const int64_t stride = f->kv_packed ? a->H * a->D : a->kv_stride;
    return (values != f->swap_kv ? a->v : a->k) + j * stride
           + head_of(h, values ? &f->V : &f->K, a->H) * a->D;
}

static bool plain_attention_masked(const tt_attention_args *a,
                                   const attention_fault *f, int64_t j)
{
    if (!a->key_mask || f->mask == MASK_IGNORED) return false;
    if (f->mask == MASK_INVERTED) return a->key_mask[j];
    const int64_t at = j - f->longer;
    return !a->key_mask[at < 0 ? 0 : at >= a->N ? a->N - 1 : at];
}

/* Queries are the last T of the N positions. */
static bool left_out(const tt_attention_args *a, const attention_fault *f,
                     int64_t i, int64_t j)
{
    const int64_t at = i + a->N - a->T;
    return (f->causal > 0 && j > at) || (f->causal < 0 && j < at)
           || j < f->head || j >= a->N - f->tail || (f->not_self && j == at);
}

static double bias_at(const tt_attention_args *a, const attention_fault *f,
                      int64_t h, int64_t i, int64_t j)
{
    if (!a->rel_bias || f->bias == BIAS_NONE) return 0;
    const int64_t w = 2 * a->N - 1;
    int64_t at = j - i + a->N - 1;
    if (f->bias == BIAS_TRANSPOSED) at = i - j + a->N - 1;
    if (f->bias == BIAS_EARLY) at -= at > 0;
    if (f->bias == BIAS_LATE) at += at < w - 1;
    if (f->bias == BIAS_HEAD0) h = 0;
    if (f->bias == BIAS_LAYOUT) return (double)a->rel_bias[at * a->H + h];
    return (double)a->rel_bias[h * w + at]
           * (f->bias == BIAS_SCALED ? 1 / sqrt((double)a->D) : 1);
}

/* Logits [N] of query i, head h; -DBL_MAX where the key is hidden. */
static void plain_logits(double *s, const tt_attention_args *a,
                         const attention_fault *f, int64_t h, int64_t i)
{
    const int64_t stride = f->q_packed ? a->H * a->D : a->q_stride;
    const double scale = f->scaled ? f->scale : (double)a->scale;
    const tt_real *q = a->q + i * stride + h * a->D;
    for (int64_t j = 0; j < a->N; j++) {
        const tt_real *k = plain_attention_key(a, f, false, h, j);
        double d = 0;
        for (int64_t e = 0; e < a->D; e++) d += (double)q[e] * (double)k[e];
        d = d * scale + bias_at(a, f, h, i, j);
        if (f->cap != 0) d = f->cap * tanh(d / f->cap);
        s[j] = plain_attention_masked(a, f, j) || left_out(a, f, i, j)
                   ? -DBL_MAX : d;
    }
}

static double plain_attention_largest(const double *s, int64_t n, int64_t step,
                                      double top)
{
    for (int64_t j = 0; j < n; j++)
        if (s[j * step] > top) top = s[j * step];
    return top;
}

/* Logits to weights in place, over n entries `step` apart. When all are hidden
 * the definition makes them equal. */
static void plain_attention_softmax(double *s, int64_t n, int64_t step,
                                    const attention_fault *f)
{
    double top = plain_attention_largest(s, n, step, -DBL_MAX), l = 0;
    /* float32: exp of more is infinite, of less zero, and so is the sum */
    const bool over = f->sum == SUM_OVERFLOW
                      && (top > 88.7228 || top < -103.972);
    const double last = top;
    if (f->block) top = -DBL_MAX;
    for (int64_t j = 0; j < n; j++) {
        if (f->block && j % f->block == 0)
            top = plain_attention_largest(s + j * step,
                                          f->block < n - j ? f->block : n - j,
                                          step, top);
        const double p = tt_exp(s[j * step] - top);
        const double r = f->weight == TT_FMT_F32
                             ? p : (double)tt_format_round(f->weight, (float)p);
        s[j * step] = over || (f->sum == SUM_HIDDEN_NAN && top == -DBL_MAX)
                          ? NAN : r;
        l += f->weight_sum ? r : f->sum_rescaled ? p * tt_exp(top - last) : p;
    }
    if (f->sum == SUM_UNDIVIDED) l = 1;
    if (f->zeros) l += (double)f->zeros * tt_exp(-top);
    for (int64_t j = 0; j < n; j++) s[j * step] /= l;
}

/* Rows [n, N] of logits to weights. */
static void plain_attention_weights(double *s, int64_t n, int64_t N,
                                    const attention_fault *f)
{
    if (f->sum == SUM_SIGMOID)
        for (int64_t j = 0; j < n * N; j++) s[j] = 1 / (1 + tt_exp(-s[j]));
    else if (f->sum == SUM_NONE || f->sum == SUM_MEAN)
        for (int64_t j = 0; j < n * N; j++)
            s[j] = s[j] == -DBL_MAX ? 0
                   : s[j] / (f->sum == SUM_MEAN ? (double)N : 1);
    else if (f->sum == SUM_OVER_QUERIES)
        for (int64_t j = 0; j < N; j++) plain_attention_softmax(s + j, n, N, f);
    else
        for (int64_t i = 0; i < n; i++)
            plain_attention_softmax(s + i * N, N, 1, f);
}

static void plain_attention_mix(double *o, const double *p,
                                const tt_attention_args *a,
                                const attention_fault *f, int64_t h, int64_t i)
{
    for (int64_t e = 0; e < a->D; e++) o[e] = 0;
    for (int64_t j = 0; j < a->N; j++) {
        const tt_real *v = plain_attention_key(a, f, true, h, j);
        if (p[j] == 0 && left_out(a, f, i, j)) continue;
        for (int64_t e = 0; e < a->D; e++) o[e] += p[j] * (double)v[e];
    }
}

void plain_attention(tt_ctx *ctx, const tt_attention_args *a,
                     const attention_fault *f, double *out)
{
    /* query by query, unless the softmax is over all of them */
    const int64_t n = f->sum == SUM_OVER_QUERIES ? a->T : 1;
    double *s = tt_alloc(ctx, &ctx->scratch, n * a->N, sizeof *s,
                         "oracle logits");
    for (int64_t u = 0; s && u < a->H * a->T; u += n) {
        const int64_t h = u / a->T, i = u % a->T;
        for (int64_t r = 0; r < n; r++)
            plain_logits(s + r * a->N, a, f, h, i + r);
        plain_attention_weights(s, n, a->N, f);
        for (int64_t r = 0; r < n; r++)
            plain_attention_mix(out + ((i + r) * a->H + h) * a->D, s + r * a->N,
                                a, f, h, i + r);
    }
}
