/* tensor_core.h: what the classes sm80 and sm90 share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OPS_GOLDEN_TENSOR_CORE_H
#define TT_OPS_GOLDEN_TENSOR_CORE_H

#include "ops/golden/golden.h"
#include "ops/tensor_core.h"

#ifndef TT_REAL_DOUBLE

/* Query i of one head into o [D]; acc [D] is scratch. */
void golden_tensor_core_attend(const golden_head *r, int64_t i, float *o,
                               float *acc);

#endif
#endif
