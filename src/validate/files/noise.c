/* noise.c: mistakes in the generator of noise, which a port writes itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   src/golden/noise.c once more, with a change in any of its parts. The
 *         seed is looked for: what is in ours says which it was. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tether/mathfn.h"
#include "validate/files/named.h"

enum { ROUNDS, KEY, PRODUCTS, COUNTER, PAIRS, RADIUS, ANGLE, LAYOUT };
enum { RAISED_FIRST = 1, NOT_RAISED, KEY_EXCHANGED };
enum { HALVES_EXCHANGED = 1, FACTORS_EXCHANGED };
enum { FRAME_AND_STREAM = 1, ELEMENTS, OF_CHUNK, FROM_CHUNK, FRAME_FIRST,
       STREAM_ZERO };
enum { RADII_FIRST = 1, PAIRS_APART, SINE_FIRST };
enum { NO_TWO = 1, UNIFORM };
enum { CHANNELS_LAST = 1, ONE_CHANNEL };

static const change noise_changes[] = {
    {ROUNDS, -3, "Philox has 7 rounds where 10 belong"},
    {ROUNDS, -1, "Philox has 9 rounds where 10 belong"},
    {ROUNDS, 1, "Philox has 11 rounds where 10 belong"},
    {KEY, RAISED_FIRST, "the key is raised before a round, not after it"},
    {KEY, NOT_RAISED, "the key is not raised between rounds"},
    {KEY, KEY_EXCHANGED, "the two words of the key are exchanged"},
    {PRODUCTS, HALVES_EXCHANGED, "high and low words of Philox's products are "
     "exchanged"},
    {PRODUCTS, FACTORS_EXCHANGED, "Philox's two factors are exchanged"},
    {COUNTER, FRAME_AND_STREAM, "frame and stream are exchanged in the "
     "counter"},
    {COUNTER, ELEMENTS, "the counter counts elements, not groups of four"},
    {COUNTER, OF_CHUNK, "elements are counted through the chunk, not in each "
     "frame"},
    {COUNTER, FROM_CHUNK, "frames are counted in each chunk, not in the video"},
    {COUNTER, FRAME_FIRST, "the frame is the first word of the counter, the "
     "element the second"},
    {COUNTER, STREAM_ZERO, "every step has the noise of stream 0"},
    {PAIRS, RADII_FIRST, "words 0 and 1 give the radii, words 2 and 3 the "
     "angles; 0, 2 and 1, 3 belong"},
    {PAIRS, PAIRS_APART, "the two numbers of a pair are two elements apart"},
    {PAIRS, SINE_FIRST, "the sine comes before the cosine"},
    {RADIUS, NO_TWO, "the radius is sqrt(-log u): the 2 is missing"},
    {RADIUS, UNIFORM, "the noise is uniform, not normal"},
    {ANGLE, 1, "the angle runs through half a circle"},
    {LAYOUT, CHANNELS_LAST, "elements are counted by [h, w, C] where [C, h, w] "
     "belongs"},
    {LAYOUT, ONE_CHANNEL, "all channels have the noise of the first"},
    {0, 0, NULL}};

/* Of a chunk whose first frame is `first`. */
typedef struct noise_of {
    uint64_t seed;
    int64_t first, C, n;            /* n elements of a frame                  */
    uint32_t stream;
} noise_of;

static void words(uint32_t c[4], uint64_t seed, const int *how)
{
    uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    if (how[KEY] == KEY_EXCHANGED)
        k[0] = k[1], k[1] = (uint32_t)seed;
    for (int round = 0; round < 10 + how[ROUNDS]; round++) {
        const bool swap = how[PRODUCTS] == FACTORS_EXCHANGED;
        const int high = how[PRODUCTS] == HALVES_EXCHANGED ? 0 : 32;
        const uint64_t a = (uint64_t)(swap ? 0xCD9E8D57 : 0xD2511F53) * c[0];
        const uint64_t b = (uint64_t)(swap ? 0xD2511F53 : 0xCD9E8D57) * c[2];
        for (int i = 0; i < 2 && how[KEY] == RAISED_FIRST; i++)
            k[i] += i ? 0xBB67AE85 : 0x9E3779B9;
        c[0] = (uint32_t)(b >> high) ^ c[1] ^ k[0];
        c[2] = (uint32_t)(a >> high) ^ c[3] ^ k[1];
        c[1] = (uint32_t)(b >> (32 - high));
        c[3] = (uint32_t)(a >> (32 - high));
        for (int i = 0; i < 2 && how[KEY] % KEY_EXCHANGED == 0; i++)
            k[i] += i ? 0xBB67AE85 : 0x9E3779B9;
    }
}

/* The words of element e of a frame of the chunk. */
static void words_at(uint32_t c[4], const noise_of *o, int64_t frame, int64_t e,
                     const int *how)
{
    const uint32_t at = (uint32_t)(how[COUNTER] == OF_CHUNK ? o->first
                                   : how[COUNTER] == FROM_CHUNK ? frame
                                   : o->first + frame);
    const uint32_t group = (uint32_t)(how[COUNTER] == ELEMENTS ? e / 4 * 4
                                                               : e / 4);
    const uint32_t stream = how[COUNTER] == STREAM_ZERO ? 0 : o->stream;
    memcpy(c, (uint32_t[]){group, at, stream, 0}, 4 * sizeof *c);
    if (how[COUNTER] == FRAME_AND_STREAM) c[1] = stream, c[2] = at;
    if (how[COUNTER] == FRAME_FIRST) c[0] = at, c[1] = group;
    words(c, o->seed, how);
}

/* Element e of a frame. */
static double element(const noise_of *o, int64_t frame, int64_t e,
                      const int *how)
{
    const int64_t hw = o->n / o->C;
    uint32_t c[4];
    if (how[LAYOUT] == CHANNELS_LAST) e = e % hw * o->C + e / hw;
    if (how[LAYOUT] == ONE_CHANNEL) e %= hw;
    if (how[COUNTER] == OF_CHUNK) e += frame * o->n;
    words_at(c, o, frame, e, how);
    const bool apart = how[PAIRS] == PAIRS_APART;
    const int pair = (int)(apart ? e % 2 : e % 4 / 2);
    bool second = apart ? e % 4 / 2 : e % 2;
    if (how[PAIRS] == SINE_FIRST) second = !second;
    const bool radii = how[PAIRS] == RADII_FIRST;
    const double u = ((double)c[radii ? pair : 2 * pair] + 0.5) / 4294967296;
    const double turn = (double)c[radii ? 2 + pair : 2 * pair + 1]
                        / 4294967296 / (how[ANGLE] ? 2 : 1);
    double s, k;
    tt_sincos(turn * 6.283185307179586, &s, &k);
    if (how[RADIUS] == UNIFORM)
        return (second ? turn : u) * sqrt(12) - sqrt(3);
    return sqrt((how[RADIUS] == NO_TWO ? -1 : -2) * tt_log(u))
           * (second ? s : k);
}

static bool make_noise(named *t, const int *how, double *trial)
{
    const noise_of *o = t->state;
    for (int64_t i = 0; i < t->n; i++)
        trial[i] = element(o, i / o->n, i % o->n, how);
    return true;
}

/* Another seed, frame or stream. */
static bool solve_noise(named *t, const int *how, double *trial, char *what,
                        size_t size)
{
    const noise_of *right = t->state;
    noise_of o = *right;
    t->state = &o;
    for (int k = 0; k < 64; k++) {
        o = *right;
        if (k < 16) o.stream = (uint32_t)k;
        else if (k < 48) o.first += k - 32;
        else o.seed = (uint64_t)k - 48;
        snprintf(what, size, k < 16 ? "the noise of stream %d where %u belongs"
                 : k < 48 ? "frames are off by %+d" : "the noise of seed %d",
                 k < 16 ? k : k < 48 ? k - 32 : k - 48, right->stream);
        make_noise(t, how, trial);
        if (o.first >= 0 && named_gives(t, trial)) break;
    }
    t->state = (void *)(uintptr_t)right;
    return true;
}

/* The generator that made ours of this chunk; false: its noise is a file's. */
static bool begin_noise(const named *t, noise_of *o)
{
    static const int right[NAMED_FIELDS];
    const int64_t *dim = t->like->dim;
    char name[48];
    if (t->like->rank != 4 || t->n < 8) return false;
    *o = (noise_of){.C = dim[1], .n = dim[1] * dim[2] * dim[3]};
    for (int64_t c = 0; c <= t->at.chunk; c++) {
        snprintf(name, sizeof name, "chunk.%" PRId64 "/step.0/x", c);
        const tt_entry *e = tt_file_find(t->d->f.want, name);
        const double *x = c == t->at.chunk ? named_read(t, e, t->n) : NULL;
        if (!e || e->t.rank != 4) return false;
        if (!x) o->first += e->t.dim[0];
        while (x && (fabs(element(o, 0, 0, right) - x[0]) > 1e-5
                     || fabs(element(o, 0, 1, right) - x[1]) > 1e-5))
            if (o->seed++ == 1 << 20) return false;
    }
    return true;
}

bool noise_explain(named *t)
{
    noise_of o;
    if (!begin_noise(t, &o)) return false;
    o.stream = (uint32_t)t->at.step;
    t->state = &o;
    return named_try(t, &(rule){make_noise, solve_noise, "noise: ",
                                noise_changes});
}

bool noise_added(named *t, const double *x)
{
    static const int right[NAMED_FIELDS];
    double a, b, *trial = named_capacity(t, t->n);
    double *noise = named_capacity(t, t->n);
    noise_of o;
    if (!trial || !noise || !begin_noise(t, &o)) return false;
    for (o.stream = 0; o.stream < 16; o.stream++) {
        for (int64_t i = 0; i < t->n; i++)
            noise[i] = element(&o, i / o.n, i % o.n, right);
        if (!named_mixed(t, trial, x, noise, &a, &b)) continue;
        snprintf(t->out, t->size, "noise is added to the x0 that the clean "
                 "pass reads: %.5g x0 %+.5g noise of stream %u", a, b,
                 (unsigned)o.stream);
        return true;
    }
    return false;
}
