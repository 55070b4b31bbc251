/* junit.c: the report as JUnit XML, for build servers.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * One test case per verdict; its class is the path up to the last '/'. The case
 * "coverage" fails when nothing was compared, so that an empty comparison is
 * not a green one. */
#include "validate/report/report.h"

#include <string.h>

#include "io/page.h"

/* Class and name of a path. */
static void put_names(FILE *f, const char *path)
{
    const char *cut = strrchr(path, '/');
    char scope[sizeof ((tt_verdict *)0)->path] = "";
    if (cut) snprintf(scope, sizeof scope, "%.*s", (int)(cut - path), path);
    fputs("classname=\"", f);
    page_xml(f, *scope ? scope : "tether");
    fputs("\" name=\"", f);
    page_xml(f, cut ? cut + 1 : path);
    fputc('"', f);
}

static void put_case(FILE *f, const tt_verdict *v)
{
    fputs("    <testcase ", f);
    put_names(f, v->path);
    if (v->outcome == TT_PASS) {
        fputs("/>\n", f);
        return;
    }
    fputs(">\n", f);
    if (report_failing(v->outcome)) {
        fprintf(f, "      <failure type=\"%s\" message=\"",
                tt_outcome_name(v->outcome));
        if (v->m.n > 0)
            fprintf(f, "max abs %.3g, relative L2 %.3g, %.3g times what is "
                    "allowed, worst at ", v->m.max_abs, v->m.rel_l2, v->ratio);
        page_xml(f, v->where);
        if (*v->hint) fputs(": ", f);
        page_xml(f, v->hint);
        fputs("\"/>\n", f);
    } else if (v->outcome == TT_UNCHECKED) {
        fputs("      <skipped message=\"", f);
        page_xml(f, v->hint);
        fputs("\"/>\n", f);
    } else {
        fputs("      <system-out>tie", f);
        if (*v->hint) fputs(": ", f);
        page_xml(f, v->hint);
        fputs("</system-out>\n", f);
    }
    fputs("    </testcase>\n", f);
}

tt_status tt_report_junit(tt_ctx *ctx, const tt_report *r, const char *path)
{
    TT_TRY(ctx->status);
    report_out o;
    int64_t failures = r->compared == 0, cases = 1;
    TT_TRY(report_open(ctx, &o, path));
    for (const verdict_item *i = r->first; i; i = i->next) {
        failures += report_failing(i->v.outcome);
        cases++;
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
          "<testsuites name=\"tether\">\n"
          "  <testsuite name=\"", o.f);
    page_xml(o.f, r->title);
    fprintf(o.f, "\" tests=\"%lld\" failures=\"%lld\" errors=\"0\" "
            "skipped=\"%lld\">\n", (long long)cases, (long long)failures,
            (long long)r->count[TT_UNCHECKED]);
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
        put_case(o.f, &i->v);
    fputs("  </testsuite>\n</testsuites>\n", o.f);
    return report_close(ctx, &o, path);
}
