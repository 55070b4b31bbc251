/* golden.h: the whole model on one page: types, shapes, functions.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     prompt -> ids -> text states -> chunk by chunk, over a cache of the past:
 *     4 denoising passes and a clean pass -> latents -> VAE -> pictures
 *
 * Shapes are row-major, the last index fastest. A frame is a latent frame: the first one is 1
 * picture, every later one 4. L tokens make a frame; a token has width = heads * D numbers.
 *
 * Results are a function of the inputs alone, bit by bit, on every machine: the order of all
 * operations is written down, a fused multiply-add is used exactly where fma is written, and exp,
 * log, sin and cos are our own. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if FLT_EVAL_METHOD != 0
#error "float is computed in a wider type: add -fexcess-precision=fast (s390x) or \
-msse2 -mfpmath=sse (i686)"
#endif
#ifdef __FAST_MATH__
#error "-ffast-math computes something else: leave it out"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* ---- math.c ---------------------------------------------------------------------------------- */
double golden_exp(double x), golden_log(double x), golden_pow(double base, double y);
void golden_sincos(double x, double *s, double *c);
void golden_turn(uint32_t b, double *s, double *c); /* sin and cos of 2 pi b / 2^32               */
float golden_expf(float x);

/* ---- operators.c ----------------------------------------------------------------------------- */
enum { BLOCK = 256, KEY_BLOCK = 512, LANES = 16, UNROTATED = -1 };

typedef struct dense {       /* a linear layer                                                    */
    float *w, *b;            /* [out, in]; [out] or NULL                                          */
    int out, in;
} dense;
typedef struct kernel {      /* a convolution                                                     */
    float *w, *b;            /* [out, in, kt, kh, kw]; [out]                                      */
    int out, in, kt, kh, kw, stride;
} kernel;
typedef struct image { float *x; int c, h, w; } image;                  /* [c, h, w]              */
typedef struct position { int frame, row, column; } position;           /* of a token             */
typedef struct by_frame { const float *at; int rows, stride; } by_frame; /* vectors of some rows  */
/* o = softmax(q k^T scale + bias) v. bias [heads, 2 keys - 1] has entry j - i + keys - 1 for query
 * i and key j; a key whose mask is 0 gets -FLT_MAX. */
typedef struct attention_args {
    float *o;                /* [queries, heads, D]                                               */
    const float *q, *k, *v;  /* the same; [keys, heads, D]                                        */
    int queries, keys, heads, D;
    size_t q_stride, kv_stride;      /* from row to row of q; of k and v; 0: heads * D            */
    float scale;
    const float *bias;       /* of umT5, else NULL                                                */
    const uint8_t *mask;     /* [keys], or NULL                                                   */
} attention_args;
void linear(float *y, const float *x, int rows, const dense *m);   /* y = x w^T + b           */
void convolution(image *y, const image *x, const kernel *m);   /* x: kt padded frames, in order  */
void attention(const attention_args *a);
void attend(float *o, const attention_args *a, int h, int i);   /* query i of head h: o [D]       */
float attention_scale(int D);                                   /* 1 / sqrt(D)                    */
/* Of rows of n. layer_norm: w and b may be NULL. */
void layer_norm(float *y, const float *x, int rows, int n, double eps, const float *w,
                const float *b);
void rms_norm(float *y, const float *x, int rows, int n, double eps, const float *w);
void channel_norm(float *y, const float *x, int rows, int n, const float *gamma);
void gelu(float *x, size_t n), silu(float *x, size_t n);
void add(float *x, const float *y, size_t n), multiply(float *x, const float *y, size_t n);
void modulate(float *x, int rows, int n, by_frame scale, by_frame shift);
void gate_add(float *x, const float *y, int rows, int n, by_frame gate);
/* Rotary position embedding of [tokens, heads, D]; y may be x. */
void rope(float *y, const float *x, int tokens, int heads, int D, const position *at);
double rope_rate(int D, int j, int *axis);                      /* of pair j, along which axis    */
/* Over n rows, for each of c channels: mean, sum of (x - mean)^2; what draws x towards a mean. */
void column_mean(double *mean, const float *x, int n, size_t c);
void column_moment(double *m2, const double *mean, const float *x, int n, size_t c);
void blend(float *x, const double *mean, size_t n, size_t c, double rate);
double tame_value(double v, double mean, double gain, double to_mean, double tau);

/* ---- weights.c, output.c --------------------------------------------------------------------- */
_Noreturn void stop(int status, const char *format, ...);       /* 1 a failure, 2 a wrong command */
#define fail(...) stop(1, __VA_ARGS__)
#define usage(...) stop(2, __VA_ARGS__)
void *memory(size_t n, size_t size);                            /* zeros; never NULL              */
#define floats(n) ((float *)memory((n), sizeof(float)))
#define doubles(n) ((double *)memory((n), sizeof(double)))
char *read_file(const char *path, size_t *size);                /* a NUL after the end            */
uint64_t little_endian(const uint8_t *bytes, size_t n);
typedef struct weights weights;                                 /* a safetensors file             */
weights *weights_open(const char *path);
void weights_close(weights *f);
int weights_dim(const weights *f, int axis, const char *format, ...);   /* 0: no tensor, or axis  */
/* A tensor as float, whose shape must be the one expected; NAME.weight [out, in] and, where it is
 * there, NAME.bias; a row of a matrix [.., n]. */
#define SHAPE(...) (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)), (const int[]){__VA_ARGS__}
float *load(weights *f, int rank, const int *shape, const char *format, ...);
void load_dense(dense *m, weights *f, int out, int in, const char *format, ...);
void load_row(weights *f, float *to, const char *name, int row, int n);
double config_number(const char *path, const char *key, double missing);    /* of config.json     */
#define DIGEST_BEGIN 0xcbf29ce484222325
uint64_t digest(uint64_t hash, const void *data, size_t n);     /* FNV-1a of 64 bits, continued   */
/* Write the tensor `latents`, or no file for NULL; returns its digest. */
uint64_t save_latents(const char *path, const int dim[5], const float *x);
/* Pictures [3, h, w] in [-1, 1] as YUV4MPEG2; the digest continues over them. */
FILE *y4m_create(const char *path, int h, int w);
uint64_t y4m_picture(FILE *f, uint64_t hash, const float *x, int h, int w);
void close_whole(FILE *f, const char *path);                    /* or the program ends            */
float *read_ppm(const char *path, int h, int w);                /* [3, h, w] in [-1, 1]           */

/* ---- tokenizer.c, text.c --------------------------------------------------------------------- */
typedef struct tokenizer tokenizer;
tokenizer *tokenizer_open(const char *path);                    /* spiece.model                   */
int tokenizer_end(const tokenizer *t);                          /* the id of </s>                 */
/* At most `limit` ids of n bytes as they are; returns how many. */
int tokenize(const tokenizer *t, const char *utf8, size_t n, int *ids, int limit);
/* Bytes of the character at `at`, at most n; 0: malformed. */
int utf8_character(const uint8_t *at, size_t n, uint32_t *c);
char *clean_prompt(const char *utf8);
int t5_bucket(int distance);                                    /* of query and key               */
/* umT5: states [length, dim] of ids; mask 0: padding. */
float *text_encode(weights *f, const int *ids, const uint8_t *mask, int length, int *dim);

/* ---- noise.c --------------------------------------------------------------------------------- */
void philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);
/* n normal numbers of frame `at`: stream 0 first, j + 1 after denoising step j. */
void noise_frame(float *x, size_t n, uint64_t seed, uint32_t sample, uint32_t at, uint32_t stream);

/* ---- cache.c, tethercache.c, policies.c ------------------------------------------------------ */
typedef struct pass {            /* one call of the network                                       */
    int chunk, start, frames;    /* which chunk, its first frame, how many                        */
    int h, w;                    /* latent size                                                   */
    bool clean;                  /* the last pass of a chunk, on its result                       */
    bool scene, cut, anew;       /* its chunk begins a scene; with a cut; old frames once more    */
} pass;
typedef struct geometry {        /* a video, as its caches see it                                 */
    int layers, L, grid, heads, D;       /* grid: tokens in a row of a frame                      */
    int frames, chunk, first_chunk, scenes;
} geometry;
/* A setting: a number, or the index of one of the words "chunk|frame". */
typedef struct knob { const char *name; double value; const char *words; } knob;
enum { KNOBS_MAX = 9 };          /* the last one has no name                                      */
typedef struct cache cache;
/* What stays in the cache, and where attention sees it. NULL: as `fifo`. */
typedef struct policy {
    const char *name, *about;
    knob knobs[KNOBS_MAX];
    const double *steps;         /* a denoising list of its own, ends with 0                      */
    void (*check)(cache *c, const geometry *g);          /* ends where it cannot be               */
    void *(*open)(const cache *c);                       /* makes `own`                           */
    /* In the first pass of a chunk: evict, and count its slots, which are the last ones. */
    void (*evict)(cache *c, const pass *p);
    /* In every pass, when the chunk is written and before attention. */
    void (*commit)(cache *c, const pass *p);
    /* Positions of all keys; returns the frame of the first query. */
    int (*positions)(const cache *c, const pass *p, position *keys);
    void (*after)(cache *c, const pass *p);              /* attention                             */
} policy;
extern const policy full, fifo, longlive, reward, causvid, causvid_rolling, infinity, memrope,
    deep_sink, deep_forcing, rolling_sink, tethercache;
extern const policy *const policies[];                   /* all of them, then NULL                */
const policy *policy_find(const char *name);
bool tether_preset(knob *o, const char *name);           /* false: there is none                  */
double setting(const knob *o, const char *name);         /* 0: the policy has none                */
bool setting_put(knob *o, const char *name, const char *value);

struct cache {                   /* of one layer; slots are those of tokens                       */
    const policy *policy;
    knob o[KNOBS_MAX];
    int K, S, M, R;              /* frames: budget, sink, memory, recent                          */
    int layer, L, grid, heads, D, width, chunk;
    int capacity, length;        /* slots, and how many are live                                  */
    int seen;                    /* frames that have been written                                 */
    bool first;                  /* this is the first pass of its chunk                           */
    float *k, *v;                /* [capacity, width], keys not rotated                           */
    const float *new_q, *new_k, *new_v;  /* of this pass [frames * L, width], not rotated         */
    int *time, *place;           /* [capacity] frame; token within it                             */
    void *own;                   /* what the policy remembers besides                             */
    FILE *trace;                 /* where decisions are written, or NULL                          */
};

cache *cache_open(const policy *p, const knob *o, const geometry *g, FILE *trace);  /* [layers]   */
void cache_close(cache *all, int layers);
void cache_attention(cache *c, float *o, const pass *p); /* write new_k, new_v; o of new_q        */

/* What policies share: tokens L of a pass; keys and values of a slot; n slots move; the chunk is
 * written to slot `first` and on; what does not fit leaves after the slots `kept` (true: something
 * left); positions that count slots; K >= S + chunk, and S <= the first chunk. */
int frame_tokens(const pass *p);
float *key_at(const cache *c, int slot), *value_at(const cache *c, int slot);
void cache_move(cache *c, int to, int from, int n);
void cache_write(cache *c, const pass *p, int first);
bool cache_roll(cache *c, const pass *p, int kept);
position token_position(const cache *c, int frame, int place);
int by_slot(const cache *c, const pass *p, position *keys);
void check_window(cache *c, const geometry *g), check_sink(cache *c, const geometry *g);
void trace(const cache *c, const pass *p, const char *what, const char *format, ...);
/* Equations 5 to 10 for n candidates, 12 and 13, in tethercache.c. */
void grab_importance(double *mass, const double *mean_query, const double *mean_key, int n,
                     int heads, int D, double temperature);
double grab_time_scale(const int *frame, int n);
double grab_redundancy(const double *mass, const int *frame, int n, int c);
void grab_diversity(double *diversity, const double *mass, const int *frame, int n);
void grab_score(double *score, const double *mass, const double *diversity, int n, double alpha);
void grab_select(bool *keep, const double *score, int n, int M);
void tame_stat(double *mean, double *sd, const float *x, int frames, int L, int width);
void tame_edit(float *x, int L, int width, const double *to_mean, const double *to_sd, double tau);

/* ---- transformer.c --------------------------------------------------------------------------- */
typedef struct attention_weights {
    dense q, k, v, o;                                    /* [dim, dim]                            */
    float *norm_q, *norm_k;                              /* [dim]                                 */
} attention_weights;
typedef struct block_weights {
    float *modulation;                                   /* [6, dim]                              */
    attention_weights self, cross;
    float *norm3_w, *norm3_b;                            /* [dim]                                 */
    dense ffn0, ffn2;                                    /* [ffn, dim], [dim, ffn]                */
} block_weights;
typedef struct transformer {
    int dim, ffn, heads, layers, channels, freq_dim, text_dim, text_len;
    int height, width;                                   /* of pictures, by default               */
    double eps;
    dense patch;                                         /* [dim, 4 channels]                     */
    dense text0, text2, time0, time2, time_projection, head;
    float *head_modulation;                              /* [2, dim]                              */
    block_weights *block;                                /* [layers]                              */
} transformer;
transformer *transformer_open(const char *folder);       /* its config.json and weights           */
/* Keys and values of text states [text_len, text_dim], for every layer. */
typedef struct prompt { float **k, **v; } prompt;        /* [layers][text_len, dim]               */
prompt *prompt_open(const transformer *m, const float *text);
/* flow [frames, channels, h, w] of x, at one timestep t for each frame; NULL where keys and values
 * are all that is wanted. */
void transformer_run(const transformer *m, float *flow, const float *x, const double *t,
                     const pass *p, const prompt *text, cache *caches);

/* ---- vae.c ----------------------------------------------------------------------------------- */
typedef struct vae vae;          /* one way, with what it remembers of earlier frames             */
void vae_restart(vae *v);                                /* before another video                  */
vae *vae_open(const char *path, bool encoder);
/* Of a latent frame [16, h, w] pictures [3, 8h, 8w]: 1 of the first, 4 of later ones. Of a picture
 * [3, h, w] latents [16, h/8, w/8]: 1 of the first and of every fourth after it, else 0. Returns
 * how many are in `out`. */
int vae_run(vae *v, float *out, const float *in, int h, int w);

/* ---- sampler.c ------------------------------------------------------------------------------- */
enum { TABLE = 1000, STEPS_MAX = 16, SCENES_MAX = 64 };

typedef struct schedule {
    float sigma[TABLE], timestep[TABLE];
    double t[STEPS_MAX];                                 /* of the denoising steps                */
    int steps;
} schedule;
/* list ends with 0. warp: its values count in the shifted table. */
void schedule_make(schedule *s, double shift, const double *list, bool warp);
float schedule_sigma(const schedule *s, double t);
void flow_to_clean(float *x0, const float *x, const float *flow, float sigma, size_t n);
void mix(float *x, float a, const float *y, float b, const float *z, size_t n); /* a y + b z      */

typedef struct video {           /* to be made; latents [n, channels, h, w]                       */
    const transformer *model;
    const policy *policy;
    knob o[KNOBS_MAX];
    schedule schedule, opening;  /* of the chunks; of the first one, where it has steps           */
    int h, w, frames, chunk;     /* latent size; frames to make                                   */
    bool lone_first;             /* the first chunk is one frame                                  */
    double context_noise;        /* timestep of the clean pass                                    */
    const float *given;          /* frames that are there, before the others                      */
    int given_frames;
    prompt *text[SCENES_MAX];    /* of scene i, from chunk scene[i] on                            */
    int scene[SCENES_MAX], scenes;
    bool cut[SCENES_MAX];
    uint64_t seed;
    const float *noise, *renoise, *start_frame;          /* given, instead of drawn; of restarts  */
    const char *vae;             /* weights, for restarts                                         */
    FILE *trace;
} video;
int video_rollouts(const video *v);                      /* 1, but for CausVid                    */
float *video_make(const video *v);       /* [rollouts, given + frames, channels, h, w]            */
