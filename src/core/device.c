/* device.c: see device.h. Without a device every verb is a line of C.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tether/device.h"

#include <string.h>

static size_t bytes_of(int64_t n)
{
    return (size_t)n * sizeof(tt_real);
}

tt_real *tt_values_in(tt_ctx *ctx, tt_arena *a, int64_t n, const char *what)
{
    tt_arena *values = ctx->device ? tt_arena_values(ctx, a) : a;
    return values ? tt_alloc(ctx, values, n, sizeof(tt_real), what) : NULL;
}

tt_real *tt_values0_in(tt_ctx *ctx, tt_arena *a, int64_t n, const char *what)
{
    tt_real *x = tt_values_in(ctx, a, n, what);
    tt_zero(ctx, x, n);
    return x;
}

tt_real *tt_values(tt_ctx *ctx, int64_t n)
{
    return tt_values_in(ctx, &ctx->scratch, n, "scratch");
}

tt_wide *tt_wides(tt_ctx *ctx, int64_t n)
{
    tt_arena *a = &ctx->scratch;
    tt_arena *values = ctx->device ? tt_arena_values(ctx, a) : a;
    return values ? tt_alloc(ctx, values, n, sizeof(tt_wide), "scratch") : NULL;
}

tt_host *tt_get(tt_ctx *ctx, const tt_real *x, int64_t n)
{
    if (ctx->status) return NULL;
    if (!ctx->device) return (tt_host *)x;
    tt_host *h = tt_scratch(ctx, n);
    if (h) ctx->device->get(ctx, h, x, bytes_of(n));
    return ctx->status ? NULL : h;
}

double *tt_get_wides(tt_ctx *ctx, const tt_wide *x, int64_t n)
{
    if (ctx->status) return NULL;
    if (!ctx->device) return (double *)x;
    double *h = tt_alloc(ctx, &ctx->scratch, n, sizeof *h, "scratch");
    if (h) ctx->device->get(ctx, h, x, (size_t)n * sizeof *h);
    return ctx->status ? NULL : h;
}

tt_host *tt_room(tt_ctx *ctx, tt_real *x, int64_t n)
{
    if (ctx->status) return NULL;
    return ctx->device ? tt_scratch(ctx, n) : (tt_host *)x;
}

void tt_put(tt_ctx *ctx, tt_real *x, const tt_host *h, int64_t n)
{
    if (ctx->status || n == 0) return;
    if (ctx->device) ctx->device->put(ctx, x, h, bytes_of(n));
    else if (x != h) memcpy(x, h, bytes_of(n));
}

const tt_real *tt_send(tt_ctx *ctx, const tt_host *h, int64_t n)
{
    if (ctx->status) return NULL;
    if (!ctx->device) return h;
    tt_real *x = tt_values(ctx, n);
    tt_put(ctx, x, h, n);
    return ctx->status ? NULL : x;
}

tt_tensor tt_values_view(const tt_real *x, int rank, const int64_t *dim)
{
    return tt_tensor_make(x, sizeof *x == 8 ? TT_F64 : TT_F32, rank, dim);
}

tt_tensor tt_place(tt_ctx *ctx, tt_arena *a, const tt_tensor *t)
{
    tt_tensor placed = *t;
    if (!ctx->device || !t->data || ctx->status) return placed;
    const int64_t n = tt_tensor_bytes(t);
    void *data = tt_alloc(ctx, tt_arena_values(ctx, a), n, 1, "weights");
    if (data) ctx->device->put(ctx, data, t->data, (size_t)n);
    placed.data = data;
    return placed;
}

void tt_copy(tt_ctx *ctx, tt_real *to, const tt_real *from, int64_t n)
{
    if (ctx->status || n == 0 || to == from) return;
    if (ctx->device) ctx->device->copy(ctx, to, from, bytes_of(n));
    else memmove(to, from, bytes_of(n));
}

void tt_zero(tt_ctx *ctx, tt_real *to, int64_t n)
{
    if (ctx->status || n == 0) return;
    if (ctx->device) ctx->device->zero(ctx, to, bytes_of(n));
    else memset(to, 0, bytes_of(n));
}

void tt_tap_values(tt_ctx *ctx, const char *name, tt_real *x, int rank,
                   const int64_t *dim)
{
    const tt_dtype real = sizeof(tt_real) == 8 ? TT_F64 : TT_F32;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= dim[i];
    tt_host *h = tt_get(ctx, x, n);
    if (h) tt_tap_emit(ctx, name, real, h, rank, dim);
    if (ctx->inject) tt_put(ctx, x, h, n);
    tt_arena_reset(&ctx->scratch, m);
}
