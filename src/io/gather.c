/* gather.c: strided views into packed values.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "io/file.h"

/* Copy rows of the last dimension, stepping through the others like an
 * odometer. */
void io_gather(void *dst, const tt_tensor *t)
{
    size_t es = tt_dtype_size(t->dtype);
    int64_t n = tt_tensor_count(t), at[TT_MAX_RANK] = {0}, off = 0;
    char *to = dst;
    const char *from = t->data;
    if (n == 0) return;
    if (tt_tensor_packed(t)) { /* quantised types always are */
        memcpy(to, from, (size_t)tt_tensor_bytes(t));
        return;
    }
    int last = t->rank - 1; /* rank 0 is always packed */
    int64_t row = t->dim[last], step = t->stride[last];
    for (int64_t done = 0; done < n; done += row) {
        const char *p = from + (size_t)off * es;
        if (step == 1) {
            memcpy(to, p, (size_t)row * es);
        } else {
            for (int64_t i = 0; i < row; i++)
                memcpy(to + (size_t)i * es, p + (size_t)(i * step) * es, es);
        }
        to += (size_t)row * es;
        for (int d = last - 1; d >= 0; d--) {
            off += t->stride[d];
            if (++at[d] < t->dim[d]) break;
            off -= t->dim[d] * t->stride[d];
            at[d] = 0;
        }
    }
}

void tt_gather(void *dst, const tt_tensor *t)
{
    io_gather(dst, t);
    if (!t->native) tt_swap_stored(dst, t->dtype, tt_tensor_count(t));
}

tt_real *tt_read_real(tt_ctx *ctx, tt_arena *a, const tt_tensor *t)
{
    if (ctx->status) return NULL;
    int64_t n = tt_tensor_count(t);
    tt_real *dst = tt_alloc(ctx, a, n, sizeof *dst, "a tensor");
    if (!dst) return NULL;
    if (tt_tensor_packed(t)) {
        tt_widen_at(dst, t, 0, n);
        return dst;
    }
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    void *packed = tt_alloc(ctx, &ctx->scratch, n, tt_dtype_size(t->dtype),
                            "a tensor");
    if (packed) {
        io_gather(packed, t);
        tt_tensor p = tt_tensor_like(t, packed, t->rank, t->dim);
        tt_widen_at(dst, &p, 0, n);
    }
    tt_arena_reset(&ctx->scratch, m);
    return packed ? dst : NULL;
}

/* Types with values that a float cannot hold, 8 or 4 bytes each. */
static bool is_large(tt_dtype t)
{
    return t == TT_F64 || t == TT_I64 || t == TT_U64 || t == TT_I32
           || t == TT_U32;
}

static void widen_large(double *dst, const char *src, tt_dtype t, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t s8;
        uint64_t u8;
        int32_t s4;
        uint32_t u4;
        const char *p = src + (size_t)i * tt_dtype_size(t);
        if (t == TT_F64) memcpy(&dst[i], p, 8);
        else if (t == TT_I64) memcpy(&s8, p, 8), dst[i] = (double)s8;
        else if (t == TT_U64) memcpy(&u8, p, 8), dst[i] = (double)u8;
        else if (t == TT_I32) memcpy(&s4, p, 4), dst[i] = (double)s4;
        else memcpy(&u4, p, 4), dst[i] = (double)u4;
    }
}

double *tt_read_double(tt_ctx *ctx, tt_arena *a, const tt_tensor *t)
{
    if (ctx->status) return NULL;
    int64_t n = tt_tensor_count(t);
    double *dst = tt_alloc(ctx, a, n, sizeof *dst, "a tensor");
    if (!dst) return NULL;
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    if (is_large(t->dtype)) {
        char *raw = tt_alloc(ctx, &ctx->scratch, n, tt_dtype_size(t->dtype),
                             "a tensor");
        if (raw) {
            tt_gather(raw, t);
            widen_large(dst, raw, t->dtype, n);
        }
        tt_arena_reset(&ctx->scratch, m);
        return raw ? dst : NULL;
    }
    const tt_real *x = tt_read_real(ctx, &ctx->scratch, t);
    for (int64_t i = 0; x && i < n; i++) dst[i] = (double)x[i];
    tt_arena_reset(&ctx->scratch, m);
    return x ? dst : NULL;
}
