/* generate_decode.c: the frames of a video, after its latents or during them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   "during" is the same decoding interleaved: it is told how many
 *         latents there are after every chunk, in the same process and on all
 *         ranks. The frames of the last chunk come when the latents are
 *         complete, as all of them do "after". So every output has the same
 *         bytes.
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
    decode_up_to(t->decoding, at.done);
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
                        .decodes = decodes(s->ctx, &o), .before = at.chunk};
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
    return decode_up_to(t->decoding, latents.dim[0] * latents.dim[1]);
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
