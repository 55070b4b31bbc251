/* tensor.h: what the modules use of tether/tensor.h's subject, beyond it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_CORE_TENSOR_H
#define TT_CORE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tether/tensor.h"


/* True for the types of weights: floating point, 8-bit float, quantised. */
bool tt_dtype_is_real(tt_dtype t);

/* Are these values of weights: of such a type, or integers with a scale? */
bool tt_tensor_is_real(const tt_tensor *t);

/* The type a safetensors header names, TT_NONE when unknown (quantised types
 * exist only in GGUF files). */
tt_dtype tt_dtype_from_name(const char *name);

/* The one checked size computation of the project: *out = size * product of
 * dim[0..rank-1]. False when a dim is negative, a product, taken from left to
 * right, does not fit an int64_t (then a zero further right does not help), or
 * the size is more than memory of this machine's pointers can hold; *out is
 * then untouched. */
bool tt_checked_size(int64_t *out, const int64_t *dim, int rank, size_t size);

/* a*b and a+b for non-negative file-controlled numbers; false on overflow. */
bool tt_checked_mul(int64_t *out, int64_t a, int64_t b);
bool tt_checked_add(int64_t *out, int64_t a, int64_t b);

/* The same over bytes of a file: little-endian. */
tt_tensor tt_tensor_stored(const void *data, tt_dtype dtype, int rank,
                           const int64_t *dim);
/* The same over other bytes of t's kind: with its type, scale and order. */
tt_tensor tt_tensor_like(const tt_tensor *t, const void *data, int rank,
                         const int64_t *dim);

/* The same packed values, type and scale under another shape. */
tt_tensor tt_tensor_reshape(const tt_tensor *t, int rank, const int64_t *dim);

/* True when the view is packed (row-major without gaps). */
bool tt_tensor_packed(const tt_tensor *t);

/* The values where they lie, when they can be used there: of type tt_real in
 * the host's byte order, packed, aligned, without scale. Else NULL. */
const tt_host *tt_tensor_in_place(const tt_tensor *t);

bool tt_host_little_endian(void);
/* n elements of type `t` from the host's byte order to little-endian, or back,
 * in place. Does nothing on a little-endian host, nor to quantised types. */
void tt_swap_stored(void *data, tt_dtype t, int64_t n);

/* "[3, 1536]" into buf; returns buf. */
const char *tt_shape_string(char *buf, size_t n, int rank, const int64_t *dim);

/* dst[0..n) = the values of n consecutive elements of type `t` at `src`,
 * widened (F64 to a float tt_real rounds once; everything narrower is exact).
 * Integers convert by value. `src` is little-endian and may be unaligned. Of a
 * quantised type, n is a multiple of the block; its values are float32 by
 * definition. */
void tt_widen(tt_host *dst, const void *src, tt_dtype t, int64_t n);
void tt_widen_f32(float *dst, const void *src, tt_dtype t, int64_t n);

/* dst = src rounded to nearest even (NaN stays NaN). */
uint16_t tt_bf16_from_f32(float x);
uint16_t tt_f16_from_f32(float x);
float tt_f32_from_bf16(uint16_t h);
float tt_f32_from_f16(uint16_t h);
float tt_f32_from_f8e4m3(uint8_t b);
float tt_f32_from_f8e5m2(uint8_t b);

#endif
