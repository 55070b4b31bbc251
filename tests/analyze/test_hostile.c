/* test_hostile.c: runs that contradict themselves, or are made to cost much.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Regression: every case here once read past the end of a file, stopped the
 * program, or kept it busy without end. */
#include "tests/folder.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/files.h"
#include "analyze/measure.h"

static tt_ctx *ctx;

/* A file of one tensor of zeros. */
static const char *zeros(const char *name, const char *tensor, int rank,
                         const int64_t *dim)
{
    const char *path = at(name);
    tt_st_writer *w;
    tt_arena mem = {0};
    int64_t count;
    expect(tt_checked_size(&count, dim, rank, sizeof(float)), "a size");
    float *data = tt_alloc0(ctx, &mem, count, 1, "zeros");
    if (expect_ok(tt_st_create(ctx, &w, path), "create")) {
        tt_st_add(w, tensor, TT_F32, rank, dim, data);
        expect_ok(tt_st_finish(w), "finish");
    }
    tt_arena_free(&mem);
    return path;
}

/* Both have as many statistics per frame of one layer, but the reference is
 * a file of one layer, and layer 63 is asked for. */
static void test_reference_layers(void)
{
    tt_recording *run, *other;
    tt_analyze_options opt = tt_analyze_defaults();
    const char *out = at("layers");
    opt.folder = out;
    opt.layer = 63;
    expect_ok(tt_recording_open(ctx, &run, zeros("a", "kv_stats", 4,
        (int64_t[]){3, 64, 4, 1})), "open");
    expect_ok(tt_recording_open(ctx, &other, zeros("b", "kv_stats", 4,
        (int64_t[]){1, 1, 4, 200000})), "open");
    expect_ok(tt_analyze(ctx, &run, 1, &opt), "layer 63 of 64");
    opt.reference_run = other;
    expect_status(tt_analyze(ctx, &run, 1, &opt), TT_EINVAL,
                  "no layer 63 in the reference");
    expect_status(tt_report_write(ctx, at("page"), "", &run, 1, &opt),
                  TT_EINVAL, "nor for a report");
    tt_recording_close(run);
    tt_recording_close(other);
}

/* ---- quantised values ---------------------------------------------------- */

static void put(FILE *f, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) putc((int)(v >> 8 * i & 255), f);
}

/* A GGUF tensor of 32 values in a row, its data at `offset`. */
static void gguf_tensor(FILE *f, const char *name, int rank, int type,
                        uint64_t inner, uint64_t offset)
{
    put(f, strlen(name), 8);
    fputs(name, f);
    put(f, (uint64_t)rank, 4);
    put(f, inner, 8);
    for (int i = 1; i < rank; i++) put(f, 1, 8);
    put(f, (uint64_t)type, 4);
    put(f, offset, 8);
}

static void test_quantised(void)
{
    enum { F32 = 0, Q8_0 = 8, I32 = 26 };
    const char *path = at("quantised.gguf");
    tt_recording *run;
    FILE *f = fopen(path, "wb");
    if (!expect(f != NULL, "%s", path)) return;
    fputs("GGUF", f);
    put(f, 3, 4);
    put(f, 6, 8);
    put(f, 0, 8);
    gguf_tensor(f, "bio_src", 3, I32, 32, 0);
    gguf_tensor(f, "bio_region", 3, I32, 32, 128);
    gguf_tensor(f, "bio_share", 3, Q8_0, 32, 256);
    gguf_tensor(f, "chunk_start", 1, I32, 1, 320);
    gguf_tensor(f, "chunk_frames", 1, I32, 1, 352);
    gguf_tensor(f, "readable", 3, F32, 1, 384);
    while (ftell(f) % 32) putc(0, f);
    for (int i = 0; i < 416; i++) putc(i == 352, f); /* a chunk of one frame */
    expect(fclose(f) == 0, "%s", path);
    tt_status s = tt_recording_open(ctx, &run, path);
    expect(strstr(tt_message(ctx), "bio_share is quantised") != NULL, "'%s'",
           tt_message(ctx));
    expect_status(s, TT_EFORMAT, "quantised shares");
}

/* ---- pipes --------------------------------------------------------------- */

/* Opening a pipe that nobody writes to would wait for ever. */
static void test_pipe(void)
{
    tt_arena mem = {0};
    size_t n;
    if (!expect(mkfifo(at("pipe"), 0600) == 0, "a pipe")) return;
    alarm(30);
    char *read = files_read(ctx, &mem, at("pipe"), 1000, &n);
    expect(!read && !n, "nothing is read");
    expect_status(ctx->status, TT_EFORMAT, "a pipe is not read");
    expect_status(files_copy(ctx, at("copy"), at("pipe")), TT_EFORMAT,
                  "nor copied");
    expect_status(files_copy(ctx, at("copy"), at("none")), TT_EIO, "no file");
    expect(!files_exist(at("copy")), "no copy");
    alarm(0);
    tt_arena_free(&mem);
}

int main(void)
{
    ctx = test_begin("analyze/hostile");
    if (!folder_make()) return 1;
    test_reference_layers();
    test_quantised();
    test_pipe();
    folder_remove();
    return test_end();
}
