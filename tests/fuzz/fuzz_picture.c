/* fuzz_picture.c: PNG and JPEG pictures. The CRCs of a PNG are put right,
 * so that what lies after them is reached.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "io/video.h"

static uint32_t crc32(const uint8_t *p, size_t n)
{
    uint32_t c = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    }
    return ~c;
}

static void repair_png(uint8_t *p, size_t n)
{
    for (size_t at = 8; n - at >= 12;) {
        size_t length = (size_t)p[at] << 24 | (size_t)p[at + 1] << 16
                      | (size_t)p[at + 2] << 8 | p[at + 3];
        if (length > n - at - 12) return;
        uint32_t c = crc32(p + at + 4, length + 4);
        for (int i = 0; i < 4; i++)
            p[at + 8 + length + (size_t)i] = (uint8_t)(c >> (24 - 8 * i));
        at += 12 + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[1 << 16];
    if (size < 8 || size > sizeof file) return 0;
    memcpy(file, data, size);
    if (file[0] == 0x89) repair_png(file, size);
    tt_ctx *ctx = fuzz_ctx();
    tt_arena a = {0};
    uint8_t *rgb;
    int64_t w = 0, h = 0;
    const char *path = fuzz_file(file, size, ".png");
    if (!tt_picture_read(ctx, &a, &rgb, &w, &h, path)) {
        volatile uint8_t sum = 0; /* every byte that is offered */
        for (int64_t i = 0; i < 3 * w * h; i++) sum = (uint8_t)(sum + rgb[i]);
    }
    tt_arena_free(&a);
    fuzz_settle();
    return 0;
}
