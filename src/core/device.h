/* device.h: where values live, and the few ways to reach them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * In modules dit, cache, vae and text a tt_real * points to values in memory
 * of the context's device: arithmetic on the pointer is free, the values are
 * for operators. Numbers that the host reads or writes are tt_host. Where the
 * context has no device (all that is built in) values are in host memory, both
 * types are one, and tt_get, tt_map_write, tt_put and tt_send hand over the
 * pointer they are given: nothing is copied. `make check-device` proves that
 * those modules touch no value, `make test-guard` shows it while they run.
 *
 *     tt_host *h = tt_get(ctx, x, n);      to read x, or to change it
 *     tt_host *h = tt_map_write(ctx, x, n);     to write all of x
 *     tt_put(ctx, x, h, n);                what was written is in x
 *     const tt_real *x = tt_send(ctx, h, n);   h for operators to read
 *
 *     tt_wide *s = tt_wides(ctx, n);       statistics, where the values are
 *     double *h = tt_get_wides(ctx, s, n); to read them
 *
 *     tt_index *i = tt_indices(ctx, a, n); numbers of rows, in the same way
 *
 * Whoever gets waits for the device: statistics are got together.
 * Copies live in ctx->scratch. Every verb does nothing, or gives NULL, while
 * ctx->status is set, and is ordered with the operators around it. */
#ifndef TT_CORE_DEVICE_H
#define TT_CORE_DEVICE_H

#include "core/context.h"

/* ---- places and rows ----------------------------------------------------- */

/* Where n tokens are, from token `first` on of frames of L, w in a row: frame
 * position, row and column. Frame f has the position time[f], or t0 + f. */
typedef struct tt_locate_args {
    tt_index *to;            /* [n, 3]                                        */
    const int32_t *time;     /* of the host, or NULL                          */
    int64_t t0, first, n, L, w;
} tt_locate_args;

/* Row i = row list[i] of `from`, or row i where there is no list: c words of 4
 * bytes, rows `step` words apart there and `to_step` here, where what lies
 * between them stays as it is. The arrays do not overlap. */
typedef struct tt_pick_args {
    tt_index *to;            /* [n, to_step]                                  */
    const tt_index *from;    /* [..., step]                                   */
    const tt_index *list;    /* [n], or NULL                                  */
    int64_t n, c, step, to_step;
} tt_pick_args;

/* What a device does; `to` and `from` may be anywhere inside its blocks. */
typedef struct tt_device {
    const char *name;
    void *self;
    /* `bytes` of its memory, aligned to 64 bytes; NULL: there is none left. */
    void *(*alloc)(const tt_device *d, size_t bytes);
    void (*free)(const tt_device *d, void *block, size_t bytes);
    void (*put)(tt_ctx *ctx, void *to, const void *from, size_t bytes);
    void (*get)(tt_ctx *ctx, void *to, const void *from, size_t bytes);
    void (*copy)(tt_ctx *ctx, void *to, const void *from, size_t bytes);
    void (*zero)(tt_ctx *ctx, void *to, size_t bytes);
    void (*locate)(tt_ctx *ctx, const tt_locate_args *a);
    void (*pick)(tt_ctx *ctx, const tt_pick_args *a);
    /* See tt_narrow; NULL: the host does it. */
    void (*narrow)(tt_ctx *ctx, tt_real *to, const tt_real *from, int64_t n);
    /* Bytes of it that no one has taken; NULL: it cannot say. */
    int64_t (*free_memory)(const tt_device *d);
} tt_device;

/* n values in arena `a`, undefined or zero; in ctx->scratch. */
tt_real *tt_values_in(tt_ctx *ctx, tt_arena *a, int64_t n, const char *what);
tt_real *tt_values0_in(tt_ctx *ctx, tt_arena *a, int64_t n, const char *what);
tt_real *tt_values(tt_ctx *ctx, int64_t n);

/* n statistics in ctx->scratch, numbers of rows in `a`: undefined. */
tt_wide *tt_wides(tt_ctx *ctx, int64_t n);
tt_index *tt_indices(tt_ctx *ctx, tt_arena *a, int64_t n);

tt_host *tt_get(tt_ctx *ctx, const tt_real *x, int64_t n);
double *tt_get_wides(tt_ctx *ctx, const tt_wide *x, int64_t n);
int32_t *tt_get_indices(tt_ctx *ctx, const tt_index *x, int64_t n);
tt_host *tt_map_write(tt_ctx *ctx, tt_real *x, int64_t n);
void tt_put(tt_ctx *ctx, tt_real *x, const tt_host *h, int64_t n);
const tt_real *tt_send(tt_ctx *ctx, const tt_host *h, int64_t n);
void tt_put_indices(tt_ctx *ctx, tt_index *x, const int32_t *h, int64_t n);

/* Values as the weight of a linear layer, or of another operator. */
tt_tensor tt_values_view(const tt_real *x, int rank, const int64_t *dim);

/* The same stored values for operators to read: *t on the host, else a copy of
 * a packed view in the device's part of `a`. */
tt_tensor tt_place(tt_ctx *ctx, tt_arena *a, const tt_tensor *t);

/* to = from as packed bf16 numbers, nearest even; they do not overlap. Two of
 * them take the space of a value where tt_real is float. */
void tt_narrow(tt_ctx *ctx, tt_real *to, const tt_real *from, int64_t n);

/* to = from; they may overlap. to = 0. */
void tt_copy(tt_ctx *ctx, tt_real *to, const tt_real *from, int64_t n);
void tt_zero(tt_ctx *ctx, tt_real *to, int64_t n);
/* Elements [from, upto) of each of so many arrays = 0. All threads share all of
 * them: the first touch of a page takes long, and for one page longer than for
 * another, so within a small array threads wait for each other. */
void tt_zero_all(tt_ctx *ctx, tt_real *const *to, int64_t arrays, int64_t from,
                 int64_t upto);

void tt_locate(tt_ctx *ctx, const tt_locate_args *a);
void tt_pick(tt_ctx *ctx, const tt_pick_args *a);

/* The part of the arena that is memory of ctx->device; one mark and one reset
 * serve both. */
tt_arena *tt_arena_values(tt_ctx *ctx, tt_arena *a);

#endif
