/* plugin.c: someone's operators from a shared object.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in may call the tt_ functions of this very program, which exports
 * those and nothing else (plugin.list): an exported golden_silu would take the
 * place of the plug-in's own function of that name. */
#include "core/fpenv.h"
#include "ops/arithmetic.h"
#include "tether/plugin.h"

#include <dlfcn.h>
#include <string.h>

/* Was it compiled against the structs of this program? */
static tt_status check_abi(tt_ctx *ctx, const char *path, const tt_abi *theirs)
{
    const tt_abi ours = TT_ABI;
    const struct {
        const char *what;
        int32_t theirs, ours;
    } part[] = {
        {"version", theirs->version, ours.version},
        {"size of tt_real", theirs->real, ours.real},
        {"size of tt_ops", theirs->table, ours.table},
        {"size of tt_ctx", theirs->context, ours.context},
        {"size of tt_tensor", theirs->tensor, ours.tensor},
        {"size of the operators' arguments", theirs->args, ours.args},
    };
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        if (part[i].theirs != part[i].ours)
            return tt_fail(ctx, TT_EUNSUPPORTED, "%s: is of another operator "
                           "table: the %s is %ld, here %ld; set .abi = TT_ABI "
                           "and rebuild it with this program's headers", path,
                           part[i].what, (long)part[i].theirs,
                           (long)part[i].ours);
    return TT_OK;
}

static tt_status check_fused(tt_ctx *ctx, const tt_fused *f, const char *path)
{
    if (!f || (f->linear_gelu && f->linear_add && f->norm_modulate))
        return ctx->status;
    return tt_fail(ctx, TT_EFORMAT, "%s: has some of the pairs of operators in "
                   "one (tt_fused) and not all; fill all, or leave `fused` "
                   "NULL", path);
}

/* Entries the plug-in left out come from ours of its class, and so does what
 * the model computes in another class. The class is that of the table or, when
 * that says nothing, the one it declares by name. */
static tt_status plugin_complete(tt_ctx *ctx, tt_plugin *p, const char *path,
                                 const tt_ops *theirs)
{
    const bool silent = theirs->cls == TT_CLASS_F32 && p->arith;
    const tt_class cls = silent ? p->arith->cls : theirs->cls;
    const tt_ops *ours = cls < TT_CLASS_COUNT
                             ? tt_ops_class(tt_ops_default(), cls) : NULL;
    tt_ops *t = &p->ops;
    if (!ours)
        return tt_fail(ctx, TT_EFORMAT, "%s: is of class %d, which this "
                       "program does not have", path, (int)cls);
    *t = *theirs;
    TT_TRY(check_fused(ctx, t->fused, path));
    /* what our attention lays out another one cannot read */
    if (t->packed == ours->packed) t->packed = NULL;
    t->cls = cls;
    if (!t->name) t->name = "plug-in";
    if (!t->summary) t->summary = "";
    t->of_class = ours->of_class;
#define TAKE(op, OP)                                                           \
    if (t->op) p->filled++;                                                    \
    else t->op = ours->op;
    TT_OPS(TAKE)
    if (!p->filled)
        return tt_fail(ctx, TT_EFORMAT, "%s: the table it gives is empty; fill "
                       "at least one operator", path);
    return TT_OK;
}

/* The table and the arithmetic that the library gives. */
static tt_status plugin_take(tt_ctx *ctx, tt_plugin *p, const char *path)
{
    tt_backend_fn get = NULL;
    const char *arith = NULL;
    char hint[TT_ARITH_HINT];
    void *symbol = dlsym(p->handle, TT_BACKEND_SYMBOL);
    memcpy(&get, &symbol, sizeof get);   /* ISO C has no cast for this */
    if (!get)
        return tt_fail(ctx, TT_EFORMAT, "%s: does not export %s; a plug-in "
                       "defines const tt_ops *%s(int version, const char "
                       "**arith)", path, TT_BACKEND_SYMBOL, TT_BACKEND_SYMBOL);
    const tt_ops *theirs = get(TT_OPS_VERSION, &arith);
    if (!theirs)
        return tt_fail(ctx, TT_EUNSUPPORTED, "%s: gives nothing to a program "
                       "with version %d of the operator table; rebuild it with "
                       "this program's headers", path, TT_OPS_VERSION);
    TT_TRY(check_abi(ctx, path, &theirs->abi));
    p->arith = arith ? tt_arith_find(arith) : NULL;
    if (arith && !p->arith)
        return tt_fail(ctx, TT_EFORMAT, "%s: declares the arithmetic \"%s\"%s"
                       "; known are %s", path, arith,
                       tt_arith_hint(hint, arith),
                       tt_arith_names());
    return plugin_complete(ctx, p, path, theirs);
}

tt_status tt_plugin_open(tt_ctx *ctx, tt_plugin *p, const char *path)
{
    memset(p, 0, sizeof *p);
    p->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!p->handle)
        tt_fail(ctx, TT_EIO, "%s: cannot be loaded as a plug-in: %s. Build it "
                "with -shared -fPIC, and give a path with a / in it", path,
                dlerror());
    else
        plugin_take(ctx, p, path);
    p->at_load = tt_fpenv_begin_all(ctx->nthreads);
    p->opened = !ctx->status && !tt_ops_open(ctx, &p->ops);
    p->at_open = tt_fpenv_begin_all(ctx->nthreads);
    if (ctx->status) tt_plugin_close(p);
    return ctx->status;
}

void tt_plugin_close(tt_plugin *p)
{
    if (p->opened) tt_ops_close(&p->ops);
    if (p->handle) dlclose(p->handle);
    const tt_fpenv left = tt_fpenv_begin();
    memset(p, 0, sizeof *p);
    p->at_close = left;
}
