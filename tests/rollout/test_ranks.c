/* test_ranks.c: whole rollouts on several ranks have the bits of one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property: for every policy and class, at ranks that divide nothing and at
 * more ranks than heads, every rank ends with the latents of one rank, and its
 * policies report the same values and keep the same tokens. What is reported
 * counts: a sum over heads that is made in parts leaves latents as they are
 * and shows in the masses of GRAB. Taps count too: rank 0 sees whole tensors,
 * in the order of one rank. A prompt that another team made is refused.
 *
 *     test_ranks --all    more policies' settings, and every number to 13 */
#include "tests/rollout/tiny.h"
#include "team/team.h"

enum { MOST = 13, CAPACITY = 3 * FRAMES * SIZE };

/* What one rank has seen. */
typedef struct outcome {
    int64_t frames;
    uint64_t reported;             /* digest of all events and tokens         */
    uint64_t taps;                 /* of all tensors, rank 0 alone            */
    int64_t events;
    tt_real latents[CAPACITY];
} outcome;

static outcome alone, ranks[MOST];
static bool tapped;

static void add_bytes(uint64_t *sum, const void *data, size_t n)
{
    const uint8_t *byte = data;
    for (size_t i = 0; i < n; i++)
        *sum = (*sum ^ byte[i]) * 1099511628211u;
}

static void digest(outcome *x, const void *data, size_t n)
{
    add_bytes(&x->reported, data, n);
}

static void look_at_tap(void *user, const char *path, tt_dtype dtype, int rank,
                        const int64_t *dim, const void *data)
{
    uint64_t *sum = user;
    size_t n = tt_dtype_size(dtype);
    for (int i = 0; i < rank; i++) n *= (size_t)dim[i];
    add_bytes(sum, path, strlen(path));
    add_bytes(sum, dim, (size_t)rank * sizeof *dim);
    add_bytes(sum, data, n);
}

static void no_tap(void *user, const char *path, tt_dtype dtype, int rank,
                   const int64_t *dim, const void *data)
{
    (void)user, (void)path, (void)dtype, (void)rank, (void)dim, (void)data;
}

static void digest_event(outcome *x, const tt_event *e)
{
    digest(x, &e->layer, sizeof e->layer);
    digest(x, &e->chunk, sizeof e->chunk);
    for (int i = 0; e->kind && e->kind->field[i].name; i++)
        digest(x, e->value[i].at, (size_t)e->value[i].n
                                  * tt_dtype_size(e->kind->field[i].type));
    x->events++;
}

static void listen(void *user, const tt_event *e)
{
    digest_event(user, e);
}

static void look_at_cache(outcome *x, tt_cache *c)
{
    for (int64_t i = 0; i < tt_cache_geometry(c)->layers; i++) {
        const tt_layer *y = tt_cache_layer(c, i);
        tt_event now;
        if (tt_cache_show(c, i, &now)) digest_event(x, &now);
        digest(x, &y->len, sizeof y->len);
        digest(x, y->src_frame, (size_t)y->len * sizeof *y->src_frame);
        digest(x, y->tpos, (size_t)y->len * sizeof *y->tpos);
    }
}

/* ---- one rollout --------------------------------------------------------- */

/* Threads of a team cannot call expect(). */
static tt_status roll(tt_ctx *ctx, outcome *x, const tt_rollout_options *o)
{
    tt_prompt *own;
    tt_rollout *r;
    const tt_host *x0;
    int64_t n;
    x->frames = x->events = 0;
    x->reported = x->taps = 14695981039346656037u;
    if (tapped) {
        ctx->tap = tt_team_rank(ctx) ? no_tap : look_at_tap;
        ctx->tap_user = &x->taps;
        ctx->tap_cache = true;
    }
    make_prompt(ctx, &own);
    tt_rollout_open(ctx, &r, model, own, o);
    tt_cache_on_event(tt_rollout_cache(r), listen, x);
    while (tt_rollout_next(ctx, r, &x0, &n) == TT_OK) {
        memcpy(x->latents + x->frames * SIZE, x0,
               (size_t)(n * SIZE) * sizeof *x0);
        x->frames += n;
        look_at_cache(x, tt_rollout_cache(r));
    }
    tt_rollout_close(r);
    tt_prompt_free(own);
    ctx->tap = NULL;
    return ctx->status;
}

static void roll_rank(void *user, tt_ctx *ctx)
{
    roll(ctx, &ranks[tt_team_rank(ctx)], user);
}

static void check_ranks(tt_ctx *ctx, const char *name,
                        tt_rollout_options *o, int size)
{
    if (!expect_ok(tt_team_threads(ctx, size, roll_rank, o), name)) return;
    expect(ranks[0].taps == alone.taps, "%s: taps on %d ranks", name, size);
    for (int r = 0; r < size; r++) {
        const outcome *x = &ranks[r];
        expect(x->frames == alone.frames
               && !memcmp(x->latents, alone.latents,
                          (size_t)(x->frames * SIZE) * sizeof *x->latents),
               "%s: latents of rank %d of %d", name, r, size);
        expect(x->events == alone.events && x->reported == alone.reported,
               "%s: what the policy reports at rank %d of %d", name, r, size);
    }
}

/* A rank that holds all rows of the prompt is not one of two. */
static void roll_foreign(void *user, tt_ctx *ctx)
{
    const tt_rollout_options *o = user;
    tt_rollout *r;
    const tt_host *x0;
    int64_t n;
    tt_rollout_open(ctx, &r, model, prompt, o);
    tt_rollout_next(ctx, r, &x0, &n);
    tt_rollout_close(r);
}

static void check_foreign(tt_ctx *ctx, tt_rollout_options o)
{
    expect_status(tt_team_threads(ctx, 2, roll_foreign, &o), TT_ESHAPE,
                  "the prompt holds rows 0 to 23 of 24");
}

static void check(tt_ctx *ctx, const char *name, tt_rollout_options o,
                  const int *sizes)
{
    expect_ok(roll(ctx, &alone, &o), name);
    expect(alone.frames > 0, "%s: frames", name);
    for (; *sizes; sizes++) {
        o.keep_keys = *sizes % 2 == 0; /* each rank has its heads' */
        o.bf16_kv = true;
        check_ranks(ctx, name, &o, *sizes);
    }
}

/* ---- what is rolled out -------------------------------------------------- */

/* Between two rollouts all ranks decode, and rank 0 encodes. */
static void check_restart(tt_ctx *ctx, tt_rollout_options o, const int *sizes)
{
    tt_weights *w;
    tt_vae *vae = NULL;
    if (!expect_ok(tt_weights_open(ctx, &w,
                       ref_path("vae_full_a/weights.safetensors"),
                       TT_MODEL_VAE, NULL), "VAE")
        || !expect_ok(tt_vae_load_parts(ctx, &vae, w, TT_VAE_DECODER
                                        | TT_VAE_ENCODER), "VAE"))
        return;
    o.latent_restart = false;
    o.vae = vae;
    check(ctx, "causvid, restarted by the VAE", o, sizes);
    tt_vae_close(vae);
}

static tt_rollout_options evicting(const char *name)
{
    return evicting_for(name, 18, 2);
}

static tt_rollout_options with(const char *name, const char *knob, double value)
{
    tt_rollout_options o = evicting(name);
    tt_policy_put(&o.policy, knob, value);
    return o;
}

static void check_settings(tt_ctx *ctx, const int *sizes)
{
    check(ctx, "memrope, adaptive", with("memrope", "adaptive", 1), sizes);
    check(ctx, "deep-forcing, max", with("deep-forcing", "fusion", 1), sizes);
    tt_rollout_options o = evicting("tether");
    tt_policy_apply_preset(ctx, &o.policy, "paper");
    o.policy.K = 9;
    o.policy.S = 1;
    o.policy.R = 4;
    o.policy.M = 4;
    check(ctx, "tether, paper", o, sizes);
    o = evicting("tether");
    o.independent_first_frame = true;
    o.latents = 16;
    o.policy = tt_policy_defaults("fifo");
    o.policy.K = 7;
    o.policy.S = 1;
    check(ctx, "fifo, first frame alone", o, sizes);
    check_restart(ctx, evicting("causvid"), sizes);
}

static void check_classes(tt_ctx *ctx, const int *sizes)
{
    const tt_ops *before = ctx->ops;
    for (int c = 1; tt_class_at(c); c++) {
        const tt_ops *ops = tt_ops_class(before, (tt_class)c);
        if (!ops) continue;
        ctx->ops = ops;
        check(ctx, tt_class_at(c)->name, evicting("tether"), sizes);
        check(ctx, tt_class_at(c)->name, evicting("fifo"), sizes);
    }
    ctx->ops = before;
}

int main(int argc, char **argv)
{
    static const int few[] = {1, 2, 3, 5, 6, 12, 0}, two[] = {2, 3, 0};
    static const int every[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0};
    const bool all = argc > 1 && !strcmp(argv[1], "--all");
    tt_ctx *ctx = test_begin("rollout/ranks");
    load(ctx);
    for (int i = 0; tt_policy_at(i); i++) {
        const char *name = tt_policy_at(i)->name;
        check(ctx, name, evicting(name), all ? every : few);
    }
    check_settings(ctx, all ? every : few);
    tapped = true;
    check(ctx, "tether, tapped", evicting("tether"), all ? every : two);
    tapped = false;
    check_classes(ctx, all ? every : two);
    check_foreign(ctx, evicting("tether"));
    tt_prompt_free(prompt);
    tt_dit_close(model);
    return test_end();
}
