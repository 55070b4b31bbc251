/* latents_file.c: the latents of a run, appended chunk by chunk.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/latents_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/jsonout.h"
#include "tether/outfile.h"

enum { HEADER_MAX = 1 << 20 };

static tt_status failed(latents_file *f)
{
    return tt_fail(f->ctx, TT_EIO, "cannot write %s: %s", f->path,
                   strerror(errno));
}

/* 8 bytes of length, then JSON padded with spaces to a multiple of 8. */
static char *make_header(latents_file *f, const int64_t dim[5],
                         const char *run)
{
    char *text = NULL, *header = NULL;
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
    json_str(&j, "run", run);
    json_close(&j, '}');
    json_open(&j, "latents", '{');
    json_str(&j, "dtype", sizeof(tt_real) == 8 ? "F64" : "F32");
    json_open(&j, "shape", '[');
    for (int i = 0; i < 5; i++) json_int(&j, NULL, dim[i]);
    json_close(&j, ']');
    json_open(&j, "data_offsets", '[');
    json_int(&j, NULL, 0);
    json_int(&j, NULL, f->frames * (int64_t)f->frame_bytes);
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
    fclose(m);
    n--; /* the newline of a JSON line */
    size_t padded = (n + 7) / 8 * 8;
    header = tt_alloc(f->ctx, &f->mem, (int64_t)padded + 8, 1, "header");
    if (header) {
        for (int i = 0; i < 8; i++)
            header[i] = (char)(uint8_t)((uint64_t)padded >> (8 * i));
        memset(header + 8, ' ', padded);
        memcpy(header + 8, text, n);
        f->header_bytes = padded + 8;
    }
    free(text);
    return header;
}

/* What is in a file that is not of this run: another one's header, less than
 * a header (nothing was saved yet), or something else. */
typedef enum content { OTHER_RUN, NOTHING, DAMAGED } content;

static content content_of(FILE *file, int64_t size)
{
    uint8_t head[9];
    uint64_t n = 0;
    if (size < (int64_t)sizeof head) return NOTHING;
    rewind(file);
    if (fread(head, 1, sizeof head, file) != sizeof head) return DAMAGED;
    for (int i = 0; i < 8; i++) n |= (uint64_t)head[i] << (8 * i);
    if (n > HEADER_MAX || head[8] != '{') return DAMAGED;
    return size < (int64_t)n + 8 ? NOTHING : OTHER_RUN;
}

/* Open `name` and compare its header; the frames in it are counted. False
 * when there is no such file, or one of another run; *why says which. */
static bool same_run(latents_file *f, const char *name, const char *mode,
                     const char *header, content *why)
{
    struct stat st = {0};
    *why = NOTHING;
    f->file = fopen(name, mode);
    if (!f->file) return false;
    char *there = tt_alloc0(f->ctx, &f->mem, (int64_t)f->header_bytes, 1,
                            "header");
    if (there
        && fstat(fileno(f->file), &st) == 0
        && fread(there, 1, f->header_bytes, f->file) == f->header_bytes
        && !memcmp(there, header, f->header_bytes)) {
        f->done = ((int64_t)st.st_size - (int64_t)f->header_bytes)
                / (int64_t)f->frame_bytes;
        if (f->done > f->frames) f->done = f->frames;
        return true;
    }
    *why = content_of(f->file, (int64_t)st.st_size);
    fclose(f->file);
    f->file = NULL;
    return false;
}

/* Go on where the same run stopped. False when there is nothing to go on
 * from. */
static bool take_up(latents_file *f, const char *header)
{
    content why;
    if (same_run(f, f->unfinished, "r+b", header, &why)) return true;
    if (why == DAMAGED)
        tt_fail(f->ctx, TT_EFORMAT, "%s is damaged: it does not begin as the "
                "latents of a run do; start over without --resume",
                f->unfinished);
    if (why == OTHER_RUN)
        tt_fail(f->ctx, TT_EINVAL, "%s was begun by another run (its prompt, "
                "options, seed or weights differ): give exactly the same "
                "command, or start over without --resume", f->unfinished);
    if (f->ctx->status) return false;
    if (!same_run(f, f->path, "rb", header, &why)) return false;
    f->complete = f->done == f->frames;
    if (!f->complete) fclose(f->file);
    if (!f->complete) f->file = NULL;
    return f->complete;
}

tt_status latents_file_open(tt_ctx *ctx, latents_file *f, const char *path,
                            const int64_t dim[5], const char *run,
                            bool resume)
{
    struct stat st;
    memset(f, 0, sizeof *f);
    f->ctx = ctx;
    f->path = path;
    f->frames = dim[0] * dim[1];
    f->frame_bytes = (size_t)(dim[2] * dim[3] * dim[4]) * sizeof(tt_real);
    if (!path) return TT_OK;
    TT_TRY(tt_out_check(ctx, path));
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return tt_fail(ctx, TT_EIO, "cannot write %s: it exists and is not a "
                       "regular file", path);
    size_t n = strlen(path) + 16;
    f->unfinished = tt_alloc(ctx, &f->mem, (int64_t)n, 1, "file name");
    char *header = make_header(f, dim, run);
    if (ctx->status) return ctx->status;
    snprintf(f->unfinished, n, "%s.unfinished", path);

    if (resume && take_up(f, header)) return latents_file_cut(f, f->done);
    if (ctx->status) return ctx->status;
    if (!resume && access(f->unfinished, F_OK) == 0)
        tt_warn(ctx, "%s is discarded; --resume would have continued it if it "
                "is of the same run", f->unfinished);
    f->file = fopen(f->unfinished, "w+b");
    if (!f->file || fwrite(header, 1, f->header_bytes, f->file)
                        != f->header_bytes || fflush(f->file))
        return failed(f);
    return TT_OK;
}

tt_status latents_file_read(latents_file *f, tt_real *frames)
{
    const tt_dtype real = sizeof *frames == 8 ? TT_F64 : TT_F32;
    size_t n = (size_t)f->done * f->frame_bytes;
    if (!f->file || !n || f->ctx->status) return f->ctx->status;
    if (fseeko(f->file, (off_t)f->header_bytes, SEEK_SET)
        || fread(frames, 1, n, f->file) != n)
        return tt_fail(f->ctx, TT_EIO, "cannot read %s: %s", f->unfinished,
                       strerror(errno));
    tt_swap_stored(frames, real, (int64_t)(n / sizeof *frames));
    return TT_OK;
}

tt_status latents_file_cut(latents_file *f, int64_t frames)
{
    if (!f->file || f->complete || f->ctx->status) return f->ctx->status;
    off_t end = (off_t)(f->header_bytes + (size_t)frames * f->frame_bytes);
    f->done = frames;
    if (fflush(f->file) || ftruncate(fileno(f->file), end)
        || fseeko(f->file, end, SEEK_SET))
        return failed(f);
    return TT_OK;
}

/* Little-endian, whatever the host. */
static bool put_values(FILE *file, const tt_real *x, size_t n)
{
    tt_real some[1024];
    for (size_t k; n > 0; x += k, n -= k) {
        k = n < 1024 ? n : 1024;
        memcpy(some, x, k * sizeof *x);
        tt_swap_stored(some, sizeof *x == 8 ? TT_F64 : TT_F32, (int64_t)k);
        if (fwrite(some, sizeof *x, k, file) != k) return false;
    }
    return true;
}

tt_status latents_file_append(latents_file *f, const tt_real *frames,
                              int64_t n)
{
    size_t values = (size_t)n * f->frame_bytes / sizeof *frames;
    if (!f->file || f->ctx->status) return f->ctx->status;
    if (!put_values(f->file, frames, values) || fflush(f->file)
        || fsync(fileno(f->file)))
        return failed(f);
    f->done += n;
    return TT_OK;
}

tt_status latents_file_finish(latents_file *f)
{
    if (!f->file || f->ctx->status) return f->ctx->status;
    TT_ASSERT(f->done == f->frames);
    FILE *file = f->file;
    f->file = NULL;
    bool bad = fclose(file) != 0;
    if (f->complete) return TT_OK;
    if (bad || rename(f->unfinished, f->path)) return failed(f);
    return TT_OK;
}

void latents_file_close(latents_file *f)
{
    if (f->file) {
        fclose(f->file);
        if (f->done == 0 && !f->complete) unlink(f->unfinished);
    }
    f->file = NULL;
    tt_arena_free(&f->mem);
}
