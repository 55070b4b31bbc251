/* test_failures.c: what the program does when things go wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every case here was once answered wrongly: a broken file under a final
 * name, a wrong exit status, work that was lost, or silence. */
#include <math.h>
#include <signal.h>

#include "tests/cli/program.h"

static char vae[1100];         /* a small VAE                                 */

static float small(int64_t i)
{
    return (float)(i % 17) / 17 - 0.5f;
}

static float one_nan(int64_t i)
{
    return i == 700 ? NAN : small(i);
}

/* ---- the ffmpeg program -------------------------------------------------- */

/* Stand-ins for ffmpeg in <folder>/<name>/, to be found first on PATH. */
static void put_ffmpeg(const char *name, const char *script)
{
    char path[192];
    mkdir(at(name), 0777);
    snprintf(path, sizeof path, "%s/%s/ffmpeg", folder, name);
    put_file(path, script, 0755);
}

static void test_ffmpeg(void)
{
    const int64_t dim[5] = {1, 2, 16, 4, 6};
    put_tensor(at("z"), "latents", 5, dim, small);

    /* As ffmpeg 5.1 on a full disk: says so, and exits with 0. */
    put_ffmpeg("full", "#!/bin/sh\ncat > /dev/null\n"
               "for last; do :; done\necho half > \"${last#file:}\"\n"
               "echo 'Error writing trailer of x: No space left on device'"
               " >&2\nexit 0\n");
    int got = run_after("PATH=$PWD/full:$PATH ", "decode -q --vae %s "
                        "--latents z -o full.mp4", vae);
    expect(got == 1 && strstr(said, "No space left"), "a full disk behind an "
           "exit status of 0: %d, %s", got, said);
    expect(!exists(at("full.mp4")), "no broken file under the final name");

    /* Never reads: ^C must still end the program. */
    const int64_t wide[5] = {1, 3, 16, 32, 32}; /* more than a pipe holds */
    put_tensor(at("wide"), "latents", 5, wide, small);
    put_ffmpeg("stuck", "#!/bin/sh\nexec sleep 100\n");
    char command[3000];
    snprintf(command, sizeof command, "cd %s && PATH=$PWD/stuck:$PATH exec %s "
             "decode -q --vae %s --latents wide -o stuck.mp4 2> stderr",
             folder, tether, vae);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    sleep(3);
    kill(pid, SIGINT);
    int status = 0, tries = 0;
    while (waitpid(pid, &status, WNOHANG) == 0 && ++tries < 100) usleep(50000);
    if (tries == 100) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 130, "one ^C ends a run "
           "whose ffmpeg is stuck (wait status %x): %s", (unsigned)status,
           text_of(at("stderr")));
    expect(!exists(at("stuck.mp4")), "nothing under the final name");
}

/* ---- values that are not finite ------------------------------------------ */

static void test_not_finite(void)
{
    const int64_t latents[5] = {1, 2, 16, 4, 6}, video[5] = {1, 3, 5, 16, 16};
    put_tensor(at("nan.st"), "latents", 5, latents, one_nan);
    put_tensor(at("nanv.st"), "video", 5, video, one_nan);
    refuses(1, "nan.st: latent frame 1", "decode --vae %s --latents nan.st "
            "-o nan.y4m", vae);
    refuses(1, "nanv.st: frame 2", "encode --vae %s --raw-in nanv.st "
            "-o nan.z", vae);
    expect(!exists(at("nan.y4m")) && !exists(at("nan.z")), "nothing written");
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!program_begin("failures", argv)) return test_end();
    reference(vae, "vae_full_a/weights.safetensors");
    test_ffmpeg();
    test_not_finite();
    return program_end();
}
