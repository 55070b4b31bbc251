/* policies.c: the caches that TetherCache is compared with.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Code    CausVid, Reward-Forcing, infinity-RoPE, MemRoPE, Deep Forcing (as redistributed in
 *         Relax-Forcing), Rolling Sink.
 * All of them evict in the first pass of a chunk that does not fit. */
#include "golden.h"

/* ---- CausVid --------------------------------------------------------------------------------- */
/* Clips that hold every frame, restarted by sampler.c. A shift of 8, steps that are not warped. */
static const double causvid_steps[] = {1000, 757, 522, 0};

static void causvid_check(cache *c, const geometry *g) {
    check_window(c, g);
    if (g->frames > c->K) usage("causvid: at most %d frames: the budget; use --rollouts", c->K);
}

const policy causvid = {
    .name = "causvid", .about = "clips without eviction, restarted from the end of the last",
    .steps = causvid_steps, .check = causvid_check,
    .knobs = {{"budget", 21, NULL}, {"rollouts", 1, NULL}, {"overlap", 3, NULL},
              {"restart", 0, "vae|latent"}}};

const policy causvid_rolling = {
    .name = "causvid-rolling", .about = "CausVid's schedule with the window of fifo",
    .knobs = {{"budget", 21, NULL}, {"sink", 0, NULL}}, .steps = causvid_steps};

/* ---- Reward-Forcing: a sink that takes in what leaves the window ----------------------------- */
/* sink = keep sink + (1 - keep) what leaves, token by token. Code, and we: where fewer or more
 * frames leave than the sink has, they replace its first ones. */
static void enter_sink(cache *c, const pass *p) {
    const int sink = c->S * c->L, leave = c->length + p->frames * c->L - c->capacity;
    const size_t n = (size_t)sink * c->width;
    const double keep = setting(c->o, "sink-keep");
    const float a = (float)keep, b = (float)(1 - keep);
    if (leave == sink) mix(c->k, a, c->k, b, c->k + n, n), mix(c->v, a, c->v, b, c->v + n, n);
    else if (leave > 0) cache_move(c, 0, sink, leave < sink ? leave : sink);
    cache_roll(c, p, sink);
}

const policy reward = {
    .name = "reward", .about = "a sink that follows the window slowly, recent frames",
    .knobs = {{"budget", 9, NULL}, {"sink", 3, NULL}, {"sink-keep", 0.999, NULL}},
    .check = check_sink, .evict = enter_sink, .positions = by_slot};

/* ---- infinity-RoPE: positions count slots; scenes flush -------------------------------------- */
static void *two_numbers(const cache *c) { return (void)c, memory(2, sizeof(int)); }

/* A scene keeps frame slot 0 and takes the last two of the buffer, live or not, as slots 1 and 2.
 * own: something left in this pass. */
static void flush_or_roll(cache *c, const pass *p) {
    if (p->scene) {
        trace(c, p, "flush", "slots 0, %d and %d stay", c->K - 2, c->K - 1);
        cache_move(c, c->L, c->capacity - 2 * c->L, 2 * c->L);
        c->length = 3 * c->L;
    }
    *(int *)c->own = cache_roll(c, p, c->S * c->L);
}

/* Code: queries are at K - C in the pass that evicts; else at their frame while that is below K,
 * and at K - C after it. At a cut the chunk jumps to `cut-at`, for all its passes. Slot 0 without a
 * sink is never rotated, once it is not frame 0: only `raw-slot0` allows that. */
static int infinity_at(const cache *c, const pass *p, position *at) {
    const int old = c->length - p->frames * c->L, cut = (int)setting(c->o, "cut-at");
    by_slot(c, p, at);
    for (int i = old; p->cut && i < c->length; i++) at[i].frame = cut + (i - old) / c->L;
    for (int i = 0; c->S == 0 && c->time[0] != 0 && i < c->L; i++) at[i].frame = UNROTATED;
    if (p->cut) return cut;
    const bool rolled = c->first && *(int *)c->own;
    return !rolled && p->start < c->K ? p->start : c->K - p->frames;
}

static void infinity_check(cache *c, const geometry *g) {
    check_window(c, g);
    if (c->S < 1 && setting(c->o, "raw-slot0") == 0) usage("infinity: the sink needs a frame");
    if (g->scenes > 1 && (c->K < 5 || c->K < 3 + g->chunk))
        usage("infinity: scenes need a budget of at least 5, and 3 + chunk");
}

const policy infinity = {
    .name = "infinity", .about = "a short window at positions from 0, flushed at scenes",
    .knobs = {{"budget", 6, NULL}, {"sink", 1, NULL}, {"cut-at", 45, NULL}, {"raw-slot0", 0, NULL}},
    .check = infinity_check, .open = two_numbers, .evict = flush_or_roll, .positions = infinity_at};

/* ---- MemRoPE: two running averages of what was evicted --------------------------------------- */
/* The fast rate of every token, from how far its mean key has moved. */
static void adapt(double *rate, const cache *c, const float *k, const double *mean, double alpha) {
    double top = 0;
    for (int t = 0; t < c->L; t++) {
        double sum = 0;
        for (int h = 0; h < c->heads; h++) {
            double square = 0;
            for (int i = 0; i < c->D; i++) {
                const size_t at = (size_t)t * c->width + h * c->D + i;
                square += (mean[at] - k[at]) * (mean[at] - k[at]);
            }
            sum += sqrt(square);
        }
        rate[t] = sum / c->heads;
        top = fmax(top, rate[t]);
    }
    for (int t = 0; t < c->L; t++)
        rate[t] = 0.1 * alpha + rate[t] / (top + 1e-8) * (5 * alpha - 0.1 * alpha);
}

/* Frames S and S + 1 hold a slow and a fast average; n tokens from slot `from` on are absorbed.
 * Code: the first time both become the mean, and the frames that were there are lost. */
static void absorb(cache *c, int from, int n) {
    int *filled = c->own;
    const bool adaptive = setting(c->o, "adaptive") != 0;
    const size_t frame = (size_t)c->L * c->width, w = adaptive ? frame : (size_t)c->width;
    const int rows = adaptive ? n / c->L : n;
    const double slow = *filled ? setting(c->o, "alpha-long") : 1;
    const double fast = *filled ? setting(c->o, "alpha-short") : 1;
    double *mean = doubles(2 * w), *rate = doubles((size_t)c->L);
    float *k = key_at(c, from - 2 * c->L), *v = value_at(c, from - 2 * c->L);
    column_mean(mean, key_at(c, from), rows, w);
    column_mean(mean + w, value_at(c, from), rows, w);
    blend(k, mean, frame, w, slow);
    blend(v, mean + w, frame, w, slow);
    for (int t = 0; t < c->L; t++) rate[t] = fast;
    if (adaptive && *filled) adapt(rate, c, k + frame, mean, fast);
    for (int t = 0; t < c->L; t++) {
        const size_t at = (size_t)t * c->width, of_token = adaptive ? at : 0;
        blend(k + frame + at, mean + of_token, c->width, c->width, rate[t]);
        blend(v + frame + at, mean + w + of_token, c->width, c->width, rate[t]);
    }
    *filled = true;
    free(mean), free(rate);
}

static void memrope_evict(cache *c, const pass *p) {
    const bool ema = setting(c->o, "memrope-method") == 0;
    const int kept = (c->S + (ema ? 2 : 0)) * c->L;
    const int excess = c->length + p->frames * c->L - c->capacity;
    if (ema && excess > 0) absorb(c, kept, excess);
    cache_roll(c, p, kept);
}

static void memrope_check(cache *c, const geometry *g) {
    const bool ema = setting(c->o, "memrope-method") == 0;
    check_sink(c, g);
    if (ema && c->K < c->S + 2 + g->chunk) usage("memrope: K must be at least S + 2 + chunk");
    if (setting(c->o, "adaptive") != 0 && !ema) usage("memrope: adaptive needs the method ema");
}

const policy memrope = {
    .name = "memrope", .about = "sink, a slow and a fast average of evicted frames, recent frames",
    .knobs = {{"budget", 12, NULL}, {"sink", 3, NULL}, {"memrope-method", 0, "ema|eviction"},
              {"alpha-long", 0.01, NULL}, {"alpha-short", 0.1, NULL}, {"adaptive", 0, NULL}},
    .check = memrope_check, .open = two_numbers, .evict = memrope_evict, .positions = by_slot};

/* ---- Deep Forcing: the deep sink, which moves along in time ---------------------------------- */
/* own: has it moved, and for which chunk the last time. */
static void move_sink(cache *c, const pass *p) {
    int *moving = c->own, *last = moving + 1;
    if (!cache_roll(c, p, c->S * c->L)) return;
    for (int i = 0; *moving && i < c->S * c->L; i++) c->time[i] += p->start - *last;
    *moving = 1, *last = p->start;
}

const policy deep_sink = {
    .name = "deep-sink", .about = "a long sink that moves along in time, recent frames",
    .knobs = {{"budget", 21, NULL}, {"sink", 14, NULL}}, .open = two_numbers, .evict = move_sink};

/* ---- Deep Forcing: participative compression ------------------------------------------------- */
/* Rotated queries of the last R frames, of whatever pass; how often each token was selected;
 * compressions so far, and where the last one wanted the sink. */
typedef struct deep {
    int events, base, frames;
    float *query;                /* [R L, width]                                                  */
    int *reuse;                  /* [slots]                                                       */
} deep;

static void remember(cache *c, const pass *p) {
    deep *y = c->own;
    const size_t frame = (size_t)c->L * c->width;
    const int n = p->frames * c->L, drop = y->frames + p->frames - c->R;
    position *at = memory((size_t)n, sizeof *at);
    for (int i = 0; i < n; i++) at[i] = token_position(c, p->start + i / c->L, i % c->L);
    if (drop > 0) {
        y->frames -= drop;
        memmove(y->query, y->query + drop * frame, y->frames * frame * sizeof *y->query);
    }
    rope(y->query + y->frames * frame, c->new_q, n, c->heads, c->D, at);
    y->frames += p->frames;
    free(at);
}

/* phi sqrt(D) H of n tokens: the product with the sum of all queries, or the largest product with
 * one. Sum first: by frame, in double. */
static void deep_scores(float *score, const cache *c, int n) {
    const deep *y = c->own;
    const size_t width = (size_t)c->width;
    const bool largest = setting(c->o, "fusion") == 1;
    const int queries = largest ? y->frames * c->L : 1;
    float *key = floats(n * width), *sum = floats(width), *dot = floats((size_t)n * queries);
    double *mean = doubles(2 * width), *total = mean + width;
    position *at = memory((size_t)n, sizeof *at);
    for (int f = 0; f < y->frames; f++) {
        column_mean(mean, y->query + f * c->L * width, c->L, width);
        for (size_t i = 0; i < width; i++) total[i] += mean[i];
    }
    for (size_t i = 0; i < width; i++) sum[i] = (float)(total[i] * c->L);
    for (int i = 0; i < n; i++) at[i] = token_position(c, c->time[i], c->place[i]);
    rope(key, c->k, n, c->heads, c->D, at);
    linear(dot, key, n, &(dense){.w = largest ? y->query : sum, .out = queries, .in = c->width});
    for (int i = 0; i < n; i++) {
        score[i] = dot[i * queries];
        for (int r = 1; r < queries; r++) score[i] = fmaxf(score[i], dot[i * queries + r]);
    }
    free(key), free(sum), free(dot), free(mean), free(at);
}

/* The `count` best tokens of [from, to) that were not selected too often. Code: ties are undefined.
 * We: the lower slot. Returns how many there are. */
static int deep_select(const cache *c, bool *keep, int from, int to, int count) {
    const int limit = (int)setting(c->o, "max-reuse");
    const deep *y = c->own;
    float *score = floats((size_t)to);
    int selected = 0;
    deep_scores(score, c, to);
    for (int best = from; best >= 0 && selected < count; ) {
        best = -1;
        for (int i = from; i < to; i++)
            if (!keep[i] && (!limit || y->reuse[i] < limit)
                && (best < 0 || score[i] > score[best])) best = i;
        if (best >= 0) keep[best] = true, selected++;
    }
    free(score);
    return selected;
}

/* The chunk competes too, so it is written after the live tokens first. Sinks, selected tokens and
 * the last R frames move together.
 * Its paper: selected tokens get positions right before the recent ones (eqs. 10, 11). Code: moves
 * no token, by a slip. We: where `unify` is set.
 * Its paper: sinks move to where recent frames begin (eq. 5). Code, and we: the first time by
 * K - N, then as `desired` grows. */
static void deep_compress(cache *c, const pass *p) {
    deep *y = c->own;
    const int L = c->L, sink = c->S * L, n = c->length + p->frames * L, recent = n - y->frames * L;
    const int N = (int)setting(c->o, "compress-to");
    bool *keep = memory((size_t)n, sizeof *keep);
    int to = 0;
    cache_write(c, p, c->length);
    const int tail = c->time[recent];
    const int selected = deep_select(c, keep, sink, recent, N * L - sink - y->frames * L);
    for (int i = 0; i < n; i++) {
        if (i >= sink && i < recent && !keep[i]) continue;
        cache_move(c, to, i, 1);
        y->reuse[to++] = y->reuse[i] + keep[i];
    }
    c->length = to;
    for (int i = 0; setting(c->o, "unify") != 0 && i < selected; i++)
        c->time[sink + i] = tail - (selected + L - 1) / L + i / L;
    const int desired = p->start - (to - sink) / L - c->S;
    const int by = y->events++ ? desired - y->base : c->K - N;
    for (int i = 0; i < sink; i++) c->time[i] += by;
    y->base = desired;
    trace(c, p, "compress", "%d tokens stay, %d selected; the sink moves by %d", to, selected, by);
    free(keep);
}

static void deep_evict(cache *c, const pass *p) {
    deep *y = c->own;
    const int n = p->frames * c->L;
    remember(c, p);
    memset(y->reuse + c->length, 0, (size_t)n * sizeof *y->reuse);
    if (c->length + n > c->capacity) deep_compress(c, p);
    else c->length += n;
}

static void deep_commit(cache *c, const pass *p) { if (!c->first) remember(c, p); }

static void *deep_open(const cache *c) {
    deep *y = memory(1, sizeof *y);
    y->query = floats((size_t)c->R * c->L * c->width);
    y->reuse = memory((size_t)(c->K + c->chunk) * c->L, sizeof *y->reuse);
    return y;
}

static void deep_check(cache *c, const geometry *g) {
    const double N = setting(c->o, "compress-to");
    check_window(c, g);
    if (c->R < g->chunk || c->K < c->S + c->R || N < 1 || N > c->K)
        usage("deep-forcing: R must hold a chunk, and K at least S + R and compress-to frames");
}

const policy deep_forcing = {
    .name = "deep-forcing",
    .about = "a moving sink, tokens that recent queries look at, recent frames",
    .knobs = {{"budget", 21, NULL}, {"sink", 10, NULL}, {"recent", 4, NULL},
              {"compress-to", 16, NULL}, {"max-reuse", 7, NULL}, {"fusion", 0, "sum|max"},
              {"unify", 0, NULL}},
    .check = deep_check, .open = deep_open, .evict = deep_evict, .commit = deep_commit};

/* ---- Rolling Sink: the first frames come by again and again ---------------------------------- */
/* own: keys, then values of the first K frames of the video. */
static void *sink_archive(const cache *c) { return floats(2 * (size_t)c->capacity * c->width); }

static void sink_evict(cache *c, const pass *p) {
    const size_t n = (size_t)c->capacity * c->width;
    if (p->start == c->K) {                      /* the first that goes */
        memcpy(c->own, c->k, n * sizeof *c->k);
        memcpy((float *)c->own + n, c->v, n * sizeof *c->v);
    }
    cache_roll(c, p, 0);
}

/* After a clean pass, frames of the archive replace the chunk before: forwards over K - C frames,
 * then backwards, then forwards again. */
static void sink_after(cache *c, const pass *p) {
    const int C = c->chunk, w = c->K - C, gone = p->start - C, L = c->L;
    const size_t frame = (size_t)L * c->width, n = (size_t)c->K * frame;
    const bool backwards = gone / w % 2;
    if (!p->clean || p->start < c->K) return;
    const int first = backwards ? w - gone % w - C : gone % w, to = c->length - (p->frames + C) * L;
    for (int i = 0; i < C; i++) {
        const int from = first + (backwards ? C - 1 - i : i);
        const float *archive = (float *)c->own + from * frame;
        memcpy(key_at(c, to + i * L), archive, frame * sizeof *archive);
        memcpy(value_at(c, to + i * L), archive + n, frame * sizeof *archive);
        trace(c, p, "sweep", "frame %d at %d", from, gone + i);
    }
}

static void sink_check(cache *c, const geometry *g) {
    if (c->K < 2 * g->chunk || c->K % g->chunk || g->first_chunk != g->chunk)
        usage("rolling-sink: the budget is whole chunks, at least 2, and the first chunk whole");
}

const policy rolling_sink = {
    .name = "rolling-sink",
    .about = "the first frames sweep by, at the times of those they replace",
    .knobs = {{"budget", 21, NULL}}, .check = sink_check, .open = sink_archive,
    .evict = sink_evict, .after = sink_after};
