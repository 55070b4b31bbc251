/* tensor_core.c: attention of the classes sm80 and sm90.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Written down for machines that keep logits, weights and sums in the registers
 * of their matrix unit: tensor_core.md says which choice has which reason. */
#include "ops/golden/tensor_core.h"

#ifndef TT_REAL_DOUBLE

/* The logit of a key, before it is multiplied by the scale of exponents: the
 * bare sum where nothing is added to it. */
static float tensor_core_logit(const golden_head *r, int64_t i, int64_t j)
{
    const tt_attention_args *a = r->a;
    if (a->key_mask && !a->key_mask[j]) return TC_HIDDEN;
    if (a->rel_bias || a->key_mask) return golden_logit(r, i, j);
    return r->class->chain(0, r->q + i * a->D, 1, r->k + j * a->D, a->D);
}

void golden_tensor_core_attend(const golden_head *r, int64_t i, float *o,
                               float *acc)
{
    const tt_attention_args *a = r->a;
    const float scale = a->rel_bias || a->key_mask ? TC_LOG2E
                                                   : a->scale * TC_LOG2E;
    const float one = 1;
    float m = TC_LEAST_MAX, l = 0, p[TC_KEY_BLOCK];
    for (int64_t d = 0; d < a->D; d++) acc[d] = 0;
    for (int64_t j0 = 0; j0 < a->N; j0 += TC_KEY_BLOCK) {
        int64_t n = a->N - j0 < TC_KEY_BLOCK ? a->N - j0 : TC_KEY_BLOCK;
        float top = -INFINITY;
        for (int64_t j = 0; j < n; j++) {
            p[j] = tensor_core_logit(r, i, j0 + j);
            if (p[j] > top) top = p[j];
        }
        const float before = m;
        m = tc_max(before, top, scale);
        const float alpha = tc_alpha(before, m);
        for (int64_t j = 0; j < n; j++) p[j] = tc_weight(p[j], scale, m);
        for (int64_t d = 0; d < a->D; d++)
            acc[d] = r->class->chain(acc[d] * alpha, r->v + j0 * a->D + d, a->D,
                                     p, n);
        l = r->class->chain(l * alpha, &one, 0, p, n);
    }
    for (int64_t d = 0; d < a->D; d++) o[d] = acc[d] / l;
}

#else
typedef int tt_no_golden_tensor_core;
#endif
