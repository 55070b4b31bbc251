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
    expect_pick(PICK_WRONG, next, ours, apart, moved, "too far apart");
    /* our margin is tiny, but it is not the one that was crossed */
    expect_pick(PICK_WRONG, far, ours, close, low, "the best was dropped");
    expect_pick(PICK_WRONG, three, ours, close, NULL, "one too many");
    expect_pick(PICK_WRONG, next, ours, NULL, NULL, "no scores");
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
        {"chunk.3/step.3/x0", false, false},
        {"chunk.3/step.4/x", false, false},
        {"chunk.3/step.4/block.1/self_attn", false, false},
        {"chunk.3/step.4/block.2/self_attn.k", false, false},
        {"chunk.3/step.4/block.2/admit.0/tame.mean_k", false, false},
        {"chunk.3/step.4/block.2/admit.1/grab.score", false, false},
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
    dump_run d = {.of[RUN_THEIRS] = {
        .name = "chunk.3/step.4/block.2/admit.1/grab.keep", .chunk = 3,
        .step = 4, .block = 2, .sub = 1, .frames = 12, .row = -1}};
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        const tt_entry e = {.name = c[i].name};
        d.opt = &alone;
        expect(same_history(&d, RUN_THEIRS, RUN_OURS, &e)
               == (c[i].reached ? 0 : SAME_ROWS), "%s: reached or not", e.name);
        expect(same_history(&d, RUN_EMULATED, RUN_THEIRS, &e)
               == (c[i].reached ? 0 : SAME_ROWS), "%s: of two runs", e.name);
        d.opt = &given;
        expect(same_history(&d, RUN_THEIRS, RUN_OURS, &e)
               == (c[i].injected ? 0 : SAME_ROWS), "%s: with theirs injected",
               e.name);
        expect(same_history(&d, RUN_EMULATED, RUN_OURS, &e) == SAME_ROWS,
               "no flip, no reach");
    }
}

/* ---- traces -------------------------------------------------------------- */

enum { ROUNDS = 4, P = 3, CHUNKS = 4, SLOTS = 64 };

typedef struct trace {
    double noise;          /* relative, of the scores                         */
    int flip;              /* round that keeps candidate 1 in place of 0; -1  */
    int wrong;             /* round whose scores are 1 % too large; -1        */
    int memory;            /* chunk with another memory_index; -1             */
    bool whole;            /* a whole number off by one after 2^53            */
    bool nowhere;          /* rounds are of a chunk that is not there         */
    int gross;             /* chunk whose shares are far off; -1              */
} trace;

static const trace honest = {0, -1, -1, -1, false, false, -1};

static void put_trace(const char *path, trace t)
{
    tt_st_writer *w;
    const int64_t two[] = {CHUNKS, 2}, keeps[] = {ROUNDS, P}, one[] = {ROUNDS};
    const int64_t mem[] = {CHUNKS, 1, 2}, single[] = {2};
    const int64_t shares[] = {CHUNKS, SLOTS};
    int64_t ends[CHUNKS * 2] = {0}, chunk[ROUNDS], memory[CHUNKS * 2];
    uint64_t seeds[2] = {((uint64_t)1 << 53) + t.whole, 0xffffffffffffff00u};
    uint8_t keep[ROUNDS * P];
    float score[ROUNDS * P], share[CHUNKS * SLOTS];
    if (!expect_ok(tt_st_create(ctx, &w, path), path)) return;
    for (int r = 0; r < ROUNDS; r++) {
        /* round 2 is close, others are not */
        const double s[P] = {0.5, r == 2 ? 0.5 - 1e-4 : 0.25, 0.125};
        const bool flipped = t.flip == r;
        chunk[r] = t.nowhere ? 1000000000 : r;
        for (int c = 0; c < P; c++) {
            keep[r * P + c] = c == (flipped ? 1 : 0);
            score[r * P + c] = (float)(s[c] * (1 + t.noise * (c - r)));
            if (t.wrong == r) score[r * P + c] *= 1.01f;
        }
        if (flipped) score[r * P + 1] = score[r * P] * 1.00001f;
        if (t.flip >= 0 && t.flip < r) score[r * P + 2] = 0.2f;
        memory[2 * r] = t.flip >= 0 && t.flip <= r ? 7 : 3;
        memory[2 * r + 1] = t.memory == r ? 9 : 4;
        for (int i = 0; i < SLOTS; i++)
            share[r * SLOTS + i] = t.flip >= 0 && t.flip <= r
                                   ? 0.5f : 1 / (1.f + (float)i);
        for (int i = 0; i < SLOTS && t.gross == r; i++)
            share[r * SLOTS + i] *= -1000;
    }
    tt_st_add(w, "ends", TT_I64, 2, two, ends);
    tt_st_add(w, "seeds", TT_U64, 1, single, seeds);
    tt_st_add(w, "memory_index", TT_I64, 3, mem, memory);
    tt_st_add(w, "bio_share", TT_F32, 2, shares, share);
    tt_st_add(w, "grab_chunk", TT_I64, 1, one, chunk);
    tt_st_add(w, "grab_scores", TT_F32, 2, keeps, score);
    tt_st_add(w, "grab_keep", TT_U8, 2, keeps, keep);
    expect_ok(tt_st_finish(w), path);
}

/* Compare a trace of theirs with ours; `path` of the first failure, NULL when
 * there is none; how many ties and tensors that were not checked. */
static void expect_trace(trace theirs, trace emul, const char *path, int ties,
                         int unchecked, const char *what)
{
    tt_report *r = NULL;
    trace ours = honest;
    ours.nowhere = theirs.nowhere;
    put_trace(at("want"), ours);
    put_trace(at("got"), theirs);
    put_trace(at("emul"), emul);
    if (!expect_ok(tt_report_new(ctx, &r, what, tt_arith_find("bf16")), what))
        return;
    expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
        .want = at("want"), .got = at("got"), .emul = at("emul"),
        .arith = tt_arith_find("bf16")}), what);
    const tt_verdict *v = tt_report_first(r);
    expect(path ? v && !strcmp(v->path, path) : !v, "%s: %s, %s", what,
           v ? v->path : "passed", v ? v->hint : "");
    expect(tt_report_count(r, TT_TIE) == ties &&
           tt_report_count(r, TT_UNCHECKED) == unchecked,
           "%s: %lld ties, %lld not judged", what,
           (long long)tt_report_count(r, TT_TIE),
           (long long)tt_report_count(r, TT_UNCHECKED));
    expect(tt_report_compared(r) + unchecked == 7, "%s: all are counted", what);
    tt_report_free(r);
}

static void test_traces(void)
{
    const trace bf16 = {1e-3, -1, -1, -1, false, false, -1};
    trace t = honest;
    expect_trace(honest, bf16, NULL, 0, 0, "equal traces");
    t.noise = -8e-4;
    expect_trace(t, bf16, NULL, 0, 0, "honest scores");
    t.flip = 2;
    expect_trace(t, bf16, NULL, 1, 3, "honest, with a tie");
    t.whole = true;
    expect_trace(t, bf16, "seeds", 1, 3, "a tie does not change the seeds");
    t.whole = false;
    t.nowhere = true;
    expect_trace(t, bf16, NULL, 1, 3, "a tie in a chunk that is not there");
    t.nowhere = false;
    t.wrong = 1;
    expect_trace(t, bf16, "grab_scores", 1, 2, "wrong in front of the tie");
    t.wrong = -1, t.memory = 1;
    expect_trace(t, bf16, "memory_index", 1, 2, "other frames before it");
    t.memory = -1, t.flip = 0;
    expect_trace(t, bf16, "memory_index", 0, 0, "a pick that is no tie");
    t = honest;
    t.whole = true;
    expect_trace(t, bf16, "seeds", 0, 0, "whole numbers after 2^53");
    /* our own run in bf16 goes another way: it allows nothing after that */
    trace own = bf16;
    own.flip = 2;
    t = honest, t.noise = -8e-4;
    expect_trace(t, own, NULL, 0, 0, "honest, we flip ourselves");
    t.wrong = 1;
    expect_trace(t, own, "grab_scores", 0, 0, "wrong before we flip");
    t.wrong = 3;
    expect_trace(t, own, NULL, 0, 1, "wrong after that: not judged, no pass");
    /* but theirs did not go another way, and ours is what they must be near */
    t.wrong = -1, t.gross = 3;
    expect_trace(t, own, "bio_share", 0, 0, "far off after that");
    t.gross = -1, t.memory = 3;
    expect_trace(t, own, "memory_index", 0, 0, "other frames after that");
    t.memory = -1, t.flip = 3;
    expect_trace(t, own, NULL, 0, 4, "a third way: not judged");
    t.gross = 3;
    expect_trace(t, own, "bio_share", 0, 3, "a third way, far off");
}

/* A tolerance of 0 knows whole numbers to the last bit, and so does the
 * sentence about them. */
static void test_tolerance(void)
{
    static const struct {
        double abs;
        bool pass;
    } c[] = {{0, false}, {0.5, false}, {1, true}};
    trace off = honest;
    off.whole = true;
    put_trace(at("want"), honest);
    put_trace(at("got"), off);
    for (int i = 0; i < 3; i++) {
        const tt_tolerance tol[] = {{"*", c[i].abs, 0}, {NULL, 0, 0}};
        tt_report *r = NULL;
        if (!expect_ok(tt_report_new(ctx, &r, "tolerance", NULL), "new"))
            return;
        expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
            .want = at("want"), .got = at("got"), .tol = tol}), "tolerance");
        const tt_verdict *v = tt_report_first(r);
        expect(c[i].pass ? !v : v && !strcmp(v->path, "seeds") &&
               strstr(v->hint, "1 of 2 values differ, the first is "
                      "9007199254740993 where 9007199254740992 is"),
               "whole numbers within %g: %s", c[i].abs, v ? v->hint : "passed");
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
    test_traces();
    test_tolerance();
    folder_remove();
    return test_end();
}
