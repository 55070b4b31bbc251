/* bench.h: what the parts of `tether bench` share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli/cli.h"
#include "ops/machine.h"
#include "run/run.h"

#define BENCH_ROUNDS_MAX 31
#define BENCH_BACKENDS_MAX 8
#define BENCH_USUAL INT64_MIN            /* no one has said how many          */
#define BENCH_FORGET ((int64_t)32 << 20) /* values: more than caches hold     */

typedef enum bench_kind {
    BENCH_OPS, BENCH_ERRORS, BENCH_PASS, BENCH_ESTIMATE
} bench_kind;

/* What the machine does at most: operations or bytes a second. */
typedef enum bench_limit {
    BENCH_FMA, BENCH_VDP, BENCH_AMX, BENCH_READ, BENCH_COPY, BENCH_LIMITS
} bench_limit;

typedef struct bench_settings {
    const char *json;      /* file for the results, NULL: none                */
    const char *only;      /* cases whose name contains this, NULL: all       */
    int64_t rounds;        /* 0: as many as the case deserves                 */
    bool quick;            /* small shapes, three rounds                      */
    bool overwrite;        /* whatever file is there                          */
    bool estimate;         /* of a run, whose settings follow                 */
    const char *model, *width, *height, *seconds, *cache, *steps;
    int64_t layers, passes, prime;       /* of bench pass                     */
    int64_t W, H;          /* of it: width and height as numbers              */
    bool quiet;
    bool cpu;              /* CPU seconds of the process, not the clock's     */
    int threads[2];        /* thread counts to measure                        */
    int nthreads;          /* how many of those                               */
    const tt_ops *backend[BENCH_BACKENDS_MAX];   /* those that run here       */
    int nbackends;
} bench_settings;

/* Seconds of one side over all rounds. */
typedef struct bench_times {
    double t[BENCH_ROUNDS_MAX];
    int n;
} bench_times;

/* The backend of this name; NULL when it does not run here. */
const tt_ops *bench_backend(const bench_settings *s, const char *name);

double bench_now(const bench_settings *s);
void bench_add(bench_times *b, double seconds);
double bench_median(const bench_times *b);
/* (slowest - fastest) / median */
double bench_spread(const bench_times *b);

/* Values in [-1, 1), the same every time. */
void bench_fill(tt_real *x, int64_t n, uint32_t seed);

/* Bytes a stream of this kind moves per value. */
double bench_stream_bytes(tt_stream kind);
/* Raises each of them to what it is now: a peak is a limit, not a typical
 * value. Then a line for people, and rows for the open array of j, if any. */
void bench_find_peaks(tt_ctx *ctx, const bench_settings *s,
                      double peak[BENCH_LIMITS]);
void bench_print_peaks(const tt_ctx *ctx, const double *peak);
void bench_log_peaks(const tt_ctx *ctx, const double *peak, json_out *j);
/* What bounds the products of a class: its own instruction, if that is used
 * here, and multiply-adds otherwise. Its name in a report: "fma". */
bench_limit bench_top(tt_class cls, const double *peak);
const char *bench_key(bench_limit product);
/* What is kept up of those, which a peak is not. */
void bench_find_kept(tt_ctx *ctx, const bench_settings *s,
                     double kept[BENCH_LIMITS]);
void bench_print_kept(const double *kept);
void bench_log_kept(const tt_ctx *ctx, const double *kept, json_out *j);

/* Speed of every operator, and errors against float64. Each writes its table
 * to stdout and its rows into the open array of j (NULL: no file). */
tt_status bench_ops(tt_ctx *ctx, const bench_settings *s, json_out *j);
tt_status bench_error(tt_ctx *ctx, const bench_settings *s, json_out *j);

/* Seconds of passes of a chunk, with a full cache: a table, and members of the
 * open object of j. bench_pass_check reads the words: GO_ON or a status. */
tt_status bench_pass(tt_ctx *ctx, const bench_settings *s, json_out *j);
int bench_pass_check(bench_settings *s);

/* Has bench_ops a case with s->only in its name? */
bool bench_ops_has(const bench_settings *s);

#endif
