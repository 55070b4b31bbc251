/* test_cases.c: src/golden itself against the official code.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers, by calls of the functions in src/golden alone: GRAB, TAME, the
 * schedule, noise, the network, rollouts of every policy, umT5 and the
 * tokenizer. Tolerances are those of ref_data/README.md.
 *
 * Next to it: test_transformer.c and test_vae.c. Not here is what golden does
 * not have: tensor cores, other formats of files (vae_pth and formats; layouts
 * but three), weights under Hugging Face's names (t5_hf_names, whose numbers
 * are those of t5_basic: `tether convert` renames them), 16 buckets of
 * distances, the repair of texts (clean.tsv). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/golden/golden.h"
#include "tests/golden/answers.h"
#include "text/text.h"

/* ---- parts of TetherCache ------------------------------------------------ */

static void grab_case(test_case *c, const tt_json *sub)
{
    const char *id = tt_json_str(sub, "id", NULL);
    const int P = (int)tt_json_int(sub, "n_cand", 0);
    const int M = (int)tt_json_int(sub, "memory_size", 0);
    const int L = (int)tt_json_int(sub, "frame_tokens", 0);
    const int T = (int)tt_json_int(sub, "query_tokens", 0);
    char name[64];
    int64_t n;
    snprintf(name, sizeof name, "%s.q", id);
    const float *q = input(c, name);
    const tt_entry *shape = tt_file_find(c->inputs, name);
    const int H = (int)shape->t.dim[2], D = (int)shape->t.dim[3];
    const size_t width = (size_t)H * D;
    snprintf(name, sizeof name, "%s.k", id);
    const float *k = input(c, name);
    snprintf(name, sizeof name, "%s.index", id);
    const int64_t *index = case_input_i64(c, name, &n);
    int number[64];
    bool keep[64];
    double mass[64], div[64], score[64];
    float got[3][64];
    int64_t kept[64];
    double *mq = doubles(width), *mk = doubles((size_t)P * width);
    column_mean(mq, q, T, width);
    for (int i = 0; i < P; i++) {
        number[i] = (int)index[i];
        column_mean(mk + i * width, k + (size_t)i * L * width, L, width);
    }
    grab_importance(mass, mq, mk, P, H, D,
                    tt_json_num(sub, "score_temperature", 1));
    grab_diversity(div, mass, number, P);
    grab_score(score, mass, div, P, tt_json_num(sub, "alpha", 0));
    grab_select(keep, score, P, M);
    for (int i = 0; i < P; i++) {
        got[0][i] = (float)mass[i];
        got[1][i] = (float)div[i];
        got[2][i] = P <= M ? 0 : (float)score[i];
        kept[i] = keep[i];
    }
    static const char *const what[] = {"mass", "div", "score"};
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s.%s", id, what[i]);
        near(c, name, got[i], P, 2e-6);
    }
    snprintf(name, sizeof name, "%s.keep", id);
    expect_int(name, kept, P, case_expected(c, name));
    free(mq), free(mk);
}

static void tame_case(test_case *c, const tt_json *sub)
{
    const char *id = tt_json_str(sub, "id", NULL);
    char name[64];
    int64_t n, m = 0;
    const double tau = tt_json_num(sub, "tau", 0);
    snprintf(name, sizeof name, "%s.x", id);
    float *x = (float *)(void *)case_input(c, name, &n);
    const tt_entry *e = tt_file_find(c->inputs, name);
    const int L = (int)e->t.dim[1], width = (int)(e->t.dim[2] * e->t.dim[3]);
    snprintf(name, sizeof name, "%s.trusted", id);
    const bool trusted = tt_file_find(c->inputs, name) != NULL;
    if (trusted && tau != 0) {
        const float *t = (float *)(void *)case_input(c, name, &m);
        double *mean = doubles(width), *sd = doubles(width);
        tame_stat(mean, sd, t, 1, (int)(m / width), width);
        if (m) tame_edit(x, L, width, mean, sd, tau);
        free(mean), free(sd);
    }
    snprintf(name, sizeof name, "%s.y", id);
    near(c, name, x, n, 2e-6);
}

static void each_sub(const char *path, void (*fn)(test_case *, const tt_json *))
{
    test_case c;
    if (!case_open(&c, "%s", path)) return;
    const tt_json *list = tt_json_get(c.json, "subcases");
    for (const tt_json *s = tt_json_first(list); s; s = tt_json_next(s))
        fn(&c, s);
    case_close(&c);
}

/* At most one unit in the last place in one number of 10,000. */
static void check_noise(test_case *c, const char *name, const float *got,
                        int64_t n)
{
    const tt_entry *e = case_expected(c, name);
    if (!expect(e && tt_tensor_count(&e->t) == n, "%s %s", c->dir, name))
        return;
    float *want = floats((size_t)n);
    int64_t differ = 0, far = 0;
    tt_gather(want, &e->t);
    for (int64_t i = 0; i < n; i++) {
        differ += got[i] != want[i];
        far += !(got[i] >= nextafterf(want[i], -INFINITY)
                 && got[i] <= nextafterf(want[i], INFINITY));
    }
    expect(far == 0 && differ * 10000 <= n,
           "%s %s: %d of %d numbers differ, %d by more than an ulp", c->dir,
           name, (int)differ, (int)n, (int)far);
    free(want);
}

static void test_noise(const char *path)
{
    test_case c;
    if (!case_open(&c, "%s", path)) return;
    const tt_json *shape = tt_json_get(c.json, "latent_shape");
    const int F = (int)tt_json_int(c.json, "num_latents", 0);
    const int f = (int)tt_json_int(c.json, "chunk", 0);
    const int gaps = (int)tt_json_int(c.json, "steps", 0) - 1;
    const uint64_t seed = strtoull(tt_json_get(c.json, "seed")->as.str, NULL,
                                   10);
    const uint32_t sample = (uint32_t)tt_json_int(c.json, "sample", 0);
    size_t n = 1;
    for (int i = 0; i < 3; i++) n *= tt_json_whole(tt_json_at(shape, i), 0);
    float *x = floats(F * n), *again = floats(F * gaps * n), *to = again;
    for (int i = 0; i < F; i++)
        noise_frame(x + i * n, n, seed, sample, (uint32_t)i, 0);
    for (int i = 0; i < F * gaps; i++, to += n) {    /* chunk, step, frame */
        const int frame = i / (f * gaps) * f + i % f;
        noise_frame(to, n, seed, sample, (uint32_t)frame,
                    (uint32_t)(i / f % gaps + 1));
    }
    check_noise(&c, "noise", x, (int64_t)(F * n));
    check_noise(&c, "renoise", again, (int64_t)(F * gaps * n));
    free(x), free(again);
    case_close(&c);
}

/* ---- schedule ------------------------------------------------------------ */

/* Tables within what case.json says of them; the default steps exactly. A list
 * of golden's ends with 0, as does the official one of such a list. */
static void tables(test_case *c, double shift)
{
    const tt_json *lists = tt_json_get(c->json, "lists");
    char name[64];
    for (int64_t l = 0; l < tt_json_count(lists); l++) {
        const tt_json *list = tt_json_at(lists, l);
        const int n = (int)tt_json_count(list);
        double steps[STEPS_MAX + 1] = {0};
        float t[STEPS_MAX];
        schedule s = {.steps = 0};
        for (int i = 0; i < n; i++)
            steps[i] = tt_json_real(tt_json_at(list, i));
        schedule_make(&s, shift, steps, true);
        for (int i = 0; i < n; i++) t[i] = (float)s.t[i];
        snprintf(name, sizeof name, "warped_shift%g_list%d", shift, (int)l);
        near(c, name, t, n, shift == 5 && l == 0 ? 1e-30 : 2.5e-4);
        snprintf(name, sizeof name, "sigmas_shift%g", shift);
        near(c, name, s.sigma, TABLE, 2.4e-7);
        snprintf(name, sizeof name, "timesteps_shift%g", shift);
        near(c, name, s.timestep, TABLE, 2.5e-4);
    }
}

static void test_scheduler(void)
{
    test_case c;
    schedule s;
    int64_t n;
    if (!case_open(&c, "dit/scheduler")) return;
    const tt_json *shifts = tt_json_get(c.json, "shifts");
    for (int64_t i = 0; i < tt_json_count(shifts); i++)
        tables(&c, tt_json_real(tt_json_at(shifts, i)));
    schedule_make(&s, 5, (const double[]){1000, 0}, true);
    const float *t = input(&c, "t"), *x = input(&c, "x");
    const float *noise = (float *)(void *)case_input(&c, "noise", &n);
    const int rows = extent(&c, "t", 0);
    const size_t each = (size_t)n / rows;
    float *mixed = floats((size_t)n), *clean = floats((size_t)n);
    int64_t index[64] = {0};
    for (int r = 0; r < rows && r < 64; r++) {
        const float sigma = schedule_sigma(&s, t[r]);
        while (index[r] < TABLE - 1 && s.sigma[index[r]] != sigma) index[r]++;
        mix(mixed + r * each, 1 - sigma, x + r * each, sigma, noise + r * each,
            each);
        flow_to_clean(clean + r * each, noise + r * each, x + r * each, sigma,
                      each);
    }
    part(&c, "add_noise", mixed, n);
    part(&c, "flow_to_x0", clean, n);
    expect_int("sigma_index", index, rows, case_expected(&c, "sigma_index"));
    free(mixed), free(clean);
    case_close(&c);
}

/* ---- rollouts ------------------------------------------------------------ */

static void set(video *v, const char *name, double value)
{
    for (knob *k = v->o; k->name; k++)
        if (!strcmp(k->name, name)) k->value = value;
}

static void set_from(video *v, const tt_json *o, const char *key,
                     const char *name)
{
    const tt_json *j = tt_json_get(o, key);
    if (j && j->kind == TT_JSON_NUMBER) set(v, name, tt_json_real(j));
}

static void read_policy(video *v, const tt_json *j)
{
    const char *name = tt_json_str(j, "policy", NULL), *pool, *way;
    const tt_json *o = tt_json_get(j, "params");
    if (!o) o = j;
    way = tt_json_str(o, "mode", NULL);
    v->policy = !strcmp(name, "tethercache") ? &tethercache
              : !strcmp(name, "infinity_rope") ? &infinity
              : !strcmp(name, "memrope") ? &memrope
              : !strcmp(name, "longlive") ? &longlive
              : !strcmp(name, "reward") ? &reward
              : strcmp(name, "deep_forcing") ? &fifo
              : way && !strcmp(way, "ds") ? &deep_sink : &deep_forcing;
    memcpy(v->o, v->policy->knobs, sizeof v->o);
    static const char *const names[][2] = {
        {"K", "budget"}, {"S", "sink"}, {"R", "recent"}, {"M", "memory"},
        {"N", "compress-to"}, {"alpha", "alpha"}, {"tau", "tau"},
        {"score_temperature", "score-temperature"}, {"max_reuse", "max-reuse"},
        {"alpha_long", "alpha-long"}, {"alpha_short", "alpha-short"},
        {"global_sink", "global-sink"}, {"sink_keep", "sink-keep"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        set_from(v, o, names[i][0], names[i][1]);
    pool = tt_json_str(j, "grab_pool", NULL);
    if (pool && !strncmp(pool, "one frame", 9)) set(v, "pool", 1);
    way = tt_json_str(o, "method", NULL);
    if (way && !strcmp(way, "eviction")) set(v, "memrope-method", 1);
    if (tt_json_bool(o, "adaptive", false)) set(v, "adaptive", 1);
}

static void read_schedule(video *v, const tt_json *j)
{
    double list[STEPS_MAX + 1] = {0};
    int n = 0;
    const tt_json *l = tt_json_get(j, "denoising_step_list");
    for (const tt_json *s = tt_json_first(l); s; s = tt_json_next(s))
        list[n++] = tt_json_real(s);
    schedule_make(&v->schedule, tt_json_num(j, "timestep_shift", 5), list,
                  tt_json_bool(j, "warp_denoising_step", true));
}

static transformer *model_of(const test_case *c)
{
    char path[700];
    snprintf(path, sizeof path, "%s/%s", c->dir,
             tt_json_str(c->json, "model", NULL));
    return transformer_open(path);
}

/* Prompts change at the frames given; without them, as A[3s] | B[2.3s#] |
 * C[2.3s] says: B begins at chunk 4, C at chunk 7 with a cut. */
static void read_scenes(video *v, test_case *c)
{
    v->scenes = 1;
    v->text[0] = prompt_open(v->model, input(c, "text"));
    if (tt_json_int(c->json, "n_prompts", 1) != 3) return;
    v->scenes = 3;
    v->text[1] = prompt_open(v->model, input(c, "text_1"));
    v->text[2] = prompt_open(v->model, input(c, "text_2"));
    const tt_json *at = tt_json_get(c->json, "switch_frame_indices");
    for (int i = 1; i < 3; i++)
        v->scene[i] = at ? (int)tt_json_real(tt_json_at(at, i - 1)) / v->chunk
                         : 1 + 3 * i;
    v->cut[2] = !at;
}

static void roll(const char *path, double tol)
{
    test_case c;
    video v = {.h = 0};
    if (!case_open(&c, "%s", path)) return;
    const tt_json *shape = tt_json_get(c.json, "latent_shape");
    v.model = model_of(&c);
    v.h = (int)tt_json_real(tt_json_at(shape, 1));
    v.w = (int)tt_json_real(tt_json_at(shape, 2));
    v.frames = (int)tt_json_int(c.json, "num_latents", 0);
    v.chunk = (int)tt_json_int(c.json, "chunk", 3);
    v.lone_first = tt_json_bool(c.json, "independent_first_frame", false);
    v.context_noise = tt_json_num(c.json, "context_noise", 0);
    v.given_frames = (int)tt_json_int(c.json, "initial_frames", 0);
    if (v.given_frames) v.given = input(&c, "initial_latent");
    v.noise = input(&c, "noise");
    v.renoise = input(&c, "renoise");
    read_policy(&v, c.json);
    read_schedule(&v, c.json);
    read_scenes(&v, &c);
    float *x = video_make(&v);
    near(&c, "latents", x, (int64_t)(v.given_frames + v.frames) * 16 * v.h
                               * v.w, tol);
    free(x);
    case_close(&c);
}

/* ---- the network --------------------------------------------------------- */

static void test_forward(const char *path)
{
    test_case c;
    if (!case_open(&c, "dit/%s", path)) return;
    transformer *m = model_of(&c);
    const tt_entry *e = tt_file_find(c.inputs, "latent");
    const int f = (int)e->t.dim[2], h = (int)e->t.dim[4], w = (int)e->t.dim[5];
    const size_t n = (size_t)f * 16 * h * w;
    const float *x = input(&c, "latent"), *t = input(&c, "t");
    float *flow = floats(3 * n), *x0 = floats(3 * n);
    schedule s;
    schedule_make(&s, 5, (const double[]){1000, 0}, true);
    prompt *text = prompt_open(m, input(&c, "text"));
    const geometry g = {.layers = m->layers, .L = h / 2 * (w / 2),
                        .grid = w / 2, .heads = m->heads,
                        .D = m->dim / m->heads, .frames = 2 * f, .chunk = f,
                        .first_chunk = f, .scenes = 1};
    cache *all = cache_open(&full, full.knobs, &g, NULL);
    for (int i = 0; i < 3; i++) {
        double each[8];
        for (int k = 0; k < f; k++) each[k] = t[i * f + k];
        const pass p = {.start = i ? f : 0, .frames = f, .h = h, .w = w};
        transformer_run(m, flow + i * n, x + i * n, each, &p, text, all);
        for (size_t k = i * n; k < (i + 1) * n; k += n / f)
            flow_to_clean(x0 + k, x + k, flow + k,
                          schedule_sigma(&s, t[k / (n / f)]), n / f);
    }
    part(&c, "flow", flow, (int64_t)(3 * n));
    part(&c, "x0", x0, (int64_t)(3 * n));
    cache_close(all, m->layers);
    free(flow), free(x0);
    case_close(&c);
}

/* One model as F32, BF16 and F16. */
static void test_layouts(void)
{
    static const char *const name[][2] = {
        {"wan", "flow"}, {"wan_bf16", "flow_bf16"}, {"wan_f16", "flow_f16"}};
    test_case c;
    if (!case_open(&c, "dit/layouts_forward")) return;
    for (int i = 0; i < 3; i++) {
        char path[700];
        snprintf(path, sizeof path, "%s/../layouts/%s", c.dir, name[i][0]);
        transformer *m = transformer_open(path);
        const tt_entry *e = tt_file_find(c.inputs, "latent");
        const int h = (int)e->t.dim[3], w = (int)e->t.dim[4];
        const int f = (int)e->t.dim[1];
        const float *t = input(&c, "t");
        double each[8];
        for (int k = 0; k < f; k++) each[k] = t[k];
        const size_t n = (size_t)f * 16 * h * w;
        float *flow = floats(n);
        prompt *text = prompt_open(m, input(&c, "text"));
        const geometry g = {.layers = m->layers, .L = h / 2 * (w / 2),
                            .grid = w / 2, .heads = m->heads,
                            .D = m->dim / m->heads, .frames = f, .chunk = f,
                            .first_chunk = f, .scenes = 1};
        const pass p = {.frames = f, .h = h, .w = w};
        cache *all = cache_open(&full, full.knobs, &g, NULL);
        transformer_run(m, flow, input(&c, "latent"), each, &p, text, all);
        part(&c, name[i][1], flow, (int64_t)n);
        cache_close(all, m->layers);
        free(flow);
    }
    case_close(&c);
}

/* ---- text ---------------------------------------------------------------- */

static tt_ctx *engine;   /* ids and text states have the bits of its class f32 */

static void same_states(const char *path, const tt_umt5_input *in,
                        const float *golden)
{
    tt_umt5 *enc;
    if (!expect_ok(tt_umt5_open(engine, &enc, path), path)) return;
    const int64_t n = in->B * in->L * tt_umt5_config_of(enc)->dim;
    tt_host *x = tt_scratch(engine, n);
    expect_ok(tt_umt5_encode(engine, x, NULL, enc, in), path);
    expect(!memcmp(x, golden, (size_t)n * sizeof *golden),
           "%s: not the bits of the engine", path);
    tt_umt5_close(enc);
}

static void test_t5(const char *path)
{
    test_case c;
    int64_t n;
    int dim = 0;
    if (!case_open(&c, "%s", path)) return;
    const int64_t *ids = case_input_i64(&c, "ids", &n);
    const int64_t *mask = case_input_i64(&c, "mask", &n);
    const int length = (int)tt_json_int(c.json, "length", 0);
    const int B = (int)(n / length);
    char file[700];
    snprintf(file, sizeof file, "%s/weights.safetensors", c.dir);
    weights *f = weights_open(file);
    float *all = NULL;
    for (int b = 0; b < B; b++) {
        int *row = memory((size_t)length, sizeof *row);
        uint8_t *real = memory((size_t)length, 1);
        for (int i = 0; i < length; i++) {
            row[i] = (int)ids[b * length + i];
            real[i] = mask[b * length + i] != 0;
        }
        float *x = text_encode(f, row, real, length, &dim);
        const size_t size = (size_t)length * dim;
        if (!all) all = floats(B * size);
        memcpy(all + b * size, x, size * sizeof *x);
        free(x), free(row), free(real);
    }
    near(&c, "context", all, (int64_t)B * length * dim,
         tt_json_num(tt_json_get(c.json, "tolerance"), "f32_vs_f64_max_abs",
                     -1));
    weights_close(f);
    same_states(file, &(tt_umt5_input){ids, mask, B, length, true}, all);
    free(all);
    case_close(&c);
}

static void test_t5_units(void)
{
    test_case c;
    int64_t n, rows;
    if (!case_open(&c, "t5_units")) return;
    const tt_json *tol = tt_json_get(c.json, "tolerance");
    const float *rel = (float *)(void *)case_input(&c, "rel", &n);
    int64_t *bucket = memory((size_t)n, sizeof *bucket);
    for (int64_t i = 0; i < n; i++) bucket[i] = t5_bucket((int)rel[i]);
    expect_int("bucket32", bucket, n, case_expected(&c, "bucket32"));
    float *x = (float *)(void *)case_input(&c, "gelu_x", &n), most = 0;
    gelu(x, (size_t)n);
    near(&c, "gelu", x, n, tt_json_num(tol, "gelu", -1));
    x = (float *)(void *)case_input(&c, "norm_x", &n);
    const float *w = (float *)(void *)case_input(&c, "norm_weight", &rows);
    rms_norm(x, x, (int)(n / rows), (int)rows,
             tt_json_num(c.json, "norm_eps", 0), w);
    for (int64_t i = 0; i < n; i++) most = fmaxf(most, fabsf(x[i]));
    near(&c, "norm", x, n, tt_json_num(tol, "norm_rel", -1) * (double)most);
    free(bucket);
    case_close(&c);
}

static size_t from_hex(char *to, const char *hex)
{
    size_t n = 0;
    unsigned byte;
    for (; sscanf(hex, "%2x", &byte) == 1; hex += 2) to[n++] = (char)byte;
    return n;
}

static bool same_ids(const tt_tokenizer *tok, const char *text, size_t size,
                     const int *ids, int n)
{
    int64_t *x, count = -1;
    const tt_arena_mark mark = tt_arena_here(&engine->scratch);
    bool same = !tt_tokenizer_encode(engine, &engine->scratch, &x, &count, tok,
                                     text, size) && count == n;
    for (int i = 0; same && i < n; i++) same = x[i] == ids[i];
    tt_arena_reset(&engine->scratch, mark);
    return same;
}

static void test_tokens(const char *model, const char *table)
{
    static char line[65536], hex[65536], bytes[32768];
    static int ids[20000];
    char path[300];
    snprintf(path, sizeof path, "%s", ref_path("t5_tokenizer/%s", model));
    tokenizer *t = tokenizer_open(path);
    tt_tokenizer *tok;
    if (!expect_ok(tt_tokenizer_open(engine, &tok, path), path)) return;
    FILE *f = fopen(ref_path("t5_tokenizer/%s", table), "r");
    int texts = 0;
    if (!expect(f != NULL, "%s is there", table)) return;
    while (fgets(line, sizeof line, f)) {
        int at = 0, n = 0, i = 0;
        long want;
        if (line[0] == '#' || sscanf(line, "%*d %65535s %n", hex, &at) != 1)
            continue;
        const size_t size = hex[0] == '-' ? 0 : from_hex(bytes, hex);
        n = tokenize(t, bytes, size, ids, 20000);
        char *end = line + at;
        bool same = true;
        while (*end != '-' && (want = strtol(end, &end, 10), *end)
               && i < n) {
            same = same && want == ids[i++];
            if (strspn(end, " \n") == strlen(end)) break;
        }
        expect(same && i == n, "%s: text %d: %d of %d ids", table, texts, i, n);
        expect(same_ids(tok, bytes, size, ids, n), "%s: text %d: not the ids "
               "of the engine", table, texts);
        texts++;
    }
    fclose(f);
    tt_tokenizer_close(tok);
    expect(texts > 10, "%s: %d texts", table, texts);
}

/* ---- the lesson ---------------------------------------------------------- */

static char page[32768];

static void shows(const char *format, ...)
{
    char row[200];
    va_list args;
    va_start(args, format);
    vsnprintf(row, sizeof row, format, args);
    va_end(args);
    expect(strstr(page, row) != NULL, "the lesson has no row %s", row);
}

/* Its tables are what the functions give. */
static void test_lesson(void)
{
    static const double steps[] = {1000, 750, 500, 250, 0};
    FILE *f = fopen("src/golden/README.md", "r");
    const size_t n = f ? fread(page, 1, sizeof page - 1, f) : 0;
    if (f) fclose(f);
    if (!expect(n > 0 && n < sizeof page - 1, "the lesson is read")) return;
    schedule s;
    schedule_make(&s, 5, steps, true);
    for (int i = 0; i < 4; i++)
        shows("| %d | %.1f | %.4f |", i + 1, s.t[i], schedule_sigma(&s, s.t[i]));

    const transformer *m = transformer_open(ref_path("demo"));
    const int L = m->height / 16 * (m->width / 16);
    shows("| demo, %dx%d | %d | %d | %d | %lld |", m->width, m->height,
          m->layers, L, m->dim, 8LL * m->layers * L * m->dim);
    shows("| Wan2.1 1.3B, 832x480 | 30 | 1560 | 1536 | %lld |",
          8LL * 30 * 1560 * 1536);

    const double trusted_mean = 0, trusted_sd = 1;
    const float before[4] = {0.5f, 0.5f, 1.5f, 1.5f};
    float x[4];
    double mean, sd;
    memcpy(x, before, sizeof x);
    tame_edit(x, 4, 1, &trusted_mean, &trusted_sd, 0.35);
    for (int i = 0; i < 4; i++) shows("| %g | %g |", before[i], x[i]);
    tame_stat(&mean, &sd, x, 1, 4, 1);
    shows("The mean moves from 1 to %g, the deviation from 0.5 to %g.", mean,
          sd);
}

int main(void)
{
    static const char *const rolls[] = {
        "global", "fifo_K9_S0", "fifo_K9_S2", "fifo_K7_S1", "iff", "extend",
        "nowarp", "tether_K9", "tether_K21", "tether_K7_quirk", "tether_tau0",
        "tether_temp", "tether_paper", "i2v_iff", "context_noise"};
    static const char *const others[] = {
        "sf_full", "sf_fifo_k6_s2", "inf_k6_s1", "inf_k21_s3",
        "inf_scenes_k6", "mem_ema_k12", "mem_adaptive_k12", "mem_fifo_k9_s0",
        "mem_fifo_k9_s2", "deep_ds_k21", "deep_pc_k9", "deep_pc_k21",
        "longlive_k9", "longlive_k9_flush", "reward_k9", "reward_k9_s2",
        "reward_k9_fast"};
    char path[64];
    engine = test_begin("golden/cases");
    if (sizeof(tt_real) != 4) {
        skip("golden computes in float; this build is in double");
        expect(true, "a double build");
        return test_end();
    }
    each_sub("dit/grab_unit", grab_case);
    each_sub("dit/tame_unit", tame_case);
    test_lesson();
    test_noise("noise_tn1");
    test_noise("noise_tn1_odd");
    test_scheduler();
    test_forward("tiny_a_forward");
    test_forward("tiny_b_forward");
    test_forward("head128_forward");
    test_layouts();
    for (size_t i = 0; i < sizeof rolls / sizeof *rolls; i++) {
        snprintf(path, sizeof path, "dit/roll_%s", rolls[i]);
        roll(path, 6e-6);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(path, sizeof path, "policy_%s", others[i]);
        roll(path, 2e-5);
    }
    test_t5("t5_basic");
    test_t5("t5_len512");
    test_t5("t5_mask_edge");
    test_t5("t5_bf16_weights");
    test_t5_units();
    test_tokens("pub_a.model", "pub_a.tsv");
    test_tokens("pub_a.model", "pub_a_invalid_utf8.tsv");
    test_tokens("pub_b.model", "pub_b.tsv");
    test_tokens("pub_b.model", "pub_b_invalid_utf8.tsv");
    return test_end();
}
