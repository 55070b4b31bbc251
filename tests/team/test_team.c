/* test_team.c: cuts and exchanges of a team, and how it fails.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties: cuts cover every row, head and query once, whatever the shares;
 * every value comes to the place that its number names, at ranks that divide
 * nothing and at more ranks than heads; a failure of one is everybody's, with
 * the name of its rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "team/cuts.h"
#include "tests/harness.h"
#include "core/device.h"

static tt_ctx *ctx;
static const double *shares;      /* NULL: equal                              */

/* Threads of a team cannot call expect(): they count what is wrong. */
typedef struct sizes {
    int64_t T, H, D;
    int wrong[TT_TEAM_MAX];
} sizes;

/* What stands at row t, head h, channel d. */
static tt_real value(int64_t t, int64_t h, int64_t d)
{
    return (tt_real)(t * 1009 + h * 31 + d);
}

/* ---- cuts ---------------------------------------------------------------- */

static void check_cuts(int size, int64_t H, int64_t T)
{
    static uint8_t asked[64 * 256];
    tt_team t;
    int64_t row = 0, head = 0, first = 0;
    team_init(&t, 0, size);
    for (int r = 0; shares && r < size; r++)
        t.share[r + 1] = t.share[r] + (int64_t)shares[r];
    memset(asked, 0, sizeof asked);
    for (int r = 0; r < size; r++) {
        const tt_range rows = cut_rows(&t, T, r), heads = cut_heads(&t, H, r);
        const tt_range own = cut_first_heads(&t, H, r);
        expect(rows.lo == row && rows.hi >= row, "rows of rank %d", r);
        expect(heads.lo <= head && heads.hi > heads.lo && heads.hi <= H,
               "heads %lld to %lld of rank %d of %d", (long long)heads.lo,
               (long long)heads.hi, r, size);
        expect(cut_size(own) == 0 || own.lo == first, "first heads");
        if (cut_size(own)) first = own.hi;
        row = rows.hi;
        head = heads.hi;
        for (int64_t h = 0; h < H; h++) {
            const tt_range q = cut_queries(&t, H, T, h, r);
            for (int64_t i = q.lo; i < q.hi; i++) asked[h * T + i]++;
            expect(cut_size(q) == 0 || (h >= heads.lo && h < heads.hi),
                   "rank %d of %d answers for head %lld, which it lacks", r,
                   size, (long long)h);
        }
    }
    expect(row == T && head == H && first == H, "%d ranks: all of it", size);
    for (int64_t i = 0; i < H * T; i++)
        expect(asked[i] == 1, "query %lld of head %lld: %d times",
               (long long)(i % T), (long long)(i / T), asked[i]);
}

/* ---- exchanges ----------------------------------------------------------- */

static tt_real *rows_of(tt_ctx *c, const sizes *s)
{
    const tt_range own = tt_team_rows(c, s->T);
    const int64_t n = (own.hi - own.lo) * s->H * s->D;
    tt_real *x = tt_values(c, n);
    tt_host *y = tt_map_write(c, x, n);
    for (int64_t i = 0; y && i < n; i++)
        y[i] = value(own.lo + i / s->D / s->H, i / s->D % s->H, i % s->D);
    tt_put(c, x, y, n);
    return x;
}

/* Are these the heads [h0, h1) of rows [lo, hi)? */
static int wrong_in(const tt_host *x, const sizes *s, tt_range rows,
                    tt_range heads)
{
    int wrong = x == NULL;
    for (int64_t t = rows.lo; x && t < rows.hi; t++)
        for (int64_t h = heads.lo; h < heads.hi; h++)
            for (int64_t d = 0; d < s->D; d++)
                wrong += *x++ != value(t, h, d);
    return wrong;
}

/* The same of values. */
static int wrong_values(tt_ctx *c, const tt_real *x, const sizes *s,
                        tt_range rows, tt_range heads)
{
    const int64_t n = (rows.hi - rows.lo) * (heads.hi - heads.lo) * s->D;
    return wrong_in(x ? tt_get(c, x, n) : NULL, s, rows, heads);
}

static tt_real *answers_of(tt_ctx *c, const sizes *s)
{
    const tt_range heads = tt_team_heads(c, s->H);
    const int64_t n = s->T * s->H * s->D;
    tt_real *x = tt_values(c, n);
    tt_host *y = tt_map_write(c, x, n), *at = y;
    for (int64_t h = heads.lo; y && h < heads.hi; h++) {
        const tt_range q = tt_team_queries(c, s->H, s->T, h);
        for (int64_t t = q.lo; t < q.hi; t++)
            for (int64_t d = 0; d < s->D; d++) *at++ = value(t, h, d);
    }
    tt_put(c, x, y, at - y);
    return x;
}

/* Lines of a band with those next to it, from the rows of T; all lines; and on
 * rank 0. */
static int wrong_lines(tt_ctx *c, const sizes *s)
{
    enum { EACH = 2 };
    const tt_band b = tt_team_band(c, s->T, EACH);
    const sizes line = {.T = s->T * EACH, .H = 1, .D = s->D};
    const tt_range one = {0, 1}, all = {0, b.of};
    const tt_range seen = {b.first - b.above, b.first + b.lines + b.below};
    tt_real *x = tt_values(c, (seen.hi - seen.lo) * s->D);
    if (!x) return 1;
    tt_real *own = x + b.above * s->D;
    tt_host *y = tt_map_write(c, own, b.lines * s->D);
    for (int64_t i = 0; y && i < b.lines * s->D; i++)
        y[i] = value(b.first + i / s->D, 0, i % s->D);
    tt_put(c, own, y, b.lines * s->D);
    tt_team_halo(c, x, &b, s->D);
    int wrong = wrong_values(c, x, &line, seen, one);
    if (tt_team_size(c) > 1 && b.lines)
        wrong += (seen.lo > 0) != b.above || (seen.hi < b.of) != b.below;
    wrong += wrong_values(c, tt_team_all_lines(c, own, &b, s->D), &line, all,
                          one);
    x = tt_team_lines_to_first(c, own, &b, s->D);
    if (tt_team_rank(c) == 0) wrong += wrong_values(c, x, &line, all, one);
    return wrong;
}

static void exchange_all(void *user, tt_ctx *c)
{
    sizes *s = user;
    int *wrong = &s->wrong[tt_team_rank(c)];
    if (shares) tt_team_share(c, shares, tt_team_size(c));
    const tt_range all = {0, s->T}, own = tt_team_rows(c, s->T);
    const tt_range every = {0, s->H}, heads = tt_team_heads(c, s->H);
    tt_real *x = rows_of(c, s);
    tt_real *y = tt_team_to_heads(c, x, s->T, s->H, s->D);
    *wrong += wrong_values(c, y, s, all, heads);
    *wrong += wrong_values(c, tt_team_to_rows(c, y, s->T, s->H, s->D), s, own,
                           every);
    *wrong += wrong_values(c, tt_team_all_rows(c, x, s->T, s->H * s->D), s,
                           all, every);
    tt_host *held = tt_get(c, y, s->T * (heads.hi - heads.lo) * s->D);
    *wrong += wrong_in(tt_team_all_heads(c, held, s->T, s->H,
                                         (size_t)s->D * sizeof *held),
                       s, all, every);
    if (tt_team_size(c) > 1)
        y = tt_team_answers_to_rows(c, answers_of(c, s), s->T, s->H, s->D);
    else
        *wrong += tt_team_answers_to_rows(c, x, s->T, s->H, s->D) != x;
    if (tt_team_size(c) > 1) *wrong += wrong_values(c, y, s, own, every);
    *wrong += wrong_lines(c, s);
    int64_t word = tt_team_rank(c) ? 0 : 4711;
    tt_team_broadcast(c, &word, sizeof word);
    *wrong += word != 4711;
    tt_team_agree(c);
    tt_team_compare(c, "the test", "seed 7 size 64x64");
}

static void check_exchanges(int size, int64_t T, int64_t H)
{
    sizes s = {.T = T, .H = H, .D = 3};
    expect_ok(tt_team_threads(ctx, size, exchange_all, &s), "a team");
    for (int r = 0; r < size; r++)
        expect(s.wrong[r] == 0, "%d wrong values at rank %d of %d, %lld rows "
               "of %lld heads", s.wrong[r], r, size, (long long)T,
               (long long)H);
}

/* ---- failures ------------------------------------------------------------ */

typedef struct trial {
    int rank;                 /* the one that fails                           */
    tt_status status;
    char text[8][64];
    tt_status seen[8];
    char said[8][1024];
} trial;

static void remember(trial *x, tt_ctx *c)
{
    const int r = tt_team_rank(c);
    x->seen[r] = c->status;
    snprintf(x->said[r], sizeof x->said[r], "%s", tt_message(c));
}

static void fail_alone(void *user, tt_ctx *c)
{
    trial *x = user;
    const int64_t n = tt_team_rows(c, 10).hi - tt_team_rows(c, 10).lo;
    tt_real *rows = tt_values0_in(c, &c->scratch, n, "rows");
    if (tt_team_rank(c) == x->rank) tt_fail(c, x->status, "the disk is full");
    else tt_team_all_rows(c, rows, 10, 1);
    remember(x, c);
}

static void check_failure(int rank, tt_status status)
{
    char name[64];
    trial x = {.rank = rank, .status = status};
    snprintf(name, sizeof name, "rank %d: the disk is full", rank);
    expect(tt_team_threads(ctx, 4, fail_alone, &x) == status
           && !strcmp(tt_message(ctx), name), "\"%s\"", tt_message(ctx));
    tt_clear(ctx);
    for (int r = 0; r < 4; r++)
        expect(x.seen[r] == status && (r == rank || !strcmp(x.said[r], name)),
               "rank %d: status %d, \"%s\"", r, x.seen[r], x.said[r]);
}

static void differ(void *user, tt_ctx *c)
{
    trial *x = user;
    const char *text = x->text[tt_team_rank(c)];
    tt_team_compare(c, "the run", *text ? text : NULL);
    remember(x, c);
}

static void check_compare(const char *first, const char *other,
                          const char *words)
{
    trial x = {0};
    for (int r = 0; r < 3; r++)
        snprintf(x.text[r], sizeof x.text[r], "%s", r == 2 ? other : first);
    expect_status(tt_team_threads(ctx, 3, differ, &x), TT_EINVAL, words);
    for (int r = 0; r < 3; r++)
        expect(x.seen[r] == TT_EINVAL && strstr(x.said[r], words)
               && (r == 2 || strstr(x.said[r], "rank 2: the run differs")),
               "rank %d: \"%s\" lacks \"%s\"", r, x.said[r], words);
}

/* A rank that hangs. */
static void sleep_long(void *user, tt_ctx *c)
{
    trial *x = user;
    const struct timespec t = {3, 0};
    c->team->patience = 1;
    if (tt_team_rank(c) == 1) nanosleep(&t, NULL);
    tt_team_agree(c);
    remember(x, c);
}

static void check_silence(void)
{
    trial x = {0};
    expect_status(tt_team_threads(ctx, 3, sleep_long, &x), TT_EIO, "silence");
    for (int r = 0; r < 3; r++)
        expect(strstr(x.said[r], "rank 1 has been silent for 1 s") != NULL,
               "\"%s\"", x.said[r]);
}

/* Rank 0 may take its time. */
static void wait_long(void *user, tt_ctx *c)
{
    const struct timespec t = {0, 400000000};
    (void)user;
    c->team->patience = 0.2;
    if (tt_team_rank(c) == 0) nanosleep(&t, NULL);
    int word = 1;
    tt_team_broadcast(c, &word, sizeof word);
}

/* ---- time ---------------------------------------------------------------- */

/* An engine whose other ranks had ten seconds. They spent 1 and 2 of them in
 * the first exchange, 1 and 5 in the second. */
static tt_status tell_clocks(tt_ctx *c, tt_team *t, const tt_parcels *out,
                             const tt_parcels *in, bool patient)
{
    static const float took[2][2] = {{1, 1}, {2, 5}};
    const double all = 10;
    (void)c, (void)patient;
    memset(in->data, 0, (size_t)in->n[0] * 3);
    memcpy(in->data + in->at[t->rank], out->data, (size_t)out->n[t->rank]);
    for (int r = 1; r < 3; r++) {
        memcpy(in->data + in->at[r], &all, sizeof all);
        memcpy(in->data + in->at[r] + sizeof all, took[r - 1], sizeof took[0]);
    }
    return TT_OK;
}

/* Rank 0 has had ten seconds, and spent 3 and 2 of them in the exchanges. */
static void set_clock(tt_team *t)
{
    t->since = tt_now() - 10;
    t->timed = 2;
    t->took[0] = 3;
    t->took[1] = 2;
    t->moving = 1.5;
}

static void check_time(void)
{
    static tt_team t;
    tt_ctx c = *ctx;
    tt_team_time of[3];
    c.team = &t;
    c.scratch = (tt_arena){0};
    team_init(&t, 0, 3);
    t.exchange = tell_clocks;
    expect_ok(tt_team_measure(&c, NULL), "time begins");
    set_clock(&t);
    expect_ok(tt_team_measure(&c, of), "measured");
    for (int r = 0; r < 3; r++)
        expect(of[r].exchange == 1 + 1, "rank %d moved values for %g s", r,
               of[r].exchange);
    expect(of[0].waiting == 3 && of[1].waiting == 0 && of[2].waiting == 5,
           "they waited %g, %g and %g s", of[0].waiting, of[1].waiting,
           of[2].waiting);
    expect(of[0].compute >= 5 && of[1].compute == 8 && of[2].compute == 3,
           "they computed %g, %g and %g s", of[0].compute, of[1].compute,
           of[2].compute);
    expect(of[0].moving == 1.5 && t.moving == 0, "%g CPU seconds in them",
           of[0].moving);
    set_clock(&t);
    tt_team_measure(&c, of);
    expect(tt_team_spent(&c, 0).moving == 3, "and those twice as much");
    expect(tt_team_spent(&c, 2).waiting == 10
           && tt_team_spent(&c, 1).compute == 16, "and twice as much twice");
    expect(tt_team_spent(&c, 3).compute == 0, "no such rank");
    for (int i = 0; i < 2 * TEAM_TIMED; i++) tt_team_agree(&c);
    expect(t.timed == TEAM_TIMED - 1, "more exchanges than are told apart");
    expect(t.moving > 0, "they take CPU seconds");
    tt_arena_free(&c.scratch);
}

/* ---- shares, opening ----------------------------------------------------- */

static void bad_share(void *user, tt_ctx *c)
{
    const double *share = user;
    tt_team_share(c, share, (int)share[3]);
}

static void check_bad_share(double a, double b, double n, const char *words)
{
    double share[] = {a, b, 1, n};
    tt_team_threads(ctx, 2, bad_share, share);
    expect(strstr(tt_message(ctx), words) != NULL, "\"%s\" lacks \"%s\"",
           tt_message(ctx), words);
    expect_status(ctx->status, TT_EINVAL, words);
}

static void check_open(void)
{
#ifndef TT_MPI
    expect_ok(tt_team_open(ctx), "nothing to join");
    expect(!ctx->team, "no team");
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    tt_team_open(ctx);
    expect(strstr(tt_message(ctx), "mpirun started 4 programs, but this build "
                  "has no MPI") != NULL, "\"%s\"", tt_message(ctx));
    expect_status(ctx->status, TT_EINVAL, "a build without MPI");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    setenv("PMI_SIZE", "1", 1);
    expect_ok(tt_team_open(ctx), "one program alone");
    unsetenv("PMI_SIZE");
#endif
    expect_status(tt_team_threads(ctx, 0, wait_long, NULL), TT_EINVAL,
                  "no rank");
    expect_status(tt_team_threads(ctx, TT_TEAM_MAX + 1, wait_long, NULL),
                  TT_EINVAL, "too many ranks");
}

int main(void)
{
    static const int teams[] = {1, 2, 3, 5, 6, 7, 24};
    static const double uneven[] = {4, 4, 1, 1000, 1, 2, 7, 3, 9, 1, 1, 1,
                                    5, 5, 5, 5, 1, 1, 1, 1, 30, 1, 1, 2};
    ctx = test_begin("team/team");
    for (int turn = 0; turn < 2; turn++, shares = uneven)
        for (size_t i = 0; i < sizeof teams / sizeof *teams; i++) {
            check_cuts(teams[i], 12, 18);
            check_cuts(teams[i], 2, 7);
            check_cuts(teams[i], 1, 5);
            check_exchanges(teams[i], 18, 12);
            check_exchanges(teams[i], 7, 2);
            check_exchanges(teams[i], 5, 3);
        }
    shares = NULL;
    for (int r = 0; r < 4; r++) check_failure(r, r % 2 ? TT_EIO : TT_EINTR);
    check_compare("seed 7 class f32", "seed 8 class f32", "seed is 8 here and "
                  "7 there");
    check_compare("seed 7 class f32", "seed 7 class bf16", "class is bf16 here "
                  "and f32 there");
    check_compare("seed 7", "seed 7 more", "is more here and nothing there");
    check_compare("seed 7", "", "is nothing here and seed there");
    check_silence();
    expect_ok(tt_team_threads(ctx, 3, wait_long, NULL), "patience");
    check_bad_share(1, 0, 2, "rank 1 is 0");
    check_bad_share(1.5, 1, 2, "rank 0 is 1.5");
    check_bad_share(1, 1, 1, "1 shares for 2 ranks");
    check_time();
    check_open();
    return test_end();
}
