/* text.c: the report a person reads first.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * First line the result, with the first wrong tensor's name; then the counts;
 * then one line per failure (every verdict with `all`), in order; then what
 * could not be checked, and why; then the curves. */
#include "validate/report/report.h"

#include <math.h>
#include <string.h>

#include "core/utf8.h"

enum { SHOWN = 25,       /* failures before the list is cut                   */
       ABSENT = 3 };     /* those of them that are not there                  */

static void text_put_number(FILE *f, double x)
{
    if (isnan(x)) fprintf(f, " %9s", "-");
    else fprintf(f, " %9.3g", x);
}

static void text_put_verdict(FILE *f, const tt_verdict *v)
{
    fprintf(f, "%-10s", tt_outcome_name(v->outcome));
    const double x[] = {v->m.max_abs, v->m.rel_l2, v->m.snr_db, v->ratio};
    for (int i = 0; i < 4; i++)
        if (i < 3 && v->m.broken) /* the finite ones alone would look equal */
            fprintf(f, " %9s", "nan");
        else
            text_put_number(f, v->m.n > 0 ? x[i] : NAN);
    fputs("  ", f);
    utf8_print(f, v->path);
    if (*v->op) fprintf(f, " (%s)", v->op);
    if (report_failing(v->outcome) && *v->where && v->m.n > 0)
        fprintf(f, " at %s", v->where);
    fputc('\n', f);
    if (*v->hint) {
        fputs("          ", f);
        utf8_print(f, v->hint);
        fputc('\n', f);
    }
}

static void put_counts(FILE *f, const tt_report *r)
{
    fprintf(f, "%lld compared:", (long long)r->compared);
    for (int o = 0; o < OUTCOMES; o++)
        if (r->count[o] || o == TT_PASS || o == TT_MISMATCH)
            fprintf(f, "%s %lld %s", o ? "," : "", (long long)r->count[o],
                    tt_outcome_name((tt_outcome)o));
    if (r->arith)
        fprintf(f, "; %s: %s", r->arith->bits ? "bits" : "limits",
                r->arith->name);
    fprintf(f, "\n%lld of %lld tensors equal in every bit\n",
            (long long)r->equal, (long long)r->equal_of);
}

/* Verdicts of one kind, cut after SHOWN; passes go with the failures. */
static void put_list(FILE *f, const tt_report *r, bool skipped, bool all)
{
    int64_t shown = 0, hidden = 0, absent = 0;
    for (const verdict_item *i = r->first; i; i = i->next) {
        if (report_skipped(i->v.outcome) != skipped) continue;
        if (!all && i->v.outcome == TT_PASS) continue;
        absent += i->v.outcome == TT_MISSING;
        if (!all && (shown >= SHOWN || (i->v.outcome == TT_MISSING
                                        && absent > ABSENT))) {
            hidden++;
            continue;
        }
        if (!shown++)
            fprintf(f, "%-10s %9s %9s %9s %9s  tensor\n", "", "max abs",
                    "rel L2", "SNR dB", "x allowed");
        text_put_verdict(f, &i->v);
    }
    if (hidden)
        fprintf(f, "and %lld more%s\n", (long long)hidden,
                skipped ? " that were not checked" : "");
}

/* The points of several curves come in turn. */
static void put_growth(FILE *f, const tt_report *r)
{
    if (r->growth)
        fputs("relative L2 error of each chunk, and what the declared "
              "arithmetic errs:\n", f);
    for (const growth_item *i = r->growth; i; i = i->next)
        fprintf(f, "  %s, chunk %3lld  %9.3g  %9.3g\n", i->g.curve,
                (long long)i->g.chunk, i->g.rel_l2, i->g.earned);
}

tt_status tt_report_text(tt_ctx *ctx, const tt_report *r, const char *path,
                         bool all)
{
    report_out o;
    char line[HEADLINE];
    TT_TRY(report_open(ctx, &o, path));
    report_headline(r, line, sizeof line);
    utf8_print(o.f, line);
    fputc('\n', o.f);
    put_counts(o.f, r);
    for (const note_item *i = r->notes; i; i = i->next) {
        utf8_print(o.f, i->text);
        fputc('\n', o.f);
    }
    put_list(o.f, r, false, all);
    put_list(o.f, r, true, all);
    put_growth(o.f, r);
    return report_close(ctx, &o, path);
}
