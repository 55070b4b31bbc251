/* trace.h: --trace-cache, every decision of the cache policy in one file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tensors and layout are those of the reference rollouts (ref_data/dit):
 * per chunk ends, and for TetherCache memory_index, counters, cache_filled;
 * per admission round grab_*. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include "tether/policy.h"

typedef struct trace_round trace_round;
typedef struct trace_chunk trace_chunk;

typedef struct trace {
    tt_ctx *ctx;
    tt_arena mem;
    trace_round *rounds, **last_round;
    trace_chunk *chunks, **last_chunk;
    int64_t nrounds, nchunks, P, M, layers;
    bool tether;            /* the policy is tether, also with M = 0          */
} trace;

void trace_begin(trace *t, tt_ctx *ctx, tt_cache *cache);
/* After a chunk was committed. */
void trace_add_chunk(trace *t, tt_cache *cache);
tt_status trace_write(trace *t, const char *path);
void trace_end(trace *t);

#endif
