/* test_vae.c: src/golden's VAE, its parts and the whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers of the official code, by the rules of ref_data/README_vae.md.
 * Parts are static functions, so vae.c is included instead of linked, with
 * another reader of weights: those of vae_fullwidth are made from their names.
 * Of vae_pth the weights are taken that it has as safetensors too. Not here:
 * vae_taehv, a decoder that golden does not have. `test_vae wide`, a part of
 * `make check-golden`, adds vae_fullwidth, which takes minutes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define weights_open some_open
#define weights_close some_close
#define weights_dim some_dim
#define load some_load
#include "src/golden/vae.c"
#undef weights_open
#undef weights_close
#undef weights_dim
#undef load
#include "tests/golden/answers.h"

/* ---- weights ------------------------------------------------------------- */

weights *weights_open(const char *path);
void weights_close(weights *f);
int weights_dim(const weights *f, int axis, const char *format, ...);
float *load(weights *f, int rank, const int *shape, const char *format, ...);

/* keys.tsv and the seed of weights that are made; NULL: they are read. */
static char *keys;
static uint64_t seed;

#define NAME(format)                                                           \
    char name[256];                                                            \
    va_list args;                                                              \
    va_start(args, format);                                                    \
    vsnprintf(name, sizeof name, format, args);                                \
    va_end(args)

weights *some_open(const char *path)
{
    return keys ? NULL : weights_open(path);
}

void some_close(weights *f)
{
    if (f) weights_close(f);
}

/* Of the line "name<tab>[d,d,...]<tab>...". */
int some_dim(const weights *f, int axis, const char *format, ...)
{
    NAME(format);
    if (!keys) return weights_dim(f, axis, "%s", name);
    const size_t n = strlen(name);
    const char *at = keys;
    while ((at = strstr(at, name)) && (at[-1] != '\n' || at[n] != '\t')) at++;
    if (!at) return 0;
    for (at += n + 1; axis > 0 && *at != ']'; axis--)
        at += 1 + strcspn(at + 1, ",]");
    return *at == ']' ? 0 : atoi(at + 1);
}

/* README_vae.md, "Procedural weights". */
float *some_load(weights *f, int rank, const int *shape, const char *format,
                 ...)
{
    NAME(format);
    if (!keys) return load(f, rank, shape, "%s", name);
    const uint64_t step = 0x9E3779B97F4A7C15;
    uint64_t x, from = digest(DIGEST_BEGIN, name, strlen(name)) + seed * step;
    const bool gamma = strstr(name, ".gamma"), bias = strstr(name, ".bias");
    size_t n = 1;
    for (int i = 0; i < rank; i++) n *= shape[i];
    const float scale = gamma ? 0.25f : bias ? 0.1f
                      : (float)sqrt(3.0 / ((double)n / shape[0]));
    float *y = floats(n);
    for (size_t i = 0; i < n; i++) {
        x = from += step;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
        x ^= x >> 31;
        y[i] = gamma + scale * ((float)(x >> 40) * 0x1p-23f - 1);
    }
    return y;
}

/* ---- comparison ---------------------------------------------------------- */

static void check(test_case *c, const char *name, const float *got, size_t n)
{
    const tt_json *o = tt_json_get(
        tt_json_get(c->json, "official_f32_vs_f64"), name);
    const double top = tt_json_num(o, "max_ref", -1);
    if (!expect(top >= 0, "%s: case.json has no error of %s", c->dir, name))
        return;
    near_rms(c, name, got, (int64_t)n,
             8 * tt_json_num(o, "max_abs", 0) + 1e-6 * top,
             (4 * tt_json_num(o, "rel_l2", 0) + 1e-7)
                 * tt_json_num(o, "rms_ref", 0));
}

/* Where there is such an answer: the newest frames that a convolution keeps,
 * without their padding, as [channels, frames, h, w]. */
static void check_past(test_case *c, const char *name, const causal *m)
{
    const tt_entry *e = answer(c, name);
    if (!e) return;
    const int n = (int)e->t.dim[2], h = (int)e->t.dim[3], w = (int)e->t.dim[4];
    const int pad = m->k.kh / 2;
    float *x = floats((size_t)m->k.in * n * h * w), *to = x;
    for (int i = 0; i < m->k.in * n * h; i++, to += w) {
        const image *p = &m->past[2 - n + i / h % n];
        memcpy(to, p->x + ((size_t)(i / h / n * p->h) + i % h + pad) * p->w
                       + pad, w * sizeof *x);
    }
    check(c, name, x, to - x);
    free(x);
}

/* ---- parts --------------------------------------------------------------- */

/* Frame f of [N, C, T, h, w], or of [N, C, h, w] with T = 1. */
static image frame_of(test_case *c, const char *name, int f, bool flat)
{
    const int C = extent(c, name, 1), T = flat ? 1 : extent(c, name, 2);
    image y = image_of(C, extent(c, name, 3 - flat), extent(c, name, 4 - flat));
    const size_t n = (size_t)y.h * y.w;
    const float *x = input(c, name) + (size_t)f / T * C * T * n;
    for (int k = 0; k < C; k++)
        memcpy(y.x + k * n, x + ((size_t)k * T + f % T) * n, n * sizeof *x);
    return y;
}

/* [f, C, n] -> [C, f, n] */
static float *channels_first(const float *x, int f, int C, size_t n)
{
    float *y = floats(f * C * n);
    for (int i = 0; i < f * C; i++)
        memcpy(y + ((size_t)(i % C) * f + i / C) * n, x + i * n,
               n * sizeof *y);
    return y;
}

/* The layers that a run tests. */
static void make_layers(vae *v, weights *f, const tt_json *j, const char *kind)
{
    const char *id = tt_json_str(j, "run", ""), *mode;
    mode = tt_json_str(j, "mode", "");
    if (!strcmp(mode, "upsample3d")) add_layer(v, f, TIME_UP, id);
    add_layer(v, f, !strcmp(kind, "causal_conv3d") ? CONV
                    : !strcmp(kind, "residual_block") ? RES
                    : !strcmp(kind, "attention_block") ? ATTENTION
                    : *mode == 'u' ? UP : DOWN, id);
    if (!strcmp(mode, "downsample3d")) add_layer(v, f, TIME_DOWN, id);
}

/* A chunk x, all of whose results are y. A convolution over time of stride 2
 * without padding is every second result of one that begins with 2 frames. */
static void chunk(test_case *c, vae *v, const tt_json *j, int chunk_number)
{
    const char *id = tt_json_str(j, "run", "");
    const tt_json *strides = tt_json_get(j, "stride");
    const bool thin = tt_json_whole(tt_json_at(strides, 0), 1) == 2;
    char x[64], y[64];
    const int at = snprintf(x, sizeof x, "%s.x%d", id, chunk_number);
    if (!extent(c, x, 1)) x[at - 1] = 0;
    snprintf(y, sizeof y, "%s.y%s", id, x + strlen(id) + 2);
    const tt_entry *e = answer(c, y);
    if (!expect(e != NULL, "%s: no answer %s", c->dir, y)) return;
    const int C = (int)e->t.dim[1], made = (int)e->t.dim[2];
    const size_t n = (size_t)(e->t.dim[3] * e->t.dim[4]);
    float *out = floats((made + 4) * C * n);
    int ready = 0;
    if (thin) vae_restart(v);
    for (int f = 0; f < extent(c, x, 2); f++) {
        v->out = out + ready * C * n, v->ready = 0;
        run(v, 0, frame_of(c, x, f, false));
        if (!thin || (f >= 2 && f % 2 == 0)) ready += v->ready;
        if (!expect(ready <= made, "%s: more frames of %s", c->dir, y)) break;
    }
    expect(ready == made, "%s: %d frames of %s", c->dir, ready, y);
    float *all = channels_first(out, made, C, n);
    check(c, y, all, made * C * n);
    for (layer *l = v->layer; l < v->layer + v->n; l++) {
        const int k = snprintf(x, sizeof x, "%s.cache%d", id, chunk_number);
        if (l->conv1.k.kt == 3) check_past(c, x, &l->conv1);
        snprintf(x + k, sizeof x - k, "_0");
        if (l->conv1.k.kt == 3) check_past(c, x, &l->conv1);
        snprintf(x + k, sizeof x - k, "_1");
        if (l->conv2.k.kt == 3) check_past(c, x, &l->conv2);
    }
    free(out), free(all);
}

static weights *weights_of(const test_case *c)
{
    char path[700];
    snprintf(path, sizeof path, "%s/weights.safetensors", c->dir);
    return weights_open(path);
}

static void test_parts(const char *path)
{
    test_case c;
    if (!case_open(&c, "%s", path)) return;
    weights *f = weights_of(&c);
    const tt_json *list = tt_json_get(c.json, "runs");
    for (const tt_json *j = tt_json_first(list); j; j = tt_json_next(j)) {
        vae v = {.n = 0};
        make_layers(&v, f, j, tt_json_str(c.json, "kind", ""));
        const tt_json *chunks = tt_json_get(j, "chunk_frames");
        const int n = chunks ? (int)tt_json_count(chunks) : 1;
        for (int i = 0; i < n; i++) chunk(&c, &v, j, i);
        vae_restart(&v);
    }
    weights_close(f);
    case_close(&c);
}

static void test_norm(void)
{
    test_case c;
    if (!case_open(&c, "vae_rmsnorm")) return;
    weights *f = weights_of(&c);
    for (int flat = 0; flat < 2; flat++) {
        char name[] = "img0.x";
        float *gamma;
        int dim[5];
        name[3] = (char)('0' + flat);
        load_any(f, &gamma, dim, flat ? "img1" : "img0", ".gamma");
        const int frames = 2, C = extent(&c, name, 1);
        const size_t n = (size_t)extent(&c, name, 2 + !flat)
                         * extent(&c, name, 3 + !flat);
        float *all = floats(frames * C * n);
        for (int i = 0; i < frames; i++) {
            image y = normalise_pixels(frame_of(&c, name, i, flat), gamma, false);
            memcpy(all + i * C * n, y.x, C * n * sizeof *all);
        }
        name[5] = 'y';
        check(&c, name, flat ? all : channels_first(all, frames, C, n),
              frames * C * n);
    }
    weights_close(f);
    case_close(&c);
}

/* ---- the whole ----------------------------------------------------------- */

/* All that convolutions over time keep, in the order of the layers. */
static void check_slots(test_case *c, const vae *v, const char *id, int frame)
{
    char name[64];
    int slot = 0;
    for (int i = 0; i < v->n; i++)
        for (int k = 0; k < 2; k++) {
            const causal *m = k ? &v->layer[i].conv2 : &v->layer[i].conv1;
            if (m->k.kt != 3) continue;
            snprintf(name, sizeof name, "%s.cache%d.slot%d", id, frame, slot++);
            check_past(c, name, m);
        }
}

static void whole_run(test_case *c, vae *v, const tt_json *j)
{
    const char *id = tt_json_str(j, "run", "");
    const int in = v->encoder ? 3 : Z, out = v->encoder ? Z : 3;
    char name[64];
    snprintf(name, sizeof name, v->encoder ? "%s.video" : "%s.z", id);
    const int T = extent(c, name, 2), h = extent(c, name, 3);
    const int w = extent(c, name, 4);
    const size_t n = v->encoder ? (size_t)(h / 8) * (w / 8)
                                : 64 * (size_t)h * w;
    float *got = floats((4 * T + 1) * out * n);
    int ready = 0;
    expect(extent(c, name, 1) == in, "%s: channels of %s", c->dir, name);
    vae_restart(v);
    for (int t = 0; t < T; t++) {
        image x = frame_of(c, name, t, false);
        ready += vae_run(v, got + (size_t)ready * out * n, x.x, h, w);
        if (!v->encoder) check_slots(c, v, id, t);
        free(x.x);
    }
    float *all = channels_first(got, ready, out, n);
    snprintf(name, sizeof name, v->encoder ? "%s.z" : "%s.video_raw", id);
    check(c, name, all, ready * out * n);
    free(got), free(all);
}

static void test_whole(const char *path)
{
    test_case c;
    char file[700];
    size_t size;
    if (!case_open(&c, "%s", path)) return;
    const bool made = tt_json_get(c.json, "weight_seed");
    snprintf(file, sizeof file, "%s/weights.safetensors", c.dir);
    if (made) {
        snprintf(file, sizeof file, "%s/keys.tsv", c.dir);
        keys = read_file(file, &size);
        seed = (uint64_t)tt_json_int(c.json, "weight_seed", 0);
    }
    for (int encoder = 0; encoder < 2; encoder++) {
        vae *v = vae_open(file, encoder);
        const tt_json *list = tt_json_get(c.json, "runs");
        for (const tt_json *j = tt_json_first(list); j; j = tt_json_next(j))
            if (encoder == !strcmp(tt_json_str(j, "op", ""), "encode"))
                whole_run(&c, v, j);
    }
    free(keys), keys = NULL;
    case_close(&c);
}

int main(int argc, char **argv)
{
    static const char *const parts[] = {"vae_conv3d", "vae_resblock",
                                        "vae_attn", "vae_resample"};
    test_begin("golden/vae");
    if (sizeof(tt_real) != 4) {
        skip("golden computes in float; this build is in double");
        expect(true, "a double build");
        return test_end();
    }
    test_norm();
    for (int i = 0; i < 4; i++) test_parts(parts[i]);
    test_whole("vae_full_a");
    test_whole("vae_pth");
    if (argc > 1 && !strcmp(argv[1], "wide")) test_whole("vae_fullwidth");
    return test_end();
}
