/* identity.c: what a run is made from, as text, and the digest of its inputs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A state is of this run when both say the same, line by line; the name of the
 * first line that differs is told. */
#include "rollout/run.h"
#include "ops/backend.h"
#include "core/device.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of the file of a state (state.c). What `state` of a layer means has a version
 * of its own (tt_policy_class). */
enum { FORMAT = 2 };

uint64_t state_digest(uint64_t h, const void *data, size_t n, size_t size)
{
    const unsigned char *p = data;
    const bool little = tt_host_little_endian();
    h ^= (uint64_t)n;
    for (; n > 0; ) {            /* FNV-1a with 8-byte steps, shifted back */
        uint64_t word = 0;
        const size_t k = n < sizeof word ? n : sizeof word;
        if (little) memcpy(&word, p, k);
        for (size_t i = 0; !little && i < k; i++)
            word |= (uint64_t)p[i ^ (size - 1)] << (8 * i);
        h = (h ^ word) * UINT64_C(0x100000001b3);
        h ^= h >> 29;
        p += k;
        n -= k;
    }
    return h;
}

typedef struct lines {
    char *text;
    size_t used, room;
} lines;

TT_PRINTF(2, 3)
static void add(lines *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const size_t room = l->room - l->used;
    const int n = vsnprintf(l->text ? l->text + l->used : NULL,
                            l->text ? room : 0, fmt, ap);
    va_end(ap);
    TT_ASSERT(n >= 0 && (!l->text || (size_t)n < room));
    l->used += (size_t)n;
}

/* A digest that depends on the weights: the time embedding of one timestep. */
static uint64_t probe_weights(tt_ctx *ctx, const tt_dit *m)
{
    const int64_t n = 6 * tt_dit_get_config(m)->dim;
    const double t = 500;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *e = tt_values(ctx, n / 6), *values = tt_values(ctx, n);
    const tt_tap_fn tap = ctx->tap;
    const tt_inject_fn inject = ctx->inject;
    ctx->tap = NULL;             /* not a point of the run                    */
    ctx->inject = NULL;
    tt_dit_time(ctx, m, NULL, e, values, &t, 1);
    ctx->tap = tap;
    ctx->inject = inject;
    const tt_host *e0 = tt_get(ctx, values, n);
    const uint64_t h =
        e0 ? state_digest(0, e0, (size_t)n * sizeof *e0, sizeof *e0) : 0;
    tt_arena_reset(&ctx->scratch, mark);
    return h;
}

static uint64_t probe_values(const tt_rollout *r, const tt_host *x,
                             int64_t frames)
{
    return x ? state_digest(0, x, (size_t)(frames * r->frame_size) * sizeof *x,
                            sizeof *x)
             : 0;
}

static void describe_policy(lines *l, const tt_policy_options *p)
{
    const size_t room = l->text ? l->room - l->used : 0;
    const int n = tt_policy_describe(l->text ? l->text + l->used : NULL, room,
                                     p);
    TT_ASSERT(n >= 0 && (!l->text || (size_t)n < room));
    l->used += (size_t)n;
}

static void describe(lines *l, const tt_rollout *r, const tt_ops *ops,
                     uint64_t weights)
{
    const tt_rollout_options *o = &r->opt;
    const tt_geometry *g = tt_cache_geometry(r->cache);
    const bool own = o->vae && tt_vae_class(o->vae) != TT_CLASS_F32;
    char bits[64];
    const int64_t n = o->latents, gaps = o->nsteps - 1;
    add(l, "format=%d\n", FORMAT);
    /* a policy's own state is saved as it lies in memory */
    add(l, "type=%s%s\nclass=%s\n", TT_REAL_NAME,
        tt_host_little_endian() ? "" : ", big-endian",
        tt_bits_name(ops, bits, sizeof bits));
    add(l, "layers=%" PRId64 "\nheads=%" PRId64 "\nhead_dim=%" PRId64 "\n",
        g->layers, g->heads, g->D);
    add(l, "weights=%016" PRIx64 "\n", weights);
    add(l, "latents=%" PRId64 "\nheight=%" PRId64 "\nwidth=%" PRId64 "\n", n,
        o->h, o->w);
    add(l, "chunk=%" PRId64 "\nindependent_first_frame=%d\n", o->chunk,
        o->independent_first_frame);
    add(l, "shift=%.15g\nsteps=", o->shift);
    for (int i = 0; i < o->nsteps; i++) add(l, "%.15g,", r->schedule.t[i]);
    for (int i = 0; i < o->nfirst; i++)
        add(l, "%s%.15g,", i ? "" : "\nfirst_steps=", r->first.t[i]);
    add(l, "\ncontext_noise=%" PRId64 "\n", o->context_noise);
    add(l, "given_frames=%" PRId64 "\ngiven=%016" PRIx64 "\n",
        o->initial_frames, probe_values(r, o->initial, o->initial_frames));
    if (o->noise.noise)
        add(l, "noise=%016" PRIx64 "\nrenoise=%016" PRIx64 "\n",
            probe_values(r, o->noise.noise, o->rollouts * n),
            probe_values(r, o->noise.renoise, causvid_denoised(o) * gaps));
    else
        add(l, "seed=%" PRIu64 "\nsample=%" PRIu32 "\n", o->noise.seed,
            o->noise.sample);
    describe_policy(l, tt_cache_options(r->cache));
    add(l, "policy_state=%d\nscenes=",
        tt_cache_class(r->cache)->state_version);
    for (int i = 0; i < o->nscenes; i++)
        add(l, "%" PRId64 ":%d%s,", o->scenes[i].chunk, o->scenes[i].prompt,
            o->scenes[i].cut ? "#" : "");
    add(l, "\nrollouts=%" PRId64 "\noverlap=%" PRId64 "\nrestart=%s%s%s\n"
        "start_frames=%016" PRIx64 "\norigin=%s\n", o->rollouts, o->overlap,
        o->latent_restart ? "latent" : "vae", own ? " in " : "",
        own ? tt_class_saved(tt_vae_class(o->vae)) : "",
        probe_values(r, o->start_frame, o->rollouts - 1),
        o->origin ? o->origin : "");
}

char *state_identity(tt_ctx *ctx, tt_rollout *r)
{
    const uint64_t weights = probe_weights(ctx, r->model);
    if (ctx->status) return NULL;
    lines l = {0};
    describe(&l, r, ctx->ops, weights);       /* count */
    l = (lines){ .room = l.used + 1 };
    l.text = tt_alloc0(ctx, &r->arena, (int64_t)l.room, 1, "run record");
    if (l.text) describe(&l, r, ctx->ops, weights);
    return l.text;
}
