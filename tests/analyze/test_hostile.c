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

/* ---- frames that are not there ------------------------------------------- */

/* Three chunks of one frame; slots hold frame `held` of three. */
static tt_status open_trace(int32_t held)
{
    const int64_t n[] = {3, 1, 3}, one[] = {3};
    const int32_t src[9] = {0, 1, 2, 0, 1, held, 0, 1, 2};
    const int64_t start[3] = {0, 1, 2}, count[3] = {1, 1, 1};
    const uint8_t region[9] = {0};
    const float share[9] = {1};
    tt_st_writer *w;
    tt_recording *run;
    if (!expect_ok(tt_st_create(ctx, &w, at("trace")), "create")) return TT_OK;
    tt_st_add(w, "bio_src", TT_I32, 3, n, src);
    tt_st_add(w, "bio_region", TT_U8, 3, n, region);
    tt_st_add(w, "bio_share", TT_F32, 3, n, share);
    tt_st_add(w, "readable", TT_F32, 3, n, share);
    tt_st_add(w, "chunk_start", TT_I64, 1, one, start);
    tt_st_add(w, "chunk_frames", TT_I64, 1, one, count);
    expect_ok(tt_st_finish(w), "finish");
    const tt_status s = tt_recording_open(ctx, &run, at("trace"));
    tt_recording_close(run);
    return s;
}

static void test_frames(void)
{
    expect_status(open_trace(2), TT_OK, "the last frame");
    expect_status(open_trace(3), TT_EFORMAT, "a frame after the last");
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

/* Opening a pipe that no one writes to would wait for ever. */
static void test_pipe(void)
{
    if (!expect(mkfifo(at("pipe"), 0600) == 0, "a pipe")) return;
    alarm(30);
    expect_status(files_copy(ctx, at("copy"), at("pipe")), TT_EFORMAT,
                  "a pipe is not copied");
    expect_status(files_copy(ctx, at("copy"), at("none")), TT_EIO, "no file");
    expect(!files_exist(at("copy")), "no copy");
    alarm(0);
}

/* ---- a lot from a little ------------------------------------------------- */

static int warnings;

static void count_warning(void *user, const char *sentence)
{
    (void)user, (void)sentence;
    warnings++;
}

/* The label is cut between two characters, not within one. */
static void test_long_label(void)
{
    tt_recording *run;
    expect(mkdir(at("long"), 0777) == 0, "a folder");
    zeros("long/latents.safetensors", "latents", 5,
          (int64_t[]){1, 1, 1, 1, 1});
    FILE *f = fopen(at("long/run.json"), "w");
    if (!expect(f != NULL, "run.json")) return;
    fputs("{\"label\": \"x", f);
    for (int i = 0; i < 100000; i++) fputs("\xc3\xa9", f); /* e acute */
    fputs("\"}", f);
    fclose(f);
    warnings = 0;
    if (!expect_ok(tt_recording_open(ctx, &run, at("long")), "open")) return;
    const char *label = tt_recording_label(run);
    expect(strlen(label) == 199 && label[197] == '\xc3' && label[198] == '\xa9',
           "a label of %zu bytes", strlen(label));
    expect(warnings == 1, "%d warnings", warnings);
    tt_recording_close(run);
}

/* ---- large traces -------------------------------------------------------- */

enum { N = 1 << 19 };

static int64_t *integers(tt_arena *mem, int64_t n, int64_t value)
{
    int64_t *x = tt_alloc(ctx, mem, n, sizeof *x, "integers");
    for (int64_t i = 0; x && i < n; i++) x[i] = value;
    return x;
}

/* N slots. The first chunk holds frame 0 only, the second frame s in slot s,
 * the third frame s/2: all but frame 0 are admitted for a chunk, those below
 * N/2 for another. */
static void test_many_slots(void)
{
    static const int64_t start[3] = {0, 1, 2}, count[3] = {1, 1, 1};
    tt_arena mem = {0};
    int64_t *src = integers(&mem, 3 * N, 0);
    int64_t *region = integers(&mem, 3 * N, TT_REGION_MEMORY);
    double *readable = tt_alloc0(ctx, &mem, 3 * N, sizeof *readable, "shares");
    double *w = tt_alloc(ctx, &mem, 4 * N, sizeof *w, "weights");
    if (!expect(src && region && readable && w, "memory")) return;
    for (int64_t s = 0; s < N; s++) src[N + s] = s, src[2 * N + s] = s / 2;
    tt_recording r = {.ctx = ctx, .chunks = 3, .layers = 1, .slots = N,
                      .frames = N, .src = src, .region = region,
                      .start = start, .count = count, .readable = readable};
    retention_summary sum = retention_sum_up(&r, -1);
    expect(sum.admitted == N - 1 && sum.lifetime
           == (double)(N - 1 + N / 2 - 1) / (N - 1), "%g admitted for %g",
           sum.admitted, sum.lifetime);

    /* Then a summary in slot 0 and frame 0 elsewhere: N - 1 frames leave. */
    r.src = src + N;
    r.chunks = 2;
    memset(src + 2 * N, 0, N * sizeof *src);
    src[2 * N] = -2;
    expect(summary_weights(w, &r, 0, 0.5, 0.5), "a summary");
    expect(w[N] == 0 && w[N + 1] == 1.0 / (N - 1) && w[2 * N - 1] == w[N + 1],
           "equal parts of all frames that left: %g", w[N + 1]);
    tt_arena_free(&mem);
}

/* A round with N candidates of the same frame, a chunk and a frame far away:
 * the page has them once each. */
static void test_many_candidates(void)
{
    static const int64_t zero = 0, far = INT64_C(1) << 31;
    tt_arena mem = {0};
    const int64_t *frame = integers(&mem, N, far), *keep = integers(&mem, N, 1);
    const double *score = tt_alloc0(ctx, &mem, N, sizeof *score, "scores");
    tt_recording r = {.ctx = ctx, .path = "wide", .label = "wide",
        .policy = "", .rounds = 1, .candidates = N, .grab_layer = &zero,
        .grab_chunk = &far, .grab_sub = &zero, .grab_candidates = frame,
        .grab_keep = keep, .grab_mass = score, .grab_scores = score,
        .seconds = -1};
    tt_recording *run[1] = {&r};
    tt_analyze_options opt = tt_analyze_defaults();
    if (!expect(frame && keep && score, "memory")) return;
    expect_ok(tt_report_write(ctx, at("page.html"), "wide", run, 1, &opt),
              "a page");
    struct stat st;
    expect(!stat(at("page.html"), &st) && st.st_size < 20 * N,
           "its size goes with the candidates");
    tt_arena_free(&mem);
}

int main(void)
{
    ctx = test_begin("analyze/hostile");
    ctx->warn = count_warning;
    if (!folder_make()) return 1;
    test_reference_layers();
    test_frames();
    test_quantised();
    test_pipe();
    test_long_label();
    alarm(60); /* no sum over all pairs of what a file holds */
    test_many_slots();
    test_many_candidates();
    folder_remove();
    return test_end();
}
