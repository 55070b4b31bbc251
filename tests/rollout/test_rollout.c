/* test_rollout.c: properties of whole rollouts on a small model.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Properties: one start for all policies, no influence of threads, tap or
 * interruption, saved states and replays that go on to the same bits, states
 * of other runs refused, an end that costs no clean pass, impossible lengths
 * explained. */
#include <unistd.h>

#include "rollout/run.h"
#include "tests/cache/shown.h"
#include "tests/rollout/tiny.h"
#include "core/device.h"

static void check_same_start(tt_ctx *ctx)
{
    tt_rollout_options o = options("full", -1, 0);
    tt_real *full = whole(ctx, &o);
    o = options("fifo", 9, 2);
    tt_real *fifo = whole(ctx, &o);
    o = options("tether", 9, 2);
    tt_real *tether = whole(ctx, &o);
    const size_t bytes = 9 * SIZE * sizeof *full;
    expect_bits("fifo until the first eviction", full, fifo, bytes);
    expect_bits("tether until the first eviction", full, tether, bytes);
    expect(memcmp(full + 9 * SIZE, fifo + 9 * SIZE, SIZE * sizeof *full)
           && memcmp(fifo + 9 * SIZE, tether + 9 * SIZE, SIZE * sizeof *full),
           "and not longer");

    /* Everything fits: TetherCache does nothing. */
    o = options("tether", 24, 2);
    tt_real *spacious = whole(ctx, &o);
    expect_bits("tether with room", full, spacious,
                FRAMES * SIZE * sizeof *full);

    free(full), free(fifo), free(tether), free(spacious);
}

static void ignore_tap(void *user, const char *path, tt_dtype dtype, int rank,
                       const int64_t *dim, const void *data)
{
    (void)path, (void)dtype, (void)rank, (void)dim, (void)data;
    ++*(int *)user;
}

static void check_threads_and_tap(tt_ctx *ctx)
{
    const tt_rollout_options o = options("tether", 9, 2);
    const int threads = ctx->nthreads;
    ctx->nthreads = 1;
    tt_real *one = whole(ctx, &o);
    ctx->nthreads = 3;
    tt_real *three = whole(ctx, &o);
    ctx->nthreads = threads;
    int taps = 0;
    ctx->tap = ignore_tap;
    ctx->tap_user = &taps;
    tt_real *tapped = whole(ctx, &o);
    ctx->tap = NULL;
    expect(taps > 0, "the tap saw something");
    expect_bits("threads", one, three, FRAMES * SIZE * sizeof *one);
    expect_bits("tap", one, tapped, FRAMES * SIZE * sizeof *one);
    free(one), free(three), free(tapped);
}

/* Noise of seed 11 in the official order: chunk, then step, then frame. */
static void official_noise(tt_real *noise, tt_real *re, int n)
{
    float words[SIZE];
    for (int f = 0; f < n; f++)
        for (int j = 0; j < 4; j++) {
            const int at = f / 3 * 9 + (j - 1) * 3 + f % 3;
            tt_real *to = j == 0 ? noise + f * SIZE : re + at * SIZE;
            tt_noise_frame(words, SIZE, 11, 0, (uint32_t)f, (uint32_t)j);
            for (int i = 0; i < SIZE; i++) to[i] = words[i];
        }
}

/* Noise from a file in the official order is the generator's own. */
static void check_noise_file(tt_ctx *ctx)
{
    tt_rollout_options o = options("fifo", 9, 2);
    tt_real *want = whole(ctx, &o);
    tt_real *noise = calloc(FRAMES * SIZE, sizeof *noise);
    tt_real *re = calloc(3 * FRAMES * SIZE, sizeof *re);
    official_noise(noise, re, FRAMES);
    o.noise.noise = noise;
    o.noise.renoise = re;
    o.noise.seed = 12345;        /* must not matter */
    tt_real *got = whole(ctx, &o);
    expect_bits("noise from a file", want, got, FRAMES * SIZE * sizeof *got);
    free(want), free(noise), free(re), free(got);
}

/* ---- going on ------------------------------------------------------------ */

static const char *state_path(void)
{
    static char path[600];
    tmp_path(path, sizeof path, "state");
    return path;
}

/* Restores it, and sees whether the new cache was erased once more: then what
 * is in its last slot against the rule is gone. */
static void restore(tt_ctx *ctx, tt_rollout *r)
{
    const tt_layer *y = tt_cache_look(tt_rollout_cache(r), 0);
    tt_real *last = y->k + y->cap * y->geo->H * y->geo->D - 1;
    tt_host x = 1;
    tt_put(ctx, last, &x, 1);
    expect_ok(tt_rollout_restore(ctx, r, state_path()), "restore");
    const tt_host *is = tt_get(ctx, last, 1);
    expect(is && (y->len == y->cap || *is == x), "erased before it is loaded");
    x = 0;
    if (y->len < y->cap) tt_put(ctx, last, &x, 1);
}

static void check_resume(tt_ctx *ctx, const tt_rollout_options *o,
                         int64_t chunks)
{
    tt_real *want = whole(ctx, o), *got = calloc(FRAMES * SIZE, sizeof *got);
    tt_rollout *r = start(ctx, o);
    const int64_t n = go(ctx, r, got, chunks);
    expect_ok(tt_rollout_save(ctx, r, state_path()), "save");
    tt_rollout_close(r);

    r = start(ctx, o);
    restore(ctx, r);
    expect(tt_rollout_frames_done(r) == n, "frames done");
    go(ctx, r, got + n * SIZE, 100);
    tt_rollout_close(r);
    expect_bits("resumed", want, got, FRAMES * SIZE * sizeof *got);
    unlink(state_path());

    r = start(ctx, o);
    expect_ok(tt_rollout_replay(ctx, r, want, n), "replay");
    memset(got, 0, FRAMES * SIZE * sizeof *got);
    memcpy(got, want, (size_t)n * SIZE * sizeof *got);
    go(ctx, r, got + n * SIZE, 100);
    tt_rollout_close(r);
    expect_bits("replayed", want, got, FRAMES * SIZE * sizeof *got);
    free(want), free(got);
}

static void refused(tt_ctx *ctx, const char *what, const tt_rollout_options *o,
                    tt_status want, const char *word)
{
    tt_rollout *r = start(ctx, o);
    const tt_status s = tt_rollout_restore(ctx, r, state_path());
    expect(strstr(tt_message(ctx), word) != NULL, "%s: \"%s\" lacks \"%s\"",
           what, tt_message(ctx), word);
    expect_status(s, want, what);
    expect(tt_rollout_frames_done(r) == 0, "%s: nothing changed", what);
    tt_rollout_close(r);
}

static void check_refused_states(tt_ctx *ctx)
{
    tt_rollout_options o = options("tether", 9, 2);
    o.origin = "a prompt";
    static tt_real buf[FRAMES * SIZE];
    tt_rollout *r = start(ctx, &o);
    go(ctx, r, buf, 4);
    expect_ok(tt_rollout_save(ctx, r, state_path()), "save");
    tt_rollout_close(r);

    tt_rollout_options p = o;
    tt_policy_put(&p.policy, "tau", 0.6);
    refused(ctx, "another tau", &p, TT_EINVAL, "0.6 here");
    p = o, p.noise.seed = 12;
    refused(ctx, "another seed", &p, TT_EINVAL, "seed: 11 there, 12 here");
    p = o, p.origin = "another prompt";
    refused(ctx, "another prompt", &p, TT_EINVAL, "another prompt");
    p = o, p.policy.K = 12;
    refused(ctx, "another budget", &p, TT_EINVAL, "12 here");
    p = o, p.nsteps = 3;
    refused(ctx, "other steps", &p, TT_EINVAL, "steps: ");
    p = o, p.policy = tt_policy_defaults("full");
    refused(ctx, "another policy", &p, TT_EINVAL, "cache: ");
    const tt_ops *ops = ctx->ops, *other = tt_ops_class(ops, TT_CLASS_BF16);
    if (other) {                 /* not in a double build                     */
        char there[64], here[64], both[192];
        tt_bits_name(ops, there, sizeof there);
        tt_bits_name(other, here, sizeof here);
        snprintf(both, sizeof both, "class: %s there, %s here", there,
                 here);
        expect(!strncmp(there, "f32", 3) && !strncmp(here, "bf16", 4),
               "names of bits: %s, %s", there, here);
        ctx->ops = other;
        refused(ctx, "another class", &o, TT_EINVAL, both);
        ctx->ops = ops;
    }

    /* One flipped bit in the middle of the file. */
    FILE *f = fopen(state_path(), "r+b");
    fseek(f, 0, SEEK_END);
    const long at = ftell(f) / 2;
    fseek(f, at, SEEK_SET);
    const int byte = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(byte ^ 1, f);
    fclose(f);
    refused(ctx, "damaged", &o, TT_EFORMAT, "damaged");
    unlink(state_path());
    refused(ctx, "missing", &o, TT_EIO, state_path());

    /* A PyTorch file whose one byte is stretched to 4096 by a stride of 0. */
    r = start(ctx, &o);
    expect_status(tt_rollout_restore(ctx, r,
                                     ref_path("fuzz/strided_state.pt")),
                  TT_EFORMAT, "a state with strides");
    tt_rollout_close(r);
}

/* The state of a video that was to be short goes on in a long one, also where
 * that one has more slots. */
static void check_longer(tt_ctx *ctx, const char *policy, int K)
{
    tt_rollout_options o = options(policy, K, K < 0 ? 0 : 2), p;
    if (tt_policy_knob(o.policy.cls, "compress-to"))
        tt_policy_put(&o.policy, "compress-to", 7);
    p = o;
    tt_real *want = whole(ctx, &o), *got = calloc(FRAMES * SIZE, sizeof *got);
    p.latents = 15;
    tt_rollout *r = start(ctx, &p);
    const int64_t n = go(ctx, r, got, 4);
    expect_ok(tt_rollout_save(ctx, r, state_path()), "save");
    tt_rollout_close(r);
    r = start(ctx, &o);
    expect_ok(tt_rollout_restore(ctx, r, state_path()), policy);
    go(ctx, r, got + n * SIZE, 100);
    tt_rollout_close(r);
    expect_bits("made longer", want, got, FRAMES * SIZE * sizeof *got);
    unlink(state_path());
    free(want), free(got);
}

/* Keys and values of a layer lie head by head, and end with the last token
 * that was ever written. */
static void check_layout(tt_ctx *ctx)
{
    tt_rollout_options o = options("fifo", 9, 2);
    static tt_real buf[FRAMES * SIZE];
    tt_file *f;
    tt_rollout *r = start(ctx, &o);
    const int64_t frames = go(ctx, r, buf, 2);
    const tt_layer *y = tt_cache_layer(tt_rollout_cache(r), 1);
    const int64_t H = y->geo->H, D = y->geo->D, rows = frames * y->geo->L;
    expect_ok(tt_rollout_save(ctx, r, state_path()), "save");
    expect_ok(tt_file_open(ctx, &f, state_path()), "open");
    const tt_entry *e = f ? tt_file_find(f, "layer.1.v") : NULL;
    const int64_t want[] = { H, rows, D };
    if (expect(e && e->t.rank == 3 && !memcmp(e->t.dim, want, sizeof want),
               "layer.1.v is [heads, tokens, head width]")) {
        tt_real *v = calloc((size_t)(H * rows * D), sizeof *v);
        const tt_host *held = tt_get(ctx, y->v, H * rows * D);
        bool equal = held != NULL;
        tt_gather(v, &e->t);
        for (int64_t i = 0; equal && i < H * rows; i++)
            equal = !memcmp(v + i * D, held + (i % rows * H + i / rows) * D,
                            (size_t)D * sizeof *v);
        expect(equal, "heads of layer 1");
        free(v);
    }
    tt_file_close(f);
    tt_rollout_close(r);
    unlink(state_path());
}

static void ignore_warning(void *user, const char *sentence)
{
    (void)user, (void)sentence;
}

/* A position outside the tables is a failure, not an assertion. */
static void check_positions(tt_ctx *ctx)
{
    tt_rollout_options o = options("fifo", 9, 2);
    static tt_real buf[FRAMES * SIZE];
    const tt_real *x;
    int64_t frames;
    for (int i = 0; i < 2; i++) {
        tt_rollout *r = start(ctx, &o);
        go(ctx, r, buf, 4);
        tt_cache_layer(tt_rollout_cache(r), 1)->tpos[0] = i ? -1 : 1000000;
        tt_rollout_next(ctx, r, &x, &frames);
        expect(strstr(tt_message(ctx), "layer 1") != NULL, "\"%s\"",
               tt_message(ctx));
        expect_status(ctx->status, TT_EFORMAT, "a position outside");
        tt_rollout_close(r);
    }
}

/* Whatever the options are, a run goes on after every one of its chunks. */
static void check_honest_states(tt_ctx *ctx)
{
    static const struct { const char *policy; int K, S, R, N, unify; } all[] = {
        {"deep-forcing", 9, 2, 4, 9, 0}, {"deep-forcing", 9, 4, 4, 2, 0},
        {"deep-forcing", 9, 0, 4, 5, 0}, {"deep-forcing", 9, 5, 4, 4, 1},
        {"deep-forcing", 10, 2, 3, 1, 1}, {"deep-forcing", 7, 3, 4, 7, 0},
        {"deep-sink", 9, 5, 4, 7, 0}, {"memrope", 8, 1, 4, 7, 0},
        {"infinity", 7, 1, 4, 7, 0}, {"tether", 7, 1, 3, 7, 0},
        {"tether", 7, 0, 3, 7, 0},
        {"causvid-rolling", 7, 1, 4, 7, 0}};
    static tt_real buf[FRAMES * SIZE];
    ctx->warn = ignore_warning;  /* chunks that do not fill K are meant       */
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tt_rollout_options o = options(all[i].policy, all[i].K, all[i].S);
        o.policy.R = all[i].R;
        if (tt_policy_knob(o.policy.cls, "unify")) {
            tt_policy_put(&o.policy, "compress-to", all[i].N);
            tt_policy_put(&o.policy, "unify", all[i].unify);
        }
        o.independent_first_frame = i % 2;
        o.latents = FRAMES - 2 * (i % 2);
        o.nsteps = 1;
        tt_rollout *r = start(ctx, &o), *again = start(ctx, &o);
        while (go(ctx, r, buf, 1) > 0) {
            expect_ok(tt_rollout_save(ctx, r, state_path()), all[i].policy);
            if (!expect_ok(tt_rollout_restore(ctx, again, state_path()),
                           all[i].policy)) tt_clear(ctx);
        }
        tt_rollout_close(r);
        tt_rollout_close(again);
        unlink(state_path());
    }
    tt_rollout_options o = options("tether", 7, 0);  /* the same bits, too */
    check_resume(ctx, &o, 4);
    ctx->warn = NULL;
}

/* Save a run after four chunks with something changed, and try to go on. */
static void impossible_state(tt_ctx *ctx, const char *policy, const char *what,
                             void (*change)(tt_rollout *r, tt_layer *y))
{
    tt_rollout_options o = options(policy, 9, 2);
    static tt_real buf[FRAMES * SIZE];
    if (tt_policy_knob(o.policy.cls, "compress-to"))
        tt_policy_put(&o.policy, "compress-to", 7);
    tt_rollout *r = start(ctx, &o);
    go(ctx, r, buf, 4);
    if (change) change(r, tt_cache_layer(tt_rollout_cache(r), 2));
    expect_ok(tt_rollout_save(ctx, r, state_path()), what);
    tt_rollout_close(r);
    if (change) {
        refused(ctx, what, &o, TT_EFORMAT, "start the run again");
    } else {
        r = start(ctx, &o);
        expect_ok(tt_rollout_restore(ctx, r, state_path()), what);
        tt_rollout_close(r);
    }
    unlink(state_path());
}

/* Word i of a policy's state, see its `struct state`. */
static void set_word(tt_layer *y, int i, int64_t value)
{
    memcpy((char *)y->state + 8 * i, &value, sizeof value);
}

static void more_chunks(tt_rollout *r, tt_layer *y) { (void)y, r->chunk = 99; }
static void other_frame(tt_rollout *r, tt_layer *y) { (void)y, r->done += 3; }
static void other_clip(tt_rollout *r, tt_layer *y) { (void)y, r->rollout = 1; }
static void long_layer(tt_rollout *r, tt_layer *y) { (void)r, y->len += 1; }
static void seen_more(tt_rollout *r, tt_layer *y) { (void)r, y->seen += 3; }
static void far_token(tt_rollout *r, tt_layer *y)
{
    (void)r;
    y->tpos[7] = FRAMES;
}
static void no_source(tt_rollout *r, tt_layer *y)
{
    (void)r;
    y->src_frame[7] = TT_SRC_SHORT - 1;
}
static void later_source(tt_rollout *r, tt_layer *y)
{
    y->src_frame[7] = (int32_t)r->done;
}
static void no_place(tt_rollout *r, tt_layer *y) { (void)r, y->sidx[7] = -1; }
static void word0(tt_rollout *r, tt_layer *y) { (void)r, set_word(y, 0, 2); }
static void word1(tt_rollout *r, tt_layer *y) { (void)r, set_word(y, 1, -1); }
static void word2(tt_rollout *r, tt_layer *y) { (void)r, set_word(y, 2, 99); }
static void word6(tt_rollout *r, tt_layer *y) { (void)r, set_word(y, 6, -1); }
static void member(tt_rollout *r, tt_layer *y)
{
    (void)r;
    set_word(y, 8, INT64_MAX);   /* mem_index[0] of tether */
}
static void negative0(tt_rollout *r, tt_layer *y)
{
    (void)r;
    set_word(y, 0, -1);
}

static void check_impossible_states(tt_ctx *ctx)
{
    static const char *const policy[] = { "fifo", "causvid-rolling",
        "infinity", "memrope", "deep-sink", "deep-forcing", "tether" };
    for (size_t i = 0; i < sizeof policy / sizeof policy[0]; i++)
        impossible_state(ctx, policy[i], "a state as it is", NULL);
    check_honest_states(ctx);
    check_positions(ctx);
    impossible_state(ctx, "fifo", "chunks", more_chunks);
    impossible_state(ctx, "fifo", "frames", other_frame);
    impossible_state(ctx, "fifo", "rollouts", other_clip);
    impossible_state(ctx, "fifo", "length", long_layer);
    impossible_state(ctx, "fifo", "frames seen", seen_more);
    impossible_state(ctx, "fifo", "position", far_token);
    impossible_state(ctx, "fifo", "source", no_source);
    impossible_state(ctx, "fifo", "a source to come", later_source);
    impossible_state(ctx, "fifo", "place", no_place);
    impossible_state(ctx, "tether", "filled", word0);
    impossible_state(ctx, "tether", "occupancy", word1);
    impossible_state(ctx, "tether", "pending", word2);
    impossible_state(ctx, "tether", "edits", word6);
    impossible_state(ctx, "tether", "member", member);
    impossible_state(ctx, "memrope", "filled", word0);
    impossible_state(ctx, "infinity", "rolled", word0);
    impossible_state(ctx, "deep-sink", "moving", word0);
    impossible_state(ctx, "deep-sink", "start", word1);
    impossible_state(ctx, "deep-forcing", "events", negative0);
    impossible_state(ctx, "deep-forcing", "window", word2);
}

/* ---- given latents, interruption, options -------------------------------- */

/* Given chunks beyond K are scored like any other when the clean pass runs at
 * t = 0, as theirs does; with another context noise they are only cached. */
static void check_given_scores(tt_ctx *ctx, int64_t context_noise)
{
    static tt_real given[15 * SIZE], buf[FRAMES * SIZE];
    for (int i = 0; i < 15 * SIZE; i++) given[i] = (tt_real)(i % 83) / 41 - 1;
    tt_rollout_options o = options("tether", 9, 2);
    o.latents = 3;
    o.initial = given;
    o.initial_frames = 15;
    o.context_noise = context_noise;
    tt_rollout *r = start(ctx, &o);
    for (int64_t chunk = 0; chunk < 6; chunk++) {
        tether_layer t;
        go(ctx, r, buf, 1);
        tether_look(tt_rollout_cache(r), 2, &t);
        const bool last = chunk == 5, scored = context_noise == 0;
        expect(t.filled == (last || (scored && chunk >= 2))
               && t.admissions + t.rejections
                   == (scored ? (chunk >= 3 ? 3 * (chunk - 2) : 0)
                              : (last ? 3 : 0)),
               "given chunk %d at context noise %d", (int)chunk,
               (int)context_noise);
    }
    tt_rollout_close(r);
}

/* Extending a video: the given frames come back, and the generated ones count
 * from 0 in the noise. */
static void check_given(tt_ctx *ctx)
{
    static tt_real given[6 * SIZE];
    for (int i = 0; i < 6 * SIZE; i++) given[i] = (tt_real)(i % 89) / 44 - 1;
    tt_rollout_options o = options("tether", 9, 2);
    o.latents = 18;
    o.initial = given;
    o.initial_frames = 6;
    tt_real *out = whole(ctx, &o);
    expect_bits("given frames", out, given, sizeof given);
    tt_rollout_options p = o;
    tt_real *noise = calloc(18 * SIZE, sizeof *noise);
    tt_real *re = calloc(3 * 18 * SIZE, sizeof *re);
    p.noise.noise = noise;
    p.noise.renoise = re;
    official_noise(noise, re, 18);
    tt_real *same = whole(ctx, &p);
    expect_bits("noise after given frames", out, same,
                FRAMES * SIZE * sizeof *out);
    free(noise), free(re), free(same);
    check_resume(ctx, &o, 1);
    check_resume(ctx, &o, 4);
    o.context_noise = 100;       /* given chunks are cached, not scored */
    check_resume(ctx, &o, 1);
    free(out);
}

static void stop_after(void *user, const tt_progress *p)
{
    if (p->chunk == 4 && p->step == 2) *(volatile int *)user = 1;
}

static void check_interrupt(tt_ctx *ctx)
{
    const tt_rollout_options o = options("tether", 9, 2);
    volatile int stop = 0;
    static tt_real buf[FRAMES * SIZE];
    tt_rollout *r = start(ctx, &o);
    tt_rollout_on_progress(r, stop_after, (void *)&stop);
    ctx->interrupt = &stop;
    const tt_real *x;
    int64_t f, chunks = 0;
    while (tt_rollout_next(ctx, r, &x, &f) == TT_OK)
        memcpy(buf + 3 * SIZE * chunks++, x, 3 * SIZE * sizeof *x);
    expect(chunks == 4, "four chunks stand, %d", (int)chunks);
    expect_status(ctx->status, TT_EINTR, "interrupted");
    ctx->interrupt = NULL;
    tt_rollout_close(r);

    tt_real *want = whole(ctx, &o);
    r = start(ctx, &o);
    expect_ok(tt_rollout_replay(ctx, r, buf, 12), "replay");
    go(ctx, r, buf + 12 * SIZE, 100);
    tt_rollout_close(r);
    expect_bits("after an interruption", want, buf, sizeof buf);
    free(want);
}

/* ---- the end ------------------------------------------------------------- */

/* Passes of the last chunk and of the one before, as progress tells them. */
typedef struct reported {
    int steps[2], of[2];
} reported;

static void listen(void *user, const tt_progress *p)
{
    reported *t = user;
    const int64_t i = p->chunk + 2 - p->chunks;
    if (i < 0) return;
    t->steps[i]++;
    t->of[i] = p->steps;
}

/* The last chunk takes so many passes. */
static void run_to_end(tt_ctx *ctx, tt_rollout *r, tt_real *out, int passes)
{
    reported t = {{0}, {0}};
    tt_rollout_on_progress(r, listen, &t);
    go(ctx, r, out, 1);
    expect(t.steps[1] == passes && t.of[1] == passes, "the last chunk takes "
           "%d passes of %d, not %d", t.steps[1], t.of[1], passes);
}

/* A run whose end no one looks after: the same latents with a pass less, and
 * no state of it; a tap looks. */
static void check_ends(tt_ctx *ctx, tt_rollout_options o)
{
    const int64_t chunk = SIZE * o.chunk;
    tt_real *want = whole(ctx, &o), *got = calloc(FRAMES * SIZE, sizeof *got);
    int taps = 0;
    reported t = {{0}, {0}};
    o.ends = true;
    tt_rollout *r = start(ctx, &o);
    const int64_t n = tt_rollout_chunks(r);
    const size_t bytes = (size_t)(n * chunk) * sizeof *got;
    tt_rollout_on_progress(r, listen, &t);
    go(ctx, r, got, n - 1);
    expect(t.steps[0] == 5 && t.of[0] == 5, "the one before takes all");
    expect_ok(tt_rollout_save(ctx, r, state_path()), "between chunks");
    run_to_end(ctx, r, got + (n - 1) * chunk, 4);
    expect_bits(o.policy.name, want, got, bytes);
    tt_rollout_save(ctx, r, "gone");
    expect(strstr(tt_message(ctx), "clean pass") && access("gone", F_OK),
           "no state of it, and why");
    expect_status(ctx->status, TT_EINVAL, "a state of it");
    tt_clear(ctx);
    expect_ok(tt_rollout_restore(ctx, r, state_path()), "back to the last one");
    expect_ok(tt_rollout_save(ctx, r, state_path()), "which is whole");
    memset(got + (n - 1) * chunk, 0, (size_t)chunk * sizeof *got);
    ctx->tap = ignore_tap;
    ctx->tap_user = &taps;
    run_to_end(ctx, r, got + (n - 1) * chunk, 5);
    expect(taps > 0, "a tap sees all passes");
    ctx->tap = NULL;
    expect_bits(o.policy.name, want, got, bytes);
    expect_ok(tt_rollout_save(ctx, r, state_path()), "so there is a state");
    tt_rollout_close(r);
    unlink(state_path());
    free(want), free(got);
}

static void impossible(tt_ctx *ctx, tt_rollout_options o, const char *word)
{
    tt_rollout *r;
    const tt_status s = tt_rollout_open(ctx, &r, model, prompt, &o);
    expect(r == NULL && strstr(tt_message(ctx), word), "\"%s\" lacks \"%s\"",
           tt_message(ctx), word);
    expect_status(s, TT_EINVAL, word);
    expect(tt_rollout_bytes(ctx, model, &o) == -1, "no size: %s", word);
}

static void check_lengths(tt_ctx *ctx)
{
    tt_rollout_options o = options("fifo", 9, 2);
    expect(tt_rollout_bytes(ctx, model, &o) > 3 * 2 * 9 * 6 * 80 * 4, "bytes");
    o.latents = 20;
    impossible(ctx, o, "18 and 21");
    o.latents = 2;
    impossible(ctx, o, "3 at least");
    o.latents = 0;
    impossible(ctx, o, "0 latent frames");
    o.latents = 21;
    o.independent_first_frame = true;
    impossible(ctx, o, "19 and 22");
    o = options("fifo", 9, 2);
    o.w = 5;
    impossible(ctx, o, "even");
    o.h = o.w = (int64_t)1 << 20;  /* frames * tokens would not fit 64 bits */
    o.latents = ((int64_t)1 << 24) - 1;
    impossible(ctx, o, "tokens per frame");
    o = options("fifo", 9, 2);
    static const tt_real given[4 * SIZE];
    o.initial = given;
    o.initial_frames = 4;
    impossible(ctx, o, "3 and 6");
    o.independent_first_frame = true;
    o.latents = 22;
    impossible(ctx, o, "21 and 24");
}

int main(void)
{
    tt_ctx *ctx = test_begin("rollout/rollout");
    load(ctx);
    check_same_start(ctx);
    check_threads_and_tap(ctx);
    check_noise_file(ctx);
    tt_rollout_options o = options("tether", 9, 2);
    check_resume(ctx, &o, 2);
    check_resume(ctx, &o, 5);
    o = options("fifo", 7, 1);
    check_resume(ctx, &o, 4);
    check_refused_states(ctx);
    check_longer(ctx, "fifo", 9);
    check_longer(ctx, "full", -1);
    check_longer(ctx, "deep-forcing", 9);
    check_layout(ctx);
    check_impossible_states(ctx);
    check_given(ctx);
    check_given_scores(ctx, 0);
    check_given_scores(ctx, 100);
    check_interrupt(ctx);
    check_ends(ctx, options("tether", 9, 2));
    check_ends(ctx, options("fifo", 7, 1));
    check_ends(ctx, evicting_for("deep-forcing", FRAMES, 1));
    check_ends(ctx, evicting_for("causvid", FRAMES, 2));
    check_lengths(ctx);
    tt_prompt_free(prompt);
    tt_dit_close(model);
    return test_end();
}
