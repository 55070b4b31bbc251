/* knobs.c: reading, writing and checking the settings of a policy.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   every policy has a table of its knobs (tt_knob). Nothing outside the
 *         policy's own file names one of them: texts, records, saved states
 *         and the command line all go through these functions.
 * Next    policies/fifo.c */
#include "cache/classes.h"
#include "core/nearest.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values -------------------------------------------------------------- */

static tt_knob_value *value_of(tt_policy_options *o, const tt_knob *k)
{
    return (tt_knob_value *)(void *)((char *)o + k->at);
}

static tt_knob_value value_in(const tt_policy_options *o, const tt_knob *k)
{
    tt_knob_value v;
    memcpy(&v, (const char *)o + k->at, sizeof v);
    return v;
}

static void knobs_store(tt_policy_options *o, const tt_knob *k, double value)
{
    if (k->type == TT_KNOB_REAL) value_of(o, k)->x = value;
    else value_of(o, k)->n = (int64_t)value;
}

static double knobs_load(const tt_policy_options *o, const tt_knob *k)
{
    const tt_knob_value v = value_in(o, k);
    return k->type == TT_KNOB_REAL ? v.x : (double)v.n;
}

const tt_policy_class *tt_policy_class_of(const tt_policy_options *o)
{
    return o->cls ? o->cls : tt_policy_find(o->name);
}

const tt_knob *tt_policy_knob(const tt_policy_class *cls, const char *name)
{
    for (const tt_knob *k = cls ? cls->knobs : NULL; k && k->name; k++)
        if (!strcmp(k->name, name)) return k;
    return NULL;
}

tt_policy_options tt_policy_start(const tt_policy_class *cls)
{
    tt_policy_options o = {.name = cls->name, .cls = cls, .K = -1};
    for (const tt_knob *k = cls->knobs; k && k->name; k++)
        knobs_store(&o, k, k->usual);
    return o;
}

tt_policy_options tt_policy_defaults(const char *name)
{
    const tt_policy_class *cls = tt_policy_find(name);
    return cls ? tt_policy_start(cls)
               : (tt_policy_options){.name = name, .K = -1};
}

double tt_policy_get(const tt_policy_options *o, const char *knob)
{
    const tt_knob *k = tt_policy_knob(tt_policy_class_of(o), knob);
    return k ? knobs_load(o, k) : (double)NAN;
}

void tt_policy_put(tt_policy_options *o, const char *knob, double value)
{
    const tt_knob *k = tt_policy_knob(tt_policy_class_of(o), knob);
    TT_ASSERT(k != NULL);
    knobs_store(o, k, value);
}

/* ---- sentences ----------------------------------------------------------- */

/* A sentence that grows; what does not fit is cut. */
typedef struct sentence {
    char text[640];
    size_t used;
} sentence;

static void knobs_say(sentence *s, const char *fmt, ...) TT_PRINTF(2, 3);
static void knobs_say(sentence *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const size_t left = sizeof s->text - s->used;
    const int n = vsnprintf(s->text + s->used, left, fmt, ap);
    va_end(ap);
    if (n > 0) s->used += (size_t)n < left ? (size_t)n : left - 1;
}

/* "a", "a and b", "a, b and c": word i of n. */
static void say_item(sentence *s, int i, int n, const char *word)
{
    knobs_say(s, "%s%s", i == 0 ? "" : i == n - 1 ? " and " : ", ", word);
}

static void say_knobs(sentence *s, const tt_policy_class *cls)
{
    int n = 0;
    while (cls->knobs && cls->knobs[n].name) n++;
    if (n == 0) knobs_say(s, "no knobs");
    for (int i = 0; i < n; i++) say_item(s, i, n, cls->knobs[i].name);
}

static void say_policies(sentence *s)
{
    int n = 0;
    while (tt_policy_at(n)) n++;
    for (int i = 0; i < n; i++) say_item(s, i, n, tt_policy_at(i)->name);
}

static void say_presets(sentence *s, const tt_policy_preset *preset)
{
    int n = 0;
    while (preset[n].name) n++;
    for (int i = 0; i < n; i++) say_item(s, i, n, preset[i].name);
}

/* The policies that do have a knob of that name. */
static void say_owners(sentence *s, const char *knob)
{
    int n = 0, at = 0;
    for (int i = 0; tt_policy_at(i); i++)
        n += tt_policy_knob(tt_policy_at(i), knob) != NULL;
    if (n > 0) knobs_say(s, "; %s belongs to ", knob);
    for (int i = 0; tt_policy_at(i); i++)
        if (tt_policy_knob(tt_policy_at(i), knob))
            say_item(s, at++, n, tt_policy_at(i)->name);
}

static tt_status no_such_knob(tt_ctx *ctx, const tt_policy_class *cls,
                              const char *knob)
{
    sentence s = {.used = 0};
    say_knobs(&s, cls);
    say_owners(&s, knob);
    return tt_fail(ctx, TT_EINVAL, "the cache policy %s has no knob \"%s\": it "
                   "has %s", cls->name, knob, s.text);
}

static tt_status no_such_policy(tt_ctx *ctx, const char *name)
{
    enum { MOST = 32 };
    const char *names[MOST], *word = name ? name : "";
    char hint[NEAREST_HINT];
    sentence s = {.used = 0};
    int n = 0;
    for (; n < MOST && tt_policy_at(n); n++) names[n] = tt_policy_at(n)->name;
    say_policies(&s);
    return tt_fail(ctx, TT_EINVAL, "there is no cache policy \"%s\"%s; there "
                   "are %s", word, nearest_hint(hint, word, names, n), s.text);
}

/* ---- text to value ------------------------------------------------------- */

static bool read_count(int64_t *out, const char *text)
{
    char *end;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno) return false;
    *out = v;
    return true;
}

static bool read_real(double *out, const char *text)
{
    char *end;
    const double v = strtod(text, &end);
    if (end == text || *end || !isfinite(v)) return false;
    *out = v;
    return true;
}

static bool read_switch(int64_t *out, const char *text)
{
    if (!text || !*text) text = "1";
    *out = *text == '1';
    return (*text == '0' || *text == '1') && !text[1];
}

static bool read_word(int64_t *out, const tt_knob *k, const char *text)
{
    for (*out = 0; k->words[*out]; (*out)++)
        if (!strcmp(k->words[*out], text)) return true;
    return false;
}

static bool knobs_read_value(tt_knob_value *v, const tt_knob *k,
                             const char *text)
{
    if (k->type == TT_KNOB_SWITCH) return read_switch(&v->n, text);
    if (!text) return false;
    if (k->type == TT_KNOB_REAL) return read_real(&v->x, text);
    if (k->type == TT_KNOB_WORD) return read_word(&v->n, k, text);
    return read_count(&v->n, text);
}

static tt_status not_a_value(tt_ctx *ctx, const tt_policy_class *cls,
                             const tt_knob *k, const char *text)
{
    sentence s = {.used = 0};
    if (k->type == TT_KNOB_COUNT) knobs_say(&s, "a whole number");
    if (k->type == TT_KNOB_REAL) knobs_say(&s, "a number");
    if (k->type == TT_KNOB_SWITCH) knobs_say(&s, "0 or 1");
    for (int i = 0; k->type == TT_KNOB_WORD && k->words[i]; i++)
        knobs_say(&s, "%s%s", i ? " or " : "", k->words[i]);
    return tt_fail(ctx, TT_EINVAL, "%s: %s is %s, but `%s` was given",
                   cls->name, k->name, s.text, text ? text : "");
}

/* `!(a && b)` also catches NaN. */
static tt_status check_limits(tt_ctx *ctx, const tt_policy_class *cls,
                              const tt_policy_options *o, const tt_knob *k)
{
    const double v = knobs_load(o, k);
    if (v >= k->least && v <= k->most) return TT_OK;
    if (isinf(k->most))
        return tt_fail(ctx, TT_EINVAL, "%s: %s = %g must be at least %g",
                       cls->name, k->name, v, k->least);
    return tt_fail(ctx, TT_EINVAL, "%s: %s = %g must lie in %g..%g", cls->name,
                   k->name, v, k->least, k->most);
}

tt_status tt_policy_set(tt_ctx *ctx, tt_policy_options *o, const char *knob,
                        const char *text)
{
    const tt_policy_class *cls = tt_policy_class_of(o);
    TT_TRY(ctx->status);
    if (!cls) return no_such_policy(ctx, o->name);
    const tt_knob *k = tt_policy_knob(cls, knob);
    if (!k) return no_such_knob(ctx, cls, knob);
    tt_knob_value v = {.n = 0};
    if (!knobs_read_value(&v, k, text)) return not_a_value(ctx, cls, k, text);
    memcpy((char *)o + k->at, &v, sizeof v);
    return check_limits(ctx, cls, o, k);
}

/* ---- "tether:tau=0.6:unify" ---------------------------------------------- */

/* The next piece up to a colon, cut off; NULL when there is none. */
static char *next_piece(char **rest)
{
    char *piece = *rest, *colon = piece ? strchr(piece, ':') : NULL;
    if (colon) *colon = 0;
    *rest = colon ? colon + 1 : NULL;
    return piece;
}

/* Presets (first) or all other knobs of "a=1:b=2"; changes `text`. */
static void apply_pieces(tt_ctx *ctx, tt_policy_options *o, char *text,
                         bool presets)
{
    char *piece;
    while (!ctx->status && (piece = next_piece(&text))) {
        char *value = strchr(piece, '=');
        if (value) *value++ = 0;
        const bool preset = !strcmp(piece, "preset");
        if (preset && presets)
            tt_policy_apply_preset(ctx, o, value ? value : "");
        if (!preset && !presets) tt_policy_set(ctx, o, piece, value);
    }
}

static tt_status apply_settings(tt_ctx *ctx, tt_policy_options *o,
                                const char *text)
{
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    for (int presets = 1; presets >= 0 && !ctx->status; presets--) {
        char *copy = tt_strdup(ctx, &ctx->scratch, text);
        if (copy) apply_pieces(ctx, o, copy, presets);
    }
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

tt_status tt_policy_parse(tt_ctx *ctx, tt_policy_options *o, const char *text)
{
    char name[64];
    const char *colon = strchr(text, ':');
    const size_t n = colon ? (size_t)(colon - text) : strlen(text);
    TT_TRY(ctx->status);
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : 63), text);
    const tt_policy_class *cls = tt_policy_find(name);
    if (!cls) return no_such_policy(ctx, name);
    *o = tt_policy_start(cls);
    return colon ? apply_settings(ctx, o, colon + 1) : TT_OK;
}

tt_status tt_policy_apply_preset(tt_ctx *ctx, tt_policy_options *o,
                                 const char *name)
{
    const tt_policy_class *cls = tt_policy_class_of(o);
    sentence s = {.used = 0};
    TT_TRY(ctx->status);
    if (!cls) return no_such_policy(ctx, o->name);
    if (!cls->presets)
        return tt_fail(ctx, TT_EINVAL, "the cache policy %s has no presets; "
                       "they belong to tether", cls->name);
    for (const tt_policy_preset *p = cls->presets; p->name; p++)
        if (!strcmp(p->name, name)) return apply_settings(ctx, o, p->settings);
    enum { MOST = 32 };
    const char *names[MOST];
    char hint[NEAREST_HINT];
    int n = 0;
    for (; n < MOST && cls->presets[n].name; n++)
        names[n] = cls->presets[n].name;
    say_presets(&s, cls->presets);
    return tt_fail(ctx, TT_EINVAL, "%s has no preset \"%s\"%s; there are %s",
                   cls->name, name, nearest_hint(hint, name, names, n),
                   s.text);
}

/* ---- value to text ------------------------------------------------------- */

int tt_policy_show(char *buf, size_t n, const tt_policy_options *o,
                   const tt_knob *k)
{
    const tt_knob_value v = value_in(o, k);
    if (k->type == TT_KNOB_REAL) return snprintf(buf, n, "%.15g", v.x);
    if (k->type == TT_KNOB_WORD) return snprintf(buf, n, "%s", k->words[v.n]);
    return snprintf(buf, n, "%" PRId64, v.n);
}

int tt_policy_describe(char *buf, size_t n, const tt_policy_options *o)
{
    const tt_policy_class *cls = tt_policy_class_of(o);
    char value[64];
    size_t used = (size_t)snprintf(buf, n, "cache=%s\n",
                                   o->name ? o->name : "");
    for (const tt_knob *k = cls ? cls->knobs : NULL; k && k->name; k++) {
        tt_policy_show(value, sizeof value, o, k);
        used += (size_t)snprintf(used < n ? buf + used : NULL,
                                 used < n ? n - used : 0, "%s=%s\n", k->name,
                                 value);
    }
    return (int)used;
}

/* ---- checks -------------------------------------------------------------- */

tt_status tt_policy_check(tt_ctx *ctx, tt_policy_options *o,
                          const tt_geometry *geo)
{
    const tt_policy_class *cls = tt_policy_class_of(o);
    TT_TRY(ctx->status);
    if (!cls) return no_such_policy(ctx, o->name);
    for (const tt_knob *k = cls->knobs; k && k->name; k++)
        TT_TRY(check_limits(ctx, cls, o, k));
    return cls->check ? cls->check(ctx, o, geo) : TT_OK;
}
