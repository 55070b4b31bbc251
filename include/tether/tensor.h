/* tensor.h: the compute type, storage types and views.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Activations are plain arrays of tt_real whose shape stands next to their
 * declaration: [tokens, heads, head_dim], last extent fastest. What comes out
 * of a file keeps its stored type and is described by a tt_tensor, a view that
 * owns nothing; it is widened to tt_real where it is used, block by block. */
#ifndef TETHER_TENSOR_H
#define TETHER_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tether/api.h"

TT_API_BEGIN

/* The compute type: float, or double with `make REAL=double`. tt_host is the
 * same numbers in host memory: where values are in memory of a device
 * (device.h) a tt_real * cannot be read. `make check-device` compiles modules
 * of the model with a tt_real that must not be dereferenced. tt_wide is a
 * statistic of values, double in every build, where the values are; a tt_index
 * is a row's number there. */
#if defined(TT_CHECK_DEVICE)
typedef float tt_host;
typedef float __attribute__((noderef)) tt_real;
typedef double __attribute__((noderef)) tt_wide;
typedef int32_t __attribute__((noderef)) tt_index;
#define TT_REAL_NAME "f32"
#elif defined(TT_REAL_DOUBLE)
typedef double tt_real, tt_host, tt_wide;
typedef int32_t tt_index;
#define TT_REAL_NAME "f64"
#else
typedef float tt_real, tt_host;
typedef double tt_wide;
typedef int32_t tt_index;
#define TT_REAL_NAME "f32"
#endif

typedef enum tt_dtype {
    TT_NONE = 0,
    TT_F64, TT_F32, TT_F16, TT_BF16, TT_F8_E4M3, TT_F8_E5M2,
    TT_I64, TT_I32, TT_I16, TT_I8, TT_U64, TT_U32, TT_U16, TT_U8, TT_BOOL,
    /* GGUF: values exist in blocks of 32 or 256 along the last dimension */
    TT_Q8_0, TT_Q4_0, TT_Q4_1, TT_Q5_0, TT_Q5_1,
    TT_Q2_K, TT_Q3_K, TT_Q4_K, TT_Q5_K, TT_Q6_K, TT_IQ4_NL, TT_IQ4_XS,
    TT_DTYPE_COUNT
} tt_dtype;

#define TT_MAX_RANK 8

/* A view of typed data. Strides are in elements; a row-major ("packed") view
 * has stride[rank-1] = 1 and stride[i] = stride[i+1]*dim[i+1]. `data` may be
 * unaligned (it points into a mapped file): read it with tt_widen only. */
typedef struct tt_tensor {
    const void *data;
    tt_dtype dtype;
    int rank;
    int64_t dim[TT_MAX_RANK];
    int64_t stride[TT_MAX_RANK];
    float scale;  /* the values are scale * what is stored; 0: no scale. Of
                     8-bit weights that come with one number per tensor      */
    bool native;  /* in the host's byte order, as values computed here are;
                     else little-endian, as in files. The same on most hosts */
    const float *row_scale; /* not NULL: value i is row_scale[i / row] times
                     what is stored, and scale is 1. Of 8-bit weights that
                     come with one number per row; in the host's memory      */
    int64_t row;
} tt_tensor;

/* Bytes of one element of `t`, or of one block of a quantised type; 0 for
 * TT_NONE. */
size_t tt_dtype_size(tt_dtype t);
/* Elements per block: 32 or 256 for the quantised types, else 1. Quantised
 * views are always packed and their last dimension is a multiple of this. */
int64_t tt_dtype_block(tt_dtype t);

/* "F32", "BF16", ... as safetensors spells them; "Q8_0", ... as GGUF does. */
const char *tt_dtype_name(tt_dtype t);

/* Number of elements of a view whose shape has been checked. */
int64_t tt_tensor_count(const tt_tensor *t);

/* Bytes of the values of a packed view (of a strided one: once gathered). */
int64_t tt_tensor_bytes(const tt_tensor *t);

/* A packed view over values in memory, without scale: in the host's byte
 * order. */
tt_tensor tt_tensor_make(const void *data, tt_dtype dtype, int rank,
                         const int64_t *dim);

/* dst[0..n) = elements [first, first + n) of a packed view in row-major order,
 * widened, times its scale (one rounding in tt_real). `first` and n must be
 * multiples of the type's block. */
void tt_widen_at(tt_host *dst, const tt_tensor *t, int64_t first, int64_t n);
void tt_widen_at_f32(float *dst, const tt_tensor *t, int64_t first, int64_t n);

TT_API_END

#endif
