/* verify.c: read every byte of a file and check the checksums it carries.
 *
 * Source  PKWARE APPNOTE 6.3, 4.4.7: CRC-32, reflected polynomial EDB88320
 * SPDX-License-Identifier: Apache-2.0
 *
 * Of the formats read here only zip has checksums, and torch.save may be told
 * to write a dummy instead: such a file is "without", not damaged. The bytes
 * are read again from the disk, piece by piece, not taken from the mapping:
 * what cannot be read is then a sentence and not a signal. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "io/bytes.h"
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

static bool is_storage(const torchzip *z, const zip_entry *e)
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
        if (!is_storage(z, e)) continue;
        if (found && e->crc != *dummy) return false;
        *dummy = e->crc;
        found = true;
    }
    return *dummy == 0 || *dummy == z->pickle->crc;
}

static tt_status check_entry(job *j, const zip_entry *e, bool judge)
{
    uint32_t sum;
    char show[IO_SHOW];
    TT_TRY(read_range(j, &sum, e->data - j->f->map.data, e->size));
    if (sum == e->crc) {
        j->report->agree++;
        return TT_OK;
    }
    if (!judge) {
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

/* ---- any file ------------------------------------------------------------ */

static tt_status check_file(job *j, const tt_file *f)
{
    uint32_t sum;
    tt_arena a = {0};
    j->f = f;
    j->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (j->fd < 0)
        return tt_fail(j->ctx, TT_EIO, "%s: cannot open it again: %s", f->path,
                       strerror(errno));
    if (!strcmp(f->format, "torch zip")) {
        check_zip(j, &a);
    } else {
        read_range(j, &sum, 0, f->map.size);
        j->report->without++;
    }
    tt_arena_free(&a);
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
        check_file(&j, f);
        out->bytes = j.done;
    }
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}
