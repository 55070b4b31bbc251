/* answers.h: inputs and answers of reference cases, as src/golden takes them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TESTS_GOLDEN_ANSWERS_H
#define TT_TESTS_GOLDEN_ANSWERS_H

#include <stdio.h>

#include "tests/harness.h"

static inline const float *input(test_case *c, const char *name)
{
    int64_t n;
    return (const float *)(const void *)case_input(c, name, &n);
}

/* One extent of an input. */
static inline int extent(const test_case *c, const char *name, int axis)
{
    const tt_entry *e = tt_file_find(c->inputs, name);
    return e && axis < e->t.rank ? (int)e->t.dim[axis] : 0;
}

/* The float64 result where there is one. */
static inline const tt_entry *answer(test_case *c, const char *name)
{
    const tt_entry *e = c->expected_f64 ? tt_file_find(c->expected_f64, name)
                                        : NULL;
    return e ? e : tt_file_find(c->expected, name);
}

static inline void near_rms(test_case *c, const char *name, const float *got,
                            int64_t n, double tol, double rms_tol)
{
    const tt_entry *want = answer(c, name);
    char what[700];
    snprintf(what, sizeof what, "%s %s", c->dir, name);
    if (expect(want != NULL, "%s: no answer", what))
        expect_close(what, (const tt_real *)(const void *)got, n, want, tol,
                     rms_tol);
}

static inline void near(test_case *c, const char *name, const float *got,
                        int64_t n, double tol)
{
    near_rms(c, name, got, n, tol, 0);
}

/* By the rule of ref_data/README.md for parts. */
static inline void part(test_case *c, const char *name, const float *got,
                        int64_t n)
{
    near(c, name, got, n, case_tolerance(c, name, 0));
}

#endif
