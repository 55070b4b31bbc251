/* check_waits.c: how often each policy waits for the GPU, and what the host
 * gives it, pass by pass.
 *
 *   check_waits
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Whole rollouts on the backend cuda, whose GPU is the shim: driver.cpp counts
 * every wait and every put. A pass waits once, for what the head gives or, in
 * the clean pass, for its tokens, and is given patches and the time. What is
 * beyond that are waits and lists of the policy, which here are held to a number
 * a layer: so many in some pass, and never more. Tables that all layers share
 * come on top, fewer than there are layers. */
#include <dlfcn.h>

#include "tests/rollout/tiny.h"

enum { FIRST, MIDDLE, CLEAN, PASSES };

/* Settings that evict, how often the policy then waits in a layer, and how many
 * lists it gives it. */
static const struct row {
    const char *policy, *knob;
    double value;
    int64_t waits[PASSES], given[PASSES];
    const char *zero;        /* a second knob, at 0                           */
} rows[] = {
    /* one for each round of the clean pass; an edited frame is given means and
     * gains of keys and values */
    {"tether", NULL, 0, {0, 0, 1}, {0, 0, 12}, NULL},
    {"tether", NULL, 0, {0, 0, 1}, {0, 0, 0}, "tau"},
    {"tether", "pool", 1, {0, 0, 3}, {0, 0, 18}, NULL},
    {"tether", "pool", 1, {0, 0, 3}, {0, 0, 0}, "tau"},
    {"memrope", NULL, 0, {0, 0, 0}, {0, 0, 0}, NULL},
    /* distances and averages are computed on the host */
    {"memrope", "adaptive", 1, {4, 0, 0}, {2, 0, 0}, NULL},
    {"memrope", "memrope-method", 1, {0, 0, 0}, {0, 0, 0}, NULL},
    /* queries and scores, when a chunk compresses; a frame at a time where all
     * queries ask */
    {"deep-forcing", NULL, 0, {3, 0, 0}, {7, 0, 0}, NULL},
    {"deep-forcing", "fusion", 1, {12, 0, 0}, {6, 0, 0}, NULL},
    {"deep-forcing", "unify", 1, {3, 0, 0}, {7, 0, 0}, NULL},
};

#define SHARED_PUTS 2        /* patches and the time                          */

typedef long count_fn(void);
static count_fn *waits, *given, *transfers;

typedef struct seen {
    long waits, given, transfers;
    int64_t layers, most[PASSES], most_given[PASSES];
    bool averages;           /* the host changes values in first passes       */
} seen;

/* After each pass. */
static void count(void *user, const tt_progress *p)
{
    seen *s = user;
    const int pass = p->step == p->steps ? CLEAN
                     : p->step == 1 ? FIRST : MIDDLE;
    const long own = waits() - s->waits - 1;
    /* the clean pass asks nothing of the last layer's attention */
    const long lists = (given() - s->given - SHARED_PUTS)
                       / (s->layers - (pass == CLEAN));
    s->waits += own + 1;
    s->given = given();
    const long moved = transfers() - s->transfers;
    s->transfers += moved;
    expect(p->chunk == 0 || moved == 1 || (s->averages && pass == FIRST), "%ld transfers to the GPU in pass %d "
           "of chunk %lld, not the patches alone", moved, pass,
           (long long)p->chunk);
    expect(own >= 0, "%ld waits of a pass", own + 1);
    if (own > s->most[pass] * s->layers)
        s->most[pass] = (own + s->layers - 1) / s->layers;
    if (p->chunk > 0 && lists > s->most_given[pass])
        s->most_given[pass] = lists;
}

static void check(tt_ctx *ctx, const char *policy, const struct row *row)
{
    static tt_real out[4 * FRAMES * SIZE];
    static const int64_t none[PASSES];
    const int64_t *want = row ? row->waits : none;
    const int64_t *lists = row ? row->given : none;
    tt_rollout_options o = evicting_for(policy, FRAMES, 3);
    if (row && row->knob) tt_policy_put(&o.policy, row->knob, row->value);
    if (row && row->zero) tt_policy_put(&o.policy, row->zero, 0);
    tt_rollout *r = start(ctx, &o);
    seen s = {.waits = waits(), .given = given(),
              .averages = row && row->knob && !strcmp(row->knob, "adaptive"),
              .transfers = transfers(),
              .layers = tt_cache_geometry(tt_rollout_cache(r))->layers};
    tt_rollout_on_progress(r, count, &s);
    go(ctx, r, out, 100);
    tt_rollout_close(r);
    char what[80];
    snprintf(what, sizeof what, "%s%s%s%s%s", policy,
             row && row->knob ? " " : "", row && row->knob ? row->knob : "",
             row && row->zero ? " no " : "", row && row->zero ? row->zero : "");
    for (int i = 0; i < PASSES; i++) {
        printf("a layer of %s, pass %d: %lld waits, %lld lists\n", what, i,
               (long long)s.most[i], (long long)s.most_given[i]);
        expect(s.most[i] == want[i], "%s: %lld waits a layer in pass %d, not "
               "%lld", what, (long long)s.most[i], i, (long long)want[i]);
        expect(s.most_given[i] == lists[i], "%s: %lld lists a layer in pass "
               "%d, not %lld", what, (long long)s.most_given[i], i,
               (long long)lists[i]);
    }
}

static bool listed(const char *policy)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].policy, policy)) return true;
    return false;
}

int main(void)
{
    tt_ctx *ctx = test_begin("cuda/waits");
    if (!expect_ok(tt_ops_use(ctx, "cuda"), "the backend cuda opens"))
        return test_end();
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found = driver ? dlsym(driver, "shim_waits") : NULL;
    memcpy(&waits, &found, sizeof found);
    found = driver ? dlsym(driver, "shim_given") : NULL;
    memcpy(&given, &found, sizeof found);
    found = driver ? dlsym(driver, "shim_transfers") : NULL;
    memcpy(&transfers, &found, sizeof found);
    if (!expect(waits && given && transfers, "the driver is the shim"))
        return test_end();
    load(ctx);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(ctx, rows[i].policy, &rows[i]);
    for (int i = 0; tt_policy_at(i); i++)
        if (!listed(tt_policy_at(i)->name))
            check(ctx, tt_policy_at(i)->name, NULL);
    tt_prompt_free(prompt);
    return test_end();
}
