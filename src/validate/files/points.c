/* points.c: what lies between one named point of the model and the next.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Names are those of the TT_TAP calls in src/dit, src/rollout, src/cache,
 * src/vae and src/text; tests/validate/test_dump.c runs a model and checks that
 * every name it shows is known here. */
#include <fnmatch.h>
#include <string.h>

#include "validate/validate.h"

static const struct {
    const char *glob, *operators;
} point[] = {
    /* transformer */
    {"*tokens", "linear (patch embedding)"},
    {"*/e0", "silu, linear (time projection)"},
    {"*/e", "sinusoid, linear, silu, linear (time embedding)"},
    {"text/context", "rms_norm (final norm)"},
    {"*context", "linear, gelu_tanh, linear (text embedding)"},
    {"*cross_attn.k", "linear, rms_norm"},
    {"*cross_attn.v", "linear"},
    {"*cross_attn.q", "gate_add, layer_norm (norm3), linear, rms_norm"},
    {"*cross_attn", "attention, linear (output)"},
    {"*self_attn.q", "layer_norm, modulate, linear, rms_norm"},
    {"*self_attn.k", "layer_norm, modulate, linear, rms_norm"},
    {"*self_attn.v", "layer_norm, modulate, linear"},
    {"*self_attn", "cache, rope, attention, linear (output)"},
    {"*ffn", "add, layer_norm, modulate, linear, gelu_tanh, linear"},
    {"*block.*/out", "gate_add"},
    {"vae_encoder/*head", "channel_norm, silu, conv"},
    {"*head", "layer_norm, modulate, linear"},
    {"*flow", "unpatchify"},
    /* rollout */
    {"*/x0", "x - sigma flow"},
    {"*/x", "noise, add_noise"},
    /* cache */
    {"*grab.candidates", "evict"},
    {"*grab.mass", "col_mean, softmax over candidates"},
    {"*grab.div", "diversity"},
    {"*grab.score", "mass + alpha div"},
    {"*grab.keep", "top M"},
    {"*tame.mean_?", "col_mean over the trusted pool"},
    {"*tame.sd_?", "col_moment over the trusted pool"},
    {"*tame.?/c.*", "col_mean, col_moment, col_blend"},
    {"*cache.*/?", "cache write, select, edit"},
    {"*cache.*/frame", "cache write, select"},
    {"*cache.*/position", "cache write, select"},
    /* VAE */
    {"*denorm", "denormalise"},
    {"*conv2", "linear (conv2)"},
    {"*conv1*", "conv"},
    {"*middle.1", "channel_norm, linear, attention, linear, add"},
    {"*middle.[02]", "channel_norm, silu, conv, channel_norm, silu, conv, add"},
    {"*up.*", "channel_norm, silu, conv, channel_norm, silu, conv, add, or "
              "conv (upsampling)"},
    {"*down.*", "channel_norm, silu, conv, channel_norm, silu, conv, add, or "
                "conv (downsampling)"},
    {"*rgb/*", "channel_norm, silu, conv"},
    {"*latent", "linear (mu), normalise"},
    /* text encoder */
    {"text/block.*.attn", "rms_norm, linear, attention, linear"},
    {"text/block.*.ffn", "rms_norm, linear, gelu_tanh, linear, mul, linear"},
    {"text/block.*", "add"},
    {"text/*prompt_embeds", "rows after the prompt zeroed"},
};

const char *tt_tap_operators(const char *path)
{
    const bool text = !strncmp(path, "text/", 5);
    for (size_t i = 0; i < sizeof point / sizeof point[0]; i++)
        if (text == !strncmp(point[i].glob, "text/", 5)
            && !fnmatch(point[i].glob, path, 0))
            return point[i].operators;
    return "";
}
