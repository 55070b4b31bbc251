/* convert.c: any readable checkpoint as one safetensors file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   A model's weights under Wan's or Diffusers' names; a file that is no
 *         known model keeps its names. Values pass in pieces of PIECE
 *         elements: widened to float32, rounded once to the wanted type, or
 *         copied as stored.
 * Holds   The finished file is opened again and every piece compared with
 *         what it is made from; a file that differs is removed. Memory does
 *         not grow with the file (a strided tensor is gathered whole, and a
 *         LoRA is merged into one weight at a time). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/file.h"
#include "io/folder.h"
#include "io/lora.h"
#include "io/names.h"
#include "io/weights.h"
#include "core/context.h"

#define PIECE 65536 /* a multiple of every block */

typedef struct job {
    tt_ctx *ctx;
    const char *in, *out;
    const tt_convert_options *opt;
    tt_weights *w;           /* NULL: the file as it is                       */
    tt_model_kind kind;
    tt_file *file;           /* when w is NULL                                */
    int64_t count, done, total;
    float *wide;             /* [PIECE]                                       */
    void *packed;            /* [PIECE] of up to 8 bytes                      */
} job;

static const tt_tensor *tensor_at(const job *j, int64_t i)
{
    return j->w ? &j->w->item[i].t : &tt_file_entry(j->file, i)->t;
}

/* The name under which tensor i is written; memory from the scratch arena. */
static const char *name_at(const job *j, int64_t i)
{
    if (!j->w) return tt_file_entry(j->file, i)->name;
    const char *name = j->w->item[i].name;
    if (!j->opt->diffusers) return name;
    char *out = tt_alloc(j->ctx, &j->ctx->scratch,
                         (int64_t)strlen(name) + NAMES_CAPACITY, 1, "a name");
    if (out) names_from_wan(out, name, j->kind);
    return out;
}

static bool is_merged(const job *j, int64_t i)
{
    return j->w && j->w->item[i].patch;
}

/* What a tensor becomes. Integers stay; what safetensors cannot hold, or
 * values that only exist after scaling or merging, become float32. */
static tt_dtype target_type(const job *j, int64_t i)
{
    const tt_tensor *t = tensor_at(j, i);
    if (!tt_tensor_is_real(t)) return t->dtype;
    if (j->opt->dtype != TT_NONE) return j->opt->dtype;
    return tt_dtype_block(t->dtype) > 1 || t->scale != 0 || is_merged(j, i)
             ? TT_F32 : t->dtype;
}

/* ---- one piece ----------------------------------------------------------- */

static tt_status too_large(const job *j, int64_t i, float x)
{
    return tt_fail(j->ctx, TT_EUNSUPPORTED, "%s: %s holds %g, which float16 "
                   "cannot (its largest is 65504); use --dtype bf16 or f32",
                   j->in, name_at(j, i), (double)x);
}

/* j->packed = elements [at, at + n) of the packed view t as `to`. */
static tt_status make_piece(const job *j, int64_t i, const tt_tensor *t,
                            int64_t at, int64_t n, tt_dtype to)
{
    if (to == t->dtype && t->scale == 0) {
        size_t size = tt_dtype_size(to);
        memcpy(j->packed, (const char *)t->data + (size_t)at * size,
               (size_t)n * size);
        if (t->native) tt_swap_stored(j->packed, to, n);
        return TT_OK;
    }
    tt_widen_at_f32(j->wide, t, at, n);
    if (to == TT_F32) {
        memcpy(j->packed, j->wide, (size_t)n * 4);
        tt_swap_stored(j->packed, to, n);
        return TT_OK;
    }
    for (int64_t k = 0; k < n; k++) {
        float x = j->wide[k];
        uint16_t h = to == TT_BF16 ? tt_bf16_from_f32(x) : tt_f16_from_f32(x);
        if (to == TT_F16 && (h & 0x7fff) == 0x7c00 && x - x == 0)
            return too_large(j, i, x);
        memcpy((char *)j->packed + 2 * k, &h, 2);
    }
    tt_swap_stored(j->packed, to, n);
    return TT_OK;
}

/* ---- all pieces ---------------------------------------------------------- */

static void convert_report(job *j, const char *phase, int64_t n)
{
    j->done += n;
    if (j->opt->progress)
        j->opt->progress(j->opt->user, phase, j->done, j->total);
}

/* A packed view of tensor i; a strided one is gathered, and a LoRA merged, into
 * scratch. */
static bool packed_view(job *j, tt_tensor *t, int64_t i)
{
    if (is_merged(j, i))
        return !lora_merge(j->w, &j->w->item[i], &j->ctx->scratch, t);
    *t = *tensor_at(j, i);
    if (tt_tensor_packed(t)) return true;
    void *data = tt_alloc(j->ctx, &j->ctx->scratch, tt_tensor_count(t),
                          tt_dtype_size(t->dtype), "a tensor");
    if (!data) return false;
    io_gather(data, t);
    const tt_tensor own = *t;
    *t = tt_tensor_like(&own, data, own.rank, own.dim);
    return true;
}

static void release(const job *j, int64_t i)
{
    if (j->w && tt_weights_large(j->w))
        tt_weights_release(j->w, tensor_at(j, i));
}

/* Hand the pieces of tensor i to the writer, or compare them with `got`. */
static tt_status pass_tensor(job *j, int64_t i, tt_st_writer *w,
                             const tt_entry *got)
{
    tt_tensor t;
    if (!packed_view(j, &t, i)) return j->ctx->status;
    tt_dtype to = target_type(j, i);
    int64_t n = tt_tensor_count(&t), size = (int64_t)tt_dtype_size(to);
    if (w) TT_TRY(tt_st_open_tensor(w, name_at(j, i), to, t.rank, t.dim));
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t k = n - at < PIECE ? n - at : PIECE;
        if (tt_check_interrupt(j->ctx)) return j->ctx->status;
        TT_TRY(make_piece(j, i, &t, at, k, to));
        if (w) TT_TRY(tt_st_write(w, j->packed, (size_t)(k * size)));
        else if (memcmp(j->packed, (const char *)got->t.data + at * size,
                        (size_t)(k * size)))
            return tt_fail(j->ctx, TT_EIO, "%s: tensor %s was not written as "
                           "it should be (a failing disk?)", j->out,
                           name_at(j, i));
        convert_report(j, w ? "writing" : "checking", k);
    }
    release(j, i);
    return TT_OK;
}

/* Bytes of a header with these names; more than it takes, bar odd names. */
static int64_t header_size(const job *j)
{
    int64_t n = 256;
    tt_arena_mark m = tt_arena_here(&j->ctx->scratch);
    for (int64_t i = 0; i < j->count && !j->ctx->status; i++) {
        const char *name = name_at(j, i);
        if (name)
            n += (int64_t)strlen(name) + 80 + 10 * tensor_at(j, i)->rank;
    }
    tt_arena_reset(&j->ctx->scratch, m);
    return n;
}

static tt_status convert_write_all(job *j)
{
    tt_st_writer *w;
    TT_TRY(tt_st_create(j->ctx, &w, j->out));
    tt_st_meta(w, "format", "pt");
    tt_st_reserve(w, header_size(j));
    for (int64_t i = 0; i < j->count && !j->ctx->status; i++) {
        tt_arena_mark m = tt_arena_here(&j->ctx->scratch);
        pass_tensor(j, i, w, NULL);
        tt_arena_reset(&j->ctx->scratch, m);
    }
    return tt_st_finish(w);
}

static tt_status verify_tensor(job *j, int64_t i, const tt_file *f)
{
    const tt_tensor *t = tensor_at(j, i);
    const char *name = name_at(j, i);
    const tt_entry *e = name ? tt_file_find(f, name) : NULL;
    bool same = e && e->t.rank == t->rank && e->t.dtype == target_type(j, i);
    for (int d = 0; same && d < t->rank; d++) same = e->t.dim[d] == t->dim[d];
    if (!same)
        return tt_fail(j->ctx, TT_EIO, "%s: tensor %s is missing from what "
                       "was written", j->out, name ? name : "?");
    TT_TRY(pass_tensor(j, i, NULL, e));
    file_release(f, &e->t);
    return TT_OK;
}

static tt_status verify_all(job *j)
{
    tt_file *f;
    TT_TRY(tt_file_open(j->ctx, &f, j->out));
    if (tt_file_count(f) != j->count)
        tt_fail(j->ctx, TT_EIO, "%s: holds %lld tensors, expected %lld",
                j->out, (long long)tt_file_count(f), (long long)j->count);
    for (int64_t i = 0; i < j->count && !j->ctx->status; i++) {
        tt_arena_mark m = tt_arena_here(&j->ctx->scratch);
        verify_tensor(j, i, f);
        tt_arena_reset(&j->ctx->scratch, m);
    }
    tt_file_close(f);
    return j->ctx->status;
}

/* ---- which model --------------------------------------------------------- */

/* Is there a model of this kind that cannot be opened? In a folder no other
 * part may be taken for it. */
static bool is_refused(const job *j, tt_status s)
{
    if (!folder_is(j->in)) return s == TT_EIO;
    if (s != TT_EIO) return s != TT_OK;
    tt_ctx look = {.warn = tt_ignore_warning};
    tt_arena mem = {0};
    char *path;
    const bool there = !folder_find(&look, &mem, &path, j->in, j->kind);
    tt_arena_free(&mem);
    tt_ctx_free(&look);
    return there;
}

/* The first kind that the content fits; j->w stays NULL when none does. A model
 * that is refused is not a file of tensors: its numbers mean something else. */
static tt_status convert_find_kind(job *j)
{
    bool known = false;
    tt_weights_options o = {.ema = j->opt->ema, .known = &known};
    void (*warn)(void *, const char *) = j->ctx->warn;
    if (j->opt->kind >= 0) {
        j->kind = (tt_model_kind)j->opt->kind;
        o.lora = j->opt->lora;
        return tt_weights_open(j->ctx, &j->w, j->in, j->kind, &o);
    }
    for (int k = 0; k < TT_MODEL_KINDS && !j->w; k++) {
        j->kind = (tt_model_kind)k;
        j->ctx->warn = tt_ignore_warning;
        tt_status s = tt_weights_open(j->ctx, &j->w, j->in, j->kind, &o);
        j->ctx->warn = warn;
        if (s == TT_ENOMEM || (s && known) || is_refused(j, s)) return s;
        tt_clear(j->ctx);
    }
    if (j->w || !folder_is(j->in)) return TT_OK;
    j->kind = TT_MODEL_DIT; /* whose sentence says what is wrong with it */
    return tt_weights_open(j->ctx, &j->w, j->in, j->kind, &o);
}

/* A file whose keys are all for another part would change nothing. */
static tt_status convert_merge(const job *j)
{
    if (!j->opt->lora) return TT_OK;
    if (!j->w)
        return tt_fail(j->ctx, TT_EUNSUPPORTED, "%s: not a model that a LoRA "
                       "can be merged into", j->in);
    if (j->opt->kind < 0) TT_TRY(lora_add(j->w, j->opt->lora));
    TT_TRY(tt_weights_lora_used(j->w));
    for (const lora_file *f = j->w->lora; f; f = f->next) {
        if (f->others)
            tt_warn(j->ctx, "%s: %lld keys are for another part of the model "
                    "and not merged here; convert that one with it too",
                    f->path, (long long)f->others);
    }
    return TT_OK;
}

static tt_status open_input(job *j)
{
    TT_TRY(convert_find_kind(j));
    TT_TRY(convert_merge(j));
    if (j->w) {
        TT_TRY(tt_weights_check(j->ctx, j->w));
        j->count = tt_weights_count(j->w);
        j->opt->chosen(j->opt->user, names_kind_text(j->kind),
                       tt_weights_path(j->w), tt_weights_origin(j->w));
        return TT_OK;
    }
    TT_TRY(tt_file_open(j->ctx, &j->file, j->in));
    j->count = tt_file_count(j->file);
    if (j->opt->diffusers)
        return tt_fail(j->ctx, TT_EUNSUPPORTED, "%s: not a model whose names "
                       "are known, so it cannot be renamed; leave --layout "
                       "out to keep its names", j->in);
    j->opt->chosen(j->opt->user, "file of tensors, names kept", j->in,
                   tt_file_format(j->file));
    return TT_OK;
}

static tt_status convert(job *j)
{
    TT_TRY(open_input(j));
    j->wide = tt_alloc(j->ctx, &j->ctx->scratch, PIECE, sizeof *j->wide,
                       "a piece of a tensor");
    j->packed = tt_alloc(j->ctx, &j->ctx->scratch, PIECE, 8,
                         "a piece of a tensor");
    if (!j->packed) return j->ctx->status;
    for (int64_t i = 0; i < j->count; i++)
        j->total += tt_tensor_count(tensor_at(j, i));
    j->total *= 2; /* once to write, once to compare */
    TT_TRY(convert_write_all(j));
    if (verify_all(j)) unlink(j->out);
    return j->ctx->status;
}

static void say_nothing(void *user, const char *what, const char *path,
                        const char *origin)
{
    (void)user;
    (void)what;
    (void)path;
    (void)origin;
}

tt_status tt_convert(tt_ctx *ctx, const char *out, const char *in,
                     const tt_convert_options *opt)
{
    tt_convert_options o = opt ? *opt : (tt_convert_options){.kind = -1,
                                                             .ema = -1};
    if (!o.chosen) o.chosen = say_nothing;
    job j = {.ctx = ctx, .in = in, .out = out, .opt = &o};
    if (ctx->status) return ctx->status;
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    convert(&j);
    tt_arena_reset(&ctx->scratch, m);
    tt_weights_close(j.w);
    tt_file_close(j.file);
    return ctx->status;
}
