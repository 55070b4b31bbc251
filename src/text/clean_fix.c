/* clean_fix.c: ftfy.fix_text with its default options.
 *
 * Source  rspeer/python-ftfy: ftfy/__init__.py, fixes.py, chardata.py
 * SPDX-License-Identifier: Apache-2.0
 *
 * The text is cut after each line feed; every segment goes through the list
 * of fixes below until a whole round changes nothing. A reference may stand for
 * a part of another one ("&amp;amp;lt;"), so there may be as many rounds as
 * there are references. No two of them share a character, and a decoded one
 * takes none from another: the order of decoding does not matter. From the
 * second round on all are decoded in one pass, and the time is linear.
 * Differs from Source: `fix_encoding` (repair of wrongly decoded text) is left
 * out; surrogates cannot occur in valid UTF-8.
 * Next    clean_html.c */
#include <string.h>

#include "text/clean.h"
#include "text/tables.h"

#define SEGMENT_LIMIT 1000000 /* code points; ftfy's max_decode_length       */

static void clean_fix_copy(clean_text *out, const clean_text *in)
{
    for (int64_t i = 0; i < in->n; i++) clean_put(out, in->v[i]);
}

/* U+0080-009F as Windows-1252 has them; its five gaps stay what they are. */
static uint32_t fix_c1(uint32_t c)
{
    static const uint16_t cp1252[32] = {
        0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021,
        0x2c6,  0x2030, 0x160,  0x2039, 0x152,  0x8d,   0x17d,  0x8f,
        0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
        0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};
    return c >= 0x80 && c <= 0x9f ? cp1252[c - 0x80] : c;
}

const uint32_t *clean_ligature(uint32_t c)
{
    static const struct {
        uint32_t from, to[4];
    } table[] = {
        {0x132, {'I', 'J'}},      {0x133, {'i', 'j'}},
        {0x149, {0x2bc, 'n'}},    {0x1c4, {'D', 0x17d}},
        {0x1c5, {'D', 0x17e}},    {0x1c6, {'d', 0x17e}},
        {0x1c7, {'L', 'J'}},      {0x1c8, {'L', 'j'}},
        {0x1c9, {'l', 'j'}},      {0x1ca, {'N', 'J'}},
        {0x1cb, {'N', 'j'}},      {0x1cc, {'n', 'j'}},
        {0x1f1, {'D', 'Z'}},      {0x1f2, {'D', 'z'}},
        {0x1f3, {'d', 'z'}},      {0xfb00, {'f', 'f'}},
        {0xfb01, {'f', 'i'}},     {0xfb02, {'f', 'l'}},
        {0xfb03, {'f', 'f', 'i'}}, {0xfb04, {'f', 'f', 'l'}},
        {0xfb05, {0x17f, 't'}},   {0xfb06, {'s', 't'}}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].from == c) return table[i].to;
    return NULL;
}

/* Half- and full-width forms. U+FFE3 becomes two code points. */
static void put_width(clean_text *out, uint32_t c)
{
    if (c == 0x3000) c = ' ';
    uint32_t narrow = c;
    if (c >= 0xff01 && c < 0xff5f) narrow = c - 0xff01 + '!';
    else if (c >= 0xff5f && c <= 0xffef) {
        const char *p = uni_width[0];
        narrow = 0;
        for (uint32_t i = 0xff5f; i <= c; i++) narrow += table_change(&p);
    }
    clean_put(out, narrow);
    if (c == 0xffe3) clean_put(out, 0x304);
}

static uint32_t uncurl_quote(uint32_t c)
{
    if (c >= 0x201c && c <= 0x201f) return '"';
    if (c == 0x2bc || (c >= 0x2018 && c <= 0x201b)) return '\'';
    return c;
}

/* Fixes that look at one code point: C1 controls, ligatures, width, quotes. */
static void put_fixed(clean_text *out, uint32_t c)
{
    const int64_t first = out->n;
    c = fix_c1(c);
    const uint32_t *l = clean_ligature(c);
    /* U+0000 is removed later; keep it as an ordinary value here. */
    if (!l) put_width(out, c);
    for (; l && *l; l++) put_width(out, *l);
    for (int64_t i = first; i < out->n; i++)
        out->v[i] = uncurl_quote(out->v[i]);
}

static void fix_characters(clean_text *out, const clean_text *in)
{
    for (int64_t i = 0; i < in->n; i++) put_fixed(out, in->v[i]);
}

/* CR LF, CR, U+2028, U+2029, U+0085 -> LF. */
static void fix_line_breaks(clean_text *out, const clean_text *in)
{
    for (int64_t i = 0; i < in->n; i++) {
        uint32_t c = in->v[i];
        if (c == '\r' && i + 1 < in->n && in->v[i + 1] == '\n') continue;
        bool brk = c == '\r' || c == 0x2028 || c == 0x2029 || c == 0x85;
        clean_put(out, brk ? '\n' : c);
    }
}

static bool is_digit(uint32_t c) /* \d of Python: every decimal digit */
{
    uint32_t zero = 0;
    for (const char *p = uni_zeros[0]; *p && zero <= c;) {
        zero += table_next(&p);
        if (c - zero < 10) return true;
    }
    return false;
}

/* Length of `ESC [ (digit or ;)* letter` at position i, 0 if it is not one. */
static int64_t escape_length(const clean_text *t, int64_t i)
{
    int64_t j = i + 2;
    if (t->v[i] != 0x1b || j > t->n || t->v[i + 1] != '[') return 0;
    while (j < t->n && (t->v[j] == ';' || is_digit(t->v[j]))) j++;
    if (j == t->n) return 0;
    uint32_t c = t->v[j] | 0x20;
    return c >= 'a' && c <= 'z' ? j + 1 - i : 0;
}

static void remove_terminal_escapes(clean_text *out, const clean_text *in)
{
    for (int64_t i = 0; i < in->n;) {
        int64_t len = escape_length(in, i);
        if (len == 0) clean_put(out, in->v[i]);
        i += len ? len : 1;
    }
}

/* Tab, line and form feed, carriage return, joiners and bidi marks stay. */
static bool is_removed(uint32_t c)
{
    return c <= 0x8 || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f
           || (c >= 0x206a && c <= 0x206f) || c == 0xfeff
           || (c >= 0xfff9 && c <= 0xfffc);
}

static void remove_controls(clean_text *out, const clean_text *in)
{
    for (int64_t i = 0; i < in->n; i++)
        if (!is_removed(in->v[i])) clean_put(out, in->v[i]);
}

/* ASCII that normalisation makes of other characters: part of a reference. */
static uint32_t to_ascii(uint32_t c)
{
    return c == 0x37e ? ';' : c == 0x212a ? 'K' : c;
}

/* What a reference stands for, as a whole round would leave it. */
static void put_decoded(clean_text *out, const uint32_t *cp, int n)
{
    for (int i = 0; i < n; i++) {
        const int64_t first = out->n;
        put_fixed(out, to_ascii(cp[i]));
        if (out->n == first + 1 && is_removed(out->v[first])) out->n = first;
    }
}

/* References, those too that only appear when others are decoded. */
static void decode_all(clean_text *out, const clean_text *in)
{
    for (int64_t i = 0; i < in->n; i++) {
        int64_t length;
        int n;
        uint32_t cp[3];
        clean_put(out, in->v[i]);
        while (out->n && out->v[out->n - 1] == ';'
               && clean_last_reference(out, &length, &n, cp)) {
            out->n -= length;
            if (!n) break;
            put_decoded(out, cp, n);
        }
    }
}

/* One round: t -> t, through the equally large array u. */
static void fix_round(tt_ctx *ctx, const clean_tables *tables, clean_text *t,
                      clean_text *u, bool entities, bool first)
{
    u->n = 0;
    if (!entities) clean_fix_copy(u, t);
    else if (first) clean_entities(u, t);
    else decode_all(u, t);
    t->n = 0;
    fix_characters(t, u);
    u->n = 0;
    fix_line_breaks(u, t);
    t->n = 0;
    remove_terminal_escapes(t, u);
    u->n = 0;
    remove_controls(u, t);
    t->n = 0;
    clean_nfc(ctx, tables, t, u);
}

/* Append the fixed segment to out. */
static void fix_segment(tt_ctx *ctx, const clean_tables *tables,
                        clean_text *out, const uint32_t *v, int64_t n,
                        bool entities)
{
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    int64_t cap = CLEAN_GROWTH * n + 4;
    clean_text t[3];
    for (int i = 0; i < 3; i++) {
        t[i].v = tt_alloc(ctx, &ctx->scratch, cap, sizeof(uint32_t),
                          "prompt cleaning");
        t[i].n = 0;
        t[i].cap = cap;
    }
    if (ctx->status) return;
    for (int64_t i = 0; i < n; i++) clean_put(&t[0], v[i]);
    bool changed = true;
    for (int round = 0; changed && !tt_check_interrupt(ctx); round++) {
        t[1].n = 0;
        clean_fix_copy(&t[1], &t[0]);
        fix_round(ctx, tables, &t[0], &t[2], entities, round == 0);
        if (ctx->status) return;
        changed = t[0].n != t[1].n
                  || memcmp(t[0].v, t[1].v,
                            (size_t)t[0].n * sizeof t[0].v[0]) != 0;
    }
    clean_fix_copy(out, &t[0]);
    tt_arena_reset(&ctx->scratch, mark);
}

void clean_fix_text(tt_ctx *ctx, clean_text *out, const clean_text *in)
{
    bool entities = true; /* until the first '<': then it may be HTML */
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const clean_tables *tables = clean_tables_read(ctx);
    out->n = 0;
    for (int64_t first = 0, end; first < in->n && tables; first = end) {
        end = first;
        while (end < in->n && end - first < SEGMENT_LIMIT) {
            if (in->v[end] == '<') entities = false;
            if (in->v[end++] == '\n') break;
        }
        fix_segment(ctx, tables, out, in->v + first, end - first, entities);
        if (ctx->status) return;
    }
    tt_arena_reset(&ctx->scratch, mark);
}
