/* machine.h: what this machine can do at most, for benchmarks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The caller times these with tt_now; nothing else in the library uses them. */
#ifndef TT_OPS_MACHINE_H
#define TT_OPS_MACHINE_H

#include "core/context.h"

/* Independent fused multiply-adds in registers, on ctx->nthreads threads at
 * once, in the widest vectors the exact backend uses (TT_CPU respected), n
 * rounds each. Returns the number of floating-point operations done. */
double tt_machine_fma(tt_ctx *ctx, int64_t n);

/* The same of VDPBF16PS; 0 where class vdp does without it. */
double tt_machine_vdp(tt_ctx *ctx, int64_t n);

/* The same of TDPBF16PS, n / 8 rounds; 0 where class amx does without it. */
double tt_machine_amx(tt_ctx *ctx, int64_t n);

typedef enum tt_stream {
    TT_STREAM_SCALE,  /* x *= 1:      one array read and written              */
    TT_STREAM_ADD,    /* x += y:      two read, one of them written           */
    TT_STREAM_COPY,   /* y = x:       one read, another written               */
    TT_STREAM_READ    /* sum of x:    one read                                */
} tt_stream;

/* The plainest loop with this traffic over n values, on ctx->nthreads threads.
 * READ does not touch y. */
void tt_machine_stream(tt_ctx *ctx, tt_stream kind, tt_host *x, tt_host *y,
                       int64_t n);

#endif
