/* test_manifest.c: tables of digests that come from anywhere.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is read gets to a terminal, so nothing but plain words is accepted; a
 * refusal names the line. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/folder.h"
#include "io/io.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
#define SHA HEX "f"                    /* 64 digits; HEX: 63                  */

static tt_ctx *ctx;

static void put(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    expect(f && fwrite(text, 1, n, f) == n && !fclose(f), "%s", path);
}

/* Rows stay in the order of the file, and are found by all three words. */
static void test_rows(void)
{
    static const char text[] = "# class case tensor sha256\n\n"
        "f32 b y " SHA "\r\n" "f32 a z " SHA "\n" "f32 a y " SHA "\n"
        "bf16 a z " SHA;
    static const char *const order[] = {"b", "a", "a", "a"};
    tt_manifest l = {0};
    put(at("rows"), text, sizeof text - 1);
    expect_ok(tt_manifest_read(ctx, &l, at("rows")), "rows");
    expect(l.n == 4, "%" PRId64 " rows", l.n);
    for (int64_t i = 0; i < l.n && i < 4; i++)
        expect(!strcmp(l.row[i].name, order[i]) && l.row[i].at == i
               && !strcmp(l.row[i].sha, SHA), "row %" PRId64, i);
    expect(tt_manifest_find(&l, "f32", "a", "y") == &l.row[2]
           && tt_manifest_find(&l, "bf16", "a", "z") == &l.row[3]
           && !tt_manifest_find(&l, "bf16", "a", "y"), "found by three words");
    expect(!strcmp(tt_manifest_class("amx"), "bf16")
           && !strcmp(tt_manifest_class("sm90"), "sm90")
           && !strcmp(tt_manifest_class("sm90.2"), "sm90.2"),
           "a first version stays one");
    tt_manifest_free(&l);
    expect_ok(tt_manifest_read(ctx, &l, at("absent")), "no file");
    expect(l.n == 0, "no rows of no file");
}

static void refuse(const char *text, size_t n, const char *says)
{
    tt_manifest l = {0};
    put(at("bad"), text, n);
    const tt_status s = tt_manifest_read(ctx, &l, at("bad"));
    expect(strstr(tt_message(ctx), says) != NULL, "\"%s\" expected: %s", says,
           tt_message(ctx));
    expect_status(s, TT_EFORMAT, says);
    tt_manifest_free(&l);
}

static void test_refusals(void)
{
#define REFUSE(text, says) refuse(text, sizeof(text) - 1, says)
    REFUSE("a b c " HEX "\n", "line 1: expected a sha256");
    REFUSE("a b c " SHA "0\n", "line 1: expected a sha256");
    REFUSE("a b c " HEX "\x1b\n", "line 1: expected a sha256");
    REFUSE("#\na b c \x1b[31m" "0123456789012345678901234567890123456789"
           "0123456789012345678\n", "line 2: expected a sha256");
    REFUSE("a b c " HEX "F\n", "line 1: expected a sha256");
    REFUSE("a b c " HEX "g\n", "line 1: expected a sha256");
    REFUSE("a b " SHA "\n", "line 1: expected \"class case");
    REFUSE("a b c " SHA " d\n", "line 1: expected \"class case");
    REFUSE("a b c " SHA "\na\x1b[2J b c " SHA "\n", "line 2: expected \"class");
    REFUSE("a b\x7f c " SHA "\n", "line 1: expected \"class case");
    REFUSE("a b c\xc2\x9b" "31m " SHA "\n", "line 1: expected \"class case");
    REFUSE("#\n#\na b\0 c " SHA "\n", "line 3: longer than");
    REFUSE("\0\na b c " SHA "\n", "line 1: longer than");
    /* the later line, and of two the one that comes first */
    REFUSE("b b c " SHA "\n#\na b c " SHA "\nd b c " SHA "\nd b c " SHA "\n"
           "a b c " SHA "\n", "line 5: d b c is listed twice");
    char line[2000];
    memset(line, '#', sizeof line);
    refuse(line, sizeof line, "line 1: longer than");
}

/* A table of any length is read in no time, and not without end. */
static void test_long(void)
{
    enum { ROWS = 100000, SECONDS = 5, MEGABYTE = 1 << 20 };
    tt_manifest l = {0};
    FILE *f = fopen(at("long"), "w");
    if (!expect(f != NULL, "a long table")) return;
    for (int i = 0; i < ROWS; i++)
        fprintf(f, "a b %d " SHA "\n", i * 7919 % ROWS);
    expect(!fclose(f), "a long table");
    const clock_t from = clock();
    expect_ok(tt_manifest_read(ctx, &l, at("long")), "a long table");
    const double used = (double)(clock() - from) / CLOCKS_PER_SEC;
    expect(l.n == ROWS && used < SECONDS, "%d rows: %.1f s", ROWS, used);
    tt_manifest_free(&l);

    static char comment[MEGABYTE];
    for (int i = 0; i < MEGABYTE; i++) comment[i] = i % 64 == 63 ? '\n' : '#';
    f = fopen(at("long"), "w");
    if (!expect(f != NULL, "a file of 64 MB")) return;
    for (int i = 0; i < 64; i++) fwrite(comment, 1, sizeof comment, f);
    fflush(f);
    expect_ok(tt_manifest_read(ctx, &l, at("long")), "a file of 64 MB");
    fputs("#\n", f);
    expect(!fclose(f), "a line more");
    expect_status(tt_manifest_read(ctx, &l, at("long")), TT_EFORMAT,
                  "more than 64 MB");
    tt_manifest_free(&l);
}

int main(void)
{
    ctx = test_begin("io/manifest");
    if (!folder_make()) return test_end();
    test_rows();
    test_refusals();
    test_long();
    folder_remove();
    return test_end();
}
