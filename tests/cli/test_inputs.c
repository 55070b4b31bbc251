/* test_inputs.c: what a command reads it does not write over.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/cli/files.h"

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
    mkdir(at("sub"), 0777);
    expect(!link(at("z"), at("hard")) && !symlink("../z", at("sub/soft")),
           "links");

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
    keeps("z", "validate --dump z --against e --junit z");
    keeps("z", "analyze z --log-json z");
    keeps("e", "compare --caches fifo -m %s --embeds e -o e", model);
    keeps("e", "compare --caches fifo -m %s --embeds=e --log-json e", model);
    keeps("m/config.json", "generate -m m --embeds e -o x.y4m --record "
          "m/config.json");
    run_after("cp z o.unfinished.y4m; ", "--version > /dev/null");
    refuses(2, "called so until it is complete", "decode --vae %s --latents "
            "o.unfinished.y4m -o o.y4m --overwrite", vae);
    expect(same(at("z"), at("o.unfinished.y4m")), "and it is as it was");
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

int main(int argc, char **argv)
{
    (void)argc;
    if (!files_begin("inputs", argv)) return test_end();
    test_inputs();
    test_pictures();
    test_no_files();
    return program_end();
}
