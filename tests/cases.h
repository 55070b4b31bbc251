/* cases.h: run a reference case in-process and compare everything.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Uses the handlers of build/run_case, so `make test` and run_case exercise
 * the same code. */
#ifndef TT_TESTS_CASES_H
#define TT_TESTS_CASES_H

#include "tests/harness.h"

/* How one tensor is checked; 0 means the usual rule of the references:
 *   float   max abs against expected_f64 <= 8 * official error + 2e-6 * top
 *   double  1e-11; the float rule where only a float32 result exists */
typedef struct case_rule {
    const char *name;      /* tensor, or a prefix that ends in '*'            */
    double f32_max, f32_rms;
    double f64_max;
} case_rule;

/* Run ref_data/<path> (rules may be NULL) and check every tensor of its
 * expected.safetensors: integers and flags must be equal. Missing tensors and
 * other shapes fail. Returns true when all agree. */
bool check_case(tt_ctx *ctx, const char *path, const case_rule *rules,
                int nrules);

#endif
