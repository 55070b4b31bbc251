/* report.h: what a report holds, and how its files are written.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Verdicts, notes and curves are lists in the order they were added, which is
 * the order of execution. Names come from files of strangers: every writer
 * passes them through the escape of its format. */
#ifndef VALIDATE_REPORT_H
#define VALIDATE_REPORT_H

#include <stdio.h>

#include "io/outfile.h"
#include "validate/validate.h"

/* A map of fewer than MAP_LEAST elements shows nothing. */
enum { MAP_SIDE = 64, MAPS_MAX = 24, MAP_LEAST = 4 };

/* The error of a tensor seen as rows x columns, the largest of every cell. A
 * cell that holds a NaN or infinity of one side is infinite. */
typedef struct error_map {
    int split;           /* axes 0..split-1 are the rows, the others columns  */
    int rows, cols;      /* cells, <= MAP_SIDE                                */
    float cell[];        /* [rows, cols]                                      */
} error_map;

typedef struct verdict_item {
    tt_verdict v;
    error_map *map;      /* NULL: not kept                                    */
    double seconds;      /* since the verdict before it                       */
    struct verdict_item *next;
} verdict_item;

typedef struct note_item {
    const char *name;    /* of a fact; NULL: a note                           */
    const char *text;
    struct note_item *next;
} note_item;

typedef struct growth_item {
    tt_growth g;
    struct growth_item *next;
} growth_item;

enum { OUTCOMES = TT_UNSUPPORTED + 1 };

struct tt_report {
    tt_arena arena;      /* holds the report itself                           */
    tt_ctx *ctx;
    const char *title;
    const tt_arith *arith;
    verdict_item *first, **end;
    note_item *notes, **notes_end;
    note_item *facts, **facts_end;
    growth_item *growth, **growth_end;
    const tt_verdict *failed;      /* the first                               */
    int64_t count[OUTCOMES], compared;
    int64_t equal, equal_of;       /* tensors equal in every bit, of how many */
    bool apart;                    /* no failure is that of another one       */
    int maps;
    double last;                   /* tt_now of the last verdict              */
    struct watch *watch;           /* this is the process of a backend        */
    tt_report_wishes wish;
};

/* The hint of the failure at that path, after so many mistakes were tried; "":
 * none explains it. What it was given stays. */
void report_say_why(tt_report *r, const char *path, const char *why,
                    int64_t tried);
/* Add a verdict whose map, in the report's arena or NULL, is made. */
void report_put(tt_report *r, const tt_verdict *v, error_map *map);

bool report_failing(tt_outcome o);
/* Neither: it could not be compared, or the candidate does not do that. */
bool report_skipped(tt_outcome o);
/* Characters of a path that name what was checked; the case, which differs
 * between runs, comes after them: "op.linear.tiny n=64 c=16 seed 1". */
size_t report_name(const char *path);

/* Where a report goes: a file under a temporary name, or standard output. */
typedef struct report_out {
    FILE *f;
    tt_out file;
    bool standard;
} report_out;
tt_status report_open(tt_ctx *ctx, report_out *o, const char *path);
tt_status report_close(tt_ctx *ctx, report_out *o, const char *path);

/* One sentence with the result, "FAIL: first wrong tensor ...", into HEADLINE
 * characters. */
enum { HEADLINE = 1200 };
void report_headline(const tt_report *r, char *out, size_t n);

/* The report as JSON, without the first brace (json.c); page: for html.c. */
void report_json(FILE *f, const tt_report *r, bool page);

#endif
