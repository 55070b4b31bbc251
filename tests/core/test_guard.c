/* test_guard.c: memory of a device: the verbs, arenas of both kinds, and that
 * the guard finds what it is there for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guard.h"
#include "tests/harness.h"

static tt_ctx *ctx;

/* 1, 2, ... as values. */
static tt_real *some(int64_t n)
{
    tt_real *x = tt_values(ctx, n);
    tt_host *h = tt_map_write(ctx, x, n);
    for (int64_t i = 0; h && i < n; i++) h[i] = (tt_host)(i + 1);
    tt_put(ctx, x, h, n);
    return x;
}

static bool holds(const tt_real *x, const tt_host *want, int64_t n)
{
    const tt_host *h = tt_get(ctx, x, n);
    return h && !memcmp(h, want, (size_t)n * sizeof *want);
}

/* The same on the host, where nothing is copied, and on the guard. */
static void test_verbs(void)
{
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_real *x = some(6);
    tt_real *zeros = tt_values0_in(ctx, &ctx->scratch, 3, "zeros");
    tt_host own[2] = {20, 30};
    expect(holds(x, (tt_host[]){1, 2, 3, 4, 5, 6}, 6), "put and get");
    expect(holds(zeros, (tt_host[]){0, 0, 0}, 3), "zeros");
    tt_copy(ctx, x + 1, x, 4);
    expect(holds(x, (tt_host[]){1, 1, 2, 3, 4, 6}, 6), "an overlapping copy");
    tt_zero(ctx, x + 4, 2);
    tt_add(ctx, x, tt_send(ctx, own, 2), 2);
    expect(holds(x, (tt_host[]){21, 31, 2, 3, 0, 0}, 6), "zero, send, add");
    const int64_t dim[] = {1, 2};
    const tt_tensor w = tt_values_view(x + 2, 2, dim);
    tt_linear(ctx, zeros, x, 1, &w, NULL);
    expect(holds(zeros, (tt_host[]){21 * 2 + 31 * 3}, 1), "values as weights");
    tt_host stored[2] = {5, 7};
    const tt_tensor file = tt_tensor_make(
        stored, sizeof *stored == 8 ? TT_F64 : TT_F32, 2, dim);
    const tt_tensor placed = tt_place(ctx, &ctx->scratch, &file);
    tt_linear(ctx, zeros, x, 1, &placed, NULL);
    expect(holds(zeros, (tt_host[]){21 * 5 + 31 * 7}, 1), "placed weights");
    expect_ok(ctx->status, "verbs");
    tt_arena_reset(&ctx->scratch, m);
}

/* So long that threads share it. */
static void test_zero_all(void)
{
    enum { N = 300000, FROM = 3, UPTO = N - 5 };
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_real *const to[] = {some(N), some(N), some(N)};
    tt_zero_all(ctx, to, 2, FROM, UPTO);
    tt_zero_all(ctx, to, 2, FROM, FROM);
    tt_zero_all(ctx, to, 2, FROM, 0);
    for (int i = 0; i < 3; i++) {
        const tt_host *h = tt_get(ctx, to[i], N);
        int64_t wrong = 0;
        for (int64_t j = 0; h && j < N; j++) {
            const bool zero = i < 2 && j >= FROM && j < UPTO;
            wrong += h[j] != (zero ? (tt_host)0 : (tt_host)(j + 1));
        }
        expect(h && !wrong, "array %d: %lld numbers are wrong", i,
               (long long)wrong);
    }
    tt_arena_reset(&ctx->scratch, m);
}

static bool listed(const tt_index *list, const int32_t *want, int64_t n)
{
    const int32_t *h = tt_get_indices(ctx, list, n);
    return h && !memcmp(h, want, (size_t)n * sizeof *want);
}

static void test_places(void)
{
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_index *list = tt_indices(ctx, &ctx->scratch, 8);
    tt_index *at = tt_indices(ctx, &ctx->scratch, 12);
    tt_locate(ctx, &(tt_locate_args){ .to = at, .t0 = 7, .first = 5, .n = 4,
                                      .L = 6, .w = 3});
    expect(listed(at, (int32_t[]){7, 1, 2, 8, 0, 0, 8, 0, 1, 8, 0, 2}, 12),
           "from inside a frame");
    tt_locate(ctx, &(tt_locate_args){ .to = at, .time = (int32_t[]){9, 2},
                                      .first = 5, .n = 2, .L = 6, .w = 3});
    expect(listed(at, (int32_t[]){9, 1, 2, 2, 0, 0}, 6), "times of frames");
    tt_put_indices(ctx, list, (int32_t[]){7, 8, 5, 6, 1}, 5);
    tt_pick(ctx, &(tt_pick_args){list + 5, list, list + 4, 1, 1, 2, 2});
    expect(listed(list + 5, (int32_t[]){5}, 1), "a part of a row");
    tt_index *wide = tt_indices(ctx, &ctx->scratch, 5);
    tt_put_indices(ctx, list, (int32_t[]){7, 8, 5, 6, 1, 0}, 6);
    tt_put_indices(ctx, wide, (int32_t[]){-1, -1, -1, -1, -1}, 5);
    tt_pick(ctx, &(tt_pick_args){wide, list, list + 4, 2, 1, 2, 3});
    expect(listed(wide, (int32_t[]){5, -1, -1, 7, -1}, 5), "rows apart");
    expect_ok(ctx->status, "places");
    tt_arena_reset(&ctx->scratch, m);
}

/* Copies of every kind against memmove: few and many values, apart and over
 * each other in both directions, by one thread and by three. */
static void test_copies(void)
{
    static const struct { int64_t to, from, n; } c[] = {
        {0, 9, 7}, {9, 0, 9}, {0, 1, 100000}, {1, 0, 100000},
        {3, 20003, 100000}, {0, 20000, 300001}, {20001, 1, 100000},
        {300000, 0, 300000}, {1, 300002, 300001}, {0, 2200001, 2200001},
        {4400001, 2, 2200003}, {5, 2200004, 4400003}};
    enum { ALL = 7000000 };
    const int threads = ctx->nthreads;
    for (size_t i = 0; i < 2 * sizeof c / sizeof *c; i++) {
        const size_t k = i / 2;
        const tt_arena_mark m = tt_arena_here(&ctx->scratch);
        tt_real *x = some(ALL);
        tt_host *want = tt_scratch(ctx, ALL);
        for (int64_t j = 0; want && j < ALL; j++) want[j] = (tt_host)(j + 1);
        if (want)
            memmove(want + c[k].to, want + c[k].from,
                    (size_t)c[k].n * sizeof *want);
        ctx->nthreads = i % 2 ? 3 : 1;
        tt_copy(ctx, x + c[k].to, x + c[k].from, c[k].n);
        expect(holds(x, want, ALL), "copy %zu, %d threads", k, ctx->nthreads);
        ctx->nthreads = threads;
        tt_arena_reset(&ctx->scratch, m);
    }
}

/* One mark serves both kinds of blocks, and blocks are used again. */
static void test_marks(void)
{
    const int64_t n = 1 << 20;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const tt_real *first = tt_values(ctx, n);
    tt_arena_reset(&ctx->scratch, m);
    expect(tt_values(ctx, n) == first, "what was given back is taken again");
    tt_arena_reset(&ctx->scratch, m);
    tt_arena a = {0};
    expect(tt_values_in(ctx, &a, 3, "values") && tt_alloc(ctx, &a, 3, 8, "a"),
           "both kinds in one arena");
    tt_arena_free(&a);
    expect(!a.values && !a.top, "and nothing is left of it");
}

/* Does this end the process, and so? */
static bool dies(void (*touch)(tt_real *))
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        alarm(60);
        ctx->nthreads = 1;   /* OpenMP's threads do not follow a fork */
        touch(some(4));
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status)
           && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS);
}

static void reads(tt_real *x)
{
    volatile tt_host seen = x[2];
    (void)seen;
}

static void writes(tt_real *x)
{
    ((volatile tt_host *)x)[2] = 1;
}

static void nothing(tt_real *x)
{
    tt_add(ctx, x, x + 2, 2);
}

static void refused(const char *sentence)
{
    expect(ctx->status == TT_EINVAL && !strcmp(tt_message(ctx), sentence),
           "'%s' expected: %s", sentence, tt_message(ctx));
    tt_clear(ctx);
}

static void test_guard(void)
{
    tt_host own[4] = {0};
    tt_real *x = some(4);
    /* a sanitizer that catches the signal ends the child in its own way */
    expect(dies(reads), "a read of a value is found");
    expect(dies(writes), "a write of a value is found");
    expect(!dies(nothing), "operators may");
    guard_strict(true);
    tt_add(ctx, x, own, 4);
    refused("add: y is memory of the host");
    tt_copy(ctx, own, x, 4);
    refused("copy: to is memory of the host");
    tt_put(ctx, x, x, 4);
    refused("put: from is memory of the device");
    tt_get(ctx, own, 4);
    refused("get: from is memory of the host");
    guard_strict(false);
}

int main(void)
{
    ctx = test_begin("core/guard");
    if (!ctx->device) {
        test_verbs();
        test_zero_all();
        test_places();
            test_copies();
        test_marks();
    }
    if (ctx->device || guard_install(ctx)) {
        test_verbs();
        test_zero_all();
        test_places();
            test_copies();
        test_marks();
        test_guard();
    } else {
        skip("this system cannot map memory twice");
    }
    return test_end();
}
