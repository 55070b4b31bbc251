/* test_recorder.c: caches driven by hand, recorded, read back and analysed.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two layers, one head of two channels, frames of two tokens. The key of token
 * t of frame f is (10 f + 2 t, 10 f + 2 t + 1) + 100 layer, so its mean over a
 * frame is 10 f + 1, 10 f + 2 and its standard deviation 1. Values are
 * negative keys. */
#include "tests/folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/files.h"
#include "analyze/measure.h"

enum { L = 2, W = 2, LAYERS = 2 };

static tt_ctx *ctx;

static void one_pass(tt_cache *cache, const tt_pass *p)
{
    tt_real k[8 * L * W], v[8 * L * W];
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        for (int64_t i = 0; i < p->frames * L * W; i++) {
            int64_t f = p->start + i / (L * W);
            k[i] = (tt_real)(10 * f + i % (L * W) + 100 * layer
                             + (p->context ? 0 : 1000));
            v[i] = -k[i];
        }
        tt_cache_write(ctx, cache, layer, p, &(tt_qkv){k, k, v});
    }
}

static int warned; /* that a run is not finished */

static void count_warning(void *user, const char *text)
{
    (void)user;
    if (strstr(text, "is not finished: this is its first ")) warned++;
    else fprintf(stderr, "%s\n", text);
}

static bool is_unfinished(const char *name)
{
    char path[600], text[4096] = "";
    snprintf(path, sizeof path, "%s/run.json", at(name));
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f) fclose(f);
    return strstr(text, "\"unfinished\": true") != NULL;
}

/* The folder while the run goes on: the trace of `chunks` chunks. */
static void expect_so_far(const char *name, int64_t chunks)
{
    tt_recording *r = NULL;
    expect(is_unfinished(name), "it says so");
    if (!expect_ok(tt_recording_open(ctx, &r, at(name)), "during the run"))
        return;
    expect(r->chunks == chunks && !r->latents && !r->features
           && !strcmp(r->prompt, "a \"cat\""), "after %lld chunks: %lld",
           (long long)chunks, (long long)r->chunks);
    tt_recording_close(r);
}

/* Record `chunks` chunks of `frames` frames; killed: the run ends there. */
static bool record_some(const char *name, const tt_policy_options *opt,
                        int64_t frames, int64_t chunks, bool killed)
{
    const tt_geometry geo = {.layers = LAYERS, .H = 1, .D = W, .grid_h = 1,
                             .grid_w = L, .L = L, .chunk = frames,
                             .first_chunk = frames, .frames = frames * chunks};
    tt_recorder_options o = {.folder = at(name), .C = 1, .h = 1, .w = 2,
                             .features = true, .prompt = "a \"cat\"",
                             .during = chunks != 5,
                             .seed = 7, .video = "x.mp4"};
    tt_cache *cache;
    tt_recorder *rec;
    if (!expect_ok(tt_cache_open(ctx, &cache, NULL, opt, &geo), name))
        return false;
    if (!expect_ok(tt_recorder_open(ctx, &rec, cache, &o), "recorder"))
        return false;
    for (int64_t c = 0; c < chunks; c++) {
        tt_real z[16];
        tt_pass p = {.start = c * frames, .frames = frames, .chunk = c};
        for (int64_t i = 0; i < 2 * frames; i++)
            z[i] = (tt_real)(p.start + i / 2);
        one_pass(cache, &p);
        p.context = true;
        p.step = 1;
        one_pass(cache, &p);
        expect_ok(tt_recorder_chunk(rec, p.start, frames, z), "chunk");
        if (o.during) expect_so_far(name, c + 1);
    }
    if (killed) tt_recorder_abort(rec);
    bool ok = killed || expect_ok(tt_recorder_finish(rec), "finish");
    expect(is_unfinished(name) == killed, "is it finished?");
    tt_cache_close(cache);
    return ok;
}

static bool record(const char *name, const tt_policy_options *opt,
                   int64_t frames, int64_t chunks)
{
    return record_some(name, opt, frames, chunks, false);
}

static tt_recording *open_run(const char *name)
{
    tt_recording *r = NULL;
    expect_ok(tt_recording_open(ctx, &r, at(name)), "open");
    return r;
}

static void expect_slots(const tt_recording *r, int64_t chunk,
                         const int64_t *src, const int64_t *region)
{
    for (int64_t i = 0; i < LAYERS; i++)
        for (int64_t s = 0; s < r->slots; s++) {
            int64_t at = (chunk * r->layers + i) * r->slots + s;
            expect(r->src[at] == src[s] && r->region[at] == region[s],
                   "chunk %lld layer %lld slot %lld: frame %lld, %s",
                   (long long)chunk, (long long)i, (long long)s,
                   (long long)r->src[at],
                   tt_region_name((tt_region)r->region[at]));
        }
}

static void test_fifo(void)
{
    tt_policy_options opt = tt_policy_defaults("fifo");
    opt.K = 3;
    opt.S = 1;
    if (!record("fifo", &opt, 1, 5)) return;
    tt_recording *r = open_run("fifo");
    if (!r) return;
    expect(r->chunks == 5 && r->layers == 2 && r->slots == 3 && r->frames == 5,
           "sizes");
    expect(!strcmp(tt_recording_label(r), "fifo")
           && !strcmp(tt_recording_prompt(r), "a \"cat\"")
           && !strcmp(tt_recording_video(r), "x.mp4") && r->S == 1, "facts");
    enum { E = TT_REGION_EMPTY, S = TT_REGION_SINK, R = TT_REGION_RECENT,
           N = TT_REGION_NEW };
    expect_slots(r, 0, (int64_t[]){0, -1, -1}, (int64_t[]){N, E, E});
    expect_slots(r, 2, (int64_t[]){0, 1, 2}, (int64_t[]){S, R, N});
    expect_slots(r, 4, (int64_t[]){0, 3, 4}, (int64_t[]){S, R, N});
    static const double want[5] = {1, 0, 0, 1, 1};
    for (int64_t f = 0; f < 5; f++)
        expect(r->readable[4 * LAYERS * 5 + f] == want[f],
               "frame %lld at the end", (long long)f);

    /* Clean keys only: 10 f + 1 and 10 f + 2, 100 more in layer 1. */
    tt_arena mem = {0};
    frame_stats k = stats_of_features(r, &mem, false, -1);
    frame_stats v = stats_of_features(r, &mem, true, 1);
    expect(k.F == 5 && k.N == 4 && v.N == 2, "sizes of features");
    expect(k.mean[3 * 4] == 31 && k.mean[3 * 4 + 3] == 132
           && k.sd[3 * 4] == 1, "keys of frame 3: %g %g %g", k.mean[12],
           k.mean[15], k.sd[12]);
    expect(v.mean[4 * 2] == -141 && v.sd[4 * 2] == 1, "values of frame 4");
    double ref[4], sd[4], drift[5];
    stats_pool(ref, sd, &k, 1);
    drift_curve(drift, k.mean, ref, sd, 5, 4, (drift_kind){false, false});
    expect(drift[0] == 0 && drift[4] == 40, "drift is 10 per frame");
    tt_arena_free(&mem);
    tt_recording_close(r);
}

static void test_tether(void)
{
    tt_policy_options opt = tt_policy_defaults("tether");
    opt.K = 6;
    opt.S = 1;
    opt.R = 3;
    opt.M = 2;
    if (!record("tether", &opt, 2, 6)) return;
    tt_recording *r = open_run("tether");
    if (!r) return;
    /* Full after chunk 2; then every chunk evicts two and holds a round. */
    enum { S = TT_REGION_SINK, M = TT_REGION_MEMORY, R = TT_REGION_RECENT,
           N = TT_REGION_NEW };
    expect_slots(r, 2, (int64_t[]){0, 1, 2, 3, 4, 5},
                 (int64_t[]){S, M, M, R, N, N});
    expect(r->rounds == 3 * LAYERS && r->candidates == 4, "rounds: %lld",
           (long long)r->rounds);
    retention_summary s = retention_sum_up(r, -1);
    expect(s.admitted == s.admissions, "admitted %g, counted %g", s.admitted,
           s.admissions);
    expect(s.admissions + s.rejections == 3 * 2 * LAYERS,
           "every evicted frame is one or the other");
    for (int64_t f = 0; f < r->frames; f++) {
        bool there = false;
        for (int64_t k = 0; k < r->slots; k++)
            there = there || r->src[5 * LAYERS * r->slots + k] == f;
        expect(r->readable[5 * LAYERS * r->frames + f] == (there ? 1 : 0),
               "frame %lld is readable when it has a slot", (long long)f);
    }
    tt_recording_close(r);
}

/* A slot that holds tokens of two frames. */
static void test_parts(void)
{
    const tt_geometry geo = {.layers = LAYERS, .H = 1, .D = W, .grid_h = 1,
                             .grid_w = L, .L = L, .chunk = 2, .first_chunk = 2,
                             .frames = 4};
    tt_policy_options opt = tt_policy_defaults("full");
    tt_recorder_options o = {.trace = at("parts.safetensors")};
    tt_cache *cache;
    tt_recorder *rec;
    if (!expect_ok(tt_cache_open(ctx, &cache, NULL, &opt, &geo), "cache")
        || !expect_ok(tt_recorder_open(ctx, &rec, cache, &o), "recorder"))
        return;
    const tt_pass p = {.frames = 2, .context = true};
    one_pass(cache, &p);
    tt_cache_layer(cache, 1)->src_frame[1] = 1; /* slot 0 holds 0 and 1 */
    expect_ok(tt_recorder_chunk(rec, 0, 2, NULL), "chunk");
    expect_ok(tt_recorder_finish(rec), "finish");
    tt_cache_close(cache);
    tt_recording *r = open_run("parts.safetensors");
    if (!r) return;
    static const int64_t want[10] = {0, 1, 0, 0, 1, 0, 1, 0, 1, 1};
    expect(r->nparts == 2 && !memcmp(r->part, want, sizeof want), "parts");
    const int64_t at = r->slots; /* layer 1 */
    expect(r->share[at] == 0.5 && r->src[at] == 0
           && r->region[at] == TT_REGION_MEMORY, "half a frame of 0");
    expect(r->readable[r->frames] == 0.5 && r->readable[r->frames + 1] == 1.5,
           "tokens are counted where they come from");
    expect(!r->latents && !r->features, "a trace alone");
    tt_recording_close(r);
}

static void test_analyze(void)
{
    static const char *const files[] = {
        "drift.csv", "drift.json", "biography.csv", "retention.json",
        "steps.csv", "summary.csv", "selection.csv", "index.html"};
    tt_recording *run[2] = {open_run("fifo"), open_run("tether")};
    tt_analyze_options opt = tt_analyze_defaults();
    char out[512];
    snprintf(out, sizeof out, "%s", at("out/deep"));
    opt.folder = out;
    if (!run[0] || !run[1]) return;
    expect_ok(tt_analyze(ctx, run, 2, &opt), "analyze");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char name[128];
        snprintf(name, sizeof name, "out/deep/%s", files[i]);
        expect(files_exist(at(name)), "%s", files[i]);
    }
    /* latents of frame f are all f: drift of the mean from frames 0, 1, 2
     * (mean 1) is |f - 1|, of the sd from sqrt(2/3) is sqrt(2/3) */
    const char *csv = text_of(at("out/deep/drift.csv"));
    expect(strstr(csv, "\nfifo,4,3,0.816496581,"), "%s", csv);
    /* the summary: means over the last quarter of the frames, rounded up */
    const int64_t frames = run[0]->frames, late = (frames + 3) / 4;
    char tail[80];
    snprintf(tail, sizeof tail, ",%g,0.816496581\n",
             (double)(frames - 2) - (double)(late - 1) / 2);
    csv = text_of(at("out/deep/summary.csv"));
    expect(strstr(csv, tail), "%s in %s", tail, csv);
    opt.reference = 6;
    expect_status(tt_analyze(ctx, run, 2, &opt), TT_EINVAL,
                  "a reference longer than the run");
    opt.reference = 3;
    opt.layer = 2;
    expect_status(tt_analyze(ctx, run, 2, &opt), TT_EINVAL, "no such layer");
    tt_recording *none;
    expect_status(tt_recording_open(ctx, &none, at("out")), TT_EFORMAT,
                  "a folder without a run");
    for (int i = 0; i < 2; i++) tt_recording_close(run[i]);
}

/* Rates of running averages are read back under their knobs' names. */
static void test_rates(int adaptive)
{
    tt_policy_options opt = tt_policy_defaults("memrope");
    opt.K = 6;
    opt.S = 1;
    tt_policy_put(&opt, "alpha-long", 0.25);
    tt_policy_put(&opt, "adaptive", adaptive);
    const char *name = adaptive ? "adaptive" : "memrope";
    if (!record(name, &opt, 1, 9)) return;
    tt_recording *r = open_run(name);
    if (!r) return;
    expect(r->alpha_long == 0.25 && r->alpha_short == (adaptive ? -1 : 0.1),
           "%s: rates %g and %g", name, r->alpha_long, r->alpha_short);
    double w[2 * 9 * 9];
    expect(summary_weights(w, r, 0, r->alpha_long, r->alpha_short),
           "%s: weights of frames follow", name);
    tt_recording_close(r);
}

/* ---- a policy from outside ----------------------------------------------- */

/* fifo that counts its chunks, and reports the frames 0 .. chunk of each in
 * every layer. */
enum { FRAMES, HALVES, UNTRACED };
static const tt_field reported[] = {
    [FRAMES] = {"frames", "[chunk + 1]", TT_I64,
                TT_FIELD_ROW | TT_FIELD_TRACED, 0, -7},
    [HALVES] = {"half", "of the chunk's number", TT_F64,
                TT_FIELD_TRACED | TT_FIELD_REAL, 0, 0},
    [UNTRACED] = {"secret", "is in no file", TT_I64, 0, 0, 0},
    {0},
};
static const tt_event_kind telling[] = {{"tell", reported}, {0}};

static const tt_field counted[] = {
    {"chunks_seen", "chunks so far", TT_I64, TT_FIELD_TRACED, 0, 0},
    {0},
};
static const tt_event_kind counting = {"layer", counted};

static void tell(tt_ctx *c, tt_layer *y, const tt_pass *p, const tt_qkv *x)
{
    static const int64_t frames[] = {0, 1, 2, 3, 4};
    const double half = (double)p->chunk / 2;
    (void)c;
    (void)x;
    ++*(int64_t *)y->state;
    tt_cache_report(y->cache, &(tt_event){
        .kind = telling, .layer = y->index, .chunk = p->chunk,
        .value = {[FRAMES] = {frames, p->chunk + 1}, [HALVES] = {&half, 1},
                  [UNTRACED] = {frames, 1}}});
}

static void count(const tt_layer *y, tt_event *out)
{
    out->value[0].at = y->state;
    out->value[0].n = 1;
}

static void test_events(void)
{
    tt_policy_class mine = *tt_policy_find("fifo");
    mine.state_bytes = sizeof(int64_t);
    mine.commit = tell;
    mine.events = telling;
    mine.shown = &counting;
    mine.show = count;
    tt_policy_options opt = tt_policy_start(&mine);
    opt.K = 3;
    opt.S = 1;
    tt_file *f;
    if (!record("own", &opt, 1, 3)) return;
    if (!expect_ok(tt_file_open(ctx, &f, at("own/trace.safetensors")), "trace"))
        return;
    static const int64_t rows[3][3] = {{0, -7, -7}, {0, 1, -7}, {0, 1, 2}};
    const tt_entry *frames = tt_file_find(f, "tell_frames");
    const tt_entry *half = tt_file_find(f, "tell_half");
    const tt_entry *layer = tt_file_find(f, "tell_layer");
    const tt_entry *seen = tt_file_find(f, "chunks_seen");
    if (expect(frames && half && layer && seen, "tensors of its own")) {
        int64_t row[3 * LAYERS][3], n[3 * LAYERS];
        tt_real halves[3 * LAYERS];
        expect(frames->t.rank == 2 && frames->t.dim[0] == 3 * LAYERS
               && frames->t.dim[1] == 3 && half->t.rank == 1
               && half->t.dtype == (sizeof(tt_real) == 8 ? TT_F64 : TT_F32)
               && seen->t.rank == 2 && seen->t.dim[1] == LAYERS, "shapes");
        tt_gather(row, &frames->t);
        tt_gather(n, &seen->t);
        tt_gather(halves, &half->t);
        for (int i = 0; i < 3 * LAYERS; i++) {
            expect_bits("a row", row[i], rows[i / LAYERS], sizeof *rows);
            expect(halves[i] == (tt_real)(i / LAYERS) / 2
                   && n[i] == i / LAYERS + 1, "values of event %d", i);
        }
    }
    expect(!tt_file_find(f, "tell_secret") && !tt_file_find(f, "grab_layer"),
           "and no others");
    tt_file_close(f);
}

/* A run that ends early, in the folder of one that did not. */
static void test_used_folder(void)
{
    tt_policy_options opt = tt_policy_defaults("fifo");
    opt.K = 3;
    opt.S = 1;
    warned = 0;
    record("used", &opt, 1, 5);
    expect(warned == 0, "a whole run warns of nothing");
    record_some("used", &opt, 1, 2, true);
    expect(warned == 2, "each look at it warns: %d", warned);
}

int main(void)
{
    ctx = test_begin("analyze/recorder");
    if (!folder_make()) return 1;
    ctx->warn = count_warning;
    test_fifo();
    test_tether();
    test_parts();
    test_analyze();
    test_rates(0);
    test_rates(1);
    test_events();
    test_used_folder();
    folder_remove();
    return test_end();
}
