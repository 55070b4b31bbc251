/* generate_outputs.c: what the files of a video are, and whether they may be
 * written.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Asked twice: for all videos before the work begins, and again for each. */
#include "cli/ui/outputs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/generate/generate_session.h"
#include "analyze/analyze.h"
#include "io/outfile.h"
#include "team/team.h"
#include "io/video.h"

tt_run_files session_names(session *s, int64_t i, tt_run_video *v)
{
    const char *const *text;
    const tt_scenes *scenes = tt_run_scenes(s->run);
    const bool several = tt_run_prompts(s->run, &text) > 1 && !scenes->n;
    if (tt_run_video_at(s->ctx, s->run, i, v)) return (tt_run_files){0};
    if (tt_team_rank(s->ctx) > 0) return (tt_run_files){0}; /* rank 0 writes */
    return names_make(s->ctx, &s->mem, tt_run_settings(s->run), v, several);
}

decode_outputs session_outputs(session *s, const tt_run_files *v)
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

void session_remove_folders(session *s)
{
    for (const made *m = s->made; m; m = m->next)
        if (s->ctx->status) tt_analyze_folder_remove(m->path, m->there);
    tt_arena_free(&s->made_mem);
}

/* Everything a video writes. */
enum { OUTPUTS = 16, BY_DECODER = 3, SUMMARY = 14, REPORTS = 2, LOGS = 1 };
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
        {"--analyze", names_in(ctx, &s->mem, v->analyze,
                               "features.safetensors")},
        {"--analyze", names_in(ctx, &s->mem, v->analyze,
                               "chosen.safetensors")},
        {"--analyze", names_in(ctx, &s->mem, v->analyze, "run.json")},
        {"--analyze", names_in(ctx, &s->mem, v->analyze, "index.html")},
        {"--summary", s->settings->summary},
        {"--log-json", s->progress.log_path}};
    memcpy(out, all, sizeof all);
}

/* Where the latents are, when their name is a link. */
static const char *linked(session *s, const char *path)
{
    struct stat st;
    return path && !lstat(path, &st) && S_ISLNK(st.st_mode)
         ? tt_out_target(s->ctx, &s->mem, path) : path;
}

/* Names that a video takes until it is complete. */
enum { HELPERS = 4 };
static void all_helpers(session *s, output_name out[HELPERS],
                        const tt_run_files *v)
{
    static const char *const ending[HELPERS] = {
        "", ".unfinished", ".state1", ".state2"};
    const char *latents = linked(s, v->latents);
    const size_t n = latents ? strlen(latents) + 16 : 0;
    out[0] = (output_name){"the video so far", decode_unfinished(
                               s->ctx, &s->mem, v->output)};
    for (int i = 1; i < HELPERS; i++) {
        char *name = n ? tt_alloc(s->ctx, &s->mem, (int64_t)n, 1, "file name")
                       : NULL;
        if (name) snprintf(name, n, "%s%s", latents, ending[i]);
        out[i] = (output_name){i > 1 ? "a saved state" : "the latents so far",
                               name};
    }
}

bool session_is_begun(session *s, const tt_run_files *v)
{
    output_name helper[HELPERS];
    struct stat st;
    all_helpers(s, helper, v);
    return helper[1].path && !stat(helper[1].path, &st) && st.st_size > 0;
}

tt_status session_check_names(session *s, const tt_run_files *v)
{
    output_name all[OUTPUTS + HELPERS];
    const tt_rollout_options *r = tt_run_rollout(s->run);
    decode_outputs o = session_outputs(s, v);
    all_outputs(s, all, v);
    if (v->analyze) TT_TRY(make_run_folder(s, v->analyze));
    TT_TRY(s->ctx->status);
    all_helpers(s, all + OUTPUTS, v);
    TT_TRY(outputs_differ(s->ctx, all, OUTPUTS + HELPERS));
    TT_TRY(outputs_png(s->ctx, "--preview", v->preview));
    TT_TRY(outputs_png(s->ctx, "--contact-sheet", v->sheet));
    TT_TRY(decode_check(s->ctx, &o, r->rollouts, r->initial_frames + r->latents,
                        r->h, r->w));
    TT_TRY(make_picture_folder(s, v));
    /* the reports are checked above */
    for (int i = BY_DECODER; i < OUTPUTS - REPORTS; i++)
        if (all[i].path) TT_TRY(tt_out_check(s->ctx, all[i].path));
    return s->ctx->status;
}

tt_status session_check_free(session *s, int64_t i, const tt_run_files *v,
                             bool encoded)
{
    enum { ALL = OUTPUTS - LOGS + 1 };
    output_name all[OUTPUTS + 1];
    const tt_settings *g = s->settings;
    char why[300] = "--resume goes on with what this command has made";
    s->ctx->overwrite = g->overwrite;
    if (g->overwrite || s->ctx->status || tt_team_rank(s->ctx) > 0)
        return s->ctx->status; /* rank 0 writes */
    if (g->resume)
        snprintf(why, sizeof why, "no latents of this run are there");
    /* that of an earlier call, whatever has become of the first video */
    if (g->resume && i == 0)
        TT_TRY(outputs_kind(s->ctx, "--summary", g->summary,
                            "\"tether_summary\"", "summary"));
    s->ctx->overwrite = g->resume && v->latents
                     && (encoded ? tt_run_made(s->ctx, s->run, i, v->latents,
                                               why, sizeof why) > 0
                                 : tt_run_made_by_any(s->ctx, v->latents));
    if (s->ctx->overwrite) return s->ctx->status;
    if (g->resume && session_is_begun(s, v)) {
        const size_t at = strlen(why);
        snprintf(why + at, sizeof why - at, "; unfinished latents of this run "
                 "go on with --resume --overwrite");
    }
    all_outputs(s, all, v);
    if (i > 0 || g->resume) all[SUMMARY].path = NULL; /* one of all videos */
    all[ALL - 1] = (output_name){"the video so far", decode_unfinished(
                                     s->ctx, &s->mem, v->output)};
    return outputs_free(s->ctx, all, ALL, tt_run_frames(s->run), why);
}

tt_status session_check_late(session *s, const decode_outputs *o)
{
    const output_name late[3] = {{"-o", o->video},
                                 {"--animation", o->animation},
                                 {"--contact-sheet", o->sheet}};
    if (s->ctx->overwrite) return s->ctx->status;
    return outputs_free(s->ctx, late, 3, tt_run_frames(s->run),
                        "it was made meanwhile");
}
