/* main.c: the program `tether`: find the command, run it, exit as promised.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Exit status: 0 ok, 1 failure at run time, 2 usage, 128+n on signal n; of
 * validate and diff, where 1 is a verdict, 3 a failure.
 * Messages go to stderr, data to stdout.
 * Next    cmd_generate.c */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/ui/manual.h"
#include "core/nearest.h"
#include "ops/backend.h"
#include "cache/policy.h"
#include "team/team.h"
#include "core/threads.h"
#include "validate/validate.h"
#include "tether/version.h"

typedef struct command {
    const char *name, *summary;
    int (*run)(tt_ctx *ctx, int argc, char **argv);
} command;

static const command commands[] = {
    {"generate", "a video from a prompt or from embeddings", cmd_generate},
    {"decode", "a video from a file of latents", cmd_decode},
    {"encode", "latents from pictures or a video", cmd_encode},
    {"embed", "prompt embeddings into a file, to encode once", cmd_embed},
    {"tokenize", "the ids of lines of text", cmd_tokenize},
    {"noise", "the noise of a seed into a file, for other programs",
     cmd_noise},
    {"inspect", "what is in a checkpoint or tensor file", cmd_inspect},
    {"convert", "a checkpoint as one safetensors file", cmd_convert},
    {"analyze", "tables and a page of what a cache policy did", cmd_analyze},
    {"explain", "one decision of a cache policy, with all its numbers",
     cmd_explain},
    {"compare", "several cache policies on the same noise, and a report",
     cmd_compare},
    {"validate", "is another implementation right, and if not, where is it "
     "wrong", cmd_validate},
    {"diff", "two dumps: the first difference, and how large all are",
     cmd_diff},
    {"demo", "a video and a contact sheet from the small built-in model",
     cmd_demo},
    {"bench", "speed of a whole pass and of the operators, and their error",
     cmd_bench},
};
enum { NCOMMANDS = sizeof commands / sizeof commands[0] };

/* ---- what every program must answer -------------------------------------- */

/* The column after the longest name. */
static int name_column(void)
{
    size_t column = 0;
    for (int i = 0; i < NCOMMANDS; i++)
        if (strlen(commands[i].name) > column)
            column = strlen(commands[i].name);
    for (int i = 0; tt_policy_at(i); i++)
        if (strlen(tt_policy_at(i)->name) > column)
            column = strlen(tt_policy_at(i)->name);
    return (int)column;
}

static void main_print_help(void)
{
    const int column = name_column();
    printf("tether: autoregressive video diffusion (Self-Forcing on Wan2.1, "
           "TetherCache)\n\n"
           "usage: tether COMMAND [options]      "
           "tether COMMAND --help explains one\n\n");
    for (int i = 0; i < NCOMMANDS; i++)
        printf("  %-*s %s\n", column, commands[i].name, commands[i].summary);
    printf("\nCache policies of `generate --cache`\n");
    for (int i = 0; tt_policy_at(i); i++)
        printf("  %-*s %s\n", column, tt_policy_at(i)->name,
               tt_policy_at(i)->summary);
    printf("\nFirst steps\n"
           "  tether demo           "
           "no weights needed: a video in tether-demo/\n"
           "  tether bench --estimate\n"
           "                        what the real model takes here, "
           "without its weights\n"
           "  tether inspect wan    which files to download into the folder "
           "wan\n"
           "  tether generate -m wan -p \"a cat on a red sofa\" -o cat.mp4\n");
}

static void print_version(void)
{
    char cpu[256];
    const tt_ops *first = tt_ops_default();
    printf("tether %s (%s), %s, compute type %s\n", tt_version(),
           tt_git_revision(), tt_compiler(), tt_real_name());
    printf("backends:");
    for (int i = 0; tt_ops_at(i); i++)
        printf("%s %s%s", i ? "," : "", tt_ops_at(i)->name,
               tt_ops_at(i) == first ? " (default)"
               : !strcmp(tt_ops_at(i)->name, "cuda") ? " (run on sm_90 alone)"
                                                     : "");
    printf("\nclasses:");
    for (int c = 0; tt_class_at(c); c++) {
        const char *between = c ? "; %s of" : " %s (default) of";
        for (int i = 0; tt_ops_at(i); i++)
            if (tt_ops_class(tt_ops_at(i), (tt_class)c)) {
                printf(between, tt_class_at(c)->name);
                printf(" %s", tt_ops_at(i)->name);
                between = ",";
            }
    }
    printf("\ninstruction sets: %s\n", tt_cpu_features(cpu, sizeof cpu));
    printf("determinism class: %s\n", tt_determinism(first));
#ifdef TT_MPI
    printf("ranks: those of mpirun, by MPI\n");
#endif
}

static int no_such_command(const char *name)
{
    const char *names[NCOMMANDS];
    for (int i = 0; i < NCOMMANDS; i++) names[i] = commands[i].name;
    const char *near = nearest_name(name, names, NCOMMANDS);
    if (near)
        fprintf(stderr, "tether: unknown command `%s`; did you mean `%s`?\n",
                name, near);
    else
        fprintf(stderr, "tether: unknown command `%s`; `tether --help` lists "
                "the commands\n", name);
    return 2;
}

/* A warning where no progress line can be in the way. */
static void warn(void *user, const char *sentence)
{
    const bool colour = cli_colour();
    (void)user;
    fprintf(stderr, "tether: %swarning:%s %s\n", colour ? "\033[33m" : "",
            colour ? "\033[0m" : "", sentence);
}

/* Under mpirun all ranks get the command. */
static tt_status join_team(tt_ctx *ctx, const command *c)
{
    TT_TRY(tt_team_open(ctx));
    if (c->run == cmd_generate || c->run == cmd_bench) return TT_OK;
    return cli_alone(ctx, c->name);
}

/* The others do not know that our command line was refused, and would wait. */
static void leave_team(tt_ctx *ctx, int status)
{
    if (status && !ctx->status && tt_team_size(ctx) > 1)
        tt_fail(ctx, TT_EINVAL, "the command line was refused");
    tt_team_close(ctx);
}

static int run_command(int argc, char **argv)
{
    const command *c = NULL;
    for (int i = 0; i < NCOMMANDS; i++)
        if (!strcmp(commands[i].name, argv[1])) c = &commands[i];
    if (!c) return no_such_command(argv[1]);

    tt_threads_sleep();
    tt_ctx ctx;
    if (tt_ctx_init(&ctx)) return cli_failed(&ctx);
    ctx.warn = warn;
    int status = join_team(&ctx, c) ? cli_failed(&ctx)
                                    : c->run(&ctx, argc - 1, argv + 1);
    leave_team(&ctx, status);
    tt_ctx_free(&ctx);
    return status;
}

/* Is the word in the list, which ends with NULL? */
static bool is_one_of(const char *word, const char *const *list)
{
    while (*list && strcmp(word, *list)) list++;
    return *list != NULL;
}

/* --help=man: the page of the program itself; the commands have their own. */
static void print_page(void)
{
    manual_begin("tether", "autoregressive video diffusion, bit for bit");
    manual_section("SYNOPSIS");
    manual_words("tether COMMAND [options]");
    manual_section("COMMANDS");
    for (int i = 0; i < NCOMMANDS; i++)
        manual_item(commands[i].name, commands[i].summary);
    manual_section("CACHE POLICIES");
    for (int i = 0; tt_policy_at(i); i++)
        manual_item(tt_policy_at(i)->name, tt_policy_at(i)->summary);
    manual_section("ENVIRONMENT");
    manual_item("OMP_NUM_THREADS", "threads, where --threads is not given");
    manual_item("TT_CPU", "the instruction set to use: avx2, avx512, amx ...; "
                "a value that is not known is an error that lists them");
    manual_item("TT_MEMORY", "memory that generate may take, like 20G, "
                "whatever the machine and its control groups say; a "
                "value that cannot be read is an error");
    manual_item("TMPDIR", "where validate keeps what it compares");
    manual_item("NO_COLOR", "no colours on the terminal");
    manual_section("FILES");
    manual_item("share/tether/demo", "the small built-in model of tether demo");
    manual_item("share/tether/bits_operators_v1.txt",
                "the digests of validate --manifest");
    manual_end("tether");
}

/* --help=words: kind, name and summary between tabs, for shells. What an option
 * may be given is here under the kind of its name, or in its table ("0|1"). */
static void print_words(void)
{
#define OP_LINE(op, OP) printf("op\t%s\t\n", #op);
    TT_OPS(OP_LINE)
    for (int i = 0; tt_arith_at(i); i++)
        printf("arith\t%s\t%s\n", tt_arith_at(i)->name,
               tt_arith_at(i)->summary);
    for (int i = 0; i < NCOMMANDS; i++)
        printf("command\t%s\t%s\n", commands[i].name, commands[i].summary);
    for (int i = 0; tt_policy_at(i); i++)
        printf("policy\t%s\t%s\n", tt_policy_at(i)->name,
               tt_policy_at(i)->summary);
    for (int i = 0; tt_policy_at(i); i++)
        for (const tt_policy_preset *p = tt_policy_at(i)->presets;
             p && p->name; p++)
            printf("preset\t%s\t%s\n", p->name, p->summary);
    for (int i = 0; tt_ops_at(i); i++)
        printf("backend\t%s\t%s\n", tt_ops_at(i)->name,
               tt_ops_at(i)->summary);
    for (int i = 0; tt_class_at(i); i++)
        printf("class\t%s\t%s: %s\n", tt_class_at(i)->name,
               tt_class_at(i)->machines, tt_class_at(i)->summary);
}

/* `tether help generate` is `tether generate --help`. */
static int help(int argc, char **argv)
{
    char *as_option[] = {argv[0], argc > 2 ? argv[2] : NULL, "--help", NULL};
    if (argc > 2) return run_command(3, as_option);
    if (!strcmp(argv[1], "--help=man")) print_page();
    else if (!strcmp(argv[1], "--help=words")) print_words();
    else main_print_help();
    return 0;
}

/* Where one of the three is closed, the first file that is opened would take
 * its place, and messages would be written into it. */
static void open_standard(void)
{
    int fd;
    do fd = open("/dev/null", O_RDONLY); while (fd >= 0 && fd < 3);
    if (fd > 2) close(fd);
}

/* What is on its way out must arrive; a reader that has seen enough (`--help |
 * head`) is no failure. */
static int main_flushed(int status, const char *name)
{
    static const char *const checks[] = {"validate", "diff", NULL};
    errno = 0;
    if ((!fflush(stdout) && !ferror(stdout)) || status || errno == EPIPE)
        return status;
    fprintf(stderr, "tether: error: cannot write standard output: %s\n",
            errno ? strerror(errno) : "an earlier write has failed");
    return is_one_of(name, checks) ? 3 : 1;
}

int main(int argc, char **argv)
{
    static const char *const helps[] = {"--help", "-h", "help", "--help=man",
                                        "--help=words", NULL};
    static const char *const versions[] = {"--version", "-V", "version", "-v",
                                           NULL};
    int status = 0;
    open_standard();
    signal(SIGUSR1, SIG_IGN); /* a question that not every command answers */
    /* A reader that goes away is a write error with a sentence. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* so is a file above the limit of ulimit -f */
    if (argc < 2) {
        fprintf(stderr, "tether: no command given; `tether --help` lists "
                "them\nusage: tether COMMAND [options]\nexample:\n"
                "  tether demo\n");
        return 2;
    }
    if (is_one_of(argv[1], helps))
        status = help(argc, argv);
    else if (is_one_of(argv[1], versions))
        print_version();
    else
        status = run_command(argc, argv);
    return main_flushed(status, argv[1]);
}
