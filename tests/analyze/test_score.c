/* test_score.c: score arithmetic, score files, the VBench-Long layout.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/files.h"
#include "analyze/measure.h"

static tt_ctx *ctx;

static bool near(double got, double want, const char *what)
{
    return expect(fabs(got - want) <= 1e-9 * (1 + fabs(want)),
                  "%s: %.17g, expected %.17g", what, got, want);
}

static const char *file(const char *name, const char *content)
{
    const char *path = at(name);
    FILE *f = fopen(path, "wb");
    if (f) {
        fputs(content, f);
        fclose(f);
    }
    return path;
}

static bool contains(const char *path, const char *part)
{
    tt_arena mem = {0};
    size_t n;
    char *all = files_read(ctx, &mem, path, 1 << 20, &n);
    bool found = all && strstr(all, part);
    if (!found) printf("%s: %s\n", path, all ? all : tt_message(ctx));
    tt_clear(ctx);
    tt_arena_free(&mem);
    return found;
}

/* ---- F ------------------------------------------------------------------- */

static void test_arithmetic(void)
{
    /* CausVid's row of the paper's table: 83.42 and 75.31 give 81.798 (printed
     * there as 81.79). */
    near(score_total(83.42, 75.31), 81.798, "total of the CausVid row");

    double raw[SCORE_DIMENSIONS];
    for (int i = 0; i < SCORE_DIMENSIONS; i++) raw[i] = score_rule_at(i)->hi;
    score_result r = score_combine(raw);
    near(r.quality, 1, "best quality");
    near(r.semantic, 1, "best semantics");
    near(r.total, 1, "best total");

    /* Only dynamic degree 0.65 (weight 0.5 of 6.5) and scene 0.4111 (half of
     * its range, one of nine). */
    for (int i = 0; i < SCORE_DIMENSIONS; i++) raw[i] = NAN;
    raw[score_find("dynamic degree")] = 0.65;
    raw[score_find("scene")] = 0.4111;
    r = score_combine(raw);
    near(r.quality, 0.05, "weight of the dynamic degree");
    near(r.semantic, 0.5 / 9, "missing dimensions count as 0");
    near(r.total, (4 * 0.05 + 0.5 / 9) / 5, "total");
    /* 0.5731 is the middle of 0.1462..1 */
    raw[score_find("subject_consistency")] = 0.5731;
    near(score_combine(raw).normal[0], 0.5, "normalised");
    near(score_find("Overall Consistency"), SCORE_DIMENSIONS - 1, "names");
    near(score_find("overall"), -1, "a part of a name");
}

static tt_status read_scores(const char *path, const char **summary)
{
    tt_analyze_options opt = tt_analyze_defaults();
    char out[512];
    snprintf(out, sizeof out, "%s", at("scores"));
    opt.folder = out;
    return tt_analyze_scores(ctx, &ctx->scratch, summary, path, &opt);
}

static void test_files(void)
{
    const char *say;
    if (expect_ok(read_scores(file("a.json", "{\"imaging_quality\": [65.0, []],"
                                   " \"scene\": 0.8222}"), &say), "JSON")) {
        expect(strstr(say, "quality   10.00") != NULL, "0.65 of 6.5: %s", say);
        expect(strstr(say, "semantic  11.11") != NULL, "1 of 9: %s", say);
    }
    expect(contains(at("scores/scores.csv"),
                    "imaging_quality,0.65,0.65,1"), "percent are divided");
    if (expect_ok(read_scores(file("a.csv", "dimension,score\r\n"
                                   "\"scene\",0.8222\r\n"
                                   "imaging quality,0.65\r\n"), &say), "CSV"))
        expect(strstr(say, "total     10.22") != NULL,
               "(4*10 + 11.11)/5: %s", say);

    /* first minus last: a 60 - 50, b (clips in disorder) 40 - 46; mean 2 */
    if (expect_ok(read_scores(file("b.csv", "video,clip,score\na,0,60\na,1,1\n"
                                   "a,2,50\nb,10,46\nb,9,40\n"), &say),
                  "clips"))
        expect(strstr(say, "drift 2.00") != NULL, "drift: %s", say);
    if (expect_ok(read_scores(file("b.json", "{\"v-0\": [0.5, 0.6, 0.7]}"),
                              &say), "clips in JSON"))
        expect(strstr(say, "drift -20.00") != NULL,
               "signed, in percent points: %s", say);
    double first, last;
    const double clip[5] = {10, 8, 6, 4, 2};
    near(score_ends(&first, &last, clip, 5, 2), 6, "two clips: 9 - 3");
    near(score_ends(&first, &last, clip, 5, 0.2), 8, "a fifth: 10 - 2");
    near(score_ends(&first, &last, clip, 5, 9), 0, "more than there are");

    static const char *const bad[] = {
        "", "{}", "{\"scene\": \"x\"}", "no,numbers,here\nscene,x\n",
        "{\"unknown_dimension\": 1}", "{\"scene\": 1, \"v\": [1, 2]}",
        "scene,0.5\nv,0,0.5\n", "{\"v\": []}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_status(read_scores(file("bad", bad[i]), &say), TT_EFORMAT,
                      bad[i]);
}

/* ---- VBench-Long --------------------------------------------------------- */

static void test_stems(void)
{
    char stem[TT_VBENCH_STEM_MAX + 1], other[TT_VBENCH_STEM_MAX + 1];
    char full[TT_VBENCH_STEM_MAX + 1], longer[TT_VBENCH_STEM_MAX + 2];
    memset(full, 'a', sizeof full - 1);
    full[sizeof full - 1] = 0;
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    static const char *const fine[] = {
        "a person is marching", "in a still frame, a stop sign",
        "A cute happy Corgi playing in park, sunset, \"Van Gogh\"?",
        "\xe7\x8c\xab", "50% off; $HOME `x` 'y'", "a.b", "two-3"};
    static const char *const hostile[] = {
        "", "..", ".hidden", "../../etc/passwd", "/etc/passwd", "a/b", "a\\b",
        "snake_case", "line\nbreak", "tab\there", "\x01", "\x7f", "\xff\xfe",
        "cut \xc3", "-rf", " leading", "trailing ", "\xed\xa0\x80"};
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
        expect(tt_vbench_stem(stem, fine[i]) && !strcmp(stem, fine[i]),
               "%s is a name", fine[i]);
    expect(tt_vbench_stem(stem, full), "the longest name");
    expect(!tt_vbench_stem(stem, longer), "one byte too long");
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        expect(!tt_vbench_stem(stem, hostile[i]), "hostile name %zu", i);
        expect(strlen(stem) == 17 && stem[0] == 'p'
               && strspn(stem + 1, "0123456789abcdef") == 16,
               "an id: %s", stem);
        tt_vbench_stem(other, hostile[i]);
        expect(!strcmp(stem, other), "the same id again");
        for (size_t k = 0; k < i; k++) {
            tt_vbench_stem(other, hostile[k]);
            expect(strcmp(stem, other) != 0, "ids differ: %zu %zu", i, k);
        }
    }
}

static void test_layout(void)
{
    char id[TT_VBENCH_STEM_MAX + 1], name[512];
    char mp4[512];
    snprintf(mp4, sizeof mp4, "%s", file("x.mp4", "not really a video"));
    char out[512];
    snprintf(out, sizeof out, "%s", at("layout"));
    const tt_vbench_video list[4] = {{mp4, "a cat"}, {mp4, "../evil_name"},
                                     {mp4, "a cat"}, {mp4, "a dog"}};
    if (!expect_ok(tt_vbench_layout(ctx, out, list, 4), "layout")) return;
    tt_vbench_stem(id, "../evil_name");
    expect(files_exist(at("layout/videos/a cat-0.mp4")), "first video");
    expect(files_exist(at("layout/videos/a cat-1.mp4")), "same prompt");
    expect(files_exist(at("layout/videos/a dog-0.mp4")), "other");
    snprintf(name, sizeof name, "layout/videos/%s-0.mp4", id);
    expect(files_exist(at(name)), "the hostile one by its id");
    expect(!files_exist(at("evil_name-0.mp4")), "nothing outside");
    snprintf(name, sizeof name, "\"%s\": \"../evil_name\"", id);
    expect(contains(at("layout/prompts.json"), name), "the map");
    expect(contains(at("layout/commands.txt"), "long_custom_input"),
           "commands");
    tt_arena mem = {0};
    const tt_json *map;
    if (expect_ok(tt_json_file(ctx, &mem, &map,
                               at("layout/prompts.json"), 1 << 20),
                  "the map is JSON"))
        expect(map->count == 3, "three prompts, %lld entries",
               (long long)map->count);
    tt_arena_free(&mem);
    expect_status(tt_vbench_layout(ctx, out, list, 4), TT_EINVAL,
                  "a folder that is not empty");
    const tt_vbench_video y4m = {"x.y4m", "a cat"};
    expect_status(tt_vbench_layout(ctx, at("other"), &y4m, 1),
                  TT_EINVAL, "not an mp4");
}

int main(void)
{
    ctx = test_begin("analyze/score");
    if (!folder_make()) return 1;
    test_arithmetic();
    test_files();
    test_stems();
    test_layout();
    folder_remove();
    return test_end();
}
