/* cmd_generate.c: tether generate, from a prompt to a video.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The order of things: options; every file that is needed later is opened
 * once, so that nothing missing is found out after hours; text, and the
 * encoder is closed; for every video its latents, on disk when complete; then
 * the cache is gone and the VAE decodes. (The transformer's weights stay
 * mapped for the next video; the system drops their pages when it needs to.)
 * Next    generate_run.c */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/dump.h"
#include "cli/generate.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "tether/analyze.h"
#include "tether/outfile.h"
#include "tether/video.h"

typedef struct session {
    tt_ctx *ctx;
    generate g;
    opt_result given;
    tt_rollout_options opt;
    progress progress;
    record record;
    dump dump;
    inject inject;
    tt_arena mem;        /* noise, given latents, names                       */
    tt_dit *dit;
    texts texts;
    int videos;          /* prompts that get their own                        */
    given_frames given_frames;
    tt_scenes scenes;    /* none: n = 0                                       */
    tt_vae *restart_vae; /* causvid: for the frames between rollouts          */
    latents_file first;  /* claimed before the work, of the first video       */
    tt_arena made_mem;
    struct made *made;   /* run folders that were not there before            */
} session;

typedef struct made {
    const char *path;
    size_t there;        /* bytes of it that were                             */
    struct made *next;
} made;

/* ---- inputs -------------------------------------------------------------- */

/* Latent height and width: from the options, else from the first file that
 * has them, else 832x480. -1 stands for "take what the file has". */
static void size_for_file(const session *s, int64_t *h, int64_t *w)
{
    *h = s->opt.h ? s->opt.h : -1;
    *w = s->opt.w ? s->opt.w : -1;
}

/* The transformer takes patches of 2 x 2. */
static void check_even(session *s, const char *path)
{
    if (s->ctx->status || (s->opt.h % 2 == 0 && s->opt.w % 2 == 0)) return;
    tt_fail(s->ctx, TT_ESHAPE, "%s: latent frames of width %lld and height "
            "%lld; both must be even", path, (long long)s->opt.w,
            (long long)s->opt.h);
}

/* `initial_latent`, or `latents` as other commands write them. */
static const char *initial_name(session *s)
{
    tt_file *file = NULL;
    const char *name = "initial_latent";
    if (tt_file_open(s->ctx, &file, s->g.initial)) return name;
    if (!tt_file_find(file, name) && tt_file_find(file, "latents"))
        name = "latents";
    tt_file_close(file);
    return name;
}

/* Does the file hold frames of the size that was asked for? In pixels, where
 * input_read would speak of a tensor's shape. */
static tt_status check_pixels(session *s, const char *path, const char *name)
{
    tt_file *f = NULL;
    TT_TRY(s->ctx->status);
    TT_TRY(tt_file_open(s->ctx, &f, path));
    const tt_entry *e = tt_file_find(f, name);
    const int64_t h = e && e->t.rank == 5 ? e->t.dim[3] : 0;
    const int64_t w = e && e->t.rank == 5 ? e->t.dim[4] : 0;
    tt_file_close(f);
    if ((s->opt.h && h && h != s->opt.h) || (s->opt.w && w && w != s->opt.w))
        tt_fail(s->ctx, TT_ESHAPE, "%s holds frames of %lldx%lld pixels, but "
                "the video is to have %lldx%lld; leave out -W and -H to take "
                "the file's size", path, (long long)(8 * w),
                (long long)(8 * h), (long long)(8 * (s->opt.w ? s->opt.w : w)),
                (long long)(8 * (s->opt.h ? s->opt.h : h)));
    return s->ctx->status;
}

/* Latents to continue, or what they will be encoded from. */
static void read_initial(session *s, int64_t C)
{
    given_plan(s->ctx, &s->given_frames, &s->g, &s->opt);
    int64_t dim[5] = {1, -1, C, 0, 0};
    if (!s->g.initial || s->ctx->status) return;
    const char *name = initial_name(s);
    if (check_pixels(s, s->g.initial, name)) return;
    size_for_file(s, &dim[3], &dim[4]);
    s->opt.initial = input_read(s->ctx, &s->mem, s->g.initial, name, 5, dim);
    if (!s->opt.initial) return;
    s->opt.initial_frames = dim[1];
    s->opt.h = dim[3];
    s->opt.w = dim[4];
    check_even(s, s->g.initial);
    record_input(s->ctx, &s->record, "initial latents", s->g.initial, NULL);
}

static void read_noise(session *s, int64_t C)
{
    int64_t dim[5] = {1, -1, C, 0, 0};
    bool length = opt_given(&s->given, "latents")
               || opt_given(&s->given, "frames")
               || opt_given(&s->given, "seconds");
    if (!s->g.noise || check_pixels(s, s->g.noise, "noise")) return;
    size_for_file(s, &dim[3], &dim[4]);
    record_input(s->ctx, &s->record, "noise", s->g.noise, NULL);
    if (tt_policy_class_of(&s->opt.policy)->flags & TT_RESTARTS) {
        if (length && generate_length(s->ctx, &s->g, &s->given, &s->opt))
            return;
        s->opt.h = dim[3];
        s->opt.w = dim[4];
        restarts_read_noise(s->ctx, &s->mem, s->g.noise, C, length, &s->opt);
        check_even(s, s->g.noise);
        return;
    }
    s->opt.noise.noise = input_read(s->ctx, &s->mem, s->g.noise, "noise", 5,
                                    dim);
    if (!s->opt.noise.noise) return;
    s->opt.h = dim[3];
    s->opt.w = dim[4];
    check_even(s, s->g.noise);
    if (!length) s->opt.latents = dim[1];
    if (generate_length(s->ctx, &s->g, &s->given, &s->opt)) return;
    if (s->opt.latents != dim[1]) {
        tt_fail(s->ctx, TT_ESHAPE, "%s holds noise for %lld latent frames, but "
                "the length asked for is %lld", s->g.noise, (long long)dim[1],
                (long long)s->opt.latents);
        return;
    }
    int64_t again[4] = {(s->opt.nsteps - 1) * s->opt.latents, C, dim[3],
                        dim[4]};
    if (s->opt.nsteps > 1)
        s->opt.noise.renoise = input_read(s->ctx, &s->mem, s->g.noise,
                                          "renoise", 4, again);
}

/* Video frames cut from the end of every clip, when there are several. */
static int64_t dropped_frames(const tt_rollout_options *o)
{
    return o->rollouts > 1 ? 4 * (o->overlap - 1) + 1 : 0;
}

static int64_t video_frames(const tt_rollout_options *o)
{
    const int64_t n = o->initial_frames + o->latents;
    return o->rollouts * (decode_frames(n) - dropped_frames(o));
}

static tt_status read_inputs(session *s)
{
    const int64_t C = tt_dit_get_config(s->dit)->in_dim;
    s->opt.latents = 0; /* not known yet */
    read_initial(s, C);
    read_noise(s, C);
    int64_t width, height;
    TT_TRY(s->ctx->status);
    TT_TRY(model_size(s->ctx, &width, &height, &s->g.model));
    if (!s->opt.h) s->opt.h = height / 8;
    if (!s->opt.w) s->opt.w = width / 8;
    TT_TRY(generate_length(s->ctx, &s->g, &s->given, &s->opt));
    s->g.width = 8 * s->opt.w; /* what a record shows */
    s->g.height = 8 * s->opt.h;
    s->g.latents = s->opt.latents;
    s->g.rollouts = s->opt.rollouts;
    s->g.frames = generate_frames(&s->opt);
    s->g.seconds = (double)s->g.frames / 16;
    return TT_OK;
}

static tt_status open_dit(session *s)
{
    model_source from;
    TT_TRY(model_open_dit(s->ctx, &s->dit, &s->g.model, &from));
    record_input(s->ctx, &s->record, "transformer", from.path, from.origin);
    const tt_dit_config *c = tt_dit_get_config(s->dit);
    progress_note(&s->progress, "transformer: %s (%s), %lld layers of width "
                  "%lld, %lld heads", from.path, from.origin,
                  (long long)c->layers, (long long)c->dim,
                  (long long)c->heads);
    return TT_OK;
}

/* Rules about the whole run, before the text encoder takes its time;
 * tt_rollout_open asks again. */
static tt_status check_rules(session *s)
{
    s->opt.scenes = s->scenes.scene;
    s->opt.nscenes = s->scenes.n;
    s->opt.nprompts = s->scenes.nprompts;
    return tt_rollout_check(s->ctx, s->dit, &s->opt);
}

static tt_status open_vae(session *s, tt_vae **vae, model_source *from)
{
    const int64_t C = tt_dit_get_config(s->dit)->in_dim;
    TT_TRY(model_open_vae(s->ctx, vae, &s->g.model, from));
    if (tt_vae_z(*vae) != C)
        tt_fail(s->ctx, TT_ESHAPE, "the transformer makes %lld latent channels "
                "and the VAE takes %lld: they belong to different models",
                (long long)C, (long long)tt_vae_z(*vae));
    return s->ctx->status;
}

/* causvid decodes and encodes between two rollouts. */
static tt_status open_restart_vae(session *s)
{
    model_source from = {0};
    const tt_rollout_options *o = &s->opt;
    if (o->rollouts == 1 || o->start_frame || o->latent_restart)
        return s->ctx->status;
    if (model_open_vae_part(s->ctx, &s->restart_vae, &s->g.model,
                            TT_VAE_DECODER | TT_VAE_ENCODER, &from)
        && s->ctx->status != TT_EINTR) {
        char why[sizeof s->ctx->message];
        const tt_status status = s->ctx->status;
        snprintf(why, sizeof why, "%s", tt_message(s->ctx));
        tt_clear(s->ctx);
        return tt_fail(s->ctx, status, "%s (rollouts after the first need the "
                       "whole VAE; --restart latent does without)", why);
    }
    if (s->g.no_decode) /* else it is in the record already */
        record_input(s->ctx, &s->record, "VAE", from.path, from.origin);
    s->opt.vae = s->restart_vae;
    return s->ctx->status;
}

/* The given frames of --image and --initial-video, once all is checked. */
static tt_status encode_given(session *s)
{
    const char *path = s->given_frames.in.path;
    model_source from = {0};
    if (!path) return s->ctx->status;
    record_input(s->ctx, &s->record, s->g.image ? "image" : "initial video",
                 path, NULL);
    given_encode(s->ctx, &s->mem, &s->given_frames, &s->progress, &s->g,
                 tt_dit_get_config(s->dit)->in_dim, &s->opt, &from);
    if (s->g.no_decode) /* else it is in the record already */
        record_input(s->ctx, &s->record, "VAE", from.path, from.origin);
    return s->ctx->status;
}

/* Open and close the VAE: a missing one is an error now, not in hours. */
static tt_status try_vae(session *s)
{
    model_source from;
    tt_vae *vae = NULL;
    if (s->g.no_decode) return TT_OK;
    if (open_vae(s, &vae, &from) == TT_OK)
        record_input(s->ctx, &s->record, "VAE", from.path, from.origin);
    if (vae) tt_vae_close(vae);
    return s->ctx->status;
}

/* ---- names --------------------------------------------------------------- */

static uint64_t seed_of(const session *s, int prompt, int64_t sample)
{
    if (strcmp(s->g.seed_rule, "official")) return s->g.seed;
    return s->g.seed + 100 * (uint64_t)prompt + (uint64_t)sample;
}

static video_names names_of(session *s, int prompt, int64_t sample)
{
    const video_which which = {
        .prompt = s->texts.prompt[prompt], .number = prompt, .sample = sample,
        .several = s->texts.n > 1 && !s->scenes.n,
        .seed = seed_of(s, prompt, sample)};
    return names_make(s->ctx, &s->mem, &s->g, &which);
}

static decode_outputs outputs_of(session *s, const video_names *v)
{
    decode_outputs o = {.video = v->output, .animation = v->animation,
                        .sheet = v->sheet, .fps = 16,
                        .drop = dropped_frames(&s->opt)};
    if (v->latents) {
        size_t n = strlen(v->latents) + 128;
        char *after = tt_alloc(s->ctx, &s->mem, (int64_t)n, 1, "message");
        if (after)
            snprintf(after, n, "the latents are complete in %s; `tether "
                     "decode --latents` can decode them", v->latents);
        o.after = after;
    }
    return o;
}

/* --analyze needs its folder early: other outputs may go there. */
static tt_status make_run_folder(session *s, const char *path)
{
    const size_t there = tt_analyze_folder_there(path);
    if (there < strlen(path)) {
        made *m = tt_alloc(s->ctx, &s->made_mem, 1, sizeof *m, "file name");
        const char *name = tt_strdup(s->ctx, &s->made_mem, path);
        if (!m || !name) return s->ctx->status;
        *m = (made){name, there, s->made};
        s->made = m;
    }
    return tt_analyze_folder(s->ctx, path);
}

/* The folder of numbered pictures is made when the first is written; latents
 * that go there too need it now. */
static tt_status make_picture_folder(session *s, const video_names *v)
{
    const char *slash = v->output ? strrchr(v->output, '/') : NULL;
    const char *other = v->latents ? strrchr(v->latents, '/') : NULL;
    if (!slash || !other || !strchr(slash, '%') || slash == v->output
        || slash - v->output != other - v->latents
        || strncmp(v->output, v->latents, (size_t)(slash - v->output)))
        return s->ctx->status;
    char *folder = tt_strdup(s->ctx, &s->mem, v->output);
    if (!folder) return s->ctx->status;
    folder[slash - v->output] = 0;
    return make_run_folder(s, folder);
}

/* After a failure nothing is left of those that stayed empty. */
static void remove_run_folders(session *s)
{
    for (const made *m = s->made; m; m = m->next)
        if (s->ctx->status) tt_analyze_folder_remove(m->path, m->there);
    tt_arena_free(&s->made_mem);
}

/* Everything a video writes. */
enum { OUTPUTS = 12, BY_DECODER = 3 };
static void all_outputs(session *s, output_name out[OUTPUTS],
                        const video_names *v)
{
    tt_ctx *ctx = s->ctx;
    const output_name all[OUTPUTS] = {
        {"-o", v->output}, {"--animation", v->animation},
        {"--contact-sheet", v->sheet},
        {"--latents-out", v->latents}, {"--preview", v->preview},
        {"--record", v->record}, {"--dump", v->dump},
        {"--trace-cache", v->trace},
        {"--analyze", names_in(ctx, &s->mem, v->analyze,
                               "latents.safetensors")},
        {"--analyze", names_in(ctx, &s->mem, v->analyze, "trace.safetensors")},
        {"--analyze", names_in(ctx, &s->mem, v->analyze, "run.json")},
        {"--log-json", s->progress.log_path}};
    memcpy(out, all, sizeof all);
}

/* Can everything be written? */
static tt_status check_names(session *s, const video_names *v)
{
    output_name all[OUTPUTS];
    decode_outputs o = outputs_of(s, v);
    all_outputs(s, all, v);
    if (v->analyze) TT_TRY(make_run_folder(s, v->analyze));
    TT_TRY(s->ctx->status);
    TT_TRY(outputs_differ(s->ctx, all, OUTPUTS));
    TT_TRY(outputs_png(s->ctx, "--preview", v->preview));
    TT_TRY(outputs_png(s->ctx, "--contact-sheet", v->sheet));
    TT_TRY(decode_check(s->ctx, &o, s->opt.rollouts,
                        s->opt.initial_frames + s->opt.latents, s->opt.h,
                        s->opt.w));
    TT_TRY(make_picture_folder(s, v));
    for (int i = BY_DECODER; i < OUTPUTS - 1; i++) /* those are checked above */
        if (all[i].path) TT_TRY(tt_out_check(s->ctx, all[i].path));
    return s->ctx->status;
}

/* Are the files that are there this run's own? Its latents tell. `job` is NULL
 * before the text is encoded: then perhaps is yes. */
static bool is_ours(session *s, const video_names *v, const video_job *job)
{
    int64_t dim[5];
    if (s->g.inject || !v->latents) return false; /* nobody knows what was */
    if (!job) return latents_file_of_a_run(v->latents);
    if (access(v->latents, F_OK)) return false;
    const tt_arena_mark mark = tt_arena_here(&s->mem);
    const char *run = generate_describe(s->ctx, &s->mem, job);
    generate_shape(dim, job);
    const bool ours = run && latents_file_is(s->ctx, v->latents, dim, run);
    tt_arena_reset(&s->mem, mark);
    return ours;
}

/* May the files that are there be replaced? When they are this run's own, or
 * when the user said so. */
static tt_status check_free(session *s, const video_names *v,
                            const video_job *job)
{
    output_name all[OUTPUTS];
    if (s->g.overwrite || s->ctx->status || is_ours(s, v, job))
        return s->ctx->status;
    all_outputs(s, all, v);
    return outputs_free(s->ctx, all, OUTPUTS - 1, "this run did not make (its "
                        "prompt, options, seed or weights differ, or its "
                        "latents are gone)");
}

/* ---- one video ----------------------------------------------------------- */

/* "video 2 of 4", and its prompt. */
static void announce_number(session *s, int prompt, int64_t sample)
{
    const int64_t all = s->videos * s->g.num_samples;
    if (all == 1) return;
    progress_say(&s->progress, "video %lld of %lld: %s",
                 (long long)(prompt * s->g.num_samples
                             + sample - s->g.sample + 1), (long long)all,
                 s->texts.prompt[prompt] ? s->texts.prompt[prompt]
                                         : s->g.embeds);
}

/* "seed 7 sample 0", or the file that the noise comes from. */
static const char *noise_words(const session *s, const tt_rollout_options *o,
                               char *buf, size_t n)
{
    if (s->g.noise) snprintf(buf, n, "noise of %s", s->g.noise);
    else snprintf(buf, n, "seed %llu sample %u",
                  (unsigned long long)o->noise.seed, o->noise.sample);
    return buf;
}

static void announce(session *s, const video_job *job, int prompt)
{
    const tt_rollout_options *o = &job->opt;
    const int64_t n = (o->initial_frames + o->latents) * o->rollouts;
    char stem[TT_VBENCH_STEM_MAX + 1], noise[1024], memory[32];
    if (s->g.vbench_name && !tt_vbench_stem(stem, s->texts.prompt[prompt]))
        tt_warn(s->ctx, "the prompt cannot be part of a file name; the video "
                "is called %s", job->names.output);
    const int64_t bytes = tt_rollout_bytes(s->dit, o);
    for (int i = 0; i < s->scenes.n; i++)
        progress_note(&s->progress, "from chunk %lld%s: %s",
                      (long long)s->scenes.scene[i].chunk,
                      s->scenes.scene[i].cut ? ", with a cut" : "",
                      s->scenes.prompt[s->scenes.scene[i].prompt]);
    announce_number(s, prompt, o->noise.sample);
    if (s->texts.prompt[prompt] && !s->scenes.n)
        progress_note(&s->progress, "prompt: %s", s->texts.prompt[prompt]);
    progress_say(&s->progress, "%s: %lld latents of %lldx%lld (%lld frames of "
                 "%lldx%lld), cache %s; cache and activations about %s",
                 noise_words(s, o, noise, sizeof noise),
                 (long long)n, (long long)o->w, (long long)o->h,
                 (long long)video_frames(o), (long long)(8 * o->w),
                 (long long)(8 * o->h), o->policy.name,
                 progress_bytes(memory, sizeof memory,
                                bytes > 0 ? bytes : 0));
}

static void log_start(session *s, const video_job *job)
{
    json_out j;
    if (!progress_log(&s->progress, &j, "start")) return;
    json_u64(&j, "seed", job->opt.noise.seed);
    json_int(&j, "sample", job->opt.noise.sample);
    json_int(&j, "latents", job->opt.latents);
    json_str(&j, "prompt", job->text);
    json_open(&j, "scenes", '[');
    for (int i = 0; i < s->scenes.n; i++)
        json_str(&j, NULL, s->scenes.prompt[s->scenes.scene[i].prompt]);
    json_close(&j, ']');
    json_str(&j, "output", job->names.output);
    json_str(&j, "animation", job->names.animation);
    json_str(&j, "contact_sheet", job->names.sheet);
    json_str(&j, "latents_out", job->names.latents);
    progress_logged(&s->progress, &j);
}

static void write_record(session *s, const video_job *job, int prompt)
{
    const tt_rollout_options *o = &job->opt;
    record_video v = {.prompt = s->texts.prompt[prompt],
                      .seed = o->noise.seed, .sample = o->noise.sample,
                      .noise_file = s->g.noise,
                      .scene = job->scene, .nscenes = o->nscenes,
                      .latents = o->latents, .given = o->initial_frames,
                      .width = 8 * o->w, .height = 8 * o->h,
                      .frames = video_frames(o),
                      .model = tt_dit_get_config(s->dit), .rollout = o};
    if (!job->names.record || s->ctx->status) return;
    progress_note(&s->progress, "hashing inputs for %s", job->names.record);
    record_write(s->ctx, &s->record, job->names.record, &generate_command,
                 &s->g, &v);
}

/* The latents are this run's alone. A run with other latents may have made a
 * video of the same name in these hours, and that stays. */
static tt_status check_late(session *s, const video_job *job,
                            const decode_outputs *o)
{
    const output_name late[3] = {{"-o", o->video},
                                 {"--animation", o->animation},
                                 {"--contact-sheet", o->sheet}};
    if (s->g.overwrite || !job->fresh
        || !outputs_free(s->ctx, late, 3, "another run has made meanwhile"))
        return s->ctx->status;
    if (o->after) progress_say(&s->progress, "tether: %s", o->after);
    return s->ctx->status;
}

static tt_status decode(session *s, const video_job *job,
                        const tt_tensor *latents)
{
    static const int64_t split[1] = {1};
    decode_outputs o = outputs_of(s, &job->names);
    o.title = job->text;
    o.comment = generate_comment(s->ctx, &s->mem, job);
    tt_vae *vae = NULL;
    double begin = tt_now();
    if (!o.video && !o.animation && !o.sheet) return s->ctx->status;
    TT_TRY(check_late(s, job, &o));
    if (open_vae(s, &vae, NULL) == TT_OK)
        decode_run(s->ctx, &s->progress, vae, latents, split, 1, &o);
    if (vae) tt_vae_close(vae);
    s->record.decode_seconds = tt_now() - begin;
    return s->ctx->status;
}

/* Embeddings one video is made from: [first, first + n). */
static int prompts_of(const session *s)
{
    return s->scenes.n ? s->texts.n : 1;
}

/* What else a run is made from, so that --resume takes up its own only. */
static const char *origin_of(session *s, int prompt)
{
    tt_sha256 h;
    char hex[65], *out = tt_alloc(s->ctx, &s->mem, 65, 1, "digest");
    const int64_t n = s->texts.rows * s->texts.dim;
    tt_sha256_init(&h);
    if (s->ctx->status) return NULL;
    tt_sha256_add(&h, s->texts.text + prompt * n,
                  (size_t)(prompts_of(s) * n) * sizeof *s->texts.text);
    tt_sha256_hex(&h, hex);
    return out ? strcpy(out, hex) : NULL;
}

/* The prompts of one video, as the transformer reads them: one, or one per
 * distinct prompt of its scenes. */
static tt_prompt **make_prompts(session *s, tt_arena *mem, int first)
{
    const int n = prompts_of(s);
    const int64_t size = s->texts.rows * s->texts.dim;
    tt_prompt **p = tt_alloc0(s->ctx, mem, n, sizeof *p, "prompts");
    for (int i = 0; p && i < n && !s->ctx->status; i++) {
        const size_t scope = texts_scope(s->ctx, i);
        tt_prompt_make(s->ctx, &p[i], s->dit,
                       s->texts.text + (first + i) * size, s->texts.rows);
        tt_scope_end(s->ctx, scope);
    }
    return p;
}

/* Scenes as records show them. */
static const tt_recorder_scene *scene_texts(session *s, tt_arena *mem)
{
    const tt_scenes *from = &s->scenes;
    tt_recorder_scene *to = tt_alloc0(s->ctx, mem, from->n, sizeof *to,
                                      "scenes");
    for (int i = 0; to && i < from->n; i++) {
        const tt_scene *x = &from->scene[i];
        to[i] = (tt_recorder_scene){
            x->chunk, s->texts.prompt[x->prompt], x->cut};
    }
    return to;
}

/* Without its embeddings. */
static video_job job_of(session *s, tt_arena *mem, int prompt, int64_t sample)
{
    video_job job = {.g = &s->g, .dit = s->dit, .opt = s->opt,
                     .names = names_of(s, prompt, sample),
                     .record = &s->record, .progress = &s->progress};
    job.opt.noise.seed = seed_of(s, prompt, sample);
    job.opt.noise.sample = (uint32_t)sample;
    job.text = s->texts.prompt[prompt];
    job.scene = scene_texts(s, mem);
    job.opt.origin = origin_of(s, prompt);
    return job;
}

/* The latents' name: taken from the start for the first video, else now. */
static tt_status claim(session *s, video_job *job)
{
    if (s->first.claimed) {
        job->file = s->first;
        memset(&s->first, 0, sizeof s->first);
        return s->ctx->status;
    }
    return latents_file_claim(s->ctx, &job->file, job->names.latents,
                              s->g.resume, s->g.overwrite);
}

static tt_status one_video(session *s, int prompt, int64_t sample)
{
    tt_ctx *ctx = s->ctx;
    tt_arena mem = {0};
    tt_tensor latents;
    video_job job = job_of(s, &mem, prompt, sample);
    record_next_video(&s->record);
    if (check_names(s, &job.names) || claim(s, &job)) {
        latents_file_close(&job.file);
        tt_arena_free(&mem);
        return ctx->status;
    }
    job.fresh = !is_ours(s, &job.names, &job);
    announce(s, &job, prompt);
    log_start(s, &job);
    dump_open(ctx, &s->dump, job.names.dump, s->g.dump_filter);
    tt_prompt **embedded = make_prompts(s, &mem, prompt);
    if (!ctx->status) {
        job.prompt = embedded[0];
        job.opt.prompts = (const tt_prompt *const *)embedded;
        generate_run(ctx, &mem, &latents, &job);
    }
    for (int i = 0; embedded && i < prompts_of(s); i++)
        tt_prompt_free(embedded[i]);
    if (!ctx->status) decode(s, &job, &latents);
    dump_close(ctx, &s->dump);
    write_record(s, &job, prompt);
    latents_file_close(&job.file);
    tt_arena_free(&mem);
    const char *const wrote[] = {
        job.names.output, job.names.animation, job.names.sheet,
        job.names.latents, job.names.preview,
        job.names.record, job.names.dump, job.names.trace, job.names.analyze};
    for (size_t i = 0; i < sizeof wrote / sizeof *wrote && !ctx->status; i++)
        progress_wrote(&s->progress, wrote[i]);
    return ctx->status;
}

/* ---- the command --------------------------------------------------------- */

/* Prompts, and what can be said about them before anything else is read. */
static tt_status collect_texts(session *s)
{
    const generate *g = &s->g;
    TT_TRY(scenes_read(s->ctx, &s->mem, &s->scenes, g));
    TT_TRY(texts_collect(s->ctx, &s->texts, g, &s->scenes));
    s->videos = s->scenes.n ? 1 : s->texts.n;
    if (s->videos > 1 && g->output && !g->no_decode && !strcmp(g->output, "-"))
        return tt_fail(s->ctx, TT_EINVAL, "%s holds %d prompts: only one video "
                       "can go to the standard output", g->prompt_file,
                       s->videos);
    return TT_OK;
}

/* The names of the first sample of every prompt, before the work begins. Those
 * of the first video are this run's from here on. */
static tt_status check_all_names(session *s)
{
    for (int i = 0; i < s->videos && !s->ctx->status; i++) {
        const tt_arena_mark mark = tt_arena_here(&s->mem);
        const video_names v = names_of(s, i, s->g.sample);
        if (!s->ctx->status) check_names(s, &v);
        if (i == 0)
            latents_file_claim(s->ctx, &s->first, v.latents, s->g.resume,
                               s->g.overwrite);
        check_free(s, &v, NULL);
        if (i) tt_arena_reset(&s->mem, mark); /* a claim keeps its name */
    }
    return s->ctx->status;
}

/* Everything that can be refused before work begins and files are made. */
static tt_status check_session(session *s)
{
    TT_TRY(collect_texts(s));
    TT_TRY(open_dit(s));
    TT_TRY(read_inputs(s));
    TT_TRY(check_rules(s));
    TT_TRY(try_vae(s));
    return open_restart_vae(s);
}

/* Whose the files are that are there: asked for all videos before the first
 * takes its hours. */
static tt_status check_all_free(session *s)
{
    for (int i = 0; i < s->videos; i++)
        for (int64_t k = 0; k < s->g.num_samples; k++) {
            tt_arena mem = {0};
            const tt_arena_mark mark = tt_arena_here(&s->mem);
            const video_job job = job_of(s, &mem, i, s->g.sample + k);
            check_free(s, &job.names, &job);
            tt_arena_reset(&s->mem, mark);
            tt_arena_free(&mem);
            TT_TRY(s->ctx->status);
        }
    return s->ctx->status;
}

static void run_session(session *s)
{
    if (check_session(s) || check_all_names(s)) return;
    if (inject_open(s->ctx, &s->inject, s->g.inject, s->g.inject_filter))
        return;
    if (s->videos * s->g.num_samples == 1) /* what is before it belongs to it */
        dump_open(s->ctx, &s->dump, s->g.dump, s->g.dump_filter);
    if (encode_given(s)) return;
    if (texts_make(s->ctx, &s->texts, &s->g, tt_dit_get_config(s->dit),
                   &s->progress, &s->record) || check_all_free(s))
        return;
    for (int i = 0; i < s->videos; i++)
        for (int64_t k = 0; k < s->g.num_samples; k++)
            if (one_video(s, i, s->g.sample + k)) return;
}

/* The options; -1 to go on, else the exit status. */
static int open_session(session *s, tt_ctx *ctx, cli_common *common, int argc,
                        char **argv)
{
    memset(s, 0, sizeof *s);
    s->ctx = ctx;
    s->g = generate_defaults();
    const int status = opt_parse(&generate_command, &s->g, common, &s->given,
                                 argc, argv);
    return status < 0 ? generate_check(&s->g, &s->given, &s->opt) : status;
}

static void close_session(session *s)
{
    latents_file_close(&s->first);
    texts_free(&s->texts);
    tt_vae_close(s->restart_vae);
    if (s->dit) tt_dit_close(s->dit);
    remove_run_folders(s);
    record_end(&s->record);
    tt_arena_free(&s->mem);
}

static void no_warning(void *user, const char *sentence)
{
    (void)user;
    (void)sentence;
}

int generate_try(tt_ctx *ctx, int argc, char **argv)
{
    session s;
    cli_common common;
    int status = open_session(&s, ctx, &common, argc, argv);
    if (status >= 0) return status;
    common.log_json = NULL;
    common.quiet = true;
    const tt_ops *ops = ctx->ops;
    const int threads = ctx->nthreads;
    if (cli_setup(ctx, &common)
        || progress_open(ctx, &s.progress, &common, false))
        return cli_failed(ctx);
    ctx->warn = no_warning; /* the run itself says it */
    record_begin(&s.record);
    status = check_session(&s) ? cli_failed(ctx) : 0;
    progress_close(&s.progress);
    close_session(&s);
    ctx->ops = ops;
    ctx->nthreads = threads;
    return status;
}

int cmd_generate(tt_ctx *ctx, int argc, char **argv)
{
    session s;
    cli_common common;
    int status = open_session(&s, ctx, &common, argc, argv);
    if (status >= 0) return status;
    if (cli_setup(ctx, &common)
        || progress_open(ctx, &s.progress, &common, s.g.resume))
        return cli_failed(ctx);
    cli_catch_signals(ctx);
    ctx->overwrite = s.g.overwrite;
    ctx->profiling = s.g.profile;

    record_begin(&s.record);
    s.record.argc = argc;
    s.record.argv = argv;
    run_session(&s);
    dump_close(ctx, &s.dump);
    inject_close(ctx, &s.inject);
    progress_close(&s.progress);
    if (s.g.profile) profile_print(ctx);
    status = ctx->status ? cli_failed(ctx) : 0;
    close_session(&s);
    return status;
}
