/* fuzz_lora.c: a LoRA with other extents, types and names, or left-out keys.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is taken must be merged without harm, into a few weights of a
 * transformer and of a text encoder. */
#include "io/weights.h"
#include "tests/fuzz/fuzz.h"

static const fuzz_tensor whole[] = {
    {"diffusion_model.blocks.0.self_attn.q.lora_A.weight", TT_F32, 2,
     {4, 8, 1, 1, 1}, -3, 7},
    {"diffusion_model.blocks.0.self_attn.q.lora_B.weight", TT_F32, 2,
     {8, 4, 1, 1, 1}, -3, 9},
    {"lora_unet_blocks_1_ffn_0.lora_down.weight", TT_F16, 2, {3, 8, 1, 1, 1},
     -2, 5},
    {"lora_unet_blocks_1_ffn_0.lora_up.weight", TT_F16, 2, {12, 3, 1, 1, 1},
     -4, 9},
    {"lora_unet_blocks_1_ffn_0.alpha", TT_F32, 0, {1, 1, 1, 1, 1}, 2, 3},
    {"patch_embedding.lora_down.weight", TT_F32, 5, {2, 16, 1, 2, 2}, -5, 11},
    {"patch_embedding.lora_up.weight", TT_F32, 2, {8, 2, 1, 1, 1}, -5, 11},
    {"transformer.proj_out.diff_b", TT_BF16, 1, {4, 1, 1, 1, 1}, -3, 9},
    {"diffusion_model.blocks.2.diff_m", TT_F32, 3, {1, 6, 8, 1, 1}, -5, 11},
    {"blocks.0.norm3.diff", TT_F32, 1, {8, 1, 1, 1, 1}, -5, 11},
    {"lora_te1_encoder_block_0_layer_0_SelfAttention_q.lora_down.weight",
     TT_F32, 2, {2, 9, 1, 1, 1}, -3, 7},
    {"lora_te1_encoder_block_0_layer_0_SelfAttention_q.lora_up.weight", TT_F32,
     2, {5, 2, 1, 1, 1}, -3, 7},
};
static const fuzz_tensor transformer[] = {
    {"blocks.0.self_attn.q.weight", TT_F32, 2, {8, 8, 1, 1, 1}, -3, 7},
    {"blocks.1.ffn.0.weight", TT_BF16, 2, {12, 8, 1, 1, 1}, -3, 7},
    {"patch_embedding.weight", TT_F16, 5, {8, 16, 1, 2, 2}, -3, 7},
    {"head.head.bias", TT_F32, 1, {4, 1, 1, 1, 1}, -3, 7},
    {"blocks.2.modulation", TT_F32, 3, {1, 6, 8, 1, 1}, -3, 7},
    {"blocks.0.norm3.weight", TT_F32, 1, {8, 1, 1, 1, 1}, -3, 7},
    {"blocks.0.norm3.bias", TT_I32, 1, {8, 1, 1, 1, 1}, -3, 7},
};
static const fuzz_tensor text_encoder[] = {
    {"blocks.0.attn.q.weight", TT_F32, 2, {5, 9, 1, 1, 1}, -3, 7},
    {"token_embedding.weight", TT_F32, 2, {4, 9, 1, 1, 1}, -3, 7},
};
#define MODEL(list, kind, lora, end)                                           \
    merge(ctx, fuzz_tensors(list, sizeof list / sizeof *list, NULL, 0, end),   \
          kind, lora)

/* Open a model with it and ask for every weight. */
static void merge(tt_ctx *ctx, const char *model, tt_model_kind kind,
                  const char *lora)
{
    const tt_weights_options o = {.ema = -1, .lora = lora};
    tt_weights *w = NULL;
    tt_weights_open(ctx, &w, model, kind, &o);
    for (int64_t i = 0; i < tt_weights_count(w) && !ctx->status; i++)
        tt_weights_find(w, tt_weights_name(w, i));
    fuzz_settle();
    tt_weights_close(w);
}

/* Bytes that begin with 255 are the file itself. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char words[300];
    tt_file *f = NULL;
    if (size > 4096) return 0;
    tt_ctx *ctx = fuzz_ctx();
    const char *path = size && *data == 255
                     ? fuzz_file(data + 1, size - 1, ".lora")
                     : fuzz_tensors(whole, sizeof whole / sizeof *whole, data,
                                    size, ".lora");
    if (!tt_file_open(ctx, &f, path))
        tt_lora_describe(ctx, words, sizeof words, f);
    fuzz_settle();
    tt_file_close(f);
    MODEL(transformer, TT_MODEL_DIT, path, ".dit");
    MODEL(text_encoder, TT_MODEL_T5, path, ".t5");
    return 0;
}
