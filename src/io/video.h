/* video.h: what the modules use of tether/video.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_VIDEO_H
#define TT_IO_VIDEO_H

#include "core/context.h"
#include "tether/video.h"

/* ---- pixels -------------------------------------------------------------- */

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
 *         TT_EIO     the file cannot be written (nothing is left of it) */
tt_status tt_png_write(tt_ctx *ctx, const char *path, const uint8_t *rgb,
                       int64_t width, int64_t height);

/* The same with a text chunk `parameters` (UTF-8; NULL: none). */
tt_status tt_png_write_text(tt_ctx *ctx, const char *path, const uint8_t *rgb,
                            int64_t width, int64_t height, const char *text);
/* One PNG into memory: *out [*n] bytes in `mem`. */
tt_status tt_png_encode(tt_ctx *ctx, tt_arena *mem, uint8_t **out, size_t *n,
                        const uint8_t *rgb, int64_t width, int64_t height);

/* ---- video --------------------------------------------------------------- */

/* Would tt_video_open work? Checks the ending, the size, the directory and
 * that `ffmpeg` is found; creates nothing. Ask before hours of work. */
tt_status tt_video_check(tt_ctx *ctx, const char *path,
                         const tt_video_format *f);

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

/* v[i] = (rgb[i] / 255 - 0.5) / 0.5, what the VAE encodes; n values. */
void tt_real_from_rgb8(tt_host *v, const uint8_t *rgb, int64_t n);

#endif
