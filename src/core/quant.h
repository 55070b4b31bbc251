/* quant.h: GGUF's quantised blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CORE_QUANT_H
#define TT_CORE_QUANT_H

#include "core/tensor.h"

/* dst [nblocks * tt_dtype_block(t)] = the values of consecutive blocks. */
void quant_widen(float *dst, const unsigned char *src, tt_dtype t,
                 int64_t nblocks);

#endif
