/* generate_policy.c: the cache policy from the options of `tether generate`.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Order   the policy's own defaults, then the preset, then explicit options.
 * Next    src/cache/policy.c */
#include <stdio.h>
#include <string.h>

#include "cli/generate.h"

static const char *const me = "generate";

/* "a, b and c" of every name. */
static void list_names(char *buf, size_t n, const char *(*name)(int))
{
    size_t at = 0;
    buf[0] = 0;
    for (int i = 0; name(i) && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%s",
                               i == 0 ? "" : name(i + 1) ? ", " : " and ",
                               name(i));
}

static const char *policy_name(int i)
{
    const tt_policy_class *c = tt_policy_at(i);
    return c ? c->name : NULL;
}

static const char *preset_name(int i)
{
    const tt_policy_preset *p = tt_policy_preset_at(i);
    return p ? p->name : NULL;
}

/* A word that must be one of two. */
static int check_word(const char *option, const char *word, const char *a,
                      const char *b)
{
    if (!strcmp(word, a) || !strcmp(word, b)) return -1;
    return opt_usage(me, "--%s is %s or %s, but `%s` was given", option, a, b,
                     word);
}

/* NULL and "0" are no; left out ("") and "1" are yes. */
static int check_switch(const char *option, const char *text)
{
    if (!text || !*text) return -1;
    return check_word(option, text, "0", "1");
}

static bool is_on(const char *text)
{
    return text && strcmp(text, "0");
}

/* ---- settings of some policies only -------------------------------------- */

/* Options that the other policies do not read. */
static const struct { const char *option, *policies[9]; } belongs[] = {
    {"sink", {"tether", "fifo", "infinity", "memrope", "deep-sink",
              "deep-forcing", "causvid", "causvid-rolling"}},
    {"recent", {"tether", "deep-forcing"}},
    {"memory", {"tether"}}, {"alpha", {"tether"}}, {"tau", {"tether"}},
    {"score-temperature", {"tether"}}, {"pool", {"tether"}},
    {"preset", {"tether"}},
    {"cut-at", {"infinity"}}, {"raw-slot0", {"infinity"}},
    {"memrope-method", {"memrope"}}, {"alpha-long", {"memrope"}},
    {"alpha-short", {"memrope"}}, {"adaptive", {"memrope"}},
    {"compress-to", {"deep-forcing"}}, {"max-reuse", {"deep-forcing"}},
    {"fusion", {"deep-forcing"}}, {"unify", {"deep-forcing"}},
    {"overlap", {"causvid"}}, {"restart", {"causvid"}},
};

/* "a, b and c" of a list that ends with NULL. */
static void list_policies(char *buf, size_t n, const char *const *policy)
{
    size_t at = 0;
    for (int i = 0; policy[i] && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%s",
                               i == 0 ? "" : policy[i + 1] ? ", " : " and ",
                               policy[i]);
}

/* An option without effect is a mistake: -1, or exit status 2. */
static int check_belongs(const generate *g, const opt_result *given)
{
    char names[256];
    for (size_t i = 0; i < sizeof belongs / sizeof belongs[0]; i++) {
        const char *const *policy = belongs[i].policies;
        if (!opt_given(given, belongs[i].option)) continue;
        while (*policy && strcmp(*policy, g->cache)) policy++;
        if (*policy) continue;
        list_policies(names, sizeof names, belongs[i].policies);
        return opt_usage(me, "--%s has no effect with --cache %s; it is a "
                         "setting of %s", belongs[i].option, g->cache, names);
    }
    return -1;
}

/* ---- the words of options ------------------------------------------------ */

int generate_check_cache(const generate *g, const opt_result *given)
{
    char names[256];
    const char *known[32];
    int n = 0;
    while (n < 32 && policy_name(n)) known[n] = policy_name(n), n++;
    if (!tt_policy_find(g->cache)) {
        const char *near = opt_nearest(g->cache, known, n);
        list_names(names, sizeof names, policy_name);
        return opt_usage(me, "unknown policy --cache %s%s%s%s; there are %s",
                         g->cache, near ? "; did you mean " : "",
                         near ? near : "", near ? "?" : "", names);
    }
    int status = check_word("cut-rule", g->cut_rule, "official", "readme");
    if (status < 0)
        status = check_word("memrope-method", g->memrope_method, "ema",
                            "eviction");
    if (status < 0) status = check_word("fusion", g->fusion, "sum", "max");
    if (status < 0) status = check_word("restart", g->restart, "vae", "latent");
    if (status < 0) status = check_switch("adaptive", g->adaptive);
    if (status < 0) status = check_switch("unify", g->unify);
    if (status < 0) status = check_belongs(g, given);
    return status;
}

static int apply_preset(const generate *g, tt_policy_options *p)
{
    char names[256];
    if (!strcmp(g->cache, "tether") && tt_policy_apply_preset(p, g->preset))
        return -1;
    tt_policy_options any = *p;
    if (!tt_policy_apply_preset(&any, g->preset)) {
        list_names(names, sizeof names, preset_name);
        return opt_usage(me, "unknown --preset %s; there are %s", g->preset,
                         names);
    }
    return -1;
}

/* Explicit options win. */
static void apply_given(const generate *g, const opt_result *given,
                        tt_policy_options *p)
{
    const struct { const char *name; int64_t *to, from; } whole[] = {
        {"budget", &p->K, g->budget}, {"sink", &p->S, g->sink},
        {"recent", &p->R, g->recent}, {"memory", &p->M, g->memory},
        {"cut-at", &p->cut_at, g->cut_at},
        {"compress-to", &p->compress_to, g->compress_to},
        {"max-reuse", &p->max_reuse, g->max_reuse}};
    const struct { const char *name; double *to, from; } real[] = {
        {"alpha", &p->alpha, g->alpha}, {"tau", &p->tau, g->tau},
        {"score-temperature", &p->temperature, g->temperature},
        {"alpha-long", &p->alpha_long, g->alpha_long},
        {"alpha-short", &p->alpha_short, g->alpha_short}};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (opt_given(given, whole[i].name)) *whole[i].to = whole[i].from;
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        if (opt_given(given, real[i].name)) *real[i].to = real[i].from;
    if (g->pool)
        p->pool = !strcmp(g->pool, "frame") ? TT_POOL_FRAME : TT_POOL_CHUNK;
    p->method = !strcmp(g->memrope_method, "eviction") ? TT_MEMROPE_EVICTION
                                                       : TT_MEMROPE_EMA;
    p->fusion = !strcmp(g->fusion, "max") ? TT_FUSION_MAX : TT_FUSION_SUM;
    p->adaptive = is_on(g->adaptive);
    p->unify = is_on(g->unify);
    p->raw_slot0 = g->raw_slot0;
    p->context_noise = g->context_noise;
}

/* The settings say what is meant: that is what a record shows. */
static void write_back(generate *g, const tt_policy_options *p)
{
    g->budget = p->K;
    g->sink = p->S;
    g->recent = p->R;
    g->memory = p->M;
    if (p->M == -1 && !strcmp(g->cache, "tether")) /* what it resolves to */
        g->memory = p->K - p->S - p->R;
    g->alpha = p->alpha;
    g->tau = p->tau;
    g->temperature = p->temperature;
    g->pool = p->pool == TT_POOL_FRAME ? "frame" : "chunk";
    g->cut_at = p->cut_at;
    g->alpha_long = p->alpha_long;
    g->alpha_short = p->alpha_short;
    g->compress_to = p->compress_to;
    g->max_reuse = p->max_reuse;
    g->adaptive = p->adaptive ? "1" : "0";
    g->unify = p->unify ? "1" : "0";
}

int generate_fill_policy(generate *g, const opt_result *given,
                         tt_policy_options *p)
{
    int status = g->pool ? check_word("pool", g->pool, "chunk", "frame") : -1;
    *p = tt_policy_defaults(g->cache);
    /* The cache must fill exactly: 1 + 3 i frames. */
    if (!strcmp(g->cache, "tether") && g->independent_first_frame) p->K = 22;
    if (status < 0) status = apply_preset(g, p);
    if (status >= 0) return status;
    apply_given(g, given, p);
    write_back(g, p);
    return -1;
}
