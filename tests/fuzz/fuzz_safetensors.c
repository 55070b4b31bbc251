/* fuzz_safetensors.c: the safetensors reader.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/fuzz/fuzz.h"

/* The bytes are the JSON header; the length in front is put right, so that
 * the header is what gets explored. A first byte of 0xff: the file as given. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[1 << 17];
    if (size > sizeof file - 8 - 256) return 0;
    if (size > 0 && data[0] == 0xff) {
        fuzz_checkpoint(data + 1, size - 1, "fuzz.safetensors");
        return 0;
    }
    /* header, one byte that says how many data bytes follow */
    size_t extra = size > 0 ? data[size - 1] : 0, n = size > 0 ? size - 1 : 0;
    memset(file, 0, 8);
    for (int i = 0; i < 4; i++) file[i] = (uint8_t)(n >> 8 * i);
    if (n > 0) memcpy(file + 8, data, n);
    memset(file + 8 + n, 0x5a, extra);
    fuzz_checkpoint(file, 8 + n + extra, "fuzz.safetensors");
    return 0;
}
