/* turned.c: --turned-dir: weights laid out beforehand for this CPU's kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The key of what is kept: samples of all values, as in the identity of a run,
 * and size and times of the files, which change with any other value.
 * Next    io/turned.c */
#include "io/weights.h"
#include "run/identity.h"
#include "run/parts.h"

static void make_key(char hex[65], const tt_weights *w)
{
    tt_sha256 s;
    tt_sha256_init(&s);
    weights_stamp(&s, w);
    identity_weights(&s, w);
    tt_sha256_hex(&s, hex);
}

/* Who is told, and since when. */
typedef struct teller {
    const tt_run_events *events;
    double start;
} teller;

static void progress(void *user, const char *path, int64_t done, int64_t total)
{
    const teller *t = user;
    if (!done)
        run_say(t->events, false, "turning weights, once: %.1f GB in %s",
                1e-9 * (double)total, path);
    run_work(t->events, (tt_run_work){.done = (double)done,
                                      .total = (double)total,
                                      .seconds = tt_now() - t->start},
             "turning weights");
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
        if (part->warns)
            tt_warn(ctx, "--turned-dir has no effect on the transformer: %s in "
                    "class %s has no kernels here that read such weights",
                    ctx->ops->name, tt_class_name(part->cls));
        return TT_OK;
    }
    make_key(key, w);
    teller t = {part->events, tt_now()};
    return weights_turn(w, &(weights_turning){
        .option = "--turned-dir", .folder = p->turned_dir, .key = key,
        .prefix = part->prefix, .lanes = lanes, .progress = progress,
        .user = &t});
}
