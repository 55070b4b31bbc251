/* test_files.c: nothing of the user's is lost: what commands do about files
 * that are there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include "tests/cli/program.h"

static char model[1100], vae[1100], embeds[1100];

static float small(int64_t i)
{
    return (float)(i % 17) / 17 - 0.5f;
}

/* ---- inputs -------------------------------------------------------------- */

/* The command must refuse with status 2 and leave the file `in` alone, which
 * it would write over. */
TT_PRINTF(2, 3)
static void keeps(const char *in, const char *fmt, ...)
{
    char args[3000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(args, sizeof args, fmt, ap);
    va_end(ap);
    run_after("rm -f kept; ", "--version > /dev/null");
    char copy[3000];
    snprintf(copy, sizeof copy, "cp -L %s kept; ", in);
    run_after(copy, "--version > /dev/null");
    refuses(2, "write over", "%s", args);
    expect(same(at(in), at("kept")), "`%s` left %s as it was", args, in);
}

static void test_inputs(void)
{
    const int64_t dim[5] = {1, 3, 16, 4, 4};
    put_tensor(at("z"), "latents", 5, dim, small);
    put_file(at("text"), "a\n", 0644);
    put_file(at("tol"), "* 1 1\n", 0644);
    put_file(at("score.csv"), "a,1\n", 0644);
    mkdir(at("sub"), 0777);
    expect(!link(at("z"), at("hard")) && !symlink("../z", at("sub/soft")),
           "links");
    char copy[2400];
    snprintf(copy, sizeof copy, "mkdir m; cp %s/* m; chmod u+w m/*; cp %s "
             "e; ", model, embeds);
    run_after(copy, "--version > /dev/null");

    keeps("z", "convert z -o z");
    keeps("z", "convert z -o hard");
    keeps("z", "convert z -o ./sub/../z");
    keeps("z", "convert sub/soft -o z");
    keeps("z", "convert z -o sub/soft");
    keeps("z", "decode --vae %s --latents z -o x.y4m --raw-out z", vae);
    keeps("z", "decode --vae %s --latents z --contact-sheet hard", vae);
    keeps("z", "encode --vae %s --raw-in z -o z", vae);
    keeps("z", "generate -m %s --embeds e --noise z --latents-out z "
          "--no-decode", model);
    keeps("z", "generate -m %s --embeds e --initial-latents z "
          "--latents-out hard --no-decode", model);
    keeps("z", "generate -m %s --embeds e --inject z --dump z -o x.y4m", model);
    keeps("z", "generate -m %s --embeds e --noise z -o x.y4m --record hard",
          model);
    keeps("e", "generate -m %s --embeds e -o x.y4m --trace-cache=e", model);
    keeps("z", "generate -m %s --embeds e --noise z -o x.y4m --preview=z",
          model);
    keeps("text", "generate -m %s --prompt-file text -o x.y4m --log-json text",
          model);
    keeps("z", "embed -m %s --ids z -o z", model);
    keeps("z", "inspect z --log-json hard");
    keeps("z", "diff z e --html z");
    keeps("tol", "diff z e --tol tol --json ./tol");
    keeps("z", "validate --dump z --against e --junit z");
    keeps("z", "analyze z --log-json z");
    keeps("e", "compare --caches fifo -m %s --embeds e -o e", model);
    keeps("e", "compare --caches fifo -m %s --embeds=e --log-json e", model);
    keeps("m/config.json", "generate -m m --embeds e -o x.y4m --record "
          "m/config.json");
    run_after("mkdir s; cp score.csv s/quality_drift.csv; cp score.csv "
              "s/scores.csv; ",
              "--version > /dev/null");
    keeps("s/quality_drift.csv", "analyze --scores s/quality_drift.csv -o s");
    keeps("s/scores.csv", "analyze --scores s/scores.csv -o s");
}

/* Numbered pictures. */
static void test_pictures(void)
{
    char picture[1100];
    reference(picture, "pictures/demo.png");
    mkdir(at("p"), 0777);
    char before[2400];
    snprintf(before, sizeof before, "cp %s p/00004.png; cp %s p/00001.png; ",
             picture, picture);
    run_after(before, "--version > /dev/null");
    keeps("p/00004.png", "generate -m %s --embeds e --image p/00004.png -o "
          "p/%%05d.png", model);
    keeps("p/00001.png", "generate -m %s --embeds e --initial-video "
          "p/%%05d.png -o p/%%05d.png", model);
    keeps("p/00001.png", "generate -m %s --embeds e --initial-video "
          "p/%%05d.png --contact-sheet p/00001.png", model);
    expect(run("generate -m %s --embeds e --image p/00004.png -o q/%%05d.png",
               model) != 2 || !strstr(said, "write over"), "another folder");
}

/* What is no file has nothing to lose. */
static void test_no_files(void)
{
    const int64_t dim[5] = {1, 3, 16, 4, 4};
    put_tensor(at("n"), "latents", 5, dim, small);
    expect(run("diff n n --json - > /dev/null") == 0, "-: %s", said);
    if (access("/dev/stdout", F_OK))
        skip("/dev/stdout as an output: it leads nowhere without /proc");
    else
        expect(run("diff n n --json /dev/stdout > out") == 0
               && exists(at("out")), "/dev/stdout: %s", said);
    expect(run("diff n n --json /dev/null --html /dev/null > out") == 0,
           "/dev/null twice: %s", said);
}

/* ---- files of other runs ------------------------------------------------- */

/* A run of two chunks; `more` ends with its outputs. */
static const char *tiny_run(const char *more)
{
    static char args[4000];
    snprintf(args, sizeof args, "generate -q -t 1 -m %s --embeds e --vae %s -W "
             "32 -H 32 --latents 6 %s", model, vae, more);
    return args;
}

static void test_overwrite(void)
{
    expect(run("%s", tiny_run("-o a.y4m --contact-sheet a.png --record a.json "
                              "--trace-cache a.trace --analyze ra")) == 0,
           "a run: %s", said);
    run_after("cp a.y4m a.kept; cp a.png png.kept; ", "--version > /dev/null");
    expect(run("%s", tiny_run("-o a.y4m --contact-sheet a.png --record a.json "
                              "--trace-cache a.trace --analyze ra")) == 0,
           "the same run again: %s", said);
    expect(run("%s", tiny_run("-o a.y4m -t 2 --resume")) == 0,
           "the same with --resume: %s", said);
    refuses(2, "-o would replace a.y4m", "%s", tiny_run("-o a.y4m -s 1"));
    refuses(2, "--overwrite", "%s", tiny_run("-o a.y4m --cache fifo"));
    expect(same(at("a.y4m"), at("a.kept")), "the video is kept");
    refuses(2, "--contact-sheet would replace a.png", "%s",
            tiny_run("-s 1 -o b.y4m --contact-sheet a.png"));
    refuses(2, "--record would replace a.json", "%s",
            tiny_run("-s 1 -o b.y4m --record a.json"));
    refuses(2, "--trace-cache would replace a.trace", "%s",
            tiny_run("-s 1 -o b.y4m --trace-cache a.trace"));
    refuses(2, "--analyze would replace ra/latents", "%s",
            tiny_run("-s 1 -o b.y4m --analyze ra"));
    refuses(2, "--preview would replace a.png", "%s",
            tiny_run("-s 1 -o b.y4m --preview=a.png"));
    expect(same(at("a.png"), at("png.kept")), "the sheet is kept");
    expect(!exists(at("b.y4m")) && !exists(at("b.latents.safetensors"))
           && !exists(at("b.latents.safetensors.unfinished")),
           "a refusal leaves nothing");
    expect(run("%s", tiny_run("-s 1 -o a.y4m --overwrite")) == 0
           && !same(at("a.y4m"), at("a.kept")), "--overwrite: %s", said);
    expect(run("%s", tiny_run("-s 2 -o fr/%05d.png")) == 0, "pictures: %s",
           said);
    refuses(2, "-o would replace fr/00000.png", "%s",
            tiny_run("-s 3 -o fr/%05d.png"));
    put_file(at("100%done.y4m"), "mine", 0644);
    refuses(2, "-o would replace 100%done.y4m", "%s",
            tiny_run("-s 3 -o 100%done.y4m"));
    expect(run("%s", tiny_run("-s 3 -o 90%.y4m")) == 0
           && exists(at("90%.latents.safetensors")), "a name with %%: %s",
           said);
    /* a file that is empty holds nothing; devices and pipes are no files */
    put_file(at("c.y4m"), "", 0644);
    expect(run("%s", tiny_run("-o c.y4m")) == 0, "an empty file: %s", said);
    for (int i = 0; i < 2; i++)
        expect(run("%s > piped", tiny_run(i ? "-o - -s 4 --latents-out p1"
                                            : "-o - -s 5 --latents-out p2"))
               == 0, "standard output: %s", said);
}

static void test_finished(void)
{
    expect(run("%s", tiny_run("--no-decode --latents-out f")) == 0, "%s", said);
    run_after("cp f f.kept; ", "--version > /dev/null");
    refuses(2, "would replace f", "%s",
            tiny_run("--no-decode --latents-out f -s 9 --resume"));
    refuses(2, "would replace f", "%s",
            tiny_run("--no-decode --latents-out f --cache fifo --resume"));
    refuses(2, "would replace f", "%s",
            tiny_run("--no-decode --latents-out f --latents 9"));
    refuses(2, "would replace f", "%s",
            tiny_run("--no-decode --latents-out f --latents 3 --resume"));
    expect(same(at("f"), at("f.kept")) && !exists(at("f.unfinished")),
           "a finished run is kept");
    expect(run("%s", tiny_run("--no-decode --latents-out f --resume")) == 0
           && same(at("f"), at("f.kept")), "its own: %s", said);
    /* made longer, with the bits of a run that was as long at once */
    expect(run("%s", tiny_run("--no-decode --latents-out f --latents 9 "
                              "--resume")) == 0, "longer: %s", said);
    expect(run("%s", tiny_run("--no-decode --latents-out f9 --latents 9")) == 0
           && same(at("f"), at("f9")) && !exists(at("f.unfinished")),
           "the same file: %s", said);
    put_file(at("g"), "words of somebody", 0644);
    refuses(2, "would replace g", "%s",
            tiny_run("--no-decode --latents-out g --resume"));
    expect(run("%s", tiny_run("--no-decode --latents-out g --resume "
                              "--overwrite")) == 0, "--overwrite: %s", said);
}

/* Cut the last chunk of the latents `name` off, as if stopped. */
static void unfinish(const char *name)
{
    char to[600];
    struct stat st;
    snprintf(to, sizeof to, "%s.unfinished", at(name));
    expect(!rename(at(name), to) && !stat(to, &st)
           && !truncate(to, st.st_size - 3 * 16 * 4 * 4
                                       * (off_t)sizeof(tt_real)), "cut");
}

static void test_unfinished(void)
{
    expect(run("%s", tiny_run("--no-decode --latents-out u")) == 0, "%s", said);
    run_after("cp u u.whole; ", "--version > /dev/null");
    unfinish("u");
    run_after("cp u.unfinished u.kept; ", "--version > /dev/null");
    refuses(2, "--resume", "%s", tiny_run("--no-decode --latents-out u"));
    refuses(2, "start over by --overwrite", "%s",
            tiny_run("--no-decode --latents-out u"));
    refuses(2, "another run", "%s",
            tiny_run("--no-decode --latents-out u -s 1 --resume"));
    expect(same(at("u.unfinished"), at("u.kept")), "unfinished work is kept");
    expect(run("%s", tiny_run("--no-decode --latents-out u --resume")) == 0
           && same(at("u"), at("u.whole")) && !exists(at("u.unfinished")),
           "--resume: %s", said);
    unfinish("u");
    expect(run("%s", tiny_run("--no-decode --latents-out u --overwrite")) == 0
           && same(at("u"), at("u.whole")) && !exists(at("u.unfinished")),
           "--overwrite: %s", said);

    put_file(at("d.unfinished"), "this is something else altogether", 0644);
    refuses(2, "in the way", "%s", tiny_run("--no-decode --latents-out d"));
    refuses(1, "damaged", "%s",
            tiny_run("--no-decode --latents-out d --resume"));
    expect(run("%s", tiny_run("--no-decode --latents-out d --overwrite")) == 0,
           "--overwrite of something else: %s", said);
    put_file(at("h.unfinished"), "\x60\x01", 0644);
    expect(run("%s", tiny_run("--no-decode --latents-out h --resume")) == 0
           && strstr(said, "begins anew"), "less than a header: %s", said);
}

/* ---- two runs at once ---------------------------------------------------- */

/* Until `name` is there, at most half a minute. */
static bool appears(const char *name)
{
    for (int i = 0; i < 3000 && !exists(at(name)); i++) usleep(10000);
    return expect(exists(at(name)), "%s appears", name);
}

static void test_two_at_once(void)
{
    /* Held by somebody: refused, and kept. */
    put_file(at("l.unfinished"), "", 0644);
    const int fd = open(at("l.unfinished"), O_RDWR);
    expect(fd >= 0 && !flock(fd, LOCK_EX), "a lock");
    refuses(2, "another run is writing l", "%s",
            tiny_run("--no-decode --latents-out l"));
    refuses(2, "another run is writing l", "%s",
            tiny_run("--no-decode --latents-out l --overwrite"));
    close(fd);
    expect(run("%s", tiny_run("--no-decode --latents-out l")) == 0,
           "the lock is gone: %s", said);

    /* A log is held as well, and the refused run leaves it alone. */
    put_file(at("held"), "{\"event\": \"begin\"}\n", 0644);
    const int log = open(at("held"), O_RDWR);
    expect(log >= 0 && !flock(log, LOCK_EX), "a lock on a log");
    refuses(2, "another run is writing held", "%s",
            tiny_run("--no-decode --latents-out lh --log-json held"));
    expect(!strcmp(text_of(at("held")), "{\"event\": \"begin\"}\n"),
           "the log of the other run is whole");
    close(log);

    /* The program holds it to the end of its decoding; a killed one not. */
    mkdir(at("stuck"), 0777);
    put_file(at("stuck/ffmpeg"), "#!/bin/sh\necho $$ > started\n"
             "exec sleep 60\n",
             0755);
    char command[6000];
    snprintf(command, sizeof command, "cd %s && PATH=$PWD/stuck:$PATH && "
             "export PATH && { %s %s > /dev/null 2>&1 & echo $! > pid; }",
             folder, tether, tiny_run("-o k.mp4"));
    expect(system(for_shell(command)) == 0, "a run in the background");
    if (!appears("started")) return;
    refuses(2, "another run is writing k", "%s",
            tiny_run("-o k.y4m --resume"));
    const pid_t pid = atoi(text_of(at("pid")));
    expect(pid > 1 && !kill(pid, SIGKILL), "killed");
    for (int i = 0; i < 500 && !kill(pid, 0); i++) usleep(10000);
    const pid_t child = atoi(text_of(at("started")));
    if (child > 1) kill(child, SIGKILL);
    expect(run("%s", tiny_run("-o k.y4m --resume")) == 0,
           "a killed run leaves no lock: %s", said);
}

/* A run with other latents has made the video while this one went on. */
static void test_late(void)
{
    char command[6000];
    snprintf(command, sizeof command, "cd %s && { %s %s; "
             "echo $? > late.status; }", folder, tether,
             tiny_run("-o late.y4m --cache fifo --latents 240 --log-json "
                      "late.log 2> late.said & echo $! > pid; wait $!"));
    const pid_t shell = fork();
    if (!shell) _exit(system(for_shell(command)) != 0);
    for (int i = 0; i < 3000 && !strstr(text_of(at("late.log")), "\"chunk\"");
         i++) usleep(10000);
    const pid_t pid = atoi(text_of(at("pid")));
    expect(pid > 1 && !kill(pid, SIGSTOP), "stopped in between");
    put_file(at("late.y4m"), "mine", 0644);
    if (pid > 1) kill(pid, SIGCONT);
    if (shell > 0) waitpid(shell, NULL, 0);
    expect(atoi(text_of(at("late.status"))) == 2
           && strstr(text_of(at("late.said")), "another run has made")
           && strstr(text_of(at("late.y4m")), "mine"),
           "what came in between is kept: %s", text_of(at("late.said")));
    expect(exists(at("late.latents.safetensors")), "and so are the latents");
}

/* ---- links --------------------------------------------------------------- */

static bool is_link(const char *path)
{
    struct stat st;
    return !lstat(path, &st) && S_ISLNK(st.st_mode);
}

static void test_links(void)
{
    mkdir(at("disk"), 0777);
    expect(!symlink("disk/v.y4m", at("v.y4m"))
           && !symlink("disk/v.st", at("v.st")), "links to nothing yet");
    for (int i = 0; i < 2; i++)
        expect(run("%s", tiny_run("-o v.y4m --latents-out v.st")) == 0
               && is_link(at("v.y4m")) && is_link(at("v.st"))
               && exists(at("disk/v.y4m")) && exists(at("disk/v.st")),
               "links are followed, round %d: %s", i, said);
    refuses(2, "would replace v.y4m", "%s",
            tiny_run("-o v.y4m --latents-out v.st -s 1"));
    /* one file under two names: a link to nothing yet, and a link to it */
    expect(!symlink("../two.y4m", at("disk/two.png"))
           && !symlink("disk/two.png", at("too.png")), "links of links");
    for (int i = 0; i < 2; i++) {
        refuses(2, "-o and --contact-sheet would both write", "%s",
                tiny_run("-o two.y4m --contact-sheet disk/two.png -s 2"));
        refuses(2, "-o and --contact-sheet would both write", "%s",
                tiny_run("-o two.y4m --contact-sheet too.png -s 2"));
        put_file(at("two.y4m"), "", 0644);
    }
    put_file(at("precious"), "mine", 0644);
    expect(!symlink("precious", at("l.st.unfinished")), "a planted link");
    refuses(2, "is a link", "%s", tiny_run("--no-decode --latents-out l.st"));
    expect(!strcmp(text_of(at("precious")), "mine"), "not followed");
}

/* ---- reports ------------------------------------------------------------- */

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
    refuses(2, "both write", "diff r1 r1 --html same --json ./same");
    refuses(3, "directory does not exist", "diff r1 r1 --html no/where/r.html");
    put_file(at("c.html"), "<html>mine</html>", 0644);
    mkdir(at("c_runs"), 0777);
    mkdir(at("c_runs/0-fifo"), 0777);
    snprintf(line, sizeof line, "compare --caches fifo -m %s --embeds e --vae "
             "%s -W 32 -H 32 --latents 6 --no-decode -o c.html", model, vae);
    refuses(2, "which is no report", "%s --resume", line);
    expect(!strcmp(text_of(at("c.html")), "<html>mine</html>"), "it stays");
    for (int i = 0; i < 2; i++)
        expect(run("%s %s", line, i ? "--resume" : "--overwrite") == 0,
               "compare %d: %s", i, said);
}

/* ---- what files say about themselves ------------------------------------- */

/* Do the first 16 kB of `name` hold this text? */
static bool holds(const char *name, const char *text)
{
    static char buf[1 << 14];
    FILE *f = fopen(at(name), "rb");
    const size_t n = f ? fread(buf, 1, sizeof buf, f) : 0;
    const size_t m = strlen(text);
    bool found = false;
    if (f) fclose(f);
    for (size_t i = 0; i + m <= n && !found; i++)
        found = !memcmp(buf + i, text, m);
    return found;
}

static void test_inside(void)
{
    char demo[1100];
    reference(demo, "demo");
    expect(run("generate -t 1 -m %s -p 'a red circle' -W 64 -H 64 "
               "--latents 3 -s 77 -o i.apng --contact-sheet i.png", demo) == 0,
           "apng: %s", said);
    expect(strstr(said, "wrote i.apng\n") && strstr(said, "wrote i.png\n")
           && strstr(said, "wrote i.latents.safetensors\n"),
           "every file is told: %s", said);
    const char *files[] = {"i.apng", "i.png"};
    for (int i = 0; i < 2; i++)
        expect(holds(files[i], "tEXtparameters") &&
               holds(files[i], "a red circle\nSteps: 4, ")
               && holds(files[i], "Seed: 77, Size: 64x64, Model: demo, ")
               && holds(files[i], "Version: tether "),
               "%s tells prompt and settings", files[i]);
    expect(holds("i.apng", "acTL"), "it is animated");
    if (run("decode -q -m %s --latents i.latents.safetensors -o probe.mp4",
            demo)) return; /* no ffmpeg */
    /* a prompt too long for an argument of ffmpeg */
    FILE *f = fopen(at("long"), "wb");
    for (int i = 0; f && i < 30000; i++) fputs("circle ", f);
    expect(f && !fclose(f) && run("generate -q -t 1 -m %s --prompt-file long "
           "-W 64 -H 64 --latents 3 -o long.mp4", demo) == 0, "a long prompt: "
           "%s", said);
    expect(run("generate -q -t 1 -m %s -p 'a red circle' -W 64 -H 64 "
               "--latents 3 -s 77 -o j.mp4", demo) == 0
           && holds("j.mp4", "a red circle\nSteps: 4, ")
           && holds("j.mp4", "Seed: 77, "), "mp4: %s", said);
}

/* Nothing that is said goes into a file that took the place of stderr. */
static void test_closed(const char *demo)
{
    char line[4000];
    const char *args = "demo -t 1 --latents 3";
    snprintf(line, sizeof line, "cd %s && %s %s -m %s -o closed 2>&-", folder,
             tether, args, demo);
    expect(run("%s -m %s -o open", args, demo) == 0
           && system(for_shell(line)) == 0
           && same(at("open/demo.latents.safetensors"),
                   at("closed/demo.latents.safetensors")),
           "without stderr: %s", said);
}

/* A PNG's acTL ends its count of frames at byte 44. */
static int byte_at(const char *name, long offset)
{
    FILE *f = fopen(at(name), "rb");
    const int c = f && !fseek(f, offset, SEEK_SET) ? fgetc(f) : EOF;
    if (f) fclose(f);
    return c;
}

static void test_demo(void)
{
    char demo[1100];
    reference(demo, "demo");
    mkdir(at("empty"), 0777);
    for (int i = 0; i < 2; i++) /* without ffmpeg; again, with another seed */
        expect(run_after("PATH=$PWD/empty ", "demo -q -t 1 -m %s --latents 3 "
                         "-s %d -o demo1", demo, i) == 0
               && exists(at("demo1/demo.apng"))
               && exists(at("demo1/demo.y4m")), "demo, turn %d: %s", i, said);
    expect(holds("demo1/demo.apng", "acTL")
           && holds("demo1/demo.apng", "Seed: 1, "), "it moves and says how");
    expect(byte_at("demo1/demo.apng", 44) == 9, "with all its frames");
    expect(run("demo -t 1 -m %s --latents 3 -o demo4", demo) == 0
           && exists(at("demo4/demo.apng"))
           && exists(at("demo4/demo.mp4")) != exists(at("demo4/demo.y4m"))
           && strstr(said, "a browser shows demo4/demo.apng"),
           "beside mp4 or y4m: %s", said);
    refuses(2, "ends in .apng", "%s",
            tiny_run("-o an.y4m --animation an.gif"));
    refuses(2, "--animation and --contact-sheet would both", "%s",
            tiny_run("-o an.y4m --animation an.apng --contact-sheet an.apng"));
    expect(run("demo -q -t 1 -m %s --latents 3 -o demo5 --backend arith-bf16",
               demo) == 0, "demo in another arithmetic: %s", said);
    test_closed(demo);
    expect(!truncate(at("open/demo.latents.safetensors"), 9000)
           && !rename(at("open/demo.latents.safetensors"),
                      at("open/demo.latents.safetensors.unfinished"))
           && run("demo -t 1 -m %s --latents 3 -o open --resume", demo) == 0
           && same(at("open/demo.latents.safetensors"),
                   at("closed/demo.latents.safetensors")),
           "demo --resume, as an interrupted one says: %s", said);
    mkdir(at("demo2"), 0777);
    put_file(at("demo2/sheet.png"), "mine", 0644);
    refuses(2, "demo2/sheet.png is there", "demo -q -t 1 -m %s "
            "--latents 3 -o demo2", demo);
    refuses(2, "whole number of chunks", "demo -q -m %s --latents 4 -o "
            "demo3/deep", demo);
    expect(!exists(at("demo3")), "no empty folder is left");
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
           && strstr(said, "-o would replace r.html, which is there; --resume "
                     "goes on with its runs; give another name, or "
                     "--overwrite"), "a page: %s", said);
    expect(compares("-o r.html --resume") == 2
           && strstr(said, "would replace r.html"), "none of its runs: %s",
           said);
    expect(!strcmp(text_of(at("r.html")), "a page of mine")
           && !exists(at("r_runs")), "nothing was done");
    expect(compares("-o r.html --overwrite") == 0
           && strstr(text_of(at("r.html")), "<html"), "--overwrite: %s", said);
    expect(compares("-o r.html --resume") == 0, "--resume: %s", said);
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

/* Each pattern of pictures has latents of its own. */
static void test_pattern_names(void)
{
    static const struct { const char *output, *latents; } name[] = {
        {"na_%05d.png", "na"}, {"pat/b-%d.png", "pat/b"},
        {"pat/%05d.png", "pat"}, {"%d_c.png", "c"}, {"_%02d.png", "video"},
        {"f_%n.y4m", "f_%n"}, {"g_%05d.y4m", "g_%05d"}};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        char latents[100];
        snprintf(latents, sizeof latents, "%s.latents.safetensors",
                 name[i].latents);
        expect(run("%s -o %s", tiny_run(""), name[i].output) == 0
               && exists(at(latents)), "%s: %s", name[i].output, said);
        expect(run("%s -o %s --resume", tiny_run(""), name[i].output) == 0,
               "%s --resume: %s", name[i].output, said);
    }
    refuses(2, "whole number of chunks", "%s",
            tiny_run("--latents 4 -o nopat/b-%d.png"));
    refuses(1, "no/pat", "%s", tiny_run("-o no/pat/b-%d.png"));
    expect(!exists(at("nopat")) && !exists(at("no")), "no folder is left");
    expect(run("%s", tiny_run("-o s_%d.png --num-samples 2")) == 0
           && exists(at("s-0.latents.safetensors"))
           && exists(at("s-1.latents.safetensors")), "two samples: %s", said);
}

/* The log tells the prompt, the decoding, and every file. */
static void test_log(void)
{
    char demo[1100];
    reference(demo, "demo");
    expect(run("generate -q -t 1 -m %s -p 'a red circle' -W 64 -H 64 "
               "--latents 3 -o lg.apng --contact-sheet lg.png --log-json lg",
               demo) == 0, "%s", said);
    const char *log = text_of(at("lg"));
    expect(strstr(log, "\"prompt\": \"a red circle\""), "the prompt: %s", log);
    expect(strstr(log, "\"event\": \"decode\"")
           && strstr(log, "\"latents_done\": 3, \"latents\": 3, "
                     "\"frames_done\": 9, \"frames\": 9"),
           "the decoding: %s", log);
    expect(strstr(log, "\"path\": \"lg.apng\"")
           && strstr(log, "\"path\": \"lg.png\"")
           && strstr(log, "\"path\": \"lg.latents.safetensors\""),
           "the files: %s", log);
    /* an animated PNG is a video, not its first frame */
    expect(run_after("PATH=$PWD/empty ", "encode -t 1 -m %s -i lg.apng -o "
                     "lg.st", demo) == 1 && strstr(said, "animated PNG")
           && strstr(said, "ffmpeg") && !exists(at("lg.st")),
           "without ffmpeg: %s", said);
    if (run("decode -q -m %s --latents lg.latents.safetensors -o lg.mp4", demo))
        return; /* no ffmpeg */
    expect(run("encode -t 1 -m %s -i lg.apng -o lg.st --log-json lg2", demo)
           == 0 && strstr(said, "3 latents")
           && strstr(said, "from 9 frames"), "every frame: %s", said);
    expect(strstr(text_of(at("lg2")), "\"path\": \"lg.st\""), "logged");
    expect(run("decode -q -m %s --latents lg.latents.safetensors -o p_%%d.png",
               demo) == 0
           && run("encode -q -t 1 -m %s -i p_%%d.png -o lg3.st", demo) == 0
           && same(at("lg.st"), at("lg3.st")), "the same as of pictures: %s",
           said);
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
    expect(run("convert o.st -o c3 --log-json - > log") == 0
           && holds("log", "{\"event\"") && !exists(at("-")),
           "--log-json -: %s", said);
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
    if (!program_begin("files", argv)) return test_end();
    reference(model, "dit/models/tiny_a");
    reference(vae, "vae_full_a/weights.safetensors");
    reference(embeds, "dit/roll_tether_K9/inputs.safetensors");
    test_inputs();
    test_pictures();
    test_no_files();
    test_overwrite();
    test_finished();
    test_unfinished();
    test_two_at_once();
    test_late();
    test_links();
    test_reports();
    test_inside();
    test_demo();
    test_others();
    test_once();
    test_compare();
    test_pattern_names();
    test_log();
    return program_end();
}
