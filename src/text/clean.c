/* clean.c: what Wan does to a prompt before it is tokenized.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  wan/modules/tokenizers.py: basic_clean, then whitespace_clean
 *           text = ftfy.fix_text(text)
 *           text = html.unescape(html.unescape(text)); strip
 *           every run of white space -> one space; strip
 * Differs from Source: ftfy's encoding repair is left out (tether/text.h).
 * Next    clean_fix.c */
#include "text/clean.h"

#include "text/text.h"

/* Unicode White_Space: \s of Python's `regex` module. */
static bool is_white_space(uint32_t c)
{
    return (c >= 0x9 && c <= 0xd) || c == 0x20 || c == 0x85 || c == 0xa0
           || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028
           || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* str.strip of Python, which also takes the four information separators. */
static void clean_strip(clean_text *t)
{
    int64_t first = 0, end = t->n;
    while (first < end && (is_white_space(t->v[first])
                           || (t->v[first] >= 0x1c && t->v[first] <= 0x1f)))
        first++;
    while (end > first && (is_white_space(t->v[end - 1])
                           || (t->v[end - 1] >= 0x1c && t->v[end - 1] <= 0x1f)))
        end--;
    for (int64_t i = first; i < end; i++) t->v[i - first] = t->v[i];
    t->n = end - first;
}

/* Every run of white space becomes one space, in place. */
static void collapse(clean_text *t)
{
    int64_t n = 0;
    bool inside = false;
    for (int64_t i = 0; i < t->n; i++) {
        bool space = is_white_space(t->v[i]);
        if (!space) t->v[n++] = t->v[i];
        else if (!inside) t->v[n++] = ' ';
        inside = space;
    }
    t->n = n;
}

void clean_put(clean_text *t, uint32_t cp)
{
    TT_ASSERT(t->n < t->cap);
    t->v[t->n++] = cp;
}

static clean_text text_make(tt_ctx *ctx, int64_t cap)
{
    clean_text t = {tt_alloc(ctx, &ctx->scratch, cap, sizeof(uint32_t),
                             "prompt cleaning"), 0, cap};
    return t;
}

static tt_status check_input(tt_ctx *ctx, const char *text, size_t n)
{
    if (n > TT_TEXT_LIMIT)
        return tt_fail(ctx, TT_EINVAL,
                       "the text is %zu bytes long; at most %d are accepted",
                       n, TT_TEXT_LIMIT);
    size_t bad = utf8_check((const unsigned char *)text, n);
    if (bad < n)
        return tt_fail(ctx, TT_EINVAL,
                       "the text is not valid UTF-8: byte %zu is 0x%02x; save "
                       "it as UTF-8",
                       bad, (unsigned char)text[bad]);
    return ctx->status;
}

tt_status tt_text_clean(tt_ctx *ctx, tt_arena *a, char **out, size_t *nout,
                        const char *text, size_t n)
{
    *out = NULL;
    *nout = 0;
    TT_TRY(check_input(ctx, text, n));
    int64_t cap = CLEAN_GROWTH * (int64_t)n + 4;
    /* First, so that `a` may be the scratch arena. */
    unsigned char *kept = tt_alloc(ctx, a, 4 * cap, 1, "prompt cleaning");
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    clean_text x = text_make(ctx, cap), y = text_make(ctx, cap);
    if (ctx->status) return ctx->status;

    for (size_t i = 0; i < n;) {
        uint32_t cp = 0;
        i += (size_t)utf8_decode(&cp, (const unsigned char *)text + i, n - i);
        clean_put(&x, cp);
    }
    clean_fix_text(ctx, &y, &x);
    clean_unescape(&x, &y);
    clean_unescape(&y, &x);
    clean_strip(&y);
    collapse(&y);
    clean_strip(&y);

    size_t len = 0;
    for (int64_t i = 0; i < y.n; i++)
        len += (size_t)utf8_encode(kept + len, y.v[i]);
    kept[len] = 0;
    tt_arena_reset(&ctx->scratch, mark);
    *out = (char *)kept;
    *nout = len;
    return ctx->status;
}
