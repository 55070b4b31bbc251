/* vae.c: Wan2.1's causal video autoencoder, frame by frame, both ways.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Code    wan/modules/vae.py (Wan2.1), utils/wan_wrapper.py (Self-Forcing).
 *
 * Decoder and encoder are lists of layers. An image goes down the list; a layer that makes two
 * frames of one sends both down, one after the other, and one that makes one of two waits for the
 * second. Convolutions over time see the two frames before, which each keeps; before the first they
 * are zero. */
#include "golden.h"

/* CONV       a causal convolution, 3x3x3 or 1x1x1
 * RES        x + conv(silu(norm(conv(silu(norm(x))))))
 * ATTENTION  x + attention(norm(x)), over the pixels of a frame, one head
 * TIME_UP    one image becomes two, but for the first
 * UP         twice as large, then a 3x3 convolution
 * DOWN       a 3x3 convolution of stride 2
 * TIME_DOWN  two frames become one, but for the first
 * HEAD       conv(silu(norm(x))) */
enum { CONV, RES, ATTENTION, TIME_UP, UP, DOWN, TIME_DOWN, HEAD };

/* A convolution, the frames before, padded, the older one first, and how x is enlarged (0: 1). */
typedef struct causal { kernel k; image past[2]; int scale; } causal;

typedef struct layer {
    int kind, seen;              /* frames so far                                                 */
    float *norm1, *norm2;        /* gamma                                                         */
    causal conv1, conv2, shortcut;
} layer;

struct vae {
    layer layer[40];
    int n, ready;                /* layers; frames that are ready                                 */
    bool encoder;
    float *out;                  /* where they go                                                 */
};

/* A tensor of whatever shape: gamma, weights [out, in, kt, kh, kw] or [out, in, kh, kw]. */
static int load_any(weights *f, float **x, int dim[5], const char *name, const char *part) {
    int rank = 0;
    while (rank < 5 && (dim[rank] = weights_dim(f, rank, "%s%s", name, part))) rank++;
    *x = load(f, rank, dim, "%s%s", name, part);
    return rank;
}

static kernel load_kernel(weights *f, const char *name, const char *part) {
    int d[5];
    kernel k = {.stride = 1, .kt = 1};
    char path[120];
    snprintf(path, sizeof path, "%s%s", name, part);
    const int rank = load_any(f, &k.w, d, path, ".weight");
    if (rank < 4) fail("%s has %d dimensions, expected 4 or 5", path, rank);
    if (rank == 5) k.kt = d[2];
    k.out = d[0], k.in = d[1], k.kh = d[rank - 2], k.kw = d[rank - 1];
    k.b = load(f, SHAPE(k.out), "%s.bias", path);
    return k;
}

static void add_layer(vae *v, weights *f, int kind, const char *name) {
    static const struct { const char *norm1, *conv1, *norm2, *conv2; } part[] = {
        [CONV] = {NULL, "", NULL, NULL},
        [RES] = {".residual.0.gamma", ".residual.2", ".residual.3.gamma", ".residual.6"},
        [ATTENTION] = {".norm.gamma", ".to_qkv", NULL, ".proj"}, [HEAD] = {".0.gamma", ".2", 0, 0},
        [UP] = {NULL, ".resample.1", 0, 0}, [DOWN] = {NULL, ".resample.1", 0, 0},
        [TIME_UP] = {NULL, ".time_conv", 0, 0}, [TIME_DOWN] = {NULL, ".time_conv", 0, 0}};
    layer *y = &v->layer[v->n++];
    int dim[5];
    y->kind = kind;
    if (part[kind].norm1) load_any(f, &y->norm1, dim, name, part[kind].norm1);
    if (part[kind].norm2) load_any(f, &y->norm2, dim, name, part[kind].norm2);
    y->conv1.k = load_kernel(f, name, part[kind].conv1);
    if (kind == DOWN) y->conv1.k.stride = 2;
    if (kind == UP) y->conv1.scale = 2;
    if (part[kind].conv2) y->conv2.k = load_kernel(f, name, part[kind].conv2);
    if (kind == RES && weights_dim(f, 0, "%s.shortcut.weight", name))
        y->shortcut.k = load_kernel(f, name, ".shortcut");
}

/* R: RES; U, D: resampling in space; T, t: in time and space. */
static void add_stages(vae *v, weights *f, const char *prefix, const char *kind) {
    char name[40];
    for (int i = 0; kind[i]; i++) {
        snprintf(name, sizeof name, "%s.%d", prefix, i);
        if (kind[i] == 'T') add_layer(v, f, TIME_UP, name);
        add_layer(v, f, kind[i] == 'R' ? RES : kind[i] == 'A' ? ATTENTION
                        : kind[i] == 'T' || kind[i] == 'U' ? UP : DOWN, name);
        if (kind[i] == 't') add_layer(v, f, TIME_DOWN, name);
    }
}

enum { Z = 16 };                 /* latent channels; mean and deviation of each                   */
static const float wan_mean[Z] = {-0.7571f, -0.7089f, -0.9113f, 0.1075f, -0.1745f, 0.9653f,
    -0.1517f, 1.5508f, 0.4134f, -0.0715f, 0.5517f, -0.3632f, -0.1922f, -0.9497f, 0.2503f, -0.2921f};
static const float wan_sd[Z] = {2.8184f, 1.4541f, 2.3275f, 2.6558f, 1.2196f, 1.7708f, 2.6052f,
    2.0743f, 3.2687f, 2.1526f, 2.8652f, 1.5579f, 1.6382f, 1.1253f, 2.8251f, 1.9160f};

vae *vae_open(const char *path, bool encoder) {
    vae *v = memory(1, sizeof *v);
    weights *f = weights_open(path);
    const int z = weights_dim(f, 0, "conv2.weight");
    v->encoder = encoder;
    if (z != Z) fail("%s has %d latent channels, Wan's has %d", path, z, Z);
    if (encoder) {
        add_layer(v, f, CONV, "encoder.conv1");
        add_stages(v, f, "encoder.downsamples", "RRDRRtRRtRR");
        add_stages(v, f, "encoder.middle", "RAR");
        add_layer(v, f, HEAD, "encoder.head");
        add_layer(v, f, CONV, "conv1");
    } else {
        add_layer(v, f, CONV, "conv2");
        add_layer(v, f, CONV, "decoder.conv1");
        add_stages(v, f, "decoder.middle", "RAR");
        add_stages(v, f, "decoder.upsamples", "RRRTRRRTRRRURRR");
        add_layer(v, f, HEAD, "decoder.head");
    }
    weights_close(f);
    return v;
}

void vae_restart(vae *v) {
    for (layer *y = v->layer; y < v->layer + v->n; y++)
        for (int i = y->seen = 0; i < 2; i++) {
            free(y->conv1.past[i].x), free(y->conv2.past[i].x);
            y->conv1.past[i].x = y->conv2.past[i].x = NULL;
        }
}

static image image_of(int c, int h, int w) { return (image){floats((size_t)c * h * w), c, h, w}; }
static size_t count(image x) { return (size_t)x.c * x.h * x.w; }

/* x with zeros around it, and x enlarged: out[i][j] = x[i / s][j / s]. */
static image place(image x, int top, int left, int h, int w, int scale) {
    image y = image_of(x.c, h, w);
    for (int c = 0; c < x.c; c++)
        for (int i = 0; i < scale * x.h; i++)
            for (int j = 0; j < scale * x.w; j++)
                y.x[((size_t)c * h + top + i) * w + left + j] =
                    x.x[((size_t)c * x.h + i / scale) * x.w + j / scale];
    return y;
}

static image copy(image x) { return place(x, 0, 0, x.h, x.w, 1); }

/* Of an image and those before it, which are kept. Stride 2 is padded below and right only. */
static image convolve(causal *m, image x) {
    const kernel *k = &m->k;
    const int s = k->stride, pad = s == 2 ? 0 : k->kh / 2, more = s == 2 ? 1 : 2 * pad;
    const int scale = m->scale ? m->scale : 1, h = scale * x.h, w = scale * x.w;
    image y = image_of(k->out, h / s, w / s), seen[3];
    if (x.c != k->in) fail("the VAE: a convolution of %d channels is given %d", k->in, x.c);
    seen[k->kt - 1] = place(x, pad, pad, h + more, w + more, scale);
    for (int i = 0; i < k->kt - 1; i++) {
        if (!m->past[i].x) m->past[i] = image_of(x.c, h + more, w + more);
        seen[i] = m->past[i];
    }
    convolution(&y, seen, k);
    free(seen[0].x);                             /* the oldest goes */
    for (int i = 0; i < k->kt - 1; i++) m->past[i] = seen[i + 1];
    return y;
}

/* Pixels as rows of channels, or back. */
static void transpose(float *y, const float *x, size_t rows, size_t columns) {
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) y[c * rows + r] = x[r * columns + c];
}

static image normalise_pixels(image x, const float *gamma, bool activate) {
    image y = image_of(x.c, x.h, x.w);
    const size_t pixels = (size_t)x.h * x.w;
    float *rows = floats(count(x));
    transpose(rows, x.x, (size_t)x.c, pixels);
    channel_norm(rows, rows, (int)pixels, x.c, gamma);
    transpose(y.x, rows, pixels, (size_t)x.c);
    if (activate) silu(y.x, count(y));
    free(rows);
    return y;
}

static image branch(causal *m, image x, const float *gamma) {
    image a = normalise_pixels(x, gamma, true), y = convolve(m, a);
    free(a.x);
    return y;
}

static image residual(layer *y, image x) {
    image a = branch(&y->conv1, x, y->norm1), b = branch(&y->conv2, a, y->norm2);
    image s = y->shortcut.k.w ? convolve(&y->shortcut, x) : x;
    add(b.x, s.x, count(b));
    if (s.x != x.x) free(s.x);
    free(a.x);
    return b;
}

static image attend_frame(layer *y, image x) {
    const int pixels = x.h * x.w;
    const size_t n = count(x);
    image a = normalise_pixels(x, y->norm1, false), qkv = convolve(&y->conv1, a);
    float *q = floats(4 * n), *k = q + n, *v = k + n, *o = v + n;            /* [pixels, c] */
    for (int i = 0; i < 3; i++) transpose(q + i * n, qkv.x + i * n, (size_t)x.c, (size_t)pixels);
    attention(&(attention_args){.o = o, .q = q, .k = k, .v = v, .queries = pixels, .keys = pixels,
                                .heads = 1, .D = x.c, .scale = attention_scale(x.c)});
    transpose(a.x, o, (size_t)pixels, (size_t)x.c);
    image b = convolve(&y->conv2, a);
    add(b.x, x.x, n);
    free(a.x), free(qkv.x), free(q);
    return b;
}

static void run(vae *v, int i, image x);

/* The first image passes, and is no history. Of 2c channels the first half is the earlier frame. */
static image time_up(vae *v, int i, image x) {
    layer *y = &v->layer[i];
    if (y->seen++ == 0) return copy(x);
    image both = convolve(&y->conv1, x), early = {both.x, x.c, x.h, x.w}, late = early;
    late.x += count(x);
    run(v, i + 1, copy(early));
    late = copy(late);
    free(both.x);
    return late;
}

/* The first image passes, and is history: out[i] = conv(x[2i-2], x[2i-1], x[2i]). No image where x
 * is the odd one. */
static image time_down(layer *y, image x) {
    image z = convolve(&y->conv1, x);
    const int seen = y->seen++;
    if (seen % 2 == 0 && seen > 0) return z;
    free(z.x);
    return seen ? (image){.x = NULL} : copy(x);
}

/* x through layer i and those after it; frees x. */
static void run(vae *v, int i, image x) {
    for (; i < v->n && x.x; i++) {
        layer *y = &v->layer[i];
        const int kind = y->kind;
        image z = kind == RES ? residual(y, x) : kind == ATTENTION ? attend_frame(y, x)
                : kind == HEAD ? branch(&y->conv1, x, y->norm1) : kind == TIME_UP ? time_up(v, i, x)
                : kind == TIME_DOWN ? time_down(y, x) : convolve(&y->conv1, x);
        free(x.x);
        x = z;
    }
    if (!x.x) return;
    const size_t n = v->encoder ? (size_t)Z * x.h * x.w : count(x);
    memcpy(v->out + n * v->ready++, x.x, n * sizeof *x.x);
    free(x.x);
}

/* The code divides by the rounded 1 / deviation. The encoder's other channels are not used. */
int vae_run(vae *v, float *out, const float *in, int h, int w) {
    const size_t latent = v->encoder ? (size_t)(h / 8) * (w / 8) : (size_t)h * w;
    image x = image_of(v->encoder ? 3 : Z, h, w);
    memcpy(x.x, in, count(x) * sizeof *x.x);
    v->out = out, v->ready = 0;
    for (size_t i = 0; !v->encoder && i < count(x); i++)
        x.x[i] = x.x[i] / (1 / wan_sd[i / latent]) + wan_mean[i / latent];
    run(v, 0, x);
    for (size_t i = 0; v->encoder && v->ready && i < Z * latent; i++)
        out[i] = (out[i] - wan_mean[i / latent]) * (1 / wan_sd[i / latent]);
    return v->ready;
}
