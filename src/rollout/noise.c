/* noise.c: the generator tn1, and noise from a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * tn1 is defined in src/golden/noise.c. */
#include "rollout/run.h"

#include "tether/mathfn.h"

#include <string.h>

#undef TT_REAL_DOUBLE   /* noise is float in every build */
#include "core/golden_names.h"
#include "golden/noise.c"

void tt_noise_frame(float *out, int64_t n, uint64_t seed, uint32_t sample,
                    uint32_t frame, uint32_t stream)
{
    noise_frame(out, (size_t)n, seed, sample, frame, stream);
}

/* Index of the next chunk's first frame in the noise: given frames before the
 * video have none; those of a restart have some that is never used. */
static int64_t first_frame(const tt_rollout *r)
{
    return r->rollout * r->opt.latents + r->done
           - (r->rollout == 0 ? r->ngiven : 0);
}

/* Where the next chunk's part of the file's re-noise begins: chunk-major, then
 * step, then frame. */
static const tt_host *renoise_at(const tt_rollout *r, int64_t f, int step)
{
    const int64_t gaps = r->schedule.nsteps - 1;
    const int64_t before = causvid_denoised_before(r) * gaps;
    return r->opt.noise.renoise + (before + step * f) * r->frame_size;
}

void noise_chunk(tt_host *out, const tt_rollout *r, int64_t f, int stream)
{
    const tt_noise_source *s = &r->opt.noise;
    const int64_t first = first_frame(r);
    if (s->noise) {
        const tt_host *from = stream == 0 ? s->noise + first * r->frame_size
                                          : renoise_at(r, f, stream - 1);
        memcpy(out, from, (size_t)(f * r->frame_size) * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < f; i++) {
        tt_noise_frame(r->words, r->frame_size, s->seed, s->sample,
                       (uint32_t)(first + i), (uint32_t)stream);
        for (int64_t e = 0; e < r->frame_size; e++) *out++ = r->words[e];
    }
}
