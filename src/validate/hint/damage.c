/* damage.c: a part of an array is missing, or holds another part.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Of what a call reads but weights of products, and of its result, along each
 * axis: a loop ends too early or begins too late, index 0 is taken for all,
 * every index holds its neighbour, halves are exchanged. The mistake is made on
 * a copy, and the call is done again. */
#include "validate/hint/chain.h"

#include <stdio.h>
#include <string.h>

typedef struct damage {
    hint *h;
    op_call own;               /* reads `mine`                                */
    op_operand o;              /* of own; place NULL: the result              */
    const tt_real *at;         /* what is damaged                             */
    tt_real *mine;
    const char *name;
} damage;

typedef enum damage_form {
    FIRST_FOR_ALL, ONE_BEFORE, ONE_AFTER, HALVES, LAST_ZERO,
    FIRST_ZERO, ONE_ZERO, HOLDS_NEXT, HELD
} damage_form;

static const char *const damage_text[] = {
    "%s 0 for all", "every %s is the one before it",
    "every %s is the one after it", "halves of the %ss are exchanged",
    "%ss: the last %lld are zero", "%ss: the first %lld are zero",
    "%s %lld is zero", "%s %lld holds the one after it",
    "from %s %lld on all hold the one before"
};

/* The index of n whose values stand at index k; -1: zeros. */
static int64_t damage_source(damage_form f, int64_t k, int64_t n, int64_t m)
{
    switch (f) {
    case FIRST_FOR_ALL: return 0;
    case ONE_BEFORE: return k > 0 ? k - 1 : 0;
    case ONE_AFTER: return k + 1 < n ? k + 1 : k;
    case HALVES: return (k + n / 2) % n;
    case LAST_ZERO: return k < n - m ? k : -1;
    case FIRST_ZERO: return k < m ? -1 : k;
    case ONE_ZERO: return k == m ? -1 : k;
    case HOLDS_NEXT: return k == m ? (k + 1) % n : k;
    case HELD: return k < m ? k : m - 1;
    default: return k;
    }
}

/* The damage of one axis, in mine. */
static void make_damage(damage *d, damage_form f, int axis, int64_t m)
{
    const op_operand *o = &d->o;
    int64_t width = 1, step = 1;
    for (int i = 1; i < o->rank; i++) width *= o->dim[i];
    const int64_t row = o->stride ? o->stride : width, n = o->dim[axis];
    for (int i = axis + 1; i < o->rank; i++) step *= o->dim[i];
    if (axis == 0) step = row;
    memcpy(d->mine, d->at, (size_t)operand_span(o) * sizeof *d->mine);
    for (int64_t i = 0; i < o->dim[0] * width; i++) {
        const int64_t at = i / width * row + i % width;
        const int64_t k = axis ? i % width / step % n : i / width;
        const int64_t from = damage_source(f, k, n, m);
        d->mine[at] = from < 0 ? 0 : d->at[at + (from - k) * step];
    }
}

static const char *damage_axis(const damage *d, int axis)
{
    static const char *const heads[] = {"token", "head", "channel"};
    static const char *const picture[] = {"row", "column", "channel"};
    const op_kind kind = d->h->q->kind;
    if (d->o.rank == 3) return (kind == OP_CONV ? picture : heads)[axis];
    return axis == d->o.rank - 1 ? "channel" : "row";
}

static void try_damage(damage *d, damage_form f, int axis, int64_t m)
{
    hint *h = d->h;
    char what[96];
    if (hint_settled(h)) return;
    make_damage(d, f, axis, m);
    snprintf(what, sizeof what, damage_text[f], damage_axis(d, axis),
             (long long)m);
    if (d->o.place) {
        hint_try_call(h, &d->own, "%s: %s", d->name, what);
        return;
    }
    for (int64_t i = 0; i < h->n; i++) h->trial[i] = (double)d->mine[i];
    hint_try(h, h->trial, "%s: %s", d->name, what);
}

static void damage_axes(damage *d)
{
    enum { FEW = 32 };
    int64_t part[PARTS_MOST];
    for (int axis = 0; axis < d->o.rank; axis++) {
        const int64_t n = d->o.dim[axis];
        const int parts = n > 1 ? hint_parts(n, part) : 0;
        for (int f = 0; n > 1 && f <= HELD; f++) {
            const bool some = f == LAST_ZERO || f == FIRST_ZERO;
            const int64_t all = some ? parts : f < LAST_ZERO ? 1
                                : n <= FEW ? n : 0;
            for (int64_t m = f == HELD; m < all; m++)
                try_damage(d, (damage_form)f, axis, some ? part[m] : m);
        }
    }
}

static void damage_operand(hint *h, int i)
{
    const tt_dtype real = sizeof(tt_real) == 8 ? TT_F64 : TT_F32;
    damage d = {.h = h, .own = *h->q};
    op_operands l;
    call_map(h->ctx, &d.own, h->q, 0, NULL, 0);      /* frames of its own */
    call_operands(&d.own, &l);
    d.o = l.of[i];
    d.name = d.o.name;
    d.at = operand_at(&d.o);
    if (!d.at || d.o.type != real || chain_result(h->chain, d.at)) return;
    d.mine = tt_scratch(h->ctx, operand_span(&d.o));
    operand_set(&d.o, d.mine);
    if (!h->ctx->status) damage_axes(&d);
}

static void damage_result(hint *h)
{
    damage d = {.h = h, .name = "its result", .o.rank = h->rank};
    tt_real *at = tt_scratch(h->ctx, h->n);
    d.mine = tt_scratch(h->ctx, h->n);
    if (h->rank > 3 || h->ctx->status) return;
    memcpy(d.o.dim, h->dim, sizeof d.o.dim);
    for (int64_t i = 0; i < h->n; i++) at[i] = (tt_real)h->want[i];
    d.at = at;
    damage_axes(&d);
}

void hint_damage(hint *h)
{
    op_operands l;
    call_operands(h->q, &l);
    const tt_arena_mark mark = tt_arena_here(&h->ctx->scratch);
    damage_result(h);
    for (int i = 0; i < l.n && !hint_settled(h); i++) damage_operand(h, i);
    tt_arena_reset(&h->ctx->scratch, mark);
}
