/* unpickle.h: the part of Python's pickle language that a state dictionary
 * needs.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing is ever executed: the few allowed globals are tags, a REDUCE of a
 * tag builds one of our own values, and any other global refuses the file. */
#ifndef TT_IO_UNPICKLE_H
#define TT_IO_UNPICKLE_H

#include "io/torchzip.h"

typedef enum pickle_kind {
    PV_NONE, PV_BOOL, PV_INT, PV_FLOAT, PV_STR, PV_TUPLE, PV_LIST, PV_DICT,
    PV_TAG, PV_STORAGE, PV_TENSOR
} pickle_kind;

typedef struct pickle_value {
    uint8_t kind;       /* pickle_kind                                       */
    uint32_t len;       /* STR: bytes, valid UTF-8 in the mapping            */
    union {
        int64_t i;      /* BOOL, INT; TAG: an index of the table of tags     */
        double f;
        const char *s;
        struct pickle_list *list; /* TUPLE, LIST; DICT: key, value, key, ... */
        const struct pickle_storage *storage;
        const tt_tensor *tensor;
    } as;
} pickle_value;

typedef struct pickle_list {
    pickle_value *item;
    int64_t count, cap;
} pickle_list;

typedef struct pickle_storage {
    const uint8_t *data;
    tt_dtype dtype;     /* TT_NONE: untyped bytes                            */
    int64_t numel;      /* in units of dtype, or bytes                       */
} pickle_storage;

typedef struct pickle_machine {
    tt_ctx *ctx;
    tt_arena *arena;
    const torchzip *zip;
    const tt_file *f;
    const uint8_t *text;
    int64_t n, at;
    pickle_value *stack;
    int64_t top, cap;
    int64_t floor;      /* stack entries below the innermost mark            */
    int64_t *mark;      /* earlier floors                                    */
    int64_t nmarks, mark_cap;
    pickle_value **memo; /* in pages                                         */
    int64_t nmemo;
    int64_t objects;    /* made so far                                       */
    int64_t budget;     /* bytes of memory that are left                     */
    char *chunk;        /* where small values are cut from                   */
    size_t left;
} pickle_machine;

/* Run z->pickle. All values live in `a`, and take their bytes from *budget. The
 * root is a dictionary. */
tt_status unpickle(tt_ctx *ctx, pickle_value *root, tt_arena *a,
                   const torchzip *z, const tt_file *f, int64_t *budget);

/* pickle_torch.c: what the tags mean. Each returns false (recorded). */
bool pickle_refuse(pickle_machine *m, const char *why);
bool pickle_global(pickle_machine *m, pickle_value *out, const char *module,
                   size_t nmodule, const char *name, size_t nname);
bool pickle_reduce(pickle_machine *m, pickle_value *out,
                   const pickle_value *tag, const pickle_value *args);
bool pickle_persistent(pickle_machine *m, pickle_value *out,
                       const pickle_value *id);
bool pickle_build(pickle_machine *m, const pickle_value *object,
                  const pickle_value *state);
/* A zeroed object in the machine's memory, counted against the limit of
 * objects; NULL: recorded. */
void *pickle_new(pickle_machine *m, size_t size);
bool pickle_append(pickle_machine *m, pickle_list *l, const pickle_value *v);

#endif
