/* pixel_runs.c: pixel statistics of videos, and clips cut from their ends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "analyze/files.h"
#include "analyze/output.h"
#include "analyze/report.h"
#include "io/jsonout.h"
#include "io/outfile.h"
#include "io/page.h"
#include "io/video.h"

static const char what[] = "pixel statistics";

/* "x/a/b.y4m" -> "a-b", in scratch: run folders hold videos of one name. */
static char *stem_of(tt_ctx *ctx, const char *path)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    const char *folder = name;
    if (folder > path) folder--;
    while (folder > path && folder[-1] != '/') folder--;
    if (*folder == '.' || *folder == '/') folder = name;
    char *s = tt_strdup(ctx, &ctx->scratch, folder);
    char *dot = s ? strrchr(s, '.') : NULL;
    if (dot && dot != s) *dot = 0;
    for (char *c = s; c && *c; c++)
        if (*c == '/' || *c == '_') *c = '-';
    return s;
}

/* ---- one video ----------------------------------------------------------- */

typedef struct pixel_list {
    pixel_row *row;
    int64_t n, cap;
} pixel_list;

static bool pixel_runs_append(tt_ctx *ctx, tt_arena *mem, pixel_list *list,
                              pixel_row row)
{
    if (list->n == list->cap) {
        int64_t cap = 2 * list->cap + 256;
        pixel_row *more = tt_alloc(ctx, mem, cap, sizeof *more, what);
        if (!more) return false;
        if (list->n) memcpy(more, list->row, (size_t)list->n * sizeof *more);
        list->row = more;
        list->cap = cap;
    }
    list->row[list->n++] = row;
    return true;
}

static tt_status pixel_runs_measure(tt_ctx *ctx, tt_arena *mem,
                                    pixel_list *list, const char *path)
{
    tt_video_in *v;
    tt_arena pictures = {0};
    TT_TRY(tt_video_in_open(ctx, &v, path));
    const int64_t w = tt_video_in_width(v), h = tt_video_in_height(v);
    uint8_t *now = tt_alloc(ctx, &pictures, w * h, 3, what);
    uint8_t *was = tt_alloc(ctx, &pictures, w * h, 3, what);
    bool more = was != NULL;
    while (more && tt_video_in_frame(v, now, &more) == TT_OK && more) {
        const pixel_row row = pixel_measure(now, list->n ? was : NULL, w, h);
        if (!pixel_runs_append(ctx, mem, list, row)) break;
        uint8_t *swap = was;
        was = now;
        now = swap;
    }
    tt_video_in_close(v);
    tt_arena_free(&pictures);
    if (!ctx->status && !list->n)
        tt_fail(ctx, TT_EFORMAT, "%s has no frames", path);
    return ctx->status;
}

/* ---- tables -------------------------------------------------------------- */

static tt_status write_rows(tt_ctx *ctx, const char *const *label,
                            const pixel_list *list, int n,
                            const tt_analyze_options *opt)
{
    table t;
    output_begin(&t, ctx, "pixels");
    for (int i = 0; i < n; i++)
        for (int64_t f = 0; f < list[i].n; f++) {
            const pixel_row *p = &list[i].row[f];
            table_row(&t);
            table_str(&t, label[i]);
            table_num(&t, (double)f);
            for (int c = 0; c < 3; c++) table_num(&t, p->mean[c]);
            for (int c = 0; c < 3; c++) table_num(&t, p->sd[c]);
            table_num(&t, p->saturation);
            table_num(&t, p->sharpness);
            table_num(&t, p->change);
        }
    return output_table(ctx, &t, "pixels", opt);
}

static tt_status write_flickering(tt_ctx *ctx, const char *const *label,
                                  const pixel_list *list, int n,
                                  const tt_analyze_options *opt)
{
    table t;
    output_begin(&t, ctx, "flickering");
    for (int i = 0; i < n; i++) {
        table_row(&t);
        table_str(&t, label[i]);
        table_num(&t, (double)list[i].n);
        table_num(&t, pixel_flickering(list[i].row, list[i].n));
    }
    return output_table(ctx, &t, "flickering", opt);
}

/* The data of tools/viewer/pixels.js. */
static void put_pixels(FILE *f, const char *const *label,
                       const pixel_list *list, int n)
{
    fputs("{\"kind\": \"pixels\",\n", f);
    page_facts(f, NULL);
    fputs(",\n\"videos\": [", f);
    for (int i = 0; i < n; i++) {
        fputs(i ? ",\n{\"label\": " : "{\"label\": ", f);
        json_string(f, label[i]);
        fputs(", \"flickering\": ", f);
        page_number(f, pixel_flickering(list[i].row, list[i].n), 9);
        fputs(", \"frames\": [", f);
        for (int64_t k = 0; k < list[i].n; k++) {
            const pixel_row *p = &list[i].row[k];
            const double x[] = {(p->mean[0] + p->mean[1] + p->mean[2]) / 3,
                                p->saturation, p->sharpness, p->change};
            fputs(k ? "," : "", f);
            report_reals(f, x, 4, 6);
        }
        fputs("]}", f);
    }
    fputs("]}\n", f);
}

static tt_status write_page(tt_ctx *ctx, const char *const *label,
                            const pixel_list *list, int n,
                            const tt_analyze_options *opt)
{
    tt_out out;
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const char *path = files_join(ctx, &ctx->scratch, opt->folder, "pixels",
                                  ".html");
    if (!ctx->status && tt_out_open(ctx, &out, path) == TT_OK) {
        page_open(out.file, "Pixels of videos", NULL);
        fputs("<h1>Pixels of videos</h1>\n", out.file);
        for (int i = 0; i < n; i++) {
            fputs("<p>", out.file);
            page_xml(out.file, label[i]);
            fprintf(out.file, ": temporal flickering %.6g of %lld frames</p>\n",
                    pixel_flickering(list[i].row, list[i].n),
                    (long long)list[i].n);
        }
        page_data(out.file);
        put_pixels(out.file, label, list, n);
        page_close(out.file);
        tt_out_finish(ctx, &out);
    }
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

tt_status tt_analyze_pixels(tt_ctx *ctx, const char *const *video, int n,
                            const tt_analyze_options *opt)
{
    static const char *const name[] = {"pixels", "flickering", NULL};
    tt_arena mem = {0};
    if (n < 1 || n > RUNS_MAX)
        return tt_fail(ctx, TT_EINVAL, "1 to %d videos can be analysed "
                       "together, not %d", RUNS_MAX, n);
    TT_TRY(output_keep(ctx, opt, name, "pixels"));
    TT_TRY(files_make_folder(ctx, opt->folder));
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    pixel_list *list = tt_alloc0(ctx, &mem, n, sizeof *list, what);
    const char **label = tt_alloc(ctx, &mem, n, sizeof *label, what);
    for (int i = 0; i < n && !ctx->status; i++) {
        label[i] = stem_of(ctx, video[i]);
        pixel_runs_measure(ctx, &mem, &list[i], video[i]);
    }
    if (!ctx->status) write_rows(ctx, label, list, n, opt);
    if (!ctx->status) write_flickering(ctx, label, list, n, opt);
    if (!ctx->status && opt->html) write_page(ctx, label, list, n, opt);
    tt_arena_reset(&ctx->scratch, m);
    tt_arena_free(&mem);
    return ctx->status;
}

/* ---- clips --------------------------------------------------------------- */

static tt_status count_frames(tt_ctx *ctx, int64_t *n, tt_video_format *f,
                              const char *path)
{
    tt_video_in *v;
    tt_arena mem = {0};
    bool more;
    *n = 0;
    TT_TRY(tt_video_in_open(ctx, &v, path));
    f->width = tt_video_in_width(v);
    f->height = tt_video_in_height(v);
    uint8_t *rgb = tt_alloc(ctx, &mem, f->width * f->height, 3, what);
    while (rgb && tt_video_in_frame(v, rgb, &more) == TT_OK && more) ++*n;
    tt_video_in_close(v);
    tt_arena_free(&mem);
    return ctx->status;
}

/* The same clip again has the same bytes, but whose clip it is cannot be
 * seen. */
static tt_status check_clip(tt_ctx *ctx, const char *path)
{
    if (ctx->status || ctx->overwrite || !files_exist(path))
        return ctx->status;
    return tt_fail(ctx, TT_EINVAL, "%s is there; give --clips another folder, "
                   "or --overwrite", path);
}

/* Frames [first, first + count) of `from` as the video `to`. */
static tt_status pixel_runs_cut(tt_ctx *ctx, const char *to, const char *from,
                                int64_t first, int64_t count, tt_video_format f)
{
    tt_video_in *in;
    tt_video *out = NULL;
    tt_arena mem = {0};
    bool more = true;
    f.frames = count;
    TT_TRY(tt_video_in_open(ctx, &in, from));
    uint8_t *rgb = tt_alloc(ctx, &mem, f.width * f.height, 3, what);
    if (rgb) tt_video_open(ctx, &out, to, &f);
    for (int64_t i = 0; out && more && !ctx->status && i < first + count; i++)
        if (tt_video_in_frame(in, rgb, &more) == TT_OK && more && i >= first)
            tt_video_frame(out, rgb);
    if (out && ctx->status) tt_video_abort(out);
    else if (out) tt_video_finish(out);
    tt_video_in_close(in);
    tt_arena_free(&mem);
    return ctx->status;
}

tt_status tt_analyze_clips(tt_ctx *ctx, const char *folder, const char *video,
                           double length)
{
    TT_TRY(ctx->status);
    tt_video_format f = {.fps = 16};
    int64_t n, count;
    TT_TRY(files_make_folder(ctx, folder));
    TT_TRY(count_frames(ctx, &n, &f, video));
    count = (int64_t)(length >= 1 ? f.fps * length + 0.5
                                  : length * (double)n + 0.5);
    if (count > n) count = n;
    if (count < 1)
        return tt_fail(ctx, TT_EINVAL, "a clip of %g of %s has no frames",
                       length, video);
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const char *stem = stem_of(ctx, video), *dot = strrchr(video, '.');
    const char *ending = dot && !strcmp(dot, ".y4m") ? "y4m" : "mp4";
    char first[32], last[32];
    snprintf(first, sizeof first, "_first.%s", ending);
    snprintf(last, sizeof last, "_last.%s", ending);
    if (stem) {
        const char *a = files_join(ctx, &ctx->scratch, folder, stem, first);
        const char *b = files_join(ctx, &ctx->scratch, folder, stem, last);
        check_clip(ctx, a);
        check_clip(ctx, b);
        if (!ctx->status) pixel_runs_cut(ctx, a, video, 0, count, f);
        if (!ctx->status) pixel_runs_cut(ctx, b, video, n - count, count, f);
    }
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}
