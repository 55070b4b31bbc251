/* attention.c: how attention goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One plain float64 attention with a switch for every mistake; a trial sets
 * one of them. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tether/mathfn.h"
#include "validate/hint/hint.h"

typedef enum bias_fault {
    BIAS_RIGHT, BIAS_NONE, BIAS_TURNED, BIAS_EARLY, BIAS_LATE, BIAS_LAYOUT,
    BIAS_SCALED, BIAS_HEAD0
} bias_fault;

typedef enum sum_fault {
    SUM_RIGHT, SUM_NONE, SUM_UNDIVIDED, SUM_OVER_QUERIES, SUM_OVERFLOW,
    SUM_PLUS_ONE
} sum_fault;

typedef struct fault {
    double scale;             /* of the logits                                */
    int64_t k0, k1;           /* keys that take part                          */
    int causal;               /* -1: keys before the query are hidden         */
    int64_t k_head, v_head;   /* added to the head; -1: head 0 for all        */
    int64_t kv_stride, q_stride;
    int64_t K_from, K_to, V_from, V_to, L; /* L rows at from stand at to      */
    bias_fault bias;
    int mask;                 /* 0 right, 1 ignored, 2 inverted               */
    int64_t longer;           /* keys by which the valid length is off        */
    sum_fault sum;
    tt_format weight;         /* format of the softmax weights ...            */
    bool weight_sum;          /* ... whose sum is of the rounded ones         */
    bool swap_kv;             /* of the keys from swap_from on                */
    int64_t swap_from;
    int64_t block;            /* keys; sums are not rescaled behind it        */
    bool exchanged;           /* the rows at `to` stand at `from` as well     */
} fault;

static fault right(const tt_attention_args *a)
{
    return (fault){.scale = (double)a->scale, .k1 = a->N,
                   .kv_stride = a->kv_stride, .q_stride = a->q_stride,
                   .weight = TT_FMT_F32};
}

static int64_t head_of(int64_t h, int64_t shift, int64_t H)
{
    return shift == -1 ? 0 : (h + shift) % H;
}

static int64_t stale(const fault *f, int64_t j, int64_t from, int64_t to)
{
    if (!f->L || from == to) return j;
    if (j >= to && j < to + f->L) return j - to + from;
    return f->exchanged && j >= from && j < from + f->L ? j - from + to : j;
}

static bool valid_key(const tt_attention_args *a, const fault *f, int64_t j)
{
    if (!a->key_mask || f->mask == 1) return true;
    if (f->mask == 2) return !a->key_mask[j];
    const int64_t at = j - f->longer;
    return a->key_mask[at < 0 ? 0 : at >= a->N ? a->N - 1 : at] != 0;
}

static double bias_at(const tt_attention_args *a, const fault *f, int64_t h,
                      int64_t i, int64_t j)
{
    if (!a->rel_bias || f->bias == BIAS_NONE) return 0;
    const int64_t w = 2 * a->N - 1;
    int64_t at = j - i + a->N - 1;
    if (f->bias == BIAS_TURNED) at = i - j + a->N - 1;
    if (f->bias == BIAS_EARLY) at -= at > 0;
    if (f->bias == BIAS_LATE) at += at < w - 1;
    if (f->bias == BIAS_HEAD0) h = 0;
    if (f->bias == BIAS_LAYOUT) return (double)a->rel_bias[at * a->H + h];
    return (double)a->rel_bias[h * w + at] *
           (f->bias == BIAS_SCALED ? 1 / sqrt((double)a->D) : 1);
}

/* Logits [T, N] of one head; -DBL_MAX where hidden. */
static void logits(double *s, const tt_attention_args *a, const fault *f,
                   int64_t h)
{
    const int64_t kh = head_of(h, f->k_head, a->H);
    for (int64_t i = 0; i < a->T; i++)
        for (int64_t j = 0; j < a->N; j++) {
            const tt_real *q = a->q + i * f->q_stride + h * a->D;
            const tt_real *k = (f->swap_kv && j >= f->swap_from ? a->v : a->k)
                               + stale(f, j, f->K_from, f->K_to) *
                               f->kv_stride + kh * a->D;
            double d = 0;
            for (int64_t e = 0; e < a->D; e++)
                d += (double)q[e] * (double)k[e];
            d = d * f->scale + bias_at(a, f, h, i, j);
            /* queries are the last T of the N positions */
            const int64_t at = i + a->N - a->T;
            const bool hidden = (f->causal > 0 && j > at) ||
                (f->causal < 0 && j < at) || j < f->k0 || j >= f->k1 ||
                !valid_key(a, f, j);
            s[i * a->N + j] = hidden ? -DBL_MAX : d;
        }
}

/* Logits to weights in place, over n entries `step` apart. */
static void soften(double *s, int64_t n, int64_t step, const fault *f)
{
    double top = -DBL_MAX, l = 0;
    for (int64_t j = 0; j < n; j++)
        if (s[j * step] > top) top = s[j * step];
    if (f->sum == SUM_NONE) {
        for (int64_t j = 0; j < n; j++)
            if (s[j * step] == -DBL_MAX) s[j * step] = 0;
        return;
    }
    /* float32: exp of more is infinite, of less zero, and so is the sum */
    const bool over = f->sum == SUM_OVERFLOW
                      && (top > 88.7228 || top < -103.972);
    if (f->block) top = -DBL_MAX;
    for (int64_t j = 0; j < n; j++) {
        if (f->block && j % f->block == 0)
            for (int64_t k = j; k < n && k < j + f->block; k++)
                if (s[k * step] > top) top = s[k * step];
        /* all hidden: the definition makes them equal */
        const double p = tt_exp(s[j * step] - top);
        double r = p;
        if (f->weight != TT_FMT_F32)
            r = (double)tt_format_round(f->weight, (float)p);
        s[j * step] = over ? NAN : r;
        l += f->weight_sum ? r : p;
    }
    if (f->sum == SUM_UNDIVIDED) l = 1;
    if (f->sum == SUM_PLUS_ONE) l += tt_exp(-top);
    for (int64_t j = 0; j < n; j++) s[j * step] /= l;
}

static void attend(hint *h, const fault *f, double *out)
{
    const tt_attention_args *a = &h->q->attn;
    tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    double *s = hint_doubles(h, a->T * a->N);
    for (int64_t n = 0; s && n < a->H; n++) {
        logits(s, a, f, n);
        if (f->sum == SUM_OVER_QUERIES)
            for (int64_t j = 0; j < a->N; j++) soften(s + j, a->T, a->N, f);
        else
            for (int64_t i = 0; i < a->T; i++) soften(s + i * a->N, a->N, 1, f);
        for (int64_t i = 0; i < a->T; i++) {
            double *o = out + (i * a->H + n) * a->D;
            for (int64_t e = 0; e < a->D; e++) o[e] = 0;
            for (int64_t j = 0; j < a->N; j++) {
                const bool other = f->swap_kv && j >= f->swap_from;
                const tt_real *v = (other ? a->k : a->v)
                                   + stale(f, j, f->V_from, f->V_to) *
                    f->kv_stride + head_of(n, f->v_head, a->H) * a->D;
                const double p = s[i * a->N + j];
                if (p != 0)
                    for (int64_t e = 0; e < a->D; e++)
                        o[e] += p * (double)v[e];
            }
        }
    }
    tt_arena_reset(&h->ctx->scratch, mark);
}

#define TRY(h, f, ...)                                                         \
    do {                                                                       \
        if (!hint_settled(h)) {                                                \
            attend((h), (f), (h)->trial);                                      \
            hint_try((h), (h)->trial, __VA_ARGS__);                            \
        }                                                                      \
    } while (0)

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
        fault f = right(a);
        if (fabs(list[i].scale - s) < 1e-6 * fabs(s)) continue;
        f.scale = list[i].scale;
        TRY(h, &f, "%s", list[i].what);
    }
}

/* The factor itself: a step of 1 % says where `got` lies along it. */
static void other_scale(hint *h)
{
    const tt_attention_args *a = &h->q->attn;
    const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    double *step = hint_doubles(h, h->n), ge = 0, ee = 0, at = 1;
    fault f = right(a);
    if (!step || hint_settled(h)) return;
    for (int round = 0; round < 3; round++) {
        f.scale = (double)a->scale * at;
        attend(h, &f, step);
        f.scale *= 1.01;
        attend(h, &f, h->trial);
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
        TRY(h, &f, "logits are scaled by %.6g times what they should be", at);
    tt_arena_reset(&h->ctx->scratch, mark);
}

static void masks(hint *h)
{
    const tt_attention_args *a = &h->q->attn;
    fault f = right(a);
    if (a->key_mask) {
        f.mask = 1;
        TRY(h, &f, "key mask ignored: the padded length is used as length");
        f.mask = 2;
        TRY(h, &f, "key mask inverted");
        f.mask = 0;
        for (int64_t k = 1; k <= 2; k++) {
            f.longer = k;
            TRY(h, &f, "%lld masked key takes part: length too long",
                (long long)k);
            f.longer = -k;
            TRY(h, &f, "%lld valid key is masked: length too short",
                (long long)k);
        }
        f = right(a);
    }
    if (a->rel_bias) {
        static const char *const what[] = {
            NULL, "relative bias ignored", "relative bias transposed (i - j)",
            "relative bias off by one (j - i - 1)",
            "relative bias off by one (j - i + 1)",
            "relative bias read as [2N-1, H]",
            "relative bias scaled by 1/sqrt(D)",
            "relative bias of head 0 for all heads"};
        for (int b = BIAS_NONE; b <= BIAS_HEAD0; b++) {
            f.bias = (bias_fault)b;
            /* narrowed to some heads, the other layout reads elsewhere */
            TRY(h, &f, "%s", what[b]);
        }
        f = right(a);
    }
    f.causal = 1;
    TRY(h, &f, "a causal mask is applied");
    f.causal = -1;
    TRY(h, &f, "an inverted causal mask is applied");
}

static void sums(hint *h)
{
    const tt_attention_args *a = &h->q->attn;
    static const char *const what[] = {
        NULL, "no softmax", "not divided by the sum of the weights",
        "softmax over queries instead of keys",
        "exp overflows or vanishes: the maximum is not subtracted",
        "one is added to the sum of the weights (a zero logit takes part)"};
    fault f = right(a);
    for (int s = SUM_NONE; s <= SUM_PLUS_ONE; s++) {
        f.sum = (sum_fault)s;
        TRY(h, &f, "%s", what[s]);
    }
    f = right(a);
    for (f.block = 512; f.block >= 16; f.block /= 2)
        if (f.block < a->N)
            TRY(h, &f, "sums are not rescaled when the maximum moves (blocks "
                "of %lld keys)", (long long)f.block);
    f = right(a);
    for (int sum = 0; sum < 2; sum++) {
        f.weight_sum = sum != 0;
        f.weight = TT_FMT_BF16;
        TRY(h, &f, "softmax weights are rounded to bf16");
        f.weight = TT_FMT_TF32;
        TRY(h, &f, "softmax weights are rounded to tf32 or f16");
    }
}

static void heads(hint *h)
{
    const tt_attention_args *a = &h->q->attn;
    fault f = right(a);
    f.swap_kv = true;
    TRY(h, &f, "K and V exchanged");
    f = right(a);
    for (int64_t s = 1; s < a->H && s <= 4; s++) {
        f.k_head = f.v_head = s;
        TRY(h, &f, "K and V of another head (%+lld)", (long long)s);
        f.v_head = 0;
        TRY(h, &f, "K of another head (%+lld)", (long long)s);
        f.k_head = 0;
        f.v_head = s;
        TRY(h, &f, "V of another head (%+lld)", (long long)s);
    }
    f.k_head = f.v_head = -1;
    if (a->H > 1) TRY(h, &f, "K and V of head 0 for all heads");
    f = right(a);
    if (a->kv_stride > a->H * a->D) {
        f.kv_stride = a->H * a->D;
        TRY(h, &f, "stride of K and V ignored (H*D assumed)");
        f = right(a);
    }
    if (a->q_stride > a->H * a->D) {
        f.q_stride = a->H * a->D;
        TRY(h, &f, "stride of Q ignored (H*D assumed)");
    }
}

/* Which keys took part: running softmax sums of a few outputs say where the
 * candidate stopped or began. */
static void key_range(hint *h)
{
    const tt_attention_args *a = &h->q->attn;
    fault f = right(a);
    tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    double *s = hint_doubles(h, a->T * a->N);
    double *head = hint_doubles(h, 2 * (a->N + 1));
    if (!head || a->N < 2) return;
    double *tail = head + a->N + 1;
    memset(head, 0, (size_t)(2 * (a->N + 1)) * sizeof *head);
    logits(s, a, &f, 0);
    const int64_t step = a->T > 16 ? a->T / 16 : 1;
    for (int64_t i = 0; i < a->T; i += step) {
        double *p = s + i * a->N, top = p[0];
        for (int64_t j = 1; j < a->N; j++) top = fmax(top, p[j]);
        double all = 0, whole = 0;
        const double got = h->got[i * a->H * a->D];
        for (int64_t j = 0; j < a->N; j++) {
            p[j] = p[j] == -DBL_MAX ? 0 : tt_exp(p[j] - top);
            all += p[j];
            whole += p[j] * (double)a->v[j * a->kv_stride];
        }
        double l = 0, o = 0;
        for (int64_t j = 0; j <= a->N; j++) {
            head[j] += l > 0 ? fabs(o / l - got) : 1e300;
            tail[j] += all - l > 0 ? fabs((whole - o) / (all - l) - got)
                                   : 1e300;
            if (j == a->N) break;
            l += p[j];
            o += p[j] * (double)a->v[j * a->kv_stride];
        }
    }
    int64_t stop = a->N, begin = 0;
    for (int64_t j = 0; j <= a->N; j++) {
        if (head[j] < head[stop]) stop = j;
        if (tail[j] < tail[begin]) begin = j;
    }
    tt_arena_reset(&h->ctx->scratch, mark);
    f.k1 = a->N - 1;
    TRY(h, &f, "the last key is dropped");
    f.k1 = stop;
    if (stop > 0 && stop < a->N)
        TRY(h, &f, "the last %lld of %lld keys are dropped",
            (long long)(a->N - stop), (long long)a->N);
    f.k1 = a->N;
    f.k0 = 1;
    TRY(h, &f, "the first key is dropped");
    f.k0 = begin;
    if (begin > 0 && begin < a->N)
        TRY(h, &f, "the first %lld of %lld keys are dropped", (long long)begin,
            (long long)a->N);
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
        fault swapped = right(a);
        swapped.swap_kv = true;
        swapped.swap_from = last;
        TRY(h, &swapped, "K and V exchanged in the last slot (%lld keys)",
            (long long)L);
        const struct { int64_t from, to; const char *what; } at[] = {
            {last - L, last, "the last slot holds the one before it"},
            {0, last, "the last slot holds the first"},
            {L, 0, "the first slot holds the second"},
            {last, 0, "the first slot holds the last"},
            {0, L, "the second slot holds the first"},
            /* the same for K as for V, and nothing for both */
            {0, L, "or V the first two slots are exchanged"},
            {last - L, last, "or V the last two slots are exchanged"},
            {0, last, "or V the first and the last slot are exchanged"},
        };
        for (size_t k = 0; k < sizeof at / sizeof at[0]; k++)
            for (int which = 0; which < (k < 5 ? 3 : 1); which++) {
                fault f = right(a);
                f.L = L;
                f.exchanged = k >= 5;
                if (which != 1) f.K_from = at[k].from, f.K_to = at[k].to;
                if (which != 0) f.V_from = at[k].from, f.V_to = at[k].to;
                TRY(h, &f, "stale slot: of %s %s (slots of %lld keys)",
                    (const char *[]){"K", "V", "K and V"}[which], at[k].what,
                    (long long)L);
            }
    }
}

void hint_attention(hint *h)
{
    scales(h);
    masks(h);
    sums(h);
    key_range(h);
    heads(h);
    slots(h);
    other_scale(h);
}
