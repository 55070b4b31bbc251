/* model.c: where the parts of the model come from.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/parts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/nearest.h"
#include "io/json.h"

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The first of `names` that exists in folder p->model, into buf. */
static bool find_in_model(char *buf, size_t n, const tt_model_paths *p,
                          const char *const *names)
{
    for (; p->model && *names; names++) {
        int len = snprintf(buf, n, "%s/%s", p->model, *names);
        if (len > 0 && (size_t)len < n && exists(buf)) return true;
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

int64_t tt_model_text_len(tt_ctx *ctx, const tt_model_paths *p)
{
    enum { WAN = 512 };
    char path[4096];
    int64_t n = WAN;
    tt_arena a = {0};
    const tt_json *j = NULL;
    if (!find_in_model(path, sizeof path, p, configs)) return WAN;
    if (!tt_json_file(ctx, &a, &j, path, 1 << 20)) {
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
    if (!find_in_model(path, sizeof path, p, configs)) return ctx->status;
    if (!tt_json_file(ctx, &a, &j, path, 1 << 20)) {
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

static tt_status check_dit(tt_ctx *ctx, const tt_model_paths *p)
{
    tt_dit *m;
    TT_TRY(tt_model_open_dit(ctx, &m, p, NULL));
    tt_dit_close(m);
    return TT_OK;
}

tt_status model_open_dit(tt_ctx *ctx, tt_dit **out, const tt_model_paths *p,
                         tt_model_source *source, const tt_run_events *events)
{
    const char *path = p->checkpoint ? p->checkpoint : p->dit ? p->dit
                                                              : p->model;
    *out = NULL;
    if (!path)
        return tt_fail(ctx, TT_EINVAL, "no transformer given: use -m DIR, "
                       "--dit FILE or --checkpoint FILE");
    /* A checkpoint of weights alone takes its config from the folder it
     * belongs to. */
    char config[4096];
    bool separate = path != p->model
                 && find_in_model(config, sizeof config, p, configs);
    tt_weights_options opt = {.ema = p->ema};
    tt_weights *w;
    TT_TRY(tt_weights_open(ctx, &w, path, TT_MODEL_DIT, &opt));
    tell_source(source, w);
    const model_part part = {"blocks.", ctx->ops->cls, true, events,
                             check_dit};
    if (model_turn(ctx, w, p, &part)) {
        tt_weights_close(w);
        return ctx->status;
    }
    return tt_dit_load(ctx, out, w, separate ? config : NULL, p->heads);
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
static tt_status settle(tt_ctx *ctx, tt_vae **v, const tt_model_paths *p)
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

static tt_status check_vae(tt_ctx *ctx, const tt_model_paths *p)
{
    tt_vae *v;
    TT_TRY(tt_model_open_vae_part(ctx, &v, p, TT_VAE_DECODER, NULL));
    tt_vae_close(v);
    return TT_OK;
}

/* The encoder is not turned: it works at the beginning alone. */
static tt_status open_vae_part(tt_ctx *ctx, tt_vae **out,
                               const tt_model_paths *p, unsigned parts,
                               tt_model_source *source,
                               const tt_run_events *events)
{
    const char *path = p->vae ? p->vae : p->model;
    *out = NULL;
    if (!path)
        return tt_fail(ctx, TT_EINVAL, "no VAE given: use -m DIR or --vae "
                       "FILE");
    tt_weights *w;
    model_part part = {.prefix = "decoder.", .events = events,
                       .check = check_vae};
    TT_TRY(tt_weights_open(ctx, &w, path, TT_MODEL_VAE, NULL));
    tell_source(source, w);
    tt_model_vae_class(ctx, &part.cls, p);
    if (parts & TT_VAE_DECODER && model_turn(ctx, w, p, &part)) {
        tt_weights_close(w);
        return ctx->status;
    }
    tt_vae_load_parts(ctx, out, w, parts);
    return settle(ctx, out, p);
}

tt_status model_open_vae(tt_ctx *ctx, tt_vae **out, const tt_model_paths *p,
                         tt_model_source *source, const tt_run_events *events)
{
    tt_weights *w;
    if (!p->tiny_vae)
        return open_vae_part(ctx, out, p, TT_VAE_DECODER, source, events);
    *out = NULL;
    TT_TRY(tt_weights_open(ctx, &w, p->tiny_vae, TT_MODEL_TINY_VAE, NULL));
    tell_source(source, w);
    tt_vae_load_tiny(ctx, out, w);
    return settle(ctx, out, p);
}

tt_status tt_model_open_vae(tt_ctx *ctx, tt_vae **out, const tt_model_paths *p,
                            tt_model_source *source)
{
    return model_open_vae(ctx, out, p, source, NULL);
}

tt_status tt_model_open_vae_part(tt_ctx *ctx, tt_vae **out,
                                 const tt_model_paths *p, unsigned parts,
                                 tt_model_source *source)
{
    return open_vae_part(ctx, out, p, parts, source, NULL);
}

tt_status tt_model_tokenizer(tt_ctx *ctx, char *buf, size_t n,
                             const tt_model_paths *p)
{
    static const char *const places[] = {
        "google/umt5-xxl/spiece.model", "tokenizer/spiece.model",
        "spiece.model", "tokenizer.model", NULL};
    if (p->tokenizer) {
        if ((size_t)snprintf(buf, n, "%s", p->tokenizer) < n) return TT_OK;
    } else if (find_in_model(buf, n, p, places)) {
        return TT_OK;
    }
    return tt_fail(ctx, p->model || p->tokenizer ? TT_EIO : TT_EINVAL,
                   "no tokenizer found%s%s: expected google/umt5-xxl/"
                   "spiece.model, tokenizer/spiece.model or spiece.model in "
                   "the model folder; --tokenizer FILE names another place "
                   "(one inside a GGUF file is not read)",
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
