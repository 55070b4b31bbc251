/* json.c: JSON values as a tree, for configs and indices.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two passes over the events of json_lex.h: the first checks everything and
 * counts, the second fills one array of values and one pool of text, so a
 * file cannot ask for more memory than a fixed multiple of its own size. */
#include "io/json.h"

#include <stdlib.h>
#include <string.h>

#include "io/json_lex.h"
#include "io/map.h"

typedef struct builder {
    tt_json *node; /* all values, in order of appearance */
    int64_t used;
    char *pool;
    size_t pooled;
} builder;

static const char *json_keep(builder *b, const io_lex *l, uint32_t *len)
{
    char *to = b->pool + b->pooled;
    size_t n = io_lex_decode(to, l->str, l->len);
    to[n] = '\0';
    b->pooled += n + 1;
    if (len) *len = (uint32_t)n;
    return to;
}

static void json_fill(builder *b, tt_json *v, io_lex_event e, const io_lex *l)
{
    switch (e) {
    case JSON_OBJECT: v->kind = TT_JSON_OBJECT; break;
    case JSON_ARRAY: v->kind = TT_JSON_ARRAY; break;
    case JSON_STRING: case JSON_NUMBER:
        v->kind = e == JSON_STRING ? TT_JSON_STRING : TT_JSON_NUMBER;
        v->as.str = json_keep(b, l, &v->n);
        break;
    case JSON_TRUE: v->kind = TT_JSON_BOOL; v->as.yes = true; break;
    case JSON_FALSE: v->kind = TT_JSON_BOOL; break;
    default: v->kind = TT_JSON_NULL; break;
    }
}

/* The innermost container is complete. */
static void close(builder *b, tt_json *open, tt_json *last)
{
    open->as.span = &b->node[b->used] - open;
    if (last) last->last = true;
}

/* Second pass: the values, and where each container ends. */
static const tt_json *build(builder *b, io_lex *l)
{
    tt_json *open[JSON_MAX_DEPTH + 1], *last[JSON_MAX_DEPTH + 1];
    const char *key = NULL;
    int d = 0;
    open[0] = last[0] = NULL;
    for (;;) {
        io_lex_event e = io_lex_next(l);
        if (e == JSON_ERROR) return NULL;
        if (e == JSON_END) return &b->node[0];
        if (e == JSON_KEY) {
            key = json_keep(b, l, NULL);
            continue;
        }
        if (e == JSON_OBJECT_END || e == JSON_ARRAY_END) {
            close(b, open[d], last[d]);
            d--;
            continue;
        }
        tt_json *v = &b->node[b->used++];
        v->key = key;
        key = NULL;
        json_fill(b, v, e, l);
        last[d] = v;
        if (d > 0) open[d]->n++;
        else v->last = true;
        if (e == JSON_OBJECT || e == JSON_ARRAY) {
            d++;
            open[d] = v;
            last[d] = NULL;
        }
    }
}

/* First pass: how many values and how many bytes of text. */
static bool json_count(io_lex *l, int64_t *nodes, int64_t *text)
{
    for (;;) {
        io_lex_event e = io_lex_next(l);
        switch (e) {
        case JSON_ERROR: return false;
        case JSON_END: return true;
        case JSON_OBJECT_END: case JSON_ARRAY_END: continue;
        case JSON_KEY: break;
        case JSON_STRING: case JSON_NUMBER: (*nodes)++; break;
        default: (*nodes)++; continue;
        }
        *text += (int64_t)l->len + 1;
    }
}

/* A byte order mark of UTF-8 means nothing; one of UTF-16 is named. */
static size_t mark_length(tt_ctx *ctx, const char *text, size_t n,
                          const char *what)
{
    if (n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) return 3;
    if (n >= 2 && (!memcmp(text, "\xff\xfe", 2)
                   || !memcmp(text, "\xfe\xff", 2)))
        tt_fail(ctx, TT_EFORMAT, "%s: JSON in UTF-16, expected UTF-8; save it "
                "as UTF-8", what);
    return 0;
}

tt_status tt_json_parse(tt_ctx *ctx, tt_arena *a, const tt_json **root,
                        const char *text, size_t n, const char *what)
{
    io_lex l;
    const size_t mark = ctx->status ? 0 : mark_length(ctx, text, n, what);
    builder b = {0};
    int64_t nodes = 0, bytes = 0;
    *root = NULL;
    tt_arena lexing = {0}; /* not ctx->scratch: `a` may be that */
    text += mark;
    n -= mark;
    if (!ctx->status && n > UINT32_MAX)
        tt_fail(ctx, TT_EFORMAT, "%s: JSON of %zu bytes, less than 4 GB are "
                "read", what, n);
    if (io_lex_begin(&l, ctx, &lexing, what, text, n)
        && json_count(&l, &nodes, &bytes)) {
        tt_arena_free(&lexing); /* the second pass takes as much again */
        b.node = tt_alloc0(ctx, a, nodes, sizeof *b.node, what);
        b.pool = tt_alloc(ctx, a, bytes, 1, what);
        if (b.node && b.pool
            && io_lex_begin(&l, ctx, &lexing, what, text, n))
            *root = build(&b, &l);
    }
    tt_arena_free(&lexing);
    return ctx->status;
}

tt_status tt_json_file(tt_ctx *ctx, tt_arena *a, const tt_json **root,
                       const char *path, size_t limit)
{
    io_map m;
    *root = NULL;
    TT_TRY(io_map_open(ctx, &m, path));
    if ((uint64_t)m.size > limit)
        tt_fail(ctx, TT_EFORMAT, "%s: %lld bytes, expected at most %zu", path,
                (long long)m.size, limit);
    else
        tt_json_parse(ctx, a, root, (const char *)m.data, (size_t)m.size,
                      path);
    io_map_close(&m);
    return ctx->status;
}

/* ---- questions ----------------------------------------------------------- */

static bool is(const tt_json *v, tt_json_kind kind)
{
    return v && v->kind == kind;
}

int64_t tt_json_count(const tt_json *v)
{
    return is(v, TT_JSON_ARRAY) || is(v, TT_JSON_OBJECT) ? v->n : 0;
}

const tt_json *tt_json_first(const tt_json *v)
{
    return tt_json_count(v) ? v + 1 : NULL;
}

const tt_json *tt_json_next(const tt_json *v)
{
    if (v->last) return NULL;
    return v + (is(v, TT_JSON_ARRAY) || is(v, TT_JSON_OBJECT) ? v->as.span : 1);
}

const tt_json *tt_json_at(const tt_json *a, int64_t i)
{
    if (!is(a, TT_JSON_ARRAY) || i < 0) return NULL;
    const tt_json *v = tt_json_first(a);
    while (v && i-- > 0) v = tt_json_next(v);
    return v;
}

double tt_json_real(const tt_json *v)
{
    return is(v, TT_JSON_NUMBER) ? strtod(v->as.str, NULL) : 0;
}

int64_t tt_json_whole(const tt_json *v, int64_t otherwise)
{
    int64_t x = 0;
    if (!is(v, TT_JSON_NUMBER)) return otherwise;
    const bool minus = v->as.str[0] == '-';
    for (const char *p = v->as.str + minus; *p; p++) {
        if (*p < '0' || *p > '9') return otherwise;
        /* count downwards: the most negative number has no positive twin */
        if (x < (INT64_MIN + (*p - '0')) / 10) return otherwise;
        x = x * 10 - (*p - '0');
    }
    if (!minus && x == INT64_MIN) return otherwise;
    return minus ? x : -x;
}

const tt_json *tt_json_get(const tt_json *o, const char *key)
{
    if (!is(o, TT_JSON_OBJECT)) return NULL;
    for (const tt_json *v = tt_json_first(o); v; v = tt_json_next(v))
        if (!strcmp(v->key, key)) return v;
    return NULL;
}

double tt_json_num(const tt_json *o, const char *key, double otherwise)
{
    const tt_json *v = tt_json_get(o, key);
    return is(v, TT_JSON_NUMBER) ? tt_json_real(v) : otherwise;
}

int64_t tt_json_int(const tt_json *o, const char *key, int64_t otherwise)
{
    return tt_json_whole(tt_json_get(o, key), otherwise);
}

bool tt_json_bool(const tt_json *o, const char *key, bool otherwise)
{
    const tt_json *v = tt_json_get(o, key);
    return is(v, TT_JSON_BOOL) ? v->as.yes : otherwise;
}

const char *tt_json_str(const tt_json *o, const char *key,
                        const char *otherwise)
{
    const tt_json *v = tt_json_get(o, key);
    return is(v, TT_JSON_STRING) ? v->as.str : otherwise;
}
