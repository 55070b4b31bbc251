/* score_rules.c: VBench's normalisation and weights.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Source  VBench scripts/constant.py and cal_final_score.py: published range
 *         of every dimension; quality = weighted mean of seven, semantic =
 *         plain mean of nine, total = (4 quality + semantic) / 5. */
#include <math.h>
#include <string.h>

#include "analyze/measure.h"

static const score_rule rules[SCORE_DIMENSIONS] = {
    {"subject_consistency", 0.1462, 1, 1},
    {"background_consistency", 0.2615, 1, 1},
    {"temporal_flickering", 0.6293, 1, 1},
    {"motion_smoothness", 0.706, 0.9975, 1},
    {"dynamic_degree", 0, 1, 0.5},
    {"aesthetic_quality", 0, 1, 1},
    {"imaging_quality", 0, 1, 1},
    {"object_class", 0, 1, 0},
    {"multiple_objects", 0, 1, 0},
    {"human_action", 0, 1, 0},
    {"color", 0, 1, 0},
    {"spatial_relationship", 0, 1, 0},
    {"scene", 0, 0.8222, 0},
    {"appearance_style", 0.0009, 0.2855, 0},
    {"temporal_style", 0, 0.364, 0},
    {"overall_consistency", 0, 0.364, 0},
};

const score_rule *score_rule_at(int i)
{
    return &rules[i];
}

static char plain(char c)
{
    return c == ' ' || c == '-' ? '_'
         : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int score_find(const char *name)
{
    for (int i = 0; i < SCORE_DIMENSIONS; i++) {
        const char *a = rules[i].name, *b = name;
        while (*a && plain(*b) == *a) a++, b++;
        if (!*a && !*b) return i;
    }
    return -1;
}

double score_total(double quality, double semantic)
{
    return (4 * quality + semantic) / 5;
}

score_result score_combine(const double *raw)
{
    score_result out = {.quality = 0};
    double weight = 0;
    int semantic = 0;
    for (int i = 0; i < SCORE_DIMENSIONS; i++) {
        const score_rule *r = &rules[i];
        if (isfinite(raw[i]))
            out.normal[i] = (raw[i] - r->lo) / (r->hi - r->lo);
        out.quality += r->weight * out.normal[i];
        weight += r->weight;
        if (r->weight > 0) continue;
        out.semantic += out.normal[i];
        semantic++;
    }
    out.quality /= weight;
    out.semantic /= semantic;
    out.total = score_total(out.quality, out.semantic);
    return out;
}
