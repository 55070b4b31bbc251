/* validate_files.c: what all ways of `tether validate` share: the reports that
 * were asked for, and the exit status.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/validate_files.h"

#include <stdio.h>
#include <string.h>

int validate_failed(const tt_ctx *ctx)
{
    const int status = cli_failed(ctx);
    return status == 1 ? VALIDATE_DATA : status;
}

const tt_arith *validate_arith(const char *command, const char *name)
{
    char names[256] = "";
    const tt_arith *a = tt_arith_find(name);
    if (a) return a;
    for (int i = 0; tt_arith_at(i); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                 i ? ", " : "", tt_arith_at(i)->name);
    opt_usage(command, "--arith %s is unknown; known: %s", name, names);
    return NULL;
}

int validate_finish(tt_ctx *ctx, const tt_report *r,
                    const validate_outputs *out)
{
    const char *files[] = {out->json, out->junit, out->html};
    bool taken = false;      /* standard output has another report            */
    for (int i = 0; i < 3; i++)
        taken = taken || (files[i] && !strcmp(files[i], "-"));
    if (out->json) tt_report_json(ctx, r, out->json);
    if (out->junit) tt_report_junit(ctx, r, out->junit);
    if (out->html) tt_report_html(ctx, r, out->html);
    if (!taken) tt_report_text(ctx, r, "-", out->all);
    if (ctx->status) return validate_failed(ctx);
    return tt_report_passed(r) ? VALIDATE_PASS : VALIDATE_MISMATCH;
}
