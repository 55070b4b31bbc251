/* judged.h: rounds of GRAB for one place less, by the policy's own functions
 * and by tt_judge of whatever device the context has.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TT_TESTS_CACHE_JUDGED_H
#define TT_TESTS_CACHE_JUDGED_H

#include <string.h>

#include "cache/grab.h"
#include "tests/harness.h"
#include "tether/device.h"

enum { JUDGED = 80, JUDGED_HEADS = 2, JUDGED_D = 24 };
enum { JUDGED_WIDTH = JUDGED_HEADS * JUDGED_D };

/* P candidates behind `first` rows that nobody judges. */
static const struct judged {
    const char *name;
    int64_t first, P, gap;       /* frames between two candidates             */
    enum { UNLIKE, LOW_ALIKE, ALIKE } keys; /* or two of the lowest are equal,
                                               or all                         */
    double temperature, alpha;
} judged_rounds[] = {
    {"plain", 0, 15, 3, UNLIKE, 1, 0.35},
    {"behind others", 3, 15, 3, UNLIKE, 1, 0.35},
    {"one candidate", 0, 1, 1, UNLIKE, 1, 0.35},
    {"one candidate behind others", 2, 1, 1, UNLIKE, 1, 0.35},
    {"two candidates side by side", 1, 2, 1, UNLIKE, 0.7, 0.35},
    {"candidates of one time", 2, 9, 0, UNLIKE, 1, 0.35},
    {"the lowest twice", 2, 9, 0, LOW_ALIKE, 1, 0.35},
    {"the lowest twice, no diversity", 0, 9, 2, LOW_ALIKE, 1, 0},
    {"all alike", 0, 9, 0, ALIKE, 1, 0.35},
    {"all alike, no diversity", 3, 9, 5, ALIKE, 0.01, 0},
    {"only diversity counts", 1, 12, 4, ALIKE, 1, 1e6},
    {"cold", 1, 12, 4, UNLIKE, 0.003, 2.5},
    {"colder than there is", 1, 12, 4, UNLIKE, 1e-9, 0.35},
    {"hot", 0, 12, 40, UNLIKE, 1e6, 0.05},
    {"more than threads", 5, 70, 2, UNLIKE, 0.05, 0.35},
};

/* A mean query, and rows of mean keys with something behind each. */
static inline void judged_values(const struct judged *j, double *q, double *m)
{
    const int64_t n = j->first + j->P, step = JUDGED_WIDTH + 1;
    uint32_t s = 7;
    for (int64_t i = 0; i < JUDGED_WIDTH + n * step; i++) {
        s = s * 1664525u + 1013904223u;
        *(i < JUDGED_WIDTH ? q + i : m + i - JUDGED_WIDTH) =
            (double)s / 2147483648.0 - 1;
    }
    for (int64_t c = 0; c < j->P && j->keys != UNLIKE; c++)
        for (int64_t i = 0; i < JUDGED_WIDTH; i++) {
            const bool low = j->keys == LOW_ALIKE && (c == 3 || c == 6);
            m[(j->first + c) * step + i] =
                j->keys == ALIKE ? q[i] / 2 : low ? -q[i] / 4
                                 : q[i] * (double)(1 + c) / 8;
        }
}

static inline void judged_by_grab(tt_ctx *ctx, const struct judged *j,
                                  grab_round *r, const double *q,
                                  const double *m)
{
    double margin;
    grab_begin(ctx, r, j->P, j->P - 1, 1, JUDGED_HEADS, JUDGED_D);
    for (int64_t c = 0; c < j->P; c++)
        grab_pool(r, m + (j->first + c) * (JUDGED_WIDTH + 1), 4 + c * j->gap);
    grab_importance(ctx, r, q, j->temperature);
    grab_diversity(ctx, r);
    grab_score(ctx, r, j->alpha);
    grab_select(ctx, r, &margin);
}

/* Whom the device keeps, and by which scores. */
static inline void judged_there(tt_ctx *ctx, const struct judged *j,
                                const double *q, const double *m,
                                const int32_t **list, const double **score)
{
    const int64_t n = j->first + j->P, step = JUDGED_WIDTH + 1;
    int32_t time[JUDGED] = {0};
    tt_wide *query = tt_wides(ctx, JUDGED_WIDTH), *of = tt_wides(ctx, n * step);
    tt_wide *worth = tt_wides(ctx, j->P);
    tt_index *kept = tt_indices(ctx, &ctx->scratch, n);
    tt_index *when = tt_indices(ctx, &ctx->scratch, n);
    for (int64_t c = 0; c < j->P; c++)
        time[j->first + c] = (int32_t)(4 + c * j->gap);
    tt_put_wides(ctx, query, q, JUDGED_WIDTH);
    tt_put_wides(ctx, of, m, n * step);
    tt_put_indices(ctx, when, time, n);
    tt_judge(ctx, &(tt_judge_args){
        .list = kept, .score = worth, .q = query, .m = of, .time = when,
        .first = j->first, .n = n, .c = JUDGED_WIDTH, .step = step,
        .norm = grab_norm(JUDGED_HEADS, JUDGED_D),
        .temperature = grab_temperature(j->temperature), .alpha = j->alpha});
    *list = tt_get_indices(ctx, kept, n);
    *score = tt_get_wides(ctx, worth, j->P);
}

static inline void check_judged(tt_ctx *ctx, const struct judged *j)
{
    static double q[JUDGED_WIDTH], m[JUDGED * (JUDGED_WIDTH + 1)];
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    const int32_t *list;
    const double *score;
    grab_round r;
    int64_t at = 0;
    TT_ASSERT(j->first + j->P <= JUDGED);
    judged_values(j, q, m);
    judged_by_grab(ctx, j, &r, q, m);
    judged_there(ctx, j, q, m, &list, &score);
    if (!expect_ok(ctx->status, j->name)) return;
    for (int64_t i = 0; i < j->first + j->P; i++) {
        if (i >= j->first && !r.keep[i - j->first]) continue;
        expect(list[at] == i, "judge, %s: row %lld is kept, not %lld", j->name,
               (long long)list[at], (long long)i);
        at++;
    }
    expect(!memcmp(score, r.score, (size_t)j->P * sizeof *score),
           "judge, %s: other scores than GRAB's", j->name);
    tt_arena_reset(&ctx->scratch, mark);
}

static inline void check_all_judged(tt_ctx *ctx)
{
    for (size_t i = 0; i < sizeof judged_rounds / sizeof *judged_rounds; i++)
        check_judged(ctx, &judged_rounds[i]);
}

#endif
