/* validate_runs.c: the same command three times.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Our own two run inside this process on a context of their own; float64 is
 * another build of the program. */
#include "cli/validate/validate_files.h"
#include "cli/validate/validate_runs.h"

#include <dirent.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/generate/generate.h"
#include "cli/generate/model.h"
#include "os/os.h"

extern char **environ;

int validate_spawn(char *const *argv)
{
    pid_t pid;
    int status;
    if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ)) return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

tt_status validate_find_f64(tt_ctx *ctx, char *out, size_t size,
                            const char *given)
{
    static const char *const place[] = {"tether-f64", "../tether-f64"};
    char self[512];
    out[0] = '\0';
    if (given) {
        snprintf(out, size, "%s", given);
        if (!access(out, X_OK)) return TT_OK;
        return tt_fail(ctx, TT_EINVAL, "--f64 %s: cannot be run: %s", given,
                       strerror(errno));
    }
    if (!os_program_path(self, sizeof self)) return TT_OK;
    if (sizeof(tt_real) == 8) {
        snprintf(out, size, "%s", self);
        return TT_OK;
    }
    char *slash = strrchr(self, '/');
    if (slash) slash[1] = '\0';
    for (size_t i = 0; i < sizeof place / sizeof place[0]; i++) {
        const int k = snprintf(out, size, "%s%s", self, place[i]);
        if (k > 0 && (size_t)k < size && !access(out, X_OK)) return TT_OK;
    }
    out[0] = '\0';
    return TT_OK;
}

/* One of the runs of a set. */
typedef struct one_run {
    char *program;             /* NULL: in this process                       */
    const char *dump, *inject; /* inject NULL: nothing                        */
    const char *backend;       /* NULL: as given                              */
} one_run;

/* What a run writes goes into our folder: it is no result, and what the command
 * names may be there already. */
static void set_aside(tt_ctx *ctx, const validate_runs *w, tt_settings *s)
{
    const struct { const char *name, *file; bool wanted; } aside[] = {
        {"latents-out", "latents", true}, {"output", "video.y4m", true},
        {"contact-sheet", "sheet.png", w->settings.sheet != NULL}};
    char path[640];
    tt_settings_set(ctx, s, "overwrite", NULL);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", w->folder, aside[i].file);
        if (aside[i].wanted) tt_settings_set(ctx, s, aside[i].name, path);
    }
}

/* Pictures are made where theirs are to be compared, or where the command names
 * an output. */
static tt_status validate_runs_settings_of(tt_ctx *ctx, const validate_runs *w,
                                           const one_run *r, tt_settings *s)
{
    const tt_settings *g = &w->settings;
    tt_settings_copy(ctx, s, g);
    tt_settings_set(ctx, s, "dump", r->dump);
    if (w->filter) tt_settings_set(ctx, s, "dump-filter", w->filter);
    if (w->record) tt_settings_set(ctx, s, "record", w->record);
    if (r->inject) tt_settings_set(ctx, s, "inject", r->inject);
    if (!w->pictures && !g->output && !g->sheet)
        tt_settings_set(ctx, s, "no-decode", NULL);
    set_aside(ctx, w, s);
    return ctx->status;
}

/* "--name=value", or "--name" and "--no-name", in ctx->scratch. */
static char *word_of(tt_ctx *ctx, const char *name, const char *value)
{
    const tt_setting *o = tt_settings_find(name);
    const bool flag = !value || (o && o->kind == TT_SETTING_SWITCH);
    const char *no = flag && value && !strcmp(value, "no") ? "no-" : "";
    const size_t n = strlen(name) + (value ? strlen(value) : 0) + 8;
    char *word = tt_alloc(ctx, &ctx->scratch, (int64_t)n, 1, "arguments");
    if (word)
        snprintf(word, n, "--%s%s%s%s", no, name, flag ? "" : "=",
                 flag ? "" : value);
    return word;
}

/* Exit status of another program that is to make this run. */
static int run_there(tt_ctx *ctx, const tt_settings *s,
                     const cli_common *common, char *program)
{
    char threads[32], **a;
    int n = 0;
    a = tt_alloc0(ctx, &ctx->scratch, s->given.n + 12, sizeof *a, "arguments");
    if (!a) return 1;
    snprintf(threads, sizeof threads, "%lld", (long long)common->threads);
    a[n++] = program;
    a[n++] = tt_strdup(ctx, &ctx->scratch, "generate");
    for (int i = 0; i < s->given.n; i++)
        a[n++] = word_of(ctx, s->given.name[i], s->given.value[i]);
    const struct { const char *name, *value; } more[] = {
        {"threads", common->threads ? threads : NULL},
        {"backend", common->backend}, {"class", common->cls},
        {"log-json", common->log_json}};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (more[i].value) a[n++] = word_of(ctx, more[i].name, more[i].value);
    a[n++] = word_of(ctx, "quiet", NULL);
    return ctx->status ? 1 : validate_spawn(a);
}

/* Exit status of one run, or whether it would begin. */
static int run_one(validate_runs *w, const one_run *r, bool only_try)
{
    tt_ctx *ctx = w->ctx, own;
    tt_settings s = {0};
    cli_common common = w->common;
    int status = 1;
    if (tt_ctx_init(&own)) return cli_failed(&own);
    own.nthreads = ctx->nthreads;
    own.ops = w->explain && !r->program && !r->backend && !only_try
                  ? tt_explain_ops(w->explain) : ctx->ops;
    common.quiet = true;
    common.part = true;
    if (r->backend) common.backend = r->backend;
    else if (!r->program && w->cls) common.cls = w->cls;
    if (validate_runs_settings_of(&own, w, r, &s)) status = cli_failed(&own);
    else if (only_try) status = generate_try(&own, &s, &common);
    else if (r->program) status = run_there(&own, &s, &common, r->program);
    else status = generate_videos(&own, &s, &common, w->argc, w->argv);
    w->cause = own.status;
    tt_settings_free(&s);
    tt_ctx_free(&own);
    return status;
}

/* A command that cannot begin is refused once, not by each of its runs. */
static tt_status try_run(validate_runs *w)
{
    const one_run as_given = {.dump = "dump"};
    opt_result given;
    int status = opt_parse(generate_command(), &w->settings, &w->common, &given,
                           w->argc, w->argv);
    if (status == GO_ON) status = run_one(w, &as_given, true);
    if (status == 0) return w->ctx->status;
    tt_settings_free(&w->settings);
    return tt_fail(w->ctx, status == 2 ? TT_EINVAL : TT_EFORMAT,
                   "the run after -- cannot begin (exit status %d)", status);
}

tt_status validate_runs_open(tt_ctx *ctx, validate_runs *w, const char *f64,
                             const char *keep, const tt_arith *arith, int argc,
                             char **argv)
{
    *w = (validate_runs){.ctx = ctx, .argc = argc, .argv = argv,
                         .settings = tt_settings_defaults()};
    snprintf(w->backend, sizeof w->backend, "arith-%s", arith->name);
    if (arith->cls != TT_CLASS_F32) w->cls = tt_class_name(arith->cls);
    TT_TRY(validate_find_f64(ctx, w->f64, sizeof w->f64, f64));
    TT_TRY(try_run(w));
    if (keep) {
        snprintf(w->folder, sizeof w->folder, "%s", keep);
        if (mkdir(keep, 0777) && errno != EEXIST)
            return tt_fail(ctx, TT_EIO, "%s: cannot make this folder: %s",
                           keep, strerror(errno));
        return TT_OK;
    }
    w->temporary = true;
    return validate_temporary(ctx, w->folder, sizeof w->folder);
}

/* No room for what a run writes says nothing about theirs. */
static tt_status validate_runs_kind_of(const validate_runs *w, int status)
{
    return status == 2 ? TT_EINVAL
         : w->cause == TT_EIO || w->cause == TT_ENOMEM ? w->cause : TT_EFORMAT;
}

static tt_status run_checked(validate_runs *w, const one_run *r)
{
    const int status = run_one(w, r, false);
    if (status == 0) return w->ctx->status;
    if (status == GENERATE_IDLE)
        return tt_fail(w->ctx, TT_EINVAL, "none of their tensors is one that "
                       "our run goes on from");
    if (status >= 128)
        return tt_fail(w->ctx, TT_EINTR, "interrupted in a run of our own; "
                       "nothing was compared");
    return tt_fail(w->ctx, validate_runs_kind_of(w, status),
                   "our own run failed (%s, exit status %d)",
                   r->program ? r->program : r->backend ? r->backend : "as "
                   "given", status);
}

tt_status validate_runs_make(validate_runs *w, validate_set *set,
                             const char *name, const char *inject)
{
    memset(set, 0, sizeof *set);
    snprintf(set->ours, sizeof set->ours, "%s/%s.ours", w->folder, name);
    snprintf(set->emul, sizeof set->emul, "%s/%s.%s", w->folder, name,
             w->backend);
    const one_run ours = {.dump = set->ours, .inject = inject};
    const one_run emul = {.dump = set->emul, .inject = inject,
                          .backend = w->backend};
    if (!w->emul_only) TT_TRY(run_checked(w, &ours));
    if (w->ours_only) return w->ctx->status;
    if (*w->f64 && !w->emul_only) {
        snprintf(set->oracle, sizeof set->oracle, "%s/%s.f64", w->folder, name);
        const one_run f64 = {.program = w->f64, .dump = set->oracle,
                             .inject = inject};
        TT_TRY(run_checked(w, &f64));
    }
    return run_checked(w, &emul);
}

void validate_remove_folder(const char *folder)
{
    char path[700];
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, e->d_name)
            >= sizeof path) continue;
        if (unlink(path)) validate_remove_folder(path);
    }
    if (d) closedir(d);
    rmdir(folder);
}

void validate_runs_close(validate_runs *w)
{
    tt_settings_free(&w->settings);
    if (w->temporary) validate_remove_folder(w->folder);
}
