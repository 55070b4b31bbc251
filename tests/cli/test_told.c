/* test_told.c: what a run tells: in its files, in their names, in its log.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/cli/files.h"

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
    /* before the frames of an animated PNG it is in the way of ffmpeg */
    expect(run("generate -q -t 1 -m %s --prompt-file long -W 64 -H 64 "
               "--latents 3 -o longer.apng --analyze told", demo) == 0
           && !strstr(said, "no frames in the report"), "its film: %s", said);
    expect(run("generate -q -t 1 -m %s -p 'a red circle' -W 64 -H 64 "
               "--latents 3 -s 77 -o j.mp4", demo) == 0
           && holds("j.mp4", "a red circle\nSteps: 4, ")
           && holds("j.mp4", "Seed: 77, "), "mp4: %s", said);
}

/* ---- demo ---------------------------------------------------------------- */

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
           "next to mp4 or y4m: %s", said);
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

/* ---- names and log ------------------------------------------------------- */

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

int main(int argc, char **argv)
{
    (void)argc;
    if (!files_begin("told", argv)) return test_end();
    test_inside();
    test_demo();
    test_pattern_names();
    test_log();
    return program_end();
}
