/* test_settings.c: the settings of a run, by name.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Known answers  what is set is shown again; every row of the table takes a
 *   value of its kind and refuses one that is not. */
#include "tests/harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "run/run.h"

static tt_ctx *ctx;
static tt_settings s;

static void refused(const char *name, const char *text, const char *words)
{
    char was[64], is[64];
    const char *before = tt_settings_get(&s, name, was, sizeof was);
    tt_settings_set(ctx, &s, name, text);
    expect(ctx->status == TT_EINVAL && strstr(tt_message(ctx), words),
           "%s %s: %s", name, text ? text : "without", tt_message(ctx));
    tt_clear(ctx);
    const char *after = tt_settings_get(&s, name, is, sizeof is);
    expect(before == after || (before && after && !strcmp(before, after))
           || (before == was && after == is && !strcmp(was, is)),
           "%s keeps its value", name);
}

static void shown(const char *name, const char *text, const char *want)
{
    char buf[64];
    expect_ok(tt_settings_set(ctx, &s, name, text), name);
    const char *got = tt_settings_get(&s, name, buf, sizeof buf);
    expect(got && !strcmp(got, want), "%s %s is %s", name,
           text ? text : "without a value", got ? got : "nothing");
    expect(tt_settings_was_given(&s, name), "%s was given", name);
}

/* A value of its kind, for every row. */
static void check_rows(void)
{
    static const char *const value[] = {
        [TT_SETTING_FLAG] = "yes", [TT_SETTING_SWITCH] = "no",
        [TT_SETTING_INT] = "7", [TT_SETTING_U64] = "7",
        [TT_SETTING_REAL] = "0.5", [TT_SETTING_TEXT] = "word",
        [TT_SETTING_READ] = "file", [TT_SETTING_WRITE] = "file",
        [TT_SETTING_MAYBE] = "1", [TT_SETTING_LIST] = "file"};
    int n = 0;
    for (const tt_setting *o = tt_settings_table(); o->kind; o++) {
        if (o->kind == TT_SETTING_GROUP) continue;
        shown(o->name, value[o->kind], value[o->kind]);
        expect(o->help && *o->help, "%s has a help text", o->name);
        expect(tt_settings_find(o->name) == o, "%s stands once", o->name);
        n++;
    }
    expect(n > 60, "%d settings, knobs of the policies among them", n);
}

static void check_values(void)
{
    shown("latents", "-12", "-12");
    shown("seed", "0xffffffffffffffff", "18446744073709551615");
    shown("shift", "0.1", "0.10000000000000001");
    shown("warp", NULL, "yes");
    shown("warp", "0", "no");
    shown("no-decode", "1", "yes");
    shown("no-decode", "no", "no");
    shown("preview", NULL, "");
    shown("lora", "", "");
    shown("lora", "a:0.5", "a:0.5");
    shown("lora", "b", "a:0.5\nb");
    shown("lora", "", "");
    refused("lora", NULL, "needs a value (FILE[:STRENGTH])");
    refused("latents", "9x", "needs a whole number, but `9x` was given");
    refused("latents", "99999999999999999999", "out of range");
    refused("latents", NULL, "needs a whole number (N)");
    refused("seed", "-1", "from 0 to 2^64-1");
    refused("shift", "inf", "a finite number");
    refused("resume", "perhaps", "yes or no");
    tt_settings_set(ctx, &s, "colour", "red");
    expect(strstr(tt_message(ctx), "no setting `colour`") != NULL,
           "an unknown name: %s", tt_message(ctx));
    tt_clear(ctx);
    expect_ok(tt_settings_set(ctx, &s, "seed", "random"), "a random seed");
    expect(s.seed <= UINT32_MAX, "short enough to be typed again");
}

/* What was set is the settings' own; a copy is another one. */
static void check_copy(void)
{
    char text[] = "tether:tau=0.6", buf[64];
    tt_settings a = tt_settings_defaults(), b;
    expect_ok(tt_settings_set(ctx, &a, "cache", text), "a policy");
    memset(text, 'x', sizeof text - 1);
    expect(!strcmp(a.cache, "tether:tau=0.6"), "the text is kept");
    expect_ok(tt_settings_copy(ctx, &b, &a), "a copy");
    tt_settings_free(&a);
    expect(!strcmp(b.cache, "tether:tau=0.6"), "the copy has its own");
    expect_ok(tt_settings_set(ctx, &b, "prompt", "a cat"), "a prompt");
    tt_rollout_options o;
    expect_ok(tt_settings_check(ctx, &b, &o), "the rules");
    expect(o.policy.name && !strcmp(o.policy.name, "tether")
           && o.nsteps == 4 && o.chunk == 3, "options of the rollout");
    expect(!strcmp(tt_settings_get(&b, "tau", buf, sizeof buf),
                   "0.59999999999999998"), "the knob of the policy: %s",
           tt_settings_get(&b, "tau", buf, sizeof buf));
    tt_settings_free(&b);
}

static void rule(const char *name, const char *text, const char *words)
{
    tt_settings a = tt_settings_defaults();
    tt_rollout_options o;
    tt_settings_set(ctx, &a, "prompt", "a cat");
    tt_settings_set(ctx, &a, name, text);
    tt_settings_check(ctx, &a, &o);
    expect(ctx->status == TT_EINVAL && strstr(tt_message(ctx), words),
           "%s %s: %s", name, text, tt_message(ctx));
    tt_clear(ctx);
    tt_settings_free(&a);
}

/* Counts, and how they are spaced; forms of a list. */
static void check_steps(void)
{
    double x[TT_MAX_STEPS];
    bool counted;
    int n;
    for (int c = 1; c <= TT_MAX_STEPS; c++) {
        char text[8];
        bool right = true;
        snprintf(text, sizeof text, "%d", c);
        expect_ok(tt_setting_steps(ctx, x, &n, &counted, text), text);
        for (int i = 0; i < n; i++)
            right &= fabs(x[i] - 1000.0 * (c - i) / c) <= 0.5
                  && x[i] == floor(x[i]);
        expect(n == c && counted && right && x[0] == 1000, "%d steps", c);
    }
    static const char *const lists[] = {"1000,750.5", " [1000 , 750.5] ",
                                        "1000 750.5", "1e3,7505e-1"};
    for (int i = 0; i < 4; i++) {
        expect_ok(tt_setting_steps(ctx, x, &n, &counted, lists[i]), lists[i]);
        expect(n == 2 && !counted && x[0] == 1000 && x[1] == 750.5, "%s: %d",
               lists[i], n);
    }
}

/* A count of CausVid's own number is its own list. */
static void check_own_schedule(void)
{
    static const struct { const char *steps, *warp; double second; } row[] = {
        {"3", NULL, 757}, {"3", "yes", 667}, {"2", NULL, 500},
        {"1000,800,500", NULL, 800}};
    for (int i = 0; i < 4; i++) {
        tt_settings a = tt_settings_defaults();
        tt_rollout_options o;
        tt_settings_set(ctx, &a, "prompt", "a cat");
        tt_settings_set(ctx, &a, "cache", "causvid");
        tt_settings_set(ctx, &a, "steps", row[i].steps);
        if (row[i].warp) tt_settings_set(ctx, &a, "warp", row[i].warp);
        expect_ok(tt_settings_check(ctx, &a, &o), row[i].steps);
        expect(o.steps[1] == row[i].second && o.shift == 8
               && o.warp == (i == 1 || i == 2), "--cache causvid --steps %s: "
               "%g, shift %g", row[i].steps, o.steps[1], o.shift);
        tt_settings_free(&a);
    }
}

int main(void)
{
    ctx = test_begin("run/settings");
    s = tt_settings_defaults();
    check_values();
    check_steps();
    check_own_schedule();
    check_rows();
    check_copy();
    rule("width", "100", "multiple of 16");
    rule("prompt-file", "prompts.txt", "give one of -p TEXT");
    rule("cache", "unknown", "unknown");
    rule("overlap", "2", "has no effect");
    rule("keep-keys", "perhaps", "auto, yes or no");
    rule("kv-dir", "", "needs a folder");
    rule("history-dir", "", "needs a folder");
    rule("label", "mine", "needs --analyze");
    rule("steps", "1000,x", "numbers like");
    tt_settings_free(&s);
    return test_end();
}
