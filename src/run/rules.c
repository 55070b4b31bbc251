/* rules.c: every rule about the settings of a run, and their lengths.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rules about single policies (K, S, R, M, alpha, tau) live with the policies
 * (policy.h, check); those about which policy has what in policy_settings.c;
 * those about names of files with the program. */
#include "run/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/device.h"
#include "team/team.h"

enum { FPS = 16 };

static bool given(const tt_settings *g, const char *name)
{
    return tt_settings_was_given(g, name);
}

/* ---- rules --------------------------------------------------------------- */

static tt_status check_text(tt_ctx *ctx, const tt_settings *g)
{
    int n = !!g->prompt + !!g->prompt_file + !!g->embeds;
    const bool scenes = g->scene || g->scene_file;
    if (g->scene && g->scene_file)
        return tt_fail(ctx, TT_EINVAL, "give only one of --scene and "
                       "--scene-file");
    if (scenes && (g->prompt || g->prompt_file))
        return tt_fail(ctx, TT_EINVAL, "--scene and --scene-file bring their "
                       "own prompts; leave out -p and --prompt-file");
    if (g->extended_prompt_file && !g->prompt_file)
        return tt_fail(ctx, TT_EINVAL, "--extended-prompt-file needs "
                       "--prompt-file: the prompts that its lines extend");
    if (g->prompt && !g->prompt[strspn(g->prompt, " \t\r\n")])
        return tt_fail(ctx, TT_EINVAL, "-p is empty: give words; embeddings of "
                       "an empty prompt are taken from a file by --embeds");
    if (!scenes && n != 1)
        return tt_fail(ctx, TT_EINVAL, "give one of -p TEXT, --prompt-file "
                       "FILE, --embeds FILE, --scene LIST and --scene-file "
                       "FILE (%d were given)", n);
    return TT_OK;
}

static tt_status check_noise(tt_ctx *ctx, const tt_settings *g)
{
    if (strcmp(g->seed_rule, "plain") && strcmp(g->seed_rule, "official"))
        return tt_fail(ctx, TT_EINVAL, "--seed-rule is plain or official, but "
                       "`%s` was given", g->seed_rule);
    if (g->num_samples < 1 || g->num_samples > 1000000)
        return tt_fail(ctx, TT_EINVAL, "--num-samples must be 1 to 1000000");
    if (g->sample < 0 || g->sample > UINT32_MAX - (g->num_samples - 1))
        return tt_fail(ctx, TT_EINVAL, "--sample must be 0 to %lld with %lld "
                       "sample%s",
                       (long long)(UINT32_MAX - (g->num_samples - 1)),
                       (long long)g->num_samples,
                       g->num_samples == 1 ? "" : "s");
    if (g->noise && g->num_samples > 1)
        return tt_fail(ctx, TT_EINVAL, "--noise holds the noise of one video; "
                       "it cannot be used with --num-samples %lld",
                       (long long)g->num_samples);
    return TT_OK;
}

/* Rollouts after the first may, too. */
bool settings_encode(const tt_settings *g)
{
    return g->image || g->initial_video
        || (g->rollouts > 1 && strcmp(g->restart, "latent"));
}

/* Options that another option makes useless. */
static tt_status check_effect(tt_ctx *ctx, const tt_settings *g)
{
    static const char *const of_seed[] = {"seed", "seed-rule"};
    static const char *const of_clips[] = {"overlap", "restart"};
    for (int i = 0; i < 2; i++)
        if (g->noise && given(g, of_seed[i]))
            return tt_fail(ctx, TT_EINVAL, "--%s has no effect with --noise, "
                           "which brings the noise; give one of the two",
                           of_seed[i]);
    for (int i = 0; i < 2; i++)
        if (!g->noise && g->rollouts == 1 && given(g, of_clips[i]))
            return tt_fail(ctx, TT_EINVAL, "--%s has no effect with one "
                           "rollout; give --rollouts N as well", of_clips[i]);
    if (!g->scene && given(g, "cut-rule"))
        return tt_fail(ctx, TT_EINVAL, "--cut-rule has no effect without "
                       "--scene LIST");
    const char *of_vae = g->model.vae_class ? "vae-class"
                       : g->model.history_dir ? "history-dir" : NULL;
    if (of_vae && g->no_decode && !settings_encode(g))
        return tt_fail(ctx, TT_EINVAL, "--%s has no effect where nothing is "
                       "decoded (--no-decode, `validate` without an output) "
                       "and nothing else needs the VAE", of_vae);
    return TT_OK;
}

/* --size in place of -W and -H. */
static tt_status split_size(tt_ctx *ctx, tt_settings *g)
{
    long long w, h;
    char by, end;
    if (!g->size) return TT_OK;
    if (given(g, "width") || given(g, "height"))
        return tt_fail(ctx, TT_EINVAL, "give --size or -W and -H, not both");
    if (sscanf(g->size, "%lld%c%lld%c", &w, &by, &h, &end) != 3
        || !strchr("xX*", by))
        return tt_fail(ctx, TT_EINVAL, "--size needs WIDTHxHEIGHT like "
                       "832x480, but `%s` was given", g->size);
    g->width = w;
    g->height = h;
    return TT_OK;
}

static tt_status check_size(tt_ctx *ctx, tt_settings *g)
{
    TT_TRY(split_size(ctx, g));
    const struct { const char *name; int64_t v; } side[] = {
        {"width", g->width}, {"height", g->height}};
    for (int i = 0; i < 2; i++) {
        if (!g->size && !given(g, side[i].name)) continue;
        if (side[i].v < 16 || side[i].v > 16384 || side[i].v % 16) {
            int64_t v = side[i].v < 16 ? 16 : side[i].v > 16384 ? 16384
                                                                : side[i].v;
            return tt_fail(ctx, TT_EINVAL, "--%s must be a multiple of 16 from "
                           "16 to 16384, but %lld was given; the nearest is "
                           "%lld", side[i].name, (long long)side[i].v,
                           (long long)((v + 8) / 16 * 16));
        }
    }
    return TT_OK;
}

static tt_status rules_check_length(tt_ctx *ctx, const tt_settings *g)
{
    int n = given(g, "latents") + given(g, "frames") + given(g, "seconds");
    if (n > 1)
        return tt_fail(ctx, TT_EINVAL, "give only one of --latents, --frames "
                       "and --seconds");
    if ((given(g, "latents") && g->latents < 1)
        || (given(g, "frames") && g->frames < 1)
        || (given(g, "seconds") && !(g->seconds > 0)))
        return tt_fail(ctx, TT_EINVAL, "the length must be positive: "
                       "--latents and --frames at least 1, --seconds more than "
                       "0");
    if (g->latents > 1000000 || g->frames > 4000000 || g->seconds > 250000)
        return tt_fail(ctx, TT_EINVAL, "the length is impossible: at most "
                       "1000000 latent frames");
    if (g->chunk < 1 || g->chunk > 1024)
        return tt_fail(ctx, TT_EINVAL, "--chunk must be 1 to 1024, but %lld "
                       "was given", (long long)g->chunk);
    return TT_OK;
}

/* Options that need another one, or do not go with it. */
static tt_status check_pairs(tt_ctx *ctx, const tt_settings *g)
{
    if (g->dump_filter && !g->dump)
        return tt_fail(ctx, TT_EINVAL, "--dump-filter needs --dump FILE");
    if (g->inject_filter && !g->inject)
        return tt_fail(ctx, TT_EINVAL, "--inject-filter needs --inject FILE");
    if (g->inject && g->resume)
        return tt_fail(ctx, TT_EINVAL, "--inject and --resume: chunks that are "
                       "done already would be without it");
    if (g->kv_dir && !*g->kv_dir)
        return tt_fail(ctx, TT_EINVAL, "--kv-dir needs a folder");
    if (g->kv_dir && !strcmp(g->keep_keys, "yes"))
        return tt_fail(ctx, TT_EINVAL, "--kv-dir is for want of memory, and "
                       "--keep-keys yes takes more of it");
    if (g->kv_dir && ctx->device)
        return tt_fail(ctx, TT_EINVAL, "--kv-dir: keys and values are in "
                       "memory of %s, not in the host's", ctx->device->name);
    if (g->model.history_dir && !*g->model.history_dir)
        return tt_fail(ctx, TT_EINVAL, "--history-dir needs a folder");
    if (g->model.history_dir && ctx->device)
        return tt_fail(ctx, TT_EINVAL, "--history-dir: what the VAE remembers "
                       "is in memory of %s, not in the host's",
                       ctx->device->name);
    if (g->label && !g->analyze)
        return tt_fail(ctx, TT_EINVAL, "--label needs --analyze FOLDER");
    if (given(g, "checkpoint-every") && g->checkpoint_every < 0)
        return tt_fail(ctx, TT_EINVAL, "--checkpoint-every needs a number of "
                       "chunks, or 0 for no saved state");
    return TT_OK;
}

static tt_status check_given(tt_ctx *ctx, tt_settings *g)
{
    if (!!g->initial + !!g->image + !!g->initial_video > 1)
        return tt_fail(ctx, TT_EINVAL, "give only one of --initial-latents, "
                       "--image and --initial-video");
    if (given(g, "initial-frames")
        && (!g->initial_video || g->initial_frames < 1
            || g->initial_frames > INT32_MAX))
        return tt_fail(ctx, TT_EINVAL, "--initial-frames needs --initial-video "
                       "and a number of frames from 1");
    if (!g->image) return TT_OK;
    if (given(g, "independent-first-frame") && !g->independent_first_frame)
        return tt_fail(ctx, TT_EINVAL, "--image is a chunk of one frame; it "
                       "cannot be used with --no-independent-first-frame");
    g->independent_first_frame = 1;
    return TT_OK;
}

/* The schedule of the policy's release, where none was asked for. A count is
 * its own list where that has as many; another one is spaced by the shift. */
static tt_status default_schedule(tt_ctx *ctx, tt_settings *g,
                                  const tt_policy_schedule *s)
{
    double list[TT_MAX_STEPS];
    const bool warp = given(g, "warp") && g->warp;
    bool counted = false;
    int n = 0;
    if (!s) return ctx->status;
    if (given(g, "steps"))
        TT_TRY(tt_setting_steps(ctx, list, &n, &counted, g->steps));
    const bool own = !n || (counted && n == s->nsteps);
    if (own && !warp) g->steps = s->text;
    if (!given(g, "warp") && (own || !counted)) g->warp = s->warp;
    if (!given(g, "shift")) g->shift = s->shift;
    return TT_OK;
}

static tt_status fill_sampler(tt_ctx *ctx, tt_settings *g,
                              tt_rollout_options *o)
{
    const tt_policy_schedule *s = tt_policy_class_of(&o->policy)->schedule;
    int n;
    TT_TRY(default_schedule(ctx, g, s));
    TT_TRY(tt_setting_steps(ctx, o->steps, &n, NULL, g->steps));
    if (n > 1 && o->steps[n - 1] == 0 && s) n--; /* CausVid's list ends so */
    if (!(g->shift > 0))
        return tt_fail(ctx, TT_EINVAL, "--shift must be positive, but %g was "
                       "given", g->shift);
    if (g->context_noise < 0 || g->context_noise > 1000)
        return tt_fail(ctx, TT_EINVAL, "--context-noise must be 0 to 1000, but "
                       "%lld was given", (long long)g->context_noise);
    o->nsteps = n;
    if (g->first_steps)
        TT_TRY(tt_setting_steps(ctx, o->first_steps, &o->nfirst, NULL,
                                g->first_steps));
    o->warp = g->warp != 0;
    o->shift = g->shift;
    o->chunk = g->chunk;
    o->context_noise = g->context_noise;
    o->independent_first_frame = g->independent_first_frame != 0;
    o->h = g->height / 8;
    o->w = g->width / 8;
    o->rollouts = g->rollouts;
    o->overlap = g->overlap;
    o->latent_restart = !strcmp(g->restart, "latent");
    return TT_OK;
}

/* Options that are one of two words, or of three. */
static tt_status check_words(tt_ctx *ctx, const tt_settings *g)
{
    const struct { const char *option, *word, *a, *b; } word[] = {
        {"cut-rule", g->cut_rule, "official", "readme"},
        {"restart", g->restart, "vae", "latent"},
        {"decode", g->decode, "after", "during"}};
    const char *keep = g->keep_keys;
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++)
        if (strcmp(word[i].word, word[i].a) && strcmp(word[i].word, word[i].b))
            return tt_fail(ctx, TT_EINVAL, "--%s is %s or %s, but `%s` was "
                           "given", word[i].option, word[i].a, word[i].b,
                           word[i].word);
    if (strcmp(keep, "auto") && strcmp(keep, "yes") && strcmp(keep, "no"))
        return tt_fail(ctx, TT_EINVAL, "--keep-keys is auto, yes or no, but "
                       "`%s` was given", keep);
    tt_class vae;
    return tt_model_vae_class(ctx, &vae, &g->model);
}

tt_status tt_settings_check(tt_ctx *ctx, tt_settings *g,
                            tt_rollout_options *opt)
{
    *opt = tt_rollout_defaults();
    if (ctx->status) return ctx->status;
    TT_TRY(settings_fill_model(ctx, g));
    TT_TRY(check_text(ctx, g));
    TT_TRY(check_noise(ctx, g));
    TT_TRY(check_size(ctx, g));
    TT_TRY(rules_check_length(ctx, g));
    TT_TRY(check_pairs(ctx, g));
    TT_TRY(check_given(ctx, g));
    TT_TRY(check_words(ctx, g));
    TT_TRY(settings_fill_policy(ctx, g, &opt->policy));
    TT_TRY(check_effect(ctx, g));
    TT_TRY(fill_sampler(ctx, g, opt));
    opt->policy.context_noise = g->context_noise;
    opt->keep_keys = strcmp(g->keep_keys, "no") != 0;
    opt->bf16_kv = !g->analyze && !g->dump;     /* which look at keys */
    opt->kv_dir = g->kv_dir;
    opt->ends = !g->trace && !g->analyze
             && !(tt_policy_class_of(&opt->policy)->flags & TT_KEEPS_NOISY);
    return TT_OK;
}

/* ---- length -------------------------------------------------------------- */

/* The largest length of first + i*chunk frames that is <= n, 0 when none. */
static int64_t whole_chunks(int64_t n, int64_t first, int64_t chunk)
{
    if (n < first) return 0;
    return first + (n - first) / chunk * chunk;
}

/* Video frames of n generated latents. */
static int64_t video_frames(int64_t n, bool after)
{
    return after ? 4 * n : 4 * n - 3;
}

int64_t settings_frames(const tt_rollout_options *opt)
{
    return video_frames(opt->latents, opt->initial_frames > 0);
}

static tt_status not_whole(tt_ctx *ctx, const char *option, double asked,
                           double below, double above, int64_t chunk,
                           int64_t n_below, int64_t n_above)
{
    char low[96] = "", high[96];
    bool latents = !strcmp(option, "latents"); /* need not be said twice */
    if (below > 0)
        snprintf(low, sizeof low, latents ? "%g and "
                 : "%g (%lld latents) and ", below, (long long)n_below);
    snprintf(high, sizeof high, latents ? "%g" : "%g (%lld latents)", above,
             (long long)n_above);
    return tt_fail(ctx, TT_EINVAL, "--%s %g is not a whole number of chunks of "
                   "%lld latent frames; the nearest that %s: %s%s", option,
                   asked, (long long)chunk, below > 0 ? "are" : "is", low,
                   high);
}

/* The latent frames of --seconds or --frames. */
static tt_status length_of_video(tt_ctx *ctx, const tt_settings *g,
                                 bool seconds, int64_t first,
                                 tt_rollout_options *opt)
{
    const bool have = opt->initial_frames > 0;
    const int64_t c = opt->chunk;
    double asked = seconds ? FPS * g->seconds : (double)g->frames;
    double slack = seconds ? 4 : 0.5; /* seconds: within a latent frame */
    int64_t n = (int64_t)(asked + (have ? 0 : 3)) / 4;
    int64_t low = whole_chunks(n, first, c);
    int64_t high = low ? low + c : first;
    if (low && fabs((double)video_frames(low, have) - asked) < slack)
        opt->latents = low;
    else if (fabs((double)video_frames(high, have) - asked) < slack)
        opt->latents = high;
    else
        return not_whole(ctx, seconds ? "seconds" : "frames",
                         seconds ? g->seconds : asked,
                         (low ? (double)video_frames(low, have) : 0)
                             / (seconds ? FPS : 1),
                         (double)video_frames(high, have)
                             / (seconds ? FPS : 1), c, low, high);
    return TT_OK;
}

tt_status settings_length(tt_ctx *ctx, const tt_settings *g,
                          tt_rollout_options *opt)
{
    const bool have = opt->initial_frames > 0;
    const int64_t c = opt->chunk;
    const int64_t first = opt->independent_first_frame && !have ? 1 : c;
    const bool seconds = given(g, "seconds");
    if (seconds || given(g, "frames"))
        return length_of_video(ctx, g, seconds, first, opt);
    if (given(g, "latents")) {
        int64_t low = whole_chunks(g->latents, first, c);
        if (low != g->latents)
            return not_whole(ctx, "latents", (double)g->latents, (double)low,
                             (double)(low ? low + c : first), c, low,
                             low ? low + c : first);
        opt->latents = g->latents;
    } else if (!opt->latents) {
        /* 21, or the next length that is whole chunks; causvid: one clip,
         * which must fit the budget */
        const bool clip =
            tt_policy_class_of(&opt->policy)->flags & TT_RESTARTS;
        const int64_t want = clip ? opt->policy.K : 21;
        opt->latents = whole_chunks(want, first, c);
        if (opt->latents < want && !clip)
            opt->latents += opt->latents ? c : first;
    }
    return TT_OK;
}
