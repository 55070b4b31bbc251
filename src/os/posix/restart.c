/* restart.c: the program once more, in the same process.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif
#include <unistd.h>

#include "os/os.h"

#ifdef __linux__
/* Our arguments, as the system keeps them: one after the other, each with its
 * zero. NULL when they cannot be read. */
static char *read_arguments(size_t *size)
{
    FILE *f = fopen("/proc/self/cmdline", "r");
    size_t capacity = 4096, n = 0;
    char *text = f ? malloc(capacity) : NULL;
    while (text && (n += fread(text + n, 1, capacity - n, f)) == capacity) {
        char *larger = realloc(text, capacity *= 2);
        if (!larger) free(text);
        text = larger;
    }
    if (f) fclose(f);
    *size = n;
    return text;
}

/* The same as an array that ends with NULL; NULL when there is none. */
static char **words_of(char *text, size_t size)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < size; i++) count += text[i] == '\0';
    char **argv = count ? malloc((count + 1) * sizeof *argv) : NULL;
    if (!argv) return NULL;
    for (size_t i = 0; i < count; i++) {
        argv[i] = text + at;
        at += strlen(text + at) + 1;
    }
    argv[count] = NULL;
    return argv;
}

/* A bare root has no /proc. There the kernel still says what it was asked to
 * run, and glibc hands our arguments to what runs before main. */
#ifdef __GLIBC__
static char **first_arguments;

__attribute__((constructor)) static void keep_arguments(int argc, char **argv)
{
    first_arguments = argc > 0 ? argv : NULL;
}

static void start_without_proc(void)
{
    const char *path = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    if (path && first_arguments) execv(path, first_arguments);
}
#else
static void start_without_proc(void)
{
}
#endif

void os_restart(void)
{
    char path[4096];
    size_t size;
    char *text = read_arguments(&size);
    char **argv = text ? words_of(text, size) : NULL;
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (!argv || n <= 0) start_without_proc();
    else {
        path[n] = '\0';
        execv(path, argv);   /* by its name, which `ps` then shows ...        */
        /* ... unless that has gone since; after another error this may be an
         * emulator, which would take our first word for a program */
        if (errno == ENOENT) execv("/proc/self/exe", argv);
    }
    free(argv);
    free(text);
}
#else
void os_restart(void)
{
}
#endif
