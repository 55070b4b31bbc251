/* noise.c: noise as a function of its address; the engine calls the generator tn1.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011): Philox4x32-10. Box
 *         and Muller (1958).
 * Code    draws on CUDA in bf16: a seed gives other noise on another GPU. We: a value depends on
 *         seed, sample, frame, stream and element alone. Frozen: a change needs a new name. */
#include "golden.h"

/* Ten rounds of two 32 x 32 bit products, whose halves change places. */
void philox(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53 * c0, b = (uint64_t)0xCD9E8D57 * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9;                        /* the golden ratio */
        k1 += 0xBB67AE85;                        /* sqrt(3) - 1 */
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* Two words become two normal numbers: radius and angle of a point. */
void noise_frame(float *x, size_t n, uint64_t seed, uint32_t sample, uint32_t at, uint32_t stream) {
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (size_t e = 0; e < n; e += 4) {
        const uint32_t counter[4] = {(uint32_t)(e / 4), at, stream, sample};
        uint32_t word[4];
        float z[4];
        philox(word, counter, key);
        for (int i = 0; i < 4; i += 2) {
            const double r = sqrt(-2 * golden_log((word[i] + 0.5) / 4294967296.0));
            double s, c;
            golden_turn(word[i + 1], &s, &c);
            z[i] = (float)(r * c);
            z[i + 1] = (float)(r * s);
        }
        for (size_t i = 0; i < 4 && e + i < n; i++) x[e + i] = z[i];
    }
}
