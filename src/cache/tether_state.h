/* tether_state.h: what a layer of TetherCache remembers besides its tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   no pointers in it, because it is saved as plain bytes: arrays follow
 *         the struct, and the functions below find them. */
#ifndef TT_CACHE_TETHER_STATE_H
#define TT_CACHE_TETHER_STATE_H

#include "cache/classes.h"

/* After it follow
 *   int64_t members[M]            global frame of every memory slot, or -1
 *   int64_t pend_src[chunk]       src_frame of every pending frame */
typedef struct tether_state {
    int64_t filled;              /* the warm-up is over                       */
    int64_t occupancy;           /* memory slots in use                       */
    int64_t pending;             /* evicted frames waiting for the clean pass */
    int64_t pending_first;       /* global index the first of them goes by    */
    int64_t counter[3];          /* frames admitted, rejected, edited         */
} tether_state;
enum { TETHER_ADMITTED, TETHER_REJECTED, TETHER_EDITED };

/* Values of a token, and of a frame, in k or v. */
int64_t tether_width(const tt_layer *y);
int64_t tether_frame(const tt_layer *y);

tether_state *tether_of(const tt_layer *y);
int64_t *tether_members(const tt_layer *y);
int64_t *tether_pend_src(const tt_layer *y);
/* Keys and values of a pending frame: in the slots of the chunk, but for values
 * between tether_set_aside and tether_put_back, which have those slots free. */
tt_real *tether_pend_k(const tt_layer *y, int64_t frame);
tt_real *tether_pend_v(const tt_layer *y, int64_t frame);
void tether_set_aside(tt_ctx *ctx, tt_layer *y);
void tether_put_back(tt_ctx *ctx, tt_layer *y);
/* Frames go from frame slot `slot` on into the slots of the chunk, as many as
 * are pending, and all after them to where they were. */
void tether_turn(tt_ctx *ctx, tt_layer *y, int64_t slot);

/* The class's functions of these names (policy.h). */
size_t tether_state_size(const tt_policy_options *o, const tt_geometry *geo);
size_t tether_shared_size(const tt_policy_options *o, const tt_geometry *geo);
void tether_reset(tt_ctx *ctx, tt_layer *y);
bool tether_valid(const tt_layer *y);
extern const tt_event_kind tether_shown;
void tether_show(const tt_layer *y, tt_event *out);
/* In tether_options.c. */
enum { TETHER_ALPHA, TETHER_TAU, TETHER_TEMPERATURE, TETHER_POOL };
enum { TETHER_BY_CHUNK, TETHER_BY_FRAME };
extern const tt_knob tether_knobs[];
extern const tt_policy_preset tether_presets[];
tt_status tether_check(tt_ctx *ctx, tt_policy_options *o,
                       const tt_geometry *geo);

#endif
