/* generate_run.c: one video's latents, chunk by chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   what must survive an interruption is only the latents so far: the
 *         cache is rebuilt from them by one clean pass per chunk, to the same
 *         bits (tt_rollout_replay). Where a policy does not allow that
 *         (deep-forcing), an interruption waits for the end of the chunk and
 *         saves the whole cache beside the latents.
 * Next    rollout/rollout.c */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/generate.h"
#include "tether/analyze.h"
#include "tether/video.h"

/* ---- progress, preview --------------------------------------------------- */

typedef struct run {
    tt_ctx *ctx;
    video_job *job;
    tt_rollout *rollout;
    tt_arena *mem;
    tt_real *latents;          /* [frames, C, h, w]                           */
    int64_t frames, frame_size, C;
    int64_t chunk, done;       /* chunks, frames that are ready               */
    double start;              /* of this session                             */
    latents_file *file;        /* claimed; no file when it has no path        */
    tt_recorder *recorder;     /* NULL: no trace or run folder asked for      */
    const char *state;         /* saved caches; NULL: they can be rebuilt     */
    bool rebuilding;           /* the cache, from chunks that are there       */
    char kept[4400];           /* what a second signal leaves behind          */
} run;

/* What Ctrl-C is answered with. */
static void stop_words(run *r)
{
    const bool kept = r->file->file && r->chunk > 0;
    if (r->state)
        snprintf(r->kept, sizeof r->kept, "stopped at once; %.4200s cannot be "
                 "continued without its saved cache", r->file->unfinished);
    else
        snprintf(r->kept, sizeof r->kept, "stopped at once; the chunks done "
                 "are in %.4200s, and the same command with --resume goes on",
                 r->file->unfinished);
    cli_stop_words(r->state ? "stopping after this chunk, whose cache must be "
                              "saved" : NULL, kept ? r->kept : NULL);
}

static void on_progress(void *user, const tt_progress *p)
{
    run *r = user;
    double fraction = p->steps ? (double)p->step / p->steps : 0;
    if (r->rebuilding) {
        progress_update(r->job->progress, (double)p->chunk + fraction,
                        (double)r->chunk, tt_now() - r->start,
                        "rebuilding the cache, chunk %lld/%lld",
                        (long long)p->chunk + 1, (long long)r->chunk);
        return;
    }
    if (fraction >= 1) fraction = 0.999; /* finished chunks are told apart */
    progress_update(r->job->progress,
                    (double)p->chunk + fraction, (double)p->chunks,
                    tt_now() - r->start, "chunk %lld/%lld step %d/%d",
                    (long long)p->chunk + 1, (long long)p->chunks, p->step,
                    p->steps);
}

static tt_status write_preview(run *r, const tt_real *x0, int64_t frames)
{
    tt_ctx *ctx = r->ctx;
    const char *path = r->job->names.preview;
    const int64_t h = r->job->opt.h, w = r->job->opt.w;
    char name[4096], why[sizeof ctx->message];
    if (!path || ctx->status) return ctx->status;
    const tt_preview p = tt_preview_layout(frames, h, w);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    uint8_t *rgb = tt_alloc(ctx, &ctx->scratch, p.width * p.height, 3,
                            "preview");
    if (rgb) {
        tt_latent_preview(rgb, &p, x0, r->C, h, w);
        if (tt_pattern_name(name, sizeof name, path, r->chunk)) path = name;
        tt_png_write(ctx, path, rgb, p.width, p.height);
    }
    tt_arena_reset(&ctx->scratch, mark);
    if (!ctx->status) return TT_OK;
    /* A chunk is worth more than a picture of it. */
    snprintf(why, sizeof why, "%s", tt_message(ctx));
    tt_clear(ctx);
    tt_warn(ctx, "%s; the run goes on without previews", why);
    r->job->names.preview = NULL;
    return TT_OK;
}

static void log_chunk(run *r, int64_t frames, double seconds)
{
    json_out j;
    if (!progress_log(r->job->progress, &j, "chunk")) return;
    json_int(&j, "chunk", r->chunk);
    json_int(&j, "chunks", tt_rollout_chunks(r->rollout));
    json_int(&j, "frames", frames);
    json_int(&j, "latents_done", r->done + frames);
    json_real(&j, "chunk_seconds", seconds);
    json_int(&j, "peak_memory_bytes", progress_peak_memory());
    progress_logged(r->job->progress, &j);
}

/* ---- --analyze, --trace-cache -------------------------------------------- */

static tt_status open_recorder(run *r)
{
    const video_job *j = r->job;
    const char *video = j->names.output;
    const tt_recorder_options o = {
        .folder = j->names.analyze, .trace = j->names.trace, .C = r->C,
        .h = j->opt.h, .w = j->opt.w, .features = true,
        .label = j->g->label, .prompt = j->text,
        .scene = j->scene, .nscenes = j->opt.nscenes,
        .seed = j->opt.noise.seed, .sample = j->opt.noise.sample,
        .video = video && strcmp(video, "-") ? video : NULL,
        .sheet = j->names.sheet};
    if (!o.folder && !o.trace) return r->ctx->status;
    return tt_recorder_open(r->ctx, &r->recorder,
                            tt_rollout_cache(r->rollout), &o);
}

/* Does the run folder hold these latents already, and what came with them? The
 * chunks of a policy that cannot be replayed cannot be recorded again. */
static bool recorded_already(run *r)
{
    const video_job *j = r->job;
    char path[4200];
    tt_file *f = NULL;
    bool equal = false;
    const tt_arena_mark mark = tt_arena_here(&r->ctx->scratch);
    if (!r->state || !r->file->complete || !j->names.analyze || j->names.trace)
        return false;
    snprintf(path, sizeof path, "%s/run.json", j->names.analyze);
    if (access(path, R_OK)) return false;
    snprintf(path, sizeof path, "%s/latents.safetensors", j->names.analyze);
    if (tt_file_open(r->ctx, &f, path)) {
        tt_clear(r->ctx);
        return false;
    }
    const size_t n = (size_t)(r->frames * r->frame_size);
    const tt_entry *e = tt_file_find(f, "latents");
    const tt_real *there = e ? tt_read_real(r->ctx, &r->ctx->scratch, &e->t)
                             : NULL;
    if (there && tt_tensor_count(&e->t) == (int64_t)n
        && !latents_file_read(r->file, r->latents)
        && !latents_file_cut(r->file, r->frames))
        equal = !memcmp(there, r->latents, n * sizeof *there);
    tt_arena_reset(&r->ctx->scratch, mark);
    tt_file_close(f);
    return equal;
}

/* Frames [done, done + frames) of the run are in the cache. A restarted
 * rollout begins again with the last frames of the one before. */
static tt_status look_at_chunk(run *r, int64_t done, int64_t frames,
                               const tt_real *x0)
{
    const tt_rollout_options *o = &r->job->opt;
    const int64_t length = r->frames / o->rollouts;
    const int64_t turn = done / length, at = done % length;
    const int64_t first = turn * (length - o->overlap);
    const bool again = turn > 0 && at < o->overlap;
    if (!r->recorder) return r->ctx->status;
    tt_recorder_shift(r->recorder, first);
    return tt_recorder_chunk(r->recorder, first + at, frames,
                             again ? NULL : x0);
}

/* ---- the loop ------------------------------------------------------------ */

static tt_status take_chunk(run *r, const tt_real *x0, int64_t frames,
                            double seconds)
{
    tt_ctx *ctx = r->ctx;
    memcpy(r->latents + r->done * r->frame_size, x0,
           (size_t)(frames * r->frame_size) * sizeof *x0);
    TT_TRY(latents_file_append(r->file, x0, frames));
    TT_TRY(write_preview(r, x0, frames));
    TT_TRY(look_at_chunk(r, r->done, frames, x0));
    record_add_chunk(ctx, r->job->record, r->chunk, frames, seconds);
    log_chunk(r, frames, seconds);
    r->done += frames;
    r->chunk++;
    stop_words(r);
    progress_update(r->job->progress, (double)r->chunk,
                    (double)tt_rollout_chunks(r->rollout), tt_now() - r->start,
                    "chunk %lld/%lld done in %.2f s",
                    (long long)r->chunk,
                    (long long)tt_rollout_chunks(r->rollout), seconds);
    return ctx->status;
}

static tt_status all_chunks(run *r)
{
    tt_ctx *ctx = r->ctx;
    const volatile int *interrupt = ctx->interrupt;
    while (r->done < r->frames && !ctx->status) {
        const tt_real *x0;
        int64_t frames;
        double begin = tt_now();
        if (r->state) ctx->interrupt = NULL; /* half a chunk cannot be saved */
        if (!tt_rollout_next(ctx, r->rollout, &x0, &frames))
            take_chunk(r, x0, frames, tt_now() - begin);
        ctx->interrupt = interrupt;
        if (!r->state || !interrupt || !*interrupt || r->done == r->frames)
            continue;
        tt_rollout_save(ctx, r->rollout, r->state);
        tt_check_interrupt(ctx);
    }
    return ctx->status;
}

/* One clean pass per chunk that is there already. */
static tt_status rebuild_cache(run *r)
{
    tt_ctx *ctx = r->ctx;
    const tt_real *x = r->latents;
    r->start = tt_now();
    r->rebuilding = true;
    progress_say(r->job->progress, "resuming after %lld of %lld chunks; "
                 "rebuilding the cache", (long long)r->chunk,
                 (long long)tt_rollout_chunks(r->rollout));
    tt_tap_fn tap = ctx->tap;
    tt_inject_fn inject = ctx->inject;
    ctx->tap = NULL;
    ctx->inject = NULL;
    int64_t done = 0;
    if (!r->recorder) tt_rollout_replay(ctx, r->rollout, x, r->done);
    for (int64_t i = 0; r->recorder && i < r->chunk && !ctx->status; i++) {
        int64_t f = tt_rollout_chunk_frames(r->rollout, i);
        if (!tt_rollout_replay(ctx, r->rollout, x, f))
            look_at_chunk(r, done, f, x);
        x += f * r->frame_size;
        done += f;
    }
    ctx->tap = tap;
    ctx->inject = inject;
    r->rebuilding = false;
    progress_note(r->job->progress, "cache rebuilt in %.1f s",
                  tt_now() - r->start);
    return ctx->status;
}

/* The cache as it was when the run was interrupted; frames that came later go
 * again. */
static tt_status restore_cache(run *r)
{
    tt_ctx *ctx = r->ctx;
    const char *policy = r->job->opt.policy.name;
    if (r->recorder)
        return tt_fail(ctx, TT_EINVAL, "%s cannot be resumed with --cache %s: "
                       "its earlier chunks cannot be repeated, and without "
                       "them the recording would be incomplete; go on without "
                       "%s, or start over: --overwrite instead of --resume",
                       r->job->names.trace ? "--trace-cache" : "--analyze",
                       policy, r->job->names.trace && r->job->names.analyze
                               ? "both" : "it");
    if (access(r->state, F_OK))
        return tt_fail(ctx, TT_EINVAL, "--cache %s cannot go on from latents "
                       "alone, and there is no saved cache %s (it is written "
                       "when a run is interrupted with ^C); start over: "
                       "--overwrite instead of --resume", policy, r->state);
    TT_TRY(tt_rollout_restore(ctx, r->rollout, r->state));
    const int64_t saved = tt_rollout_frames_done(r->rollout);
    if (saved > r->done)
        return tt_fail(ctx, TT_EINVAL, "%s was saved after %lld frames, but "
                       "there are latents of %lld only; start over: "
                       "--overwrite instead of --resume", r->state,
                       (long long)saved, (long long)r->done);
    while (r->done > saved)
        r->done -= tt_rollout_chunk_frames(r->rollout, --r->chunk);
    TT_TRY(latents_file_cut(r->file, r->done));
    progress_say(r->job->progress, "resuming after %lld of %lld chunks",
                 (long long)r->chunk,
                 (long long)tt_rollout_chunks(r->rollout));
    return ctx->status;
}

/* Take up the frames that are there already, as far as they are whole chunks,
 * and go on from them. */
static tt_status take_up(run *r)
{
    while (r->chunk < tt_rollout_chunks(r->rollout)) {
        int64_t f = tt_rollout_chunk_frames(r->rollout, r->chunk);
        if (r->done + f > r->file->done) break;
        r->done += f;
        record_add_chunk(r->ctx, r->job->record, r->chunk, f, NAN);
        r->job->record->resumed_after = ++r->chunk;
    }
    if (r->chunk && r->job->names.dump)
        return tt_fail(r->ctx, TT_EINVAL, "--dump %s would lack the %lld of "
                       "%lld chunks that are done already; go on without "
                       "--dump, or start over: --overwrite instead of --resume",
                       r->job->names.dump, (long long)r->chunk,
                       (long long)tt_rollout_chunks(r->rollout));
    TT_TRY(latents_file_cut(r->file, r->done));
    TT_TRY(latents_file_read(r->file, r->latents));
    TT_TRY(latents_file_cut(r->file, r->done)); /* to the end again */
    if (r->done == r->frames && !r->recorder) {
        progress_say(r->job->progress, "the latents are complete already");
        return TT_OK;
    }
    return r->state ? restore_cache(r) : rebuild_cache(r);
}

/* Interrupted: say what was kept and how to go on. */
static tt_status explain_stop(run *r)
{
    tt_ctx *ctx = r->ctx;
    if (ctx->status != TT_EINTR) return ctx->status;
    tt_clear(ctx);
    if (!r->file->file || !r->chunk)
        return tt_fail(ctx, TT_EINTR, "interrupted after %lld of %lld chunk%s",
                       (long long)r->chunk,
                       (long long)tt_rollout_chunks(r->rollout),
                       tt_rollout_chunks(r->rollout) == 1 ? "" : "s");
    return tt_fail(ctx, TT_EINTR, "interrupted after %lld of %lld chunks; they "
                   "are in %s, and the same command with --resume goes on",
                   (long long)r->chunk,
                   (long long)tt_rollout_chunks(r->rollout),
                   r->file->unfinished);
}

/* "<latents>.state" for policies that need it. */
static tt_status state_name(run *r)
{
    const char *latents = r->job->names.latents;
    const unsigned flags = tt_policy_class_of(&r->job->opt.policy)->flags;
    if (!latents || !(flags & TT_KEEPS_NOISY))
        return TT_OK;
    const size_t n = strlen(latents) + 8;
    char *name = tt_alloc(r->ctx, r->mem, (int64_t)n, 1, "file name");
    if (name) snprintf(name, n, "%s.state", latents);
    r->state = name;
    return r->ctx->status;
}

static tt_status run_open(run *r, const char *description)
{
    video_job *j = r->job;
    tt_ctx *ctx = r->ctx;
    int64_t dim[5];
    generate_shape(dim, j);
    TT_TRY(state_name(r));
    TT_TRY(tt_rollout_open(ctx, &r->rollout, j->dit, j->prompt, &j->opt));
    TT_TRY(latents_file_open(r->file, dim, description));
    tt_rollout_on_progress(r->rollout, on_progress, r);
    if (!recorded_already(r)) TT_TRY(open_recorder(r));
    if (r->file->done) TT_TRY(take_up(r));
    r->start = tt_now();
    j->progress->before = (double)r->chunk;
    stop_words(r);
    if (r->done < r->frames) /* a step can take minutes */
        progress_update(j->progress, (double)r->chunk,
                        (double)tt_rollout_chunks(r->rollout), 0,
                        "chunk %lld/%lld", (long long)r->chunk + 1,
                        (long long)tt_rollout_chunks(r->rollout));
    return TT_OK;
}

/* Finish what is complete, give up what is not; frees everything but the
 * latents. */
static tt_status run_close(run *r)
{
    tt_ctx *ctx = r->ctx;
    cli_stop_words(NULL, NULL);
    r->job->progress->before = 0;
    latents_file_finish(r->file);
    if (!ctx->status && r->state) unlink(r->state);
    explain_stop(r);
    if (ctx->status) tt_recorder_abort(r->recorder);
    else if (r->recorder) tt_recorder_finish(r->recorder);
    tt_rollout_close(r->rollout);
    return ctx->status;
}

void generate_shape(int64_t dim[5], const video_job *job)
{
    const tt_rollout_options *o = &job->opt;
    dim[0] = o->rollouts;
    dim[1] = o->initial_frames + o->latents;
    dim[2] = tt_dit_get_config(job->dit)->in_dim;
    dim[3] = o->h;
    dim[4] = o->w;
}

tt_status generate_run(tt_ctx *ctx, tt_arena *mem, tt_tensor *latents,
                       video_job *job)
{
    run r = {.ctx = ctx, .job = job, .mem = mem, .file = &job->file};
    const tt_rollout_options *o = &job->opt;
    r.C = tt_dit_get_config(job->dit)->in_dim;
    r.frames = (o->initial_frames + o->latents) * o->rollouts;
    r.frame_size = r.C * o->h * o->w;
    int64_t dim[5], bytes = 0;
    generate_shape(dim, job);
    if (!tt_checked_size(&bytes, dim, 5, sizeof(tt_real)))
        return tt_fail(ctx, TT_EINVAL, "%lld latent frames of %lldx%lld are "
                       "impossibly many", (long long)r.frames,
                       (long long)o->w, (long long)o->h);
    r.latents = tt_alloc(ctx, mem, bytes, 1, "the latents of the video");
    char *description = generate_describe(ctx, mem, job);
    double begin = tt_now();
    if (!ctx->status) run_open(&r, description);
    if (!ctx->status) all_chunks(&r);
    run_close(&r);
    job->record->rollout_seconds = tt_now() - begin;
    *latents = tt_tensor_make(r.latents, sizeof(tt_real) == 8 ? TT_F64
                                                              : TT_F32,
                              5, dim);
    return ctx->status;
}
