/* dump.h: shared by the files that compare two dumps: dump.c, pair.c and
 * history.c.
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

/* ---- names (dump.c) ------------------------------------------------------ */

/* What a name is of, -1 where it does not say. */
typedef struct place {
    int64_t chunk, step, block, cache, admit, vae;
    const char *last;      /* after the last scope: "self_attn.q"             */
} place;
place place_of(const char *name);

/* ---- which frames a run held (history.c) --------------------------------- */

/* The runs whose histories may leave that of ours; RUN_EXCUSED is theirs where
 * only ties count, picks that the arithmetic may make. */
typedef enum run_kind {
    RUN_EXCUSED, RUN_ORACLE, RUN_EMULATED, RUN_KINDS
} run_kind;

/* The first pick of a run that is not that of ours; from there on the two hold
 * other frames. */
typedef struct history {
    char name[200];      /* ".../admit.0/grab.keep", "" while there is none   */
    int64_t frames;      /* latent frames up to the end of its chunk, -1      */
} history;

/* One comparison under way. */
typedef struct dump_run {
    tt_ctx *ctx;
    tt_report *report;
    const tt_dump_options *opt;
    const tt_arith *limits;    /* of opt; NULL: every bit counts              */
    dump_files f;
    int64_t ours, common;      /* names in ours; of them in theirs            */
    int64_t missing;           /* that had to be there                        */
    history of[RUN_KINDS];
    const char **kind;         /* of their names, sorted; with partial only   */
    int64_t last_chunk, last_step;       /* of ours; the step is a clean pass */
    char since[200];           /* the latest tensor of theirs                 */
    char between[400];         /* operators of ours since then                */
    bool blind;                /* they do not say what they picked            */
    int64_t rounded, exact;    /* tensors of theirs so far that were rounded
                                  to the declared format before writing       */
    int64_t named;             /* wrong tensors that named.c was asked about  */
} dump_run;

/* Called for every name in order: remembers where picks part. */
void history_watch(dump_run *d, const tt_entry *ours);
/* Do the frames that this run held and ours did not, or the other way round,
 * reach a tensor? To be asked of what comes after them in the file. With
 * everything injected only where no tensor of theirs comes between. */
bool history_reaches(const dump_run *d, run_kind run, const char *name);

/* Picks ".../grab.keep" [P] of `file` against ours, as selection_compare says:
 * got, want. */
pick selection_in(dump_run *d, tt_file *file, const tt_entry *ours,
                  const double *got, const double *want, double *ratio,
                  char *why, size_t size);
/* The score's name that belongs to the keep of this name; false when `name` is
 * not one. */
bool selection_score_name(char *out, size_t size, const char *name);

/* ---- one tensor (pair.c) ------------------------------------------------- */

/* Judge a tensor that both have, explain it and add the verdict. */
void pair_compare(dump_run *d, tt_verdict *v, const tt_entry *ours,
                  const tt_entry *theirs);
bool pair_same_shape(const tt_tensor *t, const tt_tensor *u);

#endif
