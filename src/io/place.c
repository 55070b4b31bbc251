/* place.c: a file that is made next to its final name and then put there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int place_create(const char *path)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    const int fd = open(path, flags, 0666);
    if (fd >= 0 || errno != EEXIST || unlink(path)) return fd;
    return open(path, flags, 0666);
}

/* Is `fd` still the file of that name? Yes, where no one can tell. */
static bool still_called(int fd, const char *path)
{
    struct stat a, b;
    if (fstat(fd, &a)) return true;
    if (lstat(path, &b)) return errno != ENOENT;
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool take_lock(int fd)
{
    return !flock(fd, LOCK_EX | LOCK_NB);
}

/* What a killed process has left under the name goes (and what it called so,
 * with `tail` after), and a link that was planted; false: a living one may be
 * writing it. Between open and lock the name may have become another process's:
 * it then stays, and is tried again. */
static bool remove_left(const char *path, const char *tail)
{
    char more[4400];
    const int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT || (errno == ELOOP && !unlink(path));
    const bool locked = take_lock(fd), ours = locked && still_called(fd, path);
    if (ours && tail) {
        snprintf(more, sizeof more, "%s%s", path, tail);
        unlink(more);
    }
    const bool gone = locked && (!ours || !unlink(path));
    close(fd);
    return gone;
}

/* One name. -1 and EWOULDBLOCK: a living process has it; ENOLCK: there are no
 * locks here. */
static int io_place_take(const char *path, const char *tail)
{
    enum { TRIES = 5 };
    for (int i = 0; i < TRIES; i++) {
        const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return -1;
        if (fd < 0 && !remove_left(path, tail)) break;
        if (fd < 0) continue;
        const bool locked = take_lock(fd);
        const bool other = !locked && errno == EWOULDBLOCK; /* removes it */
        if (locked && still_called(fd, path)) return fd;
        if (!locked && !other) unlink(path);
        close(fd);
        if (locked || other) continue;
        errno = ENOLCK;
        return -1;
    }
    errno = EWOULDBLOCK;
    return -1;
}

int place_take(char *path, size_t n, const place_names *of)
{
    int fd = -1, k = 0;
    for (; k < PLACE_NAMES; k++) {
        of->name(path, n, of->user, k);
        fd = io_place_take(path, of->tail);
        if (fd >= 0 || errno != EWOULDBLOCK) break;
    }
    if (fd < 0 && errno != EWOULDBLOCK && errno != ENOLCK) return -1;
    if (fd < 0) {
        of->name(path, n, of->user, (int)getpid());
        return place_create(path);
    }
    for (int i = 0; i < PLACE_NAMES; i++) {
        of->name(path, n, of->user, i);
        if (i != k) remove_left(path, of->tail);
    }
    of->name(path, n, of->user, k);
    return fd;
}

int place_hold(const char *path)
{
    const int fd = io_place_take(path, NULL);
    return fd >= 0 || errno != ENOLCK ? fd : place_create(path);
}

bool place_is_new(const tt_ctx *ctx, const char *path)
{
    struct stat st;
    return !ctx->overwrite && lstat(path, &st) != 0;
}

int place_link(const char *from, const char *to)
{
    struct stat st;
    if (!link(from, to)) return unlink(from), 0;
    if (errno == EEXIST) return -1;
    /* FAT and some network file systems have no links: asked, then done */
    if (lstat(to, &st)) return rename(from, to);
    errno = EEXIST;
    return -1;
}

static int rename_to(const char *from, const char *to, bool new_name)
{
    if (!new_name) return rename(from, to);
#ifdef RENAME_NOREPLACE
    if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE)) return 0;
    if (errno == EEXIST) return -1;
#endif
    return place_link(from, to);
}

/* The new name must reach the disk as well; not every system can. */
static void flush_folder(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    const int n = slash ? (int)(slash - path) + 1 : 2;
    if (n >= (int)sizeof folder) return;
    snprintf(folder, sizeof folder, "%.*s", n, slash ? path : "./");
    const int fd = open(folder, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

int place_rename(const char *from, const char *to, bool new_name)
{
    if (rename_to(from, to, new_name)) return -1;
    flush_folder(to);
    return 0;
}

const char *place_reason(void)
{
    return errno == EEXIST ? "a file of that name was made meanwhile, and it "
           "stays; give another name, or --overwrite" : strerror(errno);
}
