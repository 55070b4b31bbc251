/* test_st_write.c: the writer: round trips, growth, and what stays after
 * when something goes wrong. Also SHA-256.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/outfile.h"
#include "tests/folder.h"

static tt_ctx *ctx;

static int files_in_dir(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}

static void round_trip(void)
{
    static const char odd[] = "a \"b\"\\\n\t\x01 \xc3\xa9";
    const char *path = at("round.safetensors");
    float f[6] = {1, -2, 3.5f, 0, -0.0f, 1e-40f};
    uint8_t u[3] = {1, 0, 255};
    int64_t i[1] = {INT64_MIN}, d23[] = {2, 3}, d3[] = {3}, d0[] = {0, 4};
    tt_st_writer *w;
    tt_file *r;
    expect_ok(tt_st_create(ctx, &w, path), "create");
    tt_st_meta(w, "key \"1\"", "value\n2");
    tt_st_add(w, "u8", TT_U8, 1, d3, u); /* leaves the next one unaligned */
    tt_st_add(w, odd, TT_F32, 2, d23, f);
    tt_st_add(w, "scalar", TT_I64, 0, NULL, i);
    tt_st_add(w, "empty", TT_F32, 2, d0, NULL);
    expect(access(path, F_OK) != 0, "the final name exists before finish");
    expect_ok(tt_st_finish(w), "finish");
    expect(files_in_dir() == 1, "temporary files are left");
    if (!expect_ok(tt_file_open(ctx, &r, path), "read back")) return;
    expect(tt_file_count(r) == 4, "count");
    const tt_entry *e = tt_file_find(r, odd);
    if (expect(e && e->t.dtype == TT_F32 && e->t.rank == 2
                   && e->t.dim[1] == 3, "shape"))
        expect_values("values", &e->t, f, sizeof f);
    e = tt_file_find(r, "scalar");
    if (expect(e && e->t.rank == 0, "scalar"))
        expect_values("scalar", &e->t, i, sizeof i);
    expect(tt_file_find(r, "empty") != NULL, "empty");
    expect(!strcmp(tt_file_entry(r, 0)->name, "u8"), "order of tensors");
    tt_file_close(r);
    unlink(path);
}

/* [1, n, C, h, w] latents that grow by chunks, larger than any buffer. */
static void growth(void)
{
    enum { ROW = 2 * 100 * 200, CHUNKS = 7 };
    const char *path = at("grow.safetensors");
    int64_t dim[] = {1, 0, 2, 100, 200}, rows = 0, d1[] = {1, 2};
    float *x = malloc(4 * ROW * sizeof *x), more[4] = {1, 2, 3, 4};
    tt_st_writer *w;
    tt_file *r;
    float next = 0;
    expect_ok(tt_st_create(ctx, &w, path), "create");
    tt_st_add(w, "latents", TT_F32, 5, dim, NULL);
    for (int c = 0; c < CHUNKS; c++) {
        int n = c % 4;
        for (int k = 0; k < n * ROW; k++) x[k] = next++;
        tt_st_append(w, 1, n, x);
        rows += n;
        if (c == 2) expect_ok(tt_st_flush(w), "flush");
    }
    tt_st_add(w, "m", TT_F32, 2, d1, more);
    tt_st_append(w, 0, 1, more + 2);
    expect_ok(tt_st_finish(w), "finish");
    if (expect_ok(tt_file_open(ctx, &r, path), "read back")) {
        const tt_entry *e = tt_file_find(r, "latents");
        bool ok = e->t.dim[0] == 1 && e->t.dim[1] == rows;
        for (int64_t k = 0; ok && k < rows * ROW; k++) {
            float v;
            tt_widen_at_f32(&v, &e->t, k, 1);
            ok = v == (float)k;
        }
        expect(ok, "grown values");
        e = tt_file_find(r, "m");
        expect(e->t.dim[0] == 2, "grown along axis 0");
        expect_values("m", &e->t, more, sizeof more);
        tt_file_close(r);
    }
    free(x);
    unlink(path);
}

static void failures(void)
{
    const char *path = at("fail.safetensors");
    int64_t d[] = {1};
    float x = 1;
    tt_st_writer *w;
    /* an old file stays what it was until the new one is complete */
    FILE *f = fopen(path, "w");
    fputs("old", f);
    fclose(f);
    expect_ok(tt_st_create(ctx, &w, path), "create");
    tt_st_add(w, "x", TT_F32, 1, d, &x);
    tt_st_abort(w);
    struct stat st;
    expect(stat(path, &st) == 0 && st.st_size == 3, "abort kept the old file");
    expect(files_in_dir() == 1, "abort left temporary files");

    expect_ok(tt_st_create(ctx, &w, path), "create");
    tt_st_add(w, "x", TT_F32, 1, d, &x);
    tt_st_add(w, "x", TT_F32, 1, d, &x);
    expect_status(tt_st_finish(w), TT_EINVAL, "a name twice");
    expect_ok(tt_st_create(ctx, &w, path), "create");
    tt_st_add(w, "\xff", TT_F32, 1, d, &x);
    expect_status(tt_st_finish(w), TT_EINVAL, "a name that is not UTF-8");
    expect_ok(tt_st_create(ctx, &w, path), "create");
    tt_st_add(w, "x", TT_F32, 1, d, &x);
    tt_fail(ctx, TT_EINTR, "elsewhere");
    expect_status(tt_st_finish(w), TT_EINTR, "a failure elsewhere");
    expect(stat(path, &st) == 0 && st.st_size == 3, "failure kept the file");
    expect(files_in_dir() == 1, "failures left temporary files");
    unlink(path);

    expect_status(tt_st_create(ctx, &w, folder), TT_EIO, "a folder as target");
    expect(w == NULL, "no writer after a failure");
    expect_status(tt_st_create(ctx, &w, at("no/such/folder")), TT_EIO,
                  "no such folder");
    expect_status(tt_st_create(ctx, &w, "/dev/null"), TT_EIO, "a device");
    if (access("/dev/full", W_OK) == 0 && geteuid() != 0) {
        chmod(folder, 0500);
        expect_status(tt_st_create(ctx, &w, path), TT_EIO, "read-only folder");
        chmod(folder, 0700);
    }
}

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? -1 : (int64_t)st.st_size;
}

static void leave(const char *name)
{
    FILE *f = fopen(at(name), "w");
    if (!expect(f != NULL, "leave %s", name)) return;
    fputs("half", f);
    fclose(f);
}

/* What a killed process left goes with the next writer of that name; what a
 * living one writes stays, and so does half a download. */
static void left_files(void)
{
    const int64_t d[] = {1};
    const float x[] = {1, 2};
    tt_st_writer *w[2];
    leave("k.part-0");
    leave("k.part-0h");
    leave("k.part-1");     /* it wrote next to another one */
    leave("k.part-1h");
    leave("k.part-15");
    leave("k.part");
    for (int i = 0; i < 2; i++) {
        expect_ok(tt_st_create(ctx, &w[i], at("k")), "create");
        expect_ok(tt_st_reserve(w[i], 1000), "room for its header");
        expect_ok(tt_st_add(w[i], "x", TT_F32, 1, d, &x[i]), "add");
    }
    expect(files_in_dir() == 3, "two temporary files: %d", files_in_dir());
    tt_st_abort(w[1]);
    expect(files_in_dir() == 2, "one of them: %d", files_in_dir());
    expect_ok(tt_st_finish(w[0]), "finish");
    tt_file *r;
    if (!expect_ok(tt_file_open(ctx, &r, at("k")), "read back")) return;
    expect_values("the first", &tt_file_find(r, "x")->t, x, sizeof *x);
    tt_file_close(r);
    unlink(at("k"));
    expect(!unlink(at("k.part")), "half of someone's download stays");
    expect(files_in_dir() == 0, "nothing is left: %d", files_in_dir());
}

/* The same of other files, also of those that another program writes. */
static void left_outputs(void)
{
    tt_out o, other;
    leave(".v.mp4.part");
    leave(".v.mp4.1.part");
    leave(".v.mp4.9.part");
    expect_ok(tt_out_open(ctx, &o, at("v.mp4")), "open");
    expect(size_of(at(".v.mp4.part")) == 0, "ours");
    expect(access(at(".v.mp4.1.part"), F_OK)
           && access(at(".v.mp4.9.part"), F_OK), "left by others");
    expect_ok(tt_out_open(ctx, &other, at("v.mp4")), "a second one");
    expect(!access(at(".v.mp4.part"), F_OK)
           && !access(at(".v.mp4.1.part"), F_OK), "two living ones");
    tt_out_abort(&other);
    expect(access(at(".v.mp4.1.part"), F_OK), "one of them is left");
    expect_ok(tt_out_finish(ctx, &o), "finish");
    expect(access(at(".v.mp4.part"), F_OK) && !unlink(at("v.mp4")), "done");
    expect(files_in_dir() == 0, "nothing is left: %d", files_in_dir());
}

/* Links: one under the temporary name is not followed, one under the final name
 * is and stays one. A file that appears meanwhile stays, unless told
 * otherwise. */
static void other_files(void)
{
    int64_t d[] = {1};
    float x = 1;
    tt_st_writer *w;
    FILE *f = fopen(at("victim"), "w");
    fputs("old", f);
    fclose(f);
    expect(!symlink(at("victim"), at("a.part-0")), "plant a link");
    for (int i = 0; i < 3; i++) {
        ctx->overwrite = i == 2;
        if (i == 1) unlink(at("a"));
        expect_ok(tt_st_create(ctx, &w, at("a")), "create");
        tt_st_add(w, "x", TT_F32, 1, d, &x);
        if (i) {
            unlink(at("a"));
            expect(!link(at("victim"), at("a")), "someone's file");
        }
        expect_status(tt_st_finish(w), i == 1 ? TT_EIO : TT_OK, "finish");
        tt_clear(ctx);
        expect(size_of(at("victim")) == 3, "the other file is as it was");
        expect((size_of(at("a")) == 3) == (i == 1), "case %d", i);
    }
    ctx->overwrite = false;
    struct stat st;
    expect(!symlink("a", at("b")), "a link");
    expect_ok(tt_st_create(ctx, &w, at("b")), "create");
    for (int i = 0; i < 2; i++)
        tt_st_add(w, i ? "y" : "x", TT_F32, 1, d, &x);
    const int64_t before = size_of(at("a"));
    expect_ok(tt_st_finish(w), "finish");
    expect(!lstat(at("b"), &st) && S_ISLNK(st.st_mode)
           && size_of(at("a")) > before, "a link is followed");
    expect(files_in_dir() == 3, "nothing else is left");
    unlink(at("a"));
    unlink(at("b"));
    unlink(at("victim"));
}

/* A full disk, played by the limit on file sizes: found while appending, and
 * found when the header comes in front. */
static void disk_full(void)
{
    enum { LIMIT = 1 << 20, N = LIMIT / 4 };
    const char *path = at("full.safetensors");
    struct rlimit old, small;
    int64_t dim[] = {0, 1}, n[] = {N - 16};
    float *x = calloc(2 * N, sizeof *x);
    tt_st_writer *w;
    if (!x || getrlimit(RLIMIT_FSIZE, &old) != 0) return;
    small = old;
    small.rlim_cur = LIMIT;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    expect_ok(tt_st_create(ctx, &w, path), "create");
    tt_st_add(w, "x", TT_F32, 2, dim, NULL);
    expect(tt_st_append(w, 0, 2 * N, x) == TT_EIO, "append on a full disk");
    expect(strstr(tt_message(ctx), path) != NULL, "message: %s",
           tt_message(ctx));
    expect_status(tt_st_finish(w), TT_EIO, "finish on a full disk");
    expect(files_in_dir() == 0, "files left by a full disk");

    expect_ok(tt_st_create(ctx, &w, path), "create");
    tt_st_add(w, "x", TT_F32, 1, n, x);
    expect_ok(tt_st_flush(w), "it fits without its header");
    expect_status(tt_st_finish(w), TT_EIO, "no room for the header");
    expect(files_in_dir() == 0, "files left by a full disk");
    setrlimit(RLIMIT_FSIZE, &old);
    free(x);
}

static void digests(void)
{
    static const struct { const char *text, *hex; } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        },
        {"abc",
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijkl"
         "mnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char hex[65], again[65];
    tt_sha256 s;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i].text);
        tt_sha256_init(&s);
        tt_sha256_add(&s, known[i].text, n);
        tt_sha256_hex(&s, hex);
        expect(!strcmp(hex, known[i].hex), "sha256 of %zu bytes: %s", n, hex);
    }
    tt_sha256_init(&s);
    for (int i = 0; i < 1000; i++) {
        char thousand[1000];
        memset(thousand, 'a', sizeof thousand);
        tt_sha256_add(&s, thousand, sizeof thousand);
    }
    tt_sha256_hex(&s, hex);
    expect(!strcmp(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39"
                        "ccc7112cd0"), "sha256 of a million a: %s", hex);
    /* a transposed view digests as its row-major copy */
    float a[6] = {0, 1, 2, 3, 4, 5}, b[6] = {0, 3, 1, 4, 2, 5};
    int64_t d23[] = {2, 3}, d32[] = {3, 2};
    tt_tensor x = tt_tensor_make(a, TT_F32, 2, d23), y = x;
    y.dim[0] = 3;
    y.dim[1] = 2;
    y.stride[0] = 1;
    y.stride[1] = 3;
    tt_tensor z = tt_tensor_make(b, TT_F32, 2, d32);
    tt_tensor_digest(ctx, hex, &y);
    tt_tensor_digest(ctx, again, &z);
    expect(!strcmp(hex, again), "digest of a strided tensor");
    tt_tensor_digest(ctx, again, &x);
    expect(strcmp(hex, again) != 0, "digests differ");
}

/* With room for the header the data is never written twice: what was the
 * temporary file becomes the final one. With too little it still is right. */
static void reserved(void)
{
    const char *path = at("room.safetensors");
    float f[6] = {1, -2, 3.5f, 0, -0.0f, 1e-40f};
    const int64_t dim[] = {2, 3};
    for (int64_t capacity = 8; capacity <= 2000000; capacity *= 50) {
        char part[320];
        struct stat before = {0}, after = {0};
        tt_st_writer *w;
        tt_file *r;
        expect_ok(tt_st_create(ctx, &w, path), "create");
        expect_ok(tt_st_reserve(w, capacity), "reserve");
        tt_st_add(w, "x", TT_F32, 2, dim, f);
        snprintf(part, sizeof part, "%s.part-0", path);
        stat(part, &before);
        expect_ok(tt_st_finish(w), "finish");
        expect(stat(path, &after) == 0
                   && (before.st_ino == after.st_ino) == (capacity > 300),
               "room %d: written twice", (int)capacity);
        expect(files_in_dir() == 1, "temporary files are left");
        if (!expect_ok(tt_file_open(ctx, &r, path), "read back")) return;
        const tt_entry *e = tt_file_find(r, "x");
        if (!expect(e != NULL, "room %d: found", (int)capacity)) return;
        expect_values("room", &e->t, f, sizeof f);
        expect((uintptr_t)e->t.data % 8 == 0, "room %d: aligned",
               (int)capacity);
        tt_file_close(r);
        unlink(path);
    }
}

int main(void)
{
    ctx = test_begin("io/st_write");
    if (!folder_make()) return test_end();
    reserved();
    round_trip();
    growth();
    failures();
    left_files();
    left_outputs();
    other_files();
    disk_full();
    digests();
    folder_remove_empty();
    return test_end();
}
