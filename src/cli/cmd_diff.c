/* cmd_diff.c: tether diff, two files of tensors compared.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    src/validate/files/dump.c */
#include <stdio.h>
#include <string.h>

#include "cli/validate/validate_files.h"

typedef struct settings {
    const char *arith, *filter;
    validate_outputs out;
} settings;

static const opt_spec options[] = {
    {OPT_TEXT, "arith", 0, offsetof(settings, arith), "NAME",
     "B may be what A becomes when its values are rounded to f32, tf32, f16 or "
     "bf16, a few units in the last place off; types may differ. Every bit "
     "counts without it, and where A and B both name this class of --class"},
    {OPT_TEXT, "filter", 0, offsetof(settings, filter), "GLOB",
     "only names that match"},
    VALIDATE_OUTPUT_OPTIONS(settings, out),
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command diff_command = {
    .name = "diff",
    .summary = "two dumps: the first difference, and how large all are",
    .usage = "A B [--arith NAME]",
    .intro = "A and B are files of tensors: dumps, traces of the cache, "
             "latents, weights. The order is that in which A was written, for "
             "our dumps that of execution; the first line names the first "
             "tensor that differs. Exit status: 0 equal, 1 different, 2 usage, "
             "3 a file that cannot be read.",
    .examples = "  tether diff a.dump b.dump\n"
                "  tether diff a.dump b.dump --arith bf16 --html diff.html",
    .options = options,
    .no_log = true,
    .positional_max = 2,
    .bare = "expected two files, A and B",
};

int cmd_diff(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {0};
    cli_common common;
    opt_result given;
    tt_report *r;
    char title[600];
    int status = opt_parse(&diff_command, &s, &common, &given, argc, argv);
    if (status != GO_ON) return status;
    if (given.npositional != 2)
        return opt_usage("diff", "expected two files, A and B");
    const tt_arith *arith = s.arith ? validate_arith("diff", s.arith) : NULL;
    if (s.arith && !arith) return VALIDATE_USAGE;
    if (cli_setup(ctx, &common) || validate_outputs_check(ctx, &s.out))
        return validate_failed(ctx);
    const char *const *file = (const char *const *)given.positional;
    if (arith) arith = validate_declared(ctx, arith, file[1]);
    if (arith && arith->bits)
        arith = validate_declared(ctx, tt_arith_find(s.arith), file[0]);
    if (ctx->status) return validate_failed(ctx);
    const tt_dump_options o = {
        .want = file[0], .got = file[1],
        .arith = arith, .filter = s.filter,
        .extra_fails = true};
    snprintf(title, sizeof title, "diff %.280s %.280s", o.want, o.got);
    if (tt_report_new(ctx, &r, title, arith)) return validate_failed(ctx);
    tt_report_fact(r, "command", "%s",
                   cli_command_line(ctx, "tether", argc, argv));
    tt_report_fact(r, "A", "%s", o.want);
    tt_report_fact(r, "B", "%s", o.got);
    if (!arith) tt_report_fact(r, "limits", "every bit counts");
    tt_dump_compare(ctx, r, &o);
    status = validate_finish(ctx, r, &s.out);
    tt_report_free(r);
    return status;
}
