/* tsv.h: the tab-separated vectors of ref_data/t5_tokenizer.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Header only, because a test program is one file. Lines are split in place;
 * '#' starts a comment line; '-' stands for an empty value. */
#ifndef TT_TESTS_TEXT_TSV_H
#define TT_TESTS_TEXT_TSV_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"

#define TSV_COLUMNS 4

typedef struct tsv {
    FILE *f;
    char *line;
    size_t size;
    char *col[TSV_COLUMNS];
    int ncol;
} tsv;

static inline bool tsv_open(tsv *t, const char *path)
{
    memset(t, 0, sizeof *t);
    t->f = fopen(path, "rb");
    return expect(t->f != NULL, "cannot open %s", path);
}

static inline bool tsv_next(tsv *t)
{
    do {
        if (getline(&t->line, &t->size, t->f) < 0) {
            fclose(t->f);
            free(t->line);
            return false;
        }
    } while (t->line[0] == '#' || t->line[0] == '\n');
    t->line[strcspn(t->line, "\r\n")] = 0;
    char *p = t->line;
    for (t->ncol = 0; t->ncol < TSV_COLUMNS && p; t->ncol++) {
        t->col[t->ncol] = p;
        p = strchr(p, '\t');
        if (p) *p++ = 0;
    }
    return true;
}

/* Decode hex digits in place; the number of bytes. */
static inline size_t tsv_hex(char *s)
{
    size_t n = 0;
    if (strcmp(s, "-") == 0) return 0;
    for (; s[2 * n] && s[2 * n + 1]; n++) {
        unsigned v = 0;
        sscanf(s + 2 * n, "%2x", &v);
        s[n] = (char)v;
    }
    return n;
}

/* Read at most `most` ids; the number of them. */
static inline int64_t tsv_ids(int64_t *ids, int64_t most, const char *s)
{
    int64_t n = 0;
    if (strcmp(s, "-") == 0) return 0;
    while (*s && n < most) {
        char *end;
        ids[n++] = strtoll(s, &end, 10);
        s = end + (*end == ' ');
    }
    return n;
}

#endif
