/* test_validate.c: validate --backend, as a user meets it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The plug-in is that of the mutation suite: it calls tt_ functions of the
 * program, which therefore must export them. */
#include <math.h>
#include <stddef.h>

#include "tests/cli/program.h"
#include "tests/fpenv.h"
#include "tether/backend.h"

static char plugin[1100], model[1100];

#define SMALL "-m %s --latents 9 --cache fifo --no-rollout"

static void test_options(void)
{
    refuses(3, "cannot be loaded", "validate --backend ./absent.so");
    refuses(2, "bf16-stored", "validate --backend golden --arith half");
    refuses(2, "f32+fast", "validate --backend golden --arith f32+fast");
    refuses(2, "declare f32", "validate check x --got y --arith f32+ftz");
    refuses(2, "no operator", "validate --backend golden --op nothing");
    refuses(2, "needs a name", "validate --backend ''");
    expect(run("validate --backend golden --op silu --no-calls --no-rollout "
               "> out") == 0, "a built-in one: %s%s", said,
           text_of(at("out")));
}

/* A case with two tensors; a result that is not there cannot be checked. */
static void test_cases(void)
{
    expect(run("validate export cases --each 1") == 0
           && strstr(said, "wrote 16 cases into cases"), "export: %s", said);
    expect(run("validate export cases --each 1 -q") == 0 && !*said,
           "export -q: %s", said);
    refuses(3, "absent", "validate check cases --got absent");
    refuses(3, "absent", "validate check cases --got absent --partial");
    mkdir(at("empty"), 0777);
    refuses(3, "none of the 16 cases", "validate check cases --got empty");
}

/* A NaN has no distance. */
static float one(int64_t i) { return (float)i; }
static float broken(int64_t i) { return i == 3 ? (float)NAN : (float)i; }

static void test_nan(void)
{
    const int64_t dim[1] = {8};
    put_tensor(at("a"), "x", 1, dim, one);
    put_tensor(at("b"), "x", 1, dim, broken);
    expect(run("diff a b > out") == 1
           && strstr(text_of(at("out")), "nan       nan       nan"),
           "a NaN: %s", text_of(at("out")));
}

/* Our own run is refused once, with its own sentence. */
static void test_own_run(void)
{
    refuses(2, "cannot begin", "validate --dump a -- generate -p x --tau 0.5 "
            "--cache fifo -m %s", model);
    const char *first = strstr(said, "no effect");
    expect(first && !strstr(first + 1, "no effect"), "said once: %s", said);
}

static void test_plugin(void)
{
    expect(run_after("TETHER_MUTATION=NONE ", "validate --backend %s --op silu "
                     "--rounds 2 > out", plugin) == 0, "no fault: %s%s", said,
           text_of(at("out")));
    expect(run_after("TETHER_MUTATION=SILU_SIGMOID ", "validate --backend %s "
                     "--op silu --rounds 2 --json r.json > out", plugin) == 1 &&
           strstr(text_of(at("out")), "without the factor x") &&
           strstr(text_of(at("out")), "seed 1"), "a fault: %s%s", said,
           text_of(at("out")));
    expect(strstr(text_of(at("r.json")), "\"passed\": false") != NULL, "json");
    expect(run_after("TETHER_MUTATION=LINEAR_LAYER ", "validate --backend %s "
                     "--no-operators " SMALL " > out", plugin, model) == 1 &&
           strstr(text_of(at("out")), "#linear.") &&
           strstr(text_of(at("out")), "scaled by 0.5"), "one layer: %s%s",
           said, text_of(at("out")));
}

/* Its silu behaves for some calls, then not: a verdict with the case. */
static void expect_verdict(const char *way, int status, const char *out,
                           const char *word)
{
    expect(status == 1
           && strstr(out, "wrong tensor: op.silu.zero n=32 seed 1: ")
           && strstr(out, word) && strstr(out, "silu is not called again"),
           "%s: %d, '%s' expected: %s%s", way, status, word, said, out);
}

static void misbehaves(const char *way, const char *word)
{
    char before[96];
    snprintf(before, sizeof before, "TETHER_MUTATION=NONE TETHER_MISBEHAVES=%s ",
             way);
    const int status = run_after(before, "validate --backend %s --op silu "
                                 "--rounds 2 > out", plugin);
    expect_verdict(way, status, text_of(at("out")), word);
}

/* Loaded or called, it changes the floating-point environment: the verdict is
 * that of the same silu which puts it back, and the change is told. */
static void environment(const char *way, int status, const char *word)
{
    char before[96];
    snprintf(before, sizeof before, "TETHER_MUTATION=NONE TETHER_MISBEHAVES=%s ",
             way);
    expect(run_after(before, "validate --backend %s --op silu --rounds 2 > out",
                     plugin) == status
           && strstr(text_of(at("out")), word), "%s, '%s' expected: %s%s", way,
           word, said, text_of(at("out")));
}

static void test_environment(void)
{
    static const char flushed[] = "op.silu.denormal n=1 seed 1 at [0]: denormal "
                                  "numbers are flushed to 0; if that is meant, "
                                  "declare --arith f32+ftz";
    environment("round", 0, "silu leaves the rounding mode (upward) set");
    environment("round", 0, "PASS: 11 tensors\n11 compared: 11 pass, 0 mismatch; "
                            "limits: f32\n11 of 11 tensors equal");
    environment("round-loading", 0, "PASS: 11 tensors\n11 compared: 11 pass, 0 "
                "mismatch; limits: f32\n11 of 11 tensors equal");
    if (!FLUSH) return;
    environment("flush-back", 1, flushed);
    environment("flush", 1, flushed);
    environment("flush", 1, "silu leaves FTZ");
    environment("flush-loading", 0, "loaded: counted as +ftz");
    environment("flush-loading", 0, "PASS: 11 tensors\n11 compared: 11 pass, 0 "
                                    "mismatch; limits: f32+ftz\n11 of 11");
    environment("flush-loading-round", 0, "loaded: counted as +ftz");
    environment("flush-loading-round", 0, "(upward) when it is opened; every");
    environment("closing-flush", 0, "set when it is closed");
}

/* Processes that still have this file of ours open. */
static int holders(const char *path)
{
    char command[1300], line[64] = "";
    snprintf(command, sizeof command, "ls -l /proc/[0-9]*/fd 2>/dev/null | grep "
             "-c -- '-> %s$'", path);
    FILE *f = popen(command, "r");
    if (f && !fgets(line, sizeof line, f)) line[0] = '\0';
    if (f) pclose(f);
    return atoi(line);
}

/* What it has started ends with it. */
static void test_children(void)
{
    expect(run_after("TETHER_MUTATION=NONE TETHER_MISBEHAVES=fork ", "validate "
                     "--backend %s --op silu --rounds 2 > out 3> held", plugin)
           == 0, "%s", said);
    expect(holders(at("held")) == 0, "%d processes are left",
           holders(at("held")));
}

/* It does not return from being loaded or closed. */
static void test_ends(void)
{
    expect(run_after("TETHER_MUTATION=NONE TETHER_MISBEHAVES=stay-closing ",
                     "validate --backend %s --op silu --rounds 2 --timeout 1 > "
                     "out", plugin) == 1
           && strstr(text_of(at("out")), "the backend: did not return within 1 "
                     "seconds when it was closed")
           && strstr(text_of(at("out")), "11 pass, 1 mismatch"),
           "closing: %s%s", said, text_of(at("out")));
    expect(run_after("TETHER_MUTATION=NONE TETHER_MISBEHAVES=stay-loading ",
                     "validate --backend %s --op silu --timeout 1 > out", plugin)
               == 3 && strstr(said, "while it was opened"), "loading: %s", said);
    static const char *const way[] = {"stay-closing", "stay-loading", "deaf"};
    char args[1300];
    setenv("TETHER_MUTATION", "NONE", 1);
    for (int i = 0; i < 3; i++) {
        snprintf(args, sizeof args, "validate --backend %s --op silu --rounds "
                 "%d --no-calls --no-rollout", plugin, i < 2 ? 2 : 8);
        setenv("TETHER_MISBEHAVES", way[i], 1);
        const int status = signalled(SIGTERM, 3000000, args);
        expect(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM,
               "one signal ends it, %s: wait status %x", way[i],
               (unsigned)status);
    }
    unsetenv("TETHER_MISBEHAVES");
    unsetenv("TETHER_MUTATION");
}

/* On a busy machine a right call may take seconds. The limit is longer, and
 * no one waits for it: the other tests run meanwhile. */
static void begin_hang(void)
{
    expect(run_after("(TETHER_MUTATION=NONE TETHER_MISBEHAVES=hang ",
                     "validate --backend %s --op silu --rounds 2 --timeout 10 "
                     "> hang 2>&1; echo $? > status; mv status hung) & true",
                     plugin) == 0, "%s", said);
}

static void end_hang(void)
{
    for (int i = 0; i < 60000 && !exists(at("hung")); i++) usleep(10000);
    const int status = atoi(text_of(at("hung")));
    expect_verdict("hang", status, text_of(at("hang")),
                   "did not return within 10 seconds");
}

static void test_isolated(void)
{
    misbehaves("abort", "killed by signal 6");
    misbehaves("exit", "ended the process with exit status 7");
    misbehaves("far", "reached outside its output, 399873 bytes after it");
    expect(run_after("TETHER_MUTATION=NONE TETHER_MISBEHAVES=print ",
                     "validate --backend %s --op silu --rounds 2 > out", plugin)
               == 0 && strstr(said, "hello from silu\nagain\n")
           && !strncmp(text_of(at("out")), "PASS: 11 tensors\n", 17)
           && !strstr(text_of(at("out")), "hello"),
           "prints: %s%s", said, text_of(at("out")));
    expect(run_after("TETHER_MISBEHAVES=load ", "validate --backend %s", plugin)
               == 3 && strstr(said, "signal 9")
           && strstr(said, "while it was opened"), "load: %s", said);
    expect(run_after("TETHER_MUTATION=NONE TETHER_MISBEHAVES=exit ", "validate "
                     "--backend %s --no-operators -m %s --latents 3 --cache "
                     "fifo > out", plugin, model) == 1
           && strstr(text_of(at("out")), "#silu.") &&
           strstr(text_of(at("out")), "  chunk.0/x0 (silu)\n          ended the "
                  "process with exit status 7"),
           "in a model: %s%s", said, text_of(at("out")));
    setenv("TETHER_MISBEHAVES", "hang", 1);
    stops(SIGINT, "interrupted", "validate --backend %s --op silu", plugin);
    unsetenv("TETHER_MISBEHAVES");
}

/* A dump of a run that fills its cache at another time: one more run of ours
 * says so. */
static void test_explained(void)
{
    char inputs[1100];
    reference(inputs, "policy_sf_full/inputs.safetensors");
    expect(run("generate -m %s -W 48 -H 32 --latents 3 --embeds %s --no-decode "
               "--cache fifo --latents-out l --context-noise 5 --dump theirs "
               "-q", model, inputs) == 0, "theirs: %s", said);
    expect(run("validate --dump theirs -- generate -m %s -W 48 -H 32 --latents "
               "3 --embeds %s --cache fifo > out", model, inputs) == 1
           && strstr(text_of(at("out")), "step.4/e")
           && strstr(text_of(at("out")), "linear 1 of 2: the pass is made at "
                     "time 5 where 0 belongs; given theirs"),
           "explained: %s%s", said, text_of(at("out")));
}

/* A sinusoid of the time in float32 is named, and right where it is declared. */
static void test_time32(void)
{
    char inputs[1100];
    reference(inputs, "policy_sf_full/inputs.safetensors");
    expect(run("generate -m %s -W 48 -H 32 --latents 3 --embeds %s --no-decode "
               "--cache fifo --latents-out l32 --backend arith-f32+time32 "
               "--dump theirs32 -q", model, inputs) == 0, "theirs: %s", said);
    expect(run("validate --dump theirs32 -- generate -m %s -W 48 -H 32 "
               "--latents 3 --embeds %s --cache fifo > out", model, inputs) == 1
           && strstr(text_of(at("out")), "chunk.0/step.0/e at")
           && strstr(text_of(at("out")), "the time sinusoid is computed in "
                     "float32; if that is meant, declare --arith f32+time32"),
           "named: %s%s", said, text_of(at("out")));
    expect(run("validate --dump theirs32 --arith f32+time32 -- generate -m %s "
               "-W 48 -H 32 --latents 3 --embeds %s --cache fifo > out", model,
               inputs) == 0, "declared: %s%s", said, text_of(at("out")));
}

/* A report is the same, whoever makes it. */
static void test_same_report(void)
{
    const char *const fault = "TETHER_MUTATION=SILU_SIGMOID ";
    expect(run_after(fault, "validate --backend %s --op silu --json r1 > out1",
                     plugin) == 1
           && run_after(fault, "validate --backend %s --op silu --json r2 "
                        "--no-isolate > out2", plugin) == 1
           && same(at("out1"), at("out2")) && same(at("r1"), at("r2")),
           "the same report: %s%s", text_of(at("out1")), text_of(at("out2")));
}

/* Paste a printed command, whose paths are quoted where they must be. */
static int paste(const char *before, const char *words)
{
    char command[3000];
    setenv("TETHER", tether, 1);
    setenv("FOLDER", folder, 1);
    snprintf(command, sizeof command, "cd \"$FOLDER\" && %s \"$TETHER\" %s > "
             "out 2> stderr", before, words);
    fflush(stdout);
    const int status = system(command);
    snprintf(said, sizeof said, "%.8000s", text_of(at("stderr")));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The printed command checks one failing case alone; what fails becomes a
 * folder that fails too; a list names the same cases; two reports say what a
 * change did. */
static void test_again(void)
{
    const char *const fault = "TETHER_MUTATION=SILU_SIGMOID ";
    char again[1400] = "";
    expect(run_after(fault, "validate --backend %s --op silu --rounds 2 --json "
                     "bad.json --export failed > out", plugin) == 1, "a fault");
    const char *at_it = strstr(text_of(at("out")), "this one alone: tether ");
    if (!expect(at_it != NULL, "no command: %s", text_of(at("out")))) return;
    sscanf(at_it, "this one alone: tether %1300[^\n]", again);
    expect(strstr(again, "op.silu.normal n=1 seed 1") && !strstr(again, "--js"),
           "which case: %s", again);
    expect(paste(fault, again) == 1
           && strstr(text_of(at("out")), "1 compared: 0 pass, 1 mismatch"),
           "one case: %s%s", said, text_of(at("out")));
    put_file(at("known"), "op.silu.normal\n", 0644);
    expect(run_after(fault, "validate --backend %s --op silu --rounds 2 "
                     "--xfail known > out", plugin) == 1
           && strstr(text_of(at("out")), "--case 'op.silu.zero n=1 seed 1'"),
           "not one that is expected: %s", text_of(at("out")));
    expect(run_after(fault, "validate --backend %s "
                     "--case '#silu.0' " SMALL
                     " --export failed2 > out", plugin, model) == 1
           && strstr(text_of(at("out")), "1 compared: 0 pass, 1 mismatch")
           && run("validate check failed2 --got failed2 > out2") == 1
           && strstr(text_of(at("out2")), "1 compared"),
           "one call: %s%s", text_of(at("out")), text_of(at("out2")));
    expect(run("validate check failed --got failed --case op.silu.zero_n=1_seed"
               "_1 > out") == 1 && strstr(text_of(at("out")), "1 mismatch"),
           "a folder: %s%s", said, text_of(at("out")));
    refuses(3, "no case x", "validate check failed --got failed --case x");
    refuses(2, "is no case", "validate --backend golden --case op.silu.x");
    refuses(2, "is no case", "validate --backend golden --case 'op.silu.normal "
            "n=9999999 seed 1'");
    expect(run("validate --backend golden --case chunk.9/nothing -m %s "
               "--latents 3 > out", model) == 1
           && strstr(text_of(at("out")), "no such call"), "a name: %s", said);
    expect(run_after("TETHER_MUTATION=NONE ", "validate --backend %s --op silu "
                     "--rounds 2 --json good.json > out", plugin) == 0
           && run("validate compare bad.json good.json > out") == 0
           && strstr(text_of(at("out")), "mended  op.silu.normal")
           && strstr(text_of(at("out")), "0 broken"), "mended: %s%s", said,
           text_of(at("out")));
    expect(run("validate compare good.json bad.json > out") == 1
           && strstr(text_of(at("out")), "broken  op.silu.normal"), "broken");
    refuses(3, "no report", "validate compare good.json %s/config.json", model);
    char args[80];
    snprintf(args, sizeof args, "\"tt_silu_args\": {\"size\": %zu, \"entry\": "
             "%zu}", sizeof(tt_silu_args), offsetof(tt_ops, silu));
    expect(run("validate --abi > out") == 0 && strstr(text_of(at("out")), args),
           "--abi: %s%s", said, text_of(at("out")));
    expect(run("validate --list --op silu > out") == 0
           && strstr(text_of(at("out")), "\"op.silu.normal n=12 seed 1\""),
           "a list: %s", text_of(at("out")));
    expect(run("validate export odd --inputs one-hot --each 1") == 0
           && strstr(said, "wrote 16 cases") && run("validate export odd "
           "--inputs all --each 1") == 0 && strstr(said, "wrote 133 cases"),
           "kinds of inputs: %s", said);
    refuses(2, "one-hot", "validate export odd --inputs hot");
    /* a weight without scale has none in the file */
    expect(!strstr(text_of(at("odd/op_conv_one-hot_0/case.json")), "_scale"),
           "a scale: %s", text_of(at("odd/op_conv_one-hot_0/case.json")));
    refuses(2, "no operator", "validate --list --op nothing");
    refuses(3, "cannot make", "validate --backend golden --op silu --rounds 1 "
            "--export out");
    expect(run("validate --backend golden --op silu --rounds 1 --export none > "
               "out") == 0 && !exists(at("none")), "an empty folder: %s", said);
}

/* One verdict of a report. */
static void put_report(const char *name, const char *outcome, const char *ratio)
{
    char text[200];
    snprintf(text, sizeof text, "{\"schema\": \"tether-validate/2\", "
             "\"verdicts\": [{\"path\": \"x\", \"outcome\": \"%s\", "
             "\"ratio\": %s}]}", outcome, ratio);
    put_file(at(name), text, 0644);
}

static void compares(const char *two, int status, const char *words)
{
    expect(run("validate compare %s > out", two) == status
           && strstr(text_of(at("out")), words), "%s: %d and '%s' expected: "
           "%s%s", two, status, words, said, text_of(at("out")));
}

/* What is not checked is neither better nor worse than what is; a file that is
 * no report is none of no verdicts. */
static void test_compare(void)
{
    put_report("right", "pass", "0.3");
    put_report("wrong", "mismatch", "5");
    put_report("open", "not checked", "0");
    put_file(at("empty.json"), "{\"schema\": \"tether-validate/2\", "
             "\"verdicts\": []}", 0644);
    put_file(at("number"), "{\"schema\": \"tether-validate/2\", "
             "\"verdicts\": 5}", 0644);
    compares("right open", 1, "1 gone, 0 mended, 0 worse, 0 better");
    compares("open right", 0, "0 worse, 0 better");
    compares("right empty.json", 1, "1 gone");
    compares("wrong empty.json", 0, "1 gone");
    compares("wrong open", 0, "1 gone, 0 mended, 0 worse, 0 better");
    refuses(3, "no list", "validate compare right number");
}

/* The stored bits are those of this build; one that differs is named. */
static void test_manifest(void)
{
    char stored[1100], *line;
    reference(stored, "bits_operators_v1.txt");
    expect(run("validate --manifest %s > out", stored) == 0 &&
           strstr(text_of(at("out")), "golden vdp  48 hashes match") &&
           strstr(text_of(at("out")), "golden sm90 48 hashes match") &&
           strstr(text_of(at("out")), "exact  f32  48 hashes match") &&
           strstr(text_of(at("out")), "PASS: 480 hashes match"),
           "stored bits: %s%s", said, text_of(at("out")));
    put_file(at("changed"), text_of(stored), 0644);
    char *text = (char *)(uintptr_t)text_of(at("changed"));
    /* an earlier version of two classes is read, and not compared */
    for (line = text; (line = strstr(line, ".2 op_")); )
        memmove(line, line + 2, strlen(line + 2) + 1);
    put_file(at("earlier"), text, 0644);
    expect(run("validate --manifest earlier > out") == 0 &&
           strstr(text_of(at("out")), "golden sm80 not compared: the file has "
                  "version 1 (sm80), this program computes sm80.2") &&
           strstr(text_of(at("out")), "PASS: 288 hashes match"),
           "version 1: %s%s", said, text_of(at("out")));
    expect(run("validate --manifest earlier --class sm90 > out") == 1 &&
           strstr(text_of(at("out")), "FAIL: 0 hashes match"), "nothing else: "
           "%s%s", said, text_of(at("out")));
    put_file(at("changed"), text_of(stored), 0644);
    text = (char *)(uintptr_t)text_of(at("changed"));
    line = strstr(text, "f32 op_silu_1 y ");
    if (!expect(line != NULL, "a row of silu")) return;
    line[16] = line[16] == '0' ? '1' : '0';
    put_file(at("changed"), text, 0644);
    expect(run("validate --manifest changed > out") == 1 &&
           strstr(text_of(at("out")), "FAIL golden f32 op_silu_1 y") &&
           strstr(text_of(at("out")), "2 do not"), "another bit: %s",
           text_of(at("out")));
    put_file(at("changed"), "# nothing\n", 0644);
    expect(run("validate --manifest changed --class f32 > out") == 1 &&
           strstr(text_of(at("out")), "stored nowhere"), "an empty file");
    expect(run("validate --manifest mine --write --each 1 -m %s --class f32 "
               "> out", model) == 0 &&
           run("validate --manifest mine --each 1 -m %s --class f32 > out",
               model) == 0 && strstr(text_of(at("mine")), "f32 model chunk.0/"),
           "with a model: %s%s", said, text_of(at("out")));
    expect(run("validate --manifest mine --write --each 1 --class f32 > out")
               == 0 && strstr(text_of(at("out")), "wrote mine: 16 hashes"),
           "--write says so: %s%s", said, text_of(at("out")));
    refuses(2, "would replace the stored digests",
            "validate --manifest --write --class none");
    mkdir(at("ref_data"), 0777);
    mkdir(at("ref_data/demo"), 0777);
    put_file(at("ref_data/bits_operators_v1.txt"), "mine", 0644);
    expect(run("validate --manifest --write --overwrite --each 1 --class f32 "
               "> out") == 0
           && strstr(text_of(at("ref_data/bits_operators_v1.txt")),
                     "f32 op_silu_0 y "), "with consent: %s", said);
    run_after("rm -r ref_data; ", "--version > /dev/null");
    refuses(3, "no stored digests", "validate --manifest absent");
    refuses(2, "f32, amx, vdp, sm80, sm90",
            "validate --manifest absent --class f16");
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("cli/validate", argv)) return test_end();
    reference(model, "policy_models/a");
    test_options();
    test_cases();
    test_nan();
    test_own_run();
    snprintf(plugin, sizeof plugin, "%s", tether);
    char *end = strrchr(plugin, '/');
    snprintf(end, sizeof plugin - (size_t)(end - plugin),
             "/tests/validate/mutants.so");
    if (sizeof(tt_real) == 8)
        printf("note: faults are planted in the float build\n");
    else
        begin_hang(),
        test_plugin(), test_isolated(),
        test_environment(), test_children(), test_ends(), test_same_report(), test_again(),
        test_compare(),
        test_manifest(),
        test_explained(), test_time32(),
        end_hang();
    return program_end();
}
