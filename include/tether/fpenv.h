/* fpenv.h: the floating-point environment in which results are defined.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every bit is defined for rounding to nearest, subnormal numbers that are
 * kept, and no traps. These are a state of each thread, and whoever runs in
 * it can change them: a library linked with -ffast-math when it is loaded, a
 * host program, a plug-in. A program that calls operators in a thread with
 * another state sets ours around the calls:
 *
 *     const tt_fpenv before = tt_fpenv_begin();
 *     ...
 *     tt_fpenv_set(before);
 *
 * tt_run_next does so by itself, for the threads of its operators too. */
#ifndef TETHER_FPENV_H
#define TETHER_FPENV_H

#include <stddef.h>
#include <stdint.h>
#include "tether/api.h"

TT_API_BEGIN

/* The state of a thread: x86: MXCSR without its flags, and the rounding of the
 * x87 unit; Arm: FPCR; elsewhere the rounding mode alone. */
typedef uint64_t tt_fpenv;

tt_fpenv tt_fpenv_get(void);
void tt_fpenv_set(tt_fpenv e);
/* Set ours; returns what was set before. */
tt_fpenv tt_fpenv_begin(void);

TT_API_END

#endif
