/* attention.c: how attention goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/hint.h"

#include <float.h>
#include <math.h>

#include "tether/mathfn.h"

#define F(...) &(attention_fault){__VA_ARGS__}

static void scales(hint *h)
{
    const tt_attention_args *a = &h->q->attn;
    const double s = (double)a->scale, D = (double)a->D;
    const struct { double scale; const char *what; } list[] = {
        {1, "logits are not scaled (1/sqrt(D) missing)"},
        {s * s, "logits are scaled twice"},
        {1 / sqrt(D), "logits are scaled by 1/sqrt(D)"},
        {1 / D, "logits are scaled by 1/D instead of 1/sqrt(D)"},
        {1 / sqrt(D * (double)a->H), "logits are scaled by 1/sqrt(H*D)"},
        {1 / sqrt(2 * D), "logits are scaled by 1/sqrt(2D)"},
        {1 / sqrt(D / 2), "logits are scaled by 1/sqrt(D/2)"},
        {1 / sqrt((double)a->N), "logits are scaled by 1/sqrt(N)"},
        {sqrt(D), "logits are scaled by sqrt(D)"},
        {s * 0.6931471805599453, "2^x where exp(x) belongs (log2(e) missing)"},
        {s * 1.4426950408889634, "log2(e) applied though exp is natural"},
        {-s, "sign of the logits flipped"},
        {0, "logits are zero: all keys weigh the same"},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        if (fabs(list[i].scale - s) < 1e-6 * fabs(s)) continue;
        hint_try_fault(h, F(.scaled = true, .scale = list[i].scale), "%s",
                       list[i].what);
    }
}

/* The factor itself: a step of 1 % says where `got` lies along it. */
static void other_scale(hint *h)
{
    const tt_attention_args *a = &h->q->attn;
    const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    double *step = hint_doubles(h, h->n), ge = 0, ee = 0, at = 1;
    attention_fault f = {.scaled = true};
    if (!step || hint_settled(h)) return;
    for (int round = 0; round < 3; round++) {
        f.scale = (double)a->scale * at;
        plain_call(h->ctx, h->q, &f, step);
        f.scale *= 1.01;
        plain_call(h->ctx, h->q, &f, h->trial);
        ge = ee = 0;
        for (int64_t i = 0; i < h->n; i++) {
            const double e = h->trial[i] - step[i], g = h->got[i] - step[i];
            if (!isfinite(e) || !isfinite(g)) continue;
            ge += g * e;
            ee += e * e;
        }
        if (!(ee > 0)) break;
        at *= 1 + 0.01 * ge / ee;
        if (!(at > 0.1 && at < 10)) break;
    }
    f.scale = (double)a->scale * at;
    if (ee > 0 && at > 0.1 && at < 10 && fabs(at - 1) > 1e-7)
        hint_try_fault(h, &f, "logits are scaled by %.6g times what they "
                       "should be", at);
    tt_arena_reset(&h->ctx->scratch, mark);
}

static void masks_and_sums(hint *h)
{
    const tt_attention_args *a = &h->q->attn;
    const bool mask = a->key_mask != NULL, bias = a->rel_bias != NULL;
    const hint_trial list[] = {
        {mask, F(.mask = MASK_IGNORED),
         "key mask ignored: the padded length is used as length"},
        {mask, F(.mask = MASK_INVERTED), "key mask inverted"},
        {mask, F(.longer = 1), "1 masked key takes part: length too long"},
        {mask, F(.longer = -1), "1 valid key is masked: length too short"},
        {mask, F(.longer = 2), "2 masked key takes part: length too long"},
        {mask, F(.longer = -2), "2 valid key is masked: length too short"},
        {bias, F(.bias = BIAS_NONE), "relative bias ignored"},
        {bias, F(.bias = BIAS_TRANSPOSED), "relative bias transposed (i - j)"},
        {bias, F(.bias = BIAS_EARLY), "relative bias off by one (j - i - 1)"},
        {bias, F(.bias = BIAS_LATE), "relative bias off by one (j - i + 1)"},
        /* narrowed to some heads, this layout reads elsewhere */
        {bias, F(.bias = BIAS_LAYOUT), "relative bias read as [2N-1, H]"},
        {bias, F(.bias = BIAS_SCALED), "relative bias scaled by 1/sqrt(D)"},
        {bias, F(.bias = BIAS_HEAD0), "relative bias of head 0 for all heads"},
        {true, F(.causal = 1), "a causal mask is applied"},
        {true, F(.causal = -1), "an inverted causal mask is applied"},
        {true, F(.sum = SUM_NONE), "no softmax"},
        {true, F(.sum = SUM_UNDIVIDED),
         "not divided by the sum of the weights"},
        {true, F(.sum = SUM_OVER_QUERIES),
         "softmax over queries instead of keys"},
        {mask, F(.sum = SUM_HIDDEN_NAN), "NaN where all keys are masked: the "
         "mask is -inf (a mean of the values belongs there)"},
        {true, F(.sum = SUM_OVERFLOW),
         "exp overflows or vanishes: the maximum is not subtracted"},
        {true, F(.sum = SUM_PLUS_ONE), "one is added to the sum of the weights "
         "(a zero logit takes part)"},
        {true, F(.sum = SUM_SIGMOID), "sigmoid instead of softmax"},
        {true, F(.sum = SUM_SIGMOID_DIVIDED), "sigmoid instead of exp in the "
         "softmax"},
    };
    HINT_TRY_EACH(h, list);
    for (int64_t n = 512; n >= 16; n /= 2)
        if (n < a->N)
            hint_try_fault(h, F(.block = n), "sums are not rescaled when the "
                           "maximum moves (blocks of %lld keys)", (long long)n);
    for (int e = 8; e >= 2; e--)
        hint_try_fault(h, F(.flush = pow(10, -e)),
                       "softmax weights below 1e-%d are zero", e);
    for (int sum = 0; sum < 2; sum++) {
        hint_try_fault(h, F(.weight = TT_FMT_BF16, .weight_sum = sum != 0),
                       "softmax weights are rounded to bf16");
        hint_try_fault(h, F(.weight = TT_FMT_TF32, .weight_sum = sum != 0),
                       "softmax weights are rounded to tf32 or f16");
    }
}

static void heads(hint *h)
{
    const tt_attention_args *a = &h->q->attn;
    hint_try_fault(h, F(.swap_kv = true), "K and V exchanged");
    if (a->T == a->N && a->q_stride == a->kv_stride) {
        op_call own = *h->q;
        own.attn.q = a->k;
        own.attn.k = a->q;
        hint_try_call(h, &own, "Q and K exchanged");
    }
    for (int64_t s = 1; s < a->H && s <= 4; s++) {
        hint_try_fault(h, F(.k_head = s, .v_head = s),
                       "K and V of another head (%+lld)", (long long)s);
        hint_try_fault(h, F(.k_head = s), "K of another head (%+lld)",
                       (long long)s);
        hint_try_fault(h, F(.v_head = s), "V of another head (%+lld)",
                       (long long)s);
    }
    const hint_trial list[] = {
        {a->H > 1, F(.k_head = -1, .v_head = -1),
         "K and V of head 0 for all heads"},
        {a->kv_stride > a->H * a->D, F(.kv_packed = true),
         "stride of K and V ignored (H*D assumed)"},
        {a->q_stride > a->H * a->D, F(.q_packed = true),
         "stride of Q ignored (H*D assumed)"},
    };
    HINT_TRY_EACH(h, list);
}

/* Query i of head 0: how far its first value would be from the candidate's
 * with the first j keys alone, and without them. */
static void running_sums(const hint *h, int64_t i, double *p, double *head,
                         double *tail)
{
    static const attention_fault none;
    const tt_attention_args *a = &h->q->attn;
    const double got = h->got[i * a->H * a->D];
    double top = -DBL_MAX, all = 0, whole = 0, l = 0, o = 0;
    plain_logits(p, a, &none, 0, i);
    for (int64_t j = 0; j < a->N; j++) top = fmax(top, p[j]);
    for (int64_t j = 0; j < a->N; j++) {
        p[j] = p[j] == -DBL_MAX ? 0 : tt_exp(p[j] - top);
        all += p[j];
        whole += p[j] * (double)a->v[j * a->kv_stride];
    }
    for (int64_t j = 0; j <= a->N; j++) {
        head[j] += l > 0 ? fabs(o / l - got) : 1e300;
        tail[j] += all - l > 0 ? fabs((whole - o) / (all - l) - got) : 1e300;
        if (j == a->N) break;
        l += p[j];
        o += p[j] * (double)a->v[j * a->kv_stride];
    }
}

/* Which keys took part: running softmax sums of a few outputs say where the
 * candidate stopped or began. */
static void key_range(hint *h)
{
    const int64_t N = h->q->attn.N, T = h->q->attn.T;
    const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    double *head = hint_doubles(h, 3 * (N + 1));
    if (!head || N < 2 || hint_settled(h)) return;
    double *tail = head + N + 1, *p = tail + N + 1;
    for (int64_t j = 0; j <= N; j++) head[j] = tail[j] = 0;
    for (int64_t i = 0; i < T; i += T > 16 ? T / 16 : 1)
        running_sums(h, i, p, head, tail);
    int64_t stop = N, begin = 0;
    for (int64_t j = 0; j <= N; j++) {
        if (head[j] < head[stop]) stop = j;
        if (tail[j] < tail[begin]) begin = j;
    }
    tt_arena_reset(&h->ctx->scratch, mark);
    /* what a chain's attention gave is not known: whole chunks are tried */
    if (h->chain && T < N) stop = N - T;
    hint_try_fault(h, F(.tail = 1), "the last key is dropped");
    if (stop > 0 && stop < N)
        hint_try_fault(h, F(.tail = N - stop), "the last %lld of %lld keys are "
                       "dropped%s", (long long)(N - stop), (long long)N,
                       stop != N - T ? "" : 2 * T < N || h->q->attn.rel_bias
                       ? " (those of the queries' own tokens)"
                       : " (those of the queries' own tokens), or hold others");
    hint_try_fault(h, F(.head = 1), "the first key is dropped");
    if (begin > 0 && begin < N)
        hint_try_fault(h, F(.head = begin), "the first %lld of %lld keys are "
                       "dropped", (long long)begin, (long long)N);
}

/* L rows of K or V still hold what stands at another slot. */
static void slots(hint *h)
{
    const tt_attention_args *a = &h->q->attn;
    int64_t list[8], n = 0;
    if (a->rel_bias || a->N < 4) return;
    for (int64_t d = 1; d <= 4; d++)
        if (a->T % d == 0) list[n++] = a->T / d;
    for (int64_t d = 2; d <= 4; d++)
        if (a->N % d == 0) list[n++] = a->N / d;
    if (n < 8) list[n++] = 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t L = list[i], last = a->N - L;
        if (L * 2 > a->N) continue;
        hint_try_fault(h, F(.swap_kv = true, .swap_from = last), "K and V "
                       "exchanged in the last slot (%lld keys)", (long long)L);
        const struct { stale_rows rows; const char *what; } at[] = {
            {{last - L, last}, "the last slot holds the one before it"},
            {{0, last}, "the last slot holds the first"},
            {{L, 0}, "the first slot holds the second"},
            {{last, 0}, "the first slot holds the last"},
            {{0, L}, "the second slot holds the first"},
            /* the same for K as for V, and nothing for both */
            {{0, L}, "or V the first two slots are exchanged"},
            {{last - L, last}, "or V the last two slots are exchanged"},
            {{0, last}, "or V the first and the last slot are exchanged"},
        };
        for (size_t k = 0; k < sizeof at / sizeof at[0]; k++)
            for (int which = 0; which < (k < 5 ? 3 : 1); which++) {
                attention_fault f = {.L = L, .exchanged = k >= 5};
                if (which != 1) f.K = at[k].rows;
                if (which != 0) f.V = at[k].rows;
                hint_try_fault(h, &f, "stale slot: of %s %s (slots of %lld "
                               "keys)", (const char *[]){"K", "V", "K and V"}
                               [which], at[k].what, (long long)L);
            }
    }
}

void hint_attention(hint *h)
{
    scales(h);
    masks_and_sums(h);
    key_range(h);
    heads(h);
    slots(h);
    other_scale(h);
}
