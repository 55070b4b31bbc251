/* cli.c: what the commands share: signals, common options, failures.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/nearest.h"
#include "validate/validate.h"
#include "team/team.h"

/* ---- signals ------------------------------------------------------------- */

/* A signal handler has nowhere else to read from and to write to. */
static volatile int stop_signal;
static const char *volatile stop_first, *volatile stop_second;

/* With write(2): nothing else that prints may be called in a handler. */
static void answer(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n; /* no one is left to tell */
}

static void on_signal(int number)
{
    const int error = errno;
    const char *words = stop_signal ? stop_second : stop_first;
    /* A closed terminal is said twice, by the system and by the shell: that is
     * no one's haste. */
    if (stop_signal && number == SIGHUP) return;
    answer(isatty(STDERR_FILENO) ? "\ntether: " : "tether: ");
    answer(words ? words : stop_signal ? "stopped at once" :
           "stopping after this step");
    if (!stop_signal && number == SIGINT)
        answer("; press Ctrl-C again to stop at once");
    answer("\n");
    if (stop_signal) _exit(128 + number); /* the second one does not wait */
    stop_signal = number;
    errno = error;
}

void cli_stop_words(const char *first, const char *second)
{
    stop_first = first;
    stop_second = second;
}

/* Two lines: the one that the handler may be reading is not written to. */
static char status_line[2][300] = {"nothing is under way yet"};
static volatile int status_turn;

void cli_status(const char *text)
{
    const int next = 1 - status_turn;
    snprintf(status_line[next], sizeof status_line[next], "%s", text);
    status_turn = next;
}

static void on_question(int number)
{
    const int error = errno;
    (void)number;
    answer(isatty(STDERR_FILENO) ? "\ntether: " : "tether: ");
    answer(status_line[status_turn]);
    answer("\n");
    errno = error;
}

/* What the parent ignores stays ignored: nohup(1) wants no end at all, and the
 * Ctrl-C of a terminal does not mean what a script runs in the background. */
static void catch(int number, const struct sigaction *action)
{
    struct sigaction before;
    if (!sigaction(number, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaction(number, action, NULL);
}

void cli_catch_signals(tt_ctx *ctx)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_RESTART;
    action.sa_handler = on_question;
    sigaction(SIGUSR1, &action, NULL);   /* main ignores it: no command ends */
    action.sa_handler = on_signal;
    catch(SIGINT, &action);
    catch(SIGTERM, &action);
    catch(SIGHUP, &action);
    ctx->interrupt = &stop_signal;
}

/* ---- shared by the commands ---------------------------------------------- */

static tt_status set_class(tt_ctx *ctx, const char *name)
{
    tt_class cls;
    char hint[NEAREST_HINT];
    if (!tt_class_find(&cls, name))
        return tt_fail(ctx, TT_EINVAL, "--class %s is not known%s; the classes "
                       "are %s", name, nearest_class(hint, name),
                       tt_class_names());
    const tt_ops *ops = tt_ops_class(ctx->ops, cls);
    if (!ops && sizeof(tt_real) == 8)
        return tt_fail(ctx, TT_EINVAL, "--class %s needs a program built with "
                       "float; this one computes in double", name);
    if (!ops)
        return tt_fail(ctx, TT_EINVAL, "backend %s has no class %s; use "
                       "--backend exact or golden", ctx->ops->name, name);
    ctx->ops = ops;
    return TT_OK;
}

tt_status cli_setup(tt_ctx *ctx, const cli_common *common)
{
    if (common->threads) ctx->nthreads = (int)common->threads;
    /* arith-bf16: our own emulation of that arithmetic, to compare with */
    const tt_arith *arith =
        common->backend && !strncmp(common->backend, "arith-", 6)
        ? tt_arith_find(common->backend + 6) : NULL;
    if (arith) ctx->ops = tt_arith_ops(arith), ctx->device = NULL;
    else if (common->backend) TT_TRY(tt_ops_use(ctx, common->backend));
    TT_TRY(tt_level_check(ctx));
    return common->cls ? set_class(ctx, common->cls) : TT_OK;
}

int cli_stopped(void)
{
    return 128 + (stop_signal ? stop_signal : SIGINT);
}

tt_status cli_alone(tt_ctx *ctx, const char *command)
{
    if (ctx->status || tt_team_size(ctx) == 1) return ctx->status;
    return tt_fail(ctx, TT_EINVAL, "tether %s runs on one rank, not %d: only "
                   "`tether generate` shares out its work", command,
                   tt_team_size(ctx));
}

int cli_failed(const tt_ctx *ctx)
{
    if (ctx->status == TT_EINTR) {
        fprintf(stderr, "tether: %s\n", *tt_message(ctx) ? tt_message(ctx)
                                                         : "interrupted");
        return cli_stopped();
    }
    const bool colour = cli_colour();
    fprintf(stderr, "tether: %serror:%s %s\n", colour ? "\033[31m" : "",
            colour ? "\033[0m" : "", tt_message(ctx));
    return ctx->status == TT_EINVAL ? 2 : 1;
}

bool cli_colour(void)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb")
        && !(no_colour && *no_colour);
}
