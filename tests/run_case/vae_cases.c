/* vae_cases.c: reference cases of the VAE, parts and whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  ref_data/README_vae.md. Tensors of a case are [1, C, T, H, W]; the
 *         library works on frames [H, W, C]. Seen as [C, n] and [n, C] with
 *         n = T*H*W, one is the transpose of the other. */
#include "tests/run_case/run_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tether/video.h"
#include "vae/taehv.h"
#include "vae/vae_internal.h"

#define REAL_TYPE (sizeof(tt_real) == 8 ? TT_F64 : TT_F32)

typedef struct vae_case {
    tt_ctx *ctx;
    const tt_json *json;
    const char *dir;
    tt_st_writer *out;
    tt_arena arena;
    tt_file *inputs, *weights;
    const char *run;           /* prefix of every name                        */
} vae_case;

/* ---- tensors in and out ------------------------------------------------- */

/* dst [n, inner, c] from src [n, c, inner]. */
static void transpose(tt_real *dst, const tt_real *src, int64_t n, int64_t c,
                      int64_t inner)
{
    for (int64_t b = 0; b < n; b++)
        for (int64_t k = 0; k < c; k++)
            for (int64_t i = 0; i < inner; i++)
                dst[(b * inner + i) * c + k] = src[(b * c + k) * inner + i];
}

static tt_real *real_alloc(vae_case *k, int64_t n)
{
    return tt_alloc(k->ctx, &k->arena, n, sizeof(tt_real), "a VAE case");
}

/* Input "<run>.<name>", channel axis (the second) moved last; its shape as
 * stored in dim. NULL when absent. */
static tt_real *get_frames(vae_case *k, const char *name, int64_t dim[5])
{
    char full[160];
    snprintf(full, sizeof full, "%s.%s", k->run, name);
    const tt_entry *e = tt_file_find(k->inputs, full);
    if (!e || (e->t.rank != 5 && e->t.rank != 4)) {
        tt_fail(k->ctx, TT_ESHAPE, "%s: no input %s of 4 or 5 dimensions",
                k->dir, full);
        return NULL;
    }
    int64_t inner = 1;
    for (int i = 0; i < e->t.rank; i++) {
        dim[i] = e->t.dim[i];
        if (i >= 2) inner *= dim[i];
    }
    tt_real *raw = tt_read_real(k->ctx, &k->arena, &e->t);
    tt_real *x = real_alloc(k, dim[0] * dim[1] * inner);
    if (raw && x) transpose(x, raw, dim[0], dim[1], inner);
    return x;
}

/* Output "<run>.<name>" of this shape from x with channels last. */
static void put_frames(vae_case *k, const char *name, const tt_real *x,
                       int rank, const int64_t *dim)
{
    char full[160];
    int64_t inner = 1;
    for (int i = 2; i < rank; i++) inner *= dim[i];
    tt_real *y = real_alloc(k, dim[0] * dim[1] * inner);
    if (!y) return;
    transpose(y, x, dim[0], inner, dim[1]);
    snprintf(full, sizeof full, "%s.%s", k->run, name);
    tt_st_add(k->out, full, REAL_TYPE, rank, dim, y);
}

static void put_video(vae_case *k, const char *name, const tt_real *x,
                      int64_t t, const int64_t hwc[3])
{
    const int64_t dim[5] = {1, hwc[2], t, hwc[0], hwc[1]};
    put_frames(k, name, x, 5, dim);
}

/* The newest `most` frames of a slot. */
static void put_slot(vae_case *k, const char *name, const vae_slot *s,
                     int most)
{
    const tt_real *frame[2];
    const int64_t n = s->dim[0] * s->dim[1] * s->dim[2];
    const int held = vae_slot_view(s, frame);
    const int first = held > most ? held - most : 0;
    tt_real *x = real_alloc(k, 2 * n);
    if (!x || held == first) return;
    for (int i = first; i < held; i++)
        run_fetch(k->ctx, x + (i - first) * n, frame[i], n);
    put_video(k, name, x, held - first, s->dim);
}

static vae_slots *new_slots(vae_case *k)
{
    return tt_alloc0(k->ctx, &k->arena, 1, sizeof(vae_slots), "a VAE case");
}

/* ---- weights of parts: "<run>.<key>" ------------------------------------ */

static const tt_tensor *weight(vae_case *k, const char *name)
{
    const tt_entry *e = tt_file_find(k->weights, name);
    if (!e) tt_fail(k->ctx, TT_ESHAPE, "%s: no weight %s", k->dir, name);
    return e ? &e->t : NULL;
}

static tt_tensor part_tensor(void *user, const char *name, int rank,
                             const int64_t *dim)
{
    vae_case *k = user;
    const tt_tensor *t = weight(k, name);
    bool fits = t && t->rank == rank;
    for (int i = 0; fits && i < rank; i++) fits = t->dim[i] == dim[i];
    if (fits) return *t;
    tt_fail(k->ctx, TT_ESHAPE, "%s: weight %s has another shape", k->dir,
            name);
    return (tt_tensor){0};
}

static tt_real *part_real(void *user, const char *name, int rank,
                          const int64_t *dim)
{
    vae_case *k = user;
    const tt_tensor t = part_tensor(user, name, rank, dim);
    return t.data ? tt_read_real(k->ctx, &k->arena, &t) : NULL;
}

static vae_source part_source(vae_case *k)
{
    return (vae_source){.ctx = k->ctx, .arena = &k->arena, .user = k,
                        .tensor = part_tensor, .real = part_real};
}

/* ---- parts -------------------------------------------------------------- */

static void conv_windows(vae_case *k, const vae_conv *c, tt_real *y,
                         const tt_real *x, int64_t t, int64_t stride,
                         const int64_t dim[5])
{
    const int64_t n = dim[3] * dim[4];
    for (int64_t i = 0; i < t; i++) {
        const tt_real *frame[8];
        for (int a = 0; a < c->kt; a++)
            frame[a] = x + (i * stride + a) * n * c->cin;
        vae_conv_frame(k->ctx, y + i * n * c->cout, frame, c, dim[3], dim[4]);
    }
}

static void conv_steps(vae_case *k, const vae_conv *c, vae_slot *slot,
                       tt_real *y, const tt_real *x, int64_t t)
{
    const int64_t n = slot->dim[0] * slot->dim[1];
    for (int64_t i = 0; i < t; i++) {
        vae_slot_copy(k->ctx, slot, x + i * n * c->cin);
        vae_conv_step(k->ctx, y + i * n * c->cout, c, slot);
    }
}

static void run_conv(vae_case *k, const tt_json *run)
{
    const tt_json *kernel = tt_json_get(run, "kernel");
    const int kt = (int)tt_json_at(kernel, 0)->i;
    const int ks = (int)tt_json_at(kernel, 1)->i;
    const int64_t stride = tt_json_at(tt_json_get(run, "stride"), 0)->i;
    const bool padded = tt_json_int(run, "pad_time_left", 0) > 0;
    const bool cached = tt_json_bool(run, "uses_cache", false);
    char name[96];
    snprintf(name, sizeof name, "%s.weight", k->run);
    const tt_tensor *w = weight(k, name);
    if (!w || w->rank != 5 || kt > 8) return;
    const vae_source s = part_source(k);
    vae_slots *slots = new_slots(k);
    vae_conv c;
    vae_bind_conv(&s, &c, k->run, 3, w->dim[1], w->dim[0], kt, ks);

    const int64_t chunks = tt_json_get(run, "chunk_frames")->count;
    for (int64_t j = 0; j < chunks && !k->ctx->status; j++) {
        int64_t dim[5];
        snprintf(name, sizeof name, "x%lld", (long long)j);
        tt_real *x = get_frames(k, name, dim);
        if (!x) return;
        const int64_t t = padded ? dim[2] : (dim[2] - kt) / stride + 1;
        tt_real *y = real_alloc(k, t * dim[3] * dim[4] * c.cout);
        if (padded) {
            if (slots->count == 0)
                vae_slots_add(k->ctx, &k->arena, slots, dim[3], dim[4], c.cin);
            conv_steps(k, &c, &slots->slot[0], y, x, t);
        } else {
            conv_windows(k, &c, y, x, t, stride, dim);
        }
        snprintf(name, sizeof name, "y%lld", (long long)j);
        put_video(k, name, y, t, (int64_t[]){dim[3], dim[4], c.cout});
        snprintf(name, sizeof name, "cache%lld", (long long)j);
        if (cached) put_slot(k, name, &slots->slot[0], 2);
    }
}

static void run_norm(vae_case *k, const tt_json *run)
{
    int64_t dim[5], n = 1;
    char name[96];
    (void)run;
    snprintf(name, sizeof name, "%s.gamma", k->run);
    const tt_tensor *g = weight(k, name);
    tt_real *x = get_frames(k, "x", dim);
    if (!g || !x) return;
    const int rank = g->rank + 1; /* gamma [C,1,1] goes with [N,C,H,W] */
    for (int i = 0; i < rank; i++)
        if (i != 1) n *= dim[i];
    tt_real *gamma = tt_read_real(k->ctx, &k->arena, g);
    tt_channel_norm(k->ctx, x, x, n, dim[1], gamma);
    put_frames(k, "y", x, rank, dim);
}

static void run_res(vae_case *k, const tt_json *run)
{
    const int64_t cin = tt_json_int(run, "in_dim", 0);
    const int64_t cout = tt_json_int(run, "out_dim", 0);
    const bool cached = tt_json_bool(run, "uses_cache", false);
    const vae_source s = part_source(k);
    vae_slots *slots = new_slots(k);
    vae_res r;
    vae_bind_res(&s, &r, k->run, cin, cout);

    const int64_t chunks = tt_json_get(run, "chunk_frames")->count;
    for (int64_t j = 0; j < chunks && !k->ctx->status; j++) {
        int64_t dim[5];
        char name[96];
        snprintf(name, sizeof name, "x%lld", (long long)j);
        tt_real *x = get_frames(k, name, dim);
        if (!x) return;
        if (slots->count == 0) {
            vae_slots_add(k->ctx, &k->arena, slots, dim[3], dim[4], cin);
            vae_slots_add(k->ctx, &k->arena, slots, dim[3], dim[4], cout);
        }
        const int64_t n = dim[3] * dim[4];
        tt_real *y = real_alloc(k, dim[2] * n * cout);
        for (int64_t t = 0; t < dim[2]; t++)
            vae_res_step(k->ctx, y + t * n * cout, x + t * n * cin, &r,
                         slots->slot);
        snprintf(name, sizeof name, "y%lld", (long long)j);
        put_video(k, name, y, dim[2], (int64_t[]){dim[3], dim[4], cout});
        for (int i = 0; cached && i < 2; i++) {
            snprintf(name, sizeof name, "cache%lld_%d", (long long)j, i);
            put_slot(k, name, &slots->slot[i], 2);
        }
    }
}

static void run_attn(vae_case *k, const tt_json *run)
{
    const vae_source s = part_source(k);
    int64_t dim[5];
    vae_attn a;
    vae_bind_attn(&s, &a, k->run, tt_json_int(run, "dim", 0));
    tt_real *x = get_frames(k, "x", dim);
    if (!x) return;
    for (int64_t t = 0; t < dim[2]; t++)
        vae_attn_step(k->ctx, x + t * dim[3] * dim[4] * a.c, &a, dim[3],
                      dim[4]);
    put_frames(k, "y", x, 5, dim);
}

/* One chunk x [t, h, w, c] upwards; y receives what is returned in frames. */
static int64_t up_chunk(vae_case *k, tt_real *y, const tt_real *x, int64_t t,
                        const vae_resample *r, vae_slot *s, bool first)
{
    const int64_t h = s->dim[0], w = s->dim[1], n = h * w * r->c;
    const int64_t out = 4 * h * w * (r->c / 2);
    const bool doubles = r->mode == VAE_UP3D && !first;
    tt_real *pair = real_alloc(k, 2 * n);
    for (int64_t i = 0; i < t && pair; i++, x += n) {
        if (!doubles) {
            vae_up_space(k->ctx, y + i * out, x, r, h, w);
            continue;
        }
        vae_slot_copy(k->ctx, s, x);
        vae_up_time(k->ctx, pair, pair + n, r, s);
        vae_up_space(k->ctx, y + 2 * i * out, pair, r, h, w);
        vae_up_space(k->ctx, y + (2 * i + 1) * out, pair + n, r, h, w);
    }
    return doubles ? 2 * t : t;
}

/* Downwards; the slot has the halved size, x [t, h, w, c] those of dim. */
static int64_t down_chunk(vae_case *k, tt_real *y, const tt_real *x,
                          const int64_t dim[3], const vae_resample *r,
                          vae_slot *s, bool first)
{
    const int64_t out = s->dim[0] * s->dim[1] * r->c;
    const int64_t t = dim[0], h = dim[1], w = dim[2];
    int64_t made = 0;
    for (int64_t i = 0; i < t; i++, x += h * w * r->c) {
        if (r->mode == VAE_DOWN2D) {
            vae_down_space(k->ctx, y + made++ * out, x, r, h, w);
            continue;
        }
        vae_down_space(k->ctx, vae_slot_input(s), x, r, h, w);
        if (vae_down_time(k->ctx, y + made * out, r, s, first, i)) made++;
    }
    return made;
}

static void run_resample(vae_case *k, const tt_json *run)
{
    static const char *const modes[] = {"upsample2d", "upsample3d",
                                        "downsample2d", "downsample3d"};
    const char *wanted = tt_json_str(run, "mode", "");
    int mode = 0;
    while (mode < 4 && strcmp(modes[mode], wanted) != 0) mode++;
    if (mode == 4) {
        tt_fail(k->ctx, TT_EUNSUPPORTED, "%s: unknown mode '%s'", k->dir,
                wanted);
        return;
    }
    const bool up = mode == VAE_UP2D || mode == VAE_UP3D;
    const vae_source s = part_source(k);
    vae_slots *slots = new_slots(k);
    vae_slot *slot = slots ? &slots->slot[0] : NULL;
    vae_resample r;
    vae_bind_resample(&s, &r, k->run, (vae_mode)mode,
                      tt_json_int(run, "dim", 0));

    const int64_t chunks = tt_json_get(run, "chunk_frames")->count;
    for (int64_t j = 0; j < chunks && !k->ctx->status; j++) {
        int64_t dim[5];
        char name[96];
        snprintf(name, sizeof name, "x%lld", (long long)j);
        tt_real *x = get_frames(k, name, dim);
        if (!x) return;
        const int64_t h = dim[3], w = dim[4];
        if (j == 0)
            vae_slots_add(k->ctx, &k->arena, slots, up ? h : h / 2,
                          up ? w : w / 2, r.c);
        tt_real *y = real_alloc(k, 8 * dim[2] * h * w * r.c);
        const int64_t t =
            up ? up_chunk(k, y, x, dim[2], &r, slot, j == 0)
               : down_chunk(k, y, x, dim + 2, &r, slot, j == 0);
        const int64_t size[3] = {up ? 2 * h : h / 2, up ? 2 * w : w / 2,
                                 up ? r.c / 2 : r.c};
        snprintf(name, sizeof name, "y%lld", (long long)j);
        put_video(k, name, y, t, size);
        snprintf(name, sizeof name, "cache%lld", (long long)j);
        if (mode == VAE_UP3D || mode == VAE_DOWN3D)
            put_slot(k, name, slot, up || j == 0 ? 2 : 1);
    }
}

/* ---- the whole model: where it comes from ------------------------------- */

/* README_vae.md, "Procedural weights". */
static uint64_t key_hash(const char *key)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *key; key++) h = (h ^ (unsigned char)*key) * 0x100000001b3u;
    return h;
}

static float unit(uint64_t start, uint64_t i)
{
    const uint64_t golden = 0x9E3779B97F4A7C15u;
    uint64_t x = start + (i + 1) * golden;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x = x ^ (x >> 31);
    return (float)(x >> 40) * 0x1p-23f - 1.0f;
}

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

typedef struct procedural {
    tt_ctx *ctx;
    tt_arena *arena;
    uint64_t seed;
} procedural;

static tt_tensor procedural_tensor(void *user, const char *name, int rank,
                                   const int64_t *dim)
{
    const procedural *p = user;
    int64_t n = 1, fan_in = 1;
    for (int i = 0; i < rank; i++) n *= dim[i];
    for (int i = 1; i < rank; i++) fan_in *= dim[i];
    const uint64_t start = key_hash(name) + p->seed * 0x9E3779B97F4A7C15u;
    const bool gamma = ends_with(name, ".gamma");
    const bool bias = ends_with(name, ".bias");
    const float scale = gamma  ? 0.25f
                        : bias ? 0.1f
                               : (float)sqrt(3.0 / (double)fan_in);
    float *x = tt_alloc(p->ctx, p->arena, n, sizeof *x, "procedural weights");
    if (!x) return (tt_tensor){0};
    for (int64_t i = 0; i < n; i++) {
        const float v = scale * unit(start, (uint64_t)i);
        x[i] = gamma ? 1.0f + v : v;
    }
    return tt_tensor_make(x, TT_F32, rank, dim);
}

static tt_real *procedural_real(void *user, const char *name, int rank,
                                const int64_t *dim)
{
    const procedural *p = user;
    const tt_tensor t = procedural_tensor(user, name, rank, dim);
    return t.data ? tt_read_real(p->ctx, p->arena, &t) : NULL;
}

static bool latent_stats(vae_case *k, double *mean, double *std, int64_t z)
{
    const tt_json *m = tt_json_get(k->json, "latent_mean");
    const tt_json *s = tt_json_get(k->json, "latent_std");
    if (!m || !s || m->count != z || s->count != z || z > 256) {
        tt_fail(k->ctx, TT_ESHAPE, "%s: latent_mean and latent_std must hold "
                "%lld numbers", k->dir, (long long)z);
        return false;
    }
    for (int64_t i = 0; i < z; i++) {
        mean[i] = tt_json_at(m, i)->num;
        std[i] = tt_json_at(s, i)->num;
    }
    return true;
}

/* The model of the case with only the part that one run needs. */
static tt_vae *open_model(vae_case *k, unsigned part)
{
    const tt_json *config = tt_json_get(k->json, "config");
    const int64_t z = tt_json_int(config, "z_dim", 0);
    double mean[256], std[256];
    tt_vae *v = NULL;
    if (!latent_stats(k, mean, std, z)) return NULL;
    const tt_json *seed = tt_json_get(k->json, "weight_seed");
    if (seed) {
        v = vae_new(k->ctx, part, tt_json_int(config, "dim", 0), z);
        if (!v) return NULL;
        procedural p = {.ctx = k->ctx, .arena = &v->arena,
                        .seed = (uint64_t)seed->i};
        vae_bind(v, &(vae_source){.ctx = k->ctx, .arena = &v->arena,
                                  .user = &p, .tensor = procedural_tensor,
                                  .real = procedural_real});
        vae_set_stats(k->ctx, v, mean, std);
        return v;
    }
    char path[600];
    const char *file = tt_json_str(k->json, "pth", NULL);
    if (!file) file = tt_json_str(k->json, "weights", "weights.safetensors");
    snprintf(path, sizeof path, "%s/%s", k->dir, file);
    tt_weights *w = NULL;
    if (tt_weights_open(k->ctx, &w, path, TT_MODEL_VAE, NULL)) return NULL;
    vae_load(k->ctx, &v, w, part, mean, std);
    return v;
}

/* ---- the whole model: taps ---------------------------------------------- */

/* All frames seen under one name. */
typedef struct tapped {
    struct tapped *next;
    char name[64];
    int64_t dim[3];
    int64_t frames, room;
    tt_real *x;
} tapped;

typedef struct taps {
    vae_case *k;
    tapped *first, **end;
} taps;

static void tap(void *user, const char *path, tt_dtype dtype, int rank,
                const int64_t *dim, const void *data)
{
    taps *all = user;
    vae_case *k = all->k;
    const char *at = strstr(path, "/frame.");
    long long chunk = 0;
    char point[48], name[64];
    if (dtype != REAL_TYPE || rank != 3 || !at
        || sscanf(at, "/frame.%lld/%47[^/]", &chunk, point) != 2)
        return;
    if (strcmp(point, "denorm") == 0 || strcmp(point, "conv2") == 0)
        snprintf(name, sizeof name, "%s", point);
    else
        snprintf(name, sizeof name, "tap.%s.c%lld", point, chunk);
    tapped *t = all->first;
    while (t && strcmp(t->name, name) != 0) t = t->next;
    const int64_t n = dim[0] * dim[1] * dim[2];
    if (!t) {
        t = tt_alloc0(k->ctx, &k->arena, 1, sizeof *t, "a tap");
        if (!t) return;
        memcpy(t->name, name, sizeof name);
        memcpy(t->dim, dim, sizeof t->dim);
        *all->end = t;
        all->end = &t->next;
    }
    if (t->frames == t->room) {
        tt_real *x = real_alloc(k, (2 * t->room + 1) * n);
        if (!x) return;
        if (t->frames)
            memcpy(x, t->x, (size_t)(t->frames * n) * sizeof *x);
        t->x = x;
        t->room = 2 * t->room + 1;
    }
    memcpy(t->x + t->frames++ * n, data, (size_t)n * sizeof(tt_real));
}

/* ---- the whole model: runs ---------------------------------------------- */

typedef struct film {
    tt_real *raw;     /* [F, H, W, 3]                                         */
    uint8_t *rgb;
    int64_t frames, room;
} film;

static tt_status keep_frame(void *user, const tt_real *rgb, int64_t height,
                            int64_t width)
{
    film *f = user;
    if (f->frames == f->room) return TT_END;
    const int64_t n = height * width, at = f->frames++ * n * 3;
    memcpy(f->raw + at, rgb, (size_t)n * 3 * sizeof *rgb);
    tt_rgb8_from_real(f->rgb + at, rgb, n, 3, 1);
    return TT_OK;
}

static void put_caches(vae_case *k, const tt_vae_decoder *d, int64_t j)
{
    const tt_real *frame[2];
    int64_t dim[3];
    int held;
    for (int i = 0; (held = tt_vae_decoder_slot(d, i, frame, dim)) >= 0; i++) {
        const int64_t n = dim[0] * dim[1] * dim[2];
        char name[64];
        tt_real *x = real_alloc(k, 2 * n);
        if (!x || held == 0) continue;
        for (int f = 0; f < held; f++)
            run_fetch(k->ctx, x + f * n, frame[f], n);
        snprintf(name, sizeof name, "cache%lld.slot%d", (long long)j, i);
        put_video(k, name, x, held, dim);
    }
}

static void run_decode(vae_case *k, const tt_json *run, const tt_vae *v)
{
    char full[160];
    snprintf(full, sizeof full, "%s.z", k->run);
    const tt_entry *e = tt_file_find(k->inputs, full);
    if (!e || e->t.rank != 5 || e->t.dim[1] != v->z) {
        tt_fail(k->ctx, TT_ESHAPE, "%s: no latents %s of %lld channels",
                k->dir, full, (long long)v->z);
        return;
    }
    const int64_t T = e->t.dim[2], h = e->t.dim[3], w = e->t.dim[4];
    const int64_t F = 1 + 4 * (T - 1), pixels = 64 * h * w;
    const tt_real *z = tt_read_real(k->ctx, &k->arena, &e->t);
    tt_real *frame = real_alloc(k, v->z * h * w);
    film f = {.room = F, .raw = real_alloc(k, F * pixels * 3),
              .rgb = tt_alloc(k->ctx, &k->arena, F * pixels * 3, 1, "film")};
    tt_vae_decoder *d = NULL;
    if (!k->ctx->status) tt_vae_decoder_open(k->ctx, &d, v, h, w);
    for (int64_t j = 0; j < T && !k->ctx->status; j++) {
        for (int64_t c = 0; c < v->z; c++)
            memcpy(frame + c * h * w, z + (c * T + j) * h * w,
                   (size_t)(h * w) * sizeof *z);
        tt_vae_decode_next(k->ctx, d, frame, keep_frame, &f);
        if (tt_json_bool(run, "caches", false)) put_caches(k, d, j);
    }
    tt_vae_decoder_close(d);
    if (!k->ctx->status && f.frames != F)
        tt_fail(k->ctx, TT_ESHAPE, "%s: %lld frames from %lld latents",
                k->dir, (long long)f.frames, (long long)T);
    if (k->ctx->status) return;
    put_video(k, "video_raw", f.raw, F, (int64_t[]){8 * h, 8 * w, 3});
    snprintf(full, sizeof full, "%s.u8", k->run);
    tt_st_add(k->out, full, TT_U8, 4, (int64_t[]){F, 8 * h, 8 * w, 3}, f.rgb);
}

static void run_encode(vae_case *k, const tt_vae *v)
{
    int64_t dim[5], made = 0;
    const tt_real *video = get_frames(k, "video", dim);
    if (!video) return;
    const int64_t F = dim[2], H = dim[3], W = dim[4];
    const int64_t T = 1 + (F - 1) / 4, n = (H / 8) * (W / 8);
    tt_real *z = real_alloc(k, v->z * n);
    tt_real *all = real_alloc(k, T * v->z * n);
    tt_vae_encoder *e = NULL;
    if (!k->ctx->status) tt_vae_encoder_open(k->ctx, &e, v, H, W);
    for (int64_t j = 0; j < F && !k->ctx->status; j++) {
        bool ready;
        tt_vae_encode_next(k->ctx, e, z, &ready, video + j * H * W * 3);
        if (ready) transpose(all + made++ * n * v->z, z, 1, v->z, n);
    }
    tt_vae_encoder_close(e);
    if (!k->ctx->status)
        put_video(k, "z", all, made, (int64_t[]){H / 8, W / 8, v->z});
}

static void run_whole(vae_case *k, const tt_json *run)
{
    const bool decode = strcmp(tt_json_str(run, "op", ""), "decode") == 0;
    tt_vae *v = open_model(k, decode ? TT_VAE_DECODER : TT_VAE_ENCODER);
    taps all = {.k = k};
    all.end = &all.first;
    if (v && !k->ctx->status) {
        if (tt_json_bool(run, "taps", false)) {
            k->ctx->tap = tap;
            k->ctx->tap_user = &all;
        }
        if (decode) run_decode(k, run, v);
        else run_encode(k, v);
        k->ctx->tap = NULL;
    }
    for (tapped *t = all.first; t && !k->ctx->status; t = t->next)
        put_video(k, t->name, t->x, t->frames, t->dim);
    tt_vae_close(v);
}

/* ---- the tiny VAE -------------------------------------------------------- */

static tt_status keep_raw(void *user, const tt_real *rgb, int64_t height,
                          int64_t width)
{
    film *f = user;
    const int64_t n = height * width * 3;
    if (f->frames < f->room)
        transpose(f->raw + f->frames * n, rgb, 1, height * width, 3);
    f->frames++;
    return TT_OK;
}

/* "raw" [1, 4T, 3, H, W] and "frames", clamped and without the first three. */
static void tiny_decode(vae_case *k, const taehv *m, const tt_tensor *in)
{
    char name[160];
    const int64_t T = in->dim[1], h = in->dim[3], w = in->dim[4];
    const int64_t each = 3 * 64 * h * w, size = TAEHV_Z * h * w;
    const tt_real *z = tt_read_real(k->ctx, &k->arena, in);
    film f = {.room = 4 * T, .raw = real_alloc(k, 4 * T * each)};
    taehv_decoder d;
    taehv_decoder_init(k->ctx, &d, &k->arena, m, h, w, 0);
    for (int64_t t = 0; t < T && !k->ctx->status; t++)
        taehv_decode(k->ctx, &d, z + t * size, keep_raw, &f);
    if (k->ctx->status || f.frames != 4 * T) return;
    snprintf(name, sizeof name, "%s.raw", k->run);
    tt_st_add(k->out, name, REAL_TYPE, 5,
              (int64_t[]){1, 4 * T, 3, 8 * h, 8 * w}, f.raw);
    for (int64_t i = 0; i < 4 * T * each; i++)
        f.raw[i] = f.raw[i] < 0 ? 0 : f.raw[i] > 1 ? 1 : f.raw[i];
    snprintf(name, sizeof name, "%s.frames", k->run);
    tt_st_add(k->out, name, REAL_TYPE, 5,
              (int64_t[]){1, 4 * T - TAEHV_TRIM, 3, 8 * h, 8 * w},
              f.raw + TAEHV_TRIM * each);
}

static void tiny_encode(vae_case *k, const taehv *m, const tt_tensor *in)
{
    char name[160];
    const int64_t F = in->dim[1], H = in->dim[3], W = in->dim[4];
    const int64_t T = (F + 3) / 4, size = TAEHV_Z * (H / 8) * (W / 8);
    const tt_real *video = tt_read_real(k->ctx, &k->arena, in);
    tt_real *frame = real_alloc(k, 3 * H * W), *z = real_alloc(k, T * size);
    taehv_encoder e;
    int64_t made = 0;
    taehv_encoder_init(k->ctx, &e, &k->arena, m, H, W);
    for (int64_t i = 0; i < 4 * T && !k->ctx->status; i++) {
        const int64_t from = i < F ? i : F - 1; /* the last one, repeated */
        transpose(frame, video + from * 3 * H * W, 1, 3, H * W);
        made += taehv_encode(k->ctx, &e, z + made * size, frame);
    }
    snprintf(name, sizeof name, "%s.z", k->run);
    if (!k->ctx->status)
        tt_st_add(k->out, name, REAL_TYPE, 5,
                  (int64_t[]){1, made, TAEHV_Z, H / 8, W / 8}, z);
}

static void run_tiny(vae_case *k, const tt_json *run)
{
    const bool decode = strcmp(tt_json_str(run, "op", ""), "decode") == 0;
    char name[160];
    taehv m = {0};
    procedural p = {.ctx = k->ctx, .arena = &k->arena,
                    .seed = (uint64_t)tt_json_int(k->json, "weight_seed", 0)};
    snprintf(name, sizeof name, "%s.%s", k->run, decode ? "z" : "video");
    const tt_entry *in = tt_file_find(k->inputs, name);
    if (!in || in->t.rank != 5 || in->t.dim[0] != 1
        || in->t.dim[2] != (decode ? TAEHV_Z : 3)) {
        tt_fail(k->ctx, TT_ESHAPE, "%s: no input %s of the right shape",
                k->dir, name);
        return;
    }
    taehv_bind(&m, &(vae_source){.ctx = k->ctx, .arena = &k->arena, .user = &p,
                                 .tensor = procedural_tensor,
                                 .real = procedural_real},
               decode ? TT_VAE_DECODER : TT_VAE_ENCODER);
    if (decode) tiny_decode(k, &m, &in->t);
    else tiny_encode(k, &m, &in->t);
}

/* ---- dispatch ----------------------------------------------------------- */

static const struct {
    const char *kind;
    void (*run)(vae_case *k, const tt_json *run);
    bool parts; /* weights.safetensors holds "<run>.<key>" */
} kinds[] = {
    {"causal_conv3d", run_conv, true},
    {"rms_norm", run_norm, true},
    {"residual_block", run_res, true},
    {"attention_block", run_attn, true},
    {"resample", run_resample, true},
    {"vae_full", run_whole, false},
    {"vae_full_procedural", run_whole, false},
    {"vae_pth", run_whole, false},
    {"taehv_procedural", run_tiny, false},
};

tt_status run_vae_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                       tt_st_writer *out)
{
    const char *kind = tt_json_str(json, "kind", "");
    const size_t n = sizeof kinds / sizeof kinds[0];
    size_t i = 0;
    while (i < n && strcmp(kinds[i].kind, kind) != 0) i++;
    if (i == n) return TT_EUNSUPPORTED; /* somebody else's */
    vae_case k = {.ctx = ctx, .json = json, .dir = dir, .out = out};
    char path[600];
    snprintf(path, sizeof path, "%s/inputs.safetensors", dir);
    TT_TRY(tt_file_open(ctx, &k.inputs, path));
    snprintf(path, sizeof path, "%s/weights.safetensors", dir);
    if (kinds[i].parts) tt_file_open(ctx, &k.weights, path);
    const tt_json *run = tt_json_get(json, "runs");
    run = run ? run->first : NULL;
    for (; run && !ctx->status; run = run->next) {
        k.run = tt_json_str(run, "run", "");
        kinds[i].run(&k, run);
        tt_arena_free(&k.arena);
    }
    if (k.weights) tt_file_close(k.weights);
    tt_file_close(k.inputs);
    return ctx->status;
}
