/* call.h: an operator's call: its values on the GPU, its kernel started.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Values of the model are on the GPU already. What an operator is given in host
 * memory (positions, masks, statistics, and all values where an operator is
 * validated by itself) travels with the call: `place` makes it memory of the
 * GPU, `end` brings back what the kernel wrote. */
#ifndef TT_CUDA_CALL_H
#define TT_CUDA_CALL_H

#include <string.h>

#include "ops/cuda/cuda.h"

/* ---- values of the host -------------------------------------------------- */

#define OUTPUTS 3

typedef struct call {
    tt_ctx *ctx;
    tt_arena_mark mark;
    struct {
        void *host, *device;
        size_t bytes;
    } out[OUTPUTS];
    int nout;
} call;

static inline call begin(tt_ctx *ctx)
{
    cuda_open(ctx, ctx->ops);            /* whoever has not done so           */
    return (call){.ctx = ctx, .mark = tt_arena_here(&ctx->scratch)};
}

/* Room on the GPU until the end of the call. */
static inline void *workspace(call *c, int64_t bytes)
{
    return tt_values(c->ctx, (bytes + 3) / 4);
}

/* An array of a kernel: the pointer to it among the arguments, how much of it
 * is used, and how. */
typedef struct operand {
    void *member;
    size_t bytes;
    bool in, out;
} operand;

#define OPERAND(p, n, in, out) {&(p), (size_t)(n) * sizeof *(p), in, out}
#define READ(p, n) OPERAND(p, n, true, false)
#define WRITE(p, n) OPERAND(p, n, false, true)
#define CHANGE(p, n) OPERAND(p, n, true, true)

/* Its memory of the GPU stands in the arguments from here on; NULL stays NULL.
 */
static inline void call_place(call *c, const operand *o)
{
    void *host, *there;
    memcpy(&host, o->member, sizeof host);
    if (!host || cuda_holds(host)) return;
    there = workspace(c, (int64_t)o->bytes);
    memcpy(o->member, &there, sizeof there);
    if (there && o->in) c->ctx->device->put(c->ctx, there, host, o->bytes);
    if (!o->out) return;
    TT_ASSERT(c->nout < OUTPUTS);
    c->out[c->nout].host = host;
    c->out[c->nout].device = there;
    c->out[c->nout++].bytes = o->bytes;
}

/* All operands of a list, which ends with one that has no member. */
static inline void place_all(call *c, const operand *o)
{
    for (; o->member; o++) call_place(c, o);
}

#define PLACE(c, ...) place_all(c, (const operand[]){__VA_ARGS__, {0}})

/* Operators are timed one by one when there is a profile. */
static inline void end(call *c)
{
    for (int i = 0; i < c->nout && !c->ctx->status; i++)
        c->ctx->device->get(c->ctx, c->out[i].host, c->out[i].device,
                            c->out[i].bytes);
    if (c->ctx->profiling) cuda_wait(c->ctx);
    tt_arena_reset(&c->ctx->scratch, c->mark);
}

/* ---- grids --------------------------------------------------------------- */

typedef struct work {
    int64_t items;
    int threads;             /* of a block, one an item                       */
    bool strides;            /* up to some blocks a multiprocessor            */
} work;

static inline work each(int64_t items)
{
    return (work){items, ELEMENT_THREADS, true};
}

static inline void launch(call *c, cuda_kernel k, work w, const void *args)
{
    const int64_t most = 16 * cuda_multiprocessors();
    const int64_t blocks = cuda_blocks(w.items, w.threads);
    const cuda_grid g = {w.strides && blocks > most ? most : blocks, 1,
                         w.threads, 0};
    cuda_launch(c->ctx, k, g, args);
}

/* Values that a group's pointer of n rows reaches. */
static inline int64_t grouped(int64_t n, int64_t c, int64_t stride,
                              int64_t group)
{
    return n ? (n - 1) / group * stride + c : 0;
}

#endif
