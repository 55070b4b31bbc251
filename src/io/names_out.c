/* names_out.c: Wan's names in the words of Diffusers and Hugging Face.
 *
 * Source  diffusers convert_wan_to_diffusers.py, transformers UMT5EncoderModel
 * SPDX-License-Identifier: Apache-2.0
 *
 * The way back is names.c; a test goes both ways with every name. */
#include <stdio.h>
#include <string.h>

#include "io/names.h"
#include "io/bytes.h"

typedef struct leading {
    const char *from, *to;
} leading;

/* Replace the first matching leading text; a copy when none matches. */
static void names_out_swap(char *out, const char *in, const leading *table)
{
    for (const leading *r = table; r->from; r++)
        if (starts(in, r->from)) {
            strcpy(out, r->to);
            strcat(out, in + strlen(r->from));
            return;
        }
    strcpy(out, in);
}

/* "<head>N.<rest>": NULL when `in` is not of that form, else rest and N. */
static const char *numbered(int *number, const char *in, const char *head)
{
    if (!starts(in, head)) return NULL;
    const char *p = in + strlen(head);
    size_t n = strspn(p, "0123456789");
    if (n == 0 || n > 6 || p[n] != '.' || sscanf(p, "%6d", number) != 1)
        return NULL;
    return p + n + 1;
}

static void dit_out(char *out, const char *in)
{
    static const leading global[] = {
        {"text_embedding.0.", "condition_embedder.text_embedder.linear_1."},
        {"text_embedding.2.", "condition_embedder.text_embedder.linear_2."},
        {"time_embedding.0.", "condition_embedder.time_embedder.linear_1."},
        {"time_embedding.2.", "condition_embedder.time_embedder.linear_2."},
        {"time_projection.1.", "condition_embedder.time_proj."},
        {"head.modulation", "scale_shift_table"},
        {"head.head.", "proj_out."},
        {NULL, NULL}};
    static const leading block[] = {
        {"modulation", "scale_shift_table"},
        {"self_attn.o.", "attn1.to_out.0."},
        {"self_attn.norm_", "attn1.norm_"},
        {"self_attn.", "attn1.to_"},
        {"cross_attn.o.", "attn2.to_out.0."},
        {"cross_attn.norm_", "attn2.norm_"},
        {"cross_attn.", "attn2.to_"},
        {"norm3.", "norm2."},
        {"ffn.0.", "ffn.net.0.proj."},
        {"ffn.2.", "ffn.net.2."},
        {NULL, NULL}};
    int i;
    const char *rest = numbered(&i, in, "blocks.");
    if (rest) names_out_swap(out + sprintf(out, "blocks.%d.", i), rest, block);
    else names_out_swap(out, in, global);
}

static void t5_out(char *out, const char *in)
{
    static const leading global[] = {
        {"token_embedding.", "shared."},
        {"norm.", "encoder.final_layer_norm."},
        {NULL, NULL}};
    static const leading block[] = {
        {"norm1.", "layer.0.layer_norm."},
        {"pos_embedding.embedding.",
         "layer.0.SelfAttention.relative_attention_bias."},
        {"attn.", "layer.0.SelfAttention."},
        {"norm2.", "layer.1.layer_norm."},
        {"ffn.gate.0.", "layer.1.DenseReluDense.wi_0."},
        {"ffn.fc1.", "layer.1.DenseReluDense.wi_1."},
        {"ffn.fc2.", "layer.1.DenseReluDense.wo."},
        {NULL, NULL}};
    int i;
    const char *rest = numbered(&i, in, "blocks.");
    if (rest)
        names_out_swap(out + sprintf(out, "encoder.block.%d.", i), rest, block);
    else names_out_swap(out, in, global);
}

/* Four stages of three residual blocks, the first three with an upsampler. */
static const char *up_block(char *out, const char *in, const leading *unit)
{
    enum { RESNETS = 3 };
    int i;
    const char *rest = numbered(&i, in, "decoder.upsamples.");
    if (!rest) return NULL;
    int n = sprintf(out, "decoder.up_blocks.%d.", i / (RESNETS + 1));
    if (i % (RESNETS + 1) < RESNETS) {
        n += sprintf(out + n, "resnets.%d.", i % (RESNETS + 1));
        names_out_swap(out + n, rest, unit);
    } else {
        sprintf(out + n, "upsamplers.0.%s", rest);
    }
    return out;
}

static void vae_out(char *out, const char *in)
{
    static const leading unit[] = {
        {"residual.0.gamma", "norm1.gamma"}, {"residual.2.", "conv1."},
        {"residual.3.gamma", "norm2.gamma"}, {"residual.6.", "conv2."},
        {"shortcut.", "conv_shortcut."},     {NULL, NULL}};
    static const leading global[] = {
        {"conv1.", "quant_conv."}, {"conv2.", "post_quant_conv."},
        {NULL, NULL}};
    static const leading half[] = {
        {"conv1.", "conv_in."}, {"head.0.gamma", "norm_out.gamma"},
        {"head.2.", "conv_out."}, {"middle.1.", "mid_block.attentions.0."},
        {NULL, NULL}};
    int i;
    const char *rest;
    if (up_block(out, in, unit)) return;
    if ((rest = numbered(&i, in, "encoder.downsamples."))) {
        names_out_swap(out + sprintf(out, "encoder.down_blocks.%d.", i), rest,
                       unit);
    } else if (starts(in, "encoder.") || starts(in, "decoder.")) {
        memcpy(out, in, 8);
        rest = numbered(&i, in + 8, "middle.");
        if (rest && (i == 0 || i == 2))
            names_out_swap(out + 8 + sprintf(out + 8, "mid_block.resnets.%d.",
                                             i / 2), rest, unit);
        else
            names_out_swap(out + 8, in + 8, half);
    } else {
        names_out_swap(out, in, global);
    }
}

void names_from_wan(char *out, const char *in, tt_model_kind kind)
{
    switch (kind) {
    case TT_MODEL_DIT: dit_out(out, in); break;
    case TT_MODEL_VAE: vae_out(out, in); break;
    case TT_MODEL_T5: t5_out(out, in); break;
    default: strcpy(out, in);
    }
}
