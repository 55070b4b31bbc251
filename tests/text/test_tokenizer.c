/* test_tokenizer.c: token ids against SentencePiece, and hostile models.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  ref_data/t5_tokenizer: every id equal, malformed UTF-8
 *                included, and the 512-token sequences of Wan.
 * Properties     a truncated or damaged model is refused or usable, never
 *                more (run under address and undefined-behaviour sanitizers);
 *                an accepted one gives ids inside the vocabulary. */
#include "tests/text/tsv.h"

#include "text/text.h"

#define LENGTH 512

static bool same_ids(const int64_t *a, int64_t na, const int64_t *b,
                     int64_t nb)
{
    return na == nb && (na == 0 || memcmp(a, b, (size_t)na * sizeof *a) == 0);
}

static void check_raw(tt_ctx *ctx, const tt_tokenizer *tok, const char *path)
{
    static int64_t want[16384];
    tsv t;
    if (!tsv_open(&t, path)) return;
    while (tsv_next(&t)) {
        size_t n = tsv_hex(t.col[1]);
        int64_t nwant = tsv_ids(want, 16384, t.col[2]), ngot, *got;
        tt_arena_mark mark = tt_arena_here(&ctx->scratch);
        if (expect_ok(tt_tokenizer_encode(ctx, &ctx->scratch, &got, &ngot, tok,
                                          t.col[1], n), path))
            expect(same_ids(got, ngot, want, nwant),
                   "%s row %s: ids differ (%lld of them, expected %lld)", path,
                   t.col[0], (long long)ngot, (long long)nwant);
        tt_arena_reset(&ctx->scratch, mark);
    }
}

/* The _wan512 files list the sequence of the text as it stands (uncleaned). */
static void check_prompts(tt_ctx *ctx, const tt_tokenizer *tok,
                          const char *path)
{
    int64_t ids[LENGTH], mask[LENGTH], want[LENGTH];
    tsv t;
    if (!tsv_open(&t, path)) return;
    while (tsv_next(&t)) {
        size_t n = tsv_hex(t.col[1]);
        int64_t nwant = tsv_ids(want, LENGTH, t.col[3]);
        tt_token_row row = {.length = LENGTH, .ids = ids, .mask = mask};
        if (!expect_ok(tt_tokenizer_encode_prompt(ctx, &row, tok, t.col[1],
                                                  n, false), path))
            continue;
        const int64_t seq_len = row.seq_len;
        bool padded = true;
        for (int64_t i = 0; i < LENGTH; i++) {
            if (mask[i] != (i < seq_len)) padded = false;
            if (i >= seq_len && ids[i] != 0) padded = false;
        }
        expect(padded, "%s row %s: padding or mask", path, t.col[0]);
        expect(seq_len == atoll(t.col[2]) && same_ids(ids, seq_len, want,
                                                      nwant),
               "%s row %s: ids or seq_len %lld differ", path, t.col[0],
               (long long)seq_len);
    }
}

static void check_model(tt_ctx *ctx, const char *name)
{
    tt_tokenizer *tok;
    char path[256];
    snprintf(path, sizeof path, "%s", ref_path("t5_tokenizer/%s.model", name));
    if (!expect_ok(tt_tokenizer_open(ctx, &tok, path), path)) return;
    expect(tt_tokenizer_eos(tok) == 1 && tt_tokenizer_pad(tok) == 0,
           "%s: </s> is 1 and <pad> 0", name);
    check_raw(ctx, tok, ref_path("t5_tokenizer/%s.tsv", name));
    check_raw(ctx, tok, ref_path("t5_tokenizer/%s_invalid_utf8.tsv", name));
    check_prompts(ctx, tok, ref_path("t5_tokenizer/%s_wan512.tsv", name));
    tt_tokenizer_close(tok);
}

/* Open damaged bytes; if that works, encoding must as well. */
static bool survive(tt_ctx *ctx, const char *bytes, size_t n)
{
    static const char text[] =
        "A  fox\xe2\x96\x81runs \xef\xbc\xa1 24fps \xff <sep> \xf0\x9f\x98\x80";
    /* A copy of exactly n bytes, so that the sanitizer sees its end. */
    char *exact = malloc(n ? n : 1);
    if (n) memcpy(exact, bytes, n);
    tt_tokenizer *tok;
    tt_status s = tt_tokenizer_open_bytes(ctx, &tok, exact, n, "damaged");
    free(exact);
    if (s != TT_OK) {
        expect(s == TT_EFORMAT || s == TT_EUNSUPPORTED,
               "a damaged model fails with status %d", (int)s);
        expect(tok == NULL, "a refused model stays open");
        tt_clear(ctx);
        return false;
    }
    int64_t *ids, nids = 0, outside = 0;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_tokenizer_encode(ctx, &ctx->scratch, &ids, &nids, tok, text,
                        sizeof text - 1);
    for (int64_t i = 0; i < nids; i++)
        if (ids[i] < 0 || ids[i] >= tt_tokenizer_size(tok)) outside++;
    expect(outside == 0, "ids outside the vocabulary of a damaged model");
    tt_clear(ctx);
    tt_arena_reset(&ctx->scratch, mark);
    tt_tokenizer_close(tok);
    return true;
}

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *p = malloc(1 << 20);
    *n = f ? fread(p, 1, 1 << 20, f) : 0;
    if (f) fclose(f);
    expect(*n > 0, "cannot read %s", path);
    return p;
}

static void check_damage(tt_ctx *ctx, const char *name, size_t cut_step,
                         size_t flip_step)
{
    size_t n, refused = 0, cuts = 0, flips = 0;
    char *bytes = slurp(ref_path("t5_tokenizer/%s.model", name), &n);
    for (size_t k = 0; k < n; k += cut_step, cuts++)
        refused += !survive(ctx, bytes, k);
    /* A cut between two pieces is a shorter model; the settings follow the
     * pieces, so what is left is refused or simply differs. */
    expect(refused > cuts / 2, "%s: only %zu of %zu truncations refused", name,
           refused, cuts);
    for (size_t bit = 3; bit < 8 * n; bit += flip_step, flips++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        survive(ctx, bytes, n);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    expect(survive(ctx, bytes, n), "%s: the undamaged model is refused", name);
    free(bytes);
}

/* Small models written by hand, each wrong in one way. */
static void check_rules(tt_ctx *ctx)
{
    static const struct {
        const char *why, *bytes;
        size_t n;
    } bad[] = {
#define MODEL(why, s) {why, s, sizeof s - 1}
        MODEL("empty", ""),
        MODEL("no unknown piece", "\x0a\x03\x0a\x01" "a"),
        MODEL("two unknown pieces",
              "\x0a\x05\x0a\x01" "a\x18\x02\x0a\x05\x0a\x01" "b\x18\x02"),
        MODEL("duplicate", "\x0a\x05\x0a\x01" "u\x18\x02\x0a\x03\x0a\x01"
              "a\x0a\x03\x0a\x01" "a"),
        MODEL("empty piece", "\x0a\x05\x0a\x01" "u\x18\x02\x0a\x02\x0a\x00"),
        MODEL("unknown type", "\x0a\x05\x0a\x01" "u\x18\x07"),
        MODEL("group", "\x0a\x05\x0a\x01" "u\x18\x02\x23\x24"),
        MODEL("length beyond the end", "\x0a\x06\x0a\x01" "u\x18\x02"),
        MODEL("NaN score",
              "\x0a\x0a\x0a\x01" "u\x15\x00\x00\xc0\x7f\x18\x02"),
        MODEL("not UTF-8", "\x0a\x05\x0a\x01" "\xff\x18\x02"),
        MODEL("byte piece without fallback",
              "\x0a\x05\x0a\x01" "u\x18\x02\x0a\x0a\x0a\x06<0x41>\x18\x06"),
        MODEL("word model", "\x0a\x05\x0a\x01" "u\x18\x02\x12\x02\x18\x02"),
        MODEL("suffix", "\x0a\x05\x0a\x01" "u\x18\x02\x12\x03\xc0\x01\x01"),
        MODEL("charsmap without NUL",
              "\x0a\x05\x0a\x01" "u\x18\x02\x1a\x0b\x12\x09\x04\0\0\0"
              "\0\0\0\0x"),
        MODEL("charsmap trie size",
              "\x0a\x05\x0a\x01" "u\x18\x02\x1a\x0b\x12\x09\x05\0\0\0"
              "\0\0\0\0\0"),
        MODEL("eleven byte varint",
              "\x0a\x05\x0a\x01" "u\x18\x02\x20\xff\xff\xff\xff\xff\xff\xff"
              "\xff\xff\xff\x01")
#undef MODEL
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect(!survive(ctx, bad[i].bytes, bad[i].n), "accepted: %s",
               bad[i].why);
    static const char good[] = "\x0a\x05\x0a\x01" "u\x18\x02\x0a\x03\x0a\x01"
        "a\x1a\x0b\x12\x09\x04\0\0\0\0\0\0\0\0";
    expect(survive(ctx, good, sizeof good - 1), "a minimal model is refused");
}

/* "a" and "b" score -1, "ab" -2: the tie keeps the path found first, "ab". */
static void check_tie(tt_ctx *ctx)
{
    static const char model[] =
        "\x0a\x05\x0a\x01" "u\x18\x02"
        "\x0a\x08\x0a\x01" "a\x15\0\0\x80\xbf"
        "\x0a\x08\x0a\x01" "b\x15\0\0\x80\xbf"
        "\x0a\x09\x0a\x02" "ab\x15\0\0\0\xc0"
        "\x1a\x02\x18\0"; /* no dummy prefix */
    int64_t *ids = NULL, n = 0;
    tt_tokenizer *tok;
    if (!expect_ok(tt_tokenizer_open_bytes(ctx, &tok, model, sizeof model - 1,
                                           "tie"), "tie"))
        return;
    tt_tokenizer_encode(ctx, &ctx->scratch, &ids, &n, tok, "ab", 2);
    expect(n == 1 && ids[0] == 3, "a tie: %lld ids, expected the piece 'ab'",
           (long long)n);
    tt_tokenizer_close(tok);
}

int main(void)
{
    tt_ctx *ctx = test_begin("text/tokenizer");
    check_model(ctx, "pub_a");
    check_model(ctx, "pub_b");
    check_rules(ctx);
    check_tie(ctx);
    check_damage(ctx, "pub_b", 7, 97);
    check_damage(ctx, "pub_a", 4001, 24001);
    tt_tokenizer *tok;
    expect_status(tt_tokenizer_open(ctx, &tok, "no/such/spiece.model"), TT_EIO,
                  "a missing file");
    return test_end();
}
