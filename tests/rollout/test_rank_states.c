/* test_rank_states.c: the state of a rollout, saved and read by any number of
 * ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property: a rollout that changes the number of its ranks after every chunk,
 * through a saved state, has the latents of one process, its policies report
 * the same, and every one of its states is the file that one process writes,
 * byte for byte. A file that rank 0 cannot write or read fails for all ranks,
 * and they go on. What is injected comes to all ranks as it does to one. */
#include "tests/folder.h"
#include "tests/rollout/tiny.h"
#include "io/io.h"
#include "team/team.h"

#include <sys/stat.h>
#include <unistd.h>

enum { CHUNKS = 6, CHUNK = 3 * SIZE };

/* One chunk: what it was made from and what came out. */
typedef struct step {
    tt_rollout_options *opt;
    const char *from, *to;         /* states; NULL: the beginning             */
    const double *share;           /* of ranks; NULL: equal                   */
    int64_t frames;
    uint64_t reported;
    tt_real latents[CHUNK];
    bool differs[TT_TEAM_MAX];     /* a rank that has not what rank 0 has     */
} step;

static step alone[CHUNKS], now;

static const char *path_of(char *buf, size_t n, const char *name, int i)
{
    char file[64];
    snprintf(file, sizeof file, "%s.%d", name, i);
    tmp_path(buf, n, file);
    return buf;
}

static void add_bytes(uint64_t *sum, const void *data, size_t n)
{
    const uint8_t *byte = data;
    for (size_t i = 0; i < n; i++)
        *sum = (*sum ^ byte[i]) * 1099511628211u;
}

static void listen(void *user, const tt_event *e)
{
    for (int i = 0; e->kind && e->kind->field[i].name; i++)
        add_bytes(user, e->value[i].at,
                  (size_t)e->value[i].n
                      * tt_dtype_size(e->kind->field[i].type));
}

/* ---- one chunk ----------------------------------------------------------- */

static void keep(tt_ctx *ctx, step *s, const tt_real *x0, int64_t n,
                 uint64_t reported)
{
    if (tt_team_rank(ctx) == 0) {
        memcpy(s->latents, x0, (size_t)(n * SIZE) * sizeof *x0);
        s->reported = reported;
        s->frames = n;
    }
    tt_team_agree(ctx);            /* rank 0 has written                      */
    s->differs[tt_team_rank(ctx)] = n != s->frames || reported != s->reported
        || memcmp(s->latents, x0, (size_t)(n * SIZE) * sizeof *x0) != 0;
}

/* Threads of a team cannot call expect(). */
static void make_chunk(void *user, tt_ctx *ctx)
{
    step *s = user;
    tt_prompt *own;
    tt_rollout *r;
    const tt_host *x0;
    const bool first = tt_team_rank(ctx) == 0;
    uint64_t reported = 14695981039346656037u;
    int64_t n;
    if (s->share) tt_team_share(ctx, s->share, tt_team_size(ctx));
    make_prompt(ctx, &own);
    tt_rollout_open(ctx, &r, model, own, s->opt);
    tt_cache_on_event(tt_rollout_cache(r), listen, &reported);
    if (s->from) tt_rollout_restore(ctx, r, first ? s->from : NULL);
    if (!tt_rollout_next(ctx, r, &x0, &n)) keep(ctx, s, x0, n, reported);
    tt_rollout_save(ctx, r, first ? s->to : NULL);
    tt_rollout_close(r);
    tt_prompt_free(own);
}

/* ---- chains -------------------------------------------------------------- */

/* Every chunk from the state after the one before it. */
static void make_alone(tt_ctx *ctx, const char *name, tt_rollout_options *o)
{
    char from[600], to[600];
    for (int i = 0; i < CHUNKS; i++) {
        memset(&alone[i], 0, sizeof alone[i]);
        alone[i].opt = o;
        alone[i].from = i ? path_of(from, sizeof from, "alone", i - 1) : NULL;
        alone[i].to = path_of(to, sizeof to, "alone", i);
        make_chunk(&alone[i], ctx);
        if (!expect_ok(ctx->status, name)) return;
    }
}

static void check_chunk(tt_ctx *ctx, const char *name, int i, int size)
{
    char want[600];
    const step *a = &alone[i];
    if (!expect_ok(tt_team_threads(ctx, size, make_chunk, &now), name)) return;
    expect(now.frames == a->frames
           && !memcmp(now.latents, a->latents,
                      (size_t)(a->frames * SIZE) * sizeof *a->latents),
           "%s: latents of chunk %d on %d ranks", name, i, size);
    expect(now.reported == a->reported, "%s: what the policy reports in chunk "
           "%d on %d ranks", name, i, size);
    for (int r = 0; r < size; r++)
        expect(!now.differs[r], "%s: rank %d of %d in chunk %d", name, r, size,
               i);
    path_of(want, sizeof want, "alone", i);
    expect(same_files(now.to, want), "%s: state after chunk %d of %d ranks",
           name, i, size);
}

static void check(tt_ctx *ctx, const char *name, tt_rollout_options o,
                  const double *share)
{
    static const int sizes[CHUNKS] = {2, 5, 12, 6, 1, 3}, three[] = {3, 3, 3};
    const int n = share ? 3 : CHUNKS;
    char from[600], to[600];
    make_alone(ctx, name, &o);
    for (int i = 0; i < n; i++) {
        memset(&now, 0, sizeof now);
        now.opt = &o;
        now.share = share;
        now.from = i ? path_of(from, sizeof from, "ranks", i - 1) : NULL;
        now.to = path_of(to, sizeof to, "ranks", i);
        check_chunk(ctx, name, i, share ? three[i] : sizes[i]);
    }
    for (int i = 0; i < CHUNKS; i++) {
        unlink(path_of(from, sizeof from, "alone", i));
        unlink(path_of(to, sizeof to, "ranks", i));
    }
}

/* ---- what is rolled out -------------------------------------------------- */

static tt_rollout_options evicting(const char *name)
{
    return evicting_for(name, 3 * CHUNKS, 2);
}

static tt_rollout_options with(const char *name, const char *knob, double value)
{
    tt_rollout_options o = evicting(name);
    tt_policy_put(&o.policy, knob, value);
    return o;
}

/* ---- a file that fails --------------------------------------------------- */

typedef struct failing {
    const char *path;
    tt_status status[3];
    bool stands[3], goes_on[3];
} failing;

static void fail_and_go_on(void *user, tt_ctx *ctx)
{
    failing *f = user;
    const int rank = tt_team_rank(ctx);
    const char *path = rank ? NULL : f->path;
    tt_rollout_options o = evicting("tether");
    tt_prompt *own;
    tt_rollout *r;
    const tt_host *x0;
    int64_t n;
    make_prompt(ctx, &own);
    tt_rollout_open(ctx, &r, model, own, &o);
    tt_rollout_next(ctx, r, &x0, &n);
    f->status[rank] = tt_rollout_save(ctx, r, path);
    f->stands[rank] = tt_team_stands(ctx);
    tt_clear(ctx);
    if (f->status[rank] == tt_rollout_restore(ctx, r, path)) tt_clear(ctx);
    f->goes_on[rank] = !tt_rollout_next(ctx, r, &x0, &n);
    tt_rollout_close(r);
    tt_prompt_free(own);
}

static void check_failing(tt_ctx *ctx)
{
    char path[600];
    failing f = {.path = path_of(path, sizeof path, "no/folder", 0)};
    expect_ok(tt_team_threads(ctx, 3, fail_and_go_on, &f), "no such folder");
    for (int r = 0; r < 3; r++)
        expect(f.status[r] == TT_EIO && f.stands[r] && f.goes_on[r],
               "rank %d: status %d, and goes on", r, f.status[r]);
}

/* ---- what is injected ---------------------------------------------------- */

/* Some values of every third tensor. */
static void disturb(void *user, const char *path, tt_dtype dtype, int rank,
                    const int64_t *dim, void *data)
{
    int64_t n = 1;
    uint64_t sum = 0;
    (void)user;
    add_bytes(&sum, path, strlen(path));
    for (int i = 0; i < rank; i++) n *= dim[i];
    if (sum % 3) return;
    for (int64_t i = (int64_t)(sum % 5); i < n; i += 5)
        if (dtype == TT_F32) ((float *)data)[i] *= 1.125f;
        else if (dtype == TT_F64) ((double *)data)[i] *= 1.125;
}

static void make_disturbed(void *user, tt_ctx *ctx)
{
    ctx->inject = disturb;
    make_chunk(user, ctx);
    ctx->inject = NULL;
}

/* In a chunk that TetherCache edits. */
static void check_injected(tt_ctx *ctx)
{
    static tt_real plain[CHUNK];
    char from[600], want[600], got[600];
    tt_rollout_options o = evicting("tether");
    make_alone(ctx, "tether", &o);
    memcpy(plain, alone[CHUNKS - 2].latents, sizeof plain);
    step s = {.opt = &o, .from = path_of(from, sizeof from, "alone",
                                         CHUNKS - 3),
              .to = path_of(want, sizeof want, "want", 0)};
    make_disturbed(&s, ctx);
    expect(memcmp(plain, s.latents, sizeof plain), "what is injected counts");
    for (int size = 2; size <= 5; size++) {
        now = s;
        now.to = path_of(got, sizeof got, "got", 0);
        if (!expect_ok(tt_team_threads(ctx, size, make_disturbed, &now),
                       "injected")) continue;
        expect(!memcmp(now.latents, s.latents, sizeof now.latents)
               && now.reported == s.reported && same_files(got, want),
               "injected on %d ranks", size);
    }
    unlink(want);
    unlink(got);
    for (int i = 0; i < CHUNKS; i++)
        unlink(path_of(from, sizeof from, "alone", i));
}

int main(void)
{
    static const double shares[] = {3, 1, 4};
    tt_ctx *ctx = test_begin("rollout/rank_states");
    load(ctx);
    for (int i = 0; tt_policy_at(i); i++) {
        const char *name = tt_policy_at(i)->name;
        check(ctx, name, evicting(name), NULL);
    }
    check(ctx, "deep-forcing, max", with("deep-forcing", "fusion", 1), NULL);
    check(ctx, "memrope, adaptive", with("memrope", "adaptive", 1), NULL);
    check(ctx, "tether, 3:1:4", evicting("tether"), shares);
    check_failing(ctx);
    check_injected(ctx);
    tt_prompt_free(prompt);
    tt_dit_close(model);
    return test_end();
}
