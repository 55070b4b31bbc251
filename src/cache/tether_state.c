/* tether_state.c: what a layer of TetherCache remembers besides its tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   every evicted frame may yet be admitted, and only the clean pass can
 *         tell. But keys and values of a noisy chunk are read by one layer in
 *         one pass and never again. So the pending frames have the slots of the
 *         chunk until then: keys of the chunk are read where the pass has them,
 *         its values take the slots while a layer attends. The buffer for that,
 *         and for the first pass, which brings keys and then values there, has
 *         the values of one chunk of one layer. */
#include "cache/tether_state.h"
#include "core/device.h"

#include <string.h>

int64_t tether_width(const tt_layer *y)
{
    return y->geo->H * y->geo->D;
}

int64_t tether_frame(const tt_layer *y)
{
    return y->geo->L * y->geo->H * y->geo->D;
}

tether_state *tether_of(const tt_layer *y)
{
    return y->state;
}

int64_t *tether_members(const tt_layer *y)
{
    return (int64_t *)(tether_of(y) + 1);
}

int64_t *tether_pend_src(const tt_layer *y)
{
    return tether_members(y) + y->opt->M;
}

/* Where a pending frame begins in k and v. */
static int64_t pending_at(const tt_layer *y, int64_t frame)
{
    const int64_t ago = tether_of(y)->pending - frame;
    return y->len * tether_width(y) - ago * tether_frame(y);
}

tt_real *tether_pend_k(const tt_layer *y, int64_t frame)
{
    return y->k + pending_at(y, frame);
}

tt_real *tether_pend_v(const tt_layer *y, int64_t frame)
{
    return y->v + pending_at(y, frame);
}

size_t tether_state_size(const tt_policy_options *o, const tt_geometry *geo)
{
    int64_t bytes;
    if (!tt_checked_mul(&bytes, o->M + geo->chunk, sizeof(int64_t))
        || bytes > PTRDIFF_MAX / 2)
        return SIZE_MAX / 4;
    return sizeof(tether_state) + (size_t)bytes;
}

size_t tether_shared_size(const tt_policy_options *o, const tt_geometry *geo)
{
    const int64_t pend[] = { o->M > 0, geo->chunk, geo->L, geo->H, geo->D };
    int64_t bytes;
    if (!tt_checked_size(&bytes, pend, 5, sizeof(tt_real)))
        return SIZE_MAX / 4;
    return (size_t)bytes / sizeof(tt_real);
}

/* The first n of `all` values to the end, all others n down. */
static void turn(tt_ctx *ctx, tt_real *x, int64_t n, int64_t all,
                 tt_real *workspace)
{
    tt_copy(ctx, workspace, x, n);
    tt_copy(ctx, x, x + n, all - n);
    tt_copy(ctx, x + all - n, workspace, n);
}

void tether_turn(tt_ctx *ctx, tt_layer *y, int64_t slot)
{
    const int64_t L = y->geo->L, size = tether_frame(y);
    const int64_t pending = tether_of(y)->pending, n = pending * size;
    const int64_t to = slot * L, from = to + pending * L;
    const size_t meta = (size_t)(y->len - from) * sizeof *y->sidx;
    int32_t *const of[] = {y->src_frame, y->sidx, y->tpos};
    const int64_t all = y->len * tether_width(y) - slot * size;
    turn(ctx, y->k + slot * size, n, all, y->shared);
    turn(ctx, y->v + slot * size, n, all, y->shared);
    for (int i = 0; i < 3; i++) memmove(of[i] + to, of[i] + from, meta);
}

void tether_set_aside(tt_ctx *ctx, tt_layer *y)
{
    tt_copy(ctx, y->shared, tether_pend_v(y, 0),
            tether_of(y)->pending * tether_frame(y));
}

void tether_put_back(tt_ctx *ctx, tt_layer *y)
{
    tt_copy(ctx, tether_pend_v(y, 0), y->shared,
            tether_of(y)->pending * tether_frame(y));
}

void tether_reset(tt_ctx *ctx, tt_layer *y)
{
    (void)ctx;
    for (int64_t i = 0; i < y->opt->M; i++) tether_members(y)[i] = -1;
}

static bool in_video(const tt_layer *y, int64_t count)
{
    return count >= 0 && count <= y->geo->frames;
}

static bool counts_valid(const tt_layer *y, const tether_state *s)
{
    return (s->filled == 0 || (s->filled == 1 && y->len == y->cap))
           && y->len % y->geo->L == 0
           && s->occupancy == (s->filled ? y->opt->M : 0)
           && s->pending == 0          /* between chunks */
           && s->pending_first >= -y->opt->R
           && s->pending_first < y->geo->frames
           && in_video(y, s->counter[TETHER_ADMITTED])
           && in_video(y, s->counter[TETHER_REJECTED])
           && in_video(y, s->counter[TETHER_EDITED]);
}

bool tether_valid(const tt_layer *y)
{
    const int64_t M = y->opt->M, frames = y->geo->frames;
    bool ok = counts_valid(y, tether_of(y));
    for (int64_t i = 0; i < M; i++)
        ok = ok && tether_members(y)[i] >= -1 && tether_members(y)[i] < frames;
    for (int64_t i = 0; i < y->geo->chunk; i++)
        ok = ok && tether_pend_src(y)[i] >= TT_SRC_NONE
             && tether_pend_src(y)[i] < frames;
    return ok;
}

/* ---- what it shows ------------------------------------------------------- */

enum { MEMORY_INDEX, COUNTERS, CACHE_FILLED };
static const tt_field shown[] = {
    [MEMORY_INDEX] = {"memory_index", "[M] global frames, -1 while the cache "
                      "fills for the first time", TT_I64,
                      TT_FIELD_ROW | TT_FIELD_TRACED, TT_AT(M), -1},
    [COUNTERS] = {"counters", "[3] frames admitted, rejected and edited since "
                  "reset", TT_I64, TT_FIELD_ROW | TT_FIELD_TRACED, 0, 0},
    [CACHE_FILLED] = {"cache_filled", "1: the cache has been full", TT_U8,
                      TT_FIELD_TRACED, 0, 0},
    {0},
};
const tt_event_kind tether_shown = {"layer", shown};

void tether_show(const tt_layer *y, tt_event *out)
{
    static const uint8_t filled[2] = {0, 1};
    const tether_state *s = tether_of(y);
    out->value[MEMORY_INDEX].at = tether_members(y);
    out->value[MEMORY_INDEX].n = y->opt->M;
    out->value[COUNTERS].at = s->counter;
    out->value[COUNTERS].n = 3;
    out->value[CACHE_FILLED].at = &filled[s->filled != 0];
    out->value[CACHE_FILLED].n = 1;
}
