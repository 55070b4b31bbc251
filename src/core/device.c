/* device.c: see device.h. Without a device every verb is a line of C.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "core/parallel.h"

#define PIECE 65536         /* values that a thread copies at a time          */
#define LINE 64
#define PAGE 4096           /* what comes after a page no CPU foresees        */
#define FAR ((int64_t)8 << 20)  /* from here on a copy passes by the caches:
                                 * they could not hold it, and what a store
                                 * fetches to overwrite it is saved           */

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
    if (a->folder) return tt_alloc0(ctx, a, n, sizeof(tt_real), what);
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

tt_index *tt_indices(tt_ctx *ctx, tt_arena *a, int64_t n)
{
    tt_arena *values = ctx->device ? tt_arena_values(ctx, a) : a;
    return values ? tt_alloc(ctx, values, n, sizeof(tt_index), "lists") : NULL;
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

int32_t *tt_get_indices(tt_ctx *ctx, const tt_index *x, int64_t n)
{
    if (ctx->status) return NULL;
    if (!ctx->device) return (int32_t *)x;
    int32_t *h = tt_alloc(ctx, &ctx->scratch, n, sizeof *h, "scratch");
    if (h) ctx->device->get(ctx, h, x, (size_t)n * sizeof *h);
    return ctx->status ? NULL : h;
}

tt_host *tt_map_write(tt_ctx *ctx, tt_real *x, int64_t n)
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

void tt_put_indices(tt_ctx *ctx, tt_index *x, const int32_t *h, int64_t n)
{
    if (ctx->status || n == 0) return;
    if (ctx->device) ctx->device->put(ctx, x, h, (size_t)n * sizeof *h);
    else if (x != h) memcpy(x, h, (size_t)n * sizeof *h);
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

static void copy_piece(char *to, const char *from, int64_t n, bool far)
{
#ifdef __SSE2__
    for (; far && n >= LINE && (uintptr_t)to % 16 == 0; n -= LINE) {
        __builtin_prefetch((const void *)((uintptr_t)from + PAGE));
        for (const char *end = from + LINE; from < end; from += 16, to += 16)
            _mm_stream_si128((__m128i *)(void *)to, _mm_loadu_si128(
                                 (const __m128i *)(const void *)from));
    }
    if (far) _mm_sfence();
#else
    (void)far;
#endif
    memcpy(to, from, (size_t)n);
}

/* n bytes that do not overlap, by all threads. */
static void copy_apart(const tt_ctx *ctx, char *to, const char *from, int64_t n)
{
    TT_PARALLEL_FOR_WORK(ctx, n / (int64_t)sizeof(float))
    for (int64_t i = 0; i < n; i += PIECE)
        copy_piece(to + i, from + i, n - i < PIECE ? n - i : PIECE, n >= FAR);
}

/* Down to lower addresses, as caches move, in steps as wide as the move. */
static void copy_down(const tt_ctx *ctx, char *to, const char *from, int64_t n)
{
    const int64_t step = from - to;
    for (int64_t i = 0; i < n; i += step)
        copy_apart(ctx, to + i, from + i, n - i < step ? n - i : step);
}

static void copy_host(const tt_ctx *ctx, tt_real *to, const tt_real *from,
                      int64_t n)
{
    if (to + n <= from || from + n <= to)
        copy_apart(ctx, (char *)to, (const char *)from, (int64_t)bytes_of(n));
    else if (from - to >= PIECE)
        copy_down(ctx, (char *)to, (const char *)from, (int64_t)bytes_of(n));
    else memmove(to, from, bytes_of(n));
}

void tt_copy(tt_ctx *ctx, tt_real *to, const tt_real *from, int64_t n)
{
    if (ctx->status || n == 0 || to == from) return;
    if (ctx->device) ctx->device->copy(ctx, to, from, bytes_of(n));
    else copy_host(ctx, to, from, n);
}

/* A NaN stays one: its upper half gets the bit that makes it quiet. */
static void narrow_piece(uint16_t *restrict to, const tt_real *restrict from,
                         int64_t n)
{
    TT_SIMD
    for (int64_t i = 0; i < n; i++) {
        const float x = (float)from[i];
        uint32_t u;
        memcpy(&u, &x, sizeof u);
        const uint32_t up = u + 0x7fffu + (u >> 16 & 1u);
        to[i] = (uint16_t)((x != x ? u | 0x400000u : up) >> 16);
    }
}

static void narrow_host(const tt_ctx *ctx, uint16_t *to, const tt_real *from,
                        int64_t n)
{
    TT_PARALLEL_FOR_WORK(ctx, n)
    for (int64_t i = 0; i < n; i += PIECE)
        narrow_piece(to + i, from + i, n - i < PIECE ? n - i : PIECE);
}

void tt_narrow(tt_ctx *ctx, tt_real *to, const tt_real *from, int64_t n)
{
    if (ctx->status || n == 0) return;
    if (!ctx->device) {
        narrow_host(ctx, (uint16_t *)(void *)to, from, n);
        return;
    }
    if (ctx->device->narrow) {
        ctx->device->narrow(ctx, to, from, n);
        return;
    }
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const tt_host *h = tt_get(ctx, from, n);
    uint16_t *half = tt_alloc(ctx, &ctx->scratch, n, sizeof *half, "scratch");
    if (h && half) {
        narrow_host(ctx, half, h, n);
        ctx->device->put(ctx, to, half, (size_t)n * sizeof *half);
    }
    tt_arena_reset(&ctx->scratch, m);
}

static void zero_host(const tt_ctx *ctx, tt_real *const *to, int64_t arrays,
                      int64_t from, int64_t upto)
{
    const int64_t n = upto - from, pieces = (n + PIECE - 1) / PIECE;
    TT_PARALLEL_FOR_DYNAMIC(ctx, arrays * n)
    for (int64_t u = 0; u < arrays * pieces; u++) {
        const int64_t i = u % pieces * PIECE;
        memset(to[u / pieces] + from + i, 0,
               bytes_of(n - i < PIECE ? n - i : PIECE));
    }
}

void tt_zero_all(tt_ctx *ctx, tt_real *const *to, int64_t arrays, int64_t from,
                 int64_t upto)
{
    if (ctx->status || from >= upto) return;
    if (!ctx->device) zero_host(ctx, to, arrays, from, upto);
    for (int64_t i = 0; ctx->device && i < arrays; i++)
        ctx->device->zero(ctx, to[i] + from, bytes_of(upto - from));
}

void tt_zero(tt_ctx *ctx, tt_real *to, int64_t n)
{
    tt_zero_all(ctx, &to, 1, 0, n);
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

/* ---- what a policy would have to get otherwise --------------------------- */

static void host_locate(tt_ctx *ctx, const tt_locate_args *a)
{
    (void)ctx;
    for (int64_t i = 0; i < a->n; i++) {
        const int64_t f = (a->first + i) / a->L, s = (a->first + i) % a->L;
        a->to[3 * i] = a->time ? a->time[f] : (tt_index)(a->t0 + f);
        a->to[3 * i + 1] = (tt_index)(s / a->w);
        a->to[3 * i + 2] = (tt_index)(s % a->w);
    }
}

static void host_pick(tt_ctx *ctx, const tt_pick_args *a)
{
    (void)ctx;
    for (int64_t i = 0; i < a->n; i++)
        memcpy(a->to + i * a->to_step,
               a->from + (a->list ? a->list[i] : i) * a->step,
               (size_t)a->c * sizeof *a->to);
}

#define VERB(verb)                                                             \
    void tt_##verb(tt_ctx *ctx, const tt_##verb##_args *a)                     \
    {                                                                          \
        if (ctx->status) return;                                               \
        (ctx->device ? ctx->device->verb : host_##verb)(ctx, a);               \
    }
VERB(locate)
VERB(pick)
