/* video.c: one video's latents, chunk by chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   what must survive an interruption is only the latents so far: the
 *         cache is rebuilt from them by one clean pass per chunk, to the same
 *         bits (tt_rollout_replay). A state that was saved next to them now and
 *         then (checkpoint.c) leaves only the chunks after it to replay.
 *         Where a policy cannot replay (deep-forcing), those are made again,
 *         and an interruption waits for the end of the chunk and saves. A run
 *         that was killed before its first state starts over by itself.
 * Next    checkpoint.c, src/rollout/rollout.c */
#include "run/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/fpenv.h"
#include "team/team.h"
#include "io/video.h"

/* ---- progress, preview --------------------------------------------------- */

static void on_progress(void *user, const tt_progress *p)
{
    const tt_run *run = user;
    const video *v = &run->now;
    double fraction = p->steps ? (double)p->step / p->steps : 0;
    tt_run_work w = {.done = (double)p->chunk + fraction,
                     .total = (double)v->chunk,
                     .seconds = tt_now() - v->start};
    if (v->rebuilding) {
        run_work(&run->events, w, "rebuilding the cache, chunk %lld/%lld",
                 (long long)p->chunk + 1, (long long)v->chunk);
        return;
    }
    if (fraction >= 1) fraction = 0.999; /* finished chunks are told apart */
    w.done = (double)p->chunk + fraction;
    w.total = (double)p->chunks;
    w.before = v->before;
    run_work(&run->events, w, "chunk %lld/%lld step %d/%d",
             (long long)p->chunk + 1, (long long)p->chunks, p->step, p->steps);
}

static tt_status write_preview(tt_ctx *ctx, video *v, const tt_host *x0,
                               int64_t frames)
{
    const char *path = v->files.preview;
    const int64_t h = v->opt.h, w = v->opt.w;
    char name[4096], why[sizeof ctx->message];
    if (!path || ctx->status) return ctx->status;
    const tt_preview p = tt_preview_layout(frames, h, w);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    uint8_t *rgb = tt_alloc(ctx, &ctx->scratch, p.width * p.height, 3,
                            "preview");
    if (rgb) {
        tt_latent_preview(rgb, &p, x0, v->C, h, w);
        if (tt_pattern_name(name, sizeof name, path, v->chunk)) path = name;
        tt_png_write(ctx, path, rgb, p.width, p.height);
    }
    tt_arena_reset(&ctx->scratch, mark);
    if (!ctx->status) return TT_OK;
    /* A chunk is worth more than a picture of it. */
    snprintf(why, sizeof why, "%s", tt_message(ctx));
    tt_clear(ctx);
    tt_warn(ctx, "%s; the run goes on without previews", why);
    v->files.preview = NULL;
    return TT_OK;
}

/* ---- --analyze, --trace-cache -------------------------------------------- */

static tt_status open_recorder(tt_ctx *ctx, tt_run *run)
{
    video *v = &run->now;
    const char *output = v->files.output;
    const tt_recorder_options o = {
        .folder = v->files.analyze, .trace = v->files.trace, .C = v->C,
        .h = v->opt.h, .w = v->opt.w, .features = true,
        .during = !strcmp(run->s.decode, "during"),
        .label = run->s.label, .prompt = v->what.text,
        .scene = v->scene, .nscenes = v->opt.nscenes,
        .seed = v->opt.noise.seed, .sample = v->opt.noise.sample,
        .video = output && strcmp(output, "-") ? output : NULL,
        .sheet = v->files.sheet};
    if (!o.folder && !o.trace) return ctx->status;
    return tt_recorder_open(ctx, &v->recorder, tt_rollout_cache(v->rollout),
                            &o);
}

/* The recorder of rank 0 writes; where it has a folder, the others bring what
 * is to be known of their heads. */
static tt_status follow_recorder(tt_ctx *ctx, video *v)
{
    bool whole = v->recorder && v->files.analyze;
    v->recorded = v->recorder != NULL;
    TT_TRY(tt_team_broadcast(ctx, &v->recorded, sizeof v->recorded));
    TT_TRY(tt_team_broadcast(ctx, &whole, sizeof whole));
    if (!whole || tt_team_rank(ctx) == 0) return TT_OK;
    return tt_recorder_open(ctx, &v->recorder, tt_rollout_cache(v->rollout),
                            &(tt_recorder_options){.follows = true});
}

/* Does the run folder hold these latents already, and what came with them? The
 * chunks of a policy that cannot be replayed cannot be recorded again. */
static bool recorded_already(tt_ctx *ctx, tt_run *run)
{
    video *v = &run->now;
    char path[4200];
    tt_file *f = NULL;
    bool equal = false;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    if (!v->noisy || !run->file.complete || !v->files.analyze || v->files.trace)
        return false;
    snprintf(path, sizeof path, "%s/run.json", v->files.analyze);
    if (access(path, R_OK)) return false;
    snprintf(path, sizeof path, "%s/latents.safetensors", v->files.analyze);
    if (tt_file_open(ctx, &f, path)) {
        tt_clear(ctx);
        return false;
    }
    const size_t n = (size_t)(v->frames * v->frame_size);
    const tt_entry *e = tt_file_find(f, "latents");
    const tt_real *there = e ? tt_read_real(ctx, &ctx->scratch, &e->t) : NULL;
    if (there && tt_tensor_count(&e->t) == (int64_t)n
        && !latents_file_read(&run->file, v->latents)
        && !latents_file_cut(&run->file, v->frames))
        equal = !memcmp(there, v->latents, n * sizeof *there);
    tt_arena_reset(&ctx->scratch, mark);
    tt_file_close(f);
    return equal;
}

/* Frames [done, done + frames) of the run are in the cache. A restarted
 * rollout begins again with the last frames of the one before. */
static tt_status look_at_chunk(const video *v, int64_t done, int64_t frames,
                               const tt_host *x0)
{
    const tt_rollout_options *o = &v->opt;
    const int64_t length = v->frames / o->rollouts;
    const int64_t turn = done / length, at = done % length;
    const int64_t first = turn * (length - o->overlap);
    const bool again = turn > 0 && at < o->overlap;
    if (!v->recorder) return TT_OK;
    tt_recorder_shift(v->recorder, first);
    return tt_recorder_chunk(v->recorder, first + at, frames,
                             again ? NULL : x0);
}

/* ---- what is there already ----------------------------------------------- */

/* What a replay of `chunks` chunks will take, before it takes it: known once
 * the first of them is done. A cache that grows makes later ones slower. */
static void say_cost(tt_run *run, int64_t chunks, double first)
{
    const double left = first * (double)(chunks - 1);
    if (left >= 1)
        run_say(&run->events, false, "rebuilding the cache will take about "
                "%.0f s: %lld clean passes of %.2f s", left,
                (long long)(chunks - 1), first);
}

/* One clean pass for each of the chunks [from, v->chunk), which begin with
 * frame `done`. */
static tt_status replay(tt_ctx *ctx, tt_run *run, int64_t from, int64_t done)
{
    video *v = &run->now;
    const int64_t size = v->frame_size;
    const bool each = v->recorded || v->opt.rollouts == 1;
    const double begin = tt_now();
    if (!each)
        return tt_rollout_replay(ctx, v->rollout, v->latents + done * size,
                                 v->done - done);
    for (int64_t i = from; i < v->chunk; i++) {
        const tt_host *x = v->latents + done * size;
        const int64_t f = tt_rollout_chunk_frames(v->rollout, i);
        TT_TRY(tt_rollout_replay(ctx, v->rollout, x, f));
        TT_TRY(look_at_chunk(v, done, f, x));
        if (i == from) say_cost(run, v->chunk - from, tt_now() - begin);
        done += f;
    }
    return TT_OK;
}

static tt_status rebuild_cache(tt_ctx *ctx, tt_run *run, int64_t from,
                               int64_t done)
{
    video *v = &run->now;
    v->start = tt_now();
    v->rebuilding = true;
    tt_tap_fn tap = ctx->tap;
    tt_inject_fn inject = ctx->inject;
    ctx->tap = NULL;
    ctx->inject = NULL;
    replay(ctx, run, from, done);
    ctx->tap = tap;
    ctx->inject = inject;
    v->rebuilding = false;
    run_say(&run->events, true, "cache rebuilt in %.1f s", tt_now() - v->start);
    return ctx->status;
}

/* Why a policy that cannot replay does not go on here; TT_OK if it does. */
static tt_status refuse_noisy(tt_ctx *ctx, const tt_run *run)
{
    const video *v = &run->now;
    const char *policy = v->opt.policy.name;
    if (v->recorder)
        return tt_fail(ctx, TT_EINVAL, "%s cannot be resumed with --cache %s: "
                       "its earlier chunks cannot be repeated, and without "
                       "them the recording would be incomplete; go on without "
                       "%s, or start over: --overwrite instead of --resume",
                       v->files.trace ? "--trace-cache" : "--analyze",
                       policy, v->files.trace && v->files.analyze
                               ? "both" : "it");
    if (!checkpoint_is_there(&v->keep))
        return tt_fail(ctx, TT_EINVAL, "--cache %s cannot go on from latents "
                       "alone, and there is no saved cache %s; start over: "
                       "--overwrite instead of --resume", policy,
                       v->keep.name[0]);
    return TT_OK;
}

/* The record begins with the chunks that were there: times unknown. */
static void record_taken(tt_ctx *ctx, tt_run *run)
{
    const video *v = &run->now;
    record_next_video(&run->record);
    for (int64_t i = 0; i < v->chunk; i++)
        record_add_chunk(ctx, &run->record, i,
                         tt_rollout_chunk_frames(v->rollout, i), NAN);
    run->record.resumed_after = v->chunk;
}

/* The cache after v->chunk chunks. What was recorded must be seen again, from
 * the first chunk on; else the latest saved state shortens the way. */
static tt_status restore_cache(tt_ctx *ctx, tt_run *run)
{
    video *v = &run->now;
    const long long chunks = tt_rollout_chunks(v->rollout);
    int64_t from = 0, saved = 0;
    if (v->noisy && tt_team_rank(ctx) == 0) TT_TRY(refuse_noisy(ctx, run));
    if (!v->recorded) TT_TRY(checkpoint_restore(ctx, run));
    saved = tt_rollout_frames_done(v->rollout);
    for (int64_t done = 0; done < saved; from++)
        done += tt_rollout_chunk_frames(v->rollout, from);
    if (v->noisy) { /* frames that came later go again */
        if (!saved)
            return tt_fail(ctx, TT_EFORMAT, "no saved state next to %s can be "
                           "used, and --cache %s cannot go on without; start "
                           "over: --overwrite instead of --resume",
                           v->files.latents ? v->files.latents : "rank 0's "
                           "latents", v->opt.policy.name);
        v->done = saved;
        v->chunk = from;
        record_taken(ctx, run);
        TT_TRY(latents_file_cut(&run->file, v->done));
    }
    const long long left = v->chunk - from;
    if (!left)
        run_say(&run->events, false, "resuming after %lld of %lld chunks, from "
                "their saved state", (long long)v->chunk, chunks);
    else
        run_say(&run->events, false, "resuming after %lld of %lld chunks; "
                "rebuilding the cache with one clean pass for each of %lld, "
                "about 1/%d of the time they took", (long long)v->chunk, chunks,
                left, v->opt.nsteps + 1);
    return left ? rebuild_cache(ctx, run, from, saved) : TT_OK;
}

/* Take up the frames that are there already, as far as they are whole chunks,
 * and go on from them. */
static tt_status take_up(tt_ctx *ctx, tt_run *run)
{
    video *v = &run->now;
    latents_file *file = &run->file;
    while (v->chunk < tt_rollout_chunks(v->rollout)) {
        int64_t f = tt_rollout_chunk_frames(v->rollout, v->chunk);
        if (v->done + f > file->done) break;
        v->done += f;
        v->chunk++;
    }
    record_taken(ctx, run);
    if (v->chunk && v->files.dump)
        return tt_fail(ctx, TT_EINVAL, "--dump %s would lack the %lld of "
                       "%lld chunks that are done already; go on without "
                       "--dump, or start over: --overwrite instead of --resume",
                       v->files.dump, (long long)v->chunk,
                       (long long)tt_rollout_chunks(v->rollout));
    TT_TRY(latents_file_cut(file, v->done));
    TT_TRY(latents_file_read(file, v->latents));
    TT_TRY(latents_file_cut(file, v->done)); /* to the end again */
    TT_TRY(tt_team_broadcast(ctx, v->latents, v->done * v->frame_size
                                              * (int64_t)sizeof *v->latents));
    if (v->done == v->frames && !v->recorded) {
        run_say(&run->events, false, "the latents are complete already");
        return TT_OK;
    }
    return restore_cache(ctx, run);
}

/* ---- beginning ----------------------------------------------------------- */

/* The prompts of the video, as the transformer reads them: one, or one per
 * distinct prompt of its scenes. */
static tt_status video_make_prompts(tt_ctx *ctx, tt_run *run)
{
    video *v = &run->now;
    const int64_t size = run->texts.rows * run->texts.dim;
    const int n = run_prompts_of(run);
    v->prompt = tt_alloc0(ctx, &v->mem, n, sizeof *v->prompt, "prompts");
    for (; v->prompt && v->nprompt < n && !ctx->status; v->nprompt++) {
        const int i = v->nprompt;
        const size_t scope = texts_scope(ctx, i);
        tt_prompt_make(ctx, &v->prompt[i], run->dit,
                       run->texts.text + (v->what.prompt + i) * size,
                       run->texts.rows);
        tt_scope_end(ctx, scope);
    }
    v->opt.prompts = (const tt_prompt *const *)v->prompt;
    return ctx->status;
}

/* Names of the settings themselves, for a run of one video. */
static tt_status own_files(tt_ctx *ctx, const tt_run *run, tt_run_files *f)
{
    const tt_settings *s = &run->s;
    *f = (tt_run_files){.latents = s->latents_out, .trace = s->trace,
                        .preview = s->preview && *s->preview ? s->preview
                                                             : NULL,
                        .analyze = s->analyze};
    if (tt_run_videos(run) == 1
        || !(f->latents || f->trace || f->preview || f->analyze)) return TT_OK;
    return tt_fail(ctx, TT_EINVAL, "a run of %lld videos needs names of files "
                   "for each of them", (long long)tt_run_videos(run));
}

static const char *keep_name(tt_ctx *ctx, video *v, const char *name)
{
    return name ? tt_strdup(ctx, &v->mem, name) : NULL;
}

static tt_status video_keep_files(tt_ctx *ctx, tt_run *run,
                                  const tt_run_files *files)
{
    video *v = &run->now;
    tt_run_files own = {0};
    if (tt_team_rank(ctx) > 0) files = &own; /* rank 0 writes */
    if (!files) TT_TRY(own_files(ctx, run, &own));
    if (!files) files = &own;
    v->files = (tt_run_files){
        keep_name(ctx, v, files->output), keep_name(ctx, v, files->animation),
        keep_name(ctx, v, files->sheet), keep_name(ctx, v, files->latents),
        keep_name(ctx, v, files->preview), keep_name(ctx, v, files->record),
        keep_name(ctx, v, files->dump), keep_name(ctx, v, files->trace),
        keep_name(ctx, v, files->analyze)};
    return ctx->status;
}

/* Memory for all latents, and the sizes that follow from the options. */
static tt_status make_space(tt_ctx *ctx, tt_run *run)
{
    video *v = &run->now;
    const tt_rollout_options *o = &v->opt;
    int64_t dim[5], bytes = 0;
    run_shape(dim, run, o);
    v->C = dim[2];
    v->frames = dim[0] * dim[1];
    v->frame_size = v->C * o->h * o->w;
    if (!tt_checked_size(&bytes, dim, 5, sizeof(tt_real)))
        return tt_fail(ctx, TT_EINVAL, "%lld latent frames of %lldx%lld are "
                       "impossibly many", (long long)v->frames,
                       (long long)o->w, (long long)o->h);
    v->latents = tt_alloc(ctx, &v->mem, bytes, 1, "the latents of the video");
    return ctx->status;
}

/* Only a state goes on with the policy, and the run was killed before the first
 * one, which comes after its first chunk. Two chunks without a state are work
 * that no one loses unasked. */
static bool starts_over(const tt_run *run)
{
    const video *v = &run->now;
    const latents_file *f = &run->file;
    return v->noisy && f->done && !f->complete
        && f->done < tt_rollout_chunk_frames(v->rollout, 0)
                     + tt_rollout_chunk_frames(v->rollout, 1)
        && !checkpoint_is_there(&v->keep);
}

/* --resume may stand in every command; one that finds nothing says where it
 * has looked. */
static void say_nothing_there(const tt_run *run)
{
    const latents_file *f = &run->file;
    if (f->locked && f->resume && !f->done && !f->reported && !f->ctx->status)
        run_say(&run->events, false, "nothing to resume in %s or %s; starting "
                "from the beginning", f->unfinished, f->path);
}

/* Files are rank 0's: the others go by what it found. */
static tt_status know_what_is_there(tt_ctx *ctx, tt_run *run)
{
    if (starts_over(run)) {
        tt_warn(ctx, "no saved cache is next to %.800s, and --cache %s cannot "
                "go on without one; the run loses a chunk at most and starts "
                "over", run->file.unfinished, run->now.opt.policy.name);
        TT_TRY(latents_file_cut(&run->file, 0));
    }
    TT_TRY(tt_team_broadcast(ctx, &run->file.done, sizeof run->file.done));
    return follow_recorder(ctx, &run->now);
}

/* What goes on with it: files that only a whole run can fill are left out. */
static void name_command(video *v)
{
    const bool all = v->noisy && v->recorder;
    const char *const lost[] = {
        v->files.dump ? "--dump" : NULL,
        all && v->files.trace ? "--trace-cache" : NULL,
        all && v->files.analyze ? "--analyze" : NULL};
    const char *between = " instead of ";
    snprintf(v->command, sizeof v->command, "the same command with --resume");
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        const size_t n = strlen(v->command);
        if (!lost[i]) continue;
        snprintf(v->command + n, sizeof v->command - n, "%s%s", between,
                 lost[i]);
        between = " and ";
    }
}

static tt_status video_open_video(tt_ctx *ctx, tt_run *run)
{
    video *v = &run->now;
    int64_t dim[5];
    const char *identity = rollout_identity(ctx, &v->mem, run->dit, &v->opt);
    const unsigned flags = tt_policy_class_of(&v->opt.policy)->flags;
    run_shape(dim, run, &v->opt);
    TT_TRY(tt_team_compare(ctx, "the video", identity ? identity : ""));
    v->identity = identity;
    TT_TRY(checkpoint_open(ctx, run));
    v->noisy = v->keep.on && (flags & TT_KEEPS_NOISY);
    run->file.may_grow = v->opt.rollouts == 1
                      && (!(flags & TT_KEEPS_NOISY)
                          || checkpoint_is_there(&v->keep));
    if (tt_team_any(ctx, !v->opt.ends || v->files.trace || v->files.analyze))
        v->opt.ends = false;
    TT_TRY(tt_rollout_open(ctx, &v->rollout, run->dit, v->prompt[0], &v->opt));
    TT_TRY(latents_file_open(&run->file, dim, identity));
    say_nothing_there(run);
    tt_rollout_on_progress(v->rollout, on_progress, run);
    if (!recorded_already(ctx, run)) TT_TRY(open_recorder(ctx, run));
    name_command(v);
    TT_TRY(know_what_is_there(ctx, run));
    if (run->file.done) TT_TRY(take_up(ctx, run));
    else checkpoint_forget(&v->keep); /* of a run that is given up */
    checkpoint_begin(ctx, run);
    const int64_t chunks = tt_rollout_chunks(v->rollout);
    v->start = tt_now();
    v->before = (double)v->chunk;
    if (v->done < v->frames) /* a step can take minutes */
        run_work(&run->events, (tt_run_work){.done = (double)v->chunk,
                                             .total = (double)chunks,
                                             .before = v->before},
                 "chunk %lld/%lld", (long long)v->chunk + 1,
                 (long long)chunks);
    return TT_OK;
}

static void forget_video(tt_run *run)
{
    tt_arena_free(&run->now.mem);
    run->now = (video){.number = -1};
}

tt_status tt_run_begin(tt_ctx *ctx, tt_run *run, int64_t i,
                       const tt_run_files *files)
{
    video *v;
    tt_run_video what;
    if (ctx->status) return ctx->status;
    TT_TRY(tt_run_video_at(ctx, run, i, &what));
    v = &run->now;
    video_end(ctx, run);
    if (v->number >= 0 && v->number == run->claimed) run_release(run);
    forget_video(run);
    TT_TRY(tt_run_encode(ctx, run));
    record_next_video(&run->record);
    v->number = i;
    v->what = what;
    v->begun = tt_now();
    TT_TRY(video_keep_files(ctx, run, files));
    if (run->claimed != i) TT_TRY(tt_run_claim(ctx, run, i, v->files.latents));
    v->opt = run_options(ctx, run, i, &v->mem);
    v->scene = run_scenes(ctx, run, &v->mem);
    if (video_make_prompts(ctx, run) || make_space(ctx, run)
        || video_open_video(ctx, run))
        return video_end(ctx, run);
    return TT_OK;
}

/* ---- chunks -------------------------------------------------------------- */

static tt_status take_chunk(tt_ctx *ctx, tt_run *run, const tt_host *x0,
                            int64_t frames, double seconds)
{
    video *v = &run->now;
    tt_team_time of[TT_TEAM_MAX];
    char ranks[120];
    const int nranks = tt_team_size(ctx) > 1 ? tt_team_size(ctx) : 0;
    const int64_t chunks = tt_rollout_chunks(v->rollout);
    memcpy(v->latents + v->done * v->frame_size, x0,
           (size_t)(frames * v->frame_size) * sizeof *x0);
    TT_TRY(latents_file_append(&run->file, x0, frames));
    TT_TRY(write_preview(ctx, v, x0, frames));
    TT_TRY(look_at_chunk(v, v->done, frames, x0));
    record_add_chunk(ctx, &run->record, v->chunk, frames, seconds);
    v->done += frames;
    const tt_run_chunk c = {v->chunk, chunks, frames, v->done, seconds, of,
                            nranks};
    v->chunk++;
    v->made++;
    if (v->done < v->frames && checkpoint_is_due(ctx, v))
        checkpoint_try(ctx, run);
    TT_TRY(ranks_measure(ctx, run, of, ranks, sizeof ranks));
    run_work(&run->events, (tt_run_work){.done = (double)v->chunk,
                                         .total = (double)chunks,
                                         .before = v->before,
                                         .seconds = tt_now() - v->start},
             "chunk %lld/%lld done in %.2f s%s", (long long)v->chunk,
             (long long)chunks, seconds, ranks);
    const double begin = tt_now();
    if (run->events.chunk) run->events.chunk(run->events.user, &c);
    v->elsewhere += tt_now() - begin;
    return ctx->status;
}

/* Who was told of a chunk has failed, and the chunk is done: a policy that
 * cannot make its cache again needs the state. Ranks that have heard of the
 * failure cannot save one. */
static tt_status save_after(tt_ctx *ctx, tt_run *run, int64_t done)
{
    char why[sizeof ctx->message];
    const tt_status status = ctx->status;
    if (!run->now.noisy || run->now.done == done || tt_team_size(ctx) > 1)
        return status;
    snprintf(why, sizeof why, "%s", tt_message(ctx));
    tt_clear(ctx);
    checkpoint_try(ctx, run);
    tt_clear(ctx);
    return tt_fail(ctx, status, "%s", why);
}

static tt_status next_chunk(tt_ctx *ctx, tt_run *run, const tt_host **x0,
                            int64_t *frames)
{
    video *v = &run->now;
    const volatile int *interrupt = ctx->interrupt;
    const int64_t done = v->done;
    const double begin = tt_now();
    tt_team_measure(ctx, NULL); /* of the chunk alone */
    if (v->noisy && v->made && tt_team_any(ctx, interrupt && *interrupt)) {
        checkpoint_save(ctx, run);
        return tt_fail(ctx, TT_EINTR, "interrupted");
    }
    ctx->finishing = v->noisy; /* half a chunk cannot be saved */
    tt_rollout_next(ctx, v->rollout, x0, frames);
    ctx->finishing = false;
    TT_TRY(ctx->status);
    if (!take_chunk(ctx, run, *x0, *frames, tt_now() - begin)) return TT_OK;
    return save_after(ctx, run, done);
}

static tt_status next_or_end(tt_ctx *ctx, tt_run *run, const tt_host **x0,
                             int64_t *frames)
{
    if (run->now.number < 0) TT_TRY(tt_run_begin(ctx, run, 0, NULL));
    video *v = &run->now;
    if (!v->rollout) return TT_END;
    if (v->done < v->frames && !next_chunk(ctx, run, x0, frames)) return TT_OK;
    *x0 = NULL;
    return video_end(ctx, run) ? ctx->status : TT_END;
}

tt_status tt_run_next(tt_ctx *ctx, tt_run *run, const tt_host **x0,
                      int64_t *frames)
{
    *x0 = NULL;
    *frames = 0;
    if (ctx->status) return ctx->status;
    if (!run) return tt_fail(ctx, TT_EINVAL, "there is no run to go on with");
    /* whatever else this process has loaded since it was opened */
    const tt_fpenv before = tt_fpenv_begin_all(ctx->nthreads);
    const tt_status status = next_or_end(ctx, run, x0, frames);
    tt_fpenv_set(before);
    return status;
}

tt_status tt_run_save(tt_ctx *ctx, tt_run *run)
{
    if (ctx->status) return ctx->status;
    if (!run || !run->now.rollout || !run->now.keep.on
        || (tt_team_rank(ctx) == 0 && !run->file.file))
        return tt_fail(ctx, TT_EINVAL, "a run is saved between the chunks of a "
                       "video whose latents have a file (latents-out)");
    if (run->now.opt.ends && run->now.done == run->now.frames) return TT_OK;
    return checkpoint_save(ctx, run);
}

static tt_tensor video_latents_of(const tt_run *run)
{
    int64_t dim[5];
    run_shape(dim, run, &run->now.opt);
    return tt_tensor_make(run->now.latents,
                          sizeof(tt_real) == 8 ? TT_F64 : TT_F32, 5, dim);
}

tt_run_standing tt_run_stand(const tt_run *run)
{
    const video *v = run ? &run->now : NULL;
    if (!v || !v->rollout) return (tt_run_standing){0};
    return (tt_run_standing){v->chunk, tt_rollout_chunks(v->rollout),
                             run->file.file ? run->file.unfinished : NULL,
                             v->command, v->noisy, v->keep.chunk, v->done,
                             video_latents_of(run)};
}

tt_status tt_run_latents(tt_ctx *ctx, const tt_run *run, tt_tensor *out)
{
    if (ctx->status) return ctx->status;
    if (!run || run->now.number < 0 || !run->now.latents
        || run->now.done < run->now.frames)
        return tt_fail(ctx, TT_EINVAL, "the latents of the video are not "
                       "complete; tt_run_next returns TT_END when they are");
    *out = video_latents_of(run);
    return TT_OK;
}

/* ---- ending -------------------------------------------------------------- */

/* Can --resume make a cache from what is on the disk? */
static bool can_go_on(const video *v)
{
    return !v->noisy || checkpoint_is_there(&v->keep);
}

/* A disk that is full in the middle: what is written already is good. */
static tt_status explain_failure(tt_ctx *ctx, const tt_run *run)
{
    const video *v = &run->now;
    char why[sizeof ctx->message];
    if (ctx->status != TT_EIO || !run->file.file || !v->chunk
        || !can_go_on(v))
        return ctx->status;
    snprintf(why, sizeof why, "%s", tt_message(ctx));
    tt_clear(ctx);
    return tt_fail(ctx, TT_EIO, "%.600s; %lld of %lld chunks are in %s, and "
                   "%s goes on", why, (long long)v->chunk,
                   (long long)tt_rollout_chunks(v->rollout),
                   run->file.unfinished, v->command);
}

/* Interrupted: say what was kept and how to go on. */
static tt_status explain_stop(tt_ctx *ctx, const tt_run *run)
{
    const video *v = &run->now;
    if (ctx->status != TT_EINTR) return explain_failure(ctx, run);
    const int64_t chunks = v->rollout ? tt_rollout_chunks(v->rollout) : 0;
    tt_clear(ctx);
    if (!run->file.file || !v->chunk)
        return tt_fail(ctx, TT_EINTR, "interrupted after %lld of %lld chunk%s",
                       (long long)v->chunk, (long long)chunks,
                       chunks == 1 ? "" : "s");
    if (!can_go_on(v))
        return tt_fail(ctx, TT_EINTR, "interrupted after %lld of %lld chunks; "
                       "they are in %s, but --cache %s cannot go on without a "
                       "saved state; start over: --overwrite",
                       (long long)v->chunk, (long long)chunks,
                       run->file.unfinished, v->opt.policy.name);
    return tt_fail(ctx, TT_EINTR, "interrupted after %lld of %lld chunks; they "
                   "are in %s, and %s goes on", (long long)v->chunk,
                   (long long)chunks, run->file.unfinished, v->command);
}

tt_status video_end(tt_ctx *ctx, tt_run *run)
{
    video *v = &run->now;
    if (v->number < 0) return ctx->status;
    const bool whole = v->frames && v->done == v->frames;
    if (v->rollout) {
        if (whole) latents_file_finish(&run->file);
        if (!ctx->status && whole) checkpoint_forget(&v->keep);
    }
    explain_stop(ctx, run);
    if (v->rollout) {
        if (ctx->status || !whole) tt_recorder_abort(v->recorder);
        else if (v->recorder) tt_recorder_finish(v->recorder);
        run->record.rollout_seconds = tt_now() - v->begun - v->elsewhere;
    }
    v->recorder = NULL;
    tt_rollout_close(v->rollout);
    v->rollout = NULL;
    for (int i = 0; i < v->nprompt; i++) tt_prompt_free(v->prompt[i]);
    v->nprompt = 0;
    return ctx->status;
}
