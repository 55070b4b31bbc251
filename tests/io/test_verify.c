/* test_verify.c: checksums of zip entries, and files that carry none.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * ref_data/formats/pt_ok_zip64.pt was written with true checksums; its damaged
 * and its dummy copies are made here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness.h"

static tt_ctx *ctx;
static char path[600];
static unsigned char raw[1 << 16];
static size_t size;

static bool slurp(const char *name)
{
    FILE *f = fopen(ref_path("%s", name), "rb");
    size = f ? fread(raw, 1, sizeof raw, f) : 0;
    if (f) fclose(f);
    return expect(size > 0 && size < sizeof raw, "read %s", name);
}

/* Verify what is in raw. */
static tt_status verify(tt_verify_report *r)
{
    tt_file *f;
    FILE *o = fopen(path, "wb");
    expect(o && fwrite(raw, 1, size, o) == size && !fclose(o), "write");
    if (!tt_file_open(ctx, &f, path)) {
        tt_file_verify(ctx, r, f, NULL, NULL);
        tt_file_close(f);
    }
    return ctx->status;
}

/* The next central record at or after `at`; `size` when there is none. */
static size_t central(size_t at)
{
    while (at + 46 <= size && memcmp(raw + at, "PK\1\2", 4)) at++;
    return at + 46 <= size ? at : size;
}

/* Where the data of the entry of this central record starts. */
static size_t data_of(size_t c)
{
    size_t at = raw[c + 42] | (size_t)raw[c + 43] << 8;
    return at + 30 + raw[at + 26] + raw[at + 28] + 256u * raw[at + 29];
}

/* A record that begins with a local header and is some storage. */
static size_t some_storage(void)
{
    for (size_t c = central(0); c < size; c = central(c + 1))
        if (raw[c + 44] == 0 && !memcmp(raw + c + 46, "archive/data/", 13))
            return c;
    return size;
}

static void test_zip(void)
{
    tt_verify_report r;
    if (!slurp("formats/pt_ok_flat_dtypes.pt")) return;
    expect_ok(verify(&r), "a true file");
    expect(r.agree > 3 && r.without == 0 && r.bytes > 0, "%lld agree",
           (long long)r.agree);

    size_t c = some_storage();
    if (!expect(c < size, "there is a storage")) return;
    raw[data_of(c)] ^= 4;
    expect(verify(&r) == TT_EFORMAT && strstr(tt_message(ctx), "archive/data/"),
           "one flipped bit: %s", tt_message(ctx));
    tt_clear(ctx);
    raw[data_of(c)] ^= 4;
    raw[c + 17] ^= 1;
    expect(verify(&r) == TT_EFORMAT, "one wrong checksum");
    tt_clear(ctx);
    raw[c + 17] ^= 1;

    /* dummies: 0 or any other number, the same everywhere */
    for (int dummy = 0; dummy < 256; dummy += 170) {
        for (c = central(0); c < size; c = central(c + 1))
            memset(raw + c + 16, dummy, 4);
        expect_ok(verify(&r), "dummy checksums");
        expect(r.without > 3, "%lld without", (long long)r.without);
    }
    memset(raw + some_storage() + 16, 1, 4);
    expect(verify(&r) == TT_EFORMAT, "one number that is no dummy");
    tt_clear(ctx);
}

static void test_others(void)
{
    static const char *const names[] = {"formats/st_ok_basic.safetensors",
                                        "formats/gguf_ok_basic.gguf"};
    tt_verify_report r;
    for (int i = 0; i < 2; i++) {
        if (!slurp(names[i])) return;
        expect_ok(verify(&r), names[i]);
        expect(r.bytes == (int64_t)size && r.agree == 0 && r.without == 1,
               "%s: %lld bytes", names[i], (long long)r.bytes);
    }
    /* shortened after it was opened: a sentence, not a signal */
    tt_file *f;
    if (!expect_ok(tt_file_open(ctx, &f, path), path)) return;
    expect(truncate(path, 100) == 0, "truncate");
    expect(tt_file_verify(ctx, &r, f, NULL, NULL) == TT_EIO
               && strstr(tt_message(ctx), "byte 100"),
           "a shortened file: %s", tt_message(ctx));
    tt_clear(ctx);
    tt_file_close(f);
}

int main(void)
{
    ctx = test_begin("io/verify");
    tmp_path(path, sizeof path, "verify");
    test_zip();
    test_others();
    unlink(path);
    return test_end();
}
