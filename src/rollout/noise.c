/* noise.c: the generator tn1, and noise from a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   key = seed; counter = (element / 4, frame, stream, sample); so a
 *         value depends on its address alone, never on length, chunking,
 *         threads, machine or a resume. The official code draws on CUDA, where
 *         the same seed gives other values on another GPU.
 * Holds   tn1 is frozen: any change of a bit needs a new name. */
#include "rollout/run.h"

#include "tether/mathfn.h"

#include <math.h>
#include <string.h>

/* Box-Muller: two words to two standard normals, |value| <= 6.77. */
static void normals(float out[2], uint32_t a, uint32_t b)
{
    const double u = ((double)a + 0.5) / 4294967296.0;
    const double r = sqrt(-2 * tt_log(u));
    double s, c;
    tt_sincos_turn(b, &s, &c);   /* angle 2 pi b / 2^32 */
    out[0] = (float)(r * c);
    out[1] = (float)(r * s);
}

void tt_noise_frame(float *out, int64_t n, uint64_t seed, uint32_t sample,
                    uint32_t frame, uint32_t stream)
{
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    for (int64_t e = 0; e < n; e += 4) {
        const uint32_t counter[4] = { (uint32_t)(e / 4), frame, stream,
                                      sample };
        uint32_t w[4];
        float z[4];
        philox(w, counter, key);
        normals(z, w[0], w[1]);
        normals(z + 2, w[2], w[3]);
        for (int64_t i = 0; i < 4 && e + i < n; i++) out[e + i] = z[i];
    }
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
