/* sha256_blocks.c: see sha256_blocks.h.
 *
 * Sources  FIPS 180-4; Intel's manual of SHA256RNDS2, SHA256MSG1 and
 *          SHA256MSG2, which take the state as the words ABEF and CDGH and do
 *          two rounds, and the next four words of the schedule.
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/sha256_blocks.h"

#if defined(__x86_64__)
#include <stdbool.h>

#include <cpuid.h>
#include <immintrin.h>
#endif

static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotr(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void one_block(uint32_t h[8], const uint8_t *p)
{
    uint32_t w[64];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16
               | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (rotr(x, 7) ^ rotr(x, 18) ^ x >> 3)
               + (rotr(y, 17) ^ rotr(y, 19) ^ y >> 10);
    }
    /* eight words that move on by one in every round, in registers */
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3];
    uint32_t e = h[4], f = h[5], g = h[6], last = h[7];
    for (int i = 0; i < 64; i++) {
        uint32_t t1 = last + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25))
                      + ((e & f) ^ (~e & g)) + round_constant[i] + w[i];
        uint32_t t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22))
                      + ((a & b) ^ (a & c) ^ (b & c));
        last = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    const uint32_t v[8] = {a, b, c, d, e, f, g, last};
    for (int i = 0; i < 8; i++) h[i] += v[i];
}

void sha256_blocks_plain(uint32_t h[8], const uint8_t *p, size_t n)
{
    for (; n > 0; n--, p += 64) one_block(h, p);
}

#if defined(__x86_64__)

static bool asked(void)
{
    unsigned a, b, c, d, sse;
    return __get_cpuid(1, &a, &b, &sse, &d)
        && __get_cpuid_count(7, 0, &a, &b, &c, &d)
        && (sse & bit_SSE4_1) && (b & 1u << 29);
}

/* The answer is kept: a virtual machine takes its time for one. */
static bool has_sha(void)
{
    static _Atomic int known; /* 0 not yet, 1 no, 2 yes                       */
    if (!known) known = 1 + asked();
    return known == 2;
}

/* Four rounds, and the four words that are wanted four times later. */
#define ROUNDS(i, w0, w1, w2, w3)                                              \
    {                                                                          \
        __m128i m = _mm_add_epi32(                                             \
            w0, _mm_loadu_si128((const void *)(round_constant + 4 * (i))));    \
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, m);                           \
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(m, 0x0e));  \
        if ((i) < 12)                                                          \
            w0 = _mm_sha256msg2_epu32(                                         \
                _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1),                    \
                              _mm_alignr_epi8(w3, w2, 4)), w3);                \
    }
#define WORDS(i)                                                               \
    _mm_shuffle_epi8(_mm_loadu_si128((const void *)(p + 16 * (i))), big_endian)
#define ROUNDS16(i)                                                            \
    ROUNDS(i, w0, w1, w2, w3) ROUNDS(i + 1, w1, w2, w3, w0)                    \
    ROUNDS(i + 2, w2, w3, w0, w1) ROUNDS(i + 3, w3, w0, w1, w2)

static __attribute__((target("sha,sse4.1"))) void
by_instructions(uint32_t h[8], const uint8_t *p, size_t n)
{
    const __m128i big_endian =
        _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const void *)h), 0xb1);
    __m128i high =
        _mm_shuffle_epi32(_mm_loadu_si128((const void *)(h + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8);
    __m128i cdgh = _mm_blend_epi16(high, low, 0xf0);
    for (; n > 0; n--, p += 64) {
        const __m128i before[2] = {abef, cdgh};
        __m128i w0 = WORDS(0), w1 = WORDS(1), w2 = WORDS(2), w3 = WORDS(3);
        ROUNDS16(0) ROUNDS16(4) ROUNDS16(8) ROUNDS16(12)
        abef = _mm_add_epi32(abef, before[0]);
        cdgh = _mm_add_epi32(cdgh, before[1]);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((void *)h, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((void *)(h + 4), _mm_alignr_epi8(high, low, 8));
}

void sha256_blocks(uint32_t h[8], const uint8_t *p, size_t n)
{
    if (n >= 1 && has_sha()) by_instructions(h, p, n);
    else sha256_blocks_plain(h, p, n);
}

#else

void sha256_blocks(uint32_t h[8], const uint8_t *p, size_t n)
{
    sha256_blocks_plain(h, p, n);
}

#endif
