/* folder.c: see folder.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Bytes that its disk has left; -1 with errno: not a folder for us. */
static double free_space(const char *folder)
{
    struct statvfs disk;
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/.", folder); /* no file */
    errno = ENAMETOOLONG;
    if (n < 0 || (size_t)n >= sizeof path) return -1;
    if (statvfs(path, &disk) || access(path, W_OK | X_OK)) return -1;
    return (double)disk.f_bavail * (double)disk.f_frsize;
}

tt_status folder_check(tt_ctx *ctx, const char *folder, int64_t bytes,
                       const char *who)
{
    if (ctx->status) return ctx->status;
    const double left = free_space(folder);
    if (left < 0)
        return tt_fail(ctx, TT_EIO, "%s %s: %s; give a folder that is there "
                       "and can be written to", who, folder, strerror(errno));
    if (left < (double)bytes)
        return tt_fail(ctx, TT_EIO, "%s %s: %.4g MB of its disk are needed, "
                       "and %.4g MB are left", who, folder,
                       1e-6 * (double)bytes, 1e-6 * left);
    return TT_OK;
}
