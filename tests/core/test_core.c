/* test_core.c: status, arenas, sizes, 8- and 16-bit floats.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/page.h"
#include "tests/folder.h"
#include "core/device.h"
#include "ops/backend.h"

static tt_ctx *ctx;

static void test_status(void)
{
    tt_fail(ctx, TT_EIO, "first %d", 1);
    tt_fail(ctx, TT_EFORMAT, "second");
    expect(ctx->status == TT_EIO && !strcmp(tt_message(ctx), "first 1"),
           "the first failure wins: %s", tt_message(ctx));
    tt_clear(ctx);
    tt_fail(ctx, TT_EFORMAT, "tensor '%s'",
            "a\n\033[2Jb\177\xc2\x9b\xc3\xa9\x9b");
    expect(!strcmp(tt_message(ctx), "tensor 'a??[2Jb???\xc3\xa9?'"),
           "a name cannot command the terminal: %s", tt_message(ctx));
    tt_clear(ctx);
    tt_fail(ctx, TT_EFORMAT,
            "a\xe2\x80\xae" "gnp.y4m \xe2\x81\xa6\xe2\x80\x93");
    expect(!strcmp(tt_message(ctx), "a???gnp.y4m ???\xe2\x80\x93"),
           "nor look like another: %s", tt_message(ctx));
    expect(tt_scratch(ctx, 4) == NULL, "no allocation while failed");
    tt_real x[2] = {1, 2};
    const tt_real same[2] = {1, 2};
    tt_add(ctx, x, same, 2);
    expect(x[0] == 1 && x[1] == 2, "operators do nothing while failed");
    tt_clear(ctx);
    tt_add(ctx, x, same, 2);
    expect(x[0] == 2 && x[1] == 4, "and work again after tt_clear");
}

/* Text of a file in a page: no tags, and no characters that turn what stands
 * after them, each end of both ranges. */
static void test_page(void)
{
    static const struct { const char *text, *want; } row[] = {
        {"<a href='x'>\n", "&lt;a href=&#39;x&#39;&gt;&#10;"},
        {"a\xe2\x80\xae" "gnp.y4m", "a\xef\xbf\xbdgnp.y4m"},
        {"\xe2\x80\xa9\xe2\x80\xaa", "\xe2\x80\xa9\xef\xbf\xbd"},
        {"\xe2\x81\xa5\xe2\x81\xa6", "\xe2\x81\xa5\xef\xbf\xbd"},
        {"\xe2\x81\xa9\xe2\x81\xaa", "\xef\xbf\xbd\xe2\x81\xaa"},
        {"\xc2\x9b\x1b\xff\xc3\xa9", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                                     "\xc3\xa9"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char *got = NULL;
        size_t n = 0;
        FILE *f = open_memstream(&got, &n);
        if (!expect(f != NULL, "a page")) return;
        page_xml(f, row[i].text);
        fclose(f);
        expect(!strcmp(got, row[i].want), "page %zu: %s", i, got);
        free(got);
    }
}

/* Next to an extent of 0 the others may be anything. */
static void test_empty(void)
{
    const int64_t dim[][3] = {{0, INT64_MAX, 2}, {INT64_MAX, 0, INT64_MAX},
                              {2, INT64_MAX, 0}};
    for (int i = 0; i < 3; i++) {
        const tt_tensor t = tt_tensor_make(NULL, TT_F32, 3, dim[i]);
        bool ok = t.stride[2] == 1;
        for (int k = 0; k < 3; k++) ok = ok && t.stride[k] >= 0;
        expect(ok && tt_tensor_packed(&t) && tt_tensor_bytes(&t) == 0,
               "empty tensor %d", i);
    }
}

static void test_sizes(void)
{
    int64_t out = -7;
    expect(tt_checked_size(&out, (int64_t[]){2, 3, 5}, 3, 4) && out == 120,
           "2*3*5*4");
    expect(tt_checked_size(&out, NULL, 0, 8) && out == 8, "rank 0");
    expect(tt_checked_size(&out, (int64_t[]){0, INT64_MAX, INT64_MAX}, 3, 4)
           && out == 0, "a zero extent");
    out = -7;
    expect(!tt_checked_size(&out, (int64_t[]){INT64_MAX, INT64_MAX, 0}, 3, 4)
           && out == -7, "a zero extent after an overflow");
    expect(!tt_checked_size(&out, (int64_t[]){INT64_MAX, 2}, 2, 4) && out == -7,
           "overflow leaves the output alone");
    expect(!tt_checked_size(&out, (int64_t[]){0, -1}, 2, 4), "negative");
    expect(!tt_checked_size(&out, (int64_t[]){INT64_MAX / 4 + 1}, 1, 4),
           "overflow by the element size");
    expect(tt_checked_add(&out, INT64_MAX - 1, 1) && out == INT64_MAX, "add");
    expect(!tt_checked_add(&out, INT64_MAX, 1), "add overflow");
    expect(!tt_checked_mul(&out, -1, 1), "negative product");
}

/* A turn of a loop: above what is common, phases of up to four arrays that are
 * given back. True when no page of it is new: those of the system are zero. */
enum { MB = 1 << 20, PHASES = 3, ARRAYS = 4 };
static bool take_turn(tt_arena *a, int64_t size[PHASES][ARRAYS])
{
    bool old = true;
    tt_alloc(ctx, a, MB, 1, "common");
    const tt_arena_mark m = tt_arena_here(a);
    for (int i = 0; i < PHASES; i++) {
        char *x[ARRAYS];
        for (int k = 0; k < ARRAYS; k++) {
            x[k] = tt_alloc(ctx, a, size[i][k], 1, "an array");
            old = old && x[k][0] && x[k][size[i][k] - 1];
            memset(x[k], k + 1, (size_t)size[i][k]);
        }
        for (int k = 0; k < ARRAYS; k++)
            expect(x[k][0] == k + 1 && x[k][size[i][k] - 1] == k + 1,
                   "array %d of phase %d is written by another", k, i);
        tt_arena_reset(a, m);
    }
    tt_arena_reset(a, (tt_arena_mark){0});
    return old;
}

/* From its third turn on a loop takes no memory from the system, and the peak
 * is what it needs at most; blocks are of 1 MiB or more. */
static void test_arena_turns(void)
{
    enum { LOOPS = 20, TURNS = 3, SPARE = 6 * MB };
    tt_arena a = {0};
    uint32_t seed = 1;
    size_t most = 0;
    for (int loop = 0; loop < LOOPS; loop++) {
        int64_t size[PHASES][ARRAYS];
        for (int i = 0; i < PHASES; i++) {
            size_t sum = MB;
            for (int k = 0; k < ARRAYS; k++) {
                seed = seed * 1664525u + 1013904223u;
                size[i][k] = MB / 4 + (int64_t)(seed >> 10) % (4 * MB);
                size[i][k] += loop * (MB / 4);
                sum += (size_t)size[i][k];
            }
            if (sum > most) most = sum;
        }
        for (int turn = 1; turn < TURNS; turn++) take_turn(&a, size);
        expect(take_turn(&a, size), "new pages in turn %d of loop %d", TURNS,
               loop);
        expect(a.peak <= most + SPARE, "peak %zu of %zu", a.peak, most);
        expect(a.total == 0 && a.spare_bytes <= a.peak, "all is given back");
    }
    tt_arena_free(&a);
}

/* The smallest spare block that is large enough is taken. */
static void test_arena_fit(void)
{
    tt_arena a = {0};
    tt_alloc(ctx, &a, 20 * MB, 1, "a peak");
    tt_arena_free(&a);
    expect(a.peak == 0 && a.total == 0, "a free arena is a new one");
    char *base = tt_alloc(ctx, &a, MB, 1, "base");
    const tt_arena_mark m = tt_arena_here(&a);
    char *large = tt_alloc(ctx, &a, 8 * MB, 1, "large");
    char *small = tt_alloc(ctx, &a, 3 * MB, 1, "small");
    tt_arena_reset(&a, m);
    expect(tt_alloc(ctx, &a, 2 * MB, 1, "two") == small, "not the larger one");
    expect(base && large, "blocks");
    tt_arena_free(&a);
}

/* KB of files that this process has touched; 0 where no system tells. */
static long touched(void)
{
    long sum = 0, kb;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssFile: %ld", &kb) == 1
            || sscanf(line, "RssShmem: %ld", &kb) == 1) sum += kb;
    if (f) fclose(f);
    return sum;
}

/* Zeros of a new file are not written again, those after a reset are. */
static void test_arena_zeros(void)
{
    tt_arena a = {.folder = folder};
    char *first = tt_alloc(ctx, &a, 100, 1, "first");
    const tt_arena_mark m = tt_arena_here(&a);
    char *rest = tt_alloc(ctx, &a, MB / 2, 1, "of the same block");
    const long before = touched();
    char *p = tt_alloc0(ctx, &a, 16 * MB, 1, "zeros");
    tt_real *x = tt_values0_in(ctx, &a, 2 * MB, "values");
    expect(touched() - before < 1024, "%ld KB are touched", touched() - before);
    if (!expect(first && rest && p && x, "%s", tt_message(ctx))) return;
    memset(rest, 1, MB / 2);
    memset(p, 1, 16 * MB);
    tt_arena_reset(&a, m);
    for (size_t n = MB / 2; n <= 16 * MB; n *= 32) {
        const char *again = tt_alloc0(ctx, &a, (int64_t)n, 1, "zeros");
        expect(again && (again == rest || again == p) && !again[0]
               && !memcmp(again, again + 1, n - 1), "%zu bytes again", n);
    }
    tt_arena_free(&a);
}

/* Blocks that are files: zero, and without a name. */
static void test_arena_files(void)
{
    tt_arena a = {.folder = folder};
    const char *p = tt_alloc(ctx, &a, 3 * MB, 1, "in a file");
    expect(p && !p[0] && !memcmp(p, p + 1, 3 * MB - 1), "zero");
    expect(rmdir(folder) == 0, "no name is left in the folder");
    expect(!tt_alloc(ctx, &a, 3 * MB, 1, "more"), "no folder any more");
    expect(ctx->status == TT_EIO && strstr(tt_message(ctx), folder), "said: %s",
           tt_message(ctx));
    tt_clear(ctx);
    tt_arena_free(&a);
}

static void test_arena(void)
{
    tt_arena a = {0};
    char *p = tt_alloc(ctx, &a, 100, 1, "p");
    expect((uintptr_t)p % 64 == 0, "64-byte alignment");
    memset(p, 1, 100);
    tt_arena_mark m = tt_arena_here(&a);
    char *big = tt_alloc(ctx, &a, 3 << 20, 1, "big");
    memset(big, 2, 3 << 20);
    expect(p[99] == 1, "growth does not move what is there");
    size_t total = a.total;
    tt_arena_reset(&a, m);
    expect(a.total < total, "a reset leaves the blocks above the mark");
    expect(a.total + a.spare_bytes <= a.peak,
           "what is kept is within the peak");
    char *reused = tt_alloc(ctx, &a, 3 << 20, 1, "reused");
    expect(reused == big, "and is used again");
    tt_arena_reset(&a, m);
    char *larger = tt_alloc(ctx, &a, 4 << 20, 1, "larger");
    memset(larger, 3, 4 << 20);
    expect(a.total + a.spare_bytes <= a.peak, "also after growth");
    tt_arena_reset(&a, m);
    char *again = tt_alloc(ctx, &a, 10, 1, "again");
    expect(again == p + 128, "and continues after the mark");
    a.fail_after = 2;
    expect(tt_alloc(ctx, &a, 1, 1, "first") != NULL, "first allocation");
    expect(tt_alloc(ctx, &a, 1, 1, "the second") == NULL, "second fails");
    expect(ctx->status == TT_ENOMEM && strstr(tt_message(ctx), "the second"),
           "with a sentence: %s", tt_message(ctx));
    tt_clear(ctx);
    expect(tt_alloc(ctx, &a, INT64_MAX, 8, "absurd") == NULL, "absurd size");
    expect_status(ctx->status, TT_ENOMEM, "absurd size");
    tt_arena_free(&a);
}

/* Every 16-bit pattern goes to float and back. */
static void test_round_trips(void)
{
    int bad16 = 0, badb = 0;
    for (uint32_t u = 0; u < 65536; u++) {
        float f = tt_f32_from_f16((uint16_t)u);
        float b = tt_f32_from_bf16((uint16_t)u);
        bool nan16 = (u & 0x7fff) > 0x7c00, nanb = (u & 0x7fff) > 0x7f80;
        if (nan16 ? f == f : tt_f16_from_f32(f) != u) bad16++;
        if (nanb ? b == b : tt_bf16_from_f32(b) != u) badb++;
    }
    expect(bad16 == 0, "f16 round trip: %d patterns fail", bad16);
    expect(badb == 0, "bf16 round trip: %d patterns fail", badb);
}

/* Rounding: halfway cases go to even, all else to the nearer neighbour. */
static void test_rounding(void)
{
    int bad = 0;
    for (uint32_t u = 0; u < 0x7c00; u++) {
        float lo = tt_f32_from_f16((uint16_t)u);
        float hi = u == 0x7bff ? 65536.0f : tt_f32_from_f16((uint16_t)(u + 1));
        float mid = (lo + hi) * 0.5f;
        uint16_t even = (uint16_t)(u & 1 ? u + 1 : u);
        if (tt_f16_from_f32(mid) != even) bad++;
        if (tt_f16_from_f32(nextafterf(mid, 0)) != u) bad++;
        if (tt_f16_from_f32(nextafterf(mid, INFINITY)) != u + 1) bad++;
        if (tt_f16_from_f32(-mid) != (even | 0x8000)) bad++;
    }
    expect(bad == 0, "f16 rounding: %d cases fail", bad);
    bad = 0;
    for (uint32_t u = 0; u < 0x7f80; u++) {
        float lo = tt_f32_from_bf16((uint16_t)u), mid;
        uint32_t m = (u << 16) | 0x8000u;
        memcpy(&mid, &m, 4);
        uint16_t even = (uint16_t)(u & 1 ? u + 1 : u);
        if (tt_bf16_from_f32(mid) != even) bad++;
        if (tt_bf16_from_f32(nextafterf(mid, 0)) != u) bad++;
        if (tt_bf16_from_f32(nextafterf(mid, INFINITY)) != u + 1) bad++;
        if (tt_bf16_from_f32(lo) != u) bad++;
    }
    expect(bad == 0, "bf16 rounding: %d cases fail", bad);
}

static void test_fp8(void)
{
    expect(tt_f32_from_f8e4m3(0x7e) == 448.0f, "e4m3 largest");
    expect(tt_f32_from_f8e4m3(0x01) == 0x1p-9f, "e4m3 smallest");
    expect(tt_f32_from_f8e4m3(0xff) != tt_f32_from_f8e4m3(0xff), "e4m3 NaN");
    expect(tt_f32_from_f8e4m3(0xb8) == -1.0f, "e4m3 -1");
    expect(tt_f32_from_f8e5m2(0x7b) == 57344.0f, "e5m2 largest");
    expect(isinf(tt_f32_from_f8e5m2(0xfc)), "e5m2 -inf");
    expect(tt_f32_from_f8e5m2(0x01) == 0x1p-16f, "e5m2 smallest");
}

/* Every code of the small floats, against its definition. */
static void test_all_codes(void)
{
    static const struct { tt_dtype t; int ebits, mbits; bool ieee; } kind[] = {
        {TT_F16, 5, 10, true}, {TT_F8_E5M2, 5, 2, true},
        {TT_F8_E4M3, 4, 3, false}};
    for (int k = 0; k < 3; k++) {
        const int e = kind[k].ebits, m = kind[k].mbits;
        const int bias = (1 << (e - 1)) - 1;
        int bad = 0;
        for (uint32_t u = 0; u < 1u << (1 + e + m); u++) {
            const uint32_t ex = u >> m & ((1u << e) - 1);
            const uint32_t ma = u & ((1u << m) - 1);
            const unsigned char raw[2] = {(unsigned char)u,
                                          (unsigned char)(u >> 8)};
            double want = ex ? ldexp((double)(ma | 1u << m), (int)ex - bias - m)
                             : ldexp((double)ma, 1 - bias - m);
            float x;
            if (kind[k].ieee && ex == (1u << e) - 1)
                want = ma ? NAN : INFINITY;
            if (!kind[k].ieee && (u & 0x7f) == 0x7f) want = NAN;
            if (u >> (e + m)) want = -want;
            tt_widen_f32(&x, raw, kind[k].t, 1);
            if (isnan(want) ? !isnan(x)
                            : x != want || !signbit(x) != !signbit(want)) bad++;
        }
        expect(bad == 0, "%s: %d codes are wrong", tt_dtype_name(kind[k].t),
               bad);
    }
}

/* Pieces of a view: quantised types by whole blocks, and a scale. */
static void test_widen_at(void)
{
    unsigned char q[3][34] = {{0}};
    tt_real out[96], part[32];
    for (int b = 0; b < 3; b++) {
        q[b][1] = (unsigned char)(0x3c + 4 * b); /* d = 1, 2, 4 */
        for (int i = 0; i < 32; i++) q[b][2 + i] = (unsigned char)(i - 16);
    }
    tt_tensor t = tt_tensor_make(q, TT_Q8_0, 2, (int64_t[]){3, 32});
    expect(tt_tensor_bytes(&t) == 3 * 34 && tt_dtype_block(TT_Q8_0) == 32,
           "size of blocks");
    tt_widen_at(out, &t, 0, 96);
    expect(out[0] == -16 && out[33] == -30 && out[95] == 60, "Q8_0");
    t.scale = 0.5f;
    tt_widen_at(part, &t, 64, 32);
    expect(part[0] == -32 && part[31] == 30, "one block, scaled");
    expect(tt_dtype_from_name("Q8_0") == TT_NONE && tt_dtype_is_real(TT_Q8_0)
               && !tt_dtype_is_real(TT_I8), "what Q8_0 is");
    t = tt_tensor_reshape(&t, 1, (int64_t[]){96});
    expect(t.scale == 0.5f && t.dim[0] == 96, "reshape keeps the scale");
}

static void test_widen(void)
{
    /* all stored one byte off alignment */
    unsigned char raw[1 + 8 * 8];
    tt_real out[4];
    float f[3] = {1.5f, -0x1p-140f, 3e38f};
    memcpy(raw + 1, f, sizeof f);
    tt_swap_stored(raw + 1, TT_F32, 3);
    tt_widen(out, raw + 1, TT_F32, 3);
    expect(out[0] == f[0] && out[1] == f[1] && out[2] == f[2], "F32");
    int64_t i[2] = {-5, 1 << 20};
    memcpy(raw + 1, i, sizeof i);
    tt_swap_stored(raw + 1, TT_I64, 2);
    tt_widen(out, raw + 1, TT_I64, 2);
    expect(out[0] == -5 && out[1] == 1 << 20, "I64");
    uint16_t b[2] = {0xc000, 0x0001};
    memcpy(raw + 1, b, sizeof b);
    tt_swap_stored(raw + 1, TT_BF16, 2);
    tt_widen(out, raw + 1, TT_BF16, 2);
    expect(out[0] == -2 && out[1] == (tt_real)0x1p-133, "BF16");
    expect(tt_dtype_from_name("BF16") == TT_BF16
           && tt_dtype_from_name("bf16") == TT_NONE,
           "names are case-sensitive");
}

static char seen[256];

static void remember(void *user, const char *path, tt_dtype dtype, int rank,
                     const int64_t *dim, const void *data)
{
    (void)user;
    (void)data;
    snprintf(seen, sizeof seen, "%s %s %d %lld", path, tt_dtype_name(dtype),
             rank, (long long)dim[0]);
}

static void test_taps(void)
{
    tt_real x[6] = {0};
    ctx->tap = remember;
    size_t a = tt_scope(ctx, "chunk.%d", 3), b = tt_scope(ctx, "step.%d", 1);
    TT_TAP(ctx, "x0", x, 2, 3);
    char want[64];
    snprintf(want, sizeof want, "chunk.3/step.1/x0 %s 2 2",
             sizeof(tt_real) == 8 ? "F64" : "F32");
    expect(!strcmp(seen, want), "tap saw '%s', expected '%s'", seen, want);
    tt_scope_end(ctx, b);
    tt_scope_end(ctx, a);
    TT_TAP(ctx, "x0", x, 6);
    expect(!strncmp(seen, "x0 ", 3), "scope left: '%s'", seen);
    ctx->tap = NULL;
}

int main(void)
{
    ctx = test_begin("core/core");
    test_status();
    test_page();
    test_empty();
    test_sizes();
    test_arena();
    test_arena_turns();
    test_arena_fit();
    if (folder_make()) {
        test_arena_zeros();
        test_arena_files();
    }
    test_round_trips();
    test_rounding();
    test_fp8();
    test_all_codes();
    test_widen();
    test_widen_at();
    test_taps();
    return test_end();
}
