/* kernels_bf16_amx_model.c: the AMX kernel with its instructions in plain C.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * For tests on CPUs without AMX: TT_CPU=amx-model runs the kernel's packing,
 * indexing and drivers on a model of eight tile registers. Slow.
 * Source  Intel's pseudocode of TILELOADD, TILESTORED, TILEZERO, TDPBF16PS. */
#include "ops/exact/bf16.h"

#if defined(__x86_64__) && !defined(TT_REAL_DOUBLE)

typedef struct model_tile {
    unsigned char row[16][64];
} model_tile;

static void model_load(model_tile *t, const void *at, int64_t stride)
{
    for (int r = 0; r < 16; r++)
        memcpy(t->row[r], (const char *)at + r * stride, 64);
}

static void model_store(const model_tile *t, void *at, int64_t stride)
{
    for (int r = 0; r < 16; r++)
        memcpy((char *)at + r * stride, t->row[r], 64);
}

/* Element i of a row of bf16; a subnormal counts as zero. */
static float model_bf16(const unsigned char *row, int i)
{
    uint16_t h;
    memcpy(&h, row + 2 * i, 2);
    uint32_t u = (uint32_t)h << 16;
    float x;
    memcpy(&x, &u, 4);
    return bf16_round(x);
}

static void model_dot(model_tile *c, const model_tile *a, const model_tile *b)
{
    for (int m = 0; m < 16; m++) {
        float sum[16], temp[32] = {0};
        memcpy(sum, c->row[m], 64);
        for (int k = 0; k < 16; k++)
            for (int n = 0; n < 32; n++)
                temp[n] = bf16_fma(model_bf16(a->row[m], 2 * k + n % 2),
                                   model_bf16(b->row[k], n), temp[n]);
        for (int n = 0; n < 16; n++)
            sum[n] = bf16_add(sum[n], bf16_add(temp[2 * n], temp[2 * n + 1]));
        memcpy(c->row[m], sum, 64);
    }
}

static unsigned model_begin(void)
{
    return 0;
}

static void model_end(unsigned state)
{
    (void)state;
}

#define TILE_STATE model_tile tile_[8]
#define TILE_ZERO(t) memset(&tile_[t], 0, sizeof tile_[t])
#define TILE_LOAD(t, at, stride) model_load(&tile_[t], at, stride)
#define TILE_DOT(c, a, b) model_dot(&tile_[c], &tile_[a], &tile_[b])
#define TILE_STORE(t, at, stride) model_store(&tile_[t], at, stride)
#include "ops/exact/bf16_amx.h"

const tt_bf16_kernels tt_bf16_amx_model = {
    .name = "amx-model", .begin = model_begin, .end = model_end, BF16_AMX};

#else
typedef int tt_no_bf16_amx_model;
#endif
