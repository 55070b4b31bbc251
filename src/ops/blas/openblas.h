/* openblas.h: OpenBLAS, loaded when someone asks for it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The program is not linked with OpenBLAS: the library starts worker threads
 * as it is loaded, which costs every start and never ends under a tight limit
 * of memory. */
#ifndef TT_OPS_OPENBLAS_H
#define TT_OPS_OPENBLAS_H

#include "core/context.h"

/* Values of the CBLAS interface. */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef struct openblas {
    /* c [m, n] = alpha op(a) op(b) + beta c: cblas_sgemm, cblas_dgemm */
    void (*gemm)(int order, int trans_a, int trans_b, int m, int n, int k,
                 tt_real alpha, const tt_real *a, int lda, const tt_real *b,
                 int ldb, tt_real beta, tt_real *c, int ldc);
    void (*set_num_threads)(int n);
    char *(*get_config)(void);   /* "OpenBLAS 0.3.21 ... USE_THREAD ..."      */
    char *(*get_corename)(void); /* the CPU its kernels were chosen for       */
} openblas;

/* The library, loaded at the first call and kept for the life of the process.
 * Errors   NULL and TT_EUNSUPPORTED with what to install, or when a failure is
 *          already recorded.
 * Threads  may be called from several. */
const openblas *openblas_get(tt_ctx *ctx);

#endif
