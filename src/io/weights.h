/* weights.h: an open set of weights as bind.c sees it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_WEIGHTS_H
#define TT_IO_WEIGHTS_H

#include "io/io.h"

typedef struct weight {
    const char *name;   /* Wan's                                             */
    const char *stored; /* as in the file                                    */
    tt_tensor t;        /* may be strided until weights_pack                 */
    bool used_up;       /* a scale that has become part of its weight        */
    struct lora_patch *patch; /* to be merged (lora.h); NULL: nothing         */
} weight;

struct tt_weights {
    tt_ctx *ctx;
    tt_arena arena;
    tt_file *file;
    char *path;
    const char *layout;
    char *origin;
    weight *item;       /* stored order                                      */
    weight **sorted;    /* by name                                           */
    int64_t count;
    bool scaled;        /* has the marker of scaled 8-bit weights            */
    tt_model_kind kind;
    bool shapes_alone;  /* tt_weights_options                                */
    bool checked;       /* its values: tt_weights_check                      */
    struct lora_file *lora; /* merged into it (lora.h); NULL: none            */
    int64_t merged;     /* bytes of the weights that they change, as floats   */
    double merging;     /* operations of that                                 */
    int64_t capacity;   /* of blank weights (blank.h), in tensors; 0: these
                           are those of a file                               */
    int64_t next;       /* bytes of them that are given out                  */
    tt_dtype blank;     /* their type                                        */
};

/* The weight of this name with its stored strides; NULL when absent. */
weight *weights_item(const tt_weights *w, const char *name);

/* All items by their names in the file, in scratch, and one of them; NULL:
 * recorded, or there is none. */
weight **weights_by_stored(const tt_weights *w);
weight *weights_stored(const tt_weights *w, weight **by, const char *name);

/* Fold "X.scale_weight" and "X.weight_scale" into "X.weight" and take them and
 * "*.scale_input" off the list; then *changed. `marker`: the file says that
 * its 8-bit weights are scaled. */
tt_status weights_apply_scales(tt_weights *w, bool marker, bool *changed);

/* tt_weights_release of n tensors. To take so many pages out of the tables is
 * work for all threads. */
void weights_release_all(const tt_ctx *ctx, const tt_weights *w,
                         const tt_tensor *const *all, int64_t n);

/* Keys of the merged LoRAs that are for another part of the model. */
int64_t weights_lora_others(const tt_weights *w);

/* See file_expect. */
void weights_expect(const tt_weights *w, const tt_tensor *t, int64_t first,
                    int64_t n);

/* Make it packed, copying into w's arena if it is strided, and merge LoRAs into
 * it; NULL on a failure. Ask only when the shape is the expected one: a few
 * bytes of file can describe a tensor of any size (stride 0). */
const tt_tensor *weights_pack(tt_weights *w, weight *x);

#endif
