/* lora_merge.c: see lora.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   the bits do not depend on the CPU, on threads or on how columns are
 *         cut: every value is a sum of its own, in the order of lora.h. */
#include <string.h>

#include "core/fma.h"
#include "core/parallel.h"
#include "io/file.h"
#include "io/lora.h"
#include "core/fpenv.h"
#include "tether/ops.h"

enum { TILE = 64 };

/* Columns [0, m) of a row: W += factor * up down. */
#define MERGE_TILE(fma, m)                                                     \
    do {                                                                       \
        float sum[TILE] = {0};                                                 \
        for (int64_t k0 = 0; k0 < r; k0 += TT_DOT_BLOCK) {                     \
            const int64_t k1 = k0 + TT_DOT_BLOCK < r ? k0 + TT_DOT_BLOCK : r;  \
            float s[TILE] = {0};                                               \
            for (int64_t k = k0; k < k1; k++) {                                \
                const float *d = down + k * n + c, u = up[k];                  \
                for (int64_t j = 0; j < (m); j++) s[j] = fma(u, d[j], s[j]);   \
            }                                                                  \
            for (int64_t j = 0; j < (m); j++)                                  \
                sum[j] = k0 == 0 ? s[j] : sum[j] + s[j];                       \
        }                                                                      \
        for (int64_t j = 0; j < (m); j++)                                      \
            row[c + j] = fma(factor, sum[j], row[c + j]);                      \
    } while (0)

#define MERGE_ROW(fma)                                                         \
    do {                                                                       \
        int64_t c = 0;                                                         \
        for (; c + TILE <= n; c += TILE) MERGE_TILE(fma, TILE);                \
        if (c < n) MERGE_TILE(fma, n - c);                                     \
    } while (0)

void lora_row_plain(float *row, const float *up, const float *down,
                    float factor, int64_t r, int64_t n)
{
    MERGE_ROW(fma_f32);
}

#if defined(__x86_64__) && !defined(FMA_INSTRUCTION)
static __attribute__((target("avx2,fma"))) void
row_by_instructions(float *row, const float *up, const float *down,
                    float factor, int64_t r, int64_t n)
{
    MERGE_ROW(__builtin_fmaf);
}

lora_row *lora_row_here(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
             ? row_by_instructions : lora_row_plain;
}
#else
lora_row *lora_row_here(void)
{
    return lora_row_plain;
}
#endif

/* All values of a tensor, widened, into v. */
static tt_status widen_all(tt_ctx *ctx, float *v, const tt_tensor *t)
{
    tt_tensor packed = *t;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    TT_TRY(ctx->status);
    if (!tt_tensor_packed(t)) {
        void *data = tt_alloc(ctx, &ctx->scratch, tt_tensor_count(t),
                              tt_dtype_size(t->dtype), "a tensor");
        if (data) io_gather(data, t);
        packed = tt_tensor_like(t, data, t->rank, t->dim);
    }
    if (!ctx->status) tt_widen_at_f32(v, &packed, 0, tt_tensor_count(t));
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

/* The same in scratch. */
static float *lora_merge_values(tt_ctx *ctx, const tt_tensor *t)
{
    float *v = tt_alloc(ctx, &ctx->scratch, tt_tensor_count(t), sizeof *v,
                        "a LoRA");
    return v && !widen_all(ctx, v, t) ? v : NULL;
}

static tt_status lora_merge_add_product(tt_ctx *ctx, float *v, int64_t rows,
                                        int64_t n, const lora_patch *p)
{
    lora_row *const add = lora_row_here();
    const float *up = lora_merge_values(ctx, &p->up->t),
        *down = lora_merge_values(ctx, &p->down->t);
    TT_TRY(ctx->status);
    TT_PARALLEL_FOR_WORK(ctx, rows * n / 32 * p->rank)
    for (int64_t i = 0; i < rows; i++)
        add(v + i * n, up + i * p->rank, down, p->factor, p->rank, n);
    return TT_OK;
}

static tt_status lora_merge_add_difference(tt_ctx *ctx, float *v, int64_t n,
                                           const lora_patch *p)
{
    const float *d = lora_merge_values(ctx, &p->diff->t);
    TT_TRY(ctx->status);
    TT_PARALLEL_FOR_WORK(ctx, n / 16)
    for (int64_t i = 0; i < n; i++) v[i] = fma_f32(p->factor, d[i], v[i]);
    return TT_OK;
}

static tt_status lora_merge_check_finite(tt_weights *w, const weight *x,
                                         const float *v, int64_t n)
{
    bool finite = true;
    for (int64_t i = 0; i < n; i++) finite &= v[i] - v[i] == 0;
    if (finite) return TT_OK;
    return tt_fail(w->ctx, TT_EFORMAT, "%s: with the LoRA %s the weight %s "
                   "holds a value that is not a finite number", w->path,
                   x->patch->from->path, x->name);
}

tt_status lora_merge(tt_weights *w, const weight *x, tt_arena *a,
                     tt_tensor *out)
{
    tt_ctx *ctx = w->ctx;
    const tt_tensor *t = &x->t;
    const int64_t n = tt_tensor_count(t);
    float *v = tt_alloc(ctx, a, n, sizeof *v, x->name);
    TT_TRY(ctx->status);
    *out = tt_tensor_make(v, TT_F32, t->rank, t->dim);
    if (w->shapes_alone) { /* small ones are looked at */
        if (t->rank < 2) memset(v, 0, (size_t)n * sizeof *v);
        return TT_OK;
    }
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const tt_fpenv before = tt_fpenv_begin_all(ctx->nthreads);
    widen_all(ctx, v, t);
    for (const lora_patch *p = x->patch; p && !ctx->status; p = p->next) {
        if (p->diff) lora_merge_add_difference(ctx, v, n, p);
        else lora_merge_add_product(ctx, v, p->rows, n / p->rows, p);
        tt_arena_reset(&ctx->scratch, m);
    }
    if (!ctx->status) lora_merge_check_finite(w, x, v, n);
    tt_fpenv_set(before);
    return ctx->status;
}
