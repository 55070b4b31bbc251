/* command.h: commands that are to fail, and what they may leave.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Folders  of one row, below `where`: in (its inputs), want (its files without
 *          a fault), again (the same, to see what differs from run to run),
 *          got (with a fault). */
#ifndef TESTS_FAULTS_COMMAND_H
#define TESTS_FAULTS_COMMAND_H

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
    bool large;                  /* its calls are many: for full disks alone  */
} row;

#define TINY "-q -t 1 --overwrite -m ../ref/dit/models/tiny_a --embeds " \
             "../ref/dit/roll_tether_K9/inputs.safetensors -W 16 -H 16 "
#define POLICY "--latents 9 --budget 6 --sink 1 --memory 1 " \
               "--checkpoint-every 1 --latents-out x.st "
#define GENERATE "generate " TINY POLICY
#define VAE "--vae ../ref/vae_pth/weights.safetensors "
#define PREVIEW "p.png"          /* a run goes on without it                 */
#define SHORT TINY "--latents 3 --no-decode --latents-out x.st "
static const row rows[] = {
    {"generate", NULL, GENERATE VAE "-o v.y4m --trace-cache t.st", true,
     false},
    {"generate-record", NULL, "generate " SHORT "--record r.json", true,
     false},
    {"generate-noisy", NULL, "generate " TINY "--latents 12 --cache "
     "deep-forcing --budget 6 --sink 1 --recent 3 --compress-to 5 "
     "--checkpoint-every 1 --no-decode --latents-out x.st", true, false},
    {"generate-during", NULL, GENERATE VAE "-o v.y4m --decode during", true,
     false},
    {"generate-pictures", NULL, GENERATE VAE "-o p/%05d.png --contact-sheet "
     "s.png", true, false},
    {"generate-all", NULL, GENERATE VAE "-o v.y4m --animation a.apng "
     "--contact-sheet s.png --preview=" PREVIEW " --analyze run --record "
     "r.json --log-json log", true, true},
    {"generate-dump", NULL, "generate " SHORT "--dump d.st", false, true},
    {"batch", NULL, "generate " TINY VAE "--latents 3 --num-samples 3 "
     "--checkpoint-every 1 -o v.y4m --summary s.json", true, true},
    {"decode", GENERATE "--no-decode", "decode -q -t 1 " VAE "--latents "
     "../in/x.st -o v.y4m --overwrite", true, false},
    {"decode-all", GENERATE "--no-decode", "decode -q -t 1 " VAE "--latents "
     "../in/x.st -o v.apng --contact-sheet s.png --raw-out raw --overwrite",
     true, true},
    {"embed", NULL, "embed -q -t 1 -m ../ref/demo -p red -o e.st", false,
     false},
    {"encode", GENERATE VAE "-o p/%05d.png", "encode -q -t 1 -m ../ref/demo "
     "-i ../in/p/00001.png -o l.st", false, false},
    {"convert", NULL, "convert -q ../ref/dit/models/tiny_a -o c.safetensors",
     false, false},
    {"validate", "noise -q -W 16 -H 16 --latents 3 -o a", "diff ../in/a "
     "../in/a --json d.json --html d.html", false, false},
    {"validate-dump", "generate " SHORT "--dump d.st", "validate --dump "
     "../in/d.st --json d.json --html d.html --junit d.xml -- generate "
     SHORT, false, true},
    {"validate-export", NULL, "validate export cases --each 1", false, true},
    {"analyze", GENERATE "--no-decode --analyze run", "analyze -q ../in/run "
     "-o tables --csv", false, false},
    {"compare", NULL, "compare --caches fifo " TINY "--latents 3 "
     "--no-decode -o c.html", true, false},
};
enum { ROWS = sizeof rows / sizeof *rows };

static char program[1100], where[300], said[65536];
static char resumer[1100];       /* the program that goes on after a fault    */
static void (*before_run)(void);  /* called in the process of a command       */
static void (*before_again)(void); /* before what failed is run again         */

/* ---- folders ------------------------------------------------------------- */

static inline bool is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Remove a folder with all in it. */
static inline void empty(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char name[1400];
        struct stat st;
        if (is_dots(e->d_name)) continue;
        snprintf(name, sizeof name, "%.1000s/%.300s", path, e->d_name);
        if (!lstat(name, &st) && S_ISDIR(st.st_mode)) empty(name);
        else unlink(name);
    }
    if (d) closedir(d);
    rmdir(path);
}

static inline const char *below(const char *name)
{
    static char ring[4][600];
    static int turn;
    char *b = ring[turn++ % 4];
    snprintf(b, sizeof ring[0], "%s/%s", where, name);
    return b;
}

static inline size_t read_all(const char *path, char *to, size_t n)
{
    FILE *f = fopen(path, "rb");
    const size_t k = f ? fread(to, 1, n, f) : 0;
    if (f) fclose(f);
    return k;
}

enum { MOST = 1 << 22 };           /* bytes of a file that are compared       */
static char bytes_of_a[MOST], bytes_of_b[MOST];

/* Same bytes? Of files that hold times, or the name of the machine where it
 * can be read, same ends. */
static inline bool same(const char *a, const char *b, bool times)
{
    enum { END = 3 };
    char *x = bytes_of_a, *y = bytes_of_b;
    const size_t n = read_all(a, x, MOST), k = read_all(b, y, MOST);
    if (!times) return n == k && !memcmp(x, y, n);
    return n > END && k > END && !memcmp(x + n - END, y + k - END, END);
}

/* A log grows line by line: is every line whole? */
static inline bool whole_lines(const char *path)
{
    static const char begin[] = "{\"event\"";
    const size_t n = read_all(path, bytes_of_a, MOST - 1), m = strlen(begin);
    bytes_of_a[n] = 0;
    for (char *c = bytes_of_a, *end; *c; c = end + 1) {
        end = strchr(c, '\n');
        if (strncmp(c, begin, m) || !end || end[-1] != '}') return false;
    }
    return true;
}

/* ---- one call of the program --------------------------------------------- */

/* All that a command says: a pipe is never full for long. */
static inline void listen_to(int fd)
{
    char more[4096];
    size_t n = 0;
    for (ssize_t k; (k = read(fd, more, sizeof more)) > 0;) {
        if ((size_t)k > sizeof said - 1 - n)
            k = (ssize_t)(sizeof said - 1 - n);
        memcpy(said + n, more, (size_t)k);
        n += (size_t)k;
    }
    said[n] = 0;
    close(fd);
}

/* `<tether> <command> more` in folder `in`; its exit status, 128 + n of signal
 * n. */
static inline int run_by(const char *tether, const char *in,
                         const char *command, const char *more)
{
    char line[4000];
    int ends[2], status = 0;
    /* options go before the dashes that begin another command */
    const char *dashes = strstr(command, " -- ");
    const int n = dashes ? (int)(dashes - command) : (int)strlen(command);
    snprintf(line, sizeof line, "exec %s %.*s %s%s", tether, n, command, more,
             command + n);
    mkdir(below(in), 0700);
    fflush(stdout);
    if (pipe(ends)) return -1;
    const pid_t pid = fork();
    if (pid == 0) {
        if (chdir(below(in)) || dup2(ends[1], 1) < 0 || dup2(ends[1], 2) < 0)
            _exit(98);
        close(ends[0]);
        close(ends[1]);
        if (before_run) before_run();
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(99);
    }
    close(ends[1]);
    listen_to(ends[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int run(const char *in, const char *command, const char *more)
{
    return run_by(program, in, command, more);
}

/* ---- what is left -------------------------------------------------------- */

/* Files that a failure may leave: unfinished latents, states, and what can be
 * seen of a video. */
static inline bool may_stay(const char *name)
{
    const size_t n = strlen(name);
    return strstr(name, ".unfinished")
        || (n > 7 && !strncmp(name + n - 7, ".state", 6));
}

/* What is wrong with got/`name`, or NULL. */
static inline const char *wrong(const char *name)
{
    char got[1300], want[1300], again[1300];
    snprintf(got, sizeof got, "%s/%s", below("got"), name);
    snprintf(want, sizeof want, "%s/%s", below("want"), name);
    snprintf(again, sizeof again, "%s/%s", below("again"), name);
    if (access(want, F_OK)) return "is not left";
    if (!strcmp(name, "log"))
        return whole_lines(got) ? NULL : "has half a line";
    /* a preview may be that of an earlier chunk */
    return same(got, want, strstr(name, ".html") || !strcmp(name, PREVIEW)
                           || !same(want, again, false))
         ? NULL : "is incomplete under its final name";
}

/* The first file in got/`in` that is wrong, as a sentence, or NULL. */
static inline const char *wrong_file(const char *in, bool unfinished)
{
    static char why[1600];
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", below("got"), in);
    DIR *d = opendir(path);
    const char *bad = NULL;
    for (struct dirent *e; d && !bad && (e = readdir(d));) {
        char name[1000], got[1300];
        struct stat st;
        if (is_dots(e->d_name)) continue;
        snprintf(name, sizeof name, "%.600s%s%.300s", in, *in ? "/" : "",
                 e->d_name);
        snprintf(got, sizeof got, "%s/%s", below("got"), name);
        if (!stat(got, &st) && S_ISDIR(st.st_mode)) {
            bad = wrong_file(name, unfinished);
            continue;
        }
        if (unfinished && may_stay(name)) continue;
        bad = wrong(name);
        if (bad) snprintf(why, sizeof why, "%s %s", name, bad), bad = why;
    }
    if (d) closedir(d);
    return bad;
}

/* Is everything of want there? */
static inline bool complete(const char *in)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", below("want"), in);
    DIR *d = opendir(path);
    bool all = d != NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        char name[1000], got[1300];
        struct stat st;
        if (is_dots(e->d_name)) continue;
        snprintf(name, sizeof name, "%.600s%s%.300s", in, *in ? "/" : "",
                 e->d_name);
        snprintf(got, sizeof got, "%s/%s", below("got"), name);
        if (!strcmp(name, PREVIEW)) continue;
        all = all && !stat(got, &st)
           && (!S_ISDIR(st.st_mode) || complete(name));
    }
    if (d) closedir(d);
    return all;
}

/* After the error of a run that validation makes. */
#define OWN_RUN "tether: error: our own run failed"

static inline int errors_said(void)
{
    int n = 0;
    for (const char *c = said; (c = strstr(c, "tether: error:")); c++) n++;
    return n;
}

/* What a run with a fault did wrong, or NULL. What it says later than its
 * first run is in `said` then. */
static inline const char *verdict(const row *r, int status)
{
    const bool check = !strncmp(r->name, "validate", 8);
    if (strstr(said, "Sanitizer") || strstr(said, "runtime error"))
        return "a sanitizer complains";
    if (status > 1 && !(check && status == 3)) return "the exit status";
    if (status && errors_said() != (strstr(said, OWN_RUN) ? 2 : 1))
        return "not one error is said";
    if (!status && errors_said()) return "an error, and status 0";
    if (!status && !complete(""))
        return "status 0, and a file is not there";
    return wrong_file("", r->resumes || strstr(r->command, "x.st"));
}

/* The same command after a kill. */
static inline int resume(const row *r)
{
    return run_by(resumer, "got", r->command, r->resumes ? "--resume" : "");
}

/* The same after a failure: a run that went on without states, because they
 * could not be written, is begun again where its policy needs one. */
static inline int go_on(const row *r)
{
    const int bad = resume(r);
    return bad && strstr(r->command, "deep-forcing")
        && strstr(said, "no saved cache") && strstr(said, "start over")
         ? run_by(resumer, "got", r->command, "") : bad;
}

/* What is wrong with the same command after a failure, or NULL. */
static inline const char *check_again(const row *r)
{
    /* A failure that a killed run could not have had either is no excuse. */
    if (before_again) before_again();
    const int bad = go_on(r);
    if (bad) return "it cannot be run again";
    if (!complete("")) return "run again, and a file is not there";
    return wrong_file("", false);
}

/* ---- the program --------------------------------------------------------- */

/* The folder of this test, and the program `name` of this build. RESUMER: a
 * faster one of the same version, or nothing. */
static inline bool command_begin(const char *test, char **argv,
                                 const char *name)
{
    test_begin(test);
    /* build/<flavour>/tests/faults/test_x -> build/<flavour>/<name> */
    char *self = realpath(argv[0], NULL), *ref = realpath(ref_path("."), NULL);
    char *end = self ? strstr(self, "/tests/faults/") : NULL;
    snprintf(program, sizeof program, "'%.*s/%s'",
             end ? (int)(end - self) : 0, self ? self : "", name);
    const char *faster = getenv("RESUMER");
    char *path = faster && *faster ? realpath(faster, NULL) : NULL;
    snprintf(resumer, sizeof resumer, path ? "'%.1000s'" : "%.1090s",
             path ? path : program);
    free(path);
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    setenv("ASAN_OPTIONS", "exitcode=77:allocator_may_return_null=1", 1);
    const bool made = folder_make();
    snprintf(where, sizeof where, "%s", folder);
    const bool linked = made && expect(symlink(ref ? ref : "", below("ref"))
                                       == 0, "a link to %s", ref);
    free(self), free(ref);
    return linked;
}

static inline int command_end(void)
{
    unlink(below("ref"));
    folder_remove_empty();
    return test_end();
}

/* The inputs of a row, and its files without a fault, twice. */
static inline bool row_begin(const row *r)
{
    return (!r->before || expect(run("in", r->before, "") == 0,
                                 "%s: its inputs: %s", r->name, said))
        && expect(run("want", r->command, "") == 0, "%s without a fault: %s",
                  r->name, said)
        && expect(run("again", r->command, "") == 0, "%s, again: %s", r->name,
                  said);
}

static inline void row_end(void)
{
    static const char *const made[] = {"in", "want", "again", "got"};
    for (int i = 0; i < 4; i++) empty(below(made[i]));
}

/* Is the row among those of ROWS, or are there none? */
static inline bool chosen(const row *r)
{
    const char *names = getenv("ROWS");
    for (const char *c = names; c && (c = strstr(c, r->name)); c++) {
        const char after = c[strlen(r->name)];
        if ((c == names || c[-1] == ' ') && (!after || after == ' '))
            return true;
    }
    return !names || !*names;
}

#endif
