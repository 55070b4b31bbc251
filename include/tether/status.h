/* status.h: how anything in tether fails.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A function that can fail returns tt_status (TT_OK = 0) and leaves one human
 * sentence in its context: what, where, expected, found, what to do. The
 * first failure wins and is *sticky*: operators (ops.h) and scratch
 * allocations do nothing while ctx->status is set, so a forward pass reads as
 * a plain list of calls and checks once, at its end. The owner of the context
 * clears it with tt_clear when it wants to go on. */
#ifndef TETHER_STATUS_H
#define TETHER_STATUS_H

#include "tether/api.h"

TT_API_BEGIN

typedef enum tt_status {
    TT_OK = 0,
    TT_EINVAL,       /* an option or argument breaks its documented rule    */
    TT_EIO,          /* the operating system refused: open, read, write     */
    TT_EFORMAT,      /* a file is not what its format demands               */
    TT_ESHAPE,       /* tensors disagree with each other or with the config */
    TT_EUNSUPPORTED, /* genuine, but not something this program does        */
    TT_ENOMEM,       /* out of memory                                       */
    TT_EINTR,        /* the user interrupted; state was saved where promised*/
    TT_END           /* nothing more to produce                             */
} tt_status;

struct tt_ctx;

#if defined(__GNUC__)
#define TT_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define TT_PRINTF(a, b)
#endif

/* Record a failure: sets ctx->status to `s` and formats the sentence, unless
 * an earlier failure is still recorded; control characters and malformed
 * UTF-8, which only names from files bring in, become '?'. Returns
 * ctx->status, so that `return tt_fail(ctx, TT_EIO, "...")` works. */
tt_status tt_fail(struct tt_ctx *ctx, tt_status s, const char *fmt, ...)
    TT_PRINTF(3, 4);

/* Forget the recorded failure. */
void tt_clear(struct tt_ctx *ctx);

/* The sentence of the recorded failure, or "". Valid until the next one. */
const char *tt_message(const struct tt_ctx *ctx);

/* Return from the calling function when `expr` is not TT_OK. */
#define TT_TRY(expr)                                                           \
    do {                                                                       \
        tt_status tt_try_status_ = (expr);                                     \
        if (tt_try_status_ != TT_OK) return tt_try_status_;                    \
    } while (0)

/* A promise between our own functions. Stays on in release builds: a golden
 * model would rather stop than be wrong. */
#define TT_ASSERT(cond)                                                        \
    ((cond) ? (void)0 : tt_assert_failed(#cond, __FILE__, __LINE__))
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void tt_assert_failed(const char *what, const char *file, int line);

TT_API_END

#endif
