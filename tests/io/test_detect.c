/* test_detect.c: a file's format is told by its content.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A safetensors file starts with the length of its header, so its first bytes
 * can spell anything: 640, 896 and 1152 look like the start of a pickle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness.h"

int main(void)
{
    tt_ctx *ctx = test_begin("io/detect");
    static const unsigned length[] = {2, 640, 896, 1152, 0x2028, 0x0a0d, 31};
    for (size_t i = 0; i < sizeof length / sizeof length[0]; i++) {
        char path[600], what[64];
        tmp_path(path, sizeof path, "XXXXXX");
        int fd = mkstemp(path);
        FILE *f = fdopen(fd, "wb");
        unsigned n = length[i];
        unsigned char head[8] = {(unsigned char)n, (unsigned char)(n >> 8)};
        fwrite(head, 1, 8, f);
        fprintf(f, "{}%*s", (int)n - 2, "");
        fclose(f);
        snprintf(what, sizeof what, "safetensors with a header of %u bytes", n);
        tt_file *t = NULL;
        if (expect_ok(tt_file_open(ctx, &t, path), what)) {
            expect(!strcmp(tt_file_format(t), "safetensors"),
                   "%s: taken for %s",
                   what, tt_file_format(t));
            tt_file_close(t);
        }
        unlink(path);
    }
    return test_end();
}
