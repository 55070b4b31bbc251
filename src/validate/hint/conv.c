/* conv.c: how a causal convolution goes wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/hint/hint.h"

#include <stdio.h>
#include <string.h>

#define F(...) &(conv_fault){__VA_ARGS__}

static void padding(hint *h)
{
    const tt_conv_args *a = &h->q->conv;
    for (int r = 1; r >= -1; r--)
        for (int s = 1; s >= -1; s--)
            if (r || s)
                hint_try_fault(h, F(.top = r, .left = s), "padding off by one: "
                               "top %+d, left %+d%s", r, s, a->stride > 1
                               ? " (phase of the stride)" : a->up > 1
                               ? " (phase of the upsampling)" : "");
    const int up = a->up == 2 ? 1 : 2, stride = a->stride == 2 ? 1 : 2;
    hint_try_fault(h, F(.up = up), up == 1 ? "upsampling left out"
                                           : "input upsampled though it is "
                                             "not");
    hint_try_fault(h, F(.stride = stride), "stride %d instead of %d", stride,
                   a->stride);
    const hint_trial list[] = {
        {a->Hi != a->Wi, F(.sides = true),
         "height and width of the input exchanged"},
        {true, F(.picture = EDGE_REPEATED),
         "edges repeat the image where zeros belong"},
        {true, F(.picture = EDGE_REFLECTED),
         "edges reflect the image where zeros belong"},
        {a->up == 2, F(.picture = BILINEAR),
         "bilinear upsampling where nearest belongs"},
        {a->up == 2, F(.picture = BILINEAR_CORNERS),
         "bilinear upsampling with aligned corners where nearest belongs"},
    };
    HINT_TRY_EACH(h, list);
}

/* Any frame, or none, in any place of the window: fewest changes first. */
static void conv_frames(hint *h)
{
    const int kt = h->q->conv.kt;
    int64_t all = 1;
    if (kt < 2 || kt > 3) return;
    for (int i = 0; i < kt; i++) all *= kt + 1;
    for (int64_t k = 0; k < all * kt; k++) {
        int from[3], changed = 0;
        char what[32] = "";
        int64_t rest = k % all;
        for (int i = 0; i < kt; i++, rest /= kt + 1) {
            from[i] = (int)(rest % (kt + 1)) - 1;
            changed += from[i] != i;
            snprintf(what + strlen(what), sizeof what - strlen(what),
                     from[i] < 0 ? "%szeros" : "%s%d", i ? ", " : "", from[i]);
        }
        if (changed == k / all + 1)
            hint_try_fault(h, F(.frame = from), "frames of the window are %s "
                           "where %s belong", what,
                           kt > 2 ? "0, 1, 2" : "0, 1");
    }
    hint_try_fault(h, F(.first = true), "the first frame repeated where zeros "
                   "belong");
}

static void taps(hint *h)
{
    static const char *const what[TAP_ORDERS] = {
        "", "kernel flipped (convolution instead of correlation)",
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
    int64_t part[PARTS_MOST];
    const int n = hint_parts(C, part);
    for (int k = 0; k < n; k++)
        hint_try_fault(h, F(.drop = part[k]), "the last %lld of %lld input "
                       "channels are dropped", (long long)part[k],
                       (long long)C);
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
    conv_frames(h);
    taps(h);
    conv_missing(h);
}
