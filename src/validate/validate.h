/* validate.h: what the modules use of tether/validate.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_VALIDATE_VALIDATE_H
#define TT_VALIDATE_VALIDATE_H

#include "cache/policy.h"
#include "ops/arithmetic.h"
#include "ops/backend.h"
#include "tether/rollout.h"
#include "tether/plugin.h"
#include "tether/validate.h"

/* ---- metrics ------------------------------------------------------------- */

/* One tensor against another. ULP are units of the last place of float32 at
 * the wanted value. Elements where both are the same NaN or infinity count as
 * equal; where only one is, they count in `broken` and in nothing else. */
typedef struct tt_metrics {
    int64_t n;
    double max_abs, rel_l2;       /* rel_l2 = |got - want| / |want|           */
    double snr_db, cosine;
    double top;                   /* max |want|                               */
    double max_ulp;
    int64_t broken;               /* NaN or infinity on one side only         */
    int64_t nan, inf, denormal;   /* in got                                   */
    int64_t differ;               /* elements that are not equal              */
    int64_t worst;                /* index of max_abs, or of the first broken */
} tt_metrics;
void tt_metrics_measure(tt_metrics *m, const double *got, const double *want,
                        int64_t n);

/* ---- verdicts ------------------------------------------------------------ */

/* How many times the error of its declared arithmetic a backend may make. */
#define TT_SLACK 8

/* Against our golden result, not the oracle; NaN is equal to NaN. */
typedef enum tt_bits { TT_BITS_UNKNOWN, TT_BITS_EQUAL, TT_BITS_DIFFER } tt_bits;

typedef struct tt_verdict {
    char path[224];      /* "chunk.0/step.1/block.2/self_attn.q#linear.3", or
                            the tensor's name in the file                     */
    const char *op;      /* operator, "" for a tensor of a file               */
    tt_outcome outcome;
    tt_bits bits;
    int rank;
    int64_t dim[TT_MAX_RANK];
    tt_metrics m;        /* against the oracle                                */
    double earned;       /* error of the declared arithmetic at the worst row */
    double ratio;        /* candidate's error over the allowed one; > 1 fails */
    char where[64];      /* index of the worst element, "[3, 0, 17]"          */
    char hint[192];      /* what the mistake looks like, "" if nothing fits   */
} tt_verdict;

/* Compare with our golden result: bits; and where `arith` is checked by its
 * bits, outcome, metrics, ratio, and where: the first element that differs. */
void tt_verdict_bits(tt_verdict *v, const tt_arith *arith, const double *got,
                     const double *ours, int64_t n);

/* What a tensor is: rows and no more, the result of one operator, or of a
 * segment of a model. */
typedef enum tt_verdict_of {
    TT_OF_ROWS, TT_OF_CALL, TT_OF_SEGMENT
} tt_verdict_of;

/* Check one tensor of v's shape: outcome, metrics, earned, ratio, where. A row
 * is the last axis, and unless of a call wider while it has under 32 values.
 *   got      the candidate      want     the oracle, float64
 *   emul     as far from want as an honest program of the declared arithmetic
 *            may be (src/ops/arith/bound.c)
 * Rule   e_r = max over row r of |emul - want|, at least the relative error
 *        of the whole tensor (rms) times the row's rms, at least half an ulp of
 *        the stored format at every element. Pass when |got - want| <=
 *        TT_SLACK e_r everywhere, the rms error of the tensor is <= TT_SLACK/4
 *        times that of emul (TT_SLACK/2 with fewer than 64 rows, and never
 *        less than TT_SLACK/2 of the half ulps), and NaN and infinity stand
 *        where they stand in emul.
 * call   Where products are of 16 bits slopes and columns are checked too.
 *        Slope of got on want, row by row: errors of rounding have either sign
 *        and leave next to none; numbers that are cut err by a third of a unit
 *        towards 0. It may be half a relative error of the arithmetic away from
 *        1 or from that of emul, and 8 times what chance makes of as many
 *        values. Column, along the last axis, of at least 16: its rms error may
 *        be TT_SLACK/2 times that of emul there, so that a small channel is not
 *        hidden by large ones.
 * segment  Programs round at other places inside: four times that for slopes,
 *        twice for columns, which have fewer than four axes. Errors may be few
 *        numbers, of which emul has a small one by chance (a softmax between
 *        two keys, a large activation): a row borrows the largest error of
 *        emul's rows, each relative to itself or to a quarter of the tensor.
 * f16    where emul is not finite but want is, as in emul, infinity or 65504 of
 *        want's sign, or within the limit of want. All but the last say
 *        nothing: the hint counts them, a tensor of nothing else is
 *        TT_UNCHECKED. */
void tt_verdict_check(tt_verdict *v, const tt_arith *arith, const double *got,
                      const double *want, const double *emul, int64_t n,
                      tt_verdict_of of);

/* ---- report -------------------------------------------------------------- */

/* One point of an error-growth curve: relative L2 error of `x0` of a chunk. */
typedef struct tt_growth {
    const char *curve;   /* "teacher forced", "free running"                  */
    int64_t chunk;
    double rel_l2, earned;
} tt_growth;

/* The arithmetic, of a report made before it was known (NULL). */
void tt_report_declare(tt_report *r, const tt_arith *arith);
/* Its backend is about to be closed: the last call that may hang. */
void tt_report_closing(tt_report *r);
/* What a report may be told before the work begins; texts are not copied. */
typedef struct tt_report_wishes {
    const char *only;    /* path: its verdict alone is kept, and other calls of
                            a model are not made by the candidate; NULL: all  */
    const char *cases;   /* folder, made, for calls that fail, the first of each
                            operator in a model, as cases (tt_cases_operators)
                            with its result, got.safetensors; NULL: none      */
    bool failures_alone; /* the JSON report lacks what passed                 */
    /* called now and then while tt_validate_isolated waits, with what is
     * checked at the moment; NULL: no one                                    */
    void (*place)(void *user, const char *path);
    void *user;
} tt_report_wishes;
tt_report_wishes *tt_report_wish(tt_report *r);
/* What fails and is named by a line of this file, a pattern as of the shell
 * (op.linear.tiny, chunk.*.x0), is TT_EXPECTED from now on: no failure. A note
 * says which lines name nothing that fails; # begins a comment.
 * Errors  TT_EIO */
tt_status tt_report_expect(tt_ctx *ctx, tt_report *r, const char *path);
/* Copies the verdict. One that is TT_UNCHECKED counts as not compared. When
 * `got` is not NULL (both [n] of v's shape, kept only for a bounded number of
 * failures of more than three elements) the error's map over (row, column) goes
 * into the HTML page. */
void tt_report_add(tt_report *r, const tt_verdict *v, const double *got,
                   const double *want);
void tt_report_grow(tt_report *r, const tt_growth *g);
/* A line of context ("seed 1234", "cases 57"), in order. */
void tt_report_note(tt_report *r, const char *fmt, ...) TT_PRINTF(2, 3);
/* What was run, for the head of the HTML page alone ("command", "tether
 * validate ..."), in order. `name` is kept, not copied; NULL: a line of
 * context. One that is name and text says the same and is left out of that
 * page. */
void tt_report_fact(tt_report *r, const char *name, const char *fmt, ...)
    TT_PRINTF(3, 4);

int64_t tt_report_compared(const tt_report *r); /* checked, with elements     */
/* Tensors that are equal to ours in every bit; *of: of how many it is known. */
int64_t tt_report_equal(const tt_report *r, int64_t *of);
/* First failure in the order added, or NULL. */
const tt_verdict *tt_report_first(const tt_report *r);
/* The failure that is farthest out of its limits, at least ten times as far as
 * the first, where each is checked for itself (operators on right inputs, dumps
 * whose tensors are given to ours); NULL: the first is, or says as much. */
const tt_verdict *tt_report_largest(const tt_report *r);

tt_status tt_report_junit(tt_ctx *ctx, const tt_report *r, const char *path);
tt_status tt_report_html(tt_ctx *ctx, const tt_report *r, const char *path);

/* ---- a process of its own ------------------------------------------------ */

/* Work that opens a backend, declares its arithmetic and adds to the report. */
typedef tt_status (*tt_isolated_fn)(tt_ctx *ctx, tt_report *r, void *user);

/* Do `work` in a child process, and have in `r` what it adds there, as if it
 * were done here. A backend that crashes, exits, or stays in one call for more
 * than `seconds` (0: for ever) is a mismatch that names operator, case and
 * what happened; another child goes on after that case. What it prints
 * goes to standard error. To be called while the program has
 * one thread, before anything is computed. tt_opcheck, the calls and the
 * rollout may be called once each in `work`, in that order.
 * Errors   what `work` recorded; TT_EUNSUPPORTED: a death while it was opened;
 *          TT_EIO: no process to be had. */
tt_status tt_validate_isolated(tt_ctx *ctx, tt_report *r, tt_isolated_fn work,
                               void *user, double seconds);

/* ---- dumps --------------------------------------------------------------- */

/* Two safetensors files of named tensors, one written by another program. */
typedef struct tt_dump_options {
    const char *got, *want;  /* theirs; ours, whose data order is the order of
                                execution                                     */
    const char *oracle;      /* ours in float64; NULL: `want` serves as one   */
    const char *emul;        /* ours in the declared arithmetic; NULL: one
                                rounding to it of `want`, which is right for
                                a dump that was rounded and nothing else. The
                                same as `want`: honest results of the declared
                                arithmetic; what `oracle` lacks is then not
                                checked                                       */
    const tt_arith *arith;   /* NULL: every bit counts, types too             */
    const char *filter;      /* glob of names; NULL: all                      */
    const char *prefix;      /* put before the paths of verdicts; NULL: ""    */
    const char *curve;       /* curve for tt_report_grow; NULL: none          */
    bool partial;            /* theirs may lack kinds of names altogether     */
    bool extra_fails;        /* a name only they have is a difference         */
    bool injected;           /* ours took their tensors at every point, so each
                                is compared for itself and nothing follows
                                from a tie                                    */
    bool quiet;              /* curve and notes only, no verdicts             */
    bool same_run;           /* our program made all: nothing is missing, and
                                notes say nothing                             */
    const char *operands;    /* the case folder whose operator made "y": its
                                mistakes are tried on its inputs; NULL: none  */
} tt_dump_options;

/* Compare in ours' order. Shapes may differ by axes of 1 and by axes merged
 * ([T, H, D] against [1, T, H*D]). Integers must be equal, GRAB's picks
 * (grab.keep) up to ties: every frame they kept in place of another
 * had a score within TT_SLACK times the error of the declared arithmetic of the
 * other's, and is among the best of their own. What a tie can reach and differs
 * is TT_UNCHECKED; all else is checked as before. Where o->emul picked other
 * frames, its distance from ours is the limit: what is farther off is a
 * mismatch, what is not and has other bits TT_UNCHECKED. Notes name what was
 * covered.
 * Errors  TT_EIO, TT_EFORMAT: a file that cannot be read. */
tt_status tt_dump_compare(tt_ctx *ctx, tt_report *r, const tt_dump_options *o);

/* Why a tensor of a dump is wrong, found in one more run of ours with theirs
 * given at every point: the mistakes of every operator that lies between it and
 * the tensor before it are tried, as for a plug-in.
 *   r      after tt_dump_compare with `injected`
 *   v      the failure: r's first or its largest; *out is NULL, and the rest
 *          does nothing, where there is nothing to explain
 *   ops    the operators of that run: ours, and the call that is looked for is
 *          recorded. They take the place of ctx->tap and call it.
 *   close  the hint goes to that failure, when one was found; r NULL: to
 *          no one */
typedef struct tt_explain tt_explain;
tt_status tt_explain_open(tt_ctx *ctx, tt_explain **out, const tt_report *r,
                          const tt_verdict *v, const char *theirs);
/* The same after a pass, of the run whose emulation is the file `emul`: close
 * notes which mistakes would have passed as well. */
tt_status tt_explain_pass(tt_ctx *ctx, tt_explain **out, const tt_report *r,
                          const char *emul);
const tt_ops *tt_explain_ops(tt_explain *e);
void tt_explain_close(tt_explain *e, tt_report *r);

/* True when `t` has the elements of [dim] in the same order: shapes equal up to
 * axes of 1 and to merging neighbours. */
bool tt_shape_fits(const tt_tensor *t, int rank, const int64_t *dim);

/* The operators that make the value of a tap from the taps before it: "rope,
 * attention, linear" for ".../self_attn"; "" when the name is not ours. */
const char *tt_tap_operators(const char *path);

/* ---- cases --------------------------------------------------------------- */

/* Case folders "<dir>/op_<operator>_<kind>_<i>", `each` per operator that is
 * defined on such inputs (cases.c says what is in one). kind: "all", or one, of
 * which "normal" is not named. kit: for tools/python/kit/check.py.
 * Errors  TT_EINVAL: no such kind. */
tt_status tt_cases_operators(tt_ctx *ctx, const char *dir, uint64_t seed,
                             int64_t each, const char *kind, bool kit);
/* The tensors of a dump whose names match one of the globs, with commas, as a
 * file of their own; *count of them. */
tt_status tt_dump_cut(tt_ctx *ctx, const char *out, const char *dump,
                      const char *globs, int64_t *count);

/* ---- bits ---------------------------------------------------------------- */

/* SHA-256 of results of ctx->ops: row-major, little-endian. */
typedef void (*tt_digest_fn)(void *user, const char *name, const char *tensor,
                             const char *sha);
/* Of the cases that tt_cases_operators writes: "op_linear_0", "y", ... */
tt_status tt_digest_operators(tt_ctx *ctx, uint64_t seed, int64_t each,
                              tt_digest_fn fn, void *user);
struct tt_model_parts;
/* Of named points of a prompt, a rollout, a decode and an encode, under the
 * name "model": embeddings, x0 of every step, scores and picks, pictures. */
tt_status tt_digest_model(tt_ctx *ctx, const struct tt_model_parts *m,
                          tt_digest_fn fn, void *user);

/* ---- operator checks ----------------------------------------------------- */

/* The cases that these options choose, in their order; arith is not asked. */
typedef void (*tt_case_fn)(void *user, const char *op, const char *name);
tt_status tt_opcheck_list(tt_ctx *ctx, const tt_opcheck_options *opt,
                          tt_case_fn fn, void *user);

/* ---- the model, operator by operator ------------------------------------- */

/* What a model check runs. All parts are borrowed; those that are NULL are not
 * checked, and the report says so. */
typedef struct tt_model_parts {
    const tt_dit *dit;
    const tt_vae *vae;             /* either half, or both                    */
    bool decoder, encoder;         /* which of them                           */
    struct tt_umt5 *encoder_text;
    const struct tt_tokenizer *tokenizer;
    const char *prompt;
    tt_rollout_options rollout;    /* sizes, policy, seed                     */
} tt_model_parts;

/* Prompt, rollout, decoding and encoding with every operator call shadowed.
 * Without a text encoder the prompt's embedding is noise of the right shape.
 * Paths  "text/...", "chunk.i/step.j/block.k#linear.2", "vae/frame.0/...". */
tt_status tt_validate_calls(tt_ctx *ctx, tt_report *r, const tt_ops *candidate,
                            const tt_arith *arith, const tt_model_parts *m);

/* Rollouts next to each other, chunk after chunk: ours, the candidate's started
 * anew from our state before every chunk (teacher forced: errors do not
 * compound), the candidate's running free, and both with the emulated
 * arithmetic. Adds the growth curves of both kinds, and verdicts of the
 * teacher-forced one as tt_dump_compare has them: latents of every step, GRAB's
 * picks and what the KV cache holds after the chunk.
 * `state` names a file to write (a rollout's saved state, removed after, with
 * dumps of that name and a number). */
tt_status tt_validate_rollout(tt_ctx *ctx, tt_report *r,
                              const tt_ops *candidate, const tt_arith *arith,
                              const tt_model_parts *m, const char *state);

#endif
