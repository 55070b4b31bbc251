/* memory.c: what a run will hold at most, from the sizes of its parts.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   three stages, one after the other: text, latents, decoding. The
 *         largest counts, or the sum of the last two where pictures come
 *         between the chunks. Sizes are those that the parts themselves report
 *         (tt_rollout_bytes, tt_vae_decoder_bytes).
 * Next    fit.c, time.c */
#include "run/plan.h"

#include <stdio.h>
#include <string.h>

#include "cache/kept.h"
#include "io/weights.h"
#include "rollout/run.h"
#include "core/device.h"
#include "team/team.h"
#include "text/text.h"

/* SCRATCH  what operators take besides the values that are reported: a part
 * OWN      bytes that a thread takes for convolutions of a class but f32 */
enum { TEXT_ROWS = 512, SCRATCH = 25, OWN = 8 << 20 };

static int64_t text_rows(const tt_run *run)
{
    const tt_dit_config *c = tt_dit_get_config(run->dit);
    return c->text_len ? c->text_len : TEXT_ROWS;
}

static int64_t text_bytes(const tt_run *run)
{
    return run->texts.n * text_rows(run)
           * tt_dit_get_config(run->dit)->text_dim * (int64_t)sizeof(tt_real);
}

static int64_t latent_bytes(const tt_run *run, const tt_rollout_options *o)
{
    int64_t dim[5], bytes = 0;
    run_shape(dim, run, o);
    return tt_checked_size(&bytes, dim, 5, sizeof(tt_real)) ? bytes : INT64_MAX;
}

int64_t plan_tokens(const tt_run *run)
{
    int64_t most = 1;
    if (run->s.embeds) return text_rows(run);
    for (int i = 0; i < run->texts.n; i++) {
        const int64_t n = (int64_t)strlen(texts_words(&run->texts, i)) / 3
                        + 1;
        if (n > most) most = n;
    }
    return most < text_rows(run) ? most : text_rows(run);
}

static int64_t weight_bytes(const tt_weights *w)
{
    int64_t all = 0;
    for (int64_t i = 0; i < tt_weights_count(w); i++) {
        const tt_tensor *t = tt_weights_find(w, tt_weights_name(w, i));
        if (t) all += tt_tensor_bytes(t);
    }
    return all;
}

static int64_t with_scratch(int64_t bytes)
{
    return bytes < INT64_MAX / 2 ? bytes + bytes / SCRATCH : bytes;
}

/* ---- stages -------------------------------------------------------------- */

static void memory_add_text(const tt_run *run, tt_needs *n)
{
    n->text = run->encoder;
    n->text.held += text_bytes(run);
    n->text.peak = n->before + n->text.held;
}

/* What the encoder adds: its branches, and the larger of attention and the
 * feed-forward. */
static int64_t encoder_values(const tt_umt5_config *c, int64_t rows)
{
    const int64_t ffn = c->dim + 2 * c->dim_ffn;
    const int64_t attention = c->dim + 4 * c->dim_attn;
    return rows * (2 * c->dim + (ffn > attention ? ffn : attention));
}

static void memory_silent(void *user, const char *sentence)
{
    (void)user, (void)sentence;
}

/* The tokens of a prompt that differ go through the encoder. One that is
 * missing is reported later. */
static void look_at_text(const tt_ctx *ctx, tt_run *run)
{
    tt_ctx c = {.ops = ctx->ops, .nthreads = ctx->nthreads,
                .warn = memory_silent,
                .team = ctx->team, .matrix_unit = ctx->matrix_unit,
                .interrupt = ctx->interrupt};
    const tt_weights_options opt = {.ema = -1, .shapes_alone = true,
                                    .lora = run->s.model.lora};
    const int64_t tokens = plan_tokens(run);
    const char *path;
    tt_weights *w = NULL;
    tt_umt5 *enc = NULL;
    if (run->s.embeds || tt_team_rank(ctx) > 0) return;
    if (!tt_model_text_encoder(&c, &path, &run->s.model)
        && !model_weights(&c, &w, &run->s.model, path, TT_MODEL_T5, &opt)
        && !tt_umt5_load(&c, &enc, w)) {
        const tt_umt5_config *e = tt_umt5_config_of(enc);
        const double layer = 4.0 * (double)(e->dim * e->dim_attn)
                           + 3.0 * (double)(e->dim * e->dim_ffn);
        run->encoder.mapped = weight_bytes(w) - w->merged;
        run->encoder.held = encoder_values(e, tokens)
                          * (int64_t)sizeof(tt_real) + w->merged;
        run->encoder.operations = 2.0 * layer * (double)e->layers
                                * (double)(tokens * run->texts.n);
    }
    if (enc) tt_umt5_close(enc);
    tt_ctx_free(&c);
}

/* Keys and values of cross-attention, of all prompts. */
static int64_t prompt_bytes(const tt_ctx *ctx, const tt_run *run)
{
    const tt_dit_config *c = tt_dit_get_config(run->dit);
    const tt_range heads = tt_team_heads(ctx, c->heads);
    const int64_t width = (heads.hi - heads.lo) * (c->dim / c->heads);
    return run_prompts_of(run) * text_rows(run)
           * (2 * c->layers * width + c->dim) * (int64_t)sizeof(tt_real);
}

static int64_t cache_bytes(const tt_ctx *ctx, const tt_run *run,
                           const tt_rollout_options *o)
{
    const tt_policy_class *cls = tt_policy_class_of(&o->policy);
    const tt_geometry geo = rollout_geometry(ctx, run->dit, o);
    return cls ? tt_cache_bytes(cls, &o->policy, &geo) : 0;
}

/* What is kept of a window grows with it. */
static int64_t kept_bytes(const tt_ctx *ctx, const tt_run *run,
                          const tt_rollout_options *o, int64_t without)
{
    const tt_policy_class *cls = tt_policy_class_of(&o->policy);
    const tt_geometry geo = rollout_geometry(ctx, run->dit, o);
    const int64_t all = tt_rollout_bytes(ctx, run->dit, o) - without;
    const int64_t slots = cls ? cls->slots(&o->policy, &geo) : 0;
    const int64_t used = geo.frames * geo.L;
    return !o->keep_keys ? 0 : used < slots
         ? (int64_t)((double)all * (double)used / (double)slots) : all;
}

static void add_latents(const tt_ctx *ctx, const tt_run *run,
                        const plan_question *q, tt_needs *n)
{
    const tt_rollout_options *o = &q->opt;
    tt_rollout_options plain = *o;
    plain.keep_keys = false;
    const int64_t rollout = tt_rollout_bytes(ctx, run->dit, &plain);
    const int64_t cache = cache_bytes(ctx, run, o);
    n->cache_files = o->kv_dir ? cache : 0;
    n->cache = prompt_bytes(ctx, run) + cache - n->cache_files;
    n->activations = with_scratch(rollout - cache
                                  + kept_bytes(ctx, run, o, rollout));
    /* a VAE that clips restart with needs besides the cache */
    if (o->vae)
        n->activations += weight_bytes(tt_vae_weights(o->vae))
                        + tt_vae_decoder_bytes(o->vae, o->h, o->w);
    n->keys = o->keep_keys;
    n->bf16 = rollout_geometry(ctx, run->dit, o).bf16;
    n->latents_file = latent_bytes(run, o);
    n->latents.held = n->cache + n->activations + n->latents_file;
    const tt_weights *w = tt_dit_weights(run->dit);
    n->latents.mapped = weight_bytes(w) - w->merged;
    n->latents.peak = n->before + text_bytes(run) + n->latents.held;
}

/* History, frames, and weights as kernels want them. */
static void add_decoding(const tt_ctx *ctx, const tt_run *run,
                         const plan_question *q, tt_needs *n)
{
    const int64_t h = q->opt.h, w = q->opt.w, frame = 192 * h * w;
    if (!q->vae) return;
    const tt_weights *stored = tt_vae_weights(q->vae);
    n->decoding.mapped = weight_bytes(stored);
    n->decoding.held = weight_bytes(stored) + n->latents_file + 2 * frame
                     + with_scratch(tt_vae_decoder_bytes(q->vae, h, w))
                       / tt_team_size(ctx);
    if (tt_vae_class(q->vae) != TT_CLASS_F32)
        n->decoding.held += OWN * ctx->nthreads;
    n->decoding.peak = n->before + text_bytes(run) + n->decoding.held;
}

static int64_t history_bytes(const plan_question *q)
{
    const tt_vae *vae = q->vae ? q->vae : q->opt.vae;
    return vae && tt_vae_folder(vae)
         ? tt_vae_history_bytes(vae, q->opt.h, q->opt.w) : 0;
}

/* Of a y4m file, at most: three bytes a pixel (C444), a word before a frame,
 * and a header. */
static int64_t video_bytes(int64_t frames, const tt_rollout_options *o)
{
    enum { WORD = 6, HEADER = 128 };
    return frames * (3 * 8 * o->h * 8 * o->w + WORD) + HEADER;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

tt_needs plan_needs(const tt_ctx *ctx, const tt_run *run,
                    const plan_question *q)
{
    const plan_limit limit = plan_memory(run->before);
    tt_needs n = {.before = run->before, .during = q->during && q->vae};
    memory_add_text(run, &n);
    add_latents(ctx, run, q, &n);
    add_decoding(ctx, run, q, &n);
    n.lora.held = tt_dit_weights(run->dit)->shapes_alone
                ? tt_dit_weights(run->dit)->merged : 0;
    n.lora.operations = tt_dit_weights(run->dit)->merging;
    n.text.peak += n.lora.held;
    n.latents.peak += n.lora.held;
    if (q->vae) n.decoding.peak += n.lora.held;
    if (n.during)
        n.latents.peak = n.decoding.peak = n.latents.peak + n.decoding.held
                                         - n.latents_file;
    n.peak = larger(n.text.peak, larger(n.latents.peak, n.decoding.peak));
    n.history_files = history_bytes(q);
    /* rank 0, which has its part of the heads, writes those of all */
    const tt_ctx alone = {.ops = ctx->ops, .matrix_unit = ctx->matrix_unit};
    if (run->s.checkpoint_every)
        n.states = 2 * (cache_bytes(&alone, run, &q->opt)
                        + prompt_bytes(&alone, run));
    n.video = run->s.no_decode ? 0 : video_bytes(tt_run_frames(run), &q->opt);
    n.available = limit.bytes;
    snprintf(n.limit, sizeof n.limit, "%s", limit.who);
    return n;
}

/* ---- the run's own ------------------------------------------------------- */

bool plan_lays_out(const tt_ctx *ctx, const tt_run *run)
{
    tt_ctx c = {.ops = ctx->ops, .team = ctx->team,
                .matrix_unit = ctx->matrix_unit};
    const tt_geometry geo = rollout_geometry(&c, run->dit, &run->opt);
    bool packed = false;
    kept_values(&c, tt_policy_class_of(&run->opt.policy), &run->opt.policy,
                &geo, &packed);
    return packed;
}

/* Rotated keys alone stay on a device only: on the host that saves less than
 * one percent of a chunk. Mapped weights have the other half of the memory.
 * Ranks count as if all of them shared it. */
static bool keeps(const tt_ctx *ctx, const tt_run *run, const tt_needs *n)
{
    const tt_device *d = ctx->device;
    const int ranks = tt_team_size(ctx);
    if (run->opt.kv_dir) return false;
    if (!d) return plan_lays_out(ctx, run)
                   && n->peak - n->before <= n->available / ranks / 2;
    return d->free_memory && n->latents.peak - n->before + n->latents.mapped
                      + (n->during ? n->decoding.mapped : 0)
                      <= d->free_memory(d) / ranks;
}

/* What the user leaves to us; then everything. */
static tt_status settle(tt_ctx *ctx, tt_run *run, const tt_vae *vae)
{
    plan_question q = {.opt = run->opt, .vae = vae, .during =
                       !strcmp(run->s.decode, "during")};
    if (ctx->status) return ctx->status;
    run->needs = plan_needs(ctx, run, &q);
    if (!run->opt.keep_keys || strcmp(run->s.keep_keys, "auto")
        || keeps(ctx, run, &run->needs))
        return TT_OK;
    run->opt.keep_keys = q.opt.keep_keys = false;
    run->needs = plan_needs(ctx, run, &q);
    return TT_OK;
}

tt_status plan_begin(tt_ctx *ctx, tt_run *run)
{
    TT_TRY(plan_memory_check(ctx));
    run->before = plan_anonymous();
    run->mapped = plan_mapped() + plan_stacks(ctx->nthreads);
    look_at_text(ctx, run);
    TT_TRY(settle(ctx, run, NULL));
    if (run->s.resume && !run->s.no_decode) return TT_OK; /* with the decoder */
    return plan_check(ctx, run, &run->needs);
}

tt_status plan_decoder(tt_ctx *ctx, tt_run *run, const tt_vae *vae)
{
    TT_TRY(settle(ctx, run, vae));
    return plan_check(ctx, run, &run->needs);
}

tt_status plan_agree(tt_ctx *ctx, tt_run *run)
{
    const bool keep = run->opt.keep_keys;
    if (tt_team_size(ctx) == 1 || !tt_team_any(ctx, !keep) || !keep)
        return ctx->status;
    run->opt.keep_keys = run->needs.keys = false;
    return ctx->status;
}

tt_status tt_run_plan(tt_ctx *ctx, const tt_run *run, tt_needs *out)
{
    *out = (tt_needs){0};
    if (ctx->status) return ctx->status;
    if (!run) return tt_fail(ctx, TT_EINVAL, "there is no run to plan");
    *out = run->needs;
    return TT_OK;
}
