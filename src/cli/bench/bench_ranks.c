/* bench_ranks.c: what 2 to 64 machines like this one would take for a chunk.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   A rank computes its part, measured here at its true shapes, and then
 *         moves values: every message takes a while, every byte as well, and
 *         nothing is computed meanwhile. How many there are the real code says,
 *         which runs in shadow as one rank of so many. The rank that does most
 *         counts, and all wait for it.
 * Next    src/run/share.c */
#include <stdio.h>
#include <stdlib.h>

#include "cli/bench/bench.h"
#include "cli/ui/progress.h"
#include "core/utf8.h"
#include "tether/device.h"
#include "tether/outfile.h"
#include "tether/plan.h"
#include "tether/team.h"

/* LATENCY  seconds of a message between machines, where nobody says
 * PAYLOAD  of the bits of a line those that are ours
 * BUDGET   seconds of measuring, of latents; half as many of decoding */
enum { MEETINGS = 100, TURNS = 5, LINKS = 5 };
#define LATENCY 60e-6
#define PAYLOAD 0.92
#define BUDGET 2.0

typedef struct link {
    char name[32];
    double latency, rate;      /* seconds of a message, bytes per second      */
} link;

/* A chunk on so many ranks, of the rank that has most. */
typedef struct row {
    int size;
    tt_share latents, decoding;
} row;

typedef struct table {
    tt_ctx *ctx;
    const bench_settings *s;
    const tt_run *run;
    bool decodes;
    link link[LINKS];
    row alone;
    json_out *json;
} table;

/* ---- links --------------------------------------------------------------- */

static link line_of(double gbit)
{
    link l = {.latency = LATENCY, .rate = PAYLOAD * gbit * 1e9 / 8};
    snprintf(l.name, sizeof l.name, "%g Gbit/s", gbit);
    return l;
}

/* The most that a rank has sent: one without rows sends nothing. */
static double most_sent(const tt_team_time *of, int size)
{
    int64_t most = 0;
    for (int r = 0; r < size; r++)
        if (of[r].sent > most) most = of[r].sent;
    return (double)most;
}

/* What moving T rows of the model takes between these ranks, and what meeting
 * takes. */
static tt_status measure_link(tt_ctx *ctx, const tt_run *run, link *l)
{
    tt_team_time of[TT_TEAM_MAX];
    const tt_dit_config *c = tt_dit_get_config(tt_run_dit(run));
    const tt_rollout_options *o = tt_run_rollout(run);
    const int64_t T = o->chunk * (o->h / 2) * (o->w / 2);
    const tt_range own = tt_team_rows(ctx, T);
    const int64_t n = (own.hi - own.lo) * c->dim;
    const double others = tt_team_size(ctx) - 1;
    tt_real *x = tt_values(ctx, n);
    tt_zero(ctx, x, n);
    tt_team_agree(ctx);
    tt_team_measure(ctx, NULL);
    for (int i = 0; i < MEETINGS; i++) tt_team_agree(ctx);
    TT_TRY(tt_team_measure(ctx, of));
    l->latency = of[0].exchange / MEETINGS / others;
    tt_team_measure(ctx, NULL);
    for (int i = 0; i < TURNS; i++) {
        const tt_arena_mark m = tt_arena_here(&ctx->scratch);
        tt_team_to_heads(ctx, x, T, c->heads, c->dim / c->heads);
        tt_arena_reset(&ctx->scratch, m);
    }
    TT_TRY(tt_team_measure(ctx, of));
    double seconds = of[0].exchange - TURNS * others * l->latency;
    if (seconds < 0.1 * of[0].exchange) seconds = 0.1 * of[0].exchange;
    l->rate = most_sent(of, tt_team_size(ctx)) / seconds;
    snprintf(l->name, sizeof l->name, "this link");
    return ctx->status;
}

/* Ranks of one machine, as far as its memory goes. */
static tt_status measure_memory(tt_ctx *ctx, link *l)
{
    enum { N = 4 << 20 };
    double best = 1e9;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_host *x = tt_scratch(ctx, N), *y = tt_scratch(ctx, N);
    for (int i = 0; x && y && i < TURNS; i++) {
        bench_fill(x, N, (uint32_t)i);
        const double begin = tt_now();
        tt_machine_stream(ctx, TT_STREAM_COPY, x, y, N);
        const double took = tt_now() - begin;
        if (took < best) best = took;
    }
    l->latency = LATENCY;
    l->rate = N * sizeof *x / best;
    snprintf(l->name, sizeof l->name, "this memory");
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

/* "10,50": gigabits per second and microseconds; false: it is not. */
static bool read_link(link *l, const char *text)
{
    double gbit, us;
    char rest;
    if (sscanf(text, "%lf,%lf%c", &gbit, &us, &rest) != 2
        || !(gbit > 0 && gbit <= 1e6) || !(us >= 0 && us <= 1e6)) return false;
    l->latency = 1e-6 * us;
    l->rate = gbit * 1e9 / 8;
    snprintf(l->name, sizeof l->name, "given link");
    return true;
}

static tt_status find_links(table *t)
{
    static const double lines[] = {1, 10, 25, 100};
    for (int i = 0; i < LINKS - 1; i++) t->link[i] = line_of(lines[i]);
    link *own = &t->link[LINKS - 1];
    if (t->s->link) {
        read_link(own, t->s->link);
        return TT_OK;
    }
    return tt_team_size(t->ctx) > 1 ? measure_link(t->ctx, t->run, own)
                                    : measure_memory(t->ctx, own);
}

/* Seconds of what a share moves. */
static double moving(const tt_share *x, const link *l)
{
    return x->messages * l->latency + x->moved / l->rate;
}

static double chunk_seconds(const row *r, const link *l)
{
    const double compute = r->latents.seconds + r->decoding.seconds;
    if (r->size == 1) return compute;
    return compute + moving(&r->latents, l) + moving(&r->decoding, l);
}

/* ---- shares -------------------------------------------------------------- */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The first, the middle and the last rank: where heads are not shared out
 * evenly, the middle one holds most; rank 0 takes the pictures. */
static tt_status find_share(const table *t, int size, bool decoding,
                            tt_share *out)
{
    const int which[] = {0, size / 2, size - 1};
    tt_share_of of = {.size = size, .cpu = t->s->cpu};
    int most = 0;
    double operations = -1;
    tt_share x;
    for (int i = 0; i < 3; i++) {
        if (i > 0 && which[i] == which[i - 1]) continue;
        of.rank = which[i];
        TT_TRY(tt_run_share(t->ctx, t->run, &of, decoding, &x));
        if (x.operations > operations) {
            operations = x.operations;
            most = of.rank;
        }
        out->messages = larger(out->messages, x.messages);
        out->moved = larger(out->moved, x.moved);
        out->sent = larger(out->sent, x.sent);
        if (x.held > out->held) out->held = x.held;
        if (x.heads > out->heads) out->heads = x.heads;
    }
    of.rank = most;
    of.seconds = (decoding ? 0.5 : 1) * BUDGET / (t->s->quick ? 20 : 1);
    TT_TRY(tt_run_share(t->ctx, t->run, &of, decoding, &x));
    out->seconds = x.seconds;
    out->operations = x.operations;
    out->exchanges = x.exchanges;
    return TT_OK;
}

static tt_status find_row(const table *t, row *r)
{
    TT_TRY(find_share(t, r->size, false, &r->latents));
    return t->decodes ? find_share(t, r->size, true, &r->decoding) : TT_OK;
}

/* ---- the table ----------------------------------------------------------- */

static void print_head(const table *t)
{
    const link *own = &t->link[LINKS - 1];
    const tt_settings *g = tt_run_settings(t->run);
    printf("model: ");
    utf8_print(stdout, tt_weights_path(tt_dit_weights(tt_run_dit(t->run))));
    printf("\n%lldx%lld, seconds of a chunk of %lld latents%s with a full "
           "cache, and efficiency%s\n", (long long)g->width,
           (long long)g->height,
           (long long)tt_run_rollout(t->run)->chunk, t->decodes
           ? " and its pictures" : "", t->s->cpu ? "; CPU seconds" : "");
    printf("%s: %.3g us a message, %.3g Gbit/s; the others %g us, %g of the "
           "line\n", own->name, 1e6 * own->latency, 8e-9 * own->rate,
           1e6 * LATENCY, PAYLOAD);
    printf("%5s %5s %9s %9s %9s", "ranks", "heads", "memory", "MB sent",
           "compute");
    for (int i = 0; i < LINKS; i++) printf("  %15s", t->link[i].name);
    printf("\n");
}

static void log_share(json_out *j, const char *name, const tt_share *x)
{
    json_open(j, name, '{');
    json_real(j, "compute_seconds", x->seconds);
    json_real(j, "operations", x->operations);
    json_real(j, "exchanges", x->exchanges);
    json_real(j, "messages", x->messages);
    json_real(j, "sent_bytes", x->sent);
    json_real(j, "moved_bytes", x->moved);
    json_int(j, "memory_bytes", x->held);
    json_close(j, '}');
}

static void log_row(const table *t, const row *r)
{
    json_out *j = t->json;
    if (!j) return;
    json_open(j, NULL, '{');
    json_int(j, "ranks", r->size);
    json_int(j, "heads", r->latents.heads);
    log_share(j, "latents", &r->latents);
    if (t->decodes) log_share(j, "decoding", &r->decoding);
    json_open(j, "links", '[');
    for (int i = 0; i < LINKS; i++) {
        const double seconds = chunk_seconds(r, &t->link[i]);
        json_open(j, NULL, '{');
        json_str(j, "link", t->link[i].name);
        json_real(j, "bytes_per_s", t->link[i].rate);
        json_real(j, "message_seconds", t->link[i].latency);
        json_real(j, "chunk_seconds", seconds);
        json_real(j, "efficiency", chunk_seconds(&t->alone, &t->link[i])
                                   / seconds / r->size);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void print_row(const table *t, const row *r)
{
    char memory[32];
    const int64_t held = r->latents.held > r->decoding.held
                       ? r->latents.held : r->decoding.held;
    printf("%5d %5lld %9s %9.1f %9.3f", r->size, (long long)r->latents.heads,
           progress_bytes(memory, sizeof memory, held),
           1e-6 * (r->latents.sent + r->decoding.sent),
           r->latents.seconds + r->decoding.seconds);
    for (int i = 0; i < LINKS; i++) {
        const double seconds = chunk_seconds(r, &t->link[i]);
        printf("  %9.3f %5.2f", seconds, chunk_seconds(&t->alone, &t->link[i])
                                         / seconds / r->size);
    }
    printf("\n");
    fflush(stdout);
    log_row(t, r);
}

static tt_status print_all(table *t)
{
    static const int sizes[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
    t->alone.size = 1;
    TT_TRY(find_row(t, &t->alone));
    print_head(t);
    print_row(t, &t->alone);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        row r = {.size = sizes[i]};
        TT_TRY(tt_check_interrupt(t->ctx));
        TT_TRY(find_row(t, &r));
        print_row(t, &r);
    }
    return TT_OK;
}

/* ---- the command --------------------------------------------------------- */

int bench_ranks_check(const bench_settings *s)
{
    link l;
    if (!s->link || (s->ranks && read_link(&l, s->link))) return GO_ON;
    if (!s->ranks)
        return opt_usage("bench", "--link has no effect without --ranks");
    return opt_usage("bench", "--link %s: expected gigabits per second and "
                     "microseconds of a message, like 10,60", s->link);
}

tt_status bench_ranks(tt_ctx *ctx, const bench_settings *s,
                      const tt_settings *settings, json_out *j)
{
    tt_run *run = NULL;
    table t = {.ctx = ctx, .s = s, .json = j,
               .decodes = !settings->no_decode};
    setenv("TT_MEMORY", "1000000G", 1); /* nothing of it is held here */
    if (!tt_run_open(ctx, &run, settings, NULL)) {
        t.run = run;
        if (!find_links(&t) && tt_team_rank(ctx) == 0) print_all(&t);
    }
    tt_run_close(run);
    return ctx->status;
}
