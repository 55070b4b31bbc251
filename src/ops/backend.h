/* backend.h: what the modules use of tether/backend.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OPS_BACKEND_H
#define TT_OPS_BACKEND_H

#include "ops/ops.h"
#include "tether/backend.h"
#include "tether/classes.h"

/* Is what the environment variable TT_CPU says, when it is set, an instruction
 * level of this CPU? The backend "exact" goes no higher than that level.
 * Errors   TT_EINVAL names the levels there are. */
tt_status tt_level_check(tt_ctx *ctx);

/* Can this table run here? Records what its `open` says. */
tt_status tt_ops_open(tt_ctx *ctx, const tt_ops *ops);
void tt_ops_close(const tt_ops *ops);

/* What the operators of `ctx` call; NULL when they are all our own. */
const char *tt_ops_library(tt_ctx *ctx, char *text, size_t size);

/* A part of a model with a class of its own (the VAE), in which convolutions
 * sum as well, stands between these, one at a time:
 *     const tt_ops *before = tt_class_begin(ctx, cls);
 *     ...
 *     tt_class_end(ctx, before);
 * A backend that has no table of that class fails there (TT_EUNSUPPORTED). */
const tt_ops *tt_class_begin(tt_ctx *ctx, tt_class cls);
void tt_class_end(tt_ctx *ctx, const tt_ops *before);

/* i-th class, f32 first, NULL past the end. */
const tt_class_info *tt_class_at(int i);
const char *tt_class_saved(tt_class cls);

/* The name of the bits it computes, in buf: that of its class, where golden and
 * exact agree, "f32"; of any other backend with its name, "f32 of blas". */
const char *tt_bits_name(const tt_ops *ops, char *buf, size_t n);

/* What may be expected of two runs of this backend with the same inputs, in
 * one sentence. */
const char *tt_determinism(const tt_ops *ops);

#endif
