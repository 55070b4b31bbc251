/* index.c: checkpoints in several files, with an index ("*.index.json") or
 * without.
 *
 * Source  {"metadata": {...}, "weight_map": {tensor: file}};
 *         X-00001-of-00003.safetensors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shards are plain names in the folder of the index. "metadata" is not
 * checked: shared tensors make total_size differ from the sum. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/bytes.h"
#include "io/file.h"
#include "io/json.h"

#define SHARD_LIMIT 10000

static tt_status index_refuse(tt_ctx *ctx, const tt_file *f, const char *key,
                              const char *why)
{
    char show[IO_SHOW];
    return tt_fail(ctx, TT_EFORMAT, "%s: weight_map entry '%s': %s", f->path,
                   io_show(show, key, strlen(key)), why);
}

/* A file name that cannot leave the folder and can be shown in a message. */
static bool plain_name(const tt_json *v)
{
    for (size_t i = 0; i < v->n; i++)
        if ((uint8_t)v->as.str[i] < 0x20 || v->as.str[i] == 0x7f) return false;
    return v->n > 0 && strlen(v->as.str) == v->n && strcmp(v->as.str, ".")
           && !strstr(v->as.str, "..") && !strpbrk(v->as.str, "/\\");
}

static int by_file(const void *a, const void *b)
{
    const tt_json *x = *(const tt_json *const *)a;
    const tt_json *y = *(const tt_json *const *)b;
    return strcmp(x->as.str, y->as.str);
}

/* members[0..n) sorted by file name: open every file once. */
static tt_status open_shards(tt_ctx *ctx, tt_file *f,
                             const tt_json **member, int64_t n,
                             const char *dir)
{
    int64_t distinct = 0;
    for (int64_t i = 0; i < n; i++)
        distinct += i == 0 || by_file(&member[i - 1], &member[i]) != 0;
    if (distinct > SHARD_LIMIT)
        return tt_fail(ctx, TT_EFORMAT, "%s: names %lld files, expected at "
                       "most %d", f->path, (long long)distinct, SHARD_LIMIT);
    f->shard = tt_alloc0(ctx, &f->arena, distinct, sizeof *f->shard, "shards");
    if (!f->shard) return ctx->status;
    for (int64_t i = 0; i < n; i++) {
        if (i > 0 && by_file(&member[i - 1], &member[i]) == 0) continue;
        char *path = io_join(ctx, &f->arena, dir, member[i]->as.str);
        if (!path) return ctx->status;
        TT_TRY(file_open_shard(ctx, &f->shard[f->nshards], path));
        f->nshards++;
    }
    return TT_OK;
}

static const tt_file *shard_named(const tt_file *f, const char *name)
{
    int64_t lo = 0, hi = f->nshards; /* sorted by name, same folder */
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        const char *slash = strrchr(f->shard[mid]->path, '/');
        const char *base = slash ? slash + 1 : f->shard[mid]->path;
        int c = strcmp(base, name);
        if (c == 0) return f->shard[mid];
        if (c < 0) lo = mid + 1;
        else hi = mid;
    }
    return NULL;
}

/* Every tensor that `map` names, in the file it names. */
static tt_status find_all(tt_ctx *ctx, const tt_entry **found, const tt_file *f,
                          const tt_json *map)
{
    int64_t n = 0;
    for (const tt_json *v = tt_json_first(map); v; v = tt_json_next(v)) {
        const tt_file *s = shard_named(f, v->as.str);
        found[n] = s ? tt_file_find(s, v->key) : NULL;
        if (!found[n++])
            return index_refuse(ctx, f, v->key, "not in the file it names");
    }
    return TT_OK;
}

/* Entries are much larger than their names: memory for them is asked for when
 * there are as many tensors. */
static tt_status read_map(tt_ctx *ctx, tt_file *f, const tt_json *map)
{
    tt_arena *a = &ctx->scratch;
    const int64_t count = tt_json_count(map);
    const tt_json **member =
        tt_alloc(ctx, a, count, sizeof *member, "weight_map");
    const tt_entry **found =
        tt_alloc(ctx, a, count, sizeof *found, "weight_map");
    char *dir = io_folder_of(ctx, a, f->path);
    int64_t n = 0;
    if (!member || !found || !dir) return ctx->status;
    for (const tt_json *v = tt_json_first(map); v; v = tt_json_next(v)) {
        if (v->kind != TT_JSON_STRING)
            return index_refuse(ctx, f, v->key, "expected a file name");
        if (!plain_name(v))
            return index_refuse(ctx, f, v->key,
                                "the file must be a plain name in the folder "
                                "of the index");
        member[n++] = v;
    }
    if (n > 1) qsort(member, (size_t)n, sizeof *member, by_file);
    TT_TRY(open_shards(ctx, f, member, n, dir));
    TT_TRY(find_all(ctx, found, f, map));
    if (file_alloc_entries(ctx, f, n))
        for (int64_t i = 0; i < n; i++) f->entry[i] = *found[i];
    return ctx->status;
}

tt_status index_read(tt_ctx *ctx, tt_file *f)
{
    const tt_json *root;
    f->format = "safetensors index";
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_json_parse(ctx, &ctx->scratch, &root, (const char *)f->map.data,
                  (size_t)f->map.size, f->path);
    const tt_json *map = tt_json_get(root, "weight_map");
    if (!ctx->status) {
        if (map && map->kind == TT_JSON_OBJECT)
            read_map(ctx, f, map);
        else
            tt_fail(ctx, TT_EFORMAT,
                    "%s: a JSON file without \"weight_map\" is not a "
                    "checkpoint", f->path);
    }
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

/* ---- without an index ---------------------------------------------------- */

/* Where in "dir/X-00001-of-00003.y" the number stands, and how many there are;
 * NULL: another name, or the only one. */
static const char *index_number_in(const char *path, int *parts)
{
    enum { DIGITS = 5 };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *of = strstr(name, "-of-");
    if (!of || of < name + DIGITS + 1 || of[-DIGITS - 1] != '-') return NULL;
    const char *first = of - DIGITS, *last = of + strlen("-of-");
    if (strspn(first, "0123456789") != DIGITS
        || strspn(last, "0123456789") != DIGITS) return NULL;
    *parts = atoi(last);
    return *parts > 1 ? first : NULL;
}

bool file_is_part(const char *path)
{
    int parts;
    return index_number_in(path, &parts) != NULL;
}

/* The first of the parts that is not there, in `path`; false: all are. */
static bool lacks_part(char *path, int64_t at, int parts)
{
    struct stat st;
    char digits[16];
    for (int i = 0; i < parts; i++) {
        snprintf(digits, sizeof digits, "%05d", i + 1);
        memcpy(path + at, digits, 5);
        if (stat(path, &st)) return true;
    }
    return false;
}

bool file_has_all_parts(tt_ctx *ctx, const char *path)
{
    int parts;
    const char *at = index_number_in(path, &parts);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    char *copy = at ? tt_strdup(ctx, &ctx->scratch, path) : NULL;
    const bool all = copy && !lacks_part(copy, at - path, parts);
    tt_arena_reset(&ctx->scratch, m);
    return all;
}

static tt_status index_open_parts(tt_ctx *ctx, tt_file *f, int parts,
                                  int64_t at)
{
    char *path = tt_strdup(ctx, &ctx->scratch, f->path), digits[16];
    f->shard = tt_alloc0(ctx, &f->arena, parts, sizeof *f->shard, "shards");
    if (parts > SHARD_LIMIT || !path || !f->shard)
        return tt_fail(ctx, TT_EFORMAT, "%s: too many parts", f->path);
    if (lacks_part(path, at, parts))
        return tt_fail(ctx, TT_EIO, "%s: one of %d parts, and %s is not there; "
                       "fetch it", f->path, parts, path);
    for (int i = 0; i < parts; i++) {
        snprintf(digits, sizeof digits, "%05d", i + 1);
        memcpy(path + at, digits, 5);
        TT_TRY(file_open_shard(ctx, &f->shard[i], path));
        f->nshards++;
    }
    return TT_OK;
}

tt_status parts_read(tt_ctx *ctx, tt_file *f)
{
    int parts = 0;
    int64_t n = 0;
    const char *at = index_number_in(f->path, &parts);
    f->format = "parts without index";
    io_map_close(&f->map);
    f->map = (io_map){0};
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    index_open_parts(ctx, f, parts, at - f->path);
    tt_arena_reset(&ctx->scratch, m);
    for (int64_t i = 0; i < f->nshards; i++) n += f->shard[i]->count;
    if (ctx->status || !file_alloc_entries(ctx, f, n)) return ctx->status;
    n = 0;
    for (int64_t i = 0; i < f->nshards; i++)
        for (int64_t k = 0; k < f->shard[i]->count; k++)
            f->entry[n++] = f->shard[i]->entry[k];
    return TT_OK;
}
