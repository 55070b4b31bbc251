/* test_torchfile.c: crafted PyTorch zips: one rule of the unpickler and of
 * the container each.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/harness.h"

static tt_ctx *ctx;
static char path[600];

/* ---- a small zip writer -------------------------------------------------- */

typedef struct zip {
    unsigned char b[1 << 17], dir[4096];
    size_t n, ndir;
    unsigned count;
} zip;
static zip z;

static void put(unsigned char *b, size_t *n, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        b[(*n)++] = i < 8 ? (unsigned char)(v >> 8 * i) : 0;
}

static void add(const char *name, const void *data, size_t size)
{
    size_t at = z.n, len = strlen(name);
    put(z.b, &z.n, 0x04034b50, 4);
    put(z.b, &z.n, 0, 22);
    put(z.b, &z.n, len, 2);
    put(z.b, &z.n, 0, 2);
    memcpy(z.b + z.n, name, len);
    z.n += len;
    if (size > 0) memcpy(z.b + z.n, data, size);
    z.n += size;
    put(z.dir, &z.ndir, 0x02014b50, 4);
    put(z.dir, &z.ndir, 0, 16);
    put(z.dir, &z.ndir, size, 4);
    put(z.dir, &z.ndir, size, 4);
    put(z.dir, &z.ndir, len, 2);
    put(z.dir, &z.ndir, 0, 12);
    put(z.dir, &z.ndir, at, 4);
    memcpy(z.dir + z.ndir, name, len);
    z.ndir += len;
    z.count++;
}

static void finish(void)
{
    size_t at = z.n;
    memcpy(z.b + z.n, z.dir, z.ndir);
    z.n += z.ndir;
    put(z.b, &z.n, 0x06054b50, 4);
    put(z.b, &z.n, 0, 4);
    put(z.b, &z.n, z.count, 2);
    put(z.b, &z.n, z.count, 2);
    put(z.b, &z.n, z.ndir, 4);
    put(z.b, &z.n, at, 4);
    put(z.b, &z.n, 0, 2);
    FILE *f = fopen(path, "wb");
    fwrite(z.b, 1, z.n, f);
    fclose(f);
}

/* A file with this pickle and storage "0" of 16 bytes 0..15. */
static tt_status open_pickle(tt_file **f, const void *pickle, size_t n)
{
    unsigned char data[16];
    for (int i = 0; i < 16; i++) data[i] = (unsigned char)i;
    memset(&z, 0, sizeof z);
    add("r/data.pkl", pickle, n);
    add("r/data/0", data, 16);
    finish();
    return tt_file_open(ctx, f, path);
}

/* ---- pieces of pickle ---------------------------------------------------- */

#define K1(c) "X\1\0\0\0" c /* a key of one letter */
#define STORAGE(cls, numel)                                                    \
    "(X\7\0\0\0storagec" cls "\nX\1\0\0\0" "0X\3\0\0\0" "cpuK" numel "tQ"
#define ODICT "ccollections\nOrderedDict\n)R"
/* offset, sizes and strides are given as opcodes */
#define TENSOR(cls, numel, offset, size, stride)                               \
    "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE(cls, numel) offset size     \
    stride "\x89" ODICT "tR"
#define U8(offset, size, stride)                                               \
    TENSOR("torch\nByteStorage", "\x10", offset, size, stride)
#define T1 U8("K\0", "K\4\x85", "K\1\x85") /* 0 1 2 3 */

typedef struct row {
    const char *what;
    const char *text;
    size_t n;
    int count; /* tensors; -1: refused */
} row;
#define ROW(what, text, count)                                                 \
    {what, "\x80\2" text, sizeof("\x80\2" text) - 1, count}

static const row rows[] = {
    ROW("empty", "}.", 0),
    ROW("one tensor", "}" K1("a") T1 "s.", 1),
    ROW("OrderedDict", ODICT K1("a") T1 "s.", 1),
    ROW("OrderedDict of pairs", "ccollections\nOrderedDict\n(](" K1("a") T1
        "tatR.", 1),
    ROW("OrderedDict of broken pairs", "ccollections\nOrderedDict\n(](" K1("a")
        "tatR.", -1),
    ROW("plain values", "}(" K1("a") "N" K1("b") "\x88" K1("c") "G\0\0\0\0\0\0"
        "\0\0" K1("d") "J\xff\xff\xff\xff" K1("e") "\x8a\2\xff\0" K1("f") ")"
        K1("g") "](K\1K\2eu.", 0),
    ROW("int key", "}K\7" T1 "s.", 1),
    ROW("list in dict", "}" K1("a") "](" T1 T1 "es.", 2),
    ROW("key twice: the last counts", "}(" K1("a") T1 K1("b") T1 K1("a")
        U8("K\5", "K\2\x85", "K\1\x85") "u.", 2),
    ROW("key twice: no tensor left", "}(" K1("a") T1 K1("a") "Nu.", 0),
    ROW("int and text keys differ", "}(K\1" T1 K1("1") T1 "u.", 2),
    ROW("float key", "}G\0\0\0\0\0\0\0\0Ns.", -1),
    ROW("tuple key", "})Ns.", -1),
    ROW("key with NUL", "}X\1\0\0\0\0Ns.", -1),
    ROW("text that is not UTF-8", "}X\1\0\0\0\xffNs.", -1),
    ROW("sparse memo", "}r\xff\xff\xff\xff" "j\xff\xff\xff\xff" K1("a") "Ns0.",
        -1),
    ROW("memo from 1", "}q\1" K1("a") T1 "s.", -1),
    ROW("memo with a gap", "}q\0" K1("a") "q\2" T1 "s.", -1),
    ROW("memo used", "}q\0" K1("a") "q\1" T1 "q\2sh\1h\2s.", 1),
    ROW("memo set again", "}(" K1("a") "q\0N" K1("b") "q\0" T1 "h\0" T1 "u.",
        1),
    ROW("memo used twice", "}(" K1("a") "q\0" T1 "q\1" K1("b") "h\1h\0h\1u.",
        2),
    ROW("contains itself", "}q\0" K1("a") "h\0s.", -1),
    ROW("list contains itself", "}" K1("a") "]q\0h\0as.", -1),
    ROW("shared dictionary", "}(" K1("a") "}q\0" K1("x") T1 "s" K1("b")
        "h\0u.", 2),
    ROW("a tag as value", "}" K1("a") "ctorch\nFloatStorage\ns.", -1),
    ROW("a storage as value", "}" K1("a") STORAGE("torch\nByteStorage", "\x10")
        "s.", -1),
    ROW("unknown global, unused", "cos\nsystem\n}.", -1),
    ROW("nearly a global", "}" K1("a") "ccollections\nOrderedDict2\ns.", -1),
    ROW("root is a tensor", T1 ".", -1),
    ROW("root is a list", "].", -1),
    ROW("two values left", "}}.", -1),
    ROW("mark left", "}(.", -1),
    ROW("no stop", "}", -1),
    ROW("underflow", "s.", -1),
    ROW("underflow below a mark", "}" K1("a") "(Ns.", -1),
    ROW("setitems, odd", "}(" K1("a") "u.", -1),
    ROW("append to a dictionary", "}Na.", -1),
    ROW("long of 9 bytes", "}" K1("a") "\x8a\x9\0\0\0\0\0\0\0\0\0s.", -1),
    ROW("build, _metadata", "}}X\x9\0\0\0_metadata}sb.", 0),
    ROW("build, other", "}}X\x9\0\0\0_metaData}sb.", -1),
    ROW("build, two", "}}(X\x9\0\0\0_metadata}" K1("a") "Nub.", -1),
    ROW("build on a list", "}" K1("a") "]}X\x9\0\0\0_metadata}sbs.", -1),
    /* tensors against their storage of 16 bytes */
    ROW("to the end", "}" K1("a") U8("K\4", "K\3K\4\x86", "K\4K\1\x86") "s.",
        1),
    ROW("past the end", "}" K1("a") U8("K\5", "K\3K\4\x86", "K\4K\1\x86")
        "s.", -1),
    ROW("stride past the end", "}" K1("a") U8("K\0", "K\4\x85", "K\6\x85")
        "s.", -1),
    ROW("stride to the end", "}" K1("a") U8("K\0", "K\4\x85", "K\5\x85") "s.",
        1),
    ROW("stride 0", "}" K1("a") U8("K\x0f", "M\xff\xff\x85", "K\0\x85") "s.",
        1),
    ROW("stride 0 of 2^30", "}" K1("a")
        U8("K\0", "J\0\0\0\x40\x85", "K\0\x85") "s.", -1),
    ROW("size and stride overflow", "}" K1("a")
        U8("K\0", "\x8a\x8\0\0\0\0\0\0\0\x40\x8a\x8\0\0\0\0\0\0\0\x40\x86",
           "K\0K\0\x86") "s.", -1),
    ROW("stride overflow", "}" K1("a")
        U8("K\0", "K\5\x85", "\x8a\x8\xff\xff\xff\xff\xff\xff\xff\x7f\x85")
        "s.", -1),
    ROW("negative size", "}" K1("a") U8("K\0", "J\xff\xff\xff\xff\x85",
        "K\1\x85") "s.", -1),
    ROW("negative stride", "}" K1("a") U8("K\3", "K\2\x85",
        "J\xff\xff\xff\xff\x85") "s.", -1),
    ROW("negative offset", "}" K1("a") U8("J\xff\xff\xff\xff", "K\2\x85",
        "K\1\x85") "s.", -1),
    ROW("empty at the end", "}" K1("a") U8("K\x10", "K\0\x85", "K\1\x85") "s.",
        1),
    ROW("empty past the end", "}" K1("a") U8("K\x11", "K\0\x85", "K\1\x85")
        "s.", -1),
    ROW("bool size", "}" K1("a") U8("K\0", "\x88\x85", "K\1\x85") "s.", -1),
    ROW("numel differs", "}" K1("a") TENSOR("torch\nByteStorage", "\xf",
        "K\0", "K\1\x85", "K\1\x85") "s.", -1),
    ROW("type differs", "}" K1("a") TENSOR("torch\nHalfStorage", "\x10", "K\0",
        "K\1\x85", "K\1\x85") "s.", -1),
    ROW("half", "}" K1("a") TENSOR("torch\nHalfStorage", "\x8", "K\7",
        "K\1\x85", "K\1\x85") "s.", 1),
    ROW("storage class is no storage", "}" K1("a")
        TENSOR("collections\nOrderedDict", "\x10", "K\0", "K\1\x85",
               "K\1\x85") "s.", -1),
    ROW("fp8", "}" K1("a") "ctorch._utils\n_rebuild_tensor_v3\n("
        STORAGE("torch.storage\nUntypedStorage", "\x10") "K\0K\4\x85K\1\x85"
        "\x89" ODICT "ctorch\nfloat8_e4m3fn\ntRs.", 1),
    ROW("fp8 without its type", "}" K1("a")
        "ctorch._utils\n_rebuild_tensor_v3\n("
        STORAGE("torch.storage\nUntypedStorage", "\x10") "K\0K\4\x85K\1\x85"
        "\x89" ODICT "NtRs.", -1),
    ROW("untyped in v2", "}" K1("a")
        TENSOR("torch.storage\nUntypedStorage", "\x10", "K\0", "K\1\x85",
               "K\1\x85") "s.", -1),
};

static void pickles(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tt_file *f;
        tt_status s = open_pickle(&f, rows[i].text, rows[i].n);
        int64_t n = s ? -1 : tt_file_count(f);
        expect(n == rows[i].count, "%s: %lld tensors, expected %d (%s)",
               rows[i].what, (long long)n, rows[i].count, tt_message(ctx));
        tt_clear(ctx);
        tt_file_close(f);
    }
}

/* Which value survives a repeated key, and where it stands. */
static void repeated_key(void)
{
    static const char text[] =
        "\x80\2}(" K1("a") T1 K1("b") T1 K1("a") U8("K\5", "K\2\x85",
                                                    "K\1\x85") "u.";
    tt_file *f;
    if (!expect_ok(open_pickle(&f, text, sizeof text - 1), "repeated key"))
        return;
    const tt_entry *e = tt_file_entry(f, 0);
    expect(!strcmp(e->name, "a") && e->t.dim[0] == 2
               && *(const unsigned char *)e->t.data == 5, "the last value");
    tt_file_close(f);
}

/* Every opcode alone: only those of the list may do anything. */
static void opcodes(void)
{
    static const char allowed[] = "}])(tXqrhjJKMGNcQRbsuae.\x85\x86\x87\x88"
                                  "\x89\x8a";
    for (int c = 0; c < 256; c++) {
        char text[] = {'\x80', 2, '}', (char)c, '.'};
        tt_file *f;
        tt_status s = open_pickle(&f, text, sizeof text);
        bool known = c != 0 && strchr(allowed, c) != NULL;
        expect(s != TT_OK, "opcode %02x accepted", c);
        expect((strstr(tt_message(ctx), "an operation") == NULL) == known,
               "opcode %02x: %s", c, tt_message(ctx));
        tt_clear(ctx);
    }
}

/* Numbers 0 to 2999 are remembered, and one of them is a key. */
static void memo(void)
{
    static char text[8 * 3000 + 300] = "\x80\2}" K1("k") "(";
    static const char tensor[] = T1;
    size_t used = 10;
    for (int i = 0; i < 3000; i++) {
        const char put[] = {'M', (char)(i & 255), (char)(i >> 8), 'r',
                            (char)(i & 255), (char)(i >> 8), 0, 0};
        memcpy(text + used, put, sizeof put);
        used += sizeof put;
    }
    memcpy(text + used, "ts(j\xc4\x9\0\0", 8); /* 2500 */
    used += 8;
    memcpy(text + used, tensor, sizeof tensor - 1);
    used += sizeof tensor - 1;
    memcpy(text + used, "u.", 2);
    tt_file *f;
    if (!expect_ok(open_pickle(&f, text, used + 2), "numbers in order"))
        return;
    expect(tt_file_count(f) == 1 && tt_file_find(f, "2500"), "2500 is a key");
    tt_file_close(f);
}

/* A key is read when it has 1024 bytes: what sorts keys takes as long as they
 * are, as often as a few bytes of the memo repeat one. */
static void long_keys(void)
{
    static char text[1400];
    static const char tensor[] = T1;
    for (int n = 1024; n <= 1025; n++) {
        memcpy(text, "\x80\2}X", 4);
        const char length[] = {(char)(n & 255), (char)(n >> 8), 0, 0};
        memcpy(text + 4, length, sizeof length);
        memset(text + 8, 'k', (size_t)n);
        memcpy(text + 8 + n, tensor, sizeof tensor - 1);
        memcpy(text + 8 + n + sizeof tensor - 1, "s.", 2);
        tt_file *f;
        const tt_status s =
            open_pickle(&f, text, 8 + (size_t)n + sizeof tensor + 1);
        expect(n == 1024 ? s == TT_OK : s == TT_EFORMAT
               && strstr(tt_message(ctx), "a key of more than 1024 bytes"),
               "a key of %d bytes: %s", n, tt_message(ctx));
        tt_clear(ctx);
        if (s == TT_OK) tt_file_close(f);
    }
}

/* Few bytes that describe many values: time and memory stay small. */
static void bombs(void)
{
    char text[4096];
    size_t n = 0;
    tt_file *f;
    /* 25 levels, each holding the one below 4 times */
    memcpy(text, "\x80\2}q\0", 5);
    n = 5;
    for (int level = 1; level <= 25; level++) {
        text[n++] = '}';
        text[n++] = 'q';
        text[n++] = (char)level;
        text[n++] = '(';
        for (int k = 0; k < 4; k++) {
            memcpy(text + n, "X\1\0\0\0", 5);
            n += 5;
            text[n++] = (char)('a' + k);
            text[n++] = 'h';
            text[n++] = (char)(level - 1);
        }
        text[n++] = 'u';
    }
    text[n++] = '.'; /* leaves 26 values: refused already */
    expect(open_pickle(&f, text, n) != TT_OK, "values left");
    tt_clear(ctx);
    /* the same as one value: collect the levels in a list first */
    n = 0;
    memcpy(text, "\x80\2}" K1("z") "](}q\0", 14);
    n = 14;
    for (int level = 1; level <= 25; level++) {
        text[n++] = '}';
        text[n++] = 'q';
        text[n++] = (char)level;
        text[n++] = '(';
        for (int k = 0; k < 4; k++) {
            memcpy(text + n, "X\1\0\0\0", 5);
            n += 5;
            text[n++] = (char)('a' + k);
            text[n++] = 'h';
            text[n++] = (char)(level - 1);
        }
        text[n++] = 'u';
    }
    memcpy(text + n, "es.", 3);
    n += 3;
    const clock_t start = clock();
    expect(open_pickle(&f, text, n) != TT_OK
               && strstr(tt_message(ctx), "more values"),
           "4^25 values: %s", tt_message(ctx));
    tt_clear(ctx);
    expect(clock() - start < CLOCKS_PER_SEC, "took more than a second");
}

static void containers(void)
{
    static const char pickle[] = "\x80\2}.";
    static const struct { const char *name[3]; const char *body; bool good; }
    cases[] = {
        {{"a/data.pkl", NULL, NULL}, pickle, true},
        {{"a/data.pkl", "a/byteorder", NULL}, "little", true},
        {{"a/data.pkl", "a/byteorder", NULL}, "big", false},
        {{"a/data.pkl", "b/byteorder", NULL}, "big", true},
        {{"a/data.pkl", "b/data.pkl", NULL}, pickle, false},
        {{"a/data.pkl", "a/b/data.pkl", NULL}, pickle, true},
        {{"a/b/data.pkl", NULL, NULL}, pickle, false},
        {{"data.pkl", NULL, NULL}, pickle, false},
        {{"a/data.pkl", "a/x", "a/x"}, pickle, false},
        {{"a/data.pkl", "a/x", "a/y"}, pickle, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tt_file *f;
        memset(&z, 0, sizeof z);
        for (int k = 0; k < 3 && cases[i].name[k]; k++) {
            const char *body = k == 0 ? pickle : cases[i].body;
            add(cases[i].name[k], body, strlen(body));
        }
        finish();
        bool ok = tt_file_open(ctx, &f, path) == TT_OK;
        expect(ok == cases[i].good, "container %zu: %s", i, tt_message(ctx));
        tt_clear(ctx);
        tt_file_close(f);
    }
    /* two entries over the same bytes */
    tt_file *f;
    memset(&z, 0, sizeof z);
    add("a/data.pkl", pickle, 4);
    size_t first = z.ndir;
    add("a/x", "1234", 4);
    memcpy(z.dir + z.ndir, z.dir + first, z.ndir - first);
    z.ndir += z.ndir - first;
    z.dir[z.ndir - 1] = 'x';
    z.count++;
    finish();
    expect(tt_file_open(ctx, &f, path) != TT_OK
               && strstr(tt_message(ctx), "overlapping"),
           "overlap: %s", tt_message(ctx));
    tt_clear(ctx);
}

int main(void)
{
    ctx = test_begin("io/torchfile");
    tmp_path(path, sizeof path, "torch-XXXXXX");
    int fd = mkstemp(path);
    if (!expect(fd >= 0, "a temporary file")) return test_end();
    close(fd);
    pickles();
    repeated_key();
    opcodes();
    bombs();
    memo();
    long_keys();
    containers();
    unlink(path);
    return test_end();
}
