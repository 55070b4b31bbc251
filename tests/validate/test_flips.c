/* test_flips.c: picks of frames: what is a tie, what follows from it, and that
 * nothing is let through after it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/folder.h"
#include "validate/files/dump.h"

static tt_ctx *ctx;

/* ---- the rule ------------------------------------------------------------ */

static void expect_pick(pick wanted, const double *got, const double *want,
                        const double *score, const double *theirs,
                        const char *what)
{
    double ratio, emul[4];
    char why[192] = "";
    for (int i = 0; score && i < 4; i++) emul[i] = score[i] + 1e-9;
    const selection s = {.got = got, .want = want, .score = score,
                         .emul = score ? emul : NULL, .theirs = theirs, .P = 4};
    const pick p = selection_compare(&s, tt_arith_find("f32"), &ratio, why,
                                     sizeof why);
    expect(p == wanted, "%s: %d, %s", what, (int)p, why);
    expect((p == PICK_SAME) == !*why, "%s: a reason is given", what);
}

static void test_rule(void)
{
    const double ours[] = {1, 1, 0, 0}, next[] = {1, 0, 1, 0};
    const double far[] = {0, 1, 1, 0}, three[] = {1, 1, 1, 0};
    const double close[] = {0.9, 0.5, 0.5 - 1e-9, 0.1};
    const double moved[] = {0.9, 0.5 - 1e-9, 0.5, 0.1};
    const double low[] = {0.1, 0.5, 0.5, 0};
    const double apart[] = {0.9, 0.5, 0.4, 0.1};
    expect_pick(PICK_SAME, ours, ours, close, NULL, "the same");
    expect_pick(PICK_TIE, next, ours, close, NULL, "next to each other");
    expect_pick(PICK_TIE, next, ours, close, moved, "by their own scores too");
    expect_pick(PICK_WRONG, next, ours, close, close, "against their own");
    expect_pick(PICK_OTHER, next, ours, apart, moved, "too far apart");
    /* our margin is tiny, but it is not the one that was crossed */
    expect_pick(PICK_OTHER, far, ours, close, low, "the best was dropped");
    expect_pick(PICK_WRONG, three, ours, close, NULL, "one too many");
    expect_pick(PICK_OTHER, next, ours, NULL, NULL, "no scores");
}

/* The number of candidates comes from a file: no square of it. */
static void test_many(void)
{
    enum { MANY = 60000 };
    static double got[MANY], want[MANY], score[MANY];
    double ratio;
    char why[192] = "";
    for (int i = 0; i < MANY; i++) {
        got[i] = i >= MANY / 2;
        want[i] = i < MANY / 2;
        score[i] = 0.5;
    }
    const selection s = {.got = got, .want = want, .score = score, .P = MANY};
    const clock_t start = clock();
    expect(selection_compare(&s, tt_arith_find("f32"), &ratio, why, sizeof why)
           == PICK_TIE, "many candidates: %s", why);
    expect(clock() - start < CLOCKS_PER_SEC, "in less than a second");
}

/* ---- what a flip reaches ------------------------------------------------- */

static void test_reach(void)
{
    static const struct {
        const char *name;
        bool reached, injected;
    } c[] = {
        {"context", false, false},
        {"block.0/cross_attn.k", false, false},
        {"chunk.2/step.4/block.5/self_attn", false, false},
        {"chunk.3/step.4/block.2/admit.1/grab.keep", true, true},
        {"chunk.3/step.4/block.2/admit.1/tame.mean_k", true, true},
        {"chunk.3/step.4/block.2/admit.2/grab.candidates", true, true},
        {"chunk.3/step.4/block.2/self_attn", true, true},
        {"chunk.3/step.4/block.3/self_attn.q", true, false},
        {"chunk.3/step.4/block.3/admit.0/grab.mass", true, false},
        {"chunk.3/step.4/flow", true, false},
        {"chunk.3/cache.1/k", false, false},
        {"chunk.3/cache.2/frame", true, true},
        {"chunk.3/cache.4/v", true, false},
        {"chunk.4/step.0/x", false, false},
        {"chunk.4/step.0/tokens", false, false},
        {"chunk.4/step.0/block.1/out", false, false},
        {"chunk.4/step.0/block.2/self_attn.v", false, false},
        {"chunk.4/step.0/block.2/self_attn", true, true},
        {"chunk.4/step.0/block.2/cross_attn.q", true, true},
        {"chunk.4/step.0/block.3/ffn", true, false},
        {"chunk.4/step.1/e0", false, false},
        {"chunk.4/step.1/x", true, false},
        {"chunk.5/step.0/x", false, false},
        {"chunk.5/step.0/block.0/self_attn.q", false, false},
        {"chunk.5/step.0/block.0/self_attn", true, false},
        {"chunk.5/step.0/block.2/self_attn", true, true},
        {"vae/frame.11/denorm", false, false},
        {"vae/frame.12/denorm", true, false},
    };
    const tt_dump_options alone = {0}, given = {.injected = true};
    dump_run d = {.of[RUN_EMULATED] = {
        .name = "chunk.3/step.4/block.2/admit.1/grab.keep", .frames = 12}};
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        const char *name = c[i].name;
        d.opt = &alone;
        expect(history_reaches(&d, RUN_EMULATED, name) == c[i].reached,
               "%s: reached or not", name);
        d.opt = &given;
        expect(history_reaches(&d, RUN_EMULATED, name) == c[i].injected,
               "%s: with theirs injected", name);
        expect(!history_reaches(&d, RUN_EXCUSED, name), "no flip, no reach");
    }
}

/* ---- whole numbers ------------------------------------------------------- */

static void put_seeds(const char *path, uint64_t first)
{
    tt_st_writer *w;
    const uint64_t seeds[2] = {first, 0xffffffffffffff00u};
    if (!expect_ok(tt_st_create(ctx, &w, path), path)) return;
    tt_st_add(w, "seeds", TT_U64, 1, (int64_t[]){2}, seeds);
    expect_ok(tt_st_finish(w), path);
}

/* They are known to the last bit. */
#define LARGE (UINT64_C(1) << 53)
static void test_whole(void)
{
    static const struct {
        uint64_t want, got;
        const char *word;      /* NULL: a pass                                */
    } c[] = {{1000, 1000, NULL},
             {1000, 1001, "1 of 2 values differ, the first is 1001 where 1000"},
             {1000, LARGE, "9007199254740992 where 1000"},
             {LARGE + 1, LARGE, "other bits"}};
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        tt_report *r = NULL;
        put_seeds(at("want"), c[i].want);
        put_seeds(at("got"), c[i].got);
        if (!expect_ok(tt_report_new(ctx, &r, "whole", NULL), "new")) return;
        expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
            .want = at("want"), .got = at("got")}), "whole");
        const tt_verdict *v = tt_report_first(r);
        expect(c[i].word ? v && strstr(v->hint, c[i].word) : !v,
               "whole numbers, %d: %s", (int)i, v ? v->hint : "passed");
        tt_report_free(r);
    }
}

int main(void)
{
    ctx = test_begin("validate/flips");
    if (!folder_make()) return test_end();
    test_rule();
    test_many();
    test_reach();
    test_whole();
    folder_remove();
    return test_end();
}
