/* dump.h: shared by the files that compare two dumps: dump.c, pair.c,
 * history.c and picks.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VALIDATE_DUMP_H
#define VALIDATE_DUMP_H

#include "io/io.h"
#include "validate/selection.h"

/* The four files of a comparison; oracle and emul may be NULL. */
typedef struct dump_files {
    tt_file *got, *want, *oracle, *emul;
} dump_files;

/* ---- which frames a run held (history.c) --------------------------------- */

/* The runs whose histories are known; RUN_EXCUSED is theirs where only ties
 * count, picks that the arithmetic may make. */
typedef enum run_kind {
    RUN_OURS, RUN_THEIRS, RUN_EXCUSED, RUN_ORACLE, RUN_EMULATED, RUN_KINDS
} run_kind;

/* The first pick of a run that is not that of ours; from there on the two hold
 * other frames. */
typedef struct history {
    char name[200];      /* ".../admit.0/grab.keep", "" while there is none   */
    int64_t chunk, step, block, sub;  /* where; -1: its name does not say     */
    int64_t frames;      /* latent frames up to the end of its chunk, -1      */
    int64_t row;         /* of a trace: its round; -1: not one                */
} history;

/* One comparison under way. */
typedef struct dump_run {
    tt_ctx *ctx;
    tt_report *report;
    const tt_dump_options *opt;
    const tt_arith *limits;    /* of opt; NULL: every bit counts              */
    dump_files f;
    int64_t ours, common;      /* names in ours; of them in theirs            */
    history of[RUN_KINDS];     /* that of RUN_OURS never leaves ours          */
    int64_t chunks, rounds;    /* of a trace; -1: this is none                */
    const char **kind;         /* of their names, sorted; with partial only   */
    int64_t last_chunk, last_step;       /* of ours; the step is a clean pass */
    char since[200];           /* the latest tensor of theirs                 */
    char between[400];         /* operators of ours since then                */
    tt_growth point;           /* of the chunk under way: sums of squares over
                                  its tensors; curve NULL: none yet           */
    int64_t point_n;
    bool blind;                /* they do not say what they picked            */
    int64_t rounded, exact;    /* tensors of theirs so far that were rounded
                                  to the declared format before writing       */
    int64_t named;             /* wrong tensors that named.c was asked about  */
} dump_run;

/* Called for every name in order: remembers where picks part. */
void history_watch(dump_run *d, const tt_entry *ours);
/* Leading rows of this tensor that both runs made of the same frames: SAME_ROWS
 * when all of it, 0 when nothing is known to be. With everything injected it
 * counts only where no tensor of theirs comes between. */
#define SAME_ROWS INT64_MAX
int64_t same_history(const dump_run *d, run_kind a, run_kind b,
                     const tt_entry *ours);
/* The file of RUN_ORACLE or RUN_EMULATED to take this tensor from; NULL when
 * there is none, or it followed another pick. */
tt_file *history_file(const dump_run *d, run_kind which, const tt_entry *ours);

/* ---- names (dump.c) ------------------------------------------------------ */

/* The number at s, after "chunk." or "step." of a name, and *end after its
 * digits; -1 when there is none. More than 2^31 - 1 counts as none: no one runs
 * as many chunks or steps, and whoever goes on from it may add to it. */
int64_t dump_number(const char *s, const char **end);

/* ---- one tensor (pair.c) ------------------------------------------------- */

/* Judge a tensor that both have, explain it and add the verdict. */
void pair_compare(dump_run *d, tt_verdict *v, const tt_entry *ours,
                  const tt_entry *theirs);
bool pair_same_shape(const tt_tensor *t, const tt_tensor *u);
/* The last point of a curve over everything injected. */
void pair_end_curve(dump_run *d);

/* ---- picks (picks.c) ----------------------------------------------------- */

/* A row of picks that is not ours, as selection_compare describes it. */
typedef struct other_pick {
    int64_t row;
    pick what;
    double ratio;
    char why[192];
} other_pick;

/* The first row of ".../grab.keep" of a dump, or "grab_keep" of a trace, in
 * `file` that differs from ours; false when none does. got, want: the picks,
 * in the shape of ours. */
bool selection_find(dump_run *d, tt_file *file, const tt_entry *ours,
                    const double *got, const double *want, other_pick *other);

/* Did they keep the best of their own scores, in every row? True when that is
 * not known. */
bool selection_own(dump_run *d, const tt_entry *ours, const double *got);

/* The score's name that belongs to the keep of this name; false when `name` is
 * not one. */
bool selection_score_name(char *out, size_t size, const char *name);

#endif
