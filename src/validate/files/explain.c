/* explain.c: what mistake made a wrong tensor of a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a table of ours records what the operators read that lie between the
 *         wrong tensor and the named one before it, in a run with theirs given
 *         at every point. When the tensor is shown, the mistakes of each of
 *         them are tried (chain.h).
 * Holds   calls are kept only where the path of the run leads to the name, and
 *         no more than are needed: a named point throws away what came before
 *         it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tether/io.h"
#include "validate/hint/chain.h"
#include "validate/report/report.h"

#define BYTES_MOST ((size_t)1 << 28)   /* of a chain                          */
#define WORK_MOST ((int64_t)1 << 24)   /* multiply-adds of one trial          */

struct tt_explain {
    tt_ops table;
    const tt_ops *ours;
    tt_ctx *ctx;               /* of the run                                  */
    char name[224];            /* of the wrong tensor                         */
    double *got, earned;       /* theirs                                      */
    int64_t n;
    bool done;
    tt_tap_fn tap;             /* whose place we take                         */
    void *tap_user;
    tt_arena arena;            /* of the chain                                */
    size_t bytes;
    chain c;
    char found[160];
};

/* ---- what operators read ------------------------------------------------- */

static void *kept(tt_explain *e, tt_ctx *ctx, const void *from, size_t n)
{
    void *to = tt_alloc(ctx, &e->arena, (int64_t)n, 1, "a chain");
    if (to) memcpy(to, from, n);
    e->bytes += n;
    return to;
}

static void forget(tt_explain *e)
{
    tt_arena_free(&e->arena);
    e->c.n = 0;
    e->bytes = 0;
}

/* Is this memory of the model, that no operator writes to? */
static bool constant(const op_call *q, const void *at)
{
    const tt_tensor *w = q->kind == OP_CONV ? q->conv.w : q->w;
    return (w && at == w->data)
           || (q->table && (at == q->table->cos || at == q->table->sin));
}

/* Operands of a call that is about to run; NULL when it is of no interest. */
static chain_link *begin_link(tt_explain *e, tt_ctx *ctx, op_kind kind,
                              const void *args)
{
    void *at[SPANS_MAX];
    chain_link *l = &e->c.link[e->c.n];
    if (e->done || e->c.n == LINKS_MOST || e->bytes > BYTES_MOST || ctx->status
        || strncmp(ctx->path, e->name, strlen(ctx->path))) return NULL;
    memset(l, 0, sizeof *l);
    l->out_was = call_take(&l->q, kind, args);
    l->bytes = call_out_bytes(&l->q);
    if (kind == OP_COL_MOMENT) e->c.rows = l->q.n;
    call_inputs(&l->q, &l->was);
    for (int i = 0; i < l->was.n; i++) {
        at[i] = (void *)(uintptr_t)l->was.at[i];
        l->copy[i] = constant(&l->q, at[i]) ? at[i]
                     : kept(e, ctx, at[i], l->was.size[i]);
    }
    if (l->q.w) l->q.w = kept(e, ctx, l->q.w, sizeof *l->q.w);
    if (kind == OP_CONV)
        l->q.conv.w = kept(e, ctx, l->q.conv.w, sizeof *l->q.conv.w);
    chain_move(ctx, &e->arena, &l->q, at, l->copy, l->was.n);
    return ctx->status ? NULL : l;
}

static void end_link(tt_explain *e, tt_ctx *ctx, chain_link *l)
{
    if (!l || ctx->status) return;
    l->out = kept(e, ctx, l->out_was, l->bytes);
    e->c.n += l->out != NULL;
}

/* ---- the named tensor ---------------------------------------------------- */

static int64_t work(const chain *c)
{
    int64_t n = 0;
    for (int i = 0; i < c->n; i++) n += call_cost(&c->link[i].q);
    return n;
}

/* It is there: `data` is what ours made of theirs. */
static void explain(tt_explain *e, tt_ctx *ctx, tt_dtype type, int rank,
                    const int64_t *dim, const void *data)
{
    tt_verdict v = {.rank = rank, .earned = e->earned};
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= v.dim[i] = dim[i];
    e->done = true;
    if (n != e->n || (type != TT_F32 && type != TT_F64)
        || work(&e->c) > WORK_MOST) return;
    e->c.ctx = ctx;
    e->c.end_was = data;
    e->c.end_size = type == TT_F64 ? 8 : 4;
    e->c.end_bytes = (size_t)n * e->c.end_size;
    e->c.end = kept(e, ctx, data, e->c.end_bytes);
    if (e->c.end)
        hint_chain(ctx, &e->c, e->name, e->got, &v, e->found, sizeof e->found);
}

static void look(void *user, const char *path, tt_dtype dtype, int rank,
                 const int64_t *dim, const void *data)
{
    tt_explain *e = user;
    if (e->tap) e->tap(e->tap_user, path, dtype, rank, dim, data);
    if (!e->done && !strcmp(path, e->name))
        explain(e, e->ctx, dtype, rank, dim, data);
    forget(e);
}

/* Parts of a run set the tap aside and put it back. */
static void listen(tt_explain *e, tt_ctx *ctx)
{
    if (!ctx->tap || ctx->tap == look) return;
    e->ctx = ctx;
    e->tap = ctx->tap;
    e->tap_user = ctx->tap_user;
    ctx->tap = look;
    ctx->tap_user = e;
}

/* ---- the table ----------------------------------------------------------- */

#define RECORD(name, NAME)                                                     \
    static void record_##name(tt_ctx *ctx, const tt_##name##_args *a)          \
    {                                                                          \
        const tt_ops *table = ctx->ops;                                        \
        tt_explain *e = table->self;                                           \
        listen(e, ctx);                                                        \
        chain_link *l = begin_link(e, ctx, OP_##NAME, a);                      \
        ctx->ops = e->ours;                                                    \
        e->ours->name(ctx, a);                                                 \
        ctx->ops = table;                                                      \
        end_link(e, ctx, l);                                                   \
    }
TT_OPS(RECORD)

/* Theirs of that name, as [n] doubles of its own. */
static void read_theirs(tt_ctx *ctx, tt_explain *e, const char *theirs)
{
    tt_file *f = NULL;
    if (tt_file_open(ctx, &f, theirs)) return;
    const tt_entry *t = tt_file_find(f, e->name);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const double *x = t && tt_dtype_is_real(t->t.dtype)
                          ? tt_read_double(ctx, &ctx->scratch, &t->t) : NULL;
    e->n = x ? tt_tensor_count(&t->t) : 0;
    e->got = x ? malloc((size_t)e->n * sizeof *x) : NULL;
    if (e->got) memcpy(e->got, x, (size_t)e->n * sizeof *x);
    tt_arena_reset(&ctx->scratch, mark);
    tt_file_close(f);
}

tt_status tt_explain_open(tt_ctx *ctx, tt_explain **out, const tt_report *r,
                          const char *theirs)
{
    const tt_verdict *v = tt_report_first(r);
    *out = NULL;
    TT_TRY(ctx->status);
    if (!v || v->outcome != TT_MISMATCH || v->m.n < 8) return TT_OK;
    tt_explain *e = calloc(1, sizeof *e);
    if (!e) return tt_fail(ctx, TT_ENOMEM, "no memory to explain a tensor");
    snprintf(e->name, sizeof e->name, "%s", v->path);
    e->earned = v->earned;
    e->ours = tt_ops_default();
    e->table = *e->ours;
    e->table.self = e;
    e->table.of_class = NULL;
#define ENTRY(name, NAME) e->table.name = record_##name;
    TT_OPS(ENTRY)
    read_theirs(ctx, e, theirs);
    if (!e->got) tt_explain_close(e, NULL);
    else *out = e;
    return ctx->status;
}

const tt_ops *tt_explain_ops(tt_explain *e)
{
    return e ? &e->table : tt_ops_default();
}

void tt_explain_close(tt_explain *e, tt_report *r)
{
    if (!e) return;
    if (r && *e->found) report_say_why(r, e->found);
    forget(e);
    free(e->got);
    free(e);
}
