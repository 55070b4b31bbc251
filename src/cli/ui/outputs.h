/* outputs.h: names of what a command writes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OUTPUTS_H
#define CLI_OUTPUTS_H

#include "core/context.h"

typedef struct output_name {
    const char *option;        /* for the message                             */
    const char *path;          /* NULL: not wanted                            */
} output_name;

/* Refuse one file for two outputs, however it is spelt: the later one would
 * replace the earlier one. Devices are not compared.
 * Errors  TT_EINVAL  names both options */
tt_status outputs_differ(tt_ctx *ctx, const output_name *name, size_t n);

/* Refuse to replace what is there: a regular file that is not empty, of a
 * pattern any of its first `frames` pictures.
 *   why     ends the sentence, in parentheses; NULL: nothing does
 * Errors  TT_EINVAL  names the option, the file, and --overwrite */
tt_status outputs_free(tt_ctx *ctx, const output_name *name, size_t n,
                       int64_t frames, const char *why);

/* The same of one file, by a command that makes it in one go. */
tt_status outputs_keep(tt_ctx *ctx, const char *option, const char *path);

/* Refuse to replace what does not hold `mark` in its first bytes, as all files
 * of this kind that we have made do; a file that is empty may go.
 *   kind    ends the sentence "--html would replace a.y4m, which is no ..."
 * Errors  TT_EINVAL  names the option, the file, and --overwrite */
tt_status outputs_kind(tt_ctx *ctx, const char *option, const char *path,
                       const char *mark, const char *kind);

/* Refuse a name whose ending says another format than safetensors, so that no
 * file is called what it is not; other endings, and none, are the user's.
 * Errors  TT_EINVAL */
tt_status outputs_safetensors(tt_ctx *ctx, const char *option,
                              const char *path);

/* Refuse a name of a PNG that has another ending, or none.
 * Errors  TT_EINVAL */
tt_status outputs_png(tt_ctx *ctx, const char *option, const char *path);

/* Would writing `out` destroy `in`: are both one regular file, whatever they
 * are called (links of both kinds, other spellings)? With a pattern of numbered
 * pictures on either side: can one of them be? "-" is no file. */
bool outputs_hit(const char *out, const char *in);

/* Is `out` a regular file that lies in the folder `in` or below it? */
bool outputs_inside(const char *out, const char *in);

#endif
