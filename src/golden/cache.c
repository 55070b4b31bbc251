/* cache.c: keys and values of past frames, and what a policy may do with them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Code    Self-Forcing wan/modules/causal_model.py.
 *
 * Each layer has a row of token slots. A chunk runs the network several times: the denoising passes
 * on ever cleaner frames, and the clean pass on the result. All of them write the same slots, so
 * later chunks see what the clean pass wrote. Only the first pass of a chunk may evict.
 *
 * A policy says who leaves (evict), what else happens before attention (commit), and at which frame
 * positions attention sees the rest (positions). Keys are stored before rotation and rotated when
 * they are read. The official code stores rotated keys; the numbers are the same, because the
 * rotation is computed in double from the float key and rounded once. */
#include "golden.h"

const policy *const policies[] = {&full, &fifo, &longlive, &reward, &causvid, &causvid_rolling,
                                  &infinity, &memrope, &deep_sink, &deep_forcing, &rolling_sink,
                                  &tethercache, NULL};

const policy *policy_find(const char *name) {
    int i = 0;
    while (policies[i] && strcmp(policies[i]->name, name)) i++;
    return policies[i];
}

double setting(const knob *o, const char *name) {
    while (o->name && strcmp(o->name, name)) o++;
    return o->name ? o->value : 0;
}

bool setting_put(knob *o, const char *name, const char *value) {
    char *end;
    while (o->name && strcmp(o->name, name)) o++;
    if (!o->name) return false;
    o->value = strtod(value, &end);
    if (o->words) {                              /* "chunk|frame" */
        const size_t first = strcspn(o->words, "|");
        o->value = !strcmp(o->words + first + 1, value);
        if (o->value == 0 && (strlen(value) != first || strncmp(o->words, value, first)))
            usage("--%s %s: expected %s", name, value, o->words);
    } else if (end == value || *end || !(fabs(o->value) <= 1e6))
        usage("--%s %s: expected a number, at most a million", name, value);
    return true;
}

void check_window(cache *c, const geometry *g) {
    if (c->S < 0 || c->K < c->S + g->chunk)
        usage("%s: the budget must be at least S + chunk, but K = %d, S = %d, chunk = %d",
              c->policy->name, c->K, c->S, g->chunk);
}

void check_sink(cache *c, const geometry *g) {
    check_window(c, g);
    if (c->S > g->first_chunk) usage("%s: the first chunk must hold the sink", c->policy->name);
    if (fabs(setting(c->o, "sink-keep") - 0.5) > 0.5) usage("--sink-keep lies in 0..1");
}

cache *cache_open(const policy *p, const knob *o, const geometry *g, FILE *trace) {
    cache *all = memory((size_t)g->layers, sizeof *all);
    for (int i = 0; i < g->layers; i++) {
        cache *c = &all[i];
        *c = (cache){.policy = p, .layer = i, .L = g->L, .grid = g->grid, .heads = g->heads,
                     .D = g->D, .width = g->heads * g->D, .chunk = g->chunk, .trace = trace,
                     .K = (int)setting(o, "budget"), .S = (int)setting(o, "sink"),
                     .M = (int)setting(o, "memory"), .R = (int)setting(o, "recent")};
        memcpy(c->o, o, sizeof c->o);
        if (!p->knobs[0].name) c->K = g->frames;         /* no budget */
        if (c->K == -1 && (p == &fifo || p == &longlive || p == &causvid_rolling))
            c->K = g->frames, c->S = 0;
        (p->check ? p->check : check_window)(c, g);
        const size_t slots = (size_t)(c->K + g->chunk) * c->L;
        c->capacity = c->K * c->L;
        c->k = floats(slots * c->width), c->v = floats(slots * c->width);
        c->time = memory(slots, sizeof(int)), c->place = memory(slots, sizeof(int));
        for (size_t s = 0; s < slots; s++) c->place[s] = (int)(s % c->L);
        c->own = p->open ? p->open(c) : NULL;
    }
    return all;
}

void cache_close(cache *all, int layers) {
    for (cache *c = all; c < all + layers; c++)
        free(c->k), free(c->v), free(c->time), free(c->place), free(c->own);
    free(all);
}

float *key_at(const cache *c, int slot) { return c->k + (size_t)slot * c->width; }
float *value_at(const cache *c, int slot) { return c->v + (size_t)slot * c->width; }

void cache_move(cache *c, int to, int from, int n) {
    const size_t bytes = (size_t)n * c->width * sizeof *c->k;
    memmove(key_at(c, to), key_at(c, from), bytes);
    memmove(value_at(c, to), value_at(c, from), bytes);
    memmove(c->time + to, c->time + from, (size_t)n * sizeof *c->time);
    memmove(c->place + to, c->place + from, (size_t)n * sizeof *c->place);
}

/* At a new prompt LongLive's sink stays as it was, once frames have left. */
void cache_write(cache *c, const pass *p, int first) {
    const bool sink_stays = p->anew && p->start > 0 && setting(c->o, "global-sink") != 0;
    const int n = p->frames * c->L, i0 = sink_stays ? c->S * c->L : 0;
    const size_t at = (size_t)i0 * c->width, bytes = (size_t)(n - i0) * c->width * sizeof *c->k;
    memcpy(key_at(c, first + i0), c->new_k + at, bytes);
    memcpy(value_at(c, first + i0), c->new_v + at, bytes);
    for (int i = i0; i < n; i++) {
        c->time[first + i] = p->start + i / c->L;
        c->place[first + i] = i % c->L;
    }
}

bool cache_roll(cache *c, const pass *p, int kept) {
    const int n = p->frames * c->L, excess = c->length + n - c->capacity;
    if (excess > 0) {
        trace(c, p, "evict", "%d frames from %d on", excess / c->L, c->time[kept]);
        cache_move(c, kept, kept + excess, c->length - kept - excess);
        c->length -= excess;
    }
    c->length += n;
    return excess > 0;
}

int frame_tokens(const pass *p) { return p->h / 2 * (p->w / 2); }

position token_position(const cache *c, int frame, int place) {
    return (position){frame, place / c->grid, place % c->grid};
}

/* A key keeps the frame number that it was written with, also in the sink: the distance from a
 * query to the sink grows with the video. */
static int by_time(const cache *c, const pass *p, position *at) {
    for (int i = 0; i < c->length; i++) at[i] = token_position(c, c->time[i], c->place[i]);
    return p->start;
}

/* Positions count what is there, from 0: gaps in time close up. */
int by_slot(const cache *c, const pass *p, position *at) {
    for (int i = 0; i < c->length; i++) at[i] = token_position(c, i / c->L, c->place[i]);
    return c->length / c->L - p->frames;
}

void cache_attention(cache *c, float *o, const pass *p) {
    const policy *y = c->policy;
    const int n = p->frames * c->L;
    c->first = p->start + p->frames > c->seen;
    if (c->first) {
        if (y->evict) y->evict(c, p);
        else cache_roll(c, p, c->S * c->L);
        c->seen = p->start + p->frames;
    }
    cache_write(c, p, c->length - n);
    if (y->commit) y->commit(c, p);
    position *at = memory((size_t)c->length + n, sizeof *at);
    const int query = (y->positions ? y->positions : by_time)(c, p, at);
    for (int i = 0; i < n; i++) at[c->length + i] = token_position(c, query + i / c->L, i % c->L);
    float *rk = floats((size_t)c->length * c->width), *rq = floats((size_t)n * c->width);
    rope(rk, c->k, c->length, c->heads, c->D, at);
    rope(rq, c->new_q, n, c->heads, c->D, at + c->length);
    attention(&(attention_args){.o = o, .q = rq, .k = rk, .v = c->v, .queries = n,
                                .keys = c->length, .heads = c->heads, .D = c->D,
                                .scale = attention_scale(c->D)});
    free(at), free(rk), free(rq);
    if (y->after) y->after(c, p);
}

void trace(const cache *c, const pass *p, const char *what, const char *format, ...) {
    va_list args;
    if (!c->trace) return;
    fprintf(c->trace, "chunk %d layer %d %s ", p->chunk, c->layer, what);
    va_start(args, format);
    vfprintf(c->trace, format, args);
    va_end(args);
    putc('\n', c->trace);
}

const policy full = {.name = "full", .about = "no window: every frame stays, at its own position"};

const policy fifo = {
    .name = "fifo", .about = "the newest frames after S sink frames, at their own positions",
    .knobs = {{"budget", 21, NULL}, {"sink", 3, NULL}}};

/* Code: NVlabs/LongLive. At a new prompt the frames in the window run once more, all in one pass
 * (sampler.c), and each sees all others. */
const policy longlive = {
    .name = "longlive", .about = "fifo, computed anew at a new prompt", .check = check_sink,
    .knobs = {{"budget", 12, NULL}, {"sink", 3, NULL}, {"global-sink", 1, NULL}}};
