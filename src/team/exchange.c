/* exchange.c: what ranks hand to each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   one exchange of bytes, in which everybody knows from the cuts alone
 *         what comes from whom. Values are moved and never added: a sum over
 *         what is shared out is made by one rank, from all of it, in its order.
 * Holds   a rank that has failed still calls, and so tells the others.
 * Next    team.c */
#include <string.h>

#include "team/cuts.h"
#include "core/device.h"

/* The next parcel: n bytes after those before it. */
static void exchange_add(tt_parcels *p, int rank, int64_t *used, int64_t n)
{
    p->at[rank] = *used;
    p->n[rank] = n;
    *used += n;
}

static char *reserve(tt_ctx *ctx, tt_parcels *p, int64_t bytes)
{
    return p->data = tt_alloc(ctx, &ctx->scratch, bytes, 1, "parcels");
}

static void exchange_copy(void *to, const void *from, int64_t bytes)
{
    if (bytes > 0) memcpy(to, from, (size_t)bytes);
}

/* ---- rows to heads ------------------------------------------------------- */

/* To every rank our rows of the heads it holds: [rows, heads, D]. */
static void pack_heads(const tt_team *t, tt_parcels *out, const tt_host *x,
                       int64_t T, int64_t H, int64_t D)
{
    const int64_t rows = cut_size(cut_rows(t, T, t->rank));
    for (int r = 0; r < t->size; r++) {
        const tt_range heads = cut_heads(t, H, r);
        const int64_t n = cut_size(heads) * D * (int64_t)sizeof *x;
        for (int64_t i = 0; i < rows; i++)
            exchange_copy(out->data + out->at[r] + i * n,
                          x + (i * H + heads.lo) * D, n);
    }
}

tt_real *tt_team_to_heads(tt_ctx *ctx, tt_real *x, int64_t T, int64_t H,
                          int64_t D)
{
    tt_team *t = ctx->team;
    if (tt_team_size(ctx) == 1) return ctx->status ? NULL : x;
    const int64_t held = cut_size(cut_heads(t, H, t->rank)), n = T * held * D;
    const int64_t rows = cut_size(cut_rows(t, T, t->rank));
    tt_real *y = tt_values(ctx, n);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_parcels out, in;
    int64_t nout = 0, nin = 0;
    for (int r = 0; r < t->size; r++) {
        exchange_add(&out, r, &nout, rows * cut_size(cut_heads(t, H, r)) * D
                            * (int64_t)sizeof *y);
        exchange_add(&in, r, &nin, cut_size(cut_rows(t, T, r)) * held * D
                          * (int64_t)sizeof *y);
    }
    const tt_host *from = tt_get(ctx, x, rows * H * D);
    tt_host *to = tt_map_write(ctx, y, n);       /* in the order of parcels */
    in.data = (char *)to;
    if (reserve(ctx, &out, nout) && from) pack_heads(t, &out, from, T, H, D);
    if (!team_exchange(ctx, &out, &in, false)) tt_put(ctx, y, to, n);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status ? NULL : y;
}

/* ---- heads to rows ------------------------------------------------------- */

static tt_range both(tt_range a, tt_range b)
{
    const tt_range x = {a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
    return x.lo < x.hi ? x : (tt_range){0, 0};
}

/* What rank `from` sends to rank `to` of head h: those of the queries it
 * answers that are rows of the other. */
static tt_range answers(const tt_team *t, int64_t H, int64_t T, int64_t h,
                        int from, int to)
{
    return both(cut_queries(t, H, T, h, from), cut_rows(t, T, to));
}

static int64_t count_answers(const tt_team *t, int64_t H, int64_t T, int from,
                             int to)
{
    const tt_range heads = cut_heads(t, H, from);
    int64_t n = 0;
    for (int64_t h = heads.lo; h < heads.hi; h++)
        n += cut_size(answers(t, H, T, h, from, to));
    return n;
}

/* Where the values of a head lie: those of row `first`, and so on. */
typedef struct head {
    const tt_host *from;
    int64_t first, stride;
} head;

static void pack_answers(const tt_team *t, tt_parcels *out, const head *list,
                         int64_t T, int64_t H, int64_t D)
{
    const tt_range heads = cut_heads(t, H, t->rank);
    const int64_t n = D * (int64_t)sizeof(tt_host);
    for (int r = 0; r < t->size; r++) {
        char *to = out->data + out->at[r];
        for (int64_t h = heads.lo; h < heads.hi; h++) {
            const tt_range rows = answers(t, H, T, h, t->rank, r);
            const head *x = &list[h - heads.lo];
            for (int64_t i = rows.lo; i < rows.hi; i++, to += n)
                exchange_copy(to, x->from + (i - x->first) * x->stride, n);
        }
    }
}

static void unpack_answers(const tt_team *t, tt_host *y, const tt_parcels *in,
                           int64_t T, int64_t H, int64_t D)
{
    const int64_t n = D * (int64_t)sizeof *y;
    const tt_range own = cut_rows(t, T, t->rank);
    for (int r = 0; r < t->size; r++) {
        const char *from = in->data + in->at[r];
        const tt_range heads = cut_heads(t, H, r);
        for (int64_t h = heads.lo; h < heads.hi; h++) {
            const tt_range rows = answers(t, H, T, h, r, t->rank);
            for (int64_t i = rows.lo; i < rows.hi; i++, from += n)
                exchange_copy(y + ((i - own.lo) * H + h) * D, from, n);
        }
    }
}

/* list: one entry per head held; NULL after a failure. */
static tt_real *heads_to_rows(tt_ctx *ctx, const head *list, int64_t T,
                              int64_t H, int64_t D)
{
    const tt_team *t = ctx->team;
    const int64_t n = cut_size(cut_rows(t, T, t->rank)) * H * D;
    tt_real *y = tt_values(ctx, n);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_parcels out, in;
    int64_t nout = 0, nin = 0;
    const int64_t size = D * (int64_t)sizeof *y;
    for (int r = 0; r < t->size; r++) {
        exchange_add(&out, r, &nout, count_answers(t, H, T, t->rank, r) * size);
        exchange_add(&in, r, &nin, count_answers(t, H, T, r, t->rank) * size);
    }
    reserve(ctx, &out, nout);
    reserve(ctx, &in, nin);
    tt_host *to = tt_map_write(ctx, y, n);
    if (list && to) pack_answers(t, &out, list, T, H, D);
    if (!team_exchange(ctx, &out, &in, false)) {
        if (to) unpack_answers(t, to, &in, T, H, D);
        tt_put(ctx, y, to, n);
    }
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status ? NULL : y;
}

tt_real *tt_team_to_rows(tt_ctx *ctx, tt_real *x, int64_t T, int64_t H,
                         int64_t D)
{
    tt_team *t = ctx->team;
    if (tt_team_size(ctx) == 1) return ctx->status ? NULL : x;
    const int64_t held = cut_size(cut_heads(t, H, t->rank));
    const tt_host *from = tt_get(ctx, x, T * held * D);
    head *list = tt_alloc(ctx, &ctx->scratch, held, sizeof *list, "heads");
    for (int64_t h = 0; h < held && list && from; h++)
        list[h] = (head){from + h * D, 0, held * D};
    return heads_to_rows(ctx, list, T, H, D);
}

tt_real *tt_team_answers_to_rows(tt_ctx *ctx, tt_real *x, int64_t T, int64_t H,
                                 int64_t D)
{
    tt_team *t = ctx->team;
    if (tt_team_size(ctx) == 1) return ctx->status ? NULL : x;
    const tt_range heads = cut_heads(t, H, t->rank);
    const tt_host *from = tt_get(ctx, x,
                                 cut_size(cut_rows(t, H * T, t->rank)) * D);
    head *list = tt_alloc(ctx, &ctx->scratch, cut_size(heads), sizeof *list,
                          "heads");
    for (int64_t h = heads.lo; h < heads.hi && list && from; h++) {
        const tt_range asked = cut_queries(t, H, T, h, t->rank);
        list[h - heads.lo] = (head){from, asked.lo, D};
        from += cut_size(asked) * D;
    }
    return heads_to_rows(ctx, list, T, H, D);
}

/* ---- lines to the neighbours --------------------------------------------- */

/* Line 0 of a parcel goes up or comes from above, line 1 down or from below.
 * Ranks without lines are no one's neighbours. */
static void to_neighbours(const tt_team *t, tt_parcels *p, const tt_band *b,
                          int64_t size)
{
    const tt_range own = cut_rows(t, b->of / b->each, t->rank);
    for (int r = 0; r < t->size; r++) {
        const tt_range his = cut_rows(t, b->of / b->each, r);
        const bool both = cut_size(his) > 0 && cut_size(own) > 0;
        p->at[r] = both && his.lo == own.hi ? size : 0;
        p->n[r] = both && (his.lo == own.hi || his.hi == own.lo) ? size : 0;
    }
}

static void take_line(tt_ctx *ctx, char *to, const tt_real *x, int64_t width)
{
    const tt_host *line = tt_get(ctx, x, width);
    if (line) exchange_copy(to, line, width * (int64_t)sizeof *line);
}

void tt_team_halo(tt_ctx *ctx, tt_real *x, const tt_band *b, int64_t width)
{
    if (!b->each) return;
    const int64_t size = width * (int64_t)sizeof *x;
    const int64_t end = b->above + b->lines;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_parcels out, in;
    to_neighbours(ctx->team, &out, b, size);
    to_neighbours(ctx->team, &in, b, size);
    tt_host *ours = tt_scratch(ctx, 2 * width);
    tt_host *theirs = tt_scratch(ctx, 2 * width);
    out.data = (char *)ours;
    in.data = (char *)theirs;
    if (b->lines > 0 && theirs) {
        take_line(ctx, out.data, x + b->above * width, width);
        take_line(ctx, out.data + size, x + (end - 1) * width, width);
    }
    if (!team_exchange(ctx, &out, &in, false)) {
        if (b->above) tt_put(ctx, x, theirs, width);
        if (b->below) tt_put(ctx, x + end * width, theirs + width, width);
    }
    tt_arena_reset(&ctx->scratch, m);
}

/* ---- everything to everybody --------------------------------------------- */

/* Our rows of T to all, or to rank 0 alone. */
static tt_real *gather(tt_ctx *ctx, tt_real *x, int64_t T, int64_t width,
                       bool all)
{
    tt_team *t = ctx->team;
    const int64_t size = width * (int64_t)sizeof *x;
    const int64_t own = cut_size(cut_rows(t, T, t->rank));
    const int64_t n = all || t->rank == 0 ? T * width : 0;
    tt_real *y = tt_values(ctx, n);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_parcels out, in;
    int64_t nin = 0;
    for (int r = 0; r < t->size; r++) {
        int64_t nout = 0;
        exchange_add(&out, r, &nout, all || r == 0 ? own * size : 0);
        exchange_add(&in, r, &nin, n ? cut_size(cut_rows(t, T, r)) * size : 0);
    }
    tt_host *to = tt_map_write(ctx, y, n);
    out.data = (char *)tt_get(ctx, x, own * width);
    in.data = (char *)to;
    if (!team_exchange(ctx, &out, &in, false)) tt_put(ctx, y, to, n);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status ? NULL : y;
}

tt_real *tt_team_all_rows(tt_ctx *ctx, tt_real *x, int64_t T, int64_t width)
{
    if (tt_team_size(ctx) == 1) return ctx->status ? NULL : x;
    return gather(ctx, x, T, width, true);
}

tt_real *tt_team_all_lines(tt_ctx *ctx, tt_real *x, const tt_band *b,
                           int64_t width)
{
    if (!b->each) return ctx->status ? NULL : x;
    return gather(ctx, x, b->of / b->each, b->each * width, true);
}

tt_real *tt_team_lines_to_first(tt_ctx *ctx, tt_real *x, const tt_band *b,
                                int64_t width)
{
    if (!b->each) return ctx->status ? NULL : x;
    return gather(ctx, x, b->of / b->each, b->each * width, false);
}

/* Columns [first, first + k) of n rows of `all` units into a packed block, or
 * back. */
static void take_columns(char *block, const char *rows, int64_t n, int64_t all,
                         int64_t first, int64_t k, int64_t unit)
{
    for (int64_t i = 0; i < n; i++)
        exchange_copy(block + i * k * unit, rows + (i * all + first) * unit,
                      k * unit);
}

static void put_columns(char *rows, const char *block, int64_t n, int64_t all,
                        int64_t first, int64_t k, int64_t unit)
{
    for (int64_t i = 0; i < n; i++)
        exchange_copy(rows + (i * all + first) * unit, block + i * k * unit,
                      k * unit);
}

void *tt_team_all_heads(tt_ctx *ctx, void *x, int64_t n, int64_t H,
                        size_t unit)
{
    tt_team *t = ctx->team;
    if (tt_team_size(ctx) == 1) return ctx->status ? NULL : x;
    const int64_t size = (int64_t)unit;
    const tt_range held = cut_heads(t, H, t->rank);
    const tt_range ours = cut_first_heads(t, H, t->rank);
    char *y = tt_alloc(ctx, &ctx->scratch, n * H, unit, "all heads");
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_parcels out, in;
    int64_t nin = 0, nout = n * cut_size(ours) * size;
    for (int r = 0; r < t->size; r++) {
        exchange_add(&out, r, &(int64_t){0}, nout);
        exchange_add(&in, r, &nin,
                     n * cut_size(cut_first_heads(t, H, r)) * size);
    }
    reserve(ctx, &in, nin);
    if (reserve(ctx, &out, nout))
        take_columns(out.data, x, n, cut_size(held), ours.lo - held.lo,
                     cut_size(ours), size);
    if (!team_exchange(ctx, &out, &in, false) && in.data)
        for (int r = 0; r < t->size; r++) {
            const tt_range his = cut_first_heads(t, H, r);
            put_columns(y, in.data + in.at[r], n, H, his.lo, cut_size(his),
                        size);
        }
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status ? NULL : y;
}

tt_status tt_team_broadcast(tt_ctx *ctx, void *data, int64_t bytes)
{
    tt_team *t = ctx->team;
    if (tt_team_size(ctx) == 1) return ctx->status;
    tt_parcels out = {.data = data}, in = {.data = data};
    for (int r = 1; t->rank == 0 && r < t->size; r++) out.n[r] = bytes;
    if (t->rank > 0) in.n[0] = bytes;
    return team_exchange(ctx, &out, &in, true);
}

/* Rank 0 may be at its disk for long; the others are not. */
static tt_status exchange_with_first(tt_ctx *ctx, const tt_parcels *out,
                                     const tt_parcels *in)
{
    return team_exchange(ctx, out, in, ctx->team->rank > 0);
}

/* The first rank that holds head h. */
static int holder_of(const tt_team *t, int64_t H, int64_t h)
{
    int r = 0;
    while (cut_heads(t, H, r).hi <= h) r++;
    return r;
}

tt_status tt_team_bring_head(tt_ctx *ctx, void *data, int64_t bytes, int64_t H,
                             int64_t h)
{
    tt_team *t = ctx->team;
    if (tt_team_size(ctx) == 1) return ctx->status;
    const int from = holder_of(t, H, h);
    tt_parcels out = {.data = data}, in = {.data = data};
    if (from == 0) return ctx->status;
    if (t->rank == from) out.n[0] = bytes;
    if (t->rank == 0) in.n[from] = bytes;
    return exchange_with_first(ctx, &out, &in);
}

tt_status tt_team_hand_head(tt_ctx *ctx, void *data, int64_t bytes, int64_t H,
                            int64_t h)
{
    tt_team *t = ctx->team;
    if (tt_team_size(ctx) == 1) return ctx->status;
    tt_parcels out = {.data = data}, in = {.data = data};
    for (int r = 1; r < t->size; r++) {
        const tt_range held = cut_heads(t, H, r);
        if (h < held.lo || h >= held.hi) continue;
        if (t->rank == 0) out.n[r] = bytes;
        if (t->rank == r) in.n[0] = bytes;
    }
    return exchange_with_first(ctx, &out, &in);
}

/* The same `bytes` of us for everybody. */
static tt_status all_words(tt_ctx *ctx, void *all, const void *mine,
                           int64_t bytes, bool patient)
{
    const tt_team *t = ctx->team;
    tt_parcels out = {.data = (char *)mine}, in = {.data = all};
    for (int r = 0; r < t->size; r++) {
        out.n[r] = in.n[r] = bytes;
        in.at[r] = r * bytes;
    }
    return team_exchange(ctx, &out, &in, patient);
}

bool tt_team_any(tt_ctx *ctx, bool here)
{
    const tt_team *t = ctx->team;
    if (tt_team_size(ctx) == 1) return here;
    char word = here, words[TT_TEAM_MAX] = {0};
    all_words(ctx, words, &word, 1, false);
    for (int r = 0; r < t->size; r++) here = here || words[r];
    return here;
}

tt_status tt_team_agree(tt_ctx *ctx)
{
    return team_meet(ctx, false);
}

tt_status team_meet(tt_ctx *ctx, bool patient)
{
    char word = 0, words[TT_TEAM_MAX];
    if (tt_team_size(ctx) == 1) return ctx->status;
    return all_words(ctx, words, &word, 1, patient);
}
