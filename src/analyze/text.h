/* text.h: text that grows, for the tables that analyze writes.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * CSV and JSON are short texts: they are put together in memory and saved in
 * one go, so a file is complete or absent. A failed allocation
 * is recorded in ctx; adding is then a no-op. */
#ifndef ANALYZE_TEXT_H
#define ANALYZE_TEXT_H

#include "core/context.h"

typedef struct text {
    tt_ctx *ctx;
    tt_arena mem;
    char *at;           /* NUL-terminated; NULL while empty                   */
    size_t len, cap;
} text;

void text_begin(text *t, tt_ctx *ctx);
void text_end(text *t);

void text_bytes(text *t, const void *data, size_t n);
void text_add(text *t, const char *fmt, ...) TT_PRINTF(2, 3);
/* s as a JSON string with its quotes; NULL gives null. Bytes that are not
 * UTF-8 become U+FFFD. */
void text_json(text *t, const char *s);
/* A number for CSV and JSON, shortest of up to 9 digits that is enough for
 * reading; not finite: `otherwise` ("null", ""). */
void text_number(text *t, double x, const char *otherwise);
/* s as a CSV field: quoted when it holds a comma, a quote or a line end. */
void text_csv(text *t, const char *s);
tt_status text_save(text *t, const char *path);

#endif
