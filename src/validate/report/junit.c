/* junit.c: the report as JUnit XML, for build servers.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One test case per verdict, whose name is the same in every run: its class is
 * the path up to the last '/', of operators the operator. The case
 * "coverage" fails when nothing was compared, so that an empty comparison is
 * not a green one. */
#include "validate/report/report.h"

#include <string.h>

#include "io/page.h"

/* How many verdicts before this one have its name? An operator's at real size
 * has that of a small case. */
static int64_t earlier_of_name(const tt_report *r, const char *path)
{
    const size_t n = report_name(path);
    int64_t count = 0;
    if (!path[n]) return 0;
    for (const verdict_item *i = r->first; i && i->v.path != path; i = i->next)
        count += report_name(i->v.path) == n && !strncmp(i->v.path, path, n);
    return count;
}

/* Class and name of a path: chunk.0/step.1 and x0, op.linear and tiny. */
static void put_names(FILE *f, const tt_report *r, const char *path)
{
    const int64_t earlier = earlier_of_name(r, path);
    char scope[sizeof ((tt_verdict *)0)->path];
    snprintf(scope, sizeof scope, "%.*s", (int)report_name(path), path);
    char *cut = strrchr(scope, '/');
    if (!cut) cut = strrchr(scope, '.');
    if (cut) *cut++ = '\0';
    fputs("classname=\"", f);
    page_xml(f, cut ? scope : "tether");
    fputs("\" name=\"", f);
    page_xml(f, cut ? cut : scope);
    if (earlier) fprintf(f, ".%lld", (long long)earlier + 1);
    fputc('"', f);
}

/* The case that failed, if its path has one: "n=64 c=16 seed 1: ". */
static void put_which(FILE *f, const tt_verdict *v)
{
    const char *which = v->path + report_name(v->path);
    if (!*which) return;
    page_xml(f, which + 1);
    fputs(": ", f);
}

static void put_case(FILE *f, const tt_report *r, const verdict_item *item)
{
    const tt_verdict *v = &item->v;
    fputs("    <testcase ", f);
    put_names(f, r, v->path);
    fprintf(f, " time=\"%.3f\"", item->seconds);
    if (v->outcome == TT_PASS || v->outcome == TT_TIE) {
        fputs("/>\n", f);
        return;
    }
    fputs(">\n", f);
    if (report_failing(v->outcome)) {
        fprintf(f, "      <failure type=\"%s\" message=\"",
                tt_outcome_name(v->outcome));
        put_which(f, v);
        if (v->m.n > 0)
            fprintf(f, "max abs %.3g, relative L2 %.3g, %.3g times what is "
                    "allowed, worst at ", v->m.max_abs, v->m.rel_l2, v->ratio);
        page_xml(f, v->where);
        if (*v->hint) fputs(": ", f);
        page_xml(f, v->hint);
        fputs("\"/>\n", f);
    } else {
        fputs("      <skipped message=\"", f);
        if (v->outcome == TT_EXPECTED) fputs("expected to fail: ", f);
        if (v->outcome == TT_UNSUPPORTED) fputs("unsupported: ", f);
        put_which(f, v);
        page_xml(f, v->hint);
        fputs("\"/>\n", f);
    }
    fputs("    </testcase>\n", f);
}

tt_status tt_report_junit(tt_ctx *ctx, const tt_report *r, const char *path)
{
    TT_TRY(ctx->status);
    report_out o;
    int64_t failures = r->compared == 0, cases = 1, skipped = 0;
    TT_TRY(report_open(ctx, &o, path));
    double seconds = 0;
    for (const verdict_item *i = r->first; i; i = i->next) {
        failures += report_failing(i->v.outcome);
        skipped += report_skipped(i->v.outcome) || i->v.outcome == TT_EXPECTED;
        seconds += i->seconds;
        cases++;
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
          "<testsuites name=\"tether\">\n"
          "  <testsuite name=\"", o.f);
    page_xml(o.f, r->title);
    fprintf(o.f, "\" tests=\"%lld\" failures=\"%lld\" errors=\"0\" "
            "skipped=\"%lld\" time=\"%.3f\">\n", (long long)cases,
            (long long)failures, (long long)skipped, seconds);
    fputs("    <properties>\n", o.f);
    for (const note_item *i = r->notes; i; i = i->next) {
        fputs("      <property name=\"note\" value=\"", o.f);
        page_xml(o.f, i->text);
        fputs("\"/>\n", o.f);
    }
    fputs("    </properties>\n    <testcase classname=\"tether\" "
          "name=\"coverage\"", o.f);
    if (r->compared == 0)
        fputs(">\n      <failure type=\"coverage\" message=\"nothing was "
              "compared\"/>\n    </testcase>\n", o.f);
    else
        fputs("/>\n", o.f);
    for (const verdict_item *i = r->first; i; i = i->next)
        put_case(o.f, r, i);
    fputs("  </testsuite>\n</testsuites>\n", o.f);
    return report_close(ctx, &o, path);
}
