/* bits.h: what the files of check_bits share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TESTS_BITS_H
#define TT_TESTS_BITS_H

#include "tether/io.h"

/* ---- the manifest: ref_data/bits.txt ------------------------------------- */

/* One line, "class case tensor sha256". The words hold no spaces. */
typedef struct bits_row {
    char *class, *name, *tensor, *sha;
    int64_t at;        /* order of appearance                                 */
    bool seen;         /* computed in this run                                */
} bits_row;

typedef struct bits_list {
    bits_row *row;
    int64_t n, room;
} bits_list;

/* Rows of a file; a file that does not exist has none. */
tt_status bits_read(tt_ctx *ctx, bits_list *l, const char *path);
/* Sorted by class and case, tensors of a case in their order. */
tt_status bits_write(tt_ctx *ctx, bits_list *l, const char *path);
tt_status bits_add(tt_ctx *ctx, bits_list *l, const char *class,
                   const char *name, const char *tensor, const char *sha);
bits_row *bits_find(bits_list *l, const char *class, const char *name,
                    const char *tensor);
void bits_free(bits_list *l);

/* ---- the demo run -------------------------------------------------------- */

/* What `tether demo` computes, with the model in folder `dir`: token ids, text
 * embedding, latents and, with `pictures`, frames before and after rounding to
 * 8 bits. */
tt_status bits_demo(tt_ctx *ctx, const char *dir, bool pictures,
                    tt_st_writer *out);

/* Files of the model, relative to its folder, NULL at the end. */
extern const char *const bits_demo_files[];

#endif
