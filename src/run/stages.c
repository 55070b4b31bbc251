/* stages.c: the stages of a run, in shadow.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   A stage opens what it needs, as the run does, and lets the models
 *         run in a shadow. Values are counted there. What the host itself
 *         allocates it really has meanwhile: that is read off the process.
 *         Once the window is full every chunk is like the ones before, so a
 *         few of them stand for all that follow.
 * Next    shadow.c, calibrate.c */
#include "run/plan.h"

#include <string.h>
#include <time.h>

#include "cache/kept.h"
#include "rollout/run.h"
#include "tether/team.h"
#include "tether/text.h"

enum { TEXT_ROWS = 512 };

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

tt_status plan_hand_over(tt_ctx *ctx, const tt_ctx *from)
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

int64_t plan_text_bytes(const tt_run *run)
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
    const tt_model_paths *p = &run->s.model;
    if (!p->sizes_alone || p->tokenizer) {
        TT_TRY(tt_model_tokenizer(ctx, path, sizeof path, p));
        TT_TRY(tt_tokenizer_open(ctx, &e->tok, path));
    }
    TT_TRY(tt_model_text_encoder(ctx, &weights, p));
    const tt_weights_options opt = {.ema = -1, .shapes_alone = true};
    TT_TRY(model_weights(ctx, &e->w, p, weights, TT_MODEL_T5, &opt));
    return tt_umt5_load(ctx, &e->enc, e->w);
}

/* Without a tokenizer: three letters a token, and the end. */
static int64_t guess_tokens(const char *prompt, int64_t rows)
{
    const int64_t n = (int64_t)strlen(prompt) / 3 + 1;
    return n < rows ? n : rows;
}

/* So many tokens that are all alike, instead of a prompt. */
static void embed_guess(tt_ctx *ctx, tt_host *text, const encoder *e,
                        const char *prompt, int64_t rows)
{
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const int64_t n = guess_tokens(prompt, rows);
    int64_t *ids = tt_alloc0(ctx, &ctx->scratch, 2 * rows, sizeof *ids, "ids");
    for (int64_t i = 0; ids && i < n; i++) ids[rows + i] = 1;
    if (ids)
        tt_umt5_encode(ctx, NULL, text, e->enc, &(tt_umt5_input){
            .ids = ids, .mask = ids + rows, .B = 1, .L = rows});
    tt_arena_reset(&ctx->scratch, mark);
}

/* Tokens of a prompt, as many as the model reads. */
static int64_t tokens_of(tt_ctx *ctx, const encoder *e, const char *prompt,
                         int64_t rows)
{
    if (!e->tok) return guess_tokens(prompt, rows);
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
        if (e->tok)
            tt_prompt_embed(&s->ctx, text, e->enc, e->tok, prompt,
                            strlen(prompt), rows, NULL);
        else
            embed_guess(&s->ctx, text, e, prompt, rows);
        n->tokens = larger(n->tokens, tokens_of(&s->ctx, e, prompt, rows));
    }
    tt_arena_free(&mem);
}

double plan_cpu(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t)) return tt_now();
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
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
        n->text.held += plan_text_bytes(run);
        n->text.addresses += n->text.mapped;
        n->text.seconds = tt_now() - begin;
        if (!plan_hand_over(ctx, &s->ctx) && budget > 0) {
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

tt_status rolling_open(rolling *r, const tt_run *run, int64_t tokens)
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

int64_t rolling_close(rolling *r)
{
    tt_rollout_close(r->rollout);
    for (int i = 0; i < r->nprompt; i++) tt_prompt_free(r->prompt[i]);
    tt_arena_free(&r->mem);
    const int64_t kept = scratch_peak(r->s);
    shadow_close(r->s);
    return kept;
}

const tt_layer *rolling_layer(const rolling *r)
{
    return tt_cache_layer(tt_rollout_cache(r->rollout), 0);
}

static bool lays_out(const rolling *r)
{
    const cache_kept *k = cache_kept_of(tt_rollout_cache(r->rollout), 0);
    return k && k->laid;
}

int64_t rolling_steady(const rolling *r)
{
    const tt_layer *y = rolling_layer(r);
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
    const int64_t steady = rolling_steady(r);
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

int64_t plan_latent_bytes(const tt_run *run, const tt_rollout_options *o)
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
    if (!rolling_open(&r, run, n->tokens)) {
        n->cache = r.s->held;
        n->heads = rolling_layer(&r)->geo->H;
        roll(&r, budget > 0);
        take_bytes(&n->latents, r.s, r.host, before);
        n->latents.held += plan_latent_bytes(run, o);
        n->latents.addresses += plan_latent_bytes(run, o) + plan_text_bytes(run)
                              + n->text.kept;
        n->latents.mapped = weight_bytes(w);
        n->latents.seconds = r.seconds;
        if (o->kv_dir) move_to_disk(&r, n);
        n->history_files = larger(n->history_files, r.s->disk_peak);
        n->activations = n->latents.held - n->cache - plan_latent_bytes(run, o);
        n->keys = o->keep_keys;
        n->laid = lays_out(&r);
    }
    if (!plan_hand_over(ctx, &r.s->ctx) && budget > 0) {
        const tt_weights *given = tt_weights_crowded(w) ? w : NULL;
        n->reading += calibrate_reading(ctx, r.s, given, plan_clock_of(ctx));
        n->latents.seconds += stage_seconds(ctx, r.s, ctx->ops, given, budget);
    }
    n->latents.kept = rolling_close(&r);
    return ctx->status;
}

/* ---- the decoder --------------------------------------------------------- */

static tt_status no_frame(void *user, const tt_host *rgb, int64_t height,
                          int64_t width)
{
    (void)user, (void)rgb, (void)height, (void)width;
    return TT_OK;
}

void plan_decode_some(shadow *s, const tt_vae *vae,
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
    plan_decode_some(s, vae, o);
    repeat_frames(s, o);
    take_bytes(&n->decoding, s, plan_anonymous(), before);
    n->history_files = larger(n->history_files, s->disk_peak);
    n->decoding.kept = scratch_peak(s);
    n->decoding.held += plan_latent_bytes(run, o) + 2 * 192 * o->h * o->w;
    n->decoding.mapped = weight_bytes(tt_vae_weights(vae));
    n->decoding.addresses += n->decoding.mapped + plan_latent_bytes(run, o)
                           + plan_text_bytes(run) + 2 * 192 * o->h * o->w
                           + larger(n->text.kept, n->latents.kept);
    if (n->during)
        n->decoding.addresses += n->latents.addresses
                               - plan_latent_bytes(run, o);
    n->decoding.seconds = tt_now() - begin;
    if (!plan_hand_over(ctx, &s->ctx) && budget > 0)
        n->decoding.seconds += stage_seconds(
            ctx, s, tt_ops_class(ctx->ops, tt_vae_class(vae)), NULL, budget);
    shadow_close(s);
    return ctx->status;
}
