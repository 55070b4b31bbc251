/* flip.c: what follows from a pick of frames that went another way.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   GRAB picks at the end of chunk c, in the pass over its clean latents,
 *         layer after layer (src/cache/policies/tether.c). A pick of layer l
 *         changes
 *           in that pass      attention of layer l and what comes after it;
 *           in chunk c + 1    the first pass from attention of layer l on, and
 *                             all later ones;
 *           after that        everything but the noise a chunk starts from, and
 *                             the first projections of it.
 *         Times and prompts depend on no latents. Latent frames up to chunk c
 *         were made before the pick, and so were their pictures.
 * Holds   a tensor that a flip cannot reach is judged as if there were none;
 *         one that it can reach may still pass, but cannot fail. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "validate/files/dump.h"

/* Where a name stands, -1 where it does not say. */
typedef struct place {
    int64_t chunk, step, block, cache, sub, vae;
    const char *last;      /* behind the last scope: "self_attn.q"            */
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
static bool later_in_pass(const flip *f, const place *p)
{
    if (p->block < 0) return !before_blocks(p);
    if (p->block != f->block) return p->block > f->block;
    if (p->sub < 0) return !projection(p->last);
    if (p->sub != f->sub) return p->sub > f->sub;
    return !strncmp(p->last, "tame.", 5) || !strcmp(p->last, "grab.keep");
}

static bool reaches(const flip *f, const place *p)
{
    if (p->vae >= 0) return f->frames < 0 || p->vae >= f->frames;
    if (p->chunk < 0) return false;
    if (f->chunk < 0) return true;
    if (p->chunk < f->chunk || !strcmp(p->last, "e") || !strcmp(p->last, "e0"))
        return false;
    if (p->cache >= 0) return p->chunk > f->chunk || p->cache >= f->block;
    if (p->chunk == f->chunk)
        return p->step == f->step ? later_in_pass(f, p) : p->step > f->step;
    if (p->step > 0) return true;
    if (p->block < 0) return !before_blocks(p);
    const int64_t first = p->chunk == f->chunk + 1 ? f->block : 0;
    return p->block > first || (p->block == first && !projection(p->last));
}

/* With everything given at every point only the memory itself stays another
 * one, and the attention that reads it. */
static bool reaches_injected(const flip *f, const place *p)
{
    if (p->chunk < f->chunk) return false;
    if (p->cache >= 0) return p->cache == f->block;
    if (p->chunk == f->chunk && p->step < f->step) return false;
    if (p->block != f->block || projection(p->last)) return false;
    return p->chunk > f->chunk || later_in_pass(f, p);
}

bool flip_reaches(const flip *f, const char *name, bool injected)
{
    if (!*f->name) return false;
    if (strstr(name, "restart.") || strstr(name, "clip.")) return true;
    const place p = place_of(name);
    return injected ? reaches_injected(f, &p) : reaches(f, &p);
}

static bool among(const char *const *list, const char *name)
{
    while (*list && strcmp(*list, name)) list++;
    return *list != NULL;
}

/* Where rounds and chunks begin and end, which layer they are of, seeds: no
 * pick changes them. */
static int64_t rows_before(const dump_run *d, const flip *f,
                           const tt_verdict *v, const char *name)
{
    static const char *const by_round[] = {
        "grab_candidates", "grab_mass", "grab_div", "grab_scores", "grab_keep",
        "grab_memory_after", "grab_margin", NULL};
    static const char *const by_chunk[] = {
        "memory_index", "counters", "bio_src", "bio_share", "bio_region",
        "readable", "cache_k_norm2", "cache_v_norm2", NULL};
    const char *end;
    if (d->rounds < 0 || f->row < 0 || !*f->name || v->rank < 1) return -1;
    if (among(by_round, name)) return v->dim[0] == d->rounds ? f->row : 0;
    if (among(by_chunk, name))
        return v->dim[0] == d->chunks && f->chunk >= 0 ? f->chunk : 0;
    const int64_t chunk = strncmp(name, "chunk", 5) ? -1
                          : dump_number(name + 5, &end);
    return chunk >= 0 && *end == '.' && chunk >= f->chunk ? 0 : -1;
}

int64_t flip_rows(const dump_run *d, const flip *f, const tt_verdict *v,
                  const char *name)
{
    const int64_t rows = rows_before(d, f, v, name);
    return rows > v->dim[0] ? v->dim[0] : rows;
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

static void set(dump_run *d, flip *f, const char *name, int64_t row)
{
    const place p = place_of(name);
    *f = (flip){.chunk = p.chunk, .step = p.step, .block = p.block,
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

/* The first row of picks in `file` that is not ours sets f; with `ties` only
 * when the arithmetic may make it. */
static void look(dump_run *d, flip *f, tt_file *file, const tt_entry *ours,
                 bool ties)
{
    const tt_entry *e = file ? tt_file_find(file, ours->name) : NULL;
    const int64_t n = tt_tensor_count(&ours->t);
    const int64_t P = ours->t.rank ? ours->t.dim[ours->t.rank - 1] : 1;
    char why[200];
    double ratio;
    pick p = PICK_SAME;
    if (*f->name || !e || P < 1 || !pair_same_shape(&e->t, &ours->t)) return;
    const double *a = tt_read_double(d->ctx, &d->ctx->scratch, &e->t);
    const double *b = tt_read_double(d->ctx, &d->ctx->scratch, &ours->t);
    if (d->ctx->status) return;
    const int64_t row = selection_find(d, file, ours->name, a, b, n, P, &p,
                                       &ratio, why, sizeof why);
    if (row >= 0 && (p == PICK_TIE || !ties)) set(d, f, ours->name, row);
}

void flip_watch(dump_run *d, const tt_entry *ours)
{
    char score[224];
    if (!d->opt->arith || !selection_score_name(score, sizeof score,
                                                ours->name)) return;
    const tt_arena_mark mark = tt_arena_here(&d->ctx->scratch);
    const bool given = tt_file_find(d->f.got, ours->name) != NULL;
    d->blind = d->blind || !given;
    if (!d->opt->injected || !given) {   /* else theirs are taken by all */
        look(d, &d->oracle, d->f.oracle, ours, false);
        look(d, &d->emul, d->f.emul, ours, false);
    }
    if (!d->opt->injected) {
        look(d, &d->tie, d->f.got, ours, true);
        look(d, &d->theirs, d->f.got, ours, false);
    }
    tt_arena_reset(&d->ctx->scratch, mark);
}

tt_file *dump_oracle(const dump_run *d, const char *name)
{
    return flip_reaches(&d->oracle, name, d->opt->injected)
               || d->oracle.row >= 0 ? NULL : d->f.oracle;
}

tt_file *dump_emul(const dump_run *d, const char *name)
{
    return flip_reaches(&d->emul, name, d->opt->injected) ? NULL : d->f.emul;
}
