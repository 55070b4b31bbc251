/* spm_model.c: read a SentencePiece model file.
 *
 * Source  google/sentencepiece, sentencepiece_model.proto; protobuf encoding
 * SPDX-License-Identifier: Apache-2.0
 *
 * Stricter than the library: known fields must have their wire type, every
 * length is checked against what is left, and a model that could not have
 * been trained (duplicates, several unknown pieces, missing bytes) is refused.
 * Next    spm_normalize.c */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/check.h"
#include "io/map.h"
#include "text/clean.h"
#include "text/spm.h"

/* ---- protobuf wire format ----------------------------------------------- */

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

typedef struct span {
    const uint8_t *p, *end;
} span;

typedef struct field {
    uint64_t number;
    int wire;
    uint64_t value;   /* varint, or the little-endian bits                   */
    span bytes;       /* WIRE_BYTES                                          */
} field;

static bool read_varint(span *m, uint64_t *v)
{
    *v = 0;
    for (int i = 0; i < 10 && m->p < m->end; i++) {
        uint8_t b = *m->p++;
        if (i == 9 && b > 1) return false;
        *v |= (uint64_t)(b & 0x7f) << (7 * i);
        if (b < 0x80) return true;
    }
    return false;
}

/* The next field of message m; false when its bytes make no sense. */
static bool read_field(span *m, field *f)
{
    uint64_t key, len = 0;
    if (!read_varint(m, &key)) return false;
    f->number = key >> 3;
    f->wire = (int)(key & 7);
    f->value = 0;
    if (f->number == 0 || f->number >= 1u << 29) return false;
    if (f->wire == WIRE_VARINT) return read_varint(m, &f->value);
    if (f->wire == WIRE_64) len = 8;
    else if (f->wire == WIRE_32) len = 4;
    else if (f->wire != WIRE_BYTES || !read_varint(m, &len)) return false;
    if (len > (uint64_t)(m->end - m->p)) return false;
    f->bytes.p = m->p;
    f->bytes.end = m->p + len;
    m->p += len;
    if (f->wire == WIRE_32) f->value = spm_u32(f->bytes.p);
    return true;
}

/* ---- messages ----------------------------------------------------------- */

typedef struct reader {
    tt_ctx *ctx;
    const char *what;      /* file, for messages                             */
    tt_tokenizer *tok;
    uint64_t model_type;
    bool suffix;           /* treat_whitespace_as_suffix                     */
    int32_t eos_id, pad_id;
    span eos_piece, pad_piece, charsmap;
} reader;

static tt_status spm_model_refuse(reader *r, const char *why)
{
    return tt_fail(r->ctx, TT_EFORMAT,
                   "%s is not a usable SentencePiece model: %s; take "
                   "google/umt5-xxl/spiece.model", r->what, why);
}

static tt_status expect(reader *r, const field *f, int wire)
{
    return f->wire == wire
        ? TT_OK : spm_model_refuse(r, "a field has the wrong type");
}

/* SentencePiece: 1 piece, 2 score, 3 type. */
static tt_status spm_model_read_piece(reader *r, spm_piece *piece, span m)
{
    span s = {NULL, NULL};
    piece->type = SPM_NORMAL;
    while (m.p < m.end) {
        field f;
        if (!read_field(&m, &f))
            return spm_model_refuse(r, "a piece is cut short");
        if (f.number == 1) {
            TT_TRY(expect(r, &f, WIRE_BYTES));
            s = f.bytes;
        } else if (f.number == 2) {
            TT_TRY(expect(r, &f, WIRE_32));
            uint32_t bits = (uint32_t)f.value;
            if ((bits & 0x7f800000) == 0x7f800000)
                return spm_model_refuse(r, "a score is not finite");
            memcpy(&piece->score, &bits, sizeof bits);
        } else if (f.number == 3) {
            TT_TRY(expect(r, &f, WIRE_VARINT));
            if (f.value < SPM_NORMAL || f.value > SPM_BYTE)
                return spm_model_refuse(r, "a piece has an unknown type");
            piece->type = (int32_t)f.value;
        }
    }
    if (s.p == s.end) return spm_model_refuse(r, "a piece is empty");
    if (s.end - s.p > SPM_LENGTH_LIMIT)
        return spm_model_refuse(r, "a piece is too long");
    piece->s = s.p;
    piece->len = (int32_t)(s.end - s.p);
    if (utf8_check(s.p, (size_t)piece->len) != (size_t)piece->len)
        return spm_model_refuse(r, "a piece is not UTF-8");
    return TT_OK;
}

/* One field of the trainer settings. */
static tt_status take_setting(reader *r, const field *f)
{
    if (f->number == 47 || f->number == 48) {
        TT_TRY(expect(r, f, WIRE_BYTES));
        *(f->number == 47 ? &r->eos_piece : &r->pad_piece) = f->bytes;
        return TT_OK;
    }
    switch (f->number) {
    case 3: r->model_type = f->value; break;
    case 24: r->suffix = f->value != 0; break;
    case 35: r->tok->byte_fallback = f->value != 0; break;
    case 42: r->eos_id = (int32_t)(uint32_t)f->value; break;
    case 43: r->pad_id = (int32_t)(uint32_t)f->value; break;
    default: return TT_OK;
    }
    return expect(r, f, WIRE_VARINT);
}

static tt_status read_trainer(reader *r, span m)
{
    while (m.p < m.end) {
        field f;
        if (!read_field(&m, &f))
            return spm_model_refuse(r, "the trainer settings are cut short");
        TT_TRY(take_setting(r, &f));
    }
    return TT_OK;
}

static tt_status read_normalizer(reader *r, span m)
{
    tt_tokenizer *tok = r->tok;
    while (m.p < m.end) {
        field f;
        if (!read_field(&m, &f))
            return spm_model_refuse(r, "the normaliser settings are cut short");
        if (f.number >= 3 && f.number <= 5)
            TT_TRY(expect(r, &f, WIRE_VARINT));
        switch (f.number) {
        case 2:
            TT_TRY(expect(r, &f, WIRE_BYTES));
            r->charsmap = f.bytes;
            break;
        case 3: tok->add_dummy_prefix = f.value != 0; break;
        case 4: tok->remove_extra_spaces = f.value != 0; break;
        case 5: tok->escape_spaces = f.value != 0; break;
        default: break;
        }
    }
    return TT_OK;
}

/* ModelProto: 1 pieces, 2 trainer_spec, 3 normalizer_spec. With piece NULL
 * only counts the pieces. */
static tt_status read_model(reader *r, spm_piece *piece, span m)
{
    int64_t n = 0;
    while (m.p < m.end) {
        field f;
        if (!read_field(&m, &f))
            return spm_model_refuse(r,
                                    "the file is cut short or not a protobuf");
        if (f.number > 3) continue;
        TT_TRY(expect(r, &f, WIRE_BYTES));
        if (f.number == 1) {
            if (n == SPM_PIECE_LIMIT)
                return spm_model_refuse(r, "too many pieces");
            if (piece) TT_TRY(spm_model_read_piece(r, &piece[n], f.bytes));
            n++;
        } else if (piece) {
            if (f.number == 2) TT_TRY(read_trainer(r, f.bytes));
            else TT_TRY(read_normalizer(r, f.bytes));
        }
    }
    r->tok->n = n;
    return n ? TT_OK : spm_model_refuse(r, "it has no pieces");
}

/* ---- dictionaries ------------------------------------------------------- */

static int compare_entries(const void *pa, const void *pb)
{
    const spm_entry *a = pa, *b = pb;
    int32_t n = a->len < b->len ? a->len : b->len;
    int c = memcmp(a->s, b->s, (size_t)n);
    return c ? c : (a->len > b->len) - (a->len < b->len);
}

/* The pieces whose type is in the bit set `types`, sorted. */
static tt_status make_dict(reader *r, spm_dict *d, unsigned types)
{
    tt_tokenizer *tok = r->tok;
    d->n = 0;
    d->e = tt_alloc(r->ctx, &tok->arena, tok->n, sizeof *d->e, "dictionary");
    if (!d->e) return r->ctx->status;
    for (int64_t i = 0; i < tok->n; i++) {
        const spm_piece *p = &tok->piece[i];
        if (!(types >> p->type & 1)) continue;
        spm_entry e = {p->s, p->len, (int32_t)i};
        d->e[d->n++] = e;
    }
    qsort(d->e, (size_t)d->n, sizeof *d->e, compare_entries);
    for (int64_t i = 1; i < d->n; i++)
        if (compare_entries(&d->e[i - 1], &d->e[i]) == 0)
            return spm_model_refuse(r, "a piece occurs twice");
    return TT_OK;
}

spm_walk spm_walk_begin(const spm_dict *d)
{
    spm_walk w = {d, 0, d->n, 0};
    return w;
}

/* First entry in [lo, hi) whose byte at `depth` is at least c (a shorter
 * entry counts as less than any byte). */
static int64_t lower_bound(const spm_dict *d, int64_t lo, int64_t hi,
                           size_t depth, int c)
{
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        const spm_entry *e = &d->e[mid];
        if ((size_t)e->len <= depth || e->s[depth] < c) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

const spm_entry *spm_walk_next(spm_walk *w, const uint8_t *s, size_t n)
{
    while (w->lo < w->hi && w->depth < n) {
        int c = s[w->depth];
        w->lo = lower_bound(w->d, w->lo, w->hi, w->depth, c);
        w->hi = lower_bound(w->d, w->lo, w->hi, w->depth, c + 1);
        w->depth++;
        if (w->lo < w->hi && (size_t)w->d->e[w->lo].len == w->depth)
            return &w->d->e[w->lo];
    }
    return NULL;
}

/* ---- checks ------------------------------------------------------------- */

static tt_status check_bytes(reader *r)
{
    tt_tokenizer *tok = r->tok;
    int found = 0;
    for (int i = 0; i < 256; i++) tok->byte_id[i] = -1;
    for (int64_t i = 0; i < tok->n; i++) {
        const spm_piece *p = &tok->piece[i];
        if (p->type != SPM_BYTE) continue;
        if (!tok->byte_fallback)
            return spm_model_refuse(r, "byte pieces without byte_fallback");
        unsigned byte = 256;
        for (unsigned b = 0; b < 256 && p->len == 6; b++) {
            char name[8];
            snprintf(name, sizeof name, "<0x%02X>", b);
            if (memcmp(name, p->s, 6) == 0) byte = b;
        }
        if (byte == 256)
            return spm_model_refuse(r, "a byte piece is not <0xHH>");
        tok->byte_id[byte] = (int32_t)i; /* no duplicates: checked before */
        found++;
    }
    if (tok->byte_fallback && found != 256)
        return spm_model_refuse(r, "byte_fallback needs all 256 byte pieces");
    return TT_OK;
}

/* One UNKNOWN piece, no duplicates, scores, bytes. */
static tt_status check_pieces(reader *r)
{
    tt_tokenizer *tok = r->tok;
    spm_dict reserved;
    TT_TRY(make_dict(r, &tok->dict, 1u << SPM_NORMAL | 1u << SPM_USER_DEFINED
                     | 1u << SPM_UNUSED));
    TT_TRY(make_dict(r, &tok->user, 1u << SPM_USER_DEFINED));
    TT_TRY(make_dict(r, &reserved, 1u << SPM_UNKNOWN | 1u << SPM_CONTROL
                     | 1u << SPM_BYTE));
    tok->unk = -1;
    tok->min_score = FLT_MAX;
    tok->max_score = FLT_MIN; /* the smallest positive one, as the library */
    for (int64_t i = 0; i < tok->n; i++) {
        const spm_piece *p = &tok->piece[i];
        if (p->type == SPM_UNKNOWN) {
            if (tok->unk >= 0) return spm_model_refuse(r, "two unknown pieces");
            tok->unk = (int32_t)i;
        }
        if (p->type != SPM_NORMAL) continue;
        if (p->score < tok->min_score) tok->min_score = p->score;
        if (p->score > tok->max_score) tok->max_score = p->score;
    }
    if (tok->unk < 0) return spm_model_refuse(r, "no unknown piece");
    return check_bytes(r);
}

/* The id of a control piece given by its text, else by its number. */
static int32_t control_id(const reader *r, span name, const char *otherwise,
                          int32_t id)
{
    const tt_tokenizer *tok = r->tok;
    const uint8_t *s = name.p ? name.p : (const uint8_t *)otherwise;
    size_t n = name.p ? (size_t)(name.end - name.p) : strlen(otherwise);
    for (int64_t i = 0; i < tok->n; i++) {
        const spm_piece *p = &tok->piece[i];
        if (p->type == SPM_CONTROL && (size_t)p->len == n
            && memcmp(p->s, s, n) == 0)
            return (int32_t)i;
    }
    return id >= 0 && id < tok->n && tok->piece[id].type == SPM_CONTROL ? id
                                                                        : -1;
}

uint32_t spm_unit_offset(uint32_t unit)
{
    return (unit >> 10) << ((unit & 0x200) >> 6);
}

uint32_t spm_unit_label(uint32_t unit)
{
    return unit & 0x800000ff; /* a leaf never equals a byte */
}

static tt_status check_charsmap(reader *r)
{
    spm_charsmap *map = &r->tok->map;
    const uint8_t *p = r->charsmap.p;
    int64_t n = r->charsmap.end - p;
    if (n == 0) return TT_OK;
    if (n < 8) return spm_model_refuse(r, "the character map is cut short");
    int64_t trie = spm_u32(p);
    if (trie < 4 || trie % 4 || trie >= n - 4)
        return spm_model_refuse(r, "the character map has an impossible trie "
                                "size");
    map->units = p + 4;
    map->nunits = trie / 4;
    map->blob = p + 4 + trie;
    map->nblob = n - 4 - trie;
    if (map->blob[map->nblob - 1] != 0)
        return spm_model_refuse(r, "the character map does not end in NUL");
    for (int64_t i = 0; i < map->nunits; i++) {
        uint32_t u = spm_u32(map->units + 4 * i);
        int64_t leaf = i ^ (int64_t)spm_unit_offset(u);
        if (!(u & 0x100) || leaf >= map->nunits) continue;
        uint32_t v = spm_u32(map->units + 4 * leaf);
        if (v >> 31 && (int64_t)(v & 0x7fffffff) >= map->nblob)
            return spm_model_refuse(r,
                                    "the character map points outside itself");
    }
    return TT_OK;
}

/* ---- opening and closing ------------------------------------------------ */

static tt_status spm_model_build(tt_ctx *ctx, tt_tokenizer *tok, span file,
                                 const char *what)
{
    reader r = {.ctx = ctx, .what = what, .tok = tok, .model_type = 1,
                .eos_id = 2, .pad_id = -1};
    tok->add_dummy_prefix = true;
    tok->remove_extra_spaces = true;
    tok->escape_spaces = true;
    TT_TRY(read_model(&r, NULL, file));
    tok->piece = tt_alloc0(ctx, &tok->arena, tok->n, sizeof *tok->piece,
                           "pieces");
    if (!tok->piece) return ctx->status;
    TT_TRY(read_model(&r, tok->piece, file));
    if (r.model_type != 1)
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "%s: only unigram models (type 1) are supported, this "
                       "is type %llu", what, (unsigned long long)r.model_type);
    if (r.suffix)
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "%s: treat_whitespace_as_suffix is not supported", what);
    TT_TRY(check_pieces(&r));
    TT_TRY(check_charsmap(&r));
    tok->eos = control_id(&r, r.eos_piece, "</s>", r.eos_id);
    tok->pad = control_id(&r, r.pad_piece, "<pad>", r.pad_id);
    return TT_OK;
}

static tt_status open_model(tt_ctx *ctx, tt_tokenizer **out, const void *data,
                            size_t n, const char *what)
{
    if (n && *(const char *)data == '{')
        return tt_fail(ctx, TT_EUNSUPPORTED, "%s: JSON, as tokenizer.json is, "
                       "which is not read; take google/umt5-xxl/spiece.model "
                       "of Wan2.1-T2V-1.3B", what);
    if (n > SPM_FILE_LIMIT)
        return tt_fail(ctx, TT_EFORMAT,
                       "%s is larger than %d MB; a SentencePiece model is not",
                       what, SPM_FILE_LIMIT >> 20);
    tt_arena arena = {0};
    uint8_t *copy = tt_alloc(ctx, &arena, (int64_t)n, 1, "tokenizer file");
    const char *path = tt_strdup(ctx, &arena, what);
    tt_tokenizer *tok = tt_alloc0(ctx, &arena, 1, sizeof *tok, "tokenizer");
    if (ctx->status) {
        tt_arena_free(&arena);
        return ctx->status;
    }
    if (n) memcpy(copy, data, n);
    span file = {copy, copy + n};
    tok->arena = arena;
    tok->path = path;
    if (spm_model_build(ctx, tok, file, what)) {
        tt_tokenizer_close(tok);
        return ctx->status;
    }
    *out = tok;
    return TT_OK;
}

tt_status tt_tokenizer_open_bytes(tt_ctx *ctx, tt_tokenizer **out,
                                  const void *data, size_t n, const char *what)
{
    const uint8_t *model = data;
    *out = NULL;
    if (ctx->status) return ctx->status;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    if (!spm_is_container(data, n)
        || !spm_take(ctx, &model, &n, data, n, what))
        open_model(ctx, out, model, n, what);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

tt_status tt_tokenizer_open(tt_ctx *ctx, tt_tokenizer **out, const char *path)
{
    io_map m;
    *out = NULL;
    TT_TRY(io_check_download(ctx, path));
    TT_TRY(io_map_open(ctx, &m, path));
    tt_tokenizer_open_bytes(ctx, out, m.data, (size_t)m.size, path);
    io_map_close(&m);
    return ctx->status;
}

void tt_tokenizer_close(tt_tokenizer *tok)
{
    if (!tok) return;
    tt_arena arena = tok->arena; /* the struct lies inside it */
    tt_arena_free(&arena);
}

int64_t tt_tokenizer_size(const tt_tokenizer *tok)
{
    return tok ? tok->n : 0;
}

int64_t tt_tokenizer_eos(const tt_tokenizer *tok)
{
    return tok ? tok->eos : 0;
}

int64_t tt_tokenizer_pad(const tt_tokenizer *tok)
{
    return !tok || tok->pad < 0 ? 0 : tok->pad;
}

const char *tt_tokenizer_piece(const tt_tokenizer *tok, int64_t id, size_t *n)
{
    if (!tok) return NULL;
    if (id < 0 || id >= tok->n) return NULL;
    *n = (size_t)tok->piece[id].len;
    return (const char *)tok->piece[id].s;
}
