/* turned.c: --turned-dir: weights laid out beforehand for this CPU's kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The key of what is kept: the layout's version, samples of all values, as in
 * the identity of a run, and size and times of the files, which change with any
 * other value.
 * Next    io/turned.c */
#include "io/weights.h"
#include "run/identity.h"
#include "run/parts.h"

/* Of the order of values in a file; another one is another key. */
#define VERSION "tether-turned 1"

static void make_key(char hex[65], const tt_weights *w)
{
    tt_sha256 s;
    tt_sha256_init(&s);
    tt_sha256_add(&s, VERSION, sizeof VERSION);
    weights_stamp(&s, w);
    identity_weights(&s, w);
    tt_sha256_hex(&s, hex);
}

/* What is turned; who is told, and since when. */
typedef struct turning {
    tt_ctx *ctx;
    const tt_model_paths *paths;
    const model_part *part;
    int64_t lanes;
    double start;
} turning;

static void no_warning(void *user, const char *sentence)
{
    (void)user;
    (void)sentence;
}

/* What could not be loaded is refused now, and not behind gigabytes. */
static tt_status check(void *user)
{
    const turning *t = user;
    tt_model_paths plain = *t->paths;
    void (*const warn)(void *, const char *) = t->ctx->warn;
    plain.turned_dir = NULL;
    t->ctx->warn = no_warning; /* it will be said again */
    t->part->check(t->ctx, &plain);
    t->ctx->warn = warn;
    return t->ctx->status;
}

static void progress(void *user, const char *path, int64_t done, int64_t total)
{
    const turning *t = user;
    const bool large = total >= 1000000000;
    if (!done)
        run_say(t->part->events, false, "turning weights for kernels of %d "
                "lanes: %.3g %s in %s", (int)t->lanes,
                (large ? 1e-9 : 1e-6) * (double)total, large ? "GB" : "MB",
                path);
    const tt_run_work work = {.done = (double)done, .total = (double)total,
                              .seconds = tt_now() - t->start};
    run_work(t->part->events, work, "turning weights");
}

/* Lanes of which kernels of that class take turned weights. */
static int64_t lanes_in(tt_ctx *ctx, tt_class cls)
{
    const tt_ops *before = tt_class_begin(ctx, cls);
    const bool asks = !ctx->status && ctx->ops->lanes;
    const int64_t lanes = asks ? ctx->ops->lanes(ctx) : 0;
    tt_class_end(ctx, before);
    return lanes;
}

tt_status model_turn(tt_ctx *ctx, tt_weights *w, const tt_model_paths *p,
                     const model_part *part)
{
    char key[65];
    if (ctx->status || !p->turned_dir) return ctx->status;
    const int64_t lanes = lanes_in(ctx, part->cls);
    TT_TRY(ctx->status);
    if (!lanes) {
        run_say(part->events, true, "nothing is turned of: %s",
                tt_weights_path(w));
        if (part->warns)
            tt_warn(ctx, "--turned-dir has no effect on the transformer: %s in "
                    "class %s has no kernels here that read such weights",
                    ctx->ops->name, tt_class_name(part->cls));
        return TT_OK;
    }
    make_key(key, w);
    turning t = {ctx, p, part, lanes, tt_now()};
    TT_TRY(weights_turn(w, &(weights_turning){
        .option = "--turned-dir", .folder = p->turned_dir, .key = key,
        .prefix = part->prefix, .lanes = lanes, .check = check,
        .progress = progress, .user = &t}));
    const char *path = weights_turned_path(w);
    run_say(part->events, true, "%s: %s", path ? "turned weights" : "nothing "
            "is turned of", path ? path : tt_weights_path(w));
    return TT_OK;
}
