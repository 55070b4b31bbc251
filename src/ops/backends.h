/* backends.h: the tables built into this program.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OPS_BACKENDS_H
#define TT_OPS_BACKENDS_H

#include "ops/backend.h"

/* The definitions, plain loops, and the same bits, fast: one table per class.
 * A double build has golden's of class f32 alone. */
extern const tt_ops tt_ops_golden_of[TT_CLASS_COUNT];
#define tt_ops_golden tt_ops_golden_of[TT_CLASS_F32]
#ifndef TT_REAL_DOUBLE
extern const tt_ops tt_ops_exact_of[TT_CLASS_COUNT];
#define tt_ops_exact tt_ops_exact_of[TT_CLASS_F32]
#endif
extern const tt_ops tt_ops_blas; /* OpenBLAS, checked by tolerance            */
#ifdef TT_CUDA
/* The bits of golden on a GPU, in the classes that GPUs have. */
extern const tt_ops tt_ops_cuda_of[TT_CLASS_COUNT];
#define tt_ops_cuda tt_ops_cuda_of[TT_CLASS_F32]
#endif

#endif
