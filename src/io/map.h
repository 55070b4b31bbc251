/* map.h: a whole file as read-only memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_MAP_H
#define TT_IO_MAP_H

#include "core/context.h"

typedef struct io_map {
    const uint8_t *data; /* never NULL while open                             */
    int64_t size;
    void *base;          /* what to unmap; NULL for an empty file             */
    int64_t changed[4];  /* content, then anything of the file: s and ns      */
} io_map;

/* Map `path`, a regular file. Nothing is read until it is touched. TT_EIO
 * names the file and the system's reason. */
tt_status io_map_open(tt_ctx *ctx, io_map *m, const char *path);
void io_map_close(io_map *m);
/* If `p` lies in the mapping: let the system take back the whole pages inside
 * [p, p + n). Their content stays, in the page cache or on the disk. False
 * when it lies elsewhere. */
bool io_map_release(const io_map *m, const void *p, int64_t n);
/* If it lies there: let the system read its pages soon, without waiting. */
bool io_map_expect(const io_map *m, const void *p, int64_t n);

/* Is this more than 1 GB, and more than the memory that is free or could be
 * freed? `meminfo` takes the place of the system's, NULL: that one; unreadable:
 * yes, if large. */
bool io_crowded(int64_t bytes, const char *meminfo);

#endif
