/* published.c: the sizes of the published model, to plan without its weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  the files of Wan-AI/Wan2.1-T2V-1.3B and gdhe17/Self-Forcing: float32
 *         but for the text encoder, which is bfloat16. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "io/blank.h"
#include "run/parts.h"

/* PREFIX  of what messages call them: no folder of this name can be there */
#define PREFIX "Wan2.1-T2V-1.3B (sizes alone)/"

static const blank_size transformer[] = {
    {"patch_embedding.weight", 0, 5, {1536, 16, 1, 2, 2}},
    {"text_embedding.0.weight", 0, 2, {1536, 4096}},
    {"time_embedding.0.weight", 0, 2, {1536, 256}},
    {"blocks.%d.ffn.0.weight", 30, 2, {8960, 1536}},
    {"head.head.weight", 0, 2, {64, 1536}},
};
static const blank_size text_encoder[] = {
    {"token_embedding.weight", 0, 2, {256384, 4096}},
    {"blocks.%d.attn.q.weight", 24, 2, {4096, 4096}},
    {"blocks.0.pos_embedding.embedding.weight", 0, 2, {32, 64}},
    {"blocks.0.ffn.fc1.weight", 0, 2, {10240, 4096}},
    {"norm.weight", 0, 1, {4096}},
};
static const blank_size vae[] = {
    {"conv1.weight", 0, 5, {32, 32, 1, 1, 1}},
    {"conv2.weight", 0, 5, {16, 16, 1, 1, 1}},
    {"encoder.conv1.bias", 0, 1, {96}},
    {"decoder.head.0.gamma", 0, 4, {96, 1, 1, 1}},
};

static const struct {
    const char *name;
    tt_dtype dtype;
    int64_t bytes;             /* of the published file, about                */
    const blank_size *size;
    int n;
} parts[] = {
#define SIZES(list) list, sizeof list / sizeof *list
    [TT_MODEL_DIT] = {PREFIX "transformer", TT_F32, 5680000000,
                      SIZES(transformer)},
    [TT_MODEL_T5] = {PREFIX "text encoder", TT_BF16, 11362000000,
                     SIZES(text_encoder)},
    [TT_MODEL_VAE] = {PREFIX "VAE", TT_F32, 508000000, SIZES(vae)},
};

bool published_name(const char *model)
{
    static const char *const names[] = {
        "wan1.3b", "wan-1.3b", "wan2.1-1.3b", "wan2.1-t2v-1.3b",
        "wan-ai/wan2.1-t2v-1.3b", "t2v-1.3b"};
    for (size_t i = 0; model && i < sizeof names / sizeof *names; i++)
        if (!strcasecmp(model, names[i])) return access(model, F_OK) != 0;
    return false;
}

tt_status model_weights(tt_ctx *ctx, tt_weights **out, const tt_model_paths *p,
                        const char *path, tt_model_kind kind,
                        const tt_weights_options *opt)
{
    if (!p->sizes_alone || !p->model || strcmp(path, p->model))
        return tt_weights_open(ctx, out, path, kind, opt);
    if (opt->lora)
        return tt_fail(ctx, TT_EINVAL, "--lora needs the weights it is merged "
                       "into: name the folder of the model with -m");
    return weights_blank(ctx, out, parts[kind].name, parts[kind].dtype,
                         parts[kind].bytes, parts[kind].size, parts[kind].n);
}
