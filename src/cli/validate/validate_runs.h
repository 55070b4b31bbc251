/* validate_runs.h: the same command three times: as it is, in float64, and in
 * the declared arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VALIDATE_RUNS_H
#define CLI_VALIDATE_RUNS_H

#include "cli/cli.h"
#include "run/run.h"
#include "validate/validate.h"

typedef struct validate_runs {
    tt_ctx *ctx;
    char folder[512];          /* for the dumps                               */
    bool temporary;            /* goes at the end                             */
    char f64[512];             /* the float64 program, "": none               */
    char backend[64];          /* name of the declared arithmetic's           */
    const char *filter;        /* --dump-filter, NULL: none                   */
    const char *record;        /* --record, NULL: none                        */
    const char *cls;           /* --class of our own run, NULL: as given      */
    bool ours_only, emul_only; /* not the other runs                          */
    bool pictures;             /* decode without an output of the command     */
    tt_status cause;           /* how the latest run in this process ended    */
    tt_explain *explain;       /* whose operators our own run has, or NULL    */
    int argc;                  /* "generate" and what follows it, for records */
    char **argv;
    tt_settings settings;      /* which that gives                            */
    cli_common common;
} validate_runs;

/* Dumps of one set of runs. */
typedef struct validate_set {
    char ours[640], oracle[640], emul[640];   /* oracle "": none              */
} validate_set;

/* f64 NULL: looked for next to the running program. keep NULL: a temporary
 * folder. Errors  TT_EINVAL when the program given cannot be run; TT_EIO. */
tt_status validate_runs_open(tt_ctx *ctx, validate_runs *w, const char *f64,
                             const char *keep, const tt_arith *arith, int argc,
                             char **argv);
/* Run all of them, dumps "<name>.*"; `inject` NULL or a dump. A run that fails
 * has printed why; its kind of failure is recorded. */
tt_status validate_runs_make(validate_runs *w, validate_set *set,
                             const char *name, const char *inject);
void validate_runs_close(validate_runs *w);

/* A folder of our own with all that runs put there, the parts of an interrupted
 * one too. */
void validate_remove_folder(const char *folder);

/* The float64 program: `given`, or tether-f64 next to the running program or
 * one folder up, or this program when it computes in float64. "" when there is
 * none; TT_EINVAL when `given` cannot be run. */
tt_status validate_find_f64(tt_ctx *ctx, char *out, size_t size,
                            const char *given);
/* Run a program and wait: its exit status, 128+n after signal n, -1 when it
 * cannot be started. argv ends with NULL. */
int validate_spawn(char *const *argv);

#endif
