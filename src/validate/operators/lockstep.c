/* lockstep.c: five rollouts side by side, chunk after chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Ours leads. Its state is saved before every chunk, and two others start the
 * chunk from it: the candidate, and the emulation, whose distance from ours is
 * what the declared arithmetic may make of one chunk. Two more are never
 * restored and show how the errors grow.
 *
 * Selections are integers and cannot be a little wrong: selection_compare says
 * what a tie is. What comes after a tie in the same chunk (later rounds, and
 * the cache from that layer on) is no failure where it differs, and no pass;
 * the next chunk starts from our state again. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "validate/isolate/watch.h"
#include "validate/operators/lockstep.h"
#include "validate/operators/walk.h"
#include "validate/report/report.h"

static double *widen(tt_ctx *ctx, const tt_real *x, int64_t n)
{
    double *d = tt_alloc(ctx, &ctx->scratch, n, sizeof *d, "lockstep");
    for (int64_t i = 0; d && i < n; i++) d[i] = (double)x[i];
    return d;
}

/* |a - b| / |b| */
static double rel_l2(const tt_real *a, const tt_real *b, int64_t n)
{
    double ee = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)a[i] - (double)b[i];
        ee += d * d;
        bb += (double)b[i] * (double)b[i];
    }
    return bb > 0 ? sqrt(ee / bb) : sqrt(ee);
}

void lockstep_check(lockstep *s, const char *path, const double *got,
                    const double *want, const double *emul, int rank,
                    const int64_t *dim)
{
    tt_verdict v = {.op = "", .rank = rank};
    int64_t n = 1;
    if (s->ctx->status) return;
    for (int i = 0; i < rank; i++) n *= v.dim[i] = dim[i];
    snprintf(v.path, sizeof v.path, "%s", path);
    if (!s->arith->bits)
        tt_verdict_check(&v, s->arith, got, want, emul, n, dim[rank - 1]);
    tt_verdict_bits(&v, s->arith, got, want, n);
    if (v.outcome == TT_MISMATCH)
        hint_find(s->ctx, NULL, s->arith, got, want, &v);
    tt_report_add(s->report, &v, got, want);
}

bool lockstep_equal(lockstep *s, const char *path, const int32_t *got,
                    const int32_t *want, int64_t n, const char *why)
{
    const tt_arena_mark mark = tt_arena_here(&s->ctx->scratch);
    tt_verdict v = {.op = "", .rank = 1, .dim = {n}};
    double *g = tt_alloc(s->ctx, &s->ctx->scratch, n, sizeof *g, "lockstep");
    double *w = tt_alloc(s->ctx, &s->ctx->scratch, n, sizeof *w, "lockstep");
    if (s->ctx->status) return false;
    for (int64_t i = 0; i < n; i++) g[i] = got[i], w[i] = want[i];
    tt_metrics_measure(&v.m, g, w, n);
    v.outcome = v.m.differ ? TT_MISMATCH : TT_PASS;
    v.ratio = v.m.differ ? INFINITY : 0;
    snprintf(v.path, sizeof v.path, "%s", path);
    verdict_place(&v);
    if (v.m.differ) snprintf(v.hint, sizeof v.hint, "%s", why);
    tt_report_add(s->report, &v, g, w);
    tt_arena_reset(&s->ctx->scratch, mark);
    return !v.m.differ;
}

void lockstep_not_checked(lockstep *s, const char *path, const char *why)
{
    tt_verdict v = {.op = "", .outcome = TT_UNCHECKED};
    snprintf(v.path, sizeof v.path, "%s", path);
    snprintf(v.hint, sizeof v.hint, "not judged: %.160s", why);
    tt_report_add(s->report, &v, NULL, NULL);
}

/* ---- the cache ----------------------------------------------------------- */

static void check_half(lockstep *s, int64_t layer, const char *what,
                       const tt_layer *y[], bool values)
{
    const tt_arena_mark mark = tt_arena_here(&s->ctx->scratch);
    const tt_geometry *g = y[0]->geo;
    const int64_t dim[3] = {y[0]->len, g->H, g->D}, n = dim[0] * g->H * g->D;
    double *d[3];
    char path[96];
    snprintf(path, sizeof path, "chunk.%lld/cache.layer.%lld.%s",
             (long long)s->chunk, (long long)layer, what);
    for (int i = 0; i < 3; i++)
        d[i] = widen(s->ctx, values ? y[i]->v : y[i]->k, n);
    lockstep_check(s, path, d[1], d[0], d[2], 3, dim);
    tt_arena_reset(&s->ctx->scratch, mark);
}

static bool same_slots(const tt_layer *a, const tt_layer *b)
{
    const size_t bytes = (size_t)a->len * sizeof *a->src_frame;
    return a->len == b->len && !memcmp(a->src_frame, b->src_frame, bytes)
           && !memcmp(a->sidx, b->sidx, bytes)
           && !memcmp(a->tpos, b->tpos, bytes);
}

/* Which frame, place and time each slot holds; true when all are ours. */
static bool check_slots(lockstep *s, const char *path, const tt_layer *theirs,
                        const tt_layer *ours)
{
    const int32_t length[2] = {(int32_t)theirs->len, (int32_t)ours->len};
    if (length[0] != length[1])
        return lockstep_equal(s, path, &length[0], &length[1], 1,
                              "another number of live slots");
    const struct {
        const int32_t *theirs, *ours;
        const char *why;
    } part[] = {
        {theirs->src_frame, ours->src_frame, "another frame is kept"},
        {theirs->sidx, ours->sidx, "another place in the frame"},
        {theirs->tpos, ours->tpos, "another position in time"}};
    const size_t bytes = (size_t)ours->len * sizeof *ours->tpos;
    int i = 0;
    while (i < 2 && !memcmp(part[i].theirs, part[i].ours, bytes)) i++;
    return lockstep_equal(s, path, part[i].theirs, part[i].ours, ours->len,
                          part[i].why);
}

/* Layers in front of a flipped pick do not know of it. */
static void check_cache(lockstep *s, int64_t layers)
{
    for (int64_t l = 0; l < layers && !s->ctx->status; l++) {
        const tt_layer *y[3];
        char path[96];
        for (int i = 0; i < 3; i++)
            y[i] = tt_cache_layer(tt_rollout_cache(s->lane[i].run), l);
        snprintf(path, sizeof path, "chunk.%lld/cache.layer.%lld",
                 (long long)s->chunk, (long long)l);
        if (s->tie >= 0 && l >= s->tie) {
            lockstep_not_checked(s, path, s->why_not);
            continue;
        }
        snprintf(strchr(path, 0), sizeof path - strlen(path), ".slots");
        if (!check_slots(s, path, y[1], y[0]) || s->ctx->status) continue;
        if ((s->own >= 0 && l >= s->own) || !same_slots(y[2], y[0])) {
            strcpy(strrchr(path, '.'), ".kv");
            lockstep_not_checked(s, path, "the declared arithmetic keeps other "
                                 "frames");
            continue;
        }
        check_half(s, l, "k", y, false);
        check_half(s, l, "v", y, true);
    }
}

/* ---- chunks -------------------------------------------------------------- */

static void lockstep_grow(lockstep *s, const char *curve, int theirs, int emul)
{
    const tt_real *ours = s->lane[OURS].x;
    tt_report_grow(s->report, &(tt_growth){
        .curve = curve, .chunk = s->chunk,
        .rel_l2 = rel_l2(s->lane[theirs].x, ours, s->n),
        .earned = rel_l2(s->lane[emul].x, ours, s->n)});
}

static void check_chunk(lockstep *s, const int64_t *dim, int64_t layers)
{
    const tt_arena_mark mark = tt_arena_here(&s->ctx->scratch);
    char path[64];
    double *d[3];
    for (int i = 0; i < 3; i++) d[i] = widen(s->ctx, s->lane[i].x, s->n);
    snprintf(path, sizeof path, "chunk.%lld/x0", (long long)s->chunk);
    lockstep_check(s, path, d[FORCED], d[OURS], d[FORCED_EMUL], 4, dim);
    tt_arena_reset(&s->ctx->scratch, mark);
    lockstep_grow(s, "teacher forced", FORCED, FORCED_EMUL);
    lockstep_grow(s, "free running", FREE, FREE_EMUL);
    lockstep_rounds(s);
    check_cache(s, layers);
}

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
        lane *l = &s->lane[i];
        ctx->ops = s->lane[OURS].ops;
        if (i == FORCED || i == FORCED_EMUL)
            tt_rollout_restore(ctx, l->run, s->state);
        ctx->ops = l->ops;
        rounds_clear(&l->rounds);
        const tt_status end = tt_rollout_next(ctx, l->run, &l->x, &s->frames);
        if (end == TT_END || gave_up(s, i)) return TT_END;
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
        if (ctx->status) break;
        l->rounds.ctx = ctx;
        rounds_clear(&l->rounds);
        tt_cache_on_event(tt_rollout_cache(l->run), rounds_take, &l->rounds);
    }
    return !ctx->status;
}

/* Are the chunks still to be run, and may everything be called that they call?
 */
static bool begins(tt_report *r, watch *w)
{
    const op_kind lost = watch_lost(w);
    tt_verdict v = {.op = "", .outcome = TT_UNCHECKED, .path = "chunk.0/x0"};
    if (!watch_enter(w, PART_CHUNKS, 0)) return false;
    watch_place(w, v.path);
    if (lost == OP_KINDS) return true;
    snprintf(v.hint, sizeof v.hint, "not judged: no chunk can be made without "
             "%s", op_name(lost));
    tt_report_add(r, &v, NULL, NULL);
    return false;
}

tt_status tt_validate_rollout(tt_ctx *ctx, tt_report *r,
                              const tt_ops *candidate, const tt_arith *arith,
                              const tt_model_parts *m, const char *state)
{
    const tt_ops *before = ctx->ops;
    const tt_ops *emul = arith->bits ? arith_ours(arith) : tt_arith_ops(arith);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const tt_dit_config *c = tt_dit_get_config(m->dit);
    watch *w = r ? r->watch : NULL;
    watched table;
    if (!begins(r, w)) return ctx->status;
    lockstep *s = tt_alloc0(ctx, &ctx->scratch, 1, sizeof *s, "lockstep");
    if (!s) return ctx->status;
    *s = (lockstep){.ctx = ctx, .report = r, .arith = arith, .state = state,
                    .watch = w, .tie = -1, .own = -1};
    s->lane[OURS].ops = arith_ours(arith);
    s->lane[FORCED].ops = s->lane[FREE].ops =
        watched_make(&table, r, candidate);
    s->lane[FORCED_EMUL].ops = s->lane[FREE_EMUL].ops = emul;
    const bool ready = open_lanes(s, m);
    while (ready && !ctx->status && lockstep_next_chunk(s) == TT_OK) {
        const int64_t dim[4] = {s->frames, c->in_dim, m->rollout.h,
                                m->rollout.w};
        s->n = dim[0] * dim[1] * dim[2] * dim[3];
        ctx->ops = s->lane[OURS].ops;
        check_chunk(s, dim, c->layers);
        s->chunk++;
    }
    ctx->ops = before;
    for (int i = 0; i < RUNS; i++) {
        tt_rollout_close(s->lane[i].run);
        tt_prompt_free(s->lane[i].prompt);
        rounds_clear(&s->lane[i].rounds);
    }
    unlink(state);
    tt_arena_reset(&ctx->scratch, mark);
    return ctx->status;
}
