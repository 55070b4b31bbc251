/* validate_files.h: the ways into `tether validate` that read and write files,
 * and what all of its ways share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Exit statuses of validate and diff: 0 everything passed, 1 a mismatch (or
 * nothing compared), 2 usage, 3 data that cannot be read, 128+n on signal n. */
#ifndef CLI_VALIDATE_FILES_H
#define CLI_VALIDATE_FILES_H

#include "cli/cli.h"
#include "validate/validate.h"

enum { VALIDATE_PASS, VALIDATE_MISMATCH, VALIDATE_USAGE, VALIDATE_DATA };

/* Options every way has. */
typedef struct validate_outputs {
    const char *json, *junit, *html; /* NULL: not wanted                      */
    const char *xfail;               /* names that may fail; NULL: none       */
    bool fail_only;                  /* JSON: nothing that passed             */
    bool all;                        /* console: passes too                   */
    bool overwrite;                  /* whatever file is there                */
} validate_outputs;
#define VALIDATE_OUTPUT_OPTIONS(type, member)                                  \
    {OPT_GROUP, NULL, 0, 0, NULL, "Reports (an earlier one is replaced)"},     \
    {OPT_WRITE, "json", 0, offsetof(type, member.json), "FILE",                \
     "schema tether-validate/2 (- is standard output)"},                       \
    {OPT_WRITE, "junit", 0, offsetof(type, member.junit), "FILE",              \
     "JUnit XML, for build servers"},                                          \
    {OPT_WRITE, "html", 0, offsetof(type, member.html), "FILE",                \
     "one page with maps, curves and histograms"},                             \
    {OPT_READ, "xfail", 0, offsetof(type, member.xfail), "FILE",               \
     "a name of the JUnit report a line (op.linear.tiny, chunk.*/x0; * and ? " \
     "as in a shell): that it fails is expected, and no failure"},             \
    {OPT_FLAG, "fail-only", 0, offsetof(type, member.fail_only), NULL,         \
     "JSON without what passed"},                                              \
    {OPT_FLAG, "all", 0, offsetof(type, member.all), NULL,                     \
     "list what passed as well"},                                              \
    {OPT_FLAG, "overwrite", 0, offsetof(type, member.overwrite), NULL,         \
     "replace files that are no reports, too"}

/* Can the reports be written, each into a file of its own, and is what is there
 * a report? Asked before the work begins. */
tt_status validate_outputs_check(tt_ctx *ctx, const validate_outputs *out);

/* Write the reports that were asked for (the short one goes to standard output,
 * unless another report goes there) and return the exit status. A failure
 * recorded in ctx wins. */
int validate_finish(tt_ctx *ctx, tt_report *r, validate_outputs *out);
/* --xfail, once; earlier where something is said of the first failure. */
tt_status validate_expect(tt_ctx *ctx, tt_report *r, validate_outputs *out);
/* The exit status of the failure in ctx, after printing it. */
int validate_failed(const tt_ctx *ctx);
/* A note with the command that checks one tensor alone: this one, with `option`
 * `name` in the place of any other, and without what changes no verdict. */
void validate_again(tt_ctx *ctx, tt_report *r, const char *program, int argc,
                    char **argv, const char *option, const char *name);
/* Make a folder of our own, in TMPDIR or, where that cannot be, in /tmp.
 * Errors  TT_EIO, and folder is "" */
tt_status validate_temporary(tt_ctx *ctx, char *folder, size_t n);
/* The names of --arith, for help. */
#define VALIDATE_CLASS(name, ...) " " #name
#define VALIDATE_ARITHS                                                        \
    "f32, tf32, f16, bf16, f16-stored, bf16-stored, or one of the classes"     \
    TT_CLASSES(VALIDATE_CLASS)
/* TT_EINVAL: there is no arithmetic of that name; which one may be meant, and
 * all of them. */
tt_status validate_no_arith(tt_ctx *ctx, const char *name);
/* --arith NAME; NULL after printing a usage error that lists the names. */
const tt_arith *validate_arith(const char *command, const char *name);
/* The same checked by its bits when the file's metadata names that class; else,
 * or when it cannot be read, as it is. */
const tt_arith *validate_declared(tt_ctx *ctx, const tt_arith *arith,
                                  const char *file);

/* `validate --dump`, `validate export`, `validate check`. argv[0] is a word for
 * messages, options follow. */
int validate_dump(tt_ctx *ctx, int argc, char **argv);
int validate_export(tt_ctx *ctx, int argc, char **argv);
int validate_check(tt_ctx *ctx, int argc, char **argv);
/* `validate compare`, in validate_compare.c. */
int validate_compare(tt_ctx *ctx, int argc, char **argv);

/* `validate --backend`, in validate_backend.c. */
int validate_backend(tt_ctx *ctx, int argc, char **argv);
/* `validate --manifest`, in validate_manifest.c. */
int validate_manifest(tt_ctx *ctx, int argc, char **argv);

#endif
