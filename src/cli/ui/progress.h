/* progress.h: what the user sees and what the log file gets while we work.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * On a terminal one line is updated in place; elsewhere plain lines are
 * printed as units of work are finished. Both go to stderr. --log-json gets one
 * JSON object per event, flushed at once. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdio.h>

#include "io/jsonout.h"
#include "cli/ui/options.h"
#include "core/context.h"
#include "run/run.h"

typedef struct progress {
    bool quiet, verbose, terminal, colour;
    bool drawn;          /* an unfinished line is on the terminal             */
    double start, painted;
    double before;       /* units that were done when the clock began         */
    FILE *log;           /* NULL: none                                        */
    const char *log_path;
    off_t log_whole;     /* bytes of its whole lines; of a pipe nothing       */
    tt_ctx *ctx;
    void (*outer_warn)(void *user, const char *sentence); /* ctx's before     */
    void *outer_user;
} progress;

/* Opens the log: a fresh file, or continued when `append`. Its first line is
 * the event "begin", its last one, written by progress_close, "end" with `ok`
 * and `error`. A log that cannot be written ends after its last whole line
 * (not on standard output), with a warning, and does not stop the work. */
tt_status progress_open(tt_ctx *ctx, progress *p, const cli_common *common,
                        bool append);
void progress_close(progress *p);

/* A line that stays. `note` only with -v. */
void progress_say(progress *p, const char *fmt, ...) TT_PRINTF(2, 3);
void progress_note(progress *p, const char *fmt, ...) TT_PRINTF(2, 3);

/* "wrote PATH", also in the log; nothing for NULL and for "-". The second one
 * is for commands that say more about it themselves: the log only. */
void progress_wrote(progress *p, const char *path);
void progress_log_wrote(progress *p, const char *path);

/* Redraw "<what>  37%  eta 1m20s  1.2 GB" for `done` of `total` units, of which
 * those after p->before took `seconds` so far: on a terminal at most ten times
 * a second, elsewhere as a line per whole unit from the first, at most every
 * two seconds; the last one always. */
void progress_update(progress *p, double done, double total, double seconds,
                     const char *fmt, ...) TT_PRINTF(5, 6);

/* One event line of the log, with the seconds since the beginning and those
 * that the process has computed; NULL when there is no log. Finish the object
 * with progress_logged. */
json_out *progress_log(progress *p, json_out *j, const char *event);
void progress_logged(progress *p, json_out *j);

/* What a run says (run.h), on the terminal: `user` is a progress. */
tt_run_events progress_of_a_run(progress *p);

/* Seconds, share and calls per operator, largest first, on stderr; and what
 * each rank did, when there are several. */
void profile_print(const tt_ctx *ctx);

/* "12.3 kB", "31 MB", "1.89 GB" */
const char *progress_bytes(char *buf, size_t n, int64_t bytes);
/* "1m20s", "3h05m", "12.3s" */
const char *progress_duration(char *buf, size_t n, double seconds);

#endif
