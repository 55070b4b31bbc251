/* rollout.c: a video, chunk by chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  pipeline/causal_inference.py, inference_long.py
 * Model   given latents first (one pass each), then generated chunks. All
 *         chunks have `chunk` frames, the very first one 1 frame with an
 *         independent first frame, whether it is given or generated. Scenes
 *         (scenes.c) change the prompt between chunks; CausVid's long videos
 *         (causvid.c) are several rollouts, one after the other.
 * Next    sampler.c */
#include "rollout/run.h"

#include <string.h>

#include "cache/classes.h"
#include "cache/kept.h"
#include "team/team.h"
#include "core/context.h"

#define MAX_FRAMES ((int64_t)1 << 24)
#define MAX_SIDE ((int64_t)1 << 20)      /* latent height and width */

tt_rollout_options tt_rollout_defaults(void)
{
    return (tt_rollout_options){
        .latents = 21, .h = 60, .w = 104, .chunk = 3,
        .context_noise = 0,
        .steps = { 1000, 750, 500, 250 }, .nsteps = 4,
        .warp = true, .shift = 5,
        .policy = tt_policy_defaults("tether"),
        .rollouts = 1, .overlap = 3,
    };
}

/* The policy's own schedule, else Self-Forcing's. */
void tt_rollout_use_schedule(tt_rollout_options *o, const char *policy)
{
    static const tt_policy_schedule self_forcing = {
        .text = "1000,750,500,250", .nsteps = 4,
        .steps = { 1000, 750, 500, 250 }, .warp = true, .shift = 5,
    };
    const tt_policy_class *cls = policy ? tt_policy_find(policy) : NULL;
    const tt_policy_schedule *s = cls && cls->schedule ? cls->schedule
                                                       : &self_forcing;
    o->nsteps = s->nsteps;
    memcpy(o->steps, s->steps, (size_t)s->nsteps * sizeof *o->steps);
    o->warp = s->warp;
    o->shift = s->shift;
}

/* ---- checks -------------------------------------------------------------- */

/* value = base + a whole number of chunks? The sentence names the nearest two
 * values that are. */
static tt_status check_chunks(tt_ctx *ctx, const char *what, int64_t value,
                              int64_t base, int64_t chunk)
{
    if (value >= base && (value - base) % chunk == 0) return TT_OK;
    int64_t low = value < base ? base : value - (value - base) % chunk;
    int64_t high = low + chunk;
    const char *plus = base ? "1 frame plus " : "";
    if (low < 1)
        return tt_fail(ctx, TT_EINVAL, "%lld %s: %sa whole number of chunks of "
                       "%lld frames is needed, %lld at least",
                       (long long)value, what, plus, (long long)chunk,
                       (long long)high);
    return tt_fail(ctx, TT_EINVAL, "%lld %s: not %sa whole number of chunks of "
                   "%lld frames; the nearest that are: %lld and %lld",
                   (long long)value, what, plus, (long long)chunk,
                   (long long)low, (long long)high);
}

static tt_status check_sizes(tt_ctx *ctx, const tt_rollout_options *o)
{
    if (o->h < 2 || o->w < 2 || o->h % 2 || o->w % 2 || o->h > MAX_SIDE
        || o->w > MAX_SIDE)
        return tt_fail(ctx, TT_EINVAL, "latent size %lld x %lld: height and "
                       "width must be even and at least 2", (long long)o->h,
                       (long long)o->w);
    if (o->chunk < 1 || o->chunk > MAX_FRAMES)
        return tt_fail(ctx, TT_EINVAL, "chunks of %lld frames: at least 1 is "
                       "needed", (long long)o->chunk);
    if (o->latents < 1 || o->latents > MAX_FRAMES
        || o->initial_frames < 0 || o->initial_frames > MAX_FRAMES)
        return tt_fail(ctx, TT_EINVAL, "%lld latent frames after %lld given "
                       "ones: expected 1..%lld and 0..%lld",
                       (long long)o->latents, (long long)o->initial_frames,
                       (long long)MAX_FRAMES, (long long)MAX_FRAMES);
    return TT_OK;
}

static tt_status check_options(tt_ctx *ctx, const tt_rollout_options *o)
{
    const int64_t lead = o->independent_first_frame ? 1 : 0;
    TT_TRY(check_sizes(ctx, o));
    TT_TRY(scenes_check(ctx, o));
    TT_TRY(causvid_check(ctx, o));
    if (o->initial_frames > 0)
        TT_TRY(check_chunks(ctx, "given latent frames", o->initial_frames, lead,
                            o->chunk));
    return check_chunks(ctx, "latent frames", o->latents,
                        o->initial_frames > 0 ? 0 : lead, o->chunk);
}

/* What the options say is there. */
static tt_status check_inputs(tt_ctx *ctx, const tt_rollout_options *o,
                              const tt_prompt *prompt)
{
    if (o->noise.noise && o->nsteps > 1 && !o->noise.renoise)
        return tt_fail(ctx, TT_EINVAL, "noise from a file needs the re-noise "
                       "of the same run as well");
    if (o->initial_frames > 0 && !o->initial)
        return tt_fail(ctx, TT_EINVAL, "%lld given frames, but no latents",
                       (long long)o->initial_frames);
    if (o->nscenes > 0 ? !o->prompts : !prompt)
        return tt_fail(ctx, TT_EINVAL, "a rollout needs its prompt, and one "
                       "for every scene");
    if (o->rollouts > 1 && !o->vae && !o->start_frame && !o->latent_restart)
        return tt_fail(ctx, TT_EINVAL, "a restart needs the VAE with its "
                       "encoder, or the start frames from a file");
    return TT_OK;
}

tt_geometry rollout_geometry(const tt_ctx *ctx, const tt_dit *m,
                             const tt_rollout_options *o)
{
    const tt_dit_config *c = tt_dit_get_config(m);
    const tt_range held = tt_team_heads(ctx, c->heads);
    const tt_policy_class *cls = tt_policy_class_of(&o->policy);
    const bool rounds = ctx->ops && ctx->ops->by_class
                     && ctx->ops->cls != TT_CLASS_F32;
    return (tt_geometry){
        .layers = c->layers, .H = held.hi - held.lo, .D = c->dim / c->heads,
        .heads = c->heads, .first = held.lo,
        .grid_h = o->h / 2, .grid_w = o->w / 2,
        .L = (o->h / 2) * (o->w / 2),
        .chunk = o->chunk,
        .first_chunk = o->independent_first_frame ? 1 : o->chunk,
        .frames = o->initial_frames + o->latents,
        .scenes = o->nscenes,
        .bf16 = o->bf16_kv && rounds && cls && cls->flags & TT_ONLY_MOVES,
    };
}

/* The lists of steps. */
static tt_status init_schedules(tt_ctx *ctx, tt_schedule *all,
                                tt_schedule *first,
                                const tt_rollout_options *o)
{
    TT_TRY(tt_schedule_init(ctx, all, o->shift, o->steps, o->nsteps, o->warp,
                            o->context_noise));
    *first = *all;
    if (o->nfirst && o->noise.noise)
        return tt_fail(ctx, TT_EINVAL, "noise from a file is for as many steps "
                       "in every chunk; leave out --first-steps");
    return o->nfirst ? tt_schedule_init(ctx, first, o->shift, o->first_steps,
                                        o->nfirst, o->warp, o->context_noise)
                     : TT_OK;
}

tt_status tt_rollout_check(tt_ctx *ctx, const tt_dit *m,
                           const tt_rollout_options *opt)
{
    TT_TRY(ctx->status);
    tt_schedule schedule, first;
    tt_policy_options policy = opt->policy;
    const tt_geometry geo = rollout_geometry(ctx, m, opt);
    void (*const warn)(void *, const char *) = ctx->warn;
    policy.context_noise = opt->context_noise;
    ctx->warn = tt_ignore_warning;
    check_options(ctx, opt);
    if (!ctx->status) init_schedules(ctx, &schedule, &first, opt);
    if (!ctx->status) cache_check_geometry(ctx, &geo);
    if (!ctx->status) tt_policy_check(ctx, &policy, &geo);
    ctx->warn = warn;
    return ctx->status;
}

/* Does a new prompt make frames run again? */
static bool recaches(const tt_rollout_options *o)
{
    const tt_policy_class *cls = tt_policy_class_of(&o->policy);
    return o->nscenes > 1 && cls && cls->flags & TT_RECACHES;
}

int64_t rollout_recached(const tt_rollout_options *o, int64_t done)
{
    const int64_t K = o->policy.K;
    if (!recaches(o)) return 0;
    return K < 0 || K > done ? done : K;
}

int64_t tt_rollout_bytes(const tt_ctx *ctx, const tt_dit *m,
                         const tt_rollout_options *opt)
{
    tt_ctx probe = { .warn = tt_ignore_warning, .team = ctx->team,
                     .ops = ctx->ops, .matrix_unit = ctx->matrix_unit };
    tt_policy_options policy = opt->policy;
    const tt_policy_class *cls = tt_policy_class_of(&policy);
    if (!cls || check_options(&probe, opt)) return -1;
    const tt_geometry geo = rollout_geometry(&probe, m, opt);
    const tt_dit_config *c = tt_dit_get_config(m);
    if (cache_check_geometry(&probe, &geo)
        || tt_policy_check(&probe, &policy, &geo))
        return -1;
    const int64_t cache = tt_cache_bytes(cls, &policy, &geo);
    /* Per token of a chunk: the residual stream, its normed copy, q, k, v, the
     * attention's output and two temporaries, or the feed-forward's hidden
     * values; per cached token a rotated key, of one layer or of all, or of one
     * and what is packed of all, but none where slots hold them. A team cuts
     * all of it, but for the chunk's tokens, and has q, k and v of heads
     * besides those of rows. */
    const bool alone = tt_team_size(ctx) == 1;
    const int64_t again = rollout_recached(opt, geo.frames);
    const tt_range own = tt_team_rows(ctx, (again > geo.chunk ? again
                                            : geo.chunk) * geo.L);
    const int64_t width = geo.H * geo.D;
    const int64_t token[] = { own.hi - own.lo, 8 * c->dim + c->ffn_dim };
    const int64_t read = opt->keep_keys && cls->reads
                       ? cls->reads(&policy, &geo) : cls->slots(&policy, &geo);
    bool packed = false;
    const int64_t kept[] = { geo.layers, opt->keep_keys ? kept_values(
                             &probe, cls, &policy, &geo, &packed) : 0 };
    const bool there = geo.bf16 || (opt->keep_keys && !packed);
    const int64_t window[] = { read, there ? 0 : width };
    const int64_t chunk[] = { geo.chunk, geo.L,
                              alone ? 0 : c->dim + 4 * width };
    int64_t a, b, d, e, all;
    if (!tt_checked_size(&a, token, 2, sizeof(tt_real))
        || !tt_checked_size(&e, kept, 2, sizeof(tt_real))
        || !tt_checked_size(&b, window, 2, sizeof(tt_real))
        || !tt_checked_size(&d, chunk, 3, sizeof(tt_real))
        || !tt_checked_add(&all, a, b) || !tt_checked_add(&all, all, d)
        || !tt_checked_add(&all, all, e) || !tt_checked_add(&all, all, cache))
        return INT64_MAX;
    return all;
}

/* ---- open and close ------------------------------------------------------ */

static void allocate(tt_ctx *ctx, tt_rollout *r)
{
    int64_t n;
    const int64_t dim[] = { r->opt.chunk, r->C, r->opt.h, r->opt.w };
    if (!tt_checked_size(&n, dim, 4, 1)) {
        tt_fail(ctx, TT_EINVAL, "a chunk of %lld x %lld x %lld x %lld latent "
                "values is too large", (long long)dim[0], (long long)dim[1],
                (long long)dim[2], (long long)dim[3]);
        return;
    }
    r->x = tt_alloc(ctx, &r->arena, n, sizeof *r->x, "latents");
    r->flow = tt_alloc(ctx, &r->arena, n, sizeof *r->flow, "latents");
    r->x0 = tt_alloc(ctx, &r->arena, n, sizeof *r->x0, "latents");
    r->noise = tt_alloc(ctx, &r->arena, n, sizeof *r->noise, "noise");
    r->words = tt_alloc(ctx, &r->arena, n / r->opt.chunk, sizeof *r->words,
                        "noise");
    if (r->opt.rollouts == 1 && !recaches(&r->opt)) return;
    const int64_t clip[] = { r->opt.initial_frames + r->opt.latents,
                             r->frame_size };
    if (!tt_checked_size(&n, clip, 2, 1)) {
        tt_fail(ctx, TT_EINVAL, "a clip of %lld frames of %lld latent values "
                "is too large", (long long)clip[0], (long long)clip[1]);
        return;
    }
    r->clip = tt_alloc0(ctx, &r->arena, n, sizeof *r->clip, "latents");
    if (r->opt.rollouts == 1) return;
    r->start = tt_alloc0(ctx, &r->arena, r->opt.overlap * r->frame_size,
                         sizeof *r->start, "latents");
}

/* Things that are legal and have no effect. */
static void warn_about_scenes(tt_ctx *ctx, const tt_rollout *r)
{
    const tt_rollout_options *o = &r->opt;
    bool cut = false;
    for (int i = 0; i < o->nscenes; i++) {
        cut = cut || o->scenes[i].cut;
        if (o->scenes[i].chunk >= r->chunks) {
            tt_warn(ctx, "scene %d would begin with chunk %lld, but the video "
                    "has %lld chunks", i + 1, (long long)o->scenes[i].chunk,
                    (long long)r->chunks);
            break;
        }
    }
    if (cut && !(tt_cache_class(r->cache)->flags & TT_HAS_CUTS))
        tt_warn(ctx, "cuts have a meaning for the policy infinity only; %s "
                "changes the prompt and nothing else", o->policy.name);
}

tt_status tt_rollout_open(tt_ctx *ctx, tt_rollout **out, const tt_dit *m,
                          const tt_prompt *prompt,
                          const tt_rollout_options *opt)
{
    *out = NULL;
    if (ctx->status) return ctx->status;
    tt_schedule schedule, first;
    TT_TRY(check_options(ctx, opt));
    TT_TRY(check_inputs(ctx, opt, prompt));
    TT_TRY(init_schedules(ctx, &schedule, &first, opt));
    tt_arena arena = {0};
    tt_rollout *r = tt_alloc0(ctx, &arena, 1, sizeof *r, "rollout");
    if (!r) return ctx->status;
    *r = (tt_rollout){ .arena = arena, .opt = *opt, .model = m,
                       .prompt = prompt, .schedule = schedule, .first = first,
                       .opened = tt_now() };
    r->C = tt_dit_get_config(m)->in_dim;
    const int64_t frame[] = { r->C, opt->h, opt->w };
    if (!tt_checked_size(&r->frame_size, frame, 3, 1))
        tt_fail(ctx, TT_EINVAL, "a frame of %lld x %lld x %lld latent values "
                "is too large", (long long)r->C, (long long)opt->h,
                (long long)opt->w);
    const tt_geometry geo = rollout_geometry(ctx, m, opt);
    r->chunks = (1 + (geo.frames - geo.first_chunk) / geo.chunk)
                * opt->rollouts;
    r->given = opt->initial;
    r->ngiven = opt->initial_frames;
    r->opt.policy.context_noise = opt->context_noise;
    tt_cache_open_in(ctx, &r->cache, NULL, &r->opt.policy, &geo, opt->kv_dir);
    if (opt->keep_keys) tt_cache_keep_keys(ctx, r->cache);
    allocate(ctx, r);
    if (!ctx->status) r->identity = state_identity(ctx, r);
    if (!ctx->status) warn_about_scenes(ctx, r);
    if (ctx->status) {
        tt_rollout_close(r);
        return ctx->status;
    }
    *out = r;
    return TT_OK;
}

void tt_rollout_close(tt_rollout *r)
{
    if (!r) return;
    tt_cache_close(r->cache);
    tt_arena arena = r->arena;   /* r itself lives in it */
    tt_arena_free(&arena);
}

void tt_rollout_on_progress(tt_rollout *r, tt_progress_fn fn, void *user)
{
    if (!r) return;
    r->progress = fn;
    r->progress_user = user;
}

tt_cache *tt_rollout_cache(tt_rollout *r)
{
    return r ? r->cache : NULL;
}
int64_t tt_rollout_chunks(const tt_rollout *r)
{
    return r ? r->chunks : 0;
}
int64_t tt_rollout_frames_done(const tt_rollout *r)
{
    if (!r) return 0;
    return r->rollout * r->opt.latents + r->done;
}

int64_t tt_rollout_chunk_frames(const tt_rollout *r, int64_t i)
{
    if (!r) return 0;
    return i == 0 && r->opt.independent_first_frame ? 1 : r->opt.chunk;
}

/* ---- the chunks ---------------------------------------------------------- */

tt_pass rollout_pass(const tt_rollout *r, int64_t f)
{
    const tt_scene *s = scenes_at(&r->opt, r->chunk);
    const bool begins = s && s->chunk == r->chunk && r->chunk > 0;
    return (tt_pass){ .start = r->done, .frames = f, .chunk = r->chunk,
                      .prompt_changed = begins, .cut = begins && s->cut };
}

const tt_prompt *rollout_prompt(const tt_rollout *r)
{
    const tt_scene *s = scenes_at(&r->opt, r->chunk);
    return s ? r->opt.prompts[s->prompt] : r->prompt;
}

static bool clip_is_over(const tt_rollout *r)
{
    return r->opt.rollouts > 1 && r->done == r->opt.latents;
}

/* The chunk in r->x0 is done. */
static void advance(tt_rollout *r, int64_t f)
{
    if (r->clip)
        memcpy(r->clip + r->done * r->frame_size, r->x0,
               (size_t)(f * r->frame_size) * sizeof *r->clip);
    r->chunk++;
    r->done += f;
}

/* What the cache holds is made with the prompt of the next chunk. */
static tt_status follow_prompt(tt_ctx *ctx, tt_rollout *r)
{
    const bool begins = rollout_pass(r, 1).prompt_changed;
    const int64_t n = begins ? rollout_recached(&r->opt, r->done) : 0;
    return n ? sampler_recache(ctx, r, n) : ctx->status;
}

tt_status tt_rollout_next(tt_ctx *ctx, tt_rollout *r, const tt_host **out,
                          int64_t *frames)
{
    TT_TRY(ctx->status);
    if (r->chunk == r->chunks) return TT_END;
    if (clip_is_over(r)) {
        TT_TRY(causvid_make_start(ctx, r));
        causvid_restart(ctx, r);
    }
    TT_TRY(follow_prompt(ctx, r));
    const int64_t f = tt_rollout_chunk_frames(r, r->chunk);
    if (r->done < r->ngiven) {
        memcpy(r->x0, r->given + r->done * r->frame_size,
               (size_t)(f * r->frame_size) * sizeof *r->x0);
        TT_TRY(sampler_given(ctx, r, f));
    } else {
        TT_TRY(sampler_chunk(ctx, r, f));
    }
    advance(r, f);
    *out = r->x0;
    *frames = f;
    return TT_OK;
}

/* The next rollout from its own first frames, as far as they are there. */
static tt_status replay_restart(tt_ctx *ctx, tt_rollout *r,
                                const tt_host *latents, int64_t frames)
{
    const int64_t n = r->opt.overlap;
    if (frames < n)
        TT_TRY(causvid_make_start(ctx, r));
    else
        memcpy(r->start, latents,
               (size_t)(n * r->frame_size) * sizeof *r->start);
    causvid_restart(ctx, r);
    return ctx->status;
}

tt_status tt_rollout_replay(tt_ctx *ctx, tt_rollout *r, const tt_host *latents,
                            int64_t frames)
{
    TT_TRY(ctx->status);
    if (tt_cache_class(r->cache)->flags & TT_KEEPS_NOISY)
        return tt_fail(ctx, TT_EUNSUPPORTED, "the cache of %s depends on the "
                       "denoising passes and cannot be rebuilt from latents; "
                       "only a saved state continues such a run",
                       tt_cache_class(r->cache)->name);
    int64_t left = frames;
    while (left > 0 && r->chunk < r->chunks) {
        const int64_t f = tt_rollout_chunk_frames(r, r->chunk);
        if (f > left) break;
        if (clip_is_over(r)) TT_TRY(replay_restart(ctx, r, latents, left));
        TT_TRY(follow_prompt(ctx, r));
        memcpy(r->x0, latents, (size_t)(f * r->frame_size) * sizeof *r->x0);
        /* A restart empties the cache: rollouts that end before the last
         * frame leave nothing in it. */
        if (r->opt.latents - r->done >= left || r->opt.rollouts == 1)
            TT_TRY(r->done < r->ngiven ? sampler_given(ctx, r, f)
                                       : sampler_clean(ctx, r, f));
        latents += f * r->frame_size;
        left -= f;
        advance(r, f);
    }
    if (left != 0)
        return tt_fail(ctx, TT_EINVAL, "%lld frames cannot be replayed: chunks "
                       "end after %lld", (long long)frames,
                       (long long)(frames - left));
    return TT_OK;
}
