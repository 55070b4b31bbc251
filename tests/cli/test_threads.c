/* test_threads.c: threads that wait cost nothing, and -v says how many.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/cli/program.h"

#define FRESH "env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT " /* starts anew      */

#define TINY "noise -W 8 -H 8 --latents 1 --chunk 1 -o n.safetensors " \
             "--overwrite"

/* OpenMP itself says what it does while it waits. */
static void waits_asleep(void)
{
#if defined _OPENMP && defined __linux__
    expect(run_after(FRESH "OMP_DISPLAY_ENV=true ", TINY " -t 2") == 0,
           "OMP_DISPLAY_ENV: %s", said);
    const char *policy = NULL, *at = said;
    while ((at = strstr(at, "OMP_WAIT_POLICY"))) policy = at++;
    expect(policy && !strncmp(policy + strcspn(policy, "'"), "'PASSIVE'", 9),
           "the last start does not wait passively: %s", said);
#endif
}

static void says_how_many(void)
{
    expect(run(TINY " -v") == 0 && strstr(said, "threads: "), "-v: %s", said);
    expect(run(TINY " -v -t 5") == 0
           && strstr(said, "threads: 5, as -t says"), "-t 5: %s", said);
    expect(run(TINY) == 0 && !strstr(said, "threads: "), "quiet: %s", said);
#ifdef _OPENMP
    expect(run_after("OMP_NUM_THREADS=3 ", TINY " -v") == 0
           && strstr(said, "threads: 3, as OMP_NUM_THREADS says"),
           "OMP_NUM_THREADS: %s", said);
    expect(run_after("OMP_NUM_THREADS=0 ", TINY " -v") == 0
           && strstr(said, "threads: ") && !strstr(said, "NUM_THREADS says"),
           "OMP_NUM_THREADS=0: %s", said);
#endif
}

/* The second start has the arguments of the first: blanks, empty ones. */
static void keeps_arguments(void)
{
    expect(run_after(FRESH, "noise -W 8 -H 8 --latents 1 "
                     "--chunk 1 -o 'a  b.safetensors'") == 0
           && exists(at("a  b.safetensors")), "blanks: %s", said);
    refuses(2, "argument 9 is empty", "noise -W 8 -H 8 --latents 1 -o x ''");
}

/* A bound thread that starts us anew would leave us its processor alone. */
static void keeps_processors(void)
{
#ifdef _OPENMP
    char free_of[64] = "", bound[64] = "";
    expect(run_after(FRESH, TINY " -v") == 0 && strstr(said, "threads: "),
           "-v: %s", said);
    sscanf(strstr(said, "threads: "), "threads: %63[0-9]", free_of);
    expect(run_after(FRESH "OMP_PROC_BIND=true ", TINY " -v") == 0
           && strstr(said, "threads: "), "OMP_PROC_BIND: %s", said);
    sscanf(strstr(said, "threads: "), "threads: %63[0-9]", bound);
    expect(!strcmp(free_of, bound), "%s threads, %s when bound", free_of,
           bound);
#endif
}

/* Under valgrind there is no second start; the loader complains once for each
 * start of a library that is not there. */
static void stays_in_valgrind(void)
{
    const char *library = "/not/there/vgpreload_core.so";
    expect(run_after(FRESH "LD_PRELOAD=/not/there/vgpreload_core.so ",
                     TINY) == 0, "preload: %s", said);
    const char *once = strstr(said, library);
    expect(!once || !strstr(once + 1, library), "started twice: %s", said);
}

int main(int argc, char **argv)
{
    (void)argc;
    char *demo = realpath("ref_data/demo", NULL);
    if (!program_begin("cli/threads", argv)) return program_end();
    expect(demo && !setenv("DEMO", demo, 1), "no ref_data/demo");
    waits_asleep();
    says_how_many();
    keeps_arguments();
    keeps_processors();
    stays_in_valgrind();
    free(demo);
    return program_end();
}
