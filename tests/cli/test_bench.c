/* test_bench.c: tether bench pass, its words and its JSON; no times.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties  the parts of a pass are all of it; the flow has the same bits
 *             with one thread and with two, and with generated weights in every
 *             run; options that a benchmark does not heed are refused. */
#include <math.h>

#include "io/json.h"
#include "tests/cli/program.h"

static char model[1100];

#define PASS "bench pass --quick -W 32 -H 32 "

static const tt_json *member(const tt_json *of, const char *name)
{
    const tt_json *v = tt_json_get(of, name);
    expect(v != NULL, "the JSON has \"%s\"", name);
    return v;
}

/* Shares add up to one, and seconds to those of the pass. */
static void check_parts(const tt_json *pass, int64_t passes)
{
    static const char *const parts[] = {"linear", "attention", "elementwise",
                                        "policy", "outside"};
    const tt_json *all = member(pass, "parts");
    double share = 0, seconds = 0;
    for (int i = 0; i < 5; i++) {
        share += tt_json_num(member(all, parts[i]), "share", -9);
        seconds += tt_json_num(member(all, parts[i]), "seconds", -9);
    }
    const double whole = tt_json_num(pass, "seconds", -9);
    expect(tt_json_whole(member(pass, "passes"), -1) == passes, "%d passes",
           (int)passes);
    expect(fabs(share - 1) < 1e-9 && fabs(seconds - whole) < 1e-9 * whole,
           "parts are all of a pass: %g of 1, %g of %g s", share, seconds,
           whole);
    expect(tt_json_num(pass, "gflops", -1) > 0
           && tt_json_num(member(all, "linear"), "gflops", -1) > 0
           && !tt_json_get(tt_json_get(all, "policy"), "gflops"),
           "products have a rate, and nothing else has");
}

static void test_json(void)
{
    const tt_json *root;
    tt_arena a = {0};
    expect(run(PASS "-m %s -t 1 --passes 4 --json p.json > out", model) == 0,
           "a pass: %s", said);
    expect(strstr(said, "pass 6 of 6") && strstr(said, "(warming up)"),
           "it says how far it is: %s", said);
    if (!expect_ok(tt_json_file(ctx, &a, &root, at("p.json"), 1 << 16), "JSON"))
        return;
    const tt_json *p = member(root, "pass");
    check_parts(member(p, "noisy"), 3);
    check_parts(member(p, "clean"), 1);
    expect(tt_json_num(p, "chunk_seconds", 0)
           > tt_json_num(member(p, "noisy"), "seconds", 9)
           && tt_json_whole(member(p, "width"), 0) == 32
           && tt_json_whole(member(p, "tokens"), 0) == 12
           && tt_json_whole(member(p, "frames_in_cache"), 0) == 21,
           "what was measured");
    if (!test_guarded()) /* a device has neither peaks nor values here */
        expect(tt_json_count(member(p, "peaks")) >= 3
               && tt_json_num(member(p, "noisy"), "of_fma_kept_up", 0) > 0
               && tt_json_num(p, "memory_bytes", 0) > 1e6, "and peaks");
    const char *flow = tt_json_str(p, "flow", "none");
    char line[100];
    snprintf(line, sizeof line, "\nflow f32 %s\n", flow);
    const char *table = text_of(at("out"));
    expect(strstr(table, line) && strstr(table, "\nnoisy, mean of 3 ")
           && strstr(table, "\nclean ") && strstr(table, "of peak")
           && (test_guarded() || (strstr(table, "kept up after the passes: ")
                                  && strstr(table, "of kept"))),
           "the table: %s", table);
    expect(run(PASS "-q -m %s -t 2 --passes 4 > out", model) == 0 && !*said
           && strstr(text_of(at("out")), line),
           "with two threads, and quiet: %s%s", said, text_of(at("out")));
    tt_arena_free(&a);
}

/* The digest after "flow f32 ". */
static const char *flow_of(const char *more, char sha[65])
{
    expect(run("bench pass --quick -q -W 16 -H 16 --layers 1 --prime 0 "
               "--class f32 %s > out", more) == 0,
           "generated weights: %s", said);
    const char *line = strstr(text_of(at("out")), "\nflow f32 ");
    snprintf(sha, 65, "%.64s", line ? line + 10 : "");
    expect(strlen(sha) == 64, "a digest: %s", text_of(at("out")));
    return sha;
}

static void test_generated(void)
{
    char a[65], b[65];
    expect(!strcmp(flow_of("-t 1", a), flow_of("-t 2", b)),
           "generated weights are the same in every run: %s, %s", a, b);
}

static void test_files(void)
{
    put_file(at("mine.json"), "{\"mine\": 1}", 0644);
    refuses(2, "which is no result of bench", PASS "-m %s --json mine.json",
            model);
    expect(!strcmp(text_of(at("mine.json")), "{\"mine\": 1}"), "it stays");
    expect(run(PASS "-q -m %s --prime 0 --json p.json > out", model) == 0,
           "one of bench is replaced: %s", said);
    refuses(2, "no cache policy", PASS "-m %s --cache nothing --json new.json "
            "> out", model);
    refuses(2, "nothing", PASS "-m %s --cache tether:nothing=1 > out", model);
    expect(!exists(at("new.json")), "after a failure there is no file");
    if (!test_guarded()) { /* values of a device take none of ours */
        setenv("TT_MEMORY", "1K", 1);
        refuses(1, "TT_MEMORY leaves", PASS "-m %s > out", model);
        unsetenv("TT_MEMORY");
    }
    stops(SIGINT, "interrupted", "bench pass --quick -W 128 -H 128 -m %s "
          "--prime 100 --json stopped.json", model);
    expect(!exists(at("stopped.json")), "nor after an interruption");
}

static void test_words(void)
{
    refuses(2, "say what to measure", "bench");
    refuses(2, "no effect with `bench pass`", PASS "--only gelu");
    refuses(2, "no effect with `bench pass`", PASS "--rounds 3");
    refuses(2, "no effect with `bench pass`", PASS "--seconds 3");
    refuses(2, "no effect with `bench ops`", "bench ops -W 32 -H 32");
    refuses(2, "no effect with `bench ops`", "bench ops --passes 2");
    refuses(2, "no effect with `bench error`", "bench error -m x");
    refuses(2, "no effect with `bench --estimate`", "bench --estimate --quick");
    refuses(2, "belong together", "bench pass -W 32");
    refuses(2, "multiples of 16", "bench pass -W 33 -H 32");
    refuses(2, "multiples of 16", "bench pass -W 32 -H lots");
    refuses(2, "--layers must be", PASS "--layers 0");
    refuses(2, "a model of -m has its own", PASS "--layers 2 -m %s", model);
    refuses(2, "--passes must be", PASS "--passes 1");
    refuses(2, "--passes must be", PASS "--passes 6");
    refuses(2, "--prime must be", PASS "--prime -1");
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("cli/bench", argv)) return program_end();
    snprintf(model, sizeof model, "%s", ref_path("demo"));
    char *whole = realpath(model, NULL);
    if (whole) snprintf(model, sizeof model, "%s", whole);
    free(whole);
    test_words();
    if (sizeof(tt_real) == sizeof(float)) { /* bench is of the float build */
        test_json();
        test_files();
        test_generated();
    }
    return program_end();
}
