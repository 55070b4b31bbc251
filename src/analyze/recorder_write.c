/* recorder_write.c: what a recorder has collected, into files.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tensor names and shapes: analyze.h, tt_recorder_finish. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/recorder.h"
#include "io/jsonout.h"
#include "io/outfile.h"

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
    const int64_t one[1] = {0}, ends[2] = {0, 2};
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
    const tt_field *f = r->shown.kind ? r->shown.kind->field : NULL;
    for (size_t i = 0; f && f[i].name; i++) {
        const int64_t dim[3] = {0, r->layers, r->shown.value[i].n};
        if (recorder_keeps(&f[i]))
            TT_TRY(chunk_rows(r, w, f[i].name, f[i].type,
                              f[i].flags & TT_FIELD_ROW ? 3 : 2, dim,
                              CHUNK(shown) + i * sizeof(void *), true));
    }
    return TT_OK;
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

/* ---- events -------------------------------------------------------------- */

/* One number per event: the int64_t at `offset` of tt_event. */
static tt_status write_place(tt_recorder *r, tt_st_writer *w, const rec_kind *k,
                             const char *name, size_t offset)
{
    const int64_t dim[1] = {0};
    char full[64];
    snprintf(full, sizeof full, "%s_%s", k->kind->name, name);
    TT_TRY(tt_st_add(w, full, TT_I64, 1, dim, NULL));
    for (const rec_event *x = k->first; x; x = x->next)
        TT_TRY(tt_st_append(w, 0, 1, (const char *)&x->e + offset));
    return r->ctx->status;
}

/* row [width] in the type of the trace: n values, then the field's `rest`. */
static void fill_row(void *row, const tt_field *f, const void *at, int64_t n,
                     int64_t width)
{
    tt_real *real = row;
    for (int64_t i = 0; i < width; i++) {
        const bool in = i < n;
        if (f->flags & TT_FIELD_REAL)
            real[i] = (tt_real)(in ? ((const double *)at)[i] : (double)f->rest);
        else if (f->type == TT_F64)
            ((double *)row)[i] = in ? ((const double *)at)[i] : (double)f->rest;
        else if (f->type == TT_I64)
            ((int64_t *)row)[i] = in ? ((const int64_t *)at)[i] : f->rest;
        else
            ((uint8_t *)row)[i] = in ? ((const uint8_t *)at)[i]
                                     : (uint8_t)f->rest;
    }
}

/* The values of field i, a row per event. */
static tt_status write_field(tt_recorder *r, tt_st_writer *w, const rec_kind *k,
                             int i)
{
    const tt_field *f = &k->kind->field[i];
    const bool is_row = f->flags & TT_FIELD_ROW;
    const int64_t width = is_row ? k->width[i] : 1, dim[2] = {0, width};
    const tt_dtype real = sizeof(tt_real) == 8 ? TT_F64 : TT_F32;
    char name[64];
    void *row = tt_alloc(r->ctx, &r->ctx->scratch, width, sizeof(double), what);
    snprintf(name, sizeof name, "%s_%s", k->kind->name, f->name);
    TT_TRY(tt_st_add(w, name, f->flags & TT_FIELD_REAL ? real : f->type,
                     is_row ? 2 : 1, dim, NULL));
    for (const rec_event *x = k->first; x && row; x = x->next) {
        fill_row(row, f, x->e.value[i].at, x->e.value[i].n, width);
        TT_TRY(tt_st_append(w, 0, 1, row));
    }
    return r->ctx->status;
}

static tt_status write_kind(tt_recorder *r, tt_st_writer *w, const rec_kind *k)
{
    TT_TRY(write_place(r, w, k, "layer", offsetof(tt_event, layer)));
    TT_TRY(write_place(r, w, k, "chunk", offsetof(tt_event, chunk)));
    for (int i = 0; k->kind->field[i].name; i++)
        if (recorder_keeps(&k->kind->field[i]))
            TT_TRY(write_field(r, w, k, i));
    return TT_OK;
}

/* ---- compressions -------------------------------------------------------- */

static tt_status write_choices(tt_recorder *r, tt_st_writer *w)
{
    const int64_t head[2] = {0, 7}, frame[2] = {0, 4}, phi[2] = {0, 2};
    const rec_choice *x;
    TT_TRY(tt_st_add(w, "comp_event", TT_I64, 2, head, NULL));
    for (x = r->choices; x; x = x->next)
        TT_TRY(tt_st_append(w, 0, 1, x->head));
    TT_TRY(tt_st_add(w, "comp_frame", TT_I64, 2, frame, NULL));
    int64_t row[4] = {0};
    for (x = r->choices; x; x = x->next, row[0]++)
        for (int64_t f = 0; f < x->nframes; f++) {
            memcpy(row + 1, x->frame + 3 * f, 3 * sizeof *row);
            if (row[2]) TT_TRY(tt_st_append(w, 0, 1, row));
        }
    TT_TRY(tt_st_add(w, "comp_frame_phi", TT_F64, 2, phi, NULL));
    for (x = r->choices; x; x = x->next)
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
    for (int i = 0; i < r->nkinds && !r->ctx->status; i++)
        write_kind(r, w, &r->kind[i]);
    if (!r->ctx->status && r->choices) write_choices(r, w);
    return tt_st_finish(w);
}

/* ---- run.json ------------------------------------------------------------ */

static void put_policy(json_out *j, const tt_policy_options *o)
{
    json_open(j, "policy", '{');
    json_str(j, "name", o->name);
    json_int(j, "K", o->K);
    json_int(j, "S", o->S);
    json_int(j, "M", o->M);
    json_int(j, "R", o->R);
    json_int(j, "context_noise", o->context_noise);
    for (const tt_knob *k = tt_policy_class_of(o)->knobs; k && k->name; k++) {
        char value[64];
        if (k->at < TT_OWN(0)) continue;     /* K, S, M, R */
        tt_policy_show(value, sizeof value, o, k);
        if (k->type == TT_KNOB_WORD) json_str(j, k->name, value);
        else json_real(j, k->name, strtod(value, NULL));
    }
    json_close(j, '}');
}

static void put_sizes(json_out *j, const tt_recorder *r)
{
    const tt_geometry *g = tt_cache_geometry(r->cache);
    json_open(j, "sizes", '{');
    json_int(j, "layers", g->layers);
    json_int(j, "heads", g->heads);
    json_int(j, "head_dim", g->D);
    json_int(j, "tokens_per_frame", g->L);
    json_int(j, "chunk", g->chunk);
    json_int(j, "frames", r->frames);
    json_int(j, "chunks", r->nchunks);
    json_close(j, '}');
}

void tt_recorder_scenes(json_out *j, const tt_recorder_scene *scene, int n)
{
    const bool pretty = j->pretty;
    if (!n) return;
    json_open(j, "scenes", '[');
    j->pretty = false; /* on one line */
    for (int i = 0; i < n; i++) {
        json_open(j, NULL, '{');
        json_int(j, "chunk", scene[i].chunk);
        json_bool(j, "cut", scene[i].cut);
        json_str(j, "prompt", scene[i].prompt);
        json_close(j, '}');
    }
    json_close(j, ']');
    j->pretty = pretty;
}

tt_status recorder_write_run(tt_recorder *r, const char *path)
{
    const tt_recorder_options *o = &r->opt;
    tt_out out;
    json_out j;
    TT_TRY(tt_out_open(r->ctx, &out, path));
    json_begin(&j, out.file, true);
    json_str(&j, "format", "tether run 1");
    if (r->so_far) json_bool(&j, "unfinished", true);
    json_str(&j, "label", o->label);
    json_str(&j, "prompt", o->prompt);
    tt_recorder_scenes(&j, o->scene, o->nscenes);
    json_u64(&j, "seed", o->seed);
    json_int(&j, "sample", (int64_t)o->sample);
    json_str(&j, "video", o->video);
    json_str(&j, "sheet", o->sheet);
    put_policy(&j, tt_cache_options(r->cache));
    put_sizes(&j, r);
    json_end(&j);
    return tt_out_finish(r->ctx, &out);
}
