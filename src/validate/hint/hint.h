/* hint.h: trying explanations of a wrong tensor.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * An explanation is a trial: the tensor a certain mistake would have given.
 * hint_try measures what is left of the error under it. Families of trials
 * (linear.c, ...) only compute trials; what counts as explained, and which
 * of several explanations is the best, is decided in hint.c alone. */
#ifndef TT_VALIDATE_HINT_H
#define TT_VALIDATE_HINT_H

#include "validate/operators/plain.h"

typedef struct hint {
    tt_ctx *ctx;
    const op_call *q;           /* NULL: a tensor of a file ...               */
    const char *name;           /* ... of this name; NULL: not known          */
    const double *got, *want;   /* [n], rows of c                             */
    int64_t n, c;
    int rank;
    int64_t dim[TT_MAX_RANK];
    double earned;              /* what the arithmetic may err, absolute      */
    double error;               /* rms of got - want                          */
    double top;                 /* max |want|, finite elements                */
    bool *wrong;                /* [n] elements outside what is earned        */
    int64_t nwrong;
    double *trial;              /* [n] scratch for families                   */
    double best;                /* rms left by the best explanation           */
    int maps;                   /* that were tried on all elements            */
    bool fits, partly;          /* partly: explains the wrong elements only   */
    struct chain *chain;        /* what comes after q; NULL: nothing          */
    struct hint *end;           /* the tensor at its end, which is wrong      */
    const void *fault;          /* of the trial under way, NULL: a call       */
    char text[160];
} hint;

/* Does `trial` [n] explain got? The first of equally good ones stays, so the
 * simpler ones are tried first. */
void hint_try(hint *h, const double *trial, const char *fmt, ...)
    TT_PRINTF(3, 4);
/* The same with the result of a changed call, of a fault (plain.h) in the
 * operator of h->q, or of both. */
void hint_try_plain(hint *h, const op_call *q, const void *fault,
                    const char *fmt, ...) TT_PRINTF(4, 5);
#define hint_try_call(h, q, ...) hint_try_plain((h), (q), NULL, __VA_ARGS__)
#define hint_try_fault(h, f, ...) hint_try_plain((h), (h)->q, (f), __VA_ARGS__)
/* What is left, of a chain at its end, when the call under trial is q with this
 * fault. */
double hint_left(hint *h, const op_call *q, const void *fault);
/* The number from lo to hi that leaves least: steps first, then the best one's
 * surroundings, ever closer. False: nothing is looked for any more. */
typedef double (*hint_left_fn)(hint *h, void *user, double v);
bool hint_solve(hint *h, hint_left_fn left, void *user, double lo, double hi,
                int steps, double *best);
/* A table of faults, tried in its order; lines that are not `when` are left
 * out. Each family has a macro F that makes a fault of its operator. */
typedef struct hint_trial {
    bool when;
    const void *fault;
    const char *what;
} hint_trial;
void hint_try_each(hint *h, const hint_trial *list, size_t n);
#define HINT_TRY_EACH(h, list)                                                 \
    hint_try_each((h), (list), sizeof(list) / sizeof *(list))
/* How many of n terms a loop may leave out: one, half, what is past whole
 * blocks, a block, all but one. Different numbers from 1 to n - 1; how many. */
enum { PARTS_MOST = 30 };
int hint_parts(int64_t n, int64_t part[PARTS_MOST]);
/* The operator did nothing: its input is its result. */
void hint_not_applied(hint *h);
/* True when what is left is within what the arithmetic may err: no further
 * trial can be better. */
bool hint_settled(const hint *h);
/* n doubles of scratch; NULL after a failure. */
double *hint_doubles(hint *h, int64_t n);

/* Families. Those of operators need h->q. */
void hint_linear(hint *h);
void hint_attention(hint *h);
void hint_conv(hint *h);
void hint_norm(hint *h);          /* layer, rms, channel                      */
void hint_pointwise(hint *h);     /* modulate ... silu                        */
void hint_forms(hint *h);         /* of these, and of col_blend               */
void hint_rope(hint *h);
void hint_columns(hint *h);       /* col_mean, col_moment, col_blend          */
void hint_rounding(hint *h);      /* inputs in a narrower format, any operator*/
void hint_values(hint *h);        /* of the data alone: signs, factors, sums  */
void hint_order(hint *h);         /* of the data alone: what stands where     */

/* An array [dim] that lies in memory with its axes in another order: element i
 * of what lies there is element hint_axes_from(a, i) of the right one. */
enum { AXES_MOST = 6 };
typedef struct hint_axes {
    int n;
    int64_t dim[AXES_MOST];
    int order[AXES_MOST];
    bool both;               /* written so, or read so                        */
    char what[224];
} hint_axes;
int64_t hint_axes_from(const hint_axes *a, int64_t i);
typedef void (*hint_axes_fn)(void *user, const hint_axes *a);
/* All orders of its axes, of rows as frames, height and width, and of its last
 * axis as two or three. */
void hint_all_axes(int rank, const int64_t *dim, hint_axes_fn fn, void *user);
/* Of rows of patches: frame, row, column, channel, and both of the patch. */
void hint_patch_axes(int64_t rows, int64_t c, hint_axes_fn fn, void *user);

/* "rows", "head": what stands along an axis. */
const char *hint_axis(const hint *h, int axis, bool many, char *buf,
                      size_t size);
/* "only rows 12 to 16 of 17", "" when nearly everything is wrong. */
void hint_where(const hint *h, char *out, size_t size);
/* What stands at the wrong elements when no trial fits; false: nothing to be
 * said. */
bool hint_place(hint *h, char *out, size_t size);
/* Last resort: error that looks like rounding to fewer bits. */
bool hint_noise(const hint *h, char *out, size_t size);

/* The same call for a part of its output that holds the worst element, when
 * the whole is too much work to be repeated many times. Changes q, got, want,
 * n, dim of h. */
void hint_narrow(hint *h, op_call *q, int64_t worst);

#endif
