/* test_long.c: the positions of 3,000 latents, beyond the 1,024 of the official
 * tables, without a network.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers: the table of src/cache/README.md, read from the page. Each
 * policy with a window runs to its end there; every chunk has one pass, which
 * is its first and its clean one. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cache/drive.h"

enum { LATENTS = 3000, TABLE = 1024 };

static char page[1 << 16];
static bool warned;

static void on_warning(void *user, const char *sentence)
{
    (void)user;
    warned = warned || strstr(sentence, "official rotary tables");
}

static bool read_page(void)
{
    const char *path = "src/cache/README.md";
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(page, 1, sizeof page - 1, f) : 0;
    if (f) fclose(f);
    return expect(n > 0 && strstr(page, "## Beyond 1,024 frames"),
                  "%s has the table", path);
}

/* The number in the second cell of the policy's row; -1: no such row. */
static int64_t page_says(const char *policy)
{
    char label[64];
    snprintf(label, sizeof label, "\n| `%s` |", policy);
    const char *row = strstr(strstr(page, "## Beyond 1,024 frames"), label);
    return row ? strtoll(row + strlen(label), NULL, 10) : -1;
}

/* The largest frame position that a pass of this chunk shows the model. */
static int64_t largest(tt_ctx *ctx, tt_cache *c, int64_t start)
{
    const tt_layer *y = tt_cache_layer(c, 0);
    const tt_plan plan = plan_at(ctx, c, start, 0, false);
    int64_t most = plan.q_t0 + C - 1;
    for (int i = 0; i < plan.nsegments; i++)
        for (int64_t t = 0; t < plan.segment[i].ntokens; t++) {
            const tt_segment *s = &plan.segment[i];
            const int64_t at = s->t0 == TT_T_PER_TOKEN ? y->tpos[s->slot + t]
                                                       : s->t0 + t / L;
            if (at > most) most = at;
        }
    return most;
}

static void positions_of(tt_ctx *ctx, const char *policy, int64_t frames)
{
    static seen a;
    int64_t most = 0;
    warned = false;
    tt_cache *c = open_cache(ctx, tt_policy_defaults(policy), frames);
    if (!c) return;
    for (int64_t start = 0; start < frames; start += C) {
        run_pass(ctx, c, &a, start, C, 0, true);
        const int64_t at = largest(ctx, c, start);
        if (at > most) most = at;
    }
    expect_ok(ctx->status, policy);
    expect(most == page_says(policy), "%s shows position %lld, the page says "
           "%lld", policy, (long long)most, (long long)page_says(policy));
    expect(warned == (most >= TABLE), "%s warns of positions beyond the "
           "tables: %d", policy, warned);
    tt_cache_close(c);
}

int main(void)
{
    static const char *const windows[] = {
        "causvid-rolling", "deep-forcing", "deep-sink", "fifo", "infinity",
        "memrope", "rolling-sink", "tether" };
    tt_ctx *ctx = test_begin("cache/long");
    ctx->warn = on_warning;
    if (!read_page()) return test_end();
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        positions_of(ctx, windows[i], LATENTS);
    positions_of(ctx, "causvid", 21); /* of every clip */
    expect(page_says("full") == LATENTS - 1, "full is in the table");
    return test_end();
}
