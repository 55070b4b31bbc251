/* test_inside.c: the tokenizer that a file of weights carries gives the ids of
 * spiece.model. Self-made files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness.h"
#include "text/spm.h"

static tt_ctx *ctx;
static tt_tokenizer *want;
static unsigned char file[1 << 16];
static size_t size;

static void put(uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) file[size++] = (unsigned char)(v >> 8 * i);
}

static void put_text(const void *s, size_t n)
{
    put(n, 8);
    memcpy(file + size, s, n);
    size += n;
}

static void put_key(const char *key, unsigned type)
{
    char full[80];
    snprintf(full, sizeof full, "tokenizer.ggml.%s", key);
    put_text(full, strlen(full));
    put(type, 4);
}

/* What is wrong with the file. */
enum { RIGHT, NO_TYPES, FEW_SCORES, LLAMA, NO_TOKENS, FLOAT_TYPES, BAD_TYPE,
       NAN_SCORE, BAD_EOS, FLOAT_EOS, BAD_PAD, WRONGS };

static void put_tokens(int wrong)
{
    put_key(wrong == NO_TOKENS ? "merges" : "tokens", 9);
    put(8, 4);
    put((uint64_t)want->n, 8);
    for (int64_t i = 0; i < want->n; i++)
        put_text(want->piece[i].s, (size_t)want->piece[i].len);
}

static void put_scores(int wrong)
{
    const int64_t n = want->n - (wrong == FEW_SCORES);
    put_key("scores", 9);
    put(6, 4);
    put((uint64_t)n, 8);
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &want->piece[i].score, 4);
        put(wrong == NAN_SCORE && i == 9 ? 0x7fc00000 : u, 4);
    }
}

static void put_types(int wrong)
{
    put_key("token_type", 9);
    put(wrong == FLOAT_TYPES ? 6 : 5, 4);
    put((uint64_t)want->n, 8);
    for (int64_t i = 0; i < want->n; i++)
        put(wrong == BAD_TYPE && i == 5 ? 77 : (uint32_t)want->piece[i].type,
            4);
}

static void make_gguf(int wrong)
{
    size = 0;
    put(0x46554747, 4);
    put(3, 4);
    put(0, 8);
    put(wrong == NO_TYPES ? 7 : 8, 8);
    put_key("model", 8);
    put_text(wrong == LLAMA ? "llama" : "t5", wrong == LLAMA ? 5 : 2);
    put_tokens(wrong);
    put_scores(wrong);
    if (wrong != NO_TYPES) put_types(wrong);
    put_key("eos_token_id", wrong == FLOAT_EOS ? 6 : 4);
    put(wrong == BAD_EOS ? 2 : (uint32_t)want->eos, 4);
    put_key("padding_token_id", 4);
    put(wrong == BAD_PAD ? 3 : (uint32_t)want->pad, 4);
    put_key("add_space_prefix", 7);
    put(want->add_dummy_prefix, 1);
    put_key("remove_extra_whitespaces", 7);
    put(want->remove_extra_spaces, 1);
}

static void same_ids(const char *what, const tt_tokenizer *got)
{
    static const char *const texts[] = {"a red circle moves left", "",
                                        " caf\xc3\xa9  \xe2\x84\x96 5 <s></s>",
                                        "\xf0\x9f\x90\x88 \xff zz"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int64_t *a, *b, n, m;
        const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
        tt_tokenizer_encode(ctx, &ctx->scratch, &a, &n, want, texts[i],
                            strlen(texts[i]));
        tt_tokenizer_encode(ctx, &ctx->scratch, &b, &m, got, texts[i],
                            strlen(texts[i]));
        expect(n == m && !memcmp(a, b, (size_t)n * sizeof *a), "%s: text %zu",
               what, i);
        tt_arena_reset(&ctx->scratch, mark);
    }
    expect(got->eos == want->eos && got->pad == want->pad, "%s: </s>, <pad>",
           what);
}

static void gguf(void)
{
    static const char *const words[WRONGS] = {
        [NO_TYPES] = "unknown piece", [FEW_SCORES] = "belong together",
        [LLAMA] = "not t5", [NO_TOKENS] = "no tokens",
        [FLOAT_TYPES] = "belong together", [BAD_TYPE] = "unknown type",
        [NAN_SCORE] = "not finite",
        [BAD_EOS] = "eos_token_id is 2, expected 1",
        [FLOAT_EOS] = "eos_token_id is no number",
        [BAD_PAD] = "padding_token_id is 3, expected 0"};
    for (int wrong = 0; wrong < WRONGS; wrong++) {
        tt_tokenizer *got;
        make_gguf(wrong);
        tt_tokenizer_open_bytes(ctx, &got, file, size, "t5.gguf");
        if (wrong)
            expect(!got && strstr(tt_message(ctx), words[wrong])
                       && strstr(tt_message(ctx), "t5.gguf"),
                   "wrong %d: %s", wrong, got ? "accepted" : tt_message(ctx));
        else if (expect_ok(ctx->status, "GGUF"))
            same_ids("GGUF", got);
        tt_clear(ctx);
        tt_tokenizer_close(got);
    }
    make_gguf(RIGHT);
    for (size_t n = 0; n < size; n += 97) {
        tt_tokenizer *got;
        tt_tokenizer_open_bytes(ctx, &got, file, n, "cut.gguf");
        expect(!got, "cut after %zu bytes: accepted", n);
        tt_clear(ctx);
        tt_tokenizer_close(got);
    }
}

static void safetensors(const char *spiece, tt_dtype type, int64_t n, bool ok)
{
    char path[600];
    tt_st_writer *o;
    tt_tokenizer *got;
    FILE *f = fopen(spiece, "rb");
    size = f ? fread(file, 1, sizeof file, f) : 0;
    if (f) fclose(f);
    if (n < 0) n = (int64_t)size;
    tmp_path(path, sizeof path, "inside.safetensors");
    expect_ok(tt_st_create(ctx, &o, path), path);
    tt_st_add(o, "spiece_model", type, 1, (int64_t[]){n}, file);
    tt_st_add(o, "shared.weight", TT_F32, 1, (int64_t[]){2}, file);
    expect_ok(tt_st_finish(o), path);
    tt_tokenizer_open(ctx, &got, path);
    if (ok && expect_ok(ctx->status, "safetensors"))
        same_ids("safetensors", got);
    if (!ok)
        expect(!got && strstr(tt_message(ctx), path), "%s, %lld: accepted",
               tt_dtype_name(type), (long long)n);
    tt_clear(ctx);
    tt_tokenizer_close(got);
    expect(spm_inside(ctx, path), "spm_inside");
    unlink(path);
}

int main(void)
{
    ctx = test_begin("text/inside");
    const char *spiece = ref_path("demo/google/umt5-xxl/spiece.model");
    if (expect_ok(tt_tokenizer_open(ctx, &want, spiece), spiece)) {
        gguf();
        safetensors(spiece, TT_U8, -1, true);
        safetensors(spiece, TT_I8, -1, true);
        safetensors(spiece, TT_U8, 5000, false);
        safetensors(spiece, TT_U8, 0, false);
        safetensors(spiece, TT_F32, 100, false);
        expect(!spm_inside(ctx, spiece) && !spm_inside(ctx, "none"),
               "spm_inside of others");
    }
    tt_tokenizer_close(want);
    return test_end();
}
