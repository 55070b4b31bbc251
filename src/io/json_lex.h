/* json_lex.h: JSON as a sequence of events, without building anything.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The strictness promised in json.h lives here: grammar, UTF-8, escapes,
 * nesting <= 64 and unique keys. Memory: one record per key of the objects
 * open at the moment; never recursion. */
#ifndef TT_IO_JSON_LEX_H
#define TT_IO_JSON_LEX_H

#include "core/context.h"

#define JSON_MAX_DEPTH 64

typedef enum io_lex_event {
    JSON_ERROR, /* recorded in ctx */
    JSON_END,   /* the value and all text are finished */
    JSON_OBJECT, JSON_OBJECT_END, JSON_ARRAY, JSON_ARRAY_END,
    JSON_KEY, JSON_STRING, JSON_NUMBER, JSON_TRUE, JSON_FALSE, JSON_NULL
} io_lex_event;

typedef struct io_lex_key {
    const char *s; /* decoded */
    size_t n;
} io_lex_key;

typedef struct io_lex {
    tt_ctx *ctx;
    tt_arena *arena;    /* for the key records                               */
    const char *what;   /* names the source in messages                      */
    const char *text;
    size_t n, at;
    const char *str;    /* KEY, STRING: the raw text between the quotes;     */
    size_t len;         /* NUMBER: its text                                  */
    bool escaped;       /* the raw text holds a backslash                    */
    int depth;
    bool in_object[JSON_MAX_DEPTH];
    int64_t first_key[JSON_MAX_DEPTH];
    enum { WANT_VALUE, WANT_FIRST, WANT_MORE, WANT_KEYVALUE } state;
    io_lex_key *key;    /* keys of all open objects, innermost last          */
    int64_t nkeys, cap;
    char *pool;         /* decoded keys that had escapes                     */
    size_t pooled;
} io_lex;

/* False (recorded) when the text is not UTF-8. */
bool io_lex_begin(io_lex *l, tt_ctx *ctx, tt_arena *arena, const char *what,
                const char *text, size_t n);
io_lex_event io_lex_next(io_lex *l);

/* Read over the value that begins with event `e`. False: an error. */
bool io_lex_skip(io_lex *l, io_lex_event e);

/* Decode a checked raw string; never longer than `len`. Returns its bytes. */
size_t io_lex_decode(char *dst, const char *raw, size_t len);

#endif
