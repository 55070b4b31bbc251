/* generate_decode.c: the frames of a video, after its latents or during them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   "during" is the same decoding in turns: it is told how many latents
 *         there are after every chunk, in the same process and on all ranks.
 *         The frames of the last chunk come when the latents are complete, as
 *         all of them do "after". So every output has the same bytes.
 * Next    decode.c */
#include <string.h>

#include "cli/cli.h"
#include "cli/generate/generate_session.h"
#include "team/team.h"

/* Is anything decoded? Rank 0 alone has names of files; all ranks decode. */
static bool decodes(tt_ctx *ctx, const decode_outputs *o)
{
    bool any = o->video || o->animation || o->sheet;
    tt_team_broadcast(ctx, &any, sizeof any);
    return any;
}

static tt_status open_decoding(session *s, const tt_tensor *latents)
{
    decode_turns *t = &s->turns;
    decode_outputs o = session_outputs(s, &t->files);
    tt_run_video v;
    TT_TRY(tt_run_video_at(s->ctx, s->run, t->video, &v));
    o.title = v.text;
    o.comment = tt_run_comment(s->ctx, s->run, t->video, &s->mem);
    TT_TRY(session_check_late(s, &o));
    TT_TRY(tt_run_open_vae(s->ctx, s->run, &t->vae));
    return decode_begin(s->ctx, &t->decoding, &s->progress, t->vae, latents,
                        &o);
}

/* ---- turns --------------------------------------------------------------- */

/* In a chunk the decoder comes second: its part of the time, as far as is
 * known. */
static double part_of(const session *s)
{
    const decode_turns *t = &s->turns;
    const double all = tt_now() - t->begin;
    return t->decoding && all > 0 ? decode_seconds(t->decoding) / all : 0;
}

tt_run_work session_work(const session *s, const tt_run_work *w)
{
    const double part = part_of(s), begun = (double)(int64_t)w->done;
    tt_run_work x = *w;
    if (!s->turns.during) return x;
    if (w->done > begun) x.done = begun + (1 - part) * (w->done - begun);
    else if (w->done > w->before && s->progress.terminal) x.done -= part;
    else if (w->done > w->before) x.total += part; /* its line is of a whole */
    return x;
}

/* Decode what is new, as the rest of the chunk that is done. */
static tt_status take_turn(session *s, int64_t chunk, int64_t ready)
{
    decode_turns *t = &s->turns;
    progress_part *p = &s->progress.part;
    const double part = part_of(s);
    if (t->during)
        *p = (progress_part){.first = (double)t->ready, .last = (double)ready,
                             .from = (double)chunk - part, .to = (double)chunk,
                             .total = (double)t->chunks, .begin = t->begin,
                             .before = (double)t->before};
    decode_up_to(t->decoding, ready);
    *p = (progress_part){0};
    t->ready = ready;
    return s->ctx->status;
}

/* One process saves its cache after a turn that was interrupted. Ranks cannot:
 * where a cache must be saved, which it need not before the first new chunk,
 * they hear of Ctrl-C after the turn. */
tt_status session_decode_chunk(session *s)
{
    decode_turns *t = &s->turns;
    const tt_run_standing at = tt_run_stand(s->run);
    if (!t->during || at.chunk == at.chunks || s->ctx->status)
        return s->ctx->status;
    s->ctx->finishing = at.whole_chunks && at.chunk > t->before
                     && tt_team_size(s->ctx) > 1;
    take_turn(s, at.chunk, at.done);
    s->ctx->finishing = false;
    return s->ctx->status;
}

tt_status session_decode_begin(session *s, int64_t i,
                               const tt_run_files *files)
{
    const tt_run_standing at = tt_run_stand(s->run);
    const decode_outputs o = session_outputs(s, files);
    decode_turns *t = &s->turns;
    TT_TRY(s->ctx->status);
    *t = (decode_turns){.video = i, .files = *files,
                        .decodes = decodes(s->ctx, &o), .chunks = at.chunks,
                        .before = at.chunk, .begin = tt_now()};
    t->during = t->decodes && at.chunk < at.chunks
             && !strcmp(s->settings->decode, "during");
    if (!t->during) return s->ctx->status;
    TT_TRY(open_decoding(s, &at.latents));
    decode_stop_words(t->decoding);
    return session_decode_chunk(s);
}

/* What is left, when the latents are complete. */
static tt_status decode_rest(session *s)
{
    decode_turns *t = &s->turns;
    tt_tensor latents;
    TT_TRY(s->ctx->status);
    TT_TRY(tt_run_latents(s->ctx, s->run, &latents));
    if (!t->decoding) TT_TRY(open_decoding(s, &latents));
    decode_stop_words(t->decoding);
    return take_turn(s, t->chunks, latents.dim[0] * latents.dim[1]);
}

tt_status session_decode_end(session *s)
{
    decode_turns *t = &s->turns;
    const bool complete = !s->ctx->status;
    const double begin = tt_now();
    const double before = t->decoding ? decode_seconds(t->decoding) : 0;
    const decode_outputs o = session_outputs(s, &t->files);
    if (t->decodes) decode_rest(s);
    if (t->decoding) decode_end(t->decoding);
    tt_vae_close(t->vae);
    s->facts.decode_seconds = t->decodes ? before + tt_now() - begin : 0;
    if (complete && s->ctx->status && o.after)
        progress_say(&s->progress, "tether: %s", o.after);
    *t = (decode_turns){.decodes = false};
    return s->ctx->status;
}
