/* test_prompt.c: the text's keys and values, packed once per prompt.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Property: in every class two prompts in turn give the flows of golden
 * operators, which lay out nothing; a prompt read by the operators of another
 * class gives those that golden's prompt gives there; no pass reads k and v
 * of a text or lays them out, of whole blocks of TT_KEY_BLOCK rows or not; and
 * rows at the end that are all alike are computed once, to the same bits. */
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

#include "ops/backend.h"
#include "dit/dit.h"
#include "team/team.h"

enum { F = 3, GRID_H = 2, GRID_W = 3, PIXELS = 4 * GRID_H * GRID_W,
       CHANNELS = 16, FLOW = F * CHANNELS * PIXELS };

static tt_ctx *ctx;
static tt_dit *model;
static struct { int64_t calls, texts, anew, same, rows; } seen;
static int64_t text_rows;

/* ---- operators that count ------------------------------------------------ */

static void counted(tt_ctx *c, const tt_attention_args *a)
{
    const tt_ops *at = c->ops;
    const tt_ops *ours = tt_ops_class(tt_ops_default(), at->cls);
    seen.calls++;
    seen.texts += a->N == text_rows && a->T > 0;
    if (a->N == text_rows && a->T > 0) seen.same = a->same;
    seen.anew += a->N == text_rows && a->T > 0
                 && (a->n_packed != a->N || a->k || a->v);
    c->ops = ours;
    ours->attention(c, a);
    c->ops = at;
}

/* ---- calls of the network ------------------------------------------------ */

static void fill(tt_host *x, int64_t n, int64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (tt_host)((i * 37 + seed * 11) % 101) / 50 - 1;
}

static tt_prompt *prompt_of(const tt_ops *ops, int64_t rows, int64_t seed)
{
    const int64_t n = rows * tt_dit_get_config(model)->text_dim;
    tt_prompt *p = NULL;
    tt_host *text = malloc((size_t)n * sizeof *text);
    fill(text, n, seed);
    ctx->ops = ops;
    expect_ok(tt_prompt_make(ctx, &p, model, text, rows), "a prompt");
    free(text);
    return p;
}

/* The first chunk of a video with this prompt. */
static void flow_of(const tt_ops *ops, const tt_prompt *p, tt_host *flow)
{
    const tt_dit_config *c = tt_dit_get_config(model);
    const tt_geometry geo = {.layers = c->layers, .H = c->heads,
                             .heads = c->heads, .D = c->dim / c->heads,
                             .grid_h = GRID_H, .grid_w = GRID_W,
                             .L = GRID_H * GRID_W, .chunk = F,
                             .first_chunk = F, .frames = F};
    const tt_policy_options o = tt_policy_defaults("full");
    const tt_pass pass = {.frames = F};
    const double t = 750;
    tt_host x[FLOW];
    tt_cache *cache = NULL;
    fill(x, FLOW, 3);
    ctx->ops = ops;
    expect_ok(tt_cache_open(ctx, &cache, NULL, &o, &geo), "a cache");
    tt_dit_forward(ctx, model, flow, x,
                   &(tt_dit_call){.h = 2 * GRID_H, .w = 2 * GRID_W, .t = &t,
                                  .nt = 1, .prompt = p, .cache = cache,
                                  .pass = &pass});
    expect_ok(ctx->status, "a pass");
    tt_cache_close(cache);
}

/* ---- what is compared ---------------------------------------------------- */

static const tt_ops *of_class(const char *name, int cls)
{
    return tt_ops_class(tt_ops_find(name), (tt_class)cls);
}

static void in_turn(int cls, int64_t rows)
{
    const tt_ops *ours = tt_ops_class(tt_ops_default(), (tt_class)cls);
    const tt_ops *golden = of_class("golden", cls);
    tt_prompt *p[2], *want[2];
    tt_host a[FLOW], b[FLOW];
    for (int i = 0; i < 2; i++) {
        p[i] = prompt_of(ours, rows, 5 + i);
        want[i] = prompt_of(golden, rows, 5 + i);
    }
    for (int i = 0; i < 4; i++) {
        flow_of(ours, p[i % 2], a);
        flow_of(golden, want[i % 2], b);
        expect(!memcmp(a, b, sizeof a), "%s, %lld rows, prompt %d",
               tt_class_name((tt_class)cls), (long long)rows, i % 2);
    }
    for (int i = 0; i < 2; i++) {
        tt_prompt_free(p[i]);
        tt_prompt_free(want[i]);
    }
}

/* A prompt of class `made`, read by operators of class `read`. */
static void of_another(int made, int read, int64_t rows)
{
    const tt_ops *ops = tt_ops_class(tt_ops_default(), (tt_class)read);
    tt_prompt *p = prompt_of(tt_ops_class(tt_ops_default(), (tt_class)made),
                             rows, 5);
    tt_prompt *want = prompt_of(of_class("golden", made), rows, 5);
    tt_host a[FLOW], b[FLOW];
    flow_of(ops, p, a);
    flow_of(ops, want, b);
    expect(!memcmp(a, b, sizeof a), "made in %s, read in %s",
           tt_class_name((tt_class)made), tt_class_name((tt_class)read));
    tt_prompt_free(p);
    tt_prompt_free(want);
}

static void packed_once(int cls, int64_t rows)
{
    tt_ops table = *tt_ops_class(tt_ops_default(), (tt_class)cls);
    const int64_t layers = tt_dit_get_config(model)->layers;
    const bool lays = table.packed;
    tt_host flow[FLOW];
    table.attention = counted;
    text_rows = rows;
    memset(&seen, 0, sizeof seen);
    tt_prompt *p = prompt_of(&table, rows, 5);
    expect(seen.calls == (lays ? layers : 0), "%lld calls before a pass",
           (long long)seen.calls);
    for (int i = 0; i < 2; i++) flow_of(&table, p, flow);
    expect(seen.texts == 2 * layers, "%lld looks at the text",
           (long long)seen.texts);
    expect(seen.anew == (lays ? 0 : seen.texts), "%s, %lld rows: %lld laid out "
           "anew", tt_class_name((tt_class)cls), (long long)rows,
           (long long)seen.anew);
    tt_prompt_free(p);
}

static void count_rows(tt_ctx *c, const tt_linear_args *a)
{
    const tt_ops *at = c->ops;
    const tt_ops *ours = tt_ops_class(tt_ops_default(), at->cls);
    seen.rows += a->n;
    c->ops = ours;
    ours->linear(c, a);
    c->ops = at;
}

static void hear_nothing(void *user, const char *path, tt_dtype dtype, int rank,
                         const int64_t *extent, const void *data)
{
    (void)user, (void)path, (void)dtype, (void)rank, (void)extent, (void)data;
}

/* A text whose rows from `used` on are zeros or those of row `used`; `given` of
 * `rows` are handed over. */
static void alike(int cls, int64_t rows, int64_t used, int64_t given,
                  bool zeros)
{
    tt_ops table = *tt_ops_class(tt_ops_default(), (tt_class)cls);
    const int64_t dim = tt_dit_get_config(model)->text_dim;
    const int64_t same = used > 1 ? used : 1;
    tt_host *text = malloc((size_t)(rows * dim) * sizeof *text);
    tt_host flow[FLOW], want[FLOW];
    tt_prompt *p = NULL, *all = NULL;
    fill(text, rows * dim, 9);
    for (int64_t i = used * dim; i < rows * dim; i++)
        if (zeros) text[i] = 0;
        else if (i >= (used + 1) * dim) text[i] = text[i - dim];
    table.attention = counted;
    table.linear = count_rows;
    table.fused = NULL;
    text_rows = rows;
    memset(&seen, 0, sizeof seen);
    ctx->ops = &table;
    expect_ok(tt_prompt_make(ctx, &p, model, text, given), "a prompt");
    const int64_t each = 2 + 2 * tt_dit_get_config(model)->layers;
    expect(seen.rows == each * (same + 1 < rows ? same + 1 : rows),
           "%lld rows, alike from %lld on: %lld are computed", (long long)rows,
           (long long)used, (long long)(seen.rows / each));
    flow_of(&table, p, flow);
    expect(seen.same == (same + 1 < rows ? same : 0), "attention hears of %lld",
           (long long)seen.same);
    ctx->tap = hear_nothing;      /* who looks gets every row */
    seen.rows = 0;
    expect_ok(tt_prompt_make(ctx, &all, model, text, given), "a prompt");
    expect(seen.rows == each * rows, "all rows for a tap");
    ctx->tap = NULL;
    flow_of(&table, all, want);
    expect(seen.same == 0, "rows that a tap may have changed");
    expect(!memcmp(flow, want, sizeof flow), "%s, %lld rows, alike from %lld "
           "on: the flow", tt_class_name((tt_class)cls), (long long)rows,
           (long long)used);
    tt_prompt_free(p);
    tt_prompt_free(all);
    free(text);
}

/* A team in which rank 1 holds no row, or none but the same ones. */
static void make_on_rank(void *user, tt_ctx *c)
{
    const int64_t dim = tt_dit_get_config(model)->text_dim;
    const double *share = user;
    tt_host text[16 * 40] = {0};
    tt_prompt *p;
    for (int64_t i = 0; i < 3 * dim; i++) text[i] = (tt_host)(i + 1) / 200;
    tt_team_share(c, share, tt_team_size(c));
    tt_prompt_make(c, &p, model, text, 16);
    tt_prompt_free(p);
}

static void rows_of_ranks(void)
{
    static double none[] = {1000, 1, 1000, 1000}, some[] = {1, 1, 1, 1};
    ctx->ops = tt_ops_default();
    expect_ok(tt_team_threads(ctx, 4, make_on_rank, none), "a rank of no rows");
    expect_ok(tt_team_threads(ctx, 4, make_on_rank, some), "equal ranks");
}

/* With a number of rows that the model asks for, or as many as are given. */
static void all_alike(int64_t text_len)
{
    static const int64_t rows[] = {2, 5, TT_KEY_BLOCK, TT_KEY_BLOCK + 7};
    for (int cls = 0; cls < TT_CLASS_COUNT; cls++)
        for (int i = 0; i < 4 && of_class("golden", cls); i++)
            for (int64_t used = 0; used < rows[i]; used += 1 + used / 2) {
                const int64_t n = text_len ? text_len : rows[i];
                if (used >= n || (text_len && rows[i] > n)) continue;
                alike(cls, n, used, text_len ? used + 1 : n, true);
                if (!text_len) alike(cls, n, used, n, false);
            }
}

/* The first operator finds out whether there is a matrix unit. */
static void asking(tt_ctx *c, const tt_attention_args *a)
{
    if (!c->matrix_unit) c->matrix_unit = 1;
    counted(c, a);
}

/* A prompt that is made before anyone has asked. */
static void unit_unasked(void)
{
    tt_ops table = *tt_ops_default();
    const int before = ctx->matrix_unit;
    tt_host flow[FLOW];
    if (!table.packed) return;
    table.attention = asking;
    text_rows = 5;
    ctx->matrix_unit = 0;
    tt_prompt *p = prompt_of(&table, 5, 5);
    memset(&seen, 0, sizeof seen);
    flow_of(&table, p, flow);
    expect(seen.texts > 0 && seen.anew == 0, "%lld laid out anew, by those who "
           "laid them out", (long long)seen.anew);
    ctx->matrix_unit = before;
    tt_prompt_free(p);
}

/* What was packed for a matrix unit is not read without it. Class f32 has
 * none, so the answer may change on every machine. */
static void unit_changes(void)
{
    tt_ops table = *tt_ops_default();
    const int before = ctx->matrix_unit;
    tt_host flow[FLOW];
    if (!table.packed) return;
    table.attention = counted;
    text_rows = 5;
    ctx->matrix_unit = -1;
    tt_prompt *p = prompt_of(&table, 5, 5);
    memset(&seen, 0, sizeof seen);
    flow_of(&table, p, flow);
    expect(seen.texts > 0 && seen.anew == 0, "the same unit: nothing anew");
    ctx->matrix_unit = 1;
    memset(&seen, 0, sizeof seen);
    flow_of(&table, p, flow);
    expect(seen.texts > 0 && seen.anew == seen.texts, "another one: all anew");
    ctx->matrix_unit = before;
    tt_prompt_free(p);
}

int main(void)
{
    static const int64_t rows[] = {5, TT_KEY_BLOCK, TT_KEY_BLOCK + 7};
    tt_dit_config c = {.dim = 48, .ffn_dim = 64, .heads = 2,
                       .layers = 2, .freq_dim = 16, .in_dim = CHANNELS,
                       .text_dim = 40, .eps = 1e-6};
    ctx = test_begin("dit/prompt");
    if (!expect_ok(tt_dit_random(ctx, &model, &c, c.layers), "model"))
        return 1;
    for (int cls = 0; cls < TT_CLASS_COUNT; cls++) {
        if (!of_class("golden", cls)) continue;
        for (int i = 0; i < 3; i++) {
            in_turn(cls, rows[i]);
            packed_once(cls, rows[i]);
        }
        for (int to = 0; to < TT_CLASS_COUNT; to++)
            if (to != cls && of_class("golden", to)) of_another(cls, to, 5);
    }
    unit_unasked();
    unit_changes();
    rows_of_ranks();
    all_alike(0);
    ctx->ops = tt_ops_default();
    tt_dit_close(model);
    c.text_len = TT_KEY_BLOCK + 7;
    if (!expect_ok(tt_dit_random(ctx, &model, &c, c.layers), "model"))
        return 1;
    all_alike(c.text_len);
    ctx->ops = tt_ops_default();
    tt_dit_close(model);
    return test_end();
}
