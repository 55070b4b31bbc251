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
#include "core/context.h"

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
/* What ftfy makes of a ligature, 0 at its end; NULL: it is none. */
const uint32_t *clean_ligature(uint32_t c);
/* The tables of NFC, in the scratch of ctx; NULL when that fails. */
typedef struct clean_tables clean_tables;
const clean_tables *clean_tables_read(tt_ctx *ctx);
/* out = NFC(in); scratch comes from ctx. */
void clean_nfc(tt_ctx *ctx, const clean_tables *t, clean_text *out,
               const clean_text *in);

#endif
