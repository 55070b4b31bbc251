/* test_options.c: the options of every policy: refused, by default, described,
 * parsed, preset.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "tests/cache/drive.h"

static void check_refusals(tt_ctx *ctx)
{
    tt_policy_options o = options("infinity", 6, 0, 0);
    refused_with(ctx, "at least 1", o, 0);
    refused_with(ctx, "S + chunk", options("infinity", 5, 3, 0), 0);
    refused_with(ctx, "at least 5", options("infinity", 4, 1, 0), 2);
    refused_with(ctx, "3 + chunk", options("infinity", 5, 1, 0), 2);
    o = options("infinity", 6, 1, 0);
    tt_policy_put(&o, "cut-at", -1);
    refused_with(ctx, "cut", o, 0);
    refused_with(ctx, "S + 2", options("memrope", 7, 3, 0), 0);
    refused_with(ctx, "first chunk", options("memrope", 12, 4, 0), 0);
    o = tt_policy_defaults("memrope");
    tt_policy_put(&o, "alpha-short", 1.5);
    refused_with(ctx, "0..1", o, 0);
    o = tt_policy_defaults("memrope");
    tt_policy_put(&o, "alpha-long", NAN);
    refused_with(ctx, "0..1", o, 0);
    o = tt_policy_defaults("memrope");
    tt_policy_put(&o, "adaptive", true);
    tt_policy_put(&o, "memrope-method", 1);
    refused_with(ctx, "ema", o, 0);
    refused_with(ctx, "S + chunk", options("deep-sink", 21, 19, 0), 0);
    refused_with(ctx, "at least one chunk",
                 options("deep-forcing", 21, 10, 2), 0);
    refused_with(ctx, "S + R", options("deep-forcing", 13, 10, 4), 0);
    o = tt_policy_defaults("deep-forcing");
    tt_policy_put(&o, "compress-to", 22);
    refused_with(ctx, "compress-to", o, 0);
    tt_policy_put(&o, "compress-to", 0);
    refused_with(ctx, "compress-to", o, 0);
    o = tt_policy_defaults("deep-forcing");
    tt_policy_put(&o, "max-reuse", -1);
    refused_with(ctx, "max-reuse", o, 0);
    refused_with(ctx, "nothing is ever evicted",
                 tt_policy_defaults("causvid"), 0);
    refused_with(ctx, "must not be negative",
                 options("causvid-rolling", 21, -1, 0), 0);
    for (int i = 0; tt_policy_at(i); i++) {
        o = tt_policy_defaults(tt_policy_at(i)->name);
        if (!strcmp(o.name, "full")) continue;
        o.K = INT64_MAX;
        refused_with(ctx, "K", o, 0);
        o.K = 1;
        refused_with(ctx, "K", o, 0);
    }
}

static void check_defaults(tt_ctx *ctx)
{
    (void)ctx;
    const struct { const char *name; int64_t K, S; } want[] = {
        { "infinity", 6, 1 }, { "memrope", 12, 3 }, { "deep-sink", 21, 14 },
        { "deep-forcing", 21, 10 }, { "causvid", 21, 0 },
        { "causvid-rolling", 21, 0 } };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const tt_policy_options o = tt_policy_defaults(want[i].name);
        expect(o.K == want[i].K && o.S == want[i].S, "%s: K %d, S %d", o.name,
               (int)o.K, (int)o.S);
    }
    const struct { const char *policy, *knob; double value; } own[] = {
        { "deep-forcing", "recent", 4 }, { "deep-forcing", "compress-to", 16 },
        { "deep-forcing", "max-reuse", 7 }, { "deep-forcing", "fusion", 0 },
        { "deep-forcing", "unify", 0 }, { "infinity", "cut-at", 45 },
        { "infinity", "raw-slot0", 0 }, { "memrope", "memrope-method", 0 },
        { "memrope", "alpha-long", 0.01 }, { "memrope", "alpha-short", 0.1 },
        { "memrope", "adaptive", 0 } };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        const tt_policy_options o = tt_policy_defaults(own[i].policy);
        expect(tt_policy_get(&o, own[i].knob) == own[i].value, "%s of %s",
               own[i].knob, own[i].policy);
    }
}

/* Every knob is part of what a run is compared by. */
static void check_describe(void)
{
    char base[1024], other[1024];
    for (int i = 0; tt_policy_at(i); i++) {
        const tt_policy_options b = tt_policy_start(tt_policy_at(i));
        const int n = tt_policy_describe(base, sizeof base, &b);
        expect(n > 0 && n == (int)strlen(base)
               && n == tt_policy_describe(NULL, 0, &b), "length");
        for (const tt_knob *k = b.cls->knobs; k && k->name; k++) {
            tt_policy_options o = b;
            const double step = k->type == TT_KNOB_REAL ? 0.015625 : 1;
            tt_policy_put(&o, k->name, k->usual + step);
            tt_policy_describe(other, sizeof other, &o);
            expect(strcmp(base, other) != 0, "%s of %s is not described",
                   k->name, b.name);
        }
    }
}

/* A refusal that says `word`. */
static void expect_said(tt_ctx *ctx, const char *word)
{
    expect(strstr(tt_message(ctx), word) != NULL, "`%s` in: %s", word,
           tt_message(ctx));
    expect_status(ctx->status, TT_EINVAL, word);
}

static void check_parse(tt_ctx *ctx)
{
    static const struct { const char *text, *says; } wrong[] = {
        { "theter", "there is no cache policy \"theter\"" },
        { "fifo:tau=0.5", "tau belongs to tether" },
        { "tether:tau=1.5", "tau = 1.5 must lie in 0..1" },
        { "tether:tau=x", "a number, but `x`" },
        { "tether:tau", "a number, but ``" },
        { "tether:tau=nan", "a number, but `nan`" },
        { "tether:score-temperature=0", "must lie in" },
        { "tether:budget=2.5", "a whole number, but `2.5`" },
        { "tether:budget=99999999999999999999", "a whole number" },
        { "tether:pool=token", "chunk or frame, but `token`" },
        { "tether:preset=x", "there are official, paper" },
        { "memrope:adaptive=2", "0 or 1, but `2`" },
        { "deep-forcing:max-reuse=-1", "must be at least 0" },
        { "tether:", "no knob \"\"" }, { "", "no cache policy \"\"" } };
    tt_policy_options o;
    expect_ok(tt_policy_parse(ctx, &o, "tether:tau=0.5:budget=9:preset=paper"),
              "parse");
    expect(tt_policy_get(&o, "tau") == 0.5 && tt_policy_get(&o, "pool") == 1
           && o.K == 9, "explicit knobs win over the preset");
    expect_ok(tt_policy_parse(ctx, &o, "deep-forcing:unify:fusion=max"),
              "parse");
    expect(tt_policy_get(&o, "unify") == 1 && tt_policy_get(&o, "fusion") == 1,
           "a switch, and a word");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tt_policy_parse(ctx, &o, wrong[i].text);
        expect_said(ctx, wrong[i].says);
    }
}

static void check_presets(tt_ctx *ctx)
{
    tt_policy_options o = tt_policy_defaults("tether");
    int n = 0;
    for (; o.cls->presets[n].name; n++)
        expect(strlen(o.cls->presets[n].summary) > 0, "preset %d", n);
    expect(n == 7, "presets");
    tt_policy_apply_preset(ctx, &o, "paper");
    expect(tt_policy_get(&o, "tau") == 0.6 && tt_policy_get(&o, "pool") == 1
           && tt_policy_get(&o, "alpha") == 0.35, "paper");
    tt_policy_apply_preset(ctx, &o, "official");
    expect(tt_policy_get(&o, "tau") == 0.35 && tt_policy_get(&o, "pool") == 0,
           "official");
    tt_policy_apply_preset(ctx, &o, "no-memory");
    expect(o.K == 7 && o.M == 0 && o.S == 3 && o.R == 4, "no memory");
    o = tt_policy_defaults("tether");
    tt_policy_apply_preset(ctx, &o, "attention-only");
    expect(tt_policy_get(&o, "alpha") == 0 && o.K == 21, "attention only");
    tt_policy_apply_preset(ctx, &o, "nonsense");
    expect_said(ctx, "attention-only");
    o = tt_policy_defaults("fifo");
    tt_policy_apply_preset(ctx, &o, "paper");
    expect_said(ctx, "no presets");
}

int main(void)
{
    tt_ctx *ctx = test_begin("cache/options");
    check_refusals(ctx);
    check_defaults(ctx);
    check_describe();
    check_parse(ctx);
    check_presets(ctx);
    expect_ok(ctx->status, "nothing left recorded");
    return test_end();
}
