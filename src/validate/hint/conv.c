/* conv.c: how a causal convolution goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/hint/hint.h"

typedef struct conv_trial {
    op_call q;
    tt_tensor w;
    tt_real *taps;             /* [Cout, kt, kh, kw, Cin]                     */
    const tt_real *frame[16];
} conv_trial;

/* A copy of the call that may be changed. */
static bool begin(hint *h, conv_trial *t, const tt_real *wide)
{
    const tt_conv_args *a = &h->q->conv;
    const int64_t n = tt_tensor_count(a->w);
    t->q = *h->q;
    t->taps = hint_copy(h, wide, n);
    if (!t->taps || a->kt > 16) return false;
    t->w = *a->w;
    t->w = tt_tensor_make(t->taps, sizeof(tt_real) == 8 ? TT_F64 : TT_F32,
                          a->w->rank, a->w->dim);
    for (int i = 0; i < a->kt; i++) t->frame[i] = a->frame[i];
    t->q.conv.w = &t->w;
    t->q.conv.frame = t->frame;
    return true;
}

static void bias(hint *h)
{
    op_call q = *h->q;
    const tt_real *b = q.conv.b;
    if (!b) return;
    q.conv.b = NULL;
    hint_try_call(h, &q, "bias missing");
    call_oracle(h->ctx, &q, h->trial);
    for (int64_t i = 0; i < h->n; i++)
        h->trial[i] += 2 * (double)b[i % h->c];
    hint_try(h, h->trial, "bias added twice");
}

static void padding(hint *h)
{
    op_call q = *h->q;
    const tt_conv_args *a = &h->q->conv;
    for (int r = 1; r >= -1; r--)
        for (int s = 1; s >= -1; s--) {
            if (!r && !s) continue;
            q.conv.pad_top = a->pad_top + r;
            q.conv.pad_left = a->pad_left + s;
            hint_try_call(h, &q, "padding off by one: top %+d, left %+d%s", r,
                          s, a->stride > 1 ? " (phase of the stride)" :
                          a->up > 1 ? " (phase of the upsampling)" : "");
        }
    q = *h->q;
    q.conv.up = a->up == 2 ? 1 : 2;
    hint_try_call(h, &q, a->up == 2 ? "upsampling left out"
                                    : "input upsampled though it is not");
    q = *h->q;
    q.conv.stride = a->stride == 2 ? 1 : 2;
    hint_try_call(h, &q, "stride %d instead of %d", q.conv.stride, a->stride);
    if (a->Hi == a->Wi) return;
    q = *h->q;
    q.conv.Hi = a->Wi;
    q.conv.Wi = a->Hi;
    hint_try_call(h, &q, "height and width of the input exchanged");
}

/* One extended frame in which the edge pixels are repeated. */
static const tt_real *extended(hint *h, const tt_conv_args *a,
                               const tt_real *x, int64_t m)
{
    const int64_t H = a->Hi + 2 * m, W = a->Wi + 2 * m;
    tt_real *y = x ? hint_reals(h, H * W * a->Cin) : NULL;
    for (int64_t i = 0; y && i < H; i++)
        for (int64_t j = 0; j < W; j++) {
            int64_t r = i - m < 0 ? 0 : i - m >= a->Hi ? a->Hi - 1 : i - m;
            int64_t s = j - m < 0 ? 0 : j - m >= a->Wi ? a->Wi - 1 : j - m;
            memcpy(y + (i * W + j) * a->Cin, x + (r * a->Wi + s) * a->Cin,
                   (size_t)a->Cin * sizeof *y);
        }
    return y;
}

static void edges(hint *h)
{
    const tt_conv_args *a = &h->q->conv;
    const tt_real *frame[16];
    op_call q = *h->q;
    if (a->kt > 16) return;
    for (int i = 0; i < a->kt; i++) frame[i] = extended(h, a, a->frame[i], 2);
    q.conv.frame = frame;
    q.conv.Hi += 4;
    q.conv.Wi += 4;
    q.conv.pad_top -= 2 * a->up;
    q.conv.pad_left -= 2 * a->up;
    hint_try_call(h, &q, "edges repeat the image where zeros belong");
}

/* Frames of the window in other places; -1: none. */
static void frames(hint *h, conv_trial *t)
{
    static const char *const what[] = {
        "frames in reverse order",
        "frames shifted by one (one too old: frame phase)",
        "frames shifted by one (one too new: frame phase)",
        "frames shifted by one, the oldest repeated",
        "the newest frame in place of all",
        "history ignored (zeros before this frame)"};
    const tt_conv_args *a = &h->q->conv;
    const int last = a->kt - 1;
    if (last < 1) return;
    for (int form = 0; form < 6; form++) {
        for (int i = 0; i <= last; i++) {
            const int from[] = {last - i, i - 1, i < last ? i + 1 : i,
                                i ? i - 1 : 0, last, i < last ? -1 : i};
            t->frame[i] = from[form] < 0 ? NULL : a->frame[from[form]];
        }
        hint_try_call(h, &t->q, "%s", what[form]);
    }
    for (int k = 0; k <= last; k++) {
        for (int i = 0; i <= last; i++)
            t->frame[i] = i == k ? NULL : a->frame[i];
        hint_try_call(h, &t->q, "frame %d of the window is left out", k);
    }
    const tt_real *old = NULL;
    for (int i = last; i >= 0; i--) {
        if (a->frame[i]) old = a->frame[i];
        t->frame[i] = old;
    }
    hint_try_call(h, &t->q, "the first frame repeated where zeros belong");
    for (int i = 0; i <= last; i++) t->frame[i] = a->frame[i];
}

/* Another order of the taps: out (a', u', v', c') takes what stands at the
 * index that `form` computes. */
static void taps(hint *h, conv_trial *t, const tt_real *w)
{
    static const char *const what[] = {
        "kernel flipped (convolution instead of correlation)",
        "kernel rows reversed", "kernel columns reversed",
        "kernel time taps reversed", "kernel transposed ([kw, kh])",
        "weight read as [Cout, Cin, kt, kh, kw]",
        "weight read as [Cout, kh, kw, kt, Cin]",
        "weight read as [Cin, kt, kh, kw, Cout]",
        "kernel flipped in space and time"};
    const tt_conv_args *p = &h->q->conv;
    const int64_t A = p->kt, U = p->kh, V = p->kw, C = p->Cin, O = p->Cout;
    const int64_t K = A * U * V * C;
    for (size_t form = 0; form < sizeof what / sizeof what[0]; form++) {
        for (int64_t n = 0; n < O * K; n++) {
            const int64_t c = n % C, v = n / C % V, u = n / (C * V) % U;
            const int64_t a = n / (C * V * U) % A, o = n / K;
            const int64_t fa = A - 1 - a, fu = U - 1 - u, fv = V - 1 - v;
            int64_t from = n;
#define AT(a_, u_, v_) ((((o * A + (a_)) * U + (u_)) * V + (v_)) * C + c)
            switch (form) {
            case 0: from = AT(a, fu, fv); break;
            case 1: from = AT(a, fu, v); break;
            case 2: from = AT(a, u, fv); break;
            case 3: from = AT(fa, u, v); break;
            case 4: if (U == V) from = AT(a, v, u); break;
            case 5: from = (((o * C + c) * A + a) * U + u) * V + v; break;
            case 6: from = (((o * U + u) * V + v) * A + a) * C + c; break;
            case 7: from = (((c * A + a) * U + u) * V + v) * O + o; break;
            default: from = AT(fa, fu, fv); break;
            }
#undef AT
            t->taps[n] = w[from];
        }
        hint_try_call(h, &t->q, "%s", what[form]);
    }
    memcpy(t->taps, w, (size_t)(O * K) * sizeof *w);
}

/* Terms of the sum that are not there. */
static void missing(hint *h, conv_trial *t, const tt_real *w)
{
    const tt_conv_args *p = &h->q->conv;
    const int64_t C = p->Cin, taps = (int64_t)p->kt * p->kh * p->kw;
    const int64_t n = p->Cout * taps * C;
    for (int64_t m = 1; m <= 512; m *= 2) {
        const int64_t drop = m == 1 ? 1 : C % m;
        if (drop == 0 || drop >= C || (m > 1 && drop == C % (m / 2))) continue;
        for (int64_t k = 0; k < n; k++)
            t->taps[k] = k % C >= C - drop ? 0 : w[k];
        hint_try_call(h, &t->q, "the last %lld of %lld input channels are "
                      "dropped", (long long)drop, (long long)C);
    }
    for (int64_t s = 0; s < taps && taps > 1 && !hint_settled(h); s++) {
        for (int64_t k = 0; k < n; k++)
            t->taps[k] = k / C % taps == s ? 0 : w[k];
        hint_try_call(h, &t->q, "tap (%lld, %lld, %lld) of the kernel is left "
                      "out", (long long)(s / (p->kh * p->kw)),
                      (long long)(s / p->kw % p->kh), (long long)(s % p->kw));
    }
    memcpy(t->taps, w, (size_t)n * sizeof *w);
}

void hint_conv(hint *h)
{
    const tt_tensor *w = h->q->conv.w;
    const int64_t n = tt_tensor_count(w);
    bias(h);
    padding(h);
    edges(h);
    if (hint_settled(h)) return;
    tt_real *wide = hint_reals(h, n);
    if (!wide) return;
    tt_widen_at(wide, w, 0, n);
    conv_trial t;
    if (!begin(h, &t, wide)) return;
    frames(h, &t);
    if (!hint_settled(h)) taps(h, &t, wide);
    if (!hint_settled(h)) missing(h, &t, wide);
}
