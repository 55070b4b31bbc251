/* cache_cases.c: reference cases of GRAB, TAME, the schedule and the noise.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  ref_data/README.md, kinds grab_unit, tame_unit, scheduler, noise;
 *         kind rollout is in rollout_cases.c. */
#include "tests/run_case/run_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/grab.h"
#include "cache/tame.h"
#include "core/device.h"
#include "rollout/rollout.h"

#define REAL_TYPE (sizeof(tt_real) == 8 ? TT_F64 : TT_F32)

typedef struct unit {
    tt_ctx *ctx;
    const tt_json *json;
    tt_st_writer *out;
    tt_arena arena;
    tt_file *inputs;
} unit;

/* Input `id`.`name` (id may be ""), NULL and no failure when absent. */
static const tt_tensor *find(const unit *u, const char *id, const char *name)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s%s", id, *id ? "." : "", name);
    const tt_entry *e = tt_file_find(u->inputs, full);
    return e ? &e->t : NULL;
}

static tt_real *read_real(unit *u, const tt_tensor *t, const char *name)
{
    if (!t) {
        tt_fail(u->ctx, TT_ESHAPE, "the case has no input %s", name);
        return NULL;
    }
    return tt_read_real(u->ctx, &u->arena, t);
}

static void put(unit *u, const char *id, const char *name, tt_dtype dtype,
                int rank, const int64_t *dim, const void *data)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s%s", id, *id ? "." : "", name);
    if (!u->ctx->status) tt_st_add(u->out, full, dtype, rank, dim, data);
}

/* A double array in the compute type. */
static void put_double(unit *u, const char *id, const char *name,
                       const double *x, int64_t n)
{
    tt_real *y = tt_alloc(u->ctx, &u->arena, n, sizeof *y, "a result");
    for (int64_t i = 0; y && i < n; i++) y[i] = (tt_real)x[i];
    put(u, id, name, REAL_TYPE, 1, &n, y);
}

/* ---- GRAB ---------------------------------------------------------------- */

static void grab_case(unit *u, const tt_json *sub)
{
    tt_ctx *ctx = u->ctx;
    const char *id = tt_json_str(sub, "id", "");
    const int64_t P = tt_json_int(sub, "n_cand", 0);
    const int64_t L = tt_json_int(sub, "frame_tokens", 0);
    const tt_tensor *tq = find(u, id, "q"), *tk = find(u, id, "k");
    const tt_tensor *ti = find(u, id, "index");
    const tt_real *q = read_real(u, tq, "q"), *k = read_real(u, tk, "k");
    if (!q || !k || !ti) return;
    const int64_t H = tq->dim[2], D = tq->dim[3];
    int64_t *index = tt_alloc(ctx, &u->arena, P, sizeof *index, "indices");
    double *qbar = tt_alloc(ctx, &u->arena, H * D, sizeof *qbar, "mean query");
    if (ctx->status || tk->dim[1] != P * L || ti->dim[0] != P) {
        tt_fail(ctx, TT_ESHAPE, "%s: the inputs do not fit each other", id);
        return;
    }
    tt_gather(index, ti);
    tt_col_mean(ctx, qbar, q, tq->dim[1], H * D);

    grab_round r;
    double margin;
    grab_begin(ctx, &r, P, tt_json_int(sub, "memory_size", 0), L, H, D);
    for (int64_t c = 0; c < P; c++) {
        double *kbar = tt_alloc(ctx, &u->arena, H * D, sizeof *kbar,
                                "mean key");
        tt_col_mean(ctx, kbar, k + c * L * H * D, L, H * D);
        grab_pool(&r, kbar, index[c]);
    }
    grab_importance(ctx, &r, qbar, tt_json_num(sub, "score_temperature", 1));
    grab_diversity(ctx, &r);
    grab_score(ctx, &r, tt_json_num(sub, "alpha", 0));
    grab_select(ctx, &r, &margin);
    if (ctx->status) return;
    put_double(u, id, "mass", r.mass, P);
    put_double(u, id, "div", r.div, P);
    put_double(u, id, "score", r.score, P);
    put(u, id, "keep", TT_U8, 1, &P, r.keep);
}

/* ---- TAME ---------------------------------------------------------------- */

static void tame_case(unit *u, const tt_json *sub)
{
    tt_ctx *ctx = u->ctx;
    const char *id = tt_json_str(sub, "id", "");
    const tt_tensor *tx = find(u, id, "x"), *tt = find(u, id, "trusted");
    tt_real *x = read_real(u, tx, "x");
    if (!x) return;
    const int64_t c = tx->dim[2] * tx->dim[3];
    tame_stats trusted;
    tt_wide *own = tt_wides(ctx, 2 * c);
    if (tt) tame_stat(ctx, &trusted, read_real(u, tt, "trusted"), tt->dim[1],
                      c);
    tame_learn(ctx, own, x, tx->dim[1], c);
    tame_edit(ctx, x, tx->dim[1], c, tt_get_wides(ctx, own, 2 * c),
              tt ? &trusted : NULL, tt_json_num(sub, "tau", 0));
    put(u, id, "y", REAL_TYPE, 4, tx->dim, x);
}

static void each_subcase(unit *u, void (*run)(unit *, const tt_json *))
{
    const tt_json *subs = tt_json_get(u->json, "subcases");
    for (const tt_json *s = tt_json_first(subs); s; s = tt_json_next(s)) {
        const tt_arena_mark m = tt_arena_here(&u->ctx->scratch);
        run(u, s);
        tt_arena_reset(&u->ctx->scratch, m);
    }
}

/* ---- schedule ------------------------------------------------------------ */

static void put_tables(unit *u, double shift)
{
    const int64_t n = TT_TABLE;
    char name[64];
    tt_schedule s;
    tt_schedule_table(&s, shift);
    snprintf(name, sizeof name, "sigmas_shift%g", shift);
    put(u, "", name, TT_F32, 1, &n, s.sigma);
    snprintf(name, sizeof name, "timesteps_shift%g", shift);
    put(u, "", name, TT_F32, 1, &n, s.timestep);
    const tt_json *lists = tt_json_get(u->json, "lists");
    for (int64_t l = 0; lists && l < tt_json_count(lists); l++) {
        const tt_json *list = tt_json_at(lists, l);
        float t[TT_MAX_STEPS];
        const int64_t steps = tt_json_count(list);
        for (int64_t i = 0; i < steps && i < TT_MAX_STEPS; i++)
            t[i] = (float)tt_schedule_warp(
                &s, (int)tt_json_whole(tt_json_at(list, i), 0));
        snprintf(name, sizeof name, "warped_shift%g_list%d", shift, (int)l);
        put(u, "", name, TT_F32, 1, &steps, t);
    }
}

static void scheduler_case(unit *u)
{
    const tt_json *shifts = tt_json_get(u->json, "shifts");
    for (int64_t i = 0; shifts && i < tt_json_count(shifts); i++)
        put_tables(u, tt_json_real(tt_json_at(shifts, i)));

    const tt_tensor *tt = find(u, "", "t"), *tx = find(u, "", "x");
    const tt_real *t = read_real(u, tt, "t"), *x = read_real(u, tx, "x");
    const tt_real *noise = read_real(u, find(u, "", "noise"), "noise");
    if (!t || !x || !noise) return;
    const int64_t rows = tt->dim[0], all = tt_tensor_count(tx), n = all / rows;
    tt_real *mixed = tt_alloc(u->ctx, &u->arena, all, sizeof *mixed, "x");
    tt_real *x0 = tt_alloc(u->ctx, &u->arena, all, sizeof *x0, "x0");
    int64_t *index = tt_alloc(u->ctx, &u->arena, rows, sizeof *index, "index");
    if (u->ctx->status) return;
    tt_schedule s;
    tt_schedule_table(&s, 5);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = r * n;
        tt_add_noise(&s, mixed + at, x + at, noise + at, t[r], n);
        tt_flow_to_x0(&s, x0 + at, noise + at, x + at, t[r], n);
        index[r] = tt_schedule_index(&s, t[r]);
    }
    put(u, "", "add_noise", REAL_TYPE, tx->rank, tx->dim, mixed);
    put(u, "", "flow_to_x0", REAL_TYPE, tx->rank, tx->dim, x0);
    put(u, "", "sigma_index", TT_I64, 1, &rows, index);
}

/* ---- noise --------------------------------------------------------------- */

static void noise_case(unit *u)
{
    const tt_json *shape = tt_json_get(u->json, "latent_shape");
    const int64_t n = tt_json_int(u->json, "num_latents", 0);
    const int64_t chunk = tt_json_int(u->json, "chunk", 3);
    const int64_t gaps = tt_json_int(u->json, "steps", 4) - 1;
    const tt_json *s = tt_json_get(u->json, "seed");
    const uint64_t seed = s ? (uint64_t)strtoull(s->as.str, NULL, 10) : 0;
    const uint32_t sample = (uint32_t)tt_json_int(u->json, "sample", 0);
    int64_t dim[5] = { 1, n };
    for (int i = 0; i < 3; i++)
        dim[2 + i] = tt_json_whole(tt_json_at(shape, i), 0);
    const int64_t e = dim[2] * dim[3] * dim[4];
    float *noise = tt_alloc(u->ctx, &u->arena, n * e, sizeof *noise, "noise");
    float *re = tt_alloc(u->ctx, &u->arena, n * gaps * e, sizeof *re, "noise");
    if (u->ctx->status) return;
    float *at = re;
    for (int64_t f = 0; f < n; f++)
        tt_noise_frame(noise + f * e, e, seed, sample, (uint32_t)f, 0);
    for (int64_t first = 0; first < n; first += chunk)
        for (int64_t j = 0; j < gaps; j++)
            for (int64_t f = first; f < first + chunk && f < n; f++, at += e)
                tt_noise_frame(at, e, seed, sample, (uint32_t)f,
                               (uint32_t)(j + 1));
    put(u, "", "noise", TT_F32, 5, dim, noise);
    dim[1] = n * gaps;
    put(u, "", "renoise", TT_F32, 4, dim + 1, re);
}

/* -------------------------------------------------------------------------- */

tt_status run_cache_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                         tt_st_writer *out)
{
    const char *kind = tt_json_str(json, "kind", "");
    const bool grab = !strcmp(kind, "grab_unit");
    const bool tame = !strcmp(kind, "tame_unit");
    const bool schedule = !strcmp(kind, "scheduler");
    const bool noise = !strcmp(kind, "noise");
    if (!strcmp(kind, "rollout")) return run_rollout_case(ctx, json, dir, out);
    if (!grab && !tame && !schedule && !noise) return TT_EUNSUPPORTED;

    unit u = { .ctx = ctx, .json = json, .out = out };
    char path[1024];
    snprintf(path, sizeof path, "%s/inputs.safetensors", dir);
    if (!noise) TT_TRY(tt_file_open(ctx, &u.inputs, path));
    if (grab) each_subcase(&u, grab_case);
    if (tame) each_subcase(&u, tame_case);
    if (schedule) scheduler_case(&u);
    if (noise) noise_case(&u);
    if (u.inputs) tt_file_close(u.inputs);
    tt_arena_free(&u.arena);
    return ctx->status;
}
