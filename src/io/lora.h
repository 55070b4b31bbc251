/* lora.h: what a LoRA adds to weights.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_LORA_H
#define TT_IO_LORA_H

#include "io/weights.h"

/* An open file, and what was done with its keys. */
typedef struct lora_file {
    tt_file *file;
    const char *path;
    double strength;
    bool has_alpha;         /* of keys that have none; else it is their rank */
    double alpha;
    int64_t used, others;   /* keys for these weights, and for another part   */
    struct lora_file *next; /* in the order given                             */
} lora_file;

/* What is added to one weight W [rows, columns]:
 *   factor * up down, up [rows, rank], down [rank, columns]; or
 *   factor * diff, diff NULL in the first case. */
typedef struct lora_patch {
    const tt_entry *up, *down, *diff;
    int64_t rank, rows;     /* of a product: W may be reshaped after this     */
    float factor;           /* strength * alpha / rank, rounded once          */
    const lora_file *from;
    struct lora_patch *next;
} lora_patch;

/* Merge the LoRAs of a list (tt_weights_options.lora) into w, which is a
 * transformer or a text encoder: what is to be added is noted in its weights,
 * and is added when they are asked for.
 * Errors  TT_EIO, TT_EFORMAT  the files; a strength that is no number
 *         TT_EUNSUPPORTED     DoRA, LoKr, LoHa ..., by name
 *         TT_ESHAPE           keys that fit no weight, or not its shape */
tt_status lora_add(tt_weights *w, const char *list);
void lora_close(tt_weights *w);
/* Is there a dictionary generator_lora? */
bool lora_adjacent(const tt_file *f);

/* The weight x with its patches, float32 in `a`. One is added after the other,
 * files in the order given and of a file up and down before diff:
 *     W = fma(factor, d, W), d = diff, or sum over rank of up down
 * in the order of every dot product here: blocks of 256 terms, one chain of fma
 * from 0 inside a block, sums of blocks added in ascending order.
 * Errors  TT_EFORMAT  a value that is not finite; TT_ENOMEM */
tt_status lora_merge(tt_weights *w, const weight *x, tt_arena *a,
                     tt_tensor *out);

/* row[0..n) = fma(factor, up down, row), up [r], down [r, n]: lora_row_here by
 * the processor's instructions where it has them, lora_row_plain without. */
typedef void lora_row(float *row, const float *up, const float *down,
                      float factor, int64_t r, int64_t n);
lora_row *lora_row_here(void);
lora_row lora_row_plain;

#endif
