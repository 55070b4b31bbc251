/* test_page.c: the numbers of src/rollout/README.md, read from the page and
 * computed again: schedule and noise.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "rollout/run.h"
#include "tests/page.h"
#include "tether/mathfn.h"

static page p;

static void schedule(tt_ctx *ctx)
{
    tt_schedule s;
    if (!expect_ok(tt_schedule_init(ctx, &s, 5, (double[]){1000, 750, 500, 250},
                                    4, true, 0), "schedule"))
        return;
    double sigma[4];
    for (int i = 0; i < 4; i++)
        sigma[i] = s.sigma[tt_schedule_index(&s, s.t[i])];
    page_says(&p, "timesteps of the default list", 4, s.t);
    page_says(&p, "their sigmas", 4, sigma);
    PAGE_SAYS(&p, "T_999", s.timestep[999]);
}

static void says_words(const char *label, const uint32_t *w)
{
    PAGE_SAYS(&p, label, w[0], w[1], w[2], w[3]);
}

static void noise(void)
{
    const uint64_t seed = 0x0123456789abcdefu;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {1, 3, 1, 2}, zero[4] = {0};
    const uint32_t ones[4] = {~0u, ~0u, ~0u, ~0u};
    uint32_t w[4];
    float z[8];
    defined_philox(w, zero, zero);
    says_words("words of counter 0, 0, 0, 0 with key 0, 0", w);
    defined_philox(w, ones, ones);
    says_words("words of all ones, key all ones", w);
    page_says_word(&p, "seed", seed);
    PAGE_SAYS(&p, "key", key[0], key[1]);
    says_words("counter of sample 2, frame 3, stream 1, elements 4 to 7",
               counter);
    defined_philox(w, counter, key);
    says_words("words", w);
    const double u = ((double)w[0] + 0.5) / 0x1p32;
    PAGE_SAYS(&p, "u and r of the first pair", u, sqrt(-2 * tt_log(u)));
    tt_noise_frame(z, 8, seed, 2, 3, 1);
    PAGE_SAYS(&p, "elements 4 to 7", z[4], z[5], z[6], z[7]);
}

/* The constants of the page, in a generator written from its words. */
static void constants(void)
{
    const uint32_t m0 = 0xd2511f53, m1 = 0xcd9e8d57;
    const uint32_t w0 = 0x9e3779b9, w1 = 0xbb67ae85;
    uint32_t c[4] = {1, 3, 1, 2}, k[2] = {0x89abcdef, 0x01234567}, want[4];
    defined_philox(want, c, k);
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)m0 * c[0], b = (uint64_t)m1 * c[2];
        const uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k[0],
                                  (uint32_t)b,
                                  (uint32_t)(a >> 32) ^ c[3] ^ k[1],
                                  (uint32_t)a};
        memcpy(c, next, sizeof c);
        k[0] += w0;
        k[1] += w1;
    }
    expect_bits("the page's rounds", c, want, sizeof c);
    PAGE_SAYS(&p, "M0, M1", m0, m1);
    PAGE_SAYS(&p, "W0, W1", w0, w1);
}

int main(void)
{
    tt_ctx *ctx = test_begin("rollout/page");
    if (page_open(&p, "src/rollout/README.md")) {
        schedule(ctx);
        constants();
        noise();
        page_close(&p, NULL);
    }
    return test_end();
}
