/* torchfile.c: PyTorch zip checkpoints (.pt, .pth, .bin) as tensors.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   the unpickled dictionaries are walked twice in the same order: once
 *         to count, once to fill. Tensors keep their strides and point into
 *         the mapping; no data is touched.
 * Holds   the walk is bounded: values may be shared or contain themselves, so
 *         its depth, its visits and the text it produces all have limits; so
 *         have the bytes of all tensors together, since shared and expanded
 *         (stride 0) ones let a few bytes of file stand for any number. Values,
 *         names and entries share a budget, a multiple of the pickle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/bytes.h"
#include "io/unpickle.h"

#define DEPTH_LIMIT 32
#define KEY_LIMIT 1024 /* bytes; to sort them takes as long as their length */
/* An entry of tt_file and its place among the sorted names. */
#define ENTRY_BYTES ((int64_t)sizeof(tt_entry) + 24)

typedef struct frame {
    const pickle_value *value; /* a dictionary, list or tuple */
    int64_t at;                /* next item */
    const char *key;           /* of this container in its parent */
    size_t nkey;
    char number[24];           /* where `key` is an index */
} frame;

typedef struct walk {
    tt_ctx *ctx;
    tt_file *f;
    tt_arena *arena;
    int64_t visits, max_visits;
    int64_t budget;             /* bytes of memory                           */
    int64_t count, slots, text; /* found: tensors, path elements, bytes       */
    int64_t values, max_values; /* bytes of the tensors, once gathered        */
    bool filling;
    const char **path;          /* next free slot                            */
    char *to;                   /* next free byte of text                    */
    int depth;
    frame frame[DEPTH_LIMIT + 1];
} walk;

static bool torchfile_refuse(walk *w, const char *why)
{
    tt_fail(w->ctx, TT_EFORMAT, "%s: data.pkl refused: %s", w->f->path, why);
    return false;
}

/* ---- dictionaries: one value per key ------------------------------------- */

typedef struct keyed {
    const pickle_value *key;
    int64_t at;
} keyed;

static int torchfile_key_order(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    const pickle_value *k = x->key, *l = y->key;
    int c = (k->kind > l->kind) - (k->kind < l->kind);
    if (!c && k->kind == PV_INT) c = (k->as.i > l->as.i) - (k->as.i < l->as.i);
    if (!c && k->kind == PV_STR) {
        size_t n = k->len < l->len ? k->len : l->len;
        c = n ? memcmp(k->as.s, l->as.s, n) : 0;
        if (!c) c = (k->len > l->len) - (k->len < l->len);
    }
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

static bool torchfile_same_key(const keyed *x, const keyed *y)
{
    keyed z = {y->key, x->at};
    return torchfile_key_order(x, &z) == 0;
}

static bool check_keys(walk *w, const pickle_list *d)
{
    const int64_t n = d->count / 2;
    for (int64_t i = 0; i < n; i++) {
        const pickle_value *k = &d->item[2 * i];
        if (k->kind != PV_STR && k->kind != PV_INT)
            return torchfile_refuse(w,
                                    "a key that is neither text nor integer");
        if (k->kind == PV_STR && k->len > KEY_LIMIT)
            return torchfile_refuse(w, "a key of more than 1024 bytes");
        if (k->kind == PV_STR && memchr(k->as.s, '\0', k->len))
            return torchfile_refuse(w, "a key that contains a NUL character");
    }
    if (n * (int64_t)sizeof(keyed) > w->budget)
        return torchfile_refuse(w, "more keys than a dictionary of tensors "
                                "needs");
    return true;
}

/* Python keeps the first place and the last value of a repeated key. */
static bool unique_keys(walk *w, pickle_list *d)
{
    int64_t n = d->count / 2, kept = 0;
    if (!check_keys(w, d)) return false;
    if (n < 2) return true;
    const tt_arena_mark mark = tt_arena_here(w->arena);
    keyed *s = tt_alloc(w->ctx, w->arena, n, sizeof *s, "dictionary keys");
    bool *drop = tt_alloc0(w->ctx, w->arena, n, sizeof *drop, "dictionary");
    if (!s || !drop) return false;
    for (int64_t i = 0; i < n; i++) s[i] = (keyed){&d->item[2 * i], i};
    qsort(s, (size_t)n, sizeof *s, torchfile_key_order);
    for (int64_t i = 0, first = 0; i < n; i++) {
        if (i > 0 && torchfile_same_key(&s[first], &s[i])) {
            d->item[2 * s[first].at + 1] = d->item[2 * s[i].at + 1];
            drop[s[i].at] = true;
        } else {
            first = i;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        if (drop[i]) continue;
        d->item[2 * kept] = d->item[2 * i];
        d->item[2 * kept + 1] = d->item[2 * i + 1];
        kept++;
    }
    d->count = 2 * kept;
    tt_arena_reset(w->arena, mark);
    return true;
}

/* ---- the walk ------------------------------------------------------------ */

static bool enter(walk *w, const pickle_value *v, const frame *at)
{
    if (w->depth == DEPTH_LIMIT)
        return torchfile_refuse(w, "values nested deeper than 32");
    if (v->kind == PV_DICT && !w->filling && !unique_keys(w, v->as.list))
        return false;
    frame *f = &w->frame[w->depth++];
    *f = *at;
    f->value = v;
    f->at = 0;
    if (at->key == at->number) f->key = f->number;
    return true;
}

static void torchfile_fill(walk *w, const frame *last, const tt_tensor *t)
{
    tt_entry *e = &w->f->entry[w->count];
    char *name = w->to;
    e->path = w->path;
    e->npath = w->depth;
    e->name = name;
    e->t = *t;
    for (int i = 1; i <= w->depth; i++) {
        const frame *f = i < w->depth ? &w->frame[i] : last;
        memcpy(w->to, f->key, f->nkey);
        w->to += f->nkey;
        *w->to++ = i < w->depth ? '.' : '\0';
    }
    for (int i = 1; i <= w->depth; i++) {
        const frame *f = i < w->depth ? &w->frame[i] : last;
        *w->path++ = w->to;
        memcpy(w->to, f->key, f->nkey);
        w->to += f->nkey;
        *w->to++ = '\0';
    }
}

/* A tensor whose last key is in `last`; the others are in the frames. */
static bool found(walk *w, const frame *last, const tt_tensor *t)
{
    if (w->filling) {
        torchfile_fill(w, last, t);
    } else {
        if (!tt_checked_add(&w->values, w->values, tt_tensor_bytes(t))
            || w->values > w->max_values)
            return torchfile_refuse(w, "tensors that repeat their data beyond "
                                    "all measure");
        w->slots += w->depth;
        for (int i = 1; i <= w->depth; i++) {
            const frame *f = i < w->depth ? &w->frame[i] : last;
            w->text += 2 * ((int64_t)f->nkey + 1);
        }
        if (w->text + 8 * w->slots + ENTRY_BYTES * (w->count + 1) > w->budget)
            return torchfile_refuse(w,
                                    "more names than a dictionary of tensors "
                                    "needs");
    }
    w->count++;
    return true;
}

static bool visit(walk *w, const pickle_value *v, const frame *at)
{
    if (++w->visits > w->max_visits)
        return torchfile_refuse(w, "more values than a dictionary of tensors "
                                "needs");
    switch (v->kind) {
    case PV_TENSOR: return found(w, at, v->as.tensor);
    case PV_DICT: case PV_LIST: case PV_TUPLE: return enter(w, v, at);
    case PV_TAG: case PV_STORAGE:
        return torchfile_refuse(w, "a value that is not a tensor, dictionary, "
                                "list, text or number");
    default: return true;
    }
}

static void name_item(frame *at, const frame *in)
{
    const pickle_value *item = in->value->as.list->item;
    if (in->value->kind == PV_DICT && item[in->at].kind == PV_STR) {
        at->key = item[in->at].as.s;
        at->nkey = item[in->at].len;
        return;
    }
    long long i = in->value->kind == PV_DICT ? (long long)item[in->at].as.i
                                             : (long long)in->at;
    at->key = at->number;
    at->nkey = (size_t)snprintf(at->number, sizeof at->number, "%lld", i);
}

static bool walk_all(walk *w, const pickle_value *root)
{
    frame at = {.key = ""};
    w->visits = w->count = 0;
    w->depth = 0;
    if (!enter(w, root, &at)) return false;
    while (w->depth > 0) {
        frame *f = &w->frame[w->depth - 1];
        const pickle_list *l = f->value->as.list;
        if (f->at >= l->count) {
            w->depth--;
            continue;
        }
        name_item(&at, f);
        bool dict = f->value->kind == PV_DICT;
        const pickle_value *v = &l->item[f->at + dict];
        f->at += 1 + dict;
        if (!visit(w, v, &at)) return false;
    }
    return true;
}

static bool collect(walk *w, const pickle_value *root)
{
    if (!walk_all(w, root)) return false;
    if (!file_alloc_entries(w->ctx, w->f, w->count)) return false;
    w->path = tt_alloc(w->ctx, &w->f->arena, w->slots, sizeof *w->path,
                       "tensor names");
    w->to = tt_alloc(w->ctx, &w->f->arena, w->text, 1, "tensor names");
    if (!w->path || !w->to) return false;
    w->filling = true;
    return walk_all(w, root);
}

tt_status torch_read(tt_ctx *ctx, tt_file *f)
{
    torchzip zip;
    pickle_value root;
    tt_arena a = {0};
    f->format = "torch zip";
    if (torchzip_read(ctx, &zip, &a, f)) {
        tt_arena_free(&a);
        return ctx->status;
    }
    /* What PyTorch writes takes 8 times its size, a list of tensors without
     * names 14 times. */
    int64_t budget = 16 * zip.pickle->size + (1 << 20);
    if (!unpickle(ctx, &root, &a, &zip, f, &budget)) {
        walk w = {.ctx = ctx, .f = f, .arena = &a, .budget = budget};
        /* A tensor takes over 50 bytes of pickle; sharing may multiply that,
         * but not without end. */
        w.max_visits = 2 * zip.pickle->size + 64;
        w.max_values = f->map.size > INT64_MAX / 32
                           ? INT64_MAX : 16 * f->map.size + (1 << 20);
        collect(&w, &root);
    }
    tt_arena_free(&a);
    return ctx->status;
}
