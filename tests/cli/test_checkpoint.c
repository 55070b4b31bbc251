/* test_checkpoint.c: saved states of runs, and kills at random moments.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties  two states take turns; --resume goes on from the newest that is
 *             whole and makes no clean pass before it; damage is said, of the
 *             latents too, and no one goes on from damaged ones; whatever
 *             moment a run is killed at, what it was to make comes out byte
 *             for byte, and nothing else is left. A policy that needs a state
 *             has one after its first chunk; killed before that, a run starts
 *             over and says so.
 * TT_KILLS    kills in all, one a policy without it; make check-kill: 300. */
#include <signal.h>
#include <time.h>

#include "tests/cli/program.h"
#include "cache/policy.h"

static char model[1100];

/* A child that is the program itself, so that a signal hits nothing else. */
static pid_t begin(const char *args)
{
    char line[6000], command[8200];
    snprintf(line, sizeof line, "cd %s && exec %s %s 2>> %s/stderr", folder,
             tether, args, folder);
    snprintf(command, sizeof command, "%s", for_shell(line));
    fflush(stdout);
    const pid_t pid = fork();
    if (pid) return pid;
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(99);
}

/* Its exit status; 128 + n of signal n. */
static int end_of(pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- which state is taken ------------------------------------------------ */

#define RUN "generate -m %s -p red -W 32 -H 32 -t 1 --latents 60 --no-decode " \
            "--latents-out x.st --log-json log --cache %s "

/* How often a text is said. */
static int count_of(const char *text, const char *word)
{
    int n = 0;
    while (text && (text = strstr(text, word))) n++, text++;
    return n;
}

/* Begin a run and send it the signal once `chunks` of its lines are in the
 * log: its end. One that was faster than the signal is made again, in vain at
 * most four times. */
static int signal_after(int chunks, int signal, const char *policy,
                        const char *more, bool (*late)(int status))
{
    char args[3000];
    int status = 0;
    snprintf(args, sizeof args, RUN "%s", model, policy, more);
    for (int k = 0; k < 5; k++) {
        if (k) unlink(at("x.st"));
        unlink(at("log"));
        unlink(at("stderr"));
        const pid_t pid = begin(args);
        for (int i = 0; i < 60000; i++, usleep(1000))
            if (count_of(text_of(at("log")), "\"chunk\":") >= chunks) break;
        kill(pid, signal);
        status = end_of(pid);
        if (!late(status)) break;
    }
    return status;
}

static bool has_ended(int status)
{
    return status == 0;
}

/* Stop a run once `chunks` of its lines are in the log. */
static void stop_after(int chunks, const char *policy, const char *more)
{
    const int status = signal_after(chunks, SIGINT, policy, more, has_ended);
    expect(status == 130, "%s: exit status %d after SIGINT: %s", policy, status,
           text_of(at("stderr")));
}

/* The state that was written last. */
static const char *newest(void)
{
    struct stat a, b;
    if (stat(at("x.st.state1"), &a) || stat(at("x.st.state2"), &b))
        return at("x.st.state1");
    const bool first = a.st_mtim.tv_sec > b.st_mtim.tv_sec
        || (a.st_mtim.tv_sec == b.st_mtim.tv_sec
            && a.st_mtim.tv_nsec > b.st_mtim.tv_nsec);
    return at(first ? "x.st.state1" : "x.st.state2");
}

/* Flip a bit of the byte that lies `share` of the file after its beginning.  */
static void damage_at(const char *path, double share)
{
    FILE *f = fopen(path, "r+b");
    if (!f) return;
    fseek(f, 0, SEEK_END);
    const long place = (long)(share * (double)(ftell(f) - 1));
    fseek(f, place, SEEK_SET);
    const int c = fgetc(f);
    fseek(f, place, SEEK_SET);
    fputc(c ^ 1, f);
    fclose(f);
}

static void damage(const char *path)
{
    damage_at(path, 0.5);
}

/* Resume the stopped run; it must say this, and make the same latents. */
static void goes_on(const char *what, const char *policy, const char *word)
{
    expect(run(RUN "--resume --checkpoint-every 1 --record run.json", model,
               policy) == 0
           && strstr(said, word), "%s: no '%s': %s", what, word, said);
    const char *chunks = strstr(text_of(at("run.json")), "\"resumed_after\"");
    expect(count_of(chunks, "\"frames\":") == 20, "%s: each of 20 chunks is in "
           "the record once: %s", what, chunks ? chunks : "no record");
    unlink(at("run.json"));
    expect(same(at("x.st"), at("whole")), "%s: the same latents", what);
    expect(!exists(at("x.st.state1")) && !exists(at("x.st.state2")),
           "%s: states are gone at the end", what);
    unlink(at("x.st"));
}

static void test_states(const char *policy, bool replays)
{
    expect(run(RUN "-q --checkpoint-every 0", model, policy) == 0
           && rename(at("x.st"), at("whole")) == 0, "whole: %s", said);

    stop_after(8, policy, "--checkpoint-every 1");
    expect(exists(at("x.st.state1")) && exists(at("x.st.state2")),
           "%s: two states", policy);
    goes_on("both", policy, "from their saved state");

    stop_after(8, policy, "--checkpoint-every 1");
    unlink(at("x.st.state2"));
    goes_on("one of them", policy, "resuming after");

    stop_after(8, policy, "--checkpoint-every 1");
    put_file(at("x.st.state1.part-1"), "half", 0644);
    damage(newest());
    goes_on("damaged", policy, "is damaged");
    expect(!exists(at("x.st.state1.part-1")), "what a killed run left is gone");

    stop_after(8, policy, "--checkpoint-every 1");
    damage(at("x.st.state1"));
    damage(at("x.st.state2"));
    if (replays) {
        goes_on("both damaged", policy, "one clean pass for each");
        stop_after(8, policy, "--checkpoint-every 0");
        expect(!exists(at("x.st.state1")), "0: no state");
        goes_on("none", policy, "one clean pass for each");
    } else {
        refuses(1, "start over", RUN "--resume", model, policy);
        refuses(2, "needs a number", RUN "--checkpoint-every -1", model,
                policy);
    }
    expect(run(RUN "-q --overwrite --checkpoint-every 100", model, policy) == 0
           && !exists(at("x.st.state1")) && same(at("x.st"), at("whole")),
           "%s: started over: %s", policy, said);
    unlink(at("x.st"));
    unlink(at("whole"));
}

/* Bytes of so many frames of unfinished latents, with their header; 0: there
 * is none. */
static long bytes_of(int frames)
{
    unsigned char size[8] = {0};
    FILE *f = fopen(at("x.st.unfinished"), "rb");
    const bool read = f && fread(size, 1, sizeof size, f) == sizeof size;
    if (f) fclose(f);
    return read ? 8 + size[0] + 256L * size[1]
                  + frames * 16 * 4 * 4 * (long)sizeof(tt_real) : 0;
}

/* Keep so many frames, and no state. */
static void leave_alone(int frames)
{
    const long n = bytes_of(frames);
    expect(n && !truncate(at("x.st.unfinished"), n), "%d frames", frames);
    unlink(at("x.st.state1"));
    unlink(at("x.st.state2"));
}

/* By time a run of a second saves nothing; where nothing but a state goes on,
 * one is there after the first chunk. A kill before it loses that chunk, and
 * only that is begun again unasked. */
static void test_first_state(void)
{
    static const char policy[] = "deep-forcing";
    static const int lost[] = {1, 3, 5};
    expect(run(RUN "-q --checkpoint-every 0", model, policy) == 0
           && rename(at("x.st"), at("whole")) == 0, "whole: %s", said);

    int status = signal_after(1, SIGKILL, policy, "", has_ended);
    expect(status == 128 + SIGKILL && exists(at("x.st.state1")),
           "killed after a chunk (%d): a state is there", status);
    goes_on("a chunk", policy, "resuming after");
    status = signal_after(1, SIGKILL, policy, "--checkpoint-every 100",
                          has_ended);
    expect(status == 128 + SIGKILL && exists(at("x.st.state1"))
           && !exists(at("x.st.state2")), "the same of 100 (%d)", status);
    goes_on("a chunk of 100", policy, "resuming after 1 of 20");

    for (int i = 0; i < 3; i++) {
        stop_after(3, policy, "--checkpoint-every 1");
        leave_alone(6);
        refuses(2, "no saved cache", RUN "--resume", model, policy);
        leave_alone(lost[i]);
        goes_on("nothing", policy, "starts over");
    }
    unlink(at("whole"));
}

/* Latents that are not those that were written. */
static void test_latents(const char *policy)
{
    expect(run(RUN "-q --checkpoint-every 0", model, policy) == 0
           && rename(at("x.st"), at("whole")) == 0, "whole: %s", said);
    stop_after(8, policy, "--checkpoint-every 0");
    damage_at(at("x.st.unfinished"), 1);
    goes_on("the last frame", policy, "the others are made again");
    stop_after(8, policy, "--checkpoint-every 0");
    damage_at(at("x.st.unfinished"), 0.7);
    refuses(1, "not those that were written", RUN "--resume", model, policy);
    expect(run(RUN "-q --resume --overwrite", model, policy) == 0
           && same(at("x.st"), at("whole")), "started over: %s", said);
    damage_at(at("x.st"), 0.7);
    refuses(1, "not those that were written", RUN "--resume", model, policy);
    unlink(at("x.st"));
    unlink(at("whole"));
}

static bool says_nothing(int status)
{
    return status == 0 && !*text_of(at("stderr"));
}

/* SIGUSR1 asks how far it is, and nothing else. */
static void test_question(void)
{
    const int status = signal_after(1, SIGUSR1, "fifo", "-q", says_nothing);
    expect(status == 0 && exists(at("x.st")), "it goes on: %s",
           text_of(at("stderr")));
    expect(strstr(text_of(at("stderr")), "tether: chunk ")
           && strstr(text_of(at("stderr")), "/20"), "and says where: %s",
           text_of(at("stderr")));
    unlink(at("x.st"));
}

/* A command that has no answer is not ended by the question. */
static void test_no_answer(void)
{
    expect(run(RUN "-q --analyze run", model, "fifo") == 0, "a run: %s", said);
    unlink(at("x.st"));
    unlink(at("log"));
    unlink(at("stderr"));
    const pid_t pid = begin("analyze run -o an --log-json log");
    for (int i = 0; i < 60000; i++, usleep(100))
        if (count_of(text_of(at("log")), "begin")) break;
    kill(pid, SIGUSR1);
    const int status = end_of(pid);
    expect(status == 0, "analyze: exit status %d after SIGUSR1: %s", status,
           text_of(at("stderr")));
}

/* A file that only a whole run can fill is no part of what is said to go on. */
static void test_whole_files(void)
{
    static const struct { const char *policy, *option, *words; } row[] = {
        {"fifo", "--dump d --dump-filter none", "--resume instead of --dump"},
        {"fifo", "--trace-cache d", "--resume"},
        {"deep-forcing", "--trace-cache d",
         "--resume instead of --trace-cache"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char words[100];
        snprintf(words, sizeof words, "the same command with %s goes on",
                 row[i].words);
        const int status = signal_after(4, SIGINT, row[i].policy,
                                        row[i].option, has_ended);
        expect(status == 130 && strstr(text_of(at("stderr")), words),
               "%s: status %d, not \"%s\": %s", row[i].option, status, words,
               text_of(at("stderr")));
        const bool whole = strstr(row[i].words, "instead");
        expect(run(RUN "-q --resume %s", model, row[i].policy, row[i].option)
               == (whole ? 2 : 0), "%s: %s", row[i].option, said);
        expect(run(RUN "-q --resume", model, row[i].policy) == 0,
               "goes on without %s: %s", row[i].option, said);
        unlink(at("x.st"));
        unlink(at("d"));
    }
}

/* A state that cannot be written ends no run. */
static void test_full_disk(void)
{
    mkdir(at("x.st.state1"), 0700);
    expect(run(RUN "--checkpoint-every 1", model, "fifo") == 0
           && strstr(said, "the run goes on without saving its state"),
           "a state that cannot be written: %s", said);
    rmdir(at("x.st.state1"));
    unlink(at("x.st"));
}

/* A file that has the name of a state and is none is not lost unasked. */
static void test_foreign(void)
{
    const char *const theirs[] = {"x.st.state2", "x.st.state1.part-one"};
    put_file(at(theirs[0]), "notes about the states of a run", 0644);
    refuses(2, "no saved state of a run", RUN, model, "fifo");
    refuses(2, "x.st.state2", RUN "--resume", model, "fifo");
    expect(!strcmp(text_of(at(theirs[0])), "notes about the states of a run"),
           "it is as it was");
    put_file(at(theirs[1]), "no number", 0644);
    expect(run(RUN "--overwrite --checkpoint-every 1", model, "fifo") == 0
           && !exists(at(theirs[0])), "it may go: %s", said);
    expect(exists(at(theirs[1])), "no part of a state stays");
    unlink(at(theirs[1]));
    unlink(at("x.st"));
    expect(!mkfifo(at(theirs[0]), 0600), "a named pipe");
    refuses(2, "x.st.state2 is no saved state", RUN, model, "fifo");
    expect(exists(at(theirs[0])) && !unlink(at(theirs[0])), "it is there");
}

/* ---- kills at random moments --------------------------------------------- */

static uint64_t seed = 1;

static uint32_t draw(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % n;
}

/* What is made, with a trace where the policy allows to go on with one. */
static void command_of(char *to, size_t n, const tt_policy_class *c, int i)
{
    const bool clips = c->flags & TT_RESTARTS;
    snprintf(to, n, "generate -q -m %s -p red -W 32 -H 32 --latents %d --cache "
             "%s %s --class %s -t %d --checkpoint-every %d -o v.y4m "
             "--contact-sheet s.png --latents-out x.st %s --resume", model,
             clips ? 9 : 30, c->name,
             clips ? "--rollouts 3 --restart latent" : "",
             i % 2 ? "bf16" : "f32", 1 + i / 2 % 2, 1 + i % 3,
             c->flags & TT_KEEPS_NOISY ? "" : "--trace-cache t.st");
}

enum { MADE = 4 };
static const char *const made[MADE] = {"v.y4m", "x.st", "t.st", "s.png"};

static void keep(const char *as)
{
    for (int i = 0; i < MADE; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", as, made[i]);
        rename(at(made[i]), at(name));
    }
}

/* Has a kill left a frame or more that a mark of the header vouches for, and no
 * state? */
static bool lacks_state(void)
{
    char header[4096] = "";
    long n = 0;
    FILE *f = fopen(at("x.st.unfinished"), "rb");
    const bool read = f && fread(header, 1, 8, f) == 8
                   && fread(header, 1, sizeof header - 1, f) > 0;
    if (f) fclose(f);
    for (const char *p = header; (p = strstr(p, "\"kept_")); p++)
        if (strtol(p + strlen("\"kept_1\": \""), NULL, 10) > n) n = 1;
    return read && n && !exists(at("x.st.state1")) && !exists(at("x.st.state2"));
}

/* Kill the command at `kills` random moments, resumed each time, then let it
 * end: are its files those of `want-`, and is no other there? One that `needs`
 * a state and has none starts over, in words. Kills that came before its end
 * are counted. */
static int kill_run(const char *command, double seconds, int kills, bool needs)
{
    int hit = 0;
    const uint64_t from = seed;
    for (int i = 0; i < kills; i++) {
        const pid_t pid = begin(command);
        usleep((useconds_t)(draw(1000) * seconds * 1000));
        kill(pid, SIGKILL);
        hit += end_of(pid) == 128 + SIGKILL;
    }
    const bool anew = needs && lacks_state();
    unlink(at("stderr"));
    const int status = end_of(begin(command));
    expect(status == 0 && anew == (count_of(text_of(at("stderr")),
                                            "starts over") > 0),
           "status %d after %d kills, draws from %llu, %s: %s", status, hit,
           (unsigned long long)from, anew ? "no state" : "nothing is lost",
           text_of(at("stderr")));
    for (int i = 0; i < MADE; i++) {
        char name[32];
        snprintf(name, sizeof name, "want-%s", made[i]);
        expect(exists(at(name)) == exists(at(made[i])) && (!exists(at(name))
               || same(at(name), at(made[i]))), "%s after %d kills, draws from "
               "%llu: %s", made[i], hit, (unsigned long long)from, command);
    }
    expect(!exists(at("x.st.unfinished")) && !exists(at("x.st.state1"))
           && !exists(at("x.st.state2")) && !exists(at(".s.png.part")),
           "nothing but its files is left");
    return hit;
}

/* Until `kills` have hit a run, `n` at most in one. */
static void test_kills(int kills, int policies, int n)
{
    int hit = 0;
    for (int i = 0; hit < kills && i < kills; i++) {
        char command[3000];
        struct timespec a, b;
        const tt_policy_class *c = tt_policy_at(i % policies);
        command_of(command, sizeof command, c, i + i / policies);
        unlink(at("stderr"));
        clock_gettime(CLOCK_MONOTONIC, &a);
        expect(end_of(begin(command)) == 0, "%s: %s", command,
               text_of(at("stderr")));
        clock_gettime(CLOCK_MONOTONIC, &b);
        keep("want-");
        hit += kill_run(command, (double)(b.tv_sec - a.tv_sec)
                                 + 1e-9 * (double)(b.tv_nsec - a.tv_nsec), n,
                        c->flags & TT_KEEPS_NOISY);
        for (int k = 0; k < MADE; k++) {
            char name[32];
            snprintf(name, sizeof name, "want-%s", made[k]);
            unlink(at(name));
            unlink(at(made[k]));
        }
        if (n > 1) fprintf(stderr, "%d kills: %s\n", hit, command);
    }
    expect(hit > 0, "not one of %d kills came before the end of its run",
           kills);
}

int main(int argc, char **argv)
{
    const char *kills = getenv("TT_KILLS"), *draws = getenv("TT_KILL_SEED");
    int policies = 0;
    while (tt_policy_at(policies)) policies++;
    (void)argc;
    if (!program_begin("cli/checkpoint", argv)) return program_end();
    reference(model, "demo");
    if (draws) seed = strtoull(draws, NULL, 10);
    if (!kills) {
        test_states("tether", true);
        test_states("deep-forcing", false);
        test_latents("fifo");
        test_full_disk();
        test_foreign();
        test_question();
        test_whole_files();
        test_no_answer();
    }
    test_first_state();
    if (kills) test_kills(atoi(kills), policies, 4);
    else test_kills(policies, policies, 1);
    return program_end();
}
