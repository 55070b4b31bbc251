/* test_transformer.c: the parts of src/golden's network, one by one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers of the official code for every part of three models. The parts
 * are static functions, so transformer.c is included instead of linked. What
 * they compute inside is seen through layers that are an identity. The official
 * `head` holds the numbers of `latent` in another order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/golden/transformer.c"
#include "tests/golden/answers.h"

/* Frames, and patch rows and columns of one. */
typedef struct grid { int F, h, w; } grid;

static int item(const test_case *c, const char *key, int i)
{
    return (int)tt_json_whole(tt_json_at(tt_json_get(c->json, key), i), -1);
}

static int number(const test_case *c, const char *key, int missing)
{
    return (int)tt_json_int(c->json, key, missing);
}

static int items(const test_case *c, const char *key)
{
    const tt_json *list = tt_json_get(c->json, key);
    return list ? (int)tt_json_count(list) : 0;
}

static grid grid_of(const test_case *c)
{
    return (grid){item(c, "grid", 0), item(c, "grid", 1), item(c, "grid", 2)};
}

static pass pass_of(grid g, int start)
{
    return (pass){.chunk = start / g.F, .start = start, .frames = g.F,
                  .h = 2 * g.h, .w = 2 * g.w};
}

/* [a, b, n] -> [b, a, n] */
static float *swapped(const float *x, int a, int b, size_t n)
{
    float *y = floats(a * b * n);
    for (int i = 0; i < a; i++)
        for (int j = 0; j < b; j++)
            memcpy(y + (j * a + i) * n, x + (i * b + j) * n, n * sizeof *y);
    return y;
}

static dense identity(int n)
{
    dense m = {.w = floats((size_t)n * n), .out = n, .in = n};
    for (int i = 0; i < n; i++) m.w[(size_t)i * n + i] = 1;
    return m;
}

/* ---- embeddings and head ------------------------------------------------- */

static void time_embedding(test_case *c, const transformer *m)
{
    const int n = extent(c, "t", 0), dim = m->dim, wide = m->freq_dim;
    const float *t = input(c, "t");
    float *e = floats(n * dim), *e0 = floats(6 * n * dim);
    float *wave = floats(2 * n * wide);
    double *want = doubles(n * wide);
    transformer bare = *m;
    bare.dim = wide;
    bare.time0 = bare.time2 = bare.time_projection = identity(wide);
    tt_gather(want, &answer(c, "sinusoid")->t);
    for (int i = 0; i < n * wide; i++) want[i] /= 1 + exp(-want[i]);
    for (int i = 0; i < n; i++) {
        embed_time(m, e + i * dim, e0 + 6 * i * dim, t[i]);
        embed_time(&bare, wave + i * wide, wave + n * wide, t[i]);
    }
    part(c, "e", e, n * dim);
    part(c, "e0", e0, 6 * n * dim);
    expect_close_f64("silu(sinusoid)", (tt_real *)(void *)wave, n * wide, want,
                     case_tolerance(c, "sinusoid", 0));
    free(e), free(e0), free(wave), free(want), free(bare.time0.w);
}

/* Values of a layer whose weights are an identity are the text as embedded. */
static void embeddings(test_case *c, const transformer *m)
{
    const grid g = grid_of(c);
    const pass p = pass_of(g, 0);
    const int T = g.F * g.h * g.w;
    float *x = swapped(input(c, "x"), m->channels, g.F, (size_t)p.h * p.w);
    float *token = floats((size_t)T * m->dim);
    transformer bare = *m;
    block_weights block = *m->block;
    block.cross.v = identity(m->dim);
    bare.layers = 1, bare.block = &block;
    embed_patches(m, token, x, &p);
    part(c, "tokens", token, (int64_t)T * m->dim);
    part(c, "context", prompt_open(&bare, input(c, "text"))->v[0],
         (int64_t)m->text_len * m->dim);
    free(x), free(token), free(block.cross.v.w);
}

static void head(test_case *c, const transformer *m)
{
    const grid g = grid_of(c);
    const pass p = pass_of(g, 0);
    const size_t n = (size_t)p.h * p.w, all = g.F * m->channels * n;
    const size_t width = (size_t)g.F * g.h * g.w * m->dim;
    float *x = floats(width), *flow = floats(all);
    memcpy(x, input(c, "x"), width * sizeof *x);
    head_run(m, flow, x, input(c, "e"), &p);
    float *latent = swapped(flow, g.F, m->channels, n);
    part(c, "latent", latent, (int64_t)all);
    free(x), free(flow), free(latent);
}

/* ---- attention ----------------------------------------------------------- */

static void place(position *at, grid g, int start)
{
    for (int i = 0; i < g.F * g.h * g.w; i++)
        at[i] = (position){start + i / (g.h * g.w), i / g.w % g.h, i % g.w};
}

static void rotation(test_case *c, const transformer *m)
{
    const grid g = grid_of(c);
    const int T = g.F * g.h * g.w, H = m->heads, D = m->dim / H;
    const int rows = items(c, "table_rows"), half = D / 2;
    float *y = floats((size_t)T * m->dim);
    position *at = memory((size_t)T, sizeof *at);
    for (int i = 0; i < items(c, "start_frames"); i++) {
        char name[40];
        snprintf(name, sizeof name, "y_start%d", item(c, "start_frames", i));
        place(at, g, item(c, "start_frames", i));
        rope(y, input(c, "x"), T, H, D, at);
        part(c, name, y, (int64_t)T * m->dim);
    }
    /* Doubles, by the rule of the double build. */
    double *want = doubles(2 * rows * half);
    tt_gather(want, &answer(c, "table_cos")->t);
    tt_gather(want + rows * half, &answer(c, "table_sin")->t);
    for (int i = 0, axis; i < rows * half; i++) {
        double si, co;
        golden_sincos(item(c, "table_rows", i / half)
                      * rope_rate(D, i % half, &axis), &si, &co);
        expect(fabs(co - want[i]) <= 1e-11
               && fabs(si - want[rows * half + i]) <= 1e-11,
               "%s: table row %d, pair %d", c->dir, i / half, i % half);
    }
    free(y), free(at), free(want);
}

static cache *cache_of(test_case *c, const transformer *m, const policy *p,
                       int frames, FILE *f)
{
    static const char *const keys[][2] = {
        {"K", "budget"}, {"S", "sink"}, {"R", "recent"}, {"M", "memory"},
        {"alpha", "alpha"}, {"tau", "tau"},
        {"score_temperature", "score-temperature"}};
    knob o[KNOBS_MAX];
    const grid g = grid_of(c);
    const geometry all = {.layers = 1, .L = g.h * g.w, .grid = g.w,
                          .heads = m->heads, .D = m->dim / m->heads,
                          .frames = frames, .chunk = g.F, .first_chunk = g.F,
                          .scenes = 1};
    memcpy(o, p->knobs, sizeof o);
    for (knob *k = o; k->name; k++)
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (!strcmp(k->name, keys[i][1]))
                k->value = tt_json_num(c->json, keys[i][0], k->value);
    return cache_open(p, o, &all, f);
}

/* Keys and values of all slots; keys rotated to the frames they are of. */
static void keep_slots(const cache *y, float *k, float *v, bool rotate)
{
    const size_t bytes = (size_t)y->capacity * y->width * sizeof *k;
    position *at = memory((size_t)y->capacity, sizeof *at);
    for (int i = 0; i < y->length; i++)
        at[i] = token_position(y, y->time[i], y->place[i]);
    memcpy(k, y->k, bytes);
    memcpy(v, y->v, bytes);
    if (rotate) rope(k, k, y->length, y->heads, y->D, at);
    free(at);
}

/* What self_attention gives the cache, as a policy sees it. */
static const float *seen[3];

static void see(cache *c, const pass *p)
{
    const size_t n = (size_t)p->frames * c->L * c->width;
    const float *const from[] = {c->new_q, c->new_k, c->new_v};
    for (int i = 0; i < 3; i++) {
        float *to = floats(n);
        seen[i] = memcpy(to, from[i], n * sizeof *to);
    }
}

static void qkv(test_case *c, const transformer *m)
{
    const policy spy = {.name = "spy", .commit = see};
    const int T = extent(c, "x", 1);
    const pass p = {.frames = 1, .h = 2, .w = 2 * T};
    const geometry g = {.layers = 1, .L = T, .grid = T, .heads = m->heads,
                        .D = m->dim / m->heads, .frames = 1, .chunk = 1};
    cache *y = cache_open(&spy, spy.knobs, &g, NULL);
    float *out = floats((size_t)T * m->dim);
    self_attention(m, out, input(c, "x"), &m->block[number(c, "block", 0)].self,
                   &p, y);
    for (int i = 0; i < 3; i++)
        part(c, &"q\0k\0v"[2 * i], seen[i], (int64_t)T * m->dim);
    free(out), cache_close(y, 1);
}

static prompt *prompt_of(test_case *c, const transformer *m, int i)
{
    const attention_weights *w = &m->block[i].cross;
    const int rows = extent(c, "context", 1);
    const float *context = input(c, "context");
    prompt *p = memory(1, sizeof *p);
    p->k = memory((size_t)m->layers, sizeof *p->k);
    p->v = memory((size_t)m->layers, sizeof *p->v);
    p->k[i] = floats((size_t)rows * m->dim);
    p->v[i] = floats((size_t)rows * m->dim);
    linear(p->k[i], context, rows, &w->k);
    rms_norm(p->k[i], p->k[i], rows, m->dim, m->eps, w->norm_k);
    linear(p->v[i], context, rows, &w->v);
    return p;
}

static void cross_attn(test_case *c, const transformer *m)
{
    const int i = number(c, "block", 0), rows = extent(c, "context", 1);
    const prompt *text = prompt_of(c, m, i);
    part(c, "k", text->k[i], (int64_t)rows * m->dim);
    part(c, "v", text->v[i], (int64_t)rows * m->dim);
    for (int call = 0; call < 2; call++) {
        const char *x = call ? "x2" : "x";
        const int T = extent(c, x, 1);
        float *y = floats((size_t)T * m->dim);
        cross_attention(m, y, input(c, x), T, &m->block[i].cross, text->k[i],
                        text->v[i]);
        part(c, call ? "y2" : "y", y, (int64_t)T * m->dim);
        free(y);
    }
}

/* ---- self-attention with a cache ----------------------------------------- */

/* What a TetherCache layer remembers: struct tether of tethercache.c. */
typedef struct memory_of {
    bool filled;
    int aside, aside_first;
    int member[];
} memory_of;

/* Records of all calls. */
typedef struct record {
    float *score;
    int64_t ends[32][2], counter[32][3], member[256];
    int scores, M, F;
    FILE *trace;
    long read;                   /* so far                                    */
} record;

/* Lines of the trace since the last call: admissions, rejections, edits. */
static void read_trace(record *r, int64_t *count)
{
    char line[300], fate[8];
    double score;
    fseek(r->trace, r->read, SEEK_SET);
    while (fgets(line, sizeof line, r->trace)) {
        if (sscanf(line, "%*s %*d %*s %*d score frame %*d mass %*f diversity "
                   "%*f score %lf %7s", &score, fate) == 2) {
            const bool aside = r->scores % (r->M + r->F) >= r->M;
            count[1] += aside && !strcmp(fate, "drop");
            r->score[r->scores++] = (float)score;
        }
        count[0] += strstr(line, " admit ") != NULL;
        count[2] += strstr(line, ", edited") != NULL;
    }
    r->read = ftell(r->trace);
}

static void after_call(record *r, const cache *y, int call)
{
    const memory_of *own = y->own;
    r->ends[call][0] = y->seen;
    r->ends[call][1] = y->length / y->L;
    for (int i = 0; own && i < r->M; i++)
        r->member[call * r->M + i] = own->filled ? own->member[i] : -1;
    if (call > 0) memcpy(r->counter[call], r->counter[call - 1], 24);
    read_trace(r, r->counter[call]);
}

/* Calls at start_frames; or of TetherCache, a noisy and a clean pass each. */
static void self_attn(test_case *c, const transformer *m)
{
    const grid g = grid_of(c);
    const int block = number(c, "block", 0), calls = extent(c, "x", 0);
    const int K = number(c, "K", 0), snaps = items(c, "cache_after_calls");
    const bool tether = number(c, "M", -1) >= 0;
    const size_t n = (size_t)g.F * g.h * g.w * m->dim, slots = n / g.F * K;
    record r = {.score = floats(32 * 16), .M = tether ? number(c, "M", 0) : 0,
                .F = g.F, .trace = tmpfile()};
    cache *y = cache_of(c, m, tether ? &tethercache : &fifo, 24, r.trace);
    float *out = floats(calls * n), *k = floats(snaps * slots);
    float *v = floats(snaps * slots);
    for (int i = 0, snap = 0; i < calls && i < 32; i++) {
        pass p = pass_of(g, tether ? i / 2 * g.F : item(c, "start_frames", i));
        p.clean = tether && i % 2;
        self_attention(m, out + i * n, input(c, "x") + i * n,
                       &m->block[block].self, &p, y);
        after_call(&r, y, i);
        if (snap == snaps || item(c, "cache_after_calls", snap) != i) continue;
        keep_slots(y, k + snap * slots, v + snap * slots, !tether);
        snap++;
    }
    part(c, "y", out, (int64_t)(calls * n));
    part(c, "cache_k", k, (int64_t)(snaps * slots));
    part(c, "cache_v", v, (int64_t)(snaps * slots));
    expect_int("ends", *r.ends, 2 * calls, case_expected(c, "ends"));
    if (tether) {
        part(c, "grab_scores", r.score, r.scores);
        expect_int("memory_index", r.member, r.M * calls,
                   case_expected(c, "memory_index"));
        expect_int("counters", *r.counter, 3 * calls,
                   case_expected(c, "counters"));
    }
    fclose(r.trace), cache_close(y, 1);
    free(r.score), free(out), free(k), free(v);
}

static void block(test_case *c, const transformer *m)
{
    const grid g = grid_of(c);
    const int i = number(c, "block", 0), calls = extent(c, "x", 0);
    const size_t n = (size_t)g.F * g.h * g.w * m->dim, all = calls * n;
    const float *e0 = input(c, "e0");
    const prompt *text = prompt_of(c, m, i);
    float *x = floats(all), *k = floats(all), *v = floats(all);
    cache *y = cache_of(c, m, &full, calls * g.F, NULL);
    memcpy(x, input(c, "x"), all * sizeof *x);
    for (int j = 0; j < calls; j++) {
        const pass p = pass_of(g, j * g.F);
        block_run(m, x + j * n, e0 + (size_t)j * g.F * 6 * m->dim, &p, i, text,
                  y);
    }
    keep_slots(y, k, v, true);
    part(c, "y", x, (int64_t)all);
    part(c, "cache_k", k, (int64_t)all);
    part(c, "cache_v", v, (int64_t)all);
    free(x), free(k), free(v), cache_close(y, 1);
}

/* -------------------------------------------------------------------------- */

static void each(const char *name, void (*run)(test_case *,
                                               const transformer *))
{
    char path[700];
    test_case c;
    if (!case_open(&c, "dit/%s", name)) return;
    snprintf(path, sizeof path, "%s/%s", c.dir,
             tt_json_str(c.json, "model", ""));
    run(&c, transformer_open(path));
    case_close(&c);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(test_case *, const transformer *);
    } parts[] = {{"time_embedding", time_embedding}, {"embeddings", embeddings},
                 {"rope", rotation}, {"qkv", qkv}, {"cross_attn", cross_attn},
                 {"head", head}, {"block", block}};
    static const char *const models[] = {"tiny_a", "tiny_b", "head128"};
    static const char *const with_cache[] = {
        "tiny_a_self_attn_fifo_K9_S2", "tiny_b_self_attn_fifo_K9_S0",
        "tiny_b_self_attn_fifo_K8_S1", "tiny_a_self_attn_tether_K9",
        "tiny_b_self_attn_tether_K12"};
    char name[64];
    test_begin("golden/transformer");
    if (sizeof(tt_real) != 4) {
        skip("golden computes in float; this build is in double");
        expect(true, "a double build");
        return test_end();
    }
    for (int i = 0; i < 3; i++)
        for (size_t j = 0; j < sizeof parts / sizeof *parts; j++) {
            snprintf(name, sizeof name, "%s_%s", models[i], parts[j].name);
            each(name, parts[j].run);
        }
    for (int i = 0; i < 5; i++) each(with_cache[i], self_attn);
    return test_end();
}
