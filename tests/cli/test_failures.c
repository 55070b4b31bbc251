/* test_failures.c: what the program does when things go wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every case here was once answered wrongly: a broken file under a final
 * name, a wrong exit status, work that was lost, or silence. */
#include <math.h>
#include <signal.h>

#include "tests/cli/program.h"

static char vae[1100];         /* a small VAE                                 */

static float small(int64_t i)
{
    return (float)(i % 17) / 17 - 0.5f;
}

static float one_nan(int64_t i)
{
    return i == 700 ? NAN : small(i);
}

/* ---- OpenBLAS ------------------------------------------------------------ */

static bool said_once(const char *word)
{
    const char *first = strstr(said, word);
    return first && !strstr(first + 1, word);
}

/* Broken libraries stand before the real one on the search path: the program
 * must start all the same, and miss OpenBLAS only when told to use it. */
static void test_no_openblas(void)
{
#ifdef __linux__
    static const char run_here[] = "LD_LIBRARY_PATH=$PWD/nolib ";
    mkdir(at("nolib"), 0777);
    put_file(at("nolib/libopenblas.so.0"), "", 0755);
    put_file(at("nolib/libopenblas.so"), "", 0755);
    int got = run_after(run_here, "noise -q -W 8 -H 8 --latents 3 -o n2");
    expect(got == 0 && !*said, "without OpenBLAS: %d, %s", got, said);
    got = run_after(run_here, "noise -W 8 -H 8 -o nn --backend blas");
    expect(got == 1 && strstr(said, "install") && !exists(at("nn")),
           "--backend blas without OpenBLAS: %d, %s", got, said);
    got = run_after(run_here, "validate --backend blas > out");
    expect(got == 3 && strstr(said, "install") && !*text_of(at("out")),
           "validate without OpenBLAS: %d, %s%s", got, said,
           text_of(at("out")));
    if (sizeof(tt_real) == 8) return;    /* bench is of the float build */
    got = run_after(run_here, "bench error --quick --json j > out");
    expect(got == 0 && said_once("install") && !strstr(text_of(at("j")),
           "blas") && strstr(text_of(at("out")), "golden") &&
           !strstr(text_of(at("out")), "blas"),
           "bench error without OpenBLAS: %d, %s", got, said);
    got = run_after(run_here, "bench ops --quick --rounds 1 -t 1 --only "
                    "linear > out");
    expect(got == 0 && said_once("install") &&
           strstr(text_of(at("out")), "-      -        -\n"),
           "bench ops without OpenBLAS: %d, %s%s", got, said,
           text_of(at("out")));
#endif
}

/* ---- the ffmpeg program -------------------------------------------------- */

/* Stand-ins for ffmpeg in <folder>/<name>/, to be found first on PATH. */
static void put_ffmpeg(const char *name, const char *script)
{
    char path[512];
    mkdir(at(name), 0777);
    snprintf(path, sizeof path, "%s/%s/ffmpeg", folder, name);
    put_file(path, script, 0755);
}

static void test_ffmpeg(void)
{
    const int64_t dim[5] = {1, 2, 16, 4, 6};
    put_tensor(at("z"), "latents", 5, dim, small);

    /* As ffmpeg 5.1 on a full disk: says so, and exits with 0. */
    put_ffmpeg("full", "#!/bin/sh\ncat > /dev/null\n"
               "for last; do :; done\necho half > \"${last#file:}\"\n"
               "echo 'Error writing trailer of x: No space left on device'"
               " >&2\nexit 0\n");
    int got = run_after("PATH=$PWD/full:$PATH ", "decode -q --vae %s "
                        "--latents z -o full.mp4", vae);
    expect(got == 1 && strstr(said, "No space left"), "a full disk after an "
           "exit status of 0: %d, %s", got, said);
    expect(!exists(at("full.mp4")), "no broken file under the final name");

    /* Another run makes a video of that name while ours is decoded. */
    put_ffmpeg("race", "#!/bin/sh\ncat > /dev/null\necho theirs > race.mp4\n"
               "for last; do :; done\necho ours > \"${last#file:}\"\n");
    for (int i = 0; i < 2; i++) {
        unlink(at("race.mp4"));
        got = run_after("PATH=$PWD/race:$PATH ", "decode -q --vae %s "
                        "--latents z -o race.mp4 %s", vae,
                        i ? "--overwrite" : "");
        expect(i ? got == 0 : got == 1 && strstr(said, "made meanwhile"),
               "a file that appears meanwhile: %d, %s", got, said);
        expect(!strcmp(text_of(at("race.mp4")), i ? "ours\n" : "theirs\n"),
               "what stands there: %s", text_of(at("race.mp4")));
    }

    /* Never reads: ^C must still end the program. */
    const int64_t wide[5] = {1, 3, 16, 32, 32}; /* more than a pipe holds */
    put_tensor(at("wide"), "latents", 5, wide, small);
    put_ffmpeg("stuck", "#!/bin/sh\n: > started\nexec sleep 100\n");
    char command[3000];
    snprintf(command, sizeof command, "cd %s && PATH=$PWD/stuck:$PATH exec %s "
             "decode -q --vae %s --latents wide -o stuck.mp4 2> stderr",
             folder, tether, vae);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", for_shell(command), (char *)NULL);
        _exit(127);
    }
    int status = 0, tries = 0;
    while (!exists(at("started")) && ++tries < 600) usleep(100000);
    sleep(1);                    /* until the pipe is full */
    tries = 0;
    kill(pid, SIGINT);
    while (waitpid(pid, &status, WNOHANG) == 0 && ++tries < 600) usleep(50000);
    if (tries == 600) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 130, "one ^C ends a run "
           "whose ffmpeg is stuck (wait status %x): %s", (unsigned)status,
           text_of(at("stderr")));
    expect(!exists(at("stuck.mp4")), "nothing under the final name");
}

/* ---- changed weights ----------------------------------------------------- */

/* Every tensor of safetensors file `from` into `to`; of `name` the first
 * element becomes NaN, or every sign is turned. */
static void copy_weights(const char *to, const char *from, const char *name,
                         bool nan)
{
    tt_file *f = NULL;
    tt_st_writer *w = NULL;
    tt_arena a = {0};
    bool found = false;
    if (!expect_ok(tt_file_open(ctx, &f, from), from)
        || !expect_ok(tt_st_create(ctx, &w, to), to)) return;
    for (int64_t i = 0; i < tt_file_count(f); i++) {
        const tt_entry *e = tt_file_entry(f, i);
        const int64_t n = tt_tensor_count(&e->t);
        const size_t size = tt_dtype_size(e->t.dtype);
        uint8_t *x = tt_alloc(ctx, &a, n, size, "copy");
        if (!x) break;
        tt_gather(x, &e->t);
        if (!strcmp(e->name, name)) {
            found = true;
            if (nan) memset(x, 0xff, size);
            for (int64_t k = 1; !nan && k <= n; k++)
                x[k * (int64_t)size - 1] ^= 0x80;
        }
        tt_st_add(w, e->name, e->t.dtype, e->t.rank, e->t.dim, x);
    }
    expect(found, "%s holds %s", from, name);
    expect_ok(tt_st_finish(w), to);
    tt_file_close(f);
    tt_arena_free(&a);
}

/* ---- values that are not finite ------------------------------------------ */

static void test_not_finite(void)
{
    const int64_t latents[5] = {1, 2, 16, 4, 6}, video[5] = {1, 3, 5, 16, 16};
    put_tensor(at("nan.st"), "latents", 5, latents, one_nan);
    put_tensor(at("nanv.st"), "video", 5, video, one_nan);
    refuses(1, "nan.st: latent frame 1", "decode --vae %s --latents nan.st "
            "-o nan.y4m", vae);
    refuses(1, "nanv.st: frame 2", "encode --vae %s --raw-in nanv.st "
            "-o nan.z", vae);
    copy_weights(at("nan.vae"), vae, "decoder.conv1.weight", true);
    refuses(1, "nan.vae", "decode --vae nan.vae --latents z -o nan.y4m");
    expect(!exists(at("nan.y4m")) && !exists(at("nan.z")), "nothing written");
}

/* ---- logs ---------------------------------------------------------------- */

static void test_logs(void)
{
    char model[1100], embeds[1100];
    refuses(0, "cannot write /dev/full", "noise -q -o n --latents 3 -W 32 "
            "-H 32 --log-json /dev/full");
    expect(exists(at("n")), "a log that cannot be written stops no work");
    const char *logged[] = {
        "noise -o n0 --latents 3 -W 32 -H 32",
        "inspect n > /dev/null", "inspect nothere",
        "tokenize --clean-only -p x > /dev/null"};
    for (int i = 0; i < 4; i++) {
        run("%s --log-json log%d", logged[i], i);
        char name[16];
        snprintf(name, sizeof name, "log%d", i);
        const char *log = text_of(at(name));
        expect(strstr(log, "\"event\": \"begin\"")
               && strstr(log, "\"event\": \"end\"")
               && strstr(log, i == 2 ? "\"ok\": false" : "\"ok\": true"),
               "%s: logs its begin and end: %s", logged[i], log);
    }
    expect(run("noise -v -o n1 --latents 3 -W 32 -H 32") == 0
           && strstr(said, "wrote n1"), "noise -v says something: %s", said);
    reference(model, "dit/models/tiny_a");
    reference(embeds, "dit/roll_tether_K9/inputs.safetensors");
    expect(run("generate -q -m %s --embeds %s --latents 3 -W 32 -H 32 "
               "--no-decode --latents-out l --log-json /dev/full", model,
               embeds) == 0 && strstr(said, "cannot write /dev/full"),
           "generate -q reports a full log: %s", said);
}

/* ---- small rules --------------------------------------------------------- */

static void test_rules(void)
{
    refuses(1, "standard input", "tokenize --clean-only < /");
    refuses(2, "no transformer", "generate --sample 4294967295 -p x -o x.y4m");
    refuses(2, "0 to 4294967294", "generate --sample 4294967295 -p x -o x.y4m "
            "--num-samples 2");
}

/* ---- a small model with everything --------------------------------------- */

/* <folder>/demo: transformer (text_len 32), VAE, text encoder, tokenizer. */
static bool make_model(void)
{
    char command[3000], *end = strrchr(tether, '/');
    snprintf(command, sizeof command, "%.*s/tools/make_checkpoint --preset "
             "demo %s > /dev/null 2>&1", (int)(end - tether), tether,
             at("demo"));
    if (!expect(system(for_shell(command)) == 0, "%s", command)) return false;
    snprintf(command, sizeof command, "%.*s/tools/make_checkpoint --config "
             "%s > /dev/null 2>&1", (int)(end - tether), tether,
             at("new/folder/config.json"));
    return expect(system(for_shell(command)) == 0
                  && exists(at("new/folder/config.json")), "a config in a "
                  "folder that was not there: %s", command);
}

static void test_names(void)
{
    const char *demo = "generate -m demo -p x -W 32 -H 32 --latents 3 -q";
    expect(run("%s -o frames/%%05d.png --preview", demo) == 0
           && exists(at("frames/00008.png"))
           && exists(at("frames.latents.safetensors"))
           && exists(at("frames.preview.png")), "pictures into a fresh "
           "folder: %s", said);
    expect(run("%s -o ./%%05d.png", demo) == 0
           && exists(at("video.latents.safetensors")), "pictures here: %s",
           said);
    expect(run("%s -s 9 -o - > out.y4m", demo) == 0
           && exists(at("tether-9.latents.safetensors")), "latents of -o - "
           "are on disk: %s", said);

    refuses(2, "only one video", "%s -o - --num-samples 2", demo);
    put_file(at("two.txt"), "a\nb\n", 0644);
    refuses(2, "2 prompts", "generate -m demo --prompt-file two.txt -W 32 "
            "-H 32 --latents 3 -o - > out.y4m");
    refuses(2, "--record", "%s -o same.y4m --record ./same.y4m", demo);
    refuses(2, "--latents-out", "%s -o a.y4m --latents-out b --dump b", demo);
    refuses(2, "--raw-out", "decode --vae %s --latents "
            "video.latents.safetensors -o x.y4m --raw-out x.y4m", vae);
    expect(!exists(at("same.y4m")), "nothing written");
}

static void test_texts(void)
{
    put_file(at("bad.txt"), "one\n\nthr\xff""ee\n", 0644);
    refuses(1, "bad.txt, line 3", "generate -m demo --prompt-file bad.txt "
            "-o x.y4m -W 32 -H 32 --latents 3");
    refuses(2, "UTF-8", "generate -m demo -p \"$(printf 'a\\377')\" -o x.y4m "
            "-W 32 -H 32 --latents 3");

    const char *rest = "-W 32 -H 32 --latents 3 -q --no-decode --latents-out";
    expect(run("embed -q -m demo -p fox -o fox") == 0, "embed: %s", said);
    expect(run("embed -q -m demo -p fox -o fox512 --length 512") == 0,
           "embed: %s", said);
    expect(run("generate -m demo --embeds fox %s l1", rest) == 0
           && run("generate -m demo --embeds fox512 %s l2", rest) == 0
           && run("generate -m demo -p fox %s l3", rest) == 0
           && (sizeof(tt_real) == 8 || same(at("l3"), at("l1"))),
           "a prompt and its embedding give the same video: %s", said);
    tt_file *f = NULL;
    if (expect_ok(tt_file_open(ctx, &f, at("fox")), "fox")) {
        const tt_entry *e = tt_file_find(f, "text");
        expect(e && e->t.dim[1] == 32, "text_len of config.json");
        tt_file_close(f);
    }
    const int64_t dim[3] = {1, 40, 64};
    put_tensor(at("long"), "text", 3, dim, small);
    refuses(1, "--length 32", "generate -m demo --embeds long %s l4", rest);
}

static void test_given_files(void)
{
    const int64_t odd[5] = {1, 3, 16, 5, 6};
    put_tensor(at("odd"), "noise", 5, odd, small);
    refuses(1, "odd: latent frames of width 6 and height 5",
            "generate -m demo -p x --noise odd -o x.y4m");
    put_tensor(at("odd"), "initial_latent", 5, odd, small);
    refuses(1, "odd: latent frames", "generate -m demo -p x --initial-latents "
            "odd -o x.y4m");
    expect(run("noise -o noise -s 3 --latents 3 -W 32 -H 32") == 0
           && run("generate -q -m demo -p x --noise noise --initial-latents "
                  "video.latents.safetensors --no-decode --latents-out l5 "
                  "--record r5") == 0, "noise: %s", said);
    tt_arena a = {0};
    const tt_json *j = NULL;
    expect_ok(tt_json_file(ctx, &a, &j, at("r5"), 1 << 20), "record");
    const tt_json *v = tt_json_get(j, "video"), *o = tt_json_get(j, "options");
    expect(!strcmp(tt_json_str(v, "generator", ""), "file")
           && tt_json_int(v, "seed", -7) == -7, "noise was from a file");
    expect(tt_json_int(o, "memory", -7) == 14 && tt_json_int(o, "frames", 0)
           == 12 && tt_json_int(v, "frames", 0) == 21, "resolved memory, "
           "generated and all frames: %s", text_of(at("r5")));
    tt_arena_free(&a);
}

/* ---- dumps --------------------------------------------------------------- */

static bool in_dump(const char *path, const char *name)
{
    tt_file *f = NULL;
    if (tt_file_open(ctx, &f, path)) {
        tt_clear(ctx);
        return false;
    }
    const bool found = tt_file_find(f, name) != NULL;
    tt_file_close(f);
    return found;
}

static void test_dump(void)
{
    const char *names[] = {"text/context", "context", "block.0/cross_attn.k",
                           "chunk.0/step.0/flow", "vae/frame.0/denorm"};
    expect(run("generate -q -m demo -p x -W 32 -H 32 --latents 3 -o d.y4m "
               "--dump d") == 0, "dump: %s", said);
    for (int i = 0; i < 5; i++)
        expect(in_dump(at("d"), names[i]), "the dump holds %s", names[i]);
    expect(run("generate -q -m demo --scene 'a[0.75s] | b' -W 32 -H 32 "
               "--latents 6 -o d2.y4m --cache infinity --dump d2") == 0
           && in_dump(at("d2"), "text/context")
           && in_dump(at("d2"), "prompt.1/text/context")
           && in_dump(at("d2"), "prompt.1/context"), "two prompts: %s", said);
    expect(run("generate -q -m demo -p x -W 32 -H 32 --latents 6 --rollouts 3 "
               "--cache causvid --budget 6 -o d3.y4m --dump d3") == 0
           && in_dump(at("d3"), "restart.2/vae/frame.0/denorm")
           && in_dump(at("d3"), "clip.2/vae/frame.0/denorm"),
           "three rollouts: %s", said);
}

/* ---- resuming ------------------------------------------------------------ */

/* Take the last `frames` of `path` away again, as if it had been stopped. */
static void unfinish(const char *path, int64_t frames)
{
    char name[256];
    struct stat st;
    snprintf(name, sizeof name, "%s.unfinished", path);
    const int64_t frame = 16 * 4 * 4 * (int64_t)sizeof(tt_real);
    expect(!rename(path, name) && !stat(name, &st)
           && !truncate(name, st.st_size - frames * frame), "cut %s", path);
}

static void test_resume_of(void)
{
    const char *base = "generate -q -m demo -p x -W 32 -H 32 --latents 9 "
                       "--no-decode --latents-out r";
    expect(run("%s --dump rd", base) == 0, "run: %s", said);
    run_after("cp r whole && cp rd rd.whole && ", "--version > /dev/null");
    copy_weights(at("other.safetensors"),
                 at("demo/diffusion_pytorch_model.safetensors"),
                 "blocks.1.ffn.0.weight", false);
    unfinish(at("r"), 3);
    refuses(2, "another run", "%s --resume --dit other.safetensors", base);
    refuses(2, "--dump", "%s --resume --dump rd", base);
    expect(same(at("rd"), at("rd.whole")), "the dump there was is kept");
    expect(exists(at("r.unfinished")), "and the work too");
    expect(run("%s --resume --record rr", base) == 0
           && same(at("r"), at("whole")), "resumed, same bytes: %s", said);
    tt_arena a = {0};
    const tt_json *j = NULL;
    expect_ok(tt_json_file(ctx, &a, &j, at("rr"), 1 << 20), "record");
    const tt_json *c = tt_json_get(j, "chunks");
    expect(tt_json_int(j, "resumed_after", -1) == 2 && tt_json_count(c) == 3,
           "the record tells chunks without a time: %s", text_of(at("rr")));
    tt_arena_free(&a);
    expect(run("%s --resume --record rr", base) == 0, "complete: %s", said);
    refuses(2, "--dump", "%s --resume --dump rd", base);
}

/* ---- long runs ----------------------------------------------------------- */

static const char *tiny_run(const char *latents)
{
    static char args[4000];
    char model[1100], embeds[1100];
    snprintf(args, sizeof args, "generate -m %s --embeds %s -W 32 -H 32 "
             "--latents 6 --no-decode --latents-out %s",
             reference(model, "dit/models/tiny_a"),
             reference(embeds, "dit/roll_tether_K9/inputs.safetensors"),
             latents);
    return args;
}

static void test_resume(void)
{
    put_file(at("u.unfinished"), "", 0644);
    expect(run("%s --resume -q", tiny_run("u")) == 0 && exists(at("u")),
           "an empty file is nothing to resume: %s", said);
    put_file(at("w.unfinished"), "\x60\x01", 0644);
    expect(run("%s --resume -q", tiny_run("w")) == 0, "nor is a cut one: %s",
           said);
    put_file(at("v.unfinished"), "this is something else altogether", 0644);
    refuses(1, "damaged", "%s --resume -q", tiny_run("v"));

    /* A policy without memory frames still tells its counters. */
    expect(run("%s -q --preset no-memory --trace-cache trace", tiny_run("t"))
           == 0, "no-memory: %s", said);
    tt_file *f = NULL;
    if (expect_ok(tt_file_open(ctx, &f, at("trace")), "trace")) {
        const char *names[] = {"ends", "counters", "memory_index",
                               "cache_filled", "grab_layer"};
        for (int i = 0; i < 5; i++)
            expect(tt_file_find(f, names[i]) != NULL, "tether with M = 0: %s",
                   names[i]);
        tt_file_close(f);
    }
}

/* ---- limits and slips of the hand ---------------------------------------- */

/* The limit of file sizes stops a write, not the program: what is whole is
 * kept, and said. */
static void test_file_size(void)
{
    char demo[1100], args[1600];
    reference(demo, "demo");
    int got = run_after("ulimit -f 20; ", "noise -q -W 256 -H 256 -o big");
    expect(got == 1 && strstr(said, "File too large") && !exists(at("big")),
           "a file above the limit: %d, %s", got, said);
    snprintf(args, sizeof args, "generate -q -t 1 -m %s -p 'a red circle' "
             "-W 64 -H 64 --latents 60 --no-decode --latents-out", demo);
    got = run_after("ulimit -f 160; ", "%s half", args);
    expect(got == 1 && strstr(said, " of 20 chunks are in half.unfinished, and "
           "the same command with --resume goes on"), "half of the latents: "
           "%d, %s", got, said);
    expect(run("%s half --resume", args) == 0 && run("%s whole", args) == 0
           && same(at("half"), at("whole")), "it does: %s", said);
}

static void test_slips(void)
{
    const int64_t dim[2] = {4, 4};
    put_tensor(at("z"), "x", 2, dim, small);
    refuses(2, "--output needs a name", "noise -o ''");
    refuses(2, "--output needs a name", "noise --output= -W 64");
    refuses(2, "argument 1 is empty", "inspect ''");
    refuses(2, "argument 2 is empty", "diff a ''");
    expect(run("diff z z > /dev/full") == 3 && strstr(said, "cannot write the "
           "standard output: No space left"), "a full disk: %s", said);
    refuses(3, "standard output: No space left", "validate --list > /dev/full");
    refuses(1, "standard output: No space left", "demo --list > /dev/full");
    run_after("{ sleep 0.3; ", "--help 2> told; echo $? > rc; } | true;");
    expect(!*text_of(at("told")) && *text_of(at("rc")) == '0', "`--help | "
           "head`: %s", text_of(at("told")));
    expect(run_after("OMP_NUM_THREADS=99999999999 ", "noise -q -W 16 -H 16 -v "
                     "--overwrite -o z2") == 0, "threads: %s", said);
    refuses(2, "no effect", "bench error --only attention");
    refuses(2, "no case", "bench ops --only nothing");
    refuses(2, "1 to 31, but 0", "bench ops --rounds 0");
}

/* Commands that make nothing of their own answer the first signal, too; what an
 * interrupted run of validate has made goes, and no word says that it stays. */
static void test_signals(void)
{
    if (sizeof(tt_real) == 4) stops(SIGINT, "interrupted", "bench error -t 1");
    stops(SIGTERM, "nothing was compared", "validate --dump %s -- generate -m "
          "demo -p x -W 32 -H 32 --latents 600 --no-decode", vae);
    expect(!strstr(said, "--resume"), "there is nothing to resume: %s", said);
    refuses(2, "unknown option --log-json", "bench error --log-json log");
    refuses(2, "unknown option --log-json", "diff a b --log-json log");
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("failures", argv)) return test_end();
    reference(vae, "vae_full_a/weights.safetensors");
    test_no_openblas();
    test_file_size();
    test_slips();
    test_ffmpeg();
    test_not_finite();
    if (make_model()) {
        test_names();
        test_texts();
        test_given_files();
        test_dump();
        test_resume_of();
        test_signals();
    }
    test_logs();
    test_rules();
    test_resume();
    return program_end();
}
