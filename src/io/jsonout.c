/* jsonout.c: a small JSON emitter for run records and log lines.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/jsonout.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"

void json_string(FILE *f, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    fputc('"', f);
    while (*s) {
        int n = utf8_length((const char *)s);
        if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if (*s == '\n')
            fputs("\\n", f);
        else if (n == 0 || *s < 0x20 || *s == 0x7f)
            fprintf(f, "\\u%04x", *s);
        else
            fwrite(s, 1, (size_t)n, f);
        s += n ? n : 1;
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
