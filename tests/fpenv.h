/* fpenv.h: what flushes subnormal numbers here, for tests that set it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TESTS_FPENV_H
#define TT_TESTS_FPENV_H

#include "core/fpenv.h"

/* To be added to a tt_fpenv; 0: this CPU's is not known. */
#if defined __x86_64__ || defined __SSE__
#define FLUSH ((tt_fpenv)0x8040)
#elif defined __aarch64__
#define FLUSH ((tt_fpenv)1 << 24)
#else
#define FLUSH ((tt_fpenv)0)
#endif

#endif
