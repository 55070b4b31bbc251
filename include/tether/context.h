/* context.h: what travels with every call instead of global state.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One context serves one thread of control (operators may run many threads
 * inside). It carries the recorded failure, the operator table, the thread
 * count, the scratch arena, the tap and the profile. */
#ifndef TETHER_CONTEXT_H
#define TETHER_CONTEXT_H

#include "tether/api.h"
#include "tether/arena.h"
#include "tether/status.h"
#include "tether/tensor.h"

TT_API_BEGIN

struct tt_ops;
struct tt_team;
typedef struct tt_device tt_device;

/* Called at every named point of the model while a tap is set.
 *   path   hierarchical name, "chunk.3/step.1/block.5/self_attn.q"
 *   data   packed values of type `dtype`, shape dim[0..rank-1]
 * The data is only valid during the call. */
typedef void (*tt_tap_fn)(void *user, const char *path, tt_dtype dtype,
                          int rank, const int64_t *dim, const void *data);

/* Called at the same points after the tap, and may overwrite `data`: a tap
 * stands where the value is used next, in memory of the model. Types are F32 or
 * F64, and U8 for selections. */
typedef void (*tt_inject_fn)(void *user, const char *path, tt_dtype dtype,
                             int rank, const int64_t *dim, void *data);

/* Seconds and calls per operator, for --profile. */
typedef struct tt_profile_row {
    const char *name;
    double seconds;
    double flops;
    int64_t calls;
} tt_profile_row;
#define TT_PROFILE_ROWS 48

typedef struct tt_ctx {
    tt_status status;          /* first unrecovered failure, sticky           */
    char message[1024];        /* its sentence                                */

    const struct tt_ops *ops;  /* operator table (backend.h)                  */
    const tt_device *device;   /* whose memory holds values; NULL: the host's */
    struct tt_team *team;      /* the ranks of a run (team.h); NULL: alone    */
    int nthreads;              /* threads an operator may use, >= 1; in a
                                  process forked from one that has made a
                                  context it uses one                         */
    int matrix_unit;           /* 0 not asked yet, 1 trusted, -1 not used     */
    tt_arena scratch;

    tt_tap_fn tap;             /* NULL: off                                   */
    void *tap_user;
    bool tap_cache;            /* the tap also wants what is in the KV cache at
                                  the end of each chunk (large)               */
    bool by_class;             /* tt_class_begin: convolutions sum by class   */
    tt_inject_fn inject;       /* NULL: off                                   */
    void *inject_user;
    char path[256];            /* current scope, without trailing '/'         */

    bool profiling;
    tt_profile_row profile[TT_PROFILE_ROWS];

    bool overwrite;            /* files of others under an output's name are
                                  replaced, also those that appear meanwhile  */
    bool finishing;            /* stop later: what is begun must be completed */
    const volatile int *interrupt; /* non-NULL and non-zero: stop soon        */
    void (*warn)(void *user, const char *sentence); /* NULL: to stderr        */
    void *warn_user;
} tt_ctx;

/* A program and its library agree about tt_real, or they do not link: every
 * program begins with this function, and it is called tt_ctx_init_f32 in a
 * float library and tt_ctx_init_f64 in a double one. */
#ifdef TT_REAL_DOUBLE
#define tt_ctx_init tt_ctx_init_f64
#else
#define tt_ctx_init tt_ctx_init_f32
#endif

/* Default context: the first table of the build (tt_ops_default), as many
 * threads as tt_cores_find says (threads.h), no tap. Also checks that the
 * arithmetic is IEEE (rounding mode, no flush to zero, no contraction):
 * TT_EUNSUPPORTED names what is wrong. */
tt_status tt_ctx_init(tt_ctx *ctx);
void tt_ctx_free(tt_ctx *ctx);

/* One sentence for the user that does not stop anything. */
void tt_warn(tt_ctx *ctx, const char *fmt, ...) TT_PRINTF(2, 3);

TT_API_END

#endif
