/* inspect.h: what the parts of `tether inspect` share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   cmd_inspect.c       files, tensors, checksums
 *   inspect_summary.c   a model folder in a few lines */
#ifndef CLI_INSPECT_H
#define CLI_INSPECT_H

#include "io/io.h"

/* One file. */
typedef struct inspect_part {
    const char *path;
    tt_file *file;
    char origin[300];   /* "VAE: Wan names, torch zip"; "": no known model    */
    char problem[1024]; /* why it is not what it should be; ""                */
    bool damaged;       /* that is no other model, but a file to fetch again  */
    tt_verify_report verified;
} inspect_part;

/* Which parts of a model are in folder `dir`, how large and of which types, and
 * for what is missing the command that fetches it; on standard output. */
void inspect_summary(tt_ctx *ctx, const char *dir, const inspect_part *p,
                     int64_t n);
/* If `path` is a tokenizer, one line about it (indented in a list), and true.
 *   verify   also compare it with the digest that it came with
 *   encoder  a file with the text encoder that it must fit; may be NULL
 * Errors  TT_EFORMAT, TT_EIO: those of verifying */
bool inspect_tokenizer(tt_ctx *ctx, const char *path, bool in_list, bool verify,
                       const char *encoder);

#endif
