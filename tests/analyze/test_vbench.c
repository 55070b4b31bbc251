/* test_vbench.c: names of videos, and the layout of VBench-Long.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/files.h"
#include "analyze/measure.h"

static tt_ctx *ctx;

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
    return strstr(text_of(path), part) != NULL;
}

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
        expect(tt_json_count(map) == 3, "three prompts, %lld entries",
               (long long)tt_json_count(map));
    tt_arena_free(&mem);
    expect_status(tt_vbench_layout(ctx, out, list, 4), TT_EINVAL,
                  "a folder that is not empty");
    const tt_vbench_video y4m = {"x.y4m", "a cat"};
    expect_status(tt_vbench_layout(ctx, at("other"), &y4m, 1),
                  TT_EINVAL, "not an mp4");
}

int main(void)
{
    ctx = test_begin("analyze/vbench");
    if (!folder_make()) return 1;
    test_stems();
    test_layout();
    folder_remove();
    return test_end();
}
