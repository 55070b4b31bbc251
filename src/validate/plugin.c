/* plugin.c: somebody's operators from a shared object.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in may call the tt_ functions of this very program, which exports
 * those and nothing else (plugin.list): an exported golden_silu would take the
 * place of the plug-in's own function of that name. */
#include <dlfcn.h>
#include <string.h>

#include "tether/validate.h"

/* Entries the plug-in left out come from `ours`; the function pointers of a
 * table stand behind its two strings. */
static int complete(tt_ops *t, const tt_ops *theirs, const tt_ops *ours)
{
    int filled = 0;
    *t = *ours;
    t->name = theirs->name ? theirs->name : "plug-in";
    t->summary = theirs->summary ? theirs->summary : "";
#define TAKE(f) if (theirs->f) t->f = theirs->f, filled++
    TAKE(linear);
    TAKE(attention);
    TAKE(conv);
    TAKE(layer_norm);
    TAKE(rms_norm);
    TAKE(channel_norm);
    TAKE(modulate);
    TAKE(gate_add);
    TAKE(add);
    TAKE(mul);
    TAKE(gelu_tanh);
    TAKE(silu);
    TAKE(rope);
    TAKE(col_mean);
    TAKE(col_moment);
    TAKE(col_blend);
#undef TAKE
    return filled;
}

tt_status tt_plugin_open(tt_ctx *ctx, tt_plugin *p, const char *path)
{
    tt_backend_fn get = NULL;
    const char *arith = NULL;
    memset(p, 0, sizeof *p);
    p->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!p->handle)
        return tt_fail(ctx, TT_EIO, "%s: cannot be loaded as a plug-in: %s. "
                       "Build it with -shared -fPIC, and give a path with a / "
                       "in it", path, dlerror());
    void *symbol = dlsym(p->handle, TT_BACKEND_SYMBOL);
    memcpy(&get, &symbol, sizeof get);   /* ISO C has no cast for this */
    if (!get) {
        tt_plugin_close(p);
        return tt_fail(ctx, TT_EFORMAT, "%s: does not export %s; a plug-in "
                       "defines const tt_ops *%s(int abi, const char **arith)",
                       path, TT_BACKEND_SYMBOL, TT_BACKEND_SYMBOL);
    }
    const tt_ops *theirs = get(TT_BACKEND_ABI, &arith);
    if (!theirs) {
        tt_plugin_close(p);
        return tt_fail(ctx, TT_EUNSUPPORTED, "%s: was not built for version %d "
                       "of the operator table; rebuild it with this program's "
                       "headers", path, TT_BACKEND_ABI);
    }
    p->filled = complete(&p->ops, theirs, tt_ops_default());
    if (!p->filled) {
        tt_plugin_close(p);
        return tt_fail(ctx, TT_EFORMAT, "%s: the table it gives is empty; fill "
                       "at least one operator", path);
    }
    p->arith = arith ? tt_arith_find(arith) : NULL;
    if (arith && !p->arith) {
        tt_fail(ctx, TT_EFORMAT, "%s: declares the arithmetic \"%s\"; known "
                "are f32, tf32, f16, bf16, f16-stored, bf16-stored", path,
                arith);
        tt_plugin_close(p);
    }
    return ctx->status;
}

void tt_plugin_close(tt_plugin *p)
{
    if (p->handle) dlclose(p->handle);
    memset(p, 0, sizeof *p);
}
