/* cmd_demo.c: tether demo, the whole pipeline on the small built-in model.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing here is special: it is a run with its settings filled in, long
 * enough that the cache of 21 frames overflows and TetherCache has to choose.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/generate/generate.h"
#include "cli/generate/model.h"
#include "cli/ui/terminal.h"
#include "analyze/analyze.h"
#include "io/video.h"

typedef struct settings {
    const char *output, *model, *prompt, *vae_class;
    uint64_t seed;
    int64_t latents;
    bool list, resume;
} settings;

static const opt_spec options[] = {
    {OPT_GROUP, NULL, 0, 0, NULL, "Demo"},
    {OPT_TEXT, "output", 'o', offsetof(settings, output), "FOLDER",
     "where the video (mp4, or y4m without ffmpeg), the same as an animated "
     "PNG, the contact sheet and the record go (default tether-demo)"},
    {OPT_TEXT, "model", 'm', offsetof(settings, model), "DIR",
     "another small model (default: the built-in one)"},
    {OPT_TEXT, "prompt", 'p', offsetof(settings, prompt), "TEXT",
     "what the video shows"},
    {OPT_U64, "seed", 's', offsetof(settings, seed), "S",
     "seed (default 0)"},
    {OPT_INT, "latents", 0, offsetof(settings, latents), "N",
     "latent frames, a multiple of 3 (default 42: 165 frames, 10.3 s)"},
    {OPT_FLAG, "resume", 0, offsetof(settings, resume), NULL,
     "go on with an interrupted demo; a finished one is decoded again"},
    {OPT_TEXT, "vae-class", 0, offsetof(settings, vae_class), "NAME",
     "how the VAE computes, one of --class (default f32)"},
    {OPT_FLAG, "list", 0, offsetof(settings, list), NULL,
     "print prompts to try, and the words the model knows"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command demo_command = {
    .name = "demo",
    .summary = "a video and a contact sheet from the small built-in model",
    .usage = "[-o FOLDER] [-p TEXT] [-s SEED] | --list",
    .intro = "Runs every part of the program, from the tokenizer to the "
             "video, in seconds and without downloads.",
    .examples = "  tether demo\n"
                "  tether demo -p \"a green triangle spins in place, on a "
                "black background\" -s 7\n"
                "  tether demo --list",
    .options = options,
};

/* What the built-in model was trained to understand; * marks combinations that
 * it never saw (tools/demo_model/data.py holds 64 of 391 back). */
static const char prompts[] =
    "* a red circle moves left and bounces, on a blue background\n"
    "  a green triangle spins in place, on a black background\n"
    "* a yellow square spins in place, on a black background\n"
    "  a white triangle moves up and bounces, on a striped background\n"
    "* a purple square moves down and bounces, on a gray background\n"
    "* a blue circle moves down and bounces, on a black background\n"
    "  a white circle grows and shrinks, on a black background\n"
    "* a green triangle grows and shrinks, on a striped background\n"
    "\n"
    "a COLOUR SHAPE MOTION, on a BACKGROUND background\n"
    "  COLOUR      red green blue yellow white purple\n"
    "  SHAPE       circle square triangle\n"
    "  MOTION      moves left|right|up|down and bounces, grows and shrinks,\n"
    "              spins in place\n"
    "  BACKGROUND  blue gray black striped\n"
    "(* not among the combinations it was trained on)\n";

/* Words of the list above, without signs: each is known to the model. */
static bool knows(const char *word, size_t n)
{
    for (const char *c = prompts; *c;) {
        const size_t here = strspn(c, "abcdefghijklmnopqrstuvwxyz");
        if (here == n && !strncmp(c, word, n)) return true;
        c += here ? here : 1;
        if (!strncmp(c, "\n(", 2)) break; /* about the list                  */
    }
    return false;
}

/* A model that knows thirty words paints something for every text. */
static void warn_of_words(tt_ctx *ctx, const char *prompt)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char unknown[256] = "";
    size_t at = 0;
    for (const char *c = prompt; *c && at < sizeof unknown - 64;) {
        size_t n = strspn(c, letters);
        if (!n && (*c & 0x80)) n = strcspn(c, " ,.");
        if (n && !knows(c, n))
            at += (size_t)snprintf(unknown + at, sizeof unknown - at,
                                   "%s%.*s", at ? ", " : "",
                                   n < 40 ? (int)n : 40, c);
        c += n ? n : 1;
    }
    if (at)
        tt_warn(ctx, "%s: not among the words this model knows; `tether demo "
                "--list` shows them", unknown);
}

/* A video of one's own name is what `generate` makes. */
static int demo_check_folder(const char *name)
{
    static const char *const ending[] = {".apng", ".mp4", ".mov", ".webm",
                                         ".mkv", ".gif", ".y4m", ".png"};
    const char *dot = strrchr(name, '.');
    struct stat st;
    for (size_t i = 0; dot && i < sizeof ending / sizeof *ending; i++)
        if (!strcmp(dot, ending[i]) && stat(name, &st))
            return opt_usage("demo", "-o is a folder, for the video, its "
                             "picture and its record, but %s is the name of a "
                             "file; give a name without %s", name, ending[i]);
    return GO_ON;
}

/* mp4 where ffmpeg is there, else y4m. */
static const char *video_file(tt_ctx *ctx, const char *folder, char *buf,
                              size_t n)
{
    const tt_video_format f = {.width = 64, .height = 64, .fps = 16};
    snprintf(buf, n, "%s/demo.mp4", folder);
    if (tt_video_check(ctx, buf, &f) == TT_EUNSUPPORTED) {
        tt_clear(ctx);
        snprintf(buf, n, "%s/demo.y4m", folder);
    }
    return buf;
}

/* Did an earlier demo write into this folder? */
static bool own_folder(tt_ctx *ctx, const char *folder)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/demo.latents.safetensors", folder);
    return tt_run_made_by_any(ctx, path);
}

/* What is there without the latents of a demo is the user's. */
static tt_status keep_files(tt_ctx *ctx, const char *folder)
{
    static const char *const name[] = {
        "demo.mp4", "demo.y4m", "demo.apng", "sheet.png", "run.json"};
    char path[4200];
    struct stat st;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, name[i]);
        if (!own_folder(ctx, folder) && !stat(path, &st))
            return tt_fail(ctx, TT_EINVAL, "%s is there, and demo replaces "
                           "only what a demo has made; move it away, or give "
                           "another folder with -o", path);
    }
    return ctx->status;
}

/* What is generated: the demo's own settings and names next to each other. */
static tt_status fill_settings(tt_ctx *ctx, tt_settings *run,
                               const settings *s, const char *model)
{
    char video[4200], animation[4200], sheet[4200], record[4200];
    char seed[32], latents[32];
    snprintf(animation, sizeof animation, "%s/demo.apng", s->output);
    snprintf(sheet, sizeof sheet, "%s/sheet.png", s->output);
    snprintf(record, sizeof record, "%s/run.json", s->output);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->seed);
    snprintf(latents, sizeof latents, "%lld", (long long)s->latents);
    const struct { const char *name, *text; } set[] = {
        {"model", model}, {"prompt", s->prompt}, {"seed", seed},
        {"latents", latents}, {"width", "64"}, {"height", "64"},
        {"output", video_file(ctx, s->output, video, sizeof video)},
        {"animation", animation}, {"contact-sheet", sheet},
        {"record", record},
        {"overwrite", own_folder(ctx, s->output) ? "yes" : "no"},
        {"resume", s->resume ? "yes" : "no"}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        tt_settings_set(ctx, run, set[i].name, set[i].text);
    if (s->vae_class) tt_settings_set(ctx, run, "vae-class", s->vae_class);
    return ctx->status;
}

int cmd_demo(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {.output = "tether-demo", .latents = 42,
                  .prompt = "a red circle moves left and bounces, on a blue "
                            "background"};
    tt_settings run = tt_settings_defaults();
    cli_common common;
    opt_result given;
    char model[4096 + 64];
    int status = opt_parse(&demo_command, &s, &common, &given, argc, argv);
    if (status != GO_ON) return status;
    if (s.list) return fputs(prompts, stdout) < 0;
    status = demo_check_folder(s.output);
    if (status != GO_ON) return status;
    if (cli_setup(ctx, &common)) return cli_failed(ctx);
    if (!s.model && model_find_builtin(ctx, model, sizeof model))
        return cli_failed(ctx);
    if (!s.model) warn_of_words(ctx, s.prompt);
    const size_t there = tt_analyze_folder_there(s.output);
    if (tt_analyze_folder(ctx, s.output) || keep_files(ctx, s.output)
        || fill_settings(ctx, &run, &s, s.model ? s.model : model)) {
        tt_settings_free(&run);
        return cli_failed(ctx);
    }
    common.command = "generate";
    status = generate_videos(ctx, &run, &common, argc, argv);
    if (status) tt_analyze_folder_remove(s.output, there);
    if (!status && !common.quiet) {
        terminal_picture(stdout, run.sheet);
        fprintf(stderr, "look at %s; a browser shows %s moving\n", run.sheet,
                run.animation);
    }
    tt_settings_free(&run);
    return status;
}
