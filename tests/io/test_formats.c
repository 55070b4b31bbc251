/* test_formats.c: every file of ref_data/formats and the PyTorch files of
 * ref_data/vae_pth, against their manifest. Known answers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/harness.h"

static tt_ctx *ctx;
static tt_arena arena;

static int nibble(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static bool same_hex(const char *hex, const void *data, size_t n)
{
    const unsigned char *p = data;
    if (strlen(hex) != 2 * n) return false;
    for (size_t i = 0; i < n; i++)
        if (p[i] != nibble(hex[2 * i]) * 16 + nibble(hex[2 * i + 1]))
            return false;
    return true;
}

static bool same_path(const tt_entry *e, const tt_json *path)
{
    int i = 0;
    for (const tt_json *k = tt_json_first(path); k; k = tt_json_next(k), i++)
        if (i >= e->npath || strcmp(e->path[i], k->as.str)) return false;
    return i == e->npath;
}

/* f32_hex: the widened values; NaN payloads are not checked. */
static bool same_f32(const char *hex, const void *packed, const tt_tensor *t)
{
    int64_t n = tt_tensor_count(t);
    float *x = tt_alloc(ctx, &arena, n, sizeof *x, "floats");
    if (!x || strlen(hex) != 8 * (size_t)n) return false;
    tt_widen_f32(x, packed, t->dtype, n);
    for (int64_t i = 0; i < n; i++) {
        char one[9];
        unsigned char b[4];
        float want;
        memcpy(one, hex + 8 * i, 8);
        for (int k = 0; k < 4; k++)
            b[k] = (unsigned char)(nibble(one[2 * k]) * 16
                                   + nibble(one[2 * k + 1]));
        uint32_t u = (uint32_t)b[0] | (uint32_t)b[1] << 8
                     | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        memcpy(&want, &u, sizeof want);
        if (isnan(want) ? !isnan(x[i]) : memcmp(&want, &x[i], 4) != 0)
            return false;
    }
    return true;
}

static void check_tensor(const char *file, const tt_file *f,
                         const tt_json *want)
{
    const tt_json *path = tt_json_get(want, "path");
    const tt_json *shape = tt_json_get(want, "shape");
    const tt_entry *e = NULL;
    int same = 0;
    for (int64_t i = 0; i < tt_file_count(f); i++)
        if (same_path(tt_file_entry(f, i), path)) {
            e = tt_file_entry(f, i);
            same++;
        }
    if (!expect(same == 1, "%s: %d tensors called %s", file, same,
                tt_json_at(path, 0)->as.str))
        return;
    expect(!strcmp(tt_dtype_name(e->t.dtype), tt_json_str(want, "dtype", "")),
           "%s: %s: type %s", file, e->name, tt_dtype_name(e->t.dtype));
    bool ok = e->t.rank == tt_json_count(shape);
    for (int i = 0; ok && i < e->t.rank; i++)
        ok = e->t.dim[i] == tt_json_whole(tt_json_at(shape, i), 0);
    if (!expect(ok, "%s: %s: wrong shape", file, e->name)) return;
    size_t nbytes = (size_t)tt_tensor_bytes(&e->t);
    void *data = tt_alloc(ctx, &arena, (int64_t)nbytes, 1, "values");
    tt_gather(data, &e->t);
    tt_swap_stored(data, e->t.dtype, tt_tensor_count(&e->t)); /* as stored */
    expect(same_hex(tt_json_str(want, "hex", ""), data, nbytes),
           "%s: %s: wrong bytes", file, e->name);
    const char *f32 = tt_json_str(want, "f32_hex", NULL);
    if (f32)
        expect(same_f32(f32, data, &e->t), "%s: %s: wrong widened values",
               file, e->name);
}

static void check_file(const tt_json *want)
{
    const char *name = tt_json_str(want, "file", "");
    const char *verdict = tt_json_str(want, "verdict", "");
    tt_arena_mark m = tt_arena_here(&arena);
    size_t scratch = ctx->scratch.used;
    tt_file *f;
    const clock_t start = clock();
    tt_status s = tt_file_open(ctx, &f, ref_path("formats/%s", name));
    expect(clock() - start < CLOCKS_PER_SEC, "%s: more than a second", name);
    expect(ctx->scratch.used == scratch, "%s: scratch memory left", name);
    if (!strcmp(verdict, "reject")) {
        expect(s != TT_OK && f == NULL, "%s: opened, expected a refusal (%s)",
               name, tt_json_str(want, "why", ""));
        /* of a sharded set, the shard may be the one to blame */
        size_t folder = strcspn(name, "/");
        char part[256];
        snprintf(part, sizeof part, "%.*s", (int)folder, name);
        expect(strstr(tt_message(ctx), part) != NULL,
               "%s: message does not name the file: %s", name,
               tt_message(ctx));
        expect(!strchr(tt_message(ctx), '\n'), "%s: not one line", name);
        tt_clear(ctx);
    } else if (!strcmp(verdict, "either")) {
        tt_clear(ctx);
    } else if (expect_ok(s, name)) {
        const tt_json *tensors = tt_json_get(want, "tensors");
        expect(tt_file_count(f) == tt_json_count(tensors),
               "%s: %lld tensors, expected %lld", name,
               (long long)tt_file_count(f), (long long)tt_json_count(tensors));
        for (const tt_json *t = tt_json_first(tensors); t; t = tt_json_next(t))
            check_tensor(name, f, t);
    }
    tt_file_close(f);
    tt_arena_reset(&arena, m);
}

/* A PyTorch file whose values stand in a safetensors file, by joined name. */
static void check_pair(const char *torch, const char *safe)
{
    tt_file *a = NULL, *b = NULL;
    if (!expect_ok(tt_file_open(ctx, &a, ref_path("vae_pth/%s", torch)), torch)
        || !expect_ok(tt_file_open(ctx, &b, ref_path("vae_pth/%s", safe)),
                      safe)) {
        tt_file_close(a);
        return;
    }
    expect(tt_file_count(a) == tt_file_count(b), "%s: %lld tensors", torch,
           (long long)tt_file_count(a));
    for (int64_t i = 0; i < tt_file_count(b); i++) {
        const tt_entry *want = tt_file_entry(b, i);
        const tt_entry *got = tt_file_find(a, want->name);
        if (!expect(got != NULL, "%s: no %s", torch, want->name)) continue;
        bool same = got->t.dtype == want->t.dtype
                    && got->t.rank == want->t.rank;
        for (int d = 0; same && d < want->t.rank; d++)
            same = got->t.dim[d] == want->t.dim[d];
        if (!expect(same, "%s: %s: shape or type", torch, want->name))
            continue;
        size_t n = (size_t)tt_tensor_count(&want->t)
                   * tt_dtype_size(want->t.dtype);
        if (n == 0) continue;
        void *data = tt_alloc(ctx, &arena, (int64_t)n, 1, "values");
        tt_gather(data, &got->t);
        expect_values(want->name, &want->t, data, n);
        /* and the same through the widening reader */
        tt_real *x = tt_read_real(ctx, &arena, &got->t);
        tt_real *y = tt_read_real(ctx, &arena, &want->t);
        expect_bits(want->name, x, y,
                    (size_t)tt_tensor_count(&want->t) * sizeof *x);
    }
    tt_file_close(a);
    tt_file_close(b);
}

/* Things that are no checkpoint at all. */
/* Things that are no files: refused at once, also as a shard of an index. */
static void check_no_files(void)
{
    char dir[600], fifo[700], loop[700], index[700];
    tt_file *f;
    tmp_path(dir, sizeof dir, "formats-XXXXXX");
    if (!expect(mkdtemp(dir) != NULL, "a temporary folder")) return;
    snprintf(fifo, sizeof fifo, "%s/pipe", dir);
    snprintf(loop, sizeof loop, "%s/loop", dir);
    snprintf(index, sizeof index, "%s/x.index.json", dir);
    expect(mkfifo(fifo, 0600) == 0 && symlink("loop", loop) == 0, "make them");
    expect_status(tt_file_open(ctx, &f, fifo), TT_EIO, "a pipe");
    expect_status(tt_file_open(ctx, &f, loop), TT_EIO, "a link to itself");
    for (int i = 0; i < 2; i++) {
        FILE *o = fopen(index, "wb");
        if (!expect(o != NULL, "%s", index)) break;
        fprintf(o, "{\"weight_map\":{\"a\":\"%s\"}}", i ? "loop" : "pipe");
        fclose(o);
        expect_status(tt_file_open(ctx, &f, index), TT_EIO, "as a shard");
    }
    unlink(fifo);
    unlink(loop);
    unlink(index);
    rmdir(dir);
}

static void check_strange(void)
{
    tt_file *f;
    check_no_files();
    expect_status(tt_file_open(ctx, &f, "no/such/file"), TT_EIO, "no file");
    expect_status(tt_file_open(ctx, &f, ref_path("formats")), TT_EIO,
                  "a folder");
    expect_status(tt_file_open(ctx, &f, "/dev/null"), TT_EIO, "a device");
    tt_status s =
        tt_file_open(ctx, &f, ref_path("vae_pth/tiny_vae_legacy.pth"));
    expect(s && strstr(tt_message(ctx), "legacy"), "legacy format: %s",
           tt_message(ctx));
    tt_clear(ctx);
}

/* From here on the process may grow by 32 MB of address space and no more:
 * what a file declares must not be what is allocated. The files themselves
 * are below 1 MB. Sanitizers need the address space for themselves. */
static void limit_memory(void)
{
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif
#if !defined(SANITIZED) && !defined(__SANITIZE_ADDRESS__)
    long pages = 0;
    struct rlimit r;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld", &pages) != 1 || getrlimit(RLIMIT_AS, &r)) {
        if (f) fclose(f);
        return;
    }
    fclose(f);
    r.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (32 << 20);
    expect(setrlimit(RLIMIT_AS, &r) == 0, "the address space is limited");
#endif
}

int main(void)
{
    const tt_json *root;
    ctx = test_begin("io/formats");
    if (expect_ok(tt_json_file(ctx, &arena, &root,
                               ref_path("formats/manifest.json"), 64 << 20),
                  "manifest.json")) {
        limit_memory();
        for (const tt_json *f = tt_json_first(tt_json_get(root, "files")); f;
             f = tt_json_next(f))
            check_file(f);
    }
    check_pair("views.pth", "views_expected.safetensors");
    check_pair("nested.pth", "nested_expected.safetensors");
    check_pair("tiny_vae.pth", "weights.safetensors");
    check_strange();
    tt_arena_free(&arena);
    return test_end();
}
