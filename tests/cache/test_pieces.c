/* test_pieces.c: values of a window that are not in one array.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property: whatever a plan reads, and whether the chunk's values are in their
 * slots or where the pass has them, a view has every value in its place, and
 * attention answers as if they were in one array. Of what lies together only
 * the blocks that are cut are copied, and without tt_ops.laid there is one
 * array. What `tether` has in the slots of a chunk, pass by pass. */

/* A window of eight frames has three blocks. */
#define GRID_H 11
#define GRID_W 16
#include "tests/cache/drive.h"
#include "tether/backend.h"

enum { FRAMES = 8, N = FRAMES * L, OWN = C * L, MOST = TT_MAX_SEGMENTS * N };

static tt_plan reads;
static bool own;             /* the chunk is not in its slots                 */

static int64_t slots(const tt_policy_options *o, const tt_geometry *g)
{
    (void)o, (void)g;
    return N;
}

static int64_t positions(const tt_policy_options *o, const tt_geometry *g)
{
    (void)o;
    return g->frames;
}

static void write(tt_ctx *ctx, tt_layer *y, const tt_pass *p, const tt_qkv *x)
{
    if (own) y->own_v = x->v;
    tt_layer_put(ctx, y, p, x);
}

static void plan(tt_ctx *ctx, const tt_layer *y, const tt_pass *p, tt_plan *out)
{
    (void)ctx, (void)y, (void)p;
    *out = reads;
}

static const tt_policy_class odd = {.name = "odd", .slots = slots,
                                    .positions = positions, .write = write,
                                    .plan = plan};

static uint32_t state;

static int64_t below(int64_t n)
{
    state = state * 1664525u + 1013904223u;
    return (int64_t)(state >> 8) % n;
}

/* Some segments are of whole blocks, some of a token, some empty. */
static void make_plan(void)
{
    static const int64_t lengths[] = {0, 1, 511, 512, 513, 1024};
    reads = (tt_plan){.nsegments = 1 + (int)below(TT_MAX_SEGMENTS)};
    for (int i = 0; i < reads.nsegments; i++) {
        const int64_t n = i == 0 ? 1 + below(N)
                          : below(2) ? lengths[below(6)] : below(N + 1);
        const int64_t most = N - n + 1;
        reads.segment[i] = (tt_segment){below(3) ? below(most) : most - 1, n,
                                        TT_T_NONE};
    }
}

/* What a view of the plan must hold; rows that lie together, in *runs. */
static int64_t wanted(tt_real *to, const tt_real *cached, const tt_real *chunk,
                      int64_t *runs)
{
    int64_t n = 0;
    *runs = 0;
    for (int i = 0; i < reads.nsegments; i++) {
        const tt_segment *s = &reads.segment[i];
        for (int64_t t = s->slot; t < s->slot + s->ntokens; t++, n++) {
            const int64_t late = t - (N - OWN);
            *runs += t == s->slot || (own && late == 0);
            memcpy(to + n * W, own && late >= 0 ? chunk + late * W
                                                : cached + t * W,
                   W * sizeof *to);
        }
    }
    return n;
}

static bool within(const tt_real *p, const tt_real *x, int64_t n)
{
    return p >= x && p < x + n;
}

/* Tokens of a view that were copied. */
static int64_t copied(const tt_kv_view *v, const tt_real *cached,
                      const tt_real *chunk)
{
    int64_t n = 0;
    for (int64_t i = 0; i < v->pieces; i++) {
        const tt_value_piece *p = &v->piece[i];
        expect(p->first == (i ? p->first / TT_KEY_BLOCK * TT_KEY_BLOCK : 0)
               && (!i || p->first > p[-1].first), "piece %d begins at %d",
               (int)i, (int)p->first);
        if (within(p->v, cached, N * W) || within(p->v, chunk, OWN * W))
            continue;
        n += (i + 1 < v->pieces ? p[1].first : v->n) - p->first;
    }
    return n;
}

static void answer(tt_ctx *ctx, tt_real *got, const tt_real *q,
                   const tt_kv_view *v, const tt_real *values)
{
    tt_real *o = tt_values(ctx, 2 * W);
    tt_attention_args a = {.o = o, .q = q, .k = v->k, .v = values, .T = 2,
                           .N = v->n, .H = H, .D = D, .q_stride = W,
                           .kv_stride = W, .scale = 1};
    if (!values) {
        a.v = v->v;
        a.piece = v->piece;
        a.pieces = v->pieces;
    }
    tt_attention(ctx, &a);
    take(ctx, got, o, 2 * W);
}

static void look(tt_ctx *ctx, tt_cache *c, const tt_pass *p, const tt_real *x)
{
    static tt_real want[MOST * W], got[MOST * W], cached[N * W];
    const tt_layer *y = tt_cache_look(c, 0);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const tt_real *sent = tt_send(ctx, x, OWN * W);
    tt_real o[2 * W], one[2 * W];
    tt_kv_view v;
    int64_t runs;
    make_plan();
    tt_cache_write(ctx, c, 0, p, &(tt_qkv){sent, sent, sent});
    tt_cache_read(ctx, c, 0, p, &v, tt_values(ctx, OWN * W), sent);
    take(ctx, cached, y->v, N * W);
    const int64_t n = wanted(want, cached, x, &runs);
    expect(v.n == n && v.good == 0, "%d tokens", (int)v.n);
    expect(!v.pieces == (v.v != NULL), "one or the other");
    take_values(ctx, got, &v);
    expect(!memcmp(got, want, (size_t)(n * W) * sizeof *got),
           "values of %d tokens in %d runs, %d pieces", (int)n, (int)runs,
           (int)v.pieces);
    if (ctx->ops->laid)
        expect(copied(&v, y->v, sent) <= (runs - 1) * TT_KEY_BLOCK,
               "%d of %d tokens are copied", (int)copied(&v, y->v, sent),
               (int)n);
    else expect(!v.pieces, "one array");
    answer(ctx, o, sent, &v, NULL);
    answer(ctx, one, sent, &v, tt_send(ctx, want, n * W));
    expect(!memcmp(o, one, sizeof o), "answers");
    tt_cache_done(ctx, c, 0, p);
    tt_arena_reset(&ctx->scratch, m);
}

static void plans(tt_ctx *ctx, int n)
{
    static tt_real x[OWN * W];
    const tt_geometry g = geometry(30);
    const tt_policy_options o = {.name = "ignored", .K = FRAMES, .S = 1};
    tt_cache *c;
    if (!expect_ok(tt_cache_open(ctx, &c, &odd, &o, &g), "open")) return;
    reads = (tt_plan){1, {{0, 1, TT_T_NONE}}, 0};
    own = false;
    for (int i = 0; i < 4; i++) {
        const tt_pass p = {.start = i * C, .frames = C, .chunk = i};
        const tt_arena_mark m = tt_arena_here(&ctx->scratch);
        fill(x, OWN * W, (uint32_t)i);
        const tt_real *sent = tt_send(ctx, x, OWN * W);
        tt_cache_write(ctx, c, 0, &p, &(tt_qkv){sent, sent, sent});
        tt_cache_done(ctx, c, 0, &p);
        tt_arena_reset(&ctx->scratch, m);
    }
    for (int i = 0; i < n && !ctx->status; i++) {
        const tt_pass p = {.start = 3 * C, .frames = C, .chunk = 3, .step = 1};
        fill(x, OWN * W, 100 + (uint32_t)i);
        own = below(2);
        look(ctx, c, &p, x);
    }
    expect_ok(ctx->status, "plans");
    tt_cache_close(c);
}

/* A policy that forgets the chunk, and a backend that takes no pieces. */
static void check_refusals(tt_ctx *ctx)
{
    static tt_real x[OWN * W];
    const tt_geometry g = geometry(30);
    const tt_policy_options o = {.name = "ignored", .K = FRAMES, .S = 1};
    const tt_value_piece piece[2] = {{0, x}, {TT_KEY_BLOCK, x}};
    tt_cache *c;
    if (!expect_ok(tt_cache_open(ctx, &c, &odd, &o, &g), "open")) return;
    own = true;
    for (int i = 0; i < 3; i++) {
        const tt_pass p = {.frames = C, .step = i, .context = i == 1,
                           .last = i == 2};
        tt_cache_write(ctx, c, 0, &p, &(tt_qkv){x, x, x});
        tt_cache_done(ctx, c, 0, &p);
        if (i) expect_status(ctx->status, TT_EINVAL, "outside its slots");
        else expect_ok(ctx->status, "a noisy pass");
    }
    tt_cache_close(c);
    const tt_ops *const before = ctx->ops;
    tt_ops whole = *before;
    whole.laid = NULL;
    ctx->ops = &whole;
    tt_attention(ctx, &(tt_attention_args){.o = x, .q = x, .k = x, .T = 1,
                 .N = 600, .H = H, .D = D, .q_stride = W, .kv_stride = W,
                 .scale = 1, .piece = piece, .pieces = 2});
    expect_status(ctx->status, TT_EINVAL, "takes them in one array");
    ctx->ops = before;
}

/* In noisy passes the evicted frames are in the slots of the chunk, whose own
 * keys and values are read where they are; the clean pass stores them. Where
 * values are wanted in one array, theirs are in the slots while they are read.
 */
static void check_evicted_stay(tt_ctx *ctx, bool apart)
{
    enum { K = 9, EVICTED = 5, SLOT = 6, ALL = OWN * W };
    static seen a;
    static tt_real x[ALL], k[ALL], v[ALL], got[K * L * W];
    tt_cache *c = open_cache(ctx, options("tether", K, 2, 4), 30);
    for (int64_t s = 0; s < 9; s += C) run_chunk(ctx, c, &a, s);
    const tt_layer *y = tt_cache_look(c, 0);
    const tt_real *const k_at = y->k + SLOT * L * W;
    const tt_real *const v_at = y->v + SLOT * L * W;
    take(ctx, k, y->k + EVICTED * L * W, ALL);
    take(ctx, v, y->v + EVICTED * L * W, ALL);
    for (int step = 0; step < 3; step++) {
        const tt_arena_mark m = tt_arena_here(&ctx->scratch);
        const tt_pass p = {.start = 9, .frames = C, .chunk = 3, .step = step,
                           .context = step == 2};
        tt_kv_view view;
        fill(x, N, 1000 + (uint32_t)step);
        const tt_real *sent = tt_send(ctx, x, ALL);
        tt_cache_write(ctx, c, 0, &p, &(tt_qkv){sent, sent, sent});
        expect(are(ctx, k_at, p.context ? x : k, ALL), "step %d: keys", step);
        expect(are(ctx, v_at, p.context || !apart ? x : v, ALL),
               "step %d: values", step);
        tt_cache_read(ctx, c, 0, &p, &view, tt_values(ctx, ALL), sent);
        take_values(ctx, got, &view);
        expect(!memcmp(got + SLOT * L * W, x, sizeof x), "step %d reads",
               step);
        tt_cache_done(ctx, c, 0, &p);
        expect(are(ctx, k_at, p.context ? x : k, ALL)
               && are(ctx, v_at, p.context ? x : v, ALL), "step %d leaves",
               step);
        tt_arena_reset(&ctx->scratch, m);
    }
    tt_cache_close(c);
}

/* With and without operators that lay out values. */
static void check_evicted(tt_ctx *ctx)
{
    const tt_ops *const before = ctx->ops;
    tt_ops whole = *before;
    whole.laid = NULL;
    check_evicted_stay(ctx, before->laid != NULL);
    ctx->ops = &whole;
    check_evicted_stay(ctx, false);
    ctx->ops = before;
}

int main(void)
{
    tt_ctx *ctx = test_begin("pieces");
    const tt_ops *const before = ctx->ops;
    for (int cls = 0; cls < TT_CLASS_COUNT; cls++) {
        const tt_ops *ops = tt_ops_class(before, (tt_class)cls);
        if (!ops) continue;
        tt_ops whole = *ops;
        whole.laid = NULL;
        ctx->ops = ops;
        plans(ctx, 30);
        ctx->ops = &whole;
        plans(ctx, 5);
    }
    ctx->ops = before;
    check_evicted(ctx);
    if (!test_guarded()) check_refusals(ctx);
    return test_end();
}
