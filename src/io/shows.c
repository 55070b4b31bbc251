/* shows.c: is there a picture in a video that may not be complete?
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   the headers of a container are written before its first picture, and
 *         an encoder that died early leaves them alone. So its parts are walked
 *         up to the first one with a picture, by their lengths; no picture is
 *         decoded. */
#include "io/shows.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct video_file {
    int fd;
    uint64_t size;
} video_file;

static bool shows_get(const video_file *v, uint64_t at, void *to, size_t n)
{
    return at <= v->size && n <= v->size - at
        && pread(v->fd, to, n, (off_t)at) == (ssize_t)n;
}

/* n bytes, the highest first. */
static uint64_t shows_number(const uint8_t *p, int n)
{
    uint64_t x = 0;
    for (int i = 0; i < n; i++) x = x << 8 | p[i];
    return x;
}

/* ---- y4m ----------------------------------------------------------------- */

/* As video.c writes it: 4:4:4, no parameters of frames. */
static bool y4m_shows(const video_file *v)
{
    char head[200] = "";
    long long w, h;
    const ssize_t n = pread(v->fd, head, sizeof head - 1, 0);
    const char *end = n > 0 ? strchr(head, '\n') : NULL;
    if (!end || sscanf(head, "YUV4MPEG2 W%9lld H%9lld", &w, &h) != 2
        || w < 1 || h < 1) return false;
    const uint64_t first = (uint64_t)(end + 1 - head) + strlen("FRAME\n");
    return v->size >= first + 3 * (uint64_t)w * (uint64_t)h;
}

/* ---- mp4 ----------------------------------------------------------------- */

/* Boxes, length and name first: a fragment is "moof" with "mdat" after it.  */
static bool mp4_shows(const video_file *v)
{
    uint8_t box[8];
    bool fragment = false;
    for (uint64_t at = 0, n; shows_get(v, at, box, sizeof box); at += n) {
        n = shows_number(box, 4);
        if (n < sizeof box) return false;
        if (fragment && !memcmp(box + 4, "mdat", 4))
            return n > sizeof box && n <= v->size - at;
        fragment = !memcmp(box + 4, "moof", 4);
    }
    return false;
}

/* ---- mkv, webm ----------------------------------------------------------- */

/* A number whose first byte says its length by the place of its highest bit;
 * 0: there is none. `mark`: that bit belongs to it. */
static int ebml_number(const video_file *v, uint64_t at, bool mark,
                       uint64_t *out)
{
    uint8_t p[8];
    int n = 1;
    if (!shows_get(v, at, p, 1) || !p[0]) return 0;
    while (!(p[0] >> (8 - n))) n++;
    if (!shows_get(v, at, p, (size_t)n)) return 0;
    *out = shows_number(p, n);
    if (!mark) *out &= ((uint64_t)1 << (7 * n)) - 1;
    return n;
}

/* Elements, name and length first, one in another. */
static bool mkv_shows(const video_file *v)
{
    enum { SEGMENT = 0x18538067, CLUSTER = 0x1f43b675, BLOCK = 0xa3,
           GROUP = 0xa0 };
    for (uint64_t at = 0, name, n; at < v->size;) {
        const int a = ebml_number(v, at, true, &name);
        const int b = a ? ebml_number(v, at + (uint64_t)a, false, &n) : 0;
        if (!b) return false;
        at += (uint64_t)(a + b);
        if (name == SEGMENT || name == CLUSTER) continue;
        if (at > v->size || n > v->size - at) return false;
        if (name == BLOCK || name == GROUP) return true;
        at += n;
    }
    return false;
}

/* ---- gif ----------------------------------------------------------------- */

/* Bytes of a table of colours, as the flags before it say. */
static uint64_t colours(uint8_t flags)
{
    return flags & 0x80 ? 3u << ((flags & 7) + 1) : 0;
}

/* After pieces of up to 255 bytes, each with its length, up to one of none.  */
static bool skip_pieces(const video_file *v, uint64_t *at)
{
    uint8_t n;
    do {
        if (!shows_get(v, *at, &n, 1)) return false;
        *at += 1 + (uint64_t)n;
    } while (n);
    return true;
}

static bool gif_shows(const video_file *v)
{
    uint8_t head[13], block[10];
    if (!shows_get(v, 0, head, sizeof head) || memcmp(head, "GIF8", 4))
        return false;
    uint64_t at = sizeof head + colours(head[10]);
    while (shows_get(v, at, block, 1) && block[0] == '!') {
        at += 2; /* and its label */
        if (!skip_pieces(v, &at)) return false;
    }
    if (!shows_get(v, at, block, sizeof block) || block[0] != ',') return false;
    at += sizeof block + colours(block[9]) + 1; /* the size of its codes */
    return skip_pieces(v, &at);
}

/* ---- all ----------------------------------------------------------------- */

bool shows_picture(const char *path)
{
    static const struct {
        const char *ending;
        bool (*shows)(const video_file *v);
    } kind[] = {{".y4m", y4m_shows}, {".mp4", mp4_shows},
                {".mov", mp4_shows}, {".mkv", mkv_shows},
                {".webm", mkv_shows}, {".gif", gif_shows}};
    const char *dot = strrchr(path, '.');
    struct stat st;
    bool shows = false;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    const bool file = dot && !fstat(fd, &st) && S_ISREG(st.st_mode);
    const video_file v = {fd, file ? (uint64_t)st.st_size : 0};
    for (size_t i = 0; file && i < sizeof kind / sizeof *kind; i++)
        if (!strcasecmp(dot, kind[i].ending)) shows = kind[i].shows(&v);
    close(fd);
    return shows;
}
