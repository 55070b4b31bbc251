/* dit.h: what the modules use of tether/dit.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_DIT_DIT_H
#define TT_DIT_DIT_H

#include "cache/policy.h"
#include "core/context.h"
#include "io/io.h"
#include "tether/dit.h"

/* Wan's is 512. A config file decides about memory with it: it has an end. */
#define TT_TEXT_LEN_MAX 8192

tt_status tt_dit_random(tt_ctx *ctx, tt_dit **out, const tt_dit_config *c,
                        int64_t distinct);
const tt_weights *tt_dit_weights(const tt_dit *m); /* what it was bound from;
                                         NULL of a random one */

/* What one call of the network is asked. */
typedef struct tt_dit_call {
    int64_t h, w;          /* latent height and width, even                   */
    const double *t;       /* [nt] timesteps on the 0..1000 scale, one per
                              frame or fewer (tokens are divided evenly over
                              the entries)                                    */
    int64_t nt;
    const tt_prompt *prompt;
    tt_cache *cache;
    const tt_pass *pass;   /* which chunk, which pass; F = pass->frames       */
} tt_dit_call;

/* One call of the network: flow = net(x, t, text, cache).
 *   flow, x [F, C, h, w]
 * flow may be NULL (context pass: only K/V matter; the head is skipped, and of
 * the last block what comes after K/V, unless taps are set).
 * Taps    e, e0, tokens, block.<i>/..., head, flow below the current scope.
 * In a team every rank calls it and has the whole flow; several timesteps are
 * for one rank.
 * Errors  TT_ESHAPE  sizes that do not fit model or cache, or a prompt that was
 *                    made on other ranks
 *         TT_EFORMAT a NaN or infinity came out; names the tensor to blame */
tt_status tt_dit_forward(tt_ctx *ctx, const tt_dit *m, tt_host *flow,
                         const tt_host *x, const tt_dit_call *call);

/* ---- the parts, for module cases and for readers ------------------------ */

/* sinusoid [nt, freq_dim], e [nt, dim], e0 [nt, 6, dim]; any may be NULL. */
void tt_dit_time(tt_ctx *ctx, const tt_dit *m, double *sinusoid, tt_real *e,
                 tt_real *e0, const double *t, int64_t nt);
/* tokens [F*L, dim] from x [F, C, h, w]; of a team our rows of them. */
void tt_dit_patch(tt_ctx *ctx, const tt_dit *m, tt_real *tokens,
                  const tt_host *x, int64_t F, int64_t h, int64_t w);
/* context [rows, dim] from text [rows, text_dim]; of a team our rows. */
void tt_dit_text(tt_ctx *ctx, const tt_dit *m, tt_real *context,
                 const tt_real *text, int64_t rows);
/* Self-attention's q, k (after RMSNorm, unrotated), v [T, H, D] of block i. */
void tt_dit_qkv(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *q, tt_real *k,
                tt_real *v, const tt_real *x, int64_t T);

/* The token rows [first, first + T) of a chunk: all of them, or in a team our
 * own (tt_team_rows). No operator of a block mixes rows but self-attention,
 * whose keys and values are those of the whole chunk. */
typedef struct tt_dit_part {
    int64_t first, T;
    tt_cache *cache;
    const tt_pass *pass;
} tt_dit_part;

/* Self-attention of block i with the cache: y, x [T, dim], rows of the part.
 * Errors  TT_EINVAL  the part is not our rows of the chunk */
void tt_dit_self_attention(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *y,
                           const tt_real *x, const tt_dit_part *part);

/* What cross-attention of a block reads: k, v [rows, H, D]; in a team our part
 * of the rows (tt_team_rows). Or `packed`, as tt_attention_args has it, where
 * all of it is there, and k and v are not read. */
typedef struct tt_dit_context {
    tt_real *k, *v;
    int64_t rows;            /* of all ranks                                  */
    tt_real *packed;         /* NULL or [H, tt_ops.packed(rows, D)]         */
    int64_t same;            /* as tt_attention_args has it                   */
} tt_dit_context;

/* Cross-attention of block i: k, v [rows, H, D] from context, of a team our
 * rows; then y [T, dim] from x [T, dim]. */
void tt_dit_cross_kv(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *k,
                     tt_real *v, const tt_real *context, int64_t rows);
void tt_dit_cross_attention(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *y,
                            const tt_real *x, int64_t T,
                            const tt_dit_context *text);
/* Block i in place on x [T, dim], rows of the part; e0 [ne, 6, dim], over which
 * the rows of the chunk are divided evenly. The part begins where a time entry
 * begins, or lies within one. */
void tt_dit_block(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *x,
                  const tt_dit_part *part, const tt_real *e0, int64_t ne,
                  const tt_dit_context *text);
/* Head: y [T, 4*C] from x [T, dim], e [ne, dim]; then unpatchified latent
 * [F, C, h, w]. */
void tt_dit_head(tt_ctx *ctx, const tt_dit *m, tt_real *y, const tt_real *x,
                 int64_t T, const tt_real *e, int64_t ne);
void tt_dit_unpatch(tt_host *latent, const tt_host *y, int64_t F, int64_t C,
                    int64_t h, int64_t w);

#endif
