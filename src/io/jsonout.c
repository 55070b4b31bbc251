/* jsonout.c: a small JSON emitter for run records and log lines.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/jsonout.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"

/* Bytes at the start of s that stand in a JSON string as they are. */
static size_t plain_length(const char *s)
{
    size_t n = 0;
    for (int k; s[n]; n += (size_t)k) {
        const unsigned char c = (unsigned char)s[n];
        k = utf8_length(s + n);
        if (!k || c < 0x20 || strchr("\"\\<\x7f", c) || utf8_turns(s + n))
            break;
    }
    return n;
}

static void put_escaped(FILE *f, unsigned char c)
{
    if (c == '"' || c == '\\')
        fprintf(f, "\\%c", c);
    else if (c == '\n')
        fputs("\\n", f);
    else
        fprintf(f, "\\u%04x", c);
}

/* A character that turns the text after it; its bytes. */
static int put_turning(FILE *f, const char *s)
{
    uint32_t cp = 0;
    const int n = utf8_decode(&cp, (const unsigned char *)s, 4);
    fprintf(f, "\\u%04x", (unsigned)cp);
    return n;
}

void json_string(FILE *f, const char *s)
{
    fputc('"', f);
    while (*s) {
        const size_t n = plain_length(s);
        if (n) fwrite(s, 1, n, f);
        s += n;
        if (utf8_turns(s)) s += put_turning(f, s);
        else if (*s) put_escaped(f, (unsigned char)*s++);
    }
    fputc('"', f);
}

/* Comma, new line, key: whatever comes before a value. */
static void before(json_out *j, const char *key)
{
    if (!j->first) fputc(',', j->file);
    if (j->pretty && j->depth) fprintf(j->file, "\n%*s", 2 * j->depth, "");
    else if (!j->first) fputc(' ', j->file);
    j->first = false;
    if (key) {
        json_string(j->file, key);
        fputs(": ", j->file);
    }
}

void json_begin(json_out *j, FILE *file, bool pretty)
{
    *j = (json_out){.file = file, .pretty = pretty, .first = true};
    fputc('{', file);
    j->depth = 1;
}

void json_end(json_out *j)
{
    fprintf(j->file, j->pretty ? "\n}\n" : "}\n");
}

void json_open(json_out *j, const char *key, char bracket)
{
    before(j, key);
    fputc(bracket, j->file);
    j->depth++;
    j->first = true;
}

void json_close(json_out *j, char bracket)
{
    j->depth--;
    if (j->pretty && !j->first) fprintf(j->file, "\n%*s", 2 * j->depth, "");
    fputc(bracket, j->file);
    j->first = false;
}

void json_str(json_out *j, const char *key, const char *value)
{
    before(j, key);
    if (value) json_string(j->file, value);
    else fputs("null", j->file);
}

void json_int(json_out *j, const char *key, int64_t value)
{
    before(j, key);
    fprintf(j->file, "%" PRId64, value);
}

void json_u64(json_out *j, const char *key, uint64_t value)
{
    before(j, key);
    fprintf(j->file, "%" PRIu64, value);
}

void json_real(json_out *j, const char *key, double value)
{
    before(j, key);
    char text[40];
    if (!isfinite(value)) {
        fputs("null", j->file);
        return;
    }
    /* the fewest digits that give the same number again: 0.35 */
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    fputs(text, j->file);
}

void json_bool(json_out *j, const char *key, bool value)
{
    before(j, key);
    fputs(value ? "true" : "false", j->file);
}
