/* plain.h: every operator in float64 as plain loops, right or with a mistake.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A fault whose members are all zero is none, and gives the formula of ops.h:
 * that is the oracle. Hints try the others and give them names. */
#ifndef TT_VALIDATE_PLAIN_H
#define TT_VALIDATE_PLAIN_H

#include "ops/arith/arith.h"
#include "validate/operators/call.h"
#include "validate/operators/forms.h"

/* ---- linear -------------------------------------------------------------- */

/* How the weight is read; WEIGHT_SPLIT: inputs [n, i / n] for [i / n, n]. */
typedef enum weight_order {
    WEIGHT_RIGHT, WEIGHT_TRANSPOSED, WEIGHT_HALVES, WEIGHT_SPLIT
} weight_order;

typedef struct linear_fault {
    weight_order weight;
    int64_t split;            /* n of WEIGHT_SPLIT                            */
    double bias;              /* times that it is added too often             */
    int64_t shift;            /* channels to that whose bias is taken         */
    bool row_bias;            /* that of the row's number                     */
    int64_t head, tail;       /* terms left out at the begin, at the end      */
    bool narrow;              /* sums are kept in `sums`                      */
    tt_format sums;
} linear_fault;

/* ---- conv ---------------------------------------------------------------- */

/* Which tap stands where another belongs. */
typedef enum tap_order {
    TAPS_RIGHT, TAPS_FLIPPED, TAPS_TIME_BACK, TAPS_TRANSPOSED,
    TAPS_CHANNELS_FIRST, TAPS_TIME_LAST, TAPS_OUT_LAST, TAPS_ALL_BACK,
    TAP_ORDERS
} tap_order;

/* What stands beyond the edges of a picture, or how it is doubled. */
typedef enum picture_fault {
    PICTURE_RIGHT, EDGE_REPEATED, EDGE_REFLECTED, BILINEAR, BILINEAR_CORNERS
} picture_fault;

typedef struct conv_fault {
    double bias;              /* times that it is added too often             */
    int top, left;            /* added to the padding                         */
    int up, stride;           /* instead of those, when not 0                 */
    bool sides;               /* height and width of the input exchanged      */
    const int *frame;         /* [kt] that stands at each; -1: zeros          */
    bool first;               /* the first frame repeated where zeros belong  */
    picture_fault picture;
    tap_order taps;
    int64_t drop;             /* last input channels that are left out        */
    int64_t without;          /* a tap, from 1 on, that is left out           */
} conv_fault;

/* ---- attention ----------------------------------------------------------- */

typedef enum bias_fault {
    BIAS_RIGHT, BIAS_NONE, BIAS_TRANSPOSED, BIAS_EARLY, BIAS_LATE, BIAS_LAYOUT,
    BIAS_SCALED, BIAS_HEAD0
} bias_fault;

typedef enum sum_fault {
    SUM_RIGHT, SUM_NONE, SUM_MEAN, SUM_UNDIVIDED, SUM_OVER_QUERIES,
    SUM_OVERFLOW, SUM_SIGMOID, SUM_HIDDEN_NAN
} sum_fault;

typedef enum mask_fault { MASK_RIGHT, MASK_IGNORED, MASK_INVERTED } mask_fault;

/* Which head's keys, or values, head h has: mul ((h / div + add) mod mod), div
 * and mul 1, mod H where they are 0. */
typedef struct head_map {
    int64_t add, div, mod, mul;
} head_map;

typedef struct attention_fault {
    bool scaled;              /* logits by `scale` instead                    */
    double scale;
    int64_t head, tail;       /* keys left out at the begin, at the end       */
    int causal;               /* 1: keys after the query are hidden, -1: those
                                 before it                                    */
    head_map K, V;
    bool kv_packed, q_packed; /* strides are taken for H*D                    */
    bias_fault bias;
    mask_fault mask;
    int64_t longer;           /* keys by which the valid length is off        */
    sum_fault sum;
    tt_format weight;         /* format of the softmax weights ...            */
    bool weight_sum;          /* ... whose sum is of the rounded ones         */
    bool swap_kv;
    double cap;               /* logits are cap tanh(logit / cap), when not 0 */
    int64_t block;            /* keys; sums are not rescaled after it ...     */
    bool sum_rescaled;        /* ... but that of the weights is               */
    bool not_self;            /* no query attends to its own key              */
    int64_t zeros;            /* keys and values of zeros that are attended   */
} attention_fault;

void plain_attention(tt_ctx *ctx, const tt_attention_args *a,
                     const attention_fault *f, double *out);

/* ---- norms --------------------------------------------------------------- */

typedef enum affine_fault {
    AFFINE_RIGHT, AFFINE_NONE, AFFINE_NO_BIAS, AFFINE_ONE_PLUS, AFFINE_TWICE,
    AFFINE_BIAS_FIRST, AFFINE_FIRST_HEAD
} affine_fault;
/* What the mean is subtracted from: x, its square in the sum, or one alone. */
typedef enum mean_fault {
    MEAN_RIGHT, MEAN_NONE, MEAN_OF_X, MEAN_OF_SQUARE, MEAN_BOTH
} mean_fault;
/* Elements that share a statistic. */
typedef enum group_fault { GROUP_ROW, GROUP_COLUMN, GROUP_ALL } group_fault;
typedef enum single_fault { SINGLE_NOT, SINGLE_SUMS, SINGLE_SQUARES }
    single_fault;

typedef struct norm_fault {
    mean_fault mean;
    double count;             /* what sums of squares are divided by          */
    bool other_eps;           /* eps is `eps` instead                         */
    double eps;
    bool outside;             /* eps added to the root                        */
    bool no_root;
    double factor, floor;     /* in place of sqrt(C), 1e-12 of a channel norm */
    affine_fault affine;
    group_fault group;
    int64_t heads;            /* that are normalised for themselves, 0: one   */
    int64_t part;             /* leading elements that alone are counted      */
    single_fault single;      /* float32 sums; of E[x^2] - E[x]^2 as well     */
} norm_fault;

void plain_norm(const op_call *q, const norm_fault *f, double *out);

/* ---- rope ---------------------------------------------------------------- */

/* A pair is (a cos - b sin, a sin + b cos): the signs of these four terms, sin
 * and cos exchanged, a in the second that the first has replaced. */
enum rope_form { ROPE_A_COS = 1, ROPE_B_SIN = 2, ROPE_A_SIN = 4, ROPE_B_COS = 8,
                 ROPE_EXCHANGED = 16, ROPE_IN_PLACE = 32, ROPE_FORMS = 64 };

/* Angles come from positions, not from the table, when there is a fault: most
 * mistakes are in them. */
typedef struct rope_fault {
    double base[3];           /* of each axis, when not 0: instead of 10000   */
    double more[3];           /* positions are times 1 + this                 */
    int step[3];              /* added to the position of each axis           */
    const int *axis;          /* [3] whose position turns each group of pairs */
    bool halves;              /* pairs (j, j + D/2)                           */
    unsigned form;            /* of a pair, bits of rope_form                 */
    bool single;              /* angles in float32                            */
    const int64_t *pairs;     /* [3] of each axis                             */
    bool one_spectrum;        /* theta from the index over all pairs          */
    bool by_row;              /* positions counted by token                   */
    tt_format table;          /* of sines and cosines; TT_FMT_F32: not        */
    int64_t from, to;         /* pairs of a head that alone are rotated       */
    int64_t line;             /* columns of a grid are counted in lines of so
                                 many; 0: as wide as it is                    */
    int64_t most;             /* positions end here; 0: nowhere               */
    const uint8_t *pair;      /* [D/2] whose angle each pair has; NULL: own   */
    const int *grid;          /* [3] axes, slowest first, by which tokens are
                                 counted; NULL: frame, row, column            */
    int64_t heads;            /* that alone are rotated; 0: all               */
} rope_fault;

void plain_rope(const op_call *q, const rope_fault *f, double *out);

/* ---- element-wise operators ---------------------------------------------- */

/* Which entry of scale, shift or gate a row uses. */
typedef enum entry_fault {
    ENTRY_RIGHT, ENTRY_FIRST, ENTRY_LAST, ENTRY_NEXT, ENTRY_BEFORE,
    ENTRY_MODULO, ENTRIES
} entry_fault;

typedef struct element_fault {
    element_form form;        /* forms.h                                      */
    entry_fault a, b;         /* of scale or gate, of shift                   */
    bool packed;              /* the stride between entries is taken for C    */
} element_fault;

void plain_elements(const op_call *q, const element_fault *f, double *out);

/* ---- statistics of columns ----------------------------------------------- */

typedef struct column_fault {
    double factor;            /* of the result, when not 0                    */
    bool root;                /* of the result                                */
    bool narrow;              /* sums are kept in `sums`, rows ascending      */
    tt_format sums;
    int64_t head, tail;       /* rows left out at the begin, at the end       */
    bool counted;             /* a mean over the rows that take part          */
    bool first_twice;
    bool uncentred, distance; /* of the squares: no mean, no square           */
} column_fault;

void plain_columns(const op_call *q, const column_fault *f, double *out);

/* ---- any of them --------------------------------------------------------- */

/* A weight's values; NULL after a failure. */
const tt_real *plain_weight(tt_ctx *ctx, const tt_tensor *w);

/* The call with a fault of its operator's type; NULL: none. */
void plain_call(tt_ctx *ctx, const op_call *q, const void *fault, double *out);

#endif
