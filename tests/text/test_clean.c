/* test_clean.c: prompt cleaning against ftfy + html.unescape.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  ref_data/t5_tokenizer/clean.tsv. Class mojibake needs ftfy's
 *                encoding repair, which is left out: those rows are counted,
 *                not checked, but must still be accepted.
 * Properties     cleaning is idempotent on every row without '&';
 *                malformed text is refused. */
#include "tests/text/tsv.h"

#include <time.h>

#include "text/text.h"

static double test_cpu(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Not in the vectors: corners of the two entity readers, from Python. */
static void check_corners(tt_ctx *ctx)
{
    static const char *const pair[][2] = {
        {"&#59;lt;", ";lt;"},          {"&CounterClockwiseContourIntegral;x",
                                        "\xe2\x88\xb3x"},
        {"&NTILDE;", "\xc3\x91"},      {"<&NTILDE;", "<&NTILDE;"},
        {"&ampamp;amp;", "&amp;"},     {"&LTCC;", "<CC;"},
        {"&FFLIG;", "FF"},             {"&#x1F600", "\xf0\x9f\x98\x80"},
        {"&#99999999999999999999;", "\xef\xbf\xbd"}, {"&amp", "&"},
        {"&", "&"}, {"&#", "&#"}, {"&#x", "&#x"}, {"&;", "&;"},
        {"\x1b[", "["}, {"\x1b[3", "[3"}, {"\xef\xbf\xa3", "\xcc\x84"},
        {"\x1b[\xd9\xa3m.", "."},
        {"&hellip x &apos", "&hellip x &apos"},
        /* a second mark of the same class is blocked from the letter */
        {"a\xcc\x90\xcc\x81", "a\xcc\x90\xcc\x81"},
        {"a\xcc\x95\xcc\x80", "\xc3\xa0\xcc\x95"}};
    for (size_t i = 0; i < sizeof pair / sizeof pair[0]; i++) {
        char *out;
        size_t n;
        if (!expect_ok(tt_text_clean(ctx, &ctx->scratch, &out, &n, pair[i][0],
                                     strlen(pair[i][0])), pair[i][0]))
            continue;
        expect(strcmp(out, pair[i][1]) == 0, "clean(%s) gives '%s', not '%s'",
               pair[i][0], out, pair[i][1]);
    }
}

/* References inside references: `head`, then n times `part`. What a program
 * that begins anew with each gives in hours is there at once. */
static void check_nested(tt_ctx *ctx, const char *head, const char *part,
                         const char *tail, const char *want)
{
    enum { MOST = 100000, SECONDS = 20 };
    static char text[MOST + 100];
    size_t at = strlen(head), m = strlen(part), n;
    char *out;
    memcpy(text, head, at);
    for (; at + m <= MOST; at += m) memcpy(text + at, part, m);
    memcpy(text + at, tail, strlen(tail) + 1);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const double begin = test_cpu();
    if (expect_ok(tt_text_clean(ctx, &ctx->scratch, &out, &n, text,
                                strlen(text)), part))
        expect(!strcmp(out, want), "%s%s... gives '%.40s', not '%s'", head,
               part, out, want);
    expect(test_cpu() - begin < SECONDS, "%s%s...: %.1f s of CPU", head, part,
           test_cpu() - begin);
    tt_arena_reset(&ctx->scratch, mark);
}

int main(void)
{
    tt_ctx *ctx = test_begin("text/clean");
    check_nested(ctx, "&", "amp;", "", "&");
    check_nested(ctx, "&", "#38;", "lt;b", "<b");
    check_nested(ctx, "&", "#x26;", "quot;", "\"");
    check_nested(ctx, "&", "AMP;", "eacute;", "\xc3\xa9");
    check_nested(ctx, "&", "#xFF06;", "gt;", ">");       /* full-width & */
    check_nested(ctx, "x&", "amp;#38;", " y", "x& y");
    check_nested(ctx, "\xef\xbc\x86", "amp;", "amp;", "&");
    tsv t;
    int skipped = 0;
    if (!tsv_open(&t, ref_path("t5_tokenizer/clean.tsv"))) return test_end();
    while (tsv_next(&t)) {
        size_t raw = tsv_hex(t.col[2]), want = tsv_hex(t.col[3]), n;
        tt_arena_mark mark = tt_arena_here(&ctx->scratch);
        char *out, *again;
        size_t nagain;
        if (!expect_ok(tt_text_clean(ctx, &ctx->scratch, &out, &n, t.col[2],
                                     raw), t.col[0]))
            continue;
        if (strcmp(t.col[1], "mojibake") == 0) {
            skipped++;
            continue;
        }
        expect(n == want && memcmp(out, t.col[3], n) == 0,
               "clean.tsv row %s (%s): got '%.*s', expected '%.*s'", t.col[0],
               t.col[1], (int)n, out, (int)want, t.col[3]);
        if (!memchr(t.col[2], '&', raw)
            && expect_ok(tt_text_clean(ctx, &ctx->scratch, &again, &nagain, out,
                                       n), t.col[0]))
            expect(nagain == n && memcmp(out, again, n) == 0,
                   "clean.tsv row %s: cleaning twice differs", t.col[0]);
        tt_arena_reset(&ctx->scratch, mark);
    }
    printf("%d rows of class mojibake not judged (encoding repair is left "
           "out)\n", skipped);
    expect(skipped == 6, "clean.tsv has %d mojibake rows, not 6", skipped);
    check_corners(ctx);

    char *out;
    size_t n;
    expect_status(tt_text_clean(ctx, &ctx->scratch, &out, &n, "a\xff", 2),
                  TT_EINVAL, "0xff is not UTF-8");
    expect_status(tt_text_clean(ctx, &ctx->scratch, &out, &n, "\xed\xa0\x80",
                                3), TT_EINVAL, "a surrogate is not UTF-8");
    return test_end();
}
