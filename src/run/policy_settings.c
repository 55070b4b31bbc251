/* policy_settings.c: the cache policy from the settings of a run.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Order   the policy's own defaults, then the preset, then the knobs of
 *         --cache NAME:KNOB=VALUE, then explicit options.
 * Holds   nothing here names a knob: rows, texts and values come from the
 *         tables of the policies.
 * Next    src/cache/policy.c */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "run/parts.h"

/* The i-th knob by name, all policies together; NULL past the end. */
static const tt_knob *knob_at(int i)
{
    for (int c = 0, n = 0; tt_policy_at(c); c++)
        for (const tt_knob *k = tt_policy_at(c)->knobs; k && k->name; k++) {
            bool before = false;
            for (int b = 0; b < c && !before; b++)
                before = tt_policy_knob(tt_policy_at(b), k->name) != NULL;
            if (!before && n++ == i) return k;
        }
    return NULL;
}

/* ---- help ---------------------------------------------------------------- */

/* Texts of the help, made once; the table of options keeps pointers. */
static struct { char text[16384]; size_t used; } pages;

static void page_add(const char *fmt, ...) TT_PRINTF(1, 2);
static void page_add(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(pages.text + pages.used,
                            sizeof pages.text - pages.used, fmt, ap);
    va_end(ap);
    TT_ASSERT(n >= 0 && (size_t)n < sizeof pages.text - pages.used);
    pages.used += (size_t)n;
}

static const char *page_begin(void)
{
    return pages.text + (pages.used += pages.used > 0);
}

const char *settings_policy_help(const char *text)
{
    const char *page = page_begin();
    page_add("%s", text);
    for (int i = 0; tt_policy_at(i); i++)
        page_add("\n%s: %s", tt_policy_at(i)->name, tt_policy_at(i)->summary);
    return page;
}

/* Models of other groups with Wan's 1.3B transformer, as their configurations
 * run them; all warped, with shift 5. Sources: thu-ml/Causal-Forcing
 * configs/causal_forcing_dmd_*.yaml, NVlabs/LongLive v1.0
 * configs/longlive_inference.yaml, JaydenLyh/Reward-Forcing
 * configs/reward_forcing.yaml. */
static const struct model_preset {
    const char *name, *summary, *cache;
    int64_t chunk;
    const char *steps, *first_steps;
} models[] = {
    {"causal-forcing", "Causal-Forcing, chunk-wise", "full", 3,
     "1000,750,500,250", NULL},
    {"causal-forcing-frame", "Causal-Forcing, frame-wise", "full", 1,
     "1000,750,500,250", NULL},
    {"causal-forcing-2step", "Causal-Forcing++, frame-wise in 2 steps, 4 in "
     "the first frame", "full", 1, "1000,500", "1000,750,500,250"},
    {"causal-forcing-1step", "Causal-Forcing++, frame-wise in 1 step, 4 in "
     "the first frame", "full", 1, "1000", "1000,750,500,250"},
    {"longlive", "LongLive 1.0; its LoRA goes with --lora", "longlive", 3,
     "1000,750,500,250", NULL},
    {"reward-forcing", "Reward-Forcing", "reward", 3, "1000,750,500,250",
     NULL}};
enum { MODELS = sizeof models / sizeof *models };

tt_status settings_fill_model(tt_ctx *ctx, tt_settings *g)
{
    const struct model_preset *m = models;
    while (g->preset && m < models + MODELS && strcmp(m->name, g->preset)) m++;
    if (!g->preset || m == models + MODELS) return ctx->status;
    const size_t n = strlen(m->cache);
    if (!tt_settings_was_given(g, "cache")) g->cache = m->cache;
    if (strncmp(g->cache, m->cache, n) || (g->cache[n] && g->cache[n] != ':'))
        return tt_fail(ctx, TT_EINVAL, "--preset %s goes with --cache %s, not "
                       "%s", m->name, m->cache, g->cache);
    if (!tt_settings_was_given(g, "chunk")) g->chunk = m->chunk;
    if (!tt_settings_was_given(g, "first-steps")
        && !tt_settings_was_given(g, "steps")) g->first_steps = m->first_steps;
    if (!tt_settings_was_given(g, "steps")) g->steps = m->steps;
    g->of_model = true;
    return ctx->status;
}

const char *settings_preset_help(const char *text)
{
    const char *page = page_begin();
    page_add("%s", text);
    for (int i = 0; i < MODELS; i++)
        page_add("\n%s: %s (%s, chunk=%lld, steps=%s)", models[i].name,
                 models[i].summary, models[i].cache,
                 (long long)models[i].chunk, models[i].steps);
    for (int i = 0; tt_policy_at(i); i++) {
        const tt_policy_preset *p = tt_policy_at(i)->presets;
        for (; p && p->name; p++)
            page_add("\n%s: %s (%s)", p->name, p->summary, p->settings);
    }
    return page;
}

/* "tether: strength of ... (default 0.35)"; where several policies have it,
 * "deep-forcing, tether: ... (default 4; tether 3)". */
static const char *knob_help(const char *name)
{
    const char *page = page_begin();
    const tt_knob *first = NULL, *k;
    char usual[64], other[64];
    for (int i = 0; tt_policy_at(i); i++)
        if ((k = tt_policy_knob(tt_policy_at(i), name))) {
            page_add("%s%s", first ? ", " : "", tt_policy_at(i)->name);
            if (!first) first = k;
        }
    page_add(": %s (", first->help);
    bool said = false;
    for (int i = 0; tt_policy_at(i); i++) {
        const tt_policy_options o = tt_policy_start(tt_policy_at(i));
        if (!(k = tt_policy_knob(tt_policy_at(i), name))) continue;
        tt_policy_show(other, sizeof other, &o, k);
        if (!said)
            page_add("default %s", other);
        else if (strcmp(usual, other))
            page_add("; %s %s", tt_policy_at(i)->name, other);
        if (!said) memcpy(usual, other, sizeof usual);
        said = true;
    }
    page_add(")");
    return page;
}

/* "chunk|frame" */
static const char *knob_words(const char *const *word)
{
    const char *page = page_begin();
    for (int i = 0; word[i]; i++) page_add("%s%s", i ? "|" : "", word[i]);
    return page;
}

int settings_knob_rows(tt_setting *rows, int capacity)
{
    static const struct { tt_setting_kind kind; const char *arg; } as[] = {
        [TT_KNOB_COUNT] = {TT_SETTING_INT, "N"},
        [TT_KNOB_REAL] = {TT_SETTING_REAL, "X"},
        [TT_KNOB_SWITCH] = {TT_SETTING_MAYBE, "0|1"},
        [TT_KNOB_WORD] = {TT_SETTING_TEXT, "NAME"}};
    int n = 0;
    for (const tt_knob *k; (k = knob_at(n)); n++) {
        TT_ASSERT(n < capacity && n < TT_RUN_KNOBS);
        rows[n] = (tt_setting){
            as[k->type].kind, k->name, 0,
            offsetof(tt_settings, knob) + (size_t)n * sizeof(tt_knob_setting),
            k->words ? knob_words(k->words) : as[k->type].arg,
            knob_help(k->name)};
    }
    return n;
}

/* ---- values -------------------------------------------------------------- */

/* An option without effect is a mistake; `has` says whose setting it is. */
static void no_effect(tt_ctx *ctx, const char *option, const char *policy,
                      bool (*has)(const tt_policy_class *, const char *))
{
    char names[256];
    int n = 0, said = 0;
    for (int i = 0; tt_policy_at(i); i++) n += has(tt_policy_at(i), option);
    size_t at = 0;
    for (int i = 0; tt_policy_at(i) && at < sizeof names; i++)
        if (has(tt_policy_at(i), option) && ++said)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s",
                                   said == 1 ? "" : said == n ? " and " : ", ",
                                   tt_policy_at(i)->name);
    tt_fail(ctx, TT_EINVAL, "--%s has no effect with --cache %s; it is a "
            "setting of %s", option, policy, names);
}

static bool has_knob(const tt_policy_class *c, const char *name)
{
    return tt_policy_knob(c, name) != NULL;
}

static bool has_presets(const tt_policy_class *c, const char *name)
{
    (void)name;
    return c->presets != NULL;
}

static bool restarts(const tt_policy_class *c, const char *name)
{
    (void)name;
    return (c->flags & TT_RESTARTS) != 0;
}

static void check_belongs(tt_ctx *ctx, const tt_settings *g,
                          const tt_policy_class *c)
{
    const tt_settings_given *given = &g->given;
    static const char *const clips[] = {"overlap", "restart"};
    if (tt_settings_was_given(g, "preset") && !g->of_model
        && !has_presets(c, NULL))
        no_effect(ctx, "preset", c->name, has_presets);
    for (int i = 0; i < 2 && !ctx->status; i++)
        if (tt_settings_was_given(g, clips[i]) && !restarts(c, NULL))
            no_effect(ctx, clips[i], c->name, restarts);
    for (int i = 0; i < given->n && !ctx->status; i++)
        for (int n = 0; knob_at(n) && !ctx->status; n++)
            if (!strcmp(given->name[i], knob_at(n)->name)
                && !has_knob(c, given->name[i]))
                no_effect(ctx, given->name[i], c->name, has_knob);
}

/* Explicit options win. */
static void apply_given(tt_ctx *ctx, const tt_settings_given *given,
                        tt_policy_options *p)
{
    for (int i = 0; i < given->n && !ctx->status; i++)
        for (int n = 0; knob_at(n); n++)
            if (!strcmp(given->name[i], knob_at(n)->name))
                tt_policy_set(ctx, p, given->name[i], given->value[i]);
}

/* The settings say what is meant: that is what a record shows. Knobs of other
 * policies keep their usual values. */
static void policy_settings_write_back(tt_settings *g,
                                       const tt_policy_options *p)
{
    const tt_knob *any;
    for (int n = 0; (any = knob_at(n)); n++) {
        double value = tt_policy_get(p, any->name);
        if (value != value) value = any->usual;
        tt_knob_setting *to = &g->knob[n];
        if (any->type == TT_KNOB_REAL) to->x = value;
        else if (any->type == TT_KNOB_COUNT) to->n = (int64_t)value;
        else if (any->type == TT_KNOB_WORD) to->text = any->words[(int)value];
        else to->text = value != 0 ? "1" : "0";
        /* what it resolves to */
        if (any->at == TT_AT(M) && p->M == -1)
            to->n = (int64_t)((uint64_t)p->K - (uint64_t)p->S
                              - (uint64_t)p->R); /* checked later */
    }
    g->cache = p->name;
}

/* Knobs of --cache win, wherever --preset stands. */
static void apply_preset(tt_ctx *ctx, const tt_settings *g,
                         tt_policy_options *p)
{
    const size_t n = strlen(g->cache) + strlen(g->preset) + 16;
    if (tt_policy_apply_preset(ctx, p, g->preset)) return;
    char *text = tt_alloc(ctx, &ctx->scratch, (int64_t)n, 1, "a policy");
    if (!text) return;
    snprintf(text, n, "%s:preset=%s", g->cache, g->preset);
    tt_policy_parse(ctx, p, text);
}

tt_status settings_fill_policy(tt_ctx *ctx, tt_settings *g,
                               tt_policy_options *p)
{
    TT_TRY(tt_policy_parse(ctx, p, g->cache));
    check_belongs(ctx, g, p->cls);
    if (g->preset && !g->of_model) apply_preset(ctx, g, p);
    /* The cache must fill exactly: 1 + 3 i frames. */
    const tt_knob *budget = tt_policy_knob(p->cls, "budget");
    if ((p->cls->flags & TT_FILLS_EXACTLY) && g->independent_first_frame
        && (double)p->K == budget->usual && !strstr(g->cache, ":budget="))
        p->K++;
    apply_given(ctx, &g->given, p);
    TT_TRY(ctx->status);
    if (!g->preset) g->preset = p->cls->presets ? "official" : "";
    policy_settings_write_back(g, p);
    return TT_OK;
}
