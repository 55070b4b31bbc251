/* files.h: a model, a text and a run of two chunks, for the tests of what the
 * program does about files that are there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CLI_FILES_H
#define TESTS_CLI_FILES_H

#include "tests/cli/program.h"

static char model[1100], vae[1100], embeds[1100];

static inline float small(int64_t i)
{
    return (float)(i % 17) / 17 - 0.5f;
}

/* A run of two chunks; `more` ends with its outputs. */
static inline const char *tiny_run(const char *more)
{
    static char args[4000];
    snprintf(args, sizeof args, "generate -q -t 1 -m %s --embeds e --vae %s -W "
             "32 -H 32 --latents 6 %s", model, vae, more);
    return args;
}

/* Do the first 16 kB of `name` hold this text? */
static inline bool holds(const char *name, const char *text)
{
    static char buf[1 << 14];
    FILE *f = fopen(at(name), "rb");
    const size_t n = f ? fread(buf, 1, sizeof buf, f) : 0;
    const size_t m = strlen(text);
    bool found = false;
    if (f) fclose(f);
    for (size_t i = 0; i + m <= n && !found; i++)
        found = !memcmp(buf + i, text, m);
    return found;
}

/* program_begin, with copies in its folder: the model `m`, the text `e`. */
static inline bool files_begin(const char *name, char **argv)
{
    char copy[2400];
    if (!program_begin(name, argv)) return false;
    reference(model, "dit/models/tiny_a");
    reference(vae, "vae_full_a/weights.safetensors");
    reference(embeds, "dit/roll_tether_K9/inputs.safetensors");
    snprintf(copy, sizeof copy, "mkdir m; cp %s/* m; chmod u+w m/*; cp %s "
             "e; ", model, embeds);
    run_after(copy, "--version > /dev/null");
    return true;
}

#endif
