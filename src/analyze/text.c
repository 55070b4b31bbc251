/* text.c: text that grows, for the tables that analyze writes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "analyze/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/utf8.h"
#include "io/outfile.h"

void text_begin(text *t, tt_ctx *ctx)
{
    memset(t, 0, sizeof *t);
    t->ctx = ctx;
}

void text_end(text *t)
{
    tt_arena_free(&t->mem);
}

/* Room for n more bytes and the NUL; false after a failure. */
static bool reserve(text *t, size_t n)
{
    if (t->ctx->status) return false;
    if (t->len + n + 1 <= t->cap) return true;
    size_t cap = 2 * (t->len + n) + 4096;
    tt_arena mem = {0};
    char *at = tt_alloc(t->ctx, &mem, (int64_t)cap, 1, "a text file");
    if (!at) return false;
    if (t->len) memcpy(at, t->at, t->len);
    tt_arena_free(&t->mem);
    t->mem = mem;
    t->at = at;
    t->cap = cap;
    return true;
}

void text_bytes(text *t, const void *data, size_t n)
{
    if (!reserve(t, n)) return;
    if (n) memcpy(t->at + t->len, data, n);
    t->len += n;
    t->at[t->len] = 0;
}

void text_add(text *t, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0 && reserve(t, (size_t)n)) {
        vsnprintf(t->at + t->len, (size_t)n + 1, fmt, again);
        t->len += (size_t)n;
    }
    va_end(again);
}

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

void text_json(text *t, const char *s)
{
    if (!s) {
        text_add(t, "null");
        return;
    }
    text_add(t, "\"");
    while (*s) {
        int n = utf8_length(s);
        unsigned char c = (unsigned char)*s;
        if (!n) text_bytes(t, replacement, 3);
        else if (c == '"' || c == '\\') text_add(t, "\\%c", c);
        else if (c < 32) text_add(t, "\\u%04x", c);
        else text_bytes(t, s, (size_t)n);
        s += n ? n : 1;
    }
    text_add(t, "\"");
}

void text_number(text *t, double x, const char *otherwise)
{
    if (!isfinite(x)) text_add(t, "%s", otherwise);
    else if (fabs(x) < 1e15 && x == (double)(int64_t)x)
        text_add(t, "%lld", (long long)x);
    else text_add(t, "%.9g", x);
}

void text_csv(text *t, const char *s)
{
    if (!strpbrk(s, ",\"\r\n")) {
        text_add(t, "%s", s);
        return;
    }
    text_add(t, "\"");
    for (; *s; s++) {
        if (*s == '"') text_add(t, "\"");
        text_bytes(t, s, 1);
    }
    text_add(t, "\"");
}

tt_status text_save(text *t, const char *path)
{
    tt_out out;
    TT_TRY(tt_out_open(t->ctx, &out, path));
    tt_out_write(t->ctx, &out, t->at ? t->at : "", t->len);
    return tt_out_finish(t->ctx, &out);
}
