/* table.c: the cuda backend: golden's bits on a GPU.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ops/cuda/cuda.h"

#define ENTRY(op, OP) .op = cuda_##op,

const tt_ops tt_ops_cuda = {
    .abi = TT_ABI,
    .name = "cuda",
    .summary = "the definitions on a GPU: the same bits (not run on hardware)",
    .open = cuda_open,
    .library = cuda_library,
    TT_OPS(ENTRY)
};
