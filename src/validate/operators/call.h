/* call.h: one operator call as data, so that it can be repeated: on another
 * table, in float64, in another arithmetic, or with a mistake in it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A call is one record for all operators, so that what they share (rows of an
 * input, a second input, parameters) is checked by the same code; call_take and
 * call_run turn the structs of ops.h into it and back. In-place operators read
 * their operand from the call and write to the output given, so a call never
 * changes what it points to. */
#ifndef TT_VALIDATE_CALL_H
#define TT_VALIDATE_CALL_H

#include "validate/verdict.h"

#define OP_KIND(op, OP) OP_##OP,
typedef enum op_kind {
    TT_OPS(OP_KIND) OP_KINDS
} op_kind;
const char *op_name(op_kind k);

/* Rows n of c values are x (and the in-place operand); the rest by operator:
 *   linear        x [n, i=w.dim[1]], w, b            out [n, o=w.dim[0]]
 *   attention     attn (its o is ignored)            out [T, H, D]
 *   conv          conv (its y is ignored)            out [Ho, Wo, Cout]
 *   layer_norm    x [n, c], a = w, b = b or NULL, eps
 *   rms_norm      x, a = w, eps          channel_norm  x, a = gamma
 *   modulate      x in place, a = scale, b = shift, stride, rows
 *   gate_add      x in place, y, a = gate, stride, rows
 *   add, mul      x in place, y; n = 1 row of c values
 *   gelu_tanh, silu   x in place; n = 1 row of c values
 *   rope          x [n = T, H, D], table, pos        c = H*D
 *   col_mean      x [n, c]                           out double [c]
 *   col_moment    x, mean                            out double [c]
 *   col_blend     x in place, mean and gain or neither, target, tau */
typedef struct op_call {
    op_kind kind;
    int64_t n, c;
    const tt_real *x, *y, *a, *b;
    const tt_tensor *w;
    double eps, tau;
    int64_t stride, rows;
    int64_t H, D;
    const tt_rope_table *table;
    const int32_t *pos;
    const double *mean, *gain, *target;
    tt_attention_args attn;
    tt_conv_args conv;
    bool in_place;       /* norms and rope: the output is where x is          */
} op_call;

/* The call that a backend's function was given: args is its tt_<op>_args.
 * Returns where the result is to go. */
void *call_take(op_call *q, op_kind kind, const void *args);

/* Shape of the output, [.., channels]; returns the rank. */
int call_shape(const op_call *q, int64_t *dim);
int64_t call_count(const op_call *q);
/* True when the output is double on every table (col_mean, col_moment). */
bool call_out_is_double(const op_call *q);
size_t call_out_bytes(const op_call *q);     /* of all of it                  */

/* Run it on a table, which ctx->ops is meanwhile. out: call_count values,
 * tt_real or double as above. */
void call_run(tt_ctx *ctx, const tt_ops *ops, const op_call *q, void *out);

/* Is there a function of the table's own, and not ours where it has a gap? All
 * are of a table that has nothing else. */
bool ops_own(const tt_ops *ops, op_kind kind);

/* Multiply-adds of it, about. */
int64_t call_cost(const op_call *q);

/* ---- what a call reads --------------------------------------------------- */

/* K and V count as weights; biases of products, tables and masks as neither. */
enum { ROLE_REST, ROLE_INPUT = 1, ROLE_WEIGHT = 2 };

/* An array, or NULL at its place. */
typedef struct op_operand {
    char name[16];           /* in a case folder: "x", "frame.0"              */
    int role;
    void *place;             /* of its pointer, in the call                   */
    tt_dtype type;           /* TT_NONE: the pointer is to a tt_tensor        */
    int rank;
    int64_t dim[3];
    int64_t stride;          /* between rows of axis 0; 0: packed             */
} op_operand;
enum { OPERANDS_MAX = 22 };  /* of a conv its first 20 frames                 */
typedef struct op_operands {
    int n;
    op_operand of[OPERANDS_MAX];
} op_operands;
void call_operands(const op_call *q, op_operands *l);
const void *operand_at(const op_operand *o);
void operand_set(const op_operand *o, const void *at);
/* Elements from its first to its last, gaps between rows too. */
int64_t operand_span(const op_operand *o);

/* q into own, with fn of every value of the operands that have these roles. In
 * ctx->scratch. */
void call_map(tt_ctx *ctx, op_call *own, const op_call *q, int roles,
              tt_real (*fn)(int how, tt_real x), int how);

/* Everything it reads, and a number that changes when any bit of that does. */
enum { SPANS_MAX = 24 };
typedef struct op_spans {
    int n;
    const void *at[SPANS_MAX];
    size_t size[SPANS_MAX];
} op_spans;
void call_inputs(const op_call *q, op_spans *s);
uint64_t spans_digest(const op_spans *s);

/* The formula of ops.h in float64 from the same inputs, plain loops. */
void call_oracle(tt_ctx *ctx, const op_call *q, double *out);
/* The same as a candidate of that arithmetic has to see it: from inputs of
 * products that do not overflow f16, where it says that it saturates. */
void call_wanted(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                 double *out);

/* What the declared arithmetic makes of it: of two honest programs, the plain
 * one of tt_arith_ops and the golden one, the value farther from `want`. (One
 * order of a sum can be lucky; so can one way to make tf32, of which both are
 * tried.) Where both are lucky it is as far as any order of sums may be
 * (arith_bounds). ours: the golden result, NULL: not known. */
void call_emulate(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                  const double *want, const double *ours, double *out);
/* Our golden operators of its class. */
const tt_ops *arith_ours(const tt_arith *arith);
/* A copy of its result as double, in scratch; NULL after a failure. */
double *call_widen(tt_ctx *ctx, const op_call *q, const void *out);
/* A call's result on a table, as double. */
void call_double(tt_ctx *ctx, const tt_ops *ops, const op_call *q, double *out);

/* What a mistake looks like: try mistakes a port makes, on the same inputs or
 * on the result, until one explains `got`. False when none does.
 *   q        the call, NULL for a tensor of a file
 *   got      the candidate's tensor       want    the right one
 *   v        its shape, and what its arithmetic may err (earned); v->hint
 *            becomes a short sentence ("bias missing", "scaled by 0.5") */
bool hint_find(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
               const double *got, const double *want, tt_verdict *v);

/* Is it right if the arithmetic allowed one thing more (tt_allow)? Then v->hint
 * names that. `last`: those whose limits are wide, else the others. */
bool hint_allowed(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                  const double *got, tt_verdict *v, bool last);

/* Does it cut to 16 bits what the declared arithmetic rounds, its inputs or its
 * results? Then v is a mismatch, however small its errors are, and v->hint says
 * so. */
bool hint_is_cut(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                 const double *got, tt_verdict *v);

/* Results of programs that cut, and of those that round instead, [call_count]
 * each. */
typedef struct hint_cuts {
    int n, trial[6];
    double *even[6], *cut[6];
} hint_cuts;
/* In ctx->scratch; false: there is nothing that could be cut. */
bool hint_cut_make(tt_ctx *ctx, const op_call *q, const tt_arith *arith,
                   hint_cuts *c);
/* How many numbers make the distance of both i. */
double hint_cut_numbers(tt_ctx *ctx, const op_call *q, const hint_cuts *c,
                        int i);

/* A call whose result must have the bits of class cls, and has not. */
typedef struct hint_call {
    tt_ctx *ctx;
    const op_call *q;
    tt_class cls;
    const double *got;
    char *out;
    size_t size;
} hint_call;
/* "it computes class vdp", "split-K ...", into out; false: none has all bits.
 */
bool hint_classes(hint_call *h);

#endif
