/* manual.c: manual pages, and lists of options for the completion of shells.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   a line of a page never begins with a control character of roff. */
#include "cli/ui/manual.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tether/version.h"

/* ---- characters ---------------------------------------------------------- */

/* n bytes of text. A dash stays one that can be copied into a shell. */
static void manual_put(const char *text, size_t n)
{
    if (n && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
    for (size_t i = 0; i < n; i++)
        switch (text[i]) {
        case '\\': fputs("\\e", stdout); break;
        case '-': fputs("\\-", stdout); break;
        case '\'': fputs("\\(aq", stdout); break;
        case '`': fputs("\\(ga", stdout); break;
        default: putchar(text[i]);
        }
}

static void put_all(const char *text)
{
    manual_put(text, strlen(text));
}

/* One line of the page for each line of `text`; empty ones have no meaning. */
static void each_line(const char *text, const char *empty, const char *between)
{
    for (bool first = true;; first = false) {
        const size_t n = strcspn(text, "\n");
        if (!first && n) fputs(between, stdout);
        if (n) manual_put(text, n);
        fputs(n ? "\n" : text[n] ? empty : "", stdout);
        if (!text[n]) return;
        text += n + 1;
    }
}

void manual_words(const char *text)
{
    each_line(text, "", ".br\n");
}

void manual_lines(const char *text)
{
    printf(".nf\n");
    each_line(text, "\n", "");
    printf(".fi\n");
}

/* ---- parts of a page ----------------------------------------------------- */

void manual_begin(const char *page, const char *summary)
{
    printf(".TH ");
    for (const char *c = page; *c; c++) putchar(toupper((unsigned char)*c));
    printf(" 1 \"\" \"tether %s\" \"User commands\"\n.SH NAME\n", tt_version());
    put_all(page);
    printf(" \\- ");
    put_all(summary);
    putchar('\n');
}

void manual_section(const char *title)
{
    printf(".SH %s\n", title);
}

void manual_item(const char *name, const char *text)
{
    printf(".TP\n.B ");
    put_all(name);
    putchar('\n');
    manual_words(text);
}

void manual_end(const char *page)
{
    manual_section("EXIT STATUS");
    printf("0 success, 1 failure, 2 wrong usage%s, 128+n after signal n.\n",
           strstr(page, "validate") || strstr(page, "diff")
               ? ", 3 data that cannot be read or a report that cannot be "
                 "written" : "");
    manual_section("SEE ALSO");
    if (strcmp(page, "tether") != 0) printf(".BR tether (1)\n");
    else printf("Every command has a page of its own: "
                "\\fBman tether\\-generate\\fR.\n");
}

/* "tether-generate", "tether-validate-backend": the words after `tether` up to
 * the first argument. */
static const char *page_name(const char *name, const char *usage)
{
    static char page[128];
    snprintf(page, sizeof page, "tether-%s", name);
    if (!strncmp(usage, "--", 2))
        snprintf(page + strlen(page), sizeof page - strlen(page), "-%.*s",
                 (int)strcspn(usage + 2, " ["), usage + 2);
    for (char *c = page; *c; c++) if (*c == ' ') *c = '-';
    return page;
}

/* ---- options ------------------------------------------------------------- */

static void option_name(const opt_spec *o)
{
    const char *open = o->kind == OPT_MAYBE ? "[=" : " ";
    const char *close = o->kind == OPT_MAYBE ? "]" : "";
    printf(".TP\n");
    if (o->letter) printf("\\fB\\-%c\\fR, ", o->letter);
    printf("\\fB\\-\\-%s", o->kind == OPT_SWITCH ? "[no\\-]" : "");
    put_all(o->name);
    printf("\\fR");
    if (o->arg) {
        printf("%s\\fI", open);
        put_all(o->arg);
        printf("\\fR%s", close);
    }
    putchar('\n');
}

static void options(const opt_spec *o)
{
    for (; o->kind; o++) {
        if (o->kind == OPT_GROUP) {
            printf(".SS \"");
            put_all(o->help);
            printf("\"\n");
        } else if (o->help) {
            option_name(o);
            manual_words(o->help);
        }
    }
}

static void page(const opt_command *cmd, const opt_spec *common)
{
    const char *name = page_name(cmd->name, cmd->usage);
    manual_begin(name, cmd->summary);
    manual_section("SYNOPSIS");
    printf("\\fBtether ");
    put_all(cmd->name);
    printf("\\fR ");
    manual_words(cmd->usage);
    if (cmd->intro) {
        manual_section("DESCRIPTION");
        manual_words(cmd->intro);
    }
    manual_section("OPTIONS");
    options(cmd->options);
    options(common);
    if (cmd->examples) {
        manual_section("EXAMPLES");
        manual_lines(cmd->examples);
    }
    manual_end(name);
}

/* ---- words --------------------------------------------------------------- */

static const char *kind_name(opt_kind k)
{
    return k == OPT_FLAG ? "flag" : k == OPT_SWITCH ? "switch"
         : k == OPT_MAYBE ? "maybe" : "value";
}

static void words(const opt_spec *o)
{
    for (; o->kind; o++) {
        if (o->kind == OPT_GROUP || !o->help) continue;
        printf("--%s\t%c%.1s\t%s\t%s\t", o->name, o->letter ? '-' : ' ',
               o->letter ? &o->letter : "", o->arg ? o->arg : "",
               kind_name(o->kind));
        for (const char *c = o->help; *c; c++)
            putchar(*c == '\n' || *c == '\t' ? ' ' : *c);
        putchar('\n');
    }
}

static int no_such_form(const char *name, const char *form)
{
    return opt_usage(name, "--help=%s: there are --help, --help=man and "
                     "--help=words", form);
}

int manual_command(const opt_command *cmd, const opt_spec *common,
                   const char *form)
{
    if (!strcmp(form, "man")) {
        page(cmd, common);
    } else if (!strcmp(form, "words")) {
        words(cmd->options);
        words(common);
    } else {
        return no_such_form(cmd->name, form);
    }
    return 0;
}

int manual_text(const char *name, const char *summary, const char *help,
                const char *const *word, int n, const char *form)
{
    if (!strcmp(form, "words")) {
        for (int i = 0; i < n; i++)
            printf(strchr(word[i], '\t') ? "%s\n" : "%s\t \t\tflag\t\n",
                   word[i]);
        return 0;
    }
    if (strcmp(form, "man") != 0) return no_such_form(name, form);
    const char *own = page_name(name, "");
    manual_begin(own, summary);
    manual_section("SYNOPSIS");
    manual_lines(help);
    manual_end(own);
    return 0;
}
