/* test_fused.c: several operators in one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A backend that says nothing of pairs is called as if a model had called both
 * operators itself. One that has them in one, here a table that keeps nothing
 * of what stands between them, gives the models the same bits; and where a tap
 * or an injection looks between, it is not asked. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "ops/backend.h"
#include "dit/dit.h"
#include "text/text.h"

static tt_ctx *ctx;

/* ---- a backend that has pairs in one ------------------------------------- */

static int gelus, adds, norms; /* that it was asked for                       */

static void linear_gelu(tt_ctx *c, const tt_linear_args *a)
{
    gelus++;
    c->ops->linear(c, a);
    const tt_gelu_tanh_args g = {a->y, a->n * a->w->dim[0]};
    c->ops->gelu_tanh(c, &g);
}

/* What nothing is in afterwards. */
static void forget(tt_real *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = (tt_real)NAN;
}

static void linear_add(tt_ctx *c, const tt_linear_args *a,
                       const tt_gate_add_args *to)
{
    const tt_add_args plain = {to->x, to->y, to->n * to->c};
    adds++;
    c->ops->linear(c, a);
    if (to->gate) c->ops->gate_add(c, to);
    else c->ops->add(c, &plain);
    forget(a->y, plain.n);
}

static void norm_modulate(tt_ctx *c, const tt_layer_norm_args *a,
                          const tt_modulate_args *to)
{
    norms++;
    c->ops->layer_norm(c, a);
    c->ops->modulate(c, to);
}

static const tt_fused pairs = {.linear_gelu = linear_gelu,
                               .linear_add = linear_add,
                               .norm_modulate = norm_modulate};

/* Layers of one x, FFNs, and both of a norm, and attention with the layer after
 * it, that it was asked for. */
static int several, ffns, normed, normed_ffns, attended;

static void linears(tt_ctx *c, const tt_linear_args *a, int n)
{
    several++;
    for (int i = n - 1; i >= 0; i--) c->ops->linear(c, &a[i]);
}

static void mlp(tt_ctx *c, const tt_linear_args *up, const tt_linear_args *down,
                const tt_gate_add_args *to)
{
    ffns++;
    linear_gelu(c, up);
    linear_add(c, down, to);
    forget(up->y, up->n * up->w->dim[0]);
}

static void norm_of(tt_ctx *c, const tt_normed *x)
{
    c->ops->layer_norm(c, &x->norm);
    if (x->mod.scale) c->ops->modulate(c, &x->mod);
}

static void norm_linears(tt_ctx *c, const tt_normed *x, const tt_linear_args *a,
                         int n)
{
    normed++;
    norm_of(c, x);
    for (int i = n - 1; i >= 0; i--) c->ops->linear(c, &a[i]);
    forget(x->norm.y, x->norm.n * x->norm.c);
}

static void norm_mlp(tt_ctx *c, const tt_normed *x, const tt_linear_args *up,
                     const tt_linear_args *down, const tt_gate_add_args *to)
{
    normed_ffns++;
    norm_of(c, x);
    linear_gelu(c, up);
    linear_add(c, down, to);
    forget(x->norm.y, x->norm.n * x->norm.c);
}

static void attention_add(tt_ctx *c, const tt_attention_args *x,
                          const tt_linear_args *a, const tt_gate_add_args *to)
{
    attended++;
    c->ops->attention(c, x);
    linear_add(c, a, to);
    forget(x->o, x->T * x->H * x->D);
}

static const tt_fused all = {.linear_gelu = linear_gelu,
                             .linear_add = linear_add,
                             .norm_modulate = norm_modulate, .linears = linears,
                             .mlp = mlp};
static const tt_fused whole = {linear_gelu, linear_add, norm_modulate, linears,
                               mlp, norm_linears, norm_mlp, attention_add};

/* `backend`, as it is or with some operators in one. */
static void use_fused(const char *backend, const tt_fused *fused)
{
    static tt_ops table;
    const tt_ops *ops = tt_ops_find(backend);
    table = *ops;
    table.fused = fused;
    ctx->ops = fused ? &table : ops;
    gelus = adds = norms = several = ffns = 0;
    normed = normed_ffns = attended = 0;
}

static void use(const char *backend, bool fuses)
{
    use_fused(backend, fuses ? &pairs : NULL);
}

/* ---- operators ----------------------------------------------------------- */

enum { N = 7, O = 12, I = 300, STRIDE = 2 * O, ROWS = 3, FORMS = 4 };

static void fill(tt_real *x, int64_t n, int64_t seed)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (tt_real)((i * 37 + seed * 11) % 101) / 50 - 1;
}

static struct {
    tt_real x[N * I], w[O * I], b[O], sum[N * O], y[N * O];
    tt_real gate[3 * STRIDE], shift[3 * STRIDE];
} in;

static void fill_all(void)
{
    fill(in.x, N * I, 1);
    fill(in.w, O * I, 2);
    fill(in.b, O, 3);
    fill(in.sum, N * O, 4);
    fill(in.gate, 3 * STRIDE, 5);
    fill(in.shift, 3 * STRIDE, 6);
}

/* One of the forms by its wrapper; what it makes. */
static const tt_real *paired(int form, const tt_tensor *w)
{
    const tt_linear_args a = {in.y, in.x, N, w, in.b};
    const tt_gate_add_args to = {in.sum, in.y, N, O, form == 1 ? in.gate : NULL,
                                 STRIDE, ROWS};
    const tt_layer_norm_args norm = {in.y, in.sum, N, O, NULL, NULL, 1e-6};
    const tt_modulate_args mod = {in.y, N, O, in.gate, in.shift, STRIDE, ROWS};
    if (form == 0) tt_linear_gelu(ctx, in.y, in.x, N, w, in.b);
    else if (form < 3) tt_linear_add(ctx, &a, &to);
    else tt_norm_modulate(ctx, &norm, &mod);
    return form == 1 || form == 2 ? in.sum : in.y;
}

/* The same by two operators. */
static const tt_real *apart(int form, const tt_tensor *w)
{
    if (form < 3) tt_linear(ctx, in.y, in.x, N, w, in.b);
    switch (form) {
    case 0: tt_gelu_tanh(ctx, in.y, N * O); return in.y;
    case 1:
        tt_gate_add(ctx, in.sum, in.y, N, O, in.gate, STRIDE, ROWS);
        return in.sum;
    case 2: tt_add(ctx, in.sum, in.y, N * O); return in.sum;
    default:
        tt_layer_norm(ctx, in.y, in.sum, N, O, NULL, NULL, 1e-6);
        tt_modulate(ctx, in.y, N, O, in.gate, in.shift, STRIDE, ROWS);
        return in.y;
    }
}

static void forget_profile(void)
{
    memset(ctx->profile, 0, sizeof ctx->profile);
}

static void check_operators(const char *backend)
{
    tt_real want[N * O];
    tt_profile_row rows[TT_PROFILE_ROWS];
    const tt_tensor w = tt_tensor_make(
        in.w, sizeof(tt_real) == 8 ? TT_F64 : TT_F32, 2, (int64_t[]){O, I});
    ctx->profiling = true;
    for (int form = 0; form < FORMS; form++)
        for (int fuses = 0; fuses < 2; fuses++) {
            use(backend, fuses);
            fill_all();
            forget_profile();
            memcpy(want, apart(form, &w), sizeof want);
            memcpy(rows, ctx->profile, sizeof rows);
            fill_all();
            forget_profile();
            expect_bits("a pair", paired(form, &w), want, sizeof want);
            expect(gelus == (fuses && form == 0)
                   && norms == (fuses && form == 3)
                   && adds == (fuses && (form == 1 || form == 2)),
                   "%s, form %d: %d, %d and %d pairs in one", backend, form,
                   gelus, adds, norms);
            bool alike = true;
            for (int i = 0; i < TT_PROFILE_ROWS; i++)
                alike = alike && rows[i].calls == ctx->profile[i].calls
                        && rows[i].flops == ctx->profile[i].flops
                        && rows[i].name == ctx->profile[i].name;
            expect(alike == !fuses, "%s, form %d: the profile%s is that of two "
                   "calls", backend, form, fuses ? "" : " of a plain table");
        }
    ctx->profiling = false;
}

/* Three layers of one x, and an FFN of the first one's outputs: with the calls
 * of a plain table, and by one that has them in one. */
static void check_several(const char *backend)
{
    static tt_real y[3][N * O], down[O * O], sum[N * O];
    tt_real want[3][N * O], wanted[N * O];
    const tt_dtype type = sizeof(tt_real) == 8 ? TT_F64 : TT_F32;
    const tt_tensor w = tt_tensor_make(in.w, type, 2, (int64_t[]){O, I});
    const tt_tensor v = tt_tensor_make(down, type, 2, (int64_t[]){O, O});
    const tt_linear_args a[3] = {{y[0], in.x, N, &w, in.b},
                                 {y[1], in.x, N, &w, NULL},
                                 {y[2], in.x, N, &w, in.shift}};
    const tt_linear_args end = {y[1], y[0], N, &v, in.b};
    const tt_gate_add_args to = {sum, y[1], N, O, in.gate, STRIDE, ROWS};
    for (int i = 0; i < 2; i++) {
        use_fused(backend, i ? &all : NULL);
        fill_all();
        fill(down, O * O, 7);
        fill(sum, N * O, 8);
        tt_linears(ctx, a, 3);
        if (!i) memcpy(want, y, sizeof want);
        expect_bits("layers of one x", y, want, sizeof want);
        tt_mlp(ctx, &a[0], &end, &to);
        if (!i) memcpy(wanted, sum, sizeof wanted);
        expect_bits("an FFN", sum, wanted, sizeof wanted);
        expect(several == i && ffns == i, "%s: %d and %d in one", backend,
               several, ffns);
    }
}

/* The same of what comes before them: a norm, modulated or not, or attention. */
static void check_before(const char *backend)
{
    enum { HEADS = 3, D = O / HEADS };
    static tt_real y[2][N * O], w[O * O], sum[N * O], hidden[N * O];
    tt_real want[4][N * O];
    const tt_dtype type = sizeof(tt_real) == 8 ? TT_F64 : TT_F32;
    const tt_tensor v = tt_tensor_make(w, type, 2, (int64_t[]){O, O});
    const tt_linear_args a[2] = {{y[0], in.y, N, &v, in.b},
                                 {y[1], in.y, N, &v, NULL}};
    const tt_linear_args up = {hidden, in.y, N, &v, in.b};
    const tt_linear_args down = {y[0], hidden, N, &v, NULL};
    const tt_linear_args last = {y[0], in.y, N, &v, in.b};
    const tt_gate_add_args to = {sum, y[0], N, O, in.gate, STRIDE, ROWS};
    const tt_attention_args heads = {
        .o = in.y, .q = in.x, .k = in.x + O, .v = in.x + 2 * O, .T = N, .N = N,
        .H = HEADS, .D = D, .q_stride = O, .kv_stride = O, .scale = 1};
    tt_normed x = {{in.y, in.x, N, O, NULL, NULL, 1e-6},
                   {in.y, N, O, in.gate, in.shift, STRIDE, ROWS}};
    for (int i = 0; i < 2; i++) {
        use_fused(backend, i ? &whole : NULL);
        fill_all();
        fill(w, O * O, 7);
        fill(sum, N * O, 8);
        tt_norm_linears(ctx, &x, a, 2);
        if (!i) memcpy(want, y, sizeof y);
        expect_bits("layers of a norm", y, want, sizeof y);
        tt_norm_mlp(ctx, &x, &up, &down, &to);
        if (!i) memcpy(want[2], sum, sizeof sum);
        expect_bits("an FFN of a norm", sum, want[2], sizeof sum);
        tt_attention_add(ctx, &heads, &last, &to);
        if (!i) memcpy(want[3], sum, sizeof sum);
        expect_bits("a layer of attention", sum, want[3], sizeof sum);
        expect(normed == i && normed_ffns == i && attended == i,
               "%s: %d, %d and %d in one", backend, normed, normed_ffns,
               attended);
    }
    /* without modulation; and where the rows are there already */
    x.mod.scale = NULL;
    use_fused(backend, &whole);
    tt_norm_linears(ctx, &x, a, 1);
    memcpy(want, y, sizeof want[0]);
    tt_layer_norm(ctx, in.y, in.x, N, O, NULL, NULL, 1e-6);
    tt_norm_linears(ctx, NULL, a, 1);
    expect_bits("a norm that is there", y[0], want, sizeof want[0]);
    expect(normed == 1 && !several, "%d of a norm, %d of several", normed,
           several);
}

/* ---- models -------------------------------------------------------------- */

enum { F = 3, L = 6, T = F * L, TEXT = 5, BLOCKS = 2, LOOKS = 3,
       SEEN = 1 << 16 };

/* What stood at the taps of branches, and the hand that changes it there. */
static tt_real seen[SEEN];
static int64_t nseen;

static bool of_branch(const char *path)
{
    static const char *const ends[] = {"/self_attn", "/cross_attn", "/ffn",
                                       ".attn", ".ffn"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *at = strstr(path, ends[i]);
        if (at && !at[strlen(ends[i])]) return true;
    }
    return false;
}

static void look(void *user, const char *path, tt_dtype dtype, int rank,
                 const int64_t *dim, const void *data)
{
    int64_t n = 1;
    (void)user, (void)dtype;
    for (int i = 0; i < rank; i++) n *= dim[i];
    if (!of_branch(path) || !expect(nseen + n <= SEEN, "room for %s", path))
        return;
    memcpy(seen + nseen, data, (size_t)n * sizeof *seen);
    nseen += n;
}

static void change(void *user, const char *path, tt_dtype dtype, int rank,
                   const int64_t *dim, void *data)
{
    tt_real *x = data;
    (void)user, (void)dtype, (void)rank, (void)dim;
    if (of_branch(path)) x[0] += 1;
}

/* A model with no one, a tap, or an injection looking. */
typedef int64_t model_fn(void *model, tt_real *out);

static int64_t run(model_fn *f, void *model, bool fuses, int looking,
                   tt_real *out)
{
    use("golden", fuses);
    nseen = 0;
    ctx->tap = looking == 1 ? look : NULL;
    ctx->inject = looking == 2 ? change : NULL;
    const int64_t n = f(model, out);
    ctx->tap = NULL;
    ctx->inject = NULL;
    expect_ok(ctx->status, "a model");
    return n;
}

static void check_model(const char *name, model_fn *f, void *model, int least)
{
    static tt_real want[SEEN], got[SEEN], before[SEEN], shown[SEEN];
    for (int looking = 0; looking < LOOKS; looking++) {
        const int64_t n = run(f, model, false, looking, want);
        const int64_t values = nseen;
        memcpy(shown, seen, sizeof shown);
        run(f, model, true, looking, got);
        expect_bits(name, got, want, (size_t)n * sizeof *got);
        expect(nseen == values && (looking == 1) == (values > 0),
               "%s: %lld values were seen, %lld of a plain table", name,
               (long long)nseen, (long long)values);
        expect(!memcmp(seen, shown, (size_t)values * sizeof *seen),
               "%s: taps see what stands between", name);
        expect(looking ? !adds : adds == least, "%s: %d sums in one", name,
               adds);
        expect(gelus > 0, "%s: GELU in one, whoever looks", name);
        if (!looking) memcpy(before, want, sizeof before);
        expect(!memcmp(before, want, (size_t)n * sizeof *want)
               == (looking < 2), "%s: an injection between is felt", name);
    }
}

static int64_t blocks(void *model, tt_real *out)
{
    const tt_dit *m = model;
    const tt_dit_config *c = tt_dit_get_config(m);
    const int64_t dim = c->dim;
    const tt_geometry geo = {.layers = c->layers, .H = c->heads,
                             .D = dim / c->heads, .heads = c->heads,
                             .grid_h = 2, .grid_w = 3, .L = L, .chunk = F,
                             .first_chunk = F, .frames = F};
    const tt_policy_options o = tt_policy_defaults("full");
    const tt_pass p = {.frames = F};
    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_cache *cache = NULL;
    tt_cache_open(ctx, &cache, NULL, &o, &geo);
    const tt_dit_part part = {0, T, cache, &p};
    tt_dit_context text = {.k = tt_scratch(ctx, TEXT * dim),
                           .v = tt_scratch(ctx, TEXT * dim), .rows = TEXT};
    tt_real *e0 = tt_scratch(ctx, 6 * F * dim);
    tt_real *e = tt_scratch(ctx, dim);
    if (ctx->status) return 0;
    fill(out, T * dim, 1);
    fill(e0, 6 * F * dim, 2);
    fill(text.k, TEXT * dim, 3);
    fill(text.v, TEXT * dim, 4);
    fill(e, dim, 5);
    for (int i = 0; i < BLOCKS; i++)
        tt_dit_block(ctx, m, i, out, &part, e0, F, &text);
    tt_dit_head(ctx, m, out + T * dim, out, T, e, 1);
    tt_cache_close(cache);
    tt_arena_reset(&ctx->scratch, mark);
    return T * (dim + 4 * c->in_dim);
}

static int64_t encoded(void *model, tt_real *out)
{
    static const int64_t ids[TEXT] = {3, 1, 4, 1, 5}, mask[TEXT] = {1, 1, 1, 1};
    const tt_umt5_input text = {ids, mask, 1, TEXT, true};
    tt_umt5_encode(ctx, out, NULL, model, &text);
    return TEXT * tt_umt5_config_of(model)->dim;
}

/* Blocks by a table that has all in one, of norms and attention too or not: the
 * bits of a plain one, and what a tap looks at is there. */
static void check_all(tt_dit *m, const tt_fused *fused)
{
    static tt_real want[SEEN], got[SEEN];
    const int64_t n = run(blocks, m, false, 0, want);
    const int before = fused->norm_mlp ? BLOCKS : 0;
    for (int looking = 0; looking < 2; looking++) {
        use_fused("golden", fused);
        nseen = 0;
        ctx->tap = looking ? look : NULL;
        blocks(m, got);
        ctx->tap = NULL;
        expect_bits("blocks", got, want, (size_t)n * sizeof *got);
        expect(several == BLOCKS - before
               && ffns == (looking ? 0 : BLOCKS - before)
               && (nseen > 0) == looking,
               "%d layers of one x, %d FFNs, %lld values seen", several, ffns,
               (long long)nseen);
        expect(normed == 2 * before && normed_ffns == (looking ? 0 : before)
               && attended == (looking ? 0 : 2 * before),
               "%d layers and %d FFNs of norms, %d of attention", normed,
               normed_ffns, attended);
    }
}

int main(void)
{
    tt_weights *w;
    tt_dit *m;
    tt_umt5 *enc;
    ctx = test_begin("ops/fused");
    check_operators("golden");
    check_several("golden");
    check_before("golden");
#ifndef TT_REAL_DOUBLE
    check_operators("exact");
    check_several("exact");
    check_before("exact");
#endif
    if (!expect_ok(tt_weights_open(ctx, &w, ref_path("dit/models/tiny_b"),
                                   TT_MODEL_DIT, NULL), "weights")
        || !expect_ok(tt_dit_load(ctx, &m, w, NULL, 0), "transformer")
        || !expect_ok(tt_umt5_open(ctx, &enc, ref_path(
                          "t5_basic/weights.safetensors")), "text encoder"))
        return test_end();
    check_model("blocks", blocks, m, 3 * BLOCKS);
    expect(norms == 2 * BLOCKS + 1, "%d norms in one", norms);
    check_all(m, &all);
    check_all(m, &whole);
    check_model("text", encoded, enc,
                2 * (int)tt_umt5_config_of(enc)->layers);
    tt_umt5_close(enc);
    tt_dit_close(m);
    return test_end();
}
