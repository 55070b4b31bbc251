/* history.c: did two runs hold the same frames where a tensor is made?
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a history is where a run's picks of frames first left ours. GRAB
 *         picks at the end of chunk c, in the pass over its clean latents,
 *         layer after layer (src/cache/policies/tether.c). A pick of layer l
 *         changes
 *           in that pass      attention of layer l and what comes after it;
 *           in chunk c + 1    the first pass from attention of layer l on, and
 *                             all later ones;
 *           after that        everything but the noise a chunk starts from, and
 *                             the first projections of it.
 *         Times and prompts depend on no latents. Latent frames up to chunk c
 *         were made before the pick, and so were their pictures.
 * Holds   a tensor is checked if and only if the histories of the runs that
 *         made it agree there. One of another history may still be equal, but
 *         cannot be wrong. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "validate/files/dump.h"

/* Where a name stands, -1 where it does not say. */
typedef struct place {
    int64_t chunk, step, block, cache, sub, vae;
    const char *last;      /* after the last scope: "self_attn.q"             */
} place;

static place place_of(const char *name)
{
    static const char *const scope[] = {"chunk.", "step.", "block.", "cache.",
                                        "admit.", "vae/frame."};
    place p = {-1, -1, -1, -1, -1, -1, name};
    int64_t *const number[] = {&p.chunk, &p.step, &p.block, &p.cache, &p.sub,
                               &p.vae};
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < 6; i++) {
            const char *end;
            const size_t n = strlen(scope[i]);
            if (strncmp(p.last, scope[i], n)) continue;
            const int64_t x = dump_number(p.last + n, &end);
            if (x < 0 || *end != '/') continue;
            *number[i] = x;
            p.last = end + 1;
            more = true;
        }
    }
    return p;
}

static bool projection(const char *last)
{
    return !strcmp(last, "self_attn.q") || !strcmp(last, "self_attn.k")
        || !strcmp(last, "self_attn.v");
}

/* Made from the pass's input alone. */
static bool before_blocks(const place *p)
{
    return p->block < 0
        && (!strcmp(p->last, "x") || !strcmp(p->last, "tokens"));
}

/* In the pass over chunk c's clean latents, where the pick was made. */
static bool later_in_pass(const history *f, const place *p)
{
    if (p->block < 0) return !before_blocks(p);
    if (p->block != f->block) return p->block > f->block;
    if (p->sub < 0) return !projection(p->last);
    if (p->sub != f->sub) return p->sub > f->sub;
    return !strncmp(p->last, "tame.", 5) || !strcmp(p->last, "grab.keep");
}

/* In the first pass of the chunk after it, and of any later one. */
static bool in_first_pass(const history *f, const place *p)
{
    const int64_t first = p->chunk == f->chunk + 1 ? f->block : 0;
    if (p->block < 0) return !before_blocks(p);
    return p->block > first || (p->block == first && !projection(p->last));
}

static bool reaches(const history *f, const place *p)
{
    if (p->vae >= 0) return f->frames < 0 || p->vae >= f->frames;
    if (p->chunk < 0 || f->chunk < 0) return p->chunk >= 0;
    if (p->chunk < f->chunk || !strcmp(p->last, "e") || !strcmp(p->last, "e0"))
        return false;
    if (p->cache >= 0) return p->chunk > f->chunk || p->cache >= f->block;
    if (p->chunk == f->chunk)
        return p->step == f->step ? later_in_pass(f, p) : p->step > f->step;
    return p->step > 0 || in_first_pass(f, p);
}

/* With everything given at every point only the memory itself stays another
 * one, and the attention that reads it. */
static bool reaches_injected(const history *f, const place *p)
{
    if (p->chunk < f->chunk) return false;
    if (p->cache >= 0) return p->cache == f->block;
    if (p->chunk == f->chunk && p->step < f->step) return false;
    if (p->block != f->block || projection(p->last)) return false;
    return p->chunk > f->chunk || later_in_pass(f, p);
}

static bool among(const char *const *list, const char *name)
{
    while (*list && strcmp(*list, name)) list++;
    return *list != NULL;
}

/* Leading rows of a tensor of a trace that come before it. Where rounds and
 * chunks begin and end, which layer they are of, seeds: no pick changes them.
 */
static int64_t rows_before(const dump_run *d, const history *f,
                           const tt_entry *e)
{
    static const char *const by_round[] = {
        "grab_candidates", "grab_mass", "grab_div", "grab_scores", "grab_keep",
        "grab_memory_after", "grab_margin", NULL};
    static const char *const by_chunk[] = {
        "memory_index", "counters", "bio_src", "bio_share", "bio_region",
        "readable", "cache_k_norm2", "cache_v_norm2", NULL};
    const char *end;
    if (e->t.rank < 1) return SAME_ROWS;
    if (among(by_round, e->name))
        return e->t.dim[0] == d->rounds ? f->row : 0;
    if (among(by_chunk, e->name))
        return e->t.dim[0] == d->chunks && f->chunk >= 0 ? f->chunk : 0;
    const int64_t chunk = strncmp(e->name, "chunk", 5) ? -1
                          : dump_number(e->name + 5, &end);
    return chunk >= 0 && *end == '.' && chunk >= f->chunk ? 0 : SAME_ROWS;
}

static bool touched(const dump_run *d, const history *f, const char *name)
{
    const place p = place_of(name);
    if (!*f->name) return false;
    if (strstr(name, "restart.") || strstr(name, "clip.")) return true;
    return d->opt->injected ? reaches_injected(f, &p) : reaches(f, &p);
}

/* The same of one run and ours. */
static int64_t with_ours(const dump_run *d, const history *f,
                         const tt_entry *e)
{
    if (!*f->name) return SAME_ROWS;
    if (f->row >= 0) {
        const int64_t rows = rows_before(d, f, e);
        if (rows != SAME_ROWS) return rows < e->t.dim[0] ? rows : e->t.dim[0];
    }
    return touched(d, f, e->name) ? 0 : SAME_ROWS;
}

int64_t same_history(const dump_run *d, run_kind a, run_kind b,
                     const tt_entry *e)
{
    const int64_t x = with_ours(d, &d->of[a], e);
    const int64_t y = with_ours(d, &d->of[b], e);
    return x < y ? x : y;
}

/* Latent frames of chunks 0 .. c of ours, -1 when they do not say. */
static int64_t frames_up_to(const dump_run *d, int64_t c)
{
    int64_t n = 0;
    for (int64_t i = 0; i <= c; i++) {
        char name[64];
        snprintf(name, sizeof name, "chunk.%" PRId64 "/step.0/x", i);
        const tt_entry *e = tt_file_find(d->f.want, name);
        if (!e || e->t.rank != 4 || !tt_checked_add(&n, n, e->t.dim[0]))
            return -1;
    }
    return n;
}

/* The chunk of a round of a trace, -1 when the file does not say, or names
 * one that it does not have. */
static int64_t chunk_of_round(dump_run *d, int64_t round)
{
    const tt_entry *e = tt_file_find(d->f.want, "grab_chunk");
    if (!e || e->t.rank != 1 || round >= e->t.dim[0]) return -1;
    const double *x = tt_read_double(d->ctx, &d->ctx->scratch, &e->t);
    return x && x[round] >= 0 && x[round] < (double)d->chunks
           ? (int64_t)x[round] : -1;
}

static void set(dump_run *d, history *f, const char *name, int64_t row)
{
    const place p = place_of(name);
    *f = (history){.chunk = p.chunk, .step = p.step, .block = p.block,
                   .sub = p.sub, .row = -1, .frames = -1};
    if (d->rounds >= 0) {
        f->row = row;
        f->chunk = chunk_of_round(d, row);
        snprintf(f->name, sizeof f->name, "round %" PRId64 " of %.150s", row,
                 name);
    } else {
        snprintf(f->name, sizeof f->name, "%s", name);
        if (p.chunk >= 0) f->frames = frames_up_to(d, p.chunk);
    }
}

/* The first row of a run's picks that is not ours; of RUN_EXCUSED, that the
 * arithmetic may make. */
static void history_look(dump_run *d, run_kind which, tt_file *file,
                         const tt_entry *ours)
{
    history *f = &d->of[which];
    const tt_entry *e = file ? tt_file_find(file, ours->name) : NULL;
    other_pick other;
    if (*f->name || !e || !pair_same_shape(&e->t, &ours->t)) return;
    const double *a = tt_read_double(d->ctx, &d->ctx->scratch, &e->t);
    const double *b = tt_read_double(d->ctx, &d->ctx->scratch, &ours->t);
    if (!d->ctx->status && selection_find(d, file, ours, a, b, &other)
        && (other.what == PICK_TIE || which != RUN_EXCUSED))
        set(d, f, ours->name, other.row);
}

void history_watch(dump_run *d, const tt_entry *ours)
{
    char score[224];
    if (!d->limits || !selection_score_name(score, sizeof score,
                                                ours->name)) return;
    const tt_arena_mark mark = tt_arena_here(&d->ctx->scratch);
    const bool given = tt_file_find(d->f.got, ours->name) != NULL;
    d->blind = d->blind || !given;
    if (!d->opt->injected || !given) {   /* else theirs are taken by all */
        history_look(d, RUN_ORACLE, d->f.oracle, ours);
        history_look(d, RUN_EMULATED, d->f.emul, ours);
    }
    if (!d->opt->injected) {
        history_look(d, RUN_EXCUSED, d->f.got, ours);
        history_look(d, RUN_THEIRS, d->f.got, ours);
    }
    tt_arena_reset(&d->ctx->scratch, mark);
}

tt_file *history_file(const dump_run *d, run_kind which, const tt_entry *ours)
{
    const history *f = &d->of[which];
    if (touched(d, f, ours->name)) return NULL;
    if (which == RUN_EMULATED) return d->f.emul;
    return f->row < 0 ? d->f.oracle : NULL;
}
