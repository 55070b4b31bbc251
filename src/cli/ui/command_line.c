/* command_line.c: the command that was given, for reports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/cli.h"

/* A shell takes a word of these alone as it is. */
static bool is_plain(const char *word)
{
    return *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789-_=+:,./%@")];
}

/* `word` after a blank, in single quotes where needed: ' becomes '\'' . */
static char *put_word(char *at, const char *word)
{
    const bool plain = is_plain(word);
    *at++ = ' ';
    if (!plain) *at++ = '\'';
    for (; *word; word++) {
        if (*word == '\'') at = (char *)memcpy(at, "'\\'", 3) + 3;
        *at++ = *word;
    }
    if (!plain) *at++ = '\'';
    return at;
}

const char *cli_command_line(tt_ctx *ctx, const char *before, int argc,
                             char **argv)
{
    size_t capacity = strlen(before) + 1;
    for (int i = 0; i < argc; i++) capacity += 4 * strlen(argv[i]) + 3;
    char *line = tt_alloc(ctx, &ctx->scratch, (int64_t)capacity, 1,
                          "a command");
    if (!line) return "";
    char *at = (char *)memcpy(line, before, strlen(before)) + strlen(before);
    for (int i = 0; i < argc; i++) at = put_word(at, argv[i]);
    *at = '\0';
    return line;
}
