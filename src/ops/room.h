/* room.h: the scratch that an operator takes, asked without calling it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The answer comes from the functions by which the operators size their
 * scratch. Values of tt_real beside the arguments; 0 where a table does not
 * say, which is so of plug-ins, libraries and the slow definitions. */
#ifndef TT_OPS_ROOM_H
#define TT_OPS_ROOM_H

#include "tether/backend.h"

/* `ops` is the table that would be called; of ctx the threads count. */
int64_t ops_linear_room(tt_ctx *ctx, const tt_ops *ops,
                        const tt_linear_args *a);
int64_t ops_attention_room(tt_ctx *ctx, const tt_ops *ops,
                           const tt_attention_args *a);
int64_t ops_conv_room(tt_ctx *ctx, const tt_ops *ops, const tt_conv_args *a);

#endif
