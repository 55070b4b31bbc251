/* inputs.c: noise, and latents to continue, out of files.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * With them the size and the length of the video are known. */
#include "io/inputs.h"

#include "run/parts.h"

/* Latent height and width: from the options, else from the first file that
 * has them, else 832x480. -1 stands for "take what the file has". */
static void size_for_file(const tt_run *r, int64_t *h, int64_t *w)
{
    *h = r->opt.h ? r->opt.h : -1;
    *w = r->opt.w ? r->opt.w : -1;
}

/* The transformer takes patches of 2 x 2. */
static void check_even(tt_ctx *ctx, const tt_run *r, const char *path)
{
    if (ctx->status || (r->opt.h % 2 == 0 && r->opt.w % 2 == 0)) return;
    tt_fail(ctx, TT_ESHAPE, "%s: latent frames of width %lld and height "
            "%lld; both must be even", path, (long long)r->opt.w,
            (long long)r->opt.h);
}

/* `initial_latent`, or `latents` as other commands write them. */
static const char *initial_name(tt_ctx *ctx, const tt_run *r)
{
    tt_file *file = NULL;
    const char *name = "initial_latent";
    if (tt_file_open(ctx, &file, r->s.initial)) return name;
    if (!tt_file_find(file, name) && tt_file_find(file, "latents"))
        name = "latents";
    tt_file_close(file);
    return name;
}

/* Does the file hold frames of the size that was asked for? In pixels, where
 * input_read would speak of a tensor's shape. */
static tt_status check_pixels(tt_ctx *ctx, const tt_run *r, const char *path,
                              const char *name)
{
    tt_file *f = NULL;
    TT_TRY(ctx->status);
    TT_TRY(tt_file_open(ctx, &f, path));
    const tt_entry *e = tt_file_find(f, name);
    const int64_t h = e && e->t.rank == 5 ? e->t.dim[3] : 0;
    const int64_t w = e && e->t.rank == 5 ? e->t.dim[4] : 0;
    tt_file_close(f);
    if ((r->opt.h && h && h != r->opt.h) || (r->opt.w && w && w != r->opt.w))
        tt_fail(ctx, TT_ESHAPE, "%s holds frames of %lldx%lld pixels, but "
                "the video is to have %lldx%lld; leave out -W and -H to take "
                "the file's size", path, (long long)(8 * w),
                (long long)(8 * h), (long long)(8 * (r->opt.w ? r->opt.w : w)),
                (long long)(8 * (r->opt.h ? r->opt.h : h)));
    return ctx->status;
}

/* Latents to continue, or what they will be encoded from. */
static void read_initial(tt_ctx *ctx, tt_run *r, int64_t C)
{
    given_plan(ctx, &r->given, &r->s, &r->opt);
    int64_t dim[5] = {1, -1, C, 0, 0};
    if (!r->s.initial || ctx->status) return;
    const char *name = initial_name(ctx, r);
    if (check_pixels(ctx, r, r->s.initial, name)) return;
    size_for_file(r, &dim[3], &dim[4]);
    r->opt.initial = input_read(ctx, &r->mem, r->s.initial, name, 5, dim);
    if (!r->opt.initial) return;
    r->opt.initial_frames = dim[1];
    r->opt.h = dim[3];
    r->opt.w = dim[4];
    check_even(ctx, r, r->s.initial);
    record_input(ctx, &r->record, "initial latents", r->s.initial, NULL);
}

static void read_noise(tt_ctx *ctx, tt_run *r, int64_t C)
{
    int64_t dim[5] = {1, -1, C, 0, 0};
    bool length = tt_settings_was_given(&r->s, "latents")
               || tt_settings_was_given(&r->s, "frames")
               || tt_settings_was_given(&r->s, "seconds");
    if (!r->s.noise || check_pixels(ctx, r, r->s.noise, "noise")) return;
    size_for_file(r, &dim[3], &dim[4]);
    record_input(ctx, &r->record, "noise", r->s.noise, NULL);
    if (tt_policy_class_of(&r->opt.policy)->flags & TT_RESTARTS) {
        if (length && settings_length(ctx, &r->s, &r->opt))
            return;
        r->opt.h = dim[3];
        r->opt.w = dim[4];
        restarts_read_noise(ctx, &r->mem, r->s.noise, C, length, &r->opt);
        check_even(ctx, r, r->s.noise);
        return;
    }
    r->opt.noise.noise = input_read(ctx, &r->mem, r->s.noise, "noise", 5,
                                    dim);
    if (!r->opt.noise.noise) return;
    r->opt.h = dim[3];
    r->opt.w = dim[4];
    check_even(ctx, r, r->s.noise);
    if (!length) r->opt.latents = dim[1];
    if (settings_length(ctx, &r->s, &r->opt)) return;
    if (r->opt.latents != dim[1]) {
        tt_fail(ctx, TT_ESHAPE, "%s holds noise for %lld latent frames, but "
                "the length asked for is %lld", r->s.noise, (long long)dim[1],
                (long long)r->opt.latents);
        return;
    }
    int64_t again[4] = {(r->opt.nsteps - 1) * r->opt.latents, C, dim[3],
                        dim[4]};
    if (r->opt.nsteps > 1)
        r->opt.noise.renoise = input_read(ctx, &r->mem, r->s.noise,
                                          "renoise", 4, again);
}

tt_status run_read_inputs(tt_ctx *ctx, tt_run *r)
{
    const int64_t C = tt_dit_get_config(r->dit)->in_dim;
    r->opt.latents = 0; /* not known yet */
    read_initial(ctx, r, C);
    read_noise(ctx, r, C);
    int64_t width, height;
    TT_TRY(ctx->status);
    TT_TRY(tt_model_size(ctx, &width, &height, &r->s.model));
    if (!r->opt.h) r->opt.h = height / 8;
    if (!r->opt.w) r->opt.w = width / 8;
    TT_TRY(settings_length(ctx, &r->s, &r->opt));
    r->s.width = 8 * r->opt.w; /* what a record shows */
    r->s.height = 8 * r->opt.h;
    r->s.latents = r->opt.latents;
    r->s.rollouts = r->opt.rollouts;
    r->s.frames = settings_frames(&r->opt);
    r->s.seconds = (double)r->s.frames / 16;
    return TT_OK;
}
