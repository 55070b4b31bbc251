/* mutants.c: a backend with one fault at a time, for tests only.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The operators are written as in src/ops/golden, with the faults of mutants.h
 * next to the lines they replace. A plug-in may keep state; this one remembers
 * which fault is planted, where it took effect, and how often it was called. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/reduce.h"
#include "tests/validate/mutants_state.h"
#include "tether/mathfn.h"

struct mutant_state planted;

void mutant_select(int which);
bool mutant_hit(const char *scope);
tt_ops *mutant_table(void);

void mutant_select(int which)
{
    memset(&planted, 0, sizeof planted);
    planted.which = which;
    planted.chosen = true;
}

bool mutant_hit(const char *scope)
{
    for (int i = 0; i < planted.scopes; i++)
        if (!strcmp(planted.scope[i], scope)) return true;
    return false;
}

bool mutant_hits(const tt_ctx *ctx)
{
    char now[96] = "";
    memcpy(now, ctx->path, strnlen(ctx->path, sizeof now - 1));
    if (planted.scopes && !strcmp(planted.scope[planted.scopes - 1], now))
        return true;
    if (!mutant_hit(now) && planted.scopes < SCOPES)
        memcpy(planted.scope[planted.scopes++], now, sizeof now);
    return true;
}

/* ---- norms --------------------------------------------------------------- */

static double row_sum(const tt_real *x, int64_t c)
{
    double lane[TT_LANES] = {0};
    for (int64_t i = 0; i < c; i++) lane[i % TT_LANES] += (double)x[i];
    return join_lanes(lane);
}

static double row_moment(const tt_real *x, int64_t c, double mean)
{
    double lane[TT_LANES] = {0};
    for (int64_t i = 0; i < c; i++) {
        const double d = (double)x[i] - mean;
        lane[i % TT_LANES] = fma(d, d, lane[i % TT_LANES]);
    }
    return join_lanes(lane);
}

static void layer_norm(tt_ctx *ctx, const tt_layer_norm_args *p)
{
    double eps = p->eps;
    if (PLANTED(LN_EPS)) eps = 1e-5;
    for (int64_t r = 0; r < p->n; r++) {
        const tt_real *in = p->x + r * p->c;
        const int64_t part = PLANTED_IF(LN_HALF, p->c > 1) ? p->c / 2 : p->c;
        double mean = row_sum(in, part) / (double)part;
        double var = row_moment(in, part, mean) / (double)part;
        if (PLANTED_IF(LN_UNBIASED, p->c > 1))
            var *= (double)p->c / (double)(p->c - 1);
        if (PLANTED(LN_NO_MEAN))
            mean = 0, var = row_moment(in, p->c, 0) / (double)p->c;
        if (PLANTED(LN_FLOAT)) {
            float s = 0, s2 = 0;
            for (int64_t i = 0; i < p->c; i++) {
                s += (float)in[i];
                s2 += (float)in[i] * (float)in[i];
            }
            s /= (float)p->c;
            mean = (double)s;
            var = (double)(s2 / (float)p->c - s * s);
            if (var < 0) var = 0;
        }
        const double scale = 1.0 / sqrt(var + eps);
        const bool affine = p->w && !PLANTED(LN_NO_AFFINE);
        for (int64_t i = 0; i < p->c; i++) {
            tt_real xhat = (tt_real)(((double)in[i] - mean) * scale);
            tt_real *y = p->y + r * p->c + i;
            *y = affine ? fma_real(xhat, p->w[i],
                                   PLANTED(LN_NO_BIAS) ? 0 : p->b[i]) : xhat;
            if (PLANTED_IF(LN_LAST, r == p->n - 1)) *y *= (tt_real)1.001;
        }
    }
}

static void rms_norm(tt_ctx *ctx, const tt_rms_norm_args *p)
{
    double eps = p->eps;
    const bool halves = PLANTED_IF(RMS_HALVES, p->c % 2 == 0);
    const int64_t part = halves ? p->c / 2 : p->c;
    const bool same = PLANTED_IF(RMS_IN_PLACE, p->x == p->y);
    if (PLANTED(RMS_EPS)) eps = 1e-5;
    if (same) p->y[0] = 0;
    for (int64_t r = 0; r < p->n * (p->c / part); r++) {
        const tt_real *in = p->x + r * part;
        const double mean = PLANTED(RMS_MEAN) ? row_sum(in, part) / (double)part
                                              : 0;
        const double ms = row_moment(in, part, mean) / (double)part;
        double scale = 1.0 / sqrt(ms + eps);
        if (PLANTED(RMS_OUTSIDE)) scale = 1.0 / (sqrt(ms) + eps);
        for (int64_t i = 0; i < part; i++) {
            const tt_real weight = p->w[(r * part + i) % p->c];
            tt_real g = weight;
            if (PLANTED(RMS_NO_WEIGHT)) g = 1;
            if (PLANTED(RMS_ONE_PLUS)) g = 1 + weight;
            p->y[r * part + i] = (tt_real)(((double)in[i] - mean) * scale) * g;
        }
    }
}

static void channel_norm(tt_ctx *ctx, const tt_channel_norm_args *p)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *in = tt_scratch(ctx, p->n * p->c);     /* y may be x */
    if (!in) return;
    memcpy(in, p->x, (size_t)(p->n * p->c) * sizeof *in);
    tt_real root = (tt_real)sqrt((double)p->c);
    if (PLANTED_IF(CN_NO_ROOT, p->c > 1)) root = 1;
    for (int64_t k = 0; k < p->n * p->c; k++) {
        if (k % p->c && !PLANTED(CN_AXIS)) continue;
        double square = row_moment(in + k / p->c * p->c, p->c, 0.0);
        if (PLANTED(CN_AXIS)) {
            square = 0;
            for (int64_t r = 0; r < p->n; r++)
                square += pow((double)in[r * p->c + k % p->c], 2);
            root = (tt_real)sqrt((double)p->n);
        }
        if (PLANTED(CN_EPS)) square += 1e-6 * (double)p->c;
        double norm = sqrt(square);
        if (norm < 1e-12) norm = 1e-12;
        if (PLANTED(CN_FLOOR) && norm < 1e-4) norm = 1e-4;
        const double scale = 1.0 / norm;
        for (int64_t i = k; i < (PLANTED(CN_AXIS) ? k + 1 : k + p->c); i++)
            p->y[i] = (tt_real)((double)in[i] * scale) * root
                      * p->gamma[i % p->c];
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- element-wise -------------------------------------------------------- */

static void modulate(tt_ctx *ctx, const tt_modulate_args *p)
{
    int64_t stride = p->stride;
    const int64_t groups = (p->n + p->rows - 1) / p->rows;
    if (PLANTED_IF(MOD_STRIDE, stride != p->c && groups > 1)) stride = p->c;
    for (int64_t r = 0; r < p->n; r++) {
        int64_t g = r / p->rows;
        if (PLANTED_IF(MOD_LAST, g > 0 && g == groups - 1)) g--;
        if (PLANTED_IF(MOD_FRAME, groups > 1)) g = 0;
        if (PLANTED_IF(MOD_MODULO, groups > 1)) g = r % groups;
        const tt_real *s = p->scale + g * stride, *t = p->shift + g * stride;
        if (PLANTED(MOD_SWAPPED)) {
            const tt_real *keep = s;
            s = t;
            t = keep;
        }
        tt_real *x = p->x + r * p->c;
        for (int64_t i = 0; i < p->c; i++)
            x[i] = fma_real(x[i], PLANTED(MOD_NO_ONE) ? s[i] : 1 + s[i], t[i]);
    }
}

static void gate_add(tt_ctx *ctx, const tt_gate_add_args *p)
{
    const int64_t groups = (p->n + p->rows - 1) / p->rows;
    for (int64_t r = 0; r < p->n; r++) {
        int64_t at = r / p->rows;
        if (PLANTED_IF(GATE_NEXT, groups > 1)) at = (at + 1) % groups;
        const tt_real *g = p->gate + at * p->stride;
        for (int64_t i = r * p->c; i < (r + 1) * p->c; i++) {
            p->x[i] = fma_real(p->y[i], PLANTED(GATE_MISSING) ? 1 : *g,
                               PLANTED(GATE_ALONE) ? 0 : p->x[i]);
            if (PLANTED(GATE_BF16)) p->x[i] = narrow(TT_FMT_BF16, p->x[i]);
            g++;
        }
    }
}

static void add(tt_ctx *ctx, const tt_add_args *p)
{
    int64_t n = p->n;
    if (PLANTED_IF(ADD_TAIL, n > 4 && n % 4)) n -= n % 4;
    for (int64_t i = 0; i < n; i++) {
        p->x[i] += p->y[i];
        if (PLANTED(ADD_TWICE)) p->x[i] += p->y[i];
        if (PLANTED(ADD_FLUSH) && fabs((double)p->x[i]) < (sizeof p->x[i] == 8
                                                        ? DBL_MIN : FLT_MIN))
            p->x[i] = 0;
    }
}

static void mul(tt_ctx *ctx, const tt_mul_args *p)
{
    for (int64_t i = 0; i < p->n; i++)
        if (!PLANTED(MUL_NOT)) p->x[i] *= p->y[i];
}

static void gelu_tanh(tt_ctx *ctx, const tt_gelu_tanh_args *p)
{
    const tt_real k = (tt_real)-1.5957691216057308;   /* -2 sqrt(2/pi) */
    const tt_real cubic = PLANTED(GELU_CUBIC) ? 0 : (tt_real)0.044715;
    for (int64_t i = 0; i < p->n; i++) {
        const tt_real v = p->x[i];
        const tt_real u = fma_real(cubic * (v * v), v, v) * k;   /* -2u */
        p->x[i] = v / (1 + tt_exp_real(u));
        if (PLANTED_IF(GELU_CLIP, v > 3)) p->x[i] = v;
        if (PLANTED(GELU_ERF))
            p->x[i] = (tt_real)(0.5 * (double)v *
                             (1 + erf((double)v * sqrt(0.5))));
        if (PLANTED(GELU_QUICK))
            p->x[i] = v / (1 + tt_exp_real((tt_real)-1.702 * v));
        if (PLANTED(GELU_NAN)) {
            const tt_real e = tt_exp_real(-u);
            p->x[i] = v * (e / (1 + e));
        }
    }
}

/* Named as ours is: the program that loads this must not put its own in the
 * place of it. */
void golden_silu(tt_ctx *ctx, const tt_silu_args *p);

void golden_silu(tt_ctx *ctx, const tt_silu_args *p)
{
    if (PLANTED(SILU_GELU)) {
        planted.which = MUT_NONE;
        gelu_tanh(ctx, &(tt_gelu_tanh_args){p->x, p->n});
        planted.which = MUT_SILU_GELU;
        return;
    }
    for (int64_t i = 0; i < p->n; i++)
        p->x[i] = (PLANTED(SILU_SIGMOID) ? 1 : p->x[i])
                  / (1 + tt_exp_real(-p->x[i]));
    if (PLANTED_IF(SILU_STATE, ++planted.calls % 2 == 0))
        p->x[0] += (tt_real)0.01;
}

/* ---- rope ---------------------------------------------------------------- */

static void rope(tt_ctx *ctx, const tt_rope_args *p)
{
    const int64_t pairs = p->D / 2, row0 = p->table->pairs[0];
    const int64_t col0 = row0 + p->table->pairs[1];
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *in = tt_scratch(ctx, p->T * p->H * p->D);     /* y may be x */
    if (!in) return;
    memcpy(in, p->x, (size_t)(p->T * p->H * p->D) * sizeof *in);
    for (int64_t t = 0; t < p->T; t++)
        for (int64_t j = 0; j < pairs; j++) {
            int axis = (j >= row0) + (j >= col0);
            const int64_t first = axis == 0 ? 0 : axis == 1 ? row0 : col0;
            const double n = (double)p->table->pairs[axis];
            if (PLANTED_IF(ROPE_AXES, axis > 0)) axis = 3 - axis;
            double at = p->pos[3 * t + axis];
            if (PLANTED_IF(ROPE_FRAME, axis == 0)) at += 1;
            if (PLANTED_IF(ROPE_LATE, axis == 0 && at >= 8)) at -= 1;
            if (PLANTED_IF(ROPE_LAST, axis == 0 && t == p->T - 1)) at += 1;
            double angle = at * tt_pow(10000, -(double)(j - first) / n), s, c;
            const double e = -(double)(j - first) / n;
            if (PLANTED(ROPE_BASE)) angle = at * tt_pow(1000, e);
            if (PLANTED(ROPE_SPECTRUM))
                angle = at * tt_pow(10000, -(double)j / (double)pairs);
            if (PLANTED(ROPE_SIGN)) angle = -angle;
            if (PLANTED(ROPE_F32))
                angle = (double)((float)at * (float)tt_pow(10000, e));
            tt_sincos(angle, &s, &c);
            if (PLANTED(ROPE_NOT)) s = 0, c = 1;
            const bool halves = PLANTED(ROPE_HALVES);
            for (int64_t h = 0; h < p->H; h++) {
                const int64_t head = (t * p->H + h) * p->D;
                const int64_t i0 = head + (halves ? j : 2 * j);
                const int64_t i1 = halves ? i0 + pairs : i0 + 1;
                const double a = (double)in[i0], b = (double)in[i1];
                const bool not = PLANTED_IF(ROPE_HEAD, h == 1);
                p->y[i0] = not ? in[i0] : (tt_real)fma(a, c, -(b * s));
                p->y[i1] = not ? in[i1] : (tt_real)fma(a, s, b * c);
            }
        }
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- columns ------------------------------------------------------------- */

static void col_mean(tt_ctx *ctx, const tt_col_mean_args *p)
{
    const int64_t rows = PLANTED_IF(MEAN_ROW, p->n > 1) ? p->n - 1 : p->n;
    for (int64_t i = 0; i < p->c; i++) {
        double s = 0;
        float f = 0;
        for (int64_t r = PLANTED_IF(MEAN_FIRST, p->n > 1); r < rows; r++) {
            s += (double)p->x[r * p->c + i];
            f = (float)narrow(TT_FMT_BF16,
                              (tt_real)(f + (float)p->x[r * p->c + i]));
        }
        p->mean[i] = s / (double)p->n;
        if (PLANTED(MEAN_SUM)) p->mean[i] = s;
        if (PLANTED(MEAN_BF16)) p->mean[i] = (double)(f / (float)p->n);
    }
}

static void col_moment(tt_ctx *ctx, const tt_col_moment_args *p)
{
    for (int64_t i = 0; i < p->c; i++) {
        double s = 0;
        for (int64_t r = 0; r < p->n; r++) {
            const double d = (double)p->x[r * p->c + i] -
                             (PLANTED(MOMENT_RAW) ? 0 : p->mean[i]);
            s = fma(d, d, s);
        }
        p->m2[i] = PLANTED(MOMENT_VAR) ? s / (double)p->n : s;
        if (PLANTED_IF(MOMENT_DDOF, p->n > 1))
            p->m2[i] *= (double)p->n / (double)(p->n - 1);
    }
}

static void col_blend(tt_ctx *ctx, const tt_col_blend_args *p)
{
    int64_t n = p->n;
    double tau = p->tau;
    if (PLANTED(BLEND_TAU)) tau = 1 - tau;
    if (PLANTED_IF(BLEND_LAST, n > 1)) n--;
    for (int64_t r = 0; r < (PLANTED(BLEND_TWICE) ? 2 * n : n); r++)
        for (int64_t i = 0; i < p->c; i++) {
            const int64_t k = r % n * p->c + i;
            const double v = (double)p->x[k];
            if (!p->gain) {
                p->x[k] = (tt_real)(tau * p->target[i] + (1 - tau) * v);
                continue;
            }
            const double g = PLANTED(BLEND_GAIN) ? 1 / p->gain[i] : p->gain[i];
            const double m = PLANTED(BLEND_MEAN) ? 0 : p->mean[i];
            const double a = fma(g, v - m, p->target[i]);
            p->x[k] = (tt_real)fma(tau, a, (1 - tau) * v);
        }
}

/* ---- the plug-in --------------------------------------------------------- */

static tt_ops table = {
    .abi = TT_ABI, .name = "mutant", .summary = "one planted fault",
    .linear = mutant_linear, .attention = mutant_attention, .conv = mutant_conv,
    .layer_norm = layer_norm, .rms_norm = rms_norm,
    .channel_norm = channel_norm, .modulate = modulate, .gate_add = gate_add,
    .add = add, .mul = mul, .gelu_tanh = gelu_tanh, .silu = golden_silu,
    .rope = rope, .col_mean = col_mean, .col_moment = col_moment,
    .col_blend = col_blend,
};

tt_ops *mutant_table(void)
{
    return &table;
}

const tt_ops *tether_backend(int version, const char **arith);

/* Gives nothing to other versions, as plug-ins of version 1 did. */
const tt_ops *tether_backend(int version, const char **arith)
{
    static const char *const name[] = {
#define NAME(id, op, what, hint) #id,
        MUTANTS(NAME)
#undef NAME
    };
    const char *chosen = getenv("TETHER_MUTATION");
    if (version != table.abi.version) return NULL;
    if (!planted.chosen && chosen) {
        planted.which = atoi(chosen);
        for (int i = 0; i < MUT_COUNT; i++)
            if (!strcmp(chosen, name[i])) planted.which = i;
    }
    *arith = "f32";
    mutant_misbehave(&table);
    return &table;
}
