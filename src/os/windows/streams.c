/* streams.c: files in memory, lines, and pipes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/windows/private.h"

#include <fcntl.h>
#include <io.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#undef fclose
#undef fflush

/* ---- files in memory, and lines ------------------------------------------ */

/* A file whose content becomes text when it is closed. */
enum { MEMORIES = 16 };
static struct { FILE *f; char **text; size_t *size; } memory[MEMORIES];

FILE *open_memstream(char **text, size_t *size)
{
    for (int i = 0; i < MEMORIES; i++) {
        if (memory[i].f) continue;
        memory[i].text = text;
        memory[i].size = size;
        *text = NULL;
        *size = 0;
        return memory[i].f = os_tmpfile();
    }
    return errno = ENOMEM, NULL;
}

/* What was written so far, as fflush and fclose show it. */
static bool win_keep_text(FILE *f, char **text, size_t *size)
{
    const bool bad = fflush(f) || ferror(f);
    const int64_t n = _ftelli64(f);
    char *all = bad || n < 0 ? NULL : realloc(*text, (size_t)n + 1);
    if (!all) return false;
    *text = all;
    rewind(f);
    *size = fread(all, 1, (size_t)n, f);
    all[*size] = '\0';
    return *size == (size_t)n && !_fseeki64(f, n, SEEK_SET);
}

static int find_memory(const FILE *f)
{
    int i = 0;
    while (i < MEMORIES && (!f || memory[i].f != f)) i++;
    return i;
}

int os_fclose(FILE *f)
{
    const int i = find_memory(f);
    const bool kept = i == MEMORIES
                   || win_keep_text(f, memory[i].text, memory[i].size);
    if (i < MEMORIES) memory[i].f = NULL;
    const HANDLE going = win_going(_fileno(f));
    const int bad = fclose(f);
    if (going) CloseHandle(going);
    return kept ? bad : EOF;
}

int os_fflush(FILE *f)
{
    const int i = find_memory(f);
    if (i < MEMORIES)
        return win_keep_text(f, memory[i].text, memory[i].size) ? 0 : EOF;
    const int bad = fflush(f);
    if (f && (bad || ferror(f))
        && GetFileType(win_handle(_fileno(f))) == FILE_TYPE_PIPE) {
        errno = EPIPE;
        return EOF;
    }
    return bad;
}

int dprintf(int fd, const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return n < 0 ? n : _write(fd, text, (unsigned)strlen(text));
}

ssize_t getline(char **line, size_t *room, FILE *f)
{
    size_t n = 0;
    for (int c; (c = getc(f)) != EOF;) {
        if (!*line || n + 2 > *room) {
            const size_t more = *line ? 2 * *room : 128;
            char *larger = realloc(*line, more);
            if (!larger) return -1;
            *line = larger;
            *room = more;
        }
        (*line)[n++] = (char)c;
        if (c == '\n') break;
    }
    if (n) (*line)[n] = '\0';
    return n ? (ssize_t)n : -1;
}

/* ---- pipes --------------------------------------------------------------- */

int pipe(int ends[2])
{
    return _pipe(ends, 1 << 16, _O_BINARY | _O_NOINHERIT);
}

/* The descriptor that had no room when it was last sent to. */
static int is_full = -1;

ssize_t send(int fd, const void *p, size_t n, int flags)
{
    DWORD put = 0;
    (void)flags;
    const DWORD piece = n < 1u << 14 ? (DWORD)n : 1u << 14;
    if (!WriteFile(win_handle(fd), p, piece, &put, NULL)) return win_failed();
    if (put) return (ssize_t)put;
    is_full = fd;
    errno = EAGAIN;
    return -1;
}

/* Files are always ready. Of a pipe the system says how much is in it, but not
 * how much room: that is tried, and asked again a little later. */
int poll(struct pollfd *p, unsigned n, int ms)
{
    if (!n || p->fd < 0) return Sleep((DWORD)ms), 0;
    const HANDLE h = win_handle(p->fd);
    p->revents = p->events;
    if (p->events & POLLOUT && p->fd == is_full) {
        is_full = -1;
        return Sleep(2), 0;
    }
    if (GetFileType(h) != FILE_TYPE_PIPE || p->events & POLLOUT) return 1;
    for (int waited = 0;; waited += 2) {
        DWORD there = 0;
        if (!PeekNamedPipe(h, NULL, 0, NULL, &there, NULL) || there) return 1;
        if (waited >= ms) return 0;
        Sleep(2);
    }
}
