/* progress.c: what the user sees and what the log file gets while we work.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/utf8.h"
#include "ops/backend.h"
#include "team/team.h"
#include "core/threads.h"
#include "tether/version.h"

/* A warning of the library must not run into the progress line. */
static void progress_warn(void *user, const char *sentence)
{
    progress *p = user;
    if (p->drawn) fputs("\r\033[K", stderr);
    p->drawn = false;
    fprintf(stderr, "tether: %swarning:%s %s\n", p->colour ? "\033[33m" : "",
            p->colour ? "\033[0m" : "", sentence);
}

static void note_threads(progress *p, const cli_common *common)
{
    char why[128];
    const tt_cores cores = tt_cores_find("");
    if (common->threads)
        progress_note(p, "threads: %d, as -t says", p->ctx->nthreads);
    else
        progress_note(p, "threads: %s",
                      tt_cores_reason(why, sizeof why, &cores));
}

/* An earlier log may go; any other file of that name stays. */
static tt_status check_log(tt_ctx *ctx, const char *path)
{
    static const char begin[] = "{\"event\": \"begin\"";
    char head[sizeof begin] = "";
    struct stat st;
    if (!strcmp(path, "-") || stat(path, &st) || !S_ISREG(st.st_mode)
        || !st.st_size) return TT_OK;
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(head, 1, sizeof begin - 1, f) : 0;
    if (f) fclose(f);
    if (n == sizeof begin - 1 && !memcmp(head, begin, n)) return TT_OK;
    return tt_fail(ctx, TT_EINVAL, "--log-json would replace %s, which is no "
                   "log; give another name", path);
}

/* Take the log for this run: a file is locked until it is closed, and what it
 * holds goes only then. False: another run has it, errno is EWOULDBLOCK; or it
 * cannot be written. */
static bool take_log(progress *p, int fd, bool append)
{
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) return true;
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) return false;
    p->log_whole = append ? st.st_size : 0;
    return append || !ftruncate(fd, 0);
}

/* "-" is the standard output, which stays open when the log ends. */
static tt_status open_log(progress *p, bool append)
{
    const char *path = p->log_path;
    const bool named = strcmp(path, "-") != 0;
    const int fd = named ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                                0666) : dup(STDOUT_FILENO);
    if (fd >= 0 && (!named || take_log(p, fd, append)))
        p->log = fdopen(fd, "a");
    if (p->log) return TT_OK;
    const int error = errno;
    if (fd >= 0) close(fd);
    if (fd >= 0 && error == EWOULDBLOCK)
        return tt_fail(p->ctx, TT_EINVAL, "another run is writing %s at this "
                       "moment; wait for its end, or give another name", path);
    return tt_fail(p->ctx, TT_EIO, "cannot write %s: %s", path,
                   strerror(error));
}

tt_status progress_open(tt_ctx *ctx, progress *p, const cli_common *common,
                        bool append)
{
    const char *term = getenv("TERM");
    memset(p, 0, sizeof *p);
    p->quiet = common->quiet;
    p->verbose = common->verbose && !common->quiet;
    p->terminal = isatty(2) && term && strcmp(term, "dumb");
    p->colour = cli_colour();
    p->start = tt_now();
    p->ctx = ctx;
    p->outer_warn = ctx->warn;
    p->outer_user = ctx->warn_user;
    ctx->warn = progress_warn;
    ctx->warn_user = p;
    note_threads(p, common);
    if (!common->log_json) return TT_OK;
    p->log_path = common->log_json;
    TT_TRY(check_log(ctx, p->log_path));
    TT_TRY(open_log(p, append));
    json_out j;
    progress_log(p, &j, "begin");
    json_str(&j, "command", common->command);
    json_str(&j, "version", tt_version());
    json_int(&j, "threads", ctx->nthreads);
    json_str(&j, "backend", ctx->ops->name);
    json_str(&j, "class", tt_class_name(ctx->ops->cls));
    progress_logged(p, &j);
    return TT_OK;
}

/* Who reads a log takes it line by line: half of one goes. Standard output may
 * be a file that others write too, and stays as it is. */
static void drop_half_line(const progress *p, int fd)
{
    struct stat st;
    const bool half = strcmp(p->log_path, "-") && !fstat(fd, &st)
                   && S_ISREG(st.st_mode) && st.st_size > p->log_whole;
    if (half && ftruncate(fd, p->log_whole))
        tt_warn(p->ctx, "%s ends with half a line", p->log_path);
}

/* Full disks are reported, whatever was muted: the log is a result. */
static void close_log(progress *p, bool failed)
{
    const int error = errno;
    const int fd = failed ? dup(fileno(p->log)) : -1;
    const bool late = fclose(p->log) != 0; /* it may write once more */
    if (fd >= 0) {
        drop_half_line(p, fd);
        close(fd);
    }
    if (late && !failed)
        tt_warn(p->ctx, "cannot write %s: %s", p->log_path, strerror(errno));
    if (failed)
        tt_warn(p->ctx, "cannot write %s: %s; the log ends here", p->log_path,
                strerror(error));
    p->log = NULL;
}

void progress_close(progress *p)
{
    json_out j;
    if (p->drawn) fputc('\n', stderr);
    p->drawn = false;
    if (progress_log(p, &j, "end")) {
        json_bool(&j, "ok", p->ctx->status == TT_OK);
        json_str(&j, "error", p->ctx->status ? tt_message(p->ctx) : NULL);
        progress_logged(p, &j);
    }
    if (p->log) close_log(p, false);
    p->ctx->warn = p->outer_warn; /* p is about to go */
    p->ctx->warn_user = p->outer_user;
}

static void ui_progress_say(progress *p, const char *fmt, va_list ap)
{
    char line[4096];             /* prompts and labels stand in it            */
    if (p->drawn) fputs("\r\033[K", stderr);
    p->drawn = false;
    p->painted = 0; /* the progress line may come back at once */
    vsnprintf(line, sizeof line, fmt, ap);
    utf8_plain(line);
    fprintf(stderr, "%s\n", line);
}

void progress_say(progress *p, const char *fmt, ...)
{
    va_list ap;
    if (p->quiet) return;
    va_start(ap, fmt);
    ui_progress_say(p, fmt, ap);
    va_end(ap);
}

void progress_note(progress *p, const char *fmt, ...)
{
    va_list ap;
    if (!p->verbose) return;
    va_start(ap, fmt);
    ui_progress_say(p, fmt, ap);
    va_end(ap);
}

const char *progress_duration(char *buf, size_t n, double seconds)
{
    long s = (long)(seconds + 0.5);
    if (seconds < 10)
        snprintf(buf, n, "%.1fs", seconds);
    else if (s < 60)
        snprintf(buf, n, "%lds", s);
    else if (s < 3600)
        snprintf(buf, n, "%ldm%02lds", s / 60, s % 60);
    else
        snprintf(buf, n, "%ldh%02ldm", s / 3600, s / 60 % 60);
    return buf;
}

const char *progress_bytes(char *buf, size_t n, int64_t bytes)
{
    if (bytes < 100 * 1000)
        snprintf(buf, n, "%.1f kB", (double)bytes * 1e-3);
    else if (bytes < 1000 * 1000 * 1000)
        snprintf(buf, n, bytes < 10 * 1000 * 1000 ? "%.1f MB" : "%.0f MB",
                 (double)bytes * 1e-6);
    else
        snprintf(buf, n, "%.2f GB", (double)bytes * 1e-9);
    return buf;
}

static void update(progress *p, const tt_run_work *w)
{
    char eta[32], memory[32], status[320];
    const double done = w->done, before = w->before;
    bool whole = done == (double)(int64_t)done; /* a unit was finished */
    double pause = p->terminal ? 0.1 : 2;
    const double share = w->total > 0 ? 100 * done / w->total : 0;
    if (done > before)
        progress_duration(eta, sizeof eta,
                          w->seconds * (w->total - done) / (done - before));
    else
        snprintf(eta, sizeof eta, "?");
    progress_bytes(memory, sizeof memory, tt_peak_memory());
    snprintf(status, sizeof status, "%s, %.0f%%, eta %s, %s", w->what, share,
             eta, memory);
    cli_status(status);

    if (p->quiet || (!p->terminal && (!whole || done <= before))) return;
    if (done < w->total && tt_now() - p->painted < pause) return;
    p->painted = tt_now();
    fprintf(stderr, "%s%s%s%s  %3.0f%%  eta %s  %s%s",
            p->terminal ? "\r" : "", p->colour ? "\033[1m" : "", w->what,
            p->colour ? "\033[0m" : "", share, eta, memory,
            p->terminal ? "\033[K" : "\n");
    p->drawn = p->terminal;
    fflush(stderr);
}

void progress_update(progress *p, double done, double total, double seconds,
                     const char *fmt, ...)
{
    char what[192];
    tt_run_work w = {.done = done, .total = total, .before = p->before,
                     .seconds = seconds};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    w.what = what;
    update(p, &w);
}

json_out *progress_log(progress *p, json_out *j, const char *event)
{
    if (!p->log) return NULL;
    json_begin(j, p->log, false);
    json_str(j, "event", event);
    json_real(j, "seconds", tt_now() - p->start);
    json_real(j, "cpu_seconds", (double)clock() / CLOCKS_PER_SEC);
    return j;
}

void progress_logged(progress *p, json_out *j)
{
    struct stat st;
    json_end(j);
    if (fflush(p->log) || ferror(p->log)) close_log(p, true);
    else if (!fstat(fileno(p->log), &st)) p->log_whole = st.st_size;
}

void progress_log_wrote(progress *p, const char *path)
{
    json_out j;
    if (!progress_log(p, &j, "wrote")) return;
    json_str(&j, "path", path);
    progress_logged(p, &j);
}

void progress_wrote(progress *p, const char *path)
{
    if (!path || !strcmp(path, "-")) return;
    progress_say(p, "wrote %s", path);
    progress_log_wrote(p, path);
}

static void say_of_a_run(void *user, bool detail, const char *sentence)
{
    if (detail) progress_note(user, "%s", sentence);
    else progress_say(user, "%s", sentence);
}

static void work_of_a_run(void *user, const tt_run_work *w)
{
    progress *p = user;
    p->before = w->before;
    progress_update(p, w->done, w->total, w->seconds, "%s", w->what);
    p->before = 0;
}

tt_run_events progress_of_a_run(progress *p)
{
    return (tt_run_events){.user = p, .say = say_of_a_run,
                           .work = work_of_a_run};
}

/* What the ranks of a run did while they made chunks. */
static void ranks_print(const tt_ctx *ctx)
{
    const int size = tt_team_size(ctx);
    if (size == 1) return;
    fprintf(stderr, "%-16s %10s %10s %10s\n", "rank, seconds", "compute",
            "exchange", "waiting");
    for (int r = 0; r < size; r++) {
        const tt_team_time t = tt_team_spent(ctx, r);
        fprintf(stderr, "%-16d %10.3f %10.3f %10.3f\n", r, t.compute,
                t.exchange, t.waiting);
    }
}

void profile_print(const tt_ctx *ctx)
{
    bool printed[TT_PROFILE_ROWS] = {false};
    double total = 0;
    for (int i = 0; i < TT_PROFILE_ROWS; i++)
        total += ctx->profile[i].name ? ctx->profile[i].seconds : 0;
    fprintf(stderr, "%-16s %10s %6s %10s %10s\n", "operator", "seconds",
            "share", "calls", "GFLOP/s");
    while (1) {
        int best = -1;
        for (int i = 0; i < TT_PROFILE_ROWS; i++)
            if (ctx->profile[i].name && !printed[i]
                && (best < 0
                    || ctx->profile[i].seconds > ctx->profile[best].seconds))
                best = i;
        if (best < 0) break;
        const tt_profile_row *r = &ctx->profile[best];
        printed[best] = true;
        fprintf(stderr, "%-16s %10.3f %5.1f%% %10lld %10.1f\n", r->name,
                r->seconds, total > 0 ? 100 * r->seconds / total : 0,
                (long long)r->calls,
                r->seconds > 0 ? r->flops / r->seconds * 1e-9 : 0);
    }
    fprintf(stderr, "%-16s %10.3f\n", "total", total);
    ranks_print(ctx);
}
