/* test_sha256.c: the CPU's instructions and plain C give one digest.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers (FIPS 180-4): tests/io/test_st_write.c. */
#include <stdio.h>
#include <string.h>

#include "io/sha256_blocks.h"
#include "tests/harness.h"
#include "io/io.h"

static uint8_t bytes[64 * 40 + 3];

static void fill(void)
{
    uint32_t r = 1;
    for (size_t i = 0; i < sizeof bytes; i++) {
        r = r * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(r >> 24);
    }
}

/* Some blocks from any address, from a state of any words. */
static void test_blocks(void)
{
    int64_t bad = 0;
    for (size_t n = 0; n <= 36; n++)
        for (size_t at = 0; at < 3; at++) {
            uint32_t a[8], b[8];
            memcpy(a, bytes + n, sizeof a);
            memcpy(b, a, sizeof b);
            sha256_blocks(a, bytes + 67 + at, n);
            sha256_blocks_plain(b, bytes + 67 + at, n);
            bad += memcmp(a, b, sizeof a) != 0;
        }
    expect(!bad, "%lld states differ", (long long)bad);
}

/* A million times the letter a, and the same in pieces of all sizes. */
static void test_pieces(void)
{
    static const char want[] = "cdc76e5c9914fb9281a1c7e284d73e67"
                               "f1809a48a497200e046d39ccc7112cd0";
    static char letters[1000];
    char hex[65];
    memset(letters, 'a', sizeof letters);
    for (size_t most = 1; most <= sizeof letters; most += 333) {
        tt_sha256 s;
        tt_sha256_init(&s);
        for (size_t left = 1000000, k = 1; left > 0; k = k % most + 1) {
            const size_t n = k < left ? k : left;
            tt_sha256_add(&s, letters, n);
            left -= n;
        }
        tt_sha256_hex(&s, hex);
        expect(!strcmp(hex, want), "pieces of up to %zu: %s", most, hex);
    }
}

int main(void)
{
    test_begin("io/sha256");
    fill();
    test_blocks();
    test_pieces();
    return test_end();
}
