/* test_scenes.c: scene lists and schedules, by table.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers: durations of infinity-RoPE's syntax, max(1, floor(seconds 16 /
 * (4 chunk))) chunks and 14 without a tag; both cut rules. */
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

#include "rollout/rollout.h"

/* "0:A 4:B 7#:C" for scenes that begin with chunks 0, 4 and 7, the last with a
 * cut. */
static void show(char *buf, size_t n, const tt_scenes *s)
{
    size_t at = 0;
    buf[0] = 0;
    for (int i = 0; i < s->n && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%lld%s:%s", i ? " " : "",
                               (long long)s->scene[i].chunk,
                               s->scene[i].cut ? "#" : "",
                               s->prompt[s->scene[i].prompt]);
}

static int warnings;
static void count_warning(void *user, const char *sentence)
{
    (void)user, (void)sentence;
    warnings++;
}

static void parses(tt_ctx *ctx, const char *text, int64_t chunk,
                   tt_cut_rule rule, int warned, const char *want)
{
    tt_arena a = {0};
    tt_scenes s;
    char got[256];
    warnings = 0;
    if (expect_ok(tt_scenes_parse(ctx, &a, &s, text, chunk, rule), text)) {
        show(got, sizeof got, &s);
        expect(!strcmp(got, want), "\"%s\" gives \"%s\", expected \"%s\"",
               text, got, want);
        expect(warnings == warned, "\"%s\": %d warnings, expected %d", text,
               warnings, warned);
    }
    tt_arena_free(&a);
}

static void refused(tt_ctx *ctx, const char *text, const char *word)
{
    tt_arena a = {0};
    tt_scenes s;
    const tt_status got = tt_scenes_parse(ctx, &a, &s, text, 3,
                                          TT_CUT_OFFICIAL);
    expect(strstr(tt_message(ctx), word) != NULL, "\"%s\": \"%s\" lacks "
           "\"%s\"", text, tt_message(ctx), word);
    expect_status(got, TT_EINVAL, text);
    tt_arena_free(&a);
}

static void check_lists(tt_ctx *ctx)
{
    const tt_cut_rule code = TT_CUT_OFFICIAL, readme = TT_CUT_README;
    parses(ctx, "A", 3, code, 0, "0:A");
    parses(ctx, "A[3s] | B[2.3s#] | C[2.3s]", 3, code, 0, "0:A 4:B 7#:C");
    parses(ctx, "A[3s] | B[2.3s#] | C[2.3s]", 3, readme, 0, "0:A 4#:B 7:C");
    parses(ctx, "A|B|C", 3, code, 0, "0:A 14:B 28:C");
    parses(ctx, "A[0s]|B[0.1s]|C", 3, code, 0, "0:A 1:B 2:C");
    parses(ctx, "A[3s]|B[3s]|C", 1, code, 0, "0:A 12:B 24:C");
    parses(ctx, "A[2.25s]|B[2.24s]|C", 3, code, 0, "0:A 3:B 5:C");
    parses(ctx, " [3s] a cat |a [3s]dog\n|\ta cat", 3, code, 0,
           "0:a cat 4:a dog 8:a cat");
    parses(ctx, "a [cat] in [3 s] and [4k]|B", 3, code, 0,
           "0:a [cat] in [3 s] and [4k] 14:B");
    parses(ctx, "A[3s#]|B", 3, readme, 1, "0:A 4:B");
    parses(ctx, "A[3s]|B[3s#]", 3, code, 1, "0:A 4:B");
    refused(ctx, "", "scene 1 has no text");
    refused(ctx, "A|[3s]|C", "scene 2 has no text");
    refused(ctx, "A|B|", "scene 3 has no text");
    refused(ctx, "A[3s][4s]|B", "two durations");
    refused(ctx, "A[99999999s]|B", "too long");
#define LONG "A[1000000s]|"
    refused(ctx, LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG LONG
            LONG "B", "scene 14 would begin after more than 16777216 chunks");

    /* Equal texts are one prompt. */
    tt_arena a = {0};
    tt_scenes s;
    expect_ok(tt_scenes_parse(ctx, &a, &s, "A[1s]|B[1s]|A[1s]|C", 3, code),
              "repeated");
    expect(s.n == 4 && s.nprompts == 3 && s.scene[2].prompt == 0
           && s.scene[3].prompt == 2 && !strcmp(s.prompt[2], "C"),
           "distinct prompts in order of appearance");
    tt_arena_free(&a);
}

static void schedule(tt_ctx *ctx, const char *text, const char *want,
                     const char *word)
{
    tt_arena a = {0};
    tt_scenes s;
    char got[256];
    const tt_status st = tt_scenes_parse_schedule(ctx, &a, &s, text, "a.txt");
    if (want && expect_ok(st, text)) {
        show(got, sizeof got, &s);
        expect(!strcmp(got, want), "\"%s\" gives \"%s\", expected \"%s\"",
               text, got, want);
    }
    if (!want) {
        expect(strstr(tt_message(ctx), word) != NULL, "\"%s\": \"%s\" lacks "
               "\"%s\"", text, tt_message(ctx), word);
        expect_status(st, TT_EINVAL, text);
    }
    tt_arena_free(&a);
}

int main(void)
{
    tt_ctx *ctx = test_begin("rollout/scenes");
    ctx->warn = count_warning;
    check_lists(ctx);
    schedule(ctx, "0 a cat\n12# a dog\r\n\n 20\ta | b [3s]\n",
             "0:a cat 12#:a dog 20:a | b [3s]", NULL);
    schedule(ctx, "0# A", "0:A", NULL);
    schedule(ctx, "", NULL, "no scene");
    schedule(ctx, "1 A", NULL, "chunk 0");
    schedule(ctx, "0 A\n5 B\n5 C", NULL, "line 3");
    schedule(ctx, "0 A\nB", NULL, "line 2");
    schedule(ctx, "0 A\n-3 B", NULL, "line 2");
    schedule(ctx, "0 A\n3", NULL, "line 2");
    schedule(ctx, "0 A\n3B", NULL, "line 2");
    schedule(ctx, "0 A\n999999999999999999999 B", NULL, "line 2");
    return test_end();
}
