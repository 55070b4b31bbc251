/* explain.c: what mistake made a wrong tensor of a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a table of ours records what the operators read that lie between the
 *         wrong tensor and the named one before it, in a run with theirs given
 *         at every point. When the tensor is shown, the mistakes of each of
 *         them are tried (chain.h).
 *         Next to them, what a mistake of the model may have taken instead:
 *         keys and values of passes before, modulations of other blocks. So
 *         the trials wait until all blocks of the pass have been seen.
 *         Where every bit counts, the classes are tried first (classes.c), of
 *         large layers on the first rows alone.
 * Holds   calls are kept only where the path of the run leads to the name, and
 *         no more than are needed: a named point throws away what came before
 *         it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/io.h"
#include "validate/hint/chain.h"
#include "validate/report/report.h"

#define BYTES_MOST ((size_t)1 << 28)   /* of a chain                          */
#define WORK_MOST ((int64_t)1 << 24)   /* multiply-adds of one trial          */
#define PASSES 6                       /* whose keys and values are kept      */
#define BLIND_MOST ((int64_t)1 << 31)  /* of all trials after a pass          */
#define KINDS_MOST 64
#define NEAR_BYTES ((size_t)1 << 24)   /* of a result that is kept            */

struct tt_explain {
    tt_ops table, plain;       /* of the class, and f32                       */
    const tt_ops *of_class[TT_CLASS_COUNT];
    const tt_arith *arith;
    tt_ctx *ctx;               /* of the run                                  */
    char name[224];            /* of the wrong tensor                         */
    double *got, earned;       /* theirs                                      */
    int64_t n;
    int64_t of, rows;          /* of the chain's first product; kept of them  */
    bool done, waiting;        /* the chain is whole; is not yet tried        */
    bool named;                /* a name was shown since the latest call      */
    tt_verdict v;
    tt_tap_fn tap;             /* whose place we take                         */
    void *tap_user;
    tt_arena arena;            /* of the chain                                */
    tt_arena lasting;          /* of theirs, and of weights                   */
    char path[256];            /* under which calls are counted ...           */
    int nth[OP_KINDS];         /* ... of each kind                            */
    chain_other last_keys;     /* those under way                             */
    int like;                  /* of the call that is about to run            */
    size_t bytes;
    chain c;
    char found[192];
    bool blind;                /* every kind of tensor, after a pass          */
    tt_file *emul;             /* the declared arithmetic's run               */
    int64_t budget;            /* of work                                     */
    int kinds, frames;         /* latent frames of the VAE                    */
    char kind[KINDS_MOST][64], first[KINDS_MOST][96];
    char unseen[4000];
};

/* ---- what operators read ------------------------------------------------- */

static void *copy_of(tt_ctx *ctx, tt_arena *mem, const void *from, size_t n)
{
    void *to = tt_alloc(ctx, mem, (int64_t)n, 1, "a chain");
    if (to) memcpy(to, from, n);
    return to;
}

static void *explain_kept(tt_explain *e, tt_ctx *ctx, const void *from,
                          size_t n)
{
    e->bytes += n;
    return copy_of(ctx, &e->arena, from, n);
}

static void forget(tt_explain *e)
{
    tt_arena_free(&e->arena);
    e->c.n = 0;
    e->bytes = 0;
    e->of = 0;
}

/* Rows of its result, or what they are a divisor of. */
static int64_t *explain_rows_of(op_call *q)
{
    switch (q->kind) {
    case OP_ATTENTION: return &q->attn.T;
    case OP_ADD: case OP_MUL: case OP_GELU_TANH: case OP_SILU: return &q->c;
    default: return &q->n;
    }
}

/* Each bit of a large product's first rows says as much as all of them, so the
 * chain begins there and has these alone. False: one row is too much work. */
static bool explain_cut(tt_explain *e, op_call *q)
{
    int64_t *n = explain_rows_of(q);
    if (!e->arith->bits || q->kind == OP_CONV) return true;
    if (!e->of && (q->kind == OP_LINEAR || q->kind == OP_ATTENTION)) {
        const int64_t width = q->attn.H * q->attn.D; /* a linear comes after  */
        const int64_t most = WORK_MOST / (call_cost(q) / *n + width * width);
        if (!most) return false;
        if (most < *n) forget(e);
        e->of = *n;
        e->rows = most < *n ? most : *n;
    }
    if (e->of && *n % e->of == 0) *n = *n / e->of * e->rows;
    return true;
}

/* Is this memory of the model, that no operator writes to? */
static bool constant(const op_call *q, const void *at)
{
    const tt_tensor *w = q->kind == OP_CONV ? q->conv.w : q->w;
    return (w && at == w->data)
           || (q->table && (at == q->table->cos || at == q->table->sin));
}

/* "chunk./step./block./ffn" of a name. */
static void explain_kind(char *out, size_t size, const char *name)
{
    size_t n = 0;
    for (; *name && n + 1 < size; name++)
        if (*name < '0' || *name > '9') out[n++] = *name;
    out[n] = '\0';
}

/* Is it the first tensor, or place of calls, of its kind? */
static bool first_of(tt_explain *e, const char *name, bool note)
{
    char kind[sizeof e->kind[0]];
    explain_kind(kind, sizeof kind, name);
    for (int i = 0; i < e->kinds; i++)
        if (!strcmp(kind, e->kind[i]))
            return !note && !strcmp(e->first[i], name);
    if (e->kinds == KINDS_MOST) return false;
    snprintf(e->kind[e->kinds], sizeof kind, "%s", kind);
    snprintf(e->first[e->kinds++], sizeof e->first[0], "%.95s", name);
    return true;
}

/* Operands of a call that is about to run; NULL when it is of no interest. */
static chain_link *begin_link(tt_explain *e, tt_ctx *ctx, op_kind kind,
                              const void *args)
{
    void *at[SPANS_MAX];
    if (e->named && !e->done) forget(e);
    e->named = false;
    op_call q;
    const char *out_was = call_take(&q, kind, args);
    if (e->done || ctx->status
        || (e->blind ? !first_of(e, ctx->path, false)
                     : strncmp(ctx->path, e->name, strlen(ctx->path)))
        || !explain_cut(e, &q) || e->c.n == LINKS_MOST || e->bytes > BYTES_MOST)
        return NULL;
    chain_link *l = &e->c.link[e->c.n];
    memset(l, 0, sizeof *l);
    l->q = q;
    l->ops = tt_ops_class(tt_ops_default(), ctx->ops->cls);
    l->out_was = out_was;
    l->like = e->like;
    l->bytes = call_out_bytes(&l->q);
    call_inputs(&l->q, &l->was);
    for (int i = 0; i < l->was.n; i++) {
        at[i] = (void *)(uintptr_t)l->was.at[i];
        l->copy[i] = constant(&l->q, at[i]) ? at[i]
                     : explain_kept(e, ctx, at[i], l->was.size[i]);
    }
    if (l->q.w) l->q.w = explain_kept(e, ctx, l->q.w, sizeof *l->q.w);
    if (kind == OP_CONV)
        l->q.conv.w = explain_kept(e, ctx, l->q.conv.w, sizeof *l->q.conv.w);
    chain_move(ctx, &e->arena, &l->q, at, l->copy, l->was.n);
    return ctx->status ? NULL : l;
}

static void end_link(tt_explain *e, tt_ctx *ctx, chain_link *l)
{
    if (!l || ctx->status) return;
    l->out = explain_kept(e, ctx, l->out_was, l->bytes);
    e->c.n += l->out != NULL;
}

/* The result of any call, as long as no more than NEAR_BYTES. */
static void keep_near(tt_explain *e, tt_ctx *ctx, op_kind kind,
                      const void *args)
{
    op_call q;
    const char *out = call_take(&q, kind, args);
    const size_t bytes = call_out_bytes(&q);
    const bool time = kind == OP_LINEAR && q.w->dim[0] == 6 * q.w->dim[1];
    if (e->blind || e->done || ctx->status || bytes > NEAR_BYTES
        || call_out_is_double(&q)
        || (kind == OP_LINEAR && !time && q.w->dim[0] != q.w->dim[1])) return;
    const int at = time ? NEAR_MOST : e->c.nears++ % NEAR_MOST;
    chain_near *r = &e->c.near[at];
    tt_arena_free(&r->mem);
    *r = (chain_near){.kind = kind, .was = out};
    r->copy = copy_of(ctx, &r->mem, out, bytes);
    if (r->copy) r->count = call_count(&q);
}

/* ---- the same elsewhere -------------------------------------------------- */

/* "block.3" of a name, n letters; NULL: of no block. */
static const char *explain_block_of(const char *name, size_t *n)
{
    const char *at = strstr(name, "block.");
    *n = at ? strcspn(at, "/") : 0;
    return at;
}

static bool same_block(const char *a, const char *b)
{
    size_t n, m;
    const char *x = explain_block_of(a, &n), *y = explain_block_of(b, &m);
    return x && y && n == m && !memcmp(x, y, n);
}

static void take_other(tt_ctx *ctx, chain_other *o, const op_call *q)
{
    op_spans was;
    void *at[SPANS_MAX], *copy[SPANS_MAX];
    tt_arena *mem = &o->mem;
    tt_arena_free(mem);
    memset(o, 0, sizeof *o);
    o->q = *q;
    call_inputs(q, &was);
    for (int i = 0; i < was.n; i++) {
        at[i] = (void *)(uintptr_t)was.at[i];
        copy[i] = constant(q, at[i]) ? at[i]
                  : copy_of(ctx, mem, at[i], was.size[i]);
    }
    chain_move(ctx, mem, &o->q, at, copy, was.n);
    snprintf(o->path, sizeof o->path, "%.95s", ctx->path);
}

/* Keys and values of a pass that are not those of the pass before it. */
static void keep_pass(tt_explain *e, tt_ctx *ctx, const op_call *q, bool cross)
{
    chain *c = &e->c;
    const tt_attention_args *a = &q->attn;
    const size_t n = (size_t)(a->N * a->kv_stride) * sizeof *a->k;
    if (cross && c->others && c->other[c->others - 1].q.attn.N == a->N
        && !memcmp(c->other[c->others - 1].q.attn.k, a->k,
                   n - (size_t)(a->kv_stride - a->H * a->D) * sizeof *a->k))
        return;
    if (c->others == PASSES) {
        tt_arena_free(&c->other[0].mem);
        tt_arena_free(&c->keys[0].mem);
        memmove(c->other, c->other + 1, sizeof *c->other * PASSES);
        memmove(c->keys, c->keys + 1, sizeof *c->keys * PASSES);
        c->others--;
    }
    take_other(ctx, &c->other[c->others], q);
    if (!cross && e->last_keys.q.x && e->last_keys.q.n >= a->N) {
        e->last_keys.q.n = a->N;             /* without those of the queries */
        c->keys[c->others] = e->last_keys;           /* theirs from here on */
        memset(&e->last_keys, 0, sizeof e->last_keys);
    }
    c->others++;
}

/* The weights of a call, NULL: it has none. Those of a sum are a modulation's.
 */
static const void *weights(const tt_explain *e, const op_call *q)
{
    switch (q->kind) {
    case OP_LINEAR: return q->w->data;
    case OP_CONV: return q->conv.w->data;
    case OP_LAYER_NORM: case OP_RMS_NORM: case OP_CHANNEL_NORM: return q->a;
    case OP_ADD:
        return strstr(e->path, "/block.") && e->nth[OP_ADD] == 1 ? q->y : NULL;
    /* made anew for every prompt: told by its place */
    case OP_ATTENTION:
        return q->attn.rel_bias ? e->nth + e->nth[OP_ATTENTION] : NULL;
    default: return NULL;
    }
}

static char module_of(const char *path)
{
    return !strncmp(path, "text", 4) ? 't' : !strncmp(path, "vae", 3) ? 'v'
                                                                       : 'd';
}

/* Where the weights of a call are in chain.like; -1: it has none. Those of one
 * module alone are kept, for others may not be loaded any more. */
static int keep_like(tt_explain *e, tt_ctx *ctx, const op_call *q)
{
    chain *c = &e->c;
    const void *at = weights(e, q);
    if (!at || module_of(ctx->path) != module_of(e->name)) return -1;
    for (int i = 0; i < c->likes; i++)
        if (c->like[i].at == at) return i;
    if (!c->like)
        c->like = tt_alloc0(ctx, &e->lasting, LIKES_MOST, sizeof *c->like,
                            "weights");
    if (!c->like || c->likes == LIKES_MOST) return -1;
    chain_like *l = &c->like[c->likes];
    const char *block = strstr(ctx->path, "block.");
    *l = (chain_like){.q = *q, .at = at};
    if (q->w) l->w = *q->w, l->q.w = NULL;
    if (q->kind == OP_CONV) l->w = *q->conv.w;
    if (q->attn.rel_bias)
        l->q.attn.rel_bias = copy_of(ctx, &e->lasting, q->attn.rel_bias,
            (size_t)(q->attn.H * (2 * q->attn.N - 1)) * sizeof (tt_real));
    snprintf(l->path, sizeof l->path, "%.40s", block ? block : "");
    if (module_of(ctx->path) == 't')            /* two norms in each block */
        snprintf(l->path, sizeof l->path, "block.%d",
                 (e->nth[OP_RMS_NORM] - 1) / 2);
    return c->likes++;
}

/* Attention of another block in the same pass. */
static void hold_block(tt_explain *e, tt_ctx *ctx, const op_call *q)
{
    chain *c = &e->c;
    const char *block = strstr(e->name, "block.");
    const int64_t n = block ? block - e->name : 0;
    if (!n || strncmp(e->name, ctx->path, (size_t)n)
        || c->blocks == OTHERS_MOST) return;
    take_other(ctx, &c->block[c->blocks++], q);
}

/* Keys that are about to be rotated, and those that were since the first. */
static void keep_keys(tt_explain *e, tt_ctx *ctx, const op_call *q, bool first)
{
    const op_call *was = &e->last_keys.q;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    op_call all = *q;
    if (!first && was->x) {
        const int64_t n = was->n, m = q->n;
        tt_real *x = tt_scratch(ctx, (n + m) * q->c);
        int32_t *pos = tt_alloc(ctx, &ctx->scratch, 3 * (n + m), sizeof *pos,
                                "positions");
        if (ctx->status) return;
        memcpy(x, was->x, (size_t)(n * q->c) * sizeof *x);
        memcpy(x + n * q->c, q->x, (size_t)(m * q->c) * sizeof *x);
        memcpy(pos, was->pos, (size_t)(3 * n) * sizeof *pos);
        memcpy(pos + 3 * n, q->pos, (size_t)(3 * m) * sizeof *pos);
        all.x = x, all.pos = pos, all.n = n + m;
    }
    take_other(ctx, &e->last_keys, &all);
    tt_arena_reset(&ctx->scratch, mark);
}

/* Of a block's own calls, and of other blocks' attention of the same kind. */
static void keep_inputs(tt_explain *e, tt_ctx *ctx, const op_call *q, int nth)
{
    const char *last = strrchr(e->name, '/');
    const bool cross = last && !strcmp(last, "/cross_attn");
    const bool self = last && !strcmp(last, "/self_attn");
    const bool own = same_block(ctx->path, e->name);
    const bool sought = q->kind == OP_ATTENTION && (self || cross)
                        && nth == (cross ? 1 : 0);
    if (sought && !own) hold_block(e, ctx, q);
    if (e->done || !own) return;
    if (q->kind == OP_ROPE && self) keep_keys(e, ctx, q, nth == 0);
    if (sought) keep_pass(e, ctx, q, cross);
}

/* What a call reads may be what theirs read in another. */
static void keep_other(tt_explain *e, tt_ctx *ctx, op_kind kind,
                       const void *args)
{
    op_call q;
    e->like = -1;
    if (e->blind || e->found[0] || (e->done && !e->waiting) || ctx->status)
        return;
    if (strcmp(ctx->path, e->path)) {
        memset(e->nth, 0, sizeof e->nth);
        snprintf(e->path, sizeof e->path, "%s", ctx->path);
    }
    const int nth = e->nth[kind]++;
    const bool here = !strncmp(ctx->path, e->name, strlen(ctx->path));
    call_take(&q, kind, args);
    e->like = keep_like(e, ctx, &q);
    if ((kind != OP_ROPE && kind != OP_ATTENTION)
        || call_cost(&q) > WORK_MOST) return;
    if (kind == OP_ROPE && !e->done && module_of(e->name) == 'd')
        take_other(ctx, &e->c.turn, &q);   /* its table ends with the model */
    if (!here) keep_inputs(e, ctx, &q, nth);
}

/* Are rows of the chain left out? */
static bool part(const tt_explain *e)
{
    return e->of && e->rows < e->of;
}

/* ---- the named tensor ---------------------------------------------------- */

static int64_t work(const chain *c)
{
    int64_t n = 0;
    for (int i = 0; i < c->n; i++) n += call_cost(&c->link[i].q);
    return n;
}

/* It is there: `data` is what ours made of theirs. */
static void end_chain(tt_explain *e, tt_ctx *ctx, tt_dtype type, int rank,
                      const int64_t *dim, const void *data)
{
    int64_t n = 1;
    e->v = (tt_verdict){.rank = rank, .earned = e->earned};
    for (int i = 0; i < rank; i++) n *= e->v.dim[i] = dim[i];
    e->done = true;
    e->c.work = work(&e->c) + 1;
    if (n != e->n || (type != TT_F32 && type != TT_F64)
        || e->c.work > WORK_MOST * (e->arith->bits ? 3 : 1)
        || (part(e) && n % e->of)) return;
    if (part(e)) n = n / e->of * e->rows;
    e->c.ctx = ctx;
    e->c.end_was = data;
    e->c.end_size = type == TT_F64 ? 8 : 4;
    e->c.end_bytes = (size_t)n * e->c.end_size;
    e->c.end = explain_kept(e, ctx, data, e->c.end_bytes);
    e->waiting = e->c.end != NULL;
}

/* When the blocks of its pass are through. */
static void files_explain(tt_explain *e, tt_ctx *ctx)
{
    e->waiting = false;
    const bool named = e->arith->bits
        && hint_chain_class(ctx, &e->c, e->arith->cls, e->got, e->found,
                            sizeof e->found);
    if (!named && !part(e) && e->c.work <= WORK_MOST)
        hint_chain(ctx, &e->c, e->name, e->got, &e->v, e->found,
                   sizeof e->found);
    forget(e);
}

/* Every kind of mistake once, the largest first; none that the arithmetic may
 * make. */
static void keep_unseen(void *user, const char *op, const char *mistake)
{
    static const char *const fair[] = {"kept in", "rounded", "float32", "f16"};
    tt_explain *e = user;
    char line[256], kind[240], all[sizeof e->unseen];
    const char *of = strrchr(e->name, '/');
    const size_t n = strlen(e->unseen);
    for (size_t i = 0; i < sizeof fair / sizeof fair[0]; i++)
        if (strstr(mistake, fair[i])) return;
    snprintf(line, sizeof line, "%.120s (%.40s of ", mistake, op);
    explain_kind(kind, sizeof kind, line);
    *strrchr(kind, '(') = '\0';
    explain_kind(all, sizeof all, e->unseen);
    if (strstr(all, kind)) return;
    snprintf(e->unseen + n, sizeof e->unseen - n, "%s%s%.40s)", n ? "; " : "",
             line, of ? of + 1 : e->name);
}

/* After a pass: what could have been wrong with the first tensor of a kind. */
static void look_blind(tt_explain *e, const char *path, tt_dtype type, int rank,
                       const int64_t *dim, const void *data)
{
    tt_ctx *ctx = e->ctx;
    const char *frame = strstr(path, "vae/frame.");
    if (frame) e->frames = atoi(frame + 10) + 1;
    const tt_entry *t = tt_file_find(e->emul, path);
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    if (!e->c.n || !t || !first_of(e, path, true) || e->budget <= 0) return;
    const double *emul = tt_read_double(ctx, &ctx->scratch, &t->t);
    e->n = tt_tensor_count(&t->t);
    if (emul) end_chain(e, ctx, type, rank, dim, data);
    snprintf(e->name, sizeof e->name, "%s", path);
    e->c.budget = e->budget;
    if (e->waiting)
        hint_blind(ctx, &e->c, &(chain_blind){e->arith, &e->v, emul,
                                              keep_unseen, e});
    e->budget = e->c.budget;
    e->c.tried = 0;
    e->waiting = e->done = false;
    tt_arena_reset(&ctx->scratch, mark);
}

static void explain_look(void *user, const char *path, tt_dtype dtype, int rank,
                         const int64_t *dim, const void *data)
{
    tt_explain *e = user;
    if (e->tap) e->tap(e->tap_user, path, dtype, rank, dim, data);
    if (e->blind) look_blind(e, path, dtype, rank, dim, data);
    else if (!e->done && !strcmp(path, e->name))
        end_chain(e, e->ctx, dtype, rank, dim, data);
    /* several may be shown in a row, of calls that came before the first */
    e->named = true;
    if (e->done && !e->waiting) forget(e);
    else if (e->waiting && !(strstr(e->name, "/block.")
                             && strstr(path, "/block.")))
        files_explain(e, e->ctx);
}

/* Parts of a run set the tap aside and put it back. */
static void explain_listen(tt_explain *e, tt_ctx *ctx)
{
    if (!ctx->tap || ctx->tap == explain_look) return;
    e->ctx = ctx;
    e->tap = ctx->tap;
    e->tap_user = ctx->tap_user;
    ctx->tap = explain_look;
    ctx->tap_user = e;
}

/* ---- the table ----------------------------------------------------------- */

#define RECORD(name, NAME)                                                     \
    static void record_##name(tt_ctx *ctx, const tt_##name##_args *a)          \
    {                                                                          \
        const tt_ops *table = ctx->ops;                                        \
        const tt_ops *ours = tt_ops_class(tt_ops_default(), table->cls);       \
        tt_explain *e = table->self;                                           \
        explain_listen(e, ctx);                                                \
        keep_other(e, ctx, OP_##NAME, a);                                      \
        chain_link *l = begin_link(e, ctx, OP_##NAME, a);                      \
        ctx->ops = ours;                                                       \
        ours->name(ctx, a);                                                    \
        ctx->ops = table;                                                      \
        end_link(e, ctx, l);                                                   \
        keep_near(e, ctx, OP_##NAME, a);                                       \
    }
TT_OPS(RECORD)

/* Theirs of that name, [n]. */
static void read_theirs(tt_ctx *ctx, tt_explain *e, const char *theirs)
{
    tt_file *f = NULL;
    if (tt_file_open(ctx, &f, theirs)) return;
    const tt_entry *t = tt_file_find(f, e->name);
    if (t && tt_dtype_is_real(t->t.dtype))
        e->got = tt_read_double(ctx, &e->lasting, &t->t);
    if (e->got) e->n = tt_tensor_count(&t->t);
    tt_file_close(f);
}

static tt_explain *explain_new(tt_ctx *ctx, const tt_report *r)
{
    tt_explain *e = calloc(1, sizeof *e);
    if (!e) {
        tt_fail(ctx, TT_ENOMEM, "no memory to explain a tensor");
        return NULL;
    }
    e->arith = r->arith;
    e->table = *tt_ops_default();
    e->table.self = e;
    e->table.of_class = e->of_class;
    e->table.packed = NULL;
#define ENTRY(name, NAME) e->table.name = record_##name;
    TT_OPS(ENTRY)
    e->plain = e->table;
    e->table.cls = arith_ours(r->arith)->cls;
    e->of_class[TT_CLASS_F32] = &e->plain;
    e->of_class[e->table.cls] = &e->table;
    return e;
}

tt_status tt_explain_pass(tt_ctx *ctx, tt_explain **out, const tt_report *r,
                          const char *emul)
{
    *out = NULL;
    TT_TRY(ctx->status);
    tt_explain *e = explain_new(ctx, r);
    if (!e || tt_file_open(ctx, &e->emul, emul)) {
        tt_explain_close(e, NULL);
        return ctx->status;
    }
    e->blind = true;
    e->budget = BLIND_MOST;
    *out = e;
    return TT_OK;
}

tt_status tt_explain_open(tt_ctx *ctx, tt_explain **out, const tt_report *r,
                          const tt_verdict *v, const char *theirs)
{
    *out = NULL;
    TT_TRY(ctx->status);
    if (!v || v->outcome != TT_MISMATCH || v->m.n < 8
        || strstr(v->hint, "TAME: ")) return TT_OK;       /* known already */
    tt_explain *e = explain_new(ctx, r);
    if (!e) return ctx->status;
    snprintf(e->name, sizeof e->name, "%s", v->path);
    e->earned = v->earned;
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
    if (r && !e->blind) report_say_why(r, e->name, e->found, e->c.tried);
    if (r && e->blind && (*e->unseen || e->frames)) {
        const size_t n = strlen(e->unseen);
        if (e->frames && e->frames < 4)
            snprintf(e->unseen + n, sizeof e->unseen - n, "%sany of the steady "
                     "state of the VAE (needs 4 latent frames)", n ? "; " : "");
        if (!*e->unseen) *e->unseen = '-';
        tt_report_fact(r, "mistakes that would pass", "%s", e->unseen);
        size_t few = strlen(e->unseen);
        for (; few > 600 || (few && e->unseen[few] && e->unseen[few] != ';');)
            few--;
        tt_report_note(r, "with these inputs as %s these mistakes would pass: "
                       "%.*s%s", e->arith->name, (int)few, e->unseen,
                       e->unseen[few] ? " ... (all: \"would_pass\" of --json)"
                                      : "");
    }
    forget(e);
    for (int i = 0; i < OTHERS_MOST; i++) {
        tt_arena_free(&e->c.other[i].mem);
        tt_arena_free(&e->c.keys[i].mem);
        tt_arena_free(&e->c.block[i].mem);
    }
    for (int i = 0; i <= NEAR_MOST; i++) tt_arena_free(&e->c.near[i].mem);
    tt_arena_free(&e->c.turn.mem);
    tt_arena_free(&e->last_keys.mem);
    tt_arena_free(&e->lasting);
    if (e->emul) tt_file_close(e->emul);
    free(e);
}
