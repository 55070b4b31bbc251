/* named.h: shared by the files that imitate mistakes between named tensors of
 * one dump: named.c, named_grab.c, named_tame.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_NAMED_H
#define VALIDATE_NAMED_H

#include "validate/files/dump.h"

enum { NAMED_MOST = 64 };        /* wrong tensors that are asked about        */

/* A wrong tensor of theirs. */
typedef struct named {
    dump_run *d;
    const char *name;
    place at;
    const tt_tensor *like;       /* its shape                                 */
    int64_t n;
    const double *got, *want;
    void *state;                 /* of a rule                                 */
    char *out;                   /* the sentence                              */
    size_t size;
} named;

/* How a tensor is made of others. A mistake is a value in one of the fields of
 * `how`; all 0 is right. `make` writes what the rule gives into trial [n];
 * false: what it needs is not there. `solve`, which may be NULL, looks for a
 * number that makes the trial theirs and says it. */
enum { NAMED_FIELDS = 8 };
typedef struct change {
    int field, value;
    const char *what;            /* NULL: the end of a list                   */
} change;
typedef struct rule {
    bool (*make)(named *t, const int *how, double *trial);
    bool (*solve)(named *t, const int *how, double *trial, char *what,
                  size_t size);
    const char *subject;
    const change *list;
} rule;
/* The right rule gives ours; which change gives theirs, which number, which two
 * changes, which change and number? False: none. */
bool named_try(named *t, const rule *r);

/* Does the trial [n] leave next to nothing of the error? Is it ours? */
bool named_gives(const named *t, const double *trial);
bool named_right(const named *t, const double *trial);
/* named_gives of a trial with a number in it that is fitted: of a few values it
 * must leave nothing. */
bool named_fits(const named *t, const double *trial);

/* Theirs of a name, NULL: not there. */
const tt_entry *named_find(const named *t, const char *fmt, ...)
    TT_PRINTF(2, 3);
/* Its values in scratch; NULL when there are not n of them (-1: any). */
double *named_read(const named *t, const tt_entry *e, int64_t n);
/* Those of the name with another last word. */
double *named_beside(const named *t, const char *last, int64_t n);
/* n doubles in scratch. */
double *named_capacity(const named *t, int64_t n);
/* The last pass over a latent frame of the video: "chunk.2/step.4/", its place
 * among the F frames of that; false: it is not in the dump. */
bool named_pass_of(const named *t, int64_t frame, char *pass, size_t size,
                   int64_t *at, int64_t *F);

/* TetherCache (named_grab.c, named_tame.c). */
bool named_mass(named *t);
bool named_diversity(named *t);
bool named_score(named *t);
bool named_keep(named *t);
bool named_pool(named *t);
bool named_edit(named *t);

/* y = a u + b w [n], least squares, into trial; does that give theirs? */
bool named_mixed(const named *t, double *trial, const double *u,
                 const double *w, double *a, double *b);
double named_dot(const double *a, const double *b, int64_t n);

/* What mistake makes their tensor of this name out of theirs before it; false:
 * none that is known. */
bool named_explain(dump_run *d, const tt_entry *ours, const double *got,
                   const double *want, char *out, size_t size);

#endif
