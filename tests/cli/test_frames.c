/* test_frames.c: a decoding that ends in its middle.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property  nothing incomplete has a final name; what can be seen of a video
 *           stays under another one; the next decoding has the same bytes.
 * Model     an `ffmpeg` of our own takes so many bytes and then dies, or kills
 *           the program that feeds it: no moment depends on the clock. */
#include <fcntl.h>
#include <sys/file.h>

#include "tests/cli/ffmpeg.h"

static char model[1100], vae[1100], embeds[1100];
/* LONG: more frames than the socket to ffmpeg holds. */
enum { LONG = 44, SHORT = 10, SIDE = 24, FRAME = 3 * SIDE * SIDE };

static float wave(int64_t i)
{
    return (float)(i * 7919 % 1009) / 300 - 1.7f;
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
    expect(!exists(at("r.unfinished.mp4")) && !exists(at("r.unfinished.y4m")),
           "nothing is left of them");
}

#define ALL "--latents long -o k.mp4 --contact-sheet k.png --raw-out k.raw "
static void test_encoder(void)
{
    put_ffmpeg(0, "exit 1");
    expect(decode("--latents long -o k.mp4") == 1
           && !exists(at("k.unfinished.mp4")),
           "nothing can be seen in an empty file: %s", said);
    put_ffmpeg(60 * FRAME,
               "printf '\\0\\0\\0\\10moof\\0\\0\\0\\377mdat' | "
               "dd of=\"${a#file:}\" conv=notrunc 2> /dev/null\nexit 1");
    expect(decode(ALL) == 1
           && strstr(said, "frames can be seen in k.unfinished.mp4"),
           "ffmpeg dies: %s", said);
    struct stat st;
    expect(!stat(at("k.unfinished.mp4"), &st) && st.st_size == 60 * FRAME,
           "what it has written is there");
    expect(!exists(at("k.mp4")) && !exists(at("k.png")) && !exists(at("k.raw")),
           "no output has its final name");
    expect(decode(ALL) == 2
           && strstr(said, "the video so far would replace k.unfinished.mp4, "
                     "which is there; give another name, or --overwrite "
                     "(--resume begins again"),
           "not without a word: %s", said);
    put_ffmpeg(110 * FRAME, "kill -9 $PPID\nexec cat > /dev/null");
    expect(decode(ALL "--resume") == 128 + SIGKILL, "killed: %s", said);
    put_ffmpeg(-1, "");
    expect(decode(ALL "--resume") == 0, "to the end: %s", said);
    expect(decode(ALL "--resume") == 2 && strstr(said, "-o would replace k.mp4"),
           "it is complete: %s", said);
    expect_same("k.mp4", "r.mp4");
    expect_same("k.png", "r.png");
    expect_same("k.raw", "r.raw");
    expect(!exists(at("k.unfinished.mp4")), "it has its final name");
}

/* A file that may not grow. */
static void test_limit(void)
{
    char before[100];
    snprintf(before, sizeof before, "ulimit -f %d; ", 20 * FRAME / 512);
    expect(run_after(before, "decode -t 1 --vae %s --latents l.st -o y.y4m",
                     vae) == 1
           && !strncmp(text_of(at("y.unfinished.y4m")), "YUV4MPEG2", 9)
           && strstr(said, "can be seen in y.unfinished.y4m"),
           "the limit: %s", said);
    expect(decode("--latents l.st -o y.y4m --overwrite") == 0,
           "more room: %s", said);
    expect_same("y.y4m", "r.y4m");
    expect(!exists(at("y.unfinished.y4m")), "it has its final name");
    put_file(at("z.unfinished.y4m"), "mine", 0644);
    expect(decode("--latents l.st -o z.y4m") == 2
           && !strcmp(text_of(at("z.unfinished.y4m")), "mine"),
           "someone's file of that name: %s", said);
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
    expect(decode("--latents long -o v.mp4 --overwrite") == 0, "%s", said);
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
    expect(!symlink("far/to.y4m", at("link.y4m")), "a link");
    char before[100];
    snprintf(before, sizeof before, "ulimit -f %d; ", 20 * FRAME / 512);
    expect(run_after(before, "decode -t 1 --vae %s --latents l.st -o link.y4m",
                     vae) == 1 && exists(at("far/to.unfinished.y4m"))
           && !exists(at("link.unfinished.y4m")), "interrupted: %s", said);
    expect(decode("--latents l.st -o link.y4m --overwrite") == 0, "%s", said);
    expect_same("far/to.y4m", "r.y4m");
    expect(!exists(at("far/to.unfinished.y4m"))
           && !unlink(at("link.y4m")), "the link stays one");
    expect(exists(at("far/to.y4m")), "and its end is the video");
}

static void test_pictures(void)
{
    mkdir(at("p"), 0777);
    put_file(at("p/017.png"), "mine", 0644);
    expect(decode("--latents l.st -o p/%%03d.png") == 2
           && strstr(said, "-o would replace p/017.png")
           && !exists(at("p/000.png"))
           && !strcmp(text_of(at("p/017.png")), "mine"), "any of them: %s",
           said);
    expect(decode("--latents l.st -o p/%%03d.png --overwrite") == 0, "%s",
           said);
    expect_same("p/017.png", "r/017.png");
    expect_same("p/036.png", "r/036.png");
}

/* Another program that writes the same video. */
static void test_lock(void)
{
    put_file(at("d.unfinished.mp4"), "", 0644);
    const int fd = open(at("d.unfinished.mp4"), O_RDWR);
    expect(fd >= 0 && !flock(fd, LOCK_EX), "someone decodes");
    for (int i = 0; i < 2; i++)
        expect(decode("--latents l.st -o d.mp4 %s", i ? "--overwrite" : "")
               == 1 && strstr(said, "another program is writing it")
               && exists(at("d.unfinished.mp4")), "%s", said);
    close(fd);
    expect(decode("--latents l.st -o d.mp4") == 0, "the lock is gone: %s",
           said);
    expect_same("d.mp4", "s.mp4");
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

/* No output may have the name of another, nor of what it is until then. */
static void test_names(void)
{
    refuses(2, "--raw-out and the video so far would both write", "decode "
            "--vae %s --latents l.st -o n.y4m --raw-out n.unfinished.y4m", vae);
    static const char *const more[] = {
        "-o n.y4m --dump n.unfinished.y4m",
        "-o n.y4m --latents-out n.st --trace-cache n.st.unfinished",
        "-o n.y4m --latents-out n.st --record ./n.st.state2"};
    for (int i = 0; i < 3; i++)
        refuses(2, "would both write", "generate -q -m %s --embeds %s --vae %s "
                "-W 32 -H 32 --latents 6 %s", model, embeds, vae, more[i]);
    refuses(2, "which --latents reads", "decode --vae %s --latents l.st "
            "-o i.y4m --raw-out l.st --overwrite", vae);
}

/* Video and sheet are complete, the third output is not. */
static void test_last(void)
{
#define LAST "--latents l.st -o t.mp4 --contact-sheet t.png --raw-out t/r "
    mkdir(at("t"), 0777);
    put_file(at("bin/ffmpeg"), "#!/bin/sh\nfor a; do :; done\n"
             "rmdir t 2> /dev/null\n"
             "exec cat > \"${a#file:}\"\n", 0755);
    expect(decode(LAST) == 1 && exists(at("t.mp4")) && exists(at("t.png"))
           && !strstr(said, "can be seen in"), "no folder: %s", said);
    mkdir(at("t"), 0777);
    put_ffmpeg(-1, "");
    expect(decode(LAST) == 2 && decode(LAST "--overwrite") == 0
           && exists(at("t/r")), "%s", said);
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

/* The latents are complete and stay; the video is decoded again, with --resume
 * and to the bytes of one run. */
static void test_generate(void)
{
    put_ffmpeg(-1, "");
    expect(generate("", "-q -o g.mp4 --latents 12") == 0
           && generate("", "-q -o h.mp4 --latents 15") == 0, "%s", said);
    for (int i = 0; i < 2; i++) {
        char a[20];
        snprintf(a, sizeof a, "a%d.mp4", i);
        put_ffmpeg(30 * FRAME, "exit 1");
        expect(generate("", "-o %s --latents 12", a) == 1
               && strstr(said, "the latents are complete in"), "ffmpeg dies: "
               "%s", said);
        put_ffmpeg(-1, "");
        expect(generate("", "-o %s --latents 12", a) == 2
               && strstr(said, "--resume"), "not made anew: %s", said);
        expect(generate("", "-o %s --latents %d --resume", a, i ? 15 : 12) == 0,
               "%s", said);
        expect_same(a, i ? "h.mp4" : "g.mp4");
    }
}

/* A reader of the standard output that goes away. */
static void test_pipe(void)
{
    expect(generate(" > whole.y4m", "-q -o - --latents 12 --latents-out w.st")
           == 0, "%s", said);
    generate(" 2> err | head -c 2000 > /dev/null", "-o - --latents 12 "
             "--latents-out v.st");
    expect(strstr(text_of(at("err")), "the latents are complete in v.st")
           != NULL, "a closed pipe: %s", text_of(at("err")));
    expect(generate(" > again.y4m", "-o - --latents 12 --latents-out v.st "
                    "--resume") == 0, "again: %s", said);
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
    test_lock();
    test_history();
    test_names();
    test_last();
    test_generate();
    test_pipe();
    return program_end();
}
