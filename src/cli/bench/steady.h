/* steady.h: a chunk as a long rollout has it, without the chunks before it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * In a long rollout every chunk costs the same once the cache is full. So the
 * frames of every layer's cache are filled with normal random keys and values,
 * as if they had been generated, and passes of the next chunk are run, with all
 * the work of the cache policy.
 *
 *     steady b = {.ctx = ctx, .W = 832, .H = 480, .cache_text = "tether", ...};
 *     TT_TRY(steady_model(&b));
 *     TT_TRY(steady_inputs(&b));
 *     TT_TRY(steady_cache(&b));
 *     TT_TRY(steady_prime(&b, NULL, NULL));
 *     seconds = steady_pass(&b, 0, false);      noisy
 *     seconds = steady_pass(&b, 1, true);       clean
 *     steady_close(&b);
 *
 * Of the last layer a clean pass computes keys and values alone. A model of one
 * layer has no other: there the clean pass is that and the policy's work.
 *
 * Chunks of one noisy and one clean pass come before the measured one (prime),
 * because the first ones differ: TetherCache reads the frames that filled its
 * memory, MemRoPE makes its averages, Deep Forcing compresses in every other
 * chunk (the first, the third).
 * Among random keys GRAB has no reason to admit anyone. So, where `admit` is
 * set, the keys of the frames that leave next are drawn towards the mean query
 * of the clean pass before: every one of them is admitted, and edited by TAME,
 * in the measured chunk and in the one before it. */
#ifndef CLI_BENCH_STEADY_H
#define CLI_BENCH_STEADY_H

#include "cache/policy.h"
#include "core/device.h"
#include "dit/dit.h"
#include "io/io.h"
#include "rollout/rollout.h"

/* CHUNK     latents of a chunk
 * DISTINCT  layers with weights of their own, of generated ones: far more than
 *           caches hold */
enum { STEADY_CHUNK = 3, STEADY_DISTINCT = 4 };

typedef struct steady {
    tt_ctx *ctx;
    /* set by the caller */
    const char *model;       /* NULL: generated weights of the 1.3B's sizes   */
    int64_t layers;          /* of those                                      */
    const char *cache_text;  /* "tether:tau=0.6"                              */
    const char *kv_dir;      /* files for keys and values; NULL: none         */
    int64_t W, H;            /* pixels                                        */
    int64_t K;               /* frames in the cache; 0: the policy's budget   */
    int64_t heads;           /* where the model does not say; 0               */
    int prime;               /* chunks before the measured ones               */
    int chunks;              /* measured                                      */
    bool admit;
    bool keep;               /* rotated keys, from pass to pass               */
    bool cache_only;         /* the policy's work, without the network        */
    /* made here */
    tt_dit *net;
    tt_prompt *prompt;
    tt_cache *cache;
    const tt_dit_config *cfg;
    tt_policy_options policy;
    tt_geometry geo;
    int64_t start;           /* first frame of the next chunk                 */
    tt_arena mem;
    tt_real *text, *x, *flow;
    tt_real *q, *k, *v;      /* [CHUNK*L, H, D] for cache_only                */
    double *qbar;            /* [layers, H*D] of the latest tapped pass       */
} steady;

/* In this order; steady_close frees what the first of them made, if any.
 * Errors  those of loading; TT_EINVAL  wrong words, too few frames */
tt_status steady_model(steady *b);
tt_status steady_inputs(steady *b);
tt_status steady_cache(steady *b);
void steady_close(steady *b);

/* Bytes that it will hold, about, once the model is there; before inputs. */
int64_t steady_bytes(steady *b);
/* Bytes more with `keep`, where attention's layout of keys and values would
 * stay; 0: it would not. */
int64_t steady_packed(const steady *b);

/* The chunks before the measured ones; each pass is told to `done`. */
typedef void (*steady_done)(void *user, double seconds);
tt_status steady_prime(steady *b, steady_done done, void *user);

/* One pass of the next chunk; its seconds. */
double steady_pass(steady *b, int step, bool clean);
/* What it is asked. */
tt_pass steady_next(const steady *b, int step, bool clean);
double steady_time(int step, bool clean);
/* After the clean pass. */
void steady_advance(steady *b);

/* Frames that were admitted, rejected and edited so far, of all layers. */
void steady_decisions(const steady *b, int64_t count[3]);
/* Of the flow of the latest noisy pass: equal on every machine, in a class. */
tt_status steady_digest(steady *b, char sha[65]);

/* n normal random numbers: one block of them over and over, because statistics
 * matter, not freshness. */
void steady_fill(tt_ctx *ctx, tt_real *x, int64_t n, uint32_t stream);

/* Bytes that the process holds now: those that no file backs, pages of
 * mapped files, and the most of both that there was. 0: no one says. */
typedef struct steady_memory {
    int64_t anonymous, mapped, peak;
} steady_memory;
steady_memory steady_held(void);
double steady_cpu(void);

#endif
