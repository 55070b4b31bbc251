/* decode.h: latents through the VAE into every output that was asked for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DECODE_H
#define CLI_DECODE_H

#include "cli/ui/progress.h"
#include "vae/vae.h"

typedef struct decode_outputs {
    const char *video;        /* -o: see video.h; NULL: none                  */
    const char *animation;    /* animated PNG next to it; NULL: none          */
    const char *sheet;        /* contact sheet PNG; NULL: none                */
    const char *raw;          /* safetensors with video_raw; NULL: none       */
    const char *after;        /* said when decoding fails; NULL: nothing      */
    const char *source;       /* file of the latents, for messages, or NULL   */
    const char *title, *comment; /* kept inside the files; NULL: nothing      */
    int fps;
    int64_t drop;             /* frames cut from the end of every clip        */
} decode_outputs;

/* What the video is called until it is complete, and after an interruption:
 * "cat.mp4" -> "cat.unfinished.mp4", in `mem`; of a link next to the file that
 * it leads to. NULL: it has no such name (pictures, apng, "-", a pipe). */
const char *decode_unfinished(tt_ctx *ctx, tt_arena *mem, const char *video);

/* Pixel frames of n latent frames: 1 + 4 (n-1). */
int64_t decode_frames(int64_t n);

/* Can all outputs be written for `clips` clips of n latents of h x w? Asked
 * before any work. */
tt_status decode_check(tt_ctx *ctx, const decode_outputs *o, int64_t clips,
                       int64_t n, int64_t h, int64_t w);

/* One decoding of latents [clips, n, C, h, w] (packed, any float type). Every
 * clip is decoded on its own, one follows the other (CausVid). Frames go out as
 * they are decoded; on a failure nothing is left under a final name. */
typedef struct decoding decoding;

/* Open every output. `latents`, `vae`, `p` and the texts of `o` stay until the
 * end; the values of latents may come later.
 * Errors  what was opened is closed again, and *out is NULL */
tt_status decode_begin(tt_ctx *ctx, decoding **out, progress *p,
                       const tt_vae *vae, const tt_tensor *latents,
                       const decode_outputs *o);
/* Decode what is new of the first `ready` latent frames of all clips. */
tt_status decode_up_to(decoding *d, int64_t ready);
/* Seconds in it so far. */
double decode_seconds(const decoding *d);
/* What a second signal is answered with, when nothing else is under way. */
void decode_stop_words(decoding *d);
/* Complete the outputs, or with a failure recorded give them up; what can be
 * seen of a video stays under its unfinished name. */
tt_status decode_end(decoding *d);

/* All of it, split[i % nsplit] latent frames per turn; the result does not
 * depend on the split. */
tt_status decode_run(tt_ctx *ctx, progress *p, const tt_vae *vae,
                     const tt_tensor *latents, const int64_t *split,
                     int nsplit, const decode_outputs *o);

#endif
