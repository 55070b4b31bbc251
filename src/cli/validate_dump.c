/* validate_dump.c: `tether validate --dump`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/validate_files.h"

int validate_dump(tt_ctx *ctx, int argc, char **argv)
{
    (void)ctx;
    (void)argc;
    return opt_usage(argv[0], "--dump is not in this build yet");
}
