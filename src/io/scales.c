/* scales.c: the scale tensors of 8-bit checkpoints.
 *
 * Source  ComfyUI "scaled FP8" files: weight = stored * scale
 * SPDX-License-Identifier: Apache-2.0
 *
 * Holds   after success no scale is left unused: each became the scale of its
 *         weight, and in a file with scales every 8-bit tensor has one. A
 *         scale without weight stays in the list, where binding reports it. */
#include <string.h>

#include "io/bytes.h"
#include "io/weights.h"

/* Length of X in "X.scale_weight" or "X.weight_scale"; 0: another name. */
static size_t scaled_prefix(const char *name)
{
    static const char *const tails[] = {".scale_weight", ".weight_scale"};
    size_t n = strlen(name);
    for (int k = 0; k < 2; k++) {
        size_t m = strlen(tails[k]);
        if (n > m && !strcmp(name + n - m, tails[k])) return n - m;
    }
    return 0;
}

static bool ends(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && !strcmp(s + n - m, tail);
}

static tt_status refuse(tt_weights *w, const weight *x, const char *why)
{
    char show[IO_SHOW];
    return tt_fail(w->ctx, TT_EFORMAT, "%s: tensor '%s': %s", w->path,
                   io_show(show, x->stored, strlen(x->stored)), why);
}

/* The one number of a scale tensor. */
static tt_status read_scale(tt_weights *w, float *out, const weight *x)
{
    if (tt_tensor_count(&x->t) != 1 || !tt_dtype_is_real(x->t.dtype)
        || tt_dtype_block(x->t.dtype) != 1)
        return refuse(w, x, "expected one floating-point number that scales "
                            "the whole weight (scales per row are not "
                            "supported)");
    tt_widen_f32(out, x->t.data, x->t.dtype, 1);
    if (!(*out > 0) || *out - *out != 0)
        return refuse(w, x, "a scale that is not a positive number");
    return TT_OK;
}

/* Apply one scale; *used tells whether its weight is there. */
static tt_status apply(tt_weights *w, weight *x, size_t n, bool *used)
{
    float scale;
    tt_arena_mark m = tt_arena_here(&w->ctx->scratch);
    char *name = tt_alloc(w->ctx, &w->ctx->scratch, (int64_t)n + 8, 1,
                          "a name");
    if (!name) return w->ctx->status;
    memcpy(name, x->name, n);
    strcpy(name + n, ".weight");
    weight *target = weights_item(w, name);
    tt_arena_reset(&w->ctx->scratch, m);
    *used = target != NULL;
    if (!target) return TT_OK;
    TT_TRY(read_scale(w, &scale, x));
    if (target->t.scale != 0) return refuse(w, x, "a second scale of one "
                                                  "weight");
    target->t.scale = scale;
    return TT_OK;
}

static bool is_fp8(tt_dtype t)
{
    return t == TT_F8_E4M3 || t == TT_F8_E5M2;
}

tt_status weights_apply_scales(tt_weights *w, bool marker, bool *changed)
{
    int64_t kept = 0;
    bool scaled = marker;
    for (int64_t i = 0; i < w->count; i++) {
        weight *x = &w->item[i];
        size_t n = scaled_prefix(x->name);
        bool used = ends(x->name, ".scale_input")
                    || ends(x->name, ".input_scale");
        scaled |= n > 0;
        if (n > 0) TT_TRY(apply(w, x, n, &used));
        x->used_up = used;
    }
    for (int64_t i = 0; i < w->count; i++)
        if (!w->item[i].used_up) w->item[kept++] = w->item[i];
    *changed = kept != w->count;
    w->count = kept;
    for (int64_t i = 0; scaled && i < w->count; i++)
        if (is_fp8(w->item[i].t.dtype) && w->item[i].t.scale == 0)
            return refuse(w, &w->item[i], "an 8-bit weight without its scale, "
                          "in a file whose 8-bit weights are scaled: the "
                          "values would be wrong");
    return TT_OK;
}
