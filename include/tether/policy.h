/* policy.h: cache policies, and how to add your own with this header alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The KV cache of one layer is a row of token slots. A policy decides what
 * stays in it and where the model believes each token to be. Keys are stored
 * *unrotated* (after norm_k); rotation happens on read, from the positions the
 * policy plans. That gives the same float32 bits as storing rotated keys,
 * because the rotation is done in double and rounded once.
 *
 * One chunk of `frames` latent frames runs several passes over the network:
 * denoising passes on noisy latents, then one context pass on the clean
 * result. The cache knows which pass it is, and calls per layer
 *     begin    in the first pass of a chunk: make room for it
 *     write    in every pass: put the chunk's k, v into its slots
 *     commit   in the context pass: choose and edit (TetherCache: GRAB, TAME)
 *     plan     which slots attention reads, in which order, at which positions
 *     done     after attention: work that must not influence this pass
 *
 * Keys, once rotated, and values may be kept for later passes of their chunk
 * (tt_cache_keep_keys). A policy need not know, if it heeds one rule: only
 * `begin` and `commit` change either in other slots than the chunk's own, the
 * last frames*L live ones. `write` and `done` may write to those alone; in the
 * context pass `done` may change any. A plan may differ from pass to pass, and
 * so may src_frame, sidx, tpos and len: that is seen, and all is rotated anew.
 *
 * Every policy, from the plain sliding window to TetherCache, is a
 * tt_policy_class with a table of knobs and some of these functions; most of
 * their work is done by the tt_layer_* helpers below. src/cache/policies/ has
 * one file per policy, and a new policy is one more file there: the build
 * finds it, and its knobs become options of the command line. See fifo.c for
 * the shortest one.
 *
 * When the prompt changes in the middle of a video, cross-attention reads the
 * new prompt from that chunk on, and `begin` is told. What the cached
 * frames hold was computed under the old prompt; what becomes of it is the
 * policy's business: infinity flushes most of it, all others keep it and let
 * it leave as it would anyway (sinks and chosen memory never, or late). */
#ifndef TETHER_POLICY_H
#define TETHER_POLICY_H

#include "tether/api.h"
#include "tether/context.h"
#include "tether/ops.h"

TT_API_BEGIN

/* The sizes a cache is built for. */
typedef struct tt_geometry {
    int64_t layers;
    int64_t H, D;          /* heads held here, head_dim                       */
    int64_t heads, first;  /* of the model, of which these are [first, first+H):
                              all, unless a team shares them out. 0: H        */
    int64_t grid_h, grid_w;/* patch rows and columns of a latent frame        */
    int64_t L;             /* tokens per frame, grid_h * grid_w               */
    int64_t chunk;         /* frames per chunk                                */
    int64_t first_chunk;   /* frames of the very first chunk (1 or chunk)     */
    int64_t frames;        /* latent frames of the whole video                */
    int64_t scenes;        /* stretches with a prompt of their own; 0 or 1:
                              one prompt throughout                           */
    bool bf16;             /* slots hold what attention reads of them, rotated
                              keys and values, as packed bf16 numbers: half the
                              memory, and the same bits in a class whose
                              attention rounds both. Of a policy with
                              TT_ONLY_MOVES                                   */
} tt_geometry;

/* ---- settings ------------------------------------------------------------ */

typedef struct tt_policy_class tt_policy_class;

/* A knob of a policy: one row of its table, from which the command line, run
 * records, saved states and this library make everything else. */
typedef enum tt_knob_type {
    TT_KNOB_COUNT,         /* a whole number                                  */
    TT_KNOB_REAL,
    TT_KNOB_SWITCH,        /* 0 or 1                                          */
    TT_KNOB_WORD           /* one of `words`, stored as its index             */
} tt_knob_type;

typedef union tt_knob_value {
    int64_t n;             /* COUNT, SWITCH, WORD                             */
    double x;              /* REAL                                            */
} tt_knob_value;

typedef struct tt_knob {
    const char *name;      /* "tau": --tau on the command line                */
    const char *help;      /* one sentence                                    */
    size_t at;             /* of the value: TT_AT(K) ..., TT_OWN(i)           */
    tt_knob_type type;
    double usual;          /* what the official release uses                  */
    double least, most;    /* accepted values; most may be INFINITY           */
    const char *const *words; /* WORD: ends with NULL                         */
} tt_knob;

/* A policy and its settings. K, S, M and R mean the same wherever a policy has
 * them; the rest is its own, under indices that its file names. */
#define TT_OWN_KNOBS 8
typedef struct tt_policy_options {
    const char *name;      /* "full", "fifo", "tether", ...                   */
    const tt_policy_class *cls; /* NULL: the built-in one of that name        */
    int64_t K;             /* budget in frames; -1: no window (full, fifo)    */
    int64_t S, M, R;       /* sink, memory, recent frames                     */
    int64_t context_noise; /* timestep of the context pass; a rollout fills in
                              its own. Policies may refuse it (causvid)       */
    tt_knob_value own[TT_OWN_KNOBS];
} tt_policy_options;
#define TT_AT(member) offsetof(tt_policy_options, member)
#define TT_OWN(i) (offsetof(tt_policy_options, own)                            \
                   + (size_t)(i) * sizeof(tt_knob_value))

/* Settings of a policy under a name: "paper", "tau=0.6:pool=frame". */
typedef struct tt_policy_preset {
    const char *name;
    const char *summary;   /* one sentence for --help                         */
    const char *settings;  /* as tt_policy_parse reads them                   */
} tt_policy_preset;

/* What of a layer's state belongs to heads: [rows, H] pieces, `unit` bytes
 * each. */
typedef struct tt_state_heads {
    int64_t rows;
    size_t unit;
} tt_state_heads;

/* What the network is doing while it calls the policy. */
typedef struct tt_pass {
    int64_t start;         /* global index of the chunk's first frame         */
    int64_t frames;        /* frames in the chunk                             */
    int64_t chunk;         /* chunk number, given chunks included             */
    int step;              /* denoising step, counting from 0. A replayed chunk
                              has its clean pass alone, under the number it
                              had: its first pass is not step 0               */
    bool context;          /* commit now: clean latents, t = context_noise. The
                              last chunk of a run that `ends` (rollout.h) has no
                              such pass, and no `last` one: no one reads what it
                              would leave. A policy with TT_KEEPS_NOISY has it
                              in `tether generate`                            */
    bool last;             /* no pass of this chunk follows. The context pass
                              is the last one anyway; given latents may have
                              another one instead, which commits nothing      */
    bool prompt_changed;   /* a scene begins with this chunk, not the first   */
    bool cut;              /* ... and it begins with a cut (infinity)         */
    bool recache;          /* no chunk: the last frames before this one, whose
                              keys and values are computed anew (TT_RECACHES) */
} tt_pass;

typedef struct tt_cache tt_cache;

/* One layer's slots. Token slot i holds k, v rows of H*D values; `sidx` is the
 * token's own place in its frame (row-major over the patch grid) and `tpos` a
 * frame position for policies that keep absolute time. Frame slot f means
 * token slots [f*L, (f+1)*L). */
typedef struct tt_layer {
    const tt_geometry *geo;
    const tt_policy_options *opt;
    int64_t index;         /* layer number                                    */
    int64_t cap;           /* token slots                                     */
    int64_t len;           /* live token slots, always a prefix               */
    int64_t seen;          /* global_end: frames seen so far; while `begin`
                              runs, without this chunk                        */
    bool first;            /* this pass is the first of its chunk             */
    tt_real *k, *v;        /* [cap, H, D], zeroed at reset; see geo->bf16     */
    const tt_real *own_k;  /* [frames*L, H, D]: keys that the last live slots
                              should hold, while something else waits there. A
                              `write` sets it and calls tt_layer_put, which
                              stores the values. NULL after the last pass     */
    int32_t *src_frame;    /* [cap] global frame a token came from, or one of
                              TT_SRC_* below                                  */
    int32_t *sidx;         /* [cap]                                           */
    int32_t *tpos;         /* [cap]                                           */
    void *state;           /* the policy's own, zeroed at reset; saved as plain
                              bytes, so no pointers in it                     */
    tt_real *of_heads;     /* values_of_heads: the end of `state` that belongs
                              to heads, where values are                      */
    tt_real *shared;       /* one buffer of values for all layers
                              (shared_size): this layer's from write to done,
                              then the next one's. Not saved                  */
    size_t state_size;     /* bytes of `state`, with those of `of_heads` where
                              they lie elsewhere                              */
    tt_cache *cache;       /* for tt_cache_report and tt_cache_rope           */
} tt_layer;

/* Source of a token that is not a frame of the video. */
enum {
    TT_SRC_NONE = -1,      /* never written                                   */
    TT_SRC_LONG = -2,      /* slow average of many frames (memrope)           */
    TT_SRC_SHORT = -3      /* fast average                                    */
};

/* What a pass brings: q and k after RMSNorm, unrotated, and v, each
 * [frames*L, H, D]. */
typedef struct tt_qkv {
    const tt_real *q, *k, *v;
} tt_qkv;

/* Slots attention reads, in order. */
typedef struct tt_segment {
    int64_t slot, ntokens; /* token slots [slot, slot + ntokens)              */
    int64_t t0;            /* frame position of the first token; the i-th has
                              t0 + i/L. TT_T_PER_TOKEN: each token's tpos;
                              TT_T_NONE: keys as they are, not rotated        */
} tt_segment;
#define TT_T_PER_TOKEN INT64_MIN
#define TT_T_NONE (INT64_MIN + 1)
#define TT_MAX_SEGMENTS 8
typedef struct tt_plan {
    int nsegments;
    tt_segment segment[TT_MAX_SEGMENTS];
    int64_t q_t0;          /* frame position of the chunk's first query frame */
} tt_plan;

/* What sets a policy apart for those who run it. */
enum {
    /* The denoising passes leave traces beyond the chunk's own slots, so the
     * cache cannot be rebuilt from clean latents (tt_rollout_replay). */
    TT_KEEPS_NOISY = 1,
    TT_HAS_CUTS = 2,       /* a cut between scenes means something            */
    TT_RESTARTS = 4,       /* long videos are several rollouts                */
    TT_FILLS_EXACTLY = 8,  /* chunks should fill K exactly: a first chunk of
                              one frame wants one frame more                  */
    TT_RECACHES = 16,      /* before a new prompt's first chunk the last K
                              frames, or all, run again: tt_pass.recache      */
    TT_ONLY_MOVES = 32     /* keys and values are stored by tt_layer_put and
                              moved by tt_layer_move, no one else touches them,
                              and a plan is one segment of TT_T_PER_TOKEN whose
                              tpos are those of tt_layer_put: tt_geometry.bf16
                              is possible                                     */
};

/* The denoising schedule a policy's weights were distilled for. */
typedef struct tt_policy_schedule {
    const char *text;      /* "1000,757,522"                                  */
    int nsteps;
    double steps[8];
    bool warp;
    double shift;
} tt_policy_schedule;

/* What a policy reports, and what it remembers of a layer, is described by the
 * policy's file alone: --trace-cache, `analyze` and `validate` find values by
 * their names. */
typedef struct tt_field {
    const char *name;      /* "mass"                                          */
    const char *help;      /* what it holds, with its extent                  */
    tt_dtype type;         /* of the values: TT_I64, TT_F64 or TT_U8          */
    unsigned flags;        /* TT_FIELD_* below                                */
    size_t width;          /* TT_FIELD_ROW: TT_AT(M): rows of a trace hold at
                              least so many values                            */
    int64_t rest;          /* TT_FIELD_ROW: what fills shorter rows of a trace
                              up                                              */
} tt_field;
enum {
    TT_FIELD_ROW = 1,      /* any number of values; without it exactly one    */
    TT_FIELD_TRACED = 2,   /* a tensor of the trace, EVENT_FIELD [event, ...],
                              of what is shown FIELD [chunk, layer, ...]      */
    TT_FIELD_REAL = 4      /* F64, and in a trace of the type tt_real         */
};

/* A kind of event: "grab", one admission round of TetherCache. */
#define TT_EVENT_FIELDS 12
typedef struct tt_event_kind {
    const char *name;
    const tt_field *field; /* at most TT_EVENT_FIELDS; ends with a NULL name  */
} tt_event_kind;

typedef struct tt_event {
    const tt_event_kind *kind;
    int64_t layer, chunk;
    struct {
        const void *at;    /* [n] values of the field's type                  */
        int64_t n;
    } value[TT_EVENT_FIELDS]; /* in the order of kind->field                  */
} tt_event;

struct tt_policy_class {
    const char *name;
    const char *summary;   /* one sentence for --help                         */
    const tt_knob *knobs;  /* ends with a NULL name; NULL: none               */
    const tt_policy_preset *presets; /* likewise                              */
    const tt_policy_schedule *schedule; /* NULL: Self-Forcing's               */
    unsigned flags;
    /* Refuse impossible options with the rule that was broken (TT_EINVAL);
     * may warn; may replace -1 by what it means. Knobs are within their own
     * limits already. NULL: no further rule. */
    tt_status (*check)(tt_ctx *ctx, tt_policy_options *opt,
                       const tt_geometry *geo);
    /* Token slots of a layer. */
    int64_t (*slots)(const tt_policy_options *opt, const tt_geometry *geo);
    /* Of these, how many a plan reads at most: what kept keys need. NULL: all.
     */
    int64_t (*reads)(const tt_policy_options *opt, const tt_geometry *geo);
    /* Bytes of `state`. NULL: state_bytes of them, whatever the options. */
    size_t (*state_size)(const tt_policy_options *opt, const tt_geometry *geo);
    size_t state_bytes;
    int state_flags;       /* `state` begins with so many int64_t that are 0 or
                              1; saved states are checked for it              */
    int state_version;     /* raised whenever `state` gets another meaning: a
                              state saved before is refused then              */
    /* What stands at the end of `state` and belongs to heads; all before it is
     * the same on every rank of a team. NULL: nothing. */
    tt_state_heads (*state_heads)(const tt_policy_options *opt,
                                  const tt_geometry *geo);
    /* That end holds values, or statistics of them. Where there is a device it
     * is memory of it, and `state` ends before it. */
    bool values_of_heads;
    /* Values of `shared`; NULL: none. */
    size_t (*shared_size)(const tt_policy_options *opt, const tt_geometry *geo);
    void (*reset)(tt_ctx *ctx, tt_layer *y);                 /* may be NULL   */
    /* Could these functions have left a layer whose metadata and state came
     * from a file? len, sources and positions are within their ranges
     * and flags already; k and v must not be looked at. NULL: yes, when the
     * live tokens are whole frames. */
    bool (*valid)(const tt_layer *y);
    /* The verbs, in the order of a pass. NULL means what most policies do.
     *
     * A chunk's first pass: make room, len grows by frames*L. NULL:
     * tt_layer_roll after the S sink frames. */
    void (*begin)(tt_ctx *ctx, tt_layer *y, const tt_pass *p, const tt_qkv *x);
    /* Every pass: the chunk's k and v into its slots. NULL: tt_layer_put. */
    void (*write)(tt_ctx *ctx, tt_layer *y, const tt_pass *p, const tt_qkv *x);
    /* The clean pass, before attention reads: choose, edit. NULL: nothing. */
    void (*commit)(tt_ctx *ctx, tt_layer *y, const tt_pass *p, const tt_qkv *x);
    void (*plan)(tt_ctx *ctx, const tt_layer *y, const tt_pass *p,
                 tt_plan *out);
    /* Every pass, after attention has read: work that must not influence it.
     * NULL: nothing. */
    void (*done)(tt_ctx *ctx, tt_layer *y, const tt_pass *p);
    /* Largest frame position any plan can ask for, plus one. */
    int64_t (*positions)(const tt_policy_options *opt, const tt_geometry *geo);
    /* Kinds of events it reports (tt_cache_report); end with a NULL name.
     * NULL: none. */
    const tt_event_kind *events;
    /* What a layer shows between passes: `show` fills in out->value. NULL:
     * nothing but its slots. */
    const tt_event_kind *shown;
    void (*show)(const tt_layer *y, tt_event *out);
};

/* ---- helpers for writing policies --------------------------------------- */

/* Move n token slots, k, v and metadata, from `from` to `to`; the ranges may
 * overlap. What is left over stays readable and is not erased. */
void tt_layer_move(tt_ctx *ctx, tt_layer *y, int64_t to, int64_t from,
                   int64_t n);
/* Make room for n new tokens at the end: when len + n > cap, the tokens that
 * do not fit are dropped right after the first `keep` ones, which stay where
 * they are; then len grows by n. The new slots still hold old data.
 * Needs keep + n <= cap. True when something was dropped. */
bool tt_layer_roll(tt_ctx *ctx, tt_layer *y, int64_t keep, int64_t n);
/* Store the chunk's k, v in the last live slots, k unless own_k is set, with
 * metadata src_frame = tpos = start + i/L and
 * sidx = i mod L. */
void tt_layer_put(tt_ctx *ctx, tt_layer *y, const tt_pass *p, const tt_qkv *x);

/* ---- the built-in policies ---------------------------------------------- */

/* Built-in classes by name, NULL when unknown; i-th, NULL past the end: in
 * the order of their names. */
const tt_policy_class *tt_policy_find(const char *name);
const tt_policy_class *tt_policy_at(int i);

/* Every knob at its default. An unknown name gives options without knobs. */
tt_policy_options tt_policy_defaults(const char *name);

/* ---- a cache of all layers ---------------------------------------------- */

/* What attention reads now: keys rotated as planned, values, and the chunk's
 * queries rotated. k is in ctx->scratch, or kept until the layer is read again,
 * or in the cache (tt_geometry.bf16);
 * v points to values in the cache, or of several segments is gathered too. Of
 * the first `n_packed` tokens there is nothing but what `packed` has;
 * attention is given all of this, over all of the window, before tt_cache_done.
 * With a failure recorded in ctx, n is 0 and nothing is read.
 *   q_out, q_in [frames*L, H, D] (may be the same array)
 * Errors  TT_EFORMAT: a position that no run gives (a damaged state) */
typedef struct tt_kv_view {
    const tt_real *k, *v;  /* [n - n_packed, H, D]: from token n_packed on   */
    int64_t n;
    bool bf16;             /* as in tt_attention_args                         */
    tt_real *packed;       /* as in tt_attention_args; NULL: none is kept   */
    int64_t n_packed;
} tt_kv_view;

/* ---- what happened (--trace-cache) -------------------------------------- */

/* Hear what the policy of this cache reports from here on; fn NULL: no one
 * listens. Events and their values are valid during the call. */
typedef void (*tt_event_fn)(void *user, const tt_event *e);
/* For policies: hand an event to whoever listens. */
void tt_cache_report(tt_cache *c, const tt_event *e);

TT_API_END

#endif
