/* fpenv.h: what the modules use of tether/fpenv.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CORE_FPENV_H
#define TT_CORE_FPENV_H

#include <stddef.h>
#include <stdint.h>

#include "tether/fpenv.h"

/* The same in as many OpenMP threads of the calling one, itself included;
 * returns what was set in itself. */
tt_fpenv tt_fpenv_begin_all(int threads);

/* Are subnormal numbers taken or given as 0 in it? */
int tt_fpenv_flushes(tt_fpenv e);
/* How it differs from ours, in buf: "FTZ and DAZ", "the rounding mode (upward)"
 * ..., "" for ours; returns buf. */
const char *tt_fpenv_text(char *buf, size_t n, tt_fpenv e);

#endif
