/* context.h: what the modules use of tether/context.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CORE_CONTEXT_H
#define TT_CORE_CONTEXT_H

#include "core/tensor.h"
#include "tether/arena.h"
#include "tether/context.h"
#include "tether/status.h"

/* TT_EINTR (recorded) when the user asked to stop, else TT_OK. */
tt_status tt_check_interrupt(tt_ctx *ctx);

/* Enter the scope "<current>/<fmt>" and return where to cut it again:
 *     size_t s = tt_scope(ctx, "block.%d", i); ... tt_scope_end(ctx, s);  */
size_t tt_scope(tt_ctx *ctx, const char *fmt, ...) TT_PRINTF(2, 3);
void tt_scope_end(tt_ctx *ctx, size_t mark);

/* Is a name among "GLOB,GLOB..."? NULL: all are. */
bool tt_name_chosen(const char *globs, const char *name);

/* Show a tensor to the tap under "<scope>/<name>", then let ctx->inject change
 * it; a single test when both are off. */
void tt_tap_emit(tt_ctx *ctx, const char *name, tt_dtype dtype, void *data,
                 int rank, const int64_t *dim);
/* Only show it: what is not used again under this name. */
void tt_tap_show(tt_ctx *ctx, const char *name, tt_dtype dtype,
                 const void *data, int rank, const int64_t *dim);
/* Is anyone listening? */
#define TT_TAPPED(ctx) (((ctx)->tap || (ctx)->inject) && !(ctx)->status)
/* TT_TAP shows values (device.h), TT_TAP_HOST numbers of the host. */
void tt_tap_values(tt_ctx *ctx, const char *name, tt_real *x, int rank,
                   const int64_t *dim);
#define TT_TAP(ctx, name, x, ...)                                              \
    do {                                                                       \
        if (TT_TAPPED(ctx)) {                                                  \
            const int64_t tt_dim_[] = {__VA_ARGS__};                           \
            tt_tap_values((ctx), (name), (x),                                  \
                          (int)(sizeof tt_dim_ / sizeof tt_dim_[0]), tt_dim_); \
        }                                                                      \
    } while (0)
#define TT_TAP_HOST(ctx, name, data, ...)                                      \
    do {                                                                       \
        if (TT_TAPPED(ctx)) {                                                  \
            const int64_t tt_dim_[] = {__VA_ARGS__};                           \
            tt_tap_emit((ctx), (name),                                         \
                        sizeof(tt_real) == 8 ? TT_F64 : TT_F32, (data),        \
                        (int)(sizeof tt_dim_ / sizeof tt_dim_[0]), tt_dim_);   \
        }                                                                      \
    } while (0)

/* For ctx->warn, where warnings are said elsewhere or not at all. */
void tt_ignore_warning(void *user, const char *sentence);

/* Wall clock in seconds; differences only. */
double tt_now(void);
/* Largest resident size of this process so far, bytes; 0 when unknown. */
int64_t tt_peak_memory(void);

/* Add to the profile row `name` (a string literal). */
void tt_profile_add(tt_ctx *ctx, const char *name, double seconds,
                    double flops);

#endif
