/* test_compare.c: run folders and the report over several policies.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties     the report is one page that needs no other file and names
 *                every policy; taking up a complete run records the same; no
 *                file of a run folder is written twice. */
#include "tests/cli/program.h"

static char model[1100], inputs[1100];

#define SMALL "-m %s --embeds %s -W 48 -H 32 --latents 12 --no-decode -q "

static void test_report(void)
{
    /* a small stack is enough */
    expect(run_after("ulimit -s 256; ", "compare --caches fifo,"
                     "tether:tau=0.6:memory=2:budget=9 " SMALL
                     "-o report.html", model, inputs) == 0, "compare: %s",
           said);
    const char *page = text_of(at("report.html"));
    expect(strstr(page, "<html") && strstr(page, "fifo")
           && strstr(page, "tether:tau=0.6"), "a page about both policies");
    expect(!strstr(page, "src=\"http") && !strstr(page, "href=\"")
           && !strstr(page, "src=\"report"), "it needs no other file");
    expect(exists(at("report_runs/0-fifo/run.json"))
           && exists(at("report_runs/1-tether/trace.safetensors")),
           "run folders");
    expect(run("compare --caches=fifo -oattached.html " SMALL, model, inputs)
           == 0 && exists(at("attached.html"))
           && exists(at("attached_runs/0-fifo")), "-oFILE: %s", said);
    expect(run("compare --caches fifo,full --log-json log " SMALL
               "--runs logged", model, inputs) == 0, "with a log: %s", said);
    const char *log = text_of(at("log"));
    expect(strstr(log, "\"begin\"")
           && strstr(log, "\"folder\": \"logged/0-fifo\"")
           && strstr(log, "\"policy\": \"full\"")
           && strstr(log, "\"ok\": true"),
           "events of all policies: %s", log);
    expect(strstr(text_of(at("logged/1-full/log.json")), "\"chunk\": 3"),
           "and the chunks of each");
    refuses(2, "K = 2", "compare --caches fifo:budget=2 --runs sub/none " SMALL,
            model, inputs);
    expect(!exists(at("sub")), "a failure leaves no empty folder");
    refuses(2, "filled in", "compare --caches fifo --label x");
    refuses(2, "--caches", "compare -o x.html");
}

/* A mistake in the last policy is found before the first one runs. */
static void test_lists(void)
{
#define LIST(word, list) do {                                                  \
        refuses(2, word, "compare --caches " list " --runs listed " SMALL,     \
                model, inputs);                                                \
        expect(!exists(at("listed")), "nothing was run for " list);            \
    } while (0)
    LIST("number 2 of --caches; nothing was run", "fifo,tether:tau=9");
    LIST("--foo", "fifo,tether:foo=9");
    LIST("fif", "fifo,fif");
    LIST("has no effect", "fifo,full:sink=2");
    LIST("fifo twice", "fifo,tether,fifo");
    LIST("causvid:latents=21:rollouts=3", "fifo,causvid:budget=9");
    LIST("causvid-rolling:foo=9, number 2", "fifo,causvid-rolling:foo=9");
    expect(!strstr(said, "rollouts"), "it makes no clips: %s", said);
#undef LIST
}

/* A second call with --resume takes what is there, also of a policy whose
 * cache cannot be made again. */
static void test_again(void)
{
#define AGAIN "compare --caches fifo,deep-forcing:budget=9:sink=2:compress-to=7 " \
              "--resume -m %s --embeds %s -W 48 -H 32 --latents 12 --no-decode -o again.html "
    expect(run(AGAIN "-q", model, inputs) == 0, "nothing to resume: %s", said);
    expect(run(AGAIN, model, inputs) == 0
           && strstr(said, "complete already")
           && strstr(said, "resuming after 4 of 4"), "again: %s", said);
    expect(exists(at("again_runs/1-deep-forcing/trace.safetensors")),
           "its record is kept");
#undef AGAIN
    refuses(2, "it tells of other runs", "compare --caches fifo,full --resume "
            "-m %s --embeds %s -W 48 -H 32 --latents 3 --no-decode "
            "--runs other -o again.html", model, inputs);
}

static void test_folder(void)
{
    static const char *const file[] = {"latents", "trace", "features"};
    expect(run("generate " SMALL "--latents-out a --analyze one/ --label x "
               "--trace-cache t", model, inputs) == 0, "whole: %s", said);
    expect(strstr(text_of(at("one/run.json")), "\"label\": \"x\"") != NULL,
           "its label");
    expect(same(at("t"), at("one/trace.safetensors")), "one trace");
    expect(run("generate " SMALL "--latents-out a --analyze two --resume",
               model, inputs) == 0, "taken up: %s", said);
    for (size_t i = 0; i < 3; i++) {
        char a[64], b[64];
        snprintf(a, sizeof a, "one/%s.safetensors", file[i]);
        snprintf(b, sizeof b, "two/%s.safetensors", file[i]);
        expect(same(at(a), at(b)), "%s: the same bytes", file[i]);
    }
    refuses(2, "use --html", "analyze one two -o tables --png");
    expect(run_after("ulimit -s 256; ", "analyze one two -o tables --csv "
                     "--log-json alog") == 0, "analyze: %s", said);
    const char *log = text_of(at("alog"));
    expect(strstr(log, "\"command\": \"analyze\"")
           && strstr(log, "\"label\": \"x\"")
           && strstr(log, "\"folder\": \"tables\"")
           && strstr(log, "\"ok\": true"),
           "its log: %s", log);
    char many[1024] = "";        /* a policy table averages hundreds of runs */
    for (int i = 0; i < 100; i++)
        strcat(many, "a ");
    expect(run("analyze %s-o many --average --csv", many) == 0,
           "100 runs: %s", said);
    expect(run("analyze one -o tables --csv -v") == 0
           && strstr(said, "one: x"), "-v names the runs: %s", said);

    /* what is no table or picture of ours stays */
    static const char *const mine[] = {"summary.csv", "drift.json",
                                       "index.html"};
    for (int i = 0; i < 3; i++) {
        expect(run("analyze one -o tables") == 0, "tables again: %s", said);
        char path[64];
        snprintf(path, sizeof path, "tables/%s", mine[i]);
        put_file(at(path), "mine\n", 0644);
        refuses(2, mine[i], "analyze one -o tables");
        expect(!strcmp(text_of(at(path)), "mine\n"), "%s stays", path);
        expect(run("analyze one -o tables --overwrite") == 0
               && strcmp(text_of(at(path)), "mine\n"), "--overwrite: %s",
               said);
    }
    refuses(2, "no layer 3", "analyze a -o tables --layer 3");
    refuses(1, "a is no folder", "analyze a -o a");
    refuses(2, "vbench_scores.py", "analyze --scores given.json");
    put_file(at("tables/drift.csv"), "", 0644);
    expect(run("analyze one -o tables") == 0
           && *text_of(at("tables/drift.csv")), "an empty file may go: %s",
           said);
    refuses(2, "K = 2", "generate " SMALL "--cache fifo --budget 2 "
            "--latents-out b --analyze not/there", model, inputs);
    refuses(1, "no/where", "generate " SMALL "--latents-out no/where/b "
            "--analyze not/there", model, inputs);
    expect(!exists(at("not")), "a failure leaves no empty folder");
    refuses(2, "would both write", "generate " SMALL "--analyze one "
            "--latents-out one/latents.safetensors", model, inputs);
    refuses(2, "needs --analyze", "generate " SMALL "--latents-out b "
            "--label x", model, inputs);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("cli/compare", argv)) return test_end();
    reference(model, "policy_models/a");
    reference(inputs, "policy_sf_full/inputs.safetensors");
    test_report();
    test_lists();
    test_again();
    test_folder();
    return program_end();
}
