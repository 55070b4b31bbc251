/* st_write.c: safetensors files, written so that no half file is ever seen.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   "<path>.part-0" collects the data while the header is still unknown.
 *         Finishing puts the header into the room left in front
 *         (tt_st_reserve); when there is none or too little, it writes
 *         "<path>.part-0h" = header + data. Either is flushed to the disk and
 *         renamed to <path>. A lock tells a living writer from a killed one,
 *         whose files go with the next; next to a living one it is
 *         "<path>.part-1" and so on, and where there are no locks
 *         "<path>.part-<pid>". "<path>.part" may be half of a download.
 * Holds   tensors lie in the order of tt_st_add without gaps; the header is
 *         padded with spaces so that the data starts at a multiple of 8. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/bytes.h"
#include "io/file.h"
#include "io/place.h"
#include "io/outfile.h"

typedef struct item {
    const char *name;
    tt_dtype dtype;
    int rank;
    int64_t dim[TT_MAX_RANK];
    int64_t begin, end; /* bytes in the data part */
    struct item *next;
} item;

typedef struct pair {
    const char *key, *value;
    struct pair *next;
} pair;

struct tt_st_writer {
    tt_ctx *ctx;
    tt_arena arena;
    char *path, *data_path, *full_path; /* for messages, data, header + data */
    char *final;        /* links followed                                     */
    bool is_new;        /* nothing had that name at the start                 */
    int fd;             /* of data_path */
    int64_t nbytes;
    int64_t reserved;   /* bytes left in front of the data in fd */
    item *first, *last;
    pair *meta, *last_meta;
    char *buf;          /* small writes are collected here */
    size_t used;
};

#define BUFFER ((size_t)1 << 18)

/* ---- bytes to files ------------------------------------------------------ */

static tt_status cannot(tt_st_writer *w, const char *what)
{
    return tt_fail(w->ctx, TT_EIO, "%s: cannot %s: %s", w->path, what,
                   place_reason());
}

static tt_status st_write_write_all(tt_st_writer *w, int fd, const void *data,
                                    size_t n)
{
    const char *p = data;
    while (n > 0) {
        ssize_t k = write(fd, p, n < (1u << 30) ? n : 1u << 30);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) {
            if (k == 0) errno = ENOSPC;
            return cannot(w, "write");
        }
        p += k;
        n -= (size_t)k;
    }
    return TT_OK;
}

static tt_status empty_buffer(tt_st_writer *w)
{
    size_t n = w->used;
    w->used = 0;
    return n ? st_write_write_all(w, w->fd, w->buf, n) : TT_OK;
}

static tt_status st_write_put(tt_st_writer *w, const void *data, size_t n)
{
    if (w->used + n > BUFFER) TT_TRY(empty_buffer(w));
    if (n >= BUFFER) return st_write_write_all(w, w->fd, data, n);
    if (n > 0) memcpy(w->buf + w->used, data, n);
    w->used += n;
    return TT_OK;
}

/* Values of the host, little-endian in the file. */
static tt_status put_values(tt_st_writer *w, const void *data, size_t n,
                            tt_dtype type)
{
    enum { SOME = 4096 }; /* a multiple of every size of an element */
    unsigned char some[SOME];
    const size_t size = tt_dtype_size(type);
    if (tt_host_little_endian() || tt_dtype_block(type) > 1)
        return st_write_put(w, data, n);
    for (size_t at = 0; at < n; at += SOME) {
        const size_t k = n - at < SOME ? n - at : SOME;
        memcpy(some, (const char *)data + at, k);
        tt_swap_stored(some, type, (int64_t)(k / size));
        TT_TRY(st_write_put(w, some, k));
    }
    return TT_OK;
}

static void name_part(char *path, size_t n, const void *final, int k)
{
    snprintf(path, n, "%s.part-%d", (const char *)final, k);
}

/* A fresh file for the data, for reading as well, and the name of one for
 * header and data: under the lock of the first, whoever left one was killed. */
static tt_status st_write_create(tt_st_writer *w, size_t n)
{
    const place_names of = {name_part, w->final, "h"};
    w->fd = place_take(w->data_path, n, &of);
    if (w->fd < 0) return cannot(w, "create a file in its folder");
    snprintf(w->full_path, n, "%sh", w->data_path);
    return TT_OK;
}

/* ---- create -------------------------------------------------------------- */

static tt_status check_target(tt_st_writer *w)
{
    struct stat st;
    if (stat(w->path, &st) != 0) return TT_OK; /* a new file */
    if (S_ISDIR(st.st_mode))
        return tt_fail(w->ctx, TT_EIO, "%s: is a folder, expected the name of "
                       "a file to write", w->path);
    if (!S_ISREG(st.st_mode))
        return tt_fail(w->ctx, TT_EIO, "%s: exists and is not a regular file",
                       w->path);
    return TT_OK;
}

static tt_status prepare(tt_st_writer *w, const char *path)
{
    w->path = tt_strdup(w->ctx, &w->arena, path);
    w->final = tt_out_target(w->ctx, &w->arena, path);
    if (w->ctx->status) return w->ctx->status;
    const size_t n = strlen(w->final) + 32;
    w->data_path = tt_alloc(w->ctx, &w->arena, (int64_t)n, 1, "a path");
    w->full_path = tt_alloc(w->ctx, &w->arena, (int64_t)n, 1, "a path");
    w->buf = tt_alloc(w->ctx, &w->arena, BUFFER, 1, "a write buffer");
    if (w->ctx->status) return w->ctx->status;
    TT_TRY(check_target(w));
    w->is_new = place_is_new(w->ctx, w->final);
    return st_write_create(w, n);
}

tt_status tt_st_create(tt_ctx *ctx, tt_st_writer **out, const char *path)
{
    *out = NULL;
    if (ctx->status) return ctx->status;
    tt_st_writer *w = calloc(1, sizeof *w);
    if (!w)
        return tt_fail(ctx, TT_ENOMEM, "%s: no memory to write it", path);
    w->ctx = ctx;
    w->fd = -1;
    if (prepare(w, path)) tt_st_abort(w);
    else *out = w;
    return ctx->status;
}

/* ---- add ----------------------------------------------------------------- */

/* Are all values of the tensor added last there? */
static bool st_write_complete(const tt_st_writer *w)
{
    return !w->last || w->last->end == w->nbytes;
}

/* A call that this file cannot take, with the rule it breaks. */
static tt_status st_write_refuse(tt_st_writer *w, const char *name,
                                 const char *rule)
{
    return tt_fail(w->ctx, TT_EINVAL, "%s: tensor %s: %s", w->path, name, rule);
}

tt_status tt_st_meta(tt_st_writer *w, const char *key, const char *value)
{
    if (!w) return TT_EINVAL;
    pair *p = tt_alloc(w->ctx, &w->arena, 1, sizeof *p, "metadata");
    if (!p) return w->ctx->status;
    *p = (pair){tt_strdup(w->ctx, &w->arena, key),
                tt_strdup(w->ctx, &w->arena, value), NULL};
    if (w->last_meta) w->last_meta->next = p;
    else w->meta = p;
    w->last_meta = p;
    return w->ctx->status;
}

tt_status tt_st_reserve(tt_st_writer *w, int64_t nbytes)
{
    if (!w) return TT_EINVAL;
    if (w->ctx->status) return w->ctx->status;
    if (w->first || nbytes < 0)
        return tt_fail(w->ctx, TT_EINVAL, "%s: room for a header is reserved "
                       "before the first tensor, and is not negative",
                       w->path);
    w->reserved = (nbytes + 8 + 7) / 8 * 8;
    return lseek(w->fd, (off_t)w->reserved, SEEK_SET) < 0 ? cannot(w, "write")
                                                      : TT_OK;
}

tt_status tt_st_add(tt_st_writer *w, const char *name, tt_dtype dtype,
                    int rank, const int64_t *dim, const void *data)
{
    if (!w) return TT_EINVAL;
    int64_t n, end;
    item *t = tt_alloc0(w->ctx, &w->arena, 1, sizeof *t, "a tensor entry");
    if (!t) return w->ctx->status;
    if (rank < 0 || rank > TT_MAX_RANK || dtype == TT_NONE)
        return st_write_refuse(w, name, "it needs a type and a rank of 0 to 8");
    if (!st_write_complete(w))
        return st_write_refuse(w, w->last->name,
                               "not all its values were written");
    if (!tt_checked_size(&n, dim, rank, tt_dtype_size(dtype))
        || !tt_checked_add(&end, w->nbytes, n))
        return tt_fail(w->ctx, TT_ESHAPE, "%s: tensor %s has an impossible "
                       "size", w->path, name);
    if (!data && n)
        return st_write_refuse(w, name, "without data, axis 0 or 1 must be 0");
    t->name = tt_strdup(w->ctx, &w->arena, name);
    t->dtype = dtype;
    t->rank = rank;
    if (rank > 0) memcpy(t->dim, dim, (size_t)rank * sizeof *dim);
    t->begin = w->nbytes;
    t->end = w->nbytes = end;
    if (w->last) w->last->next = t;
    else w->first = t;
    w->last = t;
    return w->ctx->status ? w->ctx->status
                          : put_values(w, data, (size_t)n, dtype);
}

tt_status tt_st_open_tensor(tt_st_writer *w, const char *name, tt_dtype dtype,
                            int rank, const int64_t *dim)
{
    if (!w) return TT_EINVAL;
    int64_t none[TT_MAX_RANK + 1] = {0}, n;
    TT_TRY(w->ctx->status);
    if (tt_dtype_block(dtype) != 1 || rank < 0 || rank > TT_MAX_RANK)
        return st_write_refuse(w, name, "it needs a plain type and a rank of 0 "
                               "to 8");
    TT_TRY(tt_st_add(w, name, dtype, 1, none, NULL));
    if (!tt_checked_size(&n, dim, rank, tt_dtype_size(dtype))
        || !tt_checked_add(&w->last->end, w->last->begin, n))
        return tt_fail(w->ctx, TT_ESHAPE, "%s: tensor %s has an impossible "
                       "size", w->path, name);
    w->last->rank = rank;
    if (rank > 0) memcpy(w->last->dim, dim, (size_t)rank * sizeof *dim);
    return TT_OK;
}

tt_status tt_st_write(tt_st_writer *w, const void *data, size_t nbytes)
{
    if (!w) return TT_EINVAL;
    if (w->ctx->status) return w->ctx->status;
    if (!w->last || nbytes > (uint64_t)(w->last->end - w->nbytes))
        return st_write_refuse(w, w->last ? w->last->name : "(none)",
                               "more bytes are given than it has left");
    w->nbytes += (int64_t)nbytes;
    return st_write_put(w, data, nbytes);
}

tt_status tt_st_append(tt_st_writer *w, int axis, int64_t rows,
                       const void *data)
{
    if (!w) return TT_EINVAL;
    item *t = w->last;
    int64_t n, dim[TT_MAX_RANK];
    if (w->ctx->status) return w->ctx->status;
    if (!t || axis < 0 || axis > 1 || axis >= t->rank || rows < 0
        || (axis == 1 && t->dim[0] != 1) || !st_write_complete(w))
        return st_write_refuse(w, t ? t->name : "(none)",
                               "only axis 0, or axis 1 after an axis of 1, of "
                               "the last tensor can grow");
    memcpy(dim, t->dim, sizeof dim);
    dim[axis] = rows;
    if (!tt_checked_size(&n, dim, t->rank, tt_dtype_size(t->dtype))
        || !tt_checked_add(&dim[axis], t->dim[axis], rows)
        || !tt_checked_add(&w->nbytes, w->nbytes, n))
        return tt_fail(w->ctx, TT_ESHAPE, "%s: tensor %s grows to an "
                       "impossible size", w->path, t->name);
    t->dim[axis] = dim[axis];
    t->end = w->nbytes;
    return put_values(w, data, (size_t)n, t->dtype);
}

tt_status tt_st_flush(tt_st_writer *w)
{
    if (!w) return TT_EINVAL;
    if (w->ctx->status) return w->ctx->status;
    TT_TRY(empty_buffer(w));
    return fsync(w->fd) ? cannot(w, "flush") : TT_OK;
}

/* ---- the header ---------------------------------------------------------- */

/* Text that is measured in a first pass (to == NULL) and written in a second.*/
typedef struct text {
    char *to;
    size_t n;
} text;

static void add_text(text *o, const char *s, size_t n)
{
    if (o->to) memcpy(o->to + o->n, s, n);
    o->n += n;
}

static void add_string(text *o, const char *s)
{
    add_text(o, "\"", 1);
    for (; *s; s++) {
        char buf[8];
        uint8_t c = (uint8_t)*s;
        int n = c == '"' || c == '\\' ? snprintf(buf, sizeof buf, "\\%c", c)
                : c < 0x20 ? snprintf(buf, sizeof buf, "\\u%04x", c)
                           : snprintf(buf, sizeof buf, "%c", c);
        add_text(o, buf, (size_t)n);
    }
    add_text(o, "\"", 1);
}

static void add_int(text *o, const char *before, int64_t v)
{
    char buf[32];
    int n = snprintf(buf, sizeof buf, "%s%lld", before, (long long)v);
    add_text(o, buf, (size_t)n);
}

static void add_word(text *o, const char *s)
{
    add_text(o, s, strlen(s));
}

static void add_header(text *o, const tt_st_writer *w)
{
    const char *comma = "";
    add_word(o, "{");
    if (w->meta) {
        add_word(o, "\"__metadata__\":{");
        for (const pair *p = w->meta; p; p = p->next) {
            add_string(o, p->key);
            add_word(o, ":");
            add_string(o, p->value);
            if (p->next) add_word(o, ",");
        }
        add_word(o, "}");
        comma = ",";
    }
    for (const item *t = w->first; t; t = t->next) {
        add_word(o, comma);
        add_string(o, t->name);
        add_word(o, ":{\"dtype\":\"");
        add_word(o, tt_dtype_name(t->dtype));
        add_word(o, "\",\"shape\":[");
        for (int i = 0; i < t->rank; i++) add_int(o, i ? "," : "", t->dim[i]);
        add_int(o, "],\"data_offsets\":[", t->begin);
        add_int(o, ",", t->end);
        add_word(o, "]}");
        comma = ",";
    }
    add_word(o, "}");
    while (o->n % 8) add_word(o, " ");
}

/* The header's text, in the writer's arena. */
static tt_status st_write_make_header(tt_st_writer *w, text *o)
{
    *o = (text){NULL, 0};
    add_header(o, w);
    o->to = tt_alloc(w->ctx, &w->arena, (int64_t)o->n, 1, "a file header");
    if (!o->to) return w->ctx->status;
    o->n = 0;
    add_header(o, w);
    if (utf8_check((const uint8_t *)o->to, o->n) < o->n)
        return tt_fail(w->ctx, TT_EINVAL,
                       "%s: a tensor name or text is not UTF-8", w->path);
    return TT_OK;
}

static tt_status write_header(tt_st_writer *w, int fd, const text *o,
                              size_t padding)
{
    uint8_t length[8];
    put_le64(length, o->n + padding);
    TT_TRY(st_write_write_all(w, fd, length, 8));
    TT_TRY(st_write_write_all(w, fd, o->to, o->n));
    memset(w->buf, ' ', BUFFER);
    for (size_t n; padding > 0; padding -= n) {
        n = padding < BUFFER ? padding : BUFFER;
        TT_TRY(st_write_write_all(w, fd, w->buf, n));
    }
    return TT_OK;
}

/* ---- finish -------------------------------------------------------------- */

static int st_write_by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static tt_status check_names(tt_st_writer *w)
{
    int64_t n = 0;
    for (const item *t = w->first; t; t = t->next) n++;
    const char **name = tt_alloc(w->ctx, &w->arena, n, sizeof *name, "names");
    if (!name) return w->ctx->status;
    n = 0;
    for (const item *t = w->first; t; t = t->next) name[n++] = t->name;
    if (n > 1) qsort(name, (size_t)n, sizeof *name, st_write_by_name);
    for (int64_t i = 1; i < n; i++)
        if (!strcmp(name[i - 1], name[i]))
            return tt_fail(w->ctx, TT_EINVAL, "%s: tensor name '%s' is used "
                           "twice", w->path, name[i]);
    return TT_OK;
}

static tt_status copy_data(tt_st_writer *w, int to)
{
    if (lseek(w->fd, (off_t)w->reserved, SEEK_SET) < 0)
        return cannot(w, "read its data again");
    for (int64_t left = w->nbytes; left > 0;) {
        ssize_t k = read(w->fd, w->buf, BUFFER);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) {
            if (k == 0) errno = EIO;
            return cannot(w, "read its data again");
        }
        TT_TRY(st_write_write_all(w, to, w->buf, (size_t)k));
        left -= k;
    }
    return TT_OK;
}

/* The header does not fit in front: a second file gets both. */
static tt_status finish_copy(tt_st_writer *w, const text *header)
{
    const int fd = place_create(w->full_path);
    if (fd < 0) return cannot(w, "create a file in its folder");
    tt_status s = write_header(w, fd, header, 0);
    if (!s) s = copy_data(w, fd);
    if (!s && fsync(fd)) s = cannot(w, "flush");
    if (close(fd) && !s) s = cannot(w, "close");
    if (!s && place_rename(w->full_path, w->final, w->is_new))
        s = cannot(w, "take that name");
    if (s) unlink(w->full_path);
    return s;
}

static tt_status finish_in_place(tt_st_writer *w, const text *header)
{
    if (lseek(w->fd, 0, SEEK_SET) < 0) return cannot(w, "write its header");
    TT_TRY(write_header(w, w->fd, header,
                        (size_t)w->reserved - 8 - header->n));
    if (fsync(w->fd)) return cannot(w, "flush");
    const int held = dup(w->fd); /* keeps its lock until the name is gone */
    const int fd = w->fd;
    w->fd = -1; /* from here on not ours to remove */
    if (close(fd)
        || place_rename(w->data_path, w->final, w->is_new)) {
        cannot(w, "take that name");
        unlink(w->data_path);
    }
    if (held >= 0) close(held);
    return w->ctx->status;
}

static tt_status write_full(tt_st_writer *w)
{
    text header;
    if (!st_write_complete(w))
        return st_write_refuse(w, w->last->name,
                               "not all its values were written");
    TT_TRY(empty_buffer(w));
    TT_TRY(check_names(w));
    TT_TRY(st_write_make_header(w, &header));
    return (int64_t)header.n + 8 <= w->reserved ? finish_in_place(w, &header)
                                            : finish_copy(w, &header);
}

tt_status tt_st_finish(tt_st_writer *w)
{
    if (!w) return TT_OK;
    tt_ctx *ctx = w->ctx;
    if (!ctx->status) write_full(w);
    tt_st_abort(w);
    return ctx->status;
}

void tt_st_abort(tt_st_writer *w)
{
    if (!w) return;
    if (w->fd >= 0) {
        unlink(w->data_path); /* while its lock is held */
        close(w->fd);
    }
    tt_arena_free(&w->arena);
    free(w);
}
