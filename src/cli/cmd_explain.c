/* cmd_explain.c: tether explain, one decision of a cache policy with all its
 * numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Next    src/analyze/explain.c */
#include <stdio.h>

#include "cli/cli.h"
#include "analyze/analyze.h"

typedef struct settings {
    int64_t chunk, layer;
} settings;

static const opt_spec options[] = {
    {OPT_INT, "chunk", 0, offsetof(settings, chunk), "N",
     "of the video, from 0 (default: the first in which frames compete for the "
     "memory, else the last)"},
    {OPT_INT, "layer", 0, offsetof(settings, layer), "N",
     "of the transformer, from 0 (default 0)"},
    {OPT_END, NULL, 0, 0, NULL, NULL},
};

static const opt_command explain_command = {
    .name = "explain",
    .summary = "one decision of a cache policy, with all its numbers",
    .usage = "RUN [--chunk N] [--layer N]",
    .intro = "RUN is a folder written by `generate --analyze`, or a file of "
             "--trace-cache. The tables show what the cache holds, which "
             "frames compete for the memory of TetherCache with importance, "
             "redundancy, diversity and score (GRAB), and what the edit of the "
             "admitted ones changes (TAME). The page index.html in RUN shows "
             "the same with sliders.",
    .examples = "  tether explain runs/tether --chunk 7 --layer 0",
    .options = options,
    .no_log = true,
    .positional_max = 1,
    .bare = "name one run folder",
};

int cmd_explain(tt_ctx *ctx, int argc, char **argv)
{
    settings s = {.chunk = -1};
    cli_common common;
    opt_result given;
    tt_recording *r;
    int status = opt_parse(&explain_command, &s, &common, &given, argc, argv);
    if (status != GO_ON) return status;
    if (given.npositional != 1)
        return opt_usage(explain_command.name, "name one run folder");
    if (cli_setup(ctx, &common)
        || tt_recording_open(ctx, &r, given.positional[0]))
        return cli_failed(ctx);
    if (s.chunk < 0) s.chunk = tt_recording_decision(r);
    tt_recording_explain(ctx, stdout, r, s.chunk, s.layer);
    tt_recording_close(r);
    return ctx->status ? cli_failed(ctx) : 0;
}
