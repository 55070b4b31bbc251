/* manual.h: manual pages, and lists of options for the completion of shells.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Both come from the tables that --help prints, through a value of --help:
 *     tether generate --help=man      the manual page, for man(7)
 *     tether generate --help=words    one line an option, cells between tabs:
 *                                     --name, -x, argument, kind, help
 * tools/install.sh makes the installed files from them. */
#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H

#include "cli/ui/options.h"

/* To stdout, in the form "man" or "words"; returns the exit status, 2 when
 * there is no such form. `common` are the options of every command. */
int manual_command(const opt_command *cmd, const opt_spec *common,
                   const char *form);

/* The same for a command without a table: `help` is what its --help prints,
 * word[0..n) what may follow its name, as names or as lines of "words". */
int manual_text(const char *name, const char *summary, const char *help,
                const char *const *word, int n, const char *form);

/* Parts of a page, for the page of the program itself. */
void manual_begin(const char *page, const char *summary);
void manual_section(const char *title);
/* An entry of a list: a name in bold, then its text. */
void manual_item(const char *name, const char *text);
/* Running text; '\n' starts a new line. Or lines as they are. */
void manual_words(const char *text);
void manual_lines(const char *text);
/* Where the other pages are. */
void manual_end(const char *page);

#endif
