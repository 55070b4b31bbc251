/* policy_cases.c: what reference rollouts of single policies differ in.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  ref_data/README_policies.md. */
#include "tests/run_case/rollout_cases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- options ------------------------------------------------------------- */

/* The case's name of a policy, and ours. */
static const char *our_name(const char *theirs, const tt_json *p)
{
    static const char *const names[][2] = {
        { "fifo", "fifo" }, { "self_forcing", "fifo" },
        { "tethercache", "tether" }, { "infinity_rope", "infinity" },
        { "memrope", "memrope" }, { "deep_forcing", "deep-forcing" },
        { "deep_sink", "deep-sink" }, { "causvid", "causvid" },
        { "longlive", "longlive" }, { "reward", "reward" },
        { "causvid_rolling", "causvid-rolling" } };
    if (!strcmp(theirs, "deep_forcing")
        && !strcmp(tt_json_str(p, "mode", "pc"), "ds"))
        return "deep-sink";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i][0], theirs)) return names[i][1];
    return NULL;
}

/* A knob, where the policy has it and the case says what it is. */
static void put(tt_policy_options *o, const char *knob, double value)
{
    if (!isnan(value) && tt_policy_knob(o->cls, knob))
        tt_policy_put(o, knob, value);
}

bool policy_read(tt_policy_options *o, const tt_json *json)
{
    const tt_json *p = tt_json_get(json, "params");
    if (!p) p = json;
    const char *name = our_name(tt_json_str(json, "policy", ""), p);
    if (!name) return false;
    *o = tt_policy_defaults(name);
    o->K = tt_json_int(p, "K", o->K);
    o->S = tt_json_int(p, "S", o->S);
    o->R = tt_json_int(p, "R", o->R);
    o->M = tt_json_int(p, "M", o->M);
    static const char *const knobs[][2] = {
        { "alpha", "alpha" }, { "tau", "tau" },
        { "score_temperature", "score-temperature" },
        { "alpha_long", "alpha-long" }, { "alpha_short", "alpha-short" },
        { "N", "compress-to" }, { "max_reuse", "max-reuse" },
        { "global_sink", "global-sink" }, { "sink_keep", "sink-keep" },
    };
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++)
        put(o, knobs[i][1], tt_json_num(p, knobs[i][0], NAN));
    if (!strncmp(tt_json_str(p, "grab_pool", ""), "one frame", 9))
        put(o, "pool", 1);
    if (!strcmp(tt_json_str(p, "method", "ema"), "eviction"))
        put(o, "memrope-method", 1);
    put(o, "adaptive", tt_json_bool(p, "adaptive", false));
    if (!strcmp(tt_json_str(p, "fusion", "sum"), "max")) put(o, "fusion", 1);
    put(o, "unify", tt_json_bool(p, "unify", false));
    return true;
}

/* ---- inputs -------------------------------------------------------------- */

static const tt_real *input(rolled *r, const tt_file *f, const char *name)
{
    const tt_entry *e = tt_file_find(f, name);
    return e ? tt_read_real(r->ctx, &r->arena, &e->t) : NULL;
}

/* text, text_1, text_2, ... */
static void read_prompts(rolled *r, const tt_dit *m, const tt_file *f)
{
    const int capacity = (int)(sizeof r->prompt / sizeof *r->prompt);
    char name[32] = "text";
    const tt_entry *e;
    while (!r->ctx->status && r->nprompts < capacity
           && (e = tt_file_find(f, name))) {
        tt_prompt_make(r->ctx, &r->prompt[r->nprompts], m, input(r, f, name),
                       e->t.dim[1]);
        snprintf(name, sizeof name, "text_%d", ++r->nprompts);
    }
    if (r->nprompts == 0)
        tt_fail(r->ctx, TT_ESHAPE, "the case has no input text");
}

static void read_scenes(rolled *r, tt_rollout_options *o,
                        const tt_json *json)
{
    tt_scenes s;
    const char *rule = tt_json_str(tt_json_get(json, "params"), "cut_rule",
                                   "official");
    const char *text = tt_json_str(json, "prompt", NULL);
    if (!text || !strcmp(text, "A") || r->ctx->status) return;
    if (tt_scenes_parse(r->ctx, &r->arena, &s, text, o->chunk,
                        strcmp(rule, "readme") ? TT_CUT_OFFICIAL
                                               : TT_CUT_README))
        return;
    o->scenes = s.scene;
    o->nscenes = s.n;
    o->prompts = (const tt_prompt *const *)r->prompt;
    o->nprompts = r->nprompts;
}

/* renoise_r0, renoise_r1, ... one after the other. */
static void read_renoise(rolled *r, tt_rollout_options *o, const tt_file *f,
                         int64_t frame_size)
{
    const int64_t gaps = o->nsteps - 1;
    const int64_t all = o->latents
                        + (o->rollouts - 1) * (o->latents - o->overlap);
    tt_real *out = tt_alloc(r->ctx, &r->arena, all * gaps * frame_size,
                            sizeof *out, "noise"), *to = out;
    for (int64_t i = 0; i < o->rollouts && !r->ctx->status; i++) {
        const int64_t n = (o->latents - (i ? o->overlap : 0)) * gaps;
        char name[32];
        snprintf(name, sizeof name, "renoise_r%d", (int)i);
        const tt_entry *e = tt_file_find(f, name);
        if (!e || tt_tensor_count(&e->t) != n * frame_size) {
            tt_fail(r->ctx, TT_ESHAPE, "the case needs %lld frames in %s",
                    (long long)n, name);
            return;
        }
        memcpy(to, input(r, f, name), (size_t)(n * frame_size) * sizeof *to);
        to += n * frame_size;
    }
    o->noise.renoise = out;
}

void policy_read_inputs(rolled *r, tt_rollout_options *o, const tt_json *json,
                        const tt_dit *m, const tt_file *f)
{
    const tt_entry *noise = tt_file_find(f, "noise");
    const tt_json *p = tt_json_get(json, "params");
    if (r->ctx->status) return;
    if (!noise || noise->t.rank != 5) {
        tt_fail(r->ctx, TT_ESHAPE, "the case has no input noise");
        return;
    }
    o->noise.noise = input(r, f, "noise");
    o->initial = input(r, f, "initial_latent");
    if (!strcmp(o->policy.name, "causvid")) {
        const int64_t *dim = noise->t.dim;
        o->rollouts = r->rollouts = dim[0];
        o->latents = dim[1];
        o->overlap = tt_json_int(p, "overlap",
                                 tt_json_int(p, "num_overlap_frames",
                                             o->overlap));
        o->start_frame = input(r, f, "start_frame");
        if (tt_file_find(f, "renoise_r0"))
            read_renoise(r, o, f, dim[2] * dim[3] * dim[4]);
    }
    if (!o->noise.renoise) o->noise.renoise = input(r, f, "renoise");
    read_prompts(r, m, f);
    read_scenes(r, o, json);
}

/* ---- caches -------------------------------------------------------------- */

void policy_chunk_prefix(char *buf, size_t n, const rolled *r, int64_t chunk)
{
    const int64_t per = r->chunks / r->rollouts;
    if (!strcmp(tt_cache_options(r->cache)->name, "causvid"))
        snprintf(buf, n, "r%d.chunk%d", (int)(chunk / per), (int)(chunk % per));
    else
        snprintf(buf, n, "chunk%d", (int)chunk);
}

/* Rotated at absolute positions by Self-Forcing, CausVid and Deep Forcing; as
 * they are by the others, but frame slot 0 of infinity-RoPE at t = 0. */
void policy_stored_keys(rolled *r, tt_real *out, const tt_layer *y)
{
    const tt_geometry *g = r->geo;
    const int64_t width = g->H * g->D;
    const char *name = y->opt->name;
    int64_t n = y->len;
    run_fetch(r->ctx, out, y->k, y->cap * width);
    if (r->tether || !strcmp(name, "memrope") || !strcmp(name, "reward"))
        return;
    if (!strcmp(name, "infinity")) n = g->L;
    int32_t *pos = tt_alloc(r->ctx, &r->arena, 3 * n, sizeof *pos,
                            "positions");
    for (int64_t i = 0; pos && i < n; i++) {
        pos[3 * i] = y->tpos[i];
        pos[3 * i + 1] = (int32_t)(y->sidx[i] / g->grid_w);
        pos[3 * i + 2] = (int32_t)(y->sidx[i] % g->grid_w);
    }
    tt_rope(r->ctx, out, out, n, g->H, g->D, tt_cache_rope(r->cache), pos);
}

void policy_put_ends(rolled *r)
{
    const int64_t dim[2] = { r->chunks, 2 }, per = r->chunks / r->rollouts;
    if (!strcmp(tt_cache_options(r->cache)->name, "deep-forcing")) {
        tt_st_add(r->out, "ends_tokens", TT_I64, 2, dim, r->ends_tokens);
        return;
    }
    tt_st_add(r->out, "ends", TT_I64, 2, dim, r->ends);
    for (int64_t i = 0; r->rollouts > 1 && i < r->rollouts; i++) {
        char name[32];
        snprintf(name, sizeof name, "r%d.ends", (int)i);
        tt_st_add(r->out, name, TT_I64, 2, (int64_t[]){ per, 2 },
                  r->ends + 2 * per * i);
    }
}

/* ---- Deep Forcing -------------------------------------------------------- */

void policy_put_tokens(rolled *r, const char *prefix)
{
    tt_event now;
    tt_cache_show(r->cache, 0, &now);
    if (!tt_event_values(&now, "reuse", TT_I64, NULL)) return;
    const int64_t layers = r->geo->layers;
    const int64_t cap = tt_cache_layer(r->cache, 0)->cap;
    const int64_t dim[2] = { layers, cap };
    int64_t *frame = tt_alloc(r->ctx, &r->arena, layers * cap, sizeof *frame,
                              "frames");
    int64_t *reuse = tt_alloc(r->ctx, &r->arena, layers * cap, sizeof *reuse,
                              "reuse");
    if (r->ctx->status) return;
    for (int64_t i = 0; i < layers * cap; i++) {
        const tt_layer *y = tt_cache_layer(r->cache, i / cap);
        frame[i] = i % cap < y->len ? y->tpos[i % cap] : -1;
        tt_cache_show(r->cache, i / cap, &now);
        const int64_t *times = tt_event_values(&now, "reuse", TT_I64, NULL);
        reuse[i] = times[i % cap];
    }
    char name[64];
    snprintf(name, sizeof name, "%s.abs_frame", prefix);
    tt_st_add(r->out, name, TT_I64, 2, dim, frame);
    snprintf(name, sizeof name, "%s.reuse", prefix);
    tt_st_add(r->out, name, TT_I64, 2, dim, reuse);
}

void policy_on_compress(rolled *r, const tt_event *e)
{
    static const char *const fields[] = {"frame", "reuse", "selected"};
    static const char *const names[] = {"abs_frame", "reuse", "selected"};
    char name[96];
    int64_t n;
    const double *phi = tt_event_values(e, "score", TT_F64, &n);
    const int at = snprintf(name, sizeof name, "comp%d.layer%d.",
                            (int)tt_event_int(e, "event"), (int)e->layer);
    tt_real *score = tt_alloc(r->ctx, &r->arena, n, sizeof *score, "scores");
    for (int64_t i = 0; score && i < n; i++) score[i] = (tt_real)phi[i];
    if (r->ctx->status) return;
    strcpy(name + at, "scores");
    tt_st_add(r->out, name, REAL_TYPE, 1, &n, score);
    for (int i = 0; i < 3; i++) {
        const int64_t *x = tt_event_values(e, fields[i], TT_I64, &n);
        strcpy(name + at, names[i]);
        tt_st_add(r->out, name, TT_I64, 1, &n, x);
    }
}
