/* html.c: the report as the viewer's page.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Without scripts the page is the verdict, the counts and the first failures.
 * Next    json.c, tools/viewer/validate.js */
#include "validate/report/report.h"

#include <math.h>

#include "io/page.h"

enum { PLAIN_ROWS = 20 };

static void html_put_plain(FILE *f, const tt_report *r)
{
    char line[HEADLINE];
    int n = 0;
    fputs("<h1>", f);
    page_xml(f, r->title);
    report_headline(r, line, sizeof line);
    fputs("</h1>\n<p class=\"lead\">", f);
    page_xml(f, line);
    fprintf(f, "</p>\n<p>%lld compared", (long long)r->compared);
    for (int o = 0; o < OUTCOMES; o++)
        if (r->count[o])
            fprintf(f, ", %lld %s", (long long)r->count[o],
                    tt_outcome_name((tt_outcome)o));
    fprintf(f, "; %lld of %lld tensors equal in every bit.</p>\n<ul>",
            (long long)r->equal, (long long)r->equal_of);
    for (const verdict_item *i = r->first; i && n < PLAIN_ROWS; i = i->next) {
        if (!report_failing(i->v.outcome)) continue;
        n++;
        fprintf(f, "\n<li>%s ", tt_outcome_name(i->v.outcome));
        page_xml(f, i->v.path);
        if (i->v.m.n > 0)
            fprintf(f, ", %.3g times what is allowed", i->v.ratio);
        fputs(": ", f);
        page_xml(f, i->v.hint);
        fputs("</li>", f);
    }
    fputs("\n</ul>\n", f);
}

static void html_put_facts(FILE *f, const tt_report *r)
{
    enum { MOST = 30 };
    const char *fact[2 * MOST + 1] = {NULL};
    int n = 0;
    for (const note_item *i = r->facts; i && n < 2 * MOST; i = i->next) {
        fact[n++] = i->name;
        fact[n++] = i->text;
    }
    page_facts(f, fact);
    fprintf(f, ",\n  \"slack\": %d,\n", TT_SLACK);
}

tt_status tt_report_html(tt_ctx *ctx, const tt_report *r, const char *path)
{
    report_out o;
    const char *verdict = tt_report_passed(r) ? "PASS" : "FAIL";
    char title[700];
    TT_TRY(report_open(ctx, &o, path));
    snprintf(title, sizeof title, "%s: %.680s", verdict, r->title);
    page_open(o.f, title, verdict);
    html_put_plain(o.f, r);
    page_data(o.f);
    fputs("{\"kind\": \"validate\",\n  ", o.f);
    html_put_facts(o.f, r);
    report_json(o.f, r, true);
    page_close(o.f);
    return report_close(ctx, &o, path);
}
