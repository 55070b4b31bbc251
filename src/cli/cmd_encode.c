/* cmd_encode.c: tether encode, latents from pictures or a video.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    encode.c */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/generate/model.h"
#include "cli/ui/fetch.h"
#include "cli/ui/outputs.h"
#include "cli/ui/progress.h"
#include "io/outfile.h"

typedef struct settings {
    tt_model_paths model;
    tt_encode_input in;
    const char *output;
    bool profile, overwrite;
} settings;

static const opt_spec options[] = {
    {OPT_GROUP, NULL, 0, 0, NULL, "Input (one of these)"},
    {OPT_READ, "input", 'i', offsetof(settings, in.path), "PATH",
     "PNG or JPEG, frames/%05d.png (from 0 or 1), .y4m, - for y4m on standard "
     "input, or any other video (through ffmpeg)"},
    {OPT_READ, "raw-in", 0, offsetof(settings, in.raw), "FILE",
     "safetensors with video [1, 3, F, H, W] in [-1, 1], of any size"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Which part, which size"},
    {OPT_INT, "skip", 0, offsetof(settings, in.skip), "N",
     "frames to leave out at the beginning (default 0)"},
    {OPT_INT, "frames", 0, offsetof(settings, in.take), "N",
     "frames to encode (default: all that follow)"},
    {OPT_INT, "width", 'W', offsetof(settings, in.width), "PIXELS",
     "resize to this width, a multiple of 16; the sides are scaled "
     "independently (default: that of the input)"},
    {OPT_INT, "height", 'H', offsetof(settings, in.height), "PIXELS",
     "and to this height (default: that of the input)"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Model"},
    TT_MODEL_ROW_FOLDER(settings, model),
    TT_MODEL_ROW_VAE(settings, model),
    TT_MODEL_ROW_VAE_CLASS(settings, model),
    TT_MODEL_ROW_HISTORY_DIR(settings, model),
    {OPT_GROUP, NULL, 0, 0, NULL, "Output"},
    {OPT_WRITE, "output", 'o', offsetof(settings, output), "FILE",
     "safetensors with latents [1, n, C, h, w]; its metadata name the class of "
     "the VAE where that is not f32 (vae_class)"},
    {OPT_FLAG, "overwrite", 0, offsetof(settings, overwrite), NULL,
     "replace a file that is there; without it that is refused"},
    {OPT_FLAG, "profile", 0, offsetof(settings, profile), NULL,
     "print the time per operator at the end"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command encode_command = {
    .name = "encode",
    .summary = "latents from pictures or a video",
    .usage = "-i PATH (-m DIR | --vae FILE) -o FILE",
    .intro = "The first frame makes a latent frame of an eighth of its width "
             "and height, then every four frames make one. What does not "
             "fill a group of four at the end is dropped, with a warning. "
             "Memory does not grow with the length.",
    .examples =
    "  tether encode -m Wan2.1-T2V-1.3B -i cat.mp4 -W 832 -H 480 "
    "-o cat.safetensors\n"
    "  tether generate ... --initial-latents cat.safetensors -o longer.mp4",
    .options = options,
    .bare = "give one of -i PATH and --raw-in FILE, and -o FILE",
};

static int encode_check(const settings *s, const opt_result *given)
{
    const char *me = encode_command.name;
    const struct { const char *name; int64_t v; } side[] = {
        {"width", s->in.width}, {"height", s->in.height}};
    if (!s->in.path == !s->in.raw)
        return opt_usage(me, "give one of -i PATH and --raw-in FILE");
    if (!s->output) return opt_usage(me, "-o FILE is needed");
    for (int i = 0; i < 2; i++) {
        if (!opt_given(given, side[i].name)) continue;
        if (s->in.raw)
            return opt_usage(me, "--raw-in is encoded as it is; --%s goes "
                             "with -i", side[i].name);
        if (side[i].v < 16 || side[i].v > 16384 || side[i].v % 16)
            return opt_usage(me, "--%s must be a multiple of 16 from 16 to "
                             "16384, but %lld was given", side[i].name,
                             (long long)side[i].v);
    }
    if (s->in.skip < 0 || s->in.skip > INT32_MAX)
        return opt_usage(me, "--skip must be 0 to %d", INT32_MAX);
    if (opt_given(given, "frames")
        && (s->in.take < 1 || s->in.take > INT32_MAX))
        return opt_usage(me, "--frames must be 1 to %d", INT32_MAX);
    return GO_ON;
}

typedef struct sink {
    tt_ctx *ctx;
    const char *path;
    const char *vae_class;      /* NULL: f32                                  */
    tt_st_writer *file;         /* NULL before the first latent               */
    int64_t dim[5];
} sink;

static tt_status take_latent(void *user, const tt_real *z, int64_t C,
                             int64_t h, int64_t w)
{
    sink *s = user;
    if (!s->file) {
        const int64_t dim[5] = {1, 0, C, h, w};
        memcpy(s->dim, dim, sizeof dim);
        TT_TRY(tt_st_create(s->ctx, &s->file, s->path));
        if (s->vae_class) tt_st_meta(s->file, "vae_class", s->vae_class);
        TT_TRY(tt_st_add(s->file, "latents",
                         sizeof(tt_real) == 8 ? TT_F64 : TT_F32, 5, dim,
                         NULL));
    }
    s->dim[1]++;
    return tt_st_append(s->file, 1, 1, z);
}

static void cli_encode(tt_ctx *ctx, progress *p, const settings *s)
{
    tt_encode_size size;
    tt_vae *vae = NULL;
    sink out = {.ctx = ctx, .path = s->output};
    const tt_run_events events = progress_of_a_run(p);
    if (!s->overwrite && outputs_keep(ctx, "-o", s->output)) return;
    if (tt_out_check(ctx, s->output) || tt_encode_measure(ctx, &size, &s->in)
        || tt_model_open_vae_part(ctx, &vae, &s->model, TT_VAE_ENCODER, NULL))
        return;
    if (tt_vae_class(vae) != TT_CLASS_F32)
        out.vae_class = tt_class_name(tt_vae_class(vae));
    tt_encode_run(ctx, &events, vae, &s->in, &size, take_latent, &out);
    if (ctx->status) tt_st_abort(out.file);
    else tt_st_finish(out.file);
    tt_vae_close(vae);
    if (!ctx->status)
        progress_say(p, "wrote %s: %lld latents of %lldx%lld from %lld frames "
                     "of %lldx%lld", s->output, (long long)out.dim[1],
                     (long long)out.dim[4], (long long)out.dim[3],
                     (long long)size.frames, (long long)size.width,
                     (long long)size.height);
    if (!ctx->status) progress_log_wrote(p, s->output);
}

int cmd_encode(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {.model = TT_MODEL_PATHS};
    cli_common common;
    opt_result given;
    progress p;
    int status = opt_parse(&encode_command, &s, &common, &given, argc, argv);
    if (status == GO_ON) status = encode_check(&s, &given);
    if (status != GO_ON) return status;
    if (cli_setup(ctx, &common) || progress_open(ctx, &p, &common, false))
        return cli_failed(ctx);
    cli_catch_signals(ctx);
    ctx->overwrite = s.overwrite;
    ctx->profiling = s.profile;

    cli_encode(ctx, &p, &s);
    if (s.profile) profile_print(ctx);
    progress_close(&p);
    return ctx->status ? fetch_failed(ctx, &s.model, FETCH_VAE) : 0;
}
