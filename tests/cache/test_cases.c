/* test_cases.c: GRAB and TAME alone against the official code.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers: 12 admission rounds (ties, duplicate indices, peaked mass,
 * P <= M) and 11 edits (constant channels, no pool, tau 0 and 1). */
#include "tests/cases.h"

int main(void)
{
    tt_ctx *ctx = test_begin("cache/cases");
    /* With P <= M nothing is scored: exactly zero. */
    const case_rule zero[] = { { "g01.score", 1e-30, 0, 0 },
                               { "g02.score", 1e-30, 0, 0 } };
    check_case(ctx, "dit/grab_unit", zero, 2);
    check_case(ctx, "dit/tame_unit", NULL, 0);
    return test_end();
}
