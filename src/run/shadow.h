/* shadow.h: the models run without memory and without arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A shadow is a device whose addresses nobody reads, and a table of operators
 * that only take note of what they are asked. Model code that runs in its
 * context allocates and calls what it always does: so what it would hold, and
 * what it would compute, is counted where it is decided and nowhere else.
 * What the host computes itself (noise, positions, choices of a policy) it
 * really does; values it asks for are small numbers that mean nothing.
 *
 * A shadow of one rank of several holds and computes the part of that rank, and
 * takes note of what it would exchange. It needs no other rank for that: what
 * comes from whom follows from the cuts. */
#ifndef TT_RUN_SHADOW_H
#define TT_RUN_SHADOW_H

#include "team/engine.h"
#include "tether/backend.h"
#include "tether/device.h"

#define SHADOW_OP(op, OP) SHADOW_##OP,
typedef enum shadow_op {
    TT_OPS(SHADOW_OP)
    SHADOW_COPY,               /* bytes that a device would move              */
    SHADOW_EXCHANGE,           /* bytes to other ranks, or from them          */
    SHADOW_OPS
} shadow_op;

enum { SHADOW_DIMS = 11, SHADOW_CALLS = 256, SHADOW_WEIGHTS = 8 };

/* Calls that are alike but for one extent, their `size`: rows of a product,
 * keys of an attention, rows of a picture, values. */
typedef struct shadow_call {
    shadow_op op;
    int64_t dim[SHADOW_DIMS];  /* see shadow.c, `operators`                   */
    double calls, size, flops; /* of all together                             */
    double sent;               /* bytes, of exchanges                         */
    int64_t least, most;       /* sizes                                       */
    tt_tensor w[SHADOW_WEIGHTS]; /* of a product: of its first calls          */
    int nw;
} shadow_call;

typedef struct shadow_block {
    uintptr_t at;
    size_t size, touched;      /* bytes; written from the first on            */
    bool file;
} shadow_block;

typedef struct shadow {
    tt_ctx ctx;                /* models run in it                            */
    const tt_ops *real;        /* whose operators would run                   */
    tt_ops table[TT_CLASS_COUNT];
    const tt_ops *of_class[TT_CLASS_COUNT];
    tt_device device, files;
    tt_team team;              /* of the rank, where there are several        */
    shadow_block *block;       /* in order of their addresses                 */
    int blocks, room;
    uintptr_t next;
    int64_t size, size_peak;   /* bytes of addresses                          */
    int64_t held, peak;        /* bytes that were written, of no file         */
    int64_t disk, disk_peak;   /* bytes of files                              */
    int64_t fetched;           /* the largest array that the host was given   */
    shadow_call call[SHADOW_CALLS];
    int ncalls, latest;
    tt_tensor *matrix;         /* of all products, each once; files hold them */
    int matrices, matrix_room, matrix_latest;
    double matrix_bytes;
    shadow_call marked[SHADOW_CALLS]; /* as they were at the mark             */
    int nmarked;
} shadow;

/* For the operators, threads and rank of `ctx`. NULL: no memory for it,
 * recorded. */
shadow *shadow_open(tt_ctx *ctx);
void shadow_close(shadow *s);

/* The calls since the mark (at first: all) are made `times` more. */
void shadow_mark(shadow *s);
void shadow_repeat(shadow *s, double times);
/* Only the calls since the mark count, and they `times`. */
void shadow_keep(shadow *s, double times);

#endif
