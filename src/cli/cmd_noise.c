/* cmd_noise.c: tether noise, the noise of a seed into a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Writes the tensors that `generate --noise` takes, so that any other program
 * can run with the very same noise. Frame by frame: memory does not grow with
 * the length. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/ui/outputs.h"
#include "cli/ui/progress.h"
#include "io/io.h"
#include "rollout/rollout.h"

typedef struct settings {
    const char *output, *steps;
    uint64_t seed;
    int64_t sample, latents, width, height, chunk, channels;
    int independent_first_frame;
    bool overwrite;
} settings;

static const opt_spec options[] = {
    {OPT_GROUP, NULL, 0, 0, NULL, "Noise"},
    {OPT_WRITE, "output", 'o', offsetof(settings, output), "FILE",
     "safetensors with `noise` and `renoise`"},
    {OPT_FLAG, "overwrite", 0, offsetof(settings, overwrite), NULL,
     "replace a file that is there; without it that is refused"},
    {OPT_U64, "seed", 's', offsetof(settings, seed), "S",
     "64-bit seed of the generator tn1 (default 0)"},
    {OPT_INT, "sample", 0, offsetof(settings, sample), "I",
     "index of the sample of this seed (default 0)"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Size"},
    {OPT_INT, "latents", 0, offsetof(settings, latents), "N",
     "latent frames to generate (default 21). A count here and in "
     "`generate`; a file in `decode`"},
    {OPT_INT, "width", 'W', offsetof(settings, width), "PIXELS",
     "width of the video, a multiple of 8 (default 832); `generate` takes "
     "multiples of 16"},
    {OPT_INT, "height", 'H', offsetof(settings, height), "PIXELS",
     "height of the video, the same (default 480)"},
    {OPT_INT, "channels", 0, offsetof(settings, channels), "C",
     "latent channels (default 16)"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Order of the re-noise"},
    {OPT_INT, "chunk", 0, offsetof(settings, chunk), "F",
     "latent frames per chunk (default 3)"},
    {OPT_TEXT, "steps", 0, offsetof(settings, steps), "N",
     "denoising steps, as in generate: how many (default 4), or the list"},
    {OPT_SWITCH, "independent-first-frame", 0,
     offsetof(settings, independent_first_frame), NULL,
     "the first chunk is one frame"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command noise_command = {
    .name = "noise",
    .summary = "the noise of a seed into a file, for other programs",
    .usage = "-o FILE [-s SEED] [--latents N] [-W PIXELS -H PIXELS]",
    .intro = "Writes noise [1, N, C, h, w] (the start of every frame) and "
             "renoise [sum over chunks of (steps-1)*frames, C, h, w] (what is "
             "added between steps; chunk by chunk, then step, then frame). "
             "Every value depends on seed, sample, frame, step and element "
             "only, never on length or machine.",
    .examples = "  tether noise -o noise.safetensors -s 7 --latents 21\n"
                "  tether generate ... --noise noise.safetensors",
    .options = options,
    .bare = "-o FILE is needed",
};

/* How many steps the text means, as in `generate`; 0: the reason is said. */
static int64_t count_steps(const char *text)
{
    double list[TT_MAX_STEPS];
    tt_ctx ctx = {.status = TT_OK};
    int n;
    if (!tt_setting_steps(&ctx, list, &n, NULL, text)) return n;
    opt_refused(noise_command.name, &ctx);
    return 0;
}

static int check_sides(const settings *s)
{
    const char *me = noise_command.name;
    if (s->width < 8 || s->height < 8 || s->width % 8 || s->height % 8
        || s->width > 65536 || s->height > 65536)
        return opt_usage(me, "-W and -H must be multiples of 8 up to 65536, "
                         "but %lldx%lld was given", (long long)s->width,
                         (long long)s->height);
    if (s->chunk < 1 || s->channels < 1 || s->channels > 65536)
        return opt_usage(me, "--chunk and --channels must be at least 1");
    return GO_ON;
}

static int check_length(const settings *s)
{
    const char *me = noise_command.name;
    if (s->sample < 0 || s->sample > UINT32_MAX)
        return opt_usage(me, "--sample must be 0 to 4294967295");
    if (s->latents < 1)
        return opt_usage(me, "--latents must be at least 1, but %lld was "
                         "given", (long long)s->latents);
    int64_t rest = s->latents - (s->independent_first_frame ? 1 : 0);
    if (s->latents > UINT32_MAX || rest % s->chunk)
        return opt_usage(me, "--latents %lld is not a whole number of chunks "
                         "of %lld%s", (long long)s->latents,
                         (long long)s->chunk, s->independent_first_frame
                         ? " after the first frame" : "");
    return GO_ON;
}

static int noise_check(settings *s, int64_t *steps)
{
    const char *me = noise_command.name;
    if (!s->output) return opt_usage(me, "-o FILE is needed");
    *steps = count_steps(s->steps);
    if (*steps < 1) return 2;
    const int status = check_sides(s);
    return status == GO_ON ? check_length(s) : status;
}

/* Frame `frame` of stream `stream` appended to the tensor added last. */
static tt_status noise_append(tt_ctx *ctx, tt_st_writer *w, int axis,
                              float *buf, int64_t n, const settings *s,
                              int64_t frame, int64_t stream)
{
    TT_TRY(tt_check_interrupt(ctx));
    tt_noise_frame(buf, n, s->seed, (uint32_t)s->sample, (uint32_t)frame,
                   (uint32_t)stream);
    return tt_st_append(w, axis, 1, buf);
}

/* The file may be made. */
static tt_status noise_check_name(tt_ctx *ctx, const settings *s)
{
    TT_TRY(outputs_safetensors(ctx, "-o", s->output));
    return s->overwrite ? TT_OK : outputs_keep(ctx, "-o", s->output);
}

static tt_status noise_write_all(tt_ctx *ctx, tt_st_writer *w,
                                 const settings *s, int64_t steps, float *buf,
                                 int64_t n)
{
    const int64_t h = s->height / 8, wd = s->width / 8;
    const int64_t first[5] = {1, 0, s->channels, h, wd};
    const int64_t again[4] = {0, s->channels, h, wd};
    TT_TRY(tt_st_add(w, "noise", TT_F32, 5, first, NULL));
    for (int64_t f = 0; f < s->latents; f++)
        TT_TRY(noise_append(ctx, w, 1, buf, n, s, f, 0));
    TT_TRY(tt_st_add(w, "renoise", TT_F32, 4, again, NULL));
    int64_t start = 0;
    while (start < s->latents) {
        int64_t frames = start == 0 && s->independent_first_frame ? 1
                                                                  : s->chunk;
        for (int64_t j = 1; j < steps; j++)
            for (int64_t f = 0; f < frames; f++)
                TT_TRY(noise_append(ctx, w, 0, buf, n, s, start + f, j));
        start += frames;
    }
    return TT_OK;
}

int cmd_noise(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {.steps = "4", .latents = 21, .width = 832, .height = 480,
                  .chunk = 3, .channels = 16};
    cli_common common;
    opt_result given;
    progress p;
    int64_t steps = 0;
    int status = opt_parse(&noise_command, &s, &common, &given, argc, argv);
    if (status == GO_ON) status = noise_check(&s, &steps);
    if (status != GO_ON) return status;
    if (cli_setup(ctx, &common) || progress_open(ctx, &p, &common, false))
        return cli_failed(ctx);
    cli_catch_signals(ctx);
    ctx->overwrite = s.overwrite;

    if (s.width % 16 || s.height % 16)
        progress_say(&p, "note: %lldx%lld is for other programs; `tether "
                     "generate` makes multiples of 16", (long long)s.width,
                     (long long)s.height);
    tt_st_writer *w = NULL;
    int64_t n = s.channels * (s.height / 8) * (s.width / 8);
    float *buf = tt_alloc(ctx, &ctx->scratch, n, sizeof *buf, "a noise frame");
    if (buf && !noise_check_name(ctx, &s)
        && tt_st_create(ctx, &w, s.output) == TT_OK) {
        char seed[32];
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)s.seed);
        tt_st_meta(w, "generator", "tn1");
        tt_st_meta(w, "seed", seed);
        if (noise_write_all(ctx, w, &s, steps, buf, n) == TT_OK)
            tt_st_finish(w);
        else
            tt_st_abort(w);
    }
    if (!ctx->status)
        progress_note(&p, "wrote %s: seed %llu sample %lld, %lld frames of "
                      "%lld values, %lld steps", s.output,
                      (unsigned long long)s.seed, (long long)s.sample,
                      (long long)s.latents, (long long)n, (long long)steps);
    if (!ctx->status) progress_log_wrote(&p, s.output);
    progress_close(&p);
    return ctx->status ? cli_failed(ctx) : 0;
}
