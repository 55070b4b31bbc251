/* ffmpeg.h: an ffmpeg of our own, which ends when and as a test wants it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CLI_FFMPEG_H
#define TESTS_CLI_FFMPEG_H

#include "tests/cli/program.h"

/* For PATH=$PWD/bin:$PATH. It keeps `take` bytes of its input in the file that
 * its last argument names ("file:NAME"), then does `what`; take -1: it does
 * that first, and keeps all. */
static inline void put_ffmpeg(int take, const char *what)
{
    static const char begin[] = "#!/bin/sh\nfor a; do :; done\n";
    char text[400];
    if (take < 0)
        snprintf(text, sizeof text, "%s%s\nexec cat > \"${a#file:}\"\n", begin,
                 what);
    else
        snprintf(text, sizeof text, "%shead -c %d > \"${a#file:}\"\n%s\n",
                 begin, take, what);
    mkdir(at("bin"), 0777);
    put_file(at("bin/ffmpeg"), text, 0755);
}

#endif
