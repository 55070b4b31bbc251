/* cmd_generate.c: tether generate, from a prompt to a video.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The order of things: settings; a run, which opens every file that is needed
 * later; names of what will be written; text, and the encoder is closed; for
 * every video its latents, on disk when complete; then the cache is gone and
 * the VAE decodes. (The transformer's weights stay mapped for the next video;
 * the system drops their pages when it needs to.)
 * Next    src/run/open.c */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/dump.h"
#include "cli/generate.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "tether/analyze.h"
#include "tether/outfile.h"
#include "tether/video.h"

typedef struct session {
    tt_ctx *ctx;
    const tt_settings *settings;
    tt_run *run;
    progress progress;
    dump dump;
    inject inject;
    tt_run_facts facts;  /* for records                                       */
    tt_arena mem;        /* names                                             */
    char kept[4400];     /* what a second signal leaves behind                */
    tt_arena made_mem;
    struct made *made;   /* run folders that were not there before            */
} session;

typedef struct made {
    const char *path;
    size_t there;        /* bytes of it that were                             */
    struct made *next;
} made;

/* ---- options ------------------------------------------------------------- */

static opt_command command = {
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
    .of_a_run = true,
};

const opt_command *generate_command(void)
{
    command.options = tt_settings_table();
    return &command;
}

/* What is only about names of files. -1, or exit status 2. */
static int check_output(const tt_settings *g)
{
    const char *const me = command.name;
    if (!g->output && !g->sheet && !(g->no_decode && g->latents_out))
        return opt_usage(me, "nothing to write: give -o PATH or "
                         "--contact-sheet FILE, or --no-decode with "
                         "--latents-out FILE");
    if (g->output && !strcmp(g->output, "-") && !g->no_decode
        && g->num_samples > 1)
        return opt_usage(me, "only one video can go to the standard output, "
                         "not --num-samples %lld", (long long)g->num_samples);
    if (g->vbench_name && (!g->output || g->embeds))
        return opt_usage(me, "--vbench-name needs -o FOLDER and a prompt");
    return -1;
}

/* Every rule about the settings, with the words of the command line. -1, or
 * exit status 2. */
static int check_settings(const tt_settings *g, const cli_common *common)
{
    tt_ctx ctx = {.status = TT_OK};
    tt_settings copy;
    tt_rollout_options unused;
    const opt_result no_words = {.nseen = 0};
    int status = opt_outputs(generate_command(), g, common, &no_words);
    if (status < 0) status = check_output(g);
    if (status >= 0) return status;
    tt_settings_copy(&ctx, &copy, g);
    tt_settings_check(&ctx, &copy, &unused);
    if (ctx.status) status = opt_usage(command.name, "%s", tt_message(&ctx));
    tt_settings_free(&copy);
    tt_arena_free(&ctx.scratch);
    return status;
}

/* ---- names --------------------------------------------------------------- */

static tt_run_files names_of(session *s, int64_t i, tt_run_video *v)
{
    const char *const *text;
    const tt_scenes *scenes = tt_run_scenes(s->run);
    const bool several = tt_run_prompts(s->run, &text) > 1 && !scenes->n;
    if (tt_run_video_at(s->ctx, s->run, i, v)) return (tt_run_files){0};
    return names_make(s->ctx, &s->mem, tt_run_settings(s->run), v, several);
}

static decode_outputs outputs_of(session *s, const tt_run_files *v)
{
    decode_outputs o = {.video = v->output, .animation = v->animation,
                        .sheet = v->sheet, .fps = 16,
                        .drop = tt_run_dropped(s->run)};
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
static tt_status make_picture_folder(session *s, const tt_run_files *v)
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
                        const tt_run_files *v)
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
static tt_status check_names(session *s, const tt_run_files *v)
{
    output_name all[OUTPUTS];
    const tt_rollout_options *r = tt_run_rollout(s->run);
    decode_outputs o = outputs_of(s, v);
    all_outputs(s, all, v);
    if (v->analyze) TT_TRY(make_run_folder(s, v->analyze));
    TT_TRY(s->ctx->status);
    TT_TRY(outputs_differ(s->ctx, all, OUTPUTS));
    TT_TRY(outputs_png(s->ctx, "--preview", v->preview));
    TT_TRY(outputs_png(s->ctx, "--contact-sheet", v->sheet));
    TT_TRY(decode_check(s->ctx, &o, r->rollouts, r->initial_frames + r->latents,
                        r->h, r->w));
    TT_TRY(make_picture_folder(s, v));
    for (int i = BY_DECODER; i < OUTPUTS - 1; i++) /* those are checked above */
        if (all[i].path) TT_TRY(tt_out_check(s->ctx, all[i].path));
    return s->ctx->status;
}

/* May the files that are there be replaced? When they are this run's own, which
 * its latents tell, or when the user said so. Before the text is encoded
 * perhaps is yes. */
static tt_status check_free(session *s, int64_t i, const tt_run_files *v,
                            bool encoded, bool *ours)
{
    output_name all[OUTPUTS];
    const tt_settings *g = s->settings;
    *ours = g->inject || !v->latents ? false /* nobody knows what was */
          : encoded ? tt_run_made(s->ctx, s->run, i, v->latents)
                    : tt_run_made_by_any(v->latents);
    if (g->overwrite || s->ctx->status || *ours) return s->ctx->status;
    all_outputs(s, all, v);
    return outputs_free(s->ctx, all, OUTPUTS - 1, "this run did not make (its "
                        "prompt, options, seed or weights differ, or its "
                        "latents are gone)");
}

/* ---- what is said -------------------------------------------------------- */

/* What Ctrl-C is answered with. */
static void stop_words(session *s)
{
    const tt_run_standing at = tt_run_stand(s->run);
    if (at.whole_chunks)
        snprintf(s->kept, sizeof s->kept, "stopped at once; %.4200s cannot be "
                 "continued without its saved cache",
                 at.unfinished ? at.unfinished : "");
    else
        snprintf(s->kept, sizeof s->kept, "stopped at once; the chunks done "
                 "are in %.4200s, and the same command with --resume goes on",
                 at.unfinished ? at.unfinished : "");
    cli_stop_words(at.whole_chunks ? "stopping after this chunk, whose cache "
                                     "must be saved" : NULL,
                   at.unfinished && at.chunk > 0 ? s->kept : NULL);
}

static void say(void *user, bool detail, const char *sentence)
{
    session *s = user;
    const tt_run_events e = progress_of_a_run(&s->progress);
    e.say(e.user, detail, sentence);
}

static void work(void *user, const tt_run_work *w)
{
    session *s = user;
    const tt_run_events e = progress_of_a_run(&s->progress);
    e.work(e.user, w);
}

static void log_chunk(void *user, const tt_run_chunk *c)
{
    session *s = user;
    json_out j;
    stop_words(s);
    if (!progress_log(&s->progress, &j, "chunk")) return;
    json_int(&j, "chunk", c->chunk);
    json_int(&j, "chunks", c->chunks);
    json_int(&j, "frames", c->frames);
    json_int(&j, "latents_done", c->done);
    json_real(&j, "chunk_seconds", c->seconds);
    json_int(&j, "peak_memory_bytes", tt_peak_memory());
    progress_logged(&s->progress, &j);
}

/* "video 2 of 4", and its prompt. */
static void announce_number(session *s, int64_t i, const tt_run_video *v)
{
    const int64_t all = tt_run_videos(s->run);
    if (all == 1) return;
    progress_say(&s->progress, "video %lld of %lld: %s", (long long)i + 1,
                 (long long)all, v->text ? v->text : s->settings->embeds);
}

/* "seed 7 sample 0", or the file that the noise comes from. */
static const char *noise_words(const session *s, const tt_run_video *v,
                               char *buf, size_t n)
{
    if (s->settings->noise) snprintf(buf, n, "noise of %s", s->settings->noise);
    else snprintf(buf, n, "seed %llu sample %lld",
                  (unsigned long long)v->seed, (long long)v->sample);
    return buf;
}

static void announce(session *s, int64_t i, const tt_run_video *v,
                     const tt_run_files *files)
{
    const tt_rollout_options *o = tt_run_rollout(s->run);
    const tt_scenes *scenes = tt_run_scenes(s->run);
    const int64_t n = (o->initial_frames + o->latents) * o->rollouts;
    char stem[TT_VBENCH_STEM_MAX + 1], noise[1024], memory[32];
    if (s->settings->vbench_name && !tt_vbench_stem(stem, v->text))
        tt_warn(s->ctx, "the prompt cannot be part of a file name; the video "
                "is called %s", files->output);
    const int64_t bytes = tt_rollout_bytes(tt_run_dit(s->run), o);
    for (int k = 0; k < scenes->n; k++)
        progress_note(&s->progress, "from chunk %lld%s: %s",
                      (long long)scenes->scene[k].chunk,
                      scenes->scene[k].cut ? ", with a cut" : "",
                      scenes->prompt[scenes->scene[k].prompt]);
    announce_number(s, i, v);
    if (v->text && !scenes->n)
        progress_note(&s->progress, "prompt: %s", v->text);
    progress_say(&s->progress, "%s: %lld latents of %lldx%lld (%lld frames of "
                 "%lldx%lld), cache %s; cache and activations about %s",
                 noise_words(s, v, noise, sizeof noise),
                 (long long)n, (long long)o->w, (long long)o->h,
                 (long long)tt_run_frames(s->run), (long long)(8 * o->w),
                 (long long)(8 * o->h), o->policy.name,
                 progress_bytes(memory, sizeof memory,
                                bytes > 0 ? bytes : 0));
}

static void log_start(session *s, const tt_run_video *v,
                      const tt_run_files *files)
{
    json_out j;
    const tt_scenes *scenes = tt_run_scenes(s->run);
    if (!progress_log(&s->progress, &j, "start")) return;
    json_u64(&j, "seed", v->seed);
    json_int(&j, "sample", v->sample);
    json_int(&j, "latents", tt_run_rollout(s->run)->latents);
    json_str(&j, "prompt", v->text);
    json_open(&j, "scenes", '[');
    for (int k = 0; k < scenes->n; k++)
        json_str(&j, NULL, scenes->prompt[scenes->scene[k].prompt]);
    json_close(&j, ']');
    json_str(&j, "output", files->output);
    json_str(&j, "animation", files->animation);
    json_str(&j, "contact_sheet", files->sheet);
    json_str(&j, "latents_out", files->latents);
    progress_logged(&s->progress, &j);
}

/* ---- one video ----------------------------------------------------------- */

/* The latents are this run's alone. A run with other latents may have made a
 * video of the same name in these hours, and that stays. */
static tt_status check_late(session *s, bool fresh, const decode_outputs *o)
{
    const output_name late[3] = {{"-o", o->video},
                                 {"--animation", o->animation},
                                 {"--contact-sheet", o->sheet}};
    if (s->settings->overwrite || !fresh
        || !outputs_free(s->ctx, late, 3, "another run has made meanwhile"))
        return s->ctx->status;
    if (o->after) progress_say(&s->progress, "tether: %s", o->after);
    return s->ctx->status;
}

static tt_status decode(session *s, int64_t i, const tt_run_files *files,
                        bool fresh)
{
    static const int64_t split[1] = {1};
    decode_outputs o = outputs_of(s, files);
    tt_run_video v;
    tt_tensor latents;
    tt_vae *vae = NULL;
    const double begin = tt_now();
    if (!o.video && !o.animation && !o.sheet) return s->ctx->status;
    TT_TRY(tt_run_video_at(s->ctx, s->run, i, &v));
    TT_TRY(tt_run_latents(s->ctx, s->run, &latents));
    o.title = v.text;
    o.comment = tt_run_comment(s->ctx, s->run, i, &s->mem);
    TT_TRY(check_late(s, fresh, &o));
    if (tt_run_open_vae(s->ctx, s->run, &vae) == TT_OK)
        decode_run(s->ctx, &s->progress, vae, &latents, split, 1, &o);
    tt_vae_close(vae);
    s->facts.decode_seconds = tt_now() - begin;
    return s->ctx->status;
}

static tt_status all_chunks(session *s, int64_t i, const tt_run_files *files)
{
    const tt_host *x0;
    int64_t frames;
    TT_TRY(tt_run_begin(s->ctx, s->run, i, files));
    stop_words(s);
    while (tt_run_next(s->ctx, s->run, &x0, &frames) == TT_OK) continue;
    return s->ctx->status;
}

static void write_record(session *s, const tt_run_files *files)
{
    if (!files->record || s->ctx->status) return;
    progress_note(&s->progress, "hashing inputs for %s", files->record);
    tt_run_record(s->ctx, s->run, files->record, &s->facts);
}

static tt_status one_video(session *s, int64_t i)
{
    tt_ctx *ctx = s->ctx;
    tt_run_video v;
    bool ours = false;
    const tt_run_files files = names_of(s, i, &v);
    s->facts.decode_seconds = 0;
    TT_TRY(check_names(s, &files));
    if (i > 0) TT_TRY(tt_run_claim(ctx, s->run, i, files.latents));
    if (!s->settings->inject && files.latents)
        ours = tt_run_made(ctx, s->run, i, files.latents);
    announce(s, i, &v, &files);
    log_start(s, &v, &files);
    dump_open(ctx, &s->dump, files.dump, s->settings->dump_filter);
    all_chunks(s, i, &files);
    cli_stop_words(NULL, NULL);
    if (!ctx->status) decode(s, i, &files, !ours);
    dump_close(ctx, &s->dump);
    write_record(s, &files);
    const char *const wrote[] = {
        files.output, files.animation, files.sheet, files.latents,
        files.preview, files.record, files.dump, files.trace, files.analyze};
    for (size_t k = 0; k < sizeof wrote / sizeof *wrote && !ctx->status; k++)
        progress_wrote(&s->progress, wrote[k]);
    return ctx->status;
}

/* ---- the command --------------------------------------------------------- */

/* A run, and whatever can be refused before work begins and files are made. */
static tt_status open_run(session *s)
{
    const tt_settings *g = s->settings;
    const tt_run_events events = {s, say, work, log_chunk};
    const char *const *text;
    TT_TRY(tt_run_open(s->ctx, &s->run, g, &events));
    const int n = tt_run_prompts(s->run, &text);
    if (n > 1 && !tt_run_scenes(s->run)->n && g->output && !g->no_decode
        && !strcmp(g->output, "-"))
        return tt_fail(s->ctx, TT_EINVAL, "%s holds %d prompts: only one video "
                       "can go to the standard output", g->prompt_file, n);
    return TT_OK;
}

/* The names of the first sample of every prompt, before the work begins. Those
 * of the first video are this run's from here on. */
static tt_status check_all_names(session *s)
{
    const int64_t all = tt_run_videos(s->run);
    for (int64_t i = 0; i < all; i += s->settings->num_samples) {
        tt_run_video v;
        bool ours;
        const tt_arena_mark mark = tt_arena_here(&s->mem);
        const tt_run_files files = names_of(s, i, &v);
        if (!s->ctx->status) check_names(s, &files);
        if (i == 0) tt_run_claim(s->ctx, s->run, 0, files.latents);
        check_free(s, i, &files, false, &ours);
        tt_arena_reset(&s->mem, mark);
        TT_TRY(s->ctx->status);
    }
    return TT_OK;
}

/* Whose the files are that are there: asked for all videos before the first
 * takes its hours. */
static tt_status check_all_free(session *s)
{
    for (int64_t i = 0; i < tt_run_videos(s->run); i++) {
        tt_run_video v;
        bool ours;
        const tt_arena_mark mark = tt_arena_here(&s->mem);
        const tt_run_files files = names_of(s, i, &v);
        check_free(s, i, &files, true, &ours);
        tt_arena_reset(&s->mem, mark);
        TT_TRY(s->ctx->status);
    }
    return TT_OK;
}

static tt_status run_session(session *s)
{
    const tt_settings *g = s->settings;
    TT_TRY(open_run(s));
    TT_TRY(check_all_names(s));
    TT_TRY(inject_open(s->ctx, &s->inject, g->inject, g->inject_filter));
    if (tt_run_videos(s->run) == 1)  /* what is before it belongs to it */
        dump_open(s->ctx, &s->dump, g->dump, g->dump_filter);
    TT_TRY(tt_run_encode(s->ctx, s->run));
    TT_TRY(check_all_free(s));
    for (int64_t i = 0; i < tt_run_videos(s->run); i++)
        TT_TRY(one_video(s, i));
    return TT_OK;
}

static void close_session(session *s)
{
    tt_run_close(s->run);
    remove_run_folders(s);
    tt_arena_free(&s->mem);
}

static void no_warning(void *user, const char *sentence)
{
    (void)user;
    (void)sentence;
}

int generate_try(tt_ctx *ctx, const tt_settings *settings,
                 const cli_common *common)
{
    session s = {.ctx = ctx, .settings = settings};
    const tt_ops *ops = ctx->ops;
    const int threads = ctx->nthreads;
    cli_common quiet = *common;
    int status = check_settings(settings, common);
    if (status >= 0) return status;
    quiet.log_json = NULL;
    quiet.quiet = true;
    if (cli_setup(ctx, &quiet)
        || progress_open(ctx, &s.progress, &quiet, false))
        return cli_failed(ctx);
    ctx->warn = no_warning; /* the run itself says it */
    status = open_run(&s) ? cli_failed(ctx) : 0;
    progress_close(&s.progress);
    close_session(&s);
    ctx->ops = ops;
    ctx->nthreads = threads;
    return status;
}

int generate_videos(tt_ctx *ctx, const tt_settings *settings,
                    const cli_common *common, int argc, char **argv)
{
    session s = {.ctx = ctx, .settings = settings,
                 .facts = {.argc = argc, .argv = argv}};
    int status = check_settings(settings, common);
    if (status >= 0) return status;
    if (cli_setup(ctx, common)
        || progress_open(ctx, &s.progress, common, settings->resume))
        return cli_failed(ctx);
    cli_catch_signals(ctx);
    ctx->overwrite = settings->overwrite;
    ctx->profiling = settings->profile;
    run_session(&s);
    cli_stop_words(NULL, NULL);
    dump_close(ctx, &s.dump);
    inject_close(ctx, &s.inject);
    progress_close(&s.progress);
    if (settings->profile) profile_print(ctx);
    status = ctx->status ? cli_failed(ctx) : 0;
    close_session(&s);
    return status;
}

int cmd_generate(tt_ctx *ctx, int argc, char **argv)
{
    tt_settings settings = tt_settings_defaults();
    cli_common common;
    opt_result given;
    int status = opt_parse(generate_command(), &settings, &common, &given,
                           argc, argv);
    if (status < 0)
        status = generate_videos(ctx, &settings, &common, argc, argv);
    tt_settings_free(&settings);
    return status;
}
