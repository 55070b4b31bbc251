/* verify.c: read every byte of a file and check what it can be checked by.
 *
 * Source  PKWARE APPNOTE 6.3, 4.4.7: CRC-32, reflected polynomial EDB88320
 * SPDX-License-Identifier: Apache-2.0
 *
 * Of the formats read here only zip has checksums, and torch.save may be told
 * to write a dummy instead: such a file is "without", not damaged. What the hub
 * of Hugging Face gave is known by its SHA-256: in its cache that is the name
 * of the file that a link leads to, in a folder of one's own it is in
 * .cache/huggingface/download/NAME.metadata. A page of zeros inside a matrix is
 * one that was never written. The bytes
 * are read again from the disk, piece by piece, not taken from the mapping:
 * what cannot be read is then a sentence and not a signal. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/bytes.h"
#include "io/check.h"
#include "io/file.h"
#include "io/torchzip.h"

#define PIECE (1 << 20)

/* Row k: what a byte does to the sum when k more bytes follow it. */
typedef struct crc_table {
    uint32_t row[8][256];
} crc_table;

typedef struct job {
    tt_ctx *ctx;
    tt_verify_report *report;
    const tt_file *f;    /* the one file that is read                         */
    int fd;
    uint8_t *buf;        /* [PIECE]                                           */
    crc_table *crc;
    tt_sha256 *sha;      /* NULL: nothing to compare it with                  */
    int64_t done, total;
    void (*progress)(void *user, int64_t done, int64_t total);
    void *user;
} job;

static void make_table(crc_table *t)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
        t->row[0][i] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++) {
            uint32_t c = t->row[k - 1][i];
            t->row[k][i] = c >> 8 ^ t->row[0][c & 255];
        }
}

/* `sum` after n more bytes; begins and ends inverted by the caller. */
static uint32_t crc_add(const crc_table *t, uint32_t sum, const uint8_t *p,
                        size_t n)
{
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t a = sum ^ le32(p), b = le32(p + 4);
        sum = t->row[7][a & 255] ^ t->row[6][a >> 8 & 255]
            ^ t->row[5][a >> 16 & 255] ^ t->row[4][a >> 24]
            ^ t->row[3][b & 255] ^ t->row[2][b >> 8 & 255]
            ^ t->row[1][b >> 16 & 255] ^ t->row[0][b >> 24];
    }
    for (; n > 0; p++, n--) sum = sum >> 8 ^ t->row[0][(sum ^ *p) & 255];
    return sum;
}

/* Read bytes [at, at + n) and return their CRC-32. */
static tt_status read_range(job *j, uint32_t *sum, int64_t at, int64_t n)
{
    *sum = UINT32_MAX;
    while (n > 0) {
        size_t want = n < PIECE ? (size_t)n : PIECE;
        ssize_t k = pread(j->fd, j->buf, want, (off_t)at);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0)
            return tt_fail(j->ctx, TT_EIO, "%s: cannot read it at byte %lld: "
                           "%s", j->f->path, (long long)at,
                           k < 0 ? strerror(errno)
                                 : "it has become shorter meanwhile");
        *sum = crc_add(j->crc, *sum, j->buf, (size_t)k);
        if (j->sha) tt_sha256_add(j->sha, j->buf, (size_t)k);
        at += k;
        n -= k;
        j->done += k;
        if (j->progress) j->progress(j->user, j->done, j->total);
        TT_TRY(tt_check_interrupt(j->ctx));
    }
    *sum = ~*sum;
    return TT_OK;
}

/* ---- zip ----------------------------------------------------------------- */

static bool verify_is_storage(const torchzip *z, const zip_entry *e)
{
    static const char folder[] = "data/";
    return e->nname > z->nroot + sizeof folder - 1
        && !memcmp(e->name + z->nroot, folder, sizeof folder - 1);
}

/* True when *dummy stands where checksums should: every storage has that same
 * number, and it is 0 or data.pkl's as well. */
static bool dummies(const torchzip *z, uint32_t *dummy)
{
    bool found = false;
    *dummy = 0;
    for (int64_t i = 0; i < z->count; i++) {
        const zip_entry *e = &z->entry[i];
        if (!verify_is_storage(z, e)) continue;
        if (found && e->crc != *dummy) return false;
        *dummy = e->crc;
        found = true;
    }
    return *dummy == 0 || *dummy == z->pickle->crc;
}

static tt_status check_entry(job *j, const zip_entry *e, bool check)
{
    uint32_t sum;
    char show[IO_SHOW];
    TT_TRY(read_range(j, &sum, e->data - j->f->map.data, e->size));
    if (sum == e->crc) {
        j->report->agree++;
        return TT_OK;
    }
    if (!check) {
        j->report->without++;
        return TT_OK;
    }
    return tt_fail(j->ctx, TT_EFORMAT, "%s: the checksum of entry '%s' is "
                   "%08x, expected %08x: the file is damaged; download or "
                   "copy it again", j->f->path,
                   io_show(show, e->name, e->nname), (unsigned)sum,
                   (unsigned)e->crc);
}

static tt_status check_zip(job *j, tt_arena *a)
{
    torchzip z;
    TT_TRY(torchzip_read(j->ctx, &z, a, j->f));
    uint32_t dummy;
    bool none = dummies(&z, &dummy);
    for (int64_t i = 0; i < z.count; i++)
        TT_TRY(check_entry(j, &z.entry[i],
                           !none || z.entry[i].crc != dummy));
    return TT_OK;
}

/* ---- the hub's digest ---------------------------------------------------- */

enum { HEX = 64 };

static bool is_digest(const char *s)
{
    return strspn(s, "0123456789abcdef") == HEX && !s[HEX];
}

/* Second line of "<folder>/.cache/huggingface/download/<name>.metadata", for
 * every folder that holds the file. */
static bool digest_adjacent(char hex[HEX + 1], const char *real)
{
    char path[4400], line[2][128];
    for (const char *slash = strrchr(real, '/'); slash;) {
        const int n = (int)(slash - real);
        snprintf(path, sizeof path, "%.*s/.cache/huggingface/download/%s"
                 ".metadata", n, real, slash + 1);
        FILE *f = fopen(path, "r");
        const bool read = f && fgets(line[0], sizeof *line, f)
                       && fgets(line[1], sizeof *line, f);
        if (f) fclose(f);
        if (read) line[1][strcspn(line[1], "\r\n")] = 0;
        if (read && is_digest(line[1])) return memcpy(hex, line[1], HEX + 1);
        do slash--;
        while (slash > real && *slash != '/');
        if (slash <= real) break;
    }
    return false;
}

bool io_known_digest(char hex[HEX + 1], const char *path)
{
    char *real = realpath(path, NULL);
    const char *name = real ? strrchr(real, '/') + 1 : "";
    const bool blob = is_digest(name);
    if (blob) memcpy(hex, name, HEX + 1);
    const bool known = blob || (real && digest_adjacent(hex, real));
    free(real);
    return known;
}

/* ---- zeros --------------------------------------------------------------- */

/* A page of a disk inside the values of t, as stored, wherever it lies: where
 * its zeros begin, or -1. Half of it is aligned to the tensor. */
static int64_t zero_page(const tt_tensor *t)
{
    enum { PAGE = 4096, HALF = PAGE / 2 };
    static const uint8_t zeros[HALF];
    const uint8_t *p = t->data;
    const int64_t bytes = tt_tensor_bytes(t);
    for (int64_t at = 0; at + HALF <= bytes; at += HALF) {
        int64_t from = at, to = at + HALF;
        if (memcmp(p + at, zeros, HALF)) continue;
        while (from > 0 && !p[from - 1]) from--;
        while (to < bytes && to - from < PAGE && !p[to]) to++;
        if (to - from >= PAGE) return from;
    }
    return -1;
}

static bool is_matrix(const tt_entry *e)
{
    static const char tail[] = ".weight";
    const size_t n = strlen(e->name), m = sizeof tail - 1;
    return n > m && !strcmp(e->name + n - m, tail) && e->t.rank > 1
        && tt_tensor_packed(&e->t);
}

static tt_status verify_check_zeros(job *j, const tt_file *f)
{
    char show[IO_SHOW];
    for (int64_t i = 0; i < f->count; i++) {
        const tt_entry *e = &f->entry[i];
        const int64_t at = is_matrix(e) ? zero_page(&e->t) : -1;
        if (at >= 0)
            return tt_fail(j->ctx, TT_EFORMAT, "%s: %s holds 4096 zeros, "
                           "%lld bytes from its beginning, which no training "
                           "leaves: a download that did not end, or damage; "
                           "fetch the file again", f->path,
                           io_show(show, e->name, strlen(e->name)),
                           (long long)at);
        file_release(f, &e->t);
        TT_TRY(tt_check_interrupt(j->ctx));
    }
    return TT_OK;
}

/* ---- any file ------------------------------------------------------------ */

/* The whole file against the digest that it should have. */
static tt_status check_digest(job *j, const char *want, int64_t size)
{
    uint32_t sum;
    char found[HEX + 1];
    tt_sha256 sha;
    tt_sha256_init(&sha);
    j->sha = &sha;
    read_range(j, &sum, 0, size);
    j->sha = NULL;
    tt_sha256_hex(&sha, found);
    if (j->ctx->status) return j->ctx->status;
    if (strcmp(want, found))
        return tt_fail(j->ctx, TT_EFORMAT, "%s: its SHA-256 is %s, and the hub "
                       "it came from says %s: damaged, or changed since; fetch "
                       "the file again", j->f->path, found, want);
    j->report->agree++;
    return TT_OK;
}

static tt_status check_content(job *j, const tt_file *f)
{
    uint32_t sum;
    char want[HEX + 1];
    tt_arena a = {0};
    const bool zip = !strcmp(f->format, "torch zip");
    const bool known = io_known_digest(want, f->path);
    if (zip && known) j->total += f->map.size; /* it is read twice */
    if (zip) check_zip(j, &a);
    if (known && !j->ctx->status) check_digest(j, want, f->map.size);
    if (!zip && !known) read_range(j, &sum, 0, f->map.size);
    if (!zip && !known) j->report->without++;
    tt_arena_free(&a);
    return j->ctx->status;
}

static tt_status check_file(job *j, const tt_file *f)
{
    j->f = f;
    j->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (j->fd < 0)
        return tt_fail(j->ctx, TT_EIO, "%s: cannot open it again: %s", f->path,
                       strerror(errno));
    check_content(j, f);
    close(j->fd);
    for (int64_t i = 0; i < f->nshards && !j->ctx->status; i++)
        check_file(j, f->shard[i]);
    return j->ctx->status;
}

tt_status tt_file_verify(tt_ctx *ctx, tt_verify_report *out, const tt_file *f,
                         void (*progress)(void *user, int64_t done,
                                          int64_t total), void *user)
{
    *out = (tt_verify_report){0};
    if (ctx->status) return ctx->status;
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    job j = {.ctx = ctx, .report = out, .fd = -1, .total = tt_file_bytes(f),
             .progress = progress, .user = user};
    j.buf = tt_alloc(ctx, &ctx->scratch, PIECE, 1, "a piece of a file");
    j.crc = tt_alloc(ctx, &ctx->scratch, 1, sizeof *j.crc, "a table");
    if (j.buf && j.crc) {
        make_table(j.crc);
        if (!check_file(&j, f)) verify_check_zeros(&j, f);
        out->bytes = j.done;
    }
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

tt_status tt_digest_verify(tt_ctx *ctx, tt_verify_report *out, const char *path)
{
    char want[HEX + 1];
    io_map m;
    *out = (tt_verify_report){0};
    TT_TRY(io_check_download(ctx, path));
    TT_TRY(io_map_open(ctx, &m, path));
    tt_file f = {.path = path, .map = m};
    job j = {.ctx = ctx, .report = out, .f = &f, .total = m.size};
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    j.buf = tt_alloc(ctx, &ctx->scratch, PIECE, 1, "a piece of a file");
    j.crc = tt_alloc(ctx, &ctx->scratch, 1, sizeof *j.crc, "a table");
    j.fd = ctx->status ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (j.fd < 0 && !ctx->status)
        tt_fail(ctx, TT_EIO, "%s: cannot open it again: %s", path,
                strerror(errno));
    if (j.crc) make_table(j.crc);
    if (ctx->status) out->without = 0;
    else if (io_known_digest(want, path)) check_digest(&j, want, m.size);
    else out->without = 1;
    out->bytes = j.done;
    if (j.fd >= 0) close(j.fd);
    tt_arena_reset(&ctx->scratch, mark);
    io_map_close(&m);
    return ctx->status;
}
