/* safetensors.c: the strict reader of safetensors files.
 *
 * Source  huggingface/safetensors, README and tensor.rs; stricter where the
 *         README forbids what the code lets pass (duplicate keys).
 * SPDX-License-Identifier: Apache-2.0
 *
 * Layout  u64 N | N bytes of JSON | data to the end of the file.
 * Holds   after success the tensors tile the data buffer exactly: no hole, no
 *         overlap, nothing after the last one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/bytes.h"
#include "io/file.h"
#include "io/json_lex.h"

#define HEADER_LIMIT 100000000 /* of the reference implementation */

typedef struct reader {
    tt_ctx *ctx;
    tt_file *f;
    io_lex lex;
    char *pool;       /* decoded names                                       */
    int64_t *range;   /* begin and end of every tensor                       */
    int64_t nbytes;   /* of the data buffer                                  */
    int64_t declared; /* what it should be: the largest end of a tensor      */
    const uint8_t *data;
} reader;

static bool safetensors_refuse(reader *r, const char *name, const char *why)
{
    char show[IO_SHOW];
    tt_fail(r->ctx, TT_EFORMAT, "%s: tensor '%s': %s", r->f->path,
            io_show(show, name, strlen(name)), why);
    return false;
}

/* ---- one tensor's entry -------------------------------------------------- */

/* A non-negative integer written in digits only. */
static bool safetensors_read_count(reader *r, int64_t *out, const char *name,
                                   io_lex_event e)
{
    const io_lex *l = &r->lex;
    int64_t x = 0;
    if (e == JSON_ERROR) return false;
    if (e != JSON_NUMBER)
        return safetensors_refuse(r, name,
                                  "shape and data_offsets must hold integers");
    for (size_t i = 0; i < l->len; i++) {
        char c = l->str[i];
        if (c < '0' || c > '9')
            return safetensors_refuse(r, name,
                                      "sizes and offsets must be non-negative "
                                      "integers without point or exponent");
        if (!tt_checked_mul(&x, x, 10) || !tt_checked_add(&x, x, c - '0'))
            return safetensors_refuse(r, name, "a size or offset is too large");
    }
    *out = x;
    return true;
}

/* An array of at most `max` counts; *n of them were read. */
static bool read_counts(reader *r, int64_t *out, int max, int *n,
                        const char *name, const char *too_many)
{
    *n = 0;
    for (;;) {
        io_lex_event e = io_lex_next(&r->lex);
        if (e == JSON_ARRAY_END) return true;
        if (e != JSON_ERROR && *n == max)
            return safetensors_refuse(r, name, too_many);
        if (!safetensors_read_count(r, &out[*n], name, e)) return false;
        ++*n;
    }
}

static bool read_dtype(reader *r, tt_dtype *t, const char *name)
{
    char text[16] = "?", why[128], show[IO_SHOW];
    const io_lex *l = &r->lex;
    if (l->len < sizeof text) { /* decoding never makes it longer */
        size_t n = io_lex_decode(text, l->str, l->len);
        text[n] = '\0';
        *t = memchr(text, '\0', n) ? TT_NONE : tt_dtype_from_name(text);
        if (*t != TT_NONE) return true;
    }
    snprintf(why, sizeof why, "unknown or unsupported dtype %s; take a file in "
             "bf16, or in fp8 with scales",
             io_show(show, text, strlen(text)));
    return safetensors_refuse(r, name, why);
}

static bool key_is(const io_lex *l, const char *word)
{
    char text[16];
    if (l->len > 6 * sizeof text) return false;
    if (!l->escaped)
        return l->len == strlen(word) && !memcmp(l->str, word, l->len);
    char wide[6 * sizeof text];
    size_t n = io_lex_decode(wide, l->str, l->len);
    return n == strlen(word) && !memcmp(wide, word, n);
}

typedef struct description {
    tt_dtype dtype;        /* TT_NONE: not read yet                           */
    int nshape, noffsets;  /* -1: not read yet                                */
    int64_t shape[TT_MAX_RANK];
} description;

/* One member of the object after a tensor's name, its key already read. */
static bool read_member(reader *r, const char *name, description *m,
                        int64_t range[2])
{
    io_lex *l = &r->lex;
    const bool is_dtype = key_is(l, "dtype"), is_shape = key_is(l, "shape");
    const bool is_offsets = key_is(l, "data_offsets");
    const io_lex_event e = io_lex_next(l);
    if (!is_dtype && !is_shape && !is_offsets) return io_lex_skip(l, e);
    if (e == JSON_ERROR) return false;
    if (is_dtype)
        return e == JSON_STRING ? read_dtype(r, &m->dtype, name)
                                : safetensors_refuse(r, name,
                                                     "dtype must be a string");
    if (e != JSON_ARRAY)
        return safetensors_refuse(r, name,
                                  "shape and data_offsets must be arrays");
    return is_shape ? read_counts(r, m->shape, TT_MAX_RANK, &m->nshape, name,
                                  "more than 8 dimensions")
                    : read_counts(r, range, 2, &m->noffsets, name,
                                  "data_offsets must be two integers");
}

/* The object after a tensor's name, its '{' already read. */
static bool read_entry(reader *r, const char *name, tt_tensor *t,
                       int64_t range[2])
{
    description m = {.dtype = TT_NONE, .nshape = -1, .noffsets = -1};
    for (;;) {
        const io_lex_event e = io_lex_next(&r->lex);
        if (e == JSON_ERROR) return false;
        if (e == JSON_OBJECT_END) break;
        if (!read_member(r, name, &m, range)) return false;
    }
    if (m.dtype == TT_NONE || m.nshape < 0 || m.noffsets < 0)
        return safetensors_refuse(r, name,
                                  "lacks dtype, shape or data_offsets");
    if (m.noffsets != 2)
        return safetensors_refuse(r, name, "data_offsets must be two integers");
    int64_t want;
    if (!tt_checked_size(&want, m.shape, m.nshape, tt_dtype_size(m.dtype)))
        return safetensors_refuse(r, name, "its byte count overflows");
    if (range[1] < range[0] || range[1] - range[0] != want)
        return safetensors_refuse(r, name,
                                  "data_offsets do not fit shape and dtype");
    if (range[1] > r->declared) r->declared = range[1];
    const bool there = range[1] <= r->nbytes; /* else check_whole refuses */
    *t = tt_tensor_stored(r->data + (there ? range[0] : 0), m.dtype,
                          m.nshape, m.shape);
    return true;
}

/* ---- the header ---------------------------------------------------------- */

/* The raw string just read, decoded; NULL when memory is short. */
static const char *take_string(reader *r)
{
    char *s = tt_alloc(r->ctx, &r->f->arena, (int64_t)r->lex.len + 1, 1,
                       "metadata");
    if (s) s[io_lex_decode(s, r->lex.str, r->lex.len)] = '\0';
    return s;
}

/* Keeps the pairs when `keep` is set: in the second pass. */
static bool read_metadata(reader *r, bool keep)
{
    io_lex_event e = io_lex_next(&r->lex);
    if (e == JSON_NULL) return true;     /* as MLX writes none */
    if (e == JSON_OBJECT)
        for (e = io_lex_next(&r->lex); e != JSON_OBJECT_END;
             e = io_lex_next(&r->lex)) {
            file_meta m = {.next = r->f->meta};
            if (e == JSON_ERROR) return false;
            if (keep && !(m.key = take_string(r))) return false;
            e = io_lex_next(&r->lex);
            if (e != JSON_STRING) break;
            if (!keep) continue;
            m.value = take_string(r);
            r->f->meta = tt_alloc(r->ctx, &r->f->arena, 1, sizeof m,
                                  "metadata");
            if (r->ctx->status) return false;
            *r->f->meta = m;
        }
    if (e == JSON_OBJECT_END) return true;
    tt_fail(r->ctx, TT_EFORMAT,
            "%s: __metadata__ must be an object of strings", r->f->path);
    return false;
}

/* First pass: the grammar, and how many tensors there are. */
static bool count_tensors(reader *r, const char *text, size_t n,
                          int64_t *count)
{
    io_lex *l = &r->lex;
    if (!io_lex_begin(l, r->ctx, &r->ctx->scratch, r->f->path, text, n))
        return false;
    *count = 0;
    io_lex_next(l); /* the opening brace */
    for (;;) {
        io_lex_event e = io_lex_next(l);
        if (e == JSON_ERROR) return false;
        if (e == JSON_END) return true;
        if (e == JSON_KEY && l->depth == 1 && !key_is(l, "__metadata__"))
            ++*count;
    }
}

static const char *take_name(reader *r)
{
    char *name = r->pool;
    size_t n = io_lex_decode(name, r->lex.str, r->lex.len);
    name[n] = '\0';
    r->pool += n + 1;
    if (!memchr(name, '\0', n)) return name;
    safetensors_refuse(r, name, "its name contains a NUL character");
    return NULL;
}

/* Second pass: the tensors. */
static bool read_tensors(reader *r, const char *text, size_t n)
{
    io_lex *l = &r->lex;
    int64_t i = 0;
    if (!io_lex_begin(l, r->ctx, &r->ctx->scratch, r->f->path, text, n))
        return false;
    io_lex_next(l);
    for (;;) {
        io_lex_event e = io_lex_next(l);
        if (e == JSON_ERROR) return false;
        if (e == JSON_OBJECT_END) return true;
        if (key_is(l, "__metadata__")) {
            if (!read_metadata(r, true)) return false;
            continue;
        }
        tt_entry *entry = &r->f->entry[i];
        entry->name = take_name(r);
        if (!entry->name) return false;
        e = io_lex_next(l);
        if (e == JSON_ERROR) return false;
        if (e != JSON_OBJECT)
            return safetensors_refuse(r, entry->name, "expected an object");
        if (!read_entry(r, entry->name, &entry->t, &r->range[2 * i]))
            return false;
        i++;
    }
}

static int range_order(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
    return (x[1] > y[1]) - (x[1] < y[1]);
}

static bool check_tiling(reader *r)
{
    int64_t n = r->f->count, at = 0;
    if (n > 1) qsort(r->range, (size_t)n, 2 * sizeof *r->range, range_order);
    for (int64_t i = 0; i < n; i++) {
        if (r->range[2 * i] != at) {
            tt_fail(r->ctx, TT_EFORMAT,
                    "%s: tensor data has a hole or overlap at byte %lld of "
                    "the data, expected byte %lld", r->f->path,
                    (long long)r->range[2 * i], (long long)at);
            return false;
        }
        at = r->range[2 * i + 1];
    }
    return true;
}

/* Is the file as long as its header says? */
static bool safetensors_check_whole(reader *r)
{
    const int64_t size = r->f->map.size;
    int64_t whole;
    if (r->declared == r->nbytes) return true;
    if (!tt_checked_add(&whole, size - r->nbytes, r->declared))
        tt_fail(r->ctx, TT_EFORMAT, "%s: its header speaks of %lld bytes, "
                "which is impossible", r->f->path, (long long)r->declared);
    else if (whole > size)
        io_cut_off(r->ctx, r->f, whole);
    else
        tt_fail(r->ctx, TT_EFORMAT, "%s: %lld bytes, but its header describes "
                "%lld; fetch it again", r->f->path, (long long)size,
                (long long)whole);
    return false;
}

static bool read_header(reader *r, const char *text, size_t n)
{
    int64_t count;
    tt_ctx *ctx = r->ctx;
    if (!count_tensors(r, text, n, &count)) return false;
    if (!file_alloc_entries(ctx, r->f, count)) return false;
    r->pool = tt_alloc(ctx, &r->f->arena, (int64_t)n + 1, 1, "tensor names");
    r->range = tt_alloc(ctx, &ctx->scratch, 2 * count, sizeof *r->range,
                        "tensor ranges");
    return r->pool && r->range && read_tensors(r, text,
                                               n) && safetensors_check_whole(r)
        && check_tiling(r);
}

tt_status safetensors_read(tt_ctx *ctx, tt_file *f)
{
    const uint8_t *p = f->map.data;
    reader r = {.ctx = ctx, .f = f};
    f->format = "safetensors";
    if (f->map.size < 8)
        return tt_fail(ctx, TT_EFORMAT,
                       "%s: %lld bytes, too short for any known format",
                       f->path, (long long)f->map.size);
    uint64_t n = le64(p);
    const bool brace = f->map.size > 8 && p[8] == '{';
    if (n <= HEADER_LIMIT && n > (uint64_t)f->map.size - 8 && brace)
        return tt_fail(ctx, TT_EFORMAT, "%s: cut off inside its header of "
                       "%llu bytes: %lld bytes; fetch it again", f->path,
                       (unsigned long long)n, (long long)f->map.size);
    if (n > HEADER_LIMIT || n > (uint64_t)f->map.size - 8)
        return tt_fail(ctx, TT_EFORMAT, "%s: not a safetensors, GGUF, PyTorch "
                       "zip or index file", f->path);
    size_t len = (size_t)n;
    const char *text = (const char *)p + 8;
    r.data = p + 8 + len;
    r.nbytes = f->map.size - 8 - (int64_t)len;
    while (len > 0 && text[len - 1] == ' ') len--; /* the only legal padding */
    if (len < 2 || text[0] != '{' || text[len - 1] != '}')
        return tt_fail(ctx, TT_EFORMAT,
                       "%s: the safetensors header is not one JSON object",
                       f->path);
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    read_header(&r, text, len);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}
