/* gguf.c: the strict reader of GGUF files, versions 2 and 3.
 *
 * Source  ggml-org/ggml, gguf.cpp and its description of the format
 * SPDX-License-Identifier: Apache-2.0
 *
 * Layout  "GGUF" | u32 version | u64 tensors | u64 pairs | pairs | tensor
 *         infos | padding | data. Sizes are stored fastest first.
 * Holds   after success every tensor lies inside the file, each starts where
 *         the one before it ends (rounded up to the alignment), and the shape
 *         is the reverse of the stored sizes. Shapes recorded in
 *         "comfy.gguf.orig_shape.NAME" are kept in f->orig for the loader.
 * Next    weights.c reshapes; core/quant.c widens the blocks */
#include "io/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/bytes.h"

enum { NAME_LIMIT = 127, TENSOR_BYTES = 24, PAIR_BYTES = 13 };

#define DEFAULT_ALIGNMENT 32
#define ALIGNMENT_LIMIT (1 << 20)

static const unsigned char value_size[GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0,
                                                  0, 8, 8, 8};

/* ggml's type numbers; the others are removed or not used for weights. */
static const tt_dtype types[] = {
    [0] = TT_F32,   [1] = TT_F16,   [2] = TT_Q4_0,  [3] = TT_Q4_1,
    [6] = TT_Q5_0,  [7] = TT_Q5_1,  [8] = TT_Q8_0,  [10] = TT_Q2_K,
    [11] = TT_Q3_K, [12] = TT_Q4_K, [13] = TT_Q5_K, [14] = TT_Q6_K,
    [20] = TT_IQ4_NL,               [23] = TT_IQ4_XS,
    [24] = TT_I8,   [25] = TT_I16,  [26] = TT_I32,  [27] = TT_I64,
    [28] = TT_F64,  [30] = TT_BF16};

/* Names of those that are not read. */
static const char *const unread[] = {
    [9] = "Q8_1",    [15] = "Q8_K",    [16] = "IQ2_XXS", [17] = "IQ2_XS",
    [18] = "IQ3_XXS", [19] = "IQ1_S",  [21] = "IQ3_S",   [22] = "IQ2_S",
    [29] = "IQ1_M",  [34] = "TQ1_0",   [35] = "TQ2_0",   [39] = "MXFP4"};

typedef struct text {
    const char *s;     /* in the mapping, not terminated                     */
    int64_t n;
} text;

typedef struct reader {
    tt_ctx *ctx;
    tt_file *f;
    const uint8_t *p;  /* the whole file                                     */
    int64_t size, at;
    int64_t alignment;
    text *key;         /* metadata keys, then tensor names, to find doubles  */
    int64_t nkeys;
    gguf_shape *last;  /* of f->orig                                         */
} reader;

static bool gguf_refuse(reader *r, const char *why)
{
    tt_fail(r->ctx, TT_EFORMAT, "%s: damaged GGUF file: %s", r->f->path, why);
    return false;
}

static bool refuse_tensor(reader *r, const text *name, const char *why)
{
    char show[IO_SHOW];
    tt_fail(r->ctx, TT_EFORMAT, "%s: tensor '%s': %s", r->f->path,
            io_show(show, name->s, (size_t)name->n), why);
    return false;
}

/* ---- pieces -------------------------------------------------------------- */

/* The next n bytes; NULL (recorded) after the end. */
static const uint8_t *gguf_take(reader *r, int64_t n)
{
    if (n > r->size - r->at) {
        gguf_refuse(r, "it is cut off inside its header; fetch it again");
        return NULL;
    }
    const uint8_t *p = r->p + r->at;
    r->at += n;
    return p;
}

static bool take_u32(reader *r, uint32_t *out)
{
    const uint8_t *p = gguf_take(r, 4);
    if (p) *out = le32(p);
    return p != NULL;
}

static bool take_u64(reader *r, uint64_t *out)
{
    const uint8_t *p = gguf_take(r, 8);
    if (p) *out = le64(p);
    return p != NULL;
}

static bool take_text(reader *r, text *t)
{
    uint64_t n;
    if (!take_u64(r, &n)) return false;
    if (n > (uint64_t)(r->size - r->at))
        return gguf_refuse(r, "a text that is longer than the file");
    t->n = (int64_t)n;
    t->s = (const char *)gguf_take(r, t->n);
    if (n > 0 && memchr(t->s, '\0', (size_t)n))
        return gguf_refuse(r, "a text that contains a NUL character");
    if (utf8_check((const uint8_t *)t->s, (size_t)n) < n)
        return gguf_refuse(r, "a text that is not UTF-8");
    return true;
}

/* ---- metadata ------------------------------------------------------------ */

/* Numbers are only stepped over: what they say is not needed. */
static bool skip_values(reader *r, uint32_t type, uint64_t n)
{
    if (type == GGUF_STRING) {
        text t;
        for (uint64_t i = 0; i < n; i++) /* each takes 8 bytes of the file */
            if (!take_text(r, &t)) return false;
        return true;
    }
    if (n > (uint64_t)(r->size - r->at) / value_size[type])
        return gguf_refuse(r, "an array that is longer than the file");
    const uint8_t *p = gguf_take(r, (int64_t)n * value_size[type]);
    for (uint64_t i = 0; type == GGUF_BOOL && i < n; i++)
        if (p[i] > 1)
            return gguf_refuse(r, "a truth value that is neither 0 nor 1");
    return p != NULL;
}

static bool text_starts(const text *t, const char *word)
{
    size_t n = strlen(word);
    return (uint64_t)t->n >= n && !memcmp(t->s, word, n);
}

static bool gguf_is(const text *t, const char *word)
{
    return (uint64_t)t->n == strlen(word) && text_starts(t, word);
}

static bool read_alignment(reader *r, uint32_t type)
{
    uint32_t a;
    if (type != GGUF_U32)
        return gguf_refuse(r, "general.alignment is not a u32");
    if (!take_u32(r, &a)) return false;
    if (a < 8 || a > ALIGNMENT_LIMIT || (a & (a - 1)) != 0)
        return gguf_refuse(r, "general.alignment must be a power of two from 8 "
                           "to 2^20");
    r->alignment = a;
    return true;
}

/* comfy.gguf.orig_shape.NAME: an i32 array, slowest dimension first. */
static bool keep_shape(reader *r, const text *name, const uint8_t *p,
                       uint64_t n)
{
    if (n > TT_MAX_RANK)
        return gguf_refuse(r, "an original shape of more than 8 dimensions");
    gguf_shape *s = tt_alloc0(r->ctx, &r->f->arena, 1, sizeof *s, "a shape");
    char *copy = tt_alloc(r->ctx, &r->f->arena, name->n + 1, 1, "a name");
    if (!s || !copy) return false;
    memcpy(copy, name->s, (size_t)name->n);
    copy[name->n] = '\0';
    s->name = copy;
    s->rank = (int)n;
    for (uint64_t i = 0; i < n; i++) s->dim[i] = (int32_t)le32(p + 4 * i);
    for (uint64_t i = 0; i < n; i++)
        if (s->dim[i] < 1)
            return gguf_refuse(r, "an original shape with a size below 1");
    if (r->last) r->last->next = s;
    else r->f->orig = s;
    r->last = s;
    return true;
}

/* Kept for the tokenizer: its pairs of n values from p to here. */
static bool keep_value(reader *r, const text *key, gguf_value v)
{
    static const char begin[] = "tokenizer.ggml.";
    if (!text_starts(key, begin)) return true;
    const int64_t n = key->n - (int64_t)sizeof begin + 1;
    char *copy = tt_alloc(r->ctx, &r->f->arena, n + 1, 1, "a name");
    gguf_value *to = tt_alloc(r->ctx, &r->f->arena, 1, sizeof *to, "metadata");
    if (!copy || !to) return false;
    memcpy(copy, key->s + sizeof begin - 1, (size_t)n);
    copy[n] = '\0';
    v.key = copy;
    v.bytes = (uint64_t)(r->p + r->at - v.p);
    v.next = r->f->tokenizer;
    *to = v;
    r->f->tokenizer = to;
    return true;
}

static bool read_array(reader *r, const text *key)
{
    static const char orig[] = "comfy.gguf.orig_shape.";
    uint32_t type;
    uint64_t n;
    if (!take_u32(r, &type) || !take_u64(r, &n)) return false;
    if (type >= GGUF_TYPES || type == GGUF_ARRAY)
        return gguf_refuse(r, "an array of unknown or nested type");
    const uint8_t *p = r->p + r->at;
    if (!skip_values(r, type, n)) return false;
    if (type != GGUF_I32 || !text_starts(key, orig))
        return keep_value(r, key, (gguf_value){.type = (gguf_type)type,
                                               .array = true, .n = n, .p = p});
    text name = {key->s + sizeof orig - 1, key->n - (int64_t)sizeof orig + 1};
    return keep_shape(r, &name, p, n);
}

static bool read_pair(reader *r)
{
    text *key = &r->key[r->nkeys++];
    uint32_t type;
    if (!take_text(r, key)) return false;
    if (key->n == 0) return gguf_refuse(r, "an empty metadata key");
    if (!take_u32(r, &type)) return false;
    if (type >= GGUF_TYPES)
        return gguf_refuse(r, "an unknown type of metadata");
    if (gguf_is(key, "general.alignment")) return read_alignment(r, type);
    if (type == GGUF_ARRAY) return read_array(r, key);
    const uint8_t *p = r->p + r->at;
    return skip_values(r, type, 1)
        && keep_value(r, key, (gguf_value){.type = (gguf_type)type, .n = 1,
                                           .p = p});
}

static int gguf_by_text(const void *a, const void *b)
{
    const text *x = a, *y = b;
    int64_t n = x->n < y->n ? x->n : y->n;
    int c = n > 0 ? memcmp(x->s, y->s, (size_t)n) : 0;
    return c ? c : (x->n > y->n) - (x->n < y->n);
}

static bool all_different(reader *r, const char *why)
{
    if (r->nkeys > 1)
        qsort(r->key, (size_t)r->nkeys, sizeof *r->key, gguf_by_text);
    for (int64_t i = 1; i < r->nkeys; i++)
        if (gguf_by_text(&r->key[i - 1], &r->key[i]) == 0)
            return gguf_refuse(r, why);
    r->nkeys = 0;
    return true;
}

/* ---- tensors ------------------------------------------------------------- */

static bool refuse_type(reader *r, const text *name, uint32_t type)
{
    char why[160];
    const char *is = type < sizeof unread / sizeof *unread ? unread[type]
                                                           : NULL;
    snprintf(why, sizeof why, "its values have type %u%s%s%s, which is not "
             "read; take a file in Q8_0, Q4_K, IQ4_XS or another type that is",
             (unsigned)type, is ? " (" : "", is ? is : "", is ? ")" : "");
    return refuse_tensor(r, name, why);
}

/* n_dims, sizes (fastest first), type. */
static bool read_shape(reader *r, const text *name, tt_tensor *t)
{
    uint32_t rank, type;
    uint64_t d;
    int64_t dim[4], count;
    if (!take_u32(r, &rank)) return false;
    if (rank < 1 || rank > 4)
        return refuse_tensor(r, name, "expected 1 to 4 dimensions");
    for (int i = (int)rank - 1; i >= 0; i--) {
        if (!take_u64(r, &d)) return false;
        if (d < 1 || d > INT64_MAX)
            return refuse_tensor(r, name, "an impossible size");
        dim[i] = (int64_t)d;
    }
    if (!take_u32(r, &type)) return false;
    tt_dtype dtype = type < sizeof types / sizeof *types ? types[type]
                                                         : TT_NONE;
    if (dtype == TT_NONE) return refuse_type(r, name, type);
    if (!tt_checked_size(&count, dim, (int)rank, tt_dtype_size(dtype)))
        return refuse_tensor(r, name, "its byte count overflows");
    if (dim[rank - 1] % tt_dtype_block(dtype) != 0)
        return refuse_tensor(r, name, "its rows are not whole blocks of its "
                                      "quantised type");
    *t = tt_tensor_stored(NULL, dtype, (int)rank, dim);
    return true;
}

/* offset[i] relative to the start of the data, which is not known yet. */
static bool read_info(reader *r, int64_t i, uint64_t *offset)
{
    text *name = &r->key[r->nkeys++];
    tt_entry *e = &r->f->entry[i];
    if (!take_text(r, name)) return false;
    if (name->n < 1 || name->n > NAME_LIMIT)
        return gguf_refuse(r, "a tensor name of no or more than 127 bytes");
    if (!read_shape(r, name, &e->t)) return false;
    char *copy = tt_alloc(r->ctx, &r->f->arena, name->n + 1, 1, "a name");
    if (!copy) return false;
    memcpy(copy, name->s, (size_t)name->n);
    copy[name->n] = '\0';
    e->name = copy;
    return take_u64(r, offset);
}

/* Every tensor begins where the running sum of padded sizes says. */
static bool place_tensors(reader *r, const uint64_t *offset)
{
    int64_t mask = r->alignment - 1, data = 0, at = 0, end = 0;
    if (!tt_checked_add(&data, r->at, mask))
        return gguf_refuse(r, "impossible sizes");
    data &= ~mask;
    for (int64_t i = 0; i < r->f->count; i++) {
        tt_entry *e = &r->f->entry[i];
        text name = {e->name, (int64_t)strlen(e->name)};
        if (offset[i] != (uint64_t)at)
            return refuse_tensor(r, &name, "its data does not begin where the "
                                           "one before it ends");
        int64_t bytes = tt_tensor_bytes(&e->t);
        if (!tt_checked_add(&end, data, at)
            || !tt_checked_add(&end, end, bytes))
            return refuse_tensor(r, &name, "impossible size");
        if (end <= r->size) e->t.data = r->p + (end - bytes);
        if (!tt_checked_add(&at, at, bytes) || !tt_checked_add(&at, at, mask))
            return refuse_tensor(r, &name, "impossible size");
        at &= ~mask;
    }
    if (end <= r->size) return true;
    io_cut_off(r->ctx, r->f, end);
    return false;
}

/* ---- the file ------------------------------------------------------------ */

static bool gguf_read_counts(reader *r, uint64_t *tensors, uint64_t *pairs)
{
    uint32_t version;
    r->at = 4;
    if (!take_u32(r, &version)) return false;
    if (version != 2 && version != 3) {
        const char *why = version == 1 ? "; convert it to version 3"
                        : (version & 0xffff) == 0 ? "; its numbers are "
                                                    "big-endian" : "";
        tt_fail(r->ctx, TT_EUNSUPPORTED, "%s: GGUF version %u, expected 2 or "
                "3%s", r->f->path, (unsigned)version, why);
        return false;
    }
    if (!take_u64(r, tensors) || !take_u64(r, pairs)) return false;
    uint64_t left = (uint64_t)(r->size - r->at);
    if (*tensors > left / TENSOR_BYTES || *pairs > left / PAIR_BYTES)
        return gguf_refuse(r, "more tensors or metadata than it has room for");
    return true;
}

static bool read_all(reader *r)
{
    uint64_t tensors, pairs;
    if (!gguf_read_counts(r, &tensors, &pairs)) return false;
    uint64_t most = tensors > pairs ? tensors : pairs;
    tt_arena *a = &r->ctx->scratch;
    r->key = tt_alloc(r->ctx, a, (int64_t)most, sizeof *r->key, "keys");
    uint64_t *offset = tt_alloc(r->ctx, a, (int64_t)tensors, sizeof *offset,
                                "tensor offsets");
    if (!r->key || !offset) return false;
    for (uint64_t i = 0; i < pairs; i++)
        if (!read_pair(r)) return false;
    if (!all_different(r, "a metadata key that occurs twice")) return false;
    if (!file_alloc_entries(r->ctx, r->f, (int64_t)tensors)) return false;
    for (uint64_t i = 0; i < tensors; i++)
        if (!read_info(r, (int64_t)i, &offset[i])) return false;
    return all_different(r, "a tensor name that occurs twice")
           && place_tensors(r, offset);
}

const gguf_value *gguf_value_of(const tt_file *f, const char *key)
{
    const gguf_value *v = f->tokenizer;
    while (v && strcmp(v->key, key)) v = v->next;
    return v;
}

tt_status gguf_read(tt_ctx *ctx, tt_file *f)
{
    reader r = {.ctx = ctx, .f = f, .p = f->map.data, .size = f->map.size,
                .alignment = DEFAULT_ALIGNMENT};
    f->format = "GGUF";
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    read_all(&r);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}
