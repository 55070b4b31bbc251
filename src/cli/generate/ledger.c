/* ledger.c: which files a run has made.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/generate/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io.h"

/* HASH_MAX  bytes of a file that are read again, ten seconds' work; of a larger
 *           one as many, in pieces */
#define HASH_MAX ((off_t)1 << 30)
#define PIECE ((off_t)1 << 20)
enum { HEX = 64, RUN = 16, FACTS = LEDGER_LINE - RUN - 2 };
static const char head[] = "tether-files 2\n";
enum { HEAD = sizeof head - 1 };

/* ---- a file -------------------------------------------------------------- */

/* Bytes [at, at + n). */
static void add_bytes(tt_sha256 *s, FILE *f, off_t at, off_t n)
{
    char some[1 << 14];
    if (fseeko(f, at, SEEK_SET)) return;
    while (n > 0) {
        const size_t want = n < (off_t)sizeof some ? (size_t)n : sizeof some;
        const size_t k = fread(some, 1, want, f);
        if (!k) break;
        tt_sha256_add(s, some, k);
        n -= (off_t)k;
    }
}

static void hash(char hex[HEX + 1], const char *path, off_t size)
{
    const off_t pieces = HASH_MAX / PIECE;
    tt_sha256 s;
    FILE *f = fopen(path, "rb");
    tt_sha256_init(&s);
    if (f && size <= HASH_MAX) add_bytes(&s, f, 0, size);
    for (off_t i = 0; f && size > HASH_MAX && i < pieces; i++)
        add_bytes(&s, f, (size - PIECE) / (pieces - 1) * i, PIECE);
    if (f && size > HASH_MAX) add_bytes(&s, f, size - PIECE, PIECE);
    tt_sha256_hex(&s, hex);
    if (!f || ferror(f)) hex[0] = '?'; /* none that is listed */
    if (f) fclose(f);
}

static void make_line(char line[LEDGER_LINE + 1], const char *path,
                      const struct stat *st)
{
    char hex[HEX + 1];
    hash(hex, path, st->st_size);
    snprintf(line, LEDGER_LINE + 1, "%s %20lld %*s\n", hex,
             (long long)st->st_size, RUN, "");
}

/* ---- the list ------------------------------------------------------------ */

const char *ledger_name(tt_ctx *ctx, tt_arena *mem, const char *base)
{
    const size_t n = base ? strlen(base) + 8 : 0;
    char *name = n ? tt_alloc(ctx, mem, (int64_t)n, 1, "file name") : NULL;
    if (name) snprintf(name, n, "%s.files", base);
    return name;
}

static bool reserve(ledger *l, size_t lines)
{
    if (lines <= l->room) return true;
    char *more = realloc(l->line, lines * 2 * LEDGER_LINE);
    if (!more) return false;
    l->line = more;
    l->room = lines * 2;
    return true;
}

/* Half a line at the end was torn off by a crash. */
static tt_status read_lines(ledger *l, int fd, off_t size)
{
    const size_t n = size > HEAD ? (size_t)(size - HEAD) / LEDGER_LINE : 0;
    if (n && reserve(l, n)
        && pread(fd, l->line, n * LEDGER_LINE, HEAD)
           == (ssize_t)(n * LEDGER_LINE))
        l->n = n;
    if (l->n == n) return TT_OK;
    return tt_fail(l->ctx, TT_EIO, "cannot read %s", l->path);
}

static tt_status read_list(ledger *l, int fd)
{
    char there[HEAD] = "";
    struct stat st;
    const bool known = !fstat(fd, &st) && S_ISREG(st.st_mode);
    const ssize_t n = known ? pread(fd, there, HEAD, 0) : -1;
    const bool ours = n >= 0 && !memcmp(there, head, (size_t)n);
    if (ours && n == st.st_size && n < HEAD) return TT_OK; /* torn off */
    l->there = ours && n == HEAD;
    if (l->there) return read_lines(l, fd, st.st_size);
    if (known && l->ctx->overwrite) return TT_OK; /* written anew */
    return tt_fail(l->ctx, TT_EINVAL, "%s is no list of the files of a run, "
                   "and its name is needed for one: move it away%s", l->path,
                   known ? ", or use --overwrite to lose it" : "");
}

static void digest_of(char out[RUN + 1], const char *run, const char *way)
{
    char hex[HEX + 1];
    tt_sha256 s;
    tt_sha256_init(&s);
    tt_sha256_add(&s, run, strlen(run));
    tt_sha256_add(&s, way, strlen(way));
    tt_sha256_hex(&s, hex);
    snprintf(out, RUN + 1, "%.*s", RUN, hex);
}

tt_status ledger_open(tt_ctx *ctx, ledger *l, const char *path,
                      const char *run)
{
    *l = (ledger){.ctx = ctx, .fd = -1};
    if (!path || ctx->status) return ctx->status;
    l->path = tt_strdup(ctx, &l->mem, path);
    if (!l->path) return ctx->status;
    if (run) digest_of(l->run, run, "");
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        tt_fail(ctx, TT_EIO, "cannot read %s: %s", path, strerror(errno));
    if (fd >= 0) read_list(l, fd);
    if (fd >= 0) close(fd);
    if (ctx->status) ledger_close(l);
    return ctx->status;
}

/* "": of any run. Content is looked at once, where size and run are right. */
static bool lists(const ledger *l, const char *path, const struct stat *st,
                  const char *run)
{
    char size[21], hex[HEX + 1] = "";
    snprintf(size, sizeof size, "%20lld", (long long)st->st_size);
    for (size_t i = 0; i < l->n; i++) {
        const char *line = l->line + i * LEDGER_LINE;
        if (memcmp(line + HEX + 1, size, 20)
            || (*run && memcmp(line + FACTS + 1, run, RUN))) continue;
        if (!*hex) hash(hex, path, st->st_size);
        if (!memcmp(line, hex, HEX)) return true;
    }
    return false;
}

bool ledger_may(ledger *l, const char *path)
{
    struct stat st;
    if (stat(path, &st)) return errno == ENOENT || errno == ENOTDIR;
    return !S_ISREG(st.st_mode) || !st.st_size || lists(l, path, &st, l->run);
}

void ledger_set_way(ledger *l, const char *way)
{
    *l->way = 0;
    if (*l->run && way) digest_of(l->way, l->run, way);
}

bool ledger_made(const ledger *l, const char *path, const char *way)
{
    char both[RUN + 1];
    struct stat st;
    digest_of(both, l->run, way);
    return !stat(path, &st) && lists(l, path, &st, both);
}

/* ---- adding -------------------------------------------------------------- */

static bool write_line(ledger *l, char *line, const char *run)
{
    const off_t at = HEAD + (off_t)l->n * LEDGER_LINE;
    memcpy(line + FACTS + 1, run, RUN);
    if (!reserve(l, l->n + 1)) return false;
    if (l->fd < 0) {
        l->fd = open(l->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (l->fd < 0 || pwrite(l->fd, head, HEAD, 0) != HEAD) return false;
    }
    if (pwrite(l->fd, line, LEDGER_LINE, at) != LEDGER_LINE
        || ftruncate(l->fd, at + LEDGER_LINE) || fsync(l->fd)) return false;
    memcpy(l->line + l->n++ * LEDGER_LINE, line, LEDGER_LINE);
    return true;
}

static void add(ledger *l, const char *path)
{
    char line[LEDGER_LINE + 1];
    struct stat st;
    const bool there = !stat(path, &st);
    const bool known = there && lists(l, path, &st, l->run);
    const bool all = known && (!*l->way || lists(l, path, &st, l->way));
    if (l->lost || all) return;
    if (there) make_line(line, path, &st);
    if (there && (known || write_line(l, line, l->run))
        && (!*l->way || write_line(l, line, l->way))) return;
    tt_warn(l->ctx, "cannot write %s: %s; the same command will not know what "
            "it made, and ask for --overwrite", l->path, strerror(errno));
    l->lost = true;
}

static bool place(void *user, const char *from, const char *to)
{
    ledger *l = user;
    if (!l->ctx->overwrite && !ledger_may(l, to)) return false;
    add(l, from);
    return true;
}

void ledger_watch(ledger *l)
{
    if (!l->path || !*l->run) return;
    l->ctx->place = place;
    l->ctx->place_user = l;
}

void ledger_forget(ledger *l)
{
    l->n = 0;
}

void ledger_remove(ledger *l)
{
    if (l->path && (l->there || l->n)) unlink(l->path);
    ledger_close(l);
}

void ledger_close(ledger *l)
{
    if (l->ctx && l->ctx->place_user == l) {
        l->ctx->place = NULL;
        l->ctx->place_user = NULL;
    }
    if (l->path && l->fd >= 0) close(l->fd);
    free(l->line);
    tt_arena_free(&l->mem);
    *l = (ledger){.fd = -1};
}
