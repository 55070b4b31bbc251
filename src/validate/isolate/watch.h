/* watch.h: a backend in a process of its own, seen from inside that process.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Whoever calls a backend says so on a board, memory that both processes see:
 * what runs, and where. When the process ends in a call, or stays in one for
 * too long, the other one (supervisor.c) reads there which call it was. Every
 * function takes NULL: then no one watches. */
#ifndef VALIDATE_WATCH_H
#define VALIDATE_WATCH_H

#include <stdatomic.h>

#include "validate/validate.h"
#include "validate/operators/call.h"

/* All work in its order, so that a later process can leave out what an earlier
 * one did. */
typedef enum watch_part {
    PART_OPEN, PART_OPERATORS, PART_CALLS, PART_CHUNKS, PART_CLOSE
} watch_part;
#define WATCH_UNIT(part, index) ((int64_t)(part) << 48 | (index))

typedef struct watch_board {
    _Atomic int64_t calls;     /* begun and ended ones: odd while one runs    */
    int64_t unit;              /* of the work in progress                     */
    op_kind op;                /* latest call; OP_KINDS: none yet             */
    char path[224];            /* its place                                   */
    int64_t out, bytes;        /* its output, as addresses; 0: not guarded    */
    int64_t beyond;            /* bytes from there to a touch next to it      */
} watch_board;

enum { WATCH_MARGIN = 1 << 20 };   /* memory around an output not to be had   */
enum { WATCH_DEATHS = 3 };         /* of an operator, until it is given up    */

typedef struct watch {
    watch_board *board;
    int events;                /* to the supervisor                           */
    int64_t resume;            /* the first unit to be done                   */
    int deaths[OP_KINDS + 1];
    bool given_up[OP_KINDS + 1];
} watch;

/* Is this unit to be done here? Then it is the one in progress. */
bool watch_enter(watch *w, watch_part part, int64_t index);
/* May this operator still be called? */
bool watch_may(const watch *w, op_kind op);

/* Around every call of the backend; OP_KINDS: it is opened or closed. */
void watch_begin(watch *w, op_kind op);
void watch_end(watch *w);
/* The place of the calls that follow: a case, "chunk.3/x0". */
void watch_place(watch *w, const char *path);
/* The output of the next call, with WATCH_MARGIN on both sides. */
void watch_output(watch *w, const void *out, int64_t bytes);

/* The table through which a backend is called, here and by runs: around each of
 * its functions it tells the board, and afterwards sets our floating-point
 * environment again. An operator that left another one is noted in `r`, NULL:
 * nowhere. `ops` stays what ctx->ops is in a function. */
typedef struct watched {
    tt_ops table;              /* first: ctx->ops of the run points here      */
    const tt_ops *ops;
    tt_report *report;
    bool noted[OP_KINDS];
} watched;
const tt_ops *watched_make(watched *t, tt_report *r, const tt_ops *ops);

#endif
