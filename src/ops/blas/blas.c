/* blas.c: matrix products through OpenBLAS, checked by tolerance.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * OpenBLAS is called single-threaded on tiles whose shape depends on the
 * problem alone, and our own loop spreads the tiles over threads: so the
 * number of threads cannot change a bit, though another CPU or another
 * OpenBLAS can. Everything that is not a matrix product is the exact (or
 * golden) operator. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "core/parallel.h"
#include "ops/blas/openblas.h"
#include "ops/gather.h"
#include "ops/golden/golden.h"
#include "ops/reduce.h"
#include "tether/mathfn.h"

#define TILE_ROWS 768
#define TILE_COLS 256
#define TILE_PIXELS 128
#define TILE_QUERIES 128

#ifdef TT_REAL_DOUBLE
#define STORED TT_F64
#define REAL_LOWEST (-DBL_MAX)
#else
#define STORED TT_F32
#define REAL_LOWEST (-FLT_MAX)
#endif

static int64_t blas_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Columns [o0, o0 + o) of y; x has k columns. `wide` receives the widened rows
 * of w when they cannot be used in place. */
static void blas_linear_tile(const openblas *lib, const tt_linear_args *a,
                             int64_t o0, int64_t o, int64_t k, tt_real *wide)
{
    const int64_t ldy = a->w->dim[0];
    const tt_real *rows = wide;
    tt_real *y = a->y + o0;
    if (wide) tt_widen_at(wide, a->w, o0 * k, o * k);
    else rows = tt_tensor_in_place(a->w) + o0 * k;
    lib->gemm(ROW_MAJOR, NO_TRANS, TRANS, (int)a->n, (int)o, (int)k, 1, a->x,
              (int)k, rows, (int)k, 0, y, (int)ldy);
    for (int64_t r = 0; a->b && r < a->n; r++)
        for (int64_t c = 0; c < o; c++) y[r * ldy + c] += a->b[o0 + c];
}

static void blas_linear(tt_ctx *ctx, const tt_linear_args *a)
{
    int64_t o = a->w->dim[0], k = a->w->dim[1];
    int64_t nr = (a->n + TILE_ROWS - 1) / TILE_ROWS;
    int64_t nc = (o + TILE_COLS - 1) / TILE_COLS;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    bool widen = !tt_tensor_in_place(a->w);
    tt_real *wide = tt_scratch(ctx, widen ? k * TILE_COLS * ctx->nthreads : 1);
    const openblas *lib = openblas_get(ctx);
    if (wide && lib) {
        lib->set_num_threads(1);
        TT_PARALLEL_FOR_DYNAMIC(ctx, a->n * o * k / 32)
        for (int64_t t = 0; t < nr * nc; t++) {
            int64_t r0 = t % nr * TILE_ROWS, c0 = t / nr * TILE_COLS;
            tt_linear_args rows = {a->y + r0 * o, a->x + r0 * k,
                                   blas_least(a->n - r0, TILE_ROWS), a->w,
                                       a->b};
            blas_linear_tile(lib, &rows, c0, blas_least(o - c0, TILE_COLS), k,
                             widen ? wide + k * TILE_COLS * tt_thread_id()
                             : NULL);
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

static void blas_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    int64_t k = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    int64_t pixels = p->Ho * p->Wo;
    int64_t nt = (pixels + TILE_PIXELS - 1) / TILE_PIXELS;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *wide = NULL;
    tt_tensor w = *p->w;
    if (!tt_tensor_in_place(&w)) {
        wide = tt_scratch(ctx, k * p->Cout);
        if (wide) tt_widen_at(wide, &w, 0, k * p->Cout);
        w = tt_tensor_make(wide, STORED, 2, (int64_t[]){p->Cout, k});
    }
    tt_real *window = tt_scratch(ctx, k * TILE_PIXELS * ctx->nthreads);
    const openblas *lib = openblas_get(ctx);
    if (window && lib) {
        lib->set_num_threads(1);
        TT_PARALLEL_FOR_DYNAMIC(ctx, pixels * p->Cout * k / 32)
        for (int64_t t = 0; t < nt; t++) {
            tt_real *mine = window + k * TILE_PIXELS * tt_thread_id();
            int64_t p0 = t * TILE_PIXELS, n = blas_least(pixels - p0,
                                                         TILE_PIXELS);
            for (int64_t i = 0; i < n; i++)
                conv_gather(mine + i * k, p, (p0 + i) / p->Wo,
                            (p0 + i) % p->Wo);
            tt_linear_args rows = {p->y + p0 * p->Cout, mine, n, &w, p->b};
            blas_linear_tile(lib, &rows, 0, p->Cout, k, NULL);
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- attention ----------------------------------------------------------- */

typedef struct tile {
    tt_real *s;     /* [TILE_QUERIES, TT_KEY_BLOCK] logits, then weights      */
    tt_real *acc;   /* [TILE_QUERIES, D]                                      */
    tt_real *m, *l; /* [TILE_QUERIES]                                         */
} tile;

/* Bias, mask, running maximum and exponentials of one row of a tile. Returns
 * the factor by which what was accumulated before must be scaled. */
static tt_real blas_softmax(const tt_attention_args *a, int64_t h, int64_t i,
                      int64_t j0, int64_t n, tt_real *s, tt_real *m,
                      tt_real *l)
{
    for (int64_t j = 0; j < n; j++) {
        if (a->key_mask && !a->key_mask[j0 + j])
            s[j] += REAL_LOWEST;
        else if (a->rel_bias)
            s[j] += a->rel_bias[h * (2 * a->N - 1) + j0 + j - i + a->N - 1];
    }
    tt_real top = j0 ? *m : s[0], sum = 0, alpha = 0;
    for (int64_t j = 0; j < n; j++)
        if (s[j] > top) top = s[j];
    for (int64_t j = 0; j < n; j++) s[j] = tt_exp_real(s[j] - top);
    for (int64_t j = 0; j < n; j++) sum += s[j];
    if (j0) alpha = tt_exp_real(*m - top);
    *l = j0 ? fma_real(*l, alpha, sum) : sum;
    *m = top;
    return alpha;
}

static void attend_tile(const openblas *lib, const tt_attention_args *a,
                        int64_t h, int64_t i0, int64_t n, const tile *w)
{
    int64_t D = a->D;
    for (int64_t j0 = 0; j0 < a->N; j0 += TT_KEY_BLOCK) {
        int64_t nk = blas_least(a->N - j0, TT_KEY_BLOCK);
        lib->gemm(ROW_MAJOR, NO_TRANS, TRANS, (int)n, (int)nk, (int)D,
                  a->scale, a->q + i0 * a->q_stride + h * D, (int)a->q_stride,
                  a->k + j0 * a->kv_stride + h * D, (int)a->kv_stride, 0, w->s,
                  TT_KEY_BLOCK);
        for (int64_t i = 0; i < n; i++) {
            tt_real alpha = blas_softmax(a, h, i0 + i, j0, nk,
                                   w->s + i * TT_KEY_BLOCK, &w->m[i], &w->l[i]);
            for (int64_t d = 0; j0 && d < D; d++) w->acc[i * D + d] *= alpha;
        }
        lib->gemm(ROW_MAJOR, NO_TRANS, NO_TRANS, (int)n, (int)D, (int)nk, 1,
                  w->s, TT_KEY_BLOCK, a->v + j0 * a->kv_stride + h * D,
                  (int)a->kv_stride, j0 ? 1 : 0, w->acc, (int)D);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = 0; d < D; d++)
            a->o[((i0 + i) * a->H + h) * D + d] = w->acc[i * D + d] / w->l[i];
}

static void blas_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    int64_t nt = (a->T + TILE_QUERIES - 1) / TILE_QUERIES;
    int64_t per = TILE_QUERIES * (TT_KEY_BLOCK + a->D + 2);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *all = tt_scratch(ctx, per * ctx->nthreads);
    const openblas *lib = openblas_get(ctx);
    if (all && lib) {
        lib->set_num_threads(1);
        TT_PARALLEL_FOR_DYNAMIC(ctx, a->H * a->T * a->N * a->D / 16)
        for (int64_t t = 0; t < nt * a->H; t++) {
            tile w = {.s = all + per * tt_thread_id()};
            w.acc = w.s + TILE_QUERIES * TT_KEY_BLOCK;
            w.m = w.acc + TILE_QUERIES * a->D;
            w.l = w.m + TILE_QUERIES;
            int64_t i0 = t % nt * TILE_QUERIES;
            attend_tile(lib, a, t / nt, i0, blas_least(a->T - i0, TILE_QUERIES),
                        &w);
        }
    }
    tt_arena_reset(&ctx->scratch, mark);
}

static tt_status blas_open(tt_ctx *ctx, const tt_ops *ops)
{
    (void)ops;
    return openblas_get(ctx) ? TT_OK : ctx->status;
}

static const char *blas_library(tt_ctx *ctx, char *text, size_t size)
{
    const openblas *lib = openblas_get(ctx);
    if (!lib) return NULL;
    snprintf(text, size, "%s, kernels %s", lib->get_config(),
             lib->get_corename());
    return text;
}

const tt_ops tt_ops_blas = {
    .abi = TT_ABI,
    .name = "blas",
    .summary = "matrix products through OpenBLAS: fast, bits depend on the CPU",
    .open = blas_open,
    .library = blas_library,
    .linear = blas_linear,
    .attention = blas_attention,
    .conv = blas_conv,
    TT_OPS_ROWS(GOLDEN)
};
