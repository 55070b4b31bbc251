/* clean.h: shared by the files of prompt cleaning (clean*.c, nfc.c).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Cleaning works on arrays of code points. Each step reads one array and
 * writes another; an output never needs more than CLEAN_GROWTH times the code
 * points of the *original* text, because what one step expands (ligatures,
 * U+FFE3, a few characters NFC takes apart) none expands again. */
#ifndef TT_TEXT_CLEAN_H
#define TT_TEXT_CLEAN_H

#include "core/utf8.h"
#include "tether/context.h"

#define CLEAN_GROWTH 3

typedef struct clean_text {
    uint32_t *v;
    int64_t n, cap;
} clean_text;

/* Append a code point; the capacity is the caller's promise (asserted). */
void clean_put(clean_text *t, uint32_t cp);

/* ---- clean_fix.c: ftfy.fix_text, clean_html.c, nfc.c */

/* out = ftfy.fix_text(in) without encoding repair. */
void clean_fix_text(tt_ctx *ctx, clean_text *out, const clean_text *in);
/* out = in with `&name;` and `&#n;` decoded as ftfy does. */
void clean_entities(clean_text *out, const clean_text *in);
/* Does t end with a reference of ftfy's, that of its last ';'? Then its length
 * and the n code points that it stands for. */
bool clean_last_reference(const clean_text *t, int64_t *length, int *n,
                          uint32_t cp[3]);
/* out = html.unescape(in). */
void clean_unescape(clean_text *out, const clean_text *in);
/* out = NFC(in); scratch comes from ctx. */
void clean_nfc(tt_ctx *ctx, clean_text *out, const clean_text *in);

/* ---- generated tables */

typedef struct html5_name {   /* &name; and, when bare, also &name           */
    const char *name;
    int bare;
    uint32_t cp[2];
} html5_name;
typedef struct html5_upper {  /* &NAME; accepted by ftfy only                */
    const char *name;
    uint32_t cp[3];
} html5_upper;
extern const html5_name html5_names[];
extern const int html5_names_count;
extern const html5_upper html5_uppers[];
extern const int html5_uppers_count;

typedef struct uni_range {
    uint32_t first, last;
    int value;
} uni_range;
typedef struct uni_triple {
    uint32_t a, b, c;
} uni_triple;
extern const uni_range uni_classes[];
extern const int uni_classes_count;
extern const uni_triple uni_decompositions[]; /* a -> b [c]                  */
extern const int uni_decompositions_count;
extern const uni_triple uni_compositions[];   /* a + b -> c                  */
extern const int uni_compositions_count;
extern const uint32_t uni_zeros[];            /* zeros of decimal digit runs */
extern const int uni_zeros_count;
extern const uint16_t uni_width[];            /* U+FF01..U+FFEF              */
extern const int uni_width_count;

#endif
