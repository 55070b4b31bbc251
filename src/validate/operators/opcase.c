/* opcase.c: see opcase.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/operators/opcase.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The part of a layout that makes a difference to an operator. */
static int lay_seen(op_kind op, int lay)
{
    const bool rows = op == OP_ATTENTION || op == OP_MODULATE ||
                      op == OP_GATE_ADD;
    const bool place = op == OP_LAYER_NORM || op == OP_RMS_NORM ||
                       op == OP_CHANNEL_NORM || op == OP_ROPE;
    return lay & (LAY_ODD | (rows ? LAY_WIDE : 0) | (place ? LAY_IN_PLACE : 0)
                  | LAY_SCALED | LAY_HEAVY);
}

void op_case_name(char *out, size_t n, const op_case *c)
{
    char sizes[96];
    const int lay = lay_seen(c->op, c->lay);
    snprintf(out, n, "op.%s.%s %s seed %" PRIu64 "%s%s%s%s%s", op_name(c->op),
             input_name(c->in), sizes_string(sizes, sizeof sizes, &c->sizes),
             c->seed, lay & LAY_ODD ? " unaligned" : "",
             lay & LAY_WIDE ? " wide" : "",
             lay & LAY_IN_PLACE ? " in place" : "",
             lay & LAY_SCALED ? " scaled weight" : "",
             lay & LAY_HEAVY ? " large weights" : "");
}

/* Operator and kind of input. */
static bool read_kind(op_case *c, const char *name)
{
    char head[64];
    const size_t n = strcspn(name, " ");
    for (int i = 0; i < OP_KINDS * IN_KINDS; i++) {
        c->op = (op_kind)(i / IN_KINDS);
        c->in = (op_input)(i % IN_KINDS);
        snprintf(head, sizeof head, "op.%s.%s", op_name(c->op),
                 input_name(c->in));
        if (strlen(head) == n && !strncmp(head, name, n))
            return input_applies(c->op, c->in);
    }
    return false;
}

bool op_case_read(op_case *c, const char *name)
{
    enum { MOST = 1 << 20, WORK = 1 << 27 };   /* names come from files too */
    static const int lays[] = {0, 1, 2, 3, 4, 5, 6, 7, LAY_SCALED, LAY_HEAVY};
    char again[OP_CASE_NAME];
    uint64_t rng = 1;
    int64_t work = 1;
    memset(c, 0, sizeof *c);
    if (!read_kind(c, name)) return false;
    sizes_draw(&c->sizes, c->op, &rng);        /* for their names */
    const char *at = strchr(name, ' ');
    for (int i = 0; i < c->sizes.n; i++) {
        long long v;
        at = at ? strchr(at, '=') : NULL;
        if (!at || sscanf(++at, "%lld", &v) != 1 || v > MOST || v < -1
            || (v < c->sizes.least[i] && strcmp(c->sizes.name[i], "masked")))
            return false;
        work *= v > 0 ? v : 1;
        if (work > WORK) return false;
        c->sizes.v[i] = v;
    }
    at = at ? strstr(at, " seed ") : NULL;
    if (!at || sscanf(at, " seed %" SCNu64, &c->seed) != 1) return false;
    for (size_t i = 0; i < sizeof lays / sizeof *lays; i++) {
        c->lay = lays[i];
        op_case_name(again, sizeof again, c);
        if (!strcmp(again, name)) return true;
    }
    return false;
}

/* Every way to lay out a call is met in LAYS rounds, in the first two none and
 * all of them. */
static int lay_of(int64_t round)
{
    const int i = (int)(round % LAYS);
    return i % 2 ? LAYS - 1 - i / 2 : i / 2;
}

bool op_case_round(op_case *c, op_kind op, op_input in, uint64_t seed,
                   bool large, int64_t i)
{
    *c = (op_case){.op = op, .in = in, .seed = seed + (uint64_t)i,
                   .lay = lay_of(i)};
    uint64_t rng = c->seed * 1000 + (uint64_t)(op * IN_KINDS) + in;
    if (large) return sizes_large(&c->sizes, &c->lay, op, i);
    sizes_draw(&c->sizes, op, &rng);
    return true;
}
