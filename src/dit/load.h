/* load.h: shared by load.c (sizes) and bind.c (tensors).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_DIT_LOAD_H
#define TT_DIT_LOAD_H

#include "dit/model.h"
#include "io/json.h"

/* Bind every parameter of `m` (cfg, w and arena set) by Wan's name, strictly:
 * TT_ESHAPE names what is missing, misshapen or unexpected. */
tt_status dit_bind(tt_ctx *ctx, tt_dit *m);

/* The config.json next to the file `weights`, or in the folder of that name:
 * *root is NULL where there is none that speaks of a transformer. Its path goes
 * into buf. The values lie in `a`.
 * Errors  those of tt_json_file */
tt_status dit_config_adjacent(tt_ctx *ctx, tt_arena *a, const tt_json **root,
                              char *buf, size_t n, const char *weights);

#endif
