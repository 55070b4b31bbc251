/* fuzz_shows.c: videos that may end anywhere: is there a picture in them?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "io/shows.h"
#include "tests/fuzz/fuzz.h"

/* The first byte says the kind, and by how many bytes a second look is shorter:
 * less never shows more. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const ending[] = {".y4m", ".mp4", ".mkv", ".gif"};
    if (!size) return 0;
    const char *kind = ending[data[0] % 4];
    const size_t cut = data[0] / 4;
    const bool whole = shows_picture(fuzz_file(data + 1, size - 1, kind));
    if (!whole && cut < size
        && shows_picture(fuzz_file(data + 1, size - 1 - cut, kind))) abort();
    return 0;
}
