/* fetch.h: the commands that download what a folder lacks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

#include <stdio.h>

#include "run/run.h"

/* Parts of a model, which are published as one file each. */
enum {
    FETCH_TRANSFORMER = 1,  /* the causal weights of Self-Forcing             */
    FETCH_TEXT = 2,         /* the text encoder                               */
    FETCH_TOKENIZER = 4,
    FETCH_VAE = 8
};

/* Those of `parts` that the folder of -m must bring and does not, because the
 * file is missing; all of them where there is no folder. */
unsigned fetch_missing(const tt_model_paths *p, unsigned parts);

/* "hf download REPOSITORY FILES --local-dir DIR", a line for each repository
 * after `before`. What they download is found where they put it. */
void fetch_commands(FILE *out, const char *before, const char *dir,
                    unsigned parts);

/* The status of a command that failed: cli_failed, then what the folder lacks
 * of `parts` and how to fetch it. */
int fetch_failed(const tt_ctx *ctx, const tt_model_paths *p, unsigned parts);

#endif
