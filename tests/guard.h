/* guard.h: a device in the way: values that only operators and verbs can see.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One piece of memory is mapped twice. Values have addresses of the first
 * mapping, which no one may read or write; operators and the verbs of device.h
 * add a constant and reach the same bytes through the second. Where a room of
 * the model touches a value the program dies at that line. */
#ifndef TT_TESTS_GUARD_H
#define TT_TESTS_GUARD_H

#include "ops/backend.h"
#include "core/device.h"

/* Values of `ctx` from now on are the guard's, its operators those of ctx->ops
 * after the guard; the numbers they compute stay the same. The first memory
 * of values makes a file of the name TT_GUARD_USED. False where the system
 * cannot do it. */
bool guard_install(tt_ctx *ctx);

/* While strict, an operator or verb that is given values in host memory, or
 * numbers of the host in the guard's, fails. */
void guard_strict(bool strict);

#endif
