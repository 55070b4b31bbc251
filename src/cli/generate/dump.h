/* dump.h: --dump and --inject, the tensors inside into and out of a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * With both, the dump holds what the model computed at a point from tensors
 * that were injected at the points before. */
#ifndef CLI_DUMP_H
#define CLI_DUMP_H

#include "io/io.h"

typedef struct dump {
    tt_st_writer *writer;      /* NULL: not open                              */
    const char *filter;        /* glob; NULL: everything                      */
    int64_t taken;             /* tensors in the file                         */
} dump;

/* Take every tap of `ctx` from here on; nothing happens when path is NULL or
 * the dump is open already. The contents of the KV cache are dumped only when
 * the filter has the word "cache" in it. */
tt_status dump_open(tt_ctx *ctx, dump *d, const char *path,
                    const char *filter);
/* On ranks other than 0: bring what the dump of rank 0 lacks. */
void dump_follow(tt_ctx *ctx, const char *filter);
/* Complete the file, or with a failure recorded give it up. TT_EINVAL when the
 * filter let nothing through. */
tt_status dump_close(tt_ctx *ctx, dump *d);

typedef struct inject {
    tt_ctx *ctx;
    tt_file *file;             /* NULL: not open                              */
    const char *name, *filter; /* filter NULL: everything                     */
    int64_t taken;             /* tensors that replaced one                   */
} inject;

/* From here on tensors of the file replace those of the same name. What has
 * another shape or is not finite is left alone, with a warning. */
tt_status inject_open(tt_ctx *ctx, inject *j, const char *path,
                      const char *filter);
/* TT_EINVAL when not one tensor was injected; rank 0 alone sees all. */
tt_status inject_close(tt_ctx *ctx, inject *j);

#endif
