/* candidate.c: see candidate.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "validate/operators/candidate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "validate/isolate/watch.h"
#include "validate/operators/sample.h"

enum { CANARIES = 1 << 16 };

/* A NaN and its neighbour: what is left untouched is not an older right
 * result, and a sum on top of it is wrong. The second call finds other ones. */
static const uint8_t garbage[2] = {0xff, 0xc3};

/* An output between canaries, and these between memory of no use at all. */
typedef struct guarded {
    uint8_t *map, *raw;
    size_t mapped, usable;   /* bytes of either                               */
    int64_t pad, bytes;      /* canaries before it; the output                */
} guarded;

static bool guard(tt_ctx *ctx, const candidate_call *c, const op_call *q,
                  guarded *g)
{
    int64_t dim[TT_MAX_RANK];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const int64_t n = call_count(q), bytes = (int64_t)call_out_bytes(q);
    call_shape(q, dim);
    const int64_t row = dim[0] ? bytes / dim[0] : 0;
    const int64_t odd = c->odd && n ? bytes / n : 0;
    g->pad = (row + CANARIES) / 64 * 64 + odd;
    g->bytes = bytes;
    g->usable = ((size_t)(bytes + 2 * g->pad) + page - 1) / page * page;
    g->mapped = g->usable + 2 * WATCH_MARGIN;
    g->map = mmap(NULL, g->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                  0);
    if (g->map != MAP_FAILED) {
        g->raw = g->map + WATCH_MARGIN;
        if (!mprotect(g->raw, g->usable, PROT_READ | PROT_WRITE)) return true;
        munmap(g->map, g->mapped);
    }
    tt_fail(ctx, TT_ENOMEM, "no memory for a guarded output");
    return false;
}

/* Are all n bytes that one? */
static bool all_are(const uint8_t *at, int64_t n, uint8_t canary)
{
    return n < 1 || (*at == canary && !memcmp(at, at + 1, (size_t)(n - 1)));
}

static bool intact(const guarded *g, uint8_t canary)
{
    const int64_t tail = g->pad + g->bytes;
    return all_are(g->raw, g->pad, canary)
           && all_are(g->raw + tail, (int64_t)g->usable - tail, canary);
}

/* One call into g; says in c->why what went wrong. False: ctx has failed. */
static bool candidate_once(tt_ctx *ctx, candidate_call *c, const op_call *q,
                           guarded *g, uint8_t canary)
{
    const bool first = canary == garbage[0];
    op_spans in;
    memset(g->raw, canary, g->usable);
    call_inputs(q, &in);
    const uint64_t before = spans_digest(&in);
    watch_output(c->watch, g->raw + g->pad, g->bytes);
    watch_place(c->watch, c->path);
    call_run(ctx, c->ops, q, g->raw + g->pad);
    if (ctx->status == TT_EINTR || ctx->status == TT_ENOMEM) return false;
    if (!intact(g, canary)) {
        snprintf(c->why, sizeof c->why, "wrote outside its output");
    } else if (spans_digest(&in) != before) {
        snprintf(c->why, sizeof c->why, "changed its inputs");
    } else if (ctx->status) {
        c->unsupported = first && ctx->status == TT_EUNSUPPORTED;
        snprintf(c->why, sizeof c->why, "%s%.150s", c->unsupported ? ""
                 : first ? "gave up: " : "gave up at the second call: ",
                 *tt_message(ctx) ? tt_message(ctx) : "it says no reason");
    }
    tt_clear(ctx);
    return true;
}

/* One call; a copy of its result in scratch, NULL when ctx has failed. */
static void *result(tt_ctx *ctx, candidate_call *c, const op_call *q,
                    uint8_t canary)
{
    guarded g = {0};
    if (ctx->status || !guard(ctx, c, q, &g)) return NULL;
    void *copy = NULL;
    if (candidate_once(ctx, c, q, &g, canary))
        copy = tt_alloc(ctx, &ctx->scratch, g.bytes, 1, "a result");
    if (copy) memcpy(copy, g.raw + g.pad, (size_t)g.bytes);
    munmap(g.map, g.mapped);
    return copy;
}

/* The largest distance. */
static double farthest(const double *x, const double *ours, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, value_distance(x[i], ours[i]));
    return most;
}

/* False: ctx has failed by itself. */
static bool candidate_run(tt_ctx *ctx, candidate_call *c, const op_call *q,
                          const double *ours)
{
    c->why[0] = '\0';
    c->unsteady = c->unsupported = false;
    const void *first = result(ctx, c, q, garbage[0]);
    if (!first) return false;
    c->got = call_widen(ctx, q, first);
    if (!c->twice || *c->why || ctx->status) return !ctx->status;
    const int before = ctx->nthreads;
    if (c->threads) ctx->nthreads = c->threads;
    const void *second = result(ctx, c, q, garbage[1]);
    ctx->nthreads = before;
    if (!second) return false;
    if (*c->why || !memcmp(first, second, call_out_bytes(q)))
        return !ctx->status;
    double *x = call_widen(ctx, q, second);
    if (ctx->status) return false;
    const int64_t n = call_count(q);
    /* two NaN of other bits are the same answer */
    c->unsteady = farthest(x, c->got, n) > 0;
    if (farthest(x, ours, n) > farthest(c->got, ours, n)) c->got = x;
    return true;
}

/* Of a mismatch; got and want are of q. */
static void candidate_hint(tt_ctx *ctx, const candidate_call *c,
                           const op_call *q, const tt_arith *arith,
                           const double *got, const double *want, tt_verdict *v)
{
    hint_call call = {ctx, q, arith->cls, got, v->hint, sizeof v->hint};
    if (arith->bits ? !hint_classes(&call)
                    : !*v->hint && !hint_is_cut(ctx, q, arith, got, v)
                      && !hint_allowed(ctx, q, arith, got, v, false))
        hint_find(ctx, q, arith, got, want, v);
    /* one place is the weakest of explanations */
    if (!arith->bits && (!*v->hint || !strncmp(v->hint, "only ", 5)))
        hint_allowed(ctx, q, arith, got, v, true);
    const size_t used = strlen(v->hint);
    if (c->unsteady)
        snprintf(v->hint + used, sizeof v->hint - used, "%sanother result at a "
                 "second call with the same inputs", used ? "; " : "");
}

/* The rows that are checked against float64; of bits all, which need none. */
static void check_rows(tt_ctx *ctx, candidate_call *c, sample *part,
                       const tt_arith *arith, const double *ours, tt_verdict *v)
{
    const int64_t n = part->rows * part->width;
    double *want = tt_alloc(ctx, &ctx->scratch, n, sizeof *want, "oracle");
    double *e = tt_alloc(ctx, &ctx->scratch, n, sizeof *e, "emulation");
    if (ctx->status) return;
    c->rows = sample_cut(ctx, part, c->got);
    c->want = want;
    sample_compute(ctx, part, arith, NULL, NULL, want);
    sample_compute(ctx, part, arith, want, sample_cut(ctx, part, ours), e);
    v->dim[0] = part->rows;
    if (!ctx->status)
        tt_verdict_check(v, arith, c->rows, want, e, n, TT_OF_CALL);
}

/* It did what no operator may, or nothing. */
static void check_conduct(const candidate_call *c, tt_verdict *v)
{
    v->outcome = c->unsupported ? TT_UNSUPPORTED : TT_MISMATCH;
    if (c->unsupported)               /* nothing was measured */
        v->m = (tt_metrics){0}, v->ratio = v->earned = 0,
        v->bits = TT_BITS_UNKNOWN;
    snprintf(v->hint, sizeof v->hint, "%s", c->why);
}

bool candidate_check(tt_ctx *ctx, candidate_call *c, const op_call *q,
                     const tt_arith *arith, const double *ours, tt_verdict *v)
{
    sample part = {.part = *q};
    *v = (tt_verdict){.op = op_name(q->kind)};
    snprintf(v->path, sizeof v->path, "%s", c->path);
    if (!candidate_run(ctx, c, q, ours)) return false;
    c->tally->calls++;
    c->tally->twice += c->twice;
    c->tally->unsteady += c->unsteady;
    c->tally->refused += c->unsupported;
    v->rank = call_shape(q, v->dim);
    c->rows = c->got;
    c->want = ours;
    if (!arith->bits) {
        sample_take(ctx, &part, q, c->got, ours, c->seed);
        check_rows(ctx, c, &part, arith, ours, v);
    }
    if (ctx->status) return false;
    c->sampled = part.row != NULL;
    tt_verdict_bits(v, arith, c->got, ours, call_count(q));
    if (c->cuts && !part.row && v->outcome == TT_PASS)
        hint_is_cut(ctx, q, arith, c->rows, v);
    if (*c->why) {
        check_conduct(c, v);
    } else if (v->outcome == TT_MISMATCH && c->hint) {
        const int64_t worst = part.width ? v->m.worst / part.width : 0;
        const int64_t rows = v->dim[0];
        const bool one = sample_single(ctx, &part, worst);
        const int64_t at = one ? worst * part.width : 0;
        if (one) v->dim[0] = 1;
        candidate_hint(ctx, c, &part.part, arith, c->rows + at, c->want + at,
                       v);
        v->dim[0] = rows;
    }
    if (part.call) sample_place(&part, v);
    return !ctx->status;
}

void candidate_note(tt_report *r, op_kind op, const candidate_tally *t,
                    const char *calls)
{
    if (t->refused && t->refused == t->calls)
        tt_report_note(r, "%s: unsupported, it computed none of %lld %s",
                       op_name(op), (long long)t->calls, calls);
    if (t->unsteady)
        tt_report_note(r, "%s is not reproducible: other bits at a second call "
                       "with the same inputs, in %lld of %lld %s", op_name(op),
                       (long long)t->unsteady, (long long)t->twice, calls);
}
