/* test_dump.c: faults planted in dumps are found and named, honest dumps pass;
 * reports are well formed whatever the names are.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/folder.h"
#include "validate/report/report.h"

static tt_ctx *ctx;

/* ---- dumps --------------------------------------------------------------- */

#define POINT "chunk.1/step.0/block.0/self_attn.q"
enum { L = 6, F = 3, T = L * F, H = 2, D = 20, P = 6, NQ = T * H * D };

typedef enum fault {
    NONE, ELEMENT, ROWS, FRAME, SIGN, A_NAN, MISSING, SHAPE, SCALE, INTEGER,
    AS_I64, PICK_FAR, PICK_NEAR, EXTRA, ROUND_BF16, ROUND_F16, AS_BF16, MERGED,
    ONE_ULP, PICK_OWN, NEAR_WRONG, LATE, LATE_FAR, FAULTS
} fault;

static double noise(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*s >> 20) * 0x1p-42 - 2;
}

static void add_floats(tt_st_writer *w, const char *name, float *x, int rank,
                       const int64_t *dim, fault f)
{
    int64_t n = 1;
    uint16_t half[NQ];
    for (int i = 0; i < rank; i++) n *= dim[i];
    for (int64_t i = 0; i < n; i++) {
        if (f == ROUND_BF16) x[i] = tt_format_round(TT_FMT_BF16, x[i]);
        if (f == ROUND_F16) x[i] = tt_format_round(TT_FMT_F16, x[i]);
        half[i] = tt_bf16_from_f32(x[i]);
    }
    if (f == AS_BF16) tt_st_add(w, name, TT_BF16, rank, dim, half);
    else tt_st_add(w, name, TT_F32, rank, dim, x);
}

/* What a fault does to the queries; their rank. */
static int spoil(float *q, int64_t *dim, fault f)
{
    float old[NQ];
    const int row = H * D;
    memcpy(old, q, sizeof old);
    for (int i = 0; i < NQ; i++) {
        if (f == SIGN) q[i] = -old[i];
        if (f == SCALE) q[i] = old[i] / 2;
        if (f == FRAME) q[i] = old[(i + L * row) % NQ];
    }
    for (int i = 0; f == ROWS && i < row; i++) {
        q[3 * row + i] = old[4 * row + i];
        q[4 * row + i] = old[3 * row + i];
    }
    if (f == ELEMENT) q[3 * row + 1 * D + 2] += 1;
    if (f == A_NAN) q[5 * row] = NAN;
    if (f == ONE_ULP) q[7] = nextafterf(q[7], 9);
    if (f == SHAPE) dim[0] = H, dim[1] = T;
    if (f == MERGED) {
        dim[0] = 1, dim[1] = T, dim[2] = H * D;
    }
    return 3;
}

static void put_dump(const char *path, fault f)
{
    uint64_t s = 7;
    tt_st_writer *w;
    float x[NQ], q[NQ];
    int64_t dim[] = {T, H, D}, flat[] = {T, H * D}, few[] = {P};
    double score[P] = {0.9, 0.8, 0.7, 0.6, 0.6 - 1e-9, 0.1};
    uint8_t keep[P] = {1, 1, 1, 1, 0, 0};
    int64_t ids[P] = {4, 5, 6, 7, 8, 9};
    if (!expect_ok(tt_st_create(ctx, &w, path), path)) return;
    for (int i = 0; i < NQ; i++) x[i] = (float)noise(&s);
    for (int i = 0; i < NQ; i++) q[i] = (float)noise(&s);
    add_floats(w, "chunk.1/step.0/tokens", x, 2, flat, f);
    const int rank = spoil(q, dim, f);
    if (f != MISSING) add_floats(w, POINT, q, rank, dim, f);
    if (f == INTEGER) ids[2]++;
    float real[P];
    for (int i = 0; i < P; i++) real[i] = (float)ids[i];
    if (f == AS_I64)
        tt_st_add(w, "chunk.1/grab.candidates", TT_F32, 1, few, real);
    else
        tt_st_add(w, "chunk.1/grab.candidates", TT_I64, 1, few, ids);
    const bool near = f == PICK_NEAR || f == NEAR_WRONG;
    if (near) score[4] = score[3] + 1e-9;
    tt_st_add(w, "chunk.1/grab.score", TT_F64, 1, few, score);
    if (f == PICK_FAR) keep[0] = 0, keep[5] = 1;
    if (near || f == PICK_OWN) keep[3] = 0, keep[4] = 1;
    tt_st_add(w, "chunk.1/grab.keep", TT_U8, 1, few, keep);
    for (int i = 0; i < NQ; i++) x[i] = (float)noise(&s);
    if (f == NEAR_WRONG) x[0] += 1;
    add_floats(w, "chunk.2/step.0/e0", x, 2, flat, f);  /* time alone */
    if (near) x[1] += 1;             /* another frame, other values */
    if (f == LATE) x[1] += 2;
    for (int i = 0; f == LATE_FAR && i < NQ; i++) x[i] *= -1000;
    add_floats(w, "chunk.2/step.0/x0", x, 2, flat, f);
    if (f == EXTRA) tt_st_add(w, "nobody's", TT_I64, 1, few, ids);
    expect_ok(tt_st_finish(w), path);
}

static char *slurp(const char *path)
{
    static char text[1 << 19];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f) fclose(f);
    return text;
}

/* ---- verdicts ------------------------------------------------------------ */

static tt_report *compare(fault f, const char *arith, bool diff, bool partial)
{
    tt_report *r = NULL;
    put_dump(at("got"), f);
    if (!expect_ok(tt_report_new(ctx, &r, "test", arith ? tt_arith_find(arith)
                                                        : NULL), "report"))
        exit(test_end());
    expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
        .want = at("want"), .got = at("got"), .curve = "c", .partial = partial,
        .arith = arith ? tt_arith_find(arith) : NULL, .extra_fails = diff}),
        "comparison");
    return r;
}

/* The first failure is `path` (NULL: none) and its hint has `word`. */
static void expect_first(fault f, const char *arith, const char *path,
                         tt_outcome outcome, const char *word)
{
    tt_report *r = compare(f, arith, !arith, false);
    const tt_verdict *v = tt_report_first(r);
    if (!path)
        expect(!v && tt_report_passed(r), "fault %d, %s: passes, not %s: %s",
               f, arith ? arith : "diff", v ? v->path : "", v ? v->hint : "");
    else
        expect(v && !strcmp(v->path, path) && v->outcome == outcome
               && strstr(v->hint, word) && !tt_report_passed(r),
               "fault %d, %s: %s, '%s' expected at %s, not %s %s '%s'", f,
               arith ? arith : "diff", tt_outcome_name(outcome), word, path,
               v ? v->path : "nothing", v ? tt_outcome_name(v->outcome) : "",
               v ? v->hint : "");
    tt_report_free(r);
}

static void test_faults(void)
{
    static const struct {
        fault f;
        const char *path, *word;
        tt_outcome outcome;
    } table[] = {
        {ELEMENT, POINT, "one element", TT_MISMATCH},
        {ROWS, POINT, "3 and 4", TT_MISMATCH},
        {FRAME, POINT, "shifted", TT_MISMATCH},
        {SIGN, POINT, "sign", TT_MISMATCH},
        {A_NAN, POINT, "NaN", TT_MISMATCH},
        {MISSING, POINT, "not in", TT_MISSING},
        {SHAPE, POINT, "F32 [2, 18, 20]", TT_MISSHAPEN},
        {SCALE, POINT, "0.5", TT_MISMATCH},
        {INTEGER, "chunk.1/grab.candidates", "", TT_MISMATCH},
        {PICK_FAR, "chunk.1/grab.keep", "other frames", TT_MISMATCH},
        {PICK_OWN, "chunk.1/grab.keep", "not the best of their own",
         TT_MISMATCH},
    };
    static const char *const arith[] = {NULL, "f32", "bf16", "f16-stored"};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        for (size_t k = 0; k < sizeof arith / sizeof arith[0]; k++)
            expect_first(table[i].f, arith[k], table[i].path, table[i].outcome,
                         table[i].word);
    expect_first(AS_I64, "f32", "chunk.1/grab.candidates", TT_MISSHAPEN,
                 "F32");
    expect_first(EXTRA, NULL, "nobody's", TT_MISSING, "only in");
    expect_first(EXTRA, "f32", NULL, TT_PASS, "");
    expect_first(ONE_ULP, NULL, POINT, TT_MISMATCH, "");
    expect_first(AS_BF16, NULL, "chunk.1/step.0/tokens", TT_MISMATCH, "");
    expect_first(MERGED, NULL, POINT, TT_MISSHAPEN, "[1, 18, 40]");
}

static void test_honest(void)
{
    static const char *const arith[] = {NULL, "f32", "tf32", "bf16",
                                        "bf16-stored"};
    for (size_t k = 0; k < sizeof arith / sizeof arith[0]; k++)
        expect_first(NONE, arith[k], NULL, TT_PASS, "");
    expect_first(ROUND_BF16, "bf16", NULL, TT_PASS, "");
    expect_first(ROUND_BF16, "bf16-stored", NULL, TT_PASS, "");
    expect_first(AS_BF16, "bf16", NULL, TT_PASS, "");
    expect_first(ROUND_F16, "f16", NULL, TT_PASS, "");
    expect_first(MERGED, "f32", NULL, TT_PASS, "");
    expect_first(ONE_ULP, "f32", NULL, TT_PASS, "");
    expect_first(ROUND_BF16, "f32", "chunk.1/step.0/tokens", TT_MISMATCH,
                 "rounded");
    expect_first(ROUND_F16, "f32", "chunk.1/step.0/tokens", TT_MISMATCH,
                 "rounded");
    expect_first(ROUND_BF16, "f16", "chunk.1/step.0/tokens", TT_MISMATCH, "");
}

/* A pick between equal scores is a tie; what follows it and differs is no pass
 * and no failure, what does not follow it can fail. */
static void test_ties(void)
{
    tt_report *r = compare(PICK_NEAR, "f32", false, false);
    expect(tt_report_passed(r) && r->count[TT_TIE] == 1
           && r->count[TT_UNCHECKED] == 1
           && tt_report_compared(r) == 6,
           "a tie and what follows it: %lld ties, %lld of 7 compared",
           (long long)r->count[TT_TIE],
           (long long)tt_report_compared(r));
    tt_report_free(r);
    expect_first(NEAR_WRONG, "f32", "chunk.2/step.0/e0", TT_MISMATCH, "one");
    r = compare(PICK_NEAR, NULL, true, false);
    expect(!tt_report_passed(r), "without an arithmetic there are no ties");
    tt_report_free(r);
}

/* Our run in the declared arithmetic picks other frames, theirs the same as we:
 * after that its error is not known, but one far beyond its distance is. */
static void test_astray(void)
{
    static const struct {
        fault f;
        bool pass;
        int unchecked;
    } c[] = {{NONE, true, 0}, {LATE, true, 1}, {LATE_FAR, false, 0}};
    put_dump(at("emul"), PICK_NEAR);
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        tt_report *r = NULL;
        put_dump(at("got"), c[i].f);
        expect_ok(tt_report_new(ctx, &r, "astray", tt_arith_find("f32")),
                  "report");
        expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
            .want = at("want"), .got = at("got"), .emul = at("emul"),
            .arith = tt_arith_find("f32")}), "comparison");
        expect(tt_report_passed(r) == c[i].pass &&
               r->count[TT_UNCHECKED] == c[i].unchecked,
               "after a flip of ours, %d: %lld not checked", (int)c[i].f,
               (long long)r->count[TT_UNCHECKED]);
        tt_report_free(r);
    }
}

/* What nothing reads may be left out: what follows the blocks of a clean pass,
 * and all of the last one; but not of a noisy pass. */
static void test_unread(void)
{
    static const char *const name[] = {
        "chunk.0/step.1/tokens", "chunk.0/step.2/tokens", "chunk.0/cache.0/k",
        "chunk.1/step.1/tokens", "chunk.1/step.1/head",  /* these must be there */
        "chunk.0/step.2/head", "chunk.0/step.2/x0", "chunk.1/step.2/tokens",
        "chunk.1/cache.0/k",
    };
    enum { NEEDED = 5, ALL = sizeof name / sizeof *name };
    for (int without = -1; without < ALL; without++) {
        float x[4] = {1, 2, 3, 4};
        for (int k = 0; k < 2; k++) {
            tt_st_writer *w;
            if (!expect_ok(tt_st_create(ctx, &w, at(k ? "b" : "a")), "create"))
                return;
            for (int i = 0; i < ALL; i++)
                if (!k || i != without)
                    tt_st_add(w, name[i], TT_F32, 1, (int64_t[]){4}, x);
            expect_ok(tt_st_finish(w), "finish");
        }
        for (int filter = 0; filter < 2; filter++) {
            tt_report *r = NULL;
            expect_ok(tt_report_new(ctx, &r, "unread", tt_arith_find("f32")),
                      "report");
            expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
                .want = at("a"), .got = at("b"), .filter = filter ? "*" : NULL,
                .arith = tt_arith_find("f32")}), "comparison");
            expect(tt_report_passed(r)
                   == (without < 0 || (!filter && without >= NEEDED)),
                   "without %s", without < 0 ? "nothing" : name[without]);
            tt_report_free(r);
        }
    }
}

static void test_coverage(void)
{
    tt_report *r = compare(MISSING, "f32", false, true);
    expect(tt_report_passed(r) && tt_report_compared(r) == 6,
           "--partial: a kind of tensor may be missing");
    tt_report_free(r);
    /* of many that are missing few are listed, and what to do */
    expect_ok(tt_report_new(ctx, &r, "many", tt_arith_find("f32")), "report");
    for (int i = 0; i < 40; i++) {
        tt_verdict v = {.op = "", .outcome = TT_MISSING};
        snprintf(v.path, sizeof v.path, "chunk.%d/x", i);
        tt_report_add(r, &v, NULL, NULL);
    }
    expect_ok(tt_report_text(ctx, r, at("r.txt"), false), "text");
    const char *text = slurp(at("r.txt"));
    expect(strstr(text, "chunk.2/x\n") && !strstr(text, "chunk.3/x\n")
           && strstr(text, "and 37 more\n"), "few are listed: %s", text);
    tt_report_free(r);
    r = compare(MISSING, "f32", false, false);
    expect_ok(tt_report_text(ctx, r, at("r.txt"), false), "text");
    text = slurp(at("r.txt"));
    expect(strstr(text, "1 tensors are missing: --partial leaves out")
           && strstr(text, "--filter NAMES"), "what to do: %s", text);
    tt_report_free(r);
    expect_ok(tt_report_new(ctx, &r, "none", tt_arith_find("f32")), "report");
    expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
        .want = at("want"), .got = at("got"), .filter = "no,such name",
        .arith = tt_arith_find("f32")}), "comparison");
    expect(!tt_report_passed(r) && !tt_report_first(r),
           "nothing compared is a failure");
    tt_report_free(r);
    expect_ok(tt_report_new(ctx, &r, "two", tt_arith_find("f32")), "report");
    expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
        .want = at("want"), .got = at("got"),
        .filter = "chunk.2/*/e0,nothing,chunk.1/step.0/tokens",
        .arith = tt_arith_find("f32")}), "comparison");
    expect(tt_report_compared(r) == 2, "two of a list: %lld",
           (long long)tt_report_compared(r));
    tt_report_free(r);
}

/* Many names, of as many kinds: no square of their number. One of a kind that
 * they have is missed all the same. */
static void test_many_kinds(void)
{
    enum { MANY = 30000, SECONDS = 5 };
    const float x = 1;
    char name[] = "a....../x";
    tt_st_writer *w;
    tt_report *r;
    for (int k = 0; k < 2; k++) {
        if (!expect_ok(tt_st_create(ctx, &w, at(k ? "b" : "a")), "new")) return;
        name[0] = k ? 'b' : 'a';
        for (int i = 0; i < MANY; i++) {
            for (int c = 1, rest = i; c < 7; c++, rest /= 10)
                name[c] = (char)('a' + rest % 10);
            tt_st_add(w, name, TT_F32, 0, NULL, &x);
        }
        tt_st_add(w, k ? "c.0/x" : "c.1/x", TT_F32, 0, NULL, &x);
        expect_ok(tt_st_finish(w), "many names");
    }
    expect_ok(tt_report_new(ctx, &r, "many", NULL), "report");
    const clock_t from = clock();
    expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
        .want = at("a"), .got = at("b"), .arith = tt_arith_find("f32"),
        .partial = true}), "many names");
    const double used = (double)(clock() - from) / CLOCKS_PER_SEC;
    expect(used < SECONDS, "%d kinds of names: %.1f s", MANY, used);
    const tt_verdict *v = tt_report_first(r);
    expect(r->count[TT_MISSING] == 1 && v && !strcmp(v->path, "c.1/x"),
           "--partial: one of a known kind is missed, other kinds are not");
    tt_report_free(r);
}

static void test_bad_files(void)
{
    tt_report *r;
    FILE *f = fopen(at("bad"), "w");
    if (f) fputs("not tensors", f), fclose(f);
    expect_ok(tt_report_new(ctx, &r, "bad", NULL), "report");
    expect_status(tt_dump_compare(ctx, r, &(tt_dump_options){
        .want = at("want"), .got = at("bad")}), TT_EFORMAT, "a bad file");
    expect_status(tt_dump_compare(ctx, r, &(tt_dump_options){
        .want = at("want"), .got = at("absent")}), TT_EIO, "no file");
    tt_report_free(r);
}

/* Views that are not packed are what they hold. */
static void test_strided(void)
{
    tt_report *r;
    expect_ok(tt_report_new(ctx, &r, "strides", NULL), "report");
    expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
        .want = ref_path("formats/pt_ok_strides.pt"),
        .got = ref_path("formats/pt_ok_strides.pt")}), "strides");
    const tt_verdict *v = tt_report_first(r);
    expect(tt_report_passed(r), "a file is itself: %s", v ? v->path : "");
    tt_report_free(r);
}

static void test_shapes(void)
{
    const int64_t thd[] = {18, 2, 20}, flat[] = {1, 18, 40},
                  htd[] = {2, 18, 20}, one[] = {720}, none[] = {0, 3},
                  odd[] = {12, 60};
    const float x = 0;
    tt_tensor t = tt_tensor_make(&x, TT_F32, 3, thd);
    expect(tt_shape_fits(&t, 3, flat) && tt_shape_fits(&t, 1, one),
           "axes may be merged");
    expect(!tt_shape_fits(&t, 3, htd) && !tt_shape_fits(&t, 2, odd)
           && !tt_shape_fits(&t, 2, none), "but not exchanged or cut anew");
    t = tt_tensor_make(&x, TT_F32, 2, none);
    expect(tt_shape_fits(&t, 2, none) && !tt_shape_fits(&t, 3, thd), "empty");
}

/* ---- reports ------------------------------------------------------------- */

/* A tensor under another's name, whatever block or pass that is of; which kinds
 * are not there. */
static void test_names(void)
{
    enum { N = 40, NAMES = 6 };
    static const char *const name[NAMES] = {
        "chunk.0/step.0/block.0/self_attn.q", "chunk.0/step.0/block.0/norm1",
        "chunk.0/step.0/block.0/self_attn.v", "chunk.0/step.0/block.4/ffn",
        "chunk.0/step.0/x0", "chunk.2/step.1/x0"};
    for (int from = 0; from < 2 * NAMES; from++) {
        const int to = (from + 2) % NAMES;
        const bool own = from >= NAMES;          /* with one infinity */
        tt_report *r = NULL;
        char want[80];
        for (int k = 0; k < 2; k++) {
            tt_st_writer *w;
            uint64_t s = 3;
            float x[NAMES][N];
            for (int i = 0; i < NAMES * N; i++) x[i / N][i % N] = (float)noise(&s);
            if (k && own) x[to][3] = -INFINITY;
            if (!expect_ok(tt_st_create(ctx, &w, at(k ? "b" : "a")), "new"))
                return;
            for (int i = 0; i < NAMES; i++)
                if (!k || i != 1)
                    tt_st_add(w, name[i], TT_F32, 2, (int64_t[]){4, N / 4},
                              x[k && i == to && !own ? from : i]);
            expect_ok(tt_st_finish(w), "finish");
        }
        if (to == 1) continue;
        expect_ok(tt_report_new(ctx, &r, "names", NULL), "report");
        expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
            .want = at("a"), .got = at("b"), .partial = true,
            .arith = tt_arith_find("f32")}), "names");
        const tt_verdict *v = tt_report_first(r);
        snprintf(want, sizeof want, own ? "1 infinite" : "holds the values of "
                 "%s", name[from % NAMES]);
        expect(v && !strcmp(v->path, name[to]) && strstr(v->hint, want),
               "%s under another name: %s", name[from % NAMES],
               v ? v->hint : "none");
        expect_ok(tt_report_text(ctx, r, at("r.txt"), false), "text");
        char *text = slurp(at("r.txt"));
        expect(strstr(text, "without chunk.#/step.#/block.#/norm1\n"),
               "the kind that is missing: %s", text);
        tt_report_free(r);
    }
}

/* Every '<' opens a tag of ours and quotes are paired: hostile names neither
 * open a tag nor leave an attribute. */
static void expect_markup(const char *what, const char *text)
{
    expect(!strstr(text, "<evil") && !strstr(text, "\"on=\"") &&
           !strstr(text, "\x1b") && !strstr(text, "\x01"),
           "%s: names are escaped", what);
    expect(strstr(text, "&lt;evil&gt;") != NULL, "%s: and are there", what);
}

static void test_reports(void)
{
    tt_report *r;
    const double got[4] = {1, 2, NAN, 4}, want[4] = {1, 2.5, 3, 4};
    tt_verdict v = {.path = "a/<evil>\"on=\"&'\x1b\x01\xff]]>", .op = "linear",
                    .outcome = TT_MISMATCH, .rank = 2, .dim = {2, 2},
                    .hint = "<evil>", .where = "[0, 1]", .ratio = INFINITY};
    tt_metrics_measure(&v.m, got, want, 4);
    expect_ok(tt_report_new(ctx, &r, "<evil>", tt_arith_find("bf16")), "new");
    tt_report_note(r, "seed %d", 12);
    tt_report_add(r, &v, got, want);
    tt_report_grow(r, &(tt_growth){"<evil>", 0, 1e-3, 1e-4});
    tt_report_grow(r, &(tt_growth){"<evil>", 1, 2e-3, 0});
    expect_ok(tt_report_html(ctx, r, at("r.html")), "html");
    expect_markup("html", slurp(at("r.html")));
    expect(!strstr(slurp(at("r.html")), "https:")
           && strstr(slurp(at("r.html")), "default-src 'none'"),
           "html: fetches nothing");
    expect(strstr(slurp(at("r.html")), "\"chunk\": 1, \"rel_l2\": 0.002"),
           "html: curves");
    expect_ok(tt_report_junit(ctx, r, at("r.xml")), "junit");
    expect_markup("junit", slurp(at("r.xml")));
    expect(strstr(slurp(at("r.xml")), "failures=\"1\"") != NULL, "one failed");
    expect_ok(tt_report_json(ctx, r, at("r.json")), "json");
    const tt_json *j = NULL;
    tt_arena mem = {0};
    expect_ok(tt_json_file(ctx, &mem, &j, at("r.json"), 1 << 20), "json");
    expect(!strcmp(tt_json_str(j, "schema", ""), "tether-validate/2")
           && !tt_json_bool(j, "passed", true), "schema and result");
    tt_arena_free(&mem);
    expect_ok(tt_report_text(ctx, r, at("r.txt"), true), "text");
    expect(!strchr(slurp(at("r.txt")), 0x1b), "text: no escape sequences");
    expect(!strncmp(slurp(at("r.txt")), "FAIL: first wrong tensor: a/", 28),
           "text: the first line names it");
    tt_report_free(r);
    expect_ok(tt_report_new(ctx, &r, "empty", NULL), "new");
    expect_ok(tt_report_junit(ctx, r, at("r.xml")), "junit");
    expect(strstr(slurp(at("r.xml")), "nothing was compared") != NULL,
           "junit: an empty comparison fails");
    tt_report_free(r);
}

/* Names that are the same in every run, and failures that are expected. */
static void test_expected(void)
{
    static const char *const path[] = {
        "op.linear.tiny n=3 seed 1", "op.linear.tiny n=9000 seed 1",
        "op.linear.huge n=1 seed 1", "chunk.0/step.1/x0", "chunk.0/step.2/x0"};
    tt_report *r;
    const double got[2] = {1, 2}, want[2] = {1, 3};
    expect_ok(tt_report_new(ctx, &r, "expected", NULL), "new");
    for (int i = 0; i < 5; i++) {
        tt_verdict v = {.op = "linear", .rank = 1, .dim = {2},
                        .outcome = i == 2 ? TT_PASS : TT_MISMATCH};
        snprintf(v.path, sizeof v.path, "%s", path[i]);
        tt_metrics_measure(&v.m, got, want, 2);
        tt_report_add(r, &v, NULL, NULL);
    }
    FILE *f = fopen(at("x.txt"), "w");
    if (f) fputs("# ours\n op.linear.* # known\n\nchunk.*.1/x0\nop.silu.*", f);
    if (f) fclose(f);
    expect_ok(tt_report_expect(ctx, r, at("x.txt")), "xfail");
    expect(!tt_report_passed(r) && r->count[TT_EXPECTED] == 3
           && r->count[TT_MISMATCH] == 1, "one is left");
    expect_ok(tt_report_text(ctx, r, at("r.txt"), false), "text");
    expect(!strncmp(slurp(at("r.txt")), "FAIL: first wrong tensor: "
                    "chunk.0/step.2/x0", 43)
           && strstr(slurp(at("r.txt")), "nothing named op.silu.* fails"),
           "the first that is not expected, and a line without use");
    expect_ok(tt_report_junit(ctx, r, at("r.xml")), "junit");
    const char *xml = slurp(at("r.xml"));
    expect(strstr(xml, "\"op.linear\" name=\"tiny\" time=\"")
           && strstr(xml, "\"op.linear\" name=\"tiny.2\" time=\"")
           && strstr(xml, "\"chunk.0/step.2\" name=\"x0\"")
           && strstr(xml, "expected to fail: n=9000 seed 1: ")
           && strstr(xml, "failures=\"1\"") && strstr(xml, "skipped=\"3\""),
           "names without cases: %s", xml);
    f = fopen(at("x.txt"), "w");
    if (f) fputs("chunk.0/step.2/x0\n", f), fclose(f);
    expect_ok(tt_report_expect(ctx, r, at("x.txt")), "xfail");
    expect(tt_report_passed(r), "all are expected");
    tt_report_wish(r)->failures_alone = true;
    expect_ok(tt_report_json(ctx, r, at("r.json")), "json");
    expect(!strstr(slurp(at("r.json")), "\"path\""), "nothing failed");
    expect(tt_report_expect(ctx, r, at("not there")) == TT_EIO
           && strstr(tt_message(ctx), "not there"), "no file");
    tt_clear(ctx);
    tt_report_free(r);
}

/* ---- a sampler in float32, without a run in float64 ---------------------- */

enum { LATENTS = 512 };

/* x and flow of a chunk, its x0 and the x of the next step: ours, or those of a
 * port that rounds every product. `off` is added to its sigma. */
static void put_chunk(tt_st_writer *w, int chunk, bool port, double off)
{
    const int64_t dim[] = {LATENTS};
    const float s = 0.9090909f, next = 0.8333333f;
    static float x[LATENTS], flow[LATENTS], x0[LATENTS], fresh[LATENTS];
    uint64_t seed = (uint64_t)chunk;
    char name[64];
    for (int i = 0; i < LATENTS; i++) {
        x[i] = (float)noise(&seed), flow[i] = (float)noise(&seed);
        const double n = noise(&seed);
        const float sigma = (float)((double)s + off);
        const volatile float moved = sigma * flow[i];
        const volatile float kept = (1 - next) * (x[i] - moved);
        const volatile float added = next * (float)n;
        x0[i] = port ? x[i] - moved
                     : (float)((double)x[i] - (double)s * (double)flow[i]);
        fresh[i] = !port ? kept + added
                         : (float)((1 - (double)next) * (double)(x[i] - moved)
                                   + (double)next * (double)(float)n);
    }
    const struct { const char *what; const float *data; } list[] = {
        {"step.0/x", x}, {"step.0/flow", flow}, {"step.0/x0", x0},
        {"step.1/x", fresh}};
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "chunk.%d/%s", chunk, list[i].what);
        tt_st_add(w, name, TT_F32, 1, dim, list[i].data);
    }
}

/* Two chunks whose sigmas are that far off. */
static tt_report *sampled(double first, double second)
{
    const char *const path[] = {"ours", "emulated", "theirs"};
    tt_report *r = NULL;
    for (int k = 0; k < 3; k++) {
        tt_st_writer *w;
        if (!expect_ok(tt_st_create(ctx, &w, at(path[k])), "new")) return NULL;
        put_chunk(w, 0, k == 2, k == 2 ? first : 0);
        put_chunk(w, 1, k == 2, k == 2 ? second : 0);
        expect_ok(tt_st_finish(w), path[k]);
    }
    expect_ok(tt_report_new(ctx, &r, "sampler", tt_arith_find("f32")), "r");
    expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
        .got = at("theirs"), .want = at("ours"), .emul = at("emulated"),
        .filter = first == 0 ? NULL : "*x0", .arith = tt_arith_find("f32"), .injected = true}),
        "compared");
    return r;
}

/* The largest failure is named with the first one, and its mistake. */
static void test_sampler(void)
{
    tt_report *r = sampled(0, 0);
    const tt_verdict *v = tt_report_first(r);
    expect(tt_report_passed(r), "a port in float32: %s, %.3g times",
           v ? v->path : "", v ? v->ratio : 0);
    tt_report_free(r);
    r = sampled(4e-6, 0);
    v = tt_report_first(r);
    expect(v && !strcmp(v->path, "chunk.0/step.0/x0"), "a small fault");
    expect(!tt_report_largest(r), "the only failure");
    tt_report_free(r);
    r = sampled(4e-6, -1.8181818);
    v = tt_report_largest(r);
    expect(v && !strcmp(v->path, "chunk.1/step.0/x0")
           && strstr(v->hint, "sign of the flow"), "the largest: %s: %s",
           v ? v->path : "", v ? v->hint : "");
    expect_ok(tt_report_text(ctx, r, at("r.txt"), false), "text");
    const char *text = slurp(at("r.txt"));
    expect(strstr(text, "first wrong tensor: chunk.0/step.0/x0")
           && strstr(text, "; the largest failure, ")
           && strstr(text, "chunk.1/step.0/x0 at"), "headline: %.400s", text);
    expect_ok(tt_report_json(ctx, r, at("r.json")), "json");
    expect(strstr(slurp(at("r.json")), "\"first\": 0,\n  \"largest\": 1,"),
           "both in JSON");
    tt_report_free(r);
}

/* ---- names and shapes beyond reason -------------------------------------- */

/* One tensor called `name` in each file, [2, 2], unlike in one element. */
static void put_named(const char *path, const char *name, float last)
{
    tt_st_writer *w;
    const float x[4] = {1, 2, 3, last};
    if (!expect_ok(tt_st_create(ctx, &w, path), path)) return;
    tt_st_add(w, name, TT_F32, 2, (int64_t[]){2, 2}, x);
    expect_ok(tt_st_finish(w), path);
}

/* A number that no chunk or step has is none: no point of the curve. */
static void test_numbers(void)
{
    static const struct {
        const char *name;
        bool point;
    } c[] = {{"chunk.0/step.2147483647/x0", true},
             {"chunk.2147483647/step.0/x0", true},
             {"chunk.0/step.2147483648/x0", false},
             {"chunk.0/step.9223372036854775807/x0", false},
             {"chunk.2147483648/step.0/x0", false},
             {"chunk.99999999999999999999/step.0/x0", false},
             {"chunk.-1/step.0/x0", false},
             {"chunk./step.0/x0", false}};
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        tt_report *r = NULL;
        const char *name = c[i].name;
        put_named(at("named"), name, 4);
        put_named(at("other"), name, 5);
        expect_ok(tt_report_new(ctx, &r, "numbers", NULL), "report");
        expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
            .want = at("named"), .got = at("other"), .curve = "c",
            .arith = tt_arith_find("f32")}), name);
        expect_ok(tt_report_html(ctx, r, at("r.html")), "html");
        expect((strstr(slurp(at("r.html")), "\"curve\": \"c\"") != NULL)
               == c[i].point, "%s: a point of the curve", name);
        expect(r->count[TT_MISMATCH] == 1, "%s: compared", name);
        tt_report_free(r);
    }
}

/* A chunk with a NaN is not a chunk without an error. */
static void test_broken_curve(void)
{
    tt_report *r = NULL;
    put_named(at("named"), "chunk.0/step.0/x0", 4);
    put_named(at("other"), "chunk.0/step.0/x0", NAN);
    expect_ok(tt_report_new(ctx, &r, "curve", NULL), "report");
    expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
        .want = at("named"), .got = at("other"), .curve = "c", .quiet = true,
        .arith = tt_arith_find("f32")}), "curve");
    expect(r->growth && r->growth->g.rel_l2 == INFINITY && !r->first,
           "one value of a chunk is NaN");
    tt_report_free(r);
}

/* Next to an extent of 0 the others may be anything; no product of them. */
static void test_empty(void)
{
    const int64_t dim[] = {0, INT64_C(1) << 62, 8};
    static const tt_dtype type[] = {TT_F32, TT_F16};
    for (int i = 0; i < 4; i++) {
        tt_st_writer *w;
        tt_report *r = NULL;
        for (int k = 0; k < 2; k++) {
            if (!expect_ok(tt_st_create(ctx, &w, at(k ? "b" : "a")), "new"))
                return;
            tt_st_add(w, "x", type[k * (i % 2)], 3, dim, "");
            expect_ok(tt_st_finish(w), "an empty tensor");
        }
        expect_ok(tt_report_new(ctx, &r, "empty", NULL), "report");
        expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
            .want = at("a"), .got = at("b"),
            .arith = i < 2 ? NULL : tt_arith_find("bf16")}), "empty");
        expect(!tt_report_passed(r) && tt_report_compared(r) == 0
               && r->count[TT_MISMATCH] == (i == 1),
               "empty tensors, %d", i);
        expect_ok(tt_report_html(ctx, r, at("r.html")), "html");
        tt_report_free(r);
    }
}

/* The frames before a tie are counted from shapes. */
static void test_frames(void)
{
    const int64_t dim[] = {INT64_C(1) << 62, 0, 1, 1}, two[] = {2};
    const double score[2] = {0.5, 0.5};
    for (int k = 0; k < 2; k++) {
        tt_st_writer *w;
        const uint8_t keep[2] = {k == 0, k == 1};
        if (!expect_ok(tt_st_create(ctx, &w, at(k ? "b" : "a")), "new")) return;
        tt_st_add(w, "chunk.0/step.0/x", TT_F32, 4, dim, "");
        tt_st_add(w, "chunk.1/step.0/x", TT_F32, 4, dim, "");
        tt_st_add(w, "chunk.1/step.0/block.0/grab.score", TT_F64, 1, two,
                  score);
        tt_st_add(w, "chunk.1/step.0/block.0/grab.keep", TT_U8, 1, two, keep);
        expect_ok(tt_st_finish(w), "empty frames");
    }
    tt_report *r = NULL;
    expect_ok(tt_report_new(ctx, &r, "frames", NULL), "report");
    expect_ok(tt_dump_compare(ctx, r, &(tt_dump_options){
        .want = at("a"), .got = at("b"), .arith = tt_arith_find("bf16")}),
        "frames");
    expect(r->count[TT_TIE] == 1, "a tie after empty frames");
    tt_report_free(r);
}

/* NaN and infinity are where the arithmetic has them, and the same ones. */
static void test_nonfinite(void)
{
    static const struct {
        double got, want, emul;
        bool pass;
    } c[] = {{INFINITY, INFINITY, INFINITY, true}, {NAN, NAN, NAN, true},
             {-INFINITY, INFINITY, INFINITY, false},
             {-INFINITY, 1e39, INFINITY, false},
             {INFINITY, 1e39, INFINITY, true},
             {NAN, INFINITY, INFINITY, false}, {1, NAN, NAN, false},
             {NAN, 1, 1, false}, {5, NAN, 1, false}, {5, INFINITY, 1, false}};
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        const double got[2] = {1, c[i].got}, want[2] = {1, c[i].want},
                     emul[2] = {1, c[i].emul};
        tt_verdict v = {.rank = 1, .dim = {2}};
        tt_verdict_check(&v, tt_arith_find("f32"), got, want, emul, 2,
                         TT_OF_ROWS);
        expect((v.outcome == TT_PASS) == c[i].pass, "judge, nonfinite %d",
               (int)i);
    }
    /* Where f16 overflows: what may come of it says nothing, the rest counts */
    static const struct {
        double got, want, emul;
        tt_outcome outcome;
    } f16[] = {{INFINITY, 1e6, INFINITY, TT_UNCHECKED},
               {65504, 1e6, INFINITY, TT_UNCHECKED},
               {-INFINITY, -1e6, NAN, TT_UNCHECKED},
               {NAN, 1e6, NAN, TT_UNCHECKED}, {1e6, 1e6, NAN, TT_PASS},
               {NAN, 1e6, INFINITY, TT_MISMATCH}, {0, 1e6, NAN, TT_MISMATCH},
               {-1e30, 1e6, NAN, TT_MISMATCH},
               {-3, 1e6, INFINITY, TT_MISMATCH},
               {-65504, 1e6, INFINITY, TT_MISMATCH},
               {-INFINITY, 1e6, NAN, TT_MISMATCH}};
    for (size_t i = 0; i < sizeof f16 / sizeof f16[0]; i++) {
        const double got[2] = {f16[i].got, 1}, want[2] = {f16[i].want, 1},
                     emul[2] = {f16[i].emul, 1};
        const bool skips = f16[i].outcome == TT_UNCHECKED;
        tt_verdict v = {.rank = 1, .dim = {1}};
        tt_verdict_check(&v, tt_arith_find("f16"), got, want, emul, 1,
                         TT_OF_ROWS);
        expect(v.outcome == f16[i].outcome, "f16 %d alone", (int)i);
        v = (tt_verdict){.rank = 1, .dim = {2}};
        tt_verdict_check(&v, tt_arith_find("f16"), got, want, emul, 2,
                         TT_OF_ROWS);
        expect(v.outcome == (skips ? TT_PASS : f16[i].outcome), "f16 %d",
               (int)i);
        expect(skips == (strstr(v.hint, "not checked: 1 of 2") != NULL),
               "f16 %d says \"%s\"", (int)i, v.hint);
    }
    tt_verdict none = {.rank = 1, .dim = {0}};
    tt_verdict_check(&none, tt_arith_find("f32"), NULL, NULL, NULL, 0,
                     TT_OF_SEGMENT);
    expect(none.outcome == TT_PASS && none.m.n == 0, "judge, no elements");
}

/* What is named for a path lies before that very point. */
static void test_points(void)
{
    static const struct {
        const char *path, *operators;
    } c[] = {{"chunk.0/step.0/x", "noise, add_noise"},
             {"chunk.0/step.0/x0", "x - sigma flow"},
             {"chunk.0/step.0/e", "sinusoid, linear, silu, linear (time "
                                  "embedding)"},
             {"chunk.0/step.0/e0", "silu, linear (time projection)"},
             {"chunk.3/step.4/block.1/admit.0/grab.score", "mass + alpha div"},
             {"chunk.0/cache.1/frame", "cache write, select"},
             {"chunk.0/cache.1/k", "cache write, select, edit"},
             {"memory_index", ""}, {"grab_score", ""}, {"something", ""}};
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++)
        expect(!strcmp(tt_tap_operators(c[i].path), c[i].operators),
               "%s: \"%s\"", c[i].path, tt_tap_operators(c[i].path));
}

int main(void)
{
    ctx = test_begin("validate/dump");
    if (!folder_make()) return test_end();
    put_dump(at("want"), NONE);
    test_faults();
    test_honest();
    test_ties();
    test_astray();
    test_coverage();
    test_unread();
    test_names();
    test_many_kinds();
    test_bad_files();
    test_strided();
    test_shapes();
    test_reports();
    test_expected();
    test_sampler();
    test_numbers();
    test_broken_curve();
    test_empty();
    test_frames();
    test_nonfinite();
    test_points();
    folder_remove();
    return test_end();
}
