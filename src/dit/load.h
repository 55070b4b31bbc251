/* load.h: shared by load.c (sizes) and bind.c (tensors).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_DIT_LOAD_H
#define TT_DIT_LOAD_H

#include "dit/model.h"

/* Bind every parameter of `m` (cfg, w and arena set) by Wan's name, strictly:
 * TT_ESHAPE names what is missing, misshapen or unexpected. */
tt_status dit_bind(tt_ctx *ctx, tt_dit *m);

#endif
