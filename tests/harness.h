/* harness.h: the small frame every test stands in.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A test program has a main that calls test_begin, then its checks, then
 * returns test_end(). Every check prints one line only when it fails; the last
 * line counts. Comparisons are written !(err <= tol), so NaN fails. */
#ifndef TT_TESTS_HARNESS_H
#define TT_TESTS_HARNESS_H

#include "core/context.h"
#include "io/io.h"
#include "io/json.h"

/* Start a program: prepares the context. REF(path) finds files of ref_data. */
tt_ctx *test_begin(const char *name);
/* Does TT_TEST_BACKEND=guard hold values away from the host? Tables of ctx->ops
 * cannot be exchanged then. */
bool test_guarded(void);
/* Print "N passed, N failed[, N skipped]"; 0 when none failed and at least one
 * passed. */
int test_end(void);

/* One named check that is plain true or false. Returns cond. */
bool expect(bool cond, const char *fmt, ...) TT_PRINTF(2, 3);
/* What this machine cannot check, and which package would let it. */
void skip(const char *fmt, ...) TT_PRINTF(1, 2);
/* TT_OK expected; prints the sentence of ctx otherwise and clears it. */
bool expect_ok(tt_status s, const char *what);
/* A failure with this status expected; clears it. */
bool expect_status(tt_status got, tt_status want, const char *what);

/* "<TMPDIR or /tmp>/tether-<process>-<name>", for one program's own use; a name
 * may end in XXXXXX, for mkstemp. */
void tmp_path(char *out, size_t size, const char *name);
/* "ref_data/<path>", in a rotating static buffer. */
const char *ref_path(const char *fmt, ...) TT_PRINTF(1, 2);

/* ---- reference cases ---------------------------------------------------- */

/* A case folder: case.json, inputs, expected (float32), expected_f64. Members
 * are NULL when the file does not exist. */
typedef struct test_case {
    char dir[512];
    const tt_json *json;
    tt_file *inputs, *expected, *expected_f64;
    tt_arena arena;
} test_case;
bool case_open(test_case *c, const char *fmt, ...) TT_PRINTF(2, 3);
void case_close(test_case *c);
/* Input widened to tt_real; a failed check and NULL when absent. */
tt_real *case_input(test_case *c, const char *name, int64_t *count);
const int64_t *case_input_i64(test_case *c, const char *name, int64_t *count);
/* The entry of expected / expected_f64, NULL when absent. */
const tt_entry *case_expected(test_case *c, const char *name);

/* Compare got [n] with a tensor of a file: count must be n and
 * max |got - want| <= tol (and, when rms_tol > 0, the rms too). Prints the
 * worst index as coordinates, both values in decimal and %a, max abs, rms. */
bool expect_close(const char *what, const tt_real *got, int64_t n,
                  const tt_entry *want, double tol, double rms_tol);
bool expect_close_f64(const char *what, const tt_real *got, int64_t n,
                      const double *want, double tol);
/* Integers (any integer dtype in the file) must be equal. */
bool expect_int(const char *what, const int64_t *got, int64_t n,
                const tt_entry *want);
/* Equal bytes. */
bool expect_bits(const char *what, const void *a, const void *b, size_t nbytes);
/* A tensor of a file holds exactly these values (in the host's byte order). */
bool expect_values(const char *what, const tt_tensor *t, const void *want,
                   size_t nbytes);

/* The module rule of the references for tensor `name`:
 *   float   8 * official max_abs_err + 2e-6 * max_abs_value
 *   double  f64_tol
 * read from case.json/official_f32_vs_f64. */
double case_tolerance(const test_case *c, const char *name, double f64_tol);

#endif
