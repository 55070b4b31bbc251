/* test_share.c: what a plan says of one rank against what the rank does.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  bytes and parcels that a rank of a team of threads sends for a
 *   chunk and for its pictures: to the last one, for every rank. The operations
 *   of one rank are those of the plan of a run.
 * Properties  ranks share the operations, the cache and the keys and values of
 *   the prompt; none holds more than it must. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "tether/plan.h"
#include "tether/team.h"

enum { MOST = 6, CHUNKS = 16, TURNS = 6 };

static tt_ctx *ctx;

/* What ranks have sent, of chunks or of latent frames. */
typedef struct sent {
    const tt_settings *s;
    tt_team_time last[CHUNKS][MOST], frame[MOST];
    int n;
} sent;

static tt_settings settings_of(const char *policy, const char *size)
{
    tt_settings s = tt_settings_defaults();
    const char *const set[][2] = {
        {"model", ref_path("demo")}, {"prompt", "red"}, {"cache", policy},
        {"size", size}, {"latents", "48"}, {"checkpoint-every", "0"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        tt_settings_set(ctx, &s, set[i][0], set[i][1]);
    return s;
}

/* ---- what is sent -------------------------------------------------------- */

static void note_chunk(void *user, const tt_run_chunk *c)
{
    sent *x = user;
    for (int r = 0; r < c->nranks; r++) x->last[c->chunk][r] = c->rank[r];
    x->n = (int)c->chunks;
}

static void roll(void *user, tt_ctx *c)
{
    sent *x = user;
    tt_run *run;
    const tt_host *z;
    int64_t n;
    const tt_run_events events = {.user = x, .chunk = note_chunk};
    const bool first = tt_team_rank(c) == 0;
    if (!tt_run_open(c, &run, x->s, first ? &events : NULL))
        while (tt_run_next(c, run, &z, &n) == TT_OK) continue;
    tt_run_close(run);
}

static tt_status no_picture(void *user, const tt_host *rgb, int64_t h,
                            int64_t w)
{
    (void)user, (void)rgb, (void)h, (void)w;
    return TT_OK;
}

/* The third latent frame and the two behind it. */
static void decode(void *user, tt_ctx *c)
{
    sent *x = user;
    tt_run *run;
    tt_vae *vae = NULL;
    tt_vae_decoder *d = NULL;
    tt_team_time of[MOST];
    static const tt_host z[16 * 4 * 4];
    tt_run_open(c, &run, x->s, NULL);
    tt_run_open_vae(c, run, &vae);
    tt_vae_decoder_open(c, &d, vae, 4, 4);
    for (int i = 0; i < 5; i++) {
        if (i == 2) tt_team_measure(c, of);
        tt_vae_decode_next(c, d, z, no_picture, NULL);
    }
    if (!tt_team_measure(c, of) && tt_team_rank(c) == 0)
        memcpy(x->frame, of, sizeof x->frame);
    tt_vae_decoder_close(d);
    tt_vae_close(vae);
    tt_run_close(run);
}

static void expect_sent(const char *what, int rank, int size,
                        const tt_share *plan, double bytes, double messages)
{
    expect(fabs(plan->sent - bytes) < 0.5 && bytes > 0, "%s: rank %d of %d is "
           "planned to send %.1f bytes, and sends %.1f", what, rank, size,
           plan->sent, bytes);
    expect(fabs(plan->messages - messages) < 0.01, "%s: rank %d of %d is "
           "planned to send %.2f messages, and sends %.2f", what, rank, size,
           plan->messages, messages);
}

static void chunks_of(tt_run *run, const tt_settings *s, const char *policy,
                      int size)
{
    sent x = {.s = s};
    expect_ok(tt_team_threads(ctx, size, roll, &x), policy);
    expect(x.n == CHUNKS, "%d chunks", x.n);
    for (int r = 0; r < size; r++) {
        tt_share plan;
        double bytes = 0, messages = 0;
        for (int i = CHUNKS - TURNS; i < CHUNKS; i++) {
            bytes += (double)x.last[i][r].sent / TURNS;
            messages += (double)x.last[i][r].messages / TURNS;
        }
        expect_ok(tt_run_share(ctx, run, &(tt_share_of){.rank = r,
                                                        .size = size},
                               false, &plan), policy);
        expect_sent(policy, r, size, &plan, bytes, messages);
    }
}

static void pictures_of(tt_run *run, const tt_settings *s, int size)
{
    sent x = {.s = s};
    expect_ok(tt_team_threads(ctx, size, decode, &x), "decoding");
    for (int r = 0; r < size; r++) {
        tt_share plan;
        expect_ok(tt_run_share(ctx, run, &(tt_share_of){.rank = r,
                                                        .size = size},
                               true, &plan), "a share of the decoder");
        expect_sent("decoding", r, size, &plan, (double)x.frame[r].sent,
                    (double)x.frame[r].messages);
    }
}

/* ---- what is computed ---------------------------------------------------- */

static tt_share share_of(tt_run *run, int rank, int size)
{
    tt_share x;
    expect_ok(tt_run_share(ctx, run, &(tt_share_of){.rank = rank,
                                                    .size = size},
                           false, &x), "a share");
    return x;
}

static void operations(tt_run *run)
{
    const tt_share whole = share_of(run, 0, 1);
    double sum = 0;
    tt_share x;
    expect(whole.heads == 4 && whole.sent == 0 && whole.exchanges == 0
           && whole.operations > 0, "one rank is alone");
    for (int r = 0; r < 3; r++) {
        x = share_of(run, r, 3);
        expect(x.heads == 2 && x.cache < 0.75 * (double)whole.cache,
               "rank %d holds %lld heads, %lld of %lld bytes", r,
               (long long)x.heads, (long long)x.cache, (long long)whole.cache);
        sum += x.operations;
    }
    /* of keys and values of 21 frames of 4 tokens and of 32 rows of text */
    const double shared = 6 * 2 * (21 * 4 + 32) * 128 * sizeof(tt_real);
    for (int r = 0; r < 4; r++) {
        x = share_of(run, r, 4);
        expect(x.heads == 1
               && (double)(whole.cache - x.cache) > 0.74 * shared,
               "rank %d of 4 holds %lld of %lld bytes", r,
               (long long)x.cache, (long long)whole.cache);
    }
    /* more only for what each of them makes: the vectors of time */
    expect(sum >= whole.operations && sum < 1.02 * whole.operations,
           "three ranks make %g operations, one makes %g", sum,
           whole.operations);
    expect_ok(tt_run_share(ctx, run, &(tt_share_of){.size = 2,
                                                    .seconds = 0.01},
                           false, &x), "time");
    expect(x.seconds > 0 && isfinite(x.seconds), "it takes time");
    expect_status(tt_run_share(ctx, run, &(tt_share_of){.rank = 2, .size = 2},
                               false, &x), TT_EINVAL, "no such rank");
    tt_clear(ctx);
}

/* ---- what ranks decide together ------------------------------------------ */

static const char *const *choice; /* --keep-keys of each rank                */
static atomic_int kept, planned;  /* ranks that keep, that are planned to     */

static void choose(void *user, tt_ctx *c)
{
    tt_run *run;
    tt_needs n = {.keys = false};
    tt_settings own;
    tt_settings_copy(c, &own, user);
    tt_settings_set(c, &own, "keep-keys", choice[tt_team_rank(c)]);
    tt_run_open(c, &run, &own, NULL);
    tt_run_plan(c, run, &n);
    atomic_fetch_add(&kept, run && tt_run_rollout(run)->keep_keys);
    atomic_fetch_add(&planned, n.keys);
    tt_run_close(run);
    tt_settings_free(&own);
}

/* Keys are kept by all ranks or by none. */
static void agree(tt_settings *s)
{
    static const struct {
        const char *of[3];
        int kept;
    } cases[] = {
        {{"yes", "yes", "yes"}, 3}, {{"auto", "yes", "no"}, 0},
        {{"no", "yes", "yes"}, 0}, {{"auto", "auto", "auto"}, 0},
    };
    setenv("TT_MEMORY", "100G", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        choice = cases[i].of;
        kept = planned = 0;
        expect_ok(tt_team_threads(ctx, 3, choose, s), "ranks that choose");
        expect(kept == cases[i].kept && planned == kept, "choice %d: %d ranks "
               "keep, %d are planned to", (int)i, (int)kept, (int)planned);
    }
    unsetenv("TT_MEMORY");
}

int main(void)
{
    static const char *const policies[] = {"tether", "deep-forcing"};
    ctx = test_begin("run/test_share");
    if (test_guarded()) {
        skip("plans are of memory of the host");
        return test_end();
    }
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        tt_settings s = settings_of(policies[i], "32x32");
        tt_run *run;
        expect_ok(tt_run_open(ctx, &run, &s, NULL), policies[i]);
        chunks_of(run, &s, policies[i], i ? 2 : 3);
        if (i == 0) pictures_of(run, &s, 3);
        if (i == 0) operations(run);
        if (i == 0) agree(&s);
        tt_run_close(run);
        tt_settings_free(&s);
    }
    return test_end();
}
