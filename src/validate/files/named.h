/* named.h: shared by named.c and frames.c, which imitate mistakes between
 * named tensors of one dump.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_NAMED_H
#define VALIDATE_NAMED_H

#include "validate/files/dump.h"

enum { NAMED_CHANNELS = 512,     /* of a last axis, at most                   */
       NAMED_MOST = 64 };        /* wrong tensors that are asked about        */

/* A wrong tensor of theirs. */
typedef struct named {
    dump_run *d;
    const char *name;
    int rank;
    int64_t dim[TT_MAX_RANK], n;
    const double *got, *want;
    int64_t chunk, step, block;  /* -1: its name does not say                 */
    double (*pair)[NAMED_CHANNELS];   /* [2] rows of scratch                  */
    char *out;                   /* the sentence                              */
    size_t size;
} named;

/* Does the trial [n] leave next to nothing of the error? Does the right rule
 * give ours? */
bool named_gives(const named *t, const double *trial);
/* Of a trial with a number in it that is fitted: of a few values it must leave
 * nothing. */
bool named_fits(const named *t, const double *trial);
bool named_rule(const named *t, const double *trial);

/* The name with `last` after its last '/'. */
const char *named_beside(const named *t, const char *last, char *out,
                         size_t size);
/* Theirs of that name: the entry, its values (and their number) in scratch, or
 * only when there are n of them; NULL: not there. */
const tt_entry *named_find(const named *t, const char *name);
double *named_read(const named *t, const char *name, int64_t *n);
double *named_like(const named *t, const char *name, int64_t n);
/* n doubles in scratch. */
double *named_capacity(const named *t, int64_t n);

/* TetherCache (frames.c). */
bool frames_mass(named *t);
bool frames_diversity(named *t);
bool frames_score(named *t);
bool frames_keep(named *t);
bool frames_index(named *t);
bool frames_pool(named *t);
/* A deviation within the frames of the pool alone. */
bool frames_within(named *t, double *trial);

/* What mistake makes their tensor of this name out of theirs before it; false:
 * none that is known. */
bool named_explain(dump_run *d, const tt_entry *ours, const double *got,
                   const double *want, char *out, size_t size);

#endif
