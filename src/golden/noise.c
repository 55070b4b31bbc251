/* noise.c: the generator tn1, noise as a function of its address.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011):
 *         Philox4x32-10. Box and Muller (1958).
 * Code    the official code draws on CUDA in bf16: the same seed gives other
 *         noise on another GPU. We: a value depends on seed, sample, frame,
 *         stream and element alone. Frozen: a change needs a new name. */
#include "golden.h"

#include <math.h>

/* Ten rounds of two 32 x 32 bit products, whose halves change places. */
void philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53 * c0;
        const uint64_t b = (uint64_t)0xCD9E8D57 * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9;                        /* the golden ratio          */
        k1 += 0xBB67AE85;                        /* sqrt(3) - 1               */
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* Two words become two normal numbers: radius and angle of a point. */
static void normals(float *out, uint32_t a, uint32_t b)
{
    const double u = (a + 0.5) / 4294967296.0, r = sqrt(-2 * golden_log(u));
    double s, c;
    golden_turn(b, &s, &c);
    out[0] = (float)(r * c);
    out[1] = (float)(r * s);
}

void noise_frame(float *x, size_t n, uint64_t seed, int frame, int stream)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (size_t e = 0; e < n; e += 4) {
        const uint32_t counter[4] = {(uint32_t)(e / 4), (uint32_t)frame,
                                     (uint32_t)stream, 0};
        uint32_t word[4];
        float z[4];
        philox(word, counter, key);
        normals(z, word[0], word[1]);
        normals(z + 2, word[2], word[3]);
        for (size_t i = 0; i < 4 && e + i < n; i++) x[e + i] = z[i];
    }
}
