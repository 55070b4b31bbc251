/* clean_html.c: HTML character references, as two programs read them.
 *
 * Source  Python html.unescape; ftfy fixes.unescape_html
 * SPDX-License-Identifier: Apache-2.0
 *
 *   html.unescape  &name;  the longest known prefix of names that may stand
 *                  without ';', &#n and &#xn with or without ';'
 *   ftfy           only `&#?[0-9A-Za-z]{1,24};`, whole; additionally the
 *                  upper-case form of lower-case names (&EACUTE;)
 * Differs from Source: digits past any code point give U+FFFD however many
 * they are (Python gives up beyond 4300).
 * Next    nfc.c */
#include <string.h>

#include "text/clean.h"
#include "text/tables.h"

#define NAME_MAX 32  /* html.unescape looks at no more                        */
#define FTFY_MAX 24

/* What one reference stands for. */
typedef struct reference {
    int64_t length;      /* code points of the input it takes; 0: none here   */
    int n;               /* code points it becomes                            */
    uint32_t cp[3];
} reference;

static bool is_alnum(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z')
           || (c >= 'a' && c <= 'z');
}

static int digit_of(uint32_t c)
{
    if (c >= '0' && c <= '9') return (int)(c - '0');
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? (int)(c - 'a' + 10) : 16;
}

/* The code point HTML assigns to a number; false when it is nothing. */
static bool numeric_value(uint32_t *cp, uint32_t num)
{
    static const uint16_t c1[32] = { /* Windows-1252 */
        0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021,
        0x2c6,  0x2030, 0x160,  0x2039, 0x152,  0x8d,   0x17d,  0x8f,
        0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
        0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};
    *cp = num;
    if (num >= 0x80 && num <= 0x9f) *cp = c1[num - 0x80];
    else if (num == 0 || num > 0x10ffff || (num >= 0xd800 && num <= 0xdfff))
        *cp = 0xfffd;
    else if (num <= 0x8 || num == 0xb || (num >= 0xe && num <= 0x1f)
             || num == 0x7f || (num >= 0xfdd0 && num <= 0xfdef)
             || (num & 0xfffe) == 0xfffe)
        return false;
    return true;
}

/* `&#...` at v[0..n); *closed tells whether it ends in ';'. */
static reference read_number(const uint32_t *v, int64_t n, bool *closed)
{
    reference r = {0, 0, {0, 0, 0}};
    uint32_t num = 0;
    int64_t i = 2;
    int base = 10;
    if (n > 2 && (v[2] | 0x20) == 'x') {
        base = 16;
        i = 3;
    }
    int64_t first = i;
    for (; i < n && digit_of(v[i]) < base; i++) {
        num = num * (uint32_t)base + (uint32_t)digit_of(v[i]);
        if (num > 0x110000) num = 0x110000;
    }
    if (i == first) return r;
    *closed = i < n && v[i] == ';';
    r.length = i + *closed;
    r.n = numeric_value(&r.cp[0], num);
    return r;
}

/* The names that a run of letters and digits begins with; without ';'. */
typedef struct names {
    reference whole;  /* the run itself is a name                            */
    reference bare;   /* the longest name that may stand without ';'         */
} names;

/* One name of html5_names at *p: its length, bare in *kind. */
static uint32_t next_name(const char **p, char name[NAME_MAX], uint32_t *kind,
                          uint32_t cp[2])
{
    const uint32_t same = 1 + table_next(p);
    *kind = table_next(p);
    memcpy(name + same, *p, *kind / 4);
    *p += *kind / 4;
    cp[0] = 0x2200 + table_change(p);
    cp[1] = *kind & 1 ? table_next(p) : 0;
    return same + *kind / 4;
}

static names find_names(const char *key, int64_t len)
{
    names found = {{0, 0, {0}}, {0, 0, {0}}};
    if (len == 0 || key[0] <= '9') return found;
    const char *p = html5_names[key[0] < 'a' ? key[0] - 'A' : key[0] - 'G'];
    char name[NAME_MAX] = {key[0]};
    while (*p) {
        uint32_t kind, cp[2];
        const int64_t n = next_name(&p, name, &kind, cp);
        if (n > len || memcmp(name, key, (size_t)n) != 0) continue;
        const reference r = {n + 1, cp[1] ? 2 : 1, {cp[0], cp[1], 0}};
        if (n == len) found.whole = r;
        if ((kind & 2) && n >= 2) found.bare = r;
    }
    return found;
}

/* The run of letters and digits after '&', at most `most`, as ASCII. */
static int64_t read_name(char *name, const uint32_t *v, int64_t n, int most)
{
    int64_t len = 0;
    while (len < most && len + 1 < n && is_alnum(v[len + 1])) {
        name[len] = (char)v[len + 1];
        len++;
    }
    return len;
}

/* html.unescape at v[0] == '&'. Names consist of letters and digits only, so
 * Python's wider pattern adds nothing: what follows a known prefix is kept
 * and holds no '&'. */
static reference html_reference(const uint32_t *v, int64_t n)
{
    bool closed;
    char name[NAME_MAX] = {0};
    if (n > 1 && v[1] == '#') return read_number(v, n, &closed);
    const int64_t len = read_name(name, v, n, NAME_MAX);
    names found = find_names(name, len);
    if (!found.whole.length || len + 1 >= n || v[len + 1] != ';')
        return found.bare;
    found.whole.length++;
    return found.whole;
}

/* Appends the upper case of a code point that a lower-case name stands for. */
static void put_upper(reference *r, uint32_t c)
{
    uint32_t at = 0;
    for (const char *p = html5_upper[0]; *p;) {
        at += table_next(&p);
        const uint32_t change = table_change(&p);
        if (at != c) continue;
        r->cp[r->n++] = c + change;
        return;
    }
    const uint32_t sharp[] = {'s', 's', 0}, itself[] = {c, 0};
    const uint32_t *l = c == 0xdf ? sharp : clean_ligature(c);
    for (l = l ? l : itself; *l; l++)
        r->cp[r->n++] = *l == c || *l > 'z' ? *l : *l - 32;
}

/* ftfy also takes the upper-case form of a lower-case name, where
 * html.unescape makes nothing of it. */
static reference upper_reference(char *name, int64_t len)
{
    reference r = {0, 0, {0, 0, 0}};
    for (int64_t i = 0; i < len; i++) {
        if (name[i] >= 'a') return r;
        if (name[i] >= 'A') name[i] = (char)(name[i] + 32);
    }
    const reference low = find_names(name, len).whole;
    r.length = low.length;
    for (int i = 0; i < low.n; i++) put_upper(&r, low.cp[i]);
    return r;
}

/* ftfy at v[0] == '&'. */
static reference ftfy_reference(const uint32_t *v, int64_t n)
{
    reference none = {0, 0, {0, 0, 0}};
    char name[FTFY_MAX + 1] = {0};
    if (n > 1 && v[1] == '#') {
        bool closed = false;
        reference r = read_number(v, n, &closed);
        if (!closed || r.length > FTFY_MAX + 3) return none;
        /* ftfy takes a ';' in the result for a half-decoded reference. */
        return r.n == 1 && r.cp[0] == ';' ? none : r;
    }
    int64_t len = read_name(name, v, n, FTFY_MAX + 1);
    if (len == 0 || len > FTFY_MAX || len + 1 >= n || v[len + 1] != ';')
        return none;
    const names found = find_names(name, len);
    reference r = found.whole;
    if (!r.length && !found.bare.length) r = upper_reference(name, len);
    if (r.length) r.length++;
    return r;
}

static void replace(clean_text *out, const clean_text *in,
                    reference (*read)(const uint32_t *v, int64_t n))
{
    out->n = 0;
    for (int64_t i = 0; i < in->n;) {
        reference r = {0, 0, {0, 0, 0}};
        if (in->v[i] == '&') r = read(in->v + i, in->n - i);
        if (r.length == 0) clean_put(out, in->v[i]);
        for (int k = 0; k < r.n; k++) clean_put(out, r.cp[k]);
        i += r.length ? r.length : 1;
    }
}

void clean_entities(clean_text *out, const clean_text *in)
{
    replace(out, in, ftfy_reference);
}

bool clean_last_reference(const clean_text *t, int64_t *length, int *n,
                          uint32_t cp[3])
{
    enum { LONGEST = FTFY_MAX + 3 }; /* "&#" and ";" */
    const int64_t end = t->n;
    for (int64_t i = end - 2; i >= 0 && end - i <= LONGEST; i--) {
        if (t->v[i] != '&') continue;
        const reference r = ftfy_reference(t->v + i, end - i);
        if (r.length != end - i) return false;
        *length = r.length;
        *n = r.n;
        memcpy(cp, r.cp, sizeof r.cp);
        return true;
    }
    return false;
}

void clean_unescape(clean_text *out, const clean_text *in)
{
    replace(out, in, html_reference);
}
