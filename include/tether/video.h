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

/* BT.601 limited range in 16.16 integers, rounded half up:
 *   Y  =  16 + ( 16829 R + 33039 G +  6416 B) / 65536       16..235
 *   Cb = 128 + ( -9714 R - 19070 G + 28784 B) / 65536       16..240
 *   Cr = 128 + ( 28784 R - 24103 G -  4681 B) / 65536       16..240
 * Planes of `pixels` bytes each. */
void tt_yuv_from_rgb(uint8_t *y, uint8_t *cb, uint8_t *cr, const uint8_t *rgb,
                     int64_t pixels);

/* The way back, for one colour sample per pixel: the inverse of the formula
 * above in 16.16 integers, rounded half up and clamped. `full`: Y, Cb and Cr
 * use 0..255, as JPEG does. */
void tt_rgb_from_yuv(uint8_t *rgb, const uint8_t *y, const uint8_t *cb,
                     const uint8_t *cr, int64_t pixels, bool full);

/* v[i] = (rgb[i] / 255 - 0.5) / 0.5, what the VAE encodes; n values. */
void tt_real_from_rgb8(tt_host *v, const uint8_t *rgb, int64_t n);

/* Resize in [in_height, in_width, 3] to out [height, width, 3]; the sides are
 * scaled independently. Equal to Pillow's bilinear filter (io/resize.c).
 * Errors  TT_ENOMEM; a side of 0 is the caller's fault. */
tt_status tt_rgb_resize(tt_ctx *ctx, uint8_t *out, int64_t width,
                        int64_t height, const uint8_t *in, int64_t in_width,
                        int64_t in_height);

/* Largest side and area of any picture: bounds every allocation. */
#define TT_PICTURE_SIDE_MAX 16384
#define TT_PICTURE_AREA_MAX (INT64_C(1) << 26)

/* Write one PNG. rgb [height, width, 3].
 * Errors  TT_EINVAL  the size is outside the bounds above
 *         TT_EIO     the file cannot be written (nothing is left behind) */
tt_status tt_png_write(tt_ctx *ctx, const char *path, const uint8_t *rgb,
                       int64_t width, int64_t height);

/* The same with a text chunk `parameters` (UTF-8; NULL: none). */
tt_status tt_png_write_text(tt_ctx *ctx, const char *path, const uint8_t *rgb,
                            int64_t width, int64_t height, const char *text);
/* One PNG into memory: *out [*n] bytes in `mem`. */
tt_status tt_png_encode(tt_ctx *ctx, tt_arena *mem, uint8_t **out, size_t *n,
                        const uint8_t *rgb, int64_t width, int64_t height);

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

/* Would tt_video_open work? Checks the ending, the size, the directory and
 * that `ffmpeg` is found; creates nothing. Ask before hours of work. */
tt_status tt_video_check(tt_ctx *ctx, const char *path,
                         const tt_video_format *f);

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

/* The name of number `index` of a pattern like frames/%05d.png; false, and
 * nothing written, when `pattern` is not one or does not fit. */
bool tt_pattern_name(char *buf, size_t n, const char *pattern, int64_t index);

/* ---- pictures and videos in ---------------------------------------------- */

/* Read one PNG or JPEG: *rgb [*height, *width, 3] in `a`. Alpha is dropped, 16
 * bits are cut to 8, grey and palettes become RGB. The picture is upright: its
 * EXIF orientation is applied. Colour profiles are not looked at.
 * Errors  TT_EFORMAT  neither, damaged, or outside the bounds above
 *         TT_EIO */
tt_status tt_picture_read(tt_ctx *ctx, tt_arena *a, uint8_t **rgb,
                          int64_t *width, int64_t *height, const char *path);

/* Frames of a file, told apart by their first bytes:
 *   y4m                    4:2:0, 4:2:2, 4:4:4, mono; 8 bit, progressive
 *                          (tt_rgb_from_yuv; chroma is replicated)
 *   PNG, JPEG              one frame
 *   name%05d.png           numbered pictures from 0, or from 1
 *   -                      y4m on standard input
 *   anything else          through the `ffmpeg` program, frame by frame as
 *                          stored, whatever their rate
 * All frames have one size. Memory does not grow with the length. */
typedef struct tt_video_in tt_video_in;

/* Errors  TT_EIO       missing, unreadable; ffmpeg failed
 *         TT_EFORMAT   damaged, or outside the bounds above
 *         TT_EUNSUPPORTED  ffmpeg is needed and missing */
tt_status tt_video_in_open(tt_ctx *ctx, tt_video_in **out, const char *path);
int64_t tt_video_in_width(const tt_video_in *v);
int64_t tt_video_in_height(const tt_video_in *v);
/* The next frame into rgb [height, width, 3]; *more is false, and nothing
 * written, after the last one. */
tt_status tt_video_in_frame(tt_video_in *v, uint8_t *rgb, bool *more);
void tt_video_in_close(tt_video_in *v); /* NULL is fine */

/* ---- contact sheet ------------------------------------------------------- */

/* One PNG with up to 12 evenly spaced frames, first and last included,
 * row by row. Large frames are averaged down, small ones enlarged by whole
 * factors so that a cell is about 200 to 400 pixels wide. */
typedef struct tt_sheet tt_sheet;
tt_status tt_sheet_open(tt_ctx *ctx, tt_sheet **out, const char *path,
                        int64_t width, int64_t height, int64_t total_frames);
/* Keep `text` inside the PNG (tt_png_write_text); borrowed until finish. */
void tt_sheet_comment(tt_sheet *s, const char *text);
/* Every frame of the video in order; unneeded ones are ignored. */
tt_status tt_sheet_frame(tt_sheet *s, const uint8_t *rgb);
tt_status tt_sheet_finish(tt_sheet *s);
void tt_sheet_abort(tt_sheet *s);

/* ---- preview of latents -------------------------------------------------- */

#define TT_PREVIEW_ZOOM 4

/* A rough picture of latents without a decoder: frames side by side, every
 * latent pixel a square of `zoom` pixels, colours from a fixed linear
 * projection of the channels (the table is in io/preview.c). Shapes and
 * places are those of the video; colours are not. */
typedef struct tt_preview {
    int64_t frames;         /* shown                                          */
    int64_t columns, zoom;  /* frames per row; pixels per latent pixel        */
    int64_t width, height;  /* of the picture                                 */
} tt_preview;

/* How F frames of h x w latent pixels fit a picture: one row of zoom
 * TT_PREVIEW_ZOOM, else several rows, else a smaller zoom, else fewer frames.
 * h and w are at most TT_PICTURE_SIDE_MAX, h*w at most TT_PICTURE_AREA_MAX. */
tt_preview tt_preview_layout(int64_t F, int64_t h, int64_t w);
/* rgb [height, width, 3]; x0 [>= frames, C, h, w] */
void tt_latent_preview(uint8_t *rgb, const tt_preview *p, const tt_host *x0,
                       int64_t C, int64_t h, int64_t w);

TT_API_END

#endif
