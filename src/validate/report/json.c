/* json.c: the report for programs, schema "tether-validate/2".
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * validate.schema.json says what each member is.
 *
 * The page (html.c) has the same value with "kind" "validate", "facts" (page.h)
 * and "slack", TT_SLACK, before these members, at most PAGE_FAILURES failures
 * and PAGE_OTHERS other verdicts, "left" (how many those are not), and in a
 * verdict
 *   map       {rows, cols, split, cells in base64: 0 none, 255 not finite, else
 *             log2 of the error in eighths, less `least`} */
#include "validate/report/report.h"

#include <math.h>
#include <string.h>

#include "io/jsonout.h"
#include "io/page.h"
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
    REAL(max_abs) REAL(rel_l2) REAL(snr_db) REAL(cosine) REAL(top) REAL(max_ulp)
    WHOLE(broken) WHOLE(nan) WHOLE(inf) WHOLE(denormal) WHOLE(differ)
    WHOLE(worst)
    fputc('}', f);
}

/* Eighths of powers of two: 31 octaves from `least` on. */
static void put_map(FILE *f, const error_map *m)
{
    uint8_t cell[MAP_SIDE * MAP_SIDE];
    const int n = m->rows * m->cols;
    double top = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(m->cell[i]) && m->cell[i] > top) top = m->cell[i];
    const double least = top > 0 ? 8 * log2(top) - 253 : 0;
    for (int i = 0; i < n; i++) {
        const double e = m->cell[i];
        const double at = e > 0 ? rint(8 * log2(e) - least) : 0;
        cell[i] = (uint8_t)(isinf(e) ? 255 : !(e > 0) ? 0 : fmax(1, at));
    }
    fprintf(f, ",\n     \"map\": {\"rows\": %d, \"cols\": %d, \"split\": %d, "
            "\"least\": %.9g, \"cells\": \"", m->rows, m->cols, m->split,
            least);
    page_base64(f, cell, (size_t)n);
    fputs("\"}", f);
}

static void put_verdict(FILE *f, const tt_verdict *v, const error_map *map)
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
    if (map) put_map(f, map);
    fputc('}', f);
}

static void put_head(FILE *f, const tt_report *r)
{
    char line[HEADLINE];
    fputs("  \"schema\": \"tether-validate/2\"", f);
    text(f, ",\n  ", "title", r->title);
    fputs(",\n  \"program\": {\"name\": \"tether\"", f);
    text(f, ", ", "version", tt_version());
    fputs("},\n  \"arith\": ", f);
    if (r->arith) {
        text(f, "{", "name", r->arith->name);
        text(f, ", ", "summary", r->arith->summary ? r->arith->summary : "");
        text(f, ", ", "compared", r->arith->bits ? "by bits" : "by limits");
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
    const note_item *i = r->facts;
    while (i && strcmp(i->name, "mistakes that would pass")) i = i->next;
    fputs("],\n  \"would_pass\": ", f);
    if (i) json_string(f, i->text);
    else fputs("null", f);
    fputs(",\n", f);
}

/* ---- all of it ----------------------------------------------------------- */

enum { PAGE_FAILURES = 1000, PAGE_OTHERS = 600 };

/* The verdicts; first and largest as places among those that are written. */
static void put_verdicts(FILE *f, const tt_report *r, bool page)
{
    const tt_verdict *most = tt_report_largest(r);
    int64_t n[2] = {0, 0}, left[2] = {0, 0}, place[2] = {-1, -1};
    fputs("  \"verdicts\": [", f);
    for (const verdict_item *i = r->first; i; i = i->next) {
        const bool other = !report_failing(i->v.outcome);
        if (!page && r->wish.failures_alone && other) continue;
        const bool named = &i->v == r->failed || &i->v == most;
        if (page && !named
            && n[other] >= (other ? PAGE_OTHERS : PAGE_FAILURES)) {
            left[other]++;
            continue;
        }
        if (&i->v == r->failed) place[0] = n[0] + n[1];
        if (&i->v == most) place[1] = n[0] + n[1];
        fputs(n[0] + n[1] ? ",\n" : "\n", f);
        n[other]++;
        put_verdict(f, &i->v, page ? i->map : NULL);
    }
    fputs("\n  ]", f);
    for (int k = 0; k < 2; k++) {
        fprintf(f, ",\n  \"%s\": ", k ? "largest" : "first");
        if (place[k] < 0) fputs("null", f);
        else fprintf(f, "%lld", (long long)place[k]);
    }
    if (page)
        fprintf(f, ",\n  \"left\": [%lld, %lld]", (long long)left[0],
                (long long)left[1]);
}

void report_json(FILE *f, const tt_report *r, bool page)
{
    put_head(f, r);
    put_verdicts(f, r, page);
    fputs(",\n  \"growth\": [", f);
    for (const growth_item *i = r->growth; i; i = i->next) {
        text(f, i == r->growth ? "\n    {" : ",\n    {", "curve",
             i->g.curve);
        whole(f, "chunk", i->g.chunk);
        real(f, "rel_l2", i->g.rel_l2);
        real(f, "earned", i->g.earned);
        fputc('}', f);
    }
    fputs("]\n}\n", f);
}

tt_status tt_report_json(tt_ctx *ctx, const tt_report *r, const char *path)
{
    report_out o;
    TT_TRY(report_open(ctx, &o, path));
    fputs("{\n", o.f);
    report_json(o.f, r, false);
    return report_close(ctx, &o, path);
}
