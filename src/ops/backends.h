/* backends.h: the tables built into this program.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OPS_BACKENDS_H
#define TT_OPS_BACKENDS_H

#include "tether/backend.h"

extern const tt_ops tt_ops_golden; /* the definitions, plain loops            */
#ifndef TT_REAL_DOUBLE
extern const tt_ops tt_ops_exact;  /* the same bits, fast                    */
extern const tt_ops tt_ops_golden_bf16, tt_ops_exact_bf16; /* the bf16 class */
#endif
extern const tt_ops tt_ops_blas;   /* OpenBLAS, judged by tolerance           */

#endif
