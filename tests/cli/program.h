/* program.h: the program as a user meets it, for the tests of src/cli.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CLI_PROGRAM_H
#define TESTS_CLI_PROGRAM_H

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/folder.h"

static tt_ctx *ctx;
static char tether[1100];      /* the program, an absolute path               */
static const char *start_in = folder; /* of the program                      */
static char said[8192];        /* stderr of the latest run                    */

static inline bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* Make the folder, find the program of this build. */
static inline bool program_begin(const char *name, char **argv)
{
    ctx = test_begin(name);
    signal(SIGINT, SIG_DFL); /* who runs us in the background ignores it */
    /* build/<flavour>/tests/cli/test_x -> build/<flavour>/tether[-guard] */
    char *self = realpath(argv[0], NULL);
    char *end = self ? strstr(self, "/tests/cli/") : NULL;
    if (end) snprintf(tether, sizeof tether, "%.*s/tether%s",
                      (int)(end - self), self, test_guarded() ? "-guard" : "");
    free(self);
    return folder_make() &&
           expect(access(tether, X_OK) == 0, "%s is there", tether);
}

static inline int program_end(void)
{
    folder_remove();
    return test_end();
}

/* A command line for a shell, in a static buffer. The paths of the build, the
 * folder, the reference data and where we are, which may hold blanks, become
 * variables, and variables are not split. */
static inline const char *for_shell(const char *line)
{
    static char out[8192];
    char *root = realpath(ref_path("."), NULL);
    char *build = strdup(tether), *end = build ? strrchr(build, '/') : NULL;
    if (end) *end = 0;
    char *here = getcwd(NULL, 0);
    const char *path[] = {folder, end ? build : folder, root ? root : folder,
                          here ? here : folder};
    static const char *const name[] = {"FOLDER", "BUILD", "REFERENCE", "HERE"};
    size_t n = (size_t)snprintf(out, sizeof out, "IFS=; ");
    for (int i = 0; i < 4; i++) setenv(name[i], path[i], 1);
    while (*line && n + 16 < sizeof out) {
        int i = 0;
        while (i < 4 && strncmp(line, path[i], strlen(path[i]))) i++;
        if (i < 4)
            n += (size_t)snprintf(out + n, sizeof out - n, "${%s}", name[i]);
        else
            out[n++] = *line;
        line += i < 4 ? strlen(path[i]) : 1;
    }
    out[n] = 0;
    free(root);
    free(build);
    free(here);
    return out;
}

/* Run `tether <args>` through a shell after the shell words `before`
 * ("PATH=bin:$PATH "); its exit status. */
TT_PRINTF(2, 3)
static int run_after(const char *before, const char *fmt, ...)
{
    char args[3000], command[5200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(args, sizeof args, fmt, ap);
    va_end(ap);
    snprintf(command, sizeof command, "cd %s && %s%s %s 2> %s/stderr", start_in,
             before, tether, args, folder);
    fflush(stdout);
    int status = system(for_shell(command));
    snprintf(said, sizeof said, "%.8000s", text_of(at("stderr")));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
#define run(...) run_after("", __VA_ARGS__)

/* The run must end with `want` and say `word`. */
TT_PRINTF(3, 4)
static void refuses(int want, const char *word, const char *fmt, ...)
{
    char args[3000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(args, sizeof args, fmt, ap);
    va_end(ap);
    int got = run("%s", args);
    expect(got == want && strstr(said, word), "`%s`: exit status %d, expected "
           "%d with '%s': %s", args, got, want, word, said);
}

/* Start `tether ARGS` and send it one signal `after` microseconds later: its
 * wait status. */
static inline int signalled(int number, unsigned after, const char *args)
{
    char command[5600];
    int status = 0;
    snprintf(command, sizeof command, "cd %s && exec %s %s > %s 2> %s",
             start_in, tether, args, at("stdout"), at("stderr"));
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", for_shell(command), (char *)NULL);
        _exit(127);
    }
    usleep(after);
    kill(pid, number);
    for (int tries = 0; !waitpid(pid, &status, WNOHANG); usleep(10000))
        if (++tries == 3000) kill(pid, SIGKILL);
    return status;
}

/* One signal must end the run, with the program's own answer and with `word`.
 * A signal that comes before the program listens kills: tried again. */
TT_PRINTF(3, 4)
static inline void stops(int number, const char *word, const char *fmt, ...)
{
    char args[3000];
    int status = 0;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(args, sizeof args, fmt, ap);
    va_end(ap);
    for (unsigned after = 100000; after < 10000000; after *= 3) {
        status = signalled(number, after, args);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != number) break;
    }
    snprintf(said, sizeof said, "%.8000s", text_of(at("stderr")));
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 128 + number
           && strstr(said, "stopping after this step") && strstr(said, word),
           "signal %d to `%s`: wait status %x, %s", number, args,
           (unsigned)status, said);
}

/* A file with this text; `mode` its permissions. */
static inline void put_file(const char *path, const char *text, unsigned mode)
{
    FILE *f = fopen(path, "wb");
    if (!expect(f != NULL, "create %s", path)) return;
    fputs(text, f);
    fclose(f);
    chmod(path, mode);
}

/* A file or folder of the reference data as an absolute path, in `buf`. */
static inline const char *reference(char buf[1100], const char *name)
{
    char *full = realpath(ref_path("%s", name), NULL);
    snprintf(buf, 1100, "%s", full ? full : "");
    free(full);
    return expect(*buf, "%s is there", ref_path("%s", name)) ? buf : "";
}

/* Same bytes in two files. */
static inline bool same(const char *a, const char *b)
{
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    bool equal = f && g;
    while (equal) {
        int c = getc(f), d = getc(g);
        equal = c == d;
        if (c == EOF) break;
    }
    if (f) fclose(f);
    if (g) fclose(g);
    return equal;
}

/* A safetensors file with one float32 tensor; `fill` gives element i. */
static inline void put_tensor(const char *path, const char *name, int rank,
                              const int64_t *dim, float (*fill)(int64_t i))
{
    tt_st_writer *w;
    tt_arena a = {0};
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= dim[i];
    float *x = tt_alloc(ctx, &a, n, sizeof *x, name);
    for (int64_t i = 0; x && i < n; i++) x[i] = fill(i);
    if (expect_ok(tt_st_create(ctx, &w, path), path)) {
        tt_st_add(w, name, TT_F32, rank, dim, x);
        expect_ok(tt_st_finish(w), path);
    }
    tt_arena_free(&a);
}

#endif
