/* cache.c: the KV cache of all layers, whatever the policy.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   one k and one v buffer per layer hold unrotated keys and values; the
 *         policy moves tokens about in them (layer.c) and says what attention
 *         reads (relrope.c). At 1.3B and 832x480, 21 frames take 12.1 GB, or
 *         half of it as bf16 numbers (tt_geometry.bf16). There is no second
 *         copy, unless rotated keys are kept: then half of it.
 * Holds   never-written slots are zero (upstream leaves the previous video in
 *         them; it shows only where a policy reads a slot it never wrote).
 * Next    relrope.c, fifo.c, tether.c */
#include "cache/classes.h"
#include "cache/kept.h"
#include "core/device.h"

#include <string.h>
#include <unistd.h>

/* Rows of the rotary tables of the official code. */
#define OFFICIAL_POSITIONS 1024

struct tt_cache {
    tt_arena arena;              /* holds this struct as well */
    const tt_policy_class *cls;
    tt_policy_options opt;
    tt_geometry geo;
    tt_layer *layer;             /* [geo.layers] */
    cache_kept *kept;            /* [geo.layers], or NULL */
    size_t state_size;
    int64_t of_heads;            /* values at the end of it, see policy.h */
    tt_real *shared;
    bool untouched;              /* since it was opened                       */
    tt_rope_table rope;
    tt_event_fn event_fn;
    void *event_user;
};

static size_t state_size(const tt_policy_class *cls,
                         const tt_policy_options *opt, const tt_geometry *geo)
{
    return cls->state_size ? cls->state_size(opt, geo) : cls->state_bytes;
}

static size_t shared_size(const tt_policy_class *cls,
                          const tt_policy_options *opt, const tt_geometry *geo)
{
    return cls->shared_size ? cls->shared_size(opt, geo) : 0;
}

static int64_t of_heads(const tt_policy_class *cls,
                        const tt_policy_options *opt, const tt_geometry *geo)
{
    if (!cls->values_of_heads) return 0;
    const tt_state_heads s = cls->state_heads(opt, geo);
    return s.rows * geo->H * (int64_t)(s.unit / sizeof(tt_real));
}

/* Bytes of a layer's state before those values. */
static size_t cache_state_front(const tt_cache *c)
{
    return c->state_size - (size_t)c->of_heads * sizeof(tt_real);
}

int64_t tt_cache_bytes(const tt_policy_class *cls, const tt_policy_options *opt,
                       const tt_geometry *geo)
{
    const int64_t cap = cls->slots(opt, geo);
    const int64_t kv[] = { 2, cap, cache_row(geo) };
    const int64_t meta[] = { 3, cap };
    const int64_t shared = (int64_t)shared_size(cls, opt, geo);
    int64_t a, b, all, once;
    if (!tt_checked_size(&a, kv, 3, sizeof(tt_real))
        || !tt_checked_size(&b, meta, 2, sizeof(int32_t))
        || !tt_checked_add(&a, a, b)
        || !tt_checked_add(&a, a, (int64_t)state_size(cls, opt, geo))
        || !tt_checked_mul(&all, a, geo->layers)
        || !tt_checked_mul(&once, shared, sizeof(tt_real))
        || !tt_checked_add(&all, all, once))
        return INT64_MAX;
    return all;
}

/* Physical memory in bytes, 0 when the system does not say. */
static int64_t machine_memory(void)
{
#if defined(_SC_PHYS_PAGES) && defined(_SC_PAGESIZE)
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages > 0 && size > 0) return (int64_t)pages * size;
#endif
    return 0;
}

static tt_status check_memory(tt_ctx *ctx, const tt_policy_class *cls,
                              const tt_policy_options *opt,
                              const tt_geometry *geo)
{
    const int64_t need = tt_cache_bytes(cls, opt, geo);
    const int64_t have = ctx->device ? 0 : machine_memory(); /* else its own */
    if (need == INT64_MAX)
        return tt_fail(ctx, TT_ENOMEM, "the KV cache would need more bytes "
                       "than a 64-bit size can hold; use a smaller picture, "
                       "fewer frames or a smaller budget");
    if (have > 0 && need > have)
        return tt_fail(ctx, TT_ENOMEM,
                       "the KV cache of %lld frames of %lld tokens in %lld "
                       "layers needs %.1f GB, the machine has %.1f GB; use a "
                       "smaller picture or a smaller budget",
                       (long long)(cls->slots(opt, geo) / geo->L),
                       (long long)geo->L, (long long)geo->layers,
                       (double)need / 1e9, (double)have / 1e9);
    return TT_OK;
}

/* Rotary angles for every position a plan can ask for. */
static void make_rope(tt_ctx *ctx, tt_cache *c)
{
    const int64_t frames = c->cls->positions(&c->opt, &c->geo);
    int64_t n = frames;
    if (n < c->geo.grid_h) n = c->geo.grid_h;
    if (n < c->geo.grid_w) n = c->geo.grid_w;
    if (n > OFFICIAL_POSITIONS)
        tt_warn(ctx, "%s: positions go up to %lld, beyond the %d rows of "
                "the official rotary tables; the angles are computed directly, "
                "but the model has never seen them", c->cls->name,
                (long long)(n - 1), OFFICIAL_POSITIONS);
    tt_rope_make(ctx, &c->arena, &c->rope, c->geo.D, n);
}

/* Metadata and policy state of an empty layer whose memory is zero. */
static void start_layer(tt_ctx *ctx, tt_layer *y)
{
    y->len = y->seen = 0;
    for (int64_t i = 0; i < y->cap; i++) y->src_frame[i] = TT_SRC_NONE;
    const tt_policy_class *cls = tt_cache_class(y->cache);
    if (cls->reset) cls->reset(ctx, y);
}

static void open_layer(tt_ctx *ctx, tt_cache *c, int64_t i)
{
    tt_layer *y = &c->layer[i];
    const int64_t cap = c->cls->slots(&c->opt, &c->geo);
    const int64_t n = cap * cache_row(&c->geo);
    *y = (tt_layer){ .geo = &c->geo, .opt = &c->opt, .index = i, .cap = cap,
                     .shared = c->shared, .state_size = c->state_size,
                     .cache = c };
    y->k = tt_values0_in(ctx, &c->arena, n, "cached keys");
    y->v = tt_values0_in(ctx, &c->arena, n, "cached values");
    y->src_frame = tt_alloc0(ctx, &c->arena, cap, sizeof(int32_t), "cache");
    y->sidx = tt_alloc0(ctx, &c->arena, cap, sizeof(int32_t), "cache");
    y->tpos = tt_alloc0(ctx, &c->arena, cap, sizeof(int32_t), "cache");
    const size_t front = cache_state_front(c);
    y->state = tt_alloc0(ctx, &c->arena, (int64_t)(ctx->device ? front
                         : c->state_size), 1, "cache policy");
    if (c->of_heads > 0 && ctx->device)
        y->of_heads = tt_values0_in(ctx, &c->arena, c->of_heads,
                                    "cache policy");
    else if (c->of_heads > 0 && y->state)
        y->of_heads = (tt_real *)((char *)y->state + front);
    if (!ctx->status) start_layer(ctx, y);
}

tt_status tt_cache_open(tt_ctx *ctx, tt_cache **out, const tt_policy_class *cls,
                        const tt_policy_options *opt, const tt_geometry *geo)
{
    return tt_cache_open_in(ctx, out, cls, opt, geo, NULL);
}

tt_status tt_cache_open_in(tt_ctx *ctx, tt_cache **out,
                           const tt_policy_class *cls,
                           const tt_policy_options *opt, const tt_geometry *geo,
                           const char *folder)
{
    *out = NULL;
    if (ctx->status) return ctx->status;
    tt_policy_options checked = *opt;
    if (!cls) cls = tt_policy_class_of(opt);
    if (cls) checked.name = cls->name;
    checked.cls = cls;
    TT_TRY(cache_check_geometry(ctx, geo));
    TT_TRY(tt_policy_check(ctx, &checked, geo));
    if (folder && ctx->device)
        return tt_fail(ctx, TT_EUNSUPPORTED, "%s: keys and values cannot lie "
                       "there, %s has them", folder, ctx->device->name);
    if (!folder) TT_TRY(check_memory(ctx, cls, &checked, geo));

    tt_arena arena = {.folder = folder};
    tt_cache *c = tt_alloc0(ctx, &arena, 1, sizeof *c, "cache");
    if (!c) return ctx->status;
    *c = (tt_cache){ .arena = arena, .cls = cls, .opt = checked, .geo = *geo,
                     .untouched = true };
    if (!geo->heads) c->geo.heads = geo->H;
    c->state_size = state_size(cls, &c->opt, &c->geo);
    c->of_heads = of_heads(cls, &c->opt, &c->geo);
    c->layer = tt_alloc0(ctx, &c->arena, geo->layers, sizeof *c->layer,
                         "cache");
    c->shared = tt_values0_in(ctx, &c->arena,
                              (int64_t)shared_size(cls, &c->opt, &c->geo),
                              "cache policy");
    make_rope(ctx, c);
    for (int64_t i = 0; i < geo->layers && !ctx->status; i++)
        open_layer(ctx, c, i);
    if (ctx->status) {
        tt_cache_close(c);
        return ctx->status;
    }
    *out = c;
    return TT_OK;
}

tt_status tt_cache_keep_keys(tt_ctx *ctx, tt_cache *c)
{
    if (ctx->status) return ctx->status;
    if (!c) return tt_fail(ctx, TT_EINVAL, "there is no cache to keep keys of");
    if (c->kept) return TT_OK;
    cache_kept *kept = tt_alloc0(ctx, &c->arena, c->geo.layers, sizeof *kept,
                                 "kept keys");
    for (int64_t i = 0; i < c->geo.layers && !ctx->status; i++)
        kept_make(ctx, &c->arena, &kept[i], &c->layer[i]);
    if (!ctx->status) c->kept = kept;
    return ctx->status;
}

cache_kept *cache_kept_of(tt_cache *c, int64_t layer)
{
    return c->kept ? &c->kept[layer] : NULL;
}

void tt_cache_close(tt_cache *c)
{
    if (!c) return;
    tt_arena arena = c->arena;   /* c itself lives in it */
    tt_arena_free(&arena);
}

void tt_cache_reset(tt_ctx *ctx, tt_cache *c)
{
    if (ctx->status || c->untouched) return;
    for (int64_t i = 0; i < c->geo.layers; i++) {
        tt_layer *y = &c->layer[i];
        const int64_t n = y->cap * cache_row(&c->geo);
        tt_zero(ctx, y->k, n);
        tt_zero(ctx, y->v, n);
        memset(y->sidx, 0, (size_t)y->cap * sizeof *y->sidx);
        memset(y->tpos, 0, (size_t)y->cap * sizeof *y->tpos);
        if (c->state_size) memset(y->state, 0, cache_state_front(c));
        tt_zero(ctx, y->of_heads, c->of_heads);
        start_layer(ctx, y);
    }
}

const tt_policy_class *tt_cache_class(const tt_cache *c)
{
    return c ? c->cls : NULL;
}

const tt_policy_options *tt_cache_options(const tt_cache *c)
{
    return c ? &c->opt : NULL;
}

const tt_geometry *tt_cache_geometry(const tt_cache *c)
{
    return c ? &c->geo : NULL;
}

const tt_rope_table *tt_cache_rope(const tt_cache *c)
{
    return c ? &c->rope : NULL;
}

tt_layer *cache_layer(const tt_cache *c, int64_t layer)
{
    return c && layer >= 0 && layer < c->geo.layers ? &c->layer[layer] : NULL;
}

const tt_layer *tt_cache_look(const tt_cache *c, int64_t layer)
{
    return cache_layer(c, layer);
}

/* Who asks may write to it. */
tt_layer *tt_cache_layer(tt_cache *c, int64_t layer)
{
    tt_layer *y = cache_layer(c, layer);
    if (!y) return NULL;
    kept_forget(cache_kept_of(c, layer));
    c->untouched = false;
    return y;
}

/* ---- the policy's calls -------------------------------------------------- */

/* All a policy does is one row of the profile: operators that it calls do not
 * count in theirs. */
typedef struct stopwatch {
    bool on;
    double begin;
} stopwatch;

static stopwatch start_policy(tt_ctx *ctx)
{
    const stopwatch w = { ctx->profiling, ctx->profiling ? tt_now() : 0 };
    ctx->profiling = false;
    return w;
}

static void stop_policy(tt_ctx *ctx, stopwatch w)
{
    ctx->profiling = w.on;
    if (w.on) tt_profile_add(ctx, "cache policy", tt_now() - w.begin, 0);
}

/* A chunk's first pass sees frames that this layer has not seen. */
static void begin_chunk(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                        const tt_qkv *x)
{
    const tt_policy_class *cls = tt_cache_class(y->cache);
    const int64_t L = y->geo->L;
    kept_forget(cache_kept_of(y->cache, y->index));
    if (cls->begin) cls->begin(ctx, y, p, x);
    else tt_layer_roll(ctx, y, y->opt->S * L, p->frames * L);
    y->seen = p->start + p->frames;
}

static void store_chunk(tt_ctx *ctx, tt_layer *y, const tt_pass *p,
                        const tt_qkv *x)
{
    const tt_policy_class *cls = tt_cache_class(y->cache);
    if (ctx->status) return;
    if (cls->write) cls->write(ctx, y, p, x);
    else tt_layer_put(ctx, y, p, x);
    if (!p->context || !cls->commit || ctx->status) return;
    kept_forget(cache_kept_of(y->cache, y->index));
    cls->commit(ctx, y, p, x);
}

int64_t cache_pass_frames(const tt_cache *c, const tt_pass *p)
{
    return p->recache ? c->layer[0].len / c->geo.L : c->geo.chunk;
}

/* May this layer be told of this pass? */
static tt_status check_pass(tt_ctx *ctx, const tt_cache *c, const tt_layer *y,
                            const tt_pass *p)
{
    if (!y)
        return tt_fail(ctx, TT_EINVAL, "the cache has only %lld layers",
                       (long long)c->geo.layers);
    if (p->frames >= 1 && p->frames <= cache_pass_frames(c, p) && p->start >= 0
        && p->start <= c->geo.frames - p->frames) return TT_OK;
    return tt_fail(ctx, TT_EINVAL, "frames %lld to %lld are no chunk: the "
                   "cache takes chunks of %lld in videos of %lld frames",
                   (long long)p->start, (long long)(p->start + p->frames - 1),
                   (long long)c->geo.chunk, (long long)c->geo.frames);
}

void tt_cache_write(tt_ctx *ctx, tt_cache *c, int64_t layer, const tt_pass *p,
                    const tt_qkv *x)
{
    if (ctx->status) return;
    tt_layer *y = cache_layer(c, layer);
    if (check_pass(ctx, c, y, p)) return;
    const stopwatch w = start_policy(ctx);
    y->first = p->start + p->frames > y->seen;
    y->own_k = NULL;
    c->untouched = false;
    if (y->first) begin_chunk(ctx, y, p, x);
    if (p->recache) kept_forget(cache_kept_of(c, layer));
    store_chunk(ctx, y, p, x);
    stop_policy(ctx, w);
}

void tt_cache_done(tt_ctx *ctx, tt_cache *c, int64_t layer, const tt_pass *p)
{
    if (ctx->status) return;
    tt_layer *y = cache_layer(c, layer);
    if (check_pass(ctx, c, y, p)) return;
    kept_done(cache_kept_of(c, layer));
    if (c->cls->done) {
        const stopwatch w = start_policy(ctx);
        if (p->context) kept_forget(cache_kept_of(c, layer));
        c->cls->done(ctx, y, p);
        stop_policy(ctx, w);
    }
    if ((p->context || p->last) && y->own_k && !ctx->status)
        tt_fail(ctx, TT_EINVAL, "cache %s: the last pass of a chunk leaves it "
                "outside its slots: `write` keeps own_k NULL there, "
                "or `commit` stores what it says", c->cls->name);
    y->own_k = NULL;
}

/* ---- events -------------------------------------------------------------- */

void tt_cache_on_event(tt_cache *c, tt_event_fn fn, void *user)
{
    if (!c) return;
    c->event_fn = fn;
    c->event_user = user;
}

void tt_cache_report(tt_cache *c, const tt_event *e)
{
    if (c && c->event_fn) c->event_fn(c->event_user, e);
}

bool tt_cache_show(tt_cache *c, int64_t layer, tt_event *out)
{
    const tt_layer *y = cache_layer(c, layer);
    *out = (tt_event){ .layer = layer };
    if (!y || !c->cls->shown) return false;
    out->kind = c->cls->shown;
    c->cls->show(y, out);
    return true;
}

const void *tt_event_values(const tt_event *e, const char *field,
                            tt_dtype type, int64_t *n)
{
    const tt_field *f = e && e->kind ? e->kind->field : NULL;
    if (n) *n = 0;
    for (int i = 0; f && f[i].name; i++) {
        if (strcmp(f[i].name, field) || f[i].type != type) continue;
        if (n) *n = e->value[i].n;
        return e->value[i].at;
    }
    return NULL;
}

int64_t tt_event_int(const tt_event *e, const char *field)
{
    int64_t n;
    const int64_t *whole = tt_event_values(e, field, TT_I64, &n);
    if (whole && n > 0) return *whole;
    const uint8_t *small = tt_event_values(e, field, TT_U8, &n);
    return small && n > 0 ? *small : 0;
}
