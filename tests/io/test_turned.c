/* test_turned.c: the file of weights that are laid out beforehand.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties  every value is where tt_tensor.turned says, of matrices of any
 *             type and of convolutions; a file is made once, and anew when the
 *             key, the model's place or the lanes are others, or when it is
 *             broken; what was there stays until the new one is complete. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/weights.h"
#include "tests/folder.h"

static tt_ctx *ctx;
static int made;             /* tensors of which weights_turn said: one more  */
static const char *origin = "a dictionary", *part = "blocks.";

enum { O = 40, I = 24, COUT = 33, CIN = 3, TAPS = 12,
       /* two matrices, and a convolution in two forms, of float builds */
       CONVS = sizeof(tt_real) == sizeof(float), ALL = 2 + 2 * CONVS };

static float value(int64_t i)
{
    return (float)(i % 251) - 100;
}

/* A model of a few tensors, of which some are turned. */
static const char *make(const char *name, float first)
{
    static const char *const matrix[] = {
        "blocks.0.ffn.0.weight", "blocks.0.ffn.2.weight", "other.weight"};
    const char *path = at(name);
    float x[COUT * CIN * TAPS > O * I ? COUT * CIN * TAPS : O * I];
    uint16_t half[O * I];
    tt_st_writer *w;
    for (int i = 0; i < (int)(sizeof x / sizeof *x); i++) x[i] = value(i);
    x[0] = first;
    for (int i = 0; i < O * I; i++) half[i] = tt_bf16_from_f32(x[i]);
    if (!expect_ok(tt_st_create(ctx, &w, path), name)) return path;
    for (int i = 0; i < 3; i++)
        tt_st_add(w, matrix[i], i == 1 ? TT_BF16 : TT_F32, 2,
                  (int64_t[]){O, I}, i == 1 ? (void *)half : (void *)x);
    tt_st_add(w, "blocks.0.conv.weight", TT_F32, 5,
              (int64_t[]){COUT, CIN, 3, 2, 2}, x);
    tt_st_add(w, "blocks.0.half.weight", TT_BF16, 5,
              (int64_t[]){O, 2, 3, 2, 2}, half);
    tt_st_add(w, "blocks.0.few.weight", TT_F32, 2, (int64_t[]){15, 8}, x);
    tt_st_add(w, "blocks.0.norm.weight", TT_F32, 1, (int64_t[]){O}, x);
    expect_ok(tt_st_finish(w), name);
    return path;
}

/* Opened by force: the names are no model's. */
static tt_weights *open_weights(const char *path)
{
    tt_weights *w = calloc(1, sizeof *w);
    w->ctx = ctx;
    if (!expect_ok(tt_file_open(ctx, &w->file, path), path)) exit(1);
    w->path = tt_strdup(ctx, &w->arena, path);
    w->origin = tt_strdup(ctx, &w->arena, origin);
    w->count = tt_file_count(w->file);
    w->item = tt_alloc0(ctx, &w->arena, w->count, sizeof *w->item, "weights");
    w->sorted = tt_alloc0(ctx, &w->arena, w->count, sizeof *w->sorted, "w");
    for (int64_t i = 0; i < w->count; i++) {
        const tt_entry *e = tt_file_find(
            w->file, tt_file_entry(w->file, i)->name);
        w->item[i] = (weight){e->name, e->name, e->t, false};
    }
    for (int64_t i = 0; i < w->count; i++) { /* few: counted into order */
        int64_t k = 0;
        for (int64_t j = 0; j < w->count; j++)
            k += strcmp(w->item[j].name, w->item[i].name) < 0;
        w->sorted[k] = &w->item[i];
    }
    return w;
}

static void count(void *user, const char *path, int64_t done, int64_t total)
{
    (void)user;
    (void)path;
    expect(done >= 0 && done < total, "%lld of %lld bytes", (long long)done,
           (long long)total);
    made++;
}

/* Open, turn; how many tensors were made. */
static int turn(tt_weights **out, const char *model, const char *key,
                int64_t lanes)
{
    tt_weights *w = open_weights(model);
    made = 0;
    expect_ok(weights_turn(w, &(weights_turning){
        .option = "--turned-dir", .folder = at("kept"), .key = key,
        .prefix = part, .lanes = lanes, .progress = count}), key);
    *out = w;
    return made;
}

static void check_matrix(const tt_weights *w, const char *name, int64_t lanes,
                         float first)
{
    const tt_tensor *t = tt_weights_find(w, name);
    bool right = t->turned && t->lanes == lanes
                 && (uintptr_t)t->turned % 64 == 0;
    const int64_t groups = (O + lanes - 1) / lanes;
    for (int64_t i = 0; right && i < groups * I * lanes; i++) {
        const int64_t o = i / (I * lanes) * lanes + i % lanes;
        const int64_t k = i / lanes % I, at_ = o * I + k;
        const float want = o >= O ? 0 : at_ ? value(at_) : first;
        right = t->turned[i] == want;
    }
    expect(right, "%s for %lld lanes", name, (long long)lanes);
}

static void check_conv(const tt_weights *w, int64_t lanes)
{
    const char *name = "blocks.0.conv.weight";
    const tt_tensor *t = tt_weights_find(w, name);
    const float *packed = weights_packed(w, name);
    enum { K = CIN * TAPS };
    if (!CONVS) return;
    bool right = t->turned && packed && (uintptr_t)t->turned % 64 == 0;
    for (int64_t o = 0; right && o < COUT; o++)
        for (int64_t k = 0; right && k < K; k++) {
            const int64_t from = o * K + k % CIN * TAPS + k / CIN;
            const float want = from ? value(from) : 5;
            right = packed[o * K + k] == want
                 && t->turned[(o / lanes * K + k) * lanes + o % lanes] == want;
        }
    expect(right, "a convolution, channels last, for %lld lanes",
           (long long)lanes);
}

/* Of this model: everything that is turned, and nothing else. */
static void check_all(const tt_weights *w, int64_t lanes, float first)
{
    static const char *const none[] = {"other.weight", "blocks.0.half.weight",
                                       "blocks.0.few.weight",
                                       "blocks.0.norm.weight"};
    check_matrix(w, "blocks.0.ffn.0.weight", lanes, first);
    check_matrix(w, "blocks.0.ffn.2.weight", lanes,
                 tt_f32_from_bf16(tt_bf16_from_f32(first)));
    for (int i = 0; i < 4; i++)
        expect(!tt_weights_find(w, none[i])->turned
               && !weights_packed(w, none[i]), "%s is left", none[i]);
    expect(!weights_packed(w, "blocks.0.ffn.0.weight")
           && !weights_packed(w, "nothing"), "a matrix is packed already");
}

/* The only file of the folder that there is, of so many. */
static const char *file_kept(int n)
{
    static char path[1100];
    char command[1200];
    int files = 0;
    snprintf(command, sizeof command, "ls -t '%s'", at("kept"));
    FILE *f = popen(command, "r");
    char name[300];
    while (f && fgets(name, sizeof name, f))
        if (!files++)
            snprintf(path, sizeof path, "%s/%.*s", at("kept"),
                     (int)strcspn(name, "\n"), name);
    if (f) pclose(f);
    expect(files == n, "%d files, expected %d", files, n);
    return path;
}

static void check_once(void)
{
    const char *model = make("model.safetensors", 5);
    tt_weights *w, *v;
    struct stat a, b;
    expect(turn(&w, model, "one", 32) == ALL, "%d tensors are made", made);
    check_all(w, 32, 5);
    check_conv(w, 32);
    expect(!stat(file_kept(1), &a), "a file");
    expect(turn(&v, model, "one", 32) == 0, "not again: %d", made);
    check_all(v, 32, 5);
    tt_weights_release(v, tt_weights_find(v, "blocks.0.ffn.0.weight"));
    check_all(v, 32, 5);
    tt_weights_close(v);
    expect(!stat(file_kept(1), &b) && a.st_ino == b.st_ino, "the same file");

    expect(turn(&v, model, "two", 32) == ALL, "of another key: %d", made);
    check_all(w, 32, 5); /* whoever has the old one keeps it */
    tt_weights_close(v);
    tt_weights_close(w);
    file_kept(1);
    expect(turn(&v, model, "two", 16) == ALL, "for other lanes: %d", made);
    check_all(v, 16, 5);
    check_conv(v, 16);
    tt_weights_close(v);
    file_kept(2);
    mkdir(at("elsewhere"), 0777);
    expect(turn(&v, make("elsewhere/model.safetensors", 6), "two", 32) == ALL,
           "of a model of the same name: %d", made);
    check_all(v, 32, 6);
    tt_weights_close(v);
    file_kept(3);
}

/* Another part of the same file, and another dictionary in it. */
static void check_parts(void)
{
    char model[1100];
    tt_weights *w;
    snprintf(model, sizeof model, "%s", at("model.safetensors"));
    for (int i = 0; i < 4; i++) {
        origin = i % 2 ? "another one" : "a dictionary";
        part = i / 2 ? "other." : "blocks.";
        const int all = i == 0 ? 0 : i == 1 ? ALL : 1; /* the first is there */
        expect(turn(&w, model, "two", 32) == all, "part %d: %d", i, made);
        tt_weights_close(w);
    }
    for (int i = 0; i < 4; i++) {
        origin = i % 2 ? "another one" : "a dictionary";
        part = i / 2 ? "other." : "blocks.";
        expect(turn(&w, model, "two", 32) == 0, "part %d again: %d", i, made);
        tt_weights_close(w);
    }
    origin = "a dictionary";
    part = "blocks.";
    file_kept(6);
}

/* ---- files that are not what they should be ------------------------------ */

enum fault { NONE, CUT, SHAPE, TYPE, PLACE, MISSING, CONV, OTHER_KEY, FAULTS };

/* The file at `path` again, with a fault. */
static void spoil(const char *path, enum fault f)
{
    static const char name[] = "blocks.0.ffn.0.weight";
    const char *copy = at("copy");
    tt_file *from;
    tt_st_writer *to;
    if (f == CUT) {
        expect(!truncate(path, 5000), "cut off");
        return;
    }
    if (!expect_ok(tt_file_open(ctx, &from, path), path)) return;
    expect_ok(tt_st_create(ctx, &to, copy), copy);
    tt_st_meta(to, "key", f == OTHER_KEY ? "on" : "one");
    tt_st_reserve(to, f == PLACE ? 4088 + 8 : 4088);
    for (int64_t i = 0; i < tt_file_count(from); i++) {
        const tt_entry *e = tt_file_entry(from, i);
        const bool is = !strcmp(e->name, name);
        tt_tensor t = e->t;
        if (is && f == SHAPE) t.dim[0]--;
        if (is && f == TYPE) t.dtype = TT_I32;
        if ((is && f == MISSING) || (f == CONV && strstr(e->name, ".packed")))
            continue;
        tt_st_add(to, e->name, t.dtype, t.rank, t.dim, t.data);
    }
    expect_ok(tt_st_finish(to), copy);
    tt_file_close(from);
    expect(!rename(copy, path), "%s takes its place", copy);
}

static void check_spoiled(void)
{
    char model[1100];
    tt_weights *w;
    snprintf(model, sizeof model, "%s", make("spoiled.safetensors", 5));
    turn(&w, model, "one", 32);
    tt_weights_close(w);
    const char *path = file_kept(7);
    for (int f = NONE; f < FAULTS; f++) {
        const bool good = f == NONE || (f == CONV && !CONVS);
        spoil(path, (enum fault)f);
        expect(turn(&w, model, "one", 32) == (good ? 0 : ALL), "fault %d: %d",
               f, made);
        check_all(w, 32, 5);
        check_conv(w, 32);
        tt_weights_close(w);
    }
    file_kept(7);
}

/* ---- beside others ------------------------------------------------------- */

/* Another process is done first. */
static void intrude(void *user, const char *path, int64_t done, int64_t total)
{
    (void)user;
    (void)total;
    FILE *f = done ? NULL : fopen(path, "w");
    if (f) fclose(f);
}

static tt_status refuse(void *user)
{
    return tt_fail(user, TT_ESHAPE, "no model");
}

static bool no_place(void *user, const char *from, const char *to)
{
    (void)user;
    (void)from;
    (void)to;
    return false;
}

/* It is no output: nobody is asked whether it may be called like that. What is
 * no model costs nothing. */
static void check_beside(void)
{
    const weights_turning how = {.option = "--turned-dir", .folder = at("kept"),
                                 .key = "one", .prefix = "blocks.", .lanes = 32,
                                 .progress = intrude};
    weights_turning none = how;
    tt_weights *w = open_weights(make("beside.safetensors", 5));
    ctx->place = no_place;
    expect_ok(weights_turn(w, &how), "a name that is taken meanwhile");
    expect(ctx->place == no_place && !ctx->overwrite, "as it was");
    ctx->place = NULL;
    check_all(w, 32, 5);
    expect(!strncmp(weights_turned_path(w), file_kept(8), 1000)
           && !strstr(weights_turned_path(w), ".safetensors"),
           "%s is no name that a model has", weights_turned_path(w));
    tt_weights_close(w);
    w = open_weights(make("none.safetensors", 5));
    none.check = refuse;
    none.user = ctx;
    expect_status(weights_turn(w, &none), TT_ESHAPE, "no model");
    expect(!weights_turned_path(w), "nothing is turned");
    tt_weights_close(w);
    file_kept(8);
}

static void refused(const char *where, const char *words)
{
    tt_weights *w = open_weights(at("model.safetensors"));
    weights_turn(w, &(weights_turning){
        .option = "--turned-dir", .folder = where, .key = "three",
        .prefix = "blocks.", .lanes = 32});
    expect(ctx->status == TT_EIO && strstr(tt_message(ctx), words), "%s: %s",
           where, tt_message(ctx));
    tt_clear(ctx);
    expect(!tt_weights_find(w, "blocks.0.ffn.0.weight")->turned, "not turned");
    tt_weights_close(w);
}

/* What identifies a model changes with any change of its file. */
static void check_stamp(void)
{
    char hex[3][65];
    const char *model = at("model.safetensors");
    for (int i = 0; i < 3; i++) {
        tt_sha256 s;
        tt_weights *w = open_weights(model);
        tt_sha256_init(&s);
        weights_stamp(&s, w);
        tt_sha256_hex(&s, hex[i]);
        tt_weights_close(w);
        if (i == 1) make("model.safetensors", 5); /* the same bytes, later */
    }
    expect(!strcmp(hex[0], hex[1]) && strcmp(hex[1], hex[2]),
           "a stamp changes with the file");
}

/* The file has the byte order of files, and kernels read it in place. */
static void check_big_endian(void)
{
    tt_weights *w;
    expect(turn(&w, make("model.safetensors", 5), "one", 32) == 0
           && !weights_turned_path(w), "nothing is turned: %d", made);
    tt_weights_close(w);
    file_kept(0);
}

int main(void)
{
    ctx = test_begin("io/turned");
    if (!folder_make()) return test_end();
    mkdir(at("kept"), 0777);
    if (tt_host_little_endian()) {
        check_once();
        check_parts();
        check_spoiled();
        check_beside();
        refused(at("nowhere"), "give a folder that is there");
        refused(at("model.safetensors"), "--turned-dir");
        check_stamp();
    } else {
        check_big_endian();
    }
    folder_remove();
    return test_end();
}
