/* cache_cases.h: what cache_cases.c and rollout_cases.c share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TESTS_CACHE_CASES_H
#define TT_TESTS_CACHE_CASES_H

#include "tests/run_case/run_case.h"

tt_status run_rollout_case(tt_ctx *ctx, const tt_json *json, const char *dir,
                           tt_st_writer *out);

#endif
