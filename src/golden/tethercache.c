/* tethercache.c: TetherCache, which frames a layer remembers and how.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Paper   "TetherCache: Stabilizing Autoregressive Long-Form Video Generation with Gated Recall and
 *         Trusted Alignment", arXiv 2606.13035, eqs. 3 to 13. GRAB: Gated Recall with
 *         Attention-Diversity Balancing. TAME: Trusted Alignment via Memory Editing.
 * Code    my4f175/TetherCache, folder tethercache/.
 *
 * A layer keeps K = S + M + R frames, and has slots for a chunk more:
 *
 *     [ sink 0..S-1 | memory S..S+M-1 | recent S+M..K-1 ] aside K..              (eq. 3)
 *
 * When a chunk of f frames arrives and the cache is full:
 *     first pass   1 evict the f oldest recent frames, and set them aside
 *     every pass   2 write the chunk's keys and values to the last f frames
 *     clean pass   3 select M of the M members and f frames aside                (GRAB)
 *                  4 edit those that are admitted                                (TAME)
 *                  5 write the selection back as the new memory
 *     every pass   attend to all K frames; the position of a frame is its slot
 *
 * Until the clean pass nothing sees the frames that were evicted. The clean pass selects before its
 * attention, so it already sees the new memory. */
#include "golden.h"

/* What a layer remembers besides keys and values. */
typedef struct tether {
    bool filled;                 /* the memory region holds members                               */
    int aside, aside_first;      /* frames set aside, the number of the first                     */
    int member[];                /* [M] frame numbers                                             */
} tether;

/* ---- GRAB ------------------------------------------------------------------------------------ */
/* Eq. 6, importance: softmax over the candidates of their mean attention logit. The mean of all
 * products is the product of the means,
 *     mean_{q,k} <q, k> = <mean q, mean k>,
 * because <., .> is linear in both. Paper: the queries of a frame. Code, and we: of the whole
 * chunk. */
void grab_importance(double *mass, const double *mean_query, const double *mean_key, int n,
                     int heads, int D, double temperature) {
    const int width = heads * D;
    double top = -INFINITY, sum = 0;
    for (int c = 0; c < n; c++) {
        double dot = 0;
        for (int i = 0; i < width; i++) dot += mean_query[i] * mean_key[(size_t)c * width + i];
        mass[c] = dot / (heads * sqrt(D)) / fmax(temperature, 1e-6);
        top = fmax(top, mass[c]);
    }
    for (int c = 0; c < n; c++) sum += mass[c] = golden_exp(mass[c] - top);
    for (int c = 0; c < n; c++) mass[c] /= sum;
}

/* Eq. 7, the scale of time: half the span of the candidates, at least 1. */
double grab_time_scale(const int *frame, int n) {
    int first = frame[0], last = frame[0];
    for (int c = 1; c < n; c++) {
        if (frame[c] < first) first = frame[c];
        if (frame[c] > last) last = frame[c];
    }
    return fmax(1, 0.5 * (last - first + 1));
}

/* Eq. 8, redundancy: the closest important neighbour in time. */
double grab_redundancy(const double *mass, const int *frame, int n, int c) {
    const double sigma = grab_time_scale(frame, n);
    double most = 0;
    for (int o = 0; o < n; o++)
        if (o != c) most = fmax(most, golden_exp(-abs(frame[c] - frame[o]) / sigma) * mass[o]);
    return most;
}

/* Eq. 9, diversity: what is not redundant. */
void grab_diversity(double *diversity, const double *mass, const int *frame, int n) {
    for (int c = 0; c < n; c++) diversity[c] = fmax(0, 1 - grab_redundancy(mass, frame, n, c));
}

/* Eq. 5, the score. */
void grab_score(double *score, const double *mass, const double *diversity, int n, double alpha) {
    for (int c = 0; c < n; c++) score[c] = mass[c] + alpha * diversity[c];
}

/* Eq. 10, the M best. Of equal scores the older candidate wins. Code: leaves ties to torch. */
void grab_select(bool *keep, const double *score, int n, int M) {
    for (int c = 0; c < n; c++) {
        int better = 0;
        for (int o = 0; o < n; o++)
            better += score[o] > score[c] || (score[o] == score[c] && o < c);
        keep[c] = better < M;
    }
}

/* ---- TAME ------------------------------------------------------------------------------------ */
/* Eq. 12, Stat: mean and deviation of every channel over F frames of L tokens, x [F L, width]. In
 * double, frame by frame: squares = sum over frames of own squares + L (own mean - mean)^2.
 * Paper: says not which deviation. Code, and we: that of a population, at least 1e-6. */
void tame_stat(double *mean, double *sd, const float *x, int F, int L, int width) {
    double *own = doubles((size_t)F * width), *m2 = doubles((size_t)F * width);
    for (int f = 0; f < F; f++) {
        const float *frame = x + (size_t)f * L * width;
        column_mean(own + (size_t)f * width, frame, L, width);
        column_moment(m2 + (size_t)f * width, own + (size_t)f * width, frame, L, width);
    }
    for (int i = 0; i < width; i++) {
        double sum = 0, squares = 0;
        for (int f = 0; f < F; f++) sum += own[(size_t)f * width + i];
        mean[i] = sum / F;
        for (int f = 0; f < F; f++) {
            const double apart = own[(size_t)f * width + i] - mean[i];
            squares += m2[(size_t)f * width + i] + L * apart * apart;
        }
        sd[i] = fmax(1e-6, sqrt(squares / (F * L)));
    }
    free(own), free(m2);
}

/* Eq. 13: every channel of the frame x [L, width] is drawn by tau towards the trusted frames. */
void tame_edit(float *x, int L, int width, const double *to_mean, const double *to_sd, double tau) {
    double *mean = doubles(width), *sd = doubles(width);
    tame_stat(mean, sd, x, 1, L, width);
    for (int r = 0; r < L; r++, x += width)
        for (int i = 0; i < width; i++)
            x[i] = (float)tame_value((double)x[i], mean[i], to_sd[i] / sd[i], to_mean[i], tau);
    free(mean), free(sd);
}

/* Eq. 11, the trusted frames: sink and memory as they are before the round, x [S + M, L, width].
 * Paper: keeps the statistics of the sink. Code, and we: compute them in every round. */
static void edit_admitted(const cache *c, float *aside, const float *x, const bool *admitted,
                          int frames, double tau) {
    double *mean = doubles(c->width), *sd = doubles(c->width);
    tame_stat(mean, sd, x, c->S + c->M, c->L, c->width);
    for (int i = 0; i < frames; i++, aside += (size_t)c->L * c->width)
        if (admitted[i]) tame_edit(aside, c->L, c->width, mean, sd, tau);
    free(mean), free(sd);
}

/* ---- the five steps -------------------------------------------------------------------------- */
/* 1 evict. Where K is not reached exactly, the last slots were never written: frames of zeros take
 * part, and frame numbers shift. Code, and we: as is. */
static void evict(cache *c, const pass *p) {
    tether *y = c->own;
    const int n = p->frames * c->L, recent = (c->S + c->M) * c->L;
    c->length += n;
    if (c->length <= c->capacity) return;        /* warming up */
    y->aside = p->frames;
    y->aside_first = c->seen - c->R;
    trace(c, p, "evict", "%d frames from %d on", y->aside, y->aside_first);
    cache_move(c, c->capacity, recent, n);
    cache_move(c, recent, recent + n, c->capacity - recent - n);
    c->length = c->capacity;
}

/* Steps 3 to 5 for `frames` of the frames aside, from number `first` on. */
static void admit(cache *c, const pass *p, const double *mean_query, int first, int frames) {
    tether *y = c->own;
    const int M = c->M, P = M + frames, S = c->S, L = c->L, width = c->width;
    const int aside = c->capacity + first * L;
    const double tau = setting(c->o, "tau");
    double *mean_key = doubles((size_t)P * width), *mass = doubles(3 * P);
    double *diversity = mass + P, *score = diversity + P;
    int *number = memory(P, sizeof *number), *slot = memory(P, sizeof *slot);
    bool *keep = memory(P, sizeof *keep);
    /* Eq. 4, the pool: members, then frames aside, all in the order of time. */
    for (int i = 0; i < P; i++) {
        slot[i] = i < M ? (S + i) * L : aside + (i - M) * L;
        number[i] = i < M ? y->member[i] : y->aside_first + first + i - M;
        column_mean(mean_key + (size_t)i * width, key_at(c, slot[i]), L, width);
    }
    grab_importance(mass, mean_query, mean_key, P, c->heads, c->D,           /* 3 select */
                    setting(c->o, "score-temperature"));
    grab_diversity(diversity, mass, number, P);
    grab_score(score, mass, diversity, P, setting(c->o, "alpha"));
    grab_select(keep, score, P, M);
    for (int i = 0; i < P; i++)
        trace(c, p, "score", "frame %d mass %.17g diversity %.17g score %.17g %s", number[i],
              mass[i], diversity[i], score[i], keep[i] ? "keep" : "drop");
    if (tau != 0 && S + M > 0) {                                             /* 4 edit */
        edit_admitted(c, key_at(c, aside), c->k, keep + M, frames, tau);
        edit_admitted(c, value_at(c, aside), c->v, keep + M, frames, tau);
    }
    for (int i = 0, to = 0; i < P; i++) {                                    /* 5 write back */
        if (!keep[i]) continue;
        if (i >= M) trace(c, p, "admit", "frame %d%s", number[i], tau != 0 ? ", edited" : "");
        cache_move(c, (S + to) * L, slot[i], L);
        y->member[to++] = number[i];
    }
    free(mean_key), free(mass), free(number), free(slot), free(keep);
}

/* Paper: frames compete one by one, pool=frame. Code: the whole chunk at once, pool=chunk, the
 * default. */
static void commit(cache *c, const pass *p) {
    tether *y = c->own;
    if (!p->clean || c->M == 0) return;
    if (!y->filled && c->length == c->capacity) {
        y->filled = true;
        for (int i = 0; i < c->M; i++) y->member[i] = c->S + i;
    }
    if (!y->filled || y->aside == 0) return;
    double *mean_query = doubles(c->width);
    column_mean(mean_query, c->new_q, p->frames * c->L, c->width);
    const int step = setting(c->o, "pool") == 1 ? 1 : y->aside;
    for (int i = 0; i < y->aside; i += step) admit(c, p, mean_query, i, step);
    y->aside = 0;
    free(mean_query);
}

/* ---- settings -------------------------------------------------------------------------------- */
static void *open(const cache *c) { return memory(1, sizeof(tether) + c->M * sizeof(int)); }

/* R below the chunk: the official code reads past its buffer. We: refuse. */
static void check(cache *c, const geometry *g) {
    const double tau = setting(c->o, "tau");
    if (c->R == -1) c->R = c->K - c->S - c->M;
    if (c->M == -1) c->M = c->K - c->S - c->R;
    if (c->S < 0 || c->M < 0 || c->R < g->chunk || c->S + c->M + c->R != c->K)
        usage("tether: K = S + M + R, with R at least a chunk of %d frames, but K = %d, S = %d, "
              "M = %d, R = %d", g->chunk, c->K, c->S, c->M, c->R);
    if (!(tau >= 0 && tau <= 1) || setting(c->o, "alpha") < 0
        || setting(c->o, "score-temperature") <= 0)
        usage("tether: tau lies in 0..1, alpha is 0 or more, the score temperature above 0");
    if (c->layer == 0 && c->K < g->frames && (c->K - g->first_chunk) % g->chunk)
        fprintf(stderr, "golden: warning: chunks of %d do not fill K = %d exactly: frames of zeros "
                "enter the cache, as in the official code\n", g->chunk, c->K);
}

const policy tethercache = {
    .name = "tether", .about = "sink, memory chosen by GRAB and edited by TAME, recent frames",
    .knobs = {{"budget", 21, NULL}, {"sink", 3, NULL}, {"memory", -1, NULL}, {"recent", 4, NULL},
              {"alpha", 0.35, NULL}, {"tau", 0.35, NULL}, {"score-temperature", 1, NULL},
              {"pool", 0, "chunk|frame"}},
    .check = check, .open = open, .evict = evict, .commit = commit, .positions = by_slot};

/* Parts of TetherCache switched off, by name. */
bool tether_preset(knob *o, const char *name) {
    static const char *const preset[][3] = {
        {"official", "pool", "chunk"}, {"paper", "pool", "frame"}, {"paper", "tau", "0.6"},
        {"grab-only", "tau", "0"}, {"attention-only", "alpha", "0"}, {"recency-only", "sink", "0"},
        {"recency-only", "memory", "0"}, {"recency-only", "recent", "-1"},
        {"sink-recent", "memory", "0"}, {"sink-recent", "recent", "-1"},
        {"no-memory", "memory", "0"}, {"no-memory", "budget", "7"}};
    bool found = false;
    for (size_t i = 0; i < sizeof preset / sizeof *preset; i++)
        if (!strcmp(preset[i][0], name)) found = setting_put(o, preset[i][1], preset[i][2]);
    return found;
}
