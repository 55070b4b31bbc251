/* presets.c: TetherCache with parts switched off, by name.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   TetherCache, ablations and retention figure.
 * Paper: tau 0.6, admission frame by frame. Code: tau 0.35, whole chunks. We:
 * `official` is the code, `paper` the paper; the other presets change one
 * thing of the official settings. */
#include "cache/classes.h"

#include <string.h>

typedef struct preset {
    tt_policy_preset about;
    void (*apply)(tt_policy_options *o);
} preset;

static void official(tt_policy_options *o)
{
    o->pool = TT_POOL_CHUNK;
    o->tau = 0.35;
}

static void paper(tt_policy_options *o)
{
    o->pool = TT_POOL_FRAME;
    o->tau = 0.6;
}

static void grab_only(tt_policy_options *o)
{
    o->tau = 0;
}

static void attention_only(tt_policy_options *o)
{
    o->alpha = 0;
}

static void recency_only(tt_policy_options *o)
{
    o->S = o->M = 0;
    o->R = -1;
}

static void sink_recent(tt_policy_options *o)
{
    o->M = 0;
    o->R = -1;
}

static void no_memory(tt_policy_options *o)
{
    o->M = 0;
    o->K = o->S + o->R;
}

static const preset table[] = {
    { { "official", "chunks compete as a whole, tau 0.35" }, official },
    { { "paper", "frames compete one by one, tau 0.6" }, paper },
    { { "grab-only", "selection without the edit (tau 0)" }, grab_only },
    { { "attention-only", "selection without diversity (alpha 0)" },
      attention_only },
    { { "recency-only", "no sink, no memory: the last K frames" },
      recency_only },
    { { "sink-recent", "no memory, recent frames take its room" },
      sink_recent },
    { { "no-memory", "no memory, and a budget of S + R only" }, no_memory },
};
enum { PRESETS = sizeof table / sizeof table[0] };

const tt_policy_preset *tt_policy_preset_at(int i)
{
    return i >= 0 && i < PRESETS ? &table[i].about : NULL;
}

bool tt_policy_apply_preset(tt_policy_options *o, const char *name)
{
    for (int i = 0; i < PRESETS; i++) {
        if (strcmp(table[i].about.name, name)) continue;
        table[i].apply(o);
        return true;
    }
    return false;
}
