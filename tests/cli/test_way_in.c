/* test_way_in.c: the first commands that a newcomer types.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties  --steps means the same everywhere. Options and values of other
 *             programs are answered. A command that is given nothing shows the
 *             way. What a folder lacks is said with the commands that fetch it,
 *             and what they fetch is found. A plan needs no weights. */
#include "tests/cli/program.h"

static char demo[1100];        /* the model that ships                        */

#define RED "-p 'a red circle moves left and bounces, on a blue background' "
#define SMALL "-W 32 -H 32 --latents 3 --no-decode --overwrite "

/* Is the word in what the latest run said? */
static void says(const char *word)
{
    expect(strstr(said, word) != NULL, "it says \"%s\": %s", word, said);
}

/* ---- steps --------------------------------------------------------------- */

static void steps_of(const char *steps, const char *out)
{
    expect(run("generate -m %s " RED SMALL "-v --latents-out %s --steps '%s'",
               demo, out, steps) == 0, "--steps %s: %s", steps, said);
}

static void test_counts(void)
{
    static const char *const lists[] = {"1000,750,500,250",
                                        "[1000, 750, 500, 250]",
                                        "1000 750 500 250"};
    steps_of("4", "four");
    says("4 steps at timesteps 1000, 937.5, 833.333, 625, then");
    for (int i = 0; i < 3; i++) {
        steps_of(lists[i], "list");
        expect(same_files(at("four"), at("list")), "4 is %s", lists[i]);
    }
    steps_of("3", "three");
    says("1000, 909.215, 713.979, then");
    steps_of("1000,667,333", "list");
    expect(same_files(at("three"), at("list")), "3 is 1000,667,333");
    steps_of("1", "one");
    says("1 step at timestep 1000, then");
    steps_of("1000", "list");
    expect(same_files(at("one"), at("list")), "1 is 1000");
    steps_of("100", "hundred");
    says("100 steps at timesteps 1000, 997.984,");
    expect(run("generate -m %s " RED SMALL "-v --latents-out c --cache causvid "
               "--steps 3", demo) == 0, "causvid: %s", said);
    says("1000, 757, 522, then");
    expect(run("generate -m %s " RED SMALL "-v --latents-out c --cache causvid "
               "--steps 4", demo) == 0, "causvid: %s", said);
    says("1000, 960, 888.889, 727.273, then");
}

static void test_steps_refused(void)
{
    static const char *const wrong[] = {
        "500", "0", "-4", "4.5", "101", "999999", "750,500,250", "900,500",
        "1,0.75,0.5", "1001,500", "[4]"};
    static const char *const unread[] = {"", "1000,", "four", "1000,750,x",
                                         "[1000,750", "1000,,750", "nan"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        refuses(2, "near 1000", "generate -m %s " RED SMALL "--latents-out no "
                "--steps '%s'", demo, wrong[i]);
        refuses(2, "near 1000", "noise -o no --steps '%s'", wrong[i]);
    }
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++) {
        refuses(2, "or a count like 4", "generate -m %s " RED SMALL
                "--latents-out no --steps '%s'", demo, unread[i]);
        refuses(2, "or a count like 4", "noise -o no --steps '%s'", unread[i]);
    }
    refuses(2, "near 1000", "bench --estimate -m %s --steps 500", demo);
    expect(!exists(at("no")), "nothing was written");
}

static void test_noise_steps(void)
{
#define NOISE "noise -W 32 -H 32 --latents 3 --overwrite -o "
    expect(run(NOISE "n4 --steps 4") == 0
           && run(NOISE "nl --steps 1000,750,500,250") == 0
           && same_files(at("n4"), at("nl")), "a count and its list: %s", said);
    expect(run(NOISE "n100 --steps 100") == 0, "a hundred: %s", said);
    expect(run("generate -m %s " RED SMALL "--noise n4 --steps 4 --latents-out "
               "own", demo) == 0, "the noise of 4 steps: %s", said);
    expect(run("diff four own > out") == 0, "is that of the generator: %s",
           text_of(at("out")));
    refuses(1, "renoise", "generate -m %s " RED SMALL "--noise n4 --steps 3 "
            "--latents-out no", demo);
#undef NOISE
}

/* ---- words of other programs --------------------------------------------- */

static void test_foreign_options(void)
{
    static const char *const rows[][2] = {
        {"--negative-prompt X", "without a negative prompt"},
        {"--negative_prompt=X", "unknown option --negative_prompt: not needed"},
        {"-n X", "unknown option -n: not needed"},
        {"--cfg-scale 5", "without guidance"},
        {"--guidance-scale 5", "without guidance"},
        {"--guidance 5", "without guidance"},
        {"-g 5", "without guidance"},
        {"--sample_guide_scale 5", "without guidance"},
        {"--num-frames 81", "use --frames N"},
        {"--video-frames 81", "use --frames N"},
        {"--frame_num 81", "use --frames N"},
        {"--num_output_frames 21", "use --latents N"},
        {"--checkpoint_path F", "use --checkpoint FILE"},
        {"--use_ema", "use --ema"},
        {"--output_folder D", "use --output PATH"},
        {"--save_file F", "use --output PATH"},
        {"--ckpt_dir D", "use --model DIR"},
        {"-d D", "use --model DIR"},
        {"--task t2v-1.3B", "not needed"},
        {"-M vid_gen", "not needed"},
        {"--diffusion-model F", "use --dit FILE"},
        {"--t5xxl F", "use --text-encoder FILE"},
        {"--taesd F", "use --tiny-vae FILE"},
        {"--flow-shift 5", "use --shift X"},
        {"--sample_shift 5", "use --shift X"},
        {"--num_inference_steps 4", "use --steps N"},
        {"--sample_steps 4", "use --steps N"},
        {"--denoising_step_list 1000", "use --steps N"},
        {"--sample_solver unipc", "one sampler"},
        {"--sampling-method euler", "one sampler"},
        {"--seed -1", "--seed random draws one"},
        {"--base_seed 3", "use --seed S"},
        {"-S 3", "use --seed S"},
        {"--fps 24", "16 frames a second"},
        {"--lora_path F", "use --lora FILE"},
        {"--device cuda", "use --backend NAME"},
        {"-ngl 99", "use --backend NAME"},
        {"--dtype bf16", "tether convert --dtype"},
        {"--fp16", "tether convert --dtype"},
        {"--precision half", "tether convert --dtype"},
        {"--num_threads 4", "use --threads N"},
        {"--init-img F", "use --image FILE"},
        {"-i F", "use --image FILE"},
        {"-b 2", "use --num-samples N"},
        {"--data_path F", "use --prompt-file FILE"},
        {"--extended_prompt_path F", "use --extended-prompt-file FILE"},
        {"--config_path F", "config.json of the weights"},
        {"--offload_model True", "weights stay in their files"},
        {"--low_memory", "weights stay in their files"},
        {"--vae-tiling", "weights stay in their files"},
        {"--diffusion-fa", "--backend"},
        {"--local_attn_size 21", "use --budget"},
        {"--sink_size 3", "use --sink"},
        {"--cache_backend tether", "use --cache NAME"},
        {"--ulysses_size 2", "mpirun"},
        {"--enable_teacache", "weights stay in their files"},
        {"--enable-xformers-memory-efficient-attention", "--backend"},
        {"--use_sage_attention", "--backend"},
        {"--version", "`tether --version` prints it"},
        {"-steps 4", "did you mean --steps?"},
        {"-prompt x", "did you mean --prompt?"},
        {"-seed 7", "did you mean --seed?"},
        {"--lattents 3", "did you mean --latents?"},
        {"--nothing-like-it", "lists the options"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuses(2, rows[i][1], "generate -m nothing -p x -o x.y4m %s",
                rows[i][0]);
    refuses(2, "use --latents FILE", "decode --latents-path x -o x.y4m");
    refuses(2, "use --input PATH", "encode --image x -o x");
    refuses(2, "use --output FILE", "embed --output-path x");
    refuses(2, "use --threads N", "tokenize --n-threads 2");
    refuses(2, "use --arith NAME", "diff a b --dtype fp16");
    refuses(2, "without an option: `tether", "inspect --model-path x");
    refuses(2, "without an option: `tether", "convert --model_path x");
    refuses(2, "`tether generate` has it", "inspect --prompt x");
    expect(run("generate -m %s " RED "--size 32X32 --latents 3 --no-decode "
               "--latents-out big --overwrite", demo) == 0,
           "a large X: %s", said);
}

static void test_values(void)
{
    static const char *const arith[][2] = {
        {"fp16", "f16"}, {"float16", "f16"}, {"half", "f16"}, {"FP16", "f16"},
        {"bfloat16", "bf16"}, {"BF16", "bf16"}, {"fp32", "f32"},
        {"float32", "f32"}, {"tf23", "tf32"}, {"fp16+ftz", "f16+ftz"},
        {"bfloat16-stored", "bf16-stored"}, {"fp32+winograd+ftz", "f32+"}};
    char word[80];
    for (size_t i = 0; i < sizeof arith / sizeof *arith; i++) {
        snprintf(word, sizeof word, "did you mean %s", arith[i][1]);
        refuses(2, word, "diff a b --arith %s", arith[i][0]);
        refuses(2, word, "validate --backend golden --arith %s", arith[i][0]);
        refuses(2, word, "validate check a --got b --arith %s", arith[i][0]);
        refuses(2, word, "validate --dump a --against b --arith %s",
                arith[i][0]);
    }
    refuses(2, "+ is followed by ftz", "diff a b --arith fp16+denormals");
    refuses(2, "is unknown; known", "diff a b --arith int4");
#define SAYS(word, args) \
    refuses(2, "did you mean " word "?", "generate -m %s " RED "-o x.y4m " args,\
            demo)
    SAYS("f32", "--class fp32");
    SAYS("sm90", "--class h100");
    SAYS("f32", "--vae-class float32");
    SAYS("exact", "--backend cpu");
    SAYS("blas", "--backend openblas");
    SAYS("fifo", "--cache sliding-window");
    SAYS("tether", "--cache TetherCache");
    SAYS("paper", "--preset papr");
#undef SAYS
    refuses(2, "did you mean exact?", "validate --backend cpu");
    refuses(2, "did you mean f16?", "convert x -o y --dtype fp16");
}

/* ---- nothing given ------------------------------------------------------- */

static void test_bare(void)
{
    static const char *const commands[] = {
        "generate", "decode", "encode", "embed", "tokenize", "noise",
        "inspect", "convert", "analyze", "explain", "compare", "validate",
        "validate export", "validate check", "validate compare", "diff",
        "bench", "generate -q", "bench -t 1"};
    char usage[100], help[100];
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const char *c = commands[i], *dash = strstr(c, " -");
        const int n = dash ? (int)(dash - c) : (int)strlen(c);
        snprintf(usage, sizeof usage, "\nusage: tether %.*s ", n, c);
        snprintf(help, sizeof help, "\n`tether %.*s --help` ", n, c);
        refuses(2, usage, "%s < /dev/null", c);
        says(help);
        snprintf(help, sizeof help, "\nexample:\n  tether %.*s ", n, c);
        says(help);
    }
    refuses(2, "usage: tether COMMAND", " ");
    says("tether --help");
    says("example:\n  tether demo");
}

/* ---- what a folder lacks ------------------------------------------------- */

#define FETCH_WAN                                                              \
    "hf download Wan-AI/Wan2.1-T2V-1.3B models_t5_umt5-xxl-enc-bf16.pth "      \
    "google/umt5-xxl/spiece.model Wan2.1_VAE.pth --local-dir "
#define FETCH_DIT                                                              \
    "hf download gdhe17/Self-Forcing checkpoints/self_forcing_dmd.pt "         \
    "--local-dir "

static int lines(const char *text)
{
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

static void test_nothing_there(void)
{
    mkdir(at("empty"), 0777);
    static const char *const folders[] = {"empty", "missing", "no 'such"};
    static const char *const words[] = {"empty", "missing", "'no '\\''such'"};
    for (int i = 0; i < 3; i++) {
        char wan[300], dit[300], quoted[64];
        snprintf(wan, sizeof wan, FETCH_WAN "%s\n", words[i]);
        snprintf(dit, sizeof dit, FETCH_DIT "%s\n", words[i]);
        snprintf(quoted, sizeof quoted, "\"%s\"", folders[i]);
        refuses(1, wan, "inspect %s", quoted);
        says(dit);
        expect(lines(said) <= 6, "in few lines: %s", said);
        refuses(1, wan, "generate -m %s -p x -o x.y4m", quoted);
        says(dit);
        refuses(1, dit, "generate -m %s --embeds e --no-decode --latents-out l",
                quoted);
        expect(!strstr(said, "Wan-AI"), "nothing else is needed: %s", said);
    }
    refuses(1, "Wan2.1_VAE.pth --local-dir empty\n",
            "decode -m empty --latents x -o x.y4m");
    refuses(1, "google/umt5-xxl/spiece.model --local-dir empty\n",
            "embed -m empty -p x -o x");
    refuses(1, "cannot open", "inspect nothing.safetensors");
    expect(!strstr(said, "hf download"), "of a file: %s", said);
}

/* A copy of a file of the demo model. */
static void copy(const char *from, const char *to)
{
    char command[3000];
    snprintf(command, sizeof command, "cp '%s/%s' '%s/%s'", demo, from, folder,
             to);
    expect(system(command) == 0, "%s", command);
}

#define DIT "diffusion_pytorch_model.safetensors"
#define GO "generate -m wan " RED SMALL "--latents-out l "

/* The files as the printed commands put them; other weights are another seed's:
 * here the same, of which only the name tells. */
static void test_found(void)
{
    mkdir(at("wan"), 0777);
    mkdir(at("wan/checkpoints"), 0777);
    copy("config.json", "wan/config.json");
    copy("Wan2.1_VAE.safetensors", "wan/Wan2.1_VAE.safetensors");
    copy("models_t5_umt5-xxl-enc-bf16.safetensors", "wan/t5.safetensors");
    copy("google/umt5-xxl/spiece.model", "wan/spiece.model");
    refuses(1, FETCH_DIT "wan\n", GO);
    expect(!strstr(said, "Wan-AI"), "the rest is there: %s", said);
    expect(run("inspect wan > out") == 0
           && strstr(text_of(at("out")), "  transformer   missing; to fetch "
                     "it: " FETCH_DIT "wan\n"), "%.600s", text_of(at("out")));
    copy(DIT, "wan/checkpoints/self_forcing_dmd.pt");
    expect(run(GO) == 0, "found: %s", said);
    says("transformer: wan/checkpoints/self_forcing_dmd.pt, the causal");
    copy(DIT, "wan/" DIT);
    expect(run(GO) == 0, "preferred: %s", said);
    says("transformer: wan/checkpoints/self_forcing_dmd.pt, the causal");
    expect(run("inspect wan > out") == 0
           && strstr(text_of(at("out")), "`generate -m` takes wan/checkpoints/"
                     "self_forcing_dmd.pt\n"), "%.900s", text_of(at("out")));
    expect(run(GO "--dit wan/" DIT) == 0 && !strstr(said, "causal"),
           "another one was asked for: %s", said);
    rename(at("wan/checkpoints/self_forcing_dmd.pt"),
           at("wan/self_forcing_dmd.pt"));
    expect(run(GO) == 0, "in the folder itself: %s", said);
    says("transformer: wan/self_forcing_dmd.pt, the causal");
    rename(at("wan/self_forcing_dmd.pt"),
           at("wan/checkpoints/self_forcing_dmd.pt"));
    copy(DIT, "wan/checkpoints/self_forcing_sid.pt");
    expect(run(GO) == 0, "dmd goes first: %s", said);
    says("self_forcing_dmd.pt");
    rename(at("wan/checkpoints/self_forcing_dmd.pt"),
           at("wan/checkpoints/mine.safetensors"));
    expect(run(GO) == 0, "then sid: %s", said);
    says("self_forcing_sid.pt");
    unlink(at("wan/checkpoints/self_forcing_sid.pt"));
    expect(run(GO) == 0, "then the only one: %s", said);
    says("checkpoints/mine.safetensors");
    copy(DIT, "wan/checkpoints/other.safetensors");
    refuses(2, "choose one with --checkpoint", GO);
}

/* ---- Wan's own weights --------------------------------------------------- */

/* A few tensors of a transformer of the published width. */
static void write_wan(const char *path)
{
    static float ones[1536];
    tt_st_writer *w = NULL;
    for (int i = 0; i < 1536; i++) ones[i] = 1;
    tt_st_create(ctx, &w, path);
    tt_st_add(w, "patch_embedding.bias", TT_F32, 1, (int64_t[]){1536}, ones);
    tt_st_add(w, "head.head.bias", TT_F32, 1, (int64_t[]){64}, ones);
    tt_st_add(w, "blocks.0.self_attn.q.bias", TT_F32, 1, (int64_t[]){1536},
              ones);
    expect_ok(tt_st_finish(w), "a file of the published width");
}

static void test_own_weights(void)
{
#define OWN "looks like Wan's own"
    mkdir(at("base"), 0777);
    write_wan(at("base/" DIT));
    refuses(1, OWN, "generate -m base -p x -o x.y4m");
    says(FETCH_DIT "base");
    says("--checkpoint self_forcing_dmd.pt");
    refuses(1, OWN, "generate --dit base/" DIT " -p x -o x.y4m");
    expect(run("inspect base > out") == 0
           && strstr(text_of(at("out")), OWN)
           && strstr(text_of(at("out")), "checkpoint    missing; to fetch it: "
                     FETCH_DIT "base\n"), "%.900s", text_of(at("out")));
    expect(run("generate --checkpoint base/" DIT " -p x -o x.y4m") == 1
           && !strstr(said, OWN), "it was asked for: %s", said);
    expect(run("generate -m %s " RED SMALL "--latents-out l", demo) == 0
           && !strstr(said, OWN), "the small model: %s", said);
}

/* ---- plans without weights ----------------------------------------------- */

static void plans(const char *args)
{
    expect(run("%s > %s", args, at("out")) == 0, "%s: %s", args, said);
    static const char *const words[] = {
        "model: Wan2.1-T2V-1.3B, by its published sizes",
        "30 layers of width 1536", "11361820672", "5675987200", "decoder",
        "latents", "Gop/s", "the disk comes on top: 17.3 GB"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        expect(strstr(text_of(at("out")), words[i]) != NULL, "%s says %s: %s",
               args, words[i], text_of(at("out")));
}

static void test_plans(void)
{
    setenv("TT_MEMORY", "8G", 1);
    plans("generate --plan --model wan1.3b -W 32 -H 32");
    expect(!strstr(said, "cannot fit"), "it fits: %s", said);
    plans("bench --estimate --model wan1.3b -W 32 -H 32");
    plans("bench --estimate -W 32 -H 32");
    plans("generate --plan -m Wan2.1-T2V-1.3B -p x -W 32 -H 32 --latents 3");
    setenv("TT_MEMORY", "100M", 1);
    plans("generate --plan -m wan1.3b -W 32 -H 32");
    says("the run cannot fit");
    unsetenv("TT_MEMORY");
    expect(run("generate --plan -m %s > %s", demo, at("out")) == 0
           && strstr(text_of(at("out")), "model: ")
           && strstr(text_of(at("out")), DIT), "the demo model is named: %s",
           text_of(at("out")));
    refuses(1, FETCH_DIT "wan1.3b\n", "generate -m wan1.3b -p x -o x.y4m");
    says("enough for --plan");
    refuses(2, "wan1.3b", "generate --plan");
    mkdir(at("wan1.3b"), 0777);
    refuses(1, FETCH_DIT "wan1.3b\n", "generate --plan -m wan1.3b");
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("cli/way_in", argv)) return program_end();
    char *whole = realpath(ref_path("demo"), NULL);
    snprintf(demo, sizeof demo, "%s", whole ? whole : "");
    free(whole);
    test_counts();
    test_steps_refused();
    test_noise_steps();
    test_foreign_options();
    test_values();
    test_bare();
    test_nothing_there();
    test_found();
    test_own_weights();
    test_plans();
    return program_end();
}
