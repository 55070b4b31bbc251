/* folder.c: which file of a model folder holds which model.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Knows the original Wan folder, a Diffusers folder and folders of single
 * files; anything else is decided by looking into the files. */
#include "io/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/check.h"
#include "io/file.h"
#include "io/names.h"
#include "io/bytes.h"

static const char *const published[TT_MODEL_KINDS][9] = {
    [TT_MODEL_DIT] = {"diffusion_pytorch_model.safetensors",
                      "diffusion_pytorch_model.safetensors.index.json",
                      "transformer/diffusion_pytorch_model.safetensors",
                      "transformer/"
                      "diffusion_pytorch_model.safetensors.index.json",
                      "dit.safetensors", "transformer.safetensors"},
    [TT_MODEL_VAE] = {"Wan2.1_VAE.pth", "Wan2.1_VAE.safetensors",
                      "wan_2.1_vae.safetensors",
                      "vae/diffusion_pytorch_model.safetensors",
                      "vae/diffusion_pytorch_model.safetensors.index.json",
                      "vae.safetensors", "vae.pth"},
    [TT_MODEL_T5] = {"models_t5_umt5-xxl-enc-bf16.pth",
                     "models_t5_umt5-xxl-enc-bf16.safetensors",
                     "text_encoder/model.safetensors",
                     "text_encoder/model.safetensors.index.json",
                     "text_encoder.safetensors", "text_encoder.pth"},
    [TT_MODEL_TINY_VAE] = {"taew2_1.safetensors", "taew2_1.pth",
                           "vae/taew2_1.safetensors", "vae/taew2_1.pth"},
};

/* Folders searched by content, next to the given one. */
static const char *const folders[TT_MODEL_KINDS][4] = {
    [TT_MODEL_DIT] = {"transformer", "diffusion_models"},
    [TT_MODEL_VAE] = {"vae"},
    [TT_MODEL_T5] = {"text_encoder", "text_encoders"},
    [TT_MODEL_TINY_VAE] = {"vae", "vae_approx"},
};

static const char *const option[TT_MODEL_KINDS] = {
    [TT_MODEL_DIT] = "--dit", [TT_MODEL_VAE] = "--vae",
    [TT_MODEL_T5] = "--text-encoder", [TT_MODEL_TINY_VAE] = "--tiny-vae"};

static bool folder_is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool folder_is(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A name that may be a whole checkpoint, or a shard. */
static bool may_hold_weights(const char *name)
{
    if (name[0] == '.') return false;
    if (ends(name, ".safetensors.index.json") || ends(name, ".bin.index.json"))
        return true;
    return ends(name, ".safetensors") || ends(name, ".pt")
           || ends(name, ".pth") || ends(name, ".bin") || ends(name, ".gguf");
}

static int folder_by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Two shards of one set, whose names are neighbours in the order of text. */
static bool same_set(const char *a, const char *b)
{
    const char *of = strstr(b, "-of-0");
    const size_t n = of ? (size_t)(of - b) : 0;
    return n > 5 && strlen(a) == strlen(b) && !strncmp(a, b, n - 5)
        && !strcmp(a + n, of);
}

tt_status tt_folder_files(tt_ctx *ctx, tt_arena *a, char ***path, int64_t *n,
                          const char *dir)
{
    char *list[256]; /* a model folder holds a handful */
    *n = 0;
    *path = NULL;
    if (ctx->status) return ctx->status;
    DIR *d = opendir(dir);
    if (!d)
        return tt_fail(ctx, TT_EIO, "%s: cannot open the folder: %s", dir,
                       strerror(errno));
    bool index = false, parts = false;
    for (struct dirent *e; (e = readdir(d)) != NULL && *n < 256;) {
        parts |= ends(e->d_name, ".distcp");
        if (!may_hold_weights(e->d_name)) continue;
        char *p = io_join(ctx, a, dir, e->d_name);
        if (p && folder_is_file(p)) list[(*n)++] = p;
        index |= ends(e->d_name, ".index.json");
    }
    closedir(d);
    if (*n > 1) qsort(list, (size_t)*n, sizeof *list, folder_by_text);
    int64_t kept = 0; /* shards are found through their index, or the first */
    for (int64_t i = 0; i < *n; i++)
        if (!(index ? strstr(list[i], "-of-0") != NULL
                    : kept && same_set(list[kept - 1], list[i])))
            list[kept++] = list[i];
    *n = kept;
    if (*n == 0 && parts) return file_refuse_dcp(ctx, dir);
    *path = tt_alloc(ctx, a, *n, sizeof **path, "a folder's files");
    if (!*path) return ctx->status;
    if (*n > 0) memcpy(*path, list, (size_t)*n * sizeof *list);
    return TT_OK;
}

bool weights_fit(const tt_file *f, tt_model_kind kind)
{
    bool fits = false;
    for (int64_t i = 0; i < tt_file_count(f) && !fits; i++) {
        /* The last key is enough: dictionaries around it do not matter. */
        const tt_entry *e = tt_file_entry(f, i);
        const char *key = e->path[e->npath - 1];
        char name[256];
        if (strlen(key) >= sizeof name) continue;
        strcpy(name, key);
        const char *one = name;
        fits = names_strip(name, kind)
               && names_detect(&one, 1, kind).layout != NAMES_UNKNOWN;
    }
    return fits;
}

/* What a search by content found. */
typedef struct finding {
    char **path;             /* the last file that fits                       */
    int hits;                /* those that do                                 */
    char why[400];           /* the first one that cannot be read             */
} finding;

static tt_status search(tt_ctx *ctx, tt_arena *a, finding *found,
                        const char *dir, tt_model_kind kind)
{
    char **path = found->path;
    char **file;
    int64_t n;
    TT_TRY(tt_folder_files(ctx, a, &file, &n, dir));
    for (int64_t i = 0; i < n; i++) {
        tt_file *f;
        bool fits;
        if (tt_file_open(ctx, &f, file[i])) {
            if (ctx->status == TT_ENOMEM) return ctx->status;
            if (!*found->why)
                snprintf(found->why, sizeof found->why, "%s", tt_message(ctx));
            tt_clear(ctx); /* a foreign or damaged file next to the model */
            continue;
        }
        fits = weights_fit(f, kind);
        tt_file_close(f);
        if (!fits) continue;
        if (kind == TT_MODEL_DIT && io_names_expert(file[i])) {
            if (!found->hits) *path = file[i]; /* to name it if it is all */
            continue;
        }
        if (++found->hits > 1)
            return tt_fail(ctx, TT_EINVAL, "%s: both %s and %s hold a %s; "
                           "choose one with %s FILE (convert: name it "
                           "in place of the folder)", dir, *path, file[i],
                           names_kind_text(kind), option[kind]);
        *path = file[i];
    }
    return TT_OK;
}

const char *tt_folder_snapshot(char buf[4096], const char *dir)
{
    char name[65] = "";
    snprintf(buf, 4096, "%.3900s/refs/main", dir);
    FILE *f = fopen(buf, "r");
    const bool read = f && fscanf(f, "%64[0-9A-Za-z_-]", name) == 1;
    if (f) fclose(f);
    snprintf(buf, 4096, "%.3900s/snapshots/%s", dir, name);
    return read && folder_is(buf) ? buf : dir;
}

/* The hub's files are links into its `blobs`. */
static bool leads_nowhere(const char *path)
{
    struct stat st;
    return !lstat(path, &st) && S_ISLNK(st.st_mode) && stat(path, &st);
}

tt_status folder_find(tt_ctx *ctx, tt_arena *a, char **path, const char *dir,
                      tt_model_kind kind)
{
    char looked[512] = "", snapshot[4096];
    finding found = {.path = path};
    *path = NULL;
    dir = tt_folder_snapshot(snapshot, dir);
    if (kind == TT_MODEL_DIT && io_has_experts(ctx, dir))
        return io_refuse_experts(ctx, dir);
    for (int i = 0; published[kind][i]; i++) {
        char *p = io_join(ctx, a, dir, published[kind][i]);
        if (!p) return ctx->status;
        if (folder_is_file(p)) {
            *path = p;
            return TT_OK;
        }
        if (leads_nowhere(p))
            return tt_fail(ctx, TT_EIO, "%s: a link to a file that is not "
                           "there: a download that did not end; fetch it again",
                           p);
        size_t at = strlen(looked);
        snprintf(looked + at, sizeof looked - at, "%s%s", at ? ", " : "",
                 published[kind][i]);
    }
    TT_TRY(search(ctx, a, &found, dir, kind));
    for (int i = 0; found.hits == 0 && folders[kind][i]; i++) {
        char *p = io_join(ctx, a, dir, folders[kind][i]);
        if (!p) return ctx->status;
        if (!folder_is(p)) continue;
        TT_TRY(search(ctx, a, &found, p, kind));
    }
    if (found.hits == 1) return TT_OK;
    if (*path) return io_refuse_experts(ctx, *path);
    return tt_fail(ctx, *found.why ? TT_EFORMAT : TT_EIO,
                   "%s: no %s in this folder; looked for %s, and for a "
                   ".safetensors, .pt or .pth file that holds one; give it "
                   "with %s FILE (convert: name it)%s%s", dir,
                   names_kind_text(kind), looked, option[kind],
                   *found.why ? "; " : "", found.why);
}
