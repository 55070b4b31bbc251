/* names.c: wrapper prefixes, and the Diffusers and Hugging Face names of the
 * three models, in Wan's words.
 *
 * Source  diffusers convert_wan_to_diffusers.py (DiT and VAE), transformers
 *         UMT5EncoderModel, llama.cpp's names of T5; see the tables below.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Differs from Source in direction only: they go from Wan's names outwards,
 * we come back. Diffusers' transformer block calls Wan's norm3 norm2. */
#include "io/names.h"
#include "io/bytes.h"

#include <stdio.h>
#include <string.h>

const char *names_layout_text(names_layout l)
{
    switch (l) {
    case NAMES_WAN: return "Wan names";
    case NAMES_DIFFUSERS: return "Diffusers names";
    case NAMES_HF: return "Hugging Face names";
    case NAMES_LLAMA: return "llama.cpp names";
    default: return "unknown names";
    }
}

const char *names_kind_text(tt_model_kind kind)
{
    switch (kind) {
    case TT_MODEL_DIT: return "diffusion transformer";
    case TT_MODEL_VAE: return "VAE";
    case TT_MODEL_TINY_VAE: return "tiny VAE (TAEHV)";
    default: return "umT5 text encoder";
    }
}

/* ---- decorations and prefixes -------------------------------------------- */

static void remove_all(char *s, const char *word)
{
    size_t n = strlen(word);
    char *to = s;
    while (*s) {
        if (!strncmp(s, word, n)) s += n;
        else *to++ = *s++;
    }
    *to = '\0';
}

bool names_strip(char *name, tt_model_kind kind)
{
    enum { ANY = -1 };
    static const struct { const char *prefix; int kind; } known[] = {
        {"model.diffusion_model.", TT_MODEL_DIT},
        {"diffusion_model.", TT_MODEL_DIT},
        {"generator_ema.", TT_MODEL_DIT}, {"generator.", TT_MODEL_DIT},
        {"transformer.", TT_MODEL_DIT}, {"pipe.dit.", TT_MODEL_DIT},
        {"first_stage_model.", TT_MODEL_VAE},
        {"vae.", TT_MODEL_VAE},
        {"taehv.", TT_MODEL_TINY_VAE},
        {"text_encoders.umt5xxl.transformer.", TT_MODEL_T5},
        {"text_encoders.umt5xxl.", TT_MODEL_T5},
        {"text_encoders.", TT_MODEL_T5},
        {"umt5xxl.transformer.", TT_MODEL_T5}, {"umt5xxl.", TT_MODEL_T5},
        {"text_encoder.", TT_MODEL_T5},
        {"module.", ANY}, {"model.", ANY}, {"net.", ANY}};
    remove_all(name, "_fsdp_wrapped_module.");
    remove_all(name, "_checkpoint_wrapped_module.");
    remove_all(name, "_orig_mod.");
    /* ComfyUI's wrapped TAEHV: "taehv_decoder.1.weight" */
    if (kind == TT_MODEL_TINY_VAE && (starts(name, "taehv_decoder.")
                                      || starts(name, "taehv_encoder.")))
        memmove(name, name + 6, strlen(name + 6) + 1);
    /* No tensor's own name begins with one of these words, so wrappers may
     * be peeled off in whatever order they were put on. */
    for (size_t i = 0; i < sizeof known / sizeof *known;) {
        if (!starts(name, known[i].prefix)) {
            i++;
            continue;
        }
        if (known[i].kind != ANY && known[i].kind != (int)kind) return false;
        size_t n = strlen(known[i].prefix);
        memmove(name, name + n, strlen(name + n) + 1);
        i = 0;
    }
    return true;
}

/* ---- which naming -------------------------------------------------------- */

static bool any(const char *const *name, int64_t n, const char *prefix)
{
    for (int64_t i = 0; i < n; i++)
        if (starts(name[i], prefix)) return true;
    return false;
}

/* One more than the largest J of "decoder.up_blocks.0.resnets.J.". */
static int count_resnets(const char *const *name, int64_t n)
{
    int most = 0, j;
    for (int64_t i = 0; i < n; i++)
        if (sscanf(name[i], "decoder.up_blocks.0.resnets.%2d.", &j) == 1
            && j >= most)
            most = j + 1;
    return most;
}

names_map names_detect(const char *const *name, int64_t n,
                       tt_model_kind kind)
{
    /* the first sign that some name begins with says the layout */
    static const struct {
        tt_model_kind kind;
        names_layout layout;
        const char *begin;
    } sign[] = {
        {TT_MODEL_DIT, NAMES_DIFFUSERS, "condition_embedder."},
        {TT_MODEL_DIT, NAMES_WAN, "time_projection.1."},
        {TT_MODEL_DIT, NAMES_WAN, "head.modulation"},
        {TT_MODEL_DIT, NAMES_WAN, "blocks.0.self_attn."},
        {TT_MODEL_VAE, NAMES_DIFFUSERS, "decoder.mid_block."},
        {TT_MODEL_VAE, NAMES_DIFFUSERS, "decoder.conv_in."},
        {TT_MODEL_VAE, NAMES_WAN, "decoder.middle."},
        {TT_MODEL_VAE, NAMES_WAN, "encoder.middle."},
        {TT_MODEL_TINY_VAE, NAMES_WAN, "decoder.3.conv.0."},
        {TT_MODEL_TINY_VAE, NAMES_WAN, "encoder.4.conv.0."},
        {TT_MODEL_T5, NAMES_HF, "shared."},
        {TT_MODEL_T5, NAMES_HF, "encoder.block.0."},
        {TT_MODEL_T5, NAMES_LLAMA, "token_embd."},
        {TT_MODEL_T5, NAMES_LLAMA, "enc.blk.0."},
        {TT_MODEL_T5, NAMES_WAN, "token_embedding."},
        {TT_MODEL_T5, NAMES_WAN, "blocks.0.pos_embedding."}};
    names_map m = {kind, NAMES_UNKNOWN, 0};
    for (size_t i = 0; i < sizeof sign / sizeof sign[0]; i++)
        if (sign[i].kind == kind && any(name, n, sign[i].begin)) {
            m.layout = sign[i].layout;
            break;
        }
    if (kind == TT_MODEL_VAE && m.layout == NAMES_DIFFUSERS)
        m.resnets = count_resnets(name, n);
    return m;
}

/* ---- names to Wan's ------------------------------------------------------ */

typedef struct leading {
    const char *from, *to; /* replaced where a name begins with `from` */
} leading;

/* Replace the first matching leading text; a copy when none matches. */
static void names_swap(char *out, const char *in, const leading *table)
{
    for (const leading *r = table; r->from; r++)
        if (starts(in, r->from)) {
            strcpy(out, r->to);
            strcat(out, in + strlen(r->from));
            return;
        }
    strcpy(out, in);
}

/* "<head>N.<rest>": NULL when `in` is not of that form, else rest; the digits
 * stand at in + strlen(head), *ndigits of them. */
static const char *names_numbered(const char *in, const char *head,
                                  int *ndigits)
{
    if (!starts(in, head)) return NULL;
    const char *p = in + strlen(head);
    size_t n = strspn(p, "0123456789");
    if (n == 0 || n > 6 || p[n] != '.') return NULL;
    *ndigits = (int)n;
    return p + n + 1;
}

/* "<from>N.<rest>" to "<to>N.<swapped rest>". */
static bool swap_block(char *out, const char *in, const char *from,
                       const char *to, const leading *table)
{
    int n;
    const char *rest = names_numbered(in, from, &n);
    if (!rest) return false;
    int k = sprintf(out, "%s%.*s.", to, n, in + strlen(from));
    names_swap(out + k, rest, table);
    return true;
}

static void dit_to_wan(char *out, const char *in)
{
    static const leading global[] = {
        {"condition_embedder.text_embedder.linear_1.", "text_embedding.0."},
        {"condition_embedder.text_embedder.linear_2.", "text_embedding.2."},
        {"condition_embedder.time_embedder.linear_1.", "time_embedding.0."},
        {"condition_embedder.time_embedder.linear_2.", "time_embedding.2."},
        {"condition_embedder.time_proj.", "time_projection.1."},
        {"condition_embedder.image_embedder.", "img_emb."},
        {"scale_shift_table", "head.modulation"},
        {"proj_out.", "head.head."},
        {NULL, NULL}};
    static const leading block[] = {
        {"scale_shift_table", "modulation"},
        {"attn1.to_out.0.", "self_attn.o."},
        {"attn1.to_", "self_attn."},
        {"attn1.", "self_attn."},
        {"attn2.to_out.0.", "cross_attn.o."},
        {"attn2.to_", "cross_attn."},
        {"attn2.", "cross_attn."},
        {"norm2.", "norm3."},
        {"ffn.net.0.proj.", "ffn.0."},
        {"ffn.net.2.", "ffn.2."},
        {NULL, NULL}};
    if (!swap_block(out, in, "blocks.", "blocks.", block))
        names_swap(out, in, global);
}

static void t5_to_wan(char *out, const char *in)
{
    static const leading global[] = {
        {"shared.", "token_embedding."},
        {"encoder.embed_tokens.", "token_embedding."},
        {"encoder.final_layer_norm.", "norm."},
        {NULL, NULL}};
    static const leading block[] = {
        {"layer.0.layer_norm.", "norm1."},
        {"layer.0.SelfAttention.relative_attention_bias.",
         "pos_embedding.embedding."},
        {"layer.0.SelfAttention.", "attn."},
        {"layer.1.layer_norm.", "norm2."},
        {"layer.1.DenseReluDense.wi_0.", "ffn.gate.0."},
        {"layer.1.DenseReluDense.wi_1.", "ffn.fc1."},
        {"layer.1.DenseReluDense.wo.", "ffn.fc2."},
        {NULL, NULL}};
    if (!swap_block(out, in, "encoder.block.", "blocks.", block))
        names_swap(out, in, global);
}

static void llama_to_wan(char *out, const char *in)
{
    static const leading global[] = {
        {"token_embd.", "token_embedding."},
        {"enc.output_norm.", "norm."},
        {NULL, NULL}};
    static const leading block[] = {
        {"attn_norm.", "norm1."},
        {"attn_rel_b.", "pos_embedding.embedding."},
        {"attn_q.", "attn.q."},
        {"attn_k.", "attn.k."},
        {"attn_v.", "attn.v."},
        {"attn_o.", "attn.o."},
        {"ffn_norm.", "norm2."},
        {"ffn_gate.", "ffn.gate.0."},
        {"ffn_up.", "ffn.fc1."},
        {"ffn_down.", "ffn.fc2."},
        {NULL, NULL}};
    if (!swap_block(out, in, "enc.blk.", "blocks.", block))
        names_swap(out, in, global);
}

static const leading vae_unit[] = {
    {"norm1.gamma", "residual.0.gamma"},
    {"conv1.", "residual.2."},
    {"norm2.gamma", "residual.3.gamma"},
    {"conv2.", "residual.6."},
    {"conv_shortcut.", "shortcut."},
    {NULL, NULL}};

/* What follows "decoder.up_blocks.I.": stages of `resnets` residual
 * blocks and one upsampler become one flat list. */
static bool vae_up_block(char *out, const char *in, int resnets)
{
    static const char head[] = "decoder.up_blocks.";
    int n, m;
    const char *rest = names_numbered(in, head, &n);
    if (!rest || resnets == 0) return false;
    int stage = 0;
    sscanf(in + strlen(head), "%6d", &stage);
    const char *unit = names_numbered(rest, "resnets.", &m);
    if (unit) {
        int j = 0;
        sscanf(rest + strlen("resnets."), "%6d", &j);
        int k = sprintf(out, "decoder.upsamples.%lld.",
                        (long long)stage * (resnets + 1) + j);
        names_swap(out + k, unit, vae_unit);
        return true;
    }
    if (!starts(rest, "upsamplers.0.")) return false;
    sprintf(out, "decoder.upsamples.%lld.%s",
            (long long)stage * (resnets + 1) + resnets,
            rest + strlen("upsamplers.0."));
    return true;
}

static void vae_to_wan(char *out, const char *in, int resnets)
{
    static const leading global[] = {
        {"quant_conv.", "conv1."},
        {"post_quant_conv.", "conv2."},
        {NULL, NULL}};
    static const leading half[] = { /* after "encoder." and "decoder." */
        {"conv_in.", "conv1."},
        {"norm_out.gamma", "head.0.gamma"},
        {"conv_out.", "head.2."},
        {"mid_block.attentions.0.", "middle.1."},
        {NULL, NULL}};
    if (swap_block(out, in, "encoder.down_blocks.", "encoder.downsamples.",
                   vae_unit)
        || vae_up_block(out, in, resnets))
        return;
    if (!starts(in, "encoder.") && !starts(in, "decoder.")) {
        names_swap(out, in, global);
        return;
    }
    memcpy(out, in, 8);
    for (int i = 0; i < 2; i++) {
        const char *from = i ? "mid_block.resnets.1." : "mid_block.resnets.0.";
        if (!starts(in + 8, from)) continue;
        strcpy(out + 8, i ? "middle.2." : "middle.0.");
        names_swap(out + strlen(out), in + 8 + strlen(from), vae_unit);
        return;
    }
    names_swap(out + 8, in + 8, half);
}

void names_to_wan(char *out, const char *in, const names_map *map)
{
    if (map->layout == NAMES_DIFFUSERS && map->kind == TT_MODEL_DIT)
        dit_to_wan(out, in);
    else if (map->layout == NAMES_DIFFUSERS && map->kind == TT_MODEL_VAE)
        vae_to_wan(out, in, map->resnets);
    else if (map->layout == NAMES_HF)
        t5_to_wan(out, in);
    else if (map->layout == NAMES_LLAMA)
        llama_to_wan(out, in);
    else
        strcpy(out, in);
}

/* ---- files that must be refused ------------------------------------------ */

const char *names_refusal(const char *name, const tt_tensor *t,
                          tt_model_kind kind)
{
    if (kind == TT_MODEL_DIT) {
        if (starts(name, "img_emb.") || strstr(name, "_img.")
            || ends(name, "_img") || strstr(name, ".add_k_proj.")
            || strstr(name, ".add_v_proj."))
            return "it is an image-to-video model; a text-to-video model is "
                   "needed";
        if (starts(name, "vace_"))
            return "it is a VACE model; a plain text-to-video model is needed";
    }
    if (kind == TT_MODEL_VAE) {
        if (starts(name, "decoder.upsamples.0.upsamples.")
            || starts(name, "encoder.downsamples.0.downsamples.")
            || starts(name, "encoder.downsamples.0.resnets."))
            return "it is the VAE of Wan2.2 5B (48 channels); the Wan2.1 VAE "
                   "is needed";
        if (!strcmp(name, "decoder.conv1.weight") && t->rank != 5)
            return "its convolutions are not three-dimensional (an image-only "
                   "variant); the Wan2.1 video VAE is needed";
    }
    return NULL;
}
