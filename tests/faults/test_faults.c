/* test_faults.c: every command, with the n-th call for memory or a file
 * failing.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property  whichever call fails (wrap.c), a command ends with status 0 or 1
 *           (validate: or 3), or is killed where that was asked for; a failure
 *           says one error. No sanitizer complains. Under a final name is what
 *           the command makes without a fault, or nothing. No temporary file is
 *           left, and what knows --resume goes on with it to the same bytes.
 * FAULTS    every call: all; else every n-th (1000 without it). ROWS chooses
 *           commands by parts of their names. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/folder.h"

typedef struct row {
    const char *name;
    const char *before;          /* makes its inputs, in ../in; NULL: nothing.
                                  * ../ref is ref_data                        */
    const char *command;
    bool resumes;                /* the same with --resume, to the same files */
} row;

#define TINY "-q -t 1 --overwrite -m ../ref/dit/models/tiny_a --embeds " \
             "../ref/dit/roll_tether_K9/inputs.safetensors -W 16 -H 16 "
#define GENERATE "generate " TINY "--latents 9 --budget 6 --sink 1 " \
                 "--memory 1 --checkpoint-every 1 --latents-out x.st "
static const row rows[] = {
    {"generate", NULL, GENERATE "--vae ../ref/vae_full_a/weights.safetensors "
     "-o v.y4m --trace-cache t.st --record r.json", true},
    {"generate-noisy", NULL, "generate " TINY "--latents 12 --cache "
     "deep-forcing --budget 6 --sink 1 --recent 3 --compress-to 5 "
     "--checkpoint-every 1 --no-decode --latents-out x.st", true},
    {"generate-pictures", NULL, GENERATE "--vae ../ref/vae_full_a/"
     "weights.safetensors -o p/%05d.png --contact-sheet s.png", true},
    {"decode", GENERATE "--no-decode", "decode -q -t 1 --vae "
     "../ref/vae_full_a/weights.safetensors --latents ../in/x.st -o v.y4m "
     "--overwrite", true},
    {"embed", NULL, "embed -q -t 1 -m ../ref/demo -p red -o e.st", false},
    {"encode", GENERATE "--vae ../ref/vae_full_a/weights.safetensors -o "
     "p/%05d.png", "encode -q -t 1 -m ../ref/demo -i ../in/p/00001.png "
     "-o l.st", false},
    {"convert", NULL, "convert -q ../ref/dit/models/tiny_a -o c.safetensors",
     false},
    {"validate", "noise -q -W 16 -H 16 --latents 3 -o a", "diff ../in/a "
     "../in/a --json d.json --html d.html", false},
    {"analyze", GENERATE "--no-decode --analyze run", "analyze -q ../in/run "
     "-o tables --csv", false},
    {"compare", NULL, "compare --caches fifo " TINY "--latents 3 "
     "--no-decode -o c.html", true},
};

static bool every_call;          /* or a sample                               */
static char program[1100], root[1100], where[300], said[65536];

/* ---- folders ------------------------------------------------------------- */

/* Remove a folder with all in it. */
static void empty(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char name[1400];
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (!lstat(name, &st) && S_ISDIR(st.st_mode)) empty(name);
        else unlink(name);
    }
    if (d) closedir(d);
    rmdir(path);
}

static const char *below(const char *name)
{
    static char ring[4][600];
    static int turn;
    char *b = ring[turn++ % 4];
    snprintf(b, sizeof ring[0], "%s/%s", where, name);
    return b;
}

static size_t read_all(const char *path, char *to, size_t n)
{
    FILE *f = fopen(path, "rb");
    const size_t k = f ? fread(to, 1, n, f) : 0;
    if (f) fclose(f);
    return k;
}

/* Same bytes? Of files that hold times, or the name of the machine where it
 * can be read, same ends. */
static bool same(const char *a, const char *b, bool times)
{
    enum { MOST = 1 << 22, END = 3 };
    static char x[MOST], y[MOST];
    const size_t n = read_all(a, x, MOST), k = read_all(b, y, MOST);
    if (!times) return n == k && !memcmp(x, y, n);
    return n > END && k > END && !memcmp(x + n - END, y + k - END, END);
}

/* ---- one call of the program --------------------------------------------- */

/* `tether <command> more` in folder `in`, with call n failing (0: none); its
 * exit status, 128 + n of signal n. */
static int run(const char *in, const char *command, const char *more, long n)
{
    char line[4000], number[24];
    snprintf(line, sizeof line, "exec %s %s %s", program, command, more);
    snprintf(number, sizeof number, "%ld", n);
    mkdir(below(in), 0700);
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        const int fd = open(below("said"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        setenv("TT_FAULT", number, 1);
        setenv("TT_FAULT_LOG", below("calls"), 1);
        if (chdir(below(in)) || dup2(fd, 1) < 0 || dup2(fd, 2) < 0) _exit(98);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(99);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    said[read_all(below("said"), said, sizeof said - 1)] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The number of calls of the latest run, and the name of what failed. */
static long calls_of(char name[64])
{
    char text[100];
    long n = 0;
    text[read_all(below("calls"), text, sizeof text - 1)] = 0;
    if (sscanf(text, "%ld %63s", &n, name) != 2) snprintf(name, 64, "a call");
    return n;
}

/* ---- what is left -------------------------------------------------------- */

/* Files that a failure may leave: unfinished latents, states, and frames. */
static bool may_stay(const char *name)
{
    const size_t n = strlen(name);
    return strstr(name, ".unfinished")
        || (n > 7 && !strcmp(name + n - 7, ".frames"))
        || (n > 7 && !strncmp(name + n - 7, ".state", 6));
}

/* The first file in got/`in` that is wrong, as a sentence, or NULL. `again` is
 * a second run without a fault. */
static const char *wrong_file(const char *in, bool resumes)
{
    static char why[1600];
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", below("got"), in);
    DIR *d = opendir(path);
    const char *bad = NULL;
    for (struct dirent *e; d && !bad && (e = readdir(d));) {
        char name[1000], got[1300], want[1300], again[1300];
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(name, sizeof name, "%s%s%.300s", in, *in ? "/" : "",
                 e->d_name);
        snprintf(got, sizeof got, "%s/%s", below("got"), name);
        snprintf(want, sizeof want, "%s/%s", below("want"), name);
        snprintf(again, sizeof again, "%s/%s", below("again"), name);
        if (!stat(got, &st) && S_ISDIR(st.st_mode)) {
            bad = wrong_file(name, resumes);
            continue;
        }
        if (resumes && may_stay(name)) continue;
        if (access(want, F_OK)) bad = "is left behind";
        else if (!same(got, want, strstr(name, ".html")
                                  || !same(want, again, false)))
            bad = "is incomplete under its final name";
        if (bad) snprintf(why, sizeof why, "%s %s", name, bad), bad = why;
    }
    if (d) closedir(d);
    return bad;
}

/* Is everything of want there? */
static bool complete(const char *in)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", below("want"), in);
    DIR *d = opendir(path);
    bool all = d != NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        char name[1000], got[1300];
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(name, sizeof name, "%s%s%.300s", in, *in ? "/" : "",
                 e->d_name);
        snprintf(got, sizeof got, "%s/%s", below("got"), name);
        all = all && !stat(got, &st)
           && (!S_ISDIR(st.st_mode) || complete(name));
    }
    if (d) closedir(d);
    return all;
}

/* ---- one fault ----------------------------------------------------------- */

static int errors_said(void)
{
    int n = 0;
    for (const char *c = said; (c = strstr(c, "tether: error:")); c++) n++;
    return n;
}

/* What a run with a fault did wrong, or NULL. */
static const char *judge(const row *r, int status)
{
    const bool check = !strcmp(r->name, "validate");
    if (strstr(said, "Sanitizer") || strstr(said, "runtime error"))
        return "a sanitizer complains";
    if (status > 1 && !(check && status == 3)) return "the exit status";
    if (status && errors_said() != 1) return "not one error is said";
    if (!status && errors_said()) return "an error, and status 0";
    if (!status && !complete("")) return "status 0, and a file is not there";
    const char *bad = wrong_file("", r->resumes);
    if (bad || !r->resumes || !status) return bad;
    /* A failure that a killed run could not have had either is no excuse. */
    if (run("got", r->command, "--resume", 0)) return "it cannot be resumed";
    if (!complete("")) return "resumed, and a file is not there";
    return wrong_file("", false);
}

static void one_fault(const row *r, long n, bool from)
{
    char name[64];
    if (from) setenv("TT_FAULT_FROM", "1", 1);
    const int status = run("got", r->command, "", n);
    unsetenv("TT_FAULT_FROM");
    calls_of(name);
    static char first[2000];
    snprintf(first, sizeof first, "%.1990s", said);
    const char *bad = judge(r, status);
    expect(!bad, "%s, %s %ld (%s) fails: status %d: %s: %s", r->name,
           from ? "from call" : "call", n, name, status, bad ? bad : "",
           bad && strcmp(bad, "it cannot be resumed") ? first : said);
    empty(below("got"));
}

/* A kill in place of a call: resumed, the files are the same. */
static void one_kill(const row *r, long n)
{
    setenv("TT_FAULT_KILL", "1", 1);
    const int status = run("got", r->command, "", n);
    unsetenv("TT_FAULT_KILL");
    expect(status == 128 + SIGKILL, "%s, kill at call %ld: status %d", r->name,
           n, status);
    expect(run("got", r->command, "--resume", 0) == 0 && complete(""),
           "%s, killed at call %ld, cannot be resumed: %s", r->name, n, said);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"x.st", "v.y4m", "t.st"};
        char got[700], want[700];
        snprintf(got, sizeof got, "%s/%s", below("got"), names[i]);
        snprintf(want, sizeof want, "%s/%s", below("want"), names[i]);
        expect(access(want, F_OK) || same(got, want, false),
               "%s, killed at call %ld: %s differs", r->name, n, names[i]);
    }
    empty(below("got"));
}

static void one_row(const row *r, long step)
{
    char name[64];
    if (r->before && !expect(run("in", r->before, "", 0) == 0,
                             "%s: its inputs: %s", r->name, said)) return;
    const bool whole = expect(run("want", r->command, "", 0) == 0,
                              "%s without a fault: %s", r->name, said);
    const long calls = calls_of(name);
    if (whole && expect(run("again", r->command, "", 0) == 0
                        && calls_of(name) == calls,
                        "%s makes as many calls again: %s", r->name, said)) {
        for (long n = 1 + calls % 7 % step; n <= calls; n += step) {
            one_fault(r, n, false);
            if (n % 8 == 0) one_fault(r, n, true);
            if (r->resumes && (!every_call || n % 4 == 0)) one_kill(r, n);
        }
        if (every_call) fprintf(stderr, "%s: %ld calls\n", r->name, calls);
    }
    empty(below("in"));
    empty(below("want"));
    empty(below("again"));
    unlink(below("said"));
    unlink(below("calls"));
}

int main(int argc, char **argv)
{
    const char *every = getenv("FAULTS"), *chosen = getenv("ROWS");
    const bool all = every && !strcmp(every, "all");
    const long step = all ? 1 : every && atol(every) > 0 ? atol(every) : 1000;
    (void)argc;
    every_call = every != NULL;
    test_begin("faults/faults");
    /* build/<flavour>/tests/faults/test_x -> build/<flavour>/tether-faults */
    char *self = realpath(argv[0], NULL), *ref = realpath(ref_path("."), NULL);
    char *end = self ? strstr(self, "/tests/faults/") : NULL;
    snprintf(program, sizeof program, "'%.*s/tether-faults'",
             end ? (int)(end - self) : 0, self ? self : "");
    snprintf(root, sizeof root, "%s", ref ? ref : "");
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    setenv("ASAN_OPTIONS", "exitcode=77:allocator_may_return_null=1", 1);
    free(self), free(ref);
    if (folder_make()) {
        snprintf(where, sizeof where, "%s", folder);
        expect(symlink(root, below("ref")) == 0, "a link to %s", root);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (!chosen || !*chosen || strstr(chosen, rows[i].name))
                one_row(&rows[i], step);
        unlink(below("ref"));
        folder_remove_empty();
    }
    return test_end();
}
