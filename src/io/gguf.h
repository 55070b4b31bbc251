/* gguf.h: the reader of GGUF files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_IO_GGUF_H
#define TT_IO_GGUF_H

#include "io/file.h"

typedef enum gguf_type {
    GGUF_U8, GGUF_I8, GGUF_U16, GGUF_I16, GGUF_U32, GGUF_I32, GGUF_F32,
    GGUF_BOOL, GGUF_STRING, GGUF_ARRAY, GGUF_U64, GGUF_I64, GGUF_F64, GGUF_TYPES
} gguf_type;

/* A pair "tokenizer.ggml.KEY" of the metadata: `bytes` bytes of the mapping
 * with n values, one where it is no array. A string is a u64 and as many bytes.
 * All have been checked to be whole. */
typedef struct gguf_value {
    const char *key;
    gguf_type type;
    bool array;
    uint64_t n, bytes;
    const uint8_t *p;
    struct gguf_value *next;
} gguf_value;

/* NULL: the file has none of that KEY. */
const gguf_value *gguf_value_of(const tt_file *f, const char *key);

/* Fill f from its mapping, which begins with "GGUF". */
tt_status gguf_read(tt_ctx *ctx, tt_file *f);

#endif
