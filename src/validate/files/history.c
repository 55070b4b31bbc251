/* history.c: did two runs hold the same frames where a tensor is made?
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Model   a history is where a run's picks of frames first left ours. GRAB
 *         picks at the end of chunk c, in the pass over its clean latents,
 *         layer after layer (src/cache/policies/tether.c). Tensors come in the
 *         order of execution, so all that is looked at was made after it. A
 *         pick of layer l changes
 *           in chunk c        all but the caches of layers before l;
 *           in chunk c + 1    the first pass from attention of layer l on, and
 *                             all later ones;
 *           after that        everything but the noise a chunk starts from, and
 *                             the first projections of it.
 *         Times and prompts depend on no latents. Latent frames up to chunk c
 *         were made before the pick, and so were their pictures.
 * Holds   a tensor is checked if and only if the histories of the runs that
 *         made it agree there. One of another history may still be equal, but
 *         cannot be wrong.
 * Next    selection.c, the rule that picks are held to */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "validate/files/dump.h"

/* ---- what a pick reaches ------------------------------------------------- */

/* Made before attention: of the pass's input alone, or of that of a block. */
static bool before_attention(const place *p)
{
    return tt_name_chosen(p->block < 0 ? "x,tokens" : "self_attn.[qkv]",
                          p->last);
}

/* With everything given at every point only the memory itself stays another
 * one, and the attention that reads it. */
static bool reaches_injected(const place *f, const place *p)
{
    if (p->chunk < f->chunk) return false;
    if (p->cache >= 0) return p->cache == f->block;
    return p->block == f->block
           && (p->chunk == f->chunk || !before_attention(p));
}

static bool reaches(const history *h, const place *f, const place *p)
{
    if (p->vae >= 0) return h->frames < 0 || p->vae >= h->frames;
    if (p->chunk < 0 || f->chunk < 0) return p->chunk >= 0;
    if (p->chunk < f->chunk || !strcmp(p->last, "e") || !strcmp(p->last, "e0"))
        return false;
    if (p->cache >= 0) return p->chunk > f->chunk || p->cache >= f->block;
    if (p->chunk == f->chunk || p->step > 0) return true;
    const int64_t first = p->chunk == f->chunk + 1 ? f->block : 0;
    return p->block >= 0 && p->block != first ? p->block > first
                                              : !before_attention(p);
}

bool history_reaches(const dump_run *d, run_kind run, const char *name)
{
    const history *h = &d->of[run];
    if (!*h->name) return false;
    const place f = place_of(h->name), p = place_of(name);
    return d->opt->injected ? reaches_injected(&f, &p) : reaches(h, &f, &p);
}

/* ---- picks --------------------------------------------------------------- */

bool selection_score_name(char *out, size_t size, const char *name)
{
    const size_t n = strlen(name);
    if (n < 9 || strcmp(name + n - 9, "grab.keep")) return false;
    snprintf(out, size, "%.*sgrab.score", (int)(n - 9), name);
    return true;
}

/* The scores [n] of a file, NULL when it has none that fit. */
static const double *scores_of(dump_run *d, tt_file *f, const tt_entry *keep)
{
    char name[224];
    if (!f || !selection_score_name(name, sizeof name, keep->name)) return NULL;
    const tt_entry *e = tt_file_find(f, name);
    if (!e || !tt_dtype_is_real(e->t.dtype)
        || tt_tensor_count(&e->t) != tt_tensor_count(&keep->t)) return NULL;
    return tt_read_double(d->ctx, &d->ctx->scratch, &e->t);
}

pick selection_in(dump_run *d, tt_file *file, const tt_entry *e,
                  const double *got, const double *want, double *ratio,
                  char *why, size_t size)
{
    const char *ours_at = d->of[RUN_ORACLE].name;
    const char *emul_at = d->of[RUN_EMULATED].name;
    /* scores come before the pick that leaves ours, and are still the same */
    const bool exact = !*ours_at || !strcmp(ours_at, e->name);
    const bool emulated = !*emul_at || !strcmp(emul_at, e->name);
    const double *oracle = exact ? scores_of(d, d->f.oracle, e) : NULL;
    const selection s = {
        got, want, oracle ? oracle : scores_of(d, d->f.want, e),
        emulated ? scores_of(d, d->f.emul, e) : NULL, scores_of(d, file, e),
        tt_tensor_count(&e->t)};
    return selection_compare(&s, d->limits, ratio, why, size);
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

/* Are these the first picks of a run that are not ours? Of RUN_EXCUSED, that
 * the arithmetic may make. */
static void history_look(dump_run *d, run_kind which, tt_file *file,
                         const tt_entry *ours)
{
    char why[192];
    double ratio;
    history *h = &d->of[which];
    const tt_entry *e = file ? tt_file_find(file, ours->name) : NULL;
    if (*h->name || !e || !pair_same_shape(&e->t, &ours->t)) return;
    const double *a = tt_read_double(d->ctx, &d->ctx->scratch, &e->t);
    const double *b = tt_read_double(d->ctx, &d->ctx->scratch, &ours->t);
    const pick p = a && b ? selection_in(d, file, ours, a, b, &ratio, why,
                                         sizeof why) : PICK_SAME;
    if (p == PICK_SAME || (p > PICK_TIE && which == RUN_EXCUSED)) return;
    snprintf(h->name, sizeof h->name, "%s", ours->name);
    h->frames = frames_up_to(d, place_of(ours->name).chunk);
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
    if (!d->opt->injected) history_look(d, RUN_EXCUSED, d->f.got, ours);
    tt_arena_reset(&d->ctx->scratch, mark);
}
