/* cmd_analyze.c: tether analyze, what recorded runs have to say.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    src/analyze/analyze.c */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/ui/progress.h"
#include "analyze/analyze.h"

enum { RUNS_MAX = 1024 };

typedef struct settings {
    const char *output, *reference, *labels, *vbench, *clips;
    double clip_length;
    bool csv, json, html, norm, l1, average, pixels, overwrite;
    int64_t window, layer;
} settings;

static const opt_spec options[] = {
    {OPT_GROUP, NULL, 0, 0, NULL, "Output"},
    {OPT_TEXT, "output", 'o', offsetof(settings, output), "FOLDER",
     "where tables and the page go (default: `analysis` in the first run); "
     "those of an earlier call are replaced, other files stay"},
    {OPT_FLAG, "overwrite", 0, offsetof(settings, overwrite), NULL,
     "replace other files, too"},
    {OPT_FLAG, "csv", 0, offsetof(settings, csv), NULL,
     "tables as CSV. Without any of these three: all of them"},
    {OPT_FLAG, "json", 0, offsetof(settings, json), NULL, "tables as JSON"},
    {OPT_FLAG, "html", 0, offsetof(settings, html), NULL,
     "one page for browsers, index.html, with all curves, maps and decisions"},
    {OPT_TEXT, "labels", 0, offsetof(settings, labels), "A,B,...",
     "what the runs are called in tables and legends (default: the names they "
     "were recorded with)"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Drift"},
    {OPT_READ, "reference", 0, offsetof(settings, reference), "N|RUN",
     "what frames are compared with: the first N frames of the same run "
     "(default 3; 21 is the training window), or all frames of another run or "
     "file of latents"},
    {OPT_FLAG, "norm", 0, offsetof(settings, norm), NULL,
     "divide by the standard deviations of the reference"},
    {OPT_FLAG, "l1", 0, offsetof(settings, l1), NULL,
     "mean absolute distance instead of root mean square"},
    {OPT_INT, "window", 0, offsetof(settings, window), "W",
     "running mean over the last W frames (default 1: none)"},
    {OPT_FLAG, "average", 0, offsetof(settings, average), NULL,
     "one curve per label, the mean over its runs"},
    {OPT_INT, "layer", 0, offsetof(settings, layer), "I",
     "this layer only (default: all; the maps of a single layer show layer "
     "0)"},
    {OPT_GROUP, NULL, 0, 0, NULL, "Other inputs"},
    {OPT_FLAG, "pixels", 0, offsetof(settings, pixels), NULL,
     "the arguments are videos (y4m, frames/%05d.png): VBench's "
     "temporal_flickering and simple statistics of their pixels"},
    {OPT_TEXT, "clips", 0, offsetof(settings, clips), "FOLDER",
     "the arguments are videos: write the first and the last clip of each, to "
     "be scored by other programs"},
    {OPT_REAL, "clip-length", 0, offsetof(settings, clip_length), "X",
     "seconds of such a clip (default 2), or below 1 a share of the video"},
    {OPT_TEXT, "vbench-layout", 0, offsetof(settings, vbench), "FOLDER",
     "copy the mp4 videos of the runs into the layout VBench-Long reads, with "
     "a map from names to prompts and the commands to run"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_foreign foreign[] = {
    {"png", "the page index.html has the pictures; use --html"},
    {"pdf", "the page index.html has the pictures; use --html"},
    {"svg", "the page index.html has the pictures; use --html"},
    {"scores", "tools/vbench_scores.py of the source makes the totals and the "
     "quality drift"},
    {NULL, NULL},
};

static const opt_command analyze_command = {
    .name = "analyze",
    .summary = "tables and a page of what a cache policy did",
    .usage = "RUN [RUN...] [-o FOLDER]",
    .intro = "RUN is a folder written by `generate --analyze`, or one file "
             "with latents or of --trace-cache. Several runs are drawn side "
             "by side.",
    .examples = "  tether analyze runs/fifo runs/tether -o compared\n"
                "  tether analyze a.latents.safetensors --reference 21 --norm\n"
                "  tether analyze --pixels video.y4m -o pixels",
    .options = options,
    .foreign = foreign,
    .positional_max = RUNS_MAX,
    .bare = "name at least one run folder",
};

/* ---- options ------------------------------------------------------------- */

static int analyze_check(settings *s, const opt_result *given)
{
    const char *me = analyze_command.name;
    if (!given->npositional)
        return opt_usage(me, "name at least one run folder");
    if ((s->pixels || s->clips) && s->vbench)
        return opt_usage(me, "--vbench-layout takes runs, --pixels and --clips "
                         "take videos: one at a time");
    if (!(s->clip_length > 0))
        return opt_usage(me, "--clip-length must be positive");
    if (s->window < 1) return opt_usage(me, "--window must be at least 1");
    if (s->layer < -1) return opt_usage(me, "--layer counts from 0");
    if (!s->csv && !s->json && !s->html) s->csv = s->json = s->html = true;
    return GO_ON;
}

/* A count of frames, 0 when the text is not one. */
static int64_t count_of(const char *text)
{
    char *end;
    long long n = strtoll(text, &end, 10);
    return *text && !*end && n > 0 ? n : 0;
}

/* "a,b,c" over the labels of the runs. */
static tt_status set_labels(tt_ctx *ctx, const char *list,
                            tt_recording *const *run, int n)
{
    char *copy = tt_strdup(ctx, &ctx->scratch, list);
    for (int i = 0; copy && i < n; i++) {
        char *comma = strchr(copy, ',');
        if ((comma != NULL) != (i + 1 < n))
            return tt_fail(ctx, TT_EINVAL, n == 1
                           ? "--labels needs one name for one run, without "
                             "commas (%d run)"
                           : "--labels needs %d names separated by commas, "
                             "one for each run", n);
        if (comma) *comma = 0;
        tt_recording_set_label(ctx, run[i], copy);
        if (comma) copy = comma + 1;
    }
    return ctx->status;
}

/* ---- what it does -------------------------------------------------------- */

static tt_status layout(tt_ctx *ctx, const settings *s,
                        tt_recording *const *run, int n)
{
    tt_vbench_video video[RUNS_MAX];
    for (int i = 0; i < n; i++) {
        video[i].video = tt_recording_video(run[i]);
        video[i].prompt = tt_recording_prompt(run[i]);
        if (!video[i].video || !video[i].prompt)
            return tt_fail(ctx, TT_EINVAL, "run %s has no %s; VBench needs a "
                           "video made from a prompt",
                           tt_recording_label(run[i]),
                           video[i].video ? "prompt" : "video");
    }
    return tt_vbench_layout(ctx, s->vbench, video, n);
}

/* A run, or with --pixels and --clips a video, is taken up. */
static void note_input(progress *p, const char *path, const char *label)
{
    json_out j;
    progress_note(p, label ? "%s: %s" : "%s", path, label);
    if (!progress_log(p, &j, "input")) return;
    json_str(&j, "path", path);
    json_str(&j, "label", label);
    progress_logged(p, &j);
}

static tt_status analyze_runs(tt_ctx *ctx, progress *p, const settings *s,
                              const opt_result *given,
                              tt_analyze_options *opt)
{
    tt_recording *run[RUNS_MAX] = {NULL}, *reference = NULL;
    int n = given->npositional;
    for (int i = 0; i < n && !ctx->status; i++)
        tt_recording_open(ctx, &run[i], given->positional[i]);
    if (!ctx->status && s->labels) set_labels(ctx, s->labels, run, n);
    for (int i = 0; i < n && !ctx->status; i++)
        note_input(p, given->positional[i], tt_recording_label(run[i]));
    if (!ctx->status && s->reference && !(opt->reference =
                                          count_of(s->reference))) {
        opt->reference = 1;
        tt_recording_open(ctx, &reference, s->reference);
        opt->reference_run = reference;
    }
    if (!ctx->status && s->vbench) layout(ctx, s, run, n);
    else if (!ctx->status) tt_analyze(ctx, run, n, opt);
    for (int i = 0; i < n; i++) tt_recording_close(run[i]);
    tt_recording_close(reference);
    return ctx->status;
}

/* Default output folder: in the first run, or next to the file. */
static const char *default_folder(tt_ctx *ctx, const opt_result *given)
{
    char buf[4096];
    const char *first = given->positional[0], *slash = strrchr(first, '/');
    size_t n = strlen(first);
    if (strlen(first) > 12 && !strcmp(first + n - 12, ".safetensors"))
        n = slash ? (size_t)(slash - first) : 0;
    if (n) snprintf(buf, sizeof buf, "%.*s/analysis", (int)n, first);
    else snprintf(buf, sizeof buf, "analysis");
    return tt_strdup(ctx, &ctx->scratch, buf);
}

/* Everything that was asked for. */
static void analyze(tt_ctx *ctx, progress *p, const settings *s,
                    const opt_result *given, tt_analyze_options *opt)
{
    const int n = given->npositional;
    for (int i = 0; (s->clips || s->pixels) && i < n && !ctx->status; i++) {
        note_input(p, given->positional[i], NULL);
        if (s->clips)
            tt_analyze_clips(ctx, s->clips, given->positional[i],
                             s->clip_length);
    }
    if (!ctx->status && s->pixels)
        tt_analyze_pixels(ctx, given->positional, n, opt);
    else if (!ctx->status && !s->clips)
        analyze_runs(ctx, p, s, given, opt);
}

static void say_where(progress *p, const char *folder)
{
    json_out j;
    progress_say(p, "wrote %s", folder);
    if (!progress_log(p, &j, "wrote")) return;
    json_str(&j, "folder", folder);
    progress_logged(p, &j);
}

static tt_analyze_options analyze_options_of(const settings *s)
{
    tt_analyze_options opt = tt_analyze_defaults();
    opt.csv = s->csv;
    opt.json = s->json;
    opt.html = s->html;
    opt.norm = s->norm;
    opt.l1 = s->l1;
    opt.average = s->average;
    opt.window = s->window;
    opt.layer = s->layer;
    return opt;
}

/* Where the results are, for the last line. */
static const char *result_of(const settings *s, const char *folder)
{
    if (s->vbench) return s->vbench;
    return s->clips && !s->pixels ? s->clips : folder;
}

int cmd_analyze(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {.window = 1, .layer = -1, .clip_length = 2};
    cli_common common;
    opt_result given;
    progress p;
    int status = opt_parse(&analyze_command, &s, &common, &given, argc, argv);
    if (status == GO_ON) status = analyze_check(&s, &given);
    if (status != GO_ON) return status;
    if (cli_setup(ctx, &common) || progress_open(ctx, &p, &common, false))
        return cli_failed(ctx);

    tt_analyze_options opt = analyze_options_of(&s);
    opt.folder = s.output ? s.output : s.pixels ? "."
                          : default_folder(ctx, &given);
    ctx->overwrite = s.overwrite;
    const char *where = result_of(&s, opt.folder);
    const size_t there = tt_analyze_folder_there(where);
    analyze(ctx, &p, &s, &given, &opt);
    if (ctx->status) tt_analyze_folder_remove(where, there);
    else say_where(&p, where);
    progress_close(&p);
    return ctx->status ? cli_failed(ctx) : 0;
}
