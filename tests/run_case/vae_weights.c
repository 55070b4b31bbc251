/* vae_weights.c: weights of the VAE's reference cases, as models bind them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  ref_data/README_vae.md: "<run>.<key>" of weights.safetensors, or
 *         "Procedural weights" under the names and shapes of keys.tsv. */
#include "tests/run_case/vae_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "io/weights.h"

/* ---- a set of weights that no reader made -------------------------------- */

enum { CAPACITY = 256 };

/* An empty one. `file` becomes its own; NULL: its tensors are in its arena. */
static tt_weights *weights_new(tt_ctx *ctx, tt_file *file, const char *path)
{
    tt_weights *w = calloc(1, sizeof *w);
    if (w) w->file = file ? file : calloc(1, sizeof *file);
    if (!w || !w->file) {
        tt_fail(ctx, TT_ENOMEM, "%s: no memory to open it", path);
        tt_file_close(file);
        free(w);
        return NULL;
    }
    w->ctx = ctx;
    w->path = tt_strdup(ctx, &w->arena, path);
    w->origin = tt_strdup(ctx, &w->arena, "a reference case");
    w->item = tt_alloc0(ctx, &w->arena, CAPACITY, sizeof *w->item, "weights");
    w->sorted = tt_alloc0(ctx, &w->arena, CAPACITY, sizeof *w->sorted,
                          "weights");
    return w;
}

static void weights_add(tt_weights *w, const char *name, const tt_tensor *t)
{
    char *own = tt_strdup(w->ctx, &w->arena, name);
    if (w->count == CAPACITY)
        tt_fail(w->ctx, TT_ESHAPE, "%s: more than %d tensors", w->path,
                CAPACITY);
    if (w->ctx->status) return;
    w->sorted[w->count] = &w->item[w->count];
    w->item[w->count++] = (weight){.name = own, .stored = own, .t = *t};
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(weight *const *)a)->name, (*(weight *const *)b)->name);
}

/* The finished set, or NULL. */
static tt_weights *weights_done(tt_weights *w)
{
    if (w->ctx->status) {
        tt_weights_close(w);
        return NULL;
    }
    qsort(w->sorted, (size_t)w->count, sizeof *w->sorted, by_name);
    return w;
}

tt_weights *vae_part_weights(tt_ctx *ctx, const char *path)
{
    tt_file *f = NULL;
    if (tt_file_open(ctx, &f, path)) return NULL;
    tt_weights *w = weights_new(ctx, f, path);
    for (int64_t i = 0; w && i < tt_file_count(f); i++)
        weights_add(w, tt_file_entry(f, i)->name, &tt_file_entry(f, i)->t);
    return w ? weights_done(w) : NULL;
}

/* ---- weights made from their names --------------------------------------- */

static uint64_t key_hash(const char *key)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *key; key++) h = (h ^ (unsigned char)*key) * 0x100000001b3u;
    return h;
}

static float unit(uint64_t start, uint64_t i)
{
    const uint64_t golden = 0x9E3779B97F4A7C15u;
    uint64_t x = start + (i + 1) * golden;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x = x ^ (x >> 31);
    return (float)(x >> 40) * 0x1p-23f - 1.0f;
}

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

tt_tensor vae_made_tensor(tt_ctx *ctx, tt_arena *arena, uint64_t seed,
                          const char *name, int rank, const int64_t *dim)
{
    int64_t n = 1, fan_in = 1;
    for (int i = 0; i < rank; i++) n *= dim[i];
    for (int i = 1; i < rank; i++) fan_in *= dim[i];
    const uint64_t start = key_hash(name) + seed * 0x9E3779B97F4A7C15u;
    const bool gamma = ends_with(name, ".gamma");
    const bool bias = ends_with(name, ".bias");
    const float scale = gamma  ? 0.25f
                        : bias ? 0.1f
                               : (float)sqrt(3.0 / (double)fan_in);
    float *x = tt_alloc(ctx, arena, n, sizeof *x, "procedural weights");
    if (!x) return (tt_tensor){0};
    for (int64_t i = 0; i < n; i++) {
        const float v = scale * unit(start, (uint64_t)i);
        x[i] = gamma ? 1.0f + v : v;
    }
    return tt_tensor_make(x, TT_F32, rank, dim);
}

/* "name<tab>[d,d,...]..." of keys.tsv; false for its headline. */
static bool key_line(char *line, int *rank, int64_t dim[TT_MAX_RANK])
{
    char *at = strstr(line, "\t[");
    *rank = 0;
    if (!at) return false;
    *at++ = 0;
    do dim[(*rank)++] = strtoll(at + 1, &at, 10);
    while (*at == ',' && *rank < TT_MAX_RANK);
    return *at == ']';
}

tt_weights *vae_made_weights(tt_ctx *ctx, const char *dir, uint64_t seed,
                             const char *const *without)
{
    char path[600], line[300];
    int64_t dim[TT_MAX_RANK];
    int rank;
    snprintf(path, sizeof path, "%s/keys.tsv", dir);
    FILE *f = fopen(path, "rb");
    if (!f) tt_fail(ctx, TT_EIO, "%s: cannot be read", path);
    tt_weights *w = f ? weights_new(ctx, NULL, path) : NULL;
    while (w && !ctx->status && fgets(line, sizeof line, f)) {
        const char *const *p = without;
        if (!key_line(line, &rank, dim)) continue;
        while (*p && strncmp(line, *p, strlen(*p))) p++;
        if (*p) continue;
        const tt_tensor t = vae_made_tensor(ctx, &w->arena, seed, line, rank,
                                            dim);
        weights_add(w, line, &t);
    }
    if (f) fclose(f);
    return w ? weights_done(w) : NULL;
}
