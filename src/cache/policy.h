/* policy.h: what the modules use of tether/policy.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CACHE_POLICY_H
#define TT_CACHE_POLICY_H

#include "core/context.h"
#include "ops/ops.h"
#include "tether/policy.h"

/* ---- helpers for writing policies --------------------------------------- */

/* Values that a slot takes of keys, and of values. */
static inline int64_t cache_row(const tt_geometry *g)
{
    return g->bf16 ? g->H * g->D / 2 : g->H * g->D;
}

/* Could a run have left the policy's state that is in this layer? Asks the
 * class: state_flags, then `valid`. */
bool tt_layer_valid(const tt_layer *y);

/* ---- the built-in policies ---------------------------------------------- */

/* The class of these options: opt->cls, else the built-in one of that name,
 * NULL when there is none. */
const tt_policy_class *tt_policy_class_of(const tt_policy_options *opt);

/* A knob of a class by name, NULL when it has none of that name. */
const tt_knob *tt_policy_knob(const tt_policy_class *cls, const char *name);

/* Every knob of a class at its default. */
tt_policy_options tt_policy_start(const tt_policy_class *cls);

/* Set one knob from text: "0.6", "21", "frame", and for switches "0" or "1"
 * (NULL and "" mean 1).
 * Errors  TT_EINVAL: no such knob (naming those there are, and the policies
 *         that have it), not a value of its type, beyond its limits. */
tt_status tt_policy_set(tt_ctx *ctx, tt_policy_options *opt, const char *knob,
                        const char *text);

/* "tether", "tether:tau=0.6:pool=frame", "tether:preset=paper": the policy,
 * its preset, then every knob in order. Also reads the settings of a preset,
 * which have no policy before them, into options that have one.
 * Errors  as tt_policy_set; an unknown policy or preset names those there
 *         are. *opt is then unspecified. */
tt_status tt_policy_parse(tt_ctx *ctx, tt_policy_options *opt,
                          const char *text);
/* The value of a knob as a number, NAN when there is none of that name; and
 * the way back, asserting that there is. */
double tt_policy_get(const tt_policy_options *opt, const char *knob);
void tt_policy_put(tt_policy_options *opt, const char *knob, double value);
/* The same as text, "frame" for a word; returns the length as snprintf. */
int tt_policy_show(char *buf, size_t n, const tt_policy_options *opt,
                   const tt_knob *knob);

/* Are the options possible for this geometry? Knobs within their limits, then
 * the class's own rules, which may replace -1 by what it means. */
tt_status tt_policy_check(tt_ctx *ctx, tt_policy_options *opt,
                          const tt_geometry *geo);

/* Change *opt to a preset of its policy; TT_EINVAL names those there are. */
tt_status tt_policy_apply_preset(tt_ctx *ctx, tt_policy_options *opt,
                                 const char *name);

/* The policy and every knob as "name=value" lines, the way saved states and
 * records compare runs. Returns the length without the final 0, as snprintf
 * does. */
int tt_policy_describe(char *buf, size_t n, const tt_policy_options *opt);

/* ---- a cache of all layers ---------------------------------------------- */

/* Allocate and reset. `cls` NULL: that of the options; pass your own class to
 * run it.
 * Warns   when frame positions pass the 1024 rows of the official tables (the
 *         angles are computed all the same).
 * Errors  TT_EINVAL: impossible geometry or options, naming the broken rule;
 *         TT_ENOMEM: more bytes than the machine has, said before anything is
 *         allocated. *out is then NULL. */
tt_status tt_cache_open(tt_ctx *ctx, tt_cache **out, const tt_policy_class *cls,
                        const tt_policy_options *opt, const tt_geometry *geo);
/* The same in files of `folder`, which have no name and are gone with the cache
 * or the process. The system keeps of them in memory what it has room for.
 * NULL: in memory. Borrowed until close. No bit depends on it.
 * Errors  also TT_EIO: no such folder, or its disk is full; TT_EUNSUPPORTED:
 *         values are in memory of a device */
tt_status tt_cache_open_in(tt_ctx *ctx, tt_cache **out,
                           const tt_policy_class *cls,
                           const tt_policy_options *opt, const tt_geometry *geo,
                           const char *folder);
/* From here on keep the rotated keys of all layers from pass to pass of a
 * chunk: half as much memory again. Or what attention lays out of keys and
 * values, where operators of `ctx` do that (tt_ops.packed) and a window is
 * longer than TT_KEY_BLOCK: as much memory again in class f32. No bit depends
 * on it.
 * Errors  TT_ENOMEM: the cache goes on without, once the failure is cleared */
tt_status tt_cache_keep_keys(tt_ctx *ctx, tt_cache *c);
void tt_cache_close(tt_cache *c);
/* A new video: zeroed k, v, metadata and state. */
void tt_cache_reset(tt_ctx *ctx, tt_cache *c);
/* Bytes a cache would take; opt as checked. INT64_MAX when it does not fit. */
int64_t tt_cache_bytes(const tt_policy_class *cls, const tt_policy_options *opt,
                       const tt_geometry *geo);
const tt_policy_class *tt_cache_class(const tt_cache *c);
const tt_policy_options *tt_cache_options(const tt_cache *c);
const tt_geometry *tt_cache_geometry(const tt_cache *c);
/* To look at; NULL: no such layer. */
const tt_layer *tt_cache_look(const tt_cache *c, int64_t layer);
/* To write to between two passes: keys kept of the layer are rotated anew. Who
 * writes later again asks for it again. */
tt_layer *tt_cache_layer(tt_cache *c, int64_t layer);
const tt_rope_table *tt_cache_rope(const tt_cache *c);

/* begin, write and commit, as far as they belong to this pass. x stays what it
 * is until tt_cache_done. */
void tt_cache_write(tt_ctx *ctx, tt_cache *c, int64_t layer, const tt_pass *p,
                    const tt_qkv *x);

/* What attention is given of a view w, by the table that ctx->ops was:
 *     .k = w.k, .v = w.v, .N = w.n, .H = H, .D = D, .kv_stride = H * D,
 *     .packed = w.packed, .n_packed = w.n_packed, .bf16 = w.bf16 */
void tt_cache_read(tt_ctx *ctx, tt_cache *c, int64_t layer, const tt_pass *p,
                   tt_kv_view *out, tt_real *q_out, const tt_real *q_in);
void tt_cache_done(tt_ctx *ctx, tt_cache *c, int64_t layer, const tt_pass *p);

/* ---- what happened (--trace-cache) -------------------------------------- */

void tt_cache_on_event(tt_cache *c, tt_event_fn fn, void *user);

/* What a layer shows between passes, as an event of the class's kind `shown`.
 * The values are the layer's own: they change with it. False, and an event
 * without fields, when the policy shows nothing. */
bool tt_cache_show(tt_cache *c, int64_t layer, tt_event *out);

/* The values of a field by name and their number (n may be NULL). NULL, and 0,
 * when the event has no field of that name and type. */
const void *tt_event_values(const tt_event *e, const char *field,
                            tt_dtype type, int64_t *n);
/* The first value of a field of whole numbers (I64 or U8), 0 when there is
 * none. */
int64_t tt_event_int(const tt_event *e, const char *field);

#endif
