/* validate_runs.c: the same command three times.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Our own two run inside this process on a context of their own; float64 is
 * another build of the program. */
#include "cli/validate_runs.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/generate.h"
#include "cli/model.h"

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
    if (!model_program_path(self, sizeof self)) return TT_OK;
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

/* Without an output of its own the command decodes nothing. */
static bool has_output(const validate_runs *w)
{
    static const char *const output[] = {"--output", "--contact-sheet",
                                         "--latents-out", "--contact_sheet",
                                         "--latents_out"};
    for (int i = 1; i < w->argc; i++) {
        if (!strncmp(w->argv[i], "-o", 2)) return true;
        for (size_t k = 0; k < sizeof output / sizeof output[0]; k++)
            if (!strncmp(w->argv[i], output[k], strlen(output[k])))
                return true;
    }
    return false;
}

static bool has_sheet(const validate_runs *w)
{
    bool found = false;
    for (int i = 1; i < w->argc; i++)
        found = found || !strncmp(w->argv[i], "--contact-sheet", 15)
             || !strncmp(w->argv[i], "--contact_sheet", 15);
    return found;
}

/* Exit status of the arguments, run in this process. */
static int run_here(tt_ctx *ctx, int n, char **a,
                    int (*run)(tt_ctx *ctx, int argc, char **argv))
{
    tt_ctx own;
    if (tt_ctx_init(&own)) return cli_failed(&own);
    own.nthreads = ctx->nthreads;
    own.ops = ctx->ops;
    const int status = run(&own, n, a);
    tt_ctx_free(&own);
    return status;
}

/* The command's words with more behind them. */
typedef struct words {
    tt_ctx *ctx;
    char **a;
    int n;
} words;

static void put_word(words *w, const char *word)
{
    w->a[w->n++] = tt_strdup(w->ctx, &w->ctx->scratch, word);
}

/* An option of ours, unless its value is NULL. */
static void put_option(words *w, const char *option, const char *value)
{
    if (!value) return;
    put_word(w, option);
    put_word(w, value);
}

/* What the command names is written by the run as it is; another one writes
 * into our folder. */
static void set_aside(const validate_runs *w, words *to)
{
    char path[640];
    put_word(to, "--overwrite");
    snprintf(path, sizeof path, "%s/latents", w->folder);
    put_option(to, "--latents-out", path);
    snprintf(path, sizeof path, "%s/video.y4m", w->folder);
    put_option(to, "-o", path);
    snprintf(path, sizeof path, "%s/sheet.png", w->folder);
    if (has_sheet(w)) put_option(to, "--contact-sheet", path);
}

/* Exit status of one run into the file `dump`; `program` NULL: in here. */
static int run_one(validate_runs *w, char *program, const char *dump,
                   const char *inject, const char *backend,
                   int (*run)(tt_ctx *ctx, int argc, char **argv))
{
    tt_ctx *ctx = w->ctx;
    const bool other = program || backend, output = has_output(w);
    words to = {ctx, tt_alloc0(ctx, &ctx->scratch, w->argc + 30, sizeof *to.a,
                               "arguments"), 0};
    if (!to.a) return 1;
    if (program) to.a[to.n++] = program;
    for (int i = 0; i < w->argc; i++) to.a[to.n++] = w->argv[i];
    put_word(&to, "-q");
    put_option(&to, "--dump", dump);
    put_option(&to, "--dump-filter", w->filter);
    put_option(&to, "--record", w->record);
    put_option(&to, "--inject", inject);
    put_option(&to, "--backend", backend);
    if (!other) put_option(&to, "--class", w->cls);
    if (!output) put_word(&to, "--no-decode");
    if (other || inject || !output) set_aside(w, &to);
    if (ctx->status) return 1;
    return program ? validate_spawn(to.a) : run_here(ctx, to.n, to.a, run);
}

/* A command that cannot begin is refused once, not by each of its runs. */
static tt_status try_run(validate_runs *w)
{
    const int status = run_one(w, NULL, "dump", NULL, NULL, generate_try);
    if (status == 0) return w->ctx->status;
    return tt_fail(w->ctx, status == 2 ? TT_EINVAL : TT_EFORMAT,
                   "the run behind -- cannot begin (exit status %d)", status);
}

tt_status validate_runs_open(tt_ctx *ctx, validate_runs *w, const char *f64,
                             const char *keep, const tt_arith *arith, int argc,
                             char **argv)
{
    const char *tmp = getenv("TMPDIR");
    *w = (validate_runs){.ctx = ctx, .argc = argc, .argv = argv};
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
    snprintf(w->folder, sizeof w->folder, "%s/tether-validate-XXXXXX",
             tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(w->folder))
        return tt_fail(ctx, TT_EIO, "%s: cannot make a temporary folder: %s",
                       w->folder, strerror(errno));
    return TT_OK;
}

static tt_status run_checked(validate_runs *w, char *program, const char *dump,
                             const char *inject, const char *backend)
{
    const tt_arena_mark mark = tt_arena_here(&w->ctx->scratch);
    const int status = run_one(w, program, dump, inject, backend,
                               cmd_generate);
    tt_arena_reset(&w->ctx->scratch, mark);
    if (status == 0) return w->ctx->status;
    return tt_fail(w->ctx, status == 2 ? TT_EINVAL
                           : status >= 128 ? TT_EINTR : TT_EFORMAT,
                   "our own run failed (%s, exit status %d)",
                   program ? program : backend ? backend : "as given", status);
}

tt_status validate_runs_make(validate_runs *w, validate_set *set,
                             const char *name, const char *inject)
{
    memset(set, 0, sizeof *set);
    snprintf(set->ours, sizeof set->ours, "%s/%s.ours", w->folder, name);
    snprintf(set->emul, sizeof set->emul, "%s/%s.%s", w->folder, name,
             w->backend);
    if (!w->emul_only) TT_TRY(run_checked(w, NULL, set->ours, inject, NULL));
    if (w->ours_only) return w->ctx->status;
    if (*w->f64 && !w->emul_only) {
        snprintf(set->oracle, sizeof set->oracle, "%s/%s.f64", w->folder, name);
        TT_TRY(run_checked(w, w->f64, set->oracle, inject, NULL));
    }
    return run_checked(w, NULL, set->emul, inject, w->backend);
}

void validate_runs_close(validate_runs *w)
{
    static const char *const name[] = {"injected", "free"};
    static const char *const aside[] = {"latents", "video.y4m", "sheet.png"};
    char path[700];
    if (!w->temporary) return;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s.ours", w->folder, name[i]);
        unlink(path);
        snprintf(path, sizeof path, "%s/%s.f64", w->folder, name[i]);
        unlink(path);
        snprintf(path, sizeof path, "%s/%s.%s", w->folder, name[i], w->backend);
        unlink(path);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", w->folder, aside[i]);
        unlink(path);
    }
    rmdir(w->folder);
}
