/* dit_cases.c: cases of the transformer and its parts.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of cases carry a batch axis of 1, which costs nothing here. Caches
 * of fifo cases are compared with rotated keys, as upstream stores them. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cache/shown.h"
#include "tests/run_case/run_case.h"
#include "ops/ops.h"
#include "rollout/rollout.h"

/* [1, C, F, h, w] <-> [F, C, h, w]: swap the two outer axes. */
static tt_real *swap_axes(run_io *io, const tt_real *x, int64_t a, int64_t b,
                          int64_t n)
{
    tt_real *y = run_alloc(io, a * b * n);
    if (y && x)
        for (int64_t i = 0; i < a; i++)
            for (int64_t j = 0; j < b; j++)
                memcpy(y + (j * a + i) * n, x + (i * b + j) * n,
                       (size_t)n * sizeof *y);
    return y;
}

/* Frames, patch rows and columns of the case. */
typedef struct grid { int64_t F, h, w; } grid;

static grid case_grid(run_io *io)
{
    int64_t n;
    const int64_t *g = run_ints(io, "grid", &n);
    if (n == 3) return (grid){g[0], g[1], g[2]};
    tt_fail(io->ctx, TT_EFORMAT, "%s: no grid of three extents", io->dir);
    return (grid){1, 1, 1};
}

/* A cache for a model over this grid; chunks of g.F frames. */
static tt_cache *make_cache(run_io *io, const tt_dit *m, grid g,
                            tt_policy_options opt, int64_t frames)
{
    const tt_dit_config *c = tt_dit_get_config(m);
    const tt_geometry geo = {.layers = c->layers, .H = c->heads,
                             .D = c->dim / c->heads, .grid_h = g.h,
                             .grid_w = g.w, .L = g.h * g.w, .chunk = g.F,
                             .first_chunk = g.F, .frames = frames};
    tt_cache *cache = NULL;
    if (!io->ctx->status) tt_cache_open(io->ctx, &cache, NULL, &opt, &geo);
    return cache;
}

/* k, v [slots, H, D] of a layer into rows of the case's record, keys rotated
 * by their own positions where `rotate`. */
static void copy_cache(run_io *io, tt_real *k, tt_real *v, tt_cache *cache,
                       int64_t layer, bool rotate)
{
    if (io->ctx->status) return;
    const tt_layer *y = tt_cache_layer(cache, layer);
    const tt_geometry *g = tt_cache_geometry(cache);
    run_fetch(io->ctx, k, y->k, y->cap * g->H * g->D);
    run_fetch(io->ctx, v, y->v, y->cap * g->H * g->D);
    if (!rotate) return;
    int32_t *pos = tt_alloc0(io->ctx, &io->arena, y->len * 3, sizeof *pos,
                             "positions");
    for (int64_t i = 0; i < y->len && pos; i++) {
        pos[3 * i] = y->tpos[i];
        pos[3 * i + 1] = y->sidx[i] / (int32_t)g->grid_w;
        pos[3 * i + 2] = y->sidx[i] % (int32_t)g->grid_w;
    }
    tt_rope(io->ctx, k, k, y->len, g->H, g->D, tt_cache_rope(cache), pos);
}

/* ---- embeddings and head ------------------------------------------------- */

static void time_embedding(run_io *io, tt_dit *m)
{
    const tt_dit_config *c = tt_dit_get_config(m);
    int64_t n = 0;
    const tt_real *in = run_input(io, "t", 1, &n);
    double *t = tt_alloc(io->ctx, &io->arena, n, sizeof *t, "timesteps");
    double *wave = tt_alloc(io->ctx, &io->arena, n * c->freq_dim, sizeof *wave,
                            "sinusoid");
    tt_real *e = run_alloc(io, n * c->dim), *e0 = run_alloc(io, 6 * n * c->dim);
    for (int64_t i = 0; i < n && t && in; i++) t[i] = (double)in[i];
    tt_dit_time(io->ctx, m, wave, e, e0, t, n);
    run_put_f64(io, "sinusoid", wave, n, c->freq_dim);
    run_put(io, "e", e, n, c->dim);
    run_put(io, "e0", e0, n, 6, c->dim);
}

static void embeddings(run_io *io, tt_dit *m)
{
    const int64_t dim = tt_dit_get_config(m)->dim;
    int64_t s[5] = {0}, r[3] = {0};
    const tt_real *x = run_input(io, "x", 5, s);       /* [1, C, F, h, w]     */
    const tt_real *text = run_input(io, "text", 3, r); /* [1, rows, text_dim] */
    const int64_t T = s[2] * (s[3] / 2) * (s[4] / 2);
    x = swap_axes(io, x, s[1], s[2], s[3] * s[4]);
    tt_real *tokens = run_alloc(io, T * dim), *y = run_alloc(io, r[1] * dim);
    tt_dit_patch(io->ctx, m, tokens, x, s[2], s[3], s[4]);
    tt_dit_text(io->ctx, m, y, text, r[1]);
    run_put(io, "tokens", tokens, 1, T, dim);
    run_put(io, "context", y, 1, r[1], dim);
}

static void head(run_io *io, tt_dit *m)
{
    const int64_t C = tt_dit_get_config(m)->in_dim;
    int64_t s[3] = {0}, n[2] = {0};
    const grid g = case_grid(io);
    const tt_real *x = run_input(io, "x", 3, s);       /* [1, T, dim]         */
    const tt_real *e = run_input(io, "e", 2, n);       /* [F, dim]            */
    tt_real *y = run_alloc(io, s[1] * 4 * C), *z = run_alloc(io, s[1] * 4 * C);
    if (io->ctx->status) return;
    tt_dit_head(io->ctx, m, y, x, s[1], e, n[0]);
    tt_dit_unpatch(z, y, g.F, C, 2 * g.h, 2 * g.w);
    z = swap_axes(io, z, g.F, C, 4 * g.h * g.w);
    run_put(io, "head", y, 1, s[1], 4 * C);
    run_put(io, "latent", z, 1, C, g.F, 2 * g.h, 2 * g.w);
}

/* ---- attention ----------------------------------------------------------- */

static void rope(run_io *io)
{
    int64_t s[4] = {0}, n, rows;
    const grid g = case_grid(io);
    const tt_real *x = run_input(io, "x", 4, s);       /* [1, T, H, D]        */
    const int64_t *start = run_ints(io, "start_frames", &n);
    const int64_t *row = run_ints(io, "table_rows", &rows);
    const int64_t T = s[1], H = s[2], D = s[3], c = D / 2;
    int64_t npos = g.h > g.w ? g.h : g.w;
    for (int64_t i = 0; i < n; i++)
        if (start[i] + g.F > npos) npos = start[i] + g.F;
    for (int64_t i = 0; i < rows; i++)
        if (row[i] + 1 > npos) npos = row[i] + 1;
    tt_rope_table table;
    if (io->ctx->status
        || tt_rope_make(io->ctx, &io->arena, &table, D, npos) != TT_OK)
        return;

    int32_t *pos = tt_alloc(io->ctx, &io->arena, T * 3, sizeof *pos, "pos");
    tt_real *y = run_alloc(io, T * H * D);
    for (int64_t i = 0; i < n && !io->ctx->status; i++) {
        char name[40];
        for (int64_t t = 0; t < T; t++) {
            pos[3 * t] = (int32_t)(start[i] + t / (g.h * g.w));
            pos[3 * t + 1] = (int32_t)(t / g.w % g.h);
            pos[3 * t + 2] = (int32_t)(t % g.w);
        }
        tt_rope(io->ctx, y, x, T, H, D, &table, pos);
        snprintf(name, sizeof name, "y_start%lld", (long long)start[i]);
        run_put(io, name, y, 1, T, H, D);
    }
    double *cs = tt_alloc(io->ctx, &io->arena, rows * c, sizeof *cs, "table");
    double *sn = tt_alloc(io->ctx, &io->arena, rows * c, sizeof *sn, "table");
    for (int64_t i = 0; i < rows && !io->ctx->status; i++) {
        memcpy(cs + i * c, table.cos + row[i] * c, (size_t)c * sizeof *cs);
        memcpy(sn + i * c, table.sin + row[i] * c, (size_t)c * sizeof *sn);
    }
    if (!rows) return;
    run_put_f64(io, "table_cos", cs, rows, c);
    run_put_f64(io, "table_sin", sn, rows, c);
}

static void qkv(run_io *io, tt_dit *m)
{
    const tt_dit_config *c = tt_dit_get_config(m);
    const int64_t H = c->heads, D = c->dim / H;
    int64_t s[3] = {0};
    const tt_real *x = run_input(io, "x", 3, s);       /* [1, T, dim]         */
    const int64_t n = s[1] * c->dim;
    tt_real *q = run_alloc(io, n), *k = run_alloc(io, n), *v = run_alloc(io, n);
    tt_dit_qkv(io->ctx, m, tt_json_int(io->json, "block", 0), q, k, v, x, s[1]);
    run_put(io, "q", q, 1, s[1], H, D);
    run_put(io, "k", k, 1, s[1], H, D);
    run_put(io, "v", v, 1, s[1], H, D);
}

static void cross_attn(run_io *io, tt_dit *m)
{
    const tt_dit_config *c = tt_dit_get_config(m);
    const int64_t H = c->heads, D = c->dim / H;
    const int64_t i = tt_json_int(io->json, "block", 0);
    int64_t s[3] = {0}, s2[3] = {0}, r[3] = {0};
    const tt_real *x = run_input(io, "x", 3, s);       /* [1, T, dim]         */
    const tt_real *x2 = run_input(io, "x2", 3, s2);
    const tt_real *context = run_input(io, "context", 3, r);
    tt_real *k = run_alloc(io, r[1] * c->dim);
    tt_real *v = run_alloc(io, r[1] * c->dim);
    tt_real *y = run_alloc(io, s[1] * c->dim);
    tt_real *y2 = run_alloc(io, s2[1] * c->dim);
    tt_dit_cross_kv(io->ctx, m, i, k, v, context, r[1]);
    const tt_dit_context text = {.k = k, .v = v, .rows = r[1]};
    tt_dit_cross_attention(io->ctx, m, i, y, x, s[1], &text);
    tt_dit_cross_attention(io->ctx, m, i, y2, x2, s2[1], &text);
    run_put(io, "y", y, 1, s[1], c->dim);
    run_put(io, "k", k, 1, r[1], H, D);
    run_put(io, "v", v, 1, r[1], H, D);
    run_put(io, "y2", y2, 1, s2[1], c->dim);
}

/* Scores of admission rounds as they come. */
typedef struct rounds {
    tt_real *score;        /* [max, P] */
    int64_t n, max, P;
} rounds;

static void on_event(void *user, const tt_event *e)
{
    rounds *g = user;
    int64_t P;
    const double *score = tt_event_values(e, "scores", TT_F64, &P);
    if (!score || g->n == g->max || (g->n && P != g->P)) return;
    g->P = P;
    for (int64_t i = 0; i < P; i++)
        g->score[g->n * P + i] = (tt_real)score[i];
    g->n++;
}

/* What a run of self-attention calls writes down. */
typedef struct attn_record {
    tt_real *y;            /* [calls, T, dim]                                 */
    int64_t *ends;         /* [calls, 2] frames                               */
    int64_t *memory;       /* [calls, M]                                      */
    int64_t *counters;     /* [calls, 3]                                      */
    tt_real *k, *v;        /* [snapshots, cap, H, D]                          */
} attn_record;

static void note_state(attn_record *r, tt_cache *cache, int64_t layer,
                       int64_t call)
{
    const tt_layer *y = tt_cache_layer(cache, layer);
    tether_layer info;
    r->ends[2 * call] = y->seen;
    r->ends[2 * call + 1] = y->len / y->geo->L;
    if (!tether_look(cache, layer, &info)) return;
    for (int64_t j = 0; j < info.M; j++)
        r->memory[call * info.M + j] = info.memory_index[j];
    r->counters[3 * call] = info.admissions;
    r->counters[3 * call + 1] = info.rejections;
    r->counters[3 * call + 2] = info.edits;
}

/* Kinds self_attn_fifo (start_frames say when a chunk begins) and
 * self_attn_tether (a noisy and a context pass per chunk). */
static void self_attn(run_io *io, tt_dit *m, bool tether)
{
    const tt_dit_config *c = tt_dit_get_config(m);
    const int64_t layer = tt_json_int(io->json, "block", 0);
    const int64_t H = c->heads, D = c->dim / H;
    int64_t s[4] = {0}, nstart, nsnap, S = 0;
    const grid g = case_grid(io);
    const tt_real *x = run_input(io, "x", 4, s);       /* [calls, 1, T, dim]  */
    const int64_t *given = run_ints(io, "start_frames", &nstart);
    const int64_t *snap = run_ints(io, "cache_after_calls", &nsnap);
    const int64_t calls = s[0], T = s[2], one = T * c->dim;

    tt_policy_options o = tt_policy_defaults(tether ? "tether" : "fifo");
    o.K = tt_json_int(io->json, "K", o.K);
    o.S = tt_json_int(io->json, "S", o.S);
    o.R = tt_json_int(io->json, "R", o.R);
    o.M = tt_json_int(io->json, "M", -1);
    if (tether) {
        tt_policy_put(&o, "alpha", tt_json_num(io->json, "alpha",
                                               tt_policy_get(&o, "alpha")));
        tt_policy_put(&o, "tau", tt_json_num(io->json, "tau",
                                             tt_policy_get(&o, "tau")));
        tt_policy_put(&o, "score-temperature",
                      tt_json_num(io->json, "score_temperature", 1));
    }
    int64_t frames = tether ? (calls + 1) / 2 * g.F : g.F;
    for (int64_t i = 0; i < nstart; i++)
        if (given[i] + g.F > frames) frames = given[i] + g.F;
    tt_cache *cache = make_cache(io, m, g, o, frames);
    if (!cache) return;
    const int64_t M = tt_cache_options(cache)->M > 0
                          ? tt_cache_options(cache)->M : 0;
    const int64_t cap = tt_cache_layer(cache, layer)->cap;

    attn_record r = {.y = run_alloc(io, calls * one)};
    r.ends = tt_alloc0(io->ctx, &io->arena, calls * 2, 8, "ends");
    r.memory = tt_alloc0(io->ctx, &io->arena, calls * M, 8, "memory");
    r.counters = tt_alloc0(io->ctx, &io->arena, calls * 3, 8, "counters");
    r.k = run_alloc(io, nsnap * cap * H * D);
    r.v = run_alloc(io, nsnap * cap * H * D);
    rounds grabs = {.score = run_alloc(io, calls * (M + frames)), .max = calls};
    if (tether) tt_cache_on_event(cache, on_event, &grabs);

    tt_pass p = {.start = -1, .frames = g.F, .chunk = -1};
    for (int64_t i = 0; i < calls && !io->ctx->status; i++) {
        const int64_t start = tether ? i / 2 * g.F : i < nstart ? given[i] : 0;
        const bool first = start != p.start;
        p.step = first ? 0 : p.step + 1;
        p.chunk += first;
        p.start = start;
        p.context = tether && i % 2;
        tt_dit_self_attention(io->ctx, m, layer, r.y + i * one, x + i * one,
                              &(tt_dit_part){.T = T, .cache = cache,
                                             .pass = &p});
        if (io->ctx->status) break;
        note_state(&r, cache, layer, i);
        for (int64_t j = 0; j < nsnap; j++)
            if (snap[j] == i)
                copy_cache(io, r.k + j * cap * H * D, r.v + j * cap * H * D,
                           cache, layer, !tether), S = j + 1;
    }
    run_put(io, "y", r.y, calls, 1, T, c->dim);
    run_put_i64(io, "ends", r.ends, calls, 2);
    if (S == nsnap && nsnap) {
        run_put(io, "cache_k", r.k, nsnap, 1, cap, H, D);
        run_put(io, "cache_v", r.v, nsnap, 1, cap, H, D);
    }
    if (tether) {
        run_put_i64(io, "memory_index", r.memory, calls, M);
        run_put_i64(io, "counters", r.counters, calls, 3);
        run_put(io, "grab_scores", grabs.score, grabs.n, grabs.P);
    }
    tt_cache_close(cache);
}

/* ---- block and whole network --------------------------------------------- */

static void block(run_io *io, tt_dit *m)
{
    const tt_dit_config *c = tt_dit_get_config(m);
    const int64_t i = tt_json_int(io->json, "block", 0), H = c->heads;
    int64_t s[4] = {0}, n[4] = {0}, r[3] = {0};
    const grid g = case_grid(io);
    tt_real *x = run_input(io, "x", 4, s);             /* [calls, 1, T, dim]  */
    const tt_real *e0 = run_input(io, "e0", 4, n);     /* [calls, F, 6, dim]  */
    const tt_real *context = run_input(io, "context", 3, r);
    const int64_t calls = s[0], T = s[2], cap = calls * T;
    tt_real *k = run_alloc(io, r[1] * c->dim);
    tt_real *v = run_alloc(io, r[1] * c->dim);
    tt_cache *cache = make_cache(io, m, g, tt_policy_defaults("full"),
                                 calls * g.F);
    if (!cache) return;
    tt_dit_cross_kv(io->ctx, m, i, k, v, context, r[1]);
    for (int64_t j = 0; j < calls && !io->ctx->status; j++) {
        const tt_pass p = {.start = j * g.F, .frames = g.F, .chunk = j};
        tt_dit_block(io->ctx, m, i, x + j * T * c->dim,
                     &(tt_dit_part){.T = T, .cache = cache, .pass = &p},
                     e0 + j * n[1] * n[2] * n[3], n[1],
                     &(tt_dit_context){.k = k, .v = v, .rows = r[1]});
    }
    tt_real *ck = run_alloc(io, cap * c->dim);
    tt_real *cv = run_alloc(io, cap * c->dim);
    copy_cache(io, ck, cv, cache, i, true);
    run_put(io, "y", x, calls, 1, T, c->dim);
    run_put(io, "cache_k", ck, 1, cap, H, c->dim / H);
    run_put(io, "cache_v", cv, 1, cap, H, c->dim / H);
    tt_cache_close(cache);
}

/* What a case gives the network. */
typedef struct given {
    int64_t calls;
    const tt_real *x;      /* [calls, F, C, h, w]                             */
    const tt_real *t;      /* [calls, nt]                                     */
    int64_t nt;
    const tt_real *text;   /* [rows, text_dim]                                */
    int64_t rows;
    const int64_t *start;  /* [calls] first frames; NULL: 0                   */
} given;

/* The network over given chunks, cache without window. flow and x0 (may be
 * NULL) [calls, F, C, h, w]. */
static void network(run_io *io, tt_dit *m, tt_real *flow, tt_real *x0,
                    const given *n)
{
    const tt_real *x = n->x;
    const int64_t *start = n->start, calls = n->calls;
    const int64_t C = tt_dit_get_config(m)->in_dim;
    const grid g = case_grid(io);
    const int64_t frame = C * 4 * g.h * g.w, one = g.F * frame;
    int64_t frames = g.F;
    for (int64_t i = 0; i < calls && start; i++)
        if (start[i] + g.F > frames) frames = start[i] + g.F;

    tt_schedule sch;
    tt_prompt *prompt = NULL;
    const double steps[] = {1000, 750, 500, 250};
    tt_cache *cache = make_cache(io, m, g, tt_policy_defaults("full"), frames);
    double *td = tt_alloc(io->ctx, &io->arena, n->nt, sizeof *td, "timesteps");
    if (!io->ctx->status)
        tt_schedule_init(io->ctx, &sch, tt_json_num(io->json, "shift", 5),
                         steps, 4, true, 0);
    if (!io->ctx->status)
        tt_prompt_make(io->ctx, &prompt, m, n->text, n->rows);
    tt_pass p = {.start = -1, .frames = g.F, .chunk = -1};
    for (int64_t i = 0; i < calls && !io->ctx->status; i++) {
        const int64_t at = start ? start[i] : 0;
        const bool first = at != p.start;
        p.step = first ? 0 : p.step + 1;
        p.chunk += first;
        p.start = at;
        for (int64_t f = 0; f < n->nt; f++)
            td[f] = (double)n->t[i * n->nt + f];
        tt_dit_forward(io->ctx, m, flow + i * one, x + i * one, &(tt_dit_call){
            .h = 2 * g.h, .w = 2 * g.w, .t = td, .nt = n->nt, .prompt = prompt,
            .cache = cache, .pass = &p});
        for (int64_t f = 0; f < g.F && x0 && !io->ctx->status; f++)
            tt_flow_to_x0(&sch, x0 + i * one + f * frame,
                          x + i * one + f * frame, flow + i * one + f * frame,
                          td[f * n->nt / g.F], frame);
    }
    tt_prompt_free(prompt);
    if (cache) tt_cache_close(cache);
}

static void forward(run_io *io, tt_dit *m)
{
    int64_t s[6] = {0}, n[2] = {0}, r[3] = {0}, ns;
    const tt_real *x = run_input(io, "latent", 6, s);  /* [calls,1,F,C,h,w]   */
    const tt_real *t = run_input(io, "t", 2, n);       /* [calls, F]          */
    const tt_real *text = run_input(io, "text", 3, r);
    const int64_t *start = run_ints(io, "start_frames", &ns);
    const int64_t size = s[0] * s[2] * s[3] * s[4] * s[5];
    tt_real *flow = run_alloc(io, size), *x0 = run_alloc(io, size);
    if (!io->ctx->status && ns != s[0])
        tt_fail(io->ctx, TT_EFORMAT, "%s: %lld start_frames for %lld calls",
                io->dir, (long long)ns, (long long)s[0]);
    network(io, m, flow, x0, &(given){.calls = s[0], .x = x, .t = t,
                                      .nt = n[1], .text = text, .rows = r[1],
                                      .start = start});
    run_put(io, "flow", flow, s[0], 1, s[2], s[3], s[4], s[5]);
    run_put(io, "x0", x0, s[0], 1, s[2], s[3], s[4], s[5]);
}

/* ---- one model in many files --------------------------------------------- */

/* flow of the model in ../layouts/<folder>, written as `name`. */
static void layout(run_io *io, const char *folder, const char *name, int ema)
{
    char path[1024];
    tt_weights *w;
    tt_dit *m = NULL;
    int64_t s[5] = {0}, n[2] = {0}, r[3] = {0};
    const tt_weights_options opt = {.ema = ema};
    const tt_real *x = run_input(io, "latent", 5, s);  /* [1, F, C, h, w]     */
    const tt_real *t = run_input(io, "t", 2, n);
    const tt_real *text = run_input(io, "text", 3, r);
    tt_real *flow = run_alloc(io, s[1] * s[2] * s[3] * s[4]);
    snprintf(path, sizeof path, "%s/../layouts/%s", io->dir, folder);
    if (io->ctx->status
        || tt_weights_open(io->ctx, &w, path, TT_MODEL_DIT, &opt) != TT_OK
        || tt_dit_load(io->ctx, &m, w, NULL, 0) != TT_OK)
        return;
    network(io, m, flow, NULL, &(given){.calls = 1, .x = x, .t = t, .nt = n[1],
                                        .text = text, .rows = r[1]});
    run_put(io, name, flow, 1, s[1], s[2], s[3], s[4]);
    tt_dit_close(m);
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static void layouts(run_io *io)
{
    char path[1024];
    struct dirent **list = NULL;
    snprintf(path, sizeof path, "%s/../layouts", io->dir);
    const int n = scandir(path, &list, visible, alphasort);
    if (n < 1) tt_fail(io->ctx, TT_EIO, "%s: no layouts there", path);
    for (int i = 0; i < n; i++) {
        const char *folder = list[i]->d_name;
        char name[300];
        snprintf(name, sizeof name, "flow.%s", folder);
        if (!strcmp(folder, "wan")) strcpy(name, "flow");
        if (!strcmp(folder, "wan_bf16")) strcpy(name, "flow_bf16");
        if (!strcmp(folder, "wan_f16")) strcpy(name, "flow_f16");
        layout(io, folder, name, -1);
        if (!strcmp(folder, "selfforcing_pt"))
            layout(io, folder, "flow_generator", 0);
        free(list[i]);
    }
    free(list);
}

/* ---- dispatch ------------------------------------------------------------ */

static void self_attn_fifo(run_io *io, tt_dit *m)
{
    self_attn(io, m, false);
}

static void self_attn_tether(run_io *io, tt_dit *m)
{
    self_attn(io, m, true);
}

static const struct { const char *kind; void (*run)(run_io *, tt_dit *); }
    with_model[] = {
        {"time_embedding", time_embedding}, {"embeddings", embeddings},
        {"head", head}, {"qkv", qkv}, {"cross_attn", cross_attn},
        {"self_attn_fifo", self_attn_fifo},
        {"self_attn_tether", self_attn_tether}, {"block", block},
        {"forward", forward},
};

tt_status run_dit_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                       tt_st_writer *out)
{
    const char *kind = tt_json_str(json, "kind", "");
    const bool alone = !strcmp(kind, "rope") || !strcmp(kind, "layouts");
    void (*run)(run_io *, tt_dit *) = NULL;
    for (size_t i = 0; i < sizeof with_model / sizeof *with_model; i++)
        if (!strcmp(kind, with_model[i].kind)) run = with_model[i].run;
    if (!run && !alone) return TT_EUNSUPPORTED;

    run_io io;
    if (run_io_open(&io, ctx, json, dir, out) == TT_OK) {
        tt_dit *m = NULL;
        if (!strcmp(kind, "rope")) rope(&io);
        else if (alone) layouts(&io);
        else if (run_load_dit(&io, &m) == TT_OK) run(&io, m);
        tt_dit_close(m);
    }
    return run_io_close(&io);
}
