/* fuzz_zip.c: the directory of PyTorch zip files, and all after it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_checkpoint(data, size, "fuzz.pt");
    return 0;
}
