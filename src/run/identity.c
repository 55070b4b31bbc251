/* identity.c: what a run is made from: --resume takes up its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    latents_file.c */
#include <stdio.h>
#include <string.h>

#include "run/parts.h"
#include "tether/version.h"
#include "tether/backend.h"

static void digest_values(tt_sha256 *s, const tt_real *x, int64_t n)
{
    if (x) tt_sha256_add(s, x, (size_t)n * sizeof *x);
}

/* Of every tensor its name and shape, and values here and there: all of a
 * small one, SAMPLES pieces of a large one. Another model, also a fine-tuned
 * one, differs in them; reading everything would take as long as a chunk. */
static void digest_weights(tt_sha256 *s, const tt_weights *w)
{
    enum { SAMPLES = 16, PIECE = 256 }; /* a multiple of every type's block */
    tt_real buf[PIECE];
    for (int64_t i = 0; w && i < tt_weights_count(w); i++) {
        const char *name = tt_weights_name(w, i);
        const tt_tensor *t = tt_weights_find(w, name);
        if (!t || !tt_dtype_is_real(t->dtype)) continue;
        const int64_t n = tt_tensor_count(t), block = tt_dtype_block(t->dtype);
        const int64_t piece = n < PIECE ? n : PIECE;
        tt_sha256_add(s, name, strlen(name) + 1);
        tt_sha256_add(s, t->dim, (size_t)t->rank * sizeof *t->dim);
        for (int64_t k = 0; k < SAMPLES && piece; k++) {
            int64_t at = (n - piece) / (SAMPLES - 1) * k;
            at -= at % block;
            tt_widen_at(buf, t, at, piece);
            digest_values(s, buf, piece);
            if (n == piece) break;
        }
    }
}

const char *identity_make(tt_ctx *ctx, tt_arena *mem, const tt_dit *dit,
                          const tt_rollout_options *o)
{
    const int64_t frame_size = tt_dit_get_config(dit)->in_dim * o->h * o->w;
    tt_sha256 s;
    char hex[65];
    enum { SIZE = 2048 };
    const int64_t later = (o->rollouts - 1) * (o->latents - o->overlap);
    int64_t denoised = o->latents + later;
    char *text = tt_alloc(ctx, mem, SIZE, 1, "run description");
    if (!text) return NULL;
    tt_sha256_init(&s);
    if (o->origin) tt_sha256_add(&s, o->origin, strlen(o->origin));
    digest_weights(&s, tt_dit_weights(dit));
    if (o->vae) digest_weights(&s, tt_vae_weights(o->vae));
    for (int i = 0; i < o->nsteps; i++)
        tt_sha256_add(&s, &o->steps[i], sizeof o->steps[i]);
    digest_values(&s, o->initial, o->initial_frames * frame_size);
    digest_values(&s, o->noise.noise, o->rollouts * o->latents * frame_size);
    digest_values(&s, o->noise.renoise,
                  (o->nsteps - 1) * denoised * frame_size);
    digest_values(&s, o->start_frame, (o->rollouts - 1) * frame_size);
    for (int i = 0; i < o->nscenes; i++) {
        const int64_t scene[] = {o->scenes[i].chunk, o->scenes[i].prompt,
                                 o->scenes[i].cut};
        tt_sha256_add(&s, scene, sizeof scene);
    }
    tt_sha256_hex(&s, hex);
    int at = snprintf(text, SIZE, "seed %llu sample %u latents %lld chunk %lld "
             "first %d context-noise %lld steps %d warp %d shift %.17g "
             "rollouts %lld overlap %lld restart %d backend %s class %s "
             "inputs %.32s ",
             (unsigned long long)o->noise.seed, o->noise.sample,
             (long long)o->latents, (long long)o->chunk,
             o->independent_first_frame, (long long)o->context_noise,
             o->nsteps, o->warp, o->shift, (long long)o->rollouts,
             (long long)o->overlap, o->latent_restart, ctx->ops->name,
             tt_class_saved(ctx->ops->cls), hex);
    tt_policy_describe(text + at, (size_t)(SIZE - at), &o->policy);
    for (char *c = text + at; *c; c++)
        if (*c == '\n') *c = ' ';
    return text;
}

/* "/models/demo/" -> "demo" */
static const char *last_part(const char *path, int *n)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin && path[begin - 1] != '/') begin--;
    *n = (int)(end - begin);
    return path + begin;
}

const char *tt_run_comment(tt_ctx *ctx, tt_run *run, int64_t i, tt_arena *mem)
{
    tt_run_video v;
    if (tt_run_video_at(ctx, run, i, &v)) return NULL;
    const tt_rollout_options *o = &run->opt;
    const tt_model_paths *p = &run->s.model;
    const char *prompt = v.text ? v.text : "(from embeddings)";
    const char *from = p->checkpoint ? p->checkpoint : p->model ? p->model
                     : p->dit ? p->dit : "unknown";
    int n;
    const char *model = last_part(from, &n);
    const size_t size = strlen(prompt) + (size_t)n + 600;
    char *text = tt_alloc(ctx, mem, (int64_t)size, 1, "comment");
    if (text)
        snprintf(text, size, "%s\nSteps: %d, Sampler: Self-Forcing, CFG scale: "
                 "1, Seed: %llu, Size: %lldx%lld, Model: %.*s, Sample: %u, "
                 "Latents: %lld, Chunk: %lld, Shift: %g, Cache: %s, Budget: "
                 "%lld, Backend: %s %s, Version: tether %s", prompt, o->nsteps,
                 (unsigned long long)v.seed, (long long)(8 * o->w),
                 (long long)(8 * o->h), n, model, (uint32_t)v.sample,
                 (long long)o->latents, (long long)o->chunk, o->shift,
                 o->policy.name, (long long)o->policy.K, ctx->ops->name,
                 tt_class_name(ctx->ops->cls), tt_version());
    return text;
}
