/* table.c: the backends of this build, and the wrappers model code calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A wrapper does nothing while a failure is recorded, asserts what every
 * backend may rely on, and adds to the profile. */
#include <stdio.h>
#include <string.h>

#include "core/nearest.h"
#include "ops/backends.h"

const tt_ops *tt_ops_at(int i)
{
    static const tt_ops *const tables[] = {
#ifndef TT_REAL_DOUBLE
        &tt_ops_exact,
#endif
        &tt_ops_golden,
        &tt_ops_blas,
#ifdef TT_CUDA
        &tt_ops_cuda,
#endif
    };
    int n = (int)(sizeof tables / sizeof tables[0]);
    return i >= 0 && i < n ? tables[i] : NULL;
}

const tt_ops *tt_ops_find(const char *name)
{
    for (int i = 0; tt_ops_at(i); i++)
        if (strcmp(tt_ops_at(i)->name, name) == 0) return tt_ops_at(i);
    return NULL;
}

tt_status tt_ops_open(tt_ctx *ctx, const tt_ops *ops)
{
    return ctx->status || !ops->open ? ctx->status : ops->open(ctx, ops);
}

void tt_ops_close(const tt_ops *ops)
{
    if (ops && ops->close) ops->close(ops);
}

tt_status tt_ops_use(tt_ctx *ctx, const char *name)
{
    const tt_ops *ops = tt_ops_find(name);
    if (ctx->status) return ctx->status;
    if (!ops) {
        char have[256] = "", hint[NEAREST_HINT];
        static const char *const names[] = {"exact", "golden", "blas", "cuda"};
        for (int i = 0; tt_ops_at(i); i++)
            snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s",
                     i ? ", " : "", tt_ops_at(i)->name);
        return tt_fail(ctx, TT_EINVAL, "backend %s is not built into this "
                       "program%s; it has: %s%s", name,
                       nearest_hint(hint, name, names, 4), have,
                       strchr(name, '/') ? ". A shared object is for `tether "
                       "validate --backend`" : "");
    }
    ctx->device = NULL;
    TT_TRY(tt_ops_open(ctx, ops));
    ctx->ops = ops;
    return TT_OK;
}

const char *tt_ops_library(tt_ctx *ctx, char *text, size_t size)
{
    return ctx->ops->library ? ctx->ops->library(ctx, text, size) : NULL;
}

const tt_ops *tt_ops_default(void)
{
    return tt_ops_at(0);
}

const tt_ops *tt_ops_class(const tt_ops *ops, tt_class cls)
{
    return ops->cls == cls ? ops : ops->of_class ? ops->of_class[cls] : NULL;
}

#define CLASS_INFO(name, NAME, kernels, saved, summary, machines)              \
    {#name, saved, summary, machines},
static const tt_class_info classes[TT_CLASS_COUNT] = {TT_CLASSES(CLASS_INFO)};

const tt_class_info *tt_class_at(int i)
{
    return i >= 0 && i < TT_CLASS_COUNT ? &classes[i] : NULL;
}

const char *tt_class_name(tt_class cls)
{
    return classes[cls].name;
}

const char *tt_class_saved(tt_class cls)
{
    return classes[cls].saved;
}

bool tt_class_find(tt_class *cls, const char *name)
{
    for (int i = 0; i < TT_CLASS_COUNT; i++)
        if (!strcmp(classes[i].name, name) || !strcmp(classes[i].saved, name)) {
            *cls = (tt_class)i;
            return true;
        }
    return false;
}

const char *tt_class_names(void)
{
#define CLASS_NAME(name, ...) ", " #name
    static const char names[] = TT_CLASSES(CLASS_NAME);
    return names + 2;
}

const tt_ops *tt_class_begin(tt_ctx *ctx, tt_class cls)
{
    const tt_ops *before = ctx->ops, *own = tt_ops_class(before, cls);
    ctx->by_class = cls != TT_CLASS_F32;
    if (own)
        ctx->ops = own;
    else
        tt_fail(ctx, TT_EUNSUPPORTED, "backend %s computes in class %s, "
                "and this part of the model is computed in class %s: its table "
                "of that class is missing (of_class)", before->name,
                tt_class_name(before->cls), tt_class_name(cls));
    return before;
}

void tt_class_end(tt_ctx *ctx, const tt_ops *before)
{
    ctx->by_class = false;
    ctx->ops = before;
}

/* Run one operator, timed when asked. */
#define CALL(op, flops, args)                                                  \
    do {                                                                       \
        double start_ = ctx->profiling ? tt_now() : 0.0;                       \
        ctx->ops->op(ctx, args);                                               \
        if (ctx->profiling)                                                    \
            tt_profile_add(ctx, #op, tt_now() - start_, (flops));              \
    } while (0)

/* A whole wrapper: its parameters are the members of the struct, in order. */
#define RUN(op, ...)                                                           \
    do {                                                                       \
        if (ctx->status) return;                                               \
        const tt_##op##_args args_ = {__VA_ARGS__};                            \
        CALL(op, 0, &args_);                                                   \
    } while (0)

void tt_linear(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
               const tt_tensor *w, const tt_real *b)
{
    if (ctx->status || n == 0) return;
    TT_ASSERT(w->rank == 2 && tt_tensor_packed(w));
    const tt_linear_args a = {y, x, n, w, b};
    CALL(linear, 2.0 * (double)n * (double)w->dim[0] * (double)w->dim[1], &a);
}

void tt_attention(tt_ctx *ctx, const tt_attention_args *a)
{
    if (ctx->status || (a->T == 0 && !a->packed)) return;
    TT_ASSERT(a->N >= 1 && a->H >= 1 && a->D >= 1);
    TT_ASSERT(!a->rel_bias || a->T == a->N);
    TT_ASSERT(!a->packed || (ctx->ops->packed
                             && ctx->ops->packed(ctx, a->N, a->D) > 0));
    TT_ASSERT(!a->bf16 || (ctx->ops->by_class
                           && ctx->ops->cls != TT_CLASS_F32));
    TT_ASSERT(!a->n_packed || (a->packed && a->n_packed <= a->N
                               && (a->n_packed % TT_KEY_BLOCK == 0
                                   || a->n_packed == a->N)));
    CALL(attention, 4.0 * (double)a->T * (double)a->N * (double)(a->H * a->D),
         a);
}

void tt_conv(tt_ctx *ctx, const tt_conv_args *a)
{
    if (ctx->status || a->Ho == 0) return;
    int64_t taps = (int64_t)a->kt * a->kh * a->kw;
    tt_conv_args own = *a;
    own.by_class |= ctx->by_class;
    TT_ASSERT(tt_tensor_count(a->w) == a->Cout * taps * a->Cin);
    CALL(conv, 2.0 * (double)(a->Ho * a->Wo)
               * (double)(a->Cout * a->Cin * taps), &own);
}

void tt_layer_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                   int64_t c, const tt_real *w, const tt_real *b, double eps)
{
    RUN(layer_norm, y, x, n, c, w, b, eps);
}

void tt_rms_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                 int64_t c, const tt_real *w, double eps)
{
    RUN(rms_norm, y, x, n, c, w, eps);
}

void tt_channel_norm(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t n,
                     int64_t c, const tt_real *gamma)
{
    RUN(channel_norm, y, x, n, c, gamma);
}

void tt_modulate(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                 const tt_real *scale, const tt_real *shift, int64_t stride,
                 int64_t rows)
{
    RUN(modulate, x, n, c, scale, shift, stride, rows);
}

void tt_gate_add(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n,
                 int64_t c, const tt_real *gate, int64_t stride, int64_t rows)
{
    RUN(gate_add, x, y, n, c, gate, stride, rows);
}

void tt_add(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n)
{
    RUN(add, x, y, n);
}

void tt_mul(tt_ctx *ctx, tt_real *x, const tt_real *y, int64_t n)
{
    RUN(mul, x, y, n);
}

void tt_gelu_tanh(tt_ctx *ctx, tt_real *x, int64_t n)
{
    RUN(gelu_tanh, x, n);
}

void tt_silu(tt_ctx *ctx, tt_real *x, int64_t n)
{
    RUN(silu, x, n);
}

void tt_rope(tt_ctx *ctx, tt_real *y, const tt_real *x, int64_t T, int64_t H,
             int64_t D, const tt_rope_table *table, const tt_index *pos)
{
    RUN(rope, y, x, T, H, D, table, pos);
}

void tt_col_mean(tt_ctx *ctx, tt_wide *mean, const tt_real *x, int64_t n,
                 int64_t c)
{
    RUN(col_mean, mean, x, n, c);
}

void tt_col_moment(tt_ctx *ctx, tt_wide *m2, const tt_real *x,
                   const tt_wide *mean, int64_t n, int64_t c)
{
    RUN(col_moment, m2, x, mean, n, c);
}

void tt_col_blend(tt_ctx *ctx, tt_real *x, int64_t n, int64_t c,
                  const tt_wide *mean, const tt_wide *gain,
                  const tt_wide *target, double tau)
{
    RUN(col_blend, x, n, c, mean, gain, target, tau);
}

/* Is it a table of the backend `name`? A double build has no exact. */
static bool is_of(const tt_ops *ops, const char *name)
{
    const tt_ops *t = tt_ops_find(name);
    return t && ops == tt_ops_class(t, ops->cls);
}

const char *tt_bits_name(const tt_ops *ops, char *buf, size_t n)
{
    const bool ours = is_of(ops, "golden") || is_of(ops, "exact");
    snprintf(buf, n, "%s%s%s", tt_class_saved(ops->cls), ours ? "" : " of ",
             ours ? "" : ops->name);
    return buf;
}

const char *tt_determinism(const tt_ops *ops)
{
    return !strcmp(ops->name, "blas")
        ? "blas (sums in the library's order; equal within tolerances)"
        : "golden (orders of sums fixed; bits do not depend on threads)";
}
