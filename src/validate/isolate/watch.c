/* watch.c: see watch.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/isolate/watch.h"

#include <stdio.h>

#include "core/fpenv.h"
#include "validate/report/report.h"

bool watch_enter(watch *w, watch_part part, int64_t index)
{
    const int64_t unit = WATCH_UNIT(part, index);
    if (!w) return true;
    if (unit < w->resume) return false;
    w->board->unit = unit;
    return true;
}

bool watch_may(const watch *w, op_kind op)
{
    return !w || !w->given_up[op];
}

void watch_place(watch *w, const char *path)
{
    if (w) snprintf(w->board->path, sizeof w->board->path, "%s", path);
}

void watch_output(watch *w, const void *out, int64_t bytes)
{
    if (!w) return;
    w->board->out = (int64_t)(intptr_t)out;
    w->board->bytes = bytes;
}

void watch_begin(watch *w, op_kind op)
{
    if (!w) return;
    w->board->op = op;
    atomic_fetch_add(&w->board->calls, 1);
}

void watch_end(watch *w)
{
    if (!w) return;
    atomic_fetch_add(&w->board->calls, 1);
    w->board->out = 0;
}

/* ---- a table ------------------------------------------------------------- */

static void watched_end(tt_ctx *ctx, watched *t, op_kind op)
{
    char what[96];
    const tt_fpenv left = tt_fpenv_begin_all(ctx->nthreads);
    if (t->noted[op] || !*tt_fpenv_text(what, sizeof what, left)) return;
    t->noted[op] = true;
    tt_report_note(t->report, "%s leaves %s set; every call begins without",
                   op_name(op), what);
}

#define WATCHED(name, NAME)                                                    \
    static void watched_##name(tt_ctx *ctx, const tt_##name##_args *a)         \
    {                                                                          \
        const tt_ops *table = ctx->ops;                                        \
        watched *t = (watched *)(uintptr_t)table;                              \
        watch *w = t->report ? t->report->watch : NULL;                        \
        ctx->ops = t->ops;                                                     \
        watch_begin(w, OP_##NAME);                                             \
        t->ops->name(ctx, a);                                                  \
        watched_end(ctx, t, OP_##NAME);                                        \
        watch_end(w);                                                          \
        ctx->ops = table;                                                      \
    }
TT_OPS(WATCHED)

const tt_ops *watched_make(watched *t, tt_report *r, const tt_ops *ops)
{
    *t = (watched){.table = *ops, .ops = ops, .report = r};
    t->table.fused = NULL;
#define ENTRY(name, NAME) t->table.name = watched_##name;
    TT_OPS(ENTRY)
    return &t->table;
}
