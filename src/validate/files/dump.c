/* dump.c: two files of named tensors, compared in the order of execution.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   the order is that of the data in our file, because ours are written
 *         as the model runs. The oracle and the emulation are files of the
 *         same names; where one lacks a tensor, `want` and its rounding serve.
 * Holds   nothing here knows a model, except that names begin with
 *         chunk.<i>/step.<j> and that GRAB's picks may tie (history.c).
 * Next    pair.c, history.c, points.c */
#include "validate/files/dump.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/operators/call.h"
#include "validate/report/report.h"

static void compare_all(dump_run *d, const tt_entry *const *order);
static void compare_one(dump_run *d, const tt_entry *ours);
static void say_coverage(dump_run *d, const tt_entry *const *order);
static void list_kinds(dump_run *d);
static void find_last(dump_run *d);

/* ---- files --------------------------------------------------------------- */

static int dump_by_place(const void *a, const void *b)
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
    if (order && n > 1) qsort(order, (size_t)n, sizeof *order, dump_by_place);
    return order;
}

static tt_status dump_open_files(dump_run *d)
{
    const tt_dump_options *o = d->opt;
    TT_TRY(tt_file_open(d->ctx, &d->f.want, o->want));
    TT_TRY(tt_file_open(d->ctx, &d->f.got, o->got));
    if (!d->limits) return TT_OK;
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
    const bool bits = o->arith && o->arith->bits;
    dump_run d = {.ctx = ctx, .report = r, .opt = o,
                  .limits = bits ? NULL : o->arith};
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    if (r && o->injected) r->apart = true;
    if (!dump_open_files(&d)) {
        const tt_entry **order = in_order(ctx, d.f.want);
        if (order) compare_all(&d, order);
    }
    close_files(&d.f);
    tt_arena_reset(&ctx->scratch, mark);
    return ctx->status;
}

static bool chosen(const dump_run *d, const char *name)
{
    return tt_name_chosen(d->opt->filter, name);
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
    if (d->opt->partial) list_kinds(d);
    find_last(d);
    for (int64_t i = 0; i < tt_file_count(d->f.want) && !d->ctx->status; i++) {
        const tt_arena_mark mark = tt_arena_here(&d->ctx->scratch);
        history_watch(d, order[i]);
        if (chosen(d, order[i]->name)) compare_one(d, order[i]);
        tt_arena_reset(&d->ctx->scratch, mark);
    }
    if (d->ctx->status) return;
    compare_extra(d);
    if (!d->opt->quiet && !d->opt->same_run) say_coverage(d, order);
}

/* ---- names --------------------------------------------------------------- */

/* The number at s, and *end after its digits; -1 when there is none. More than
 * 2^31 - 1 counts as none: whoever goes on from it may add to it. */
static int64_t dump_number(const char *s, const char **end)
{
    int64_t n = 0;
    *end = s;
    while (**end >= '0' && **end <= '9' && n <= INT32_MAX)
        n = 10 * n + (*(*end)++ - '0');
    return *end > s && n <= INT32_MAX ? n : -1;
}

place place_of(const char *name)
{
    static const char *const scope[] = {"chunk.", "step.", "block.", "cache.",
                                        "admit.", "vae/frame."};
    place p = {-1, -1, -1, -1, -1, -1, name};
    int64_t *const number[] = {&p.chunk, &p.step, &p.block, &p.cache, &p.admit,
                               &p.vae};
    for (int i = 0; i < 6; i++) {
        const char *end;
        const size_t n = strlen(scope[i]);
        if (strncmp(p.last, scope[i], n)) continue;
        const int64_t x = dump_number(p.last + n, &end);
        if (x < 0 || *end != '/') continue;
        *number[i] = x;
        p.last = end + 1;
        i = -1;                /* any of them may come next */
    }
    return p;
}

/* "chunk.3/step.1/x0" -> "chunk.#/step.#/x0" */
static void kind_of(char *out, size_t size, const char *name)
{
    size_t n = 0;
    while (*name && n + 2 < size) {
        const bool dot = *name == '.';
        out[n++] = *name++;
        if (!dot || *name < '0' || *name > '9') continue;
        out[n++] = '#';
        name += strspn(name, "0123456789");
    }
    out[n] = '\0';
}

static int dump_by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The kinds of all their tensors, sorted, in scratch. */
static void list_kinds(dump_run *d)
{
    char kind[256];
    const int64_t n = tt_file_count(d->f.got);
    d->kind = tt_alloc(d->ctx, &d->ctx->scratch, n, sizeof *d->kind,
                       "a list of names");
    for (int64_t i = 0; i < n && !d->ctx->status; i++) {
        kind_of(kind, sizeof kind, tt_file_entry(d->f.got, i)->name);
        d->kind[i] = tt_strdup(d->ctx, &d->ctx->scratch, kind);
    }
    if (!d->ctx->status && n > 1)
        qsort(d->kind, (size_t)n, sizeof *d->kind, dump_by_text);
}

/* Do they have any tensor of this kind? */
static bool knows_kind(const dump_run *d, const char *name)
{
    char kind[256];
    const char *key = kind;
    const int64_t n = tt_file_count(d->f.got);
    kind_of(kind, sizeof kind, name);
    return n && bsearch(&key, d->kind, (size_t)n, sizeof *d->kind,
                        dump_by_text);
}

/* Of passes that are there as a whole: a dump of ours may be a selection. */
static void find_last(dump_run *d)
{
    d->last_chunk = d->last_step = 0;
    for (int64_t i = 0; i < tt_file_count(d->f.want); i++) {
        const place p = place_of(tt_file_entry(d->f.want, i)->name);
        if (strcmp(p.last, "tokens")) continue;
        if (p.chunk > d->last_chunk) d->last_chunk = p.chunk;
        if (p.step > d->last_step) d->last_step = p.step;
    }
}

/* What nothing reads, so that a program may leave it out: what follows the
 * blocks of a clean pass, and all of the last chunk's. */
static bool is_unread(const dump_run *d, const char *name)
{
    const place p = place_of(name);
    if (!d->last_step || d->opt->filter) return false;
    if (p.step < 0) return p.chunk == d->last_chunk && p.cache >= 0;
    return p.step == d->last_step
        && (p.chunk == d->last_chunk || !strcmp(p.last, "head")
            || !strcmp(p.last, "flow") || !strcmp(p.last, "x0"));
}

enum { KINDS_SAID = 12 };

/* The kinds of ours that `got` lacks, in `list`; returns how many. */
static int list_lacking(char *list, size_t size, const dump_run *d,
                        const tt_entry *const *order)
{
    char last[256] = "";
    int kinds = 0;
    list[0] = '\0';
    for (int64_t i = 0; i < tt_file_count(d->f.want); i++) {
        char kind[256];
        const char *name = order[i]->name;
        if (!chosen(d, name) || tt_file_find(d->f.got, name)) continue;
        kind_of(kind, sizeof kind, name);
        if (!strcmp(kind, last)) continue;
        snprintf(last, sizeof last, "%s", kind);
        if (strstr(list, kind)) continue;
        const size_t used = strlen(list);
        if (kinds++ < KINDS_SAID)
            snprintf(list + used, size - used, "%s%s", used ? ", " : "", kind);
    }
    return kinds;
}

/* n of m, and the kinds that were not among them. */
static void say_coverage(dump_run *d, const tt_entry *const *order)
{
    char list[700];
    const char *prefix = d->opt->prefix ? d->opt->prefix : "";
    if (*prefix && d->common == d->ours) return; /* one of many: only gaps   */
    const int kinds = list_lacking(list, sizeof list, d, order);
    tt_report_note(d->report, "%s%scoverage: %" PRId64 " of %" PRId64 " named "
                   "tensors of ours are in %s%s%s%s", prefix,
                   *prefix ? " " : "", d->common, d->ours, d->opt->got,
                   kinds ? "; without " : "", list,
                   kinds > KINDS_SAID ? ", ..." : "");
    if (d->missing && !d->opt->extra_fails && !*prefix)
        tt_report_note(d->report, "%" PRId64 " tensors are missing: %s--filter "
                       "NAMES compares those that match alone", d->missing,
                       d->opt->partial ? "theirs has others of their kinds; "
                       : "--partial leaves out kinds that theirs has none of, "
                       );
    if (*d->of[RUN_EXCUSED].name)
        tt_report_note(d->report, "a pick of frames is a tie, at %s: what it "
                       "reaches and differs is not checked from files, but in "
                       "a run of ours with theirs injected (validate --dump "
                       "FILE -- generate ...)", d->of[RUN_EXCUSED].name);
    if (*d->of[RUN_EMULATED].name)
        tt_report_note(d->report, "our run in the declared arithmetic picks "
                       "other frames from %s on: no limit is known for what "
                       "that reaches", d->of[RUN_EMULATED].name);
    if (d->blind)
        tt_report_note(d->report, "%s does not say which frames were picked "
                       "(grab.keep): a tie cannot be told from a mistake",
                       d->opt->got);
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

/* ---- one name ------------------------------------------------------------ */

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
    char shape[160], wanted[160];
    const tt_entry *theirs = tt_file_find(d->f.got, ours->name);
    tt_verdict v = {.op = segment(d, ours->name), .outcome = TT_PASS,
                    .rank = ours->t.rank};
    memcpy(v.dim, ours->t.dim, sizeof v.dim);
    snprintf(v.path, sizeof v.path, "%s%s",
             d->opt->prefix ? d->opt->prefix : "", ours->name);
    if (d->opt->quiet && !strstr(ours->name, "/x0")) return;
    d->ours++;
    d->common += theirs != NULL;
    if (!theirs) {
        if (d->opt->partial && !knows_kind(d, ours->name)) return;
        if (!d->opt->extra_fails && is_unread(d, ours->name)) return;
        v.outcome = TT_MISSING;
        d->missing++;
        snprintf(v.hint, sizeof v.hint, "not in %.150s", d->opt->got);
    } else if (d->opt->arith
               ? !tt_shape_fits(&theirs->t, v.rank, v.dim)
                 || tt_dtype_is_real(theirs->t.dtype)
                    != tt_dtype_is_real(ours->t.dtype)
               : !pair_same_shape(&theirs->t, &ours->t)) {
        v.outcome = TT_MISSHAPEN;
        snprintf(v.hint, sizeof v.hint, "%s %.70s, expected %s %.70s",
                 tt_dtype_name(theirs->t.dtype),
                 tt_shape_string(shape, sizeof shape, theirs->t.rank,
                                 theirs->t.dim),
                 tt_dtype_name(ours->t.dtype),
                 tt_shape_string(wanted, sizeof wanted, v.rank, v.dim));
    } else {
        pair_compare(d, &v, ours, theirs);
        snprintf(d->since, sizeof d->since, "%s", ours->name);
        d->between[0] = '\0';
        return;
    }
    if (!d->opt->quiet) tt_report_add(d->report, &v, NULL, NULL);
}
