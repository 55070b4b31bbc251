/* cmd_compare.c: tether compare, several cache policies on the same noise.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing here is special: for every policy it is a run with the settings
 * given, into a run folder of its own, and at the end the report over
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
#include "cli/generate/generate.h"
#include "cli/ui/manual.h"
#include "cli/ui/outputs.h"
#include "cli/ui/progress.h"
#include "analyze/analyze.h"
#include "io/outfile.h"
#include "io/video.h"

enum { POLICIES_MAX = 16, PATH_SIZE = 4096 };

#define TITLE "Cache policies compared"

typedef struct compare {
    tt_settings given;            /* as on the command line; first            */
    const char *caches, *runs;
    cli_common common;            /* log_json: ours; a run's is in its folder */
    const char *output;
    tt_settings base;             /* of every run, without its own            */
    const char *all;              /* the folder of all runs                   */
    int lock;                     /* descriptor that holds it                 */
    progress progress;
    int n;
    char *policy[POLICIES_MAX];   /* "tether:tau=0.6", as given               */
    char *folder[POLICIES_MAX];
    const char *command;          /* all of it, for the report                */
    double seconds[POLICIES_MAX]; /* each took                                */
} compare;

#define EXAMPLE                                                                \
    "  tether compare --caches fifo,memrope,tether -m MODEL -p \"a cat\" "     \
    "--latents 60 \\\n      -o cat.html"

static const char help[] =
    "tether compare: several cache policies on the same model, prompt and "
    "noise\n"
    "\n"
    "usage: tether compare --caches A,B,C [options of generate] -o "
    "REPORT.html\n"
    "\n"
    "Every policy generates its video into a run folder, which `tether "
    "analyze`\nreads too; the report is one self-contained HTML page with "
    "the\nvideos, the caches step by step, and a table.\n"
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
    "Example\n" EXAMPLE "\n";

static const char example[] = EXAMPLE;

static const char me[] = "compare";

/* ---- options ------------------------------------------------------------- */

/* Those of a run, and two of our own. */
static opt_command *command(void)
{
    static opt_spec rows[OPT_SEEN_MAX + 2];
    static opt_command c = {
        .name = me, .options = rows, .of_a_run = true,
        .usage = "--caches A,B,C [options of generate] -o REPORT.html",
        .examples = example,
        .bare = "--caches needs a list of policies, like fifo,memrope,tether"};
    int n = 0;
    rows[n++] = (opt_spec){OPT_TEXT, "caches", 0, offsetof(compare, caches),
                           "LIST", "policies, separated by commas"};
    rows[n++] = (opt_spec){OPT_TEXT, "runs", 0, offsetof(compare, runs),
                           "FOLDER", "where the runs go"};
    for (const opt_spec *o = tt_settings_table(); o->kind; o++) rows[n++] = *o;
    rows[n] = (opt_spec){OPT_END, NULL, 0, 0, NULL, NULL};
    return &c;
}

/* Settings that we fill in ourselves. */
static bool is_taken(const char *name)
{
    static const char *const list[] = {
        "cache", "analyze", "label", "contact-sheet", "animation",
        "latents-out", "record", "dump", "trace-cache", "num-samples",
        "prompt-file", "extended-prompt-file", "vbench-name", "preview"};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (!strcmp(name, list[i])) return true;
    return false;
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

/* Help, when it is asked for. */
static int help_asked(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return printf("%s", help) < 0;
        if (!strncmp(argv[i], "--help=", 7)) return manual(argv[i] + 7);
    }
    return GO_ON;
}

/* What every run gets: all that was given but the name of the report. */
static int fill_base(compare *c)
{
    const tt_settings_given *g = &c->given.given;
    tt_ctx ctx = {.status = TT_OK};
    for (int i = 0; i < g->n; i++) {
        if (is_taken(g->name[i]))
            return opt_usage(me, "--%s is filled in for every policy and "
                             "cannot be given", g->name[i]);
        if (!strcmp(g->name[i], "seed") && !strcmp(g->value[i], "random"))
            return opt_usage(me, "--seed random would give every policy "
                             "another noise; give a number");
        if (strcmp(g->name[i], "output"))
            tt_settings_set(&ctx, &c->base, g->name[i], g->value[i]);
    }
    return ctx.status ? opt_refused(me, &ctx) : GO_ON;
}

static int parse(compare *c, int argc, char **argv)
{
    opt_result words;
    int status = help_asked(argc, argv);
    if (status != GO_ON) return status;
    status = opt_parse(command(), c, &c->common, &words, argc, argv);
    if (status == GO_ON) status = fill_base(c);
    if (status != GO_ON) return status;
    if (c->given.output) c->output = c->given.output;
    if (!c->caches || !*c->caches)
        return opt_usage(me, "--caches needs a list of policies, like "
                         "fifo,memrope,tether");
    return GO_ON;
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
static tt_status compare_split(tt_ctx *ctx, compare *c)
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

/* "tether:tau=0.6:unify": the policy, and settings of its own. */
static int set_policy(tt_ctx *ctx, tt_settings *s, const char *policy)
{
    int status = GO_ON;
    char *rest = tt_strdup(ctx, &ctx->scratch, policy);
    for (int i = 0; rest && status == GO_ON; i++) {
        char *colon = strchr(rest, ':');
        if (colon) *colon = 0;
        if (i) status = opt_word(generate_command(), s, rest);
        else tt_settings_set(ctx, s, "cache", rest);
        rest = colon ? colon + 1 : NULL;
    }
    return ctx->status ? cli_failed(ctx) : status;
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

/* The settings of run i; `common` gets its log. */
static int settings_of(tt_ctx *ctx, const compare *c, int i, tt_settings *s,
                       cli_common *common)
{
    const char *folder = c->folder[i];
    *common = c->common;
    common->command = "generate";
    if (common->log_json)
        common->log_json = print_name(ctx, "%s/log.json", folder);
    tt_settings_copy(ctx, s, &c->base);
    const int status = set_policy(ctx, s, c->policy[i]);
    if (status != GO_ON) return status;
    const bool decode = !c->base.no_decode;
    const struct { const char *name, *text; } set[] = {
        {"analyze", folder}, {"label", c->policy[i]},
        {"latents-out",
         print_name(ctx, "%s/video.latents.safetensors", folder)},
        {"contact-sheet",
         decode ? print_name(ctx, "%s/sheet.png", folder) : NULL},
        {"output", decode ? video_name(ctx, folder) : NULL}};
    for (size_t k = 0; k < sizeof set / sizeof *set && !ctx->status; k++)
        if (set[k].text) tt_settings_set(ctx, s, set[k].name, set[k].text);
    return ctx->status ? cli_failed(ctx) : GO_ON;
}

static int try_settings(tt_ctx *ctx, const compare *c, int i)
{
    tt_settings s = {0};
    cli_common common;
    int status = settings_of(ctx, c, i, &s, &common);
    if (status == GO_ON) status = generate_try(ctx, &s, &common);
    tt_settings_free(&s);
    return status;
}

/* Does the policy of "NAME:KNOB=VALUE" make a video of clips? */
static bool makes_clips(const char *policy)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(policy, ":"), policy);
    const tt_policy_class *c = tt_policy_find(name);
    return c && c->flags & TT_RESTARTS;
}

/* A mistake in the last policy is found before the first one runs. */
static int try_all(tt_ctx *ctx, compare *c)
{
    for (int i = 0; i < c->n; i++) {
        /* names of outputs are tried as well, so the folder must be there */
        const size_t there = tt_analyze_folder_there(c->folder[i]);
        if (tt_analyze_folder(ctx, c->folder[i])) return cli_failed(ctx);
        const int status = try_settings(ctx, c, i);
        tt_analyze_folder_remove(c->folder[i], there);
        if (!status) continue;
        fprintf(stderr, "tether compare: that is %s, number %d of --caches; "
                "nothing was run\n", c->policy[i], i + 1);
        if (makes_clips(c->policy[i]) && !strstr(c->policy[i], "rollouts"))
            fprintf(stderr, "tether compare: clips have a length of their own, "
                    "as in causvid:latents=21:rollouts=3\n");
        return status;
    }
    return 0;
}

static int run_policy(tt_ctx *ctx, compare *c, int i)
{
    tt_settings s = {0};
    cli_common common;
    if (tt_analyze_folder(ctx, c->folder[i])) return cli_failed(ctx);
    int status = settings_of(ctx, c, i, &s, &common);
    if (status == GO_ON) {
        progress_say(&c->progress, "[%d of %d] %s", i + 1, c->n, c->policy[i]);
        progress_note(&c->progress, "into %s", c->folder[i]);
        status = generate_videos(ctx, &s, &common, 0, NULL);
    }
    tt_settings_free(&s);
    return status;
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

/* The same; a failure leaves no empty folder. */
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

/* Where the model was said to be: the last of these settings. */
static const char *model_of(const compare *c)
{
    static const char *const name[] = {"model", "dit", "checkpoint"};
    const tt_settings_given *g = &c->given.given;
    for (int i = g->n; i-- > 0;)
        for (size_t k = 0; k < sizeof name / sizeof name[0]; k++)
            if (!strcmp(g->name[i], name[k])) return g->value[i];
    return "not given";
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
        tt_report_write(ctx, c->output, TITLE, run, c->n,
                        &opt);
    for (int i = 0; i < c->n; i++) tt_recording_close(run[i]);
    return ctx->status;
}

/* ---- files that are there ------------------------------------------------ */

/* May the report be written? With --resume over that of runs which are there;
 * whose they are, generate asks. */
static tt_status check_report(tt_ctx *ctx, const compare *c)
{
    const size_t n = strlen(c->output);
    if (n < 5 || strcasecmp(c->output + n - 5, ".html"))
        return tt_fail(ctx, TT_EINVAL, "-o %s: the report is a page for "
                       "browsers; give a name that ends in .html", c->output);
    TT_TRY(tt_out_check(ctx, c->output));
    if (c->given.overwrite) return ctx->status;
    if (c->given.resume && !access(c->folder[0], F_OK))
        return outputs_kind(ctx, "-o", c->output, "<title>" TITLE, "report");
    const output_name report = {"-o", c->output};
    return outputs_free(ctx, &report, 1, 1, c->given.resume
                        ? "it tells of other runs"
                        : "--resume goes on with its runs");
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
    compare c = {.output = "compare.html", .lock = -1,
                 .given = tt_settings_defaults(),
                 .base = tt_settings_defaults()};
    int status = parse(&c, argc, argv);
    if (status == GO_ON && (compare_split(ctx, &c)
                       || progress_open(ctx, &c.progress, &c.common, false)))
        status = cli_failed(ctx);
    if (status == GO_ON) {
        c.command = cli_command_line(ctx, "tether", argc, argv);
        status = all_policies(ctx, &c);
        progress_close(&c.progress);
    }
    tt_settings_free(&c.given);
    tt_settings_free(&c.base);
    return status;
}
