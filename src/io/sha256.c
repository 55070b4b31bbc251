/* sha256.c: SHA-256, for fingerprints of tensors and files.
 *
 * Source  FIPS 180-4.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "io/file.h"

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

static void compress(uint32_t h[8], const uint8_t *p)
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

void tt_sha256_init(tt_sha256 *s)
{
    static const uint32_t start[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->h, start, sizeof start);
    s->nbytes = 0;
}

void tt_sha256_add(tt_sha256 *s, const void *data, size_t n)
{
    const uint8_t *p = data;
    size_t used = (size_t)(s->nbytes % 64);
    s->nbytes += n;
    if (used > 0) {
        size_t k = 64 - used < n ? 64 - used : n;
        memcpy(s->block + used, p, k);
        p += k;
        n -= k;
        if (used + k < 64) return;
        compress(s->h, s->block);
    }
    for (; n >= 64; p += 64, n -= 64) compress(s->h, p);
    if (n > 0) memcpy(s->block, p, n);
}

void tt_sha256_hex(tt_sha256 *s, char hex[65])
{
    static const uint8_t padding[64] = {0x80};
    uint8_t length[8];
    uint64_t bits = s->nbytes * 8;
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(bits >> (56 - 8 * i));
    tt_sha256_add(s, padding, 1 + (119 - s->nbytes % 64) % 64);
    tt_sha256_add(s, length, 8);
    for (int i = 0; i < 8; i++)
        snprintf(hex + 8 * i, 9, "%08x", (unsigned)s->h[i]);
}

tt_status tt_tensor_digest(tt_ctx *ctx, char hex[65], const tt_tensor *t)
{
    tt_sha256 s;
    tt_sha256_init(&s);
    if (ctx->status) return ctx->status;
    size_t n = (size_t)tt_tensor_bytes(t);
    if (tt_tensor_packed(t) && (!t->native || tt_host_little_endian())) {
        if (n > 0) tt_sha256_add(&s, t->data, n);
    } else {
        tt_arena_mark m = tt_arena_here(&ctx->scratch);
        void *packed = tt_alloc(ctx, &ctx->scratch, (int64_t)n, 1,
                                "a tensor to digest");
        if (packed) {
            tt_gather(packed, t);
            tt_swap_stored(packed, t->dtype, tt_tensor_count(t));
            tt_sha256_add(&s, packed, n);
        }
        tt_arena_reset(&ctx->scratch, m);
    }
    tt_sha256_hex(&s, hex);
    return ctx->status;
}

void tt_file_digest(char hex[65], const tt_file *f)
{
    if (!f) hex[0] = 0;
    if (!f) return;
    tt_sha256 s;
    tt_sha256_init(&s);
    tt_sha256_add(&s, f->map.data, (size_t)f->map.size);
    for (int64_t i = 0; i < f->nshards; i++)
        tt_sha256_add(&s, f->shard[i]->map.data,
                      (size_t)f->shard[i]->map.size);
    tt_sha256_hex(&s, hex);
}
