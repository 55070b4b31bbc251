/* page.h: what all HTML pages of the program share: looks, machine, date.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Pages hold no script and fetch nothing. They fit a phone as well as a wide
 * window, follow the reader's choice of dark or light, and can be printed. */
#ifndef CORE_PAGE_H
#define CORE_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* For <style>, one after the other. Parts of a page, by class
 *   top       header: .kicker, h1.pass or h1.fail, .lead, .tiles, dl.facts
 *   tile      a number with a word under it
 *   rows      table whose first column is wide; a card per row on a phone
 *   bar       a number as a length: a span with <i style="width:50%">, a
 *             span with the number behind it
 *   wide      box that scrolls sideways by itself
 *   plots     figures beside each other where there is room; in their SVG:
 *             .s soft words, .g grid, .a axes
 *   ok bad tie      colour of a word or a row */
extern const char *const page_style[2];

/* "AMD EPYC 9R14, 2 cores, Linux 6.1.0 x86_64", as far as that can be found
 * out. Returns buf. */
const char *page_machine(char *buf, size_t n);

/* "2026-03-14 15:09 UTC". The time is that of SOURCE_DATE_EPOCH where this
 * variable is set, so that pages can be compared byte by byte. Returns buf. */
const char *page_date(char *buf, size_t n);

/* A positive duration: "0.8 s", "12 s", "3 min 5 s", "2 h 7 min". Returns
 * buf. */
const char *page_duration(char *buf, size_t n, double seconds);

/* "1.25e6" for 1.25e+06, "0.342", "inf", at `digits` significant digits, whole
 * numbers below a million in full. A NaN is "". Returns buf. */
const char *page_number(char *buf, size_t n, double x, int digits);

/* Text for XML and HTML: markup escaped, what XML 1.0 does not allow (control
 * characters, malformed UTF-8) as U+FFFD. */
void page_xml(FILE *f, const char *s);
/* 1234567 as "1,234,567". */
void page_count(FILE *f, int64_t n);
/* "2.4", "350", "12 thousand", "1.25 million", "4e12" */
void page_times(FILE *f, double x);

/* Pieces of an SVG: its begin, a text, the name of an axis, of one that is read
 * from bottom to top, a line of a class. */
void page_begin_svg(FILE *f, double w, double h, const char *what);
void page_text_at(FILE *f, double x, double y, const char *anchor,
                  const char *s);
void page_name_at(FILE *f, int x, int y, const char *s);
void page_turned_at(FILE *f, double x, double y, const char *s);
void page_line_at(FILE *f, const char *class, double x0, double y0, double x1,
                  double y1);

#endif
