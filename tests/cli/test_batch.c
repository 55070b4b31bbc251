/* test_batch.c: several videos of one call.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties  one that fails leaves the others alone; --resume skips what is
 *             complete and makes the rest, to the bytes of an undisturbed call;
 *             the summary says what became of each. */
#include <fcntl.h>
#include <sys/file.h>

#include "io/json.h"
#include "tests/cli/ffmpeg.h"

static char model[1100], vae[1100], embeds[1100];

/* Three samples, with an `ffmpeg` of our own before all others. */
TT_PRINTF(1, 2)
static int three(const char *fmt, ...)
{
    char args[1000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(args, sizeof args, fmt, ap);
    va_end(ap);
    return run_after("PATH=$PWD/bin:$PATH ", "generate -t 1 -m %s --embeds %s "
                     "--vae %s -W 16 -H 16 --latents 6 --num-samples 3 %s",
                     model, embeds, vae, args);
}

static void expect_same(const char *kind, const char *ending)
{
    char a[100], b[100];
    for (int i = 0; i < 3; i++) {
        snprintf(a, sizeof a, "%s-%d.%s", kind, i, ending);
        snprintf(b, sizeof b, "whole-%d.%s", i, ending);
        expect(same(at(a), at(b)), "%s has the bytes of %s", a, b);
    }
}

/* What the summary says of video i. */
static const char *in_summary(const char *name, int i, const char *key)
{
    static char answer[400];
    tt_arena mem = {0};
    const tt_json *j = NULL;
    const char *text = text_of(at(name));
    tt_json_parse(ctx, &mem, &j, text, strlen(text), name);
    const tt_json *v = tt_json_at(tt_json_get(j, "list"), i);
    snprintf(answer, sizeof answer, "%s", tt_json_str(v, key, "(none)"));
    expect(!ctx->status && tt_json_int(j, "tether_summary", 0) == 1,
           "%s is a summary", name);
    tt_clear(ctx);
    tt_arena_free(&mem);
    return answer;
}

static ino_t inode(const char *name)
{
    struct stat st;
    return stat(at(name), &st) ? 0 : st.st_ino;
}

/* ---- one fails ----------------------------------------------------------- */

static void test_one_fails(void)
{
    mkdir(at("a-1.y4m"), 0777);
    expect(three("-o a.y4m --summary a.json --log-json a.log") == 1,
           "one cannot be written: %s", said);
    expect(strstr(said, "video 2 of 3 failed")
           && strstr(said, "3 videos: 2 complete, 1 failed")
           && strstr(said, "1 of 3 videos failed"), "what is said: %s", said);
    expect(exists(at("a-0.y4m")) && exists(at("a-2.y4m")),
           "the others are made");
    expect(!strcmp(in_summary("a.json", 0, "state"), "complete")
           && !strcmp(in_summary("a.json", 1, "state"), "failed")
           && !strcmp(in_summary("a.json", 2, "output"), "a-2.y4m")
           && strstr(in_summary("a.json", 1, "error"), "directory"),
           "the summary: %s", text_of(at("a.json")));
    expect(strstr(text_of(at("a.log")), "\"state\":\"failed\"")
           || strstr(text_of(at("a.log")), "\"state\": \"failed\""),
           "the log: %s", text_of(at("a.log")));

    rmdir(at("a-1.y4m"));
    const ino_t before = inode("a-0.y4m");
    expect(three("-o a.y4m --summary a.json --resume") == 0
           && strstr(said, "3 videos: 1 complete, 2 there before"),
           "resumed: %s", said);
    expect(before && inode("a-0.y4m") == before, "the first is left alone");
    expect(!strcmp(in_summary("a.json", 2, "state"), "there_before"),
           "the summary: %s", text_of(at("a.json")));
    expect_same("a", "y4m");
    expect_same("a", "latents.safetensors");
}

/* ---- videos that are older than their latents ---------------------------- */

/* Latents that were made longer, and not decoded. */
static void test_older(void)
{
    expect(three("-o c.y4m") == 0, "short ones: %s", said);
    expect(three("-o c.y4m --latents 9 --resume --no-decode") == 0,
           "longer latents: %s", said);
    expect(three("-o c.y4m --latents 9 --resume") == 0
           && strstr(said, "3 videos: 3 complete"), "decoded: %s", said);
    expect(three("-o c.y4m --latents 9 --resume") == 0
           && strstr(said, "3 videos: 3 there before"), "again: %s", said);
}

/* Nothing says that these are of this run: they are decoded again. */
static void test_unproved(void)
{
    expect(three("-o u.y4m") == 0, "made: %s", said);
    put_file(at("u-1.latents.safetensors.unfinished"), "x", 0644);
    expect(three("-o u.y4m --resume") == 0
           && strstr(said, "3 videos: 1 complete, 2 there before"),
           "another run has begun: %s", said);
    put_file(at("u-0.latents.safetensors.unfinished"), "x", 0644);
    expect(three("-o u.y4m --resume --seed 9") == 2
           && strstr(said, "go on with --resume --overwrite"), "%s", said);
    expect(three("-o p%%03d.png") == 0, "pictures: %s", said);
    expect(three("-o p%%03d.png --resume") == 0
           && strstr(said, "3 videos: 3 complete"), "pictures: %s", said);
    expect(three("-o n.y4m --latents-out one.st") == 0
           && three("-o n.y4m --latents-out two.st --seed 9 --overwrite") == 0
           && three("-o n.y4m --latents-out one.st --resume") == 0
           && strstr(said, "3 videos: 3 complete"), "latents: %s", said);
    expect_same("n", "y4m");
}

/* ---- killed in the second ------------------------------------------------ */

static void test_killed(void)
{
    put_ffmpeg(-1, "case $a in *k-1.*) head -c 2000; kill -9 $PPID; exit;; "
               "esac");
    expect(three("-o k.mp4 --resume") == 128 + SIGKILL, "killed: %s", said);
    expect(exists(at("k-0.mp4")) && !exists(at("k-1.mp4")), "in the second");
    put_ffmpeg(-1, "");
    expect(three("-o k.mp4 --resume") == 0
           && strstr(said, "video 1 of 3 is complete"), "resumed: %s", said);
    expect_same("k", "mp4");
    expect(three("-o k.mp4 --resume --latents 9") == 0
           && strstr(said, "3 videos: 3 complete"), "longer: %s", said);
    expect(three("-o k.mp4 --resume --overwrite --latents 9") == 0
           && strstr(said, "3 videos: 3 complete"), "decoded again: %s", said);
}

/* A summary that cannot be written does not hide why the work ended. */
static void test_summary(void)
{
    expect(three("-o y.y4m --summary y.json") == 0
           && three("-o y.y4m --summary y.json --resume") == 0,
           "its own: %s", said);
    expect(three("-o z.y4m -s 9 --summary y.json") == 2
           && strstr(said, "--summary would replace y.json"), "another's: %s",
           said);
    if (access("/dev/full", W_OK)) {
        skip("a summary that is lost: there is no /dev/full");
        return;
    }
    put_ffmpeg(-1, "case $* in *' copy '*) ;; *i-1.*) kill -TERM $PPID;; esac");
    expect(three("-o i.mp4 --summary /dev/full") == 128 + SIGTERM
           && strstr(said, "cannot write /dev/full"), "stopped: %s", said);
    put_ffmpeg(-1, "");
}

/* ---- others -------------------------------------------------------------- */

static void test_locked(void)
{
    put_file(at("l-1.unfinished.y4m"), "", 0644);
    const int fd = open(at("l-1.unfinished.y4m"), O_RDWR);
    expect(fd >= 0 && !flock(fd, LOCK_EX), "someone decodes the second");
    expect(three("-o l.y4m") == 1 && strstr(said, "cannot write l-1.y4m: "
                                            "another program is writing it")
           && exists(at("l-2.y4m")), "the others are made: %s", said);
    close(fd);
    expect(three("-o l.y4m --resume") == 0, "the lock is gone: %s", said);
    expect_same("l", "y4m");
}

static void test_words(void)
{
    put_ffmpeg(-1, "echo 'a library could not be preloaded' >&2");
    expect(three("-o w.mp4") == 0 && strstr(said, "could not be preloaded"),
           "words that harm nothing: %s", said);
    expect_same("w", "mp4");
    put_file(at("mine.json"), "{}", 0644);
    expect(three("-o m.y4m --summary mine.json") == 2
           && !strcmp(text_of(at("mine.json")), "{}"), "no summary: %s", said);
    expect(three("-o m.y4m --summary ours.json") == 0
           && three("-o m.y4m --summary mine.json --resume") == 2
           && !strcmp(text_of(at("mine.json")), "{}"), "no summary: %s", said);
    expect(three("-o m2.y4m --summary ours.json --resume") == 0,
           "a summary of an earlier call: %s", said);
    refuses(2, "-p is empty", "generate -m %s -p '  ' -o e.y4m", model);
    put_file(at("s.st.state1"), "mine", 0644);
    refuses(2, "s.st.state1", "generate -m %s --embeds %s --no-decode "
            "--latents-out s.st", model, embeds);
    expect(!exists(at("s.st.unfinished")), "and nothing is left");
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("batch", argv)) return test_end();
    reference(model, "dit/models/tiny_a");
    reference(vae, "vae_full_a/weights.safetensors");
    reference(embeds, "dit/roll_tether_K9/inputs.safetensors");
    put_ffmpeg(-1, "");
    expect(three("-q -o whole.y4m") == 0 && three("-q -o whole.mp4 --resume "
           "--latents-out other.st") == 0, "whole calls: %s", said);
    test_one_fails();
    test_older();
    test_unproved();
    test_killed();
    test_summary();
    test_locked();
    test_words();
    return program_end();
}
