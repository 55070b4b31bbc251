/* common.c: see fuzz.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/file.h"
#include "tests/fuzz/fuzz.h"

static tt_ctx ctx;
static size_t scratch_used;
static char file_path[300];

static void stop(const char *why)
{
    fprintf(stderr, "fuzz target: %s: '%s'\n", why, tt_message(&ctx));
    abort();
}

static void no_warning(void *user, const char *sentence)
{
    (void)user;
    if (!sentence[0] || strchr(sentence, '\n')) stop("a bad warning");
}

static void remove_file(void)
{
    if (file_path[0]) unlink(file_path);
}

tt_ctx *fuzz_ctx(void)
{
    static int ready;
    if (!ready) {
        if (tt_ctx_init(&ctx)) abort();
        ctx.nthreads = 1;
        ctx.warn = no_warning;
        ready = 1;
    }
    scratch_used = ctx.scratch.used;
    return &ctx;
}

void fuzz_settle(void)
{
    const char *said = tt_message(&ctx);
    if (ctx.status && (!said[0] || strchr(said, '\n')))
        stop("a refusal is one sentence");
    if (ctx.scratch.used != scratch_used) stop("scratch memory left");
    tt_clear(&ctx);
}

static void read_tensor(const tt_file *f, const tt_entry *e)
{
    int64_t count;
    if (!tt_file_find(f, e->name)) stop("a name that is not found");
    if (!tt_checked_size(&count, e->t.dim, e->t.rank, 8)) stop("a size");
    if (count > 1 << 20) return;
    tt_arena a = {0};
    void *raw = tt_alloc(&ctx, &a, count, 1, "values");
    if (raw) tt_gather(raw, &e->t);
    tt_read_real(&ctx, &a, &e->t);
    tt_arena_free(&a);
}

void fuzz_checkpoint(const uint8_t *data, size_t size, const char *path)
{
    tt_file *f;
    fuzz_ctx();
    if (file_open_bytes(&ctx, &f, data, size, path) == TT_OK) {
        for (int64_t i = 0; i < tt_file_count(f); i++)
            read_tensor(f, tt_file_entry(f, i));
        tt_file_close(f);
    } else if (f) {
        stop("refused, but something is open");
    }
    fuzz_settle();
}

const char *fuzz_file(const uint8_t *data, size_t size, const char *suffix)
{
    if (!file_path[0]) {
        const char *tmp = getenv("TMPDIR");
        snprintf(file_path, sizeof file_path, "%s/tether-fuzz-%ld%s",
                 tmp ? tmp : "/tmp", (long)getpid(), suffix);
        atexit(remove_file);
    }
    FILE *f = fopen(file_path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f)) abort();
    return file_path;
}
