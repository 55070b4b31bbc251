/* cli.h: what the commands share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A command is `int cmd_X(tt_ctx *ctx, int argc, char **argv)`: argv[0] is the
 * command's name, the return value the exit status. The pattern of each:
 *
 *     int status = opt_parse(&command, &s, &common, &given, argc, argv);
 *     if (status != GO_ON) return status;
 *     if (cli_setup(ctx, &common)) return cli_failed(ctx);
 *     ... library calls ...
 *     return ctx->status ? cli_failed(ctx) : 0;                           */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/ui/options.h"
#include "core/context.h"
#include "ops/backend.h"

int cmd_generate(tt_ctx *ctx, int argc, char **argv);
int cmd_embed(tt_ctx *ctx, int argc, char **argv);
int cmd_tokenize(tt_ctx *ctx, int argc, char **argv);
int cmd_decode(tt_ctx *ctx, int argc, char **argv);
int cmd_encode(tt_ctx *ctx, int argc, char **argv);
int cmd_noise(tt_ctx *ctx, int argc, char **argv);
int cmd_inspect(tt_ctx *ctx, int argc, char **argv);
int cmd_convert(tt_ctx *ctx, int argc, char **argv);
int cmd_analyze(tt_ctx *ctx, int argc, char **argv);
int cmd_explain(tt_ctx *ctx, int argc, char **argv);
int cmd_compare(tt_ctx *ctx, int argc, char **argv);
int cmd_validate(tt_ctx *ctx, int argc, char **argv);
int cmd_diff(tt_ctx *ctx, int argc, char **argv);
int cmd_demo(tt_ctx *ctx, int argc, char **argv);
int cmd_bench(tt_ctx *ctx, int argc, char **argv);

/* Apply the common options: threads, backend. */
tt_status cli_setup(tt_ctx *ctx, const cli_common *common);

/* TT_EINVAL where mpirun started several: the command is for one rank. */
tt_status cli_alone(tt_ctx *ctx, const char *command);

/* Print the recorded failure as "tether: error: ..." on stderr and return the
 * exit status that belongs to it: 2 for TT_EINVAL, 130 for TT_EINTR, else 1.*/
int cli_failed(const tt_ctx *ctx);

/* The exit status after a signal: 130 for SIGINT. */
int cli_stopped(void);

/* From here on the first SIGINT, SIGTERM or SIGHUP asks the library to stop
 * between two steps (ctx->interrupt), and the second one ends the program; but
 * a second SIGHUP does nothing, and one that is ignored stays so. Signals are
 * answered on stderr at once, SIGUSR1 with cli_status. Commands that have
 * nothing to save leave them alone. */
void cli_catch_signals(tt_ctx *ctx);
/* SIGUSR1 is answered with this: what is being done, and how far it is. The
 * text is copied. */
void cli_status(const char *text);
/* What is said to the first and to the second signal, instead of "stopping
 * after this step" and "stopped at once". The texts must stay where they are
 * until others are set; NULL: the general ones. */
void cli_stop_words(const char *first, const char *second);

/* May messages on stderr have colours? A terminal, and NO_COLOR is not set. */
bool cli_colour(void);

/* The command in a form that a shell takes again: `before` and the words of
 * argv after blanks, in ctx->scratch. "" after a failure. */
const char *cli_command_line(tt_ctx *ctx, const char *before, int argc,
                             char **argv);

#endif
