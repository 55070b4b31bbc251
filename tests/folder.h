/* folder.h: a temporary folder of one test program.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness.h"

static char folder[256];

/* Make it, below TMPDIR or /tmp; before the first at(). */
static inline bool folder_make(void)
{
    tmp_path(folder, sizeof folder, "XXXXXX");
    return expect(mkdtemp(folder) != NULL, "a temporary folder");
}

/* "<folder>/<name>" in one of a few rotating buffers. */
static inline const char *at(const char *name)
{
    static char ring[16][1024];
    static int turn;
    char *b = ring[turn++ % 16];
    snprintf(b, sizeof ring[0], "%s/%s", folder, name);
    return b;
}

/* Everything in a file as text, in a rotating buffer. */
static inline const char *text_of(const char *path)
{
    static char ring[2][65536];
    static int turn;
    char *b = ring[turn++ % 2];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(b, 1, sizeof ring[0] - 1, f) : 0;
    b[n] = 0;
    if (f) fclose(f);
    return b;
}

/* Remove it with all that is in it. */
static inline bool remove_all(const char *path)
{
    char name[4096];
    struct stat st;
    bool gone = true;
    if (lstat(path, &st)) return false;
    if (!S_ISDIR(st.st_mode)) return !unlink(path);
    chmod(path, 0700);
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        const int n = snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        gone = n < (int)sizeof name && remove_all(name) && gone;
    }
    if (d) closedir(d);
    return !rmdir(path) && gone;
}
static inline bool folder_remove(void)
{
    return expect(remove_all(folder), "%s is removed", folder);
}
static inline bool folder_remove_empty(void)
{
    return expect(rmdir(folder) == 0, "files left in %s", folder);
}

/* Do two files hold the same bytes? */
static inline bool same_files(const char *a, const char *b)
{
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    int c = 0, d = 0;
    while (f && g && c == d && c != EOF) {
        c = fgetc(f);
        d = fgetc(g);
    }
    const bool same = f && g && c == d;
    if (f) fclose(f);
    if (g) fclose(g);
    return same;
}

#endif
