/* json_lex.h: JSON as a sequence of events, without building anything.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The strictness promised in json.h lives here: grammar, UTF-8, escapes,
 * nesting <= 64 and unique keys. Memory: one record per key of the objects
 * open at the moment; never recursion. */
#ifndef TT_IO_JSON_LEX_H
#define TT_IO_JSON_LEX_H

#include "tether/context.h"

#define JSON_MAX_DEPTH 64

typedef enum json_event {
    JSON_ERROR, /* recorded in ctx */
    JSON_END,   /* the value and all text are finished */
    JSON_OBJECT, JSON_OBJECT_END, JSON_ARRAY, JSON_ARRAY_END,
    JSON_KEY, JSON_STRING, JSON_NUMBER, JSON_TRUE, JSON_FALSE, JSON_NULL
} json_event;

typedef struct json_key {
    const char *s; /* decoded */
    size_t n;
} json_key;

typedef struct json_lex {
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
    json_key *key;      /* keys of all open objects, innermost last          */
    int64_t nkeys, cap;
    char *pool;         /* decoded keys that had escapes                     */
    size_t pooled;
} json_lex;

/* False (recorded) when the text is not UTF-8. */
bool json_begin(json_lex *l, tt_ctx *ctx, tt_arena *arena, const char *what,
                const char *text, size_t n);
json_event json_next(json_lex *l);

/* Read over the value that begins with event `e`. False: an error. */
bool json_skip(json_lex *l, json_event e);

/* Decode a checked raw string; never longer than `len`. Returns its bytes. */
size_t json_decode(char *dst, const char *raw, size_t len);

#endif
