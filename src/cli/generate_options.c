/* generate_options.c: the options of `tether generate` and their rules.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rules about single policies (K, S, R, M, alpha, tau) live with the policies
 * (policy.h, check); here are only those of the command line, and in
 * generate_policy.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/generate.h"

enum { FPS = 16 };

static const opt_spec fixed[] = {
    {OPT_GROUP, NULL, 0, 0, NULL, "Model"},
    MODEL_ROW_FOLDER(generate, model),
    MODEL_ROWS_DIT(generate, model),
    MODEL_ROW_VAE(generate, model),
    MODEL_ROW_TINY_VAE(generate, model),
    MODEL_ROWS_TEXT(generate, model),

    {OPT_GROUP, NULL, 0, 0, NULL, "Text (one of these)"},
    {OPT_TEXT, "prompt", 'p', offsetof(generate, prompt), "TEXT",
     "what the video shows"},
    {OPT_READ, "prompt-file", 0, offsetof(generate, prompt_file), "FILE",
     "one prompt per line, one video (or --num-samples videos) each"},
    {OPT_READ, "embeds", 0, offsetof(generate, embeds), "FILE",
     "text [1, rows, dim] from `tether embed`, instead of the text encoder; "
     "with scenes text, text_1, ... for the distinct prompts in order"},
    {OPT_TEXT, "scene", 0, offsetof(generate, scene), "LIST",
     "a video of several prompts: 'A[3s] | B[2.3s#] | C'. A scene lasts as "
     "many whole chunks as fit its seconds (14 chunks without a tag), # makes "
     "a cut (--cache infinity)"},
    {OPT_READ, "scene-file", 0, offsetof(generate, scene_file), "FILE",
     "the same with one scene per line: first chunk, blank, prompt; 12# "
     "begins with a cut"},
    {OPT_TEXT, "cut-rule", 0, offsetof(generate, cut_rule), "RULE",
     "the # of a scene list makes a cut after its scene (official, the "
     "default: what infinity-RoPE's code does) or before it (readme)"},

    {OPT_GROUP, NULL, 0, 0, NULL, "Size and length"},
    {OPT_INT, "width", 'W', offsetof(generate, width), "PIXELS",
     "multiple of 16 (default 832, or that of the model's "
     "config.json or of --noise)"},
    {OPT_INT, "height", 'H', offsetof(generate, height), "PIXELS",
     "multiple of 16 (default 480, or that of the model's "
     "config.json or of --noise)"},
    {OPT_TEXT, "size", 0, offsetof(generate, size), "WxH",
     "both at once: 832x480"},
    {OPT_INT, "latents", 0, offsetof(generate, latents), "N",
     "latent frames to generate (default 21, which is 81 video frames). A "
     "count here; a file in `decode`"},
    {OPT_INT, "frames", 0, offsetof(generate, frames), "N",
     "length as video frames: 1 + 4 (latents-1)"},
    {OPT_REAL, "seconds", 0, offsetof(generate, seconds), "X",
     "length in seconds at 16 fps, met to a quarter of a second"},

    {OPT_GROUP, NULL, 0, 0, NULL, "Noise"},
    {OPT_U64, "seed", 's', offsetof(generate, seed), "S",
     "64-bit seed (default 0), or random: one that is drawn and printed"},
    {OPT_INT, "sample", 0, offsetof(generate, sample), "I",
     "index of the first sample (default 0)"},
    {OPT_INT, "num-samples", 0, offsetof(generate, num_samples), "N",
     "videos per prompt (default 1)"},
    {OPT_TEXT, "seed-rule", 0, offsetof(generate, seed_rule), "RULE",
     "plain: the seed as given (default); official: seed + 100*prompt + "
     "sample"},
    {OPT_READ, "noise", 0, offsetof(generate, noise), "FILE",
     "noise [1, n, C, h, w] and renoise, as `tether noise` writes them, "
     "instead of the generator"},

    {OPT_GROUP, NULL, 0, 0, NULL, "Sampler"},
    {OPT_TEXT, "steps", 0, offsetof(generate, steps), "LIST",
     "denoising steps (default 1000,750,500,250)"},
    {OPT_SWITCH, "warp", 0, offsetof(generate, warp), NULL,
     "map the steps through the shifted schedule (default: yes)"},
    {OPT_REAL, "shift", 0, offsetof(generate, shift), "X",
     "shift of the noise schedule (default 5)"},
    {OPT_INT, "chunk", 0, offsetof(generate, chunk), "F",
     "latent frames generated together (default 3)"},
    {OPT_INT, "context-noise", 0, offsetof(generate, context_noise), "T",
     "timestep of the pass that fills the cache (default 0)"},
    {OPT_SWITCH, "independent-first-frame", 0,
     offsetof(generate, independent_first_frame), NULL,
     "the first chunk is one frame (default: no)"},
    {OPT_READ, "initial-latents", 0, offsetof(generate, initial), "FILE",
     "latents to continue: initial_latent [1, n0, C, h, w], or the latents of "
     "`encode` and `generate`"},
    {OPT_READ, "image", 0, offsetof(generate, image), "FILE",
     "the first frame, a PNG or JPEG, resized to the video's size; implies "
     "--independent-first-frame"},
    {OPT_READ, "initial-video", 0, offsetof(generate, initial_video), "PATH",
     "frames to continue: a video or frames/%05d.png, as `encode` reads them"},
    {OPT_INT, "initial-frames", 0, offsetof(generate, initial_frames), "N",
     "only the last N frames of --initial-video (default: all)"},

    {OPT_GROUP, NULL, 0, 0, NULL, "Cache policy"},
    {OPT_TEXT, "cache", 0, offsetof(generate, cache), "NAME",
     "what stays in the cache (default tether), also with knobs as in "
     "tether:tau=0.6:pool=frame. The policies:"},
    {OPT_TEXT, "preset", 0, offsetof(generate, preset), "NAME",
     "settings of --cache tether by name; an explicit option wins:"},
    {OPT_INT, "rollouts", 0, offsetof(generate, rollouts), "N",
     "causvid: clips, each with --latents frames, of which all but the last "
     "4 (overlap-1) + 1 video frames are shown (default 1)"},
    {OPT_INT, "overlap", 0, offsetof(generate, overlap), "O",
     "causvid: frames a clip takes over from the one before (default 3)"},
    {OPT_TEXT, "restart", 0, offsetof(generate, restart), "HOW",
     "causvid: the first of them is decoded and encoded again (vae, the "
     "default), or used as it is (latent: not what CausVid does, needs no "
     "VAE). start_frame in --noise replaces both"},

    {OPT_GROUP, NULL, 0, 0, NULL, "Output"},
    {OPT_WRITE, "output", 'o', offsetof(generate, output), "PATH",
     ".apng (browsers show it), .mp4 .webm .mkv .gif (through ffmpeg, 16 fps), "
     ".y4m, frames/%05d.png, or - for y4m on standard output"},
    {OPT_WRITE, "animation", 0, offsetof(generate, animation), "FILE.apng",
     "the same video as an animated PNG, beside what -o writes"},
    {OPT_WRITE, "contact-sheet", 0, offsetof(generate, sheet), "FILE",
     "PNG with evenly spaced frames"},
    {OPT_WRITE, "latents-out", 0, offsetof(generate, latents_out), "FILE",
     "latents [1, n0+n, C, h, w], complete before decoding starts (default: "
     "beside the output, ending in .latents.safetensors; with -o - "
     "tether-SEED.latents.safetensors)"},
    {OPT_FLAG, "no-decode", 0, offsetof(generate, no_decode), NULL,
     "stop after the latents"},
    {OPT_MAYBE, "preview", 0, offsetof(generate, preview), "FILE.png",
     "a small picture of each chunk as soon as it is there; with %d in the "
     "name one per chunk (default name: beside the output)"},
    {OPT_FLAG, "vbench-name", 0, offsetof(generate, vbench_name), NULL,
     "-o is a folder; videos are called PROMPT-SAMPLE.mp4 in it"},

    {OPT_GROUP, NULL, 0, 0, NULL, "Records"},
    {OPT_WRITE, "record", 0, offsetof(generate, record), "FILE",
     "JSON with every option, versions, hashes of all inputs (reads every "
     "weight file once more) and times"},
    {OPT_WRITE, "dump", 0, offsetof(generate, dump), "FILE",
     "safetensors with the tensors inside, named like "
     "chunk.0/step.1/block.5/self_attn.q; with text/... of the encoder and "
     "vae/... of the decoder (text/... only where one video is made)"},
    {OPT_TEXT, "dump-filter", 0, offsetof(generate, dump_filter), "GLOB",
     "only names that match, e.g. 'chunk.2/*/block.0/*'; what is in the KV "
     "cache after each chunk only when asked for: 'chunk.*/cache.*'"},
    {OPT_READ, "inject", 0, offsetof(generate, inject), "FILE",
     "take the tensors of this dump instead of the computed ones, wherever it "
     "has one of the same name and shape (--dump shows what was computed)"},
    {OPT_TEXT, "inject-filter", 0, offsetof(generate, inject_filter), "GLOB",
     "only names that match"},
    {OPT_TEXT, "analyze", 0, offsetof(generate, analyze), "FOLDER",
     "record the run for `tether analyze`: latents, what was in the cache, "
     "statistics of keys and values"},
    {OPT_TEXT, "label", 0, offsetof(generate, label), "NAME",
     "what the run is called in tables and legends (default: the policy)"},
    {OPT_WRITE, "trace-cache", 0, offsetof(generate, trace), "FILE",
     "safetensors with every decision of the cache policy"},
    {OPT_FLAG, "profile", 0, offsetof(generate, profile), NULL,
     "print the time per operator at the end"},

    {OPT_GROUP, NULL, 0, 0, NULL, "Files that are there"},
    {OPT_FLAG, "resume", 0, offsetof(generate, resume), NULL,
     "go on where the same command was interrupted, to the same bits"},
    {OPT_FLAG, "overwrite", 0, offsetof(generate, overwrite), NULL,
     "replace files of other runs, discard unfinished work. Without it only "
     "the run that made a file may replace it"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

/* The rows above and one per knob of a policy, from generate_fill_options. */
static opt_spec options[OPT_SEEN_MAX];

void generate_fill_options(void)
{
    int n = 0;
    for (const opt_spec *o = fixed; o->kind; o++) {
        TT_ASSERT(n < OPT_SEEN_MAX - 1);
        options[n] = *o;
        if (o->name && !strcmp(o->name, "cache"))
            options[n].help = generate_policy_help(o->help);
        if (o->name && !strcmp(o->name, "preset")) {
            options[n].help = generate_preset_help(o->help);
            n += generate_knob_options(options + n + 1, OPT_SEEN_MAX - 2 - n);
        }
        n++;
    }
    options[n] = (opt_spec){OPT_END, NULL, 0, 0, NULL, NULL};
}

const opt_command generate_command = {
    .name = "generate",
    .summary = "a video from a prompt or from embeddings",
    .usage = "-m DIR [--checkpoint FILE] -p TEXT -o PATH [options]",
    .intro = "The prompt is encoded, then the transformer makes the video "
             "chunk by chunk with a cache of past frames, then the VAE "
             "decodes it. The text encoder is closed before the transformer "
             "runs, and the latents are on disk before decoding starts.",
    .examples =
    "  tether generate -m Wan2.1-T2V-1.3B --checkpoint self_forcing_dmd.pt \\\n"
    "      -p \"a cat walks on grass\" -o cat.mp4\n"
    "  a minute with the long-memory cache, resumable after ^C:\n"
    "  tether generate -m Wan2.1-T2V-1.3B --checkpoint self_forcing_dmd.pt \\\n"
    "      -p \"a cat walks on grass\" --latents 240 -o cat.mp4 --resume\n"
    "  the settings of the paper, with a log of every cache decision:\n"
    "  tether generate ... --preset paper --trace-cache trace.safetensors",
    .options = options,
};

generate generate_defaults(void)
{
    return (generate){
        .model = MODEL_PATHS_DEFAULT, .num_samples = 1, .seed_rule = "plain",
        .steps = "1000,750,500,250", .warp = 1, .shift = 5, .chunk = 3,
        .cache = "tether", .cut_rule = "official", .rollouts = 1, .overlap = 3,
        .restart = "vae",
    };
}

/* ---- rules --------------------------------------------------------------- */

static const char *const me = "generate";

static int check_text(const generate *g)
{
    int n = !!g->prompt + !!g->prompt_file + !!g->embeds;
    const bool scenes = g->scene || g->scene_file;
    if (g->scene && g->scene_file)
        return opt_usage(me, "give only one of --scene and --scene-file");
    if (scenes && (g->prompt || g->prompt_file))
        return opt_usage(me, "--scene and --scene-file bring their own "
                         "prompts; leave out -p and --prompt-file");
    if (!scenes && n != 1)
        return opt_usage(me, "give one of -p TEXT, --prompt-file FILE, "
                         "--embeds FILE, --scene LIST and --scene-file FILE "
                         "(%d were given)", n);
    return -1;
}

static int check_noise(const generate *g)
{
    if (strcmp(g->seed_rule, "plain") && strcmp(g->seed_rule, "official"))
        return opt_usage(me, "--seed-rule is plain or official, but `%s` was "
                         "given", g->seed_rule);
    if (g->num_samples < 1 || g->num_samples > 1000000)
        return opt_usage(me, "--num-samples must be 1 to 1000000");
    if (g->sample < 0 || g->sample > UINT32_MAX - (g->num_samples - 1))
        return opt_usage(me, "--sample must be 0 to %lld with %lld sample%s",
                         (long long)(UINT32_MAX - (g->num_samples - 1)),
                         (long long)g->num_samples,
                         g->num_samples == 1 ? "" : "s");
    if (g->noise && g->num_samples > 1)
        return opt_usage(me, "--noise holds the noise of one video; it cannot "
                         "be used with --num-samples %lld",
                         (long long)g->num_samples);
    return -1;
}

/* Options that another option makes useless. */
static int check_effect(const generate *g, const opt_result *given)
{
    static const char *const of_seed[] = {"seed", "seed-rule"};
    static const char *const of_clips[] = {"overlap", "restart"};
    for (int i = 0; i < 2; i++)
        if (g->noise && opt_given(given, of_seed[i]))
            return opt_usage(me, "--%s has no effect with --noise, which "
                             "brings the noise; give one of the two",
                             of_seed[i]);
    for (int i = 0; i < 2; i++)
        if (!g->noise && g->rollouts == 1 && opt_given(given, of_clips[i]))
            return opt_usage(me, "--%s has no effect with one rollout; give "
                             "--rollouts N as well", of_clips[i]);
    if (!g->scene && opt_given(given, "cut-rule"))
        return opt_usage(me, "--cut-rule has no effect without --scene LIST");
    return -1;
}

/* --size in place of -W and -H. */
static int split_size(generate *g, const opt_result *given)
{
    long long w, h;
    char end;
    if (!g->size) return -1;
    if (opt_given(given, "width") || opt_given(given, "height"))
        return opt_usage(me, "give --size or -W and -H, not both");
    if (sscanf(g->size, "%lldx%lld%c", &w, &h, &end) != 2
        && sscanf(g->size, "%lld*%lld%c", &w, &h, &end) != 2)
        return opt_usage(me, "--size needs WIDTHxHEIGHT like 832x480, but `%s` "
                         "was given", g->size);
    g->width = w;
    g->height = h;
    return -1;
}

static int check_size(generate *g, const opt_result *given)
{
    const int status = split_size(g, given);
    if (status >= 0) return status;
    const struct { const char *name; int64_t v; } side[] = {
        {"width", g->width}, {"height", g->height}};
    for (int i = 0; i < 2; i++) {
        if (!g->size && !opt_given(given, side[i].name)) continue;
        if (side[i].v < 16 || side[i].v > 16384 || side[i].v % 16) {
            int64_t v = side[i].v < 16 ? 16 : side[i].v > 16384 ? 16384
                                                                : side[i].v;
            return opt_usage(me, "--%s must be a multiple of 16 from 16 to "
                             "16384, but %lld was given; the nearest is %lld",
                             side[i].name, (long long)side[i].v,
                             (long long)((v + 8) / 16 * 16));
        }
    }
    return -1;
}

static int check_length(const generate *g, const opt_result *given)
{
    int n = opt_given(given, "latents") + opt_given(given, "frames")
          + opt_given(given, "seconds");
    if (n > 1)
        return opt_usage(me, "give only one of --latents, --frames and "
                         "--seconds");
    if ((opt_given(given, "latents") && g->latents < 1)
        || (opt_given(given, "frames") && g->frames < 1)
        || (opt_given(given, "seconds") && !(g->seconds > 0)))
        return opt_usage(me, "the length must be positive");
    if (g->latents > 1000000 || g->frames > 4000000 || g->seconds > 250000)
        return opt_usage(me, "the length is impossible: at most 1000000 "
                         "latent frames");
    if (g->chunk < 1 || g->chunk > 1024)
        return opt_usage(me, "--chunk must be 1 to 1024, but %lld was given",
                         (long long)g->chunk);
    return -1;
}

static int check_output(const generate *g)
{
    if (!g->output && !g->sheet && !(g->no_decode && g->latents_out))
        return opt_usage(me, "nothing to write: give -o PATH or "
                         "--contact-sheet FILE, or --no-decode with "
                         "--latents-out FILE");
    if (g->output && !strcmp(g->output, "-") && !g->no_decode
        && g->num_samples > 1)
        return opt_usage(me, "only one video can go to the standard output, "
                         "not --num-samples %lld", (long long)g->num_samples);
    return -1;
}

/* Options that need another one, or do not go with it. */
static int check_pairs(const generate *g)
{
    if (g->vbench_name && (!g->output || g->embeds))
        return opt_usage(me, "--vbench-name needs -o FOLDER and a prompt");
    if (g->dump_filter && !g->dump)
        return opt_usage(me, "--dump-filter needs --dump FILE");
    if (g->inject_filter && !g->inject)
        return opt_usage(me, "--inject-filter needs --inject FILE");
    if (g->inject && g->resume)
        return opt_usage(me, "--inject and --resume: chunks that are done "
                         "already would be without it");
    if (g->label && !g->analyze)
        return opt_usage(me, "--label needs --analyze FOLDER");
    if (g->resume && (g->prompt_file || g->num_samples > 1))
        return opt_usage(me, "--resume goes with one video; give one prompt "
                         "and --sample I");
    return -1;
}

static int check_given(generate *g, const opt_result *given)
{
    if (!!g->initial + !!g->image + !!g->initial_video > 1)
        return opt_usage(me, "give only one of --initial-latents, --image and "
                         "--initial-video");
    if (opt_given(given, "initial-frames")
        && (!g->initial_video || g->initial_frames < 1
            || g->initial_frames > INT32_MAX))
        return opt_usage(me, "--initial-frames needs --initial-video and a "
                         "number of frames from 1");
    if (!g->image) return -1;
    if (opt_given(given, "independent-first-frame")
        && !g->independent_first_frame)
        return opt_usage(me, "--image is a chunk of one frame; it cannot be "
                         "used with --no-independent-first-frame");
    g->independent_first_frame = 1;
    return -1;
}

/* The schedule of the policy's release, where none was asked for. */
static void default_schedule(generate *g, const opt_result *given,
                             const tt_policy_schedule *s)
{
    const bool steps = opt_given(given, "steps");
    const bool warp = opt_given(given, "warp") && g->warp;
    if (!s) return;
    if (!steps && !warp) g->steps = s->text;
    if (!opt_given(given, "warp")) g->warp = s->warp;
    if (!opt_given(given, "shift")) g->shift = s->shift;
}

static int fill_sampler(generate *g, const opt_result *given,
                        tt_rollout_options *o)
{
    const tt_policy_schedule *s = tt_policy_class_of(&o->policy)->schedule;
    default_schedule(g, given, s);
    int n = opt_list_real(o->steps, TT_MAX_STEPS, g->steps);
    if (n < 1)
        return opt_usage(me, "--steps needs up to %d numbers like 1000,750,"
                         "500,250, but `%s` was given", TT_MAX_STEPS,
                         g->steps);
    if (n > 1 && o->steps[n - 1] == 0 && s) n--; /* CausVid's list ends so */
    if (!(g->shift > 0))
        return opt_usage(me, "--shift must be positive, but %g was given",
                         g->shift);
    if (g->context_noise < 0 || g->context_noise > 1000)
        return opt_usage(me, "--context-noise must be 0 to 1000, but %lld was "
                         "given", (long long)g->context_noise);
    o->nsteps = n;
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
    return -1;
}

/* Options that are one of two words. */
static int check_words(const generate *g)
{
    const struct { const char *option, *word, *a, *b; } word[] = {
        {"cut-rule", g->cut_rule, "official", "readme"},
        {"restart", g->restart, "vae", "latent"}};
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++)
        if (strcmp(word[i].word, word[i].a) && strcmp(word[i].word, word[i].b))
            return opt_usage(me, "--%s is %s or %s, but `%s` was given",
                             word[i].option, word[i].a, word[i].b,
                             word[i].word);
    return -1;
}

int generate_check(generate *g, const opt_result *given,
                   tt_rollout_options *opt)
{
    *opt = tt_rollout_defaults();
    int status = check_text(g);
    if (status < 0) status = check_noise(g);
    if (status < 0) status = check_size(g, given);
    if (status < 0) status = check_length(g, given);
    if (status < 0) status = check_output(g);
    if (status < 0) status = check_pairs(g);
    if (status < 0) status = check_given(g, given);
    if (status < 0) status = check_words(g);
    if (status < 0) status = generate_fill_policy(g, given, &opt->policy);
    if (status < 0) status = check_effect(g, given);
    if (status < 0) status = fill_sampler(g, given, opt);
    opt->policy.context_noise = g->context_noise;
    return status;
}

/* ---- length -------------------------------------------------------------- */

/* The largest length of first + i*chunk frames that is <= n, 0 when none. */
static int64_t whole_chunks(int64_t n, int64_t first, int64_t chunk)
{
    if (n < first) return 0;
    return first + (n - first) / chunk * chunk;
}

/* Video frames of n generated latents. */
static int64_t video_frames(int64_t n, bool given)
{
    return given ? 4 * n : 4 * n - 3;
}

int64_t generate_frames(const tt_rollout_options *opt)
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
static tt_status length_of_video(tt_ctx *ctx, const generate *g, bool seconds,
                                 int64_t first, tt_rollout_options *opt)
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

tt_status generate_length(tt_ctx *ctx, const generate *g,
                          const opt_result *given, tt_rollout_options *opt)
{
    const bool have = opt->initial_frames > 0;
    const int64_t c = opt->chunk;
    const int64_t first = opt->independent_first_frame && !have ? 1 : c;
    const bool seconds = opt_given(given, "seconds");
    if (seconds || opt_given(given, "frames"))
        return length_of_video(ctx, g, seconds, first, opt);
    if (opt_given(given, "latents")) {
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
