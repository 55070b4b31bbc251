/* lockstep.c: five rollouts next to each other, chunk after chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Ours leads. Its state is saved before every chunk, and two others start the
 * chunk from it: the candidate, and the emulation, whose distance from ours is
 * what the declared arithmetic may make of one chunk. What the three show of it
 * is written as dumps, and compared as dumps of strangers are: files/history.c
 * says what follows from a pick that is a tie. The next chunk starts from our
 * state again. Two more are never restored and show how the errors grow. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "io/io.h"
#include "validate/isolate/watch.h"
#include "validate/operators/call.h"
#include "validate/operators/walk.h"
#include "validate/report/report.h"

enum { OURS, FORCED, FORCED_EMUL, FREE, FREE_EMUL, RUNS };

/* What of a chunk is compared: latents, the policy's picks, the KV cache.
 * Scores say what a tie is; a few of them have no error of their own to go by.
 */
#define CHECKED "*/x0,*/grab.keep,*/cache.*"
#define SHOWN CHECKED ",*/grab.score"

typedef struct lane {
    const tt_ops *ops;
    tt_rollout *run;
    tt_prompt *prompt;
    char dump[600];          /* what it shows of the chunk                    */
} lane;

typedef struct lockstep {
    tt_ctx *ctx;
    tt_report *report;
    const tt_arith *arith;
    const char *state;
    watch *watch;            /* who looks on the candidate; NULL: no one      */
    lane lane[RUNS];
    int64_t chunk;
} lockstep;

static void check_chunk(lockstep *s)
{
    tt_dump_options o = {
        .want = s->lane[OURS].dump, .got = s->lane[FORCED].dump,
        .emul = s->lane[FORCED_EMUL].dump, .arith = s->arith,
        .filter = CHECKED, .same_run = true, .curve = "teacher forced"};
    tt_dump_compare(s->ctx, s->report, &o);
    o.got = s->lane[FREE].dump;
    o.emul = s->lane[FREE_EMUL].dump;
    o.curve = "free running";
    o.quiet = true;
    tt_dump_compare(s->ctx, s->report, &o);
}

/* ---- chunks -------------------------------------------------------------- */

/* True when a lane of the candidate failed by itself: a verdict, and the
 * context is clear again. */
static bool gave_up(lockstep *s, int i)
{
    tt_ctx *ctx = s->ctx;
    tt_verdict v = {.op = "", .outcome = TT_MISMATCH, .ratio = INFINITY};
    if ((i != FORCED && i != FREE) || !ctx->status || ctx->status == TT_EINTR
        || ctx->status == TT_ENOMEM) return false;
    snprintf(v.path, sizeof v.path, "chunk.%lld/x0", (long long)s->chunk);
    if (ctx->status == TT_EUNSUPPORTED) v.outcome = TT_UNSUPPORTED;
    snprintf(v.hint, sizeof v.hint, "gave up: %.170s", tt_message(ctx));
    tt_clear(ctx);
    tt_report_add(s->report, &v, NULL, NULL);
    return true;
}

static void lockstep_on_tap(void *user, const char *path, tt_dtype dtype,
                            int rank, const int64_t *dim, const void *data)
{
    if (tt_name_chosen(SHOWN, path))
        tt_st_add(user, path, dtype, rank, dim, data);
}

/* The next chunk of a lane, with its dump. */
static tt_status lane_next(lockstep *s, lane *l)
{
    tt_ctx *ctx = s->ctx;
    tt_st_writer *w = NULL;
    const tt_tap_fn tap = ctx->tap;
    void *user = ctx->tap_user;
    const tt_real *x;
    int64_t frames;
    if (!tt_st_create(ctx, &w, l->dump)) {
        ctx->tap = lockstep_on_tap;
        ctx->tap_user = w;
        ctx->tap_cache = l < &s->lane[FREE];   /* a curve needs no caches */
    }
    ctx->ops = l->ops;
    const tt_status end = tt_rollout_next(ctx, l->run, &x, &frames);
    ctx->tap = tap;
    ctx->tap_user = user;
    ctx->tap_cache = false;
    if (end) tt_st_abort(w);
    else tt_st_finish(w);
    return end ? end : ctx->status;
}

/* The next chunk of every lane. TT_END when the video is complete. */
static tt_status lockstep_next_chunk(lockstep *s)
{
    tt_ctx *ctx = s->ctx;
    char path[64];
    snprintf(path, sizeof path, "chunk.%lld/x0", (long long)s->chunk);
    watch_place(s->watch, path);
    ctx->ops = s->lane[OURS].ops;
    tt_rollout_save(ctx, s->lane[OURS].run, s->state);
    for (int i = 0; i < RUNS && !ctx->status; i++) {
        ctx->ops = s->lane[OURS].ops;
        if (i == FORCED || i == FORCED_EMUL)
            tt_rollout_restore(ctx, s->lane[i].run, s->state);
        if (lane_next(s, &s->lane[i]) == TT_END || gave_up(s, i)) return TT_END;
    }
    return ctx->status;
}

/* False when a lane could not be opened. */
static bool open_lanes(lockstep *s, const tt_model_parts *m)
{
    tt_ctx *ctx = s->ctx;
    for (int i = 0; i < RUNS && !ctx->status; i++) {
        lane *l = &s->lane[i];
        ctx->ops = l->ops;
        l->prompt = walk_prompt(ctx, m);
        if (gave_up(s, i) || ctx->status) return false;
        ctx->ops = s->lane[OURS].ops;    /* a saved state names its backend */
        tt_rollout_open(ctx, &l->run, m->dit, l->prompt, &m->rollout);
        snprintf(l->dump, sizeof l->dump, "%s.%d", s->state, i);
    }
    return !ctx->status;
}

tt_status tt_validate_rollout(tt_ctx *ctx, tt_report *r,
                              const tt_ops *candidate, const tt_arith *arith,
                              const tt_model_parts *m, const char *state)
{
    const tt_ops *before = ctx->ops;
    const tt_ops *emul = arith->bits ? arith_ours(arith) : tt_arith_ops(arith);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    watch *w = r ? r->watch : NULL;
    watched table;
    if (!watch_enter(w, PART_CHUNKS, 0)) return ctx->status;
    watch_place(w, "chunk.0/x0");
    lockstep *s = tt_alloc0(ctx, &ctx->scratch, 1, sizeof *s, "lockstep");
    if (!s) return ctx->status;
    *s = (lockstep){.ctx = ctx, .report = r, .arith = arith, .state = state,
                    .watch = w};
    s->lane[OURS].ops = arith_ours(arith);
    s->lane[FORCED].ops = s->lane[FREE].ops =
        watched_make(&table, r, candidate);
    s->lane[FORCED_EMUL].ops = s->lane[FREE_EMUL].ops = emul;
    const bool ready = open_lanes(s, m);
    while (ready && !ctx->status && lockstep_next_chunk(s) == TT_OK) {
        ctx->ops = s->lane[OURS].ops;
        check_chunk(s);
        s->chunk++;
    }
    ctx->ops = before;
    for (int i = 0; i < RUNS; i++) {
        tt_rollout_close(s->lane[i].run);
        tt_prompt_free(s->lane[i].prompt);
        if (*s->lane[i].dump) unlink(s->lane[i].dump);
    }
    unlink(state);
    tt_arena_reset(&ctx->scratch, mark);
    return ctx->status;
}
