/* model.h: the transformer's parameters, as bound from a checkpoint.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The struct mirrors the checkpoint's names: m->block[i].self.q.w is
 * "blocks.i.self_attn.q.weight". Matrices stay in their stored type inside the
 * mapped file and are widened by the operator that uses them; vectors are
 * widened once, into m->arena. Shapes are [rows, columns] of W in y = x W^T. */
#ifndef TT_DIT_MODEL_H
#define TT_DIT_MODEL_H

#include "core/device.h"
#include "dit/dit.h"
#include "ops/ops.h"
#include "team/team.h"

/* y = x w^T + b */
typedef struct dit_linear {
    tt_tensor w;                    /* [out, in], stored type                 */
    tt_real *b;                     /* [out]                                  */
} dit_linear;

typedef struct dit_attention {
    dit_linear q, k, v, o;          /* [dim, dim] each                        */
    tt_real *norm_q, *norm_k;       /* [dim]: RMSNorm over all heads together */
} dit_attention;

typedef struct dit_block {
    tt_real *modulation;            /* [6, dim]                               */
    dit_attention self, cross;
    tt_real *norm3_w, *norm3_b;     /* [dim]                                  */
    dit_linear ffn0, ffn2;          /* [ffn, dim], [dim, ffn]                 */
} dit_block;

struct tt_dit {
    tt_dit_config cfg;
    dit_linear patch;               /* [dim, C*1*2*2]                         */
    dit_linear text0, text2;        /* [dim, text_dim], [dim, dim]            */
    dit_linear time0, time2;        /* [dim, freq_dim], [dim, dim]            */
    dit_linear time_proj;           /* [6*dim, dim]                           */
    dit_block *block;               /* [layers]                               */
    tt_real *head_modulation;       /* [2, dim]                               */
    dit_linear head;                /* [4*C, dim]                             */

    tt_arena arena;                 /* holds this struct and the vectors      */
    tt_weights *w;
};

struct tt_prompt {
    int64_t rows;
    tt_range own;                   /* of them: what a rank holds             */
    int64_t same;                   /* those from this one on are equal; or 0 */
    int64_t layers, dim;            /* of the model it was made for           */
    tt_real *context;               /* [own rows, dim]                        */
    tt_real **k, **v;               /* [layers] of [own rows, H, D]; or, where
                                       a rank alone has operators that lay them
                                       out for attention, NULL and            */
    tt_real **packed;              /* [layers] of [H, tt_ops.packed], of ops */
    const tt_dit *of;               /* made it, ...                           */
    const tt_ops *ops;              /* ... with these, ...                    */
    bool unit;                      /* ... for the matrix unit or not         */
    tt_arena arena;
};

/* y = x l.w^T + l.b for n rows. */
static inline void dit_apply(tt_ctx *ctx, tt_real *y, const tt_real *x,
                             int64_t n, const dit_linear *l)
{
    tt_linear(ctx, y, x, n, &l->w, l->b);
}

/* y = gelu_tanh(x l.w^T + l.b) for n rows. */
static inline void dit_apply_gelu(tt_ctx *ctx, tt_real *y, const tt_real *x,
                                  int64_t n, const dit_linear *l)
{
    tt_linear_gelu(ctx, y, x, n, &l->w, l->b);
}

/* The last layer of a branch: y = x l.w^T + l.b for n rows, which taps see as
 * `name`; then, unless `to` is NULL, what it says: to->x += y gate, or += y
 * without gate. With `to`, y is only room where no one looks. */
void dit_finish(tt_ctx *ctx, tt_real *y, const tt_gate_add_args *to,
                const tt_real *x, int64_t n, const dit_linear *l,
                const char *name);

/* The attention as well, where the backend has all of it in one and no one
 * looks; else false, and nothing is done. */
bool dit_attend_and_finish(tt_ctx *ctx, tt_real *y, const tt_gate_add_args *to,
                           const tt_attention_args *a, const dit_linear *l);

/* Rows of a branch: x, or where `norm` is not NULL what that will put there for
 * the first products, after which x holds nothing. */
typedef struct dit_rows {
    const tt_real *x;
    const tt_normed *norm;
} dit_rows;

/* tt_dit_self_attention and tt_dit_cross_attention that begin and end so. */
void dit_self_attention(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *y,
                        const tt_gate_add_args *to, dit_rows x,
                        const tt_dit_part *p);
void dit_cross_attention(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *y,
                         const tt_gate_add_args *to, dit_rows x,
                         int64_t T, const tt_dit_context *text);

/* tt_dit_cross_kv that no one taps; and what attention lays out of its k and v
 * [rows, H, D]. */
void dit_cross_kv(tt_ctx *ctx, const tt_dit *m, int64_t i, tt_real *k,
                  tt_real *v, const tt_real *context, int64_t rows);
void dit_cross_lay(tt_ctx *ctx, const tt_dit *m, tt_real *packed,
                   const tt_real *k, const tt_real *v, int64_t rows);
/* What block i reads of a prompt. Operators other than those that packed it
 * read k and v, which those make again, in ctx->scratch. */
tt_dit_context dit_context_of(tt_ctx *ctx, const tt_prompt *p, int64_t i);

/* m[g] = modulation + e[g] for every time entry g; lives in ctx->scratch.
 *   result [ne, rows, dim]   modulation [rows, dim]
 *   e      [ne, rows, dim], or [ne, dim] when `shared` by all rows */
tt_real *dit_modulation(tt_ctx *ctx, const tt_real *modulation,
                        const tt_real *e, int64_t ne, int64_t rows,
                        int64_t dim, bool shared);

/* What a pass leaves of block i: the keys and values of x [T, dim] enter
 * the cache. dit_store takes the input of self-attention for x. */
void dit_block_store(tt_ctx *ctx, const tt_dit *m, int64_t i, const tt_real *x,
                     const tt_dit_part *part, const tt_real *e0, int64_t ne);
void dit_store(tt_ctx *ctx, const tt_dit *m, int64_t i, dit_rows x,
               const tt_dit_part *part);

/* Token rows of the chunk that a part belongs to. */
static inline int64_t dit_chunk_rows(const tt_dit_part *p)
{
    return p->pass->frames * tt_cache_geometry(p->cache)->L;
}

/* Row r of [rows, dim]; NULL stays NULL, so that a failed allocation is not
 * computed with. */
static inline const tt_real *dit_row(const tt_real *m, int64_t r, int64_t dim)
{
    return m ? m + r * dim : NULL;
}

#endif
