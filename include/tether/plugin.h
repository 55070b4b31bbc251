/* plugin.h: operators from a shared object.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TETHER_PLUGIN_H
#define TETHER_PLUGIN_H

#include "tether/api.h"
#include "tether/arith.h"
#include "tether/backend.h"
#include "tether/fpenv.h"

TT_API_BEGIN

/* A plug-in exports
 *     const tt_ops *tether_backend(int version, const char **arith);
 * and is refused unless the table's member abi is the program's TT_ABI: same
 * version (TT_OPS_VERSION, which is also the argument), same sizes of structs.
 * *arith may be set to a name of tt_arith_at. Null operators of the table are
 * filled with ours; `fused` and `packed` are taken as they are, but a `packed`
 * of ours is dropped. Operator checks look at neither: whole rollouts do, where
 * windows are longer than TT_KEY_BLOCK, as in `tether validate
 * --backend ./mine.so -W 160 -H 160 --latents 12`. While a function
 * runs, ctx->ops is the plug-in's table; it may use ctx->scratch, ctx->nthreads
 * and the tt_ functions of the program; names that begin with tt_ are not for
 * its own. One that gives up with tt_fail has not computed its result: a
 * mismatch; with TT_EUNSUPPORTED it does not do that shape, which is then not
 * checked. A mismatch is one that writes to its inputs, or outside its output.
 * Nothing may be remembered by the address of an input: the operator checks put
 * other values there. */
#define TT_BACKEND_SYMBOL "tether_backend"
typedef const tt_ops *(*tt_backend_fn)(int version, const char **arith);

typedef struct tt_plugin {
    void *handle;
    tt_ops ops;          /* complete                                          */
    const tt_arith *arith;  /* NULL: the plug-in did not say                  */
    int filled;          /* entries the plug-in brought                       */
    bool opened;         /* its `open` was called                             */
    /* The floating-point environment (fpenv.h) that it left when it was loaded,
     * opened and closed. Ours is set again after each. */
    tt_fpenv at_load, at_open, at_close;
} tt_plugin;
tt_status tt_plugin_open(tt_ctx *ctx, tt_plugin *p, const char *path);
void tt_plugin_close(tt_plugin *p);

TT_API_END

#endif
