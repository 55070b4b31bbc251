/* ck_files.c: safetensors and torch.save files, streamed.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The torch file is byte for byte in the manner of torch.save: a zip of stored
 * entries whose data start at multiples of 64, local headers without sizes
 * (data descriptors follow), a zip64 end record, pickle protocol 2 with the
 * memo numbering of the Python pickler. The library reads such files; it has
 * no use for writing them, so the writer lives here. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"

enum { PIECE = 1 << 18 };             /* elements made at a time              */

/* The values of one tensor; `crc` may be NULL. */
static uint32_t crc32_add(uint32_t crc, const void *data, size_t n);

static void stream(FILE *f, const ck_spec *s, tt_dtype type, uint64_t seed,
                   uint32_t *crc)
{
    static float buf[PIECE];
    const int64_t n = ck_count(s);
    const size_t size = tt_dtype_size(type);
    for (int64_t at = 0; at < n && !ferror(f); at += PIECE) {
        const int64_t k = n - at < PIECE ? n - at : PIECE;
        ck_fill(buf, s, type, seed, at, k);
        tt_swap_stored(buf, type, k);
        fwrite(buf, size, (size_t)k, f);
        if (crc) *crc = crc32_add(*crc, buf, size * (size_t)k);
    }
}

/* ---- safetensors --------------------------------------------------------- */

bool ck_write_safetensors(const char *path, const ck_list *l, tt_dtype type,
                          uint64_t seed)
{
    FILE *f = ck_open(path);
    if (!f) return false;
    char *text = NULL;
    size_t n = 0;
    FILE *h = open_memstream(&text, &n);
    if (!h) abort();
    int64_t at = 0;
    for (int64_t i = 0; i < l->n; i++) {
        const ck_spec *s = &l->spec[i];
        const int64_t end = at + ck_count(s) * (int64_t)tt_dtype_size(type);
        fprintf(h, "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? ',' : '{',
                s->name, tt_dtype_name(type));
        for (int d = 0; d < s->rank; d++)
            fprintf(h, "%s%" PRId64, d ? "," : "", s->dim[d]);
        fprintf(h, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", at, end);
        at = end;
    }
    fputc('}', h);
    fclose(h);
    uint8_t length[8];
    const uint64_t padded = (n + 7) / 8 * 8;
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(padded >> 8 * i);
    fwrite(length, 1, 8, f);
    fwrite(text, 1, n, f);
    for (uint64_t i = n; i < padded; i++) fputc(' ', f);
    free(text);
    for (int64_t i = 0; i < l->n; i++) stream(f, &l->spec[i], type, seed, NULL);
    return ck_close(f, path);
}

/* ---- CRC-32, eight bytes at a time --------------------------------------- */

static uint32_t crc32_add(uint32_t crc, const void *data, size_t n)
{
    static uint32_t table[8][256];    /* filled on first use; single thread   */
    if (!table[0][1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int k = 0; k < 8; k++)
                c = c & 1 ? 0xEDB88320u ^ c >> 1 : c >> 1;
            table[0][i] = c;
        }
    if (!table[1][1])
        for (int t = 1; t < 8; t++)
            for (uint32_t i = 0; i < 256; i++)
                table[t][i] = table[0][table[t - 1][i] & 255]
                              ^ table[t - 1][i] >> 8;
    const uint8_t *p = data;
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        const uint32_t a = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8
                                  | (uint32_t)p[2] << 16
                                  | (uint32_t)p[3] << 24);
        crc = table[7][a & 255] ^ table[6][a >> 8 & 255]
              ^ table[5][a >> 16 & 255] ^ table[4][a >> 24] ^ table[3][p[4]]
              ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    }
    while (n--) crc = table[0][(crc ^ *p++) & 255] ^ crc >> 8;
    return ~crc;
}

/* ---- zip ----------------------------------------------------------------- */

typedef struct zip_entry {
    char name[160];
    uint64_t offset, size;
    uint32_t crc;
} zip_entry;

typedef struct zip {
    FILE *f;
    char stem[64];
    zip_entry *entry;
    int64_t n;
} zip;

static void put16(FILE *f, uint64_t x)
{
    fputc((int)(x & 255), f);
    fputc((int)(x >> 8 & 255), f);
}
static void put32(FILE *f, uint64_t x)
{
    put16(f, x & 0xFFFF);
    put16(f, x >> 16 & 0xFFFF);
}
static void put64(FILE *f, uint64_t x)
{
    put32(f, x & 0xFFFFFFFF);
    put32(f, x >> 32);
}

/* Signature and the fields local and central headers share. */
static void put_common(FILE *f, uint32_t crc, uint64_t size, size_t name,
                       size_t extra)
{
    put16(f, 0x0808);                 /* data descriptor, UTF-8 names         */
    put16(f, 0);                      /* stored                               */
    put32(f, 0);                      /* time and date                        */
    put32(f, crc);
    put32(f, size);
    put32(f, size);
    put16(f, name);
    put16(f, extra);
}

/* Local header with padding so that data start at a multiple of 64. */
static zip_entry *zip_begin(zip *z, const char *name)
{
    zip_entry *e = &z->entry[z->n++];
    snprintf(e->name, sizeof e->name, "%s/%s", z->stem, name);
    e->offset = (uint64_t)ftello(z->f);
    e->size = 0;
    e->crc = 0;
    const size_t len = strlen(e->name);
    const uint64_t data = e->offset + 30 + len + 4;
    const size_t pad = (size_t)((64 - data % 64) % 64);
    put32(z->f, 0x04034b50);
    put16(z->f, 0);
    put_common(z->f, 0, 0, len, pad + 4);
    fputs(e->name, z->f);
    put16(z->f, 0x4246);              /* "FB"                                 */
    put16(z->f, pad);
    for (size_t i = 0; i < pad; i++) fputc('Z', z->f);
    return e;
}

/* Data descriptor after the data. */
static void zip_end(zip *z, zip_entry *e)
{
    put32(z->f, 0x08074b50);
    put32(z->f, e->crc);
    if (e->size >= 0xFFFFFFFF) {
        put64(z->f, e->size);
        put64(z->f, e->size);
    } else {
        put32(z->f, e->size);
        put32(z->f, e->size);
    }
}

static void zip_bytes(zip *z, const char *name, const void *data, size_t n)
{
    zip_entry *e = zip_begin(z, name);
    fwrite(data, 1, n, z->f);
    e->size = n;
    e->crc = crc32_add(0, data, n);
    zip_end(z, e);
}

static void zip_directory(zip *z)
{
    FILE *f = z->f;
    const uint64_t start = (uint64_t)ftello(f);
    for (int64_t i = 0; i < z->n; i++) {
        const zip_entry *e = &z->entry[i];
        const bool far = e->offset >= 0xFFFFFFFF, big = e->size >= 0xFFFFFFFF;
        const size_t extra = (far || big) ? 4u + 16u * big + 8u * far : 0;
        put32(f, 0x02014b50);
        put16(f, 0);
        put16(f, 0);
        put_common(f, e->crc, big ? 0xFFFFFFFF : e->size, strlen(e->name),
                   extra);
        put16(f, 0);                  /* comment                              */
        put16(f, 0);                  /* disk                                 */
        put16(f, 0);
        put32(f, 0);
        put32(f, far ? 0xFFFFFFFF : e->offset);
        fputs(e->name, f);
        if (extra) {
            put16(f, 1);
            put16(f, extra - 4);
            if (big) put64(f, e->size), put64(f, e->size);
            if (far) put64(f, e->offset);
        }
    }
    const uint64_t end = (uint64_t)ftello(f), n = (uint64_t)z->n;
    put32(f, 0x06064b50);             /* zip64 end record, always written     */
    put64(f, 44);
    put16(f, 0x031e);
    put16(f, 45);
    put32(f, 0);
    put32(f, 0);
    put64(f, n);
    put64(f, n);
    put64(f, end - start);
    put64(f, start);
    put32(f, 0x07064b50);             /* its locator                          */
    put32(f, 0);
    put64(f, end);
    put32(f, 1);
    put32(f, 0x06054b50);             /* classic end record                   */
    put32(f, 0);
    put16(f, n < 0xFFFF ? n : 0xFFFF);
    put16(f, n < 0xFFFF ? n : 0xFFFF);
    put32(f, end - start);
    put32(f, start < 0xFFFFFFFF ? start : 0xFFFFFFFF);
    put16(f, 0);
}

/* ---- pickle -------------------------------------------------------------- */

typedef struct pickler {
    FILE *f;
    uint32_t memo;                    /* next memo index                      */
    uint32_t rebuild, storage, type, cpu, odict; /* where they were put       */
    bool seen;                        /* the five above are in the memo       */
} pickler;

static uint32_t memo_put(pickler *p)
{
    const uint32_t i = p->memo++;
    if (i < 256) fputc('q', p->f), fputc((int)i, p->f);
    else fputc('r', p->f), put32(p->f, i);
    return i;
}

static void memo_get(pickler *p, uint32_t i)
{
    if (i < 256) fputc('h', p->f), fputc((int)i, p->f);
    else fputc('j', p->f), put32(p->f, i);
}

static uint32_t text(pickler *p, const char *s)
{
    fputc('X', p->f);
    put32(p->f, strlen(s));
    fputs(s, p->f);
    return memo_put(p);
}

static uint32_t global(pickler *p, const char *module, const char *name)
{
    fprintf(p->f, "c%s\n%s\n", module, name);
    return memo_put(p);
}

static void integer(pickler *p, int64_t x)
{
    if (x < 256) fputc('K', p->f), fputc((int)x, p->f);
    else if (x < 65536) fputc('M', p->f), put16(p->f, (uint64_t)x);
    else if (x <= INT32_MAX) fputc('J', p->f), put32(p->f, (uint64_t)x);
    else {                            /* LONG1: minimal two's complement      */
        int n = 1;
        while (n < 8 && x >> (8 * n - 1)) n++;
        fputc(0x8A, p->f);
        fputc(n, p->f);
        for (int i = 0; i < n; i++) fputc((int)(x >> 8 * i & 255), p->f);
    }
}

static void tuple(pickler *p, const int64_t *x, int n)
{
    if (n > 3) fputc('(', p->f);
    for (int i = 0; i < n; i++) integer(p, x[i]);
    fputc(n > 3 ? 't' : 0x84 + n, p->f);
    memo_put(p);
}

/* _rebuild_tensor_v2(('storage', type, key, 'cpu', numel), 0, size, stride,
 *                    False, OrderedDict()) */
static void tensor(pickler *p, const ck_spec *s, tt_dtype type, int64_t key)
{
    char number[24];
    int64_t stride[5];
    for (int i = s->rank - 1; i >= 0; i--)
        stride[i] = i == s->rank - 1 ? 1 : stride[i + 1] * s->dim[i + 1];
    snprintf(number, sizeof number, "%lld", (long long)key);

    if (p->seen) memo_get(p, p->rebuild);
    else p->rebuild = global(p, "torch._utils", "_rebuild_tensor_v2");
    fputs("((", p->f);
    if (p->seen) memo_get(p, p->storage), memo_get(p, p->type);
    else {
        p->storage = text(p, "storage");
        p->type = global(p, "torch", type == TT_F32 ? "FloatStorage"
                         : type == TT_BF16 ? "BFloat16Storage" : "HalfStorage");
    }
    text(p, number);
    if (p->seen) memo_get(p, p->cpu);
    else p->cpu = text(p, "cpu");
    integer(p, ck_count(s));
    fputc('t', p->f);
    memo_put(p);
    fputc('Q', p->f);
    integer(p, 0);
    tuple(p, s->dim, s->rank);
    tuple(p, stride, s->rank);
    fputc(0x89, p->f);
    if (p->seen) memo_get(p, p->odict);
    else p->odict = global(p, "collections", "OrderedDict");
    fputs(")R", p->f);
    memo_put(p);
    fputc('t', p->f);
    memo_put(p);
    fputc('R', p->f);
    memo_put(p);
    p->seen = true;
}

static void pickle(FILE *f, const ck_list *l, tt_dtype type,
                   const char *wrapper, const char *prefix)
{
    pickler p = {.f = f};
    fputs("\x80\x02}", f);
    memo_put(&p);
    if (wrapper) {
        text(&p, wrapper);
        fputc('}', f);
        memo_put(&p);
    }
    const int64_t batch = 1000;       /* the Python pickler's                 */
    for (int64_t i = 0; i < l->n; i++) {
        char key[160];
        if (i % batch == 0) fputc('(', f);
        snprintf(key, sizeof key, "%s%s", prefix, l->spec[i].name);
        text(&p, key);
        tensor(&p, &l->spec[i], type, i);
        if (i % batch == batch - 1 || i == l->n - 1) fputc('u', f);
    }
    if (wrapper) fputc('s', f);
    fputc('.', f);
}

bool ck_write_torch(const char *path, const ck_list *l, tt_dtype type,
                    uint64_t seed, const char *wrapper, const char *prefix)
{
    zip z = {.f = ck_open(path)};
    if (!z.f) return false;
    const char *slash = strrchr(path, '/');
    snprintf(z.stem, sizeof z.stem, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(z.stem, '.');
    if (dot) *dot = 0;
    z.entry = calloc((size_t)l->n + 3, sizeof *z.entry);
    if (!z.entry) abort();

    char *pkl = NULL;
    size_t n = 0;
    FILE *m = open_memstream(&pkl, &n);
    if (!m) abort();
    pickle(m, l, type, wrapper, prefix);
    fclose(m);
    zip_bytes(&z, "data.pkl", pkl, n);
    free(pkl);
    zip_bytes(&z, "byteorder", "little", 6);
    for (int64_t i = 0; i < l->n; i++) {
        char name[40];
        snprintf(name, sizeof name, "data/%lld", (long long)i);
        zip_entry *e = zip_begin(&z, name);
        stream(z.f, &l->spec[i], type, seed, &e->crc);
        e->size = (uint64_t)ck_count(&l->spec[i]) * tt_dtype_size(type);
        zip_end(&z, e);
    }
    zip_bytes(&z, "version", "3\n", 2);
    zip_directory(&z);
    free(z.entry);
    return ck_close(z.f, path);
}
