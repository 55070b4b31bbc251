/* html.c: the report as one page that needs no other file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * No script, nothing fetched; pictures are inline SVG. The first screen holds
 * the verdict, the first wrong tensor in words and what was run where and when.
 * Then come the first failures, the pictures and a table by operator; all else
 * is folded. A page with very many rows shows the first of them and says how
 * many are left out: the JSON report has them all.
 * Next    plots.c */
#include "validate/report/report.h"

#include <math.h>
#include <string.h>

#include "core/page.h"
#include "tether/version.h"

enum { FIRST_SHOWN = 6, ROWS_MAX = 2000, PASSES_MAX = 1000, GROUPS_MAX = 64 };

/* The words a phone shows in place of the table's head. */
static const char style[] =
    "@media(max-width:640px){"
    ".v td:nth-child(2)::before{content:'shape '}"
    ".v td:nth-child(3)::before{content:'largest '}"
    ".v td:nth-child(4)::before{content:'rel. L2 '}"
    ".v td:nth-child(5)::before{content:'times allowed '}"
    ".v td:nth-child(6)::before{content:'at '}}";

/* ---- words --------------------------------------------------------------- */

/* Escaped, in an element: "code", "p". */
static void put_in(FILE *f, const char *element, const char *s)
{
    fprintf(f, "<%s>", element);
    page_xml(f, s);
    fprintf(f, "</%s>", element);
}

/* A path as a person would say it: "chunk.1/step.2/q#linear.3" becomes "chunk
 * 1, step 2, q, call 3 of linear"; "op.silu.zero n=1" becomes "silu by itself,
 * inputs `zero`, n=1". Names of other kinds stay. */
static void put_words(FILE *f, const char *path)
{
    char part[224];
    if (!strncmp(path, "op.", 3)) {
        const size_t name = strcspn(path + 3, ". ");
        const char *kind = path + 3 + name + (path[3 + name] == '.');
        const size_t len = strcspn(kind, " ");
        snprintf(part, sizeof part, "%.*s by itself, inputs of the kind %.*s%s"
                 "%s", (int)name, path + 3, (int)len, kind,
                 kind[len] ? "," : "", kind + len);
        page_xml(f, part);
        return;
    }
    for (const char *s = path; *s;) {
        const size_t n = strcspn(s, "/#");
        const bool call = s > path && s[-1] == '#';
        const char *dot = memchr(s, '.', n);
        const size_t word = dot ? (size_t)(dot - s) : n;
        const bool number = dot && n > word + 1
            && strspn(dot + 1, "0123456789") == n - word - 1;
        if (number && call)
            snprintf(part, sizeof part, "call %.*s of %.*s",
                     (int)(n - word - 1), dot + 1, (int)word, s);
        else if (number)
            snprintf(part, sizeof part, "%.*s %.*s", (int)word, s,
                     (int)(n - word - 1), dot + 1);
        else
            snprintf(part, sizeof part, "%.*s", (int)n, s);
        if (s > path + 1) fputs(", ", f);
        page_xml(f, part);
        s += n + (s[n] != '\0');
    }
}

/* ---- the first screen ---------------------------------------------------- */

/* Bits are judged one by one: their place is the first that differs. */
static bool by_bits(const tt_report *r)
{
    return r->arith && r->arith->bits;
}

/* How large the error is, and where. */
static void put_size(FILE *f, const tt_report *r, const tt_verdict *v)
{
    char buf[32];
    fprintf(f, ". Its largest error%s %s%s at ", by_bits(r) ? " is" : ",",
            page_number(buf, sizeof buf, v->m.max_abs, 3),
            by_bits(r) ? ", and the first value that differs is" : "");
    page_xml(f, *v->where ? v->where : "[]");
    if (by_bits(r)) return;
    if (isfinite(v->ratio) && v->ratio > 0 && r->arith) {
        fputs(", is <b>", f);
        page_times(f, v->ratio);
        fputs(" times</b> what ", f);
        page_xml(f, r->arith->name);
        fputs(" may err on the same inputs", f);
    } else {
        fputs(", is more than is allowed", f);
    }
}

/* What is wrong with a wrong tensor, where, and how much. */
static void put_wrong(FILE *f, const tt_report *r, const tt_verdict *v)
{
    put_in(f, "code", v->path);
    if (strpbrk(v->path, "/#") || !strncmp(v->path, "op.", 3)) {
        fputs(": ", f);
        put_words(f, v->path);
    }
    if (*v->op && !strchr(v->path, '#') && strncmp(v->path, "op.", 3)) {
        fputs(", made by ", f);
        page_xml(f, v->op);
    }
    if (v->outcome == TT_MISSING || v->outcome == TT_MISSHAPEN) {
        fprintf(f, ". It is <b>%s</b>", tt_outcome_name(v->outcome));
    } else if (v->m.n > 0) {
        put_size(f, r, v);
    }
    fputs(".", f);
    if (*v->hint) {
        fputs(v->m.n > 0 ? " It looks like this: " : " ", f);
        put_in(f, "b", v->hint);
        fputs(".", f);
    }
}

static void put_failed(FILE *f, const tt_report *r)
{
    const tt_verdict *most = tt_report_largest(r);
    fputs("The first wrong tensor is ", f);
    put_wrong(f, r, r->failed);
    if (!most) return;
    fputs(" The largest failure is ", f);
    put_wrong(f, r, most);
}

/* The passing tensor nearest to its limit; NULL: none has one. */
static const tt_verdict *nearest(const tt_report *r)
{
    const tt_verdict *best = NULL;
    for (const verdict_item *i = r->first; i; i = i->next)
        if (i->v.outcome == TT_PASS && i->v.m.n > 0 && i->v.ratio > 0
            && (!best || i->v.ratio > best->ratio)) best = &i->v;
    return best;
}

static void put_passed(FILE *f, const tt_report *r)
{
    const tt_verdict *v = r->arith ? nearest(r) : NULL;
    if (!r->compared) {
        fputs("Nothing was compared, which counts as a failure.", f);
        return;
    }
    page_count(f, r->compared);
    fprintf(f, " tensor%s compared, none of them is wrong.",
            r->compared == 1 ? " was" : "s were");
    if (!v) return;
    fputs(" The nearest to its limit is ", f);
    put_in(f, "code", v->path);
    fprintf(f, ", at %.0f&nbsp;%% of it.", 100 * v->ratio);
}

static void put_equal(FILE *f, const tt_report *r)
{
    fputs(" ", f);
    page_count(f, r->equal);
    fputs(" of ", f);
    page_count(f, r->equal_of);
    fputs(" tensors equal in every bit.", f);
}

static void put_tile(FILE *f, const char *class, int64_t n, const char *word)
{
    fprintf(f, "<div class=\"tile %s\"><b>", class);
    page_count(f, n);
    fprintf(f, "</b>%s</div>\n", word);
}

static void put_tiles(FILE *f, const tt_report *r)
{
    fputs("<div class=\"tiles\">\n", f);
    put_tile(f, "", r->compared, "compared");
    for (int o = 0; o < OUTCOMES; o++) {
        const bool bad = report_failing((tt_outcome)o);
        if (!r->count[o] && o != TT_PASS && o != TT_MISMATCH) continue;
        put_tile(f, !r->count[o] ? "" : bad ? "bad" : o == TT_PASS ? "ok"
                 : "tie", r->count[o], tt_outcome_name((tt_outcome)o));
    }
    fputs("</div>\n", f);
}

static void put_fact(FILE *f, const char *name, const char *value, bool code)
{
    fprintf(f, "<dt>%s</dt><dd>", name);
    if (code) put_in(f, "code", value);
    else page_xml(f, value);
    fputs("</dd>\n", f);
}

static void put_facts(FILE *f, const tt_report *r)
{
    char buf[512];
    fputs("<dl class=\"facts\">\n", f);
    for (const note_item *i = r->facts; i; i = i->next)
        put_fact(f, i->name, i->text, !strcmp(i->name, "command"));
    if (r->arith) {
        const char *said = r->arith->summary ? r->arith->summary : "";
        if (r->arith->bits)
            snprintf(buf, sizeof buf, "class %s: %s", r->arith->name, said);
        else
            snprintf(buf, sizeof buf, "%d times what %s errs on the same "
                     "inputs (%s)", TT_SLACK, r->arith->name, said);
        put_fact(f, "limits", buf, false);
    }
    put_fact(f, "machine", page_machine(buf, sizeof buf), false);
    put_fact(f, "date", page_date(buf, sizeof buf), false);
    snprintf(buf, sizeof buf, "tether %s (%s), %s, computes in %s",
             tt_version(), tt_git_revision(), tt_compiler(), tt_real_name());
    put_fact(f, "program", buf, false);
    fputs("</dl>\n", f);
}

/* A note that a fact says too: "seed 1" and the fact seed, 1. */
static bool is_fact(const tt_report *r, const char *note)
{
    if (r->arith && !strncmp(note, "arithmetic ", 11)) return true;
    for (const note_item *i = r->facts; i; i = i->next) {
        const size_t n = strlen(i->name);
        if (!strncmp(note, i->name, n) && note[n] == ' '
            && !strcmp(note + n + 1, i->text)) return true;
    }
    return false;
}

static void put_notes(FILE *f, const tt_report *r)
{
    bool begun = false;
    for (const note_item *i = r->notes; i; i = i->next) {
        if (is_fact(r, i->text)) continue;
        fputs(begun ? "<li>" : "<ul class=\"notes\">\n<li>", f);
        begun = true;
        page_xml(f, i->text);
        fputs("</li>\n", f);
    }
    if (begun) fputs("</ul>\n", f);
}

static void put_top(FILE *f, const tt_report *r)
{
    const bool passed = tt_report_passed(r);
    fprintf(f, "<header class=\"top\">\n<div class=\"said %s\"><p "
            "class=\"kicker\">tether &middot; ", passed ? "pass" : "fail");
    page_xml(f, r->title);
    fprintf(f, "</p>\n<h1 class=\"%s\">%s</h1>\n<p class=\"lead\">",
            passed ? "ok" : "bad", passed ? "PASS" : "FAIL");
    if (r->failed) put_failed(f, r);
    else put_passed(f, r);
    if (r->equal_of) put_equal(f, r);
    fputs("</p></div>\n", f);
    put_tiles(f, r);
    put_facts(f, r);
    fputs("</header>\n", f);
    put_notes(f, r);
}

/* ---- rows ---------------------------------------------------------------- */

static void put_cell(FILE *f, double x)
{
    char buf[32];
    if (isinf(x)) fprintf(f, "<td>%s&infin;</td>", x < 0 ? "-" : "");
    else fprintf(f, "<td>%s</td>", page_number(buf, sizeof buf, x, 3));
}

/* Name, operator and hint in one cell, so that numbers stay narrow. */
static void put_row(FILE *f, const tt_verdict *v)
{
    char shape[200];
    const bool has = v->m.n > 0;
    fputs("<tr><td>", f);
    if (v->outcome != TT_PASS)
        fprintf(f, "<span class=\"pill %s\">%s</span> ",
                report_failing(v->outcome) ? "bad" : "tie",
                tt_outcome_name(v->outcome));
    put_in(f, "code", v->path);
    if (*v->op) {
        fputs(" <span class=\"soft\">", f);
        page_xml(f, v->op);
        fputs("</span>", f);
    }
    if (*v->hint) put_in(f, "p", v->hint);
    fprintf(f, "</td><td>%s</td>",
            tt_shape_string(shape, sizeof shape, v->rank, v->dim));
    put_cell(f, has ? v->m.max_abs : NAN);
    put_cell(f, has ? v->m.rel_l2 : NAN);
    put_cell(f, has ? v->ratio : NAN);
    fputs("<td>", f);
    if (has) page_xml(f, v->where);
    fputs("</td></tr>\n", f);
}

static void begin_rows(FILE *f, const tt_report *r)
{
    fprintf(f, "<table class=\"rows v\">\n<thead><tr><th>tensor</th><th "
            "class=\"w\">shape</th><th>largest error</th><th>relative L2</th>"
            "<th>times allowed</th><th class=\"w\">%s at</th></tr></thead>\n"
            "<tbody>\n", by_bits(r) ? "first" : "worst");
}

static void end_rows(FILE *f)
{
    fputs("</tbody></table>\n", f);
}

static void begin_folded(FILE *f, int64_t n, const char *what)
{
    fputs("<details><summary>", f);
    page_count(f, n);
    fprintf(f, " %s</summary>\n", what);
}

static void put_left(FILE *f, int64_t left)
{
    if (left <= 0) return;
    fputs("<p class=\"soft\">", f);
    page_count(f, left);
    fputs(" more are left out of this page; <code>--json</code> has them "
          "all.</p>\n", f);
}

/* Failures in order, the first in sight, the others folded. */
static void put_failures(FILE *f, const tt_report *r)
{
    int64_t n = 0, all = 0;
    for (int o = 0; o < OUTCOMES; o++)
        if (report_failing((tt_outcome)o)) all += r->count[o];
    if (!all) return;
    fputs("<h2>Failures</h2>\n<p>In order of execution: what comes later may "
          "follow from the first.</p>\n", f);
    begin_rows(f, r);
    for (const verdict_item *i = r->first; i && n < ROWS_MAX; i = i->next) {
        if (!report_failing(i->v.outcome)) continue;
        if (n++ == FIRST_SHOWN) {
            end_rows(f);
            begin_folded(f, all - FIRST_SHOWN, "more failures");
            begin_rows(f, r);
        }
        put_row(f, &i->v);
    }
    end_rows(f);
    put_left(f, all - n);
    if (n > FIRST_SHOWN) fputs("</details>\n", f);
}

/* The other numbers of the failures. */
static void put_numbers(FILE *f, const tt_report *r)
{
    static const char *const column[] = {
        "tensor", "SNR, dB", "cosine", "mean ULP", "max ULP", "median error",
        "99 % error", "limit at the worst row", "NaN", "Inf", "denormal"};
    enum { COLUMNS = sizeof column / sizeof column[0], MOST = 200 };
    int64_t n = 0;
    if (!r->failed) return;
    fputs("<details><summary>Further numbers of the failures</summary>\n"
          "<div class=\"wide\"><table>\n<thead><tr>", f);
    for (int i = 0; i < COLUMNS; i++) fprintf(f, "<th>%s</th>", column[i]);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (const verdict_item *i = r->first; i; i = i->next) {
        const tt_verdict *v = &i->v;
        if (!report_failing(v->outcome) || v->m.n < 1 || n++ >= MOST) continue;
        const double number[] = {v->m.snr_db, v->m.cosine, v->m.mean_ulp,
                                 v->m.max_ulp, v->m.q50, v->m.q99,
                                 r->arith ? TT_SLACK * v->earned : NAN};
        fputs("<tr><td>", f);
        put_in(f, "code", v->path);
        fputs("</td>", f);
        for (size_t k = 0; k < sizeof number / sizeof number[0]; k++)
            put_cell(f, number[k]);
        fprintf(f, "<td>%lld</td><td>%lld</td><td>%lld</td></tr>\n",
                (long long)v->m.nan, (long long)v->m.inf,
                (long long)v->m.denormal);
    }
    fputs("</tbody></table></div>\n", f);
    put_left(f, n - MOST);
    fputs("</details>\n", f);
}

/* ---- by operator --------------------------------------------------------- */

typedef struct group {
    const char *op;
    int64_t compared, wrong;
    double worst;
} group;

/* Operators in order of appearance; false when there are too many. */
static bool find_groups(group *g, int *n, const tt_report *r)
{
    *n = 0;
    for (const verdict_item *i = r->first; i; i = i->next) {
        int k = 0;
        while (k < *n && strcmp(g[k].op, i->v.op)) k++;
        if (k == GROUPS_MAX) return false;
        if (k == *n) g[(*n)++] = (group){.op = i->v.op};
        g[k].compared += i->v.outcome != TT_UNJUDGED;
        g[k].wrong += report_failing(i->v.outcome);
        if (i->v.m.n > 0 && i->v.ratio > g[k].worst) g[k].worst = i->v.ratio;
    }
    return true;
}

static void put_group(FILE *f, const group *g)
{
    char buf[32];
    fputs("<tr><td>", f);
    put_in(f, "code", *g->op ? g->op : "other tensors");
    fputs("</td><td>", f);
    page_count(f, g->compared);
    fprintf(f, "</td><td%s>", g->wrong ? " class=\"bad\"" : "");
    page_count(f, g->wrong);
    fprintf(f, "</td><td><span class=\"bar%s\"><i style=\"width:%.0f%%\"></i>"
            "</span><span>%s</span></td></tr>\n", g->worst > 1 ? " bad" : "",
            100 * fmin(g->worst, 1), isinf(g->worst) ? "&infin;"
            : page_number(buf, sizeof buf, g->worst, 2));
}

static void begin_groups(FILE *f)
{
    fputs("<table>\n<thead><tr><th>operator</th><th>compared</th><th>wrong"
          "</th><th>worst, times allowed</th></tr></thead>\n<tbody>\n", f);
}

/* Those with failures first; of many the last are folded. */
static void put_groups(FILE *f, const tt_report *r)
{
    group g[GROUPS_MAX];
    const int shown = r->failed ? 6 : 20;
    int n, done = 0;
    if (!find_groups(g, &n, r) || n < 2) return;
    fputs("<h2>By operator</h2>\n<p>The worst error of each, in parts of what "
          "is allowed there: more than 1 is wrong.</p>\n", f);
    begin_groups(f);
    for (int wrong = 1; wrong >= 0; wrong--)
        for (int i = 0; i < n; i++) {
            if ((g[i].wrong > 0) != wrong) continue;
            if (done++ == shown) {
                end_rows(f);
                begin_folded(f, n - shown, "more operators");
                begin_groups(f);
            }
            put_group(f, &g[i]);
        }
    end_rows(f);
    if (n > shown) fputs("</details>\n", f);
}

/* ---- the rest ------------------------------------------------------------ */

static void put_others(FILE *f, const tt_report *r, bool passes, int64_t all,
                       const char *what)
{
    const int64_t most = passes ? PASSES_MAX : ROWS_MAX;
    int64_t n = 0;
    if (!all) return;
    begin_folded(f, all, what);
    begin_rows(f, r);
    for (const verdict_item *i = r->first; i && n < most; i = i->next) {
        if (report_failing(i->v.outcome)) continue;
        if ((i->v.outcome == TT_PASS) != passes) continue;
        put_row(f, &i->v);
        n++;
    }
    end_rows(f);
    put_left(f, all - n);
    fputs("</details>\n", f);
}

static void put_rest(FILE *f, const tt_report *r)
{
    const int64_t others = r->count[TT_TIE] + r->count[TT_UNJUDGED];
    if (!r->first) return;
    fputs("<h2>Everything else</h2>\n", f);
    put_others(f, r, false, others, "ties in selections, and what could not "
               "be judged");
    put_numbers(f, r);
    put_others(f, r, true, r->count[TT_PASS], "passed");
}

tt_status tt_report_html(tt_ctx *ctx, const tt_report *r, const char *path)
{
    report_out o;
    TT_TRY(report_open(ctx, &o, path));
    fprintf(o.f, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
            "charset=\"utf-8\">\n<meta name=\"generator\" "
            "content=\"tether %s\">\n<meta name=\"verdict\" content=\"%s\">\n"
            "<meta name=\"viewport\" "
            "content=\"width=device-width, initial-scale=1\">\n<title>",
            tt_version(), tt_report_passed(r) ? "PASS" : "FAIL");
    fputs(tt_report_passed(r) ? "PASS: " : "FAIL: ", o.f);
    page_xml(o.f, r->title);
    fprintf(o.f, "</title>\n<style>%s%s%s</style>\n</head>\n<body>\n",
            page_style[0], page_style[1], style);
    put_top(o.f, r);
    put_failures(o.f, r);
    report_growth(o.f, r);
    report_maps(o.f, r);
    put_groups(o.f, r);
    put_rest(o.f, r);
    fputs("</body>\n</html>\n", o.f);
    return report_close(ctx, &o, path);
}
