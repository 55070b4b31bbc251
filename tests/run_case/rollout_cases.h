/* rollout_cases.h: one reference rollout, shared by its two files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TESTS_ROLLOUT_CASES_H
#define TT_TESTS_ROLLOUT_CASES_H

#include "tests/run_case/run_case.h"
#include "rollout/rollout.h"

#define REAL_TYPE (sizeof(tt_real) == 8 ? TT_F64 : TT_F32)

/* Everything the case wants to see, collected while the rollout runs. */
typedef struct rolled {
    tt_ctx *ctx;
    tt_st_writer *out;
    tt_arena arena;
    tt_rollout *run;
    tt_cache *cache;
    const tt_geometry *geo;
    bool tether;
    bool batch;                  /* caches have a batch axis, norms are kept  */
    int64_t chunks, M;
    int64_t rollouts;            /* of CausVid, else 1                        */
    int nprompts;
    tt_prompt *prompt[16];
    int64_t *ends, *ends_tokens; /* [chunks, 2]                               */
    int64_t *memory, *counters;  /* [chunks, layers, M], [chunks, layers, 3]  */
    uint8_t *filled;
    double *norm_k, *norm_v;
    int64_t rounds, capacity, P; /* admission rounds so far, at most, width   */
    int64_t *g_layer, *g_chunk, *g_sub, *g_candidates, *g_after;
    tt_real *g_mass, *g_scores;
    uint8_t *g_keep;
} rolled;

/* Options of the policy; false when the case is about one this program does
 * not have. */
bool policy_read(tt_policy_options *o, const tt_json *json);
/* Noise, prompts, scenes, given latents. */
void policy_read_inputs(rolled *r, tt_rollout_options *o, const tt_json *json,
                        const tt_dit *m, const tt_file *f);

/* "chunk3", or "r1.chunk3" of a restarted rollout. */
void policy_chunk_prefix(char *buf, size_t n, const rolled *r, int64_t chunk);
/* Keys [cap, H, D] as the official code of this policy stores them. */
void policy_stored_keys(rolled *r, tt_real *out, const tt_layer *y);
/* Deep Forcing: <prefix>.abs_frame and .reuse [layers, cap]. */
void policy_put_tokens(rolled *r, const char *prefix);
/* `ends`, or `ends_tokens` of Deep Forcing. */
void policy_put_ends(rolled *r);
/* comp<i>.layer<l>.* of Deep Forcing. */
void policy_on_compress(rolled *r, const tt_event *e);

#endif
