/* place.h: a file that is made beside its final name and then put there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_PLACE_H
#define TT_IO_PLACE_H

#include "tether/context.h"
#include "tether/outfile.h"

/* Create `path` for reading and writing. What is there goes first: a killed
 * process of our number left it, or somebody planted a link, which is not
 * followed. The descriptor, or -1 and errno. */
int place_create(const char *path);

/* The same for a name that several processes may want at a time: it is locked
 * until the descriptor is closed, so that what a killed one left is known. -1
 * and EWOULDBLOCK: a living one has it, or the file system has no locks. */
int place_take(const char *path);

/* tt_out_open with a name of the caller's until it is complete (NULL: one that
 * is this process's alone), on the same file system. The file may be closed and
 * written by another program. */
tt_status place_open(tt_ctx *ctx, tt_out *o, const char *path,
                     const char *meanwhile);

/* Is there nothing of this name, and must that be so when the file is put
 * there? Not with ctx->overwrite. */
bool place_is_new(const tt_ctx *ctx, const char *path);

/* Give file `from` the name `to`, on the disk as well. What is there is
 * replaced, or, where the name must be new or ctx->place says no, stays: -1 and
 * errno, EEXIST when it is taken. ctx NULL: nobody is asked. */
int place_rename(const tt_ctx *ctx, const char *from, const char *to,
                 bool new_name);

/* The same for a name that must be new, where the system cannot rename so. */
int place_link(const char *from, const char *to);

/* The reason in errno for messages; of EEXIST what to do as well. */
const char *place_reason(void);

#endif
