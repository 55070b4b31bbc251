/* model.c: where the parts of the model come from.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/parts.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/nearest.h"
#include "dit/load.h"
#include "io/folder.h"
#include "io/json.h"
#include "text/spm.h"
#include "core/context.h"

static bool model_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The first of `names` that exists in folder p->model, into buf. */
static bool find_in_model(char *buf, size_t n, const tt_model_paths *p,
                          const char *const *names)
{
    char snapshot[4096];
    const char *dir = p->model ? tt_folder_snapshot(snapshot, p->model) : NULL;
    for (; dir && *names; names++) {
        int len = snprintf(buf, n, "%s/%s", dir, *names);
        if (len > 0 && (size_t)len < n && model_exists(buf)) return true;
    }
    return false;
}

static void tell_source(tt_model_source *s, const tt_weights *w)
{
    if (!s) return;
    snprintf(s->path, sizeof s->path, "%s", tt_weights_path(w));
    snprintf(s->origin, sizeof s->origin, "%s", tt_weights_origin(w));
}

static const char *const configs[] = {"config.json", "transformer/config.json",
                                      NULL};

/* The config of the transformer: next to the weights that are named, else in
 * the model's folder. *root is NULL where there is none. */
static tt_status read_config(tt_ctx *ctx, tt_arena *a, const tt_json **root,
                             char path[4096], const tt_model_paths *p)
{
    const char *weights = p->checkpoint ? p->checkpoint : p->dit;
    *root = NULL;
    if (ctx->status) return ctx->status;
    if (weights)
        TT_TRY(dit_config_adjacent(ctx, a, root, path, 4096, weights));
    if (weights && !*root) {
        char folder[4096];
        snprintf(folder, sizeof folder, "%s/transformer/.", weights);
        TT_TRY(dit_config_adjacent(ctx, a, root, path, 4096, folder));
    }
    if (*root || !find_in_model(path, 4096, p, configs)) return TT_OK;
    return tt_json_file(ctx, a, root, path, 1 << 20);
}

int64_t tt_model_text_len(tt_ctx *ctx, const tt_model_paths *p)
{
    enum { WAN = 512 };
    char path[4096];
    int64_t n = WAN;
    tt_arena a = {0};
    const tt_json *j = NULL;
    if (!read_config(ctx, &a, &j, path, p) && j) {
        n = tt_json_int(j, "text_len", WAN);
        if (n < 1 || n > TT_TEXT_LEN_MAX)
            tt_fail(ctx, TT_EFORMAT, "%s: text_len is %lld, expected 1 to %d",
                    path, (long long)n, TT_TEXT_LEN_MAX);
    }
    tt_arena_free(&a);
    return n;
}

tt_status tt_model_size(tt_ctx *ctx, int64_t *width, int64_t *height,
                        const tt_model_paths *p)
{
    char path[4096];
    tt_arena a = {0};
    const tt_json *j = NULL;
    *width = 832;
    *height = 480;
    if (!read_config(ctx, &a, &j, path, p) && j) {
        const tt_json *own = tt_json_get(j, "tether");
        *width = tt_json_int(own, "width", *width);
        *height = tt_json_int(own, "height", *height);
        if (*width < 16 || *height < 16 || *width > 16384 || *height > 16384
            || *width % 16 || *height % 16)
            tt_fail(ctx, TT_EFORMAT, "%s: tether.width and tether.height are "
                    "%lldx%lld, expected multiples of 16 from 16 to 16384",
                    path, (long long)*width, (long long)*height);
    }
    tt_arena_free(&a);
    return ctx->status;
}

/* ---- the transformer ----------------------------------------------------- */

/* Does the file hold a transformer? What else is wrong with it is said when it
 * is opened. */
static bool holds_dit(const char *path)
{
    tt_ctx ctx = {.warn = tt_ignore_warning};
    tt_weights *w = NULL;
    const bool there = !tt_weights_open(&ctx, &w, path, TT_MODEL_DIT, NULL);
    tt_weights_close(w);
    tt_ctx_free(&ctx);
    return there;
}

/* The only transformer of the folder `checkpoints`, where Self-Forcing's
 * repository has its files; "" where there is none.
 * Errors  TT_EINVAL  there are several */
static tt_status find_checkpoint(tt_ctx *ctx, char *buf, size_t n,
                                 const tt_model_paths *p)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    char folder[4200], snapshot[4096], **file;
    int64_t count = 0;
    *buf = 0;
    snprintf(folder, sizeof folder, "%s/checkpoints",
             tt_folder_snapshot(snapshot, p->model));
    if (!model_exists(folder)
        || tt_folder_files(ctx, &ctx->scratch, &file, &count, folder))
        return ctx->status;
    for (int64_t i = 0; i < count && !ctx->status; i++) {
        if (!holds_dit(file[i])) continue;
        if (*buf)
            tt_fail(ctx, TT_EINVAL, "both %s and %s hold a diffusion "
                    "transformer; choose one with --checkpoint FILE", buf,
                    file[i]);
        else
            snprintf(buf, n, "%s", file[i]);
    }
    tt_arena_reset(&ctx->scratch, mark);
    return ctx->status;
}

tt_status tt_model_transformer(tt_ctx *ctx, char *buf, size_t n,
                               const tt_model_paths *p)
{
#define EITHER(name)                                                           \
    "checkpoints/" name ".pt", name ".pt",                                     \
    "checkpoints/" name ".safetensors", name ".safetensors"
    static const char *const causal[] = {
        EITHER("self_forcing_dmd"), EITHER("self_forcing_sid_v2"),
        EITHER("self_forcing_sid"), EITHER("self_forcing_10s"), NULL};
    const char *path = p->checkpoint ? p->checkpoint : p->dit;
    if (ctx->status) return ctx->status;
    if (!path && !p->model)
        return tt_fail(ctx, TT_EINVAL, "no transformer given: use -m DIR, "
                       "--dit FILE or --checkpoint FILE. `tether inspect DIR` "
                       "says what to download; --plan and `bench --estimate` "
                       "take -m wan1.3b without any file");
    if (!path && find_in_model(buf, n, p, causal)) return TT_OK;
    if (!path) TT_TRY(find_checkpoint(ctx, buf, n, p));
    if (!path && *buf) return TT_OK;
    if (!path) path = p->model;
    if ((size_t)snprintf(buf, n, "%s", path) < n) return TT_OK;
    return tt_fail(ctx, TT_EINVAL, "%.200s...: the name is too long", path);
}

/* Files of Wan's own repositories, and of ComfyUI's. */
static bool is_wan_name(const char *path)
{
    static const char *const names[] = {"diffusion_pytorch_model",
                                        "wan2.1_t2v", "wan2.1-t2v"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncasecmp(name, names[i], strlen(names[i]))) return true;
    return false;
}

bool tt_model_is_wan(const tt_weights *w)
{
    const tt_tensor *t = tt_weights_find(w, "patch_embedding.bias");
    return t && t->rank == 1 && (t->dim[0] == 1536 || t->dim[0] == 5120)
        && is_wan_name(tt_weights_path(w));
}

/* Which transformer was taken, where that was left to us. */
static void say_choice(tt_ctx *ctx, const tt_model_paths *p,
                       const tt_weights *w, const char *path,
                       const tt_run_events *events)
{
    const bool wan = !p->checkpoint && !p->lora && tt_model_is_wan(w);
    if (wan)
        tt_warn(ctx, "%s looks like Wan's own weights, which are not trained "
                "for causal chunks in 4 steps: the video will be poor. Give "
                "--checkpoint self_forcing_dmd.pt, or fetch it into the folder "
                "of -m: hf download gdhe17/Self-Forcing "
                "checkpoints/self_forcing_dmd.pt --local-dir %s",
                tt_weights_path(w), p->model ? p->model : "DIR");
    if (!p->checkpoint && !p->dit && strcmp(path, p->model))
        run_say(events, false, "transformer: %s, the causal weights in %s; "
                "--dit FILE takes others", path, p->model);
}

tt_status model_open_dit(tt_ctx *ctx, tt_dit **out, const tt_model_paths *p,
                         tt_model_source *source, const tt_run_events *events)
{
    char path[4096];
    *out = NULL;
    TT_TRY(tt_model_transformer(ctx, path, sizeof path, p));
    /* A checkpoint of weights alone takes its config from the folder it
     * belongs to. */
    char config[4096];
    const bool there = find_in_model(config, sizeof config, p, configs);
    const tt_weights_options opt = {.ema = p->ema, .lora = p->lora,
                                    .shapes_alone = p->shapes_alone};
    tt_weights *w;
    TT_TRY(model_weights(ctx, &w, p, path, TT_MODEL_DIT, &opt));
    tell_source(source, w);
    say_choice(ctx, p, w, path, events);
    return tt_dit_load(ctx, out, w, there ? config : NULL, p->heads);
}

tt_status tt_model_open_dit(tt_ctx *ctx, tt_dit **out, const tt_model_paths *p,
                            tt_model_source *source)
{
    return model_open_dit(ctx, out, p, source, NULL);
}

tt_status tt_model_vae_class(tt_ctx *ctx, tt_class *cls,
                             const tt_model_paths *p)
{
    char hint[NEAREST_HINT];
    *cls = TT_CLASS_F32;
    if (!p->vae_class || ctx->status || tt_class_find(cls, p->vae_class))
        return ctx->status;
    return tt_fail(ctx, TT_EINVAL, "--vae-class %s is not known%s; the "
                   "classes are %s", p->vae_class,
                   nearest_class(hint, p->vae_class), tt_class_names());
}

/* An open VAE gets its class, and its folder. */
static tt_status model_settle(tt_ctx *ctx, tt_vae **v, const tt_model_paths *p)
{
    tt_class cls;
    if (!*v) return ctx->status;
    if (!tt_model_vae_class(ctx, &cls, p)) tt_vae_use_class(ctx, *v, cls);
    tt_vae_use_folder(ctx, *v, p->history_dir);
    if (ctx->status) {
        tt_vae_close(*v);
        *v = NULL;
    }
    return ctx->status;
}

tt_status tt_model_open_vae_part(tt_ctx *ctx, tt_vae **out,
                                 const tt_model_paths *p, unsigned parts,
                                 tt_model_source *source)
{
    const char *path = p->vae ? p->vae : p->model;
    *out = NULL;
    if (!path)
        return tt_fail(ctx, TT_EINVAL, "no VAE given: use -m DIR or --vae "
                       "FILE");
    tt_weights *w;
    const tt_weights_options opt = {.ema = -1, .shapes_alone = p->shapes_alone};
    TT_TRY(model_weights(ctx, &w, p, path, TT_MODEL_VAE, &opt));
    tell_source(source, w);
    tt_vae_load_parts(ctx, out, w, parts);
    return model_settle(ctx, out, p);
}

tt_status tt_model_open_vae(tt_ctx *ctx, tt_vae **out, const tt_model_paths *p,
                            tt_model_source *source)
{
    tt_weights *w;
    if (!p->tiny_vae)
        return tt_model_open_vae_part(ctx, out, p, TT_VAE_DECODER, source);
    *out = NULL;
    const tt_weights_options opt = {.ema = -1, .shapes_alone = p->shapes_alone};
    TT_TRY(tt_weights_open(ctx, &w, p->tiny_vae, TT_MODEL_TINY_VAE, &opt));
    tell_source(source, w);
    tt_vae_load_tiny(ctx, out, w);
    return model_settle(ctx, out, p);
}

/* ComfyUI's and llama.cpp's files of the text encoder carry the tokenizer. */
static bool inside_encoder(tt_ctx *ctx, char *buf, size_t n,
                           const tt_model_paths *p)
{
    const char *path = p->text_encoder ? p->text_encoder : p->model;
    struct stat st;
    char *found = NULL;
    bool there = false;
    if (!path || ctx->status) return false;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
        if (!folder_find(ctx, &ctx->scratch, &found, path, TT_MODEL_T5))
            path = found;
    }
    if (!ctx->status && spm_inside(ctx, path))
        there = (size_t)snprintf(buf, n, "%s", path) < n;
    tt_clear(ctx);
    tt_arena_reset(&ctx->scratch, m);
    return there;
}

tt_status tt_model_tokenizer(tt_ctx *ctx, char *buf, size_t n,
                             const tt_model_paths *p)
{
    static const char *const places[] = {
        "google/umt5-xxl/spiece.model", "tokenizer/spiece.model",
        "spiece.model", "tokenizer.model", NULL};
    if (p->tokenizer) {
        if ((size_t)snprintf(buf, n, "%s", p->tokenizer) < n) return TT_OK;
    } else if (find_in_model(buf, n, p, places)
               || inside_encoder(ctx, buf, n, p)) {
        return TT_OK;
    }
    return tt_fail(ctx, p->model || p->tokenizer ? TT_EIO : TT_EINVAL,
                   "no tokenizer found%s%s: expected google/umt5-xxl/"
                   "spiece.model, tokenizer/spiece.model or spiece.model in "
                   "the model folder, or one inside the text encoder; "
                   "--tokenizer FILE names another place",
                   p->model ? " in " : "", p->model ? p->model : "");
}

tt_status tt_model_text_encoder(tt_ctx *ctx, const char **out,
                                const tt_model_paths *p)
{
    *out = p->text_encoder ? p->text_encoder : p->model;
    if (!*out)
        return tt_fail(ctx, TT_EINVAL, "no text encoder given: use -m DIR or "
                       "--text-encoder FILE, or encode elsewhere and give "
                       "--embeds FILE");
    return TT_OK;
}
