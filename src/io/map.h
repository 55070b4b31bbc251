/* map.h: a whole file as read-only memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_MAP_H
#define TT_IO_MAP_H

#include "tether/context.h"

typedef struct io_map {
    const uint8_t *data; /* never NULL while open                             */
    int64_t size;
    void *base;          /* what to unmap; NULL for an empty file             */
} io_map;

/* Map `path`, a regular file. Nothing is read until it is touched. TT_EIO
 * names the file and the system's reason. */
tt_status io_map_open(tt_ctx *ctx, io_map *m, const char *path);
void io_map_close(io_map *m);

#endif
