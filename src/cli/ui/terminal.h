/* terminal.h: a picture in the terminal.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdio.h>

/* Show the PNG file at `path` on `out`, when that is a terminal whose
 * environment says that it shows pictures: the graphics protocol of kitty
 * (kitty, ghostty) or of iTerm2 (iTerm2, WezTerm). Anything else, a file that
 * cannot be read included, does nothing: a picture is never the result. */
void terminal_picture(FILE *out, const char *path);

/* The same to any stream, in the protocol named: "kitty" or "iterm". */
void terminal_write_picture(FILE *out, const char *protocol,
                            const unsigned char *png, size_t n);

#endif
