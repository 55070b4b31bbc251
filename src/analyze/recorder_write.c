/* recorder_write.c: what a recorder has collected, into files.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tensor names and shapes: analyze.h, tt_recorder_finish. */
#include <stddef.h>
#include <string.h>

#include "analyze/recorder.h"

static const char what[] = "the record of a run";

/* ---- chunks -------------------------------------------------------------- */

/* One tensor with a row of `size` bytes per chunk: the member at `offset` of
 * rec_chunk, itself or, with `pointer`, what it points to. */
static tt_status chunk_rows(tt_recorder *r, tt_st_writer *w, const char *name,
                            tt_dtype type, int rank, const int64_t *dim,
                            size_t offset, bool pointer)
{
    TT_TRY(tt_st_add(w, name, type, rank, dim, NULL));
    for (const rec_chunk *x = r->chunks; x; x = x->next) {
        const char *at = (const char *)x + offset;
        if (pointer) memcpy(&at, (const char *)x + offset, sizeof at);
        TT_TRY(tt_st_append(w, 0, 1, at));
    }
    return TT_OK;
}

#define CHUNK(member) offsetof(rec_chunk, member)

static tt_status write_chunks(tt_recorder *r, tt_st_writer *w)
{
    const int64_t one[1] = {0}, ends[2] = {0, 2}, filled[2] = {0, r->layers};
    const int64_t memory[3] = {0, r->layers, r->M};
    const int64_t counters[3] = {0, r->layers, 3};
    const int64_t slots[3] = {0, r->layers, r->slots};
    TT_TRY(chunk_rows(r, w, "ends", TT_I64, 2, ends, CHUNK(ends), false));
    TT_TRY(chunk_rows(r, w, "chunk_start", TT_I64, 1, one, CHUNK(start),
                      false));
    TT_TRY(chunk_rows(r, w, "chunk_frames", TT_I64, 1, one, CHUNK(frames),
                      false));
    TT_TRY(chunk_rows(r, w, "bio_src", TT_I32, 3, slots, CHUNK(src), true));
    TT_TRY(chunk_rows(r, w, "bio_share", TT_F32, 3, slots, CHUNK(share),
                      true));
    TT_TRY(chunk_rows(r, w, "bio_region", TT_U8, 3, slots, CHUNK(region),
                      true));
    if (!r->tether) return TT_OK;
    TT_TRY(chunk_rows(r, w, "memory_index", TT_I64, 3, memory, CHUNK(memory),
                      true));
    TT_TRY(chunk_rows(r, w, "counters", TT_I64, 3, counters, CHUNK(counters),
                      true));
    return chunk_rows(r, w, "cache_filled", TT_U8, 2, filled, CHUNK(filled),
                      true);
}

/* Frames that were still to come are padded with 0. */
static tt_status write_readable(tt_recorder *r, tt_st_writer *w)
{
    const int64_t dim[3] = {0, r->layers, r->frames};
    float *row = tt_alloc(r->ctx, &r->ctx->scratch, r->layers * r->frames,
                          sizeof *row, what);
    TT_TRY(tt_st_add(w, "readable", TT_F32, 3, dim, NULL));
    for (const rec_chunk *x = r->chunks; x && row; x = x->next) {
        memset(row, 0, (size_t)(r->layers * r->frames) * sizeof *row);
        for (int64_t i = 0; i < r->layers; i++)
            memcpy(row + i * r->frames, x->readable + i * x->nreadable,
                   (size_t)x->nreadable * sizeof *row);
        TT_TRY(tt_st_append(w, 0, 1, row));
    }
    return r->ctx->status;
}

static tt_status write_parts(tt_recorder *r, tt_st_writer *w)
{
    const int64_t dim[2] = {0, 5};
    TT_TRY(tt_st_add(w, "bio_part", TT_I32, 2, dim, NULL));
    for (const rec_part *p = r->parts; p; p = p->next)
        TT_TRY(tt_st_append(w, 0, 1, p->row));
    return TT_OK;
}

/* ---- admission rounds ---------------------------------------------------- */

/* One number per round. */
static tt_status write_numbers(tt_recorder *r, tt_st_writer *w,
                               const char *name, tt_dtype type, size_t offset)
{
    const int64_t dim[1] = {0};
    TT_TRY(tt_st_add(w, name, type, 1, dim, NULL));
    for (const rec_round *x = r->rounds; x; x = x->next)
        TT_TRY(tt_st_append(w, 0, 1, (const char *)x + offset));
    return TT_OK;
}

/* One row of P values per round; shorter rounds are filled up with 0. */
static tt_status write_rows(tt_recorder *r, tt_st_writer *w, const char *name,
                            size_t offset)
{
    const int64_t dim[2] = {0, r->P};
    tt_real *row = tt_alloc(r->ctx, &r->ctx->scratch, r->P, sizeof *row, what);
    TT_TRY(tt_st_add(w, name, sizeof(tt_real) == 8 ? TT_F64 : TT_F32, 2, dim,
                     NULL));
    for (const rec_round *x = r->rounds; x && row; x = x->next) {
        const double *v;
        memcpy(&v, (const char *)x + offset, sizeof v);
        for (int64_t i = 0; i < r->P; i++)
            row[i] = i < x->P ? (tt_real)v[i] : 0;
        TT_TRY(tt_st_append(w, 0, 1, row));
    }
    return r->ctx->status;
}

static tt_status write_sets(tt_recorder *r, tt_st_writer *w)
{
    const int64_t wide[2] = {0, r->P}, slots[2] = {0, r->M};
    tt_arena *mem = &r->ctx->scratch;
    int64_t *index = tt_alloc(r->ctx, mem, r->P, sizeof *index, what);
    uint8_t *keep = tt_alloc(r->ctx, mem, r->P, 1, what);
    const rec_round *x;
    TT_TRY(tt_st_add(w, "grab_candidates", TT_I64, 2, wide, NULL));
    for (x = r->rounds; x && index; x = x->next) {
        for (int64_t i = 0; i < r->P; i++)
            index[i] = i < x->P ? x->candidates[i] : -1;
        TT_TRY(tt_st_append(w, 0, 1, index));
    }
    TT_TRY(tt_st_add(w, "grab_keep", TT_U8, 2, wide, NULL));
    for (x = r->rounds; x && keep; x = x->next) {
        for (int64_t i = 0; i < r->P; i++) keep[i] = i < x->P ? x->keep[i] : 0;
        TT_TRY(tt_st_append(w, 0, 1, keep));
    }
    TT_TRY(tt_st_add(w, "grab_memory_after", TT_I64, 2, slots, NULL));
    for (x = r->rounds; x; x = x->next)
        TT_TRY(tt_st_append(w, 0, 1, x->memory));
    return r->ctx->status;
}

#define ROUND(member) offsetof(rec_round, member)

static tt_status write_rounds(tt_recorder *r, tt_st_writer *w)
{
    TT_TRY(write_numbers(r, w, "grab_layer", TT_I64, ROUND(layer)));
    TT_TRY(write_numbers(r, w, "grab_chunk", TT_I64, ROUND(chunk)));
    TT_TRY(write_numbers(r, w, "grab_sub", TT_I64, ROUND(sub)));
    TT_TRY(write_rows(r, w, "grab_mass", ROUND(mass)));
    TT_TRY(write_rows(r, w, "grab_div", ROUND(div)));
    TT_TRY(write_rows(r, w, "grab_scores", ROUND(score)));
    TT_TRY(write_sets(r, w));
    return write_numbers(r, w, "grab_margin", TT_F64, ROUND(margin));
}

/* ---- compressions -------------------------------------------------------- */

static tt_status write_events(tt_recorder *r, tt_st_writer *w)
{
    const int64_t head[2] = {0, 7}, frame[2] = {0, 4}, phi[2] = {0, 2};
    const rec_event *x;
    TT_TRY(tt_st_add(w, "comp_event", TT_I64, 2, head, NULL));
    for (x = r->events; x; x = x->next)
        TT_TRY(tt_st_append(w, 0, 1, x->head));
    TT_TRY(tt_st_add(w, "comp_frame", TT_I64, 2, frame, NULL));
    int64_t row[4] = {0};
    for (x = r->events; x; x = x->next, row[0]++)
        for (int64_t f = 0; f < x->nframes; f++) {
            memcpy(row + 1, x->frame + 3 * f, 3 * sizeof *row);
            if (row[2]) TT_TRY(tt_st_append(w, 0, 1, row));
        }
    TT_TRY(tt_st_add(w, "comp_frame_phi", TT_F64, 2, phi, NULL));
    for (x = r->events; x; x = x->next)
        for (int64_t f = 0; f < x->nframes; f++)
            if (x->frame[3 * f + 1])
                TT_TRY(tt_st_append(w, 0, 1, x->phi + 2 * f));
    return TT_OK;
}

tt_status recorder_write_trace(tt_recorder *r, const char *path)
{
    tt_st_writer *w;
    TT_TRY(tt_st_create(r->ctx, &w, path));
    write_chunks(r, w);
    if (!r->ctx->status) write_readable(r, w);
    if (!r->ctx->status) write_parts(r, w);
    if (!r->ctx->status && r->tether) write_rounds(r, w);
    if (!r->ctx->status && r->events) write_events(r, w);
    return tt_st_finish(w);
}

/* ---- run.json ------------------------------------------------------------ */

static void add_number(text *t, const char *key, double v)
{
    text_add(t, ",\n    \"%s\": ", key);
    text_number(t, v, "null");
}

static void add_string(text *t, const char *key, const char *s)
{
    text_add(t, ",\n  \"%s\": ", key);
    text_json(t, s);
}

static void add_policy(text *t, const tt_policy_options *o)
{
    text_add(t, ",\n  \"policy\": {\n    \"name\": ");
    text_json(t, o->name);
    add_number(t, "K", (double)o->K);
    add_number(t, "S", (double)o->S);
    add_number(t, "M", (double)o->M);
    add_number(t, "R", (double)o->R);
    add_number(t, "context_noise", (double)o->context_noise);
    for (const tt_knob *k = tt_policy_class_of(o)->knobs; k && k->name; k++) {
        char value[64];
        if (k->at < TT_OWN(0)) continue;     /* K, S, M, R */
        tt_policy_show(value, sizeof value, o, k);
        text_add(t, ",\n    \"%s\": ", k->name);
        if (k->type == TT_KNOB_WORD) text_json(t, value);
        else text_add(t, "%s", value);
    }
    text_add(t, "\n  }");
}

static void add_scenes(text *t, const tt_recorder_options *o)
{
    if (!o->nscenes) return;
    text_add(t, ",\n  \"scenes\": [");
    for (int i = 0; i < o->nscenes; i++) {
        const tt_recorder_scene *s = &o->scene[i];
        text_add(t, "%s\n    {\"chunk\": %lld, \"cut\": %s, \"prompt\": ",
                 i ? "," : "", (long long)s->chunk, s->cut ? "true" : "false");
        text_json(t, s->prompt);
        text_add(t, "}");
    }
    text_add(t, "\n  ]");
}

tt_status recorder_write_run(tt_recorder *r, const char *path)
{
    const tt_geometry *g = tt_cache_geometry(r->cache);
    text t;
    text_begin(&t, r->ctx);
    text_add(&t, "{\n  \"format\": \"tether run 1\"");
    add_string(&t, "label", r->opt.label);
    add_string(&t, "prompt", r->opt.prompt);
    add_scenes(&t, &r->opt);
    text_add(&t, ",\n  \"seed\": %llu,\n  \"sample\": %lld",
             (unsigned long long)r->opt.seed, (long long)r->opt.sample);
    add_string(&t, "video", r->opt.video);
    add_string(&t, "sheet", r->opt.sheet);
    add_policy(&t, tt_cache_options(r->cache));
    text_add(&t, ",\n  \"sizes\": {\n    \"layers\": %lld",
             (long long)g->layers);
    add_number(&t, "heads", (double)g->H);
    add_number(&t, "head_dim", (double)g->D);
    add_number(&t, "tokens_per_frame", (double)g->L);
    add_number(&t, "chunk", (double)g->chunk);
    add_number(&t, "frames", (double)r->frames);
    add_number(&t, "chunks", (double)r->nchunks);
    text_add(&t, "\n  }\n}\n");
    text_save(&t, path);
    text_end(&t);
    return r->ctx->status;
}
