/* map.c: a whole file as read-only memory (POSIX mmap).
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   the descriptor is closed again before io_map_open returns: many
 *         shards may be open at once. */
#include "io/map.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t nothing[1] = {0};

static tt_status map_fd(tt_ctx *ctx, io_map *m, const char *path, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return tt_fail(ctx, TT_EIO, "%s: cannot read its size: %s", path,
                       strerror(errno));
    if (S_ISDIR(st.st_mode))
        return tt_fail(ctx, TT_EIO, "%s: is a folder, expected a file", path);
    if (!S_ISREG(st.st_mode))
        return tt_fail(ctx, TT_EIO, "%s: a pipe or a device, expected a file; "
                       "write its content to a file first", path);
    if ((uint64_t)st.st_size > SIZE_MAX)
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "%s: too large for this machine's address space", path);
    m->size = (int64_t)st.st_size;
    m->changed[0] = (int64_t)st.st_mtim.tv_sec;
    m->changed[1] = (int64_t)st.st_mtim.tv_nsec;
    m->changed[2] = (int64_t)st.st_ctim.tv_sec;
    m->changed[3] = (int64_t)st.st_ctim.tv_nsec;
    if (m->size == 0) return TT_OK;
    void *p = mmap(NULL, (size_t)m->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return tt_fail(ctx, TT_EIO, "%s: cannot map %lld bytes: %s", path,
                       (long long)m->size, strerror(errno));
    m->base = p;
    m->data = p;
    return TT_OK;
}

tt_status io_map_open(tt_ctx *ctx, io_map *m, const char *path)
{
    *m = (io_map){.data = nothing};
    if (ctx->status) return ctx->status;
    /* O_NONBLOCK: a pipe given by mistake must not hang the program. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tt_fail(ctx, TT_EIO, "%s: cannot open: %s%s", path,
                       strerror(errno),
                       errno == ENOENT || errno == ENOTDIR
                           ? "; check the path" : "");
    tt_status s = map_fd(ctx, m, path, fd);
    close(fd);
    return s;
}

void io_map_close(io_map *m)
{
    if (m->base) munmap(m->base, (size_t)m->size);
    *m = (io_map){.data = nothing};
}

static bool lies_in(const io_map *m, const void *p, int64_t n)
{
    const uintptr_t base = (uintptr_t)m->base, at = (uintptr_t)p;
    return m->base && at >= base && at - base < (uint64_t)m->size
           && (uint64_t)n <= (uint64_t)m->size - (at - base);
}

/* Of a read-only private mapping nothing can be lost: the next touch maps the
 * same page of the file again. */
bool io_map_release(const io_map *m, const void *p, int64_t n)
{
    uintptr_t base = (uintptr_t)m->base, at = (uintptr_t)p;
    if (!lies_in(m, p, n)) return false;
    long page = sysconf(_SC_PAGESIZE);
    if (page <= 0) return true;
    uintptr_t size = (uintptr_t)page;
    uintptr_t from = (at + size - 1) / size * size;
    uintptr_t to = (at + (uintptr_t)n) / size * size;
    if (from < to)
        (void)madvise((char *)m->base + (from - base), to - from,
                      MADV_DONTNEED);
    return true;
}

bool io_map_expect(const io_map *m, const void *p, int64_t n)
{
    const uintptr_t base = (uintptr_t)m->base, at = (uintptr_t)p;
    const long page = sysconf(_SC_PAGESIZE);
    if (!lies_in(m, p, n)) return false;
    if (page <= 0) return true;
    const uintptr_t from = (at - base) / (uintptr_t)page * (uintptr_t)page;
    (void)madvise((char *)m->base + from, at - base - from + (uintptr_t)n,
                  MADV_WILLNEED);
    return true;
}

/* Clean pages of mapped files count as available: the system drops them when it
 * needs room. */
bool io_crowded(int64_t bytes, const char *meminfo)
{
    if (bytes <= INT64_C(1) << 30) return false;
    return os_memory_available(meminfo) < bytes;
}
