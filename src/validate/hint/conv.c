/* conv.c: how a causal convolution goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/hint.h"

#include <string.h>

#define F(...) &(conv_fault){__VA_ARGS__}

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
    tt_real *y = x ? tt_scratch(h->ctx, H * W * a->Cin) : NULL;
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
static void conv_frames(hint *h)
{
    static const char *const what[] = {
        "frames in reverse order",
        "frames shifted by one (one too old: frame phase)",
        "frames shifted by one (one too new: frame phase)",
        "frames shifted by one, the oldest repeated",
        "the newest frame in place of all",
        "history ignored (zeros before this frame)",
        "the older frames are in each other's place"};
    const tt_conv_args *a = &h->q->conv;
    const int last = a->kt - 1;
    const tt_real *frame[16], *old = NULL;
    op_call q = *h->q;
    q.conv.frame = frame;
    if (last < 1 || last > 15) return;
    for (int form = 0; form < 7; form++) {
        for (int i = 0; i <= last; i++) {
            const int from[] = {last - i, i - 1, i < last ? i + 1 : i,
                                i ? i - 1 : 0, last, i < last ? -1 : i,
                                i < last ? last - 1 - i : i};
            frame[i] = from[form] < 0 ? NULL : a->frame[from[form]];
        }
        hint_try_call(h, &q, "%s", what[form]);
    }
    for (int k = 0; k <= last; k++) {
        for (int i = 0; i <= last; i++) frame[i] = i == k ? NULL : a->frame[i];
        hint_try_call(h, &q, "frame %d of the window is left out", k);
    }
    for (int i = last; i >= 0; i--)
        frame[i] = old = a->frame[i] ? a->frame[i] : old;
    hint_try_call(h, &q, "the first frame repeated where zeros belong");
}

static void taps(hint *h)
{
    static const char *const what[TAP_ORDERS] = {
        "", "kernel flipped (convolution instead of correlation)",
        "kernel rows reversed", "kernel columns reversed",
        "kernel time taps reversed", "kernel transposed ([kw, kh])",
        "weight read as [Cout, Cin, kt, kh, kw]",
        "weight read as [Cout, kh, kw, kt, Cin]",
        "weight read as [Cin, kt, kh, kw, Cout]",
        "kernel flipped in space and time"};
    for (tap_order t = TAPS_FLIPPED; t < TAP_ORDERS; t++)
        hint_try_fault(h, F(.taps = t), "%s", what[t]);
}

/* Terms of the sum that are not there. */
static void conv_missing(hint *h)
{
    const tt_conv_args *p = &h->q->conv;
    const int64_t C = p->Cin, taps = (int64_t)p->kt * p->kh * p->kw;
    for (int64_t m = 1; m <= 512; m *= 2) {
        const int64_t drop = m == 1 ? 1 : C % m;
        if (drop == 0 || drop >= C || (m > 1 && drop == C % (m / 2))) continue;
        hint_try_fault(h, F(.drop = drop), "the last %lld of %lld input "
                       "channels are dropped", (long long)drop, (long long)C);
    }
    for (int64_t s = 0; s < taps && taps > 1; s++)
        hint_try_fault(h, F(.without = s + 1), "tap (%lld, %lld, %lld) of the "
                       "kernel is left out", (long long)(s / (p->kh * p->kw)),
                       (long long)(s / p->kw % p->kh), (long long)(s % p->kw));
}

void hint_conv(hint *h)
{
    if (h->q->conv.b) {
        hint_try_fault(h, F(.bias = -1), "bias missing");
        hint_try_fault(h, F(.bias = 1), "bias added twice");
    }
    padding(h);
    edges(h);
    conv_frames(h);
    taps(h);
    conv_missing(h);
}
