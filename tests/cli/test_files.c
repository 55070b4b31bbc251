/* test_files.c: nothing of the user's is lost: what generate does about files
 * that are there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/cli/files.h"

/* ---- files of other runs ------------------------------------------------- */

static void test_overwrite(void)
{
    expect(run("%s", tiny_run("-o a.y4m --contact-sheet a.png --record a.json "
                              "--trace-cache a.trace --analyze ra")) == 0,
           "a run: %s", said);
    run_after("cp a.y4m a.kept; cp a.png png.kept; ", "--version > /dev/null");
    refuses(2, "-o would replace a.y4m, which is there; give another name, or "
            "--overwrite (--resume goes on", "%s", tiny_run("-o a.y4m"));
    expect(run("%s", tiny_run("-o a.y4m --contact-sheet a.png --record a.json "
                              "--trace-cache a.trace --analyze ra --resume"))
           == 0 && same(at("a.y4m"), at("a.kept")),
           "the same run again: %s", said);
    expect(run("%s", tiny_run("-o a.y4m -t 2 --resume")) == 0,
           "the same with --resume: %s", said);
    expect(run("%s", tiny_run("-o a.y4m --contact-sheet n.png --resume")) == 0
           && same(at("n.png"), at("a.png")), "a sheet named later: %s", said);
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

/* Latents of this very run prove that its outputs are its own; those of another
 * one, and none, prove nothing. */
static void test_theirs(void)
{
    static const char *const more[] = {
        "-o v8.y4m", "-o v8.y4m --latents 9", "-o w.y4m --analyze ro",
        "-o w.y4m --trace-cache ro/trace.safetensors",
        "-o w.y4m --record v8.json", "-o w.y4m --dump v8.dump",
        "-o w.y4m --preview=v8.png", "-o w.y4m --contact-sheet v8.png",
        "-o w.y4m --animation v8.apng", "-o op/%05d.png"};
    char args[200];
    expect(run("%s", tiny_run("-s 8 -o v8.y4m --analyze ro --record v8.json "
                              "--dump v8.dump --contact-sheet v8.png "
                              "--animation v8.apng")) == 0
           && run("%s", tiny_run("-s 8 -o op/%05d.png")) == 0, "%s", said);
    run_after("mkdir kept; mv op.l* kept; mv v8.l* t8; cp -r v8.* ro op kept; "
              "cp t8 kept; ", "--version > /dev/null");
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof more / sizeof *more; k++) {
            snprintf(args, sizeof args, "--latents-out %s %s --resume",
                     i ? "t8" : "nothing", more[k]);
            refuses(2, "would replace", "%s", tiny_run(args));
            expect(strstr(said, i ? "(seed: 8 there, 0 here)"
                                  : "(no latents of this run are there)")
                   != NULL, "why, last: %s", said);
        }
    run_after("diff -r kept/ro ro > d; diff -r kept/op op >> d; for f in v8.* "
              "t8; do cmp kept/$f $f >> d; done; ", "--version > /dev/null");
    expect(!*text_of(at("d")), "all stay: %s", text_of(at("d")));
    unlink(at("op/00000.png"));
    refuses(2, "would replace op/00001.png", "%s",
            tiny_run("--latents-out nothing -o op/%05d.png"));
    put_file(at("words"), "words of someone", 0644);
    refuses(2, "would replace words", "%s",
            tiny_run("--latents-out words -o w.y4m --resume"));
}

/* Its own, made longer. */
static void test_own(void)
{
    expect(run("%s", tiny_run("-o t.y4m --latents-out t")) == 0
           && run("%s", tiny_run("-o t.y4m --latents-out t --resume "
                                 "--latents 9")) == 0
           && run("%s", tiny_run("-o t9.y4m --latents 9")) == 0
           && same(at("t.y4m"), at("t9.y4m")), "made longer: %s", said);
    expect(run("%s", tiny_run("-o q/%05d.png --latents-out q.st")) == 0
           && run("%s", tiny_run("-o q/%05d.png --latents-out q.st --resume "
                                 "--latents 9")) == 0
           && exists(at("q/00032.png")), "pictures: %s", said);
}

/* Zeros in the file `name`, `at_end` bytes before its end. */
static void put_bytes(const char *name, char value, long at_end, size_t n)
{
    char some[1 << 14];
    memset(some, value, sizeof some);
    chmod(at(name), 0644);               /* copies of what no one may write */
    FILE *f = fopen(at(name), "r+b");
    expect(f && n <= sizeof some && !fseek(f, -at_end, SEEK_END)
           && fwrite(some, 1, n, f) == n && !fclose(f), "others in %s", name);
}

/* The same text and the same model, with other values. */
static void put_other_inputs(void)
{
    run_after("cp e e2; cp -r m m2; ", "--version > /dev/null");
    put_bytes("e2", 0, 296960, 1024); /* its text */
    put_bytes("m2/diffusion_pytorch_model.safetensors", 0x3c, 1 << 14, 1 << 14);
}

/* A file that is complete and another run's, or nothing: what is said. */
static void test_finished(void)
{
    static const char *const other[][2] = {
        {"-s 9", "seed: 0 there, 9 here"},
        {"--cache fifo", "cache: tether there, fifo here"},
        {"--shift 3", "shift: 5 there, 3 here"},
        {"--steps 1000,500", "steps: 1000,750,500,250 there, 1000,500 here"}};
    char more[300], words[300];
    expect(run("%s", tiny_run("--no-decode --latents-out f")) == 0, "%s", said);
    run_after("cp f f.kept; ", "--version > /dev/null");
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof other / sizeof *other; k++) {
            snprintf(more, sizeof more, "--no-decode --latents-out f %s %s",
                     i ? "--resume" : "", other[k][0]);
            snprintf(words, sizeof words, i ? "--latents-out would replace f, "
                     "which is there; give another name, or --overwrite (%s)"
                     : "--latents-out would replace f, which is there",
                     other[k][1]);
            refuses(2, words, "%s", tiny_run(more));
        }
    refuses(2, "(another length: 6 latents there, 3 here)", "%s",
            tiny_run("--no-decode --latents-out f --latents 3 --resume"));
    put_other_inputs();
    refuses(2, "(another prompt, or other embeddings", "generate -q -t 1 -m m "
            "--embeds e2 -W 32 -H 32 --latents 6 --no-decode --latents-out f "
            "--resume");
    refuses(2, "(other weights)", "generate -q -t 1 -m m2 --embeds e -W 32 -H "
            "32 --latents 6 --no-decode --latents-out f --resume");
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
    put_file(at("g"), "words of someone", 0644);
    refuses(2, "would replace g", "%s",
            tiny_run("--no-decode --latents-out g --resume"));
    expect(run("%s", tiny_run("--no-decode --latents-out g --resume "
                              "--overwrite")) == 0, "--overwrite: %s", said);
}

/* --resume next to nothing, or next to what --overwrite gives up. */
static void test_nothing(void)
{
    static const char words[] = "e0.unfinished or e0; "
                                "starting from the beginning";
    const char *args = "generate -t 1 --embeds e -m m -W 32 -H 32 --latents 6 "
                       "--no-decode --latents-out e0";
    for (int i = 0; i < 2; i++) {
        expect(run("%s --resume%s", args, i ? " -s 1 --overwrite" : "") == 0,
               "%s", said);
        expect(strstr(said, "nothing to resume in ") && strstr(said, words)
               && !strstr(strstr(said, words) + 1, words),
               "it says where it has looked, round %d: %s", i, said);
    }
    expect(run("%s -s 1 --resume", args) == 0
           && !strstr(said, "nothing to resume"), "its own: %s", said);
    put_file(at("e0.unfinished"), "\x60\x01", 0644);
    unlink(at("e0"));
    expect(run("%s --resume", args) == 0 && strstr(said, "begins anew")
           && !strstr(said, "nothing to resume"), "said once: %s", said);
    unlink(at("e0"));
    expect(run("%s", args) == 0 && !strstr(said, "nothing to resume"),
           "no one asked: %s", said);
}

/* ---- unfinished work ----------------------------------------------------- */

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
    expect(run("%s", tiny_run("--no-decode --latents-out x --preview=x.png"))
           == 0, "a preview: %s", said);
    unfinish("x");
    expect(run("%s", tiny_run("--no-decode --latents-out x --preview=x.png "
                              "--resume")) == 0, "its own preview: %s", said);

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

/* A name of the run that is no file's: refused at once, and left. */
static void test_kinds(void)
{
    static const char *const more[] = {"", "--resume", "--overwrite"};
    static const char *const kind[] = {
        "k.unfinished is a named pipe", "k.unfinished is a folder"};
    const char *name = at("k.unfinished");
    for (int i = 0; i < 2; i++) {
        char args[100];
        expect(!(i ? mkdir(name, 0700) : mkfifo(name, 0600)), "%s", kind[i]);
        for (int k = 0; k < 3; k++) {
            snprintf(args, sizeof args, "--no-decode --latents-out k %s",
                     more[k]);
            refuses(2, kind[i], "%s", tiny_run(args));
        }
        expect(exists(name) && !remove(name), "it stays: %s", kind[i]);
    }
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
        expect(run("%s", tiny_run(i ? "-o v.y4m --latents-out v.st --resume"
                                    : "-o v.y4m --latents-out v.st")) == 0
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

int main(int argc, char **argv)
{
    (void)argc;
    if (!files_begin("files", argv)) return test_end();
    test_overwrite();
    test_theirs();
    test_own();
    test_finished();
    test_nothing();
    test_unfinished();
    test_kinds();
    test_links();
    return program_end();
}
