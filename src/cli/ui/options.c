/* options.c: one table-driven option parser for every command.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   nothing is stored for an option whose value does not parse. */
#include "cli/ui/options.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/ui/foreign.h"
#include "cli/ui/manual.h"
#include "cli/ui/outputs.h"
#include "core/nearest.h"
#include "tether/classes.h"
#include "io/io.h"
#include "os/os.h"

#define CLASS_HELP(name, NAME, kernels, saved, summary, machines)              \
    "\n" #name ": " summary
#define COMMON_ROWS                                                            \
    {OPT_GROUP, NULL, 0, 0, NULL, "Common"},                                   \
    {OPT_INT, "threads", 't', offsetof(cli_common, threads), "N",              \
     "threads to use (default: OMP_NUM_THREADS, or the CPUs that may be "      \
     "used)"},                                                                 \
    {OPT_TEXT, "backend", 0, offsetof(cli_common, backend), "NAME",            \
     "operator set; `tether --version` lists those built in"},                 \
    {OPT_TEXT, "class", 0, offsetof(cli_common, cls), "NAME",                  \
     "how linear layers and attention compute (the VAE has --vae-class):"      \
     TT_CLASSES(CLASS_HELP)},                                                  \
    {OPT_FLAG, "quiet", 'q', offsetof(cli_common, quiet), NULL,                \
     "errors and warnings only"},                                              \
    {OPT_FLAG, "verbose", 'v', offsetof(cli_common, verbose), NULL,            \
     "say more about what is loaded and decided"}
static const opt_spec with_log[] = {
    COMMON_ROWS,
    {OPT_WRITE, "log-json", 0, offsetof(cli_common, log_json), "FILE",
     "one JSON line per event, flushed at once (--resume continues it)"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};
static const opt_spec without_log[] = {
    COMMON_ROWS,
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_spec *common_options(const opt_command *cmd)
{
    return cmd->no_log ? without_log : with_log;
}

/* ---- help ---------------------------------------------------------------- */

#define HELP_COLUMN 30

/* Words of `text` from column `column` on; the cursor is there already. */
static void print_wrapped(const char *text, int column)
{
    int at = column;
    bool space = false, line = false;
    while (*text) {
        int word = (int)strcspn(text, " \n");
        bool full = word && at > column && at + space + word > 78;
        if (full || line) {
            printf("\n%*s", column, "");
            at = column;
            space = false;
        }
        printf("%s%.*s", word && space ? " " : "", word, text);
        at += word + (word && space);
        text += word;
        space = *text == ' ';
        line = *text == '\n';
        if (*text) text++;
    }
    putchar('\n');
}

static void print_options(const opt_spec *o)
{
    for (; o->kind; o++) {
        if (o->kind == OPT_GROUP) {
            printf("\n%s\n", o->help);
            continue;
        }
        if (!o->help) continue;
        char left[128];
        int n = snprintf(left, sizeof left, "  %c%c%s --%s%s%s%s%s",
                         o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                         o->letter ? "," : " ",
                         o->kind == OPT_SWITCH ? "[no-]" : "", o->name,
                         o->arg ? (o->kind == OPT_MAYBE ? "[=" : " ") : "",
                         o->arg ? o->arg : "",
                         o->arg && o->kind == OPT_MAYBE ? "]" : "");
        printf("%s", left);
        if (n + 1 >= HELP_COLUMN)
            printf("\n%*s", HELP_COLUMN, "");
        else
            printf("%*s", HELP_COLUMN - n, "");
        print_wrapped(o->help, HELP_COLUMN);
    }
}

static void options_print_help(const opt_command *cmd)
{
    printf("tether %s: %s\n\nusage: tether %s %s\n", cmd->name, cmd->summary,
           cmd->name, cmd->usage);
    if (cmd->intro) {
        putchar('\n');
        print_wrapped(cmd->intro, 0);
    }
    print_options(cmd->options);
    print_options(common_options(cmd));
    if (cmd->examples) printf("\nExamples\n%s\n", cmd->examples);
}

/* ---- refusals ------------------------------------------------------------ */

int opt_usage(const char *command, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "tether %s: ", command);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    return 2;
}

int opt_refused(const char *command, const tt_ctx *ctx)
{
    return ctx->status == TT_EINVAL ? opt_usage(command, "%s", tt_message(ctx))
                                    : cli_failed(ctx);
}

/* The row of that name, of the command or of all of them. */
static const opt_spec *options_row_of(const opt_command *cmd, const char *name)
{
    const opt_spec *tables[] = {cmd->options, common_options(cmd)};
    for (int t = 0; t < 2; t++)
        for (const opt_spec *o = tables[t]; o->kind; o++)
            if (o->name && o->help && !strcmp(o->name, name)) return o;
    return NULL;
}

/* --model of convert is a kind of model. */
static bool has_option(const void *user, const char *name)
{
    const opt_spec *o = options_row_of(user, name);
    return o && (strcmp(name, "model") || !strcmp(o->arg, "DIR"));
}

/* What is known of an option that another program has; GO_ON: nothing. `said`
 * is how it was typed. */
static int foreign(const opt_command *cmd, const char *said, const char *name)
{
    foreign_answer a;
    for (const opt_foreign *f = cmd->foreign; f && f->name; f++)
        if (!strcmp(f->name, name))
            return opt_usage(cmd->name, "unknown option %s: %s", said,
                             f->instead);
    if (!foreign_find(&a, name, has_option, cmd)) return GO_ON;
    if (!a.use)
        return opt_usage(cmd->name, "unknown option %s: %s", said, a.words);
    const opt_spec *o = options_row_of(cmd, a.use);
    return opt_usage(cmd->name, "unknown option %s: use --%s%s%s%s%s", said,
                     o->name, o->arg ? " " : "", o->arg ? o->arg : "",
                     a.words ? ", " : "", a.words ? a.words : "");
}

/* `word` is what was typed after --, `name` the same with - for _. */
static int unknown(const opt_command *cmd, const char *name, const char *word)
{
    const char *names[OPT_SEEN_MAX];
    char said[72];
    int n = 0;
    const opt_spec *tables[] = {cmd->options, common_options(cmd)};
    snprintf(said, sizeof said, "--%.*s", (int)strcspn(word, "="), word);
    const int status = foreign(cmd, said, name);
    if (status != GO_ON) return status;
    for (int t = 0; t < 2; t++)
        for (const opt_spec *o = tables[t]; o->kind; o++)
            if (o->name && o->help && n < OPT_SEEN_MAX) names[n++] = o->name;
    const char *near = nearest_name(name, names, n);
    if (near)
        return opt_usage(cmd->name, "unknown option %s; did you mean --%s?",
                         said, near);
    return opt_usage(cmd->name, "unknown option %s; %s`tether %s --help` "
                     "lists the options", said, tt_settings_find(name)
                     ? "`tether generate` has it, and " : "", cmd->name);
}

/* A word after one dash that is no letter of ours, or that is the name of an
 * option: "-steps" would be a seed otherwise. GO_ON: it is a letter. */
static int unknown_letter(const opt_command *cmd, const char *word, bool known)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 1, "="), word + 1);
    for (char *c = name; *c; c++)
        if (*c == '_') *c = '-';
    if (name[1] && options_row_of(cmd, name))
        return opt_usage(cmd->name, "unknown option %s; did you mean --%s?",
                         word, name);
    int status = name[1] ? foreign(cmd, word, name) : GO_ON;
    if (status != GO_ON || known) return status;
    const char *theirs = foreign_letter(word[1]);
    snprintf(name, sizeof name, "-%c", word[1]);
    if (theirs && cmd->of_a_run) status = foreign(cmd, name, theirs);
    if (status != GO_ON) return status;
    return opt_usage(cmd->name, "unknown option %s; `tether %s --help` lists "
                     "the options", name, cmd->name);
}

/* ---- values -------------------------------------------------------------- */

int opt_list_int(int64_t *values, int max, const char *text)
{
    int n = 0;
    while (1) {
        char *end;
        errno = 0;
        long long v = strtoll(text, &end, 10);
        if (end == text || errno || n == max) return -1;
        values[n++] = v;
        if (!*end) return n;
        if (*end != ',') return -1;
        text = end + 1;
    }
}

/* ---- parsing ------------------------------------------------------------- */

/* Find by name ("no-x" finds the switch x and sets *no) or by letter. */
static const opt_spec *options_find(const opt_command *cmd, const char *name,
                                    char letter, bool *no, bool *is_common)
{
    const opt_spec *tables[] = {cmd->options, common_options(cmd)};
    for (int t = 0; t < 2; t++)
        for (const opt_spec *o = tables[t]; o->kind; o++) {
            *no = false;
            *is_common = t == 1;
            if (!o->name) continue;
            if (letter && o->letter == letter) return o;
            if (!name) continue;
            if (!strcmp(o->name, name)) return o;
            if (o->kind == OPT_SWITCH && !strncmp(name, "no-", 3)
                && !strcmp(o->name, name + 3)) {
                *no = true;
                return o;
            }
        }
    return NULL;
}

static bool takes_value(opt_kind k)
{
    return k == OPT_INT || k == OPT_U64 || k == OPT_REAL || k == OPT_TEXT
        || k == OPT_READ || k == OPT_WRITE || k == OPT_LIST;
}

/* An option as it was spelled. */
typedef struct spelled {
    const opt_spec *o;
    const char *text;      /* its value, NULL when there is none (yet)        */
    bool no, is_common;    /* --no-NAME; of the table of every command        */
} spelled;

/* The option NAME or NAME=VALUE. */
static int spell_name(const opt_command *cmd, spelled *s, const char *word)
{
    char name[64] = "";
    const size_t len = strcspn(word, "=");
    if (len >= sizeof name)
        return opt_usage(cmd->name, "unknown option --%s", word);
    for (size_t c = 0; c < len; c++)
        name[c] = word[c] == '_' ? '-' : word[c];
    if (word[len] == '=') s->text = word + len + 1;
    s->o = options_find(cmd, name, 0, &s->no, &s->is_common);
    return s->o ? GO_ON : unknown(cmd, name, word);
}

/* The option of `word`, with a value that is part of it. */
static int spell(const opt_command *cmd, spelled *s, const char *word)
{
    *s = (spelled){0};
    if (word[1] != '-') {
        if (word[2]) s->text = word + 2;
        s->o = options_find(cmd, NULL, word[1], &s->no, &s->is_common);
        return unknown_letter(cmd, word, s->o != NULL);
    }
    return spell_name(cmd, s, word + 2);
}

/* The text of a row; NULL when it was not given. */
static const char *text_of(const opt_spec *o, const void *settings)
{
    return *(const char *const *)(const void *)((const char *)settings
                                                + o->offset);
}

/* A list with one more value; NULL: it is too long. There is one in a command,
 * and it stays until the program ends. */
static const char *longer(const char *before, const char *text)
{
    static char list[32768];
    if (!before || !*text) *list = 0;
    const size_t n = strlen(list);
    if (n + strlen(text) + 2 > sizeof list) return NULL;
    sprintf(list + n, "%s%s", n ? "\n" : "", text);
    return list;
}

/* The value in its place; none says what is missing. */
static int options_keep(const opt_command *cmd, const spelled *s, void *base,
                        const char *text)
{
    tt_ctx ctx = {.status = TT_OK};
    if (cmd->of_a_run && tt_settings_find(s->o->name))
        tt_settings_set(&ctx, base, s->o->name, text);
    else if (s->o->kind == OPT_LIST && text
             && !(text = longer(text_of(s->o, base), text)))
        return opt_usage(cmd->name, "--%s is given too often", s->o->name);
    else
        tt_setting_store(&ctx, s->o, base, text);
    return ctx.status ? opt_refused(cmd->name, &ctx) : GO_ON;
}

/* The value after argv[*i], which *i moves on to. */
static int take_value(const opt_command *cmd, spelled *s, void *base, int argc,
                      char **argv, int *i)
{
    const opt_spec *o = s->o;
    if (takes_value(o->kind) && !s->text) {
        if (*i + 1 >= argc)
            return options_keep(cmd, s, base, NULL);
        s->text = argv[++*i];
    } else if (o->kind == OPT_MAYBE && !s->text) {
        if (*i + 1 < argc && argv[*i + 1][0] != '-') s->text = argv[++*i];
    } else if (s->text && (o->kind == OPT_FLAG || o->kind == OPT_SWITCH)) {
        return opt_usage(cmd->name, "--%s takes no value, but `%s` was given",
                         o->name, s->text);
    }
    return GO_ON;
}

int opt_word(const opt_command *cmd, void *settings, const char *word)
{
    spelled s = {0};
    const int status = spell_name(cmd, &s, word);
    if (status != GO_ON) return status;
    return options_keep(cmd, &s, settings, s.o->kind != OPT_SWITCH ? s.text
                                   : s.no ? "no" : "yes");
}

/* A variable of the shell that is not set gives no name. */
static int options_check_name(const opt_command *cmd, const opt_spec *o,
                              const char *text)
{
    if ((o->kind != OPT_READ && o->kind != OPT_WRITE) || *text
        || *o->arg == '[') return GO_ON;
    return opt_usage(cmd->name, "--%s needs a name (%s), but an empty one was "
                     "given", o->name, o->arg);
}

/* Names of files are words of argv, with slashes as this system has them. */
static void take_slashes(const opt_spec *o, const char *text)
{
    static const char *const args[] = {"FILE", "FOLDER", "DIR", "PATH"};
    bool names = !o || o->kind == OPT_READ || o->kind == OPT_WRITE;
    for (int i = 0; o && o->arg && i < 4; i++)
        names |= !strncmp(o->arg, args[i], strlen(args[i]));
    if (names && text) os_slashes((char *)(uintptr_t)text);
}

/* One option at argv[*i]; advances *i over a separate value. */
static int parse_one(const opt_command *cmd, void *settings,
                     cli_common *common, opt_result *r, int argc, char **argv,
                     int *i)
{
    spelled s;
    int status = spell(cmd, &s, argv[*i]);
    void *base = s.is_common ? (void *)common : settings;
    if (status == GO_ON) status = take_value(cmd, &s, base, argc, argv, i);
    if (status != GO_ON) return status;
    take_slashes(s.o, s.text);
    const char *text = s.o->kind == OPT_SWITCH ? (s.no ? "no" : "yes") : s.text;
    status = options_check_name(cmd, s.o, text);
    if (status == GO_ON) status = options_keep(cmd, &s, base, text);
    if (status == GO_ON && r->nseen < OPT_SEEN_MAX) {
        r->value[r->nseen] = text;
        r->seen[r->nseen++] = s.o->name;
    }
    return status;
}

/* ---- inputs that would be lost ------------------------------------------- */

static bool writes(const opt_spec *o)
{
    return o->kind == OPT_WRITE
        || (o->kind == OPT_MAYBE && !strncmp(o->arg, "FILE", 4));
}

/* Is `path` a file of a list, as --lora takes it? */
static bool is_listed(const char *path, const char *list)
{
    tt_ctx ctx = {.status = TT_OK};
    tt_lora l;
    while (list && *list && !tt_lora_next(&ctx, &list, &l))
        if (outputs_hit(path, l.path)) return true;
    return false;
}

/* Is `in` what a video `path` is called until it is complete? */
static bool is_unfinished(const char *path, const char *in)
{
    char name[4200];
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    if (!dot || snprintf(name, sizeof name, "%.*s.unfinished%s",
                         (int)(dot - path), path, dot) >= (int)sizeof name)
        return false;
    return outputs_hit(name, in);
}

/* Is `path`, written by --`name`, one of the inputs? */
static int options_check_output(const opt_command *cmd, const void *settings,
                                const opt_result *r, const char *name,
                                const char *path)
{
    for (const opt_spec *o = cmd->options; o->kind; o++) {
        const char *in = o->kind == OPT_READ ? text_of(o, settings) : NULL;
        if (in && outputs_hit(path, in))
            return opt_usage(cmd->name, "--%s would write over %s, which --%s "
                             "reads; give the output another name", name, path,
                             o->name);
        if (in && is_unfinished(path, in))
            return opt_usage(cmd->name, "--%s reads %s, and --%s %s is called "
                             "so until it is complete; give the output another "
                             "name", o->name, in, name, path);
        if (in && outputs_inside(path, in))
            return opt_usage(cmd->name, "--%s would write over %s, a file of "
                             "the folder %s, which --%s reads; give the "
                             "output another name", name, path, in, o->name);
        if (o->kind == OPT_LIST && is_listed(path, text_of(o, settings)))
            return opt_usage(cmd->name, "--%s would write over %s, which --%s "
                             "reads; give the output another name", name, path,
                             o->name);
    }
    for (int i = 0; i < r->npositional; i++)
        if (outputs_hit(path, r->positional[i]))
            return opt_usage(cmd->name, "--%s would write over %s, which is "
                             "read; give the output another name", name, path);
    return GO_ON;
}

int opt_outputs(const opt_command *cmd, const void *settings,
                const cli_common *common, const opt_result *r)
{
    const opt_spec *tables[] = {cmd->options, common_options(cmd)};
    for (int t = 0; t < 2; t++)
        for (const opt_spec *o = tables[t]; o->kind; o++) {
            const char *path = !writes(o) ? NULL
                             : text_of(o, t ? (const void *)common : settings);
            const int status = path
                ? options_check_output(cmd, settings, r, o->name, path)
                : GO_ON;
            if (status != GO_ON) return status;
        }
    return GO_ON;
}

/* Help, when it is asked for. */
static int options_help_asked(const opt_command *cmd, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            options_print_help(cmd);
            return 0;
        } else if (!strncmp(argv[i], "--help=", 7)) {
            return manual_command(cmd, common_options(cmd), argv[i] + 7);
        }
    return GO_ON;
}

/* The word `number` of the command, which is no option. */
static int take_argument(const opt_command *cmd, opt_result *r,
                         const char *word, int number)
{
    if (!*word)
        return opt_usage(cmd->name, "argument %d is empty; is a variable of "
                         "the shell not set?", number);
    if (r->npositional == cmd->positional_max)
        return opt_usage(cmd->name, cmd->positional_max
                         ? "one argument too many: `%s`"
                         : "unexpected argument `%s` (options begin with a "
                           "dash; quote texts with spaces)", word);
    take_slashes(NULL, word);
    r->positional[r->npositional++] = word;
    return GO_ON;
}

/* The first example: a line, and those that it goes on with. */
static void print_example(const char *text)
{
    bool more = text != NULL;
    while (more) {
        const int n = (int)strcspn(text, "\n");
        more = n > 0 && text[n - 1] == '\\' && text[n];
        fprintf(stderr, "%.*s\n", n, text);
        text += n + (text[n] == '\n');
    }
}

int opt_bare(const opt_command *cmd)
{
    opt_usage(cmd->name, "%s", cmd->bare);
    fprintf(stderr, "usage: tether %s %s\n", cmd->name, cmd->usage);
    if (cmd->examples) fprintf(stderr, "example:\n");
    print_example(cmd->examples);
    fprintf(stderr, "`tether %s --help` explains it and lists the options\n",
            cmd->name);
    return 2;
}

/* Nothing was given but what every command takes. */
static bool is_bare(const opt_command *cmd, const opt_result *r)
{
    for (const opt_spec *o = cmd->options; o->kind; o++)
        for (int i = 0; i < r->nseen; i++)
            if (o->name && r->seen[i] == o->name) return false;
    return !r->npositional;
}

int opt_parse(const opt_command *cmd, void *settings, cli_common *common,
              opt_result *result, int argc, char **argv)
{
    bool rest = false;
    memset(result, 0, sizeof *result);
    memset(common, 0, sizeof *common);
    common->command = cmd->name;
    const int asked = options_help_asked(cmd, argc, argv);
    if (asked != GO_ON) return asked;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        int status = GO_ON;
        if (!rest && !strcmp(word, "--"))
            rest = true;
        else if (!rest && word[0] == '-' && word[1])
            status = parse_one(cmd, settings, common, result, argc, argv, &i);
        else
            status = take_argument(cmd, result, word, i);
        if (status != GO_ON) return status;
    }
    if (common->threads < 0 || common->threads > 4096
        || (opt_given(result, "threads") && common->threads == 0))
        return opt_usage(cmd->name, "--threads must be 1 to 4096, but %lld "
                         "was given", (long long)common->threads);
    if (cmd->bare && is_bare(cmd, result)) return opt_bare(cmd);
    return opt_outputs(cmd, settings, common, result);
}

bool opt_given(const opt_result *r, const char *name)
{
    for (int i = 0; i < r->nseen; i++)
        if (!strcmp(r->seen[i], name)) return true;
    return false;
}
