/* check.h: is this file what it should be?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_CHECK_H
#define TT_IO_CHECK_H

#include "io/io.h"

/* Refuse a file whose download did not end, as files next to it say (of a link
 * also those next to what it points to).
 * Errors  TT_EFORMAT */
tt_status io_check_download(tt_ctx *ctx, const char *path);

/* Is this the folder of a model with two transformers (Wan2.2 A14B): has it the
 * folders of both, or a model_index.json that speaks of both? */
bool io_has_experts(tt_ctx *ctx, const char *dir);
/* "wan2.2_t2v_high_noise_14B_fp16.safetensors": is a file one of them, by its
 * name? */
bool io_names_expert(const char *path);
/* The sentence about it.
 * Errors  TT_EUNSUPPORTED, always */
tt_status io_refuse_experts(tt_ctx *ctx, const char *path);

/* The SHA-256 that the hub of Hugging Face gives a file that came from it: by
 * its name in the hub's cache, or what lies next to it. */
bool io_known_digest(char hex[65], const char *path);

#endif
