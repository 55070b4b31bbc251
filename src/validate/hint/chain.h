/* chain.h: the operators between one named tensor and the next, to be done
 * again with a mistake in one of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A wrong tensor of a file is the result of several operators. Our model runs
 * again with everything of theirs given, and what those operators read is
 * kept. A mistake of one of them is imitated as for a plug-in; the operators
 * behind it are done on what it gave, and the end is compared with theirs.
 * What reads what is told by addresses: memory that overlaps a result and has
 * its bytes is that result. */
#ifndef VALIDATE_CHAIN_H
#define VALIDATE_CHAIN_H

#include "validate/hint/hint.h"

enum { LINKS_MOST = 24 };

/* One call: copies of what it read, and of its result. */
typedef struct chain_link {
    op_call q;               /* reads the copies                              */
    op_spans was;            /* where what it read was                        */
    void *copy[SPANS_MAX];   /* weights and tables of angles: itself          */
    const char *out_was;     /* where its result was                          */
    char *out;
    size_t bytes;
} chain_link;

typedef struct chain {
    tt_ctx *ctx;
    int n;
    chain_link link[LINKS_MOST];
    const char *end_was;     /* the named tensor                              */
    char *end;
    size_t end_bytes, end_size;  /* size of an element                        */
    int at;                  /* the link under trial                          */
    int64_t rows;            /* of the latest col_moment                      */
    bool together;           /* all rope calls make the same mistake          */
} chain;

/* The operands of q that are at `from` are at `to`. */
void chain_move(tt_ctx *ctx, tt_arena *mem, op_call *q, void *const *from,
                void *const *to, int n);

/* What the end is [end_bytes / end_size] when link c->at gives `trial`; with
 * `together` other calls of its kind make the same mistake `fault`. False: the
 * end does not depend on it. */
bool chain_end(chain *c, const double *trial, const void *fault, double *out);

/* A sentence with the mistake, of an operator of c, that gives `got` in the
 * named tensor; false: none does. v has its shape, and what may be erred. */
bool hint_chain(tt_ctx *ctx, chain *c, const char *name, const double *got,
                const tt_verdict *v, char *out, size_t size);

/* Mistakes of a model, not of an operator: frames of keys that are missing,
 * counted twice, or at each other's place; a pass at another time. */
void hint_model(hint *h, const char *name);

#endif
