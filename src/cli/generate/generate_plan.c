/* generate_plan.c: what a run will take, in words.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The table of --plan goes to the standard output, the line of every run to
 * stderr.
 * Next    src/run/memory.c, src/run/time.c */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/generate/generate_session.h"
#include "core/utf8.h"
#include "run/needs.h"
#include "team/team.h"

void session_say_needs(session *s, int64_t i)
{
    tt_ctx quiet = {.status = TT_OK};
    tt_needs n;
    char memory[32], disk[32], video[32];
    if (i || tt_run_plan(&quiet, s->run, &n)) return;
    progress_bytes(video, sizeof video, n.video);
    progress_say(&s->progress, "plan: memory at most %s and mapped weights, "
                 "latents on disk %s%s%s%s", progress_bytes(memory,
                 sizeof memory, n.peak), progress_bytes(disk, sizeof disk,
                 n.latents_file), n.video ? ", a video at most " : "",
                 n.video ? video : "", n.video ? " as y4m" : "");
}

static void row(const char *what, int64_t bytes, const char *words)
{
    char text[32];
    if (bytes <= 0) return;
    printf("  %-26s %9s  %13lld  %s\n", what,
           progress_bytes(text, sizeof text, bytes), (long long)bytes, words);
}

static void time_row(const char *what, double seconds, double operations)
{
    char text[32];
    if (seconds <= 0) return;
    progress_duration(text, sizeof text, seconds);
    printf("  %-26s %9s  %11.3f s", what, text, seconds);
    if (operations > 0)
        printf("  %.4g Gop, %.4g Gop/s", operations * 1e-9,
               operations / seconds * 1e-9);
    printf("\n");
}

static void print_memory(const tt_needs *n)
{
    char limit[128];
    snprintf(limit, sizeof limit, "beyond what is held, says %s", n->limit);
    printf("weights, mapped from their files\n");
    row("text encoder", n->text.mapped, "");
    row("transformer", n->latents.mapped, "");
    row("decoder", n->decoding.mapped, "");
    printf("memory\n");
    row("held already", n->before, "");
    row("merged LoRA", n->lora.held, "the weights that it changes, as floats");
    row("text encoder", n->text.held, "");
    row("cache", n->cache, n->bf16
            ? "keys and values as bf16, with those of the prompt"
            : "keys and values, with those of the prompt");
    row("activations", n->activations,
        n->keys ? "operators, and what is kept of the window"
                : "and operators");
    row("decoder", n->decoding.held, n->history_files
            ? "frames, weights laid out anew"
            : "history, frames, weights laid out anew");
    row("peak: text", n->text.peak, "");
    if (n->during) row("peak: latents, decoding", n->decoding.peak, "at once");
    else row("peak: latents", n->latents.peak, "");
    if (!n->during) row("peak: decoding", n->decoding.peak, "");
    row("peak", n->peak, "");
    if (n->available < INT64_MAX) row("available", n->available, limit);
}

/* What is planned. */
static void print_model(const session *s)
{
    const tt_run *run = s->run;
    const tt_rollout_options *o = tt_run_rollout(run);
    const tt_dit_config *c = tt_dit_get_config(tt_run_dit(run));
    const char *path = tt_weights_path(tt_dit_weights(tt_run_dit(run)));
    const bool alone = tt_run_settings(run)->model.sizes_alone;
    printf("model: ");
    utf8_print(stdout, alone ? "Wan2.1-T2V-1.3B, by its published sizes: no "
                               "weights are read" : path);
    printf(" (%lld layers of width %lld)\n", (long long)c->layers,
           (long long)c->dim);
    printf("video: %lldx%lld, %lld frames, cache %s, %d steps\n",
           (long long)(8 * o->w), (long long)(8 * o->h),
           (long long)tt_run_frames(run), o->policy.name, o->nsteps);
}

static void print(const tt_needs *n, int64_t videos)
{
    const double all = n->lora.seconds + n->text.seconds + (double)videos
                     * (n->latents.seconds + n->decoding.seconds);
    print_memory(n);
    printf("disk%s\n", videos > 1 ? ", of every video" : "");
    row("cache", n->cache_files, "in files that go when the run ends");
    row("history of the VAE", n->history_files,
        "in files that go when the run ends");
    row("latents", n->latents_file, "");
    row("saved states, at most", n->states, "until the latents are complete");
    row("video as y4m, at most", n->video, "");
    if (all > 0)
        printf("time%s\n", videos > 1 ? ", of every video but for the text"
                                      : "");
    time_row("merging LoRAs", n->lora.seconds, n->lora.operations);
    time_row("text", n->text.seconds, n->text.operations);
    time_row("latents", n->latents.seconds, n->latents.operations);
    time_row("decoding", n->decoding.seconds, n->decoding.operations);
    time_row(videos > 1 ? "all videos" : "all", all, 0);
}

static double weights_bytes(const tt_needs *n)
{
    return (double)(n->text.mapped + n->latents.mapped + n->decoding.mapped);
}

tt_status session_plan(session *s)
{
    tt_needs n;
    if (s->ctx->device || tt_run_time(s->ctx, s->run, &n)) {
        if (s->ctx->status && s->ctx->status != TT_EUNSUPPORTED)
            return s->ctx->status;
        progress_say(&s->progress, "time is not measured: %s",
                     s->ctx->status ? tt_message(s->ctx)
                                    : "values are in memory of a device");
        tt_clear(s->ctx);
        TT_TRY(tt_run_plan(s->ctx, s->run, &n));
    }
    if (tt_team_rank(s->ctx) > 0) return s->ctx->status;
    print_model(s);
    print(&n, tt_run_videos(s->run));
    const double gigabytes = 1e-9 * weights_bytes(&n);
    printf("  reading the weights from the disk comes on top: %.3g GB, once; "
           "%.2g s at 1 GB/s\n", gigabytes, gigabytes);
    return s->ctx->status;
}
