/* video.h: pictures and videos out of the program, and into it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *     tt_video_format f = {.width = 832, .height = 480, .fps = 16};
 *     tt_video *v;
 *     TT_TRY(tt_video_open(ctx, &v, "out.mp4", &f));
 *     while (more) tt_video_frame(v, rgb);         [height, width, 3]
 *     tt_video_finish(v);                          out.mp4 exists from here
 *
 * Targets, by the end of the path:
 *   .mp4 .mov .webm .mkv .gif
 *                          through the `ffmpeg` program (H.264 yuv420p for mp4,
 *                          mov and mkv, VP9 for webm; BT.709, limited range,
 *                          and described as that)
 *   .y4m                   YUV4MPEG2, written here: 4:4:4, 8 bit, BT.601,
 *                          limited range (tt_yuv_from_rgb)
 *   name%05d.png           one PNG per frame, numbered from 0; the last
 *                          directory of the path is created when missing
 *   .png                   one frame
 *   -                      y4m on standard output
 * Nothing is visible under a final name before it is complete. Before that all
 * but .apng can be played up to where they are: y4m, mkv, webm and gif frame by
 * frame, mp4 and mov by fragments of two seconds. */
#ifndef TETHER_VIDEO_H
#define TETHER_VIDEO_H

#include "tether/api.h"
#include "tether/context.h"

TT_API_BEGIN

/* ---- pixels -------------------------------------------------------------- */

/* rgb[i][c] = trunc(255 * clamp(0.5 * clamp(v, -1, 1) + 0.5, 0, 1)), every
 * step in float32 whatever tt_real is; NaN gives 0.
 *   rgb [pixels, 3]
 *   v   decoder output: channel c of pixel i is
 *       v[i * pixel_stride + c * channel_stride], so [H, W, 3] has strides
 *       3, 1 and a frame of [3, F, H, W] has 1, F*H*W
 * Source  Self-Forcing inference (src/vae/README.md).
 * Vectors ref_data/vae_full_a (u8 from video_raw, equal) */
void tt_rgb8_from_real(uint8_t *rgb, const tt_host *v, int64_t pixels,
                       int64_t pixel_stride, int64_t channel_stride);

/* ---- video --------------------------------------------------------------- */

typedef struct tt_video_format {
    int64_t width, height;
    int fps;
    int64_t frames;     /* expected number; 0 when not known                  */
    const char *title;  /* kept inside mp4, mov, mkv, webm; NULL: none     */
    const char *comment; /* how it was made: also inside PNG; NULL: none      */
    const char *unfinished; /* y4m and what ffmpeg writes: its name until it is
                           complete, and when it is given up; a file of that
                           name goes. NULL: hidden, and it goes               */
} tt_video_format;

typedef struct tt_video tt_video;

/* Errors  TT_EINVAL  ending, size, or frames that the target cannot hold
 *         TT_EIO     directory, permission
 *         TT_EUNSUPPORTED  ffmpeg is needed and missing; the sentence names
 *                    the y4m and PNG ways out
 * Owns    *out until finish or abort. */
tt_status tt_video_open(tt_ctx *ctx, tt_video **out, const char *path,
                        const tt_video_format *f);
/* Append a frame, rgb [height, width, 3]. Encoders that died are reported
 * here or by finish, with the last line they said. */
tt_status tt_video_frame(tt_video *v, const uint8_t *rgb);
/* Flush, wait for the encoder, rename; frees v also when it fails. */
tt_status tt_video_finish(tt_video *v);
/* Remove what was written under the temporary name; NULL is fine. */
void tt_video_abort(tt_video *v);

TT_API_END

#endif
