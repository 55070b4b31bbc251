/* test_during.c: frames that are made while latents still come.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties  every output of --decode during has the bytes of --decode after,
 *             on one rank and several; frames leave before the last chunk is
 *             done; what ends a run in its middle keeps its chunks, and it goes
 *             on with either value.
 * Model       an `ffmpeg` of our own takes so many frames and then dies, or
 *             kills the program that feeds it, and a reader of a pipe is slower
 *             than its writer: no moment depends on the clock. */
#include "tests/cli/ffmpeg.h"

#include "cli/cli.h"
#include "team/team.h"

static char model[1100], vae[1100], embeds[1100];
enum { LATENTS = 24, FRAMES = 4 * LATENTS - 3, SIDE = 32,
       FRAME = 3 * SIDE * SIDE };

/* `tether generate`; our ffmpeg comes first. */
TT_PRINTF(2, 3)
static int generate(const char *after, const char *fmt, ...)
{
    char args[1000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(args, sizeof args, fmt, ap);
    va_end(ap);
    return run_after("PATH=$PWD/bin:$PATH ", "generate -t 1 -m %s --embeds %s "
                     "--vae %s -W %d -H %d --latents %d %s%s", model, embeds,
                     vae, SIDE, SIDE, LATENTS, args, after);
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

/* ---- bytes --------------------------------------------------------------- */

static const char *const when[] = {"after", "during"};

static void make_both(const char *fmt)
{
    for (int i = 0; i < 2; i++) {
        char args[600];
        snprintf(args, sizeof args, fmt, when[i], when[i], when[i], when[i],
                 when[i], when[i], when[i]);
        expect(generate("", "-q --decode %s %s", when[i], args) == 0, "%s: %s",
               args, said);
    }
}

static void expect_both(const char *name)
{
    char a[100], b[100];
    snprintf(a, sizeof a, name, "after");
    snprintf(b, sizeof b, name, "during");
    expect_same(b, a);
}

static void test_bytes(void)
{
    char name[100];
    put_ffmpeg(-1, "");
    make_both("-o %s.mp4 --animation %s.apng --contact-sheet %s.png "
              "--latents-out %s.st --trace-cache %s.trace --analyze %s.run "
              "--log-json %s.log");
    make_both("-o %s-n.mp4 --cache deep-forcing --latents-out %s.noisy");
    make_both("-o %s-p.y4m --latents-out %s-p.st");
    make_both("-o %s-1.y4m --chunk 1 --latents-out %s-1.st");
    make_both("-o %s/%%03d.png");
    make_both("-o - --latents-out %s.pipe.st > %s.pipe");
    make_both("-o %s-i.y4m --initial-latents after.st --latents-out %s-i.st");
    static const char *const all[] = {
        "%s.mp4", "%s.apng", "%s.png", "%s.st", "%s.trace", "%s-n.mp4",
        "%s.noisy", "%s-p.y4m", "%s-1.y4m", "%s-1.st", "%s.pipe", "%s.pipe.st",
        "%s-i.y4m", "%s-i.st",
        "%s.run/features.safetensors", "%s.run/trace.safetensors"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) expect_both(all[i]);
    for (int i = 0; i < FRAMES; i++) {
        snprintf(name, sizeof name, "%%s/%03d.png", i);
        expect_both(name);
    }
    expect(!exists(at("during.st.state1"))
           && !exists(at("during.st.unfinished")), "nothing is left of them");
}

#define CLIPS "generate -q -t 1 -m %s --embeds %s --vae %s -W 48 -H 32 " \
              "--cache causvid --latents 9 --budget 9 --rollouts 3 "
/* Clips share frames, and each is decoded on its own. */
static void test_clips(void)
{
    for (int i = 0; i < 2; i++)
        expect(run(CLIPS "-o %s-c.y4m --decode %s --dump %s-c.dump "
                   "--dump-filter 'clip*rgb*'", model, embeds, vae, when[i],
                   when[i], when[i]) == 0, "clips: %s", said);
    expect_both("%s-c.y4m");
    expect_both("%s-c.dump");
}

/* The same with keys, values and what the VAE remembers in files. */
static void test_files(void)
{
    if (test_guarded()) return; /* no device has files */
    mkdir(at("kept"), 0777);
    expect(run(CLIPS "-o files-c.y4m --decode during --kv-dir kept "
                     "--history-dir kept", model, embeds, vae) == 0,
           "in files: %s", said);
    expect_same("files-c.y4m", "after-c.y4m");
    expect(rmdir(at("kept")) == 0, "nothing is left in their folder");
}

/* ---- order --------------------------------------------------------------- */

static void test_order(void)
{
    const char *log = text_of(at("during.log"));
    const char *last = NULL, *first = strstr(log, "\"decode\"");
    for (const char *c = log; (c = strstr(c, "\"chunk\":")); c++) last = c;
    expect(first && last && first < last, "frames before the last chunk");
    expect(count(log, "\"decode\"") == LATENTS, "every latent once");
    for (int i = 1; i < LATENTS / 3; i++) { /* 3 i latents, then chunk i + 1 */
        char word[40];
        snprintf(word, sizeof word, "\"latents_done\": %d, \"latents\":", 3 * i);
        const char *frames = strstr(log, word);
        snprintf(word, sizeof word, "\"chunk\": %d,", i);
        const char *chunk = strstr(log, word);
        expect(frames && chunk && frames < chunk, "frames of chunk %d", i);
    }
}

/* A pipe holds 21 frames, so the writer cannot be far ahead. */
static void test_viewer(void)
{
    char reader[200];
    snprintf(reader, sizeof reader, " | { head -c %d > first; cp v.log seen; "
             "cat > rest; }", 20 * FRAME);
    generate(reader, "-q -o - --decode during --latents-out v.st --log-json "
             "v.log");
    const char *seen = text_of(at("seen"));
    expect(count(seen, "\"chunk\":") >= 1
           && count(seen, "\"chunk\":") < LATENTS / 3,
           "20 frames can be seen after %d chunks", count(seen, "\"chunk\":"));
    run_after("cat first rest > viewed; ", "--version > /dev/null");
    expect_same("viewed", "after.pipe");
}

/* ---- ends in the middle -------------------------------------------------- */

/* What is left of a run whose ffmpeg took 30 frames. */
static void expect_kept(const char *what)
{
    expect(exists(at("k.st.unfinished")) && !exists(at("k.mp4"))
           && !exists(at("k.st")), "%s: chunks are kept, and nothing is "
           "complete: %s", what, said);
}

#define GOES_ON "-o k.mp4 --latents-out k.st --log-json k.log "
/* A state of every other chunk may be after the frames. */
static void test_ends(const char *cache, const char *mp4, const char *latents)
{
    static const char *const ends[] = {
        "exit 1", "kill -9 $PPID", "kill -2 $PPID\nexec cat > /dev/null"};
    static const int status[] = {1, 128 + SIGKILL, 128 + SIGINT};
    for (int i = 0; i < 6; i++) {
        char what[100];
        snprintf(what, sizeof what, "--cache %s, %s, then %s", cache,
                 ends[i / 2], when[i % 2]);
        put_ffmpeg(30 * FRAME, ends[i / 2]);
        const int got = generate("", GOES_ON "--decode during --cache %s "
                                 "--checkpoint-every %d", cache,
                                 status[i / 2] == 128 + SIGKILL ? 2 : 0);
        expect(got == status[i / 2], "%s: %d, %s", what, got, said);
        expect_kept(what);
        if (got < 128 + SIGKILL)
            /* what that ffmpeg wrote shows no picture */
            expect((strstr(said, "of 8 chunks are in k.st.unfinished")
                    || strstr(said, "of 8 chunks; they are in k.st."))
                   && !strstr(said, "can be seen")
                   && !strstr(said, "latents are complete"), "%s: %s", what,
                   said);
        put_ffmpeg(-1, "");
        unlink(at("k.log"));
        expect(generate("", GOES_ON "--resume --decode %s --cache %s",
                        when[i % 2], cache) == 0, "%s: %s", what, said);
        const int made = count(text_of(at("k.log")), "\"decode\"");
        const int chunks = count(text_of(at("k.log")), "\"chunk\":");
        expect(made == LATENTS && chunks > 0 && chunks < LATENTS / 3,
               "%s: %d latents were decoded, %d chunks made", what, made,
               chunks);
        expect_same("k.mp4", mp4);
        expect_same("k.st", latents);
        expect(!exists(at("k.st.state1"))
               && !exists(at("k.unfinished.mp4")), "%s: all is done", what);
        unlink(at("k.mp4"));
        unlink(at("k.st"));
    }
}

/* Frames of 60 to 81 that come before the first new chunk: nothing waits for a
 * cache then, and Ctrl-C is heard at once. */
static void test_first_turn(void)
{
#define NOISY "-o h.mp4 --latents-out h.st --log-json h.log --cache " \
              "deep-forcing "
    put_ffmpeg(60 * FRAME, "kill -2 $PPID\nexec cat > /dev/null");
    expect(generate("", NOISY "--decode during") == 128 + SIGINT
           && strstr(said, "of 8 chunks; they are in h.st."), "%s", said);
    unlink(at("h.log"));
    put_ffmpeg(5 * FRAME, "kill -2 $PPID\nexec cat > /dev/null");
    expect(generate("", NOISY "--decode during --resume") == 128 + SIGINT
           && !strstr(said, "after this chunk"), "%s", said);
    const char *log = text_of(at("h.log"));
    expect(count(log, "\"decode\"") < 18 && !strstr(log, "\"chunk\":"),
           "stopped after %d latents", count(log, "\"decode\""));
    put_ffmpeg(-1, "");
    expect(generate("", NOISY "--decode during --resume") == 0, "%s", said);
    expect_same("h.mp4", "after-n.mp4");
    expect_same("h.st", "after.noisy");
}

/* Frames of a chunk that no one reads: Ctrl-C ends the wait for the reader, and
 * the cache of that chunk is saved. */
static void test_stalled(void)
{
#define SLOW "--chunk 12 --budget 24 --recent 12 --cache deep-forcing -o "
    put_ffmpeg(5 * FRAME, "kill -2 $PPID\nexec sleep 5");
    expect(generate("", SLOW "i.mp4 --latents-out i.st --decode during")
           == 128 + SIGINT && exists(at("i.st.state1")), "%s", said);
    put_ffmpeg(-1, "");
    expect(generate("", SLOW "i.mp4 --latents-out i.st --resume") == 0
           && strstr(said, "resuming after 1 of 2 chunks")
           && generate("", SLOW "i2.mp4 --latents-out i2.st") == 0, "%s", said);
    expect_same("i.mp4", "i2.mp4");
    expect_same("i.st", "i2.st");
}

/* Half of the latents of a run that was to decode after all of them. */
static void test_change(void)
{
    struct stat st;
    const off_t frame = 16 * (SIDE / 8) * (SIDE / 8) * (off_t)sizeof(tt_real);
    run_after("cp after.st u.st.unfinished; ", "--version > /dev/null");
    expect(!stat(at("u.st.unfinished"), &st)
           && !truncate(at("u.st.unfinished"), st.st_size - 10 * frame),
           "10 latents less");
    expect(generate("", "-o u.mp4 --latents-out u.st --log-json u.log "
                    "--decode during --resume") == 0
           && strstr(said, "resuming after 4 of 8 chunks"), "%s", said);
    const char *log = text_of(at("u.log"));
    const char *frames = strstr(log, "\"latents_done\": 12, \"latents\":");
    const char *chunk = strstr(log, "\"chunk\": 4,");
    expect(frames && chunk && frames < chunk, "frames of what was there come "
           "first");
    expect_same("u.mp4", "after.mp4");
    expect_same("u.st", "after.st");
}

/* Pictures have their final names before the latents do. */
#define PICTURES "-o p/%%03d.png --latents-out p.st --decode during "
static void test_pictures(void)
{
    char a[100], b[100];
    mkdir(at("p"), 0777);
    put_file(at("p/040.png"), "mine", 0644);
    expect(generate("", PICTURES) == 2 && strstr(said, "would replace p/040")
           && !strcmp(text_of(at("p/040.png")), "mine")
           && !exists(at("p/000.png")), "someone's picture: %s", said);
    unlink(at("p/040.png"));
    mkdir(at("p/040.png"), 0777);
    for (int i = 0; i < 2; i++)
        expect(generate("", i ? PICTURES "--resume" : PICTURES) == 1
               && strstr(said, "p/040.png") && exists(at("p/039.png"))
               && strstr(said, i ? "resuming after 4 of 8 chunks"
                                 : "4 of 8 chunks are in p.st.unfinished"),
               "a folder in the way: %s", said);
    rmdir(at("p/040.png"));
    expect(generate("", PICTURES) == 2, "not without a word: %s", said);
    expect(generate("", PICTURES "--resume") == 0, "its own pictures: %s",
           said);
    for (int i = 0; i < FRAMES; i++) {
        snprintf(a, sizeof a, "p/%03d.png", i);
        snprintf(b, sizeof b, "after/%03d.png", i);
        expect_same(a, b);
    }
}

/* The first of two videos fails; then the second one is there. */
static void test_batch(void)
{
    put_file(at("bin/ffmpeg"), "#!/bin/sh\nfor a; do :; done\n"
             "case $a in *-0.*) head -c 50000 > /dev/null; exit 1;; esac\n"
             "exec cat > \"${a#file:}\"\n", 0755);
#define BOTH "-o b.mp4 --num-samples 2 --decode during "
    expect(generate("", BOTH) == 1 && strstr(said, "1 of 2 videos failed")
           && exists(at("b-1.mp4")) && exists(at("b-0.latents.safetensors."
                                                 "unfinished")),
           "one of two: %s", said);
    put_ffmpeg(-1, "");
    expect(generate("", BOTH "--resume") == 0
           && strstr(said, "video 2 of 2 is complete"), "%s", said);
    expect_same("b-0.mp4", "after.mp4");
#define PAIR "-o q/%%03d.png --num-samples 2 --decode during "
    expect(generate("", PAIR) == 0, "pictures: %s", said);
    expect(generate("", PAIR "--resume") == 0
           && strstr(said, "2 videos: 2 complete"), "decoded again: %s", said);
}

static void test_words(void)
{
    expect(generate("", "-q --decode during --no-decode -o n.y4m") == 0
           && !exists(at("n.y4m")), "latents alone: %s", said);
    expect_same("n.latents.safetensors", "after.st");
    refuses(2, "--decode is after or during", "generate -m %s --embeds %s "
            "-o n.y4m --decode later", model, embeds);
}

/* ---- ranks --------------------------------------------------------------- */

static void on_ranks(void *user, tt_ctx *c)
{
    char video[600], latents[600], summary[600];
    const char *name = user;
    const bool first = tt_team_rank(c) == 0;
    snprintf(video, sizeof video, "%s/%s", folder, name);
    snprintf(latents, sizeof latents, "%s/%s.st", folder, name);
    snprintf(summary, sizeof summary, "%s/%s.json", folder, name);
    char *argv[] = {"generate", "-q", "-t", "1", "-m", model, "--embeds",
                    embeds, "--vae", vae, "-W", "32", "-H", "32", "--latents",
                    "24", "--decode", "during", "-o", video, "--latents-out",
                    latents, "--summary", summary, "--resume", NULL};
    const int argc = (int)(sizeof argv / sizeof *argv) - 1;
    const int status = cmd_generate(c, argc, argv);
    if (first) expect(status == 0, "%s: %d, %s", name, status, tt_message(c));
}

static void test_ranks(void)
{
    char path[5000], name[2][20], latents[64];
    snprintf(path, sizeof path, "%s/bin:%.4000s", folder, getenv("PATH"));
    setenv("PATH", path, 1);
    for (int n = 1; n <= 3; n++) {
        snprintf(name[0], sizeof name[0], "ranks%d.y4m", n);
        snprintf(name[1], sizeof name[1], "ranks%d.mp4", n);
        put_ffmpeg(30 * FRAME, "exit 1");
        expect(generate("", "-q -o %s --latents-out %s.st --decode during",
                        name[1], name[1]) == 1, "one process begins: %s", said);
        put_ffmpeg(-1, "");
        /* its summary is rank 0's, and the others do not ask whose it is */
        expect_ok(tt_team_threads(ctx, n, on_ranks, name[0]), name[0]);
        for (int i = 0; i < 2; i++) { /* once more; going on */
            snprintf(latents, sizeof latents, "%s.st", name[i]);
            expect_ok(tt_team_threads(ctx, n, on_ranks, name[i]), name[i]);
            expect_same(name[i], i ? "after.mp4" : "after-p.y4m");
            expect_same(latents, "after.st");
        }
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("during", argv)) return test_end();
    reference(model, "dit/models/tiny_a");
    reference(vae, "vae_full_a/weights.safetensors");
    reference(embeds, "dit/roll_tether_K9/inputs.safetensors");
    test_bytes();
    test_clips();
    test_files();
    test_order();
    test_viewer();
    test_ends("tether", "after.mp4", "after.st");
    test_ends("deep-forcing", "after-n.mp4", "after.noisy");
    test_first_turn();
    test_stalled();
    test_change();
    test_pictures();
    test_batch();
    test_words();
    test_ranks();
    return program_end();
}
