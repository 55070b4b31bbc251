/* page.c: see page.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "core/page.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "core/utf8.h"
#include "tether/version.h"

/* Two strings: C promises no more than 4095 bytes for one. */
const char *const page_style[2] = {
    ":root{color-scheme:light dark;--paper:#fff;--card:#f6f8fa;--ink:#1f2328;"
    "--soft:#59636e;--line:#d5dbe1;--ok:#1a7f37;--okbg:#dafbe1;--bad:#c21f2c;"
    "--badbg:#ffebe9;--tie:#8a5a00;--tiebg:#fff4c4;--mark:#d55e00}"
    "@media screen and (prefers-color-scheme:dark){:root{--paper:#0f141a;"
    "--card:#181f27;--ink:#e2e8ee;--soft:#95a1ae;--line:#2f3943;--ok:#4ac26b;"
    "--okbg:#12301c;--bad:#ff7b72;--badbg:#3d1719;--tie:#e3b341;"
    "--tiebg:#332a10;--mark:#f0883e}}"
    "*{box-sizing:border-box}"
    "html{-webkit-text-size-adjust:100%}"
    "body{font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,"
    "Arial,sans-serif;color:var(--ink);background:var(--paper);"
    "max-width:1180px;margin:0 auto;padding:24px 20px 64px}"
    "h1,h2,p,dl,dd,figure{margin:0}"
    "h1{font-size:30px;line-height:1.2;letter-spacing:-.01em}"
    "h2{font-size:20px;margin:44px 0 4px}"
    "h2+p{color:var(--soft);margin:0 0 14px;max-width:46em}"
    "code{font:.92em/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,"
    "'DejaVu Sans Mono',monospace;overflow-wrap:anywhere}"
    "summary{cursor:pointer;color:var(--soft);padding:8px 0;font-size:15px}"
    "summary:hover{color:var(--ink)}"
    ".ok{color:var(--ok)}.bad{color:var(--bad)}.tie{color:var(--tie)}"
    ".soft{color:var(--soft)}"
    /* the first screen */
    ".top{border:1px solid var(--line);border-radius:12px;overflow:hidden}"
    ".top>*{padding:18px 24px}"
    ".said{border-left:8px solid var(--line)}"
    ".said.pass{background:var(--okbg);border-color:var(--ok)}"
    ".said.fail{background:var(--badbg);border-color:var(--bad)}"
    ".kicker{color:var(--soft);font-size:14px;margin-bottom:4px;"
    "overflow-wrap:anywhere}"
    ".lead{font-size:18px;margin-top:8px;max-width:54em;"
    "overflow-wrap:anywhere}"
    ".tiles{display:flex;flex-wrap:wrap;gap:10px 40px;"
    "border-top:1px solid var(--line)}"
    ".tile{font-size:14px;color:var(--soft);line-height:1.3}"
    ".tile b{display:block;font-size:26px;font-weight:600;color:var(--ink);"
    "font-variant-numeric:tabular-nums}"
    ".tile.ok b{color:var(--ok)}.tile.bad b{color:var(--bad)}"
    ".tile.tie b{color:var(--tie)}"
    ".facts{display:grid;grid-template-columns:max-content 1fr;gap:5px 22px;"
    "background:var(--card);border-top:1px solid var(--line);font-size:15px}"
    ".facts dt{color:var(--soft)}.facts dd{overflow-wrap:anywhere}"
    ".notes{margin:14px 0 0;padding-left:20px;color:var(--soft);"
    "font-size:15px;overflow-wrap:anywhere}"
    /* tables */
    "table{border-collapse:collapse;width:100%;font-size:14px;"
    "font-variant-numeric:tabular-nums}"
    "th,td{padding:7px 10px;border-bottom:1px solid var(--line);"
    "text-align:right;vertical-align:top}"
    "th{font-weight:600;color:var(--soft);vertical-align:bottom}"
    "th:first-child,td:first-child{text-align:left}"
    "td:first-child{overflow-wrap:anywhere;min-width:9em}"
    ".rows{table-layout:fixed}.rows th:first-child{width:auto}"
    ".rows td:last-child{overflow-wrap:anywhere}"
    ".rows td:first-child p{color:var(--soft);margin-top:2px}"
    ".rows th{width:7.4em}.rows th.w{width:9.5em}"
    ".pill{font-size:12px;font-weight:600;padding:1px 8px;border-radius:9px;"
    "background:var(--card);color:var(--soft);white-space:nowrap}"
    ".pill.bad{background:var(--badbg);color:var(--bad)}"
    ".pill.tie{background:var(--tiebg);color:var(--tie)}"
    ".bar{display:inline-block;width:120px;height:8px;margin-right:10px;"
    "border-radius:4px;background:var(--line);overflow:hidden;"
    "vertical-align:middle}.bar i{display:block;height:100%;"
    "background:var(--ok)}.bar.bad i{background:var(--bad)}"
    ".bar+span{display:inline-block;min-width:4.6em}"
    ".wide{overflow-x:auto}.wide td,.wide th{white-space:nowrap}"
    ,
    /* pictures */
    ".plots{display:grid;gap:22px 28px;grid-template-columns:"
    "repeat(auto-fill,minmax(min(100%,480px),1fr));align-items:start}"
    "svg{max-width:100%;height:auto;display:block}"
    ".plots text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,"
    "Arial,sans-serif;fill:var(--ink)}.plots .s{fill:var(--soft)}"
    ".plots .g{stroke:var(--line);stroke-width:1}"
    ".plots .a{stroke:var(--soft);stroke-width:1;fill:none}"
    "figcaption{font-size:14px;color:var(--soft);overflow-wrap:anywhere}"
    "figcaption b,figcaption code{color:var(--ink)}"
    ".key{display:inline-block;margin-right:18px;white-space:nowrap}"
    ".key svg{display:inline-block;vertical-align:middle;margin-right:6px}"
    "footer{margin-top:48px;color:var(--soft);font-size:14px}"
    "@media(max-width:640px){body{padding:10px 12px 40px}h1{font-size:24px}"
    "h2{font-size:18px;margin-top:32px}.top>*{padding:14px 16px}"
    ".lead{font-size:16px}.tiles{gap:10px 26px}"
    "th,td{padding:6px 6px}.bar{display:none}"
    ".facts{grid-template-columns:1fr;gap:0}.facts dd{margin-bottom:8px}"
    ".rows,.rows tbody,.rows tr,.rows td{display:block;width:auto}"
    ".rows thead{display:none}"
    ".rows tr{padding:9px 0;border-bottom:1px solid var(--line);"
    "display:flex;flex-wrap:wrap;gap:2px 16px}"
    ".rows td{border:0;padding:0;text-align:left}"
    ".rows td:first-child{flex:1 0 100%}"
    ".rows td:empty{display:none}.rows td::before{color:var(--soft)}}"
    "@media print{body{max-width:none;padding:0;font-size:11pt}"
    "*{-webkit-print-color-adjust:exact;print-color-adjust:exact}"
    "figure,tr{break-inside:avoid}h2{break-after:avoid}}"};

/* ---- the machine --------------------------------------------------------- */

/* "model name : AMD EPYC" of /proc/cpuinfo; "" where it says no name. */
static void cpu_name(char *buf, size_t n)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    *buf = '\0';
    while (f && !*buf && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10)) continue;
        snprintf(buf, n, "%s", colon + 1 + strspn(colon + 1, " \t"));
        buf[strcspn(buf, "\n")] = '\0';
    }
    if (f) fclose(f);
}

const char *page_machine(char *buf, size_t n)
{
    char cpu[256];
    struct utsname os;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_name(cpu, sizeof cpu);
    if (!*cpu) tt_cpu_features(cpu, sizeof cpu);
    if (uname(&os)) memset(&os, 0, sizeof os);
    snprintf(buf, n, "%s, %ld core%s, %s %s %s", cpu, cores,
             cores == 1 ? "" : "s", os.sysname, os.release, os.machine);
    return buf;
}

/* ---- time ---------------------------------------------------------------- */

const char *page_date(char *buf, size_t n)
{
    const char *given = getenv("SOURCE_DATE_EPOCH");
    char *end = NULL;
    struct tm tm;
    errno = 0;
    long long at = given && *given ? strtoll(given, &end, 10) : 0;
    if (!end || *end || errno) at = (long long)time(NULL);
    const time_t t = (time_t)at;
    if (!gmtime_r(&t, &tm) || !strftime(buf, n, "%Y-%m-%d %H:%M UTC", &tm))
        snprintf(buf, n, "unknown");
    return buf;
}

const char *page_duration(char *buf, size_t n, double seconds)
{
    const double s = seconds;
    if (!(s >= 0 && s < 1e9)) snprintf(buf, n, "unknown");
    else if (s < 9.95) snprintf(buf, n, "%.1f s", s);
    else if (s < 59.5) snprintf(buf, n, "%.0f s", s);
    else if (s < 3569.5) snprintf(buf, n, "%d min %d s", (int)(s + 0.5) / 60,
                                  (int)(s + 0.5) % 60);
    else snprintf(buf, n, "%d h %d min", (int)(s / 60 + 0.5) / 60,
                  (int)(s / 60 + 0.5) % 60);
    return buf;
}

/* ---- numbers ------------------------------------------------------------- */

const char *page_number(char *buf, size_t n, double x, int digits)
{
    char text[64];
    double limit = 1;
    for (int i = 0; i < digits; i++) limit *= 10;
    const bool whole = fabs(x) >= limit && fabs(x) < 1e6;
    *text = '\0';
    if (!isnan(x)) snprintf(text, sizeof text, whole ? "%.*f" : "%.*g",
                            whole ? 0 : digits, x);
    char *e = strchr(text, 'e');
    const int power = e ? atoi(e + 1) : 0;
    if (e) *e = '\0';
    if (e) snprintf(buf, n, "%se%d", text, power);
    else snprintf(buf, n, "%s", text);
    return buf;
}

/* ---- text ---------------------------------------------------------------- */

/* Characters XML 1.0 has no place for although they are UTF-8. */
static bool xml_refuses(const unsigned char *s, int n)
{
    if (n == 1) return *s < 0x20 ? *s != '\t' && *s != '\n' : *s == 0x7f;
    /* U+0080..9F are discouraged, U+FFFE and U+FFFF are not characters */
    if (n == 2) return s[0] == 0xc2 && s[1] < 0xa0;
    return n == 3 && s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe;
}

void page_xml(FILE *f, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        const int n = utf8_length((const char *)s);
        if (n == 0 || xml_refuses(s, n) || utf8_turns((const char *)s))
            fputs("\xef\xbf\xbd", f);
        else if (*s == '<') fputs("&lt;", f);
        else if (*s == '>') fputs("&gt;", f);
        else if (*s == '&') fputs("&amp;", f);
        else if (*s == '"') fputs("&quot;", f);
        else if (*s == '\'') fputs("&#39;", f);
        else if (*s == '\n') fputs("&#10;", f);
        else fwrite(s, 1, (size_t)n, f);
        s += n ? n : 1;
    }
}

void page_count(FILE *f, int64_t n)
{
    char digits[32];
    const int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
    for (int i = 0; i < len; i++)
        fprintf(f, "%s%c", i && (len - i) % 3 == 0 ? "," : "", digits[i]);
}

void page_times(FILE *f, double x)
{
    char buf[32];
    if (!(x >= 1000)) fprintf(f, "%.3g", x);
    else if (x < 1e6) fprintf(f, "%.3g thousand", x / 1e3);
    else if (x < 1e9) fprintf(f, "%.3g million", x / 1e6);
    else fputs(page_number(buf, sizeof buf, x, 2), f);
}

/* ---- pictures ------------------------------------------------------------ */

void page_text_at(FILE *f, double x, double y, const char *anchor,
                  const char *s)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x,
            y, anchor, s);
}

void page_name_at(FILE *f, int x, int y, const char *s)
{
    fprintf(f, "<text class=\"s\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">"
            "%s</text>\n", x, y, s);
}

void page_turned_at(FILE *f, double x, double y, const char *s)
{
    fprintf(f, "<text class=\"s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
            "transform=\"rotate(-90 %.1f %.1f)\">%s</text>\n", x, y, x, y, s);
}

void page_line_at(FILE *f, const char *class, double x0, double y0, double x1,
                   double y1)
{
    fprintf(f, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
            "y2=\"%.1f\"/>\n", class, x0, y0, x1, y1);
}

void page_begin_svg(FILE *f, double w, double h, const char *what)
{
    fprintf(f, "<svg role=\"img\" aria-label=\"%s\" width=\"%.0f\" "
            "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n", what, w, h, w, h);
}
