/* layer.c: moving tokens inside one layer's cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  wan/modules/causal_model.py, the "roll" of the KV cache.
 * Holds   len <= cap; k, v and metadata of a token always move together. */
#include "core/device.h"
#include "cache/classes.h"

#include <string.h>

void tt_layer_move(tt_ctx *ctx, tt_layer *y, int64_t to, int64_t from,
                   int64_t n)
{
    TT_ASSERT(n >= 0 && to >= 0 && from >= 0);
    TT_ASSERT(to + n <= y->cap && from + n <= y->cap);
    if (n == 0 || to == from) return;
    const int64_t c = cache_row(y->geo);
    tt_copy(ctx, y->k + to * c, y->k + from * c, n * c);
    tt_copy(ctx, y->v + to * c, y->v + from * c, n * c);
    const size_t meta = (size_t)n * sizeof *y->sidx;
    memmove(y->src_frame + to, y->src_frame + from, meta);
    memmove(y->sidx + to, y->sidx + from, meta);
    memmove(y->tpos + to, y->tpos + from, meta);
}

bool tt_layer_roll(tt_ctx *ctx, tt_layer *y, int64_t keep, int64_t n)
{
    TT_ASSERT(keep >= 0 && n >= 0 && keep + n <= y->cap);
    const int64_t excess = y->len + n - y->cap;
    if (excess > 0) {
        TT_ASSERT(keep + excess <= y->len);
        tt_layer_move(ctx, y, keep, keep + excess, y->len - keep - excess);
        y->len -= excess;
    }
    y->len += n;
    return excess > 0;
}

void tt_layer_put(tt_ctx *ctx, tt_layer *y, const tt_pass *p, const tt_qkv *x)
{
    const int64_t n = p->frames * y->geo->L, slot = y->len - n;
    const int64_t c = y->geo->H * y->geo->D;
    TT_ASSERT(slot >= 0);
    for (int64_t i = 0; i < n; i++) {
        const int64_t frame = p->start + i / y->geo->L;
        y->src_frame[slot + i] = (int32_t)frame;
        y->tpos[slot + i] = (int32_t)frame;
        y->sidx[slot + i] = (int32_t)(i % y->geo->L);
    }
    if (y->geo->bf16) {
        cache_put_bf16(ctx, y, slot, n, x);
        return;
    }
    if (!y->own_k) tt_copy(ctx, y->k + slot * c, x->k, n * c);
    tt_copy(ctx, y->v + slot * c, x->v, n * c);
}

bool tt_layer_valid(const tt_layer *y)
{
    const tt_policy_class *cls = tt_cache_class(y->cache);
    const int64_t *flag = y->state;
    for (int i = 0; i < cls->state_flags; i++)
        if (flag[i] != 0 && flag[i] != 1) return false;
    return cls->valid ? cls->valid(y) : y->len % y->geo->L == 0;
}
