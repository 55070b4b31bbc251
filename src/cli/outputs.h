/* outputs.h: names of what a command writes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OUTPUTS_H
#define CLI_OUTPUTS_H

#include "tether/context.h"

typedef struct output_name {
    const char *option;        /* for the message                             */
    const char *path;          /* NULL: not wanted                            */
} output_name;

/* Refuse one file for two outputs, however it is spelt: the later one would
 * replace the earlier one. Devices and standard output are not compared.
 * Errors  TT_EINVAL  names both options */
tt_status outputs_differ(tt_ctx *ctx, const output_name *name, size_t n);

#endif
