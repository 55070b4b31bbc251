/* test_damage.c: damaged checkpoint files are refused or read, never more.
 * Property: whatever the bytes, opening ends, and what is then offered can be
 * read. Meant to be run under the sanitizers; `test_damage ROUNDS` digs
 * deeper.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness.h"

static tt_ctx *ctx;
static tt_arena arena;
static uint64_t state = 1;

static uint32_t dice(uint32_t n) /* xorshift64*, fixed seed */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * UINT64_C(2685821657736338717)) >> 33) % n;
}

static size_t slurp(const char *path, unsigned char *buf, size_t max)
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(buf, 1, max, f) : 0;
    if (f) fclose(f);
    return n;
}

static void spit(const char *path, const unsigned char *buf, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f) return;
    fwrite(buf, 1, n, f);
    fclose(f);
}

/* Interesting bytes at a few places, or a cut, or a doubled piece. */
static size_t damage(unsigned char *b, size_t n)
{
    static const unsigned char nasty[] = {0, 1, 0x7f, 0x80, 0xff, '"', '{',
                                          '}', '[', ',', 'q', 'R', '.', '('};
    /* headers and pickles stand in front; data may be anything anyway */
    size_t all = n;
    if (n > 1500 && dice(4)) n = 1500;
    switch (dice(8)) {
    case 0: return dice((uint32_t)all + 1);
    case 1: {
        size_t from = dice((uint32_t)n), len = dice((uint32_t)(n - from)) / 4;
        size_t to = dice((uint32_t)(n - len));
        memmove(b + to, b + from, len);
        return all;
    }
    case 2: {
        size_t at = dice((uint32_t)n);
        for (size_t i = at; i < n && i < at + 8; i++) b[i] = 0xff;
        return all;
    }
    default:
        for (uint32_t k = dice(4) + 1; k > 0; k--)
            b[dice((uint32_t)n)] = dice(2) ? nasty[dice(sizeof nasty)]
                                           : (unsigned char)dice(256);
        return all;
    }
}

/* Touch everything that was offered. */
static void read_all(const tt_file *f)
{
    int64_t bytes;
    for (int64_t i = 0; i < tt_file_count(f); i++) {
        const tt_entry *e = tt_file_entry(f, i);
        if (!expect(tt_file_find(f, e->name) != NULL, "%s not found", e->name)
            || !tt_checked_size(&bytes, e->t.dim, e->t.rank,
                                tt_dtype_size(e->t.dtype))
            || bytes > 1 << 20)
            continue;
        tt_arena_mark m = tt_arena_here(&arena);
        void *data = tt_alloc(ctx, &arena, bytes, 1, "values");
        tt_gather(data, &e->t);
        tt_arena_reset(&arena, m);
    }
}

static void one_file(const char *name, const char *tmp, int rounds)
{
    static unsigned char whole[1 << 18], bad[1 << 18];
    size_t n = slurp(ref_path("formats/%s", name), whole, sizeof whole);
    if (n == 0 || n == sizeof whole) return;
    for (int i = 0; i < rounds; i++) {
        tt_file *f;
        memcpy(bad, whole, n);
        spit(tmp, bad, damage(bad, n));
        if (tt_file_open(ctx, &f, tmp) == TT_OK) {
            read_all(f);
            tt_file_close(f);
        } else {
            expect(f == NULL && tt_message(ctx)[0], "%s: no message", name);
            tt_clear(ctx);
        }
    }
    expect(true, "%s", name);
}

int main(int argc, char **argv)
{
    const tt_json *root;
    char tmp[600];
    int rounds = argc > 1 ? atoi(argv[1]) : 40;
    ctx = test_begin("io/damage");
    if (argc > 2) state = strtoull(argv[2], NULL, 10);
    tmp_path(tmp, sizeof tmp, "damage-XXXXXX");
    int fd = mkstemp(tmp);
    if (!expect(fd >= 0, "a temporary file")) return test_end();
    close(fd);
    if (expect_ok(tt_json_file(ctx, &arena, &root,
                               ref_path("formats/manifest.json"), 64 << 20),
                  "manifest.json"))
        for (const tt_json *f = tt_json_first(tt_json_get(root, "files")); f;
             f = tt_json_next(f))
            if (strcmp(tt_json_str(f, "kind", ""), "index"))
                one_file(tt_json_str(f, "file", ""), tmp, rounds);
    unlink(tmp);
    tt_arena_free(&arena);
    return test_end();
}
