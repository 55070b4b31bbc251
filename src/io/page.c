/* page.c: see page.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * build/.../gen/viewer.h, which make writes, has the bytes of viewer_style and
 * viewer_script. */
#include "io/page.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "core/utf8.h"
#include "io/jsonout.h"
#include "io/io.h"
#include "core/threads.h"
#include "os/os.h"
#include "tether/version.h"
#include "viewer.h"

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

void page_base64(FILE *f, const uint8_t *p, size_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
                                "qrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t x = (uint32_t)p[i] << 16;
        if (i + 1 < n) x |= (uint32_t)p[i + 1] << 8;
        if (i + 2 < n) x |= p[i + 2];
        fputc(digit[x >> 18], f);
        fputc(digit[x >> 12 & 63], f);
        fputc(i + 1 < n ? digit[x >> 6 & 63] : '=', f);
        fputc(i + 2 < n ? digit[x & 63] : '=', f);
    }
}

void page_number(FILE *f, double x, int digits)
{
    if (isfinite(x)) fprintf(f, "%.*g", digits, x);
    else fputs("null", f);
}

/* ---- what was run where -------------------------------------------------- */

/* "AMD EPYC 9R14, 2 cores, Linux 6.1.0 x86_64", as far as it can be found. */
static const char *machine(char *buf, size_t n)
{
    char cpu[256];
    struct utsname os;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    os_cpu_name(cpu, sizeof cpu);
    if (!*cpu) tt_cpu_features(cpu, sizeof cpu);
    if (uname(&os)) memset(&os, 0, sizeof os);
    snprintf(buf, n, "%s, %ld core%s, %s %s %s", cpu, cores,
             cores == 1 ? "" : "s", os.sysname, os.release, os.machine);
    return buf;
}

/* "2026-03-14 15:09 UTC". The time is that of SOURCE_DATE_EPOCH where this
 * variable is set, so that pages can be compared byte by byte. */
static const char *date(char *buf, size_t n)
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

static void fact(FILE *f, const char *name, const char *value)
{
    fputc('[', f);
    json_string(f, name);
    fputs(", ", f);
    json_string(f, value);
    fputc(']', f);
}

void page_facts(FILE *f, const char *const *given)
{
    char buf[512];
    fputs("\"facts\": [", f);
    for (; given && given[0] && given[1]; given += 2) {
        fact(f, given[0], given[1]);
        fputs(",\n", f);
    }
    fact(f, "machine", machine(buf, sizeof buf));
    fputs(",\n", f);
    fact(f, "date", date(buf, sizeof buf));
    fputs(",\n", f);
    snprintf(buf, sizeof buf, "tether %s (%s), %s, computes in %s",
             tt_version(), tt_git_revision(), tt_compiler(), tt_real_name());
    fact(f, "program", buf);
    fputc(']', f);
}

/* ---- the page ------------------------------------------------------------ */

/* "'sha256-...'": what the policy allows. */
static void put_hash(FILE *f, const unsigned char *text, size_t n)
{
    tt_sha256 s;
    char hex[65];
    uint8_t sum[32];
    tt_sha256_init(&s);
    tt_sha256_add(&s, text, n);
    tt_sha256_hex(&s, hex);
    for (int i = 0; i < 32; i++) {
        unsigned byte;
        sscanf(hex + 2 * i, "%2x", &byte);
        sum[i] = (uint8_t)byte;
    }
    fputs("'sha256-", f);
    page_base64(f, sum, sizeof sum);
    fputc('\'', f);
}

void page_open(FILE *f, const char *title, const char *verdict)
{
    fprintf(f, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
            "charset=\"utf-8\">\n<meta name=\"generator\" content=\"tether "
            "%s\">\n", tt_version());
    if (verdict)
        fprintf(f, "<meta name=\"verdict\" content=\"%s\">\n", verdict);
    fputs("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
          "'none'; img-src data:; base-uri 'none'; form-action 'none'; "
          "style-src ", f);
    put_hash(f, viewer_style, sizeof viewer_style);
    fputs("; script-src ", f);
    put_hash(f, viewer_script, sizeof viewer_script);
    fputs("\">\n", f);
    fputs("<meta name=\"viewport\" content=\"width=device-width, "
          "initial-scale=1\">\n<title>", f);
    page_xml(f, title);
    fputs("</title>\n<style>", f);
    fwrite(viewer_style, 1, sizeof viewer_style, f);
    fputs("</style>\n</head>\n<body>\n<main id=\"plain\">\n", f);
}

void page_data(FILE *f)
{
    fputs("<p class=\"soft\">Curves, maps and the rest of the numbers are "
          "shown where scripts may run: they are all in this file.</p>\n"
          "</main>\n"
          "<script type=\"application/json\" id=\"data\">", f);
}

void page_close(FILE *f)
{
    fputs("</script>\n<script type=\"module\">", f);
    fwrite(viewer_script, 1, sizeof viewer_script, f);
    fputs("</script>\n</body>\n</html>\n", f);
}
