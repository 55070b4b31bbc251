/* dump.h: --dump, the tensors inside as a file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DUMP_H
#define CLI_DUMP_H

#include "tether/io.h"

typedef struct dump {
    tt_st_writer *writer;      /* NULL: not open                              */
    const char *filter;        /* glob; NULL: everything                      */
} dump;

/* Take every tap of `ctx` from here on; nothing happens when path is NULL or
 * the dump is open already. */
tt_status dump_open(tt_ctx *ctx, dump *d, const char *path,
                    const char *filter);
/* Complete the file, or with a failure recorded give it up. */
tt_status dump_close(tt_ctx *ctx, dump *d);

#endif
