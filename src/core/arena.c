/* arena.c: chained-block arenas.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   a block never moves, so pointers survive growth. Blocks above the
 *         mark of a reset are kept aside; what is kept never raises the peak.
 *         A loop whose turns begin with an empty arena goes to the system in
 *         its first turns alone: such an arena begins with one block of its
 *         peak, and of a block that turns out too small the rest goes back. So
 *         pages are found and cleared once, which was a tenth of a layer's
 *         time. Other loops may ask for blocks in every turn.
 *         A block that is a file has lost its name before anything is in it, so
 *         nothing is left of it however the process ends; and all of its disk
 *         is there before anything is written, where the system can promise
 *         that: so a full disk is an error here and not a signal later. Its
 *         bytes are zeros before anyone writes them, and zeros are not written
 *         over zeros: that would be the whole file, and send it to the disk. */
#include "tether/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/context.h"
#include "core/device.h"

#define ALIGN 64
#define BLOCK_MIN ((size_t)1 << 20)

typedef struct tt_arena_block {
    struct tt_arena_block *below;
    size_t size;   /* usable bytes */
    size_t fresh;  /* those from here on hold zeros; size: none is known to */
    char *data;    /* after this header, or memory of a device */
} block;

#define HEADER ((sizeof(block) + ALIGN - 1) / ALIGN * ALIGN)

/* The header stays in host memory. */
static block *device_block(const tt_device *d, size_t size)
{
    block *b = malloc(sizeof *b);
    if (!b) return NULL;
    *b = (block){.size = size, .fresh = size, .data = d->alloc(d, size)};
    if (b->data) return b;
    free(b);
    return NULL;
}

/* A new file of `folder` that no one else can open; -1 with errno: none. */
static int nameless(const char *folder)
{
    char path[4096];
    errno = ENOENT;
    if (!*folder) return -1; /* and no file next to the root */
#ifdef O_TMPFILE
    const int own = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (own >= 0) return own; /* else a file system that has no such files */
#endif
    if ((size_t)snprintf(path, sizeof path, "%s/tether-XXXXXX", folder)
        >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int fd = mkstemp(path);
    if (fd >= 0) unlink(path);
    return fd;
}

/* All of the file's disk, where the system can promise it; an errno. */
static int arena_reserve(int fd, size_t bytes)
{
    const int refused = posix_fallocate(fd, 0, (off_t)bytes);
    if (refused != EOPNOTSUPP && refused != EINVAL) return refused;
    return ftruncate(fd, (off_t)bytes) ? errno : 0;
}

/* Memory backed by a new file of `folder`; NULL with errno. */
static void *file_block(const char *folder, size_t bytes)
{
    const int fd = nameless(folder);
    if (fd < 0) return NULL;
    void *p = MAP_FAILED;
    const int refused = arena_reserve(fd, bytes);
    if (!refused)
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int why = refused ? refused : errno;
    close(fd);
    errno = why;
    return p == MAP_FAILED ? NULL : p;
}

static block *block_new(const tt_arena *a, size_t size)
{
    if (a->device) return device_block(a->device, size);
    size_t bytes = size + HEADER;
    if (bytes < size) return NULL;
    if (a->folder) {
        block *f = file_block(a->folder, bytes);
        if (f) *f = (block){.size = size, .data = (char *)f + HEADER};
        return f;
    }
#ifdef MAP_ANONYMOUS
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
    if (bytes >= (size_t)4 << 20) madvise(p, bytes, MADV_HUGEPAGE);
#endif
#else
    void *p = aligned_alloc(ALIGN, (bytes + ALIGN - 1) / ALIGN * ALIGN);
    if (!p) return NULL;
#endif
    block *b = p;
    *b = (block){.size = size, .fresh = size, .data = (char *)b + HEADER};
    return b;
}

static void block_free(const tt_arena *a, block *b)
{
    if (a->device) {
        a->device->free(a->device, b->data, b->size);
        free(b);
        return;
    }
#ifdef MAP_ANONYMOUS
    munmap(b, b->size + HEADER);
#else
    if (a->folder) munmap(b, b->size + HEADER);
    else free(b);
#endif
}

static void free_list(const tt_arena *a, block *b)
{
    while (b) {
        block *below = b->below;
        block_free(a, b);
        b = below;
    }
}

/* Give spare blocks back until nothing beyond the peak is held. */
static void arena_trim(tt_arena *a)
{
    while (a->spare && a->total + a->spare_bytes > a->peak) {
        block *b = a->spare;
        a->spare = b->below;
        a->spare_bytes -= b->size;
        block_free(a, b);
    }
}

/* The smallest spare block of at least `need`, NULL: none. Memory of a device
 * does not go back in part: there it is less than twice that. */
static block *take_spare(tt_arena *a, size_t need)
{
    block **best = NULL;
    for (block **p = &a->spare; *p; p = &(*p)->below) {
        const size_t size = (*p)->size;
        if (size < need || (a->device && size / 2 >= need)) continue;
        if (!best || size < (*best)->size) best = p;
    }
    if (!best) return NULL;
    block *b = *best;
    *best = b->below;
    a->spare_bytes -= b->size;
    return b;
}

/* The pages at the end of the newest block that nothing stands on go back, if
 * they are worth a call: another block comes on top. */
static void cut_top(tt_arena *a)
{
#ifdef MAP_ANONYMOUS
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    block *b = a->top;
    if (!b || a->device || b->size - a->used < BLOCK_MIN) return;
    const size_t keep = (HEADER + a->used + page - 1) / page * page;
    const size_t end = HEADER + b->size;
    if (keep >= end || munmap((char *)b + keep, end - keep)) return;
    a->total -= end - keep;
    b->size -= end - keep;
#else
    (void)a;
#endif
}

/* A block that reaches up to the peak, in place of all spare ones; NULL: what
 * is asked for goes beyond, or there is no such block. */
static block *block_up_to_peak(tt_arena *a, size_t need)
{
    if (a->device || need > a->peak - a->total) return NULL;
    free_list(a, a->spare);
    a->spare = NULL;
    a->spare_bytes = 0;
    return block_new(a, a->peak - a->total);
}

/* Is nothing in use, and what is kept more than one block? */
static bool in_pieces(const tt_arena *a)
{
    return a->total == 0 && a->spare && a->spare->below && !a->device;
}

/* What was given out of the newest block may hold anything. */
static void soil(const tt_arena *a)
{
    block *b = a->top;
    if (b && a->used > b->fresh) b->fresh = a->used;
}

static block *block_for(tt_arena *a, size_t need)
{
    soil(a);
    cut_top(a);
    block *b = in_pieces(a) ? NULL : take_spare(a, need);
    if (!b) b = block_up_to_peak(a, need);
    return b ? b : block_new(a, need);
}

static void no_block(tt_ctx *ctx, const tt_arena *a, size_t need,
                     const char *what)
{
    const double more = (double)need / 1e6, there = (double)a->total / 1e6;
    if (a->folder)
        tt_fail(ctx, TT_EIO, "%s: %s needs a file of %.1f MB there, next to "
                "%.1f MB: %s", a->folder, what, more, there, strerror(errno));
    else
        tt_fail(ctx, TT_ENOMEM, "out of memory: %s needs %.1f MB more; %.1f MB "
                "are already in use there", what, more, there);
}

void *tt_alloc(tt_ctx *ctx, tt_arena *a, int64_t n, size_t size,
               const char *what)
{
    if (ctx->status) return NULL;
    int64_t bytes = 0;
    if (!tt_checked_size(&bytes, &n, 1, size)
        || bytes > PTRDIFF_MAX - 2 * ALIGN) {
        tt_fail(ctx, TT_ENOMEM, "out of memory: %s asks for more bytes than "
                "a pointer of this machine can reach", what);
        return NULL;
    }
    size_t need = ((size_t)bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (need == 0) need = ALIGN;
    bool refuse = a->fail_after && --a->fail_after == 0;
    if (refuse) errno = ENOMEM;
    if (!refuse && (!a->top || a->top->size - a->used < need)) {
        size_t at_least = need > BLOCK_MIN ? need : BLOCK_MIN;
        block *b = block_for(a, at_least);
        if (b) {
            b->below = a->top;
            a->top = b;
            a->used = 0;
            a->total += b->size;
            if (a->total > a->peak) a->peak = a->total;
            arena_trim(a);
        } else {
            refuse = true;
        }
    }
    if (refuse) {
        no_block(ctx, a, need, what);
        return NULL;
    }
    void *p = a->top->data + a->used;
    a->used += need;
    return p;
}

void *tt_alloc0(tt_ctx *ctx, tt_arena *a, int64_t n, size_t size,
                const char *what)
{
    char *p = tt_alloc(ctx, a, n, size, what);
    if (p && (size_t)(p - a->top->data) < a->top->fresh)
        memset(p, 0, (size_t)n * size);
    return p;
}

char *tt_strdup(tt_ctx *ctx, tt_arena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = tt_alloc(ctx, a, (int64_t)n, 1, "a string");
    if (p) memcpy(p, s, n);
    return p;
}

tt_arena_mark tt_arena_here(const tt_arena *a)
{
    const tt_arena *v = a->values;
    return (tt_arena_mark){a->top, a->used, v ? v->top : NULL, v ? v->used : 0};
}

static void reset(tt_arena *a, block *top, size_t used)
{
    soil(a);
    while (a->top && a->top != top) {
        block *b = a->top;
        a->top = b->below;
        a->total -= b->size;
        b->below = a->spare;
        a->spare = b;
        a->spare_bytes += b->size;
    }
    a->used = used;
    arena_trim(a);
}

void tt_arena_reset(tt_arena *a, tt_arena_mark m)
{
    reset(a, m.top, m.used);
    if (a->values) reset(a->values, m.values_top, m.values_used);
}

tt_arena *tt_arena_values(tt_ctx *ctx, tt_arena *a)
{
    if (ctx->status) return NULL;
    if (!a->values) a->values = calloc(1, sizeof *a->values);
    if (a->values) a->values->device = ctx->device;
    else tt_fail(ctx, TT_ENOMEM, "out of memory: an arena of %s",
                 ctx->device->name);
    return a->values;
}

void tt_arena_free(tt_arena *a)
{
    if (a->values) tt_arena_free(a->values);
    free(a->values);
    a->values = NULL;
    free_list(a, a->top);
    free_list(a, a->spare);
    a->top = a->spare = NULL;
    a->used = a->total = a->spare_bytes = a->peak = 0;
}

tt_host *tt_scratch(tt_ctx *ctx, int64_t n)
{
    return tt_alloc(ctx, &ctx->scratch, n, sizeof(tt_host), "scratch");
}
