/* stream.h: a file, pipe or terminal as bytes, with an ear for interruptions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A pipe may have no writer yet, and a writer may have nothing to say: open(2)
 * and read(2) would wait for them whatever ctx->interrupt says. Files that are
 * mapped (map.h) are no pipes and need none of this. */
#ifndef TT_IO_STREAM_H
#define TT_IO_STREAM_H

#include "core/context.h"

typedef struct io_stream {
    tt_ctx *ctx;
    const char *name;       /* for messages; borrowed                         */
    int fd;                 /* -1: closed                                     */
    bool ended;
    size_t at, n;           /* bytes of buf that are waiting: [at, n)         */
    uint8_t buf[1 << 12];
} io_stream;

/* Can it be read only once: "-", a pipe, a terminal? */
bool stream_once(const char *path);

/* Open `path` for reading; "-" is the standard input, which stays open. Waits
 * until there is a byte to be read, or an end.
 * Errors  TT_EIO    "cannot read NAME: reason"
 *         TT_EINTR  ctx->interrupt was set meanwhile */
tt_status stream_open(tt_ctx *ctx, io_stream *s, const char *path);
/* Also what was never opened, if it is {.fd = -1}. */
void stream_close(io_stream *s);

/* Up to n bytes; fewer at the end, and after a failure (as above). */
size_t stream_read(io_stream *s, void *out, size_t n);

/* The next byte, or -1 at the end and after a failure. */
int stream_byte(io_stream *s);

#endif
