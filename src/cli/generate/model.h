/* model.h: options that name the model, and where the built-in one lies.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "cli/ui/options.h"
#include "run/run.h"

/* The folder of the built-in model: next to the source, or the one `make demo`
 * wrote; from the working folder, or from where the program lies
 * (build/<flavour>/tether or PREFIX/bin/tether). Written to buf. */
tt_status model_find_builtin(tt_ctx *ctx, char *buf, size_t n);

#endif
