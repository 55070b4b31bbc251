/* conv.c: convolution of class f32.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A convolution is a product of windows and weights. The weights are transposed
 * once per call (exact_turn_all), if no one has done it beforehand; then
 * threads take blocks of outputs, copy the lines that those read
 * (conv_block.h), and run tiles of windows against all panels of weights, one
 * slice after another. The pixels of a tile stand in a column or in a line,
 * whichever leaves fewer rows of the last tile without one.
 * Products with frames that are missing before the first one are left out: a
 * chain that begins at +0 stays there, unless a weight is not finite.
 * In a picture that is seen doubled, lines 2 i and 2 i + 1 are the same. So
 * each block of products that stays in one line of a window is the same sum for
 * two lines of outputs, and is summed once.
 * Blocking is free to change: it moves whole chains, never splits one. */
#include <stdatomic.h>

#include "ops/exact/bf16.h"
#include "ops/exact/conv_block.h"

#ifndef TT_REAL_DOUBLE

#include "core/finite.h"
#include "core/parallel.h"
#include "ops/exact/units.h"
#include "ops/gather.h"

/* How a convolution is cut, and its memory. */
typedef struct plan {
    const tt_conv_args *p;
    const tt_kernels *kn;
    int64_t K;               /* products of a window                          */
    int64_t slice;           /* of them used at a time                        */
    int64_t from;            /* the first one that counts                     */
    int64_t wide;            /* outputs in whole panels                       */
    bool pairs;              /* of lines share sums                           */
    conv_block block;
    exact_units units;       /* rows of tiles, of pixels across them          */
    exact_window window;
    const float *transposed; /* weights [wide / nr][K][nr]                */
    float *own;              /* [threads, own_size]: inputs of a block, or    */
    int64_t own_size;        /* rows to widen                                 */
} plan;

static void conv_take(const conv_block *b, void *to, const tt_real *frame,
                      int64_t at, int64_t n)
{
    take_numbers(to, frame, at, n, b->p->bf16);
}

/* n rounded up to whole parts, as a share of n. */
static double filled(int64_t n, int64_t part)
{
    return (double)exact_round_up(n, part) / (double)n;
}

/* Pixels across the tiles that a unit has at least: every unit reads all the
 * weights. */
#define ACROSS 2

/* Rows of tiles, and across them as many pixels as inputs fit next to them. */
static exact_units conv_units_of(const plan *e, int64_t fit, int threads)
{
    const tt_conv_args *p = e->p;
    const bool down = e->block.down;
    const int64_t all = down ? p->Wo : p->Ho;
    const int64_t halo = (down ? p->kw : p->kh) - p->stride;
    const int64_t most = (fit - halo) / p->stride;
    return (exact_units){
        .rows = exact_parts(down ? p->Ho : p->Wo, e->kn->mr), .cols = all,
        .most = exact_parts(all, exact_parts(all, most < 1 ? 1 : most)),
        .least = ACROSS, .threads = threads};
}

/* Products from k on up to the end of their block, of at most n. */
static int64_t in_block(int64_t k, int64_t n)
{
    return exact_least(n, TT_DOT_BLOCK - k % TT_DOT_BLOCK);
}

/* The line of a window that product k reads. */
static int64_t conv_line_of(const tt_conv_args *p, int64_t k)
{
    return k / (p->kw * p->Cin);
}

/* Products of a sum that is worth sharing, at least: to keep it and to add it
 * takes about as long as a third of them. */
#define SHARED 96

/* Do n products from k on read one line of a window, and are they so many? */
static bool is_shared(const tt_conv_args *p, int64_t k, int64_t n)
{
    return n >= SHARED && conv_line_of(p, k) == conv_line_of(p, k + n - 1);
}

/* The work of n lines of outputs in a unit that share what they can, as a share
 * of what it is otherwise: of n lines next to each other n - 1 have, at every
 * other block that may be shared, one before them that has its sum. */
static double in_pairs(const tt_conv_args *p, int64_t K, int64_t n)
{
    int64_t shared = 0;
    if (p->up != 2 || p->stride != 1 || K == 0) return 1;
    for (int64_t k = 0, m; k < K; k += m) {
        m = in_block(k, K - k);
        if (is_shared(p, k, m)) shared += m;
    }
    return 1 - 0.5 * (double)(n - 1) / (double)n * (double)shared / (double)K;
}

/* Tiles go down a column, or along a line. */
static void orient(plan *e, bool down, int64_t bytes, int threads)
{
    const tt_conv_args *p = e->p;
    const int64_t most = e->kn->mr - 1;
    const int64_t along = most * p->stride + (down ? p->kh : p->kw);
    e->block.down = down;
    e->units = conv_units_of(e,
                             bytes / (along * p->kt * p->Cin * e->block.size),
                             threads);
}

static void plan_block(plan *e, int64_t bytes, int threads)
{
    const tt_conv_args *p = e->p;
    const int64_t mr = e->kn->mr;
    conv_block *b = &e->block;
    *b = (conv_block){.p = p, .size = sizeof(float), .take = conv_take};
    orient(e, false, bytes, threads);
    const double share = in_pairs(p, e->K, exact_unit_at(&e->units, 0).n);
    const bool down = filled(p->Ho, mr) <= filled(p->Wo, mr) * share;
    if (down) orient(e, true, bytes, threads);
    e->pairs = !down && share < 1;
    const int64_t n = exact_unit_at(&e->units, 0).n; /* the largest one */
    b->lines = down ? mr : n;
    b->cols = down ? n : mr;
    conv_block_inputs(b);
    e->window = (exact_window){
        .ld = p->stride * (down ? b->line : p->Cin), .run = p->kw * p->Cin,
        .high = p->kh, .line = b->line, .frame = b->tall * b->line};
}

static plan conv_plan_for(const tt_ctx *ctx, const tt_conv_args *p)
{
    const tt_kernels *kn = exact_kernels();
    const exact_tuning *t = exact_tuned(kn->level);
    plan e = {.p = p, .kn = kn, .K = (int64_t)p->kt * p->kh * p->kw * p->Cin,
              .wide = exact_round_up(p->Cout, kn->nr)};
    e.slice = exact_least(e.K, t->conv_slice * TT_DOT_BLOCK);
    plan_block(&e, t->conv_inputs, ctx->nthreads);
    const int64_t inputs = conv_block_values(&e.block);
    const int64_t widened = kn->nr * exact_least(e.K, TT_DOT_BLOCK);
    e.own_size = exact_round_up(inputs > widened ? inputs : widened, 16);
    return e;
}

/* Products with frames that are missing, before those of the first that is
 * there. */
static int64_t missing(const tt_conv_args *p)
{
    int a = 0;
    while (a + 1 < p->kt && !p->frame[a]) a++;
    return (int64_t)a * p->kh * p->kw * p->Cin;
}

/* Are the first n weights of every channel finite? */
static bool first_finite(tt_ctx *ctx, const plan *e, int64_t n)
{
    atomic_bool finite = true;
    const int64_t nr = e->kn->nr;
    TT_PARALLEL_FOR_WORK(ctx, e->wide * n)
    for (int64_t u = 0; u < e->wide / nr; u++)
        if (!tt_all_finite(e->transposed + u * e->K * nr, n * nr))
            finite = false;
    return finite;
}

/* A slice of products of a panel of channels. */
typedef struct job {
    const plan *e;
    int64_t k0, kc;          /* products [k0, k0 + kc)                        */
    int64_t o0, n;           /* channels [o0, o0 + n)                         */
    const float *panel;      /* their weights                                 */
    const float *bias;       /* of the last slice; otherwise NULL             */
    const float *next;       /* weights of the job after this one             */
} job;

/* Sums of blocks before the first product that counts are +0. */
static bool is_first(const job *q)
{
    return q->k0 == q->e->from;
}

/* One full tile over the blocks of the slice, in ascending order. */
static void slice_tile(const job *q, float *c, int64_t ldc,
                       const exact_window *x, const float *bias)
{
    const tt_kernels *kn = q->e->kn;
    exact_window w = *x;
    for (int64_t k = 0, n; k < q->kc; k += n) {
        n = in_block(q->k0 + k, q->kc - k);
        w.ask.next = x->ask.next + (uintptr_t)k * x->ask.each;
        kn->conv_tile(c, ldc, &w, q->k0 + k, q->panel + k * kn->nr, n,
                      q->k0 + k >= TT_DOT_BLOCK,
                      k + n == q->kc ? bias : NULL);
    }
}

/* c [mr, nr] of a few channels. */
static void slice_rest(const job *q, float *c, const exact_window *x)
{
    const tt_kernels *kn = q->e->kn;
    kn->conv_rest(c, kn->nr, x, q->k0, q->panel, q->n, q->kc,
                  q->k0 >= TT_DOT_BLOCK);
    for (int64_t r = 0; q->bias && r < kn->mr; r++)
        for (int64_t i = 0; i < q->n; i++) c[r * kn->nr + i] += q->bias[i];
}

/* The first m pixels of a tile, whose channels begin at y. */
static void one_tile(const job *q, float *y, int64_t ldy,
                     const exact_window *x, int64_t m)
{
    const tt_kernels *kn = q->e->kn;
    if (m >= kn->mr && q->n == kn->nr) {
        const bool clear = is_first(q) && q->k0 >= TT_DOT_BLOCK;
        for (int64_t r = 0; clear && r < kn->mr; r++)
            memset(y + r * ldy, 0, (size_t)kn->nr * sizeof *y);
        slice_tile(q, y, ldy, x, q->bias);
        return;
    }
    float t[EXACT_MAX_MR * EXACT_MAX_NR] = {0}, bias[EXACT_MAX_NR] = {0};
    const size_t n = (size_t)q->n * sizeof *t;
    for (int64_t r = 0; r < m && !is_first(q); r++)
        memcpy(t + r * kn->nr, y + r * ldy, n);
    if (q->bias) memcpy(bias, q->bias, n);
    if (q->n <= kn->rest)
        slice_rest(q, t, x);
    else
        slice_tile(q, t, kn->nr, x, q->bias ? bias : NULL);
    for (int64_t r = 0; r < m; r++) memcpy(y + r * ldy, t + r * kn->nr, n);
}

/* Outputs of a unit and where they stand: the pixels of a tile, or fewer, and
 * so many of them across. */
typedef struct part {
    int64_t along, across;
    int64_t in[2], out[2];   /* values from one to the next, both ways        */
    int64_t line;            /* of the picture, the first one                 */
    const float *x;
    float *y;
} part;

/* The windows of tile a across, which asks as number i of n. */
static exact_window window_of(const job *q, const part *b, int64_t a, int64_t i,
                              int64_t n)
{
    exact_window w = q->e->window;
    w.x = b->x + a * b->in[1];
    w.ask = exact_ask_part(q->next, q->e->kn->nr, q->kc, i, n);
    return w;
}

static void run_panel(const job *q, const part *b)
{
    for (int64_t a = 0; a < b->across; a++) {
        const exact_window w = window_of(q, b, a, a, b->across);
        one_tile(q, b->y + a * b->out[1] + q->o0, b->out[0], &w, b->along);
    }
}

/* ---- lines that share sums ----------------------------------------------- */

/* t [mr, nr] = the sums of a block, which are added to nothing. */
static void block_sums(const job *q, float *t, const exact_window *x)
{
    const tt_kernels *kn = q->e->kn;
    if (q->n <= kn->rest)
        kn->conv_rest(t, kn->nr, x, q->k0, q->panel, q->n, q->kc, false);
    else
        kn->conv_tile(t, kn->nr, x, q->k0, q->panel, q->kc, false, NULL);
}

/* They join m pixels, whose channels begin at y. */
static void add_block(const job *q, float *y, int64_t ldy, const float *t,
                      int64_t m)
{
    const tt_kernels *kn = q->e->kn;
    const size_t n = (size_t)q->n * sizeof *t;
    for (int64_t r = 0; r < m; r++, y += ldy, t += kn->nr) {
        if (q->k0 < TT_DOT_BLOCK) {
            memcpy(y, t, n);
        } else {
            if (is_first(q)) memset(y, 0, n);
            kn->add(y, t, q->n);
        }
        if (q->bias) kn->add(y, q->bias, q->n);
    }
}

/* A block whose products read one line of a window: its sums are those of the
 * outputs above where that line is the same. */
static void run_pairs(const job *q, const part *b)
{
    const tt_conv_args *p = q->e->p;
    const int64_t u = conv_line_of(p, q->k0) % p->kh;
    float t[EXACT_MAX_MR * EXACT_MAX_NR];
    for (int64_t a = 0, i = 0; a < b->across; a++) {
        if (a == 0 || !conv_reads_again(p, b->line + a, u)) {
            const exact_window w = window_of(q, b, a, i++, b->across / 2 + 1);
            block_sums(q, t, &w);
        }
        add_block(q, b->y + a * b->out[1] + q->o0, b->out[0], t, b->along);
    }
}

/* Block after block. */
static void run_blocks(const job *q, const part *b)
{
    job one = *q;
    for (int64_t k = 0; k < q->kc; k += one.kc) {
        one.k0 = q->k0 + k;
        one.kc = in_block(one.k0, q->kc - k);
        one.panel = q->panel + k * q->e->kn->nr;
        const bool last = k + one.kc == q->kc;
        one.bias = last ? q->bias : NULL;
        one.next = last ? q->next : one.panel + one.kc * q->e->kn->nr;
        if (is_shared(q->e->p, one.k0, one.kc)) run_pairs(&one, b);
        else run_panel(&one, b);
    }
}

/* ---- units --------------------------------------------------------------- */

/* A unit of a picture, from line *i, column *j on; its inputs will be at x. */
static part conv_part_of(const plan *e, const float *x, exact_unit u,
                         int64_t *i, int64_t *j)
{
    const tt_conv_args *p = e->p;
    const bool down = e->block.down;
    const int64_t line = p->stride * e->block.line, col = p->stride * p->Cin;
    const int64_t row = p->Wo * p->Cout, mr = e->kn->mr, r = u.row * mr;
    *i = down ? r : u.from;
    *j = down ? u.from : r;
    float *y = p->y + *i * row + *j * p->Cout;
    if (down)
        return (part){exact_least(p->Ho - r, mr), u.n, {line, col},
                      {row, p->Cout}, *i, x, y};
    return (part){exact_least(p->Wo - r, mr), u.n, {col, line},
                  {p->Cout, row}, *i, x, y};
}

/* The job of a slice and of channels from o on; `next` is not set. */
static job job_of(const plan *e, int64_t k0, int64_t o)
{
    const tt_conv_args *p = e->p;
    const int64_t nr = e->kn->nr, begin = k0 > e->from ? k0 : e->from;
    const int64_t kc = exact_least(e->K - k0, e->slice);
    return (job){.e = e, .k0 = begin, .kc = k0 + kc - begin, .o0 = o,
                 .n = exact_least(p->Cout - o, nr),
                 .panel = e->transposed + o * e->K + begin * nr,
                 .bias = p->b && k0 + kc == e->K ? p->b + o : NULL};
}

/* Jobs are the channels of a slice, slice after slice; after the last one
 * comes the first, with which another unit begins. */
static void conv_one_unit(const plan *e, exact_unit u)
{
    const tt_conv_args *p = e->p;
    const int64_t nr = e->kn->nr, k_first = e->from / e->slice * e->slice;
    float *x = e->own + tt_thread_id() * e->own_size;
    int64_t i, j;
    const part b = conv_part_of(e, x, u, &i, &j);
    const conv_block *const in = &e->block;
    conv_block_take(in, x, i, j, in->down ? in->lines : u.n,
                    in->down ? u.n : in->cols);
    job now = job_of(e, k_first, 0), next;
    for (int64_t k0 = k_first, o = 0; k0 < e->K; now = next) {
        o = o + nr < p->Cout ? o + nr : 0;
        if (!o) k0 += e->slice;
        next = job_of(e, k0 < e->K ? k0 : k_first, o);
        now.next = next.panel;
        (e->pairs ? run_blocks : run_panel)(&now, &b);
    }
}

/* Floats for weights that are transposed. */
static int64_t scratch_floats(const plan *e)
{
    return exact_round_up(exact_transposed_floats(e->p->w), 16);
}

static int64_t conv_scratch(const tt_ctx *ctx, const tt_conv_args *p)
{
    if (p->Ho * p->Wo * p->Cout <= 0) return 0;
    const plan e = conv_plan_for(ctx, p);
    return scratch_floats(&e) + e.own_size * ctx->nthreads;
}

void exact_f32_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    if (p->Ho * p->Wo * p->Cout <= 0) return;
    plan e = conv_plan_for(ctx, p);
    const tt_tensor w2 = tt_tensor_reshape(p->w, 2, (int64_t[]){p->Cout, e.K});
    const int64_t units = exact_units_count(&e.units);
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *workspace = tt_scratch(ctx, conv_scratch(ctx, p));
    if (workspace) {
        const int64_t none = missing(p);
        e.own = workspace + scratch_floats(&e);
        exact_turn_all(ctx, workspace, &w2, e.own, e.own_size);
        e.transposed = workspace;
        if (none && first_finite(ctx, &e, none)) e.from = none;
        TT_PARALLEL_FOR_DYNAMIC(ctx, p->Ho * p->Wo * p->Cout * e.K / 32)
        for (int64_t i = 0; i < units; i++)
            conv_one_unit(&e, exact_unit_at(&e.units, i));
    }
    tt_arena_reset(&ctx->scratch, mark);
}

/* ---- the classes --------------------------------------------------------- */

#define WINDOWS ((int64_t)1 << 22) /* floats of windows at a time, about      */

int64_t exact_windows(const tt_conv_args *p)
{
    const int64_t K = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    const int64_t n = WINDOWS / (K ? K : 1);
    return exact_least(p->Ho * p->Wo, n > EXACT_MAX_NR ? n : EXACT_MAX_NR);
}

static int64_t windows_scratch(const tt_conv_args *p)
{
    return exact_windows(p) * p->kt * p->kh * p->kw * p->Cin;
}

void exact_windows_conv(tt_ctx *ctx, const tt_conv_args *p,
                        void (*linear)(tt_ctx *ctx, const tt_linear_args *a))
{
    const int64_t K = (int64_t)p->kt * p->kh * p->kw * p->Cin;
    const int64_t pixels = p->Ho * p->Wo, step = exact_windows(p);
    const tt_tensor w = tt_tensor_reshape(p->w, 2, (int64_t[]){p->Cout, K});
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    float *x = tt_scratch(ctx, windows_scratch(p));
    for (int64_t r = 0; x && r < pixels; r += step) {
        const int64_t n = exact_least(pixels - r, step);
        TT_PARALLEL_FOR_WORK(ctx, n * K)
        for (int64_t i = 0; i < n; i++)
            conv_gather(x + i * K, p, (r + i) / p->Wo, (r + i) % p->Wo);
        linear(ctx, &(tt_linear_args){p->y + r * p->Cout, x, n, &w, p->b});
    }
    tt_arena_reset(&ctx->scratch, mark);
}

static void conv_bf16(tt_ctx *ctx, const tt_conv_args *p,
                      const tt_bf16_kernels *kn,
                      void (*linear)(tt_ctx *ctx, const tt_linear_args *a))
{
    if (!p->by_class) exact_f32_conv(ctx, p);
    else if (bf16_conv_takes(p, kn)) bf16_conv(ctx, p, kn);
    else exact_windows_conv(ctx, p, linear);
}

void exact_amx_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    conv_bf16(ctx, p, exact_bf16_kernels(ctx), exact_amx_linear);
}

void exact_vdp_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    conv_bf16(ctx, p, exact_vdp_kernels(ctx), exact_vdp_linear);
}

void exact_sm80_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    if (p->by_class) exact_windows_conv(ctx, p, exact_sm80_linear);
    else exact_f32_conv(ctx, p);
}

void exact_sm90_conv(tt_ctx *ctx, const tt_conv_args *p)
{
    if (p->by_class) exact_windows_conv(ctx, p, exact_sm90_linear);
    else exact_f32_conv(ctx, p);
}

#else
typedef int tt_no_exact_conv;
#endif
