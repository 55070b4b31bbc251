/* identity.c: what a run is made from, in one line.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Files of latents, saved states and run.json carry it: who goes on with them
 * compares lines, and names the first word that differs. */
#include "rollout/run.h"
#include "io/weights.h"
#include "ops/backend.h"
#include "tether/version.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of this line; another one is another run's. */
enum { VERSION = 1 };

static void digest_values(tt_sha256 *s, const tt_real *x, int64_t n)
{
    if (x) tt_sha256_add(s, x, (size_t)n * sizeof *x);
}

enum { SAMPLES = 16, PIECE = 256 }; /* a multiple of every type's block */

/* Pieces of a tensor; the elements of each. */
static int64_t pieces_of(const tt_tensor *t, int64_t *size)
{
    const int64_t n = tt_tensor_count(t);
    *size = n < PIECE ? n : PIECE;
    return n > PIECE ? SAMPLES : n > 0;
}

/* Where piece k begins. */
static int64_t identity_piece_at(const tt_tensor *t, int64_t size, int64_t k)
{
    const int64_t at = (tt_tensor_count(t) - size) / (SAMPLES - 1) * k;
    return at - at % tt_dtype_block(t->dtype);
}

static const tt_tensor *weight_at(const tt_weights *w, int64_t i)
{
    const tt_tensor *t = tt_weights_find(w, tt_weights_name(w, i));
    return t && tt_tensor_is_real(t) ? t : NULL;
}

static void expect_weights(const tt_weights *w)
{
    for (int64_t i = 0; i < tt_weights_count(w); i++) {
        const tt_tensor *t = weight_at(w, i);
        int64_t size;
        const int64_t n = t ? pieces_of(t, &size) : 0;
        for (int64_t k = 0; k < n; k++)
            weights_expect(w, t, identity_piece_at(t, size, k), size);
    }
}

/* Of every tensor its name and shape, and values here and there: all of a
 * small one, SAMPLES pieces of a large one. Another model, also a fine-tuned
 * one, differs in them; reading everything would take as long as a chunk. */
static void add_weights(tt_sha256 *s, const tt_weights *w)
{
    tt_real buf[PIECE];
    if (w) expect_weights(w);
    for (int64_t i = 0; w && i < tt_weights_count(w); i++) {
        const char *name = tt_weights_name(w, i);
        const tt_tensor *t = weight_at(w, i);
        int64_t size;
        if (!t) continue;
        tt_sha256_add(s, name, strlen(name) + 1);
        tt_sha256_add(s, t->dim, (size_t)t->rank * sizeof *t->dim);
        const int64_t n = pieces_of(t, &size);
        for (int64_t k = 0; k < n; k++) {
            tt_widen_at(buf, t, identity_piece_at(t, size, k), size);
            digest_values(s, buf, size);
        }
    }
}

static void add_vae(tt_sha256 *s, const tt_vae *v)
{
    add_weights(s, tt_vae_weights(v));
    tt_vae_add_stats(v, s);
}

/* Numbers that came from elsewhere: embeddings, noise, given latents. */
static void digest_inputs(tt_sha256 *s, const tt_rollout_options *o,
                          int64_t frame_size)
{
    if (o->origin) tt_sha256_add(s, o->origin, strlen(o->origin));
    digest_values(s, o->initial, o->initial_frames * frame_size);
    digest_values(s, o->noise.noise, o->rollouts * o->latents * frame_size);
    digest_values(s, o->noise.renoise,
                  (o->nsteps - 1) * causvid_denoised(o) * frame_size);
    digest_values(s, o->start_frame, (o->rollouts - 1) * frame_size);
}

typedef struct line {
    char *text;
    size_t used;
} line;
enum { LINE = 8192 };

static void identity_add(line *l, const char *fmt, ...) TT_PRINTF(2, 3);
static void identity_add(line *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(l->text + l->used, LINE - l->used, fmt, ap);
    va_end(ap);
    TT_ASSERT(n >= 0 && (size_t)n < LINE - l->used);
    l->used += (size_t)n;
}

static void add_digest(line *l, const char *name, tt_sha256 *s)
{
    char hex[65];
    tt_sha256_hex(s, hex);
    identity_add(l, " %s %.32s", name, hex);
}

/* Clips of several rollouts begin where the one before ends: their length
 * counts. One rollout may be made longer. */
static void add_settings(line *l, const tt_rollout_options *o)
{
    identity_add(l, " seed %llu sample %u size %lldx%lld chunk %lld first %d "
                 "context-noise %lld warp %d shift %.17g steps ",
                 (unsigned long long)o->noise.seed, o->noise.sample,
                 (long long)(8 * o->w), (long long)(8 * o->h),
                 (long long)o->chunk, o->independent_first_frame,
                 (long long)o->context_noise, o->warp, o->shift);
    for (int i = 0; i < o->nsteps; i++)
        identity_add(l, "%s%.17g", i ? "," : "", o->steps[i]);
    for (int i = 0; i < o->nfirst; i++)
        identity_add(l, "%s%.17g", i ? "," : " first-steps ",
                     o->first_steps[i]);
    if (o->vae && tt_vae_class(o->vae) != TT_CLASS_F32)
        identity_add(l, " vae-class %s", tt_class_saved(tt_vae_class(o->vae)));
    if (o->rollouts > 1)
        identity_add(l, " rollouts %lld latents %lld overlap %lld restart %d",
                     (long long)o->rollouts, (long long)o->latents,
                     (long long)o->overlap, o->latent_restart);
}

static void add_scenes(line *l, const tt_rollout_options *o)
{
    tt_sha256 s;
    tt_sha256_init(&s);
    for (int i = 0; i < o->nscenes; i++) {
        const int64_t scene[] = {o->scenes[i].chunk, o->scenes[i].prompt,
                                 o->scenes[i].cut};
        tt_sha256_add(&s, scene, sizeof scene);
    }
    if (o->nscenes) add_digest(l, "scenes", &s);
}

char *rollout_identity(tt_ctx *ctx, tt_arena *mem, const tt_dit *dit,
                       const tt_rollout_options *o)
{
    line l = {.text = tt_alloc(ctx, mem, LINE, 1, "identity of the run")};
    char bits[64];
    tt_sha256 weights, inputs;
    if (!l.text) return NULL;
    tt_sha256_init(&weights);
    add_weights(&weights, tt_dit_weights(dit));
    if (o->vae) add_vae(&weights, o->vae);
    tt_sha256_init(&inputs);
    digest_inputs(&inputs, o, tt_dit_get_config(dit)->in_dim * o->h * o->w);
    identity_add(&l, "tether-run %d type %s class %s", VERSION, tt_real_name(),
                 tt_bits_name(ctx->ops, bits, sizeof bits));
    add_digest(&l, "weights", &weights);
    add_digest(&l, "inputs", &inputs);
    add_settings(&l, o);
    add_scenes(&l, o);
    identity_add(&l, " policy ");
    tt_policy_describe(l.text + l.used, LINE - l.used, &o->policy);
    for (char *c = l.text + l.used; *c; c++)
        if (*c == '\n') *c = ' ';
    return l.text;
}

/* ---- what differs -------------------------------------------------------- */

static size_t word_end(const char *s)
{
    return strcspn(s, " ");
}

/* Length of the key that begins the word at `s`, 0: it is a value. Those of the
 * policy stand before their values as key=value. */
static size_t key_length(const char *s)
{
    static const char *const keys[] = {
        "tether-run", "type", "class", "weights", "inputs", "seed", "sample",
        "size", "chunk", "first", "context-noise", "warp", "shift", "steps",
        "first-steps",
        "vae-class", "rollouts", "latents", "overlap", "restart", "scenes",
        "policy"};
    const size_t n = word_end(s), equals = strcspn(s, "=");
    if (equals < n) return equals;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strlen(keys[i]) == n && !memcmp(keys[i], s, n)) return n;
    return 0;
}

/* The value after a key, up to the next one; "nothing" without it. */
static const char *identity_value_of(const char *s, const char *key, size_t k,
                                     int *n)
{
    const char *begin = NULL;
    *n = (int)strlen("nothing");
    for (size_t w; *s; s += w + (s[w] == ' ')) {
        const size_t here = key_length(s);
        w = word_end(s);
        if (begin && here) break;
        if (here == k && !memcmp(s, key, k)) begin = s + k + 1;
    }
    if (!begin) return "nothing";
    while (s > begin && s[-1] == ' ') s--;
    *n = s - begin > 60 ? 60 : (int)(s - begin);
    return begin;
}

void rollout_difference(char *buf, size_t n, const char *theirs,
                        const char *ours)
{
    static const struct { const char *key, *words; } digests[] = {
        {"weights", "other weights"}, {"scenes", "other scenes"},
        {"inputs", "another prompt, or other embeddings, noise, given frames "
                   "or injected tensors"}};
    const char *at = ours;
    while (*at && *at == theirs[at - ours]) at++;
    while (at > ours && (at[-1] != ' ' || !key_length(at))) at--;
    const size_t k = key_length(at);
    int a, b;
    const char *there = identity_value_of(theirs, at, k, &a);
    const char *here = identity_value_of(ours, at, k, &b);
    snprintf(buf, n, "%.*s: %.*s there, %.*s here", (int)k, at, a, there, b,
             here);
    for (size_t i = 0; i < sizeof digests / sizeof *digests; i++)
        if (strlen(digests[i].key) == k && !memcmp(digests[i].key, at, k))
            snprintf(buf, n, "%s", digests[i].words);
}
