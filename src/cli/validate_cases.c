/* validate_cases.c: `tether validate export` and `check`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/validate_files.h"

int validate_export(tt_ctx *ctx, int argc, char **argv)
{
    (void)ctx;
    (void)argc;
    return opt_usage(argv[0], "not in this build yet");
}

int validate_check(tt_ctx *ctx, int argc, char **argv)
{
    (void)ctx;
    (void)argc;
    return opt_usage(argv[0], "not in this build yet");
}
