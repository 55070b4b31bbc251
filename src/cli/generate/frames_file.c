/* frames_file.c: the frames that a decoding has made so far.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/generate/frames_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { HEADER = 512, DIGEST = 64 };
static const char magic[] = "tether-frames ";

/* ---- the name ------------------------------------------------------------ */

/* Is `fd` still the file of that name? The decoding that held the lock before
 * us may have ended, which removes it. */
static bool still_called(int fd, const char *name)
{
    struct stat a, b;
    return !fstat(fd, &a) && !stat(name, &b) && a.st_dev == b.st_dev
        && a.st_ino == b.st_ino;
}

/* The file, locked; -1 and errno, EWOULDBLOCK when another program has it.
 * File systems without locks have none to hold. */
static int open_locked(const char *path)
{
    enum { TRIES = 5 };
    for (int i = 0; i < TRIES; i++) {
        const int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK
                            | O_CLOEXEC, 0666);
        if (fd < 0) return -1;
        const bool taken = flock(fd, LOCK_EX | LOCK_NB)
                        && errno == EWOULDBLOCK;
        if (!taken && still_called(fd, path)) return fd;
        close(fd);
        if (taken) break;
    }
    errno = EWOULDBLOCK;
    return -1;
}

static void warn_without(tt_ctx *ctx, const char *path, const char *why)
{
    tt_warn(ctx, "cannot keep frames in %s: %s; a decoding that is interrupted "
            "will begin anew", path, why);
}

/* Nothing, frames, or a stranger's file; whether these may go, or stay. */
static tt_status check_content(tt_ctx *ctx, const frames_file *f)
{
    char head[sizeof magic] = "";
    struct stat st;
    if (fstat(f->fd, &st))
        return tt_fail(ctx, TT_EIO, "cannot read %s: %s", f->path,
                       strerror(errno));
    const bool file = S_ISREG(st.st_mode);
    if (file && (!st.st_size || f->overwrite)) return TT_OK;
    const ssize_t n = file ? pread(f->fd, head, sizeof magic - 1, 0) : 0;
    if (n < (ssize_t)sizeof magic - 1 || memcmp(head, magic, (size_t)n))
        return tt_fail(ctx, TT_EINVAL, "%s holds no frames of a decoding, and "
                       "its name is needed for them: move it away%s", f->path,
                       file ? ", or use --overwrite to lose it" : "");
    if (f->resume || st.st_size <= HEADER) return TT_OK;
    return tt_fail(ctx, TT_EINVAL, "%s holds the frames of a decoding that was "
                   "interrupted: go on with it by --resume, or start over by "
                   "--overwrite", f->path);
}

tt_status frames_file_claim(tt_ctx *ctx, frames_file *f, const char *path,
                            bool resume, bool overwrite)
{
    *f = (frames_file){.ctx = ctx, .resume = resume, .overwrite = overwrite};
    if (!path || ctx->status) return ctx->status;
    f->path = tt_strdup(ctx, &f->mem, path);
    if (!f->path) return ctx->status;
    f->fd = open_locked(path);
    if (f->fd < 0 && errno == EWOULDBLOCK)
        tt_fail(ctx, TT_EINVAL, "another run is writing %s at this moment; "
                "wait for its end, or give another name", path);
    else if (f->fd < 0)
        warn_without(ctx, path, strerror(errno));
    else if (!check_content(ctx, f))
        return TT_OK;
    if (f->fd >= 0) close(f->fd); /* whatever it is stays */
    f->path = NULL;
    tt_arena_free(&f->mem);
    return ctx->status;
}

/* ---- begin, or go on ----------------------------------------------------- */

static off_t place_of(const frames_file *f, int64_t i)
{
    return HEADER + (off_t)i * (off_t)(DIGEST + f->size);
}

/* The outputs need room too, about as much. */
static bool has_room(const frames_file *f, int64_t frames)
{
    struct statvfs disk;
    const double need = 2.0 * (double)frames * (double)(DIGEST + f->size);
    return fstatvfs(f->fd, &disk)
        || (double)disk.f_bavail * (double)disk.f_frsize >= need;
}

static tt_status begin_anew(frames_file *f, const char *header)
{
    if (!ftruncate(f->fd, 0) && pwrite(f->fd, header, HEADER, 0) == HEADER)
        return TT_OK;
    warn_without(f->ctx, f->path, strerror(errno));
    frames_file_close(f, false);
    return TT_OK;
}

tt_status frames_file_open(frames_file *f, const char *what, size_t size,
                           int64_t all)
{
    char header[HEADER + 1], there[HEADER] = "";
    struct stat st;
    if (!f->path || f->ctx->status) return f->ctx->status;
    f->size = size;
    snprintf(header, sizeof header, "%s%-*s\n", magic,
             HEADER - (int)sizeof magic, what);
    TT_ASSERT(strlen(header) == HEADER);
    const bool whole = !fstat(f->fd, &st) && st.st_size >= HEADER
                    && pread(f->fd, there, HEADER, 0) == HEADER;
    const bool ours = whole && !memcmp(there, header, HEADER);
    if (whole && st.st_size > HEADER && f->resume && !ours && !f->overwrite)
        return tt_fail(f->ctx, TT_EINVAL, "%s holds frames of another decoding "
                       "(its VAE, size, class or outputs differ): give "
                       "--overwrite as well to lose them, or move it away",
                       f->path);
    f->opened = true;
    f->there = !memcmp(there, magic, sizeof magic - 1);
    if (ours && f->resume)
        f->done = (st.st_size - HEADER) / (off_t)(DIGEST + size);
    if (has_room(f, all - f->done))
        return f->done ? TT_OK : begin_anew(f, header);
    f->full = true;
    tt_warn(f->ctx, "the disk has no room to keep frames in %s as well; a "
            "decoding that is interrupted will go on after %lld frames",
            f->path, (long long)f->done);
    return TT_OK;
}

/* ---- frames -------------------------------------------------------------- */

static void digest(char hex[DIGEST + 1], const frames_file *f,
                   const tt_sha256 *of, const void *frame)
{
    tt_sha256 s = *of;
    tt_sha256_add(&s, frame, f->size);
    tt_sha256_hex(&s, hex);
}

bool frames_file_read(const frames_file *f, int64_t i, void *frame)
{
    return pread(f->fd, frame, f->size, place_of(f, i) + DIGEST)
        == (ssize_t)f->size;
}

bool frames_file_holds(const frames_file *f, int64_t i, const tt_sha256 *of,
                       void *frame)
{
    char there[DIGEST], hex[DIGEST + 1];
    if (!f->path || i >= f->done
        || pread(f->fd, there, DIGEST, place_of(f, i)) != DIGEST
        || !frames_file_read(f, i, frame)) return false;
    digest(hex, f, of, frame);
    return !memcmp(hex, there, DIGEST);
}

void frames_file_cut(frames_file *f, int64_t n)
{
    if (!f->path || n >= f->done) return;
    f->done = n;
    if (ftruncate(f->fd, place_of(f, n))) f->full = true;
}

static bool put(int fd, const void *data, size_t n, off_t at)
{
    const char *p = data;
    while (n) {
        const ssize_t k = pwrite(fd, p, n, at);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        p += k;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

void frames_file_add(frames_file *f, const tt_sha256 *of, const void *frame)
{
    char hex[DIGEST + 1];
    if (!f->path || f->full) return;
    const off_t at = place_of(f, f->done);
    digest(hex, f, of, frame);
    if (put(f->fd, hex, DIGEST, at)
        && put(f->fd, frame, f->size, at + DIGEST)) {
        f->done++;
        return;
    }
    tt_warn(f->ctx, "cannot keep frames in %s: %s; a decoding that is "
            "interrupted will go on after %lld frames", f->path,
            strerror(errno), (long long)f->done);
    f->full = true;
    if (ftruncate(f->fd, at)) return; /* its digest is not right either */
}

void frames_file_close(frames_file *f, bool keep)
{
    struct stat st;
    if (!f->path) return;
    const bool empty = f->opened ? !keep || !f->done
                                 : !fstat(f->fd, &st) && !st.st_size;
    if (empty && still_called(f->fd, f->path)) unlink(f->path);
    close(f->fd);
    f->path = NULL;
    tt_arena_free(&f->mem);
}
