/* version.h: what was built, and what this machine can run.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TETHER_VERSION_H
#define TETHER_VERSION_H

#include <stddef.h>
#include "tether/api.h"

TT_API_BEGIN

#define TT_VERSION "0.2.0"

/* "0.2.0", and `git describe` of the source the library was built from
 * ("unknown" outside a repository). */
const char *tt_version(void);
const char *tt_git_revision(void);

/* "f32" or "f64": the compute type of this build. */
const char *tt_real_name(void);

/* Compiler and its version, as in "gcc 12.2.0". */
const char *tt_compiler(void);

TT_API_END

#endif
