/* vbench.c: videos in the folder VBench-Long reads.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  VBench vbench2_beta_long: videos are <prompt>-<i>.mp4 in one folder;
 *         clips are grouped by what stands before the first '_' of a name, so
 *         names hold none. A prompt that cannot be a file name goes by an id,
 *         and prompts.json says which. */
#include <stdio.h>
#include <string.h>

#include "analyze/files.h"
#include "core/utf8.h"
#include "analyze/analyze.h"
#include "io/io.h"
#include "io/jsonout.h"
#include "io/outfile.h"

static bool safe(const char *prompt)
{
    size_t n = strlen(prompt);
    if (!n || n > TT_VBENCH_STEM_MAX || strchr(".- ", prompt[0])
        || prompt[n - 1] == ' ')
        return false;
    for (const char *s = prompt; *s;) {
        int k = utf8_length(s);
        unsigned char c = (unsigned char)*s;
        if (!k || c < 32 || c == 127 || strchr("/\\_", c)) return false;
        s += k;
    }
    return true;
}

bool tt_vbench_stem(char stem[TT_VBENCH_STEM_MAX + 1], const char *prompt)
{
    tt_sha256 s;
    char hex[65];
    if (safe(prompt)) {
        strcpy(stem, prompt);
        return true;
    }
    tt_sha256_init(&s);
    tt_sha256_add(&s, prompt, strlen(prompt));
    tt_sha256_hex(&s, hex);
    snprintf(stem, TT_VBENCH_STEM_MAX + 1, "p%.16s", hex);
    return false;
}

/* ---- files --------------------------------------------------------------- */

static tt_status copy_videos(tt_ctx *ctx, const char *folder,
                             const tt_vbench_video *video, int n,
                             json_out *map, int *ids)
{
    char stem[TT_VBENCH_STEM_MAX + 1], other[TT_VBENCH_STEM_MAX + 1];
    char name[TT_VBENCH_STEM_MAX + 32];
    for (int i = 0; i < n && !ctx->status; i++) {
        int index = 0;
        bool itself = tt_vbench_stem(stem, video[i].prompt);
        for (int k = 0; k < i; k++) {
            tt_vbench_stem(other, video[k].prompt);
            if (strcmp(stem, other)) continue;
            index++;
            if (strcmp(video[i].prompt, video[k].prompt))
                return tt_fail(ctx, TT_EINVAL, "two prompts would both be "
                               "called %s", stem);
        }
        snprintf(name, sizeof name, "%s-%d", stem, index);
        tt_arena_mark m = tt_arena_here(&ctx->scratch);
        const char *to = files_join(ctx, &ctx->scratch, folder, name, ".mp4");
        if (!ctx->status && files_exist(to))
            tt_fail(ctx, TT_EINVAL, "%s is there already; give an empty "
                    "folder", to);
        if (!ctx->status) files_copy(ctx, to, video[i].video);
        tt_arena_reset(&ctx->scratch, m);
        if (index) continue;
        json_str(map, stem, video[i].prompt);
        *ids += !itself;
    }
    return ctx->status;
}

static const char commands[] =
    "How to score these videos with VBench-Long\n"
    "(https://github.com/Vchitect/VBench, folder vbench2_beta_long)\n"
    "\n"
    "  git clone https://github.com/Vchitect/VBench.git\n"
    "  cd VBench\n"
    "  pip install -r requirements.txt\n"
    "  pip install scenedetect[opencv] dreamsim\n"
    "\n"
    "Any prompt (six dimensions, no prompt needed). VIDEOS is the folder\n"
    "`videos` next to this file:\n"
    "\n"
    "  for d in subject_consistency background_consistency motion_smoothness "
    "\\\n"
    "           dynamic_degree aesthetic_quality imaging_quality; do\n"
    "    python vbench2_beta_long/eval_long.py --videos_path VIDEOS \\\n"
    "        --dimension $d --mode long_custom_input --dev_flag\n"
    "  done\n"
    "\n"
    "The 946 prompts of VBench, all dimensions (names must equal the prompts\n"
    "exactly; --static_filter_flag belongs to temporal_flickering alone):\n"
    "\n"
    "  python vbench2_beta_long/eval_long.py --videos_path VIDEOS \\\n"
    "      --dimension DIMENSION --mode long_vbench_standard --dev_flag\n"
    "\n"
    "VBench-Long cuts the videos itself into VIDEOS/split_clip: delete that\n"
    "folder after changing a video, or the old clips are scored again.\n"
    "\n"
    "The totals, from a file {\"subject_consistency\": 0.97, ...}, with\n"
    "vbench_scores.py from the folder `tools` of tether's source:\n"
    "\n"
    "  python3 vbench_scores.py results.json -o scores\n";

static tt_status write_notes(tt_ctx *ctx, const char *path, int ids)
{
    tt_out out;
    TT_TRY(tt_out_open(ctx, &out, path));
    fputs(commands, out.file);
    if (ids)
        fprintf(out.file, "\n%d prompt%s here cannot be a file name: the "
                "video%s named by an id\n(prompts.json), and mode "
                "long_vbench_standard will not recognise %s.\n", ids,
                ids == 1 ? "" : "s", ids == 1 ? " is" : "s are",
                ids == 1 ? "it" : "them");
    return tt_out_finish(ctx, &out);
}

static tt_status check_videos(tt_ctx *ctx, const tt_vbench_video *video, int n)
{
    for (int i = 0; i < n; i++) {
        size_t k = strlen(video[i].video);
        if (k < 5 || strcmp(video[i].video + k - 4, ".mp4"))
            return tt_fail(ctx, TT_EINVAL, "VBench-Long reads mp4 files only, "
                           "and the video of a run is %s; make one with "
                           "`tether decode -o NAME.mp4`", video[i].video);
    }
    return TT_OK;
}

tt_status tt_vbench_layout(tt_ctx *ctx, const char *folder,
                           const tt_vbench_video *video, int n)
{
    int ids = 0;
    tt_out out;
    json_out map;
    TT_TRY(check_videos(ctx, video, n));
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const char *videos = files_join(ctx, &ctx->scratch, folder, "videos", "");
    const char *prompts = files_join(ctx, &ctx->scratch, folder, "prompts",
                                     ".json");
    const char *notes = files_join(ctx, &ctx->scratch, folder, "commands",
                                   ".txt");
    if (!ctx->status && !files_make_folder(ctx, videos)
        && !tt_out_open(ctx, &out, prompts)) {
        json_begin(&map, out.file, true);
        copy_videos(ctx, videos, video, n, &map, &ids);
        json_end(&map);
        tt_out_finish(ctx, &out);
    }
    if (!ctx->status) write_notes(ctx, notes, ids);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}
