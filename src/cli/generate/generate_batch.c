/* generate_batch.c: several videos of one call: what became of each.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   one that fails does not stop the others, an interruption stops all.
 *         What is complete is known from the files: the latents say which run
 *         made them, and its outputs are not older. After the last video a
 *         table, and JSON for programs. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/generate/generate_session.h"
#include "io/outfile.h"
#include "team/team.h"
#include "io/video.h"

static const char *const word[] = {
    [VIDEO_NOT_BEGUN] = "not begun", [VIDEO_COMPLETE] = "complete",
    [VIDEO_THERE] = "there before", [VIDEO_FAILED] = "failed",
    [VIDEO_STOPPED] = "stopped"};
static const char *const key[] = {
    [VIDEO_NOT_BEGUN] = "not_begun", [VIDEO_COMPLETE] = "complete",
    [VIDEO_THERE] = "there_before", [VIDEO_FAILED] = "failed",
    [VIDEO_STOPPED] = "stopped"};
enum { STATES = sizeof word / sizeof *word };

tt_status session_open_list(session *s)
{
    s->videos = tt_run_videos(s->run);
    s->result = tt_alloc0(s->ctx, &s->result_mem, s->videos, sizeof *s->result,
                          "a list of videos");
    return s->ctx->status;
}

/* ---- complete already? --------------------------------------------------- */

/* What is older than the latents was made from a shorter part of them. */
static bool is_made(const char *path, const struct stat *latents)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode) && st.st_size > 0
        && (st.st_mtim.tv_sec > latents->st_mtim.tv_sec
            || (st.st_mtim.tv_sec == latents->st_mtim.tv_sec
                && st.st_mtim.tv_nsec >= latents->st_mtim.tv_nsec));
}

/* Only latents that got their name from the output's are a proof: others may be
 * of another run. Nor are pictures one, which another run may have begun to
 * replace, or latents next to which another run has begun. */
static bool is_complete(session *s, int64_t i, const tt_run_files *v)
{
    struct stat latents;
    const tt_rollout_options *r = tt_run_rollout(s->run);
    const char *const file[] = {
        v->output, v->sheet, v->animation, v->record, v->dump, v->trace,
        names_in(s->ctx, &s->mem, v->analyze, "run.json"),
        names_in(s->ctx, &s->mem, v->analyze, "index.html")};
    if (!v->latents || s->settings->latents_out || s->ctx->status
        || stat(v->latents, &latents) || session_is_begun(s, v)
        || tt_run_made(s->ctx, s->run, i, v->latents, NULL, 0)
           < r->rollouts * (r->initial_frames + r->latents)) return false;
    for (size_t k = 0; k < sizeof file / sizeof *file; k++)
        if (file[k] && !is_made(file[k], &latents)) return false;
    return true;
}

bool session_is_complete(session *s, int64_t i, const tt_run_files *v)
{
    const tt_settings *g = s->settings;
    if (!g->resume || g->overwrite || s->videos == 1) return false;
    bool complete = is_complete(s, i, v);
    tt_team_broadcast(s->ctx, &complete, sizeof complete); /* rank 0 knows */
    return complete && !s->ctx->status;
}

/* ---- what became of one -------------------------------------------------- */

static const char *generate_batch_keep(session *s, const char *text)
{
    return text ? tt_strdup(s->ctx, &s->result_mem, text) : NULL;
}

static void log_video(session *s, int64_t i)
{
    json_out j;
    const video_result *r = &s->result[i];
    if (!progress_log(&s->progress, &j, "video")) return;
    json_int(&j, "video", i + 1);
    json_str(&j, "state", key[r->state]);
    json_real(&j, "video_seconds", r->seconds);
    json_str(&j, "error", r->why);
    progress_logged(&s->progress, &j);
}

void session_result(session *s, int64_t i, const tt_run_files *v, bool there,
                    double seconds)
{
    const tt_status status = s->ctx->status;
    video_result *r = &s->result[i];
    char why[sizeof s->ctx->message];
    snprintf(why, sizeof why, "%s", tt_message(s->ctx));
    const bool goes_on = status && status != TT_EINTR && s->videos > 1
                      && tt_team_size(s->ctx) == 1;
    if (status) tt_clear(s->ctx);
    *r = (video_result){.state = there ? VIDEO_THERE
                             : status == TT_EINTR ? VIDEO_STOPPED
                             : status ? VIDEO_FAILED : VIDEO_COMPLETE,
                        .seconds = seconds,
                        .output = generate_batch_keep(s, v->output),
                        .latents = generate_batch_keep(s, v->latents),
                        .why = status ? generate_batch_keep(s, why) : NULL};
    log_video(s, i);
    if (there && tt_team_rank(s->ctx) == 0)
        progress_say(&s->progress, "video %lld of %lld is complete: %s",
                     (long long)i + 1, (long long)s->videos,
                     v->output ? v->output : v->latents);
    if (goes_on)
        tt_warn(s->ctx, "video %lld of %lld failed: %s", (long long)i + 1,
                (long long)s->videos, why);
    else if (status)
        tt_fail(s->ctx, status, "%s", why);
}

/* ---- all of them --------------------------------------------------------- */

static int64_t generate_batch_count(const session *s, video_state state)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->videos; i++) n += s->result[i].state == state;
    return n;
}

static void say_table(session *s)
{
    char line[256] = "", took[32];
    for (int k = 0; k < STATES; k++) {
        const int64_t n = generate_batch_count(s, (video_state)k);
        const size_t at = strlen(line);
        if (n) snprintf(line + at, sizeof line - at, "%s%lld %s",
                        at ? ", " : "", (long long)n, word[k]);
    }
    progress_say(&s->progress, "%lld videos: %s", (long long)s->videos, line);
    for (int64_t i = 0; i < s->videos; i++) {
        const video_result *r = &s->result[i];
        const char *name = r->output ? r->output : r->latents;
        progress_say(&s->progress, "%5lld  %-12s  %7s  %s%s%s",
                     (long long)i + 1, word[r->state],
                     progress_duration(took, sizeof took, r->seconds),
                     name ? name : "", r->why ? ": " : "",
                     r->why ? r->why : "");
    }
}

static void put_video(session *s, json_out *j, int64_t i)
{
    const video_result *r = &s->result[i];
    tt_run_video v = {0};
    tt_run_video_at(s->ctx, s->run, i, &v);
    json_open(j, NULL, '{');
    json_int(j, "video", i + 1);
    json_str(j, "prompt", v.text);
    json_u64(j, "seed", v.seed);
    json_int(j, "sample", v.sample);
    json_str(j, "state", key[r->state]);
    json_real(j, "seconds", r->seconds);
    json_str(j, "output", r->output);
    json_str(j, "latents", r->latents);
    json_str(j, "error", r->why);
    json_close(j, '}');
}

static void generate_batch_write_summary(session *s, const char *path)
{
    tt_out o;
    json_out j;
    if (tt_out_open(s->ctx, &o, path)) return;
    json_begin(&j, o.file, true);
    json_int(&j, "tether_summary", 1);
    json_int(&j, "videos", s->videos);
    for (int k = 0; k < STATES; k++)
        json_int(&j, key[k], generate_batch_count(s, (video_state)k));
    json_open(&j, "list", '[');
    for (int64_t i = 0; i < s->videos; i++) put_video(s, &j, i);
    json_close(&j, ']');
    json_end(&j);
    tt_out_finish(s->ctx, &o);
}

static void summary_is_lost(tt_ctx *ctx)
{
    char why[sizeof ctx->message];
    snprintf(why, sizeof why, "%s", tt_message(ctx));
    tt_clear(ctx);
    tt_warn(ctx, "%s", why);
}

tt_status session_end_list(session *s)
{
    tt_ctx *ctx = s->ctx;
    const tt_status status = ctx->status;
    char why[sizeof ctx->message];
    if (!s->result || tt_team_rank(ctx) > 0) return status;
    snprintf(why, sizeof why, "%s", tt_message(ctx));
    tt_clear(ctx);
    const int64_t failed = generate_batch_count(s, VIDEO_FAILED);
    const bool replaces = ctx->overwrite;
    ctx->overwrite = true; /* an earlier summary: session_check_free */
    if (s->videos > 1) say_table(s);
    if (s->settings->summary)
        generate_batch_write_summary(s, s->settings->summary);
    ctx->overwrite = replaces;
    if (ctx->status && !status) return ctx->status;
    if (ctx->status) summary_is_lost(ctx); /* why the work ended says more */
    else if (s->settings->summary)
        progress_wrote(&s->progress, s->settings->summary);
    if (status) return tt_fail(ctx, status, "%s", why);
    if (failed)
        return tt_fail(ctx, TT_EIO, "%lld of %lld videos failed; the same "
                       "command with --resume tries them again and leaves the "
                       "others as they are", (long long)failed,
                       (long long)s->videos);
    return TT_OK;
}
