/* facts.h: what an analyzer cannot see from one file: tt_fail fails.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Included before the file that is analyzed (check.sh). What follows `if
 * (check(ctx, x)) return;` is then known to be guarded by it. */
#ifndef TESTS_STATIC_FACTS_H
#define TESTS_STATIC_FACTS_H

#include "tether/status.h"

#define tt_fail(ctx, status, ...)                                              \
    __extension__({ tt_fail(ctx, status, __VA_ARGS__); (status); })

#endif
