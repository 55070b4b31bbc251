/* golden_names.h: what the functions of src/golden are called in the library.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * src/golden/math.c, noise.c and operators.c are included by one file of the
 * library each, with the library's own fused multiply-add: their text is the
 * only definition. A program may have both them and src/golden itself. */
#ifndef TT_CORE_GOLDEN_NAMES_H
#define TT_CORE_GOLDEN_NAMES_H

#include <math.h>

#include "core/fma.h"

#define fma fma_f64
#ifdef TT_REAL_DOUBLE
#define fmaf fma_f64
#else
#define fmaf fma_f32
#endif

#define golden_exp defined_exp
#define golden_log defined_log
#define golden_pow defined_pow
#define golden_sincos defined_sincos
#define golden_turn defined_turn
#define golden_expf defined_expf
#define philox defined_philox
#define noise_frame defined_noise_frame
#define linear defined_linear
#define convolution defined_convolution
#define attention defined_attention
#define attend defined_attend
#define attention_scale defined_attention_scale
#define layer_norm defined_layer_norm
#define rms_norm defined_rms_norm
#define channel_norm defined_channel_norm
#define gelu defined_gelu
#define silu defined_silu
#define add defined_add
#define multiply defined_multiply
#define modulate defined_modulate
#define gate_add defined_gate_add
#define rope defined_rope
#define rope_rate defined_rope_rate
#define column_mean defined_column_mean
#define column_moment defined_column_moment
#define blend defined_blend
#define tame_value defined_tame_value

#endif
