/* load.c: from a checkpoint to a transformer.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   Shapes decide whatever shapes can tell. config.json next to the
 *         weights, else that of the model's folder, adds what they cannot
 *         (head count, text_len, eps) and must agree with the rest: a config of
 *         another model is an error, not a preference. Without a config the
 *         published widths are recognised.
 * Holds   On success every tensor of the checkpoint is bound exactly once.
 * Next    bind.c */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dit/load.h"

/* Head counts of the published widths (head_dim 128), for files that come
 * without a config. */
static int64_t published_heads(int64_t dim)
{
    return dim == 1536 ? 12 : dim == 5120 ? 40 : 0;
}

/* ---- what kind of checkpoint is this? ------------------------------------ */

/* Other parts of a model, given as a transformer. */
static const struct { const char *part, *guess; } foreign[] = {
    {"decoder.upsamples.", "a Wan VAE; give it as --vae"},
    {"pos_embedding.embedding", "a umT5 text encoder; give it as "
                                "--text-encoder"},
    {"scale_weight", "a scale whose 8-bit weight is missing"},
    {"weight_scale", "a scale whose 8-bit weight is missing"},
};

static tt_status refuse_foreign(tt_ctx *ctx, const tt_weights *w)
{
    for (int64_t i = 0; i < tt_weights_count(w); i++)
        for (size_t j = 0; j < sizeof foreign / sizeof *foreign; j++)
            if (strstr(tt_weights_name(w, i), foreign[j].part))
                return tt_fail(ctx, TT_EUNSUPPORTED,
                               "%s is not a text-to-video transformer: tensor "
                               "%s points to %s", tt_weights_path(w),
                               tt_weights_name(w, i), foreign[j].guess);
    return TT_OK;
}

/* ---- sizes from shapes --------------------------------------------------- */

/* The tensor whose shape tells a size. */
static const tt_tensor *telling(tt_ctx *ctx, const tt_weights *w,
                                const char *name, int rank)
{
    char shape[96];
    if (ctx->status) return NULL;
    const tt_tensor *t = tt_weights_find(w, name);
    if (!t)
        tt_fail(ctx, TT_ESHAPE,
                "%s is not a Wan transformer: of its %lld tensors (the first "
                "is %s) none is %s", tt_weights_path(w),
                (long long)tt_weights_count(w),
                tt_weights_count(w) ? tt_weights_name(w, 0) : "-", name);
    else if (t->rank != rank || tt_tensor_count(t) == 0)
        tt_fail(ctx, TT_ESHAPE, "%s: %s has shape %s, expected %d extents",
                tt_weights_path(w), name,
                tt_shape_string(shape, sizeof shape, t->rank, t->dim), rank);
    else
        return t;
    return NULL;
}

/* One more than the largest i of all names "blocks.<i>.". */
static int64_t count_blocks(const tt_weights *w)
{
    int64_t layers = 0;
    for (int64_t i = 0; i < tt_weights_count(w); i++) {
        const char *name = tt_weights_name(w, i);
        if (strncmp(name, "blocks.", 7) || name[7] < '0' || name[7] > '9')
            continue;
        const int64_t b = strtol(name + 7, NULL, 10);
        if (b >= layers && b < tt_weights_count(w)) layers = b + 1;
    }
    return layers;
}

static tt_status sizes_from_shapes(tt_ctx *ctx, tt_dit_config *c,
                                   const tt_weights *w)
{
    const tt_tensor *patch = telling(ctx, w, "patch_embedding.weight", 5);
    const tt_tensor *ffn = telling(ctx, w, "blocks.0.ffn.0.weight", 2);
    const tt_tensor *time = telling(ctx, w, "time_embedding.0.weight", 2);
    const tt_tensor *text = telling(ctx, w, "text_embedding.0.weight", 2);
    const tt_tensor *head = telling(ctx, w, "head.head.weight", 2);
    TT_TRY(ctx->status);
    c->dim = patch->dim[0];
    c->in_dim = patch->dim[1];
    c->ffn_dim = ffn->dim[0];
    c->freq_dim = time->dim[1];
    c->text_dim = text->dim[1];
    c->layers = count_blocks(w);
    if (patch->dim[2] != 1 || patch->dim[3] != 2 || patch->dim[4] != 2)
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "%s: patches of %lld x %lld x %lld; only 1 x 2 x 2 is "
                       "supported", tt_weights_path(w),
                       (long long)patch->dim[2], (long long)patch->dim[3],
                       (long long)patch->dim[4]);
    if (head->dim[0] != 4 * c->in_dim)
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "%s: %lld latent channels go in and %lld / 4 come out; "
                       "they must be equal%s", tt_weights_path(w),
                       (long long)c->in_dim, (long long)head->dim[0],
                       c->in_dim == 36 ? " (36 in, 16 out is an image-to-video "
                                         "transformer, Wan2.1-I2V)" : "");
    if (c->freq_dim % 2)
        return tt_fail(ctx, TT_ESHAPE,
                       "%s: time_embedding.0.weight takes %lld inputs; a "
                       "sinusoid has as many cosines as sines, so the width "
                       "must be even", tt_weights_path(w),
                       (long long)c->freq_dim);
    return TT_OK;
}

/* ---- config.json --------------------------------------------------------- */

/* "<folder of path>/config.json"; false when it would not fit. */
static bool beside(char *buf, size_t size, const char *path)
{
    struct stat st;
    const bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    const char *slash = strrchr(path, '/');
    const int n = folder ? (int)strlen(path)
                         : slash ? (int)(slash - path) : 1;
    const char *dir = folder || slash ? path : ".";
    return snprintf(buf, size, "%.*s/config.json", n, dir) < (int)size;
}

/* A text encoder's has heads too. */
static bool is_transformers(const tt_json *root)
{
    return (tt_json_get(root, "num_heads")
            || tt_json_get(root, "num_attention_heads"))
        && !tt_json_get(root, "d_model") && !tt_json_get(root, "architectures");
}

tt_status dit_config_adjacent(tt_ctx *ctx, tt_arena *a, const tt_json **root,
                              char *buf, size_t n, const char *weights)
{
    struct stat st;
    *root = NULL;
    if (ctx->status || !beside(buf, n, weights)
        || (stat(buf, &st) && (errno == ENOENT || errno == ENOTDIR)))
        return ctx->status;
    TT_TRY(tt_json_file(ctx, a, root, buf, 1 << 20));
    if (!is_transformers(*root)) *root = NULL;
    return TT_OK;
}

/* The config: next to the weights, else as given. *root stays NULL without. */
static tt_status find_config(tt_ctx *ctx, tt_arena *a, const tt_json **root,
                             char *path, size_t size, const char *given,
                             const tt_weights *w)
{
    TT_TRY(dit_config_adjacent(ctx, a, root, path, size, tt_weights_path(w)));
    if (*root || !given) return TT_OK;
    snprintf(path, size, "%s", given);
    return tt_json_file(ctx, a, root, given, 1 << 20);
}

/* Integer under Wan's or Diffusers' key, -1 when under neither. */
static int64_t load_number(const tt_json *root, const char *wan,
                           const char *diffusers)
{
    const tt_json *v = tt_json_get(root, wan);
    if (!v) v = tt_json_get(root, diffusers);
    return tt_json_whole(v, -1);
}

/* Things this program could only do wrong. */
static tt_status refuse_config(tt_ctx *ctx, const tt_json *root,
                               const char *path)
{
    const char *type = tt_json_str(root, "model_type", "t2v");
    if (strcmp(type, "t2v"))
        return tt_fail(ctx, TT_EUNSUPPORTED,
                       "%s: model_type is \"%s\"; only t2v (text to video) "
                       "transformers are supported", path, type);
    const tt_json *p = tt_json_get(root, "patch_size");
    const int64_t want[3] = {1, 2, 2};
    for (int64_t i = 0; p && i < 3; i++) {
        const tt_json *v = tt_json_at(p, i);
        if (tt_json_count(p) != 3 || tt_json_whole(v, 0) != want[i])
            return tt_fail(ctx, TT_EUNSUPPORTED,
                           "%s: patch_size must be [1, 2, 2]", path);
    }
    static const char *const on[] = {"qk_norm", "cross_attn_norm"};
    for (int i = 0; i < 2; i++) {
        const tt_json *v = tt_json_get(root, on[i]);
        const bool off = v && (v->kind == TT_JSON_NULL
                               || (v->kind == TT_JSON_BOOL && !v->as.yes)
                               || (v->kind == TT_JSON_STRING
                                   && strcmp(v->as.str,
                                             "rms_norm_across_heads")));
        if (off)
            return tt_fail(ctx, TT_EUNSUPPORTED,
                           "%s: %s must be on (RMSNorm over all heads "
                           "together)", path, on[i]);
    }
    return TT_OK;
}

static tt_status apply_config(tt_ctx *ctx, tt_dit_config *c,
                              const tt_json *root, const char *path,
                              const tt_weights *w)
{
    TT_TRY(refuse_config(ctx, root, path));
    c->heads = load_number(root, "num_heads", "num_attention_heads");
    if (c->heads < 1)
        return tt_fail(ctx, TT_EFORMAT,
                       "%s: num_heads is missing or not a positive integer",
                       path);
    const int64_t head_dim = load_number(root, "-", "attention_head_dim");
    const struct { const char *key; int64_t said, found; } check[] = {
        {"dim", load_number(root, "dim", "-"), c->dim},
        {"num_attention_heads * attention_head_dim",
         head_dim < 0 || head_dim > INT32_MAX || c->heads > INT32_MAX
             ? -1 : c->heads * head_dim, c->dim},
        {"ffn_dim", load_number(root, "ffn_dim", "-"), c->ffn_dim},
        {"freq_dim", load_number(root, "freq_dim", "-"), c->freq_dim},
        {"num_layers", load_number(root, "num_layers", "-"), c->layers},
        {"in_dim", load_number(root, "in_dim", "in_channels"), c->in_dim},
        {"out_dim", load_number(root, "out_dim", "out_channels"), c->in_dim},
        {"text_dim", load_number(root, "text_dim", "-"), c->text_dim},
    };
    for (size_t i = 0; i < sizeof check / sizeof *check; i++)
        if (check[i].said != -1 && check[i].said != check[i].found)
            return tt_fail(ctx, TT_ESHAPE,
                           "%s says %s is %lld, but the shapes in %s give "
                           "%lld: the file is incomplete, or config and "
                           "weights belong to different models", path,
                           check[i].key, (long long)check[i].said,
                           tt_weights_path(w), (long long)check[i].found);
    c->text_len = load_number(root, "text_len", "-");
    if (tt_json_get(root, "text_len")
        && (c->text_len < 1 || c->text_len > TT_TEXT_LEN_MAX))
        return tt_fail(ctx, TT_EFORMAT,
                       "%s: text_len must be an integer from 1 to %d", path,
                       TT_TEXT_LEN_MAX);
    c->eps = tt_json_num(root, "eps", 1e-6);
    if (!(c->eps > 0 && c->eps < 1))
        return tt_fail(ctx, TT_EFORMAT, "%s: eps must lie between 0 and 1",
                       path);
    return TT_OK;
}

/* ---- all of it ----------------------------------------------------------- */

static tt_status make_config(tt_ctx *ctx, tt_dit_config *c, tt_weights *w,
                             const char *config_path, int64_t heads)
{
    *c = (tt_dit_config){.eps = 1e-6, .text_len = -1};
    TT_TRY(tt_weights_check(ctx, w));
    TT_TRY(refuse_foreign(ctx, w));
    TT_TRY(sizes_from_shapes(ctx, c, w));

    char path[1024];
    const tt_json *root;
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_status s = find_config(ctx, &ctx->scratch, &root, path, sizeof path,
                              config_path, w);
    if (s == TT_OK && root) s = apply_config(ctx, c, root, path, w);
    tt_arena_reset(&ctx->scratch, mark);
    TT_TRY(s);

    if (!c->heads) c->heads = published_heads(c->dim);
    if (!c->heads) c->heads = heads;
    if (!c->heads)
        return tt_fail(ctx, TT_EINVAL,
                       "%s: the number of attention heads cannot be read off "
                       "a transformer of width %lld; put its config.json "
                       "next to it or give --heads N", tt_weights_path(w),
                       (long long)c->dim);
    if (heads && heads != c->heads)
        tt_warn(ctx, "--heads %lld ignored: %s has %lld heads",
                (long long)heads, tt_weights_path(w), (long long)c->heads);
    if (c->heads < 1 || c->dim % c->heads || (c->dim / c->heads) % 2)
        return tt_fail(ctx, TT_ESHAPE,
                       "%s: width %lld cannot be split into %lld heads of "
                       "even width", tt_weights_path(w), (long long)c->dim,
                       (long long)c->heads);
    /* Zero rows past the prompt are attended to, so this number matters:
     * 512 for the published models, else as many rows as are given. */
    if (c->text_len < 0) c->text_len = published_heads(c->dim) ? 512 : 0;
    return TT_OK;
}

tt_status tt_dit_load(tt_ctx *ctx, tt_dit **out, tt_weights *w,
                      const char *config_path, int64_t heads)
{
    *out = NULL;
    tt_dit_config c;
    tt_arena arena = {0};
    tt_dit *m = NULL;
    if (!ctx->status && make_config(ctx, &c, w, config_path, heads) == TT_OK)
        m = tt_alloc0(ctx, &arena, 1, sizeof *m, "transformer");
    if (m) {
        m->cfg = c;
        m->w = w;
        m->arena = arena;
        dit_bind(ctx, m);
    }
    if (ctx->status) {
        if (m) tt_dit_close(m);
        else tt_weights_close(w);
        return ctx->status;
    }
    *out = m;
    return TT_OK;
}

void tt_dit_close(tt_dit *m)
{
    if (!m) return;
    tt_weights_close(m->w);
    tt_arena arena = m->arena;      /* holds *m itself */
    tt_arena_free(&arena);
}

const tt_dit_config *tt_dit_get_config(const tt_dit *m)
{
    static const tt_dit_config none;
    return m ? &m->cfg : &none;
}
