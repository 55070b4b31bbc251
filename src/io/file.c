/* file.c: one checkpoint file, whatever its format.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    safetensors.c, torchfile.c, gguf.c, index.c: the readers
 *         weights.c: what a model binds from */
#include "io/file.h"

#include <stdlib.h>
#include <string.h>

#include "io/bytes.h"
#include "io/gguf.h"

#define INDEX_LIMIT 100000000

/* ---- paths --------------------------------------------------------------- */

char *io_join(tt_ctx *ctx, tt_arena *a, const char *dir, const char *name)
{
    size_t n = strlen(dir), m = strlen(name);
    char *s = tt_alloc(ctx, a, (int64_t)(n + m + 2), 1, "a path");
    if (!s) return NULL;
    memcpy(s, dir, n);
    if (n > 0 && dir[n - 1] != '/') s[n++] = '/';
    memcpy(s + n, name, m + 1);
    return s;
}

char *io_folder_of(tt_ctx *ctx, tt_arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return tt_strdup(ctx, a, ".");
    size_t n = slash == path ? 1 : (size_t)(slash - path);
    char *s = tt_alloc(ctx, a, (int64_t)n + 1, 1, "a path");
    if (!s) return NULL;
    memcpy(s, path, n);
    s[n] = '\0';
    return s;
}

/* ---- entries ------------------------------------------------------------- */

bool file_alloc_entries(tt_ctx *ctx, tt_file *f, int64_t n)
{
    f->entry = tt_alloc0(ctx, &f->arena, n, sizeof *f->entry, "tensor entries");
    if (!f->entry) return false;
    f->count = n;
    return true;
}

typedef struct name_at {
    const char *name;
    int64_t at;
} name_at;

static int name_order(const void *a, const void *b)
{
    const name_at *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

static tt_status sort_names(tt_ctx *ctx, tt_file *f)
{
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    name_at *k = tt_alloc(ctx, &ctx->scratch, f->count, sizeof *k, "names");
    f->by_name =
        tt_alloc(ctx, &f->arena, f->count, sizeof *f->by_name, "names");
    if (!ctx->status) {
        for (int64_t i = 0; i < f->count; i++) {
            tt_entry *e = &f->entry[i];
            if (!e->path) { /* flat: the path is the name */
                e->path = &e->name;
                e->npath = 1;
            }
            k[i] = (name_at){e->name, i};
        }
        if (f->count > 1) qsort(k, (size_t)f->count, sizeof *k, name_order);
        for (int64_t i = 0; i < f->count; i++) f->by_name[i] = k[i].at;
    }
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

/* ---- open and close ------------------------------------------------------ */

static bool map_starts(const io_map *m, const char *magic, size_t n)
{
    return (uint64_t)m->size >= n && !memcmp(m->data, magic, n);
}

/* JSON text, as opposed to a safetensors length below 2^32. */
static bool looks_like_json(const io_map *m)
{
    int64_t i = 0;
    if (m->size >= 8 && le32(m->data + 4) == 0) return false;
    if (map_starts(m, "\xef\xbb\xbf", 3)) i = 3; /* a byte order mark */
    while (i < m->size && i < 4096 && memchr(" \t\r\n", m->data[i], 4)) i++;
    return i < m->size && m->data[i] == '{';
}

tt_status io_cut_off(tt_ctx *ctx, const tt_file *f, int64_t whole)
{
    char have[32], want[32];
    return tt_fail(ctx, TT_EFORMAT, "%s: cut off: %s of %s bytes; fetch it "
                   "again", f->path, io_thousands(have, f->map.size),
                   io_thousands(want, whole));
}

/* A SentencePiece model begins with a piece: a message in a message. */
static bool looks_like_pieces(const io_map *m)
{
    const uint8_t *p = m->data;
    return m->size > 4 && p[0] == '\n' && p[2] == '\n' && p[3] > 0
        && p[3] + 2 <= p[1] && p[1] < 128;
}

tt_status file_refuse_dcp(tt_ctx *ctx, const char *path)
{
    return tt_fail(ctx, TT_EUNSUPPORTED, "%s: a distributed checkpoint of "
                   "PyTorch (DCP), which is not read; `python -m torch."
                   "distributed.checkpoint.format_utils dcp_to_torch FOLDER "
                   "FILE.pt` makes a file that is", path);
}

static tt_status read_any(tt_ctx *ctx, tt_file *f)
{
    static const char legacy[] =
        "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e";
    const io_map *m = &f->map;
    /* A header length below 4 GB and an opening brace: safetensors, whatever
     * its low bytes happen to spell. */
    if (m->size > 8 && !memcmp(m->data + 4, "\0\0\0\0{", 5))
        return safetensors_read(ctx, f);
    const char *dot = strrchr(f->path, '.');
    if (dot && !strcmp(dot, ".distcp")) return file_refuse_dcp(ctx, f->path);
    if (map_starts(m, "PK\3\4", 4)) return torch_read(ctx, f);
    if (map_starts(m, "GGUF", 4)) return gguf_read(ctx, f);
    if (map_starts(m, legacy, sizeof legacy - 1))
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "%s: a PyTorch file in the legacy (non-zip) format of "
                       "before 1.6; load it in PyTorch and save it again",
                       f->path);
    if (m->size >= 512 && !memcmp(m->data + 257, "ustar", 5))
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "%s: a tar archive (very old PyTorch format?); load it "
                       "in PyTorch and save it again", f->path);
    if (map_starts(m, "\x80\x02", 2) || map_starts(m, "\x80\x03", 2)
        || map_starts(m, "\x80\x04", 2))
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "%s: a bare pickle, not a PyTorch zip checkpoint",
                       f->path);
    if (map_starts(m, "version https://git-lfs", 23))
        return tt_fail(ctx, TT_EFORMAT, "%s: a Git LFS pointer, not the file "
                       "itself; fetch it with 'git lfs pull'", f->path);
    if (looks_like_pieces(m))
        return tt_fail(ctx, TT_EUNSUPPORTED, "%s: a SentencePiece model (what "
                       "--tokenizer takes), not a checkpoint", f->path);
    if (looks_like_json(m)) {
        if (m->size > INDEX_LIMIT)
            return tt_fail(ctx, TT_EFORMAT, "%s: JSON of %lld bytes is too "
                           "large for an index", f->path, (long long)m->size);
        return index_read(ctx, f);
    }
    return safetensors_read(ctx, f);
}

/* `given` is the content, or NULL: map the file. */
static tt_status open_with(tt_ctx *ctx, tt_file **out, const char *path,
                           const io_map *given,
                           tt_status (*read)(tt_ctx *, tt_file *))
{
    *out = NULL;
    if (ctx->status) return ctx->status;
    tt_file *f = calloc(1, sizeof *f);
    if (!f)
        return tt_fail(ctx, TT_ENOMEM, "%s: no memory to open it", path);
    f->path = tt_strdup(ctx, &f->arena, path);
    if (given) f->map = *given;
    else io_map_open(ctx, &f->map, path);
    if (!ctx->status && !read(ctx, f) && !sort_names(ctx, f)) {
        *out = f;
        return TT_OK;
    }
    tt_file_close(f);
    return ctx->status;
}

tt_status tt_file_open(tt_ctx *ctx, tt_file **out, const char *path)
{
    const bool parts = !ctx->status && file_has_all_parts(ctx, path);
    return open_with(ctx, out, path, NULL, parts ? parts_read : read_any);
}

tt_status file_open_bytes(tt_ctx *ctx, tt_file **out, const void *data,
                          size_t n, const char *path)
{
    io_map m = {.data = data, .size = (int64_t)n};
    return open_with(ctx, out, path, &m, read_any);
}

static tt_status read_shard(tt_ctx *ctx, tt_file *f)
{
    return map_starts(&f->map, "PK\3\4", 4) ? torch_read(ctx, f)
                                        : safetensors_read(ctx, f);
}

tt_status file_open_shard(tt_ctx *ctx, tt_file **out, const char *path)
{
    return open_with(ctx, out, path, NULL, read_shard);
}

tt_status file_open_parts(tt_ctx *ctx, tt_file **out, const char *path)
{
    return open_with(ctx, out, path, NULL, parts_read);
}

void tt_file_close(tt_file *f)
{
    if (!f) return;
    for (int64_t i = 0; i < f->nshards; i++) tt_file_close(f->shard[i]);
    io_map_close(&f->map);
    tt_arena_free(&f->arena);
    free(f);
}

void file_release(const tt_file *f, const tt_tensor *t)
{
    if (!t->data || !tt_tensor_packed(t)) return;
    if (io_map_release(&f->map, t->data, tt_tensor_bytes(t))) return;
    for (int64_t i = 0; i < f->nshards; i++) file_release(f->shard[i], t);
}

/* Of a quantised type the bytes before an element are near enough. */
void file_expect(const tt_file *f, const tt_tensor *t, int64_t first,
                 int64_t n)
{
    const int64_t count = tt_tensor_count(t), bytes = tt_tensor_bytes(t);
    if (!t->data || !tt_tensor_packed(t) || count < 1) return;
    const double each = (double)bytes / (double)count;
    const char *at = (const char *)t->data + (int64_t)(each * (double)first);
    if (io_map_expect(&f->map, at, (int64_t)(each * (double)n))) return;
    for (int64_t i = 0; i < f->nshards; i++)
        file_expect(f->shard[i], t, first, n);
}

/* ---- questions ----------------------------------------------------------- */

const char *tt_file_format(const tt_file *f)
{
    if (!f) return "";
    return f->format;
}

const char *tt_file_meta(const tt_file *f, const char *key)
{
    const file_meta *m = f ? f->meta : NULL;
    while (m && strcmp(m->key, key)) m = m->next;
    return m ? m->value : NULL;
}

int64_t tt_file_count(const tt_file *f)
{
    return f ? f->count : 0;
}

const tt_entry *tt_file_entry(const tt_file *f, int64_t i)
{
    if (!f || i < 0 || i >= f->count) return NULL;
    return &f->entry[i];
}

const tt_entry *tt_file_find(const tt_file *f, const char *name)
{
    if (!f) return NULL;
    int64_t lo = 0, hi = f->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        const tt_entry *e = &f->entry[f->by_name[mid]];
        if (strcmp(e->name, name) < 0) lo = mid + 1;
        else hi = mid;
    }
    if (lo == f->count) return NULL;
    const tt_entry *e = &f->entry[f->by_name[lo]];
    return strcmp(e->name, name) ? NULL : e;
}

int64_t tt_file_bytes(const tt_file *f)
{
    if (!f) return 0;
    int64_t n = f->map.size;
    for (int64_t i = 0; i < f->nshards; i++) n += tt_file_bytes(f->shard[i]);
    return n;
}
