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

/* Index of the name key[0..len) in a sorted table whose elements start with
 * a name, -1 when absent. */
static int find(const void *table, int count, size_t stride, const char *key,
                size_t len)
{
    int lo = 0, hi = count;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        const char *name;
        memcpy(&name, (const char *)table + (size_t)mid * stride, sizeof name);
        int c = strncmp(name, key, len);
        if (c == 0 && name[len] != 0) c = 1;
        if (c == 0) return mid;
        if (c < 0) lo = mid + 1;
        else hi = mid;
    }
    return -1;
}

static const html5_name *find_name(const char *key, size_t len)
{
    int i = find(html5_names, html5_names_count, sizeof html5_names[0], key,
                 len);
    return i < 0 ? NULL : &html5_names[i];
}

static reference name_reference(const html5_name *e, int64_t length)
{
    reference r = {length, e->cp[1] ? 2 : 1, {e->cp[0], e->cp[1], 0}};
    return r;
}

/* The run of letters and digits behind '&', at most `most`, as ASCII. */
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
    reference none = {0, 0, {0, 0, 0}};
    bool closed;
    char name[NAME_MAX];
    if (n > 1 && v[1] == '#') return read_number(v, n, &closed);
    int64_t len = read_name(name, v, n, NAME_MAX);
    if (len + 1 < n && v[len + 1] == ';' && len > 0) {
        const html5_name *e = find_name(name, (size_t)len);
        if (e) return name_reference(e, len + 2);
    }
    for (; len >= 2; len--) {
        const html5_name *e = find_name(name, (size_t)len);
        if (e && e->bare) return name_reference(e, len + 1);
    }
    return none;
}

/* ftfy at v[0] == '&'. */
static reference ftfy_reference(const uint32_t *v, int64_t n)
{
    reference none = {0, 0, {0, 0, 0}};
    char name[FTFY_MAX + 1];
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
    const html5_name *e = find_name(name, (size_t)len);
    if (e) return name_reference(e, len + 2);
    int i = find(html5_uppers, html5_uppers_count, sizeof html5_uppers[0],
                 name, (size_t)len);
    if (i < 0) return none;
    const uint32_t *cp = html5_uppers[i].cp;
    reference r = {len + 2, cp[2] ? 3 : cp[1] ? 2 : 1, {cp[0], cp[1], cp[2]}};
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
