/* latents_file.c: the latents of a run, appended chunk by chunk.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/latents_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/json.h"
#include "io/jsonout.h"
#include "io/place.h"
#include "rollout/rollout.h"
#include "io/outfile.h"

enum { HEADER_MAX = 1 << 20 };

static tt_status latents_file_failed(latents_file *f)
{
    return tt_fail(f->ctx, TT_EIO, "cannot write %s: %s", f->path,
                   strerror(errno));
}

/* Spaces that make up for the digits of a number: headers of one run have one
 * size, however long it is. */
static size_t fill_of(int64_t n)
{
    return 20 - (size_t)snprintf(NULL, 0, "%lld", (long long)n);
}

/* ---- marks --------------------------------------------------------------- */

/* "frames digest", of one width: digits, a space, half of a SHA-256. */
enum { DIGITS = 20, MARK = DIGITS + 1 + 32 };
static const char *const mark_names[2] = {"kept_1", "kept_2"};

static void make_mark(char text[MARK + 1], int64_t frames, const tt_sha256 *of)
{
    tt_sha256 s = *of;
    char hex[65];
    tt_sha256_hex(&s, hex);
    snprintf(text, MARK + 1, "%0*llu %.32s", DIGITS,
             (unsigned long long)frames, hex);
}

/* Say in the file how many frames are done, in the mark whose turn it is. */
static tt_status put_mark(latents_file *f)
{
    char text[MARK + 1];
    make_mark(text, f->summed, &f->sum);
    const off_t at = f->mark[f->turn];
    f->turn = 1 - f->turn;
    return pwrite(f->lock, text, MARK,
                  at) == MARK ? TT_OK : latents_file_failed(f);
}

/* Go on with the digest up to `frames` of `fd`, or from the first one. */
static tt_status sum_up_to(latents_file *f, int fd, int64_t frames)
{
    char some[1 << 14];
    if (frames < f->summed || !f->summed) {
        tt_sha256_init(&f->sum);
        f->summed = 0;
    }
    size_t n = (size_t)(frames - f->summed) * f->frame_bytes;
    off_t at = (off_t)(f->header_bytes + (size_t)f->summed * f->frame_bytes);
    for (ssize_t k; n; n -= (size_t)k, at += k) {
        k = pread(fd, some, n < sizeof some ? n : sizeof some, at);
        if (k <= 0)
            return tt_fail(f->ctx, TT_EIO, "cannot read %s: %s", f->path,
                           k ? strerror(errno) : "it ends too early");
        tt_sha256_add(&f->sum, some, (size_t)k);
    }
    f->summed = frames;
    return TT_OK;
}

/* 8 bytes of length, then JSON padded with spaces to a multiple of 8. */
static char *make_header(latents_file *f, const int64_t dim[5],
                         const char *run)
{
    char *text = NULL, *header = NULL;
    char mark[MARK + 1];
    size_t n = 0;
    json_out j;
    FILE *m = open_memstream(&text, &n);
    if (!m) {
        tt_fail(f->ctx, TT_ENOMEM, "out of memory for the header of %s",
                f->path);
        return NULL;
    }
    json_begin(&j, m, false);
    json_open(&j, "__metadata__", '{');
    make_mark(mark, f->summed, &f->sum);
    for (int i = 0; i < 2; i++) json_str(&j, mark_names[i], mark);
    json_str(&j, "run", run);
    json_close(&j, '}');
    json_open(&j, "latents", '{');
    json_str(&j, "dtype", sizeof(tt_real) == 8 ? "F64" : "F32");
    json_open(&j, "shape", '[');
    for (int i = 0; i < 5; i++) json_int(&j, NULL, dim[i]);
    json_close(&j, ']');
    json_open(&j, "data_offsets", '[');
    json_int(&j, NULL, 0);
    const int64_t bytes = f->frames * (int64_t)f->frame_bytes;
    json_int(&j, NULL, bytes);
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
    const bool bad = ferror(m) != 0;
    if (fclose(m) || bad) {
        free(text);
        tt_fail(f->ctx, TT_ENOMEM, "out of memory for the header of %s",
                f->path);
        return NULL;
    }
    n--; /* the newline of a JSON line */
    size_t padded = (n + fill_of(dim[1]) + fill_of(bytes) + 7) / 8 * 8;
    header = tt_alloc(f->ctx, &f->mem, (int64_t)padded + 8, 1, "header");
    if (header) {
        for (int i = 0; i < 8; i++)
            header[i] = (char)(uint8_t)((uint64_t)padded >> (8 * i));
        memset(header + 8, ' ', padded);
        memcpy(header + 8, text, n);
        const char *first = strstr(header + 8, mark);
        f->mark[0] = first - header;
        f->mark[1] = strstr(first + 1, mark) - header;
        f->header_bytes = padded + 8;
    }
    free(text);
    return header;
}

/* What a file holds: nothing to keep (less than a header and a byte), the
 * latents of a run, or something else. */
typedef enum content { NOTHING, A_RUN, DAMAGED } content;

static content content_of(int fd)
{
    uint8_t head[9];
    uint64_t n = 0;
    struct stat st;
    if (fstat(fd, &st) || st.st_size < (off_t)sizeof head) return NOTHING;
    if (pread(fd, head, sizeof head, 0) != (ssize_t)sizeof head) return DAMAGED;
    for (int i = 0; i < 8; i++) n |= (uint64_t)head[i] << (8 * i);
    if (n > HEADER_MAX || head[8] != '{') return DAMAGED;
    return (uint64_t)st.st_size <= n + 8 ? NOTHING : A_RUN;
}

/* ---- the name ------------------------------------------------------------ */

/* False when another program holds the lock; file systems without locks have
 * none to hold. */
static bool lock(int fd)
{
    return !flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK;
}

/* Is `fd` still the file of that name? The run that held the lock before us
 * may have finished, which renames it. */
static bool latents_file_still_called(int fd, const char *name)
{
    struct stat a, b;
    return !fstat(fd, &a) && !stat(name, &b) && a.st_dev == b.st_dev
        && a.st_ino == b.st_ino;
}

static tt_status busy(latents_file *f)
{
    return tt_fail(f->ctx, TT_EINVAL, "another run is writing %s at this "
                   "moment; wait for its end, or give another name",
                   f->path);
}

/* The complete file keeps its lock until its run has decoded the video. */
static tt_status check_complete(latents_file *f)
{
    const int fd = open(f->final, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool ours = fd < 0 || lock(fd);
    if (fd >= 0) close(fd);
    return ours ? TT_OK : busy(f);
}

/* No one but a stranger makes a link of that name. */
static tt_status refuse_link(latents_file *f)
{
    return tt_fail(f->ctx, TT_EINVAL, "%s is a link, and it is not followed; "
                   "remove it, or give another name", f->unfinished);
}

/* Nothing else is opened: a pipe would wait, a device may do anything. */
static tt_status refuse_kind(latents_file *f)
{
    struct stat st;
    if (lstat(f->unfinished, &st) || S_ISREG(st.st_mode)
        || S_ISLNK(st.st_mode)) return f->ctx->status;
    const char *kind = S_ISDIR(st.st_mode) ? "a folder"
                     : S_ISFIFO(st.st_mode) ? "a named pipe"
                     : S_ISSOCK(st.st_mode) ? "a socket" : "a device";
    return tt_fail(f->ctx, TT_EINVAL, "%s is %s, and its name is needed for a "
                   "regular file, the latents so far: move it away, or give "
                   "another name", f->unfinished, kind);
}

static tt_status lock_unfinished(latents_file *f)
{
    enum { TRIES = 5 };
    for (int i = 0; i < TRIES; i++) {
        TT_TRY(refuse_kind(f));
        f->lock = open(f->unfinished, O_RDWR | O_CREAT | O_NOFOLLOW
                       | O_NONBLOCK | O_CLOEXEC, 0666);
        if (f->lock < 0 && errno == ELOOP) return refuse_link(f);
        if (f->lock < 0) return latents_file_failed(f);
        if (!lock(f->lock)) break;
        if (latents_file_still_called(f->lock, f->unfinished)) {
            f->locked = true;
            return TT_OK;
        }
        close(f->lock);
        f->lock = -1;
    }
    if (f->lock >= 0) close(f->lock);
    return busy(f);
}

/* Is it known what is to become of the work that is there? */
static tt_status check_unfinished(latents_file *f)
{
    struct stat st;
    const content c = content_of(f->lock);
    f->empty = c == NOTHING;
    f->reported = c == NOTHING && f->resume && !fstat(f->lock, &st)
               && st.st_size;
    if (f->reported)
        tt_warn(f->ctx, "%s holds no frame to go on from; the run begins anew",
                f->unfinished);
    if (c == NOTHING || f->overwrite) return TT_OK;
    if (c == DAMAGED && f->resume)
        return tt_fail(f->ctx, TT_EFORMAT, "%s is damaged: it does not begin "
                       "as the latents of a run do; start over with "
                       "--overwrite instead of --resume", f->unfinished);
    if (c == DAMAGED)
        return tt_fail(f->ctx, TT_EINVAL, "%s is in the way: it does not begin "
                       "as the latents of a run do; move it, or start over "
                       "with --overwrite", f->unfinished);
    if (!f->resume)
        return tt_fail(f->ctx, TT_EINVAL, "%s is an unfinished run: go on with "
                       "it by --resume, or start over by --overwrite",
                       f->unfinished);
    return TT_OK;
}

tt_status latents_file_claim(tt_ctx *ctx, latents_file *f, const char *path,
                             bool resume, bool overwrite)
{
    struct stat st;
    *f = (latents_file){.ctx = ctx, .path = path, .resume = resume,
                        .overwrite = overwrite};
    if (!path || ctx->status) return ctx->status;
    TT_TRY(tt_out_check(ctx, path));
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return tt_fail(ctx, TT_EIO, "cannot write %s: it exists and is not a "
                       "regular file", path);
    f->final = tt_out_target(ctx, &f->mem, path);
    if (!f->final) return ctx->status;
    const size_t n = strlen(f->final) + 16;
    f->unfinished = tt_alloc(ctx, &f->mem, (int64_t)n, 1, "file name");
    if (!f->unfinished) return ctx->status;
    snprintf(f->unfinished, n, "%s.unfinished", f->final);
    TT_TRY(lock_unfinished(f));
    TT_TRY(check_unfinished(f));
    f->is_new = !overwrite && access(f->final, F_OK);
    return check_complete(f);
}

/* ---- begin, or go on ----------------------------------------------------- */

/* The header of `fd` as JSON, and its bytes; NULL where there is none. */
static const tt_json *latents_file_read_header(latents_file *f, int fd,
                                               size_t *bytes)
{
    tt_ctx own = {.status = TT_OK}; /* another file is no failure */
    const tt_json *j = NULL;
    uint8_t size[8];
    uint64_t n = 0;
    *bytes = 0;
    if (fd < 0 || pread(fd, size, sizeof size, 0) != sizeof size) return NULL;
    for (int i = 0; i < 8; i++) n |= (uint64_t)size[i] << (8 * i);
    if (n > HEADER_MAX) return NULL;
    char *text = tt_alloc0(f->ctx, &f->mem, (int64_t)n + 1, 1, "header");
    if (!text || pread(fd, text, n, 8) != (ssize_t)n) return NULL;
    *bytes = n + 8;
    tt_json_parse(&own, &f->mem, &j, text, n, f->path);
    tt_arena_free(&own.scratch);
    return own.status ? NULL : j;
}

/* Frames that the run of `fd` is to have; 0 when it is not this run. */
static int64_t frames_of(latents_file *f, int fd, const int64_t dim[5],
                         const char *run)
{
    size_t bytes;
    const tt_json *j = latents_file_read_header(f, fd, &bytes);
    const tt_json *t = tt_json_get(j, "latents");
    const tt_json *shape = tt_json_get(t, "shape");
    const char *real = sizeof(tt_real) == 8 ? "F64" : "F32";
    int64_t there[5];
    f->theirs = tt_json_str(tt_json_get(j, "__metadata__"), "run", NULL);
    f->length = 0;
    if (!f->theirs || strcmp(f->theirs, run) || bytes != f->header_bytes
        || strcmp(tt_json_str(t, "dtype", ""), real)) return 0;
    for (int i = 0; i < 5; i++) {
        there[i] = tt_json_whole(tt_json_at(shape, i), 0);
        if (i != 1 && there[i] != dim[i]) return 0;
    }
    f->length = there[1];
    const bool shorter = there[1] > 0 && there[1] < dim[1];
    return there[1] == dim[1] || (shorter && f->may_grow) ? dim[0] * there[1]
                                                          : 0;
}

/* Is the file of `fd` of this run? Its frames are counted, and those that
 * it was to have. */
static bool same_run(latents_file *f, int fd, const int64_t dim[5],
                     const char *run, int64_t *frames)
{
    struct stat st;
    *frames = frames_of(f, fd, dim, run);
    if (!*frames || fstat(fd, &st)) return false;
    f->done = ((int64_t)st.st_size - (int64_t)f->header_bytes)
            / (int64_t)f->frame_bytes;
    if (f->done > *frames) f->done = *frames;
    return true;
}

/* Why the file of f->theirs is not this run's. */
static void name_difference(const latents_file *f, const int64_t dim[5],
                            const char *run, char *buf, size_t n)
{
    if (!f->theirs)
        snprintf(buf, n, "it does not say which run made it");
    else if (strcmp(f->theirs, run))
        rollout_difference(buf, n, f->theirs, run);
    else if (f->length && f->length != dim[1])
        snprintf(buf, n, "another length: %lld latents there, %lld here",
                 (long long)f->length, (long long)dim[1]);
    else
        snprintf(buf, n, "it is damaged");
}

static int64_t frames_in_mark(const char *mark)
{
    return strspn(mark, "0123456789") == DIGITS ? strtoll(mark, NULL, 10) : -1;
}

static tt_status not_as_written(latents_file *f, const char *path)
{
    return tt_fail(f->ctx, TT_EFORMAT, "%s is damaged: its frames are not "
                   "those that were written; start over with --overwrite "
                   "instead of --resume", path);
}

/* Of f->done frames of `fd`, keep those that a mark vouches for. A file
 * that ends before both marks was cut by someone. */
static tt_status latents_file_check_frames(latents_file *f, int fd,
                                           const char *path)
{
    char mark[2][MARK + 1] = {"", ""}, ours[MARK + 1];
    int64_t n[2], good = -1, bad = 0;
    for (int i = 0; i < 2; i++) {
        const bool whole = pread(fd, mark[i], MARK, f->mark[i]) == MARK;
        n[i] = whole ? frames_in_mark(mark[i]) : -1;
    }
    for (int k = 0; k < 2; k++) {
        const int i = n[0] <= n[1] ? k : 1 - k;
        if (n[i] < 0 || n[i] > f->done) continue;
        TT_TRY(sum_up_to(f, fd, n[i]));
        make_mark(ours, n[i], &f->sum);
        if (memcmp(ours, mark[i], MARK)) bad = n[i];
        else good = n[i];
        f->turn = good == n[i] ? 1 - i : i;
    }
    if (good < 0 && n[0] > f->done && n[1] > f->done) {
        tt_warn(f->ctx, "%s has lost its end, and what is left of it cannot be "
                "checked", path);
        return sum_up_to(f, fd, f->done);
    }
    if (good < 0) return not_as_written(f, path);
    if (good < bad)
        tt_warn(f->ctx, "%s is damaged: its frames are as they were written up "
                "to number %lld; the others are made again", path,
                (long long)good);
    f->done = good;
    return sum_up_to(f, fd, good);
}

/* Nothing that is there is taken. */
static void forget_frames(latents_file *f)
{
    tt_sha256_init(&f->sum);
    f->summed = f->done = 0;
    f->turn = 0;
}

/* No one goes on from damaged frames; with `overwrite` they may go. */
static bool lost(latents_file *f)
{
    if (!f->overwrite || f->ctx->status != TT_EFORMAT) return false;
    tt_clear(f->ctx);
    forget_frames(f);
    return true;
}

/* The work under the unfinished name. */
static tt_status take_unfinished(latents_file *f, const int64_t dim[5],
                                 const char *run, bool *taken)
{
    int64_t frames;
    char what[200];
    if (f->empty) return TT_OK;
    *taken = same_run(f, f->lock, dim, run, &frames);
    if (*taken && latents_file_check_frames(f, f->lock, f->unfinished))
        *taken = !lost(f);
    if (*taken || f->overwrite) return f->ctx->status;
    name_difference(f, dim, run, what, sizeof what);
    return tt_fail(f->ctx, TT_EINVAL, "%s was begun by another run (%s): give "
                   "exactly the same command, another name, or --overwrite to "
                   "start over", f->unfinished, what);
}

/* The complete file, whose video may not have been decoded, or a shorter one
 * of the same run to go on from: `shorter`. One of another run will be
 * replaced: whether it may be is asked before. */
static tt_status take_complete(latents_file *f, const int64_t dim[5],
                               const char *run, FILE **shorter)
{
    int64_t frames;
    FILE *file = fopen(f->final, "rb");
    if (!file) return f->ctx->status;
    bool ours = same_run(f, fileno(file), dim, run, &frames)
             && f->done == frames;
    if (ours) {
        latents_file_check_frames(f, fileno(file), f->final);
        if (!f->ctx->status && f->done < frames) not_as_written(f, f->final);
        ours = !f->ctx->status;
        if (!ours) lost(f);
    }
    f->complete = ours && frames == f->frames;
    if (f->complete) f->file = file;
    else if (ours) *shorter = file;
    else fclose(file);
    return f->ctx->status;
}

/* The frames of a shorter file, after the header. */
static tt_status copy_frames(latents_file *f, FILE *from)
{
    char some[1 << 14];
    size_t n = (size_t)f->done * f->frame_bytes;
    bool bad = fseeko(from, (off_t)f->header_bytes, SEEK_SET) != 0;
    for (size_t k; n && !bad; n -= k) {
        k = n < sizeof some ? n : sizeof some;
        bad = fread(some, 1, k, from) != k
           || fwrite(some, 1, k, f->file) != k;
    }
    if (bad || fflush(f->file) || fsync(fileno(f->file)))
        return latents_file_failed(f);
    TT_TRY(put_mark(f));
    return put_mark(f);
}

/* The claimed file as a stream; its lock stays when the stream is closed. */
static tt_status open_unfinished(latents_file *f)
{
    const int fd = fcntl(f->lock, F_DUPFD_CLOEXEC, 0);
    f->file = fd >= 0 ? fdopen(fd, "r+b") : NULL;
    if (!f->file && fd >= 0) close(fd);
    return f->file ? TT_OK : latents_file_failed(f);
}

static void set_sizes(latents_file *f, const int64_t dim[5])
{
    f->frames = dim[0] * dim[1];
    f->frame_bytes = (size_t)(dim[2] * dim[3] * dim[4]) * sizeof(tt_real);
}

/* A header alone. */
static tt_status begin_anew(latents_file *f, const char *header)
{
    if (ftruncate(f->lock, 0) || fseeko(f->file, 0, SEEK_SET)
        || fwrite(header, 1, f->header_bytes, f->file) != f->header_bytes
        || fflush(f->file))
        return latents_file_failed(f);
    return TT_OK;
}

/* The work under the unfinished name gets the length that it is to have now. */
static tt_status go_on(latents_file *f, const int64_t dim[5], const char *run)
{
    const char *header = f->length == dim[1] ? NULL : make_header(f, dim, run);
    TT_TRY(f->ctx->status);
    if (header && pwrite(f->lock, header, f->header_bytes, 0)
               != (ssize_t)f->header_bytes) return latents_file_failed(f);
    return latents_file_cut(f, f->done);
}

tt_status latents_file_open(latents_file *f, const int64_t dim[5],
                            const char *run)
{
    bool taken = false;
    FILE *shorter = NULL;
    set_sizes(f, dim);
    if (!f->locked || f->ctx->status) return f->ctx->status;
    forget_frames(f);
    char *header = make_header(f, dim, run);
    TT_TRY(f->ctx->status);
    if (f->resume) {
        TT_TRY(take_unfinished(f, dim, run, &taken));
        if (!taken) TT_TRY(take_complete(f, dim, run, &shorter));
        if (f->complete) return TT_OK;
    }
    if (open_unfinished(f) == TT_OK && taken) return go_on(f, dim, run);
    if (!shorter) forget_frames(f);
    f->empty = f->done == 0;
    if (!f->ctx->status && !begin_anew(f, header) && shorter)
        copy_frames(f, shorter);
    if (shorter) fclose(shorter);
    return f->ctx->status;
}

/* The file of latents `path`, else what it is called until it is complete; -1:
 * neither is there, or it has no frame. */
static int open_latents(tt_ctx *ctx, tt_arena *mem, const char *path)
{
    char name[4400];
    const char *final = tt_out_target(ctx, mem, path);
    for (int i = 0; final && i < 2; i++) {
        snprintf(name, sizeof name, "%.4300s%s", final,
                 i ? ".unfinished" : "");
        const int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        const content c = fd >= 0 ? content_of(fd) : NOTHING;
        if (c == A_RUN) return fd;
        if (fd >= 0) close(fd);
        if (c == DAMAGED) break; /* it would be lost */
    }
    return -1;
}

int64_t latents_file_look(tt_ctx *ctx, const char *path, const int64_t dim[5],
                          const char *run, bool may_grow, char *why, size_t n)
{
    latents_file f = {.ctx = ctx, .path = path, .lock = -1,
                      .may_grow = may_grow};
    int64_t frames;
    const int fd = open_latents(ctx, &f.mem, path);
    set_sizes(&f, dim);
    const bool is = fd >= 0 && make_header(&f, dim, run)
                 && same_run(&f, fd, dim, run, &frames);
    if (!is && fd >= 0 && n) name_difference(&f, dim, run, why, n);
    if (fd >= 0) close(fd);
    tt_arena_free(&f.mem);
    return is ? f.done : 0;
}

bool latents_file_of_a_run(tt_ctx *ctx, const char *path)
{
    tt_arena mem = {0};
    const int fd = open_latents(ctx, &mem, path);
    if (fd >= 0) close(fd);
    tt_arena_free(&mem);
    return fd >= 0;
}

tt_status latents_file_read(latents_file *f, tt_real *frames)
{
    const tt_dtype real = sizeof *frames == 8 ? TT_F64 : TT_F32;
    size_t n = (size_t)f->done * f->frame_bytes;
    if (!f->file || !n || f->ctx->status) return f->ctx->status;
    if (fseeko(f->file, (off_t)f->header_bytes, SEEK_SET)
        || fread(frames, 1, n, f->file) != n)
        return tt_fail(f->ctx, TT_EIO, "cannot read %s: %s", f->path,
                       strerror(errno));
    tt_swap_stored(frames, real, (int64_t)(n / sizeof *frames));
    return TT_OK;
}

tt_status latents_file_cut(latents_file *f, int64_t frames)
{
    if (!f->file || f->complete || f->ctx->status) return f->ctx->status;
    off_t end = (off_t)(f->header_bytes + (size_t)frames * f->frame_bytes);
    if (frames != f->summed) {
        TT_TRY(sum_up_to(f, f->lock, frames));
        TT_TRY(put_mark(f));
    }
    f->done = frames;
    f->empty = frames == 0;
    if (fflush(f->file) || ftruncate(fileno(f->file), end)
        || fseeko(f->file, end, SEEK_SET))
        return latents_file_failed(f);
    return TT_OK;
}

/* Little-endian, whatever the host. */
static bool latents_file_put_values(FILE *file, tt_sha256 *sum,
                                    const tt_real *x, size_t n)
{
    tt_real some[1024];
    for (size_t k; n > 0; x += k, n -= k) {
        k = n < 1024 ? n : 1024;
        memcpy(some, x, k * sizeof *x);
        tt_swap_stored(some, sizeof *x == 8 ? TT_F64 : TT_F32, (int64_t)k);
        tt_sha256_add(sum, some, k * sizeof *x);
        if (fwrite(some, sizeof *x, k, file) != k) return false;
    }
    return true;
}

tt_status latents_file_append(latents_file *f, const tt_real *frames,
                              int64_t n)
{
    size_t values = (size_t)n * f->frame_bytes / sizeof *frames;
    if (!f->file || f->ctx->status) return f->ctx->status;
    if (!latents_file_put_values(f->file, &f->sum, frames,
                                 values) || fflush(f->file)
        || fsync(fileno(f->file)))
        return latents_file_failed(f);
    f->summed = f->done += n;
    f->empty = false;
    return put_mark(f);
}

tt_status latents_file_finish(latents_file *f)
{
    if (!f->file || f->ctx->status) return f->ctx->status;
    TT_ASSERT(f->done == f->frames);
    FILE *file = f->file;
    f->file = NULL;
    bool bad = !f->complete && (put_mark(f) || put_mark(f)
                                || fsync(fileno(file)));
    bad = fclose(file) || bad;
    if (f->complete) return TT_OK;
    if (bad) return f->ctx->status ? f->ctx->status : latents_file_failed(f);
    if (place_rename(f->unfinished, f->final, f->is_new))
        return tt_fail(f->ctx, TT_EIO, "cannot write %s: %s", f->path,
                       place_reason());
    f->empty = false;
    return TT_OK;
}

void latents_file_close(latents_file *f)
{
    if (f->file) fclose(f->file);
    f->file = NULL;
    if (f->locked) {
        if (f->empty && (f->done == 0 || f->complete)) unlink(f->unfinished);
        close(f->lock);
    }
    f->locked = false;
    tt_arena_free(&f->mem);
}
