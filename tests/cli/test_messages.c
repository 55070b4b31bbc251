/* test_messages.c: what the program says: while it works, when it is stopped,
 * and about options without effect.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A terminal is a pseudo terminal here: what a person sees on it is compared,
 * not only what a log file gets. */
#include <fcntl.h>
#include <signal.h>

#include "tests/cli/program.h"

static char demo[1100];        /* the model that ships                        */
static char shown[1 << 16];    /* what the latest run put on its terminal     */

#define RED "-p 'a red circle moves left and bounces, on a blue background' "

/* Plain loops in double take some twenty times as long a step: they are watched
 * at smaller sizes. */
#define SIDE(n) (sizeof(tt_real) == 8 ? ((n) / 6 + 15) / 16 * 16 : (n))

/* ---- a terminal ---------------------------------------------------------- */

/* Run `tether <args>` in the test's folder with its stderr on a terminal; send
 * SIGINT when `word` has appeared, twice for `stops` = 2. Its exit status. */
TT_PRINTF(3, 4)
static int run_on_terminal(const char *word, int stops, const char *fmt, ...)
{
    char args[3000], command[6000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(args, sizeof args, fmt, ap);
    va_end(ap);
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (!expect(master >= 0 && !grantpt(master) && !unlockpt(master),
                "a pseudo terminal")) return -1;
    snprintf(command, sizeof command, "cd %s && exec %s %s 2> %s", folder,
             tether, args, ptsname(master));
    const int keep_open = open(ptsname(master), O_RDWR | O_NOCTTY);
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        setenv("TERM", "xterm", 1);
        unsetenv("NO_COLOR");
        execl("/bin/sh", "sh", "-c", for_shell(command), (char *)NULL);
        _exit(127);
    }
    fcntl(master, F_SETFL, O_NONBLOCK);
    size_t n = 0;
    int status = 0, sent = 0;
    for (bool over = false; n < sizeof shown - 1;) {
        const ssize_t got = read(master, shown + n, sizeof shown - 1 - n);
        if (got > 0) n += (size_t)got;
        shown[n] = 0;
        if (got > 0) continue;
        if (over) break;
        if (sent < stops && strstr(shown, sent ? "stopping" : word)) {
            kill(pid, SIGINT);
            sent++;
        }
        over = waitpid(pid, &status, WNOHANG) == pid;
        if (!over) usleep(2000);
    }
    close(keep_open);
    close(master);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Is there one? Not in a root without /dev/pts. */
static bool has_terminal(void)
{
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0)
        skip("nothing was run on a terminal: posix_openpt: %s",
             strerror(errno));
    else
        close(master);
    return master >= 0;
}

/* Progress is there from the text encoder on, and before the first step. */
static void test_progress(void)
{
    expect(run_on_terminal(NULL, 0, "generate -m %s " RED "--latents 3 "
                           "--no-decode --latents-out z"
                           " --overwrite", demo) == 0,
           "a run on a terminal: %s", shown);
    const char *encoder = strstr(shown, "opening the text encoder");
    const char *chunk = strstr(shown, "chunk 1/1");
    expect(encoder && chunk && encoder < chunk, "the text encoder shows: %s",
           shown);
    expect(chunk && !strncmp(chunk + 9, "\033[0m    0%  eta ?", 16),
           "chunk 1 shows before its first step: %.40s", chunk);
    expect(strstr(shown, " MB") && !strstr(shown, "0.00 GB"), "MB: %s", shown);
    expect(run_on_terminal(NULL, 0, "inspect nowhere") == 1
           && strstr(shown, "\033[31merror:\033[0m"), "a red error: %s", shown);
    setenv("NO_COLOR", "1", 1);
    expect(run("inspect nowhere") == 1 && !strchr(said, '\033'), "no colour");
    unsetenv("NO_COLOR");
}

/* Ctrl-C is answered at once, and the second one too. */
static void test_stop(void)
{
    int side = SIDE(448);
    static const char args[] = "generate -m %s " RED "-W %d -H %d "
                               "--latents 60 --no-decode --latents-out s"
                               " --overwrite";
    int status = run_on_terminal("chunk 2/20", 1, args, demo, side, side);
    expect(status == 130 && strstr(shown, "stopping after this step; press "
                                   "Ctrl-C again to stop at once")
           && strstr(shown, "--resume goes on"), "one Ctrl-C: %d, %s", status,
           shown);
    /* A step at this size outlasts the time in which the second one comes. */
    side = SIDE(640);
    status = run_on_terminal("chunk 2/20", 2, args, demo, side, side);
    expect(status == 130 && strstr(shown, "stopped at once; the chunks done "
                                   "are in s.unfinished"),
           "two of them: %d, %s", status, shown);
}

/* After --resume the percentage is of the whole. */
static void test_percent(void)
{
    char args[2000], resume[2100];
    snprintf(args, sizeof args, "generate -m %s " RED "-W %d -H %d "
             "--latents 30 --no-decode --latents-out p", demo, SIDE(192),
             SIDE(192));
    expect(run_on_terminal("chunk 5/10", 1, "%s", args) == 130, "stopped: %s",
           shown);
    snprintf(resume, sizeof resume, "%s --resume", args);
    expect(run_on_terminal(NULL, 0, "%s", resume) == 0
           && strstr(shown, "resuming after"), "resumed: %s", shown);
    const char *at_first = strstr(shown, "resuming after");
    at_first = at_first ? strstr(at_first, "/10") : NULL;
    at_first = at_first ? strstr(at_first, "%") : NULL;
    expect(at_first && atoi(at_first - 3) >= 30, "percent after --resume: %s",
           at_first ? at_first - 20 : "none");
}

/* ---- prompts ------------------------------------------------------------- */

static void test_prompts(void)
{
    char many[2000] = "";
    for (int i = 0; i < 100; i++) strcat(many, "a red circle ");
    expect(run("generate -q -m %s -p '%s' --latents 3 --no-decode "
               "--latents-out z --overwrite", demo, many) == 0
           && strstr(said, "tokens and 32 are read"), "generate: %s", said);
    expect(run("embed -q -m %s -p '%s' -o e", demo, many) == 0
           && strstr(said, "tokens and 32 are read"), "embed: %s", said);
    expect(run("demo -q -m %s -p '%s' --latents 3 -o d", demo, many) == 0
           && strstr(said, "tokens and 32 are read"), "demo: %s", said);
    expect(run("generate -q -m %s " RED "--latents 3 --no-decode "
               "--latents-out z"
               " --overwrite", demo) == 0 && !*said, "a short one: %s",
           said);

    put_file(at("two.txt"), "a red circle\na blue square\n", 0644);
    expect(run("generate -m %s --prompt-file two.txt --latents 3 --no-decode "
               "--latents-out z --overwrite", demo) == 0
           && strstr(said, "video 1 of 2: a red circle")
           && strstr(said, "video 2 of 2: a blue square"), "two: %s", said);
    refuses(1, "No such file", "generate -m %s --prompt-file none.txt -o x.y4m",
            demo);
}

/* The built-in model says which words it does not know. */
static void test_words(void)
{
    char here[4096];
    if (!getcwd(here, sizeof here) || access("ref_data/demo", F_OK)) return;
    start_in = here;
    expect(run("demo -q --latents 3 -o %s -p 'a pink elephant moves up'",
               at("d")) == 0 && strstr(said, "pink, elephant: not among"),
           "words: %s", said);
    expect(run("demo -q --latents 3 -o %s -s 1 -p 'a GREEN square'", at("d"))
           == 0 && strstr(said, "GREEN:"), "capitals: %s", said);
    expect(run("demo -q --latents 3 -o %s", at("d")) == 0 && !*said,
           "known words: %s", said);
    start_in = folder;
}

/* Without -W and -H the model's own size. */
static void test_size(void)
{
    expect(run("generate -m %s " RED "--latents 3 --no-decode --latents-out z"
               " --overwrite",
               demo) == 0 && strstr(said, "frames of 64x64"), "64x64: %s",
           said);
    expect(run("generate -m %s " RED "--latents 3 -W 32 --no-decode "
               "--latents-out z --overwrite", demo) == 0
           && strstr(said, "frames of 32x64"), "32x64: %s", said);
}

/* ---- options without effect ---------------------------------------------- */

static void test_no_effect(void)
{
#define NONE(word, args) refuses(2, word, "generate -p x -o y.y4m " args)
    NONE("--tau has no effect with --cache fifo; it is a setting of tether",
         "--cache fifo --tau 0.5");
    NONE("--sink has no effect with --cache full", "--cache full --sink 2");
    NONE("deep-forcing and tether", "--cache memrope --recent 5");
    NONE("a setting of infinity", "--cut-at 3");
    NONE("a setting of memrope", "--cache fifo --adaptive");
    NONE("a setting of deep-forcing", "--unify");
    NONE("a setting of causvid", "--overlap 2");
    NONE("with one rollout", "--cache causvid --restart latent");
    NONE("--seed has no effect with --noise", "--noise n -s 5");
    NONE("--cut-rule has no effect", "--cut-rule readme");
#undef NONE
#define SCENE(word, cache, list)                                               \
    refuses(2, word, "generate -m %s -o y.y4m --latents 60 --cache " cache     \
            " --scene '" list "'", demo)
    SCENE("--cache tether; cuts are a setting of infinity", "tether",
          "A[3s#]|B");
    SCENE("[3s is no duration", "infinity", "A[3s|B");
    SCENE("[-3s] is no duration", "infinity", "A[-3s]|B");
    SCENE("[3 sec] is no duration", "infinity", "A[3 sec]|B");
#undef SCENE
    expect(run("generate -q -m %s --latents 12 --no-decode --latents-out z"
               " --overwrite "
               "--cache infinity --scene 'a [4k] cat [3 cats][0.8s#]|a dog'",
               demo) == 0, "brackets that are text: %s", said);
    refuses(2, "agrees with no name", "generate -m %s " RED "--latents 3 "
            "--no-decode --latents-out z"
            " --overwrite --dump d --dump-filter 'x.*'", demo);
    expect(!exists(at("d.part-0")) && access(at("d"), R_OK), "no empty dump");
}

/* ---- inspect ------------------------------------------------------------- */

static void test_inspect(void)
{
    char part[1300], command[1400];
    expect(run("inspect %s > out", demo) == 0
           && strstr(text_of(at("out")), "a model folder\n  transformer   "
                     "1.78 M parameters, BF16, 3.6 MB: ")
           && strstr(text_of(at("out")), "  text encoder  0.12 M")
           && strstr(text_of(at("out")), "  tokenizer     640 pieces")
           && !strstr(text_of(at("out")), "missing"), "the demo model: %.600s",
           text_of(at("out")));
    mkdir(at("half"), 0777);
    snprintf(command, sizeof command, "cp '%s/Wan2.1_VAE.safetensors' "
             "'%s/half'", demo, folder);
    expect(system(command) == 0 && run("inspect half > out") == 0
           && strstr(text_of(at("out")), "  transformer   missing; to fetch it: "
                     "hf download gdhe17/Self-Forcing checkpoints/"
                     "self_forcing_dmd.pt --local-dir half\n")
           && strstr(text_of(at("out")), "  VAE           2.04 M"),
           "half a model: %.900s", text_of(at("out")));
    expect(rename(at("half"), at("ha lf")) == 0
           && run("inspect 'ha lf' > out") == 0
           && strstr(text_of(at("out")), "--local-dir 'ha lf'\n"),
           "a folder with a blank: %.900s", text_of(at("out")));
    snprintf(part, sizeof part, "%s/google/umt5-xxl/spiece.model", demo);
    expect(run("inspect %s > out", part) == 0
           && strstr(text_of(at("out")), "tokenizer: 640 pieces"),
           "a tokenizer: %s%s", text_of(at("out")), said);
    refuses(1, "what --tokenizer takes", "generate -m %s --dit %s -p x -o x.y4m",
            demo, part);
    refuses(1, "No space left", "inspect %s > /dev/full", demo);
    refuses(1, "not a safetensors, GGUF, PyTorch", "inspect /etc/passwd");
}

/* ---- sentences ----------------------------------------------------------- */

static void test_sentences(void)
{
    expect(run("noise -o n -W 32 -H 32 --latents 3") == 0 && !*said, "noise: "
           "%s", said);
    expect(run("noise -o m -W 40 -H 32 --latents 3") == 0
           && strstr(said, "multiples of 16"), "for other programs: %s", said);
    refuses(2, "at least 1, but 0", "noise -o n --latents 0");
    refuses(1, "frames of 32x32 pixels, but the video is to have 64x64",
            "generate -m %s " RED "--noise n -W 64 -H 64 --latents 3 -o x.y4m",
            demo);
    refuses(2, "S + R = 3 + 4: raise it to 7", "generate -m %s " RED
            "--budget 2 -o x.y4m", demo);
    put_file(at("x.json"), "{}", 0644);
    refuses(1, "neither a PNG nor a JPEG", "generate -m %s " RED
            "--image x.json -o x.y4m", demo);
    put_file(at("x.webp"), "RIFF1234WEBPVP8 5678", 0644);
    refuses(1, "is a WebP picture", "generate -m %s " RED
            "--image x.webp -o x.y4m", demo);
    refuses(2, "832x480, but `big`", "generate -p x -o x.y4m --size big");
    refuses(2, "not both", "generate -p x -o x.y4m --size 32x32 -W 32");
    refuses(2, "multiple of 16", "generate -p x -o x.y4m --size 30x32");
    refuses(2, "--backend has no effect with --manifest",
            "validate --manifest --backend exact");
    refuses(2, "another noise", "compare --caches fifo -s random");
    refuses(2, "is for `tether validate --backend`", "generate -m %s " RED
            "--backend ./mine.so -o x.y4m", demo);

    expect(run("generate -m %s " RED "--size 32x48 -s random --latents 3 "
               "--no-decode --latents-out random --record r.json", demo) == 0
           && strstr(said, "frames of 32x48"), "--size: %s", said);
    const char *record = text_of(at("r.json"));
    char seed[64] = "";
    sscanf(said, "seed %40[0-9]", seed);
    expect(strstr(record, "\"--size\",\n    \"32x48\"")
           && strstr(record, "\"alpha\": 0.35,") && *seed
           && strstr(record, seed), "the record: seed %s, %.900s", seed,
           record);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (program_begin("cli/messages", argv) && *reference(demo, "demo")) {
        test_no_effect();
        test_inspect();
        test_sentences();
        test_prompts();
        test_words();
        test_size();
        if (has_terminal()) {
            test_progress();
            test_stop();
            test_percent();
        }
    }
    return program_end();
}
