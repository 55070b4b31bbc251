/* blank.h: weights of known sizes without values, for plans.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_BLANK_H
#define TT_IO_BLANK_H

#include "io/weights.h"

/* A tensor that tells a size. A name with %d stands for `repeat` of them, from
 * 0 on; repeat 0: one. */
typedef struct blank_size {
    const char *name;
    int repeat, rank;
    int64_t dim[TT_MAX_RANK];
} blank_size;

/* Weights of type `dtype` with these n tensors; any other one is there as soon
 * as it is bound, with the shape that is asked for. All values are 0, in
 * addresses of `bytes` that take no memory.
 *   path    what messages call it
 * Errors  TT_ENOMEM  no such addresses are left */
tt_status weights_blank(tt_ctx *ctx, tt_weights **out, const char *path,
                        tt_dtype dtype, int64_t bytes, const blank_size *size,
                        int n);

/* One more of them; NULL: recorded. */
weight *blank_add(tt_weights *w, const char *name, int rank,
                  const int64_t *dim);

#endif
