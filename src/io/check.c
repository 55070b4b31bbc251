/* check.c: is this file what it should be?
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * What is well-formed and wrong all the same: another model that has Wan's
 * names, one of two experts, a download that did not end, values that were
 * never written. Each gives pictures of noise, and no other error.
 *
 * Zeros   A program that downloads in pieces gives a file its full length at
 *         once; what was not written reads as 0. Training leaves no matrix,
 *         norm or modulation with such rows. Rows are looked at here and there
 *         (all of a small tensor); `inspect --verify` reads every byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/check.h"
#include "io/file.h"
#include "io/guess.h"
#include "io/json.h"
#include "io/bytes.h"
#include "io/weights.h"

static bool check_is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* ---- downloads ----------------------------------------------------------- */

/* What programs append to the name of a file that is being downloaded, or to
 * that of what they keep with it, as axel does with the last one: a file of its
 * own may well be called so. */
static const char *const unfinished[] = {
    ".aria2", ".part", ".partial", ".incomplete", ".crdownload", ".download",
    ".filepart", ".opdownload", ".!qB", ".!ut", ".st"};
enum { ENDINGS = sizeof unfinished / sizeof *unfinished };

static tt_status io_check_name(tt_ctx *ctx, const char *path, const char *shown)
{
    char other[4400];
    for (int i = 0; i < ENDINGS; i++) {
        if (i < ENDINGS - 1 && ends(path, unfinished[i]))
            return tt_fail(ctx, TT_EFORMAT, "%.800s: a download that did not "
                           "end, says its name; let it end, or rename it if it "
                           "is complete", shown);
        snprintf(other, sizeof other, "%s%s", path, unfinished[i]);
        if (check_is_there(other))
            return tt_fail(ctx, TT_EFORMAT, "%.400s: its download did not end, "
                           "because %.400s is there; let it end or fetch the "
                           "file again, or remove %s if it is complete "
                           "(`tether inspect --verify`)", shown, other,
                           strrchr(other, '/') ? strrchr(other, '/') + 1
                                               : other);
    }
    return TT_OK;
}

tt_status io_check_download(tt_ctx *ctx, const char *path)
{
    if (ctx->status || io_check_name(ctx, path, path)) return ctx->status;
    char *real = realpath(path, NULL); /* the hub's names are links */
    if (real && strcmp(real, path)) io_check_name(ctx, real, path);
    free(real);
    return ctx->status;
}

static tt_status check_downloads(tt_ctx *ctx, const tt_file *f)
{
    TT_TRY(io_check_download(ctx, f->path));
    for (int64_t i = 0; i < f->nshards; i++)
        TT_TRY(io_check_download(ctx, f->shard[i]->path));
    return TT_OK;
}

/* ---- two experts --------------------------------------------------------- */

static const char *const expert_folders[] = {"transformer_2",
                                             "high_noise_model",
                                             "low_noise_model"};
enum { EXPERT_FOLDERS = sizeof expert_folders / sizeof *expert_folders };

/* Is there a value that says something: not null, nor a list of nulls? */
static bool says(const tt_json *v)
{
    const tt_json *first = tt_json_first(v);
    return v && v->kind != TT_JSON_NULL
        && !(v->kind == TT_JSON_ARRAY
             && (!first || first->kind == TT_JSON_NULL));
}

bool io_has_experts(tt_ctx *ctx, const char *dir)
{
    char path[4400];
    const tt_json *root;
    tt_arena a = {0};
    tt_ctx own = {.status = TT_OK}; /* what cannot be read says nothing */
    bool two = false;
    if (ctx->status) return false;
    for (int i = 0; i < EXPERT_FOLDERS && !two; i++) {
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", dir, expert_folders[i]);
        two = !stat(path, &st) && S_ISDIR(st.st_mode);
    }
    snprintf(path, sizeof path, "%s/model_index.json", dir);
    if (!two && check_is_there(path)
        && !tt_json_file(&own, &a, &root, path, 1 << 20))
        two = says(tt_json_get(root, "boundary_ratio"))
           || says(tt_json_get(root, "transformer_2"));
    tt_arena_free(&a);
    tt_ctx_free(&own);
    return two;
}

/* Letters and digits alone, in lower case. */
static void plain(char *out, size_t n, const char *name)
{
    size_t at = 0;
    for (; *name && at + 1 < n; name++) {
        const char c = *name >= 'A' && *name <= 'Z' ? (char)(*name + 32)
                                                    : *name;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out[at++] = c;
    }
    out[at] = 0;
}

bool io_names_expert(const char *path)
{
    char text[512];
    const char *slash = strrchr(path, '/');
    plain(text, sizeof text, slash ? slash + 1 : path);
    return strstr(text, "highnoise") || strstr(text, "lownoise")
        || (strstr(text, "wan22") && strstr(text, "14b"));
}

tt_status io_refuse_experts(tt_ctx *ctx, const char *path)
{
    return tt_fail(ctx, TT_EUNSUPPORTED, "%.800s: Wan2.2 A14B has two experts, "
                   "one for high and one for low noise; not supported, and one "
                   "of them alone gives noise: take a Wan2.1 text-to-video "
                   "model", path);
}

static tt_status check_experts(tt_ctx *ctx, const char *path)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    bool two = io_names_expert(path);
    char *real = realpath(path, NULL);
    char *dir = io_folder_of(ctx, &ctx->scratch, real ? real : path);
    char *above = dir ? io_folder_of(ctx, &ctx->scratch, dir) : NULL;
    char *given = io_folder_of(ctx, &ctx->scratch, path); /* of a link */
    free(real);
    TT_TRY(ctx->status);
    for (int i = 0; i < EXPERT_FOLDERS; i++)
        two = two || ends(dir, expert_folders[i])
           || ends(given, expert_folders[i]);
    const bool part = ends(dir, "/transformer");
    two = two || io_has_experts(ctx, dir)
       || (part && io_has_experts(ctx, above));
    if (!two && ends(given, "transformer") && !part) {
        char *up = io_join(ctx, &ctx->scratch, given, "..");
        two = up && io_has_experts(ctx, up);
    }
    tt_arena_reset(&ctx->scratch, mark);
    return two ? io_refuse_experts(ctx, path) : ctx->status;
}

/* ---- zeros --------------------------------------------------------------- */

enum { SOME = 1024, ALL = 1 << 18, APART = 8 };

/* Values of one row: of a matrix those of an output, of a convolution its
 * filter, of a modulation one of its vectors. */
static int64_t check_row_of(const tt_tensor *t)
{
    const int64_t n = tt_tensor_count(t);
    const bool packed = t->rank > 3 || (t->rank == 3 && t->dim[0] > 1);
    return t->rank < 2 ? n : packed ? n / t->dim[0] : t->dim[t->rank - 1];
}

static bool is_zero(const tt_tensor *t, int64_t first, int64_t n)
{
    tt_real v[256];
    for (int64_t at = 0; at < n; at += 256) {
        const int64_t k = n - at < 256 ? n - at : 256;
        tt_widen_at(v, t, first + at, k);
        for (int64_t i = 0; i < k; i++)
            if (v[i] != 0) return false;
    }
    return true;
}

/* How far apart the rows are that are looked at. */
static int64_t step_of(const tt_tensor *t, int64_t rows)
{
    const bool all = tt_tensor_bytes(t) <= ALL || rows <= APART;
    return all ? 1 : (rows - 1) / APART;
}

/* A row that was never written; -1: none was found. Two neighbours among those
 * that are looked at, or the first or the last row; of an embedding, which may
 * be filled up with words that do not exist, two alone. */
static int64_t hole_in(const tt_tensor *t, int64_t row, bool embedding)
{
    const int64_t rows = tt_tensor_count(t) / row, step = step_of(t, rows);
    bool before = false;
    for (int64_t i = 0; i < rows;) {
        const bool zero = is_zero(t, i * row, row);
        const bool edge = (i == 0 || i == rows - 1) && !embedding;
        if (zero && (before || edge)) return i;
        before = zero;
        i = i < rows - 1 && i + step > rows - 1 ? rows - 1 : i + step;
    }
    return -1;
}

static tt_status check_refuse(tt_weights *w, const weight *x, const char *where)
{
    char show[IO_SHOW];
    return tt_fail(w->ctx, TT_EFORMAT, "%s: %s is zero %s, which no training "
                   "leaves: a download that did not end, or damage; fetch the "
                   "file again", w->path,
                   io_show(show, x->stored, strlen(x->stored)), where);
}

static tt_status check_values(tt_weights *w, const weight *x)
{
    char where[96];
    const tt_tensor *t = &x->t;
    if (!tt_tensor_is_real(t) || tt_tensor_count(t) < 2
        || ends(x->name, ".bias")) return TT_OK;
    if (!tt_tensor_packed(t)) return TT_OK; /* to pack it may take memory */
    const int64_t n = tt_tensor_count(t), row = check_row_of(t);
    if (n <= SOME || row == n || row % tt_dtype_block(t->dtype))
        return is_zero(t, 0, n) ? check_refuse(w, x, "throughout") : TT_OK;
    const bool embedding = !strcmp(x->name, "token_embedding.weight");
    const int64_t hole = hole_in(t, row, embedding);
    if (hole < 0) return TT_OK;
    snprintf(where, sizeof where, "in row %lld of %lld and others",
             (long long)hole, (long long)(n / row));
    return check_refuse(w, x, where);
}

/* A disk that is asked for many places at once is not waited for at each. */
static void expect_rows(const tt_weights *w)
{
    for (int64_t i = 0; i < w->count; i++) {
        const tt_tensor *t = &w->item[i].t;
        if (!tt_tensor_packed(t) || tt_tensor_count(t) <= SOME) continue;
        const int64_t row = check_row_of(t), rows = tt_tensor_count(t) / row;
        for (int64_t k = 0; k < rows; k += step_of(t, rows))
            weights_expect(w, t, k * row, row);
    }
}

static tt_status check_zeros(tt_weights *w)
{
    if (w->shapes_alone || w->checked) return TT_OK;
    expect_rows(w);
    for (int64_t i = 0; i < w->count; i++) {
        TT_TRY(check_values(w, &w->item[i]));
        if (tt_weights_large(w)) tt_weights_release(w, &w->item[i].t);
    }
    w->checked = true;
    return TT_OK;
}

/* ---- all of it ----------------------------------------------------------- */

/* A model that has the names we look for, and others. */
static tt_status check_family(tt_ctx *ctx, const tt_weights *w)
{
    char buf[300];
    const char *guess = guess_weights(buf, sizeof buf, w);
    if (!guess) return TT_OK;
    return tt_fail(ctx, TT_EUNSUPPORTED, "%s: this looks like %s", w->path,
                   guess);
}

tt_status tt_weights_check(tt_ctx *ctx, tt_weights *w)
{
    if (ctx->status || !w || !w->file->path) return ctx->status; /* no file */
    TT_TRY(check_family(ctx, w));
    if (w->kind == TT_MODEL_DIT) TT_TRY(check_experts(ctx, w->path));
    TT_TRY(check_downloads(ctx, w->file));
    return check_zeros(w);
}
