/* steady.c: see steady.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench/steady.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "os/os.h"

#define CHUNK STEADY_CHUNK
enum { ROWS = 512, FRAMES = 21 };

/* ---- what the process takes ---------------------------------------------- */

double steady_cpu(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t)) return tt_now();
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

steady_memory steady_held(void)
{
    const os_held held = os_memory_held();
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u)) u.ru_maxrss = 0;
    return (steady_memory){held.anonymous, held.file,
                           1024 * (int64_t)u.ru_maxrss};
}

/* ---- a full cache -------------------------------------------------------- */

static void fill_host(tt_host *x, int64_t n, uint32_t stream)
{
    float buf[4096];
    tt_noise_frame(buf, 4096, 7, 0, 0, stream);
    for (int64_t i = 0; i < n; i++)
        x[i] = (tt_host)buf[(i % 4096 * 7 + i / 4096) % 4096];
}

void steady_fill(tt_ctx *ctx, tt_real *x, int64_t n, uint32_t stream)
{
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_host *h = tt_map_write(ctx, x, n);
    if (h) fill_host(h, n, stream);
    tt_put(ctx, x, h, n);
    tt_arena_reset(&ctx->scratch, m);
}

/* As if the frames before b->start had been generated and committed. */
static void fill_cache(steady *b)
{
    const int64_t L = b->geo.L, n = b->start * L;
    for (int64_t i = 0; i < b->geo.layers; i++) {
        tt_layer *y = tt_cache_layer(b->cache, i);
        const int64_t width = b->geo.H * b->geo.D;
        steady_fill(b->ctx, y->k, n * width, (uint32_t)(2 * i));
        steady_fill(b->ctx, y->v, n * width, (uint32_t)(2 * i + 1));
        for (int64_t t = 0; t < n; t++) {
            y->src_frame[t] = y->tpos[t] = (int32_t)(t / L);
            y->sidx[t] = (int32_t)(t % L);
        }
        y->len = n;
        y->seen = b->start;
    }
}

static void mean_query(steady *b, int64_t layer, const tt_host *q, int64_t n)
{
    const int64_t width = b->geo.H * b->geo.D;
    double *mean = b->qbar + layer * width;
    memset(mean, 0, (size_t)width * sizeof *mean);
    for (int64_t t = 0; t < n; t++)
        for (int64_t c = 0; c < width; c++)
            mean[c] += (double)q[t * width + c] / (double)n;
}

/* The tap "block.<i>/self_attn.q". */
static void take_queries(void *user, const char *path, tt_dtype dtype, int rank,
                         const int64_t *dim, const void *data)
{
    steady *b = user;
    const char *end = strstr(path, "/self_attn.q");
    const char *block = strstr(path, "block.");
    if (end && !end[12] && block && rank == 3
        && tt_dtype_size(dtype) == sizeof(tt_real))
        mean_query(b, atoll(block + 6), data, dim[0]);
}

/* Make the frames that the next chunk pushes out of TetherCache's recent ones
 * more important than all others: add s qbar, so that <qbar, k>/(sqrt(D) H)
 * grows by 8 and no softmax over frames overlooks them. */
static void make_admissible(steady *b)
{
    const int64_t width = b->geo.H * b->geo.D;
    const int64_t first = b->start - b->policy.R;
    for (int64_t i = 0; i < b->geo.layers; i++) {
        tt_layer *y = tt_cache_layer(b->cache, i);
        const double *q = b->qbar + i * width;
        double norm2 = 1e-30;
        for (int64_t c = 0; c < width; c++) norm2 += q[c] * q[c];
        const double s = 8 * (double)b->geo.H * sqrt((double)b->geo.D) / norm2;
        const tt_arena_mark m = tt_arena_here(&b->ctx->scratch);
        tt_host *k = tt_get(b->ctx, y->k, y->len * width);
        for (int64_t t = 0; k && t < y->len; t++) {
            if (y->src_frame[t] < first || y->src_frame[t] >= first + CHUNK)
                continue;
            for (int64_t c = 0; c < width; c++)
                k[t * width + c] += (tt_host)(s * q[c]);
        }
        tt_put(b->ctx, y->k, k, y->len * width);
        tt_arena_reset(&b->ctx->scratch, m);
    }
}

void steady_decisions(const steady *b, int64_t count[3])
{
    memset(count, 0, 3 * sizeof *count);
    for (int64_t i = 0; i < b->geo.layers; i++) {
        tt_event now;
        tt_cache_show(b->cache, i, &now);
        const int64_t *n = tt_event_values(&now, "counters", TT_I64, NULL);
        for (int j = 0; n && j < 3; j++) count[j] += n[j];
    }
}

/* ---- passes -------------------------------------------------------------- */

/* The cache's part of a pass: its writes in all layers. */
static void cache_pass(steady *b, const tt_pass *p)
{
    for (int64_t i = 0; i < b->geo.layers; i++) {
        tt_cache_write(b->ctx, b->cache, i, p, &(tt_qkv){b->q, b->k, b->v});
        tt_cache_done(b->ctx, b->cache, i, p);
    }
}

double steady_time(int step, bool clean)
{
    static const double steps[] = {1000, 937.5, 833.33331298828125, 625};
    return clean ? 0 : steps[step % 4];
}

tt_pass steady_next(const steady *b, int step, bool clean)
{
    return (tt_pass){.start = b->start, .frames = CHUNK,
                     .chunk = b->start / CHUNK, .step = step, .context = clean};
}

double steady_pass(steady *b, int step, bool clean)
{
    const double t = steady_time(step, clean);
    const tt_pass p = steady_next(b, step, clean);
    const double begin = tt_now();
    if (b->cache_only) cache_pass(b, &p);
    else tt_dit_forward(b->ctx, b->net, clean ? NULL : b->flow, b->x,
                        &(tt_dit_call){.h = b->H / 8, .w = b->W / 8, .t = &t,
                                       .nt = 1, .prompt = b->prompt,
                                       .cache = b->cache, .pass = &p});
    return tt_now() - begin;
}

void steady_advance(steady *b)
{
    b->start += CHUNK;
    if (b->admit) make_admissible(b);
}

static double prime_pass(steady *b, bool clean)
{
    if (tt_check_interrupt(b->ctx)) return 0;
    b->ctx->tap = clean && b->admit ? take_queries : NULL;
    b->ctx->tap_user = b;
    const double seconds = steady_pass(b, clean, clean);
    b->ctx->tap = NULL;
    return seconds;
}

tt_status steady_prime(steady *b, steady_done done, void *user)
{
    for (int i = 0; i < 2 * b->prime && !b->ctx->status; i++) {
        const double seconds = prime_pass(b, i % 2);
        if (b->ctx->status) break;
        if (i % 2) steady_advance(b);
        if (done) done(user, seconds);
    }
    return b->ctx->status;
}

tt_status steady_digest(steady *b, char sha[65])
{
    const int64_t n = CHUNK * b->cfg->in_dim * (b->H / 8) * (b->W / 8);
    const tt_tensor flow = tt_tensor_make(
        b->flow, sizeof(tt_real) == 8 ? TT_F64 : TT_F32, 1, &n);
    return tt_tensor_digest(b->ctx, sha, &flow);
}

/* ---- from a model to a full cache ---------------------------------------- */

/* The sizes of Wan2.1-T2V-1.3B. */
static tt_dit_config of_generated(int64_t layers)
{
    return (tt_dit_config){.dim = 1536, .ffn_dim = 8960, .heads = 12,
                           .layers = layers, .freq_dim = 256, .in_dim = 16,
                           .text_dim = 4096, .text_len = ROWS, .eps = 1e-6};
}

/* Frames before the measured chunks, and the sizes of the cache; causvid never
 * holds more than one clip, so there the measured chunk is the last one. */
static tt_status plan_cache(steady *b)
{
    const int64_t h = b->H / 16, w = b->W / 16;
    const int64_t later = CHUNK * (b->prime + b->chunks);
    const bool clip = (b->policy.cls->flags & TT_RESTARTS) != 0;
    if (!b->K) b->K = b->policy.K > 0 ? b->policy.K : FRAMES;
    b->start = clip ? b->K - later : b->K;
    b->geo = (tt_geometry){
        .layers = b->cfg->layers, .H = b->cfg->heads,
        .D = b->cfg->dim / b->cfg->heads, .grid_h = h, .grid_w = w, .L = h * w,
        .chunk = CHUNK, .first_chunk = CHUNK, .frames = b->start + later};
    if (tt_policy_knob(b->policy.cls, "budget")) b->policy.K = b->K;
    if (b->start < CHUNK)
        return tt_fail(b->ctx, TT_EINVAL, "a budget of %lld frames is too "
                       "small", (long long)b->K);
    return TT_OK;
}

tt_status steady_model(steady *b)
{
    tt_weights *w;
    tt_ctx *ctx = b->ctx;
    TT_TRY(tt_policy_parse(ctx, &b->policy, b->cache_text));
    if (b->model) {
        TT_TRY(tt_weights_open(ctx, &w, b->model, TT_MODEL_DIT, NULL));
        TT_TRY(tt_dit_load(ctx, &b->net, w, NULL, b->heads));
    } else {
        const tt_dit_config c = of_generated(b->layers);
        TT_TRY(tt_dit_random(ctx, &b->net, &c, STEADY_DISTINCT));
    }
    b->cfg = tt_dit_get_config(b->net);
    return plan_cache(b);
}

/* Keys and values of the prompt, and activations: the largest of them. */
int64_t steady_bytes(steady *b)
{
    const tt_dit_config *c = b->cfg;
    const int64_t L = b->geo.L;
    const int64_t prompt = (2 * c->layers + 1) * c->text_len * c->dim;
    const int64_t work = CHUNK * L * (c->ffn_dim + 8 * c->dim)
                       + b->start * L * c->dim;
    return tt_cache_bytes(b->policy.cls, &b->policy, &b->geo)
           + (prompt + work) * (int64_t)sizeof(tt_real);
}

int64_t steady_packed(const steady *b)
{
    const tt_policy_class *cls = b->policy.cls;
    const tt_ops *ops = b->ctx->ops;
    const int64_t n = cls->reads ? cls->reads(&b->policy, &b->geo)
                                 : cls->slots(&b->policy, &b->geo);
    if (!ops->packed || n <= TT_KEY_BLOCK) return 0;
    return b->geo.layers * b->geo.H * ops->packed(b->ctx, n, b->geo.D)
           * (int64_t)sizeof(tt_real);
}

tt_status steady_inputs(steady *b)
{
    const int64_t n = CHUNK * b->cfg->in_dim * (b->H / 8) * (b->W / 8);
    const int64_t rows = b->cfg->text_len ? b->cfg->text_len : ROWS;
    tt_ctx *ctx = b->ctx;
    b->text = tt_alloc0(ctx, &b->mem, rows * b->cfg->text_dim,
                        sizeof *b->text, "text");
    b->x = tt_alloc(ctx, &b->mem, n, sizeof *b->x, "latents");
    b->flow = tt_alloc(ctx, &b->mem, n, sizeof *b->flow, "flow");
    b->qbar = tt_alloc0(ctx, &b->mem, b->cfg->layers * b->cfg->dim,
                        sizeof *b->qbar, "mean queries");
    TT_TRY(ctx->status);
    fill_host(b->text, 20 * b->cfg->text_dim, 1000);
    fill_host(b->x, n, 1001);
    if (b->cache_only) return TT_OK;
    return tt_prompt_make(ctx, &b->prompt, b->net, b->text, rows);
}

/* The network's part, where it is left out. */
static tt_status make_tokens(steady *b)
{
    const int64_t tokens = CHUNK * b->geo.L;
    const int64_t n = tokens * b->geo.H * b->geo.D;
    b->q = tt_alloc(b->ctx, &b->mem, n, sizeof *b->q, "queries");
    b->k = tt_alloc(b->ctx, &b->mem, n, sizeof *b->k, "keys");
    b->v = tt_alloc(b->ctx, &b->mem, n, sizeof *b->v, "values");
    TT_TRY(b->ctx->status);
    fill_host(b->q, n, 1002);
    fill_host(b->k, n, 1003);
    fill_host(b->v, n, 1004);
    for (int64_t i = 0; i < b->geo.layers; i++)
        mean_query(b, i, b->q, tokens);
    return TT_OK;
}

tt_status steady_cache(steady *b)
{
    TT_TRY(tt_cache_open_in(b->ctx, &b->cache, NULL, &b->policy, &b->geo,
                            b->kv_dir));
    if (b->keep) TT_TRY(tt_cache_keep_keys(b->ctx, b->cache));
    if (b->cache_only) TT_TRY(make_tokens(b));
    fill_cache(b);
    return b->ctx->status;
}

void steady_close(steady *b)
{
    tt_cache_close(b->cache);
    tt_prompt_free(b->prompt);
    tt_dit_close(b->net);
    tt_arena_free(&b->mem);
}
