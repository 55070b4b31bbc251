/* record.c: the run record, run.json: how a result came to be.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/parts.h"

#include <string.h>
#include <sys/stat.h>

#include "io/jsonout.h"
#include "io/map.h"
#include "ops/backend.h"
#include "io/io.h"
#include "io/outfile.h"
#include "core/threads.h"
#include "tether/version.h"

void record_begin(record *r)
{
    memset(r, 0, sizeof *r);
    r->last_file = &r->files;
    r->last_chunk = &r->chunks;
}

void record_end(record *r)
{
    tt_arena_free(&r->mem);
}

void record_input(tt_ctx *ctx, record *r, const char *role, const char *path,
                  const char *origin)
{
    record_file *f = tt_alloc0(ctx, &r->mem, 1, sizeof *f, "run record");
    if (!f || !path) return;
    f->role = role;
    f->path = tt_strdup(ctx, &r->mem, path);
    f->origin = origin ? tt_strdup(ctx, &r->mem, origin) : NULL;
    f->there = !stat(path, &f->was) && S_ISREG(f->was.st_mode);
    *r->last_file = f;
    r->last_file = &f->next;
}

void record_add_chunk(tt_ctx *ctx, record *r, int64_t chunk, int64_t frames,
                      double seconds)
{
    record_chunk *c = tt_alloc0(ctx, &r->mem, 1, sizeof *c, "run record");
    if (!c) return;
    c->chunk = chunk;
    c->frames = frames;
    c->seconds = seconds;
    *r->last_chunk = c;
    r->last_chunk = &c->next;
}

void record_next_video(record *r)
{
    r->chunks = NULL;
    r->last_chunk = &r->chunks;
    r->resumed_after = 0;
    r->rollout_seconds = 0;
}

/* The SHA-256 of one input; what cannot be opened as a checkpoint is hashed
 * as plain bytes. Of a pipe there is none: its bytes are gone. */
static void digest(tt_ctx *ctx, char hex[65], const char *path)
{
    tt_file *f = NULL;
    hex[0] = 0;
    if (tt_file_open(ctx, &f, path) == TT_OK) {
        tt_file_digest(hex, f);
        tt_file_close(f);
        return;
    }
    tt_clear(ctx);
    io_map m;
    tt_sha256 s;
    if (io_map_open(ctx, &m, path)) {
        tt_clear(ctx);
        return;
    }
    tt_sha256_init(&s);
    tt_sha256_add(&s, m.data, (size_t)m.size);
    tt_sha256_hex(&s, hex);
    io_map_close(&m);
}

/* Is the file the one that was opened? */
static bool is_unchanged(const record_file *f)
{
    struct stat now;
    return !f->there
        || (!stat(f->path, &now) && now.st_ino == f->was.st_ino
            && now.st_dev == f->was.st_dev && now.st_size == f->was.st_size
            && now.st_mtime == f->was.st_mtime);
}

/* The digest of what the run has read; none where that cannot be had. */
static void digest_of_input(tt_ctx *ctx, char hex[65], const record_file *f)
{
    const bool before = is_unchanged(f);
    if (before) digest(ctx, hex, f->path);
    if (before && is_unchanged(f) && (*hex || !f->there)) return;
    hex[0] = 0;
    tt_warn(ctx, "%s was replaced, changed or removed after it was opened: the "
            "record has no digest of it", f->path);
}

static void write_program(tt_ctx *ctx, json_out *j, const tt_run *run)
{
    char cpu[256], library[256];
    json_open(j, "program", '{');
    json_str(j, "version", tt_version());
    json_str(j, "revision", tt_git_revision());
    json_str(j, "compiler", tt_compiler());
    json_str(j, "compute_type", tt_real_name());
    json_str(j, "backend", ctx->ops->name);
    json_str(j, "class", tt_class_name(ctx->ops->cls));
    tt_class vae;
    if (!tt_model_vae_class(ctx, &vae, &run->s.model) && vae != TT_CLASS_F32)
        json_str(j, "vae_class", tt_class_name(vae));
    if (tt_ops_library(ctx, library, sizeof library))
        json_str(j, "library", library);
    json_str(j, "determinism", tt_determinism(ctx->ops));
    json_str(j, "cpu", tt_cpu_features(cpu, sizeof cpu));
    json_int(j, "threads", ctx->nthreads);
    json_bool(j, "keys_kept", run->now.opt.keep_keys);
    json_close(j, '}');
}

static void write_inputs(tt_ctx *ctx, json_out *j, const record *r)
{
    json_open(j, "inputs", '[');
    for (const record_file *f = r->files; f; f = f->next) {
        char hex[65];
        digest_of_input(ctx, hex, f);
        json_open(j, NULL, '{');
        json_str(j, "role", f->role);
        json_str(j, "path", f->path);
        if (f->origin) json_str(j, "origin", f->origin);
        json_str(j, "sha256", *hex ? hex : NULL);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void write_video(json_out *j, const tt_run *run)
{
    const video *v = &run->now;
    const tt_rollout_options *o = &v->opt;
    json_open(j, "video", '{');
    json_str(j, "prompt", v->what.text);
    if (v->what.extended) json_str(j, "extended_prompt", v->what.extended);
    tt_recorder_scenes(j, v->scene, o->nscenes);
    if (run->s.noise) { /* whatever made it; it is among the inputs */
        json_str(j, "seed", NULL);
        json_str(j, "generator", "file");
    } else {
        json_u64(j, "seed", o->noise.seed);
        json_str(j, "generator", "tn1");
    }
    json_int(j, "sample", o->noise.sample);
    json_int(j, "latents", o->latents);
    json_int(j, "given_latents", o->initial_frames);
    json_int(j, "frames", tt_run_frames(run));
    json_int(j, "width", 8 * o->w);
    json_int(j, "height", 8 * o->h);
    json_close(j, '}');
}

/* The network's sizes, and the timesteps it sees: one per step, that of the
 * clean pass last. */
static void write_model(tt_ctx *ctx, json_out *j, const tt_run *run)
{
    const tt_dit_config *c = tt_dit_get_config(run->dit);
    const tt_rollout_options *o = &run->opt;
    tt_schedule s;
    json_open(j, "network", '{');
    json_int(j, "dim", c->dim);
    json_int(j, "heads", c->heads);
    json_int(j, "layers", c->layers);
    json_int(j, "ffn_dim", c->ffn_dim);
    json_int(j, "freq_dim", c->freq_dim);
    json_int(j, "channels", c->in_dim);
    json_int(j, "text_dim", c->text_dim);
    json_int(j, "text_len", c->text_len);
    json_real(j, "eps", c->eps);
    json_close(j, '}');
    if (tt_schedule_init(ctx, &s, o->shift, o->steps, o->nsteps, o->warp,
                         o->context_noise))
        return;
    json_open(j, "timesteps", '[');
    for (int i = 0; i < s.nsteps; i++) json_real(j, NULL, s.t[i]);
    json_real(j, NULL, (double)o->context_noise);
    json_close(j, ']');
    if (!o->nfirst || tt_schedule_init(ctx, &s, o->shift, o->first_steps,
                                       o->nfirst, o->warp, o->context_noise))
        return;
    json_open(j, "first_timesteps", '[');
    for (int i = 0; i < s.nsteps; i++) json_real(j, NULL, s.t[i]);
    json_close(j, ']');
}

static void write_times(json_out *j, const record *r,
                        const tt_run_facts *facts)
{
    json_open(j, "seconds", '{');
    json_real(j, "text", r->text_seconds);
    json_real(j, "rollout", r->rollout_seconds);
    json_real(j, "decode", facts->decode_seconds);
    json_close(j, '}');
    json_int(j, "peak_memory_bytes", tt_peak_memory());
    json_int(j, "resumed_after", r->resumed_after);
    json_open(j, "chunks", '[');
    for (const record_chunk *c = r->chunks; c; c = c->next) {
        json_open(j, NULL, '{');
        json_int(j, "chunk", c->chunk);
        json_int(j, "frames", c->frames);
        json_real(j, "seconds", c->seconds);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void write_settings(json_out *j, const tt_settings *s)
{
    json_open(j, "options", '{');
    for (const tt_setting *o = tt_settings_table(); o->kind; o++) {
        const void *at = (const char *)s + o->offset;
        if (o->kind == TT_SETTING_GROUP || !o->help) continue;
        switch (o->kind) {
        case TT_SETTING_FLAG: json_bool(j, o->name, *(const bool *)at); break;
        case TT_SETTING_SWITCH: json_int(j, o->name, *(const int *)at); break;
        case TT_SETTING_INT: json_int(j, o->name, *(const int64_t *)at); break;
        case TT_SETTING_U64: json_u64(j, o->name, *(const uint64_t *)at); break;
        case TT_SETTING_REAL: json_real(j, o->name, *(const double *)at); break;
        default: json_str(j, o->name, *(const char *const *)at); break;
        }
    }
    json_close(j, '}');
}

tt_status tt_run_record(tt_ctx *ctx, tt_run *run, const char *path,
                        const tt_run_facts *facts)
{
    static const tt_run_facts none = {0};
    tt_out out;
    json_out j;
    if (ctx->status || !path) return ctx->status;
    if (!run || run->now.number < 0)
        return tt_fail(ctx, TT_EINVAL, "%s: no video was begun that a record "
                       "could tell of", path);
    if (!facts) facts = &none;
    TT_TRY(tt_out_open(ctx, &out, path));
    json_begin(&j, out.file, true);
    json_str(&j, "command", "generate");
    json_open(&j, "command_line", '[');
    if (facts->argc) json_str(&j, NULL, "tether");
    for (int i = 0; i < facts->argc; i++) json_str(&j, NULL, facts->argv[i]);
    json_close(&j, ']');
    write_program(ctx, &j, run);
    json_str(&j, "identity", run->now.identity);
    write_settings(&j, &run->s);
    write_video(&j, run);
    write_model(ctx, &j, run);
    write_inputs(ctx, &j, &run->record);
    write_times(&j, &run->record, facts);
    json_end(&j);
    return tt_out_finish(ctx, &out);
}

/* ---- inside pictures and videos ------------------------------------------ */

/* "/models/demo/" -> "demo" */
static const char *last_part(const char *path, int *n)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin && path[begin - 1] != '/') begin--;
    *n = (int)(end - begin);
    return path + begin;
}

const char *tt_run_comment(tt_ctx *ctx, tt_run *run, int64_t i, tt_arena *mem)
{
    tt_run_video v;
    if (tt_run_video_at(ctx, run, i, &v)) return NULL;
    const tt_rollout_options *o = &run->opt;
    const tt_model_paths *p = &run->s.model;
    tt_class vae;
    const bool own = !tt_model_vae_class(ctx, &vae, p) && vae != TT_CLASS_F32;
    const char *prompt = v.extended ? v.extended
                       : v.text ? v.text : "(from embeddings)";
    const char *from = p->checkpoint ? p->checkpoint : p->model ? p->model
                     : p->dit ? p->dit : "unknown";
    int n;
    const char *model = last_part(from, &n);
    const size_t size = strlen(prompt) + (size_t)n + 600;
    char *text = tt_alloc(ctx, mem, (int64_t)size, 1, "comment");
    if (text)
        snprintf(text, size, "%s\nSteps: %d, Sampler: Self-Forcing, CFG scale: "
                 "1, Seed: %llu, Size: %lldx%lld, Model: %.*s, Sample: %u, "
                 "Latents: %lld, Chunk: %lld, Shift: %g, Cache: %s, Budget: "
                 "%lld, Backend: %s %s%s%s, Version: tether %s", prompt,
                 o->nsteps, (unsigned long long)v.seed, (long long)(8 * o->w),
                 (long long)(8 * o->h), n, model, (uint32_t)v.sample,
                 (long long)o->latents, (long long)o->chunk, o->shift,
                 o->policy.name, (long long)o->policy.K, ctx->ops->name,
                 tt_class_name(ctx->ops->cls), own ? ", VAE: " : "",
                 own ? tt_class_name(vae) : "", tt_version());
    return text;
}
