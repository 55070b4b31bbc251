/* outfile.c: files that appear under their final name only when complete.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/place.h"

enum { PAUSE = 100 }; /* milliseconds between two looks at ctx->interrupt */

/* Length of "dir/" in path, 0 without one. */
static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* What a link that ends nowhere points to, relative to its own folder; NULL
 * when `path` is no link. */
static char *read_link(tt_ctx *ctx, tt_arena *mem, const char *path)
{
    char to[4096];
    const ssize_t n = readlink(path, to, sizeof to - 1);
    if (n <= 0) return NULL;
    to[n] = 0;
    const size_t dir = to[0] == '/' ? 0 : directory_length(path);
    const size_t capacity = dir + (size_t)n + 1;
    char *out = tt_alloc(ctx, mem, (int64_t)capacity, 1, "file name");
    if (out) snprintf(out, capacity, "%.*s%s", (int)dir, path, to);
    return out;
}

char *tt_out_target(tt_ctx *ctx, tt_arena *mem, const char *path)
{
    enum { LINKS_MAX = 40 }; /* as many as systems follow */
    char *real = realpath(path, NULL); /* NULL while the file is missing */
    char *out = tt_strdup(ctx, mem, real ? real : path);
    /* a link to a pipe is there, and leads to no name */
    for (int i = 0; !real && out && access(path, F_OK) && i < LINKS_MAX; i++) {
        char *next = read_link(ctx, mem, out);
        if (!next) break;
        out = next;
    }
    free(real);
    return ctx->status ? NULL : out;
}

/* Other names for names: two long ones that begin alike must not share one. */
static unsigned number_of(const char *name)
{
    unsigned h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

/* ".NAME.part", or with k > 0 ".NAME.k.part". The limit of a name is 255 bytes:
 * a long one is cut. */
static void name_temporary(char *out, size_t n, const void *final, int k)
{
    enum { LONGEST = 200 };
    char id[32] = "";
    const size_t dir = directory_length(final);
    const char *path = final, *base = path + dir;
    if (k) snprintf(id, sizeof id, ".%d", k);
    if (strlen(base) <= LONGEST)
        snprintf(out, n, "%.*s.%s%s.part", (int)dir, path, base, id);
    else
        snprintf(out, n, "%.*s.%.*s~%08x%s.part", (int)dir, path,
                 LONGEST - 9, base, number_of(base), id);
}

/* Fill the names. `temporary` stays NULL for a target written directly. */
static tt_status name_files(tt_ctx *ctx, tt_out *o, const char *path)
{
    struct stat st;
    memset(o, 0, sizeof *o);
    if (!*path)
        return tt_fail(ctx, TT_EINVAL, "cannot write: the output name is "
                       "empty");
    o->path = tt_strdup(ctx, &o->mem, path);
    o->final = tt_out_target(ctx, &o->mem, path);
    if (ctx->status) goto fail;

    size_t dir = directory_length(o->final);
    const char *base = o->final + dir;
    if (stat(o->final, &st) == 0) {
        if (S_ISDIR(st.st_mode)) {
            tt_fail(ctx, TT_EIO, "cannot write %s: it is a directory; give a "
                    "file name inside it", path);
            goto fail;
        }
        if (!S_ISREG(st.st_mode)) return TT_OK;
    } else if (!*base) {
        tt_fail(ctx, TT_EIO, "cannot write %s: no such directory; create it "
                "first or give a file name", path);
        goto fail;
    }
    size_t n = strlen(o->final) + 32;
    o->temporary = tt_alloc(ctx, &o->mem, (int64_t)n, 1, "file name");
    if (!o->temporary) goto fail;
    name_temporary(o->temporary, n, o->final, 0);
    o->is_new = place_is_new(ctx, o->final);
    return TT_OK;
fail:
    tt_arena_free(&o->mem);
    memset(o, 0, sizeof *o);
    return ctx->status;
}

static tt_status open_failed(tt_ctx *ctx, const char *path, int error)
{
    return tt_fail(ctx, TT_EIO, "cannot write %s: %s%s", path,
                   error == EWOULDBLOCK ? "another program is writing it at "
                   "this moment" : strerror(error),
                   error == ENOENT ? " (its directory does not exist)" : "");
}

/* What is there and no regular file. Of a pipe the reader is waited for, but
 * not inside open(2), where no interruption would be heard. */
static int open_direct(tt_ctx *ctx, const char *path)
{
    struct stat st;
    const bool pipe = !stat(path, &st) && S_ISFIFO(st.st_mode);
    const int wait = pipe ? O_NONBLOCK : 0;
    int fd;
    while ((fd = open(path, O_WRONLY | O_CLOEXEC | wait)) < 0 && pipe
           && errno == ENXIO && !tt_check_interrupt(ctx))
        poll(NULL, 0, PAUSE);
    if (fd >= 0 && pipe) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

static int open_temporary(tt_out *o, bool own)
{
    const place_names of = {name_temporary, o->final, NULL};
    const int fd = own ? place_take(o->temporary, strlen(o->final) + 32, &of)
                       : place_hold(o->temporary);
    /* keeps the lock of the name until that is gone */
    const int held = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    o->held = held + 1;
    return fd;
}

static tt_status open_as(tt_ctx *ctx, tt_out *o, const char *path,
                         const char *meanwhile)
{
    memset(o, 0, sizeof *o);
    if (ctx->status) return ctx->status;
    TT_TRY(name_files(ctx, o, path));
    if (o->temporary && meanwhile)
        o->temporary = tt_strdup(ctx, &o->mem, meanwhile);
    if (ctx->status) {
        o->temporary = NULL; /* another process's may have the name */
        tt_out_abort(o);
        return ctx->status;
    }
    const int fd = !o->temporary ? open_direct(ctx, o->final)
                 : open_temporary(o, !meanwhile);
    o->file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!o->file) {
        open_failed(ctx, path, errno);
        if (fd < 0) o->temporary = NULL;
        tt_out_abort(o);
        if (fd >= 0) close(fd);
    }
    return ctx->status;
}

tt_status tt_out_open(tt_ctx *ctx, tt_out *o, const char *path)
{
    return open_as(ctx, o, path, NULL);
}

tt_status place_open(tt_ctx *ctx, tt_out *o, const char *path,
                     const char *meanwhile)
{
    return open_as(ctx, o, path, meanwhile);
}

static tt_status write_failed(tt_ctx *ctx, const tt_out *o)
{
    return tt_fail(ctx, TT_EIO, "cannot write %s: %s", o->path,
                   strerror(errno));
}

/* A reader may be in no hurry: it is waited for before each piece, which is of
 * a size that a pipe with room takes whole, and not inside write(2). */
static tt_status write_pipe(tt_ctx *ctx, tt_out *o, const char *data, size_t n)
{
    struct pollfd p = {.fd = fileno(o->file), .events = POLLOUT};
    if (fflush(o->file)) return write_failed(ctx, o);
    while (n) {
        const size_t piece = n < PIPE_BUF ? n : PIPE_BUF;
        while (poll(&p, 1, PAUSE) <= 0) TT_TRY(tt_check_interrupt(ctx));
        const ssize_t put = write(p.fd, data, piece);
        if (put < 0 && errno != EINTR && errno != EAGAIN)
            return write_failed(ctx, o);
        if (put <= 0) continue;
        data += put;
        n -= (size_t)put;
    }
    return TT_OK;
}

tt_status tt_out_write(tt_ctx *ctx, tt_out *o, const void *data, size_t n)
{
    struct stat st;
    if (ctx->status) return ctx->status;
    if (!fstat(fileno(o->file), &st) && S_ISFIFO(st.st_mode))
        return write_pipe(ctx, o, data, n);
    if (n && fwrite(data, 1, n, o->file) != n) return write_failed(ctx, o);
    return TT_OK;
}

/* Pipes and some file systems have nothing to flush to. */
static int sync_to_disk(int fd)
{
    return fsync(fd) && errno != EINVAL && errno != ENOTSUP && errno != EROFS
        ? -1 : 0;
}

static int flush_to_disk(const tt_out *o)
{
    if (o->file && fflush(o->file)) return -1;
    if (o->file && ferror(o->file)) { /* an earlier write, and it is lost */
        if (!errno) errno = EIO;
        return -1;
    }
    if (o->file) return sync_to_disk(fileno(o->file));
    if (!o->temporary) return 0;
    int fd = open(o->temporary, O_RDONLY | O_CLOEXEC); /* another program's */
    int bad = fd < 0 || sync_to_disk(fd);
    int error = errno;
    if (fd >= 0) close(fd);
    errno = error;
    return bad;
}

/* A name for it that no later attempt takes: "NAME.kept", "NAME.kept2" ... */
static bool keep_whole(const tt_out *o, char *name, size_t n)
{
    for (int i = 1; i < 100; i++) {
        const int k = snprintf(name, n, i > 1 ? "%s.kept%d" : "%s.kept",
                               o->final, i);
        if (k < 0 || (size_t)k >= n) break;
        if (!place_rename(o->temporary, name, true)) return true;
        if (errno != EEXIST) break;
    }
    *name = '\0';
    return false;
}

tt_status tt_out_finish(tt_ctx *ctx, tt_out *o)
{
    if (!o->path) return ctx->status;
    if (ctx->status) {
        tt_out_abort(o);
        return ctx->status;
    }
    int bad = flush_to_disk(o);
    int error = errno;
    bool whole = false;                  /* and its name is another's */
    char kept[4200] = "";
    if (o->file && fclose(o->file) && !bad) {
        bad = 1;
        error = errno;
    }
    o->file = NULL;
    if (!bad && o->temporary
        && place_rename(o->temporary, o->final, o->is_new)) {
        bad = 1;
        error = errno;
        if (error == EEXIST || error == EACCES || error == EBUSY)
            whole = keep_whole(o, kept, sizeof kept);
    }
    errno = error;
    if (bad)
        tt_fail(ctx, TT_EIO, "cannot write %s: %s%s%s", o->path, place_reason(),
                whole ? "; what was written is whole in " : "", kept);
    if (!bad || whole) o->temporary = NULL;
    tt_out_abort(o);
    return ctx->status;
}

void tt_out_abort(tt_out *o)
{
    if (o->temporary) unlink(o->temporary); /* while its lock is held */
    if (o->file) fclose(o->file);
    if (o->held) close(o->held - 1);
    tt_arena mem = o->mem;
    tt_arena_free(&mem);
    memset(o, 0, sizeof *o);
}

tt_status tt_out_check(tt_ctx *ctx, const char *path)
{
    tt_out o;
    struct stat st;
    if (ctx->status) return ctx->status;
    TT_TRY(name_files(ctx, &o, path));
    if (o.temporary) {
        size_t dir = directory_length(o.final);
        o.final[dir] = 0; /* "a/b/", or "/" for a file in the root */
        const char *folder = dir ? o.final : ".";
        if (stat(folder, &st))
            open_failed(ctx, path, errno);
        else if (access(folder, W_OK | X_OK))
            tt_fail(ctx, TT_EIO, "cannot write %s: its directory is not "
                    "writable (%s)", path, strerror(errno));
    }
    o.temporary = NULL;
    tt_out_abort(&o);
    return ctx->status;
}
