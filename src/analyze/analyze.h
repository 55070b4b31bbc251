/* analyze.h: what a cache policy did to a video, recorded and measured.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Recording, next to a rollout:
 *     tt_recorder *rec;
 *     TT_TRY(tt_recorder_open(ctx, &rec, tt_rollout_cache(r), &options));
 *     while (tt_rollout_next(ctx, r, &x0, &frames) == TT_OK)
 *         tt_recorder_chunk(rec, start, frames, x0);
 *     tt_recorder_finish(rec);
 * Analysing, later and elsewhere:
 *     TT_TRY(tt_recording_open(ctx, &run, "runs/tether"));
 *     tt_analyze(ctx, &run, 1, &what);
 *
 * A *run folder* holds
 *   run.json               policy, its numbers, sizes, prompt, seed
 *   latents.safetensors    latents [1, n, C, h, w]
 *   trace.safetensors      the cache after every context pass, and every
 *                          admission round (tensors: tt_recorder_finish)
 *   chosen.safetensors     Deep Forcing: comp_chosen [row, 6] F64, every token
 *                          chosen: chunk, layer, source frame, place in it,
 *                          times chosen before, phi
 *   features.safetensors   kv_stats [frames, layers, 4, H*D] F32: per channel
 *                          mean and population standard deviation over the
 *                          tokens of a frame's clean unrotated keys (0, 1) and
 *                          values (2, 3), at its own context pass
 * Nothing here changes a run: the cache is only read. */
#ifndef TT_ANALYZE_ANALYZE_H
#define TT_ANALYZE_ANALYZE_H

#include <stdio.h>

#include "cache/policy.h"

/* ---- recording ----------------------------------------------------------- */

typedef struct tt_recorder tt_recorder;

/* A stretch of the video with a prompt of its own. */
typedef struct tt_recorder_scene {
    int64_t chunk;           /* it begins with                                */
    const char *prompt;      /* NULL: from embeddings                         */
    bool cut;
} tt_recorder_scene;

/* As the member "scenes" of a record; n 0: none. */
struct json_out;
void tt_recorder_scenes(struct json_out *j, const tt_recorder_scene *scene,
                        int n);

typedef struct tt_recorder_options {
    const char *folder;      /* run folder, made when missing; NULL: none     */
    const char *trace;       /* the trace alone (--trace-cache); NULL: none   */
    int64_t C, h, w;         /* of the latents; for the folder                */
    bool features;           /* write features.safetensors                    */
    const char *label;       /* in legends; NULL: the policy's name           */
    const char *prompt;      /* the first; NULL: from embeddings              */
    const tt_recorder_scene *scene; /* [nscenes]; 0: one prompt throughout    */
    int nscenes;
    uint64_t seed;
    int64_t sample;
    const char *video, *sheet; /* made from this run; NULL: none              */
    bool during;             /* run.json and the trace are there during the run,
                                for who looks on                              */
    bool follows;            /* of a rank other than 0, whose recorder has a
                                folder and features: writes nothing           */
} tt_recorder_options;

/* Listens to the cache (tt_cache_on_event) until finish or abort, which must
 * come before the cache is closed.
 * Memory  per chunk layers * (9 bytes per slot + 4 per frame so far) and the
 *         admission rounds; latents and features go to the disk at once. */
tt_status tt_recorder_open(tt_ctx *ctx, tt_recorder **out, tt_cache *cache,
                           const tt_recorder_options *opt);

/* After the context pass of frames [start, start + frames).
 *   latents [frames, C, h, w]; NULL: these frames are in the recording
 *           already (restarted rollouts), only the cache is looked at */
tt_status tt_recorder_chunk(tt_recorder *r, int64_t start, int64_t frames,
                            const tt_host *latents);

/* Frames of the cache count from `first` of the video from here on
 * (restarted rollouts; 0 at the beginning). */
void tt_recorder_shift(tt_recorder *r, int64_t first);

/* Write everything, atomically file by file; frees r also when it fails.
 * Trace tensors
 *   ends [chunk, 2] I64            frames seen, live frames (layer 0)
 *   memory_index [chunk, layer, M], counters [chunk, layer, 3] I64,
 *   cache_filled [chunk, layer] U8                      (TetherCache)
 *   grab_layer grab_chunk grab_sub [round] I64, grab_candidates [round, P] I64,
 *   grab_mass grab_div grab_scores [round, P], grab_keep [round, P] U8,
 *   grab_memory_after [round, M] I64, grab_margin [round] F64
 *   comp_event [event, 7] I64      layer, chunk, event, source tokens, kept
 *       tokens, chosen tokens, frames the sinks moved   (Deep Forcing)
 *   comp_frame [row, 4] I64        event (row of comp_event), source frame,
 *       candidate tokens, chosen tokens
 *   comp_frame_phi [row, 2] F64    mean and largest phi of the candidates
 *   chunk_start, chunk_frames [chunk] I64
 *   bio_src [chunk, layer, slot] I32     source frame of most of the slot's
 *       tokens; -1 empty, -2 long-term and -3 short-term summaries
 *   bio_share [chunk, layer, slot] F32   their share of L; 1: a whole frame
 *   bio_region [chunk, layer, slot] U8   tt_region
 *   bio_part [row, 5] I32                chunk, layer, slot, source frame,
 *       tokens: slots that hold tokens of several frames
 *   readable [chunk, layer, frame] F32   share of the frame's L tokens that
 *       attention reads after the context pass */
tt_status tt_recorder_finish(tt_recorder *r);
/* Drop everything; NULL is fine. */
void tt_recorder_abort(tt_recorder *r);

/* Regions of a cache. Sink: the first S slots. New: frames of the latest
 * chunk. Recent: whole frames in unbroken order up to the latest one. Memory:
 * what is in between (TetherCache: its memory slots, from the first time the
 * cache is full). */
typedef enum tt_region {
    TT_REGION_EMPTY, TT_REGION_SINK, TT_REGION_MEMORY, TT_REGION_RECENT,
    TT_REGION_NEW, TT_REGION_COUNT
} tt_region;
const char *tt_region_name(tt_region r);

/* ---- a recorded run ------------------------------------------------------ */

typedef struct tt_recording tt_recording;

/* `path`: a run folder, or one safetensors file with latents or a trace.
 * What is not there is not analysed.
 * Errors  TT_EFORMAT, TT_ESHAPE  the tensors contradict each other */
tt_status tt_recording_open(tt_ctx *ctx, tt_recording **out, const char *path);
void tt_recording_close(tt_recording *r);
/* Cut to 200 bytes when run.json has a longer one. */
const char *tt_recording_label(const tt_recording *r);
void tt_recording_set_label(tt_ctx *ctx, tt_recording *r, const char *label);
const char *tt_recording_prompt(const tt_recording *r); /* NULL: unknown      */
const char *tt_recording_video(const tt_recording *r);  /* path; NULL         */
/* How long the run took, for reports; negative: unknown. */
void tt_recording_set_seconds(tt_recording *r, double seconds);

/* The first chunk in which candidates compete for the memory, else the last;
 * -1: no trace. */
int64_t tt_recording_decision(const tt_recording *r);
/* What the cache holds after that chunk in that layer, and what TetherCache
 * decided there with all numbers (eqs. 3-13), as text on f.
 * Errors  TT_EINVAL  no trace, or no such chunk or layer in it */
tt_status tt_recording_explain(tt_ctx *ctx, FILE *f, const tt_recording *r,
                               int64_t chunk, int64_t layer);

/* ---- analyses ------------------------------------------------------------ */

typedef struct tt_analyze_options {
    const char *folder;        /* where files go; made when missing           */
    bool csv, json, html;
    int64_t reference;         /* frames of the reference set, from the first */
    const tt_recording *reference_run; /* instead: all frames of another run  */
    bool norm;                 /* distances in reference standard deviations  */
    bool l1;                   /* mean absolute instead of root mean square   */
    int64_t window;            /* running mean over this many frames          */
    int64_t layer;             /* this layer only; -1: all                    */
    bool average;              /* one curve per label: mean over its runs     */
    const char *const *facts;  /* head of a report: name, value, name, value,
                                  ..., NULL; NULL: none                       */
} tt_analyze_options;
tt_analyze_options tt_analyze_defaults(void);

/* Write into the folder, of n runs side by side, as far as they hold it:
 *   drift        A   distance of latents, keys and values from the reference
 *   biography    B   where the frame in every slot came from
 *   weights      B   what the summaries of memrope are made of
 *   retention    C   which frames could be read at every step
 *   steps        C   distinct frames, span, age, diagonal band per step
 *   summary      C   the same as one row per run, with counters
 *   selection    D   candidates, scores and decisions of every round
 *   compression, chosen   D   of Deep Forcing, by source frame and by token
 *                    (tokens: of opt->layer, or when there are few)
 * each as .csv and .json, and index.html: the page of tt_report_write. Files of
 * an earlier analysis are replaced; other files stay, but with ctx->overwrite.
 * Errors  TT_EINVAL  a layer or reference the runs do not have; a file that
 *                    is no analysis stands under one of the names */
tt_status tt_analyze(tt_ctx *ctx, tt_recording *const *run, int n,
                     const tt_analyze_options *opt);

/* E. Exact, network-free pixel metrics of videos (anything tt_video_in reads):
 * pixels and flickering .csv, .json; pixels.html. temporal_flickering is
 * VBench's formula on all frames; VBench-Long drops static clips first, which
 * needs a network. The rest (means, saturation, sharpness) are proxies of our
 * own. n is at most 1024. */
tt_status tt_analyze_pixels(tt_ctx *ctx, const char *const *video, int n,
                            const tt_analyze_options *opt);

/* The first and the last clip of a video, for scoring by other programs:
 * FOLDER/<parent>-<name>_first and _last, .y4m from y4m, else .mp4, 16 frames
 * a second.
 *   length   seconds, or below 1 a share of the video */
tt_status tt_analyze_clips(tt_ctx *ctx, const char *folder, const char *video,
                           double length);

/* ---- VBench-Long --------------------------------------------------------- */

#define TT_VBENCH_STEM_MAX 240 /* leaves room for "-99999999.mp4" in 255      */

/* The name VBench-Long should know a prompt by: the prompt itself where that
 * is a safe file name, else "p" and 16 digits of its SHA-256. Unsafe: empty,
 * '/', '\\', '_' (clips are grouped by what stands before it), a leading '.',
 * '-' or space, a trailing space, control characters, text that is not UTF-8,
 * more than TT_VBENCH_STEM_MAX bytes. True when it is the prompt itself, which
 * mode long_vbench_standard needs. */
bool tt_vbench_stem(char stem[TT_VBENCH_STEM_MAX + 1], const char *prompt);

/* One video of a layout. */
typedef struct tt_vbench_video {
    const char *video;      /* an mp4 file                                    */
    const char *prompt;
} tt_vbench_video;

/* Make FOLDER/videos/<stem>-<i>.mp4 (copies; i counts the videos of one
 * prompt), FOLDER/prompts.json (stem to prompt) and FOLDER/commands.txt.
 * Refuses anything but .mp4 and a folder that holds videos already. */
tt_status tt_vbench_layout(tt_ctx *ctx, const char *folder,
                           const tt_vbench_video *video, int n);

/* A folder for runs, with the folders above it. */
tt_status tt_analyze_folder(tt_ctx *ctx, const char *path);
/* Bytes of the longest beginning of `path` that is there already (whole
 * names); and removing again the folders beyond it that are empty, after a
 * failure. */
size_t tt_analyze_folder_there(const char *path);
void tt_analyze_folder_remove(const char *path, size_t there);

/* ---- reports ------------------------------------------------------------- */

/* One self-contained HTML page (tools/viewer): title and facts, the summary
 * table, and the recorded runs as data. The date is that of SOURCE_DATE_EPOCH
 * where it is set. */
tt_status tt_report_write(tt_ctx *ctx, const char *path, const char *title,
                          tt_recording *const *run, int n,
                          const tt_analyze_options *opt);

#endif
