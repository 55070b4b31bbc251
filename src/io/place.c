/* place.c: a file that is made beside its final name and then put there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int place_create(const char *path)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    const int fd = open(path, flags, 0666);
    if (fd >= 0 || errno != EEXIST || unlink(path)) return fd;
    return open(path, flags, 0666);
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
