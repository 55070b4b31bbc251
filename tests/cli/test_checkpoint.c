/* test_checkpoint.c: saved states of runs, and kills at random moments.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties  two states take turns; --resume goes on from the newest that is
 *             whole and makes no clean pass before it; damage is said; whatever
 *             moment a run is killed at, what it was to make comes out byte
 *             for byte, and nothing else is left.
 * TT_KILLS    kills in all, one a policy without it; make check-kill: 300. */
#include <signal.h>
#include <time.h>

#include "tests/cli/program.h"
#include "tether/policy.h"

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

/* Flip a bit in the middle. */
static void damage(const char *path)
{
    FILE *f = fopen(path, "r+b");
    if (!f) return;
    fseek(f, 0, SEEK_END);
    const long middle = ftell(f) / 2;
    fseek(f, middle, SEEK_SET);
    const int c = fgetc(f);
    fseek(f, middle, SEEK_SET);
    fputc(c ^ 1, f);
    fclose(f);
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

/* Kill the command at `kills` random moments, resumed each time, then let it
 * end: are its files those of `want-`, and is no other there? Kills that came
 * before its end are counted. */
static int kill_run(const char *command, double seconds, int kills)
{
    int hit = 0;
    const uint64_t from = seed;
    for (int i = 0; i < kills; i++) {
        const pid_t pid = begin(command);
        usleep((useconds_t)(draw(1000) * seconds * 1000));
        kill(pid, SIGKILL);
        hit += end_of(pid) == 128 + SIGKILL;
    }
    const int status = end_of(begin(command));
    expect(status == 0, "status %d after %d kills, draws from %llu: %s", status,
           hit, (unsigned long long)from, text_of(at("stderr")));
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
        command_of(command, sizeof command, tt_policy_at(i % policies),
                   i + i / policies);
        unlink(at("stderr"));
        clock_gettime(CLOCK_MONOTONIC, &a);
        expect(end_of(begin(command)) == 0, "%s: %s", command,
               text_of(at("stderr")));
        clock_gettime(CLOCK_MONOTONIC, &b);
        keep("want-");
        hit += kill_run(command, (double)(b.tv_sec - a.tv_sec)
                                 + 1e-9 * (double)(b.tv_nsec - a.tv_nsec), n);
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
        test_full_disk();
        test_foreign();
        test_question();
    }
    if (kills) test_kills(atoi(kills), policies, 4);
    else test_kills(policies, policies, 1);
    return program_end();
}
