/* json.c: the report for programs, schema "tether-validate/1".
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   schema    "tether-validate/1"; members may be added, none changes meaning
 *   title     text                 program    {name, version}
 *   arith     {name, summary, judged "by limits" or "by bits"} or null: the
 *             declared arithmetic
 *   passed    bool                 headline   one sentence
 *   compared  tensors that were judged
 *   counts    {pass, tie, mismatch, missing, misshapen, not judged}
 *   bits      {equal, of}: tensors that are equal to ours in every bit
 *   notes     [text]
 *   first     index in verdicts of the first failure, or null
 *   largest   that of the failure farthest out of its limits, where it is 10
 *             times as far as the first and judged for itself, or null
 *   verdicts  in order of execution:
 *     path, op, outcome, shape [..], where, hint
 *     bits                                 "equal", "differ", null: unknown
 *     earned, ratio                        (see validate.h)
 *     metrics {n, max_abs, rms, rel_l2, snr_db, cosine, bias, top, max_ulp,
 *              mean_ulp, q50, q90, q99, q999, broken, nan, inf, denormal,
 *              differ, worst, ulp [16 counts]}, null without elements
 *   growth    [{curve, chunk, rel_l2, earned}]
 * A number that is not finite (the SNR of equal tensors) is null. */
#include "validate/report/report.h"

#include <math.h>

#include "io/jsonout.h"
#include "tether/version.h"

static void text(FILE *f, const char *before, const char *key,
                 const char *value)
{
    fprintf(f, "%s\"%s\": ", before, key);
    json_string(f, value);
}

static void real(FILE *f, const char *key, double x)
{
    if (isfinite(x)) fprintf(f, ", \"%s\": %.17g", key, x);
    else fprintf(f, ", \"%s\": null", key);
}

static void whole(FILE *f, const char *key, int64_t x)
{
    fprintf(f, ", \"%s\": %lld", key, (long long)x);
}

static void put_metrics(FILE *f, const tt_metrics *m)
{
    fprintf(f, ",\n     \"metrics\": {\"n\": %lld", (long long)m->n);
#define REAL(member) real(f, #member, m->member);
#define WHOLE(member) whole(f, #member, m->member);
    REAL(max_abs) REAL(rms) REAL(rel_l2) REAL(snr_db) REAL(cosine) REAL(bias)
    REAL(top) REAL(max_ulp) REAL(mean_ulp)
    REAL(q50) REAL(q90) REAL(q99) REAL(q999)
    WHOLE(broken) WHOLE(nan) WHOLE(inf) WHOLE(denormal) WHOLE(differ)
    WHOLE(worst)
    fputs(", \"ulp\": [", f);
    for (int i = 0; i < TT_ULP_BINS; i++)
        fprintf(f, "%s%lld", i ? ", " : "", (long long)m->ulp[i]);
    fputs("]}", f);
}

static void put_verdict(FILE *f, const tt_verdict *v)
{
    text(f, "    {", "path", v->path);
    text(f, ", ", "op", v->op);
    fprintf(f, ", \"outcome\": \"%s\", \"shape\": [",
            tt_outcome_name(v->outcome));
    for (int i = 0; i < v->rank; i++)
        fprintf(f, "%s%lld", i ? ", " : "", (long long)v->dim[i]);
    fprintf(f, "], \"bits\": %s", v->bits == TT_BITS_EQUAL ? "\"equal\""
            : v->bits == TT_BITS_DIFFER ? "\"differ\"" : "null");
    text(f, ", ", "where", v->where);
    text(f, ", ", "hint", v->hint);
    real(f, "earned", v->earned);
    real(f, "ratio", v->ratio);
    if (v->m.n > 0) put_metrics(f, &v->m);
    else fputs(", \"metrics\": null", f);
    fputc('}', f);
}

static void put_head(FILE *f, const tt_report *r)
{
    char line[HEADLINE];
    fputs("{\n  \"schema\": \"tether-validate/1\"", f);
    text(f, ",\n  ", "title", r->title);
    fputs(",\n  \"program\": {\"name\": \"tether\"", f);
    text(f, ", ", "version", tt_version());
    fputs("},\n  \"arith\": ", f);
    if (r->arith) {
        text(f, "{", "name", r->arith->name);
        text(f, ", ", "summary", r->arith->summary ? r->arith->summary : "");
        text(f, ", ", "judged", r->arith->bits ? "by bits" : "by limits");
        fputc('}', f);
    } else {
        fputs("null", f);
    }
    report_headline(r, line, sizeof line);
    fprintf(f, ",\n  \"passed\": %s",
            tt_report_passed(r) ? "true" : "false");
    text(f, ",\n  ", "headline", line);
    fprintf(f, ",\n  \"compared\": %lld,\n  \"counts\": {",
            (long long)r->compared);
    for (int o = 0; o < OUTCOMES; o++)
        fprintf(f, "%s\"%s\": %lld", o ? ", " : "",
                tt_outcome_name((tt_outcome)o), (long long)r->count[o]);
    fprintf(f, "},\n  \"bits\": {\"equal\": %lld, \"of\": %lld},\n",
            (long long)r->equal, (long long)r->equal_of);
    fputs("  \"notes\": [", f);
    for (const note_item *i = r->notes; i; i = i->next) {
        if (i != r->notes) fputs(", ", f);
        json_string(f, i->text);
    }
    fputs("],\n", f);
}

/* The place of a verdict in the list; NULL: none. */
static void put_index(FILE *f, const tt_report *r, const char *key,
                      const tt_verdict *v)
{
    int64_t n = 0;
    const verdict_item *i = r->first;
    for (; i && &i->v != v; i = i->next) n++;
    if (i) fprintf(f, "  \"%s\": %lld,\n", key, (long long)n);
    else fprintf(f, "  \"%s\": null,\n", key);
}

tt_status tt_report_json(tt_ctx *ctx, const tt_report *r, const char *path)
{
    report_out o;
    TT_TRY(report_open(ctx, &o, path));
    put_head(o.f, r);
    put_index(o.f, r, "first", r->failed);
    put_index(o.f, r, "largest", tt_report_largest(r));
    fputs("  \"verdicts\": [\n", o.f);
    for (const verdict_item *i = r->first; i; i = i->next) {
        put_verdict(o.f, &i->v);
        fputs(i->next ? ",\n" : "\n", o.f);
    }
    fputs("  ],\n  \"growth\": [", o.f);
    for (const growth_item *i = r->growth; i; i = i->next) {
        text(o.f, i == r->growth ? "\n    {" : ",\n    {", "curve",
             i->g.curve);
        whole(o.f, "chunk", i->g.chunk);
        real(o.f, "rel_l2", i->g.rel_l2);
        real(o.f, "earned", i->g.earned);
        fputc('}', o.f);
    }
    fputs("]\n}\n", o.f);
    return report_close(ctx, &o, path);
}
