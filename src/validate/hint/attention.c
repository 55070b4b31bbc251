/* attention.c: how attention goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/chain.h"

#include <float.h>
#include <math.h>

#include "tether/mathfn.h"

#define F(...) &(attention_fault){__VA_ARGS__}
#define WORK_MOST ((int64_t)1 << 31)     /* of all keys                       */

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

static double scale_left(hint *h, void *user, double v)
{
    attention_fault *f = user;
    *f = (attention_fault){.scaled = true,
                           .scale = (double)h->q->attn.scale * tt_exp(v)};
    return hint_left(h, h->q, f);
}

static double cap_left(hint *h, void *user, double v)
{
    attention_fault *f = user;
    *f = (attention_fault){.cap = tt_exp(v)};
    return hint_left(h, h->q, f);
}

/* The factor of the logits, or their cap, is solved for. */
static void other_numbers(hint *h)
{
    attention_fault f;
    double v = 0;
    if (hint_solve(h, scale_left, &f, -2.3, 2.3, 46, &v)) {
        scale_left(h, &f, v);
        hint_try_fault(h, &f, "logits are scaled by %.6g times what they "
                       "should be", tt_exp(v));
    }
    if (hint_solve(h, cap_left, &f, 0, 7, 14, &v)) {
        const double cap = tt_exp(v);
        f.cap = fabs(rint(cap) - cap) < 0.02 ? rint(cap) : cap;
        hint_try_fault(h, &f, "logits are capped: %.4g tanh(x / %.4g)", f.cap,
                       f.cap);
    }
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
        {a->N > 1, F(.not_self = true), "no token attends to itself"},
        {true, F(.sum = SUM_NONE), "no softmax"},
        {true, F(.sum = SUM_MEAN), "logits divided by their number are the "
         "weights, without softmax"},
        {true, F(.sum = SUM_UNDIVIDED),
         "not divided by the sum of the weights"},
        {true, F(.sum = SUM_OVER_QUERIES),
         "softmax over queries instead of keys"},
        {mask, F(.sum = SUM_HIDDEN_NAN), "NaN where all keys are masked: the "
         "mask is -inf (a mean of the values belongs there)"},
        {true, F(.sum = SUM_OVERFLOW),
         "exp overflows or vanishes: the maximum is not subtracted"},
        {true, F(.zeros = 1), "one is added to the sum of the weights (a zero "
         "logit takes part)"},
        {true, F(.sum = SUM_SIGMOID), "sigmoid instead of softmax"},
    };
    HINT_TRY_EACH(h, list);
    for (int64_t n = 512; n >= 4; n /= 2) {
        if (a->N % n)
            hint_try_fault(h, F(.zeros = n - a->N % n), "%lld keys of zeros "
                           "are attended (padding to a multiple of %lld?)",
                           (long long)(n - a->N % n), (long long)n);
        for (int sum = 0; sum < 2 && n < a->N; sum++)
            hint_try_fault(h, F(.block = n, .sum_rescaled = sum != 0),
                           "%s not rescaled when the maximum moves (blocks of "
                           "%lld keys)", sum ? "the output so far is"
                           : "sums are", (long long)n);
    }
    for (int sum = 0; sum < 2; sum++) {
        hint_try_fault(h, F(.weight = TT_FMT_BF16, .weight_sum = sum != 0),
                       "softmax weights are rounded to bf16");
        hint_try_fault(h, F(.weight = TT_FMT_TF32, .weight_sum = sum != 0),
                       "softmax weights are rounded to tf32 or f16");
    }
}

static void other_heads(hint *h, head_map m, const char *what, int64_t n)
{
    static const char *const whose[] = {"K and V", "K", "V"};
    for (int which = 0; which < 3; which++) {
        attention_fault f = {0};
        if (which < 2) f.K = m;
        if (which != 1) f.V = m;
        hint_try_fault(h, &f, "%s of %s %lld", whose[which], what,
                       (long long)n);
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
    for (int64_t s = 1; s < a->H && s <= 4; s++)
        other_heads(h, (head_map){.add = s}, "another head: +", s);
    for (int64_t g = a->H; g > 1; g--) {
        if (a->H % g) continue;
        other_heads(h, (head_map){.div = g, .mul = g}, g == a->H
                    ? "head 0 for all heads of" : "the first head for all of "
                    "a group (grouped heads) of", g);
        other_heads(h, (head_map){.div = g}, "head h / n for head h, n =",
                    g);
        other_heads(h, (head_map){.mod = g}, "head h mod n for head h, n =",
                    g);
    }
    const hint_trial list[] = {
        {a->kv_stride > a->H * a->D, F(.kv_packed = true),
         "stride of K and V ignored (H*D assumed)"},
        {a->q_stride > a->H * a->D, F(.q_packed = true),
         "stride of Q ignored (H*D assumed)"},
    };
    HINT_TRY_EACH(h, list);
}

static void keys_dropped(hint *h, int64_t n, bool last)
{
    const tt_attention_args *a = &h->q->attn;
    const char *of = a->rel_bias || a->T == a->N ? ""
        : last && n == a->T ? " (those of the queries' own tokens)"
        : !last && n == a->N - a->T ? " (the past)" : "";
    const attention_fault f = {.tail = last ? n : 0, .head = last ? 0 : n};
    if (n == 1)
        hint_try_fault(h, &f, "the %s key is dropped", last ? "last" : "first");
    else if (n > 0 && n < a->N)
        hint_try_fault(h, &f, "the %s %lld of %lld keys are dropped%s",
                       last ? "last" : "first", (long long)n, (long long)a->N,
                       of);
}

/* Which keys took part. Of a chain all numbers are tried. */
static void key_range(hint *h)
{
    const int64_t N = h->q->attn.N, T = h->q->attn.T;
    int64_t part[PARTS_MOST];
    const bool all = h->end && call_cost(h->q) * N < WORK_MOST;
    const int n = hint_parts(N, part);
    keys_dropped(h, N > T ? T : 0, true);
    keys_dropped(h, N - T, false);
    for (int64_t k = 0; k < (all ? N - 1 : n); k++) {
        keys_dropped(h, all ? k + 1 : part[k], true);
        keys_dropped(h, all ? k + 1 : part[k], false);
    }
}

void hint_attention(hint *h)
{
    scales(h);
    masks_and_sums(h);
    key_range(h);
    heads(h);
    other_numbers(h);
}
