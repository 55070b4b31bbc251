/* fuzz_index.c: the index of sharded safetensors. Shards are looked for in
 * ref_data/formats/index_ok, when that is there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_checkpoint(data, size,
                    "ref_data/formats/index_ok/model.safetensors.index.json");
    return 0;
}
