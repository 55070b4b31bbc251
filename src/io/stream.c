/* stream.c: a file, pipe or terminal as bytes, with an ear for interruptions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   no one is waited for inside open(2) or read(2): a pipe is opened
 *         without its writer, and poll(2) waits, a tenth of a second at a
 *         time, so that no signal can fall between the question and the wait.
 * Holds   the flags of the standard input, which others share, stay as they
 *         are. */
#include "io/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAUSE = 100 }; /* milliseconds */

static tt_status stream_failed(io_stream *s)
{
    return tt_fail(s->ctx, TT_EIO, "cannot read %s: %s", s->name,
                   strerror(errno));
}

/* Until there is a byte, an end or an error to be read. A pipe that no one has
 * opened for writing yet has none of these. */
static tt_status wait_for_bytes(io_stream *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    while (poll(&p, 1, PAUSE) <= 0) TT_TRY(tt_check_interrupt(s->ctx));
    return TT_OK;
}

/* What is there, at most n bytes; 0 at the end and after a failure. */
static size_t stream_read_some(io_stream *s, void *out, size_t n)
{
    while (!s->ended && !s->ctx->status && !wait_for_bytes(s)) {
        const ssize_t got = read(s->fd, out, n);
        if (got > 0) return (size_t)got;
        if (got < 0 && errno != EINTR && errno != EAGAIN) stream_failed(s);
        s->ended = got == 0;
    }
    return 0;
}

/* Have a byte in the buffer. */
static bool refill(io_stream *s)
{
    if (s->at == s->n) {
        s->at = 0;
        s->n = stream_read_some(s, s->buf, sizeof s->buf);
    }
    return s->at < s->n;
}

bool stream_once(const char *path)
{
    struct stat st;
    return !strcmp(path, "-")
        || (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

tt_status stream_open(tt_ctx *ctx, io_stream *s, const char *path)
{
    const bool standard = !strcmp(path, "-");
    s->ctx = ctx;
    s->name = standard ? "standard input" : path;
    s->fd = -1;
    s->ended = false;
    s->at = s->n = 0;
    if (ctx->status) return ctx->status;
    s->fd = standard ? STDIN_FILENO
                     : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s->fd < 0) return stream_failed(s);
    refill(s);
    if (ctx->status) stream_close(s);
    return ctx->status;
}

void stream_close(io_stream *s)
{
    if (s->fd > STDIN_FILENO) close(s->fd);
    s->fd = -1;
    s->ended = true;
    s->at = s->n = 0;
}

size_t stream_read(io_stream *s, void *out, size_t n)
{
    const size_t kept = s->n - s->at < n ? s->n - s->at : n;
    memcpy(out, s->buf + s->at, kept);
    s->at += kept;
    size_t got = kept;
    for (size_t more = 1; got < n && more; got += more)
        more = stream_read_some(s, (char *)out + got, n - got);
    return got;
}

int stream_byte(io_stream *s)
{
    return refill(s) ? s->buf[s->at++] : -1;
}
