/* fuzz_y4m.c: YUV4MPEG2 videos.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "io/video.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tt_ctx *ctx = fuzz_ctx();
    tt_video_in *v;
    bool more = true;
    /* anything else would be handed to another program */
    if (size < 9 || memcmp(data, "YUV4MPEG2", 9)) return 0;
    if (!tt_video_in_open(ctx, &v, fuzz_file(data, size, ".y4m"))) {
        const int64_t w = tt_video_in_width(v), h = tt_video_in_height(v);
        uint8_t *rgb = w * h <= 1 << 22 ? malloc((size_t)(3 * w * h)) : NULL;
        for (int i = 0; rgb && more && i < 4; i++)
            if (tt_video_in_frame(v, rgb, &more)) break;
        free(rgb);
        tt_video_in_close(v);
    }
    fuzz_settle();
    return 0;
}
