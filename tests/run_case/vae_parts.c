/* vae_parts.c: reference cases of the VAE's parts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/run_case/vae_case.h"

#include <stdio.h>
#include <string.h>

/* ---- memory of a causal convolution -------------------------------------- */

/* The newest `most` frames of a slot. */
static void put_slot(vae_case *k, const char *name, const vae_slot *s,
                     int most)
{
    const tt_real *frame[2];
    const int64_t n = s->dim[0] * s->dim[1] * s->dim[2];
    const int held = vae_slot_view(s, frame);
    const int first = held > most ? held - most : 0;
    tt_real *x = vae_scratch(k, 2 * n);
    if (!x || held == first) return;
    for (int i = first; i < held; i++)
        run_fetch(k->ctx, x + (i - first) * n, frame[i], n);
    vae_put_video(k, name, x, held - first, s->dim);
}

static vae_slots *new_slots(vae_case *k)
{
    return tt_alloc0(k->ctx, &k->arena, 1, sizeof(vae_slots), "a VAE case");
}

/* ---- weights of parts: "<run>.<key>" ------------------------------------ */

static const tt_tensor *weight(vae_case *k, const char *name)
{
    const tt_tensor *t = tt_weights_find(k->weights, name);
    if (!t) tt_fail(k->ctx, TT_ESHAPE, "%s: no weight %s", k->dir, name);
    return t;
}

static tt_bind part_begin(vae_case *k)
{
    tt_bind b;
    tt_bind_begin(&b, k->ctx, k->weights, &k->arena, "VAE part");
    return b;
}

/* Has the part all its tensors? Other runs have theirs in the same file. */
static void part_end(const tt_bind *b)
{
    if (b->missing + b->misshapen)
        tt_fail(b->ctx, TT_ESHAPE, "%s: %s", tt_weights_path(b->w), b->first);
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
        vae_conv_frame(k->ctx, y + i * n * c->cout, frame, c,
                       &(vae_slot){.dim = {dim[3], dim[4], c->cin}});
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

void vae_run_conv(vae_case *k, const tt_json *run)
{
    const tt_json *kernel = tt_json_get(run, "kernel");
    const int kt = (int)tt_json_whole(tt_json_at(kernel, 0), 0);
    const int ks = (int)tt_json_whole(tt_json_at(kernel, 1), 0);
    const tt_json *strides = tt_json_get(run, "stride");
    const int64_t stride = tt_json_whole(tt_json_at(strides, 0), 0);
    const bool padded = tt_json_int(run, "pad_time_left", 0) > 0;
    const bool cached = tt_json_bool(run, "uses_cache", false);
    char name[96];
    snprintf(name, sizeof name, "%s.weight", k->run);
    const tt_tensor *w = weight(k, name);
    if (!w || w->rank != 5 || kt > 8) return;
    tt_bind b = part_begin(k);
    vae_slots *slots = new_slots(k);
    vae_conv c;
    vae_bind_conv(&b, &c, k->run, 3, w->dim[1], w->dim[0], kt, ks);
    part_end(&b);

    const int64_t chunks = tt_json_count(tt_json_get(run, "chunk_frames"));
    for (int64_t j = 0; j < chunks && !k->ctx->status; j++) {
        int64_t dim[5];
        snprintf(name, sizeof name, "x%lld", (long long)j);
        tt_real *x = vae_get_frames(k, name, dim);
        if (!x) return;
        const int64_t t = padded ? dim[2] : (dim[2] - kt) / stride + 1;
        tt_real *y = vae_scratch(k, t * dim[3] * dim[4] * c.cout);
        if (padded) {
            if (slots->count == 0)
                vae_slots_add(k->ctx, &k->arena, slots, vae_whole(dim[3]),
                              dim[4], c.cin);
            conv_steps(k, &c, &slots->slot[0], y, x, t);
        } else {
            conv_windows(k, &c, y, x, t, stride, dim);
        }
        snprintf(name, sizeof name, "y%lld", (long long)j);
        vae_put_video(k, name, y, t, (int64_t[]){dim[3], dim[4], c.cout});
        snprintf(name, sizeof name, "cache%lld", (long long)j);
        if (cached) put_slot(k, name, &slots->slot[0], 2);
    }
}

void vae_run_norm(vae_case *k, const tt_json *run)
{
    int64_t dim[5], n = 1;
    char name[96];
    (void)run;
    snprintf(name, sizeof name, "%s.gamma", k->run);
    const tt_tensor *g = weight(k, name);
    tt_real *x = vae_get_frames(k, "x", dim);
    if (!g || !x) return;
    const int rank = g->rank + 1; /* gamma [C,1,1] goes with [N,C,H,W] */
    for (int i = 0; i < rank; i++)
        if (i != 1) n *= dim[i];
    tt_real *gamma = tt_read_real(k->ctx, &k->arena, g);
    tt_channel_norm(k->ctx, x, x, n, dim[1], gamma);
    vae_put_frames(k, "y", x, rank, dim);
}

void vae_run_res(vae_case *k, const tt_json *run)
{
    const int64_t cin = tt_json_int(run, "in_dim", 0);
    const int64_t cout = tt_json_int(run, "out_dim", 0);
    const bool cached = tt_json_bool(run, "uses_cache", false);
    tt_bind b = part_begin(k);
    vae_slots *slots = new_slots(k);
    vae_res r;
    vae_bind_res(&b, &r, k->run, cin, cout);
    part_end(&b);

    const int64_t chunks = tt_json_count(tt_json_get(run, "chunk_frames"));
    for (int64_t j = 0; j < chunks && !k->ctx->status; j++) {
        int64_t dim[5];
        char name[96];
        snprintf(name, sizeof name, "x%lld", (long long)j);
        tt_real *x = vae_get_frames(k, name, dim);
        if (!x) return;
        if (slots->count == 0) {
            vae_slots_add(k->ctx, &k->arena, slots, vae_whole(dim[3]), dim[4],
                          cin);
            vae_slots_add(k->ctx, &k->arena, slots, vae_whole(dim[3]), dim[4],
                          cout);
        }
        const int64_t n = dim[3] * dim[4];
        tt_real *y = vae_scratch(k, dim[2] * n * cout);
        for (int64_t t = 0; t < dim[2]; t++)
            vae_res_step(k->ctx, y + t * n * cout, x + t * n * cin, &r,
                         slots->slot);
        snprintf(name, sizeof name, "y%lld", (long long)j);
        vae_put_video(k, name, y, dim[2], (int64_t[]){dim[3], dim[4], cout});
        for (int i = 0; cached && i < 2; i++) {
            snprintf(name, sizeof name, "cache%lld_%d", (long long)j, i);
            put_slot(k, name, &slots->slot[i], 2);
        }
    }
}

void vae_run_attn(vae_case *k, const tt_json *run)
{
    tt_bind b = part_begin(k);
    int64_t dim[5];
    vae_attn a;
    vae_bind_attn(&b, &a, k->run, tt_json_int(run, "dim", 0));
    part_end(&b);
    tt_real *x = vae_get_frames(k, "x", dim);
    if (!x) return;
    for (int64_t t = 0; t < dim[2]; t++)
        vae_attn_step(k->ctx, x + t * dim[3] * dim[4] * a.c, &a,
                      vae_whole(dim[3]), dim[4]);
    vae_put_frames(k, "y", x, 5, dim);
}

/* One chunk x [t, h, w, c] upwards; y receives what is returned in frames. */
static int64_t up_chunk(vae_case *k, tt_real *y, const tt_real *x, int64_t t,
                        const vae_resample *r, vae_slot *s, bool first)
{
    const int64_t h = s->dim[0], w = s->dim[1], n = h * w * r->c;
    const int64_t out = 4 * h * w * (r->c / 2);
    const bool doubles = r->mode == VAE_UP3D && !first;
    tt_real *pair = vae_scratch(k, 2 * n);
    for (int64_t i = 0; i < t && pair; i++, x += n) {
        if (!doubles) {
            vae_up_space(k->ctx, y + i * out, x, r, vae_whole(h), w);
            continue;
        }
        vae_slot_copy(k->ctx, s, x);
        vae_up_time(k->ctx, pair, pair + n, r, s);
        vae_up_space(k->ctx, y + 2 * i * out, pair, r, vae_whole(h), w);
        vae_up_space(k->ctx, y + (2 * i + 1) * out, pair + n, r, vae_whole(h),
                     w);
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

void vae_run_resample(vae_case *k, const tt_json *run)
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
    tt_bind b = part_begin(k);
    vae_slots *slots = new_slots(k);
    vae_slot *slot = slots ? &slots->slot[0] : NULL;
    vae_resample r;
    vae_bind_resample(&b, &r, k->run, (vae_mode)mode,
                      tt_json_int(run, "dim", 0));
    part_end(&b);

    const int64_t chunks = tt_json_count(tt_json_get(run, "chunk_frames"));
    for (int64_t j = 0; j < chunks && !k->ctx->status; j++) {
        int64_t dim[5];
        char name[96];
        snprintf(name, sizeof name, "x%lld", (long long)j);
        tt_real *x = vae_get_frames(k, name, dim);
        if (!x) return;
        const int64_t h = dim[3], w = dim[4];
        if (j == 0)
            vae_slots_add(k->ctx, &k->arena, slots,
                          vae_whole(up ? h : h / 2), up ? w : w / 2, r.c);
        tt_real *y = vae_scratch(k, 8 * dim[2] * h * w * r.c);
        const int64_t t =
            up ? up_chunk(k, y, x, dim[2], &r, slot, j == 0)
               : down_chunk(k, y, x, dim + 2, &r, slot, j == 0);
        const int64_t size[3] = {up ? 2 * h : h / 2, up ? 2 * w : w / 2,
                                 up ? r.c / 2 : r.c};
        snprintf(name, sizeof name, "y%lld", (long long)j);
        vae_put_video(k, name, y, t, size);
        snprintf(name, sizeof name, "cache%lld", (long long)j);
        if (mode == VAE_UP3D || mode == VAE_DOWN3D)
            put_slot(k, name, slot, up || j == 0 ? 2 : 1);
    }
}
