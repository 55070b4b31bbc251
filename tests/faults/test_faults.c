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
 * FAULTS    every call: all; paths: one call of every path to one (wrap.c);
 *           else every n-th (1000 without it). ROWS chooses commands by their
 *           names, PART=2/4 the second quarter of the calls of each; RESUMER
 *           is a faster program that goes on with what a failure left. */
#include "tests/faults/command.h"

static bool every_call;          /* or a sample                               */
static long call;                /* that fails in the next command; 0: none   */
static long path_call[1 << 16];  /* the first one of every path               */
static int path_calls = -1;      /* how many; unless FAULTS=paths             */

static void in_command(void)
{
    char number[24];
    snprintf(number, sizeof number, "%ld", call);
    setenv("TT_FAULT", number, 1);
    setenv("TT_FAULT_LOG", below("calls"), 1);
    if (path_calls >= 0) setenv("TT_FAULT_PATHS", below("paths"), 1);
}

static int run_with(long n, const row *r)
{
    call = n;
    const int status = run("got", r->command, "");
    call = 0;
    return status;
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

static void one_fault(const row *r, long n, bool from)
{
    static char first[2000];
    char name[64];
    if (from) setenv("TT_FAULT_FROM", "1", 1);
    const int status = run_with(n, r);
    unsetenv("TT_FAULT_FROM");
    calls_of(name);
    snprintf(first, sizeof first, "%.1990s", said);
    const char *bad = verdict(r, status), *again = NULL;
    if (!bad && r->resumes && status) again = check_again(r);
    expect(!bad && !again, "%s, %s %ld (%s) fails: status %d: %s: %s", r->name,
           from ? "from call" : "call", n, name, status,
           bad ? bad : again ? again : "", again ? said : first);
    empty(below("got"));
}

/* A kill in place of a call: resumed, the files are the same. */
static void one_kill(const row *r, long n)
{
    setenv("TT_FAULT_KILL", "1", 1);
    const int status = run_with(n, r);
    unsetenv("TT_FAULT_KILL");
    expect(status == 128 + SIGKILL, "%s, kill at call %ld: status %d", r->name,
           n, status);
    expect(!resume(r) && complete(""),
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

/* The calls of PART: (first, last]. */
static void part(long calls, long *first, long *last)
{
    const char *text = getenv("PART");
    int i, n;
    if (!text || sscanf(text, "%d/%d", &i, &n) != 2 || i < 1 || i > n)
        i = n = 1;
    *first = calls * (i - 1) / n;
    *last = calls * i / n;
}

/* ---- the first call of every path ---------------------------------------- */

static void read_paths(void)
{
    FILE *f = path_calls < 0 ? NULL : fopen(below("paths"), "r");
    path_calls = f ? 0 : path_calls;
    while (f && path_calls < 1 << 16
           && fscanf(f, "%ld", &path_call[path_calls]) == 1) path_calls++;
    expect(path_calls != 0, "a call is on a path");
    if (f) fclose(f);
}

static bool is_first(long n)
{
    for (int i = 0; i < path_calls; i++)
        if (path_call[i] == n) return true;
    return path_calls < 0;
}

/* ---- every call ---------------------------------------------------------- */

static void one_row(const row *r, long step)
{
    char name[64];
    const bool whole = row_begin(r);
    const long calls = calls_of(name);
    long first, last;
    if (whole && expect(run("got", r->command, "") == 0
                        && calls_of(name) == calls,
                        "%s makes as many calls again: %s", r->name, said)) {
        empty(below("got"));
        part(calls, &first, &last);
        read_paths();
        for (long n = first + 1 + calls % 7 % step; n <= last; n += step) {
            if (!is_first(n)) continue;
            one_fault(r, n, false);
            if (n % 8 == 0) one_fault(r, n, true);
            if (r->resumes && (!every_call || n % 4 == 0)) one_kill(r, n);
        }
        if (every_call)
            fprintf(stderr, "%s: calls %ld to %ld of %ld\n", r->name,
                    first + 1, last, calls);
    }
    row_end();
    unlink(below("calls"));
    unlink(below("paths"));
}

int main(int argc, char **argv)
{
    const char *every = getenv("FAULTS");
    const bool paths = every && !strcmp(every, "paths");
    const bool all = paths || (every && !strcmp(every, "all"));
    const long step = all ? 1 : every && atol(every) > 0 ? atol(every) : 1000;
    (void)argc;
    every_call = every != NULL;
    path_calls = paths ? 0 : -1;
    before_run = in_command;
    const bool begun = command_begin("faults/faults", argv, "tether-faults");
    char path[1100]; /* program, without its quotes */
    snprintf(path, sizeof path, "%.*s", (int)strlen(program) - 2, program + 1);
    if (begun && access(path, X_OK))
        skip("this linker cannot rename calls (--wrap): none fails");
    else if (begun)
        for (int i = 0; i < ROWS; i++)
            if (chosen(&rows[i]) && (!rows[i].large || getenv("ROWS")))
                one_row(&rows[i], step);
    return command_end();
}
