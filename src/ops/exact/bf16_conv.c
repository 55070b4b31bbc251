/* bf16_conv.c: convolution of classes amx and vdp, where a tile reads windows
 * from where they lie.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Pixels are the rows of a tile, of kernels that take stored rows. What is
 * copied (conv_block.h) is rounded on its way; weights are the lanes, packed
 * once per call. A chain goes through the lines of a window in their order, and
 * goes on in the sums from line to line, which are whole groups. Where a
 * picture is seen doubled, the first line of a window is computed once for two
 * lines of outputs. */
#include "ops/exact/bf16.h"
#include "ops/exact/conv_block.h"

#ifndef TT_REAL_DOUBLE

#include "core/parallel.h"
#include "ops/exact/units.h"

/* Lines of a block of outputs, at most. */
#define LINES 8

typedef struct plan {
    const tt_conv_args *p;
    const tt_bf16_kernels *kn;
    int64_t K, run;        /* products of a window, and of one line of it     */
    conv_block block;      /* its cols in whole tiles                         */
    int64_t input, sums;   /* floats of a thread: inputs, sums of a panel     */
    int64_t panels;
    uint16_t *packed;      /* [panels][K/2][nr][2]                            */
} plan;

/* n values of a frame, as bf16. */
static void bf16_conv_take(const conv_block *b, void *to, const tt_real *frame,
                           int64_t at, int64_t n)
{
    const tt_bf16_kernels *kn = b->own;
    const char *stored = (const char *)frame + 2 * at;
    if (b->p->bf16) memcpy(to, stored, (size_t)n * sizeof(uint16_t));
    else kn->pack_rows(to, 1, frame + at, 0, 1, n);
}

bool bf16_conv_takes(const tt_conv_args *p, const tt_bf16_kernels *kn)
{
    return kn->stored && p->Cin % BF16_GROUP == 0 && p->Ho * p->Wo > 0
        && p->Cout > 0 && p->kt * p->kh * p->kw > 0;
}

/* Columns that fit next to so many lines: of blocks as equal as tiles allow. */
static int64_t bf16_conv_columns(const tt_conv_args *p, int64_t lines,
                                 const tt_bf16_kernels *kn)
{
    const int64_t mr = kn->mr, inputs = exact_tuned(kn->level)->conv_inputs;
    const int64_t all = exact_round_up(p->Wo, mr);
    const int64_t tall = (lines - 1) * p->stride + p->kh;
    const int64_t each = 2 * p->kt * tall * p->Cin * p->stride;
    int64_t most = inputs / each / mr * mr;
    if (most < mr) most = mr;
    return exact_round_up(exact_parts(all, exact_parts(all, most)), mr);
}

static plan bf16_conv_plan_for(const tt_conv_args *p, const tt_bf16_kernels *kn)
{
    plan e = {.p = p, .kn = kn, .run = p->kw * p->Cin,
              .panels = exact_parts(p->Cout, kn->nr)};
    const int64_t lines = exact_least(p->Ho, LINES);
    e.block = (conv_block){.p = p, .lines = lines,
                           .cols = bf16_conv_columns(p, lines, kn),
                           .size = sizeof(uint16_t), .take = bf16_conv_take,
                               .own = kn};
    conv_block_inputs(&e.block);
    e.K = p->kt * p->kh * e.run;
    e.input = exact_round_up(conv_block_values(&e.block) / 2, 16);
    e.sums = lines * e.block.cols * kn->nr;
    return e;
}

/* Floats that a thread has: those of a block, or of a line's weights. */
static int64_t own_scratch(const plan *e)
{
    const int64_t block = e->input + e->sums, wide = e->kn->nr * e->run;
    return exact_round_up(block > wide ? block : wide, 16);
}

static int64_t packed_scratch(const plan *e)
{
    return exact_round_up(e->panels * e->kn->nr * e->K / 2, 16);
}

static int64_t bf16_conv_whole_scratch(const tt_ctx *ctx, const tt_conv_args *p,
                                       const tt_bf16_kernels *kn)
{
    const plan e = bf16_conv_plan_for(p, kn);
    return packed_scratch(&e) + ctx->nthreads * own_scratch(&e);
}

/* ---- weights ------------------------------------------------------------- */

/* Lanes of the products that line `s` of a window has in a panel. */
static uint16_t *lanes_of(const plan *e, int64_t panel, int64_t s)
{
    return e->packed + (panel * e->K + s * e->run) * e->kn->nr;
}

static void bf16_conv_pack(const plan *e, int64_t panel, int64_t s, float *wide)
{
    const tt_tensor *w = e->p->w;
    const int64_t nr = e->kn->nr, o = panel * nr;
    const int64_t n = exact_least(e->p->Cout - o, nr);
    const float *rows = tt_tensor_in_place(w);
    int64_t ld = e->K;
    if (rows) {
        rows += o * e->K + s * e->run;
    } else {
        for (int64_t j = 0; j < n; j++)
            tt_widen_at_f32(wide + j * e->run, w,
                            (o + j) * e->K + s * e->run, e->run);
        rows = wide;
        ld = e->run;
    }
    e->kn->pack_lanes(lanes_of(e, panel, s), rows, ld, n, e->run);
}

/* ---- sums ---------------------------------------------------------------- */

/* Lines of outputs of a unit. */
typedef struct part {
    int64_t line, n;       /* of the picture the first one, and how many      */
    int64_t cols;          /* in whole tiles                                  */
} part;

/* The sums of those lines against a panel. */
static void sum_panel(const plan *e, float *c, const uint16_t *in,
                      const part *b, int64_t panel)
{
    const tt_conv_args *p = e->p;
    const tt_bf16_kernels *kn = e->kn;
    const int64_t line = e->block.line, step = p->stride * p->Cin;
    const bf16_rows rows = {step, BF16_GROUP};
    const unsigned state = kn->begin();
    for (int64_t s = 0; s < p->kt * p->kh; s++) {
        const uint16_t *lanes = lanes_of(e, panel, s);
        const int64_t above = s / p->kh * e->block.tall + s % p->kh;
        const uint16_t *first = in + above * line;
        for (int64_t i = 0; i < b->n; i++) {
            float *const sums = c + i * b->cols * kn->nr;
            if (s == 0 && i > 0 && conv_reads_again(p, b->line + i, 0)) {
                memcpy(sums, sums - b->cols * kn->nr,
                       (size_t)(b->cols * kn->nr) * sizeof *c);
                continue;
            }
            for (int64_t j = 0; j < b->cols; j += kn->mr)
                kn->tile(sums + j * kn->nr,
                         first + i * p->stride * line + j * step, rows, lanes,
                         e->run / BF16_GROUP, s > 0);
        }
    }
    kn->end(state);
}

/* Lines of blocks of outputs, of tiles. */
static exact_units units_of(const plan *e, int threads)
{
    const tt_conv_args *p = e->p;
    return (exact_units){.rows = exact_parts(p->Ho, e->block.lines),
                         .cols = exact_parts(p->Wo, e->kn->mr),
                         .most = e->block.cols / e->kn->mr, .least = 1,
                         .threads = threads};
}

static void bf16_conv_one_unit(const plan *e, float *own, exact_unit u)
{
    const tt_conv_args *p = e->p;
    const tt_kernels *plain = exact_kernels();
    const int64_t nr = e->kn->nr;
    const int64_t i = u.row * e->block.lines, j = u.from * e->kn->mr;
    const int64_t lines = exact_least(p->Ho - i, e->block.lines);
    const int64_t all = u.n * e->kn->mr, cols = exact_least(p->Wo - j, all);
    const part b = {i, lines, all};
    uint16_t *in = (uint16_t *)(void *)own;
    float *c = own + e->input;
    conv_block_take(&e->block, in, i, j, lines, all);
    for (int64_t o = 0; o < p->Cout; o += nr) {
        const int64_t n = exact_least(p->Cout - o, nr);
        sum_panel(e, c, in, &b, o / nr);
        for (int64_t r = 0; r < lines; r++)
            for (int64_t k = 0; k < cols; k++) {
                float *y = p->y + ((i + r) * p->Wo + j + k) * p->Cout + o;
                memcpy(y, c + (r * all + k) * nr,
                       (size_t)n * sizeof *y);
                if (p->b) plain->add(y, p->b + o, n);
            }
    }
}

void bf16_conv(tt_ctx *ctx, const tt_conv_args *p, const tt_bf16_kernels *kn)
{
    plan e = bf16_conv_plan_for(p, kn);
    const int64_t segments = p->kt * p->kh, per = own_scratch(&e);
    const exact_units all = units_of(&e, ctx->nthreads);
    const int64_t units = exact_units_count(&all);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *workspace = tt_scratch(ctx, bf16_conv_whole_scratch(ctx, p, kn));
    if (workspace) {
        float *own = workspace + packed_scratch(&e);
        e.packed = (uint16_t *)(void *)workspace;
        TT_PARALLEL_FOR_DYNAMIC(ctx, p->Cout * e.K)
        for (int64_t u = 0; u < e.panels * segments; u++)
            bf16_conv_pack(&e, u / segments, u % segments,
                           own + tt_thread_id() * per);
        TT_PARALLEL_FOR_DYNAMIC(ctx, p->Ho * p->Wo * p->Cout * e.K / 32)
        for (int64_t i = 0; i < units; i++)
            bf16_conv_one_unit(&e, own + tt_thread_id() * per,
                               exact_unit_at(&all, i));
    }
    tt_arena_reset(&ctx->scratch, mark);
}

#else
typedef int tt_no_exact_bf16_conv;
#endif
