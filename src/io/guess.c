/* guess.c: what a file that is not the expected model probably is.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   A model family has a part of a name that no other has; relatives of
 *         Wan's transformer also differ in the shape of patch_embedding. Only
 *         for messages: nothing is accepted because of a guess. */
#include "io/guess.h"

#include <stdio.h>
#include <string.h>

#include "io/weights.h"

#define LORA "it is no model by itself; give it with --lora FILE, and the "    \
             "model it was made for"

#define QUANTISED "its weights are not what they seem; take the model in "     \
                  "bf16, in fp8 with scales or in GGUF"

/* First match wins: additions to a model stand in front of the model. */
static const struct { const char *part, *guess, *why; } signs[] = {
    {".weight_scale_2", "a file quantised as NVFP4", QUANTISED},
    {".weight_scale_inv", "a file quantised in blocks (weight_scale_inv)",
     QUANTISED},
    {".quant_state.bitsandbytes", "a file quantised by bitsandbytes",
     QUANTISED},
    {".SCB", "a file quantised by bitsandbytes", QUANTISED},
    {".absmax", "a file quantised by bitsandbytes", QUANTISED},
    {".qweight", "a file quantised by GPTQ, AWQ or Nunchaku", QUANTISED},
    {".qzeros", "a file quantised by GPTQ or AWQ", QUANTISED},
    {".biases", "a file quantised by MLX", QUANTISED},
    {".weight_zero_point", "a file quantised with zero points", QUANTISED},
    {".lora_", "a LoRA", LORA},
    {".lora.", "a LoRA", LORA},
    {"_lora.", "a LoRA", LORA},
    {".diff_b", "a LoRA", LORA},
    {".diff_m", "a LoRA", LORA},
    {"lokr_", "a LoKr", "only LoRA is merged; merge it elsewhere"},
    {"hada_", "a LoHa", "only LoRA is merged; merge it elsewhere"},
    {"vace_", "VACE transformer", "it edits given videos; a plain "
     "text-to-video (T2V) model is needed"},
    {"control_adapter.", "Fun-Control transformer", "it needs control "
     "videos; a plain text-to-video (T2V) model is needed"},
    {"audio_injector.", "S2V transformer", "it needs speech; a plain "
     "text-to-video (T2V) model is needed"},
    {"face_adapter.", "Animate transformer", "it needs a driving video; a "
     "plain text-to-video (T2V) model is needed"},
    {"fps_embedding.", "a SkyReels-V2 DF transformer", "it reads the frame "
     "rate and a noise level of every frame; a plain text-to-video (T2V) model "
     "is needed"},
    {"to_gate_compress.", "a FastWan transformer", "its attention is sparse "
     "(VSA), with a gate of its own; a plain text-to-video (T2V) model is "
     "needed"},
    {".proj_l.", "a TurboDiffusion transformer", "its attention is sparse and "
     "linear (SLA); a plain text-to-video (T2V) model is needed"},
    {"delta_embedder.", "an AnyFlow transformer", "it reads a second time; a "
     "plain text-to-video (T2V) model is needed"},
    {"ref_conv.", "a Phantom transformer", "it needs reference pictures; a "
     "plain text-to-video (T2V) model is needed"},
    {"audio_proj", "a speech-driven transformer", "it needs speech; a plain "
     "text-to-video (T2V) model is needed"},
    {"audio_cross_attn", "a speech-driven transformer", "it needs speech; a "
     "plain text-to-video (T2V) model is needed"},
    {"cam_encoder.", "a camera-controlled transformer", "it needs a camera's "
     "path; a plain text-to-video (T2V) model is needed"},
    {"dwpose_embedding.", "a UniAnimate transformer", "it needs poses; a plain "
     "text-to-video (T2V) model is needed"},
    {"ip_adapter", "a transformer with an adapter for pictures", "it needs "
     "reference pictures; a plain text-to-video (T2V) model is needed"},
    {"img_emb.", "I2V transformer", "it is image-to-video; a text-to-video "
     "(T2V) model is needed"},
    {"image_embedder.", "I2V transformer", "it is image-to-video; a "
     "text-to-video (T2V) model is needed"},
    {"k_img.", "I2V transformer", "it is image-to-video; a text-to-video "
     "(T2V) model is needed"},
    {"add_k_proj.", "I2V transformer", "it is image-to-video; a "
     "text-to-video (T2V) model is needed"},
    {"decoder.upsamples.0.upsamples.", "a Wan2.2 VAE (48 channels)",
     "Wan2.1 models need the Wan2.1 VAE"},
    {"encoder.downsamples.0.downsamples.", "a Wan2.2 VAE (48 channels)",
     "Wan2.1 models need the Wan2.1 VAE"},
    {"decoder.up.0.block.0.", "an image VAE (Stable Diffusion or FLUX)",
     "the Wan2.1 video VAE is needed"},
    {"double_blocks.0.", "a FLUX or HunyuanVideo transformer",
     "only Wan2.1 text-to-video models are read"},
    {"joint_blocks.0.", "a Stable Diffusion 3 transformer",
     "only Wan2.1 text-to-video models are read"},
    {"input_blocks.1.", "a Stable Diffusion U-Net",
     "only Wan2.1 text-to-video models are read"},
    {"down_blocks.0.attentions.", "a Diffusers U-Net",
     "only Wan2.1 text-to-video models are read"},
    {"patchify_proj.", "an LTX-Video transformer",
     "only Wan2.1 text-to-video models are read"},
    {"text_model.encoder.layers.", "a CLIP text encoder",
     "Wan uses umT5-XXL"},
    {"visual.transformer.resblocks.", "a CLIP image encoder",
     "only image-to-video models need it"},
    {"layers.0.self_attn.q_proj.", "a language model", "Wan uses umT5-XXL"},
    {"decoder.block.0.", "a T5 with decoder", "the umT5-XXL encoder is "
     "needed"},
    {"exp_avg", "the state of an optimiser", "the weights are needed"},
};

static const tt_entry *ending(const tt_file *f, const char *tail)
{
    size_t m = strlen(tail);
    for (int64_t i = 0; i < tt_file_count(f); i++) {
        const tt_entry *e = tt_file_entry(f, i);
        size_t n = strlen(e->name);
        if (n >= m && !strcmp(e->name + n - m, tail)) return e;
    }
    return NULL;
}

/* "Wan2.1-14B" from the width of the patch embedding. */
static const char *size_of(int64_t dim)
{
    return dim == 1536 ? "Wan2.1-1.3B " : dim == 5120 ? "Wan-14B "
         : dim == 3072 ? "Wan2.2-5B " : "Wan ";
}

/* umT5 has a position table in every block, T5 only in the first. */
static const char *other_t5(const tt_file *f)
{
    return ending(f, "block.0.layer.0.SelfAttention.relative_attention_bias."
                     "weight")
           && ending(f, "block.1.layer.0.SelfAttention.q.weight")
           && !ending(f, "block.1.layer.0.SelfAttention."
                         "relative_attention_bias.weight")
               ? "a T5 text encoder (as FLUX and Stable Diffusion 3 use it): "
                 "not supported because Wan uses umT5-XXL"
               : NULL;
}

enum { SIGNS = sizeof signs / sizeof *signs };

/* The first sign before `best` that a name has; `best` where it has none. */
static size_t sign_of(const char *name, size_t best)
{
    for (size_t k = 0; k < best; k++)
        if (strstr(name, signs[k].part)) return k;
    return best;
}

static const char *say_sign(char *buf, size_t n, size_t k, int64_t dim)
{
    const char *g = signs[k].guess;
    const bool wan = strncmp(g, "a ", 2) && strncmp(g, "an ", 3)
                  && strncmp(g, "the ", 4);
    snprintf(buf, n, "%s%s%s: not supported because %s", wan ? "a " : "",
             wan ? size_of(dim) : "", g, signs[k].why);
    return buf;
}

/* Relatives with other latents, by the weight of patch_embedding; or NULL. */
static const char *by_channels(char *buf, size_t n, const tt_tensor *p)
{
    const int64_t in = p && p->rank == 5 ? p->dim[1] : 0;
    if (in != 36 && in != 48) return NULL;
    snprintf(buf, n, "a %s%s: not supported because it takes %lld latent "
             "channels, expected 16; a plain text-to-video (T2V) model is "
             "needed", size_of(p->dim[0]), in == 36 ? "I2V transformer"
             : "TI2V transformer", (long long)in);
    return buf;
}

const char *guess_model(char *buf, size_t n, const tt_file *f)
{
    const tt_entry *p = ending(f, "patch_embedding.weight");
    int64_t dim = p && p->t.rank == 5 ? p->t.dim[0] : 0;
    size_t best = SIGNS;
    for (int64_t i = 0; i < tt_file_count(f); i++)
        best = sign_of(tt_file_entry(f, i)->name, best);
    if (best < SIGNS) return say_sign(buf, n, best, dim);
    if (by_channels(buf, n, p ? &p->t : NULL)) return buf;
    return other_t5(f);
}

const char *guess_weights(char *buf, size_t n, const tt_weights *w)
{
    const weight *p = weights_item(w, "patch_embedding.bias");
    size_t best = SIGNS;
    if (w->kind == TT_MODEL_T5) return other_t5(w->file);
    if (w->kind != TT_MODEL_DIT) return NULL;
    for (int64_t i = 0; i < w->count; i++)
        best = sign_of(w->item[i].stored, best);
    const weight *first = weights_item(w, "patch_embedding.weight");
    if (best == SIGNS) return by_channels(buf, n, first ? &first->t : NULL);
    return say_sign(buf, n, best, p && p->t.rank == 1 ? p->t.dim[0] : 0);
}
