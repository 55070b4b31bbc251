/* state.c: save a rollout between two chunks, and go on from it.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a safetensors file: `run` (what the run is made from, identity.c, and
 *         what the state itself depends on), `progress` (next chunk, rollout,
 *         frames done), the latents a restart needs, every layer's tokens,
 *         metadata and policy state, and `digest` over all of that.
 * Layout  keys and values are [H, rows, D], head by head: whoever holds some
 *         of the heads reads those, whoever wrote them. Rows after the last
 *         token that was ever written are left out, so a cache with more slots
 *         takes them up as well. All else is one for all heads.
 * Holds   nothing of a rollout changes unless the whole file is accepted. The
 *         digest finds damage; numbers are checked all the same, because they
 *         become indices. */
#include "rollout/run.h"
#include "ops/backend.h"
#include "core/device.h"
#include "team/team.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the file. What `state` of a layer means has a version of its own
 * (tt_policy_class). */
enum { FORMAT = 3 };

/* 64-bit digest of n bytes, continued from h; not cryptographic. They are
 * values of `size` bytes (1, 2, 4, 8) in the host's order; of bytes as stored
 * in a file, with size 1, it is the same. */
static uint64_t state_digest(uint64_t h, const void *data, size_t n,
                             size_t size)
{
    const unsigned char *p = data;
    const bool little = tt_host_little_endian();
    h ^= (uint64_t)n;
    for (; n > 0; ) {            /* FNV-1a with 8-byte steps, shifted back */
        uint64_t word = 0;
        const size_t k = n < sizeof word ? n : sizeof word;
        if (little) memcpy(&word, p, k);
        for (size_t i = 0; !little && i < k; i++)
            word |= (uint64_t)p[i ^ (size - 1)] << (8 * i);
        h = (h ^ word) * UINT64_C(0x100000001b3);
        h ^= h >> 29;
        p += k;
        n -= k;
    }
    return h;
}

/* What the operators make of the weights: the time embedding of one timestep.
 */
static uint64_t probe_weights(tt_ctx *ctx, const tt_dit *m)
{
    const int64_t n = 6 * tt_dit_get_config(m)->dim;
    const double t = 500;
    const tt_arena_mark mark = tt_arena_here(&ctx->scratch);
    tt_real *e = tt_values(ctx, n / 6), *values = tt_values(ctx, n);
    const tt_tap_fn tap = ctx->tap;
    const tt_inject_fn inject = ctx->inject;
    ctx->tap = NULL;             /* not a point of the run                    */
    ctx->inject = NULL;
    tt_dit_time(ctx, m, NULL, e, values, &t, 1);
    ctx->tap = tap;
    ctx->inject = inject;
    const tt_host *e0 = tt_get(ctx, values, n);
    const uint64_t h =
        e0 ? state_digest(0, e0, (size_t)n * sizeof *e0, sizeof *e0) : 0;
    tt_arena_reset(&ctx->scratch, mark);
    return h;
}

/* A policy's own state is saved as it lies in memory. */
char *state_identity(tt_ctx *ctx, tt_rollout *r)
{
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const uint64_t weights = probe_weights(ctx, r->model);
    const char *run = rollout_identity(ctx, &ctx->scratch, r->model, &r->opt);
    const size_t capacity = run ? strlen(run) + 100 : 0;
    char *text = run ? tt_alloc0(ctx, &r->arena, (int64_t)capacity, 1,
                                 "run record")
                     : NULL;
    if (text)
        snprintf(text, capacity, "%s\ntether-state %d %s %d %016" PRIx64, run,
                 FORMAT,
                 tt_host_little_endian() ? "little-endian" : "big-endian",
                 tt_cache_class(r->cache)->state_version, weights);
    tt_arena_reset(&ctx->scratch, m);
    return text;
}

/* ---- the parts of the file, in order ------------------------------------- */

typedef struct part {
    char name[64];
    tt_dtype dtype;
    int rank;
    int64_t dim[3];
    void *data;                  /* NULL, and no values: an absent part       */
    tt_real *values;             /* [rows, held, D], stored as [H, rows, D]:
                                    numbers of the type                       */
} part;

#define LAYER_PARTS 7
#define RUN_PARTS 2

static size_t part_bytes(const part *p)
{
    int64_t n = 1;
    for (int i = 0; i < p->rank; i++) n *= p->dim[i];
    return p->data || p->values ? (size_t)n * tt_dtype_size(p->dtype) : 0;
}

static tt_dtype real_type(void)
{
    return sizeof(tt_real) == 8 ? TT_F64 : TT_F32;
}

/* Latents of the rollout in progress; absent when no one asks for them again.
 */
static part run_part(const tt_rollout *r, int i)
{
    part p = { .dtype = real_type(), .rank = 2 };
    snprintf(p.name, sizeof p.name, i == 0 ? "clip" : "start");
    p.data = i == 0 ? r->clip : r->start;
    p.dim[0] = i == 0 ? r->opt.initial_frames + r->opt.latents
                      : r->opt.overlap;
    p.dim[1] = r->frame_size;
    return p;
}

/* The end of a layer's state, which belongs to heads. */
static tt_state_heads state_heads(const tt_layer *y)
{
    const tt_policy_class *cls = tt_cache_class(y->cache);
    return cls->state_heads ? cls->state_heads(y->opt, y->geo)
                            : (tt_state_heads){0};
}

static size_t bytes_of_heads(const tt_layer *y, int64_t heads)
{
    const tt_state_heads s = state_heads(y);
    return (size_t)(s.rows * heads) * s.unit;
}

/* Bytes of a layer's state before those of heads. */
static size_t state_front(const tt_layer *y)
{
    return y->state_size - bytes_of_heads(y, y->geo->H);
}

/* Part i of layer y with `rows` tokens, of all heads of the model, for i <
 * LAYER_PARTS. Values, and the end of the state, are those of heads held. */
static part layer_part(const tt_layer *y, int i, int64_t rows, int64_t ends[2])
{
    static const char *const names[LAYER_PARTS] = {
        "k", "v", "src_frame", "sidx", "tpos", "ends", "state" };
    part p = { .dtype = TT_I32, .rank = 1, .dim = { rows } };
    snprintf(p.name, sizeof p.name, "layer.%" PRId64 ".%s", y->index, names[i]);
    switch (i) {
    case 0:
    case 1:
        p.dtype = y->geo->bf16 ? TT_BF16 : real_type();
        p.rank = 3, p.values = i == 0 ? y->k : y->v;
        p.dim[0] = y->geo->heads, p.dim[1] = rows, p.dim[2] = y->geo->D;
        break;
    case 2: p.data = y->src_frame; break;
    case 3: p.data = y->sidx; break;
    case 4: p.data = y->tpos; break;
    case 5: p.dtype = TT_I64, p.dim[0] = 2, p.data = ends; break;
    case 6:
        p.dtype = TT_U8;
        p.dim[0] = (int64_t)(state_front(y)
                             + bytes_of_heads(y, y->geo->heads));
        p.data = y->state_size > 0 ? y->state : NULL;
        break;
    }
    return p;
}

/* Tokens up to the last one that was ever written, at least one. */
static int64_t rows_of(const tt_layer *y)
{
    int64_t n = y->cap;
    while (n > 1 && y->src_frame[n - 1] == TT_SRC_NONE
           && !y->sidx[n - 1] && !y->tpos[n - 1]) n--;
    return n;
}

/* ---- save ---------------------------------------------------------------- */

/* A file that rank 0 writes, from what all ranks bring. */
typedef struct saving {
    tt_ctx *ctx;
    bool first;                  /* we are rank 0                             */
    tt_ctx disk;                 /* its failures are the file's: the ranks go
                                    on to the end, and all learn of it there  */
    tt_st_writer *file;
    uint64_t digest;
} saving;

static void state_put(saving *s, const part *p, const void *data)
{
    if (!s->first) return;
    tt_st_add(s->file, p->name, p->dtype, p->rank, p->dim, data);
    s->digest = state_digest(s->digest, data, part_bytes(p),
                             tt_dtype_size(p->dtype));
}

static bool holds(const tt_geometry *g, int64_t h)
{
    return h >= g->first && h < g->first + g->H;
}

/* One head at a time, so that no second copy of a layer is in memory. */
static void put_heads(saving *s, const part *p, const tt_geometry *g)
{
    tt_ctx *ctx = s->ctx;
    const int64_t rows = p->dim[1];
    const size_t unit = tt_dtype_size(p->dtype), one = (size_t)g->D * unit;
    const size_t bytes = (size_t)rows * one;
    const int64_t none[] = { 0, rows, g->D };
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const char *x = (const char *)tt_get(ctx, p->values, rows * cache_row(g));
    char *head = tt_alloc(ctx, &ctx->scratch, rows, one, "saved state");
    if (s->first) tt_st_add(s->file, p->name, p->dtype, 3, none, NULL);
    for (int64_t h = 0; h < g->heads && !ctx->status; h++) {
        const int64_t held = h - g->first;
        for (int64_t t = 0; holds(g, h) && t < rows; t++)
            memcpy(head + (size_t)t * one,
                   x + (size_t)(t * g->H + held) * one, one);
        tt_team_bring_head(ctx, head, (int64_t)bytes, g->heads, h);
        if (!s->first || ctx->status) continue;
        tt_st_append(s->file, 0, 1, head);
        s->digest = state_digest(s->digest, head, bytes, unit);
    }
    tt_arena_reset(&ctx->scratch, m);
}

/* Values of it, where that is what it is. */
static int64_t values_of_heads(const tt_layer *y)
{
    return (int64_t)(bytes_of_heads(y, y->geo->H) / sizeof(tt_real));
}

/* As one rank has it: what all have, then the pieces of all heads. */
static void put_state(saving *s, const part *p, const tt_layer *y)
{
    tt_ctx *ctx = s->ctx;
    const tt_state_heads heads = state_heads(y);
    const size_t front = state_front(y), n = (size_t)p->dim[0];
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    void *held = y->of_heads ? (void *)tt_get(ctx, y->of_heads,
                                              values_of_heads(y))
                             : (char *)y->state + front;
    char word = 0;                     /* rank 0 may be at its disk for long */
    if (heads.rows && heads.unit) tt_team_broadcast(ctx, &word, sizeof word);
    const char *all = heads.rows == 0 || !heads.unit ? held
                    : tt_team_all_heads(ctx, held, heads.rows, y->geo->heads,
                                        heads.unit);
    char *state = tt_alloc(ctx, &ctx->scratch, (int64_t)n, 1, "saved state");
    if (state && all) {
        memcpy(state, y->state, front);
        memcpy(state + front, all, n - front);
        state_put(s, p, state);
    }
    tt_arena_reset(&ctx->scratch, m);
}

static void put_layer(saving *s, const tt_layer *y)
{
    int64_t ends[2] = { y->len, y->seen };
    for (int j = 0; j < LAYER_PARTS && !s->ctx->status; j++) {
        const part p = layer_part(y, j, rows_of(y), ends);
        if (p.values) put_heads(s, &p, y->geo);
        else if (p.data == y->state && p.data) put_state(s, &p, y);
        else if (p.data) state_put(s, &p, p.data);
    }
}

static void begin_file(saving *s, const tt_rollout *r, const char *path)
{
    const int64_t layers = tt_cache_geometry(r->cache)->layers;
    const int64_t n = (int64_t)strlen(r->identity);
    const int64_t progress[3] = { r->chunk, r->rollout, r->done };
    if (!s->first || tt_st_create(&s->disk, &s->file, path)) return;
    /* the header's room: without it a second file would get a copy */
    tt_st_reserve(s->file, 4096 + layers * LAYER_PARTS * 160);
    state_put(s, &(part){ .name = "run", .dtype = TT_U8, .rank = 1,
                         .dim = { n }, .data = r->identity }, r->identity);
    state_put(s, &(part){ .name = "progress", .dtype = TT_I64, .rank = 1,
                    .dim = { 3 }, .data = (void *)progress }, progress);
    for (int i = 0; i < RUN_PARTS; i++) {
        const part p = run_part(r, i);
        if (p.data) state_put(s, &p, p.data);
    }
}

static void end_file(saving *s)
{
    const uint64_t h = s->digest;
    if (!s->first) return;
    state_put(s, &(part){ .name = "digest", .dtype = TT_U64, .rank = 1,
                    .dim = { 1 }, .data = (void *)&h }, &h);
    if (s->ctx->status) tt_st_abort(s->file);
    else tt_st_finish(s->file);
}

/* Of rank 0 alone; ctx's memory and its failures are others. */
static tt_ctx context_of_file(const tt_ctx *ctx)
{
    tt_ctx disk = *ctx;
    disk.scratch = (tt_arena){0};
    disk.team = NULL;
    return disk;
}

tt_status tt_rollout_save(tt_ctx *ctx, const tt_rollout *r, const char *path)
{
    if (ctx->status) return ctx->status;
    if (r->unclean)
        return tt_fail(ctx, TT_EINVAL, "the last chunk got no clean pass, so "
                       "there is no state after it; open the rollout without "
                       "`ends`");
    saving s = { .ctx = ctx, .first = tt_team_rank(ctx) == 0,
                 .disk = context_of_file(ctx) };
    begin_file(&s, r, path);
    for (int64_t i = 0; i < tt_cache_geometry(r->cache)->layers; i++)
        put_layer(&s, tt_cache_look(r->cache, i));
    end_file(&s);
    tt_arena_free(&s.disk.scratch);
    return tt_team_follow(ctx, &s.disk);
}

/* ---- restore ------------------------------------------------------------- */

/* Entry `name` with exactly this type and shape, or a failure. Its bytes are
 * read as they lie, so it must be packed (a PyTorch file can have strides). */
static const tt_entry *state_get(tt_ctx *ctx, const tt_file *f, const part *p,
                                 const char *path)
{
    const tt_entry *e = tt_file_find(f, p->name);
    const bool half = e && e->t.dtype == TT_BF16, kv = p->values != NULL;
    if (kv && e && half != (p->dtype == TT_BF16)) {
        tt_fail(ctx, TT_EINVAL, "%s: keys are %s there, %s in this run: go on "
                "%s --analyze or --dump", path, tt_dtype_name(e->t.dtype),
                tt_dtype_name(p->dtype), half ? "without" : "with");
        return NULL;
    }
    if (!e || e->t.dtype != p->dtype || e->t.rank != p->rank
        || memcmp(e->t.dim, p->dim, (size_t)p->rank * sizeof *p->dim)
        || !tt_tensor_packed(&e->t)) {
        tt_fail(ctx, TT_EFORMAT, "%s: not a saved state of this run: tensor %s "
                "is %s", path, p->name, e ? "of another shape or type"
                                          : "missing");
        return NULL;
    }
    return e;
}

/* Tokens that the file has of a layer; what does not fit is the layer's own
 * number, which no entry will have. */
static int64_t rows_in_file(const tt_file *f, const tt_layer *y)
{
    const part p = layer_part(y, 2, y->cap, NULL);
    const tt_entry *e = tt_file_find(f, p.name);
    const bool fits = e && e->t.rank == 1 && e->t.dim[0] >= 1
                   && e->t.dim[0] <= y->cap;
    return fits ? e->t.dim[0] : y->cap;
}

/* The sentence shows the first difference. */
static tt_status check_identity(tt_ctx *ctx, const char *theirs, size_t n,
                                const char *ours, const char *path)
{
    char what[200] = "another version of the program, or other weights";
    if (n == strlen(ours) && !memcmp(theirs, ours, n)) return TT_OK;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    char *there = tt_alloc0(ctx, &ctx->scratch, (int64_t)n + 1, 1, "a line");
    char *here = tt_strdup(ctx, &ctx->scratch, ours);
    if (!there || !here) return ctx->status;
    memcpy(there, theirs, n);
    there[strcspn(there, "\n")] = here[strcspn(here, "\n")] = 0;
    if (strcmp(there, here))
        rollout_difference(what, sizeof what, there, here);
    tt_arena_reset(&ctx->scratch, m);
    return tt_fail(ctx, TT_EINVAL, "%s was saved by another run (%s)", path,
                   what);
}

/* The digest of the file's layer, continued from *h. */
static tt_status state_check_layer(tt_ctx *ctx, const tt_layer *y,
                                   const tt_file *f, uint64_t *h,
                                   const char *path)
{
    int64_t ends[2];
    const int64_t rows = rows_in_file(f, y);
    for (int j = 0; j < LAYER_PARTS; j++) {
        const part p = layer_part(y, j, rows, ends);
        const int64_t heads = p.values ? p.dim[0] : 1;
        const size_t n = part_bytes(&p) / (size_t)heads;
        if (n == 0) continue;
        const tt_entry *e = state_get(ctx, f, &p, path);
        if (!e) return ctx->status;
        for (int64_t i = 0; i < heads; i++)
            *h = state_digest(*h, (const char *)e->t.data + (size_t)i * n, n,
                              1);
    }
    return TT_OK;
}

static tt_status state_check_file(tt_ctx *ctx, const tt_rollout *r,
                                  const tt_file *f, int64_t progress[3],
                                  const char *path)
{
    const tt_entry *run = tt_file_find(f, "run");
    if (!run || run->t.dtype != TT_U8 || run->t.rank != 1
        || !tt_tensor_packed(&run->t))
        return tt_fail(ctx, TT_EFORMAT, "%s: not the saved state of a rollout",
                       path);
    const size_t n = (size_t)run->t.dim[0];
    TT_TRY(check_identity(ctx, run->t.data, n, r->identity, path));
    uint64_t h = state_digest(0, run->t.data, n, 1), stored;
    const tt_entry *e = state_get(ctx, f, &(part){ .name = "progress",
                                             .dtype = TT_I64, .rank = 1,
                                             .dim = { 3 } }, path);
    if (!e) return ctx->status;
    tt_gather(progress, &e->t);
    h = state_digest(h, e->t.data, 3 * sizeof *progress, 1);
    for (int i = 0; i < RUN_PARTS; i++) {
        const part p = run_part(r, i);
        if (!p.data) continue;
        if (!(e = state_get(ctx, f, &p, path))) return ctx->status;
        h = state_digest(h, e->t.data, part_bytes(&p), 1);
    }
    for (int64_t i = 0; i < tt_cache_geometry(r->cache)->layers; i++)
        TT_TRY(state_check_layer(ctx, tt_cache_look(r->cache, i), f, &h, path));
    e = state_get(ctx, f, &(part){ .name = "digest", .dtype = TT_U64, .rank = 1,
                             .dim = { 1 } }, path);
    if (!e) return ctx->status;
    tt_gather(&stored, &e->t);
    if (stored != h)
        return tt_fail(ctx, TT_EFORMAT, "%s: the saved state is damaged "
                       "(digest %016" PRIx64 ", expected %016" PRIx64 "); "
                       "start the run again", path, h, stored);
    return TT_OK;
}

/* The number of chunks done decides where a run stands. */
static bool progress_fits(const tt_rollout *r, const int64_t progress[3])
{
    const int64_t per_rollout = r->chunks / r->opt.rollouts, n = progress[0];
    if (n < 0 || n > r->chunks) return false;
    const int64_t rollout = n == 0 ? 0 : (n - 1) / per_rollout;
    const int64_t chunks = n - rollout * per_rollout;
    const int64_t done = chunks == 0 ? 0 : tt_rollout_chunk_frames(r, 0)
                                           + (chunks - 1) * r->opt.chunk;
    return progress[1] == rollout && progress[2] == done;
}

/* Metadata that reading the cache can live with. What was never written and
 * got into the cache all the same (tether, when chunks do not fill K exactly)
 * has no frame and no position. */
static bool metadata_fits(const tt_rollout *r, const tt_layer *y, int64_t done)
{
    const tt_policy_class *cls = tt_cache_class(r->cache);
    const int64_t frames = y->geo->frames, L = y->geo->L;
    int64_t positions = cls->positions(y->opt, y->geo);
    if (positions < frames) positions = frames;  /* kept, though never read */
    if (y->len < 0 || y->len > y->cap || y->seen != done) return false;
    for (int64_t i = 0; i < y->cap; i++)
        if (y->src_frame[i] < TT_SRC_SHORT || y->src_frame[i] >= done
            || y->sidx[i] < 0 || y->sidx[i] >= L
            || y->tpos[i] < (y->src_frame[i] == TT_SRC_NONE ? -1 : 0)
            || y->tpos[i] >= positions)
            return false;
    return true;
}

/* The slots that a file leaves out are as in an empty cache. */
static void forget_slots(tt_layer *y, int64_t rows)
{
    for (int64_t i = rows; i < y->cap; i++) {
        y->src_frame[i] = TT_SRC_NONE;
        y->sidx[i] = y->tpos[i] = 0;
    }
}

/* Everything of a layer in the file but keys and values. */
static void gather_layer(tt_layer *y, const tt_file *f)
{
    int64_t ends[2] = {0};
    const int64_t rows = rows_in_file(f, y);
    forget_slots(y, rows);
    for (int j = 2; j < LAYER_PARTS; j++) {
        const part p = layer_part(y, j, rows, ends);
        if (p.data) tt_gather(p.data, &tt_file_find(f, p.name)->t);
    }
    y->len = ends[0];
    y->seen = ends[1];
}

/* A copy of layer i's metadata and policy state as the file has them, in
 * ctx->scratch. */
static tt_layer layer_in_file(tt_ctx *ctx, const tt_rollout *r,
                              const tt_file *f, int64_t i)
{
    tt_layer y = *tt_cache_look(r->cache, i);
    tt_arena *a = &ctx->scratch;
    y.k = y.v = NULL;
    y.src_frame = tt_alloc(ctx, a, y.cap, sizeof *y.src_frame, "saved state");
    y.sidx = tt_alloc(ctx, a, y.cap, sizeof *y.sidx, "saved state");
    y.tpos = tt_alloc(ctx, a, y.cap, sizeof *y.tpos, "saved state");
    y.state = tt_alloc(ctx, a, (int64_t)(state_front(&y)
                       + bytes_of_heads(&y, y.geo->heads)), 1, "saved state");
    if (!ctx->status) gather_layer(&y, f);
    return y;
}

static tt_status state_check_values(tt_ctx *ctx, const tt_rollout *r,
                                    const tt_file *f, const int64_t progress[3],
                                    const char *path)
{
    if (!progress_fits(r, progress))
        return tt_fail(ctx, TT_EFORMAT, "%s: a run of %lld chunks cannot stand "
                       "after chunk %lld at frame %lld of rollout %lld; start "
                       "the run again", path, (long long)r->chunks,
                       (long long)progress[0], (long long)progress[2],
                       (long long)progress[1]);
    for (int64_t i = 0; i < tt_cache_geometry(r->cache)->layers; i++) {
        const tt_arena_mark m = tt_arena_here(&ctx->scratch);
        const tt_layer y = layer_in_file(ctx, r, f, i);
        TT_TRY(ctx->status);
        const bool fits = metadata_fits(r, &y, progress[2])
                          && tt_layer_valid(&y);
        tt_arena_reset(&ctx->scratch, m);
        if (!fits)
            return tt_fail(ctx, TT_EFORMAT, "%s: layer %lld of the saved state "
                           "holds numbers that no run with cache %s leaves; "
                           "start the run again", path, (long long)i,
                           tt_cache_class(r->cache)->name);
    }
    return TT_OK;
}

/* ---- load ---------------------------------------------------------------- */

/* A file that rank 0 reads, for all ranks. */
typedef struct loading {
    tt_ctx *ctx;
    const tt_file *file;         /* NULL: we are not rank 0                   */
    char *head;                  /* room for one, [cap, D]                    */
} loading;

/* What a part has in the file is in everybody's `data`. */
static void load_part(loading *l, const part *p, size_t bytes)
{
    if (!p->data || !bytes) return;
    if (l->file) tt_gather(p->data, &tt_file_find(l->file, p->name)->t);
    tt_team_broadcast(l->ctx, p->data, (int64_t)bytes);
}

/* Keys or values of one layer, through a buffer of one head. */
static void load_heads(loading *l, const part *p, const tt_geometry *g)
{
    tt_ctx *ctx = l->ctx;
    const int64_t rows = p->dim[1];
    const size_t one = (size_t)g->D * tt_dtype_size(p->dtype);
    const size_t bytes = (size_t)rows * one;
    const tt_tensor *from = l->file ? &tt_file_find(l->file, p->name)->t : NULL;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_host *values = tt_map_write(ctx, p->values, rows * cache_row(g));
    char *x = (char *)values;
    for (int64_t h = 0; h < g->heads && x && !ctx->status; h++) {
        if (from) {
            const tt_tensor t = tt_tensor_like(
                from, (const char *)from->data + (size_t)h * bytes, 2,
                p->dim + 1);
            tt_gather(l->head, &t);
        }
        tt_team_hand_head(ctx, l->head, (int64_t)bytes, g->heads, h);
        for (int64_t t = 0; holds(g, h) && t < rows; t++)
            memcpy(x + (size_t)(t * g->H + h - g->first) * one,
                   l->head + (size_t)t * one, one);
    }
    tt_put(ctx, p->values, values, rows * cache_row(g));
    tt_arena_reset(&ctx->scratch, m);
}

/* The end of a layer's state: every head's pieces. */
static void load_pieces(loading *l, const part *p, const tt_layer *y)
{
    tt_ctx *ctx = l->ctx;
    const tt_geometry *g = y->geo;
    const tt_state_heads s = state_heads(y);
    const size_t front = state_front(y);
    const char *from = l->file ? (const char *)tt_file_find(l->file, p->name)
                                     ->t.data + front : NULL;
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    tt_host *values = y->of_heads ? tt_map_write(ctx, y->of_heads,
                                                 values_of_heads(y)) : NULL;
    char *to = values ? (char *)values : (char *)y->state + front;
    char *head = tt_alloc(ctx, &ctx->scratch, s.rows, s.unit, "saved state");
    for (int64_t h = 0; h < g->heads && head && !ctx->status; h++) {
        for (int64_t i = 0; from && i < s.rows; i++)
            memcpy(head + (size_t)i * s.unit,
                   from + (size_t)(i * g->heads + h) * s.unit, s.unit);
        tt_team_hand_head(ctx, head, s.rows * (int64_t)s.unit, g->heads, h);
        for (int64_t i = 0; holds(g, h) && i < s.rows; i++)
            memcpy(to + (size_t)(i * g->H + h - g->first) * s.unit,
                   head + (size_t)i * s.unit, s.unit);
    }
    if (values) tt_put(ctx, y->of_heads, values, values_of_heads(y));
    tt_arena_reset(&ctx->scratch, m);
}

static void load_state(loading *l, const part *p, tt_layer *y)
{
    const size_t front = state_front(y);
    if (l->file && front)
        memcpy(y->state, tt_file_find(l->file, p->name)->t.data, front);
    tt_team_broadcast(l->ctx, y->state, (int64_t)front);
    if (y->state_size > front) load_pieces(l, p, y);
}

static void load_layer(loading *l, tt_layer *y)
{
    int64_t ends[2] = {0}, rows = l->file ? rows_in_file(l->file, y) : 0;
    if (tt_team_broadcast(l->ctx, &rows, sizeof rows)) return;
    forget_slots(y, rows);
    for (int j = 0; j < LAYER_PARTS && !l->ctx->status; j++) {
        const part p = layer_part(y, j, rows, ends);
        if (p.values) load_heads(l, &p, y->geo);
        else if (p.data && p.data == y->state) load_state(l, &p, y);
        else load_part(l, &p, part_bytes(&p));
    }
    y->len = ends[0];
    y->seen = ends[1];
}

static void state_load(loading *l, tt_rollout *r, int64_t progress[3])
{
    tt_ctx *ctx = l->ctx;
    const tt_layer *first = tt_cache_look(r->cache, 0);
    const tt_arena_mark m = tt_arena_here(&ctx->scratch);
    l->head = tt_alloc(ctx, &ctx->scratch, first->cap * first->geo->D,
                       sizeof(tt_real), "saved state");
    tt_team_broadcast(ctx, progress, 3 * sizeof *progress);
    if (ctx->status) return;
    r->unclean = false;
    r->chunk = progress[0];
    r->rollout = progress[1];
    r->done = progress[2];
    for (int i = 0; i < RUN_PARTS; i++) {
        const part p = run_part(r, i);
        load_part(l, &p, part_bytes(&p));
    }
    if (r->rollout > 0) r->given = r->start, r->ngiven = r->opt.overlap;
    tt_cache_reset(ctx, r->cache);
    for (int64_t i = 0; i < tt_cache_geometry(r->cache)->layers; i++)
        load_layer(l, tt_cache_layer(r->cache, i));
    tt_arena_reset(&ctx->scratch, m);
}

tt_status tt_rollout_restore(tt_ctx *ctx, tt_rollout *r, const char *path)
{
    if (ctx->status) return ctx->status;
    loading l = { .ctx = ctx };
    tt_ctx disk = context_of_file(ctx);
    tt_file *f = NULL;
    int64_t progress[3] = {0};
    if (tt_team_rank(ctx) == 0 && !tt_file_open(&disk, &f, path)) {
        state_check_file(&disk, r, f, progress, path);
        if (!disk.status) state_check_values(&disk, r, f, progress, path);
        l.file = f;
    }
    tt_arena_free(&disk.scratch);
    if (!tt_team_follow(ctx, &disk)) state_load(&l, r, progress);
    tt_file_close(f);
    return ctx->status;
}
