/* generate_scenes.c: videos of several prompts, and of several rollouts.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    src/rollout/scenes.c, src/rollout/causvid.c */
#include <stdio.h>
#include <string.h>

#include "cli/generate.h"
#include "cli/inputs.h"
#include "tether/io.h"

tt_status scenes_read(tt_ctx *ctx, tt_arena *a, tt_scenes *out,
                      const generate *g)
{
    *out = (tt_scenes){0};
    if (g->scene)
        return tt_scenes_parse(ctx, a, out, g->scene, g->chunk,
                               strcmp(g->cut_rule, "readme")
                                   ? TT_CUT_OFFICIAL : TT_CUT_README);
    if (!g->scene_file) return ctx->status;
    const char *text = texts_read_file(ctx, a, g->scene_file);
    if (text) tt_scenes_parse_schedule(ctx, a, out, text, g->scene_file);
    return ctx->status;
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
