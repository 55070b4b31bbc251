/* json_lex.c: JSON as a sequence of events, strictly RFC 8259.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   `state` is what the grammar allows next: the first value, the first
 *         member or the end of a container, the value after a key, or ','
 *         and the end after a complete value. */
#include "io/json_lex.h"

#include <stdlib.h>
#include <string.h>

#include "io/bytes.h"

static io_lex_event bad(io_lex *l, const char *why)
{
    tt_fail(l->ctx, TT_EFORMAT, "%s: not valid JSON at byte %zu: %s", l->what,
            l->at, why);
    return JSON_ERROR;
}

bool io_lex_begin(io_lex *l, tt_ctx *ctx, tt_arena *arena, const char *what,
                const char *text, size_t n)
{
    memset(l, 0, sizeof *l);
    l->ctx = ctx;
    l->arena = arena;
    l->what = what;
    l->text = text;
    l->n = n;
    l->state = WANT_VALUE;
    if (ctx->status) return false;
    l->at = utf8_check((const uint8_t *)text, n);
    if (l->at < n) {
        bad(l, "malformed UTF-8");
        return false;
    }
    l->at = 0;
    return true;
}

static void skip_space(io_lex *l)
{
    while (l->at < l->n && memchr(" \t\r\n", l->text[l->at], 4)) l->at++;
}

/* ---- strings ------------------------------------------------------------- */

static int hex4(const char *p, size_t n)
{
    int v = 0;
    if (n < 4) return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        if (c >= '0' && c <= '9') v = v * 16 + (c - '0');
        else if (c >= 'a' && c <= 'f') v = v * 16 + (c - 'a' + 10);
        else if (c >= 'A' && c <= 'F') v = v * 16 + (c - 'A' + 10);
        else return -1;
    }
    return v;
}

/* Bytes of the escape that starts at the backslash p, 0 when invalid; the
 * code point goes to *code. */
static size_t escape(const char *p, size_t n, uint32_t *code)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (n < 2) return 0;
    if (p[1] != 'u') {
        const char *at = p[1] ? strchr(from, p[1]) : NULL;
        if (!at) return 0;
        *code = (uint8_t)to[at - from];
        return 2;
    }
    int u = hex4(p + 2, n - 2);
    if (u < 0 || (u >= 0xDC00 && u <= 0xDFFF)) return 0;
    *code = (uint32_t)u;
    if (u < 0xD800 || u > 0xDBFF) return 6;
    if (n < 12 || p[6] != '\\' || p[7] != 'u') return 0;
    int v = hex4(p + 8, n - 8);
    if (v < 0xDC00 || v > 0xDFFF) return 0;
    *code = 0x10000u + ((uint32_t)(u - 0xD800) << 10) + (uint32_t)(v - 0xDC00);
    return 12;
}

size_t io_lex_decode(char *dst, const char *raw, size_t len)
{
    size_t o = 0, i = 0;
    while (i < len) {
        uint32_t code;
        size_t k;
        if (raw[i] != '\\') {
            dst[o++] = raw[i++];
        } else if ((k = escape(raw + i, len - i, &code)) != 0) {
            o += (size_t)utf8_encode((unsigned char *)dst + o, code);
            i += k;
        } else {
            break; /* not reached: io_lex_next has checked the string */
        }
    }
    return o;
}

static bool read_string(io_lex *l)
{
    size_t i = ++l->at; /* after the opening quote */
    l->escaped = false;
    for (;;) {
        uint32_t code;
        if (i >= l->n) return bad(l, "string without end") != JSON_ERROR;
        uint8_t c = (uint8_t)l->text[i];
        if (c == '"') break;
        size_t k = 1;
        if (c == '\\') {
            k = escape(l->text + i, l->n - i, &code);
            l->escaped = true;
        }
        if (c < 0x20 || k == 0) {
            l->at = i;
            return bad(l, k ? "raw control character in a string"
                            : "unknown escape") != JSON_ERROR;
        }
        i += k;
    }
    l->str = l->text + l->at;
    l->len = i - l->at;
    l->at = i + 1;
    return true;
}

/* ---- numbers and words --------------------------------------------------- */

static size_t digits(const io_lex *l, size_t i)
{
    while (i < l->n && l->text[i] >= '0' && l->text[i] <= '9') i++;
    return i;
}

static io_lex_event json_lex_read_number(io_lex *l)
{
    size_t i = l->at, d;
    if (l->text[i] == '-') i++;
    d = digits(l, i);
    if (d == i) return bad(l, "expected a value");
    if (l->text[i] == '0' && d > i + 1) return bad(l, "leading zero");
    i = d;
    if (i < l->n && l->text[i] == '.') {
        d = digits(l, i + 1);
        if (d == i + 1) return bad(l, "no digit after the point");
        i = d;
    }
    if (i < l->n && (l->text[i] == 'e' || l->text[i] == 'E')) {
        i++;
        if (i < l->n && (l->text[i] == '+' || l->text[i] == '-')) i++;
        d = digits(l, i);
        if (d == i) return bad(l, "exponent without digits");
        i = d;
    }
    l->str = l->text + l->at;
    l->len = i - l->at;
    l->at = i;
    return JSON_NUMBER;
}

static io_lex_event json_lex_read_word(io_lex *l)
{
    static const struct { const char *word; io_lex_event e; } words[] = {
        {"true", JSON_TRUE}, {"false", JSON_FALSE}, {"null", JSON_NULL}};
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i].word);
        if (l->n - l->at >= n && !memcmp(l->text + l->at, words[i].word, n)) {
            l->at += n;
            return words[i].e;
        }
    }
    return json_lex_read_number(l);
}

/* ---- keys ---------------------------------------------------------------- */

static int json_lex_key_order(const void *a, const void *b)
{
    const io_lex_key *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int c = n ? memcmp(x->s, y->s, n) : 0;
    return c ? c : (x->n > y->n) - (x->n < y->n);
}

/* The innermost object ends: no two of its keys may be equal. */
static bool keys_unique(io_lex *l)
{
    int64_t n = l->nkeys - l->first_key[l->depth - 1];
    if (n == 0) return true;
    io_lex_key *k = l->key + l->first_key[l->depth - 1];
    if (n > 1) qsort(k, (size_t)n, sizeof *k, json_lex_key_order);
    for (int64_t i = 1; i < n; i++)
        if (json_lex_key_order(&k[i - 1], &k[i]) == 0) {
            char show[IO_SHOW];
            tt_fail(l->ctx, TT_EFORMAT, "%s: JSON key '%s' occurs twice",
                    l->what, io_show(show, k[i].s, k[i].n));
            return false;
        }
    l->nkeys -= n;
    return true;
}

static bool add_key(io_lex *l)
{
    if (l->nkeys == l->cap) {
        int64_t cap = l->cap ? 2 * l->cap : 64;
        io_lex_key *k = tt_alloc(l->ctx, l->arena, cap, sizeof *k, "JSON keys");
        if (!k) return false;
        if (l->nkeys) memcpy(k, l->key, (size_t)l->nkeys * sizeof *k);
        l->key = k;
        l->cap = cap;
    }
    io_lex_key k = {l->str, l->len};
    if (l->escaped) {
        if (!l->pool) {
            l->pool = tt_alloc(l->ctx, l->arena, (int64_t)l->n, 1, "JSON keys");
            if (!l->pool) return false;
        }
        char *to = l->pool + l->pooled;
        k.n = io_lex_decode(to, l->str, l->len);
        k.s = to;
        l->pooled += k.n;
    }
    l->key[l->nkeys++] = k;
    return true;
}

static io_lex_event read_key(io_lex *l)
{
    if (l->at >= l->n || l->text[l->at] != '"') return bad(l, "expected a key");
    if (!read_string(l) || !add_key(l)) return JSON_ERROR;
    skip_space(l);
    if (l->at >= l->n || l->text[l->at] != ':') return bad(l, "expected ':'");
    l->at++;
    l->state = WANT_KEYVALUE;
    return JSON_KEY;
}

/* ---- the machine --------------------------------------------------------- */

static io_lex_event open_container(io_lex *l, bool object)
{
    if (l->depth == JSON_MAX_DEPTH) return bad(l, "nested deeper than 64");
    l->in_object[l->depth] = object;
    l->first_key[l->depth] = l->nkeys;
    l->depth++;
    l->at++;
    l->state = WANT_FIRST;
    return object ? JSON_OBJECT : JSON_ARRAY;
}

static io_lex_event close_container(io_lex *l)
{
    bool object = l->in_object[l->depth - 1];
    l->at++;
    if (object && !keys_unique(l)) return JSON_ERROR;
    l->depth--;
    l->state = WANT_MORE;
    return object ? JSON_OBJECT_END : JSON_ARRAY_END;
}

static io_lex_event read_value(io_lex *l)
{
    if (l->at >= l->n) return bad(l, "unexpected end");
    char c = l->text[l->at];
    if (c == '{' || c == '[') return open_container(l, c == '{');
    l->state = WANT_MORE;
    if (c == '"') return read_string(l) ? JSON_STRING : JSON_ERROR;
    return json_lex_read_word(l);
}

io_lex_event io_lex_next(io_lex *l)
{
    if (l->ctx->status) return JSON_ERROR;
    skip_space(l);
    if (l->state == WANT_VALUE || l->state == WANT_KEYVALUE)
        return read_value(l);
    if (l->depth == 0)
        return l->at == l->n ? JSON_END : bad(l, "text after the value");
    bool object = l->in_object[l->depth - 1];
    if (l->at >= l->n) return bad(l, "unexpected end");
    char c = l->text[l->at];
    if (c == (object ? '}' : ']')) return close_container(l);
    if (l->state == WANT_MORE) {
        if (c != ',') return bad(l, "expected ',' or the end");
        l->at++;
        skip_space(l);
    }
    return object ? read_key(l) : read_value(l);
}

bool io_lex_skip(io_lex *l, io_lex_event e)
{
    int open = 0;
    for (;;) {
        if (e == JSON_OBJECT || e == JSON_ARRAY) open++;
        if (e == JSON_OBJECT_END || e == JSON_ARRAY_END) open--;
        if (e == JSON_ERROR || e == JSON_END) return false;
        if (open == 0 && e != JSON_KEY) return true;
        e = io_lex_next(l);
    }
}
