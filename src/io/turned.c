/* turned.c: weights laid out beforehand as kernels read them, in a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   FOLDER/NAME-PLACE.turned-LANES, in safetensors: of every matrix its
 *         values as tt_tensor.turned has them, under its name, as [groups,
 *         columns, lanes]; of a convolution those of the matrix that it is for
 *         tt_conv, and that matrix itself ("NAME.packed"). PLACE is a digest of
 *         where the model lies, of the part and of which dictionary it is, so a
 *         part has one such file, and __metadata__ says by a key which values
 *         it was made from: with another key it is made anew. No ending that a
 *         search for models looks for: it may be made beside one.
 * Holds   the data begins at a multiple of 64 of a mapping, and every tensor is
 *         a multiple of 64 bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/folder.h"
#include "core/parallel.h"
#include "io/file.h"
#include "io/weights.h"

enum { LINE = 64 };

static int64_t groups_of(const tt_tensor *t, int64_t lanes)
{
    return (t->dim[0] + lanes - 1) / lanes;
}

/* Values of a row, and of them those that a convolution has of a channel. */
static int64_t row_of(const tt_tensor *t)
{
    return tt_tensor_count(t) / t->dim[0];
}

static int64_t taps_of(const tt_tensor *t)
{
    return row_of(t) / t->dim[1];
}

/* A matrix, or a convolution whose channels must be moved as well. */
static bool turns(const weight *x, const weights_turning *how)
{
    const tt_tensor *t = &x->t;
    if (strncmp(x->name, how->prefix, strlen(how->prefix))
        || !tt_dtype_is_real(t->dtype) || !tt_tensor_packed(t) || t->rank < 2
        || t->dim[0] < how->lanes || tt_tensor_count(t) <= 0
        || !tt_host_little_endian()) /* as the file is */
        return false;
    return t->rank == 2 || (sizeof(tt_real) == sizeof(float)
                            && tt_tensor_in_place(t) && taps_of(t) > 1);
}

/* The two forms of values: a convolution has both, for not every backend reads
 * turned ones, and to move channels touches as much memory. */
typedef enum form {
    TURNED, /* [groups, columns, lanes]                                       */
    PACKED, /* [rows, columns]: of a convolution, channels moved to the end   */
    FORMS
} form;

static bool has(const weight *x, const weights_turning *how, form as)
{
    return turns(x, how) && (as == TURNED || x->t.rank > 2);
}

static int shape_of(int64_t dim[3], const tt_tensor *t, int64_t lanes, form as)
{
    dim[0] = as == PACKED ? t->dim[0] : groups_of(t, lanes);
    dim[1] = row_of(t);
    dim[2] = lanes;
    return as == PACKED ? 2 : 3;
}

static int64_t count_of(const tt_tensor *t, int64_t lanes, form as)
{
    int64_t dim[3], n = 1;
    const int rank = shape_of(dim, t, lanes, as);
    for (int i = 0; i < rank; i++) n *= dim[i];
    return n;
}

static const char *name_of(char buf[256], const weight *x, form as)
{
    snprintf(buf, 256, "%s%s", x->name, as == PACKED ? ".packed" : "");
    return buf;
}

/* ---- which file ---------------------------------------------------------- */

void weights_stamp(tt_sha256 *s, const tt_weights *w)
{
    file_stamp(s, w->file);
}

/* Last part of a path, without what is behind its last dot. */
static const char *stem(const char *path, int *n)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    *n = dot && dot > name ? (int)(dot - name) : (int)strlen(name);
    if (*n > 60) *n = 60;
    return name;
}

static const char *path_of(const tt_weights *w, const weights_turning *how)
{
    char hex[65];
    int n;
    tt_sha256 s;
    char *real = realpath(w->path, NULL);
    const char *place = real ? real : w->path, *name = stem(w->path, &n);
    tt_sha256_init(&s);
    tt_sha256_add(&s, place, strlen(place) + 1);
    tt_sha256_add(&s, how->prefix, strlen(how->prefix) + 1);
    tt_sha256_add(&s, w->origin, strlen(w->origin));
    tt_sha256_hex(&s, hex);
    free(real);
    const size_t size = strlen(how->folder) + (size_t)n + 64;
    char *path = tt_alloc(w->ctx, &w->ctx->scratch, (int64_t)size, 1, "a path");
    if (path)
        snprintf(path, size, "%s/%.*s-%.12s.turned-%d", how->folder, n, name,
                 hex, (int)how->lanes);
    return path;
}

/* ---- reading it ---------------------------------------------------------- */

/* The values of x, where `f` has them as they should be. */
static const float *find(const tt_file *f, const weight *x, int64_t lanes,
                         form as)
{
    int64_t dim[3];
    char name[256];
    const int rank = shape_of(dim, &x->t, lanes, as);
    const tt_entry *e = tt_file_find(f, name_of(name, x, as));
    if (!e || e->t.rank != rank || e->t.dtype != TT_F32
        || !tt_tensor_packed(&e->t)
        || (uintptr_t)e->t.data % (as == TURNED ? LINE : sizeof(float)))
        return NULL;
    for (int i = 0; i < rank; i++)
        if (e->t.dim[i] != dim[i]) return NULL;
    return e->t.data;
}

static bool whole(const tt_file *f, const tt_weights *w,
                  const weights_turning *how)
{
    const char *key = tt_file_meta(f, "key");
    if (!key || strcmp(key, how->key)) return false;
    for (int64_t i = 0; i < FORMS * w->count; i++) {
        const weight *x = &w->item[i / FORMS];
        const form as = (form)(i % FORMS);
        if (has(x, how, as) && !find(f, x, how->lanes, as)) return false;
    }
    return true;
}

/* False: there is none, or it is of other values, or broken. */
static bool take_file(tt_weights *w, const char *path,
                      const weights_turning *how)
{
    tt_file *f = NULL;
    if (w->ctx->status || access(path, F_OK)) return false;
    if (tt_file_open(w->ctx, &f, path) || !whole(f, w, how)) {
        tt_file_close(f);
        tt_clear(w->ctx);
        return false;
    }
    w->turned = f;
    for (int64_t i = 0; i < w->count; i++) {
        weight *x = &w->item[i];
        if (!has(x, how, TURNED)) continue;
        x->t.turned = find(f, x, how->lanes, TURNED);
        x->t.lanes = how->lanes;
    }
    return true;
}

const char *weights_turned_path(const tt_weights *w)
{
    return w->turned ? w->turned->path : NULL;
}

const float *weights_packed(const tt_weights *w, const char *name)
{
    const weight *x = w->turned ? weights_item(w, name) : NULL;
    return x && x->t.turned ? find(w->turned, x, x->t.lanes, PACKED) : NULL;
}

void weights_release_turned(const tt_weights *w, const tt_tensor *t)
{
    int64_t dim[3];
    if (!t->turned) return;
    const int rank = shape_of(dim, t, t->lanes, TURNED);
    const tt_tensor turned = tt_tensor_make(t->turned, TT_F32, rank, dim);
    file_release(w->turned, &turned);
}

/* ---- making it ----------------------------------------------------------- */

/* A file in the making. */
typedef struct job {
    tt_weights *w;
    const weights_turning *how;
    const char *path;
    tt_st_writer *to;
    int64_t header, total, done; /* bytes                                     */
} job;

static void add_up(job *j)
{
    j->header = 256;
    for (int64_t i = 0; i < FORMS * j->w->count; i++) {
        const weight *x = &j->w->item[i / FORMS];
        const form as = (form)(i % FORMS);
        if (!has(x, j->how, as)) continue;
        j->total += count_of(&x->t, j->how->lanes, as) * (int64_t)sizeof(float);
        j->header += (int64_t)strlen(x->name) + 128;
    }
    j->header = (j->header + LINE - 1) / LINE * LINE - 8; /* its length is 8 */
}

/* Row o [K], in the order of a product. */
static void take_row(float *row, const tt_tensor *t, int64_t o, float *stored)
{
    const int64_t K = row_of(t), taps = taps_of(t), cin = t->dim[1];
    tt_widen_at_f32(taps > 1 ? stored : row, t, o * K, K);
    for (int64_t k = 0; taps > 1 && k < K; k++)
        row[k] = stored[k % cin * taps + k / cin];
}

/* Rows from o0 on, as many as fit [groups of lanes], in that form. `own` has
 * room for lanes + 1 rows. */
static void make_group(float *to, const tt_tensor *t, int64_t o0, int64_t lanes,
                       form as, float *own)
{
    const int64_t K = row_of(t), left = t->dim[0] - o0;
    const int64_t n = left < lanes ? left : lanes;
    float *rows = as == PACKED ? to : own + K;
    for (int64_t j = 0; j < n; j++) take_row(rows + j * K, t, o0 + j, own);
    if (as == PACKED) return;
    memset(rows + n * K, 0, (size_t)((lanes - n) * K) * sizeof *rows);
    for (int64_t k = 0; k < K; k++)
        for (int64_t j = 0; j < lanes; j++)
            to[k * lanes + j] = rows[j * K + k];
}

static void make(tt_ctx *ctx, float *to, const tt_tensor *t, int64_t lanes,
                 form as, float *own)
{
    const int64_t K = row_of(t);
    TT_PARALLEL_FOR_DYNAMIC(ctx, t->dim[0] * K)
    for (int64_t g = 0; g < groups_of(t, lanes); g++)
        make_group(to + g * lanes * K, t, g * lanes, lanes, as,
                   own + tt_thread_id() * (lanes + 1) * K);
}

static tt_status write_weight(job *j, const weight *x, form as)
{
    char name[256];
    int64_t dim[3];
    tt_ctx *ctx = j->w->ctx;
    const int64_t lanes = j->how->lanes, n = count_of(&x->t, lanes, as);
    const int rank = shape_of(dim, &x->t, lanes, as);
    float *to = tt_alloc(ctx, &ctx->scratch, n, sizeof *to, "turned weights");
    float *own = tt_alloc(ctx, &ctx->scratch,
                          ctx->nthreads * (lanes + 1) * dim[1], sizeof *own,
                          "weights to turn");
    TT_TRY(ctx->status);
    make(ctx, to, &x->t, lanes, as, own);
    TT_TRY(tt_st_open_tensor(j->to, name_of(name, x, as), TT_F32, rank, dim));
    TT_TRY(tt_st_write(j->to, to, (size_t)n * sizeof *to));
    j->done += n * (int64_t)sizeof *to;
    if (tt_weights_large(j->w)) tt_weights_release(j->w, &x->t);
    return tt_check_interrupt(ctx);
}

/* Turned ones first: each is whole lines long, so all begin at one. */
static tt_status write_all(job *j)
{
    tt_ctx *ctx = j->w->ctx;
    TT_TRY(tt_st_create(ctx, &j->to, j->path));
    tt_st_meta(j->to, "key", j->how->key);
    tt_st_reserve(j->to, j->header);
    for (int64_t i = 0; i < FORMS * j->w->count && !ctx->status; i++) {
        const weight *x = &j->w->item[i % j->w->count];
        const form as = (form)(i / j->w->count);
        const tt_arena_mark m = tt_arena_here(&ctx->scratch);
        if (!has(x, j->how, as)) continue;
        if (j->how->progress)
            j->how->progress(j->how->user, j->path, j->done, j->total);
        write_weight(j, x, as);
        tt_arena_reset(&ctx->scratch, m);
    }
    return tt_st_finish(j->to);
}

/* No output of the user's: it replaces what has its name, also what another
 * process has made of the same model meanwhile. */
static tt_status write_file(job *j)
{
    tt_ctx *ctx = j->w->ctx;
    const bool overwrite = ctx->overwrite;
    bool (*const place)(void *, const char *, const char *) = ctx->place;
    if (j->how->check) TT_TRY(j->how->check(j->how->user));
    TT_TRY(folder_check(ctx, j->how->folder, j->total, j->how->option));
    ctx->overwrite = true;
    ctx->place = NULL;
    write_all(j);
    ctx->overwrite = overwrite;
    ctx->place = place;
    return ctx->status;
}

tt_status weights_turn(tt_weights *w, const weights_turning *how)
{
    tt_ctx *ctx = w->ctx;
    job j = {.w = w, .how = how};
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    TT_ASSERT(how->lanes * (int64_t)sizeof(float) % LINE == 0);
    if (ctx->status) return ctx->status;
    add_up(&j);
    j.path = j.total ? path_of(w, how) : NULL;
    if (j.path && !take_file(w, j.path, how) && !write_file(&j)
        && !take_file(w, j.path, how)) {
        unlink(j.path);
        tt_fail(ctx, TT_EIO, "%s: was not written as it should be (a failing "
                "disk, or a model that is being changed?); it is removed",
                j.path);
    }
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}
