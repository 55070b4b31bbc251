/* recording.c: open a run folder, or a single file of latents or a trace.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "analyze/recording.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/files.h"
#include "core/utf8.h"
#include "io/json.h"

static const char what[] = "a recorded run";

/* ---- tensors ------------------------------------------------------------- */

/* The tensor `name` of any of the files, its shape checked: -1 takes what is
 * there and reports it. NULL when absent or, with a failure, misshapen. */
static const tt_tensor *recording_find(tt_recording *r, const char *name,
                                       int rank, int64_t *dim)
{
    for (int i = 0; i < 4; i++) {
        const tt_entry *e = r->file[i] ? tt_file_find(r->file[i], name) : NULL;
        if (!e) continue;
        bool ok = e->t.rank == rank && tt_tensor_packed(&e->t);
        for (int k = 0; ok && k < rank; k++)
            ok = dim[k] < 0 || dim[k] == e->t.dim[k];
        if (!ok) {
            char found[128], want[128];
            tt_fail(r->ctx, TT_ESHAPE, "%s: %s has the shape %s, but %s was "
                    "expected (-1: any)", r->path, name,
                    tt_shape_string(found, sizeof found, e->t.rank, e->t.dim),
                    tt_shape_string(want, sizeof want, rank, dim));
            return NULL;
        }
        for (int k = 0; k < rank; k++) dim[k] = e->t.dim[k];
        return &e->t;
    }
    return NULL;
}

/* The same; an empty tensor is as good as none, and its other extents, which
 * no data backs, are not to be trusted. */
static const tt_tensor *find_values(tt_recording *r, const char *name, int rank,
                                    int64_t *dim)
{
    const tt_tensor *t = recording_find(r, name, rank, dim);
    return t && tt_tensor_count(t) > 0 ? t : NULL;
}

static int64_t integer_at(const tt_tensor *t, int64_t i)
{
    const char *p = (const char *)t->data + (size_t)i * tt_dtype_size(t->dtype);
    int64_t a;
    int32_t b;
    if (t->dtype == TT_I64) {
        memcpy(&a, p, sizeof a);
        tt_swap_stored(&a, TT_I64, 1);
        return a;
    }
    if (t->dtype == TT_I32) {
        memcpy(&b, p, sizeof b);
        tt_swap_stored(&b, TT_I32, 1);
        return b;
    }
    return *(const uint8_t *)p;
}

/* Integers within lo..hi. */
static const int64_t *integers(tt_recording *r, const char *name, int rank,
                               int64_t *dim, int64_t lo, int64_t hi)
{
    const tt_tensor *t = find_values(r, name, rank, dim);
    if (!t) return NULL;
    if (t->dtype != TT_I64 && t->dtype != TT_I32 && t->dtype != TT_U8) {
        tt_fail(r->ctx, TT_EFORMAT, "%s: %s holds no integers", r->path, name);
        return NULL;
    }
    int64_t n = tt_tensor_count(t);
    int64_t *out = tt_alloc(r->ctx, &r->mem, n, sizeof *out, what);
    for (int64_t i = 0; out && i < n; i++) {
        out[i] = integer_at(t, i);
        if (out[i] >= lo && out[i] <= hi) continue;
        tt_fail(r->ctx, TT_EFORMAT, "%s: %s[%lld] is %lld, outside %lld..%lld",
                r->path, name, (long long)i, (long long)out[i], (long long)lo,
                (long long)hi);
        return NULL;
    }
    return out;
}

static const double *recording_reals(tt_recording *r, const char *name,
                                     int rank, int64_t *dim)
{
    const tt_tensor *t = find_values(r, name, rank, dim);
    if (!t) return NULL;
    if (tt_dtype_block(t->dtype) > 1) {
        tt_fail(r->ctx, TT_EFORMAT, "%s: %s is quantised (%s), but plain "
                "numbers were expected", r->path, name,
                tt_dtype_name(t->dtype));
        return NULL;
    }
    int64_t n = tt_tensor_count(t);
    double *out = tt_alloc(r->ctx, &r->mem, n, sizeof *out, what);
    for (int64_t i = 0; out && i < n; i++) {
        const char *p = (const char *)t->data;
        tt_real v;
        if (t->dtype == TT_F64) {
            memcpy(&out[i], p + 8 * i, 8);
            tt_swap_stored(&out[i], TT_F64, 1);
            continue;
        }
        tt_widen(&v, p + (size_t)i * tt_dtype_size(t->dtype), t->dtype, 1);
        out[i] = v;
    }
    return out;
}

/* ---- parts of a run ------------------------------------------------------ */

#define FRAME_MAX (INT64_C(1) << 31)

static bool recording_is_float(const tt_tensor *t)
{
    return t->dtype == TT_F32 || t->dtype == TT_F64 || t->dtype == TT_F16
        || t->dtype == TT_BF16;
}

static void take_latents(tt_recording *r)
{
    int64_t dim[5] = {1, -1, -1, -1, -1};
    const tt_tensor *t = recording_find(r, "latents", 5, dim);
    if (!t) return;
    if (!recording_is_float(t) || !tt_tensor_count(t)) {
        tt_fail(r->ctx, TT_EFORMAT, "%s: latents are empty or not of a "
                "floating-point type", r->path);
        return;
    }
    r->latents = t;
    r->n = dim[1];
    r->C = dim[2];
    r->P = dim[3] * dim[4];
}

static void take_features(tt_recording *r)
{
    int64_t dim[4] = {-1, -1, 4, -1};
    const tt_tensor *t = recording_find(r, "kv_stats", 4, dim);
    if (!t || r->ctx->status) return;
    if (t->dtype != TT_F32) {
        tt_fail(r->ctx, TT_EFORMAT, "%s: kv_stats must be F32", r->path);
        return;
    }
    if (!tt_tensor_count(t)) return;
    r->features = t;
    r->nfeatures = dim[0];
    r->feature_layers = dim[1];
    r->width = dim[3];
}

static void take_biography(tt_recording *r)
{
    int64_t dim[3] = {-1, -1, -1}, one[1] = {-1}, parts[2] = {-1, 5};
    r->src = integers(r, "bio_src", 3, dim, -3, FRAME_MAX);
    if (!r->src) return;
    r->chunks = dim[0];
    r->layers = dim[1];
    r->slots = dim[2];
    one[0] = r->chunks;
    r->region = integers(r, "bio_region", 3, dim, 0, TT_REGION_COUNT - 1);
    r->share = recording_reals(r, "bio_share", 3, dim);
    r->start = integers(r, "chunk_start", 1, one, 0, FRAME_MAX);
    r->count = integers(r, "chunk_frames", 1, one, 1, FRAME_MAX);
    dim[2] = -1;
    r->readable = recording_reals(r, "readable", 3, dim);
    r->frames = dim[2];
    r->part = integers(r, "bio_part", 2, parts, -3, FRAME_MAX);
    r->nparts = r->part ? parts[0] : 0;
    int64_t counters[3] = {r->chunks, r->layers, 3};
    r->counters = integers(r, "counters", 3, counters, 0, INT64_MAX);
    if (r->ctx->status) return;
    if (!r->region || !r->share || !r->start || !r->count || !r->readable)
        tt_fail(r->ctx, TT_EFORMAT, "%s: the trace has bio_src but lacks "
                "bio_region, bio_share, chunk_start, chunk_frames or readable",
                r->path);
    for (int64_t i = 0; i < r->chunks * r->layers * r->slots; i++)
        if (!r->ctx->status && r->src[i] >= r->frames)
            tt_fail(r->ctx, TT_EFORMAT, "%s: bio_src names frame %lld, but "
                    "readable has %lld", r->path, (long long)r->src[i],
                    (long long)r->frames);
    for (int64_t i = 0; i < r->chunks && !r->ctx->status; i++)
        if (r->start[i] + r->count[i] > r->frames)
            tt_fail(r->ctx, TT_EFORMAT, "%s: chunk %lld ends after the last "
                    "frame", r->path, (long long)i);
}

static void take_rounds(tt_recording *r)
{
    int64_t n[1] = {-1}, wide[2] = {0, -1};
    r->grab_layer = integers(r, "grab_layer", 1, n, 0, FRAME_MAX);
    if (!r->grab_layer || !n[0]) return;
    wide[0] = n[0];
    r->grab_chunk = integers(r, "grab_chunk", 1, n, 0, FRAME_MAX);
    r->grab_sub = integers(r, "grab_sub", 1, n, 0, FRAME_MAX);
    r->grab_candidates = integers(r, "grab_candidates", 2, wide, -FRAME_MAX,
                                  FRAME_MAX);
    r->grab_keep = integers(r, "grab_keep", 2, wide, 0, 1);
    r->grab_mass = recording_reals(r, "grab_mass", 2, wide);
    r->grab_scores = recording_reals(r, "grab_scores", 2, wide);
    r->grab_div = recording_reals(r, "grab_div", 2, wide);   /* may be absent */
    r->grab_margin = recording_reals(r, "grab_margin", 1, n);     /* likewise */
    if (r->ctx->status) return;
    if (!r->grab_chunk || !r->grab_sub || !r->grab_candidates || !r->grab_keep
        || !r->grab_mass || !r->grab_scores) {
        tt_fail(r->ctx, TT_EFORMAT, "%s: the trace has grab_layer but not all "
                "of grab_chunk, grab_sub, grab_candidates, grab_keep, "
                "grab_mass, grab_scores", r->path);
        return;
    }
    r->rounds = n[0];
    r->candidates = wide[1];
}

static void take_events(tt_recording *r)
{
    int64_t head[2] = {-1, 7}, frame[2] = {-1, 4}, phi[2] = {-1, 2};
    int64_t chosen[2] = {-1, 6};
    r->event = integers(r, "comp_event", 2, head, -FRAME_MAX, FRAME_MAX);
    if (!r->event) return;
    r->event_frame = integers(r, "comp_frame", 2, frame, -FRAME_MAX,
                              FRAME_MAX);
    phi[0] = frame[0];
    r->event_phi = recording_reals(r, "comp_frame_phi", 2, phi);
    if (r->ctx->status || !r->event_frame || !r->event_phi) return;
    for (int64_t i = 0; i < frame[0]; i++)
        if (r->event_frame[4 * i] < 0 || r->event_frame[4 * i] >= head[0]) {
            tt_fail(r->ctx, TT_EFORMAT, "%s: comp_frame names an event that "
                    "is not there", r->path);
            return;
        }
    r->events = head[0];
    r->event_frames = frame[0];
    r->chosen_token = recording_find(r, "comp_chosen", 2, chosen);
    if (r->chosen_token && r->chosen_token->dtype == TT_F64)
        r->chosen = chosen[0];
}

/* ---- run.json ------------------------------------------------------------ */

static const char *recording_keep(tt_recording *r, const char *s)
{
    return s ? tt_strdup(r->ctx, &r->mem, s) : NULL;
}

/* Every row of every table repeats it. */
static const char *short_label(tt_recording *r, const char *s)
{
    enum { LABEL = 200 };
    size_t n = 0;
    while (s && s[n]) {
        const int length = utf8_length(s + n);
        n += (size_t)(length ? length : 1);
        if (n <= LABEL) continue;
        n -= (size_t)(length ? length : 1);
        tt_warn(r->ctx, "%s: the label in run.json is cut to %zu bytes",
                r->path, n);
        char *copy = tt_alloc0(r->ctx, &r->mem, LABEL + 1, 1, what);
        return copy ? memcpy(copy, s, n) : "";
    }
    return s;
}

static const char *seed_of(tt_recording *r, const tt_json *root)
{
    char buf[32];
    const int64_t seed = tt_json_int(root, "seed", -1);
    if (seed < 0) return NULL;
    snprintf(buf, sizeof buf, "%lld", (long long)seed);
    return recording_keep(r, buf);
}

static void read_facts(tt_recording *r)
{
    const tt_json *root, *policy;
    const char *path = files_join(r->ctx, &r->mem, r->path, "run.json", "");
    if (r->ctx->status || !files_exist(path)) return;
    if (tt_json_file(r->ctx, &r->mem, &root, path, 1 << 24)) return;
    if (tt_json_bool(root, "unfinished", false))
        tt_warn(r->ctx, "%s: the run is not finished: this is its first %lld "
                "chunks", r->path, (long long)tt_json_int(
                tt_json_get(root, "sizes"), "chunks", 0));
    policy = tt_json_get(root, "policy");
    r->label = short_label(r, tt_json_str(root, "label", r->label));
    r->prompt = tt_json_str(root, "prompt", NULL);
    r->video = tt_json_str(root, "video", NULL);
    r->seed = seed_of(r, root);
    r->policy = tt_json_str(policy, "name", "");
    r->S = tt_json_int(policy, "S", -1);
    r->K = tt_json_int(policy, "K", -1);
    r->M = tt_json_int(policy, "M", -1);
    r->R = tt_json_int(policy, "R", -1);
    r->alpha = tt_json_num(policy, "alpha", NAN);
    r->tau = tt_json_num(policy, "tau", NAN);
    r->alpha_long = tt_json_num(policy, "alpha-long", -1);
    r->alpha_short = tt_json_num(policy, "alpha-short", -1);
    /* the adaptive rate is per token: no weight per frame follows from it */
    if (tt_json_int(policy, "adaptive", 0)) r->alpha_short = -1;
}

/* ---- open, close --------------------------------------------------------- */

static void recording_open_files(tt_recording *r)
{
    static const char *const name[4] = {
        "latents.safetensors", "trace.safetensors", "features.safetensors",
        "chosen.safetensors"};
    struct stat st;
    if (stat(r->path, &st) || !S_ISDIR(st.st_mode)) {
        tt_file_open(r->ctx, &r->file[0], r->path);
        return;
    }
    read_facts(r);
    for (int i = 0; i < 4 && !r->ctx->status; i++) {
        const char *path = files_join(r->ctx, &r->mem, r->path, name[i], "");
        if (files_exist(path)) tt_file_open(r->ctx, &r->file[i], path);
    }
}

/* "runs/tether/" -> "tether" */
static const char *last_name(tt_recording *r)
{
    char *s = tt_strdup(r->ctx, &r->mem, r->path);
    if (!s) return "";
    size_t n = strlen(s);
    while (n > 1 && s[n - 1] == '/') s[--n] = 0;
    char *slash = strrchr(s, '/');
    return slash && slash[1] ? slash + 1 : s;
}

tt_status tt_recording_open(tt_ctx *ctx, tt_recording **out, const char *path)
{
    tt_arena mem = {0};
    *out = NULL;
    tt_recording *r = tt_alloc0(ctx, &mem, 1, sizeof *r, what);
    if (!r) return ctx->status;
    r->ctx = ctx;
    r->mem = mem;
    r->path = recording_keep(r, path);
    r->label = last_name(r);
    r->policy = "";
    r->S = r->K = r->M = r->R = -1;
    r->alpha = r->tau = NAN;
    r->alpha_long = r->alpha_short = -1;
    r->seconds = -1;
    if (!ctx->status) recording_open_files(r);
    if (!ctx->status) take_latents(r);
    if (!ctx->status) take_features(r);
    if (!ctx->status) take_biography(r);
    if (!ctx->status) take_rounds(r);
    if (!ctx->status) take_events(r);
    if (!ctx->status && !r->latents && !r->features && !r->src && !r->rounds)
        tt_fail(ctx, TT_EFORMAT, "%s holds nothing to analyse: a run folder "
                "of `generate --analyze`, a file with `latents`, or a trace "
                "of `--trace-cache` is needed", path);
    if (ctx->status) {
        tt_recording_close(r);
        return ctx->status;
    }
    *out = r;
    return TT_OK;
}

void tt_recording_close(tt_recording *r)
{
    if (!r) return;
    for (int i = 0; i < 4; i++)
        if (r->file[i]) tt_file_close(r->file[i]);
    tt_arena mem = r->mem; /* r itself lives in it */
    tt_arena_free(&mem);
}

const char *tt_recording_label(const tt_recording *r)
{
    return r ? r->label : "";
}
const char *tt_recording_prompt(const tt_recording *r)
{
    return r ? r->prompt : NULL;
}
const char *tt_recording_video(const tt_recording *r)
{
    return r ? r->video : NULL;
}

void tt_recording_set_seconds(tt_recording *r, double seconds)
{
    if (r) r->seconds = seconds;
}

void tt_recording_set_label(tt_ctx *ctx, tt_recording *r, const char *label)
{
    const char *copy = r ? tt_strdup(ctx, &r->mem, label) : NULL;
    if (copy) r->label = copy;
}

void recording_frame(float *z, const tt_recording *r, int64_t f)
{
    const tt_tensor *t = r->latents;
    const int64_t n = r->C * r->P;
    tt_widen_at_f32(z, t, f * n, n);
}
