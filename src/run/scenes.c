/* scenes.c: videos of several prompts, and of several rollouts.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    src/rollout/scenes.c, src/rollout/causvid.c */
#include <stdio.h>
#include <string.h>

#include "run/parts.h"
#include "io/inputs.h"
#include "io/io.h"

/* Length of what was meant as a duration at s, "[-3s]", "[3 s", "[3sec]":
 * what the parser takes is gone from the text. 0: ordinary text. */
static size_t failed_tag(const char *s)
{
    static const char *const units[] = {"s", "sec", "secs", "second",
                                        "seconds"};
    const char *c = s + 1;
    if (*s != '[') return 0;
    c += strspn(c, " +-");
    const size_t digits = strspn(c, "0123456789.");
    c += digits;
    c += strspn(c, " ");
    const size_t word = strspn(c, "abcdefghijklmnopqrstuvwxyz");
    for (int i = 0; digits && i < 5; i++)
        if (strlen(units[i]) == word && !strncmp(c, units[i], word))
            return (size_t)(c - s) + word + strspn(c + word, " #]");
    return 0;
}

/* A tag that the parser left in the text would be read as part of it. */
static tt_status check_tags(tt_ctx *ctx, const tt_scenes *s)
{
    for (int i = 0; i < s->nprompts; i++)
        for (const char *c = s->prompt[i]; *c; c++)
            if (failed_tag(c))
                return tt_fail(ctx, TT_EINVAL, "--scene: %.*s is no duration; "
                               "write [3s], [2.5s] or, with a cut, [3s#]",
                               (int)failed_tag(c), c);
    return TT_OK;
}

/* The policy that has cuts, by name. */
static const char *with_cuts(void)
{
    for (int i = 0; tt_policy_at(i); i++)
        if (tt_policy_at(i)->flags & TT_HAS_CUTS) return tt_policy_at(i)->name;
    return "no policy";
}

/* Cuts are flushes of the cache, which one policy does. */
static tt_status check_cuts(tt_ctx *ctx, const tt_scenes *s,
                            const tt_settings *g)
{
    const tt_policy_class *c = tt_policy_find(g->cache);
    for (int i = 0; i < s->n; i++)
        if (s->scene[i].cut && !(c && c->flags & TT_HAS_CUTS))
            return tt_fail(ctx, TT_EINVAL, "the cut (#) before scene %d has "
                           "no effect with --cache %s; cuts are a setting of "
                           "%s", i + 1, g->cache, with_cuts());
    return TT_OK;
}

tt_status scenes_read(tt_ctx *ctx, tt_arena *a, tt_scenes *out,
                      const tt_settings *g)
{
    *out = (tt_scenes){0};
    if (g->scene) {
        TT_TRY(tt_scenes_parse(ctx, a, out, g->scene, g->chunk,
                               strcmp(g->cut_rule, "readme")
                                   ? TT_CUT_OFFICIAL : TT_CUT_README));
        TT_TRY(check_tags(ctx, out));
    }
    if (g->scene_file) {
        const char *text = texts_read_file(ctx, a, g->scene_file);
        if (!text) return ctx->status;
        TT_TRY(tt_scenes_parse_schedule(ctx, a, out, text, g->scene_file));
    }
    return check_cuts(ctx, out, g);
}

/* ---- noise of restarts --------------------------------------------------- */

/* renoise_r0, renoise_r1, ... one after the other; a single rollout may have
 * its own as plain `renoise`. */
static void read_renoise(tt_ctx *ctx, tt_arena *a, const char *path, int64_t C,
                         bool plain, tt_rollout_options *o)
{
    const int64_t gaps = o->nsteps - 1, size = C * o->h * o->w;
    const int64_t later = o->latents - o->overlap;
    const int64_t all = o->latents + (o->rollouts - 1) * later;
    if (gaps < 1 || later < 1) return; /* refused, with its rule, later on */
    tt_real *out = tt_alloc(ctx, a, all * gaps * size, sizeof *out, "noise");
    tt_real *to = out;
    for (int64_t r = 0; r < o->rollouts && !ctx->status; r++) {
        int64_t dim[4] = {(r ? later : o->latents) * gaps, C, o->h, o->w};
        char name[40];
        snprintf(name, sizeof name, plain ? "renoise" : "renoise_r%lld",
                 (long long)r);
        const tt_real *x = input_read(ctx, a, path, name, 4, dim);
        if (!x) return;
        memcpy(to, x, (size_t)(dim[0] * size) * sizeof *to);
        to += dim[0] * size;
    }
    o->noise.renoise = out;
}

tt_status restarts_read_noise(tt_ctx *ctx, tt_arena *a, const char *path,
                              int64_t C, bool length_given,
                              tt_rollout_options *o)
{
    int64_t dim[5] = {o->rollouts > 1 ? o->rollouts : -1,
                      length_given ? o->latents : -1, C, o->h, o->w};
    tt_file *file = NULL;
    o->noise.noise = input_read(ctx, a, path, "noise", 5, dim);
    if (!o->noise.noise || tt_file_open(ctx, &file, path)) return ctx->status;
    const bool start = tt_file_find(file, "start_frame") != NULL;
    const bool plain = !tt_file_find(file, "renoise_r0") && dim[0] == 1;
    tt_file_close(file);
    o->rollouts = dim[0];
    o->latents = dim[1];
    o->h = dim[3];
    o->w = dim[4];
    read_renoise(ctx, a, path, C, plain, o);
    int64_t frame[4] = {o->rollouts - 1, C, o->h, o->w};
    if (start && o->rollouts > 1)
        o->start_frame = input_read(ctx, a, path, "start_frame", 4, frame);
    return ctx->status;
}
