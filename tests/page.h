/* page.h: a test reads the numbers of a page (a README) and computes them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   examples stand in tables of two columns, `| label | numbers |`. A
 *         number begins with 0x: a C hexadecimal float, or an integer. A test
 *         names a row by its label (without asterisks) and says what it
 *         computed; page_close() fails for every number of the page that no
 *         check has asked for, so that nothing on it is unchecked. */
#ifndef TT_TESTS_PAGE_H
#define TT_TESTS_PAGE_H

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"

typedef struct page {
    const char *path;
    char *text;
    char *seen;   /* one flag per character: part of a row that was checked */
    size_t size;
} page;

static inline bool page_open(page *p, const char *path)
{
    FILE *f = fopen(path, "rb");
    *p = (page){.path = path};
    if (f) {
        p->text = malloc(1 << 20);
        p->size = fread(p->text, 1, (1 << 20) - 1, f);
        p->text[p->size] = 0;
        p->seen = calloc(p->size + 1, 1);
        fclose(f);
    }
    return expect(p->text && p->size, "%s can be read", path);
}

/* Does the cell that begins at `s` hold this label, asterisks aside? Both may
 * differ in blanks. The end of the cell comes back in `end`. */
static inline bool page_label(const char *s, const char *label,
                              const char **end)
{
    for (;; s++) {
        while (*s == ' ' || *s == '*') s++;
        while (*label == ' ' || *label == '*') label++;
        if (!*label || *s != *label) break;
        label++;
    }
    *end = s;
    return !*label && *s == '|';
}

/* The second cell of the row with this label, NULL when there is none. */
static inline const char *page_row(page *p, const char *label)
{
    for (const char *s = p->text; s; s = strchr(s, '\n')) {
        const char *end;
        if (*s == '\n') s++;
        if (*s != '|' || !page_label(s + 1, label, &end)) continue;
        const char *stop = strchr(end, '\n');
        const size_t n = stop ? (size_t)(stop - end) : strlen(end);
        memset(p->seen + (end - p->text), 1, n);
        return end + 1;
    }
    expect(false, "%s has a row \"%s\"", p->path, label);
    return NULL;
}

/* Next number of a row, NULL at its end. */
static inline const char *page_number(const char *s)
{
    while (*s && *s != '\n' && strncmp(s, "0x", 2)) s++;
    return *s == '0' ? s : NULL;
}

static inline double page_value(const char *s, char **end)
{
    const double v = strtod(s, end);
    return s[-1] == '-' ? -v : v;
}

/* The row `label` says exactly these numbers. */
static inline void page_says(page *p, const char *label, int n,
                             const double *want)
{
    const char *s = page_row(p, label);
    char *end;
    if (!s) return;
    for (int i = 0; i < n; i++, s = end) {
        s = page_number(s);
        if (!expect(s != NULL, "%s, \"%s\": number %d is missing; computed: %a",
                    p->path, label, i, want[i]))
            return;
        const double v = page_value(s, &end);
        expect(!memcmp(&v, &want[i], sizeof v),
               "%s, \"%s\": the page says %a; computed: %a", p->path, label,
               v, want[i]);
    }
    expect(!page_number(s), "%s, \"%s\": the page says more than %d numbers",
           p->path, label, n);
}

#define PAGE_SAYS(p, label, ...)                                              \
    page_says(p, label,                                                       \
              (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),        \
              (double[]){__VA_ARGS__})

/* The one integer of a row, up to 64 bits. */
static inline void page_says_word(page *p, const char *label, uint64_t want)
{
    const char *s = page_row(p, label);
    s = s ? page_number(s) : NULL;
    const uint64_t v = s ? strtoull(s, NULL, 16) : 0;
    expect(s && v == want, "%s, \"%s\": the page says 0x%016" PRIx64
           "; computed: 0x%016" PRIx64, p->path, label, v, want);
}

/* Every number in front of the heading `stop` (NULL: of the page) was asked
 * for. */
static inline void page_close(page *p, const char *stop)
{
    const char *end = stop ? strstr(p->text, stop) : NULL;
    expect(!stop || end, "%s has the heading \"%s\"", p->path,
           stop ? stop : "");
    if (end) *(char *)end = 0;
    for (const char *s = p->text; s && (s = strstr(s, "0x")); s++)
        expect(p->seen[s - p->text], "%s: %.*s is checked by nothing", p->path,
               (int)strcspn(s, "` |\n"), s);
    free(p->text);
    free(p->seen);
}

#endif
