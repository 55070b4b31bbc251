/* test_policies.c: cache policies, scenes and restarts through the program.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  rollouts of ref_data/policy_* with their options.
 * Properties     scene lists and schedules say the same; a restart needs the
 *                VAE and nothing else; deep-forcing goes on from its saved
 *                cache; refusals name the rule. */
#include <math.h>
#include <signal.h>

#include "tests/cli/program.h"

static char models[2][1100], inputs[1100], vae[1100];

/* The latents of `file` against a reference case. */
static void compare(const char *file, const char *name)
{
    test_case c;
    tt_file *f = NULL;
    if (!case_open(&c, "%s", name)) return;
    if (expect_ok(tt_file_open(ctx, &f, at(file)), file)) {
        const tt_entry *e = tt_file_find(f, "latents");
        const tt_real *x = e ? tt_read_real(ctx, &c.arena, &e->t) : NULL;
        if (expect(x != NULL, "%s: no latents", name))
            expect_close(name, x, tt_tensor_count(&e->t),
                         tt_file_find(c.expected_f64, "latents"), 5e-6, 0);
        tt_file_close(f);
    }
    case_close(&c);
}

#define MODEL "generate -m %s --embeds %s --noise %s --no-decode " \
              "--overwrite --latents-out %s "

static void reference_run(const char *name, int model, const char *options)
{
    char path[64];
    snprintf(path, sizeof path, "%s/inputs.safetensors", name);
    reference(inputs, path);
    expect(run(MODEL "%s", models[model], inputs, inputs, at("out"), options)
               == 0, "%s: %s", name, said);
    compare("out", name);
}

static void test_references(void)
{
    reference_run("policy_inf_k6_s1", 0, "--cache infinity");
    reference_run("policy_inf_k21_s3", 0,
                  "--cache infinity --budget 21 --sink 3");
    reference_run("policy_mem_ema_k12", 0, "--cache memrope");
    reference_run("policy_mem_adaptive_k12", 1, "--cache memrope --adaptive");
    reference_run("policy_mem_fifo_k9_s0", 1, "--cache memrope "
                  "--memrope-method eviction --budget 9 --sink 0");
    reference_run("policy_deep_ds_k21", 0, "--cache deep-sink --sink 10");
    reference_run("policy_deep_pc_k21", 0, "--cache deep-forcing");
    reference_run("policy_deep_pc_k9", 1, "--cache deep-forcing --budget 9 "
                  "--sink 2 --compress-to 7 --max-reuse 2");
}

static void test_scenes(void)
{
    const char *name = "policy_inf_scenes_k6";
    const char *base = "--cache infinity --scene 'A[3s] | B[2.3s#] | C[2.3s]'";
    reference_run(name, 1, base);
    expect(strstr(said, "warning") == NULL, "nothing to warn of: %s", said);

    /* The same as a schedule; the cut of the code's rule comes before C. */
    put_file(at("scenes"), "0 A\n4 B\n7# C\n", 0644);
    expect(run(MODEL "--cache infinity --scene-file scenes", models[1], inputs,
               inputs, at("again")) == 0, "schedule: %s", said);
    compare("again", name);
    expect(run(MODEL "--cache infinity --scene 'A[3s] | B[2.3s] | C[2.3s#]' "
               "--cut-rule readme", models[1], inputs, inputs, at("readme"))
               == 0, "readme rule: %s", said);
    expect(same(at("again"), at("readme")), "the rules say the same cut");
    put_file(at("none"), "0 A\n4 B\n7 C\n", 0644);
    expect(run(MODEL "--cache infinity --scene-file none", models[1], inputs,
               inputs, at("uncut")) == 0, "no cut: %s", said);
    expect(!same(at("again"), at("uncut")), "a cut changes something");
    expect(run(MODEL "--cache memrope --sink 1 --scene-file none", models[1],
               inputs, inputs, at("other")) == 0, "scenes of others: %s",
           said);
    expect(!same(at("uncut"), at("other")), "policies differ");

    /* Records show every scene. */
    expect(run(MODEL "--cache infinity --scene-file scenes --analyze runs "
               "--record record.json", models[1], inputs, inputs,
               at("recorded")) == 0, "recorded: %s", said);
    expect(strstr(text_of(at("runs/run.json")),
                  "{\"chunk\": 7, \"cut\": true, \"prompt\": \"C\"}") != NULL,
           "scenes in run.json: %s", text_of(at("runs/run.json")));
    const char *record = strstr(text_of(at("record.json")), "\"scenes\"");
    expect(record && strstr(record, "\"chunk\": 4")
           && strstr(record, "\"prompt\": \"C\""), "scenes in the record");

    put_file(at("bad"), "0 A\n4\n", 0644);
    refuses(2, "line 2", MODEL "--scene-file bad", models[1], inputs, inputs,
            at("x"));
    refuses(2, "scene 2 has no text", MODEL "--scene 'A|'", models[1], inputs,
            inputs, at("x"));
    refuses(1, "text_3", MODEL "--scene 'A|B|C|D'", models[1], inputs, inputs,
            at("x"));
    refuses(2, "only one", MODEL "--scene a --scene-file b", models[1], inputs,
            inputs, at("x"));
    expect(!exists(at("x")), "nothing is left");
}

/* ---- restarts ------------------------------------------------------------ */

static float noise_at(int64_t i)
{
    return (float)((i * 7919 % 2003) / 500.0 - 2);
}

#define CLIPS "generate -m %s --embeds %s -W 48 -H 32 --cache causvid " \
              "--budget 9 --rollouts 3 --latents-out %s "

static void test_restarts(void)
{
    reference(inputs, "policy_sf_full/inputs.safetensors");
    expect(run(CLIPS "--vae %s -o clips.y4m", models[0], inputs, at("clips"),
               vae) == 0, "clips: %s", said);
    tt_file *f = NULL;
    if (expect_ok(tt_file_open(ctx, &f, at("clips")), "clips")) {
        const tt_entry *e = tt_file_find(f, "latents");
        expect(e && e->t.rank == 5 && e->t.dim[0] == 3 && e->t.dim[1] == 9,
               "[rollouts, W, C, h, w]");
        tt_file_close(f);
    }
    /* Every clip shows 33 - 9 frames; `decode` shows the same. */
    int64_t frames = 0;
    FILE *y = fopen(at("clips.y4m"), "rb");
    char word[6] = "";
    for (int c; y && (c = getc(y)) != EOF; ) {
        memmove(word, word + 1, 4);
        word[4] = (char)c;
        frames += !memcmp(word, "FRAME", 5);
    }
    if (y) fclose(y);
    expect(frames == 72, "%d frames, expected 72", (int)frames);
    expect(run("decode --latents clips --vae %s -o again.y4m", vae) == 0,
           "decode: %s", said);
    expect(same(at("clips.y4m"), at("again.y4m")), "decode shows the same");
    expect(run(CLIPS "--vae %s --no-decode --resume", models[0], inputs,
               at("clips"), vae) == 0, "complete already: %s", said);

    expect(run(CLIPS "--restart latent --no-decode", models[0], inputs,
               at("reuse")) == 0, "without a VAE: %s", said);
    expect(!same(at("clips"), at("reuse")), "the fallback is another video");
    refuses(1, "--restart latent", CLIPS "--no-decode", models[0], inputs,
            at("x"));
    refuses(2, "multiple of the chunk", CLIPS "--restart latent --overlap 2 "
            "--no-decode", models[0], inputs, at("x"));
    refuses(2, "belong to the policy causvid", "generate -m %s --embeds %s "
            "--rollouts 2 --cache fifo -W 48 -H 32 --no-decode --latents-out "
            "x", models[0], inputs);
    expect(!exists(at("x")), "nothing is left");

    /* Noise without renoise of every rollout. */
    const int64_t dim[5] = { 3, 9, 16, 4, 6 };
    put_tensor(at("noise"), "noise", 5, dim, noise_at);
    refuses(1, "renoise_r0", CLIPS "--restart latent --no-decode --noise "
            "noise", models[0], inputs, at("x"));
    expect(run(CLIPS "--restart latent --no-decode --noise noise --steps 1000",
               models[0], inputs, at("one")) == 0, "one step: %s", said);
}

/* ---- interruptions ------------------------------------------------------- */

#define LONG "generate -m %s --embeds %s -W 96 -H 64 --latents 90 " \
             "--cache deep-forcing --no-decode --latents-out stopped " \
             "--log-json log --checkpoint-every 0 "

/* Is there an answer to a signal yet? Waits up to 20 ms for it. */
static bool answered(void)
{
    for (int i = 0; i < 100; i++, usleep(200))
        if (strstr(text_of(at("stderr")), "stopping")) return true;
    return false;
}

/* Send a run the first signal when `chunks` of its lines are in the log, the
 * second one soon after, if the first was answered, or, ignored, was not.
 * The first is `as` in it from the start. */
static int interrupted(int chunks, void (*as)(int), int first, int second,
                       const char *more)
{
    fflush(stdout);
    unlink(at("log"));
    const pid_t pid = fork();
    if (pid == 0) {
        char args[4000];
        signal(first, as);
        if (second != first) signal(second, SIG_DFL);
        snprintf(args, sizeof args, "cd %s && exec %s " LONG "-q %s 2>stderr",
                 folder, tether, models[0], inputs, more);
        execl("/bin/sh", "sh", "-c", for_shell(args), (char *)NULL);
        _exit(99);
    }
    for (int i = 0; i < 6000; i++) {
        int n = 0;
        for (const char *c = text_of(at("log")); (c = strstr(c, "\"chunk\":"));
             c++)
            n++;
        if (n >= chunks) break;
        usleep(10000);
    }
    kill(pid, first);
    if (second && answered() == (as == SIG_DFL)) kill(pid, second);
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void test_resume(void)
{
    reference(inputs, "policy_sf_full/inputs.safetensors");
    int status = interrupted(9, SIG_DFL, SIGINT, 0, "");
    expect(status == 130, "exit status %d, expected 130", status);
    expect(exists(at("stopped.state1")) && exists(at("stopped.unfinished")),
           "the cache and the latents are kept");
    expect(rename(at("stopped.state1"), at("hidden")) == 0, "hide the cache");
    refuses(2, "no saved cache", LONG "--resume", models[0], inputs);
    expect(rename(at("hidden"), at("stopped.state1")) == 0, "and back");
    refuses(2, "cannot be resumed", LONG "--resume --trace-cache t", models[0],
            inputs);
    refuses(2, "another run (max-reuse: 7 there, 3 here)", LONG "--resume "
            "--max-reuse 3", models[0], inputs);
    refuses(2, "another run (seed: 0 there, 5 here)", LONG "--resume --seed 5",
            models[0], inputs);
    refuses(2, "another length: 90 latents there, 87 here", LONG "--resume "
            "--latents 87", models[0], inputs);
    expect(run(LONG "--resume", models[0], inputs) == 0, "resume: %s", said);
    expect(!exists(at("stopped.state1")), "the saved cache is gone");
    expect(rename(at("stopped"), at("resumed")) == 0, "keep it");
    expect(run(LONG, models[0], inputs) == 0, "whole: %s", said);
    expect(same(at("stopped"), at("resumed")), "the same bits");
}

/* A terminal that is closed sends SIGHUP, often twice. Under nohup it is
 * ignored, and SIGINT in what a script runs in the background. */
static void test_hangup(void)
{
    reference(inputs, "policy_sf_full/inputs.safetensors");
    unlink(at("stopped"));
    int status = interrupted(3, SIG_DFL, SIGHUP, SIGHUP, "-W 192 -H 192 "
                             "--overwrite");
    expect(status == 129, "exit status %d after SIGHUP, expected 129", status);
    expect(strstr(text_of(at("stderr")), "--resume goes on")
           && exists(at("stopped.state1")) && exists(at("stopped.unfinished")),
           "the cache and the latents are kept: %s", text_of(at("stderr")));
    for (int i = 0; i < 2; i++) {
        const int first = i ? SIGHUP : SIGINT, second = i ? SIGINT : SIGTERM;
        status = interrupted(3, SIG_IGN, first, second, "-W 192 -H 192 "
                             "--overwrite");
        expect(status == 128 + second, "exit status %d, expected %d: signal %d "
               "is ignored where it was", status, 128 + second, first);
    }
    expect(run(LONG "-W 192 -H 192 --resume --quiet", models[0], inputs) == 0,
           "resume: %s", said);
}

/* A knob in --cache wins over a preset, on either side of it. */
static void test_preset_order(void)
{
    reference(inputs, "policy_sf_full/inputs.safetensors");
    for (int i = 0; i < 2; i++)
        expect(run("generate -q -m %s --embeds %s --no-decode -W 32 -H 32 "
                   "--latents 3 %s --overwrite --latents-out order --record "
                   "order.json", models[0], inputs, i
                   ? "--preset paper --cache tether:tau=0.9"
                   : "--cache tether:tau=0.9:preset=official --preset paper")
               == 0 && strstr(text_of(at("order.json")), "\"tau\": 0.9,")
               && strstr(text_of(at("order.json")), "\"pool\": \"frame\""),
               "a preset and a knob, %d: %s", i, said);
}

static void test_usage(void)
{
    refuses(2, "infinity", "generate -p x -o y --cache infinty");
    refuses(2, "causvid-rolling", "generate -p x -o y --cache nonsense");
    refuses(2, "grab-only", "generate -p x -o y --preset nonsense");
    refuses(2, "setting of tether", "generate -p x -o y --cache fifo --preset "
            "paper");
    refuses(2, "sum or max", "generate -p x -o y --cache deep-forcing "
            "--fusion mean");
    refuses(2, "ema or eviction", "generate -p x -o y --cache memrope "
            "--memrope-method x");
    refuses(2, "official or readme", "generate -p x -o y --cut-rule x");
    refuses(2, "setting of tether", "generate -p x -o y --cache fifo "
            "--tau 0.5");
    refuses(2, "has no effect with --cache full", "generate -p x -o y --cache full --sink 2");
    refuses(2, "must lie in 0..1", "generate -p x -o y --cache tether:tau=9");
    refuses(2, "vae or latent", "generate -p x -o y --restart x");
    refuses(2, "0 or 1", "generate -p x -o y --cache deep-forcing:unify=2");
    reference(inputs, "policy_sf_full/inputs.safetensors");
    refuses(2, "S + 2", "generate -m %s --embeds %s --no-decode --latents-out "
            "x -W 48 -H 32 --cache memrope --budget 7", models[0], inputs);
    refuses(2, "at least 1", "generate -m %s --embeds %s --no-decode "
            "--latents-out x -W 48 -H 32 --cache infinity --sink 0", models[0],
            inputs);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("cli/policies", argv)) return test_end();
    reference(models[0], "policy_models/a");
    reference(models[1], "policy_models/b");
    reference(vae, "vae_full_a/weights.safetensors");
    test_preset_order();
    test_usage();
    test_references();
    test_scenes();
    test_restarts();
    test_resume();
    test_hangup();
    return program_end();
}
