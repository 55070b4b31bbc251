/* fuzz.h: what the fuzz targets share.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A target is one file fuzz_NAME.c with libFuzzer's entry point. It is built
 * twice: `make fuzz` links it with libFuzzer; `make tests` with driver.c,
 * which feeds it files, folders or standard input (for AFL++ and for the
 * regression files of ref_data/fuzz/NAME). A target must end quickly and
 * without a sanitizer's report, whatever the bytes; that a refusal comes with
 * a sentence is checked too. */
#ifndef TT_TESTS_FUZZ_H
#define TT_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "core/context.h"
#include "io/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The one context of the process, one thread, no warnings shown. */
tt_ctx *fuzz_ctx(void);

/* After an attempt: stops the process when a failure has no sentence, or has
 * more than one line, or left scratch memory; clears it. */
void fuzz_settle(void);

/* Open the bytes as a checkpoint file called `path`, read every tensor that
 * is offered (up to 1 MB each), look every name up, close. */
void fuzz_checkpoint(const uint8_t *data, size_t size, const char *path);

/* The bytes as a file of its own; the path is valid until the process ends.
 * Every suffix (four at most) is another file. */
const char *fuzz_file(const uint8_t *data, size_t size, const char *suffix);

/* A folder that is removed with all that is in it when the process ends. */
const char *fuzz_folder(void);

/* A tensor of a well-formed file: integers lo, lo + 1, ... below lo + span,
 * over and over, in whatever type. */
typedef struct fuzz_tensor {
    const char *name;
    tt_dtype dtype;
    int rank;
    int64_t dim[5];
    int lo, span;
} fuzz_tensor;

/* Write the n tensors as safetensors, damaged by the commands in the bytes,
 * four each: another extent (of one tensor or of all that share it), type, rank
 * or name, left out, values that have no business there. What such a file may
 * hold beyond its format is explored this way; the format itself is the
 * business of fuzz_safetensors. */
const char *fuzz_tensors(const fuzz_tensor *t, int n, const uint8_t *data,
                         size_t size, const char *suffix);

#endif
