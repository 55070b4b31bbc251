/* dump.c: two files of named tensors, compared in the order of execution.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   the order is that of the data in our file, because ours are written
 *         as the model runs. The oracle and the emulation are files of the
 *         same names; where one lacks a tensor, `want` and its rounding serve.
 * Holds   nothing here knows a model, except that names begin with
 *         chunk.<i>/step.<j> and that GRAB's picks may tie (selection.c).
 * Next    selection.c, points.c */
#include "validate/dump.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/call.h"

static void compare_all(dump_run *d, const tt_entry *const *order);
static void compare_one(dump_run *d, const tt_entry *ours);
static void say_coverage(dump_run *d, const tt_entry *const *order);
static void find_trace_tie(dump_run *d);
static void end_point(dump_run *d);

/* ---- files --------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const tt_entry *x = *(const tt_entry *const *)a;
    const tt_entry *y = *(const tt_entry *const *)b;
    const uintptr_t p = (uintptr_t)x->t.data, q = (uintptr_t)y->t.data;
    if (p != q) return p < q ? -1 : 1;
    return x < y ? -1 : x > y;   /* empty tensors: as listed */
}

static const tt_entry **in_order(tt_ctx *ctx, const tt_file *f)
{
    const int64_t n = tt_file_count(f);
    const tt_entry **order = tt_alloc(ctx, &ctx->scratch, n, sizeof *order,
                                      "a list of tensors");
    for (int64_t i = 0; order && i < n; i++) order[i] = tt_file_entry(f, i);
    if (order && n > 1) qsort(order, (size_t)n, sizeof *order, by_place);
    return order;
}

static tt_status open_files(dump_run *d)
{
    const tt_dump_options *o = d->opt;
    TT_TRY(tt_file_open(d->ctx, &d->f.want, o->want));
    TT_TRY(tt_file_open(d->ctx, &d->f.got, o->got));
    if (o->oracle) TT_TRY(tt_file_open(d->ctx, &d->f.oracle, o->oracle));
    if (o->emul) TT_TRY(tt_file_open(d->ctx, &d->f.emul, o->emul));
    return TT_OK;
}

static void close_files(dump_files *f)
{
    tt_file *all[] = {f->got, f->want, f->oracle, f->emul};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]) tt_file_close(all[i]);
}

tt_status tt_dump_compare(tt_ctx *ctx, tt_report *r, const tt_dump_options *o)
{
    TT_TRY(ctx->status);
    dump_run d = {.ctx = ctx, .report = r, .opt = o, .tie_round = -1,
                  .tie_chunk = -1, .chunks = -1, .rounds = -1};
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    if (!open_files(&d)) {
        const tt_entry **order = in_order(ctx, d.f.want);
        if (order) compare_all(&d, order);
    }
    close_files(&d.f);
    tt_arena_reset(&ctx->scratch, mark);
    return ctx->status;
}

static bool chosen(const dump_run *d, const char *name)
{
    return !d->opt->filter || !fnmatch(d->opt->filter, name, 0);
}

/* Names they have and we have not: a difference, or a line. */
static void compare_extra(dump_run *d)
{
    int64_t extra = 0;
    char first[200] = "";
    const tt_entry **order = in_order(d->ctx, d->f.got);
    for (int64_t i = 0; order && i < tt_file_count(d->f.got); i++) {
        const tt_entry *e = order[i];
        tt_verdict v = {.op = "", .outcome = TT_MISSING};
        if (!chosen(d, e->name) || tt_file_find(d->f.want, e->name)) continue;
        if (!extra++) snprintf(first, sizeof first, "%s", e->name);
        if (!d->opt->extra_fails || d->opt->quiet) continue;
        snprintf(v.path, sizeof v.path, "%s%s",
                 d->opt->prefix ? d->opt->prefix : "", e->name);
        snprintf(v.hint, sizeof v.hint, "only in %.150s", d->opt->got);
        v.rank = e->t.rank;
        memcpy(v.dim, e->t.dim, sizeof v.dim);
        tt_report_add(d->report, &v, NULL, NULL);
    }
    if (extra && !d->opt->extra_fails && !d->opt->quiet)
        tt_report_note(d->report, "%s has %" PRId64 " tensors of other names, "
                       "the first %s; they were not compared", d->opt->got,
                       extra, first);
}

static void compare_all(dump_run *d, const tt_entry *const *order)
{
    const tt_entry *ends = tt_file_find(d->f.want, "ends");
    const tt_entry *keep = tt_file_find(d->f.want, "grab_keep");
    if (ends && ends->t.rank == 2) d->chunks = ends->t.dim[0];
    if (keep && keep->t.rank == 2) d->rounds = keep->t.dim[0];
    find_trace_tie(d);
    for (int64_t i = 0; i < tt_file_count(d->f.want) && !d->ctx->status; i++) {
        const tt_arena_mark mark = tt_arena_here(&d->ctx->scratch);
        if (chosen(d, order[i]->name)) compare_one(d, order[i]);
        tt_arena_reset(&d->ctx->scratch, mark);
    }
    end_point(d);
    if (d->ctx->status) return;
    compare_extra(d);
    if (!d->opt->quiet) say_coverage(d, order);
}

/* ---- names --------------------------------------------------------------- */

/* "chunk.3/step.1/x0" -> "chunk.#/step.#/x0" */
static void kind_of(char *out, size_t size, const char *name)
{
    size_t n = 0;
    for (; *name && n + 1 < size; name++) {
        const bool digit = *name >= '0' && *name <= '9';
        if (!digit) out[n++] = *name;
        else if (!n || out[n - 1] != '#') out[n++] = '#';
    }
    out[n] = '\0';
}

/* Do they have any tensor of this kind? */
static bool knows_kind(const dump_run *d, const char *name)
{
    char mine[256], theirs[256];
    kind_of(mine, sizeof mine, name);
    for (int64_t i = 0; i < tt_file_count(d->f.got); i++) {
        kind_of(theirs, sizeof theirs, tt_file_entry(d->f.got, i)->name);
        if (!strcmp(mine, theirs)) return true;
    }
    return false;
}

/* n of m, and the kinds that were not among them. */
static void say_coverage(dump_run *d, const tt_entry *const *order)
{
    char list[700] = "", last[256] = "";
    int kinds = 0;
    const char *prefix = d->opt->prefix ? d->opt->prefix : "";
    if (d->unjudged)
        tt_report_note(d->report, "%s%s%" PRId64 " tensors have no float64 "
                       "reference and were not judged", prefix,
                       *prefix ? " " : "", d->unjudged);
    if (*prefix && d->common == d->ours) return; /* one of many: only gaps   */
    for (int64_t i = 0; i < tt_file_count(d->f.want); i++) {
        char kind[256];
        const char *name = order[i]->name;
        if (!chosen(d, name) || tt_file_find(d->f.got, name)) continue;
        kind_of(kind, sizeof kind, name);
        if (!strcmp(kind, last)) continue;
        snprintf(last, sizeof last, "%s", kind);
        if (strstr(list, kind)) continue;
        const size_t used = strlen(list);
        if (kinds++ < 12)
            snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                     kind);
    }
    tt_report_note(d->report, "%s%scoverage: %" PRId64 " of %" PRId64 " named "
                   "tensors of ours are in %s%s%s%s", prefix,
                   *prefix ? " " : "", d->common, d->ours, d->opt->got,
                   kinds ? "; without " : "", list, kinds > 12 ? ", ..." : "");
    if (d->behind_tie)
        tt_report_note(d->report, "%" PRId64 " tensors differ after the tie at "
                       "%s and could not be judged from files: a run of ours "
                       "with theirs injected can (validate --dump FILE -- "
                       "generate ...)", d->behind_tie, d->tie);
}

/* ---- shapes -------------------------------------------------------------- */

/* Does `one` become `b` by taking its axes [0, *i] from the back together? */
static bool merge(int64_t one, int64_t b, const int64_t *dim, int *i)
{
    while (one < b && *i >= 0)
        if (!tt_checked_mul(&one, one, dim[(*i)--])) return false;
    return one == b;
}

bool tt_shape_fits(const tt_tensor *t, int rank, const int64_t *dim)
{
    int i = t->rank - 1, k = rank - 1;
    while (i >= 0 || k >= 0) {
        while (i >= 0 && t->dim[i] == 1) i--;
        while (k >= 0 && dim[k] == 1) k--;
        if (i < 0 || k < 0) return i == k;
        const int64_t a = t->dim[i--], b = dim[k--];
        if (a < b ? !merge(a, b, t->dim, &i) : !merge(b, a, dim, &k))
            return false;
        if (a == 0 || b == 0) return a == b;
    }
    return true;
}

static bool same_shape(const tt_tensor *t, const tt_tensor *u)
{
    if (t->rank != u->rank) return false;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] != u->dim[i]) return false;
    return true;
}

/* Row length for judging: the last axis, widened while it is short, so that a
 * row's own error means something. */
static int64_t row_length(const tt_verdict *v)
{
    int64_t c = 1;
    for (int i = v->rank - 1; i >= 0 && c < 32; i--) c *= v->dim[i];
    return c > 0 ? c : 1;
}

/* ---- one tensor ---------------------------------------------------------- */

/* Everything about one tensor; the arrays are [n], in scratch. */
typedef struct pair {
    const tt_entry *ours, *theirs;
    double *got, *want, *emul;
    int64_t n;
} pair;

/* NULL when f has no tensor of this name and size. */
static double *read_like(dump_run *d, tt_file *f, const tt_entry *e)
{
    const tt_entry *other = f ? tt_file_find(f, e->name) : NULL;
    if (!other || !tt_dtype_is_real(other->t.dtype)
        || !tt_shape_fits(&other->t, e->t.rank, e->t.dim)) return NULL;
    return tt_read_double(d->ctx, &d->ctx->scratch, &other->t);
}

/* The type a tensor of theirs was rounded to before it was written, as far as
 * the declared arithmetic knows it; F32 when it was not. */
static tt_format rounded_to(const pair *p, const tt_arith *a)
{
    const tt_format f = a->stored != TT_FMT_F32 ? a->stored : a->product;
    for (int64_t i = 0; i < p->n; i++)
        if (isfinite(p->got[i])
            && p->got[i] != (double)tt_format_round(f, (float)p->got[i]))
            return TT_FMT_F32;
    return f;
}

static void round_all(double *x, int64_t n, tt_format f)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)tt_format_round(f, (float)x[i]);
}

static void read_pair(dump_run *d, pair *p)
{
    tt_arena *mem = &d->ctx->scratch;
    const tt_arith *a = d->opt->arith;
    p->n = tt_tensor_count(&p->ours->t);
    p->got = tt_read_double(d->ctx, mem, &p->theirs->t);
    p->want = read_like(d, d->f.oracle, p->ours);
    if (!p->want) p->want = tt_read_double(d->ctx, mem, &p->ours->t);
    if (!a || d->ctx->status) return;
    p->emul = read_like(d, d->f.emul, p->ours);
    const tt_format f = rounded_to(p, a);
    const bool own = p->emul != NULL;
    if (!own) p->emul = tt_read_double(d->ctx, mem, &p->ours->t);
    if (d->ctx->status) return;
    /* A value of ours is float32 already; without a run in the declared
     * arithmetic one rounding to it is all that is known. */
    if (!own && f == TT_FMT_F32)
        round_all(p->emul, p->n, a->stored != TT_FMT_F32 ? a->stored
                                                         : a->product);
    round_all(p->emul, p->n, f);
}

static void set_where(tt_verdict *v)
{
    int64_t at[TT_MAX_RANK], i = v->m.worst;
    size_t used = 1;
    for (int k = v->rank - 1; k >= 0; k--) {
        at[k] = v->dim[k] ? i % v->dim[k] : 0;
        if (v->dim[k]) i /= v->dim[k];
    }
    snprintf(v->where, sizeof v->where, "[");
    for (int k = 0; k < v->rank && used < sizeof v->where; k++)
        used += (size_t)snprintf(v->where + used, sizeof v->where - used,
                                 "%s%" PRId64, k ? ", " : "", at[k]);
    if (used + 1 < sizeof v->where)
        snprintf(v->where + used, sizeof v->where - used, "]");
}

/* The same bytes in both files. */
static bool same_bytes(const pair *p)
{
    const tt_tensor *a = &p->theirs->t, *b = &p->ours->t;
    if (a->dtype != b->dtype || !tt_tensor_packed(a) || !tt_tensor_packed(b))
        return false;
    return !p->n || !memcmp(a->data, b->data, (size_t)tt_tensor_bytes(a));
}

/* Every bit: the numbers are equal, -0 is not 0. */
static void judge_exact(tt_verdict *v, const pair *p)
{
    tt_metrics_measure(&v->m, p->got, p->want, p->n);
    int64_t first = -1;
    for (int64_t i = 0; i < p->n && first < 0; i++) {
        const bool nan = isnan(p->got[i]) && isnan(p->want[i]);
        if (!nan && (p->got[i] != p->want[i]
                     || signbit(p->got[i]) != signbit(p->want[i]))) first = i;
    }
    v->outcome = first < 0 ? TT_PASS : TT_MISMATCH;
    v->ratio = first < 0 ? 0 : INFINITY;
    if (first >= 0 && v->m.max_abs == 0 && !v->m.broken) v->m.worst = first;
    set_where(v);
}

static void judge_types(tt_verdict *v, const pair *p)
{
    const tt_tensor *a = &p->theirs->t, *b = &p->ours->t;
    if (v->outcome != TT_PASS || same_bytes(p)) return;
    v->outcome = TT_MISMATCH;
    v->ratio = INFINITY;
    if (a->dtype == b->dtype)
        snprintf(v->hint, sizeof v->hint, "equal as numbers, but other bits");
    else
        snprintf(v->hint, sizeof v->hint, "equal values, but stored as %s "
                 "where %s was expected", tt_dtype_name(a->dtype),
                 tt_dtype_name(b->dtype));
}

/* Rows of a trace up to the tie are comparable; -1: all. */
static int64_t rows_before_tie(const dump_run *d, const tt_verdict *v,
                               const char *name)
{
    if (d->tie_round < 0 || v->rank < 1) return -1;
    if (!strncmp(name, "grab_", 5) && v->dim[0] == d->rounds)
        return d->tie_round;
    return v->dim[0] == d->chunks && d->tie_chunk >= 0 ? d->tie_chunk : 0;
}

/* A difference behind a tie says nothing, except a NaN or infinity: other
 * frames do not make those. */
static void forgive(dump_run *d, tt_verdict *v, const pair *p)
{
    const char *name = p->ours->name;
    if (v->outcome != TT_MISMATCH || !*d->tie || d->opt->injected
        || v->m.broken) return;
    const int64_t strict = d->rounds >= 0 ? rows_before_tie(d, v, name) : 0;
    const int64_t row = v->rank > 0 && v->dim[0] ? p->n / v->dim[0] : p->n;
    for (int64_t i = 0; i < strict * row; i++)
        if (p->got[i] != p->want[i]) return;
    v->outcome = TT_TIE;
    snprintf(v->hint, sizeof v->hint, "not judged: it follows the tie at "
             "%.130s", d->tie);
    d->behind_tie++;
}

static void judge_pair(dump_run *d, tt_verdict *v, const pair *p)
{
    char score[sizeof v->path];
    const bool real = tt_dtype_is_real(p->ours->t.dtype);
    if (!real || !d->opt->arith) {
        judge_exact(v, p);
        if (selection_score_name(score, sizeof score, p->ours->name)
            && v->outcome == TT_MISMATCH)
            selection_judge(d, v, p->ours->name, p->got, p->want, p->n);
        if (!d->opt->arith) judge_types(v, p);
        if (v->outcome == TT_TIE && !*d->tie && !d->opt->injected)
            snprintf(d->tie, sizeof d->tie, "%s", p->ours->name);
        return;
    }
    tt_verdict_judge(v, d->opt->arith, p->got, p->want, p->emul, p->n,
                     row_length(v));
}

static void explain(dump_run *d, tt_verdict *v, const pair *p)
{
    if (v->outcome != TT_MISMATCH || *v->hint || p->n == 0) return;
    const tt_arena_mark mark = tt_arena_here(&d->ctx->scratch);
    char hint[sizeof v->hint] = "";
    if (v->m.broken && v->m.nan + v->m.inf > 0)
        snprintf(v->hint, sizeof v->hint, "%" PRId64 " NaN and %" PRId64
                 " infinite values", v->m.nan, v->m.inf);
    else if (hint_find(d->ctx, NULL, d->opt->arith, p->got, p->want, v->rank,
                       v->dim, v->earned, hint, sizeof hint))
        snprintf(v->hint, sizeof v->hint, "%s", hint);
    else if (!d->opt->arith || !tt_dtype_is_real(p->ours->t.dtype))
        snprintf(v->hint, sizeof v->hint, "%" PRId64 " of %" PRId64 " values "
                 "differ", v->m.differ, p->n);
    tt_arena_reset(&d->ctx->scratch, mark);
}

/* The relative error the declared arithmetic makes. */
static double emulated_error(const pair *p)
{
    double e = 0, w = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double x = p->emul[i] - p->want[i];
        e += x * x;
        w += p->want[i] * p->want[i];
    }
    return w > 0 ? sqrt(e / w) : 0;
}

static void end_point(dump_run *d)
{
    if (!d->point.curve) return;
    d->point.rel_l2 = sqrt(d->point.rel_l2 / (double)d->point_n);
    d->point.earned = sqrt(d->point.earned / (double)d->point_n);
    tt_report_grow(d->report, &d->point);
    d->point.curve = NULL;
}

/* With everything injected errors do not add up: the point of a chunk is the
 * root mean square over its tensors. */
static void grow_injected(dump_run *d, const tt_verdict *v, const pair *p)
{
    int64_t chunk;
    if (sscanf(p->ours->name, "chunk.%" SCNd64 "/", &chunk) != 1) return;
    if (d->point.curve && d->point.chunk != chunk) end_point(d);
    if (!d->point.curve) {
        d->point = (tt_growth){.curve = d->opt->curve, .chunk = chunk};
        d->point_n = 0;
    }
    const double e = emulated_error(p);
    d->point.rel_l2 += v->m.rel_l2 * v->m.rel_l2;
    d->point.earned += e * e;
    d->point_n++;
}

/* chunk.<i>/step.<j>/x0: a point of the curve, unless a later step follows. */
static void grow(dump_run *d, const tt_verdict *v, const pair *p)
{
    int64_t chunk, step;
    int end = 0;
    char next[80];
    const char *name = p->ours->name;
    if (!d->opt->curve || !p->emul || !tt_dtype_is_real(p->ours->t.dtype))
        return;
    if (d->opt->injected) {
        grow_injected(d, v, p);
        return;
    }
    if (sscanf(name, "chunk.%" SCNd64 "/step.%" SCNd64 "/x0%n", &chunk,
                  &step, &end) != 2 || !end || name[end]) return;
    snprintf(next, sizeof next, "chunk.%" PRId64 "/step.%" PRId64 "/x0", chunk,
             step + 1);
    if (tt_file_find(d->f.got, next) && tt_file_find(d->f.want, next)) return;
    tt_report_grow(d->report, &(tt_growth){
        .curve = d->opt->curve, .chunk = chunk, .rel_l2 = v->m.rel_l2,
        .earned = emulated_error(p)});
}

/* Nothing says how far off this tensor may be: `want` is also the emulation,
 * and the oracle lacks it. */
static bool unjudgeable(const dump_run *d, const tt_entry *ours)
{
    const tt_dump_options *o = d->opt;
    return o->arith && tt_dtype_is_real(ours->t.dtype) && o->emul
        && !strcmp(o->emul, o->want)
        && (!d->f.oracle || !tt_file_find(d->f.oracle, ours->name));
}

static void compare_values(dump_run *d, tt_verdict *v, pair *p)
{
    if (unjudgeable(d, p->ours)) {
        d->unjudged++;
        return;
    }
    read_pair(d, p);
    if (d->ctx->status) return;
    judge_pair(d, v, p);
    forgive(d, v, p);
    grow(d, v, p);
    if (d->opt->quiet) return;
    explain(d, v, p);
    if (d->opt->injected && v->outcome == TT_MISMATCH && *d->since
        && strlen(v->hint) + strlen(d->since) + 24 < sizeof v->hint)
        snprintf(v->hint + strlen(v->hint), sizeof v->hint - strlen(v->hint),
                 "%sgiven theirs up to %s", *v->hint ? "; " : "", d->since);
    tt_report_add(d->report, v, p->got, p->want);
}

/* Operators between the latest tensor of theirs and this one. */
static const char *segment(dump_run *d, const char *name)
{
    const char *own = tt_tap_operators(name);
    const size_t used = strlen(d->between);
    if (*own && !strstr(d->between, own))
        snprintf(d->between + used, sizeof d->between - used, "%s%s",
                 used ? "; " : "", own);
    return d->between;
}

static void compare_one(dump_run *d, const tt_entry *ours)
{
    char shape[160];
    pair p = {.ours = ours, .theirs = tt_file_find(d->f.got, ours->name)};
    tt_verdict v = {.op = segment(d, ours->name), .outcome = TT_PASS,
                    .rank = ours->t.rank};
    memcpy(v.dim, ours->t.dim, sizeof v.dim);
    snprintf(v.path, sizeof v.path, "%s%s",
             d->opt->prefix ? d->opt->prefix : "", ours->name);
    if (d->opt->quiet && !strstr(ours->name, "/x0")) return;
    d->ours++;
    d->common += p.theirs != NULL;
    if (!p.theirs) {
        if (d->opt->partial && !knows_kind(d, ours->name)) return;
        v.outcome = TT_MISSING;
        snprintf(v.hint, sizeof v.hint, "not in %.160s", d->opt->got);
    } else if (d->opt->arith
               ? !tt_shape_fits(&p.theirs->t, v.rank, v.dim)
                 || tt_dtype_is_real(p.theirs->t.dtype)
                    != tt_dtype_is_real(ours->t.dtype)
               : !same_shape(&p.theirs->t, &ours->t)) {
        v.outcome = TT_MISSHAPEN;
        snprintf(v.hint, sizeof v.hint, "%s %s, expected %s",
                 tt_dtype_name(p.theirs->t.dtype),
                 tt_shape_string(shape, sizeof shape, p.theirs->t.rank,
                                 p.theirs->t.dim),
                 tt_dtype_name(ours->t.dtype));
    } else {
        compare_values(d, &v, &p);
        snprintf(d->since, sizeof d->since, "%s", ours->name);
        d->between[0] = '\0';
        return;
    }
    if (!d->opt->quiet) tt_report_add(d->report, &v, NULL, NULL);
}

/* ---- traces -------------------------------------------------------------- */

/* In a trace what follows from a pick stands before it: look for a tie first.*/
static void find_trace_tie(dump_run *d)
{
    const tt_entry *ours = tt_file_find(d->f.want, "grab_keep");
    pair p = {.ours = ours, .theirs = tt_file_find(d->f.got, "grab_keep")};
    if (d->rounds < 0 || !p.theirs || !same_shape(&p.theirs->t, &ours->t)
        || !d->opt->arith) return;
    tt_verdict v = {.rank = ours->t.rank};
    memcpy(v.dim, ours->t.dim, sizeof v.dim);
    const tt_arena_mark mark = tt_arena_here(&d->ctx->scratch);
    read_pair(d, &p);
    if (!d->ctx->status) {
        selection_judge(d, &v, ours->name, p.got, p.want, p.n);
        if (v.outcome == TT_TIE)
            snprintf(d->tie, sizeof d->tie, "round %" PRId64 " of grab_keep",
                     d->tie_round);
        else
            d->tie_round = d->tie_chunk = -1;
    }
    tt_arena_reset(&d->ctx->scratch, mark);
}
