/* cmd_convert.c: tether convert, any readable checkpoint as safetensors.
 *
 * SPDX-License-Identifier: Apache-2.0
 * Next    src/io/convert.c */
#include <string.h>

#include "cli/cli.h"
#include "cli/ui/outputs.h"
#include "cli/ui/progress.h"
#include "core/nearest.h"
#include "io/io.h"

typedef struct settings {
    const char *out, *dtype, *layout, *model, *weights, *lora;
    bool overwrite;
} settings;

static const opt_spec options[] = {
    {OPT_WRITE, "output", 'o', offsetof(settings, out), "FILE",
     "the safetensors file to write"},
    {OPT_TEXT, "dtype", 0, offsetof(settings, dtype), "f32|bf16|f16",
     "the type of all floating-point values; left out: as stored (quantised "
     "and scaled 8-bit values become f32)"},
    {OPT_TEXT, "layout", 0, offsetof(settings, layout), "wan|diffusers",
     "names of the tensors (default wan)"},
    {OPT_TEXT, "model", 0, offsetof(settings, model),
     "dit|vae|text-encoder|tiny-vae",
     "which, where a folder or file holds several; left out: the first that "
     "is found"},
    {OPT_TEXT, "weights", 0, offsetof(settings, weights), "ema|raw",
     "which set of a Self-Forcing checkpoint (default ema)"},
    TT_MODEL_ROW_LORA(settings, lora),
    {OPT_FLAG, "overwrite", 0, offsetof(settings, overwrite), NULL,
     "replace a file that is there; without it that is refused"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command convert_command = {
    .name = "convert",
    .summary = "a checkpoint as one safetensors file",
    .usage = "IN -o OUT.safetensors [--dtype f32|bf16|f16] "
             "[--layout wan|diffusers]",
    .intro = "Reads whatever `tether inspect` reads. Names and prefixes are "
             "made those of Wan's own files or of Diffusers; a file that is "
             "no known model keeps its names. With --lora merged weights are "
             "written: of the part that --model says, and without --dtype in "
             "f32 where something was merged. The result is read again and "
             "compared before the command ends.",
    .examples = "  tether convert self_forcing_dmd.pt -o sf.safetensors "
                "--dtype bf16\n"
                "  tether convert base.pt --lora lora.pt "
                "-o merged.safetensors\n"
                "  tether convert umt5-xxl-Q8_0.gguf -o t5.safetensors "
                "--dtype bf16",
    .options = options,
    .positional_max = 1,
    .bare = "expected one file or folder to convert, and -o OUT.safetensors",
};

typedef struct view {
    progress bar;
    double start;
} view;

static void show_choice(void *user, const char *what, const char *path,
                        const char *origin)
{
    progress_say(&((view *)user)->bar, "%s: %s (%s)", path, what, origin);
}

static void show_progress(void *user, const char *phase, int64_t done,
                          int64_t total)
{
    view *v = user;
    /* twice the values: written, compared */
    if (done % (1 << 24) < (1 << 16) || done == total)
        progress_update(&v->bar, (double)done / (double)total * 100, 100,
                        tt_now() - v->start, "%s", phase);
}

/* Index of `word` in `names`; -1 for NULL; -2 when it is none of them. */
static int choice(const char *word, const char *const *names)
{
    if (!word) return -1;
    for (int i = 0; names[i]; i++)
        if (!strcmp(word, names[i])) return i;
    return -2;
}

/* The settings as options; a sentence when one is not what it may be, in `why`
 * where it is about a word. */
static const char *read_choices(tt_convert_options *o, const settings *s,
                                char why[200])
{
    static const char *const types[] = {"f32", "bf16", "f16", NULL};
    static const tt_dtype dtype[] = {TT_F32, TT_BF16, TT_F16};
    static const char *const layouts[] = {"wan", "diffusers", NULL};
    static const char *const models[] = {"dit", "vae", "text-encoder",
                                         "tiny-vae", NULL};
    static const char *const sets[] = {"raw", "ema", NULL};
    const int t = choice(s->dtype, types), l = choice(s->layout, layouts);
    o->kind = choice(s->model, models);
    o->ema = choice(s->weights, sets);
    o->dtype = t >= 0 ? dtype[t] : TT_NONE;
    o->diffusers = l == 1;
    o->lora = s->lora;
    if (!s->out || !*s->out) return "-o OUT.safetensors is missing";
    char hint[NEAREST_HINT];
    if (t == -2)
        snprintf(why, 200, "--dtype must be f32, bf16 or f16, but `%.60s` was "
                 "given%s", s->dtype, nearest_hint(hint, s->dtype, types, 3));
    if (t == -2) return why;
    if (l == -2) return "--layout must be wan or diffusers";
    if (o->kind == -2)
        return "--model must be dit, vae, text-encoder or tiny-vae";
    if (o->ema == -2) return "--weights must be ema or raw";
    return NULL;
}

int cmd_convert(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {0};
    cli_common common;
    opt_result given;
    view v;
    int status = opt_parse(&convert_command, &s, &common, &given, argc, argv);
    if (status != GO_ON) return status;
    if (given.npositional != 1)
        return opt_usage("convert", "expected one file or folder to convert");
    tt_convert_options o = {.chosen = show_choice, .progress = show_progress,
                            .user = &v};
    char words[200];
    const char *why = read_choices(&o, &s, words);
    if (why) return opt_usage("convert", "%s", why);
    if (cli_setup(ctx, &common)) return cli_failed(ctx);
    if (progress_open(ctx, &v.bar, &common, false)) return cli_failed(ctx);
    cli_catch_signals(ctx);
    ctx->overwrite = s.overwrite;
    v.start = tt_now();
    outputs_safetensors(ctx, "-o", s.out);
    if (!s.overwrite) outputs_keep(ctx, "-o", s.out);
    if (!ctx->status) tt_convert(ctx, s.out, given.positional[0], &o);
    if (!ctx->status) progress_wrote(&v.bar, s.out);
    progress_close(&v.bar);
    return ctx->status ? cli_failed(ctx) : 0;
}
