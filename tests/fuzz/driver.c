/* driver.c: runs a fuzz target without libFuzzer.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   fuzz_NAME            one input on standard input (AFL++: no @@)
 *   fuzz_NAME PATH...    every file, and every file of every folder
 * Ends with "N inputs"; a finding ends the process by a signal. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static long inputs;

static void run_stream(FILE *f)
{
    size_t n = 0, capacity = 1 << 16;
    uint8_t *buf = malloc(capacity), *exact;
    for (size_t k; buf && (k = fread(buf + n, 1, capacity - n, f)) > 0;) {
        n += k;
        if (n == capacity) buf = realloc(buf, capacity *= 2);
    }
    /* a block of its very size, so that a sanitizer sees reads after it */
    exact = malloc(n ? n : 1);
    if (!buf || !exact) abort();
    memcpy(exact, buf, n);
    free(buf);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    inputs++;
}

static void run_path(const char *path)
{
    struct stat st;
    if (stat(path, &st)) {
        fprintf(stderr, "%s: cannot open\n", path);
        exit(2);
    }
    if (S_ISDIR(st.st_mode)) {
        struct dirent **list;
        int n = scandir(path, &list, NULL, alphasort);
        for (int i = 0; i < n; i++) {
            char name[1024];
            if (list[i]->d_name[0] != '.') {
                snprintf(name, sizeof name, "%s/%s", path, list[i]->d_name);
                run_path(name);
            }
            free(list[i]);
        }
        if (n >= 0) free(list);
        return;
    }
    FILE *f = fopen(path, "rb");
    if (!f) exit(2);
    run_stream(f);
    fclose(f);
}

int main(int argc, char **argv)
{
    if (argc < 2) run_stream(stdin);
    for (int i = 1; i < argc; i++) run_path(argv[i]);
    printf("%ld inputs\n", inputs);
    return 0;
}
