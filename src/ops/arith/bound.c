/* bound.c: how far an honest program of a declared arithmetic may be from
 * float64, whatever the order of its sums.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A plain program may be lucky: on constant or one-hot inputs its sums are
 * exact, and its error says nothing of another order. So every sum is taken to
 * err one unit of the sum of its terms' sizes, and that is carried through the
 * operator to first order. Errors that have nothing to do with each other add
 * up in squares, those that several terms share add up as they are.
 *
 * On ordinary inputs this is below what the plain program errs: it widens no
 * limit but those of luck. The table gives the bound in place of the result. */
#include "ops/arith/arith.h"

#include <float.h>
#include <math.h>

#include "ops/gather.h"
#include "tether/mathfn.h"

#define UNIT 0x1p-24     /* half a unit of the last place of float32          */

/* What one rounding to the format changes, relatively. tf32 is cut off. */
static double unit_of(tt_format f)
{
    return f == TT_FMT_TF32 ? tt_format_epsilon(f) : tt_format_epsilon(f) / 2;
}

static double stored_unit(const tt_ctx *ctx)
{
    const tt_arith *a = ctx->ops->self;
    return unit_of(a->stored);
}

/* ---- subnormal numbers that are taken for 0 ------------------------------ */

#define LEAST 0x1p-126   /* normal number                                     */

static bool allows(const tt_ctx *ctx, unsigned what)
{
    const tt_arith *a = ctx->ops->self;
    return a->allows & what;
}

/* What is lost of an input, and at most of anything on the way; 0 where such
 * numbers are kept. */
static double flushed(const tt_ctx *ctx, double x)
{
    return allows(ctx, TT_ALLOW_FTZ) && fabs(x) < LEAST ? fabs(x) : 0;
}

static double tiny(const tt_ctx *ctx)
{
    return allows(ctx, TT_ALLOW_FTZ) ? LEAST : 0;
}

/* ---- products ------------------------------------------------------------ */

static tt_real *bound_weights(tt_ctx *ctx, const tt_tensor *w)
{
    const int64_t n = tt_tensor_count(w);
    tt_real *y = tt_scratch(ctx, n);
    if (y) tt_widen_at(y, w, 0, n);
    return y;
}

/* What a dot product and its bias lose with their subnormal numbers. */
static double product_flushed(const tt_ctx *ctx, const tt_real *x,
                              const tt_real *w, int64_t n, double bias)
{
    double s = flushed(ctx, bias) + 2 * tiny(ctx);
    if (tiny(ctx) == 0) return 0;
    for (int64_t k = 0; k < n; k++)
        s += flushed(ctx, (double)x[k]) * fabs((double)w[k]) + tiny(ctx)
             + flushed(ctx, (double)w[k]) * fabs((double)x[k]);
    return s;
}

/* A dot product and its bias, which may be rounded too. */
static tt_real bound_product(const tt_ctx *ctx, const tt_real *x,
                             const tt_real *w, int64_t n, const tt_real *b)
{
    const tt_arith *a = ctx->ops->self;
    const double bias = b ? fabs((double)*b) : 0;
    double s = bias;
    for (int64_t k = 0; k < n; k++) s += fabs((double)x[k] * (double)w[k]);
    const double own = allows(ctx, TT_ALLOW_BIAS) ? unit_of(a->product) : 0;
    return (tt_real)(UNIT * s + own * bias
                     + product_flushed(ctx, x, w, n, bias));
}

static void bound_linear(tt_ctx *ctx, const tt_linear_args *p)
{
    const int64_t o = p->w->dim[0], i = p->w->dim[1];
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_real *w = bound_weights(ctx, p->w);
    for (int64_t k = 0; w && k < p->n * o; k++)
        p->y[k] = bound_product(ctx, p->x + k / o * i, w + k % o * i, i,
                                p->b ? p->b + k % o : NULL);
    tt_arena_reset(&ctx->scratch, mark);
}

/* Winograd's F(4 x 4, 3 x 3), in one direction: what a rounding in front of
 * the last transform makes of tap k, at the output of a tile that errs most.
 * sqrt(sum_j (A_ij |B_j| G_jk)^2) with |B_j| the length of row j of the input's
 * transform, A and G those of output and kernel. Smaller tiles err less. */
static const double tap[3] = {2.1327, 3.2830, 8.9132};
/* The same of what is lost below the normal numbers, a step of the subnormal
 * ones at every product and at every input: the squared length of A's last
 * row, twice. */
#define TILE_STEPS (2 * 131 * 0x1p-149)

/* most [kt, Cin]: the largest input of any tile that makes output (i, j). */
static void tile_most(tt_real *most, tt_real *x, const tt_conv_args *p,
                      int64_t i, int64_t j)
{
    const int64_t c = p->Cin;
    for (int64_t k = 0; k < p->kt * c; k++) most[k] = 0;
    for (int at = 0; at < 9; at++) {
        conv_gather(x, p, i + at / 3 * 3 - 3, j + at % 3 * 3 - 3);
        for (int64_t k = 0; k < p->kt * 9 * c; k++) {
            const int64_t to = k / (9 * c) * c + k % c;
            if (most[to] < (tt_real)fabs((double)x[k]))
                most[to] = (tt_real)fabs((double)x[k]);
        }
    }
}

/* Output channel o of a kernel w [kt, 3, 3, Cin], by squares: roundings have
 * nothing to do with each other. */
static double winograd(const tt_real *most, const tt_real *w,
                       const tt_conv_args *p)
{
    double s = 0;
    for (int64_t k = 0; k < (int64_t)p->kt * 9 * p->Cin; k++) {
        const int64_t at = k / p->Cin % 9;
        const double e = tap[at / 3] * tap[at % 3] * (double)w[k]
            * (double)most[k / (9 * p->Cin) * p->Cin + k % p->Cin];
        s += e * e;
    }
    return sqrt(s);
}

static void add_winograd(tt_ctx *ctx, const tt_conv_args *p, const tt_real *w)
{
    const tt_arith *a = ctx->ops->self;
    const int64_t k = (int64_t)p->kt * 9 * p->Cin;
    const double unit = UNIT + (a->product == TT_FMT_F32 ? 0
                                : unit_of(a->product));
    tt_real *x = tt_scratch(ctx, k), *most = tt_scratch(ctx, p->kt * p->Cin);
    for (int64_t i = 0; most && i < p->Ho * p->Wo; i++) {
        tile_most(most, x, p, i / p->Wo, i % p->Wo);
        for (int64_t o = 0; o < p->Cout; o++)
            p->y[i * p->Cout + o] +=
                (tt_real)(unit * winograd(most, w + o * k, p)
                          + TILE_STEPS * (double)(p->kt * p->Cin));
    }
}

static void bound_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    const int64_t k = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_real *w = bound_weights(ctx, p->w);
    tt_real *x = tt_scratch(ctx, k);
    for (int64_t i = 0; w && x && i < p->Ho * p->Wo; i++) {
        conv_gather(x, p, i / p->Wo, i % p->Wo);
        for (int64_t o = 0; o < p->Cout; o++)
            p->y[i * p->Cout + o] = bound_product(ctx, x, w + o * k, k,
                                                  p->b ? p->b + o : NULL);
    }
    if (allows(ctx, TT_ALLOW_WINOGRAD) && p->kh == 3 && p->kw == 3
        && p->stride == 1 && !ctx->status)
        add_winograd(ctx, p, w);
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- attention ----------------------------------------------------------- */

/* Of one key of a row: its weight, its logit, what that may err by itself, and
 * by what its weight may be off then. */
typedef struct key {
    double p, s, error, off;
} key;

/* Inputs may be scaled before they are rounded; logits may be stored, before
 * and after they are scaled. */
static void logit(const tt_ctx *ctx, const tt_attention_args *p, int64_t h,
                  int64_t i, int64_t j, key *k)
{
    const tt_arith *a = ctx->ops->self;
    const tt_real *x = p->q + i * p->q_stride + h * p->D;
    const tt_real *y = p->k + j * p->kv_stride + h * p->D;
    const double scale = fabs((double)p->scale);
    double s = 0, sizes = 0, squares = 0;
    for (int64_t d = 0; d < p->D; d++) {
        const double t = (double)x[d] * (double)y[d];
        s += t;
        sizes += fabs(t);
        squares += t * t;
    }
    const double bias = p->rel_bias
        ? (double)p->rel_bias[h * (2 * p->N - 1) + j - i + p->N - 1] : 0;
    k->s = s * (double)p->scale + bias;
    k->error = UNIT * (scale * sizes + fabs(bias))
               + unit_of(a->product) * scale * sqrt(squares)
               + 2 * unit_of(a->stored) * fabs(k->s)
               + scale * product_flushed(ctx, x, y, p->D, bias) + tiny(ctx);
}

/* What an error of its logit makes of a weight: a factor exp(error) at most,
 * and exp(most) where the others lose as much as they can. A large one may let
 * another key win: no weight is more than 1. */
static double bound_moved(const key *k, double below_top, double of_top,
                          double most)
{
    if (k->error <= 0.125) return k->p * k->error;
    return fmin(tt_exp(fmin(0, k->error + of_top - below_top)),
                k->p * tt_exp(k->error + most));
}

/* Logits to weights; a hidden key has a logit that everybody gives it. */
static void bound_softmax(const tt_attention_args *p, key *k)
{
    double top = -DBL_MAX, of_top = 0, most = 0, l = 0;
    for (int64_t j = 0; j < p->N; j++) {
        const bool hidden = p->key_mask && !p->key_mask[j];
        k[j].p = hidden ? -FLT_MAX : k[j].s;
        if (hidden) k[j].s = k[j].error = 0;
        if (k[j].p > top) top = k[j].p, of_top = k[j].error;
        most = fmax(most, k[j].error);
    }
    for (int64_t j = 0; j < p->N; j++) {
        k[j].off = top - k[j].p;
        l += k[j].p = tt_exp(-k[j].off);
    }
    for (int64_t j = 0; j < p->N; j++) {
        k[j].p /= l;
        k[j].off = bound_moved(&k[j], k[j].off, of_top, most);
    }
}

/* Output d of head h: errors of single logits, of their common factor, of the
 * weights, which may be rounded when they are divided, and of the last sum. */
static double bound_mixed(const tt_ctx *ctx, const tt_attention_args *p,
                          int64_t h, int64_t d, const key *k)
{
    const tt_arith *a = ctx->ops->self;
    const tt_real *v = p->v + h * p->D + d;
    double o = 0, sizes = 0, own = 0, common = 0, rounded = 0;
    double lost = 2 * tiny(ctx);
    for (int64_t j = 0; j < p->N; j++) {
        const double t = k[j].p * (double)v[j * p->kv_stride];
        o += t;
        sizes += fabs(t);
        rounded += t * t;
        lost += k[j].p * flushed(ctx, (double)v[j * p->kv_stride])
                + tiny(ctx) * (1 + fabs((double)v[j * p->kv_stride]));
    }
    for (int64_t j = 0; j < p->N; j++) {
        const double apart = (double)v[j * p->kv_stride] - o;
        own += pow(apart * k[j].off, 2);
        common += apart * k[j].p * k[j].s;
    }
    const double unit = unit_of(a->product) + unit_of(a->stored);
    return sqrt(own) + UNIT * sizes + lost
           + unit * (fabs(common) + fabs(o) + sqrt(rounded));
}

static void bound_attention(tt_ctx *ctx, const tt_attention_args *p)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    key *k = tt_alloc(ctx, &ctx->scratch, p->N, sizeof *k, "a row of keys");
    for (int64_t u = 0; k && u < p->T * p->H; u++) {
        const int64_t i = u / p->H, h = u % p->H;
        for (int64_t j = 0; j < p->N; j++) logit(ctx, p, h, i, j, &k[j]);
        bound_softmax(p, k);
        for (int64_t d = 0; d < p->D; d++)
            p->o[u * p->D + d] = (tt_real)bound_mixed(ctx, p, h, d, k);
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- norms --------------------------------------------------------------- */

/* What a row is divided by, and what of it may be off: the mean absolutely,
 * the divisor relatively. */
typedef struct moments {
    double mean, off, scale, rel;
} moments;

/* Sums of the second power may be taken around a mean that is off, step by
 * step: then the spread itself follows it. */
static moments bound_row(const tt_ctx *ctx, const tt_real *x, int64_t c,
                         bool centred, double eps)
{
    double s = 0, sizes = 0, spread = 0, squares = 0, lost = 2 * tiny(ctx);
    for (int64_t i = 0; i < c; i++) {
        s += (double)x[i];
        sizes += fabs((double)x[i]);
        lost += flushed(ctx, (double)x[i]) / (double)c;
    }
    moments m = {0};
    if (centred) m.mean = s / (double)c;
    if (centred) m.off = UNIT * (sizes / (double)c + fabs(m.mean)) + lost;
    for (int64_t i = 0; i < c; i++) {
        const double d = (double)x[i] - m.mean;
        spread += fabs(d) / (double)c;
        squares += d * d / (double)c;
    }
    const double off = UNIT * squares + m.off * (2 * spread + m.off)
                       + 2 * tiny(ctx);
    m.scale = 1 / sqrt(squares + eps);
    m.rel = squares + eps > 0 ? off / (2 * (squares + eps)) + 3 * UNIT : 0;
    return m;
}

static void bound_layer_norm(tt_ctx *ctx, const tt_layer_norm_args *p)
{
    for (int64_t r = 0; r < p->n; r++) {
        const tt_real *x = p->x + r * p->c;
        const moments m = bound_row(ctx, x, p->c, true, p->eps);
        for (int64_t i = 0; i < p->c; i++) {
            const double w = p->w ? fabs((double)p->w[i]) : 1;
            const double b = p->w ? fabs((double)p->b[i]) : 0;
            const double d = fabs((double)x[i] - m.mean);
            const double lost = flushed(ctx, (double)x[i]);
            p->y[r * p->c + i] = (tt_real)(w * m.scale
                                           * (m.off + d * m.rel + lost)
                                           + UNIT * b + flushed(ctx, b)
                                           + tiny(ctx) * (2 + w));
        }
    }
}

static void root_mean_square(const tt_ctx *ctx, const tt_rms_norm_args *p)
{
    const int64_t c = p->c;
    for (int64_t r = 0; r < p->n; r++) {
        const moments m = bound_row(ctx, p->x + r * c, c, false, p->eps);
        for (int64_t i = r * c; i < (r + 1) * c; i++) {
            const double x = (double)p->x[i], w = fabs((double)p->w[i % c]);
            p->y[i] = (tt_real)(w * m.scale * (fabs(x) * m.rel
                                               + flushed(ctx, x))
                                + tiny(ctx) * (2 + w));
        }
    }
}

static void bound_rms_norm(tt_ctx *ctx, const tt_rms_norm_args *p)
{
    root_mean_square(ctx, p);
}

/* Its floor of 1e-12 stands for an eps of its square. */
static void bound_channel_norm(tt_ctx *ctx, const tt_channel_norm_args *p)
{
    root_mean_square(ctx, &(tt_rms_norm_args){
        .y = p->y, .x = p->x, .n = p->n, .c = p->c, .w = p->gamma,
        .eps = 1e-24 / (double)p->c});
}

/* ---- element by element: what is stored on the way ----------------------- */

static void bound_modulate(tt_ctx *ctx, const tt_modulate_args *p)
{
    const double unit = stored_unit(ctx);
    for (int64_t k = 0; k < p->n * p->c; k++) {
        const int64_t g = k / p->c / p->rows * p->stride + k % p->c;
        const double x = fabs((double)p->x[k]);
        const double scale = fabs((double)p->scale[g]);
        const double shift = fabs((double)p->shift[g]);
        p->x[k] = (tt_real)(unit * (x * (1 + scale) + shift)
                            + flushed(ctx, x) * (1 + scale)
                            + flushed(ctx, scale) * x + flushed(ctx, shift)
                            + 2 * tiny(ctx));
    }
}

static void bound_gate_add(tt_ctx *ctx, const tt_gate_add_args *p)
{
    const double unit = stored_unit(ctx);
    for (int64_t k = 0; k < p->n * p->c; k++) {
        const int64_t g = k / p->c / p->rows * p->stride + k % p->c;
        const double x = fabs((double)p->x[k]), y = fabs((double)p->y[k]);
        const double gate = fabs((double)p->gate[g]);
        p->x[k] = (tt_real)(unit * (x + y * gate) + flushed(ctx, x)
                            + flushed(ctx, y) * gate + flushed(ctx, gate) * y
                            + 2 * tiny(ctx));
    }
}

/* One rounding, which the plain program makes as well. */
static void bound_add(tt_ctx *ctx, const tt_add_args *p)
{
    for (int64_t i = 0; i < p->n; i++)
        p->x[i] = (tt_real)(flushed(ctx, (double)p->x[i])
                            + flushed(ctx, (double)p->y[i]) + tiny(ctx));
}

static void bound_mul(tt_ctx *ctx, const tt_mul_args *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        const double x = fabs((double)p->x[i]), y = fabs((double)p->y[i]);
        p->x[i] = (tt_real)(flushed(ctx, x) * y + flushed(ctx, y) * x
                            + tiny(ctx));
    }
}

/* The sigmoid of a large negative number is subnormal, times that number. */
static void bound_silu(tt_ctx *ctx, const tt_silu_args *p)
{
    for (int64_t i = 0; i < p->n; i++)
        p->x[i] = (tt_real)(tiny(ctx) * (1 + fabs((double)p->x[i]))
                            + flushed(ctx, (double)p->x[i]));
}

/* 1 + tanh(u), where tanh is near -1. */
static void bound_gelu_tanh(tt_ctx *ctx, const tt_gelu_tanh_args *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        const double x = fabs((double)p->x[i]);
        p->x[i] = (tt_real)(UNIT * x + tiny(ctx) * (1 + x) + flushed(ctx, x));
    }
}

static void bound_rope(tt_ctx *ctx, const tt_rope_args *p)
{
    const double unit = stored_unit(ctx);
    for (int64_t i = 0; i < p->T * p->H * p->D; i += 2) {
        const double re = fabs((double)p->x[i]), im = fabs((double)p->x[i + 1]);
        const double lost = flushed(ctx, re) + flushed(ctx, im) + 2 * tiny(ctx);
        p->y[i] = p->y[i + 1] = (tt_real)(unit * fmax(re, im) + lost);
    }
}

/* ---- columns ------------------------------------------------------------- */

static void bound_col_mean(tt_ctx *ctx, const tt_col_mean_args *p)
{
    for (int64_t i = 0; i < p->c; i++) {
        double sizes = 0, lost = 0;
        for (int64_t r = 0; r < p->n; r++) {
            sizes += fabs((double)p->x[r * p->c + i]);
            lost += flushed(ctx, (double)p->x[r * p->c + i]);
        }
        p->mean[i] = (UNIT * sizes + lost) / (double)p->n + tiny(ctx);
    }
}

/* The mean is rounded to float32 first. */
static void bound_col_moment(tt_ctx *ctx, const tt_col_moment_args *p)
{
    for (int64_t i = 0; i < p->c; i++) {
        const double off = 2 * fabs(p->mean[i]);
        double sizes = 0, lost = tiny(ctx);
        for (int64_t r = 0; r < p->n; r++) {
            const double d = fabs((double)p->x[r * p->c + i] - p->mean[i]);
            sizes += d * (d + off);
            lost += 2 * d * (flushed(ctx, (double)p->x[r * p->c + i])
                             + flushed(ctx, p->mean[i])) + tiny(ctx);
        }
        p->m2[i] = UNIT * sizes + lost;
    }
}

static void bound_col_blend(tt_ctx *ctx, const tt_col_blend_args *p)
{
    const double unit = stored_unit(ctx);
    for (int64_t k = 0; k < p->n * p->c; k++) {
        const int64_t i = k % p->c;
        const double x = fabs((double)p->x[k]);
        const double gain = p->gain ? fabs(p->gain[i]) : 0;
        const double mean = p->gain ? fabs(p->mean[i]) : 0;
        const double edit = (x + mean) * gain + fabs(p->target[i]);
        const double lost = flushed(ctx, x) * (1 + gain)
                            + flushed(ctx, mean) * gain
                            + flushed(ctx, gain) * (x + mean)
                            + flushed(ctx, p->target[i]) + 4 * tiny(ctx);
        p->x[k] = (tt_real)(unit * (x + p->tau * edit) + lost);
    }
}

#define ENTRY(op, OP) .op = bound_##op,
#define TABLE(i)                                                               \
    {.abi = TT_ABI, .name = "bound",                                           \
     .summary = "what any order of sums may err",                              \
     .self = (void *)&arith_list[i], TT_OPS(ENTRY)}

const tt_ops *arith_bounds(const tt_arith *a)
{
    static const tt_ops table[ARITH_COUNT + 1] = {
        TABLE(0), TABLE(1), TABLE(2), TABLE(3), TABLE(4), TABLE(5), TABLE(6)};
    return &table[arith_plain(a) - arith_list];
}
