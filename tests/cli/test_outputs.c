/* test_outputs.c: reports take the place of reports; over other files
 * no command writes without --overwrite.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/file.h>

#include "tests/cli/files.h"

/* ---- reports ------------------------------------------------------------- */

/* "-" is the standard output, and no file. */
static void test_standard_output(void)
{
#define BENCH "bench ops --quick --rounds 1 --only gelu -t 1 "
    expect(run(BENCH "--json - > b.out") == 0 && !exists(at("-"))
           && !strncmp(text_of(at("b.out")), "{\n", 2)
           && strstr(text_of(at("b.out")), "\"operator\": \"gelu_tanh\"")
           && !strstr(text_of(at("b.out")), "speed-up")
           && strstr(said, "speed-up"), "JSON alone: %s%s", said,
           text_of(at("b.out")));
    static const char *const peak[][2] = {
        {"fma_peak", "multiply-adds"}, {"memory_read", "GB/s read"},
        {"memory_copy", "copied"}, {"vdp_peak", "VDPBF16PS"},
        {"amx_peak", "TDPBF16PS"}};
    for (int i = 0; i < 5; i++)
        expect(!strstr(text_of(at("b.out")), peak[i][0])
                   == !strstr(said, peak[i][1]),
               "%s in JSON: %s", peak[i][0], text_of(at("b.out")));
    expect(strstr(said, "of multiply-adds") && strstr(said, "GB/s read")
               && strstr(said, "copied"),
           "peaks in the table: %s", said);
    if (access("/dev/full", W_OK)) return;
    refuses(1, "standard output: an earlier write", BENCH "> /dev/full");
    refuses(1, "standard output: No space left", BENCH "--json - > /dev/full");
}

/* `args` with --overwrite or an earlier report writes `name`; over anything
 * else it refuses. An exit status of 1 is a verdict. */
static void report_keeps(const char *name, const char *args)
{
    for (int i = 0; i < 4; i++) {
        if (i == 2) put_file(at(name), "mine", 0644);
        if (i == 2) refuses(2, "which is no", "%s", args);
        if (i == 2) expect(!strcmp(text_of(at(name)), "mine"), "%s stays",
                           name);
        const int got = run("%s %s > out", args, i < 2 ? "" : "--overwrite");
        expect(got < 2 && exists(at(name)) && strlen(text_of(at(name))) > 90,
               "`%s` writes, round %d: %d, %s", args, i, got, said);
    }
}

static void test_reports(void)
{
    char line[3000];
    static const char turned[] = "a\xe2\x80\xae" "b";
    const int64_t dim[2] = {4, 4};
    put_tensor(at("r1"), "x", 2, dim, small);
    report_keeps("r.html", "diff r1 r1 --html r.html");
    report_keeps("r.json", "diff r1 r1 --json r.json");
    report_keeps("r.xml", "diff r1 r1 --junit r.xml");
    report_keeps("r.txt", "validate --manifest r.txt --write --each 1 "
                 "--class f32");
    report_keeps("v.html", "validate --backend exact --op add --rounds 1 "
                 "--no-calls --no-rollout --html v.html");
    if (sizeof(tt_real) == 4)
        report_keeps("b.json", "bench ops --quick --rounds 1 --only gelu -t 1 "
                     "--json b.json");
    put_tensor(at(turned), "<i>\xe2\x81\xa6x", 2, dim, small);
    expect(run("diff %s %s --html t.html --junit t.xml --all > t.txt", turned,
               turned) == 0, "%s", said);
    static const char *const page[] = {"t.html", "t.xml"};
    for (int i = 0; i < 2; i++)
        expect(!strstr(text_of(at(page[i])), "\xe2\x80\xae")
               && !strstr(text_of(at(page[i])), "\xe2\x81\xa6")
               && !strstr(text_of(at(page[i])), "<i>")
               && strstr(text_of(at(page[i])), i ? "&lt;i&gt;\xef\xbf\xbdx"
                         : "\"path\": \"\\u003ci>\\u2066x\""),
               "names in %s are shown as they are read", page[i]);
    if (sizeof(tt_real) == 4) test_standard_output();
    put_file(at("o.xml"), "<?xml version=\"1.0\"?>\n<testsuites>\n", 0644);
    refuses(2, "o.xml, which is no JUnit report", "diff r1 r1 --junit o.xml");
    refuses(2, "both write", "diff r1 r1 --html same --json ./same");
    refuses(3, "directory does not exist", "diff r1 r1 --html no/where/r.html");
    put_file(at("c.html"), "<html>mine</html>", 0644);
    mkdir(at("c_runs"), 0777);
    mkdir(at("c_runs/0-fifo"), 0777);
    snprintf(line, sizeof line, "compare --caches fifo -m %s --embeds e --vae "
             "%s -W 32 -H 32 --latents 6 --no-decode -o c.html", model, vae);
    refuses(2, "c.html, which is no report", "%s --resume",
            line);
    expect(!strcmp(text_of(at("c.html")), "<html>mine</html>"), "it stays");
    for (int i = 0; i < 2; i++)
        expect(run("%s %s", line, i ? "--resume" : "--overwrite") == 0,
               "compare %d: %s", i, said);
}

/* compare with two policies into r.html, and more. */
static int compares(const char *more)
{
    return run("compare -q -t 1 --caches fifo,full --no-decode -m %s --embeds "
               "e -W 32 -H 32 --latents 6 %s", model, more);
}

static void test_compare(void)
{
    expect(compares("-o r") == 2 && strstr(said, "ends in .html"), "no page: "
           "%s", said);
    put_file(at("r.html"), "a page of mine", 0644);
    expect(compares("-o r.html") == 2
           && strstr(said, "-o would replace r.html, which is there; give "
                     "another name, or --overwrite (--resume goes on with its "
                     "runs)"), "a page: %s", said);
    expect(compares("-o r.html --resume") == 2
           && strstr(said, "would replace r.html"), "none of its runs: %s",
           said);
    expect(!strcmp(text_of(at("r.html")), "a page of mine")
           && !exists(at("r_runs")), "nothing was done");
    expect(compares("-o r.html --overwrite") == 0
           && strstr(text_of(at("r.html")), "<html"), "--overwrite: %s", said);
    expect(compares("-o r.html --resume") == 0, "--resume: %s", said);
    refuses(2, "r.html, which is no HTML report", "diff r1 r1 --html r.html");
    expect(compares("-o s.html --runs r_runs -s 3") == 2
           && strstr(said, "would replace r_runs/0-fifo"), "other runs: %s",
           said);
    expect(!exists(at("s.html")), "no report of them");

    const int fd = open(at("r_runs"), O_RDONLY);
    expect(fd >= 0 && !flock(fd, LOCK_EX), "a lock");
    expect(compares("-o r.html --resume") == 2
           && strstr(said, "another `tether compare` is writing into r_runs"),
           "two at once: %s", said);
    close(fd);
    expect(compares("-o r.html --resume") == 0, "the lock is gone: %s", said);
}

/* ---- other commands ------------------------------------------------------ */

/* `args`, which writes `name`: once; not again; again with --overwrite. */
static void once(const char *name, const char *args)
{
    char kept[600], sentence[600];
    expect(run("%s", args) == 0, "%s: %s", args, said);
    snprintf(kept, sizeof kept, "cp %s once.kept; echo more >> %s; cp %s "
             "once.more; ", name, name, name);
    run_after(kept, "--version > /dev/null");
    snprintf(sentence, sizeof sentence, "-o would replace %s, which is there",
             name);
    refuses(2, sentence, "%s", args);
    refuses(2, "give another name, or --overwrite", "%s", args);
    expect(same(at(name), at("once.more")), "%s is kept", name);
    expect(run("%s --overwrite", args) == 0 && same(at(name), at("once.kept")),
           "%s --overwrite: %s", args, said);
}

static void test_once(void)
{
    const int64_t dim[5] = {1, 2, 16, 4, 4};
    char demo[1100], args[3000];
    reference(demo, "demo");
    put_tensor(at("once.st"), "latents", 5, dim, small);
    once("n1", "noise -o n1 --latents 3 -W 32 -H 32");
    once("c1", "convert once.st -o c1");
    snprintf(args, sizeof args, "embed -q -t 1 -m %s -p 'a circle' -o e1",
             demo);
    once("e1", args);
    refuses(2, ".safetensors", "noise -o n.png --latents 3 -W 32 -H 32");
    refuses(2, "--preview x.txt: what is written is a PNG", "%s",
            tiny_run("-o pv.y4m --preview=x.txt"));
    refuses(2, "ends in .png", "%s",
            tiny_run("-o pv.y4m --contact-sheet x.jpg"));
    refuses(2, "ends in .png", "decode --vae %s --latents once.st "
            "--contact-sheet x.y4m", vae);
    expect(!exists(at("pv.y4m")) && !exists(at("pv.latents.safetensors")),
           "a refusal leaves nothing");
    put_file(at("nothing"), "", 0644);
    expect(run("analyze --pixels nothing -o an/deep") != 0
           && run("analyze --clips an/clips nothing") != 0
           && !exists(at("an")), "a failed analyze leaves no folder");
    mkdir(at("an"), 0777);
    expect(run("analyze --pixels nothing -o an/deep") != 0 && exists(at("an"))
           && !exists(at("an/deep")), "and keeps those that were there");
}

static void test_others(void)
{
    const int64_t dim[5] = {1, 2, 16, 4, 4};
    put_tensor(at("o.st"), "latents", 5, dim, small);
    expect(run("decode -t 1 --vae %s --latents o.st -o o.y4m", vae) == 0
           && strstr(said, "wrote o.y4m"), "decode: %s", said);
    refuses(2, "-o would replace o.y4m", "decode --vae %s --latents o.st -o "
            "o.y4m", vae);
    expect(run("decode -q -t 1 --vae %s --latents o.st -o o.y4m --overwrite",
               vae) == 0, "decode --overwrite: %s", said);
    refuses(2, "-o would replace o.st", "encode --vae %s -i o.y4m -o o.st",
            vae);
    expect(run("encode -q -t 1 --vae %s -i o.y4m -o o.st --overwrite", vae)
           == 0, "encode --overwrite: %s", said);
    refuses(2, ".safetensors", "convert o.st -o c.gguf");
    put_file(at("notes"), "mine\n", 0644);
    refuses(2, "--log-json would replace notes", "convert o.st -o c2 "
            "--log-json notes");
    put_file(at("notes"), "{\"event\": \"of another program\"}\n", 0644);
    refuses(2, "--log-json would replace notes", "convert o.st -o c2 "
            "--log-json notes");
    expect(run("convert o.st -o c3 --log-json - > log") == 0
           && holds("log", "{\"event\"") && !exists(at("-")),
           "--log-json -: %s", said);
    mkdir(at("px"), 0777);
    put_file(at("px/pixels.json"), "{\"columns\": [\"mine\"]}", 0644);
    refuses(2, "pixels.json would be replaced", "analyze --pixels o.y4m -o px");
    unlink(at("px/pixels.json"));
    for (int i = 0; i < 2; i++)
        expect(run("analyze --pixels o.y4m -o px") == 0
               && exists(at("px/pixels.json")), "its own: %s", said);
    char others[2001];
    memset(others, 'x', 2000);
    others[2000] = 0;
    put_file(at("many"), others, 0644);
    run_after("ulimit -f 1; ", "convert o.st -o c4 --log-json - >> many");
    expect(!strcmp(text_of(at("many")), others), "a full file of others stays");
    for (int i = 0; i < 2; i++)
        expect(run("convert o.st -o c3 --overwrite --log-json log") == 0,
               "a log again: %s", said);
    refuses(2, ".safetensors", "embed -m %s -p x -o e.TXT", model);
    expect(run("convert o.st -o c.safetensors") == 0
           && strstr(said, "wrote c.safetensors"), "convert: %s", said);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!files_begin("outputs", argv)) return test_end();
    test_reports();
    test_others();
    test_once();
    test_compare();
    return program_end();
}
