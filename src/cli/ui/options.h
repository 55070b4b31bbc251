/* options.h: one table-driven option parser for every command.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A command describes its options once, in a table of opt_spec; parsing, help
 * text, defaults in the help and suggestions for misspelt names all come from
 * that table. Values are stored through offsets into the command's own
 * settings structure, which the command fills with defaults first.
 *
 * Accepted: --name value, --name=value, -x value, -xvalue, `_` for `-` in
 * names, `--` before positional arguments, unique prefixes are NOT accepted
 * (scripts would break when options are added). The last one wins. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/jsonout.h"
#include "run/run.h"

/* Rows are those of a run's settings (run.h), under shorter names. */
#define OPT_END TT_SETTING_END
#define OPT_GROUP TT_SETTING_GROUP
#define OPT_FLAG TT_SETTING_FLAG
#define OPT_SWITCH TT_SETTING_SWITCH
#define OPT_INT TT_SETTING_INT
#define OPT_U64 TT_SETTING_U64
#define OPT_REAL TT_SETTING_REAL
#define OPT_TEXT TT_SETTING_TEXT
#define OPT_READ TT_SETTING_READ
#define OPT_WRITE TT_SETTING_WRITE
#define OPT_MAYBE TT_SETTING_MAYBE
#define OPT_LIST TT_SETTING_LIST
typedef tt_setting opt_spec;
typedef tt_setting_kind opt_kind;

/* A name that another program, or an earlier version, has for an option. */
typedef struct opt_foreign {
    const char *name;          /* without dashes; NULL ends the list          */
    const char *instead;       /* a sentence that says what to use            */
} opt_foreign;

typedef struct opt_command {
    const char *name;          /* "generate"                                  */
    const char *summary;       /* one line in `tether --help`                 */
    const char *usage;         /* arguments after "tether generate"           */
    const char *intro;         /* paragraph under the usage line, or NULL     */
    const char *examples;      /* lines of the Examples section, or NULL      */
    const opt_spec *options;
    const opt_foreign *foreign; /* answered with their sentence; or NULL      */
    const char *bare;          /* what is missing where nothing is given, a
                                  sentence; NULL: nothing                     */
    int positional_max;        /* 0: none taken                               */
    bool no_log;               /* --log-json would have no effect             */
    bool of_a_run;             /* the settings begin with a tt_settings, and
                                  its rows are set by name                    */
} opt_command;

#define OPT_SEEN_MAX TT_SETTINGS_MAX
#define OPT_POSITIONAL_MAX 1024

/* What every command takes. */
typedef struct cli_common {
    const char *command;   /* its name                                        */
    bool part;             /* of another one, which says what an interruption
                              leaves                                          */
    int64_t threads;       /* 0: default                                      */
    const char *backend;   /* NULL: default                                   */
    const char *cls;       /* NULL: f32                                       */
    bool quiet, verbose;
    const char *log_json;  /* NULL: none                                      */
} cli_common;

typedef struct opt_result {
    const char *seen[OPT_SEEN_MAX];   /* names given, in order                */
    const char *value[OPT_SEEN_MAX];  /* their texts; NULL for flags          */
    int nseen;
    const char *positional[OPT_POSITIONAL_MAX];
    int npositional;
} opt_result;

/* What a step before the work returns: GO_ON, or the exit status with which the
 * command ends at once (it has said why). */
enum { GO_ON = -1 };

/* Parse argv[1..argc-1] for `cmd` into `settings` (the command's structure)
 * and `common`: GO_ON, 0 after --help (printed to stdout), 2 after a usage
 * error (one or two lines on stderr, with the nearest known name). An output
 * (OPT_WRITE) that is an input (OPT_READ, a positional argument) is such an
 * error: the input would be lost. */
int opt_parse(const opt_command *cmd, void *settings, cli_common *common,
              opt_result *result, int argc, char **argv);

/* What a command says that was given nothing: what is missing, usage, an
 * example. Returns 2. */
int opt_bare(const opt_command *cmd);

/* One option by itself, NAME or NAME=VALUE. GO_ON, or the exit status. */
int opt_word(const opt_command *cmd, void *settings, const char *word);

/* Would an output of these settings be written over an input (OPT_WRITE,
 * OPT_READ, a positional argument)? opt_parse asks it. GO_ON, or 2. */
int opt_outputs(const opt_command *cmd, const void *settings,
                const cli_common *common, const opt_result *result);

/* Was the option given on the command line? */
bool opt_given(const opt_result *r, const char *name);

/* "1,2,4" into values[0..max): the count, or -1 when malformed or too long.*/
int opt_list_int(int64_t *values, int max, const char *text);

/* Usage error: "tether CMD: <sentence>" and a hint; returns 2. */
int opt_usage(const char *command, const char *fmt, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/* What the library said of the words: 2 where they are wrong, and 1 after a
 * failure that is not their fault. */
int opt_refused(const char *command, const tt_ctx *ctx);

#endif
