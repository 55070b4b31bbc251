/* test_pages.c: the HTML pages of validate, diff and compare.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties     what the first screen must hold is there; nothing is fetched
 *                and no script runs; the same run gives the same bytes where
 *                the date is given; in a browser no page is wider than its
 *                window, no text stands one letter per line, words of pictures
 *                do not cover each other, and a run of 5,926 failures is less
 *                than 5,000 pixels high until it is unfolded. */
#include "tests/cli/browser.h"

#include <math.h>

#include "tether/validate.h"
#include "tether/video.h"

enum { ROWS = 5926, HIGHEST = 5000 };

static char model[1100], inputs[1100];
static const char *chromium;

static int64_t file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) ? -1 : (int64_t)st.st_size;
}

/* ---- in a browser -------------------------------------------------------- */

static void look_at(const char *what, const char *page, int highest)
{
    page_size size[2];
    if (!chromium) return;
    if (!expect(page_measure(size, chromium, page), "%s: the browser measured "
                "it in both widths", what)) return;
    for (int i = 0; i < 2; i++) {
        const page_size *p = &size[i];
        expect(p->high > 300 && p->high < highest, "%s, %d pixels wide: %d "
               "high", what, p->width, p->high);
        expect(p->beyond == 0, "%s, %d wide: %d pixels stick out", what,
               p->width, p->beyond);
        expect(!p->narrow && !p->overlap && !p->cut, "%s, %d wide: %d texts "
               "letter by letter, %d words on others, %d cut off (%s)", what,
               p->width, p->narrow, p->overlap, p->cut, p->what);
    }
}

/* Share of the upper 300 rows of a screenshot that is light red. */
static double redness(const char *page)
{
    tt_arena mem = {0};
    uint8_t *rgb;
    int64_t w, h, n = 0;
    char option[600];
    snprintf(option, sizeof option, "--window-size=%d,900 --screenshot='%s'",
             DESKTOP, at("shot.png"));
    if (browse(chromium, page, option, at("out"))) return NAN;
    if (!expect_ok(tt_picture_read(ctx, &mem, &rgb, &w, &h, at("shot.png")),
                   "the screenshot")) return NAN;
    for (int64_t i = 0; i < 300 * w && h >= 300; i++)
        n += rgb[3 * i] > 230 && rgb[3 * i + 1] < rgb[3 * i] - 10;
    tt_arena_free(&mem);
    return (double)n / (300 * (double)w);
}

/* ---- a page of everything at its worst ----------------------------------- */

/* Failure i: names as long as they may be, or without a place to break; hints;
 * shapes of every rank; maps. */
static void add_failure(tt_report *r, int i)
{
    enum { N = 96 };
    static double got[N], want[N];
    tt_verdict v = {.op = i % 3 ? "linear" : "layer_norm, modulate, linear",
                    .outcome = i % 50 == 49 ? TT_MISSING : TT_MISMATCH,
                    .rank = 1 + i % 3, .dim = {N, 1, 1}, .earned = 1e-7,
                    .ratio = i % 5 ? 1234.5 * i : INFINITY};
    if (v.rank > 1) v.dim[0] = 8, v.dim[1] = N / 8;
    if (i % 10 == 9)
        memset(v.path, 'a' + i % 26, sizeof v.path - 1);
    else
        snprintf(v.path, sizeof v.path, "chunk.%d/step.%d/block.%d/self_attn.q"
                 "#linear.%d", i / 300, i / 60 % 5, i / 2 % 30, i % 2);
    snprintf(v.where, sizeof v.where, "[%d, %d, 123456]", i, i % 7);
    snprintf(v.hint, sizeof v.hint, "low precision: error like rounding to 7 "
             "bits (f32 has 24, f16 and tf32 11, bf16 8) somewhere inside");
    for (int k = 0; k < N; k++) {
        want[k] = sin(k + i);
        got[k] = want[k] * (1 + (i % 4 ? 1e-3 * k / N : 1e-6)) ;
        if (i % 6 == 5 && k == 7) got[k] = NAN;
    }
    if (v.outcome == TT_MISMATCH) tt_metrics_measure(&v.m, got, want, N);
    tt_report_add(r, &v, got, want);
}

static void add_passes(tt_report *r, int n)
{
    for (int i = 0; i < n; i++) {
        const double x[2] = {1, 2};
        tt_verdict v = {.op = i % 2 ? "silu" : "rope", .rank = 1, .dim = {2},
                        .outcome = i % 40 ? TT_PASS : TT_UNJUDGED,
                        .ratio = 0.5, .earned = 1e-7};
        snprintf(v.path, sizeof v.path, "op.silu.normal n=%d seed 1", i);
        tt_metrics_measure(&v.m, x, x, 2);
        tt_report_add(r, &v, NULL, NULL);
    }
}

/* A report with `failures` of them. NULL after a failed check. */
static tt_report *make_report(int failures)
{
    tt_report *r;
    if (!expect_ok(tt_report_new(ctx, &r, "validate ./plug-in.so",
                                 tt_arith_find("bf16")), "report"))
        return NULL;
    tt_report_fact(r, "command", "tether validate --backend ./plug-in.so "
                   "--html a/very/long/path/to/a/report/of/a/validation.html");
    tt_report_fact(r, "seed", "%d", 7);
    tt_report_note(r, "seed %d", 7);
    tt_report_note(r, "no VAE: the decoder is not checked");
    for (int i = 0; i < failures; i++) add_failure(r, i);
    add_passes(r, 300);
    for (int i = 0; i < 80; i++) {
        tt_report_grow(r, &(tt_growth){"teacher forced", i, 1e-2, 1e-4});
        tt_report_grow(r, &(tt_growth){"free running", i, 1e-5 * i * i, 1e-4});
    }
    return r;
}

static void test_failing(void)
{
    tt_report *r = make_report(ROWS);
    if (!r) return;
    expect_ok(tt_report_html(ctx, r, at("bad.html")), "html");
    expect_ok(tt_report_html(ctx, r, at("again.html")), "html");
    expect(same(at("bad.html"), at("again.html")), "the same bytes twice");
    const int64_t size = file_size(at("bad.html"));
    expect(size > 10000 && size < 1500000, "%lld bytes", (long long)size);
    const char *page = text_of(at("bad.html"));
    expect(strstr(page, ">FAIL</h1>") && strstr(page, "2001-09-09 01:46 UTC")
           && strstr(page, "<dt>machine</dt>") && strstr(page, "<dt>seed</dt>")
           && strstr(page, "<dt>command</dt>"), "the first screen");
    expect(strstr(page, "chunk 0, step 0, block 0, self_attn.q, call 0 of "
                  "linear") != NULL, "the first wrong tensor in words");
    expect(!strstr(page, "<script") && !strstr(page, "http"), "no script");
    look_at("a failing report", at("bad.html"), HIGHEST);
    if (chromium) {
        const double red = redness(at("bad.html"));
        expect(red > 0.25, "a screenshot shows the verdict (%.2f of it red)",
               red);
    }
    tt_report_free(r);
}

static void test_passing(void)
{
    tt_report *r = make_report(0);
    if (!r) return;
    expect_ok(tt_report_html(ctx, r, at("good.html")), "html");
    const char *page = text_of(at("good.html"));
    expect(strstr(page, ">PASS</h1>") && !strstr(page, "<h2>Failures</h2>")
           && strstr(page, "at 50&nbsp;% of it"), "a page that passes");
    expect(strstr(page, "text-anchor=\"end\">0</text>") != NULL,
           "an error of 0 does not lie on a power of ten");
    look_at("a passing report", at("good.html"), HIGHEST);
    tt_report_free(r);
}

/* A tensor of one element has a verdict and no map; a vector's lies across. */
static void test_maps(void)
{
    const double got[8] = {1, 2, 3, 4, 5, 6, 7, 9}, want[8] = {2, 2, 3, 4, 5, 6,
                                                               7, 8};
    for (int i = 0; i < 2; i++) {
        tt_report *r;
        const int n = i ? 8 : 1;
        tt_verdict v = {.path = "x", .op = "", .outcome = TT_MISMATCH,
                        .rank = 1, .dim = {n}, .earned = 1e-3};
        if (!expect_ok(tt_report_new(ctx, &r, "maps", tt_arith_find("f32")),
                       "report")) return;
        tt_metrics_measure(&v.m, got, want, n);
        tt_report_add(r, &v, got, want);
        expect_ok(tt_report_html(ctx, r, at("map.html")), "html");
        const char *page = text_of(at("map.html"));
        expect((strstr(page, "where the error is\"") != NULL) == (i == 1),
               "%d elements: %s map", n, i ? "a" : "no");
        if (i)
            expect(strstr(page, "columns: 8") && strstr(page, " limit<")
                   && strstr(page, "M0 0.5h1M7 0.5h1"), "axis and limit");
        tt_report_free(r);
    }
}

/* ---- by the program ------------------------------------------------------ */

static void test_diff(void)
{
    const char *small = "-W 48 -H 32 --latents 3 --no-decode -q --latents-out";
    for (int i = 0; i < 2; i++)
        expect(run("generate -m %s --embeds %s %s l%d --seed %d --dump d%d",
                   model, inputs, small, i, i, i) == 0, "a dump: %s", said);
    expect(run("diff d0 d1 --html 'a page.html' > said") == 1, "they differ");
    const char *page = text_of(at("a page.html"));
    expect(strstr(page, "tether diff d0 d1 --html &#39;a page.html&#39;")
           && strstr(page, "every bit counts"), "command and limits");
    look_at("diff", at("a page.html"), HIGHEST);
    expect(run("validate --dump d0 --against d1 --html v.html > said") == 1,
           "a mismatch: %s", said);
    refuses(3, "cannot", "diff d0 d1 --html no/folder/v.html > said");
    page = text_of(at("v.html"));
    expect(strstr(page, "and the first value that differs is at [0, 0, 0, 0].")
           && strstr(page, ">first at</th>"), "where bits differ");
    expect(strstr(page, "relative L2 error of the only chunk: "),
           "one chunk has no curve");
    look_at("validate --dump", at("v.html"), HIGHEST);
}

/* Three policies, one of them shorter, one with a long name, with videos. */
static void test_compare(void)
{
    char demo[1100];
    expect(run("compare --caches full,causvid:latents=9:rollouts=2,"
               "tether:tau=0.6:alpha=0.25:score-temperature=2:budget=9:"
               "memory=2 "
               "-m %s -p 'a red circle' -W 64 -H 64 --latents 18 --seed 3 "
               "-t 1 -q -o c.html", reference(demo, "demo")) == 0,
           "compare: %s", said);
    const char *page = text_of(at("c.html"));
    expect(strstr(page, "<dt>command</dt>") && strstr(page, "<dt>model</dt>")
           && strstr(page, "<dt>seed</dt><dd>3<")
           && strstr(page, "64x64 pixels")
           && strstr(page, "2001-09-09 01:46 UTC"), "the first screen");
    expect(strstr(page, "causvid:latents=9:rollouts=2 has 15 latent frames, "
                  "the longest 18") != NULL, "runs of unequal length are said");
    expect(strstr(page, "<b class=\"ok\">0.")
           && strstr(page, "seconds it took"),
           "the best of a column, and the time");
    expect(strstr(page, "<div class=\"times\"><span>0.0 s</span>")
           && strstr(page, "<span>4.2 s</span></div>"), "times of the frames");
    expect(!strstr(page, "<script") && !strstr(page, "src=\"http"),
           "no script, nothing fetched");
    look_at("compare", at("c.html"), 2 * HIGHEST);
}

int main(int argc, char **argv)
{
    (void)argc;
    setenv("SOURCE_DATE_EPOCH", "1000000000", 1);
    if (!program_begin("cli/pages", argv)) return test_end();
    reference(model, "policy_models/a");
    reference(inputs, "policy_sf_full/inputs.safetensors");
    chromium = browser();
    if (!chromium)
        skip("pages in a browser: chromium is not installed, or does not run "
             "under the limits here");
    test_failing();
    test_passing();
    test_maps();
    test_diff();
    test_compare();
    return program_end();
}
