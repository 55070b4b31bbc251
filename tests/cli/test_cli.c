/* test_cli.c: the program as a user meets it: options, files, exit status.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Runs the `tether` of this build. Known answers come from ref_data/dit
 * (rollouts through `generate`), noise_tn1 and vae_full_a; the rest are
 * properties: resume, threads and splits change no bit, refusals have the
 * promised exit status and leave nothing. */
#include <fcntl.h>
#include <signal.h>

#include "tests/cli/program.h"
#include "ops/backend.h"

#define MODEL_A "-m %s --embeds %s/inputs.safetensors "

static tt_file *open_file(const char *path)
{
    tt_file *f = NULL;
    expect_ok(tt_file_open(ctx, &f, path), path);
    return f;
}

/* ---- usage --------------------------------------------------------------- */

/* Summaries of `tether --help` begin in one column. */
static void test_columns(void)
{
    char line[200];
    FILE *f = NULL;
    size_t column = 0;
    if (expect(run("--help > %s", at("help")) == 0, "--help"))
        f = fopen(at("help"), "r");
    while (f && fgets(line, sizeof line, f)
           && strncmp(line, "First steps", 11)) {
        if (strncmp(line, "  ", 2)) continue;
        size_t name = 2 + strcspn(line + 2, " ");
        size_t here = name + strspn(line + name, " ");
        expect(!column || here == column, "column of: %s", line);
        column = here;
    }
    expect(column > 0, "--help has summaries");
    if (f) fclose(f);
}

static void test_usage(void)
{
    expect(run("--version > %s", at("version")) == 0, "--version");
    expect(run("--help > /dev/null") == 0, "--help");
    const char *commands[] = {"generate", "decode", "embed", "tokenize",
                              "noise", "inspect", "demo"};
    for (int i = 0; i < 7; i++)
        expect(run("%s --help > /dev/null", commands[i]) == 0, "%s --help: %s",
               commands[i], said);
    refuses(2, "no command", " ");
    refuses(2, "generate", "generat");
    refuses(2, "give one of", "encode");
    refuses(2, "--prompt", "generate --promt x");
    refuses(2, "--contact-sheet", "generate --contact_shet x");
    refuses(2, "whole number", "generate --latents many");
    refuses(2, "needs", "generate -p");
    refuses(2, "takes no value", "generate --resume=yes");
    refuses(2, "unexpected argument", "generate a.mp4");
    refuses(2, "nothing to write", "generate -p x");
    refuses(2, "4096, but 0 was", "noise -o x -t 0");
    refuses(2, "out of range", "noise -o x -W 99999999999999999999");
    refuses(2, "out of range", "noise -o x -s 99999999999999999999");
    refuses(2, "--foo is not one of", "validate --foo");
    refuses(2, "did you mean `noise`", "help nois");
    expect(run("help noise > %s", at("help")) == 0
           && strstr(text_of(at("help")), "usage: tether noise"),
           "`help noise` is that of noise");
    expect(run("version > %s", at("again")) == 0
           && same(at("again"), at("version"))
           && run("-v > %s", at("again")) == 0
           && same(at("again"), at("version")), "version, -v");
    test_columns();
    refuses(2, "golden", "noise -o x --backend nonsense");
    refuses(2, "f32, amx, vdp, sm80, sm90", "noise -o x --class half");
    if (tt_ops_use(ctx, "blas") == TT_OK) /* OpenBLAS is there */
        refuses(2, sizeof(tt_real) == 8 ? "double" : "exact or golden",
                "noise -o x --backend blas --class bf16");
    else
        tt_clear(ctx);
    ctx->ops = tt_ops_default();
    refuses(2, "nearest is 64", "generate -p x -o x.mp4 -W 65");
    refuses(2, "memrope", "generate -p x -o x.mp4 --cache memrop");
    refuses(2, "tether", "generate -p x -o x.mp4 --cache teher");
    refuses(2, "their own", "generate -p x -o x.mp4 --scene a");
    refuses(2, "only one", "generate -p x -o x.mp4 --latents 3 --frames 9");
    refuses(1, "standard output", "--help > /dev/full");
}

/* TT_CPU is read when the program starts. */
static void test_level(void)
{
    expect(run_after("TT_CPU=foo ", "inspect x") == 2
           && strstr(said, "TT_CPU=foo is not") && strstr(said, "generic"),
           "a level that is none: %s", said);
    expect(run_after("TT_CPU=generic ", "noise -o %s --latents 3 -W 16 -H 16",
                     at("level")) == 0, "TT_CPU=generic: %s", said);
    expect(run_after("TT_CPU= ", "noise -o %s --latents 3 -W 16 -H 16 "
                     "--overwrite", at("level")) == 0, "an empty TT_CPU: %s", said);
#if defined(__x86_64__)
    if (sizeof(tt_real) == 4)
        expect(run_after("TT_CPU=neon ", "inspect x") == 2
               && strstr(said, "lacks"), "another CPU's level: %s", said);
#endif
}

/* ---- noise --------------------------------------------------------------- */

static void test_noise(void)
{
    test_case c;
    if (!case_open(&c, "noise_tn1")) return;
    expect(run("noise -o %s -s 42 --latents 6 -W 48 -H 32", at("noise")) == 0,
           "noise: %s", said);
    tt_file *f = open_file(at("noise"));
    const char *names[] = {"noise", "renoise"};
    for (int i = 0; f && i < 2; i++) {
        const tt_entry *got = tt_file_find(f, names[i]);
        const tt_entry *want = tt_file_find(c.expected, names[i]);
        if (!expect(got && want && got->t.rank == want->t.rank, "%s is there",
                    names[i])) continue;
        tt_real *x = tt_read_real(ctx, &c.arena, &got->t);
        /* one ulp of values up to 6.8, as the case allows */
        expect_close(names[i], x, tt_tensor_count(&got->t), want, 4.8e-7, 0);
    }
    if (f) tt_file_close(f);
    case_close(&c);

    expect(run("noise --output=%s --seed 0x2A --latents 3 -W48 -H32 "
               "--steps 1000,750,500,250", at("short")) == 0, "noise: %s",
           said);
    tt_file *a = open_file(at("noise")), *b = open_file(at("short"));
    if (a && b) {
        const tt_entry *x = tt_file_find(a, "noise");
        const tt_entry *y = tt_file_find(b, "noise");
        expect_bits("noise does not depend on the length", x->t.data,
                    y->t.data, 3 * 16 * 4 * 6 * sizeof(float));
    }
    if (a) tt_file_close(a);
    if (b) tt_file_close(b);
}

/* ---- rollouts ------------------------------------------------------------ */

/* One integer tensor of the trace against the case. */
static void check_trace(test_case *c, tt_file *trace, const char *name)
{
    const tt_entry *want = tt_file_find(c->expected, name);
    const tt_entry *got = tt_file_find(trace, name);
    if (!want) return;
    if (!expect(got && got->t.dtype == want->t.dtype
                && tt_tensor_count(&got->t) == tt_tensor_count(&want->t),
                "%s: trace has %s", c->dir, name)) return;
    size_t n = (size_t)tt_tensor_count(&want->t)
             * tt_dtype_size(want->t.dtype);
    expect_bits(name, got->t.data, want->t.data, n);
}

static void test_rollout(const char *name, const char *options)
{
    static const char *const integers[] = {
        "ends", "memory_index", "counters", "cache_filled", "grab_layer",
        "grab_chunk", "grab_sub", "grab_candidates", "grab_keep",
        "grab_memory_after"};
    test_case c;
    if (!case_open(&c, "dit/%s", name)) return;
    const char *model = tt_json_str(c.json, "model", "");
    int got = run("generate -q -m %s/%s --embeds %s/inputs.safetensors "
                  "--noise %s/inputs.safetensors --no-decode --overwrite "
                  "--latents-out %s --trace-cache %s %s", c.dir, model, c.dir, c.dir,
                  at("latents"), at("trace"), options);
    expect(got == 0, "%s: %s", name, said);
    tt_file *f = open_file(at("latents")), *t = open_file(at("trace"));
    if (f && t) {
        const tt_entry *e = tt_file_find(f, "latents");
        const tt_entry *want = case_expected(&c, "latents");
        if (expect(e != NULL, "latents")) {
            bool f64 = sizeof(tt_real) == 8;
            tt_real *x = tt_read_real(ctx, &c.arena, &e->t);
            expect_close(name, x, tt_tensor_count(&e->t), want,
                         f64 ? 1e-10 : 6e-6, f64 ? 1e-11 : 1e-6);
        }
        for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
            check_trace(&c, t, integers[i]);
    }
    if (f) tt_file_close(f);
    if (t) tt_file_close(t);
    case_close(&c);
}

static void test_rollouts(void)
{
    char given[700];
    test_rollout("roll_tether_K9", "--budget 9 --sink 2 --recent 4");
    test_rollout("roll_tether_paper", "--budget 9 --sink 2 --preset paper");
    test_rollout("roll_tether_K21", "--tau 0.6");
    test_rollout("roll_fifo_K7_S1", "--cache fifo --budget 7 --sink 1");
    test_rollout("roll_global", "--cache full");
    test_rollout("roll_nowarp", "--cache fifo --budget 9 --sink 1 --no-warp "
                 "--steps 1000,667,333 --shift 3");
    snprintf(given, sizeof given, "--cache fifo --budget 9 --sink 2 "
             "--initial-latents %s", ref_path("dit/roll_extend/inputs."
                                              "safetensors"));
    test_rollout("roll_extend", given);
}

/* A run of some seconds on tiny_a, with room for options after. */
static const char *long_run(void)
{
    static char args[1600];
    snprintf(args, sizeof args, "generate -m %s --embeds %s -W 160 -H 160 "
             "--latents 36 --budget 9 --sink 2 -s 5 --no-decode",
             ref_path("dit/models/tiny_a"),
             ref_path("dit/roll_tether_K9/inputs.safetensors"));
    return args;
}

/* Run it in the background and interrupt it once `chunks` lines are in the
 * log; its exit status. */
static int interrupted_run(int chunks)
{
    char command[2400];
    snprintf(command, sizeof command, "exec %s %s -q --latents-out %s "
             "--log-json %s 2> %s/stderr", tether, long_run(), at("stopped"),
             at("log"), folder);
    unlink(at("log"));
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", for_shell(command), (char *)NULL);
        _exit(127);
    }
    for (int tries = 0; tries < 6000; tries++) {
        int lines = 0, ch;
        FILE *f = fopen(at("log"), "r");
        while (f && (ch = getc(f)) != EOF) lines += ch == '\n';
        if (f) fclose(f);
        if (lines >= chunks + 2) break; /* begin and start come first */
        usleep(5000);
    }
    kill(pid, SIGINT);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void test_resume(void)
{
    expect(run("%s -q --latents-out %s --trace-cache %s", long_run(),
               at("whole"), at("whole.trace")) == 0, "whole run: %s", said);
    int status = interrupted_run(4);
    expect(status == 130, "exit status %d after SIGINT, expected 130", status);
    expect(!exists(at("stopped")), "no final name after SIGINT");
    expect(exists(at("stopped.unfinished")), "the unfinished work is there");
    refuses(2, "another run", "%s -s 6 --resume --latents-out %s", long_run(),
            at("stopped"));
    if (tt_ops_class(tt_ops_default(), TT_CLASS_BF16))
        refuses(2, "another run", "%s --class bf16 --resume --latents-out %s",
                long_run(), at("stopped"));
    expect(run("%s --resume --latents-out %s --trace-cache %s", long_run(),
               at("stopped"), at("stopped.trace")) == 0, "resume: %s", said);
    expect(strstr(said, "resuming after") != NULL, "it did resume: %s", said);
    expect(same(at("whole"), at("stopped")), "resumed latents, same bytes");
    expect(same(at("whole.trace"), at("stopped.trace")),
           "resumed trace, same bytes");
    expect(!exists(at("stopped.unfinished")), "nothing unfinished remains");

    expect(run("%s -q -t 1 --latents-out %s", long_run(), at("one")) == 0
           && run("%s -q -t 3 --latents-out %s", long_run(), at("three")) == 0,
           "threads: %s", said);
    expect(same(at("one"), at("three")), "1 and 3 threads, same bytes");
}

static void test_dump(void)
{
    const char *filter = "chunk.1/step.0/block.1/*";
    expect(run("generate -q " MODEL_A "-W 32 -H 32 --latents 6 --no-decode "
               "--latents-out %s --dump %s --dump-filter '%s'",
               ref_path("dit/models/tiny_a"), ref_path("dit/roll_tether_K9"),
               at("l"), at("dump"), filter) == 0, "dump: %s", said);
    tt_file *f = open_file(at("dump"));
    if (!f) return;
    bool all = true;
    for (int64_t i = 0; i < tt_file_count(f); i++)
        all = all && !strncmp(tt_file_entry(f, i)->name, filter,
                              strlen(filter) - 1);
    expect(all && tt_file_count(f) > 0, "%d tensors, all match the filter",
           (int)tt_file_count(f));
    tt_file_close(f);
}

/* Pictures of the latents of every chunk; several samples, one name each. */
static void test_images(void)
{
    expect(run("generate -q " MODEL_A "-W 32 -H 32 --latents 6 --no-decode "
               "--num-samples 2 --latents-out %s --preview %s --record %s",
               ref_path("dit/models/tiny_a"), ref_path("dit/roll_tether_K9"),
               at("s.st"), at("p%d.png"), at("run.json")) == 0, "samples: %s",
           said);
    expect(exists(at("s-0.st")) && exists(at("s-1.st"))
           && !same(at("s-0.st"), at("s-1.st")), "two different samples");
    expect(exists(at("p0-0.png")) && exists(at("p1-1.png")), "previews");

    tt_arena a = {0};
    const tt_json *j = NULL;
    expect_ok(tt_json_file(ctx, &a, &j, at("run-1.json"), 1 << 20),
              "the record is valid JSON");
    expect(tt_json_int(tt_json_get(j, "video"), "sample", -1) == 1
           && tt_json_num(tt_json_get(j, "options"), "tau", -1) == 0.35
           && tt_json_count(tt_json_get(j, "inputs")) == 2,
           "the record holds sample, effective options and inputs");
    tt_arena_free(&a);
}

/* ---- decode -------------------------------------------------------------- */

/* latents [1, n, C, h, w] from z [1, C, n, h, w] of a reference run. */
static bool write_latents(test_case *c, const char *run_name,
                          const char *path)
{
    char name[64];
    snprintf(name, sizeof name, "%s.z", run_name);
    const tt_entry *e = tt_file_find(c->inputs, name);
    if (!expect(e != NULL, "%s in inputs", name)) return false;
    const int64_t C = e->t.dim[1], n = e->t.dim[2];
    const int64_t pixels = e->t.dim[3] * e->t.dim[4];
    const int64_t dim[5] = {1, n, C, e->t.dim[3], e->t.dim[4]};
    tt_st_writer *w;
    float *z = tt_alloc(ctx, &c->arena, n * C * pixels, sizeof *z, "latents");
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < C; k++)
            tt_widen_at_f32(z + (i * C + k) * pixels, &e->t,
                            (k * n + i) * pixels, pixels);
    if (!expect_ok(tt_st_create(ctx, &w, path), path)) return false;
    tt_st_add(w, "latents", TT_F32, 5, dim, z);
    return expect_ok(tt_st_finish(w), path);
}

static void test_decode(void)
{
    test_case c;
    if (!case_open(&c, "vae_full_a")) return;
    if (!write_latents(&c, "dec_t7", at("z"))) return;
    const char *vae = ref_path("vae_full_a/weights.safetensors");
    expect(run("decode -q --vae %s --latents %s -o %s --raw-out %s", vae,
               at("z"), at("a.y4m"), at("raw")) == 0, "decode: %s", said);
    tt_file *f = open_file(at("raw"));
    const tt_entry *e = f ? tt_file_find(f, "video_raw") : NULL;
    if (expect(e != NULL, "video_raw")) {
        /* 8 * official max_abs + 1e-6 * max_ref, the rule of README_vae.md;
         * the file is float32 in every build */
        const tt_entry *want = case_expected(&c, "dec_t7.video_raw");
        tt_real *x = tt_read_real(ctx, &c.arena, &e->t);
        const tt_json *o = tt_json_get(tt_json_get(c.json,
                           "official_f32_vs_f64"), "dec_t7.video_raw");
        double tol = 8 * tt_json_num(o, "max_abs", 0)
                   + 1e-6 * tt_json_num(o, "max_ref", 0);
        expect(tol > 0, "the case states its error");
        expect_close("dec_t7", x, tt_tensor_count(&e->t), want, tol, 0);
    }
    if (f) tt_file_close(f);

    expect(run("decode -q --vae %s --latents %s -o %s --raw-out %s "
               "--split 1,2,4", vae, at("z"), at("b.y4m"), at("raw2")) == 0,
           "decode --split: %s", said);
    expect(same(at("raw"), at("raw2")), "a split changes no bit");
    expect(run("decode -q --vae %s --latents %s -o - > %s", vae, at("z"),
               at("c.y4m")) == 0, "decode to stdout: %s", said);
    expect(same(at("a.y4m"), at("b.y4m")) && same(at("a.y4m"), at("c.y4m")),
           "the same video in a file, split, and on stdout");
    expect(run("decode -q --vae %s --latents %s -o %s --contact-sheet %s", vae,
               at("z"), at("f/%03d.png"), at("sheet.png")) == 0
           && exists(at("f/024.png")) && !exists(at("f/025.png"))
           && exists(at("sheet.png")), "25 PNGs and a sheet: %s", said);
    refuses(1, "standard output", "decode -q --vae %s --latents %s -o - "
            "> /dev/full", vae, at("z"));
    refuses(1, "no tensor `latents`", "decode --vae %s --latents %s -o %s",
            vae, at("raw"), at("no.y4m"));
    expect(!exists(at("no.y4m")), "nothing under the final name");
    case_close(&c);
}

/* ---- bad input of generate ----------------------------------------------- */

static void test_refusals(void)
{
    char m[1200];
    snprintf(m, sizeof m, MODEL_A "--no-decode --latents-out %s -W 32 -H 32",
             ref_path("dit/models/tiny_a"), ref_path("dit/roll_tether_K9"),
             at("never"));
    refuses(2, "18 and 21", "generate %s --latents 20", m);
    refuses(2, "69 (18 latents) and 81 (21 latents)",
            "generate %s --frames 80", m);
    refuses(2, "S + R", "generate %s --budget 5", m);
    refuses(2, "tau", "generate %s --tau 1.5", m);
    refuses(2, "0", "generate %s --steps 1000,0", m);
    refuses(1, "nothere", "generate %s --dit nothere", m);
    refuses(1, "No such file", "generate %s --noise nothere", m);
    refuses(1, "pixels", "generate %s --noise %s -W 48", m,
            ref_path("dit/roll_tether_K9/inputs.safetensors"));
    refuses(1, "no tensor", "generate %s --initial-latents %s", m,
            ref_path("dit/roll_tether_K9/inputs.safetensors"));
    refuses(1, "no/such/place", "generate %s --trace-cache no/such/place", m);
    refuses(1, "regular file", "generate %s --latents-out /dev/null", m);
    refuses(1, "no diffusion transformer", "generate -m %s -p x -o %s", folder,
            at("x.y4m"));
    refuses(1, "VAE", "generate " MODEL_A "-o %s --latents 3 -W 32 -H 32",
            ref_path("dit/models/tiny_a"), ref_path("dit/roll_tether_K9"),
            at("x.y4m"));
    expect(!exists(at("never")) && !exists(at("never.unfinished"))
           && !exists(at("x.y4m")), "nothing was left");
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("cli", argv)) return test_end();
    start_in = ".";              /* reference data have relative paths */

    test_usage();
    test_level();
    test_noise();
    test_rollouts();
    test_resume();
    test_dump();
    test_images();
    test_decode();
    test_refusals();
    return program_end();
}
