/* checkpoint.c: the state of a rollout on the disk, now and then.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   "<latents>.state1" and "<latents>.state2" take turns. Each appears
 *         whole or not at all (st_write.c), so whatever ends the program while
 *         one is written, the other is there. They are written after the
 *         latents of their chunk: a state is never ahead of those.
 * Time    without a number of chunks a state is written when all that was made
 *         since the latest took 99 times as long as writing it did.
 * First   a policy that cannot go on without a state has one after its first
 *         chunk, unless none are wanted: the cache is small there.
 * Locks   the names belong to the run that has the lock of the latents. A file
 *         of such a name that is no state is someone's: see checkpoint_claim.
 * Ranks   rank 0 alone has the names, and says what happens; all bring what
 *         they hold, and take what they need (state.c).
 * Next    src/rollout/state.c */
#include "run/parts.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "team/team.h"

/* What the first one may take, for want of a measurement: bytes a second, and
 * seconds for the two flushes. */
#define DISK_SPEED 300e6
#define DISK_FLUSH 0.01
#define TIMES 99

/* ---- names --------------------------------------------------------------- */

tt_status checkpoint_open(tt_ctx *ctx, tt_run *run)
{
    video *v = &run->now;
    const char *latents = run->file.locked ? run->file.final : NULL;
    v->keep = (checkpoint){.every = run->s.checkpoint_every,
                           .on = latents != NULL};
    for (int i = 0; latents && i < 2; i++) {
        const size_t n = strlen(latents) + 16;
        char *name = tt_alloc(ctx, &v->mem, (int64_t)n, 1, "file name");
        if (!name) return ctx->status;
        snprintf(name, n, "%s.state%d", latents, i + 1);
        v->keep.name[i] = name;
    }
    return tt_team_broadcast(ctx, &v->keep.on, sizeof v->keep.on);
}

/* A file that is no state, whole or damaged: those begin with the length of
 * their header, and that with their first tensor. A folder is not replaced. */
static bool checkpoint_is_foreign(const char *path)
{
    static const char first[] = "{\"run\":{\"dtype\":\"U8\"";
    char text[8 + sizeof first] = {0};
    struct stat st;
    if (stat(path, &st) || S_ISDIR(st.st_mode)) return false;
    if (!S_ISREG(st.st_mode)) return true;
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    return n < sizeof text - 1 || strncmp(text + 8, first, sizeof first - 1);
}

tt_status checkpoint_claim(tt_ctx *ctx, const char *latents, bool overwrite)
{
    char name[4400];
    for (int i = 1; i <= 2 && !overwrite; i++) {
        snprintf(name, sizeof name, "%s.state%d", latents, i);
        if (checkpoint_is_foreign(name))
            return tt_fail(ctx, TT_EINVAL, "%.800s is no saved state of a run, "
                           "and its name is needed for one: move it away, or "
                           "use --overwrite to lose it", name);
    }
    return ctx->status;
}

bool checkpoint_is_there(const checkpoint *c)
{
    for (int i = 0; i < 2; i++)
        if (c->name[i] && !access(c->name[i], F_OK)) return true;
    return false;
}

/* Is this the end of a name that a state is written under (st_write.c)? */
static bool checkpoint_is_part(const char *end)
{
    if (strncmp(end, ".part-", 6)) return false;
    end += 6;
    const size_t digits = strspn(end, "0123456789");
    return digits && (!end[digits] || !strcmp(end + digits, "h"));
}

/* Files that a killed run was writing: "<name>.part-0" or "...-<pid>". */
static void remove_parts(const char *name)
{
    char path[4400];
    const char *slash = strrchr(name, '/');
    const int folder = slash ? (int)(slash - name) + 1 : 0;
    const char *base = name + folder;
    snprintf(path, sizeof path, "%.*s", folder, name);
    DIR *d = opendir(folder ? path : ".");
    for (struct dirent *e; d && (e = readdir(d));) {
        const size_t n = strlen(base);
        if (strncmp(e->d_name, base, n) || !checkpoint_is_part(e->d_name + n))
            continue;
        snprintf(path, sizeof path, "%.*s%s", folder, name, e->d_name);
        unlink(path);
    }
    if (d) closedir(d);
}

void checkpoint_forget(checkpoint *c)
{
    for (int i = 0; i < 2; i++) {
        if (!c->name[i]) continue;
        unlink(c->name[i]);
        remove_parts(c->name[i]);
    }
}

/* ---- write --------------------------------------------------------------- */

void checkpoint_begin(const tt_ctx *ctx, tt_run *run)
{
    video *v = &run->now;
    tt_rollout_options o = v->opt;
    o.keep_keys = false;         /* a state has none */
    const int64_t bytes = tt_rollout_bytes(ctx, run->dit, &o);
    v->keep.at = tt_now();
    v->keep.cost = DISK_FLUSH + (double)(bytes * tt_team_size(ctx))
                                / DISK_SPEED;
}

/* Time is that of rank 0. */
bool checkpoint_is_due(tt_ctx *ctx, const video *v)
{
    const checkpoint *c = &v->keep;
    if (!c->on || !c->every) return false;
    if (v->noisy && !c->chunk) return true;
    if (c->every > 0) return v->chunk - c->chunk >= c->every;
    return tt_team_any(ctx, tt_team_rank(ctx) == 0
                            && tt_now() - c->at >= TIMES * c->cost);
}

tt_status checkpoint_save(tt_ctx *ctx, tt_run *run)
{
    video *v = &run->now;
    checkpoint *c = &v->keep;
    const double begin = tt_now();
    if (ctx->status || !c->on || (c->chunk && c->chunk == v->chunk))
        return ctx->status;
    TT_TRY(tt_rollout_save(ctx, v->rollout, c->name[c->turn]));
    c->turn = 1 - c->turn;
    c->at = tt_now();
    const double took = c->at - begin;
    /* The cache of the first one may be nearly empty: the next one will not
     * take less than was reckoned for a full cache. */
    if (c->chunk || took > c->cost) c->cost = took;
    c->chunk = v->chunk;
    run_say(&run->events, true, "state of %lld chunks saved in %.2f s",
            (long long)c->chunk, took);
    return TT_OK;
}

void checkpoint_try(tt_ctx *ctx, tt_run *run)
{
    char why[sizeof ctx->message];
    if (ctx->status || !checkpoint_save(ctx, run) || !tt_team_stands(ctx))
        return;
    snprintf(why, sizeof why, "%s", tt_message(ctx));
    tt_clear(ctx);
    tt_warn(ctx, "%.600s; the run goes on without saving its state, %s", why,
            run->now.noisy ? "and an interruption loses the chunks since the "
            "latest one" : "and --resume will need a clean pass per chunk");
    run->now.keep.every = 0;
}

/* ---- read ---------------------------------------------------------------- */

/* Chunks that a file says it holds, -1: it is none of ours. That
 * memory is short or the run is to stop says nothing about the file. */
static int64_t chunks_in(tt_ctx *ctx, const char *path)
{
    tt_file *f = NULL;
    int64_t progress[3] = {-1, 0, 0};
    if (access(path, F_OK)) return -1;
    if (tt_file_open(ctx, &f, path)) {
        if (ctx->status == TT_ENOMEM || ctx->status == TT_EINTR) return -1;
        tt_warn(ctx, "%s", tt_message(ctx));
        tt_clear(ctx);
        return -1;
    }
    const tt_entry *e = tt_file_find(f, "progress");
    if (e && e->t.dtype == TT_I64 && tt_tensor_count(&e->t) == 3)
        tt_gather(progress, &e->t);
    tt_file_close(f);
    return progress[0];
}

/* Take one; a damaged one is said and left. A run that can replay does so
 * where the program has changed what its states mean. Once frames are counted
 * the cache has begun to fill: half of it is no beginning. */
static tt_status checkpoint_take(tt_ctx *ctx, tt_run *run, int i, int64_t chunk)
{
    video *v = &run->now;
    if (!tt_rollout_restore(ctx, v->rollout, v->keep.name[i])) {
        v->keep.turn = 1 - i;
        v->keep.chunk = chunk;
        return TT_OK;
    }
    if (tt_rollout_frames_done(v->rollout) > 0 || !tt_team_stands(ctx)
        || (v->noisy && ctx->status != TT_EFORMAT))
        return ctx->status;
    tt_warn(ctx, "%s; it is left aside", tt_message(ctx));
    tt_clear(ctx);
    return TT_OK;
}

tt_status checkpoint_restore(tt_ctx *ctx, tt_run *run)
{
    video *v = &run->now;
    checkpoint *c = &v->keep;
    int64_t chunk[2];
    for (int i = 0; i < 2; i++) {
        chunk[i] = c->name[i] ? chunks_in(ctx, c->name[i]) : -1;
        if (c->name[i]) remove_parts(c->name[i]);
        if (chunk[i] > v->chunk) chunk[i] = -1;
    }
    TT_TRY(tt_team_broadcast(ctx, chunk, sizeof chunk));
    const int newest = chunk[1] > chunk[0];
    for (int k = 0; k < 2 && !c->chunk; k++) {
        const int i = k ? 1 - newest : newest;
        if (chunk[i] > 0) TT_TRY(checkpoint_take(ctx, run, i, chunk[i]));
    }
    return TT_OK;
}
