/* dump.h: shared by dump.c and selection.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_DUMP_H
#define VALIDATE_DUMP_H

#include "tether/io.h"
#include "tether/validate.h"

/* The four files of a comparison; oracle and emul may be NULL. */
typedef struct dump_files {
    tt_file *got, *want, *oracle, *emul;
} dump_files;

/* One comparison under way. */
typedef struct dump_run {
    tt_ctx *ctx;
    tt_report *report;
    const tt_dump_options *opt;
    dump_files f;
    int64_t ours, common;      /* names in ours; of them in theirs            */
    char tie[200];             /* name of the first tie, "" while none        */
    int64_t tie_round, tie_chunk; /* of a trace; -1: none                     */
    int64_t chunks, rounds;    /* of a trace; -1: this is none                */
    char since[200];           /* the latest tensor of theirs                 */
    char between[400];         /* operators of ours since then                */
    tt_growth point;           /* of the chunk under way: sums of squares over
                                  its tensors; curve NULL: none yet           */
    int64_t point_n;
    int64_t unjudged;          /* for want of a float64 reference             */
    int64_t behind_tie;        /* tensors that could not be judged            */
} dump_run;

/* A pick of M out of P, as the files have it. Scores may be NULL. */
typedef struct selection {
    const double *got, *want;      /* [P] 1: kept                             */
    const double *score, *emul;    /* [P] ours; in the declared arithmetic    */
    int64_t P;
} selection;

typedef enum pick { PICK_SAME, PICK_TIE, PICK_WRONG } pick;
/* Are the two picks the same, or different by ties alone? *margin: the largest
 * difference of scores that was crossed; *allowed: the largest that may be. */
pick selection_compare(const selection *s, const tt_arith *arith,
                       double *margin, double *allowed);

/* Judge ".../grab.keep" of a dump, or rows of "grab_keep" of a trace; sets
 * outcome and hint. got, want [n]. */
void selection_judge(dump_run *d, tt_verdict *v, const char *name,
                     const double *got, const double *want, int64_t n);

/* The score's name that belongs to the keep of this name; false when `name` is
 * not one. */
bool selection_score_name(char *out, size_t size, const char *name);

#endif
