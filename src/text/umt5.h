/* umt5.h: the encoder's weights, shared by umt5_load.c and umt5.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TEXT_UMT5_H
#define TT_TEXT_UMT5_H

#include "text/text.h"

/* C = dim, A = dim_attn, F = dim_ffn. Matrices are views of the file. */
typedef struct umt5_block {
    tt_real *norm1, *norm2;  /* [C]                                          */
    tt_real *bias;           /* [buckets, H], this block's own               */
    tt_tensor q, k, v;       /* [A, C]                                       */
    tt_tensor o;             /* [C, A]                                       */
    tt_tensor gate, fc1;     /* [F, C]; gate is the activated branch         */
    tt_tensor fc2;           /* [C, F]                                       */
} umt5_block;

struct tt_umt5 {
    tt_umt5_config cfg;
    tt_weights *weights;     /* owned                                        */
    tt_arena arena;          /* owns this struct and the small parameters    */
    tt_tensor embedding;     /* [vocab, C]                                   */
    umt5_block *block;       /* [layers]                                     */
    tt_real *norm;           /* [C]                                          */
    tt_umt5_progress_fn progress; /* NULL: no one asks                       */
    void *progress_user;
};

#endif
