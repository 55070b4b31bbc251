/* test_locks.c: two runs at once: the second keeps off the files of the first.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include "tests/cli/files.h"

/* Until `name` is there, at most half a minute. */
static bool appears(const char *name)
{
    for (int i = 0; i < 3000 && !exists(at(name)); i++) usleep(10000);
    return expect(exists(at(name)), "%s appears", name);
}

static void test_two_at_once(void)
{
    /* Held by someone: refused, and kept. */
    put_file(at("l.unfinished"), "", 0644);
    const int fd = open(at("l.unfinished"), O_RDWR);
    expect(fd >= 0 && !flock(fd, LOCK_EX), "a lock");
    refuses(2, "another run is writing l", "%s",
            tiny_run("--no-decode --latents-out l"));
    refuses(2, "another run is writing l", "%s",
            tiny_run("--no-decode --latents-out l --overwrite"));
    close(fd);
    expect(run("%s", tiny_run("--no-decode --latents-out l")) == 0,
           "the lock is gone: %s", said);

    /* A log is held as well, and the refused run leaves it alone. */
    put_file(at("held"), "{\"event\": \"begin\"}\n", 0644);
    const int log = open(at("held"), O_RDWR);
    expect(log >= 0 && !flock(log, LOCK_EX), "a lock on a log");
    refuses(2, "another run is writing held", "%s",
            tiny_run("--no-decode --latents-out lh --log-json held"));
    expect(!strcmp(text_of(at("held")), "{\"event\": \"begin\"}\n"),
           "the log of the other run is whole");
    close(log);

    /* The program holds it to the end of its decoding; a killed one not. */
    mkdir(at("stuck"), 0777);
    put_file(at("stuck/ffmpeg"), "#!/bin/sh\necho $$ > started\n"
             "exec sleep 60\n",
             0755);
    char command[6000];
    snprintf(command, sizeof command, "cd %s && PATH=$PWD/stuck:$PATH && "
             "export PATH && { %s %s > /dev/null 2>&1 & echo $! > pid; }",
             folder, tether, tiny_run("-o k.mp4"));
    expect(system(for_shell(command)) == 0, "a run in the background");
    if (!appears("started")) return;
    refuses(2, "another run is writing k", "%s",
            tiny_run("-o k.y4m --resume"));
    const pid_t pid = atoi(text_of(at("pid")));
    expect(pid > 1 && !kill(pid, SIGKILL), "killed");
    for (int i = 0; i < 500 && !kill(pid, 0); i++) usleep(10000);
    const pid_t child = atoi(text_of(at("started")));
    if (child > 1) kill(child, SIGKILL);
    expect(run("%s", tiny_run("-o k.y4m --resume")) == 0,
           "a killed run leaves no lock: %s", said);
}

/* A run of many chunks; after the first of them someone puts a file under
 * `name`. */
static void put_between(const char *outputs, const char *name)
{
    char command[6000], args[1000];
    snprintf(args, sizeof args, "%s --cache fifo --latents 240 --log-json "
             "late.log 2> late.said & echo $! > pid; wait $!", outputs);
    snprintf(command, sizeof command, "cd %s && { %s %s; "
             "echo $? > late.status; }", folder, tether, tiny_run(args));
    unlink(at("late.log"));
    const pid_t shell = fork();
    if (!shell) _exit(system(for_shell(command)) != 0);
    for (int i = 0; i < 3000 && !strstr(text_of(at("late.log")), "\"chunk\"");
         i++) usleep(10000);
    const pid_t pid = atoi(text_of(at("pid")));
    expect(pid > 1 && !kill(pid, SIGSTOP), "stopped in between");
    put_file(at(name), "mine", 0644);
    if (pid > 1) kill(pid, SIGCONT);
    if (shell > 0) waitpid(shell, NULL, 0);
}

/* A run with other latents has made a file while this one went on. */
static void test_late(void)
{
    put_between("-o late.y4m", "late.y4m");
    expect(atoi(text_of(at("late.status"))) == 2
           && strstr(text_of(at("late.said")), "it was made meanwhile")
           && strstr(text_of(at("late.y4m")), "mine"),
           "what came in between is kept: %s", text_of(at("late.said")));
    expect(exists(at("late.latents.safetensors")), "and so are the latents");
    put_between("--no-decode --latents-out late", "late");
    expect(atoi(text_of(at("late.status"))) == 1
           && strstr(text_of(at("late.said")), "made meanwhile, and it stays")
           && !strcmp(text_of(at("late")), "mine"), "latents: %s",
           text_of(at("late.said")));
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!files_begin("locks", argv)) return test_end();
    test_two_at_once();
    test_late();
    return program_end();
}
