/* weights.c: what a model binds from: one dictionary, Wan's names, packed.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Steps   folder -> file -> dictionary -> stripped names -> Wan names ->
 *         refusals -> sorted. Tensor data is not touched, except that a
 *         strided tensor is gathered when it is first asked for.
 * Next    names.c, bind.c */
#include "io/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/parallel.h"
#include "io/bytes.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/guess.h"
#include "io/lora.h"
#include "io/names.h"

/* ---- which dictionary ---------------------------------------------------- */

static const char *const wrappers[] = {"generator_ema", "generator", "model",
                                       "module", "state_dict"};
enum { EMA, RAW, NWRAPPERS = 5 };

/* The dictionary reached so far: the first `depth` keys of `path`. */
typedef struct place {
    const char *path[4];
    int depth;
} place;

static bool inside(const tt_entry *e, const place *p)
{
    if (e->npath <= p->depth) return false;
    for (int i = 0; i < p->depth; i++)
        if (strcmp(e->path[i], p->path[i])) return false;
    return true;
}

/* Which wrapper to enter at `p`, -1 when there is none. */
static int choose_wrapper(tt_weights *w, const place *p, int ema)
{
    bool have[NWRAPPERS] = {false};
    for (int64_t i = 0; i < w->file->count; i++) {
        const tt_entry *e = &w->file->entry[i];
        if (!inside(e, p) || e->npath <= p->depth + 1) continue;
        for (int k = 0; k < NWRAPPERS; k++)
            have[k] |= !strcmp(e->path[p->depth], wrappers[k]);
    }
    if (ema == 0 && have[RAW]) return RAW;
    if (ema == 0 && have[EMA])
        tt_warn(w->ctx, "%s holds only generator_ema; it is used although the "
                "raw generator was asked for", w->path);
    if (ema == 1 && have[RAW] && !have[EMA])
        tt_warn(w->ctx, "%s holds no generator_ema; generator is used",
                w->path);
    for (int k = 0; k < NWRAPPERS; k++)
        if (have[k]) return k;
    return -1;
}

static tt_status no_dictionary(tt_weights *w)
{
    char keys[200] = "", show[IO_SHOW];
    const char *last = "";
    for (int64_t i = 0; i < w->file->count; i++) {
        const char *key = w->file->entry[i].path[0];
        size_t at = strlen(keys);
        if (!strcmp(key, last) || at + IO_SHOW + 3 > sizeof keys) continue;
        sprintf(keys + at, "%s%s", at ? ", " : "",
                io_show(show, key, strlen(key)));
        last = key;
    }
    char buf[300];
    const char *guess = guess_model(buf, sizeof buf, w->file);
    if (guess)
        return tt_fail(w->ctx, TT_EUNSUPPORTED, "%s: this looks like %s",
                       w->path, guess);
    return tt_fail(w->ctx, TT_EFORMAT,
                   "%s: no dictionary of tensors under generator_ema, "
                   "generator, model, module or state_dict; found %s", w->path,
                   keys[0] ? keys : "no tensors at all");
}

/* ---- names --------------------------------------------------------------- */

static tt_status not_such_model(tt_weights *w, tt_model_kind kind,
                                const char *const *stripped)
{
    const char *other = NULL;
    for (int k = 0; k < TT_MODEL_KINDS; k++)
        if (k != (int)kind && weights_fit(w->file, (tt_model_kind)k))
            other = names_kind_text((tt_model_kind)k);
    char show[IO_SHOW] = "";
    if (w->count > 0) io_show(show, stripped[0], strlen(stripped[0]));
    if (other)
        return tt_fail(w->ctx, TT_EFORMAT, "%s: expected a %s, found a %s",
                       w->path, names_kind_text(kind), other);
    char buf[300];
    const char *guess = guess_model(buf, sizeof buf, w->file);
    if (guess)
        return tt_fail(w->ctx, TT_EUNSUPPORTED, "%s: expected a %s; this "
                       "looks like %s", w->path, names_kind_text(kind), guess);
    return tt_fail(w->ctx, TT_EFORMAT,
                   "%s: expected a %s, found unknown tensor names (%lld "
                   "tensors%s%s)", w->path, names_kind_text(kind),
                   (long long)w->count, w->count ? ", first " : "", show);
}

/* Tensors that carry no weights of the model and are left out. The marker
 * "scaled_fp8" says that 8-bit weights come with scales. */
static bool not_a_weight(tt_weights *w, const char *name, tt_model_kind kind)
{
    if (!strcmp(name, "scaled_fp8")) {
        w->scaled = true;
        return true;
    }
    if (kind == TT_MODEL_DIT /* SkyReels-V2's; a table that is computed */
        && (!strncmp(name, "model_type.", 11) || !strcmp(name, "freqs")
            || !strncmp(name, "rope.", 5)))
        return true;
    return kind == TT_MODEL_T5 /* the whole T5 has a decoder as well */
        && (!strcmp(name, "spiece_model") || !strncmp(name, "decoder.", 8)
            || !strncmp(name, "dec.", 4) || !strcmp(name, "lm_head.weight")
            || !strcmp(name, "output.weight"));
}

/* Fill item[].name with stripped names of the tensors at `p`. */
static tt_status strip_names(tt_weights *w, tt_model_kind kind,
                             const place *p, const char **stripped)
{
    for (int64_t i = 0; i < w->file->count; i++) {
        const tt_entry *e = &w->file->entry[i];
        if (!inside(e, p) || e->npath != p->depth + 1) continue;
        char *name = tt_strdup(w->ctx, &w->ctx->scratch, e->path[p->depth]);
        if (!name) return w->ctx->status;
        if (!names_strip(name, kind) || not_a_weight(w, name, kind)) continue;
        stripped[w->count] = name;
        w->item[w->count++] = (weight){.stored = e->name, .t = e->t};
    }
    return TT_OK;
}

static tt_status refuse_relative(tt_weights *w, const char *why)
{
    char buf[300];
    const char *guess = guess_model(buf, sizeof buf, w->file);
    if (!guess) return tt_fail(w->ctx, TT_EUNSUPPORTED, "%s: %s", w->path, why);
    return tt_fail(w->ctx, TT_EUNSUPPORTED, "%s: %s (this looks like %s)",
                   w->path, why, guess);
}

static tt_status translate(tt_weights *w, tt_model_kind kind,
                           const char *const *stripped)
{
    names_map map = names_detect(stripped, w->count, kind);
    if (map.layout == NAMES_UNKNOWN) return not_such_model(w, kind, stripped);
    w->layout = names_layout_text(map.layout);
    bool shared = false;
    for (int64_t i = 0; i < w->count; i++)
        shared |= !strcmp(stripped[i], "shared.weight");
    int64_t kept = 0;
    for (int64_t i = 0; i < w->count; i++) {
        /* Hugging Face stores umT5's one embedding twice. */
        if (shared && kind == TT_MODEL_T5
            && !strcmp(stripped[i], "encoder.embed_tokens.weight"))
            continue;
        char *name =
            tt_alloc(w->ctx, &w->arena,
                     (int64_t)strlen(stripped[i]) + NAMES_CAPACITY, 1,
                     "a name");
        if (!name) return w->ctx->status;
        names_to_wan(name, stripped[i], &map);
        w->item[kept] = w->item[i];
        w->item[kept].name = name;
        const char *why = names_refusal(name, &w->item[kept].t, kind);
        if (why) return refuse_relative(w, why);
        kept++;
    }
    w->count = kept;
    return TT_OK;
}

static int item_order(const void *a, const void *b)
{
    return strcmp((*(weight *const *)a)->name, (*(weight *const *)b)->name);
}

static tt_status sort_items(tt_weights *w)
{
    w->sorted = tt_alloc(w->ctx, &w->arena, w->count, sizeof *w->sorted,
                         "weights");
    if (!w->sorted) return w->ctx->status;
    for (int64_t i = 0; i < w->count; i++) w->sorted[i] = &w->item[i];
    if (w->count > 1)
        qsort(w->sorted, (size_t)w->count, sizeof *w->sorted, item_order);
    for (int64_t i = 1; i < w->count; i++) {
        const weight *x = w->sorted[i - 1], *y = w->sorted[i];
        char s[IO_SHOW], t[IO_SHOW];
        if (!strcmp(x->name, y->name))
            return tt_fail(w->ctx, TT_EFORMAT,
                           "%s: '%s' and '%s' are both names of the same "
                           "weight", w->path,
                           io_show(s, x->stored, strlen(x->stored)),
                           io_show(t, y->stored, strlen(y->stored)));
    }
    return TT_OK;
}

/* ---- scales and shapes --------------------------------------------------- */

static tt_status apply_scales(tt_weights *w)
{
    bool changed;
    TT_TRY(weights_apply_scales(w, w->scaled, &changed));
    return changed ? sort_items(w) : TT_OK;
}

static int stored_order(const void *a, const void *b)
{
    const weight *x = *(weight *const *)a, *y = *(weight *const *)b;
    return strcmp(x->stored, y->stored);
}

weight **weights_by_stored(const tt_weights *w)
{
    weight **s = tt_alloc(w->ctx, &w->ctx->scratch, w->count, sizeof *s,
                          "weights");
    for (int64_t i = 0; s && i < w->count; i++) s[i] = &w->item[i];
    if (s && w->count > 1)
        qsort(s, (size_t)w->count, sizeof *s, stored_order);
    return s;
}

weight *weights_stored(const tt_weights *w, weight **by, const char *name)
{
    int64_t lo = 0, hi = w->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        int c = strcmp(by[mid]->stored, name);
        if (c == 0) return by[mid];
        if (c < 0) lo = mid + 1;
        else hi = mid;
    }
    return NULL;
}

/* Shapes that the file's metadata says it had before it was flattened. */
static tt_status recorded_shapes(tt_weights *w)
{
    int64_t count;
    weight **s = weights_by_stored(w);
    if (!s) return w->ctx->status;
    for (const gguf_shape *g = w->file->orig; g; g = g->next) {
        weight *x = weights_stored(w, s, g->name);
        if (!x) continue;
        char show[IO_SHOW];
        if (!tt_checked_size(&count, g->dim, g->rank, 1)
            || count != tt_tensor_count(&x->t))
            return tt_fail(w->ctx, TT_EFORMAT, "%s: tensor '%s': its original "
                           "shape has another number of values than it has",
                           w->path, io_show(show, g->name, strlen(g->name)));
        x->t = tt_tensor_reshape(&x->t, g->rank, g->dim);
    }
    return TT_OK;
}

/* GGUF has at most four dimensions: patch_embedding's five may have been
 * merged in any way; its bias tells the first. */
static void unflatten_patch(tt_weights *w)
{
    weight *x = weights_item(w, "patch_embedding.weight");
    weight *b = weights_item(w, "patch_embedding.bias");
    if (!x || !b || x->t.rank == 5 || b->t.rank != 1) return;
    int64_t n = tt_tensor_count(&x->t), dim = b->t.dim[0];
    if (dim < 1 || n % 4 != 0 || n / 4 % dim != 0) return;
    x->t = tt_tensor_reshape(&x->t, 5,
                             (int64_t[]){dim, n / 4 / dim, 1, 2, 2});
}

/* A modulation, [1, 6, dim], that was written without its first extent. */
static void lead_with_one(weight *x)
{
    static const char tail[] = "modulation";
    const size_t n = strlen(x->name), m = sizeof tail - 1;
    tt_tensor *t = &x->t;
    if (t->rank != 2 || n < m || strcmp(x->name + n - m, tail)) return;
    memmove(t->dim + 1, t->dim, 2 * sizeof *t->dim);
    memmove(t->stride + 1, t->stride, 2 * sizeof *t->stride);
    t->dim[0] = 1;
    t->rank = 3;
}

static tt_status restore_shapes(tt_weights *w)
{
    if (!strcmp(w->file->format, "GGUF")) {
        TT_TRY(recorded_shapes(w));
        unflatten_patch(w);
    }
    for (int64_t i = 0; w->kind == TT_MODEL_DIT && i < w->count; i++)
        lead_with_one(&w->item[i]);
    return TT_OK;
}

/* ---- open and close ------------------------------------------------------ */

static tt_status weights_describe(tt_weights *w, const place *p)
{
    char text[256];
    int n = snprintf(text, sizeof text, "%s, %s", w->layout,
                     w->file->format);
    for (int i = 0; i < p->depth; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%s",
                      i ? "." : ", ", p->path[i]);
    w->origin = tt_strdup(w->ctx, &w->arena, text);
    return w->ctx->status;
}

static tt_status read_weights(tt_weights *w, tt_model_kind kind, int ema,
                              bool *known)
{
    place p = {{NULL}, 0};
    tt_ctx *ctx = w->ctx;
    for (int k; p.depth < 4 && (k = choose_wrapper(w, &p, ema)) >= 0;)
        p.path[p.depth++] = wrappers[k];
    w->item = tt_alloc0(ctx, &w->arena, w->file->count, sizeof *w->item,
                        "weights");
    const char **stripped = tt_alloc(ctx, &ctx->scratch, w->file->count,
                                     sizeof *stripped, "names");
    if (!w->item || !stripped) return ctx->status;
    TT_TRY(strip_names(w, kind, &p, stripped));
    if (w->count == 0 && !strcmp(w->file->format, "torch zip"))
        return no_dictionary(w);
    TT_TRY(translate(w, kind, stripped));
    if (known) *known = true;
    TT_TRY(sort_items(w));
    TT_TRY(apply_scales(w));
    TT_TRY(restore_shapes(w));
    return weights_describe(w, &p);
}

static tt_status open_path(tt_weights *w, const char *path,
                           tt_model_kind kind)
{
    if (folder_is(path)) {
        TT_TRY(folder_find(w->ctx, &w->arena, &w->path, path, kind));
    } else {
        w->path = tt_strdup(w->ctx, &w->arena, path);
        if (!w->path) return w->ctx->status;
    }
    return file_is_part(w->path) ? file_open_parts(w->ctx, &w->file, w->path)
                                 : tt_file_open(w->ctx, &w->file, w->path);
}

tt_status tt_weights_open(tt_ctx *ctx, tt_weights **out, const char *path,
                          tt_model_kind kind, const tt_weights_options *opt)
{
    *out = NULL;
    if (ctx->status) return ctx->status;
    tt_weights *w = calloc(1, sizeof *w);
    if (!w)
        return tt_fail(ctx, TT_ENOMEM, "%s: no memory to open it", path);
    w->ctx = ctx;
    w->kind = kind;
    w->shapes_alone = opt && opt->shapes_alone;
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    if (!open_path(w, path, kind))
        read_weights(w, kind, opt ? opt->ema : -1, opt ? opt->known : NULL);
    if (opt && opt->lora) lora_add(w, opt->lora);
    else if (!ctx->status && lora_adjacent(w->file))
        tt_warn(ctx, "%s also holds a LoRA, under generator_lora, which is not "
                "merged; --lora %s merges it", w->path, w->path);
    tt_arena_reset(&ctx->scratch, m);
    if (ctx->status) tt_weights_close(w);
    else *out = w;
    return ctx->status;
}

void tt_weights_close(tt_weights *w)
{
    if (!w) return;
    tt_file_close(w->file);
    lora_close(w);
    tt_arena_free(&w->arena);
    free(w);
}

/* ---- questions ----------------------------------------------------------- */

const char *tt_weights_path(const tt_weights *w)
{
    return w ? w->path : "";
}

const char *tt_weights_origin(const tt_weights *w)
{
    return w ? w->origin : "";
}

int64_t tt_weights_count(const tt_weights *w)
{
    return w ? w->count : 0;
}

const char *tt_weights_name(const tt_weights *w, int64_t i)
{
    if (!w || i < 0 || i >= w->count) return "";
    return w->item[i].name;
}

void tt_weights_release(const tt_weights *w, const tt_tensor *t)
{
    if (!w) return;
    file_release(w->file, t);
}

void weights_release_all(const tt_ctx *ctx, const tt_weights *w,
                         const tt_tensor *const *all, int64_t n)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < n; i++) bytes += tt_tensor_bytes(all[i]);
    TT_PARALLEL_FOR_DYNAMIC(ctx, bytes / 64)
    for (int64_t i = 0; i < n; i++) tt_weights_release(w, all[i]);
}

void weights_expect(const tt_weights *w, const tt_tensor *t, int64_t first,
                    int64_t n)
{
    file_expect(w->file, t, first, n);
}

/* Of what is read in every pass. */
static int64_t bytes_used(const tt_weights *w)
{
    return tt_file_bytes(w->file);
}

bool tt_weights_large(const tt_weights *w)
{
    return w && bytes_used(w) > INT64_C(1) << 30;
}

bool tt_weights_crowded(const tt_weights *w)
{
    return w && io_crowded(bytes_used(w), NULL);
}

weight *weights_item(const tt_weights *w, const char *name)
{
    int64_t lo = 0, hi = w->count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        int c = strcmp(w->sorted[mid]->name, name);
        if (c == 0) return w->sorted[mid];
        if (c < 0) lo = mid + 1;
        else hi = mid;
    }
    return NULL;
}

/* Quantised rows are used as matrix rows; in any other shape (a flattened
 * convolution) the values are needed one by one. */
static const tt_tensor *unquantise(tt_weights *w, weight *x)
{
    int64_t n = tt_tensor_count(&x->t);
    float *data = tt_alloc(w->ctx, &w->arena, n, sizeof *data, x->name);
    if (!data) return NULL;
    tt_widen_f32(data, x->t.data, x->t.dtype, n);
    float scale = x->t.scale;
    x->t = tt_tensor_make(data, TT_F32, x->t.rank, x->t.dim);
    x->t.scale = scale;
    return &x->t;
}

static const tt_tensor *merged(tt_weights *w, weight *x)
{
    tt_tensor t;
    if (lora_merge(w, x, &w->arena, &t)) return NULL;
    x->t = t;
    x->patch = NULL;
    return &x->t;
}

const tt_tensor *weights_pack(tt_weights *w, weight *x)
{
    if (x->patch) return merged(w, x);
    int64_t block = tt_dtype_block(x->t.dtype);
    if (block > 1 && (x->t.rank != 2 || x->t.dim[1] % block != 0))
        return unquantise(w, x);
    if (tt_tensor_packed(&x->t)) return &x->t;
    void *data = tt_alloc(w->ctx, &w->arena, tt_tensor_count(&x->t),
                          tt_dtype_size(x->t.dtype), x->name);
    if (!data) return NULL;
    io_gather(data, &x->t);
    const tt_tensor strided = x->t;
    x->t = tt_tensor_like(&strided, data, strided.rank, strided.dim);
    return &x->t;
}

const tt_tensor *tt_weights_find(const tt_weights *w, const char *name)
{
    if (!w) return NULL;
    weight *x = weights_item(w, name);
    return x ? weights_pack((tt_weights *)w, x) : NULL;
}
