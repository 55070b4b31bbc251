/* chain.h: the operators between one named tensor and the next, to be done
 * again with a mistake in one of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A wrong tensor of a file is the result of several operators. Our model runs
 * again with everything of theirs given, and what those operators read is
 * kept. A mistake of one of them is imitated as for a plug-in; the operators
 * after it are done on what it gave, and the end is compared with theirs.
 * What reads what is told by addresses: memory that overlaps a result and has
 * its bytes is that result. */
#ifndef VALIDATE_CHAIN_H
#define VALIDATE_CHAIN_H

#include "validate/hint/hint.h"

enum { LINKS_MOST = 24, OTHERS_MOST = 8, LIKES_MOST = 2048,
       NEAR_MOST = 32 };

/* One call: copies of what it read, and of its result. */
typedef struct chain_link {
    op_call q;               /* reads the copies                              */
    const tt_ops *ops;       /* ours, of the class that it is made in         */
    op_spans was;            /* where what it read was                        */
    void *copy[SPANS_MAX];   /* weights and tables of angles: itself          */
    const char *out_was;     /* where its result was                          */
    char *out;
    size_t bytes;
    int like;                /* its weights in chain.like; -1: it has none    */
} chain_link;

/* The result of a call shortly before, which a port may read by mistake; of
 * `add`, perhaps the modulation that later ones read rows of. */
typedef struct chain_near {
    op_kind kind;
    const char *was;
    int64_t count;
    tt_arena mem;
    tt_real *copy;
} chain_near;

/* Weights of a call, in the order in which calls of the model first had them.
 * They lie where the model has them. */
typedef struct chain_like {
    op_call q;
    tt_tensor w;
    const void *at;
    char path[48];
} chain_like;

/* An operator of another pass or block, with copies of what it read. */
typedef struct chain_other {
    op_call q;
    char path[96];
    tt_arena mem;            /* of the copies                                 */
} chain_other;

/* Who is told of mistakes that a check would not have seen. */
typedef struct chain_blind {
    const tt_arith *arith;
    const tt_verdict *v;     /* of the named tensor                           */
    const double *emul;
    void (*unseen)(void *user, const char *op, const char *mistake);
    void *user;
} chain_blind;

typedef struct chain {
    tt_ctx *ctx;
    const chain_blind *blind;    /* NULL: a mistake is looked for             */
    int n;
    chain_link link[LINKS_MOST];
    const char *end_was;     /* the named tensor                              */
    char *end;
    size_t end_bytes, end_size;  /* size of an element                        */
    int at;                  /* the link under trial                          */
    bool together;           /* all calls of its kind make the same mistake   */
    int others;              /* latest last; of attention, of its keys' rope  */
    chain_other other[OTHERS_MOST], keys[OTHERS_MOST];
    int blocks, likes;       /* attention of other blocks, in this pass       */
    chain_other block[OTHERS_MOST];
    chain_like *like;
    chain_near near[NEAR_MOST + 1];    /* a ring; at nears % NEAR_MOST; last
                                          the projected time                  */
    int nears;
    chain_other turn;        /* the latest rope call; pos NULL: none          */
    int64_t tried;           /* mistakes                                      */
    int64_t work, budget;    /* multiply-adds of a trial; that are left       */
} chain;

/* The operands of q that are at `from` are at `to`. */
void chain_move(tt_ctx *ctx, tt_arena *mem, op_call *q, void *const *from,
                void *const *to, int n);

/* What the end is [end_bytes / end_size] when link c->at gives `trial`; with
 * `together` other calls of its kind make the same mistake `fault`. False: the
 * end does not depend on it. */
bool chain_end(chain *c, const double *trial, const void *fault, double *out);
/* The same when links are these calls; NULL: as they were. */
bool chain_end_of(chain *c, const op_call *const *own, double *out);
/* The same when the links of this set, bit i for link i, run on `ops`. */
bool chain_end_on(chain *c, unsigned links, const tt_ops *ops, double *out);

/* A sentence with the mistake, of an operator of c, that gives `got` in the
 * named tensor; false: none does. v has its shape, and what may be erred. */
bool hint_chain(tt_ctx *ctx, chain *c, const char *name, const double *got,
                const tt_verdict *v, char *out, size_t size);

/* Mistakes of the operators of c that the limits of its end would pass. */
void hint_blind(tt_ctx *ctx, chain *c, const chain_blind *b);

/* A sentence with the class, or the change of class cls, that gives every bit
 * of `got` in the end when products of c compute it; false: none does. */
bool hint_chain_class(tt_ctx *ctx, chain *c, tt_class cls, const double *got,
                      char *out, size_t size);
/* "linear 2 of 3"; `together`: "every rope". */
void chain_link_name(const chain *c, int i, bool together, char *out,
                     size_t size);

/* Mistakes of a model, not of an operator (model.c, window.c): another row of
 * the modulation, a pass at another time; frames of keys that are missing,
 * counted twice, stale, or at each other's place. */
void hint_model(hint *h, const char *name);
void hint_window(hint *h);
/* What belongs to another call (other.c), stage by stage: weights of another
 * layer, keys and values of another block, parts of products that are fused;
 * what another operator gave; an operator more; another order. */
enum { OTHER_STAGES = 4 };
void hint_other(hint *h, const char *name, int stage);
void hint_other_block(hint *end, chain *c);
/* A part of its result, or of what it reads, is missing or another part
 * (damage.c). */
void hint_damage(hint *h);
/* Weights, keys and values in fewer bits (stored.c). */
void hint_stored(hint *end, chain *c);
/* Is this link the sum of a modulation that others of the chain read? */
bool chain_modulation(const chain *c, int i);
/* "queries" or "keys" of attention that a rope call rotates; NULL: neither. */
const char *chain_rope_of(const chain *c, int i);
/* "scale 1" of the six rows of a modulation, or of two. */
const char *chain_row_name(int64_t row, int64_t rows);
/* What its positions are seen from: " next to the keys"; "" of no chain. */
const char *chain_next(const chain *c);
/* Where an operand of the link under trial was before it was copied. */
const char *chain_was(const chain *c, const void *copy);
/* Is that the result of an earlier link? */
bool chain_result(const chain *c, const void *copy);

#endif
