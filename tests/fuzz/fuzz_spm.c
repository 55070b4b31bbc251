/* fuzz_spm.c: the SentencePiece model reader, and the tokenizer made
 * from it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"
#include "text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "A \xe2\x96\x81 cat\xc3\xa9 <extra_id_0>, "
                               "\xef\xbc\xa1\xe3\x81\x82 \xff\xfe 12";
    tt_ctx *ctx = fuzz_ctx();
    tt_tokenizer *tok;
    tt_arena a = {0};
    if (!tt_tokenizer_open_bytes(ctx, &tok, data, size, "fuzz.model")) {
        int64_t *ids, n;
        size_t len;
        tt_tokenizer_encode(ctx, &a, &ids, &n, tok, text, sizeof text - 1);
        for (int64_t i = -1; i <= tt_tokenizer_size(tok) && i < 1000; i++)
            tt_tokenizer_piece(tok, i, &len);
        tt_tokenizer_close(tok);
    }
    tt_arena_free(&a);
    fuzz_settle();
    return 0;
}
