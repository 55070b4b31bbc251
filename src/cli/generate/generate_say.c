/* generate_say.c: what is said while videos are made, and put into the log.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/generate/generate_session.h"
#include "analyze/analyze.h"

/* What Ctrl-C is answered with. */
void session_stop_words(session *s)
{
    const tt_run_standing at = tt_run_stand(s->run);
    if (at.whole_chunks && at.saved)
        snprintf(s->kept, sizeof s->kept, "stopped at once; %s goes on after "
                 "chunk %lld, whose state is saved", at.command,
                 (long long)at.saved);
    else if (at.whole_chunks)
        snprintf(s->kept, sizeof s->kept, "stopped at once; %.4200s cannot be "
                 "continued without its saved cache",
                 at.unfinished ? at.unfinished : "");
    else
        snprintf(s->kept, sizeof s->kept, "stopped at once; the chunks done "
                 "are in %.4200s, and %s goes on",
                 at.unfinished ? at.unfinished : "",
                 at.command ? at.command : "");
    cli_stop_words(at.whole_chunks ? "stopping after this chunk, whose cache "
                                     "must be saved" : NULL,
                   at.unfinished && at.chunk > 0 ? s->kept : NULL);
}

static void generate_say(void *user, bool detail, const char *sentence)
{
    session *s = user;
    progress_of_a_run(&s->progress).say(&s->progress, detail, sentence);
}

static void generate_say_work(void *user, const tt_run_work *w)
{
    session *s = user;
    progress_of_a_run(&s->progress).work(&s->progress, w);
}

static void log_ranks(json_out *j, const tt_run_chunk *c)
{
    if (!c->nranks) return;
    json_open(j, "ranks", '[');
    for (int r = 0; r < c->nranks; r++) {
        const tt_team_time *t = &c->rank[r];
        json_open(j, NULL, '{');
        json_int(j, "rank", r);
        json_real(j, "compute_seconds", t->compute);
        json_real(j, "exchange_seconds", t->exchange);
        json_real(j, "waiting_seconds", t->waiting);
        json_real(j, "cpu_seconds", t->cpu);
        json_real(j, "exchange_cpu_seconds", t->moving);
        json_int(j, "sent_bytes", t->sent);
        json_int(j, "messages", t->messages);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void log_chunk(session *s, const tt_run_chunk *c)
{
    json_out j;
    if (!progress_log(&s->progress, &j, "chunk")) return;
    json_int(&j, "chunk", c->chunk);
    json_int(&j, "chunks", c->chunks);
    json_int(&j, "frames", c->frames);
    json_int(&j, "latents_done", c->done);
    json_real(&j, "chunk_seconds", c->seconds);
    json_int(&j, "peak_memory_bytes", tt_peak_memory());
    log_ranks(&j, c);
    progress_logged(&s->progress, &j);
}

static void generate_say_take_chunk(void *user, const tt_run_chunk *c)
{
    session *s = user;
    session_stop_words(s);
    log_chunk(s, c);
    session_decode_chunk(s);
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

void session_announce(session *s, int64_t i, const tt_run_video *v,
                      const tt_run_files *files)
{
    const tt_rollout_options *o = tt_run_rollout(s->run);
    const tt_scenes *scenes = tt_run_scenes(s->run);
    const int64_t n = (o->initial_frames + o->latents) * o->rollouts;
    char stem[TT_VBENCH_STEM_MAX + 1], noise[1024], memory[32];
    if (s->settings->vbench_name && !tt_vbench_stem(stem, v->text))
        tt_warn(s->ctx, "the prompt cannot be part of a file name; the video "
                "is called %s", files->output);
    const int64_t bytes = tt_rollout_bytes(s->ctx, tt_run_dit(s->run), o);
    for (int k = 0; k < scenes->n; k++)
        progress_note(&s->progress, "from chunk %lld%s: %s",
                      (long long)scenes->scene[k].chunk,
                      scenes->scene[k].cut ? ", with a cut" : "",
                      scenes->prompt[scenes->scene[k].prompt]);
    announce_number(s, i, v);
    if (v->text && !scenes->n)
        progress_note(&s->progress, "prompt: %s", v->text);
    if (v->extended)
        progress_note(&s->progress, "extended: %s", v->extended);
    progress_say(&s->progress, "%s: %lld latents of %lldx%lld (%lld frames of "
                 "%lldx%lld), cache %s; cache and activations about %s",
                 noise_words(s, v, noise, sizeof noise),
                 (long long)n, (long long)o->w, (long long)o->h,
                 (long long)tt_run_frames(s->run), (long long)(8 * o->w),
                 (long long)(8 * o->h), o->policy.name,
                 progress_bytes(memory, sizeof memory,
                                bytes > 0 ? bytes : 0));
}

void session_log_start(session *s, const tt_run_video *v,
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

tt_run_events session_events(session *s)
{
    return (tt_run_events){s, generate_say, generate_say_work,
                           generate_say_take_chunk};
}
