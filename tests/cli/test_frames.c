/* test_frames.c: a decoding that ended in its middle goes on.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property  outputs have the bytes of a decoding that was not interrupted,
 *           whatever ended it, and frames that were done are not decoded again.
 * Model     an `ffmpeg` of our own takes so many bytes and then dies, or kills
 *           the program that feeds it: no moment depends on the clock. */
#include <fcntl.h>
#include <sys/file.h>

#include "tests/cli/ffmpeg.h"

static char model[1100], vae[1100], embeds[1100];
/* LONG: more frames than the socket to ffmpeg holds, more latents than the VAE
 * looks back. */
enum { LONG = 44, SHORT = 10, SIDE = 24, FRAME = 3 * SIDE * SIDE };

static float wave(int64_t i)
{
    return (float)(i * 7919 % 1009) / 300 - 1.7f;
}

static float other_wave(int64_t i)
{
    return -wave(i);
}

/* `tether decode` with our ffmpeg. */
TT_PRINTF(1, 2)
static int decode(const char *fmt, ...)
{
    char args[2000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(args, sizeof args, fmt, ap);
    va_end(ap);
    return run_after("PATH=$PWD/bin:$PATH ", "decode -t 1 --vae %s %s",
                     vae, args);
}

static void expect_same(const char *name, const char *reference_name)
{
    expect(same(at(name), at(reference_name)), "%s has the bytes of %s", name,
           reference_name);
}

static int count(const char *text, const char *word)
{
    int n = 0;
    while ((text = strstr(text, word))) n++, text++;
    return n;
}

/* ---- what ends it -------------------------------------------------------- */

static void make_references(void)
{
    int64_t dim[5] = {1, LONG, 16, SIDE / 8, SIDE / 8};
    put_tensor(at("long"), "latents", 5, dim, wave);
    dim[1] = SHORT;
    put_tensor(at("l.st"), "latents", 5, dim, wave);
    put_ffmpeg(-1, "");
    expect(decode("-q --latents long -o r.mp4 --contact-sheet r.png "
                  "--raw-out r.raw") == 0
           && decode("-q --latents l.st -o r.y4m") == 0
           && decode("-q --latents l.st -o r/%%03d.png") == 0
           && decode("-q --latents l.st -o s.mp4") == 0, "whole decodings: %s",
           said);
    expect(!exists(at("r.mp4.frames")) && !exists(at("r.y4m.frames"))
           && !exists(at("r.%03d.png.frames")), "nothing is left of them");
}

#define ALL "--latents long -o k.mp4 --contact-sheet k.png --raw-out k.raw " \
            "--log-json k.log "
static void test_encoder(void)
{
    put_ffmpeg(0, "exit 1");
    expect(decode("--latents long -o k.mp4") == 1 && exists(at("k.mp4.frames"))
           && exists(at("k.unfinished.mp4"))
           && strstr(said, "kept in k.mp4.frames; the same command"),
           "nothing can be seen in an empty file: %s", said);
    unlink(at("k.mp4.frames"));
    unlink(at("k.unfinished.mp4"));
    put_ffmpeg(60 * FRAME,
               "printf '\\0\\0\\0\\10moof\\0\\0\\0\\377mdat' | "
               "dd of=\"${a#file:}\" conv=notrunc 2> /dev/null\nexit 1");
    expect(decode(ALL) == 1
           && strstr(said, "kept in k.mp4.frames")
           && strstr(said, "can be seen in k.unfinished.mp4")
           && strstr(said, "--resume goes on"), "ffmpeg dies: %s", said);
    struct stat st;
    expect(!stat(at("k.unfinished.mp4"), &st) && st.st_size == 60 * FRAME,
           "what it has written is there");
    expect(!exists(at("k.mp4")) && !exists(at("k.png")) && !exists(at("k.raw")),
           "no output has its final name");
    expect(decode(ALL) == 2 && strstr(said, "go on with it by --resume"),
           "not without a word: %s", said);
    put_ffmpeg(110 * FRAME, "kill -9 $PPID\nexec cat > /dev/null");
    expect(decode(ALL "--resume") == 128 + SIGKILL, "killed: %s", said);
    expect(strstr(text_of(at("stderr")), "frames are there") != NULL,
           "it went on: %s", said);
    put_ffmpeg(-1, "");
    run_after("rm k.log; ", "--version > /dev/null");
    expect(decode(ALL "--resume") == 0, "to the end: %s", said);
    const int made = count(text_of(at("k.log")), "\"decode\"");
    expect(made > 0 && made < LONG, "%d latents were decoded", made);
    expect_same("k.mp4", "r.mp4");
    expect_same("k.png", "r.png");
    expect_same("k.raw", "r.raw");
    expect(!exists(at("k.mp4.frames")) && !exists(at("k.unfinished.mp4")),
           "and no frames are kept any more");
}

/* A file that may not grow: y4m and what is kept of it alike. */
static void test_limit(void)
{
    const int blocks = 20 * FRAME / 512;
    char before[100];
    snprintf(before, sizeof before, "ulimit -f %d; ", blocks);
    expect(run_after(before, "decode -t 1 --vae %s --latents l.st -o y.y4m",
                     vae) == 1 && exists(at("y.y4m.frames"))
           && !strncmp(text_of(at("y.unfinished.y4m")), "YUV4MPEG2", 9),
           "the limit: %s", said);
    expect(decode("--latents l.st -o y.y4m --resume") == 0
           && strstr(said, "frames are there"), "more room: %s", said);
    expect_same("y.y4m", "r.y4m");
    expect(!exists(at("y.unfinished.y4m")), "it has its final name");
    put_file(at("z.unfinished.y4m"), "mine", 0644);
    expect(decode("--latents l.st -o z.y4m") == 0
           && !strcmp(text_of(at("z.unfinished.y4m")), "mine"),
           "somebody's file of that name: %s", said);
    put_file(at("bin/ffmpeg"), "#!/bin/sh\nexec cat > /dev/null\n", 0755);
    expect(decode("--latents l.st -o n.mp4") == 1 && !exists(at("n.mp4"))
           && strstr(said, "has written nothing"), "no file: %s", said);
}

/* A real ffmpeg, whose feeder is killed: what is there can be played, also
 * without its end. The complete file is an ordinary one. */
static void test_real(void)
{
    char real[500] = "", text[1200];
    const int status = system(for_shell("command -v ffmpeg > /dev/null"));
    FILE *f = status ? NULL : popen("command -v ffmpeg", "r");
    if (!f || !fgets(real, sizeof real, f)) {
        skip("videos that are cut: ffmpeg is not installed");
        if (f) pclose(f);
        return;
    }
    pclose(f);
    real[strcspn(real, "\n")] = 0;
    snprintf(text, sizeof text, "#!/bin/sh\n"
             "case \"$*\" in *' copy '*) exec %s \"$@\";; esac\n"
             "head -c %d | %s \"$@\"\nkill -9 $PPID\n", real, 120 * FRAME,
             real);
    put_file(at("bin/ffmpeg"), text, 0755);
    expect(decode("--latents long -o v.mp4") == 128 + SIGKILL, "killed: %s",
           said);
    snprintf(text, sizeof text, "head -c $(($(wc -c < v.unfinished.mp4) * 2 / "
             "3)) v.unfinished.mp4 > cut.mp4; for i in v.unfinished cut; do %s "
             "-v fatal -i $i.mp4 -f framecrc - | grep -c '^0,' > $i.frames; "
             "done; ", real);
    run_after(text, "--version > /dev/null");
    expect(atoi(text_of(at("v.unfinished.frames"))) == 120, "all frames: %s",
           text_of(at("v.unfinished.frames")));
    expect(atoi(text_of(at("cut.frames"))) >= 32, "without the end: %s",
           text_of(at("cut.frames")));
    snprintf(text, sizeof text, "#!/bin/sh\nexec %s \"$@\"\n", real);
    put_file(at("bin/ffmpeg"), text, 0755);
    expect(decode("--latents long -o v.mp4 --resume") == 0, "%s", said);
    run_after("grep -c moof v.mp4 > moof; ", "--version > /dev/null");
    expect(atoi(text_of(at("moof"))) == 0 && exists(at("v.mp4")),
           "an ordinary mp4");
}

/* An ffmpeg that dies while it makes the index leaves half of a copy. */
static void test_index(void)
{
    put_file(at("bin/ffmpeg"), "#!/bin/sh\nfor a; do :; done\n"
             "case \"$*\" in *' copy '*) head -c 100 /dev/zero > "
             "\"${a#file:}\"; exit 1;; esac\nexec cat > \"${a#file:}\"\n",
             0755);
    expect(decode("--latents l.st -o i.mp4") == 0
           && strstr(said, "warning: i.mp4 stays in fragments"),
           "without index: %s", said);
    expect_same("i.mp4", "s.mp4");
    expect(!exists(at("i.unfinished.mp4.index")), "no copy is left");
    put_ffmpeg(-1, "");
}

/* The video of a link is made where the link points to. */
static void test_link(void)
{
    mkdir(at("far"), 0777);
    expect(!symlink("far/to.mp4", at("link.mp4")), "a link");
    put_ffmpeg(5 * FRAME, "exit 1");
    expect(decode("--latents l.st -o link.mp4") == 1
           && exists(at("far/to.unfinished.mp4"))
           && !exists(at("link.unfinished.mp4")), "interrupted: %s", said);
    put_ffmpeg(-1, "");
    expect(decode("--latents l.st -o link.mp4 --resume") == 0, "%s", said);
    expect_same("far/to.mp4", "s.mp4");
    expect(!exists(at("far/to.unfinished.mp4"))
           && !unlink(at("link.mp4")), "the link stays one");
    expect(exists(at("far/to.mp4")), "and its end is the video");
}

static void test_pictures(void)
{
    char a[100], b[100];
    mkdir(at("p"), 0777);
    put_file(at("p/017.png"), "mine", 0644);
    expect(decode("--latents l.st -o p/%%03d.png") == 1
           && exists(at("p/016.png"))
           && strstr(said, "it stays"), "a file in the way: %s", said);
    expect(exists(at("p.%03d.png.frames")), "its frames are kept");
    expect(decode("--latents l.st -o p/%%03d.png --resume") == 1
           && !strcmp(text_of(at("p/017.png")), "mine"),
           "going on neither: %s", said);
    expect(!truncate(at("p.%03d.png.frames"), 512 + 5 * (64 + FRAME)),
           "frames are lost whose pictures are there");
    expect(decode("--latents l.st -o p/%%03d.png --resume") == 1
           && strstr(said, "5 of 37 frames are there")
           && strstr(said, "p/017.png") && exists(at("p/016.png"))
           && !strcmp(text_of(at("p/017.png")), "mine"),
           "its own pictures are made again: %s", said);
    unlink(at("p/017.png"));
    expect(decode("--latents l.st -o p/%%03d.png --resume") == 0,
           "without it: %s", said);
    for (int i = 0; i < 4 * SHORT - 3; i += 9) {
        snprintf(a, sizeof a, "p/%03d.png", i);
        snprintf(b, sizeof b, "r/%03d.png", i);
        expect_same(a, b);
    }
}

/* ---- what is there ------------------------------------------------------- */

/* Leave frames of d.mp4. */
static void interrupt(void)
{
    put_ffmpeg(5 * FRAME, "exit 1");
    expect(decode("-q --latents l.st -o d.mp4 --overwrite") == 1
           && exists(at("d.mp4.frames")), "interrupted: %s", said);
    put_ffmpeg(-1, "");
}

static void test_damage(void)
{
    interrupt();
    const int fd = open(at("d.mp4.frames"), O_RDWR);
    char c = 0;
    const off_t place = 512 + 3 * (64 + FRAME) + 100;
    expect(fd >= 0 && pread(fd, &c, 1, place) == 1, "read a byte");
    c ^= 1;
    expect(pwrite(fd, &c, 1, place) == 1, "damage it");
    close(fd);
    expect(decode("--latents l.st -o d.mp4 --resume") == 0
           && strstr(said, "damaged"), "a bit that turned: %s", said);
    expect_same("d.mp4", "s.mp4");
    unlink(at("d.mp4"));
    expect(decode("--latents l.st -o d.mp4 --resume") == 0
           && strstr(said, "nothing to resume in d.mp4.frames; starting from "
                     "the beginning"), "no frames: %s", said);
    unlink(at("d.mp4"));
}

static void test_others(void)
{
    interrupt();
    const int fd = open(at("d.mp4.frames"), O_RDWR);
    expect(fd >= 0 && !flock(fd, LOCK_EX), "somebody decodes");
    expect(decode("--latents l.st -o d.mp4 --resume") == 2
           && strstr(said, "another run is writing d.mp4.frames"), "%s", said);
    close(fd);
    expect(decode("--latents l.st -o d.mp4 --resume --raw-out d.raw") == 2
           && strstr(said, "another decoding"), "other outputs: %s", said);
    expect(sizeof(tt_real) == 8
           || (decode("--latents l.st -o d.mp4 --resume --vae-class vdp") == 2
               && strstr(said, "another decoding")), "another class: %s", said);
    run_after("mv l.st kept.st; ", "--version > /dev/null");
    const int64_t dim[5] = {1, SHORT, 16, SIDE / 8, SIDE / 8};
    put_tensor(at("l.st"), "latents", 5, dim, other_wave);
    expect(decode("--latents l.st -o d.mp4 --resume") == 2
           && strstr(said, "no frame of these latents"), "other latents: %s",
           said);
    expect(exists(at("d.mp4.frames")), "the frames are still kept");
    run_after("mv kept.st l.st; ", "--version > /dev/null");
    expect(decode("--latents l.st -o d.mp4 --resume") == 0,
           "those of before: %s", said);
    expect_same("d.mp4", "s.mp4");
    put_file(at("e.y4m.frames"), "mine", 0644);
    refuses(2, "move it away", "decode --vae %s --latents l.st -o e.y4m "
            "--resume", vae);
    expect(!strcmp(text_of(at("e.y4m.frames")), "mine"), "it stays");
}

/* What the VAE remembers is in files, which no device has. */
static void test_history(void)
{
    if (test_guarded()) {
        refuses(1, "cannot lie there", "decode --vae %s --latents l.st "
                "-o h.y4m --history-dir .", vae);
        return;
    }
    expect(decode("--latents l.st -o h.mp4 --history-dir .") == 0, "in files: "
           "%s", said);
    expect_same("h.mp4", "s.mp4");
    unlink(at("h.mp4"));
    refuses(1, "nowhere: history of the VAE needs a file", "decode --vae %s "
            "--latents l.st -o h.y4m --history-dir nowhere", vae);
}

/* No output and no input may have the name of the frames. */
static void test_names(void)
{
    refuses(2, "--raw-out and the frames so far would both write",
            "decode --vae %s --latents l.st -o n.y4m --raw-out n.y4m.frames",
            vae);
    static const char *const more[] = {
        "-o n.y4m --latents-out n.y4m.frames", "-o n.y4m --dump n.y4m.frames",
        "-o - --latents-out n.st --dump n.st.frames",
        "-o n.y4m --latents-out n.st --trace-cache n.st.unfinished",
        "-o n.y4m --latents-out n.st --record ./n.st.state2"};
    for (int i = 0; i < 5; i++)
        refuses(2, "would both write", "generate -q -m %s --embeds %s --vae %s "
                "-W 32 -H 32 --latents 6 %s", model, embeds, vae, more[i]);
    run_after("cp l.st i.y4m.frames; ", "--version > /dev/null");
    refuses(2, "would be kept under that name", "decode --vae %s --latents "
            "i.y4m.frames -o i.y4m --overwrite", vae);
    expect(same(at("i.y4m.frames"), at("l.st")), "the input is as it was");
    unlink(at("i.y4m.frames"));
}

/* The config.json beside the VAE says what its latents mean: frames of another
 * one are none of ours. */
static void test_config(void)
{
    char text[800] = "{\"latents_mean\": [0";
    for (int i = 1; i < 16; i++) strcat(text, ",0");
    strcat(text, "], \"latents_std\": [1");
    for (int i = 1; i < 16; i++) strcat(text, ",1");
    strcat(text, "]}");
    char copy[1400];
    snprintf(copy, sizeof copy, "mkdir v && cp %s v/w.st; ", vae);
    run_after(copy, "--version > /dev/null");
    put_ffmpeg(5 * FRAME, "exit 1");
    expect(run_after("PATH=$PWD/bin:$PATH ", "decode -q -t 1 --vae v/w.st "
                     "--latents l.st -o c.mp4") == 1
           && exists(at("c.mp4.frames")), "interrupted: %s", said);
    put_file(at("v/config.json"), text, 0644);
    put_ffmpeg(-1, "");
    expect(run_after("PATH=$PWD/bin:$PATH ", "decode -q -t 1 --vae v/w.st "
                     "--latents l.st -o c.mp4 --resume") == 2
           && strstr(said, "another decoding"), "another config: %s", said);
    unlink(at("v/config.json"));
    expect(run_after("PATH=$PWD/bin:$PATH ", "decode -t 1 --vae v/w.st "
                     "--latents l.st -o c.mp4 --resume") == 0
           && strstr(said, "frames are there"), "its own: %s", said);
    expect_same("c.mp4", "s.mp4");
}

/* Files of others that stay: one beside the video, one that is named only when
 * the decoding goes on. Without its frames an unfinished video is such a file
 * too. */
static void test_strangers(void)
{
    unlink(at("d.mp4"));
    interrupt();
    unlink(at("d.mp4.frames"));
    for (int i = 0; i < 2; i++)
        expect(decode("--latents l.st -o d.mp4 %s", i ? "--overwrite" : "") == 0
               && strstr(said, "warning: d.unfinished.mp4 is there without "
                         "d.mp4.frames") && exists(at("d.unfinished.mp4")),
               "its frames were removed: %s", said);
    expect_same("d.mp4", "s.mp4");
    unlink(at("d.unfinished.mp4"));
    expect(decode("--latents l.st -o d.mp4 --overwrite") == 0
           && !strstr(said, "d.unfinished.mp4"), "and it: %s", said);
    put_file(at("o.unfinished.mp4"), "mine", 0644);
    expect(decode("--latents l.st -o o.mp4 --overwrite") == 0
           && !strcmp(text_of(at("o.unfinished.mp4")), "mine"),
           "beside the video: %s", said);
    unlink(at("d.mp4"));
    interrupt();
    put_file(at("mine.png"), "mine", 0644);
    expect(decode("--latents l.st -o d.mp4 --resume --contact-sheet mine.png")
           == 2 && strstr(said, "--contact-sheet would replace mine.png")
           && !strcmp(text_of(at("mine.png")), "mine"), "a sheet: %s", said);
    put_file(at("d.mp4"), "mine", 0644);
    expect(decode("--latents l.st -o d.mp4 --resume") == 2
           && strstr(said, "-o would replace d.mp4, which is there")
           && !strcmp(text_of(at("d.mp4")), "mine"), "the video: %s", said);
    unlink(at("d.mp4"));
    expect(decode("--latents l.st -o d.mp4 --resume") == 0, "%s", said);
    expect_same("d.mp4", "s.mp4");
    refuses(2, "--raw-out and the list of outputs so far", "decode --vae %s "
            "--latents l.st -o n.y4m --raw-out n.y4m.frames.files", vae);
}

/* Video and sheet are complete, the third output is not: all go on. */
static void test_last(void)
{
#define LAST "--latents l.st -o t.mp4 --contact-sheet t.png --raw-out t/r"
    mkdir(at("t"), 0777);
    put_file(at("bin/ffmpeg"), "#!/bin/sh\nfor a; do :; done\n"
             "rmdir t 2> /dev/null\n"
             "exec cat > \"${a#file:}\"\n", 0755);
    expect(decode(LAST) == 1 && exists(at("t.mp4")) && exists(at("t.png"))
           && strstr(said, "--resume goes on")
           && !strstr(said, "can be seen in"), "no folder: %s", said);
    mkdir(at("t"), 0777);
    put_ffmpeg(-1, "");
    run_after("mv t.png t.kept; cp l.st t.png; ", "--version > /dev/null");
    expect(decode(LAST " --resume") == 2 && same(at("t.png"), at("l.st")),
           "one of them is somebody's: %s", said);
    run_after("cp t.kept t.png; ", "--version > /dev/null");
    expect(decode(LAST " --resume") == 0 && exists(at("t/r"))
           && !exists(at("t.mp4.frames.files")), "%s", said);
    expect_same("t.mp4", "s.mp4");
}

/* ---- generate ------------------------------------------------------------ */

TT_PRINTF(2, 3)
static int generate(const char *after, const char *fmt, ...)
{
    char args[1000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(args, sizeof args, fmt, ap);
    va_end(ap);
    return run_after("PATH=$PWD/bin:$PATH ", "generate -t 1 -m %s --embeds %s "
                     "--vae %s -W 32 -H 32 %s%s", model, embeds, vae, args,
                     after);
}

/* The latents are complete and stay; a longer video takes the frames of the
 * shorter one. */
static void test_generate(void)
{
    put_ffmpeg(-1, "");
    expect(generate("", "-q -o g.mp4 --latents 12") == 0
           && generate("", "-q -o h.mp4 --latents 15") == 0, "%s", said);
    put_ffmpeg(30 * FRAME, "exit 1");
    expect(generate("", "-o a.mp4 --latents 12") == 1
           && strstr(said, "the latents are complete in")
           && strstr(said, "kept in a.mp4.frames"), "ffmpeg dies: %s", said);
    put_ffmpeg(-1, "");
    expect(generate("", "-o a.mp4 --latents 12") == 2
           && strstr(said, "--resume"), "not made anew: %s", said);
    expect(generate("", "-o a.mp4 --latents 12 --resume") == 0
           && strstr(said, "frames are there"), "%s", said);
    expect_same("a.mp4", "g.mp4");
    put_ffmpeg(30 * FRAME, "exit 1");
    expect(generate("", "-o b.mp4 --latents 12") == 1, "%s", said);
    put_ffmpeg(-1, "");
    expect(generate("", "-o b.mp4 --latents 15 --resume") == 0
           && strstr(said, "frames are there"), "longer: %s", said);
    expect_same("b.mp4", "h.mp4");
}

/* A reader of the standard output that goes away. */
static void test_pipe(void)
{
    expect(generate(" > whole.y4m", "-q -o - --latents 12 --latents-out w.st")
           == 0, "%s", said);
    generate(" 2> err | head -c 2000 > /dev/null", "-o - --latents 12 "
             "--latents-out v.st");
    expect(strstr(text_of(at("err")), "kept in v.st.frames") != NULL,
           "a closed pipe: %s", text_of(at("err")));
    expect(generate(" > again.y4m", "-o - --latents 12 --latents-out v.st "
                    "--resume") == 0 && strstr(said, "frames are there"),
           "again: %s", said);
    expect_same("again.y4m", "whole.y4m");
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("frames", argv)) return test_end();
    reference(model, "dit/models/tiny_a");
    reference(vae, "vae_full_a/weights.safetensors");
    reference(embeds, "dit/roll_tether_K9/inputs.safetensors");
    make_references();
    test_encoder();
    test_limit();
    test_real();
    test_index();
    test_link();
    test_pictures();
    test_damage();
    test_others();
    test_history();
    test_names();
    test_config();
    test_strangers();
    test_last();
    test_generate();
    test_pipe();
    return program_end();
}
