/* test_json.c: what is JSON and what is not; values; a round of damage.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/harness.h"

static tt_ctx *ctx;

static const char *const good[] = {
    "{}", "[]", " [ ] ", "0", "-0", "-1.5e+3", "1E-2", "true", "null",
    "\"\"", "\"\\u00e9\\ud83d\\ude00\\n\\/\"", "\"\xc3\xa9\"",
    "{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":2}]}", "[1,2,[3]]\r\n\t",
};
static const char *const bad[] = {
    "", " ", "{", "[", "]", "{]", "[1,]", "[,1]", "[1 2]", "{\"a\":1,}",
    "{\"a\"}", "{\"a\" 1}", "{a:1}", "{1:1}", "01", "-", "+1", ".5", "1.",
    "1e", "1e+", "0x1", "NaN", "Infinity", "-Infinity", "nul", "tru", "True",
    "'a'", "\"", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"",
    "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"a\nb\"",
    "\"\x01\"", "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"",
    "\"\xf5\x80\x80\x80\"", "\"\xe2\x82\"", "1 1", "{}{}", "[]//x", "/**/1",
    "{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":2}",
    "[{\"x\":{\"b\":1,\"c\":2,\"b\":3}}]",
};

static bool parses(const char *text, size_t n)
{
    const tt_json *root;
    tt_arena a = {0};
    bool ok = tt_json_parse(ctx, &a, &root, text, n, "test") == TT_OK;
    expect(ok == (root != NULL), "root and status disagree on %s", text);
    tt_clear(ctx);
    tt_arena_free(&a);
    return ok;
}

static void values(void)
{
    static const char text[] =
        "{\"i\":-42,\"big\":9223372036854775807,\"min\":-9223372036854775808,"
        "\"over\":9223372036854775808,\"f\":0.25,\"e\":1e2,\"t\":true,"
        "\"s\":\"a\\u20ac\\tb\",\"z\":\"a\\u0000b\",\"l\":[1,[2,3],{}],"
        "\"n\":null}";
    const tt_json *r;
    tt_arena a = {0};
    expect_ok(tt_json_parse(ctx, &a, &r, text, strlen(text), "t"), "values");
    expect(tt_json_count(r) == 11, "members %lld", (long long)tt_json_count(r));
    expect(tt_json_int(r, "i", 0) == -42, "i");
    expect(tt_json_int(r, "big", 0) == INT64_MAX, "big");
    expect(tt_json_int(r, "min", 0) == INT64_MIN, "min");
    expect(tt_json_int(r, "over", 7) == 7, "over is not an int64");
    expect(tt_json_num(r, "over", 0) == 9223372036854775808.0, "over");
    expect(tt_json_num(r, "f", 0) == 0.25, "f");
    expect(tt_json_int(r, "f", 5) == 5, "f is no integer");
    expect(tt_json_int(r, "e", 5) == 5, "e is not written as an integer");
    expect(tt_json_num(r, "e", 0) == 100, "e");
    expect(tt_json_bool(r, "t", false), "t");
    expect(tt_json_bool(r, "i", true) == true, "i is no bool");
    expect(!strcmp(tt_json_str(r, "s", ""), "a\xe2\x82\xac\tb"), "s");
    const tt_json *z = tt_json_get(r, "z");
    expect(z && z->n == 3 && !memcmp(z->as.str, "a\0b", 4), "z");
    const tt_json *l = tt_json_get(r, "l");
    expect(l && tt_json_count(l) == 3, "l");
    expect(tt_json_whole(tt_json_at(l, 0), 0) == 1, "l[0]");
    expect(tt_json_whole(tt_json_at(tt_json_at(l, 1), 1), 0) == 3, "l[1][1]");
    expect(tt_json_at(l, 2)->kind == TT_JSON_OBJECT, "l[2]");
    expect(!tt_json_at(l, 3) && !tt_json_at(l, -1) && !tt_json_at(r, 0),
           "out of range");
    expect(!tt_json_get(r, "none") && !tt_json_get(l, "i")
               && !tt_json_get(NULL, "i"), "absent");
    expect(tt_json_get(r, "n")->kind == TT_JSON_NULL, "n");
    tt_arena_free(&a);
}

static void nesting(void)
{
    char text[2 * 70 + 1];
    for (int depth = 63; depth <= 66; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        expect(parses(text, 2 * (size_t)depth) == (depth <= 64), "depth %d",
               depth);
    }
}

/* Every prefix and every single-byte change must be survived; a proper prefix
 * of an object is never complete. */
static void damage(void)
{
    static const char text[] =
        "{\"a\":[1,2.5e3,\"x\\u20ac\"],\"b\":{\"c\":null,\"d\":true}}";
    size_t n = strlen(text);
    char copy[sizeof text];
    for (size_t i = 0; i < n; i++)
        expect(!parses(text, i), "prefix of %zu bytes accepted", i);
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < 256; c++) {
            memcpy(copy, text, n);
            copy[i] = (char)c;
            (void)parses(copy, n);
        }
}

/* Editors on Windows put a byte order mark in front. */
static void marks(void)
{
    static const char utf8[] = "\xef\xbb\xbf{\"dim\": 64}";
    static const char twice[] = "\xef\xbb\xbf\xef\xbb\xbf{}";
    static const char utf16[] = "\xff\xfe{\0}\0";
    const tt_json *r;
    tt_arena a = {0};
    expect_ok(tt_json_parse(ctx, &a, &r, utf8, sizeof utf8 - 1, "t"), "mark");
    expect(tt_json_int(r, "dim", 0) == 64, "value after a mark");
    expect(!parses(twice, sizeof twice - 1), "two marks");
    expect(!parses("\xef\xbb\xbf", 3), "a mark alone");
    tt_arena_free(&a);
    expect(tt_json_parse(ctx, &a, &r, utf16, sizeof utf16 - 1, "t")
               == TT_EFORMAT && strstr(tt_message(ctx), "UTF-16"), "UTF-16: %s",
           tt_message(ctx));
    tt_clear(ctx);
    tt_arena_free(&a);
}

int main(void)
{
    ctx = test_begin("io/json");
    marks();
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        expect(parses(good[i], strlen(good[i])), "refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect(!parses(bad[i], strlen(bad[i])), "accepted: %s", bad[i]);
    expect(!parses("\"a\0\"", 4), "raw NUL accepted");
    values();
    nesting();
    damage();
    return test_end();
}
