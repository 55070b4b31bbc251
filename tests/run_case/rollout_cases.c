/* rollout_cases.c: reference cases of kind rollout.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  ref_data/README.md ("Rollout cases: tensors"), README_policies.md.
 *         The two differ in words: `policy` fifo/tethercache with K, S, ... at
 *         the top, or the other policies with theirs under `params` and caches
 *         without a batch axis.
 * Next    policy_cases.c: what is particular to single policies. */
#include "tests/run_case/rollout_cases.h"
#include "tests/cache/shown.h"
#include "core/device.h"

#include <stdio.h>
#include <string.h>

static void *grow(rolled *r, int64_t n, size_t size)
{
    return tt_alloc0(r->ctx, &r->arena, n, size, "a rollout record");
}

/* ---- options ------------------------------------------------------------- */

static tt_status read_options(tt_ctx *ctx, tt_rollout_options *o,
                              const tt_json *j)
{
    const tt_json *shape = tt_json_get(j, "latent_shape");
    const tt_json *list = tt_json_get(j, "denoising_step_list");
    if (tt_json_count(shape) != 3 || tt_json_count(list) < 1
        || tt_json_count(list) > TT_MAX_STEPS)
        return tt_fail(ctx, TT_EFORMAT, "the case lacks latent_shape or "
                       "denoising_step_list");
    o->h = tt_json_whole(tt_json_at(shape, 1), 0);
    o->w = tt_json_whole(tt_json_at(shape, 2), 0);
    o->nsteps = (int)tt_json_count(list);
    for (int i = 0; i < o->nsteps; i++)
        o->steps[i] = tt_json_real(tt_json_at(list, i));
    o->latents = tt_json_int(j, "num_latents", 0);
    o->chunk = tt_json_int(j, "chunk", 3);
    o->warp = tt_json_bool(j, "warp_denoising_step", true);
    o->shift = tt_json_num(j, "timestep_shift", 5);
    o->context_noise = tt_json_int(j, "context_noise", 0);
    o->independent_first_frame = tt_json_bool(j, "independent_first_frame",
                                              false);
    o->initial_frames = tt_json_int(j, "initial_frames", 0);
    /* CausVid's lists end with a 0 that is dropped. */
    if (o->nsteps > 1 && o->steps[o->nsteps - 1] == 0) o->nsteps--;
    return TT_OK;
}

/* ---- what is recorded ---------------------------------------------------- */

static void begin(rolled *r, const tt_rollout_options *o)
{
    const int64_t n = tt_rollout_chunks(r->run), layers = r->geo->layers;
    const tt_policy_options *p = tt_cache_options(r->cache);
    r->chunks = n;
    r->tether = !strcmp(p->name, "tether");
    r->M = r->tether ? p->M : 0;
    r->ends = grow(r, n * 2, sizeof *r->ends);
    r->ends_tokens = grow(r, n * 2, sizeof *r->ends_tokens);
    r->norm_k = grow(r, n * layers, sizeof *r->norm_k);
    r->norm_v = grow(r, n * layers, sizeof *r->norm_v);
    r->memory = grow(r, n * layers * r->M, sizeof *r->memory);
    r->counters = grow(r, n * layers * 3, sizeof *r->counters);
    r->filled = grow(r, n * layers, 1);
    r->P = r->M + (tt_policy_get(p, "pool") == 1 ? 1 : o->chunk);
    r->capacity = n * layers * o->chunk;
    r->g_layer = grow(r, r->capacity, sizeof(int64_t));
    r->g_chunk = grow(r, r->capacity, sizeof(int64_t));
    r->g_sub = grow(r, r->capacity, sizeof(int64_t));
    r->g_candidates = grow(r, r->capacity * r->P, sizeof(int64_t));
    r->g_after = grow(r, r->capacity * r->M, sizeof(int64_t));
    r->g_mass = grow(r, r->capacity * r->P, sizeof(tt_real));
    r->g_scores = grow(r, r->capacity * r->P, sizeof(tt_real));
    r->g_keep = grow(r, r->capacity * r->P, 1);
}

static void on_round(rolled *r, const tt_event *e)
{
    int64_t P, M;
    const int64_t *candidates = tt_event_values(e, "candidates", TT_I64, &P);
    const double *mass = tt_event_values(e, "mass", TT_F64, NULL);
    const double *score = tt_event_values(e, "scores", TT_F64, NULL);
    const uint8_t *keep = tt_event_values(e, "keep", TT_U8, NULL);
    const int64_t *after = tt_event_values(e, "memory_after", TT_I64, &M);
    if (r->rounds == r->capacity || P != r->P) {
        tt_fail(r->ctx, TT_ESHAPE, "an admission round of %lld candidates, "
                "expected %lld", (long long)P, (long long)r->P);
        return;
    }
    const int64_t i = r->rounds++;
    r->g_layer[i] = e->layer;
    r->g_chunk[i] = e->chunk;
    r->g_sub[i] = tt_event_int(e, "sub");
    for (int64_t c = 0; c < P; c++) {
        r->g_candidates[i * r->P + c] = candidates[c];
        r->g_mass[i * r->P + c] = (tt_real)mass[c];
        r->g_scores[i * r->P + c] = (tt_real)score[c];
        r->g_keep[i * r->P + c] = keep[c];
    }
    for (int64_t m = 0; m < M; m++) r->g_after[i * r->M + m] = after[m];
}

static void on_event(void *user, const tt_event *e)
{
    if (!strcmp(e->kind->name, "grab")) on_round(user, e);
    if (!strcmp(e->kind->name, "comp")) policy_on_compress(user, e);
}

/* chunk.<i>/step.<j>/flow and x0 as chunk<i>.step<j>.* [1, f, C, h, w]. */
static void on_tap(void *user, const char *path, tt_dtype dtype, int rank,
                   const int64_t *dim, const void *data)
{
    rolled *r = user;
    int chunk, step, end = 0;
    if (sscanf(path, "chunk.%d/step.%d/%n", &chunk, &step, &end) != 2 || !end)
        return;
    if (strcmp(path + end, "flow") && strcmp(path + end, "x0")) return;
    char name[64];
    int64_t full[TT_MAX_RANK] = { 1 };
    memcpy(full + 1, dim, (size_t)rank * sizeof *dim);
    snprintf(name, sizeof name, "chunk%d.step%d.%s", chunk, step, path + end);
    tt_st_add(r->out, name, dtype, rank + 1, full, data);
}

static double norm2(const tt_real *x, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += (double)x[i] * (double)x[i];
    return s;
}

static void after_chunk(rolled *r, int64_t chunk)
{
    const int64_t layers = r->geo->layers;
    for (int64_t i = 0; i < layers; i++) {
        const tt_layer *y = tt_cache_layer(r->cache, i);
        const int64_t n = y->cap * r->geo->H * r->geo->D;
        const int64_t at = chunk * layers + i;
        r->ends[2 * chunk] = y->seen;
        r->ends[2 * chunk + 1] = y->len / r->geo->L;
        r->ends_tokens[2 * chunk] = y->seen * r->geo->L;
        r->ends_tokens[2 * chunk + 1] = y->len;
        const tt_arena_mark here = tt_arena_here(&r->ctx->scratch);
        const tt_host *k = tt_get(r->ctx, y->k, n);
        const tt_host *v = tt_get(r->ctx, y->v, n);
        r->norm_k[at] = k ? norm2(k, n) : 0;
        r->norm_v[at] = v ? norm2(v, n) : 0;
        tt_arena_reset(&r->ctx->scratch, here);
        tether_layer t;
        if (!tether_look(r->cache, i, &t)) continue;
        r->filled[at] = t.filled;
        r->counters[3 * at] = t.admissions;
        r->counters[3 * at + 1] = t.rejections;
        r->counters[3 * at + 2] = t.edits;
        for (int64_t m = 0; m < r->M; m++)
            r->memory[at * r->M + m] = t.memory_index[m];
    }
}

static void put_caches(rolled *r, int64_t chunk)
{
    const tt_geometry *g = r->geo;
    const int64_t cap = tt_cache_layer(r->cache, 0)->cap;
    const int64_t n = cap * g->H * g->D;
    char prefix[48], name[64];
    policy_chunk_prefix(prefix, sizeof prefix, r, chunk);
    tt_real *k = grow(r, g->layers * n, sizeof *k);
    tt_real *v = grow(r, g->layers * n, sizeof *v);
    if (r->ctx->status) return;
    for (int64_t i = 0; i < g->layers; i++) {
        policy_stored_keys(r, k + i * n, tt_cache_layer(r->cache, i));
        run_fetch(r->ctx, v + i * n, tt_cache_layer(r->cache, i)->v, n);
    }
    const int64_t batch[] = { g->layers, 1, cap, g->H, g->D };
    const int64_t plain[] = { g->layers, cap, g->H, g->D };
    const int64_t *dim = r->batch ? batch : plain;
    snprintf(name, sizeof name, "%s.cache_k", prefix);
    tt_st_add(r->out, name, REAL_TYPE, r->batch ? 5 : 4, dim, k);
    snprintf(name, sizeof name, "%s.cache_v", prefix);
    tt_st_add(r->out, name, REAL_TYPE, r->batch ? 5 : 4, dim, v);
    policy_put_tokens(r, prefix);
}

static void put_records(rolled *r)
{
    tt_st_writer *o = r->out;
    const int64_t n = r->chunks, layers = r->geo->layers, g = r->rounds;
    const int64_t M = r->M, P = r->P;
    policy_put_ends(r);
    if (!r->batch) return;
    tt_st_add(o, "cache_k_norm2", TT_F64, 2, (int64_t[]){ n, layers },
              r->norm_k);
    tt_st_add(o, "cache_v_norm2", TT_F64, 2, (int64_t[]){ n, layers },
              r->norm_v);
    if (!r->tether) return;
    tt_st_add(o, "memory_index", TT_I64, 3, (int64_t[]){ n, layers, M },
              r->memory);
    tt_st_add(o, "counters", TT_I64, 3, (int64_t[]){ n, layers, 3 },
              r->counters);
    tt_st_add(o, "cache_filled", TT_U8, 2, (int64_t[]){ n, layers },
              r->filled);
    if (g == 0) return;
    tt_st_add(o, "grab_layer", TT_I64, 1, &g, r->g_layer);
    tt_st_add(o, "grab_chunk", TT_I64, 1, &g, r->g_chunk);
    tt_st_add(o, "grab_sub", TT_I64, 1, &g, r->g_sub);
    tt_st_add(o, "grab_candidates", TT_I64, 2, (int64_t[]){ g, P },
              r->g_candidates);
    tt_st_add(o, "grab_mass", REAL_TYPE, 2, (int64_t[]){ g, P }, r->g_mass);
    tt_st_add(o, "grab_scores", REAL_TYPE, 2, (int64_t[]){ g, P }, r->g_scores);
    tt_st_add(o, "grab_keep", TT_U8, 2, (int64_t[]){ g, P }, r->g_keep);
    tt_st_add(o, "grab_memory_after", TT_I64, 2, (int64_t[]){ g, M },
              r->g_after);
}

/* ---- the run ------------------------------------------------------------- */

/* detail_chunks count inside a rollout. */
static bool wanted(const rolled *r, const tt_json *json, int64_t chunk)
{
    chunk %= r->chunks / r->rollouts;
    const tt_json *list = tt_json_get(json, "detail_chunks");
    for (int64_t i = 0; list && i < tt_json_count(list); i++)
        if (tt_json_whole(tt_json_at(list, i), 0) == chunk) return true;
    return false;
}

static void roll(rolled *r, const tt_json *json, const tt_rollout_options *o,
                 int64_t C)
{
    tt_ctx *ctx = r->ctx;
    const int64_t dim[] = { o->rollouts, o->initial_frames + o->latents, C,
                            o->h, o->w };
    const int64_t size = C * o->h * o->w;
    tt_real *latents = grow(r, dim[0] * dim[1] * size, sizeof *latents);
    const tt_real *x;
    int64_t f, done = 0;
    begin(r, o);
    tt_cache_on_event(r->cache, on_event, r);
    for (int64_t i = 0; i < r->chunks && !ctx->status; i++) {
        ctx->tap = wanted(r, json, i) && r->batch ? on_tap : NULL;
        ctx->tap_user = r;
        if (tt_rollout_next(ctx, r->run, &x, &f)) break;
        memcpy(latents + done, x, (size_t)(f * size) * sizeof *x);
        done += f * size;
        after_chunk(r, i);
        if (wanted(r, json, i)) put_caches(r, i);
    }
    ctx->tap = NULL;
    if (ctx->status) return;
    tt_st_add(r->out, "latents", REAL_TYPE, 5, dim, latents);
    put_records(r);
}

tt_status run_rollout_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                           tt_st_writer *out)
{
    rolled r = { .ctx = ctx, .out = out, .rollouts = 1 };
    tt_rollout_options o = tt_rollout_defaults();
    tt_file *f = NULL;
    tt_weights *w = NULL;
    tt_dit *m = NULL;
    char path[1024];
    if (!policy_read(&o.policy, json)) return TT_EUNSUPPORTED;
    TT_TRY(read_options(ctx, &o, json));
    r.batch = !tt_json_get(json, "params");
    snprintf(path, sizeof path, "%s/inputs.safetensors", dir);
    TT_TRY(tt_file_open(ctx, &f, path));
    snprintf(path, sizeof path, "%s/%s", dir, tt_json_str(json, "model", ""));
    if (tt_weights_open(ctx, &w, path, TT_MODEL_DIT,
                        &(tt_weights_options){ .ema = -1 }) == TT_OK)
        tt_dit_load(ctx, &m, w, NULL, 0);
    policy_read_inputs(&r, &o, json, m, f);
    if (!ctx->status)
        tt_rollout_open(ctx, &r.run, m, r.nprompts ? r.prompt[0] : NULL, &o);
    if (!ctx->status) {
        r.cache = tt_rollout_cache(r.run);
        r.geo = tt_cache_geometry(r.cache);
        roll(&r, json, &o, tt_dit_get_config(m)->in_dim);
    }
    tt_rollout_close(r.run);
    for (int i = 0; i < r.nprompts; i++) tt_prompt_free(r.prompt[i]);
    if (m) tt_dit_close(m);
    tt_file_close(f);
    tt_arena_free(&r.arena);
    return ctx->status;
}
