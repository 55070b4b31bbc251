/* calibrate.c: seconds of the calls that a shadow has seen.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   Calls of one kind take a + b * size. Where the whole call is cheap
 *         enough it is measured as it is; else two parts of it are, with fewer
 *         rows, and attention with fewer heads too. A first round of small
 *         calls finds out what costs how much, and the second one spends its
 *         time in that proportion. Products take weights of the model, from
 *         several layers in turn, so that they come from where they lie. */
#include "run/plan.h"

#include <math.h>
#include <string.h>

/* FIRST   seconds of a call of the first round
 * MOST    bytes that a call may take
 * LONGEST seconds for reading weights of a kind, or of a model
 * NEAR    bytes that the near caches hold; OTHERS fill them with something else
 * TURNS   calls of which the middle one counts: a run makes good and bad ones,
 *         but one that waits for the disk or for another program is not its */
enum { MOST = 96 << 20, TURNS = 3, POSITIONS = 32, NEAR = 1 << 20,
       OTHERS = 16 << 20 };
#define FIRST 0.02
#define LONGEST 0.5

typedef struct trial {
    tt_ctx ctx;
    tt_arena mem;
    const shadow_call *call;
    const tt_weights *weights; /* given back after every call; NULL: stay     */
    plan_clock now;
    int64_t heads;             /* of an attention                             */
    int turn, nw;              /* weights of the call that take turns         */
    tt_tensor w;
    void *others;              /* bytes that no call takes                    */
} trial;

/* ---- arguments ----------------------------------------------------------- */

/* Numbers in [-1, 1), the same 1024 over and over. */
static tt_host *numbers(trial *t, int64_t n)
{
    enum { PIECE = 1024 };
    tt_host *x = tt_alloc(&t->ctx, &t->mem, n, sizeof *x, "a calibration");
    uint32_t s = 1;
    for (int64_t i = 0; x && i < n && i < PIECE; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = (tt_host)((double)(int32_t)s * 0x1p-31);
    }
    for (int64_t at = PIECE; x && at < n; at += PIECE)
        memcpy(x + at, x, (size_t)(n - at < PIECE ? n - at : PIECE)
                          * sizeof *x);
    return x;
}

static double *doubles(trial *t, int64_t n)
{
    double *x = tt_alloc(&t->ctx, &t->mem, n, sizeof *x, "a calibration");
    for (int64_t i = 0; x && i < n; i++) x[i] = 0.5 + 0.001 * (double)(i % 9);
    return x;
}

/* Values that one unit of size brings along. */
static double values_of(const shadow_call *c, int64_t heads)
{
    const int64_t *d = c->dim;
    switch (c->op) {
    case SHADOW_LINEAR: return (double)(d[0] + d[1]);
    case SHADOW_ATTENTION: return 2.0 * (double)(heads * d[1]);
    case SHADOW_CONV: return (double)(d[5] * (d[8] * d[3] + d[4]));
    case SHADOW_ROPE: return 2.0 * (double)(d[0] * d[1]);
    case SHADOW_COPY: return 2.0 / sizeof(tt_real);
    default: return 2.0 * (double)d[0];
    }
}

/* Between two calls that share a large array the run fills the near caches with
 * others. */
static void push_away(const trial *t, int64_t n)
{
    const double bytes = values_of(t->call, t->heads) * sizeof(tt_real);
    if (t->others && bytes * (double)n > NEAR)
        memset(t->others, t->turn & 1, OTHERS);
}

/* Once, with the arguments that stay the same; seconds. */
#define TIMED(t, op_, ...)                                                     \
    do {                                                                       \
        const tt_##op_##_args args_ = {__VA_ARGS__};                           \
        if ((t)->ctx.status) return 0;                                         \
        push_away((t), n);                                                     \
        const double begin_ = (t)->now();                                      \
        (t)->ctx.ops->op_(&(t)->ctx, &args_);                                  \
        return (t)->now() - begin_;                                            \
    } while (0)

static double try_linear(trial *t, int64_t n)
{
    const int64_t o = t->call->dim[0], K = t->call->dim[1];
    const tt_host *x = numbers(t, n * K), *b = numbers(t, o);
    TIMED(t, linear, .y = numbers(t, n * o), .x = x, .n = n, .w = &t->w,
          .b = b);
}

static double try_attention(trial *t, int64_t n)
{
    const int64_t *dim = t->call->dim, H = t->heads, width = H * dim[1];
    const bool bias = dim[3];
    const int64_t T = bias ? n : dim[2];
    const tt_host *q = numbers(t, T * width), *k = numbers(t, n * width);
    const tt_host *v = numbers(t, n * width);
    tt_host *rel = bias ? numbers(t, H * (2 * n - 1)) : NULL;
    uint8_t *mask = bias ? tt_alloc(&t->ctx, &t->mem, n, 1, "a mask") : NULL;
    if (mask) memset(mask, 1, (size_t)n);
    TIMED(t, attention, .o = numbers(t, T * width), .q = q, .k = k, .v = v,
          .T = T, .N = n, .H = H, .D = dim[1], .q_stride = width,
          .kv_stride = width, .scale = (tt_real)0.1, .rel_bias = rel,
          .key_mask = mask, .same = dim[4] < n ? dim[4] : 0);
}

static double try_conv(trial *t, int64_t n)
{
    const int64_t *d = t->call->dim, Wo = d[5], stride = d[6], up = d[7];
    const int64_t Hi = 1 + n * stride / up, Wi = 1 + Wo * stride / up;
    const tt_host *b = numbers(t, d[4]);
    const tt_real *frame[8] = {NULL};
    for (int64_t i = d[0] - d[8]; i < d[0] && i < 8; i++)
        frame[i] = numbers(t, Hi * Wi * d[3]);
    TIMED(t, conv, .y = numbers(t, n * Wo * d[4]), .frame = frame, .w = &t->w,
          .b = b, .Hi = Hi, .Wi = Wi, .Cin = d[3], .Ho = n, .Wo = Wo,
          .Cout = d[4], .kt = (int)d[0], .kh = (int)d[1], .kw = (int)d[2],
          .stride = (int)stride, .pad_top = (int)d[1] / 2,
          .pad_left = (int)d[2] / 2, .up = (int)up, .by_class = d[9] != 0,
          .bf16 = d[10] != 0);
}

#define COLUMNS                                                                \
    const int64_t c = t->call->dim[0];                                         \
    tt_host *x = numbers(t, n * c)

static double try_layer_norm(trial *t, int64_t n)
{
    COLUMNS;
    const tt_host *w = t->call->dim[1] ? numbers(t, c) : NULL;
    TIMED(t, layer_norm, .y = numbers(t, n * c), .x = x, .n = n, .c = c,
          .w = w, .b = w, .eps = 1e-6);
}

static double try_rms_norm(trial *t, int64_t n)
{
    COLUMNS;
    TIMED(t, rms_norm, .y = x, .x = x, .n = n, .c = c, .w = numbers(t, c),
          .eps = 1e-6);
}

static double try_channel_norm(trial *t, int64_t n)
{
    COLUMNS;
    TIMED(t, channel_norm, .y = numbers(t, n * c), .x = x, .n = n, .c = c,
          .gamma = numbers(t, c));
}

static double try_modulate(trial *t, int64_t n)
{
    COLUMNS;
    const tt_host *w = numbers(t, c);
    TIMED(t, modulate, .x = x, .n = n, .c = c, .scale = w, .shift = w,
          .stride = c, .rows = n);
}

static double try_gate_add(trial *t, int64_t n)
{
    COLUMNS;
    const tt_host *y = numbers(t, n * c);
    TIMED(t, gate_add, .x = x, .y = y, .n = n, .c = c, .gate = numbers(t, c),
          .stride = c, .rows = n);
}

static double try_add(trial *t, int64_t n)
{
    COLUMNS;
    TIMED(t, add, .x = x, .y = numbers(t, n), .n = n * c);
}

static double try_mul(trial *t, int64_t n)
{
    COLUMNS;
    TIMED(t, mul, .x = x, .y = numbers(t, n), .n = n * c);
}

static double try_gelu_tanh(trial *t, int64_t n)
{
    COLUMNS;
    TIMED(t, gelu_tanh, .x = x, .n = n * c);
}

static double try_silu(trial *t, int64_t n)
{
    COLUMNS;
    TIMED(t, silu, .x = x, .n = n * c);
}

static double try_rope(trial *t, int64_t n)
{
    const int64_t H = t->call->dim[0], D = t->call->dim[1];
    tt_rope_table table = {0};
    const tt_host *x = numbers(t, n * H * D);
    int32_t *pos = tt_alloc(&t->ctx, &t->mem, 3 * n, sizeof *pos, "positions");
    tt_rope_make(&t->ctx, &t->mem, &table, D, POSITIONS);
    for (int64_t i = 0; pos && i < 3 * n; i++)
        pos[i] = (int32_t)(i % POSITIONS);
    TIMED(t, rope, .y = numbers(t, n * H * D), .x = x, .T = n, .H = H, .D = D,
          .table = &table, .pos = pos);
}

static double try_col_mean(trial *t, int64_t n)
{
    COLUMNS;
    TIMED(t, col_mean, .mean = doubles(t, c), .x = x, .n = n, .c = c);
}

static double try_col_moment(trial *t, int64_t n)
{
    COLUMNS;
    const double *mean = doubles(t, c);
    TIMED(t, col_moment, .m2 = doubles(t, c), .x = x, .mean = mean, .n = n,
          .c = c);
}

static double try_col_blend(trial *t, int64_t n)
{
    COLUMNS;
    const double *m = doubles(t, c);
    TIMED(t, col_blend, .x = x, .n = n, .c = c, .mean = m, .gain = m,
          .target = m, .tau = 0.5);
}

static double try_copy(trial *t, int64_t bytes)
{
    const int64_t n = bytes / (int64_t)sizeof(tt_host);
    tt_host *to = numbers(t, n + 1), *from = numbers(t, n + 1);
    if (t->ctx.status) return 0;
    push_away(t, bytes);
    const double begin = t->now();
    memmove(to, from, (size_t)bytes);
    return t->now() - begin;
}

/* ---- one call ------------------------------------------------------------ */

static double try_once(trial *t, int64_t n)
{
#define TRY(op, OP) [SHADOW_##OP] = try_##op,
    static double (*const of[SHADOW_OPS])(trial *, int64_t) = {
        TT_OPS(TRY) [SHADOW_COPY] = try_copy};
    const shadow_call *c = t->call;
    const tt_arena_mark m = tt_arena_here(&t->mem);
    if (c->nw) t->w = c->w[t->turn++ % t->nw];
    const bool stored = t->w.data;
    if (c->nw && !stored) t->w.data = numbers(t, tt_tensor_count(&t->w));
    const double seconds = of[c->op](t, n);
    if (c->nw && stored) tt_weights_release(t->weights, &t->w);
    tt_arena_reset(&t->mem, m);
    return seconds;
}

static double try_often(trial *t, int64_t n)
{
    double took[TURNS] = {0};
    for (int i = 0; i < TURNS; i++) {
        const double seconds = try_once(t, n);
        int at = i;
        for (; at > 0 && took[at - 1] > seconds; at--) took[at] = took[at - 1];
        took[at] = seconds;
    }
    return took[TURNS / 2];
}

/* ---- how much of it ------------------------------------------------------ */

static int64_t clamp(double x, int64_t lo, int64_t hi)
{
    return x < (double)lo ? lo : x > (double)hi ? hi : (int64_t)x;
}

/* The largest size up to `most` that MOST bytes hold. */
static int64_t memory_for(const trial *t, int64_t most)
{
    const double each = values_of(t->call, t->heads) * sizeof(tt_real);
    return clamp(MOST / each, 1, most);
}

/* What a call costs by itself, and per unit of its size. */
typedef struct line {
    double a, b;
} line;

static double all_calls(const shadow_call *c, line l)
{
    return l.a * c->calls + l.b * c->size;
}

/* The size at which a call takes about `seconds`, from n on in steps of four;
 * *took: what it took. While a step costs little more than the one before, most
 * of it is what a call costs whatever its size, and it goes on. */
static int64_t grow(trial *t, int64_t n, double seconds, double *took)
{
    const int64_t most = memory_for(t, t->call->most);
    double before = INFINITY;
    *took = try_once(t, n);
    while (n < most && (*took < seconds / 4 || *took < 2 * before)
           && !t->ctx.status) {
        before = *took;
        n = n < most / 4 ? 4 * n : most;
        *took = try_once(t, n);
    }
    return n;
}

/* In a call or a few; what is mapped is there afterwards. */
static line first_round(trial *t)
{
    double took;
    const shadow_call *c = t->call;
    const double begin = tt_now();
    t->heads = c->op == SHADOW_ATTENTION ? 1 : 0;
    t->turn = t->nw = 0;
    while (t->nw < c->nw && (t->nw < 2 || tt_now() - begin < LONGEST)) {
        t->nw++;
        try_once(t, 1);
    }
    const int64_t n = grow(t, 1, FIRST, &took);
    const double heads = t->heads ? (double)c->dim[0] : 1;
    return (line){0, heads * took / (double)n};
}

/* In about `budget` seconds, where a unit takes about `unit`. */
static line second_round(trial *t, double unit, double budget)
{
    const shadow_call *c = t->call;
    const double turn = budget / (2 * TURNS);
    double heads = 1, took;
    if (t->heads) {
        t->heads = clamp((double)c->dim[0] * turn / (unit * (double)c->most), 1,
                         c->dim[0]);
        heads = (double)c->dim[0] / (double)t->heads;
    }
    const int64_t most = grow(t, clamp(turn * heads / (4 * unit), 1,
                                       memory_for(t, c->most)), turn, &took);
    int64_t least = c->least;
    if (most < c->most) least = most / 4;
    if (most >= c->most && 4 * least > 3 * most) least = 0;
    const double large = heads * try_often(t, most);
    if (least < 1) return (line){0, large / (double)most};
    const double small = heads * try_often(t, least);
    const double b = (large - small) / (double)(most - least);
    if (b <= 0 || small < b * (double)least)
        return (line){0, large / (double)most};
    return (line){small - b * (double)least, b};
}

/* Exchanges are a link's; and there may be ranks without rows. */
static bool is_work(const shadow_call *c)
{
    return c->op != SHADOW_EXCHANGE && c->calls > 0 && c->most > 0;
}

static void silent(void *user, const char *sentence)
{
    (void)user;
    (void)sentence;
}

double calibrate(tt_ctx *ctx, const shadow *s, const tt_ops *ops,
                 const tt_weights *weights, plan_clock now, double budget)
{
    line found[SHADOW_CALLS] = {{0, 0}};
    int nw[SHADOW_CALLS] = {0};
    double all = 0, sum = 0;
    trial t = {.ctx = {.ops = ops, .nthreads = ctx->nthreads, .warn = silent,
                       .matrix_unit = ctx->matrix_unit,
                       .interrupt = ctx->interrupt},
               .weights = weights, .now = now};
    t.others = tt_alloc(&t.ctx, &t.mem, OTHERS, 1, "a calibration");
    for (int i = 0; i < s->ncalls && !tt_check_interrupt(&t.ctx); i++) {
        t.call = &s->call[i];
        if (!is_work(t.call)) continue;
        found[i] = first_round(&t);
        nw[i] = t.nw;
        all += all_calls(t.call, found[i]);
    }
    for (int i = 0; i < s->ncalls && !tt_check_interrupt(&t.ctx); i++) {
        t.call = &s->call[i];
        if (!is_work(t.call)) continue;
        t.heads = t.call->op == SHADOW_ATTENTION;
        t.nw = nw[i];
        const double share = all_calls(t.call, found[i]) / all;
        if (share > 0.002)
            found[i] = second_round(&t, found[i].b, share * budget);
        sum += all_calls(t.call, found[i]);
    }
    if (t.ctx.status) tt_fail(ctx, t.ctx.status, "%s", tt_message(&t.ctx));
    tt_arena_free(&t.mem);
    tt_ctx_free(&t.ctx);
    return ctx->status ? 0 : sum;
}

/* ---- the first touch ----------------------------------------------------- */

/* A quarter of the pages, or more: those that a program has just given back
 * are at hand, and others take up to ten times as long. */
double calibrate_pages(tt_ctx *ctx, const shadow *s, int64_t room,
                       plan_clock now)
{
    enum { LEAST = 1 << 20, ALL = 256 << 20, MORE = 1 << 30, PAGE = 4096 };
    tt_arena fresh = {0};
    const int64_t some = s->peak < ALL ? clamp((double)s->peak, LEAST, ALL)
                                       : clamp(s->peak / 4.0, ALL, MORE);
    const int64_t n = clamp(room / 4.0, LEAST, some);
    volatile char *x = tt_alloc(ctx, &fresh, n, 1, "a calibration");
    const double begin = now();
    for (int64_t i = 0; x && i < n; i += PAGE) x[i] = 1;
    const double seconds = now() - begin;
    tt_arena_free(&fresh);
    return seconds / (double)n * (double)s->peak;
}

/* A piece of a matrix, whose bytes stand behind one another in a file. */
typedef struct piece {
    const tt_tensor *of;
    int64_t first, end, step;  /* elements; a page apart                      */
    double bytes;
} piece;

/* The one in the middle of part i of n equal ones of all matrices: 1 MiB, or as
 * much as the part has, because no byte is read twice for the first time. */
static piece piece_at(const shadow *s, int i, int n)
{
    enum { PAGE = 4096, PAGES = 256 };
    const int64_t pages = clamp(s->matrix_bytes / n / PAGE, 1, PAGES);
    double at = s->matrix_bytes * (i + 0.5) / n;
    int k = 0;
    for (; k < s->matrices - 1; k++) {
        const double bytes = (double)tt_tensor_bytes(&s->matrix[k]);
        if (at < bytes) break;
        at -= bytes;
    }
    const tt_tensor *t = &s->matrix[k];
    const int64_t count = tt_tensor_count(t), block = tt_dtype_block(t->dtype);
    const double each = (double)tt_tensor_bytes(t) / (double)count;
    const int64_t step = ((int64_t)(PAGE / each) + block - 1) / block * block;
    int64_t first = (int64_t)(at / each) / step * step;
    int64_t end = first + pages * step;
    if (end > count) end = count;
    if (first >= end) first = 0;
    return (piece){t, first, end, step, each * (double)(end - first)};
}

static double read_piece(const piece *p, plan_clock now)
{
    tt_host x[256];            /* no type has a larger block                  */
    const int64_t block = tt_dtype_block(p->of->dtype);
    const double begin = now();
    for (int64_t i = p->first; i + block <= p->end; i += p->step)
        tt_widen_at(x, p->of, i, block);
    return now() - begin;
}

/* A model that lies in memory is read in no time, one on a disk in minutes, and
 * of many a part is in memory: so pieces are read that are spread over it. The
 * system keeps those: the run will wait for the others. */
double calibrate_reading(tt_ctx *ctx, const shadow *s,
                         const tt_weights *weights, plan_clock now)
{
    enum { PIECES = 128, ENOUGH = 16 };
    double seconds = 0, bytes = 0;
    const double begin = tt_now();
    for (int i = 0; i < PIECES && s->matrices; i++) {
        const int turn = i * 37 % PIECES; /* none beside the one before */
        const piece p = piece_at(s, turn, PIECES);
        if (i >= ENOUGH && tt_now() - begin > LONGEST) break;
        if (tt_check_interrupt(ctx)) return 0;
        seconds += read_piece(&p, now);
        bytes += p.bytes;
        if (!weights) continue;
        tt_weights_release(weights, p.of);
        seconds -= read_piece(&p, now);
        tt_weights_release(weights, p.of);
    }
    if (bytes <= 0 || seconds <= 0) return 0;
    return seconds / bytes * fmax(s->matrix_bytes - bytes, 0);
}
