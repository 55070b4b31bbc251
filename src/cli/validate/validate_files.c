/* validate_files.c: what all ways of `tether validate` share: the reports that
 * were asked for, and the exit status.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/validate/validate_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ui/outputs.h"
#include "io/io.h"
#include "io/outfile.h"

int validate_failed(const tt_ctx *ctx)
{
    const int status = cli_failed(ctx);
    return status == 1 ? VALIDATE_DATA : status;
}

tt_status validate_temporary(tt_ctx *ctx, char *folder, size_t n)
{
    const char *tmp = getenv("TMPDIR");
    const char *const dir[] = {tmp && *tmp ? tmp : "/tmp", "/tmp"};
    for (int i = 0; i < 2; i++) {
        snprintf(folder, n, "%s/tether-validate-XXXXXX", dir[i]);
        if (mkdtemp(folder)) return TT_OK;
    }
    tt_fail(ctx, TT_EIO, "%s: cannot make a temporary folder: %s; TMPDIR names "
            "another place", folder, strerror(errno));
    folder[0] = '\0';
    return ctx->status;
}

tt_status validate_no_arith(tt_ctx *ctx, const char *name)
{
    char hint[TT_ARITH_HINT];
    return tt_fail(ctx, TT_EINVAL, "--arith %s is unknown%s; known: %s", name,
                   tt_arith_hint(hint, name), tt_arith_names());
}

const tt_arith *validate_arith(const char *command, const char *name)
{
    const tt_arith *a = tt_arith_find(name);
    tt_ctx ctx = {.status = TT_OK};
    if (!a) {
        validate_no_arith(&ctx, name);
        opt_refused(command, &ctx);
    }
    if (a && a->allows & ~(unsigned)TT_ALLOW_TIME32) {
        opt_usage(command, "--arith %s: limits of files know nothing of %s, "
                  "which --backend allows; declare %.*s", name,
                  strchr(name, '+'), (int)strcspn(name, "+"), name);
        return NULL;
    }
    return a;
}

const tt_arith *validate_declared(tt_ctx *ctx, const tt_arith *arith,
                                  const char *file)
{
    const tt_arith *bits = tt_arith_bits(arith);
    tt_file *f = NULL;
    if (!bits || tt_file_open(ctx, &f, file)) return arith;
    const char *said = tt_file_meta(f, "class");
    const bool declared = said && !strcmp(tt_manifest_class(said),
                                          tt_class_saved(arith->cls));
    tt_file_close(f);
    return declared ? bits : arith;
}

tt_status validate_outputs_check(tt_ctx *ctx, const validate_outputs *out)
{
    const output_name all[] = {{"--json", out->json}, {"--junit", out->junit},
                               {"--html", out->html}};
    static const char *const mark[] = {"\"tether-validate/",
                                       "<testsuites name=\"tether\"",
                                       "name=\"verdict\""};
    static const char *const kind[] = {"JSON report", "JUnit report",
                                       "HTML report"};
    TT_TRY(outputs_differ(ctx, all, 3));
    for (int i = 0; i < 3; i++) {
        if (!all[i].path || !strcmp(all[i].path, "-")) continue;
        TT_TRY(tt_out_check(ctx, all[i].path));
        if (!out->overwrite)
            TT_TRY(outputs_kind(ctx, all[i].option, all[i].path, mark[i],
                                kind[i]));
    }
    return ctx->status;
}

tt_status validate_expect(tt_ctx *ctx, tt_report *r, validate_outputs *out)
{
    if (out->xfail && !ctx->status) tt_report_expect(ctx, r, out->xfail);
    out->xfail = NULL;
    return ctx->status;
}

int validate_finish(tt_ctx *ctx, tt_report *r, validate_outputs *out)
{
    const char *files[] = {out->json, out->junit, out->html};
    bool taken = false;      /* standard output has another report            */
    for (int i = 0; i < 3; i++)
        taken = taken || (files[i] && !strcmp(files[i], "-"));
    if (validate_expect(ctx, r, out)) return validate_failed(ctx);
    tt_report_wish(r)->failures_alone = out->fail_only;
    if (out->json) tt_report_json(ctx, r, out->json);
    if (out->junit) tt_report_junit(ctx, r, out->junit);
    if (out->html) tt_report_html(ctx, r, out->html);
    if (!taken) tt_report_text(ctx, r, "-", out->all);
    if (ctx->status) return validate_failed(ctx);
    return tt_report_passed(r) ? VALIDATE_PASS : VALIDATE_MISMATCH;
}

/* Words of `arg` that a rerun has in another way, 0: none of it. */
static int words_left_out(const char *arg, const char *option)
{
    static const char *const valued[] = {"--json", "--junit", "--html",
                                         "--export", "--xfail"};
    static const char *const flag[] = {"--isolate", "--no-isolate", "--all",
                                       "--overwrite", "-q", "--quiet",
                                       "--fail-only"};
    const size_t n = strcspn(arg, "=");
    const int words = arg[n] == '=' ? 1 : 2;
    if (strlen(option) == n && !strncmp(arg, option, n)) return words;
    for (size_t i = 0; i < sizeof valued / sizeof *valued; i++)
        if (strlen(valued[i]) == n && !strncmp(arg, valued[i], n)) return words;
    for (size_t i = 0; i < sizeof flag / sizeof *flag; i++)
        if (!strcmp(arg, flag[i])) return 1;
    return 0;
}

void validate_again(tt_ctx *ctx, tt_report *r, const char *program, int argc,
                    char **argv, const char *option, const char *name)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    char **word = tt_alloc(ctx, &ctx->scratch, argc + 2, sizeof *word, "words");
    int n = 0, i = 0;
    char *chosen[2] = {tt_strdup(ctx, &ctx->scratch, option),
                       tt_strdup(ctx, &ctx->scratch, name)};
    if (ctx->status) return;
    for (; i < argc && strcmp(argv[i], "--"); i++) {
        const int skip = words_left_out(argv[i], option);
        if (skip) i += skip - 1;
        else word[n++] = argv[i];
    }
    word[n++] = chosen[0];
    word[n++] = chosen[1];
    for (; i < argc; i++) word[n++] = argv[i];
    tt_report_note(r, "this one alone: %s",
                   cli_command_line(ctx, program, n, word));
    tt_arena_reset(&ctx->scratch, mark);
}
