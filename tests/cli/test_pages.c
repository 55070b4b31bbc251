/* test_pages.c: the viewer's page, of validate, diff, compare and analyze.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties     verdict and main table stand in the page without scripts; the
 *                page allows itself no fetch; names of strangers are text; the
 *                same run gives the same bytes where the date is given; in a
 *                browser the console stays empty, no page is wider than its
 *                window, no text stands one letter per line, words of pictures
 *                do not cover each other, and the numbers are those of the
 *                trace. */
#include "tests/cli/browser.h"

#include <math.h>

#include "analyze/measure.h"
#include "io/video.h"
#include "validate/validate.h"

enum { ROWS = 5926, HIGHEST = 6500 };

static char model[1100], inputs[1100], demo[1100];
static const char *chromium;

/* All of a file, until the program ends. */
static const char *file_text(const char *path)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    const int64_t n = f && !fstat(fileno(f), &st) ? (int64_t)st.st_size : 0;
    char *text = tt_alloc0(ctx, &ctx->scratch, n + 1, 1, "a page");
    expect(text && f && fread(text, 1, (size_t)n, f) == (size_t)n, "%s is read",
           path);
    if (f) fclose(f);
    return text ? text : "";
}

/* ---- in a browser -------------------------------------------------------- */

/* What the page is once its scripts have run, with what follows #; ""
 * without a browser. */
static const char *shown(const char *page, const char *state)
{
    char name[600];
    snprintf(name, sizeof name, "%s%s", page, state);
    if (!chromium || !expect(!browse(chromium, name, "--virtual-time-budget="
                                     "3000 --dump-dom", at("dom")), "%s: the "
                             "browser shows it", page)) return "";
    const char *console = strstr(file_text(at("console")), "CONSOLE");
    expect(!console, "%s: the console says %.200s", page,
           console ? console : "");
    const char *dom = file_text(at("dom"));
    expect(strstr(dom, "data-shown=") && !strstr(dom, "id=\"plain\""),
           "%s: the viewer shows it", page);
    return dom;
}

static void look_at(const char *what, const char *page, int highest)
{
    page_size size[2];
    char copy[600];
    snprintf(copy, sizeof copy, "%s", page);
    if (!chromium) return;
    shown(copy, "");
    if (!expect(page_measure(size, chromium, copy), "%s: the browser measured "
                "it in both widths", what)) return;
    for (int i = 0; i < 2; i++) {
        const page_size *p = &size[i];
        expect(p->high > 300 && p->high < highest * (1 + i), "%s, %d pixels "
               "wide: %d high", what, p->width, p->high);
        expect(p->beyond == 0, "%s, %d wide: %d pixels stick out", what,
               p->width, p->beyond);
        expect(!p->narrow && !p->overlap && !p->cut, "%s, %d wide: %d texts "
               "letter by letter, %d words on others, %d cut off (%s)", what,
               p->width, p->narrow, p->overlap, p->cut, p->what);
    }
}

/* Nothing may be fetched, and no script but one, named by its sum. */
static void expect_closed(const char *what, const char *page)
{
    expect(strstr(page, "content=\"default-src 'none'; img-src data:; base-uri "
                  "'none'; form-action 'none'; style-src 'sha256-")
           && strstr(page, "script-src 'sha256-")
           && !strstr(page, "unsafe"), "%s: its policy", what);
    expect(!strstr(page, "src=\"http") && !strstr(page, "href=")
           && !strstr(page, "import("), "%s: nothing is fetched", what);
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
                        .outcome = i % 40 ? TT_PASS : TT_UNCHECKED,
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
    const char *page = file_text(at("bad.html"));
    const size_t size = strlen(page);
    expect(size > 10000 && size < 2000000, "%zu bytes", size);
    expect(strstr(page, "<p class=\"lead\">FAIL: first wrong tensor: chunk.0/"
                  "step.0/block.0/self_attn.q#linear.0") && strstr(page,
           "<li>mismatch chunk.0/step.0/block.0/self_attn.q#linear.0, ")
           && strstr(page, "5926 mismatch") == NULL
           && strstr(page, "2001-09-09 01:46 UTC"), "without scripts");
    expect(strstr(page, "\"left\": [4926, 0]") != NULL, "what is left out");
    expect_closed("a failing report", page);
    page = shown(at("bad.html"), "");
    expect(!chromium || (strstr(page, "chunk 0, step 0, block 0, self_attn.q, "
                                "call 0 of linear")
                         && strstr(page, ">FAIL</h1>")
                         && strstr(page, "5,926 tensors are wrong")
                         && strstr(page, "4,926 more are left out")),
           "the first wrong tensor in words");
    look_at("a failing report", at("bad.html"), HIGHEST);
    tt_report_free(r);
}

static void test_passing(void)
{
    tt_report *r = make_report(0);
    if (!r) return;
    expect_ok(tt_report_html(ctx, r, at("good.html")), "html");
    const char *page = file_text(at("good.html"));
    expect(strstr(page, "<meta name=\"verdict\" content=\"PASS\">")
           && strstr(page, "<p class=\"lead\">PASS: "), "a page that passes");
    page = shown(at("good.html"), "");
    expect(!chromium || (strstr(page, ">PASS</h1>")
                         && !strstr(page, ">Failures</h2>")
                         && strstr(page, "at 50&nbsp;% of it")),
           "a page that passes, in a browser");
    look_at("a passing report", at("good.html"), HIGHEST);
    tt_report_free(r);
}

/* A tensor of one element has a verdict and no map. */
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
        const char *page = file_text(at("map.html"));
        /* two errors of 1, 253 eighths of a power of two above the least */
        expect((strstr(page, "\"map\": {\"rows\": 1, \"cols\": 8, \"split\": 0, "
                       "\"least\": -253, \"cells\": \"/QAAAAAAAP0=\"}") != NULL)
               == (i == 1), "%d elements: %s map", n, i ? "a" : "no");
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
    const char *page = file_text(at("a page.html"));
    expect(strstr(page, "tether diff d0 d1 --html 'a page.html'")
           && strstr(page, "every bit counts"), "command and limits");
    look_at("diff", at("a page.html"), HIGHEST);
    expect(run("validate --dump d0 --against d1 --html v.html > said") == 1,
           "a mismatch: %s", said);
    refuses(3, "cannot", "diff d0 d1 --html no/folder/v.html > said");
    page = shown(at("v.html"), "");
    expect(!chromium || (strstr(page, "and the first value that differs is at "
                                "[0, 0, 0, 0].")
                         && strstr(page, ">first at</th>")), "where bits differ");
    expect(!chromium || strstr(page, "relative L2 error of the only chunk: "),
           "one chunk has no curve");
    look_at("validate --dump", at("v.html"), HIGHEST);
}

/* Three policies, one of them shorter, one with a long name, with videos. */
static void test_compare(void)
{
    expect(run("compare --caches full,causvid:latents=9:rollouts=2,"
               "tether:tau=0.6:alpha=0.25:score-temperature=2:budget=9:"
               "memory=2 "
               "-m %s -p 'a red circle' -W 64 -H 64 --latents 18 --seed 3 "
               "-t 1 -q -o c.html", demo) == 0, "compare: %s", said);
    const char *page = file_text(at("c.html"));
    expect(strstr(page, "<td>causvid:latents=9:rollouts=2</td><td>0.")
           && strstr(page, "<th>seconds it took</th>")
           && strstr(page, "[\"command\", \"tether compare")
           && strstr(page, "[\"model\", \"")
           && strstr(page, "2001-09-09 01:46 UTC"), "without scripts");
    expect_closed("compare", page);
    page = shown(at("c.html"), "");
    expect(!chromium || (strstr(page, "<dt>seed</dt><dd>3<")
                         && strstr(page, "64x64 pixels")
                         && strstr(page, "causvid:latents=9:rollouts=2 has 15 "
                                   "latent frames, the longest 18")
                         && strstr(page, "<b class=\"ok\">0.")
                         && strstr(page, "4.3 s, latent frame 17")),
           "the first screen, and the time");
    look_at("compare", at("c.html"), 2 * HIGHEST);
}

/* ---- one run ------------------------------------------------------------- */

enum { CHUNK = 8, LAYER = 3 };

/* The round of that chunk and layer; -1. */
static int64_t round_of(const tt_recording *r)
{
    for (int64_t i = 0; i < r->rounds; i++)
        if (r->grab_chunk[i] == CHUNK && r->grab_layer[i] == LAYER) return i;
    return -1;
}

/* A row of the table of GRAB: frame, decision, score, importance, diversity. */
static void expect_row(const char *page, const tt_recording *r, int64_t round,
                       int64_t c, bool kept, double score)
{
    char row[200];
    const int64_t at = round * r->candidates + c;
    snprintf(row, sizeof row, "<td>%lld%s</td><td><span class=\"pill %s\">%s"
             "</span></td><td>%#.6g</td>", (long long)r->grab_candidates[at],
             c < round_members(r, round) ? "" : " (newcomer)",
             kept ? "ok" : "bad", kept ? "kept" : "dropped", score);
    const char *found = strstr(page, row);
    if (!expect(found != NULL, "the page has no row %s", row)) return;
    snprintf(row, sizeof row, "</span>%#.5g</td><td>%#.6g</td>",
             r->grab_mass[at], r->grab_div[at]);
    found = strstr(found, row);
    expect(found != NULL, "importance and diversity: %s", row);
}

/* The rows as in the trace, and with other alphas those that eqs. 5 and 10
 * give. */
static void test_grab(const tt_recording *r)
{
    const int64_t i = round_of(r), n = r->candidates;
    if (!expect(i >= 0, "a round in chunk %d", CHUNK)) return;
    const int64_t *keep = r->grab_keep + i * n;
    const double *mass = r->grab_mass + i * n;
    const char *page = shown(at("run/index.html"), "#chunk=8&layer=3");
    for (int64_t c = 0; c < n && chromium; c++)
        expect_row(page, r, i, c, keep[c], r->grab_scores[i * n + c]);
    for (int alpha = 0; alpha < 5; alpha += 3) {
        char state[80];
        snprintf(state, sizeof state, "#chunk=8&layer=3&alpha=%d", alpha);
        page = shown(at("run/index.html"), state);
        for (int64_t c = 0; c < n && chromium; c++) {
            int64_t better = 0;
            const double *div = r->grab_div + i * n;
            const double own = mass[c] + alpha * div[c];
            for (int64_t o = 0; o < n; o++) {
                const double other = mass[o] + alpha * div[o];
                better += other > own || (other == own && o < c);
            }
            expect_row(page, r, i, c, better < round_members(r, i), own);
        }
    }
}

/* `explain` has the same rows. */
static void test_explain(const tt_recording *r)
{
    const int64_t i = round_of(r), n = r->candidates;
    expect(run("explain run --chunk 8 --layer 3 > said") == 0, "explain: %s",
           said);
    const char *text = file_text(at("said"));
    for (int64_t c = 0; c < n && i >= 0; c++) {
        char row[200];
        const int64_t k = i * n + c;
        snprintf(row, sizeof row, "\n  %5lld  %10.6f  ",
                 (long long)r->grab_candidates[k], r->grab_mass[k]);
        const char *at_row = strstr(text, row);
        if (!expect(at_row != NULL, "no row%s", row)) continue;
        snprintf(row, sizeof row, "  %9.6f  %8.6f  ", r->grab_div[k],
                 r->grab_scores[k]);
        const char *scores = strstr(at_row + 1, row);
        expect(scores && scores < strchr(at_row + 1, '\n'), "no scores%s",
               row);
        expect(scores && !strncmp(scores + strlen(row) + 6, r->grab_keep[k]
                                  ? "kept" : "dropped", 4), "frame %lld",
               (long long)r->grab_candidates[k]);
    }
    expect(strstr(text, "\nTAME, tau = 0.35: ") && strstr(text, "  keys    "),
           "the edits: %s", text);
    refuses(2, "chunks 0 to 9 and layers 0 to 5: there is no chunk 10 of layer "
            "0", "explain run --chunk 10");
}

typedef struct edit_check {
    tt_file *dump;
    const char *page;
    int64_t seen;
} edit_check;

/* The trusted statistics that follow from the run folder are those of the
 * dump; distance and spread stand in the page. */
static void check_edit(void *user, const tt_recording *r, const frame_edit *e)
{
    static const char *const name[4] = {"mean_k", "sd_k", "mean_v", "sd_v"};
    edit_check *o = user;
    for (int k = 0; k < 4; k++) {
        char full[160];
        snprintf(full, sizeof full, "chunk.%lld/step.4/block.%lld/admit.%lld/"
                 "tame.%s", (long long)r->grab_chunk[e->round],
                 (long long)e->layer, (long long)r->grab_sub[e->round],
                 name[k]);
        const tt_entry *t = tt_file_find(o->dump, full);
        if (!expect(t && t->t.dtype == TT_F64, "the dump has %s", full)) return;
        double worst = 0, value;
        for (int64_t i = 0; i < r->width; i++) {
            memcpy(&value, (const char *)t->t.data + 8 * i, 8);
            const double got = e->trusted[k * r->width + i];
            worst = fmax(worst, fabs(got - value) / (1 + fabs(value)));
        }
        expect(worst < 2e-6, "%s: %g apart", full, worst);
    }
    o->seen++;
    if (!*o->page || r->grab_chunk[e->round] != CHUNK || e->layer != LAYER)
        return;
    const edit_part p = edit_sum_up(r, e, false);
    char text[80];
    snprintf(text, sizeof text, "<td>%#.5g</td>", p.distance);
    expect(strstr(o->page, text) != NULL, "distance %s", text);
    snprintf(text, sizeof text, "<td>%#.5g</td>", p.spread);
    expect(strstr(o->page, text) != NULL, "spread %s", text);
    o->page = "";            /* the first frame alone is shown */
}

static void test_run(void)
{
    tt_recording *r;
    edit_check o = {.page = ""};
    expect(run("generate -m %s -p 'a red circle' -W 64 -H 64 --latents 30 -t 1 "
               "-q -o run.y4m --analyze run --dump dump --dump-filter "
               "'*/tame.*'", demo) == 0, "a run: %s", said);
    expect(exists(at("run/index.html")), "its page is in its folder");
    if (!expect_ok(tt_recording_open(ctx, &r, at("run")), "its record")) return;
    test_grab(r);
    test_explain(r);
    if (expect_ok(tt_file_open(ctx, &o.dump, at("dump")), "its dump")) {
        if (chromium)
            o.page = shown(at("run/index.html"), "#chunk=8&layer=3&tau=1");
        expect_ok(edits_all(ctx, r, check_edit, &o), "edits");
        expect(o.seen >= 6, "%lld edits", (long long)o.seen);
        tt_file_close(o.dump);
    }
    tt_recording_close(r);
    look_at("one run", at("run/index.html"), 2 * HIGHEST);
}

/* Names of strangers are text, wherever they stand. */
static void test_hostile(void)
{
#define BAD "</script><img src=x onerror=document.title=1>\\u202e]]>'&quot;"
    const char *json = file_text(at("run/run.json"));
    const char *rest = strstr(json, ",\n  \"seed\"");
    if (!expect(rest != NULL, "run.json")) return;
    char *copy = tt_strdup(ctx, &ctx->scratch, rest);
    FILE *f = fopen(at("run/run.json"), "w");
    if (!expect(f && copy, "run.json is written")) return;
    fprintf(f, "{\"label\": \"%s\", \"prompt\": \"%s\"%s", BAD, BAD, copy);
    fclose(f);
    expect(run("analyze run -o hostile --html") == 0, "analyze: %s", said);
    const char *page = file_text(at("hostile/index.html"));
    expect(!strstr(page, "<img") && !strstr(page, "</script><i")
           && strstr(page, "&lt;/script&gt;&lt;img src=x")
           && strstr(page, "\\u003c/script>\\u003cimg"), "escaped");
    page = shown(at("hostile/index.html"), "");
    expect(!strstr(page, "<img") && !strstr(page, "<title>1<"), "no element");
#undef BAD
}

int main(int argc, char **argv)
{
    (void)argc;
    setenv("SOURCE_DATE_EPOCH", "1000000000", 1);
    if (!program_begin("cli/pages", argv)) return test_end();
    reference(model, "policy_models/a");
    reference(inputs, "policy_sf_full/inputs.safetensors");
    reference(demo, "demo");
    chromium = browser();
    if (!chromium)
        skip("pages in a browser: chromium is not installed, or does not run "
             "under the limits here");
    test_failing();
    test_passing();
    test_maps();
    test_diff();
    test_compare();
    test_run();
    test_hostile();
    return program_end();
}
