/* cmd_decode.c: tether decode, a video from a file of latents.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    decode.c */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/generate/decode.h"
#include "io/inputs.h"
#include "cli/generate/model.h"
#include "cli/ui/fetch.h"
#include "cli/ui/outputs.h"

enum { SPLIT_MAX = 64 };

typedef struct settings {
    tt_model_paths model;
    decode_outputs out;
    const char *latents, *split;
    int64_t fps, overlap;
    bool profile, overwrite, resume;
} settings;

static const opt_spec options[] = {
    {OPT_GROUP, NULL, 0, 0, NULL, "Input"},
    {OPT_READ, "latents", 0, offsetof(settings, latents), "FILE",
     "safetensors with latents [1, n, C, h, w]. A file here; a count in "
     "`generate`"},
    TT_MODEL_ROW_FOLDER(settings, model),
    TT_MODEL_ROW_VAE(settings, model),
    TT_MODEL_ROW_TINY_VAE(settings, model),
    TT_MODEL_ROW_VAE_CLASS(settings, model),
    {OPT_GROUP, NULL, 0, 0, NULL, "Output"},
    {OPT_WRITE, "output", 'o', offsetof(settings, out.video), "PATH",
     ".apng (browsers show it), .mp4 .mov .webm .mkv .gif (through ffmpeg), "
     ".y4m, frames/%05d.png, or - for y4m on standard output. Meanwhile, and "
     "after an interruption, it is NAME.unfinished.mp4 and so on, which can be "
     "played up to where it is (.apng cannot)"},
    {OPT_WRITE, "contact-sheet", 0, offsetof(settings, out.sheet), "FILE",
     "PNG with evenly spaced frames"},
    {OPT_WRITE, "raw-out", 0, offsetof(settings, out.raw), "FILE",
     "safetensors with video_raw [1, 3, F, H, W], float32 before clamping; "
     "needs memory for the whole video"},
    {OPT_INT, "fps", 0, offsetof(settings, fps), "N",
     "frames per second written to the file (default 16)"},
    {OPT_FLAG, "resume", 0, offsetof(settings, resume), NULL,
     "begin again after an interruption: NAME.unfinished.mp4 is replaced"},
    {OPT_FLAG, "overwrite", 0, offsetof(settings, overwrite), NULL,
     "replace a file that is there; without it that is refused"},
    {OPT_GROUP, NULL, 0, 0, NULL, "How"},
    {OPT_INT, "overlap", 0, offsetof(settings, overlap), "O",
     "latents [rollouts, ...] of --cache causvid: frames a clip shares with "
     "the next; its last 4 (O-1) + 1 video frames are left out (default 3)"},
    {OPT_TEXT, "split", 0, offsetof(settings, split), "LIST",
     "latent frames per turn, repeated (default 1); the result is the same "
     "for every split"},
    TT_MODEL_ROW_HISTORY_DIR(settings, model),
    {OPT_FLAG, "profile", 0, offsetof(settings, profile), NULL,
     "print the time per operator at the end"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command decode_command = {
    .name = "decode",
    .summary = "a video from a file of latents",
    .usage = "--latents FILE (-m DIR | --vae FILE) -o PATH",
    .intro = "n latent frames become 1 + 4 (n-1) video frames of 8 times "
             "their width and height. Memory does not grow with the length.",
    .examples = "  tether decode -m Wan2.1-T2V-1.3B --latents cat.latents."
                "safetensors -o cat.mp4\n"
                "  tether decode --vae Wan2.1_VAE.pth --latents l.safetensors "
                "-o - | ffplay -",
    .options = options,
    .bare = "--latents FILE is needed, and -o PATH",
};

static int cli_decode_check(const settings *s, int64_t *split, int *nsplit)
{
    const char *me = decode_command.name;
    if (!s->latents) return opt_usage(me, "--latents FILE is needed");
    if (!s->out.video && !s->out.sheet && !s->out.raw)
        return opt_usage(me, "nothing to write: give -o PATH, "
                         "--contact-sheet FILE or --raw-out FILE");
    if (s->overlap < 1 || s->overlap > 1000000)
        return opt_usage(me, "--overlap must be 1 to 1000000");
    if (s->fps < 1 || s->fps > 1000)
        return opt_usage(me, "--fps must be 1 to 1000");
    *nsplit = opt_list_int(split, SPLIT_MAX, s->split);
    for (int i = 0; i < *nsplit; i++)
        if (split[i] < 1) *nsplit = -1;
    if (*nsplit < 1)
        return opt_usage(me, "--split needs whole numbers of at least 1, as "
                         "in 1,2,4, but `%s` was given", s->split);
    return GO_ON;
}

/* May all of it be written? The latents are open afterwards. */
static tt_status open_inputs(tt_ctx *ctx, const settings *s, tt_arena *mem,
                             decode_outputs *out, tt_file **file, tt_tensor *t)
{
    const int64_t dim[5] = {-1, -1, -1, -1, -1};
    enum { N = 4 };
    const output_name files[N] = {
        {"-o", out->video}, {"--contact-sheet", out->sheet},
        {"--raw-out", out->raw},
        {"the video so far", decode_unfinished(ctx, mem, out->video)}};
    TT_TRY(outputs_differ(ctx, files, N));
    TT_TRY(outputs_png(ctx, "--contact-sheet", out->sheet));
    TT_TRY(input_open(ctx, file, t, s->latents, "latents", 5, dim));
    if (t->dim[0] > 1) out->drop = 4 * (s->overlap - 1) + 1;
    if (!s->overwrite)
        TT_TRY(outputs_free(ctx, files, s->resume ? N - 1 : N,
                            t->dim[0] * decode_frames(t->dim[1]),
                            s->resume || !files[N - 1].path ? NULL
                            : "--resume begins again after an interruption"));
    return decode_check(ctx, out, t->dim[0], t->dim[1], t->dim[3], t->dim[4]);
}

static void decode(tt_ctx *ctx, progress *p, const settings *s,
                   const int64_t *split, int nsplit)
{
    tt_file *file = NULL;
    tt_vae *vae = NULL;
    tt_tensor t;
    tt_arena mem = {0};
    decode_outputs out = s->out;
    const char *const wrote[] = {out.video, out.sheet, out.raw};
    out.source = s->latents;
    if (!open_inputs(ctx, s, &mem, &out, &file, &t)
        && tt_model_open_vae(ctx, &vae, &s->model, NULL) == TT_OK)
        decode_run(ctx, p, vae, &t, split, nsplit, &out);
    if (vae) tt_vae_close(vae);
    if (file) tt_file_close(file);
    tt_arena_free(&mem);
    for (int i = 0; i < 3 && !ctx->status; i++)
        progress_wrote(p, wrote[i]);
}

int cmd_decode(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {.model = TT_MODEL_PATHS, .split = "1", .fps = 16,
                  .overlap = 3};
    cli_common common;
    opt_result given;
    progress p;
    int64_t split[SPLIT_MAX];
    int nsplit = 0;
    int status = opt_parse(&decode_command, &s, &common, &given, argc, argv);
    if (status == GO_ON) status = cli_decode_check(&s, split, &nsplit);
    if (status != GO_ON) return status;
    s.out.fps = (int)s.fps;
    if (cli_setup(ctx, &common) || progress_open(ctx, &p, &common, false))
        return cli_failed(ctx);
    cli_catch_signals(ctx);
    ctx->overwrite = s.overwrite;
    ctx->profiling = s.profile;

    decode(ctx, &p, &s, split, nsplit);
    if (s.profile) profile_print(ctx);
    progress_close(&p);
    return ctx->status ? fetch_failed(ctx, &s.model, FETCH_VAE) : 0;
}
