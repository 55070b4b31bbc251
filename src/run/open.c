/* open.c: a run is opened, and says what it is.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Order   settings; every file that is needed later is opened once, so that
 *         nothing missing is found out after hours; then text, and the encoder
 *         is closed.
 * Next    video.c */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/weights.h"
#include "run/parts.h"
#include "run/plan.h"
#include "io/io.h"
#include "team/team.h"

/* ---- events -------------------------------------------------------------- */

void run_say(const tt_run_events *e, bool detail, const char *fmt, ...)
{
    char text[8192];
    va_list ap;
    if (!e || !e->say) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    e->say(e->user, detail, text);
}

void run_work(const tt_run_events *e, tt_run_work w, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    if (!e || !e->work) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    w.what = text;
    e->work(e->user, &w);
}

/* ---- digests ------------------------------------------------------------- */

static uint64_t digest_tensor(uint64_t sum, const tt_tensor *t)
{
    enum { PIECE = 4096 };       /* a multiple of every type's block          */
    tt_real buf[PIECE];
    const int64_t n = tt_tensor_count(t);
    for (int64_t at = 0, k; at < n; at += k) {
        k = n - at < PIECE ? n - at : PIECE;
        tt_widen_at(buf, t, at, k);
        for (int64_t i = 0; i < k; i++) {
            uint64_t bits = 0;
            memcpy(&bits, &buf[i], sizeof buf[i]);
            sum = (sum ^ bits) * UINT64_C(1099511628211);
        }
    }
    return sum;
}

/* Of every value, in seconds, where ranks compare it: the samples of an
 * identity tell models apart, but do not find one damaged byte in the copy of
 * one machine. */
static uint64_t digest_all(const tt_ctx *ctx, const tt_weights *w)
{
    uint64_t sum = UINT64_C(14695981039346656037);
    if (tt_team_size(ctx) == 1) return 0;
    for (int64_t i = 0; i < tt_weights_count(w); i++) {
        const tt_tensor *t = tt_weights_find(w, tt_weights_name(w, i));
        if (t && tt_tensor_is_real(t)) sum = digest_tensor(sum, t);
    }
    return sum;
}

/* ---- models -------------------------------------------------------------- */

static tt_status record_loras(tt_ctx *ctx, tt_run *r)
{
    char strength[48];
    tt_lora l;
    const int64_t others = weights_lora_others(tt_dit_weights(r->dit));
    for (const char *list = r->s.model.lora; list && *list;) {
        TT_TRY(tt_lora_next(ctx, &list, &l));
        snprintf(strength, sizeof strength, "strength %.17g", l.strength);
        record_input(ctx, &r->record, "LoRA", l.path, strength);
    }
    if (others && r->s.embeds)
        tt_warn(ctx, "%lld keys of --lora are for the text encoder, which "
                "--embeds replaces: embeddings must have been made with them "
                "(`tether embed --lora`)", (long long)others);
    return TT_OK;
}

static tt_status open_dit(tt_ctx *ctx, tt_run *r)
{
    tt_model_source from;
    TT_TRY(model_open_dit(ctx, &r->dit, &r->s.model, &from, &r->events));
    record_input(ctx, &r->record, "transformer", from.path, from.origin);
    TT_TRY(record_loras(ctx, r));
    const tt_dit_config *c = tt_dit_get_config(r->dit);
    run_say(&r->events, true, "transformer: %s (%s), %lld layers of width "
            "%lld, %lld heads", from.path, from.origin, (long long)c->layers,
            (long long)c->dim, (long long)c->heads);
    return TT_OK;
}

/* Rules about the whole run, before the text encoder takes its time;
 * tt_rollout_open asks again. */
static tt_status check_rules(tt_ctx *ctx, tt_run *r)
{
    r->opt.scenes = r->scenes.scene;
    r->opt.nscenes = r->scenes.n;
    r->opt.nprompts = r->scenes.nprompts;
    return tt_rollout_check(ctx, r->dit, &r->opt);
}

static tt_status open_vae(tt_ctx *ctx, const tt_run *r, tt_vae **vae,
                          tt_model_source *from)
{
    const int64_t C = tt_dit_get_config(r->dit)->in_dim;
    TT_TRY(tt_model_open_vae(ctx, vae, &r->s.model, from));
    if (tt_vae_z(*vae) != C)
        tt_fail(ctx, TT_ESHAPE, "the transformer makes %lld latent channels "
                "and the VAE takes %lld: they belong to different models",
                (long long)C, (long long)tt_vae_z(*vae));
    return ctx->status;
}

/* causvid decodes and encodes between two rollouts. */
static tt_status open_restart_vae(tt_ctx *ctx, tt_run *r)
{
    tt_model_source from = {0};
    const tt_rollout_options *o = &r->opt;
    if (o->rollouts == 1 || o->start_frame || o->latent_restart)
        return ctx->status;
    if (tt_model_open_vae_part(ctx, &r->restart_vae, &r->s.model,
                               TT_VAE_DECODER | TT_VAE_ENCODER, &from)
        && ctx->status != TT_EINTR) {
        char why[sizeof ctx->message];
        const tt_status status = ctx->status;
        snprintf(why, sizeof why, "%s", tt_message(ctx));
        tt_clear(ctx);
        return tt_fail(ctx, status, "%s (rollouts after the first need the "
                       "whole VAE; --restart latent does without)", why);
    }
    if (r->s.no_decode) /* else it will be in the record */
        record_input(ctx, &r->record, "VAE", from.path, from.origin);
    r->opt.vae = r->restart_vae;
    r->vae_sum = digest_all(ctx, tt_vae_weights(r->restart_vae));
    return plan_decoder(ctx, r, NULL);
}

/* Open and close the VAE: a missing one is an error now, not in hours. */
static tt_status try_vae(tt_ctx *ctx, tt_run *r)
{
    tt_model_source from;
    tt_vae *vae = NULL;
    if (r->s.no_decode) return TT_OK;
    if (open_vae(ctx, r, &vae, &from) == TT_OK) {
        record_input(ctx, &r->record, "VAE", from.path, from.origin);
        r->vae_sum = digest_all(ctx, tt_vae_weights(vae));
    }
    plan_decoder(ctx, r, vae);
    if (vae) tt_vae_close(vae);
    return ctx->status;
}

tt_status tt_run_open_vae(tt_ctx *ctx, const tt_run *run, tt_vae **vae)
{
    *vae = NULL;
    if (ctx->status) return ctx->status;
    if (!run) return tt_fail(ctx, TT_EINVAL, "there is no run to decode");
    return open_vae(ctx, run, vae, NULL);
}

/* ---- the schedule -------------------------------------------------------- */

/* The timesteps that the network sees, and what they come from. */
static void say_schedule(tt_ctx *ctx, const tt_run *r)
{
    const tt_rollout_options *o = &r->opt;
    char text[TT_MAX_STEPS * 12] = "";
    tt_schedule s;
    if (ctx->status || tt_schedule_init(ctx, &s, o->shift, o->steps, o->nsteps,
                                        o->warp, o->context_noise)) return;
    for (int i = 0; i < s.nsteps; i++) {
        const size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%.6g", i ? ", " : "", s.t[i]);
    }
    run_say(&r->events, true, "schedule: %d step%s at timestep%s %s, then the "
            "clean pass at %lld (--steps %s, %s, shift %g)", s.nsteps,
            s.nsteps == 1 ? "" : "s", s.nsteps == 1 ? "" : "s", text,
            (long long)o->context_noise, r->s.steps,
            o->warp ? "warped" : "as they are", o->shift);
}

/* ---- ranks --------------------------------------------------------------- */

static tt_status share_out(tt_ctx *ctx, const tt_run *r)
{
    double share[TT_TEAM_MAX];
    if (!r->s.shares || ctx->status) return ctx->status;
    const int n = tt_setting_reals(share, TT_TEAM_MAX, r->s.shares);
    if (n < 1)
        return tt_fail(ctx, TT_EINVAL, "--shares %s: expected numbers with "
                       "commas between them, like 4,4,1", r->s.shares);
    return tt_team_share(ctx, share, n);
}

/* What is injected, byte by byte. */
static void digest_injected(tt_ctx *ctx, char hex[65], const tt_run *r)
{
    tt_file *f = NULL;
    snprintf(hex, 65, "none");
    if (!r->s.inject || tt_file_open(ctx, &f, r->s.inject)) return;
    tt_file_digest(hex, f);
    tt_file_close(f);
}

/* What is outside the identity and must be the same. A dump is here because
 * ranks gather what it takes. */
static const char *words_of_ranks(tt_ctx *ctx, const tt_run *r)
{
    const char *shares = r->s.shares ? r->s.shares : "equal";
    const char *filter = r->s.dump_filter ? r->s.dump_filter : "*";
    const char *into = r->s.inject_filter ? r->s.inject_filter : "*";
    const size_t n = strlen(shares) + strlen(filter) + strlen(into) + 416;
    char injected[65];
    tt_class vae;
    tt_model_vae_class(ctx, &vae, &r->s.model);
    digest_injected(ctx, injected, r);
    char *words = tt_alloc0(ctx, &ctx->scratch, (int64_t)n, 1,
                            "words to compare");
    if (words)
        snprintf(words, n, "videos %lld latents %lld weights %016llx vae "
                 "%016llx decode %s shares %s dump %s filter %s inject %s "
                 "inject-filter %s vae-class %s",
                 (long long)tt_run_videos(r), (long long)r->opt.latents,
                 (unsigned long long)digest_all(ctx, tt_dit_weights(r->dit)),
                 (unsigned long long)r->vae_sum, r->s.decode, shares,
                 r->s.dump ? "yes" : "no", filter, injected, into,
                 tt_class_name(vae));
    return words;
}

/* Are all ranks about to compute the same? Prompts need not be compared: rank 0
 * encodes them for all. */
static tt_status compare_ranks(tt_ctx *ctx, const tt_run *r)
{
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    if (tt_team_size(ctx) == 1) return ctx->status;
    const char *all = rollout_identity(ctx, &ctx->scratch, r->dit, &r->opt);
    tt_team_compare(ctx, "the run", all ? all : "");
    const char *words = words_of_ranks(ctx, r);
    tt_team_compare(ctx, "the run", words ? words : "");
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

/* ---- opening ------------------------------------------------------------- */

/* The name of the published model is enough for a plan. */
static tt_status open_check_name(tt_ctx *ctx, tt_run *r)
{
    const char *model = r->s.model.model;
    if (!published_name(model)) return ctx->status;
    r->s.model.sizes_alone = r->s.plan;
    if (r->s.plan) return TT_OK;
    return tt_fail(ctx, TT_EIO, "%s: there is no such folder. The name alone "
                   "is enough for --plan and for `tether bench --estimate`; a "
                   "video needs the weights", model);
}

static tt_status run_open_run(tt_ctx *ctx, tt_run *r, const tt_settings *s)
{
    TT_TRY(tt_settings_copy(ctx, &r->s, s));
    TT_TRY(tt_settings_check(ctx, &r->s, &r->opt));
    TT_TRY(open_check_name(ctx, r));
    r->s.model.shapes_alone = r->s.plan;
    TT_TRY(share_out(ctx, r));
    TT_TRY(scenes_read(ctx, &r->mem, &r->scenes, &r->s));
    TT_TRY(texts_collect(ctx, &r->texts, &r->s, &r->scenes));
    r->videos = r->scenes.n ? 1 : r->texts.n;
    TT_TRY(open_dit(ctx, r));
    TT_TRY(run_read_inputs(ctx, r));
    TT_TRY(check_rules(ctx, r));
    say_schedule(ctx, r);
    TT_TRY(plan_begin(ctx, r));
    TT_TRY(open_restart_vae(ctx, r));
    TT_TRY(try_vae(ctx, r));
    TT_TRY(compare_ranks(ctx, r));
    if (r->s.model.sizes_alone) plan_warn(ctx, r);
    return plan_agree(ctx, r);
}

tt_status tt_run_open(tt_ctx *ctx, tt_run **out, const tt_settings *s,
                      const tt_run_events *events)
{
    *out = NULL;
    if (ctx->status) return ctx->status;
    tt_run *r = calloc(1, sizeof *r);
    if (!r) return tt_fail(ctx, TT_ENOMEM, "out of memory for a run");
    record_begin(&r->record);
    if (events) r->events = *events;
    r->claimed = r->now.number = -1;
    if (run_open_run(ctx, r, s)) {
        tt_run_close(r);
        return ctx->status;
    }
    *out = r;
    return TT_OK;
}

void run_release(tt_run *run)
{
    latents_file_close(&run->file);
    run->claimed = -1;
}

void tt_run_close(tt_run *run)
{
    tt_ctx none = {.status = TT_EINTR}; /* what is not complete is given up */
    if (!run) return;
    video_end(&none, run);
    run_release(run);
    tt_arena_free(&run->now.mem);
    texts_free(&run->texts);
    tt_vae_close(run->restart_vae);
    if (run->dit) tt_dit_close(run->dit);
    record_end(&run->record);
    tt_settings_free(&run->s);
    tt_arena_free(&run->mem);
    free(run);
}

/* The given frames of --image and --initial-video, once all is checked. */
static tt_status encode_given(tt_ctx *ctx, tt_run *r)
{
    const char *path = r->given.in.path;
    tt_model_source from = {0};
    if (!path) return ctx->status;
    record_input(ctx, &r->record, r->s.image ? "image" : "initial video",
                 path, NULL);
    given_encode(ctx, r, &from);
    if (r->s.no_decode) /* else it is in the record already */
        record_input(ctx, &r->record, "VAE", from.path, from.origin);
    return ctx->status;
}

tt_status tt_run_encode(tt_ctx *ctx, tt_run *run)
{
    if (ctx->status) return ctx->status;
    if (!run) return tt_fail(ctx, TT_EINVAL, "there is no run to encode for");
    if (run->encoded) return TT_OK;
    TT_TRY(encode_given(ctx, run));
    TT_TRY(texts_make(ctx, run));
    run->encoded = true;
    return TT_OK;
}

/* ---- what it is ---------------------------------------------------------- */

int64_t tt_run_videos(const tt_run *run)
{
    return run ? run->videos * run->s.num_samples : 0;
}

tt_status tt_run_video_at(tt_ctx *ctx, const tt_run *run, int64_t i,
                          tt_run_video *out)
{
    *out = (tt_run_video){0};
    if (ctx->status) return ctx->status;
    if (i < 0 || i >= tt_run_videos(run))
        return tt_fail(ctx, TT_EINVAL, "video %lld of a run of %lld videos, "
                       "which count from 0", (long long)i,
                       (long long)tt_run_videos(run));
    const tt_settings *s = &run->s;
    const int prompt = (int)(i / s->num_samples);
    const int64_t sample = s->sample + i % s->num_samples;
    *out = (tt_run_video){.prompt = prompt, .sample = sample, .seed = s->seed,
                          .text = run->texts.prompt[prompt]};
    if (run->texts.extended) out->extended = run->texts.extended[prompt];
    if (!strcmp(s->seed_rule, "official"))
        out->seed += 100 * (uint64_t)prompt + (uint64_t)sample;
    return TT_OK;
}

const tt_settings *tt_run_settings(const tt_run *run)
{
    return run ? &run->s : NULL;
}

const tt_rollout_options *tt_run_rollout(const tt_run *run)
{
    return !run ? NULL : run->now.number < 0 ? &run->opt : &run->now.opt;
}

const tt_dit *tt_run_dit(const tt_run *run)
{
    return run ? run->dit : NULL;
}

const tt_scenes *tt_run_scenes(const tt_run *run)
{
    return run ? &run->scenes : NULL;
}

int tt_run_prompts(const tt_run *run, const char *const **text)
{
    *text = run ? (const char *const *)run->texts.prompt : NULL;
    return run ? run->texts.n : 0;
}

int64_t tt_run_dropped(const tt_run *run)
{
    return run && run->opt.rollouts > 1 ? 4 * (run->opt.overlap - 1) + 1 : 0;
}

int64_t tt_run_frames(const tt_run *run)
{
    const tt_rollout_options *o = run ? &run->opt : NULL;
    if (!o) return 0;
    const int64_t n = o->initial_frames + o->latents;
    return o->rollouts * (1 + 4 * (n - 1) - tt_run_dropped(run));
}

void run_shape(int64_t dim[5], const tt_run *run, const tt_rollout_options *o)
{
    dim[0] = o->rollouts;
    dim[1] = o->initial_frames + o->latents;
    dim[2] = tt_dit_get_config(run->dit)->in_dim;
    dim[3] = o->h;
    dim[4] = o->w;
}

int run_prompts_of(const tt_run *run)
{
    return run->scenes.n ? run->texts.n : 1;
}

const tt_recorder_scene *run_scenes(tt_ctx *ctx, const tt_run *run,
                                    tt_arena *mem)
{
    const tt_scenes *from = &run->scenes;
    tt_recorder_scene *to = tt_alloc0(ctx, mem, from->n, sizeof *to, "scenes");
    for (int i = 0; to && i < from->n; i++) {
        const tt_scene *x = &from->scene[i];
        to[i] = (tt_recorder_scene){
            x->chunk, run->texts.prompt[x->prompt], x->cut};
    }
    return to;
}

/* What else a run is made from, so that --resume takes up its own only. */
static const char *open_origin_of(tt_ctx *ctx, const tt_run *run, int prompt,
                                  tt_arena *mem)
{
    tt_sha256 h;
    char hex[65];
    const int64_t n = run->texts.rows * run->texts.dim;
    tt_sha256_init(&h);
    if (run->s.inject) tt_sha256_add(&h, "inject", 6);
    tt_sha256_add(&h, run->texts.text + prompt * n,
                  (size_t)(run_prompts_of(run) * n) * sizeof *run->texts.text);
    tt_sha256_hex(&h, hex);
    return tt_strdup(ctx, mem, hex);
}

tt_rollout_options run_options(tt_ctx *ctx, tt_run *run, int64_t i,
                               tt_arena *mem)
{
    tt_rollout_options o = run->opt;
    tt_run_video v;
    if (tt_run_video_at(ctx, run, i, &v)) return o;
    o.noise.seed = v.seed;
    o.noise.sample = (uint32_t)v.sample;
    o.origin = open_origin_of(ctx, run, v.prompt, mem);
    return o;
}

/* ---- files that are there ------------------------------------------------ */

tt_status tt_run_claim(tt_ctx *ctx, tt_run *run, int64_t i, const char *path)
{
    tt_run_video v;
    if (ctx->status) return ctx->status;
    TT_TRY(tt_run_video_at(ctx, run, i, &v));
    run_release(run);
    const char *kept = path ? tt_strdup(ctx, &run->mem, path) : NULL;
    TT_TRY(latents_file_claim(ctx, &run->file, kept, run->s.resume,
                              run->s.overwrite));
    run->claimed = i;
    /* with the lock: no one that heeds it changes them any more */
    if (kept && checkpoint_claim(ctx, kept, run->s.overwrite))
        run_release(run);
    return ctx->status;
}

const char *tt_run_identity(tt_ctx *ctx, tt_run *run, int64_t i, tt_arena *mem)
{
    if (tt_run_encode(ctx, run)) return NULL;
    const tt_rollout_options o = run_options(ctx, run, i, mem);
    return ctx->status ? NULL : rollout_identity(ctx, mem, run->dit, &o);
}

int64_t tt_run_made(tt_ctx *ctx, tt_run *run, int64_t i, const char *path,
                    char *why, size_t n)
{
    int64_t dim[5];
    tt_arena mem = {0};
    if (ctx->status || !path) return 0;
    const char *identity = tt_run_identity(ctx, run, i, &mem);
    if (identity) run_shape(dim, run, &run->opt);
    const int64_t frames = !identity ? 0
        : latents_file_look(ctx, path, dim, identity, run->s.resume, why, n);
    tt_arena_free(&mem);
    return frames;
}

bool tt_run_made_by_any(tt_ctx *ctx, const char *path)
{
    return path && latents_file_of_a_run(ctx, path);
}
