/* backend.h: the table of operators that a backend fills, and which there are.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A backend is a tt_ops table: one function per operator of ops.h, each of one
 * form,
 *     void silu(tt_ctx *ctx, const tt_silu_args *a);
 * TT_OPS lists them once; tables, declarations, validation and tests are made
 * of that list. */
#ifndef TETHER_BACKEND_H
#define TETHER_BACKEND_H

#include "tether/api.h"
#include "tether/classes.h"
#include "tether/ops.h"

TT_API_BEGIN

/* Every operator, X(name, NAME): the matrix products, and the rest. */
#define TT_OPS_PRODUCTS(X)                                                     \
    X(linear, LINEAR) X(attention, ATTENTION) X(conv, CONV)
#define TT_OPS_ROWS(X)                                                         \
    X(layer_norm, LAYER_NORM) X(rms_norm, RMS_NORM)                            \
    X(channel_norm, CHANNEL_NORM) X(modulate, MODULATE)                        \
    X(gate_add, GATE_ADD) X(add, ADD) X(mul, MUL) X(gelu_tanh, GELU_TANH)      \
    X(silu, SILU) X(rope, ROPE) X(col_mean, COL_MEAN)                          \
    X(col_moment, COL_MOMENT) X(col_blend, COL_BLEND)
#define TT_OPS(X) TT_OPS_PRODUCTS(X) TT_OPS_ROWS(X)

/* The classes of classes.h, TT_CLASS_F32 first. */
#define TT_CLASS_ENUM(name, NAME, ...) TT_CLASS_##NAME,
typedef enum tt_class {
    TT_CLASSES(TT_CLASS_ENUM)
    TT_CLASS_COUNT,
    TT_CLASS_BF16 = TT_CLASS_AMX   /* its first name                          */
} tt_class;

/* What program and plug-in must agree on before one calls the other. Whoever
 * changes a struct below, that of a device or a rule of the table raises the
 * version. */
#define TT_OPS_VERSION 17
typedef struct tt_abi {
    int32_t version;
    int32_t real, table, context, tensor; /* bytes of tt_real, tt_ops, tt_ctx,
                                             tt_tensor                        */
    int32_t args;                         /* bytes of all structs of arguments*/
} tt_abi;
#define TT_ABI_ARGS(op, OP) + (int32_t)sizeof(tt_##op##_args)
#define TT_ABI {TT_OPS_VERSION, (int32_t)sizeof(tt_real),                      \
                (int32_t)sizeof(tt_ops), (int32_t)sizeof(tt_ctx),              \
                (int32_t)sizeof(tt_tensor), 0 TT_OPS(TT_ABI_ARGS)}

/* Several operators in one ("several operators in one" of ops.h), with the bits
 * of calls one after the other. The pairs are all there; the others may be
 * NULL. */
typedef struct tt_fused {
    void (*linear_gelu)(tt_ctx *ctx, const tt_linear_args *a);
    void (*linear_add)(tt_ctx *ctx, const tt_linear_args *a,
                       const tt_gate_add_args *to);
    void (*norm_modulate)(tt_ctx *ctx, const tt_layer_norm_args *a,
                          const tt_modulate_args *to);
    void (*linears)(tt_ctx *ctx, const tt_linear_args *a, int n);
    void (*mlp)(tt_ctx *ctx, const tt_linear_args *up,
                const tt_linear_args *down, const tt_gate_add_args *to);
    void (*norm_linears)(tt_ctx *ctx, const tt_normed *x,
                         const tt_linear_args *a, int n);
    void (*norm_mlp)(tt_ctx *ctx, const tt_normed *x, const tt_linear_args *up,
                     const tt_linear_args *down, const tt_gate_add_args *to);
    void (*attention_add)(tt_ctx *ctx, const tt_attention_args *x,
                          const tt_linear_args *a, const tt_gate_add_args *to);
} tt_fused;

struct tt_ops {
    tt_abi abi;              /* TT_ABI                                        */
    const char *name;
    const char *summary;
    tt_class cls;
    bool by_class;           /* its conv takes by_class and bf16, attention
                                bf16                                          */
    bool time32;             /* the model's sinusoid of the time is float32   */
    /* [TT_CLASS_COUNT]: the same backend in every class, this table included,
     * NULL in a class it has not; NULL altogether: has this class alone      */
    const tt_ops *const *of_class;
    const tt_fused *fused;   /* NULL: pairs are called one after the other    */

    /* The backend's own: an operator finds it as ctx->ops->self. */
    void *self;
    /* Make ready, and fail with a sentence where it cannot run; a backend with
     * memory of its own sets ctx->device (device.h). NULL: it can run
     * everywhere. close undoes what open did; NULL: nothing to undo. */
    tt_status (*open)(tt_ctx *ctx, const tt_ops *ops);
    void (*close)(const tt_ops *ops);
    /* What it calls and the CPU that chose its kernels for, "OpenBLAS 0.3.21
     * ... Zen", into `text`. NULL: all our own. */
    const char *(*library)(tt_ctx *ctx, char *text, size_t size);
    /* Values that N keys and values of a head of width D take as attention
     * lays them out, no fewer than those of fewer keys, and never 0: of the
     * first `n_packed` keys no one keeps anything else. NULL: it does not lay
     * out. So in tables that hand arguments to several others; and who copies a
     * table and replaces its `attention` sets it to NULL, unless that reads
     * `packed` and `n_packed` itself. */
    int64_t (*packed)(tt_ctx *ctx, int64_t N, int64_t D);

#define TT_OPS_FUNCTION(op, OP)                                                \
    void (*op)(tt_ctx *ctx, const tt_##op##_args *a);
    TT_OPS(TT_OPS_FUNCTION)
};

/* The table of that name: "exact" (float builds), "golden", "blas"; NULL when
 * there is none. "blas" is in every build and loads OpenBLAS when it is opened,
 * at the latest at its first matrix product: where the library is missing that
 * fails (TT_EUNSUPPORTED) and the rest of the pass does nothing. */
const tt_ops *tt_ops_find(const char *name);
const tt_ops *tt_ops_default(void);
/* i-th table, the default first, NULL past the end: all of the float class. */
const tt_ops *tt_ops_at(int i);

/* Make the operators of `ctx` those of the table `name`, and see that they can
 * run here: "blas" loads OpenBLAS.
 * Errors   TT_EINVAL names the tables there are; TT_EUNSUPPORTED says what to
 *          install. ctx->ops stays as it was. */
tt_status tt_ops_use(tt_ctx *ctx, const char *name);

/* The same backend in another class; NULL when it has none ("blas", and every
 * backend of a double build, have class f32 alone). */
const tt_ops *tt_ops_class(const tt_ops *ops, tt_class cls);

/* A row of classes.h, in words. */
typedef struct tt_class_info {
    const char *name, *saved, *summary, *machines;
} tt_class_info;
/* "f32", "amx" ...; the name it is saved under; and back, by either one, false
 * when there is no such name. */
const char *tt_class_name(tt_class cls);
bool tt_class_find(tt_class *cls, const char *name);
/* "f32, amx, vdp", for messages. */
const char *tt_class_names(void);

TT_API_END

#endif
