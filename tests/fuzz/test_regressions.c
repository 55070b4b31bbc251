/* test_regressions.c: every file of ref_data/fuzz/NAME through fuzz_NAME.
 * Regression: inputs that once were findings, and small ones that reach far.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/harness.h"

static const char *const targets[] = {"safetensors", "index", "zip", "pickle",
                                      "gguf", "spm", "json", "picture", "y4m",
                                      "shows", "dump", "trace", "state",
                                      "text", "lora", "weights"};

int main(int argc, char **argv)
{
    (void)argc;
    char program[600], command[1400];
    struct stat st;
    test_begin("fuzz/regressions");
    const char *slash = strrchr(argv[0], '/');
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const char *folder = ref_path("fuzz/%s", targets[i]);
        snprintf(program, sizeof program, "%.*s/../../fuzz/fuzz_%s",
                 slash ? (int)(slash - argv[0]) : 1, slash ? argv[0] : ".",
                 targets[i]);
        if (!expect(stat(program, &st) == 0, "%s is built", program)) continue;
        if (!expect(stat(folder, &st) == 0, "%s is there", folder)) continue;
        snprintf(command, sizeof command, "ulimit -t 60; '%s' '%s' > /dev/null",
                 program, folder);
        int rc = system(command);
        expect(rc == 0, "%s: status %d", command, rc);
    }
    return test_end();
}
