/* scenes.c: which prompt a chunk is made with.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  infinity-RoPE (scene lists). The schedule with chunk numbers is this
 *         program's own, for every policy.
 * Model   a scene begins with a chunk and lasts until the next one begins.
 *         Cross-attention reads the scene's prompt; what the cache of past
 *         frames does at the boundary is the policy's business (policy.h).
 * Holds   scenes are in order, the first begins with chunk 0. */
#include "rollout/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Frames per second of video, video frames per latent frame. */
enum { FPS = 16, STRIDE = 4, UNTAGGED_CHUNKS = 14 };
#define MAX_SECONDS 1e6
#define MAX_CHUNKS ((int64_t)1 << 24)
static const char *const blank = " \t\r\n";

/* ---- during a rollout ---------------------------------------------------- */

tt_status scenes_check(tt_ctx *ctx, const tt_rollout_options *o)
{
    if (o->nscenes < 0 || (o->nscenes > 0 && !o->scenes))
        return tt_fail(ctx, TT_EINVAL, "%d scenes, but no list", o->nscenes);
    for (int i = 0; i < o->nscenes; i++) {
        const tt_scene *s = &o->scenes[i];
        if (i == 0 ? s->chunk != 0 : s->chunk <= s[-1].chunk)
            return tt_fail(ctx, TT_EINVAL, "scene %d begins with chunk %lld: "
                           "the first must begin with chunk 0 and every other "
                           "after the one before it", i + 1,
                           (long long)s->chunk);
        if (s->prompt < 0 || s->prompt >= o->nprompts)
            return tt_fail(ctx, TT_EINVAL, "scene %d has prompt %d of %d",
                           i + 1, s->prompt, o->nprompts);
    }
    return TT_OK;
}

const tt_scene *scenes_at(const tt_rollout_options *o, int64_t chunk)
{
    const tt_scene *s = NULL;
    for (int i = 0; i < o->nscenes && o->scenes[i].chunk <= chunk; i++)
        s = &o->scenes[i];
    return s;
}

/* ---- building a list ----------------------------------------------------- */

/* Room for n scenes. */
static void scenes_begin(tt_ctx *ctx, tt_arena *a, tt_scenes *out, int64_t n)
{
    *out = (tt_scenes){0};
    out->scene = tt_alloc0(ctx, a, n, sizeof *out->scene, "scenes");
    out->prompt = tt_alloc0(ctx, a, n, sizeof *out->prompt, "scenes");
}

/* Another scene; `text` is kept. A text that was there before keeps its
 * number. */
static void scenes_add(tt_scenes *out, int64_t chunk, const char *text,
                       bool cut)
{
    int p = 0;
    while (p < out->nprompts && strcmp(out->prompt[p], text)) p++;
    if (p == out->nprompts) out->prompt[out->nprompts++] = text;
    out->scene[out->n++] = (tt_scene){ chunk, p, cut };
}

/* Blanks off both ends, in place. */
static char *trim(char *s)
{
    s += strspn(s, blank);
    size_t n = strlen(s);
    while (n > 0 && strchr(blank, s[n - 1])) n--;
    s[n] = 0;
    return s;
}

/* ---- infinity-RoPE's list ------------------------------------------------ */

/* A tag "[<seconds>s]" or "[<seconds>s#]" at s: its length, else 0. */
static size_t read_tag(const char *s, double *seconds, bool *cut)
{
    const char *c = s + 1;
    char *end;
    if (*s != '[' || strspn(c, "0123456789.") == 0) return 0;
    const size_t digits = strspn(c, "0123456789.");
    *seconds = strtod(c, &end);
    if (end != c + digits) return 0;             /* "3.4.5", "1e3" */
    if (*end++ != 's') return 0;
    *cut = *end == '#';
    if (*cut) end++;
    return *end == ']' ? (size_t)(end + 1 - s) : 0;
}

/* Take the tag out of one scene's text. TT_EINVAL: two tags, or an impossible
 * duration. */
static tt_status take_tag(tt_ctx *ctx, char *text, int number, int64_t chunk,
                          int64_t *chunks, bool *cut)
{
    bool tagged = false;
    double seconds;
    *chunks = UNTAGGED_CHUNKS;
    *cut = false;
    for (char *c = text; *c; ) {
        bool hash;
        const size_t n = read_tag(c, &seconds, &hash);
        if (n == 0) {
            c++;
            continue;
        }
        if (tagged)
            return tt_fail(ctx, TT_EINVAL, "scene %d has two durations, of "
                           "which one is %.*s", number, (int)n, c);
        if (!(seconds <= MAX_SECONDS))
            return tt_fail(ctx, TT_EINVAL, "scene %d: %.*s is too long; at "
                           "most %g seconds", number, (int)n, c, MAX_SECONDS);
        tagged = true;
        *cut = hash;
        *chunks = (int64_t)floor(seconds * FPS / (double)(STRIDE * chunk));
        if (*chunks < 1) *chunks = 1;
        memmove(c, c + n, strlen(c + n) + 1);
    }
    return TT_OK;
}

/* A `#` of scene i makes a cut where it begins (README) or where it ends
 * (code). */
static void place_cuts(tt_ctx *ctx, tt_scenes *s, const bool *hash,
                       tt_cut_rule rule)
{
    for (int i = 0; i < s->n; i++) {
        const int at = rule == TT_CUT_README ? i : i + 1;
        if (!hash[i]) continue;
        if (at > 0 && at < s->n)
            s->scene[at].cut = true;
        else
            tt_warn(ctx, "the # of scene %d has no effect: %s", i + 1, at == 0
                    ? "the video begins there"
                    : "by the released code's rule the cut comes after the "
                      "scene, and it is the last");
    }
}

tt_status tt_scenes_parse(tt_ctx *ctx, tt_arena *a, tt_scenes *out,
                          const char *text, int64_t chunk, tt_cut_rule rule)
{
    int64_t n = 1, at = 0;
    TT_TRY(ctx->status);
    if (chunk < 1)
        return tt_fail(ctx, TT_EINVAL, "scenes need chunks of at least 1 "
                       "frame");
    for (const char *c = text; *c; c++) n += *c == '|';
    scenes_begin(ctx, a, out, n);
    char *copy = tt_strdup(ctx, a, text);
    bool *hash = tt_alloc0(ctx, a, n, sizeof *hash, "scenes");
    if (ctx->status) return ctx->status;
    for (char *part = copy; part; ) {
        char *bar = strchr(part, '|');
        int64_t chunks;
        if (bar) *bar = 0;
        TT_TRY(take_tag(ctx, part, out->n + 1, chunk, &chunks, &hash[out->n]));
        part = trim(part);
        if (!*part)
            return tt_fail(ctx, TT_EINVAL, "scene %d has no text", out->n + 1);
        if (at > MAX_CHUNKS)
            return tt_fail(ctx, TT_EINVAL, "scene %d would begin after more "
                           "than %lld chunks", out->n + 1,
                           (long long)MAX_CHUNKS);
        scenes_add(out, at, part, false);
        at += chunks;
        part = bar ? bar + 1 : NULL;
    }
    place_cuts(ctx, out, hash, rule);
    return TT_OK;
}

/* ---- the schedule -------------------------------------------------------- */

/* "12 text" or "12# text"; the text starts at *rest. */
static tt_status scenes_read_line(tt_ctx *ctx, char *line, int64_t number,
                                  const char *name, int64_t *chunk, bool *cut,
                                  char **rest)
{
    const size_t digits = strspn(line, "0123456789");
    char *c = line + digits;
    *cut = *c == '#';
    if (*cut) c++;
    const bool spaced = *c && strchr(blank, *c);
    *chunk = digits < 9 ? strtoll(line, NULL, 10) : MAX_CHUNKS + 1;
    *rest = trim(c);
    if (digits == 0 || !spaced || !**rest || *chunk > MAX_CHUNKS)
        return tt_fail(ctx, TT_EINVAL, "%s, line %lld: expected the first "
                       "chunk of a scene (0..%lld), a blank and its prompt, "
                       "found \"%.40s\"", name, (long long)number,
                       (long long)MAX_CHUNKS, line);
    return TT_OK;
}

tt_status tt_scenes_parse_schedule(tt_ctx *ctx, tt_arena *a, tt_scenes *out,
                                   const char *text, const char *name)
{
    int64_t lines = 1, number = 0;
    TT_TRY(ctx->status);
    for (const char *c = text; *c; c++) lines += *c == '\n';
    scenes_begin(ctx, a, out, lines);
    char *copy = tt_strdup(ctx, a, text);
    if (ctx->status) return ctx->status;
    for (char *line = copy; line; ) {
        char *end = strchr(line, '\n'), *rest;
        int64_t chunk;
        bool cut;
        if (end) *end = 0;
        number++;
        line = trim(line);
        if (*line) {
            TT_TRY(scenes_read_line(ctx, line, number, name, &chunk, &cut,
                                    &rest));
            const int64_t before = out->n ? out->scene[out->n - 1].chunk : -1;
            if (out->n == 0 ? chunk != 0 : chunk <= before)
                return tt_fail(ctx, TT_EINVAL, "%s, line %lld: the first scene "
                               "must begin with chunk 0 and every other after "
                               "the one before it, not with chunk %lld", name,
                               (long long)number, (long long)chunk);
            scenes_add(out, chunk, rest, cut && out->n > 0);
        }
        line = end ? end + 1 : NULL;
    }
    if (out->n == 0)
        return tt_fail(ctx, TT_EINVAL, "%s holds no scene", name);
    return TT_OK;
}
