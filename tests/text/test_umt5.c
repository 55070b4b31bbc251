/* test_umt5.c: the text encoder against the official one.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  ref_data/t5_*: every tensor of expected_f64, branches
 *                included, within the case's tolerance (1e-10 in a double
 *                build); t5_units.
 * Properties     leaving out padding rows changes no bit; sequences of a
 *                batch do not see each other; an id outside the vocabulary
 *                and damaged weights are refused. */
#include "tests/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ops/backend.h"
#include "text/text.h"

#define F64_TOL 1e-10

static double tolerance(const test_case *c)
{
    if (sizeof(tt_real) == 8) return F64_TOL;
    return tt_json_num(tt_json_get(c->json, "tolerance"),
                       "f32_vs_f64_max_abs", -1.0);
}

/* Compares every tapped tensor that the case expects. */
typedef struct watcher {
    test_case *c;
    int seen;
} watcher;

static void watch(void *user, const char *path, tt_dtype dtype, int rank,
                  const int64_t *dim, const void *data)
{
    watcher *w = user;
    const char *name = strncmp(path, "text/", 5) == 0 ? path + 5 : path;
    const tt_entry *e = tt_file_find(w->c->expected_f64, name);
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= dim[i];
    expect(dtype == (sizeof(tt_real) == 8 ? TT_F64 : TT_F32), "%s: type",
           path);
    if (e && expect_close(path, data, n, e, tolerance(w->c), 0)) w->seen++;
}

/* The short path of B = 1, sequence by sequence, against all rows. */
static void check_short(tt_ctx *ctx, tt_umt5 *enc, const tt_real *embeds,
                        const int64_t *ids, const int64_t *mask, int64_t B,
                        int64_t L)
{
    const int64_t n = L * tt_umt5_config_of(enc)->dim;
    const bool golden = strcmp(ctx->ops->name, "golden") == 0;
    tt_real *one = tt_scratch(ctx, n);
    for (int64_t b = 0; b < B; b++) {
        if (!expect_ok(tt_umt5_encode(ctx, NULL, one, enc, &(tt_umt5_input){
                ids + b * L, mask + b * L, 1, L, false}), "short"))
            continue;
        double worst = 0;
        for (int64_t i = 0; i < n; i++) {
            double d = fabs((double)one[i] - (double)embeds[b * n + i]);
            if (!(d <= worst)) worst = d;
        }
        expect(worst <= (golden ? 0 : 1e-5),
               "without padding rows sequence %lld differs by %g",
               (long long)b, worst);
    }
}

static void check_case(tt_ctx *ctx, const char *name)
{
    test_case c;
    tt_umt5 *enc;
    int64_t n;
    if (!case_open(&c, "%s", name)) return;
    const int64_t B = tt_json_int(c.json, "batch", 0);
    const int64_t L = tt_json_int(c.json, "length", 0);
    const tt_json *cfg = tt_json_get(c.json, "config");
    const int64_t *ids = case_input_i64(&c, "ids", &n);
    const int64_t *mask = case_input_i64(&c, "mask", NULL);
    if (!ids || !mask || !expect(n == B * L, "%s: ids", name)
        || !expect_ok(tt_umt5_open(ctx, &enc,
                                   ref_path("%s/weights.safetensors", name)),
                      name))
        return;
    const tt_umt5_config *k = tt_umt5_config_of(enc);
    expect(k->heads == tt_json_int(cfg, "num_heads", 0)
           && k->buckets == tt_json_int(cfg, "num_buckets", 0)
           && k->layers == tt_json_int(cfg, "num_layers", 0)
           && k->dim_attn == tt_json_int(cfg, "dim_attn", 0)
           && k->dim_ffn == tt_json_int(cfg, "dim_ffn", 0)
           && k->vocab == tt_json_int(cfg, "vocab", 0),
           "%s: sizes read from the shapes", name);

    tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *context = tt_scratch(ctx, B * L * k->dim);
    tt_real *embeds = tt_scratch(ctx, B * L * k->dim);
    watcher w = {&c, 0};
    ctx->tap = watch;
    ctx->tap_user = &w;
    const tt_umt5_input in = {ids, mask, B, L, false};
    bool ok = expect_ok(tt_umt5_encode(ctx, context, embeds, enc, &in), name);
    ctx->tap = NULL;
    expect(w.seen == tt_file_count(c.expected_f64),
           "%s: %d of %lld expected tensors were tapped", name, w.seen,
           (long long)tt_file_count(c.expected_f64));
    if (ok) {
        double tol = tolerance(&c);
        expect_close("context", context, B * L * k->dim,
                     case_expected(&c, "context"), tol, 0);
        expect_close("prompt_embeds", embeds, B * L * k->dim,
                     case_expected(&c, "prompt_embeds"), tol, 0);
        check_short(ctx, enc, embeds, ids, mask, B, L);
    }
    tt_arena_reset(&ctx->scratch, mark);
    tt_umt5_close(enc);
    case_close(&c);
}

static void check_units(tt_ctx *ctx)
{
    test_case c;
    int64_t nr, ng, nx, nw;
    if (!case_open(&c, "t5_units")) return;
    const tt_json *tol = tt_json_get(c.json, "tolerance");
    const bool wide = sizeof(tt_real) == 8;
    tt_real *rel = case_input(&c, "rel", &nr);
    tt_real *g = case_input(&c, "gelu_x", &ng);
    tt_real *x = case_input(&c, "norm_x", &nx);
    tt_real *w = case_input(&c, "norm_weight", &nw);
    int64_t *bucket = tt_alloc(ctx, &c.arena, nr, sizeof *bucket, "buckets");
    for (int i = 0; i < 2; i++) {
        for (int64_t j = 0; j < nr; j++)
            bucket[j] = tt_umt5_bucket((int64_t)rel[j], i ? 16 : 32);
        const char *name = i ? "bucket16" : "bucket32";
        expect_int(name, bucket, nr, tt_file_find(c.expected, name));
    }
    tt_gelu_tanh(ctx, g, ng);
    expect_close("gelu", g, ng, case_expected(&c, "gelu"),
                 wide ? F64_TOL : tt_json_num(tol, "gelu", -1), 0);
    tt_rms_norm(ctx, x, x, nx / nw, nw, w,
                tt_json_num(c.json, "norm_eps", 0));
    /* norm_rel is relative; the largest value makes it absolute. */
    double most = 0, rel_tol = tt_json_num(tol, "norm_rel", -1);
    for (int64_t i = 0; i < nx; i++)
        if (fabs((double)x[i]) > most) most = fabs((double)x[i]);
    expect_close("norm", x, nx, case_expected(&c, "norm"),
                 wide ? F64_TOL : rel_tol * most, 0);
    case_close(&c);
}

static void check_refusals(tt_ctx *ctx)
{
    tt_umt5 *enc;
    tt_real out[4 * 32];
    int64_t ids[4] = {5, 6, 300, 1}, mask[4] = {1, 1, 1, 1};
    const char *path = ref_path("t5_basic/weights.safetensors");
    if (!expect_ok(tt_umt5_open(ctx, &enc, path), path)) return;
    tt_umt5_input in = {ids, mask, 1, 4, false};
    expect_status(tt_umt5_encode(ctx, NULL, out, enc, &in),
                  TT_ESHAPE, "an id equal to vocab");
    ids[2] = -1;
    expect_status(tt_umt5_encode(ctx, NULL, out, enc, &in),
                  TT_ESHAPE, "a negative id");
    in.L = 0;
    expect_status(tt_umt5_encode(ctx, NULL, out, enc, &in),
                  TT_EINVAL, "no tokens");
    tt_umt5_close(enc);
    expect(tt_umt5_open(ctx, &enc, ref_path("t5_units/inputs.safetensors"))
           != TT_OK && enc == NULL,
           "a file that is no text encoder is accepted");
    tt_clear(ctx);
}

/* NaN over the data of one matrix of a safetensors file in memory. */
static bool poison(unsigned char *file, size_t n, const char *name)
{
    uint64_t header = 0;
    for (int i = 7; i >= 0; i--) header = header << 8 | file[i];
    if (n < 8 || header > n - 8) return false;
    char *json = (char *)file + 8, *at = strstr(json, name), *end;
    at = at ? strstr(at, "data_offsets") : NULL;
    at = at ? strchr(at, '[') : NULL;
    if (!at) return false;
    long long first = strtoll(at + 1, &end, 10), last = strtoll(end + 1, NULL,
                                                                10);
    if (first < 0 || last < first || (uint64_t)last > n - 8 - header)
        return false;
    memset(file + 8 + header + first, 0xff, (size_t)(last - first));
    return true;
}

/* Small parameters that are not finite are refused when they are bound; a
 * matrix shows only in the result, which must not be delivered. */
static void check_nan(tt_ctx *ctx)
{
    char path[600];
    int64_t ids[2] = {5, 1}, mask[2] = {1, 1};
    tt_real out[2 * 32];
    tt_umt5 *enc;
    static unsigned char bytes[1 << 18];
    FILE *in = fopen(ref_path("t5_basic/weights.safetensors"), "rb");
    size_t n = in ? fread(bytes, 1, sizeof bytes, in) : 0;
    if (in) fclose(in);
    bool poisoned = poison(bytes, n, "\"blocks.2.ffn.fc2.weight\"");
    tmp_path(path, sizeof path, "nan-XXXXXX");
    int fd = mkstemp(path);
    bool written = fd >= 0 && write(fd, bytes, n) == (ssize_t)n;
    if (fd >= 0) close(fd);
    if (expect(poisoned && written, "cannot write %s", path)
        && expect_ok(tt_umt5_open(ctx, &enc, path), "NaN weights")) {
        const tt_umt5_input two = {ids, mask, 1, 2, false};
        expect_status(tt_umt5_encode(ctx, NULL, out, enc, &two), TT_EFORMAT,
                      "NaN weights");
        tt_umt5_close(enc);
    }
    unlink(path);
}

int main(void)
{
    static const char *const name[] = {"t5_basic", "t5_hf_names", "t5_len512",
                                       "t5_bf16_weights", "t5_mask_edge"};
    tt_ctx *ctx = test_begin("text/umt5");
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        check_case(ctx, name[i]);
    check_units(ctx);
    check_refusals(ctx);
    check_nan(ctx);
    return test_end();
}
