/* output.c: pictures and results as files, and their digests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

uint64_t digest(uint64_t hash, const void *data, size_t n) {
    for (const uint8_t *b = data; n--; b++) hash = (hash ^ *b) * 0x100000001b3;
    return hash;
}

void close_whole(FILE *f, const char *path) {
    if (!(ferror(f) | fclose(f))) return;
    if ((f = fopen(path, "wb"))) fclose(f);      /* empty, so that it does not look finished */
    fail("cannot write %s: is the disk full?", path);
}

static FILE *create(const char *path) {
    FILE *f = fopen(path, "wb");
    if (!f) fail("cannot write %s", path);
    return f;
}

uint64_t save_latents(const char *path, const int dim[5], const float *x) {
    char head[256];
    size_t n = 1;
    uint64_t hash = DIGEST_BEGIN;
    for (int i = 0; i < 5; i++) n *= (size_t)dim[i];
    const int length = snprintf(head, sizeof head,
        "{\"latents\":{\"dtype\":\"F32\",\"shape\":[%d,%d,%d,%d,%d],\"data_offsets\":[0,%zu]}}",
        dim[0], dim[1], dim[2], dim[3], dim[4], 4 * n);
    FILE *f = path ? create(path) : NULL;
    if (f) fprintf(f, "%c%c%c%c%c%c%c%c%s", length, 0, 0, 0, 0, 0, 0, 0, head);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        for (int k = 0; k < 4; k++, bits >>= 8) {
            const uint8_t byte = (uint8_t)bits;
            if (f) putc(byte, f);
            hash = digest(hash, &byte, 1);
        }
    }
    if (f) close_whole(f, path);
    return hash;
}

FILE *y4m_create(const char *path, int h, int w) {
    FILE *f = create(path);
    fprintf(f, "YUV4MPEG2 W%d H%d F16:1 Ip A1:1 C444 XCOLORRANGE=LIMITED\n", w, h);
    return f;
}

static int byte_of(float x) {
    if (!(x >= -1)) x = -1;                      /* NaN too */
    return (int)(255 * (0.5f * (x > 1 ? 1 : x) + 0.5f));     /* truncated */
}

/* BT.601 in limited range, 2^16 times the weights, rounded half up. */
uint64_t y4m_picture(FILE *f, uint64_t hash, const float *x, int h, int w) {
    static const int base[] = {16, 128, 128},
        weight[3][3] = {{16829, 33039, 6416}, {-9714, -19070, 28784}, {28784, -24103, -4681}};
    const size_t n = (size_t)h * w;
    if (f) fputs("FRAME\n", f);
    for (size_t i = 0; i < 3 * n; i++) {
        int sum = (base[i / n] << 16) + 32768;
        for (int c = 0; c < 3; c++) sum += weight[i / n][c] * byte_of(x[c * n + i % n]);
        const uint8_t byte = (uint8_t)(sum >> 16);
        if (f) putc(byte, f);
        hash = digest(hash, &byte, 1);
    }
    return hash;
}

/* P6, 8 bits, of exactly w x h, as [3, h, w] in [-1, 1]. */
float *read_ppm(const char *path, int h, int w) {
    int width, height, most, head = 0;
    size_t size;
    char *text = read_file(path, &size);
    if (sscanf(text, "P6 %d %d %d%n", &width, &height, &most, &head) != 3 || most != 255)
        fail("%s is not a PPM picture (P6, 255 levels, no comment)", path);
    if (width != w || height != h)
        fail("%s is %dx%d, but the video is %dx%d; give --size", path, width, height, w, h);
    const size_t n = (size_t)h * w;
    const uint8_t *rgb = (const uint8_t *)text + head + 1;
    if (size != (size_t)head + 1 + 3 * n) fail("%s is cut off", path);
    float *x = floats(3 * n);
    for (size_t i = 0; i < 3 * n; i++) x[i % 3 * n + i / 3] = ((float)rgb[i] / 255 - 0.5f) / 0.5f;
    free(text);
    return x;
}
