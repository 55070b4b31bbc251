/* args.h: what host and kernels agree on: arguments, tiles, names.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A kernel takes the struct of its operator (tether/ops.h) with all pointers on
 * the device. Where that struct points to a list or a struct of the host there
 * is one of its own here. No two members of 4 bytes lie side by side: so the
 * shim can tell pointers from numbers, and finds a host's pointer that was
 * passed on by mistake. */
#ifndef TT_CUDA_ARGS_H
#define TT_CUDA_ARGS_H

#include "core/device.h"
#include "ops/ops.h"

/* What follows every output of linear: nothing, gelu_tanh, or it is added to
 * x [n, o] in place of being stored, as it is or by tt_gate_add's gates. */
enum { CUDA_PLAIN, CUDA_GELU, CUDA_ADD, CUDA_GATE };
typedef struct cuda_epilogue {
    int64_t kind;
    float *x;                /* NULL but of CUDA_ADD and CUDA_GATE            */
    const float *gate;
    int64_t stride, rows;
} cuda_epilogue;

/* y [n, o] = x [n, k] w [o, k]^T + b */
typedef struct cuda_linear_args {
    float *y;
    const float *x, *w, *b;  /* b may be NULL                                 */
    int64_t n, o, k;
    cuda_epilogue then;
} cuda_linear_args;

#define CUDA_FRAMES 4        /* time taps of a convolution, at most           */

typedef struct cuda_conv_args {
    float *y;                          /* [Ho, Wo, Cout]                      */
    const float *frame[CUDA_FRAMES];   /* NULL: zeros                         */
    const float *w, *b;                /* [Cout, kt, kh, kw, Cin]             */
    int64_t Hi, Wi, Cin, Ho, Wo, Cout;
    int64_t kt, kh, kw, stride, pad_top, pad_left, up;
} cuda_conv_args;

/* The tile of outputs of a block of linear and conv: 256 threads, 8 x 8 outputs
 * each. Rows of a tile in shared memory are 4 floats longer than the TILE_K
 * products they hold, so that 8 rows lie in different banks. */
#define TILE_ROWS 128
#define TILE_COLS 128
#define TILE_K 16
#define TILE_PITCH (TILE_K + 4)
#define TILE_STAGES 4                    /* one is read, two on their way     */
#define TILE_BYTES ((TILE_ROWS + TILE_COLS) * TILE_PITCH * 4)
#define TILE_THREADS 256
#define TILE_SHARED (TILE_STAGES * TILE_BYTES)

/* Blocks of threads of the kernels of rows, columns and elements. */
#define ROW_THREADS 128
#define COLUMN_THREADS 64
#define ELEMENT_THREADS 256

/* As tt_attention_args, the mask on the device. */
typedef struct cuda_attention_args {
    float *o;
    const float *q, *k, *v;
    int64_t T, N, H, D, q_stride, kv_stride;
    const float *rel_bias;
    const uint8_t *key_mask;
    float scale, unused;     /* unused is 0                                   */
} cuda_attention_args;

/* Attention of heads of 128: ATTENTION_KEYS keys are staged at a time, of
 * ATTENTION_K elements each; values ATTENTION_V keys at a time. */
#define ATTENTION_D 128
#define ATTENTION_K 16
#define ATTENTION_KEYS 256
#define ATTENTION_V 32
#define ATTENTION_THREADS 256
#define ATTENTION_SHARED(queries)                                              \
    (((queries) * (TT_KEY_BLOCK + 4 + ATTENTION_D + 4 + 2) +                   \
      2 * ATTENTION_KEYS * (ATTENTION_K + 4)) * 4)
/* Of any other head: warps of a block, one query each. */
#define ATTENTION_WARPS 4

/* ---- tensor cores: classes sm80 and sm90 --------------------------------- */

/* to [n, heads, width]: rows of `heads` times k numbers, `stride` apart, floats
 * that are rounded to bf16 or bf16 numbers as they are; each head is filled up
 * with zeros to `width`, a multiple of 8. */
typedef struct cuda_factors_args {
    uint16_t *to;
    const void *from;
    int64_t n, heads, k, stride, width;
} cuda_factors_args;

/* As cuda_linear_args, of factors; k is a multiple of 8. */
typedef struct cuda_mma_linear_args {
    float *y;
    const uint16_t *x, *w;
    const float *b;
    int64_t n, o, k;
    cuda_epilogue then;
} cuda_mma_linear_args;

/* As cuda_conv_args, of factors; Cin is a multiple of 8. */
typedef struct cuda_mma_conv_args {
    float *y;
    const uint16_t *frame[CUDA_FRAMES];
    const uint16_t *w;
    const float *b;
    int64_t Hi, Wi, Cin, Ho, Wo, Cout;
    int64_t kt, kh, kw, stride, pad_top, pad_left, up;
} cuda_mma_conv_args;

/* to [n, width]: the windows of pixels from `first` on, each filled up with
 * zeros to `width`, a multiple of 8. Cin may be any. */
typedef struct cuda_windows_args {
    uint16_t *to;
    cuda_mma_conv_args of;
    int64_t first, n, width;
} cuda_windows_args;

/* to [n] = from as bf16 numbers. */
typedef struct cuda_narrow_args {
    uint16_t *to;
    const float *from;
    int64_t n;
} cuda_narrow_args;

/* q, k and v: factors [rows, H, width], zeros from D on; width is a multiple of
 * 16. */
typedef struct cuda_mma_attention_args {
    float *o;                /* [T, H, D]                                     */
    const uint16_t *q, *k, *v;
    int64_t T, N, H, D, width;
    const float *rel_bias;
    const uint8_t *key_mask;
    float scale, unused;     /* unused is 0                                   */
} cuda_mma_attention_args;

/* A block has 128 x 128 outputs, a warp 64 x 32. Rows of shared memory are 8
 * numbers longer than what they hold, for the banks. */
#define MMA_K 32
#define MMA_PITCH (MMA_K + 8)
#define MMA_STAGES 4
#define MMA_SHARED (MMA_STAGES * (TILE_ROWS + TILE_COLS) * MMA_PITCH * 2)

/* Their sums take the place of the factors in the end. */
#define SUM_PITCH (TILE_COLS + 8)

/* Attention: a warp has 16 queries. Keys come in the blocks of the definition,
 * 128 channels at a time. Eight warps share them, in 96 KB: what every GPU has
 * for one block of threads. */
#define MMA_KEYS 128
#define MMA_CHANNELS 128
#define MMA_QUERIES 128
#define MMA_THREADS (MMA_QUERIES * 2)
#define MMA_ATTENTION_SHARED                                                   \
    ((2 * MMA_KEYS + MMA_QUERIES) * MMA_CHANNELS * 2)

/* ---- the same by wgmma --------------------------------------------------- */

/* Factors lie in blocks of 128 rows by 64, as the tensor cores of sm_90 read
 * them out of shared memory (wgmma.h): 16 KB in one piece. Of a matrix [n, k]
 * come the blocks of its first 128 rows, k ascending, then those of the next;
 * zeros fill up both ends. */
#define BLOCK_ROWS 128
#define BLOCK_K 64
#define BLOCK_FACTORS (BLOCK_ROWS * BLOCK_K)
#define BLOCK_BYTES (BLOCK_FACTORS * 2)
#define BLOCKS_THREADS 256

/* to: rows of k numbers, `stride` apart, in blocks. Of floats, rounded, or of
 * bf16 numbers as they are. */
typedef struct cuda_blocks_args {
    uint16_t *to;
    const void *from;
    int64_t n, k, stride;
} cuda_blocks_args;

/* Linear: up to three layers of the same x and shape, x and w in blocks, k as
 * these fill it up. A tile has 128 rows and WGMMA_COLS or, where GELU follows,
 * WGMMA_GELU_COLS columns: 224 leave the fewest multiprocessors of an H100 idle
 * at the model's narrow layers, 256 bring the fewest factors. A block of
 * threads takes tile after tile: two warpgroups multiply, each 64 of the rows,
 * and a third one brings factors. */
#define WGMMA_LAYERS 3
#define WGMMA_COLS 224
#define WGMMA_GELU_COLS 256
#define WGMMA_THREADS 384
#define WGMMA_STAGES 4
#define WGMMA_PART 32                    /* columns a warp stores at a time   */
#define WGMMA_PITCH (WGMMA_PART + 8)
#define WGMMA_SHARED(cols)                                                     \
    (WGMMA_STAGES * (BLOCK_BYTES + (cols) * BLOCK_K * 2 + 2 * 8) +             \
     BLOCK_ROWS * WGMMA_PITCH * 4)
typedef struct cuda_wgmma_layer {
    float *y;                /* [n, o]                                        */
    const uint16_t *w;
    const float *b;          /* NULL or [o]                                   */
} cuda_wgmma_layer;
typedef struct cuda_wgmma_linear_args {
    cuda_wgmma_layer layer[WGMMA_LAYERS];
    const uint16_t *x;
    uint16_t *blocks;        /* NULL, or where outputs go in place of y, rounded
                                and in blocks                                 */
    int64_t layers, n, o, k;
    cuda_epilogue then;
} cuda_wgmma_linear_args;

/* Convolution takes cuda_mma_conv_args, w in blocks. A block of threads has 256
 * pixels and 96 or 192 channels: two consumer warpgroups and one producer. A
 * stage holds 64 factors of each pixel and channel. */
#define WGMMA_CONV_THREADS 384
#define WGMMA_CONV_ROWS 256
#define WGMMA_CONV_STAGES 3
#define WGMMA_CONV_SHARED(channels)                                            \
    (WGMMA_CONV_STAGES * ((WGMMA_CONV_ROWS + (channels)) * BLOCK_K * 2 +       \
                          2 * 8) + WGMMA_CONV_ROWS * 8)

/* Attention of heads of 128: k and v are blocks, two a head and row. A block of
 * threads has 128 queries, each of two warpgroups 64, which it rounds; a third
 * one brings keys and values, in the blocks of the definition. The last blocks
 * of threads have half the queries. */
#define WGMMA_ATTENTION_THREADS 384
#define WGMMA_PAIR (2 * BLOCK_FACTORS)
#define WGMMA_KEYS 2                     /* pairs of keys, and of values      */
#define WGMMA_VALUES (3 * BLOCK_FACTORS) /* a pair, and a block of ones       */
#define WGMMA_ATTENTION_SHARED                                                 \
    ((1 + WGMMA_KEYS) * WGMMA_PAIR * 2 + WGMMA_KEYS * WGMMA_VALUES * 2 +       \
     (1 + 4 * WGMMA_KEYS) * 8)
typedef struct cuda_wgmma_attention_args {
    float *o;                /* [T, H, 128]                                   */
    uint16_t *blocks;        /* NULL, or where o goes, rounded and in blocks  */
    const float *q;
    const uint16_t *k, *v;
    int64_t T, N, H, q_stride;
    int64_t tiles;           /* of 128 queries, a head                        */
    int64_t whole;           /* tiles that are not cut in halves              */
    float scale, unused;     /* unused is 0                                   */
} cuda_wgmma_attention_args;

/* A norm and the modulation of its rows; without, mod.scale is NULL. */
typedef struct cuda_layer_norm_args {
    tt_layer_norm_args norm;
    tt_modulate_args mod;
    uint16_t *blocks;        /* NULL, or where rows go in place of y, rounded
                                and in blocks; c fills these up               */
} cuda_layer_norm_args;

typedef struct cuda_rope_args {
    float *y;                /* [T, H, D]                                     */
    const float *x;
    int64_t T, H, D;
    const double *cos, *sin; /* [npos, D/2]                                   */
    const int32_t *pos;      /* [T, 3]                                        */
    int64_t row0, col0;      /* first pair that turns by row, by column       */
} cuda_rope_args;

/* to [n] = stored values, widened, times scale if there is one; with rows, each
 * `row` of them times one of those. */
typedef struct cuda_widen_args {
    float *to;
    const void *from;
    int64_t n;
    const float *rows;
    int64_t row;
    float scale, unused;     /* unused is 0                                   */
} cuda_widen_args;

/* As tt_locate_args, some frames of it; no times: t0 + f. */
#define FEW_TIMES 64
typedef struct cuda_locate_args {
    int32_t *to;
    int64_t t0, first, n, L, w, times;
    int64_t time[FEW_TIMES];
} cuda_locate_args;

/* Words that travel as arguments of their kernel, one to a number, because two
 * side by side would look like a pointer. */
#define FEW_WORDS 256
typedef struct cuda_words_args {
    uint32_t *to;
    int64_t n;
    uint64_t word[FEW_WORDS];
} cuda_words_args;

/* Every kernel: X(name). */
#define CUDA_KERNELS(X)                                                        \
    X(linear) X(linear_vec) X(conv) X(conv_vec)                                \
    X(attention) X(attention_64) X(attention_32) X(attention_16)               \
    X(factors) X(factors_bf16) X(mma_linear) X(mma_conv) X(windows)            \
    X(mma_attention) X(mma_attention_128)                                      \
    X(blocks) X(blocks_bf16) X(wgmma_linear) X(wgmma_linear_gelu)              \
    X(wgmma_attention)                                                         \
    X(wgmma_conv_96) X(wgmma_conv_192)                                         \
    X(layer_norm) X(rms_norm) X(channel_norm)                                  \
    X(col_mean) X(col_moment) X(col_blend)                                     \
    X(locate) X(pick)                                                          \
    X(modulate) X(gate_add) X(add) X(mul) X(gelu_tanh) X(silu) X(rope)         \
    X(narrow_bf16) X(words)                                                    \
    X(widen_f64) X(widen_f32) X(widen_bf16) X(widen_f16)                       \
    X(widen_f8_e5m2) X(widen_f8_e4m3) X(widen_q8_0) X(widen_q4_0)              \
    X(widen_q4_1) X(widen_q5_0) X(widen_q5_1) X(widen_q2_k) X(widen_q3_k)      \
    X(widen_q4_k) X(widen_q5_k) X(widen_q6_k) X(widen_i8)                      \
    X(widen_iq4_nl) X(widen_iq4_xs)

#endif
