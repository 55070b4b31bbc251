/* foreign.h: options of neighbouring programs, and what to use instead.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_FOREIGN_H
#define CLI_FOREIGN_H

#include "cli/ui/options.h"

/* What users of llm.c, Diffusers, stable-diffusion.cpp, flux2.c, ComfyUI and
 * the official scripts of Wan and Self-Forcing type by habit. */
typedef struct foreign_answer {
    const char *use;           /* option of ours, NULL: there is none         */
    const char *words;         /* after it, or a sentence; may be NULL        */
} foreign_answer;

/* The answer to an option called `name`, with - for _, in a command where `has`
 * tells whether it has an option of ours. False: nothing is known of it. */
bool foreign_find(foreign_answer *out, const char *name,
                  bool (*has)(const void *user, const char *name),
                  const void *user);
/* The long name of a letter of theirs; NULL: none. */
const char *foreign_letter(char letter);

#endif
