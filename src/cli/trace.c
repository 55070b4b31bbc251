/* trace.c: --trace-cache, every decision of the cache policy in one file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace.h"

#include <string.h>

#include "tether/io.h"

struct trace_round {
    trace_round *next;
    int64_t layer, chunk, sub, P;
    int64_t *candidates, *memory;  /* [P], [M]                                */
    double *mass, *div, *score;    /* [P]                                     */
    uint8_t *keep;                 /* [P]                                     */
    double margin;
};

struct trace_chunk {
    trace_chunk *next;
    int64_t ends[2];
    uint8_t *filled;               /* [layers]                                */
    int64_t *memory, *counters;    /* [layers, M], [layers, 3]                */
};

static void *copy(trace *t, const void *from, int64_t n, size_t size)
{
    void *to = tt_alloc(t->ctx, &t->mem, n, size, "cache trace");
    if (to && n) memcpy(to, from, (size_t)n * size);
    return to;
}

static void on_grab(void *user, const tt_grab_record *r)
{
    trace *t = user;
    trace_round *x = tt_alloc0(t->ctx, &t->mem, 1, sizeof *x, "cache trace");
    if (!x) return;
    *x = (trace_round){.layer = r->layer, .chunk = r->chunk, .sub = r->sub,
                       .P = r->P, .margin = r->margin};
    x->candidates = copy(t, r->candidates, r->P, sizeof *r->candidates);
    x->memory = copy(t, r->memory_after, r->M, sizeof *r->memory_after);
    x->mass = copy(t, r->mass, r->P, sizeof *r->mass);
    x->div = copy(t, r->div, r->P, sizeof *r->div);
    x->score = copy(t, r->score, r->P, sizeof *r->score);
    x->keep = copy(t, r->keep, r->P, 1);
    *t->last_round = x;
    t->last_round = &x->next;
    t->nrounds++;
    if (r->P > t->P) t->P = r->P;
    if (r->M > t->M) t->M = r->M;
}

void trace_begin(trace *t, tt_ctx *ctx, tt_cache *cache)
{
    memset(t, 0, sizeof *t);
    t->ctx = ctx;
    t->last_round = &t->rounds;
    t->last_chunk = &t->chunks;
    t->layers = tt_cache_geometry(cache)->layers;
    tt_tether_info info;
    t->tether = tt_cache_tether_info(cache, 0, &info);
    if (t->tether) t->M = info.M;
    tt_cache_on_grab(cache, on_grab, t);
}

void trace_add_chunk(trace *t, tt_cache *cache)
{
    trace_chunk *x = tt_alloc0(t->ctx, &t->mem, 1, sizeof *x, "cache trace");
    if (!x) return;
    const tt_layer *y = tt_cache_layer(cache, 0);
    x->ends[0] = y->seen;
    x->ends[1] = y->len / y->geo->L;
    x->filled = tt_alloc0(t->ctx, &t->mem, t->layers, 1, "cache trace");
    x->memory = tt_alloc0(t->ctx, &t->mem, t->layers * t->M,
                          sizeof *x->memory, "cache trace");
    x->counters = tt_alloc0(t->ctx, &t->mem, 3 * t->layers,
                            sizeof *x->counters, "cache trace");
    tt_tether_info info;
    for (int64_t i = 0; i < t->layers && !t->ctx->status; i++) {
        if (!tt_cache_tether_info(cache, i, &info)) break;
        x->filled[i] = info.filled;
        x->counters[3 * i] = info.admissions;
        x->counters[3 * i + 1] = info.rejections;
        x->counters[3 * i + 2] = info.edits;
        for (int64_t m = 0; m < t->M; m++)
            x->memory[i * t->M + m] = info.memory_index[m];
    }
    *t->last_chunk = x;
    t->last_chunk = &x->next;
    t->nchunks++;
}

/* ---- writing ------------------------------------------------------------- */

static tt_status write_chunks(trace *t, tt_st_writer *w)
{
    const int64_t ends[2] = {0, 2}, filled[2] = {0, t->layers};
    const int64_t memory[3] = {0, t->layers, t->M};
    const int64_t counters[3] = {0, t->layers, 3};
    const trace_chunk *x;
    TT_TRY(tt_st_add(w, "ends", TT_I64, 2, ends, NULL));
    for (x = t->chunks; x; x = x->next)
        TT_TRY(tt_st_append(w, 0, 1, x->ends));
    if (!t->tether) return TT_OK;
    TT_TRY(tt_st_add(w, "memory_index", TT_I64, 3, memory, NULL));
    for (x = t->chunks; x; x = x->next)
        TT_TRY(tt_st_append(w, 0, 1, x->memory));
    TT_TRY(tt_st_add(w, "counters", TT_I64, 3, counters, NULL));
    for (x = t->chunks; x; x = x->next)
        TT_TRY(tt_st_append(w, 0, 1, x->counters));
    TT_TRY(tt_st_add(w, "cache_filled", TT_U8, 2, filled, NULL));
    for (x = t->chunks; x; x = x->next)
        TT_TRY(tt_st_append(w, 0, 1, x->filled));
    return TT_OK;
}

/* One number per round. */
static tt_status write_numbers(trace *t, tt_st_writer *w, const char *name,
                               size_t offset)
{
    const int64_t dim[1] = {0};
    TT_TRY(tt_st_add(w, name, TT_I64, 1, dim, NULL));
    for (const trace_round *x = t->rounds; x; x = x->next)
        TT_TRY(tt_st_append(w, 0, 1, (const char *)x + offset));
    return TT_OK;
}

/* One row of t->P values per round; rounds with fewer candidates are filled
 * with 0. */
static tt_status write_rows(trace *t, tt_st_writer *w, const char *name,
                            size_t offset)
{
    const int64_t dim[2] = {0, t->P};
    tt_real *row = tt_alloc(t->ctx, &t->mem, t->P, sizeof *row, "cache trace");
    TT_TRY(tt_st_add(w, name, sizeof(tt_real) == 8 ? TT_F64 : TT_F32, 2, dim,
                     NULL));
    for (const trace_round *x = t->rounds; x && row; x = x->next) {
        const double *v;
        memcpy(&v, (const char *)x + offset, sizeof v);
        for (int64_t i = 0; i < t->P; i++)
            row[i] = i < x->P ? (tt_real)v[i] : 0;
        TT_TRY(tt_st_append(w, 0, 1, row));
    }
    return t->ctx->status;
}

static tt_status write_sets(trace *t, tt_st_writer *w)
{
    const int64_t wide[2] = {0, t->P}, slots[2] = {0, t->M};
    int64_t *index = tt_alloc(t->ctx, &t->mem, t->P, sizeof *index, "trace");
    uint8_t *keep = tt_alloc(t->ctx, &t->mem, t->P, 1, "trace");
    const trace_round *x;
    TT_TRY(tt_st_add(w, "grab_candidates", TT_I64, 2, wide, NULL));
    for (x = t->rounds; x && index; x = x->next) {
        for (int64_t i = 0; i < t->P; i++)
            index[i] = i < x->P ? x->candidates[i] : -1;
        TT_TRY(tt_st_append(w, 0, 1, index));
    }
    TT_TRY(tt_st_add(w, "grab_keep", TT_U8, 2, wide, NULL));
    for (x = t->rounds; x && keep; x = x->next) {
        for (int64_t i = 0; i < t->P; i++) keep[i] = i < x->P ? x->keep[i] : 0;
        TT_TRY(tt_st_append(w, 0, 1, keep));
    }
    TT_TRY(tt_st_add(w, "grab_memory_after", TT_I64, 2, slots, NULL));
    for (x = t->rounds; x; x = x->next)
        TT_TRY(tt_st_append(w, 0, 1, x->memory));
    return t->ctx->status;
}

static tt_status write_rounds(trace *t, tt_st_writer *w)
{
    const int64_t dim[1] = {0};
    TT_TRY(write_numbers(t, w, "grab_layer", offsetof(trace_round, layer)));
    TT_TRY(write_numbers(t, w, "grab_chunk", offsetof(trace_round, chunk)));
    TT_TRY(write_numbers(t, w, "grab_sub", offsetof(trace_round, sub)));
    TT_TRY(write_rows(t, w, "grab_mass", offsetof(trace_round, mass)));
    TT_TRY(write_rows(t, w, "grab_div", offsetof(trace_round, div)));
    TT_TRY(write_rows(t, w, "grab_scores", offsetof(trace_round, score)));
    TT_TRY(write_sets(t, w));
    TT_TRY(tt_st_add(w, "grab_margin", TT_F64, 1, dim, NULL));
    for (const trace_round *x = t->rounds; x; x = x->next)
        TT_TRY(tt_st_append(w, 0, 1, &x->margin));
    return TT_OK;
}

tt_status trace_write(trace *t, const char *path)
{
    tt_st_writer *w;
    TT_TRY(tt_st_create(t->ctx, &w, path));
    write_chunks(t, w);
    if (t->tether && !t->ctx->status) write_rounds(t, w);
    return tt_st_finish(w);
}

void trace_end(trace *t)
{
    tt_arena_free(&t->mem);
}
