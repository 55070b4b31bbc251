/* test_run.c: a run of the built-in model, as a program without a terminal
 * makes it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  the chunks are those of a rollout made by hand from the same
 *   embeddings, and a run that was left in the middle goes on to the same
 *   bits. */
#include "tests/folder.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ops/backend.h"
#include "run/run.h"
#include "team/team.h"
#include "text/text.h"
#include "tests/fpenv.h"

static tt_ctx *ctx;
static const char *const words = "a red circle moves left and bounces, on a "
                                 "blue background";
enum { LATENTS = 9, SIZE = 16 * 8 * 8, ALL = LATENTS * SIZE };

static tt_settings settings_of(const char *file, const char *cache)
{
    tt_settings s = tt_settings_defaults();
    tt_settings_set(ctx, &s, "model", "ref_data/demo");
    tt_settings_set(ctx, &s, "prompt", words);
    tt_settings_set(ctx, &s, "size", "64x64");
    tt_settings_set(ctx, &s, "latents", "9");
    tt_settings_set(ctx, &s, "cache", cache);
    tt_settings_set(ctx, &s, "no-decode", NULL);
    if (file) tt_settings_set(ctx, &s, "latents-out", file);
    return s;
}

static tt_run *open_run(const tt_settings *s)
{
    tt_run *run;
    expect_ok(tt_run_open(ctx, &run, s, NULL), "a run");
    return run;
}

/* At most `chunks` chunks into x, after `at` frames: frames there then. */
static int64_t go_on(tt_run *run, tt_host *x, int64_t at, int chunks)
{
    const tt_host *x0;
    int64_t n;
    while (chunks-- && run && tt_run_next(ctx, run, &x0, &n) == TT_OK) {
        if (!expect(at + n <= LATENTS, "no more frames than asked for")) break;
        memcpy(x + at * SIZE, x0, (size_t)(n * SIZE) * sizeof *x);
        at += n;
    }
    return at;
}

static void by_hand(tt_host *x, const char *cache)
{
    const tt_model_paths paths = {.model = "ref_data/demo", .ema = -1};
    char spiece[4096];
    tt_dit *net;
    tt_tokenizer *tok;
    tt_umt5 *enc;
    tt_prompt *prompt;
    tt_rollout *r;
    tt_arena mem = {0};
    tt_rollout_options o = tt_rollout_defaults();
    tt_model_open_dit(ctx, &net, &paths, NULL);
    tt_model_tokenizer(ctx, spiece, sizeof spiece, &paths);
    tt_tokenizer_open(ctx, &tok, spiece);
    tt_umt5_open(ctx, &enc, paths.model);
    const tt_dit_config *c = tt_dit_get_config(net);
    tt_real *text = tt_alloc(ctx, &mem, c->text_len * c->text_dim,
                             sizeof *text, "text");
    tt_prompt_embed(ctx, text, enc, tok, words, strlen(words), c->text_len,
                    NULL);
    tt_prompt_make(ctx, &prompt, net, text, c->text_len);
    o.latents = LATENTS;
    o.h = o.w = 8;
    o.policy = tt_policy_defaults(cache);
    tt_rollout_open(ctx, &r, net, prompt, &o);
    const tt_host *x0;
    int64_t n;
    while (tt_rollout_next(ctx, r, &x0, &n) == TT_OK) {
        memcpy(x, x0, (size_t)(n * SIZE) * sizeof *x);
        x += n * SIZE;
    }
    expect_ok(ctx->status, "a rollout by hand");
    tt_rollout_close(r);
    tt_prompt_free(prompt);
    tt_umt5_close(enc);
    tt_tokenizer_close(tok);
    tt_dit_close(net);
    tt_arena_free(&mem);
}

/* Left after two of three chunks, and taken up by another run. */
static void check_resume(const tt_host *want, const char *cache)
{
    static tt_host got[ALL], first[ALL];
    tt_settings s = settings_of(at("half.safetensors"), cache);
    tt_run *run = open_run(&s);
    expect(go_on(run, first, 0, 2) == 6, "two chunks");
    const tt_run_standing here = tt_run_stand(run);
    expect(here.chunk == 2 && here.chunks == 3 && here.unfinished,
           "it stands after two of three");
    expect_ok(tt_run_save(ctx, run), "saved");
    tt_run_close(run);
    expect(access(at("half.safetensors"), F_OK) != 0, "it is not complete");

    run = open_run(&s);
    const tt_host *x0;
    int64_t n;
    expect_status(run ? tt_run_next(ctx, run, &x0, &n) : TT_OK, TT_EINVAL,
                  "work that is there, and nothing said about it");
    tt_run_close(run);

    tt_settings_set(ctx, &s, "resume", NULL);
    run = open_run(&s);
    go_on(run, got, 6, 1);
    expect_ok(tt_run_save(ctx, run), "after the last chunk");
    expect((tt_run_stand(run).saved == 3) == !strcmp(cache, "deep-forcing"),
           "%s: a state of it only where no chunk can be replayed", cache);
    go_on(run, got, 9, 1);
    expect_ok(ctx->status, cache);
    expect_bits(cache, got + 6 * SIZE, want + 6 * SIZE,
                3 * SIZE * sizeof *got);
    tt_tensor all;
    if (expect_ok(tt_run_latents(ctx, run, &all), "all latents"))
        expect_bits("all latents", all.data, want, ALL * sizeof *want);
    expect(tt_run_made(ctx, run, 0, at("half.safetensors"), NULL, 0) == LATENTS,
           "its own file");
    tt_run_close(run);
    unlink(at("half.safetensors"));
    tt_settings_free(&s);
}

typedef struct on_ranks {
    tt_settings s;
    const char *file, *folder;   /* latents; run folder or NULL               */
    int chunks;                  /* made before rank 1 is told to stop        */
    char message[600];           /* of rank 0                                 */
} on_ranks;

/* Threads of a team cannot call expect(). */
static void run_on_ranks(void *user, tt_ctx *c)
{
    static const volatile int stop = 1;
    on_ranks *t = user;
    const bool first = tt_team_rank(c) == 0;
    const tt_run_files files = {.latents = t->file, .analyze = t->folder};
    const tt_host *x0;
    int64_t n;
    tt_run *run;
    if (!tt_run_open(c, &run, &t->s, NULL) && !tt_run_begin(c, run, 0, &files))
        for (int i = 0; i < LATENTS; i++) {
            if (i == t->chunks && tt_team_rank(c) == 1) c->interrupt = &stop;
            if (tt_run_next(c, run, &x0, &n)) break;
        }
    if (first) snprintf(t->message, sizeof t->message, "%s", tt_message(c));
    tt_run_close(run);
}

static void make_whole(on_ranks *t)
{
    t->chunks = LATENTS;
    run_on_ranks(t, ctx);
    expect_ok(ctx->status, "a run of one process");
}

/* A policy that only a saved cache goes on with: stopped on two ranks, where
 * one hears of it, and taken up by three. */
static void check_ranks(void)
{
    char one[600], many[600];
    snprintf(one, sizeof one, "%s", at("one.safetensors"));
    snprintf(many, sizeof many, "%s", at("ranks.safetensors"));
    on_ranks t = {.s = settings_of(NULL, "deep-forcing"), .file = one};
    make_whole(&t);
    t.file = many;
    t.chunks = 1;
    expect_status(tt_team_threads(ctx, 2, run_on_ranks, &t), TT_EINTR,
                  "stopped on two ranks");
    expect(strstr(t.message, "--resume goes on"), "says: %s", t.message);
    expect(access(at("ranks.safetensors.state1"), F_OK) == 0, "a state");
    tt_settings_set(ctx, &t.s, "resume", NULL);
    t.chunks = LATENTS;
    expect_ok(tt_team_threads(ctx, 3, run_on_ranks, &t), "taken up by three");
    expect(same_files(many, one), "the latents of one process");
    unlink(one);
    unlink(many);
    tt_settings_free(&t.s);
}

/* What a run folder holds, but for run.json, which knows the time. */
static void check_folder(void)
{
    static const char *const all[] = {"trace.safetensors", "run.json",
        "latents.safetensors", "features.safetensors"};
    char runs[2][600];
    on_ranks t = {.s = settings_of(NULL, "tether")};
    for (int i = 0; i < 2; i++) {
        snprintf(runs[i], sizeof runs[i], "%s", at(i ? "ranks" : "one"));
        t.folder = runs[i];
        t.chunks = LATENTS;
        if (i == 0) make_whole(&t);
        else expect_ok(tt_team_threads(ctx, 3, run_on_ranks, &t), "recorded");
    }
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        char a[700], b[700];
        snprintf(a, sizeof a, "%s/%s", runs[0], all[k]);
        snprintf(b, sizeof b, "%s/%s", runs[1], all[k]);
        expect(!strcmp(all[k], "run.json") || same_files(a, b), "%s of three "
               "ranks and of one process", all[k]);
        unlink(a);
        unlink(b);
    }
    rmdir(runs[0]);
    rmdir(runs[1]);
    tt_settings_free(&t.s);
}

/* A run of 6 latents, complete or left after 3, is made longer: 9. */
static void check_growth(const tt_host *want, int chunks)
{
    static tt_host got[ALL];
    char why[200] = "";
    const char *file = at("grown.safetensors");
    tt_settings s = settings_of(file, "tether");
    tt_settings_set(ctx, &s, "latents", "6");
    tt_run *run = open_run(&s);
    go_on(run, got, 0, chunks);
    tt_run_close(run);

    const bool whole = chunks > 2;
    tt_settings_set(ctx, &s, "latents", "9");
    run = open_run(&s);
    expect(!tt_run_made(ctx, run, 0, file, why, sizeof why)
           && !strcmp(why, "another length: 6 latents there, 9 here"),
           "not the file of the longer one: %s", why);
    tt_run_close(run);
    tt_settings_set(ctx, &s, "resume", NULL);
    run = open_run(&s);
    expect(tt_run_made(ctx, run, 0, file, NULL, 0) == (whole ? 6 : 3),
           "but it goes on from it");
    expect(go_on(run, got, whole ? 6 : 3, 9) == LATENTS, "what was missing");
    expect_ok(ctx->status, "a longer run");
    expect_bits("as if it had been as long at once", got, want, sizeof got);
    tt_run_close(run);

    tt_settings_set(ctx, &s, "latents", "6");
    run = open_run(&s);
    expect(!tt_run_made(ctx, run, 0, file, NULL, 0), "no run is made shorter");
    tt_run_close(run);
    tt_file *f;
    expect_ok(tt_file_open(ctx, &f, file), "the file");
    const tt_entry *e = f ? tt_file_find(f, "latents") : NULL;
    if (expect(e && e->t.dim[1] == LATENTS, "holds all latents"))
        expect_values("of the longer run", &e->t, want, ALL * sizeof *want);
    tt_file_close(f);
    unlink(file);
    tt_settings_free(&s);
}

/* The identity follows whatever decides about the bits. */
/* The VAE's class is part of latents that it had to do with. */
static void check_vae_class(void)
{
    static const char *const cls[] = {"f32", "vdp"};
    tt_arena mem = {0};
    for (int i = 0; i < 4 && sizeof(tt_real) == 4 && !test_guarded(); i++) {
        tt_settings s = settings_of(NULL, "causvid");
        tt_settings_set(ctx, &s, i > 1 ? "rollouts" : "no-decode",
                        i > 1 ? "2" : "no");
        tt_settings_set(ctx, &s, "vae-class", cls[i % 2]);
        tt_run *run = open_run(&s);
        const char *line = tt_run_identity(ctx, run, 0, &mem);
        expect(line && !strstr(line, " vae-class vdp ") == (i < 3),
               "%s: %s", cls[i % 2], line ? line : "none");
        tt_run_close(run);
        tt_settings_free(&s);
    }
    tt_arena_free(&mem);
}

static void check_identity(void)
{
    static const struct { const char *name, *text; bool same; } change[] = {
        {"profile", NULL, true}, {"latents-out", "elsewhere.safetensors", true},
        {"resume", NULL, true}, {"latents", "12", true}, {"seed", "1", false},
        {"sample", "1", false},
        {"prompt", "a green triangle", false}, {"tau", "0.6", false},
        {"shift", "4", false}, {"steps", "1000,500", false},
        {"cache", "fifo", false}, {"context-noise", "10", false},
        {"no-decode", "no", true}};
    tt_arena mem = {0};
    tt_settings s = settings_of(NULL, "tether");
    tt_run *run = open_run(&s);
    const char *usual = tt_run_identity(ctx, run, 0, &mem);
    expect(usual && !strncmp(usual, "tether-run 1 ", 13), "a version");
    const tt_ops *ops = ctx->ops;
    ctx->ops = tt_ops_find("golden");
    const char *golden = tt_run_identity(ctx, run, 0, &mem);
    expect(test_guarded() || (usual && golden && !strcmp(usual, golden)),
           "of another backend");
    ctx->ops = ops;
    tt_run_close(run);
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        tt_settings t;
        tt_settings_copy(ctx, &t, &s);
        tt_settings_set(ctx, &t, change[i].name, change[i].text);
        run = open_run(&t);
        const char *other = tt_run_identity(ctx, run, 0, &mem);
        expect(usual && other && !strcmp(usual, other) == change[i].same,
               "%s: %s", change[i].name, other ? other : "none");
        tt_run_close(run);
        tt_settings_free(&t);
    }
    tt_settings_free(&s);
    tt_arena_free(&mem);
}

typedef struct heard { int said, worked; int64_t chunks, frames; } heard;

static void on_say(void *user, bool detail, const char *sentence)
{
    heard *h = user;
    h->said += detail && *sentence;
}

static void on_work(void *user, const tt_run_work *w)
{
    heard *h = user;
    h->worked += *w->what && w->done <= w->total;
}

static void on_chunk(void *user, const tt_run_chunk *c)
{
    heard *h = user;
    h->chunks += c->chunk == h->chunks && c->chunks == 3;
    h->frames += c->frames;
}

/* Several videos; what a run says and writes down. */
static void check_events(const tt_host *want)
{
    static tt_host got[ALL];
    heard h = {0};
    const tt_run_events e = {&h, on_say, on_work, on_chunk};
    tt_settings s = settings_of(NULL, "tether");
    tt_settings_set(ctx, &s, "num-samples", "2");
    tt_run *run;
    tt_run_video v;
    expect_ok(tt_run_open(ctx, &run, &s, &e), "two samples");
    expect(tt_run_videos(run) == 2, "two videos");
    expect_ok(tt_run_video_at(ctx, run, 1, &v), "the second");
    expect(v.sample == 1 && v.prompt == 0 && !strcmp(v.text, words),
           "is of the same prompt");
    expect_status(tt_run_video_at(ctx, run, 2, &v), TT_EINVAL, "a third");
    expect_ok(tt_run_begin(ctx, run, 1, NULL), "the second");
    go_on(run, got, 0, 9);
    expect(memcmp(got, want, sizeof got) != 0, "is another video");
    expect_ok(tt_run_begin(ctx, run, 0, NULL), "the first after it");
    h.chunks = h.frames = 0;
    go_on(run, got, 0, 9);
    expect_bits("the first after it", got, want, sizeof got);
    expect(h.said > 0 && h.worked > 3 && h.chunks == 3 && h.frames == LATENTS,
           "what was said: %d %d %lld", h.said, h.worked, (long long)h.chunks);
    expect_ok(tt_run_record(ctx, run, at("run.json"), NULL), "a record");
    const tt_json *j = NULL;
    tt_arena mem = {0};
    expect_ok(tt_json_file(ctx, &mem, &j, at("run.json"), 1 << 20), "JSON");
    expect(tt_json_int(tt_json_get(j, "video"), "latents", 0) == LATENTS,
           "of the latents");
    tt_arena_free(&mem);
    unlink(at("run.json"));
    tt_run_close(run);
    tt_settings_free(&s);
}

static bool copy_file(const char *from, const char *to)
{
    char some[1 << 14];
    FILE *f = fopen(from, "rb"), *g = fopen(to, "wb");
    bool ok = f && g;
    for (size_t n; ok && (n = fread(some, 1, sizeof some, f)) > 0;)
        ok = fwrite(some, 1, n, g) == n;
    if (f) fclose(f);
    return (!g || !fclose(g)) && ok;
}

/* What a record says of the input `path`; "none" when it has no digest. */
static void recorded_digest(char hex[65], tt_run *run, const char *path)
{
    const tt_json *j = NULL;
    tt_arena mem = {0};
    hex[0] = 0;
    expect_ok(tt_run_record(ctx, run, at("run.json"), NULL), "a record");
    expect_ok(tt_json_file(ctx, &mem, &j, at("run.json"), 1 << 20), "JSON");
    const tt_json *in = tt_json_get(j, "inputs"), *one;
    for (int i = 0; (one = tt_json_at(in, i)); i++)
        if (!strcmp(tt_json_str(one, "path", ""), path))
            snprintf(hex, 65, "%s", tt_json_str(one, "sha256", "none"));
    tt_arena_free(&mem);
    unlink(at("run.json"));
}

static void count_warning(void *user, const char *sentence)
{
    int *n = user;
    *n += strstr(sentence, "the record has no digest of it") != NULL;
}

/* Weights that were replaced, and then removed, while the run went on: their
 * record does not tell of files that the run has not read. */
static void check_replaced(void)
{
    static const char from[] = "ref_data/demo/"
                               "diffusion_pytorch_model.safetensors";
    char weights[600], other[600], hex[65], want[65];
    int warnings = 0;
    const tt_ctx before = *ctx;
    snprintf(weights, sizeof weights, "%s", at("w.safetensors"));
    snprintf(other, sizeof other, "%s", at("other"));
    expect(copy_file(from, weights) && copy_file(from, other), "copies");
    tt_settings s = settings_of(NULL, "tether");
    tt_settings_set(ctx, &s, "checkpoint", weights);
    tt_run *run = open_run(&s);
    expect_ok(tt_run_begin(ctx, run, 0, NULL), "begun");
    ctx->warn = count_warning;
    ctx->warn_user = &warnings;
    recorded_digest(want, run, weights);
    expect(strlen(want) == 64 && !warnings, "the digest of what was read");
    expect(!rename(other, weights), "replaced");
    recorded_digest(hex, run, weights);
    expect(!strcmp(hex, "none") && warnings == 1, "replaced: %s", hex);
    unlink(weights);
    recorded_digest(hex, run, weights);
    expect(!strcmp(hex, "none") && warnings == 2, "removed: %s", hex);
    ctx->warn = before.warn;
    ctx->warn_user = before.warn_user;
    tt_run_close(run);
    tt_settings_free(&s);
}

/* The program that has a run rounds upwards, and flushes, between two chunks:
 * the chunks are the same, and it goes on so. */
static void check_environment(const tt_host *want)
{
    static tt_host got[ALL];
    tt_settings s = settings_of(at("env.safetensors"), "tether");
    tt_run *run = open_run(&s);
    int64_t there = go_on(run, got, 0, 1);
    const tt_fpenv ours = tt_fpenv_get();
    fesetround(FE_UPWARD);
    tt_fpenv_set(tt_fpenv_get() | FLUSH);
    const tt_fpenv theirs = tt_fpenv_get();
    there = go_on(run, got, there, 9);
    const tt_fpenv after = tt_fpenv_get();
    tt_fpenv_set(ours);
    expect(there == LATENTS && after == theirs, "its own again");
    expect_bits("chunks of a program that rounds upwards", got, want,
                sizeof got);
    tt_run_close(run);
    unlink(at("env.safetensors"));
    tt_settings_free(&s);
}

/* ---- a LoRA -------------------------------------------------------------- */

/* A pair for every matrix of the transformer's queries, and one for the text
 * encoder. */
static void write_lora(const char *path)
{
    static float v[4 * 128];
    char name[96];
    tt_st_writer *w;
    for (int i = 0; i < 4 * 128; i++) v[i] = (float)(i * 37 % 101 - 50) / 512;
    expect_ok(tt_st_create(ctx, &w, path), path);
    for (int i = 0; i < 6; i++)
        for (int up = 0; up < 2; up++) {
            snprintf(name, sizeof name, "diffusion_model.blocks.%d.self_attn.q."
                     "lora_%c.weight", i, "AB"[up]);
            tt_st_add(w, name, TT_F32, 2, up ? (int64_t[]){128, 4}
                      : (int64_t[]){4, 128}, v);
        }
    expect_ok(tt_st_finish(w), path);
}

static void run_with(tt_host *x, const char *name, const char *text)
{
    tt_settings s = settings_of(NULL, "tether");
    if (name) tt_settings_set(ctx, &s, name, text);
    tt_run *run = open_run(&s);
    expect(go_on(run, x, 0, 9) == LATENTS, "%s %s", name, text);
    if (name && !strcmp(name, "lora")) {
        char hex[65];
        char path[1024];
        snprintf(path, sizeof path, "%.*s", (int)strcspn(text, ":"), text);
        recorded_digest(hex, run, path);
        expect(strlen(hex) == 64, "it is among the inputs: %s", hex);
    }
    tt_run_close(run);
    tt_settings_free(&s);
}

/* Merged by the run, and beforehand. */
static void check_lora(const tt_host *without)
{
    static tt_host one[ALL], two[ALL], weak[ALL];
    char lora[1100], merged[1024];
    write_lora(at("lora.safetensors"));
    snprintf(lora, sizeof lora, "%s:0.5", at("lora.safetensors"));
    snprintf(merged, sizeof merged, "%s", at("merged.safetensors"));
    const tt_convert_options o = {.kind = -1, .ema = -1, .lora = lora};
    expect_ok(tt_convert(ctx, merged, "ref_data/demo/"
                         "diffusion_pytorch_model.safetensors", &o), merged);
    run_with(one, "lora", lora);
    run_with(two, "dit", merged);
    expect_bits("merged beforehand", one, two, sizeof one);
    expect(memcmp(one, without, sizeof one) != 0, "it has an effect");
    snprintf(lora, sizeof lora, "%s:0", at("lora.safetensors"));
    run_with(weak, "lora", lora);
    expect_bits("of strength 0", weak, without, sizeof weak);
    unlink(at("lora.safetensors"));
    unlink(merged);
}

/* ---- extended prompts ---------------------------------------------------- */

static const char *put_text(const char *name, const char *text)
{
    const char *path = at(name);
    FILE *f = fopen(path, "w");
    expect(f && fputs(text, f) >= 0, "write %s", name);
    if (f) fclose(f);
    return path;
}

static tt_run *open_extended(const char *extended)
{
    tt_settings s = settings_of(NULL, "tether");
    tt_run *run = NULL;
    s.prompt = NULL;
    tt_settings_set(ctx, &s, "prompt-file",
                    put_text("short", "a circle\n\na square\n"));
    tt_settings_set(ctx, &s, "extended-prompt-file",
                    put_text("long", extended));
    tt_run_open(ctx, &run, &s, NULL);
    tt_settings_free(&s);
    return run;
}

/* The model reads the long text; the video is called by the short one. */
static void check_extended(const tt_host *want)
{
    static tt_host got[ALL];
    char text[300];
    tt_run_video v;
    snprintf(text, sizeof text, "%s\r\n\na blue square", words);
    tt_run *run = open_extended(text);
    expect_ok(ctx->status, "extended prompts");
    expect(run && tt_run_videos(run) == 2, "two prompts");
    expect_ok(tt_run_video_at(ctx, run, 0, &v), "the first");
    expect(!strcmp(v.text, "a circle") && !strcmp(v.extended, words),
           "%s: %s", v.text, v.extended);
    expect_ok(tt_run_begin(ctx, run, 0, NULL), "begun");
    go_on(run, got, 0, 9);
    expect_bits("the chunks of the long prompt", got, want, sizeof got);
    tt_run_close(run);
    run = open_extended("one alone\n");
    expect(!run && strstr(tt_message(ctx), "has 2 prompts"), "fewer: %s",
           tt_message(ctx));
    tt_clear(ctx);
    run = open_extended("one\ntwo\n");
    expect(!run && strstr(tt_message(ctx), "on line 3 where"), "other lines: "
           "%s", tt_message(ctx));
    tt_clear(ctx);
    run = open_extended("one\n\ntw\xff\n");
    expect(!run && strstr(tt_message(ctx), "long, line 3"), "no UTF-8: %s",
           tt_message(ctx));
    tt_clear(ctx);
    unlink(at("short"));
    unlink(at("long"));
}

int main(void)
{
    static tt_host want[ALL], got[ALL];
    ctx = test_begin("run/run");
    if (!folder_make()) return test_end();
    by_hand(want, "tether");
    tt_settings s = settings_of(at("all.safetensors"), "tether");
    tt_run *run = open_run(&s);
    expect(go_on(run, got, 0, 9) == LATENTS, "all frames");
    expect_ok(ctx->status, "to the end");
    expect_bits("the chunks of a rollout by hand", got, want, sizeof got);
    expect(access(at("all.safetensors"), F_OK) == 0, "the file is complete");
    tt_run_close(run);
    unlink(at("all.safetensors"));
    tt_settings_free(&s);

    check_resume(want, "tether");
    check_growth(want, 1);
    check_growth(want, 9);
    by_hand(want, "deep-forcing");
    check_resume(want, "deep-forcing");
    check_ranks();
    check_folder();
    check_identity();
    check_vae_class();
    by_hand(want, "tether");
    check_events(want);
    check_environment(want);
    check_lora(want);
    check_extended(want);
    check_replaced();
    folder_remove_empty();
    return test_end();
}
