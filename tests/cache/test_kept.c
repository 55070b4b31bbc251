/* test_kept.c: what stays from pass to pass, without a network: rotated keys,
 * or keys and values as attention lays them out.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property: for every policy and what its knobs make of it, through warm-up,
 * full window, scenes, a chunk without a clean pass, a new video and a hand in
 * the cache, a cache that keeps its keys shows attention the bits of one that
 * does not, and attention gives the same answers. A policy that breaks the rule
 * of policy.h is found by that, and one that does odd things within it is none.
 * Both ways: `laying` is whether the operators lay out what can stay.
 * Known answers: the tokens that are rotated in each pass. */

/* Three frames fill a block of keys. */
#define GRID_H 11
#define GRID_W 16
#include "tests/cache/drive.h"
#include "ops/backend.h"
#ifndef TT_REAL_DOUBLE
#include "ops/exact/exact.h"
#endif

enum { LAYERS = 2, CHUNKS = 14, PASSES = 4, ASKED = 2 };

static bool laying, halves;

/* One cache that keeps, one that does not; and, where operators lay out, one of
 * operators that do not. Of `halves` it holds bf16 numbers. */
typedef struct pair {
    tt_cache *kept, *plain, *whole;
    int differ;                  /* views that were not the same              */
    int looked;
    int reused;                  /* that had keys packed before               */
} pair;

typedef struct shown {
    seen view;
    int64_t n_packed;
    tt_real o[ASKED * W];        /* answers to the first queries              */
} shown;

static bool open_pair(tt_ctx *ctx, pair *p, const tt_policy_class *cls,
                      tt_policy_options o, const tt_geometry *g)
{
    const char *name = cls ? cls->name : o.name;
    tt_geometry kept = *g;
    kept.bf16 = halves;
    *p = (pair){ .differ = 0 };
    if (!expect_ok(tt_cache_open(ctx, &p->kept, cls, &o, &kept), name)
        || !expect_ok(tt_cache_open(ctx, &p->plain, cls, &o, g), name)
        || (laying && !expect_ok(tt_cache_open(ctx, &p->whole, cls, &o, g),
                                 name)))
        return false;
    return expect_ok(tt_cache_keep_keys(ctx, p->kept), name)
           && expect_ok(tt_cache_keep_keys(ctx, p->kept), "twice is once");
}

static void close_pair(pair *p)
{
    tt_cache_close(p->kept);
    tt_cache_close(p->plain);
    tt_cache_close(p->whole);
}

/* ---- one pass in both ---------------------------------------------------- */

static bool unread;  /* clean passes store alone, as in a model's last layer */

static bool gives_up; /* between reading and attention */

static void attend(tt_ctx *ctx, const tt_kv_view *view, const tt_real *q,
                   shown *out)
{
    if (gives_up) tt_fail(ctx, TT_EINVAL, "given up");
    tt_real *o = tt_values(ctx, ASKED * W);
    tt_zero(ctx, o, ASKED * W);
    if (laying) tt_attention(ctx, &(tt_attention_args){
        .o = o, .q = q, .k = view->k, .v = view->v, .T = ASKED, .N = view->n,
        .H = H, .D = D, .q_stride = W, .kv_stride = W, .scale = 1,
        .packed = view->packed, .n_packed = view->n_packed,
        .bf16 = view->bf16});
    out->n_packed = view->n_packed;
    out->view.n = view->n;
    if (ctx->status) return;
    const int64_t lo = view->n_packed * W;
    take(ctx, out->o, o, ASKED * W);
    if (view->bf16) return;
    take(ctx, out->view.k + lo, view->k, view->n * W - lo);
    take_values(ctx, out->view.v + lo, view);
}

/* What one cache shows in a layer. */
static void show(tt_ctx *ctx, tt_cache *c, int64_t layer, const tt_pass *p,
                 shown *out)
{
    static tt_real x[3][C * L * W];
    const int64_t n = p->frames * L * W;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const tt_real *sent[3];
    tt_kv_view view = {0};
    for (int i = 0; i < 3; i++) {
        fill(x[i], n, (uint32_t)(p->start * 64 + p->step * 8 + layer * 4 + i));
        sent[i] = tt_send(ctx, x[i], n);
    }
    tt_real *rotated = tt_values(ctx, n);
    tt_cache_write(ctx, c, layer, p, &(tt_qkv){sent[0], sent[1], sent[2]});
    if (!unread || !p->context)
        tt_cache_read(ctx, c, layer, p, &view, rotated, sent[0]);
    out->view.n = out->n_packed = 0;
    if (!ctx->status && view.n) {
        take(ctx, out->view.q, rotated, n);
        attend(ctx, &view, rotated, out);
    }
    tt_cache_done(ctx, c, layer, p);
    tt_arena_reset(&ctx->scratch, m);
}

static bool same(const shown *a, const shown *b, const tt_pass *at)
{
    const seen *x = &a->view, *y = &b->view;
    const int64_t lo = a->n_packed * W;
    const size_t n = (size_t)(x->n * W - lo) * sizeof *x->k;
    const size_t q = (size_t)(at->frames * L * W) * sizeof *x->q;
    return x->n == y->n && (halves || !memcmp(x->k + lo, y->k + lo, n))
        && (halves || !memcmp(x->v + lo, y->v + lo, n))
        && !memcmp(x->q, y->q, q)
        && (!x->n || !memcmp(a->o, b->o, sizeof a->o));
}

/* The same, of operators that want keys and values as they are. */
static void show_whole(tt_ctx *ctx, tt_cache *c, int64_t layer,
                       const tt_pass *p, shown *out)
{
    const tt_ops *before = ctx->ops;
    tt_ops table = *before;
    table.packed = NULL;
    ctx->ops = &table;
    show(ctx, c, layer, p, out);
    ctx->ops = before;
}

static void pass_of(tt_ctx *ctx, pair *p, tt_pass at)
{
    static shown a, b, c;
    for (int64_t l = 0; l < LAYERS && !ctx->status; l++) {
        show(ctx, p->kept, l, &at, &a);
        show(ctx, p->plain, l, &at, &b);
        p->differ += !same(&a, &b, &at);
        if (p->whole) show_whole(ctx, p->whole, l, &at, &c);
        if (p->whole) p->differ += !same(&b, &c, &at);
        p->reused += a.n_packed > 0;
        p->looked++;
    }
}

/* ---- chunks -------------------------------------------------------------- */

/* That the clean pass is the last one is said in every other chunk. */
static tt_pass pass_at(int64_t chunk, int step)
{
    return (tt_pass){ .start = chunk * C, .frames = C, .chunk = chunk,
                      .step = step, .context = step == PASSES - 1,
                      .last = step == PASSES - 1 && chunk % 2 };
}

static void chunk_of(tt_ctx *ctx, pair *p, int64_t chunk)
{
    for (int step = 0; step < PASSES; step++)
        pass_of(ctx, p, pass_at(chunk, step));
}

/* A given chunk has one pass more, which need not be a clean one. */
static void given_of(tt_ctx *ctx, pair *p, int64_t chunk)
{
    for (int step = 0; step < 2; step++) {
        tt_pass at = pass_at(chunk, step);
        at.last = step == 1;
        pass_of(ctx, p, at);
    }
}

static void scene_of(tt_ctx *ctx, pair *p, int64_t chunk)
{
    for (int step = 0; step < PASSES; step++) {
        tt_pass at = pass_at(chunk, step);
        at.prompt_changed = true;
        at.cut = chunk % 2;
        pass_of(ctx, p, at);
    }
}

/* Somebody else writes to a key of a layer, in all. */
static void touch(tt_ctx *ctx, pair *p, int64_t token)
{
    tt_cache *const all[] = { p->kept, p->plain, p->whole };
    if (halves) return;
    for (int i = 0; i < 2 + laying; i++) {
        const tt_arena_mark m = tt_arena_here(&ctx->scratch);
        tt_real *k = tt_cache_layer(all[i], 1)->k + token * W;
        tt_host *h = tt_get(ctx, k, W);
        for (int j = 0; h && j < W; j++) h[j] += 1;
        tt_put(ctx, k, h, W);
        tt_arena_reset(&ctx->scratch, m);
    }
}

/* Between two passes of a chunk. */
static void touched_of(tt_ctx *ctx, pair *p, int64_t chunk)
{
    for (int step = 0; step < PASSES; step++) {
        pass_of(ctx, p, pass_at(chunk, step));
        touch(ctx, p, step);
    }
}

/* One that was given up in the middle, then the next one. */
static void abandoned_of(tt_ctx *ctx, pair *p, int64_t chunk)
{
    pass_of(ctx, p, pass_at(chunk, 0));
    pass_of(ctx, p, pass_at(chunk, 1));
}

/* The clean pass is not the last one. */
static void again_of(tt_ctx *ctx, pair *p, int64_t chunk)
{
    pass_of(ctx, p, pass_at(chunk, 0));
    pass_of(ctx, p, pass_at(chunk, PASSES - 1));
    pass_of(ctx, p, pass_at(chunk, 1));
    pass_of(ctx, p, pass_at(chunk, PASSES - 1));
}

static void stored_of(tt_ctx *ctx, pair *p, int64_t chunk)
{
    unread = true;
    again_of(ctx, p, chunk);
    unread = false;
}

static void videos(tt_ctx *ctx, pair *p, int64_t chunks)
{
    const char *name = tt_cache_class(p->kept)->name;
    const bool ends = !strcmp(name, "tether"); /* refuses it otherwise */
    for (int64_t i = 0; i < 5; i++) chunk_of(ctx, p, i);
    tt_cache_reset(ctx, p->kept);
    tt_cache_reset(ctx, p->plain);
    if (p->whole) tt_cache_reset(ctx, p->whole);
    for (int64_t i = 0; i < chunks; i++) {
        if (i == 1) given_of(ctx, p, i);
        else if (i == 3 || i == 6) scene_of(ctx, p, i);
        else if (i == 5) touched_of(ctx, p, i);
        else if (i == 7) again_of(ctx, p, i);
        else if (i == 9) stored_of(ctx, p, i);
        else if (i == 8 && !ends) abandoned_of(ctx, p, i);
        else chunk_of(ctx, p, i);
    }
}

/* ---- every policy -------------------------------------------------------- */

static void policy_of(tt_ctx *ctx, const char *text)
{
    tt_policy_options o;
    pair p;
    if (!expect_ok(tt_policy_parse(ctx, &o, text), text)) return;
    const bool clip = (tt_policy_find(o.name)->flags & TT_RESTARTS) != 0;
    const int64_t chunks = clip ? 7 : CHUNKS;
    tt_geometry g = geometry(chunks * C);
    g.scenes = 3;
    if (!open_pair(ctx, &p, NULL, o, &g)) return;
    videos(ctx, &p, chunks);
    expect_ok(ctx->status, text);
    expect(p.looked > 140 || clip, "%s: %d views", text, p.looked);
    expect(p.differ == 0, "%s: %d of %d views differ where keys are kept", text,
           p.differ, p.looked);
    expect((p.reused > 0) == laying, "%s: %d views of what was laid out", text,
           p.reused);
    close_pair(&p);
}

static void every_policy(tt_ctx *ctx)
{
    static const char *const knobs[] = {
        "fifo:budget=7:sink=2", "fifo:budget=-1", "causvid-rolling:budget=7",
        "infinity:budget=7:sink=2", "infinity:sink=0:raw-slot0=1",
        "memrope:budget=9:sink=2", "memrope:adaptive=1",
        "memrope:memrope-method=eviction:budget=7",
        "deep-sink:budget=7:sink=2",
        "deep-forcing:budget=9:sink=2:recent=3:compress-to=6",
        "deep-forcing:budget=9:sink=2:recent=3:compress-to=6:unify=1",
        "deep-forcing:budget=9:sink=2:recent=4:compress-to=6:fusion=max",
        "rolling-sink:budget=9", "tether:budget=10:sink=2:recent=3",
        "tether:budget=10:sink=2:recent=3:tau=0",
        "tether:budget=11:sink=2:recent=4",
        "tether:budget=10:sink=2:recent=3:pool=frame:tau=0.6",
        "tether:budget=12:sink=3:recent=9"};
    const tt_policy_class *cls;
    for (int i = 0; (cls = tt_policy_at(i)) != NULL; i++)
        policy_of(ctx, cls->name);
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++)
        policy_of(ctx, knobs[i]);
}

/* ---- policies of our own ------------------------------------------------- */

static int64_t own_slots(const tt_policy_options *o, const tt_geometry *g)
{
    (void)o;
    return 6 * g->L;
}

static int64_t own_positions(const tt_policy_options *o, const tt_geometry *g)
{
    (void)o;
    return g->frames;
}

static void own_plan(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                     tt_plan *out)
{
    (void)ctx;
    out->nsegments = 1;
    out->segment[0] = (tt_segment){ 0, y->len, TT_T_PER_TOKEN };
    out->q_t0 = p->start;
}

/* A token is another one. */
static void turn(tt_ctx *ctx, tt_real *x)
{
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_host *h = tt_get(ctx, x, W);
    for (int j = 0; h && j < W; j++) h[j] = 1 - h[j];
    tt_put(ctx, x, h, W);
    tt_arena_reset(&ctx->scratch, m);
}

/* The key of token 0. */
static void turn_key(tt_ctx *ctx, tt_layer *y)
{
    turn(ctx, y->k);
}

/* Breaks the rule: an old key, in a later pass, in its place. */
static void stale_write(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                        const tt_qkv *x)
{
    tt_layer_put(ctx, y, p, x);
    if (p->start >= C && p->step == 2) turn_key(ctx, y);
}

static void stale_done(tt_ctx *ctx, tt_layer *y, const tt_pass *p)
{
    if (p->start >= C && p->step == 1) turn_key(ctx, y);
}

/* An old value: seen where values are not packed. */
static void stale_value(tt_ctx *ctx, tt_layer *y, const tt_pass *p)
{
    if (p->start >= C && p->step == 1) turn(ctx, y->v);
}

/* Within it. */
static void fair_done(tt_ctx *ctx, tt_layer *y, const tt_pass *p)
{
    if (p->context) turn_key(ctx, y);
    if (p->context) turn(ctx, y->v);
}

static void fair_commit(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                        const tt_qkv *x)
{
    (void)p, (void)x;
    turn_key(ctx, y);
    turn(ctx, y->v);
}

/* Old tokens are moved about, placed and timed anew in later passes. */
static void moving_write(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                         const tt_qkv *x)
{
    int32_t times[L];
    tt_layer_put(ctx, y, p, x);
    if (p->start < C) return;
    memcpy(times, y->tpos, sizeof times);
    if (p->step == 1) tt_layer_move(ctx, y, 0, L, L);
    memcpy(y->tpos, times, sizeof times);
    if (p->step == 2) y->sidx[1] = 5;
    if (p->step == 3) y->tpos[2]++;
}

/* Metadata tell nothing, and a chunk begins with an old key that changes. */
static void bare_begin(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                       const tt_qkv *x)
{
    (void)x;
    if (y->len < y->cap) y->len += p->frames * L;
    else turn_key(ctx, y);
}

static void bare_write(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                       const tt_qkv *x)
{
    const int64_t n = p->frames * L * W, at = y->len * W - n;
    tt_copy(ctx, y->k + at, x->k, n);
    tt_copy(ctx, y->v + at, x->v, n);
}

/* Another order and other times in every pass. */
static void odd_plan(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                     tt_plan *out)
{
    const int64_t old = y->len - p->frames * L;
    own_plan(ctx, y, p, out);
    if (p->step == 0 || !old) return;
    out->nsegments = 2;
    out->segment[0] = (tt_segment){ old + 1, y->len - old - 1, TT_T_NONE };
    out->segment[1] = (tt_segment){ p->step / 2, old - p->step / 2, p->step };
}

/* Slots that are read twice need more room than a layer has. */
static void double_plan(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                        tt_plan *out)
{
    own_plan(ctx, y, p, out);
    out->nsegments = 2;
    out->segment[1] = out->segment[0];
}

/* Two segments that cut frames, the same in every pass: of the later one the
 * chunk's own tokens begin in its middle. */
static void cutting_plan(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                         tt_plan *out)
{
    const int64_t at = y->len - p->frames * L - 2;
    own_plan(ctx, y, p, out);
    if (at < 0) return;
    out->nsegments = 2;
    out->segment[0] = (tt_segment){ at, y->len - at, 3 };
    out->segment[1] = (tt_segment){ 0, at, TT_T_PER_TOKEN };
}

/* The last tokens only, in one layer or the other: the longer plan is that of
 * the second layer, and sometimes of the first. */
static int64_t long_slots(const tt_policy_options *o, const tt_geometry *g)
{
    (void)o;
    return 9 * g->L;
}

static void uneven_plan(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                        tt_plan *out)
{
    enum { FEW = 1100 };
    const bool few = (y->index == 0) == (p->start / C % 4 < 3);
    own_plan(ctx, y, p, out);
    if (!few || y->len < FEW) return;
    out->segment[0].slot = y->len - FEW;
    out->segment[0].ntokens = FEW;
}

#define OWN .summary = "a test", .slots = own_slots, .positions = own_positions
static const tt_policy_class stale_policies[] = {
    {.name = "stale-write", OWN, .write = stale_write, .plan = own_plan},
    {.name = "stale-done", OWN, .done = stale_done, .plan = own_plan},
};
static const tt_policy_class stale_values = {
    .name = "stale-value", OWN, .done = stale_value, .plan = own_plan,
};
static const tt_policy_class fair_policies[] = {
    {.name = "fair-done", OWN, .done = fair_done, .plan = own_plan},
    {.name = "fair-commit", OWN, .commit = fair_commit, .plan = own_plan},
    {.name = "moving", OWN, .write = moving_write, .plan = own_plan},
    {.name = "bare", OWN, .begin = bare_begin, .write = bare_write,
     .plan = own_plan},
    {.name = "odd", OWN, .plan = odd_plan},
    {.name = "double", OWN, .plan = double_plan},
    {.name = "cutting", OWN, .plan = cutting_plan},
    {.name = "uneven", .summary = "a test", .slots = long_slots,
     .positions = own_positions, .plan = uneven_plan},
};

static void own_of(tt_ctx *ctx, const tt_policy_class *cls, bool stale)
{
    const tt_geometry g = geometry(CHUNKS * C);
    const tt_policy_options o = { .name = "ignored", .K = 6, .S = 1 };
    pair p;
    if (!open_pair(ctx, &p, cls, o, &g)) return;
    videos(ctx, &p, CHUNKS);
    expect_ok(ctx->status, cls->name);
    expect((p.differ > 0) == stale, "%s: %d of %d views differ", cls->name,
           p.differ, p.looked);
    close_pair(&p);
}

static void own_policies(tt_ctx *ctx)
{
    for (size_t i = 0; i < sizeof fair_policies / sizeof *fair_policies; i++)
        own_of(ctx, &fair_policies[i], false);
    for (size_t i = 0; i < sizeof stale_policies / sizeof *stale_policies; i++)
        own_of(ctx, &stale_policies[i], true);
    own_of(ctx, &stale_values, laying);
}

/* ---- what is rotated ----------------------------------------------------- */

static const tt_ops *real_ops;
static int64_t tokens;

static void counting_rope(tt_ctx *ctx, const tt_rope_args *a)
{
    tokens += a->T;
    real_ops->rope(ctx, a);
}

/* Of n frames but the chunk's own, those in blocks that are packed. */
static int64_t tokens_of(int64_t n, int64_t all)
{
    if (!laying || n == all) return n * L;
    return all * L - (all - n) * L / TT_KEY_BLOCK * TT_KEY_BLOCK;
}

/* Keys rotated in every pass of a chunk, of both layers. */
static void expect_rotated(tt_ctx *ctx, tt_cache *c, int64_t chunk,
                           const int64_t want[PASSES])
{
    static shown out;
    for (int step = 0; step < PASSES; step++) {
        const tt_pass at = pass_at(chunk, step);
        tokens = 0;
        for (int64_t l = 0; l < LAYERS; l++) show(ctx, c, l, &at, &out);
        const int64_t keys = tokens - LAYERS * C * L;
        const int64_t expected = LAYERS * tokens_of(want[step], want[0]);
        expect(keys == expected, "%s: chunk %d, pass %d rotates %d keys, "
               "expected %d", tt_cache_class(c)->name, (int)chunk, step,
               (int)keys, (int)expected);
    }
}

/* Frames whose keys are rotated in the passes of a chunk with a full window;
 * the clean pass of a policy that commits rotates all. */
static void counts_of(tt_ctx *ctx, const char *text, bool keep,
                      const int64_t want[PASSES])
{
    static seen out;
    tt_ops counting = *real_ops;
    tt_policy_options o;
    if (!expect_ok(tt_policy_parse(ctx, &o, text), text)) return;
    tt_cache *c = open_cache(ctx, o, 60);
    if (!c) return;
    if (keep) expect_ok(tt_cache_keep_keys(ctx, c), text);
    for (int64_t s = 0; s < 8; s++) run_chunk(ctx, c, &out, s * C);
    counting.rope = counting_rope;
    ctx->ops = &counting;
    expect_rotated(ctx, c, 8, want);
    ctx->ops = real_ops;
    tt_cache_close(c);
}

static void counts(tt_ctx *ctx)
{
    real_ops = ctx->ops;
    counts_of(ctx, "fifo:budget=9", false, (int64_t[]){ 9, 9, 9, 9 });
    counts_of(ctx, "fifo:budget=9", true, (int64_t[]){ 9, C, C, C });
    counts_of(ctx, "infinity:budget=9", true, (int64_t[]){ 9, C, C, C });
    counts_of(ctx, "memrope:budget=9", true, (int64_t[]){ 9, C, C, C });
    counts_of(ctx, "rolling-sink:budget=9", true, (int64_t[]){ 9, C, C, C });
    counts_of(ctx, "tether:budget=10:sink=2:recent=3", true,
              (int64_t[]){ 10, C, C, 10 });
}

/* ---- failures ------------------------------------------------------------ */

/* In pass 1 rows go elsewhere, and the last ones fail. */
static void failing_plan(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                         tt_plan *out)
{
    own_plan(ctx, y, p, out);
    out->segment[0].t0 = 0;
    if (p->step != 1) return;
    out->nsegments = 2;
    out->segment[0] = (tt_segment){ L, y->len - L, 5 };
    out->segment[1] = (tt_segment){ 0, L, TT_T_PER_TOKEN };
}

static const tt_policy_class failing = {
    .name = "failing", OWN, .write = bare_write, .begin = bare_begin,
    .plan = failing_plan,
};

/* A pass that fails in the middle of its keys leaves nothing to trust. */
static void failure(tt_ctx *ctx)
{
    const tt_geometry g = geometry(CHUNKS * C);
    const tt_policy_options o = { .name = "ignored", .K = 6, .S = 1 };
    static shown a;
    pair p;
    if (!open_pair(ctx, &p, &failing, o, &g)) return;
    pass_of(ctx, &p, pass_at(0, 0));
    tt_cache_layer(p.kept, 0)->tpos[1] = -1;
    pass_of(ctx, &p, pass_at(1, 0));
    const tt_pass at = pass_at(1, 1);
    show(ctx, p.kept, 0, &at, &a);
    expect_status(ctx->status, TT_EFORMAT, "a time that cannot be");
    tt_clear(ctx);
    pass_of(ctx, &p, pass_at(1, 2));
    expect(p.differ == 0, "a pass after one that failed");
    close_pair(&p);
}

/* Nor does one between reading and attention. */
static void given_up(tt_ctx *ctx)
{
    const tt_geometry g = geometry(CHUNKS * C);
    const tt_policy_options o = { .name = "ignored", .K = 6, .S = 1 };
    static shown a;
    pair p;
    if (!open_pair(ctx, &p, &fair_policies[1], o, &g)) return;
    chunk_of(ctx, &p, 0);
    const tt_pass at = pass_at(1, 0);
    for (int64_t l = 0; l < LAYERS; l++) {
        show(ctx, p.plain, l, &at, &a);
        gives_up = true;
        show(ctx, p.kept, l, &at, &a);
        gives_up = false;
        tt_clear(ctx);
    }
    pass_of(ctx, &p, pass_at(1, 1));
    expect(p.differ == 0, "a pass after one without attention");
    close_pair(&p);
}

/* ---- operators ----------------------------------------------------------- */

/* The same operators, which lay out nothing that can stay. */
static void without(tt_ctx *ctx)
{
    const tt_ops *before = ctx->ops;
    tt_ops table = *before;
    table.packed = NULL;
    ctx->ops = &table;
    laying = false;
    every_policy(ctx);
    own_policies(ctx);
    failure(ctx);
    given_up(ctx);
    if (test_guarded()) skip("operators cannot be counted on a device");
    else counts(ctx);
    ctx->ops = before;
}

/* A cache made in one class, passes of a chunk in two others: what one class
 * packed is none of the other's, and may not fit where it would stay. */
static void classes_of(tt_ctx *ctx, tt_class made, tt_class first,
                       tt_class second)
{
    const tt_ops *before = ctx->ops;
    const tt_geometry g = geometry(CHUNKS * C);
    const tt_policy_options o = { .name = "ignored", .K = 6, .S = 1 };
    pair p;
    ctx->ops = tt_ops_class(before, made);
    if (!open_pair(ctx, &p, &fair_policies[1], o, &g)) return;
    chunk_of(ctx, &p, 0);
    for (int step = 0; step < PASSES; step++) {
        ctx->ops = tt_ops_class(before, step < PASSES / 2 ? first : second);
        pass_of(ctx, &p, pass_at(1, step));
    }
    expect(p.differ == 0, "%s, then %s, in a cache of %s: %d views differ",
           tt_class_name(first), tt_class_name(second), tt_class_name(made),
           p.differ);
    close_pair(&p);
    ctx->ops = before;
}

static void classes_change(tt_ctx *ctx)
{
    enum { N = TT_CLASS_COUNT };
    for (int i = 0; i < N * N * N; i++)
        classes_of(ctx, (tt_class)(i / N / N), (tt_class)(i / N % N),
                   (tt_class)(i % N));
}

/* Nor is what was packed for a matrix unit read without it. Class f32 has
 * none, so the answer may change on every machine. */
static void unit_changes(tt_ctx *ctx)
{
    const int before = ctx->matrix_unit;
    const tt_geometry g = geometry(CHUNKS * C);
    const tt_policy_options o = { .name = "ignored", .K = 6, .S = 1 };
    const int unit[] = { -1, -1, 1, 1, -1 }, reused[] = { 0, 2, 2, 4, 4 };
    pair p;
    if (!open_pair(ctx, &p, &fair_policies[1], o, &g)) return;
    chunk_of(ctx, &p, 0);
    p.reused = 0;
    for (int i = 0; i < 5; i++) {
        tt_pass at = pass_at(1, i);
        at.context = at.last = i == 4;
        ctx->matrix_unit = unit[i];
        pass_of(ctx, &p, at);
        expect(p.reused == reused[i], "pass %d: %d views of what was laid out",
               i, p.reused);
    }
    expect(p.differ == 0, "%d views differ where the unit changes", p.differ);
    close_pair(&p);
    ctx->matrix_unit = before;
}

/* bf16 numbers in the slots: one of a pair has half the bytes, and the same
 * answers. */
static void half_of(tt_ctx *ctx, const char *text)
{
    halves = true;
    policy_of(ctx, text);
    halves = false;
}

/* In every class. */
static void every_class(tt_ctx *ctx)
{
    const tt_ops *before = ctx->ops;
    for (int c = 1; c < TT_CLASS_COUNT; c++) {
        ctx->ops = tt_ops_class(before, (tt_class)c);
        policy_of(ctx, "fifo:budget=7");
        half_of(ctx, "fifo:budget=7");
        half_of(ctx, "longlive:budget=7");
        policy_of(ctx, "tether:budget=10:sink=2:recent=3");
        ctx->ops = before;
    }
}

static bool plain_c(void)
{
#ifdef TT_REAL_DOUBLE
    return true;
#else
    return !strcmp(exact_kernels()->name, "generic");
#endif
}

/* As they are. Kernels in plain C have the layout of the others and take a
 * hundred times as long, an emulator's ten times that: some will do. */
static void with(tt_ctx *ctx)
{
    laying = true;
    failure(ctx);
    given_up(ctx);
    if (!test_guarded()) counts(ctx);
    if (plain_c()) {
        policy_of(ctx, "fifo:budget=7");
        policy_of(ctx, "tether:budget=10:sink=2:recent=3");
        own_of(ctx, &stale_values, true);
        classes_of(ctx, TT_CLASS_F32, TT_CLASS_F32, TT_CLASS_VDP);
        classes_of(ctx, TT_CLASS_F32, TT_CLASS_VDP, TT_CLASS_F32);
        if (ctx->ops->cls == TT_CLASS_F32) unit_changes(ctx);
        return;
    }
    every_policy(ctx);
    own_policies(ctx);
    classes_change(ctx);
    if (ctx->ops->cls == TT_CLASS_F32) unit_changes(ctx);
    every_class(ctx);
}

/* A window that chunks do not fill exactly is among them. */
static void silent(void *user, const char *sentence)
{
    (void)user, (void)sentence;
}

int main(void)
{
    tt_ctx *ctx = test_begin("kept");
    ctx->warn = silent;
    without(ctx);
    if (ctx->ops->packed) with(ctx);
    return test_end();
}
