/* test_gguf.c: GGUF files as models, and quantised matrices in the operators.
 * Self-made files against the same values in safetensors; bits must be equal.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness.h"
#include "ops/backend.h"

static tt_ctx *ctx;
static tt_arena arena;
static char path[600];

/* ---- a GGUF file --------------------------------------------------------- */

static unsigned char head[1 << 16];
static size_t nhead;
static uint64_t data_at;

static void put(uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) head[nhead++] = (unsigned char)(v >> 8 * i);
}

static void put_text(const char *s)
{
    put(strlen(s), 8);
    memcpy(head + nhead, s, strlen(s));
    nhead += strlen(s);
}

static void begin(uint64_t tensors, const char *shape_of, int rank,
                  const int *shape)
{
    nhead = 0;
    data_at = 0;
    memcpy(head, "GGUF", 4);
    nhead = 4;
    put(3, 4);
    put(tensors, 8);
    put(shape_of ? 2 : 1, 8);
    put_text("general.architecture");
    put(8, 4);
    put_text("test");
    if (!shape_of) return;
    char key[200];
    snprintf(key, sizeof key, "comfy.gguf.orig_shape.%s", shape_of);
    put_text(key);
    put(9, 4);
    put(5, 4);
    put((uint64_t)rank, 8);
    for (int i = 0; i < rank; i++) put((uint64_t)shape[i], 4);
}

static void info(const char *name, int type, int rank, const int64_t *dim,
                 size_t bytes)
{
    put_text(name);
    put((uint64_t)rank, 4);
    for (int i = rank - 1; i >= 0; i--) put((uint64_t)dim[i], 8);
    put((uint64_t)type, 4);
    put(data_at, 8);
    data_at += (bytes + 31) / 32 * 32;
}

static FILE *finish_head(void)
{
    FILE *f = fopen(path, "wb");
    while (nhead % 32) head[nhead++] = 0;
    fwrite(head, 1, nhead, f);
    return f;
}

static void put_data(FILE *f, const void *data, size_t n)
{
    static const char zero[32];
    fwrite(data, 1, n, f);
    fwrite(zero, 1, (32 - n % 32) % 32, f);
}

/* ---- the text encoder under llama.cpp's names ---------------------------- */

static const char *llama_name(const char *wan)
{
    static const char *const pair[][2] = {
        {"norm1", "attn_norm"}, {"attn.q", "attn_q"}, {"attn.k", "attn_k"},
        {"attn.v", "attn_v"}, {"attn.o", "attn_o"},
        {"pos_embedding.embedding", "attn_rel_b"}, {"norm2", "ffn_norm"},
        {"ffn.gate.0", "ffn_gate"}, {"ffn.fc1", "ffn_up"},
        {"ffn.fc2", "ffn_down"}};
    static char buf[100], rest[100];
    int i;
    if (!strcmp(wan, "token_embedding.weight")) return "token_embd.weight";
    if (!strcmp(wan, "norm.weight")) return "enc.output_norm.weight";
    if (sscanf(wan, "blocks.%d.%99s", &i, rest) != 2) return "?";
    for (size_t k = 0; k < sizeof pair / sizeof *pair; k++) {
        size_t n = strlen(pair[k][0]);
        if (strncmp(rest, pair[k][0], n) || rest[n] != '.') continue;
        snprintf(buf, sizeof buf, "enc.blk.%d.%s%s", i, pair[k][1], rest + n);
        return buf;
    }
    return "?";
}

static void text_encoder(void)
{
    tt_weights *a, *b;
    if (!expect_ok(tt_weights_open(ctx, &a, ref_path("t5_basic"), TT_MODEL_T5,
                                   NULL), "t5_basic")) return;
    int64_t n = tt_weights_count(a);
    begin((uint64_t)n, NULL, 0, NULL);
    for (int64_t i = 0; i < n; i++) {
        const char *name = tt_weights_name(a, i);
        const tt_tensor *t = tt_weights_find(a, name);
        expect(t->dtype == TT_F32, "F32 expected");
        info(llama_name(name), 0, t->rank, t->dim, (size_t)tt_tensor_bytes(t));
    }
    FILE *f = finish_head();
    for (int64_t i = 0; i < n; i++) {
        const tt_tensor *t = tt_weights_find(a, tt_weights_name(a, i));
        put_data(f, t->data, (size_t)tt_tensor_bytes(t));
    }
    fclose(f);
    if (expect_ok(tt_weights_open(ctx, &b, path, TT_MODEL_T5, NULL), path)) {
        expect(tt_weights_count(b) == n, "count");
        expect(!strcmp(tt_weights_origin(b), "llama.cpp names, GGUF"),
               "origin: %s", tt_weights_origin(b));
        for (int64_t i = 0; i < n; i++) {
            const char *name = tt_weights_name(a, i);
            const tt_tensor *x = tt_weights_find(a, name);
            const tt_tensor *y = tt_weights_find(b, name);
            if (!expect(y != NULL, "no %s", name)) continue;
            expect(x->rank == y->rank && x->dim[0] == y->dim[0], "%s", name);
            expect_bits(name, x->data, y->data, (size_t)tt_tensor_bytes(x));
        }
        tt_weights_close(b);
    }
    tt_weights_close(a);
}

/* ---- shapes -------------------------------------------------------------- */

static void flattened(const char *what, bool recorded, int rank,
                      const int64_t *dim, int type, bool good)
{
    enum { DIM = 8, C = 8 };
    static const int shape[5] = {DIM, C, 1, 2, 2};
    static float x[DIM * C * 4], le[DIM * C * 4];
    static unsigned char q[DIM * C * 4 / 32 * 34];
    int64_t want[5] = {DIM, C, 1, 2, 2}, one[] = {DIM}, m3[] = {1, 2, DIM};
    tt_weights *w;
    size_t bytes = type ? sizeof q : sizeof x;
    for (int i = 0; i < DIM * C * 4; i++) x[i] = (float)(i % 97);
    for (size_t b = 0; b < sizeof q / 34; b++) { /* the same, d = 1 */
        q[34 * b] = 0;
        q[34 * b + 1] = 0x3c;
        for (size_t i = 0; i < 32; i++)
            q[34 * b + 2 + i] = (unsigned char)x[32 * b + i];
    }
    begin(3, recorded ? "patch_embedding.weight" : NULL, 5, shape);
    info("patch_embedding.weight", type, rank, dim, bytes);
    info("patch_embedding.bias", 0, 1, one, sizeof(float) * DIM);
    info("head.modulation", 0, 2, (int64_t[]){2, DIM}, sizeof(float) * 2 * DIM);
    memcpy(le, x, sizeof le);
    tt_swap_stored(le, TT_F32, DIM * C * 4);
    FILE *f = finish_head();
    put_data(f, type ? (void *)q : (void *)le, bytes);
    put_data(f, le, sizeof(float) * DIM);
    put_data(f, le, sizeof(float) * 2 * DIM);
    fclose(f);
    tt_status s = tt_weights_open(ctx, &w, path, TT_MODEL_DIT, NULL);
    if (!good) {
        expect(s == TT_EFORMAT, "%s: accepted", what);
        tt_clear(ctx);
        tt_weights_close(w);
        return;
    }
    if (!expect_ok(s, what)) return;
    tt_bind b;
    tt_bind_begin(&b, ctx, w, &arena, "transformer");
    tt_tensor t = tt_bind_tensor(&b, "patch_embedding.weight", 5, want);
    tt_bind_real(&b, "patch_embedding.bias", 1, one);
    expect(tt_bind_real(&b, "head.modulation", 3, m3) != NULL,
           "a leading one is given back");
    expect_ok(tt_bind_end(&b, NULL), what);
    expect(t.data && t.dtype == TT_F32, "%s: type", what);
    if (t.data) expect_values(what, &t, x, sizeof x);
    tt_weights_close(w);
}

/* ---- quantised matrices -------------------------------------------------- */

static uint32_t state = 1;

static uint32_t dice(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* Any bytes, but float16 factors of a sane size where they stand. */
static void random_blocks(unsigned char *p, tt_dtype t, int64_t n)
{
    static const struct { tt_dtype t; int at[2]; } factors[] = {
        {TT_Q8_0, {0, 0}}, {TT_Q4_0, {0, 0}}, {TT_Q4_1, {0, 2}},
        {TT_Q5_0, {0, 0}}, {TT_Q5_1, {0, 2}}, {TT_Q2_K, {80, 82}},
        {TT_Q3_K, {108, 108}}, {TT_Q4_K, {0, 2}}, {TT_Q5_K, {0, 2}},
        {TT_Q6_K, {208, 208}}, {TT_IQ4_NL, {0, 0}}, {TT_IQ4_XS, {0, 0}}};
    size_t size = tt_dtype_size(t);
    for (int64_t b = 0; b < n; b++, p += size) {
        for (size_t i = 0; i < size; i++) p[i] = (unsigned char)dice();
        for (size_t k = 0; k < sizeof factors / sizeof *factors; k++)
            for (int j = 0; j < 2; j++)
                if (factors[k].t == t)
                    p[factors[k].at[j] + 1] = (unsigned char)
                        (0x20 | (p[factors[k].at[j] + 1] & 0x87));
    }
}

/* Every backend: a quantised or scaled matrix gives the bits of the same
 * matrix widened beforehand. */
static void linear(tt_dtype type, int64_t k, float scale, bool rows)
{
    enum { O = 21, N = 5, K = 1280 };
    static unsigned char raw[O * K * 4];
    static tt_real x[N * K], y[N * O], z[N * O];
    static float wide[O * K];
    TT_ASSERT(k <= K);
    random_blocks(raw, type, O * k / tt_dtype_block(type));
    if (tt_dtype_block(type) == 1)
        for (int64_t i = 0; i < O * k; i++) raw[i] &= 0xbf; /* no NaN */
    for (int64_t i = 0; i < N * k; i++)
        x[i] = (tt_real)((int)(dice() % 200) - 100) / 64;
    tt_tensor w = tt_tensor_make(raw, type, 2, (int64_t[]){O, k});
    float each[O];
    for (int i = 0; i < O; i++) each[i] = 0.01f * (float)(1 + dice() % 100);
    w.scale = scale;
    w.row_scale = rows ? each : NULL;
    w.row = k;
    tt_tensor v = tt_tensor_make(wide, TT_F32, 2, w.dim);
    tt_widen_at_f32(wide, &w, 0, O * k);
    const tt_ops *kept = ctx->ops;
    for (int i = 0; tt_ops_at(i); i++) {
        if (tt_ops_use(ctx, tt_ops_at(i)->name) == TT_EUNSUPPORTED) {
            tt_clear(ctx); /* no OpenBLAS here: test_backends says so */
            continue;
        }
        tt_linear(ctx, y, x, N, &w, NULL);
        tt_linear(ctx, z, x, N, &v, NULL);
        expect_ok(ctx->status, "linear");
        /* a double build widens scale * stored without rounding */
        if (scale == 0 || sizeof(tt_real) == 4)
            expect(!memcmp(y, z, sizeof y), "%s: %s of width %d differs",
                   tt_ops_at(i)->name, tt_dtype_name(type), (int)k);
    }
    ctx->ops = kept;
}

int main(void)
{
    ctx = test_begin("io/gguf");
    tmp_path(path, sizeof path, "gguf");
    text_encoder();
    flattened("recorded", true, 2, (int64_t[]){8, 32}, 0, true);
    flattened("merged", false, 4, (int64_t[]){64, 1, 2, 2}, 0, true);
    flattened("one row", false, 1, (int64_t[]){256}, 0, true);
    flattened("quantised", true, 2, (int64_t[]){8, 32}, 8, true);
    flattened("quantised whole", false, 1, (int64_t[]){256}, 8, true);
    for (tt_dtype t = TT_Q8_0; t < TT_DTYPE_COUNT; t++) {
        linear(t, tt_dtype_block(t), 0, false);
        linear(t, 768, 0, false);
        linear(t, 1280, 0, false);
    }
    linear(TT_F8_E4M3, 700, 0.37f, false);
    linear(TT_F8_E5M2, 513, 1.25f, false);
    linear(TT_I8, 640, 0.02f, false);
    linear(TT_F8_E4M3, 700, 1, true);
    linear(TT_I8, 1280, 1, true);
    unlink(path);
    tt_arena_free(&arena);
    return test_end();
}
