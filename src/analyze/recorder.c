/* recorder.c: look at the cache after every context pass and remember.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   everything is read off the token slots, the policy's own plan, and
 *         the fields that it shows and reports (policy.h), so any policy is
 *         recorded without knowing this file. Two things go by the names of
 *         fields: "memory_index" and "cache_filled" say which slots are memory,
 *         and an event with "selected" chose tokens.
 * Next    recorder_compress.c, recorder_write.c */
#include "analyze/recorder.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "analyze/files.h"
#include "core/device.h"
#include "team/team.h"

static const char what[] = "the record of a run";

/* ---- events -------------------------------------------------------------- */

static void *recorder_copy(tt_recorder *r, const void *from, int64_t n,
                           size_t size)
{
    void *to = tt_alloc(r->ctx, &r->mem, n, size, what);
    if (to && n) memcpy(to, from, (size_t)n * size);
    return to;
}

static void keep_event(tt_recorder *r, rec_kind *k, const tt_event *e)
{
    rec_event *x = tt_alloc0(r->ctx, &r->mem, 1, sizeof *x, what);
    if (!x) return;
    x->e = *e;
    for (int i = 0; k->kind->field[i].name; i++) {
        const tt_field *f = &k->kind->field[i];
        const int64_t n = e->value[i].n;
        if (!recorder_keeps(f)) continue;
        x->e.value[i].at = recorder_copy(r, e->value[i].at, n,
                                         tt_dtype_size(f->type));
        if (n > k->width[i]) k->width[i] = n;
    }
    if (r->ctx->status) return;
    *k->last = x;
    k->last = &x->next;
}

static void on_event(void *user, const tt_event *e)
{
    tt_recorder *r = user;
    for (int i = 0; i < r->nkinds; i++)
        if (r->kind[i].kind == e->kind) keep_event(r, &r->kind[i], e);
    if (r->chooses) recorder_take_choice(r, e);
}

/* Rows of a trace hold as many values as the knob that the field names says,
 * or as the longest row. */
static int64_t least_width(const tt_policy_options *o, const tt_field *f)
{
    int64_t n = 0;
    if (f->width) memcpy(&n, (const char *)o + f->width, sizeof n);
    return n;
}

static bool chooses_tokens(const tt_event_kind *k)
{
    for (const tt_field *f = k->field; f->name; f++)
        if (!strcmp(f->name, "selected")) return true;
    return false;
}

/* One list for every kind of event that has something to trace. */
static void list_events(tt_recorder *r)
{
    const tt_event_kind *all = tt_cache_class(r->cache)->events;
    int n = 0;
    while (all && all[n].name) n++;
    r->kind = tt_alloc0(r->ctx, &r->mem, n, sizeof *r->kind, what);
    for (int i = 0; i < n && r->kind; i++) {
        rec_kind *k = &r->kind[r->nkinds];
        bool traced = false;
        for (int j = 0; all[i].field[j].name; j++) {
            const tt_field *f = &all[i].field[j];
            traced = traced || recorder_keeps(f);
            k->width[j] = least_width(tt_cache_options(r->cache), f);
        }
        r->chooses = r->chooses || chooses_tokens(&all[i]);
        if (!traced) continue;
        k->kind = &all[i];
        k->last = &k->first;
        r->nkinds++;
    }
}

/* ---- open ---------------------------------------------------------------- */

static const char *in_folder(tt_recorder *r, const char *name)
{
    return files_join(r->ctx, &r->mem, r->opt.folder, name, "");
}

static tt_status recorder_open_files(tt_recorder *r)
{
    const tt_recorder_options *o = &r->opt;
    const int64_t latents[5] = {1, 0, o->C, o->h, o->w};
    const int64_t stats[4] = {0, r->layers, 4, r->width};
    if (!o->folder) return r->ctx->status;
    TT_TRY(files_make_folder(r->ctx, o->folder));
    TT_TRY(tt_st_create(r->ctx, &r->latents,
                        in_folder(r, "latents.safetensors")));
    TT_TRY(tt_st_add(r->latents, "latents", sizeof(tt_real) == 8 ? TT_F64
                     : TT_F32, 5, latents, NULL));
    if (r->chooses) {
        const int64_t row[2] = {0, 6};
        TT_TRY(tt_st_create(r->ctx, &r->chosen,
                            in_folder(r, "chosen.safetensors")));
        TT_TRY(tt_st_add(r->chosen, "comp_chosen", TT_F64, 2, row, NULL));
    }
    if (!r->measures) return TT_OK;
    TT_TRY(tt_st_create(r->ctx, &r->features,
                        in_folder(r, "features.safetensors")));
    return tt_st_add(r->features, "kv_stats", TT_F32, 4, stats, NULL);
}

static const char *keep_text(tt_recorder *r, const char *s)
{
    return s ? tt_strdup(r->ctx, &r->mem, s) : NULL;
}

static void keep_options(tt_recorder *r, const tt_recorder_options *o)
{
    r->opt = *o;
    r->opt.folder = keep_text(r, o->folder);
    r->opt.trace = keep_text(r, o->trace);
    r->opt.label = keep_text(r, o->label ? o->label
                                         : tt_cache_class(r->cache)->name);
    r->opt.prompt = keep_text(r, o->prompt);
    tt_recorder_scene *scene = tt_alloc(r->ctx, &r->mem, o->nscenes,
                                        sizeof *scene, what);
    for (int i = 0; scene && i < o->nscenes; i++) {
        scene[i] = o->scene[i];
        scene[i].prompt = keep_text(r, scene[i].prompt);
    }
    r->opt.scene = scene;
    r->opt.video = keep_text(r, o->video);
    r->opt.sheet = keep_text(r, o->sheet);
}

tt_status tt_recorder_open(tt_ctx *ctx, tt_recorder **out, tt_cache *cache,
                           const tt_recorder_options *opt)
{
    const tt_geometry *geo = tt_cache_geometry(cache);
    tt_arena mem = {0};
    *out = NULL;
    tt_recorder *r = tt_alloc0(ctx, &mem, 1, sizeof *r, what);
    if (!r) return ctx->status;
    r->ctx = ctx;
    r->mem = mem;
    r->cache = cache;
    r->layers = geo->layers;
    r->L = geo->L;
    r->width = geo->heads * geo->D;
    r->held = geo->H * geo->D;
    r->measures = opt->follows || (opt->folder && opt->features);
    r->slots = (tt_cache_look(cache, 0)->cap + geo->L - 1) / geo->L;
    TT_ASSERT(!r->measures || !geo->bf16);   /* keys as they were written  */
    r->last_chunk = &r->chunks;
    r->last_part = &r->parts;
    r->last_choice = &r->choices;
    tt_cache_show(cache, 0, &r->shown);
    list_events(r);
    keep_options(r, opt);
    if (ctx->status || recorder_open_files(r)) {
        tt_recorder_abort(r);
        return ctx->status;
    }
    if (!opt->follows) tt_cache_on_event(cache, on_event, r);
    *out = r;
    return TT_OK;
}

void tt_recorder_abort(tt_recorder *r)
{
    if (!r) return;
    tt_arena mem = r->mem; /* r itself lives in it */
    tt_cache_on_event(r->cache, NULL, NULL);
    tt_st_abort(r->chosen);
    tt_st_abort(r->latents);
    tt_st_abort(r->features);
    tt_arena_free(&mem);
}

void tt_recorder_shift(tt_recorder *r, int64_t first)
{
    if (!r) return;
    r->shift = first;
}

/* ---- slots --------------------------------------------------------------- */

/* Source frame of token slot i in frames of the video. */
static int32_t source(const tt_recorder *r, const tt_layer *y, int64_t i)
{
    int32_t f = y->src_frame[i];
    return f < 0 ? f : f + (int32_t)r->shift;
}

/* Tokens [lo, hi) come from several frames: one part per frame. Returns the
 * most frequent one and its tokens; count [frames + 3] is zero before and
 * after. */
static int32_t split_slot(tt_recorder *r, const tt_layer *y, int64_t slot,
                          int64_t lo, int64_t hi, int32_t *count,
                          int64_t *most)
{
    int32_t best = -1;
    *most = 0;
    for (int64_t i = lo; i < hi; i++) count[source(r, y, i) + 3]++;
    for (int64_t i = lo; i < hi; i++) {
        int32_t f = source(r, y, i), n = count[f + 3];
        if (!n) continue;
        count[f + 3] = 0;
        if (n > *most || (n == *most && f < best)) {
            *most = n;
            best = f;
        }
        rec_part *p = tt_alloc0(r->ctx, &r->mem, 1, sizeof *p, what);
        if (!p) continue;
        const int32_t row[5] = {(int32_t)r->nchunks, (int32_t)y->index,
                                (int32_t)slot, f, n};
        memcpy(p->row, row, sizeof row);
        *r->last_part = p;
        r->last_part = &p->next;
    }
    return best;
}

static void look_at_slots(tt_recorder *r, rec_chunk *x, const tt_layer *y,
                          int32_t *count)
{
    for (int64_t s = 0; s < r->slots; s++) {
        int32_t *src = x->src + y->index * r->slots + s;
        float *share = x->share + y->index * r->slots + s;
        int64_t lo = s * r->L, hi = lo + r->L, most;
        if (hi > y->len) hi = y->len;
        *src = -1;
        if (lo >= hi) continue;
        bool mixed = false;
        for (int64_t i = lo + 1; i < hi && !mixed; i++)
            mixed = y->src_frame[i] != y->src_frame[lo];
        *src = source(r, y, lo);
        most = hi - lo;
        if (mixed) *src = split_slot(r, y, s, lo, hi, count, &most);
        *share = (float)((double)most / (double)r->L);
    }
}

/* Slots of a memory after the sinks, for policies that show one; false: none.
 * *n is 0 until the memory is in use. */
static bool memory_slots(const tt_recorder *r, const tt_layer *y, int64_t *n)
{
    tt_event now;
    tt_cache_show(r->cache, y->index, &now);
    const bool any = tt_event_values(&now, "memory_index", TT_I64, n);
    if (!tt_event_int(&now, "cache_filled")) *n = 0;
    return any;
}

/* See tt_region. */
static void name_regions(tt_recorder *r, rec_chunk *x, const tt_layer *y)
{
    const int32_t *src = x->src + y->index * r->slots;
    const float *share = x->share + y->index * r->slots;
    uint8_t *region = x->region + y->index * r->slots;
    const tt_policy_options *o = tt_cache_options(r->cache);
    const int64_t live = (y->len + r->L - 1) / r->L;
    int64_t recent = live, M;
    const bool has_memory = memory_slots(r, y, &M);
    while (recent > 0 && share[recent - 1] == 1 && src[recent - 1] >= 0
           && (recent == live || src[recent - 1] + 1 == src[recent]))
        recent--;
    for (int64_t s = 0; s < live; s++) {
        bool memory = has_memory ? s >= o->S && s < o->S + M : s < recent;
        region[s] = src[s] >= x->start && share[s] == 1 ? TT_REGION_NEW
                  : s < o->S ? TT_REGION_SINK
                  : memory ? TT_REGION_MEMORY : TT_REGION_RECENT;
    }
}

/* ---- what attention reads ------------------------------------------------ */

static void look_at_plan(tt_recorder *r, rec_chunk *x, const tt_layer *y)
{
    const tt_pass p = {.start = x->start - r->shift, .frames = x->frames,
                       .chunk = r->nchunks, .context = true};
    float *readable = x->readable + y->index * x->nreadable;
    tt_plan plan = {0};
    tt_cache_class(r->cache)->plan(r->ctx, y, &p, &plan);
    for (int i = 0; i < plan.nsegments && !r->ctx->status; i++) {
        const tt_segment *g = &plan.segment[i];
        for (int64_t k = g->slot; k < g->slot + g->ntokens; k++) {
            int32_t f = source(r, y, k);
            if (f >= 0 && f < x->nreadable) readable[f] += 1;
        }
    }
    for (int64_t f = 0; f < x->nreadable; f++)
        readable[f] = (float)((double)readable[f] / (double)r->L);
}

/* ---- statistics of keys and values --------------------------------------- */

/* mean, sd [held] over the tokens whose source is `frame`, two passes in
 * double; NaN when there are none. sum, sq: [held] to work in. */
static void column_stats(float *mean, float *sd, const tt_recorder *r,
                         const tt_layer *y, const tt_host *rows, int64_t frame,
                         double *sum, double *sq)
{
    int64_t n = 0;
    memset(sum, 0, (size_t)r->held * sizeof *sum);
    memset(sq, 0, (size_t)r->held * sizeof *sq);
    for (int64_t i = 0; i < y->len; i++) {
        if (source(r, y, i) != frame) continue;
        const tt_real *row = rows + i * r->held;
        for (int64_t c = 0; c < r->held; c++) sum[c] += row[c];
        n++;
    }
    for (int64_t c = 0; c < r->held; c++) sum[c] /= (double)n;
    for (int64_t i = 0; i < y->len; i++) {
        if (source(r, y, i) != frame) continue;
        const tt_real *row = rows + i * r->held;
        for (int64_t c = 0; c < r->held; c++) {
            double d = row[c] - sum[c];
            sq[c] += d * d;
        }
    }
    for (int64_t c = 0; c < r->held; c++) {
        mean[c] = (float)sum[c];
        sd[c] = (float)sqrt(sq[c] / (double)n);
    }
}

static tt_status add_features(tt_recorder *r, int64_t frame)
{
    tt_ctx *ctx = r->ctx;
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const int64_t w = r->held;
    const tt_geometry *geo = tt_cache_geometry(r->cache);
    float *row = tt_alloc(ctx, &ctx->scratch, r->layers * 4 * w, sizeof *row,
                          what);
    double *work = tt_alloc(ctx, &ctx->scratch, 2 * w, sizeof *work, what);
    for (int64_t i = 0; work && i < r->layers; i++) {
        const tt_layer *y = tt_cache_look(r->cache, i);
        const tt_arena_mark here = tt_arena_here(&ctx->scratch);
        const tt_host *k = tt_get(ctx, y->k, y->len * w);
        const tt_host *v = tt_get(ctx, y->v, y->len * w);
        float *at = row + i * 4 * w;
        if (!v) break;
        column_stats(at, at + w, r, y, k, frame, work, work + w);
        column_stats(at + 2 * w, at + 3 * w, r, y, v, frame, work, work + w);
        tt_arena_reset(&ctx->scratch, here);
    }
    row = tt_team_all_heads(ctx, row, r->layers * 4, geo->heads,
                            (size_t)geo->D * sizeof *row);
    if (row && r->features) tt_st_append(r->features, 0, 1, row);
    tt_arena_reset(&ctx->scratch, m);
    return ctx->status;
}

/* ---- one chunk ----------------------------------------------------------- */

/* What the policy shows of every layer. */
static void look_at_shown(tt_recorder *r, rec_chunk *x)
{
    const tt_field *f = r->shown.kind ? r->shown.kind->field : NULL;
    for (int i = 0; f && f[i].name; i++) {
        const size_t n = (size_t)r->shown.value[i].n * tt_dtype_size(f[i].type);
        if (!recorder_keeps(&f[i])) continue;
        char *to = tt_alloc(r->ctx, &r->mem, r->layers, n, what);
        x->shown[i] = to;
        for (int64_t j = 0; to && j < r->layers; j++, to += n) {
            tt_event now;
            tt_cache_show(r->cache, j, &now);
            if (n) memcpy(to, now.value[i].at, n);
        }
    }
}

static rec_chunk *new_chunk(tt_recorder *r, int64_t start, int64_t frames)
{
    tt_ctx *ctx = r->ctx;
    const int64_t cells = r->layers * r->slots;
    rec_chunk *x = tt_alloc0(ctx, &r->mem, 1, sizeof *x, what);
    if (!x) return NULL;
    x->start = start;
    x->frames = frames;
    x->nreadable = start + frames > r->frames ? start + frames : r->frames;
    x->src = tt_alloc0(ctx, &r->mem, cells, sizeof *x->src, what);
    x->share = tt_alloc0(ctx, &r->mem, cells, sizeof *x->share, what);
    x->region = tt_alloc0(ctx, &r->mem, cells, 1, what);
    x->readable = tt_alloc0(ctx, &r->mem, r->layers * x->nreadable,
                            sizeof *x->readable, what);
    return ctx->status ? NULL : x;
}

/* The cache as it is now. */
static void look_at_cache(tt_recorder *r, int64_t start, int64_t frames)
{
    tt_ctx *ctx = r->ctx;
    rec_chunk *x = new_chunk(r, start, frames);
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    const tt_layer *y = tt_cache_look(r->cache, 0);
    int32_t *count = !x ? NULL : tt_alloc0(ctx, &ctx->scratch,
                                           x->nreadable + 3, sizeof *count,
                                           what);
    if (!count) return;
    x->ends[0] = y->seen;
    x->ends[1] = y->len / r->L;
    for (int64_t i = 0; i < r->layers; i++) {
        y = tt_cache_look(r->cache, i);
        look_at_slots(r, x, y, count);
        name_regions(r, x, y);
        look_at_plan(r, x, y);
    }
    look_at_shown(r, x);
    tt_arena_reset(&ctx->scratch, m);
    *r->last_chunk = x;
    r->last_chunk = &x->next;
    r->frames = x->nreadable;
    r->nchunks++;
}

/* What an earlier run has left in the folder would be read as this one's. */
static void forget_earlier(tt_recorder *r)
{
    static const char *const name[] = {
        "run.json", "index.html", "trace.safetensors", "latents.safetensors",
        "features.safetensors", "chosen.safetensors"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        const char *path = in_folder(r, name[i]);
        if (path) unlink(path);
    }
}

/* A long trace is written after fewer chunks: all of them together stay a small
 * multiple of the last. */
static void write_so_far(tt_recorder *r)
{
    const tt_arena_mark m = tt_arena_here(&r->ctx->scratch);
    if (!r->opt.during || !r->opt.folder || r->ctx->status
        || r->nchunks % (1 + r->nchunks / 64)) return;
    if (!r->so_far) forget_earlier(r);
    r->so_far = true;
    recorder_write_trace(r, in_folder(r, "trace.safetensors"));
    if (!r->ctx->status) recorder_write_run(r, in_folder(r, "run.json"));
    tt_arena_reset(&r->ctx->scratch, m);
}

tt_status tt_recorder_chunk(tt_recorder *r, int64_t start, int64_t frames,
                            const tt_real *latents)
{
    if (!r) return TT_EINVAL;
    tt_ctx *ctx = r->ctx;
    if (ctx->status) return ctx->status;
    if (!r->opt.follows) look_at_cache(r, start, frames);
    if (latents && r->latents) tt_st_append(r->latents, 1, frames, latents);
    for (int64_t f = 0; latents && r->measures && f < frames; f++)
        TT_TRY(add_features(r, start + f));
    write_so_far(r);
    return ctx->status;
}

tt_status tt_recorder_finish(tt_recorder *r)
{
    if (!r) return TT_EINVAL;
    tt_ctx *ctx = r->ctx;
    tt_arena_mark m = tt_arena_here(&ctx->scratch);
    if (!ctx->status && r->opt.trace) recorder_write_trace(r, r->opt.trace);
    if (!ctx->status && r->opt.folder)
        recorder_write_trace(r, in_folder(r, "trace.safetensors"));
    if (!ctx->status && r->so_far) unlink(in_folder(r, "run.json"));
    r->so_far = false;
    tt_st_finish(r->latents); /* NULL is fine */
    tt_st_finish(r->features);
    tt_st_finish(r->chosen);
    r->latents = r->features = r->chosen = NULL;
    if (!ctx->status && r->opt.folder)
        recorder_write_run(r, in_folder(r, "run.json")); /* last: complete */
    tt_arena_reset(&ctx->scratch, m);
    tt_recorder_abort(r);
    return ctx->status;
}

const char *tt_region_name(tt_region r)
{
    static const char *const name[TT_REGION_COUNT] = {
        "empty", "sink", "memory", "recent", "new"};
    return r >= 0 && r < TT_REGION_COUNT ? name[r] : "unknown";
}
