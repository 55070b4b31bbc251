/* test_memory.c: what a file takes in memory, in proportion to its size.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each file is opened by a child whose addresses may grow by a multiple of the
 * file and SLACK: it may refuse the file, but not for lack of memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/file.h"
#include "tests/harness.h"
#include "io/video.h"

enum { SIZE = 1 << 20, SLACK = 4 << 20 };

static tt_ctx *ctx;
static char *text;             /* of the file, and its bytes                  */
static size_t n;

static void put(const void *p, size_t bytes)
{
    if (n + bytes > 2 * SIZE) abort();
    memcpy(text + n, p, bytes);
    n += bytes;
}

#define PUT(literal) put(literal, sizeof(literal) - 1)

static void word(const char *s)
{
    put(s, strlen(s));
}

static void number(size_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        const char c = (char)(v >> 8 * i);
        put(&c, 1);
    }
}

/* Sanitizers need the address space for themselves. */
static bool limit(size_t more)
{
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(SANITIZED) || defined(__SANITIZE_ADDRESS__)
    (void)more;
    return true;
#else
    long pages = 0;
    struct rlimit r;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld", &pages) != 1 || getrlimit(RLIMIT_AS, &r))
        return false;
    fclose(f);
    r.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
    return !setrlimit(RLIMIT_AS, &r);
#endif
}

static void child(const char *name, size_t times)
{
    tt_file *f;
    if (!limit(times * n + SLACK)) _exit(2);
    const tt_status s = file_open_bytes(ctx, &f, text, n, name);
    if (s) fprintf(stderr, "  %s\n", tt_message(ctx));
    _exit(s == TT_ENOMEM);
}

static void check(const char *name, size_t times)
{
    int status;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) child(name, times);
    if (!expect(pid > 0 && waitpid(pid, &status, 0) == pid, "%s: a child",
                name)) return;
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "%s: %zu bytes take more than %zu times that", name, n, times);
}

/* ---- JSON ---------------------------------------------------------------- */

/* Keys of one to four of 64 letters, in order of their length. */
static void key(size_t i)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
    char k[8];
    int length = 0;
    for (i++; i; i = (i - 1) / 64) k[length++] = letters[(i - 1) % 64];
    put("\"", 1);
    put(k, (size_t)length);
    put("\"", 1);
}

/* An index with a list, or an object, of the same values. */
static void json(const char *name, const char *value, bool keys, bool map)
{
    n = 0;
    word(map ? "{\"weight_map\":{" : keys ? "{\"weight_map\":{},\"x\":{"
                                          : "{\"weight_map\":{},\"x\":[");
    for (size_t i = 0; n < SIZE; i++) {
        if (i) word(",");
        if (keys) key(i);
        if (keys) word(":");
        word(value);
    }
    word(keys ? "}}" : "]}");
    check(name, 15);
}

/* A header of the shortest entries, and its padding. */
static void header(void)
{
    n = 0;
    number(0, 8);
    word("{");
    for (size_t i = 0; n < SIZE; i++) {
        if (i) word(",");
        key(i);
        word(":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}");
    }
    word("}");
    const uint64_t length = n - 8;
    for (int i = 0; i < 8; i++) text[i] = (char)(length >> 8 * i);
    check("a header of short entries", 15);
}

/* ---- PyTorch ------------------------------------------------------------- */

static void zip_begin(void)
{
    n = 0;
    word("PK\3\4");
    number(0, 22);
    number(10, 4);
    word("a/data.pkl");
}

/* A directory of the pickle and of storage "0", of no bytes. */
static void zip_end(void)
{
    const size_t size = n - 40, second = n;
    word("PK\3\4");
    number(0, 22);
    number(8, 4);
    word("a/data/0");
    const size_t directory = n;
    for (int i = 0; i < 2; i++) {
        word("PK\1\2");
        number(0, 16);
        number(i ? 0 : size, 4);
        number(i ? 0 : size, 4);
        number(i ? 8 : 10, 2);
        number(0, 12);
        number(i ? second : 0, 4);
        word(i ? "a/data/0" : "a/data.pkl");
    }
    const size_t end = n;
    word("PK\5\6");
    number(0, 4);
    number(2, 2);
    number(2, 2);
    number(end - directory, 4);
    number(directory, 4);
    number(0, 2);
}

/* Memo 0 is an empty tensor, 1 a dictionary of 100, 2 a key of 1000 bytes, 3 a
 * dictionary that has it. */
static void remember(void)
{
    static const char tensor[] =
        "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storage"
        "ctorch\nByteStorage\nX\1\0\0\0" "0X\3\0\0\0" "cpuK\0tQK\0K\0\x85"
        "K\1\x85\x89" "ccollections\nOrderedDict\n)RtRq\0";
    PUT("\x80\2}(K\0");
    PUT(tensor);
    PUT("K\1}(");
    for (size_t i = 0; i < 100; i++) {
        word("K");
        number(i, 1);
        PUT("h\0");
    }
    PUT("uq\1K\2X\xe8\3\0\0");
    for (int i = 0; i < 1000; i++) word("k");
    PUT("q\2K\3}h\2h\0sq\3u");
}

/* A list of the same values, `each` between two marks. */
static void pickle(const char *name, const char *value, size_t length)
{
    const size_t each = 100000;
    zip_begin();
    remember();
    word("K\4]");
    while (n < SIZE) {
        word("(");
        for (size_t i = 0; i < each && n < SIZE; i++) put(value, length);
        word("e");
    }
    word("s.");
    zip_end();
    check(name, 17);
}
#define PICKLE(name, value) pickle(name, value, sizeof(value) - 1)

#define TEXT "X\x50\0\0\0" TEN TEN TEN TEN TEN TEN TEN TEN
#define TEN "0123456789"

/* A dictionary of numbers. */
static void numbered(const char *name, const char *value, size_t length)
{
    zip_begin();
    remember();
    PUT("K\4}(");
    for (size_t i = 0; n < SIZE; i++) {
        word("J");
        number(i, 4);
        put(value, length);
    }
    word("us.");
    zip_end();
    check(name, 17);
}

/* ---- pictures ------------------------------------------------------------ */

/* A progressive JPEG of three colours and no data. */
static tt_status jpeg(int side, const char *path)
{
    static const unsigned char frame[] = {0xff, 0xc2, 0, 17, 8},
        colours[] = {3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0,
                     0xff, 0xc4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                     0, 0, 0, 0, 0,
                     0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 0, 0,
                     0xff, 0xd9};
    n = 0;
    PUT("\xff\xd8\xff\xdb\0\x43\0");
    for (int i = 0; i < 64; i++) number(1, 1);
    put(frame, sizeof frame);
    for (int i = 0; i < 2; i++) {
        number((size_t)side >> 8, 1);
        number((size_t)side & 255, 1);
    }
    put(colours, sizeof colours);
    FILE *f = fopen(path, "wb");
    if (!expect(f && fwrite(text, 1, n, f) == n && fclose(f) == 0, "%s", path))
        return TT_EIO;
    tt_arena a = {0};
    uint8_t *rgb;
    int64_t w, h;
    const tt_status s = tt_picture_read(ctx, &a, &rgb, &w, &h, path);
    tt_arena_free(&a);
    return s;
}

/* 8192x8192 pixels would take 800 MB. */
static void pictures(void)
{
    char path[600];
    tmp_path(path, sizeof path, "memory.jpg");
    expect_ok(jpeg(256, path), "a JPEG whose bytes may be enough");
    expect(jpeg(8192, path) == TT_EFORMAT
           && strstr(tt_message(ctx), "do not go into"),
           "a JPEG of %zu bytes: %s", n, tt_message(ctx));
    tt_clear(ctx);
    unlink(path);
}

int main(void)
{
    ctx = test_begin("io/memory");
    text = malloc(2 * SIZE);
    if (!expect(text, "memory")) return test_end();
    json("zeros", "0", false, false);
    json("empty lists", "[]", false, false);
    json("empty texts", "\"\"", false, false);
    json("words", "null", false, false);
    json("short keys", "0", true, false);
    json("objects of one member", "{\"\":0}", false, false);
    json("a map of short names", "\"a\"", true, true);
    header();
    PICKLE("nothing", "N");
    PICKLE("empty tuples", ")");
    PICKLE("empty dictionaries", "}");
    PICKLE("tuples of one", "N\x85");
    PICKLE("lists of one", "]Na");
    PICKLE("dictionaries of one", "}K\0Ns");
    PICKLE("the same tensor", "h\0");
    PICKLE("the same dictionary, and a text", "h\1" TEXT TEXT TEXT);
    PICKLE("a long name, and a text", "h\3" TEXT);
    numbered("numbered values", "N", 1);
    numbered("numbered tensors", "h\0", 2);
    pictures();
    free(text);
    return test_end();
}
