/* plan.c: what a run will take: its stages, in shadow.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   A stage opens what it needs, as the run does, and lets the models
 *         run in a shadow. Values are counted there. What the host itself
 *         allocates it really has meanwhile: that is read off the process.
 *         Once the window is full every chunk is like the ones before, so a
 *         few of them stand for all that follow.
 * Next    shadow.c, calibrate.c, fit.c */
#include "run/plan.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cache/kept.h"
#include "rollout/run.h"
#include "tether/team.h"
#include "tether/text.h"

/* STEADY  chunks that stand for all later ones: policies act in every chunk,
 *         every other or every third */
enum { STEADY = 6, TEXT_ROWS = 512 };

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- weights ------------------------------------------------------------- */

static int64_t weight_bytes(const tt_weights *w)
{
    int64_t all = 0;
    for (int64_t i = 0; i < tt_weights_count(w); i++) {
        const tt_tensor *t = tt_weights_find(w, tt_weights_name(w, i));
        if (t) all += tt_tensor_bytes(t);
    }
    return all;
}

/* What a shadow and the process have used since `before` was held. */
static void take_bytes(tt_stage *stage, const shadow *s, int64_t host,
                       int64_t before)
{
    const int64_t own = host - before - s->fetched;
    stage->held = s->peak + larger(own, 0);
    stage->addresses = s->size_peak + larger(own, 0);
    stage->operations = 0;
    for (int i = 0; i < s->ncalls; i++) stage->operations += s->call[i].flops;
}

/* What its scratch has had at most, it keeps for what comes next. */
static int64_t scratch_peak(const shadow *s)
{
    const tt_arena *host = &s->ctx.scratch;
    return (int64_t)(host->values ? host->values->peak : 0);
}

/* A failure in the shadow is one of the plan. */
static tt_status hand_over(tt_ctx *ctx, const tt_ctx *from)
{
    if (!from->status) return ctx->status;
    return tt_fail(ctx, from->status, "%s", tt_message(from));
}

/* ---- the text ------------------------------------------------------------ */

static int64_t text_rows(const tt_run *run)
{
    const tt_dit_config *c = tt_dit_get_config(run->dit);
    return c->text_len ? c->text_len : TEXT_ROWS;
}

/* Bytes of all embeddings. */
static int64_t text_bytes(const tt_run *run)
{
    return run->texts.n * text_rows(run)
           * tt_dit_get_config(run->dit)->text_dim * (int64_t)sizeof(tt_real);
}

typedef struct encoder {
    tt_tokenizer *tok;
    tt_weights *w;             /* the encoder's own                           */
    tt_umt5 *enc;
} encoder;

static tt_status open_encoder(tt_ctx *ctx, encoder *e, const tt_run *run)
{
    char path[4096];
    const char *weights;
    TT_TRY(tt_model_tokenizer(ctx, path, sizeof path, &run->s.model));
    TT_TRY(tt_tokenizer_open(ctx, &e->tok, path));
    TT_TRY(tt_model_text_encoder(ctx, &weights, &run->s.model));
    TT_TRY(tt_weights_open(ctx, &e->w, weights, TT_MODEL_T5, NULL));
    return tt_umt5_load(ctx, &e->enc, e->w);
}

/* Tokens of a prompt, as many as the model reads. */
static int64_t tokens_of(tt_ctx *ctx, const encoder *e, const char *prompt,
                         int64_t rows)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_token_row row = {.length = rows};
    row.ids = tt_alloc(ctx, &ctx->scratch, rows, sizeof *row.ids, "ids");
    if (row.ids)
        tt_tokenizer_encode_prompt(ctx, &row, e->tok, prompt, strlen(prompt),
                                   true);
    tt_arena_reset(&ctx->scratch, mark);
    return ctx->status ? 0 : row.seq_len;
}

static void encode_all(shadow *s, const encoder *e, const tt_run *run,
                       tt_needs *n)
{
    const int64_t rows = text_rows(run), dim = tt_umt5_config_of(e->enc)->dim;
    tt_arena mem = {0};
    tt_host *text = tt_alloc(&s->ctx, &mem, rows * dim, sizeof *text,
                             "embeddings");
    for (int i = 0; i < run->texts.n && text; i++) {
        const char *prompt = run->texts.prompt[i];
        tt_prompt_embed(&s->ctx, text, e->enc, e->tok, prompt, strlen(prompt),
                        rows, NULL);
        n->tokens = larger(n->tokens, tokens_of(&s->ctx, e, prompt, rows));
    }
    tt_arena_free(&mem);
}

plan_clock plan_clock_of(const tt_ctx *ctx)
{
    return ctx->nthreads == 1 ? plan_cpu : tt_now;
}

static double stage_seconds(tt_ctx *ctx, const shadow *s, const tt_ops *ops,
                            const tt_weights *weights, double budget)
{
    const plan_clock now = plan_clock_of(ctx);
    const double pages = calibrate_pages(ctx, s, plan_machine().bytes,
                                         now);
    return pages + calibrate(ctx, s, ops, weights, now, budget);
}

tt_status plan_text(tt_ctx *ctx, const tt_run *run, double budget, tt_needs *n)
{
    encoder e = {0};
    const int64_t before = plan_anonymous();
    if (run->s.embeds || tt_team_rank(ctx) > 0) return ctx->status;
    const double begin = tt_now();
    shadow *s = shadow_open(ctx);
    if (s && !open_encoder(ctx, &e, run)) {
        n->text.mapped = weight_bytes(e.w);
        encode_all(s, &e, run, n);
        take_bytes(&n->text, s, plan_anonymous(), before);
        n->text.kept = scratch_peak(s);
        n->text.held += text_bytes(run);
        n->text.addresses += n->text.mapped;
        n->text.seconds = tt_now() - begin;
        if (!hand_over(ctx, &s->ctx) && budget > 0) {
            const tt_weights *w = tt_weights_large(e.w) ? e.w : NULL;
            n->reading += calibrate_reading(ctx, s, w, plan_clock_of(ctx));
            n->text.seconds += stage_seconds(ctx, s, ctx->ops, w, budget);
        }
    }
    if (e.enc) tt_umt5_close(e.enc);
    tt_tokenizer_close(e.tok);
    shadow_close(s);
    return ctx->status;
}

/* ---- the latents --------------------------------------------------------- */

/* A rollout in shadow. */
typedef struct rolling {
    shadow *s;
    tt_rollout_options opt;
    tt_arena mem;
    tt_prompt **prompt;
    int nprompt;
    tt_rollout *rollout;
    int64_t prompts;           /* bytes of their keys and values              */
    int64_t host;              /* bytes the process held at most              */
    double seconds;            /* of the host's own work                      */
} rolling;

/* A text with so many rows that are not alike; NULL: they are not known. */
static const tt_host *stand_in(rolling *r, const tt_run *run, int64_t tokens)
{
    const int64_t dim = tt_dit_get_config(run->dit)->text_dim;
    if (!tokens) return NULL;
    tt_host *text = tt_alloc0(&r->s->ctx, &r->mem, text_rows(run) * dim,
                              sizeof *text, "embeddings");
    for (int64_t i = 0; text && i < tokens; i++)
        text[i * dim] = (tt_host)(i + 1);
    return text;
}

static tt_status open_rolling(rolling *r, const tt_run *run, int64_t tokens)
{
    tt_ctx *c = &r->s->ctx;
    const tt_host *text = stand_in(r, run, tokens);
    tt_rollout_options *o = &r->opt;
    const int64_t C = tt_dit_get_config(run->dit)->in_dim;
    const int n = run_prompts_of(run);
    r->prompt = tt_alloc0(c, &r->mem, n, sizeof *r->prompt, "prompts");
    for (; r->prompt && r->nprompt < n && !c->status; r->nprompt++)
        tt_prompt_make(c, &r->prompt[r->nprompt], run->dit, text,
                       text_rows(run));
    if (o->initial_frames && !o->initial) /* is not encoded yet */
        o->initial = tt_alloc0(c, &r->mem, o->initial_frames * C * o->h * o->w,
                               sizeof *o->initial, "given frames");
    if (!o->vae && !o->start_frame) o->latent_restart = true;
    o->kv_dir = NULL;                     /* a shadow has no files */
    TT_TRY(c->status);
    r->prompts = r->s->held;
    o->prompts = (const tt_prompt *const *)r->prompt;
    return tt_rollout_open(c, &r->rollout, run->dit, r->prompt[0], o);
}

/* Bytes that its scratch keeps. */
static int64_t close_rolling(rolling *r)
{
    tt_rollout_close(r->rollout);
    for (int i = 0; i < r->nprompt; i++) tt_prompt_free(r->prompt[i]);
    tt_arena_free(&r->mem);
    const int64_t kept = scratch_peak(r->s);
    shadow_close(r->s);
    return kept;
}

static const tt_layer *layer_of(const rolling *r)
{
    return tt_cache_layer(tt_rollout_cache(r->rollout), 0);
}

static bool lays_out(const rolling *r)
{
    const cache_kept *k = cache_kept_of(tt_rollout_cache(r->rollout), 0);
    return k && k->laid;
}

/* The first chunk after which nothing grows; none when chunks differ by what
 * happens in them. */
static int64_t steady_from(const rolling *r)
{
    const tt_layer *y = layer_of(r);
    const int64_t window = y->cap / (y->geo->L * y->geo->chunk);
    if (r->opt.nscenes || r->opt.rollouts > 1) return INT64_MAX / 2;
    return window + 3;
}

static void look_at_host(rolling *r)
{
    r->host = larger(r->host, plan_anonymous());
}

/* The last chunk may be unlike the others (tt_rollout_options.ends). */
static void roll(rolling *r, bool timed)
{
    tt_ctx *c = &r->s->ctx;
    const tt_host *x;
    int64_t frames;
    const int64_t chunks = tt_rollout_chunks(r->rollout);
    const int64_t steady = steady_from(r);
    const int64_t end = steady + (timed ? STEADY : 0);
    double begin = tt_now(), mark = 0;
    for (int64_t i = 0; i < chunks && i < end && !c->status; i++) {
        if (i == steady) {
            shadow_mark(r->s);
            mark = tt_now();
        }
        tt_rollout_next(c, r->rollout, &x, &frames);
        if (i == 0) look_at_host(r);
    }
    look_at_host(r);
    r->seconds = tt_now() - begin;
    if (end >= chunks || !timed) return;
    const double times = (double)(chunks - 1 - end) / STEADY;
    shadow_repeat(r->s, times);
    r->seconds += times * (tt_now() - mark);
    begin = tt_now();
    rollout_cut_short(r->rollout);
    tt_rollout_next(c, r->rollout, &x, &frames);
    r->seconds += tt_now() - begin;
}

static int64_t latent_bytes(const tt_run *run, const tt_rollout_options *o)
{
    int64_t dim[5], bytes = 0;
    run_shape(dim, run, o);
    return tt_checked_size(&bytes, dim, 5, sizeof(tt_real)) ? bytes : INT64_MAX;
}

/* The cache lies in files: mapped, as weights are. `n->cache` then has keys and
 * values of the prompts alone. What the policy keeps on the host was read off
 * the process, and is in `held` alone. */
static void move_to_disk(const rolling *r, tt_needs *n)
{
    tt_cache *c = tt_rollout_cache(r->rollout);
    n->cache_files = tt_cache_bytes(tt_cache_class(c), tt_cache_options(c),
                                    tt_cache_geometry(c));
    n->cache = r->prompts;
    n->latents.held -= n->cache_files;
}

tt_status plan_latents(tt_ctx *ctx, const tt_run *run,
                       const tt_rollout_options *o, double budget, tt_needs *n)
{
    const int64_t before = plan_anonymous();
    const tt_weights *w = tt_dit_weights(run->dit);
    rolling r = {.s = shadow_open(ctx), .opt = *o};
    if (!r.s) return ctx->status;
    if (!open_rolling(&r, run, n->tokens)) {
        n->cache = r.s->held;
        n->heads = layer_of(&r)->geo->H;
        roll(&r, budget > 0);
        take_bytes(&n->latents, r.s, r.host, before);
        n->latents.held += latent_bytes(run, o);
        n->latents.addresses += latent_bytes(run, o) + text_bytes(run)
                              + n->text.kept;
        n->latents.mapped = weight_bytes(w);
        n->latents.seconds = r.seconds;
        if (o->kv_dir) move_to_disk(&r, n);
        n->history_files = larger(n->history_files, r.s->disk_peak);
        n->activations = n->latents.held - n->cache - latent_bytes(run, o);
        n->keys = o->keep_keys;
        n->laid = lays_out(&r);
    }
    if (!hand_over(ctx, &r.s->ctx) && budget > 0) {
        const tt_weights *given = tt_weights_crowded(w) ? w : NULL;
        n->reading += calibrate_reading(ctx, r.s, given, plan_clock_of(ctx));
        n->latents.seconds += stage_seconds(ctx, r.s, ctx->ops, given, budget);
    }
    n->latents.kept = close_rolling(&r);
    return ctx->status;
}

/* ---- the decoder --------------------------------------------------------- */

static tt_status no_frame(void *user, const tt_host *rgb, int64_t height,
                          int64_t width)
{
    (void)user, (void)rgb, (void)height, (void)width;
    return TT_OK;
}

/* Frames 0 and 1 have less history than the third, which is like all later
 * ones. */
static void decode_some(shadow *s, const tt_vae *vae,
                        const tt_rollout_options *o)
{
    tt_vae_decoder *d = NULL;
    tt_arena mem = {0};
    const int64_t each = o->initial_frames + o->latents;
    const int64_t n = tt_vae_z(vae) * o->h * o->w;
    tt_host *z = tt_alloc0(&s->ctx, &mem, n, sizeof *z, "a latent frame");
    tt_vae_decoder_open(&s->ctx, &d, vae, o->h, o->w);
    for (int64_t i = 0; i < each && i < 3 && !s->ctx.status; i++) {
        shadow_mark(s);
        tt_vae_decode_next(&s->ctx, d, z, no_frame, NULL);
    }
    tt_vae_decoder_close(d);
    tt_arena_free(&mem);
}

static void repeat_frames(shadow *s, const tt_rollout_options *o)
{
    const int64_t each = o->initial_frames + o->latents;
    if (each > 3) shadow_repeat(s, (double)(each - 3));
    s->nmarked = 0;
    shadow_repeat(s, (double)(o->rollouts - 1));
}

tt_status plan_decoding(tt_ctx *ctx, const tt_run *run,
                        const tt_rollout_options *o, const tt_vae *vae,
                        int64_t before, double budget, tt_needs *n)
{
    shadow *s = shadow_open(ctx);
    const double begin = tt_now();
    if (!s) return ctx->status;
    decode_some(s, vae, o);
    repeat_frames(s, o);
    take_bytes(&n->decoding, s, plan_anonymous(), before);
    n->history_files = larger(n->history_files, s->disk_peak);
    n->decoding.kept = scratch_peak(s);
    n->decoding.held += latent_bytes(run, o) + 2 * 192 * o->h * o->w;
    n->decoding.mapped = weight_bytes(tt_vae_weights(vae));
    n->decoding.addresses += n->decoding.mapped + latent_bytes(run, o)
                           + text_bytes(run) + 2 * 192 * o->h * o->w
                           + larger(n->text.kept, n->latents.kept);
    if (n->during)
        n->decoding.addresses += n->latents.addresses - latent_bytes(run, o);
    n->decoding.seconds = tt_now() - begin;
    if (!hand_over(ctx, &s->ctx) && budget > 0)
        n->decoding.seconds += stage_seconds(
            ctx, s, tt_ops_class(ctx->ops, tt_vae_class(vae)), NULL, budget);
    shadow_close(s);
    return ctx->status;
}

static void silent(void *user, const char *sentence)
{
    (void)user;
    (void)sentence;
}

/* ---- one rank of several ------------------------------------------------- */

double plan_cpu(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t)) return tt_now();
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What the shadow has counted is that of a chunk. */
static void take_share(tt_share *out, const shadow *s)
{
    for (int i = 0; i < s->ncalls; i++) {
        const shadow_call *c = &s->call[i];
        out->operations += c->flops;
        if (c->op != SHADOW_EXCHANGE) continue;
        out->exchanges += c->calls;
        out->messages += c->calls * (double)c->dim[0];
        out->sent += c->sent;
        out->moved += c->size;
    }
    out->held = s->peak;
}

/* The mean of the first STEADY chunks with a full window, or of the last ones
 * where there are none; seconds of the host's own work. */
static double roll_share(rolling *r, plan_clock now)
{
    tt_ctx *c = &r->s->ctx;
    const tt_host *x;
    int64_t frames;
    const int64_t chunks = tt_rollout_chunks(r->rollout);
    int64_t from = steady_from(r), n = STEADY;
    double begin = 0;
    if (n > chunks) n = chunks;
    if (from > chunks - n) from = chunks - n;
    for (int64_t i = 0; i < from + n && !c->status; i++) {
        if (i == from) shadow_mark(r->s);
        if (i == from) begin = now();
        tt_rollout_next(c, r->rollout, &x, &frames);
    }
    shadow_keep(r->s, 1.0 / (double)n);
    return (now() - begin) / (double)n;
}

static tt_status share_latents(tt_ctx *ctx, const tt_run *run,
                               const tt_share_of *of, tt_share *out)
{
    const plan_clock now = of->cpu ? plan_cpu : tt_now;
    const tt_weights *w = tt_dit_weights(run->dit);
    rolling r = {.s = shadow_open(ctx), .opt = run->opt};
    if (!r.s) return ctx->status;
    if (strcmp(run->s.keep_keys, "yes")) r.opt.keep_keys = false; /* least */
    if (!open_rolling(&r, run, 0)) {
        out->cache = r.s->held;
        out->heads = layer_of(&r)->geo->H;
        out->seconds = roll_share(&r, now);
        take_share(out, r.s);
    }
    if (!hand_over(ctx, &r.s->ctx) && of->seconds > 0)
        out->seconds += calibrate(ctx, r.s, ctx->ops,
                                  tt_weights_crowded(w) ? w : NULL, now,
                                  of->seconds);
    close_rolling(&r);
    return ctx->status;
}

/* The third latent frame, which is like all later ones, as often as a chunk has
 * frames. */
static tt_status share_decoding(tt_ctx *ctx, const tt_run *run,
                                const tt_share_of *of, tt_share *out)
{
    const plan_clock now = of->cpu ? plan_cpu : tt_now;
    tt_rollout_options o = run->opt;
    tt_vae *vae = NULL;
    shadow *s = shadow_open(ctx);
    o.initial_frames = 0;
    o.latents = 3;
    o.rollouts = 1;
    if (s && !tt_run_open_vae(ctx, run, &vae)) {
        decode_some(s, vae, &o);
        shadow_keep(s, (double)o.chunk);
        take_share(out, s);
        if (!hand_over(ctx, &s->ctx) && of->seconds > 0)
            out->seconds = calibrate(ctx, s, tt_ops_class(ctx->ops,
                                                          tt_vae_class(vae)),
                                     NULL, now, of->seconds);
    }
    shadow_close(s);
    tt_vae_close(vae);
    return ctx->status;
}

tt_status tt_run_share(tt_ctx *ctx, const tt_run *run, const tt_share_of *of,
                       bool decoding, tt_share *out)
{
    tt_team team;
    *out = (tt_share){0};
    if (ctx->status) return ctx->status;
    if (!run) return tt_fail(ctx, TT_EINVAL, "there is no run to plan");
    if (of->size < 1 || of->size > TT_TEAM_MAX || of->rank < 0
        || of->rank >= of->size)
        return tt_fail(ctx, TT_EINVAL, "rank %d of %d: 1 to %d ranks can be "
                       "planned", of->rank, of->size, TT_TEAM_MAX);
    tt_team *own = ctx->team;
    team_init(&team, of->rank, of->size);
    ctx->team = &team;           /* it is only looked at */
    if (decoding) share_decoding(ctx, run, of, out);
    else share_latents(ctx, run, of, out);
    ctx->team = own;
    return ctx->status;
}

/* ---- all of it ----------------------------------------------------------- */

/* What the program and the C library's heap hold beside the blocks of a plan,
 * at least, as measured; and the gaps that the decoder's blocks leave there. */
enum { BESIDE = 200000 };

static int64_t decoder_gaps(const tt_needs *n)
{
    const int64_t gaps = n->decoding.held / 40, most = 1 << 20;
    return gaps < most ? gaps : most;
}

static int64_t peak_of(tt_stage *stage, int64_t held, int64_t kept)
{
    if (!stage->held) return 0;
    stage->peak = held + stage->held + larger(kept - stage->kept, 0) + BESIDE;
    return stage->peak;
}

/* Both are held at once, with one scratch and the same latents. */
static void join_peaks(tt_needs *n, int64_t held, int64_t latents)
{
    int64_t kept = larger(n->latents.kept, n->decoding.kept);
    if (!n->during || !n->decoding.held) return;
    kept = larger(kept, n->text.kept);
    n->decoding.peak = held + n->latents.held - n->latents.kept + kept
                     + n->decoding.held - n->decoding.kept - latents;
    n->decoding.peak += BESIDE + decoder_gaps(n);
    n->latents.peak = n->decoding.peak;
}

/* Rank 0, which has its part of the heads, writes those of all. */
static int64_t whole_cache(const tt_run *run, const tt_needs *n)
{
    const int64_t heads = tt_dit_get_config(run->dit)->heads;
    const int64_t all = n->cache + n->cache_files;
    return n->heads ? all / n->heads * heads : all;
}

void plan_sum(const tt_run *run, const tt_rollout_options *o, tt_needs *n)
{
    const int64_t before = n->before + run->restart_bytes;
    const int64_t held = before + text_bytes(run);
    n->peak = peak_of(&n->text, before, 0);
    n->peak = larger(n->peak, peak_of(&n->latents, held, n->text.kept));
    n->peak = larger(n->peak, peak_of(&n->decoding, held + decoder_gaps(n),
                                      larger(n->text.kept, n->latents.kept)));
    join_peaks(n, held, latent_bytes(run, o));
    n->peak = larger(n->peak, n->decoding.peak);
    n->latents_file = latent_bytes(run, o);
    n->states = run->s.checkpoint_every ? 2 * whole_cache(run, n) : 0;
    n->video = run->s.no_decode ? 0 : tt_run_frames(run) * 96 * o->h * o->w;
    const plan_limit l = plan_memory(n->before);
    n->available = l.bytes;
    snprintf(n->limit, sizeof n->limit, "%s", l.who);
}

tt_needs plan_nothing(const tt_run *run, int64_t before)
{
    return (tt_needs){.before = before, .during = !run->s.no_decode
                      && !strcmp(run->s.decode, "during")};
}

/* What is tried for a plan records its failures elsewhere. */
static tt_ctx aside(const tt_ctx *ctx)
{
    return (tt_ctx){.ops = ctx->ops, .nthreads = ctx->nthreads,
                    .matrix_unit = ctx->matrix_unit, .warn = silent,
                    .interrupt = ctx->interrupt, .team = ctx->team};
}

/* The latents planned anew without kept keys. */
static void drop_keys(tt_ctx *c, tt_run *run, tt_needs *n)
{
    run->opt.keep_keys = false;
    n->latents = (tt_stage){0};
    plan_latents(c, run, &run->opt, 0, n);
    plan_sum(run, &run->opt, n);
}

/* Rotated keys alone stay on a device only: on the host that saves nothing. */
static bool may_keep(const tt_ctx *ctx, const tt_run *run)
{
    return !run->opt.kv_dir && (ctx->device || ctx->ops->laid);
}

/* What the user leaves to us. */
static void settle_keys(const tt_ctx *ctx, tt_ctx *c, tt_run *run,
                        tt_needs *n)
{
    if (!run->opt.keep_keys || strcmp(run->s.keep_keys, "auto")) return;
    if (c->status || !plan_keeps(ctx, n)) drop_keys(c, run, n);
}

/* What planning `c` has found out, or nothing. */
static void take_needs(tt_run *run, const tt_needs *n, const tt_ctx *c)
{
    run->needs = *n;
    if (c->status) run->needs = (tt_needs){0};
}

tt_status plan_begin(tt_ctx *ctx, tt_run *run)
{
    tt_needs n = plan_nothing(run, plan_anonymous());
    tt_ctx c = aside(ctx);
    TT_TRY(plan_memory_check(ctx));
    if (!strcmp(run->s.keep_keys, "auto") && !may_keep(ctx, run))
        run->opt.keep_keys = false;
    run->mapped = plan_mapped() + plan_stacks(ctx->nthreads);
    plan_text(&c, run, 0, &n);
    tt_clear(&c);                /* it may be missing: said later */
    plan_latents(&c, run, &run->opt, 0, &n);
    plan_sum(run, &run->opt, &n);
    settle_keys(ctx, &c, run, &n);
    take_needs(run, &n, &c);
    tt_ctx_free(&c);
    if (run->s.resume && !run->s.no_decode) return TT_OK; /* with the decoder */
    return plan_check(ctx, run, &run->needs);
}

tt_status plan_decoder(tt_ctx *ctx, tt_run *run, const tt_vae *vae,
                       int64_t before)
{
    tt_needs n = run->needs;
    tt_ctx c = aside(ctx);
    if (ctx->status || !n.peak) return ctx->status;
    plan_decoding(&c, run, &run->opt, vae, before, 0, &n);
    plan_sum(run, &run->opt, &n);
    settle_keys(ctx, &c, run, &n);
    take_needs(run, &n, &c);
    tt_ctx_free(&c);
    return plan_check(ctx, run, &run->needs);
}

tt_status plan_restarts(tt_ctx *ctx, tt_run *run)
{
    tt_needs n = run->needs;
    tt_ctx c = aside(ctx);
    if (ctx->status || !n.peak) return ctx->status;
    n.latents = (tt_stage){0};
    plan_latents(&c, run, &run->opt, 0, &n);
    plan_sum(run, &run->opt, &n);
    settle_keys(ctx, &c, run, &n);
    take_needs(run, &n, &c);
    tt_ctx_free(&c);
    return plan_check(ctx, run, &run->needs);
}

tt_status plan_agree(tt_ctx *ctx, tt_run *run)
{
    const bool keep = run->opt.keep_keys;
    if (tt_team_size(ctx) == 1 || !tt_team_any(ctx, !keep) || !keep)
        return ctx->status;
    tt_needs n = run->needs;
    run->opt.keep_keys = false;
    if (!n.peak) return ctx->status;      /* it could not be planned */
    tt_ctx c = aside(ctx);
    drop_keys(&c, run, &n);
    take_needs(run, &n, &c);
    tt_ctx_free(&c);
    return ctx->status;
}

tt_status tt_run_plan(tt_ctx *ctx, const tt_run *run, tt_needs *out)
{
    *out = (tt_needs){0};
    if (ctx->status) return ctx->status;
    if (!run) return tt_fail(ctx, TT_EINVAL, "there is no run to plan");
    *out = run->needs;
    out->text.seconds = out->latents.seconds = out->decoding.seconds = 0;
    if (out->peak) return TT_OK;
    return tt_fail(ctx, TT_EUNSUPPORTED, "the run could not be planned");
}

static tt_status time_decoding(tt_ctx *ctx, const tt_run *run, double budget,
                               tt_needs *n)
{
    tt_vae *vae = NULL;
    const int64_t before = plan_anonymous();
    const plan_clock now = plan_clock_of(ctx);
    if (run->s.no_decode) return ctx->status;
    const double begin = now();
    const bool there = !tt_run_open_vae(ctx, run, &vae);
    const double opening = now() - begin;
    if (there) plan_decoding(ctx, run, &run->opt, vae, before, budget, n);
    n->decoding.seconds += opening;
    tt_vae_close(vae);
    return ctx->status;
}

tt_status tt_run_time(tt_ctx *ctx, const tt_run *run, double seconds,
                      tt_needs *out)
{
    tt_needs n;
    *out = (tt_needs){0};
    if (ctx->status) return ctx->status;
    if (!run) return tt_fail(ctx, TT_EINVAL, "there is no run to plan");
    if (ctx->device || tt_team_size(ctx) > 1)
        return tt_fail(ctx, TT_EUNSUPPORTED, "time is planned on one rank, "
                       "with values in memory of the host");
    n = plan_nothing(run, run->needs.before);
    n.reading = run->opening;
    TT_TRY(plan_text(ctx, run, 0.2 * seconds, &n));
    TT_TRY(plan_latents(ctx, run, &run->opt, 0.5 * seconds, &n));
    TT_TRY(time_decoding(ctx, run, 0.3 * seconds, &n));
    plan_sum(run, &run->opt, &n);
    *out = n;
    return TT_OK;
}
