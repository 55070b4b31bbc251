/* scales.c: the scale tensors of 8-bit checkpoints.
 *
 * Source  ComfyUI's "scaled FP8" files and its notes on them, LightX2V's and
 *         compressed-tensors' scales per row: weight = stored * scale
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   after success no scale is left unused: each became the scale of its
 *         weight, and in a file with scales every 8-bit float has one. A
 *         scale without weight stays in the list, where binding reports it.
 *         Of ComfyUI's notes about layers, none says more than that, and each
 *         is of the type that its weight has. */
#include <string.h>

#include "io/bytes.h"
#include "io/file.h"
#include "io/guess.h"
#include "io/json.h"
#include "io/weights.h"

static size_t length_before(const char *name, const char *tail)
{
    size_t n = strlen(name), m = strlen(tail);
    return n > m && !strcmp(name + n - m, tail) ? n - m : 0;
}

/* Length of X in "X.scale_weight" or "X.weight_scale"; 0: another name. */
static size_t scaled_prefix(const char *name)
{
    size_t n = length_before(name, ".scale_weight");
    return n ? n : length_before(name, ".weight_scale");
}

static tt_status scales_refuse(tt_weights *w, const weight *x, const char *why)
{
    char show[IO_SHOW];
    return tt_fail(w->ctx, TT_EFORMAT, "%s: tensor '%s': %s", w->path,
                   io_show(show, x->stored, strlen(x->stored)), why);
}

/* ---- scales -------------------------------------------------------------- */

static tt_status refuse_scale(tt_weights *w, const weight *x,
                              const weight *target)
{
    char show[IO_SHOW], has[100], buf[300];
    const char *guess = guess_model(buf, sizeof buf, w->file);
    if (guess)
        return tt_fail(w->ctx, TT_EUNSUPPORTED, "%s: this looks like %s",
                       w->path, guess);
    return tt_fail(w->ctx, TT_EFORMAT, "%s: tensor '%s' is %s, expected one "
                   "floating-point number, or one per row of its weight, "
                   "[%lld, 1] (scales per block are not supported)", w->path,
                   io_show(show, x->stored, strlen(x->stored)),
                   tt_shape_string(has, sizeof has, x->t.rank, x->t.dim),
                   (long long)(target->t.rank == 2 ? target->t.dim[0] : 1));
}

/* The n numbers of a scale tensor; NULL: refused. */
static float *read_scales(tt_weights *w, const weight *x, int64_t n)
{
    tt_ctx *ctx = w->ctx;
    float *v = tt_alloc(ctx, &w->arena, n, sizeof *v, "scales");
    void *packed = tt_alloc(ctx, &ctx->scratch, n, tt_dtype_size(x->t.dtype),
                            "scales");
    if (!v || !packed) return NULL;
    io_gather(packed, &x->t);
    tt_widen_f32(v, packed, x->t.dtype, n);
    for (int64_t i = 0; i < n; i++)
        if (!(v[i] > 0) || v[i] - v[i] != 0) {
            scales_refuse(w, x, "a scale that is not a positive number");
            return NULL;
        }
    return v;
}

static tt_status scale(tt_weights *w, const weight *x, weight *target)
{
    const tt_tensor *s = &x->t;
    tt_tensor *t = &target->t;
    const int64_t n = tt_tensor_count(s);
    const bool rows = n > 1 && t->rank == 2 && n == t->dim[0]
                   && s->dim[0] == n && tt_dtype_block(t->dtype) == 1;
    if ((n != 1 && !rows) || !tt_dtype_is_real(s->dtype)
        || tt_dtype_block(s->dtype) != 1) return refuse_scale(w, x, target);
    if (t->scale != 0)
        return scales_refuse(w, x, "a second scale of one weight");
    const float *v = read_scales(w, x, n);
    if (!v) return w->ctx->status;
    t->scale = rows ? 1 : v[0];
    t->row_scale = rows ? v : NULL;
    t->row = t->rank == 2 ? t->dim[1] : 0;
    return TT_OK;
}

/* "X.weight" of the first n bytes of a name, in scratch; NULL: recorded. */
static char *weight_of(tt_weights *w, const char *x, size_t n)
{
    char *name = tt_alloc(w->ctx, &w->ctx->scratch, (int64_t)n + 8, 1,
                          "a name");
    if (name) memcpy(name, x, n);
    if (name) strcpy(name + n, ".weight");
    return name;
}

/* Apply one scale; *used tells whether its weight is there. */
static tt_status scales_apply(tt_weights *w, const weight *x, size_t n,
                              bool *used)
{
    const tt_arena_mark m = tt_arena_here(&w->ctx->scratch);
    const char *name = weight_of(w, x->name, n);
    weight *target = name ? weights_item(w, name) : NULL;
    *used = target != NULL;
    if (target) scale(w, x, target);
    tt_arena_reset(&w->ctx->scratch, m);
    return w->ctx->status;
}

/* ---- ComfyUI's notes ----------------------------------------------------- */

static tt_status refuse_noted(tt_weights *w, const weight *x,
                              const char *format, tt_dtype want)
{
    char show[IO_SHOW];
    return tt_fail(w->ctx, TT_EFORMAT, "%s: tensor '%s' is %s, expected %s, "
                   "because the file says that it is quantised as %s; fetch "
                   "the file again, or take another one", w->path,
                   io_show(show, x->stored, strlen(x->stored)),
                   tt_dtype_name(x->t.dtype), tt_dtype_name(want), format);
}

/* {"format": "float8_e4m3fn", ...}, said of `layer`, whose weight is x; NULL:
 * not there. */
static tt_status check_layer_format(tt_weights *w, const char *layer,
                                    const weight *x, const tt_json *note)
{
    static const struct { const char *format; tt_dtype type; } read[] = {
        {"float8_e4m3fn", TT_F8_E4M3}, {"float8_e5m2", TT_F8_E5M2},
        {"int8_tensorwise", TT_I8}};
    const char *format = tt_json_str(note, "format", "a format without a name");
    const tt_json *convrot = tt_json_get(note, "convrot");
    const bool rotated = convrot && !(convrot->kind == TT_JSON_BOOL
                                      && !tt_json_bool(note, "convrot", true));
    char show[IO_SHOW], what[IO_SHOW];
    for (size_t i = 0; i < sizeof read / sizeof *read && !rotated; i++)
        if (!strcmp(format, read[i].format))
            return !x || x->t.dtype == read[i].type ? TT_OK
                 : refuse_noted(w, x, format, read[i].type);
    return tt_fail(w->ctx, TT_EUNSUPPORTED, "%s: %s is quantised as %s%s, "
                   "which is not read; take the model's file in bf16, in fp8 "
                   "with scales or in GGUF", w->path,
                   io_show(show, layer, strlen(layer)),
                   io_show(what, format, strlen(format)),
                   rotated ? " with rotated weights (convrot)" : "");
}

/* The text of a tensor "X.comfy_quant"; *used: the weight X is there. */
static tt_status check_note(tt_weights *w, const weight *x, size_t prefix,
                            bool *used)
{
    tt_ctx *ctx = w->ctx;
    const tt_json *note;
    const tt_tensor *t = &x->t;
    const int64_t n = tt_tensor_count(t);
    if (t->dtype != TT_U8 || n < 1 || n > 4096 || !tt_tensor_packed(t))
        return scales_refuse(w, x, "expected a JSON text in a U8 tensor");
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const char *name = weight_of(w, x->name, prefix);
    const weight *target = name ? weights_item(w, name) : NULL;
    *used = target != NULL;
    char what[600], show[IO_SHOW];
    snprintf(what, sizeof what, "%.300s: tensor '%s'", w->path,
             io_show(show, x->stored, strlen(x->stored)));
    if (!tt_json_parse(ctx, &ctx->scratch, &note, t->data, (size_t)n, what))
        check_layer_format(w, x->stored, target, note);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

/* The notes of `layers`, an object of them by name. */
static tt_status check_noted(tt_weights *w, const tt_json *layers)
{
    weight **by = weights_by_stored(w);
    for (const tt_json *v = tt_json_first(layers); by && v;
         v = tt_json_next(v)) {
        const char *name = weight_of(w, v->key, strlen(v->key));
        if (!name) break;
        TT_TRY(check_layer_format(w, v->key, weights_stored(w, by, name), v));
    }
    return w->ctx->status;
}

/* {"layers": {"X": {"format": ...}}} in the metadata of a safetensors file. */
static tt_status check_notes(tt_weights *w, const tt_file *f, bool *scaled)
{
    tt_ctx *ctx = w->ctx;
    const tt_json *root;
    for (int64_t i = 0; i < f->nshards; i++)
        TT_TRY(check_notes(w, f->shard[i], scaled));
    const char *text = tt_file_meta(f, "_quantization_metadata");
    if (!text) return TT_OK;
    char what[600];
    snprintf(what, sizeof what, "%.500s: _quantization_metadata", f->path);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    if (!tt_json_parse(ctx, &ctx->scratch, &root, text, strlen(text), what)) {
        const tt_json *layers = tt_json_get(root, "layers");
        *scaled |= tt_json_first(layers) != NULL;
        if (root->kind != TT_JSON_OBJECT
            || (layers && layers->kind != TT_JSON_OBJECT))
            tt_fail(ctx, TT_EFORMAT, "%s: expected an object, and in it "
                    "layers by name", what);
        else check_noted(w, layers);
    }
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

/* ---- all of them --------------------------------------------------------- */

static bool is_fp8(tt_dtype t)
{
    return t == TT_F8_E4M3 || t == TT_F8_E5M2;
}

tt_status weights_apply_scales(tt_weights *w, bool marker, bool *changed)
{
    int64_t kept = 0;
    bool scaled = marker;
    TT_TRY(check_notes(w, w->file, &scaled));
    for (int64_t i = 0; i < w->count; i++) {
        weight *x = &w->item[i];
        const size_t n = length_before(x->name, ".comfy_quant");
        scaled |= n > 0;
        x->used_up = false;
        if (n > 0) TT_TRY(check_note(w, x, n, &x->used_up));
    }
    for (int64_t i = 0; i < w->count; i++) {
        weight *x = &w->item[i];
        const size_t n = scaled_prefix(x->name);
        bool used = x->used_up || length_before(x->name, ".scale_input")
                    || length_before(x->name, ".input_scale");
        scaled |= n > 0;
        if (n > 0) TT_TRY(scales_apply(w, x, n, &used));
        x->used_up = used;
    }
    for (int64_t i = 0; i < w->count; i++)
        if (!w->item[i].used_up) w->item[kept++] = w->item[i];
    *changed = kept != w->count;
    w->count = kept;
    for (int64_t i = 0; scaled && i < w->count; i++)
        if (is_fp8(w->item[i].t.dtype) && w->item[i].t.scale == 0)
            return scales_refuse(w, &w->item[i],
                                 "an 8-bit weight without its scale, in a file "
                                 "whose 8-bit weights are scaled: the values "
                                 "would be wrong");
    return TT_OK;
}
