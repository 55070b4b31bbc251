/* terminal.c: see terminal.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Both protocols carry the PNG file itself in base64: kitty's in packets of at
 * most 4096 characters with m=1 on all but the last, iTerm2's in one piece. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/ui/terminal.h"
#include "io/page.h"

enum { PACKET = 3072,                 /* bytes that become 4096 characters    */
       LARGEST = 8 << 20 };           /* of a picture; a sheet is far smaller */

void terminal_write_picture(FILE *out, const char *protocol,
                            const unsigned char *png, size_t n)
{
    if (!strcmp(protocol, "iterm")) {
        fprintf(out, "\033]1337;File=size=%zu;inline=1:", n);
        page_base64(out, png, n);
        fputs("\a\n", out);
        return;
    }
    for (size_t i = 0; i < n; i += PACKET) {
        const size_t part = n - i < PACKET ? n - i : PACKET;
        fprintf(out, "\033_G%sm=%d;", i ? "" : "a=T,f=100,", i + part < n);
        page_base64(out, png + i, part);
        fputs("\033\\", out);
    }
    putc('\n', out);
}

static const char *protocol_of_terminal(void)
{
    const char *term = getenv("TERM"), *program = getenv("TERM_PROGRAM");
    if (getenv("TMUX")) return NULL;  /* does not pass them on               */
    if (program && (!strcmp(program, "iTerm.app")
                    || !strcmp(program, "WezTerm"))) return "iterm";
    if (getenv("KITTY_WINDOW_ID")) return "kitty";
    if (term && (strstr(term, "kitty") || strstr(term, "ghostty")))
        return "kitty";
    return NULL;
}

void terminal_picture(FILE *out, const char *path)
{
    const char *protocol = isatty(fileno(out)) ? protocol_of_terminal() : NULL;
    FILE *f = protocol ? fopen(path, "rb") : NULL;
    if (!f) return;
    unsigned char *png = malloc(LARGEST);
    const size_t n = png ? fread(png, 1, LARGEST, f) : 0;
    if (n && n < LARGEST) terminal_write_picture(out, protocol, png, n);
    free(png);
    fclose(f);
}
