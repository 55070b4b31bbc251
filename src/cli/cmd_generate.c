/* cmd_generate.c: tether generate, from a prompt to a video.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The order of things: settings; a run, which opens every file that is needed
 * later; names of what will be written; text, and the encoder is closed; for
 * every video its latents, on disk when complete; then the cache is gone and
 * the VAE decodes, or with --decode during it has decoded chunk by chunk. (The
 * transformer's weights stay mapped for the next video; the system drops their
 * pages when it needs to.)
 * Next    src/run/open.c */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/generate/generate_session.h"
#include "cli/ui/fetch.h"
#include "analyze/analyze.h"
#include "team/team.h"
#include "core/context.h"

/* ---- options ------------------------------------------------------------- */

static opt_command command = {
    .name = "generate",
    .summary = "a video from a prompt or from embeddings",
    .usage = "-m DIR [--checkpoint FILE] -p TEXT -o PATH [options]",
    .intro = "The prompt is encoded, then the transformer makes the video "
             "chunk by chunk with a cache of past frames, then the VAE "
             "decodes it. The text encoder is closed before the transformer "
             "runs, and the latents are on disk before decoding starts (with "
             "--decode during those of a chunk before its own).",
    .examples =
    "  tether generate -m wan -p \"a cat walks on grass\" -o cat.mp4\n"
    "  which files the folder wan needs, and the commands that fetch them:\n"
    "  tether inspect wan\n"
    "  what it would take here, before anything is downloaded:\n"
    "  tether generate -m wan1.3b --size 416x240 --plan\n"
    "  a minute with the long-memory cache, resumable after ^C:\n"
    "  tether generate -m wan -p \"a cat walks on grass\" --latents 240 \\\n"
    "      -o cat.mp4 --resume\n"
    "  the settings of the paper, with a log of every cache decision:\n"
    "  tether generate ... --preset paper --trace-cache trace.safetensors",
    .of_a_run = true,
    .bare = "say what the video shows, and where it goes",
};

const opt_command *generate_command(void)
{
    command.options = tt_settings_table();
    return &command;
}

/* What is only about names of files. */
static int check_output(const tt_settings *g)
{
    const char *const me = command.name;
    if (!g->output && !g->sheet && !(g->no_decode && g->latents_out)
        && !g->plan)
        return opt_usage(me, "nothing to write: give -o PATH or "
                         "--contact-sheet FILE, or --no-decode with "
                         "--latents-out FILE");
    if (g->output && !strcmp(g->output, "-") && !g->no_decode
        && g->num_samples > 1)
        return opt_usage(me, "only one video can go to the standard output, "
                         "not --num-samples %lld", (long long)g->num_samples);
    if (g->vbench_name && (!g->output || g->embeds))
        return opt_usage(me, "--vbench-name needs -o FOLDER and a prompt");
    return GO_ON;
}

/* Every rule about the settings, with the words of the command line. */
static int check_settings(const tt_settings *g, const cli_common *common)
{
    tt_ctx ctx = {.status = TT_OK};
    tt_settings copy;
    tt_rollout_options unused;
    const opt_result no_words = {.nseen = 0};
    int status = opt_outputs(generate_command(), g, common, &no_words);
    if (status == GO_ON) status = check_output(g);
    if (status != GO_ON) return status;
    tt_settings_copy(&ctx, &copy, g);
    tt_settings_check(&ctx, &copy, &unused);
    if (ctx.status) status = opt_refused(command.name, &ctx);
    tt_settings_free(&copy);
    tt_arena_free(&ctx.scratch);
    return status;
}

/* ---- one video ----------------------------------------------------------- */

static tt_status all_chunks(session *s, int64_t i, const tt_run_files *files)
{
    const tt_host *x0;
    int64_t frames;
    TT_TRY(tt_run_begin(s->ctx, s->run, i, files));
    TT_TRY(session_decode_begin(s, i, files));
    session_stop_words(s);
    while (tt_run_next(s->ctx, s->run, &x0, &frames) == TT_OK) continue;
    return s->ctx->status;
}

static void write_record(session *s, const tt_run_files *files)
{
    if (!files->record || s->ctx->status) return;
    progress_note(&s->progress, "hashing inputs for %s", files->record);
    tt_run_record(s->ctx, s->run, files->record, &s->facts);
}

/* The page of the run, in its folder. */
static void generate_write_page(session *s, const tt_run_files *files)
{
    tt_recording *r = NULL;
    const tt_rollout_options *o = tt_run_rollout(s->run);
    tt_analyze_options opt = tt_analyze_defaults();
    if (o->latents < opt.reference) opt.reference = o->latents;
    if (!files->analyze || s->ctx->status || tt_team_rank(s->ctx)) return;
    if (tt_recording_open(s->ctx, &r, files->analyze) == TT_OK)
        tt_report_write(s->ctx, names_in(s->ctx, &s->mem, files->analyze,
                                         "index.html"),
                        tt_recording_label(r), &r, 1, &opt);
    tt_recording_close(r);
}

static tt_status open_dump(session *s, const char *path)
{
    const tt_settings *g = s->settings;
    if (tt_team_rank(s->ctx) == 0)
        return dump_open(s->ctx, &s->dump, path, g->dump_filter);
    if (g->dump) dump_follow(s->ctx, g->dump_filter);
    return s->ctx->status;
}

static tt_status make_files(session *s, int64_t i, const tt_run_files *files)
{
    tt_ctx *ctx = s->ctx;
    open_dump(s, files->dump);
    all_chunks(s, i, files);
    cli_stop_words(NULL, NULL);
    session_decode_end(s);
    dump_close(ctx, &s->dump);
    write_record(s, files);
    generate_write_page(s, files);
    return ctx->status;
}

static tt_status make_video(session *s, int64_t i, const tt_run_files *files,
                            const tt_run_video *v)
{
    tt_ctx *ctx = s->ctx;
    TT_TRY(session_check_names(s, files));
    if (i > 0) TT_TRY(tt_run_claim(ctx, s->run, i, files->latents));
    TT_TRY(session_check_free(s, i, files, true));
    session_announce(s, i, v, files);
    session_say_needs(s, i);
    session_log_start(s, v, files);
    make_files(s, i, files);
    const char *const wrote[] = {
        files->output, files->animation, files->sheet, files->latents,
        files->preview, files->record, files->dump, files->trace,
        files->analyze};
    for (size_t k = 0; k < sizeof wrote / sizeof *wrote && !ctx->status; k++)
        progress_wrote(&s->progress, wrote[k]);
    return ctx->status;
}

static tt_status one_video(session *s, int64_t i)
{
    tt_run_video v;
    const double begin = tt_now();
    const tt_run_files files = session_names(s, i, &v);
    const bool there = session_is_complete(s, i, &files);
    if (!there && !s->ctx->status) make_video(s, i, &files, &v);
    session_result(s, i, &files, there, tt_now() - begin);
    return s->ctx->status;
}

/* ---- the command --------------------------------------------------------- */

/* A run, and whatever can be refused before work begins and files are made. */
static tt_status open_run(session *s)
{
    const tt_settings *g = s->settings;
    const tt_run_events events = session_events(s);
    const char *const *text;
    TT_TRY(tt_run_open(s->ctx, &s->run, g, &events));
    const int n = tt_run_prompts(s->run, &text);
    if (n > 1 && !tt_run_scenes(s->run)->n && g->output && !g->no_decode
        && !strcmp(g->output, "-"))
        return tt_fail(s->ctx, TT_EINVAL, "%s holds %d prompts: only one video "
                       "can go to the standard output", g->prompt_file, n);
    return TT_OK;
}

/* Asked before the first video takes its hours: names, of the first sample of
 * every prompt; and again, with the text encoded, whether the files that are
 * there may be replaced. The names of the first video are this run's from here
 * on. */
static tt_status check_all(session *s, bool encoded)
{
    const int64_t step = encoded ? 1 : s->settings->num_samples;
    for (int64_t i = 0; i < tt_run_videos(s->run); i += step) {
        tt_run_video v;
        const tt_arena_mark mark = tt_arena_here(&s->mem);
        const tt_run_files files = session_names(s, i, &v);
        if (!encoded && !s->ctx->status) session_check_names(s, &files);
        if (!encoded && i == 0) tt_run_claim(s->ctx, s->run, 0, files.latents);
        session_check_free(s, i, &files, encoded);
        tt_arena_reset(&s->mem, mark);
        TT_TRY(s->ctx->status);
    }
    return TT_OK;
}

static tt_status run_session(session *s)
{
    const tt_settings *g = s->settings;
    TT_TRY(open_run(s));
    if (g->plan) return session_plan(s);
    TT_TRY(check_all(s, false));
    TT_TRY(inject_open(s->ctx, &s->inject, g->inject, g->inject_filter));
    if (tt_run_videos(s->run) == 1)  /* what is before it belongs to it */
        open_dump(s, g->dump);
    TT_TRY(tt_run_encode(s->ctx, s->run));
    TT_TRY(check_all(s, true));
    TT_TRY(session_open_list(s));
    for (int64_t i = 0; i < tt_run_videos(s->run); i++)
        TT_TRY(one_video(s, i));
    return TT_OK;
}

static void close_session(session *s)
{
    tt_run_close(s->run);
    session_remove_folders(s);
    tt_arena_free(&s->mem);
    tt_arena_free(&s->result_mem);
}

/* The parts that the folder of -m must bring, where no option gives them. */
static unsigned parts_of(const tt_settings *g)
{
    const bool encodes = g->image || g->initial_video
                      || (g->rollouts > 1 && strcmp(g->restart, "latent"));
    return FETCH_TRANSFORMER
         | (g->embeds ? 0u : FETCH_TEXT | FETCH_TOKENIZER)
         | (g->no_decode && !encodes ? 0u : FETCH_VAE);
}

int generate_try(tt_ctx *ctx, const tt_settings *settings,
                 const cli_common *common)
{
    session s = {.ctx = ctx, .settings = settings};
    const tt_ops *ops = ctx->ops;
    const int threads = ctx->nthreads;
    cli_common quiet = *common;
    int status = check_settings(settings, common);
    if (status != GO_ON) return status;
    quiet.log_json = NULL;
    quiet.quiet = true;
    if (cli_setup(ctx, &quiet)
        || progress_open(ctx, &s.progress, &quiet, false))
        return cli_failed(ctx);
    ctx->warn = tt_ignore_warning; /* the run itself says it */
    status = !open_run(&s) ? 0
           : fetch_failed(ctx, &settings->model, parts_of(settings));
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
    cli_common own = *common;
    if (status != GO_ON) return status;
    if (tt_team_rank(ctx) > 0) own.log_json = NULL; /* rank 0 writes */
    if (cli_setup(ctx, &own)
        || progress_open(ctx, &s.progress, &own, settings->resume))
        return cli_failed(ctx);
    cli_catch_signals(ctx);
    ctx->profiling = settings->profile;
    run_session(&s);
    cli_stop_words(NULL, NULL);
    dump_close(ctx, &s.dump);
    const tt_status ran = ctx->status;
    const bool idle = inject_close(ctx, &s.inject) && !ran;
    session_end_list(&s);
    progress_close(&s.progress);
    if (settings->profile) profile_print(ctx);
    status = !ctx->status ? 0
           : common->part && ctx->status == TT_EINTR ? cli_stopped()
           : common->part && idle ? GENERATE_IDLE
           : fetch_failed(ctx, &settings->model, parts_of(settings));
    close_session(&s);
    return status;
}

static bool has_text(const tt_settings *g)
{
    return g->prompt || g->prompt_file || g->embeds || g->scene
        || g->scene_file;
}

int cmd_generate(tt_ctx *ctx, int argc, char **argv)
{
    tt_settings settings = tt_settings_defaults();
    cli_common common;
    opt_result given;
    int status = opt_parse(generate_command(), &settings, &common, &given,
                           argc, argv);
    if (status == GO_ON && settings.plan && !has_text(&settings)
        && tt_settings_set(ctx, &settings, "prompt", GENERATE_PROMPT))
        status = opt_refused(command.name, ctx);
    if (status == GO_ON)
        status = generate_videos(ctx, &settings, &common, argc, argv);
    tt_settings_free(&settings);
    return status;
}
