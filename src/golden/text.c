/* text.c: a prompt becomes ids, and ids become text states (umT5's encoder).
 * SPDX-License-Identifier: Apache-2.0
 *
 * Code    wan/modules/t5.py, tokenizers.py; Self-Forcing utils/wan_wrapper.py.
 * Paper: the published runs compute in bfloat16. We: float. */
#include "golden.h"

typedef struct range { uint32_t first, last; } range;
static bool within(uint32_t c, const range *r) {
    while (r->last && (c < r->first || c > r->last)) r++;
    return r->last;
}

/* Curly quotes become plain, a run of white space one blank, none at the ends. What else the
 * official cleaning (ftfy, html.unescape, NFC) might change is refused: all but these ranges, and
 * an & that no blank follows. */
char *clean_prompt(const char *utf8) {
    static const range white[] = {{9, 13}, {' ', ' '}, {0x85, 0x85}, {0xa0, 0xa0}, {0x1680, 0x1680},
        {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
        {0, 0}};
    static const range quote[] = {{0x201c, 0x201f}, {0x2bc, 0x2bc}, {0x2018, 0x201b}, {0, 0}};
    static const range plain[] = {{0x21, 0x7e}, {0xa1, 0x131}, {0x134, 0x148}, {0x14a, 0x1c3},
        {0x1cd, 0x1f0}, {0x1f4, 0x2ff}, {0x388, 0x482}, {0x48a, 0x52f}, {0x2010, 0x2017},
        {0x2020, 0x2027}, {0x2030, 0x205e}, {0x2190, 0x21ff}, {0x3001, 0x3029}, {0x3041, 0x3096},
        {0x30a1, 0x30fe}, {0x4e00, 0x9fff}, {0xac00, 0xd7a3}, {0x1f300, 0x1faff}, {0, 0}};
    char *out = memory(strlen(utf8) + 1, 1), *to = out;
    int size;
    for (const char *at = utf8; *at; at += size) {
        uint32_t c = 0;
        size = utf8_character((const uint8_t *)at, strlen(at), &c);
        if (within(c, white)) {
            if (to > out && to[-1] != ' ') *to++ = ' ';
        } else if (within(c, quote)) *to++ = c >= 0x201c ? '"' : '\'';
        else if (size && within(c, plain) && (c != '&' || at[1] == ' '))
            for (int i = 0; i < size; i++) *to++ = at[i];
        else fail("the prompt needs more cleaning than golden does at \"%.20s\": give --ids with "
                  "what `tether tokenize` prints", at);
    }
    if (to > out && to[-1] == ' ') to--;
    *to = 0;
    return out;
}

/* The bucket of a distance from query to key: exact up to 7, then wider and wider; another 16 for
 * keys that come later. */
int t5_bucket(int distance) {
    static const int first[] = {8, 12, 16, 23, 32, 46, 64, 91};
    const int far = abs(distance);
    int bucket = far < 8 ? far : 7;
    for (int i = 0; far >= 8 && i < 8 && far >= first[i]; i++) bucket++;
    return bucket + (distance > 0 ? 16 : 0);
}

/* A layer that is read, used once, and forgotten: the published encoder has 5.7 billion weights. */
static void apply(weights *f, float *y, const float *x, int rows, int out, int in, int i,
                  const char *name) {
    dense m;
    load_dense(&m, f, out, in, "blocks.%d.%s", i, name);
    linear(y, x, rows, &m);
    free(m.w), free(m.b);
}

static void norm(weights *f, float *y, const float *x, int rows, int dim, int i, int which) {
    float *w = load(f, SHAPE(dim), "blocks.%d.norm%d.weight", i, which);
    rms_norm(y, x, rows, dim, 1e-6, w);
    free(w);
}

/* x = x + o(attention(norm(x))), with a bias for the distance of query and key, and no scale. */
static void attention_branch(weights *f, float *x, int rows, int dim, int i, const uint8_t *mask) {
    const char *table_name = "blocks.%d.pos_embedding.embedding.weight";
    const int heads = weights_dim(f, 1, table_name, i), each = 2 * rows - 1;
    const int width = weights_dim(f, 0, "blocks.%d.attn.q.weight", i);
    const size_t n = (size_t)rows * width;
    float *h = floats((size_t)rows * dim), *bias = floats((size_t)heads * each);
    float *q = floats(4 * n), *k = q + n, *v = k + n, *o = v + n;
    float *table = load(f, SHAPE(32, heads), table_name, i);
    for (int j = 0; j < heads * each; j++)
        bias[j] = table[t5_bucket(j % each - rows + 1) * heads + j / each];
    norm(f, h, x, rows, dim, i, 1);
    apply(f, q, h, rows, width, dim, i, "attn.q");
    apply(f, k, h, rows, width, dim, i, "attn.k");
    apply(f, v, h, rows, width, dim, i, "attn.v");
    attention(&(attention_args){.o = o, .q = q, .k = k, .v = v, .queries = rows, .keys = rows,
                                .heads = heads, .D = width / heads, .scale = 1, .bias = bias,
                                .mask = mask});
    apply(f, h, o, rows, dim, width, i, "attn.o");
    add(x, h, (size_t)rows * dim);
    free(h), free(bias), free(q), free(table);
}

/* x = x + fc2(fc1(h) gelu(gate(h))), h = norm(x). */
static void ffn_branch(weights *f, float *x, int rows, int dim, int i) {
    const int ffn = weights_dim(f, 0, "blocks.%d.ffn.fc1.weight", i);
    const size_t n = (size_t)rows * ffn;
    float *h = floats((size_t)rows * dim), *u = floats(n), *g = floats(n);
    norm(f, h, x, rows, dim, i, 2);
    apply(f, g, h, rows, ffn, dim, i, "ffn.gate.0");
    gelu(g, n);
    apply(f, u, h, rows, ffn, dim, i, "ffn.fc1");
    multiply(u, g, n);
    apply(f, h, u, rows, dim, ffn, i, "ffn.fc2");
    add(x, h, (size_t)rows * dim);
    free(h), free(u), free(g);
}

float *text_encode(weights *f, const int *ids, const uint8_t *mask, int length, int *dim) {
    const int n = *dim = weights_dim(f, 0, "norm.weight");
    float *x = floats((size_t)length * n), *last = load(f, SHAPE(n), "norm.weight");
    for (int i = 0; i < length; i++)
        load_row(f, x + (size_t)i * n, "token_embedding.weight", ids[i], n);
    for (int i = 0; weights_dim(f, 0, "blocks.%d.norm1.weight", i); i++) {
        attention_branch(f, x, length, n, i, mask);
        ffn_branch(f, x, length, n, i);
    }
    rms_norm(x, x, length, n, 1e-6, last);
    free(last);
    return x;
}
