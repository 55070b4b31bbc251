/* arena.h: memory by lifetime.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Three lifetimes, three arenas: *model* (weights that had to be copied, small
 * parameters), *run* (KV cache, latents), *scratch* (ctx->scratch: a mark on
 * entering a block, a reset on leaving). An arena grows by chained blocks, so
 * pointers stay valid until a reset below them or tt_arena_free. Allocations
 * are 64-byte aligned. Values of a device (device.h) have blocks of their own
 * under the same marks. */
#ifndef TETHER_ARENA_H
#define TETHER_ARENA_H

#include "tether/api.h"
#include "tether/tensor.h"

TT_API_BEGIN

struct tt_ctx;
struct tt_arena_block;

typedef struct tt_arena {
    struct tt_arena_block *top; /* newest block                               */
    size_t used;                /* bytes handed out from `top`                */
    size_t total;               /* bytes of all blocks in use                 */
    size_t peak;                /* largest `total` so far                     */
    struct tt_arena_block *spare; /* blocks kept for reuse                    */
    size_t spare_bytes;         /* total + spare_bytes never exceeds peak     */
    size_t fail_after;          /* tests: fail the n-th allocation; 0 = never */
    const struct tt_device *device; /* its blocks are memory of this device   */
    struct tt_arena *values;    /* blocks of the context's device, if any     */
    const char *folder;         /* its blocks are files in this folder, without
                                   a name; NULL: memory. Borrowed            */
} tt_arena;

typedef struct tt_arena_mark {
    struct tt_arena_block *top;
    size_t used;
    struct tt_arena_block *values_top;
    size_t values_used;
} tt_arena_mark;

/* n elements of `size` bytes, uninitialised, 64-byte aligned. NULL with
 * TT_ENOMEM recorded in ctx (naming `what` and the bytes) when it fails, and
 * NULL at once while ctx already carries a failure. n = 0 gives a pointer
 * that must not be read. TT_EIO, naming the folder, where blocks are files. */
void *tt_alloc(struct tt_ctx *ctx, tt_arena *a, int64_t n, size_t size,
               const char *what);
/* The same, zeroed. */
void *tt_alloc0(struct tt_ctx *ctx, tt_arena *a, int64_t n, size_t size,
                const char *what);
char *tt_strdup(struct tt_ctx *ctx, tt_arena *a, const char *s);

/* Everything allocated after the mark is given back by tt_arena_reset. */
tt_arena_mark tt_arena_here(const tt_arena *a);
void tt_arena_reset(tt_arena *a, tt_arena_mark m);

/* Give all memory back; the arena is empty and usable again. */
void tt_arena_free(tt_arena *a);

/* Arrays of numbers in host memory, from ctx->scratch. */
tt_host *tt_scratch(struct tt_ctx *ctx, int64_t n);

TT_API_END

#endif
