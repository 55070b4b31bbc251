/* torchzip.c: the directory of a PyTorch zip file.
 *
 * Source  PKWARE APPNOTE 6.3 (ZIP64: 4.3.14, 4.5.3); files written by miniz
 *         inside torch.save.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only the central directory is believed; a local header is read for the
 * lengths of its own name and extra field. CRCs are not checked here: torch
 * may write dummies and does not check them either; verify.c does.
 * Holds   after success all entries are stored (not compressed), lie inside
 *         the file in front of the directory and do not overlap. */
#include "io/torchzip.h"

#include <stdlib.h>
#include <string.h>

#include "io/bytes.h"

enum { END_SIZE = 22, END64_SIZE = 56, LOCATOR_SIZE = 20, CENTRAL_SIZE = 46,
       LOCAL_SIZE = 30 };

#define SIG_LOCAL 0x04034b50u
#define SIG_CENTRAL 0x02014b50u
#define SIG_END 0x06054b50u
#define SIG_LOCATOR 0x07064b50u
#define SIG_END64 0x06064b50u

typedef struct directory {
    int64_t at, size, count;
} directory;

static tt_status torchzip_refuse(tt_ctx *ctx, const tt_file *f, const char *why)
{
    return tt_fail(ctx, TT_EFORMAT, "%s: damaged PyTorch zip file: %s",
                   f->path, why);
}

/* ---- the end of the file ------------------------------------------------- */

/* Offset of the end record whose comment reaches exactly to the end. */
static int64_t find_end(const io_map *m)
{
    int64_t low = m->size - END_SIZE - 65535;
    for (int64_t i = m->size - END_SIZE; i >= 0 && i >= low; i--)
        if (le32(m->data + i) == SIG_END
            && i + END_SIZE + le16(m->data + i + 20) == m->size)
            return i;
    return -1;
}

static tt_status read_end64(tt_ctx *ctx, directory *d, const tt_file *f,
                            int64_t locator, int64_t *end)
{
    const uint8_t *p = f->map.data;
    uint64_t at = le64(p + locator + 8);
    if (le32(p + locator + 4) != 0 || le32(p + locator + 16) > 1)
        return torchzip_refuse(ctx, f, "more than one disk");
    if (at > (uint64_t)locator || (uint64_t)locator - at < END64_SIZE
        || le32(p + at) != SIG_END64)
        return torchzip_refuse(ctx, f, "no ZIP64 end record where its locator "
                               "points");
    p += at;
    uint64_t size = le64(p + 4), here = le64(p + 24), count = le64(p + 32);
    if (size < END64_SIZE - 12 || size > (uint64_t)locator - at - 12)
        return torchzip_refuse(ctx, f,
                               "impossible size of the ZIP64 end record");
    if (le32(p + 16) != 0 || le32(p + 20) != 0 || here != count)
        return torchzip_refuse(ctx, f, "more than one disk");
    if (count > INT64_MAX || le64(p + 40) > INT64_MAX
        || le64(p + 48) > INT64_MAX)
        return torchzip_refuse(ctx, f,
                               "impossible numbers in the ZIP64 end record");
    *d = (directory){(int64_t)le64(p + 48), (int64_t)le64(p + 40),
                     (int64_t)count};
    *end = (int64_t)at;
    return TT_OK;
}

static tt_status find_directory(tt_ctx *ctx, directory *d, const tt_file *f)
{
    int64_t end = find_end(&f->map), next;
    if (end < 0)
        return torchzip_refuse(ctx, f, "no end record: it is cut off; fetch "
                              "it again");
    const uint8_t *p = f->map.data + end;
    if (end >= LOCATOR_SIZE && le32(p - LOCATOR_SIZE) == SIG_LOCATOR) {
        TT_TRY(read_end64(ctx, d, f, end - LOCATOR_SIZE, &end));
    } else {
        if (le16(p + 4) != 0 || le16(p + 6) != 0 || le16(p + 8) != le16(p + 10))
            return torchzip_refuse(ctx, f, "more than one disk");
        *d = (directory){le32(p + 16), le32(p + 12), le16(p + 10)};
    }
    if (!tt_checked_add(&next, d->at, d->size) || next > end)
        return torchzip_refuse(ctx, f, "the directory lies outside the file");
    if (d->count > d->size / CENTRAL_SIZE)
        return torchzip_refuse(ctx, f,
                               "more entries than the directory can hold");
    return TT_OK;
}

/* ---- entries ------------------------------------------------------------- */

/* Replace 32-bit fields that are all ones by the values of the ZIP64 extra
 * field, which stand there in this order. */
static bool torchzip_widen(uint64_t *field[3], const uint8_t *extra, size_t n)
{
    const uint8_t *p = NULL, *end = NULL;
    for (size_t i = 0; i + 4 <= n;) {
        size_t len = le16(extra + i + 2);
        if (len > n - i - 4) return false;
        if (le16(extra + i) == 1 && !p) {
            p = extra + i + 4;
            end = p + len;
        }
        i += 4 + len;
    }
    for (int k = 0; k < 3; k++) {
        if (*field[k] != UINT32_MAX) continue;
        if (!p || end - p < 8) return false;
        *field[k] = le64(p);
        p += 8;
    }
    return true;
}

/* The local header at e->begin; sets data and end. */
static const char *read_local(zip_entry *e, const io_map *m, int64_t limit)
{
    if (e->begin > limit - LOCAL_SIZE) return "an entry outside the file";
    const uint8_t *p = m->data + e->begin;
    if (le32(p) != SIG_LOCAL) return "wrong signature of an entry";
    if (le16(p + 6) & 1) return "an encrypted entry";
    if (le16(p + 8) != 0) return "a compressed entry; torch.save stores them";
    size_t nname = le16(p + 26);
    int64_t data = e->begin + LOCAL_SIZE + (int64_t)nname + le16(p + 28);
    if (data > limit || e->size > limit - data)
        return "an entry outside the file";
    if (nname != e->nname || memcmp(p + LOCAL_SIZE, e->name, nname))
        return "an entry with two different names";
    e->data = m->data + data;
    e->end = data + e->size;
    return NULL;
}

/* One central record of at most n bytes; *used of them. NULL or the reason. */
static const char *read_central(zip_entry *e, const uint8_t *p, int64_t n,
                                int64_t *used)
{
    if (n < CENTRAL_SIZE || le32(p) != SIG_CENTRAL)
        return "wrong signature in the directory";
    size_t nname = le16(p + 28), nextra = le16(p + 30);
    *used = CENTRAL_SIZE + (int64_t)nname + (int64_t)nextra + le16(p + 32);
    if (*used > n) return "the directory ends inside an entry";
    if (le16(p + 8) & 1) return "an encrypted entry";
    if (le16(p + 10) != 0)
        return "a compressed entry, and torch.save stores them; if this is an "
               "archive with a checkpoint in it, unpack it";
    uint64_t size = le32(p + 24), packed = le32(p + 20), at = le32(p + 42);
    uint64_t *field[3] = {&size, &packed, &at};
    if (!torchzip_widen(field, p + CENTRAL_SIZE + nname, nextra))
        return "a malformed extra field";
    if (size != packed) return "an entry whose stored size differs";
    if (size > INT64_MAX || at > INT64_MAX) return "an impossible size";
    e->name = (const char *)p + CENTRAL_SIZE;
    e->nname = nname;
    e->size = (int64_t)size;
    e->crc = le32(p + 16);
    e->begin = (int64_t)at;
    return NULL;
}

static int torchzip_by_place(const void *a, const void *b)
{
    const zip_entry *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static int compare_names(const char *a, size_t n, const char *b, size_t m)
{
    int c = memcmp(a, b, n < m ? n : m);
    return c ? c : (n > m) - (n < m);
}

static int by_name(const void *a, const void *b)
{
    const zip_entry *x = a, *y = b;
    return compare_names(x->name, x->nname, y->name, y->nname);
}

static tt_status read_entries(tt_ctx *ctx, torchzip *z, tt_arena *a,
                              const tt_file *f, const directory *d)
{
    int64_t at = d->at, end = d->at + d->size, used = 0;
    size_t n = (size_t)d->count;
    z->entry = tt_alloc(ctx, a, d->count, sizeof *z->entry, "zip directory");
    if (!z->entry) return ctx->status;
    z->count = d->count;
    for (int64_t i = 0; i < z->count; i++, at += used) {
        zip_entry *e = &z->entry[i];
        const char *why =
            read_central(e, f->map.data + at, end - at, &used);
        if (!why) why = read_local(e, &f->map, d->at);
        if (why) return torchzip_refuse(ctx, f, why);
    }
    if (at != end)
        return torchzip_refuse(ctx, f,
                               "the directory is larger than its entries");
    if (n > 1) qsort(z->entry, n, sizeof *z->entry, torchzip_by_place);
    for (size_t i = 1; i < n; i++)
        if (z->entry[i].begin < z->entry[i - 1].end)
            return torchzip_refuse(ctx, f, "overlapping entries");
    if (n > 1) qsort(z->entry, n, sizeof *z->entry, by_name);
    for (size_t i = 1; i < n; i++)
        if (by_name(&z->entry[i - 1], &z->entry[i]) == 0)
            return torchzip_refuse(ctx, f, "two entries of the same name");
    return TT_OK;
}

/* ---- what torch puts inside ---------------------------------------------- */

static const zip_entry *torchzip_find(const torchzip *z, const char *folder,
                                      const char *key, size_t n)
{
    /* The name is root + folder + key: compare piece by piece. */
    size_t nfolder = strlen(folder);
    int64_t lo = 0, hi = z->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        const zip_entry *e = &z->entry[mid];
        const char *part[3] = {z->root, folder, key};
        size_t len[3] = {z->nroot, nfolder, n}, at = 0;
        int c = 0;
        for (int k = 0; k < 3 && c == 0; k++) {
            size_t left = e->nname - at, m = left < len[k] ? left : len[k];
            c = m ? memcmp(e->name + at, part[k], m) : 0;
            if (c == 0 && m < len[k]) c = -1;
            at += m;
        }
        if (c == 0 && at < e->nname) c = 1;
        if (c == 0) return e;
        if (c < 0) lo = mid + 1;
        else hi = mid;
    }
    return NULL;
}

const zip_entry *torchzip_storage(const torchzip *z, const char *key,
                                  size_t n)
{
    return torchzip_find(z, "data/", key, n);
}

static tt_status find_root(tt_ctx *ctx, torchzip *z, const tt_file *f)
{
    static const char tail[] = "/data.pkl";
    size_t ntail = sizeof tail - 1;
    for (int64_t i = 0; i < z->count; i++) {
        const zip_entry *e = &z->entry[i];
        if (e->nname < ntail
            || memcmp(e->name + e->nname - ntail, tail, ntail))
            continue;
        if (memchr(e->name, '/', e->nname) != e->name + e->nname - ntail)
            continue; /* deeper than one folder */
        if (z->pickle)
            return torchzip_refuse(ctx, f, "several entries FOLDER/data.pkl");
        z->pickle = e;
        z->root = e->name;
        z->nroot = e->nname - ntail + 1;
    }
    if (!z->pickle)
        return tt_fail(ctx, TT_EFORMAT, "%s: a zip file, but not one of "
                       "PyTorch: no entry FOLDER/data.pkl; if a checkpoint is "
                       "in it, unpack it", f->path);
    return TT_OK;
}

tt_status torchzip_read(tt_ctx *ctx, torchzip *z, tt_arena *a,
                        const tt_file *f)
{
    directory d = {0};
    *z = (torchzip){0};
    TT_TRY(find_directory(ctx, &d, f));
    TT_TRY(read_entries(ctx, z, a, f, &d));
    TT_TRY(find_root(ctx, z, f));
    const zip_entry *order = torchzip_find(z, "", "byteorder", 9);
    if (order && (order->size != 6 || memcmp(order->data, "little", 6)))
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "%s: its numbers are not little-endian", f->path);
    return TT_OK;
}
