/* nfc.c: Unicode normalisation form C.
 *
 * Source  Unicode Standard 3.11 (D108-D117), UAX #15; Hangul: 3.12
 * SPDX-License-Identifier: Apache-2.0
 *
 * Three passes: decompose canonically, order marks by combining class (stable
 * inside each run), compose every pair that is a primary composite. Text
 * below U+0300 is in form C already and is copied. */
#include <string.h>

#include "text/clean.h"

/* Hangul syllables are arithmetic: L + V + T. */
enum {
    S_BASE = 0xac00, L_BASE = 0x1100, V_BASE = 0x1161, T_BASE = 0x11a7,
    L_COUNT = 19, V_COUNT = 21, T_COUNT = 28, S_COUNT = 11172
};

static int class_of(uint32_t c)
{
    int lo = 0, hi = uni_classes_count;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (uni_classes[mid].last < c) lo = mid + 1;
        else hi = mid;
    }
    return lo < uni_classes_count && uni_classes[lo].first <= c
               ? uni_classes[lo].value : 0;
}

static const uni_triple *decomposition_of(uint32_t c)
{
    int lo = 0, hi = uni_decompositions_count;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (uni_decompositions[mid].a < c) lo = mid + 1;
        else hi = mid;
    }
    return lo < uni_decompositions_count && uni_decompositions[lo].a == c
               ? &uni_decompositions[lo] : NULL;
}

static void decompose(clean_text *out, uint32_t c)
{
    if (c - S_BASE < S_COUNT) {
        uint32_t s = c - S_BASE, t = s % T_COUNT;
        clean_put(out, L_BASE + s / (V_COUNT * T_COUNT));
        clean_put(out, V_BASE + s / T_COUNT % V_COUNT);
        if (t) clean_put(out, T_BASE + t);
        return;
    }
    const uni_triple *d = decomposition_of(c);
    if (!d) {
        clean_put(out, c);
        return;
    }
    decompose(out, d->b); /* a few levels deep at most */
    if (d->c) clean_put(out, d->c); /* second parts do not decompose further */
}

/* Merge sort of marks by class: v[0..n) through tmp[0..n). */
static void sort_marks(uint32_t *v, uint32_t *tmp, int64_t n)
{
    if (n < 2) return;
    int64_t m = n / 2, i = 0, j = m, k = 0;
    sort_marks(v, tmp, m);
    sort_marks(v + m, tmp, n - m);
    while (i < m && j < n)
        tmp[k++] = class_of(v[j]) < class_of(v[i]) ? v[j++] : v[i++];
    while (i < m) tmp[k++] = v[i++];
    while (j < n) tmp[k++] = v[j++];
    memcpy(v, tmp, (size_t)n * sizeof v[0]);
}

static void order_marks(clean_text *t, uint32_t *tmp)
{
    for (int64_t i = 0; i < t->n;) {
        int64_t j = i;
        while (j < t->n && class_of(t->v[j]) != 0) j++;
        sort_marks(t->v + i, tmp, j - i);
        i = j > i ? j : i + 1;
    }
}

/* The composite of a and b, 0 when there is none. */
static uint32_t composite(uint32_t a, uint32_t b)
{
    if (a - L_BASE < L_COUNT && b - V_BASE < V_COUNT)
        return S_BASE + ((a - L_BASE) * V_COUNT + (b - V_BASE)) * T_COUNT;
    if (a - S_BASE < S_COUNT && (a - S_BASE) % T_COUNT == 0
        && b - (T_BASE + 1) < T_COUNT - 1)
        return a + (b - T_BASE);
    int lo = 0, hi = uni_compositions_count;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        const uni_triple *p = &uni_compositions[mid];
        if (p->a < a || (p->a == a && p->b < b)) lo = mid + 1;
        else hi = mid;
    }
    const uni_triple *p = &uni_compositions[lo];
    return lo < uni_compositions_count && p->a == a && p->b == b ? p->c : 0;
}

/* Compose t in place: each character joins the last starter unless something
 * of the same or a higher class (or any other starter) stands between. */
static void compose(clean_text *t)
{
    int64_t n = 0, starter = -1;
    int last = 0; /* class of the character before, behind the starter */
    for (int64_t i = 0; i < t->n; i++) {
        uint32_t c = t->v[i];
        int cls = class_of(c);
        bool next_to = starter >= 0 && n == starter + 1;
        if (starter >= 0 && (next_to || (last != 0 && last < cls))) {
            uint32_t whole = composite(t->v[starter], c);
            if (whole) {
                t->v[starter] = whole;
                continue;
            }
        }
        if (cls == 0) starter = n;
        last = cls;
        t->v[n++] = c;
    }
    t->n = n;
}

void clean_nfc(tt_ctx *ctx, clean_text *out, const clean_text *in)
{
    bool plain = true;
    out->n = 0;
    for (int64_t i = 0; i < in->n; i++)
        if (in->v[i] >= 0x300) plain = false;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    /* No canonical decomposition is longer than four code points. */
    int64_t cap = plain ? 0 : 4 * in->n;
    clean_text d = {tt_alloc(ctx, &ctx->scratch, cap, sizeof(uint32_t), "NFC"),
                    0, cap};
    uint32_t *tmp = tt_alloc(ctx, &ctx->scratch, cap, sizeof(uint32_t), "NFC");
    if (ctx->status) return;
    for (int64_t i = 0; i < in->n && !plain; i++) decompose(&d, in->v[i]);
    order_marks(&d, tmp);
    compose(&d);
    const clean_text *from = plain ? in : &d;
    for (int64_t i = 0; i < from->n; i++) clean_put(out, from->v[i]);
    tt_arena_reset(&ctx->scratch, mark);
}
