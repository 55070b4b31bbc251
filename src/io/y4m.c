/* y4m.c: YUV4MPEG2 in: header, frames, chroma brought to full size.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  yuv4mpeg(5) of mjpegtools, and the COLORRANGE extension.
 * Holds   8 bit, progressive, 4:2:0, 4:2:2, 4:4:4 or luma alone; everything
 *         else is refused by name. Sizes are bounded before memory is asked
 *         for, and a frame that is cut off is an error.
 * Model   a chroma sample holds for the luma samples it covers (replication);
 *         the three sitings of 4:2:0 are treated alike, at most half a luma
 *         sample off. */
#include "io/y4m.h"

#include <string.h>

#include "io/bytes.h"
#include "io/picture.h"
#include "io/video.h"

enum { HEADER_MAX = 1024, FRAME_LINE_MAX = 256 };

/* ---- header -------------------------------------------------------------- */

/* The rest of a line without its newline; false when it does not end within
 * the buffer, or holds a NUL. */
static bool y4m_read_line(io_stream *in, char *buf, size_t size)
{
    size_t n = 0;
    int c = 0;
    while (n < size && (c = stream_byte(in)) > 0 && c != '\n')
        buf[n++] = (char)c;
    if (c != '\n' || n == size) return false;
    buf[n] = 0;
    return true;
}

/* All of `s` as a decimal number of 1..limit; 0 when it is not one. */
static int64_t y4m_number(const char *s, int64_t limit)
{
    int64_t n = 0;
    if (!*s || *s == '0') return 0;
    for (; *s; s++) {
        if (*s < '0' || *s > '9' || n > limit / 10) return 0;
        n = 10 * n + (*s - '0');
    }
    return n > limit ? 0 : n;
}

/* "25:1": two whole numbers. */
static bool is_ratio(const char *s)
{
    const size_t a = strspn(s, "0123456789");
    if (!a || s[a] != ':') return false;
    const size_t b = strspn(s + a + 1, "0123456789");
    return b && !s[a + 1 + b];
}

static tt_status y4m_bad(tt_ctx *ctx, const y4m *v, const char *word,
                         const char *why)
{
    char show[IO_SHOW];
    return tt_fail(ctx, TT_EFORMAT, "%s: y4m header: `%s` %s", v->in->name,
                   io_show(show, word, strlen(word)), why);
}

static tt_status set_chroma(tt_ctx *ctx, y4m *v, const char *word)
{
    static const struct { const char *name; int sx, sy; } known[] = {
        {"C420jpeg", 2, 2}, {"C420paldv", 2, 2}, {"C420mpeg2", 2, 2},
        {"C420", 2, 2}, {"C422", 2, 1}, {"C444", 1, 1}, {"Cmono", 0, 0}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(known[i].name, word)) {
            v->sx = known[i].sx;
            v->sy = known[i].sy;
            return TT_OK;
        }
    return y4m_bad(ctx, v, word, "is not a colour space this program reads; it "
                   "has 8-bit 420, 422, 444 and mono (`ffmpeg -i IN -pix_fmt "
                   "yuv444p OUT.y4m` converts)");
}

/* "W64" or "H48". */
static tt_status set_side(tt_ctx *ctx, y4m *v, const char *word)
{
    int64_t *side = word[0] == 'W' ? &v->width : &v->height;
    if (*side) return y4m_bad(ctx, v, word, "comes twice");
    *side = y4m_number(word + 1, INT32_MAX);
    if (*side) return TT_OK;
    return y4m_bad(ctx, v, word, "is not a size");
}

/* "XCOLORRANGE=FULL"; other words of X are notes for others. */
static tt_status set_range(tt_ctx *ctx, y4m *v, const char *word)
{
    if (strncmp(word, "XCOLORRANGE=", 12)) return TT_OK;
    v->full = !strcmp(word + 12, "FULL");
    if (!v->full && strcmp(word + 12, "LIMITED"))
        return y4m_bad(ctx, v, word, "is neither FULL nor LIMITED");
    return TT_OK;
}

/* One word of the header. */
static tt_status take_word(tt_ctx *ctx, y4m *v, const char *word)
{
    switch (word[0]) {
    case 'W':
    case 'H': return set_side(ctx, v, word);
    case 'F':
    case 'A':
        if (is_ratio(word + 1)) return TT_OK;
        return y4m_bad(ctx, v, word, "is not a ratio like 16:1");
    case 'I':
        if (!strcmp(word, "Ip") || !strcmp(word, "I?")) return TT_OK;
        return y4m_bad(ctx, v, word, "says that the video is interlaced; only "
                       "progressive video can be read");
    case 'C': return set_chroma(ctx, v, word);
    case 'X': return set_range(ctx, v, word);
    default: return y4m_bad(ctx, v, word, "is not a known parameter");
    }
}

tt_status y4m_open(tt_ctx *ctx, tt_arena *a, y4m *v, io_stream *in)
{
    char line[HEADER_MAX], *word = line;
    /* C420jpeg unless it is said */
    *v = (y4m){.in = in, .sx = 2, .sy = 2};
    if (!y4m_read_line(in, line, sizeof line) || (line[0] && line[0] != ' '))
        return tt_fail(ctx, TT_EFORMAT, "%s: the y4m header is not one line "
                       "of less than %d characters", in->name, HEADER_MAX);
    while (*word) {
        word += strspn(word, " ");
        const size_t n = strcspn(word, " ");
        char *next = word + n + (word[n] != 0);
        word[n] = 0;
        if (n) TT_TRY(take_word(ctx, v, word));
        word = next;
    }
    if (!v->width || !v->height)
        return tt_fail(ctx, TT_EFORMAT, "%s: the y4m header does not give the "
                       "size (W and H)", in->name);
    TT_TRY(picture_check_size(ctx, in->name, v->width, v->height));
    if (v->sx) {
        v->cwidth = (v->width + v->sx - 1) / v->sx;
        v->cheight = (v->height + v->sy - 1) / v->sy;
    }
    v->planes = tt_alloc(ctx, a, v->width * v->height
                         + 2 * v->cwidth * v->cheight, 1, "a y4m frame");
    return ctx->status;
}

/* ---- frames -------------------------------------------------------------- */

static void to_rgb(const y4m *v, uint8_t *rgb)
{
    const uint8_t *y = v->planes, *cb = y + v->width * v->height;
    const uint8_t *cr = cb + v->cwidth * v->cheight;
    const uint8_t grey = 128;
    for (int64_t i = 0; i < v->height; i++)
        for (int64_t j = 0; j < v->width; j++, y++, rgb += 3) {
            const int64_t at = v->sx ? i / v->sy * v->cwidth + j / v->sx : 0;
            tt_rgb_from_yuv(rgb, y, v->sx ? cb + at : &grey,
                            v->sx ? cr + at : &grey, 1, v->full);
        }
}

tt_status y4m_next(tt_ctx *ctx, y4m *v, uint8_t *rgb, bool *more)
{
    char line[FRAME_LINE_MAX];
    *more = false;
    if (ctx->status) return ctx->status;
    const int c = stream_byte(v->in);
    if (c < 0) return ctx->status; /* the end, or a failure */
    const bool marked = c == 'F' && y4m_read_line(v->in, line, sizeof line)
                     && !strncmp(line, "RAME", 4)
                     && (!line[4] || line[4] == ' ');
    const size_t n = (size_t)(v->width * v->height
                              + 2 * v->cwidth * v->cheight);
    const size_t got = marked ? stream_read(v->in, v->planes, n) : 0;
    if (!marked)
        return tt_fail(ctx, TT_EFORMAT, "%s: no FRAME line where frame %lld "
                       "of the y4m should begin", v->in->name,
                       (long long)v->frames);
    if (got != n)
        return tt_fail(ctx, TT_EFORMAT, "%s: the y4m ends inside frame %lld: "
                       "%zu of %zu bytes", v->in->name,
                       (long long)v->frames, got, n);
    to_rgb(v, rgb);
    v->frames++;
    *more = true;
    return TT_OK;
}
