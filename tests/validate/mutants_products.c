/* mutants_products.c: linear layers, attention and convolutions with one fault
 * at a time, for tests only.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Written as in src/ops/golden, with the faults of mutants.h next to the lines
 * they replace. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gather.h"
#include "ops/reduce.h"
#include "tests/validate/mutants_state.h"
#include "tether/mathfn.h"

/* ---- linear -------------------------------------------------------------- */

static tt_real product(const tt_ctx *ctx, const tt_real *x, const tt_real *w,
                       int64_t i, bool lost)
{
    tt_real sum = 0;
    if (PLANTED(LINEAR_SUM_BF16)) {
        for (int64_t k = 0; k < i; k++)
            sum = narrow(TT_FMT_BF16, fma_real(x[k], w[k], sum));
        return sum;
    }
    if (PLANTED(LINEAR_IN_BF16) || PLANTED(LINEAR_IN_TF32)) {
        const tt_format f = planted.which == MUT_LINEAR_IN_BF16 ? TT_FMT_BF16
                                                              : TT_FMT_TF32;
        for (int64_t k = 0; k < i; k++)
            sum = fma_real(narrow(f, x[k]), narrow(f, w[k]), sum);
        return sum;
    }
    if (PLANTED_IF(LINEAR_TAIL, i > 8 && i % 8)) i -= i % 8;
    if (lost) i /= 2;
    for (int64_t k0 = 0; k0 < i; k0 += TT_DOT_BLOCK) {
        const int64_t k1 = k0 + TT_DOT_BLOCK < i ? k0 + TT_DOT_BLOCK : i;
        tt_real s = 0;
        for (int64_t k = k0; k < k1; k++) s = fma_real(x[k], w[k], s);
        sum = k0 == 0 || PLANTED(LINEAR_BLOCKS) ? s : sum + s;
    }
    return sum;
}

static int layer_of(const void *w)
{
    for (int i = 0; i < planted.layers; i++)
        if (planted.layer[i] == w) return i;
    if (planted.layers < LAYERS) planted.layer[planted.layers++] = w;
    return planted.layers - 1;
}

/* The number after "chunk." or "step." in the path, -1 without. */
static int path_number(const tt_ctx *ctx, const char *scope)
{
    const char *at = strstr(ctx->path, scope);
    return at ? atoi(at + strlen(scope)) : -1;
}

/* Faults of the result as a whole. */
static void spoil(tt_ctx *ctx, tt_real *y, int64_t n, int64_t o)
{
    for (int64_t i = 0; i < n * o; i++) {
        if (PLANTED_IF(LINEAR_LAST_TOKEN, i / o == n - 1))
            y[i] *= (tt_real)1.01;
        if (PLANTED_IF(LINEAR_TAIL_ROWS, i / o >= 64)) y[i] *= (tt_real)1.001;
        if (PLANTED(LINEAR_TINY)) y[i] *= (tt_real)1.0001;
        if (PLANTED_IF(LINEAR_STEP, path_number(ctx, "step.") == 2))
            y[i] *= (tt_real)1.001;
    }
    if (PLANTED(LINEAR_OUTSIDE)) y[n * o + 900] = 1;
}

void mutant_linear(tt_ctx *ctx, const tt_linear_args *p)
{
    tt_tensor t = *p->w;
    const int64_t o = t.dim[0], i = t.dim[1];
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *w = tt_scratch(ctx, o * i);
    if (!w) return;
    if (PLANTED_IF(LINEAR_W_F16, t.dtype == TT_BF16)) t.dtype = TT_F16;
    tt_widen_at(w, &t, 0, o * i);
    for (int64_t k = 0; k < o * i && PLANTED(LINEAR_NARROW_W); k++)
        w[k] = narrow(TT_FMT_BF16, w[k]);
    const bool late = ++planted.calls > LATE, third = layer_of(t.data) == THIRD;
    bool large = false;
    for (int64_t k = 0; k < p->n * i; k++)
        if (fabs((double)p->x[k]) > 100) large = true;
    if (PLANTED(LINEAR_TRANSPOSED)) {
        tt_real *transposed = tt_scratch(ctx, o * i);
        for (int64_t k = 0; transposed && k < o * i; k++)
            transposed[k] = w[k % i * o + k / i];
        w = transposed ? transposed : w;
    }
    for (int64_t r = 0; r < p->n; r++)
        for (int64_t c = 0; c < o; c++) {
            int64_t from = r, bias = c;
            if (PLANTED_IF(LINEAR_ROWS, r > 0)) from = r - 1;
            if (PLANTED_IF(LINEAR_STALE_ROW, r == 1)) from = 0;
            if (PLANTED_IF(LINEAR_BIAS_NEXT, p->b)) bias = (c + 1) % o;
            const bool last = p->n > 1 && p->n % 2 && r == p->n - 1;
            if (PLANTED_IF(LINEAR_LAST_ROW, last)) continue;
            const bool lost = r * o + c == planted.calls * 7919 % (p->n * o);
            tt_real s = product(ctx, p->x + from * i, w + c * i, i,
                                lost && PLANTED_IF(LINEAR_RACE, i > 1));
            if (p->b && !PLANTED(LINEAR_NO_BIAS)
                && !PLANTED_IF(LINEAR_LATE, late))
                s += p->b[bias];
            if (p->b && PLANTED(LINEAR_BIAS_TWICE)) s += p->b[c];
            if (PLANTED_IF(LINEAR_COLUMNS, o > 8 && o % 8 && c >= o - o % 8))
                s = 0;
            if (PLANTED_IF(LINEAR_LANE, c % 16 == 5)) s = -s;
            if (PLANTED_IF(LINEAR_LAYER, third)) s *= (tt_real)0.5;
            if (PLANTED(LINEAR_OUT_F16)) s = narrow(TT_FMT_F16, s);
            if (PLANTED_IF(LINEAR_LARGE, large && c == o / 2)) s = (tt_real)NAN;
            p->y[r * o + c] = s;
        }
    spoil(ctx, p->y, p->n, o);
    if (PLANTED_IF(LINEAR_READS, i > 1))
        p->y[p->n * o - 1] += 0 * p->x[p->n * i];
    if (PLANTED_IF(LINEAR_WRITES, p->b))
        ((tt_real *)(uintptr_t)p->b)[o - 1] += 1;
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- attention ----------------------------------------------------------- */

/* The key row that stands at j. */
static int64_t key_row(const tt_ctx *ctx, const tt_attention_args *a, int64_t j)
{
    const int64_t L = a->T % 3 == 0 && a->N > a->T ? a->T / 3 : 0;
    if (PLANTED_IF(ATT_STALE, L > 0 && j >= a->N - L)) return j - L;
    return j;
}

static tt_real logit(const tt_ctx *ctx, const tt_attention_args *a, int64_t h,
                     int64_t i, int64_t j)
{
    const tt_real *K = PLANTED(ATT_KV) ? a->v : a->k;
    tt_real scale = a->scale;
    int64_t stride = a->kv_stride, kh = h, at = j - i + a->N - 1;
    if (PLANTED(ATT_NO_SCALE)) scale = 1;
    if (PLANTED_IF(ATT_ONE_HEAD, h == a->H - 1)) scale = 1;
    if (PLANTED(ATT_SCALE)) scale *= (tt_real)1.001;
    if (PLANTED(ATT_TWICE)) scale *= scale;
    if (PLANTED(ATT_ONE_D)) scale = 1 / (tt_real)a->D;
    if (PLANTED(ATT_EXP2)) scale *= (tt_real)0.6931471805599453;
    if (PLANTED(ATT_STRIDE)) stride = a->H * a->D;
    if (PLANTED(ATT_HEADS)) kh = (h + 1) % a->H;
    if (PLANTED_IF(ATT_FRAME, i > 0)) i--;
    tt_real s = dot_real(a->q + i * a->q_stride + h * a->D,
                         K + key_row(ctx, a, j) * stride + kh * a->D, a->D) *
                scale;
    if (PLANTED_IF(ATT_CAUSAL, j > i + a->N - a->T)) return -FLT_MAX;
    bool masked = a->key_mask && !a->key_mask[j];
    if (PLANTED_IF(ATT_NO_MASK, a->key_mask)) masked = false;
    if (PLANTED_IF(ATT_LONG, a->key_mask && j > 0 && a->key_mask[j - 1]))
        masked = false;
    if (masked) return -FLT_MAX;
    if (PLANTED_IF(ATT_BIAS_TRANSPOSED, a->rel_bias)) at = i - j + a->N - 1;
    if (PLANTED_IF(ATT_BIAS_OFF, a->rel_bias)) at -= at > 0;
    if (a->rel_bias && !PLANTED(ATT_NO_BIAS))
        s += a->rel_bias[h * (2 * a->N - 1) + at];
    return s;
}

static void attend(const tt_ctx *ctx, const tt_attention_args *a, int64_t h,
                   int64_t i, tt_real *acc, tt_real *block)
{
    tt_real m = 0, l = 0, p[TT_KEY_BLOCK];
    const tt_real *V = PLANTED(ATT_KV) ? a->k : a->v;
    int64_t N = a->N;
    if (PLANTED_IF(ATT_LAST_KEY, N > 1)) N--;
    if (PLANTED_IF(ATT_WRAPPED, N > 1 && path_number(ctx, "chunk.") > 2)) N--;
    if (PLANTED_IF(ATT_BLOCK, N > TT_KEY_BLOCK && N % TT_KEY_BLOCK))
        N -= N % TT_KEY_BLOCK;
    for (int64_t j0 = 0; j0 < N; j0 += TT_KEY_BLOCK) {
        int64_t n = N - j0 < TT_KEY_BLOCK ? N - j0 : TT_KEY_BLOCK;
        tt_real top = j0 ? m : logit(ctx, a, h, i, 0);
        for (int64_t j = 0; j < n; j++) {
            p[j] = logit(ctx, a, h, i, j0 + j);
            if (p[j] > top) top = p[j];
        }
        if (PLANTED(ATT_NO_MAX)) top = 0;
        tt_real sum = 0;
        for (int64_t j = 0; j < n; j++) {
            p[j] = tt_exp_real(p[j] - top);
            if (PLANTED(ATT_P_BF16)) p[j] = narrow(TT_FMT_BF16, p[j]);
            sum += p[j];
        }
        if (PLANTED(ATT_UNDIVIDED)) sum = 1;
        for (int64_t d = 0; d < a->D; d++) block[d] = 0;
        const int64_t vh = PLANTED(ATT_HEADS) ? (h + 1) % a->H : h;
        const int64_t stride = PLANTED(ATT_STRIDE) ? a->H * a->D
                                                   : a->kv_stride;
        for (int64_t j = 0; j < n; j++) {
            const tt_real *v = V + (j0 + j) * stride + vh * a->D;
            for (int64_t d = 0; d < a->D; d++)
                block[d] = fma_real(p[j], v[d], block[d]);
        }
        tt_real alpha = j0 ? tt_exp_real(m - top) : 0;
        if (PLANTED_IF(ATT_RESCALE, j0)) alpha = 1;
        l = j0 ? fma_real(l, alpha, sum) : sum;
        for (int64_t d = 0; d < a->D; d++)
            acc[d] = j0 ? fma_real(acc[d], alpha, block[d]) : block[d];
        m = top;
    }
    for (int64_t d = 0; d < a->D; d++) {
        int64_t to = (i * a->H + h) * a->D + d;
        if (PLANTED(ATT_LAYOUT)) to = (i * a->D + d) * a->H + h;
        a->o[to] = acc[d] / l;
        if (PLANTED_IF(ATT_LAST_TOKEN, i == a->T - 1))
            a->o[to] *= (tt_real)1.01;
    }
}

/* Weights of one key sum to 1 over the queries. */
static void over_queries(tt_ctx *ctx, const tt_attention_args *a)
{
    double *s = tt_alloc(ctx, &ctx->scratch, a->T * a->N, sizeof *s, "mutant");
    for (int64_t h = 0; s && h < a->H; h++) {
        for (int64_t j = 0; j < a->N; j++) {
            double top = -DBL_MAX, l = 0;
            for (int64_t i = 0; i < a->T; i++) {
                s[i * a->N + j] = (double)logit(ctx, a, h, i, j);
                top = fmax(top, s[i * a->N + j]);
            }
            for (int64_t i = 0; i < a->T; i++)
                l += s[i * a->N + j] = tt_exp(s[i * a->N + j] - top);
            for (int64_t i = 0; i < a->T; i++) s[i * a->N + j] /= l;
        }
        for (int64_t i = 0; i < a->T; i++)
            for (int64_t d = 0; d < a->D; d++) {
                double o = 0;
                for (int64_t j = 0; j < a->N; j++)
                    o += s[i * a->N + j] *
                         (double)a->v[j * a->kv_stride + h * a->D + d];
                a->o[(i * a->H + h) * a->D + d] = (tt_real)o;
            }
    }
}

/* Keys and values as some faults see them. */
static void rearrange(tt_ctx *ctx, tt_attention_args *a)
{
    const int64_t S = a->kv_stride, n = (a->N - 1) * S + a->H * a->D;
    const int64_t L = a->T % 3 == 0 && a->N > a->T ? a->T / 3 * S : 0;
    if (PLANTED_IF(ATT_FIRST_KEY, a->N > 1 && !a->rel_bias)) {
        a->k += S, a->v += S, a->N--;
        if (a->key_mask) a->key_mask++;
    }
    if (!(L && (PLANTED(ATT_SLOTS) || PLANTED(ATT_KV_FRAME)))) return;
    tt_real *k = tt_scratch(ctx, n), *v = tt_scratch(ctx, n);
    if (!v) return;
    memcpy(k, a->k, (size_t)n * sizeof *k);
    memcpy(v, a->v, (size_t)n * sizeof *v);
    if (PLANTED(ATT_SLOTS)) {
        memcpy(v, a->v + L, (size_t)L * sizeof *v);
        memcpy(v + L, a->v, (size_t)L * sizeof *v);
    } else {
        memcpy(k + n - L, a->v + n - L, (size_t)L * sizeof *k);
        memcpy(v + n - L, a->k + n - L, (size_t)L * sizeof *v);
    }
    a->k = k, a->v = v;
}

void mutant_attention(tt_ctx *ctx, const tt_attention_args *right)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_attention_args changed = *right;
    const tt_attention_args *a = &changed;
    tt_real *acc = tt_scratch(ctx, 2 * a->D);
    rearrange(ctx, &changed);
    if (PLANTED(ATT_QUERIES)) over_queries(ctx, a);
    else
        for (int64_t t = 0; acc && t < a->H * a->T; t++)
            attend(ctx, a, t / a->T, t % a->T, acc, acc + a->D);
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- conv ---------------------------------------------------------------- */

/* The weight as a fault reads it: [Cout, kt, kh, kw, Cin]. */
static void reorder(tt_ctx *ctx, tt_real *w, const tt_conv_args *p)
{
    const int64_t A = p->kt, U = p->kh, V = p->kw, C = p->Cin;
    const int64_t K = A * U * V * C, n = p->Cout * K;
    tt_real *from = tt_scratch(ctx, n);
    if (!from) return;
    memcpy(from, w, (size_t)n * sizeof *w);
    for (int64_t k = 0; k < n; k++) {
        const int64_t c = k % C, v = k / C % V, u = k / (C * V) % U;
        const int64_t a = k / (C * V * U) % A, o = k / K;
        int64_t at = k;
#define TAP(a_, u_, v_) ((((o * A + (a_)) * U + (u_)) * V + (v_)) * C + c)
        if (PLANTED_IF(CONV_FLIPPED, U > 1)) at = TAP(a, U - 1 - u, V - 1 - v);
        if (PLANTED_IF(CONV_TRANSPOSED, U == V && U > 1)) at = TAP(a, v, u);
        if (PLANTED_IF(CONV_LAYOUT, A * U * V > 1))
            at = (((o * C + c) * A + a) * U + u) * V + v;
#undef TAP
        w[k] = from[at];
        if (PLANTED_IF(CONV_CHANNELS, C > 4 && C % 4 && c >= C - C % 4))
            w[k] = 0;
    }
}

void mutant_conv(tt_ctx *ctx, const tt_conv_args *right)
{
    tt_conv_args p = *right;
    const int64_t k = (int64_t)p.kt * p.kh * p.kw * p.Cin;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *w = tt_scratch(ctx, p.Cout * k), *x = tt_scratch(ctx, k);
    const tt_real *frame[8];
    if (!w || !x) return;
    tt_widen_at(w, p.w, 0, p.Cout * k);
    reorder(ctx, w, &p);
    for (int a = 0; a < p.kt; a++) {
        frame[a] = p.frame[a];
        if (PLANTED_IF(CONV_REVERSED, p.kt > 1))
            frame[a] = p.frame[p.kt - 1 - a];
        if (PLANTED_IF(CONV_PHASE, p.kt > 1))
            frame[a] = a ? p.frame[a - 1] : NULL;
        if (PLANTED_IF(CONV_REPEAT, p.kt > 1 && a == 0 && !p.frame[0]))
            frame[a] = p.frame[1];
        if (PLANTED_IF(CONV_HISTORY, p.kt > 1 && a < p.kt - 1)) frame[a] = NULL;
    }
    p.frame = frame;
    if (PLANTED_IF(CONV_PAD, p.kh > 1)) p.pad_top++;
    if (PLANTED_IF(CONV_STRIDE, p.stride == 2)) p.pad_top++, p.pad_left++;
    if (PLANTED_IF(CONV_UP, p.up == 2)) p.pad_top--, p.pad_left--;
    for (int64_t i = 0; i < p.Ho; i++)
        for (int64_t j = 0; j < p.Wo; j++) {
            conv_gather(x, &p, i, j);
            if (PLANTED_IF(CONV_EDGE, p.kh > 1)) {
                tt_real *to = x;
                for (int a = 0; a < p.kt; a++)
                    for (int u = 0; u < p.kh; u++)
                        for (int v = 0; v < p.kw; v++, to += p.Cin) {
                            int64_t r = i * p.stride + u - p.pad_top;
                            int64_t s = j * p.stride + v - p.pad_left;
                            const int64_t H = p.Hi * p.up, W = p.Wi * p.up;
                            r = (r < 0 ? 0 : r >= H ? H - 1 : r) / p.up;
                            s = (s < 0 ? 0 : s >= W ? W - 1 : s) / p.up;
                            if (frame[a])
                                memcpy(to, frame[a] + (r * p.Wi + s) * p.Cin,
                                       (size_t)p.Cin * sizeof *to);
                        }
            }
            tt_real *y = p.y + (i * p.Wo + j) * p.Cout;
            for (int64_t o = 0; o < p.Cout; o++) {
                const tt_real s = dot_real(x, w + o * k, k);
                y[o] = p.b && !PLANTED(CONV_NO_BIAS) ? s + p.b[o] : s;
                if (PLANTED_IF(CONV_COLUMN, j == p.Wo - 1))
                    y[o] *= (tt_real)1.01;
            }
        }
    if (PLANTED(CONV_CORNER))
        p.y[p.Ho * p.Wo * p.Cout - 1] += (tt_real)1e-3;
    tt_arena_reset(&ctx->scratch, mark);
}
