/* test_safetensors.c: crafted headers and shard indices, one rule each.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/folder.h"

static tt_ctx *ctx;

static void spit(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    fwrite(data, 1, n, f);
    fclose(f);
}

/* u64 length | header | nbytes of data */
static void spit_st(const char *path, const char *header, size_t nbytes)
{
    unsigned char buf[8192] = {0};
    size_t n = strlen(header);
    buf[0] = (unsigned char)(n & 255);
    buf[1] = (unsigned char)(n >> 8);
    memcpy(buf + 8, header, n);
    spit(path, buf, 8 + n + nbytes);
}

#define T(name, dtype, shape, from, to)                                        \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape                  \
    "],\"data_offsets\":[" from "," to "]}"

static const struct { const char *header; size_t nbytes; bool good; } rows[] = {
    {"{}", 0, true},
    {"{}", 1, false},                                   /* data for no one */
    {"{}    ", 0, true},
    {"{}\n", 0, false},                                 /* only spaces pad */
    {" {}", 0, false},
    {"{} x", 0, false},
    {"", 0, false},
    {"{" T("a", "F32", "2", "0", "8") "}", 8, true},
    {"{" T("a", "F32", "2", "0", "8") "}", 9, false},   /* bytes after */
    {"{" T("a", "F32", "2", "0", "8") "}", 7, false},
    {"{" T("a", "F32", "2", "1", "9") "}", 9, false},   /* hole in front */
    {"{" T("a", "U8", "2", "0", "2") "," T("b", "U8", "2", "3", "5") "}", 5,
     false},                                            /* hole between */
    {"{" T("a", "U8", "2", "0", "2") "," T("b", "U8", "2", "1", "3") "}", 3,
     false},                                            /* overlap */
    {"{" T("b", "U8", "2", "2", "4") "," T("a", "U8", "2", "0", "2") "}", 4,
     true},                                             /* any order */
    {"{" T("a", "U8", "2", "0", "2") "," T("b", "U8", "0", "2", "2") ","
     T("c", "U8", "0", "0", "0") "," T("d", "U8", "2", "2", "4") "}", 4,
     true},                                             /* empty anywhere */
    {"{" T("a", "U8", "2", "0", "2") "," T("b", "U8", "0", "1", "1") "}", 2,
     false},                                            /* but a boundary */
    {"{" T("a", "F32", "", "0", "4") "}", 4, true},     /* rank 0 */
    {"{" T("a", "F32", "2", "0", "4") "}", 4, false},
    {"{" T("a", "BF16", "2", "0", "4") "}", 4, true},
    {"{" T("a", "F8_E8M0", "2", "0", "2") "}", 2, false},
    {"{" T("a", "f32", "2", "0", "8") "}", 8, false},
    {"{" T("a", "F32", "2.0", "0", "8") "}", 8, false},
    {"{" T("a", "F32", "-2", "0", "8") "}", 8, false},
    {"{" T("a", "F32", "\"2\"", "0", "8") "}", 8, false},
    {"{" T("a", "F32", "2", "0", "8e0") "}", 8, false},
    {"{" T("a", "F32", "2", "-0", "8") "}", 8, false},
    {"{" T("a", "U8", "1,1,1,1,1,1,1,1", "0", "1") "}", 1, true},
    {"{" T("a", "U8", "1,1,1,1,1,1,1,1,1", "0", "1") "}", 1, false},
    {"{" T("a", "U8", "4294967296,4294967296", "0", "0") "}", 0, false},
    {"{" T("a", "U8", "18446744073709551617", "0", "1") "}", 1, false},
    {"{" T("a", "F64", "2305843009213693952", "0", "0") "}", 0, false},
    {"{" T("a", "U8", "0,4294967296,4294967296", "0", "0") "}", 0, true},
    {"{" T("a", "U8", "4294967296,4294967296,0", "0", "0") "}", 0,
     false},                          /* the reference multiplies in order */
    {"{\"__metadata__\":{\"a\":\"b\"}}", 0, true},
    {"{\"__metadata__\":{\"a\":1}}", 0, false},
    {"{\"__metadata__\":[]}", 0, false},
    {"{\"__metadata__\":null}", 0, true},
    {"{\"__metadata__\":true}", 0, false},
    {"{\"__metadata__\":{\"a\":null}}", 0, false},
    {"{\"\\u005f_metadata__\":{\"a\":1}}", 0, false},   /* decoded first */
    {"{\"a\":1}", 0, false},
    {"{\"a\":{}}", 0, false},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, false},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1,
     false},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1,
     false},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}", 1,
     false},
    {"{\"a\":{\"x\":[{\"dtype\":1}],\"dtype\":\"U8\",\"shape\":[1],"
     "\"data_offsets\":[0,1],\"y\":{\"shape\":[9]}}}", 1, true},
    {"{\"a\":{\"\\u0064type\":\"\\u0055\\u0038\",\"shape\":[1],"
     "\"data_offsets\":[0,1]}}", 1, true},              /* escaped words */
    {"{" T("a", "U8", "1", "0", "1") "," T("\\u0061", "U8", "1", "1", "2") "}",
     2, false},                                         /* equal decoded */
    {"{" T("a\\u0000b", "U8", "1", "0", "1") "}", 1, false},
    {"{" T("", "U8", "1", "0", "1") "}", 1, true},
};

static void headers(void)
{
    const char *path = at("x.safetensors");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tt_file *f;
        spit_st(path, rows[i].header, rows[i].nbytes);
        bool ok = tt_file_open(ctx, &f, path) == TT_OK;
        expect(ok == rows[i].good, "%s: %s + %zu bytes: %s",
               rows[i].good ? "refused" : "accepted", rows[i].header,
               rows[i].nbytes, tt_message(ctx));
        tt_clear(ctx);
        tt_file_close(f);
    }
    unlink(path);
}

/* What is said of a file that ends too early, or too late. */
static void lengths(void)
{
    static const struct { size_t nbytes; const char *word; } of[] = {
        {999, "cut off: 1,067 of 4,068 bytes; fetch it again"},
        {0, "cut off: 68 of 4,068 bytes"},
        {4001, "4069 bytes, but its header describes 4068"}};
    const char *path = at("x.safetensors");
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        tt_file *f;
        spit_st(path, "{" T("a", "F32", "1000", "0", "4000") "}",
                of[i].nbytes);
        expect(tt_file_open(ctx, &f, path) == TT_EFORMAT
               && strstr(tt_message(ctx), of[i].word), "%s: %s", of[i].word,
               tt_message(ctx));
        tt_clear(ctx);
    }
    unlink(path);
}

/* Header lengths whose bytes look like the start of another format. */
static void spelt_lengths(void)
{
    static const size_t length[] = {0x280, 0x380, 0x480, '{', '{' << 8 | '{',
                                    '\n' << 8 | ' ', 'P' | 'K' << 8};
    static unsigned char buf[1 << 16];
    const char *path = at("x.safetensors");
    for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
        tt_file *f;
        memset(buf, ' ', sizeof buf);
        for (int k = 0; k < 8; k++)
            buf[k] = (unsigned char)((uint64_t)length[i] >> 8 * k);
        memcpy(buf + 8, "{}", 2);
        spit(path, buf, 8 + length[i]);
        expect_ok(tt_file_open(ctx, &f, path), "a header length");
        tt_file_close(f);
    }
    unlink(path);
}

#define INDEX(map) "{\"weight_map\":{" map "}}"

static const struct { const char *text; bool good; } maps[] = {
    {INDEX("\"a\":\"s1\""), true},
    {INDEX("\"a\":\"s1\",\"b\":\"s2\""), true},
    {"{\"metadata\":7,\"weight_map\":{}}", true},
    {" \n" INDEX("\"a\":\"s1\"") "\n", true},
    {INDEX("\"a\":\"s1\",\"c\":\"s2\""), false},      /* not in the shard */
    {INDEX("\"a\":\"sub/s1\""), false},               /* exists, but outside */
    {INDEX("\"a\":\"./s1\""), false},
    {INDEX("\"a\":\"sub\\\\s1\""), false},
    {INDEX("\"a\":\"..\""), false},
    {INDEX("\"a\":\"\""), false},
    {INDEX("\"a\":\".\""), false},
    {INDEX("\"a\":\"s1\\u0000\""), false},
    {INDEX("\"a\":\"none\""), false},
    {INDEX("\"a\":\"x.index.json\""), false},         /* an index in itself */
    {INDEX("\"a\":1"), false},
    {INDEX("\"a\":\"s1\",\"a\":\"s1\""), false},
    {"{\"weight_map\":[]}", false},
    {"{\"metadata\":{}}", false},
    {"[]", false},
    {INDEX("\"a\":\"s1\"") "x", false},
};

static void indices(void)
{
    const char *path = at("x.index.json");
    mkdir(at("sub"), 0700);
    spit_st(at("s1"), "{" T("a", "U8", "1", "0", "1") "}", 1);
    spit_st(at("s2"), "{" T("b", "U8", "1", "0", "1") "}", 1);
    spit_st(at("sub/s1"), "{" T("a", "U8", "1", "0", "1") "}", 1);
    spit_st(at("sub\\s1"), "{" T("a", "U8", "1", "0", "1") "}", 1);
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        tt_file *f;
        spit(path, maps[i].text, strlen(maps[i].text));
        bool ok = tt_file_open(ctx, &f, path) == TT_OK;
        expect(ok == maps[i].good, "%s: %s: %s",
               maps[i].good ? "refused" : "accepted", maps[i].text,
               tt_message(ctx));
        tt_clear(ctx);
        tt_file_close(f);
    }
    static const char *const all[] = {"sub/s1", "sub\\s1", "s1", "s2",
                                      "x.index.json"};
    for (int i = 0; i < 5; i++) unlink(at(all[i]));
    rmdir(at("sub"));
}

int main(void)
{
    ctx = test_begin("io/safetensors");
    if (!folder_make()) return test_end();
    headers();
    lengths();
    spelt_lengths();
    indices();
    folder_remove_empty();
    return test_end();
}
