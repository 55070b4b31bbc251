/* frozen.h: the sizes that are part of a result's bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * They are the definition (README.md here, golden/README.md), and no one tunes
 * them: what may be tuned is exact/tuning.h. Two more, TT_DOT_BLOCK and
 * TT_KEY_BLOCK, are in tether/ops.h, where plug-ins find them. All backends
 * take them from here, so that comparing backends does not tell a change:
 * tests/ops/test_tuning.c has the numbers, test_worked_example.c, test_bf16.c,
 * test_tensor_core.c and make check-bits what they do. */
#ifndef TT_OPS_FROZEN_H
#define TT_OPS_FROZEN_H

#define TT_LANES 16       /* sums of a statistic, joined as a tree            */
#define BF16_GROUP 32     /* products between two additions to a result, in
                           * classes amx and vdp                              */
#define TC_KEY_BLOCK 128  /* classes of tensor cores: keys between two looks at
                           * the running maximum                              */
#define TC_SM80 {8, 24, -132}  /* products of one step, fraction bits that    */
#define TC_SM90 {16, 25, -133} /* they keep, the least exponent it goes by    */
#define TC_MAX_BLOCK 16

#endif
