/* report.c: verdicts collected in order.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    text.c, json.c, junit.c, html.c */
#include "validate/report/report.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "validate/isolate/mirror.h"
#include "validate/verdict.h"

static error_map *map_make(tt_report *r, const tt_verdict *v,
                           const double *got, const double *want);

bool report_failing(tt_outcome o)
{
    return o == TT_MISMATCH || o == TT_MISSING || o == TT_MISSHAPEN;
}

bool report_skipped(tt_outcome o)
{
    return o == TT_UNCHECKED || o == TT_UNSUPPORTED;
}

tt_status tt_report_new(tt_ctx *ctx, tt_report **out, const char *title,
                        const tt_arith *arith)
{
    *out = NULL;
    tt_arena arena = {0};
    tt_report *r = tt_alloc0(ctx, &arena, 1, sizeof *r, "a report");
    if (!r) return ctx->status;
    r->ctx = ctx;
    r->arith = arith;
    r->last = tt_now();
    r->end = &r->first;
    r->notes_end = &r->notes;
    r->facts_end = &r->facts;
    r->growth_end = &r->growth;
    r->arena = arena;
    r->title = tt_strdup(ctx, &r->arena, title);
    if (ctx->status) tt_report_free(r);
    else *out = r;
    return ctx->status;
}

void tt_report_declare(tt_report *r, const tt_arith *arith)
{
    if (!r) return;
    r->arith = arith;
    mirror_arith(r->watch, arith);
}

void tt_report_closing(tt_report *r)
{
    if (r) mirror_closing(r->watch);
}

tt_report_wishes *tt_report_wish(tt_report *r)
{
    return &r->wish;
}

void tt_report_free(tt_report *r)
{
    if (!r) return;
    tt_arena arena = r->arena;   /* r lives in it */
    tt_arena_free(&arena);
}

void tt_report_add(tt_report *r, const tt_verdict *v, const double *got,
                   const double *want)
{
    error_map *map = NULL;
    if (!r) return;
    if (got && want && v->outcome == TT_MISMATCH && r->maps < MAPS_MAX)
        map = map_make(r, v, got, want);
    report_put(r, v, map);
}

void report_put(tt_report *r, const tt_verdict *v, error_map *map)
{
    if (r->wish.only && strcmp(r->wish.only, v->path)) return;
    verdict_item *i = tt_alloc0(r->ctx, &r->arena, 1, sizeof *i, "a verdict");
    if (!i) return;
    i->v = *v;
    i->v.op = v->op ? tt_strdup(r->ctx, &r->arena, v->op) : "";
    i->map = map;
    const double now = tt_now();
    i->seconds = now - r->last;
    r->last = now;
    r->maps += map != NULL;
    mirror_verdict(r->watch, v, map);
    *r->end = i;
    r->end = &i->next;
    r->count[v->outcome]++;
    r->compared += v->m.n > 0 && !report_skipped(v->outcome);
    r->equal += v->bits == TT_BITS_EQUAL;
    r->equal_of += v->bits != TT_BITS_UNKNOWN;
    if (!r->failed && report_failing(v->outcome)) r->failed = &i->v;
}

size_t report_name(const char *path)
{
    return strcspn(path, " ");
}

/* A pattern's verdicts that fail become expected ones; how many? */
static int64_t expect_failures(tt_report *r, const char *glob)
{
    char name[sizeof ((tt_verdict *)0)->path];
    int64_t n = 0;
    for (verdict_item *i = r->first; i; i = i->next) {
        snprintf(name, sizeof name, "%.*s", (int)report_name(i->v.path),
                 i->v.path);
        if (fnmatch(glob, name, 0)) continue;
        if (report_failing(i->v.outcome)) {
            r->count[i->v.outcome]--;
            r->count[i->v.outcome = TT_EXPECTED]++;
        }
        n += i->v.outcome == TT_EXPECTED;
    }
    return n;
}

tt_status tt_report_expect(tt_ctx *ctx, tt_report *r, const char *path)
{
    char line[1024];
    FILE *f = fopen(path, "r");
    if (!f)
        return tt_fail(ctx, TT_EIO, "--xfail %s: cannot be read: %s", path,
                       strerror(errno));
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "#\r\n")] = '\0';
        char *glob = line + strspn(line, " \t");
        for (size_t n = strlen(glob); n > 0 && strchr(" \t", glob[n - 1]);)
            glob[--n] = '\0';
        if (*glob && !expect_failures(r, glob))
            tt_report_note(r, "--xfail: nothing named %s fails; take the line "
                           "out of %s", glob, path);
    }
    fclose(f);
    r->failed = NULL;
    for (const verdict_item *i = r->first; i && !r->failed; i = i->next)
        if (report_failing(i->v.outcome)) r->failed = &i->v;
    return ctx->status;
}

void report_say_why(tt_report *r, const char *path, const char *why,
                    int64_t tried)
{
    verdict_item *i = r->first;
    char was[sizeof i->v.hint];
    while (i && (!report_failing(i->v.outcome) || strcmp(i->v.path, path)))
        i = i->next;
    if (!i) return;
    snprintf(was, sizeof was, "%s", i->v.hint);
    const char *given = strstr(was, "; given theirs");
    if (*why)
        snprintf(i->v.hint, sizeof i->v.hint, "%s%s", why,
                 given && strlen(why) + strlen(given) < sizeof was ? given
                                                                   : "");
    else if (tried && !strncmp(was, "it arises", 9))
        snprintf(i->v.hint, sizeof i->v.hint, "none of the %lld mistakes tried "
                 "explains it; %.130s", (long long)tried, was);
}

void tt_report_grow(tt_report *r, const tt_growth *g)
{
    if (!r) return;
    growth_item *i = tt_alloc0(r->ctx, &r->arena, 1, sizeof *i, "a curve");
    if (!i) return;
    mirror_growth(r->watch, g);
    i->g = *g;
    i->g.curve = tt_strdup(r->ctx, &r->arena, g->curve);
    *r->growth_end = i;
    r->growth_end = &i->next;
}

/* A check says again what an earlier one said, and so does a process that goes
 * on after another one. */
static bool said_before(const tt_report *r, const char *name, const char *text)
{
    const note_item *i = name ? r->facts : r->notes;
    while (i && strcmp(i->text, text)) i = i->next;
    return i;
}

static void report_append(tt_report *r, const char *name, const char *fmt,
                          va_list ap)
{
    char text[4096];
    note_item ***end = name ? &r->facts_end : &r->notes_end;
    vsnprintf(text, sizeof text, fmt, ap);
    if (said_before(r, name, text)) return;
    note_item *i = tt_alloc0(r->ctx, &r->arena, 1, sizeof *i, "a note");
    char *copy = i ? tt_strdup(r->ctx, &r->arena, text) : NULL;
    if (!copy) return;
    mirror_text(r->watch, name, text);
    *i = (note_item){.name = name, .text = copy};
    **end = i;
    *end = &i->next;
}

void tt_report_note(tt_report *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (r) report_append(r, NULL, fmt, ap);
    va_end(ap);
}

void tt_report_fact(tt_report *r, const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (r) report_append(r, name, fmt, ap);
    va_end(ap);
}

int64_t tt_report_compared(const tt_report *r)
{
    return r ? r->compared : 0;
}

int64_t tt_report_equal(const tt_report *r, int64_t *of)
{
    *of = r ? r->equal_of : 0;
    return r ? r->equal : 0;
}

const tt_verdict *tt_report_first(const tt_report *r)
{
    return r ? r->failed : NULL;
}

/* Do both hints name the same mistake, but for numbers and the case that tells
 * it best, which follows it? */
static bool alike(const char *a, const char *b)
{
    static const char number[] = "0123456789.";
    for (;; a++, b++) {
        a += strspn(a, number);
        b += strspn(b, number);
        const char x = strncmp(a, " (at ", 5) ? *a : '\0';
        const char y = strncmp(b, " (at ", 5) ? *b : '\0';
        if (x != y || !x) return x == y;
    }
}

/* Does a hint name a mistake, or only a place or a size? */
static bool names(const char *hint)
{
    static const char *const no[] = {"only ", "one element", "low precision",
                                     "a small error", "none of", "it arises",
                                     "given theirs", "row", "channel"};
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        if (!strncmp(hint, no[i], strlen(no[i]))) return false;
    return *hint != '\0';
}

/* The failure whose hint explains most failures of the first one's operator,
 * and how many: more than the first one's own, or than half of them where that
 * has none. NULL: it is the first one itself. */
static const tt_verdict *explains_most(const tt_report *r, int *n, int *of)
{
    const tt_verdict *first = r->failed, *best = NULL;
    int own = 0;
    *n = *of = 0;
    if (!first || strncmp(first->path, "op.", 3)) return NULL;
    for (const verdict_item *i = r->first; i; i = i->next) {
        int all = 0;
        if (!report_failing(i->v.outcome) || strcmp(i->v.op, first->op))
            continue;
        ++*of;
        own += alike(i->v.hint, first->hint);
        if (!names(i->v.hint) || (best && alike(best->hint, i->v.hint)))
            continue;
        for (const verdict_item *k = i; k; k = k->next)
            all += report_failing(k->v.outcome) && !strcmp(k->v.op, first->op)
                   && alike(k->v.hint, i->v.hint);
        if (all > *n) best = &i->v, *n = all;
    }
    return best && !alike(best->hint, first->hint)
           && (names(first->hint) ? *n > own : 2 * *n > *of) ? best : NULL;
}

const tt_verdict *tt_report_largest(const tt_report *r)
{
    enum { TIMES = 10 };
    const tt_verdict *first = r ? r->failed : NULL, *v = first;
    if (!first || !r->apart || first->outcome != TT_MISMATCH) return NULL;
    for (const verdict_item *i = r->first; i; i = i->next)
        if (i->v.outcome == TT_MISMATCH && *i->v.op && i->v.ratio > v->ratio)
            v = &i->v;
    return v->ratio >= TIMES * first->ratio && v != first
        && !(*v->hint && alike(v->hint, first->hint)) ? v : NULL;
}

bool tt_report_passed(const tt_report *r)
{
    return r && r->compared > 0 && !r->failed;
}

/* "chunk.0/x0 at [3, 1]: scaled by 2" */
static void say_failure(char *out, size_t n, const tt_verdict *v)
{
    const bool nothing = v->outcome == TT_MISSING
                         || v->outcome == TT_MISSHAPEN;
    snprintf(out, n, "%s%s%s%s%s", v->path, nothing ? " is "
             : *v->where ? " at " : "", nothing ? tt_outcome_name(v->outcome)
             : v->where, *v->hint ? ": " : "", v->hint);
}

void report_headline(const tt_report *r, char *out, size_t n)
{
    const tt_verdict *v = r->failed, *most = tt_report_largest(r);
    char rest[160] = "", times[96] = "", first[520], largest[520];
    static const char *const other[OUTCOMES] = {
        [TT_UNCHECKED] = "more were not checked", [TT_UNSUPPORTED] =
        "are unsupported", [TT_EXPECTED] = "fail as expected (--xfail)"};
    for (int o = 0; o < OUTCOMES; o++)
        if (other[o] && r->count[o])
            snprintf(rest + strlen(rest), sizeof rest - strlen(rest),
                     "; %lld %s", (long long)r->count[o], other[o]);
    if (!v && !r->compared)
        snprintf(out, n, "FAIL: nothing was compared%s", rest);
    else if (!v)
        snprintf(out, n, "PASS: %lld tensors%s%s",
                 (long long)(r->count[TT_PASS] + r->count[TT_TIE]),
                 r->count[TT_TIE] ? ", ties in selections included" : "", rest);
    if (!v) return;
    tt_verdict said = *v;
    int all, of;
    const tt_verdict *better = explains_most(r, &all, &of);
    if (better)
        snprintf(said.hint, sizeof said.hint, "%.*s (explains %d of %d "
                 "failures)", (int)sizeof said.hint - 48, better->hint, all,
                 of);
    say_failure(first, sizeof first, &said);
    if (!most) {
        snprintf(out, n, "FAIL: first wrong tensor: %s", first);
        return;
    }
    say_failure(largest, sizeof largest, most);
    if (isfinite(most->ratio))
        snprintf(times, sizeof times, ", %.3g times what is allowed (the first "
                 "%.3g)", most->ratio, v->ratio);
    snprintf(out, n, "FAIL: first wrong tensor: %s; the largest failure%s: %s",
             first, times, largest);
}

/* ---- maps ---------------------------------------------------------------- */

static error_map *map_make(tt_report *r, const tt_verdict *v,
                           const double *got, const double *want)
{
    int64_t rows = 1, cols = 1;
    /* [T, H, D]: tokens by heads; [F, C, h, w]: channels by places */
    const int split = v->rank / 2;
    for (int i = 0; i < v->rank; i++)    /* the others may be anything then */
        if (v->dim[i] < 1) return NULL;
    if (v->m.n < MAP_LEAST) return NULL;
    for (int i = 0; i < v->rank; i++)
        *(i < split ? &rows : &cols) *= v->dim[i];
    const int h = (int)(rows < MAP_SIDE ? rows : MAP_SIDE);
    const int w = (int)(cols < MAP_SIDE ? cols : MAP_SIDE);
    error_map *m = tt_alloc0(r->ctx, &r->arena, 1,
                             sizeof *m + (size_t)(h * w) * sizeof *m->cell,
                             "an error map");
    if (!m) return NULL;
    m->split = split;
    m->rows = h;
    m->cols = w;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            float *c = &m->cell[i * h / rows * w + j * w / cols];
            const int64_t at = i * cols + j;
            const double e = value_distance(got[at], want[at]);
            if (e > *c) *c = (float)e;
        }
    return m;
}

/* ---- where it goes ------------------------------------------------------- */

tt_status report_open(tt_ctx *ctx, report_out *o, const char *path)
{
    memset(o, 0, sizeof *o);
    TT_TRY(ctx->status);
    o->standard = !strcmp(path, "-");
    if (!o->standard) TT_TRY(tt_out_open(ctx, &o->file, path));
    o->f = o->standard ? stdout : o->file.file;
    return TT_OK;
}

tt_status report_close(tt_ctx *ctx, report_out *o, const char *path)
{
    if (!o->standard) return tt_out_finish(ctx, &o->file);
    if (!fflush(stdout) && !ferror(stdout)) return TT_OK;
    /* A reader that has seen enough (`| head`) is no failure. */
    if (errno == EPIPE && freopen("/dev/null", "w", stdout)) return TT_OK;
    return tt_fail(ctx, TT_EIO, "cannot write %s: %s", strcmp(path, "-") ? path
                   : "the standard output", strerror(errno));
}
