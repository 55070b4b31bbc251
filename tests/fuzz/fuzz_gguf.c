/* fuzz_gguf.c: the GGUF reader and the widening of its blocks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_checkpoint(data, size, "fuzz.gguf");
    return 0;
}
