/* sha256.c: SHA-256, for fingerprints of tensors and files.
 *
 * Source  FIPS 180-4.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "io/file.h"
#include "io/sha256_blocks.h"

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
        sha256_blocks(s->h, s->block, 1);
    }
    sha256_blocks(s->h, p, n / 64);
    if (n % 64) memcpy(s->block, p + n / 64 * 64, n % 64);
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
