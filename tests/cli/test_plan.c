/* test_plan.c: tether generate --plan, and runs that cannot fit.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties  --plan prints and writes its log alone; every run says in a line
 *             what it will take; one that cannot fit ends with 1 and leaves no
 *             file. bench --estimate is a plan of a run of that size. */
#include <dirent.h>

#include "tests/cli/program.h"

static char model[1100];

#define RUN "generate -m %s -p red -W 32 -H 32 -t 1 --latents 9 "

/* Files in the folder, but for what the shell writes. */
static int files(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.' && strcmp(e->d_name, "stderr")
             && strcmp(e->d_name, "stdout");
    if (d) closedir(d);
    return n;
}

/* TT_MEMORY: a machine without /proc cannot tell what is available. */
static void plans(void)
{
    static const char *const words[] = {
        "text encoder", "transformer", "cache", "activations", "decoder",
        "peak", "available", "latents", "saved states", "y4m",
        "reading the weights", "Gop/s", "all"};
    setenv("TT_MEMORY", "1G", 1);
    expect(run(RUN "--plan > %s/stdout", model, folder) == 0, "a plan: %s",
           said);
    unsetenv("TT_MEMORY");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        expect(strstr(text_of(at("stdout")), words[i]) != NULL, "it says %s: "
               "%s", words[i], text_of(at("stdout")));
    expect(strstr(text_of(at("stdout")), "\ndisk\n") != NULL
           && run(RUN "--plan --num-samples 2 > %s/stdout", model, folder) == 0
           && strstr(text_of(at("stdout")), "\ndisk, of every video\n"),
           "of one video, and of two: %s%s", said, text_of(at("stdout")));
    expect(run(RUN "--plan -o x.y4m --record r.json --analyze a > %s/stdout",
               model, folder) == 0, "with names of outputs: %s", said);
    expect(files() == 0, "nothing is written");
    expect(run(RUN "--plan --log-json log > %s/stdout", model, folder) == 0
           && files() == 1 && !unlink(at("log")), "but the log: %s", said);
}

/* Bytes that the plan says a video has at most. */
static long long planned_video(void)
{
    long long bytes = 0;
    expect(run(RUN "--plan > %s/stdout", model, folder) == 0, "a plan: %s",
           said);
    const char *row = strstr(text_of(at("stdout")), "y4m, at most");
    expect(row && sscanf(row, "y4m, at most %*s %*s %lld", &bytes) == 1,
           "its video");
    return bytes;
}

static void says_a_line(void)
{
    struct stat st = {0};
    const long long most = planned_video();
    expect(run(RUN "-o x.y4m", model) == 0
           && strstr(said, "plan: memory at most ") != NULL, "a line: %s",
           said);
    const bool there = !stat(at("x.y4m"), &st);
    expect(there && st.st_size <= most && st.st_size > most - 128,
           "%lld bytes planned, %lld made", most, (long long)st.st_size);
    unlink(at("x.y4m"));
    unlink(at("x.latents.safetensors"));
    unlink(at("x.latents.safetensors.files"));
}

static void estimates(void)
{
    expect(run("bench --estimate -m %s -W 32 -H 48 --seconds 0.5625 -t 1 "
               "> %s/stdout", model, folder) == 0
           && strstr(text_of(at("stdout")), "Gop/s"), "an estimate: %s", said);
    expect(run("bench --estimate -t 1 > %s/stdout", folder) == 0,
           "of the built-in model: %s", said);
    refuses(2, "multiple", "bench --estimate -m %s -W 33", model);
    refuses(2, "stands alone", "bench ops --estimate");
    expect(files() == 0, "nothing is written");
}

static void refusals(void)
{
    setenv("TT_MEMORY", "1M", 1);
    refuses(1, "cannot fit", RUN "-o x.y4m --record r.json --analyze a", model);
    refuses(1, "cannot fit", RUN "--plan", model);
    static const char *const slips[] = {"lots", "20GB", "-1", "nan", "1 G"};
    for (int i = 0; i < 5; i++) {
        setenv("TT_MEMORY", slips[i], 1);
        refuses(2, "is no amount of memory", RUN "-o x.y4m", model);
    }
    setenv("TT_MEMORY", "", 1);
    expect(run(RUN "--plan", model) == 0, "empty: as if unset: %s", said);
    expect(files() == 0, "nothing is left");
    unsetenv("TT_MEMORY");
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("cli/test_plan", argv)) return program_end();
    snprintf(model, sizeof model, "%s", ref_path("demo"));
    char *whole = realpath(model, NULL);
    if (whole) snprintf(model, sizeof model, "%s", whole);
    free(whole);
    plans();
    says_a_line();
    estimates();
    refusals();
    return program_end();
}
