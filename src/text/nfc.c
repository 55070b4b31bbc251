/* nfc.c: Unicode normalisation form C.
 *
 * Source  Unicode Standard 3.11 (D108-D117), UAX #15; Hangul: 3.12
 * SPDX-License-Identifier: Apache-2.0
 *
 * Three passes: decompose canonically, order marks by combining class (stable
 * inside each run), compose every pair that is a primary composite. Text
 * below U+0300 is in form C already and is copied. */
#include <stdlib.h>
#include <string.h>

#include "text/clean.h"
#include "text/tables.h"

/* Hangul syllables are arithmetic: L + V + T. */
enum {
    S_BASE = 0xac00, L_BASE = 0x1100, V_BASE = 0x1161, T_BASE = 0x11a7,
    L_COUNT = 19, V_COUNT = 21, T_COUNT = 28, S_COUNT = 11172
};

typedef struct pair {
    uint32_t whole, a, b; /* b is 0 where one code point replaces another     */
} pair;

enum { RANGES = 382, PARTS = 2061, PAIRS = 941 };

/* The tables of tables.c, so that they can be searched. */
struct clean_tables {
    struct {
        uint32_t first, last;
        int value;
    } classes[RANGES];
    pair parts[PARTS];  /* by whole                                          */
    pair pairs[PAIRS];  /* those that are composed, by a, b                  */
};

static int by_parts(const void *x, const void *y)
{
    const pair *p = x, *q = y;
    if (p->a != q->a) return p->a < q->a ? -1 : 1;
    return p->b < q->b ? -1 : p->b > q->b;
}

static void read_classes(clean_tables *t)
{
    const char *p = uni_classes[0];
    uint32_t at = 0;
    for (int i = 0; i < RANGES; i++) {
        t->classes[i].first = at += table_next(&p);
        t->classes[i].last = at += table_next(&p);
        t->classes[i].value = (int)table_next(&p);
    }
}

static void read_parts(clean_tables *t)
{
    pair now = {0, 0, 0};
    int n = 0, pairs = 0;
    for (int s = 0; uni_parts[s]; s++)
        for (const char *p = uni_parts[s]; *p; n++) {
            const uint32_t gap = table_next(&p);
            now.whole += 1 + gap / 3;
            now.a += table_change(&p);
            if (gap % 3) now.b += table_change(&p);
            t->parts[n] = now;
            if (gap % 3 == 0) t->parts[n].b = 0;
            if (gap % 3 == 2) t->pairs[pairs++] = now;
        }
    qsort(t->pairs, PAIRS, sizeof t->pairs[0], by_parts);
}

static int nfc_class_of(const clean_tables *t, uint32_t c)
{
    int lo = 0, hi = RANGES;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (t->classes[mid].last < c) lo = mid + 1;
        else hi = mid;
    }
    return lo < RANGES && t->classes[lo].first <= c ? t->classes[lo].value : 0;
}

static int by_whole(const void *x, const void *y)
{
    const pair *p = x, *q = y;
    return p->whole < q->whole ? -1 : p->whole > q->whole;
}

static void decompose(const clean_tables *t, clean_text *out, uint32_t c)
{
    if (c - S_BASE < S_COUNT) {
        uint32_t s = c - S_BASE, tail = s % T_COUNT;
        clean_put(out, L_BASE + s / (V_COUNT * T_COUNT));
        clean_put(out, V_BASE + s / T_COUNT % V_COUNT);
        if (tail) clean_put(out, T_BASE + tail);
        return;
    }
    const pair key = {c, 0, 0};
    const pair *d = bsearch(&key, t->parts, PARTS, sizeof key, by_whole);
    if (!d) {
        clean_put(out, c);
        return;
    }
    decompose(t, out, d->a); /* a few levels deep at most */
    if (d->b) clean_put(out, d->b); /* second parts do not decompose further */
}

/* Merge sort of marks by class: v[0..n) through tmp[0..n). */
static void sort_marks(const clean_tables *t, uint32_t *v, uint32_t *tmp,
                       int64_t n)
{
    if (n < 2) return;
    int64_t m = n / 2, i = 0, j = m, k = 0;
    sort_marks(t, v, tmp, m);
    sort_marks(t, v + m, tmp, n - m);
    while (i < m && j < n)
        tmp[k++] = nfc_class_of(t, v[j]) < nfc_class_of(t, v[i]) ? v[j++]
                                                                 : v[i++];
    while (i < m) tmp[k++] = v[i++];
    while (j < n) tmp[k++] = v[j++];
    memcpy(v, tmp, (size_t)n * sizeof v[0]);
}

static void order_marks(const clean_tables *t, clean_text *d, uint32_t *tmp)
{
    for (int64_t i = 0; i < d->n;) {
        int64_t j = i;
        while (j < d->n && nfc_class_of(t, d->v[j]) != 0) j++;
        sort_marks(t, d->v + i, tmp, j - i);
        i = j > i ? j : i + 1;
    }
}

/* The composite of a and b, 0 when there is none. */
static uint32_t composite(const clean_tables *t, uint32_t a, uint32_t b)
{
    if (a - L_BASE < L_COUNT && b - V_BASE < V_COUNT)
        return S_BASE + ((a - L_BASE) * V_COUNT + (b - V_BASE)) * T_COUNT;
    if (a - S_BASE < S_COUNT && (a - S_BASE) % T_COUNT == 0
        && b - (T_BASE + 1) < T_COUNT - 1)
        return a + (b - T_BASE);
    const pair key = {0, a, b};
    const pair *p = bsearch(&key, t->pairs, PAIRS, sizeof key, by_parts);
    return p ? p->whole : 0;
}

/* Compose d in place: each character joins the last starter unless something
 * of the same or a higher class (or any other starter) stands between. */
static void compose(const clean_tables *t, clean_text *d)
{
    int64_t n = 0, starter = -1;
    int last = 0; /* class of the character before, after the starter */
    for (int64_t i = 0; i < d->n; i++) {
        uint32_t c = d->v[i];
        int cls = nfc_class_of(t, c);
        bool next_to = starter >= 0 && n == starter + 1;
        if (starter >= 0 && (next_to || (last != 0 && last < cls))) {
            uint32_t whole = composite(t, d->v[starter], c);
            if (whole) {
                d->v[starter] = whole;
                continue;
            }
        }
        if (cls == 0) starter = n;
        last = cls;
        d->v[n++] = c;
    }
    d->n = n;
}

const clean_tables *clean_tables_read(tt_ctx *ctx)
{
    clean_tables *t = tt_alloc(ctx, &ctx->scratch, 1, sizeof *t, "NFC");
    if (ctx->status) return NULL;
    read_classes(t);
    read_parts(t);
    return t;
}

void clean_nfc(tt_ctx *ctx, const clean_tables *t, clean_text *out,
               const clean_text *in)
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
    for (int64_t i = 0; i < in->n && !plain; i++) decompose(t, &d, in->v[i]);
    order_marks(t, &d, tmp);
    compose(t, &d);
    const clean_text *from = plain ? in : &d;
    for (int64_t i = 0; i < from->n; i++) clean_put(out, from->v[i]);
    tt_arena_reset(&ctx->scratch, mark);
}
