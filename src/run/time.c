/* time.c: seconds of a run, from its operations and the rates of this machine.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   products of linear layers, attention and convolutions take what a
 *         call of that kind and shape takes for each of its operations; what is
 *         between them in a layer takes what it takes for a token. A call is
 *         measured at a part of its rows that takes WHILE or longer, with
 *         weights of the stored type that are made up.
 * Next    fit.c */
#include "run/plan.h"

#include <string.h>
#include <time.h>

#include "core/parallel.h"
#include "io/lora.h"
#include "rollout/run.h"
#include "team/team.h"
#include "text/text.h"

/* WHILE  seconds of a call; the middle one of TURNS counts */
#define WHILE 0.05
enum { TURNS = 3, LEAST = 16 };

typedef struct trial {
    tt_ctx ctx;
    tt_arena mem;
    tt_dtype type;             /* of weights                                  */
    int64_t a, b, c;           /* widths: see the calls                       */
    bool vae;                  /* `ctx.ops` are those of the VAE's class      */
    void *w;                   /* [a, b, c]                                   */
} trial;

/* Seconds of a call with so many rows. */
typedef double call(trial *t, int64_t n);

/* Computing alone, which other programs lengthen least; of several threads the
 * clock's. */
static double now(const trial *t)
{
    struct timespec s;
    if (t->ctx.nthreads > 1 || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &s))
        return tt_now();
    return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
}

/* Small numbers of any type. */
static void *numbers(trial *t, int64_t n, size_t size)
{
    void *x = tt_alloc(&t->ctx, &t->mem, n, size, "a measurement");
    if (x) memset(x, 0x3c, (size_t)n * size);
    return x;
}

static tt_host *time_values(trial *t, int64_t n)
{
    return numbers(t, n, sizeof(tt_host));
}

/* y [n, a] of x [n, b] */
static double time_linear(trial *t, int64_t n)
{
    const int64_t dim[] = {t->a, t->b};
    tt_tensor w = tt_tensor_make(NULL, t->type, 2, dim);
    if (!t->w) t->w = numbers(t, tt_tensor_bytes(&w), 1);
    w.data = t->w;
    tt_host *x = time_values(t, n * t->b), *y = time_values(t, n * t->a);
    const double begin = now(t);
    tt_linear(&t->ctx, y, x, n, &w, NULL);
    return now(t) - begin;
}

/* n queries of a head of width b, and a keys */
static double time_attention(trial *t, int64_t n)
{
    const int64_t N = t->a, D = t->b;
    const tt_attention_args a = {
        .o = time_values(t, n * D), .q = time_values(t, n * D),
            .k = time_values(t, N * D),
        .v = time_values(t, N * D), .T = n, .N = N, .H = 1, .D = D,
            .q_stride = D,
        .kv_stride = D, .scale = (tt_real)0.1};
    const double begin = now(t);
    tt_attention(&t->ctx, &a);
    return now(t) - begin;
}

/* What is between the products of a layer of width a and its feed-forward of
 * width b, for n tokens. */
static double between(trial *t, int64_t n)
{
    const int64_t c = t->a;
    tt_ctx *x = &t->ctx;
    tt_host *h = time_values(t, n * c), *y = time_values(t, n * c),
        *w = time_values(t, c);
    tt_host *f = time_values(t, n * t->b);
    const double begin = now(t);
    for (int i = 0; i < 2; i++) {
        tt_layer_norm(x, y, h, n, c, NULL, NULL, 1e-6);
        tt_modulate(x, y, n, c, w, w, c, n);
        tt_rms_norm(x, y, y, n, c, w, 1e-6);
        tt_gate_add(x, h, y, n, c, w, c, n);
        tt_add(x, h, y, n * c);
    }
    tt_gelu_tanh(x, f, n * t->b);
    return now(t) - begin;
}

/* n lines of b pixels of c channels to as many: norm, silu, 3x3x3. */
static double convolution(trial *t, int64_t n)
{
    const int64_t W = t->b, C = t->c, dim[] = {C, 3, 3, 3, C};
    tt_tensor w = tt_tensor_make(NULL, t->type, 5, dim);
    if (!t->w) t->w = numbers(t, tt_tensor_bytes(&w), 1);
    w.data = t->w;
    tt_host *x = time_values(t, n * W * C);
    const tt_real *const frame[] = {x, x, x};
    const bool cls = t->ctx.ops->cls != TT_CLASS_F32;
    const tt_conv_args a = {
        .y = time_values(t, n * W * C), .frame = frame, .w = &w,
        .b = time_values(t, C), .Hi = n, .Wi = W, .Cin = C, .Ho = n, .Wo = W,
        .Cout = C, .kt = 3, .kh = 3, .kw = 3, .stride = 1, .pad_top = 1,
        .pad_left = 1, .up = 1, .by_class = cls, .bf16 = cls};
    const double begin = now(t);
    tt_channel_norm(&t->ctx, x, x, n * W, C, a.b);
    tt_silu(&t->ctx, x, n * W * C);
    tt_conv(&t->ctx, &a);
    return now(t) - begin;
}

/* Seconds of a row, of up to `most`. */
static double time_measure(tt_ctx *ctx, trial t, call *of, int64_t most)
{
    double took[TURNS] = {0};
    int64_t n = most < LEAST ? most : LEAST;
    t.ctx = (tt_ctx){.ops = t.ctx.ops ? t.ctx.ops : ctx->ops,
                     .nthreads = ctx->nthreads, .warn = ctx->warn,
                     .warn_user = ctx->warn_user,
                     .matrix_unit = ctx->matrix_unit,
                     .interrupt = ctx->interrupt};
    for (int turn = 0; turn < TURNS && !tt_check_interrupt(&t.ctx);) {
        const tt_arena_mark m = tt_arena_here(&t.mem);
        void *const weights = t.w;
        const double seconds = of(&t, n);
        if (weights) tt_arena_reset(&t.mem, m);
        if (!weights && t.w) continue;   /* the first touch of the weights */
        if (!turn && seconds < WHILE && n < most) {
            n = 2 * n < most ? 2 * n : most;
            continue;
        }
        int at = turn++;
        for (; at > 0 && took[at - 1] > seconds; at--) took[at] = took[at - 1];
        took[at] = seconds;
    }
    if (t.ctx.status) tt_fail(ctx, t.ctx.status, "%s", tt_message(&t.ctx));
    tt_arena_free(&t.mem);
    tt_ctx_free(&t.ctx);
    return took[TURNS / 2] / (double)n;
}

static tt_dtype type_of(const tt_weights *w)
{
    const tt_tensor *most = NULL;
    for (int64_t i = 0; i < tt_weights_count(w); i++) {
        const tt_tensor *t = tt_weights_find(w, tt_weights_name(w, i));
        if (t && (!most || tt_tensor_count(t) > tt_tensor_count(most)))
            most = t;
    }
    return most ? most->dtype : TT_F32;
}

/* ---- stages -------------------------------------------------------------- */

/* Frames that a chunk reads when `frames` have been made with it. */
static int64_t time_window(const tt_rollout_options *o, const tt_geometry *g,
                           int64_t frames)
{
    const tt_policy_class *cls = tt_policy_class_of(&o->policy);
    const int64_t most = (cls->reads ? cls->reads : cls->slots)(&o->policy, g)
                       / g->L;
    return frames < most ? frames : most;
}

/* Queries, and pairs of them and keys, of the passes at new prompts. */
static void count_recached(const tt_rollout_options *o, const tt_geometry *g,
                           double *tokens, double *pairs)
{
    for (int i = 1; i < o->nscenes; i++) {
        const int64_t at = g->first_chunk
                         + (o->scenes[i].chunk - 1) * g->chunk;
        if (at >= g->frames) break;
        const double q = (double)(rollout_recached(o, at) * g->L)
                       * (double)(g->layers - 1);
        *tokens += q;
        *pairs += q * (double)(time_window(o, g, at) * g->L);
    }
}

/* One video. A chunk has a pass for each step and the clean one, of whose last
 * layer keys and values are wanted alone. */
static void time_latents(tt_ctx *ctx, const tt_run *run, tt_needs *n)
{
    const tt_dit_config *c = tt_dit_get_config(run->dit);
    const tt_rollout_options *o = &run->opt;
    const tt_geometry g = rollout_geometry(ctx, run->dit, o);
    const tt_dtype type = type_of(tt_dit_weights(run->dit));
    const int64_t T = g.chunk * g.L, text = plan_tokens(run) + 1;
    const double d = (double)c->dim, f = (double)c->ffn_dim;
    const double layers = (double)c->layers - 1. / (o->nsteps + 1);
    double tokens = 0, pairs = 0;      /* of queries; of them and keys        */
    for (int64_t at = 0; at < o->latents; at += g.chunk) {
        const int64_t own = at + g.chunk < o->latents ? g.chunk
                                                      : o->latents - at;
        const double q = (double)(own * g.L) * (o->nsteps + 1) * layers;
        const int64_t read = time_window(o, &g, o->initial_frames + at + own);
        tokens += q;
        pairs += q * (double)(read * g.L);
    }
    count_recached(o, &g, &tokens, &pairs);
    const int64_t N = time_window(o, &g, o->initial_frames + o->latents) * g.L;
    const trial square = {.type = type, .a = c->dim, .b = c->dim};
    const trial wide = {.type = type, .a = c->ffn_dim, .b = c->dim};
    const trial narrow = {.type = type, .a = c->dim, .b = c->ffn_dim};
    const trial heads = {.a = N, .b = g.D};
    const double each = 6 * time_measure(ctx, square, time_linear, T)
                      + time_measure(ctx, wide, time_linear, T)
                      + time_measure(ctx, narrow, time_linear, T)
                      + time_measure(ctx, wide, between, T);
    const double pair = time_measure(ctx, heads, time_attention, T) / (double)N;
    pairs += tokens * (double)text;
    /* keys and values of the prompts; patches in and out */
    const double prompts = (double)(run_prompts_of(run) * text * c->layers);
    const double ends = 16 * d * (double)c->in_dim / (double)c->layers;
    n->latents.operations = (double)o->rollouts
        * (tokens * (12 * d * d + 4 * d * f + ends) + 4 * pairs * d)
        + prompts * 4 * d * d;
    n->latents.seconds = (double)o->rollouts
        * (tokens * each + pairs * pair * (double)c->heads);
}

/* Convolutions of the two stages with the most pixels take nearly all. */
static void time_decoding(tt_ctx *ctx, const tt_run *run, tt_needs *n)
{
    const tt_rollout_options *o = &run->opt;
    tt_vae *vae = NULL;
    if (run->s.no_decode || tt_run_open_vae(ctx, run, &vae)) return;
    const int64_t c = tt_vae_width(vae);
    trial last = {.type = TT_F32, .b = 8 * o->w, .c = c};
    trial before = {.type = TT_F32, .b = 4 * o->w, .c = 2 * c};
    last.ctx.ops = before.ctx.ops = tt_ops_class(ctx->ops, tt_vae_class(vae));
    const double rate
        = time_measure(ctx, last, convolution,
                       8 * o->h) / (double)(last.b * c * c)
        + time_measure(ctx, before, convolution, 4 * o->h)
              / (double)(4 * before.b * c * c);
    const double frames = (double)(o->initial_frames + o->latents)
                        * (double)o->rollouts;
    n->decoding.operations = frames
                           * tt_vae_decoder_operations(vae, o->h, o->w);
    n->decoding.seconds = n->decoding.operations * rate / 2 / 54;
    tt_vae_close(vae);
}

/* n rows of a matrix of b columns, by a LoRA of rank c */
static double merging(trial *t, int64_t n)
{
    lora_row *const add = lora_row_here();
    float *w = numbers(t, n * t->b, sizeof *w);
    const float *up = numbers(t, t->c, sizeof *up);
    const float *down = numbers(t, t->c * t->b, sizeof *down);
    if (t->ctx.status) return 0;
    const double begin = now(t);
    TT_PARALLEL_FOR_WORK(&t->ctx, n * t->b / 32 * t->c)
    for (int64_t i = 0; i < n; i++)
        add(w + i * t->b, up, down, 0.5f, t->c, t->b);
    return now(t) - begin;
}

static void time_lora(tt_ctx *ctx, tt_needs *n)
{
    enum { ROWS = 64, COLUMNS = 1536, RANK = 64 };
    const trial t = {.b = COLUMNS, .c = RANK};
    if (n->lora.operations == 0) return;
    n->lora.seconds = n->lora.operations * time_measure(ctx, t, merging, ROWS)
                    / (2.0 * COLUMNS * RANK);
}

/* Weights of few rows are read once a prompt. */
static void time_text(tt_ctx *ctx, const tt_run *run, tt_needs *n)
{
    enum { WIDTH = 2048 };
    const trial t = {.type = TT_BF16, .a = WIDTH, .b = WIDTH};
    if (n->text.operations == 0) return;
    const double row = time_measure(ctx, t, time_linear, plan_tokens(run));
    n->text.seconds = n->text.operations * row / (2.0 * WIDTH * WIDTH);
}

tt_status tt_run_time(tt_ctx *ctx, const tt_run *run, tt_needs *out)
{
    TT_TRY(tt_run_plan(ctx, run, out));
    if (ctx->device || tt_team_size(ctx) > 1)
        return tt_fail(ctx, TT_EUNSUPPORTED, "time is planned on one rank, "
                       "with values in memory of the host");
    time_lora(ctx, out);
    time_text(ctx, run, out);
    time_latents(ctx, run, out);
    time_decoding(ctx, run, out);
    return ctx->status;
}
