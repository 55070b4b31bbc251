/* page.h: the viewer (tools/viewer) as one file, with what it shows inside.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     page_open(f, "PASS: validate", "PASS");
 *     ... HTML that is read where scripts do not run: verdict, main table ...
 *     page_data(f);
 *     ... one JSON value: "kind", and what the viewer has for this kind ...
 *     page_close(f);
 * The page fetches nothing, and runs no script but the viewer's: its
 * Content-Security-Policy names their SHA-256. Strings of the JSON come from
 * json_string, which writes < as \u003c, so none of them ends the data. */
#ifndef IO_PAGE_H
#define IO_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* verdict: of the whole page, for programs; NULL: it has none. */
void page_open(FILE *f, const char *title, const char *verdict);
void page_data(FILE *f);
void page_close(FILE *f);

/* Members of the JSON: `"facts": [["name", "value"], ...], "program": ...`.
 * Those of a list name, value, ..., NULL; then machine, date and program. */
void page_facts(FILE *f, const char *const *fact);

/* A number of the JSON, of so many digits; null when it is not finite. */
void page_number(FILE *f, double x, int digits);

/* Text for XML and HTML: markup escaped, what XML 1.0 does not allow (control
 * characters, malformed UTF-8) as U+FFFD. */
void page_xml(FILE *f, const char *s);

void page_base64(FILE *f, const uint8_t *data, size_t n);

#endif
