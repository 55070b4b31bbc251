/* private.h: what the files of this directory share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_OS_WINDOWS_PRIVATE_H
#define TT_OS_WINDOWS_PRIVATE_H

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdbool.h>
#include <stddef.h>

/* A name of a file as the system wants it: UTF-16, backslashes, and above 240
 * characters absolute with the mark that lifts the limit of 260. */
typedef struct win_name {
    wchar_t text[4096];
} win_name;
/* w->text; NULL with errno: no name that a file can have. */
const wchar_t *win_wide(win_name *w, const char *path);
/* UTF-8 with slashes in out [n]; false: it does not fit. */
bool win_narrow(char *out, size_t n, const wchar_t *text);

/* Sets errno from what the system said last; -1. */
int win_failed(void);
/* 0, or that. */
static inline int win_as(bool done)
{
    return done ? 0 : win_failed();
}

/* What a descriptor stands for; INVALID_HANDLE_VALUE with errno. */
HANDLE win_handle(int fd);
/* If `fd` is a file of mkstemp that was unlinked: what removes it when closed,
 * which is the caller's from now on. NULL otherwise. */
HANDLE win_going(int fd);

/* Start a program of PATH, NULL: this one with its words, with these standard
 * files. Its handle, NULL with errno. In a group of its own: Ctrl-C is ours. */
HANDLE win_start(const char *const *argv, const HANDLE std[3]);
/* The number under which waitpid and kill know a process; -1: too many. */
long long win_child(HANDLE process);

#endif
