/* jsonout.h: a small JSON emitter for run records and log lines.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     json_out j;
 *     json_begin(&j, file, true);           pretty: one member per line
 *     json_str(&j, "prompt", "a cat");
 *     json_open(&j, "chunks", '[');
 *     json_int(&j, NULL, 3);                inside an array: no key
 *     json_close(&j, ']');
 *     json_end(&j);                         closes the root, ends the line
 *
 * Text that is not valid UTF-8 is written byte by byte as \u00XX, so a line
 * is always valid JSON; < and what utf8_turns tells as \uXXXX, so that it can
 * stand in a page. Numbers that are not finite become null. */
#ifndef TT_IO_JSONOUT_H
#define TT_IO_JSONOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* One string in quotes. */
void json_string(FILE *f, const char *s);

typedef struct json_out {
    FILE *file;
    bool pretty, first;
    int depth;
} json_out;

void json_begin(json_out *j, FILE *file, bool pretty);
void json_end(json_out *j);
void json_open(json_out *j, const char *key, char bracket);
void json_close(json_out *j, char bracket);
void json_str(json_out *j, const char *key, const char *value); /* NULL: null */
void json_int(json_out *j, const char *key, int64_t value);
void json_u64(json_out *j, const char *key, uint64_t value);
void json_real(json_out *j, const char *key, double value);
void json_bool(json_out *j, const char *key, bool value);

#endif
