/* place.h: a file that is made next to its final name and then put there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_PLACE_H
#define TT_IO_PLACE_H

#include "core/context.h"
#include "io/outfile.h"

/* Create `path` for reading and writing. What is there goes first: a killed
 * process of our number left it, or someone planted a link, which is not
 * followed. The descriptor, or -1 and errno. */
int place_create(const char *path);

/* Names for a file in the making, of which each process takes one. */
typedef struct place_names {
    void (*name)(char *path, size_t n, const void *user, int k);
    const void *user;
    const char *tail;  /* a process may make one more, with this after; NULL  */
} place_names;
enum { PLACE_NAMES = 16 };

/* place_create of the first name that no living process has, k from 0 on; it is
 * locked until the descriptor is closed, and so are those of others: what is
 * not locked under the other names was left by killed processes, and goes.
 * Where there are no locks, or all names are taken, k is our number. */
int place_take(char *path, size_t n, const place_names *of);

/* place_create, locked until the descriptor is closed. -1 and EWOULDBLOCK:
 * another process has made the file and holds it. */
int place_hold(const char *path);

/* tt_out_open with a name of the caller's until it is complete (NULL: our own),
 * on the same file system. The file may be closed and written by another
 * program. */
tt_status place_open(tt_ctx *ctx, tt_out *o, const char *path,
                     const char *meanwhile);

/* Is there nothing of this name, and must that be so when the file is put
 * there? Not with ctx->overwrite. */
bool place_is_new(const tt_ctx *ctx, const char *path);

/* Give file `from` the name `to`, on the disk as well. What is there is
 * replaced, or, where the name must be new, stays: -1 and errno, EEXIST when it
 * is taken. */
int place_rename(const char *from, const char *to, bool new_name);

/* The same for a name that must be new, where the system cannot rename so. */
int place_link(const char *from, const char *to);

/* The reason in errno for messages; of EEXIST what to do as well. */
const char *place_reason(void);

#endif
