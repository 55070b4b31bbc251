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

int place_rename(const char *from, const char *to, bool new_name)
{
    if (!new_name) return rename(from, to);
#ifdef RENAME_NOREPLACE
    if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE)) return 0;
    if (errno == EEXIST) return -1;
#endif
    return place_link(from, to);
}

const char *place_reason(void)
{
    return errno == EEXIST ? "a file of that name was made meanwhile, and it "
           "stays; give another name, or --overwrite" : strerror(errno);
}
