/* json.h: a strict JSON reader for headers and configs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * RFC 8259 without any leniency: no comments, trailing commas, NaN, leading
 * zeros, raw control characters or unknown escapes; valid UTF-8; duplicate
 * keys refused (compared after decoding); nesting at most 64; nothing but
 * white space after the value; less than 4 GB. A byte order mark of UTF-8
 * in front, as some editors write it, is skipped. Values live in the caller's
 * arena. */
#ifndef TT_IO_JSON_H
#define TT_IO_JSON_H

#include "core/context.h"

typedef enum tt_json_kind {
    TT_JSON_NULL, TT_JSON_BOOL, TT_JSON_NUMBER, TT_JSON_STRING, TT_JSON_ARRAY,
    TT_JSON_OBJECT
} tt_json_kind;

/* Values lie in order of appearance, a container before what is in it. They are
 * as small as that allows: a file may hold one for every two of its bytes. */
typedef struct tt_json {
    const char *key;       /* member name inside an object, else NULL         */
    union {
        const char *str;   /* STRING: decoded; NUMBER: text; NUL-terminated   */
        int64_t span;      /* ARRAY, OBJECT: values to its end, itself too  */
        bool yes;          /* BOOL                                            */
    } as;
    uint32_t n;            /* bytes of str; members or elements               */
    uint8_t kind;          /* tt_json_kind                                    */
    bool last;             /* of its siblings                                 */
} tt_json;

/* Parse text[0..n). `what` names the source in error sentences. */
tt_status tt_json_parse(tt_ctx *ctx, tt_arena *a, const tt_json **root,
                        const char *text, size_t n, const char *what);
/* Read and parse a file of at most `limit` bytes. */
tt_status tt_json_file(tt_ctx *ctx, tt_arena *a, const tt_json **root,
                       const char *path, size_t limit);

/* Member of an object, NULL when absent or not an object. */
const tt_json *tt_json_get(const tt_json *o, const char *key);
/* Member as a number/integer/bool/string, or `otherwise`. */
double tt_json_num(const tt_json *o, const char *key, double otherwise);
int64_t tt_json_int(const tt_json *o, const char *key, int64_t otherwise);
bool tt_json_bool(const tt_json *o, const char *key, bool otherwise);
const char *tt_json_str(const tt_json *o, const char *key,
                        const char *otherwise);

/* Without a member's name. NULL stands for a value that is absent. */
int64_t tt_json_count(const tt_json *v);          /* 0: no array or object    */
const tt_json *tt_json_first(const tt_json *v);   /* child; NULL: none        */
const tt_json *tt_json_next(const tt_json *v);    /* sibling; NULL: none      */
/* i-th element of an array, NULL when out of range. */
const tt_json *tt_json_at(const tt_json *a, int64_t i);
/* A number; 0 for anything else. */
double tt_json_real(const tt_json *v);
/* A number written without . or exponent, in int64. */
int64_t tt_json_whole(const tt_json *v, int64_t otherwise);

#endif
