/* cmd_compare.c: tether compare, several cache policies on the same noise.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing here is special: for every policy it is `tether generate` with the
 * options given, into a run folder of its own, and at the end the report over
 * all of them. Each run opens the model anew (mapped, so that costs little)
 * and encodes the prompt anew; --embeds avoids the latter. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/generate.h"
#include "cli/manual.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "tether/analyze.h"
#include "tether/outfile.h"
#include "tether/video.h"

enum { POLICIES_MAX = 16, ARGS_MAX = 256, PATH_SIZE = 4096 };

typedef struct compare {
    const char *caches, *output, *runs;
    const char *log_json;         /* ours; each run's is in its folder        */
    bool quiet, verbose, decode, resume, overwrite;
    const char *all;              /* the folder of all runs                   */
    int lock;                     /* descriptor that holds it                 */
    progress progress;
    const char *pass[ARGS_MAX];   /* for generate                             */
    int npass;
    int n;
    char *policy[POLICIES_MAX];   /* "tether:tau=0.6", as given               */
    char *folder[POLICIES_MAX];
    const char *command;          /* all of it, for the report                */
    double seconds[POLICIES_MAX]; /* each took                                */
} compare;

static const char help[] =
    "tether compare: several cache policies on the same model, prompt and "
    "noise\n"
    "\n"
    "usage: tether compare --caches A,B,C [options of generate] -o "
    "REPORT.html\n"
    "\n"
    "Every policy generates its video into a run folder, which `tether "
    "analyze`\nreads too; the report is one self-contained HTML page with "
    "contact sheets,\nplots and a table.\n"
    "\n"
    "      --caches LIST         policies, separated by commas. One with "
    "options of its\n"
    "                            own: tether:tau=0.6:alpha=0, and clips of "
    "their own\n"
    "                            length: causvid:latents=21:rollouts=3\n"
    "  -o, --output FILE         the report (default compare.html)\n"
    "      --runs FOLDER         where the runs go (default: the report's name "
    "with\n"
    "                            _runs instead of .html)\n"
    "      --log-json FILE       one JSON object per policy as it begins and "
    "ends; the\n"
    "                            chunks of each are in log.json in its run "
    "folder\n"
    "      --resume              go on after an interruption: latents that are "
    "complete are\n"
    "                            not generated again, unfinished ones go on; "
    "to the same\n"
    "                            bits\n"
    "      --overwrite           replace a report that is there, and runs that "
    "other\n"
    "                            options made; without it both are refused\n"
    "\n"
    "All other options are those of `tether generate --help`; --cache, "
    "--analyze,\n--label and the names of output files are filled in.\n"
    "\n"
    "Example\n"
    "  tether compare --caches fifo,memrope,tether -m MODEL -p \"a cat\" "
    "--latents 60 \\\n      -o cat.html\n";

static const char me[] = "compare";

/* ---- options ------------------------------------------------------------- */

/* The value of our option `name` when argv[*i] is it: --name value,
 * --name=value or, behind one letter, -nvalue; *i moves on. NULL otherwise. */
static const char *own_option(const char *name, int *i, int argc, char **argv,
                              bool *missing)
{
    const char *word = argv[*i];
    size_t n = strlen(name);
    if (strncmp(word, name, n)) return NULL;
    if (word[n] == '=') return word + n + 1;
    if (word[n]) return name[1] == '-' ? NULL : word + n;
    if (*i + 1 < argc) return argv[++*i];
    *missing = true;
    return NULL;
}

/* Options of generate that we fill in ourselves. */
static const char *taken(const char *word)
{
    static const char *const list[] = {
        "--cache", "--analyze", "--label", "--contact-sheet", "--animation",
        "--latents-out",
        "--record", "--dump", "--trace-cache", "--num-samples",
        "--prompt-file", "--vbench-name", "--preview"};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        size_t n = strlen(list[i]);
        if (!strncmp(word, list[i], n) && (!word[n] || word[n] == '='))
            return list[i];
    }
    return NULL;
}

/* Is an argument of generate, or its value, the file that --`name` names? */
static int check_output(const compare *c, const char *name, const char *path)
{
    for (int i = 0; path && i < c->npass; i++) {
        const char *equals = strchr(c->pass[i], '=');
        if (outputs_hit(path, c->pass[i])
            || (equals && outputs_hit(path, equals + 1)))
            return opt_usage(me, "--%s would write over %s, which is read; "
                             "give the output another name", name, path);
    }
    return -1;
}

/* The same text as a manual page, or our options for the shells. */
static int manual(const char *form)
{
    static const char *const word[] = {
        "--caches\t \tLIST\tvalue\tpolicies, separated by commas",
        "--output\t-o\tFILE\tvalue\tthe report",
        "--runs\t \tFOLDER\tvalue\twhere the runs go",
        "--log-json\t \tFILE\tvalue\tone JSON object per policy"};
    return manual_text(me, "several cache policies on the same noise, and a "
                       "report", help, word, 4, form);
}

/* Take argv[*i], and its value, when it is an option of ours that has one. */
static bool take_own(compare *c, int *i, int argc, char **argv, bool *missing)
{
    const struct { const char *name, **to; } own[] = {
        {"--caches", &c->caches}, {"--runs", &c->runs},
        {"--log-json", &c->log_json}, {"--output", &c->output},
        {"-o", &c->output}};
    for (size_t k = 0; k < sizeof own / sizeof own[0]; k++) {
        const char *v = own_option(own[k].name, i, argc, argv, missing);
        if (v) *own[k].to = v;
        if (v) return true;
    }
    return false;
}

/* Any other word: for generate, and some are for us as well. -1 or a status. */
static int take_word(compare *c, const char *word)
{
    const char *filled = taken(word);
    if (!strcmp(word, "--resume")) {
        c->resume = true;
        return -1;
    }
    if (filled)
        return opt_usage(me, "%s is filled in for every policy and cannot "
                         "be given", filled);
    if (c->npass == ARGS_MAX)
        return opt_usage(me, "more than %d arguments", ARGS_MAX);
    c->pass[c->npass++] = word;
    if (!strcmp(word, "-q") || !strcmp(word, "--quiet")) c->quiet = true;
    if (!strcmp(word, "-v") || !strcmp(word, "--verbose")) c->verbose = true;
    if (!strcmp(word, "--no-decode")) c->decode = false;
    if (!strcmp(word, "--overwrite")) c->overwrite = true;
    return -1;
}

static bool is_random_seed(const compare *c, int i)
{
    const char *word = c->pass[i], *before = i ? c->pass[i - 1] : "";
    return !strcmp(word, "--seed=random") || !strcmp(word, "-srandom")
        || (!strcmp(word, "random")
            && (!strcmp(before, "-s") || !strcmp(before, "--seed")));
}

/* -1 to go on, else the exit status. */
static int parse(compare *c, int argc, char **argv)
{
    bool missing = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return printf("%s", help) < 0;
        if (!strncmp(argv[i], "--help=", 7)) return manual(argv[i] + 7);
        if (take_own(c, &i, argc, argv, &missing)) continue;
        if (missing) return opt_usage(me, "%s needs a value", argv[i]);
        const int status = take_word(c, argv[i]);
        if (status >= 0) return status;
    }
    for (int i = 0; i < c->npass; i++)
        if (is_random_seed(c, i))
            return opt_usage(me, "--seed random would give every policy "
                             "another noise; give a number");
    if (!c->caches || !*c->caches)
        return opt_usage(me, "--caches needs a list of policies, like "
                         "fifo,memrope,tether");
    const int status = check_output(c, "output", c->output);
    return status >= 0 ? status : check_output(c, "log-json", c->log_json);
}

/* ---- names --------------------------------------------------------------- */

static char *print_name(tt_ctx *ctx, const char *fmt, ...) TT_PRINTF(2, 3);
static char *print_name(tt_ctx *ctx, const char *fmt, ...)
{
    char buf[PATH_SIZE];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= PATH_SIZE) {
        tt_fail(ctx, TT_EINVAL, "a file name is too long");
        return NULL;
    }
    return tt_strdup(ctx, &ctx->scratch, buf);
}

/* "fifo,tether:tau=0.6" into policies and their folders 0-fifo, 1-tether. */
static tt_status split(tt_ctx *ctx, compare *c)
{
    char *rest = tt_strdup(ctx, &ctx->scratch, c->caches);
    size_t stem = strlen(c->output);
    if (stem > 5 && !strcmp(c->output + stem - 5, ".html")) stem -= 5;
    const char *runs = c->runs ? c->runs
                     : print_name(ctx, "%.*s_runs", (int)stem, c->output);
    c->all = runs;
    while (rest && !ctx->status) {
        char *comma = strchr(rest, ',');
        if (comma) *comma = 0;
        if (c->n == POLICIES_MAX)
            return tt_fail(ctx, TT_EINVAL, "more than %d policies",
                           POLICIES_MAX);
        size_t name = strcspn(rest, ":");
        if (!name || memchr(rest, '/', name))
            return tt_fail(ctx, TT_EINVAL, "`%s` is not the name of a policy",
                           rest);
        for (int i = 0; i < c->n; i++)
            if (!strcmp(c->policy[i], rest))
                return tt_fail(ctx, TT_EINVAL, "--caches has %s twice; a run "
                               "is the same every time", rest);
        c->policy[c->n] = rest;
        c->folder[c->n] = print_name(ctx, "%s/%d-%.*s", runs, c->n, (int)name,
                                     rest);
        c->n++;
        rest = comma ? comma + 1 : NULL;
    }
    return ctx->status;
}

/* ---- one policy ---------------------------------------------------------- */

typedef struct arguments {
    const char *at[ARGS_MAX + 2 * POLICIES_MAX + 32];
    int n;
} arguments;

static void add(arguments *a, const char *word)
{
    TT_ASSERT(a->n + 1 < (int)(sizeof a->at / sizeof a->at[0]));
    a->at[a->n++] = word;
}

/* "tether:tau=0.6:unify" into --cache tether --tau=0.6 --unify. */
static tt_status add_policy(tt_ctx *ctx, arguments *a, const char *policy)
{
    char *copy = tt_strdup(ctx, &ctx->scratch, policy);
    add(a, "--cache");
    for (int i = 0; copy && !ctx->status; i++) {
        char *colon = strchr(copy, ':');
        if (colon) *colon = 0;
        if (i > POLICIES_MAX)
            return tt_fail(ctx, TT_EINVAL, "%s has too many options", policy);
        add(a, i ? print_name(ctx, "--%s", copy) : copy);
        copy = colon ? colon + 1 : NULL;
    }
    return ctx->status;
}

/* mp4 where ffmpeg is there, else y4m. */
static const char *video_name(tt_ctx *ctx, const char *folder)
{
    const tt_video_format f = {.width = 64, .height = 64, .fps = 16};
    const char *name = print_name(ctx, "%s/video.mp4", folder);
    if (name && tt_video_check(ctx, name, &f) == TT_EUNSUPPORTED) {
        tt_clear(ctx);
        name = print_name(ctx, "%s/video.y4m", folder);
    }
    return name;
}

/* What generate is called with for policy i. */
static tt_status make_arguments(tt_ctx *ctx, const compare *c, int i,
                                arguments *a)
{
    const char *folder = c->folder[i];
    a->n = 0;
    add(a, "generate");
    for (int k = 0; k < c->npass; k++) add(a, c->pass[k]);
    TT_TRY(add_policy(ctx, a, c->policy[i]));
    add(a, "--analyze");
    add(a, folder);
    add(a, "--label");
    add(a, c->policy[i]);
    add(a, "--latents-out");
    add(a, print_name(ctx, "%s/video.latents.safetensors", folder));
    if (c->resume) add(a, "--resume");
    if (c->log_json) {
        add(a, "--log-json");
        add(a, print_name(ctx, "%s/log.json", folder));
    }
    if (c->decode) {
        add(a, "--contact-sheet");
        add(a, print_name(ctx, "%s/sheet.png", folder));
        add(a, "-o");
        add(a, video_name(ctx, folder));
    }
    return ctx->status;
}

/* A mistake in the last policy is found before the first one runs. */
static int try_all(tt_ctx *ctx, compare *c)
{
    arguments a;
    for (int i = 0; i < c->n; i++) {
        /* names of outputs are tried as well, so the folder must be there */
        const size_t there = tt_analyze_folder_there(c->folder[i]);
        if (tt_analyze_folder(ctx, c->folder[i])
            || make_arguments(ctx, c, i, &a)) return cli_failed(ctx);
        const int status = generate_try(ctx, a.n, (char **)(uintptr_t)a.at);
        tt_analyze_folder_remove(c->folder[i], there);
        if (!status) continue;
        fprintf(stderr, "tether compare: that is %s, number %d of --caches; "
                "nothing was run\n", c->policy[i], i + 1);
        if (!strncmp(c->policy[i], "causvid", 7)
            && !strstr(c->policy[i], "rollouts"))
            fprintf(stderr, "tether compare: clips have a length of their own, "
                    "as in causvid:latents=21:rollouts=3\n");
        return status;
    }
    return 0;
}

static int run_policy(tt_ctx *ctx, compare *c, int i)
{
    arguments a;
    const char *folder = c->folder[i];
    if (tt_analyze_folder(ctx, folder)) return cli_failed(ctx);
    if (make_arguments(ctx, c, i, &a)) return cli_failed(ctx);
    progress_say(&c->progress, "[%d of %d] %s", i + 1, c->n, c->policy[i]);
    progress_note(&c->progress, "into %s", folder);
    return cmd_generate(ctx, a.n, (char **)(uintptr_t)a.at);
}

static void log_policy(compare *c, int i, const char *event, int status)
{
    json_out j;
    if (!progress_log(&c->progress, &j, event)) return;
    json_str(&j, "policy", c->policy[i]);
    json_str(&j, "folder", c->folder[i]);
    if (status >= 0) json_int(&j, "status", status);
    progress_logged(&c->progress, &j);
}

/* The same; a failure leaves no empty folder behind. */
static int try_policy(tt_ctx *ctx, compare *c, int i)
{
    const size_t there = tt_analyze_folder_there(c->folder[i]);
    log_policy(c, i, "policy", -1);
    struct timespec t0, t1;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    const int status = run_policy(ctx, c, i);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    c->seconds[i] = (double)(t1.tv_sec - t0.tv_sec)
                  + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
    log_policy(c, i, "policy done", status);
    if (status) tt_analyze_folder_remove(c->folder[i], there);
    return status;
}

/* ---- the report ---------------------------------------------------------- */

/* Where the model was said to be: the last of these words for generate. */
static const char *model_of(const compare *c)
{
    static const char *const name[] = {"--model", "--dit", "--checkpoint"};
    const char *found = "not given";
    for (int i = 0; i < c->npass; i++) {
        const char *word = c->pass[i];
        const bool next = i + 1 < c->npass;
        if (!strncmp(word, "-m", 2)) {
            if (word[2]) found = word + 2;
            else if (next) found = c->pass[i + 1];
        }
        for (size_t k = 0; k < sizeof name / sizeof name[0]; k++) {
            const size_t n = strlen(name[k]);
            if (strncmp(word, name[k], n)) continue;
            if (word[n] == '=') found = word + n + 1;
            else if (!word[n] && next) found = c->pass[i + 1];
        }
    }
    return found;
}

static tt_status write_report(tt_ctx *ctx, const compare *c)
{
    tt_recording *run[POLICIES_MAX] = {NULL};
    tt_analyze_options opt = tt_analyze_defaults();
    opt.facts = (const char *const []){"command", c->command, "model",
                                       model_of(c), NULL};
    for (int i = 0; i < c->n && !ctx->status; i++)
        if (!tt_recording_open(ctx, &run[i], c->folder[i]))
            tt_recording_set_seconds(run[i], c->seconds[i]);
    if (!ctx->status)
        tt_report_write(ctx, c->output, "Cache policies compared", run, c->n,
                        &opt);
    for (int i = 0; i < c->n; i++) tt_recording_close(run[i]);
    return ctx->status;
}

/* ---- files that are there ------------------------------------------------ */

/* May the report be written? With --resume over that of the runs which go on;
 * whose the runs are, generate asks. */
static tt_status check_report(tt_ctx *ctx, const compare *c)
{
    const size_t n = strlen(c->output);
    if (n < 5 || strcasecmp(c->output + n - 5, ".html"))
        return tt_fail(ctx, TT_EINVAL, "-o %s: the report is a page for "
                       "browsers; give a name that ends in .html", c->output);
    TT_TRY(tt_out_check(ctx, c->output));
    if (c->overwrite) return ctx->status;
    if (c->resume && !access(c->folder[0], F_OK))
        return outputs_kind(ctx, "-o", c->output, "content=\"tether ",
                            "report");
    const output_name report = {"-o", c->output};
    return outputs_free(ctx, &report, 1, c->resume
                        ? "is there, and none of its runs"
                        : "is there; --resume goes on with its runs");
}

/* The folder of all runs is ours to the end: the system takes the lock back
 * when a program dies. Where folders cannot be locked there is none. */
static tt_status lock_runs(tt_ctx *ctx, compare *c)
{
    TT_TRY(tt_analyze_folder(ctx, c->all));
    c->lock = open(c->all, O_RDONLY | O_CLOEXEC);
    if (c->lock >= 0 && flock(c->lock, LOCK_EX | LOCK_NB)
        && errno == EWOULDBLOCK)
        return tt_fail(ctx, TT_EINVAL, "another `tether compare` is writing "
                       "into %s; wait for it, or give another --runs",
                       c->all);
    return ctx->status;
}

static int run_all(tt_ctx *ctx, compare *c)
{
    int status = 0;
    for (int i = 0; i < c->n && !status; i++)
        if ((status = try_policy(ctx, c, i)) != 0) break;
    if (status > 128) /* a signal */
        progress_say(&c->progress, "the same command with --resume goes on");
    if (status) return status;
    if (write_report(ctx, c)) return cli_failed(ctx);
    progress_wrote(&c->progress, c->output);
    return 0;
}

static int all_policies(tt_ctx *ctx, compare *c)
{
    int status = try_all(ctx, c);
    if (!status && check_report(ctx, c)) status = cli_failed(ctx);
    if (status) return status;
    const size_t there = tt_analyze_folder_there(c->all);
    status = lock_runs(ctx, c) ? cli_failed(ctx) : run_all(ctx, c);
    if (status) tt_analyze_folder_remove(c->all, there);
    if (c->lock >= 0) close(c->lock);
    return status;
}

int cmd_compare(tt_ctx *ctx, int argc, char **argv)
{
    compare c = {.output = "compare.html", .decode = true, .lock = -1};
    int status = parse(&c, argc, argv);
    if (status >= 0) return status;
    const cli_common common = {.command = me, .quiet = c.quiet,
                               .verbose = c.verbose, .log_json = c.log_json};
    if (split(ctx, &c)
        || progress_open(ctx, &c.progress, &common, false))
        return cli_failed(ctx);
    c.command = cli_command_line(ctx, "tether", argc, argv);
    status = all_policies(ctx, &c);
    progress_close(&c.progress);
    return status;
}
